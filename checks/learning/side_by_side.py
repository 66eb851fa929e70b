"""Old and new bounds at the same number of samples per entry: a box around the kernel, against optimism without boxes.

Each is given the same draws of a random CMDP and the same δ. The gap is the upper bound on the best value, less the
value that is proved of a policy that is proved feasible. The new way also rolls out episodes: a quarter more samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cmpg.cmdp.box import optimistic_response
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import plan
from cmpg.errors import InfeasibleError
from cmpg.games.joint.game import JointGame
from cmpg.learning.confidence import empirical_cmdp, estimate
from cmpg.learning.generative import cost_variances, tightened_candidate
from cmpg.learning.optimism import Draws, Measurement, Optimism
from cmpg.learning.problem import InducedProblem
from cmpg.learning.samples import Samples
from cmpg.learning.simulator import GameSimulator

DELTA = 0.1
SIZES = ((5, 3, 4), (20, 4, 6), (50, 4, 10))
COUNTS = (4096, 16384, 65536)
SEEDS = 3


@dataclass(frozen=True)
class Pair:
    """The mean gaps of both ways; infinite where no policy was proved to be feasible."""

    states: int
    actions: int
    horizon: int
    count: int  # samples of every entry
    box: float
    draws: float


def compare() -> Iterator[Pair]:
    """Measure both ways on random CMDPs of three sizes."""
    for states, actions, horizon in SIZES:
        cmdps = [random_cmdp(states, actions, horizon, seed) for seed in range(SEEDS)]
        for count in COUNTS:
            gaps = np.array([gaps_of(cmdp, count, seed) for seed, cmdp in enumerate(cmdps)])
            yield Pair(states, actions, horizon, count, *gaps.mean(axis=0))


def random_cmdp(states: int, actions: int, horizon: int, seed: int) -> CMDP:
    """Dirichlet ½ rows, uniform payoffs, and a threshold half-way between the cheapest and the selfish policy."""
    rng = np.random.default_rng(seed)
    shape = (horizon, states, actions)
    cmdp = CMDP(
        transition=rng.dirichlet(np.full(states, 0.5), size=shape),
        reward=rng.random(shape),
        costs=rng.random((1, *shape)),
        thresholds=[float(horizon)],
        initial=rng.dirichlet(np.ones(states)),
        horizon=horizon,
    )
    ends = [plan(cmdp, np.ones(1), reward_weight=0.0).costs[0], plan(cmdp, np.zeros(1)).costs[0]]
    return replace(cmdp, thresholds=np.array([np.mean(ends)]))


def hidden_game(cmdp: CMDP) -> JointGame:
    """Return the game of one agent that a CMDP is."""
    return JointGame(
        transition=cmdp.transition,
        rewards=cmdp.reward[None],
        costs=cmdp.costs,
        thresholds=cmdp.thresholds,
        initial=cmdp.initial,
        horizon=cmdp.horizon,
    )


def gaps_of(cmdp: CMDP, count: int, seed: int) -> tuple[float, float]:
    """Draw once, and return the gap by a box and the gap without."""
    game = hidden_game(cmdp)
    problem = InducedProblem(GameSimulator(game, rng=np.random.default_rng(seed)), 0, game.uniform_policy())
    samples = problem.draw(count)
    return _by_box(problem, samples), _by_draws(problem, samples, count)


def _by_box(problem: InducedProblem, samples: Samples) -> float:
    belief = estimate(problem, samples, delta=DELTA)
    found = tightened_candidate(belief)
    if not found.meets(problem.known.thresholds):
        return float("inf")
    return optimistic_response(belief.optimistic).bound - found.value_floor


def _by_draws(problem: InducedProblem, samples: Samples, count: int) -> float:
    empirical = empirical_cmdp(problem, samples)
    reward, costs = problem.payoffs
    known = problem.known
    optimism = Optimism(
        Draws(samples.transitions), reward, costs, known.thresholds, known.initial, np.ones(1), DELTA / 2
    )
    best = Exact()(empirical)
    ceiling = optimism.least_bound(best.multipliers).value
    episodes = count * samples.visits[:-1, ..., 0].size * samples.visits.shape[-1] / 4 / known.horizon
    model, chance = cost_variances(empirical, best.policy)
    room = 2 * np.sqrt(model / count) + np.sqrt(2 * 25 * chance / episodes)
    try:
        safer = Exact()(replace(empirical, thresholds=empirical.thresholds - room, trusted=True))
    except InfeasibleError:
        return float("inf")
    measured = Measurement(problem, safer.policy, empirical, delta=DELTA / 2)
    while measured.episodes + measured.next_batch <= episodes:
        measured.grow()
    feasible = np.all(measured.ceilings[1:] <= known.thresholds)
    return ceiling - float(measured.floors[0]) if feasible else float("inf")


if __name__ == "__main__":
    for pair in compare():
        size = f"S={pair.states} A={pair.actions} H={pair.horizon} N={pair.count}"
        print(f"{size}: box {pair.box:.4f}, draws {pair.draws:.4f}, ratio {pair.box / pair.draws:.2f}", flush=True)
