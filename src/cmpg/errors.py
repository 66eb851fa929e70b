"""Every error that this library raises on purpose.

A message gives coordinates, what was found, what is required, and what to do about it.
"""

from __future__ import annotations


class CMPGError(Exception):
    """The root of every error that this library raises on purpose."""


class GameError(CMPGError):
    """A game, or a CMDP, is not well formed."""


class PolicyError(CMPGError):
    """A policy is not well formed, or does not fit the game."""


class InfeasibleError(CMPGError):
    """A policy was required to meet the constraints, and does not."""


class SolverError(CMPGError):
    """A numerical method did not deliver what it must."""


class FileError(CMPGError):
    """A file is missing, truncated, forged, or of another kind."""
