(* Between the parser and the plain build: decimal digits to Coq's binary numbers and back, by Coq's own functions. *)
open Checker

type nat = Checker.nat
type positive = Checker.positive

let name = "Coq's own integers"
let rec nat n = if n = 0 then O else S (nat (n - 1))
let int n = let rec count k = function O -> k | S m -> count (k + 1) m in count 0 n
let small = Array.init 11 (fun n -> let rec up k = if k = 0 then Z0 else Z.add (up (k - 1)) (Zpos XH) in up n)
let ten = small.(10)

let integer digits =
  String.fold_left (fun z c -> Z.add (Z.mul ten z) small.(Char.code c - Char.code '0')) Z0 digits

let rec power_of_two bits = if bits = 0 then XH else XO (power_of_two (bits - 1))
let positive digits = match integer digits with Zpos p -> p | _ -> invalid_arg "positive"

let rational ~negative top bottom =
  let top = integer top in
  lowest { qnum = (if negative then Z.opp top else top); qden = positive bottom }

let decimal z =
  let digit d = let rec find k = if Z.eqb small.(k) d then k else find (k + 1) in Char.chr (Char.code '0' + find 0) in
  let rec go z text = if Z.eqb z Z0 then text else let q, r = Z.div_eucl z ten in go q (String.make 1 (digit r) ^ text) in
  match go z "" with "" -> "0" | text -> text

let digits q =
  let negative = match q.qnum with Zneg _ -> true | _ -> false in
  (negative, decimal (if negative then Z.opp q.qnum else q.qnum), decimal (Zpos q.qden))
