(** The checker of joint games: a function on rationals.  Nothing here is trusted; Soundness.v proves it right. *)
From Coq Require Import QArith List Arith.
From Cmpg Require Import Semantics Arithmetic.
Import ListNotations.
Local Open Scope nat_scope.

(** * Verdicts *)

(** The check that failed; the agent is [None] where all agents share what failed. *)
Inductive failure :=
  | NoAgents
  | Discount
  | InitialRow (agent : option nat)
  | TransitionRow (agent : option nat) (step state : nat) (action : list nat)
  | Usage (agent step state action : nat)
  | PolicyRow (agent step state : nat)
  | Multiplier (agent : option nat) (constraint : nat)
  | Threshold (constraint : nat) (cost : Q)
  | Gain (agent : nat) (gain : Q)
  | Margin (margin : Q).

Inductive verdict :=
  | Accepted
  | Refused (reason : failure).

Definition require (condition : bool) (reason : failure) : verdict := if condition then Accepted else Refused reason.

(** The second check is only made if the first one succeeds. *)
Notation "first ;; second" := (match first with Accepted => second | Refused reason => Refused reason end)
  (at level 60, right associativity).

Fixpoint each {X} (l : list X) (check : X -> verdict) : verdict :=
  match l with
  | [] => Accepted
  | x :: rest => check x ;; each rest check
  end.

Definition below_each (n : nat) (check : nat -> verdict) : verdict := each (seq 0 n) check.

Definition is_distribution {X} (l : list X) (f : X -> Q) : bool :=
  forallb (fun x => Qle_bool 0 (f x)) l && Qeq_bool (total_of l f) 1.

Definition is_row (n : nat) (row : list (nat * Q)) : bool :=
  forallb (fun entry => fst entry <? n) row && is_distribution row snd.

(** * Backward induction *)

Section Process.
Context {A : Type}.
Variable n : precision.
Variable m : process A.

Definition check_process (agent : option nat) (name : A -> list nat) : verdict :=
  require (is_distribution (seq 0 (states m)) (initial m)) (InitialRow agent) ;;
  below_each (horizon m) (fun h => below_each (states m) (fun s => each (actions m) (fun a =>
    require (is_row (states m) (transition m h s a)) (TransitionRow agent h s (name a))))).

(** An upper bound on [now] plus the expectation of [next]. *)
Definition outcome (now : Q) (next : tree Q) (h s : nat) (a : A) : Q :=
  add (up n now) (total_of (transition m h s a) (fun entry => mul_up n (snd entry) (get next (fst entry)))).

(** [layer] computes the table of a step from that of the next one. *)
Fixpoint backward_table (layer : tree Q -> nat -> tree Q) (remaining h : nat) : tree Q :=
  match remaining with
  | 0 => Leaf 0%Q
  | S k => let next := backward_table layer k (S h) in layer next h
  end.

Definition bound (layer : tree Q -> nat -> tree Q) : Q :=
  let table := backward_table layer (horizon m) 0 in
  total_of (seq 0 (states m)) (fun s => mul_up n (initial m s) (get table s)).

Definition by_state (step : tree Q -> nat -> nat -> Q) (next : tree Q) (h : nat) : tree Q :=
  tabulate 0%Q (states m) (fun s => step next h s).

(** One step back, if the best of some actions is taken. *)
Definition best_of (l : list A) (f : nat -> nat -> A -> Q) (next : tree Q) (h s : nat) : Q :=
  largest l (fun a => outcome (f h s a) next h s a).

End Process.

(** * Joint games *)

(** The joint actions of positive probability, from the rows of the agents. *)
Fixpoint combinations (rows : list (list (nat * Q))) : list (list nat * Q) :=
  match rows with
  | [] => [([], 1%Q)]
  | row :: rest =>
      let tail := combinations rest in
      flat_map (fun entry => map (fun joint => (fst entry :: fst joint, mul (snd entry) (snd joint))) tail) row
  end.

Section Joint.
Variable n : precision.
Variable g : game.
Variable m : process (list nat).  (** the dynamics of [g] *)
Variable p : policy.
Variable multipliers : nat -> nat -> Q.  (** agent, constraint *)

Definition policy_row (i h s : nat) : list (nat * Q) :=
  filter (fun entry => negb (is_zero (snd entry))) (map (fun x => (x, p i h s x)) (seq 0 (nth i (num_actions g) 0))).

Definition policy_rows (h s : nat) : list (list (nat * Q)) :=
  map (fun i => policy_row i h s) (seq 0 (num_agents g)).

(** As [policy_rows], but agent [i] plays [x]. *)
Definition rows_with (i x h s : nat) : list (list (nat * Q)) :=
  map (fun k => if k =? i then [(x, 1%Q)] else policy_row k h s) (seq 0 (num_agents g)).

Definition mixture (rows : list (list (nat * Q))) (f : nat -> nat -> list nat -> Q) (next : tree Q) (h s : nat) : Q :=
  total_of (combinations rows) (fun joint => mul_up n (snd joint) (outcome n m (f h s (fst joint)) next h s (fst joint))).

(** One step back, if all agents follow the policy, and if agent [i] takes its best action. *)
Definition followed (f : nat -> nat -> list nat -> Q) (next : tree Q) (h s : nat) : Q :=
  mixture (policy_rows h s) f next h s.

Definition deviated (i : nat) (f : nat -> nat -> list nat -> Q) (next : tree Q) (h s : nat) : Q :=
  largest (seq 0 (nth i (num_actions g) 0)) (fun x => mixture (rows_with i x h s) f next h s).

(** Bounds on the value of [f] under the policy. *)
Definition value_above (f : nat -> nat -> list nat -> Q) : Q := bound n m (by_state m (followed f)).
Definition value_below (f : nat -> nat -> list nat -> Q) : Q := (- bound n m (by_state m (followed (fun h s a => - f h s a))))%Q.

Definition lagrangian (i : nat) (h s : nat) (a : list nat) : Q :=
  sub (reward g i h s a) (total_of (seq 0 (num_constraints g)) (fun j => mul (multipliers i j) (cost g j h s a))).

(** An upper bound on what agent [i] can gain; [costs] are lower bounds on the costs of the policy. *)
Definition gain (costs : list Q) (i : nat) : Q :=
  add (sub (bound n m (by_state m (deviated i (lagrangian i)))) (value_below (lagrangian i)))
      (total_of (seq 0 (num_constraints g)) (fun j => mul (multipliers i j) (sub (threshold g j) (nth j costs 0%Q)))).

Definition check_with (eps : Q) : verdict :=
  check_process m None (fun a => a) ;;
  below_each (num_agents g) (fun i => below_each (num_steps g) (fun h => below_each (num_states g) (fun s =>
    require (is_distribution (seq 0 (nth i (num_actions g) 0)) (p i h s)) (PolicyRow i h s)))) ;;
  below_each (num_agents g) (fun i => below_each (num_constraints g) (fun j =>
    require (Qle_bool 0 (multipliers i j) && (binds g i j || is_zero (multipliers i j))) (Multiplier (Some i) j))) ;;
  below_each (num_constraints g) (fun j =>
    let c := value_above (cost g j) in require (Qle_bool c (threshold g j)) (Threshold j c)) ;;
  let costs := map (fun j => value_below (cost g j)) (seq 0 (num_constraints g)) in
  below_each (num_agents g) (fun i => let x := gain costs i in require (Qle_bool x eps) (Gain i x)).

End Joint.

Definition check_nash (n : precision) (g : game) (p : policy) (multipliers : nat -> nat -> Q) (eps : Q) : verdict :=
  check_with n g (dynamics g) p multipliers eps.

(** A lower bound on how much the weighted costs exceed the weighted thresholds, whatever is done. *)
Definition margin (n : precision) (g : game) (m : process (list nat)) (multipliers : nat -> Q) : Q :=
  let weighted h s a := total_of (seq 0 (num_constraints g)) (fun j => - mul (multipliers j) (cost g j h s a))%Q in
  (- add (bound n m (by_state m (best_of n m (actions m) weighted)))
         (total_of (seq 0 (num_constraints g)) (fun j => mul (multipliers j) (threshold g j))))%Q.

Definition check_infeasible (n : precision) (g : game) (multipliers : nat -> Q) : verdict :=
  let m := dynamics g in
  check_process m None (fun a => a) ;;
  below_each (num_constraints g) (fun j => require (Qle_bool 0 (multipliers j)) (Multiplier None j)) ;;
  let x := margin n g m multipliers in
  require (negb (Qle_bool x 0)) (Margin x).
