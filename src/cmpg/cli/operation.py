"""`cmpg replan` and `cmpg operate`: new plans during a day, and recorded days event by event.

Exit codes: 0 if every plan is certified, 1 if one is not, 2 for bad input or if there is no plan for a newcomer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

import cmpg
from cmpg import files, operation, report
from cmpg.cli.interrupts import on_interrupt, written
from cmpg.cli.options import Json, check_out, option
from cmpg.cli.output import ProgressLine, remark, show, show_json
from cmpg.cli.targets import GameArgument, chosen, converted, finite, option_types, spoken
from cmpg.errors import CMPGError, NoSuchDayError, UnsupportedError
from cmpg.scenarios import SCENARIOS, Origin, scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cmpg.games.game import Game
    from cmpg.games.local.game import LocalGame
    from cmpg.operation.day import ComparedDay, News

LEFT = "left"
"""This word in a file of observations says that the agent is gone."""


def replan(
    *,
    folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="The plan in force: a folder of `cmpg solve` or `replan`.")
    ],
    at: Annotated[str, option("From when on: a time such as 11:00, or the number of a step.", metavar="<time>")],
    output: Annotated[Path, option("New folder for the new plan.", "--out")],
    observed: Annotated[
        Path | None,
        option("CSV of what was seen: columns agent, state (its name, need or number; left).", metavar="<file>"),
    ] = None,
    change: Annotated[
        list[str] | None,
        option("An option of the scenario that is different now, such as sessions=now.csv.", metavar="<option=value>"),
    ] = None,
    game: Annotated[
        Path | None, option("The game of the whole day as it is known now, instead.", metavar="<file>")
    ] = None,
    close: Annotated[
        list[str] | None, option("A link that is closed from then on, such as 4-7. May be repeated.", metavar="<name>")
    ] = None,
    spent: Annotated[str | None, option("What the day has cost so far, by constraint.", metavar="<numbers>")] = None,
    reserve: Annotated[
        str | None, option("What is kept back beyond the thresholds of the first plan.", metavar="<numbers>")
    ] = None,
    release: Annotated[str | None, option("How much of the reserve this plan may spend.", metavar="<numbers>")] = None,
    epsilon: Annotated[float | None, option("The most any agent may gain by deviating; as before if omitted.")] = None,
    as_json: Json = False,
) -> None:
    """Plan again during the day, within what the old plan promised."""
    check_out(output, resume=False)
    on_interrupt(written(output))
    with ProgressLine("reading the plan in force") as progress:
        plan, run = files.plan_folder.load_plan(folder)
        begin = files.plan_folder.begin_of(run)
        step = _step_of(at, run.game, begin)
        new = _changed(run.origin, change or [], game)
        if close:
            day = run.game if new is None and begin == 0 else new
            new = _closed(_changed(run.origin, [], None, rebuild=True) if day is None else day, close, step)
        seen = _observed(observed, run.game, new) if observed is not None else _Observed()
        progress.begin("planning again")
        made = operation.replan(
            plan,
            at=step,
            states=seen.states,
            game=new,
            left=seen.left,
            spent=_numbers("spent", spent),
            reserve=_numbers("reserve", reserve),
            release=0.0 if release is None else _numbers("release", release),
            epsilon=None if epsilon is None else finite("epsilon", epsilon, positive=True),
        )
    files.plan_folder.save_plan(output, made, before=run)
    for line in seen.remarks:
        remark(line)
    if as_json:
        show_json(report.operation.replan_record(made))
    else:
        show(report.operation.replan_summary(made))
        show(f"written to {output}/; `cmpg report {output}` makes a page of it")
    raise typer.Exit(0 if made.result.accepted else 1)


def _step_of(word: str, game: Game, begin: int, *, option: str = "--at") -> int:
    """Return the step of the day that a time or a number names."""
    steps = game.names.legend.steps
    if word in steps:
        return begin + steps.index(word)
    if word.isdecimal():
        return int(word)
    named = f"a time such as {steps[0]} or {steps[-1]}, or " if steps else ""
    raise CMPGError(f"{option} is {word!r}; {named}the number of a step is required.")


def _numbers(name: str, text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise CMPGError(f"--{name} is {text!r}; numbers separated by commas are required.") from None


def _closed(game: Game | None, links: list[str], step: int) -> Game:
    """Close resources from a step on; a link may be written 4-7."""
    from cmpg.games import LocalGame
    from cmpg.operation import Closure, Fixed

    if not isinstance(game, LocalGame):
        raise UnsupportedError(type(game).__name__, "has nothing to close", "Pass the game as it is now with --game.")
    news: News = Fixed(game)
    for link in links:
        news = Closure(news, _resource(game, link), step)
    closed = news(step, {})
    assert closed is not None
    return closed


def _resource(game: LocalGame, word: str) -> str:
    """Return the name of a resource; a link may be written 4-7."""
    spelt = {name.replace("→", "-"): name for name in game.all_resource_names}
    return spelt.get(word.replace("→", "-"), word)


def _changed(origin: Origin, changes: list[str], game: Path | None, *, rebuild: bool = False) -> Game | None:
    """Build the game of the day as it is known now, or return None if nothing has changed."""
    if game is not None:
        if changes:
            raise CMPGError("--game is the whole game as it is known now; leave --change out.")

        return files.games.load_game(game)
    if not changes and not rebuild:
        return None
    if origin.name not in SCENARIOS:
        raise CMPGError(f"the plan in force is not about a scenario, but {origin.name}; pass the game with --game.")
    named, options = scenario(origin.name), dict(origin.options)
    for each in changes:
        name, found, word = each.partition("=")
        if not found:
            raise CMPGError(f"--change is {each!r}; an option and its value are required, such as sessions=now.csv.")
        option = named.option(name.strip().replace("-", "_"))
        options[option] = converted(spoken(option), word.strip(), option_types(named.function)[option])
    return named.build(**options)


@dataclass(frozen=True)
class _Observed:
    """What a file of observations says."""

    states: dict[Any, int] = field(default_factory=dict)
    left: list[Any] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def _observed(path: Path, game: Game, new: Game | None) -> _Observed:
    """Read agents and states; a need that no state has is taken as the next larger one, and that is said."""
    from cmpg.scenarios.readers.text import csv_rows

    known = {name: (game, i) for i, name in enumerate(game.names.all_agents(game.num_agents))}
    if new is not None:
        known |= {name: (new, i) for i, name in enumerate(new.names.all_agents(new.num_agents)) if name not in known}
    found = _Observed()
    for row, line in csv_rows(path, ("agent", "state")):
        agent, word = row["agent"], row["state"]
        names = tuple(known)[: game.num_agents if agent.isdecimal() else None]  # newcomers have no numbers yet
        try:
            name = names[report.tables.agent_index(names, agent)]
        except CMPGError as error:
            raise line.error(str(error)) from None
        if word == LEFT:
            found.left.append(name)
            continue
        home, index = known[name]
        state, note = _state_of(word, home, index)
        if state is None:
            raise line.error(f"{name} has no state {word!r}; {note}")
        found.states[name] = state
        found.remarks.extend([f"{name}: {word} is taken as {note}"] if note else [])
    return found


def _state_of(word: str, game: Game, agent: int) -> tuple[int | None, str]:
    """Return the state that a word names, and what it was rounded to; None and advice if it names none."""
    legend, count = game.names.legend, game.policy_shapes[agent][1]
    names = game.names.all_states(agent, count)
    if word in names:
        return names.index(word), ""
    try:
        number = float(word)
    except ValueError:
        return None, f"it has {', '.join(names[:3])}{', …' if count > 3 else ''}."
    if legend.needs and legend.need is not None:
        levels = legend.needs[legend.needs_of[agent]]
        larger = [s for s, level in enumerate(levels) if level >= number - 1e-6]
        if number < 0 or not larger:
            return None, f"it needs between 0 and {max(levels):g} {legend.need.unit}."
        state = min(larger, key=lambda s: levels[s])
        exact = abs(levels[state] - number) <= 1e-6
        return state, "" if exact else f"{levels[state]:g} {legend.need.unit}, the next larger need that it can have"
    if number == int(number) and 0 <= number < count:
        return int(number), ""
    return None, f"the number of a state from 0 to {count - 1} is required."


def operate(
    target: GameArgument,
    days: Annotated[int, option("Number of days, from --day on; days without agents are skipped.", least=1)] = 1,
    known: Annotated[
        str, option("When agents become known: arrival, or morning.", words=["arrival", "morning"])
    ] = "arrival",
    reserve: Annotated[
        float,
        option("Share of the thresholds that is kept for newcomers in the morning; it falls to 0 by the evening."),
    ] = 0.5,
    close: Annotated[
        list[str] | None,
        option(
            "A link that an incident closes, and from when on, such as 4-7@08:30 or 4-7@3. May be repeated.",
            metavar="<name@time>",
        ),
    ] = None,
    lifelong: Annotated[bool, option("Robots: who arrives gets a next goal, drawn at random.", "--lifelong")] = False,
    seed: Annotated[int, option("Random seed of what chance decides.", least=0)] = 0,
    epsilon: Annotated[float, option("The most any agent may gain by deviating.")] = 1e-3,
    as_json: Json = False,
) -> None:
    """Replay recorded days, planning again at every event.

    Beside it stand the day-ahead plan, which knows all agents in the morning and is changed only where something is
    closed, and a clairvoyant plan, which also knows what chance decides. With --lifelong there is nothing beside it.
    """
    finite("epsilon", epsilon, positive=True)
    knows_all = chosen("known", known, {"arrival": False, "morning": True})
    if lifelong:
        _operate_tasks(target, days, close, seed=seed, epsilon=epsilon, as_json=as_json)
    done: list[ComparedDay] = []
    with ProgressLine("building the games") as progress:
        for number, (name, game) in enumerate(_recorded_days(target, days), 1):
            progress.begin(f"operating {name}, day {number} of at most {days}")
            done.append(
                operation.compared_day(
                    name,
                    game,
                    knows_all=knows_all,
                    closures=[_closure(word, game) for word in close or []],
                    reserve=reserve,
                    luck=operation.Luck(seed + number),
                    epsilon=epsilon,
                )
            )
    if as_json:
        show_json(report.operation.operated_record(done))
    else:
        show(report.operation.operated_summary(done))
    raise typer.Exit(0 if all(day.certified for day in done) else 1)


def _closure(word: str, game: LocalGame) -> tuple[str, int]:
    """Return the name of a resource and a step."""
    name, found, time = word.rpartition("@")
    if not found:
        raise CMPGError(f"--close is {word!r}; a name and a time are required, such as 4-7@3.")
    step = _step_of(time, game, 0, option="--close")
    if step >= game.horizon:
        raise CMPGError(f"--close is {word!r}; the day has the steps 0 to {game.horizon - 1}.")
    return _resource(game, name), step


def _operate_tasks(
    target: Any, days: int, close: list[str] | None, *, seed: int, epsilon: float, as_json: bool
) -> NoReturn:
    """Operate a fleet whose robots get a next goal when they arrive."""
    from cmpg.scenarios.lifelong import LifelongTasks
    from cmpg.scenarios.robot_fleet import robots_world

    if target.name != "robots" or days > 1 or close:
        raise CMPGError("--lifelong is about one run of robots: `cmpg operate robots --lifelong`, without --close.")
    with ProgressLine("building the games") as progress:
        world_options = {"map", "scen", "num_agents", "seed", "horizon"}
        world = robots_world(**{name: value for name, value in target.options.items() if name in world_options})
        rest = {name: value for name, value in target.options.items() if name not in world_options - {"horizon"}}
        tasks = LifelongTasks(world, **rest, seed=seed)
        game = tasks(0, {})
        progress.begin("operating the fleet")
        done = operation.operate(
            tasks, horizon=game.horizon, thresholds=game.thresholds, luck=operation.Luck(seed + 1), epsilon=epsilon
        )
    if as_json:
        show_json(report.operation.tasks_record(done, tasks.completed))
    else:
        show(report.operation.tasks_summary(done, tasks.completed))
    raise typer.Exit(0 if done.certified else 1)


def _recorded_days(target: Any, days: int) -> Iterator[tuple[str, LocalGame]]:
    """Yield the name and the game of each day; a scenario without days has one."""
    from datetime import date, timedelta

    named = SCENARIOS.get(target.name)
    if named is None or "day" not in named.options:
        if days > 1:
            raise CMPGError(f"{target.name} has no days; leave --days out.")
        yield target.name, _local(target.build())
        return
    first = target.options.get("day")
    if days == 1:
        yield str(first or "the busiest day"), _local(target.build())
        return
    if first is None:
        raise CMPGError("with --days, the first of them is required: --day 2019-06-01.")
    for offset in range(days):
        day = date.fromisoformat(str(first)) + timedelta(days=offset)
        try:
            game = type(target)(target.name, {**target.options, "day": day.isoformat()}).build()
        except NoSuchDayError:
            remark(f"{day}: no agents")
            continue
        yield day.isoformat(), _local(game)


def _local(game: Any) -> cmpg.LocalGame:
    if not isinstance(game, cmpg.LocalGame):
        crowd = (
            " --agents draws a crowd, which is held by groups: leave it out."
            if isinstance(game, cmpg.CrowdGame)
            else ""
        )
        raise UnsupportedError(
            type(game).__name__, "cannot be operated", f"Agents with states of their own are required.{crowd}"
        )
    return game
