(** The checker of local games: a function on rationals.  Nothing here is trusted; LocalSoundness.v proves it right.

    One pass forward computes where each agent is and what it uses, and from that what each resource costs its users; one
    pass backward for each agent bounds what its best deviation is worth. *)
From Coq Require Import QArith List Arith.
From Cmpg Require Import Semantics Arithmetic Checker Intervals Loads LocalSemantics.
Import ListNotations.
Local Open Scope nat_scope.

(** A resource at a step: the delay of one more user, and for each constraint what one more user adds to the cost. *)
Record resource := Resource { delays : share; additions : list share }.

(** What is kept of a step: its resources; what each constraint is charged; the Lagrangian of each agent. *)
Record step := Step { resources : tree resource; charges : list interval; worths : list interval }.

Definition nothing : interval := point 0.
Definition no_share : share := Share nothing [].
Definition no_resource : resource := Resource no_share [].

Section Local.
Variable n : precision.
Variable L : local_game.
Variable p : local_policy.
Variable multipliers : nat -> nat -> Q.  (** agent, constraint *)

Definition count : nat := length (agents L).

(** The constraints whose multipliers are not zero. *)
Definition active (i : nat) : list (nat * Q) :=
  filter (fun entry => negb (is_zero (snd entry))) (map (fun j => (j, multipliers i j)) (seq 0 (local_constraints L))).

(** * Forward *)

(** Where agent [i] is and what it does at step [h], with positive probability; [t] is its occupancy. *)
Definition visits (i h : nat) (t : tree interval) : list (nat * nat * interval) :=
  flat_map (fun s =>
    let here := get t s in
    if is_zero (high here) then []
    else flat_map (fun a => let q := p i h s a in if is_zero q then [] else [((s, a), scale n q here)])
           (seq 0 (own_actions (agent L i))))
    (seq 0 (own_states (agent L i))).

Definition blank (size : nat) : tree interval := tabulate nothing size (fun _ => nothing).

(** The occupancy of the next step. *)
Definition advance (i h : nat) (vs : list (nat * nat * interval)) : tree interval :=
  let x := agent L i in
  scatter
    (flat_map (fun v => map (fun entry => (fst entry, scale n (snd entry) (snd v))) (own_next x h (fst (fst v)) (snd (fst v)))) vs)
    (blank (own_states x)).

(** The probability that agent [i] uses each resource. *)
Definition usage (unused : tree interval) (i h : nat) (vs : list (nat * nat * interval)) : tree interval :=
  scatter (flat_map (fun v => map (fun e => (e, snd v)) (uses (agent L i) h (fst (fst v)) (snd (fst v)))) vs) unused.

Definition users_of (rates : list (tree interval)) (e : nat) : list (nat * interval) :=
  filter (fun u => negb (is_zero (high (snd u)))) (map (fun i => (i, get (nth i rates (Leaf nothing)) e)) (seq 0 count)).

Definition resource_at (h e : nat) (users : list (nat * interval)) : resource :=
  Resource (share_at n users (fun m => delay L h e (S m)))
    (map (fun j => share_at n users (fun m => sub (load_cost L j h e (S m)) (load_cost L j h e m))) (seq 0 (local_constraints L))).

(** What agent [i] gets for using a resource, at its multipliers. *)
Definition price (i : nat) (duals : list (nat * Q)) (r : resource) : interval :=
  minus_i nothing (plus_i (share_of (delays r) i)
    (total_i duals (fun dual => scale n (snd dual) (share_of (nth (fst dual) (additions r) no_share) i)))).

Definition private (i : nat) (duals : list (nat * Q)) (h s a : nat) : Q :=
  sub (private_reward (agent L i) h s a) (total_of duals (fun dual => mul (snd dual) (private_cost (agent L i) (fst dual) h s a))).

Definition worth (i h : nat) (rs : tree resource) (vs : list (nat * nat * interval)) : interval :=
  let duals := active i in
  total_i vs (fun v => weigh n (snd v) (plus_i (rounded n (private i duals h (fst (fst v)) (snd (fst v))))
    (total_i (uses (agent L i) h (fst (fst v)) (snd (fst v))) (fun e => price i duals (get rs e))))).

Definition charge_at (j h : nat) (users : tree (list (nat * interval))) (vss : list (list (nat * nat * interval))) : interval :=
  plus_i
    (total_i (seq 0 count) (fun i => total_i (nth i vss []) (fun v =>
      weigh n (snd v) (rounded n (private_cost (agent L i) j h (fst (fst v)) (snd (fst v)))))))
    (total_i (seq 0 (num_resources L)) (fun e => of_all (share_at n (get users e) (load_cost L j h e)))).

Definition step_at (unused : tree interval) (h : nat) (vss : list (list (nat * nat * interval))) : step :=
  let rates := map (fun i => usage unused i h (nth i vss [])) (seq 0 count) in
  let users := tabulate [] (num_resources L) (users_of rates) in
  let rs := tabulate no_resource (num_resources L) (fun e => resource_at h e (get users e)) in
  Step rs (map (fun j => charge_at j h users vss) (seq 0 (local_constraints L)))
       (map (fun i => worth i h rs (nth i vss [])) (seq 0 count)).

Fixpoint forward (unused : tree interval) (remaining h : nat) (ts : list (tree interval)) : list step :=
  match remaining with
  | 0 => []
  | S k =>
      let vss := map (fun i => visits i h (nth i ts (Leaf nothing))) (seq 0 count) in
      let now := step_at unused h vss in
      now :: forward unused k (S h) (map (fun i => advance i h (nth i vss [])) (seq 0 count))
  end.

Definition all_steps : list step :=
  forward (blank (num_resources L)) (local_steps L) 0
    (map (fun i => tabulate nothing (own_states (agent L i)) (fun s => rounded n (own_start (agent L i) s))) (seq 0 count)).

(** * Backward *)

Definition no_step : step := Step (Leaf no_resource) [] [].

Definition best_layer (steps : list step) (i : nat) (next : tree Q) (h : nat) : tree Q :=
  let x := agent L i in
  let duals := active i in
  let rs := resources (nth h steps no_step) in
  let prices := tabulate 0%Q (num_resources L) (fun e => high (price i duals (get rs e))) in
  tabulate 0%Q (own_states x) (fun s => largest (seq 0 (own_actions x)) (fun a =>
    outcome n (own L x) (add (up n (private i duals h s a)) (total_of (uses x h s a) (get prices))) next h s a)).

(** An upper bound on what agent [i] can gain; [costs] are lower bounds on the costs of the policy. *)
Definition local_gain (steps : list step) (costs : list Q) (i : nat) : Q :=
  add (sub (bound n (own L (agent L i)) (best_layer steps i))
           (low (total_i steps (fun st => nth i (worths st) nothing))))
      (total_of (seq 0 (local_constraints L)) (fun j => mul (multipliers i j) (sub (local_threshold L j) (nth j costs 0%Q)))).

(** * The check *)

Fixpoint is_usage (l : list nat) : bool :=
  match l with
  | [] => true
  | e :: rest => (e <? num_resources L) && negb (existsb (Nat.eqb e) rest) && is_usage rest
  end.

Definition check_agent (i : nat) : verdict :=
  let x := agent L i in
  check_process (own L x) (Some i) (fun a => [a]) ;;
  below_each (local_steps L) (fun h => below_each (own_states x) (fun s =>
    require (is_distribution (seq 0 (own_actions x)) (p i h s)) (PolicyRow i h s) ;;
    below_each (own_actions x) (fun a => require (is_usage (uses x h s a)) (Usage i h s a)))).

Definition check_local (eps : Q) : verdict :=
  below_each count check_agent ;;
  below_each count (fun i => below_each (local_constraints L) (fun j =>
    require (Qle_bool 0 (multipliers i j) && (local_binds L i j || is_zero (multipliers i j))) (Multiplier (Some i) j))) ;;
  let steps := all_steps in
  let costs := map (fun j => total_i steps (fun st => nth j (charges st) nothing)) (seq 0 (local_constraints L)) in
  below_each (local_constraints L) (fun j =>
    let c := high (nth j costs nothing) in require (Qle_bool c (local_threshold L j)) (Threshold j c)) ;;
  let lows := map low costs in
  below_each count (fun i => let x := local_gain steps lows i in require (Qle_bool x eps) (Gain i x)).

End Local.
