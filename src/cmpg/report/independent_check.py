"""Check a claim with numpy alone, and nothing of the library that made it:

    python independent_check.py game.npz policy.npz [epsilon] [allowed]

For each agent i with multipliers λ_i ≥ 0, no deviation that keeps the thresholds α is worth more than λ_i·α + max_π
V^{r_i − λ_i·c}, one backward induction while the others keep to their policies. If every such bound exceeds what the
agent gets now by at most epsilon (1e-6 unless given), and no cost exceeds its threshold by more than `allowed` (0
unless given), the claim is proved, up to the rounding of this script: numbers whose last bits alone are larger than
1e-9 are refused. The exit code is 0 if the claim is proved, and 1 if it is not. It reads joint and local games with a
finite horizon.

An infinite multiplier claims that nothing is left of a budget: whatever the agent does, it costs no less than what is
left of α. A deviation that keeps α may then take no action that might cost more, and the maximum is over those that are
allowed. What may happen is followed without probabilities, and costs are compared as fractions.
"""

import sys
from fractions import Fraction
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
ROUNDING = 1e-9


def main() -> None:
    """Read both files, print what they prove, and end with 0 or 1."""
    game, claim = (dict(np.load(name)) for name in sys.argv[1:3])
    epsilon, allowed = (float(sys.argv[i]) if len(sys.argv) > i else usual for i, usual in ((3, 1e-6), (4, 0.0)))
    require(str(game["format"]) == "cmpg-game" and str(claim["format"]) == "cmpg-policy", "a game and a policy file")
    require("horizon" in game and str(game["form"]) in ("joint", "local"), "a joint or local game with a horizon")
    count = len(claim["num_actions"]) if "num_actions" in claim else sum(name.startswith("agent_") for name in claim)
    policy = [table_of(claim, i) for i in range(count)]
    require(policy, "a policy of each agent")
    limits = game.get("thresholds", np.zeros(0))
    multipliers = claim.get("multipliers", np.zeros((len(policy), len(limits))))
    hard, multipliers = multipliers == np.inf, np.where(multipliers == np.inf, 0.0, multipliers)
    shaped("multipliers", multipliers, (len(policy), len(limits)))
    require((multipliers >= 0).all(), "multipliers λ ≥ 0")
    binds = game.get("binds", np.ones(multipliers.shape))  # a constraint that does not bind an agent has no price
    shaped("binds", binds, multipliers.shape)
    require(not (hard + multipliers)[binds == 0].any(), "multipliers of zero for those whom a constraint does not bind")
    for i, table in enumerate(policy):
        distributions(f"agent_{i}", table, (int(game["horizon"]), *table.shape[1:]))
    problems = joint_problems if str(game["form"]) == "joint" else local_problems
    costs, worst = np.zeros(len(limits)), 0.0
    for i, (problem, everybody, others, possible) in enumerate(problems(game, policy, limits)):
        costs = everybody
        closed = np.zeros(policy[i].shape, dtype=bool)
        for j in np.flatnonzero(hard[i]).tolist():
            moves, *between = possible(j)
            closed = closure(closed | forbidden(problem[3], moves, *between), moves)
            require(not (reached(problem[3], moves, policy[i]) & closed).any(), "a policy that keeps a hard budget")
        value = backward(problem, policy[i], np.zeros(len(limits)))[0]
        bound = backward(problem, None, multipliers[i], closed)[0] + multipliers[i] @ (limits - others)
        worst = max(worst, bound - value)
        print(f"agent {i}: value {value:.9g}, gains at most {bound - value:.3g}")
    for j, limit in enumerate(limits):
        print(f"constraint {j}: cost {costs[j]:.9g}, threshold {limit:.9g}")
    # Infinities and what is not a number fail here, as no comparison with them is true.
    proved = bool((costs <= limits + allowed).all() and worst <= epsilon)
    if not proved and worst <= epsilon and (costs <= limits + ROUNDING).all():
        print(f"a threshold is exceeded by {max(costs - limits):.3g}; if that is fine, allow it as a fourth argument")
    print(f"proved, up to rounding: no agent gains more than {epsilon:g}" if proved else "not proved")
    sys.exit(0 if proved else 1)


def require(holds: Any, wanted: str) -> None:
    """End here unless something holds."""
    if not holds:
        sys.exit(f"not proved: {wanted} is required")


def shaped(name: str, table: Array, shape: tuple[int, ...]) -> None:
    """Require finite numbers of this shape."""
    usable = table.shape == shape and table.dtype.kind in "iuf" and np.isfinite(table).all()
    require(usable, f"{name} with finite numbers of shape {list(shape)}")


def distributions(name: str, rows: Array, shape: tuple[int, ...]) -> None:
    """Require rows of this shape that are probability distributions."""
    shaped(name, rows, shape)
    require((rows >= 0).all() and (abs(rows.sum(axis=-1) - 1) <= ROUNDING).all(), f"{name} with rows that sum to 1")


def table_of(claim: dict[str, Array], agent: int) -> Array:
    """Return the table of one agent, which version 2 of the file has as actions, and as rows that mix."""
    if f"agent_{agent}" in claim:
        return claim[f"agent_{agent}"]
    actions, sure = claim[f"agent_{agent}_actions"], np.eye(int(claim["num_actions"][agent]))
    mixed = claim.get(f"agent_{agent}_mixed", np.zeros((0, 2), dtype=int))
    exist = actions.dtype.kind in "iu" and ((actions >= 0) & (actions < len(sure))).all()
    require(exist and ((mixed >= 0) & (mixed < actions.shape)).all(), f"actions and rows of agent {agent} that exist")
    table: Array = sure[actions]
    table[tuple(mixed.T)] = claim.get(f"agent_{agent}_rows", table[:0, 0])
    return table


def small(*tables: Array) -> None:
    """Require tables [x, step, …] whose sums over an episode have their last bits below `ROUNDING`."""
    largest = max(np.abs(table).max(axis=(0, *range(2, table.ndim)), initial=0).sum() for table in tables)
    require(4 * 2.0**-53 * largest <= ROUNDING, "a game with smaller numbers, or exact arithmetic,")


def backward(problem: list[Array], table: Array | None, multipliers: Array, closed: Any = None) -> Array:
    """Return the value of r − λ·c under a policy, or the greatest there is, and the costs of the policy."""
    transition, reward, costs, initial = problem
    ahead = np.zeros((1 + len(costs), len(initial)))
    for h in reversed(range(len(reward))):
        stage = np.stack([reward[h] - np.tensordot(multipliers, costs[:, h], 1), *costs[:, h]])
        worth = stage + np.einsum("sax,vx->vsa", transition[h], ahead)
        if closed is not None:
            worth[0][closed[h]] = -1e300  # no action that is allowed leads to where all are forbidden
        chosen = np.eye(worth.shape[2])[worth[0].argmax(axis=1)] if table is None else table[h]
        ahead = (worth * chosen).sum(axis=2)
    return ahead @ initial


def forbidden(initial: Array, moves: Array, least: Array, most: Array, left: Fraction) -> Array:
    """Return which actions may cost more than the least that there is, which must be all that is left."""
    closed, ahead = np.zeros(least.shape, dtype=bool), np.zeros(len(initial), dtype=object)
    for h in reversed(range(len(least))):
        low = least[h] + np.where(moves[h], ahead, ahead.max()).min(axis=-1)
        high = most[h] + np.where(moves[h], ahead, ahead.min()).max(axis=-1)
        ahead = low.min(axis=1)
        closed[h] = high > ahead[:, None]
    chances = exactly(initial)
    require(chances @ ahead == left * chances.sum(), "nothing left of a budget with an infinite multiplier")
    return closed


def closure(closed: Array, moves: Array) -> Array:
    """Forbid what may lead to a state in which everything is forbidden."""
    for h in reversed(range(len(closed) - 1)):
        closed[h] |= (moves[h] & closed[h + 1].all(axis=1)).any(axis=-1)
    return closed


def reached(initial: Array, moves: Array, table: Array) -> Array:
    """Return which (step, state, action) a policy may come to."""
    pairs, present = np.zeros(table.shape, dtype=bool), initial > 0
    for h in range(len(table)):
        pairs[h] = present[:, None] & (table[h] > 0)
        present = (moves[h] & pairs[h][..., None]).any(axis=(0, 1))
    return pairs


def exactly(table: Array) -> Array:
    """Return numbers as fractions."""
    return np.array([Fraction(float(each)) for each in table.ravel()], dtype=object).reshape(table.shape)


def joint_problems(game: dict[str, Array], policy: list[Array], limits: Array) -> Any:
    """Average a joint game over what the others play, for each agent in turn."""
    (horizon, states), choices = policy[0].shape[:2], [table.shape[2] for table in policy]
    size = (horizon, states, *choices)
    rewards = stretch(game["rewards"], horizon)
    costs = stretch(game.get("costs", np.zeros((0, *size))), horizon)
    if "transition" in game:
        moves = stretch(game["transition"][None], horizon)[0]
    else:
        csr = [game[f"transition_{part}"] for part in ("indptr", "indices", "data")]
        moves = stretch(dense(csr, states).reshape(1, -1, states, *choices, states), horizon)[0]
    shaped("rewards", rewards, (len(policy), *size))
    shaped("costs", costs, (len(limits), *size))
    distributions("transition", moves, (*size, states))
    distributions("initial", game["initial"], (states,))
    small(rewards, costs)
    for i, table in enumerate(policy):

        def mean(full: Array, step: int, agent: int = i) -> Array:
            for j in reversed(range(len(policy))):
                if j != agent:
                    rows = policy[j][step].reshape(states, -1, *[1] * (full.ndim - 2))
                    full = (np.moveaxis(full, 1 + j, 1) * rows).sum(axis=1)
            return full

        steps = range(horizon)
        own = [np.stack([mean(moves[h], h) for h in steps]), np.stack([mean(rewards[i, h], h) for h in steps])]
        paid = np.array([[mean(cost[h], h) for h in steps] for cost in costs]).reshape(-1, *table.shape)
        problem = [*own, paid, game["initial"]]

        def possible(j: int, agent: int = i) -> tuple[Array, Array, Array, Fraction]:
            can, least, most = moves > 0, costs[j], costs[j]
            for other in reversed(range(len(policy))):
                if other != agent:
                    plays = (policy[other] > 0).reshape(*size[:2], -1, *[1] * (least.ndim - 3))
                    split = [np.moveaxis(full, 2 + other, 2) for full in (least, most, can)]
                    least = np.where(plays, split[0], np.inf).min(axis=2)
                    most = np.where(plays, split[1], -np.inf).max(axis=2)
                    can = (split[2] & plays[..., None]).any(axis=2)
            return can, exactly(least), exactly(most), Fraction(float(limits[j]))

        yield problem, backward(problem, table, np.zeros(len(costs)))[1:], np.zeros(len(costs)), possible


def local_problems(game: dict[str, Array], policy: list[Array], limits: Array) -> Any:
    """Charge each agent of a local game with what it meets on the resources, and adds to the costs there."""
    horizon, agents = len(policy[0]), range(len(policy))
    delay = stretch(game["delay"][None], horizon)[0]
    loads = stretch(game.get("load_cost", np.zeros((0, *delay.shape))), horizon)
    shaped("delay", delay, (horizon, delay.shape[1], len(policy) + 1))
    shaped("load_cost", loads, (len(limits), *delay.shape))
    require(len(game["num_actions"]) == len(policy), "a policy for each agent")
    worlds = [own_world(game, i, policy[i].shape, len(limits)) for i in agents]
    used = [np.einsum("hsa,hsae->he", forward(worlds[i], policy[i]), worlds[i][4]) for i in agents]
    private = [backward(worlds[i][:4], policy[i], np.zeros(len(loads)))[1:] for i in agents]
    small(delay[None], loads * delay.shape[1], *(table for world in worlds for table in (world[1][None], world[2])))
    for i in agents:
        moves, reward, costs, initial, uses = worlds[i]
        others = probabilities([used[j] for j in agents if j != i])
        meets = np.einsum("mhe,hem->he", others, delay[..., 1:])
        adds = np.einsum("mhe,khem->khe", others, np.diff(loads, axis=-1))
        without = np.einsum("mhe,khem->k", others, loads[..., :-1]) + sum(private[j] for j in agents if j != i)
        reward = reward - np.einsum("hsae,he->hsa", uses, meets)
        problem = [moves, reward, costs + np.einsum("hsae,khe->khsa", uses, adds), initial]

        def possible(j: int, agent: int = i) -> tuple[Array, Array, Array, Fraction]:
            low, high = np.zeros((2, *delay.shape[:2]), dtype=int)
            left, adds = Fraction(float(limits[j])), np.zeros((2, *low.shape), dtype=object)
            for k in agents:
                way, used = reached(worlds[k][3], worlds[k][0] > 0, policy[k]), worlds[k][4] > 0
                for h in range(horizon) if k != agent else ():
                    spent = worlds[k][2][j, h][way[h]]
                    require((spent == spent[0]).all(), "others who spend a hard budget whatever happens")
                    left -= Fraction(float(spent[0]))
                    high[h] += used[h][way[h]].any(axis=0)
                    low[h] += used[h][way[h]].all(axis=0)
            for h, e in np.ndindex(*low.shape):
                by_load = exactly(loads[j, h, e, low[h, e] : high[h, e] + 2])
                require((by_load[:-1] == by_load[0]).all(), "others who spend a hard budget whatever happens")
                left -= by_load[0]
                adds[:, h, e] = by_load[1:].min() - by_load[0], by_load[1:].max() - by_load[0]
            busy = (adds != 0).any(axis=(0, 1))
            own, used = exactly(worlds[agent][2][j]), worlds[agent][4][..., busy] > 0
            least, most = (own + (used * each[:, None, None]).sum(axis=-1) for each in adds[..., busy])
            return worlds[agent][0] > 0, least, most, left

        yield problem, backward(problem, policy[i], np.zeros(len(loads)))[1:] + without, without, possible


def own_world(game: dict[str, Array], agent: int, size: tuple[int, ...], constraints: int) -> list[Array]:
    """Return transition, reward, costs, initial states and used resources of one agent of a local game."""
    (horizon, states, actions), resources = size, game["delay"].shape[1]
    chain = [agent]  # like[i] is an agent whose arrays agent i has too
    while "like" in game and game["like"][chain[-1]] not in chain:
        chain.append(int(game["like"][chain[-1]]))
    kind = chain[-1]
    csr = [game[f"transition_{kind}_{part}"] for part in ("indptr", "indices", "data")]
    use = [game[f"use_{kind}_indptr"], game[f"use_{kind}_indices"], np.ones(len(game[f"use_{kind}_indices"]))]
    moves = stretch(dense(csr, states).reshape(1, -1, states, actions, states), horizon)[0]
    uses = stretch(dense(use, resources).reshape(1, -1, states, actions, resources), horizon)[0]
    reward = stretch(next(game[f"reward_{i}"] for i in chain if f"reward_{i}" in game)[None], horizon)[0]
    costs = stretch(game.get(f"cost_{kind}", np.zeros((constraints, 1, states, actions))), horizon)
    distributions(f"transition_{kind}", moves, (*size, states))
    shaped(f"use_{kind}", uses, (*size, resources))
    shaped("a reward", reward, size)
    shaped("a cost", costs, (constraints, *size))
    distributions(f"initial_{agent}", game[f"initial_{agent}"], (states,))
    require((uses <= 1).all(), "each resource used once")
    return [moves, reward, costs, game[f"initial_{agent}"], uses]


def forward(world: list[Array], table: Array) -> Array:
    """Return the probability of each (step, state, action) under a policy."""
    visits, present = np.zeros(table.shape), world[3]
    for h in range(len(table)):
        visits[h] = present[:, None] * table[h]
        present = np.einsum("sa,sax->x", visits[h], world[0][h])
    return visits


def probabilities(used: list[Array]) -> Array:
    """Return the probability that m of these agents use a resource: [m, step, resource]."""
    result = np.ones((1, *used[0].shape)) if used else np.ones((1, 1, 1))
    for use in used:
        none = np.zeros((1, *use.shape))
        result = np.concatenate([result * (1 - use), none]) + np.concatenate([none, result * use])
    return result


def stretch(table: Array, horizon: int) -> Array:
    """Repeat a stationary table [x, 1, …] over all steps, without a copy; one with all steps stays as it is."""
    require(table.ndim > 1 and table.shape[1] in (1, horizon), "a table with one step, or all of them")
    return np.broadcast_to(table, (len(table), horizon, *table.shape[2:]))


def dense(csr: list[Array], columns: int) -> Array:
    """Return a matrix from its CSR arrays."""
    starts, places, entries = csr
    require((np.diff(starts) >= 0).all() and starts[0] == 0 and starts[-1] == len(places), "a CSR matrix")
    require(len(places) == len(entries) and (places >= 0).all() and (places < columns).all(), "columns that exist")
    matrix = np.zeros((len(starts) - 1, columns))
    np.add.at(matrix, (np.repeat(np.arange(len(matrix)), np.diff(starts)), places), entries)
    return matrix


if __name__ == "__main__":
    main()
