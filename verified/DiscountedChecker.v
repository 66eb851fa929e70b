(** The checker of discounted joint games: it looks some steps ahead, and bounds all that comes after by a tail T with
    f + gamma T <= T.  So what it computes satisfies the Bellman inequality at every step.  Nothing here is trusted;
    DiscountedSoundness.v proves it right. *)
From Coq Require Import QArith List Arith.
From Cmpg Require Import Semantics Arithmetic Checker DiscountedSemantics.
Import ListNotations.
Local Open Scope nat_scope.

(** The discount as a part of the transition: rows sum to gamma. *)
Definition shrunk (gamma : Q) (g : game) (steps : nat) : game := {|
  num_actions := num_actions g; num_states := num_states g; num_steps := steps; num_constraints := num_constraints g;
  start := start g;
  next := fun _ s a => map (fun entry => (fst entry, mul gamma (snd entry))) (next g 0 s a);
  reward := fun i _ => reward g i 0;
  cost := fun j _ => cost g j 0;
  threshold := threshold g; binds := binds g |}.

Fixpoint look_ahead (tail : Q) (layer : tree Q -> tree Q) (steps : nat) : tree Q :=
  match steps with
  | 0 => Leaf tail
  | S k => let next := look_ahead tail layer k in layer next
  end.

Section Discounted.
Variable n : precision.
Variable gamma : Q.
Variable g : game.
Variable steps : nat.  (** how far to look ahead *)
Variable p : policy.
Variable multipliers : nat -> nat -> Q.  (** agent, constraint *)
Variable m : process (list nat).  (** the dynamics of [shrunk gamma g 1] *)

(** At least 0, and at least the discounted sum of [f] from any state on. *)
Definition tail_of (f : nat -> list nat -> Q) : Q :=
  larger 0 (largest (seq 0 (num_states g)) (fun s => largest (actions m) (fun a => f s a)) / (1 - gamma)).

Definition ahead_bound (f : nat -> list nat -> Q) (step : tree Q -> nat -> nat -> Q) : Q :=
  let table := look_ahead (tail_of f) (fun next => tabulate 0%Q (num_states g) (fun s => step next 0 s)) steps in
  total_of (seq 0 (num_states g)) (fun s => mul_up n (start g s) (get table s)).

Definition at_every_step (f : nat -> list nat -> Q) : nat -> nat -> list nat -> Q := fun _ s a => f s a.

Definition discounted_above (f : nat -> list nat -> Q) : Q :=
  ahead_bound f (followed n (shrunk gamma g 1) m (stationary p) (at_every_step f)).
Definition discounted_below (f : nat -> list nat -> Q) : Q := (- discounted_above (fun s a => - f s a))%Q.
Definition discounted_best (i : nat) (f : nat -> list nat -> Q) : Q :=
  ahead_bound f (deviated n (shrunk gamma g 1) m (stationary p) i (at_every_step f)).

Definition discounted_gain (costs : list Q) (i : nat) : Q :=
  let f := lagrangian g multipliers i 0 in
  add (sub (discounted_best i f) (discounted_below f))
      (total_of (seq 0 (num_constraints g)) (fun j => mul (multipliers i j) (sub (threshold g j) (nth j costs 0%Q)))).

Definition check_discounted_with (eps : Q) : verdict :=
  require (Qle_bool 0 gamma && negb (Qle_bool 1 gamma)) Discount ;;
  check_process (dynamics (lasting g 1)) None (fun a => a) ;;
  below_each (num_agents g) (fun i => below_each (num_states g) (fun s =>
    require (is_distribution (seq 0 (nth i (num_actions g) 0)) (p i 0 s)) (PolicyRow i 0 s))) ;;
  below_each (num_agents g) (fun i => below_each (num_constraints g) (fun j =>
    require (Qle_bool 0 (multipliers i j) && (binds g i j || is_zero (multipliers i j))) (Multiplier (Some i) j))) ;;
  below_each (num_constraints g) (fun j =>
    let c := discounted_above (cost g j 0) in require (Qle_bool c (threshold g j)) (Threshold j c)) ;;
  let costs := map (fun j => discounted_below (cost g j 0)) (seq 0 (num_constraints g)) in
  below_each (num_agents g) (fun i => let x := discounted_gain costs i in require (Qle_bool x eps) (Gain i x)).

End Discounted.

Definition check_discounted (n : precision) (gamma : Q) (g : game) (steps : nat) (p : policy) (multipliers : nat -> nat -> Q)
    (eps : Q) : verdict :=
  check_discounted_with n gamma g steps p multipliers (dynamics (shrunk gamma g 1)) eps.
