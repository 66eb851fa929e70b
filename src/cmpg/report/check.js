"use strict";
/* Checks a proof file (docs/proof-format.md) in integers, without any library: joint, local and counting games.

   A real number x is held as two integers, low ≤ x·2^bits ≤ high, and every operation rounds low down and high up. So a
   claim that is accepted is true, whatever the number of bits; with more bits fewer true claims stay open. For any
   multipliers λ ≥ 0 no deviation of agent i that keeps the thresholds α gains more than
       max V^(r_i − λ_i·c) + λ_i·α − V^(r_i),
   where the maximum is found by backward induction; of discounted games, from a bound on all that comes after N steps:
   no sum of γ^h·f_h exceeds max(f, 0) / (1 − γ). `checkProof` bounds that from above for every agent, and every cost
   from above, and compares both with what the file claims. */

class Refused extends Error {}

function checkProof(text, bits, report) {
  const B = BigInt(bits), ONE = 1n << B, ZERO = [0n, 0n];
  const ceil = (x) => -(-x >> B);                     // x·2^−bits, rounded up
  const floor = (x) => x >> B;
  const max = (x, y) => (x > y ? x : y), min = (x, y) => (x < y ? x : y);
  const add = (x, y) => [x[0] + y[0], x[1] + y[1]];
  const minus = (x) => [-x[1], -x[0]];
  function times(x, y) {                              // intervals of either sign
    if (x[0] === x[1] && y[0] === y[1]) { const p = x[0] * y[0]; return [floor(p), ceil(p)]; }
    const p = [x[0] * y[0], x[0] * y[1], x[1] * y[0], x[1] * y[1]];
    return [floor(p.reduce(min)), ceil(p.reduce(max))];
  }
  const weigh = (p, high) => (high >= 0n ? ceil(p[1] * high) : ceil(p[0] * high));  // upper end of p·x, p ≥ 0, x ≤ high
  const isZero = (x) => x[0] === 0n && x[1] === 0n;

  /* ---- reading ---- */
  const lines = text.split("\n");
  let number = 0;
  const refuse = (problem) => { throw new Refused(`line ${number}: ${problem}`); };
  function next() {
    while (number < lines.length) {
      const words = lines[number++].split(" ").filter((word) => word.length);
      if (words.length && words[0][0] !== "#") return words;
    }
    return null;
  }
  function whole(word, below) {
    if (word === undefined || !/^[0-9]{1,9}$/.test(word)) refuse(`${word} is no whole number`);
    const value = Number(word);
    if (below !== undefined && value >= below) refuse(`${value} is out of range`);
    return value;
  }
  const known = new Map();
  function rational(word) {                           // the exact fraction, and its interval
    let found = known.get(word);
    if (found === undefined) {
      if (word === undefined || !/^-?[0-9]+(\/[0-9]+)?$/.test(word)) refuse(`${word} is no rational`);
      const [p, q = "1"] = word.split("/");
      found = { p: BigInt(p), q: BigInt(q) };
      if (found.q === 0n) refuse("a denominator is zero");
      const scaled = found.p << B, low = scaled / found.q - (scaled < 0n && scaled % found.q !== 0n ? 1n : 0n);
      found.interval = [low, scaled % found.q === 0n ? low : low + 1n];
      known.set(word, found);
    }
    return found;
  }
  const value = (word) => rational(word).interval;
  function distribution(words) {                      // checked exactly
    let p = 0n, q = 1n;
    for (const word of words) {
      const each = rational(word);
      if (each.p < 0n) refuse("a probability is negative");
      if (each.q === q) p += each.p; else { p = p * each.q + each.p * q; q *= each.q; }
    }
    if (p !== q) refuse("a row of probabilities does not sum to one");
    return words.map(value);
  }
  function header(word, count) {
    const words = next();
    if (!words || words[0] !== word || words.length < 2 || (count && words.length !== count + 1)) refuse(`${word} is required`);
    return words.slice(1);
  }
  if (header("cmpg-proof", 1)[0] !== "1") refuse("version 1 is required");
  const form = header("form", 1)[0];
  if (header("claim", 1)[0] !== "nash") refuse("only claims of equilibria are checked here");
  const sizes = {};
  const list = (word) => { sizes[word] = header(word).map((each) => whole(each)); };
  const one = (word) => { sizes[word] = whole(header(word, 1)[0]); };
  let discount = null, rounds = 0;                    // of a discounted game: γ, and the steps to look ahead
  if (form === "joint") {
    list("actions"); one("states");
    const length = next();
    if (length && length[0] === "horizon" && length.length === 2) sizes.horizon = whole(length[1]);
    else if (length && length[0] === "discount" && length.length === 3) {
      discount = rational(length[1]);
      rounds = whole(length[2]);
      sizes.horizon = 1;
      if (discount.p < 0n || discount.q <= discount.p) refuse("a discount of at least 0 and below 1 is required");
    } else refuse("horizon with one number, or discount with two, is required");
    one("constraints");
  }
  else if (form === "local") {
    for (const word of ["states", "actions", "agents", "payoffs"]) list(word);
    for (const word of ["horizon", "resources", "curves", "constraints"]) one(word);
  } else if (form === "counting") {
    for (const word of ["agents", "actions", "states", "horizon"]) one(word);
    sizes.classes = header("classes");
    one("constraints");
  } else refuse(`there is no form ${form}`);
  const H = sizes.horizon, k = sizes.constraints;
  if (!H) refuse("a horizon of at least one step is required");

  let shapes;                                         // [states, actions] of each agent
  if (form === "joint") shapes = sizes.actions.map((actions) => [sizes.states, actions]);
  else if (form === "counting") shapes = Array.from({ length: sizes.agents }, () => [sizes.states, sizes.actions]);
  else {
    if (sizes.states.length !== sizes.actions.length || sizes.agents.length !== sizes.payoffs.length) refuse("sizes do not fit");
    shapes = sizes.agents.map((d) => { whole(String(d), sizes.states.length); return [sizes.states[d], sizes.actions[d]]; });
  }
  const n = shapes.length;
  if (!n || shapes.some(([states, actions]) => !states || !actions)) refuse("at least one agent, state and action is required");

  /* Entries are kept by word and index. An index is the mixed-radix number of its parts; `*` stands for every value. */
  function Table(radices) { this.radices = radices; this.entries = new Map(); }
  Table.prototype.keys = function (words, stars) {
    let keys = [0];
    this.radices.forEach((radix, place) => {
      const every = words[place] === "*" && stars[place];
      const values = every ? Array.from({ length: radix }, (_, x) => x) : [whole(words[place], radix)];
      keys = keys.flatMap((key) => values.map((x) => key * radix + x));
    });
    return keys;
  };
  Table.prototype.set = function (words, stars, what) {
    for (const key of this.keys(words, stars)) {
      if (this.entries.has(key)) refuse("an entry is given twice");
      this.entries.set(key, what);
    }
  };
  Table.prototype.get = function (key, missing) { const found = this.entries.get(key); return found === undefined ? missing : found; };

  const scalar = (words) => { if (words.length !== 1) refuse("one number is required"); return value(words[0]); };
  function row(words, states) {                       // next states and their probabilities
    if (!words.length || words.length % 2) refuse("pairs of a next state and its probability are required");
    const targets = words.filter((_, i) => i % 2 === 0).map((word) => whole(word, states));
    if (new Set(targets).size < targets.length) refuse("a next state is given twice");
    return { targets, weights: distribution(words.filter((_, i) => i % 2 === 1)) };
  }
  const thresholds = new Table([k]), multipliers = new Table([n, k]), binds = new Table([k]), epsilon = new Table([]);
  const policy = shapes.map(([states]) => new Table([H, states]));
  const pure = Array.from({ length: Math.max(...shapes.map(([, actions]) => actions)) }, () => []);
  shapes.forEach(([, actions]) => { for (let a = 0; a < actions; a++) pure[a][actions] = Array.from({ length: actions }, (_, b) => (a === b ? [ONE, ONE] : ZERO)); });
  const facts = {
    threshold: (w) => thresholds.set(w.slice(0, 1), [], scalar(w.slice(1))),
    binds: (w) => binds.set(w.slice(0, 1), [], new Set(w.slice(1).map((word) => whole(word, n)))),
    multiplier: (w) => { const found = scalar(w.slice(2)); if (found[0] < 0n) refuse("a multiplier is negative"); multipliers.set(w.slice(0, 2), [], found); },
    epsilon: (w) => epsilon.set([], [], scalar(w)),
    policy: (w) => {
      const i = whole(w[0], n), rest = w.slice(3);
      if (rest.length !== shapes[i][1]) refuse("a probability for each action is required");
      policy[i].set(w.slice(1, 3), [true, false], distribution(rest));
    },
    play: (w) => {
      const i = whole(w[0], n), [states, actions] = shapes[i];
      if (w.length !== 2 + states) refuse("an action for each state is required");
      for (let s = 0; s < states; s++)
        if (w[2 + s] !== "-") policy[i].set([w[1], String(s)], [true, false], pure[whole(w[2 + s], actions)][actions]);
    },
  };

  const judge = { joint: sharedForm, counting: sharedForm, local: localForm }[form]();
  let words = next();
  if (words && words[0] === "precision") { whole(words[1]); words = next(); }  // bits are chosen here
  while (words && words[0] !== "end") {
    const fact = Object.prototype.hasOwnProperty.call(facts, words[0]) ? facts[words[0]] : null;
    if (!fact) refuse(`there is no word ${words[0]}`);
    fact(words.slice(1));
    words = next();
  }
  if (!words || words.length !== 1 || next()) refuse("`end` is required as the last line");
  const limit = Array.from({ length: k }, (_, j) => thresholds.get(j) || refuse(`threshold ${j} is missing`));
  const claimed = epsilon.get(0) || refuse("epsilon is missing");
  if (claimed[0] < 0n) refuse("epsilon is negative");
  const played = shapes.map(([states], i) => Array.from({ length: H }, (_, h) => Array.from({ length: states }, (_, s) =>
    policy[i].get(h * states + s) || refuse(`the policy of agent ${i} at step ${h} in state ${s} is missing`))));
  const prices = Array.from({ length: n }, (_, i) => Array.from({ length: k }, (_, j) => {
    const price = multipliers.get(i * k + j, ZERO), bound = binds.get(j);
    if (bound && !bound.has(i) && !isZero(price)) refuse(`constraint ${j} does not bind agent ${i}, which has a multiplier`);
    return price;
  }));

  const { gains, costs } = judge();
  const over = costs.map((cost, j) => cost > limit[j][0]), gaining = gains.map((gain) => gain > claimed[0]);
  const decimal = (x) => Number((x < 0n ? -x : x) >> (B - 80n)) / 2 ** 80 * (x < 0n ? -1 : 1);
  const problem = over.some(Boolean)
    ? `constraint ${over.indexOf(true)} is not shown to be met: its cost may be ${decimal(costs[over.indexOf(true)])}`
    : gaining.some(Boolean) ? `agent ${gaining.indexOf(true)} is not shown to gain at most ${decimal(claimed[0])}: the bound is ${decimal(gains[gaining.indexOf(true)])}` : "";
  return { proved: !problem, problem, agents: n, epsilon: decimal(claimed[0]), gain: Math.max(0, ...gains.map(decimal)), gains: gains.map(decimal), costs: costs.map(decimal) };

  /* The most that following a row can bring, given what each next state can bring at most. */
  function ahead(found, after) {
    let total = 0n;
    for (let x = 0; x < found.targets.length; x++) total += weigh(found.weights[x], after[found.targets[x]]);
    return total;
  }

  /* ---- games on a shared state: outcomes are joint actions, or classes of counts ---- */
  function sharedForm() {
    const S = sizes.states, joint = form === "joint";
    const choices = joint ? sizes.actions : [], O = joint ? choices.reduce((x, y) => x * y, 1) : numClasses();
    const outcome = joint ? choices : [O], stars = outcome.map(() => true);
    const initial = new Table([S]), moves = new Table([H, S, ...outcome]), cost = new Table([k, H, S, ...outcome]);
    facts.initial = (w) => { scalar(w.slice(1)); initial.set(w.slice(0, 1), [], w[1]); };
    facts.transition = (w) => moves.set(w.slice(0, 2 + outcome.length), [true, false, ...stars], row(w.slice(2 + outcome.length), S));
    facts.cost = (w) => cost.set(w.slice(0, 3 + outcome.length), [false, true, false, ...stars], scalar(w.slice(3 + outcome.length)));
    const game = joint ? jointGame(O) : countingGame(O);
    /* What no discounted sum exceeds, from any state on, whatever agent i does: the largest entry, or zero, over 1 − γ. */
    function bringTails(best, lost, paid) {
      const tail = (most) => (most <= 0n ? 0n : -((-most * discount.q) / (discount.q - discount.p)) + 1n);
      const most = { best: best.map(() => 0n), lost: lost.map(() => 0n), paid: paid.map(() => 0n) };
      for (let s = 0; s < S; s++) for (let i = 0; i < n; i++) for (let a = 0; a < shapes[i][1]; a++)
        for (const [o, , reward] of game(i, a, 0, s)) {
          let score = reward[1];
          for (let j = 0; j < k; j++) {
            const charge = cost.get((j * S + s) * O + o, ZERO);
            most.paid[j] = max(most.paid[j], charge[1]);
            if (!isZero(prices[i][j])) score += minus(times(prices[i][j], charge))[1];
          }
          most.best[i] = max(most.best[i], score);
          most.lost[i] = max(most.lost[i], -reward[0]);
        }
      for (const [tables, each] of [[best, most.best], [lost, most.lost], [paid, most.paid]]) tables.forEach((table, x) => table.fill(tail(each[x])));
    }
    /* All that a step holds, state by state, looked up once: where outcomes lead, and what they cost and bring. */
    const stageAt = (h) => Array.from({ length: S }, (_, s) => {
      const at = Array.from({ length: O }, (_, o) => moves.get((h * S + s) * O + o) || refuse(`a transition at step ${h} in state ${s} is missing`));
      const charge = Array.from({ length: k }, (_, j) => Array.from({ length: O }, (_, o) => cost.get(((j * H + h) * S + s) * O + o, ZERO)));
      const agents = shapes.map(([, actions], i) => ({
        options: Array.from({ length: actions }, (_, a) => ({ own: played[i][h][s][a], branches: game(i, a, h, s) })),
        charged: at.map((_, o) => charge.reduce((sum, each, j) => (isZero(prices[i][j]) ? sum : sum + minus(times(prices[i][j], each[o]))[1]), 0n)),
      }));
      return { at, charge, agents };
    });
    return () => {
      const start = startLaw(initial, S);
      let best = shapes.map(() => Array(S).fill(0n)), lost = shapes.map(() => Array(S).fill(0n)), paid = Array.from({ length: k }, () => Array(S).fill(0n));
      if (discount === null) rounds = H;
      else bringTails(best, lost, paid);
      const follow = (found, after) => { const sum = ahead(found, after); return discount === null ? sum : weigh(discount.interval, sum); };
      let stage = null;
      for (let round = 1; round <= rounds; round++) {
        const h = discount === null ? H - round : 0;
        if (discount === null || round === 1) stage = stageAt(h);  // every step of a discounted game is the same
        const now = { best: shapes.map(() => []), lost: shapes.map(() => []), paid: paid.map(() => []) };
        for (const { at, charge, agents } of stage) {
          agents.forEach(({ options, charged }, i) => {
            const scores = [], losses = [];                 // by outcome
            let loss = 0n, most = null;
            for (const { own, branches } of options) {
              let worth = 0n, kept = 0n;
              for (const [o, weight, reward] of branches) {
                if (scores[o] === undefined) scores[o] = follow(at[o], best[i]) + charged[o];
                worth += weigh(weight, scores[o] + reward[1]);
                if (own[1] > 0n) {
                  if (losses[o] === undefined) losses[o] = follow(at[o], lost[i]);
                  kept += weigh(weight, losses[o] - reward[0]);
                }
              }
              if (most === null || worth > most) most = worth;
              if (own[1] > 0n) loss += weigh(own, kept);
            }
            now.best[i].push(most);
            now.lost[i].push(loss);
          });
          const mean = paid.map(() => 0n);
          for (const { own, branches } of agents[0].options)
            if (own[1] > 0n && k) for (const [o, weight] of branches)
              for (let j = 0; j < k; j++) mean[j] += weigh(times(own, weight), follow(at[o], paid[j]) + charge[j][o][1]);
          mean.forEach((each, j) => now.paid[j].push(each));
        }
        ({ best, lost, paid } = now);
        report(round / rounds);
      }
      const average = (after) => { let total = 0n; for (let s = 0; s < S; s++) total += weigh(start[s], after[s]); return total; };
      const gains = shapes.map((_, i) => prices[i].reduce((total, price, j) => total + times(price, limit[j])[1], average(best[i]) + average(lost[i])));
      return { gains, costs: paid.map(average) };
    };
  }

  /* Returns game(i, a, h, s): outcomes with their probabilities while the others play on, and i's reward at them. */
  function jointGame(O) {
    const S = sizes.states, choices = sizes.actions, reward = new Table([n, H, S, ...choices]);
    facts.reward = (w) => reward.set(w.slice(0, 3 + n), [false, true, false, ...choices.map(() => true)], scalar(w.slice(3 + n)));
    return (i, a, h, s) => {
      let found = [[0, [ONE, ONE]]];
      for (let l = 0; l < n; l++) {
        const options = l === i ? [[a, [ONE, ONE]]] : played[l][h][s].map((p, b) => [b, p]).filter(([, p]) => p[1] > 0n);
        found = found.flatMap(([o, w]) => options.map(([b, p]) => [o * choices[l] + b, p[0] === ONE ? w : times(w, p)]));
      }
      return found.map(([o, w]) => [o, w, reward.get(((i * H + h) * S + s) * O + o, ZERO)]);
    };
  }

  function compositions(total, parts) {
    if (parts === 1) return [[total]];
    const found = [];
    for (let first = 0; first <= total; first++) for (const rest of compositions(total - first, parts - 1)) found.push([first, ...rest]);
    return found;
  }

  function numClasses() {
    if (sizes.classes[0] === "every") return compositions(sizes.agents, sizes.actions).length;
    if (sizes.classes[0] !== "largest") refuse("classes largest or classes every is required");
    sizes.boundaries = sizes.classes.slice(1).map((word) => whole(word));
    if (sizes.boundaries.some((b, x) => x && b < sizes.boundaries[x - 1])) refuse("boundaries that do not descend are required");
    return sizes.boundaries.length + 1;
  }

  function countingGame(C) {
    const S = sizes.states, A = sizes.actions;
    const reward = new Table([H, S, A, n + 1]), own = new Table([n, H, S, A]), byClass = new Table([H, S, A, C]);
    facts.reward = (w) => reward.set(w.slice(0, 4), [true, false, true, false], scalar(w.slice(4)));
    facts.private = (w) => own.set(w.slice(0, 4), [false, true, false, true], scalar(w.slice(4)));
    facts["class-reward"] = (w) => byClass.set(w.slice(0, 4), [true, false, true, true], scalar(w.slice(4)));
    const rank = new Map(sizes.boundaries ? [] : compositions(n, A).map((counts, c) => [counts.join(), c]));
    const classOf = (counts) => (sizes.boundaries ? sizes.boundaries.filter((b) => Math.max(...counts) > b).length : rank.get(counts.join()));
    const laws = new Map();
    function others(i, h, s) {                        // the law of how many others play each action
      const key = (i * H + h) * S + s;
      if (!laws.has(key)) {
        let law = new Map([[Array(A).fill(0).join(), [ONE, ONE]]]);
        for (let l = 0; l < n; l++) if (l !== i) {
          const wider = new Map();
          for (const [counts, w] of law) played[l][h][s].forEach((p, b) => {
            if (p[1] === 0n) return;
            const more = counts.split(",").map(Number);
            more[b] += 1;
            const name = more.join();
            wider.set(name, add(wider.get(name) || ZERO, times(w, p)));
          });
          law = wider;
        }
        laws.clear();                                 // asked for one agent and state at a time
        laws.set(key, [...law].map(([counts, w]) => [counts.split(",").map(Number), w]));
      }
      return laws.get(key);
    }
    return (i, a, h, s) => others(i, h, s).map(([counts, w]) => {
      const with_ = counts.map((count, b) => count + (a === b ? 1 : 0)), c = classOf(with_);
      const at = (h * S + s) * A + a;
      const paid = add(reward.get(at * (n + 1) + with_[a], ZERO), byClass.get(at * C + c, ZERO));
      return [c, w, add(paid, own.get(((i * H + h) * S + s) * A + a, ZERO))];
    });
  }

  function startLaw(table, S) {                       // the words of its rationals; none stands for zero
    return distribution(Array.from({ length: S }, (_, s) => table.get(s, "0")));
  }

  /* ---- agents with states of their own, who meet at resources ---- */
  function localForm() {
    const E = sizes.resources, dynamics = sizes.states.length, kinds = Math.max(...sizes.payoffs) + 1, owner = Array(kinds);
    sizes.payoffs.forEach((p, i) => { if (owner[p] !== undefined && owner[p] !== sizes.agents[i]) refuse("payoffs and dynamics do not fit"); owner[p] = sizes.agents[i]; });
    for (let p = 0; p < kinds; p++) if (owner[p] === undefined) refuse("payoffs are numbered with a gap");
    const initial = shapes.map(([S]) => new Table([S])), curve = new Table([sizes.curves]);
    const each = (sizes_) => sizes_.map((_, d) => new Table([H, sizes.states[d], sizes.actions[d]]));
    const moves = each(sizes.states), uses = each(sizes.states), stars = [true, false, true];
    const payoff = () => owner.map((d) => new Table([H, sizes.states[d], sizes.actions[d]]));
    const reward = payoff(), cost = Array.from({ length: k }, payoff);
    const delay = new Table([H, E]), load = Array.from({ length: k }, () => new Table([H, E]));
    const curveOf = (w) => { if (w.length !== 1) refuse("one curve is required"); return whole(w[0], sizes.curves); };
    facts.initial = (w) => { scalar(w.slice(2)); initial[whole(w[0], n)].set(w.slice(1, 2), [], w[2]); };
    facts.transition = (w) => { const d = whole(w[0], dynamics); moves[d].set(w.slice(1, 4), stars, row(w.slice(4), sizes.states[d])); };
    facts.uses = (w) => {
      const found = w.slice(4).map((word) => whole(word, E));
      if (!found.length || new Set(found).size < found.length) refuse("resources, each once, are required");
      uses[whole(w[0], dynamics)].set(w.slice(1, 4), stars, found);
    };
    facts.reward = (w) => reward[whole(w[0], kinds)].set(w.slice(1, 4), stars, scalar(w.slice(4)));
    facts.cost = (w) => cost[whole(w[0], k)][whole(w[1], kinds)].set(w.slice(2, 5), stars, scalar(w.slice(5)));
    facts.curve = (w) => { if (w.length !== n + 2) refuse(`${n + 1} numbers are required`); curve.set(w.slice(0, 1), [], w.slice(1).map(value)); };
    facts.delay = (w) => delay.set(w.slice(0, 2), [true, true], curveOf(w.slice(2)));
    facts["load-cost"] = (w) => load[whole(w[0], k)].set(w.slice(1, 3), [true, true], curveOf(w.slice(3)));
    return () => {
      const curves = Array.from({ length: sizes.curves }, (_, c) => curve.get(c) || refuse(`curve ${c} is missing`));
      // Forwards: how likely each agent uses each resource, and what it gets and spends by itself.
      const rates = shapes.map(() => new Map());      // (h, e) → interval
      const cells = new Map();                        // (h, e) → agents that may use it
      const ownGain = [], ownCost = [];
      for (let i = 0; i < n; i++) {
        const [S, A] = shapes[i], d = sizes.agents[i], p = sizes.payoffs[i];
        let present = startLaw(initial[i], S), gain = ZERO, spent = Array.from({ length: k }, () => ZERO);
        for (let h = 0; h < H; h++) {
          const following = Array.from({ length: S }, () => ZERO);
          for (let s = 0; s < S; s++) {
            if (present[s][1] === 0n) continue;
            for (let a = 0; a < A; a++) {
              const chosen = played[i][h][s][a];
              if (chosen[1] === 0n) continue;
              const key = (h * S + s) * A + a, mass = chosen[0] === ONE ? present[s] : times(present[s], chosen);
              gain = add(gain, times(mass, reward[p].get(key, ZERO)));
              for (let j = 0; j < k; j++) { const c = cost[j][p].get(key); if (c) spent[j] = add(spent[j], times(mass, c)); }
              for (const e of uses[d].get(key, [])) rates[i].set(h * E + e, add(rates[i].get(h * E + e) || ZERO, mass));
              const found = moves[d].get(key) || refuse(`a transition of dynamics ${d} at step ${h} in state ${s} is missing`);
              found.targets.forEach((t, x) => { following[t] = add(following[t], found.weights[x][0] === ONE ? mass : times(mass, found.weights[x])); });
            }
          }
          present = following;
        }
        for (const cell of rates[i].keys()) { if (!cells.has(cell)) cells.set(cell, []); cells.get(cell).push(i); }
        ownGain.push(gain);
        ownCost.push(spent);
        report(0.5 * (i + 1) / n);
      }
      // What a user meets, what one more user adds, and what is spent: from the law of the load of each cell.
      const idle = (rate) => { const low = ONE - rate[1]; return [low > 0n ? low : 0n, ONE - min(rate[0], ONE)]; };
      function extended(law, rate) {
        const rest = idle(rate), wider = law.map((w) => times(w, rest)).concat([ZERO]);
        law.forEach((w, m) => { wider[m + 1] = add(wider[m + 1], times(w, rate)); });
        return wider;
      }
      const mean = (law, table, shift) => law.reduce((total, w, m) => add(total, times(w, table[m + shift])), ZERO);
      const zero = Array.from({ length: n + 1 }, () => ZERO), curveAt = (table, cell) => { const c = table.get(cell); return c === undefined ? zero : curves[c]; };
      const empty = [[ONE, ONE]], total = Array.from({ length: k }, () => ZERO);
      const lawWithout = (cell, i) => (cells.get(cell) || []).filter((l) => l !== i).reduce((law, l) => extended(law, rates[l].get(cell)), empty);
      // A cell means the same to all who do not use it; where no agent does, to all cells with the same curves.
      const shared = new Map(), own = shapes.map(() => new Map());
      function priceOf(cell, i) {
        const users = cells.get(cell), kept = users && rates[i].has(cell) ? own[i] : shared;
        const key = users ? cell : [delay, ...load].map((table) => table.get(cell, -1)).join();
        if (!kept.has(key)) {
          const law = lawWithout(cell, i), adds = load.map((table) => curveAt(table, cell)).map((each) => add(mean(law, each, 1), minus(mean(law, each, 0))));
          kept.set(key, { meets: mean(law, curveAt(delay, cell), 1), adds });
        }
        return kept.get(key);
      }
      for (let j = 0; j < k; j++)
        for (let cell = 0; cell < H * E; cell++) {
          const table = curveAt(load[j], cell);
          if (table !== zero) total[j] = add(total[j], mean(lawWithout(cell, -1), table, 0));
        }
      const gains = [], costs = total.map((each, j) => ownCost.reduce((x, spent) => add(x, spent[j]), each));
      for (let i = 0; i < n; i++) {
        const [S, A] = shapes[i], d = sizes.agents[i], p = sizes.payoffs[i];
        let after = Array(S).fill(0n);
        for (let h = H - 1; h >= 0; h--) {
          const now = [];
          for (let s = 0; s < S; s++) {
            let most = null;
            for (let a = 0; a < A; a++) {
              const key = (h * S + s) * A + a;
              let worth = reward[p].get(key, ZERO)[1] + ahead(moves[d].get(key) || refuse(`a transition of dynamics ${d} at step ${h} in state ${s} is missing`), after);
              for (const e of uses[d].get(key, [])) {
                const { meets, adds } = priceOf(h * E + e, i);
                worth -= meets[0];
                for (let j = 0; j < k; j++) if (!isZero(prices[i][j])) worth += minus(times(prices[i][j], adds[j]))[1];
              }
              for (let j = 0; j < k; j++) { const c = cost[j][p].get(key); if (c && !isZero(prices[i][j])) worth += minus(times(prices[i][j], c))[1]; }
              if (most === null || worth > most) most = worth;
            }
            now.push(most);
          }
          after = now;
        }
        const law = startLaw(initial[i], S);
        let bound = law.reduce((x, w, s) => x + weigh(w, after[s]), 0n), has = ownGain[i];
        const usedCost = Array.from({ length: k }, () => ZERO);
        for (const [cell, rate] of rates[i]) {
          const { meets, adds } = priceOf(cell, i);
          has = add(has, minus(times(rate, meets)));
          for (let j = 0; j < k; j++) usedCost[j] = add(usedCost[j], times(rate, adds[j]));
        }
        // What the others spend is the whole cost less what this agent adds to it.
        for (let j = 0; j < k; j++) if (!isZero(prices[i][j])) {
          const others = add(costs[j], minus(add(ownCost[i][j], usedCost[j])));
          bound += times(prices[i][j], add(limit[j], minus(others)))[1];
        }
        gains.push(bound - has[0]);
        report(0.5 + 0.5 * (i + 1) / n);
      }
      return { gains, costs: costs.map((each) => each[1]) };
    };
  }
}

/* More bits leave fewer true claims open: equality of a cost and its threshold needs as many as the numbers have. */
function checkWithMoreBits(text, report) {
  let found = null;
  for (const bits of [256, 2048]) {
    found = checkProof(text, bits, report);
    if (found.proved) return found;
  }
  return found;
}

if (typeof module !== "undefined") module.exports = { checkProof, checkWithMoreBits, Refused };
