"""Algorithm 3 with the number of samples fixed beforehand.

`APriori` draws the rigorous N of `bounds.py` for a slack that is given, and solves the empirical CMDP exactly with
α′ = α − e. The paper's own N and primal-dual loop are `cmpg.paper.Algorithm3`.

Assumptions are not trusted. If every empirical row is within b of the true one in L1, which holds with probability
1 − δ for the radius b at N, then every value is known up to b·D/2 (see `bounds.py`); so V^c ≤ α is checked, and the
empirical optimum for thresholds α + e bounds the true one. "Certified" means that these hold, whatever was assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact, greatest_slack
from cmpg.cmdp.model import CMDP
from cmpg.errors import BudgetError, InfeasibleError
from cmpg.learning.bounds import Size, error_weights, refuse_masks, rigorous_constants
from cmpg.learning.confidence import empirical_cmdp, l1_radius
from cmpg.learning.outcome import LearnedResponse, ResponseStatus
from cmpg.learning.problem import InducedProblem


@dataclass(frozen=True)
class APriori:
    """Draw the rigorous number of samples for a slack that is known, then solve exactly with α′ = α − e.

    Parameters
    ----------
    slater
        A slack that the CMDP has: max_π min_j (α_j − V^{c_j}(π)), or less.
    max_samples
        More are refused at once; the simulator's own budget holds besides.

    Examples
    --------
    >>> from cmpg.learning import GameSimulator, InducedProblem
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> problem = InducedProblem(GameSimulator(game, rng=np.random.default_rng(0)), 0, game.uniform_policy())
    >>> response = APriori(slater=0.5)(problem, epsilon=0.1, delta=0.1)
    >>> response.status.name, response.cost_ceilings.round(6)
    ('CERTIFIED', array([0.5]))
    """

    slater: float
    max_samples: float = 1e15

    def __call__(self, problem: InducedProblem, *, epsilon: float, delta: float) -> LearnedResponse:
        """Learn a best response, or raise BudgetError before anything is drawn."""
        refuse_masks(problem.known)
        size = Size.of(problem.known, problem.agent)
        constants = rigorous_constants(size, slater=self.slater, epsilon=epsilon, delta=delta)
        refuse_beyond(problem, constants.samples, limit=self.max_samples, mode="APriori")
        empirical = sampled(problem, constants.samples_per_entry)
        try:
            found = Exact()(replace(empirical, thresholds=empirical.thresholds - constants.tightening, trusted=True))
            policy, multipliers, work = found.policy, found.multipliers, found.work
        except InfeasibleError:
            # The slack is not there; the safest policy is the only one that could still pass the check.
            safe = greatest_slack(empirical)
            policy, multipliers, work = safe.policy, np.zeros(len(safe.costs)), len(safe.plans)
        return judged_by_rows(
            empirical,
            policy,
            multipliers=multipliers,
            count=constants.samples_per_entry,
            work=work,
            size=size,
            epsilon=epsilon,
            delta=delta,
        )


def judged_by_rows(
    empirical: CMDP,
    policy: FloatArray,
    *,
    multipliers: FloatArray,
    count: int,
    work: int,
    size: Size,
    epsilon: float,
    delta: float,
) -> LearnedResponse:
    """Bound a policy's value and costs by the L1 radius of rows with `count` samples, which holds for all policies."""
    radius = l1_radius(count, size.successors, delta=delta / size.entries) if size.entries else 0.0
    reward_error, cost_error = (radius * weight / 2 for weight in error_weights(size))
    judged = evaluate(empirical, policy)
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
    details = f": costs at most {ceilings} (thresholds {empirical.thresholds}), bounds {ceiling - floor:.4g} apart."
    return LearnedResponse(
        status=status,
        message=status.value + ("" if status is ResponseStatus.CERTIFIED else details),
        policy=policy,
        value_floor=floor,
        value_ceiling=ceiling,
        cost_ceilings=ceilings,
        multipliers=multipliers,
        epsilon=epsilon,
        delta=delta,
        samples=count * size.entries,
        samples_per_entry=count,
        work=work,
    )


def sampled(problem: InducedProblem, count: int) -> CMDP:
    """Draw, and return the empirical CMDP."""
    entries = problem.shape[0] > 1 and count > 0
    return empirical_cmdp(problem, problem.draw(count) if entries else problem.no_samples())


def refuse_beyond(problem: InducedProblem, samples: float, *, limit: float, mode: str) -> None:
    """Raise BudgetError where a mode would draw more samples than it may, and say what it would take."""
    allowed = min(limit, problem.simulator.ledger.left)
    if samples > allowed:
        raise BudgetError(
            f"{mode} would take {samples:.3g} samples for one response; {allowed:.3g} are allowed. "
            f"Use Adaptive, which draws as many as it turns out to need, or raise epsilon."
        )
