"""The inner loops of local games in C; `cmdp/kernels/choice.py` chooses between them and their plain NumPy twins."""

from __future__ import annotations

from typing import Any

from cmpg.cmdp.kernels import choice


def compiled() -> Any | None:
    """Return the module of compiled kernels, or None if the NumPy twins are to run."""
    return choice.compiled(__name__)
