"""The whole run, and the folder that it leaves: `index.html`, `claims.csv`, `claims.json` and `figures/`.

The same seed gives the same files, byte for byte, for any number of jobs: nothing that is written holds a date or a
running time. A folder is written whole or not at all. A second run replaces the folder of an earlier one, and only
that: `claims.json` lists the files that were written, and a folder that holds anything else is left alone.
"""

from __future__ import annotations

import csv
import io
import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from cmpg import __version__
from cmpg.errors import FileError
from cmpg.files.records import check_out_folder
from cmpg.paper import congestion, counter_examples, grid_world, learning, theory
from cmpg.paper.claims import CheckedClaim, PaperClaim, Picture, Section
from cmpg.paper.evidence import Effort, Evidence, Tick
from cmpg.paper.figures import paper_style, require_matplotlib, save
from cmpg.paper.page import page

PAPER = "Provably Learning Nash Policies in Constrained Markov Potential Games"
AUTHORS = "Pragnya Alatur, Giorgia Ramponi, Niao He and Andreas Krause"
FORMAT, RECORD = "cmpg-reproduction", "claims.json"

SECTIONS: tuple[Section, ...] = (
    counter_examples.SECTION,
    theory.SECTION,
    grid_world.SECTION,
    congestion.SECTION,
    learning.SECTION,
)
"""The table of claims, section by section."""

CLAIMS: tuple[PaperClaim, ...] = tuple(claim for section in SECTIONS for claim in section.claims)


@dataclass(frozen=True, eq=False)
class CheckedSection:
    """A section of the table, computed."""

    section: Section
    claims: tuple[CheckedClaim, ...]
    pictures: tuple[Picture, ...]


@dataclass(frozen=True, eq=False)
class Reproduction:
    """All sections, and what made them."""

    sections: tuple[CheckedSection, ...]
    seed: int
    effort: Effort

    @property
    def claims(self) -> tuple[CheckedClaim, ...]:
        """Every claim, in order."""
        return tuple(claim for section in self.sections for claim in section.claims)

    @property
    def surprises(self) -> tuple[CheckedClaim, ...]:
        """The claims that did not come out as the table says."""
        return tuple(claim for claim in self.claims if not claim.as_expected)


def reproduce(evidence: Evidence | None = None, *, sections: Sequence[Section] = SECTIONS) -> Reproduction:
    """Compute every claim of the paper, or those of some sections, from evidence that may be shared with others."""
    require_matplotlib()
    evidence = evidence or Evidence()
    found = []
    for section in sections:
        claims = tuple(claim.check(evidence) for claim in section.claims)
        found.append(CheckedSection(section, claims, section.pictures(evidence)))
    return Reproduction(tuple(found), evidence.seed, evidence.effort)


def check_reproduction_folder(folder: Path) -> None:
    """Raise unless a reproduction may be written there: the folder is new, empty, or all of it an earlier one."""
    try:
        record = json.loads((folder / RECORD).read_text("utf-8"))
        ours = set(record["files"]) if record["format"] == FORMAT else None
    except (OSError, ValueError, TypeError, KeyError):
        ours = None
    if ours is None:
        return check_out_folder(folder)
    found = {
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()
    }
    if strangers := sorted(found - ours):
        raise FileError(
            f"{folder}: holds {strangers[0]}, which `cmpg reproduce` did not write; nothing is written over. "
            "Move it away, or name another folder."
        )
    return None


def write(reproduction: Reproduction, folder: Path, *, on_progress: Tick = lambda *_: None) -> None:
    """Write figures, tables and the page: all of it, or nothing.

    Parameters
    ----------
    reproduction
        What to write.
    folder
        New, empty, or holding an earlier reproduction and nothing else: that is replaced.
    on_progress
        Called as figures are drawn.
    """
    check_reproduction_folder(folder)
    with TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.resolve().parent) as scratch:
        whole = Path(scratch) / "whole"
        (whole / "figures").mkdir(parents=True)
        drawings = _draw(reproduction, whole / "figures", on_progress)
        heading = f"{PAPER}: the paper again, claim by claim"
        text = page(reproduction.sections, drawings, heading=heading, authors=AUTHORS, settings=_settings(reproduction))
        (whole / "index.html").write_text(text, "utf-8")
        (whole / "claims.csv").write_text(claims_csv(reproduction.sections), "utf-8")
        names = [path.relative_to(whole).as_posix() for path in whole.rglob("*") if path.is_file()]
        (whole / RECORD).write_text(_record(reproduction, sorted([*names, RECORD])), "utf-8")
        check_reproduction_folder(folder)  # again: drawing takes a while
        if folder.is_dir():
            folder.rename(Path(scratch) / "earlier")
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


def _record(reproduction: Reproduction, files: Sequence[str]) -> str:
    record = {
        "format": FORMAT,
        "version": 2,
        "paper": PAPER,
        "seed": reproduction.seed,
        "effort": asdict(reproduction.effort),
        "versions": {"cmpg": __version__, "numpy": np.__version__, "python": platform.python_version()},
        "files": files,
        "claims": [
            each | {name: [_finite(number) for number in each[name]] for name in ("numbers", "low", "high")}
            for each in claim_records(reproduction.sections)
        ],
    }
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def _finite(number: float) -> float | None:
    """JSON has no nan and no infinity: a number that is none becomes null."""
    return number if np.isfinite(number) else None


def claim_records(sections: Sequence[CheckedSection]) -> list[dict[str, Any]]:
    """Return the table as records of plain strings and numbers."""
    return [
        {
            "section": part.section.title,
            "key": each.claim.key,
            "where": each.claim.where,
            "claim": each.claim.statement,
            "paper": each.claim.paper,
            "ours": each.finding.ours,
            "verdict": each.verdict,
            "why": each.claim.why,
            "numbers": list(each.finding.numbers),
            "low": [low for low, _ in each.claim.expect],
            "high": [high for _, high in each.claim.expect],
        }
        for part in sections
        for each in part.claims
    ]


def claims_csv(sections: Sequence[CheckedSection]) -> str:
    """Return the table as CSV, one line per claim; where several numbers stand in a cell, spaces part them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for number, record in enumerate(claim_records(sections)):
        if not number:
            writer.writerow(record)
        cells = (" ".join(map(repr, each)) if isinstance(each, list) else each for each in record.values())
        writer.writerow(cells)
    return text.getvalue()
