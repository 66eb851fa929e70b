"""Games out of the box.

>>> "spectrum" in SCENARIOS
True
>>> scenario("grid-world").build(threshold=0.2).thresholds
array([0.2])
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from cmpg.errors import GameError
from cmpg.games.contract import Game
from cmpg.scenarios.charging import charging
from cmpg.scenarios.paper import (
    congestion_game,
    congestion_game_common_reward,
    congestion_game_exogenous,
    counter_example,
    counting_congestion_game,
    grid_world,
    grid_world_local,
    modified_counter_example,
)
from cmpg.scenarios.robots import robots
from cmpg.scenarios.routing import routing
from cmpg.scenarios.spectrum import spectrum


@dataclass(frozen=True)
class Scenario:
    """A game with a name on the command line."""

    name: str
    summary: str  # one line
    function: Callable[..., Game]

    @property
    def options(self) -> dict[str, Any]:
        """The options of `build`, with their defaults."""
        return {name: each.default for name, each in inspect.signature(self.function).parameters.items()}

    def check_option(self, name: str) -> None:
        """Raise, with the nearest names, unless `build` has this option."""
        if name not in self.options:
            raise GameError(f"{self.name} has no option {name!r}; {_advice(name, list(self.options))}")

    def build(self, **options: Any) -> Game:
        """Return the game; an option that it does not know is an error."""
        for name in options:
            self.check_option(name)
        return self.function(**options)


_ALL = (
    Scenario("counter-example", "2 agents, 2 actions, no strong duality (paper, section 4)", counter_example),
    Scenario("modified-counter-example", "2 agents, 2 actions, strong duality (appendix)", modified_counter_example),
    Scenario("grid-world", "2 agents on a 4×4 grid, who see each other and must not collide", grid_world),
    Scenario("congestion", "8 agents, 4 actions; not a potential game, which `check` proves", congestion_game),
    Scenario("congestion-counting", "the same for any number of agents, by counts", counting_congestion_game),
    Scenario("congestion-common-reward", "the same with the welfare as common reward", congestion_game_common_reward),
    Scenario("congestion-exogenous", "the same with a state that moves by itself", congestion_game_exogenous),
    Scenario("grid-world-local", "the grid world, with policies that see the own cell only", grid_world_local),
    Scenario("charging", "cars under a transformer limit, on a day of charging sessions", charging),
    Scenario("robots", "a fleet on a map that may be late, with a budget of collisions", robots),
    Scenario("routing", "platoons in a city with a weak bridge", routing),
    Scenario("spectrum", "3 users share 2 radio channels with their owner", spectrum),
)

SCENARIOS: dict[str, Scenario] = {each.name: each for each in _ALL}
"""Every scenario by its name on the command line. To add one, add a line to `_ALL`."""


def scenario(name: str) -> Scenario:
    """Return the scenario of a name, or raise with the names that there are."""
    if name not in SCENARIOS:
        raise GameError(f"there is no scenario {name!r}; {_advice(name, list(SCENARIOS))}")
    return SCENARIOS[name]


def _advice(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}."
