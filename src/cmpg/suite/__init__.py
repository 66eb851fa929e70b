"""A benchmark that others can enter: frozen games, references with certificates, and one judge for all submissions.

>>> from cmpg import suite
>>> len(suite.SUITE) >= 60
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmpg.lazy import lazy_exports

if TYPE_CHECKING:
    from cmpg.suite.games import SUITE as SUITE
    from cmpg.suite.games import VERSION as VERSION
    from cmpg.suite.games import content_digest as content_digest
    from cmpg.suite.games import suite_game as suite_game
    from cmpg.suite.games import suite_games as suite_games
    from cmpg.suite.references import Reference as Reference
    from cmpg.suite.references import reference as reference
    from cmpg.suite.submissions import Submission as Submission
    from cmpg.suite.submissions import SuiteRow as SuiteRow
    from cmpg.suite.submissions import judge_submission as judge_submission

__all__, __getattr__, __dir__ = lazy_exports(__name__)
