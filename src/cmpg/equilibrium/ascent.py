"""CA-CMPG (Algorithm 1): coordinate ascent on the potential, every iterate feasible.

From a feasible π^0, in iteration t: each agent i solves its CMDP for a response with error at most ε/2, and ε_i^t =
V^{r_i}(response) − V^{r_i}(π^{t−1}). If the greatest ε_i^t exceeds ε/2 that agent moves; otherwise π^{t−1} is an
ε-Nash policy and is returned.

Guarantee (Theorem 1, with the true ranges; the paper's own games leave [0, 1]): in a Markov potential game the
potential rises by more than ε/2 with each move and by no more than Σ_i G_i in all, G_i = Σ_h (max r_{i,h} − min
r_{i,h}), so there are at most T = ⌈2 Σ_i G_i / ε⌉ moves. Accepted gains that add up to more than Σ_i G_i, or a policy
seen before, prove that the game is not a Markov potential game; so the loop ends on any game. What it returns is
judged by `screen`, which needs no potential.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from cmpg.arrays import FloatArray, check_positive
from cmpg.cmdp.evaluation import occupancy
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.kernels.choice import kernels_used
from cmpg.cmdp.response import Solver
from cmpg.deadline import limited
from cmpg.equilibrium.best_responses import Responses, greedy_at, reduced_multipliers
from cmpg.equilibrium.certificate import certificate_seconds, screen
from cmpg.equilibrium.loop import (
    Answer,
    Ending,
    GreatestGain,
    OnProgress,
    RoundRobin,
    Rules,
    Schedule,
    interrupted_at,
    take_turns,
    verdict,
)
from cmpg.equilibrium.result import Incumbent, Result, Status
from cmpg.equilibrium.starts.start import worst_slack
from cmpg.errors import CMPGError, InfeasibleError, OutOfTimeError
from cmpg.games.game import Game, Information, Position, binds_of, only_binding
from cmpg.policy import JointPolicy, check_is_policy

FEW_AGENTS = 4
"""Up to this many agents all are solved for before one moves; above, agents take turns."""

CYCLE = "the moves went in a circle: where constraints bind some agents only, there need not be an equilibrium."

CYCLE_BY_ROUNDING = (
    "a response met a threshold only up to rounding, and an agent had to move back: floating point can tell no more "
    "here. Rescale the costs, or change the threshold a little."
)


SECONDS_AFTER_INTERRUPT = 0.5
"""Time to find multipliers for the certificate of the last policy; agents that are not reached get zero."""


@dataclass(frozen=True)
class Ascent:
    """CA-CMPG as a value: how responses are found, who moves next, and when to stop.

    Parameters
    ----------
    solver
        Finds best responses.
    schedule
        Who moves next; `GreatestGain()` for up to four agents and `RoundRobin()` above, unless given.
    complete_off_path
        At the end, fill the rows of states that are never visited with what is best there, and continue if an agent
        gains then: what a policy does off its path decides what others' deviations are worth.
    max_iterations
        Maximum number of moves; Theorem 1's bound unless given.
    workers
        Threads: those that solve CMDPs at the same time, where the schedule queries several agents at once
        (`GreatestGain`), and those that plan for several agents of a local game while a common price is sought. The
        answer has the same bits for any number. For solvers that leave the interpreter for long, as `LinearProgram`
        does on large CMDPs; `Exact` does not, and is slower with them.

    Examples
    --------
    >>> Ascent(schedule=RoundRobin(), max_iterations=100)
    Ascent(solver=Exact(), schedule=RoundRobin(), complete_off_path=True, max_iterations=100, workers=1)
    """

    solver: Solver = field(default_factory=Exact)
    schedule: Schedule | None = None
    complete_off_path: bool = True
    max_iterations: int | None = None
    workers: int = 1

    def __post_init__(self) -> None:
        """Reject what is not a solver or a schedule."""
        if not callable(self.solver):
            raise CMPGError(f"solver is {self.solver!r}; a solver is required, such as Exact() or LinearProgram().")
        if self.schedule is not None and not hasattr(self.schedule, "next_mover"):
            raise CMPGError(f"schedule is {self.schedule!r}; GreatestGain() or RoundRobin() is required.")

    def rules(self, game: Game, epsilon: float) -> Rules:
        """Return when an agent moves, and what ends the loop."""
        binds_all = bool(binds_of(game).all())  # else agents may move in a circle, although each of them gains
        return Rules(
            schedule=self.schedule or (GreatestGain() if game.num_agents <= FEW_AGENTS else RoundRobin()),
            enough=epsilon / 2,
            max_moves=theorem_1_bound(game, epsilon) if self.max_iterations is None else self.max_iterations,
            most_gain=float(np.sum(game.reward_ranges)) * (1 + 1e-9) + epsilon if binds_all else np.inf,
            no_return=True,
        )


def coordinate_ascent(
    game: Game,
    start: JointPolicy,
    *,
    epsilon: float = 1e-6,
    method: Ascent = Ascent(),
    multipliers: FloatArray | None = None,
    time_limit: float = np.inf,
    rng: np.random.Generator | None = None,
    on_progress: OnProgress = lambda _: None,
) -> Result:
    """Run CA-CMPG from a feasible start, and certify where it ends.

    Parameters
    ----------
    game
        Any game; the guarantee on the number of moves holds for Markov potential games.
    start
        A feasible joint policy.
    epsilon
        No agent shall gain more than this by deviating.
    method
        How responses are found, who moves next, and when to stop.
    multipliers : [n, k]
        Multipliers to try first. An agent whose gain they bound by ε/2 is not solved for: its policy is a good response
        already.
    time_limit
        Seconds.
    rng
        Breaks ties between best responses at random; without it the first action wins.
    on_progress
        Called with each `Step`.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> result = coordinate_ascent(game, game.uniform_policy(), epsilon=1e-3)
    >>> result.certified, result.moves
    (True, 1)
    """
    check_positive("epsilon", epsilon)
    check_is_policy(start)
    rules = method.rules(game, epsilon)
    responses = Responses(method.solver, epsilon, multipliers)
    completes = method.complete_off_path and game.information is Information.JOINT_STATE

    def algorithm_1(reached: _Reached, seconds: float) -> Result:
        began, position = time.monotonic(), game.at(start)
        _require_feasible(position)
        deadline = began + _seconds_before_certificate(position, seconds)
        with limited(deadline):
            ending = take_turns(
                position,
                responses,
                replace(rules, deadline=deadline),
                at_rest=OffPathCompletion(rng) if completes else lambda position, _: position,
                workers=method.workers,
                rng=rng,
                on_progress=on_progress,
                on_move=reached.keep,
            )
        reached.keep(ending.position)
        return _certified(game, ending, responses, epsilon=epsilon, deadline=deadline)

    settings = {
        "solver": repr(method.solver),
        "schedule": repr(rules.schedule),
        "workers": method.workers,
        "complete_off_path": method.complete_off_path,
        "random_ties": rng is not None,
        "kernels": kernels_used(),
    }
    result = _guarded(algorithm_1, game, start, epsilon=epsilon, time_limit=time_limit)
    return replace(result, max_iterations=int(rules.max_moves), settings=settings)


def theorem_1_bound(game: Game, epsilon: float) -> int:
    """Return ⌈2 Σ_i G_i / ε⌉: in a Markov potential game there are no more moves than this.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> theorem_1_bound(counter_example(), 0.1), theorem_1_bound(counter_example(), 0.01)
    (80, 800)
    """
    check_positive("epsilon", epsilon)
    most = np.ceil(2 * float(np.sum(game.reward_ranges)) / epsilon)
    return int(most) if most < 2.0**62 else 2**62  # ranges beyond all floats are inf, or nan


class OffPathCompletion:
    """Fills the rows that are never visited with what is best there, once after each rest that moves led to.

    Values and costs stay as they are, so the potential does too; but deviations of others reach those rows, and an
    agent may gain now.
    """

    def __init__(self, rng: np.random.Generator | None) -> None:
        self._rng = rng
        self._completed = b""  # the policy that was completed last

    def __call__(self, position: Position, answers: Mapping[int, Answer]) -> Position:
        """Return the completed position, or the same one if nothing is to be done."""
        visited = occupancy(position.induced_cmdp(0), position.policy[0]).sum(axis=-1) > 0
        if visited.all() or position.policy.fingerprint() == self._completed:
            return position
        for agent in range(len(position.policy)):
            best = greedy_at(position, agent, answers[agent].detail.multipliers, rng=self._rng)
            position = position.replace(agent, np.where(visited[..., None], position.policy[agent], best))
        self._completed = position.policy.fingerprint()
        return position


@dataclass(eq=False)
class _Reached:
    """The policy that was reached last."""

    policy: JointPolicy

    def keep(self, position: Position) -> None:
        """Remember the policy of a position."""
        self.policy = position.policy


def _guarded(
    algorithm: Callable[[_Reached, float], Result],
    game: Game,
    start: JointPolicy,
    *,
    epsilon: float,
    time_limit: float,
) -> Result:
    """Run an algorithm, and return what it reached where time or the user ends it outside of its loop.

    A limit holds within a tenth and a second, so that what was reached by then can be judged.
    """
    reached = _Reached(start)
    try:
        with limited(time.monotonic() + 1.1 * time_limit + 0.8):
            return replace(algorithm(reached, time_limit), start=start)
    except OutOfTimeError:
        text = "the time limit was reached before the policy was judged: `result.start` is the last one; certify it."
        return Result(Status.LIMIT, text, epsilon, game=game, start=reached.policy)
    except KeyboardInterrupt:
        return replace(interrupted_at(game, reached.policy, epsilon=epsilon), start=start)


def _seconds_before_certificate(position: Position, seconds: float) -> float:
    """Return the seconds that the loop may take, so that at least half of the time is left for the certificate."""
    if not np.isfinite(seconds):
        return seconds
    return seconds - min(certificate_seconds(position, len(position.policy)), seconds / 2)


def _certified(
    game: Game, ending: Ending[Position], responses: Responses, *, epsilon: float, deadline: float
) -> Result:
    """Certify where the loop ended; an interruption is noted, and the certificate is finished all the same."""
    if ending.status is Status.INTERRUPTED:
        deadline = min(deadline, time.monotonic() + SECONDS_AFTER_INTERRUPT)
    try:
        return _judged(game, ending, responses, epsilon=epsilon, deadline=deadline)
    except KeyboardInterrupt:  # without its certificate the incumbent is worth little
        stopped = replace(ending, status=Status.INTERRUPTED, message="interrupted by the user.")
        return _judged(game, stopped, responses, epsilon=epsilon, deadline=0.0)


def _judged(game: Game, ending: Ending[Position], responses: Responses, *, epsilon: float, deadline: float) -> Result:
    """Judge where the loop ended: the certificate decides, not the loop."""
    binds_all = bool(binds_of(game).all())
    if ending.status is Status.NOT_POTENTIAL and (responses.moved_back or not binds_all):
        message = CYCLE_BY_ROUNDING if binds_all else CYCLE
        ending = replace(ending, status=Status.LIMIT, message=message)
    multipliers = np.zeros((game.num_agents, len(game.thresholds)))
    for agent in range(game.num_agents):
        known = ending.answers.get(agent)
        with suppress(OutOfTimeError), limited(deadline):
            multipliers[agent] = known.detail.multipliers if known else responses.multipliers(ending.position, agent)
    # Where values overflow, a solver may have no multiplier to return; any will do, and zero is one.
    multipliers[np.isnan(multipliers)] = 0.0
    multipliers = only_binding(game, multipliers)
    certificate = screen(game, ending.position.policy, multipliers)
    if ending.status is Status.CERTIFIED and certificate.rounding.max() > epsilon / 4:
        reduced = reduced_multipliers(ending.position, multipliers, epsilon=epsilon)
        if not np.array_equal(reduced, multipliers):
            multipliers, certificate = reduced, screen(game, ending.position.policy, reduced)
    status, message = verdict(ending, certificate, epsilon=epsilon, ranges=game.reward_ranges, failed=responses.failure)
    return Result(
        status=status,
        message=message,
        epsilon=epsilon,
        incumbent=Incumbent(ending.position.policy, multipliers, certificate),
        game=game,
        trace=ending.trace,
        moves=ending.moves,
        refused=responses.failures,
        interrupted=ending.status is Status.INTERRUPTED,
    )


def _require_feasible(position: Position) -> None:
    slack = worst_slack(position)
    if slack < -float(np.max(position.cost_rounding, initial=0.0)):
        raise InfeasibleError(
            f"the start is infeasible: its costs are {position.costs}, {-slack:.6g} above a threshold. "
            "Pass a feasible start, or leave it out and one is sought."
        )
