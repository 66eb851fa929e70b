"""What is proved of a claim: in floats, and where those leave a threshold open in rationals; or in rationals alone.

A verdict never says more than what is proved: feasibility is proved, refuted or open, and every gain is a float that is
at least the bound, so a comparison with ε needs no tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np

from cmpg.proof.check import Checked, check
from cmpg.proof.claim import Claim, CountingTables, Csr, JointTables, LocalTables
from cmpg.proof.exact import ExactlyChecked, TooLarge, check_exactly, exact, exact_costs
from cmpg.proof.rounding import Array, num_rows

MAX_DECIDING_WORK = 50_000
"""The work in rationals that is spent on deciding whether a threshold is met that floats leave open."""

SMALLEST = 2.0**-1074

HAIR = 2.0**-40
"""A threshold that is exceeded by a smaller share than this of it is met up to rounding, if not by support."""


class Feasibility(Enum):
    """Whether a policy meets the thresholds: proved, refuted, too close to tell, or left open by what is not stated.

    `OPEN` is said of discounted local games alone: what follows the steps of a policy may break a threshold, or not.

    Examples
    --------
    >>> from cmpg import certify
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example(threshold=0.1)
    >>> certify(game, game.uniform_policy()).feasibility.name
    'VIOLATED'
    """

    PROVEN = "meets every threshold"
    TO_ROUNDING = "meets every threshold up to rounding"
    OPEN = "is not proved to meet every threshold"
    VIOLATED = "violates a threshold"


@dataclass(frozen=True, eq=False)
class Findings:
    """What is proved of a claim."""

    feasibility: Feasibility
    gains: Array  # [n]: no agent gains more by any deviation that meets the thresholds that bind it
    values: Array  # [n]
    bounds: Array  # [n]: what each agent could get at most
    costs: Array  # [k]
    rounding: Array  # [n]: how much of each gain is an allowance for rounding
    excess: Array  # [k]: by how much each threshold may be exceeded at most; zero where it is proved to be met
    rescaled: int = 0  # rows of probabilities that do not sum to exactly one; counted in rationals alone
    exactly: ExactlyChecked | None = None  # the same numbers as rationals, where it was judged in them


def judge(claim: Claim) -> Findings:
    """Judge a claim whose tables hold floats."""
    return findings(check(claim), claim.thresholds, lambda: affordable_costs(claim))


def findings(found: Checked, thresholds: Array, costs: Callable[[], Sequence[Fraction] | None]) -> Findings:
    """Return what a check in floats proves; `costs` are those of `decided`."""
    with np.errstate(all="ignore"):  # what is not finite meets no threshold
        lower, upper = found.costs.lower, found.costs.upper
    feasibility, excess = decided(thresholds, lower, upper, found.kept, costs)
    return Findings(feasibility, found.gains, found.values.mid, found.bounds, found.costs.mid, found.rounding, excess)


def judge_exactly(claim: Claim) -> Findings:
    """Judge a claim in rationals, or raise `TooLarge`."""
    return exact_findings(check_exactly(claim), claim.thresholds)


def exact_findings(found: ExactlyChecked, thresholds: Array) -> Findings:
    """Return what a check in rationals proves, given the thresholds [k]."""
    over = [cost - exact(limit) for cost, limit in zip(found.costs, thresholds, strict=True)]
    met = max(over, default=Fraction(0)) <= 0
    return Findings(
        feasibility=Feasibility.PROVEN if met else Feasibility.VIOLATED,
        gains=np.array([np.inf if gain is None else rounded_up(gain) for gain in found.gains]),
        values=np.array([nearest(value) for value in found.values]),
        bounds=np.array([np.inf if bound is None else rounded_up(bound) for bound in found.bounds]),
        costs=np.array([nearest(cost) for cost in found.costs]),
        rounding=np.zeros(len(found.values)),
        excess=np.array([rounded_up(max(each, Fraction(0))) for each in over]),
        rescaled=found.rescaled,
        exactly=found,
    )


def decided(
    thresholds: Array,
    lower: Array,
    upper: Array,
    support: Sequence[bool | None],
    costs: Callable[[], Sequence[Fraction] | None],
) -> tuple[Feasibility, Array]:
    """Say whether a policy meets every threshold, and by how much it may exceed each: [k].

    Parameters
    ----------
    thresholds, lower, upper : [k]
        α, and what the policy costs at least and at most.
    support : [k]
        Whether what is possible under the policy keeps a threshold; None where that does not tell.
    costs
        Returns the costs in rationals, where a threshold is left open; None if they cannot be computed in time.
    """
    kept = np.array([each is True for each in support], dtype=bool)
    broken = np.array([each is False for each in support], dtype=bool)
    met = kept | (upper <= thresholds)
    with np.errstate(all="ignore"):
        over = np.nextafter(upper - thresholds, np.inf)
    excess = np.where(met, 0.0, np.where(np.isnan(over), np.inf, over))
    if broken.any():  # however little, which may be too little for a float
        return Feasibility.VIOLATED, np.where(broken, np.maximum(excess, SMALLEST), excess)
    if met.all():
        return Feasibility.PROVEN, excess
    with np.errstate(all="ignore"):
        hair = HAIR * np.maximum(np.abs(thresholds), np.abs(upper))
        beyond = lower - thresholds > np.where(np.isfinite(hair), hair, 0.0)
    if np.any(beyond & ~kept):
        return Feasibility.VIOLATED, excess
    known = costs()
    if known is None:
        return Feasibility.TO_ROUNDING, excess
    exceeded = [cost - exact(limit) for cost, limit in zip(known, thresholds, strict=True)]
    excess = np.array([rounded_up(max(each, Fraction(0))) for each in exceeded])
    if not excess.any():
        return Feasibility.PROVEN, excess
    # Floats that overflow left it open, not the last bits of a cost next to its threshold.
    return Feasibility.TO_ROUNDING if np.isfinite(upper).all() else Feasibility.VIOLATED, excess


def affordable_costs(claim: Claim) -> list[Fraction] | None:
    """Return what the policy of a claim costs, in rationals; None where that takes too much work."""
    try:
        return exact_costs(claim, max_work=MAX_DECIDING_WORK)
    except TooLarge:
        return None


def costs_proved(claim: Claim) -> bool:
    """Whether the policy of a claim meets every threshold, in rationals; False also if that takes too much work."""
    costs = affordable_costs(claim)
    limits = zip(costs or (), claim.thresholds, strict=costs is not None)
    return costs is not None and all(cost <= exact(limit) for cost, limit in limits)


def rounded_up(number: Fraction) -> float:
    """Return the least float that is at least this; infinity beyond all of them."""
    near = nearest(number)
    if near == -np.inf:
        return float(-np.finfo(np.float64).max)
    if near == np.inf or Fraction(near) >= number:
        return near
    return float(np.nextafter(near, np.inf))


def nearest(number: Fraction) -> float:
    """Return the nearest float; infinite beyond all of them."""
    try:
        return float(number)
    except OverflowError:
        return np.inf if number > 0 else -np.inf


def seconds_to_check(tables: Any, shapes: Any, *, discounted: bool = False) -> float:
    """Return about how long the check in floats takes, from sizes alone, so that it is the same on every machine.

    Parameters
    ----------
    tables
        The tables of a game.
    shapes
        The shape [H, S_i, A_i] of each agent's policy.
    discounted
        Whether sums are discounted: then v is found by policy iteration.
    """
    steps, agents = shapes[0][0], len(shapes)
    if isinstance(tables, LocalTables):
        pairs = sum(states * actions for _, states, actions in shapes)
        cells = agents * tables.delay.shape[1] * (1 + 2 * len(tables.load_costs))
        # Leaving each of m users out of the law of a load takes m passes over a window of about m entries at most.
        convolutions = float((_users(tables, steps) ** 2).sum())
        return float(steps * (1e-3 + 2e-7 * pairs + 1e-7 * cells) + 5e-8 * convolutions)
    constraints, states = len(tables.costs), len(tables.initial)
    columns = 2 * agents + constraints
    rows = num_rows(tables.transition[0])
    entries = max(len(each.data) * 10 if isinstance(each, Csr) else each.size for each in tables.transition)
    seconds = steps * columns * (2e-9 * entries + 4e-8 * rows)
    if isinstance(tables, CountingTables):
        box = float(agents) ** (shapes[0][2] - 1)
        seconds += steps * states * agents**2 * shapes[0][2] * 2e-7 * box
    elif isinstance(tables, JointTables):
        seconds += steps * agents * rows * 2e-7
    return float(seconds * 10 * agents + agents * 1e-8 * states**3 if discounted else seconds)


def _users(tables: LocalTables, steps: int, sample: int = 200) -> Array:
    """Return about how many agents may use each resource at each step, from some of the agents: [H, E]."""
    count = np.zeros((steps, tables.delay.shape[1]))
    number = len(tables.agents)
    looked_at = range(0, number, -(-number // sample))
    able: dict[int, Array] = {}  # by matrix
    for agent in looked_at:
        uses = tables.agents[agent].uses
        for matrix in uses:
            if id(matrix) not in able:
                able[id(matrix)] = np.zeros(count.shape[1], dtype=bool)
                able[id(matrix)][matrix.indices] = True
        count += np.stack([able[id(matrix)] for matrix in uses])
    return count * (number / len(looked_at))
