"""`cmpg compare`: what other methods do with the same games, from the same start, before the same judge.

Exit codes: 0 if CA-CMPG was certified on every game, 1 if not, 2 for bad input.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cmpg import comparison, files, report
from cmpg.cli.options import Json, Tasks, check_out_file, option
from cmpg.cli.output import ProgressLine, show, show_json
from cmpg.cli.targets import Target, complete_game
from cmpg.runs.runner import Jobs, in_order, run_tasks

if TYPE_CHECKING:
    from cmpg.comparison.comparison import GameComparison
    from cmpg.games.game import Game

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


def compare(
    *,
    games: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[GAME]",
            autocompletion=complete_game,
            help="Scenarios or game files; ten scenarios if omitted, six with --quick.",
        ),
    ] = None,
    quick: Annotated[bool, option("Fewer iterations.", "--quick")] = False,
    seed: Annotated[int, option("Random seed for starts and tie-breaking.", least=0)] = 1,
    restarts: Annotated[int, option("Number of starts when a method may choose its own.")] = 10,
    tasks: Tasks,
    output: Annotated[Path | None, option("Markdown file (.md) to write.", "--out")] = None,
    as_json: Json = False,
) -> None:
    """Compare CA-CMPG with other methods on the same games."""
    check_out_file(output, ".md")
    chosen = games or list(QUICK_SCENARIOS if quick else SCENARIOS)
    found = _compared(chosen, _Plan(quick, seed, restarts), jobs=tasks.where)
    if output is not None:
        settings = [*(["--quick"] if quick else []), "--seed", str(seed), "--restarts", str(restarts)]
        command = shlex.join(["cmpg", "compare", *(games or []), *settings, "--out", str(output)])
        files.containers.write_text(output, report.comparison.comparison_page(found, command=command))
    if as_json:
        show_json(report.comparison.comparison_record(found, seed=seed))
    else:
        show(*report.comparison.comparison_summaries(found))
    ours = [entry for game in found.values() for entry in game.judged if entry.name == "CertifiedAscent"]
    raise typer.Exit(0 if all(entry.certificate.proves(1e-6) for entry in ours) else 1)


@dataclass(frozen=True)
class _Plan:
    """How every game is compared."""

    quick: bool
    seed: int
    restarts: int

    def run(self, game: Game, tell: Callable[[str], None] = lambda _: None) -> GameComparison:
        """Compare the methods on one game."""
        import numpy as np

        from cmpg.comparison.comparison import METHODS, QUICK_METHODS

        methods = QUICK_METHODS if self.quick else METHODS
        rng = np.random.default_rng(self.seed)
        return comparison.compare(game, rng=rng, methods=methods, restarts=self.restarts, on_progress=tell)


def _compared(targets: list[str], plan: _Plan, *, jobs: Jobs) -> dict[str, GameComparison]:
    """Compare on every game: a task each."""
    with ProgressLine("building the games") as progress:
        built = {target: Target(target).build(seed=plan.seed) for target in targets}
        if not jobs.in_process:
            progress.begin(f"comparing on {len(built)} games")
            return dict(zip(built, in_order(run_tasks(plan.run, list(built.values()), jobs=jobs)), strict=True))

        def alone(named: tuple[str, Game]) -> GameComparison:
            def tell(method: str) -> None:
                progress.begin(f"{named[0]}: {method}")
                progress.show(f"{named[0]}: {method}")

            return plan.run(named[1], tell)

        return dict(zip(built, in_order(run_tasks(alone, list(built.items()))), strict=True))
