"""Gambit: equilibria by enumeration, regrets of profiles, and its catalogue of games from books and papers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pygambit

import cmpg
from cmpg.interop import nfg_text, read_nfg

NAME = "pygambit"


def to_gambit(game: cmpg.JointGame) -> Any:
    """The game as Gambit reads it from our file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "game.nfg"
        path.write_text(nfg_text(game))
        return pygambit.read_nfg(str(path))


def from_gambit(theirs: Any) -> cmpg.JointGame:
    """The game as we read it from Gambit's file; a tree becomes its strategic form."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "game.nfg"
        path.write_text(theirs.to_nfg())
        return read_nfg(path)


def equilibria(theirs: Any) -> Iterator[list[np.ndarray]]:
    """Every equilibrium that Gambit enumerates: pure ones, and mixed ones of two players."""
    found = list(pygambit.nash.enumpure_solve(theirs).equilibria)
    if len(theirs.players) == 2:
        found += pygambit.nash.enummixed_solve(theirs).equilibria
    for profile in found:
        if hasattr(profile, "as_strategy"):
            profile = profile.as_strategy()
        yield [np.array([float(profile[strategy]) for strategy in player.strategies]) for player in theirs.players]


def regrets(theirs: Any, rows: list[np.ndarray]) -> list[float]:
    """What each player gains by its best response to a mixed profile."""
    profile = theirs.mixed_strategy_profile([row.tolist() for row in rows])
    return [float(profile.player_regret(player)) for player in theirs.players]


def catalogue() -> Iterator[tuple[str, Any]]:
    """Games from books and papers."""
    for name in pygambit.catalog.games().Game:
        yield name, pygambit.catalog.load(name)
