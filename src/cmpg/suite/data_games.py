"""Games of the suite that need something from elsewhere: public data files, or an installed package.

No data is shipped. `Recipe.files` names the files, which are looked for in a folder of the user's and one level below
it; the digest of the game says whether they are the ones that the reference was computed for. Delays and rewards are
rounded to multiples of 2⁻²⁴: powers and quotients may differ in their last bits between machines, and these do not.

| games | files | from |
|---|---|---|
| `acn-…` | sessions of a charging site | ACN-Data, exported as CSV |
| `map-…` | grid maps | the MovingAI benchmarks |
| `tntp-…` | networks and trips | Transportation Networks for Research |
| `madp-…` | `.dpomdp` problems, in which all agents see the state | the MADP toolbox |
| `pettingzoo-…` | none: `pip install pettingzoo` | rock, paper, scissors (and lizard, Spock) |
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray, frozen
from cmpg.errors import GameError
from cmpg.games.game import Game
from cmpg.games.local.game import LocalGame
from cmpg.interop.enumeration import from_parallel_env
from cmpg.scenarios import scenario

GRID = 2.0**24
"""Numbers of games from data are multiples of its inverse."""


@dataclass(frozen=True)
class Recipe:
    """How a game is built from files, or from a package."""

    build: Callable[..., Game]  # takes the paths of the files, in order
    files: tuple[str, ...] = ()
    package: str = ""

    def missing(self, data: Path) -> str:
        """Say what is not there; nothing if all is."""
        if self.package and importlib.util.find_spec(self.package) is None:
            return f"the package {self.package} is not installed"
        absent = [name for name in self.files if _found(name, data) is None]
        return f"{', '.join(absent)} not found in {data} or one level below it" if absent else ""

    def game(self, data: Path) -> Game:
        """Build the game from what is in a folder."""
        if missing := self.missing(data):
            raise GameError(f"a game of the suite cannot be built: {missing}.")
        return self.build(*(str(_found(name, data)) for name in self.files))


def _found(name: str, data: Path) -> Path | None:
    return next((path for path in (data / name, *sorted(data.glob(f"*/{name}"))) if path.is_file()), None)


def _rounded(table: Any) -> FloatArray:
    return frozen(np.round(np.asarray(table, dtype=np.float64) * GRID) / GRID)


def _on_grid(game: Game) -> Game:
    """Return a game of agents with states of their own, its payoffs rounded."""
    assert isinstance(game, LocalGame)
    agents = tuple(replace(agent, reward=_rounded(agent.reward)) for agent in game.agents)
    return game.with_trusted(agents=agents, delay=_rounded(game.delay))


def _charging(sessions: str, *, day: str) -> Game:
    return _on_grid(scenario("charging").build(sessions=sessions, day=day, timezone="America/Los_Angeles"))


def _robots(map_file: str, *, horizon: int) -> Game:
    return _on_grid(scenario("robots").build(map=map_file, num_agents=4, horizon=horizon, seed=1))


def _braess(network: str, trips: str) -> Game:
    options: dict[str, Any] = {"num_agents": 6, "horizon": 4, "vehicles": 1, "protected": "3-4", "limit": 2}
    return _on_grid(scenario("routing").build(network=network, trips=trips, **options))


def _sioux_falls(network: str, trips: str, *, num_agents: int) -> Game:
    return _on_grid(scenario("routing").build(network=network, trips=trips, num_agents=num_agents))


def _team(file: str) -> Game:
    return scenario("team").build(file=file, horizon=4)


def _rock_paper_scissors(*, num_actions: int, cycles: int) -> Game:
    from pettingzoo.classic.rps import rps

    env = rps.parallel_env(num_actions=num_actions, max_cycles=cycles)
    return from_parallel_env(env, horizon=cycles).game


def _recipes() -> dict[str, Recipe]:
    found = {}
    for site in ("caltech", "jpl"):
        for day in ("2019-06-12", "2019-07-10"):
            file = f"{site}_2019-05_2019-08.csv.gz"
            found[f"acn-{site}-{day}"] = Recipe(partial(_charging, day=day), (file,))
    for name, horizon in (("8x8", 16), ("empty-32-32", 32), ("random-32-32-10", 32), ("random-32-32-20", 32)):
        found[f"map-{name}"] = Recipe(partial(_robots, horizon=horizon), (f"{name}.map",))
    found["tntp-braess"] = Recipe(_braess, ("Braess_net.tntp", "Braess_trips.tntp"))
    for number in (10, 30):
        files = ("SiouxFalls_net.tntp", "SiouxFalls_trips.tntp")
        found[f"tntp-sioux-falls-{number}"] = Recipe(partial(_sioux_falls, num_agents=number), files)
    for name in (
        "2generals",
        "GridSmall",
        "Mars",
        "boxPushingUAI07",
        "broadcastChannel",
        "dectiger",
        "recycling",
        "relay4",
    ):
        found[f"madp-{name}"] = Recipe(_team, (f"{name}.dpomdp",))
    for actions, cycles in ((3, 1), (3, 2), (5, 1)):
        build = partial(_rock_paper_scissors, num_actions=actions, cycles=cycles)
        found[f"pettingzoo-rps-{actions}-{cycles}"] = Recipe(build, package="pettingzoo")
    return found


RECIPES: Mapping[str, Recipe] = MappingProxyType(_recipes())
"""Games that need data or a package, by name."""
