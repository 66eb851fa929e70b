
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

val nth : nat -> 'a1 list -> 'a1 -> 'a1

val map : ('a1 -> 'a2) -> 'a1 list -> 'a2 list

val flat_map : ('a1 -> 'a2 list) -> 'a1 list -> 'a2 list

val forallb : ('a1 -> bool) -> 'a1 list -> bool

val filter : ('a1 -> bool) -> 'a1 list -> 'a1 list

val seq : nat -> nat -> nat list

type q = { qnum : z; qden : positive }

val qeq_bool : q -> q -> bool

val qle_bool : q -> q -> bool

val qplus : q -> q -> q

val qmult : q -> q -> q

val qopp : q -> q

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

val up : precision -> q -> q

val mul_up : precision -> q -> q -> q

type 'x tree =
| Leaf of 'x
| Node of nat * 'x tree * 'x tree

val get : 'a1 tree -> nat -> 'a1

val build : nat -> nat -> nat -> (nat -> 'a1) -> 'a1 tree

val tabulate : nat -> (nat -> 'a1) -> 'a1 tree

type failure =
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

val backward_table :
  'a1 process -> (q tree -> nat -> nat -> q) -> nat -> nat -> q tree

val bound : precision -> 'a1 process -> (q tree -> nat -> nat -> q) -> q

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
