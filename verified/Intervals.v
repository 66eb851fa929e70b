(** Intervals of rationals around numbers that are not computed exactly, and tables of them. *)
From Coq Require Import QArith List Arith Lia Ring.
From Cmpg Require Import Semantics Arithmetic Sums.
Import ListNotations.
Local Open Scope nat_scope.

Record interval := Interval { low : Q; high : Q }.

Definition point (q : Q) : interval := Interval q q.
Definition rounded (n : precision) (q : Q) : interval := Interval (down n q) (up n q).
Definition plus_i (x y : interval) : interval := Interval (add (low x) (low y)) (add (high x) (high y)).
Definition minus_i (x y : interval) : interval := Interval (sub (low x) (high y)) (sub (high x) (low y)).

(** A rational that is not negative, times an interval. *)
Definition scale (n : precision) (q : Q) (x : interval) : interval :=
  Interval (mul_down n q (low x)) (mul_up n q (high x)).

(** An interval around a number that is not negative, times an interval. *)
Definition weigh (n : precision) (w x : interval) : interval :=
  Interval (mul_down n (if Qle_bool 0 (low x) then low w else high w) (low x))
           (mul_up n (if Qle_bool 0 (high x) then high w else low w) (high x)).

Fixpoint total_i {X} (l : list X) (f : X -> interval) : interval :=
  match l with
  | [] => point 0
  | [x] => f x
  | x :: rest => plus_i (f x) (total_i rest f)
  end.

(** Add each amount to the table at its key. *)
Definition scatter (l : list (nat * interval)) (t : tree interval) : tree interval :=
  fold_left (fun t entry => change t (fst entry) (plus_i (snd entry))) l t.

Section Intervals.
Context {K : numbers}.
Add Ring number_ring : (ring_laws K).
Local Notation inj := (@of_Q K).

Definition encloses (i : interval) (x : K) : Prop := (inj (low i) <= x)%num /\ (x <= inj (high i))%num.

Lemma encloses_point q : encloses (point q) (inj q).
Proof. split; apply le_refl. Qed.

Lemma encloses_rounded n q : encloses (rounded n q) (inj q).
Proof. split; apply inj_le; [apply down_le | apply up_le]. Qed.

Lemma encloses_plus i j x y : encloses i x -> encloses j y -> encloses (plus_i i j) (x + y)%num.
Proof. intros [A B] [C D]. split; cbn; rewrite inj_add; apply plus_mono; assumption. Qed.

Lemma encloses_minus i j x y : encloses i x -> encloses j y -> encloses (minus_i i j) (x - y)%num.
Proof. intros [A B] [C D]. split; cbn; rewrite inj_sub; apply minus_mono; assumption. Qed.

Lemma encloses_scale n q i x : (zero <= inj q)%num -> encloses i x -> encloses (scale n q i) (inj q * x)%num.
Proof.
  intros H [A B]. split; cbn.
  - eapply le_trans; [apply inj_mul_down | apply times_mono; assumption].
  - eapply le_trans; [apply times_mono; eassumption | apply inj_mul_up].
Qed.

Lemma Qle_bool_sign q : (zero <= inj q)%num \/ Qle_bool 0 q = false /\ (inj q <= zero)%num.
Proof.
  destruct (Qle_bool 0 q) eqn:E; [left; apply inj_nonneg, E | right]. split; [reflexivity|].
  rewrite <- inj_zero. apply inj_le, Qlt_le_weak, Qnot_le_lt. intros H. apply Qle_bool_iff in H. congruence.
Qed.

Lemma encloses_weigh n i j w x : (zero <= w)%num -> encloses i w -> encloses j x -> encloses (weigh n i j) (w * x)%num.
Proof.
  intros H [A B] [C D]. split; cbn.
  - eapply le_trans; [apply inj_mul_down|]. apply le_trans with (w * inj (low j))%num; [|apply times_mono; assumption].
    rewrite (Rmul_comm (ring_laws K) w). destruct (Qle_bool 0 (low j)) eqn:E.
    + rewrite (Rmul_comm (ring_laws K)). apply times_mono; [apply inj_nonneg, E | exact A].
    + destruct (Qle_bool_sign (low j)) as [P|[_ N]].
      * exfalso. assert (Q : Qle_bool 0 (low j) = true); [|congruence].
        apply Qle_bool_iff, (of_Q_le K). rewrite inj_zero. exact P.
      * rewrite (Rmul_comm (ring_laws K)). apply times_mono_neg; assumption.
  - eapply le_trans; [|apply inj_mul_up]. apply le_trans with (w * inj (high j))%num; [apply times_mono; assumption|].
    rewrite (Rmul_comm (ring_laws K) w). destruct (Qle_bool 0 (high j)) eqn:E.
    + rewrite (Rmul_comm (ring_laws K) (inj (high i))). apply times_mono; [apply inj_nonneg, E | exact B].
    + destruct (Qle_bool_sign (high j)) as [P|[_ N]].
      * exfalso. assert (Q : Qle_bool 0 (high j) = true); [|congruence].
        apply Qle_bool_iff, (of_Q_le K). rewrite inj_zero. exact P.
      * rewrite (Rmul_comm (ring_laws K) (inj (low i))). apply times_mono_neg; assumption.
Qed.

Lemma encloses_total {X} (l : list X) f (g : X -> K) : (forall x, In x l -> encloses (f x) (g x)) ->
  encloses (total_i l f) (sum l g).
Proof.
  induction l as [|x [|y r] IH]; intros H.
  - cbn. rewrite <- inj_zero. apply encloses_point.
  - cbn. replace (g x + zero)%num with (g x) by ring. apply H. left. reflexivity.
  - change (total_i (x :: y :: r) f) with (plus_i (f x) (total_i (y :: r) f)).
    change (sum (x :: y :: r) g) with (g x + sum (y :: r) g)%num.
    apply encloses_plus; [apply H; left; reflexivity | apply IH; intros z Hz; apply H; right; exact Hz].
Qed.

Lemma encloses_eq i x y : x = y -> encloses i x -> encloses i y.
Proof. intros ->. exact (fun H => H). Qed.

(** A number that is not negative, in an interval that ends at zero. *)
Lemma encloses_nothing i x : (zero <= x)%num -> encloses i x -> is_zero (high i) = true -> x = zero.
Proof. intros H [_ B] Z. rewrite (inj_is_zero _ Z) in B. apply le_antisym; assumption. Qed.

Lemma scatter_spans l : forall t lo n, spans lo n t -> spans lo n (scatter l t).
Proof.
  induction l as [|e r IH]; intros t lo n H; cbn; [exact H|]. apply IH, spans_change, H.
Qed.

Lemma encloses_scatter {X} (key : X -> nat) (amount : X -> interval) (v : X -> K) n s : s < n ->
  forall l t (u : K), spans 0 n t -> (forall x, In x l -> key x < n /\ encloses (amount x) (v x)) -> encloses (get t s) u ->
  encloses (get (scatter (map (fun x => (key x, amount x)) l) t) s)
           (u + sum l (fun x => if key x =? s then v x else zero))%num.
Proof.
  intros Hs. induction l as [|x r IH]; intros t u St Hl Hu.
  - cbn. replace (u + zero)%num with u by ring. exact Hu.
  - cbn [map sum]. unfold scatter. cbn [fold_left fst snd]. fold (scatter (map (fun x => (key x, amount x)) r)).
    destruct (Hl x) as [Hk Hx]; [left; reflexivity|].
    apply encloses_eq with ((u + (if key x =? s then v x else zero))
      + sum r (fun x => if key x =? s then v x else zero))%num; [ring|].
    apply IH; [apply spans_change, St | intros y Hy; apply Hl; right; exact Hy|].
    rewrite (get_change _ _ _ _ 0 n St) by lia. destruct (key x =? s).
    + apply encloses_eq with (v x + u)%num; [ring|]. apply encloses_plus; assumption.
    + apply encloses_eq with u; [ring | exact Hu].
Qed.

End Intervals.
