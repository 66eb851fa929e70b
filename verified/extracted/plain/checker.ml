
(** val negb : bool -> bool **)

let negb = function
| true -> false
| false -> true

type nat =
| O
| S of nat

(** val fst : ('a1 * 'a2) -> 'a1 **)

let fst = function
| (x, _) -> x

(** val snd : ('a1 * 'a2) -> 'a2 **)

let snd = function
| (_, y) -> y

(** val length : 'a1 list -> nat **)

let rec length = function
| [] -> O
| _ :: l' -> S (length l')

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

module Coq__1 = struct
 (** val add : nat -> nat -> nat **)
 let rec add n m =
   match n with
   | O -> m
   | S p -> S (add p m)
end
include Coq__1

(** val sub : nat -> nat -> nat **)

let rec sub n m =
  match n with
  | O -> n
  | S k -> (match m with
            | O -> n
            | S l -> sub k l)

type positive =
| XI of positive
| XO of positive
| XH

type z =
| Z0
| Zpos of positive
| Zneg of positive

module Nat =
 struct
  (** val eqb : nat -> nat -> bool **)

  let rec eqb n m =
    match n with
    | O -> (match m with
            | O -> true
            | S _ -> false)
    | S n' -> (match m with
               | O -> false
               | S m' -> eqb n' m')

  (** val leb : nat -> nat -> bool **)

  let rec leb n m =
    match n with
    | O -> true
    | S n' -> (match m with
               | O -> false
               | S m' -> leb n' m')

  (** val ltb : nat -> nat -> bool **)

  let ltb n m =
    leb (S n) m

  (** val max : nat -> nat -> nat **)

  let rec max n m =
    match n with
    | O -> m
    | S n' -> (match m with
               | O -> n
               | S m' -> S (max n' m'))

  (** val div2 : nat -> nat **)

  let rec div2 = function
  | O -> O
  | S n0 -> (match n0 with
             | O -> O
             | S n' -> S (div2 n'))
 end

module Pos =
 struct
  type mask =
  | IsNul
  | IsPos of positive
  | IsNeg
 end

module Coq_Pos =
 struct
  (** val succ : positive -> positive **)

  let rec succ = function
  | XI p -> XO (succ p)
  | XO p -> XI p
  | XH -> XO XH

  (** val add : positive -> positive -> positive **)

  let rec add x y =
    match x with
    | XI p ->
      (match y with
       | XI q0 -> XO (add_carry p q0)
       | XO q0 -> XI (add p q0)
       | XH -> XO (succ p))
    | XO p ->
      (match y with
       | XI q0 -> XI (add p q0)
       | XO q0 -> XO (add p q0)
       | XH -> XI p)
    | XH -> (match y with
             | XI q0 -> XO (succ q0)
             | XO q0 -> XI q0
             | XH -> XO XH)

  (** val add_carry : positive -> positive -> positive **)

  and add_carry x y =
    match x with
    | XI p ->
      (match y with
       | XI q0 -> XI (add_carry p q0)
       | XO q0 -> XO (add_carry p q0)
       | XH -> XI (succ p))
    | XO p ->
      (match y with
       | XI q0 -> XO (add_carry p q0)
       | XO q0 -> XI (add p q0)
       | XH -> XO (succ p))
    | XH ->
      (match y with
       | XI q0 -> XI (succ q0)
       | XO q0 -> XO (succ q0)
       | XH -> XI XH)

  (** val pred_double : positive -> positive **)

  let rec pred_double = function
  | XI p -> XI (XO p)
  | XO p -> XI (pred_double p)
  | XH -> XH

  type mask = Pos.mask =
  | IsNul
  | IsPos of positive
  | IsNeg

  (** val succ_double_mask : mask -> mask **)

  let succ_double_mask = function
  | IsNul -> IsPos XH
  | IsPos p -> IsPos (XI p)
  | IsNeg -> IsNeg

  (** val double_mask : mask -> mask **)

  let double_mask = function
  | IsPos p -> IsPos (XO p)
  | x0 -> x0

  (** val double_pred_mask : positive -> mask **)

  let double_pred_mask = function
  | XI p -> IsPos (XO (XO p))
  | XO p -> IsPos (XO (pred_double p))
  | XH -> IsNul

  (** val sub_mask : positive -> positive -> mask **)

  let rec sub_mask x y =
    match x with
    | XI p ->
      (match y with
       | XI q0 -> double_mask (sub_mask p q0)
       | XO q0 -> succ_double_mask (sub_mask p q0)
       | XH -> IsPos (XO p))
    | XO p ->
      (match y with
       | XI q0 -> succ_double_mask (sub_mask_carry p q0)
       | XO q0 -> double_mask (sub_mask p q0)
       | XH -> IsPos (pred_double p))
    | XH -> (match y with
             | XH -> IsNul
             | _ -> IsNeg)

  (** val sub_mask_carry : positive -> positive -> mask **)

  and sub_mask_carry x y =
    match x with
    | XI p ->
      (match y with
       | XI q0 -> succ_double_mask (sub_mask_carry p q0)
       | XO q0 -> double_mask (sub_mask p q0)
       | XH -> IsPos (pred_double p))
    | XO p ->
      (match y with
       | XI q0 -> double_mask (sub_mask_carry p q0)
       | XO q0 -> succ_double_mask (sub_mask_carry p q0)
       | XH -> double_pred_mask p)
    | XH -> IsNeg

  (** val sub : positive -> positive -> positive **)

  let sub x y =
    match sub_mask x y with
    | IsPos z0 -> z0
    | _ -> XH

  (** val mul : positive -> positive -> positive **)

  let rec mul x y =
    match x with
    | XI p -> add y (XO (mul p y))
    | XO p -> XO (mul p y)
    | XH -> y

  (** val size_nat : positive -> nat **)

  let rec size_nat = function
  | XI p0 -> S (size_nat p0)
  | XO p0 -> S (size_nat p0)
  | XH -> S O

  (** val compare_cont : comparison -> positive -> positive -> comparison **)

  let rec compare_cont r x y =
    match x with
    | XI p ->
      (match y with
       | XI q0 -> compare_cont r p q0
       | XO q0 -> compare_cont Gt p q0
       | XH -> Gt)
    | XO p ->
      (match y with
       | XI q0 -> compare_cont Lt p q0
       | XO q0 -> compare_cont r p q0
       | XH -> Gt)
    | XH -> (match y with
             | XH -> r
             | _ -> Lt)

  (** val compare : positive -> positive -> comparison **)

  let compare =
    compare_cont Eq

  (** val eqb : positive -> positive -> bool **)

  let rec eqb p q0 =
    match p with
    | XI p0 -> (match q0 with
                | XI q1 -> eqb p0 q1
                | _ -> false)
    | XO p0 -> (match q0 with
                | XO q1 -> eqb p0 q1
                | _ -> false)
    | XH -> (match q0 with
             | XH -> true
             | _ -> false)

  (** val gcdn : nat -> positive -> positive -> positive **)

  let rec gcdn n a b =
    match n with
    | O -> XH
    | S n0 ->
      (match a with
       | XI a' ->
         (match b with
          | XI b' ->
            (match compare a' b' with
             | Eq -> a
             | Lt -> gcdn n0 (sub b' a') a
             | Gt -> gcdn n0 (sub a' b') b)
          | XO b0 -> gcdn n0 a b0
          | XH -> XH)
       | XO a0 ->
         (match b with
          | XI _ -> gcdn n0 a0 b
          | XO b0 -> XO (gcdn n0 a0 b0)
          | XH -> XH)
       | XH -> XH)

  (** val gcd : positive -> positive -> positive **)

  let gcd a b =
    gcdn (Coq__1.add (size_nat a) (size_nat b)) a b
 end

module Z =
 struct
  (** val double : z -> z **)

  let double = function
  | Z0 -> Z0
  | Zpos p -> Zpos (XO p)
  | Zneg p -> Zneg (XO p)

  (** val succ_double : z -> z **)

  let succ_double = function
  | Z0 -> Zpos XH
  | Zpos p -> Zpos (XI p)
  | Zneg p -> Zneg (Coq_Pos.pred_double p)

  (** val pred_double : z -> z **)

  let pred_double = function
  | Z0 -> Zneg XH
  | Zpos p -> Zpos (Coq_Pos.pred_double p)
  | Zneg p -> Zneg (XI p)

  (** val pos_sub : positive -> positive -> z **)

  let rec pos_sub x y =
    match x with
    | XI p ->
      (match y with
       | XI q0 -> double (pos_sub p q0)
       | XO q0 -> succ_double (pos_sub p q0)
       | XH -> Zpos (XO p))
    | XO p ->
      (match y with
       | XI q0 -> pred_double (pos_sub p q0)
       | XO q0 -> double (pos_sub p q0)
       | XH -> Zpos (Coq_Pos.pred_double p))
    | XH ->
      (match y with
       | XI q0 -> Zneg (XO q0)
       | XO q0 -> Zneg (Coq_Pos.pred_double q0)
       | XH -> Z0)

  (** val add : z -> z -> z **)

  let add x y =
    match x with
    | Z0 -> y
    | Zpos x' ->
      (match y with
       | Z0 -> x
       | Zpos y' -> Zpos (Coq_Pos.add x' y')
       | Zneg y' -> pos_sub x' y')
    | Zneg x' ->
      (match y with
       | Z0 -> x
       | Zpos y' -> pos_sub y' x'
       | Zneg y' -> Zneg (Coq_Pos.add x' y'))

  (** val opp : z -> z **)

  let opp = function
  | Z0 -> Z0
  | Zpos x0 -> Zneg x0
  | Zneg x0 -> Zpos x0

  (** val sub : z -> z -> z **)

  let sub m n =
    add m (opp n)

  (** val mul : z -> z -> z **)

  let mul x y =
    match x with
    | Z0 -> Z0
    | Zpos x' ->
      (match y with
       | Z0 -> Z0
       | Zpos y' -> Zpos (Coq_Pos.mul x' y')
       | Zneg y' -> Zneg (Coq_Pos.mul x' y'))
    | Zneg x' ->
      (match y with
       | Z0 -> Z0
       | Zpos y' -> Zneg (Coq_Pos.mul x' y')
       | Zneg y' -> Zpos (Coq_Pos.mul x' y'))

  (** val compare : z -> z -> comparison **)

  let compare x y =
    match x with
    | Z0 -> (match y with
             | Z0 -> Eq
             | Zpos _ -> Lt
             | Zneg _ -> Gt)
    | Zpos x' -> (match y with
                  | Zpos y' -> Coq_Pos.compare x' y'
                  | _ -> Gt)
    | Zneg x' ->
      (match y with
       | Zneg y' -> compOpp (Coq_Pos.compare x' y')
       | _ -> Lt)

  (** val leb : z -> z -> bool **)

  let leb x y =
    match compare x y with
    | Gt -> false
    | _ -> true

  (** val ltb : z -> z -> bool **)

  let ltb x y =
    match compare x y with
    | Lt -> true
    | _ -> false

  (** val eqb : z -> z -> bool **)

  let eqb x y =
    match x with
    | Z0 -> (match y with
             | Z0 -> true
             | _ -> false)
    | Zpos p -> (match y with
                 | Zpos q0 -> Coq_Pos.eqb p q0
                 | _ -> false)
    | Zneg p -> (match y with
                 | Zneg q0 -> Coq_Pos.eqb p q0
                 | _ -> false)

  (** val abs : z -> z **)

  let abs = function
  | Zneg p -> Zpos p
  | x -> x

  (** val pos_div_eucl : positive -> z -> z * z **)

  let rec pos_div_eucl a b =
    match a with
    | XI a' ->
      let (q0, r) = pos_div_eucl a' b in
      let r' = add (mul (Zpos (XO XH)) r) (Zpos XH) in
      if ltb r' b
      then ((mul (Zpos (XO XH)) q0), r')
      else ((add (mul (Zpos (XO XH)) q0) (Zpos XH)), (sub r' b))
    | XO a' ->
      let (q0, r) = pos_div_eucl a' b in
      let r' = mul (Zpos (XO XH)) r in
      if ltb r' b
      then ((mul (Zpos (XO XH)) q0), r')
      else ((add (mul (Zpos (XO XH)) q0) (Zpos XH)), (sub r' b))
    | XH -> if leb (Zpos (XO XH)) b then (Z0, (Zpos XH)) else ((Zpos XH), Z0)

  (** val div_eucl : z -> z -> z * z **)

  let div_eucl a b =
    match a with
    | Z0 -> (Z0, Z0)
    | Zpos a' ->
      (match b with
       | Z0 -> (Z0, a)
       | Zpos _ -> pos_div_eucl a' b
       | Zneg b' ->
         let (q0, r) = pos_div_eucl a' (Zpos b') in
         (match r with
          | Z0 -> ((opp q0), Z0)
          | _ -> ((opp (add q0 (Zpos XH))), (add b r))))
    | Zneg a' ->
      (match b with
       | Z0 -> (Z0, a)
       | Zpos _ ->
         let (q0, r) = pos_div_eucl a' b in
         (match r with
          | Z0 -> ((opp q0), Z0)
          | _ -> ((opp (add q0 (Zpos XH))), (sub b r)))
       | Zneg b' -> let (q0, r) = pos_div_eucl a' (Zpos b') in (q0, (opp r)))

  (** val div : z -> z -> z **)

  let div a b =
    let (q0, _) = div_eucl a b in q0

  (** val gcd : z -> z -> z **)

  let gcd a b =
    match a with
    | Z0 -> abs b
    | Zpos a0 ->
      (match b with
       | Z0 -> abs a
       | Zpos b0 -> Zpos (Coq_Pos.gcd a0 b0)
       | Zneg b0 -> Zpos (Coq_Pos.gcd a0 b0))
    | Zneg a0 ->
      (match b with
       | Z0 -> abs a
       | Zpos b0 -> Zpos (Coq_Pos.gcd a0 b0)
       | Zneg b0 -> Zpos (Coq_Pos.gcd a0 b0))
 end

(** val zeq_bool : z -> z -> bool **)

let zeq_bool x y =
  match Z.compare x y with
  | Eq -> true
  | _ -> false

(** val hd : 'a1 -> 'a1 list -> 'a1 **)

let hd default = function
| [] -> default
| x :: _ -> x

(** val nth : nat -> 'a1 list -> 'a1 -> 'a1 **)

let rec nth n l default =
  match n with
  | O -> (match l with
          | [] -> default
          | x :: _ -> x)
  | S m -> (match l with
            | [] -> default
            | _ :: t -> nth m t default)

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

(** val firstn : nat -> 'a1 list -> 'a1 list **)

let rec firstn n l =
  match n with
  | O -> []
  | S n0 -> (match l with
             | [] -> []
             | a :: l0 -> a :: (firstn n0 l0))

(** val skipn : nat -> 'a1 list -> 'a1 list **)

let rec skipn n l =
  match n with
  | O -> l
  | S n0 -> (match l with
             | [] -> []
             | _ :: l0 -> skipn n0 l0)

(** val seq : nat -> nat -> nat list **)

let rec seq start0 = function
| O -> []
| S len0 -> start0 :: (seq (S start0) len0)

(** val repeat : 'a1 -> nat -> 'a1 list **)

let rec repeat x = function
| O -> []
| S k -> x :: (repeat x k)

type q = { qnum : z; qden : positive }

(** val qeq_bool : q -> q -> bool **)

let qeq_bool x y =
  zeq_bool (Z.mul x.qnum (Zpos y.qden)) (Z.mul y.qnum (Zpos x.qden))

(** val qle_bool : q -> q -> bool **)

let qle_bool x y =
  Z.leb (Z.mul x.qnum (Zpos y.qden)) (Z.mul y.qnum (Zpos x.qden))

(** val qplus : q -> q -> q **)

let qplus x y =
  { qnum = (Z.add (Z.mul x.qnum (Zpos y.qden)) (Z.mul y.qnum (Zpos x.qden)));
    qden = (Coq_Pos.mul x.qden y.qden) }

(** val qmult : q -> q -> q **)

let qmult x y =
  { qnum = (Z.mul x.qnum y.qnum); qden = (Coq_Pos.mul x.qden y.qden) }

(** val qopp : q -> q **)

let qopp x =
  { qnum = (Z.opp x.qnum); qden = x.qden }

(** val qminus : q -> q -> q **)

let qminus x y =
  qplus x (qopp y)

(** val qinv : q -> q **)

let qinv x =
  match x.qnum with
  | Z0 -> { qnum = Z0; qden = XH }
  | Zpos p -> { qnum = (Zpos x.qden); qden = p }
  | Zneg p -> { qnum = (Zneg x.qden); qden = p }

(** val qdiv : q -> q -> q **)

let qdiv x y =
  qmult x (qinv y)

type 'a process = { states : nat; horizon : nat; actions : 'a list;
                    initial : (nat -> q);
                    transition : (nat -> nat -> 'a -> (nat * q) list) }

type game = { num_actions : nat list; num_states : nat; num_steps : nat;
              num_constraints : nat; start : (nat -> q);
              next : (nat -> nat -> nat list -> (nat * q) list);
              reward : (nat -> nat -> nat -> nat list -> q);
              cost : (nat -> nat -> nat -> nat list -> q);
              threshold : (nat -> q); binds : (nat -> nat -> bool) }

(** val tuples : nat list -> nat list list **)

let rec tuples = function
| [] -> [] :: []
| n :: rest ->
  flat_map (fun x -> map (fun x0 -> x :: x0) (tuples rest)) (seq O n)

(** val dynamics : game -> nat list process **)

let dynamics g =
  { states = g.num_states; horizon = g.num_steps; actions =
    (tuples g.num_actions); initial = g.start; transition = g.next }

type policy = nat -> nat -> nat -> nat -> q

(** val num_agents : game -> nat **)

let num_agents g =
  length g.num_actions

(** val lowest : q -> q **)

let lowest q0 =
  let d = Zpos q0.qden in
  let k = Z.gcd q0.qnum d in
  (match Z.div d k with
   | Zpos e -> { qnum = (Z.div q0.qnum k); qden = e }
   | _ -> q0)

(** val is_zero : q -> bool **)

let is_zero q0 =
  Z.eqb q0.qnum Z0

(** val is_one : q -> bool **)

let is_one q0 =
  Z.eqb q0.qnum (Zpos q0.qden)

(** val add0 : q -> q -> q **)

let add0 p q0 =
  if Coq_Pos.eqb p.qden q0.qden
  then { qnum = (Z.add p.qnum q0.qnum); qden = p.qden }
  else if is_zero p then q0 else if is_zero q0 then p else lowest (qplus p q0)

(** val sub0 : q -> q -> q **)

let sub0 p q0 =
  add0 p (qopp q0)

(** val mul0 : q -> q -> q **)

let mul0 p q0 =
  if is_zero p
  then { qnum = Z0; qden = XH }
  else if is_one p then q0 else lowest (qmult p q0)

(** val total_of : 'a1 list -> ('a1 -> q) -> q **)

let rec total_of l f =
  match l with
  | [] -> { qnum = Z0; qden = XH }
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
  | [] -> { qnum = Z0; qden = XH }
  | x :: rest ->
    (match rest with
     | [] -> f x
     | _ :: _ -> larger (f x) (largest rest f))

type precision = positive option

(** val above : z -> z -> positive -> q **)

let above t d n =
  { qnum = (Z.opp (Z.div (Z.opp t) d)); qden = n }

(** val below : z -> z -> positive -> q **)

let below t d n =
  { qnum = (Z.div t d); qden = n }

(** val up : precision -> q -> q **)

let up n q0 =
  match n with
  | Some n0 ->
    if Coq_Pos.eqb q0.qden n0
    then q0
    else above (Z.mul q0.qnum (Zpos n0)) (Zpos q0.qden) n0
  | None -> q0

(** val down : precision -> q -> q **)

let down n q0 =
  match n with
  | Some n0 ->
    if Coq_Pos.eqb q0.qden n0
    then q0
    else below (Z.mul q0.qnum (Zpos n0)) (Zpos q0.qden) n0
  | None -> q0

(** val mul_up : precision -> q -> q -> q **)

let mul_up n p q0 =
  match n with
  | Some n0 ->
    if (&&) (is_one p) (Coq_Pos.eqb q0.qden n0)
    then q0
    else if Coq_Pos.eqb q0.qden n0
         then above (Z.mul p.qnum q0.qnum) (Zpos p.qden) n0
         else above (Z.mul (Z.mul p.qnum q0.qnum) (Zpos n0)) (Zpos
                (Coq_Pos.mul p.qden q0.qden)) n0
  | None -> mul0 p q0

(** val mul_down : precision -> q -> q -> q **)

let mul_down n p q0 =
  match n with
  | Some n0 ->
    if (&&) (is_one p) (Coq_Pos.eqb q0.qden n0)
    then q0
    else if Coq_Pos.eqb q0.qden n0
         then below (Z.mul p.qnum q0.qnum) (Zpos p.qden) n0
         else below (Z.mul (Z.mul p.qnum q0.qnum) (Zpos n0)) (Zpos
                (Coq_Pos.mul p.qden q0.qden)) n0
  | None -> mul0 p q0

type 'x tree =
| Leaf of 'x
| Node of nat * 'x tree * 'x tree

(** val get : 'a1 tree -> nat -> 'a1 **)

let rec get t s =
  match t with
  | Leaf x -> x
  | Node (k, l, r) -> if Nat.ltb s k then get l s else get r s

(** val build : nat -> nat -> nat -> (nat -> 'a1) -> 'a1 tree **)

let rec build fuel lo n f =
  match fuel with
  | O -> Leaf (f lo)
  | S fuel' ->
    if Nat.leb n (S O)
    then Leaf (f lo)
    else let half = Nat.div2 n in
         Node ((add lo half), (build fuel' lo half f),
         (build fuel' (add lo half) (sub n half) f))

(** val tabulate : 'a1 -> nat -> (nat -> 'a1) -> 'a1 tree **)

let tabulate default n f =
  match n with
  | O -> Leaf default
  | S _ -> build n O n f

(** val change : 'a1 tree -> nat -> ('a1 -> 'a1) -> 'a1 tree **)

let rec change t s f =
  match t with
  | Leaf x -> Leaf (f x)
  | Node (k, l, r) ->
    if Nat.ltb s k
    then Node (k, (change l s f), r)
    else Node (k, l, (change r s f))

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

(** val below_each : nat -> (nat -> verdict) -> verdict **)

let below_each n check =
  each (seq O n) check

(** val is_distribution : 'a1 list -> ('a1 -> q) -> bool **)

let is_distribution l f =
  (&&) (forallb (fun x -> qle_bool { qnum = Z0; qden = XH } (f x)) l)
    (qeq_bool (total_of l f) { qnum = (Zpos XH); qden = XH })

(** val is_row : nat -> (nat * q) list -> bool **)

let is_row n row =
  (&&) (forallb (fun entry -> Nat.ltb (fst entry) n) row)
    (is_distribution row snd)

(** val check_process :
    'a1 process -> nat option -> ('a1 -> nat list) -> verdict **)

let check_process m agent0 name =
  match require (is_distribution (seq O m.states) m.initial) (InitialRow
          agent0) with
  | Accepted ->
    below_each m.horizon (fun h ->
      below_each m.states (fun s ->
        each m.actions (fun a ->
          require (is_row m.states (m.transition h s a)) (TransitionRow
            (agent0, h, s, (name a))))))
  | Refused reason -> Refused reason

(** val outcome :
    precision -> 'a1 process -> q -> q tree -> nat -> nat -> 'a1 -> q **)

let outcome n m now next0 h s a =
  add0 (up n now)
    (total_of (m.transition h s a) (fun entry ->
      mul_up n (snd entry) (get next0 (fst entry))))

(** val backward_table : (q tree -> nat -> q tree) -> nat -> nat -> q tree **)

let rec backward_table layer remaining h =
  match remaining with
  | O -> Leaf { qnum = Z0; qden = XH }
  | S k -> let next0 = backward_table layer k (S h) in layer next0 h

(** val bound : precision -> 'a1 process -> (q tree -> nat -> q tree) -> q **)

let bound n m layer =
  let table = backward_table layer m.horizon O in
  total_of (seq O m.states) (fun s -> mul_up n (m.initial s) (get table s))

(** val by_state :
    'a1 process -> (q tree -> nat -> nat -> q) -> q tree -> nat -> q tree **)

let by_state m step0 next0 h =
  tabulate { qnum = Z0; qden = XH } m.states (fun s -> step0 next0 h s)

(** val best_of :
    precision -> 'a1 process -> 'a1 list -> (nat -> nat -> 'a1 -> q) -> q
    tree -> nat -> nat -> q **)

let best_of n m l f next0 h s =
  largest l (fun a -> outcome n m (f h s a) next0 h s a)

(** val combinations : (nat * q) list list -> (nat list * q) list **)

let rec combinations = function
| [] -> ([], { qnum = (Zpos XH); qden = XH }) :: []
| row :: rest ->
  let tail = combinations rest in
  flat_map (fun entry ->
    map (fun joint -> (((fst entry) :: (fst joint)),
      (mul0 (snd entry) (snd joint)))) tail) row

(** val policy_row : game -> policy -> nat -> nat -> nat -> (nat * q) list **)

let policy_row g p i h s =
  filter (fun entry -> negb (is_zero (snd entry)))
    (map (fun x -> (x, (p i h s x))) (seq O (nth i g.num_actions O)))

(** val policy_rows : game -> policy -> nat -> nat -> (nat * q) list list **)

let policy_rows g p h s =
  map (fun i -> policy_row g p i h s) (seq O (num_agents g))

(** val rows_with :
    game -> policy -> nat -> nat -> nat -> nat -> (nat * q) list list **)

let rows_with g p i x h s =
  map (fun k ->
    if Nat.eqb k i
    then (x, { qnum = (Zpos XH); qden = XH }) :: []
    else policy_row g p k h s) (seq O (num_agents g))

(** val mixture :
    precision -> nat list process -> (nat * q) list list -> (nat -> nat ->
    nat list -> q) -> q tree -> nat -> nat -> q **)

let mixture n m rows f next0 h s =
  total_of (combinations rows) (fun joint ->
    mul_up n (snd joint)
      (outcome n m (f h s (fst joint)) next0 h s (fst joint)))

(** val followed :
    precision -> game -> nat list process -> policy -> (nat -> nat -> nat
    list -> q) -> q tree -> nat -> nat -> q **)

let followed n g m p f next0 h s =
  mixture n m (policy_rows g p h s) f next0 h s

(** val deviated :
    precision -> game -> nat list process -> policy -> nat -> (nat -> nat ->
    nat list -> q) -> q tree -> nat -> nat -> q **)

let deviated n g m p i f next0 h s =
  largest (seq O (nth i g.num_actions O)) (fun x ->
    mixture n m (rows_with g p i x h s) f next0 h s)

(** val value_above :
    precision -> game -> nat list process -> policy -> (nat -> nat -> nat
    list -> q) -> q **)

let value_above n g m p f =
  bound n m (by_state m (followed n g m p f))

(** val value_below :
    precision -> game -> nat list process -> policy -> (nat -> nat -> nat
    list -> q) -> q **)

let value_below n g m p f =
  qopp
    (bound n m (by_state m (followed n g m p (fun h s a -> qopp (f h s a)))))

(** val lagrangian :
    game -> (nat -> nat -> q) -> nat -> nat -> nat -> nat list -> q **)

let lagrangian g multipliers i h s a =
  sub0 (g.reward i h s a)
    (total_of (seq O g.num_constraints) (fun j ->
      mul0 (multipliers i j) (g.cost j h s a)))

(** val gain :
    precision -> game -> nat list process -> policy -> (nat -> nat -> q) -> q
    list -> nat -> q **)

let gain n g m p multipliers costs i =
  add0
    (sub0
      (bound n m
        (by_state m (deviated n g m p i (lagrangian g multipliers i))))
      (value_below n g m p (lagrangian g multipliers i)))
    (total_of (seq O g.num_constraints) (fun j ->
      mul0 (multipliers i j)
        (sub0 (g.threshold j) (nth j costs { qnum = Z0; qden = XH }))))

(** val check_with :
    precision -> game -> nat list process -> policy -> (nat -> nat -> q) -> q
    -> verdict **)

let check_with n g m p multipliers eps =
  match check_process m None (fun a -> a) with
  | Accepted ->
    (match below_each (num_agents g) (fun i ->
             below_each g.num_steps (fun h ->
               below_each g.num_states (fun s ->
                 require
                   (is_distribution (seq O (nth i g.num_actions O)) (p i h s))
                   (PolicyRow (i, h, s))))) with
     | Accepted ->
       (match below_each (num_agents g) (fun i ->
                below_each g.num_constraints (fun j ->
                  require
                    ((&&)
                      (qle_bool { qnum = Z0; qden = XH } (multipliers i j))
                      ((||) (g.binds i j) (is_zero (multipliers i j))))
                    (Multiplier ((Some i), j)))) with
        | Accepted ->
          (match below_each g.num_constraints (fun j ->
                   let c = value_above n g m p (g.cost j) in
                   require (qle_bool c (g.threshold j)) (Threshold (j, c))) with
           | Accepted ->
             let costs =
               map (fun j -> value_below n g m p (g.cost j))
                 (seq O g.num_constraints)
             in
             below_each (num_agents g) (fun i ->
               let x = gain n g m p multipliers costs i in
               require (qle_bool x eps) (Gain (i, x)))
           | Refused reason -> Refused reason)
        | Refused reason -> Refused reason)
     | Refused reason -> Refused reason)
  | Refused reason -> Refused reason

(** val check_nash :
    precision -> game -> policy -> (nat -> nat -> q) -> q -> verdict **)

let check_nash n g p multipliers eps =
  check_with n g (dynamics g) p multipliers eps

(** val margin : precision -> game -> nat list process -> (nat -> q) -> q **)

let margin n g m multipliers =
  let weighted = fun h s a ->
    total_of (seq O g.num_constraints) (fun j ->
      qopp (mul0 (multipliers j) (g.cost j h s a)))
  in
  qopp
    (add0 (bound n m (by_state m (best_of n m m.actions weighted)))
      (total_of (seq O g.num_constraints) (fun j ->
        mul0 (multipliers j) (g.threshold j))))

(** val check_infeasible : precision -> game -> (nat -> q) -> verdict **)

let check_infeasible n g multipliers =
  let m = dynamics g in
  (match check_process m None (fun a -> a) with
   | Accepted ->
     (match below_each g.num_constraints (fun j ->
              require (qle_bool { qnum = Z0; qden = XH } (multipliers j))
                (Multiplier (None, j))) with
      | Accepted ->
        let x = margin n g m multipliers in
        require (negb (qle_bool x { qnum = Z0; qden = XH })) (Margin x)
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
      (if qle_bool { qnum = Z0; qden = XH } x.low then w.low else w.high)
      x.low); high =
    (mul_up n
      (if qle_bool { qnum = Z0; qden = XH } x.high then w.high else w.low)
      x.high) }

(** val total_i : 'a1 list -> ('a1 -> interval) -> interval **)

let rec total_i l f =
  match l with
  | [] -> point { qnum = Z0; qden = XH }
  | x :: rest ->
    (match rest with
     | [] -> f x
     | _ :: _ -> plus_i (f x) (total_i rest f))

(** val scatter : (nat * interval) list -> interval tree -> interval tree **)

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
    precision -> nat -> (nat * interval) list -> interval list ->
    (nat * interval) list **)

let rec leave_one_out n fuel users l =
  match fuel with
  | O ->
    (match users with
     | [] -> []
     | p :: l0 ->
       let (i, _) = p in
       (match l0 with
        | [] -> (i, (hd (point { qnum = Z0; qden = XH }) l)) :: []
        | _ :: _ -> []))
  | S fuel0 ->
    (match users with
     | [] -> []
     | p :: l0 ->
       let (i, _) = p in
       (match l0 with
        | [] -> (i, (hd (point { qnum = Z0; qden = XH }) l)) :: []
        | _ :: _ ->
          let half = Nat.div2 (length users) in
          let left = firstn half users in
          let right = skipn half users in
          app (leave_one_out n fuel0 left (mix_all n (map snd right) l))
            (leave_one_out n fuel0 right (mix_all n (map snd left) l))))

type share = { of_all : interval; of_others : (nat * interval) list }

(** val share_of : share -> nat -> interval **)

let share_of s i =
  match find (fun entry -> Nat.eqb (fst entry) i) s.of_others with
  | Some entry -> snd entry
  | None -> s.of_all

(** val share_at :
    precision -> (nat * interval) list -> (nat -> q) -> share **)

let share_at n users f =
  let l = map (fun m -> rounded n (f m)) (seq O (S (length users))) in
  { of_all =
  (hd (point { qnum = Z0; qden = XH }) (mix_all n (map snd users) l));
  of_others = (leave_one_out n (length users) users l) }

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

(** val no_agent : local_agent **)

let no_agent =
  { own_states = O; own_actions = O; own_start = (fun _ -> { qnum = Z0;
    qden = XH }); own_next = (fun _ _ _ -> []); private_reward =
    (fun _ _ _ -> { qnum = Z0; qden = XH }); private_cost = (fun _ _ _ _ ->
    { qnum = Z0; qden = XH }); uses = (fun _ _ _ -> []) }

type local_policy = nat -> nat -> nat -> nat -> q

(** val agent : local_game -> nat -> local_agent **)

let agent l i =
  nth i l.agents no_agent

(** val own : local_game -> local_agent -> nat process **)

let own l x =
  { states = x.own_states; horizon = l.local_steps; actions =
    (seq O x.own_actions); initial = x.own_start; transition = x.own_next }

type resource = { delays : share; additions : share list }

type step = { resources : resource tree; charges : interval list;
              worths : interval list }

(** val nothing : interval **)

let nothing =
  point { qnum = Z0; qden = XH }

(** val no_share : share **)

let no_share =
  { of_all = nothing; of_others = [] }

(** val no_resource : resource **)

let no_resource =
  { delays = no_share; additions = [] }

(** val count : local_game -> nat **)

let count l =
  length l.agents

(** val active : local_game -> (nat -> nat -> q) -> nat -> (nat * q) list **)

let active l multipliers i =
  filter (fun entry -> negb (is_zero (snd entry)))
    (map (fun j -> (j, (multipliers i j))) (seq O l.local_constraints))

(** val visits :
    precision -> local_game -> local_policy -> nat -> nat -> interval tree ->
    ((nat * nat) * interval) list **)

let visits n l p i h t =
  flat_map (fun s ->
    let here = get t s in
    if is_zero here.high
    then []
    else flat_map (fun a ->
           let q0 = p i h s a in
           if is_zero q0 then [] else ((s, a), (scale n q0 here)) :: [])
           (seq O (agent l i).own_actions)) (seq O (agent l i).own_states)

(** val blank : nat -> interval tree **)

let blank size =
  tabulate nothing size (fun _ -> nothing)

(** val advance :
    precision -> local_game -> nat -> nat -> ((nat * nat) * interval) list ->
    interval tree **)

let advance n l i h vs =
  let x = agent l i in
  scatter
    (flat_map (fun v ->
      map (fun entry -> ((fst entry), (scale n (snd entry) (snd v))))
        (x.own_next h (fst (fst v)) (snd (fst v)))) vs) (blank x.own_states)

(** val usage :
    local_game -> interval tree -> nat -> nat -> ((nat * nat) * interval)
    list -> interval tree **)

let usage l unused i h vs =
  scatter
    (flat_map (fun v ->
      map (fun e -> (e, (snd v)))
        ((agent l i).uses h (fst (fst v)) (snd (fst v)))) vs) unused

(** val users_of :
    local_game -> interval tree list -> nat -> (nat * interval) list **)

let users_of l rates e =
  filter (fun u -> negb (is_zero (snd u).high))
    (map (fun i -> (i, (get (nth i rates (Leaf nothing)) e)))
      (seq O (count l)))

(** val resource_at :
    precision -> local_game -> nat -> nat -> (nat * interval) list -> resource **)

let resource_at n l h e users =
  { delays = (share_at n users (fun m -> l.delay h e (S m))); additions =
    (map (fun j ->
      share_at n users (fun m ->
        sub0 (l.load_cost j h e (S m)) (l.load_cost j h e m)))
      (seq O l.local_constraints)) }

(** val price : precision -> nat -> (nat * q) list -> resource -> interval **)

let price n i duals r =
  minus_i nothing
    (plus_i (share_of r.delays i)
      (total_i duals (fun dual ->
        scale n (snd dual) (share_of (nth (fst dual) r.additions no_share) i))))

(** val private0 :
    local_game -> nat -> (nat * q) list -> nat -> nat -> nat -> q **)

let private0 l i duals h s a =
  sub0 ((agent l i).private_reward h s a)
    (total_of duals (fun dual ->
      mul0 (snd dual) ((agent l i).private_cost (fst dual) h s a)))

(** val worth :
    precision -> local_game -> (nat -> nat -> q) -> nat -> nat -> resource
    tree -> ((nat * nat) * interval) list -> interval **)

let worth n l multipliers i h rs vs =
  let duals = active l multipliers i in
  total_i vs (fun v ->
    weigh n (snd v)
      (plus_i (rounded n (private0 l i duals h (fst (fst v)) (snd (fst v))))
        (total_i ((agent l i).uses h (fst (fst v)) (snd (fst v))) (fun e ->
          price n i duals (get rs e)))))

(** val charge_at :
    precision -> local_game -> nat -> nat -> (nat * interval) list tree ->
    ((nat * nat) * interval) list list -> interval **)

let charge_at n l j h users vss =
  plus_i
    (total_i (seq O (count l)) (fun i ->
      total_i (nth i vss []) (fun v ->
        weigh n (snd v)
          (rounded n
            ((agent l i).private_cost j h (fst (fst v)) (snd (fst v)))))))
    (total_i (seq O l.num_resources) (fun e ->
      (share_at n (get users e) (l.load_cost j h e)).of_all))

(** val step_at :
    precision -> local_game -> (nat -> nat -> q) -> interval tree -> nat ->
    ((nat * nat) * interval) list list -> step **)

let step_at n l multipliers unused h vss =
  let rates =
    map (fun i -> usage l unused i h (nth i vss [])) (seq O (count l))
  in
  let users = tabulate [] l.num_resources (users_of l rates) in
  let rs =
    tabulate no_resource l.num_resources (fun e ->
      resource_at n l h e (get users e))
  in
  { resources = rs; charges =
  (map (fun j -> charge_at n l j h users vss) (seq O l.local_constraints));
  worths =
  (map (fun i -> worth n l multipliers i h rs (nth i vss []))
    (seq O (count l))) }

(** val forward :
    precision -> local_game -> local_policy -> (nat -> nat -> q) -> interval
    tree -> nat -> nat -> interval tree list -> step list **)

let rec forward n l p multipliers unused remaining h ts =
  match remaining with
  | O -> []
  | S k ->
    let vss =
      map (fun i -> visits n l p i h (nth i ts (Leaf nothing)))
        (seq O (count l))
    in
    let now = step_at n l multipliers unused h vss in
    now :: (forward n l p multipliers unused k (S h)
             (map (fun i -> advance n l i h (nth i vss [])) (seq O (count l))))

(** val all_steps :
    precision -> local_game -> local_policy -> (nat -> nat -> q) -> step list **)

let all_steps n l p multipliers =
  forward n l p multipliers (blank l.num_resources) l.local_steps O
    (map (fun i ->
      tabulate nothing (agent l i).own_states (fun s ->
        rounded n ((agent l i).own_start s))) (seq O (count l)))

(** val no_step : step **)

let no_step =
  { resources = (Leaf no_resource); charges = []; worths = [] }

(** val best_layer :
    precision -> local_game -> (nat -> nat -> q) -> step list -> nat -> q
    tree -> nat -> q tree **)

let best_layer n l multipliers steps i next0 h =
  let x = agent l i in
  let duals = active l multipliers i in
  let rs = (nth h steps no_step).resources in
  let prices =
    tabulate { qnum = Z0; qden = XH } l.num_resources (fun e ->
      (price n i duals (get rs e)).high)
  in
  tabulate { qnum = Z0; qden = XH } x.own_states (fun s ->
    largest (seq O x.own_actions) (fun a ->
      outcome n (own l x)
        (add0 (up n (private0 l i duals h s a))
          (total_of (x.uses h s a) (get prices))) next0 h s a))

(** val local_gain :
    precision -> local_game -> (nat -> nat -> q) -> step list -> q list ->
    nat -> q **)

let local_gain n l multipliers steps costs i =
  add0
    (sub0 (bound n (own l (agent l i)) (best_layer n l multipliers steps i))
      (total_i steps (fun st -> nth i st.worths nothing)).low)
    (total_of (seq O l.local_constraints) (fun j ->
      mul0 (multipliers i j)
        (sub0 (l.local_threshold j) (nth j costs { qnum = Z0; qden = XH }))))

(** val is_usage : local_game -> nat list -> bool **)

let rec is_usage l = function
| [] -> true
| e :: rest ->
  (&&) ((&&) (Nat.ltb e l.num_resources) (negb (existsb (Nat.eqb e) rest)))
    (is_usage l rest)

(** val check_agent : local_game -> local_policy -> nat -> verdict **)

let check_agent l p i =
  let x = agent l i in
  (match check_process (own l x) (Some i) (fun a -> a :: []) with
   | Accepted ->
     below_each l.local_steps (fun h ->
       below_each x.own_states (fun s ->
         match require (is_distribution (seq O x.own_actions) (p i h s))
                 (PolicyRow (i, h, s)) with
         | Accepted ->
           below_each x.own_actions (fun a ->
             require (is_usage l (x.uses h s a)) (Usage (i, h, s, a)))
         | Refused reason -> Refused reason))
   | Refused reason -> Refused reason)

(** val check_local :
    precision -> local_game -> local_policy -> (nat -> nat -> q) -> q ->
    verdict **)

let check_local n l p multipliers eps =
  match below_each (count l) (check_agent l p) with
  | Accepted ->
    (match below_each (count l) (fun i ->
             below_each l.local_constraints (fun j ->
               require
                 ((&&) (qle_bool { qnum = Z0; qden = XH } (multipliers i j))
                   ((||) (l.local_binds i j) (is_zero (multipliers i j))))
                 (Multiplier ((Some i), j)))) with
     | Accepted ->
       let steps = all_steps n l p multipliers in
       let costs =
         map (fun j -> total_i steps (fun st -> nth j st.charges nothing))
           (seq O l.local_constraints)
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

(** val add_one : nat -> nat list -> nat list **)

let rec add_one x = function
| [] -> []
| m :: rest ->
  (match x with
   | O -> (S m) :: rest
   | S y -> m :: (add_one y rest))

(** val count_vectors : nat -> nat -> nat list list **)

let rec count_vectors total = function
| O -> (match total with
        | O -> [] :: []
        | S _ -> [])
| S k ->
  flat_map (fun m -> map (fun x -> m :: x) (count_vectors (sub total m) k))
    (seq O (S total))

(** val equal_vectors : nat list -> nat list -> bool **)

let rec equal_vectors v w =
  match v with
  | [] -> (match w with
           | [] -> true
           | _ :: _ -> false)
  | m :: v' ->
    (match w with
     | [] -> false
     | k :: w' -> (&&) (Nat.eqb m k) (equal_vectors v' w'))

(** val position : nat list -> nat list list -> nat **)

let rec position v = function
| [] -> O
| w :: rest -> if equal_vectors v w then O else S (position v rest)

type classes =
| Largest of nat list
| Every of nat list list

(** val class0 : classes -> nat list -> nat **)

let class0 c v =
  match c with
  | Largest boundaries ->
    length (filter (fun b -> Nat.ltb b (fold_right Nat.max O v)) boundaries)
  | Every vectors -> position v vectors

(** val num_classes : classes -> nat **)

let num_classes = function
| Largest boundaries -> S (length boundaries)
| Every vectors -> S (length vectors)

(** val every : nat -> nat -> classes **)

let every agents0 size =
  Every (removelast (count_vectors agents0 size))

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

(** val reward_of_counts :
    counting_game -> nat -> nat -> nat -> nat -> nat list -> q **)

let reward_of_counts c i h s x v =
  qplus (qplus (c.count_reward h s x (nth x v O)) (c.own_reward i h s x))
    (c.class_reward h s x (class0 c.grouping v))

(** val insert :
    nat list -> q -> (nat list * q) list -> (nat list * q) list **)

let rec insert v q0 = function
| [] -> (v, q0) :: []
| p :: rest ->
  let (w, r) = p in
  if equal_vectors v w
  then (w, (add0 q0 r)) :: rest
  else (w, r) :: (insert v q0 rest)

(** val add_agent :
    (nat * q) list -> (nat list * q) list -> (nat list * q) list **)

let add_agent row l =
  match row with
  | [] ->
    fold_right (fun entry merged -> insert (fst entry) (snd entry) merged) []
      (flat_map (fun choice ->
        map (fun entry -> ((add_one (fst choice) (fst entry)),
          (mul0 (snd choice) (snd entry)))) l) row)
  | p :: l0 ->
    let (x, q0) = p in
    (match l0 with
     | [] ->
       map (fun entry -> ((add_one x (fst entry)), (mul0 q0 (snd entry)))) l
     | _ :: _ ->
       fold_right (fun entry merged -> insert (fst entry) (snd entry) merged)
         []
         (flat_map (fun choice ->
           map (fun entry -> ((add_one (fst choice) (fst entry)),
             (mul0 (snd choice) (snd entry)))) l) row))

(** val by_class : counting_game -> nat process **)

let by_class c =
  { states = c.shared_states; horizon = c.shared_steps; actions =
    (seq O (num_classes c.grouping)); initial = c.shared_start; transition =
    c.class_next }

(** val row_of :
    counting_game -> policy -> nat -> nat -> nat -> (nat * q) list **)

let row_of c p k h s =
  filter (fun entry -> negb (is_zero (snd entry)))
    (map (fun x -> (x, (p k h s x))) (seq O c.choices))

(** val others_from :
    counting_game -> policy -> nat -> nat -> nat -> nat -> nat -> (nat
    list * q) list **)

let rec others_from c p i h s k = function
| O -> ((repeat O c.choices), { qnum = (Zpos XH); qden = XH }) :: []
| S m' ->
  if Nat.eqb k i
  then others_from c p i h s (S k) m'
  else add_agent (row_of c p k h s) (others_from c p i h s (S k) m')

(** val by_action :
    precision -> counting_game -> (nat -> nat -> nat -> nat list -> q) ->
    (nat list * q) list -> q tree -> nat -> nat -> nat -> q **)

let by_action n c f law next0 h s x =
  total_of law (fun entry ->
    let v = add_one x (fst entry) in
    mul_up n (snd entry)
      (outcome n (by_class c) (f h s x v) next0 h s (class0 c.grouping v)))

(** val followed_by :
    precision -> counting_game -> policy -> nat -> (nat -> nat -> nat -> nat
    list -> q) -> q tree -> nat -> nat -> q **)

let followed_by n c p i f next0 h s =
  let law = others_from c p i h s O c.crowd in
  total_of (row_of c p i h s) (fun choice ->
    mul_up n (snd choice) (by_action n c f law next0 h s (fst choice)))

(** val deviated_by :
    precision -> counting_game -> policy -> nat -> (nat -> nat -> nat -> nat
    list -> q) -> q tree -> nat -> nat -> q **)

let deviated_by n c p i f next0 h s =
  let law = others_from c p i h s O c.crowd in
  largest (seq O c.choices) (fun x -> by_action n c f law next0 h s x)

(** val crowd_above :
    precision -> counting_game -> policy -> nat -> (nat -> nat -> nat -> nat
    list -> q) -> q **)

let crowd_above n c p i f =
  bound n (by_class c) (by_state (by_class c) (followed_by n c p i f))

(** val crowd_below :
    precision -> counting_game -> policy -> nat -> (nat -> nat -> nat -> nat
    list -> q) -> q **)

let crowd_below n c p i f =
  qopp
    (bound n (by_class c)
      (by_state (by_class c)
        (followed_by n c p i (fun h s x v -> qopp (f h s x v)))))

(** val cost_of_counts :
    counting_game -> nat -> nat -> nat -> nat -> nat list -> q **)

let cost_of_counts c j h s _ v =
  c.class_cost j h s (class0 c.grouping v)

(** val lagrangian_of_counts :
    counting_game -> (nat -> nat -> q) -> nat -> nat -> nat -> nat -> nat
    list -> q **)

let lagrangian_of_counts c multipliers i h s x v =
  sub0 (reward_of_counts c i h s x v)
    (total_of (seq O c.shared_constraints) (fun j ->
      mul0 (multipliers i j) (cost_of_counts c j h s x v)))

(** val crowd_gain :
    precision -> counting_game -> policy -> (nat -> nat -> q) -> q list ->
    nat -> q **)

let crowd_gain n c p multipliers costs i =
  add0
    (sub0
      (bound n (by_class c)
        (by_state (by_class c)
          (deviated_by n c p i (lagrangian_of_counts c multipliers i))))
      (crowd_below n c p i (lagrangian_of_counts c multipliers i)))
    (total_of (seq O c.shared_constraints) (fun j ->
      mul0 (multipliers i j)
        (sub0 (c.shared_threshold j) (nth j costs { qnum = Z0; qden = XH }))))

(** val check_counting :
    precision -> counting_game -> policy -> (nat -> nat -> q) -> q -> verdict **)

let check_counting n c p multipliers eps =
  match require (Nat.ltb O c.crowd) NoAgents with
  | Accepted ->
    (match check_process (by_class c) None (fun c0 -> c0 :: []) with
     | Accepted ->
       (match below_each c.crowd (fun i ->
                below_each c.shared_steps (fun h ->
                  below_each c.shared_states (fun s ->
                    require (is_distribution (seq O c.choices) (p i h s))
                      (PolicyRow (i, h, s))))) with
        | Accepted ->
          (match below_each c.crowd (fun i ->
                   below_each c.shared_constraints (fun j ->
                     require
                       ((&&)
                         (qle_bool { qnum = Z0; qden = XH } (multipliers i j))
                         ((||) (c.shared_binds i j)
                           (is_zero (multipliers i j)))) (Multiplier ((Some
                       i), j)))) with
           | Accepted ->
             (match below_each c.shared_constraints (fun j ->
                      let c0 = crowd_above n c p O (cost_of_counts c j) in
                      require (qle_bool c0 (c.shared_threshold j)) (Threshold
                        (j, c0))) with
              | Accepted ->
                let costs =
                  map (fun j -> crowd_below n c p O (cost_of_counts c j))
                    (seq O c.shared_constraints)
                in
                below_each c.crowd (fun i ->
                  let x = crowd_gain n c p multipliers costs i in
                  require (qle_bool x eps) (Gain (i, x)))
              | Refused reason -> Refused reason)
           | Refused reason -> Refused reason)
        | Refused reason -> Refused reason)
     | Refused reason -> Refused reason)
  | Refused reason -> Refused reason

(** val lasting : game -> nat -> game **)

let lasting g steps =
  { num_actions = g.num_actions; num_states = g.num_states; num_steps =
    steps; num_constraints = g.num_constraints; start = g.start; next =
    (fun _ -> g.next O); reward = (fun i _ -> g.reward i O); cost =
    (fun j _ -> g.cost j O); threshold = g.threshold; binds = g.binds }

(** val stationary : policy -> policy **)

let stationary p i _ =
  p i O

(** val shrunk : q -> game -> nat -> game **)

let shrunk gamma g steps =
  { num_actions = g.num_actions; num_states = g.num_states; num_steps =
    steps; num_constraints = g.num_constraints; start = g.start; next =
    (fun _ s a ->
    map (fun entry -> ((fst entry), (mul0 gamma (snd entry)))) (g.next O s a));
    reward = (fun i _ -> g.reward i O); cost = (fun j _ -> g.cost j O);
    threshold = g.threshold; binds = g.binds }

(** val look_ahead : q -> (q tree -> q tree) -> nat -> q tree **)

let rec look_ahead tail layer = function
| O -> Leaf tail
| S k -> let next0 = look_ahead tail layer k in layer next0

(** val tail_of :
    q -> game -> nat list process -> (nat -> nat list -> q) -> q **)

let tail_of gamma g m f =
  larger { qnum = Z0; qden = XH }
    (qdiv
      (largest (seq O g.num_states) (fun s ->
        largest m.actions (fun a -> f s a)))
      (qminus { qnum = (Zpos XH); qden = XH } gamma))

(** val ahead_bound :
    precision -> q -> game -> nat -> nat list process -> (nat -> nat list ->
    q) -> (q tree -> nat -> nat -> q) -> q **)

let ahead_bound n gamma g steps m f step0 =
  let table =
    look_ahead (tail_of gamma g m f) (fun next0 ->
      tabulate { qnum = Z0; qden = XH } g.num_states (fun s ->
        step0 next0 O s)) steps
  in
  total_of (seq O g.num_states) (fun s -> mul_up n (g.start s) (get table s))

(** val at_every_step :
    (nat -> nat list -> q) -> nat -> nat -> nat list -> q **)

let at_every_step f _ =
  f

(** val discounted_above :
    precision -> q -> game -> nat -> policy -> nat list process -> (nat ->
    nat list -> q) -> q **)

let discounted_above n gamma g steps p m f =
  ahead_bound n gamma g steps m f
    (followed n (shrunk gamma g (S O)) m (stationary p) (at_every_step f))

(** val discounted_below :
    precision -> q -> game -> nat -> policy -> nat list process -> (nat ->
    nat list -> q) -> q **)

let discounted_below n gamma g steps p m f =
  qopp (discounted_above n gamma g steps p m (fun s a -> qopp (f s a)))

(** val discounted_best :
    precision -> q -> game -> nat -> policy -> nat list process -> nat ->
    (nat -> nat list -> q) -> q **)

let discounted_best n gamma g steps p m i f =
  ahead_bound n gamma g steps m f
    (deviated n (shrunk gamma g (S O)) m (stationary p) i (at_every_step f))

(** val discounted_gain :
    precision -> q -> game -> nat -> policy -> (nat -> nat -> q) -> nat list
    process -> q list -> nat -> q **)

let discounted_gain n gamma g steps p multipliers m costs i =
  let f = lagrangian g multipliers i O in
  add0
    (sub0 (discounted_best n gamma g steps p m i f)
      (discounted_below n gamma g steps p m f))
    (total_of (seq O g.num_constraints) (fun j ->
      mul0 (multipliers i j)
        (sub0 (g.threshold j) (nth j costs { qnum = Z0; qden = XH }))))

(** val check_discounted_with :
    precision -> q -> game -> nat -> policy -> (nat -> nat -> q) -> nat list
    process -> q -> verdict **)

let check_discounted_with n gamma g steps p multipliers m eps =
  match require
          ((&&) (qle_bool { qnum = Z0; qden = XH } gamma)
            (negb (qle_bool { qnum = (Zpos XH); qden = XH } gamma))) Discount with
  | Accepted ->
    (match check_process (dynamics (lasting g (S O))) None (fun a -> a) with
     | Accepted ->
       (match below_each (num_agents g) (fun i ->
                below_each g.num_states (fun s ->
                  require
                    (is_distribution (seq O (nth i g.num_actions O))
                      (p i O s)) (PolicyRow (i, O, s)))) with
        | Accepted ->
          (match below_each (num_agents g) (fun i ->
                   below_each g.num_constraints (fun j ->
                     require
                       ((&&)
                         (qle_bool { qnum = Z0; qden = XH } (multipliers i j))
                         ((||) (g.binds i j) (is_zero (multipliers i j))))
                       (Multiplier ((Some i), j)))) with
           | Accepted ->
             (match below_each g.num_constraints (fun j ->
                      let c =
                        discounted_above n gamma g steps p m (g.cost j O)
                      in
                      require (qle_bool c (g.threshold j)) (Threshold (j, c))) with
              | Accepted ->
                let costs =
                  map (fun j ->
                    discounted_below n gamma g steps p m (g.cost j O))
                    (seq O g.num_constraints)
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
    precision -> q -> game -> nat -> policy -> (nat -> nat -> q) -> q ->
    verdict **)

let check_discounted n gamma g steps p multipliers eps =
  check_discounted_with n gamma g steps p multipliers
    (dynamics (shrunk gamma g (S O))) eps
