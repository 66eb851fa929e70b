"""Solve a crowd: a fluid, few groups, whole numbers, moves, single agents for the rest of the budget; then the
proof.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray, check_positive
from cmpg.deadline import check_time, limited
from cmpg.equilibrium.crowds.certificate import CrowdCertificate, certify_crowd
from cmpg.equilibrium.crowds.fluid import Fluid, fluid_solution
from cmpg.equilibrium.crowds.groups import Groups, few_groups, whole_numbers
from cmpg.equilibrium.crowds.kinds import Kinds
from cmpg.equilibrium.crowds.prices import own_multipliers
from cmpg.equilibrium.result import Status
from cmpg.errors import GameError, InfeasibleError, OutOfTimeError
from cmpg.games.crowd.game import CrowdGame, LoadCurve
from cmpg.games.crowd.policy import CrowdPolicy
from cmpg.runs.threads import one_thread
from cmpg.summaries import Summary, at_most, headline_line, html, text

FEW_AGENTS = 1_000
"""Crowds of fewer agents are solved agent by agent."""

MAX_MOVES = 300
MAX_TURNS = 400
CORRECTIONS = 30

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class CrowdResult:
    """The ending of `solve` for a crowd: status, groups, and what is proved of them.

    Examples
    --------
    >>> from cmpg.games import LoadCurve, LocalAgent
    >>> kind = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, 1]]], uses=[[[[0], [1]]]], initial=[1])
    >>> game = CrowdGame(kinds=[kind], numbers=[1000], curves=[LoadCurve([0, 1000], [0, 2.0])],
    ...                  delay=[[0]], load_costs=[], thresholds=[], horizon=1)
    >>> result = solve_crowd(game)
    >>> result.status.name, result.policy.number
    ('CERTIFIED', array([501, 499]))
    """

    status: Status
    message: str
    epsilon: float
    game: CrowdGame
    certificate_or_none: CrowdCertificate | None = None
    policy_or_none: CrowdPolicy | None = None
    moves: int = 0  # of numbers between groups
    turns: int = 0  # of single agents
    phases: dict[str, float] = field(default_factory=dict)  # seconds of the processor

    @property
    def certified(self) -> bool:
        """Whether the policy is proved to be an ε-Nash policy."""
        return self.status is Status.CERTIFIED

    @property
    def policy(self) -> CrowdPolicy:
        """The groups."""
        if self.policy_or_none is None:
            raise InfeasibleError(f"the result has no policy, because it ended {self.status.name}: {self.message}")
        return self.policy_or_none

    @property
    def certificate(self) -> CrowdCertificate:
        """What is proved about the policy."""
        if self.certificate_or_none is None:
            raise InfeasibleError(f"the result has no policy, because it ended {self.status.name}: {self.message}")
        return self.certificate_or_none

    @property
    def multipliers(self) -> FloatArray:
        """λ of every group: [G, k]."""
        return self.certificate.multipliers

    def summary(self) -> Summary:
        """Return what `print` shows: the status, the largest groups, constraints, and the work."""
        from cmpg.report.crowds import crowd_summary  # a room below: tables are made on demand

        return crowd_summary(self)

    def __repr__(self) -> str:
        """Return one line."""
        return headline_line(type(self).__name__, Summary(self.status.name, self.message))

    __str__, _repr_html_ = text, html

    def save(self, folder: Any) -> None:
        """Write a run folder, new or empty: game, policy with its multipliers, certificate, tables."""
        from cmpg.files.crowds import save_crowd_run  # a room below: files are written on demand

        save_crowd_run(folder, self)


def solve_crowd(game: CrowdGame, *, epsilon: float = 1e-6, time_limit: float = np.inf, rng: Any = None) -> CrowdResult:
    """Find groups of which no member gains more than epsilon by deviating, and prove it; see `cmpg.solve`.

    Examples
    --------
    >>> from cmpg.games import LoadCurve, LocalAgent
    >>> kind = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, 1]]], uses=[[[[0], [1]]]], initial=[1])
    >>> game = CrowdGame(kinds=[kind], numbers=[1_000_000], curves=[LoadCurve([0, 1_000_000], [0, 2.0])],
    ...                  delay=[[0]], load_costs=[], thresholds=[], horizon=1)
    >>> result = solve_crowd(game)
    >>> result.certified, result.certificate.epsilon <= 1e-6
    (True, True)
    """
    if not isinstance(game, CrowdGame):
        raise GameError(f"the game is a {type(game).__name__}; a CrowdGame is required.")
    check_positive("epsilon", epsilon)
    _refuse(game)
    clock = _Clock()
    if game.num_agents < FEW_AGENTS:
        return _agent_by_agent(game, epsilon, time_limit, rng, clock)
    with one_thread():
        search = _Search(game, epsilon, np.random.default_rng(rng), clock)
        try:
            with limited(time.monotonic() + time_limit):
                search.run()
        except OutOfTimeError:
            search.stopped = True
        return search.conclude()


def _refuse(game: CrowdGame) -> None:
    """Raise where the search has no way to go."""
    if np.any(game.thresholds <= 0):
        j = int(np.argmin(game.thresholds))
        raise GameError(
            f"thresholds[{j}] is {game.thresholds[j]:g}; crowds are solved for positive thresholds. A small crowd can "
            "be solved agent by agent, with proofs by support: cmpg.solve(game.spread())."
        )
    for c in np.unique(game.delay).tolist():
        curve = game.curves[c]
        if isinstance(curve, LoadCurve) and (curve.slopes < 0).any():  # powers rise, and are convex
            raise GameError(
                f"curves[{c}] is a delay that falls as the load grows; crowds are solved where delays do not fall. Any "
                "policy can be certified, and a small crowd solved agent by agent: cmpg.solve(game.spread())."
            )
    for c in np.unique(game.load_costs).tolist():
        curve = game.curves[c]
        slopes = curve.slopes if isinstance(curve, LoadCurve) else np.zeros(1)
        if (np.diff(slopes) < -1e-12 * np.abs(slopes).max(initial=0.0)).any():
            raise GameError(
                f"curves[{c}] is a load cost that is not convex; crowds are solved where load costs are. Any policy "
                "can be certified, and a small crowd solved agent by agent: cmpg.solve(game.spread())."
            )


class _Clock:
    """Seconds of the processor by phase."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self._last = time.process_time()

    def lap(self, name: str) -> None:
        now = time.process_time()
        self.phases[name] = self.phases.get(name, 0.0) + now - self._last
        self._last = now


class _Search:
    """One search, phase after phase; whatever stops it, what is there is judged."""

    def __init__(self, game: CrowdGame, epsilon: float, rng: np.random.Generator, clock: _Clock) -> None:
        self.game, self.epsilon, self._rng, self._clock = game, epsilon, rng, clock
        self.groups: Groups | None = None
        self.multipliers = np.zeros(game.num_constraints)
        self.moves = self.turns = 0
        self.stopped = False

    def run(self) -> None:
        """Go through all phases."""
        kinds = Kinds(self.game)
        fluid = Fluid(self.game, kinds, rng=self._rng)
        self.multipliers = fluid_solution(fluid, tolerance=1e-6 * fluid.unit)
        self._clock.lap("fluid")
        numbers = few_groups(fluid)
        self._clock.lap("few groups")
        self.groups = Groups.of(kinds, fluid.columns, whole_numbers(self.game, fluid.columns, numbers))
        self._clock.lap("whole numbers")
        self._move(self.groups)
        self._clock.lap("moves")
        self._spend(self.groups)
        self._clock.lap("single agents")

    @property
    def margin(self) -> FloatArray:
        """What is kept back of each threshold: more than the rounding of the proof, and little beside ε: [k]."""
        limits = self.game.thresholds
        least = 3e-10 * max(1.0, np.sqrt(self.game.num_agents / 1e6))
        worth = 0.02 * self.epsilon / np.maximum(self.multipliers, 1e-300)
        return np.asarray(np.clip(worth, least * limits, 1e-8 * limits))

    def _move(self, groups: Groups) -> None:
        """Move at common multipliers, and correct them until what is spent is a little below the thresholds."""
        limits = self.game.thresholds
        for _ in range(CORRECTIONS):
            _, moves = groups.move(self.multipliers, tolerance=0.2 * self.epsilon, most=MAX_MOVES)
            self.moves += moves
            costs = groups.costs()
            if not len(limits):
                return
            step = self._finest(groups)
            binding = self.multipliers > 0
            low = np.where(binding, limits - 1.5 * np.maximum(step, 1e-3 * limits), -np.inf)
            if np.all((costs >= low) & (costs <= limits - self.margin)):
                return
            off = (costs - (limits - 0.5 * step)) / limits
            fresh = np.where((self.multipliers == 0) & (costs > limits), self._guess(), self.multipliers)
            self.multipliers = fresh * (1 + np.clip(off, -0.3, 0.3) * 0.8)
            self.multipliers = np.where(
                self.multipliers * limits < 1e-9 * self.game.reward_range, 0.0, self.multipliers
            )

    def _finest(self, groups: Groups) -> FloatArray:
        """Return about by how much one agent more in the fullest cell raises each cost: [k]."""
        _, prices = groups.seen(groups.live[:1])
        return np.asarray(prices[1:, 0].max(axis=1))

    def _guess(self) -> FloatArray:
        """Return multipliers to begin with where none was needed so far: [k]."""
        return np.asarray(0.01 * self.game.reward_range / self.game.thresholds)

    def _spend(self, groups: Groups) -> None:
        """Let single agents use up what is left."""
        target = 0.5 * self.epsilon
        while self.turns < MAX_TURNS and bool(np.all(groups.costs() <= self.game.thresholds)):
            check_time()
            live, found = groups.responses(self.multipliers, self.margin)
            gains = np.where(found.fits, found.gains, -np.inf)
            best = int(np.argmax(gains))
            if gains[best] < target:
                return
            groups.spend(live, found, best)
            self.turns += 1

    def conclude(self) -> CrowdResult:
        """Judge what was found."""
        terms: dict[str, Any] = {"epsilon": self.epsilon, "game": self.game, "moves": self.moves, "turns": self.turns}
        if self.groups is None:
            message = "the time limit was reached before there was a policy. Allow more time."
            return CrowdResult(Status.FEASIBILITY_UNKNOWN, message, **terms, phases=self._clock.phases)
        policy = self.groups.policy()
        multipliers = own_multipliers(self.game, policy, self.multipliers) if self.game.num_constraints else None
        self._clock.lap("own multipliers")
        certificate = certify_crowd(self.game, policy, multipliers)
        self._clock.lap("certificate")
        return concluded(certificate, policy, stopped=self.stopped, phases=self._clock.phases, **terms)


def concluded(
    certificate: CrowdCertificate, policy: CrowdPolicy, *, epsilon: float, stopped: bool, **terms: Any
) -> CrowdResult:
    """Return a result whose status is what the certificate proves."""
    if not certificate.feasible:
        worst = int(np.argmax(certificate.excess))
        name = certificate.names.constraint(worst)
        message = (
            f"no policy within the thresholds was found, and none was ruled out: {name} may cost up to "
            f"{at_most(certificate.excess[worst])} more than {certificate.thresholds[worst]:.9g}. Raise the thresholds."
        )
        return CrowdResult(Status.FEASIBILITY_UNKNOWN, message, epsilon, **terms)
    found = (
        f"feasible, and no agent gains more than {at_most(certificate.epsilon)} by deviating "
        f"({certificate.information}; allowance {certificate.allowance:.2g})."
    )
    terms |= {"certificate_or_none": certificate, "policy_or_none": policy}
    if certificate.proves(epsilon):
        return CrowdResult(Status.CERTIFIED, found, epsilon, **terms)
    advice = "Allow more time." if stopped else f"Ask for epsilon {1.1 * certificate.epsilon:.2g}."
    if certificate.allowance > 0.5 * epsilon:
        advice = f"The allowance alone is {certificate.allowance:.2g}: ask for a larger epsilon."
    return CrowdResult(Status.LIMIT, f"{found} That is more than {epsilon:g}. {advice}", epsilon, **terms)


def _agent_by_agent(game: CrowdGame, epsilon: float, limit: float, rng: Any, clock: _Clock) -> CrowdResult:
    """Solve a small crowd by the engine of local games, and put its agents together again."""
    from cmpg.equilibrium.solve import solve  # which leads here

    found = solve(game.spread(), epsilon=0.5 * epsilon, time_limit=limit, rng=rng)
    clock.lap("agent by agent")
    terms: dict[str, Any] = {"game": game, "moves": found.moves + found.search_moves, "phases": clock.phases}
    if found.incumbent is None:
        return CrowdResult(found.status, found.message, epsilon, **terms)
    of = np.repeat(np.arange(game.num_kinds), game.numbers)
    groups: dict[tuple[int, bytes], list[int]] = {}
    for i, table in enumerate(found.policy):
        groups.setdefault((int(of[i]), table.tobytes()), []).append(i)
    members = list(groups.values())
    policy = CrowdPolicy(
        [int(of[each[0]]) for each in members],
        [len(each) for each in members],
        tuple(found.policy[each[0]] for each in members),
    )
    certificate = certify_crowd(game, policy)
    clock.lap("certificate")
    return concluded(certificate, policy, epsilon=epsilon, stopped=found.status is Status.LIMIT, **terms)
