
val negb : bool -> bool

type nat =
| O
| S of nat

val fst : ('a1 * 'a2) -> 'a1

val snd : ('a1 * 'a2) -> 'a2

val length : 'a1 list -> nat

val app : 'a1 list -> 'a1 list -> 'a1 list

type comparison =
| Eq
| Lt
| Gt

val compOpp : comparison -> comparison

val add : nat -> nat -> nat

val sub : nat -> nat -> nat

type positive =
| XI of positive
| XO of positive
| XH

type z =
| Z0
| Zpos of positive
| Zneg of positive

module Nat :
 sig
  val eqb : nat -> nat -> bool

  val leb : nat -> nat -> bool

  val ltb : nat -> nat -> bool

  val max : nat -> nat -> nat

  val div2 : nat -> nat
 end

module Pos :
 sig
  type mask =
  | IsNul
  | IsPos of positive
  | IsNeg
 end

module Coq_Pos :
 sig
  val succ : positive -> positive

  val add : positive -> positive -> positive

  val add_carry : positive -> positive -> positive

  val pred_double : positive -> positive

  type mask = Pos.mask =
  | IsNul
  | IsPos of positive
  | IsNeg

  val succ_double_mask : mask -> mask

  val double_mask : mask -> mask

  val double_pred_mask : positive -> mask

  val sub_mask : positive -> positive -> mask

  val sub_mask_carry : positive -> positive -> mask

  val sub : positive -> positive -> positive

  val mul : positive -> positive -> positive

  val size_nat : positive -> nat

  val compare_cont : comparison -> positive -> positive -> comparison

  val compare : positive -> positive -> comparison

  val eqb : positive -> positive -> bool

  val gcdn : nat -> positive -> positive -> positive

  val gcd : positive -> positive -> positive
 end

module Z :
 sig
  val double : z -> z

  val succ_double : z -> z

  val pred_double : z -> z

  val pos_sub : positive -> positive -> z

  val add : z -> z -> z

  val opp : z -> z

  val sub : z -> z -> z

  val mul : z -> z -> z

  val compare : z -> z -> comparison

  val leb : z -> z -> bool

  val ltb : z -> z -> bool

  val eqb : z -> z -> bool

  val abs : z -> z

  val pos_div_eucl : positive -> z -> z * z

  val div_eucl : z -> z -> z * z

  val div : z -> z -> z

  val gcd : z -> z -> z
 end

val zeq_bool : z -> z -> bool

val hd : 'a1 -> 'a1 list -> 'a1

val nth : nat -> 'a1 list -> 'a1 -> 'a1

val removelast : 'a1 list -> 'a1 list

val map : ('a1 -> 'a2) -> 'a1 list -> 'a2 list

val flat_map : ('a1 -> 'a2 list) -> 'a1 list -> 'a2 list

val fold_left : ('a1 -> 'a2 -> 'a1) -> 'a2 list -> 'a1 -> 'a1

val fold_right : ('a2 -> 'a1 -> 'a1) -> 'a1 -> 'a2 list -> 'a1

val existsb : ('a1 -> bool) -> 'a1 list -> bool

val forallb : ('a1 -> bool) -> 'a1 list -> bool

val filter : ('a1 -> bool) -> 'a1 list -> 'a1 list

val find : ('a1 -> bool) -> 'a1 list -> 'a1 option

val firstn : nat -> 'a1 list -> 'a1 list

val skipn : nat -> 'a1 list -> 'a1 list

val seq : nat -> nat -> nat list

val repeat : 'a1 -> nat -> 'a1 list

type q = { qnum : z; qden : positive }

val qeq_bool : q -> q -> bool

val qle_bool : q -> q -> bool

val qplus : q -> q -> q

val qmult : q -> q -> q

val qopp : q -> q

val qminus : q -> q -> q

val qinv : q -> q

val qdiv : q -> q -> q

type 'a process = { states : nat; horizon : nat; actions : 'a list;
                    initial : (nat -> q);
                    transition : (nat -> nat -> 'a -> (nat * q) list) }

type game = { num_actions : nat list; num_states : nat; num_steps : nat;
              num_constraints : nat; start : (nat -> q);
              next : (nat -> nat -> nat list -> (nat * q) list);
              reward : (nat -> nat -> nat -> nat list -> q);
              cost : (nat -> nat -> nat -> nat list -> q);
              threshold : (nat -> q); binds : (nat -> nat -> bool) }

val tuples : nat list -> nat list list

val dynamics : game -> nat list process

type policy = nat -> nat -> nat -> nat -> q

val num_agents : game -> nat

val lowest : q -> q

val is_zero : q -> bool

val is_one : q -> bool

val add0 : q -> q -> q

val sub0 : q -> q -> q

val mul0 : q -> q -> q

val total_of : 'a1 list -> ('a1 -> q) -> q

val larger : q -> q -> q

val largest : 'a1 list -> ('a1 -> q) -> q

type precision = positive option

val above : z -> z -> positive -> q

val below : z -> z -> positive -> q

val up : precision -> q -> q

val down : precision -> q -> q

val mul_up : precision -> q -> q -> q

val mul_down : precision -> q -> q -> q

type 'x tree =
| Leaf of 'x
| Node of nat * 'x tree * 'x tree

val get : 'a1 tree -> nat -> 'a1

val build : nat -> nat -> nat -> (nat -> 'a1) -> 'a1 tree

val tabulate : 'a1 -> nat -> (nat -> 'a1) -> 'a1 tree

val change : 'a1 tree -> nat -> ('a1 -> 'a1) -> 'a1 tree

type failure =
| NoAgents
| Discount
| InitialRow of nat option
| TransitionRow of nat option * nat * nat * nat list
| Usage of nat * nat * nat * nat
| PolicyRow of nat * nat * nat
| Multiplier of nat option * nat
| Threshold of nat * q
| Gain of nat * q
| Margin of q

type verdict =
| Accepted
| Refused of failure

val require : bool -> failure -> verdict

val each : 'a1 list -> ('a1 -> verdict) -> verdict

val below_each : nat -> (nat -> verdict) -> verdict

val is_distribution : 'a1 list -> ('a1 -> q) -> bool

val is_row : nat -> (nat * q) list -> bool

val check_process : 'a1 process -> nat option -> ('a1 -> nat list) -> verdict

val outcome :
  precision -> 'a1 process -> q -> q tree -> nat -> nat -> 'a1 -> q

val backward_table : (q tree -> nat -> q tree) -> nat -> nat -> q tree

val bound : precision -> 'a1 process -> (q tree -> nat -> q tree) -> q

val by_state :
  'a1 process -> (q tree -> nat -> nat -> q) -> q tree -> nat -> q tree

val best_of :
  precision -> 'a1 process -> 'a1 list -> (nat -> nat -> 'a1 -> q) -> q tree
  -> nat -> nat -> q

val combinations : (nat * q) list list -> (nat list * q) list

val policy_row : game -> policy -> nat -> nat -> nat -> (nat * q) list

val policy_rows : game -> policy -> nat -> nat -> (nat * q) list list

val rows_with :
  game -> policy -> nat -> nat -> nat -> nat -> (nat * q) list list

val mixture :
  precision -> nat list process -> (nat * q) list list -> (nat -> nat -> nat
  list -> q) -> q tree -> nat -> nat -> q

val followed :
  precision -> game -> nat list process -> policy -> (nat -> nat -> nat list
  -> q) -> q tree -> nat -> nat -> q

val deviated :
  precision -> game -> nat list process -> policy -> nat -> (nat -> nat ->
  nat list -> q) -> q tree -> nat -> nat -> q

val value_above :
  precision -> game -> nat list process -> policy -> (nat -> nat -> nat list
  -> q) -> q

val value_below :
  precision -> game -> nat list process -> policy -> (nat -> nat -> nat list
  -> q) -> q

val lagrangian :
  game -> (nat -> nat -> q) -> nat -> nat -> nat -> nat list -> q

val gain :
  precision -> game -> nat list process -> policy -> (nat -> nat -> q) -> q
  list -> nat -> q

val check_with :
  precision -> game -> nat list process -> policy -> (nat -> nat -> q) -> q
  -> verdict

val check_nash :
  precision -> game -> policy -> (nat -> nat -> q) -> q -> verdict

val margin : precision -> game -> nat list process -> (nat -> q) -> q

val check_infeasible : precision -> game -> (nat -> q) -> verdict

type interval = { low : q; high : q }

val point : q -> interval

val rounded : precision -> q -> interval

val plus_i : interval -> interval -> interval

val minus_i : interval -> interval -> interval

val scale : precision -> q -> interval -> interval

val weigh : precision -> interval -> interval -> interval

val total_i : 'a1 list -> ('a1 -> interval) -> interval

val scatter : (nat * interval) list -> interval tree -> interval tree

val mix : precision -> interval -> interval list -> interval list

val mix_all : precision -> interval list -> interval list -> interval list

val leave_one_out :
  precision -> nat -> (nat * interval) list -> interval list ->
  (nat * interval) list

type share = { of_all : interval; of_others : (nat * interval) list }

val share_of : share -> nat -> interval

val share_at : precision -> (nat * interval) list -> (nat -> q) -> share

type local_agent = { own_states : nat; own_actions : nat;
                     own_start : (nat -> q);
                     own_next : (nat -> nat -> nat -> (nat * q) list);
                     private_reward : (nat -> nat -> nat -> q);
                     private_cost : (nat -> nat -> nat -> nat -> q);
                     uses : (nat -> nat -> nat -> nat list) }

type local_game = { agents : local_agent list; local_steps : nat;
                    num_resources : nat; local_constraints : nat;
                    delay : (nat -> nat -> nat -> q);
                    load_cost : (nat -> nat -> nat -> nat -> q);
                    local_threshold : (nat -> q);
                    local_binds : (nat -> nat -> bool) }

val no_agent : local_agent

type local_policy = nat -> nat -> nat -> nat -> q

val agent : local_game -> nat -> local_agent

val own : local_game -> local_agent -> nat process

type resource = { delays : share; additions : share list }

type step = { resources : resource tree; charges : interval list;
              worths : interval list }

val nothing : interval

val no_share : share

val no_resource : resource

val count : local_game -> nat

val active : local_game -> (nat -> nat -> q) -> nat -> (nat * q) list

val visits :
  precision -> local_game -> local_policy -> nat -> nat -> interval tree ->
  ((nat * nat) * interval) list

val blank : nat -> interval tree

val advance :
  precision -> local_game -> nat -> nat -> ((nat * nat) * interval) list ->
  interval tree

val usage :
  local_game -> interval tree -> nat -> nat -> ((nat * nat) * interval) list
  -> interval tree

val users_of :
  local_game -> interval tree list -> nat -> (nat * interval) list

val resource_at :
  precision -> local_game -> nat -> nat -> (nat * interval) list -> resource

val price : precision -> nat -> (nat * q) list -> resource -> interval

val private0 : local_game -> nat -> (nat * q) list -> nat -> nat -> nat -> q

val worth :
  precision -> local_game -> (nat -> nat -> q) -> nat -> nat -> resource tree
  -> ((nat * nat) * interval) list -> interval

val charge_at :
  precision -> local_game -> nat -> nat -> (nat * interval) list tree ->
  ((nat * nat) * interval) list list -> interval

val step_at :
  precision -> local_game -> (nat -> nat -> q) -> interval tree -> nat ->
  ((nat * nat) * interval) list list -> step

val forward :
  precision -> local_game -> local_policy -> (nat -> nat -> q) -> interval
  tree -> nat -> nat -> interval tree list -> step list

val all_steps :
  precision -> local_game -> local_policy -> (nat -> nat -> q) -> step list

val no_step : step

val best_layer :
  precision -> local_game -> (nat -> nat -> q) -> step list -> nat -> q tree
  -> nat -> q tree

val local_gain :
  precision -> local_game -> (nat -> nat -> q) -> step list -> q list -> nat
  -> q

val is_usage : local_game -> nat list -> bool

val check_agent : local_game -> local_policy -> nat -> verdict

val check_local :
  precision -> local_game -> local_policy -> (nat -> nat -> q) -> q -> verdict

val add_one : nat -> nat list -> nat list

val count_vectors : nat -> nat -> nat list list

val equal_vectors : nat list -> nat list -> bool

val position : nat list -> nat list list -> nat

type classes =
| Largest of nat list
| Every of nat list list

val class0 : classes -> nat list -> nat

val num_classes : classes -> nat

val every : nat -> nat -> classes

type counting_game = { crowd : nat; choices : nat; shared_states : nat;
                       shared_steps : nat; shared_constraints : nat;
                       grouping : classes; shared_start : (nat -> q);
                       class_next : (nat -> nat -> nat -> (nat * q) list);
                       class_cost : (nat -> nat -> nat -> nat -> q);
                       count_reward : (nat -> nat -> nat -> nat -> q);
                       own_reward : (nat -> nat -> nat -> nat -> q);
                       class_reward : (nat -> nat -> nat -> nat -> q);
                       shared_threshold : (nat -> q);
                       shared_binds : (nat -> nat -> bool) }

val reward_of_counts :
  counting_game -> nat -> nat -> nat -> nat -> nat list -> q

val insert : nat list -> q -> (nat list * q) list -> (nat list * q) list

val add_agent : (nat * q) list -> (nat list * q) list -> (nat list * q) list

val by_class : counting_game -> nat process

val row_of : counting_game -> policy -> nat -> nat -> nat -> (nat * q) list

val others_from :
  counting_game -> policy -> nat -> nat -> nat -> nat -> nat -> (nat
  list * q) list

val by_action :
  precision -> counting_game -> (nat -> nat -> nat -> nat list -> q) -> (nat
  list * q) list -> q tree -> nat -> nat -> nat -> q

val followed_by :
  precision -> counting_game -> policy -> nat -> (nat -> nat -> nat -> nat
  list -> q) -> q tree -> nat -> nat -> q

val deviated_by :
  precision -> counting_game -> policy -> nat -> (nat -> nat -> nat -> nat
  list -> q) -> q tree -> nat -> nat -> q

val crowd_above :
  precision -> counting_game -> policy -> nat -> (nat -> nat -> nat -> nat
  list -> q) -> q

val crowd_below :
  precision -> counting_game -> policy -> nat -> (nat -> nat -> nat -> nat
  list -> q) -> q

val cost_of_counts :
  counting_game -> nat -> nat -> nat -> nat -> nat list -> q

val lagrangian_of_counts :
  counting_game -> (nat -> nat -> q) -> nat -> nat -> nat -> nat -> nat list
  -> q

val crowd_gain :
  precision -> counting_game -> policy -> (nat -> nat -> q) -> q list -> nat
  -> q

val check_counting :
  precision -> counting_game -> policy -> (nat -> nat -> q) -> q -> verdict

val lasting : game -> nat -> game

val stationary : policy -> policy

val shrunk : q -> game -> nat -> game

val look_ahead : q -> (q tree -> q tree) -> nat -> q tree

val tail_of : q -> game -> nat list process -> (nat -> nat list -> q) -> q

val ahead_bound :
  precision -> q -> game -> nat -> nat list process -> (nat -> nat list -> q)
  -> (q tree -> nat -> nat -> q) -> q

val at_every_step : (nat -> nat list -> q) -> nat -> nat -> nat list -> q

val discounted_above :
  precision -> q -> game -> nat -> policy -> nat list process -> (nat -> nat
  list -> q) -> q

val discounted_below :
  precision -> q -> game -> nat -> policy -> nat list process -> (nat -> nat
  list -> q) -> q

val discounted_best :
  precision -> q -> game -> nat -> policy -> nat list process -> nat -> (nat
  -> nat list -> q) -> q

val discounted_gain :
  precision -> q -> game -> nat -> policy -> (nat -> nat -> q) -> nat list
  process -> q list -> nat -> q

val check_discounted_with :
  precision -> q -> game -> nat -> policy -> (nat -> nat -> q) -> nat list
  process -> q -> verdict

val check_discounted :
  precision -> q -> game -> nat -> policy -> (nat -> nat -> q) -> q -> verdict
