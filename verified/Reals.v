(** The reals are numbers in the sense of Semantics.v, so deviations may use any real probabilities.  Coq's reals rest
    on axioms of their own, which Assumptions.v lists. *)
From Coq Require Import Reals QArith Qreals Lra RealField.
From Cmpg Require Import Semantics.

Lemma R_ring : ring_theory 0%R 1%R Rplus Rmult Rminus Ropp eq.
Proof. constructor; intros; ring. Qed.

Lemma R_le_plus x y z : (x <= y -> x + z <= y + z)%R.
Proof. intros; lra. Qed.

Lemma Q2R_one : Q2R 1 = 1%R.
Proof. unfold Q2R; cbn. lra. Qed.

Lemma Q2R_le p q : (p <= q)%Q <-> (Q2R p <= Q2R q)%R.
Proof. split; [apply Qle_Rle | apply Rle_Qle]. Qed.

Definition reals : numbers :=
  {| number := R; zero := 0%R; one := 1%R; plus := Rplus; times := Rmult; minus := Rminus; opposite := Ropp; le := Rle;
     of_Q := Q2R; ring_laws := R_ring; le_refl := Rle_refl; le_trans := Rle_trans; le_antisym := Rle_antisym;
     le_plus := R_le_plus; le_times := Rmult_le_pos; of_Q_one := Q2R_one; of_Q_plus := Q2R_plus;
     of_Q_times := Q2R_mult; of_Q_le := Q2R_le |}.
