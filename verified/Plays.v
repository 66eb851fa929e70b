(** Expectations over plays of independent agents: of one trajectory, and of functions of the load. *)
From Coq Require Import QArith List Arith Lia Ring.
From Cmpg Require Import Semantics Arithmetic Sums Processes Loads LocalSemantics.
Import ListNotations.
Local Open Scope nat_scope.

Section Plays.
Context {K : numbers}.
Add Ring number_ring : (ring_laws K).
Local Notation inj := (@of_Q K).
Variable L : local_game.
Notation trajectory := (list (nat * nat)).

Definition trail (x : local_agent) : list trajectory := trajectories (own L x) (local_steps L).

Section Who.
Variable who : nat -> behaviour K nat.

Definition law (i : nat) (x : local_agent) (t : trajectory) : K := probability (own L x) (who i) [] t.

(** The expectation over plays of the agents in [l], numbered from [i]. *)
Definition expect (i : nat) (l : list local_agent) (f : list trajectory -> K) : K :=
  sum (plays L l) (fun ts => play_probability L who i l ts * f ts)%num.

Definition masses (i : nat) (l : list local_agent) : Prop :=
  forall k, k < length l -> sum (trail (nth k l no_agent)) (law (i + k) (nth k l no_agent)) = one.

(** The probability that an agent uses a resource. *)
Definition user_rate (h e i : nat) (x : local_agent) : K :=
  sum (trail x) (fun t => law i x t * (if is_user h e x t then one else zero))%num.

Lemma masses_cons i x l : masses i (x :: l) -> sum (trail x) (law i x) = one /\ masses (S i) l.
Proof.
  intros H. split.
  - specialize (H 0). cbn in H. rewrite Nat.add_0_r in H. apply H. lia.
  - intros k Hk. specialize (H (S k)). cbn [nth length] in H. replace (S i + k) with (i + S k) by lia. apply H. lia.
Qed.

Lemma expect_cons i x l f :
  expect i (x :: l) f = sum (trail x) (fun t => law i x t * expect (S i) l (fun ts => f (t :: ts)))%num.
Proof.
  unfold expect. cbn [plays]. rewrite sum_flat. apply sum_ext. intros t _. rewrite sum_map, <- sum_scale.
  apply sum_ext. intros ts _. cbn [play_probability]. unfold law. ring.
Qed.

Lemma expect_ext i l f g : (forall ts, In ts (plays L l) -> f ts = g ts) -> expect i l f = expect i l g.
Proof. intros E. apply sum_ext. intros ts Hts. rewrite E; auto. Qed.

Lemma expect_plus i l f g : expect i l (fun ts => f ts + g ts)%num = (expect i l f + expect i l g)%num.
Proof. unfold expect. rewrite <- sum_plus. apply sum_ext. intros; ring. Qed.

Lemma expect_minus i l f g : expect i l (fun ts => f ts - g ts)%num = (expect i l f - expect i l g)%num.
Proof. unfold expect. rewrite <- sum_minus. apply sum_ext. intros; ring. Qed.

Lemma expect_sum {X} (m : list X) i l f : expect i l (fun ts => sum m (fun x => f x ts)) = sum m (fun x => expect i l (f x)).
Proof. unfold expect. rewrite <- sum_swap. apply sum_ext. intros ts _. rewrite sum_scale. reflexivity. Qed.

Lemma split_user h e i x (u v : K) : sum (trail x) (law i x) = one ->
  sum (trail x) (fun t => law i x t * (if is_user h e x t then u else v))%num
  = (user_rate h e i x * u + (one - user_rate h e i x) * v)%num.
Proof.
  intros M. unfold user_rate.
  rewrite (sum_ext _ _ (fun t => (law i x t * (if is_user h e x t then one else zero)) * (u - v) + law i x t * v)%num)
    by (intros t _; destruct (is_user h e x t); ring).
  rewrite sum_plus, !sum_scale_r, M. ring.
Qed.

Lemma except_none i l : ~ In i l -> except i l = l.
Proof.
  intros H. unfold except. induction l as [|k l IH]; [reflexivity|]. cbn [filter]. destruct (Nat.eqb_spec k i) as [->|N].
  - exfalso. apply H. left. reflexivity.
  - cbn [negb]. rewrite IH; [reflexivity|]. intros C. apply H. right. exact C.
Qed.

(** A function of the load of all agents. *)
Lemma load_all h e (r : nat -> K) : forall l i f, masses i l ->
  (forall k, k < length l -> user_rate h e (i + k) (nth k l no_agent) = r (i + k)) ->
  expect i l (fun ts => f (load h e l ts)) = mean (map r (seq i (length l))) f.
Proof.
  induction l as [|x l IH]; intros i f M R.
  - unfold expect. cbn. ring.
  - apply masses_cons in M. destruct M as [M1 M2]. rewrite expect_cons. cbn [length seq map mean].
    assert (R0 := R 0). rewrite Nat.add_0_r in R0. cbn [nth length] in R0. rewrite <- R0 by lia.
    assert (R' : forall k, k < length l -> user_rate h e (S i + k) (nth k l no_agent) = r (S i + k)).
    { intros k Hk. replace (S i + k) with (i + S k) by lia. apply (R (S k)). cbn. lia. }
    rewrite <- split_user by exact M1. apply sum_ext. intros t _. f_equal. cbn [load]. destruct (is_user h e x t).
    + apply (IH (S i) (fun m => f (S m)) M2 R').
    + apply (IH (S i) f M2 R').
Qed.

(** A function of the load and of the trajectory of one agent, whose own rate does not matter. *)
Lemma load_one h e (r : nat -> K) : forall l i k (f : trajectory -> nat -> K), masses i l -> k < length l ->
  (forall k', k' < length l -> k' <> k -> user_rate h e (i + k') (nth k' l no_agent) = r (i + k')) ->
  expect i l (fun ts => f (nth k ts []) (load h e l ts))
  = sum (trail (nth k l no_agent)) (fun t => law (i + k)%nat (nth k l no_agent) t *
      mean (map r (except (i + k)%nat (seq i (length l))))
        (fun m => f t ((if is_user h e (nth k l no_agent) t then 1 else 0) + m)%nat))%num.
Proof.
  induction l as [|x l IH]; intros i k f M Hk R; [cbn in Hk; lia|].
  apply masses_cons in M. destruct M as [M1 M2]. rewrite expect_cons. destruct k as [|k].
  - cbn [nth length seq]. rewrite Nat.add_0_r.
    assert (E : except i (i :: seq (S i) (length l)) = seq (S i) (length l)).
    { unfold except. cbn [filter]. rewrite Nat.eqb_refl. cbn [negb]. apply except_none. rewrite in_seq. lia. }
    rewrite E. apply sum_ext. intros t _. f_equal. cbn [load]. destruct (is_user h e x t).
    + apply (load_all h e r l (S i) (fun m => f t (1 + m)) M2). intros k Hk'. replace (S i + k) with (i + S k) by lia.
      apply (R (S k)); cbn; lia.
    + apply (load_all h e r l (S i) (fun m => f t (0 + m)) M2). intros k Hk'. replace (S i + k) with (i + S k) by lia.
      apply (R (S k)); cbn; lia.
  - cbn [nth length seq] in *. replace (i + S k) with (S i + k) in * by lia.
    assert (E : except (S i + k) (i :: seq (S i) (length l)) = i :: except (S i + k) (seq (S i) (length l))).
    { unfold except. cbn [filter]. destruct (Nat.eqb_spec i (S i + k)); [lia | reflexivity]. }
    rewrite E. cbn [map mean].
    assert (R0 := R 0). rewrite Nat.add_0_r in R0. cbn [nth] in R0. rewrite <- R0 by lia.
    assert (R' : forall k', k' < length l -> k' <> k -> user_rate h e (S i + k') (nth k' l no_agent) = r (S i + k')).
    { intros k' Hk' N. replace (S i + k') with (i + S k') by lia. apply (R (S k')); lia. }
    set (y := nth k l no_agent) in *. set (rest := map r (except (S i + k) (seq (S i) (length l)))).
    set (b := fun u => if is_user h e y u then 1 else 0).
    rewrite (sum_ext (trail x) _ (fun t => sum (trail y) (fun u => law (S i + k)%nat y u * (law i x t *
      (if is_user h e x t then mean rest (fun m => f u (b u + S m)%nat) else mean rest (fun m => f u (b u + m)%nat))))%num)).
    + rewrite sum_swap. apply sum_ext. intros u _. rewrite sum_scale. f_equal. apply split_user, M1.
    + intros t _. cbn beta. cbn [load nth]. destruct (is_user h e x t).
      * rewrite (IH (S i) k (fun u m => f u (1 + m)%nat) M2 ltac:(lia) R'). rewrite <- sum_scale. apply sum_ext. intros u _.
        fold y b rest. rewrite (mean_ext rest (fun m => f u (1 + ((if is_user h e y u then 1 else 0) + m))%nat) (fun m => f u (b u + S m)%nat))
          by (intros; f_equal; unfold b; lia). ring.
      * rewrite (IH (S i) k (fun u m => f u (0 + m)%nat) M2 ltac:(lia) R'). rewrite <- sum_scale. apply sum_ext. intros u _.
        fold y b rest. cbn [Nat.add]. unfold b. replace (S i + k) with (S (i + k)) by lia. ring.
Qed.

Lemma expect_one l k f : masses 0 l -> k < length l ->
  expect 0 l (fun ts => f (nth k ts [])) = sum (trail (nth k l no_agent)) (fun t => law k (nth k l no_agent) t * f t)%num.
Proof.
  intros M Hk. etransitivity; [apply (load_one 0 0 (fun j => user_rate 0 0 j (nth j l no_agent)) l 0 k (fun t _ => f t) M Hk)|].
  - intros k' _ _. reflexivity.
  - apply sum_ext. intros t _. rewrite mean_const. reflexivity.
Qed.

End Who.

(** * Sums along a trajectory *)

Lemma total_nth (F : nat -> nat -> nat -> K) : forall t h0,
  total F h0 t = sum (seq 0 (length t)) (fun k => match nth_error t k with Some (s, a) => F (h0 + k) s a | None => zero end).
Proof.
  induction t as [|[s a] r IH]; intros h0; [reflexivity|]. cbn [total length seq sum nth_error]. rewrite Nat.add_0_r. f_equal.
  rewrite IH, <- seq_shift, sum_map. apply sum_ext. intros k _. cbn [nth_error]. destruct (nth_error r k) as [[s' a']|]; [|reflexivity].
  f_equal. lia.
Qed.

(** [v] of all resources that are used. *)
Definition used (x : local_agent) (v : nat -> nat -> K) (h s a : nat) : K :=
  sum (seq 0 (num_resources L)) (fun e => if existsb (Nat.eqb e) (uses x h s a) then v h e else zero).

Lemma total_used x v t : length t = local_steps L ->
  over_resources L (fun h e => if is_user h e x t then v h e else zero) = total (used x v) 0 t.
Proof.
  intros E. rewrite total_nth, E. unfold over_resources. apply sum_ext. intros h _. unfold used, is_user. cbn [Nat.add].
  destruct (nth_error t h) as [[s a]|]; [reflexivity | apply sum_nil; reflexivity].
Qed.

Lemma trail_length x t : In t (trail x) -> length t = local_steps L.
Proof. intros H. apply in_trajectories in H. apply H. Qed.

Lemma value_trail x (f : nat -> nat -> nat -> K) b : value (own L x) f b = sum (trail x) (fun t => probability (own L x) b [] t * total f 0 t)%num.
Proof. reflexivity. Qed.

(** The probability of a use is a value. *)
Lemma user_rate_value who h e i x : h < local_steps L ->
  user_rate who h e i x
  = value (own L x) (fun k s a => if k =? h then (if existsb (Nat.eqb e) (uses x h s a) then one else zero) else zero) (who i).
Proof.
  intros Hh. rewrite value_trail. apply sum_ext. intros t Ht. unfold law. f_equal. rewrite total_nth, (trail_length _ _ Ht).
  rewrite (sum_ext _ _ (fun k => if h =? k then (if is_user h e x t then one else zero) else zero)).
  - rewrite (sum_pick _ h (fun _ => if is_user h e x t then one else zero) Hh). reflexivity.
  - intros k _. cbn [Nat.add]. rewrite (Nat.eqb_sym k h). unfold is_user. destruct (Nat.eqb_spec h k) as [->|N].
    + destruct (nth_error t k) as [[s a]|]; reflexivity.
    + destruct (nth_error t k) as [[s a]|]; reflexivity.
Qed.

End Plays.
