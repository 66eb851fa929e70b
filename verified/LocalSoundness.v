(** What the checker of local games accepts is true. *)
From Coq Require Import QArith List Arith Lia Ring Bool.
From Cmpg Require Import Semantics Arithmetic Sums Processes Checker Soundness Intervals Loads LocalSemantics Plays LocalChecker.
Import ListNotations.
Local Open Scope nat_scope.

Section Soundness.
Context {K : numbers}.
Add Ring number_ring : (ring_laws K).
Local Notation inj := (@of_Q K).

(** * Lists *)

Lemma sum_member (l : list nat) e (c : K) : NoDup l ->
  sum l (fun x => if x =? e then c else zero) = if existsb (Nat.eqb e) l then c else zero.
Proof.
  induction l as [|x l IH]; intros D; [reflexivity|]. inversion D as [|? ? N D']; subst. cbn [sum existsb].
  rewrite (Nat.eqb_sym e x). destruct (Nat.eqb_spec x e) as [->|M]; cbn [orb].
  - rewrite sum_nil; [ring|]. intros y Hy. destruct (Nat.eqb_spec y e); [subst; contradiction | reflexivity].
  - rewrite (IH D'). ring.
Qed.

Lemma sum_members (l : list nat) size (v : nat -> K) : NoDup l -> (forall e, In e l -> e < size) ->
  sum l v = sum (seq 0 size) (fun e => if existsb (Nat.eqb e) l then v e else zero).
Proof.
  intros D B. rewrite (sum_ext (seq 0 size) _ (fun e => sum l (fun x => if x =? e then v e else zero)))
    by (intros e _; symmetry; apply sum_member, D).
  rewrite sum_swap. apply sum_ext. intros x Hx. symmetry. apply sum_pick, B, Hx.
Qed.

Lemma map_flat {X Y Z} (g : Y -> Z) (f : X -> list Y) l : map g (flat_map f l) = flat_map (fun x => map g (f x)) l.
Proof. induction l as [|x l IH]; [reflexivity|]. cbn. rewrite map_app, IH. reflexivity. Qed.

Lemma Forall2_total {X} (hs : list nat) (l : list X) f (g : nat -> K) :
  Forall2 (fun h x => encloses (f x) (g h)) hs l -> encloses (total_i l f) (sum hs g).
Proof.
  induction 1 as [|h x hs l H F IH]; [cbn; rewrite <- inj_zero; apply encloses_point|].
  cbn [sum]. destruct l as [|y l].
  - inversion F; subst. cbn. apply encloses_eq with (g h); [ring | exact H].
  - change (total_i (x :: y :: l) f) with (plus_i (f x) (total_i (y :: l) f)). apply encloses_plus; assumption.
Qed.

Lemma Forall2_seq {X} (P : nat -> X -> Prop) d : forall l start size, Forall2 P (seq start size) l ->
  forall k, k < size -> P (start + k) (nth k l d).
Proof.
  intros l start size. revert l start. induction size as [|size IH]; intros l start F k Hk; [lia|].
  inversion F as [|h x hs l' H F']; subst. destruct k as [|k]; cbn [nth].
  - rewrite Nat.add_0_r. exact H.
  - replace (start + S k) with (S start + k) by lia. apply IH; [exact F' | lia].
Qed.

Section Game.
Variable n : precision.
Variable L : local_game.
Variable p : local_policy.
Variable multipliers : nat -> nat -> Q.
Local Notation size := (length (agents L)).
Local Notation H := (local_steps L).
Local Notation E := (num_resources L).
Local Notation x_ i := (agent L i).
Local Notation m_ i := (own L (agent L i)).
Local Notation duals i := (active L multipliers i).

Definition W (i h s a : nat) : K := inj (p i h s a).
Definition occ (i h s : nat) : K := occupancy (m_ i) (W i) h s.

Hypothesis good : forall i, i < size -> is_process K (m_ i) /\ is_behaviour (m_ i) (markov (W i)).
Hypothesis usable : forall i h s a, i < size -> h < H -> s < own_states (x_ i) -> a < own_actions (x_ i) ->
  NoDup (uses (x_ i) h s a) /\ forall e, In e (uses (x_ i) h s a) -> e < E.
Hypothesis duals_nonneg : forall i j, i < size -> j < local_constraints L -> (zero <= inj (multipliers i j))%num.

Lemma W_nonneg i h s a : i < size -> h < H -> s < own_states (x_ i) -> a < own_actions (x_ i) -> (zero <= W i h s a)%num.
Proof.
  intros Hi Hh Hs Ha. destruct (good i Hi) as [_ B].
  assert (In a (actions (m_ i))) by (apply in_seq; cbn; lia).
  assert (P : is_past (m_ i) (repeat (s, a) h)).
  { split; [rewrite repeat_length; exact Hh|]. apply Forall_forall. intros v Hv. apply repeat_spec in Hv. subst v.
    cbn [fst snd]. split; assumption. }
  destruct (B _ s P Hs) as [B1 _]. specialize (B1 a ltac:(assumption)). unfold markov in B1. rewrite repeat_length in B1.
  exact B1.
Qed.

Lemma occ_nonneg i h s : i < size -> h < H -> s < own_states (x_ i) -> (zero <= occ i h s)%num.
Proof. intros Hi Hh Hs. apply (occupancy_nonneg (m_ i) (proj1 (good i Hi)) (W i) (proj2 (good i Hi))); assumption. Qed.

(** * One step forward *)

Definition near (h : nat) (ts : list (tree interval)) : Prop :=
  forall i s, i < size -> s < own_states (x_ i) -> encloses (get (nth i ts (Leaf nothing)) s) (occ i h s).

Definition mass (i h : nat) (v : nat * nat * interval) : K := (occ i h (fst (fst v)) * W i h (fst (fst v)) (snd (fst v)))%num.

Section Step.
Variables i h : nat.
Hypothesis Hi : i < size.
Hypothesis Hh : h < H.
Variable t : tree interval.
Hypothesis Ht : forall s, s < own_states (x_ i) -> encloses (get t s) (occ i h s).
Local Notation vs := (visits n L p i h t).

Lemma visits_known v : In v vs -> fst (fst v) < own_states (x_ i) /\ snd (fst v) < own_actions (x_ i) /\
  (zero <= mass i h v)%num /\ encloses (snd v) (mass i h v).
Proof.
  intros Hv. apply in_flat_map in Hv. destruct Hv as (s & Hs & Hv). apply in_seq in Hs. cbv zeta in Hv.
  destruct (is_zero (high (get t s))); [destruct Hv|]. apply in_flat_map in Hv. destruct Hv as (a & Ha & Hv).
  apply in_seq in Ha. cbv zeta in Hv. destruct (is_zero (p i h s a)); [destruct Hv|]. destruct Hv as [<-|[]].
  unfold mass. cbn [fst snd]. assert (P : (zero <= W i h s a)%num) by (apply W_nonneg; lia).
  split; [lia|]. split; [lia|]. split; [apply le_times; [apply occ_nonneg; lia | exact P]|].
  apply encloses_eq with (inj (p i h s a) * occ i h s)%num; [unfold W; ring|].
  apply encloses_scale; [exact P | apply Ht; lia].
Qed.

(** A sum over the visits is a sum over all states and actions. *)
Lemma visits_sum (u : nat -> nat -> K) :
  sum vs (fun v => mass i h v * u (fst (fst v)) (snd (fst v)))%num
  = sum (seq 0 (own_states (x_ i))) (fun s => sum (seq 0 (own_actions (x_ i))) (fun a => occ i h s * (W i h s a * u s a)))%num.
Proof.
  unfold visits. rewrite sum_flat. apply sum_ext. intros s Hs. apply in_seq in Hs.
  destruct (is_zero (high (get t s))) eqn:Z.
  - cbn. symmetry. apply sum_nil. intros a _.
    rewrite (encloses_nothing (get t s) (occ i h s)); [ring | apply occ_nonneg; lia | apply Ht; lia | exact Z].
  - rewrite sum_flat. apply sum_ext. intros a _. destruct (is_zero (p i h s a)) eqn:Q.
    + cbn. unfold W. rewrite (inj_is_zero _ Q). ring.
    + cbn. unfold mass. cbn [fst snd]. ring.
Qed.

Lemma blank_spans size' : spans 0 size' (blank size').
Proof. apply spans_tabulate. Qed.

Lemma blank_get size' s : s < size' -> encloses (get (blank size') s) (@zero K).
Proof. intros Hs. unfold blank. rewrite get_tabulate by exact Hs. rewrite <- inj_zero. apply encloses_point. Qed.

Lemma advance_near s : s < own_states (x_ i) -> encloses (get (advance n L i h vs) s) (occ i (S h) s).
Proof.
  intros Hs. unfold advance.
  set (next := fun v : nat * nat * interval => own_next (x_ i) h (fst (fst v)) (snd (fst v))).
  set (l := flat_map (fun v => map (pair v) (next v)) vs).
  replace (flat_map _ vs) with (map (fun x : (nat * nat * interval) * (nat * Q) => (fst (snd x), scale n (snd (snd x)) (snd (fst x)))) l)
    by (unfold l; rewrite map_flat; apply flat_map_ext; intros v; rewrite map_map; reflexivity).
  eapply encloses_eq; [|apply (encloses_scatter (fun x : (nat * nat * interval) * (nat * Q) => fst (snd x))
    (fun x => scale n (snd (snd x)) (snd (fst x))) (fun x => inj (snd (snd x)) * mass i h (fst x))%num (own_states (x_ i)) s Hs
    l (blank (own_states (x_ i))) zero (blank_spans _))].
  - unfold l. rewrite sum_flat.
    rewrite (sum_ext vs _ (fun v => mass i h v * sum (next v) (fun entry => if fst entry =? s then inj (snd entry) else zero))%num).
    + unfold next. rewrite (visits_sum (fun s' a => sum (own_next (x_ i) h s' a) (fun entry => if fst entry =? s then inj (snd entry) else zero))).
      unfold occ at 2. cbn [occupancy]. change (states (m_ i)) with (own_states (x_ i)).
      change (actions (m_ i)) with (seq 0 (own_actions (x_ i))). change (transition (m_ i)) with (own_next (x_ i)).
      transitivity (sum (seq 0 (own_states (x_ i))) (fun s0 => sum (seq 0 (own_actions (x_ i))) (fun a => occ i h s0 *
        (W i h s0 a * sum (own_next (x_ i) h s0 a) (fun entry => if fst entry =? s then inj (snd entry) else zero)))))%num; [ring|].
      apply sum_ext. intros s' _. apply sum_ext. intros a _. unfold occ. ring.
    + intros v _. rewrite sum_map, <- sum_scale. apply sum_ext. intros e _. cbn [fst snd]. destruct (fst e =? s); ring.
  - intros [v e] Hx. unfold l in Hx. apply in_flat_map in Hx. destruct Hx as (v' & Hv & Hx). apply in_map_iff in Hx.
    destruct Hx as (e' & Ee & He). inversion Ee; subst. cbn [fst snd].
    destruct (visits_known v Hv) as (B1 & B2 & _). destruct (good i Hi) as [(_ & _ & Hrow) _].
    destruct (Hrow h (fst (fst v)) (snd (fst v)) Hh B1) as [Hin _]; [apply in_seq; cbn; lia|].
    destruct (Hin e He) as [B3 B4]. split; [exact B3|]. apply encloses_scale; [exact B4 | apply visits_known, Hv].
  - apply blank_get, Hs.
Qed.

Definition rate (k h' e : nat) : K :=
  sum (seq 0 (own_states (x_ k))) (fun s => sum (seq 0 (own_actions (x_ k))) (fun a =>
    occ k h' s * (W k h' s a * (if existsb (Nat.eqb e) (uses (x_ k) h' s a) then one else zero))))%num.

Lemma usage_near e : e < E -> encloses (get (usage L (blank E) i h vs) e) (rate i h e).
Proof.
  intros He. unfold usage.
  set (used_by := fun v : nat * nat * interval => uses (x_ i) h (fst (fst v)) (snd (fst v))).
  set (l := flat_map (fun v => map (pair v) (used_by v)) vs).
  replace (flat_map _ vs) with (map (fun x : (nat * nat * interval) * nat => (snd x, snd (fst x))) l)
    by (unfold l; rewrite map_flat; apply flat_map_ext; intros v; rewrite map_map; reflexivity).
  eapply encloses_eq; [|apply (encloses_scatter (fun x : (nat * nat * interval) * nat => snd x)
    (fun x => snd (fst x)) (fun x => mass i h (fst x)) E e He l (blank E) zero (blank_spans _))].
  - unfold l. rewrite sum_flat.
    rewrite (sum_ext vs _ (fun v => mass i h v * (if existsb (Nat.eqb e) (used_by v) then one else zero))%num).
    + unfold used_by. rewrite (visits_sum (fun s a => if existsb (Nat.eqb e) (uses (x_ i) h s a) then one else zero)).
      unfold rate. ring.
    + intros v Hv. rewrite sum_map. cbn [fst snd]. destruct (visits_known v Hv) as (B1 & B2 & _).
      rewrite (sum_member (used_by v) e (mass i h v)) by (apply (usable i h _ _ Hi Hh B1 B2)).
      destruct (existsb (Nat.eqb e) (used_by v)); ring.
  - intros [v k] Hx. unfold l in Hx. apply in_flat_map in Hx. destruct Hx as (v' & Hv & Hx). apply in_map_iff in Hx.
    destruct Hx as (k' & Ek & Hk). inversion Ek; subst. cbn [fst snd].
    destruct (visits_known v Hv) as (B1 & B2 & _). split; [apply (usable i h _ _ Hi Hh B1 B2), Hk | apply visits_known, Hv].
  - apply blank_get, He.
Qed.

End Step.

Lemma rate_nonneg i h e : i < size -> h < H -> (zero <= rate i h e)%num.
Proof.
  intros Hi Hh. apply sum_nonneg. intros s Hs. apply in_seq in Hs. apply sum_nonneg. intros a Ha. apply in_seq in Ha.
  apply le_times; [apply occ_nonneg; lia|]. apply le_times; [apply W_nonneg; lia|].
  destruct (existsb _ _); [apply one_nonneg | apply le_refl].
Qed.

(** The rates are the probabilities of use. *)
Lemma rate_true who i h e : i < size -> h < H -> who i = markov (W i) -> user_rate L who h e i (x_ i) = rate i h e.
Proof.
  intros Hi Hh Hw. rewrite user_rate_value by exact Hh. rewrite Hw.
  rewrite (value_forward (m_ i) (proj1 (good i Hi)) (W i) (proj2 (good i Hi))).
  change (horizon (m_ i)) with H. change (states (m_ i)) with (own_states (x_ i)).
  change (actions (m_ i)) with (seq 0 (own_actions (x_ i))).
  rewrite (sum_ext _ _ (fun k => if h =? k then rate i k e else zero)).
  - apply (sum_pick H h (fun k => rate i k e) Hh).
  - intros k _. rewrite (Nat.eqb_sym h k). destruct (Nat.eqb_spec k h) as [->|N]; [reflexivity|].
    apply sum_nil. intros s _. apply sum_nil. intros a _. ring.
Qed.

(** * Loads *)

(** The expectation of a function of the load, of all agents and of all but one. *)
Definition over_all (h e : nat) (f : nat -> Q) : K := mean (map (fun k => rate k h e) (seq 0 size)) (fun m => inj (f m)).
Definition over_others (i h e : nat) (f : nat -> Q) : K :=
  mean (map (fun k => rate k h e) (except i (seq 0 size))) (fun m => inj (f m)).

Definition is_users (h e : nat) (users : list (nat * interval)) : Prop :=
  (forall f, encloses (of_all (share_at n users f)) (over_all h e f)) /\
  forall i f, i < size -> encloses (share_of (share_at n users f) i) (over_others i h e f).

Lemma users_near h e (rates : list (tree interval)) : h < H ->
  (forall i, i < size -> encloses (get (nth i rates (Leaf nothing)) e) (rate i h e)) -> is_users h e (users_of L rates e).
Proof.
  intros Hh R.
  set (keep := fun i => negb (is_zero (high (get (nth i rates (Leaf nothing)) e)))).
  assert (U : map fst (users_of L rates e) = filter keep (seq 0 size)).
  { unfold users_of, count. induction (seq 0 size) as [|k l IH]; [reflexivity|]. cbn [map filter snd]. unfold keep at 1.
    destruct (is_zero (high (get (nth k rates (Leaf nothing)) e))); cbn [negb map fst]; rewrite IH; reflexivity. }
  assert (N : forall k, k < size -> keep k = false -> rate k h e = zero).
  { intros k Hk Z. unfold keep in Z. apply negb_false_iff in Z.
    apply (encloses_nothing (get (nth k rates (Leaf nothing)) e)); [apply rate_nonneg; assumption | apply R, Hk | exact Z]. }
  assert (Kn : known (fun k => rate k h e) (users_of L rates e)).
  { intros u Hu. apply filter_In in Hu. destruct Hu as [Hu _]. apply in_map_iff in Hu. destruct Hu as (k & <- & Hk).
    apply in_seq in Hk. unfold count in Hk. cbn [fst snd]. split; [apply rate_nonneg; lia | apply R; lia]. }
  split.
  - intros f. apply (of_all_encloses n (fun k => rate k h e) size _ keep U N Kn f).
  - intros i f Hi. apply (share_of_encloses n (fun k => rate k h e) size _ keep U N Kn f i Hi).
Qed.

(** * Induced rewards *)

Definition mean_delay (i h e : nat) : K := over_others i h e (fun m => delay L h e (S m)).
Definition mean_addition (j i h e : nat) : K :=
  over_others i h e (fun m => sub (load_cost L j h e (S m)) (load_cost L j h e m)).
Definition PRICE (i h e : nat) : K :=
  (zero - (mean_delay i h e + sum (duals i) (fun dual => inj (snd dual) * mean_addition (fst dual) i h e)))%num.
Definition LAGRANGIAN (i h s a : nat) : K :=
  (inj (private L i (duals i) h s a) + sum (uses (x_ i) h s a) (fun e => PRICE i h e))%num.

Lemma duals_in i dual : i < size -> In dual (duals i) -> fst dual < local_constraints L /\ (zero <= inj (snd dual))%num.
Proof.
  intros Hi Hd. apply filter_In in Hd. destruct Hd as [Hd _]. apply in_map_iff in Hd. destruct Hd as (j & <- & Hj).
  apply in_seq in Hj. cbn [fst snd]. split; [lia | apply duals_nonneg; lia].
Qed.

(** Constraints whose multiplier is zero can be left out. *)
Lemma duals_sum i (u : nat -> K) :
  sum (duals i) (fun dual => inj (snd dual) * u (fst dual))%num
  = sum (seq 0 (local_constraints L)) (fun j => inj (multipliers i j) * u j)%num.
Proof.
  unfold active. induction (seq 0 (local_constraints L)) as [|j l IH]; [reflexivity|]. cbn [map filter snd sum].
  destruct (is_zero (multipliers i j)) eqn:Z; cbn [negb].
  - rewrite IH, (inj_is_zero _ Z). ring.
  - cbn [sum fst snd]. rewrite IH. reflexivity.
Qed.

Lemma price_near i h e r : i < size ->
  encloses (share_of (delays r) i) (mean_delay i h e) ->
  (forall j, j < local_constraints L -> encloses (share_of (nth j (additions r) no_share) i) (mean_addition j i h e)) ->
  encloses (price n i (duals i) r) (PRICE i h e).
Proof.
  intros Hi D A. unfold price, PRICE. apply encloses_minus; [rewrite <- inj_zero; apply encloses_point|].
  apply encloses_plus; [exact D|]. apply encloses_total. intros dual Hd. destruct (duals_in i dual Hi Hd) as [B P].
  apply encloses_scale; [exact P | apply A, B].
Qed.

(** * Steps *)

Definition step_near (h : nat) (st : step) : Prop :=
  (forall i e, i < size -> e < E -> encloses (price n i (duals i) (get (resources st) e)) (PRICE i h e)) /\
  (forall j, j < local_constraints L -> encloses (nth j (charges st) nothing)
     (sum (seq 0 size) (fun i => sum (seq 0 (own_states (x_ i))) (fun s => sum (seq 0 (own_actions (x_ i))) (fun a =>
        occ i h s * (W i h s a * inj (private_cost (x_ i) j h s a)))))
      + sum (seq 0 E) (fun e => over_all h e (load_cost L j h e)))%num) /\
  (forall i, i < size -> encloses (nth i (worths st) nothing)
     (sum (seq 0 (own_states (x_ i))) (fun s => sum (seq 0 (own_actions (x_ i))) (fun a =>
        occ i h s * (W i h s a * LAGRANGIAN i h s a))))%num).

Lemma step_at_near h ts : h < H -> near h ts ->
  step_near h (step_at n L multipliers (blank E) h (map (fun i => visits n L p i h (nth i ts (Leaf nothing))) (seq 0 size))).
Proof.
  intros Hh Hn. set (vss := map _ _).
  assert (V : forall i, i < size -> nth i vss [] = visits n L p i h (nth i ts (Leaf nothing))) by
    (intros i Hi; apply (nth_map_seq (fun i => visits n L p i h (nth i ts (Leaf nothing))) size i [] Hi)).
  unfold step_at, count. set (rates := map _ (seq 0 size)).
  assert (U : forall e, e < E -> is_users h e (get (tabulate [] E (users_of L rates)) e)).
  { intros e He. rewrite get_tabulate by exact He. apply users_near; [exact Hh|]. intros i Hi. unfold rates.
    rewrite nth_map_seq by exact Hi. rewrite V by exact Hi. apply usage_near; auto. }
  set (users := tabulate [] E (users_of L rates)) in *. cbv zeta. set (rs := tabulate no_resource E _).
  assert (P : forall i e, i < size -> e < E -> encloses (price n i (duals i) (get rs e)) (PRICE i h e)).
  { intros i e Hi He. unfold rs. rewrite get_tabulate by exact He. apply price_near; [exact Hi | |].
    - apply (proj2 (U e He)), Hi.
    - intros j Hj. cbn [resource_at additions]. rewrite nth_map_seq by exact Hj. apply (proj2 (U e He)), Hi. }
  split; [exact P|]. cbn [charges worths]. split.
  - intros j Hj. rewrite nth_map_seq by exact Hj. unfold charge_at, count. apply encloses_plus.
    + apply encloses_total. intros i Hi. apply in_seq in Hi. assert (Hi' : i < size) by lia. rewrite V by exact Hi'.
      assert (Ht : forall s, s < own_states (x_ i) -> encloses (get (nth i ts (Leaf nothing)) s) (occ i h s)) by auto.
      rewrite <- (visits_sum i h Hi' Hh _ Ht (fun s a => inj (private_cost (x_ i) j h s a))).
      apply encloses_total. intros v Hv. destruct (visits_known i h Hi' Hh _ Ht v Hv) as (_ & _ & N & M).
      apply encloses_weigh; [exact N | exact M | apply encloses_rounded].
    + apply encloses_total. intros e He. apply in_seq in He. apply (proj1 (U e ltac:(lia))).
  - intros i Hi. rewrite nth_map_seq by exact Hi. rewrite V by exact Hi. unfold worth.
    assert (Ht : forall s, s < own_states (x_ i) -> encloses (get (nth i ts (Leaf nothing)) s) (occ i h s)) by auto.
    rewrite <- (visits_sum i h Hi Hh _ Ht (LAGRANGIAN i h)).
    apply encloses_total. intros v Hv. destruct (visits_known i h Hi Hh _ Ht v Hv) as (B1 & B2 & N & M).
    apply encloses_weigh; [exact N | exact M|].
    apply encloses_plus; [apply encloses_rounded|]. apply encloses_total. intros e He.
    apply P; [exact Hi | apply (usable i h _ _ Hi Hh B1 B2), He].
Qed.

Lemma forward_near remaining : forall h ts, h + remaining = H -> near h ts ->
  Forall2 step_near (seq h remaining) (forward n L p multipliers (blank E) remaining h ts).
Proof.
  induction remaining as [|k IH]; intros h ts Hh Hn; [constructor|]. cbn [seq forward]. constructor.
  - apply step_at_near; [lia | exact Hn].
  - apply IH; [lia|]. intros i s Hi Hs. unfold count. rewrite !nth_map_seq by exact Hi.
    apply advance_near; [exact Hi | lia | intros s' Hs'; apply Hn; assumption | exact Hs].
Qed.

Lemma all_steps_near : Forall2 step_near (seq 0 H) (all_steps n L p multipliers).
Proof.
  apply forward_near; [reflexivity|]. intros i s Hi Hs. unfold count. rewrite nth_map_seq by exact Hi.
  rewrite get_tabulate by exact Hs. apply encloses_rounded.
Qed.

Local Notation steps := (all_steps n L p multipliers).

(** * Expectations over plays *)

Section Who.
Variable who : nat -> behaviour K nat.
Variable i : nat.
Hypothesis Hi : i < size.
Hypothesis sound : forall k, k < size -> is_behaviour (m_ k) (who k).
Hypothesis others : forall k, k < size -> k <> i -> who k = markov (W k).

Lemma all_masses : masses L who 0 (agents L).
Proof.
  intros k Hk. cbn [Nat.add]. change (nth k (agents L) no_agent) with (x_ k).
  apply (Processes.mass (m_ k) (proj1 (good k Hk)) (who k) (sound k Hk) H []); [constructor | reflexivity].
Qed.

Lemma value_used (k : nat) (f : nat -> nat -> nat -> K) v b : 
  value (m_ k) (fun h s a => f h s a + used L (x_ k) v h s a)%num b
  = (value (m_ k) f b + sum (trail L (x_ k)) (fun t => probability (m_ k) b [] t *
       over_resources L (fun h e => if is_user h e (x_ k) t then v h e else zero)))%num.
Proof.
  rewrite value_plus. f_equal. rewrite value_trail. apply sum_ext. intros t Ht.
  rewrite total_used by (apply (trail_length L (x_ k)), Ht). reflexivity.
Qed.

Lemma expect_over_resources (f : nat -> nat -> list (list (nat * nat)) -> K) :
  expect L who 0 (agents L) (fun ts => over_resources L (fun h e => f h e ts))
  = over_resources L (fun h e => expect L who 0 (agents L) (f h e)).
Proof. unfold over_resources. rewrite expect_sum. apply sum_ext. intros h _. apply expect_sum. Qed.

Lemma over_resources_ext (f g : nat -> nat -> K) : (forall h e, h < H -> e < E -> f h e = g h e) ->
  over_resources L f = over_resources L g.
Proof.
  intros Q. apply sum_ext. intros h Hh. apply in_seq in Hh. apply sum_ext. intros e He. apply in_seq in He. apply Q; lia.
Qed.

Lemma over_resources_plus (f g : nat -> nat -> K) :
  over_resources L (fun h e => f h e + g h e)%num = (over_resources L f + over_resources L g)%num.
Proof. unfold over_resources. rewrite <- sum_plus. apply sum_ext. intros h _. apply sum_plus. Qed.

Lemma over_resources_trail (f : nat -> nat -> list (nat * nat) -> K) k b :
  over_resources L (fun h e => sum (trail L (x_ k)) (fun t => probability (m_ k) b [] t * f h e t)%num)
  = sum (trail L (x_ k)) (fun t => probability (m_ k) b [] t * over_resources L (fun h e => f h e t))%num.
Proof.
  unfold over_resources.
  rewrite (sum_ext (trail L (x_ k)) _ (fun t => sum (seq 0 H) (fun h => sum (seq 0 E) (fun e => probability (m_ k) b [] t * f h e t)))%num).
  - rewrite (sum_swap (trail L (x_ k)) (seq 0 H)). apply sum_ext. intros h _. apply sum_swap.
  - intros t _. rewrite <- sum_scale. apply sum_ext. intros h _. symmetry. apply sum_scale.
Qed.

Lemma load_others h e (f : list (nat * nat) -> nat -> K) : h < H ->
  expect L who 0 (agents L) (fun ts => f (nth i ts []) (load h e (agents L) ts))
  = sum (trail L (x_ i)) (fun t => probability (m_ i) (who i) [] t *
      mean (map (fun k => rate k h e) (except i (seq 0 size))) (fun m => f t ((if is_user h e (x_ i) t then 1 else 0) + m)%nat))%num.
Proof.
  intros Hh. apply (load_one L who h e (fun k => rate k h e) (agents L) 0 i f all_masses Hi).
  intros k Hk N. cbn [Nat.add]. apply rate_true; auto.
Qed.

(** What agent [i] gets is the value of a reward on its own states. *)
Lemma payoff_value :
  expectation L (payoff L i) who
  = value (m_ i) (fun h s a => inj (private_reward (x_ i) h s a) + used L (x_ i) (fun h e => zero - mean_delay i h e)%num h s a)%num (who i).
Proof.
  change (expectation L (payoff L i) who) with (expect L who 0 (agents L) (payoff L i)). unfold payoff. rewrite expect_minus.
  rewrite (expect_one L who (agents L) i (fun t => total (fun h s a => inj (private_reward (x_ i) h s a)) 0 t) all_masses Hi).
  rewrite value_used, expect_over_resources.
  rewrite (over_resources_ext _ (fun h e => sum (trail L (x_ i)) (fun t => probability (m_ i) (who i) [] t *
    (if is_user h e (x_ i) t then mean_delay i h e else zero)))%num).
  - rewrite over_resources_trail. change (nth i (agents L) no_agent) with (x_ i).
    transitivity (value (m_ i) (fun h s a => inj (private_reward (x_ i) h s a)) (who i)
      + (zero - sum (trail L (x_ i)) (fun t => probability (m_ i) (who i) [] t
         * over_resources L (fun h e => if is_user h e (x_ i) t then mean_delay i h e else zero))))%num;
      [rewrite value_trail; unfold law; ring|].
    f_equal. rewrite <- sum_opp. apply sum_ext. intros t _.
    transitivity (probability (m_ i) (who i) [] t * (zero
      - over_resources L (fun h e => if is_user h e (x_ i) t then mean_delay i h e else zero)))%num; [ring|].
    f_equal. unfold over_resources. rewrite <- sum_opp. apply sum_ext. intros h _.
    rewrite <- sum_opp. apply sum_ext. intros e _. destruct (is_user h e (x_ i) t); [reflexivity | ring].
  - intros h e Hh He.
    rewrite (load_others h e (fun t m => if is_user h e (x_ i) t then inj (delay L h e m) else zero) Hh).
    apply sum_ext. intros t _. f_equal. destruct (is_user h e (x_ i) t); [reflexivity | apply mean_const].
Qed.

(** What the other agents are charged, whatever agent [i] does. *)
Definition charge_of_others (j : nat) : K :=
  (sum (seq 0 size) (fun k => if k =? i then zero else value (m_ k) (fun h s a => inj (private_cost (x_ k) j h s a)) (who k))
   + over_resources L (fun h e => over_others i h e (load_cost L j h e)))%num.

Lemma charge_value j :
  expectation L (charge L j) who
  = (value (m_ i) (fun h s a => inj (private_cost (x_ i) j h s a) + used L (x_ i) (mean_addition j i) h s a) (who i)
     + charge_of_others j)%num.
Proof.
  change (expectation L (charge L j) who) with (expect L who 0 (agents L) (charge L j)). unfold charge. rewrite expect_plus, expect_sum.
  rewrite (sum_ext (seq 0 size) _ (fun k => value (m_ k) (fun h s a => inj (private_cost (x_ k) j h s a)) (who k))).
  2:{ intros k Hk. apply in_seq in Hk.
      apply (expect_one L who (agents L) k (fun t => total (fun h s a => inj (private_cost (x_ k) j h s a)) 0 t) all_masses). lia. }
  rewrite (sum_split size i _ Hi), value_used, expect_over_resources. unfold charge_of_others.
  rewrite (over_resources_ext _ (fun h e => sum (trail L (x_ i)) (fun t => probability (m_ i) (who i) [] t *
    (if is_user h e (x_ i) t then mean_addition j i h e else zero)) + over_others i h e (load_cost L j h e))%num).
  - rewrite over_resources_plus, over_resources_trail. ring.
  - intros h e Hh He. rewrite (load_others h e (fun t m => inj (load_cost L j h e m)) Hh).
    set (M := map (fun k => rate k h e) (except i (seq 0 size))).
    pose proof (all_masses i Hi) as One. cbn [Nat.add] in One. 
    change (sum (trail L (x_ i)) (probability (m_ i) (who i) []) = one) in One.
    transitivity (sum (trail L (x_ i)) (fun t => probability (m_ i) (who i) [] t * (if is_user h e (x_ i) t then mean_addition j i h e else zero)
      + probability (m_ i) (who i) [] t * over_others i h e (load_cost L j h e)))%num.
    + apply sum_ext. intros t _. destruct (is_user h e (x_ i) t); cbn [Nat.add].
      * assert (D : mean M (fun m => inj (load_cost L j h e (S m))) = (mean_addition j i h e + over_others i h e (load_cost L j h e))%num).
        { unfold mean_addition, over_others. fold M.
          transitivity (mean M (fun m => one * inj (sub (load_cost L j h e (S m)) (load_cost L j h e m)) + one * inj (load_cost L j h e m))%num).
          - apply mean_ext. intros m _. rewrite inj_sub. ring.
          - rewrite mean_linear. ring. }
        rewrite D. ring.
      * unfold over_others. fold M. ring.
    + rewrite sum_plus, sum_scale_r, One. ring.
Qed.

(** The Lagrangian on own states, and rewards and charges of plays. *)
Lemma lagrangian_value :
  value (m_ i) (LAGRANGIAN i) (who i)
  = (expectation L (payoff L i) who
     - sum (seq 0 (local_constraints L)) (fun j => inj (multipliers i j) * expectation L (charge L j) who)
     + sum (seq 0 (local_constraints L)) (fun j => inj (multipliers i j) * charge_of_others j))%num.
Proof.
  rewrite payoff_value.
  set (R := fun h s a => (inj (private_reward (x_ i) h s a) + used L (x_ i) (fun h e => zero - mean_delay i h e) h s a)%num).
  set (C := fun j h s a => (inj (private_cost (x_ i) j h s a) + used L (x_ i) (mean_addition j i) h s a)%num).
  transitivity (value (m_ i) (fun h s a => R h s a - sum (seq 0 (local_constraints L)) (fun j => inj (multipliers i j) * C j h s a))%num (who i)).
  - apply value_ext. intros h s a Hh Hs Ha. apply in_seq in Ha.
    destruct (usable i h s a Hi Hh Hs ltac:(lia)) as [D B].
    unfold LAGRANGIAN, private. rewrite inj_sub, inj_total.
    rewrite (sum_ext (duals i) _ (fun dual => inj (snd dual) * inj (private_cost (x_ i) (fst dual) h s a))%num) by (intros; apply inj_mul).
    rewrite (duals_sum i (fun j => inj (private_cost (x_ i) j h s a))).
    unfold R, C. rewrite (sum_ext (seq 0 (local_constraints L)) (fun j => inj (multipliers i j) * (_ + _))%num
      (fun j => inj (multipliers i j) * inj (private_cost (x_ i) j h s a)
        + inj (multipliers i j) * used L (x_ i) (mean_addition j i) h s a)%num) by (intros; ring).
    rewrite sum_plus.
    assert (U : sum (uses (x_ i) h s a) (fun e => PRICE i h e)
      = (used L (x_ i) (fun h e => zero - mean_delay i h e) h s a
         - sum (seq 0 (local_constraints L)) (fun j => inj (multipliers i j) * used L (x_ i) (mean_addition j i) h s a))%num).
    { rewrite (sum_ext (seq 0 (local_constraints L)) _ (fun j => sum (uses (x_ i) h s a) (fun e => inj (multipliers i j) * mean_addition j i h e)%num))
        by (intros j _; unfold used; rewrite <- (sum_members (uses (x_ i) h s a) E (fun e => mean_addition j i h e) D B); symmetry; apply sum_scale).
      unfold used. rewrite <- (sum_members (uses (x_ i) h s a) E (fun e => zero - mean_delay i h e)%num D B).
      rewrite sum_swap, <- sum_minus. apply sum_ext. intros e _. unfold PRICE.
      rewrite (duals_sum i (fun j => mean_addition j i h e)). ring. }
    rewrite U. ring.
  - rewrite value_lagrangian. fold R.
    rewrite (sum_ext (seq 0 (local_constraints L)) (fun j => inj (multipliers i j) * expectation L (charge L j) who)%num
      (fun j => inj (multipliers i j) * value (m_ i) (C j) (who i) + inj (multipliers i j) * charge_of_others j)%num)
      by (intros j _; rewrite charge_value; unfold C; ring).
    rewrite sum_plus. ring.
Qed.

End Who.

Lemma charge_of_others_same who who' i j : (forall k, k < size -> k <> i -> who k = who' k) ->
  charge_of_others who i j = charge_of_others who' i j.
Proof.
  intros Q. unfold charge_of_others. f_equal. apply sum_ext. intros k Hk. apply in_seq in Hk.
  destruct (Nat.eqb_spec k i) as [_|N]; [reflexivity|]. rewrite (Q k); [reflexivity | lia | exact N].
Qed.

(** The costs of the policy, from the steps. *)
Lemma charge_near j : j < local_constraints L ->
  encloses (total_i steps (fun st => nth j (charges st) nothing)) (expectation L (charge L j) (local_follow (K := K) p)).
Proof.
  intros Hj.
  assert (sound : forall k, k < size -> is_behaviour (m_ k) (local_follow (K := K) p k)) by (intros k Hk; apply good, Hk).
  eapply encloses_eq; [|apply Forall2_total with (hs := seq 0 H) (g := fun h =>
    (sum (seq 0 size) (fun i => sum (seq 0 (own_states (x_ i))) (fun s => sum (seq 0 (own_actions (x_ i))) (fun a =>
        occ i h s * (W i h s a * inj (private_cost (x_ i) j h s a)))))
      + sum (seq 0 E) (fun e => over_all h e (load_cost L j h e)))%num)].
  - rewrite sum_plus.
    change (expectation L (charge L j) (local_follow (K := K) p)) with (expect L (local_follow (K := K) p) 0 (agents L) (charge L j)).
    unfold charge. rewrite expect_plus, expect_sum, expect_over_resources. f_equal.
    + rewrite sum_swap. apply sum_ext. intros k Hk. apply in_seq in Hk. assert (Hk' : k < size) by lia. symmetry.
      etransitivity; [apply (expect_one L (local_follow (K := K) p) (agents L) k
        (fun t => total (fun h s a => inj (private_cost (x_ k) j h s a)) 0 t) (all_masses _ sound)); lia|].
      apply (value_forward (m_ k) (proj1 (good k Hk')) (W k) (proj2 (good k Hk'))).
    + apply sum_ext. intros h Hh. apply in_seq in Hh. apply sum_ext. intros e _. symmetry.
      apply (load_all L (local_follow (K := K) p) h e (fun k => rate k h e) (agents L) 0 (fun m => inj (load_cost L j h e m)) (all_masses _ sound)).
      intros k Hk. cbn [Nat.add]. apply rate_true; [exact Hk | lia | reflexivity].
  - pose proof all_steps_near as F. induction F as [|h st hs l S F IH]; constructor; [apply S, Hj | exact IH].
Qed.

Lemma worth_near i : i < size ->
  encloses (total_i steps (fun st => nth i (worths st) nothing)) (value (m_ i) (LAGRANGIAN i) (local_follow (K := K) p i)).
Proof.
  intros Hi. eapply encloses_eq; [symmetry; apply (value_forward (m_ i) (proj1 (good i Hi)) (W i) (proj2 (good i Hi)))|].
  apply Forall2_total. pose proof all_steps_near as F.
  change (horizon (m_ i)) with H. induction F as [|h st hs l S F IH]; constructor; [apply S, Hi | exact IH].
Qed.

(** The best deviation of one agent. *)
Lemma best_near i d : i < size -> is_behaviour (m_ i) d ->
  (value (m_ i) (LAGRANGIAN i) d <= inj (bound n (m_ i) (best_layer n L multipliers steps i)))%num.
Proof.
  intros Hi Hd. apply bound_le; [apply good, Hi | exact Hd|]. intros before s next Hp Hs. unfold best_layer.
  change (states (m_ i)) with (own_states (x_ i)) in Hs.
  destruct (Hd before s Hp Hs) as [Hpos Hone]. set (h := length before) in *.
  assert (Hh : h < H) by apply Hp.
  pose proof (Forall2_seq step_near no_step _ _ _ all_steps_near h Hh) as St. cbn [Nat.add] in St.
  set (rs := resources (nth h steps no_step)). set (prices := tabulate 0%Q E _).
  rewrite get_tabulate by exact Hs. set (now := fun a => add (up n (private L i (duals i) h s a)) (total_of (uses (x_ i) h s a) (get prices))).
  set (best := largest _ _).
  apply le_trans with (sum (actions (m_ i)) (fun a => d before s a * inj best))%num; [|apply le_eq; rewrite sum_scale_r, Hone; ring].
  apply sum_le. intros a Ha. apply times_mono; [apply Hpos, Ha|].
  assert (Ha' : a < own_actions (x_ i)) by (apply in_seq in Ha; lia).
  eapply le_trans; [apply (outcome_le n (m_ i) _ (now a) next h s a)|].
  - unfold LAGRANGIAN, now. rewrite inj_add, inj_total. apply plus_mono; [apply inj_le, up_le|].
    apply sum_le. intros e He. destruct (usable i h s a Hi Hh Hs Ha') as [_ B]. unfold prices. rewrite get_tabulate by (apply B, He).
    apply St; [exact Hi | apply B, He].
  - exact Hh.
  - exact Hs.
  - exact Ha.
  - apply inj_le. unfold best. apply (largest_le (seq 0 (own_actions (x_ i))) (fun a => outcome n (m_ i) (now a) next h s a) a Ha).
Qed.

End Game.

Lemma is_usage_true L l : is_usage L l = true -> NoDup l /\ forall e, In e l -> e < num_resources L.
Proof.
  induction l as [|e l IH]; cbn [is_usage]; intros Q; [split; [constructor | intros e []]|].
  apply andb_true_iff in Q. destruct Q as [Q Q3]. apply andb_true_iff in Q. destruct Q as [Q1 Q2].
  destruct (IH Q3) as [D B]. split.
  - constructor; [|exact D]. intros C. apply negb_true_iff in Q2.
    assert (T : existsb (Nat.eqb e) l = true) by (apply existsb_exists; exists e; split; [exact C | apply Nat.eqb_refl]). congruence.
  - intros e' [<-|He]; [apply Nat.ltb_lt, Q1 | apply B, He].
Qed.

Theorem check_local_sound n L p multipliers eps : check_local n L p multipliers eps = Accepted -> local_nash K L p eps.
Proof.
  unfold check_local, count. intros Q.
  apply both_accepted in Q. destruct Q as [Q1 Q]. apply both_accepted in Q. destruct Q as [Q2 Q]. cbv zeta in Q.
  apply both_accepted in Q. destruct Q as [Q3 Q4].
  assert (agent_ok : forall i, i < length (agents L) -> is_process K (own L (agent L i)) /\
    forall h s, h < local_steps L -> s < own_states (agent L i) ->
      is_distribution (seq 0 (own_actions (agent L i))) (p i h s) = true /\
      forall a, a < own_actions (agent L i) -> is_usage L (uses (agent L i) h s a) = true).
  { intros i Hi. pose proof (below_each_accepted _ _ Q1 i Hi) as R. unfold check_agent in R. cbv zeta in R.
    apply both_accepted in R. destruct R as [R1 R2]. split; [eapply check_process_sound, R1|].
    intros h s Hh Hs. pose proof (below_each_accepted _ _ (below_each_accepted _ _ R2 h Hh) s Hs) as R. cbn beta in R.
    apply both_accepted in R. destruct R as [R3 R4]. split; [apply (require_accepted _ _ R3)|].
    intros a Ha. apply (require_accepted _ _ (below_each_accepted _ _ R4 a Ha)). }
  assert (good : forall i, i < length (agents L) -> is_process K (own L (agent L i)) /\
    is_behaviour (own L (agent L i)) (markov (W p i))).
  { intros i Hi. destruct (agent_ok i Hi) as [P F]. split; [exact P|]. intros before s [Hl _] Hs.
    destruct (F (length before) s Hl Hs) as [D _]. apply (is_distribution_true (K := K)) in D. exact D. }
  assert (usable : forall i h s a, i < length (agents L) -> h < local_steps L -> s < own_states (agent L i) ->
    a < own_actions (agent L i) -> NoDup (uses (agent L i) h s a) /\ forall e, In e (uses (agent L i) h s a) -> e < num_resources L).
  { intros i h s a Hi Hh Hs Ha. apply is_usage_true. destruct (agent_ok i Hi) as [_ F]. apply (F h s Hh Hs), Ha. }
  assert (duals_ok : forall i j, i < length (agents L) -> j < local_constraints L ->
    (zero <= @of_Q K (multipliers i j))%num /\ (local_binds L i j = true \/ @of_Q K (multipliers i j) = zero)).
  { intros i j Hi Hj. pose proof (require_accepted _ _ (below_each_accepted _ _ (below_each_accepted _ _ Q2 i Hi) j Hj)) as R.
    apply andb_true_iff in R. destruct R as [R1 R2]. split; [apply inj_nonneg, R1|].
    apply orb_true_iff in R2. destruct R2 as [R2|R2]; [left; exact R2 | right; apply inj_is_zero, R2]. }
  assert (nonneg : forall i j, i < length (agents L) -> j < local_constraints L -> (zero <= @of_Q K (multipliers i j))%num)
    by (intros; apply duals_ok; assumption).
  split; [exact good|]. split.
  - intros j Hj. unfold local_meets.
    pose proof (require_accepted _ _ (below_each_accepted _ _ Q3 j Hj)) as R. rewrite nth_map_seq in R by exact Hj.
    apply Qle_bool_iff in R. eapply le_trans; [|apply inj_le, R].
    apply (charge_near n L p multipliers good usable nonneg j Hj).
  - intros i d Hi Hd Hf.
    pose proof (require_accepted _ _ (below_each_accepted _ _ Q4 i Hi)) as R. apply Qle_bool_iff in R.
    apply (inj_le (K := K)) in R. unfold local_gain in R. rewrite inj_add, inj_sub, inj_total in R.
    set (who := local_follow (K := K) p) in *. set (who' := local_deviate i d who) in *.
    assert (sound : forall k, k < length (agents L) -> is_behaviour (own L (agent L k)) (who k)) by (intros k Hk; apply good, Hk).
    assert (self : who' i = d) by (unfold who', local_deviate; rewrite Nat.eqb_refl; reflexivity).
    assert (others : forall k, k < length (agents L) -> k <> i -> who' k = markov (W p k)).
    { intros k _ N. unfold who', local_deviate. destruct (Nat.eqb_spec k i); [contradiction | reflexivity]. }
    assert (sound' : forall k, k < length (agents L) -> is_behaviour (own L (agent L k)) (who' k)).
    { intros k Hk. destruct (Nat.eq_dec k i) as [->|N]; [rewrite self; exact Hd | rewrite (others k Hk N); apply good, Hk]. }
    pose proof (lagrangian_value L p multipliers good usable who i Hi sound (fun k _ _ => eq_refl)) as E1.
    pose proof (lagrangian_value L p multipliers good usable who' i Hi sound' others) as E2.
    rewrite self in E2.
    rewrite (sum_ext (seq 0 (local_constraints L)) (fun j => of_Q (multipliers i j) * charge_of_others L p who' i j)%num
      (fun j => of_Q (multipliers i j) * charge_of_others L p who i j)%num) in E2
      by (intros j _; rewrite (charge_of_others_same L p who' who i j others); reflexivity).
    set (costs := map low _) in R.
    set (V := value (own L (agent L i)) (LAGRANGIAN L p multipliers i) (who i)) in *.
    set (V' := value (own L (agent L i)) (LAGRANGIAN L p multipliers i) d) in *.
    set (O := sum (seq 0 (local_constraints L)) (fun j => of_Q (multipliers i j) * charge_of_others L p who i j)%num) in *.
    eapply le_trans; [apply (duality (seq 0 (local_constraints L)) (multipliers i) (local_threshold L) (fun j => nth j costs 0%Q)
      (expectation L (payoff L i) who) (expectation L (payoff L i) who') (V - O)%num (V' - O)%num
      (fun j => expectation L (charge L j) who) (fun j => expectation L (charge L j) who'))|].
    + rewrite E1. ring.
    + rewrite E2. ring.
    + intros j Hj. apply in_seq in Hj. apply nonneg; lia.
    + intros j Hj. apply in_seq in Hj. destruct (duals_ok i j Hi ltac:(lia)) as [_ [B|Z]]; [right; apply Hf; [lia | exact B] | left; exact Z].
    + intros j Hj. apply in_seq in Hj. assert (Hj' : j < local_constraints L) by lia. unfold costs. rewrite map_map.
      rewrite nth_map_seq by exact Hj'. apply (charge_near n L p multipliers good usable nonneg j Hj').
    + apply plus_mono; [apply le_refl|]. eapply le_trans; [|exact R]. apply plus_mono.
      * replace (V' - O - (V - O))%num with (V' - V)%num by ring. apply minus_mono.
        -- apply (best_near n L p multipliers good usable nonneg i d Hi Hd).
        -- apply (worth_near n L p multipliers good usable nonneg i Hi).
      * apply le_eq. apply sum_ext. intros j _. rewrite inj_mul, inj_sub. reflexivity.
Qed.

End Soundness.
