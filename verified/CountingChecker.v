(** The checker of counting games: the A^n joint actions are never visited, but the vectors of counts that have positive
    probability.  Nothing here is trusted; CountingSoundness.v proves it right. *)
From Coq Require Import QArith List Arith.
From Cmpg Require Import Semantics Arithmetic Checker CountingSemantics.
Import ListNotations.
Local Open Scope nat_scope.

(** A distribution of vectors of counts. *)
Fixpoint insert (v : list nat) (q : Q) (l : list (list nat * Q)) : list (list nat * Q) :=
  match l with
  | [] => [(v, q)]
  | (w, r) :: rest => if equal_vectors v w then (w, add q r) :: rest else (w, r) :: insert v q rest
  end.

(** One more agent, who plays by [row]. *)
Definition add_agent (row : list (nat * Q)) (l : list (list nat * Q)) : list (list nat * Q) :=
  match row with
  | [(x, q)] => map (fun entry => (add_one x (fst entry), mul q (snd entry))) l
  | _ => fold_right (fun entry merged => insert (fst entry) (snd entry) merged) []
           (flat_map (fun choice => map (fun entry => (add_one (fst choice) (fst entry), mul (snd choice) (snd entry))) l) row)
  end.

Section Counting.
Variable n : precision.
Variable C : counting_game.
Variable p : policy.
Variable multipliers : nat -> nat -> Q.  (** agent, constraint *)

(** The process by classes, for backward induction. *)
Definition by_class : process nat :=
  {| states := shared_states C; horizon := shared_steps C; actions := seq 0 (num_classes (grouping C));
     initial := shared_start C; transition := class_next C |}.

Definition row_of (k h s : nat) : list (nat * Q) :=
  filter (fun entry => negb (is_zero (snd entry))) (map (fun x => (x, p k h s x)) (seq 0 (choices C))).

(** The counts of agents k, ..., k + m - 1, all but agent [i]. *)
Fixpoint others_from (i h s k m : nat) : list (list nat * Q) :=
  match m with
  | 0 => [(repeat 0 (choices C), 1%Q)]
  | S m' => if k =? i then others_from i h s (S k) m' else add_agent (row_of k h s) (others_from i h s (S k) m')
  end.

(** What agent [i] gets by playing [x], if [f] are the rewards by own action and counts. *)
Definition by_action (f : nat -> nat -> nat -> list nat -> Q) (law : list (list nat * Q)) (next : tree Q) (h s x : nat) : Q :=
  total_of law (fun entry =>
    let v := add_one x (fst entry) in
    mul_up n (snd entry) (outcome n by_class (f h s x v) next h s (class (grouping C) v))).

Definition followed_by (i : nat) (f : nat -> nat -> nat -> list nat -> Q) (next : tree Q) (h s : nat) : Q :=
  let law := others_from i h s 0 (crowd C) in
  total_of (row_of i h s) (fun choice => mul_up n (snd choice) (by_action f law next h s (fst choice))).

Definition deviated_by (i : nat) (f : nat -> nat -> nat -> list nat -> Q) (next : tree Q) (h s : nat) : Q :=
  let law := others_from i h s 0 (crowd C) in
  largest (seq 0 (choices C)) (fun x => by_action f law next h s x).

Definition crowd_above (i : nat) (f : nat -> nat -> nat -> list nat -> Q) : Q := bound n by_class (by_state by_class (followed_by i f)).
Definition crowd_below (i : nat) (f : nat -> nat -> nat -> list nat -> Q) : Q :=
  (- bound n by_class (by_state by_class (followed_by i (fun h s x v => - f h s x v))))%Q.

Definition cost_of_counts (j h s : nat) (_ : nat) (v : list nat) : Q := class_cost C j h s (class (grouping C) v).

Definition lagrangian_of_counts (i h s x : nat) (v : list nat) : Q :=
  sub (reward_of_counts C i h s x v)
      (total_of (seq 0 (shared_constraints C)) (fun j => mul (multipliers i j) (cost_of_counts j h s x v))).

Definition crowd_gain (costs : list Q) (i : nat) : Q :=
  add (sub (bound n by_class (by_state by_class (deviated_by i (lagrangian_of_counts i)))) (crowd_below i (lagrangian_of_counts i)))
      (total_of (seq 0 (shared_constraints C)) (fun j => mul (multipliers i j) (sub (shared_threshold C j) (nth j costs 0%Q)))).

Definition check_counting (eps : Q) : verdict :=
  require (0 <? crowd C) NoAgents ;;
  check_process by_class None (fun c => [c]) ;;
  below_each (crowd C) (fun i => below_each (shared_steps C) (fun h => below_each (shared_states C) (fun s =>
    require (is_distribution (seq 0 (choices C)) (p i h s)) (PolicyRow i h s)))) ;;
  below_each (crowd C) (fun i => below_each (shared_constraints C) (fun j =>
    require (Qle_bool 0 (multipliers i j) && (shared_binds C i j || is_zero (multipliers i j))) (Multiplier (Some i) j))) ;;
  below_each (shared_constraints C) (fun j =>
    let c := crowd_above 0 (cost_of_counts j) in require (Qle_bool c (shared_threshold C j)) (Threshold j c)) ;;
  let costs := map (fun j => crowd_below 0 (cost_of_counts j)) (seq 0 (shared_constraints C)) in
  below_each (crowd C) (fun i => let x := crowd_gain costs i in require (Qle_bool x eps) (Gain i x)).

End Counting.
