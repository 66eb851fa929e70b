"""Many runs: one runner for restarts, sweeps, seeds and comparisons, on one machine or a cluster.

>>> from cmpg import runs
>>> dict(runs.run_tasks(abs, [-1, -2], jobs=runs.Jobs(2, backend="threads")))[1]
2
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmpg.lazy import lazy_exports

if TYPE_CHECKING:
    from cmpg.runs.runner import Jobs as Jobs
    from cmpg.runs.runner import run_tasks as run_tasks

__all__, __getattr__, __dir__ = lazy_exports(__name__)
