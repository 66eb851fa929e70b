(** A local game is a joint game: its states are the tuples of own states, and its agents look at their own parts only.

    LocalSemantics.v defines values by plays, one trajectory of each agent.  Here the joint game is written down, as
    [cmpg.games.local.to_joint] does, and its values are proved to be the same. *)
From Coq Require Import QArith List Arith Lia Ring.
From Cmpg Require Import Semantics Arithmetic Sums Processes LocalSemantics Plays.
Import ListNotations.
Local Open Scope nat_scope.

(** * The joint game *)

Definition sum_Q {X} (l : list X) (f : X -> Q) : Q := fold_right (fun x total => (f x + total)%Q) 0%Q l.

(** The product over the agents in [l], numbered from [i]. *)
Fixpoint product_Q (f : nat -> local_agent -> Q) (i : nat) (l : list local_agent) : Q :=
  match l with
  | [] => 1%Q
  | x :: rest => (f i x * product_Q f (S i) rest)%Q
  end.

Section Definitions.
Variable L : local_game.

(** The tuples of own states in lexicographic order; a joint state is the number of one. *)
Definition tuples_of_states : list (list nat) := tuples (map own_states (agents L)).
Definition tuple (c : nat) : list nat := nth c tuples_of_states [].
Definition own_state (i c : nat) : nat := nth i (tuple c) 0.

(** Whether agent [i] uses resource [e], and how many do, when [ss] are the own states and [a] the own actions. *)
Definition is_user_at (h e i : nat) (ss a : list nat) : bool :=
  existsb (Nat.eqb e) (uses (agent L i) h (nth i ss 0) (nth i a 0)).

Definition load_at (h e : nat) (ss a : list nat) : nat :=
  length (filter (fun i => is_user_at h e i ss a) (seq 0 (length (agents L)))).

Definition reward_at (i h : nat) (ss a : list nat) : Q :=
  (private_reward (agent L i) h (nth i ss 0%nat) (nth i a 0%nat)
   - sum_Q (seq 0 (num_resources L)) (fun e => if is_user_at h e i ss a then delay L h e (load_at h e ss a) else 0))%Q.

Definition cost_at (j h : nat) (ss a : list nat) : Q :=
  (sum_Q (seq 0 (length (agents L))) (fun k => private_cost (agent L k) j h (nth k ss 0%nat) (nth k a 0%nat))
   + sum_Q (seq 0 (num_resources L)) (fun e => load_cost L j h e (load_at h e ss a)))%Q.

Definition to_joint : game := {|
  num_actions := map own_actions (agents L);
  num_states := length tuples_of_states;
  num_steps := local_steps L;
  num_constraints := local_constraints L;
  start := fun c => product_Q (fun i x => own_start x (own_state i c)) 0 (agents L);
  next := fun h c a => map (fun d => (d, product_Q (fun i x =>
    sum_Q (own_next x h (own_state i c) (nth i a 0)) (fun entry => if fst entry =? own_state i d then snd entry else 0%Q))
      0 (agents L))) (seq 0 (length tuples_of_states));
  reward := fun i h c a => reward_at i h (tuple c) a;
  cost := fun j h c a => cost_at j h (tuple c) a;
  threshold := local_threshold L;
  binds := local_binds L |}.

(** What agent [i] has seen of a past: its own states and actions. *)
Definition own_past (i : nat) (before : past (list nat)) : past nat :=
  map (fun visit => (own_state i (fst visit), nth i (snd visit) 0)) before.

(** Behaviours on own states, as strategies of the joint game. *)
Definition lift {K : numbers} (who : nat -> behaviour K nat) : nat -> strategy K :=
  fun i before c x => who i (own_past i before) (own_state i c) x.

End Definitions.

Section Proof.
Context {K : numbers}.
Add Ring number_ring : (ring_laws K).
Local Notation inj := (@of_Q K).

Lemma inj_sum_Q {X} (l : list X) f : inj (sum_Q l f) = sum l (fun x => inj (f x)).
Proof.
  induction l as [|x r IH]; [apply inj_zero|]. change (sum_Q (x :: r) f) with (f x + sum_Q r f)%Q. rewrite of_Q_plus, IH. reflexivity.
Qed.

(** Products over agents. *)
Fixpoint product_K (f : nat -> local_agent -> K) (i : nat) (l : list local_agent) : K :=
  match l with
  | [] => one
  | x :: rest => (f i x * product_K f (S i) rest)%num
  end.

Lemma inj_product_Q f : forall l i, inj (product_Q f i l) = product_K (fun k x => inj (f k x)) i l.
Proof. induction l as [|x r IH]; intros i; cbn; [apply of_Q_one | rewrite of_Q_times, IH; reflexivity]. Qed.

Lemma product_K_ext f g : forall l i, (forall k x, f k x = g k x) -> product_K f i l = product_K g i l.
Proof. induction l as [|x r IH]; intros i Q; cbn; [reflexivity | rewrite Q, (IH (S i) Q); reflexivity]. Qed.

Lemma product_K_times f g : forall l i,
  product_K (fun k x => f k x * g k x)%num i l = (product_K f i l * product_K g i l)%num.
Proof. induction l as [|x r IH]; intros i; cbn; [ring | rewrite IH; ring]. Qed.

Lemma product_agents (w : nat -> nat -> K) (choice : nat -> nat) : forall (l : list local_agent) a i, length a = length l ->
  (forall k, k < length l -> nth k a 0 = choice (i + k)) -> product w i a = product_K (fun k _ => w k (choice k)) i l.
Proof.
  induction l as [|x l IH]; intros [|y a] i Q N; try discriminate; [reflexivity|]. cbn [product product_K].
  assert (N0 := N 0). rewrite Nat.add_0_r in N0. cbn in N0. rewrite N0 by lia. f_equal. apply IH; [cbn in Q; lia|].
  intros k Hk. replace (S i + k) with (i + S k) by lia. apply (N (S k)). cbn. lia.
Qed.

Variable L : local_game.
Variable who : nat -> behaviour K nat.
Local Notation J := (dynamics (to_joint L)).
Local Notation trajectory := (list (nat * nat)).

(** * Plays of any length, after any pasts *)

Fixpoint plays_of (n : nat) (l : list local_agent) : list (list trajectory) :=
  match l with
  | [] => [[]]
  | x :: rest => flat_map (fun t => map (cons t) (plays_of n rest)) (trajectories (own L x) n)
  end.

Fixpoint probability_after (bf : nat -> past nat) (i : nat) (l : list local_agent) (ts : list trajectory) : K :=
  match l, ts with
  | x :: l', t :: ts' => (probability (own L x) (who i) (bf i) t * probability_after bf (S i) l' ts')%num
  | _, _ => one
  end.

(** The first step of each agent before the rest. *)
Fixpoint prepend (ss a : list nat) (ts : list trajectory) : list trajectory :=
  match ss, a, ts with
  | s :: ss', x :: a', t :: ts' => ((s, x) :: t) :: prepend ss' a' ts'
  | _, _, _ => []
  end.

Lemma plays_of_length n l : forall ts, In ts (plays_of n l) -> length ts = length l.
Proof.
  induction l as [|x l IH]; intros ts Ht; [destruct Ht as [<-|[]]; reflexivity|]. cbn [plays_of] in Ht.
  apply in_flat_map in Ht. destruct Ht as (t & _ & Ht). apply in_map_iff in Ht. destruct Ht as (r & <- & Hr). cbn. f_equal. auto.
Qed.

Lemma sum_plays_step n l : forall F : list trajectory -> K,
  sum (plays_of (S n) l) F
  = sum (tuples (map own_states l)) (fun ss => sum (tuples (map own_actions l)) (fun a => sum (plays_of n l) (fun ts => F (prepend ss a ts)))).
Proof.
  induction l as [|x l IH]; intros F; [cbn; ring|]. cbn [plays_of map].
  rewrite sum_flat, sum_tuples.
  rewrite (sum_ext (trajectories (own L x) (S n)) _ (fun t => sum (plays_of (S n) l) (fun ts => F (t :: ts)))) by (intros; apply sum_map).
  rewrite sum_trajectories. apply sum_ext. intros s _.
  transitivity (sum (tuples (map own_states l)) (fun ss => sum (seq 0 (own_actions x)) (fun y => sum (tuples (map own_actions l)) (fun a =>
    sum (trajectories (own L x) n) (fun t => sum (plays_of n l) (fun ts => F (((s, y) :: t) :: prepend ss a ts))))))).
  - rewrite (sum_swap (tuples (map own_states l)) (seq 0 (own_actions x))). change (actions (own L x)) with (seq 0 (own_actions x)). apply sum_ext. intros y _.
    rewrite (sum_ext (trajectories (own L x) n) _ (fun t => sum (tuples (map own_states l)) (fun ss => sum (tuples (map own_actions l)) (fun a =>
      sum (plays_of n l) (fun ts => F (((s, y) :: t) :: prepend ss a ts)))))) by (intros t _; apply (IH (fun ts => F (((s, y) :: t) :: ts)))).
    rewrite (sum_swap (trajectories (own L x) n) (tuples (map own_states l))). apply sum_ext. intros ss _. apply sum_swap.
  - apply sum_ext. intros ss _. rewrite sum_tuples. apply sum_ext. intros y _. apply sum_ext. intros a _.
    rewrite sum_flat. apply sum_ext. intros t _. rewrite sum_map. reflexivity.
Qed.

Lemma probability_prepend (bf : nat -> past nat) (st ac : nat -> nat) : forall l ss a ts i,
  length ss = length l -> length a = length l -> length ts = length l ->
  (forall k, k < length l -> nth k ss 0 = st (i + k)) -> (forall k, k < length l -> nth k a 0 = ac (i + k)) ->
  probability_after bf i l (prepend ss a ts)
  = (product_K (fun k x => arrival (own L x) (bf k) (st k) * who k (bf k) (st k) (ac k)) i l
     * probability_after (fun k => (st k, ac k) :: bf k) i l ts)%num.
Proof.
  induction l as [|x l IH]; intros [|s ss] [|y a] [|t ts] i E1 E2 E3 Ns Na; try discriminate; [cbn; ring|].
  cbn [prepend probability_after product_K probability].
  assert (S0 := Ns 0). assert (A0 := Na 0). rewrite Nat.add_0_r in S0, A0. cbn in S0, A0. rewrite S0, A0 by lia.
  rewrite (IH ss a ts (S i)); [ring | cbn in *; lia | cbn in *; lia | cbn in *; lia | |].
  - intros k Hk. replace (S i + k) with (i + S k) by lia. apply (Ns (S k)). cbn. lia.
  - intros k Hk. replace (S i + k) with (i + S k) by lia. apply (Na (S k)). cbn. lia.
Qed.

(** * The steps of a play, and of a trajectory of the joint game *)

Definition steps_of (n : nat) (ts : list trajectory) : list (list nat * list nat) :=
  map (fun h => (map (fun t => fst (nth h t (0, 0))) ts, map (fun t => snd (nth h t (0, 0))) ts)) (seq 0 n).

Definition joint_steps (t : list (nat * list nat)) : list (list nat * list nat) :=
  map (fun visit => (tuple L (fst visit), snd visit)) t.

Lemma prepend_heads : forall ss a ts, length ss = length ts -> length a = length ts ->
  map (fun t => fst (nth 0 t (0, 0))) (prepend ss a ts) = ss /\ map (fun t => snd (nth 0 t (0, 0))) (prepend ss a ts) = a /\
  (forall X (f : nat * nat -> X) h, map (fun t => f (nth (S h) t (0, 0))) (prepend ss a ts) = map (fun t => f (nth h t (0, 0))) ts).
Proof.
  induction ss as [|s ss IH]; intros [|y a] [|t ts] E1 E2; try discriminate; [repeat split|].
  destruct (IH a ts) as (A & B & C); [cbn in *; lia | cbn in *; lia|]. cbn [prepend map nth fst snd]. rewrite A, B.
  repeat split. intros X f h. cbn [nth]. rewrite C. reflexivity.
Qed.

Lemma steps_prepend n ss a ts : length ss = length ts -> length a = length ts ->
  steps_of (S n) (prepend ss a ts) = (ss, a) :: steps_of n ts.
Proof.
  intros E1 E2. destruct (prepend_heads ss a ts E1 E2) as (A & B & C). unfold steps_of. cbn [seq map]. rewrite A, B. f_equal.
  rewrite <- seq_shift, map_map. apply map_ext. intros h. rewrite (C nat fst), (C nat snd). reflexivity.
Qed.

(** * The two distributions are the same *)

Lemma sum_states (F : nat -> K) (G : list nat -> K) : (forall c, c < num_states (to_joint L) -> F c = G (tuple L c)) ->
  sum (seq 0 (num_states (to_joint L))) F = sum (tuples_of_states L) G.
Proof.
  intros Q. cbn [to_joint num_states] in *.
  rewrite (sum_ext _ F (fun c => G (tuple L c))) by (intros c Hc; apply in_seq in Hc; apply Q; lia).
  unfold tuple. rewrite <- (sum_map (fun c => nth c (tuples_of_states L) []) _ G). f_equal.
  generalize (tuples_of_states L). induction l as [|x l IH]; [reflexivity|]. cbn [length seq map nth]. f_equal.
  rewrite <- seq_shift, map_map. exact IH.
Qed.

Lemma arrival_joint before c : c < num_states (to_joint L) ->
  arrival J before c = product_K (fun k x => arrival (own L x) (own_past L k before) (own_state L k c)) 0 (agents L).
Proof.
  intros Hc. destruct before as [|[b a] older].
  - cbn [arrival own_past map]. cbn [dynamics initial to_joint start]. apply inj_product_Q.
  - cbn [arrival own_past map]. cbn [dynamics transition to_joint next]. rewrite sum_map. cbn [fst snd].
    rewrite (sum_ext _ _ (fun d => if c =? d then inj (product_Q (fun i x =>
      sum_Q (own_next x (length older) (own_state L i b) (nth i a 0)) (fun entry => if fst entry =? own_state L i d then snd entry else 0%Q))
        0 (agents L)) else zero)) by (intros d _; rewrite (Nat.eqb_sym d c); reflexivity).
    rewrite (sum_pick _ c _ Hc), inj_product_Q. apply product_K_ext. intros k x. cbn [fst snd arrival]. rewrite map_length.
    cbn [own transition]. rewrite inj_sum_Q. apply sum_ext. intros e _. destruct (fst e =? own_state L k c); [reflexivity | apply inj_zero].
Qed.

Lemma same_distribution n : forall before (G : list (list nat * list nat) -> K),
  sum (trajectories J n) (fun t => probability J (together (lift L who)) before t * G (joint_steps t))%num
  = sum (plays_of n (agents L)) (fun ts => probability_after (fun k => own_past L k before) 0 (agents L) ts * G (steps_of n ts))%num.
Proof.
  induction n as [|n IH]; intros before G.
  - cbn [trajectories sum probability joint_steps map].
    assert (Q : forall l i, sum (plays_of 0 l) (fun ts => probability_after (fun k => own_past L k before) i l ts * G (steps_of 0 ts))%num = G []).
    { induction l as [|x l IHl]; intros i; cbn [plays_of sum probability_after steps_of map seq]; [ring|].
      cbn [trajectories]. cbn [flat_map]. rewrite app_nil_r, sum_map. cbn [probability_after probability].
      etransitivity; [|apply (IHl (S i))]. apply sum_ext. intros ts _. cbn [steps_of map seq]. ring. }
    rewrite Q. ring.
  - rewrite sum_trajectories, sum_plays_step. cbn [dynamics states actions]. change (num_actions (to_joint L)) with (map own_actions (agents L)).
    apply sum_states. intros c Hc.
    assert (Hs : In (tuple L c) (tuples (map own_states (agents L)))) by (apply nth_In, Hc).
    assert (Ls : length (tuple L c) = length (agents L)) by (rewrite (in_tuples_length _ _ Hs), map_length; reflexivity).
    apply sum_ext. intros a Ha.
    assert (La : length a = length (agents L)) by (rewrite (in_tuples_length _ _ Ha), map_length; reflexivity).
    transitivity ((arrival J before c * together (lift L who) before c a)
      * sum (plays_of n (agents L)) (fun ts => probability_after (fun k => own_past L k ((c, a) :: before)) 0 (agents L) ts
          * G ((tuple L c, a) :: steps_of n ts)))%num.
    + rewrite <- (IH ((c, a) :: before) (fun r => G ((tuple L c, a) :: r))), <- sum_scale. apply sum_ext. intros t _.
      change (joint_steps ((c, a) :: t)) with ((tuple L c, a) :: joint_steps t). cbn [probability]. ring.
    + rewrite <- sum_scale. apply sum_ext. intros ts Hts. pose proof (plays_of_length _ _ _ Hts) as Lt.
      rewrite steps_prepend by lia.
      rewrite (probability_prepend (fun k => own_past L k before) (fun k => own_state L k c) (fun k => nth k a 0)); try assumption;
        try (intros; reflexivity).
      rewrite product_K_times, <- arrival_joint by exact Hc. unfold together.
      rewrite (product_agents (fun i => lift L who i before c) (fun k => nth k a 0) (agents L) a 0 La (fun k _ => eq_refl)).
      unfold lift. change (fun k => own_past L k ((c, a) :: before)) with (fun k => (own_state L k c, nth k a 0) :: own_past L k before).
      ring.
Qed.

(** * Rewards and costs *)

Fixpoint total_steps (f : nat -> list nat -> list nat -> K) (h : nat) (l : list (list nat * list nat)) : K :=
  match l with
  | [] => zero
  | (ss, a) :: rest => (f h ss a + total_steps f (S h) rest)%num
  end.

Lemma total_joint f : forall t h, total (fun h c a => f h (tuple L c) a) h t = total_steps f h (joint_steps t).
Proof. induction t as [|[c a] r IH]; intros h; cbn; [reflexivity | rewrite IH; reflexivity]. Qed.

Lemma total_map f (g : nat -> list nat * list nat) n : forall h k,
  total_steps f h (map g (seq k n)) = sum (seq 0 n) (fun j => f (h + j) (fst (g (k + j))) (snd (g (k + j)))).
Proof.
  induction n as [|n IH]; intros h k; [reflexivity|]. cbn [seq map total_steps sum]. rewrite !Nat.add_0_r.
  destruct (g k) as [ss a] eqn:Q. cbn [fst snd]. f_equal. rewrite IH, <- seq_shift, sum_map. apply sum_ext. intros j _.
  rewrite <- !plus_n_Sm. reflexivity.
Qed.

Lemma value_plays f :
  value J (fun h c a => f h (tuple L c) a) (together (lift L who))
  = expect L who 0 (agents L) (fun ts => sum (seq 0 (local_steps L)) (fun h =>
      f h (map (fun t => fst (nth h t (0, 0))) ts) (map (fun t => snd (nth h t (0, 0))) ts))).
Proof.
  unfold value. change (horizon J) with (local_steps L).
  rewrite (sum_ext _ _ (fun t => probability J (together (lift L who)) [] t * total_steps f 0 (joint_steps t))%num)
    by (intros t _; rewrite total_joint; reflexivity).
  rewrite (same_distribution (local_steps L) [] (total_steps f 0)). unfold expect.
  assert (P : forall l, plays_of (local_steps L) l = plays L l) by (induction l as [|x l IH]; cbn; [|rewrite IH]; reflexivity).
  assert (Q : forall l i ts, probability_after (fun k => own_past L k []) i l ts = play_probability L who i l ts).
  { induction l as [|x l IH]; intros i [|t ts]; cbn; try reflexivity. rewrite IH. reflexivity. }
  rewrite P. apply sum_ext. intros ts _. rewrite Q. f_equal. unfold steps_of. rewrite total_map. reflexivity.
Qed.

Lemma in_plays l : forall ts, In ts (plays L l) -> length ts = length l /\ forall t, In t ts -> length t = local_steps L.
Proof.
  induction l as [|x l IH]; intros ts Ht; [destruct Ht as [<-|[]]; split; [reflexivity | intros t []]|]. cbn [plays] in Ht.
  apply in_flat_map in Ht. destruct Ht as (t & Hx & Ht). apply in_map_iff in Ht. destruct Ht as (r & <- & Hr).
  destruct (IH r Hr) as [A B]. split; [cbn; f_equal; exact A|]. intros u [<-|Hu]; [apply (in_trajectories _ _ _ Hx) | apply B, Hu].
Qed.

Section Play.
Variable ts : list trajectory.
Hypothesis Hts : In ts (plays L (agents L)).
Variable h : nat.
Hypothesis Hh : h < local_steps L.
Let ss := map (fun t : trajectory => fst (nth h t (0, 0))) ts.
Let aa := map (fun t : trajectory => snd (nth h t (0, 0))) ts.

Lemma nth_step i : i < length (agents L) -> nth_error (nth i ts []) h = Some (nth i ss 0, nth i aa 0).
Proof.
  intros Hi. destruct (in_plays _ _ Hts) as [A B].
  assert (Ht : In (nth i ts []) ts) by (apply nth_In; lia). pose proof (B _ Ht) as Lt.
  assert (E1 : nth i ss 0 = fst (nth h (nth i ts []) (0, 0))).
  { unfold ss. rewrite (nth_indep _ 0 (fst (nth h [] (0, 0)))) by (rewrite map_length; lia).
    apply (map_nth (fun t : trajectory => fst (nth h t (0, 0)))). }
  assert (E2 : nth i aa 0 = snd (nth h (nth i ts []) (0, 0))).
  { unfold aa. rewrite (nth_indep _ 0 (snd (nth h [] (0, 0)))) by (rewrite map_length; lia).
    apply (map_nth (fun t : trajectory => snd (nth h t (0, 0)))). }
  rewrite E1, E2, <- surjective_pairing. apply nth_error_nth'. lia.
Qed.

Lemma is_user_step e i : i < length (agents L) -> is_user h e (agent L i) (nth i ts []) = is_user_at L h e i ss aa.
Proof. intros Hi. unfold is_user. rewrite nth_step by exact Hi. reflexivity. Qed.

Lemma load_step e : load h e (agents L) ts = load_at L h e ss aa.
Proof.
  unfold load_at. destruct (in_plays _ _ Hts) as [A _].
  rewrite (filter_ext_in (fun i => is_user_at L h e i ss aa) (fun i => is_user h e (agent L i) (nth i ts [])))
    by (intros i Hi; apply in_seq in Hi; symmetry; apply is_user_step; lia).
  unfold agent. revert A. generalize (agents L). clear. intros l. revert ts.
  induction l as [|x l IH]; intros [|t ts] A; try discriminate; [reflexivity|]. cbn [load length seq filter nth].
  rewrite (IH ts) by (cbn in A; lia). rewrite <- seq_shift.
  assert (Q : forall (f : nat -> bool) m, length (filter f (map S m)) = length (filter (fun i => f (S i)) m)).
  { induction m as [|k m IHm]; [reflexivity|]. cbn [map filter]. destruct (f (S k)); cbn [length]; rewrite IHm; reflexivity. }
  destruct (is_user h e x t); cbn [length]; rewrite Q; reflexivity.
Qed.

End Play.

Lemma total_play (f : nat -> nat -> nat -> K) ts i : In ts (plays L (agents L)) -> i < length (agents L) ->
  total f 0 (nth i ts []) = sum (seq 0 (local_steps L)) (fun h =>
    f h (nth i (map (fun t => fst (nth h t (0, 0))) ts) 0) (nth i (map (fun t => snd (nth h t (0, 0))) ts) 0)).
Proof.
  intros Hts Hi. destruct (in_plays _ _ Hts) as [A B]. rewrite total_nth.
  assert (Ht : In (nth i ts []) ts) by (apply nth_In; lia). rewrite (B _ Ht). apply sum_ext. intros h Hh. apply in_seq in Hh.
  rewrite (nth_step ts Hts h) by lia. reflexivity.
Qed.

Theorem payoffs_are_joint i : i < length (agents L) ->
  reward_value (to_joint L) i (together (lift L who)) = expectation L (payoff L i) who.
Proof.
  intros Hi. unfold reward_value. cbn [to_joint reward]. rewrite (value_plays (fun h ss a => inj (reward_at L i h ss a))).
  change (expectation L (payoff L i) who) with (expect L who 0 (agents L) (payoff L i)). apply expect_ext. intros ts Hts.
  unfold payoff, over_resources. rewrite (total_play _ ts i Hts Hi), <- sum_minus. apply sum_ext. intros h Hh. apply in_seq in Hh.
  unfold reward_at. rewrite inj_minus, inj_sum_Q. f_equal. apply sum_ext. intros e _.
  rewrite (is_user_step ts Hts h ltac:(lia) e i Hi), (load_step ts Hts h ltac:(lia) e).
  destruct (is_user_at L h e i _ _); [reflexivity | apply inj_zero].
Qed.

Theorem charges_are_joint j :
  value J (fun h c a => inj (cost (to_joint L) j h c a)) (together (lift L who)) = expectation L (charge L j) who.
Proof.
  cbn [to_joint cost]. rewrite (value_plays (fun h ss a => inj (cost_at L j h ss a))).
  change (expectation L (charge L j) who) with (expect L who 0 (agents L) (charge L j)). apply expect_ext. intros ts Hts.
  unfold charge, over_resources.
  rewrite (sum_ext (seq 0 (length (agents L))) _ (fun k => sum (seq 0 (local_steps L)) (fun h => inj (private_cost (agent L k) j h
    (nth k (map (fun t => fst (nth h t (0, 0))) ts) 0) (nth k (map (fun t => snd (nth h t (0, 0))) ts) 0))))).
  - rewrite sum_swap, <- sum_plus. apply sum_ext. intros h Hh. apply in_seq in Hh. unfold cost_at.
    rewrite of_Q_plus, !inj_sum_Q. f_equal. apply sum_ext. intros e _. rewrite (load_step ts Hts h ltac:(lia) e). reflexivity.
  - intros k Hk. apply in_seq in Hk. apply (total_play (fun h s a => inj (private_cost (agent L k) j h s a)) ts k Hts). lia.
Qed.

End Proof.

(** A Nash policy of a local game, said of its joint form: deviations are those that look at the own past only. *)
Theorem local_nash_is_joint (K : numbers) L p eps : local_nash K L p eps ->
  let g := to_joint L in
  let follow := together (lift L (local_follow (K := K) p)) in
  (forall j, j < num_constraints g -> meets g j follow) /\
  forall i d, i < length (agents L) -> is_behaviour (own L (agent L i)) d ->
    let deviate := together (lift L (local_deviate i d (local_follow p))) in
    (forall j, j < num_constraints g -> binds g i j = true -> meets g j deviate) ->
    (reward_value g i deviate <= reward_value g i follow + of_Q eps)%num.
Proof.
  intros (_ & F & N) g follow. split.
  - intros j Hj. unfold meets. subst g follow. rewrite charges_are_joint. apply F, Hj.
  - intros i d Hi Hd deviate Hf. subst g follow deviate. rewrite !payoffs_are_joint by exact Hi. apply N; [exact Hi | exact Hd|].
    intros j Hj Hb. unfold local_meets. rewrite <- charges_are_joint. apply Hf; assumption.
Qed.
