"""The games of the suite: frozen by recipe, named, and known by the digest of their numbers.

Recipes use whole random numbers and their quotients alone, so that the same bits come out on every machine; the digest
says whether they did. A game never changes under its name: a change of the list is a new `VERSION`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.errors import FileError, GameError
from cmpg.files.games import fields_of
from cmpg.games.counting.game import CountingGame
from cmpg.games.game import Game
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.scenarios import scenario
from cmpg.scenarios.paper import counting_congestion_game
from cmpg.suite.data_games import RECIPES

VERSION = 1
"""The list of games has this version; results of different versions are not compared."""

PAPER = ("counter-example", "modified-counter-example", "grid-world", "grid-world-local", "congestion-exogenous")

GENERAL = (50, 51, 52, 53, 54, 56, 60, 64, 67, 68, 69, 72)
"""Seeds of games without a potential in which an equilibrium is known."""

LABELS = ("agents", "states", "actions", "constraints", "resources", "legend", "format", "version")
"""Fields that no number of a game depends on."""


def shares(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Return distributions along the last axis: whole numbers from 0 to 9, divided by their sum."""
    drawn = rng.integers(0, 10, size=shape)
    drawn[..., 0] += drawn.sum(axis=-1) == 0
    return np.asarray(drawn / drawn.sum(axis=-1, keepdims=True))


def tenths(rng: np.random.Generator, shape: tuple[int, ...], most: int = 10) -> FloatArray:
    """Return multiples of 1/16 from 0 to 1, which floats hold exactly."""
    return np.asarray(rng.integers(0, most + 6, size=shape) / 16)


def random_joint(seed: int, *, common: bool) -> JointGame:
    """Return two or three agents in a shared state; with a common reward it is a potential game."""
    rng = np.random.default_rng([VERSION, seed])
    agents, states, actions = 2 + seed % 2, 2 + seed % 3, 2 + (seed // 2) % 2
    horizon = 2 + seed % 4
    joint = (states, *(actions,) * agents)
    one = tenths(rng, (1, 1, *joint))
    rewards = np.repeat(one, agents, axis=0) if common else tenths(rng, (agents, 1, *joint))
    costs = np.where(rng.integers(0, 2, size=(1, 1, *joint)) == 1, tenths(rng, (1, 1, *joint)), 0.0)
    return JointGame(
        transition=shares(rng, (1, *joint, states)),
        rewards=rewards,
        costs=costs,
        thresholds=[horizon / 4],
        initial=shares(rng, (states,)),
        horizon=horizon,
    )


def random_local(seed: int) -> LocalGame:
    """Return two to four agents with states of their own, who meet at shared resources."""
    rng = np.random.default_rng([VERSION, 1_000 + seed])

    def uses() -> FloatArray:
        used = rng.integers(0, 2, size=(1, states, 2, resources)).astype(np.float64)
        used[:, :, 0] = 0.0  # the first action uses nothing, so that every budget can be kept
        return used

    number, states, resources, horizon = 2 + seed % 3, 3 + seed % 2, 2, 3 + seed % 3
    agents = tuple(
        LocalAgent(
            transition=shares(rng, (1, states, 2, states)),
            reward=tenths(rng, (1, states, 2)),
            uses=uses(),
            initial=shares(rng, (states,)),
        )
        for _ in range(number)
    )
    loads = np.arange(number + 1.0)
    delay = np.broadcast_to(loads / 16, (1, resources, number + 1))
    pairs = np.broadcast_to(loads * (loads - 1) / 2, (1, 1, resources, number + 1))
    return LocalGame(agents=agents, delay=delay, load_costs=pairs, thresholds=[horizon / 8], horizon=horizon)


def random_counting(seed: int) -> CountingGame:
    """Return the paper's congestion game with other weights, numbers of agents and thresholds."""
    rng = np.random.default_rng([VERSION, 2_000 + seed])
    weights = rng.integers(1, 16, size=4) / 4
    options: dict[str, Any] = {"num_agents": 3 + seed, "weights": weights, "unsafe_penalty": 4.0 + seed}
    return counting_congestion_game(**options, threshold=(1 + seed % 4) / 4, horizon=2)


def aisle(threshold: float, steps: int) -> JointGame:
    """Return a warehouse aisle as tables: two robots work or charge, and charging together overloads the bay.

    A battery holds up to two units; work takes one and pays 1. The state is both batteries, as an environment with
    PettingZoo's interface would show it.
    """
    transition, rewards = np.zeros((1, 9, 2, 2, 9)), np.zeros((2, 1, 9, 2, 2))
    costs = np.zeros((1, 1, 9, 2, 2))
    costs[..., 1, 1] = 1.0
    for s, a, b in np.ndindex(9, 2, 2):
        after = []
        for i, (units, action) in enumerate(zip(divmod(s, 3), (a, b), strict=True)):
            works = action == 0 and units > 0
            rewards[i, 0, s, a, b] = float(works)
            after.append(min(units + 1, 2) if action else units - works)
        transition[0, s, a, b, 3 * after[0] + after[1]] = 1.0
    initial = np.eye(9)[0]
    return JointGame(
        transition=transition, rewards=rewards, costs=costs, thresholds=[threshold], initial=initial, horizon=steps
    )


def _suite() -> dict[str, Callable[[], Game]]:
    found: dict[str, Callable[[], Game]] = {name: scenario(name).build for name in PAPER}
    found |= {f"spectrum-{limit}": partial(scenario("spectrum").build, threshold=limit) for limit in (0.05, 0.15, 0.25)}
    found |= {f"counter-{limit}": partial(scenario("counter-example").build, threshold=limit) for limit in (0.25, 0.75)}
    found |= {f"joint-common-{seed:02}": partial(random_joint, seed, common=True) for seed in range(14)}
    found |= {f"joint-general-{seed}": partial(random_joint, seed, common=False) for seed in GENERAL}
    found |= {f"local-{seed:02}": partial(random_local, seed) for seed in range(16)}
    found |= {f"counting-{seed}": partial(random_counting, seed) for seed in range(6)}
    found |= {f"aisle-{steps}-{limit}": partial(aisle, limit, steps) for steps in (4, 6) for limit in (0.25, 0.5, 1.0)}
    return found


SUITE: Mapping[str, Callable[[], Game]] = MappingProxyType(_suite())
"""What builds each game that needs nothing from elsewhere, by name."""


def suite_games(data: str | Path | None = None) -> dict[str, Callable[[], Game]]:
    """Return what builds each game, by name: those of `SUITE`, and with a folder of data those that it has files for.

    Parameters
    ----------
    data
        A folder with public data files (`cmpg.suite.data_games`); with it, games of installed packages count as well.

    Examples
    --------
    >>> games = suite_games()
    >>> games["counter-example"]().num_agents
    2
    """
    found = dict(SUITE)
    if data is not None:
        folder = Path(data)
        if not folder.is_dir():
            raise FileError(f"{folder}: there is no such folder.")
        ready = {name: recipe for name, recipe in RECIPES.items() if not recipe.missing(folder)}
        found |= {name: partial(recipe.game, folder) for name, recipe in ready.items()}
    return found


def suite_game(name: str, data: str | Path | None = None) -> Game:
    """Return a game of the suite.

    Examples
    --------
    >>> suite_game("joint-common-00").num_agents
    2
    """
    if name in RECIPES and data is None:
        needed = ", ".join(RECIPES[name].files) or RECIPES[name].package
        raise GameError(f"the game {name} is built from {needed}: say in which folder data are (data, --data).")
    if name in RECIPES:
        return RECIPES[name].game(Path(str(data)))
    if name not in SUITE:
        raise GameError(f"the suite has no game {name!r}; `cmpg suite list` names them.")
    return SUITE[name]()


def content_digest(game: Game) -> str:
    """Return a digest of the numbers of a game, whatever its agents, states and actions are called.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> content_digest(counter_example()) == content_digest(counter_example(threshold=0.4))
    False
    """
    digest = hashlib.sha256()
    for name, value in sorted(fields_of(game).items()):
        if name in LABELS:
            continue
        table = np.asarray(value)
        content = table.tobytes() if table.dtype != object else repr(table.tolist()).encode()
        digest.update(f"{name} {table.shape} ".encode() + content)
    return digest.hexdigest()
