"""The whole run, and the folder that it leaves: the page `index.html`, `claims.csv`, `claims.json` and `figures/`.

The page is one file that opens offline, with the figures as inline SVG. `claims_view` is the same for a terminal.

The same seed gives the same files, byte for byte, for any number of jobs: nothing that is written holds a date or a
running time. A folder is written whole or not at all. A second run replaces the folder of an earlier one, and only
that: `claims.json` lists the files that were written, and a folder that holds anything else is left alone.
"""

from __future__ import annotations

import csv
import io
import json
import platform
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cmpg import __version__
from cmpg.cells import cell
from cmpg.errors import FileError
from cmpg.files.containers import check_out_folder, unwritable
from cmpg.paper import congestion, counter_examples, grid_world, learning, lemmas, literal, theory
from cmpg.paper.claims import Agreement, CheckedClaim, Effort, Evidence, PaperClaim, Picture, Section, Tick
from cmpg.paper.figures import paper_style, require_matplotlib, save
from cmpg.summaries import fields_line

PAPER = "Provably Learning Nash Policies in Constrained Markov Potential Games"
AUTHORS = "Pragnya Alatur, Giorgia Ramponi, Niao He and Andreas Krause"
FORMAT, RECORD = "cmpg-reproduction", "claims.json"

SECTIONS: tuple[Section, ...] = (
    counter_examples.SECTION,
    theory.SECTION,
    grid_world.SECTION,
    congestion.SECTION,
    learning.SECTION,
    literal.SECTION,
    lemmas.SECTION,
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
    """All sections, and what made them.

    Examples
    --------
    >>> from cmpg.paper import QUICK, SECTIONS
    >>> reproduction = reproduce(Evidence(effort=QUICK), sections=SECTIONS[:1])
    >>> len(reproduction.claims) == len(SECTIONS[0].claims), reproduction.surprises
    (True, ())
    """

    sections: tuple[CheckedSection, ...]
    seed: int
    effort: Effort

    __repr__ = fields_line

    @property
    def claims(self) -> tuple[CheckedClaim, ...]:
        """Every claim, in order."""
        return tuple(claim for section in self.sections for claim in section.claims)

    @property
    def surprises(self) -> tuple[CheckedClaim, ...]:
        """The claims that did not come out as the table says."""
        return tuple(claim for claim in self.claims if not claim.as_expected)


def reproduce(evidence: Evidence | None = None, *, sections: Sequence[Section] = SECTIONS) -> Reproduction:
    """Compute every claim of the paper, or those of some sections, from evidence that may be shared with others.

    Examples
    --------
    >>> from cmpg.paper import QUICK, SECTIONS
    >>> found = reproduce(Evidence(effort=QUICK), sections=SECTIONS[:1])
    >>> found.claims[0].claim.key, found.claims[0].as_expected
    ('matrices', True)
    """
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

    Examples
    --------
    >>> from cmpg.paper import QUICK
    >>> with TemporaryDirectory() as folder:
    ...     write(reproduce(Evidence(effort=QUICK), sections=()), Path(folder) / "paper")
    ...     sorted(path.name for path in (Path(folder) / "paper").iterdir())
    ['claims.csv', 'claims.json', 'figures', 'index.html']
    """
    check_reproduction_folder(folder)
    try:
        with TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.resolve().parent) as scratch:
            _replace(folder, _written(reproduction, Path(scratch) / "whole", on_progress), Path(scratch) / "earlier")
    except OSError as problem:
        raise unwritable(folder, problem, "Name a folder that can be made, or an earlier reproduction.") from None


def _written(reproduction: Reproduction, whole: Path, on_progress: Tick) -> Path:
    """Write everything into a new folder."""
    (whole / "figures").mkdir(parents=True)
    drawings = _draw(reproduction, whole / "figures", on_progress)
    heading = f"{PAPER}: the paper again, claim by claim"
    text = page(reproduction.sections, drawings, heading=heading, authors=AUTHORS, settings=_settings(reproduction))
    (whole / "index.html").write_text(text, "utf-8")
    (whole / "claims.csv").write_text(claims_csv(reproduction.sections), "utf-8")
    names = [path.relative_to(whole).as_posix() for path in whole.rglob("*") if path.is_file()]
    (whole / RECORD).write_text(_record(reproduction, sorted([*names, RECORD])), "utf-8")
    return whole


def _replace(folder: Path, whole: Path, earlier: Path) -> None:
    """Put a folder in its place; what was there goes to `earlier`, and comes back if this is interrupted."""
    check_reproduction_folder(folder)  # again: drawing takes a while
    try:
        if folder.is_dir():
            folder.rename(earlier)
        whole.rename(folder)
    finally:
        if earlier.is_dir() and not folder.exists():
            earlier.rename(folder)


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
        f"Seed {reproduction.seed}; {effort.grid_plots} runs of the grid world and {effort.congestion_plots} of the "
        f"congestion game in the plots, at least {effort.joint_runs} for shares; {effort.matrix_starts} starts of the "
        f"counter-example. cmpg {__version__}, numpy {np.__version__}, Python {platform.python_version()}."
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
        cells = (" ".join(map(repr, each)) if isinstance(each, list) else cell(each) for each in record.values())
        writer.writerow(cells)
    return text.getvalue()


COLUMNS = ("claim", "where", "paper", "ours", "verdict", "why")
VERDICTS = {
    "agrees": "this run finds what the paper says",
    "differs": "it finds something else, and says why",
    "added": "the paper gives no value to compare with",
    "unexpected": "this run did not find what the table of claims expects",
}


def page(
    sections: Sequence[CheckedSection], drawings: Mapping[str, str], *, heading: str, authors: str, settings: str
) -> str:
    """Return the page as one string.

    Parameters
    ----------
    sections
        Claims and pictures.
    drawings
        The SVG text of every picture, by its name.
    heading, authors
        What stands at the top: the paper, and who wrote it.
    settings
        Seed, versions and numbers of runs, in words.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    def drawing(picture: Picture) -> dict[str, Any]:
        svg = inline_svg(drawings[picture.name], prefix=picture.name, label=picture.caption)
        width = re.search(r'width="([0-9.]+pt)"', svg)
        return {"svg": Markup(svg), "width": width and width[1], "caption": picture.caption}

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    parts = [
        {
            "anchor": re.sub(r"[^a-z0-9]+", "-", part.section.title.lower()).strip("-"),
            "title": part.section.title,
            "note": part.section.note,
            "figures": [drawing(picture) for picture in part.pictures],
            "claims": claim_records([part]),
        }
        for part in sections
    ]
    return environment.from_string(_part("cmpg.paper", "page.html.j2")).render(
        parts=parts,
        style=Markup(_part("cmpg.report", "page.css") + _part("cmpg.paper", "page.css")),
        heading=heading,
        authors=authors,
        settings=settings,
        columns=COLUMNS,
        verdicts=VERDICTS,
        tone="good" if all(claim.as_expected for each in sections for claim in each.claims) else "warn",
        summary=summary(sections).plain,
    )


def _part(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text("utf-8")


def inline_svg(svg: str, *, prefix: str, label: str) -> str:
    """Make an SVG file fit to stand among others in a page: no prolog, and names that clash with no others.

    Examples
    --------
    >>> inline_svg('<?xml version="1.0"?><svg><g id="a"/><use href="#a"/></svg>', prefix="one", label="One")
    '<svg role="img" aria-label="One"><g id="one-a"/><use href="#one-a"/></svg>'
    """
    text = svg[svg.index("<svg") :].strip()
    text = re.sub(r'\bid="', f'id="{prefix}-', text)
    text = re.sub(r'(href="#|url\(#)', rf"\1{prefix}-", text)
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)


COLOURS = {"agrees": "green", "differs": "yellow", "added": "cyan", "unexpected": "bold red"}


def claims_view(sections: Sequence[CheckedSection]) -> RenderableType:
    """Lay out all claims, section by section, and sum up."""
    return Group(*(_section_table(section) for section in sections), summary(sections))


def _section_table(section: CheckedSection) -> Table:
    title = section.section.title
    table = Table(title=title, title_justify="left", title_style="bold", expand=True, show_lines=True)
    for name, ratio in (("claim", 5), ("paper", 3), ("ours", 7)):
        table.add_column(name, ratio=ratio, overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for claim in section.claims:
        row = claim.claim
        stated = Text.assemble(row.statement, (f"\n{row.where}", "dim"))
        ours = Text.assemble(claim.finding.ours, (f"\n{row.why}" if row.why else "", "dim"))
        table.add_row(stated, Text(row.paper), ours, Text(claim.verdict, style=COLOURS[claim.verdict]))
    return table


def summary(sections: Sequence[CheckedSection]) -> Text:
    """Say how many claims there are of each kind, and which of them came out otherwise than the table says."""
    claims = [claim for section in sections for claim in section.claims]
    counts = Counter(claim.claim.agreement for claim in claims)
    text = Text(
        f"{len(claims)} claims: the paper is right in {counts[Agreement.AGREES]}, wrong in "
        f"{counts[Agreement.DIFFERS]}, and silent in {counts[Agreement.ADDED]}. "
    )
    if odd := [claim.claim.key for claim in claims if not claim.as_expected]:
        return text.append(f"Unexpected in this run: {', '.join(odd)}.", style="bold red")
    return text.append("All came out as expected.", style="green")
