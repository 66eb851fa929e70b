"""Why not Lagrange? The dual function, its maximisers, and the best feasible policy with a proof."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmpg.lazy import lazy_exports

if TYPE_CHECKING:
    from cmpg.duality.analysis import DualityReport as DualityReport
    from cmpg.duality.analysis import StrongDuality as StrongDuality
    from cmpg.duality.analysis import analyse_duality as analyse_duality
    from cmpg.duality.dual_function import DualValue as DualValue
    from cmpg.duality.dual_function import dual_function as dual_function
    from cmpg.duality.dual_function import dual_value as dual_value
    from cmpg.duality.dual_function import lagrangian as lagrangian
    from cmpg.duality.dual_function import penalised_game as penalised_game
    from cmpg.duality.dual_function import primal_value as primal_value
    from cmpg.duality.gap import DualityGap as DualityGap
    from cmpg.duality.gap import dual_function_bounds as dual_function_bounds
    from cmpg.duality.gap import duality_gap as duality_gap
    from cmpg.duality.gap import penalised_local_game as penalised_local_game
    from cmpg.duality.maximisers import DualMaximisers as DualMaximisers
    from cmpg.duality.maximisers import dual_maximisers as dual_maximisers
    from cmpg.equilibrium.branch_and_bound import PrimalBound as PrimalBound
    from cmpg.equilibrium.branch_and_bound import best_product_policy as best_product_policy

__all__, __getattr__, __dir__ = lazy_exports(__name__)
