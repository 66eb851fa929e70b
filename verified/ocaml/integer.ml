(* Numbers of the fast build: what ExtractFast.v puts in place of Coq's [nat], [positive] and [Z].  Trusted. *)

(* nat *)
let next n = n + 1
let monus n m = if n < m then 0 else n - m
let half n = n / 2
let equal_nat (n : int) m = n = m
let leq_nat (n : int) m = n <= m
let less_nat (n : int) m = n < m
let by_cases_nat zero succ n = if n = 0 then zero () else succ (n - 1)

(* positive and Z *)
type t = Z.t

let zero = Z.zero
let one = Z.one
let even p = Z.shift_left p 1
let odd p = Z.succ (Z.shift_left p 1)
let neg = Z.neg
let add = Z.add
let mul = Z.mul
let gcd = Z.gcd
let equal = Z.equal
let leq = Z.leq

(* Towards minus infinity, as in Coq; by zero it is zero. *)
let div a b = if Z.equal b Z.zero then Z.zero else Z.fdiv a b

let by_cases_positive odd even one p =
  if Z.equal p Z.one then one () else if Z.is_odd p then odd (Z.shift_right p 1) else even (Z.shift_right p 1)

let by_cases zero positive negative z =
  let s = Z.sign z in
  if s = 0 then zero () else if s > 0 then positive z else negative (Z.neg z)
