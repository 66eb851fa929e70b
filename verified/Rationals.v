(** The rationals are numbers in the sense of Semantics.v, without any axiom. *)
From Coq Require Import QArith Qcanon Ring.
From Cmpg Require Import Semantics.

Lemma Q2Qc_plus p q : Q2Qc (p + q) = (Q2Qc p + Q2Qc q)%Qc.
Proof. apply Qc_is_canon. change (Qred (p + q) == Qred (Qred p + Qred q))%Q. rewrite !Qred_correct. reflexivity. Qed.

Lemma Q2Qc_times p q : Q2Qc (p * q) = (Q2Qc p * Q2Qc q)%Qc.
Proof. apply Qc_is_canon. change (Qred (p * q) == Qred (Qred p * Qred q))%Q. rewrite !Qred_correct. reflexivity. Qed.

Lemma Q2Qc_le p q : (p <= q)%Q <-> (Q2Qc p <= Q2Qc q)%Qc.
Proof. change (p <= q <-> Qred p <= Qred q)%Q. rewrite !Qred_correct. reflexivity. Qed.

Lemma Qc_le_plus x y z : (x <= y -> x + z <= y + z)%Qc.
Proof. intros H. apply Qcplus_le_compat; [exact H | apply Qcle_refl]. Qed.

Lemma Qc_le_times x y : (0 <= x -> 0 <= y -> 0 <= x * y)%Qc.
Proof. change (0 <= x -> 0 <= y -> 0 <= Qred (x * y))%Q. rewrite Qred_correct. apply Qmult_le_0_compat. Qed.

Definition rationals : numbers :=
  {| number := Qc; zero := 0%Qc; one := 1%Qc; plus := Qcplus; times := Qcmult; minus := Qcminus; opposite := Qcopp;
     le := Qcle; of_Q := Q2Qc; ring_laws := Qcrt; le_refl := Qcle_refl; le_trans := Qcle_trans;
     le_antisym := Qcle_antisym; le_plus := Qc_le_plus; le_times := Qc_le_times; of_Q_one := eq_refl;
     of_Q_plus := Q2Qc_plus; of_Q_times := Q2Qc_times; of_Q_le := Q2Qc_le |}.
