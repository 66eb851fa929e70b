"""What was compared with whom, how often, and how far apart the answers were."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

MOST = 1e-8
"""Larger differences fail the run."""


class Kind(Enum):
    RESPONSE = "best responses"
    EQUILIBRIUM = "equilibria"


@dataclass(eq=False)
class Tally:
    """One row of the table."""

    kind: Kind
    what: str
    tool: str
    answers: int = 0
    difference: float = 0.0
    at: str = ""  # where the difference was largest
    public: set[str] = field(default_factory=set)  # names of public problems

    def compare(self, ours: float, theirs: float, *, name: str, public: bool = False) -> None:
        """Count one answer; differences are relative to the larger of 1 and the answer."""
        difference = abs(float(ours) - float(theirs)) / max(1.0, abs(float(ours)), abs(float(theirs)))
        if math.isnan(difference):  # what is no number differs
            difference = math.inf
        if difference > self.difference:
            self.difference, self.at = difference, name
        self.answers += 1
        if public:
            self.public.add(name)

    @property
    def agrees(self) -> bool:
        return self.difference <= MOST

    def __str__(self) -> str:
        return f"{self.tool}, {self.what}: {self.answers} {self.kind.value}, {self.difference:.1e} at {self.at}"


def page(tallies: Sequence[Tally], versions: Mapping[str, str]) -> str:
    """Write the table of a run as Markdown."""
    counts = {kind: sum(tally.answers for tally in tallies if tally.kind is kind) for kind in Kind}
    public = set().union(*(tally.public for tally in tallies))
    largest = max(tally.difference for tally in tallies)
    lines = [
        "# Cross-checks: the numbers of others",
        "",
        "Written by `python -m checks oracles`, which asks tools that others wrote, and fails if an answer differs by "
        f"more than {MOST:g}.",
        "",
        f"- {counts[Kind.RESPONSE]:,} best responses, {counts[Kind.EQUILIBRIUM]:,} equilibria, {len(public)} public "
        "problems.",
        f"- The largest difference is {largest:.1e}, relative to the larger of 1 and the value.",
        "",
        "A best response is compared by its value, or by what it gains. An equilibrium that another tool found is "
        "certified here, and the difference is the gain that our certificate leaves open; of one that was found here, "
        "it is what the other tool can still gain. A question to two tools counts twice.",
        "",
        "| who | what | answers | largest difference |",
        "|---|---|---|---|",
    ]
    for tally in sorted(tallies, key=lambda tally: (tally.tool.lower(), tally.kind.value, tally.what)):
        answers = f"{tally.answers:,} {tally.kind.value}"
        lines.append(f"| {tally.tool} | {tally.what} | {answers} | {tally.difference:.1e} |")
    lines += ["", "## Public problems", ""]
    for tally in tallies:
        new = sorted(tally.public & public)
        public -= tally.public
        if new:
            lines += [f"- {tally.tool}, {tally.what}: {', '.join(f'`{name}`' for name in new)}."]
    listed = ", ".join(f"{tool} {version}" for tool, version in sorted(versions.items()))
    lines += ["", "## Versions", "", f"{listed}. Storm runs as a program of its own, queried in PRISM's language.", ""]
    return "\n".join(lines)
