(** The checkers in OCaml, with Coq's own numbers: booleans, options, pairs and lists are those of OCaml, all else is as
    it was proved. *)
From Coq Require Import QArith Extraction ExtrOcamlBasic.
From Cmpg Require Import Checker LocalChecker CountingSemantics CountingChecker DiscountedChecker.
Extraction "extracted/plain/checker.ml" check_nash check_infeasible check_local check_counting every check_discounted.
