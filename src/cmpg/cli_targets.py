"""From the words of a command line to a game: scenario names, file names, and the options that a scenario's builder
takes.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from cmpg.checks import CMPGError
from cmpg.equilibrium.certificate import ExactForm
from cmpg.games.contract import Game
from cmpg.games.files import load_game
from cmpg.report.drawings import Origin
from cmpg.scenarios import Scenario, scenario

Choice = TypeVar("Choice")


def game_of(target: str, extra: Sequence[str], *, seed: int | None, exact: bool) -> Game:
    """Build the scenario, or load the file, that a command line names."""
    origin = origin_of(target, extra, seed=seed)
    if _is_file(target):
        return load_game(target, exact=exact)
    game = scenario(target).build(**origin.options)
    return game.exact() if exact and isinstance(game, ExactForm) else game


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
    return Path(target).suffix in (".json", ".npz")


def chosen(option: str, value: str, choices: Mapping[str, Choice]) -> Choice:
    """Return what a word stands for, or raise with the words there are."""
    if value not in choices:
        raise CMPGError(f"--{option} is {value!r}; one of {', '.join(choices)} is required.")
    return choices[value]


def parse_options(named: Scenario, words: Sequence[str]) -> dict[str, Any]:
    """Read `--name value` and `--name=value` as arguments of a scenario's builder."""
    hints = typing.get_type_hints(named.function)
    given: dict[str, Any] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, _, value = word.removeprefix("--").partition("=")
        key = name.replace("-", "_")
        if not word.startswith("--"):
            raise CMPGError(f"{word!r} is not understood; options of {named.name} are written --name value.")
        named.check_option(key)
        if "=" not in word:
            if not rest:
                raise CMPGError(f"{word} needs a value.")
            value = rest.pop(0)
        given[key] = _converted(word, value, hints.get(key, str))
    return given


def _converted(word: str, text: str, hint: Any) -> Any:
    """Read a word as the type that the builder declares."""
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) or typing.get_origin(hint) else (hint,)
    for kind in (int, float, bool):
        if kind in kinds:
            try:
                return _boolean(text) if kind is bool else kind(text)
            except ValueError:
                if not {str, Path} & set(kinds):
                    raise CMPGError(f"{word.split('=')[0]} is {text!r}; a {kind.__name__} is required.") from None
    return Path(text) if Path in kinds else text


def _boolean(text: str) -> bool:
    if text.lower() not in ("yes", "no", "true", "false"):
        raise ValueError(text)
    return text.lower() in ("yes", "true")
