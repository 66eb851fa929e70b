(** What a proof file claims, for discounted joint games: definitions only.

    There is no last step.  The tables of step 0 hold at every step, and what happens at step h counts gamma^h times.  The
    discounted sum over the first N steps is a value in the sense of Semantics.v; claims are about what these sums are
    from some N on, so they make sense in every ring of numbers.  At the reals the sums converge, and the claims are about
    their limits. *)
From Coq Require Import QArith List Arith.
From Cmpg Require Import Semantics.
Import ListNotations.
Local Open Scope nat_scope.

(** The game with the tables of step 0, for a number of steps. *)
Definition lasting (g : game) (steps : nat) : game := {|
  num_actions := num_actions g; num_states := num_states g; num_steps := steps; num_constraints := num_constraints g;
  start := start g;
  next := fun _ => next g 0;
  reward := fun i _ => reward g i 0;
  cost := fun j _ => cost g j 0;
  threshold := threshold g; binds := binds g |}.

Definition stationary (p : policy) : policy := fun i _ => p i 0.

Section Discounted.
Context {K : numbers}.
Variable gamma : Q.
Variable g : game.

Fixpoint power (x : K) (h : nat) : K :=
  match h with
  | 0 => one
  | S k => (x * power x k)%num
  end.

(** The discounted sum of [f] over a number of steps. *)
Definition discounted (f : nat -> list nat -> Q) (b : behaviour K (list nat)) (steps : nat) : K :=
  value (dynamics (lasting g steps)) (fun h s a => (power (of_Q gamma) h * of_Q (f s a))%num) b.

(** In the limit, [u] is at most [v]. *)
Definition at_most (u v : nat -> K) : Prop :=
  forall delta : Q, (0 < delta)%Q -> exists from, forall steps, from <= steps -> (u steps <= v steps + of_Q delta)%num.

Definition discounted_meets (j : nat) (b : behaviour K (list nat)) : Prop :=
  at_most (discounted (cost g j 0) b) (fun _ => of_Q (threshold g j)).

(** The claim: in the limit, every threshold is met, and no agent gains more than [eps] by any deviation, a randomised
    function of the whole past, after which the constraints that bind this agent still hold. *)
Definition discounted_nash (p : policy) (eps : Q) : Prop :=
  (0 <= gamma < 1)%Q /\
  (forall steps, is_process K (dynamics (lasting g steps))) /\
  (forall steps i, i < num_agents g -> is_strategy (lasting g steps) i (follow (K := K) (stationary p) i)) /\
  (forall j, j < num_constraints g -> discounted_meets j (together (follow (stationary p)))) /\
  forall i d, i < num_agents g -> (forall steps, is_strategy (lasting g steps) i d) ->
    (forall j, j < num_constraints g -> binds g i j = true -> discounted_meets j (together (deviate i d (follow (stationary p))))) ->
    at_most (discounted (reward g i 0) (together (deviate i d (follow (stationary p)))))
            (fun steps => (discounted (reward g i 0) (together (follow (stationary p))) steps + of_Q eps)%num).

End Discounted.

Arguments discounted_nash : clear implicits.
