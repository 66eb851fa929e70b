(* cmpg-verify FILE: says what was proved, or which check failed first.  Exit code 0, 1; 2 if the file cannot be read. *)
open Checker

(* "3/4", or where that is long "about 0.75". *)
let text q =
  let negative, top, bottom = Number.digits (lowest q) in
  let sign = if negative then "-" else "" in
  if bottom = "1" && String.length top <= 20 then sign ^ top
  else if String.length top + String.length bottom <= 24 then sign ^ top ^ "/" ^ bottom
  else
    let leading digits = float_of_string (String.sub digits 0 (min 17 (String.length digits))) in
    let exponent digits = max 0 (String.length digits - 17) in
    Printf.sprintf "about %s%.6g" sign
      (leading top /. leading bottom *. (10.0 ** float_of_int (exponent top - exponent bottom)))

let of_agent = function None -> "" | Some i -> Printf.sprintf " of agent %d" (Number.int i)

let reason failure =
  let int = Number.int and sprintf = Printf.sprintf in
  match failure with
  | NoAgents -> "there are no agents"
  | Discount -> "the discount is not at least 0 and below 1"
  | InitialRow agent -> sprintf "the initial probabilities%s are not a distribution" (of_agent agent)
  | TransitionRow (agent, h, s, a) ->
      sprintf "the transition%s at step %d in state %d, action %s is not a distribution over states" (of_agent agent)
        (int h) (int s) (String.concat " " (List.map (fun x -> string_of_int (int x)) a))
  | Usage (i, h, s, a) ->
      sprintf "what agent %d uses at step %d in state %d, action %d names a resource twice or one that does not exist" (int i)
        (int h) (int s) (int a)
  | PolicyRow (i, h, s) ->
      sprintf "the policy of agent %d at step %d in state %d is not a distribution" (int i) (int h) (int s)
  | Multiplier (agent, j) ->
      sprintf "the multiplier%s of constraint %d is negative, or not zero where the constraint does not bind"
        (of_agent agent) (int j)
  | Threshold (j, q) -> sprintf "the policy does not meet constraint %d: its cost is %s" (int j) (text q)
  | Gain (i, q) ->
      sprintf "with these multipliers agent %d may gain %s, more than epsilon" (int i) (text q)
  | Margin q -> sprintf "with these multipliers the thresholds may be met: the margin is %s, not above zero" (text q)

let nash ~past epsilon =
  Printf.sprintf
    "every threshold is met, and no agent gains more than %s by any deviation, randomised and a function of %s, after which \
     the constraints that bind it hold" (text epsilon) past

let check { Proof_file.claim; precision; _ } =
  match claim with
  | Nash { game; policy; multipliers; epsilon } ->
      (check_nash precision game policy multipliers epsilon, nash ~past:"the whole past" epsilon)
  | Discounted_nash { game; discount; ahead; policy; multipliers; epsilon } ->
      ( check_discounted precision discount game ahead policy multipliers epsilon,
        "in the limit " ^ nash ~past:"the whole past" epsilon )
  | Counting_nash { game; policy; multipliers; epsilon } ->
      (check_counting precision game policy multipliers epsilon, nash ~past:"the whole past" epsilon)
  | Local_nash { game; policy; multipliers; epsilon } ->
      (check_local precision game policy multipliers epsilon, nash ~past:"its own whole past" epsilon)
  | Infeasible { game; multipliers } ->
      ( check_infeasible precision game multipliers,
        "no joint policy meets all thresholds, not even one of agents who choose together and remember the past" )

let () =
  let read path =
    let channel = if path = "-" then stdin else open_in_bin path in
    Fun.protect ~finally:(fun () -> close_in channel) (fun () -> Proof_file.read channel) in
  let stop text = prerr_endline ("cmpg-verify: " ^ text); exit 2 in
  match Sys.argv with
  | [| _; path |] -> (
      match let proof = read path in (proof, check proof) with
      | proof, (Accepted, statement) ->
          Printf.printf "VERIFIED: %s.\n%s; %s, %s.\n" statement proof.description
            (if proof.precision = None then "exact arithmetic" else "rounded against the claim") Number.name
      | proof, (Refused failure, _) -> Printf.printf "NOT VERIFIED: %s.\n%s.\n" (reason failure) proof.description; exit 1
      | exception Proof_file.Error text -> stop (path ^ ": " ^ text)
      | exception Sys_error text -> stop text
      | exception Out_of_memory -> stop (path ^ ": out of memory")
      | exception Stack_overflow -> stop (path ^ ": the stack is too small; try again after `ulimit -s unlimited`"))
  | _ -> stop "usage: cmpg-verify FILE"
