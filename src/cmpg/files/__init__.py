"""What is kept: games, policies and run folders. What writes a format stands beside what reads it.

Its files are loaded when they are first used: `from cmpg import files`, and then `files.containers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmpg.lazy import lazy_exports

if TYPE_CHECKING:
    from cmpg.files import containers as containers
    from cmpg.files import crowds as crowds
    from cmpg.files import devices as devices
    from cmpg.files import fields as fields
    from cmpg.files import games as games
    from cmpg.files import learning_folder as learning_folder
    from cmpg.files import long_runs as long_runs
    from cmpg.files import plan_folder as plan_folder
    from cmpg.files import policies as policies
    from cmpg.files import policy_tables as policy_tables
    from cmpg.files import records as records
    from cmpg.files import run_folder as run_folder
    from cmpg.files import scenario_file as scenario_file

__all__, __getattr__, __dir__ = lazy_exports(__name__)
