"""One model for all: explore once, outside the CMDP sub-routines, and reuse every sample for every agent and iteration.

The paper's conclusion asks whether moving the exploration outside pays; Algorithm 2 draws for each response. Here,
in round j there are N_j = N_0·2^(j−1) samples of every entry, and one model, the empirical game with a box around its
transition: of every (h, s, joint action), or class of counts, in `joint_model.py`; of every (s, a) of every kind of
agent, in local games, in `local/model.py`, where it is the only way to learn. Half of the round's share of δ,
δ/(j(j + 1)), goes to either way to an end, in local games all of it to the first:

- by the box alone. Steps that are alike share their samples. One event bounds, for all policies and agents together,
  the costs, the value, and the best feasible deviation. The empirical game is solved by CA-CMPG with thresholds
  tightened just so far that the policy's worst cost is at most α.
- by a check with fresh samples. The empirical game is solved with thresholds tightened by the errors that are likely.
  What comes of it is fixed before the check, so its costs are measured by rolling it out, and every agent is queried
  for a better deviation, as in Algorithm 2. If all stay, it is an ε-Nash policy. This takes Σ_i A_i entries per step
  and state instead of Π_i A_i, and no factor of the box; it may take as many samples as the model did.

Guarantee: what is called certified is an ε-Nash policy with probability at least 1 − δ, whatever was solved on the way;
no potential, no feasible start and no slack need be known. Where there is no slack, no policy can be proved feasible,
and the samples run out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.deadline import limited
from cmpg.equilibrium.result import Result, Status
from cmpg.equilibrium.runs import uninterrupted
from cmpg.equilibrium.solve import solve
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.errors import BudgetError, CMPGError, InfeasibleError, OutOfTimeError, SimulatorError, StartError
from cmpg.games.game import Game
from cmpg.games.joint.game import JointGame
from cmpg.learning.confidence import binomial_interval, check_accuracy
from cmpg.learning.generative import Adaptive, cost_variances
from cmpg.learning.joint_model import JointModel, model_of
from cmpg.learning.local.model import LocalModel
from cmpg.learning.local.simulator import LocalProblemSpec, LocalSimulator
from cmpg.learning.optimism import Measurement
from cmpg.learning.outcome import Bounds, LearnResult, claim
from cmpg.learning.problem import InducedProblem
from cmpg.learning.samples import cut_settings
from cmpg.learning.simulator import Logbook, Simulator, joint_rows
from cmpg.policy import JointPolicy
from cmpg.summaries import fields_line

TIGHTENINGS = 6
"""The tightened thresholds are found by so many bisections."""

NEAR_EPSILON = 1.6
"""Gaps of boxes fall by more than this factor when the samples are doubled, while there are few."""

PARTS = (0.25, 0.5, 0.75, 1.0)
"""If the gap is nearly small enough, further policies are sought from starts that spend these shares of the budget."""

NEAR_GAP = 8.0
"""Only with a gap of at most this many ε a local game is solved again with other thresholds."""

MAX_FACTOR = 64.0
"""A gap of g times ε needs g times the samples at least; no more than this factor is taken for certain."""

ASSUMPTIONS = ("samples are independent draws of the game's own law, and the declared ranges hold",)


@dataclass(frozen=True, eq=False)
class Round:
    """What is known after one round: the policy that was found, and its bounds.

    Examples
    --------
    >>> from cmpg.learning import GameSimulator
    >>> from cmpg.scenarios import spectrum
    >>> rounds = []
    >>> simulator = GameSimulator(spectrum(), rng=np.random.default_rng(0))
    >>> _ = learn_shared(simulator, epsilon=0.5, delta=0.1, on_round=rounds.append)
    >>> rounds[-1].gap <= 0.5, rounds[-1].feasible
    (True, True)
    """

    samples_per_entry: int
    policy: JointPolicy
    gap: float  # no agent gains more than this by deviating
    cost_ceilings: FloatArray  # [k]
    feasible: bool  # every ceiling is at most its limit

    __repr__ = fields_line

    def summary(self, thresholds: FloatArray, epsilon: float) -> str:
        """Say what is proved, beside the thresholds [k] and ε."""
        ceilings = ", ".join(f"{cost:.4g}" for cost in self.cost_ceilings)
        limits = ", ".join(f"{threshold:.4g}" for threshold in thresholds)
        costs = f"costs at most {ceilings} (thresholds {limits})" if ceilings else "no constraint"
        return f"what is proved: {costs}, and gains of at most {self.gap:.4g} (epsilon {epsilon:.4g})."


class Model(Protocol):
    """The empirical game, and how far off it can be."""

    @property
    def game(self) -> Game:
        """The empirical game."""

    def cost_ceilings(self, policy: JointPolicy) -> FloatArray:
        """Return the most that a policy can cost: [k]."""

    def bound(self, policy: JointPolicy) -> Bounds:
        """Bound the costs of a policy, and what any agent could gain by deviating."""

    def proof_of_infeasibility(self) -> str:
        """Say why no joint policy meets the thresholds, or nothing where one may."""


def learn_shared(
    simulator: Simulator | LocalSimulator,
    *,
    epsilon: float,
    delta: float,
    first_count: int = 64,
    max_count: int = 2**30,
    time_limit: float = np.inf,
    on_round: Callable[[Round], None] | None = None,
) -> LearnResult:
    """Learn an ε-Nash policy from one shared model.

    Parameters
    ----------
    simulator
        The game, of whatever form, which can only be sampled; draws must be possible (generative).
    epsilon, delta
        With probability at least 1 − δ no agent gains more than ε by deviating.
    first_count, max_count
        Samples of every entry in the first round, and at most.
    time_limit
        Seconds; a round that has not ended by then is given up.
    on_round
        Called with the bounds after every round.

    Examples
    --------
    >>> from cmpg.learning.simulator import GameSimulator
    >>> from cmpg.scenarios import spectrum
    >>> simulator = GameSimulator(spectrum(), rng=np.random.default_rng(0))
    >>> learn_shared(simulator, epsilon=0.5, delta=0.1).certified
    True
    """
    check_accuracy(epsilon, delta)
    if not 1 <= first_count <= max_count:
        raise CMPGError(f"first_count is {first_count} and max_count {max_count}; 1 ≤ first_count ≤ max_count.")
    run = _SharedRounds(simulator, epsilon=epsilon, delta=delta)
    spent = f"{max_count:,} samples of every entry are not enough."
    return until_ended(run, run.rounds(first_count, max_count), spent, time_limit=time_limit, on_round=on_round)


class Learning(Protocol):
    """A run that learns one model for all, as far as it has come."""

    best: Round
    ended: Status | None  # None: it goes on
    reason: str  # why it ended

    def conclude(self, status: Status, reason: str) -> LearnResult:
        """Gather the result."""


def until_ended(
    run: Learning,
    rounds: Iterator[bool],
    spent: str,
    *,
    time_limit: float,
    on_round: Callable[[Round], None] | None,
) -> LearnResult:
    """Go on until a run has ended, its rounds or its samples are spent, or its time is over.

    Parameters
    ----------
    run
        The run.
    rounds
        Each draws more; true where that changed the bounds, so that there is something to tell.
    spent
        What is said where no round is left.
    time_limit
        Seconds; a round that has not ended by then is given up.
    on_round
        Called with the bounds.
    """
    status, reason = Status.LIMIT, spent
    late = f"the time limit of {time_limit:g} seconds has passed."
    deadline = time.monotonic() + time_limit
    try:
        with limited(deadline):
            for judged in rounds:
                if judged and on_round is not None:
                    on_round(run.best)
                if run.ended is not None:
                    status, reason = run.ended, run.reason
                    break
                if time.monotonic() > deadline:
                    reason = late
                    break
    except OutOfTimeError:
        reason = late
    except BudgetError as stop:
        reason = str(stop)
    except KeyboardInterrupt:
        status, reason = Status.INTERRUPTED, "it was interrupted."
    except (SimulatorError, StartError) as fault:
        fault.result = run.conclude(status, str(fault))
        raise
    return run.conclude(status, reason)


class _SharedRounds:
    """The samples so far, and the policy that was found with them."""

    def __init__(self, simulator: Simulator | LocalSimulator, *, epsilon: float, delta: float) -> None:
        known = simulator.known
        self.simulator, self.claimed, self.delta = Logbook(simulator), epsilon, delta
        self.epsilon, self.limits = known.left_of(epsilon), known.limits
        self.samples: Any = None
        self.number = 0
        nothing = np.full(known.num_constraints, np.inf)
        self.best = Round(0, JointPolicy.uniform(known.policy_shapes), np.inf, nothing, feasible=False)
        self.ended: Status | None = None
        self.reason = ""
        self.enough_from = 0.0  # rounds with fewer samples are not looked at; their share of δ is spent all the same

    def rounds(self, first: int, most: int) -> Iterator[bool]:
        """Draw, judge, and hand over, with twice the samples each time; the sizes do not depend on what is seen."""
        count, target = 0, first
        try:
            while target <= most:
                drawn = self.simulator.draw_all(count=target - count, purpose="model")
                self.samples = drawn if self.samples is None else self.samples + drawn
                count, target = target, 2 * target
                self.number += 1
                if count >= self.enough_from:
                    self._judge(self.samples, count)
                    yield True
        except SimulatorError as fault:
            parts = [part for part in (self.samples, fault.samples) if part is not None]
            fault.samples = parts[0] + parts[1] if len(parts) == 2 else (parts[0] if parts else None)
            raise

    def _judge(self, samples: Any, count: int) -> None:
        """Solve the empirical game, tightened as far as necessary, and see whether that is an end."""
        share, known = self.delta / (self.number * (self.number + 1)), self.simulator.known
        model: LocalModel | JointModel
        if isinstance(known, LocalProblemSpec):
            model = LocalModel.of(known, samples, delta=share, interval=binomial_interval)
        else:
            share = share / 2 if known.horizon > 1 else share
            model = model_of(known, samples, delta=share, interval=binomial_interval)
        far = NEAR_GAP * self.epsilon if isinstance(model, LocalModel) else np.inf
        found = tightened(model, self.limits, self.best.policy, epsilon=self.epsilon, far=far)
        if found is not None and found.feasible and self.epsilon < found.gap <= NEAR_EPSILON * self.epsilon:
            found = self._least_gap(model, found)
        if found is None:
            proof = model.proof_of_infeasibility()
            if proof:
                self.ended, self.reason = Status.INFEASIBLE, f"with probability {1 - self.delta:g}, {proof}"
        else:
            self.best = replace(found, samples_per_entry=count)
            if self.best.feasible and self.best.gap <= self.epsilon:
                self.ended = Status.CERTIFIED
        if isinstance(model, LocalModel):
            # Gaps fall with the number of samples at most, and by nothing else than the box.
            self.enough_from = count * min(self.best.gap / self.epsilon, MAX_FACTOR) / 2
        elif self.ended is None and known.horizon > 1 and not self._nearly:
            try:
                self._check(model, count, share)
            except SimulatorError as fault:
                fault.samples = None  # what one agent sees is not counted by joint actions
                raise
        if self.ended is None and not self.simulator.ledger.total:
            proved = self.best.summary(known.thresholds, self.epsilon)
            self.ended, self.reason = Status.LIMIT, f"{proved} There is nothing to be drawn that would help."

    def _least_gap(self, model: Model, found: Round) -> Round:
        """Look for an equilibrium with a smaller gap from other starts: the box holds for all policies, so that
        looking costs no samples and no δ.
        """
        if isinstance(model, LocalModel):
            return found
        cheapest = feasible_start(model.game.with_thresholds(self.limits)).policy
        if cheapest is None:
            return found
        least = model.game.at(cheapest).costs
        for part in PARTS:
            start = _solved(model, least + part * (self.limits - least), cheapest, epsilon=self.epsilon)
            other = None if start is None else tightened(model, self.limits, start, epsilon=self.epsilon)
            if other is not None and other.feasible and other.gap < found.gap:
                found = other
            if found.gap <= self.epsilon:
                break
        return found

    @property
    def _nearly(self) -> bool:
        """Whether the box alone will do with twice the samples, so that a check is not worth its own."""
        return self.best.feasible and self.best.gap <= NEAR_EPSILON * self.epsilon

    def _check(self, model: JointModel, count: int, share: float) -> None:
        """Solve the empirical game with a little room, and check what comes of it with fresh samples."""
        thresholds, policy = self.limits, self.best.policy
        if isinstance(model.game, JointGame):
            variances = cost_variances(model.game.joint_cmdp(), joint_table(policy))[0]
        else:
            variances = cost_variances(model.unmasked.at(policy).induced_cmdp(0), policy[0])[0]
        likely = 3 * np.sqrt(variances / count)
        result = _ascent(model.game.with_thresholds(thresholds - likely), policy, self.epsilon / 16)
        if result.incumbent is None:
            return
        found = result.policy
        agents = range(model.game.num_agents)
        parts = share / (1 + len(agents))
        spent = self.simulator.ledger.total
        costs = Measurement(
            InducedProblem(self.simulator, 0, found, purpose="checks"),
            found[0],
            model.unmasked.at(found).induced_cmdp(0),
            delta=parts,
        )
        while np.any(costs.ceilings[1:] > thresholds):
            if np.any(costs.floors[1:] > thresholds) or costs.episodes * 4 * model.game.num_steps > spent:
                return
            costs.grow()
        entries = sum(steps * states * actions for steps, states, actions in found.shapes)
        learner = Adaptive(first_count=max(count, 64), max_count=max(spent // entries, count, 64))
        gaps = []
        for agent in agents:
            problem = InducedProblem(self.simulator, agent, found, purpose="checks", nash_epsilon=self.epsilon)
            answer = learner(problem, epsilon=self.epsilon / 4, delta=parts)
            if answer.current is None or not answer.stays(self.epsilon):
                return
            gaps.append(answer.value_ceiling - answer.current.value_floor)
        self.best = Round(count, found, max(gaps), costs.ceilings[1:].copy(), feasible=True)
        self.ended = Status.CERTIFIED

    def conclude(self, status: Status, reason: str) -> LearnResult:
        """Gather the result."""
        result = concluded(self.simulator, self.best, status, reason, epsilon=self.claimed, delta=self.delta)
        settings = {"samples_per_entry": self.best.samples_per_entry, "rounds": self.number}
        return replace(
            result,
            played=self.simulator.played,
            settings={**settings, **cut_settings(self.simulator.known)},
        )


def concluded(simulator: Any, best: Round, status: Status, reason: str, *, epsilon: float, delta: float) -> LearnResult:
    """Return the result of a run that learned one model for all, but for what was played and how."""
    certified, known = status is Status.CERTIFIED, simulator.known
    proved = best.summary(known.thresholds, known.left_of(epsilon))
    return LearnResult(
        status=status,
        message=claim(epsilon, delta) if certified else f"nothing is certified; {proved}",
        policy=best.policy,
        epsilon=epsilon,
        delta=delta,
        samples=simulator.ledger.by_purpose,
        assumptions=ASSUMPTIONS,
        void=() if certified else (reason,),
    )


def tightened(
    model: Model, limits: FloatArray, start: JointPolicy, *, epsilon: float, far: float = np.inf
) -> Round | None:
    """Return the policy for the loosest thresholds β − t·e that bring its worst costs to β, the limits [k]; None where
    none is found.

    As in `generative.tightened_candidate`, e is by how much the worst costs of the untightened policy exceed its
    empirical ones, and t is found by bisection. This is not tried where even the untightened policy has a larger gap
    than `far`.
    """
    best = _solved(model, limits, start, epsilon=epsilon)
    if best is None:
        return None
    ceilings = model.cost_ceilings(best)
    if np.any(ceilings > limits) and far < np.inf:
        bounds = model.bound(best)
        if bounds.gap > far:
            return Round(0, best, bounds.gap, bounds.cost_ceilings, feasible=False)
    if np.any(ceilings > limits):
        excess = np.maximum(ceilings - model.game.at(best).costs, 0.0)
        low, high = 0.0, 2.0
        for _ in range(TIGHTENINGS):
            middle = (low + high) / 2
            tried = _solved(model, limits - middle * excess, best, epsilon=epsilon)
            if tried is None or np.all(model.cost_ceilings(tried) <= limits):
                high, best = middle, tried or best
            else:
                low = middle
    bounds = model.bound(best)
    return Round(0, best, bounds.gap, bounds.cost_ceilings, bool(np.all(bounds.cost_ceilings <= limits)))


def _solved(model: Model, thresholds: FloatArray, start: JointPolicy, *, epsilon: float) -> JointPolicy | None:
    """Solve the empirical game with other thresholds; None where no start is found."""
    result = _ascent(model.game.with_thresholds(thresholds), start, epsilon / 16)
    return None if result.incumbent is None else result.policy


def _ascent(game: Game, start: JointPolicy, epsilon: float) -> Result:
    """Go on from the last policy where it is feasible, and from a start of the solver's own where it is not."""
    try:
        return uninterrupted(solve(game, epsilon=epsilon, start=start))
    except InfeasibleError:
        return uninterrupted(solve(game, epsilon=epsilon))


def joint_table(policy: JointPolicy) -> FloatArray:
    """Return the policy of a planner who chooses all actions: [H, S, ΠA]."""
    return np.stack([joint_rows(policy, h) for h in range(policy.shapes[0][0])])
