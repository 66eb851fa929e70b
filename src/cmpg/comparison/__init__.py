"""What others would do: methods without a certificate, before the same judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmpg.lazy import lazy_exports

if TYPE_CHECKING:
    from cmpg.comparison.comparison import CertifiedAscent as CertifiedAscent
    from cmpg.comparison.comparison import GameComparison as GameComparison
    from cmpg.comparison.comparison import compare as compare
    from cmpg.comparison.gradients import IndependentGradient as IndependentGradient
    from cmpg.comparison.gradients import LagrangianGradient as LagrangianGradient
    from cmpg.comparison.gradients import SwitchingGradient as SwitchingGradient
    from cmpg.comparison.methods import COMPARATORS as COMPARATORS
    from cmpg.comparison.methods import JointPlanner as JointPlanner
    from cmpg.comparison.methods import LagrangianDual as LagrangianDual
    from cmpg.comparison.methods import NashCA as NashCA
    from cmpg.comparison.record import Comparator as Comparator
    from cmpg.comparison.record import Comparison as Comparison

__all__, __getattr__, __dir__ = lazy_exports(__name__)
