(** What the checker of discounted joint games accepts is true. *)
From Coq Require Import QArith Qfield List Arith Lia Ring Bool.
From Cmpg Require Import Semantics Arithmetic Sums Processes Checker Soundness DiscountedSemantics DiscountedChecker.
Import ListNotations.
Local Open Scope nat_scope.

Section Soundness.
Context {K : numbers}.
Add Ring number_ring : (ring_laws K).
Local Notation inj := (@of_Q K).

Lemma power_nonneg (x : K) h : (zero <= x)%num -> (zero <= power x h)%num.
Proof. intros H. induction h as [|h IH]; cbn; [apply one_nonneg | apply le_times; assumption]. Qed.

Section Game.
Variable n : precision.
Variable gamma : Q.
Variable g : game.
Variable look : nat.
Variable p : policy.
Hypothesis gamma_low : (0 <= gamma)%Q.
Hypothesis gamma_high : (gamma < 1)%Q.
Local Notation shrunk_ steps := (dynamics (shrunk gamma g steps)).
Local Notation J steps := (dynamics (lasting g steps)).

Lemma gamma_nonneg : (zero <= inj gamma)%num.
Proof. rewrite <- inj_zero. apply inj_le, gamma_low. Qed.

Lemma tail_nonneg f : (0 <= tail_of gamma g (shrunk_ 1) f)%Q.
Proof. apply larger_l. Qed.

(** The tail bounds one step and the tail after it. *)
Lemma tail_ok f s a : s < num_states g -> In a (tuples (num_actions g)) ->
  (f s a + gamma * tail_of gamma g (shrunk_ 1) f <= tail_of gamma g (shrunk_ 1) f)%Q.
Proof.
  intros Hs Ha. unfold tail_of. set (M := largest _ _).
  assert (F : (f s a <= M)%Q).
  { eapply Qle_trans; [apply (largest_le (tuples (num_actions g)) (fun a => f s a) a Ha)|].
    apply (largest_le (seq 0 (num_states g)) (fun s => largest (tuples (num_actions g)) (fun a => f s a)) s). apply in_seq. lia. }
  assert (P : (0 < 1 - gamma)%Q) by (apply Qlt_minus_iff in gamma_high; exact gamma_high).
  assert (Nz : ~ (1 - gamma == 0)%Q) by (intros E; rewrite E in P; apply (Qlt_irrefl 0), P).
  eapply Qle_trans; [apply Qplus_le_compat; [exact F | apply Qle_refl]|]. set (t := (M / (1 - gamma))%Q).
  assert (E : (M == t * (1 - gamma))%Q) by (unfold t; field; exact Nz).
  unfold larger. destruct (Qle_bool 0 t) eqn:B.
  - rewrite E. setoid_replace (t * (1 - gamma) + gamma * t)%Q with t by ring. apply Qle_refl.
  - rewrite E. setoid_replace (t * (1 - gamma) + gamma * 0)%Q with (t * (1 - gamma))%Q by ring.
    setoid_replace 0%Q with (0 * (1 - gamma))%Q by ring. apply Qmult_le_compat_r; [|apply Qlt_le_weak, P].
    apply Qlt_le_weak, Qnot_le_lt. intros C. apply Qle_bool_iff in C. congruence.
Qed.

Lemma ahead_shrunk steps h k s a u : ahead (K := K) (shrunk_ k) h s a u = (inj gamma * ahead (J steps) h s a u)%num.
Proof.
  unfold ahead. cbn [dynamics transition shrunk lasting next]. rewrite sum_map, <- sum_scale. apply sum_ext. intros e _.
  cbn [fst snd]. rewrite inj_mul. ring.
Qed.

Hypothesis good : forall steps, is_process K (J steps).

(** A step that is right for the shrunk game bounds discounted sums of any length. *)
Lemma ahead_bound_le b f step steps : look <= steps -> is_behaviour (J steps) b ->
  (forall before s next, is_past (J steps) before -> s < num_states g ->
    (sum (tuples (num_actions g)) (fun a => b before s a * (inj (f s a) + ahead (shrunk_ steps) 0 s a (fun t => inj (get next t))))
     <= inj (step next 0 s))%num) ->
  (discounted gamma g f b steps <= inj (ahead_bound n gamma g look (shrunk_ 1) f step))%num.
Proof.
  intros Hlook Hb Hstep. set (T := tail_of gamma g (shrunk_ 1) f).
  set (layer := fun next => tabulate 0%Q (num_states g) (fun s => step next 0 s)).
  set (U := fun h s => (power (inj gamma) h * inj (get (look_ahead T layer (look - h)) s))%num).
  assert (W : forall h s, look <= h -> U h s = (power (inj gamma) h * inj T)%num).
  { intros h s Hh. unfold U. replace (look - h) with 0 by lia. reflexivity. }
  assert (Pos : forall h, (zero <= power (inj gamma) h)%num) by (intros h; apply power_nonneg, gamma_nonneg).
  eapply le_trans; [apply (value_le (J steps) (good steps) b Hb _ U)|].
  - intros s _. rewrite W by exact Hlook. apply le_times; [apply Pos|]. rewrite <- inj_zero. apply inj_le, tail_nonneg.
  - intros before s Hp Hs. set (h := length before). destruct (Hb before s Hp Hs) as [Bpos Bone].
    change (actions (J steps)) with (tuples (num_actions g)) in *.
    destruct (Nat.lt_ge_cases h look) as [Hh|Hh].
    + set (next := look_ahead T layer (look - S h)).
      apply le_trans with (power (inj gamma) h * sum (tuples (num_actions g)) (fun a =>
        b before s a * (inj (f s a) + ahead (shrunk_ steps) 0 s a (fun t => inj (get next t)))))%num.
      * apply le_eq. rewrite <- sum_scale. apply sum_ext. intros a _. rewrite (ahead_shrunk steps 0 steps).
        assert (E : ahead (J steps) h s a (U (S h)) = (inj gamma * power (inj gamma) h * ahead (J steps) 0 s a (fun t => inj (get next t)))%num).
        { unfold ahead. rewrite <- sum_scale. apply sum_ext. intros e _. unfold U. fold next. cbn [power]. ring. }
        rewrite E. ring.
      * unfold U. replace (look - h) with (S (look - S h)) by lia. cbn [look_ahead]. fold next.
        apply times_mono; [apply Pos|]. unfold layer at 1. rewrite get_tabulate by exact Hs. apply Hstep; assumption.
    + rewrite W by exact Hh.
      apply le_trans with (power (inj gamma) h * sum (tuples (num_actions g)) (fun a => b before s a * inj T))%num.
      * rewrite <- sum_scale. apply sum_le. intros a Ha.
        assert (E : ahead (J steps) h s a (U (S h)) = (inj gamma * power (inj gamma) h * inj T)%num).
        { unfold ahead. destruct (good steps) as (_ & _ & Row). destruct (Row h s a (proj1 Hp) Hs Ha) as [_ One].
          transitivity (sum (transition (J steps) h s a) (fun e => inj (snd e) * (inj gamma * power (inj gamma) h * inj T)))%num.
          - apply sum_ext. intros e _. rewrite W by lia. cbn [power]. ring.
          - rewrite sum_scale_r, One. ring. }
        rewrite E.
        apply le_trans with (power (inj gamma) h * (b before s a * (inj (f s a) + inj gamma * inj T)))%num; [apply le_eq; ring|].
        apply times_mono; [apply Pos|]. apply times_mono; [apply Bpos, Ha|].
        rewrite <- of_Q_times, <- of_Q_plus. apply inj_le, tail_ok; assumption.
      * apply le_eq. rewrite sum_scale_r, Bone. ring.
  - unfold ahead_bound. rewrite inj_total. fold T. fold layer. apply sum_le. intros s _. unfold U. rewrite Nat.sub_0_r. cbn [power].
    eapply le_trans; [|apply inj_mul_up]. apply le_eq. change (initial (J steps) s) with (start g s). ring.
Qed.

Hypothesis plays : forall steps i, i < num_agents g -> is_strategy (lasting g steps) i (follow (K := K) (stationary p) i).
Local Notation m1 := (shrunk_ 1).

Lemma discounted_above_le f steps : look <= steps ->
  (discounted gamma g f (together (follow (stationary p))) steps <= inj (discounted_above n gamma g look p m1 f))%num.
Proof.
  intros Hl. apply ahead_bound_le; [exact Hl | apply (together_sound (lasting g steps)), plays|].
  intros before s next Hp Hs.
  apply (followed_le n (shrunk gamma g steps) (stationary p) (plays steps) (fun _ s a => inj (f s a)) (at_every_step f) before s next Hp Hs).
  intros a _. apply le_refl.
Qed.

Lemma discounted_below_le f steps : look <= steps ->
  (inj (discounted_below n gamma g look p m1 f) <= discounted gamma g f (together (follow (stationary p))) steps)%num.
Proof.
  intros Hl. unfold discounted_below. rewrite inj_opp. pose proof (discounted_above_le (fun s a => - f s a)%Q steps Hl) as V.
  set (y := inj (discounted_above _ _ _ _ _ _ _)) in *. set (x := discounted gamma g f _ steps).
  assert (E : discounted gamma g (fun s a => - f s a)%Q (together (follow (stationary p))) steps = (opposite one * x)%num).
  { unfold x, discounted. rewrite <- value_scale. apply value_ext. intros. rewrite inj_opp. ring. }
  rewrite E in V. apply (le_plus K _ _ (x - y)%num) in V.
  replace (opposite one * x + (x - y))%num with (zero - y)%num in V by ring.
  replace (y + (x - y))%num with x in V by ring. exact V.
Qed.

Lemma discounted_best_le i d f steps : look <= steps -> i < num_agents g -> is_strategy (lasting g steps) i d ->
  (discounted gamma g f (together (deviate i d (follow (stationary p)))) steps <= inj (discounted_best n gamma g look p m1 i f))%num.
Proof.
  intros Hl Hi Hd. apply ahead_bound_le; [exact Hl | apply (together_sound (lasting g steps)), (deviate_sound (lasting g steps) _ (plays steps)), Hd|].
  intros before s next Hp Hs.
  apply (deviated_step_le n (shrunk gamma g steps) (stationary p) (plays steps) i d (fun _ s a => inj (f s a)) (at_every_step f) before s next Hi Hd Hp Hs).
  intros a _. apply le_refl.
Qed.

End Game.

(** Finitely many things that hold from some step on hold together from some step on. *)
Lemma all_from (P : nat -> nat -> Prop) : forall k, (forall j, j < k -> exists from, forall steps, from <= steps -> P j steps) ->
  exists from, forall j steps, j < k -> from <= steps -> P j steps.
Proof.
  induction k as [|k IH]; intros H; [exists 0; intros; lia|].
  destruct IH as [f1 H1]; [intros; apply H; lia|]. destruct (H k) as [f2 H2]; [lia|].
  exists (Nat.max f1 f2). intros j steps Hj Hs. destruct (Nat.eq_dec j k) as [->|]; [apply H2; lia | apply H1; lia].
Qed.

Theorem check_discounted_sound n gamma g look p multipliers eps :
  check_discounted n gamma g look p multipliers eps = Accepted -> discounted_nash K gamma g p eps.
Proof.
  unfold check_discounted, check_discounted_with. intros E.
  apply both_accepted in E. destruct E as [E0 E]. apply both_accepted in E. destruct E as [E1 E].
  apply both_accepted in E. destruct E as [E2 E]. apply both_accepted in E. destruct E as [E3 E].
  apply both_accepted in E. destruct E as [E4 E5].
  apply require_accepted, andb_true_iff in E0. destruct E0 as [G1 G2]. apply Qle_bool_iff in G1.
  assert (G3 : (gamma < 1)%Q) by (apply Qnot_le_lt; intros C; apply Qle_bool_iff in C; rewrite C in G2; discriminate). clear G2.
  assert (good : forall steps, is_process K (dynamics (lasting g steps))).
  { intros steps. destruct (check_process_sound (K := K) _ _ _ E1) as (A1 & A2 & A3). split; [exact A1|]. split; [exact A2|].
    intros h s a _ Hs Ha. apply (A3 0 s a); [cbn; lia | exact Hs | exact Ha]. }
  assert (plays : forall steps i, i < num_agents g -> is_strategy (lasting g steps) i (follow (K := K) (stationary p) i)).
  { intros steps i Hi before s _ Hs. unfold follow, stationary.
    pose proof (require_accepted _ _ (below_each_accepted _ _ (below_each_accepted _ _ E2 i Hi) s Hs)) as R.
    apply (is_distribution_true (K := K)) in R. destruct R as [R1 R2]. split; [|exact R2]. intros x Hx. change (num_actions (lasting g steps)) with (num_actions g) in Hx.
    apply R1, in_seq. lia. }
  split; [split; [exact G1 | exact G3]|]. split; [exact good|]. split; [exact plays|]. split.
  - intros j Hj delta Hdelta. exists look. intros steps Hs.
    pose proof (require_accepted _ _ (below_each_accepted _ _ E4 j Hj)) as R. apply Qle_bool_iff in R.
    eapply le_trans; [apply (discounted_above_le n gamma g look p G1 G3 good plays (cost g j 0) steps Hs)|].
    rewrite <- of_Q_plus. apply inj_le. eapply Qle_trans; [exact R|]. setoid_replace (threshold g j) with (threshold g j + 0)%Q at 1 by ring.
    apply Qplus_le_compat; [apply Qle_refl | apply Qlt_le_weak, Hdelta].
  - intros i d Hi Hd Hf delta Hdelta.
    pose proof (require_accepted _ _ (below_each_accepted _ _ E5 i Hi)) as R. apply Qle_bool_iff in R.
    apply (inj_le (K := K)) in R. unfold discounted_gain in R. cbv zeta in R. rewrite inj_add, inj_sub, inj_total in R.
    set (costs := map _ _) in R. set (l := seq 0 (num_constraints g)) in *.
    assert (duals : forall j, j < num_constraints g -> (0 <= multipliers i j)%Q /\ (binds g i j = true \/ is_zero (multipliers i j) = true)).
    { intros j Hj. pose proof (require_accepted _ _ (below_each_accepted _ _ (below_each_accepted _ _ E3 i Hi) j Hj)) as D.
      apply andb_true_iff in D. destruct D as [D1 D2]. split; [apply Qle_bool_iff, D1 | apply orb_true_iff, D2]. }
    (* How much of delta each constraint may take. *)
    set (S := total_of l (multipliers i)).
    assert (S0 : (0 <= S)%Q).
    { apply (of_Q_le K). unfold S. rewrite inj_zero, inj_total. apply sum_nonneg. intros j Hj. apply in_seq in Hj.
      rewrite <- inj_zero. apply inj_le, duals. lia. }
    set (part := (delta / (1 + S))%Q).
    assert (P1 : (0 < 1 + S)%Q) by (apply Qlt_le_trans with 1%Q; [reflexivity|]; setoid_replace 1%Q with (1 + 0)%Q at 1 by ring;
      apply Qplus_le_compat; [apply Qle_refl | exact S0]).
    assert (part_pos : (0 < part)%Q) by (apply Qlt_shift_div_l; [exact P1|]; setoid_replace (0 * (1 + S))%Q with 0%Q by ring; exact Hdelta).
    assert (part_sum : (S * part <= delta)%Q).
    { setoid_replace delta with ((1 + S) * part)%Q at 1 by (unfold part; field; intros Z; rewrite Z in P1; apply (Qlt_irrefl 0), P1).
      apply Qmult_le_compat_r; [|apply Qlt_le_weak, part_pos]. setoid_replace S with (0 + S)%Q at 1 by ring.
      apply Qplus_le_compat; [discriminate | apply Qle_refl]. }
    destruct (all_from (fun j steps => binds g i j = true -> (discounted gamma g (cost g j 0)
      (together (deviate i d (follow (stationary p)))) steps <= inj (threshold g j) + inj part)%num) (num_constraints g)) as [from Hfrom].
    { intros j Hj. destruct (binds g i j) eqn:B; [|exists 0; intros; discriminate].
      destruct (Hf j Hj B part part_pos) as [from H]. exists from. intros steps Hs _. apply H, Hs. }
    exists (Nat.max look from). intros steps Hs.
    set (b := together (follow (stationary p))) in *. set (b' := together (deviate i d (follow (stationary p)))) in *.
    set (V := fun f c => discounted (K := K) gamma g f c steps).
    assert (HL : forall c, V (lagrangian g multipliers i 0) c
      = (V (reward g i 0) c - sum l (fun j => inj (multipliers i j) * V (cost g j 0) c))%num).
    { intros c. unfold V, discounted.
      rewrite <- (value_lagrangian (dynamics (lasting g steps)) c l (fun h s a => power (inj gamma) h * inj (reward g i 0 s a))%num
        (fun j => inj (multipliers i j)) (fun j h s a => power (inj gamma) h * inj (cost g j 0 s a))%num).
      apply value_ext. intros h s a _ _ _. unfold lagrangian. rewrite inj_sub, inj_total. fold l.
      rewrite (sum_ext l (fun j => inj (multipliers i j) * (power _ h * _))%num
        (fun j => power (inj gamma) h * inj (mul (multipliers i j) (cost g j 0 s a)))%num) by (intros; rewrite inj_mul; ring).
      rewrite sum_scale. ring. }
    eapply le_trans; [apply (duality l (multipliers i) (fun j => threshold g j + part)%Q (fun j => nth j costs 0%Q)
      (V (reward g i 0) b) (V (reward g i 0) b') (V (lagrangian g multipliers i 0) b) (V (lagrangian g multipliers i 0) b')
      (fun j => V (cost g j 0) b) (fun j => V (cost g j 0) b'))|].
    + apply HL.
    + apply HL.
    + intros j Hj. apply in_seq in Hj. rewrite <- inj_zero. apply inj_le, duals. lia.
    + intros j Hj. apply in_seq in Hj. destruct (duals j) as [_ [B|Z]]; [lia | right | left; apply inj_is_zero, Z].
      rewrite of_Q_plus. apply Hfrom; [lia | lia | exact B].
    + intros j Hj. apply in_seq in Hj. unfold costs. fold l. unfold l. rewrite nth_map_seq by lia.
      apply discounted_below_le; [exact G1 | exact G3 | exact good | exact plays | lia].
    + change (discounted gamma g (reward g i 0) b steps) with (V (reward g i 0) b).
      set (X := V (reward g i 0) b).
      rewrite (sum_ext l _ (fun j => inj (mul (multipliers i j) (sub (threshold g j) (nth j costs 0%Q))) + inj (multipliers i j) * inj part)%num)
        by (intros j _; rewrite inj_mul, inj_sub, of_Q_plus; ring).
      rewrite sum_plus, sum_scale_r.
      assert (HS : (sum l (fun j => inj (multipliers i j)) * inj part <= inj delta)%num).
      { rewrite <- inj_total, <- of_Q_times. apply inj_le. exact part_sum. }
      assert (HV : (V (lagrangian g multipliers i 0) b' - V (lagrangian g multipliers i 0) b
        <= inj (discounted_best n gamma g look p (dynamics (shrunk gamma g 1)) i (lagrangian g multipliers i 0))
           - inj (discounted_below n gamma g look p (dynamics (shrunk gamma g 1)) (lagrangian g multipliers i 0)))%num).
      { apply minus_mono.
        - apply discounted_best_le; [exact G1 | exact G3 | exact good | exact plays | lia | exact Hi | apply Hd].
        - apply discounted_below_le; [exact G1 | exact G3 | exact good | exact plays | lia]. }
      set (Y := sum l (fun j => inj (mul (multipliers i j) _))) in *.
      set (D := (V (lagrangian g multipliers i 0) b' - V (lagrangian g multipliers i 0) b)%num) in *.
      set (Z := (sum l (fun j => inj (multipliers i j)) * inj part)%num) in *.
      replace (X + (D + (Y + Z)))%num with (X + (D + Y) + Z)%num by ring.
      apply plus_mono; [|exact HS]. apply plus_mono; [apply le_refl|]. eapply le_trans; [|exact R].
      apply plus_mono; [exact HV | apply le_refl].
Qed.

End Soundness.
