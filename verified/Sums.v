(** Sums and order in a ring of numbers, and how rationals are found in it. *)
From Coq Require Import QArith List Arith Lia Ring.
From Cmpg Require Import Semantics Arithmetic.
Import ListNotations.
Local Open Scope nat_scope.

Section Sums.
Context {K : numbers}.
Add Ring number_ring : (ring_laws K).
Local Notation inj := (@of_Q K).

(** * Order *)

Lemma le_eq (x y : K) : x = y -> (x <= y)%num.
Proof. intros ->. apply le_refl. Qed.

Lemma plus_mono (x y u v : K) : (x <= y)%num -> (u <= v)%num -> (x + u <= y + v)%num.
Proof.
  intros H1 H2. apply le_trans with (y + u)%num; [apply le_plus, H1|].
  replace (y + u)%num with (u + y)%num by ring. replace (y + v)%num with (v + y)%num by ring. apply le_plus, H2.
Qed.

Lemma minus_mono (x y u v : K) : (x <= y)%num -> (v <= u)%num -> (x - u <= y - v)%num.
Proof.
  intros H1 H2. apply (le_plus K _ _ (x - u - v)%num) in H2. apply (le_plus K _ _ (zero - v)%num) in H1.
  replace (v + (x - u - v))%num with (x - u)%num in H2 by ring.
  replace (u + (x - u - v))%num with (x + (zero - v))%num in H2 by ring.
  replace (y + (zero - v))%num with (y - v)%num in H1 by ring. eapply le_trans; eassumption.
Qed.

Lemma minus_nonneg (x y : K) : (x <= y)%num -> (zero <= y - x)%num.
Proof. intros H. replace zero with (x - x)%num by ring. apply minus_mono; [exact H | apply le_refl]. Qed.

Lemma times_mono (c x y : K) : (zero <= c)%num -> (x <= y)%num -> (c * x <= c * y)%num.
Proof.
  intros Hc H. pose proof (le_plus K _ _ (c * x)%num (le_times K _ _ Hc (minus_nonneg _ _ H))) as E.
  replace (zero + c * x)%num with (c * x)%num in E by ring.
  replace (c * (y - x) + c * x)%num with (c * y)%num in E by ring. exact E.
Qed.

Lemma times_mono_neg (c x y : K) : (c <= zero)%num -> (x <= y)%num -> (c * y <= c * x)%num.
Proof.
  intros Hc H. apply minus_nonneg in Hc. pose proof (times_mono _ _ _ Hc H) as E.
  apply (le_plus K _ _ (c * x + c * y)%num) in E.
  replace ((zero - c) * x + (c * x + c * y))%num with (c * y)%num in E by ring.
  replace ((zero - c) * y + (c * x + c * y))%num with (c * x)%num in E by ring. exact E.
Qed.

(** * Rationals *)

Lemma inj_le p q : (p <= q)%Q -> (inj p <= inj q)%num.
Proof. apply of_Q_le. Qed.

Lemma inj_eq p q : (p == q)%Q -> inj p = inj q.
Proof. intros E. apply le_antisym; apply inj_le; rewrite E; apply Qle_refl. Qed.

Lemma inj_zero : inj 0%Q = zero.
Proof.
  assert (E : (inj 0 + inj 0)%num = inj 0%Q) by (rewrite <- of_Q_plus; apply inj_eq; reflexivity).
  transitivity ((inj 0 + inj 0) - inj 0)%num; [ring | rewrite E; ring].
Qed.

Lemma inj_opp q : inj (- q)%Q = (zero - inj q)%num.
Proof.
  assert (E : (inj q + inj (- q))%num = zero) by (rewrite <- of_Q_plus, <- inj_zero; apply inj_eq; ring).
  transitivity ((inj q + inj (- q)) - inj q)%num; [ring | rewrite E; reflexivity].
Qed.

Lemma inj_minus p q : inj (p - q)%Q = (inj p - inj q)%num.
Proof. unfold Qminus. rewrite of_Q_plus, inj_opp. ring. Qed.

Lemma inj_add p q : inj (add p q) = (inj p + inj q)%num.
Proof. rewrite <- of_Q_plus. apply inj_eq, add_eq. Qed.

Lemma inj_sub p q : inj (sub p q) = (inj p - inj q)%num.
Proof. unfold sub. rewrite inj_add, inj_opp. ring. Qed.

Lemma inj_mul p q : inj (mul p q) = (inj p * inj q)%num.
Proof. rewrite <- of_Q_times. apply inj_eq, mul_eq. Qed.

Lemma inj_nonneg q : Qle_bool 0 q = true -> (zero <= inj q)%num.
Proof. intros E. rewrite <- inj_zero. apply inj_le, Qle_bool_iff, E. Qed.

Lemma inj_is_zero q : is_zero q = true -> inj q = zero.
Proof. intros E. rewrite <- inj_zero. apply inj_eq, is_zero_true, E. Qed.

Lemma inj_mul_up n p q : (inj p * inj q <= inj (mul_up n p q))%num.
Proof. rewrite <- of_Q_times. apply inj_le, mul_up_le. Qed.

Lemma inj_mul_down n p q : (inj (mul_down n p q) <= inj p * inj q)%num.
Proof. rewrite <- of_Q_times. apply inj_le, mul_down_le. Qed.

Lemma one_nonneg : (@zero K <= one)%num.
Proof. rewrite <- of_Q_one. apply inj_nonneg. reflexivity. Qed.

(** * Sums *)

Lemma sum_ext {X} (l : list X) (f g : X -> K) : (forall x, In x l -> f x = g x) -> sum l f = sum l g.
Proof. induction l as [|x r IH]; cbn; intros E; [reflexivity|]. rewrite (E x), IH; auto. Qed.

Lemma sum_le {X} (l : list X) (f g : X -> K) : (forall x, In x l -> (f x <= g x)%num) -> (sum l f <= sum l g)%num.
Proof. induction l as [|x r IH]; cbn; intros E; [apply le_refl|]. apply plus_mono; auto. Qed.

Lemma sum_plus {X} (l : list X) (f g : X -> K) : sum l (fun x => f x + g x)%num = (sum l f + sum l g)%num.
Proof. induction l as [|x r IH]; cbn; [ring | rewrite IH; ring]. Qed.

Lemma sum_scale {X} (l : list X) c (f : X -> K) : sum l (fun x => c * f x)%num = (c * sum l f)%num.
Proof. induction l as [|x r IH]; cbn; [ring | rewrite IH; ring]. Qed.

Lemma sum_scale_r {X} (l : list X) c (f : X -> K) : sum l (fun x => f x * c)%num = (sum l f * c)%num.
Proof. induction l as [|x r IH]; cbn; [ring | rewrite IH; ring]. Qed.

Lemma sum_minus {X} (l : list X) (f g : X -> K) : sum l (fun x => f x - g x)%num = (sum l f - sum l g)%num.
Proof. induction l as [|x r IH]; cbn; [ring | rewrite IH; ring]. Qed.

Lemma sum_zero {X} (l : list X) : sum l (fun _ => zero) = @zero K.
Proof. induction l as [|x r IH]; cbn; [ring | rewrite IH; ring]. Qed.

Lemma sum_opp {X} (l : list X) (f : X -> K) : sum l (fun x => zero - f x)%num = (zero - sum l f)%num.
Proof. rewrite sum_minus, sum_zero. reflexivity. Qed.

Lemma sum_nil {X} (l : list X) (f : X -> K) : (forall x, In x l -> f x = zero) -> sum l f = zero.
Proof. intros E. rewrite (sum_ext l f (fun _ => zero) E). apply sum_zero. Qed.

Lemma sum_nonneg {X} (l : list X) (f : X -> K) : (forall x, In x l -> (zero <= f x)%num) -> (zero <= sum l f)%num.
Proof. intros E. rewrite <- (sum_zero l). apply sum_le, E. Qed.

Lemma sum_swap {X Y} (l : list X) (m : list Y) (f : X -> Y -> K) :
  sum l (fun x => sum m (fun y => f x y)) = sum m (fun y => sum l (fun x => f x y)).
Proof.
  induction l as [|x r IH]; cbn; [symmetry; apply sum_zero|]. rewrite IH, <- sum_plus. reflexivity.
Qed.

Lemma sum_app {X} (l m : list X) (f : X -> K) : sum (l ++ m) f = (sum l f + sum m f)%num.
Proof. induction l as [|x r IH]; cbn; [ring | rewrite IH; ring]. Qed.

Lemma sum_map {X Y} (h : X -> Y) l (f : Y -> K) : sum (map h l) f = sum l (fun x => f (h x)).
Proof. induction l as [|x r IH]; cbn; [reflexivity | rewrite IH; reflexivity]. Qed.

Lemma sum_flat {X Y} (h : X -> list Y) l (f : Y -> K) : sum (flat_map h l) f = sum l (fun x => sum (h x) f).
Proof. induction l as [|x r IH]; cbn; [reflexivity | rewrite sum_app, IH; reflexivity]. Qed.

Lemma sum_pick_from n : forall lo i (f : nat -> K), lo <= i < lo + n ->
  sum (seq lo n) (fun x => if i =? x then f x else zero) = f i.
Proof.
  induction n as [|n IH]; intros lo i f Hi; [lia|]. cbn. destruct (Nat.eqb_spec i lo) as [->|N].
  - rewrite sum_nil; [ring|]. intros x Hx. apply in_seq in Hx. destruct (Nat.eqb_spec lo x); [lia | reflexivity].
  - rewrite IH by lia. ring.
Qed.

Lemma sum_pick n i (f : nat -> K) : i < n -> sum (seq 0 n) (fun x => if i =? x then f x else zero) = f i.
Proof. intros. apply sum_pick_from. lia. Qed.

Lemma sum_split n i (f : nat -> K) : i < n ->
  sum (seq 0 n) f = (f i + sum (seq 0 n) (fun k => if k =? i then zero else f k))%num.
Proof.
  intros Hi. rewrite <- (sum_pick n i f Hi) at 1. rewrite <- sum_plus. apply sum_ext. intros k _.
  rewrite (Nat.eqb_sym k i). destruct (i =? k); ring.
Qed.

Lemma inj_total {X} (l : list X) f : inj (total_of l f) = sum l (fun x => inj (f x)).
Proof.
  induction l as [|x [|y r] IH]; cbn [total_of sum] in *; [apply inj_zero | ring |]. rewrite inj_add, IH. reflexivity.
Qed.

(** * Choices of several agents *)

Lemma in_tuples_cons n r a : In a (tuples (n :: r)) -> exists x b, a = x :: b /\ x < n /\ In b (tuples r).
Proof.
  cbn. intros Ha. apply in_flat_map in Ha. destruct Ha as (x & Hx & Ha). apply in_map_iff in Ha.
  destruct Ha as (b & <- & Hb). apply in_seq in Hx. exists x, b. repeat split; auto; lia.
Qed.

Lemma in_tuples_length sizes : forall a, In a (tuples sizes) -> length a = length sizes.
Proof.
  induction sizes as [|n r IH]; intros a Ha; [destruct Ha as [<-|[]]; reflexivity|].
  apply in_tuples_cons in Ha. destruct Ha as (x & b & -> & _ & Hb). cbn. f_equal. auto.
Qed.

Lemma in_tuples_nth sizes : forall a i, In a (tuples sizes) -> i < length sizes -> nth i a 0 < nth i sizes 0.
Proof.
  induction sizes as [|n r IH]; intros a i Ha Hi; [cbn in Hi; lia|].
  apply in_tuples_cons in Ha. destruct Ha as (x & b & -> & Hx & Hb).
  destruct i; cbn; [exact Hx | apply IH; [exact Hb | cbn in Hi; lia]].
Qed.

Lemma sum_tuples n r (f : list nat -> K) :
  sum (tuples (n :: r)) f = sum (seq 0 n) (fun x => sum (tuples r) (fun b => f (x :: b))).
Proof. cbn [tuples]. rewrite sum_flat. apply sum_ext. intros x _. apply sum_map. Qed.

Lemma product_ext (u v : nat -> nat -> K) : forall a i,
  (forall k x, i <= k < i + length a -> u k x = v k x) -> product u i a = product v i a.
Proof.
  induction a as [|x r IH]; intros i E; cbn; [reflexivity|]. rewrite (E i x) by (cbn; lia).
  rewrite (IH (S i)); [reflexivity|]. intros k y Hk. apply E. cbn. lia.
Qed.

Lemma product_nonneg sizes : forall (w : nat -> nat -> K) i a,
  (forall k x, k < length sizes -> x < nth k sizes 0 -> (zero <= w (i + k)%nat x)%num) ->
  In a (tuples sizes) -> (zero <= product w i a)%num.
Proof.
  induction sizes as [|n r IH]; intros w i a Hw Ha; [destruct Ha as [<-|[]]; apply one_nonneg|].
  apply in_tuples_cons in Ha. destruct Ha as (x & b & -> & Hx & Hb). cbn. apply le_times.
  - specialize (Hw 0 x). rewrite Nat.add_0_r in Hw. apply Hw; cbn; [lia | exact Hx].
  - apply IH; [|exact Hb]. intros k y Hk Hy. replace (S i + k) with (i + S k) by lia.
    apply Hw; cbn; [lia | exact Hy].
Qed.

Lemma product_one sizes : forall (w : nat -> nat -> K) i,
  (forall k, k < length sizes -> sum (seq 0 (nth k sizes 0)) (w (i + k)) = one) ->
  sum (tuples sizes) (product w i) = one.
Proof.
  induction sizes as [|n r IH]; intros w i Hw; [cbn; ring|].
  rewrite sum_tuples. rewrite (sum_ext _ _ (fun x => w i x * one)%num).
  - rewrite sum_scale_r. specialize (Hw 0). rewrite Nat.add_0_r in Hw. cbn [nth] in Hw.
    rewrite Hw by (cbn; lia). ring.
  - intros x _. cbn [product]. rewrite sum_scale. f_equal. apply IH.
    intros k Hk. replace (S i + k) with (i + S k) by lia. apply (Hw (S k)). cbn; lia.
Qed.

End Sums.
