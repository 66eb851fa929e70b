(** What the checker of joint games accepts is true. *)
From Coq Require Import QArith List Arith Lia Ring Bool.
From Cmpg Require Import Semantics Arithmetic Sums Processes Checker.
Import ListNotations.
Local Open Scope nat_scope.

Section Soundness.
Context {K : numbers}.
Add Ring number_ring : (ring_laws K).
Local Notation inj := (@of_Q K).

(** * Verdicts *)

Lemma require_accepted c r : require c r = Accepted -> c = true.
Proof. destruct c; [reflexivity | discriminate]. Qed.

Lemma both_accepted (x y : verdict) : (x ;; y) = Accepted -> x = Accepted /\ y = Accepted.
Proof. destruct x; [auto | discriminate]. Qed.

Lemma each_accepted {X} (l : list X) check : each l check = Accepted -> forall x, In x l -> check x = Accepted.
Proof.
  induction l as [|y r IH]; cbn [each]; intros E x []; apply both_accepted in E; destruct E as [E1 E2].
  - subst y. exact E1.
  - apply IH; assumption.
Qed.

Lemma below_each_accepted n check : below_each n check = Accepted -> forall i, i < n -> check i = Accepted.
Proof. intros E i Hi. apply (each_accepted _ _ E). apply in_seq. lia. Qed.

Lemma is_distribution_true {X} (l : list X) f : is_distribution l f = true ->
  (forall x, In x l -> (zero <= inj (f x))%num) /\ sum l (fun x => inj (f x)) = one.
Proof.
  intros E. apply andb_true_iff in E. destruct E as [E1 E2]. rewrite forallb_forall in E1. split.
  - intros x Hx. apply inj_nonneg, E1, Hx.
  - rewrite <- inj_total, <- of_Q_one. apply inj_eq, Qeq_bool_iff, E2.
Qed.

Lemma check_process_sound {A} (m : process A) agent name : check_process m agent name = Accepted -> is_process K m.
Proof.
  intros E. apply both_accepted in E. destruct E as [E1 E2].
  apply require_accepted, is_distribution_true in E1. destruct E1 as [E1 E3]. repeat split.
  - intros s Hs. apply E1, in_seq. lia.
  - exact E3.
  - pose proof (each_accepted _ _ (below_each_accepted _ _ (below_each_accepted _ _ E2 h H) s H0) a H1) as R.
    apply require_accepted, andb_true_iff in R. destruct R as [R _]. rewrite forallb_forall in R.
    apply Nat.ltb_lt, R. assumption.
  - pose proof (each_accepted _ _ (below_each_accepted _ _ (below_each_accepted _ _ E2 h H) s H0) a H1) as R.
    apply require_accepted, andb_true_iff in R. destruct R as [_ R]. apply is_distribution_true in R. apply R. assumption.
  - pose proof (each_accepted _ _ (below_each_accepted _ _ (below_each_accepted _ _ E2 h H) s H0) a H1) as R.
    apply require_accepted, andb_true_iff in R. destruct R as [_ R]. apply is_distribution_true in R. apply R.
Qed.

(** * Backward induction *)

Section Bound.
Context {A : Type}.
Variable n : precision.
Variable m : process A.
Hypothesis good : is_process K m.

Lemma outcome_le x now next h s a : (x <= inj now)%num -> h < horizon m -> s < states m -> In a (actions m) ->
  (x + ahead m h s a (fun t => inj (get next t)) <= inj (outcome n m now next h s a))%num.
Proof.
  intros Hx Hh Hs Ha. unfold outcome, ahead. rewrite inj_add, inj_total. apply plus_mono.
  - eapply le_trans; [exact Hx | apply inj_le, up_le].
  - apply sum_le. intros e _. apply inj_mul_up.
Qed.

Lemma bound_le b (f : nat -> nat -> A -> K) layer : is_behaviour m b ->
  (forall before s next, is_past m before -> s < states m ->
    (sum (actions m) (fun a => b before s a * (f (length before) s a
       + ahead m (length before) s a (fun t => inj (get next t))))
     <= inj (get (layer next (length before)) s))%num) ->
  (value m f b <= inj (bound n m layer))%num.
Proof.
  intros Hb Hstep. eapply le_trans.
  - apply (value_le m good b Hb f (fun h s => inj (get (backward_table layer (horizon m - h) h) s))).
    + intros s _. rewrite Nat.sub_diag. cbn. apply le_eq. symmetry. apply inj_zero.
    + intros before s Hp Hs. destruct Hp as [Hl Hv].
      replace (horizon m - length before) with (S (horizon m - S (length before))) by lia.
      cbn [backward_table]. apply Hstep; [split; assumption | exact Hs].
  - unfold bound. rewrite inj_total, Nat.sub_0_r. apply sum_le. intros s _. apply inj_mul_up.
Qed.

(** Whatever is done: the best action at each step is at least as good. *)
Lemma best_of_le b (f : nat -> nat -> A -> K) f' : is_behaviour m b ->
  (forall h s a, h < horizon m -> s < states m -> In a (actions m) -> (f h s a <= inj (f' h s a))%num) ->
  (value m f b <= inj (bound n m (by_state m (best_of n m (actions m) f'))))%num.
Proof.
  intros Hb Hf. apply bound_le; [exact Hb|]. intros before s next Hp Hs. unfold by_state. rewrite get_tabulate by exact Hs.
  destruct (Hb before s Hp Hs) as [Hpos Hone]. set (h := length before).
  apply le_trans with (sum (actions m) (fun a => b before s a * inj (best_of n m (actions m) f' next h s)))%num.
  - apply sum_le. intros a Ha. apply times_mono; [apply Hpos, Ha|].
    eapply le_trans; [apply outcome_le with (now := f' h s a)|].
    + apply Hf; [apply Hp | exact Hs | exact Ha].
    + apply Hp.
    + exact Hs.
    + exact Ha.
    + apply inj_le. unfold best_of. apply (largest_le (actions m) (fun a => outcome n m (f' h s a) next h s a) a Ha).
  - apply le_eq. rewrite sum_scale_r, Hone. ring.
Qed.

End Bound.

(** * Choices of several agents *)

(** A list of actions with probabilities gives the same expectations as [w] on all actions. *)
Definition represents (row : list (nat * Q)) (size : nat) (w : nat -> K) : Prop :=
  (forall entry, In entry row -> (zero <= inj (snd entry))%num) /\
  forall u : nat -> K, sum row (fun entry => inj (snd entry) * u (fst entry))%num = sum (seq 0 size) (fun x => w x * u x)%num.

Lemma combinations_nonneg rows : (forall row entry, In row rows -> In entry row -> (zero <= inj (snd entry))%num) ->
  forall joint, In joint (combinations rows) -> (zero <= inj (snd joint))%num.
Proof.
  induction rows as [|row rest IH]; intros H joint Hj; cbn [combinations] in Hj.
  - destruct Hj as [<-|[]]. cbn. rewrite of_Q_one. apply one_nonneg.
  - apply in_flat_map in Hj. destruct Hj as (e & He & Hj). apply in_map_iff in Hj. destruct Hj as (j & <- & Hj).
    cbn [snd]. rewrite inj_mul. apply le_times; [apply (H row); [left; reflexivity | exact He]|].
    apply IH; [|exact Hj]. intros r x Hr. apply H. right. exact Hr.
Qed.

Lemma combinations_sum sizes : forall rows (w : nat -> nat -> K) i (u : list nat -> K), length rows = length sizes ->
  (forall k, k < length sizes -> represents (nth k rows []) (nth k sizes 0) (w (i + k)%nat)) ->
  sum (combinations rows) (fun joint => inj (snd joint) * u (fst joint))%num
  = sum (tuples sizes) (fun a => product w i a * u a)%num.
Proof.
  induction sizes as [|size sizes IH]; intros [|row rows] w i u L R; try discriminate.
  - cbn. rewrite of_Q_one. reflexivity.
  - rewrite sum_tuples. cbn [combinations]. rewrite sum_flat.
    destruct (R 0) as [_ R0]; [cbn; lia|]. rewrite Nat.add_0_r in R0. cbn [nth] in R0.
    transitivity (sum row (fun entry => inj (snd entry)
      * sum (tuples sizes) (fun b => product w (S i) b * u (fst entry :: b)))%num).
    + apply sum_ext. intros e _. rewrite sum_map, <- sum_scale.
      rewrite (sum_ext (combinations rows) _ (fun joint => inj (snd joint) * (inj (snd e) * u (fst e :: fst joint)))%num).
      * rewrite (IH rows w (S i) (fun b => inj (snd e) * u (fst e :: b))%num).
        -- apply sum_ext. intros b _. ring.
        -- cbn in L. lia.
        -- intros k Hk. replace (S i + k) with (i + S k) by lia. apply (R (S k)). cbn. lia.
      * intros j _. cbn [fst snd]. rewrite inj_mul. ring.
    + rewrite (R0 (fun x => sum (tuples sizes) (fun b => product w (S i) b * u (x :: b)))%num).
      apply sum_ext. intros x _. rewrite <- sum_scale. apply sum_ext. intros b _. cbn [product]. ring.
Qed.

(** The choice of one agent can be taken apart into its actions. *)
Lemma product_apart (w : nat -> nat -> K) d size i : forall a k, k <= i < k + length a -> nth (i - k) a 0 < size ->
  product (fun j => if j =? i then d else w j) k a
  = sum (seq 0 size) (fun x => d x * product (fun j => if j =? i then (fun y => if x =? y then one else zero) else w j) k a)%num.
Proof.
  induction a as [|y r IH]; intros k Hk Hx; cbn [length] in Hk; [lia|]. cbn [product].
  destruct (Nat.eqb_spec k i) as [->|N].
  - rewrite Nat.sub_diag in Hx. cbn [nth] in Hx.
    assert (E : forall v, product (fun j => if j =? i then v else w j) (S i) r = product w (S i) r).
    { intros v. apply product_ext. intros j z Hj. destruct (Nat.eqb_spec j i); [lia | reflexivity]. }
    rewrite E. rewrite (sum_ext (seq 0 size) _ (fun x => if y =? x then d x * product w (S i) r else zero)%num).
    + rewrite (sum_pick size y (fun x => d x * product w (S i) r)%num Hx). reflexivity.
    + intros x _. rewrite E. rewrite (Nat.eqb_sym x y). destruct (y =? x); ring.
  - replace (i - k) with (S (i - S k)) in Hx by lia. cbn [nth] in Hx. rewrite IH by (auto; lia). rewrite <- sum_scale.
    apply sum_ext. intros x _. ring.
Qed.

(** * Joint games *)

Section Joint.
Variable n : precision.
Variable g : game.
Local Notation m := (dynamics g).
Hypothesis good : is_process K m.

Lemma together_sound who : (forall i, i < num_agents g -> is_strategy g i (who i)) -> is_behaviour m (together (K := K) who).
Proof.
  intros H before s Hp Hs. split.
  - intros a Ha. apply product_nonneg with (sizes := num_actions g); [|exact Ha].
    intros k x Hk Hx. apply (H k Hk before s Hp Hs). exact Hx.
  - apply product_one. intros k Hk. apply (H k Hk before s Hp Hs).
Qed.

Lemma mixture_le rows w (f : nat -> nat -> list nat -> K) f' next h s : h < num_steps g -> s < num_states g ->
  length rows = length (num_actions g) ->
  (forall k, k < length (num_actions g) -> represents (nth k rows []) (nth k (num_actions g) 0) (w k)) ->
  (forall a, In a (tuples (num_actions g)) -> (f h s a <= inj (f' h s a))%num) ->
  (forall joint, In joint (combinations rows) -> In (fst joint) (tuples (num_actions g))) ->
  (sum (actions m) (fun a => product w 0 a * (f h s a + ahead m h s a (fun t => inj (get next t))))
   <= inj (mixture n m rows f' next h s))%num.
Proof.
  intros Hh Hs L R Hf Hin. unfold mixture. rewrite inj_total.
  change (actions m) with (tuples (num_actions g)).
  rewrite <- (combinations_sum (num_actions g) rows w 0
    (fun a => f h s a + ahead m h s a (fun t => inj (get next t)))%num L R).
  apply sum_le. intros joint Hj. eapply le_trans; [|apply inj_mul_up]. apply times_mono.
  - apply (combinations_nonneg rows); [|exact Hj]. intros row e Hr He.
    destruct (In_nth rows row [] Hr) as (k & Hk & E). destruct (R k) as [P _]; [lia|]. apply P. rewrite E. exact He.
  - apply (outcome_le n m); [apply Hf, Hin, Hj | exact Hh | exact Hs | apply Hin, Hj].
Qed.

Lemma combinations_in sizes : forall rows, length rows = length sizes ->
  (forall k entry, k < length sizes -> In entry (nth k rows []) -> fst entry < nth k sizes 0) ->
  forall joint, In joint (combinations rows) -> In (fst joint) (tuples sizes).
Proof.
  induction sizes as [|size sizes IH]; intros [|row rows] L R joint Hj; try discriminate.
  - destruct Hj as [<-|[]]. left. reflexivity.
  - cbn [combinations] in Hj. apply in_flat_map in Hj. destruct Hj as (e & He & Hj). apply in_map_iff in Hj.
    destruct Hj as (j & <- & Hj). cbn [tuples fst]. apply in_flat_map. exists (fst e). split.
    + apply in_seq. specialize (R 0 e). cbn in R. split; [lia | apply R; [lia | exact He]].
    + apply in_map. apply (IH rows); [cbn in L; lia | | exact Hj].
      intros k x Hk Hx. apply (R (S k) x); [cbn; lia | exact Hx].
Qed.

Variable p : policy.
Hypothesis plays : forall i, i < num_agents g -> is_strategy g i (follow (K := K) p i).

Lemma policy_row_represents i h s : i < num_agents g -> h < num_steps g -> s < num_states g ->
  (exists before, is_past m before /\ length before = h) ->
  represents (policy_row g p i h s) (nth i (num_actions g) 0) (fun x => inj (p i h s x)).
Proof.
  intros Hi Hh Hs (before & Hp & Hl). destruct (plays i Hi before s Hp Hs) as [Hpos _].
  unfold follow in Hpos. rewrite Hl in Hpos. unfold policy_row. split.
  - intros e He. apply filter_In in He. destruct He as [He _]. apply in_map_iff in He. destruct He as (x & <- & Hx).
    apply in_seq in Hx. apply Hpos. lia.
  - intros u. induction (seq 0 (nth i (num_actions g) 0)) as [|x r IH]; [reflexivity|]. cbn [map filter sum snd].
    destruct (is_zero (p i h s x)) eqn:Z; cbn [negb].
    + rewrite IH, (inj_is_zero _ Z). ring.
    + cbn [sum fst snd]. rewrite IH. reflexivity.
Qed.

Lemma policy_row_in i h s entry : In entry (policy_row g p i h s) -> fst entry < nth i (num_actions g) 0.
Proof.
  intros He. apply filter_In in He. destruct He as [He _]. apply in_map_iff in He. destruct He as (x & <- & Hx).
  apply in_seq in Hx. cbn. lia.
Qed.

(** One step back, if all agents follow the policy. *)
Lemma followed_le (f : nat -> nat -> list nat -> K) f' before s next : is_past m before -> s < num_states g ->
  (forall a, In a (tuples (num_actions g)) -> (f (length before) s a <= inj (f' (length before) s a))%num) ->
  (sum (actions m) (fun a => together (follow p) before s a * (f (length before) s a
     + ahead m (length before) s a (fun t => inj (get next t))))
   <= inj (followed n g m p f' next (length before) s))%num.
Proof.
  intros Hp Hs Hf. assert (Hl := proj1 Hp).
  apply (mixture_le _ (fun i x => inj (p i (length before) s x)) f f' next (length before) s).
  - exact Hl.
  - exact Hs.
  - unfold policy_rows. rewrite map_length, seq_length. reflexivity.
  - intros k Hk. unfold policy_rows. rewrite nth_map_seq by exact Hk.
    apply policy_row_represents; [exact Hk | exact Hl | exact Hs | exists before; auto].
  - exact Hf.
  - apply combinations_in; [unfold policy_rows; rewrite map_length, seq_length; reflexivity|].
    intros k e Hk He. unfold policy_rows in He. rewrite nth_map_seq in He by exact Hk. eapply policy_row_in, He.
Qed.

Lemma value_above_le (f : nat -> nat -> list nat -> K) f' :
  (forall h s a, h < num_steps g -> s < num_states g -> In a (tuples (num_actions g)) -> (f h s a <= inj (f' h s a))%num) ->
  (value m f (together (follow p)) <= inj (value_above n g m p f'))%num.
Proof.
  intros Hf. apply bound_le; [exact good | apply together_sound, plays|]. intros before s next Hp Hs.
  unfold by_state. rewrite get_tabulate by exact Hs. apply followed_le; [exact Hp | exact Hs|].
  intros a Ha. apply Hf; [apply Hp | exact Hs | exact Ha].
Qed.

Lemma value_below_le f : (inj (value_below n g m p f) <= value m (fun h s a => inj (f h s a)) (together (follow p)))%num.
Proof.
  unfold value_below. rewrite inj_opp.
  pose proof (value_above_le (fun h s a => opposite one * inj (f h s a))%num (fun h s a => - f h s a)%Q) as V.
  rewrite value_scale in V. set (x := value m _ _) in *. set (y := inj (bound _ _ _)).
  assert (E : (opposite one * x <= y)%num).
  { apply V. intros. rewrite inj_opp. apply le_eq. ring. }
  apply (le_plus K _ _ (x - y)%num) in E.
  replace (opposite one * x + (x - y))%num with (zero - y)%num in E by ring.
  replace (y + (x - y))%num with x in E by ring. exact E.
Qed.

(** One step back, if agent [i] does [d] instead. *)
Lemma deviated_step_le i d (f : nat -> nat -> list nat -> K) f' before s next : i < num_agents g -> is_strategy g i d ->
  is_past m before -> s < num_states g ->
  (forall a, In a (tuples (num_actions g)) -> (f (length before) s a <= inj (f' (length before) s a))%num) ->
  (sum (actions m) (fun a => together (deviate i d (follow p)) before s a * (f (length before) s a
     + ahead m (length before) s a (fun t => inj (get next t))))
   <= inj (deviated n g m p i f' next (length before) s))%num.
Proof.
  intros Hi Hd Hp Hs Hf. assert (Hl := proj1 Hp). change (horizon m) with (num_steps g) in Hl. change (states m) with (num_states g) in Hs.
  set (h := length before). set (size := nth i (num_actions g) 0).
  set (F := fun a => (f h s a + ahead m h s a (fun t => inj (get next t)))%num).
  set (w := fun k x => inj (p k h s x)).
  set (pure := fun x k => if k =? i then (fun y => if x =? y then one else zero) else w k).
  destruct (Hd before s Hp Hs) as [Hpos Hone]. fold size in Hpos, Hone.
  apply le_trans with (sum (seq 0 size) (fun x => d before s x * inj (deviated n g m p i f' next h s)))%num;
    [|apply le_eq; rewrite sum_scale_r, Hone; ring].
  apply le_trans with (sum (seq 0 size) (fun x => d before s x
    * sum (actions m) (fun a => product (pure x) 0 a * F a)))%num.
  - apply le_eq. transitivity (sum (actions m) (fun a => sum (seq 0 size) (fun x =>
      d before s x * (product (pure x) 0 a * F a))))%num.
    + apply sum_ext. intros a Ha. change (actions m) with (tuples (num_actions g)) in Ha. unfold together.
      rewrite (product_ext _ (fun k => if k =? i then d before s else w k)) by
        (intros k x _; unfold deviate, w; destruct (k =? i); reflexivity).
      rewrite (product_apart w (d before s) size i a 0).
      * rewrite <- sum_scale_r. apply sum_ext. intros x _. unfold F, pure. ring.
      * rewrite (in_tuples_length _ _ Ha). unfold num_agents in Hi. lia.
      * rewrite Nat.sub_0_r. apply in_tuples_nth; assumption.
    + rewrite sum_swap. apply sum_ext. intros x _. apply sum_scale.
  - apply sum_le. intros x Hx. assert (Hx' : x < size) by (apply in_seq in Hx; lia).
    apply times_mono; [apply Hpos, Hx'|].
    eapply le_trans; [apply (mixture_le (rows_with g p i x h s) (pure x) f f' next h s)|].
    + exact Hl.
    + exact Hs.
    + unfold rows_with. rewrite map_length, seq_length. reflexivity.
    + intros k Hk. unfold rows_with. rewrite nth_map_seq by exact Hk. unfold pure. destruct (Nat.eqb_spec k i) as [->|N].
      * split.
        -- intros e [<-|[]]. cbn. rewrite of_Q_one. apply one_nonneg.
        -- intros u. cbn [sum fst snd]. rewrite of_Q_one. fold size.
           rewrite (sum_ext (seq 0 size) _ (fun y => if x =? y then u y else zero)) by
             (intros y _; destruct (x =? y); ring).
           rewrite (sum_pick size x u Hx'). ring.
      * apply policy_row_represents; [exact Hk | exact Hl | exact Hs | exists before; auto].
    + exact Hf.
    + apply combinations_in; [unfold rows_with; rewrite map_length, seq_length; reflexivity|].
      intros k e Hk He. unfold rows_with in He. rewrite nth_map_seq in He by exact Hk. destruct (Nat.eqb_spec k i) as [->|N].
      * destruct He as [<-|[]]. exact Hx'.
      * eapply policy_row_in, He.
    + apply inj_le. unfold deviated. fold size.
      apply (largest_le (seq 0 size) (fun x => mixture n m (rows_with g p i x h s) f' next h s) x Hx).
Qed.

Lemma deviate_sound i (d : strategy K) : is_strategy g i d -> forall k, k < num_agents g -> is_strategy g k (deviate i d (follow p) k).
Proof. intros Hd k Hk. unfold deviate. destruct (Nat.eqb_spec k i) as [->|]; auto. Qed.

Lemma deviated_le i d (f : nat -> nat -> list nat -> K) f' : i < num_agents g -> is_strategy g i d ->
  (forall h s a, h < num_steps g -> s < num_states g -> In a (tuples (num_actions g)) -> (f h s a <= inj (f' h s a))%num) ->
  (value m f (together (deviate i d (follow p))) <= inj (bound n m (by_state m (deviated n g m p i f'))))%num.
Proof.
  intros Hi Hd Hf. apply bound_le; [exact good | apply together_sound, deviate_sound, Hd|]. intros before s next Hp Hs.
  unfold by_state. rewrite get_tabulate by exact Hs. apply deviated_step_le; try assumption.
  intros a Ha. apply Hf; [apply Hp | exact Hs | exact Ha].
Qed.

End Joint.

(** A gain under constraints is at most the gain of the Lagrangian plus the multipliers times the slacks. *)
Lemma duality {X} (l : list X) (lambda alpha low : X -> Q) (vr vr' vl vl' : K) (vc vc' : X -> K) :
  vl = (vr - sum l (fun j => inj (lambda j) * vc j))%num ->
  vl' = (vr' - sum l (fun j => inj (lambda j) * vc' j))%num ->
  (forall j, In j l -> (zero <= inj (lambda j))%num) ->
  (forall j, In j l -> inj (lambda j) = zero \/ (vc' j <= inj (alpha j))%num) ->
  (forall j, In j l -> (inj (low j) <= vc j)%num) ->
  (vr' <= vr + ((vl' - vl) + sum l (fun j => inj (lambda j) * (inj (alpha j) - inj (low j)))))%num.
Proof.
  intros E E' Hl Hf Hlow.
  assert (H : (sum l (fun j => inj (lambda j) * (vc' j - vc j))
    <= sum l (fun j => inj (lambda j) * (inj (alpha j) - inj (low j))))%num).
  { apply sum_le. intros j Hj. destruct (Hf j Hj) as [Z|F]; [rewrite Z; apply le_eq; ring|].
    apply times_mono; [apply Hl, Hj|]. apply minus_mono; [exact F | apply Hlow, Hj]. }
  replace vr' with (vr + ((vl' - vl) + sum l (fun j => inj (lambda j) * (vc' j - vc j))))%num.
  - apply plus_mono; [apply le_refl|]. apply plus_mono; [apply le_refl | exact H].
  - rewrite (sum_ext l _ (fun j => inj (lambda j) * vc' j - inj (lambda j) * vc j)%num) by (intros; ring).
    rewrite sum_minus, E, E'. ring.
Qed.

(** Bounds on costs, and on what each agent can reach, make a Nash policy. *)
Lemma nash_by_bounds g p multipliers eps (low above below : nat -> Q) :
  is_process K (dynamics g) ->
  (forall i, i < num_agents g -> is_strategy g i (follow (K := K) p i)) ->
  (forall i j, i < num_agents g -> j < num_constraints g ->
     Qle_bool 0 (multipliers i j) && (binds g i j || is_zero (multipliers i j)) = true) ->
  (forall j, j < num_constraints g -> meets g j (together (follow (K := K) p))) ->
  (forall j, j < num_constraints g ->
     (inj (low j) <= value (dynamics g) (fun h s a => inj (cost g j h s a)) (together (follow p)))%num) ->
  (forall i, i < num_agents g -> let L := fun h s a => inj (lagrangian g multipliers i h s a) in
     (forall d, is_strategy g i d -> (value (dynamics g) L (together (deviate i d (follow p))) <= inj (above i))%num) /\
     (inj (below i) <= value (dynamics g) L (together (follow p)))%num /\
     (add (sub (above i) (below i)) (total_of (seq 0 (num_constraints g)) (fun j => mul (multipliers i j) (sub (threshold g j) (low j))))
      <= eps)%Q) ->
  nash K g p eps.
Proof.
  intros good plays duals meet Hlow Hgain. split; [exact good|]. split; [exact plays|]. split; [exact meet|].
  intros i d Hi Hd Hc. destruct (Hgain i Hi) as (Habove & Hbelow & R).
  apply (inj_le (K := K)) in R. rewrite inj_add, inj_sub, inj_total in R.
  set (b := together (follow p)) in *. set (b' := together (deviate i d (follow p))) in *.
  set (L := fun h s a => inj (lagrangian g multipliers i h s a)) in *.
  set (C := fun j h s a => inj (cost g j h s a)).
  assert (HL : forall b, value (dynamics g) L b
    = (reward_value g i b - sum (seq 0 (num_constraints g)) (fun j => inj (multipliers i j) * value (dynamics g) (C j) b))%num).
  { intros c. unfold reward_value. rewrite <- (value_lagrangian (dynamics g) c (seq 0 (num_constraints g))
      (fun h s a => inj (reward g i h s a)) (fun j => inj (multipliers i j)) C).
    apply value_ext. intros h s a _ _ _. unfold L, lagrangian, C. rewrite inj_sub, inj_total. f_equal.
    apply sum_ext. intros j _. apply inj_mul. }
  assert (Hm : forall j, In j (seq 0 (num_constraints g)) -> (zero <= inj (multipliers i j))%num /\
    (inj (multipliers i j) = zero \/ (value (dynamics g) (C j) b' <= inj (threshold g j))%num)).
  { intros j Hj. apply in_seq in Hj. assert (Hj' : j < num_constraints g) by lia.
    pose proof (duals i j Hi Hj') as M. apply andb_true_iff in M. destruct M as [M1 M2]. split; [apply inj_nonneg, M1|].
    destruct (binds g i j) eqn:B; [right; apply Hc; assumption | left; apply inj_is_zero, M2]. }
  eapply le_trans; [apply (duality (seq 0 (num_constraints g)) (multipliers i) (threshold g) low
    (reward_value g i b) (reward_value g i b') (value (dynamics g) L b) (value (dynamics g) L b')
    (fun j => value (dynamics g) (C j) b) (fun j => value (dynamics g) (C j) b'))|].
  - apply HL.
  - apply HL.
  - intros j Hj. apply Hm, Hj.
  - intros j Hj. apply Hm, Hj.
  - intros j Hj. apply in_seq in Hj. apply Hlow. lia.
  - apply plus_mono; [apply le_refl|]. eapply le_trans; [|exact R]. apply plus_mono.
    + apply minus_mono; [apply Habove, Hd | exact Hbelow].
    + apply le_eq. apply sum_ext. intros j _. rewrite inj_mul, inj_sub. reflexivity.
Qed.

Theorem check_nash_sound n g p multipliers eps : check_nash n g p multipliers eps = Accepted -> nash K g p eps.
Proof.
  unfold check_nash, check_with. intros E.
  apply both_accepted in E. destruct E as [E1 E]. apply both_accepted in E. destruct E as [E2 E].
  apply both_accepted in E. destruct E as [E3 E]. apply both_accepted in E. destruct E as [E4 E5].
  assert (good : is_process K (dynamics g)) by (eapply check_process_sound, E1).
  assert (plays : forall i, i < num_agents g -> is_strategy g i (follow (K := K) p i)).
  { intros i Hi before s [Hl _] Hs. unfold follow.
    pose proof (below_each_accepted _ _ (below_each_accepted _ _ (below_each_accepted _ _ E2 i Hi) _ Hl) s Hs) as R.
    apply require_accepted, is_distribution_true in R. destruct R as [R1 R2]. split; [|exact R2].
    intros x Hx. apply R1, in_seq. lia. }
  apply nash_by_bounds with (multipliers := multipliers)
    (low := fun j => nth j (map (fun j => value_below n g (dynamics g) p (cost g j)) (seq 0 (num_constraints g))) 0%Q)
    (above := fun i => bound n (dynamics g) (by_state (dynamics g) (deviated n g (dynamics g) p i (lagrangian g multipliers i))))
    (below := fun i => value_below n g (dynamics g) p (lagrangian g multipliers i)); [exact good | exact plays | | | |].
  - intros i j Hi Hj. apply (require_accepted _ _ (below_each_accepted _ _ (below_each_accepted _ _ E3 i Hi) j Hj)).
  - intros j Hj. pose proof (require_accepted _ _ (below_each_accepted _ _ E4 j Hj)) as R. apply Qle_bool_iff in R.
    eapply le_trans; [|apply inj_le, R]. apply value_above_le; [exact good | exact plays|]. intros. apply le_refl.
  - intros j Hj. rewrite nth_map_seq by exact Hj. apply value_below_le; assumption.
  - intros i Hi. split; [|split].
    + intros d Hd. apply deviated_le; [exact good | exact plays | exact Hi | exact Hd | intros; apply le_refl].
    + apply value_below_le; assumption.
    + apply Qle_bool_iff. apply (require_accepted _ _ (below_each_accepted _ _ E5 i Hi)).
Qed.

Theorem check_infeasible_sound n g multipliers : check_infeasible n g multipliers = Accepted -> infeasible K g.
Proof.
  unfold check_infeasible. intros E.
  apply both_accepted in E. destruct E as [E1 E]. apply both_accepted in E. destruct E as [E2 E3].
  assert (good : is_process K (dynamics g)) by (eapply check_process_sound, E1). split; [exact good|].
  intros b Hb Hf. apply require_accepted in E3. unfold margin in E3.
  set (W := fun h s a => total_of _ _) in E3. set (B := bound _ _ _) in E3. set (T := total_of _ _) in E3.
  assert (HB : (value (dynamics g) (fun h s a => inj (W h s a)) b <= inj B)%num)
    by (apply best_of_le; [exact good | exact Hb | intros; apply le_refl]).
  assert (HW : value (dynamics g) (fun h s a => inj (W h s a)) b = (zero - sum (seq 0 (num_constraints g)) (fun j =>
    inj (multipliers j) * value (dynamics g) (fun h s a => inj (cost g j h s a)) b))%num).
  { rewrite <- (value_zero (dynamics g) b), <- (value_lagrangian (dynamics g) b (seq 0 (num_constraints g))
      (fun _ _ _ => zero) (fun j => inj (multipliers j)) (fun j h s a => inj (cost g j h s a))).
    apply value_ext. intros h s a _ _ _. unfold W. rewrite inj_total.
    rewrite (sum_ext _ _ (fun j => zero - inj (multipliers j) * inj (cost g j h s a))%num)
      by (intros; rewrite inj_opp, inj_mul; reflexivity).
    rewrite sum_minus, sum_zero. reflexivity. }
  assert (HC : (sum (seq 0 (num_constraints g)) (fun j =>
    inj (multipliers j) * value (dynamics g) (fun h s a => inj (cost g j h s a)) b) <= inj T)%num).
  { unfold T. rewrite inj_total. apply sum_le. intros j Hj. apply in_seq in Hj. rewrite inj_mul. apply times_mono.
    - assert (Hj' : j < num_constraints g) by lia.
      pose proof (below_each_accepted _ _ E2 j Hj') as M. apply require_accepted in M. apply inj_nonneg, M.
    - apply Hf. lia. }
  assert (H : (0 <= add B T)%Q).
  { apply (of_Q_le K). rewrite inj_zero, inj_add. rewrite HW in HB.
    pose proof (plus_mono _ _ _ _ HB HC) as S. set (x := sum _ _) in S.
    replace (zero - x + x)%num with (@zero K) in S by ring. exact S. }
  apply negb_true_iff in E3.
  assert (F : Qle_bool (- add B T) 0 = true); [|congruence].
  apply Qle_bool_iff. apply (Qopp_le_compat 0). exact H.
Qed.

End Soundness.
