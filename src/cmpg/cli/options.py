"""The options that several commands share, word for word."""

from __future__ import annotations

from typing import Annotated

import typer

DEFAULT_EPSILON = 1e-6

Epsilon = Annotated[float, typer.Option(help="The most any agent may gain by deviating.")]
Delta = Annotated[float, typer.Option(help="Allowed probability of failure.")]
Exact = Annotated[bool, typer.Option("--exact", help="Certify in exact rational arithmetic (small games).")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output, and nothing else.")]
Seed = Annotated[
    int | None, typer.Option(min=0, metavar="<int>", help="Random seed for agents, starts and tie-breaking.")
]
