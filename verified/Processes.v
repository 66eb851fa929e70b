(** Values of decision processes: backward bounds, the forward identity, linearity. *)
From Coq Require Import QArith List Arith Lia Ring.
From Cmpg Require Import Semantics Arithmetic Sums.
Import ListNotations.
Local Open Scope nat_scope.

Section Process.
Context {K : numbers} {A : Type}.
Add Ring number_ring : (ring_laws K).
Local Notation inj := (@of_Q K).
Variable m : process A.

Lemma sum_trajectories n (f : list (nat * A) -> K) :
  sum (trajectories m (S n)) f
  = sum (seq 0 (states m)) (fun s => sum (actions m) (fun a => sum (trajectories m n) (fun t => f ((s, a) :: t)))).
Proof.
  cbn [trajectories]. rewrite sum_flat. apply sum_ext. intros s _. rewrite sum_flat. apply sum_ext. intros a _.
  apply sum_map.
Qed.

Lemma in_trajectories n : forall t, In t (trajectories m n) ->
  length t = n /\ Forall (fun visit => fst visit < states m /\ In (snd visit) (actions m)) t.
Proof.
  induction n as [|n IH]; intros t Ht.
  - destruct Ht as [<-|[]]. split; [reflexivity | constructor].
  - cbn [trajectories] in Ht. apply in_flat_map in Ht. destruct Ht as (s & Hs & Ht). apply in_flat_map in Ht.
    destruct Ht as (a & Ha & Ht). apply in_map_iff in Ht. destruct Ht as (r & <- & Hr). apply in_seq in Hs.
    destruct (IH r Hr) as [E F]. split; [cbn; f_equal; exact E | constructor; [cbn; split; [lia | exact Ha] | exact F]].
Qed.

(** * Linearity *)

Lemma total_ext (f g : nat -> nat -> A -> K) : forall t h,
  Forall (fun visit => fst visit < states m /\ In (snd visit) (actions m)) t ->
  (forall k s a, h <= k < h + length t -> s < states m -> In a (actions m) -> f k s a = g k s a) ->
  total f h t = total g h t.
Proof.
  induction t as [|[s a] r IH]; intros h F E; cbn [total]; [reflexivity|].
  inversion F as [|? ? [Hs Ha] F']; subst. cbn in *. rewrite (E h s a) by (auto; lia).
  rewrite (IH (S h)); auto. intros k s' a' Hk. apply E. lia.
Qed.

Lemma value_ext b (f g : nat -> nat -> A -> K) :
  (forall h s a, h < horizon m -> s < states m -> In a (actions m) -> f h s a = g h s a) ->
  value m f b = value m g b.
Proof.
  intros E. apply sum_ext. intros t Ht. apply in_trajectories in Ht. destruct Ht as [L F].
  rewrite (total_ext f g t 0 F); [reflexivity|]. intros k s a Hk. apply E. lia.
Qed.

Lemma value_plus b (f g : nat -> nat -> A -> K) :
  value m (fun h s a => f h s a + g h s a)%num b = (value m f b + value m g b)%num.
Proof.
  unfold value. rewrite <- sum_plus. apply sum_ext. intros t _.
  assert (T : forall t h, total (fun h s a => f h s a + g h s a)%num h t = (total f h t + total g h t)%num).
  { induction t0 as [|[s a] r IH]; intros h; cbn [total]; [ring | rewrite IH; ring]. }
  rewrite T. ring.
Qed.

Lemma value_scale b c (f : nat -> nat -> A -> K) : value m (fun h s a => c * f h s a)%num b = (c * value m f b)%num.
Proof.
  unfold value. rewrite <- sum_scale. apply sum_ext. intros t _.
  assert (T : forall t h, total (fun h s a => c * f h s a)%num h t = (c * total f h t)%num).
  { induction t0 as [|[s a] r IH]; intros h; cbn [total]; [ring | rewrite IH; ring]. }
  rewrite T. ring.
Qed.

Lemma value_zero (b : behaviour K A) : value m (fun _ _ _ => zero) b = zero.
Proof.
  transitivity (value m (fun _ _ _ => zero * zero)%num b); [apply value_ext; intros; ring|].
  rewrite value_scale. ring.
Qed.

Lemma value_sum {X} b (l : list X) (f : X -> nat -> nat -> A -> K) :
  value m (fun h s a => sum l (fun x => f x h s a)) b = sum l (fun x => value m (f x) b).
Proof.
  induction l as [|x r IH]; cbn [sum]; [apply value_zero|]. rewrite value_plus, IH. reflexivity.
Qed.

(** r − Σ_j λ_j c_j *)
Lemma value_lagrangian {X} b (l : list X) (r : nat -> nat -> A -> K) (lambda : X -> K) (c : X -> nat -> nat -> A -> K) :
  value m (fun h s a => r h s a - sum l (fun j => lambda j * c j h s a))%num b
  = (value m r b - sum l (fun j => lambda j * value m (c j) b))%num.
Proof.
  transitivity (value m (fun h s a => r h s a + opposite one * sum l (fun j => lambda j * c j h s a))%num b).
  { apply value_ext. intros. ring. }
  rewrite value_plus, value_scale, value_sum. rewrite (sum_ext l _ (fun j => lambda j * value m (c j) b)%num).
  - ring.
  - intros j _. apply value_scale.
Qed.

(** * Backward *)

Hypothesis good : is_process K m.

Definition visited (before : past A) : Prop :=
  Forall (fun visit => fst visit < states m /\ In (snd visit) (actions m)) before.

(** The expectation of [u] over the next state. *)
Definition ahead (h s : nat) (a : A) (u : nat -> K) : K :=
  sum (transition m h s a) (fun entry => inj (snd entry) * u (fst entry))%num.

Lemma row_expectation h s a (u : nat -> K) : h < horizon m -> s < states m -> In a (actions m) ->
  sum (seq 0 (states m)) (fun t =>
    sum (transition m h s a) (fun entry => if fst entry =? t then inj (snd entry) else zero) * u t)%num
  = ahead h s a u.
Proof.
  intros Hh Hs Ha. destruct good as (_ & _ & Hrow). destruct (Hrow _ _ _ Hh Hs Ha) as [Hin _]. unfold ahead.
  rewrite (sum_ext _ _ (fun t => sum (transition m h s a)
    (fun entry => if fst entry =? t then inj (snd entry) * u t else zero)%num)).
  - rewrite sum_swap. apply sum_ext. intros [y q] He. cbn [fst snd]. apply Hin in He. destruct He as [Hy _].
    apply (sum_pick (states m) y (fun t => inj q * u t)%num Hy).
  - intros t _. rewrite <- sum_scale_r. apply sum_ext. intros [y q] _. cbn [fst snd]. destruct (y =? t); ring.
Qed.

Lemma arrival_step x a older (u : nat -> K) : is_past m older -> x < states m -> In a (actions m) ->
  sum (seq 0 (states m)) (fun s => arrival m ((x, a) :: older) s * u s)%num = ahead (length older) x a u.
Proof. intros [Hl _] Hx Ha. apply row_expectation; assumption. Qed.

Lemma arrival_one before : visited before -> length before <= horizon m ->
  sum (seq 0 (states m)) (fun s => arrival m before s) = @one K.
Proof.
  intros Hv Hl. destruct before as [|[x a] older]; [apply good|].
  inversion Hv as [|? ? [Hx Ha] Ho]; subst. cbn in Hx, Ha, Hl.
  rewrite (sum_ext _ _ (fun s => arrival m ((x, a) :: older) s * one)%num) by (intros; ring).
  rewrite (arrival_step x a older (fun _ => one)); try assumption; [|split; [lia | exact Ho]].
  destruct good as (_ & _ & Hrow). destruct (Hrow (length older) x a) as [_ E]; try assumption; try lia.
  etransitivity; [|exact E]. apply sum_ext. intros. ring.
Qed.

Lemma arrival_nonneg before s : visited before -> length before <= horizon m -> s < states m ->
  (@zero K <= arrival m before s)%num.
Proof.
  intros Hv Hl Hs. destruct before as [|[x a] older]; [apply good, Hs|].
  inversion Hv as [|? ? [Hx Ha] Ho]; subst. cbn in Hx, Ha, Hl. cbn [arrival].
  destruct good as (_ & _ & Hrow). destruct (Hrow (length older) x a) as [Hin _]; try assumption; try lia.
  apply sum_nonneg. intros e He. destruct (fst e =? s); [apply Hin, He | apply le_refl].
Qed.

Section Behaviour.
Variable b : behaviour K A.
Hypothesis sound : is_behaviour m b.

Lemma visited_cons s a before : s < states m -> In a (actions m) -> visited before -> visited ((s, a) :: before).
Proof. intros. constructor; [cbn; auto | assumption]. Qed.

(** The probabilities of all trajectories sum to one. *)
Lemma mass n : forall before, visited before -> length before + n = horizon m ->
  sum (trajectories m n) (probability m b before) = one.
Proof.
  induction n as [|n IH]; intros before Hv Hl; [cbn; ring|].
  rewrite sum_trajectories. rewrite <- (arrival_one before Hv) by lia.
  apply sum_ext. intros s Hs. apply in_seq in Hs.
  assert (Hb : is_past m before) by (split; [lia | exact Hv]).
  rewrite (sum_ext _ _ (fun a => arrival m before s * b before s a)%num).
  - rewrite sum_scale. destruct (sound before s Hb) as [_ E]; [lia|]. rewrite E. ring.
  - intros a Ha. cbn [probability]. rewrite sum_scale, IH; [ring | apply visited_cons; auto; lia | cbn; lia].
Qed.

Variable f : nat -> nat -> A -> K.

Definition remaining (n : nat) (before : past A) : K :=
  sum (trajectories m n) (fun t => probability m b before t * total f (length before) t)%num.

Lemma remaining_step n before : visited before -> length before + S n = horizon m ->
  remaining (S n) before
  = sum (seq 0 (states m)) (fun s => arrival m before s * sum (actions m) (fun a =>
      b before s a * (f (length before) s a + remaining n ((s, a) :: before))))%num.
Proof.
  intros Hv Hl. unfold remaining at 1. rewrite sum_trajectories. apply sum_ext. intros s Hs. apply in_seq in Hs.
  rewrite <- sum_scale. apply sum_ext. intros a Ha.
  set (x := arrival m before s). set (y := b before s a). set (r := f (length before) s a).
  rewrite (sum_ext _ _ (fun t => (x * (y * r)) * probability m b ((s, a) :: before) t
    + (x * y) * (probability m b ((s, a) :: before) t * total f (S (length before)) t))%num).
  - rewrite sum_plus, !sum_scale, (mass n ((s, a) :: before)); [|apply visited_cons; auto; lia | cbn; lia].
    unfold remaining. cbn [length]. ring.
  - intros t _. cbn [probability total]. fold x y r. ring.
Qed.

Variable U : nat -> nat -> K.

(** A function that is at least its own backward step is at least the value. *)
Lemma value_le : (forall s, s < states m -> (zero <= U (horizon m) s)%num) ->
  (forall before s, is_past m before -> s < states m ->
    (sum (actions m) (fun a =>
       b before s a * (f (length before) s a + ahead (length before) s a (U (S (length before)))))
     <= U (length before) s)%num) ->
  (value m f b <= sum (seq 0 (states m)) (fun s => inj (initial m s) * U 0 s))%num.
Proof.
  intros last step.
  assert (R : forall n before, visited before -> length before + n = horizon m ->
    (remaining n before <= sum (seq 0 (states m)) (fun s => arrival m before s * U (length before) s))%num).
  { induction n as [|n IH]; intros before Hv Hl.
    - unfold remaining. cbn. apply le_trans with (@zero K); [apply le_eq; ring|]. apply sum_nonneg. intros s Hs.
      apply in_seq in Hs. apply le_times; [apply arrival_nonneg; [exact Hv | lia | lia]|].
      replace (length before) with (horizon m) by lia. apply last. lia.
    - rewrite remaining_step by assumption. apply sum_le. intros s Hs. apply in_seq in Hs.
      assert (Hb : is_past m before) by (split; [lia | exact Hv]).
      apply times_mono; [apply arrival_nonneg; [exact Hv | lia | lia]|].
      eapply le_trans; [|apply step; [exact Hb | lia]].
      apply sum_le. intros a Ha. apply times_mono; [apply (sound before s Hb); [lia | exact Ha]|].
      apply plus_mono; [apply le_refl|].
      rewrite <- (arrival_step s a before (U (S (length before)))); [|exact Hb | lia | exact Ha].
      apply (IH ((s, a) :: before)); [apply visited_cons; auto; lia | cbn; lia]. }
  apply (R (horizon m) []); [constructor | reflexivity].
Qed.

(** A function that equals its own backward step gives the value. *)
Lemma value_eq : (forall s, s < states m -> U (horizon m) s = zero) ->
  (forall before s, is_past m before -> s < states m ->
    sum (actions m) (fun a =>
      b before s a * (f (length before) s a + ahead (length before) s a (U (S (length before)))))%num
    = U (length before) s) ->
  value m f b = sum (seq 0 (states m)) (fun s => inj (initial m s) * U 0 s)%num.
Proof.
  intros last step.
  assert (R : forall n before, visited before -> length before + n = horizon m ->
    remaining n before = sum (seq 0 (states m)) (fun s => arrival m before s * U (length before) s)%num).
  { induction n as [|n IH]; intros before Hv Hl.
    - unfold remaining. cbn. rewrite (sum_nil (seq 0 _)); [ring|]. intros s Hs. apply in_seq in Hs.
      replace (length before) with (horizon m) by lia. rewrite last by lia. ring.
    - rewrite remaining_step by assumption. apply sum_ext. intros s Hs. apply in_seq in Hs.
      assert (Hb : is_past m before) by (split; [lia | exact Hv]).
      rewrite <- (step before s Hb) by lia. f_equal. apply sum_ext. intros a Ha. f_equal. f_equal.
      rewrite <- (arrival_step s a before (U (S (length before)))); [|exact Hb | lia | exact Ha].
      apply (IH ((s, a) :: before)); [apply visited_cons; auto; lia | cbn; lia]. }
  apply (R (horizon m) []); [constructor | reflexivity].
Qed.

End Behaviour.

(** * Forward *)

Section Markov.
Variable w : nat -> nat -> A -> K.  (** step, state, action *)
Definition markov : behaviour K A := fun before s a => w (length before) s a.
Hypothesis sound : is_behaviour m markov.

(** The probability to be in a state at a step. *)
Fixpoint occupancy (h : nat) (s : nat) : K :=
  match h with
  | 0 => inj (initial m s)
  | S h => sum (seq 0 (states m)) (fun x => sum (actions m) (fun a => occupancy h x * w h x a *
             sum (transition m h x a) (fun entry => if fst entry =? s then inj (snd entry) else zero)))%num
  end.

Fixpoint backward (f : nat -> nat -> A -> K) (n h s : nat) : K :=
  match n with
  | 0 => zero
  | S n => sum (actions m) (fun a => w h s a * (f h s a + ahead h s a (backward f n (S h))))%num
  end.

Lemma telescope f n : forall h, h + n = horizon m ->
  sum (seq 0 (states m)) (fun s => occupancy h s * backward f n h s)%num
  = sum (seq h n) (fun k => sum (seq 0 (states m)) (fun s => sum (actions m) (fun a =>
      occupancy k s * (w k s a * f k s a))))%num.
Proof.
  induction n as [|n IH]; intros h Hh.
  - cbn. apply sum_nil. intros. ring.
  - cbn [seq sum]. rewrite <- IH by lia. cbn [backward].
    rewrite (sum_ext (seq 0 (states m)) (fun s => occupancy (S h) s * backward f n (S h) s)%num
      (fun t => sum (seq 0 (states m)) (fun x => sum (actions m) (fun a => (occupancy h x * w h x a) *
        (sum (transition m h x a) (fun entry => if fst entry =? t then inj (snd entry) else zero)
         * backward f n (S h) t))))%num).
    + rewrite (sum_swap (seq 0 (states m)) (seq 0 (states m))), <- sum_plus. apply sum_ext. intros s Hs.
      apply in_seq in Hs. rewrite <- sum_scale, (sum_swap (seq 0 (states m)) (actions m)), <- sum_plus.
      apply sum_ext. intros a Ha. rewrite sum_scale, row_expectation by (auto; lia). ring.
    + intros t _. cbn [occupancy]. rewrite <- sum_scale_r. apply sum_ext. intros x _. rewrite <- sum_scale_r.
      apply sum_ext. intros a _. ring.
Qed.

(** The value of a Markov policy is the sum of [f] over its occupancies. *)
Lemma value_forward f :
  value m f markov = sum (seq 0 (horizon m)) (fun h => sum (seq 0 (states m)) (fun s => sum (actions m) (fun a =>
    occupancy h s * (w h s a * f h s a))))%num.
Proof.
  rewrite <- (telescope f (horizon m) 0 eq_refl). cbn [occupancy].
  rewrite (value_eq markov sound f (fun h => backward f (horizon m - h) h)).
  - rewrite Nat.sub_0_r. reflexivity.
  - intros s _. rewrite Nat.sub_diag. reflexivity.
  - intros before s [Hl _] _. unfold markov.
    replace (horizon m - length before) with (S (horizon m - S (length before))) by lia. reflexivity.
Qed.

Lemma occupancy_nonneg h : forall s, h < horizon m -> s < states m -> (zero <= occupancy h s)%num.
Proof.
  induction h as [|h IH]; intros s Hh Hs; cbn [occupancy]; [apply good, Hs|].
  apply sum_nonneg. intros x Hx. apply in_seq in Hx. apply sum_nonneg. intros a Ha.
  destruct good as (_ & _ & Hrow). destruct (Hrow h x a) as [Hin _]; [lia | lia | exact Ha|].
  apply le_times; [apply le_times|].
  - apply IH; lia.
  - assert (Hp : is_past m (repeat (x, a) h)).
    { split; [rewrite repeat_length; lia|]. apply Forall_forall. intros v Hv. apply repeat_spec in Hv. subst v.
      cbn. split; [lia | exact Ha]. }
    destruct (sound _ x Hp) as [Hpos _]; [lia|]. specialize (Hpos a Ha). unfold markov in Hpos.
    rewrite repeat_length in Hpos. exact Hpos.
  - apply sum_nonneg. intros e He. destruct (fst e =? s); [apply Hin, He | apply le_refl].
Qed.

End Markov.
End Process.
