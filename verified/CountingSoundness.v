(** What the checker of counting games accepts is true: joint actions with the same counts are taken together. *)
From Coq Require Import QArith List Arith Lia Ring Bool.
From Cmpg Require Import Semantics Arithmetic Sums Processes Checker Soundness CountingSemantics CountingChecker.
Import ListNotations.
Local Open Scope nat_scope.

Lemma equal_vectors_true v : forall w, equal_vectors v w = true -> v = w.
Proof.
  induction v as [|m v IH]; intros [|k w] E; try discriminate; [reflexivity|]. cbn in E. apply andb_true_iff in E.
  destruct E as [E1 E2]. apply Nat.eqb_eq in E1. subst k. f_equal. apply IH, E2.
Qed.

Lemma add_one_comm v : forall x y, add_one x (add_one y v) = add_one y (add_one x v).
Proof. induction v as [|m v IH]; intros [|x] [|y]; cbn; try reflexivity. f_equal. apply IH. Qed.

Lemma filter_length {X} (f : X -> bool) l : length (filter f l) <= length l.
Proof. induction l as [|x l IH]; cbn; [lia|]. destruct (f x); cbn; lia. Qed.

Lemma position_le v l : position v l <= length l.
Proof. induction l as [|w l IH]; cbn; [lia|]. destruct (equal_vectors v w); lia. Qed.

Lemma class_lt c v : class c v < num_classes c.
Proof.
  destruct c as [boundaries|vectors]; cbn [class num_classes].
  - pose proof (filter_length (fun b => b <? fold_right Nat.max 0 v) boundaries). lia.
  - pose proof (position_le v vectors). lia.
Qed.

Section Soundness.
Context {K : numbers}.
Add Ring number_ring : (ring_laws K).
Local Notation inj := (@of_Q K).

(** The expectation of [G] under a distribution of vectors. *)
Definition over (l : list (list nat * Q)) (G : list nat -> K) : K := sum l (fun e => inj (snd e) * G (fst e))%num.

Lemma over_insert v q l G : over (insert v q l) G = (inj q * G v + over l G)%num.
Proof.
  induction l as [|[w r] l IH]; [reflexivity|]. cbn [insert]. destruct (equal_vectors v w) eqn:E.
  - apply equal_vectors_true in E. subst w. unfold over. cbn [sum fst snd]. rewrite inj_add. ring.
  - unfold over in *. cbn [sum fst snd]. rewrite IH. ring.
Qed.

Lemma over_merge l G : over (fold_right (fun e merged => insert (fst e) (snd e) merged) [] l) G = over l G.
Proof. induction l as [|e l IH]; [reflexivity|]. cbn [fold_right]. rewrite over_insert, IH. reflexivity. Qed.

Lemma over_shift x q l G :
  over (map (fun e => (add_one x (fst e), mul q (snd e))) l) G = (inj q * over l (fun v => G (add_one x v)))%num.
Proof.
  unfold over. rewrite sum_map, <- sum_scale. apply sum_ext. intros e _. cbn [fst snd]. rewrite inj_mul. ring.
Qed.

Lemma over_add_agent row l G :
  over (add_agent row l) G = sum row (fun c => inj (snd c) * over l (fun v => G (add_one (fst c) v)))%num.
Proof.
  assert (M : over (fold_right (fun e merged => insert (fst e) (snd e) merged) []
    (flat_map (fun c => map (fun e => (add_one (fst c) (fst e), mul (snd c) (snd e))) l) row)) G
    = sum row (fun c => inj (snd c) * over l (fun v => G (add_one (fst c) v)))%num).
  { rewrite over_merge. unfold over at 1. rewrite sum_flat. apply sum_ext. intros c _. apply over_shift. }
  destruct row as [|[x q] [|c r]]; [exact M | | exact M]. cbn [add_agent sum fst snd]. rewrite over_shift. ring.
Qed.

Definition nonneg (l : list (list nat * Q)) : Prop := forall e, In e l -> (zero <= inj (snd e))%num.

Lemma nonneg_insert v q l : (zero <= inj q)%num -> nonneg l -> nonneg (insert v q l).
Proof.
  intros Hq. induction l as [|[w r] l IH]; intros H e He; [destruct He as [<-|[]]; exact Hq|]. cbn [insert] in He.
  destruct (equal_vectors v w); destruct He as [<-|He].
  - cbn [snd]. rewrite inj_add. replace (@zero K) with (@zero K + zero)%num by ring. apply plus_mono; [exact Hq | apply (H (w, r)); left; reflexivity].
  - apply H. right. exact He.
  - apply H. left. reflexivity.
  - apply IH; [|exact He]. intros e' He'. apply H. right. exact He'.
Qed.

Lemma nonneg_add_agent row l : (forall c, In c row -> (zero <= inj (snd c))%num) -> nonneg l -> nonneg (add_agent row l).
Proof.
  intros Hr Hl.
  assert (F : nonneg (flat_map (fun c => map (fun e => (add_one (fst c) (fst e), mul (snd c) (snd e))) l) row)).
  { intros e He. apply in_flat_map in He. destruct He as (c & Hc & He). apply in_map_iff in He. destruct He as (e' & <- & He').
    cbn [snd]. rewrite inj_mul. apply le_times; [apply Hr, Hc | apply Hl, He']. }
  assert (M : nonneg (fold_right (fun e merged => insert (fst e) (snd e) merged) []
    (flat_map (fun c => map (fun e => (add_one (fst c) (fst e), mul (snd c) (snd e))) l) row))).
  { induction (flat_map _ row) as [|e r IH]; [intros e []|]. cbn [fold_right]. apply nonneg_insert; [apply F; left; reflexivity|].
    apply IH. intros e' He'. apply F. right. exact He'. }
  destruct row as [|[x q] [|c r]]; [exact M | | exact M]. cbn [add_agent]. intros e He. apply in_map_iff in He.
  destruct He as (e' & <- & He'). cbn [snd]. rewrite inj_mul. apply le_times; [apply (Hr (x, q)); left; reflexivity | apply Hl, He'].
Qed.

Section Game.
Variable n : precision.
Variable C : counting_game.
Variable p : policy.
Local Notation J := (dynamics (joint_form C)).
Local Notation A := (choices C).
Local Notation N := (crowd C).

(** * Joint actions with the same counts *)

Section Lump.
Variables i h s : nat.
Variable w : nat -> nat -> K.
Local Notation row k := (row_of C p k h s).

Lemma lump_all m : forall k (G : list nat -> K), i < k ->
  (forall j, k <= j < k + m -> represents (row j) A (w j)) ->
  sum (tuples (repeat A m)) (fun a => product w k a * G (counts A a))%num = over (others_from C p i h s k m) G.
Proof.
  induction m as [|m IH]; intros k G Hk R.
  - unfold over. cbn. rewrite of_Q_one. ring.
  - cbn [repeat others_from]. rewrite sum_tuples. destruct (Nat.eqb_spec k i) as [E|_]; [lia|]. rewrite over_add_agent.
    destruct (R k) as [_ Rk]; [lia|].
    rewrite (Rk (fun x => over (others_from C p i h s (S k) m) (fun v => G (add_one x v)))). apply sum_ext. intros x _.
    rewrite <- (IH (S k) (fun v => G (add_one x v)) ltac:(lia)) by (intros j Hj; apply R; lia).
    rewrite <- sum_scale. apply sum_ext. intros b _. cbn [product counts]. ring.
Qed.

Lemma lump_one m : forall k (G : nat -> list nat -> K), k <= i < k + m ->
  (forall j, k <= j < k + m -> j <> i -> represents (row j) A (w j)) ->
  sum (tuples (repeat A m)) (fun a => product w k a * G (nth (i - k) a 0) (counts A a))%num
  = sum (seq 0 A) (fun x => w i x * over (others_from C p i h s k m) (fun v => G x (add_one x v)))%num.
Proof.
  induction m as [|m IH]; intros k G Hk R; [lia|]. cbn [repeat others_from]. rewrite sum_tuples.
  destruct (Nat.eqb_spec k i) as [->|E].
  - apply sum_ext. intros x _.
    rewrite <- (lump_all m (S i) (fun v => G x (add_one x v)) ltac:(lia)) by (intros j Hj; apply R; lia).
    rewrite <- sum_scale. apply sum_ext. intros b _. cbn [product counts]. rewrite Nat.sub_diag. cbn [nth]. ring.
  - transitivity (sum (seq 0 A) (fun x => w k x * sum (seq 0 A) (fun y => w i y *
      over (others_from C p i h s (S k) m) (fun v => G y (add_one x (add_one y v))))))%num.
    + apply sum_ext. intros x _.
      rewrite <- (IH (S k) (fun y v => G y (add_one x v)) ltac:(lia)) by (intros j Hj; apply R; lia).
      rewrite <- sum_scale. apply sum_ext. intros b _. cbn [product counts]. replace (i - k) with (S (i - S k)) by lia. cbn [nth]. ring.
    + rewrite (sum_ext (seq 0 A) (fun x => w i x * over (add_agent _ _) _)%num (fun y => sum (seq 0 A) (fun x => w k x * (w i y *
        over (others_from C p i h s (S k) m) (fun v => G y (add_one x (add_one y v))))))%num).
      * rewrite sum_swap. apply sum_ext. intros x _. symmetry. apply sum_scale.
      * intros y _. rewrite over_add_agent. destruct (R k) as [_ Rk]; [lia | exact E|].
        rewrite (Rk (fun x => over (others_from C p i h s (S k) m) (fun v => G y (add_one y (add_one x v))))).
        rewrite <- sum_scale. apply sum_ext. intros x _.
        replace (over (others_from C p i h s (S k) m) (fun v => G y (add_one y (add_one x v))))
          with (over (others_from C p i h s (S k) m) (fun v => G y (add_one x (add_one y v)))); [ring|].
        apply sum_ext. intros e _. rewrite add_one_comm. reflexivity.
Qed.

End Lump.

(** * Backward induction *)

Hypothesis good : is_process K (by_class C).
Hypothesis plays : forall i, i < N -> is_strategy (joint_form C) i (follow (K := K) p i).

Lemma joint_good : is_process K J.
Proof.
  destruct good as (A1 & A2 & A3). split; [exact A1|]. split; [exact A2|]. intros h s a Hh Hs _.
  apply (A3 h s (class (grouping C) (counts A a)) Hh Hs). apply in_seq. pose proof (class_lt (grouping C) (counts A a)).
  cbn [by_class actions]. lia.
Qed.

Lemma agents_are : num_agents (joint_form C) = N.
Proof. unfold num_agents. cbn. apply repeat_length. Qed.

Lemma actions_are i : i < N -> nth i (num_actions (joint_form C)) 0 = A.
Proof.
  intros Hi. cbn. generalize dependent i. generalize (crowd C). induction n0 as [|m IH]; intros i Hi; [lia|].
  destruct i; cbn; [reflexivity | apply IH; lia].
Qed.

Lemma row_represents k h s before : k < N -> is_past J before -> length before = h -> s < shared_states C ->
  represents (row_of C p k h s) A (fun x => inj (p k h s x)).
Proof.
  intros Hk Hp Hl Hs. destruct (plays k Hk before s Hp Hs) as [Hpos _]. rewrite actions_are in Hpos by exact Hk.
  unfold follow in Hpos. rewrite Hl in Hpos. unfold row_of. split.
  - intros e He. apply filter_In in He. destruct He as [He _]. apply in_map_iff in He. destruct He as (x & <- & Hx).
    apply in_seq in Hx. apply Hpos. lia.
  - intros u. induction (seq 0 A) as [|x r IH]; [reflexivity|]. cbn [map filter sum snd].
    destruct (is_zero (p k h s x)) eqn:Z; cbn [negb].
    + rewrite IH, (inj_is_zero _ Z). ring.
    + cbn [sum fst snd]. rewrite IH. reflexivity.
Qed.

Lemma row_nonneg k h s before : is_past J before -> length before = h -> s < shared_states C -> k < N ->
  forall c, In c (row_of C p k h s) -> (zero <= inj (snd c))%num.
Proof. intros Hp Hl Hs Hk. apply (row_represents k h s before Hk Hp Hl Hs). Qed.

Lemma others_nonneg i h s : forall m k, (forall j, k <= j < k + m -> j <> i -> forall c, In c (row_of C p j h s) -> (zero <= inj (snd c))%num) ->
  nonneg (others_from C p i h s k m).
Proof.
  induction m as [|m IH]; intros k H; cbn [others_from].
  - intros e [<-|[]]. cbn. rewrite of_Q_one. apply one_nonneg.
  - destruct (Nat.eqb_spec k i) as [_|E]; [apply IH; intros j Hj; apply H; lia|].
    apply nonneg_add_agent; [apply H; [lia | exact E] | apply IH; intros j Hj; apply H; lia].
Qed.

(** One step back: agent [i] does [d], all others follow the policy. *)
Lemma step_le i d f next before s : i < N -> is_past J before -> s < shared_states C ->
  (forall x, x < A -> (zero <= d x)%num) ->
  (sum (actions J) (fun a => product (fun k => if k =? i then d else fun x => inj (p k (length before) s x)) 0 a *
     (inj (f (length before) s (nth i a 0) (counts A a)) + ahead J (length before) s a (fun t => inj (get next t))))
   <= sum (seq 0 A) (fun x => d x * inj (by_action n C f (others_from C p i (length before) s 0 N) next (length before) s x)))%num.
Proof.
  intros Hi Hp Hs Hd. set (h := length before).
  set (w := fun k => if k =? i then d else fun x => inj (p k h s x)).
  set (G := fun x v => (inj (f h s x v) + ahead (by_class C) h s (class (grouping C) v) (fun t => inj (get next t)))%num).
  change (actions J) with (tuples (repeat A N)).
  pose proof (lump_one i h s w N 0 G ltac:(lia)) as LO. rewrite Nat.sub_0_r in LO.
  eapply le_trans; [apply le_eq, LO|].
  - intros j Hj E. unfold w. destruct (Nat.eqb_spec j i); [contradiction|].
    apply (row_represents j h s before); [lia | exact Hp | reflexivity | exact Hs].
  - apply sum_le. intros x Hx. apply in_seq in Hx. unfold w at 1. rewrite Nat.eqb_refl. apply times_mono; [apply Hd; lia|].
    unfold by_action, over. rewrite inj_total. apply sum_le. intros e He. eapply le_trans; [|apply inj_mul_up].
    apply times_mono.
    + apply (others_nonneg i h s N 0); [|exact He]. intros j Hj _. apply (row_nonneg j h s before); [exact Hp | reflexivity | exact Hs | lia].
    + apply (outcome_le n (by_class C)); [apply le_refl | apply Hp | exact Hs|].
      apply in_seq. pose proof (class_lt (grouping C) (add_one x (fst e))). cbn [by_class actions]. lia.
Qed.

Lemma crowd_above_le i f : i < N ->
  (value J (fun h s a => inj (f h s (nth i a 0%nat) (counts A a))) (together (follow p)) <= inj (crowd_above n C p i f))%num.
Proof.
  intros Hi. unfold crowd_above.
  change (bound n (by_class C) (by_state (by_class C) (followed_by n C p i f))) with (bound n J (by_state J (followed_by n C p i f))).
  apply bound_le; [exact joint_good | apply together_sound; rewrite agents_are; exact plays|].
  intros before s next Hp Hs. unfold by_state. rewrite get_tabulate by exact Hs. set (h := length before).
  destruct (plays i Hi before s Hp Hs) as [Hpos _]. rewrite actions_are in Hpos by exact Hi.
  eapply le_trans; [|eapply le_trans; [apply (step_le i (fun x => inj (p i h s x)) f next before s Hi Hp Hs Hpos)|]].
  - apply sum_le. intros a _. apply le_eq. f_equal. apply product_ext. intros k x _. unfold follow. fold h.
    destruct (Nat.eqb_spec k i) as [->|_]; reflexivity.
  - unfold followed_by. fold h. rewrite inj_total.
    rewrite <- (proj2 (row_represents i h s before Hi Hp eq_refl Hs)
      (fun x => inj (by_action n C f (others_from C p i h s 0 N) next h s x))).
    apply sum_le. intros c _. apply inj_mul_up.
Qed.

Lemma crowd_below_le i f : i < N ->
  (inj (crowd_below n C p i f) <= value J (fun h s a => inj (f h s (nth i a 0%nat) (counts A a))) (together (follow p)))%num.
Proof.
  intros Hi. unfold crowd_below. rewrite inj_opp.
  pose proof (crowd_above_le i (fun h s x v => - f h s x v)%Q Hi) as V. unfold crowd_above in V. set (y := inj (bound _ _ _)) in *.
  set (x := value J _ _).
  assert (E : value J (fun h s a => inj (- f h s (nth i a 0%nat) (counts A a))%Q) (together (follow p)) = (opposite one * x)%num).
  { unfold x. rewrite <- value_scale. apply value_ext. intros. rewrite inj_opp. ring. }
  rewrite E in V. apply (le_plus K _ _ (x - y)%num) in V.
  replace (opposite one * x + (x - y))%num with (zero - y)%num in V by ring.
  replace (y + (x - y))%num with x in V by ring. exact V.
Qed.

Lemma deviated_by_le i d f : i < N -> is_strategy (joint_form C) i d ->
  (value J (fun h s a => inj (f h s (nth i a 0%nat) (counts A a))) (together (deviate i d (follow p)))
   <= inj (bound n (by_class C) (by_state (by_class C) (deviated_by n C p i f))))%num.
Proof.
  intros Hi Hd.
  change (bound n (by_class C) (by_state (by_class C) (deviated_by n C p i f))) with (bound n J (by_state J (deviated_by n C p i f))).
  assert (Hall : forall k, k < num_agents (joint_form C) -> is_strategy (joint_form C) k (deviate i d (follow p) k)).
  { intros k Hk. rewrite agents_are in Hk. unfold deviate. destruct (Nat.eqb_spec k i) as [->|]; auto. }
  apply bound_le; [exact joint_good | apply together_sound, Hall|].
  intros before s next Hp Hs. unfold by_state. rewrite get_tabulate by exact Hs. set (h := length before).
  destruct (Hd before s Hp Hs) as [Hpos Hone]. rewrite actions_are in Hpos, Hone by exact Hi.
  eapply le_trans; [|eapply le_trans; [apply (step_le i (d before s) f next before s Hi Hp Hs Hpos)|]].
  - apply sum_le. intros a _. apply le_eq. f_equal. apply product_ext. intros k x _. unfold deviate, follow.
    destruct (k =? i); reflexivity.
  - fold h. apply le_trans with (sum (seq 0 A) (fun x => d before s x * inj (deviated_by n C p i f next h s)))%num.
    + apply sum_le. intros x Hx. apply times_mono; [apply Hpos; apply in_seq in Hx; lia|]. apply inj_le. unfold deviated_by.
      apply (largest_le (seq 0 A) (fun x => by_action n C f (others_from C p i h s 0 N) next h s x) x Hx).
    + apply le_eq. rewrite sum_scale_r, Hone. ring.
Qed.

End Game.

Theorem check_counting_sound n C p multipliers eps : check_counting n C p multipliers eps = Accepted -> nash K (joint_form C) p eps.
Proof.
  unfold check_counting. intros E.
  apply both_accepted in E. destruct E as [E0 E]. apply require_accepted, Nat.ltb_lt in E0.
  apply both_accepted in E. destruct E as [E1 E]. apply both_accepted in E. destruct E as [E2 E].
  apply both_accepted in E. destruct E as [E3 E]. apply both_accepted in E. destruct E as [E4 E5].
  assert (good : is_process K (by_class C)) by (eapply check_process_sound, E1).
  assert (plays : forall i, i < crowd C -> is_strategy (joint_form C) i (follow (K := K) p i)).
  { intros i Hi before s [Hl _] Hs. unfold follow. rewrite actions_are by exact Hi.
    pose proof (below_each_accepted _ _ (below_each_accepted _ _ (below_each_accepted _ _ E2 i Hi) _ Hl) s Hs) as R.
    apply require_accepted in R. apply (is_distribution_true (K := K)) in R. destruct R as [R1 R2]. split; [|exact R2].
    intros x Hx. apply R1, in_seq. lia. }
  apply nash_by_bounds with (multipliers := multipliers)
    (low := fun j => nth j (map (fun j => crowd_below n C p 0 (cost_of_counts C j)) (seq 0 (shared_constraints C))) 0%Q)
    (above := fun i => bound n (by_class C) (by_state (by_class C) (deviated_by n C p i (lagrangian_of_counts C multipliers i))))
    (below := fun i => crowd_below n C p i (lagrangian_of_counts C multipliers i)).
  - apply joint_good, good.
  - rewrite agents_are. exact plays.
  - rewrite agents_are. intros i j Hi Hj. apply (require_accepted _ _ (below_each_accepted _ _ (below_each_accepted _ _ E3 i Hi) j Hj)).
  - intros j Hj. pose proof (require_accepted _ _ (below_each_accepted _ _ E4 j Hj)) as R. apply Qle_bool_iff in R.
    eapply le_trans; [|apply inj_le, R]. apply (crowd_above_le n C p good plays 0 (cost_of_counts C j) E0).
  - intros j Hj. rewrite nth_map_seq by exact Hj. apply (crowd_below_le n C p good plays 0 (cost_of_counts C j) E0).
  - rewrite agents_are. intros i Hi. split; [|split].
    + intros d Hd. apply (deviated_by_le n C p good plays i d (lagrangian_of_counts C multipliers i) Hi Hd).
    + apply (crowd_below_le n C p good plays i (lagrangian_of_counts C multipliers i) Hi).
    + apply Qle_bool_iff. apply (require_accepted _ _ (below_each_accepted _ _ E5 i Hi)).
Qed.

End Soundness.
