(** Rationals in lowest terms or rounded, and tables: what the checkers compute with.  Nothing here is trusted. *)
From Coq Require Import QArith List Arith ZArith Lia.
Import ListNotations.
Local Open Scope nat_scope.

(** * Rationals *)

Definition lowest (q : Q) : Q :=
  let d := Zpos (Qden q) in
  let k := Z.gcd (Qnum q) d in
  match (d / k)%Z with Zpos e => Qmake (Qnum q / k) e | _ => q end.

Lemma lowest_eq q : (lowest q == q)%Q.
Proof.
  unfold lowest. destruct q as [n d]. cbn [Qnum Qden]. set (k := Z.gcd n (Zpos d)).
  assert (Hk : (0 < k)%Z).
  { assert (0 <= k)%Z by apply Z.gcd_nonneg.
    assert (k <> 0)%Z by (intro E; apply Z.gcd_eq_0_r in E; lia). lia. }
  destruct (Z.gcd_divide_l n (Zpos d)) as [n' Hn]. destruct (Z.gcd_divide_r n (Zpos d)) as [d' Hd].
  fold k in Hn, Hd. rewrite Hd, Hn, !Z.div_mul by lia. destruct d' as [|e|e]; try reflexivity.
  unfold Qeq; cbn [Qnum Qden]. rewrite Hd. ring.
Qed.

Definition is_zero (q : Q) : bool := Z.eqb (Qnum q) 0.
Definition is_one (q : Q) : bool := Z.eqb (Qnum q) (Zpos (Qden q)).

Lemma is_zero_true q : is_zero q = true -> (q == 0)%Q.
Proof. unfold is_zero, Qeq. intros E. apply Z.eqb_eq in E. cbn. lia. Qed.

Lemma is_one_true q : is_one q = true -> (q == 1)%Q.
Proof. unfold is_one, Qeq. intros E. apply Z.eqb_eq in E. cbn. lia. Qed.

(** Sums of numbers with the same denominator keep it: no greatest common divisor is computed. *)
Definition add (p q : Q) : Q :=
  if Pos.eqb (Qden p) (Qden q) then Qmake (Qnum p + Qnum q) (Qden p)
  else if is_zero p then q
  else if is_zero q then p
  else lowest (p + q).

Lemma add_eq p q : (add p q == p + q)%Q.
Proof.
  unfold add. destruct (Pos.eqb_spec (Qden p) (Qden q)) as [E|E].
  - unfold Qeq, Qplus; cbn [Qnum Qden]. rewrite E, Pos2Z.inj_mul. ring.
  - destruct (is_zero p) eqn:P; [rewrite (is_zero_true p P); ring|].
    destruct (is_zero q) eqn:R; [rewrite (is_zero_true q R); ring | apply lowest_eq].
Qed.

Definition sub (p q : Q) : Q := add p (- q).

(** Probabilities are often 0 or 1. *)
Definition mul (p q : Q) : Q :=
  if is_zero p then 0%Q else if is_one p then q else lowest (p * q).

Lemma mul_eq p q : (mul p q == p * q)%Q.
Proof.
  unfold mul. destruct (is_zero p) eqn:Z; [rewrite (is_zero_true p Z); ring|].
  destruct (is_one p) eqn:O; [rewrite (is_one_true p O); ring | apply lowest_eq].
Qed.

Fixpoint total_of {X : Type} (l : list X) (f : X -> Q) : Q :=
  match l with
  | [] => 0%Q
  | [x] => f x
  | x :: rest => add (f x) (total_of rest f)
  end.

Definition larger (p q : Q) : Q := if Qle_bool p q then q else p.

Lemma larger_l p q : (p <= larger p q)%Q.
Proof. unfold larger. destruct (Qle_bool p q) eqn:E; [apply Qle_bool_iff, E | apply Qle_refl]. Qed.

Lemma larger_r p q : (q <= larger p q)%Q.
Proof.
  unfold larger. destruct (Qle_bool p q) eqn:E; [apply Qle_refl|].
  apply Qlt_le_weak, Qnot_le_lt. intros H. apply Qle_bool_iff in H. congruence.
Qed.

Fixpoint largest {X : Type} (l : list X) (f : X -> Q) : Q :=
  match l with
  | [] => 0%Q
  | [x] => f x
  | x :: rest => larger (f x) (largest rest f)
  end.

Lemma largest_le {X} (l : list X) f x : In x l -> (f x <= largest l f)%Q.
Proof.
  induction l as [|y [|z r] IH]; [intros [] | |]; intros Hx.
  - destruct Hx as [<-|[]]. apply Qle_refl.
  - change (largest (y :: z :: r) f) with (larger (f y) (largest (z :: r) f)). destruct Hx as [<-|Hx].
    + apply larger_l.
    + eapply Qle_trans; [apply IH, Hx | apply larger_r].
Qed.

Lemma nth_map_seq {X} (f : nat -> X) n k d : k < n -> nth k (map f (seq 0 n)) d = f k.
Proof.
  intros Hk. rewrite (nth_indep _ d (f 0)) by (rewrite map_length, seq_length; exact Hk).
  rewrite map_nth, seq_nth by exact Hk. reflexivity.
Qed.

(** * Rounding *)

(** [None]: exact arithmetic.  [Some n]: results are multiples of 1/n, rounded up or down. *)
Definition precision := option positive.

(** The smallest multiple of 1/n that is at least t/(d n). *)
Definition above (t d : Z) (n : positive) : Q := Qmake (- ((- t) / d)) n.
Definition below (t d : Z) (n : positive) : Q := Qmake (t / d) n.

Definition up (n : precision) (q : Q) : Q :=
  match n with
  | None => q
  | Some n => if Pos.eqb (Qden q) n then q else above (Qnum q * Zpos n) (Zpos (Qden q)) n
  end.

Definition down (n : precision) (q : Q) : Q :=
  match n with
  | None => q
  | Some n => if Pos.eqb (Qden q) n then q else below (Qnum q * Zpos n) (Zpos (Qden q)) n
  end.

(** p q, rounded; [q] usually is a multiple of 1/n, and then the division is by the denominator of [p] alone. *)
Definition mul_up (n : precision) (p q : Q) : Q :=
  match n with
  | None => mul p q
  | Some n =>
      if is_one p && Pos.eqb (Qden q) n then q
      else if Pos.eqb (Qden q) n then above (Qnum p * Qnum q) (Zpos (Qden p)) n
      else above (Qnum p * Qnum q * Zpos n) (Zpos (Qden p * Qden q)) n
  end.

Definition mul_down (n : precision) (p q : Q) : Q :=
  match n with
  | None => mul p q
  | Some n =>
      if is_one p && Pos.eqb (Qden q) n then q
      else if Pos.eqb (Qden q) n then below (Qnum p * Qnum q) (Zpos (Qden p)) n
      else below (Qnum p * Qnum q * Zpos n) (Zpos (Qden p * Qden q)) n
  end.

Lemma above_le t d n q : (0 < d)%Z -> (t * Zpos (Qden q) = Qnum q * d * Zpos n)%Z -> (q <= above t d n)%Q.
Proof.
  intros Hd E. unfold Qle, above; cbn [Qnum Qden]. pose proof (Z.mul_div_le (- t) d Hd). nia.
Qed.

Lemma below_le t d n q : (0 < d)%Z -> (t * Zpos (Qden q) = Qnum q * d * Zpos n)%Z -> (below t d n <= q)%Q.
Proof.
  intros Hd E. unfold Qle, below; cbn [Qnum Qden]. pose proof (Z.mul_div_le t d Hd). nia.
Qed.

Lemma up_le n q : (q <= up n q)%Q.
Proof.
  destruct n as [n|]; cbn [up]; [|apply Qle_refl]. destruct (Pos.eqb _ _); [apply Qle_refl|].
  apply above_le; [reflexivity | ring].
Qed.

Lemma down_le n q : (down n q <= q)%Q.
Proof.
  destruct n as [n|]; cbn [down]; [|apply Qle_refl]. destruct (Pos.eqb _ _); [apply Qle_refl|].
  apply below_le; [reflexivity | ring].
Qed.

Lemma mul_up_le n p q : (p * q <= mul_up n p q)%Q.
Proof.
  destruct n as [n|]; cbn [mul_up]; [|rewrite mul_eq; apply Qle_refl].
  destruct (is_one p) eqn:O, (Pos.eqb_spec (Qden q) n) as [E|E]; cbn [andb].
  - rewrite (is_one_true p O), Qmult_1_l. apply Qle_refl.
  - apply above_le; [reflexivity | cbn [Qnum Qden Qmult]; rewrite !Pos2Z.inj_mul; ring].
  - apply above_le; [reflexivity | cbn [Qnum Qden Qmult]; rewrite Pos2Z.inj_mul, E; ring].
  - apply above_le; [reflexivity | cbn [Qnum Qden Qmult]; rewrite !Pos2Z.inj_mul; ring].
Qed.

Lemma mul_down_le n p q : (mul_down n p q <= p * q)%Q.
Proof.
  destruct n as [n|]; cbn [mul_down]; [|rewrite mul_eq; apply Qle_refl].
  destruct (is_one p) eqn:O, (Pos.eqb_spec (Qden q) n) as [E|E]; cbn [andb].
  - rewrite (is_one_true p O), Qmult_1_l. apply Qle_refl.
  - apply below_le; [reflexivity | cbn [Qnum Qden Qmult]; rewrite !Pos2Z.inj_mul; ring].
  - apply below_le; [reflexivity | cbn [Qnum Qden Qmult]; rewrite Pos2Z.inj_mul, E; ring].
  - apply below_le; [reflexivity | cbn [Qnum Qden Qmult]; rewrite !Pos2Z.inj_mul; ring].
Qed.

(** * Tables *)

(** Search trees, so that a value is computed once.  A table that is returned as a function would be computed again at
    every look-up. *)
Inductive tree (X : Type) :=
  | Leaf (x : X)
  | Node (k : nat) (l r : tree X).

Arguments Leaf {X}.
Arguments Node {X}.

Fixpoint get {X} (t : tree X) (s : nat) : X :=
  match t with
  | Leaf x => x
  | Node k l r => if s <? k then get l s else get r s
  end.

Fixpoint build {X} (fuel lo n : nat) (f : nat -> X) : tree X :=
  match fuel with
  | 0 => Leaf (f lo)
  | S fuel' =>
      if n <=? 1 then Leaf (f lo)
      else let half := Nat.div2 n in Node (lo + half) (build fuel' lo half f) (build fuel' (lo + half) (n - half) f)
  end.

(** The values of [f] below [n]. *)
Definition tabulate {X} (default : X) (n : nat) (f : nat -> X) : tree X :=
  match n with
  | 0 => Leaf default
  | _ => build n 0 n f
  end.

(** Change the value at [s]. *)
Fixpoint change {X} (t : tree X) (s : nat) (f : X -> X) : tree X :=
  match t with
  | Leaf x => Leaf (f x)
  | Node k l r => if s <? k then Node k (change l s f) r else Node k l (change r s f)
  end.

Fixpoint spans {X} (lo n : nat) (t : tree X) : Prop :=
  match t with
  | Leaf _ => n <= 1
  | Node k l r => lo < k < lo + n /\ spans lo (k - lo) l /\ spans k (lo + n - k) r
  end.

Lemma get_build {X} fuel : forall lo n (f : nat -> X) s, n <= fuel -> lo <= s < lo + n ->
  get (build fuel lo n f) s = f s.
Proof.
  induction fuel as [|k IH]; intros lo n f s Hn Hs; cbn [build]; [lia|].
  destruct (Nat.leb_spec n 1) as [L|L].
  - cbn [get]. f_equal. lia.
  - assert (0 < Nat.div2 n < n) by (split; [destruct n as [|[|m]]; cbn; lia | apply Nat.lt_div2; lia]).
    cbn [get]. destruct (Nat.ltb_spec s (lo + Nat.div2 n)); apply IH; lia.
Qed.

Lemma get_tabulate {X} d n (f : nat -> X) s : s < n -> get (tabulate d n f) s = f s.
Proof. intros. destruct n; [lia|]. apply get_build; lia. Qed.

Lemma spans_build {X} fuel : forall lo n (f : nat -> X), n <= fuel -> spans lo n (build fuel lo n f).
Proof.
  induction fuel as [|k IH]; intros lo n f Hn; cbn [build]; [cbn; lia|].
  destruct (Nat.leb_spec n 1) as [L|L]; [exact L|].
  assert (0 < Nat.div2 n < n) by (split; [destruct n as [|[|m]]; cbn; lia | apply Nat.lt_div2; lia]).
  cbn [spans]. repeat split; try lia.
  - replace (lo + Nat.div2 n - lo) with (Nat.div2 n) by lia. apply IH. lia.
  - replace (lo + n - (lo + Nat.div2 n)) with (n - Nat.div2 n) by lia. apply IH. lia.
Qed.

Lemma spans_change {X} (f : X -> X) s : forall t lo n, spans lo n t -> spans lo n (change t s f).
Proof.
  induction t as [x|k l IHl r IHr]; intros lo n H; [exact H|]. destruct H as (H & L & R). cbn [change].
  destruct (s <? k); cbn [spans]; auto.
Qed.

Lemma get_change {X} (f : X -> X) s u : forall t lo n, spans lo n t -> lo <= s < lo + n -> lo <= u < lo + n ->
  get (change t s f) u = if s =? u then f (get t u) else get t u.
Proof.
  induction t as [x|k l IHl r IHr]; intros lo n H Hs Hu.
  - cbn in *. destruct (Nat.eqb_spec s u); [reflexivity | lia].
  - destruct H as (H & L & R). cbn [change get].
    destruct (Nat.ltb_spec s k) as [A|A]; cbn [get]; destruct (Nat.ltb_spec u k) as [B|B].
    + apply (IHl lo (k - lo)); [exact L | lia | lia].
    + destruct (Nat.eqb_spec s u); [lia | reflexivity].
    + destruct (Nat.eqb_spec s u); [lia | reflexivity].
    + apply (IHr k (lo + n - k)); [exact R | lia | lia].
Qed.

Lemma spans_tabulate {X} d n (f : nat -> X) : spans 0 n (tabulate d n f).
Proof. destruct n; [cbn; lia|]. apply spans_build. lia. Qed.
