"""Best responses by linear programming over occupancies: the cross-check of `Exact`, solved by HiGHS.

    maximise   Σ ρ_h(s, a) r_h(s, a)
    subject to Σ_a ρ_0(s, a) = μ(s),   Σ_a ρ_{h+1}(s', a) = Σ_{s, a} ρ_h(s, a) P_h(s' | s, a),
               Σ ρ_h(s, a) c_{j,h}(s, a) ≤ α_j,   ρ ≥ 0.

Discounted, there is one step, with Σ_a ρ(s', a) = μ(s') + γ Σ_{s, a} ρ(s, a) P(s' | s, a). The duals of the cost rows
are the multipliers.

Guarantee: as for every solver, the policy is evaluated again and bounded by weak duality. An answer whose gap exceeds
1e-8 of the largest sum of rewards does not check: then the other method starts cold. What exceeds a threshold is mixed
with the policy of greatest slack until it does not.

`independent_slack` is the corrected Example 2 of the paper: several agents with dynamics of their own and thresholds on
the sum of their costs. One program over all their occupancies maximises the common slack min_j (α_j − Σ_i V_i^{c_j}).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import evaluate, policy_from_occupancy
from cmpg.cmdp.exact import CMDPSlack, check_feasible, greatest_slack, repaired
from cmpg.cmdp.highs import LinearModel, Method, Proposal, propose
from cmpg.cmdp.model import CMDP, check_thresholds
from cmpg.cmdp.planning import greedy_policy, plan
from cmpg.cmdp.response import BestResponse, respond
from cmpg.errors import GameError, SolverError

CHECKS = 1e-8
"""An answer checks if its gap is at most this, relative to the largest sum of rewards."""

OTHER: dict[Method, Method] = {"simplex": "ipm", "ipm": "simplex"}
"""Which method is tried next if the answer of one does not check."""

NOISE = 1e-8
"""Probabilities below this are taken for HiGHS's tolerance, if what is left is one plan that meets the thresholds."""


@dataclass(frozen=True)
class LinearProgram:
    """One linear program per response: slow on large state spaces, at its best with many constraints on few states.

    Examples
    --------
    >>> cmdp = CMDP(transition=[[[[1.0], [1.0]]]], reward=[[[0.0, 1.0]]], costs=[[[[0.0, 1.0]]]],
    ...             thresholds=[0.25], initial=[1.0], horizon=1)
    >>> round(LinearProgram()(cmdp).value, 9)
    0.25
    """

    method: Method = "simplex"
    time_limit: float = np.inf  # seconds for each of the two tries

    def __call__(self, cmdp: CMDP, *, rng: np.random.Generator | None = None) -> BestResponse:
        """Return an optimal policy of the CMDP, or raise InfeasibleError."""
        model = occupancy_model(cmdp)
        safe = greatest_slack(cmdp, rng=rng) if cmdp.num_constraints else None
        if safe is not None:
            check_feasible(cmdp, safe)
        work, why = 0, ""
        for method in (self.method, OTHER[self.method]):
            try:
                proposal = propose(model, method=method, time_limit=self.time_limit)
            except SolverError as problem:
                why = str(problem)
                continue
            work += proposal.iterations
            if not proposal.feasible:
                why = f"HiGHS ({method}) claims that no policy meets the constraints, and that is not so."
                continue
            response = _response(cmdp, proposal, safe, work=work)
            if response.gap <= CHECKS * (float(cmdp.sizes[0]) or 1.0):
                return response
            why = f"the answer of HiGHS ({method}) has a gap of {response.gap:.3g}."
        raise SolverError(f"neither HiGHS method gave an answer that checks: {why} Use Exact().")


def _response(cmdp: CMDP, proposal: Proposal, safe: CMDPSlack | None, *, work: int) -> BestResponse:
    """Turn an occupancy into a policy that meets the thresholds, and evaluate it."""
    pairs = int(np.prod(cmdp.policy_shape))
    visits = np.maximum(proposal.values[:pairs], 0.0).reshape(cmdp.policy_shape)
    units = _units(cmdp)
    multipliers = np.maximum(proposal.duals[len(proposal.duals) - len(units) :], 0.0) * _reward_unit(cmdp) / units
    if safe is None:
        policy = policy_from_occupancy(visits, greedy_policy(cmdp, multipliers))
    else:
        policy = _rounded_off(visits, safe)
        # A single plan that costs α or less is taken as it is, for the reason that `frontier.py` gives.
        if not np.isin(policy, (0.0, 1.0)).all() or (evaluate(cmdp, policy).costs > cmdp.thresholds).any():
            policy = repaired(cmdp, visits, safe)
    return respond(cmdp, policy, multipliers=multipliers, work=work)


def _rounded_off(visits: FloatArray, safe: CMDPSlack) -> FloatArray:
    """Return the policy without what is only HiGHS's tolerance; rows that are not visited are those of the safe one."""
    totals = visits.sum(axis=-1, keepdims=True)
    return policy_from_occupancy(np.where(visits > NOISE * np.maximum(totals, NOISE), visits, 0.0), safe.policy)


def _reward_unit(cmdp: CMDP) -> float:
    return float(cmdp.step_sizes[0]) or 1.0


def _units(cmdp: CMDP) -> FloatArray:
    """Return what each cost row is divided by, so that its entries are of order one: [k]."""
    return np.where(cmdp.step_sizes[1:] > 0, cmdp.step_sizes[1:], 1.0)


def occupancy_model(cmdp: CMDP) -> LinearModel:
    """Build the program with one column per (h, s, a), one row per (h, s), and the cost rows below them."""
    units = _units(cmdp)
    flows = _flow_rows(cmdp)
    costs = sp.csc_array(_every_step(cmdp, cmdp.costs).reshape(len(units), flows.shape[1]) / units[:, None])
    entry = _entries(cmdp)
    return LinearModel(
        objective=_every_step(cmdp, cmdp.reward[None]).ravel() / _reward_unit(cmdp),
        matrix=sp.vstack([flows, costs], format="csc"),
        lower=np.concatenate([entry, np.full(len(units), -np.inf)]),
        upper=np.concatenate([entry, cmdp.thresholds / units]),
    )


def _every_step(cmdp: CMDP, tables: FloatArray) -> FloatArray:
    """Return tables [m, H or 1, S, A] with all steps: [m, H, S, A]."""
    return np.broadcast_to(tables, (len(tables), *cmdp.policy_shape))


def _entries(cmdp: CMDP) -> FloatArray:
    """Return the probability that enters at each (h, s) from outside: the initial distribution, then nothing."""
    return np.concatenate([cmdp.initial, np.zeros((cmdp.num_steps - 1) * cmdp.num_states)])


def _flow_rows(cmdp: CMDP) -> sp.csc_array:
    """Return what leaves each (h, s) minus what arrives there from the step before: [H·S, H·S·A]."""
    steps, states, actions = cmdp.policy_shape
    pairs = states * actions
    leaving = np.repeat(np.arange(steps * states), actions)
    rows, columns, data = [leaving], [np.arange(steps * pairs)], [np.ones(steps * pairs)]
    ahead = states if cmdp.discount is None else 0
    for step in range(steps - 1 if cmdp.discount is None else 1):
        matrix = sp.coo_array(cmdp.matrix(step))
        rows.append(step * states + ahead + matrix.col)
        columns.append(step * pairs + matrix.row)
        data.append(-matrix.data if cmdp.discount is None else -cmdp.discount * matrix.data)
    index = (np.concatenate(rows), np.concatenate(columns))
    return sp.csc_array((np.concatenate(data), index), shape=(steps * states, steps * pairs))


@dataclass(frozen=True, eq=False)
class IndependentSlack:
    """One policy per agent, the slack that they have in common, and the proof that none have more."""

    policies: tuple[FloatArray, ...]  # each [H, S_i, A_i]
    costs: FloatArray  # [k]: Σ_i V_i^{c_j}
    slack: float  # min_j (α_j − Σ_i V_i^{c_j})
    multipliers: FloatArray  # [k], summing to one
    bound: float  # λ·α − Σ_i min V_i^{λ·c}: no policies have more slack


def independent_slack(cmdps: Sequence[CMDP], thresholds: FloatArray) -> IndependentSlack:
    """Maximise min_j (α_j − Σ_i V_i^{c_j}) over the policies of agents who do not influence each other.

    Negative slack is an answer, not an error: `bound < 0` then proves that the thresholds cannot be met.

    Parameters
    ----------
    cmdps
        One process per agent, with the same number of constraints; rewards and thresholds of their own play no part.
    thresholds : [k]
        α, for the sum of the agents' costs.

    Examples
    --------
    >>> agent = CMDP(transition=[[[[1.0], [1.0]]]], reward=[[[0, 0]]], costs=[[[[5, 0.5]]], [[[5, 6]]]],
    ...              thresholds=[1, 10], initial=[1.0], horizon=1)
    >>> round(independent_slack([agent], np.array([1.0, 10.0])).slack, 9)
    0.5
    """
    thresholds = np.asarray(thresholds, dtype=np.float64)
    if not cmdps or not len(thresholds):
        raise GameError("independent_slack needs at least one agent and at least one constraint.")
    for cmdp in cmdps:
        check_thresholds(thresholds, cmdp.num_constraints)
    unit = max(float(cmdp.step_sizes[1:].max()) for cmdp in cmdps) or 1.0
    model = _block_model(cmdps, thresholds, unit)
    for each in OTHER:
        found = _independent(cmdps, thresholds, propose(model, method=each))
        if found.bound - found.slack <= CHECKS * sum(float(cmdp.sizes[1:].max()) for cmdp in cmdps):
            return found
    raise SolverError(f"neither HiGHS method found the greatest slack: {found.slack:.9g} is not {found.bound:.9g}.")


def _block_model(cmdps: Sequence[CMDP], thresholds: FloatArray, unit: float) -> LinearModel:
    """Build one block of flows per agent, the cost rows across all of them, and a free column for the slack."""
    constraints = len(thresholds)
    flows = sp.block_diag([_flow_rows(cmdp) for cmdp in cmdps], format="csc")
    costs = np.concatenate([_every_step(cmdp, cmdp.costs).reshape(constraints, -1) for cmdp in cmdps], axis=1)
    slack = sp.csc_array(np.concatenate([np.zeros(flows.shape[0]), np.ones(constraints)])[:, None])
    entry = np.concatenate([_entries(cmdp) for cmdp in cmdps])
    return LinearModel(
        objective=np.append(np.zeros(flows.shape[1]), 1.0),
        matrix=sp.hstack([sp.vstack([flows, sp.csc_array(costs / unit)]), slack], format="csc"),
        lower=np.concatenate([entry, np.full(constraints, -np.inf)]),
        upper=np.concatenate([entry, thresholds / unit]),
        num_free=1,
    )


def _independent(cmdps: Sequence[CMDP], thresholds: FloatArray, proposal: Proposal) -> IndependentSlack:
    """Read the policies off the occupancies, and judge them by evaluation and by planning for the duals."""
    duals = np.maximum(proposal.duals[len(proposal.duals) - len(thresholds) :], 0.0)
    multipliers = duals / duals.sum() if duals.any() else np.full(len(thresholds), 1 / len(thresholds))
    cheapest = [plan(cmdp, multipliers, reward_weight=0.0) for cmdp in cmdps]
    sizes = [int(np.prod(cmdp.policy_shape)) for cmdp in cmdps]
    blocks = np.split(np.maximum(proposal.values[: sum(sizes)], 0.0), np.cumsum(sizes)[:-1])
    policies = tuple(
        policy_from_occupancy(visits.reshape(cmdp.policy_shape), least.policy(cmdp.num_actions))
        for cmdp, visits, least in zip(cmdps, blocks, cheapest, strict=True)
    )
    costs = np.sum([evaluate(cmdp, policy).costs for cmdp, policy in zip(cmdps, policies, strict=True)], axis=0)
    bound = float(multipliers @ thresholds - sum(multipliers @ least.costs for least in cheapest))
    return IndependentSlack(policies, costs, float((thresholds - costs).min()), multipliers, bound)
