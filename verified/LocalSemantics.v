(** What a proof file claims, for local games: definitions only, no algorithm and no proof.

    Agents have states of their own, move independently, and meet only at shared resources.  To believe what
    [cmpg-verify] says about a local game, read this file and the first half of Semantics.v. *)
From Coq Require Import QArith List Arith.
From Cmpg Require Import Semantics.
Import ListNotations.
Local Open Scope nat_scope.

Record local_agent := LocalAgent {
  own_states : nat;
  own_actions : nat;
  own_start : nat -> Q;  (** own state *)
  own_next : nat -> nat -> nat -> list (nat * Q);  (** step, own state, own action *)
  private_reward : nat -> nat -> nat -> Q;  (** step, own state, own action *)
  private_cost : nat -> nat -> nat -> nat -> Q;  (** constraint, step, own state, own action *)
  uses : nat -> nat -> nat -> list nat }.  (** step, own state, own action: resources *)

Record local_game := LocalGame {
  agents : list local_agent;
  local_steps : nat;
  num_resources : nat;
  local_constraints : nat;
  delay : nat -> nat -> nat -> Q;  (** step, resource, load: what each user of the resource pays *)
  load_cost : nat -> nat -> nat -> nat -> Q;  (** constraint, step, resource, load: charged once *)
  local_threshold : nat -> Q;  (** constraint *)
  local_binds : nat -> nat -> bool }.  (** agent, constraint *)

Definition no_agent : local_agent := LocalAgent 0 0 (fun _ => 0%Q) (fun _ _ _ => []) (fun _ _ _ => 0%Q)
  (fun _ _ _ _ => 0%Q) (fun _ _ _ => []).

(** The policy of a claim: agent, step, own state, own action. *)
Definition local_policy := nat -> nat -> nat -> nat -> Q.

Section Local.
Context {K : numbers}.
Variable L : local_game.

Definition agent (i : nat) : local_agent := nth i (agents L) no_agent.

(** Each agent is a decision process of its own. *)
Definition own (x : local_agent) : process nat :=
  {| states := own_states x; horizon := local_steps L; actions := seq 0 (own_actions x); initial := own_start x;
     transition := own_next x |}.

(** A play: one trajectory of each agent.  Its probability is the product of theirs; [who] has the behaviour of each
    agent, a function of its own past.  The lists are those of the agents from number [i] on. *)
Fixpoint plays (l : list local_agent) : list (list (list (nat * nat))) :=
  match l with
  | [] => [[]]
  | x :: rest => flat_map (fun t => map (cons t) (plays rest)) (trajectories (own x) (local_steps L))
  end.

Fixpoint play_probability (who : nat -> behaviour K nat) (i : nat) (l : list local_agent) (ts : list (list (nat * nat))) : K :=
  match l, ts with
  | x :: l', t :: ts' => (probability (own x) (who i) [] t * play_probability who (S i) l' ts')%num
  | _, _ => one
  end.

(** Whether an agent uses resource [e] at step [h] of its trajectory, and how many agents do. *)
Definition is_user (h e : nat) (x : local_agent) (t : list (nat * nat)) : bool :=
  match nth_error t h with
  | Some (s, a) => existsb (Nat.eqb e) (uses x h s a)
  | None => false
  end.

Fixpoint load (h e : nat) (l : list local_agent) (ts : list (list (nat * nat))) : nat :=
  match l, ts with
  | x :: l', t :: ts' => (if is_user h e x t then 1 else 0) + load h e l' ts'
  | _, _ => 0
  end.

Definition over_resources (f : nat -> nat -> K) : K :=
  sum (seq 0 (local_steps L)) (fun h => sum (seq 0 (num_resources L)) (fun e => f h e)).

(** What agent [i] gets in a play: its private rewards, less the delay of each resource that it uses. *)
Definition payoff (i : nat) (ts : list (list (nat * nat))) : K :=
  (total (fun h s a => of_Q (private_reward (agent i) h s a)) 0 (nth i ts [])
   - over_resources (fun h e =>
       if is_user h e (agent i) (nth i ts []) then of_Q (delay L h e (load h e (agents L) ts)) else zero))%num.

(** What constraint [j] is charged in a play: the private costs of all agents, and the load cost of each resource. *)
Definition charge (j : nat) (ts : list (list (nat * nat))) : K :=
  (sum (seq 0 (length (agents L))) (fun k => total (fun h s a => of_Q (private_cost (agent k) j h s a)) 0 (nth k ts []))
   + over_resources (fun h e => of_Q (load_cost L j h e (load h e (agents L) ts))))%num.

Definition expectation (f : list (list (nat * nat)) -> K) (who : nat -> behaviour K nat) : K :=
  sum (plays (agents L)) (fun ts => (play_probability who 0 (agents L) ts * f ts)%num).

Definition local_follow (p : local_policy) : nat -> behaviour K nat := fun i before s a => of_Q (p i (length before) s a).

Definition local_deviate (i : nat) (d : behaviour K nat) (who : nat -> behaviour K nat) : nat -> behaviour K nat :=
  fun k => if k =? i then d else who k.

Definition local_meets (j : nat) (who : nat -> behaviour K nat) : Prop :=
  (expectation (charge j) who <= of_Q (local_threshold L j))%num.

(** The claim: the policy meets every threshold, and no agent gains more than [eps] by any deviation, a randomised
    function of its own past, after which the constraints that bind this agent still hold. *)
Definition local_nash (p : local_policy) (eps : Q) : Prop :=
  (forall i, i < length (agents L) ->
     is_process K (own (agent i)) /\ is_behaviour (own (agent i)) (local_follow p i)) /\
  (forall j, j < local_constraints L -> local_meets j (local_follow p)) /\
  forall i d, i < length (agents L) -> is_behaviour (own (agent i)) d ->
    (forall j, j < local_constraints L -> local_binds L i j = true -> local_meets j (local_deviate i d (local_follow p))) ->
    (expectation (payoff i) (local_deviate i d (local_follow p)) <= expectation (payoff i) (local_follow p) + of_Q eps)%num.

End Local.

Arguments local_nash : clear implicits.
