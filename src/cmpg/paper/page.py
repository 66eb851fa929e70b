"""The claims on a page, in one file that opens offline, with the figures as inline SVG; and in a terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cmpg.paper.claims import Agreement, CheckedClaim, Picture

if TYPE_CHECKING:
    from cmpg.paper.reproduction import CheckedSection

STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #fdfdfb; --line: #d8d8d2; --soft: #5c5c58;
  --agrees: #1f7a35; --differs: #a15c00; --added: #2b5f9e; --odd: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e4; --paper: #191a1c; --line: #3a3b3e; --soft: #a9a9a4;
  --agrees: #74c98a; --differs: #f0b35a; --added: #8ab8f0; --odd: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 70rem; padding: 1.5rem 1rem 4rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 Georgia, "Times New Roman", serif; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { margin-top: 3rem; font-size: 1.3rem; }
nav ul { padding: 0; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; list-style: none; }
a { color: var(--added); } .note { color: var(--soft); }
.figures { display: flex; flex-wrap: wrap; align-items: flex-end; gap: 1rem 2rem; margin: 1rem 0 1.5rem; }
figure { margin: 0; max-width: 100%; }
figure svg { width: 100%; height: auto; background: #fff; border-radius: 4px; padding: 4px; }
figcaption { color: var(--soft); font-size: .9rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .6rem; border-bottom: 1px solid var(--line); }
th { font-weight: bold; } td.why { color: var(--soft); }
col.claim { width: 22%; } col.where { width: 11%; } col.paper { width: 13%; } col.ours { width: 30%; }
col.verdict { width: 6rem; } td.where { color: var(--soft); }
.verdict { font-weight: bold; white-space: nowrap; } .agrees { color: var(--agrees); }
.differs { color: var(--differs); } .added { color: var(--added); } .unexpected { color: var(--odd); }
@media (max-width: 46rem) { table, tbody { display: block; } colgroup { display: none; }
  thead { position: absolute; left: -999em; } tr { display: block; margin: 0 0 1rem;
  border-bottom: 2px solid var(--line); } td { display: block; border: 0; padding: .15rem 0; }
  td:empty { display: none; } td::before { content: attr(data-label) ": "; font-weight: bold; color: var(--ink); } }
"""

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
    links = "".join(f'<li><a href="#{_anchor(each)}">{escape(each.section.title)}</a></li>' for each in sections)
    body = "".join(_section(each, drawings) for each in sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(heading)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<header><h1>{escape(heading)}</h1>\n<p>The paper is by {escape(authors)}.</p>\n"
        f"<p><strong>{escape(summary(sections).plain)}</strong></p>\n"
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
    """Make an SVG file fit to stand among others in a page: no prolog, and names that clash with nobody's.

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
