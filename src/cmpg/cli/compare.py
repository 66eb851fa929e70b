"""`cmpg compare`: what other methods do with the same games, from the same start, before the same judge.

Exit codes: 0 if CA-CMPG was certified on every game, 1 if not, 2 for bad input.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cmpg.comparison.comparison import GameComparison

SCENARIOS = (
    "counter-example",
    "modified-counter-example",
    "grid-world",
    "grid-world-local",
    "spectrum",
    "congestion",
    "congestion-common-reward",
    "congestion-exogenous",
    "charging",
    "routing",
)
QUICK_SCENARIOS = SCENARIOS[:6]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(compare)


def compare(
    targets: Annotated[list[str] | None, typer.Argument(help="Scenarios or game files; ten scenarios if none.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer iterations, and six small scenarios if none.")] = False,
    seed: Annotated[int, typer.Option(min=0, metavar="<int>", help="Seeds the common start and all random ties.")] = 1,
    restarts: Annotated[int, typer.Option(help="Starts that solve has when it may choose its own.")] = 10,
    output: Annotated[Path | None, typer.Option("--out", help="Write a page in Markdown to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
) -> None:
    """Compare with other methods: gap, violations, value, time."""
    from rich.console import Console

    from cmpg.files.containers import write_atomically
    from cmpg.report.comparison import comparison_page, comparison_record, comparison_view

    if output is not None:
        _check_target(output)
    chosen = targets or list(QUICK_SCENARIOS if quick else SCENARIOS)
    games = _compared(chosen, quick=quick, seed=seed, restarts=restarts)
    if output is not None:
        settings = [*(["--quick"] if quick else []), "--seed", str(seed), "--restarts", str(restarts)]
        command = shlex.join(["cmpg", "compare", *(targets or []), *settings, "--out", str(output)])
        page = comparison_page(games, command=command)
        write_atomically(output, lambda stream: stream.write(page.encode()))
    if as_json:
        print(json.dumps(comparison_record(games, seed=seed)))
    else:
        # A file or a pipe has no width of its own, and a table that is cut is of no use.
        screen = Console()
        (screen if screen.is_terminal else Console(width=140)).print(comparison_view(games))
    ours = [entry for game in games.values() for entry in game.judged if entry.name == "CertifiedAscent"]
    raise typer.Exit(0 if all(entry.certificate.proves(1e-6) for entry in ours) else 1)


def _check_target(output: Path) -> None:
    from cmpg.errors import FileError

    if output.suffix != ".md":
        raise FileError(f"{output}: a page in Markdown is written; name a file that ends in .md.")
    if output.is_dir() or not output.parent.is_dir():
        raise FileError(f"{output}: cannot be written there; name a file in a folder that exists.")


def _compared(targets: list[str], *, quick: bool, seed: int, restarts: int) -> dict[str, GameComparison]:
    import numpy as np
    from rich.console import Console

    from cmpg.cli.targets import game_of
    from cmpg.comparison.comparison import METHODS, QUICK_METHODS, compare

    methods = QUICK_METHODS if quick else METHODS
    built = {target: game_of(target, [], seed=seed, exact=False) for target in targets}
    games = {}
    with Console(stderr=True).status("comparing") as status:
        for target, game in built.items():

            def show(method: str, target: str = target) -> None:
                status.update(f"{target}: {method}")

            rng = np.random.default_rng(seed)
            games[target] = compare(game, rng=rng, methods=methods, restarts=restarts, on_progress=show)
    return games
