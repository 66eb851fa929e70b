"""Algorithm 3 with the number of samples fixed beforehand: rigorous, and as printed.

`APriori` draws the rigorous N of `bounds.py` for a slack that is given, and solves the empirical CMDP exactly with
α′ = α − e. `PaperPrimalDual` is the paper's own: its N, its α′, and T iterations of its primal-dual loop, averaged into
one policy; T is 1e10 and more in all but toy cases, and then it refuses.

Neither trusts its assumptions. If every empirical row is within b of the true one in L1, which holds with probability
1 − δ for the radius b at N, then every value is known up to b·D/2 (see `bounds.py`); so V^c ≤ α is checked, and the
empirical optimum for thresholds α + e bounds the true one. "Certified" means that these hold, whatever was assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import evaluate, occupancy, policy_from_occupancy
from cmpg.cmdp.exact import Exact, greatest_slack
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import plan
from cmpg.errors import BudgetError, CMPGError, InfeasibleError
from cmpg.learning.bounds import Size, error_weights, paper_constants, rigorous_constants
from cmpg.learning.confidence import empirical_cmdp, l1_radius
from cmpg.learning.outcome import LearnedResponse, ResponseStatus
from cmpg.learning.simulator import InducedProblem


@dataclass(frozen=True)
class APriori:
    """Draw the rigorous number of samples for a slack that is known, then solve exactly with α′ = α − e.

    Parameters
    ----------
    slater
        A slack that the CMDP has: max_π min_j (α_j − V^{c_j}(π)), or less.
    max_samples
        More are refused at once; the simulator's own budget holds besides.
    """

    slater: float
    max_samples: float = 1e15

    def __call__(self, problem: InducedProblem, *, epsilon: float, delta: float) -> LearnedResponse:
        """Learn a best response, or raise BudgetError before anything is drawn."""
        size = Size.of(problem.known, problem.agent)
        constants = rigorous_constants(size, slater=self.slater, epsilon=epsilon, delta=delta)
        refuse_beyond(problem, constants.samples, limit=self.max_samples, mode="APriori")
        empirical = _sampled(problem, constants.samples_per_entry)
        try:
            found = Exact()(replace(empirical, thresholds=empirical.thresholds - constants.tightening, trusted=True))
            draft = _Draft(found.policy, found.multipliers, constants.samples_per_entry, found.work)
        except InfeasibleError:
            # The slack is not there; the safest policy is the only one that could still pass the check.
            safe = greatest_slack(empirical)
            draft = _Draft(safe.policy, np.zeros(len(safe.costs)), constants.samples_per_entry, len(safe.plans))
        return _judge(empirical, draft, size=size, epsilon=epsilon, delta=delta)


@dataclass(frozen=True)
class PaperPrimalDual:
    """The paper's Algorithm 3 with the paper's constants; one constraint.

    Parameters
    ----------
    slater
        The slack ζ of the CMDP.
    max_samples
        More are refused at once.
    max_iterations
        More iterations of the primal-dual loop, each of them a dynamic program, are refused at once.
    """

    slater: float
    max_samples: float = 1e15
    max_iterations: float = 1e6

    def __call__(self, problem: InducedProblem, *, epsilon: float, delta: float) -> LearnedResponse:
        """Learn a best response, or raise BudgetError before anything is drawn."""
        if problem.known.num_constraints != 1:
            raise CMPGError(
                f"PaperPrimalDual is for one constraint; there are {problem.known.num_constraints}. Use Adaptive."
            )
        size = Size.of(problem.known, problem.agent)
        constants = paper_constants(size, slater=self.slater, epsilon=epsilon, delta=delta)
        drawn = float(constants.samples_per_entry) * size.entries  # the bound counts the last step, which leads nowhere
        refuse_beyond(problem, drawn, limit=self.max_samples, mode="PaperPrimalDual")
        if constants.iterations > self.max_iterations:
            raise BudgetError(
                f"PaperPrimalDual would take {constants.iterations:.3g} dynamic programs and {constants.samples:.3g} "
                f"samples; max_iterations is {self.max_iterations:.3g}. Use Adaptive, or ask for a larger epsilon."
            )
        empirical = _sampled(problem, constants.samples_per_entry)
        tightened = replace(empirical, thresholds=empirical.thresholds - constants.tightening, trusted=True)
        loop = primal_dual(
            tightened,
            iterations=int(constants.iterations),
            step_size=constants.step_size,
            multiplier_bound=constants.multiplier_bound,
        )
        draft = _Draft(loop.policy, loop.multipliers, constants.samples_per_entry, int(constants.iterations))
        return _judge(empirical, draft, size=size, epsilon=epsilon, delta=delta)


@dataclass(frozen=True, eq=False)
class Averaged:
    """The policy with the mean occupancy of all iterates, and the mean multiplier."""

    policy: FloatArray  # [H, S, A]
    multipliers: FloatArray  # [1]


def primal_dual(cmdp: CMDP, *, iterations: int, step_size: float, multiplier_bound: float) -> Averaged:
    """Run the paper's loop: π_t = argmax V^{r − λ_t c}, λ_{t+1} = clip(λ_t − η(α − V^c(π_t)), 0, U), then average."""
    multipliers, total = np.zeros(1), np.zeros(1)
    mean = np.zeros(cmdp.policy_shape)
    seen: dict[bytes, FloatArray] = {}
    for _ in range(iterations):
        best = plan(cmdp, multipliers)
        key = best.actions.tobytes()
        if key not in seen:
            seen[key] = occupancy(cmdp, best.policy(cmdp.num_actions))
        mean += seen[key]
        total += multipliers
        multipliers = np.clip(multipliers - step_size * (cmdp.thresholds - best.costs), 0.0, multiplier_bound)
    uniform = np.full(cmdp.policy_shape, 1.0 / cmdp.num_actions)
    return Averaged(policy_from_occupancy(mean / iterations, uniform), total / iterations)


@dataclass(frozen=True, eq=False)
class _Draft:
    policy: FloatArray  # [H, S, A]
    multipliers: FloatArray  # [k]
    count: int  # samples of every entry
    work: int


def _judge(empirical: CMDP, draft: _Draft, *, size: Size, epsilon: float, delta: float) -> LearnedResponse:
    """Bound value and costs by the L1 radius, which holds for all policies at once."""
    radius = l1_radius(draft.count, size.successors, delta=delta / size.entries) if size.entries else 0.0
    reward_error, cost_error = (radius * weight / 2 for weight in error_weights(size))
    judged = evaluate(empirical, draft.policy)
    ceilings, floor = judged.costs + cost_error, judged.value - reward_error
    status, ceiling = ResponseStatus.UNPROVED, np.inf
    try:
        relaxed = Exact()(replace(empirical, thresholds=empirical.thresholds + cost_error, trusted=True))
    except InfeasibleError:
        status = ResponseStatus.INFEASIBLE
    else:
        ceiling = relaxed.bound + reward_error
        if np.all(ceilings <= empirical.thresholds) and ceiling - floor <= epsilon:
            status = ResponseStatus.CERTIFIED
    told = f": costs at most {ceilings} (thresholds {empirical.thresholds}), bounds {ceiling - floor:.4g} apart."
    return LearnedResponse(
        status=status,
        message=status.value + ("" if status is ResponseStatus.CERTIFIED else told),
        policy=draft.policy,
        value_floor=floor,
        value_ceiling=ceiling,
        cost_ceilings=ceilings,
        multipliers=draft.multipliers,
        epsilon=epsilon,
        delta=delta,
        samples=draft.count * size.entries,
        samples_per_entry=draft.count,
        work=draft.work,
    )


def _sampled(problem: InducedProblem, count: int) -> CMDP:
    """Draw, and return the empirical CMDP."""
    entries = problem.shape[0] > 1 and count > 0
    return empirical_cmdp(problem, problem.draw(count) if entries else problem.no_samples())


def refuse_beyond(problem: InducedProblem, samples: float, *, limit: float, mode: str) -> None:
    """Raise BudgetError where a mode would draw more samples than it may, and say what it would take."""
    allowed = min(limit, problem.simulator.ledger.left)
    if samples > allowed:
        raise BudgetError(
            f"{mode} would take {samples:.3g} samples for one response; {allowed:.3g} are allowed. "
            f"Use Adaptive, which draws as many as it turns out to need, or ask for a larger epsilon."
        )
