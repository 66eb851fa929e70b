"""Where the budget is spent: V^{c_j} of a joint policy, split over steps and places.

In a game on a shared state a place is a state, and the parts are ρ_h(s) · E[c_{j,h}(s, a)]. In a local game the places
are the resources, with parts E[g_j(load of e at step h)], and the agents, with their private costs. The parts of a
constraint add up to its cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import occupancy
from cmpg.games.contract import Game
from cmpg.games.local.game import LocalGame, LocalPosition
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
    """Split the costs of a joint policy.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world
    >>> game = grid_world(horizon=3)
    >>> spent = where_spent(game, game.uniform_policy())
    >>> bool(np.isclose(spent.parts.sum(), game.at(game.uniform_policy()).costs[0]))
    True
    """
    if isinstance(game, LocalGame):
        return _on_resources(game, game.at(policy))
    cmdp = game.at(policy).induced_cmdp(0)
    visits = occupancy(cmdp, policy[0])
    parts = np.einsum("hsa,khsa->khs", visits, np.broadcast_to(cmdp.costs, (len(cmdp.costs), *visits.shape)))
    return Spending(parts, game.names.all_states(0, visits.shape[1]), "state")


def _on_resources(game: LocalGame, position: LocalPosition) -> Spending:
    parts = np.stack([_expected(load_chances(position), costs) for costs in game.load_costs])
    places = game.all_resource_names
    private = [_private_parts(game, position, agent) for agent in range(game.num_agents)]
    known = [agent for agent, costs in enumerate(private) if costs is not None]
    if known:
        own = np.stack([costs for costs in private if costs is not None], axis=2)
        parts = np.concatenate([parts, own], axis=2)
        agents = game.names.all_agents(game.num_agents)
        places = (*places, *(f"{agents[agent]}, private" for agent in known))
    return Spending(parts, places, "resource")


def load_chances(position: LocalPosition) -> FloatArray:
    """Return P(load of e at step h is m), for every resource: [n + 1, H, E]."""
    usages = [position.usage(agent) for agent in range(position.game.num_agents)]
    chances = np.ones((1, *usages[0].shape))
    for used in usages:
        grown = np.zeros((len(chances) + 1, *used.shape))
        grown[:-1] = chances * (1 - used)
        grown[1:] += chances * used
        chances = grown
    return chances


def _expected(chances: FloatArray, costs: FloatArray) -> FloatArray:
    """Return E[g(load)] for a table [H or 1, E, n + 1]: [H, E]."""
    spread = np.broadcast_to(costs, (chances.shape[1], *costs.shape[1:]))
    return np.asarray(np.einsum("mhe,hem->he", chances, spread))


def _private_parts(game: LocalGame, position: LocalPosition, agent: int) -> FloatArray | None:
    """Return what an agent spends by itself at each step, [k, H], or None where that is nothing."""
    member = game.agents[agent]
    if member.costs is None:
        return None
    visits = member.visits(position.policy[agent]).pairs.reshape(game.horizon, member.num_states, member.num_actions)
    costs = np.broadcast_to(member.costs, (game.num_constraints, *visits.shape))
    return np.asarray(np.einsum("hsa,khsa->kh", visits, costs))
