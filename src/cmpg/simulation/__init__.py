"""Play a policy: what it brings and costs, how far single episodes stray, and a few of them as a whole.

>>> import numpy as np
>>> from cmpg import scenarios, simulation, solve
>>> game = scenarios.spectrum()
>>> simulation.simulate(game, solve(game).policy, 10_000, rng=np.random.default_rng(1)).agrees
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmpg.lazy import lazy_exports

if TYPE_CHECKING:
    from cmpg.simulation.episodes import Episode as Episode
    from cmpg.simulation.episodes import Estimates as Estimates
    from cmpg.simulation.episodes import Simulation as Simulation
    from cmpg.simulation.episodes import simulate as simulate

__all__, __getattr__, __dir__ = lazy_exports(__name__)
