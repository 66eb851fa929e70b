(* Reads a proof file (docs/proof-format.md) into the functions that the checkers take.  Trusted, and so it does nothing
   but read: no arithmetic besides reducing fractions, every entry once, everything out of range or unknown refused. *)
open Checker

exception Error of string

type claim =
  | Nash of { game : game; policy : policy; multipliers : Number.nat -> Number.nat -> q; epsilon : q }
  | Discounted_nash of {
      game : game; discount : q; ahead : Number.nat; policy : policy; multipliers : Number.nat -> Number.nat -> q; epsilon : q }
  | Infeasible of { game : game; multipliers : Number.nat -> q }
  | Counting_nash of { game : counting_game; policy : policy; multipliers : Number.nat -> Number.nat -> q; epsilon : q }
  | Local_nash of { game : local_game; policy : local_policy; multipliers : Number.nat -> Number.nat -> q; epsilon : q }

type t = { description : string; precision : Number.positive option; claim : claim }

(* "1 agent", "2 agents" *)
let number_of n noun = Printf.sprintf "%d %s%s" n noun (if n = 1 then "" else "s")
let listed = String.concat ", "

let fail fmt = Printf.ksprintf (fun text -> raise (Error text)) fmt

(* Lines and words. *)

type source = { channel : in_channel; mutable line : int }

let fail_at source fmt = Printf.ksprintf (fun text -> raise (Error (Printf.sprintf "line %d: %s" source.line text))) fmt

(* The words of the next line that has any; none at the end of the file. *)
let rec next_line source =
  source.line <- source.line + 1;
  match input_line source.channel with
  | exception End_of_file -> []
  | text when text <> "" && text.[0] = '#' -> next_line source
  | text -> (
      match List.filter (( <> ) "") (String.split_on_char ' ' text) with [] -> next_line source | words -> words)

let next_words source =
  match next_line source with [] -> fail_at source "the file ends without the line `end`" | words -> words

let is_digits text = text <> "" && String.for_all (fun c -> '0' <= c && c <= '9') text

let whole source text =
  if is_digits text && String.length text <= 9 then int_of_string text
  else fail_at source "%s is not a whole number of at most nine digits" text

let below source what size text =
  let n = whole source text in
  if n < size then n else fail_at source "%s %d is out of range: there are %d" what n size

let known_rationals : (string, q) Hashtbl.t = Hashtbl.create 1000

let parse_rational source text =
  let refuse () = fail_at source "%s is not a rational p or p/q" text in
  let negative = text <> "" && text.[0] = '-' in
  let body = if negative then String.sub text 1 (String.length text - 1) else text in
  let top, bottom =
    match String.index_opt body '/' with
    | None -> (body, "1")
    | Some k -> (String.sub body 0 k, String.sub body (k + 1) (String.length body - k - 1)) in
  if not (is_digits top && is_digits bottom && String.exists (( <> ) '0') bottom) then refuse ();
  Number.rational ~negative top bottom

let rational source text =
  match Hashtbl.find_opt known_rationals text with
  | Some q -> q
  | None ->
      let q = parse_rational source text in
      if Hashtbl.length known_rationals < 1_000_000 then Hashtbl.add known_rationals text q;
      q

(* Tables that take every entry once.  The values of one entry at every step, or at single steps. *)

type 'a table = { width : int; always : 'a option array; steps : 'a option array array }

let max_entries = 1_000_000_000

let size factors =
  List.fold_left (fun n k -> if k > 0 && n > max_entries / k then fail "the tables of this file are too large" else n * k)
    1 factors

let table ~steps ~width = { width; always = Array.make width None; steps = Array.make steps [||] }

let twice source = fail_at source "this entry was given before"

let put_once source cells k value =
  match cells.(k) with None -> cells.(k) <- Some value | Some _ -> twice source

(* [step] is [None] for `*`. *)
let put source table step k value =
  match step with
  | None ->
      if Array.exists (fun layer -> layer <> [||] && layer.(k) <> None) table.steps then twice source;
      put_once source table.always k value
  | Some h ->
      if table.always.(k) <> None then twice source;
      if table.steps.(h) = [||] then table.steps.(h) <- Array.make table.width None;
      put_once source table.steps.(h) k value

let find table h k =
  match table.always.(k) with
  | Some _ as value -> value
  | None -> let layer = table.steps.(h) in if layer = [||] then None else layer.(k)

let find_or default table h k = match find table h k with Some value -> value | None -> default

(* Calls [missing step k] for the first entry that is not there. *)
let check_complete table missing =
  for k = 0 to table.width - 1 do
    if table.always.(k) = None then
      Array.iteri (fun h layer -> if layer = [||] || layer.(k) = None then missing h k) table.steps
  done

let zero = Number.rational ~negative:false "0" "1"
let one = Number.rational ~negative:false "1" "1"
let get_once name cells k = match cells.(k) with Some value -> value | None -> fail "%s %d is not given" name k

(* What all forms have in common. *)

type row = Pure of int | Mixed of q array

type facts = {
  threshold : q option array;
  binds : bool array option array;  (* constraint: agents *)
  policy : row table array;  (* agent: state *)
  multiplier : q option array array;  (* agent, or one row in a proof of infeasibility: constraint *)
  epsilon : q option array;
}

let step source horizon text = if text = "*" then None else Some (below source "step" horizon text)

let rec entries source states = function
  | [] -> []
  | t :: q :: rest ->
      let entry = (Number.nat (below source "state" states t), rational source q) in
      entry :: entries source states rest
  | [ _ ] -> fail_at source "a next state without a probability"

let read_common source ~is_nash ~horizon ~constraints ~states ~actions facts words =
  let agents = Array.length states in
  match words with
  | [ "threshold"; j; q ] -> put_once source facts.threshold (below source "constraint" constraints j) (rational source q)
  | "binds" :: j :: bound when is_nash ->
      let mask = Array.make agents false in
      List.iter (fun i ->
        let i = below source "agent" agents i in
        if mask.(i) then twice source else mask.(i) <- true) bound;
      put_once source facts.binds (below source "constraint" constraints j) mask
  | "policy" :: i :: h :: s :: row when is_nash ->
      let i = below source "agent" agents i in
      if List.length row <> actions.(i) then
        fail_at source "%d probabilities for %d actions" (List.length row) actions.(i);
      put source facts.policy.(i) (step source horizon h) (below source "state" states.(i) s)
        (Mixed (Array.of_list (List.map (rational source) row)))
  | "play" :: i :: h :: row when is_nash ->
      let i = below source "agent" agents i in
      if List.length row <> states.(i) then fail_at source "%d actions for %d states" (List.length row) states.(i);
      let h = step source horizon h in
      List.iteri (fun s a ->
        if a <> "-" then put source facts.policy.(i) h s (Pure (below source "action" actions.(i) a))) row
  | [ "multiplier"; i; j; q ] when is_nash ->
      put_once source facts.multiplier.(below source "agent" agents i) (below source "constraint" constraints j)
        (rational source q)
  | [ "multiplier"; j; q ] when not is_nash ->
      put_once source facts.multiplier.(0) (below source "constraint" constraints j) (rational source q)
  | [ "epsilon"; q ] when is_nash -> put_once source facts.epsilon 0 (rational source q)
  | word :: _ -> fail_at source "`%s` is unknown here, or has too many or too few words" word
  | [] -> ()

let new_facts ~horizon ~constraints ~states =
  { threshold = Array.make constraints None;
    binds = Array.make constraints None;
    policy = Array.map (fun width -> table ~steps:horizon ~width) states;
    multiplier = Array.map (fun _ -> Array.make constraints None) states;
    epsilon = [| None |] }

let policy_of facts =
  Array.iteri (fun i table ->
    check_complete table (fun h s -> fail "the policy of agent %d at step %d in state %d is not given" i h s)) facts.policy;
  fun i h s x ->
    match find facts.policy.(Number.int i) (Number.int h) (Number.int s) with
    | Some (Pure a) -> if Number.int x = a then one else zero
    | Some (Mixed row) -> row.(Number.int x)
    | None -> assert false

let threshold_of facts =
  let given = Array.mapi (fun j _ -> get_once "threshold" facts.threshold j) facts.threshold in
  fun j -> given.(Number.int j)

let binds_of facts i j = match facts.binds.(Number.int j) with None -> true | Some mask -> mask.(Number.int i)
let multiplier_of facts i j = Option.value facts.multiplier.(i).(Number.int j) ~default:zero
let epsilon_of facts = match facts.epsilon.(0) with Some q -> q | None -> fail "epsilon is not given"

(* Headers. *)

let header source word =
  match next_words source with
  | first :: rest when first = word -> rest
  | _ -> fail_at source "expected a line that begins with `%s`" word

let numbers source word = List.map (whole source) (header source word)

let number source word =
  match numbers source word with [ n ] -> n | _ -> fail_at source "`%s` needs one number" word

(* `precision`, where it is given, and the first fact. *)
let read_precision source =
  match next_words source with
  | [ "precision"; bits ] ->
      let bits = whole source bits in
      if bits > 100_000 then fail_at source "at most 100000 bits";
      (Some (Number.power_of_two bits), next_words source)
  | "precision" :: _ -> fail_at source "`precision` needs one number"
  | words -> (None, words)

let rec read_facts source read words =
  match words with
  | [ "end" ] -> if next_line source <> [] then fail_at source "there is more after `end`"
  | words -> read words; read_facts source read (next_words source)

(* Joint games. *)

let read_joint source ~is_nash =
  let sizes = numbers source "actions" in
  let states = number source "states" in
  let horizon, discount =
    match next_words source with
    | [ "horizon"; h ] -> (whole source h, None)
    | [ "discount"; q; steps ] when is_nash -> (1, Some (rational source q, Number.nat (whole source steps)))
    | _ -> fail_at source "expected `horizon` with one number, or in a Nash claim `discount` with two" in
  let constraints = number source "constraints" in
  let agents = List.length sizes in
  let joint = size sizes in
  let width = size [ states; joint ] in
  ignore (size [ width; horizon ]);
  let table () = table ~steps:horizon ~width in
  let initial = Array.make states None in
  let transition = table () in
  let rewards = Array.init agents (fun _ -> table ()) in
  let costs = Array.init constraints (fun _ -> table ()) in
  let all_states = Array.make agents states in
  let facts = new_facts ~horizon ~constraints ~states:all_states in
  let facts = if is_nash then facts else { facts with multiplier = [| Array.make constraints None |] } in
  (* The numbers of the joint actions that the words stand for, and the words after them. *)
  let joint_actions words =
    let rec go sizes words codes =
      match sizes, words with
      | [], rest -> (codes, rest)
      | n :: sizes, "*" :: words ->
          go sizes words (List.concat_map (fun c -> List.init n (fun a -> (c * n) + a)) codes)
      | n :: sizes, a :: words -> let a = below source "action" n a in go sizes words (List.map (fun c -> (c * n) + a) codes)
      | _ -> fail_at source "too few actions" in
    go sizes words [ 0 ] in
  let put_all table h s codes value =
    let h = step source horizon h and s = below source "state" states s in
    List.iter (fun c -> put source table h ((s * joint) + c) value) codes in
  let put_number table h s words =
    match joint_actions words with
    | codes, [ q ] -> put_all table h s codes (rational source q)
    | _ -> fail_at source "one number is needed after the actions" in
  let read = function
    | [ "initial"; s; q ] -> put_once source initial (below source "state" states s) (rational source q)
    | "transition" :: h :: s :: words ->
        let codes, row = joint_actions words in put_all transition h s codes (entries source states row)
    | "reward" :: i :: h :: s :: words -> put_number rewards.(below source "agent" agents i) h s words
    | "cost" :: j :: h :: s :: words -> put_number costs.(below source "constraint" constraints j) h s words
    | words ->
        read_common source ~is_nash ~horizon ~constraints ~states:all_states ~actions:(Array.of_list sizes) facts words in
  let precision, words = read_precision source in
  read_facts source read words;
  check_complete transition (fun h k ->
    fail "the transition at step %d in state %d, joint action %d is not given" h (k / joint) (k mod joint));
  let index s a = List.fold_left2 (fun code n x -> (code * n) + Number.int x) (Number.int s) sizes a in
  let game = {
    num_actions = List.map Number.nat sizes; num_states = Number.nat states; num_steps = Number.nat horizon;
    num_constraints = Number.nat constraints;
    start = (fun s -> Option.value initial.(Number.int s) ~default:zero);
    next = (fun h s a -> find_or [] transition (Number.int h) (index s a));
    reward = (fun i h s a -> find_or zero rewards.(Number.int i) (Number.int h) (index s a));
    cost = (fun j h s a -> find_or zero costs.(Number.int j) (Number.int h) (index s a));
    threshold = threshold_of facts; binds = binds_of facts } in
  let claim =
    if not is_nash then Infeasible { game; multipliers = multiplier_of facts 0 }
    else
      let policy = policy_of facts and multipliers i = multiplier_of facts (Number.int i) and epsilon = epsilon_of facts in
      match discount with
      | None -> Nash { game; policy; multipliers; epsilon }
      | Some (discount, ahead) -> Discounted_nash { game; discount; ahead; policy; multipliers; epsilon } in
  let length = if discount = None then Printf.sprintf "horizon %d" horizon else "discounted" in
  { description =
      listed [ "joint game"; number_of agents "agent"; number_of states "state"; length; number_of constraints "constraint" ];
    precision; claim }

(* Local games. *)

let read_local source =
  let dynamics_states = Array.of_list (numbers source "states") in
  let dynamics_actions = Array.of_list (numbers source "actions") in
  let dynamics = Array.length dynamics_states in
  if Array.length dynamics_actions <> dynamics then fail_at source "as many numbers of actions as of states are needed";
  let dynamics_of = Array.of_list (List.map (below source "dynamics" dynamics) (header source "agents")) in
  let agents = Array.length dynamics_of in
  let payoffs_of = Array.of_list (List.map (below source "payoffs" agents) (header source "payoffs")) in
  if Array.length payoffs_of <> agents then fail_at source "%d payoffs for %d agents" (Array.length payoffs_of) agents;
  let horizon = number source "horizon" in
  let resources = number source "resources" in
  let curves = number source "curves" in
  let constraints = number source "constraints" in
  let payoffs = 1 + Array.fold_left max (-1) payoffs_of in
  let payoff_dynamics = Array.make payoffs (-1) in
  Array.iteri (fun i d ->
    let p = payoffs_of.(i) in
    if payoff_dynamics.(p) >= 0 && payoff_dynamics.(p) <> d then
      fail "agents with payoffs %d have dynamics %d and %d" p payoff_dynamics.(p) d;
    payoff_dynamics.(p) <- d) dynamics_of;
  Array.iteri (fun p d -> if d < 0 then fail "no agent has payoffs %d" p) payoff_dynamics;
  let width d = size [ dynamics_states.(d); dynamics_actions.(d) ] in
  Array.iteri (fun d _ -> ignore (size [ width d; horizon ])) dynamics_states;
  let of_dynamics () = Array.init dynamics (fun d -> table ~steps:horizon ~width:(width d)) in
  let of_payoffs () = Array.map (fun d -> table ~steps:horizon ~width:(width d)) payoff_dynamics in
  let transition = of_dynamics () and uses = of_dynamics () in
  let rewards = of_payoffs () and costs = Array.init constraints (fun _ -> of_payoffs ()) in
  let states = Array.map (fun d -> dynamics_states.(d)) dynamics_of in
  let actions = Array.map (fun d -> dynamics_actions.(d)) dynamics_of in
  let initial = Array.map (fun n -> Array.make n None) states in
  let curve = Array.make curves None in
  let of_resources () = table ~steps:horizon ~width:resources in
  ignore (size [ horizon; resources ]);
  let delay = of_resources () and load_cost = Array.init constraints (fun _ -> of_resources ()) in
  let facts = new_facts ~horizon ~constraints ~states in
  let put_all table d h s a value =
    let h = step source horizon h and s = below source "state" dynamics_states.(d) s and n = dynamics_actions.(d) in
    if a = "*" then for a = 0 to n - 1 do put source table h ((s * n) + a) value done
    else put source table h ((s * n) + below source "action" n a) value in
  let put_curve table h e c =
    let h = step source horizon h and c = below source "curve" curves c in
    if e = "*" then for e = 0 to resources - 1 do put source table h e c done
    else put source table h (below source "resource" resources e) c in
  let read = function
    | [ "initial"; i; s; q ] ->
        let i = below source "agent" agents i in
        put_once source initial.(i) (below source "state" states.(i) s) (rational source q)
    | "transition" :: d :: h :: s :: a :: row ->
        let d = below source "dynamics" dynamics d in
        put_all transition.(d) d h s a (entries source dynamics_states.(d) row)
    | "uses" :: d :: h :: s :: a :: used ->
        let d = below source "dynamics" dynamics d in
        put_all uses.(d) d h s a (List.map (fun e -> Number.nat (below source "resource" resources e)) used)
    | [ "reward"; p; h; s; a; q ] ->
        let p = below source "payoffs" payoffs p in put_all rewards.(p) payoff_dynamics.(p) h s a (rational source q)
    | [ "cost"; j; p; h; s; a; q ] ->
        let p = below source "payoffs" payoffs p in
        put_all costs.(below source "constraint" constraints j).(p) payoff_dynamics.(p) h s a (rational source q)
    | "curve" :: c :: values ->
        if List.length values <> agents + 1 then
          fail_at source "%d values for loads 0 to %d" (List.length values) agents;
        put_once source curve (below source "curve" curves c) (Array.of_list (List.map (rational source) values))
    | [ "delay"; h; e; c ] -> put_curve delay h e c
    | [ "load-cost"; j; h; e; c ] -> put_curve load_cost.(below source "constraint" constraints j) h e c
    | words -> read_common source ~is_nash:true ~horizon ~constraints ~states ~actions facts words in
  let precision, words = read_precision source in
  read_facts source read words;
  Array.iteri (fun d table ->
    let n = dynamics_actions.(d) in
    check_complete table (fun h k ->
      fail "the transition of dynamics %d at step %d in state %d, action %d is not given" d h (k / n) (k mod n))) transition;
  let curve = Array.mapi (fun c _ -> get_once "curve" curve c) curve in
  (* Loads beyond the number of agents do not occur. *)
  let at_load table h e load =
    match find table (Number.int h) (Number.int e) with
    | None -> zero
    | Some c -> let load = Number.int load in if load > agents then zero else curve.(c).(load) in
  let int = Number.int in
  let agent i =
    let d = dynamics_of.(i) and p = payoffs_of.(i) in
    let n = actions.(i) in
    let index s a = (int s * n) + int a in
    { own_states = Number.nat states.(i); own_actions = Number.nat n;
      own_start = (fun s -> Option.value initial.(i).(int s) ~default:zero);
      own_next = (fun h s a -> find_or [] transition.(d) (int h) (index s a));
      private_reward = (fun h s a -> find_or zero rewards.(p) (int h) (index s a));
      private_cost = (fun j h s a -> find_or zero costs.(int j).(p) (int h) (index s a));
      uses = (fun h s a -> find_or [] uses.(d) (int h) (index s a)) } in
  let game = {
    agents = List.init agents agent; local_steps = Number.nat horizon; num_resources = Number.nat resources;
    local_constraints = Number.nat constraints; delay = at_load delay;
    load_cost = (fun j -> at_load load_cost.(int j)); local_threshold = threshold_of facts; local_binds = binds_of facts } in
  let claim =
    Local_nash { game; policy = policy_of facts; multipliers = (fun i -> multiplier_of facts (int i));
                 epsilon = epsilon_of facts } in
  { description =
      listed [ "local game"; number_of agents "agent"; number_of resources "resource"; Printf.sprintf "horizon %d" horizon;
               number_of constraints "constraint" ];
    precision; claim }

(* Counting games. *)

let read_counting source =
  let agents = number source "agents" in
  let actions = number source "actions" in
  let states = number source "states" in
  let horizon = number source "horizon" in
  let grouping =
    match header source "classes" with
    | "largest" :: boundaries -> Largest (List.map (fun b -> Number.nat (whole source b)) boundaries)
    | [ "every" ] -> every (Number.nat agents) (Number.nat actions)
    | _ -> fail_at source "`classes largest ...` or `classes every` is required" in
  let constraints = number source "constraints" in
  let classes = Number.int (num_classes grouping) in
  let table width = ignore (size [ horizon; width ]); table ~steps:horizon ~width in
  let initial = Array.make states None in
  let transition = table (size [ states; classes ]) in
  let costs = Array.init constraints (fun _ -> table (size [ states; classes ])) in
  let by_count = table (size [ states; actions; agents + 1 ]) in
  let own = Array.init agents (fun _ -> table (size [ states; actions ])) in
  let by_class = table (size [ states; actions; classes ]) in
  let all_states = Array.make agents states in
  let facts = new_facts ~horizon ~constraints ~states:all_states in
  let state s = below source "state" states s and class_ c = below source "class" classes c in
  let put_all table h s a width k value =
    let h = step source horizon h and s = state s in
    let one a = put source table h ((((s * actions) + a) * width) + k) value in
    if a = "*" then for a = 0 to actions - 1 do one a done else one (below source "action" actions a) in
  let read = function
    | [ "initial"; s; q ] -> put_once source initial (state s) (rational source q)
    | "transition" :: h :: s :: c :: row ->
        put source transition (step source horizon h) ((state s * classes) + class_ c) (entries source states row)
    | [ "cost"; j; h; s; c; q ] ->
        put source costs.(below source "constraint" constraints j) (step source horizon h) ((state s * classes) + class_ c)
          (rational source q)
    | [ "reward"; h; s; a; m; q ] ->
        let m = below source "count" (agents + 1) m in
        if m = 0 then fail_at source "an action that an agent plays has a count of at least 1";
        put_all by_count h s a (agents + 1) m (rational source q)
    | [ "private"; i; h; s; a; q ] -> put_all own.(below source "agent" agents i) h s a 1 0 (rational source q)
    | [ "class-reward"; h; s; a; c; q ] -> put_all by_class h s a classes (class_ c) (rational source q)
    | words ->
        read_common source ~is_nash:true ~horizon ~constraints ~states:all_states ~actions:(Array.make agents actions) facts
          words in
  let precision, words = read_precision source in
  read_facts source read words;
  check_complete transition (fun h k ->
    fail "the transition at step %d in state %d, class %d is not given" h (k / classes) (k mod classes));
  let int = Number.int in
  let action_index s a = (int s * actions) + int a in
  let game = {
    crowd = Number.nat agents; choices = Number.nat actions; shared_states = Number.nat states;
    shared_steps = Number.nat horizon; shared_constraints = Number.nat constraints; grouping;
    shared_start = (fun s -> Option.value initial.(int s) ~default:zero);
    class_next = (fun h s c -> find_or [] transition (int h) ((int s * classes) + int c));
    class_cost = (fun j h s c -> find_or zero costs.(int j) (int h) ((int s * classes) + int c));
    count_reward = (fun h s a m -> find_or zero by_count (int h) ((action_index s a * (agents + 1)) + int m));
    own_reward = (fun i h s a -> find_or zero own.(int i) (int h) (action_index s a));
    class_reward = (fun h s a c -> find_or zero by_class (int h) ((action_index s a * classes) + int c));
    shared_threshold = threshold_of facts; shared_binds = binds_of facts } in
  let claim =
    Counting_nash { game; policy = policy_of facts; multipliers = (fun i -> multiplier_of facts (int i));
                    epsilon = epsilon_of facts } in
  { description =
      listed [ "counting game"; number_of agents "agent"; number_of actions "action"; number_of states "state";
               Printf.sprintf "horizon %d" horizon; number_of constraints "constraint" ];
    precision; claim }

let read channel =
  let source = { channel; line = 0 } in
  if header source "cmpg-proof" <> [ "1" ] then fail_at source "expected `cmpg-proof 1`";
  let form = header source "form" in
  let is_nash =
    match header source "claim" with
    | [ "nash" ] -> true
    | [ "infeasible" ] -> false
    | _ -> fail_at source "the claim is `nash` or `infeasible`" in
  match form with
  | [ "joint" ] -> read_joint source ~is_nash
  | [ "local" ] when is_nash -> read_local source
  | [ "counting" ] when is_nash -> read_counting source
  | [ "local" ] | [ "counting" ] -> fail_at source "infeasibility is proved of joint games only"
  | _ -> fail_at source "the form is `joint`, `local` or `counting`"
