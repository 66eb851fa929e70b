"""Games out of the box. Each is loaded when it is first used.

>>> "spectrum" in SCENARIOS
True
>>> scenario("grid-world").build(threshold=0.2).thresholds
array([0.2])
"""

from __future__ import annotations

import functools
import importlib
import inspect
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from cmpg.errors import GameError

if TYPE_CHECKING:
    from cmpg.games.game import Game
    from cmpg.plugins import Plugin
    from cmpg.scenarios.car_charging import charging as charging
    from cmpg.scenarios.paper import congestion_game as congestion_game
    from cmpg.scenarios.paper import congestion_game_common_reward as congestion_game_common_reward
    from cmpg.scenarios.paper import congestion_game_exogenous as congestion_game_exogenous
    from cmpg.scenarios.paper import counter_example as counter_example
    from cmpg.scenarios.paper import counting_congestion_game as counting_congestion_game
    from cmpg.scenarios.paper import grid_world as grid_world
    from cmpg.scenarios.paper import grid_world_local as grid_world_local
    from cmpg.scenarios.paper import modified_counter_example as modified_counter_example
    from cmpg.scenarios.platoon_routing import routing as routing
    from cmpg.scenarios.robot_fleet import robots as robots
    from cmpg.scenarios.spectrum_sharing import spectrum as spectrum
    from cmpg.scenarios.team_planning import team as team


@dataclass(frozen=True)
class Origin:
    """Where a game came from: a scenario with options, or a file.

    Examples
    --------
    >>> Origin("charging", {"num_agents": 4})
    Origin(name='charging', options={'num_agents': 4})
    """

    name: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Scenario:
    """A game with a name on the command line.

    Examples
    --------
    >>> spectrum = scenario("spectrum")
    >>> spectrum.summary
    '3 users share 2 radio channels with their owner'
    >>> spectrum.build(num_agents=2).num_agents
    2
    """

    name: str
    summary: str  # one line
    home: str  # module:function, a module of this package with a dot in front
    plugin: Plugin | None = None  # what brings it, if another package does

    @property
    def function(self) -> Callable[..., Game]:
        """What builds the game."""
        if self.plugin is not None:
            return self.plugin.load()
        module, _, name = self.home.partition(":")
        found: Callable[..., Game] = getattr(importlib.import_module(module, __name__), name)
        return found

    @property
    def options(self) -> dict[str, Any]:
        """The options of `build`, with their defaults."""
        return {name: each.default for name, each in inspect.signature(self.function).parameters.items()}

    def option(self, word: str) -> str:
        """Return what `build` calls an option, by either of its names; raise, with the nearest, if there is none.

        Examples
        --------
        >>> scenario("robots").option("agents"), scenario("robots").option("horizon")
        ('num_agents', 'horizon')
        """
        name = next((each for each, spoken in SPOKEN.items() if spoken == word and each in self.options), word)
        if name not in self.options:
            known = [SPOKEN.get(each, each) for each in self.options]
            raise GameError(f"{self.name} has no option {name!r}; {_advice(name, known)}")
        return name

    def build(self, **options: Any) -> Game:
        """Return the game; an option that it does not know is an error with the nearest name."""
        given = self._meant(options)
        if self.plugin is None:
            return self.function(**given)
        game: Game = self.plugin.guarded("cannot be built", self.function, **given)
        if not hasattr(type(game), "policy_shapes"):
            raise self.plugin.error(f"returned a {type(game).__name__}, which is not a game")
        return game

    def _meant(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options by the names that `function` has for them."""
        given: dict[str, Any] = {}
        for word, value in options.items():
            name = self.option(word)
            if name in given:
                raise GameError(f"{self.name} is given {SPOKEN[name]} and {name}, which are the same.")
            given[name] = value
        number = given.get("num_agents")
        if number is not None and (isinstance(number, bool) or not isinstance(number, numbers.Integral)):
            raise GameError(f"agents is {number!r}; the number of agents is required. Names are in `game.names`.")
        return given


SPOKEN = {"num_agents": "agents"}
"""Options that have a shorter name on the command line, on pages and in messages; Python takes both."""


_ALL = (
    Scenario("counter-example", "2 agents, 2 actions, no strong duality (paper, section 4)", ".paper:counter_example"),
    Scenario(
        "modified-counter-example", "2 agents, 2 actions, strong duality (appendix)", ".paper:modified_counter_example"
    ),
    Scenario("grid-world", "2 agents on a 4×4 grid, who see each other and must not collide", ".paper:grid_world"),
    Scenario("congestion", "8 agents, 4 actions; not a potential game, which `check` proves", ".paper:congestion_game"),
    Scenario(
        "congestion-counting",
        "the congestion game for any number of agents, by counts",
        ".paper:counting_congestion_game",
    ),
    Scenario(
        "congestion-common-reward",
        "the congestion game with welfare as a common reward",
        ".paper:congestion_game_common_reward",
    ),
    Scenario(
        "congestion-exogenous",
        "the congestion game with a state that moves by itself",
        ".paper:congestion_game_exogenous",
    ),
    Scenario("grid-world-local", "the grid world, each agent seeing its own cell only", ".paper:grid_world_local"),
    Scenario("charging", "cars under a transformer limit, on a day of charging sessions", ".car_charging:charging"),
    Scenario("robots", "a fleet on a map, with a budget of collisions", ".robot_fleet:robots"),
    Scenario("routing", "platoons in a city with a weak bridge; by steps, or static", ".platoon_routing:routing"),
    Scenario("spectrum", "3 users share 2 radio channels with their owner", ".spectrum_sharing:spectrum"),
    Scenario("team", "agents with one reward, from a .dpomdp file, who see the state", ".team_planning:team"),
)

SCENARIOS: dict[str, Scenario] = {each.name: each for each in _ALL}
"""Every scenario of the library by its name on the command line. To add one, add it to `_ALL`."""

_HOME_OF = {each.home.partition(":")[2]: each for each in _ALL}

__all__ = ["SCENARIOS", "Origin", "Scenario", "scenario", "scenario_names", *_HOME_OF]


def __getattr__(name: str) -> Any:
    """Load the function that builds a game when it is first used."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _with_advice(_HOME_OF[name])


def __dir__() -> list[str]:
    return sorted(__all__)


def _with_advice(named: Scenario) -> Callable[..., Game]:
    """Return what builds a game; an option that it does not have is an error with the nearest name."""

    @functools.wraps(named.function)
    def build(**options: Any) -> Game:
        return named.build(**options)

    return build


def scenario(name: str) -> Scenario:
    """Return the scenario of a name, or raise with the names that there are.

    Examples
    --------
    >>> scenario("grid-world").options["threshold"]
    0.1
    >>> try:
    ...     scenario("grid-word")
    ... except GameError as error:
    ...     print(str(error).partition(";")[0])
    there is no scenario 'grid-word'
    """
    if not isinstance(name, str):
        raise GameError(f"a scenario is named by a word, such as 'charging'; {name!r} is given.")
    if name in SCENARIOS:
        return SCENARIOS[name]
    others = _others()
    if name not in others:
        raise GameError(f"there is no scenario {name!r}; {_advice(name, [*SCENARIOS, *others])}")
    return plugin_scenario(others[name])


def scenario_names() -> list[str]:
    """Return the names of all scenarios: those of the library, then those of other packages.

    Examples
    --------
    >>> scenario_names()[0]
    'counter-example'
    """
    return [*SCENARIOS, *(name for name in _others() if name not in SCENARIOS)]


def plugin_scenario(plugin: Plugin) -> Scenario:
    """Return a scenario of another package, imported to read its first line; names of the library stay its own."""
    if plugin.name in SCENARIOS:
        raise plugin.error("has the name of a scenario of the library, which keeps it")
    summary = (inspect.getdoc(plugin.load()) or "no description").splitlines()[0]
    return Scenario(plugin.name, f"{summary.rstrip('.')} ({plugin.package})", plugin.home, plugin)


def _others() -> dict[str, Plugin]:
    """Look for scenarios of other packages; only where a name is not one of the library's own."""
    from cmpg import plugins  # on use: it reads the entry points of all packages

    return plugins.plugins(plugins.SCENARIOS)


def _advice(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}."
