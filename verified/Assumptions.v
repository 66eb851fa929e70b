(** What the theorems rest on; the Makefile compares it with assumptions.txt.  "Closed under the global context" means
    no axioms at all.  At the reals, only the axioms of Coq's own reals remain. *)
From Cmpg Require Import Semantics Checker Soundness LocalSoundness LocalIsJoint CountingSoundness DiscountedSoundness Rationals Reals CounterExample.

Definition nash_over_rationals := @check_nash_sound rationals.
Definition nash_over_reals := @check_nash_sound reals.
Definition infeasible_over_reals := @check_infeasible_sound reals.
Definition counting_nash_over_rationals := @check_counting_sound rationals.
Definition counting_nash_over_reals := @check_counting_sound reals.
Definition discounted_nash_over_rationals := @check_discounted_sound rationals.
Definition discounted_nash_over_reals := @check_discounted_sound reals.
Definition local_nash_over_rationals := @check_local_sound rationals.
Definition local_nash_over_reals := @check_local_sound reals.

Print Assumptions check_nash_sound.
Print Assumptions check_infeasible_sound.
Print Assumptions check_local_sound.
Print Assumptions check_counting_sound.
Print Assumptions check_discounted_sound.
Print Assumptions payoffs_are_joint.
Print Assumptions charges_are_joint.
Print Assumptions local_nash_is_joint.
Print Assumptions first_actions_are_nash.
Print Assumptions nash_over_rationals.
Print Assumptions local_nash_over_rationals.
Print Assumptions counting_nash_over_rationals.
Print Assumptions discounted_nash_over_rationals.
Print Assumptions nash_over_reals.
Print Assumptions infeasible_over_reals.
Print Assumptions local_nash_over_reals.
Print Assumptions counting_nash_over_reals.
Print Assumptions discounted_nash_over_reals.
