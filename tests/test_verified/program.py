"""Where the verified checker is, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

VERIFIED = Path(__file__).parents[2] / "verified"
INSTALL = "apt-get install --no-install-recommends coq ocaml libzarith-ocaml-dev ocaml-findlib"


@dataclass(frozen=True)
class Answer:
    """What cmpg-verify said."""

    code: int
    text: str  # the first line of its output, or of its errors
    words: int  # how many words of memory it allocated: a measure of work that is the same on all machines


Verify = Callable[..., Answer]
