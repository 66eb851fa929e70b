"""Check a claim with numpy alone, and nothing of the library that made it:

    python independent_check.py game.npz policy.npz

For each agent i with multipliers λ_i ≥ 0, no deviation that keeps the thresholds α is worth more than λ_i·α + max_π
V^{r_i − λ_i·c}, one backward induction while the others keep to their policies. Printed are that bound, less what the
agent gets now, and every cost against its limit: up to rounding, which is not bounded here. It reads joint and local
games with a finite horizon.
"""

import sys
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def main() -> None:
    """Read both files, and print what they prove."""
    game, claim = dict(np.load(sys.argv[1])), dict(np.load(sys.argv[2]))
    policy = [claim[f"agent_{i}"] for i in range(sum(name.startswith("agent_") for name in claim))]
    limits = game.get("thresholds", np.zeros(0))
    prices = claim.get("multipliers", np.zeros((len(policy), len(limits))))
    problems = {"joint": joint_problems, "local": local_problems}[str(game["form"])](game, policy)
    costs = np.zeros(len(limits))
    for i, (problem, totals, spent) in enumerate(problems):
        costs = totals
        value = backward(problem, policy[i], np.zeros(len(limits)))[0]
        bound = backward(problem, None, prices[i])[0] + prices[i] @ (limits - spent)
        print(f"agent {i}: value {value:.9g}, gains at most {bound - value:.3g}")
    for j, limit in enumerate(limits):
        print(f"constraint {j}: cost {costs[j]:.9g}, limit {limit:.9g}")


def backward(problem: list[Array], table: Array | None, prices: Array) -> Array:
    """Return the value of r − λ·c under a policy, or the greatest there is, and the costs of the policy."""
    transition, reward, costs, initial = problem
    ahead = np.zeros((1 + len(costs), len(initial)))
    for h in reversed(range(len(reward))):
        stage = np.stack([reward[h] - np.tensordot(prices, costs[:, h], 1), *costs[:, h]])
        worth = stage + np.einsum("sax,vx->vsa", transition[h], ahead)
        chosen = np.eye(worth.shape[2])[worth[0].argmax(axis=1)] if table is None else table[h]
        ahead = (worth * chosen).sum(axis=2)
    return ahead @ initial


def joint_problems(game: dict[str, Array], policy: list[Array]) -> Any:
    """Average a joint game over what the others play, for each agent in turn."""
    horizon, states = policy[0].shape[:2]
    choices = [table.shape[2] for table in policy]
    rewards, costs = (stretch(game[name], horizon) for name in ("rewards", "costs"))
    if "transition" in game:
        moves = stretch(game["transition"][None], horizon)[0]
    else:
        csr = [game[f"transition_{part}"] for part in ("indptr", "indices", "data")]
        moves = stretch(dense(csr, states).reshape(1, -1, states, *choices, states), horizon)[0]
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


def local_problems(game: dict[str, Array], policy: list[Array]) -> Any:
    """Charge each agent of a local game with what it meets on the resources, and adds to the costs there."""
    horizon, agents = int(game["horizon"]), range(len(policy))
    delay, loads = stretch(game["delay"][None], horizon)[0], stretch(game["load_cost"], horizon)
    worlds = [own_world(game, i, policy[i].shape) for i in agents]
    used = [np.einsum("hsa,hsae->he", forward(worlds[i], policy[i]), worlds[i][4]) for i in agents]
    private = [backward(worlds[i][:4], policy[i], np.zeros(len(loads)))[1:] for i in agents]
    for i in agents:
        moves, reward, costs, initial, uses = worlds[i]
        others = chances([used[j] for j in agents if j != i])
        meets = np.einsum("mhe,hem->he", others, delay[..., 1:])
        adds = np.einsum("mhe,khem->khe", others, np.diff(loads, axis=-1))
        without = np.einsum("mhe,khem->k", others, loads[..., :-1]) + sum(private[j] for j in agents if j != i)
        reward = reward - np.einsum("hsae,he->hsa", uses, meets)
        problem = [moves, reward, costs + np.einsum("hsae,khe->khsa", uses, adds), initial]
        yield problem, backward(problem, policy[i], np.zeros(len(loads)))[1:] + without, without


def own_world(game: dict[str, Array], agent: int, shape: tuple[int, ...]) -> list[Array]:
    """Return transition, reward, costs, initial states and used resources of one agent of a local game."""
    horizon, states, actions = shape
    like = int(game["like"][agent]) if "like" in game else agent
    csr = [game[f"transition_{like}_{part}"] for part in ("indptr", "indices", "data")]
    use = [game[f"use_{like}_indptr"], game[f"use_{like}_indices"], np.ones(len(game[f"use_{like}_indices"]))]
    moves = dense(csr, states).reshape(1, -1, states, actions, states)
    uses = dense(use, game["delay"].shape[1]).reshape(1, -1, states, actions, game["delay"].shape[1])
    reward = game.get(f"reward_{agent}", game[f"reward_{like}"])
    costs = game.get(f"cost_{like}", np.zeros((len(game["thresholds"]), 1, states, actions)))
    tables = [stretch(table, horizon) for table in (moves, reward[None], costs, uses)]
    return [tables[0][0], tables[1][0], tables[2], game[f"initial_{agent}"], tables[3][0]]


def forward(world: list[Array], table: Array) -> Array:
    """Return the probability of each (step, state, action) under a policy."""
    visits, present = np.zeros_like(table), world[3]
    for h in range(len(table)):
        visits[h] = present[:, None] * table[h]
        present = np.einsum("sa,sax->x", visits[h], world[0][h])
    return visits


def chances(used: list[Array]) -> Array:
    """Return the probability that m of these agents use a resource: [m, step, resource]."""
    result = np.ones((1, *used[0].shape)) if used else np.ones((1, 1, 1))
    for use in used:
        longer = np.zeros((len(result) + 1, *use.shape))
        longer[:-1] = result * (1 - use)
        longer[1:] += result * use
        result = longer
    return result


def stretch(table: Array, horizon: int) -> Array:
    """Repeat a stationary table [x, 1, …] over all steps, without a copy."""
    return np.broadcast_to(table, (len(table), horizon, *table.shape[2:]))


def dense(csr: list[Array], columns: int) -> Array:
    """Return a matrix from its CSR arrays."""
    rows = np.repeat(np.arange(len(csr[0]) - 1), np.diff(csr[0]))
    matrix = np.zeros((len(csr[0]) - 1, columns))
    np.add.at(matrix, (rows, csr[1]), csr[2])
    return matrix


if __name__ == "__main__":
    main()
