"""Where the costs arise: V^{c_j} of a joint policy, split over steps and places.

In a game on a shared state a place is a state, and the parts are ρ_h(s) · E[c_{j,h}(s, a)]. Where agents meet at
resources, the places are the resources, and the agents with what they spend by themselves. The parts of a constraint
add up to its cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import occupancy
from cmpg.games.contract import Game, Information, SharedResources
from cmpg.policy import JointPolicy


@dataclass(frozen=True, eq=False)
class Spending:
    """The parts of every cost."""

    parts: FloatArray  # [k, H, places]
    places: tuple[str, ...]
    kind: str  # what a place is: "state", "resource"

    @property
    def by_step(self) -> FloatArray:
        """[k, H]."""
        return np.asarray(self.parts.sum(axis=2))

    @property
    def by_place(self) -> FloatArray:
        """[k, places]."""
        return np.asarray(self.parts.sum(axis=1))


def where_spent(game: Game, policy: JointPolicy) -> Spending:
    """Split the costs of a joint policy; agents who see their own states, and name no resources, have no place to show.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world
    >>> game = grid_world(horizon=3)
    >>> spent = where_spent(game, game.uniform_policy())
    >>> bool(np.isclose(spent.parts.sum(), game.at(game.uniform_policy()).costs[0]))
    True
    """
    if isinstance(game, SharedResources):
        position = game.at(policy)
        own = position.agent_costs()
        spenders = np.flatnonzero(own.any(axis=(0, 1)))
        places = (*game.all_resource_names, *(f"{game.names.agent(int(i))}, private" for i in spenders))
        return Spending(np.concatenate([position.resource_costs(), own[:, :, spenders]], axis=2), places, "resource")
    if game.information is Information.OWN_STATE:
        return Spending(np.zeros((len(game.thresholds), policy.shapes[0][0], 0)), (), "state")
    cmdp = game.at(policy).induced_cmdp(0)
    visits = occupancy(cmdp, policy[0])
    parts = np.einsum("hsa,khsa->khs", visits, np.broadcast_to(cmdp.costs, (len(cmdp.costs), *visits.shape)))
    return Spending(parts, game.names.all_states(0, visits.shape[1]), "state")
