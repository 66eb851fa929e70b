"""Game files as something to sweep over: the file is an option, and so is the threshold."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cmpg.errors import FileError, GameError
from cmpg.files.games import load_game
from cmpg.games.game import Game
from cmpg.interop.gambit import read_nfg
from cmpg.interop.long_table import read_table

READERS = {".json": load_game, ".npz": load_game, ".nfg": read_nfg, ".csv": read_table}
"""What reads a game file, by its ending."""


def read_game(path: str | Path, *, exact: bool = False) -> Game:
    """Read a game file of any kind, by its ending."""
    read = READERS.get(Path(path).suffix.lower())
    if read is None:
        raise FileError(f"{path}: a game file ends in one of {', '.join(READERS)}.")
    game: Game = read(path, exact=exact)
    return game


def game_file(*, file: str, threshold: float | None = None) -> Game:
    """Return the game of a file.

    Parameters
    ----------
    file
        A game file.
    threshold
        Of all constraints, instead of those of the file.
    """
    game = read_game(file)
    if threshold is None:
        return game
    if not len(game.thresholds):
        raise GameError(f"{file} has no constraints, so it has no threshold.")
    if not hasattr(game, "with_thresholds"):
        raise GameError(f"a {type(game).__name__} keeps its thresholds.")
    changed: Game = game.with_thresholds(np.full(len(game.thresholds), float(threshold)))
    return changed


def files_in(folder: Path) -> list[str]:
    """Return the game files of a folder, in the order of their names."""
    found = [str(each) for each in sorted(folder.iterdir()) if each.suffix.lower() in READERS and each.is_file()]
    if not found:
        raise FileError(f"{folder} has no game files; they end in one of {', '.join(READERS)}.")
    return found
