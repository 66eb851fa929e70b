"""The runs of the grid world, the policies that the paper and its experiment name, and the ways that agents take.

Two information structures (the text lets policies see the joint state, the published experiment lets each agent see its
own cell), two kinds of start (of cost 0, as in the text: one agent waits, the other moves at random; or random and
feasible), and three fillings of rows that are never visited.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.exact import Exact
from cmpg.equilibrium.best_responses import certify_with_best_responses
from cmpg.equilibrium.start import feasible_start, random_start
from cmpg.errors import GameError
from cmpg.games.contract import Game
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalGame
from cmpg.games.local.to_joint import lift_policy, to_joint
from cmpg.paper.algorithm_3 import AveragedPrimalDual, UniformFill
from cmpg.paper.evidence import AscentRun, Evidence, Start, count_infeasible_runs, run_many
from cmpg.policy import JointPolicy
from cmpg.scenarios.paper import MOVES, grid_world, grid_world_local

ALPHA = 0.1
OPTIMUM = 23.1
MULTIPLIER_BOUND = 240.0
"""U of the averaged primal-dual loop: twice what the best response is worth, 12, over the slack ζ = 0.1."""


@dataclass(frozen=True, eq=False)
class GridRuns:
    """All runs, by information structure and variant."""

    joint: JointGame
    local: LocalGame
    joint_waiting: tuple[AscentRun, ...]  # polished, from starts of cost 0
    joint_random: tuple[AscentRun, ...]  # polished, from random feasible starts
    joint_safe_fill: tuple[AscentRun, ...]  # not polished, from starts of cost 0
    joint_uniform_fill: tuple[AscentRun, ...]  # the paper's equation, from starts of cost 0
    local_waiting: tuple[AscentRun, ...]  # random ties, from starts of cost 0
    local_first_action: tuple[AscentRun, ...]  # the first action wins ties, from starts of cost 0
    local_random: tuple[AscentRun, ...]  # random ties, from random feasible starts
    infeasible_runs: int  # of the averaged primal-dual loop


def run_grid_worlds(evidence: Evidence) -> GridRuns:
    """Run every variant."""
    joint, local, effort = grid_world(), grid_world_local(), evidence.effort
    shared: dict[str, Any] = {"common_value": True, "count": effort.grid_runs}
    own: dict[str, Any] = {"count": effort.own_cell_runs}
    name, own_name = "grid world, joint state: ", "grid world, own cell: "
    runs = partial(run_many, evidence)
    plain: dict[str, Any] = {"polish": False, **shared}
    first: dict[str, Any] = {"random_ties": False, **own}
    return GridRuns(
        joint=joint,
        local=local,
        joint_waiting=runs(joint, one_waits, what=name + "starts of cost 0", **shared),
        joint_random=runs(joint, random_feasible(joint), what=name + "random starts", **shared),
        joint_safe_fill=runs(joint, one_waits, what=name + "not polished", **plain),
        joint_uniform_fill=runs(joint, one_waits, what=name + "uniform rows", solver=UniformFill(), **plain),
        local_waiting=runs(local, one_waits, what=own_name + "starts of cost 0", **own),
        local_first_action=runs(local, one_waits, what=own_name + "first action wins ties", **first),
        local_random=runs(local, random_feasible(local), what=own_name + "random starts", count=effort.grid_runs),
        infeasible_runs=count_infeasible_runs(
            evidence,
            local,
            one_waits,
            count=effort.grid_runs,
            what="grid world: the paper's primal-dual, unrepaired",
            solver=AveragedPrimalDual(effort.primal_dual_steps, MULTIPLIER_BOUND),
            epsilon=0.1,
        ),
    )


def always(game: Game, moves: list[str]) -> FloatArray:
    """Return the table by which an agent makes one move per step, wherever it is: [H, S, A]."""
    _, states, actions = game.policy_shapes[0]
    numbers = np.array([list(MOVES).index(move) for move in moves])
    return np.asarray(np.eye(actions)[np.repeat(numbers[:, None], states, axis=1)])


def waiting(game: Game) -> FloatArray:
    """Return the table by which an agent walks into the wall below the start for ever: [H, S, A]."""
    return always(game, ["down"] * (game.horizon or 1))


def one_waits(game: Game, rng: np.random.Generator) -> JointPolicy:
    """Draw a start of cost 0: one agent, drawn too, waits at the start for ever, the other moves at random."""
    return JointPolicy.random(game.policy_shapes, rng=rng).replace(int(rng.integers(2)), waiting(game))


def random_feasible(game: Game) -> Start:
    """Return what draws random policies, moved towards a safe one until they are feasible."""
    safe = feasible_start(game).policy
    assert safe is not None

    def draw(each: Game, rng: np.random.Generator) -> JointPolicy:
        return random_start(each, safe, rng=rng)

    return draw


def figure_policy(game: LocalGame) -> JointPolicy:
    """Return the policy of the paper's figure: agent 1 along the bottom; agent 2 up with 0.9, right and up with 0.1."""
    below = always(game, ["right", "right", "right", "up", "up", "right"])
    above = always(game, ["up", "up", "right", "right", "right", "right"])
    start, right_of_start = 0, 1
    above[0, start] = 0.9 * np.eye(len(MOVES))[0] + 0.1 * np.eye(len(MOVES))[1]
    # From the cell right of the start the way leads up twice; everybody else is two steps along it by then.
    above[1, right_of_start] = np.eye(len(MOVES))[0]
    above[2, right_of_start + 4] = np.eye(len(MOVES))[0]
    return JointPolicy((below, above))


def second_best_policy(game: LocalGame) -> JointPolicy:
    """Return a Nash policy worth 20.4: agent 1 goes right, up, up, right, right; agent 2 answers as well as it can."""
    route = always(game, ["right", "up", "up", "right", "right", "right"])
    start = JointPolicy((route, waiting(game)))
    return start.replace(1, Exact()(game.at(start).induced_cmdp(1)).policy)


def shown_ways(game: JointGame, local: LocalGame, runs: tuple[AscentRun, ...]) -> tuple[JointWay, ...]:
    """Return the ways of the run, among those that end at the optimum, with the fewest of them."""
    found: list[tuple[JointWay, ...]] = []
    for run in runs:
        if abs(run.potential - OPTIMUM) > 1e-6:
            continue
        policy = run.policy if run.policy.shapes == game.policy_shapes else lift_policy(local, run.policy)
        try:
            found.append(joint_ways(game, policy))
        except GameError:
            continue
    return min(found, key=lambda ways: sum(len(agent_ways(ways, agent)) for agent in (0, 1)), default=())


def joint_state_gaps(evidence: Evidence) -> FloatArray:
    """Return what an agent gains at own-cell endings by a deviation that sees both cells; rare endings first."""
    found = evidence.of(run_grid_worlds)
    joint = to_joint(found.local)
    kinds = Counter(round(run.potential, 6) for run in found.local_waiting)
    rare_first = sorted(found.local_waiting, key=lambda run: kinds[round(run.potential, 6)])
    tried = rare_first[: evidence.effort.deviation_checks]
    gaps = []
    for number, run in enumerate(tried, 1):
        gaps.append(certify_with_best_responses(joint, lift_policy(found.local, run.policy)).epsilon)
        evidence.tick("grid world, own cell: deviations that see both cells", number, len(tried))
    return np.array(gaps)


NEVER = 1e-9
"""Joint actions with less probability than this are rounding."""

MOST_WAYS = 2000
"""A policy that still mixes at random has more ways than can be listed."""


@dataclass(frozen=True)
class Way:
    """The cells of one agent in order, without repeats, and how likely it goes that way."""

    cells: tuple[int, ...]
    probability: float


@dataclass(frozen=True)
class JointWay:
    """The cells of both agents at every step, and how likely that is."""

    cells: tuple[tuple[int, int], ...]
    probability: float


def joint_ways(game: JointGame, policy: JointPolicy) -> tuple[JointWay, ...]:
    """List what can happen under a joint-state policy of the grid world, whose moves are deterministic.

    Raises GameError where there are too many ways to list.
    """
    cells = round(game.num_states**0.5)
    ways: list[tuple[tuple[int, ...], float]] = [((int(state),), 1.0) for state in np.flatnonzero(game.initial)]
    for step in range(game.num_steps - 1):
        ways = [
            ((*path, after), before * probability)
            for path, before in ways
            for after, probability in _moves(game, policy, step, path[-1])
        ]
        if len(ways) > MOST_WAYS:
            raise GameError(f"the policy has more than {MOST_WAYS} ways; it still mixes at random.")
    return tuple(JointWay(tuple(divmod(state, cells) for state in path), each) for path, each in ways)


def _moves(game: JointGame, policy: JointPolicy, step: int, state: int) -> list[tuple[int, float]]:
    """The next states of one state, with the probability that the agents choose them."""
    probabilities = np.outer(policy[0][step, state], policy[1][step, state])
    matrix = game.transition[0]
    found: dict[int, float] = {}
    for a, b in zip(*np.nonzero(probabilities > NEVER), strict=True):
        row = (state * game.num_actions[0] + a) * game.num_actions[1] + b
        after = int(matrix.indices[matrix.indptr[row]])
        found[after] = found.get(after, 0.0) + float(probabilities[a, b])
    return list(found.items())


def agent_ways(ways: tuple[JointWay, ...], agent: int) -> tuple[Way, ...]:
    """Gather the ways of one agent, the likeliest first."""
    gathered: dict[tuple[int, ...], float] = {}
    for way in ways:
        own = tuple(pair[agent] for pair in way.cells)
        kept = tuple(cell for number, cell in enumerate(own) if number == 0 or cell != own[number - 1])
        gathered[kept] = gathered.get(kept, 0.0) + way.probability
    ranked = sorted(gathered.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Way(cells, probability) for cells, probability in ranked)


def collision_probability(ways: tuple[JointWay, ...], *, free: tuple[int, ...]) -> float:
    """Return how likely the agents ever stand on one cell other than the free ones."""
    return sum(way.probability for way in ways if any(one == two and one not in free for one, two in way.cells))
