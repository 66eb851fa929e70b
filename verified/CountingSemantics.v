(** What a proof file claims, for counting games: the joint game that a counting game stands for.  The claim is [nash] of
    Semantics.v about that joint game.  Definitions only. *)
From Coq Require Import QArith List Arith.
From Cmpg Require Import Semantics.
Import ListNotations.
Local Open Scope nat_scope.

(** How many agents play each of [size] actions. *)
Fixpoint add_one (x : nat) (v : list nat) : list nat :=
  match v, x with
  | [], _ => []
  | m :: rest, 0 => S m :: rest
  | m :: rest, S y => m :: add_one y rest
  end.

Fixpoint counts (size : nat) (a : list nat) : list nat :=
  match a with
  | [] => repeat 0 size
  | x :: rest => add_one x (counts size rest)
  end.

(** All vectors of [size] counts with a total, in lexicographic order. *)
Fixpoint count_vectors (total size : nat) : list (list nat) :=
  match size with
  | 0 => match total with 0 => [[]] | _ => [] end
  | S k => flat_map (fun m => map (cons m) (count_vectors (total - m) k)) (seq 0 (S total))
  end.

Fixpoint equal_vectors (v w : list nat) : bool :=
  match v, w with
  | [], [] => true
  | m :: v', k :: w' => (m =? k) && equal_vectors v' w'
  | _, _ => false
  end.

(** How many vectors come before [v]; all of them if it is not there. *)
Fixpoint position (v : list nat) (l : list (list nat)) : nat :=
  match l with
  | [] => 0
  | w :: rest => if equal_vectors v w then 0 else S (position v rest)
  end.

(** Transitions and costs see a joint action through a class of its counts. *)
Inductive classes :=
  | Largest (boundaries : list nat)  (** how many boundaries are below the largest count *)
  | Every (vectors_but_last : list (list nat)).  (** its position among all vectors of counts *)

Definition class (c : classes) (v : list nat) : nat :=
  match c with
  | Largest boundaries => length (filter (fun b => b <? fold_right Nat.max 0 v) boundaries)
  | Every vectors => position v vectors
  end.

Definition num_classes (c : classes) : nat :=
  match c with
  | Largest boundaries => S (length boundaries)
  | Every vectors => S (length vectors)
  end.

(** Of all vectors only the last one is not among the others. *)
Definition every (agents size : nat) : classes := Every (removelast (count_vectors agents size)).

Record counting_game := CountingGame {
  crowd : nat;  (** the number of agents *)
  choices : nat;  (** the number of actions, the same for all *)
  shared_states : nat;
  shared_steps : nat;
  shared_constraints : nat;
  grouping : classes;
  shared_start : nat -> Q;  (** state *)
  class_next : nat -> nat -> nat -> list (nat * Q);  (** step, state, class *)
  class_cost : nat -> nat -> nat -> nat -> Q;  (** constraint, step, state, class *)
  count_reward : nat -> nat -> nat -> nat -> Q;  (** step, state, own action, how many play it *)
  own_reward : nat -> nat -> nat -> nat -> Q;  (** agent, step, state, own action *)
  class_reward : nat -> nat -> nat -> nat -> Q;  (** step, state, own action, class *)
  shared_threshold : nat -> Q;  (** constraint *)
  shared_binds : nat -> nat -> bool }.  (** agent, constraint *)

Section Joint.
Variable C : counting_game.

(** What an agent gets that plays [x] when [v] are the counts. *)
Definition reward_of_counts (i h s x : nat) (v : list nat) : Q :=
  (count_reward C h s x (nth x v 0%nat) + own_reward C i h s x + class_reward C h s x (class (grouping C) v))%Q.

Definition joint_form : game := {|
  num_actions := repeat (choices C) (crowd C);
  num_states := shared_states C;
  num_steps := shared_steps C;
  num_constraints := shared_constraints C;
  start := shared_start C;
  next := fun h s a => class_next C h s (class (grouping C) (counts (choices C) a));
  reward := fun i h s a => reward_of_counts i h s (nth i a 0) (counts (choices C) a);
  cost := fun j h s a => class_cost C j h s (class (grouping C) (counts (choices C) a));
  threshold := shared_threshold C;
  binds := shared_binds C |}.

End Joint.
