"""Judging a policy of a known game: what it costs, what each agent could gain, and how good it is for all.

The policy may come from anywhere. Each agent's best response within the constraints is computed; it is a deviation that
can be looked at, and its multipliers are what the certificate proves the gain with. Nothing else of the search is
believed: costs, values and gains are those of `certify`.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import evaluate, occupancy
from cmpg.cmdp.exact import Exact
from cmpg.deadline import limited
from cmpg.equilibrium.best_responses import best_response
from cmpg.equilibrium.certificate import Certificate, Feasibility, certify, check_claim
from cmpg.equilibrium.quality import OptimalityGap, upper_bound, without_correlation
from cmpg.equilibrium.result import Result
from cmpg.errors import InfeasibleError, OutOfTimeError, SolverError
from cmpg.games.game import Game, Names, Objective, Position, only_binding
from cmpg.policy import JointPolicy
from cmpg.summaries import Summary, fields_line, html, line, text

MAX_CHANGES = 5
"""A deviation is described by at most this many of its changes, those that are worth most."""

NEGLIGIBLE = 1e-9
"""A change of behaviour that is less likely than this to be seen in an episode is left out."""


@dataclass(frozen=True)
class Change:
    """Where a deviation does something else than the policy: the likeliest action of each.

    Examples
    --------
    >>> import cmpg
    >>> game = cmpg.scenarios.counter_example()
    >>> change = cmpg.judge(game, game.uniform_policy()).deviations[0].changes[0]
    >>> change.step, change.state, change.after, change.probability
    (0, 0, 1, 0.5)
    """

    step: int
    state: int
    before: int
    after: int
    probability: float  # that the agent, deviating, is there and plays something that it would not have played

    __repr__ = fields_line


@dataclass(frozen=True, eq=False)
class Deviation:
    """The best that one agent can do within the constraints while the others keep to the policy.

    Examples
    --------
    >>> import cmpg
    >>> game = cmpg.scenarios.counter_example()
    >>> deviation = cmpg.judge(game, game.uniform_policy()).deviations[0]
    >>> deviation.agent, deviation.policy, round(deviation.gain, 6), deviation.costs
    (0, array([[[0., 1.]]]), 0.25, array([0.5]))
    """

    agent: int
    policy: FloatArray  # [H, S, A]
    value: float
    costs: FloatArray  # [k]: of all agents together, if this one deviates
    gain: float  # what it brings the agent; below zero where the policy itself breaks the constraints
    changes: tuple[Change, ...]  # the likeliest first

    __repr__ = fields_line


@dataclass(frozen=True, eq=False)
class JudgedPolicy:
    """What is proved about a policy of a known game, and the deviation of each agent that shows it.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> judged = judge_known(game, game.uniform_policy())
    >>> judged.feasible, round(judged.exploitability, 6), judged.deviations[0].changes[0].after
    (True, 0.25, 1)
    """

    name: str
    policy: JointPolicy
    certificate: Certificate
    deviations: tuple[Deviation | None, ...]  # [n]; None: no policy of the agent that keeps the constraints was found
    has_none: tuple[bool, ...]  # [n]: whether there is none, by the solver's proof
    quality: OptimalityGap  # the total value beside a proved upper bound
    best_known: float  # the largest total value of a feasible policy that is known; nan if none is

    @property
    def feasible(self) -> bool:
        """Whether the policy is proved to meet every threshold."""
        return self.certificate.feasible

    @property
    def gains(self) -> FloatArray:
        """What each agent could gain at most by a deviation that keeps the constraints: [n].

        Zero for an agent that has no such deviation, which happens only if the policy breaks the constraints. Where a
        solver merely failed to find one, what the certificate proves counts.
        """
        return np.where(self.has_none, 0.0, self.certificate.gains)

    @property
    def exploitability(self) -> float:
        """No agent gains more than this by a deviation that keeps the constraints."""
        return float(self.gains.max())

    @property
    def values(self) -> FloatArray:
        """V^{r_i}: [n]."""
        return self.certificate.values

    @property
    def costs(self) -> FloatArray:
        """V^{c_j}: [k]."""
        return self.certificate.costs

    @property
    def welfare(self) -> float:
        """The sum of the agents' values."""
        return float(self.certificate.values.sum())

    @property
    def names(self) -> Names:
        """What agents, constraints, states and actions are called."""
        return self.certificate.names

    @property
    def to_best_known(self) -> float:
        """By how much the best known feasible policy is worth more to all together; nan if none is known."""
        return self.best_known - self.welfare

    def summary(self) -> Summary:
        """Return what `print` shows; it formats what is here."""
        from cmpg.report.judging import judged_summary  # a room below: tables are made on demand

        return judged_summary(self)

    __repr__, __str__, _repr_html_ = line, text, html


def judge_known(
    game: Game,
    policy: JointPolicy,
    *,
    name: str = "the policy",
    best_known: Result | float | None = None,
    exact: bool = False,
    time_limit: float = math.inf,
) -> JudgedPolicy:
    """Judge a policy of a known game.

    Parameters
    ----------
    game, policy
        Any game, and one table per agent.
    name
        What the policy is called in tables.
    best_known
        A result of `solve`, or the total value of a feasible policy, to compare with.
    exact
        Prove in rationals.
    time_limit
        Seconds for the upper bound over all feasible policies. What is proved about the policy takes what it takes.
    """
    check_claim(game, policy)
    played = policy.floats()
    # Overflow gives inf or nan, which prove nothing; no warning is needed.
    with np.errstate(over="ignore", invalid="ignore"):
        position = game.at(played)
        found = [_deviation(position, agent) for agent in range(game.num_agents)]
    multipliers = np.zeros((game.num_agents, len(game.thresholds)))
    for agent, (_, prices, _) in enumerate(found):
        multipliers[agent] = prices
    certificate = certify(game, policy, only_binding(game, multipliers), exact=exact)
    common = np.median(np.where(np.isfinite(multipliers), multipliers, 0.0), axis=0)
    return JudgedPolicy(
        name=name,
        policy=policy,
        certificate=certificate,
        deviations=tuple(deviation for deviation, _, _ in found),
        # A policy within the thresholds is such a deviation itself, whatever a solver says.
        has_none=tuple(infeasible and certificate.feasibility is Feasibility.VIOLATED for _, _, infeasible in found),
        quality=_quality(game, played, certificate, common, time_limit),
        best_known=_best_known(best_known),
    )


def _best_known(given: Result | float | None) -> float:
    if given is None:
        return math.nan
    if isinstance(given, Result):
        return float(np.sum(given.values)) if given.incumbent is not None else math.nan
    return float(given)


def _quality(
    game: Game, policy: JointPolicy, certificate: Certificate, multipliers: FloatArray, time_limit: float
) -> OptimalityGap:
    welfare = float(certificate.values.sum())
    if time_limit <= 0:
        return OptimalityGap(Objective.WELFARE, welfare, None)
    try:
        with limited(time.monotonic() + time_limit):
            bound = upper_bound(game, Objective.WELFARE, policy, multipliers)
    except OutOfTimeError:
        bound = None
    return without_correlation(game, OptimalityGap(Objective.WELFARE, welfare, bound))


def _deviation(position: Position, agent: int) -> tuple[Deviation | None, FloatArray, bool]:
    """Return an agent's best deviation within the constraints, its multipliers [k], and whether there is none."""
    none = np.zeros(len(position.costs))
    try:
        response = best_response(position, agent, Exact())
    except InfeasibleError:
        return None, none, True
    except SolverError:
        return None, none, False
    cmdp = position.induced_cmdp(agent)
    before, after = evaluate(cmdp, position.policy[agent]), evaluate(cmdp, response.policy)
    costs = np.asarray(position.costs + after.costs - before.costs, dtype=np.float64)
    deviation = Deviation(
        agent=agent,
        policy=response.policy,
        value=float(after.value),
        costs=costs,
        gain=float(after.value - before.value),
        changes=changes(position.policy[agent], response.policy, occupancy(cmdp, response.policy)),
    )
    multipliers = np.asarray(response.multipliers)
    return deviation, np.where(np.isnan(multipliers), 0.0, multipliers), False


def changes(before: FloatArray, after: FloatArray, visits: FloatArray) -> tuple[Change, ...]:
    """Return where a policy [H, S, A] differs most from another, weighed by how often that is seen.

    Parameters
    ----------
    before, after : [H, S, A]
        The policy, and the deviation.
    visits : [H, S, A]
        Occupancy of the deviation.
    """
    moved = np.maximum(after - before, 0.0).sum(axis=2) * visits.sum(axis=2)  # [H, S]
    order = np.argsort(-moved, axis=None, kind="stable")[:MAX_CHANGES].tolist()
    places = [divmod(flat, moved.shape[1]) for flat in order if moved.reshape(-1)[flat] > NEGLIGIBLE]
    return tuple(
        Change(h, s, int(before[h, s].argmax()), int((after - before)[h, s].argmax()), float(moved[h, s]))
        for h, s in places
    )


def verdict(judged: JudgedPolicy, *, epsilon: float, allow_rounding: float = 0.0) -> str:
    """Say in a word or two what was proved: whether the thresholds are met, and whether no agent gains more than ε."""
    if judged.certificate.proves(epsilon, allow_rounding=allow_rounding):
        return "Nash"
    if judged.certificate.feasibility is Feasibility.VIOLATED and not judged.certificate.meets(allow_rounding):
        return "violated"
    return "exploitable" if judged.certificate.meets(allow_rounding) else "not proved"
