(** The counter-example of the paper, proved inside Coq: no extraction, no parser.

    One state, one step, two agents with two actions.  The common reward is 3 if both play their first action, 4 if both
    play their second, and 2 otherwise; both playing the second costs 1, and the threshold is 1/2. *)
From Coq Require Import QArith Qcanon List.
From Cmpg Require Import Semantics Checker Soundness Rationals.
Import ListNotations.
Local Open Scope nat_scope.

Definition counter_example : game := {|
  num_actions := [2; 2]; num_states := 1; num_steps := 1; num_constraints := 1;
  start := fun _ => 1%Q;
  next := fun _ _ _ => [(0, 1%Q)];
  reward := fun _ _ _ a => match a with [0; 0] => 3%Q | [1; 1] => 4%Q | _ => 2%Q end;
  cost := fun _ _ _ a => match a with [1; 1] => 1%Q | _ => 0%Q end;
  threshold := fun _ => (1 # 2)%Q;
  binds := fun _ _ => true |}.

Definition both_play (action : nat) : policy := fun _ _ _ x => if Nat.eqb x action then 1%Q else 0%Q.

Theorem first_actions_are_nash : forall K, nash K counter_example (both_play 0) 0.
Proof. intros K. apply (check_nash_sound None) with (multipliers := fun _ _ => 0%Q). vm_compute. reflexivity. Qed.

(** The definition of a value, evaluated as it stands: the sum over all trajectories. *)
Example first_actions_give_three :
  reward_value (K := rationals) counter_example 0 (together (follow (both_play 0))) = Q2Qc 3.
Proof. apply Qc_is_canon. vm_compute. reflexivity. Qed.

(** Both playing the second action costs 1, and is refused for that. *)
Example second_actions_are_refused :
  check_nash None counter_example (both_play 1) (fun _ _ => 0%Q) 100 = Refused (Threshold 0 1).
Proof. vm_compute. reflexivity. Qed.

(** With a threshold below zero nothing is feasible. *)
Example no_policy_costs_less_than_nothing : forall K,
  infeasible K {|
    num_actions := [2; 2]; num_states := 1; num_steps := 1; num_constraints := 1;
    start := start counter_example; next := next counter_example; reward := reward counter_example;
    cost := cost counter_example; threshold := fun _ => (- (1 # 2))%Q; binds := fun _ _ => true |}.
Proof. intros K. apply (check_infeasible_sound None) with (multipliers := fun _ => 1%Q). vm_compute. reflexivity. Qed.
