"""The whole run, and what it leaves behind.

Every study draws from its own stream of random numbers, every run from its own: the same seed gives the same claims,
figures and page, byte for byte, for any number of jobs. Nothing that is written holds a date or a running time.
"""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from cmpg import __version__
from cmpg.errors import CMPGError
from cmpg.files.records import check_out_folder
from cmpg.paper.claims import Claim, Section, claim_records, claims_csv
from cmpg.paper.congestion import study_congestion
from cmpg.paper.counter_examples import study_counter_examples
from cmpg.paper.figures import paper_style, require_matplotlib, save
from cmpg.paper.grid_world import study_grid_world
from cmpg.paper.learning import study_learning
from cmpg.paper.page import page
from cmpg.paper.runs import FULL, Effort, Setting, Tick
from cmpg.paper.theory import study_theory

HEADING = "Constrained Markov potential games: the paper again, claim by claim"


@dataclass(frozen=True, eq=False)
class Reproduction:
    """All sections, and what made them."""

    sections: tuple[Section, ...]
    seed: int
    effort: Effort

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Every claim, in order."""
        return tuple(claim for section in self.sections for claim in section.claims)

    @property
    def surprises(self) -> tuple[Claim, ...]:
        """The claims that did not come out as the notes on the paper say."""
        return tuple(claim for claim in self.claims if claim.surprising)


def reproduce(
    *, seed: int = 1, effort: Effort = FULL, jobs: int = 1, on_progress: Tick = lambda *_: None
) -> Reproduction:
    """Compute every figure, number and claim of the paper.

    Parameters
    ----------
    seed
        Of all random numbers.
    effort
        How much to run: `FULL`, or `QUICK` for a first look with rough shares.
    jobs
        Threads; the answer has the same bits for any number.
    on_progress
        Called with what is being done, how much is done, and how much there is.
    """
    require_matplotlib()
    if seed < 0:
        raise CMPGError(f"seed is {seed}; it must not be negative.")
    if jobs < 1:
        raise CMPGError(f"jobs is {jobs}; at least one is needed.")
    streams = np.random.SeedSequence(seed).spawn(5)
    matrix, grid, congestion, theory, learning = (Setting(effort, each, jobs, on_progress) for each in streams)
    counter_examples = study_counter_examples(matrix)
    grid_world = study_grid_world(grid)
    congestion_game = study_congestion(congestion)
    sections = (
        counter_examples,
        study_theory(theory, grid=grid_world.runs, congestion=congestion_game.runs),
        grid_world.section,
        congestion_game.section,
        study_learning(learning),
    )
    return Reproduction(sections, seed, effort)


def write(reproduction: Reproduction, folder: Path, *, on_progress: Tick = lambda *_: None) -> None:
    """Write figures, tables and the page into a new folder: all of it, or nothing.

    Parameters
    ----------
    reproduction
        What to write.
    folder
        New, or empty.
    on_progress
        Called as figures are drawn.
    """
    check_out_folder(folder)
    with TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.resolve().parent) as scratch:
        whole = Path(scratch) / "whole"
        (whole / "figures").mkdir(parents=True)
        drawings = _draw(reproduction, whole / "figures", on_progress)
        settings = _settings(reproduction)
        _write_text(whole / "claims.csv", claims_csv(reproduction.sections))
        _write_text(whole / "claims.json", _record(reproduction))
        _write_text(whole / "index.html", page(reproduction.sections, drawings, heading=HEADING, settings=settings))
        if folder.is_dir():
            folder.rmdir()
        whole.rename(folder)


def _draw(reproduction: Reproduction, folder: Path, on_progress: Tick) -> dict[str, str]:
    """Draw and save every picture; return the SVG text by name."""
    pictures = [picture for section in reproduction.sections for picture in section.pictures]
    with paper_style():
        for number, picture in enumerate(pictures, 1):
            save(picture.draw(), folder, picture.name)
            on_progress("figures", number, len(pictures))
    return {picture.name: (folder / f"{picture.name}.svg").read_text("utf-8") for picture in pictures}


def _settings(reproduction: Reproduction) -> str:
    effort = reproduction.effort
    return (
        f"Seed {reproduction.seed}; plots over {effort.grid_runs} runs of the grid world and {effort.congestion_runs} "
        f"of the congestion game; {effort.matrix_starts} starts of the counter-example. cmpg {__version__}, "
        f"numpy {np.__version__}, Python {platform.python_version()}."
    )


def _record(reproduction: Reproduction) -> str:
    record = {
        "format": "cmpg-reproduction",
        "version": 1,
        "seed": reproduction.seed,
        "effort": asdict(reproduction.effort),
        "versions": {"cmpg": __version__, "numpy": np.__version__, "python": platform.python_version()},
        "claims": [_finite(each) for each in claim_records(reproduction.sections)],
    }
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def _finite(record: dict[str, object]) -> dict[str, object]:
    """JSON has no nan: a number that is none becomes null."""
    numbers = record["numbers"]
    assert isinstance(numbers, list)
    return record | {"numbers": [number if np.isfinite(number) else None for number in numbers]}


def _write_text(target: Path, text: str) -> None:
    target.write_text(text, "utf-8")
