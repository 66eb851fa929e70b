"""Results and certificates as plain records: what `--json` prints, and what a run folder keeps.

What writes a record stands beside what reads it. A reader takes from a record only what cannot be computed again (what
was requested, how the run went) and compares the rest with what has just been computed.
"""

from __future__ import annotations

import csv
import io
import platform
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg import __version__
from cmpg.arrays import FloatArray
from cmpg.equilibrium.certificate import Certificate
from cmpg.equilibrium.infeasibility import InfeasibilityProof, prove_infeasible
from cmpg.equilibrium.result import Attempt, Result, Status, Step
from cmpg.errors import FileError
from cmpg.files.containers import (
    AGREEMENT,
    Fields,
    check_regular,
    fits_in_text,
    number_table,
    plain_fields,
    read_fields,
)
from cmpg.files.fields import choice, mapping, number_list, reading, real_number, text_of, whole_number
from cmpg.files.policies import plain_multipliers, read_multipliers
from cmpg.games.game import Game, Objective
from cmpg.games.potential.check import FourCycle, PotentialCheck, four_cycle
from cmpg.policy import JointPolicy

if TYPE_CHECKING:
    from cmpg.equilibrium.quality import OptimalityGap
    from cmpg.equilibrium.starts.start import Start

JUDGED = ("values", "bounds", "gains", "rounding", "costs", "thresholds", "excess", "multipliers")
"""The numbers of a certificate."""


def certificate_record(certificate: Certificate) -> Fields:
    """Return a certificate as a record of plain numbers and strings."""
    record = {
        "format": "cmpg-certificate",
        "version": 1,
        "feasible": certificate.feasible,
        "feasibility": certificate.feasibility.name,
        "epsilon": certificate.epsilon,
        "concept": certificate.concept.word,
        "information": certificate.information,
        "covers": certificate.information.covers,
        "arithmetic": certificate.arithmetic,
        "judged_by": certificate.judged_by,
        "rescaled": certificate.rescaled,
        "model_error": certificate.model_error,
        **{name: getattr(certificate, name) for name in JUDGED},
        "multipliers": plain_multipliers(certificate.multipliers),
    }
    if (tail := certificate.tail) is not None:
        costs = {"least_costs": tail.least_costs, "most_costs": tail.most_costs}
        record["tail"] = {"steps": tail.steps, "values": tail.values, **costs}
    if certificate.worst_case_gains is not None:
        record["worst_case_gains"] = certificate.worst_case_gains
    if (known := certificate.exactly) is not None:  # for readers: what is checked again are the policy and the game
        numbers: dict[str, Sequence[Fraction | None]] = {
            "values": known.values,
            "bounds": known.bounds,
            "gains": known.gains,
            "costs": known.costs,
        }
        record["fractions"] = {name: [_digits(each) for each in row] for name, row in numbers.items()}
    return plain_fields(record)


def _digits(number: Fraction | None) -> str | None:
    """Return a fraction in digits; None where there is none, or where it is too long for a text."""
    return str(number) if number is not None and fits_in_text(number) else None


def compare_certificate(path: Path, judged: Certificate) -> Fields:
    """Read a recorded certificate; raise unless it says what the computation just said, up to the rounding of both."""
    fields = read_fields(path, kind="cmpg-certificate")
    with reading(path, "Solve again."):
        if fields["feasible"] is not judged.feasible or fields["feasibility"] != judged.feasibility.name:
            recorded = f"feasible: {fields['feasible']}, {fields['feasibility']}"
            raise FileError(f"{path}: says {recorded}, and the policy {judged.feasibility.value}.")
        rounding = 4 * judged.rounding
        for name in JUDGED:
            ours = getattr(judged, name)
            said = read_judged(name, fields[name])
            if said.size != ours.size:
                raise FileError(f"{path}: {name} has shape {list(said.shape)}; {list(ours.shape)} is required.")
            allowed = AGREEMENT * np.maximum(np.abs(ours), 1.0) + (rounding if name in ("bounds", "gains") else 0.0)
            said = said.reshape(ours.shape)
            # A record has null for what is not finite, such as a bound that is open: it must be open again.
            unknown = ~np.isfinite(ours) & (name != "multipliers")
            differs = (ours != said) & ~unknown
            agree = (np.abs(ours[differs] - said[differs]) <= allowed[differs]).all()
            agree = agree and (np.isnan(said) == unknown).all()
            if name != "rounding" and not agree:
                raise FileError(f"{path}: its {name} are not those of policy.npz in game.npz. Solve again.")
    return fields


def read_judged(name: str, value: Any) -> FloatArray:
    """Read some numbers of a certificate; null, which stands for what is not finite, becomes nan."""
    if name == "multipliers":
        return read_multipliers(name, value, error=FileError)
    if not isinstance(value, list) or None not in value:
        return number_table(name, value, error=FileError)
    known = number_table(name, [0.0 if each is None else each for each in value], error=FileError)
    return np.where([each is None for each in value], np.nan, known)


def names_record(game: Game) -> Fields:
    """Return what the agents and constraints are called, in the order of every list of numbers about them."""
    names = game.names
    return {
        "agent_names": list(names.all_agents(game.num_agents)),
        "constraint_names": list(names.all_constraints(len(game.thresholds))),
    }


def result_record(
    result: Result,
    game: Game,
    *,
    quality: Sequence[OptimalityGap] = (),
    seed: int | None = None,
    game_hash: str | None = None,
) -> Fields:
    """Return a result as a record of plain numbers and strings; what is not finite is null."""
    found = result.incumbent
    known = None if found is None else found.certificate
    record = {
        "format": "cmpg-result",
        "version": 1,
        "status": result.status.name,
        "message": result.message,
        "epsilon": result.epsilon,
        "certified_epsilon": None if known is None else known.epsilon,
        "accepted": result.accepted,
        "allow_rounding": result.allow_rounding,
        "information": game.information,
        "arithmetic": None if known is None else known.arithmetic,
        **names_record(game),
        "values": result.values,
        "costs": result.costs,
        "thresholds": np.asarray(game.thresholds, dtype=np.float64),
        "translation": dict(game.names.legend.translation),
        "excess": np.zeros(0) if known is None else known.excess,
        "gains": np.zeros(0) if known is None else known.gains,
        "multipliers": None if found is None else plain_multipliers(found.multipliers),
        "iterations": len(result.trace),
        "moves": result.moves,
        "search_moves": result.search_moves,
        "max_iterations": result.max_iterations,
        "equilibria": [
            {
                "values": each.values,
                "costs": each.costs,
                "epsilon": each.certificate.epsilon,
                "compared_by": None if each.score is None else each.score[0],
                "score": None if each.score is None else each.score[1],
            }
            for each in result.equilibria
        ],
        "proof": _proof_record(result.proof),
        "witness": witness_record(result.witness),
        "quality": _quality_record(quality),
        "runs": [
            {"start": run.start, "status": run.status.name, "moves": run.moves, "score": run.score}
            for run in result.runs
        ],
        "compared_by": result.compared_by,
        "selfish": _selfish_record(result.selfish),
        "settings": dict(result.settings),
        "seed": seed,
        "versions": versions(),
        "game_sha256": game_hash,
    }
    return plain_fields(record)


def versions() -> Fields:
    """Return what a record was made with."""
    return {"cmpg": __version__, "numpy": np.__version__, "python": platform.python_version()}


def _proof_record(proof: InfeasibilityProof | None) -> Fields | None:
    if proof is None:
        return None
    return {"multipliers": proof.multipliers, "least_cost": proof.least_cost, "limit": proof.limit}


def proof_from_record(record: Any, game: Game) -> InfeasibilityProof:
    """Prove again, with the recorded multipliers, that a game is infeasible, or raise if they do not prove it."""
    fields = dict(mapping("proof", record))
    proof = prove_infeasible(game, number_list("proof.multipliers", fields["multipliers"], length=len(game.thresholds)))
    if (proof.multipliers < 0).any() or not proof.holds:
        raise FileError("its proof does not prove that the game is infeasible.")
    return proof


def _quality_record(gaps: Sequence[OptimalityGap]) -> Fields | None:
    """Return what the policy is worth, and what no feasible policy exceeds; a bound is null where it is unknown."""
    known = {gap.objective: gap for gap in gaps}
    if not known:
        return None
    names = {"welfare": Objective.WELFARE, "potential": Objective.POTENTIAL}
    return {name: _gap_record(known[objective]) if objective in known else None for name, objective in names.items()}


def _gap_record(gap: OptimalityGap) -> Fields:
    bound = gap.bound
    return {
        "value": gap.value,
        "upper_bound": None if bound is None else bound.value,
        "share": gap.share,
        "multipliers": None if bound is None else bound.multipliers,
        "proof": None if bound is None else bound.proof,
    }


def read_attempts(record: Fields) -> tuple[Attempt, ...]:
    """Read the runs that a result was chosen from; older records have none."""
    listed = record.get("runs", [])
    if not isinstance(listed, list):
        raise FileError("runs is not a list.")
    attempts = []
    for each in listed:
        fields = dict(mapping("runs", each))
        score = None if fields["score"] is None else real_number("score", fields["score"])
        moves = whole_number("moves", fields["moves"], least=0)
        attempts.append(Attempt(text_of(fields["start"]), choice("status", fields["status"], Status), moves, score))
    return tuple(attempts)


def _selfish_record(selfish: Result | None) -> Fields | None:
    if selfish is None:
        return None
    return {"status": selfish.status.name, "values": selfish.values, "costs": selfish.costs}


def witness_record(witness: FourCycle | None) -> Fields | None:
    """Return a 4-cycle as plain numbers; None where there is none."""
    if witness is None:
        return None
    return {
        "agents": list(witness.agents),
        "residual": witness.residual,
        "rounding": witness.rounding,
        "policy": list(witness.policy),
        "deviations": list(witness.deviations),
    }


def witness_from_record(record: Any, game: Game) -> FourCycle:
    """Evaluate a recorded 4-cycle again, or raise if it refutes no potential."""
    fields = dict(mapping("witness", record))
    agents = [whole_number("witness.agents", agent, least=0) for agent in fields["agents"]]
    tables = [number_table("witness", each, error=FileError) for each in (*fields["policy"], *fields["deviations"])]
    if len(set(agents)) != 2 or max(agents) >= game.num_agents or len(tables) != game.num_agents + 2:
        raise FileError("its witness is not of two agents of this game.")
    policy, (i, j) = JointPolicy(tuple(tables[:-2])), agents
    policy.check_fits(game.policy_shapes)
    policy.replace(i, tables[-2]).replace(j, tables[-1])
    cycle = four_cycle(game, (i, j), policy, (tables[-2], tables[-1]))
    if not cycle.is_proof:
        raise FileError("its witness does not refute a potential.")
    return cycle


def check_record(game: Game, start: Start, potential: PotentialCheck) -> Fields:
    """Return what is known of a game as a record; the witness carries all that is needed to check it again."""
    return plain_fields(
        {
            "format": "cmpg-check",
            "version": 1,
            "agents": game.num_agents,
            "constraints": len(game.thresholds),
            **names_record(game),
            "horizon": game.horizon,
            "discount": game.discount,
            "information": game.information,
            "policy_shapes": game.policy_shapes,
            "reward_ranges": game.reward_ranges,
            "feasible": True if start.policy is not None else (None if start.proof is None else False),
            "feasible_by": start.found_by,
            "slack": start.slack,
            "infeasibility_multipliers": None if start.proof is None else start.proof.multipliers,
            "potential": potential.verdict.name,
            "potential_reason": potential.reason,
            "error_probability": potential.error_probability,
            "witness": witness_record(potential.witness),
        }
    )


def trace_table(trace: Sequence[Step]) -> str:
    """Return a trace as CSV, a line for each step; what was not computed is left empty."""
    text = io.StringIO()
    writer = csv.writer(text)
    if trace:
        agents, constraints = range(len(trace[0].gains)), range(len(trace[0].costs))
        heads = [f"{name}_{j}" for name in ("cost", "multiplier") for j in constraints] + [f"gain_{i}" for i in agents]
        writer.writerow(["iteration", "mover", "gain", "potential", "seconds", "moves", *heads])
        for step in trace:
            paid = [np.nan for _ in constraints] if step.multipliers is None else step.multipliers
            numbers = (step.gain, step.potential, round(step.seconds, 6), step.moves, *step.costs, *paid, *step.gains)
            cells = ["" if np.isnan(each) else repr(float(each)) for each in numbers]
            writer.writerow([step.iteration, "" if step.mover is None else step.mover, *cells])
    return text.getvalue()


def read_trace(path: Path, game: Game) -> tuple[Step, ...]:
    """Read a trace, or raise FileError with the line that is not whole."""
    check_regular(path)
    try:
        lines = list(csv.reader(path.read_text("utf-8").splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error):
        raise FileError(f"{path}: is not a text file with a trace. Solve again.") from None
    steps = []
    for number, cells in enumerate(lines[1:], 2):
        try:
            steps.append(_step(cells, game))
        except ValueError as problem:
            raise FileError(f"{path}, line {number}: not a whole line of a trace ({problem}). Solve again.") from None
    return tuple(steps)


def _step(cells: Sequence[str], game: Game) -> Step:
    constraints, agents = len(game.thresholds), game.num_agents
    if len(cells) != 6 + 2 * constraints + agents:
        raise ValueError(f"{len(cells)} entries, {6 + 2 * constraints + agents} are required")
    mover = int(cells[1]) if cells[1] else None
    numbers = np.array([float(cell) if cell else np.nan for cell in cells[2:]])
    if np.isinf(numbers).any() or np.isnan(numbers[1:4]).any() or (mover is not None and not 0 <= mover < agents):
        raise ValueError("a number is not finite, or the mover is not an agent")
    (gain, potential, seconds, moves), rest = numbers[:4], numbers[4:]
    paid = rest[constraints : 2 * constraints]
    return Step(
        iteration=int(cells[0]),
        mover=mover,
        gain=float(gain),
        gains=rest[2 * constraints :],
        costs=rest[:constraints],
        potential=float(potential),
        seconds=float(seconds),
        multipliers=None if np.isnan(paid).any() or not len(paid) else paid,
        moves=int(moves),
    )
