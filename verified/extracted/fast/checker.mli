
val negb : bool -> bool

val fst : ('a1 * 'a2) -> 'a1

val snd : ('a1 * 'a2) -> 'a2

val length : 'a1 list -> int

val app : 'a1 list -> 'a1 list -> 'a1 list

type comparison =
| Eq
| Lt
| Gt

val compOpp : comparison -> comparison

module Nat :
 sig
  val max : int -> int -> int
 end

module Pos :
 sig
  type mask =
  | IsNul
  | IsPos of Integer.t
  | IsNeg
 end

module Coq_Pos :
 sig
  val succ : Integer.t -> Integer.t

  val add : Integer.t -> Integer.t -> Integer.t

  val add_carry : Integer.t -> Integer.t -> Integer.t

  val pred_double : Integer.t -> Integer.t

  type mask = Pos.mask =
  | IsNul
  | IsPos of Integer.t
  | IsNeg

  val succ_double_mask : mask -> mask

  val double_mask : mask -> mask

  val double_pred_mask : Integer.t -> mask

  val sub_mask : Integer.t -> Integer.t -> mask

  val sub_mask_carry : Integer.t -> Integer.t -> mask

  val sub : Integer.t -> Integer.t -> Integer.t

  val size_nat : Integer.t -> int

  val compare_cont : comparison -> Integer.t -> Integer.t -> comparison

  val compare : Integer.t -> Integer.t -> comparison

  val gcdn : int -> Integer.t -> Integer.t -> Integer.t

  val gcd : Integer.t -> Integer.t -> Integer.t
 end

module Z :
 sig
  val double : Integer.t -> Integer.t

  val succ_double : Integer.t -> Integer.t

  val pred_double : Integer.t -> Integer.t

  val pos_sub : Integer.t -> Integer.t -> Integer.t

  val sub : Integer.t -> Integer.t -> Integer.t

  val compare : Integer.t -> Integer.t -> comparison

  val ltb : Integer.t -> Integer.t -> bool

  val abs : Integer.t -> Integer.t

  val pos_div_eucl : Integer.t -> Integer.t -> Integer.t * Integer.t

  val div_eucl : Integer.t -> Integer.t -> Integer.t * Integer.t
 end

val hd : 'a1 -> 'a1 list -> 'a1

val nth : int -> 'a1 list -> 'a1 -> 'a1

val removelast : 'a1 list -> 'a1 list

val map : ('a1 -> 'a2) -> 'a1 list -> 'a2 list

val flat_map : ('a1 -> 'a2 list) -> 'a1 list -> 'a2 list

val fold_left : ('a1 -> 'a2 -> 'a1) -> 'a2 list -> 'a1 -> 'a1

val fold_right : ('a2 -> 'a1 -> 'a1) -> 'a1 -> 'a2 list -> 'a1

val existsb : ('a1 -> bool) -> 'a1 list -> bool

val forallb : ('a1 -> bool) -> 'a1 list -> bool

val filter : ('a1 -> bool) -> 'a1 list -> 'a1 list

val find : ('a1 -> bool) -> 'a1 list -> 'a1 option

val firstn : int -> 'a1 list -> 'a1 list

val skipn : int -> 'a1 list -> 'a1 list

val seq : int -> int -> int list

val repeat : 'a1 -> int -> 'a1 list

type q = { qnum : Integer.t; qden : Integer.t }

val qeq_bool : q -> q -> bool

val qle_bool : q -> q -> bool

val qplus : q -> q -> q

val qmult : q -> q -> q

val qopp : q -> q

val qminus : q -> q -> q

val qinv : q -> q

val qdiv : q -> q -> q

type 'a process = { states : int; horizon : int; actions : 'a list;
                    initial : (int -> q);
                    transition : (int -> int -> 'a -> (int * q) list) }

type game = { num_actions : int list; num_states : int; num_steps : int;
              num_constraints : int; start : (int -> q);
              next : (int -> int -> int list -> (int * q) list);
              reward : (int -> int -> int -> int list -> q);
              cost : (int -> int -> int -> int list -> q);
              threshold : (int -> q); binds : (int -> int -> bool) }

val tuples : int list -> int list list

val dynamics : game -> int list process

type policy = int -> int -> int -> int -> q

val num_agents : game -> int

val lowest : q -> q

val is_zero : q -> bool

val is_one : q -> bool

val add0 : q -> q -> q

val sub0 : q -> q -> q

val mul : q -> q -> q

val total_of : 'a1 list -> ('a1 -> q) -> q

val larger : q -> q -> q

val largest : 'a1 list -> ('a1 -> q) -> q

type precision = Integer.t option

val above : Integer.t -> Integer.t -> Integer.t -> q

val below : Integer.t -> Integer.t -> Integer.t -> q

val up : precision -> q -> q

val down : precision -> q -> q

val mul_up : precision -> q -> q -> q

val mul_down : precision -> q -> q -> q

type 'x tree =
| Leaf of 'x
| Node of int * 'x tree * 'x tree

val get : 'a1 tree -> int -> 'a1

val build : int -> int -> int -> (int -> 'a1) -> 'a1 tree

val tabulate : 'a1 -> int -> (int -> 'a1) -> 'a1 tree

val change : 'a1 tree -> int -> ('a1 -> 'a1) -> 'a1 tree

type failure =
| NoAgents
| Discount
| InitialRow of int option
| TransitionRow of int option * int * int * int list
| Usage of int * int * int * int
| PolicyRow of int * int * int
| Multiplier of int option * int
| Threshold of int * q
| Gain of int * q
| Margin of q

type verdict =
| Accepted
| Refused of failure

val require : bool -> failure -> verdict

val each : 'a1 list -> ('a1 -> verdict) -> verdict

val below_each : int -> (int -> verdict) -> verdict

val is_distribution : 'a1 list -> ('a1 -> q) -> bool

val is_row : int -> (int * q) list -> bool

val check_process : 'a1 process -> int option -> ('a1 -> int list) -> verdict

val outcome :
  precision -> 'a1 process -> q -> q tree -> int -> int -> 'a1 -> q

val backward_table : (q tree -> int -> q tree) -> int -> int -> q tree

val bound : precision -> 'a1 process -> (q tree -> int -> q tree) -> q

val by_state :
  'a1 process -> (q tree -> int -> int -> q) -> q tree -> int -> q tree

val best_of :
  precision -> 'a1 process -> 'a1 list -> (int -> int -> 'a1 -> q) -> q tree
  -> int -> int -> q

val combinations : (int * q) list list -> (int list * q) list

val policy_row : game -> policy -> int -> int -> int -> (int * q) list

val policy_rows : game -> policy -> int -> int -> (int * q) list list

val rows_with :
  game -> policy -> int -> int -> int -> int -> (int * q) list list

val mixture :
  precision -> int list process -> (int * q) list list -> (int -> int -> int
  list -> q) -> q tree -> int -> int -> q

val followed :
  precision -> game -> int list process -> policy -> (int -> int -> int list
  -> q) -> q tree -> int -> int -> q

val deviated :
  precision -> game -> int list process -> policy -> int -> (int -> int ->
  int list -> q) -> q tree -> int -> int -> q

val value_above :
  precision -> game -> int list process -> policy -> (int -> int -> int list
  -> q) -> q

val value_below :
  precision -> game -> int list process -> policy -> (int -> int -> int list
  -> q) -> q

val lagrangian :
  game -> (int -> int -> q) -> int -> int -> int -> int list -> q

val gain :
  precision -> game -> int list process -> policy -> (int -> int -> q) -> q
  list -> int -> q

val check_with :
  precision -> game -> int list process -> policy -> (int -> int -> q) -> q
  -> verdict

val check_nash :
  precision -> game -> policy -> (int -> int -> q) -> q -> verdict

val margin : precision -> game -> int list process -> (int -> q) -> q

val check_infeasible : precision -> game -> (int -> q) -> verdict

type interval = { low : q; high : q }

val point : q -> interval

val rounded : precision -> q -> interval

val plus_i : interval -> interval -> interval

val minus_i : interval -> interval -> interval

val scale : precision -> q -> interval -> interval

val weigh : precision -> interval -> interval -> interval

val total_i : 'a1 list -> ('a1 -> interval) -> interval

val scatter : (int * interval) list -> interval tree -> interval tree

val mix : precision -> interval -> interval list -> interval list

val mix_all : precision -> interval list -> interval list -> interval list

val leave_one_out :
  precision -> int -> (int * interval) list -> interval list ->
  (int * interval) list

type share = { of_all : interval; of_others : (int * interval) list }

val share_of : share -> int -> interval

val share_at : precision -> (int * interval) list -> (int -> q) -> share

type local_agent = { own_states : int; own_actions : int;
                     own_start : (int -> q);
                     own_next : (int -> int -> int -> (int * q) list);
                     private_reward : (int -> int -> int -> q);
                     private_cost : (int -> int -> int -> int -> q);
                     uses : (int -> int -> int -> int list) }

type local_game = { agents : local_agent list; local_steps : int;
                    num_resources : int; local_constraints : int;
                    delay : (int -> int -> int -> q);
                    load_cost : (int -> int -> int -> int -> q);
                    local_threshold : (int -> q);
                    local_binds : (int -> int -> bool) }

val no_agent : local_agent

type local_policy = int -> int -> int -> int -> q

val agent : local_game -> int -> local_agent

val own : local_game -> local_agent -> int process

type resource = { delays : share; additions : share list }

type step = { resources : resource tree; charges : interval list;
              worths : interval list }

val nothing : interval

val no_share : share

val no_resource : resource

val count : local_game -> int

val active : local_game -> (int -> int -> q) -> int -> (int * q) list

val visits :
  precision -> local_game -> local_policy -> int -> int -> interval tree ->
  ((int * int) * interval) list

val blank : int -> interval tree

val advance :
  precision -> local_game -> int -> int -> ((int * int) * interval) list ->
  interval tree

val usage :
  local_game -> interval tree -> int -> int -> ((int * int) * interval) list
  -> interval tree

val users_of :
  local_game -> interval tree list -> int -> (int * interval) list

val resource_at :
  precision -> local_game -> int -> int -> (int * interval) list -> resource

val price : precision -> int -> (int * q) list -> resource -> interval

val private0 : local_game -> int -> (int * q) list -> int -> int -> int -> q

val worth :
  precision -> local_game -> (int -> int -> q) -> int -> int -> resource tree
  -> ((int * int) * interval) list -> interval

val charge_at :
  precision -> local_game -> int -> int -> (int * interval) list tree ->
  ((int * int) * interval) list list -> interval

val step_at :
  precision -> local_game -> (int -> int -> q) -> interval tree -> int ->
  ((int * int) * interval) list list -> step

val forward :
  precision -> local_game -> local_policy -> (int -> int -> q) -> interval
  tree -> int -> int -> interval tree list -> step list

val all_steps :
  precision -> local_game -> local_policy -> (int -> int -> q) -> step list

val no_step : step

val best_layer :
  precision -> local_game -> (int -> int -> q) -> step list -> int -> q tree
  -> int -> q tree

val local_gain :
  precision -> local_game -> (int -> int -> q) -> step list -> q list -> int
  -> q

val is_usage : local_game -> int list -> bool

val check_agent : local_game -> local_policy -> int -> verdict

val check_local :
  precision -> local_game -> local_policy -> (int -> int -> q) -> q -> verdict

val add_one : int -> int list -> int list

val count_vectors : int -> int -> int list list

val equal_vectors : int list -> int list -> bool

val position : int list -> int list list -> int

type classes =
| Largest of int list
| Every of int list list

val class0 : classes -> int list -> int

val num_classes : classes -> int

val every : int -> int -> classes

type counting_game = { crowd : int; choices : int; shared_states : int;
                       shared_steps : int; shared_constraints : int;
                       grouping : classes; shared_start : (int -> q);
                       class_next : (int -> int -> int -> (int * q) list);
                       class_cost : (int -> int -> int -> int -> q);
                       count_reward : (int -> int -> int -> int -> q);
                       own_reward : (int -> int -> int -> int -> q);
                       class_reward : (int -> int -> int -> int -> q);
                       shared_threshold : (int -> q);
                       shared_binds : (int -> int -> bool) }

val reward_of_counts :
  counting_game -> int -> int -> int -> int -> int list -> q

val insert : int list -> q -> (int list * q) list -> (int list * q) list

val add_agent : (int * q) list -> (int list * q) list -> (int list * q) list

val by_class : counting_game -> int process

val row_of : counting_game -> policy -> int -> int -> int -> (int * q) list

val others_from :
  counting_game -> policy -> int -> int -> int -> int -> int -> (int
  list * q) list

val by_action :
  precision -> counting_game -> (int -> int -> int -> int list -> q) -> (int
  list * q) list -> q tree -> int -> int -> int -> q

val followed_by :
  precision -> counting_game -> policy -> int -> (int -> int -> int -> int
  list -> q) -> q tree -> int -> int -> q

val deviated_by :
  precision -> counting_game -> policy -> int -> (int -> int -> int -> int
  list -> q) -> q tree -> int -> int -> q

val crowd_above :
  precision -> counting_game -> policy -> int -> (int -> int -> int -> int
  list -> q) -> q

val crowd_below :
  precision -> counting_game -> policy -> int -> (int -> int -> int -> int
  list -> q) -> q

val cost_of_counts :
  counting_game -> int -> int -> int -> int -> int list -> q

val lagrangian_of_counts :
  counting_game -> (int -> int -> q) -> int -> int -> int -> int -> int list
  -> q

val crowd_gain :
  precision -> counting_game -> policy -> (int -> int -> q) -> q list -> int
  -> q

val check_counting :
  precision -> counting_game -> policy -> (int -> int -> q) -> q -> verdict

val lasting : game -> int -> game

val stationary : policy -> policy

val shrunk : q -> game -> int -> game

val look_ahead : q -> (q tree -> q tree) -> int -> q tree

val tail_of : q -> game -> int list process -> (int -> int list -> q) -> q

val ahead_bound :
  precision -> q -> game -> int -> int list process -> (int -> int list -> q)
  -> (q tree -> int -> int -> q) -> q

val at_every_step : (int -> int list -> q) -> int -> int -> int list -> q

val discounted_above :
  precision -> q -> game -> int -> policy -> int list process -> (int -> int
  list -> q) -> q

val discounted_below :
  precision -> q -> game -> int -> policy -> int list process -> (int -> int
  list -> q) -> q

val discounted_best :
  precision -> q -> game -> int -> policy -> int list process -> int -> (int
  -> int list -> q) -> q

val discounted_gain :
  precision -> q -> game -> int -> policy -> (int -> int -> q) -> int list
  process -> q list -> int -> q

val check_discounted_with :
  precision -> q -> game -> int -> policy -> (int -> int -> q) -> int list
  process -> q -> verdict

val check_discounted :
  precision -> q -> game -> int -> policy -> (int -> int -> q) -> q -> verdict
