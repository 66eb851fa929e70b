"""Nashpy: equilibria of bimatrix games by support enumeration and vertex enumeration."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import nashpy
import numpy as np

NAME = "nashpy"


def equilibria(payoffs: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """Equilibria, some of them twice; Nashpy warns of degenerate games, which have more than it lists."""
    game = nashpy.Game(*payoffs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from (list(rows) for rows in game.support_enumeration())
        yield from (list(rows) for rows in game.vertex_enumeration())
