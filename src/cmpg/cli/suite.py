"""`cmpg suite`: a benchmark of frozen games; judge a folder of policies, and rank it.

Exit codes: 0 if everything was judged or proved, 1 if something was refused or not proved, 2 for bad input.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cmpg import files, report
from cmpg.cli.interrupts import on_interrupt, written
from cmpg.cli.options import Json, option
from cmpg.cli.output import ProgressLine, show, show_json
from cmpg.cli.targets import one_of
from cmpg.errors import CMPGError
from cmpg.summaries import Summary

ACTIONS = ("list", "games", "check", "submit", "rank")


def suite(
    *,
    action: Annotated[
        str,
        typer.Argument(
            metavar="[ACTION]",
            autocompletion=lambda: list(ACTIONS),
            help="list: the games, and what is known of them. games FOLDER: write their files. check: prove the "
            "references again. submit FOLDER: judge policies, each in a file named after its game. rank: all rows.",
        ),
    ] = "list",
    folder: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER]", help="Of games to write, or of policies to judge.")
    ] = None,
    output: Annotated[Path | None, option("Page to write (.html), for submit and rank.", "--out", "-o")] = None,
    data: Annotated[
        Path | None,
        option(
            "Public data files (ACN, MovingAI, TNTP, MADP; docs/suite.md): games that can be built from them, and "
            "from installed packages, count too.",
            metavar="<folder>",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """A benchmark of frozen games that others can enter."""
    one_of("ACTION", action, ACTIONS)
    if (folder is None) == (action in ("games", "submit")):
        raise CMPGError(
            f"`cmpg suite {action}` needs a folder." if folder is None else f"`cmpg suite {action}` takes no folder."
        )
    if output is not None and (action not in ("submit", "rank") or output.suffix != ".html"):
        raise CMPGError(f"{output}: a page (.html) is written by `cmpg suite submit` and `cmpg suite rank`.")
    if action == "submit" and folder is not None:
        _submit(folder, output, data, as_json=as_json)
    elif action == "games" and folder is not None:
        _write_games(folder, data)
    elif action == "check":
        _check(data, as_json=as_json)
    elif action == "rank":
        _rank(output, data, as_json=as_json)
    else:
        _list(data, as_json=as_json)


def _list(data: Path | None, *, as_json: bool) -> None:
    from cmpg.suite.data_games import RECIPES
    from cmpg.suite.games import VERSION, suite_games
    from cmpg.suite.references import reference

    games = suite_games(data)
    if as_json:
        show_json({"version": VERSION, "games": [vars(reference(name)) for name in games]})
        return
    absent = [name for name in RECIPES if name not in games]
    if data is None:
        more = f"{len(absent)} more are built from public data and packages: --data FOLDER"
    else:
        more = "\n".join(f"not built: {name}: {RECIPES[name].missing(data)}" for name in absent)
    show(
        Summary(
            f"{len(games)} games", f"version {VERSION}", (report.suite.games_table(games), *([more] if more else []))
        )
    )


def _write_games(folder: Path, data: Path | None) -> None:
    from cmpg.suite.games import suite_games
    from cmpg.suite.references import check_game_is_frozen

    games = suite_games(data)
    with ProgressLine("writing the games"), files.containers.new_folder(folder):
        for name in games:
            files.games.save_game(check_game_is_frozen(name, data), folder / f"{name}.npz")
    show(f"{len(games)} games are written to {folder}/")


def _check(data: Path | None, *, as_json: bool) -> None:
    from cmpg.suite.games import suite_games
    from cmpg.suite.references import prove_reference, reference

    games = suite_games(data)
    with ProgressLine("proving the references") as progress:
        failed = []
        for name in games:
            progress.begin(f"proving {name}")
            certificate = prove_reference(name, data)
            if not certificate.proves(reference(name).exploitability + 1e-9):
                failed.append(name)
    if as_json:
        show_json({"games": len(games), "not_proved": failed})
    else:
        show(
            f"{len(games) - len(failed)} of {len(games)} references are proved" + "".join(f"\nnot {n}" for n in failed)
        )
    raise typer.Exit(1 if failed else 0)


def _submit(folder: Path, output: Path | None, data: Path | None, *, as_json: bool) -> None:
    from cmpg.suite.submissions import judge_submission, reference_suite_rows

    on_interrupt(written(output))
    with ProgressLine("judging") as progress:
        found = judge_submission(folder, data=data, on_progress=lambda game: progress.begin(f"judging {game}"))
    rows = reference_suite_rows(found.games)
    if output is not None and not found.refused:
        files.containers.write_text(output, report.suite.suite_page([*rows, found.row], found.games))
    if as_json:
        entries = {game: vars(entry) for game, entry in found.entries.items()}
        row = {name: None if value != value else value for name, value in vars(found.row).items()}
        show_json({"row": row, "entries": entries, "refused": dict(found.refused)})
    else:
        show(report.suite.submission_summary(found, rows))
    raise typer.Exit(1 if found.refused else 0)


def _rank(output: Path | None, data: Path | None, *, as_json: bool) -> None:
    from cmpg.suite.games import VERSION, suite_games
    from cmpg.suite.submissions import reference_suite_rows

    games = suite_games(data)
    rows = reference_suite_rows(games)
    if output is not None:
        files.containers.write_text(output, report.suite.suite_page(rows, games))
    if as_json:
        show_json([vars(row) for row in rows])
    else:
        show(Summary(f"{len(games)} games", f"version {VERSION}", (report.suite.suite_table(rows),)))
