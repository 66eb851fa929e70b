"""CA-CMPG (Algorithm 1): coordinate ascent on the potential, every iterate feasible.

From a feasible π^0, in iteration t: each agent i solves its CMDP for a response with error at most ε/2, and ε_i^t =
V^{r_i}(response) − V^{r_i}(π^{t−1}). If the greatest ε_i^t exceeds ε/2 that agent moves; otherwise π^{t−1} is an
ε-Nash policy and is returned.

Guarantee (Theorem 1, with the true ranges; the paper's own games leave [0, 1]): in a Markov potential game the
potential rises by more than ε/2 with each move and by no more than Σ_i G_i in all, G_i = Σ_h (max r_{i,h} − min
r_{i,h}), so there are at most T = ⌈2 Σ_i G_i / ε⌉ moves. Accepted gains that add up to more than Σ_i G_i, or a policy
seen before, prove that the game is not a Markov potential game; so the loop ends on any game. What it returns is
judged by `certify`, which needs no potential.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import Evaluation, evaluate
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.kernels.choice import kernels_used
from cmpg.cmdp.planning import dual_bound, greedy_policy
from cmpg.cmdp.response import BestResponse, Solver, cost_margins
from cmpg.deadline import limited
from cmpg.equilibrium.certificate import (
    certificate_seconds,
    certify,
    gain_rounding,
)
from cmpg.equilibrium.loop import (
    Answer,
    Ending,
    GreatestGain,
    OnProgress,
    Polish,
    RoundRobin,
    Rules,
    Schedule,
    interrupted_at,
    take_turns,
    verdict,
)
from cmpg.equilibrium.result import Incumbent, Result, Status
from cmpg.equilibrium.starts.start import worst_slack
from cmpg.errors import CMPGError, InfeasibleError, OutOfTimeError, SolverError
from cmpg.games.contract import (
    AgentBounds,
    Game,
    Information,
    Position,
    agent_bounds,
    binds_of,
    bounded_together,
    current,
    only_binding,
    same_problem,
)
from cmpg.policy import JointPolicy

FEW_AGENTS = 4
"""Up to this many agents everybody is asked before somebody moves; above, agents take turns."""

IN_A_CIRCLE = "the moves went in a circle: where constraints bind some agents only, there need not be an equilibrium."

OUT_BY_ROUNDING = (
    "a response met a threshold only up to rounding, and somebody had to move back: floating point can tell no more "
    "here. Rescale the costs, or change the threshold a little."
)

DOUBT = 8.0
"""Nothing may be left of a budget if no more is left than this times what rounding can hide in its cost."""

SECONDS_AFTER_INTERRUPT = 0.5
"""Time to find multipliers for the certificate of the last policy; agents that are not reached get zero."""

SPENT = 1e-9
"""A budget of which no more than this is left is spent."""


def coordinate_ascent(
    game: Game,
    start: JointPolicy,
    *,
    epsilon: float = 1e-6,
    solver: Solver | None = None,
    schedule: Schedule | None = None,
    polish: bool = True,
    multipliers: FloatArray | None = None,
    max_iterations: int | None = None,
    time_limit: float = np.inf,
    workers: int = 1,
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
        No agent shall gain more than this by leaving.
    solver
        Finds best responses; `Exact()` unless given.
    schedule
        Who moves next; `GreatestGain()` for up to four agents and `RoundRobin()` above, unless given.
    polish
        At the end, refill the rows of states that nobody visits with what is best there, and go on if somebody gains:
        what a policy does off its path decides what others' deviations are worth.
    multipliers : [n, k]
        Multipliers to try first. An agent whose gain they bound by ε/2 is not solved for: its policy is a good response
        already.
    max_iterations
        Moves at most; Theorem 1's bound unless given.
    time_limit
        Seconds.
    workers
        Threads that solve CMDPs at the same time, where the schedule asks several agents at once (`GreatestGain`); the
        answer has the same bits for any number. For solvers that leave the interpreter for long, as `LinearProgram`
        does on large CMDPs; `Exact` does not, and is slower with them.
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
    if not epsilon > 0:
        raise CMPGError(f"epsilon is {epsilon}; it must be positive.")
    began = time.monotonic()
    best_response = solver or Exact()
    answers = _Answers(best_response, epsilon, multipliers)
    rules = Rules(
        schedule=schedule or (GreatestGain() if game.num_agents <= FEW_AGENTS else RoundRobin()),
        enough=epsilon / 2,
        max_moves=theorem_1_bound(game, epsilon) if max_iterations is None else max_iterations,
        most_gain=float(np.sum(game.reward_ranges)) * (1 + 1e-9) + epsilon if binds_of(game).all() else np.inf,
        no_return=True,
    )
    settings = {
        "solver": repr(best_response),
        "schedule": repr(rules.schedule),
        "workers": workers,
        "polish": polish,
        "random_ties": rng is not None,
        "kernels": kernels_used(),
    }
    polisher = Polish(_greedy, rng)
    polishing = polish and game.information is Information.JOINT_STATE
    last = [start]  # the policy that was reached last, for whatever ends this early
    try:
        # A limit holds within a tenth and a second, so that what was reached by then can be judged.
        with limited(began + 1.1 * time_limit + 0.8):
            position = game.at(start)
            _require_feasible(position)
            deadline = began + time_limit
            if np.isfinite(time_limit):
                deadline -= min(certificate_seconds(position, game.num_agents), time_limit / 2)
            with limited(deadline):
                ending = take_turns(
                    position,
                    answers,
                    replace(rules, deadline=deadline),
                    at_rest=polisher if polishing else lambda position, _: position,
                    same_problem=same_problem,
                    workers=workers,
                    rng=rng,
                    on_progress=on_progress,
                    on_move=lambda moved: last.__setitem__(0, moved.policy),
                )
            last[0] = ending.position.policy
            if ending.status is Status.INTERRUPTED:
                deadline = min(deadline, time.monotonic() + SECONDS_AFTER_INTERRUPT)
            try:
                concluded = _concluded(game, ending, answers, epsilon=epsilon, deadline=deadline)
            except KeyboardInterrupt:  # without its certificate the incumbent is worth little: that is finished
                stopped = replace(ending, status=Status.INTERRUPTED, message="interrupted by the user.")
                concluded = _concluded(game, stopped, answers, epsilon=epsilon, deadline=0.0)
    except OutOfTimeError:
        text = "the time limit was reached before the policy was judged: `result.start` is the last one; certify it."
        return Result(Status.LIMIT, text, epsilon, game=game, start=last[0], settings=settings)
    except KeyboardInterrupt:  # between two of these steps
        concluded = interrupted_at(game, last[0], epsilon=epsilon)
    return replace(concluded, max_iterations=int(rules.max_moves), start=start, settings=settings)


def _concluded(game: Game, ending: Ending[Position], answers: _Answers, *, epsilon: float, deadline: float) -> Result:
    """Certify where the loop ended: the certificate decides, not the loop."""
    shared = bool(binds_of(game).all())
    if ending.status is Status.NOT_POTENTIAL and (answers.moved_back or not shared):
        told = OUT_BY_ROUNDING if shared else IN_A_CIRCLE
        ending = replace(ending, status=Status.LIMIT, message=told)
    multipliers = np.zeros((game.num_agents, len(game.thresholds)))
    for agent in range(game.num_agents):
        known = ending.answers.get(agent)
        with suppress(OutOfTimeError), limited(deadline):
            multipliers[agent] = known.detail.multipliers if known else answers.multipliers(ending.position, agent)
    # Where values are beyond all floats, a solver may have no multiplier to tell; any will do, and zero is one.
    multipliers[np.isnan(multipliers)] = 0.0
    multipliers = only_binding(game, multipliers)
    certificate = certify(game, ending.position.policy, multipliers)
    if ending.status is Status.CERTIFIED and certificate.rounding.max() > epsilon / 4:
        gentle = _hard_budgets().gentler_multipliers(ending.position, multipliers, epsilon=epsilon)
        if not np.array_equal(gentle, multipliers):
            multipliers, certificate = gentle, certify(game, ending.position.policy, gentle)
    status, message = verdict(ending, certificate, epsilon=epsilon, ranges=game.reward_ranges, failed=answers.failed)
    return Result(
        status=status,
        message=message,
        epsilon=epsilon,
        incumbent=Incumbent(ending.position.policy, multipliers, certificate),
        game=game,
        trace=ending.trace,
        moves=ending.moves,
        refused=answers.failures,
        interrupted=ending.status is Status.INTERRUPTED,
    )


def best_response(
    position: Position, agent: int, solver: Solver, *, epsilon: float = 0.0, rng: np.random.Generator | None = None
) -> BestResponse:
    """Ask a solver for a best response; where nothing is left of a budget, for the best that it allows.

    Parameters
    ----------
    position, agent
        Where everybody stands, and who responds.
    solver, rng
        Finds best responses in CMDPs, and breaks ties.
    epsilon
        What is to be proved: a budget above zero is taken to be hard only if rounding would hide more of it.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example(threshold=0.0)
    >>> position = game.at(JointPolicy(([[[1.0, 0.0]]], [[[0.0, 1.0]]])))
    >>> response = best_response(position, 0, Exact())
    >>> response.policy, response.multipliers
    (array([[[1., 0.]]]), array([inf]))
    """
    spent = np.abs(position.slacks) <= DOUBT * position.cost_rounding
    unspent = spent & np.asarray(position.costs == 0)
    if unspent.any() and (hard := _hard_budgets().within(position, agent, unspent)) is not None:
        return hard.respond(solver, rng=rng)  # type: ignore[no-any-return]
    cmdp = position.induced_cmdp(agent)
    response = solver(cmdp, rng=rng)
    hidden = gain_rounding(cmdp, response.multipliers) + 2 * response.multipliers @ position.cost_rounding
    if spent.any() and hidden > epsilon / 4 and (hard := _hard_budgets().within(position, agent, spent)) is not None:
        return hard.respond(solver, rng=rng)  # type: ignore[no-any-return]
    return response


def _hard_budgets() -> Any:
    import cmpg.equilibrium.best_responses as best_responses  # few games need it

    return best_responses


def theorem_1_bound(game: Game, epsilon: float) -> int:
    """Return ⌈2 Σ_i G_i / ε⌉: in a Markov potential game there are no more moves than this."""
    return int(min(np.ceil(2 * float(np.sum(game.reward_ranges)) / epsilon), 2.0**62))


@dataclass(frozen=True, eq=False)
class _Screened:
    """What some neighbouring agents could get at their multipliers, at one position."""

    position: Position
    agents: range
    multipliers: FloatArray
    judged: AgentBounds


class _Answers:
    """Solves one agent's CMDP, evaluates what the solver returned, and measures the gain: nothing is believed.

    An agent that was solved for before is first asked for a proof with its last multipliers: one backward induction,
    and nobody who gains at most ε/2 is solved for again. Its present policy is then a response as good as the
    algorithm requires.
    """

    def __init__(self, solver: Solver, epsilon: float, multipliers: FloatArray | None) -> None:
        self._solver, self._epsilon = solver, epsilon
        self._last = {} if multipliers is None else dict(enumerate(multipliers))
        self._guided = multipliers is not None
        self.failed = ""  # what the solver said when it last failed
        self.failures = 0
        self.moved_back = False  # whether somebody had to move because a budget was overspent, and not for a gain
        self._screened: _Screened | None = None

    def __call__(self, position: Position, agent: int, rng: np.random.Generator | None) -> Answer:
        """Return a response and its gain."""
        over = position.slacks < -DOUBT * position.cost_rounding
        if over.any() and (current(position, agent).costs > position.induced_cmdp(agent).thresholds).any():
            return self._made_feasible(position, agent, rng)
        proved = self._proved(position, agent)
        if proved is not None:
            return proved
        cmdp, table = position.induced_cmdp(agent), position.policy[agent]
        present = current(position, agent)
        last = self._last.get(agent)
        if last is not None:
            hard = np.isinf(last).any()
            bound = _hard_budgets().bound_at(position, agent, last) if hard else dual_bound(cmdp, last)
            if bound - present.value <= self._epsilon / 2:
                proof = BestResponse(table, present.value, present.costs, last, bound, 1)
                return Answer(table, max(float(bound - present.value), 0.0), proof)
        try:
            solver = self._solver_for(last, cmdp.thresholds - present.costs)
            if np.any(np.abs(position.slacks) <= DOUBT * position.cost_rounding):
                response = best_response(position, agent, solver, epsilon=self._epsilon, rng=rng)
            else:
                response = solver(cmdp, rng=rng)
            judged = evaluate(cmdp, response.policy)
            self._require_feasible(agent, judged.costs - np.maximum(cmdp.thresholds, present.costs), cost_margins(cmdp))
        except (InfeasibleError, SolverError) as problem:
            return self._unanswered(agent, table, present, str(problem), cmdp.num_constraints)
        self._last[agent] = response.multipliers
        gain = float(judged.value - present.value)
        # A gain that rounding could have made is no reason to move: large rewards would loop on noise.
        noise = gain_rounding(cmdp, np.zeros(cmdp.num_constraints))
        return Answer(response.policy, gain if gain > noise else min(gain, self._epsilon / 2), response)

    def _made_feasible(self, position: Position, agent: int, rng: np.random.Generator | None) -> Answer:
        """Where others have spent a budget that does not bind them, whoever it binds has to move, whatever it gains."""
        cmdp, table = position.induced_cmdp(agent), position.policy[agent]
        try:
            response = self._solver(cmdp, rng=rng)
        except (InfeasibleError, SolverError) as problem:
            return self._unanswered(agent, table, current(position, agent), str(problem), cmdp.num_constraints)
        self.moved_back = True
        return Answer(response.policy, cmdp.reward_range + self._epsilon, response)

    def _proved(self, position: Position, agent: int) -> Answer | None:
        """Bound what an agent could gain at its last multipliers, where a position can do that for several at once.

        The next agents are likely to be asked next: twice as many each time, until somebody moves.
        """
        if not self._can_be_judged(agent):
            return None
        known = self._screened if self._screened and self._screened.position is position else None
        if known is None or agent not in known.agents:
            last = bounded_together(position, agent).stop if known is None else agent + 2 * len(known.agents)
            stop = agent + 1
            while stop < min(last, len(position.policy)) and self._can_be_judged(stop):
                stop += 1
            multipliers = np.stack([self._last[i] for i in range(agent, stop)])
            judged = agent_bounds(position, multipliers, range(agent, stop))
            if judged is None:
                return None
            known = self._screened = _Screened(position, range(agent, stop), multipliers, judged)
        place = agent - known.agents.start
        gain = float(known.judged.bounds[place] - known.judged.values[place])
        # The agent may have been solved for since, and have other multipliers now.
        if gain > self._epsilon / 2 or not np.array_equal(known.multipliers[place], self._last[agent]):
            return None
        table: Any = position.policy.stored[agent]
        value = float(known.judged.values[place])
        proof = BestResponse(table, value, np.zeros(0), self._last[agent], float(known.judged.bounds[place]), 1)
        return Answer(table, max(gain, 0.0), proof)

    def _can_be_judged(self, agent: int) -> bool:
        return agent in self._last and not np.isinf(self._last[agent]).any()

    def _unanswered(
        self, agent: int, table: FloatArray, present: Evaluation, problem: str, num_constraints: int
    ) -> Answer:
        """Let an agent without a response keep its policy, which is feasible; the certificate says what that proves."""
        self.failed = f"agent {agent} has no response: {problem}"
        self.failures += 1
        last = self._last.get(agent, np.zeros(num_constraints))
        return Answer(table, 0.0, BestResponse(table, present.value, present.costs, last, np.inf, 0))

    def multipliers(self, position: Position, agent: int) -> FloatArray:
        """Return multipliers for an agent who was not asked at this position: the last ones, or a best response's."""
        known = self._last.get(agent) if self._guided else None
        if known is not None:
            return np.asarray(known)
        try:
            return np.asarray(best_response(position, agent, self._solver, epsilon=self._epsilon).multipliers)
        except (InfeasibleError, SolverError) as problem:
            self.failed = f"agent {agent} has no response: {problem}"
            return np.asarray(self._last.get(agent, np.zeros(len(position.costs))))

    def _solver_for(self, last: FloatArray | None, slacks: FloatArray) -> Solver:
        """Return the solver; where a single threshold is spent, the agent's last multiplier is a guess of the next.

        Only where multipliers were given: a guess changes what the answer does in states that are never visited, which
        matters where others' deviations lead there.
        """
        spent = len(slacks) == 1 and abs(slacks[0]) < SPENT
        guess = last is not None and np.isfinite(last).all()
        if self._guided and last is not None and guess and spent and isinstance(self._solver, Exact):
            return replace(self._solver, near=float(last[0]))
        return self._solver

    def _require_feasible(self, agent: int, over: FloatArray, margins: FloatArray) -> None:
        if (over > 2 * margins).any():
            raise SolverError(
                f"{type(self._solver).__name__} returned a policy for agent {agent} that exceeds a threshold "
                f"by {over.max():.3g}. Use Exact(), or a solver that returns feasible policies."
            )


def _greedy(position: Position, agent: int, multipliers: FloatArray, rng: np.random.Generator | None) -> FloatArray:
    if np.isinf(multipliers).any():
        return np.asarray(_hard_budgets().greedy_at(position, agent, multipliers, rng=rng))
    return greedy_policy(position.induced_cmdp(agent), multipliers, rng=rng)


def _require_feasible(position: Position) -> None:
    slack = worst_slack(position)
    if slack < -float(np.max(position.cost_rounding, initial=0.0)):
        raise InfeasibleError(
            f"the start is infeasible: its costs are {position.costs}, {-slack:.6g} above a threshold. "
            "Pass a feasible start, or leave it out and one is sought."
        )
