
(** val negb : bool -> bool **)

let negb = function
| true -> false
| false -> true

(** val fst : ('a1 * 'a2) -> 'a1 **)

let fst = function
| (x, _) -> x

(** val snd : ('a1 * 'a2) -> 'a2 **)

let snd = function
| (_, y) -> y

(** val length : 'a1 list -> int **)

let rec length = function
| [] -> 0
| _ :: l' -> Integer.next (length l')

(** val app : 'a1 list -> 'a1 list -> 'a1 list **)

let rec app l m =
  match l with
  | [] -> m
  | a :: l1 -> a :: (app l1 m)

type comparison =
| Eq
| Lt
| Gt

(** val compOpp : comparison -> comparison **)

let compOpp = function
| Eq -> Eq
| Lt -> Gt
| Gt -> Lt

module Nat =
 struct
  (** val max : int -> int -> int **)

  let rec max n m =
    Integer.by_cases_nat
      (fun _ -> m)
      (fun n' ->
      Integer.by_cases_nat
        (fun _ -> n)
        (fun m' -> Integer.next (max n' m'))
        m)
      n
 end

module Pos =
 struct
  type mask =
  | IsNul
  | IsPos of Integer.t
  | IsNeg
 end

module Coq_Pos =
 struct
  (** val succ : Integer.t -> Integer.t **)

  let rec succ x =
    Integer.by_cases_positive
      (fun p -> Integer.even (succ p))
      (fun p -> Integer.odd p)
      (fun _ -> Integer.even Integer.one)
      x

  (** val add : Integer.t -> Integer.t -> Integer.t **)

  let rec add x y =
    Integer.by_cases_positive
      (fun p ->
      Integer.by_cases_positive
        (fun q0 -> Integer.even (add_carry p q0))
        (fun q0 -> Integer.odd (add p q0))
        (fun _ -> Integer.even (succ p))
        y)
      (fun p ->
      Integer.by_cases_positive
        (fun q0 -> Integer.odd (add p q0))
        (fun q0 -> Integer.even (add p q0))
        (fun _ -> Integer.odd p)
        y)
      (fun _ ->
      Integer.by_cases_positive
        (fun q0 -> Integer.even (succ q0))
        (fun q0 -> Integer.odd q0)
        (fun _ -> Integer.even Integer.one)
        y)
      x

  (** val add_carry : Integer.t -> Integer.t -> Integer.t **)

  and add_carry x y =
    Integer.by_cases_positive
      (fun p ->
      Integer.by_cases_positive
        (fun q0 -> Integer.odd (add_carry p q0))
        (fun q0 -> Integer.even (add_carry p q0))
        (fun _ -> Integer.odd (succ p))
        y)
      (fun p ->
      Integer.by_cases_positive
        (fun q0 -> Integer.even (add_carry p q0))
        (fun q0 -> Integer.odd (add p q0))
        (fun _ -> Integer.even (succ p))
        y)
      (fun _ ->
      Integer.by_cases_positive
        (fun q0 -> Integer.odd (succ q0))
        (fun q0 -> Integer.even (succ q0))
        (fun _ -> Integer.odd Integer.one)
        y)
      x

  (** val pred_double : Integer.t -> Integer.t **)

  let rec pred_double x =
    Integer.by_cases_positive
      (fun p -> Integer.odd (Integer.even p))
      (fun p -> Integer.odd (pred_double p))
      (fun _ -> Integer.one)
      x

  type mask = Pos.mask =
  | IsNul
  | IsPos of Integer.t
  | IsNeg

  (** val succ_double_mask : mask -> mask **)

  let succ_double_mask = function
  | IsNul -> IsPos Integer.one
  | IsPos p -> IsPos (Integer.odd p)
  | IsNeg -> IsNeg

  (** val double_mask : mask -> mask **)

  let double_mask = function
  | IsPos p -> IsPos (Integer.even p)
  | x0 -> x0

  (** val double_pred_mask : Integer.t -> mask **)

  let double_pred_mask x =
    Integer.by_cases_positive
      (fun p -> IsPos (Integer.even (Integer.even p)))
      (fun p -> IsPos (Integer.even (pred_double p)))
      (fun _ -> IsNul)
      x

  (** val sub_mask : Integer.t -> Integer.t -> mask **)

  let rec sub_mask x y =
    Integer.by_cases_positive
      (fun p ->
      Integer.by_cases_positive
        (fun q0 -> double_mask (sub_mask p q0))
        (fun q0 -> succ_double_mask (sub_mask p q0))
        (fun _ -> IsPos (Integer.even p))
        y)
      (fun p ->
      Integer.by_cases_positive
        (fun q0 -> succ_double_mask (sub_mask_carry p q0))
        (fun q0 -> double_mask (sub_mask p q0))
        (fun _ -> IsPos (pred_double p))
        y)
      (fun _ ->
      Integer.by_cases_positive
        (fun _ -> IsNeg)
        (fun _ -> IsNeg)
        (fun _ -> IsNul)
        y)
      x

  (** val sub_mask_carry : Integer.t -> Integer.t -> mask **)

  and sub_mask_carry x y =
    Integer.by_cases_positive
      (fun p ->
      Integer.by_cases_positive
        (fun q0 -> succ_double_mask (sub_mask_carry p q0))
        (fun q0 -> double_mask (sub_mask p q0))
        (fun _ -> IsPos (pred_double p))
        y)
      (fun p ->
      Integer.by_cases_positive
        (fun q0 -> double_mask (sub_mask_carry p q0))
        (fun q0 -> succ_double_mask (sub_mask_carry p q0))
        (fun _ -> double_pred_mask p)
        y)
      (fun _ -> IsNeg)
      x

  (** val sub : Integer.t -> Integer.t -> Integer.t **)

  let sub x y =
    match sub_mask x y with
    | IsPos z0 -> z0
    | _ -> Integer.one

  (** val size_nat : Integer.t -> int **)

  let rec size_nat p =
    Integer.by_cases_positive
      (fun p0 -> Integer.next (size_nat p0))
      (fun p0 -> Integer.next (size_nat p0))
      (fun _ -> Integer.next 0)
      p

  (** val compare_cont :
      comparison -> Integer.t -> Integer.t -> comparison **)

  let rec compare_cont r x y =
    Integer.by_cases_positive
      (fun p ->
      Integer.by_cases_positive
        (fun q0 -> compare_cont r p q0)
        (fun q0 -> compare_cont Gt p q0)
        (fun _ -> Gt)
        y)
      (fun p ->
      Integer.by_cases_positive
        (fun q0 -> compare_cont Lt p q0)
        (fun q0 -> compare_cont r p q0)
        (fun _ -> Gt)
        y)
      (fun _ ->
      Integer.by_cases_positive
        (fun _ -> Lt)
        (fun _ -> Lt)
        (fun _ -> r)
        y)
      x

  (** val compare : Integer.t -> Integer.t -> comparison **)

  let compare =
    compare_cont Eq

  (** val gcdn : int -> Integer.t -> Integer.t -> Integer.t **)

  let rec gcdn n a b =
    Integer.by_cases_nat
      (fun _ -> Integer.one)
      (fun n0 ->
      Integer.by_cases_positive
        (fun a' ->
        Integer.by_cases_positive
          (fun b' ->
          match compare a' b' with
          | Eq -> a
          | Lt -> gcdn n0 (sub b' a') a
          | Gt -> gcdn n0 (sub a' b') b)
          (fun b0 -> gcdn n0 a b0)
          (fun _ -> Integer.one)
          b)
        (fun a0 ->
        Integer.by_cases_positive
          (fun _ -> gcdn n0 a0 b)
          (fun b0 -> Integer.even (gcdn n0 a0 b0))
          (fun _ -> Integer.one)
          b)
        (fun _ -> Integer.one)
        a)
      n

  (** val gcd : Integer.t -> Integer.t -> Integer.t **)

  let gcd a b =
    gcdn ((+) (size_nat a) (size_nat b)) a b
 end

module Z =
 struct
  (** val double : Integer.t -> Integer.t **)

  let double x =
    Integer.by_cases
      (fun _ -> Integer.zero)
      (fun p -> (Integer.even p))
      (fun p -> Integer.neg (Integer.even p))
      x

  (** val succ_double : Integer.t -> Integer.t **)

  let succ_double x =
    Integer.by_cases
      (fun _ -> Integer.one)
      (fun p -> (Integer.odd p))
      (fun p -> Integer.neg (Coq_Pos.pred_double p))
      x

  (** val pred_double : Integer.t -> Integer.t **)

  let pred_double x =
    Integer.by_cases
      (fun _ -> Integer.neg Integer.one)
      (fun p -> (Coq_Pos.pred_double p))
      (fun p -> Integer.neg (Integer.odd p))
      x

  (** val pos_sub : Integer.t -> Integer.t -> Integer.t **)

  let rec pos_sub x y =
    Integer.by_cases_positive
      (fun p ->
      Integer.by_cases_positive
        (fun q0 -> double (pos_sub p q0))
        (fun q0 -> succ_double (pos_sub p q0))
        (fun _ -> (Integer.even p))
        y)
      (fun p ->
      Integer.by_cases_positive
        (fun q0 -> pred_double (pos_sub p q0))
        (fun q0 -> double (pos_sub p q0))
        (fun _ -> (Coq_Pos.pred_double p))
        y)
      (fun _ ->
      Integer.by_cases_positive
        (fun q0 -> Integer.neg (Integer.even q0))
        (fun q0 -> Integer.neg (Coq_Pos.pred_double q0))
        (fun _ -> Integer.zero)
        y)
      x

  (** val sub : Integer.t -> Integer.t -> Integer.t **)

  let sub m n =
    Integer.add m (Integer.neg n)

  (** val compare : Integer.t -> Integer.t -> comparison **)

  let compare x y =
    Integer.by_cases
      (fun _ ->
      Integer.by_cases
        (fun _ -> Eq)
        (fun _ -> Lt)
        (fun _ -> Gt)
        y)
      (fun x' ->
      Integer.by_cases
        (fun _ -> Gt)
        (fun y' -> Coq_Pos.compare x' y')
        (fun _ -> Gt)
        y)
      (fun x' ->
      Integer.by_cases
        (fun _ -> Lt)
        (fun _ -> Lt)
        (fun y' -> compOpp (Coq_Pos.compare x' y'))
        y)
      x

  (** val ltb : Integer.t -> Integer.t -> bool **)

  let ltb x y =
    match compare x y with
    | Lt -> true
    | _ -> false

  (** val abs : Integer.t -> Integer.t **)

  let abs z0 =
    Integer.by_cases
      (fun _ -> Integer.zero)
      (fun p -> p)
      (fun p -> p)
      z0

  (** val pos_div_eucl : Integer.t -> Integer.t -> Integer.t * Integer.t **)

  let rec pos_div_eucl a b =
    Integer.by_cases_positive
      (fun a' ->
      let (q0, r) = pos_div_eucl a' b in
      let r' =
        Integer.add (Integer.mul (Integer.even Integer.one) r) Integer.one
      in
      if ltb r' b
      then ((Integer.mul (Integer.even Integer.one) q0), r')
      else ((Integer.add (Integer.mul (Integer.even Integer.one) q0)
              Integer.one), (sub r' b)))
      (fun a' ->
      let (q0, r) = pos_div_eucl a' b in
      let r' = Integer.mul (Integer.even Integer.one) r in
      if ltb r' b
      then ((Integer.mul (Integer.even Integer.one) q0), r')
      else ((Integer.add (Integer.mul (Integer.even Integer.one) q0)
              Integer.one), (sub r' b)))
      (fun _ ->
      if Integer.leq (Integer.even Integer.one) b
      then (Integer.zero, Integer.one)
      else (Integer.one, Integer.zero))
      a

  (** val div_eucl : Integer.t -> Integer.t -> Integer.t * Integer.t **)

  let div_eucl a b =
    Integer.by_cases
      (fun _ -> (Integer.zero, Integer.zero))
      (fun a' ->
      Integer.by_cases
        (fun _ -> (Integer.zero, a))
        (fun _ -> pos_div_eucl a' b)
        (fun b' ->
        let (q0, r) = pos_div_eucl a' b' in
        (Integer.by_cases
           (fun _ -> ((Integer.neg q0), Integer.zero))
           (fun _ -> ((Integer.neg (Integer.add q0 Integer.one)),
           (Integer.add b r)))
           (fun _ -> ((Integer.neg (Integer.add q0 Integer.one)),
           (Integer.add b r)))
           r))
        b)
      (fun a' ->
      Integer.by_cases
        (fun _ -> (Integer.zero, a))
        (fun _ ->
        let (q0, r) = pos_div_eucl a' b in
        (Integer.by_cases
           (fun _ -> ((Integer.neg q0), Integer.zero))
           (fun _ -> ((Integer.neg (Integer.add q0 Integer.one)),
           (sub b r)))
           (fun _ -> ((Integer.neg (Integer.add q0 Integer.one)), (sub b r)))
           r))
        (fun b' -> let (q0, r) = pos_div_eucl a' b' in (q0, (Integer.neg r)))
        b)
      a
 end

(** val hd : 'a1 -> 'a1 list -> 'a1 **)

let hd default = function
| [] -> default
| x :: _ -> x

(** val nth : int -> 'a1 list -> 'a1 -> 'a1 **)

let rec nth n l default =
  Integer.by_cases_nat
    (fun _ -> match l with
              | [] -> default
              | x :: _ -> x)
    (fun m -> match l with
              | [] -> default
              | _ :: t -> nth m t default)
    n

(** val removelast : 'a1 list -> 'a1 list **)

let rec removelast = function
| [] -> []
| a :: l0 -> (match l0 with
              | [] -> []
              | _ :: _ -> a :: (removelast l0))

(** val map : ('a1 -> 'a2) -> 'a1 list -> 'a2 list **)

let rec map f = function
| [] -> []
| a :: t -> (f a) :: (map f t)

(** val flat_map : ('a1 -> 'a2 list) -> 'a1 list -> 'a2 list **)

let rec flat_map f = function
| [] -> []
| x :: t -> app (f x) (flat_map f t)

(** val fold_left : ('a1 -> 'a2 -> 'a1) -> 'a2 list -> 'a1 -> 'a1 **)

let rec fold_left f l a0 =
  match l with
  | [] -> a0
  | b :: t -> fold_left f t (f a0 b)

(** val fold_right : ('a2 -> 'a1 -> 'a1) -> 'a1 -> 'a2 list -> 'a1 **)

let rec fold_right f a0 = function
| [] -> a0
| b :: t -> f b (fold_right f a0 t)

(** val existsb : ('a1 -> bool) -> 'a1 list -> bool **)

let rec existsb f = function
| [] -> false
| a :: l0 -> (||) (f a) (existsb f l0)

(** val forallb : ('a1 -> bool) -> 'a1 list -> bool **)

let rec forallb f = function
| [] -> true
| a :: l0 -> (&&) (f a) (forallb f l0)

(** val filter : ('a1 -> bool) -> 'a1 list -> 'a1 list **)

let rec filter f = function
| [] -> []
| x :: l0 -> if f x then x :: (filter f l0) else filter f l0

(** val find : ('a1 -> bool) -> 'a1 list -> 'a1 option **)

let rec find f = function
| [] -> None
| x :: tl -> if f x then Some x else find f tl

(** val firstn : int -> 'a1 list -> 'a1 list **)

let rec firstn n l =
  Integer.by_cases_nat
    (fun _ -> [])
    (fun n0 -> match l with
               | [] -> []
               | a :: l0 -> a :: (firstn n0 l0))
    n

(** val skipn : int -> 'a1 list -> 'a1 list **)

let rec skipn n l =
  Integer.by_cases_nat
    (fun _ -> l)
    (fun n0 -> match l with
               | [] -> []
               | _ :: l0 -> skipn n0 l0)
    n

(** val seq : int -> int -> int list **)

let rec seq start0 len =
  Integer.by_cases_nat
    (fun _ -> [])
    (fun len0 -> start0 :: (seq (Integer.next start0) len0))
    len

(** val repeat : 'a1 -> int -> 'a1 list **)

let rec repeat x n =
  Integer.by_cases_nat
    (fun _ -> [])
    (fun k -> x :: (repeat x k))
    n

type q = { qnum : Integer.t; qden : Integer.t }

(** val qeq_bool : q -> q -> bool **)

let qeq_bool x y =
  Integer.equal (Integer.mul x.qnum y.qden) (Integer.mul y.qnum x.qden)

(** val qle_bool : q -> q -> bool **)

let qle_bool x y =
  Integer.leq (Integer.mul x.qnum y.qden) (Integer.mul y.qnum x.qden)

(** val qplus : q -> q -> q **)

let qplus x y =
  { qnum =
    (Integer.add (Integer.mul x.qnum y.qden) (Integer.mul y.qnum x.qden));
    qden = (Integer.mul x.qden y.qden) }

(** val qmult : q -> q -> q **)

let qmult x y =
  { qnum = (Integer.mul x.qnum y.qnum); qden = (Integer.mul x.qden y.qden) }

(** val qopp : q -> q **)

let qopp x =
  { qnum = (Integer.neg x.qnum); qden = x.qden }

(** val qminus : q -> q -> q **)

let qminus x y =
  qplus x (qopp y)

(** val qinv : q -> q **)

let qinv x =
  Integer.by_cases
    (fun _ -> { qnum = Integer.zero; qden = Integer.one })
    (fun p -> { qnum = x.qden; qden = p })
    (fun p -> { qnum = (Integer.neg x.qden); qden = p })
    x.qnum

(** val qdiv : q -> q -> q **)

let qdiv x y =
  qmult x (qinv y)

type 'a process = { states : int; horizon : int; actions : 'a list;
                    initial : (int -> q);
                    transition : (int -> int -> 'a -> (int * q) list) }

type game = { num_actions : int list; num_states : int; num_steps : int;
              num_constraints : int; start : (int -> q);
              next : (int -> int -> int list -> (int * q) list);
              reward : (int -> int -> int -> int list -> q);
              cost : (int -> int -> int -> int list -> q);
              threshold : (int -> q); binds : (int -> int -> bool) }

(** val tuples : int list -> int list list **)

let rec tuples = function
| [] -> [] :: []
| n :: rest ->
  flat_map (fun x -> map (fun x0 -> x :: x0) (tuples rest)) (seq 0 n)

(** val dynamics : game -> int list process **)

let dynamics g =
  { states = g.num_states; horizon = g.num_steps; actions =
    (tuples g.num_actions); initial = g.start; transition = g.next }

type policy = int -> int -> int -> int -> q

(** val num_agents : game -> int **)

let num_agents g =
  length g.num_actions

(** val lowest : q -> q **)

let lowest q0 =
  let d = q0.qden in
  let k = Integer.gcd q0.qnum d in
  (Integer.by_cases
     (fun _ -> q0)
     (fun e -> { qnum = (Integer.div q0.qnum k); qden = e })
     (fun _ -> q0)
     (Integer.div d k))

(** val is_zero : q -> bool **)

let is_zero q0 =
  Integer.equal q0.qnum Integer.zero

(** val is_one : q -> bool **)

let is_one q0 =
  Integer.equal q0.qnum q0.qden

(** val add0 : q -> q -> q **)

let add0 p q0 =
  if Integer.equal p.qden q0.qden
  then { qnum = (Integer.add p.qnum q0.qnum); qden = p.qden }
  else if is_zero p then q0 else if is_zero q0 then p else lowest (qplus p q0)

(** val sub0 : q -> q -> q **)

let sub0 p q0 =
  add0 p (qopp q0)

(** val mul : q -> q -> q **)

let mul p q0 =
  if is_zero p
  then { qnum = Integer.zero; qden = Integer.one }
  else if is_one p then q0 else lowest (qmult p q0)

(** val total_of : 'a1 list -> ('a1 -> q) -> q **)

let rec total_of l f =
  match l with
  | [] -> { qnum = Integer.zero; qden = Integer.one }
  | x :: rest ->
    (match rest with
     | [] -> f x
     | _ :: _ -> add0 (f x) (total_of rest f))

(** val larger : q -> q -> q **)

let larger p q0 =
  if qle_bool p q0 then q0 else p

(** val largest : 'a1 list -> ('a1 -> q) -> q **)

let rec largest l f =
  match l with
  | [] -> { qnum = Integer.zero; qden = Integer.one }
  | x :: rest ->
    (match rest with
     | [] -> f x
     | _ :: _ -> larger (f x) (largest rest f))

type precision = Integer.t option

(** val above : Integer.t -> Integer.t -> Integer.t -> q **)

let above t d n =
  { qnum = (Integer.neg (Integer.div (Integer.neg t) d)); qden = n }

(** val below : Integer.t -> Integer.t -> Integer.t -> q **)

let below t d n =
  { qnum = (Integer.div t d); qden = n }

(** val up : precision -> q -> q **)

let up n q0 =
  match n with
  | Some n0 ->
    if Integer.equal q0.qden n0
    then q0
    else above (Integer.mul q0.qnum n0) q0.qden n0
  | None -> q0

(** val down : precision -> q -> q **)

let down n q0 =
  match n with
  | Some n0 ->
    if Integer.equal q0.qden n0
    then q0
    else below (Integer.mul q0.qnum n0) q0.qden n0
  | None -> q0

(** val mul_up : precision -> q -> q -> q **)

let mul_up n p q0 =
  match n with
  | Some n0 ->
    if (&&) (is_one p) (Integer.equal q0.qden n0)
    then q0
    else if Integer.equal q0.qden n0
         then above (Integer.mul p.qnum q0.qnum) p.qden n0
         else above (Integer.mul (Integer.mul p.qnum q0.qnum) n0)
                (Integer.mul p.qden q0.qden) n0
  | None -> mul p q0

(** val mul_down : precision -> q -> q -> q **)

let mul_down n p q0 =
  match n with
  | Some n0 ->
    if (&&) (is_one p) (Integer.equal q0.qden n0)
    then q0
    else if Integer.equal q0.qden n0
         then below (Integer.mul p.qnum q0.qnum) p.qden n0
         else below (Integer.mul (Integer.mul p.qnum q0.qnum) n0)
                (Integer.mul p.qden q0.qden) n0
  | None -> mul p q0

type 'x tree =
| Leaf of 'x
| Node of int * 'x tree * 'x tree

(** val get : 'a1 tree -> int -> 'a1 **)

let rec get t s =
  match t with
  | Leaf x -> x
  | Node (k, l, r) -> if Integer.less_nat s k then get l s else get r s

(** val build : int -> int -> int -> (int -> 'a1) -> 'a1 tree **)

let rec build fuel lo n f =
  Integer.by_cases_nat
    (fun _ -> Leaf (f lo))
    (fun fuel' ->
    if Integer.leq_nat n (Integer.next 0)
    then Leaf (f lo)
    else let half = Integer.half n in
         Node (((+) lo half), (build fuel' lo half f),
         (build fuel' ((+) lo half) (Integer.monus n half) f)))
    fuel

(** val tabulate : 'a1 -> int -> (int -> 'a1) -> 'a1 tree **)

let tabulate default n f =
  Integer.by_cases_nat
    (fun _ -> Leaf default)
    (fun _ -> build n 0 n f)
    n

(** val change : 'a1 tree -> int -> ('a1 -> 'a1) -> 'a1 tree **)

let rec change t s f =
  match t with
  | Leaf x -> Leaf (f x)
  | Node (k, l, r) ->
    if Integer.less_nat s k
    then Node (k, (change l s f), r)
    else Node (k, l, (change r s f))

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

(** val require : bool -> failure -> verdict **)

let require condition reason =
  if condition then Accepted else Refused reason

(** val each : 'a1 list -> ('a1 -> verdict) -> verdict **)

let rec each l check =
  match l with
  | [] -> Accepted
  | x :: rest ->
    (match check x with
     | Accepted -> each rest check
     | Refused reason -> Refused reason)

(** val below_each : int -> (int -> verdict) -> verdict **)

let below_each n check =
  each (seq 0 n) check

(** val is_distribution : 'a1 list -> ('a1 -> q) -> bool **)

let is_distribution l f =
  (&&)
    (forallb (fun x ->
      qle_bool { qnum = Integer.zero; qden = Integer.one } (f x)) l)
    (qeq_bool (total_of l f) { qnum = Integer.one; qden = Integer.one })

(** val is_row : int -> (int * q) list -> bool **)

let is_row n row =
  (&&) (forallb (fun entry -> Integer.less_nat (fst entry) n) row)
    (is_distribution row snd)

(** val check_process :
    'a1 process -> int option -> ('a1 -> int list) -> verdict **)

let check_process m agent0 name =
  match require (is_distribution (seq 0 m.states) m.initial) (InitialRow
          agent0) with
  | Accepted ->
    below_each m.horizon (fun h ->
      below_each m.states (fun s ->
        each m.actions (fun a ->
          require (is_row m.states (m.transition h s a)) (TransitionRow
            (agent0, h, s, (name a))))))
  | Refused reason -> Refused reason

(** val outcome :
    precision -> 'a1 process -> q -> q tree -> int -> int -> 'a1 -> q **)

let outcome n m now next0 h s a =
  add0 (up n now)
    (total_of (m.transition h s a) (fun entry ->
      mul_up n (snd entry) (get next0 (fst entry))))

(** val backward_table : (q tree -> int -> q tree) -> int -> int -> q tree **)

let rec backward_table layer remaining h =
  Integer.by_cases_nat
    (fun _ -> Leaf { qnum = Integer.zero; qden = Integer.one })
    (fun k ->
    let next0 = backward_table layer k (Integer.next h) in layer next0 h)
    remaining

(** val bound : precision -> 'a1 process -> (q tree -> int -> q tree) -> q **)

let bound n m layer =
  let table = backward_table layer m.horizon 0 in
  total_of (seq 0 m.states) (fun s -> mul_up n (m.initial s) (get table s))

(** val by_state :
    'a1 process -> (q tree -> int -> int -> q) -> q tree -> int -> q tree **)

let by_state m step0 next0 h =
  tabulate { qnum = Integer.zero; qden = Integer.one } m.states (fun s ->
    step0 next0 h s)

(** val best_of :
    precision -> 'a1 process -> 'a1 list -> (int -> int -> 'a1 -> q) -> q
    tree -> int -> int -> q **)

let best_of n m l f next0 h s =
  largest l (fun a -> outcome n m (f h s a) next0 h s a)

(** val combinations : (int * q) list list -> (int list * q) list **)

let rec combinations = function
| [] -> ([], { qnum = Integer.one; qden = Integer.one }) :: []
| row :: rest ->
  let tail = combinations rest in
  flat_map (fun entry ->
    map (fun joint -> (((fst entry) :: (fst joint)),
      (mul (snd entry) (snd joint)))) tail) row

(** val policy_row : game -> policy -> int -> int -> int -> (int * q) list **)

let policy_row g p i h s =
  filter (fun entry -> negb (is_zero (snd entry)))
    (map (fun x -> (x, (p i h s x))) (seq 0 (nth i g.num_actions 0)))

(** val policy_rows : game -> policy -> int -> int -> (int * q) list list **)

let policy_rows g p h s =
  map (fun i -> policy_row g p i h s) (seq 0 (num_agents g))

(** val rows_with :
    game -> policy -> int -> int -> int -> int -> (int * q) list list **)

let rows_with g p i x h s =
  map (fun k ->
    if Integer.equal_nat k i
    then (x, { qnum = Integer.one; qden = Integer.one }) :: []
    else policy_row g p k h s) (seq 0 (num_agents g))

(** val mixture :
    precision -> int list process -> (int * q) list list -> (int -> int ->
    int list -> q) -> q tree -> int -> int -> q **)

let mixture n m rows f next0 h s =
  total_of (combinations rows) (fun joint ->
    mul_up n (snd joint)
      (outcome n m (f h s (fst joint)) next0 h s (fst joint)))

(** val followed :
    precision -> game -> int list process -> policy -> (int -> int -> int
    list -> q) -> q tree -> int -> int -> q **)

let followed n g m p f next0 h s =
  mixture n m (policy_rows g p h s) f next0 h s

(** val deviated :
    precision -> game -> int list process -> policy -> int -> (int -> int ->
    int list -> q) -> q tree -> int -> int -> q **)

let deviated n g m p i f next0 h s =
  largest (seq 0 (nth i g.num_actions 0)) (fun x ->
    mixture n m (rows_with g p i x h s) f next0 h s)

(** val value_above :
    precision -> game -> int list process -> policy -> (int -> int -> int
    list -> q) -> q **)

let value_above n g m p f =
  bound n m (by_state m (followed n g m p f))

(** val value_below :
    precision -> game -> int list process -> policy -> (int -> int -> int
    list -> q) -> q **)

let value_below n g m p f =
  qopp
    (bound n m (by_state m (followed n g m p (fun h s a -> qopp (f h s a)))))

(** val lagrangian :
    game -> (int -> int -> q) -> int -> int -> int -> int list -> q **)

let lagrangian g multipliers i h s a =
  sub0 (g.reward i h s a)
    (total_of (seq 0 g.num_constraints) (fun j ->
      mul (multipliers i j) (g.cost j h s a)))

(** val gain :
    precision -> game -> int list process -> policy -> (int -> int -> q) -> q
    list -> int -> q **)

let gain n g m p multipliers costs i =
  add0
    (sub0
      (bound n m
        (by_state m (deviated n g m p i (lagrangian g multipliers i))))
      (value_below n g m p (lagrangian g multipliers i)))
    (total_of (seq 0 g.num_constraints) (fun j ->
      mul (multipliers i j)
        (sub0 (g.threshold j)
          (nth j costs { qnum = Integer.zero; qden = Integer.one }))))

(** val check_with :
    precision -> game -> int list process -> policy -> (int -> int -> q) -> q
    -> verdict **)

let check_with n g m p multipliers eps =
  match check_process m None (fun a -> a) with
  | Accepted ->
    (match below_each (num_agents g) (fun i ->
             below_each g.num_steps (fun h ->
               below_each g.num_states (fun s ->
                 require
                   (is_distribution (seq 0 (nth i g.num_actions 0)) (p i h s))
                   (PolicyRow (i, h, s))))) with
     | Accepted ->
       (match below_each (num_agents g) (fun i ->
                below_each g.num_constraints (fun j ->
                  require
                    ((&&)
                      (qle_bool { qnum = Integer.zero; qden = Integer.one }
                        (multipliers i j))
                      ((||) (g.binds i j) (is_zero (multipliers i j))))
                    (Multiplier ((Some i), j)))) with
        | Accepted ->
          (match below_each g.num_constraints (fun j ->
                   let c = value_above n g m p (g.cost j) in
                   require (qle_bool c (g.threshold j)) (Threshold (j, c))) with
           | Accepted ->
             let costs =
               map (fun j -> value_below n g m p (g.cost j))
                 (seq 0 g.num_constraints)
             in
             below_each (num_agents g) (fun i ->
               let x = gain n g m p multipliers costs i in
               require (qle_bool x eps) (Gain (i, x)))
           | Refused reason -> Refused reason)
        | Refused reason -> Refused reason)
     | Refused reason -> Refused reason)
  | Refused reason -> Refused reason

(** val check_nash :
    precision -> game -> policy -> (int -> int -> q) -> q -> verdict **)

let check_nash n g p multipliers eps =
  check_with n g (dynamics g) p multipliers eps

(** val margin : precision -> game -> int list process -> (int -> q) -> q **)

let margin n g m multipliers =
  let weighted = fun h s a ->
    total_of (seq 0 g.num_constraints) (fun j ->
      qopp (mul (multipliers j) (g.cost j h s a)))
  in
  qopp
    (add0 (bound n m (by_state m (best_of n m m.actions weighted)))
      (total_of (seq 0 g.num_constraints) (fun j ->
        mul (multipliers j) (g.threshold j))))

(** val check_infeasible : precision -> game -> (int -> q) -> verdict **)

let check_infeasible n g multipliers =
  let m = dynamics g in
  (match check_process m None (fun a -> a) with
   | Accepted ->
     (match below_each g.num_constraints (fun j ->
              require
                (qle_bool { qnum = Integer.zero; qden = Integer.one }
                  (multipliers j)) (Multiplier (None, j))) with
      | Accepted ->
        let x = margin n g m multipliers in
        require
          (negb (qle_bool x { qnum = Integer.zero; qden = Integer.one }))
          (Margin x)
      | Refused reason -> Refused reason)
   | Refused reason -> Refused reason)

type interval = { low : q; high : q }

(** val point : q -> interval **)

let point q0 =
  { low = q0; high = q0 }

(** val rounded : precision -> q -> interval **)

let rounded n q0 =
  { low = (down n q0); high = (up n q0) }

(** val plus_i : interval -> interval -> interval **)

let plus_i x y =
  { low = (add0 x.low y.low); high = (add0 x.high y.high) }

(** val minus_i : interval -> interval -> interval **)

let minus_i x y =
  { low = (sub0 x.low y.high); high = (sub0 x.high y.low) }

(** val scale : precision -> q -> interval -> interval **)

let scale n q0 x =
  { low = (mul_down n q0 x.low); high = (mul_up n q0 x.high) }

(** val weigh : precision -> interval -> interval -> interval **)

let weigh n w x =
  { low =
    (mul_down n
      (if qle_bool { qnum = Integer.zero; qden = Integer.one } x.low
       then w.low
       else w.high) x.low); high =
    (mul_up n
      (if qle_bool { qnum = Integer.zero; qden = Integer.one } x.high
       then w.high
       else w.low) x.high) }

(** val total_i : 'a1 list -> ('a1 -> interval) -> interval **)

let rec total_i l f =
  match l with
  | [] -> point { qnum = Integer.zero; qden = Integer.one }
  | x :: rest ->
    (match rest with
     | [] -> f x
     | _ :: _ -> plus_i (f x) (total_i rest f))

(** val scatter : (int * interval) list -> interval tree -> interval tree **)

let scatter l t =
  fold_left (fun t0 entry -> change t0 (fst entry) (plus_i (snd entry))) l t

(** val mix : precision -> interval -> interval list -> interval list **)

let rec mix n q0 = function
| [] -> []
| x :: rest ->
  (match rest with
   | [] -> []
   | y :: _ -> (plus_i x (weigh n q0 (minus_i y x))) :: (mix n q0 rest))

(** val mix_all :
    precision -> interval list -> interval list -> interval list **)

let rec mix_all n qs l =
  match qs with
  | [] -> l
  | q0 :: rest -> mix_all n rest (mix n q0 l)

(** val leave_one_out :
    precision -> int -> (int * interval) list -> interval list ->
    (int * interval) list **)

let rec leave_one_out n fuel users l =
  Integer.by_cases_nat
    (fun _ ->
    match users with
    | [] -> []
    | p :: l0 ->
      let (i, _) = p in
      (match l0 with
       | [] ->
         (i, (hd (point { qnum = Integer.zero; qden = Integer.one }) l)) :: []
       | _ :: _ -> []))
    (fun fuel0 ->
    match users with
    | [] -> []
    | p :: l0 ->
      let (i, _) = p in
      (match l0 with
       | [] ->
         (i, (hd (point { qnum = Integer.zero; qden = Integer.one }) l)) :: []
       | _ :: _ ->
         let half = Integer.half (length users) in
         let left = firstn half users in
         let right = skipn half users in
         app (leave_one_out n fuel0 left (mix_all n (map snd right) l))
           (leave_one_out n fuel0 right (mix_all n (map snd left) l))))
    fuel

type share = { of_all : interval; of_others : (int * interval) list }

(** val share_of : share -> int -> interval **)

let share_of s i =
  match find (fun entry -> Integer.equal_nat (fst entry) i) s.of_others with
  | Some entry -> snd entry
  | None -> s.of_all

(** val share_at :
    precision -> (int * interval) list -> (int -> q) -> share **)

let share_at n users f =
  let l = map (fun m -> rounded n (f m)) (seq 0 (Integer.next (length users)))
  in
  { of_all =
  (hd (point { qnum = Integer.zero; qden = Integer.one })
    (mix_all n (map snd users) l)); of_others =
  (leave_one_out n (length users) users l) }

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

(** val no_agent : local_agent **)

let no_agent =
  { own_states = 0; own_actions = 0; own_start = (fun _ -> { qnum =
    Integer.zero; qden = Integer.one }); own_next = (fun _ _ _ -> []);
    private_reward = (fun _ _ _ -> { qnum = Integer.zero; qden =
    Integer.one }); private_cost = (fun _ _ _ _ -> { qnum = Integer.zero;
    qden = Integer.one }); uses = (fun _ _ _ -> []) }

type local_policy = int -> int -> int -> int -> q

(** val agent : local_game -> int -> local_agent **)

let agent l i =
  nth i l.agents no_agent

(** val own : local_game -> local_agent -> int process **)

let own l x =
  { states = x.own_states; horizon = l.local_steps; actions =
    (seq 0 x.own_actions); initial = x.own_start; transition = x.own_next }

type resource = { delays : share; additions : share list }

type step = { resources : resource tree; charges : interval list;
              worths : interval list }

(** val nothing : interval **)

let nothing =
  point { qnum = Integer.zero; qden = Integer.one }

(** val no_share : share **)

let no_share =
  { of_all = nothing; of_others = [] }

(** val no_resource : resource **)

let no_resource =
  { delays = no_share; additions = [] }

(** val count : local_game -> int **)

let count l =
  length l.agents

(** val active : local_game -> (int -> int -> q) -> int -> (int * q) list **)

let active l multipliers i =
  filter (fun entry -> negb (is_zero (snd entry)))
    (map (fun j -> (j, (multipliers i j))) (seq 0 l.local_constraints))

(** val visits :
    precision -> local_game -> local_policy -> int -> int -> interval tree ->
    ((int * int) * interval) list **)

let visits n l p i h t =
  flat_map (fun s ->
    let here = get t s in
    if is_zero here.high
    then []
    else flat_map (fun a ->
           let q0 = p i h s a in
           if is_zero q0 then [] else ((s, a), (scale n q0 here)) :: [])
           (seq 0 (agent l i).own_actions)) (seq 0 (agent l i).own_states)

(** val blank : int -> interval tree **)

let blank size =
  tabulate nothing size (fun _ -> nothing)

(** val advance :
    precision -> local_game -> int -> int -> ((int * int) * interval) list ->
    interval tree **)

let advance n l i h vs =
  let x = agent l i in
  scatter
    (flat_map (fun v ->
      map (fun entry -> ((fst entry), (scale n (snd entry) (snd v))))
        (x.own_next h (fst (fst v)) (snd (fst v)))) vs) (blank x.own_states)

(** val usage :
    local_game -> interval tree -> int -> int -> ((int * int) * interval)
    list -> interval tree **)

let usage l unused i h vs =
  scatter
    (flat_map (fun v ->
      map (fun e -> (e, (snd v)))
        ((agent l i).uses h (fst (fst v)) (snd (fst v)))) vs) unused

(** val users_of :
    local_game -> interval tree list -> int -> (int * interval) list **)

let users_of l rates e =
  filter (fun u -> negb (is_zero (snd u).high))
    (map (fun i -> (i, (get (nth i rates (Leaf nothing)) e)))
      (seq 0 (count l)))

(** val resource_at :
    precision -> local_game -> int -> int -> (int * interval) list -> resource **)

let resource_at n l h e users =
  { delays = (share_at n users (fun m -> l.delay h e (Integer.next m)));
    additions =
    (map (fun j ->
      share_at n users (fun m ->
        sub0 (l.load_cost j h e (Integer.next m)) (l.load_cost j h e m)))
      (seq 0 l.local_constraints)) }

(** val price : precision -> int -> (int * q) list -> resource -> interval **)

let price n i duals r =
  minus_i nothing
    (plus_i (share_of r.delays i)
      (total_i duals (fun dual ->
        scale n (snd dual) (share_of (nth (fst dual) r.additions no_share) i))))

(** val private0 :
    local_game -> int -> (int * q) list -> int -> int -> int -> q **)

let private0 l i duals h s a =
  sub0 ((agent l i).private_reward h s a)
    (total_of duals (fun dual ->
      mul (snd dual) ((agent l i).private_cost (fst dual) h s a)))

(** val worth :
    precision -> local_game -> (int -> int -> q) -> int -> int -> resource
    tree -> ((int * int) * interval) list -> interval **)

let worth n l multipliers i h rs vs =
  let duals = active l multipliers i in
  total_i vs (fun v ->
    weigh n (snd v)
      (plus_i (rounded n (private0 l i duals h (fst (fst v)) (snd (fst v))))
        (total_i ((agent l i).uses h (fst (fst v)) (snd (fst v))) (fun e ->
          price n i duals (get rs e)))))

(** val charge_at :
    precision -> local_game -> int -> int -> (int * interval) list tree ->
    ((int * int) * interval) list list -> interval **)

let charge_at n l j h users vss =
  plus_i
    (total_i (seq 0 (count l)) (fun i ->
      total_i (nth i vss []) (fun v ->
        weigh n (snd v)
          (rounded n
            ((agent l i).private_cost j h (fst (fst v)) (snd (fst v)))))))
    (total_i (seq 0 l.num_resources) (fun e ->
      (share_at n (get users e) (l.load_cost j h e)).of_all))

(** val step_at :
    precision -> local_game -> (int -> int -> q) -> interval tree -> int ->
    ((int * int) * interval) list list -> step **)

let step_at n l multipliers unused h vss =
  let rates =
    map (fun i -> usage l unused i h (nth i vss [])) (seq 0 (count l))
  in
  let users = tabulate [] l.num_resources (users_of l rates) in
  let rs =
    tabulate no_resource l.num_resources (fun e ->
      resource_at n l h e (get users e))
  in
  { resources = rs; charges =
  (map (fun j -> charge_at n l j h users vss) (seq 0 l.local_constraints));
  worths =
  (map (fun i -> worth n l multipliers i h rs (nth i vss []))
    (seq 0 (count l))) }

(** val forward :
    precision -> local_game -> local_policy -> (int -> int -> q) -> interval
    tree -> int -> int -> interval tree list -> step list **)

let rec forward n l p multipliers unused remaining h ts =
  Integer.by_cases_nat
    (fun _ -> [])
    (fun k ->
    let vss =
      map (fun i -> visits n l p i h (nth i ts (Leaf nothing)))
        (seq 0 (count l))
    in
    let now = step_at n l multipliers unused h vss in
    now :: (forward n l p multipliers unused k (Integer.next h)
             (map (fun i -> advance n l i h (nth i vss [])) (seq 0 (count l)))))
    remaining

(** val all_steps :
    precision -> local_game -> local_policy -> (int -> int -> q) -> step list **)

let all_steps n l p multipliers =
  forward n l p multipliers (blank l.num_resources) l.local_steps 0
    (map (fun i ->
      tabulate nothing (agent l i).own_states (fun s ->
        rounded n ((agent l i).own_start s))) (seq 0 (count l)))

(** val no_step : step **)

let no_step =
  { resources = (Leaf no_resource); charges = []; worths = [] }

(** val best_layer :
    precision -> local_game -> (int -> int -> q) -> step list -> int -> q
    tree -> int -> q tree **)

let best_layer n l multipliers steps i next0 h =
  let x = agent l i in
  let duals = active l multipliers i in
  let rs = (nth h steps no_step).resources in
  let prices =
    tabulate { qnum = Integer.zero; qden = Integer.one } l.num_resources
      (fun e -> (price n i duals (get rs e)).high)
  in
  tabulate { qnum = Integer.zero; qden = Integer.one } x.own_states (fun s ->
    largest (seq 0 x.own_actions) (fun a ->
      outcome n (own l x)
        (add0 (up n (private0 l i duals h s a))
          (total_of (x.uses h s a) (get prices))) next0 h s a))

(** val local_gain :
    precision -> local_game -> (int -> int -> q) -> step list -> q list ->
    int -> q **)

let local_gain n l multipliers steps costs i =
  add0
    (sub0 (bound n (own l (agent l i)) (best_layer n l multipliers steps i))
      (total_i steps (fun st -> nth i st.worths nothing)).low)
    (total_of (seq 0 l.local_constraints) (fun j ->
      mul (multipliers i j)
        (sub0 (l.local_threshold j)
          (nth j costs { qnum = Integer.zero; qden = Integer.one }))))

(** val is_usage : local_game -> int list -> bool **)

let rec is_usage l = function
| [] -> true
| e :: rest ->
  (&&)
    ((&&) (Integer.less_nat e l.num_resources)
      (negb (existsb (Integer.equal_nat e) rest))) (is_usage l rest)

(** val check_agent : local_game -> local_policy -> int -> verdict **)

let check_agent l p i =
  let x = agent l i in
  (match check_process (own l x) (Some i) (fun a -> a :: []) with
   | Accepted ->
     below_each l.local_steps (fun h ->
       below_each x.own_states (fun s ->
         match require (is_distribution (seq 0 x.own_actions) (p i h s))
                 (PolicyRow (i, h, s)) with
         | Accepted ->
           below_each x.own_actions (fun a ->
             require (is_usage l (x.uses h s a)) (Usage (i, h, s, a)))
         | Refused reason -> Refused reason))
   | Refused reason -> Refused reason)

(** val check_local :
    precision -> local_game -> local_policy -> (int -> int -> q) -> q ->
    verdict **)

let check_local n l p multipliers eps =
  match below_each (count l) (check_agent l p) with
  | Accepted ->
    (match below_each (count l) (fun i ->
             below_each l.local_constraints (fun j ->
               require
                 ((&&)
                   (qle_bool { qnum = Integer.zero; qden = Integer.one }
                     (multipliers i j))
                   ((||) (l.local_binds i j) (is_zero (multipliers i j))))
                 (Multiplier ((Some i), j)))) with
     | Accepted ->
       let steps = all_steps n l p multipliers in
       let costs =
         map (fun j -> total_i steps (fun st -> nth j st.charges nothing))
           (seq 0 l.local_constraints)
       in
       (match below_each l.local_constraints (fun j ->
                let c = (nth j costs nothing).high in
                require (qle_bool c (l.local_threshold j)) (Threshold (j, c))) with
        | Accepted ->
          let lows = map (fun i -> i.low) costs in
          below_each (count l) (fun i ->
            let x = local_gain n l multipliers steps lows i in
            require (qle_bool x eps) (Gain (i, x)))
        | Refused reason -> Refused reason)
     | Refused reason -> Refused reason)
  | Refused reason -> Refused reason

(** val add_one : int -> int list -> int list **)

let rec add_one x = function
| [] -> []
| m :: rest ->
  (Integer.by_cases_nat
     (fun _ -> (Integer.next m) :: rest)
     (fun y -> m :: (add_one y rest))
     x)

(** val count_vectors : int -> int -> int list list **)

let rec count_vectors total size =
  Integer.by_cases_nat
    (fun _ ->
    Integer.by_cases_nat
      (fun _ -> [] :: [])
      (fun _ -> [])
      total)
    (fun k ->
    flat_map (fun m ->
      map (fun x -> m :: x) (count_vectors (Integer.monus total m) k))
      (seq 0 (Integer.next total)))
    size

(** val equal_vectors : int list -> int list -> bool **)

let rec equal_vectors v w =
  match v with
  | [] -> (match w with
           | [] -> true
           | _ :: _ -> false)
  | m :: v' ->
    (match w with
     | [] -> false
     | k :: w' -> (&&) (Integer.equal_nat m k) (equal_vectors v' w'))

(** val position : int list -> int list list -> int **)

let rec position v = function
| [] -> 0
| w :: rest -> if equal_vectors v w then 0 else Integer.next (position v rest)

type classes =
| Largest of int list
| Every of int list list

(** val class0 : classes -> int list -> int **)

let class0 c v =
  match c with
  | Largest boundaries ->
    length
      (filter (fun b -> Integer.less_nat b (fold_right Nat.max 0 v))
        boundaries)
  | Every vectors -> position v vectors

(** val num_classes : classes -> int **)

let num_classes = function
| Largest boundaries -> Integer.next (length boundaries)
| Every vectors -> Integer.next (length vectors)

(** val every : int -> int -> classes **)

let every agents0 size =
  Every (removelast (count_vectors agents0 size))

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

(** val reward_of_counts :
    counting_game -> int -> int -> int -> int -> int list -> q **)

let reward_of_counts c i h s x v =
  qplus (qplus (c.count_reward h s x (nth x v 0)) (c.own_reward i h s x))
    (c.class_reward h s x (class0 c.grouping v))

(** val insert :
    int list -> q -> (int list * q) list -> (int list * q) list **)

let rec insert v q0 = function
| [] -> (v, q0) :: []
| p :: rest ->
  let (w, r) = p in
  if equal_vectors v w
  then (w, (add0 q0 r)) :: rest
  else (w, r) :: (insert v q0 rest)

(** val add_agent :
    (int * q) list -> (int list * q) list -> (int list * q) list **)

let add_agent row l =
  match row with
  | [] ->
    fold_right (fun entry merged -> insert (fst entry) (snd entry) merged) []
      (flat_map (fun choice ->
        map (fun entry -> ((add_one (fst choice) (fst entry)),
          (mul (snd choice) (snd entry)))) l) row)
  | p :: l0 ->
    let (x, q0) = p in
    (match l0 with
     | [] ->
       map (fun entry -> ((add_one x (fst entry)), (mul q0 (snd entry)))) l
     | _ :: _ ->
       fold_right (fun entry merged -> insert (fst entry) (snd entry) merged)
         []
         (flat_map (fun choice ->
           map (fun entry -> ((add_one (fst choice) (fst entry)),
             (mul (snd choice) (snd entry)))) l) row))

(** val by_class : counting_game -> int process **)

let by_class c =
  { states = c.shared_states; horizon = c.shared_steps; actions =
    (seq 0 (num_classes c.grouping)); initial = c.shared_start; transition =
    c.class_next }

(** val row_of :
    counting_game -> policy -> int -> int -> int -> (int * q) list **)

let row_of c p k h s =
  filter (fun entry -> negb (is_zero (snd entry)))
    (map (fun x -> (x, (p k h s x))) (seq 0 c.choices))

(** val others_from :
    counting_game -> policy -> int -> int -> int -> int -> int -> (int
    list * q) list **)

let rec others_from c p i h s k m =
  Integer.by_cases_nat
    (fun _ -> ((repeat 0 c.choices), { qnum = Integer.one; qden =
    Integer.one }) :: [])
    (fun m' ->
    if Integer.equal_nat k i
    then others_from c p i h s (Integer.next k) m'
    else add_agent (row_of c p k h s)
           (others_from c p i h s (Integer.next k) m'))
    m

(** val by_action :
    precision -> counting_game -> (int -> int -> int -> int list -> q) ->
    (int list * q) list -> q tree -> int -> int -> int -> q **)

let by_action n c f law next0 h s x =
  total_of law (fun entry ->
    let v = add_one x (fst entry) in
    mul_up n (snd entry)
      (outcome n (by_class c) (f h s x v) next0 h s (class0 c.grouping v)))

(** val followed_by :
    precision -> counting_game -> policy -> int -> (int -> int -> int -> int
    list -> q) -> q tree -> int -> int -> q **)

let followed_by n c p i f next0 h s =
  let law = others_from c p i h s 0 c.crowd in
  total_of (row_of c p i h s) (fun choice ->
    mul_up n (snd choice) (by_action n c f law next0 h s (fst choice)))

(** val deviated_by :
    precision -> counting_game -> policy -> int -> (int -> int -> int -> int
    list -> q) -> q tree -> int -> int -> q **)

let deviated_by n c p i f next0 h s =
  let law = others_from c p i h s 0 c.crowd in
  largest (seq 0 c.choices) (fun x -> by_action n c f law next0 h s x)

(** val crowd_above :
    precision -> counting_game -> policy -> int -> (int -> int -> int -> int
    list -> q) -> q **)

let crowd_above n c p i f =
  bound n (by_class c) (by_state (by_class c) (followed_by n c p i f))

(** val crowd_below :
    precision -> counting_game -> policy -> int -> (int -> int -> int -> int
    list -> q) -> q **)

let crowd_below n c p i f =
  qopp
    (bound n (by_class c)
      (by_state (by_class c)
        (followed_by n c p i (fun h s x v -> qopp (f h s x v)))))

(** val cost_of_counts :
    counting_game -> int -> int -> int -> int -> int list -> q **)

let cost_of_counts c j h s _ v =
  c.class_cost j h s (class0 c.grouping v)

(** val lagrangian_of_counts :
    counting_game -> (int -> int -> q) -> int -> int -> int -> int -> int
    list -> q **)

let lagrangian_of_counts c multipliers i h s x v =
  sub0 (reward_of_counts c i h s x v)
    (total_of (seq 0 c.shared_constraints) (fun j ->
      mul (multipliers i j) (cost_of_counts c j h s x v)))

(** val crowd_gain :
    precision -> counting_game -> policy -> (int -> int -> q) -> q list ->
    int -> q **)

let crowd_gain n c p multipliers costs i =
  add0
    (sub0
      (bound n (by_class c)
        (by_state (by_class c)
          (deviated_by n c p i (lagrangian_of_counts c multipliers i))))
      (crowd_below n c p i (lagrangian_of_counts c multipliers i)))
    (total_of (seq 0 c.shared_constraints) (fun j ->
      mul (multipliers i j)
        (sub0 (c.shared_threshold j)
          (nth j costs { qnum = Integer.zero; qden = Integer.one }))))

(** val check_counting :
    precision -> counting_game -> policy -> (int -> int -> q) -> q -> verdict **)

let check_counting n c p multipliers eps =
  match require (Integer.less_nat 0 c.crowd) NoAgents with
  | Accepted ->
    (match check_process (by_class c) None (fun c0 -> c0 :: []) with
     | Accepted ->
       (match below_each c.crowd (fun i ->
                below_each c.shared_steps (fun h ->
                  below_each c.shared_states (fun s ->
                    require (is_distribution (seq 0 c.choices) (p i h s))
                      (PolicyRow (i, h, s))))) with
        | Accepted ->
          (match below_each c.crowd (fun i ->
                   below_each c.shared_constraints (fun j ->
                     require
                       ((&&)
                         (qle_bool { qnum = Integer.zero; qden =
                           Integer.one } (multipliers i j))
                         ((||) (c.shared_binds i j)
                           (is_zero (multipliers i j)))) (Multiplier ((Some
                       i), j)))) with
           | Accepted ->
             (match below_each c.shared_constraints (fun j ->
                      let c0 = crowd_above n c p 0 (cost_of_counts c j) in
                      require (qle_bool c0 (c.shared_threshold j)) (Threshold
                        (j, c0))) with
              | Accepted ->
                let costs =
                  map (fun j -> crowd_below n c p 0 (cost_of_counts c j))
                    (seq 0 c.shared_constraints)
                in
                below_each c.crowd (fun i ->
                  let x = crowd_gain n c p multipliers costs i in
                  require (qle_bool x eps) (Gain (i, x)))
              | Refused reason -> Refused reason)
           | Refused reason -> Refused reason)
        | Refused reason -> Refused reason)
     | Refused reason -> Refused reason)
  | Refused reason -> Refused reason

(** val lasting : game -> int -> game **)

let lasting g steps =
  { num_actions = g.num_actions; num_states = g.num_states; num_steps =
    steps; num_constraints = g.num_constraints; start = g.start; next =
    (fun _ -> g.next 0); reward = (fun i _ -> g.reward i 0); cost =
    (fun j _ -> g.cost j 0); threshold = g.threshold; binds = g.binds }

(** val stationary : policy -> policy **)

let stationary p i _ =
  p i 0

(** val shrunk : q -> game -> int -> game **)

let shrunk gamma g steps =
  { num_actions = g.num_actions; num_states = g.num_states; num_steps =
    steps; num_constraints = g.num_constraints; start = g.start; next =
    (fun _ s a ->
    map (fun entry -> ((fst entry), (mul gamma (snd entry)))) (g.next 0 s a));
    reward = (fun i _ -> g.reward i 0); cost = (fun j _ -> g.cost j 0);
    threshold = g.threshold; binds = g.binds }

(** val look_ahead : q -> (q tree -> q tree) -> int -> q tree **)

let rec look_ahead tail layer steps =
  Integer.by_cases_nat
    (fun _ -> Leaf tail)
    (fun k -> let next0 = look_ahead tail layer k in layer next0)
    steps

(** val tail_of :
    q -> game -> int list process -> (int -> int list -> q) -> q **)

let tail_of gamma g m f =
  larger { qnum = Integer.zero; qden = Integer.one }
    (qdiv
      (largest (seq 0 g.num_states) (fun s ->
        largest m.actions (fun a -> f s a)))
      (qminus { qnum = Integer.one; qden = Integer.one } gamma))

(** val ahead_bound :
    precision -> q -> game -> int -> int list process -> (int -> int list ->
    q) -> (q tree -> int -> int -> q) -> q **)

let ahead_bound n gamma g steps m f step0 =
  let table =
    look_ahead (tail_of gamma g m f) (fun next0 ->
      tabulate { qnum = Integer.zero; qden = Integer.one } g.num_states
        (fun s -> step0 next0 0 s)) steps
  in
  total_of (seq 0 g.num_states) (fun s -> mul_up n (g.start s) (get table s))

(** val at_every_step :
    (int -> int list -> q) -> int -> int -> int list -> q **)

let at_every_step f _ =
  f

(** val discounted_above :
    precision -> q -> game -> int -> policy -> int list process -> (int ->
    int list -> q) -> q **)

let discounted_above n gamma g steps p m f =
  ahead_bound n gamma g steps m f
    (followed n (shrunk gamma g (Integer.next 0)) m (stationary p)
      (at_every_step f))

(** val discounted_below :
    precision -> q -> game -> int -> policy -> int list process -> (int ->
    int list -> q) -> q **)

let discounted_below n gamma g steps p m f =
  qopp (discounted_above n gamma g steps p m (fun s a -> qopp (f s a)))

(** val discounted_best :
    precision -> q -> game -> int -> policy -> int list process -> int ->
    (int -> int list -> q) -> q **)

let discounted_best n gamma g steps p m i f =
  ahead_bound n gamma g steps m f
    (deviated n (shrunk gamma g (Integer.next 0)) m (stationary p) i
      (at_every_step f))

(** val discounted_gain :
    precision -> q -> game -> int -> policy -> (int -> int -> q) -> int list
    process -> q list -> int -> q **)

let discounted_gain n gamma g steps p multipliers m costs i =
  let f = lagrangian g multipliers i 0 in
  add0
    (sub0 (discounted_best n gamma g steps p m i f)
      (discounted_below n gamma g steps p m f))
    (total_of (seq 0 g.num_constraints) (fun j ->
      mul (multipliers i j)
        (sub0 (g.threshold j)
          (nth j costs { qnum = Integer.zero; qden = Integer.one }))))

(** val check_discounted_with :
    precision -> q -> game -> int -> policy -> (int -> int -> q) -> int list
    process -> q -> verdict **)

let check_discounted_with n gamma g steps p multipliers m eps =
  match require
          ((&&) (qle_bool { qnum = Integer.zero; qden = Integer.one } gamma)
            (negb (qle_bool { qnum = Integer.one; qden = Integer.one } gamma)))
          Discount with
  | Accepted ->
    (match check_process (dynamics (lasting g (Integer.next 0))) None
             (fun a -> a) with
     | Accepted ->
       (match below_each (num_agents g) (fun i ->
                below_each g.num_states (fun s ->
                  require
                    (is_distribution (seq 0 (nth i g.num_actions 0))
                      (p i 0 s)) (PolicyRow (i, 0, s)))) with
        | Accepted ->
          (match below_each (num_agents g) (fun i ->
                   below_each g.num_constraints (fun j ->
                     require
                       ((&&)
                         (qle_bool { qnum = Integer.zero; qden =
                           Integer.one } (multipliers i j))
                         ((||) (g.binds i j) (is_zero (multipliers i j))))
                       (Multiplier ((Some i), j)))) with
           | Accepted ->
             (match below_each g.num_constraints (fun j ->
                      let c =
                        discounted_above n gamma g steps p m (g.cost j 0)
                      in
                      require (qle_bool c (g.threshold j)) (Threshold (j, c))) with
              | Accepted ->
                let costs =
                  map (fun j ->
                    discounted_below n gamma g steps p m (g.cost j 0))
                    (seq 0 g.num_constraints)
                in
                below_each (num_agents g) (fun i ->
                  let x =
                    discounted_gain n gamma g steps p multipliers m costs i
                  in
                  require (qle_bool x eps) (Gain (i, x)))
              | Refused reason -> Refused reason)
           | Refused reason -> Refused reason)
        | Refused reason -> Refused reason)
     | Refused reason -> Refused reason)
  | Refused reason -> Refused reason

(** val check_discounted :
    precision -> q -> game -> int -> policy -> (int -> int -> q) -> q ->
    verdict **)

let check_discounted n gamma g steps p multipliers eps =
  check_discounted_with n gamma g steps p multipliers
    (dynamics (shrunk gamma g (Integer.next 0))) eps
