(** The checkers in OCaml, with fast numbers: [nat] becomes [int], [positive] and [Z] become Zarith's integers.

    Where the fast build is used, what stands here is trusted, and so are ocaml/integer.ml and Zarith.  [nat] only holds
    numbers of steps, states, actions and the like, which the parser limits to nine digits; no function multiplies
    them. *)
From Coq Require Import QArith ZArith Arith Extraction ExtrOcamlBasic.
From Cmpg Require Import Checker LocalChecker CountingSemantics CountingChecker DiscountedChecker.

Extract Inductive nat => "int" [ "0" "Integer.next" ] "Integer.by_cases_nat".
Extract Inlined Constant Init.Nat.add => "(+)".
Extract Inlined Constant Init.Nat.sub => "Integer.monus".
Extract Inlined Constant Nat.div2 => "Integer.half".
Extract Inlined Constant Nat.eqb => "Integer.equal_nat".
Extract Inlined Constant Nat.leb => "Integer.leq_nat".
Extract Inlined Constant Nat.ltb => "Integer.less_nat".

Extract Inductive positive => "Integer.t" [ "Integer.odd" "Integer.even" "Integer.one" ] "Integer.by_cases_positive".
Extract Inductive Z => "Integer.t" [ "Integer.zero" "" "Integer.neg" ] "Integer.by_cases".
Extract Inlined Constant Pos.mul => "Integer.mul".
Extract Inlined Constant Pos.eqb => "Integer.equal".
Extract Inlined Constant Z.add => "Integer.add".
Extract Inlined Constant Z.mul => "Integer.mul".
Extract Inlined Constant Z.opp => "Integer.neg".
Extract Inlined Constant Z.gcd => "Integer.gcd".
Extract Inlined Constant Z.div => "Integer.div".
Extract Inlined Constant Z.eqb => "Integer.equal".
Extract Inlined Constant Z.leb => "Integer.leq".
Extract Inlined Constant Zeq_bool => "Integer.equal".

Extraction "extracted/fast/checker.ml" check_nash check_infeasible check_local check_counting every check_discounted.
