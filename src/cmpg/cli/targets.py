"""From the words of a command line to a game and a policy.

A game is a scenario or a file. A scenario's builder has options of its own; `GameCommand` makes them options of the
command, so that they are parsed, suggested, completed and listed in `--help` like the others.
"""

from __future__ import annotations

import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

import cmpg
from cmpg import files
from cmpg.cli.options import FURTHER
from cmpg.errors import CMPGError, FileError, GameError, PolicyError, UnsupportedError
from cmpg.scenarios import SCENARIOS, SPOKEN, Origin, Scenario, scenario, scenario_names

if TYPE_CHECKING:
    from cmpg.arrays import FloatArray
    from cmpg.games.game import Game
    from cmpg.games.joint.game import JointGame
    from cmpg.policy import JointPolicy

Choice = TypeVar("Choice")

MEANINGS = {
    "attendance": "Probability that a car comes at all.",
    "arrival_spread": "Minutes by which arrivals may differ, with probabilities: 0=0.7,30=0.3; by station: P-*: 0=1.",
    "base_load": "What other loads take of the capacity, in kW: a number, one per transformer, or a CSV file.",
    "capacity": "Number of cars a transformer can charge at once.",
    "capacity_kw": "The same in kW: a number, one per transformer, or a CSV file by time of day (from, kw).",
    "columns": "Columns of the session file under other names: arrival=Start,departure=End.",
    "currency": "What prices are in, such as EUR.",
    "cost_at": "When a crowd costs: 'every step' or 'first step'.",
    "day": "Date, such as 2019-06-12; the busiest day if omitted.",
    "departure_spread": "Likewise, of departures.",
    "edges": "Whether robots that trade places collide: true or false.",
    "energy": "Which energy of the session file is planned: delivered or requested.",
    "file": ".dpomdp file of the MADP toolbox; the bundled sample if omitted.",
    "height": "Height of the grid in cells.",
    "horizon": "Number of steps.",
    "initial": "Initial probability of each state, separated by commas.",
    "late": "Penalty for not having arrived at the end.",
    "limit": "Number of platoons a protected link can carry at once.",
    "load_price": "How much each charging car adds to everyone's price.",
    "map": "MovingAI .map file; the bundled sample if omitted.",
    "min_rate": "Smallest rate at which a car can charge, in kW; on or off if omitted.",
    "minutes": "Minutes in a unit of time of the network; 0.6 for Sioux Falls, otherwise 1 if omitted.",
    "mode": "steps: link by link, loads meet per step; static: one choice of a path, for all trips.",
    "network": "TNTP network file; the bundled sample if omitted.",
    "nodes": "TNTP file of the nodes' coordinates, for the picture.",
    "num_agents": "Number of agents.",
    "presence": "Probability that the owner is present if a channel is sensed free, sensed busy.",
    "power": "Power with which a car charges, in kW; by station, P-0*=11;*=6.6.",
    "prices": "Price of an hour of charging in each of the 24 hours, separated by commas.",
    "protected": "Protected links, such as 10-15,15-10; none if omitted, except in Sioux Falls and the sample.",
    "scen": "MovingAI .scen file of starts and goals; random if omitted.",
    "seed": "Random seed.",
    "sessions": "ACN session file (.csv, .json, either also .gz); the bundled sample if omitted.",
    "shortfall": "Penalty for an hour's energy missing at the end; 2, or 6 times the highest price of the tariff.",
    "slot": "Length of a step in minutes: 15, 30 or 60.",
    "success": "Probability that an action succeeds.",
    "target": "Cell x,y where collisions are free.",
    "tariff": "CSV file of prices per kWh by time of day (from, price).",
    "threshold": "Largest expected cost allowed.",
    "timezone": "Where the site is, such as America/Los_Angeles; needed if the file's times are in UTC.",
    "to_busy": "Probability that a free channel becomes busy.",
    "to_free": "Probability that a busy channel becomes free.",
    "to_safe": "Probability that `unsafe` becomes `safe`.",
    "to_unsafe": "Probability that `safe` becomes `unsafe`.",
    "tolls": "Tolls of links in static mode: optimal, or a CSV file (from, to, toll (min)).",
    "transformers": "Stations of each transformer or phase: north=P-01,P-02;south=P-1*;site=north,south, or a CSV.",
    "trips": "TNTP trip table; needs --network.",
    "unsafe_penalty": "What every step in `unsafe` costs each agent.",
    "vehicles": "Number of vehicles in a platoon; 3000 if omitted, 100 in static mode.",
    "waiting": "Cost of waiting for a step.",
    "weights": "Value of each action or channel, separated by commas.",
    "width": "Width of the grid in cells.",
}
"""What the options of the scenarios mean."""

TAKEN = ("start",)
"""Options of scenarios that mean something else on the command line."""

FILES = (".json", ".npz", ".nfg", ".csv")
"""The endings of files that are games; a `.dpomdp` file is one with the options of the scenario `team`."""

TEAM_FILE = ".dpomdp"
PROOF_FILE = ".proof"
"""The ending of a file that is a game and a claim about it; `certify` checks it."""

WITH_FOLDERS = ("sweep", "live")
"""Commands that take a folder where others take a game file."""

HELP_ALL = "--help-all"

ALL_OPTIONS = f"{__name__}.all"
"""Where a command line notes that its help is to list every option."""

LONGEST_DEFAULT = 40
"""Longer defaults, such as 24 prices, are not shown."""


@dataclass(frozen=True)
class Target:
    """What a command line names: a scenario with the options that were given for it, or a game file."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def build(self, *, seed: int | None = None, exact: bool = False) -> Game:
        """Build the scenario, or load the file."""
        if is_proof_file(self.name):
            raise FileError(
                f"{self.name} is a claim about a game, and no game file; `cmpg certify {self.name}` checks it."
            )
        if _is_file(self.name):
            from cmpg.sweeps.game_files import read_game

            return read_game(self.name, exact=exact)

        game = scenario(self.name).build(**self.origin(seed=seed).options)
        if not exact:
            return game
        from cmpg.games.rationals import in_rationals

        try:
            return in_rationals(game)
        except UnsupportedError:
            message = f"{self.name} has no exact mode. Leave --exact out: rounding is bounded in any case."
            raise GameError(message) from None

    def origin(self, *, seed: int | None = None) -> Origin:
        """Return where the game comes from: a name, and the options that differ from the defaults."""
        if _is_file(self.name):
            return Origin(Path(self.name).name, {})
        drawn = {"seed": seed} if seed is not None and "seed" in scenario(self.name).options else {}
        return Origin(self.name, {**self.options, **drawn})


def is_proof_file(word: str) -> bool:
    """Whether a word names a proof file."""
    return Path(word).suffix.lower() == PROOF_FILE


def _is_file(word: str) -> bool:
    """Whether a word names a game file; raise if it looks like one and cannot be."""
    path = Path(word)
    if path.suffix.lower() in FILES or is_proof_file(word):
        return True
    if _is_scenario(word):
        return False
    if path.is_dir():
        raise FileError(f"{word} is a folder; name the game file in it, such as {path / 'game.npz'}.")
    if len(path.parts) > 1 or path.suffix or path.exists():
        endings = ", ".join((*FILES, TEAM_FILE))
        raise FileError(f"{word}: a game file ends in one of {endings}; `cmpg scenarios` lists the scenarios.")
    return False


def _is_scenario(word: str) -> bool:
    """Whether a word names a scenario; other packages are looked through only if it is none of the library's."""
    return word in SCENARIOS or word in scenario_names()


def complete_scenario(incomplete: str) -> list[tuple[str, str]]:
    """Complete the name of a scenario."""
    summaries = {name: SCENARIOS[name].summary if name in SCENARIOS else "plugin" for name in scenario_names()}
    return [(name, summary) for name, summary in summaries.items() if name.startswith(incomplete)]


def complete_game(incomplete: str) -> Iterator[tuple[str, str]]:
    """Complete the name of a scenario, or the path of a game file or of a folder that may hold one."""
    yield from complete_scenario(incomplete)
    folder, slash, beginning = incomplete.rpartition("/")
    for path in sorted(Path(folder + slash).glob("*")):
        if path.name.startswith(beginning) and (beginning or path.name[0] != "."):
            if path.is_dir():
                yield f"{folder}{slash}{path.name}/", "folder"
            elif path.suffix.lower() in (*FILES, TEAM_FILE):
                yield f"{folder}{slash}{path.name}", "file"


GameArgument = Annotated[
    Target,
    typer.Argument(
        metavar="GAME",
        parser=Target,
        autocompletion=complete_game,
        help="A scenario (`cmpg scenarios`), or a game file (.json, …).",
    ),
]


@dataclass(frozen=True)
class _ScenarioOptions:
    """The scenario that a command line names, if any, and its options as parameters of the command."""

    scenario: Scenario | None = None
    parameters: Sequence[Any] = ()


class GameCommand(TyperCommand):
    """A command with a `GameArgument` called `target`, which has the options of the scenario that is named, too."""

    headings: Mapping[str, str]  # of the help, by name of the option

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; those that are for the scenario go to the target."""
        ctx.meta[ALL_OPTIONS] = HELP_ALL in args
        params = super().get_params(ctx)
        named = _named_scenario(args, params, hurried=ctx.resilient_parsing, folders=self.name in WITH_FOLDERS)
        if named is None:
            return super().parse_args(ctx, args)
        own = {name for param in self.params for name in param.opts}
        parameters = _parameters(named, [name for name in listed_options(named) if spoken(name) not in own])
        ctx.meta[__name__] = _ScenarioOptions(named, list(parameters.values()))
        rest = super().parse_args(ctx, args)
        words = {name: ctx.params.pop(param.name, None) for name, param in parameters.items()}
        if str(getattr(ctx.params.get("target"), "name", "")).endswith(TEAM_FILE):
            words["file"] = ctx.params["target"].name
        options = {name: word for name, word in words.items() if word is not None}
        if self.name != "sweep":  # which reads several values in each
            hints = option_types(named.function)
            options = {name: converted(spoken(name), word, hints[name]) for name, word in options.items()}
        ctx.params["target"] = Target(named.name, options)
        return rest

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters of the command, and those of the scenario."""
        return [*super().get_params(ctx), *_listed(ctx).parameters]

    def get_help_option_names(self, ctx: Any) -> list[str]:
        """Return what requests help: `--help-all`, too, if there are options that few need."""
        names = sorted(super().get_help_option_names(ctx))
        return [*names, HELP_ALL] if any(map(is_further, self.params)) else names

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List arguments and options under headings; what few need is counted, unless all options are wanted."""
        listed, everything = _listed(ctx), ctx.meta.get(ALL_OPTIONS)
        further = [] if everything else [param for param in self.params if is_further(param)]
        own = "Output" if "Output" in self.headings.values() else "Options"  # where --help stands, and the count
        sections: dict[str, list[Any]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            if param in listed.parameters:
                heading = f"Options of {listed.scenario and listed.scenario.name}"
            elif param.param_type_name == "argument":
                heading = "Arguments"
            else:
                heading = self.headings.get(param.name, own)
            if param not in further:
                sections.setdefault(heading, []).append(param)
        for heading, params in sections.items():
            if params:
                with formatter.section(heading):
                    # A type such as <Target> tells a reader nothing beside the name of an argument.
                    records = [param.get_help_record(ctx) for param in params]
                    formatter.write_dl([(re.sub(r"^([A-Z.]+) <.*", r"\1", name), text) for name, text in records])
                    if heading == own and further:
                        formatter.write_text(f"{len(further)} more: `{help_words(ctx)}-all` lists them.")


def is_further(param: Any) -> bool:
    """Whether an option of a command is one that few need."""
    return getattr(param, "rich_help_panel", None) == FURTHER


def _listed(ctx: Any) -> _ScenarioOptions:
    return typing.cast(_ScenarioOptions, ctx.meta.get(__name__, _ScenarioOptions()))


def help_words(ctx: Any) -> str:
    """Return the command that tells more."""
    scenario = _listed(ctx).scenario
    return f"{ctx.command_path} {'' if scenario is None else f'{scenario.name} '}--help"


def unknown_option(ctx: Any, option: str) -> str:
    """Say that there is no such option, what was probably meant, or else what there is."""
    known = [name for param in ctx.command.get_params(ctx) for name in param.opts if param.param_type_name == "option"]
    close = get_close_matches(option.strip("-"), [name.strip("-") for name in known], n=1)
    if close:
        return f"there is no option {option}; did you mean --{close[0]}?"
    listed = _listed(ctx)
    if listed.scenario is not None:
        names = ", ".join(param.opts[0] for param in listed.parameters)
        return f"there is no option {option}; those of {listed.scenario.name} are {names}."
    only = "; only scenarios have options of their own" if isinstance(ctx.command, GameCommand) else ""
    return f"there is no option {option}{only}."


def _named_scenario(args: Sequence[str], params: Sequence[Any], *, hurried: bool, folders: bool) -> Scenario | None:
    """Return the scenario that the words name; None for a file, or for none yet.

    A word that is neither is an error, unless the shell is in a hurry to complete it. It comes first, because which
    options there are depends on it.
    """
    words = list(_arguments(args, params))
    if not words:
        return None

    word = next((word for word in words if word in SCENARIOS), words[0])
    if word.endswith(TEAM_FILE):
        return scenario("team")
    if folders and word not in SCENARIOS and Path(word).is_dir():
        return None
    if word not in SCENARIOS and ((hurried and not _is_scenario(word)) or word.endswith(".toml") or _is_file(word)):
        return None
    return scenario(word)


def _arguments(args: Sequence[str], params: Sequence[Any]) -> Iterator[str]:
    """Yield the words that are neither options nor their values, as far as the options are known."""
    known = {name: param for param in params for name in param.opts if param.param_type_name == "option"}
    rest = iter(args)
    for word in rest:
        if word == "--":
            yield from rest
        elif not word.startswith("-"):
            yield word
        elif word in known and not known[word].is_flag:
            next(rest, None)


def _parameters(named: Scenario, names: Sequence[str]) -> dict[str, Any]:
    """Return the options of a scenario as parameters of a command; their values are words."""
    hints = option_types(named.function)

    def function(**_: str) -> None:
        """Stand for the builder."""

    signature = []
    for name in names:
        option = typer.Option(
            spoken(name), metavar=_metavar(hints[name]), help=_meaning(named, name), show_default=False
        )
        # The name of the parameter must not be one of the command's own.
        each = inspect.Parameter(f"scenario_{name}", inspect.Parameter.KEYWORD_ONLY, default=None)
        signature.append(each.replace(annotation=Annotated[str | None, option]))
    function.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in signature}
    app = typer.Typer(add_completion=False)
    app.command()(function)
    made = {param.name: param for param in typer.main.get_command(app).params}
    return {name: made[f"scenario_{name}"] for name in names}


def _meaning(named: Scenario, option: str) -> str:
    """Say what an option means, and its default if there is a short one."""
    default = named.options[option]
    text = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
    if named.plugin is None:
        meaning = MEANINGS.get(option, "")
    else:
        from cmpg.plugins import documented_options

        meaning = documented_options(named.function).get(option, "")
    return meaning if default is None or len(text) > LONGEST_DEFAULT else f"{meaning}  [default: {text}]"


def _metavar(hint: Any) -> str:
    kinds = alternatives(hint)
    if {str, Path, bool} & {*kinds} or typing.get_origin(hint) is typing.Literal:
        return "<text>"
    if any(typing.get_origin(kind) in (Sequence, tuple) for kind in kinds):
        return "<numbers>"
    return "<int>" if int in kinds else "<float>"


def spoken(option: str) -> str:
    """Return what an option of a builder is called on the command line."""
    return f"--{SPOKEN.get(option, option).replace('_', '-')}"


def listed_options(named: Scenario) -> dict[str, str]:
    """Return the options of a scenario that a command line can give, with their meanings."""
    hints = option_types(named.function)
    kinds = {name: alternatives(hints[name]) for name in named.options if name not in TAKEN}
    mappings = {name for name, each in kinds.items() if any(typing.get_origin(kind) is Mapping for kind in each)}
    return {name: _meaning(named, name) for name in kinds if name not in mappings or str in kinds[name]}


def alternatives(hint: Any) -> tuple[Any, ...]:
    """Return the types that a union is of."""
    is_union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    return typing.get_args(hint) if is_union else (hint,)


def converted(option: str, text: str, hint: Any) -> Any:
    """Read a word as the type that the builder declares."""
    kinds = alternatives(hint)
    if typing.get_origin(hint) is typing.Literal:
        return one_of(option.removeprefix("--"), text, typing.get_args(hint))
    if bool in kinds:
        return chosen(option.removeprefix("--"), text, {"true": True, "false": False})
    if str in kinds or Path in kinds:
        return _number(option, text, float) if float in kinds and _is_number(text) else text
    lists = [kind for kind in kinds if typing.get_origin(kind) in (Sequence, tuple)]
    single = next((kind for kind in (int, float) if kind in kinds), None)
    if lists and (single is None or "," in text):
        return tuple(_number(option, part, typing.get_args(lists[0])[0]) for part in text.split(","))
    return _number(option, text, single or float)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _number(option: str, text: str, kind: Any) -> Any:
    try:
        number = kind(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        required = "a whole number" if kind is int else "a number"
        raise CMPGError(f"{option} is {text!r}; {required} is required.")
    return number


def chosen(option: str, value: str, choices: Mapping[str, Choice]) -> Choice:
    """Return what a word stands for, or raise with the words there are."""
    if value not in choices:
        name = option if option.isupper() else f"--{option}"  # an argument, or an option
        raise CMPGError(f"{name} is {value!r}; one of {', '.join(choices)} is required.")
    return choices[value]


def one_of(option: str, value: str, words: Iterable[str]) -> str:
    """Return a word, or raise with those there are."""
    return chosen(option, value, {word: word for word in words})


def finite(option: str, value: float, *, positive: bool = False) -> float:
    """Return a number that a command line gives, or raise if nothing can be computed with it."""
    if not math.isfinite(value) or value < 0 or (positive and value == 0):
        required = "a finite number above 0" if positive else "a finite number of at least 0"
        raise CMPGError(f"--{option} is {value}; {required} is required.")
    return value


def policy_of(path: Path, game: Game, *, exact: bool = False) -> tuple[JointPolicy, FloatArray | None]:
    """Load a policy that fits the game, with its multipliers if the file has them."""
    from cmpg.equilibrium.certificate import check_multipliers

    policy, multipliers = files.policy_tables.read_policy(path, game, exact=exact)
    try:
        return policy, None if multipliers is None else check_multipliers(game, multipliers)
    except PolicyError as problem:
        raise PolicyError(f"{path}: {problem} Is it the policy of another game?") from None


def option_types(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of a function's options; what it returns may be a form that is not loaded yet."""
    options = {name: type(each.default) for name, each in inspect.signature(function).parameters.items()}
    options |= {name: hint for name, hint in function.__annotations__.items() if name != "return"}
    return typing.get_type_hints(types.SimpleNamespace(__annotations__=options), function.__globals__)


def joint_form(game: Game, *, wanted: str) -> JointGame:
    """Return a game with tables over joint states and joint actions, or raise with what was wanted of it."""
    from cmpg.games.joint.game import as_joint

    return as_joint(game.to_joint() if isinstance(game, cmpg.CountingGame) else game, wanted=wanted)
