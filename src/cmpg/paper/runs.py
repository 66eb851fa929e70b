"""The experiments of Section 7 again: all runs of the grid world and of the congestion game.

The grid world: two information structures (the text lets policies see the joint state, the published experiment lets
each agent see its own cell), two kinds of start (of cost 0, as in the text: one agent waits, the other moves at random;
or random and feasible), three fillings of rows that are never visited; and the ways that agents take.

The congestion game: the end of a run is described by how many agents play what, at both steps and in both states. The
figure's ending has four C and four D at step 1 in both states, and eight D at step 2. Its mirror spends the budget at
step 1: in `unsafe` the two steps are exchanged. And 4-cycles that no potential survives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray, IntArray
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.linear_program import LinearProgram
from cmpg.cmdp.primal_dual import PrimalDual
from cmpg.equilibrium.best_responses import certify_with_best_responses
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.equilibrium.starts.start import random_start
from cmpg.errors import GameError
from cmpg.games.game import Game
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalGame
from cmpg.games.local.to_joint import lift_policy, to_joint
from cmpg.games.potential.check import FourCycle, recheck
from cmpg.paper.algorithm_3 import AveragedPrimalDual, UniformFill
from cmpg.paper.claims import PAPER_ASCENT, AscentRun, Evidence, Start, run_many
from cmpg.policy import JointPolicy
from cmpg.scenarios.paper import MOVES, congestion_game, grid_world, grid_world_local

# The grid world.

GRID_ALPHA = 0.1
GRID_OPTIMUM = 23.1
MULTIPLIER_BOUND = 240.0
"""The bound U of the averaged primal-dual loop: twice what the best response is worth, 12, over the slack ζ = 0.1."""

AVERAGED_STEPS = 10**10
"""The number of iterations T of that loop."""

PRIMAL_DUAL_EPSILON = 1e-2


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
    local_primal_dual: tuple[AscentRun, ...]  # the paper's solver, repaired, from starts of cost 0
    infeasible_runs: int  # of the averaged primal-dual loop, which is not repaired: the ascent refuses an answer


def run_grid_worlds(evidence: Evidence) -> GridRuns:
    """Run every variant."""
    joint, local, effort = grid_world(), grid_world_local(), evidence.effort
    shared: dict[str, Any] = {"common_value": True, "count": effort.joint_runs}
    own: dict[str, Any] = {"count": effort.own_cell_runs}
    name, own_name = "grid world, joint state: ", "grid world, own cell: "
    runs = partial(run_many, evidence)
    plain = replace(PAPER_ASCENT, complete_off_path=False)
    first: dict[str, Any] = {"random_ties": False, **own}
    loop = replace(PAPER_ASCENT, solver=AveragedPrimalDual(AVERAGED_STEPS, MULTIPLIER_BOUND))
    averaged = runs(local, one_waits, what=own_name + "primal-dual, not repaired", method=loop, epsilon=0.1, **first)
    return GridRuns(
        joint=joint,
        local=local,
        joint_waiting=runs(joint, one_waits, what=name + "starts of cost 0", **shared),
        joint_random=runs(joint, random_feasible(joint), what=name + "random starts", **shared),
        joint_safe_fill=runs(joint, one_waits, what=name + "not polished", method=plain, **shared),
        joint_uniform_fill=runs(
            joint, one_waits, what=name + "uniform rows", method=replace(plain, solver=UniformFill()), **shared
        ),
        local_waiting=runs(local, one_waits, what=own_name + "starts of cost 0", **own),
        local_first_action=runs(local, one_waits, what=own_name + "first action wins ties", **first),
        local_random=runs(local, random_feasible(local), what=own_name + "random starts", **own),
        local_primal_dual=runs(
            local,
            one_waits,
            what=own_name + "primal-dual",
            count=effort.solver_runs,
            method=replace(PAPER_ASCENT, solver=PrimalDual(tolerance=PRIMAL_DUAL_EPSILON / 10)),
            epsilon=PRIMAL_DUAL_EPSILON,
        ),
        infeasible_runs=sum(run.result.refused > 0 for run in averaged),
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


def grid_figure_policy(game: LocalGame) -> JointPolicy:
    """Return the policy of the paper's figure: agent 1 along the bottom; agent 2 up with 0.9, right and up with 0.1."""
    below = always(game, ["right", "right", "right", "up", "up", "right"])
    above = always(game, ["up", "up", "right", "right", "right", "right"])
    start, right_of_start = 0, 1
    above[0, start] = 0.9 * np.eye(len(MOVES))[0] + 0.1 * np.eye(len(MOVES))[1]
    # From the cell right of the start the way leads up twice; the other agent is two steps along it by then.
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
        if abs(run.potential - GRID_OPTIMUM) > 1e-6:
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

MAX_WAYS = 2000
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
        if len(ways) > MAX_WAYS:
            raise GameError(f"the policy has more than {MAX_WAYS} ways; it still mixes at random.")
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


# The congestion game.

CONGESTION_EPSILON = 1e-3
"""Values are of the order of 100. Agents without slack have multipliers of 1e6 and more, and so much rounding beside
them that a smaller ε could not be certified in a few per cent of the runs."""

SAFE, UNSAFE = 0, 1
SPLIT, ALL_D, SPREAD = (0, 0, 4, 4), (0, 0, 0, 8), (2, 2, 2, 2)
ALIKE = 1e-4
"""Counts of agents that differ by less than this are the same."""

FIGURE, MIRROR, COSTLESS, OTHER = "the figure's", "its mirror", "2/2/2/2 in unsafe, no cost", "others"
ENDINGS = (FIGURE, MIRROR, COSTLESS, OTHER)


@dataclass(frozen=True, eq=False)
class CongestionRuns:
    """All runs of the congestion game."""

    game: JointGame  # cost at every step
    first_step: JointGame  # cost at the first step only
    simplex: tuple[AscentRun, ...]  # every row of the start is drawn uniformly from the simplex
    normalised: tuple[AscentRun, ...]  # every row of the start is uniform numbers, divided by their sum
    costless: tuple[AscentRun, ...]  # every row of the start plays one action for sure, and the cost is 0
    linear_program: tuple[AscentRun, ...]  # the paper's solver
    vacuous: tuple[AscentRun, ...]  # cost at the first step only


def run_congestion_games(evidence: Evidence) -> CongestionRuns:
    """Run both variants of the cost, three ways to draw a start, and the paper's solver."""
    game, first_step = congestion_game(), congestion_game(cost_at="first step")
    name, effort = "congestion game: ", evidence.effort
    runs = partial(run_many, evidence, epsilon=CONGESTION_EPSILON)
    many = partial(runs, game, count=effort.congestion_runs)
    solved = partial(runs, method=replace(PAPER_ASCENT, solver=LinearProgram()), count=effort.solver_runs)
    return CongestionRuns(
        game=game,
        first_step=first_step,
        simplex=many(from_simplex, what=name + "starts from the simplex"),
        normalised=many(normalised, what=name + "normalised starts"),
        costless=many(without_cost, what=name + "starts of cost 0"),
        linear_program=solved(game, from_simplex, what=name + "linear programs"),
        vacuous=runs(first_step, from_simplex, count=effort.congestion_plots, what=name + "cost at the first step"),
    )


def from_simplex(game: Game, rng: np.random.Generator) -> JointPolicy:
    """Draw every row uniformly from the simplex."""
    return JointPolicy.random(game.policy_shapes, rng=rng)


def normalised(game: Game, rng: np.random.Generator) -> JointPolicy:
    """Draw uniform numbers, and divide every row by its sum: such rows are nearer to even."""
    tables = [rng.random(shape) for shape in game.policy_shapes]
    return JointPolicy(tuple(table / table.sum(axis=-1, keepdims=True) for table in tables))


def without_cost(game: Game, rng: np.random.Generator) -> JointPolicy:
    """Draw deterministic policies until one costs nothing: about three in four do."""
    while True:
        tables = [np.eye(shape[-1])[rng.integers(shape[-1], size=shape[:-1])] for shape in game.policy_shapes]
        policy = JointPolicy(tuple(tables))
        if game.at(policy).costs[0] == 0:
            return policy


def action_counts(policy: JointPolicy) -> FloatArray:
    """Return how many agents play each action on average: [H, S, A]."""
    return np.asarray(np.sum([np.asarray(table) for table in policy], axis=0))


def ending_of(policy: JointPolicy) -> str:
    """Name an ending by its counts."""
    counts = action_counts(policy)
    if not (_alike(counts[0, SAFE], SPLIT) and _alike(counts[1, SAFE], ALL_D)):
        return OTHER
    if _alike(counts[0, UNSAFE], SPLIT) and _alike(counts[1, UNSAFE], ALL_D):
        return FIGURE
    if _alike(counts[0, UNSAFE], ALL_D) and _alike(counts[1, UNSAFE], SPLIT):
        return MIRROR
    return COSTLESS if _alike(counts[0, UNSAFE], SPREAD) else OTHER


def endings_of(runs: Sequence[AscentRun]) -> list[int]:
    """Count the endings, in the order of `ENDINGS`."""
    counts = Counter(ending_of(run.policy) for run in runs)
    return [counts[kind] for kind in ENDINGS]


def _alike(counts: FloatArray, expected: Sequence[int]) -> bool:
    return bool(np.abs(counts - np.array(expected)).max() <= ALIKE)


def crowd_policy(first: Sequence[Sequence[int]], second: Sequence[Sequence[int]]) -> JointPolicy:
    """Return the deterministic policy by which agent i plays first[s][i] at step 1 and second[s][i] at step 2."""
    choices = np.array([first, second])
    return JointPolicy(tuple(np.eye(4)[choices[:, :, agent]] for agent in range(choices.shape[2])))


def congestion_figure_policy() -> JointPolicy:
    """Return the policy of the paper's figure: four C and four D at step 1 in both states, eight D at step 2."""
    split = [2] * 4 + [3] * 4
    return crowd_policy([split, split], [[3] * 8] * 2)


A, B, D = 0, 1, 3


def witness_by_hand() -> FourCycle:
    """Evaluate the 4-cycle that can be checked by hand: two agents, two steps, from `safe`, no penalty.

    j plays A at step 1. i plays A, which leads to `unsafe`, or B, which stays in `safe`. At step 2 all play A, except
    that j in `unsafe` plays A or D.
    """
    game = congestion_game(num_agents=2, unsafe_penalty=0.0, initial=(1.0, 0.0))
    everything_a = np.zeros((2, 2, 4))
    everything_a[..., A] = 1.0
    new_i, new_j = everything_a.copy(), everything_a.copy()
    new_i[0] = np.eye(4)[B]
    new_j[1, UNSAFE] = np.eye(4)[D]
    cycle = FourCycle((0, 1), JointPolicy((everything_a, everything_a)), (new_i, new_j), np.nan, 0.0)
    values = np.array([game.at(corner).values for corner in cycle.corners])
    return replace(cycle, values=values, residual=float(recheck(game, cycle)))


def largest_cycle(game: JointGame, *, proposals: int, rng: np.random.Generator) -> FourCycle:
    """Climb to a 4-cycle of the agents 0 and 1 with a large residual: change one deterministic choice at a time, and
    keep what is not worse. At the end the game itself evaluates it.

    Transitions must be deterministic, so that the values of a proposal are a few table look-ups.
    """
    agents, actions = game.num_agents, game.num_actions[0]
    # One row of choices per agent, then the other policies of agents 0 and 1: [n + 2, H, S].
    choices = rng.integers(actions, size=(agents + 2, game.num_steps, game.num_states))
    best = _residual(game, choices)
    for _ in range(proposals):
        place = tuple(int(rng.integers(length)) for length in choices.shape)
        before = choices[place]
        choices[place] = rng.integers(actions)
        found = _residual(game, choices)
        if abs(found) >= abs(best):
            best = found
        else:
            choices[place] = before
    tables = np.eye(actions)[choices]
    cycle = FourCycle((0, 1), JointPolicy(tuple(tables[:agents])), (tables[agents], tables[agents + 1]), best, 1e-9)
    return replace(cycle, residual=float(recheck(game, cycle)))


def _residual(game: JointGame, choices: IntArray) -> float:
    """The residual of a deterministic 4-cycle, by following the four corners through the tables."""
    total = 0.0
    others = choices[2 : game.num_agents]
    old, new = choices[:2], choices[game.num_agents :]
    for sign, own in ((1, (old[0], old[1])), (-1, (new[0], old[1])), (1, (new[0], new[1])), (-1, (old[0], new[1]))):
        gains = _values_of_two(game, np.array([*own, *others]))
        total += sign * (gains[1] - gains[0])
    return total


def _values_of_two(game: JointGame, choices: IntArray) -> FloatArray:
    """V of the agents 0 and 1 under deterministic choices [n, H, S]."""
    values = np.zeros(2)
    for first in np.flatnonzero(game.initial):
        state, weight = int(first), float(game.initial[first])
        for step in range(game.num_steps):
            joint = (state, *choices[:, step, state].tolist())
            values += weight * game.rewards[:2, 0][(slice(None), *joint)]
            state = int(game.transition[(0, *joint)].argmax())
    return values
