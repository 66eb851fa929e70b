(** Expectations of functions of the load: of all users of a resource, and of all but one.

    The function is a table by load.  A user with probability q turns the table f into q f(1 + m) + (1 - q) f(m), which is
    one entry shorter; after all users one entry is left. *)
From Coq Require Import QArith List Arith Lia Ring.
From Cmpg Require Import Semantics Arithmetic Sums Intervals.
Import ListNotations.
Local Open Scope nat_scope.

Fixpoint mix (n : precision) (q : interval) (l : list interval) : list interval :=
  match l with
  | x :: ((y :: _) as rest) => plus_i x (weigh n q (minus_i y x)) :: mix n q rest
  | _ => []
  end.

Fixpoint mix_all (n : precision) (qs l : list interval) : list interval :=
  match qs with
  | [] => l
  | q :: rest => mix_all n rest (mix n q l)
  end.

(** For each user, the expectation over all others: each half of the users is mixed in before the other half is asked. *)
Fixpoint leave_one_out (n : precision) (fuel : nat) (users : list (nat * interval)) (l : list interval) : list (nat * interval) :=
  match fuel, users with
  | _, [] => []
  | _, [(i, _)] => [(i, hd (point 0) l)]
  | 0, _ => []
  | S fuel, _ =>
      let half := Nat.div2 (length users) in
      let left := firstn half users in
      let right := skipn half users in
      leave_one_out n fuel left (mix_all n (map snd right) l) ++ leave_one_out n fuel right (mix_all n (map snd left) l)
  end.

Record share := Share { of_all : interval; of_others : list (nat * interval) }.

Definition share_of (s : share) (i : nat) : interval :=
  match find (fun entry => fst entry =? i) (of_others s) with
  | Some entry => snd entry
  | None => of_all s
  end.

(** [users] are the agents that use a resource with positive probability. *)
Definition share_at (n : precision) (users : list (nat * interval)) (f : nat -> Q) : share :=
  let l := map (fun m => rounded n (f m)) (seq 0 (S (length users))) in
  Share (hd (point 0) (mix_all n (map snd users) l)) (leave_one_out n (length users) users l).

Section Loads.
Context {K : numbers}.
Add Ring number_ring : (ring_laws K).
Local Notation inj := (@of_Q K).

(** The expectation of [f] of how many of independent events happen. *)
Fixpoint mean (qs : list K) (f : nat -> K) : K :=
  match qs with
  | [] => f 0
  | q :: rest => (q * mean rest (fun m => f (S m)) + (one - q) * mean rest f)%num
  end.

Lemma mean_ext qs : forall f g, (forall m, m <= length qs -> f m = g m) -> mean qs f = mean qs g.
Proof.
  induction qs as [|q r IH]; intros f g E; cbn in *; [apply E; lia|].
  rewrite (IH (fun m => f (S m)) (fun m => g (S m))), (IH f g); auto; intros; apply E; lia.
Qed.

Lemma mean_linear qs : forall x y f g, mean qs (fun m => x * f m + y * g m)%num = (x * mean qs f + y * mean qs g)%num.
Proof.
  induction qs as [|q r IH]; intros x y f g; cbn; [reflexivity|].
  rewrite (IH x y (fun m => f (S m)) (fun m => g (S m))), (IH x y f g). ring.
Qed.

Lemma mean_const qs c : mean qs (fun _ => c) = c.
Proof. induction qs as [|q r IH]; cbn; [reflexivity | rewrite IH; ring]. Qed.

Lemma mean_app l : forall r f, mean (l ++ r) f = mean l (fun m => mean r (fun k => f (m + k))).
Proof.
  induction l as [|q l IH]; intros r f; [reflexivity|]. cbn [app mean].
  rewrite (IH r (fun m => f (S m))), (IH r f). reflexivity.
Qed.

Lemma mean_swap l : forall r (f : nat -> nat -> K), mean l (fun m => mean r (fun k => f m k)) = mean r (fun k => mean l (fun m => f m k)).
Proof.
  induction l as [|q l IH]; intros r f; [reflexivity|]. cbn [mean].
  rewrite (IH r (fun m k => f (S m) k)), (IH r f). rewrite <- mean_linear. reflexivity.
Qed.

Lemma mean_skip_zero l q r f : q = zero -> mean (l ++ q :: r) f = mean (l ++ r) f.
Proof. intros ->. rewrite !mean_app. apply mean_ext. intros m _. cbn. ring. Qed.

(** A table of intervals around a function. *)
Definition around (l : list interval) (f : nat -> K) : Prop := forall m, m < length l -> encloses (nth m l (point 0)) (f m).

Lemma mix_length n q : forall l, length (mix n q l) = pred (length l).
Proof. induction l as [|x [|y r] IH]; cbn in *; [reflexivity | reflexivity|]. rewrite IH. reflexivity. Qed.

Lemma mix_around n i q : (zero <= q)%num -> encloses i q -> forall l f, around l f ->
  around (mix n i l) (fun m => q * f (S m) + (one - q) * f m)%num.
Proof.
  intros Hq Hi l. induction l as [|x [|y r] IH]; intros f H m Hm; cbn [mix length] in Hm; [lia | lia |].
  destruct m as [|m].
  - cbn [mix nth]. apply encloses_eq with (f 0 + q * (f 1 - f 0))%num; [ring|].
    pose proof (H 0 ltac:(cbn; lia)) as H0. pose proof (H 1 ltac:(cbn; lia)) as H1. cbn [nth] in H0, H1.
    apply encloses_plus; [exact H0|]. apply encloses_weigh; [exact Hq | exact Hi|]. apply encloses_minus; assumption.
  - change (nth (S m) (mix n i (x :: y :: r)) (point 0)) with (nth m (mix n i (y :: r)) (point 0)).
    apply (IH (fun m => f (S m))); [|cbn [mix length] in *; lia].
    intros k Hk. apply (H (S k)). cbn in *. lia.
Qed.

Definition user_rates (rate : nat -> K) (users : list (nat * interval)) : list K := map (fun u => rate (fst u)) users.

Definition known (rate : nat -> K) (users : list (nat * interval)) : Prop :=
  forall u, In u users -> (zero <= rate (fst u))%num /\ encloses (snd u) (rate (fst u)).

Lemma known_app rate l r : known rate (l ++ r) -> known rate l /\ known rate r.
Proof. intros H. split; intros u Hu; apply H, in_or_app; auto. Qed.

Lemma mix_all_around n rate users : known rate users -> forall l f, around l f -> length users < length l ->
  around (mix_all n (map snd users) l) (fun m => mean (user_rates rate users) (fun k => f (k + m)%nat)) /\
  length (mix_all n (map snd users) l) = length l - length users.
Proof.
  induction users as [|[i q] r IH]; intros Hk l f Hl Hlen.
  - cbn. split; [|lia]. exact Hl.
  - destruct (Hk (i, q)) as [P Q]; [left; reflexivity|]. cbn [fst snd] in P, Q.
    cbn [map snd mix_all user_rates fst mean length] in *.
    destruct (IH (fun u Hu => Hk u (or_intror Hu)) (mix n q l) (fun m => rate i * f (S m) + (one - rate i) * f m)%num) as [A B].
    + apply mix_around; assumption.
    + rewrite mix_length. lia.
    + split; [|rewrite B, mix_length; lia]. intros m Hm.
      eapply encloses_eq; [|apply A, Hm]. rewrite <- mean_linear. reflexivity.
Qed.

Lemma leave_one_out_names n fuel : forall users l, length users <= fuel ->
  map fst (leave_one_out n fuel users l) = map fst users.
Proof.
  induction fuel as [|fuel IH]; intros [|[i q] [|v r]] l Hf; try reflexivity; [cbn in Hf; lia|].
  set (users := (i, q) :: v :: r) in *. cbn [leave_one_out]. fold users.
  change (match users with | [] => _ | _ => _ end) with
    (leave_one_out n fuel (firstn (Nat.div2 (length users)) users) (mix_all n (map snd (skipn (Nat.div2 (length users)) users)) l)
     ++ leave_one_out n fuel (skipn (Nat.div2 (length users)) users) (mix_all n (map snd (firstn (Nat.div2 (length users)) users)) l)).
  assert (0 < Nat.div2 (length users) < length users) by (split; [cbn; lia | apply Nat.lt_div2; cbn; lia]).
  rewrite map_app, !IH; [rewrite <- map_app, firstn_skipn; reflexivity | rewrite skipn_length; lia | rewrite firstn_length; lia].
Qed.

Lemma leave_one_out_around n rate fuel : forall users l f, known rate users -> around l f -> length users < length l ->
  forall i x, In (i, x) (leave_one_out n fuel users l) ->
  exists left q right, users = left ++ (i, q) :: right /\ encloses x (mean (user_rates rate (left ++ right)) f).
Proof.
  induction fuel as [|fuel IH]; intros [|[j q] [|v r]] l f Hk Hl Hlen i x Hx; try (destruct Hx; fail).
  - destruct Hx as [E|[]]. inversion E; subst. exists [], q, []. split; [reflexivity|]. cbn.
    destruct l; [cbn in Hlen; lia|]. apply (Hl 0). cbn; lia.
  - destruct Hx as [E|[]]. inversion E; subst. exists [], q, []. split; [reflexivity|]. cbn.
    destruct l; [cbn in Hlen; lia|]. apply (Hl 0). cbn; lia.
  - set (users := (j, q) :: v :: r) in *. set (half := Nat.div2 (length users)) in *.
    assert (B : 0 < half < length users) by (unfold half; split; [cbn; lia | apply Nat.lt_div2; cbn; lia]).
    assert (E : users = firstn half users ++ skipn half users) by (symmetry; apply firstn_skipn).
    assert (Hk' := Hk). rewrite E in Hk'. apply known_app in Hk'. destruct Hk' as [Kl Kr].
    assert (Ll : length (firstn half users) = half) by (rewrite firstn_length; lia).
    assert (Lr : length (skipn half users) = length users - half) by (apply skipn_length).
    change (In (i, x) (leave_one_out n fuel (firstn half users) (mix_all n (map snd (skipn half users)) l)
      ++ leave_one_out n fuel (skipn half users) (mix_all n (map snd (firstn half users)) l))) in Hx.
    set (lu := firstn half users) in *. set (ru := skipn half users) in *. clearbody lu ru.
    destruct (mix_all_around n rate ru Kr l f Hl ltac:(lia)) as [Ar Br].
    destruct (mix_all_around n rate lu Kl l f Hl ltac:(lia)) as [Al Bl].
    apply in_app_or in Hx. destruct Hx as [Hx|Hx].
    + destruct (IH lu _ _ Kl Ar ltac:(lia) i x Hx) as (a & q' & b & Ea & He). exists a, q', (b ++ ru). split.
      * rewrite E, Ea, <- app_assoc. reflexivity.
      * eapply encloses_eq; [|exact He]. unfold user_rates. rewrite app_assoc, (map_app _ (a ++ b) ru), mean_app.
        apply mean_ext. intros m _. apply mean_ext. intros k _. f_equal. lia.
    + destruct (IH ru _ _ Kr Al ltac:(lia) i x Hx) as (a & q' & b & Ea & He). exists (lu ++ a), q', b. split.
      * rewrite E, Ea, <- app_assoc. reflexivity.
      * eapply encloses_eq; [|exact He]. unfold user_rates. rewrite <- app_assoc, (map_app _ lu (a ++ b)), mean_app.
        rewrite (mean_swap (map (fun u => rate (fst u)) lu)). apply mean_ext. intros m _. reflexivity.
Qed.

(** All agents, and those of them that use a resource with positive probability. *)
Definition except (i : nat) (l : list nat) : list nat := filter (fun k => negb (k =? i)) l.

Lemma mean_filter (rate : nat -> K) (keep : nat -> bool) f : forall l, (forall k, In k l -> keep k = false -> rate k = zero) ->
  forall before, mean (before ++ map rate (filter keep l)) f = mean (before ++ map rate l) f.
Proof.
  induction l as [|k l IH]; intros H before; [reflexivity|]. cbn [filter map].
  assert (Hl : forall k', In k' l -> keep k' = false -> rate k' = zero) by (intros k' Hk'; apply H; right; exact Hk').
  destruct (keep k) eqn:E.
  - cbn [map]. replace (before ++ rate k :: map rate (filter keep l)) with ((before ++ [rate k]) ++ map rate (filter keep l))
      by (rewrite <- app_assoc; reflexivity). rewrite (IH Hl), <- app_assoc. reflexivity.
  - rewrite (mean_skip_zero before (rate k)); [apply IH, Hl | apply H; [left; reflexivity | exact E]].
Qed.

Lemma user_rates_map rate users : user_rates rate users = map rate (map fst users).
Proof. unfold user_rates. rewrite map_map. reflexivity. Qed.

Lemma except_middle left i right : ~ In i left -> ~ In i right -> except i (left ++ i :: right) = left ++ right.
Proof.
  intros Hl Hr. unfold except. rewrite filter_app. cbn [filter]. rewrite Nat.eqb_refl. cbn [negb].
  assert (E : forall l, ~ In i l -> filter (fun k => negb (k =? i)) l = l).
  { induction l as [|k l IH]; intros H; [reflexivity|]. cbn [filter]. destruct (Nat.eqb_spec k i) as [->|N].
    - exfalso. apply H. left. reflexivity.
    - cbn [negb]. rewrite IH; [reflexivity|]. intros C. apply H. right. exact C. }
  rewrite (E left Hl), (E right Hr). reflexivity.
Qed.

Lemma except_comm i keep l : except i (filter keep l) = filter keep (except i l).
Proof.
  unfold except. induction l as [|k l IH]; [reflexivity|]. cbn [filter].
  destruct (keep k) eqn:E, (negb (k =? i)) eqn:F; cbn [filter]; rewrite ?E, ?F, ?IH; reflexivity.
Qed.

(** What [share_at] computes, for agents 0, 1, ... of which [users] names all that have a positive rate. *)
Section Share.
Variable n : precision.
Variable rate : nat -> K.
Variable count : nat.
Variable users : list (nat * interval).
Variable keep : nat -> bool.
Hypothesis users_are : map fst users = filter keep (seq 0 count).
Hypothesis others_none : forall k, k < count -> keep k = false -> rate k = zero.
Hypothesis rates_known : known rate users.
Variable f : nat -> Q.

Let table := map (fun m => rounded n (f m)) (seq 0 (S (length users))).

Lemma table_around : around table (fun m => inj (f m)).
Proof.
  intros m Hm. unfold table in *. rewrite map_length, seq_length in Hm. rewrite nth_map_seq by exact Hm.
  apply encloses_rounded.
Qed.

Lemma drop_users l : (forall k, In k l -> k < count) -> mean (map rate (filter keep l)) (fun m => inj (f m)) = mean (map rate l) (fun m => inj (f m)).
Proof. intros H. apply (mean_filter rate keep _ l (fun k Hk => others_none k (H k Hk)) []). Qed.

Lemma of_all_encloses : encloses (of_all (share_at n users f)) (mean (map rate (seq 0 count)) (fun m => inj (f m))).
Proof.
  rewrite <- drop_users by (intros k Hk; apply in_seq in Hk; lia). rewrite <- users_are, <- user_rates_map. cbn [share_at of_all].
  assert (Hlen : length users < length table) by (unfold table; rewrite map_length, seq_length; lia).
  destruct (mix_all_around n rate users rates_known table _ table_around Hlen) as [A B]. fold table.
  specialize (A 0). rewrite B in A. destruct (mix_all n (map snd users) table) as [|x r] eqn:E; [cbn [length] in B; lia|].
  cbn [hd nth] in *. eapply encloses_eq; [|apply A; lia]. apply mean_ext. intros m _. rewrite Nat.add_0_r. reflexivity.
Qed.

Lemma share_of_encloses i : i < count ->
  encloses (share_of (share_at n users f) i) (mean (map rate (except i (seq 0 count))) (fun m => inj (f m))).
Proof.
  intros Hi. unfold share_of. cbn [share_at of_others]. fold table.
  assert (Hlen : length users < length table) by (unfold table; rewrite map_length, seq_length; lia).
  assert (D : NoDup (map fst users)) by (rewrite users_are; apply NoDup_filter, seq_NoDup).
  assert (R : forall k, In k (except i (seq 0 count)) -> k < count).
  { intros k Hk. apply filter_In in Hk. destruct Hk as [Hk _]. apply in_seq in Hk. lia. }
  rewrite <- (drop_users _ R), <- except_comm, <- users_are.
  destruct (find _ _) as [[j x]|] eqn:E.
  - apply find_some in E. destruct E as [E Ej]. cbn [fst] in Ej. apply Nat.eqb_eq in Ej. subst j. cbn [snd].
    destruct (leave_one_out_around n rate _ users table _ rates_known table_around Hlen i x E) as (a & q & b & Eu & He).
    rewrite user_rates_map in He. rewrite Eu in D |- *. rewrite map_app in D |- *. cbn [map fst] in *.
    apply NoDup_remove_2 in D. rewrite except_middle; [rewrite <- map_app; exact He | |]; intros C; apply D, in_or_app; auto.
  - assert (N : ~ In i (map fst users)).
    { rewrite <- (leave_one_out_names n (length users) users table (le_n _)). intros C. apply in_map_iff in C.
      destruct C as ((j & x) & Ej & C). cbn in Ej. subst j. apply (find_none _ _ E) in C. cbn in C.
      rewrite Nat.eqb_refl in C. discriminate. }
    assert (F : except i (map fst users) = map fst users).
    { rewrite <- (app_nil_r (map fst users)) at 1. unfold except. rewrite filter_app. cbn. rewrite app_nil_r.
      clear - N. induction (map fst users) as [|k l IH]; [reflexivity|]. cbn [filter]. destruct (Nat.eqb_spec k i) as [->|M].
      - exfalso. apply N. left. reflexivity.
      - cbn [negb]. rewrite IH; [reflexivity|]. intros C. apply N. right. exact C. }
    rewrite F, users_are, (drop_users (seq 0 count)); [apply of_all_encloses|].
    intros k Hk. apply in_seq in Hk. lia.
Qed.

End Share.
End Loads.
