"""Plan again during the day: within what the plan in force promises, when something new is seen.

>>> from cmpg import operation, scenarios, solve
>>> morning = solve(scenarios.charging(), epsilon=1e-3)
>>> noon = operation.replan(morning, at=12, states={"car 0 at P-01": 0})
>>> noon.result.certified, bool(noon.budget.planned <= noon.budget.promised + 1e-9)
(True, True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmpg.lazy import lazy_exports

if TYPE_CHECKING:
    from cmpg.operation.day import Arrivals as Arrivals
    from cmpg.operation.day import Closure as Closure
    from cmpg.operation.day import ComparedDay as ComparedDay
    from cmpg.operation.day import Fixed as Fixed
    from cmpg.operation.day import Luck as Luck
    from cmpg.operation.day import News as News
    from cmpg.operation.day import OperatedDay as OperatedDay
    from cmpg.operation.day import clairvoyant as clairvoyant
    from cmpg.operation.day import compared_day as compared_day
    from cmpg.operation.day import operate as operate
    from cmpg.operation.plans import AgentChange as AgentChange
    from cmpg.operation.plans import DayBudget as DayBudget
    from cmpg.operation.plans import Replan as Replan
    from cmpg.operation.plans import first_plan as first_plan
    from cmpg.operation.plans import replan as replan

__all__, __getattr__, __dir__ = lazy_exports(__name__)
