"""One door to HiGHS: maximise a linear objective subject to rows and non-negative variables.

What comes back is a proposal. HiGHS checks itself against tolerances of 1e-10 at best and in its own scaling, so
every caller evaluates the answer again with the model at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray
from cmpg.errors import SolverError

Method = Literal["simplex", "ipm"]
"""The simplex method, or an interior-point method followed by crossover to a vertex."""

TOLERANCE = 1e-10
"""HiGHS's smallest; at its default of 1e-7 answers do not check, and column generation stalls."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """A vertex with its duals, or the claim that there is none."""

    feasible: bool
    values: FloatArray  # [columns]
    duals: FloatArray  # [rows]
    iterations: int


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Maximise objective·x subject to lower ≤ matrix·x ≤ upper and x ≥ 0, but for the last `num_free` variables."""

    objective: FloatArray  # [columns]
    matrix: sp.csc_array  # [rows, columns]
    lower: FloatArray  # [rows]
    upper: FloatArray  # [rows]
    num_free: int = 0


def propose(model: LinearModel, *, method: Method = "simplex", time_limit: float = np.inf) -> Proposal:
    """Solve a linear program from a cold start, or raise SolverError if HiGHS ends in any other way.

    Parameters
    ----------
    model
        The program.
    method
        How HiGHS solves it.
    time_limit
        Seconds after which HiGHS gives up.
    """
    import highspy  # heavy: imported where it is used

    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    options = {"output_flag": False, "solver": method, "time_limit": float(time_limit)}
    names = ("primal_feasibility_tolerance", "dual_feasibility_tolerance", "ipm_optimality_tolerance")
    for name, value in (options | dict.fromkeys(names, TOLERANCE)).items():
        solver.setOptionValue(name, value)
    solver.passModel(_highs_model(model))
    solver.run()
    status, kinds = solver.getModelStatus(), highspy.HighsModelStatus
    if status not in (kinds.kOptimal, kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
        raise SolverError(
            f"HiGHS ({method}) ended with '{solver.modelStatusToString(status)}' on a program of "
            f"{model.matrix.shape[0]} rows and {model.matrix.shape[1]} columns."
        )
    info, solution = solver.getInfo(), solver.getSolution()
    return Proposal(
        feasible=status == kinds.kOptimal,
        values=np.asarray(solution.col_value),
        duals=np.asarray(solution.row_dual),
        iterations=int(max(info.simplex_iteration_count, 0) + max(info.ipm_iteration_count, 0)),
    )


def _highs_model(model: LinearModel) -> Any:
    import highspy

    rows, columns = model.matrix.shape
    floor = np.zeros(columns)
    floor[columns - model.num_free :] = -highspy.kHighsInf
    built = highspy.HighsLp()
    built.num_col_, built.num_row_ = columns, rows
    built.sense_ = highspy.ObjSense.kMaximize
    built.col_cost_, built.col_lower_ = model.objective, floor
    built.col_upper_ = np.full(columns, highspy.kHighsInf)
    built.row_lower_, built.row_upper_ = model.lower, model.upper
    built.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    built.a_matrix_.start_, built.a_matrix_.index_ = model.matrix.indptr, model.matrix.indices
    built.a_matrix_.value_ = model.matrix.data
    return built
