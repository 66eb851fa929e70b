"""What is done with a run folder: `cmpg simulate`, `cmpg show`, `cmpg export`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import cmpg
from cmpg import files, report
from cmpg.cli.interrupts import on_interrupt, written
from cmpg.cli.options import Json, check_out_file, option
from cmpg.cli.output import ProgressLine, remark, show_json
from cmpg.cli.output import show as tell
from cmpg.cli.targets import PROOF_FILE, one_of
from cmpg.errors import CMPGError
from cmpg.summaries import Summary

if TYPE_CHECKING:
    from cmpg.simulation.episodes import Estimates, Simulation

WHAT = ("schedule", "policy", "outcomes", "measures", "loads", "links", "plan", "pilot", "trace")

RunArgument = Annotated[Path, typer.Argument(metavar="FOLDER", help="A run folder, written by `cmpg solve … --out`.")]


def simulate(
    *,
    folder: RunArgument,
    episodes: Annotated[int, option("Number of episodes.", least=2)] = 100_000,
    seed: Annotated[int, option("Random seed.", least=0)] = 0,
    confidence: Annotated[float, option("Probability that an interval holds the mean.")] = 0.99,
    show: Annotated[int, option("Print so many whole episodes, and the most expensive one.", least=0)] = 0,
    output: Annotated[
        Path | None, option("New .csv, .json or .parquet file for whole episodes, step by step.", "--out", "-o")
    ] = None,
    as_json: Json = False,
) -> None:
    """Play the policy of a run many times, and test its claims."""
    import numpy as np

    from cmpg.equilibrium.recommendations.recommend import device_of
    from cmpg.games.devices import Device

    policy: cmpg.JointPolicy | Device

    check_out_file(output, ".csv", ".json", ".parquet")
    with ProgressLine("reading the run") as progress:
        if files.devices.is_recommendation(folder):
            recommended = files.devices.load_recommendation(folder)
            game, policy = recommended.game, device_of(recommended)
        else:
            run = files.run_folder.load_run(folder)
            game, policy = run.game, run.result.policy
        progress.begin("playing episodes")
        kept, rng = max(show, 2), np.random.default_rng(seed)
        seen = cmpg.simulate(game, policy, episodes, rng=rng, confidence=confidence, shown=kept)
    if output is not None:
        rows = [row for episode in seen.shown for row in episode.rows(seen.names)]
        report.formats.write_rows(rows, output, output.suffix.lower().removeprefix("."))
        remark(f"written to {output} ({len(seen.shown)} whole episodes)")
    if as_json:
        show_json(_record(seen, seed))
    else:
        tell(seen.summary())
        for episode in (*seen.shown[:show], *seen.shown[kept:]) if show else ():
            tell(Summary(f"episode {episode.number}", episode.why, (episode.table(seen.names),)))
        remark(f"{seen.agent_steps:,} agent-steps in {seen.seconds:.1f} s")
    raise typer.Exit(0 if seen.agrees else 1)


def _record(seen: Simulation, seed: int) -> dict[str, Any]:
    """Return a simulation in words that JSON knows."""
    from cmpg.simulation.episodes import QUANTILES

    def rows(kind: str, names: Sequence[str], found: Estimates) -> list[dict[str, Any]]:
        numbers = zip(names, found.claimed, found.seen, found.errors, strict=True)
        return [
            {kind: name, "claimed": claimed, "seen": mean, "standard_error": error}
            for name, claimed, mean, error in numbers
        ]

    costs = rows("constraint", seen.names.all_constraints(len(seen.costs.seen)), seen.costs)
    for j, row in enumerate(costs):
        row |= {"threshold": seen.thresholds[j], "exceeding": seen.exceeding[j]}
        row["quantiles"] = dict(zip(map(str, QUANTILES), seen.quantiles()[j], strict=True))
    return files.containers.plain_fields(
        {
            "agrees": seen.agrees,
            "episodes": seen.episodes,
            "seed": seed,
            "largest_z": seen.largest_z,
            "values": rows("agent", seen.names.all_agents(len(seen.values.seen)), seen.values),
            "costs": costs,
        }
    )


def show(
    folder: RunArgument,
    agent: Annotated[str | None, option("Only this agent, by name or number, at every step.")] = None,
    step: Annotated[int | None, option("Only this step, counted from 0.", least=0)] = None,
    everything: Annotated[bool, option("All rows, however many.", "--all")] = False,
    animate: Annotated[
        Path | None, option("Write moving pictures of all steps to this .gif instead.", metavar="<file>")
    ] = None,
) -> None:
    """Say who does what: schedules, ways, tables."""
    if animate is not None:
        on_interrupt(written(animate))
        run = files.run_folder.load_run(folder)
        made = report.animation.animate(
            report.viewer.view_of(run.game, run.result.policy.floats(), run.drawing), animate
        )
        tell(f"written to {animate} ({made} frames)")
        return
    if files.devices.is_recommendation(folder):
        from cmpg.equilibrium.recommendations.recommend import device_of

        found = files.devices.load_recommendation(folder)
        table = report.recommendations.recommended_table(found.game, device_of(found), 1_000_000 if everything else 40)
        tell(Summary(found.status.name, found.message, (table,), good=found.certified))
        return
    tell(
        report.tables.decisions_summary(
            files.run_folder.load_run(folder).result, agent=agent, step=step, all_rows=everything
        )
    )


def export(
    folder: RunArgument,
    what: Annotated[
        str,
        option(
            "schedule, policy, outcomes, measures, loads, links (roads), plan (robots), pilot (chargers), trace; "
            "or proof: the claim, in exact numbers, for cmpg-verify or certify.",
            words=lambda: [*WHAT, "proof"],
        ),
    ] = "schedule",
    form: Annotated[
        str,
        option(
            "csv, json, latex, markdown or parquet; ocpp of pilot, geojson of links, mapf of plan.",
            "--format",
            words=["csv", "json", "latex", "markdown", "parquet", "ocpp", "geojson", "mapf"],
        ),
    ] = "csv",
    output: Annotated[Path | None, option("New file; standard output if omitted.", "--out", "-o")] = None,
) -> None:
    """Write a table of a run, or its claim as a proof file."""
    table, write = report.field_formats.FIELD_FORMATS.get(form, (what, None))
    if table != what and what != "schedule":  # which is the default
        raise CMPGError(f"--what is {what!r}; {form} is a format of {table}.")
    one_of("what", table, (*report.tables.TABLES, "proof"))
    formats = (*report.formats.FORMATS, *report.field_formats.FIELD_FORMATS)
    kind = "" if table == "proof" else one_of("format", form, formats)
    if output is None and kind == "parquet":
        raise CMPGError("a parquet file is not text: name a file with --out.")
    if output is not None:
        files.containers.check_new_file(output)
    on_interrupt(written(output))
    if table == "proof":
        _export_proof(folder, output)
        return
    if write is None:
        rows = _rows(folder, table)
        content, count = report.formats.rows_bytes(rows, kind), f" ({len(rows):,} rows)"
    else:
        content, count = write(files.run_folder.load_run(folder).result).encode(), ""
    if output is None:
        print(content.decode(), end="")
    else:
        files.containers.write_atomically(output, lambda stream: stream.write(content))
        tell(f"written to {output}{count}")


def _rows(folder: Path, table: str) -> list[dict[str, Any]]:
    """Return a table of a run; of a device, what each agent is recommended where, with which probability."""
    if not files.devices.is_recommendation(folder):
        return report.tables.rows_of(files.run_folder.load_run(folder).result, table)
    from cmpg.equilibrium.recommendations.recommend import device_of

    found = files.devices.load_recommendation(folder)
    return list(report.recommendations.recommended_rows(found.game, device_of(found)))


def _export_proof(folder: Path, output: Path | None) -> None:
    """Write the claim of a run as a proof file, with the ε that was asked for if it is proved."""
    from cmpg.proof.claim import Claim
    from cmpg.proof.format import write

    claim, epsilon = _proof_of(folder)
    target: Any = sys.stdout if output is None else output
    divided = write(target, claim, epsilon)
    if output is None:
        return
    rows = f"; {divided:,} rows of probabilities divided by their sums" if divided else ""
    check = f"cmpg-verify {output}" if isinstance(claim, Claim) else f"cmpg certify {output}"
    if not isinstance(claim, Claim) and output.suffix.lower() != PROOF_FILE:
        check += f" (under a name that ends in {PROOF_FILE})"
    tell(f"written to {output}{rows}; check it with: {check}")


def _proof_of(folder: Path) -> tuple[Any, float]:
    """Return the claim of a folder, about a policy, a device or infeasibility, and the ε that is claimed."""
    from cmpg.equilibrium.recommendations.certificate import recommendation_claim
    from cmpg.games.claims import claim_of, infeasibility_claim
    from cmpg.proof.infeasible import exact_bounds

    if files.devices.is_recommendation(folder):
        found = files.devices.load_recommendation(folder)
        if found.device is None or found.certificate is None:
            raise CMPGError(f"{folder} has no device: it ended {found.status.name}.")
        coarse = found.concept is cmpg.Concept.COARSE
        device = recommendation_claim(found.game, found.device, found.multipliers, coarse=coarse)
        return device, found.epsilon if found.certified else found.certificate.epsilon
    result = files.run_folder.load_run(folder).result
    if result.incumbent is None and result.proof is not None:
        nothing = infeasibility_claim(files.run_folder.game_of(result), result.proof.multipliers)
        least, limit = exact_bounds(nothing)
        if least <= limit:
            raise CMPGError("the infeasibility of this game is proved by its planner, which has no proof file.")
        return nothing, 0.0
    claim = claim_of(files.run_folder.game_of(result), result.policy, result.multipliers)
    return claim, result.epsilon if result.certified else result.certificate.epsilon
