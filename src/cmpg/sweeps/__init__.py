"""Sweeps: one scenario, many options, every answer certified and kept.

>>> from cmpg import sweeps
>>> found = sweeps.sweep("spectrum", {"threshold": [0.05, 0.1, 0.2]})
>>> [row.status for row in found.rows]
['CERTIFIED', 'CERTIFIED', 'CERTIFIED']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmpg.lazy import lazy_exports

if TYPE_CHECKING:
    from cmpg.sweeps.grid import Grid as Grid
    from cmpg.sweeps.rows import Sweep as Sweep
    from cmpg.sweeps.rows import SweepRow as SweepRow
    from cmpg.sweeps.rows import load_sweep as load_sweep
    from cmpg.sweeps.running import sweep as sweep
    from cmpg.sweeps.worth import SweepCurve as SweepCurve
    from cmpg.sweeps.worth import curves as curves

__all__, __getattr__, __dir__ = lazy_exports(__name__)
