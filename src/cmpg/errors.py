"""Every error that this library raises on purpose.

A message gives coordinates, what was found, what is required, and what to do about it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class CMPGError(Exception):
    """The root of every error that this library raises on purpose."""


class GameError(CMPGError):
    """A game, or a CMDP, is not well formed."""


class UnsupportedError(GameError):
    """A form of game cannot do what is asked of it; the message says which form can, or what to do instead."""

    def __init__(self, form: str, wanted: str, advice: str) -> None:
        super().__init__(f"a {form} {wanted}. {advice}")
        self.form, self.wanted = form, wanted


class TooLargeError(GameError):
    """Something would need more memory, or more time, than there is; the message says how much, and what to do."""


class PolicyError(CMPGError):
    """A policy is not well formed, or does not fit the game."""


class InfeasibleError(CMPGError):
    """A policy was required to meet the constraints, and does not.

    If no policy does, `multipliers` λ ≥ 0 [k] prove it: every policy has V^{λ·c} > λ·α.
    """

    def __init__(self, message: str, *, multipliers: npt.NDArray[np.float64] | None = None) -> None:
        super().__init__(message)
        self.multipliers = multipliers


class StartError(InfeasibleError):
    """A start of a learner does not meet the constraints.

    `result` is the LearnResult so far where the run had begun, and None where it had not.
    """

    result: Any = None


class SolverError(CMPGError):
    """A numerical method did not deliver what it must."""


class OutOfTimeError(CMPGError):
    """A time limit was reached in the middle of a computation."""


class FileError(CMPGError):
    """A file is missing, truncated, forged, or of another kind."""


class NoSuchDayError(FileError):
    """A file of many days has nothing on the day that was wanted."""


class PluginError(CMPGError):
    """What another package brings by an entry point cannot be used."""


class SimulatorError(CMPGError):
    """A simulator was asked for something that it cannot do, or an environment answered wrongly.

    `samples` are what had been drawn for the same purpose before, where anything had; `result` is the LearnResult so
    far, where `learn` or `learn_shared` was at work.
    """

    samples: Any = None
    result: Any = None


class BudgetError(CMPGError):
    """More samples, or more work, would be needed than is allowed; nothing of it was drawn."""


class WorkerError(CMPGError):
    """Workers died again and again; `missing` are the places of the tasks that are not done."""

    def __init__(self, message: str, *, missing: tuple[int, ...]) -> None:
        super().__init__(message)
        self.missing = missing
