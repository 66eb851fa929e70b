"""From the words of a command line to a game and a policy: scenario names, file names, and the options that a
scenario's builder takes.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from cmpg.arrays import FloatArray
from cmpg.equilibrium.certificate import check_multipliers
from cmpg.errors import CMPGError, FileError, GameError, PolicyError
from cmpg.files.containers import ENDINGS
from cmpg.files.games import load_game
from cmpg.files.policies import load_policy
from cmpg.games.contract import ExactForm, Game
from cmpg.policy import JointPolicy
from cmpg.scenarios import SCENARIOS, Scenario, scenario
from cmpg.scenarios.drawings import Origin

Choice = TypeVar("Choice")

MEANINGS = {
    "capacity": "cars that the transformer bears at a time",
    "cost_at": "when a crowd costs: 'every step' or 'first step'",
    "day": "a date such as 2019-06-12; the busiest one unless given",
    "height": "of the grid, in cells",
    "horizon": "steps",
    "initial": "probabilities of the states at first, parted by commas",
    "late": "what it costs not to have arrived at the end",
    "limit": "platoons that a protected link bears at a time",
    "load_price": "what each car adds to everybody's price",
    "map": "a MovingAI .map file; the sample unless given",
    "network": "a TNTP network file; the sample unless given",
    "num_agents": "number of agents",
    "presence": "chance of the owner on a channel sensed free, sensed busy",
    "prices": "of charging in each of 24 hours, parted by commas",
    "protected": "links such as 10-15,15-10",
    "scen": "a MovingAI .scen file of starts and goals; drawn unless given",
    "seed": "of what is drawn",
    "sessions": "an ACN session file, .csv or .csv.gz; the sample unless given",
    "shortfall": "what a unit costs that is missing at the end",
    "success": "the chance that an action succeeds",
    "target": "a cell x,y on which collisions are free",
    "threshold": "the budget: the largest expected cost",
    "to_busy": "the chance that a free channel becomes busy",
    "to_free": "the chance that a busy channel becomes free",
    "to_safe": "the chance that `unsafe` becomes `safe`",
    "to_unsafe": "the chance that `safe` becomes `unsafe`",
    "trips": "a TNTP trip table, with the network",
    "unit": "what an hour of charging delivers, in kWh",
    "unsafe_penalty": "what every step in `unsafe` takes from each",
    "vehicles": "in a platoon",
    "waiting": "what a step of waiting costs",
    "weights": "what each action or channel is worth, parted by commas",
    "width": "of the grid, in cells",
}
"""What the options of the scenarios mean, in a few words."""

TAKEN = ("start",)
"""Options that mean something else on the command line."""

SPOKEN = {"num_agents": "agents"}
"""Options that have another name on the command line."""


def game_of(target: str, extra: Sequence[str], *, seed: int | None, exact: bool) -> Game:
    """Build the scenario, or load the file, that a command line names."""
    origin = origin_of(target, extra, seed=seed)
    if _is_file(target):
        return load_game(target, exact=exact)
    game = scenario(target).build(**origin.options)
    if not exact:
        return game
    if not isinstance(game, ExactForm):
        raise GameError(f"{target} has no exact mode, as every local game; leave --exact out, and rounding is bounded.")
    return typing.cast(Game, game.exact())


def origin_of(target: str, extra: Sequence[str], *, seed: int | None) -> Origin:
    """Return the name and the options that a command line gives: where its game comes from."""
    if _is_file(target):
        if extra:
            raise CMPGError(f"{extra[0]} is not an option here: a game file has no options of its own.")
        return Origin(Path(target).name, {})
    named = scenario(target)
    given = parse_options(named, extra)
    if seed is not None and "seed" in named.options:
        given["seed"] = seed
    return Origin(named.name, given)


def _is_file(target: str) -> bool:
    path = Path(target)
    if path.suffix.lower() in ENDINGS:
        return True
    if target in SCENARIOS:
        return False
    if path.is_dir():
        raise FileError(f"{target}: is a folder; name the game file in it, such as {path / 'game.npz'}.")
    if len(path.parts) > 1 or path.suffix or path.exists():
        raise FileError(
            f"{target}: a game file ends in {' or '.join(ENDINGS)}; `cmpg scenarios` lists what has a name."
        )
    return False


def policy_of(path: Path, game: Game, *, exact: bool = False) -> tuple[JointPolicy, FloatArray | None]:
    """Load a policy that fits the game, with its multipliers where the file has them."""
    policy, multipliers = load_policy(path, exact=exact)
    try:
        policy.check_fits(game.policy_shapes)
        return policy, None if multipliers is None else check_multipliers(game, multipliers)
    except PolicyError as problem:
        raise PolicyError(f"{path}: {problem} Is it the policy of another game?") from None


def chosen(option: str, value: str, choices: Mapping[str, Choice]) -> Choice:
    """Return what a word stands for, or raise with the words there are."""
    if value not in choices:
        raise CMPGError(f"--{option} is {value!r}; one of {', '.join(choices)} is required.")
    return choices[value]


def finite(option: str, value: float, *, positive: bool = False) -> float:
    """Return a number that a command line gives, or raise where it is none to compute with."""
    if not math.isfinite(value) or value < 0 or (positive and value == 0):
        raise CMPGError(
            f"--{option} is {value}; a {'positive number' if positive else 'number of at least 0'} is required."
        )
    return value


def spoken(option: str) -> str:
    """Return what an option of a builder is called on the command line."""
    return f"--{SPOKEN.get(option, option).replace('_', '-')}"


def listed_options(named: Scenario) -> dict[str, Any]:
    """Return the options of a scenario that a command line can give, with their defaults."""
    hints = typing.get_type_hints(named.function)
    kinds = {name: _alternatives(hints[name]) for name in named.options if name not in TAKEN}
    return {name: named.options[name] for name, each in kinds.items() if not any(_is_mapping(kind) for kind in each)}


def _is_mapping(kind: Any) -> bool:
    return typing.get_origin(kind) is Mapping


def parse_options(named: Scenario, words: Sequence[str]) -> dict[str, Any]:
    """Read `--name value` and `--name=value` as arguments of a scenario's builder."""
    hints = typing.get_type_hints(named.function)
    given: dict[str, Any] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            raise CMPGError(f"{word!r} is not understood; options of {named.name} are written --name value.")
        name, equals, value = word.partition("=")
        keys = {spoken(each): each for each in listed_options(named)}
        if name not in keys:
            raise CMPGError(f"there is no option {name}; those of {named.name} are {', '.join(keys)}. See also --help.")
        if not equals:
            if not rest:
                raise CMPGError(f"{name} needs a value.")
            value = rest.pop(0)
        given[keys[name]] = _converted(name, value, hints[keys[name]])
    return given


def _alternatives(hint: Any) -> tuple[Any, ...]:
    """Return the types that a union is of."""
    is_union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    return typing.get_args(hint) if is_union else (hint,)


def _converted(option: str, text: str, hint: Any) -> Any:
    """Read a word as the type that the builder declares."""
    kinds = _alternatives(hint)
    if typing.get_origin(hint) is typing.Literal:
        return chosen(option.removeprefix("--"), text, {word: word for word in typing.get_args(hint)})
    if str in kinds or Path in kinds:
        return text
    lists = [kind for kind in kinds if typing.get_origin(kind) in (Sequence, tuple)]
    single = next((kind for kind in (int, float) if kind in kinds), None)
    if lists and (single is None or "," in text):
        return tuple(_number(option, part, typing.get_args(lists[0])[0]) for part in text.split(","))
    return _number(option, text, single or float)


def _number(option: str, text: str, kind: Any) -> Any:
    try:
        number = kind(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        required = "a whole number" if kind is int else "a number"
        raise CMPGError(f"{option} is {text!r}; {required} is required.")
    return number
