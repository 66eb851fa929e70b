(* Between the parser and the fast build. *)
let name = "fast integers"

type nat = int
type positive = Z.t

let nat (n : int) = n
let int (n : int) = n
let power_of_two bits = Z.shift_left Z.one bits

let rational ~negative top bottom =
  let top = Z.of_string top in
  Checker.lowest { Checker.qnum = (if negative then Z.neg top else top); qden = Z.of_string bottom }

let digits (q : Checker.q) = (Z.sign q.qnum < 0, Z.to_string (Z.abs q.qnum), Z.to_string q.qden)
