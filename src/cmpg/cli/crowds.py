"""`cmpg solve` and `cmpg certify` for crowds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from cmpg import equilibrium, files, report
from cmpg.cli.options import check_words
from cmpg.cli.output import ProgressLine, show, show_json
from cmpg.errors import CMPGError

if TYPE_CHECKING:
    from cmpg.cli.solve import Request, SolveOutput
    from cmpg.games.crowd.game import CrowdGame


def refuse_for_crowds(given: Sequence[str]) -> None:
    """Raise if an option is given that a crowd does not have."""
    if given:
        raise CMPGError(
            f"{', '.join(given)}: means nothing for a crowd, which is solved and judged by groups. Leave it out, or "
            "solve fewer agents one by one."
        )


def solve_crowd_target(game: CrowdGame, request: Request, wanted: SolveOutput, progress: ProgressLine) -> NoReturn:
    """Solve a crowd, show it, and keep it in a folder if one is named."""
    epsilon, seed = request.claim.epsilon, request.execution.seed
    result = equilibrium.solve_crowd(game, epsilon=epsilon, time_limit=request.seconds_left, rng=seed or 0)
    progress.stop()
    record = None if wanted.output is None else files.crowds.save_crowd_run(wanted.output, result, seed=seed)
    if wanted.as_json:
        show_json(record or files.crowds.crowd_result_record(result, seed=seed))
    else:
        show(report.crowds.crowd_summary(result), *report.display.translation_lines(game.names.legend))
        if wanted.output is not None:
            proved = result.certificate_or_none is not None
            check = check_words(wanted.output, "policy.npz", epsilon=epsilon) if proved else ""
            show(f"written to {wanted.output}/, with page.html{check}")
    raise typer.Exit(0 if result.certified else 1)


def certify_crowd_target(
    game: CrowdGame, path: Path, *, epsilon: float, allow_rounding: float, as_json: bool
) -> NoReturn:
    """Judge a policy of a crowd."""
    policy, multipliers = files.crowds.load_crowd_policy(path)
    certificate = equilibrium.certify_crowd(game, policy, multipliers)
    proved = certificate.proves(epsilon, allow_rounding=allow_rounding)
    if as_json:
        show_json(
            files.containers.plain(
                {**files.crowds.crowd_certificate_record(certificate), "proved": proved, "claimed_epsilon": epsilon}
            )
        )
    else:
        show(report.crowds.crowd_certificate_summary(certificate))
        show(f"{'PROVED' if proved else 'NOT PROVED'}: feasible, and no agent gains more than {epsilon:g} by deviating")
    raise typer.Exit(0 if proved else 1)
