"""The extended CMDP of a box as one linear program: the cross-check of `optimistic_response`, and much slower.

Variables: the occupancy ρ_h(s, a) of every step, and q_h(s, a, s') of every step but the last, all non-negative.

    maximise   Σ ρ·r
    subject to Σ_a ρ_0(s, a) = μ(s),   Σ_a ρ_{h+1}(s', a) = Σ_{s, a} q_h(s, a, s'),
               Σ_{s'} q_h(s, a, s') = ρ_h(s, a),   l·ρ_h(s, a) ≤ q_h(s, a, s') ≤ u·ρ_h(s, a),
               Σ ρ·c_j ≤ α_j.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, IntArray, frozen
from cmpg.cmdp.box import BoxCMDP, OptimisticResponse, central_kernel, optimistic_bound
from cmpg.cmdp.evaluation import evaluate, policy_from_occupancy
from cmpg.cmdp.highs import LinearModel, Method, propose
from cmpg.errors import InfeasibleError


def extended_linear_program(box: BoxCMDP, *, method: Method = "simplex") -> OptimisticResponse:
    """Solve the extended CMDP by HiGHS, or raise InfeasibleError.

    Parameters
    ----------
    box
        The process.
    method
        How HiGHS solves it.
    """
    layout = _Layout(box)
    solution = propose(_linear_model(layout), method=method)
    if not solution.feasible:
        raise InfeasibleError("no policy meets the constraints under any kernel of the box (HiGHS).")
    values = np.maximum(solution.values, 0.0)
    multipliers = np.maximum(solution.duals[len(solution.duals) - box.nominal.num_constraints :], 0.0)
    occupancy = values[: layout.num_pairs].reshape(box.nominal.policy_shape)
    policy = policy_from_occupancy(occupancy, np.full(occupancy.shape, 1 / occupancy.shape[-1]))
    kernel = _kernel(layout, values)
    judged = evaluate(replace(box.nominal, transition=kernel, trusted=True), policy)
    return OptimisticResponse(
        policy=policy,
        kernel=kernel,
        value=float(judged.value),
        costs=judged.costs,
        multipliers=multipliers,
        bound=optimistic_bound(box, multipliers),
        work=solution.iterations,
    )


@dataclass(frozen=True, eq=False)
class _Layout:
    """Where each variable stands: first ρ in the order (h, s, a), then q in the order (h, s, a, s')."""

    box: BoxCMDP

    @property
    def num_pairs(self) -> int:
        return int(np.prod(self.box.nominal.policy_shape))

    @property
    def flow_shape(self) -> tuple[int, int, int, int]:
        steps, states, actions = self.box.nominal.policy_shape
        return (steps - 1, states, actions, states)

    @property
    def size(self) -> int:
        return self.num_pairs + int(np.prod(self.flow_shape))

    @cached_property
    def pairs(self) -> IntArray:
        return np.arange(self.num_pairs).reshape(self.box.nominal.policy_shape)

    @cached_property
    def flows(self) -> IntArray:
        return np.arange(self.num_pairs, self.size).reshape(self.flow_shape)

    @cached_property
    def stage(self) -> FloatArray:
        """The reward and the costs of every step: [H, S, A, 1 + k]."""
        nominal = self.box.nominal
        tables = (nominal.reward, *nominal.costs)
        return np.stack([np.broadcast_to(table, nominal.policy_shape) for table in tables], axis=-1)


def _linear_model(layout: _Layout) -> LinearModel:
    box, shape = layout.box, layout.flow_shape
    steps, states, actions = box.nominal.policy_shape
    arrive = _rows(layout, layout.pairs.reshape(-1, actions), np.ones(actions))
    flow_in = layout.flows.transpose(0, 3, 1, 2).reshape(-1, states * actions)
    leave = _rows(layout, flow_in, -np.ones(states * actions))
    starts = sp.csr_array((states, layout.size))
    origins = layout.pairs[:-1].reshape(-1, 1)
    onward = layout.flows.reshape(-1, states)
    split = _rows(layout, onward, np.ones(states)) + _rows(layout, origins, -np.ones(1))
    each, origin = layout.flows.reshape(-1, 1), np.repeat(origins, states, axis=0)
    single = _rows(layout, each, np.ones(1))
    bounds = [np.broadcast_to(table[: shape[0]], shape).reshape(-1, 1) for table in (box.lower, box.upper)]
    floors, ceilings = (single - _rows(layout, origin, bound) for bound in bounds)
    costs = sp.csr_array(
        np.pad(layout.stage[..., 1:].reshape(layout.num_pairs, -1).T, ((0, 0), (0, layout.size - layout.num_pairs)))
    )
    matrix = sp.vstack([arrive + sp.vstack([starts, leave]), split, floors, ceilings, costs], format="csc")
    still = np.concatenate([box.nominal.initial, np.zeros((steps - 1) * states + split.shape[0])])
    free = np.full(len(each), np.inf)
    none = np.zeros(len(each))
    lower = np.concatenate([still, none, -free, np.full(costs.shape[0], -np.inf)])
    upper = np.concatenate([still, free, none, box.nominal.thresholds])
    objective = np.zeros(layout.size)
    objective[: layout.num_pairs] = layout.stage[..., 0].ravel()
    return LinearModel(objective, matrix, lower, upper)


def _rows(layout: _Layout, columns: IntArray, values: FloatArray) -> sp.csr_array:
    """Return one sparse row for each row of column numbers: [rows, entries]."""
    count, entries = columns.shape
    data = np.broadcast_to(values, columns.shape).ravel()
    indptr = np.arange(0, count * entries + 1, max(entries, 1))
    return sp.csr_array((data, columns.ravel(), indptr), shape=(count, layout.size))


def _kernel(layout: _Layout, values: FloatArray) -> FloatArray:
    kernel = np.array(np.broadcast_to(central_kernel(layout.box), (*layout.pairs.shape, layout.pairs.shape[1])))
    flow = values[layout.num_pairs :].reshape(layout.flow_shape)
    totals = flow.sum(axis=-1, keepdims=True)
    # Rows of almost no flow are rounding of the LP solver, and may lie outside the box.
    kernel[:-1] = np.where(totals > 1e-9, flow / np.where(totals > 1e-9, totals, 1.0), kernel[:-1])
    return frozen(kernel)
