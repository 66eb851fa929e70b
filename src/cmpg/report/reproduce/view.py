"""The claims as a table in a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cmpg.report.reproduce.claims import Claim, Section, Verdict

COLOURS = {Verdict.AGREES: "green", Verdict.DIFFERS: "yellow", Verdict.ADDED: "cyan"}


def claims_view(sections: Sequence[Section]) -> RenderableType:
    """Lay out all claims, section by section, and sum up."""
    return Group(*(_section_table(section) for section in sections), summary(sections))


def _section_table(section: Section) -> Table:
    table = Table(title=section.title, title_justify="left", title_style="bold", expand=True, show_lines=True)
    for name, ratio in (("claim", 5), ("paper", 3), ("ours", 7)):
        table.add_column(name, ratio=ratio, overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for claim in section.claims:
        ours = Text(claim.ours)
        if claim.why:
            ours.append(f"\n{claim.why}", style="dim")
        table.add_row(Text(claim.statement), Text(claim.paper), ours, _verdict(claim))
    return table


def _verdict(claim: Claim) -> Text:
    text = Text(claim.verdict.value, style=COLOURS[claim.verdict])
    if claim.surprising:
        text.append("\nunexpected", style="bold red")
    return text


def summary(sections: Sequence[Section]) -> Text:
    """Say how many claims there are of each verdict, and which of them are not as the notes say."""
    claims = [claim for section in sections for claim in section.claims]
    counts = Counter(claim.verdict for claim in claims)
    text = Text(
        f"{len(claims)} claims: {counts[Verdict.AGREES]} agree, {counts[Verdict.DIFFERS]} differ, "
        f"{counts[Verdict.ADDED]} are not in the paper. "
    )
    odd = [claim.key for claim in claims if claim.surprising]
    if odd:
        return text.append(f"Not as docs/paper-notes.md says: {', '.join(odd)}.", style="bold red")
    return text.append("All are as docs/paper-notes.md says.", style="green")
