"""Planning when the transition is only known to lie in a box: optimistic for the planner, or worst for a given policy.

The box holds every kernel with l_h(s' | s, a) ≤ p ≤ u_h(s' | s, a) and rows that sum to one; rows are chosen freely
and separately for each step, state and action. For one row, max p·v is a greedy fill: start at l, give what is
missing to one of the next states in the order of v until its u is reached. One sort of v serves all rows of a step.

The extended CMDP maximises V^r(π, p) subject to V^{c_j}(π, p) ≤ α_j over the policy π and the kernel p together. It
is a linear program in q_h(s, a, s') = P(s_h = s, a_h = a, s_{h+1} = s'), its vertices are
pairs of a deterministic policy and greedy rows, and so the search of `frontier.py` solves it exactly. Mixing is done
in q: the policy is π_h(a | s) ∝ Σ_{s'} q_h(s, a, s'), and the mixture's kernel q_h(s, a, ·)/Σ_{s'} q_h(s, a, s') is a
mean of rows of the box, so it is in the box.

Guarantees: value ≤ optimum ≤ bound for the extended CMDP with a gap that is rounding; and if the true kernel is in
the box, `optimistic_response(box).bound` is at least the best value of the true CMDP, and `worst_case(box, π, l)` at
least V^l(π).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import InitVar, dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from cmpg.arrays import ROW_SUM_TOLERANCE, FloatArray, IntArray, check_shape, first_index, frozen, numbers, place
from cmpg.cmdp.evaluation import backward_induction, check_policy, policy_from_occupancy, stages_backwards
from cmpg.cmdp.frontier import CMDPProgram, best_mixture
from cmpg.cmdp.kernels.choice import kernels_for
from cmpg.cmdp.model import CMDP, check_steps
from cmpg.cmdp.planning import ChoiceRule, certain_rows, choice_rule, compiled_plan
from cmpg.cmdp.response import EvaluatedPolicy
from cmpg.errors import GameError

AXES = ("h", "s", "a", "next")
"""How the axes of a box are called in errors."""


@dataclass(frozen=True, eq=False)
class BoxCMDP:
    """A CMDP with a finite horizon whose kernel is only known to lie between two tables.

    Everything but the transition is taken from `nominal`; its own transition is a guess that need not be in the box.

    Examples
    --------
    >>> nominal = CMDP(transition=[[[[0.5, 0.5]], [[0.0, 1.0]]]], reward=[[[0.0], [1.0]]], costs=[],
    ...                thresholds=[], initial=[1.0, 0.0], horizon=2)
    >>> box = BoxCMDP(nominal, lower=nominal.transition * 0.5, upper=nominal.transition * 0.5 + 0.5)
    >>> optimistic_response(box).value
    0.75
    """

    nominal: CMDP
    lower: FloatArray  # [H or 1, S, A, S]
    upper: FloatArray  # [H or 1, S, A, S]
    trusted: InitVar[bool] = False  # the tables were computed by this library: do not check them again

    def __post_init__(self, trusted: bool) -> None:
        if not trusted:
            lower, upper = _checked_box(self.nominal, self.lower, self.upper)
            object.__setattr__(self, "lower", lower)
            object.__setattr__(self, "upper", upper)

    @cached_property
    def width(self) -> FloatArray:
        """By how much each entry may exceed its lower bound: [H or 1, S, A, S]."""
        return frozen(self.upper - self.lower)

    @cached_property
    def spare(self) -> FloatArray:
        """The probability that the lower bounds leave to give away: [H or 1, S, A]."""
        return frozen(np.maximum(1.0 - self.lower.sum(axis=-1), 0.0))

    @cached_property
    def packed(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The tables as the compiled kernels read them: lower bounds, widths and what is spare."""
        return np.ascontiguousarray(self.lower), np.ascontiguousarray(self.width), self.spare

    @cached_property
    def spread(self) -> FloatArray:
        """The largest total variation distance between two rows of the box is at most this: [H or 1, S, A]."""
        return frozen(np.minimum(self.spare, np.maximum(self.upper.sum(axis=-1) - 1.0, 0.0)))


def _checked_box(nominal: CMDP, lower: Any, upper: Any) -> tuple[FloatArray, FloatArray]:
    if nominal.horizon is None or nominal.is_sparse:
        raise GameError("a box needs a CMDP with a finite horizon and a dense transition of floats.")
    tables = [numbers("lower", lower), numbers("upper", upper)]
    for name, table in zip(("lower", "upper"), tables, strict=True):
        if table.ndim != 4:
            raise GameError(f"{name} has shape {list(table.shape)}; [H or 1, S, A, S] is required.")
        check_steps(name, len(table), nominal.num_steps)
        check_shape(name, table.shape, (len(table), *nominal.policy_shape[1:], nominal.num_states))
    check_shape("upper", tables[1].shape, tables[0].shape)
    wrong = (tables[0] < 0) | (tables[1] < tables[0])
    if wrong.any():
        index = first_index(wrong)
        low, high = tables[0][index], tables[1][index]
        raise GameError(f"{place('the box', index, AXES)} is [{low}, {high}]; 0 ≤ lower ≤ upper is required.")
    empty = (tables[0].sum(axis=-1) > 1 + ROW_SUM_TOLERANCE) | (tables[1].sum(axis=-1) < 1 - ROW_SUM_TOLERANCE)
    if empty.any():
        where = place("the box", first_index(empty), AXES[:3])
        raise GameError(
            f"{where} holds no distribution; the lower bounds must sum to at most 1, the upper to at least 1."
        )
    return tables[0], tables[1]


@dataclass(frozen=True, eq=False)
class OptimisticPlan:
    """A deterministic policy, the kernel of the box that suits it best, and the value and the costs that they have."""

    actions: IntArray  # [H, S]
    rows: FloatArray  # [H, S, S]: the kernel's row of the chosen action
    value: float
    costs: FloatArray  # [k]

    def policy(self, num_actions: int) -> FloatArray:
        """Return the policy as a table [H, S, A] of zeros and ones."""
        return certain_rows(self.actions, num_actions)


@dataclass(frozen=True, eq=False)
class OptimisticResponse:
    """The solution of the extended CMDP: a policy, and the kernel of the box under which it is worth that much."""

    policy: FloatArray  # [H, S, A]
    kernel: FloatArray  # [H, S, A, S]
    value: float
    costs: FloatArray  # [k]
    multipliers: FloatArray  # [k]
    bound: float  # no policy that meets the constraints under some kernel of the box is worth more under it
    work: int  # dynamic programs


def optimistic_plan(box: BoxCMDP, multipliers: FloatArray, *, reward_weight: float = 1.0) -> OptimisticPlan:
    """Maximise w·V^r − λ·V^c over all policies and all kernels of the box; ties are broken as by `plan`.

    Parameters
    ----------
    box
        The process; its thresholds play no part.
    multipliers : [k]
        λ.
    reward_weight
        w: 1, or 0 to minimise λ·V^c.
    """
    nominal = box.nominal
    steps, states, actions = nominal.policy_shape
    rule = choice_rule(nominal, multipliers, reward_weight=reward_weight)
    chosen = np.empty((steps, states), dtype=np.int64)
    rows = np.empty((steps, states, states))
    if (totals := compiled_plan(nominal, rule, chosen, box=box.packed, rows=rows)) is not None:
        return OptimisticPlan(actions=chosen, rows=rows, value=float(totals[0]), costs=totals[1:])
    everyone = np.arange(states)
    filled = _filled_rows(box, steps - 1, everyone)  # after the last step nothing follows, and all orders are the same
    order = everyone

    def add_future(step: int, worth: FloatArray, to_go: FloatArray) -> None:
        nonlocal filled, order
        order = _best_first(to_go, rule)
        filled = _filled_rows(box, step, order)
        worth += (filled @ to_go.T.copy()[order]).reshape(-1, len(worth)).T

    def choose(step: int, worth: FloatArray) -> FloatArray:
        chosen[step], to_go = rule.choose(worth, actions)
        rows[step][:, order] = filled[everyone, chosen[step]]
        return to_go

    totals = backward_induction(stages_backwards(nominal), add_future, choose) @ nominal.initial
    return OptimisticPlan(actions=chosen, rows=rows, value=float(totals[0]), costs=totals[1:])


def _best_first(to_go: FloatArray, rule: ChoiceRule) -> IntArray:
    """Sort the next states by what is to come [1 + k, S], the best first; those that are tied by the rule for ties."""
    first = rule.weights @ to_go
    order = np.argsort(-first, kind="stable")
    apart = -np.diff(first[order]) > rule.tie
    if apart.all():
        return order
    # A run of neighbours that are tied is one group, even if its ends are further apart than a tie.
    group = np.concatenate([[0], np.cumsum(apart)])
    return order[np.lexsort((-(rule.second @ to_go)[order], group))]


def _filled_rows(box: BoxCMDP, step: int, order: IntArray) -> FloatArray:
    """Return the greedy rows of one step, their entries in the given order of next states: [S, A, S]."""
    step = 0 if len(box.lower) == 1 else step
    width: FloatArray = box.width[step][..., order]
    # What those before an entry have taken, at their upper bounds, is no longer there to give away.
    before = np.cumsum(width, axis=-1) - width
    return np.asarray(box.lower[step][..., order] + np.clip(box.spare[step][..., None] - before, 0.0, width))


def optimistic_bound(box: BoxCMDP, multipliers: FloatArray) -> float:
    """Return λ·α + max V^{r − λc} over policies and kernels of the box: weak duality for the extended CMDP.

    Parameters
    ----------
    box
        The process.
    multipliers : [k]
        λ ≥ 0.
    """
    nominal = box.nominal
    weights = np.concatenate([[1.0], -np.asarray(multipliers, dtype=np.float64)])
    spent = float(multipliers @ nominal.thresholds)
    if (compiled := kernels_for(nominal)) is not None:
        total = nominal.reward - np.tensordot(multipliers, nominal.costs, axes=1)
        return float(compiled[0].greatest_sum(compiled[1], box.packed, total, None)) + spent
    shape = nominal.policy_shape[1:]
    stages = ((step, (weights @ worth).reshape(shape)) for step, worth in stages_backwards(nominal))
    return _greatest_sum(box, stages, lambda _, worth: worth.max(axis=1)) + spent


def worst_case(box: BoxCMDP, policy: Any, objective: FloatArray) -> float:
    """Return the largest V^objective that a fixed policy can have under a kernel of the box.

    The smallest value of a reward r is −worst_case(box, policy, −r).

    Parameters
    ----------
    box
        The process.
    policy : [H, S, A]
        One distribution over actions per step and state.
    objective : [H or 1, S, A]
        What is summed along the way.
    """
    nominal = box.nominal
    table = check_policy(nominal, policy)
    check_steps("objective", len(objective), nominal.num_steps)
    check_shape("objective", objective.shape, (len(objective), *nominal.policy_shape[1:]))
    if (compiled := kernels_for(nominal)) is not None:
        arrays = (np.ascontiguousarray(each, dtype=np.float64) for each in (objective, table))
        return float(compiled[0].greatest_sum(compiled[1], box.packed, *arrays))
    steps = reversed(range(nominal.num_steps))
    stages = ((step, np.array(objective[0 if len(objective) == 1 else step])) for step in steps)
    return _greatest_sum(box, stages, lambda step, worth: (table[step] * worth).sum(axis=1))


def _greatest_sum(
    box: BoxCMDP, stages: Iterable[tuple[int, FloatArray]], choose: Callable[[int, FloatArray], FloatArray]
) -> float:
    """Return the greatest sum of stages [S, A] over all kernels of the box, given the choice among action values."""

    def add_future(step: int, worth: FloatArray, to_go: FloatArray) -> None:
        order = np.argsort(-to_go, kind="stable")
        worth += _filled_rows(box, step, order) @ to_go[order]

    return float(box.nominal.initial @ backward_induction(stages, add_future, choose))


def optimistic_response(box: BoxCMDP) -> OptimisticResponse:
    """Solve the extended CMDP, or raise InfeasibleError if no policy meets the constraints under any kernel."""
    found = best_mixture(_program(box))
    multipliers = np.maximum(found.multipliers, 0.0)
    mixture = found.mixture
    return OptimisticResponse(
        policy=mixture.policy,
        kernel=mixture.cmdp.transition,
        value=float(mixture.evaluation.value),
        costs=mixture.costs,
        multipliers=multipliers,
        bound=optimistic_bound(box, multipliers),
        work=found.plans + 1,
    )


def _program(box: BoxCMDP) -> CMDPProgram[OptimisticPlan, EvaluatedPolicy]:
    """Return a box as the search sees it: a plan chooses its rows, too, and a mixture has a kernel of its own."""

    def mix(plans: Sequence[OptimisticPlan], *, weights: FloatArray, unvisited: FloatArray) -> EvaluatedPolicy:
        policy, kernel = _mixed(box, [each for each in zip(weights, plans, strict=True) if each[0] > 0], unvisited)
        # The mixture is judged under the kernel that its own flow implies, not under the nominal one.
        return EvaluatedPolicy(replace(box.nominal, transition=kernel, trusted=True), policy)

    return CMDPProgram(box.nominal, partial(optimistic_plan, box), mix)


def _mixed(
    box: BoxCMDP, used: Sequence[tuple[float, OptimisticPlan]], unvisited: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the policy and the kernel of a mixture of plans, given with their weights: [H, S, A], [H, S, A, S]."""
    flow = np.zeros((*box.nominal.policy_shape, box.nominal.num_states))
    for weight, plan in used:
        _add_flow(flow, plan, weight * box.nominal.initial)
    return policy_from_occupancy(flow.sum(axis=-1), unvisited), _kernel(box, flow)


def _add_flow(flow: FloatArray, plan: OptimisticPlan, visits: FloatArray) -> None:
    """Add q_h(s, a, s') of a plan that starts with the given probabilities of states."""
    everyone = np.arange(len(visits))
    for step, (actions, rows) in enumerate(zip(plan.actions, plan.rows, strict=True)):
        onward = visits[:, None] * rows
        flow[step, everyone, actions] += onward
        visits = onward.sum(axis=0)


def _kernel(box: BoxCMDP, flow: FloatArray) -> FloatArray:
    """Return q_h(s, a, ·)/Σ q_h(s, a, ·), and some row of the box where nothing flows."""
    totals = flow.sum(axis=-1, keepdims=True)
    flows = totals > 0
    return frozen(np.where(flows, flow / np.where(flows, totals, 1.0), central_kernel(box)))


def central_kernel(box: BoxCMDP) -> FloatArray:
    """Return the kernel of the box whose entries all stand at the same share of their width: [H or 1, S, A, S]."""
    total = box.width.sum(axis=-1)
    share = np.minimum(box.spare / np.where(total > 0, total, 1.0), 1.0)
    return np.asarray(box.lower + share[..., None] * box.width)
