"""Check a claim with numpy alone, and nothing of the library that made it:

    python independent_check.py game.npz policy.npz [epsilon]

For each agent i with multipliers λ_i ≥ 0, no deviation that keeps the thresholds α is worth more than λ_i·α + max_π
V^{r_i − λ_i·c}, one backward induction while the others keep to their policies. If every such bound exceeds what the
agent gets now by at most epsilon (1e-6 unless given), and no cost exceeds its threshold, the claim is proved, up to
rounding: 1e-9 is allowed for it, and numbers whose last bits alone are larger than that are refused. The exit code is 0
if the claim is proved, and 1 if it is not. It reads joint and local games with a finite horizon.
"""

import sys
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
ROUNDING = 1e-9


def main() -> None:
    """Read both files, print what they prove, and end with 0 or 1."""
    game, claim = (dict(np.load(name)) for name in sys.argv[1:3])
    epsilon = float(sys.argv[3]) if len(sys.argv) > 3 else 1e-6
    require(str(game["format"]) == "cmpg-game" and str(claim["format"]) == "cmpg-policy", "a game and a policy file")
    require("horizon" in game and str(game["form"]) in ("joint", "local"), "a joint or local game with a horizon")
    policy = [claim[f"agent_{i}"] for i in range(sum(name.startswith("agent_") for name in claim))]
    limits = game.get("thresholds", np.zeros(0))
    multipliers = claim.get("multipliers", np.zeros((len(policy), len(limits))))
    shaped("multipliers", multipliers, (len(policy), len(limits)))
    require((multipliers >= 0).all(), "multipliers λ ≥ 0")
    for i, table in enumerate(policy):
        shaped(f"agent_{i}", table, (int(game["horizon"]), *table.shape[1:]))
        distributions(f"agent_{i}", table)
    problems = joint_problems if str(game["form"]) == "joint" else local_problems
    costs, worst = np.zeros(len(limits)), 0.0
    for i, (problem, everybody, others) in enumerate(problems(game, policy, limits)):
        costs = everybody
        value = backward(problem, policy[i], np.zeros(len(limits)))[0]
        bound = backward(problem, None, multipliers[i])[0] + multipliers[i] @ (limits - others)
        worst = max(worst, bound - value)
        print(f"agent {i}: value {value:.9g}, gains at most {bound - value:.3g}")
    for j, limit in enumerate(limits):
        print(f"constraint {j}: cost {costs[j]:.9g}, threshold {limit:.9g}")
    # Infinities and what is not a number fail here, as no comparison with them is true.
    proved = bool((costs <= limits + ROUNDING).all() and worst <= epsilon and policy)
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


def distributions(name: str, rows: Array) -> None:
    """Require that every row is a probability distribution."""
    require((rows >= 0).all() and (abs(rows.sum(axis=-1) - 1) <= ROUNDING).all(), f"{name} with rows that sum to 1")


def small(*tables: Array) -> None:
    """Require tables [x, step, …] whose sums over an episode have their last bits below `ROUNDING`."""
    for table in tables:
        largest = np.abs(table).max(axis=(0, *range(2, table.ndim)), initial=0).sum()
        require(4 * 2.0**-53 * largest <= ROUNDING, "a game with smaller numbers, or exact arithmetic,")


def backward(problem: list[Array], table: Array | None, multipliers: Array) -> Array:
    """Return the value of r − λ·c under a policy, or the greatest there is, and the costs of the policy."""
    transition, reward, costs, initial = problem
    ahead = np.zeros((1 + len(costs), len(initial)))
    for h in reversed(range(len(reward))):
        stage = np.stack([reward[h] - np.tensordot(multipliers, costs[:, h], 1), *costs[:, h]])
        worth = stage + np.einsum("sax,vx->vsa", transition[h], ahead)
        chosen = np.eye(worth.shape[2])[worth[0].argmax(axis=1)] if table is None else table[h]
        ahead = (worth * chosen).sum(axis=2)
    return ahead @ initial


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
    shaped("transition", moves, (*size, states))
    shaped("initial", game["initial"], (states,))
    distributions("transition", moves)
    distributions("initial", game["initial"])
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
        yield problem, backward(problem, table, np.zeros(len(costs)))[1:], np.zeros(len(costs))


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
        yield problem, backward(problem, policy[i], np.zeros(len(loads)))[1:] + without, without


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
    reward = next(game[f"reward_{i}"] for i in chain if f"reward_{i}" in game)
    reward = stretch(reward[None], horizon)[0]
    costs = stretch(game.get(f"cost_{kind}", np.zeros((constraints, 1, states, actions))), horizon)
    shaped(f"transition_{kind}", moves, (*size, states))
    shaped(f"use_{kind}", uses, (*size, resources))
    shaped("a reward", reward, size)
    shaped("a cost", costs, (constraints, *size))
    shaped(f"initial_{agent}", game[f"initial_{agent}"], (states,))
    distributions(f"transition_{kind}", moves)
    distributions(f"initial_{agent}", game[f"initial_{agent}"])
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
        longer = np.zeros((len(result) + 1, *use.shape))
        longer[:-1] = result * (1 - use)
        longer[1:] += result * use
        result = longer
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
