(** What a proof file claims, for joint games: definitions only, no algorithm and no proof.

    To believe what [cmpg-verify] says about a joint game, read this file. *)
From Coq Require Import QArith List Arith Ring.
Import ListNotations.
Local Open Scope nat_scope.

(** * Numbers *)

(** An ordered commutative ring that contains the rationals.  Rationals.v and Reals.v show that the rationals and the
    reals are such rings.  Games and policies have rational entries; deviations may use all of the ring. *)
Record numbers := Numbers {
  number :> Type;
  zero : number;
  one : number;
  plus : number -> number -> number;
  times : number -> number -> number;
  minus : number -> number -> number;
  opposite : number -> number;
  le : number -> number -> Prop;
  of_Q : Q -> number;
  ring_laws : ring_theory zero one plus times minus opposite (@eq number);
  le_refl : forall x, le x x;
  le_trans : forall x y z, le x y -> le y z -> le x z;
  le_antisym : forall x y, le x y -> le y x -> x = y;
  le_plus : forall x y z, le x y -> le (plus x z) (plus y z);
  le_times : forall x y, le zero x -> le zero y -> le zero (times x y);
  of_Q_one : of_Q 1 = one;
  of_Q_plus : forall p q, of_Q (p + q)%Q = plus (of_Q p) (of_Q q);
  of_Q_times : forall p q, of_Q (p * q)%Q = times (of_Q p) (of_Q q);
  of_Q_le : forall p q, (p <= q)%Q <-> le (of_Q p) (of_Q q) }.

Arguments zero {_}.
Arguments one {_}.
Arguments plus {_}.
Arguments times {_}.
Arguments minus {_}.
Arguments opposite {_}.
Arguments le {_}.
Arguments of_Q {_}.

Declare Scope number_scope.
Delimit Scope number_scope with num.
Notation "x + y" := (plus x y) : number_scope.
Notation "x * y" := (times x y) : number_scope.
Notation "x - y" := (minus x y) : number_scope.
Notation "x <= y" := (le x y) : number_scope.

Fixpoint sum {K : numbers} {X : Type} (l : list X) (f : X -> K) : K :=
  match l with
  | [] => zero
  | x :: rest => (f x + sum rest f)%num
  end.

(** * Decision processes with a finite horizon *)

(** States, steps, agents, constraints and resources are numbered from 0.  The actions are of any type [A]: joint
    actions in a joint game, own actions in a local game. *)
Record process (A : Type) := Process {
  states : nat;
  horizon : nat;
  actions : list A;
  initial : nat -> Q;  (** state *)
  transition : nat -> nat -> A -> list (nat * Q) }.  (** step, state, action: next states with their probabilities *)

Arguments Process {A}.
Arguments states {A}.
Arguments horizon {A}.
Arguments actions {A}.
Arguments initial {A}.
Arguments transition {A}.

Section Process.
Context {K : numbers} {A : Type}.
Variable m : process A.

(** The past, latest first: the states that were visited, and the actions that were taken there.  Its length is the
    number of the present step. *)
Definition past := list (nat * A).

Definition is_past (before : past) : Prop :=
  length before < horizon m /\ Forall (fun visit => fst visit < states m /\ In (snd visit) (actions m)) before.

(** A behaviour: the probability of each action, given the whole past and the present state. *)
Definition behaviour := past -> nat -> A -> K.

Definition is_behaviour (b : behaviour) : Prop :=
  forall before s, is_past before -> s < states m ->
    (forall a, In a (actions m) -> (zero <= b before s a)%num) /\ sum (actions m) (b before s) = one.

(** The probability that [s] comes after a past. *)
Definition arrival (before : past) (s : nat) : K :=
  match before with
  | [] => of_Q (initial m s)
  | (x, a) :: older =>
      sum (transition m (length older) x a) (fun entry => if fst entry =? s then of_Q (snd entry) else zero)
  end.

(** A trajectory, earliest first: its probability after a past, and the total of [f] along it from step [h] on. *)
Fixpoint probability (b : behaviour) (before : past) (t : list (nat * A)) : K :=
  match t with
  | [] => one
  | (s, a) :: rest => (arrival before s * b before s a * probability b ((s, a) :: before) rest)%num
  end.

Fixpoint total (f : nat -> nat -> A -> K) (h : nat) (t : list (nat * A)) : K :=
  match t with
  | [] => zero
  | (s, a) :: rest => (f h s a + total f (S h) rest)%num
  end.

(** All trajectories of a length. *)
Fixpoint trajectories (n : nat) : list (list (nat * A)) :=
  match n with
  | 0 => [[]]
  | S k => flat_map (fun s => flat_map (fun a => map (cons (s, a)) (trajectories k)) (actions m)) (seq 0 (states m))
  end.

(** The value of [f]: the sum over all trajectories of their probability times their total. *)
Definition value (f : nat -> nat -> A -> K) (b : behaviour) : K :=
  sum (trajectories (horizon m)) (fun t => (probability b [] t * total f 0 t)%num).

(** Initial probabilities and rows of the transition are distributions. *)
Definition is_process : Prop :=
  (forall s, s < states m -> (@zero K <= of_Q (initial m s))%num) /\
  sum (seq 0 (states m)) (fun s => @of_Q K (initial m s)) = one /\
  forall h s a, h < horizon m -> s < states m -> In a (actions m) ->
    (forall entry, In entry (transition m h s a) -> fst entry < states m /\ (@zero K <= of_Q (snd entry))%num) /\
    sum (transition m h s a) (fun entry => @of_Q K (snd entry)) = one.

End Process.

Arguments past : clear implicits.
Arguments behaviour : clear implicits.
Arguments is_process : clear implicits.
Arguments is_process K {A}.

(** * Joint games *)

Record game := Game {
  num_actions : list nat;  (** of each agent *)
  num_states : nat;
  num_steps : nat;
  num_constraints : nat;
  start : nat -> Q;  (** state *)
  next : nat -> nat -> list nat -> list (nat * Q);  (** step, state, joint action *)
  reward : nat -> nat -> nat -> list nat -> Q;  (** agent, step, state, joint action *)
  cost : nat -> nat -> nat -> list nat -> Q;  (** constraint, step, state, joint action *)
  threshold : nat -> Q;  (** constraint *)
  binds : nat -> nat -> bool }.  (** agent, constraint *)

(** All ways to take one number below each of the sizes. *)
Fixpoint tuples (sizes : list nat) : list (list nat) :=
  match sizes with
  | [] => [[]]
  | n :: rest => flat_map (fun x => map (cons x) (tuples rest)) (seq 0 n)
  end.

Definition dynamics (g : game) : process (list nat) :=
  {| states := num_states g; horizon := num_steps g; actions := tuples (num_actions g); initial := start g;
     transition := next g |}.

(** The policy of a claim: agent, step, state, own action. *)
Definition policy := nat -> nat -> nat -> nat -> Q.

Section Joint.
Context {K : numbers}.
Variable g : game.

Definition num_agents : nat := length (num_actions g).

(** A strategy of one agent: the probability of each of its actions, given the whole past of states and joint actions
    and the present state. *)
Definition strategy := past (list nat) -> nat -> nat -> K.

Definition is_strategy (i : nat) (d : strategy) : Prop :=
  forall before s, is_past (dynamics g) before -> s < num_states g ->
    (forall x, x < nth i (num_actions g) 0 -> (zero <= d before s x)%num) /\
    sum (seq 0 (nth i (num_actions g) 0)) (d before s) = one.

(** The agents choose independently of each other: the product from agent [i] on. *)
Fixpoint product (w : nat -> nat -> K) (i : nat) (a : list nat) : K :=
  match a with
  | [] => one
  | x :: rest => (w i x * product w (S i) rest)%num
  end.

Definition together (who : nat -> strategy) : behaviour K (list nat) :=
  fun before s a => product (fun i => who i before s) 0 a.

Definition follow (p : policy) : nat -> strategy := fun i before s x => of_Q (p i (length before) s x).

(** Agent [i] alone does [d] instead. *)
Definition deviate (i : nat) (d : strategy) (who : nat -> strategy) : nat -> strategy :=
  fun k => if k =? i then d else who k.

Definition reward_value (i : nat) (b : behaviour K (list nat)) : K :=
  value (dynamics g) (fun h s a => of_Q (reward g i h s a)) b.

Definition meets (j : nat) (b : behaviour K (list nat)) : Prop :=
  (value (dynamics g) (fun h s a => of_Q (cost g j h s a)) b <= of_Q (threshold g j))%num.

(** The claim [nash]: the policy meets every threshold, and no agent gains more than [eps] by any deviation after which
    the constraints that bind this agent still hold. *)
Definition nash (p : policy) (eps : Q) : Prop :=
  is_process K (dynamics g) /\
  (forall i, i < num_agents -> is_strategy i (follow p i)) /\
  (forall j, j < num_constraints g -> meets j (together (follow p))) /\
  forall i d, i < num_agents -> is_strategy i d ->
    (forall j, j < num_constraints g -> binds g i j = true -> meets j (together (deviate i d (follow p)))) ->
    (reward_value i (together (deviate i d (follow p))) <= reward_value i (together (follow p)) + of_Q eps)%num.

(** The claim [infeasible]: whatever the agents do, even if they coordinate, some threshold is not met. *)
Definition infeasible : Prop :=
  is_process K (dynamics g) /\
  forall b, is_behaviour (dynamics g) b -> ~ forall j, j < num_constraints g -> meets j b.

End Joint.

Arguments strategy : clear implicits.
Arguments nash : clear implicits.
Arguments infeasible : clear implicits.
