"""The best feasible policy of a one-shot cooperative game, with a proof: branch and bound over the agents' simplices.

The problem: maximise Σ_a r(a) w(a) subject to Σ_a c_j(a) w(a) ≤ α_j, where w(a) = Π_i π_i(a_i) is a product of the
agents' mixed actions. Only "w is a product" is not linear. A node of the search is a box l_i ≤ π_i ≤ u_i for every
agent. There, for two agents i and m, the product of non-negative factors such as π_i(a_i) − l_i(a_i) and u_m(a_m) −
π_m(a_m), times the probability of what the others play, is a sum of entries of w, and is not negative. All such rows
for all pairs make the linear relaxation; they imply l_i(a_i) w_{−i}(a_{−i}) ≤ w(a) ≤ u_i(a_i) w_{−i}(a_{−i}). Given
what the rest plays, two agents with boxes of widths δ and δ' can then correlate by δδ'/4 at most, so the error of a
node is quadratic in its width, and no cluster of nodes builds up around the optimum.

Guarantee: lower ≤ P* ≤ upper. `lower` is the value of a policy whose costs were evaluated. `upper` does not trust the
linear program: every row G w ≥ 0 is homogeneous, so for any duals y, λ ≥ 0 each feasible policy in the box is worth at
most λ·α + max_a (r + yᵀG − λᵀc)(a), which is computed from the tables and widened by what rounding can do to it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, count, product

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import UNIT_ROUNDOFF, FloatArray, IntArray
from cmpg.cmdp.exact import Exact, greatest_slack
from cmpg.cmdp.highs import LinearModel, propose
from cmpg.deadline import is_over
from cmpg.equilibrium.certificate import screen
from cmpg.equilibrium.loop import Answer, LoopLimit, Rules, take_turns
from cmpg.equilibrium.runs import uninterrupted
from cmpg.equilibrium.starts.start import is_feasible, worst_slack
from cmpg.errors import InfeasibleError, SolverError
from cmpg.games.claims import claim_of
from cmpg.games.joint.game import JointGame
from cmpg.games.joint.planner import marginals
from cmpg.games.joint.position import JointPosition
from cmpg.policy import JointPolicy
from cmpg.proof.check import check
from cmpg.proof.exact import MAX_WORK, exact_values
from cmpg.proof.verdict import rounded_up
from cmpg.summaries import fields_line

ESCAPE_PENALTY = 4.0
"""What a relaxation pays, in ranges of the reward, to meet the constraints by leaving the box altogether."""

ESCAPE_ROOM = 1e-4
"""How far below the thresholds the escape lies, relative to the costs: little, so that violations are expensive."""

MAX_JOINT_ACTIONS = 128
"""Larger one-shot games are not searched: a relaxation has a row for every pair of agents and joint action."""

NOISE = 1e-9
"""Less weight than this in a linear answer is its tolerance; kept, it would spend where there is no slack."""

Box = tuple[FloatArray, ...]
"""One array [2, A_i] per agent: the least and the greatest probability of each action."""


@dataclass(frozen=True, eq=False)
class PrimalBound:
    """lower ≤ P* ≤ upper, and a feasible policy that is worth `lower`.

    Examples
    --------
    >>> from cmpg.duality import primal_value
    >>> from cmpg.scenarios import counter_example
    >>> bound = primal_value(counter_example())
    >>> round(bound.lower, 4), bound.upper - bound.lower <= 1e-6
    (3.0858, True)
    """

    lower: float  # −∞ if no feasible policy was found
    upper: float
    policy: JointPolicy | None  # None if no feasible policy was found
    nodes: int  # boxes that were bounded; 0 if no search was made

    __repr__ = fields_line

    @property
    def gap(self) -> float:
        """How much better than the policy another one could be."""
        return self.upper - self.lower


def is_searchable(game: JointGame) -> bool:
    """Whether a game is a one-shot game that is small enough for branch and bound.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example, grid_world
    >>> is_searchable(counter_example()), is_searchable(grid_world())
    (True, False)
    """
    # Discounted games have tables of one step, too, and no last one.
    return game.horizon == 1 and game.num_states == 1 and math.prod(game.num_actions) <= MAX_JOINT_ACTIONS


def best_product_policy(game: JointGame, *, tolerance: float, max_nodes: int) -> PrimalBound:
    """Return P* of a one-shot game with a common reward, to within `tolerance`.

    The bounds are further apart if `max_nodes` are too few, or if the time is up; they hold all the same.

    Parameters
    ----------
    game
        One state, one step; agent 0's reward is maximised.
    tolerance
        How far apart the bounds may be.
    max_nodes
        Where to give up.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> bound = best_product_policy(counter_example(), tolerance=1e-6, max_nodes=5000)
    >>> round(bound.lower, 4), counter_example().at(bound.policy).costs.round(6)
    (3.0858, array([0.5]))
    """
    relaxation = _Relaxation.of(game)
    best = _Incumbent(-np.inf, None)
    whole: Box = tuple(np.stack([np.zeros(actions), np.ones(actions)]) for actions in game.num_actions)
    order = count()  # boxes with the same bound are taken in the order in which they came
    open_boxes = [(-relaxation.greatest, next(order), whole)]
    nodes = 0
    while open_boxes and -open_boxes[0][0] > best.value + tolerance and nodes < max_nodes and not is_over():
        parent, _, box = heapq.heappop(open_boxes)
        upper, weights = relaxation.bound(box)
        nodes += 1
        if upper < relaxation.floor:
            continue  # nothing in this box meets the constraints
        best = best.improved(game, weights)
        for half in _halves(box):
            heapq.heappush(open_boxes, (max(parent, -upper), next(order), half))
    upper = max(best.value, -open_boxes[0][0] if open_boxes else -np.inf)
    if upper == -np.inf:
        raise InfeasibleError(
            "no policy meets the constraints: every box of mixed actions was refuted. Raise the thresholds; agents who "
            "could correlate their actions might meet them as they are."
        )
    lower = -np.inf if best.policy is None else least_value(game, best.policy)
    return PrimalBound(lower=lower, upper=upper, policy=best.policy, nodes=nodes)


def least_value(game: JointGame, policy: JointPolicy) -> float:
    """Return what a policy is proved to be worth to agent 0 at least: its value, less its rounding."""
    claim = claim_of(game, policy, np.zeros((game.num_agents, game.num_constraints)))
    if claim.is_rational:
        return -rounded_up(-exact_values(claim, max_work=MAX_WORK)[0])
    with np.errstate(all="ignore"):  # what overflows proves nothing
        found = float(check(claim).values.lower[0])
    return found if math.isfinite(found) else -math.inf


@dataclass(frozen=True, eq=False)
class _Relaxation:
    """The part of the linear program that no box changes; rewards in [0, 1] and costs of order one."""

    reward: FloatArray  # [ΠA]
    costs: FloatArray  # [k, ΠA]
    thresholds: FloatArray  # [k]
    floor: float
    span: float
    num_actions: tuple[int, ...]
    joint: IntArray  # [ΠA, n]: the joint actions, in the order of the columns
    sums: dict[tuple[int, ...], FloatArray]  # [ΠA, ΠA]: row a sums w over the named agents' actions, the rest as in a

    @classmethod
    def of(cls, game: JointGame) -> _Relaxation:
        reward = game.rewards[0].ravel()
        floor, span = float(reward.min()), float(np.ptp(reward)) or 1.0
        costs = game.costs.reshape(game.num_constraints, reward.size)
        sizes = np.maximum(np.abs(costs).max(axis=1, initial=0.0), np.abs(game.thresholds))
        sizes = np.where(sizes > 0, sizes, 1.0)
        agents = range(game.num_agents)
        groups: list[tuple[int, ...]] = [(), *((i,) for i in agents), *combinations(agents, 2)]
        return cls(
            reward=(reward - floor) / span,
            costs=costs / sizes[:, None],
            thresholds=game.thresholds / sizes,
            floor=floor,
            span=span,
            num_actions=game.num_actions,
            joint=np.stack(np.unravel_index(np.arange(reward.size), game.num_actions), axis=1),
            sums={group: _summation(game.num_actions, group) for group in groups},
        )

    @property
    def greatest(self) -> float:
        """The greatest reward, with room for the rounding of floor and span."""
        return self.floor + self.span + 4 * UNIT_ROUNDOFF * (abs(self.floor) + self.span)

    def bound(self, box: Box) -> tuple[float, FloatArray]:
        """Return an upper bound on the value of every feasible policy in the box, and the relaxation's w [ΠA]."""
        rows = np.concatenate(list(self._rows(box)))
        # The escape is one more column that meets every constraint at a loss, so that the program is feasible.
        escape = np.concatenate([np.zeros((len(rows), 1)), self.thresholds[:, None] - ESCAPE_ROOM, np.ones((1, 1))])
        table = np.concatenate([-rows, self.costs, np.ones((1, self.reward.size))])
        model = LinearModel(
            objective=np.append(self.reward, -ESCAPE_PENALTY),
            matrix=sp.csc_array(np.hstack([table, escape])),
            lower=np.append(np.full(len(table) - 1, -np.inf), 1.0),
            upper=np.concatenate([np.zeros(len(rows)), self.thresholds, [1.0]]),
        )
        try:
            answer = propose(model)
        except SolverError:  # any duals give a bound, so a failure costs halvings and no more
            return self.greatest, np.ones(self.reward.size)
        return self._weak_duality(rows, np.maximum(answer.duals[:-1], 0.0)), answer.values[:-1]

    def _weak_duality(self, rows: FloatArray, duals: FloatArray) -> float:
        """Return λ·α + max_a (r + yᵀG − λᵀc)(a) for duals (y, λ), in the units of the game and widened by rounding."""
        row_duals, multipliers = duals[: len(rows)], duals[len(rows) :]
        worth = self.reward + row_duals @ rows - multipliers @ self.costs
        size = 1 + row_duals @ np.abs(rows) + multipliers @ np.abs(self.costs) + multipliers @ np.abs(self.thresholds)
        rounding = 4 * UNIT_ROUNDOFF * (len(duals) + 8) * float(size.max())
        scaled = float(multipliers @ self.thresholds + worth.max() + rounding)
        return self.floor + self.span * scaled + 4 * UNIT_ROUNDOFF * (abs(self.floor) + self.span * abs(scaled))

    def _rows(self, box: Box) -> Iterator[FloatArray]:
        """The rows G with G w ≥ 0 for every product policy in the box."""
        for i, (actions, bounds) in enumerate(zip(self.num_actions, box, strict=True)):
            played = (self.joint[:, i] == np.arange(actions)[:, None]).astype(np.float64)
            yield played - bounds[0][:, None]
            yield bounds[1][:, None] - played
        for i, j in combinations(range(len(box)), 2):
            for (sign_i, edge_i), (sign_j, edge_j) in product(_factors(box[i]), _factors(box[j])):
                at_i, at_j = edge_i[self.joint[:, i], None], edge_j[self.joint[:, j], None]
                pair = self.sums[()] - at_i * self.sums[(i,)] - at_j * self.sums[(j,)] + at_i * at_j * self.sums[(i, j)]
                yield sign_i * sign_j * pair


def _summation(num_actions: tuple[int, ...], agents: tuple[int, ...]) -> FloatArray:
    matrix: FloatArray = np.ones((1, 1))
    for i, a in enumerate(num_actions):
        matrix = np.asarray(np.kron(matrix, np.ones((a, a)) if i in agents else np.eye(a)), dtype=np.float64)
    return matrix


def _factors(bounds: FloatArray) -> tuple[tuple[float, FloatArray], ...]:
    """The non-negative factors π − l and u − π, as sign and edge; of two actions, one's u − π is the other's π − l."""
    both = ((1.0, bounds[0]), (-1.0, bounds[1]))
    return both[:1] if bounds.shape[1] == 2 else both


def _halves(box: Box) -> tuple[Box, ...]:
    """Cut the box in the middle of its widest side."""
    agent = max(range(len(box)), key=lambda i: float((box[i][1] - box[i][0]).max()))
    action = int(np.argmax(box[agent][1] - box[agent][0]))
    middle = float(box[agent][:, action].mean())
    halves = []
    for edge in (0, 1):
        bounds = box[agent].copy()
        bounds[edge, action] = middle
        halves.append((*box[:agent], _tightened(bounds), *box[agent + 1 :]))
    return tuple(halves)


def _tightened(bounds: FloatArray) -> FloatArray:
    """Probabilities sum to one: an action has at most what the others' least leaves, at least what their most does."""
    lower, upper = bounds
    return np.stack([np.maximum(lower, 1 - (upper.sum() - upper)), np.minimum(upper, 1 - (lower.sum() - lower))])


@dataclass(frozen=True, eq=False)
class _Incumbent:
    """The best feasible policy so far."""

    value: float
    policy: JointPolicy | None

    def improved(self, game: JointGame, weights: FloatArray) -> _Incumbent:
        """Climb from the marginals of w, one agent at a time, and keep the better of the two."""
        table = np.where(weights > NOISE, weights, 0.0)
        if not table.any():  # the relaxation has put all its weight on the escape
            return self
        # A first policy is worth many rounds. Later boxes are narrow, and a round or two makes up what is missing.
        rounds = 20 if self.policy is None else 2
        found = after_best_responses(game.at(marginals(game, (table / table.sum())[None, None])), max_rounds=rounds)
        value = float(found.current(0).value)
        if value <= self.value or not meets_thresholds(found):
            return self
        return _Incumbent(value, found.policy)


def after_best_responses(position: JointPosition, *, max_rounds: int = 20) -> JointPosition:
    """Let the agents answer in turn until the common value rests.

    Unlike coordinate ascent this may start from an infeasible policy: an agent who cannot meet the constraints alone
    does the most that it can for them. It may also end at an infeasible policy.
    """
    before, rules = -np.inf, Rules(max_answers=position.game.num_agents)
    for _ in range(max_rounds):
        ending = uninterrupted(take_turns(position, _answer, rules, traced=False))
        position = ending.position
        if ending.moves < position.game.num_agents:
            return position
        value = float(position.current(0).value) if is_feasible(position) else -np.inf
        if value > -np.inf and value <= before + 1e-10 * abs(before):
            break
        before = value
    return position


def _answer(position: JointPosition, agent: int, _: np.random.Generator | None) -> Answer:
    """Return what an agent does in its turn, whatever it gains: a loss may pay for feasibility."""
    cmdp = position.induced_cmdp(agent)
    try:
        return Answer(Exact()(cmdp).policy, 1.0)
    except InfeasibleError:
        return Answer(greatest_slack(cmdp).policy, 1.0)
    except (
        SolverError
    ) as problem:  # rounding hides whether the agent can meet the thresholds: nothing to gain from here
        raise LoopLimit(str(problem)) from None


def meets_thresholds(position: JointPosition) -> bool:
    """Whether the thresholds are met; if rounding leaves that open, the certificate decides."""
    if is_feasible(position):
        return True
    if worst_slack(position) < -float(position.cost_rounding.max()):
        return False
    return screen(position.game, position.policy).feasible
