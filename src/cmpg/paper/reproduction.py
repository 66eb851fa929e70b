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


STYLE = """
nav { max-width: 68rem; margin: 0 auto; padding: 0 1.25rem; }
nav ul { padding: 0; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; list-style: none; }
.figures { display: flex; flex-wrap: wrap; align-items: flex-end; gap: 1rem; margin: 1rem 0; }
figure { max-width: 100%; }
figure svg { width: 100%; height: auto; background: #fff; border-radius: 4px; padding: 4px; }
figure svg text { fill: #111; }
@media (prefers-color-scheme: dark) { figure svg { filter: invert(0.88) hue-rotate(180deg); } }
table { background: var(--panel); border: 1px solid var(--rule); border-radius: 8px; }
th, td { text-align: left; vertical-align: top; white-space: normal; }
tr > :first-child { position: static; }
td.where, td.why { color: var(--quiet); }
col.claim { width: 21%; } col.where { width: 11%; } col.paper { width: 12%; } col.ours { width: 27%; }
col.verdict { width: 6rem; }
span.verdict { margin: 0; padding: 0; border: 0; background: none; font-weight: 620; white-space: nowrap; }
td.verdict { margin: 0; padding: .45rem .85rem; border: 0; border-bottom: 1px solid var(--rule); border-radius: 0; }
.agrees { color: var(--good); } .differs { color: var(--warn); } .added { color: var(--focus); }
.unexpected { color: var(--series-6); }
@media (max-width: 46rem) { nav { padding: 0 .9rem; } table, tbody { display: block; }
  table { background: none; border: 0; }
  colgroup { display: none; } thead { position: absolute; left: -999em; }
  tr { display: block; margin: 0 0 .8rem; padding: .5rem .8rem; background: var(--panel);
  border: 1px solid var(--rule); border-radius: 8px; }
  td, td.verdict, td:first-child { display: block; border: 0; padding: .15rem 0; background: none; }
  td:empty { display: none; } td::before { content: attr(data-label) ": "; font-weight: 600; color: var(--text); } }
"""
"""What the page of the claims has beside the style of all pages."""

COLUMNS = ("claim", "where", "paper", "ours", "verdict", "why")


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
    style = files("cmpg.report").joinpath("page.css").read_text("utf-8") + STYLE
    links = "".join(f'<li><a href="#{_anchor(each)}">{escape(each.section.title)}</a></li>' for each in sections)
    body = "".join(_section(each, drawings) for each in sections)
    tone = "good" if all(claim.as_expected for each in sections for claim in each.claims) else "warn"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(heading)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<header><h1>{escape(heading)}</h1>\n<p class="quiet">The paper is by {escape(authors)}.</p>\n'
        f'<div class="verdict {tone}"><strong>{escape(summary(sections).plain)}</strong></div>\n'
        f'<p class="note">{escape(settings)}</p>\n{_legend()}</header>\n'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n<main>\n{body}</main>\n</body>\n</html>\n'
    )


def _legend() -> str:
    words = {
        "agrees": "this run finds what the paper says",
        "differs": "it finds something else, and says why",
        "added": "the paper gives no value to compare with",
        "unexpected": "this run did not find what the table of claims expects",
    }
    items = "; ".join(f'<span class="verdict {each}">{each}</span>: {meaning}' for each, meaning in words.items())
    files = "<code>claims.csv</code> and <code>claims.json</code>"
    return f'<p class="note">{items}. Figures are in <code>figures</code> as SVG and PDF, the table in {files}.</p>\n'


def _section(section: CheckedSection, drawings: Mapping[str, str]) -> str:
    figures = "".join(_figure(picture, drawings[picture.name]) for picture in section.pictures)
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    widths = "".join(f'<col class="{name}">' for name in COLUMNS)
    rows = "".join(_row(claim) for claim in section.claims)
    return (
        f'<section id="{_anchor(section)}">\n<h2>{escape(section.section.title)}</h2>\n'
        f'<p class="note">{escape(section.section.note)}</p>\n<div class="figures">\n{figures}</div>\n'
        f"<table>\n<colgroup>{widths}</colgroup>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</section>\n"
    )


def _anchor(section: CheckedSection) -> str:
    return re.sub(r"[^a-z0-9]+", "-", section.section.title.lower()).strip("-")


def _row(claim: CheckedClaim) -> str:
    row, verdict = claim.claim, claim.verdict
    contents = {
        "claim": escape(row.statement),
        "where": escape(row.where),
        "paper": escape(row.paper),
        "ours": escape(claim.finding.ours),
        "verdict": f'<span class="verdict {verdict}">{verdict}</span>',
        "why": escape(row.why),
    }
    cells = "".join(f'<td class="{name}" data-label="{name}">{contents[name]}</td>' for name in COLUMNS)
    return f'<tr id="claim-{row.key}">{cells}</tr>\n'


def _figure(picture: Picture, svg: str) -> str:
    drawing = inline_svg(svg, prefix=picture.name, label=picture.caption)
    found = re.search(r'width="([0-9.]+pt)"', drawing)
    width = f' style="width: {found[1]}"' if found else ""
    return f"<figure{width}>\n{drawing}\n<figcaption>{escape(picture.caption)}</figcaption>\n</figure>\n"


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
