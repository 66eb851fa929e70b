"""Joint games: whole solves beside the NumPy twin, and all induced CMDPs of 8 agents against a plain Python loop.

Prints both times and their ratio, compares the answers, and sets the peak memory beside the size of the game's tables.
"""

from __future__ import annotations

import time
import tracemalloc
from itertools import product
from math import prod
from statistics import median

import numpy as np

from checks.bench.cmdp import afresh, beside_twin
from checks.bench.outcome import Outcome
from cmpg.equilibrium.solve import solve
from cmpg.games.joint.game import JointGame
from cmpg.games.potential.check import check_potential
from cmpg.policy import JointPolicy
from cmpg.scenarios import congestion_game, congestion_game_exogenous


def loop_over_joint_actions(game: JointGame, policy: JointPolicy) -> list[np.ndarray]:
    """Return, for each agent, reward, cost and transition side by side: [H, S, A_i, 2 + S]."""
    agents, states, actions = game.num_agents, game.num_states, game.num_actions
    rewards, costs, transition = game.rewards.tolist(), game.costs.tolist(), game.transition.tolist()
    tables = [table.tolist() for table in policy]
    induced = [np.zeros((game.horizon, states, count, 2 + states)).tolist() for count in actions]

    def entry(table, joint):
        for action in joint:
            table = table[action]
        return table

    for joint in product(*map(range, actions)):
        for s in range(states):
            cost, ahead = entry(costs[0][0][s], joint), entry(transition[0][s], joint)
            own = [entry(rewards[i][0][s], joint) for i in range(agents)]
            for h in range(game.horizon):
                chances = [tables[i][h][s][joint[i]] for i in range(agents)]
                for i in range(agents):
                    weight = prod(chances[:i]) * prod(chances[i + 1 :])
                    cell = induced[i][h][s][joint[i]]
                    cell[0] += weight * own[i]
                    cell[1] += weight * cost
                    for target in range(states):
                        cell[2 + target] += weight * ahead[target]
    return [np.array(each) for each in induced]


def all_induced(game: JointGame, policy: JointPolicy) -> list[np.ndarray]:
    position = game.at(policy)
    cmdps = [position.induced_cmdp(agent) for agent in range(game.num_agents)]
    return [
        np.concatenate([cmdp.reward[..., None], cmdp.costs[0][..., None], cmdp.transition], axis=-1) for cmdp in cmdps
    ]


def random_team(seed: int, *, states: int, actions: int = 4, agents: int = 3, horizon: int = 20) -> JointGame:
    """Dense Dirichlet rows, a common reward, and a threshold that binds."""
    rng, shape = np.random.default_rng(seed), (states, *[actions] * agents)
    reward = rng.random((1, 1, *shape))
    return JointGame(
        transition=rng.dirichlet(np.ones(states), size=shape)[None],
        rewards=np.repeat(reward, agents, axis=0),
        costs=rng.random((1, 1, *shape)),
        thresholds=[0.45 * horizon],
        initial=np.full(states, 1 / states),
        horizon=horizon,
    )


def whole_solves(quick: bool) -> list[Outcome]:
    """Solve large joint games to a certificate; the second seed is one that nothing was tuned on."""
    outcomes, states = [], 40 if quick else 200
    for seed in (0, 7):
        game = random_team(seed, states=states)
        seconds, twin = beside_twin(lambda game=game: solve(afresh(game), epsilon=1e-6), rounds=2)
        tracemalloc.start()
        result = solve(random_team(seed, states=states), epsilon=1e-6)
        peak = tracemalloc.get_traced_memory()[1] / 1e9
        tracemalloc.stop()
        size = (game.rewards.nbytes + game.costs.nbytes + game.transition.nbytes) / 1e9
        name = f"joint, S={states} A=4³ H=20{'' if seed == 0 else f', seed {seed}'}"
        print(f"{name}: {seconds:.2f} s ({twin:.2f} s by the NumPy twin), {result.status.name}")
        print(f"  peak {peak:.3f} GB beside tables of {size:.3f} GB", flush=True)
        aims = (None, None) if quick else (0.8, 0.15)
        outcomes += [
            Outcome(f"{name}: seconds of the processor", seconds, aims[0], unit="s", at_most=True),
            Outcome("  certified (1) or not (0)", float(result.certified), 1.0, unit=""),
            Outcome("  against the NumPy twin", twin / seconds),
            Outcome("  peak memory, the game included", peak, aims[1], unit="GB", at_most=True),
        ]
    return outcomes


def main(quick: bool) -> list[Outcome]:
    game, rng = congestion_game(), np.random.default_rng(0)
    repeats = 10 if quick else 50
    policies = [game.random_policy(rng=rng) for _ in range(repeats)]
    all_induced(game, policies[0])
    fast = median(_seconds(lambda policy=policy: all_induced(game, policy)) for policy in policies)
    start = time.process_time()
    by_loop = loop_over_joint_actions(game, policies[0])
    slow = time.process_time() - start
    pairs = zip(all_induced(game, policies[0]), by_loop, strict=True)
    difference = max(float(np.abs(found - expected).max()) for found, expected in pairs)
    peak, tables = _peak_bytes(game, policies[1])
    print("congestion game, 8 agents: all 8 induced CMDPs of one position")
    print(f"  Python loop over 65,536 joint actions  {slow:10.3f} s")
    print(f"  contraction, median of {repeats:<3d}             {1e3 * fast:10.3f} ms")
    print(f"  ratio                                  {slow / fast:10.0f} ×")
    print(f"  largest difference of an entry         {difference:10.1e}")
    print(f"  extra peak memory over the tables      {peak / tables:10.3f}")
    for name, other in (("congestion", game), ("congestion-exogenous", congestion_game_exogenous())):
        seconds = _seconds(lambda other=other: check_potential(other, rng=np.random.default_rng(0)))
        print(f"  check_potential of {name:<20s}{1e3 * seconds:10.1f} ms")
    return [
        *whole_solves(quick),
        Outcome("all induced CMDPs of 8 agents, against a Python loop", slow / fast, 1000),
        Outcome("  memory beside the tables of the game", peak / tables, 1, unit="times", at_most=True),
        Outcome("  largest difference of an entry", difference, 1e-9, unit="", at_most=True),
    ]


def _seconds(call) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _peak_bytes(game: JointGame, policy: JointPolicy) -> tuple[int, int]:
    """Return what one position adds to memory at its peak, and the bytes of the game's tables."""
    tracemalloc.start()
    all_induced(game, policy)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, game.rewards.nbytes + game.costs.nbytes + game.transition.nbytes
