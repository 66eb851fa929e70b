"""Tables, run folders, plots, the page: the only room that formats.

Its files are loaded when they are first used: `from cmpg import report`, and then `report.animation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmpg.lazy import lazy_exports

if TYPE_CHECKING:
    from cmpg.report import animation as animation
    from cmpg.report import certificates as certificates
    from cmpg.report import charts as charts
    from cmpg.report import comparison as comparison
    from cmpg.report import crowds as crowds
    from cmpg.report import display as display
    from cmpg.report import field_formats as field_formats
    from cmpg.report import formats as formats
    from cmpg.report import judging as judging
    from cmpg.report import learning_page as learning_page
    from cmpg.report import live as live
    from cmpg.report import operation as operation
    from cmpg.report import page as page
    from cmpg.report import plots as plots
    from cmpg.report import recommendations as recommendations
    from cmpg.report import suite as suite
    from cmpg.report import sweep_page as sweep_page
    from cmpg.report import tables as tables
    from cmpg.report import viewer as viewer
    from cmpg.report import wording as wording

__all__, __getattr__, __dir__ = lazy_exports(__name__)
