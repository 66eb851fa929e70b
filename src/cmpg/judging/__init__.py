"""Judge a policy that was not computed here: what it costs, what each agent could gain, and how good it is.

>>> from cmpg import judging, scenarios
>>> game = scenarios.counter_example()
>>> judging.judge(game, game.uniform_policy()).feasible
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmpg.front_door import front_door

if TYPE_CHECKING:
    from cmpg.judging.judge import judge as judge
    from cmpg.judging.known import Change as Change
    from cmpg.judging.known import Deviation as Deviation
    from cmpg.judging.known import JudgedPolicy as JudgedPolicy
    from cmpg.judging.side_by_side import SideBySide as SideBySide
    from cmpg.judging.side_by_side import judge_side_by_side as judge_side_by_side

__all__, __getattr__, __dir__ = front_door(
    __name__,
    {
        "judge": ("judge",),
        "known": ("Change", "Deviation", "JudgedPolicy"),
        "side_by_side": ("SideBySide", "judge_side_by_side"),
    },
)
