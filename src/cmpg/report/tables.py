"""Who does what, with which outcome, under which loads: tables of a run that leave the library, and for a terminal.

Rows are mappings from the heads of columns to values, which `formats.py` writes. Words and
units come from the game's legend (`games/names.py`); where it has none, agents, states and actions have their names or
numbers. What is less likely than `FLOOR` is left out.

In a terminal (`decisions_summary`), schedules are strips, one character per step, the higher the likelier; a way is the
likeliest one, and repeated moves are counted; small joint games are tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import occupancy
from cmpg.cmdp.model import CMDP
from cmpg.equilibrium.result import Result
from cmpg.errors import CMPGError, UnsupportedError
from cmpg.files.run_folder import game_of
from cmpg.games.game import Game, Information, Position, SharedResources
from cmpg.games.names import RoadMap
from cmpg.report.formats import Row, frame
from cmpg.scenarios.traffic_assignment import Demand, Roads, assign, optimal_tolls, relative_gap
from cmpg.sizes import require_rules
from cmpg.summaries import MAX_ROWS, Cell, Number, Summary, Table, counted, fixed, shown_of, significant

if TYPE_CHECKING:
    import pandas

    from cmpg.scenarios.traffic_assignment import Assignment

FLOOR = 1e-9
BARS = "·▁▂▃▄▅▆▇█"
SEEN = 0.005  # what is less likely is not shown


def rows_of(result: Result, what: str) -> list[Row]:
    """Return one table of a result, by its name in `TABLES`.

    Examples
    --------
    >>> from cmpg import scenarios, solve
    >>> rows_of(solve(scenarios.counter_example()), "policy")[0]["probability"]
    1.0
    """
    if what not in TABLES:
        raise CMPGError(f"there is no table {what!r}; there are {', '.join(TABLES)}.")
    return list(TABLES[what](result))


def frame_of(result: Result, what: str) -> pandas.DataFrame:
    """Return one table of a result as a pandas DataFrame."""
    return frame(rows_of(result, what))


def _at(result: Result) -> tuple[Game, Position]:
    game = game_of(result)
    return game, game.at(result.policy.floats())


def _schedule(result: Result) -> Iterator[Row]:
    game, position = _at(result)
    names, legend = game.names, game.names.legend
    if game.information is Information.JOINT_STATE:
        yield from _joint_schedule(game, position)
        return
    if legend.need is not None and isinstance(game, SharedResources):
        for name, parts in wholes(game):
            usages = np.stack([game.at(position.policy).usage(i) for i in parts])
            needed = np.sum([_needed(game, position, i) for i in parts], axis=0)
            used = usages[0] if len(parts) == 1 else 1 - np.prod(1 - usages, axis=0)
            for h, e in np.argwhere(used > FLOOR).tolist():
                yield {
                    legend.agent: name,
                    legend.step: names.step(h),
                    legend.resource: game.all_resource_names[e],
                    "probability": float(used[h, e]),
                    # An agent that uses several resources in one step is served by all of them together.
                    f"expected {legend.need.title}": float(needed[h] - needed[h + 1] if e == used[h].argmax() else 0.0),
                }
        return
    for i in range(game.num_agents):
        visits = occupancy(position.induced_cmdp(i), position.policy[i])
        for h, s, a in np.argwhere(visits > FLOOR).tolist():
            yield {
                legend.agent: names.agent(i),
                legend.step: names.step(h),
                legend.state: names.state(i, s),
                **_place(game, i, s),
                "action": names.action(i, a, s),
                "probability": float(visits[h, s, a]),
            }


def _place(game: Game, agent: int, state: int) -> Row:
    """Return where a state is on the map, if states are places."""
    places = game.names.legend.places
    if not places or len(places) != game.policy_shapes[agent][1]:
        return {}
    x, y = places[state]
    return {"x": x, "y": y}


def _plan(result: Result) -> Iterator[Row]:
    """Yield where each agent is at every step of its likeliest way, and after the last."""
    game, position = _at(result)
    if not _place(game, 0, 0):
        raise UnsupportedError(type(game).__name__, "has no plan: its states are no places", "Export the schedule.")
    names, legend = game.names, game.names.legend
    for i in range(game.num_agents):
        way = Itinerary(position.induced_cmdp(i), position.policy[i]).likely_states()
        for h, state in enumerate(way):
            yield {
                legend.agent: names.agent(i),
                "step": h,
                legend.state: names.state(i, state),
                **_place(game, i, state),
            }


def _pilot(result: Result) -> Iterator[Row]:
    """Yield the power of each car in every slot of its likeliest course: what a charger is to allow."""
    game, position = _at(result)
    names, legend = game.names, game.names.legend
    if not legend.sites or not legend.step_seconds or not legend.needs:
        raise UnsupportedError(
            type(game).__name__, "has no pilot signals: it names no chargers and no times", "Export the schedule."
        )
    for name, parts in wholes(game):
        power = np.zeros(len(legend.steps))
        for i in parts:
            states = Itinerary(position.induced_cmdp(i), position.policy[i]).likely_states()
            needs = np.array(legend.needs[legend.needs_of[i]])[states]
            power += legend.load.each * (np.diff(needs) < 0)
        for h, kilowatts in enumerate(power.tolist()):
            yield {
                legend.agent: name,
                "station": legend.sites[parts[0]],
                legend.step: names.step(h),
                "power (kW)": kilowatts,
            }


def _links(result: Result) -> Iterator[Row]:
    """Yield the flow and the travel time of every link; if all meet on a link, with the best flows and their tolls."""
    game, roads, likely, lasts = _road_game(result)
    legend = game.names.legend
    each, minutes = legend.load.each, roads.minutes
    loads = np.arange(len(likely))
    flows = each * np.einsum("m,mhe->he", loads, likely)
    times = np.einsum("m,mhe,me->he", loads, likely, lasts) * each  # of all vehicles together
    best, tolls = (None, None) if not roads.static else _optimum(roads, each)
    for h, e in np.ndindex(flows.shape):
        if not roads.static and flows[h, e] <= FLOOR:
            continue
        tail, head = roads.ends[e]
        mean = times[h, e] / flows[h, e] if flows[h, e] > FLOOR else roads.free_flow_time[e]
        row: Row = {} if roads.static else {legend.step: game.names.step(h)}
        row |= {legend.resource: game.all_resource_names[e], "from": tail, "to": head}
        row |= {"flow (vehicles)": float(flows[h, e]), "travel time (min)": float(mean) * minutes}
        row["free flow time (min)"] = roads.free_flow_time[e] * minutes
        if roads.capacity[e]:
            row |= {"capacity (vehicles)": roads.capacity[e], "volume/capacity": float(flows[h, e] / roads.capacity[e])}
        else:
            row |= {"capacity (vehicles)": None, "volume/capacity": None}
        if best is not None and tolls is not None:
            row |= {"optimal flow (vehicles)": float(best.flows[e]), "toll (min)": float(tolls[e]) * minutes}
        yield row


def _road_game(result: Result) -> tuple[SharedResources, RoadMap, FloatArray, FloatArray]:
    """Return a game on roads, its roads, how likely each load is [n + 1, H, E], and how long links take [n + 1, E]."""
    game = game_of(result)
    roads = game.names.legend.roads
    if roads is None or not isinstance(game, SharedResources):
        raise UnsupportedError(type(game).__name__, "has no links: its resources are no roads", "Export the loads.")
    likely = game.at(result.policy.floats()).load_probabilities()
    flows = np.asarray(game.names.legend.load.each * np.arange(len(likely)), dtype=np.float64)
    return game, roads, likely, Roads.on(roads).times(flows[:, None])


def _optimum(roads: RoadMap, vehicles: float) -> tuple[Assignment, FloatArray]:
    network = Roads.on(roads)
    best = assign(network, Demand.on(roads, vehicles), optimum=True)
    return best, optimal_tolls(network, best)


def _measures(result: Result) -> Iterator[Row]:
    """Yield the numbers by which a field judges a plan."""
    game, position = _at(result)
    legend = game.names.legend

    def row(measure: str, value: float | None, unit: str = "") -> Row:
        return {"measure": measure, "value": value, "unit": unit}

    yield row("total value", float(np.sum(position.values)))
    for j, cost in enumerate(position.costs.tolist()):
        yield row(game.names.constraint(j), cost)
    if legend.need is not None:
        rows, unit = rows_of(result, "outcomes"), f" ({legend.need.unit})" if legend.need.unit else ""
        for what in ("", " missing"):
            total = sum(each[f"{legend.need.name}{what}{unit}"] for each in rows)
            yield row(f"{legend.need.name}{what}", float(total), legend.need.unit)
    if legend.need is not None and isinstance(game, SharedResources):
        together = game.at(position.policy)
        loads = np.sum([together.usage(i) for i in range(game.num_agents)], axis=0)
        yield row(f"highest expected {legend.load.name}", float(legend.load.each * loads.max()), legend.load.unit)
    if legend.goals:
        yield from _arrivals(game, position, row)
    if legend.roads is not None:
        yield from _traffic(result, row)


def _arrivals(game: Game, position: Position, row: Callable[..., Row]) -> Iterator[Row]:
    """Yield when agents with goals arrive: all of them, and together."""
    goals = game.names.legend.goals
    ways = [Itinerary(position.induced_cmdp(i), position.policy[i]) for i in range(game.num_agents)]
    arrived = np.cumsum([way.first_arrivals(goal) for way, goal in zip(ways, goals, strict=True)], axis=1)  # [n, H + 1]
    yield row("arrival share", float(arrived[:, -1].mean()))
    away = [1 - way.visits.sum(axis=-1)[:, goal] for way, goal in zip(ways, goals, strict=True)]
    yield row("sum of costs", float(np.sum(away)), "steps")  # expected steps that are not spent on the goal
    together = np.prod(np.minimum(arrived, 1.0), axis=0)  # agents move independently
    mean = float(np.sum(1 - together[:-1]))
    yield row("makespan", mean, "steps")  # with those that never arrive counted at the horizon
    for share in (0.5, 0.9, 0.99):
        steps = np.flatnonzero(together >= share - 1e-12)
        yield row(f"all arrived ({share:.0%})", int(steps[0]) if len(steps) else None, "step")


def _traffic(result: Result, row: Callable[..., Row]) -> Iterator[Row]:
    """Yield what traffic planners ask for; flows that are best for all, if all that use a link meet on it."""
    game, roads, likely, lasts = _road_game(result)
    each, loads = game.names.legend.load.each, np.arange(len(likely))
    hours = roads.minutes / 60
    total = float(np.einsum("m,mhe,me->", loads, likely, lasts)) * each * hours
    yield row("total travel time", total, "vehicle-hours")
    if not roads.static:
        return
    flows = each * np.einsum("m,mhe->e", loads, likely)
    demand = Demand.on(roads, each)
    yield row("relative gap", relative_gap(Roads.on(roads), demand, flows))
    best, tolls = _optimum(roads, each)
    optimal = best.total_time * roads.minutes / 60
    yield row("total travel time, system optimum", optimal, "vehicle-hours")
    yield row("relative gap of the system optimum", best.relative_gap)
    yield row("total travel time / system optimum", total / optimal)
    yield row("tolls paid at the system optimum", float(tolls @ best.flows) * roads.minutes / 60, "vehicle-hours")


def _joint_schedule(game: Game, position: Position) -> Iterator[Row]:
    names = game.names
    visits = occupancy(position.induced_cmdp(0), position.policy[0]).sum(axis=-1)
    for h, s in np.argwhere(visits > FLOOR).tolist():
        for i in range(game.num_agents):
            for a, chosen in enumerate(position.policy.row(i, h, s).tolist()):
                if chosen > FLOOR:
                    yield {
                        "step": names.step(h),
                        "state": names.state(0, s),
                        "agent": names.agent(i),
                        "action": names.action(i, a, s),
                        "probability": float(visits[h, s]) * chosen,
                    }


def _policy(result: Result) -> Iterator[Row]:
    """Yield every rule with its numbers beside its names: what another program needs to follow the policy."""
    names = game_of(result).names
    require_rules(result.policy.shapes)
    for i, table in enumerate(result.policy.floats()):
        for h, s, a in np.argwhere(table > 0).tolist():
            yield {
                "agent": i,
                "step": h,
                "state": s,
                "action": a,
                "probability": float(table[h, s, a]),
                "agent_name": names.agent(i),
                "step_name": names.step(h),
                "state_name": names.state(i, s),
                "action_name": names.action(i, a, s),
            }


def _outcomes(result: Result) -> Iterator[Row]:
    game, position = _at(result)
    legend = game.names.legend
    own = game.information is Information.OWN_STATE
    for name, parts in wholes(game):
        value = float(sum(position.values[i] for i in parts))
        row: Row = {legend.agent: name, "value": value}
        if own:
            needed = None if legend.need is None else np.sum([_needed(game, position, i) for i in parts], axis=0)
            missing = 0.0 if needed is None else float(needed[-1])
            if legend.value.name != "value":
                row[legend.value.title] = legend.value.each * (value + legend.unpaid * missing) + 0.0
            if legend.need is not None and needed is not None:
                name, unit = legend.need.name, f" ({legend.need.unit})" if legend.need.unit else ""
                row |= {f"{name}{unit}": float(needed[0]) - missing, f"{name} missing{unit}": missing}
            if legend.goals:
                row |= Itinerary(position.induced_cmdp(parts[0]), position.policy[parts[0]]).arrival(
                    legend.goals[parts[0]]
                )
        yield row


def wholes(game: Game) -> list[tuple[str, list[int]]]:
    """Return the agents by what they are parts of, with its name: mostly each agent by itself."""
    names = game.names
    if not names.legend.wholes:
        return [(name, [i]) for i, name in enumerate(names.all_agents(game.num_agents))]
    found: dict[str, list[int]] = {}
    for i, name in enumerate(names.legend.wholes):
        found.setdefault(name, []).append(i)
    return list(found.items())


def _needed(game: Game, position: Position, agent: int) -> FloatArray:
    """Return what an agent is expected to need before each step and after the last: [H + 1]."""
    legend = game.names.legend
    return Itinerary(position.induced_cmdp(agent), position.policy[agent]).means(legend.needs[legend.needs_of[agent]])


def outcomes_table(result: Result) -> Table | None:
    """Return every agent's outcome in units, for a page; None where the game states none."""
    rows = rows_of(result, "outcomes")
    titles = [title for title in rows[0] if title != "value"]
    if len(titles) < 2:
        return None
    body = [(row[titles[0]], *(_number_cell(row[title]) for title in titles[1:])) for row in rows]
    return Table(tuple(titles), tuple(body))


class Itinerary:
    """Where one agent's policy leads in its own problem, with a finite horizon.

    Parameters
    ----------
    cmdp
        The agent's problem.
    policy : [H, S, A]
        What it does.
    """

    def __init__(self, cmdp: CMDP, policy: FloatArray) -> None:
        self._cmdp, self._policy = cmdp, policy
        self.visits = occupancy(cmdp, policy)  # [H, S, A]
        last = len(policy) - 1
        self.final: FloatArray = np.asarray(self.visits[last].ravel() @ cmdp.matrix(last))  # [S], after the last step

    def means(self, amounts: Sequence[float]) -> FloatArray:
        """Return the expected amount before each step and after the last, given the amount in each state: [H + 1]."""
        return np.append(self.visits.sum(axis=-1) @ np.asarray(amounts), self.final @ np.asarray(amounts))

    def first_arrivals(self, goal: int) -> FloatArray:
        """Return the probability that the agent is at the goal for the first time before step h: [H + 1]."""
        found, away = np.zeros(len(self._policy) + 1), np.array(self._cmdp.initial)
        for h, table in enumerate(self._policy):
            found[h], away[goal] = away[goal], 0.0
            away = np.asarray((away[:, None] * table).ravel() @ self._cmdp.matrix(h))
        found[-1] = away[goal]
        return found

    def arrival(self, goal: int) -> Row:
        """Return how likely the agent arrives, and when: mean of those who do, and the steps by which most have."""
        found = self.first_arrivals(goal)
        total, sums = float(found.sum()), np.cumsum(found)
        mean = float(found @ np.arange(len(found)) / total) if total > FLOOR else None
        ends = [(share, np.flatnonzero(sums >= share - 1e-12)) for share in (0.5, 0.9, 0.99)]
        by = {f"arrived by ({share:.0%})": int(steps[0]) if len(steps) else None for share, steps in ends}
        return {"arrives (probability)": min(total, 1.0), "arrival step (mean)": mean, **by}

    def likely(self) -> list[tuple[int, int]]:
        """Return the state and the action of every step on the likeliest way, each step's next the likeliest one."""
        states = self.likely_states()
        return [(state, int(np.argmax(table[state]))) for state, table in zip(states, self._policy, strict=False)]

    def likely_states(self) -> list[int]:
        """Return the states on that way, before each step and after the last: [H + 1]."""
        states = [int(np.argmax(self._cmdp.initial))]
        for h, table in enumerate(self._policy):
            action = int(np.argmax(table[states[-1]]))
            row = self._cmdp.matrix(h)[[states[-1] * table.shape[1] + action]]
            states.append(int(np.argmax(row.toarray() if sp.issparse(row) else row)))
        return states


def _number_cell(number: float | None) -> Cell:
    whole = isinstance(number, int)
    return "–" if number is None else Number(number, str(number)) if whole else fixed(number, 3)


def _loads(result: Result) -> Iterator[Row]:
    game = game_of(result)
    if not isinstance(game, SharedResources):
        raise UnsupportedError(
            type(game).__name__, "has no loads: its agents share no resources", "Export the schedule."
        )
    names, legend = game.names, game.names.legend
    likely = game.at(result.policy.floats()).load_probabilities()
    for h, e in np.ndindex(likely.shape[1:]):
        if likely[0, h, e] > 1 - FLOOR:
            continue
        for m in np.flatnonzero(likely[:, h, e] > FLOOR).tolist():
            amount = {} if legend.load.each == 1.0 else {legend.load.title: legend.load.each * m}
            yield {
                legend.step: names.step(h),
                legend.resource: game.all_resource_names[e],
                "users": m,
                **amount,
                "probability": float(likely[m, h, e]),
            }


def _trace(result: Result) -> Iterator[Row]:
    names = game_of(result).names
    for step in result.trace:
        searched = step.multipliers is not None
        row: Row = {
            "phase": "search" if searched else "ascent",
            "iteration": step.iteration,
            "mover": "" if step.mover is None else names.agent(step.mover),
            "gain": None if np.isnan(step.gain) else float(step.gain),
            "potential": float(step.potential),
            "moves": step.moves,
            "seconds": step.seconds,
        }
        row |= {f"cost: {names.constraint(j)}": float(cost) for j, cost in enumerate(step.costs)}
        prices = np.full(len(step.costs), np.nan) if step.multipliers is None else step.multipliers
        row |= {f"price: {names.constraint(j)}": float(p) if searched else None for j, p in enumerate(prices)}
        yield row


TABLES: dict[str, Callable[[Result], Iterator[Row]]] = {
    "schedule": _schedule,
    "policy": _policy,
    "outcomes": _outcomes,
    "loads": _loads,
    "links": _links,
    "pilot": _pilot,
    "plan": _plan,
    "measures": _measures,
    "trace": _trace,
}
"""Every table by its name."""


def decisions_summary(
    result: Result, *, agent: str | None = None, step: int | None = None, all_rows: bool = False
) -> Summary:
    """Say what all agents do; or one agent at every step, or all agents at one step."""
    game = game_of(result)
    position, steps = game.at(result.policy.floats()), result.policy.shapes[0][0]
    most = None if all_rows else MAX_ROWS
    if step is not None and not 0 <= step < steps:
        raise CMPGError(f"there is no step {step}; they count from 0 to {steps - 1}.")
    message = f"{counted(len(wholes(game)), game.names.legend.agent)}, {counted(steps, game.names.legend.step)}"
    if agent is not None or step is not None:
        agents = range(game.num_agents) if agent is None else [found_agent(game, agent)]
        chosen = range(steps) if step is None else [step]
        return Summary(
            result.status.name, message, (_detail(game, position, agents, chosen, most),), good=result.certified
        )
    if game.information is Information.JOINT_STATE:
        table = _joint_table(game, position, most)
    elif game.names.legend.need is not None and isinstance(game, SharedResources):
        table = _strips(game, result, most)
    else:
        table = _ways(game, position, result, most)
    return Summary(result.status.name, message, (table,), good=result.certified)


def found_agent(game: Game, word: str) -> int:
    """Return the agent of a name, of a name's beginning if there is only one, or of a number."""
    return agent_index(game.names.all_agents(game.num_agents), word)


def agent_index(names: Sequence[str], word: str) -> int:
    """Return which of the names is meant by a name, by the beginning of only one, or by a number.

    Examples
    --------
    >>> agent_index(("car 1 at P-02", "car 10 at P-11"), "car 1")
    0
    """
    if word in names:
        return names.index(word)
    begins = [i for i, name in enumerate(names) if name.startswith(word)]
    whole = [i for i in begins if not names[i][len(word)].isalnum()]  # car 1 is not meant to be car 10
    if len(whole) == 1 or len(begins) == 1:
        return (whole or begins)[0]
    if word.isdecimal() and int(word) < len(names):
        return int(word)
    several = f"{len(begins)} agents begin with {word!r}" if begins else f"there is no agent {word!r}"
    raise CMPGError(f"{several}; give a name such as {names[0]!r}, or a number from 0 to {len(names) - 1}.")


def strip(probabilities: FloatArray) -> str:
    """Return one character per probability, the higher the likelier.

    Examples
    --------
    >>> strip(np.array([0.0, 0.01, 0.5, 1.0]))
    '·▁▄█'
    """
    places = np.where(probabilities < SEEN, 0, np.clip(np.ceil(probabilities * 8 - 1e-9), 1, 8)).astype(int)
    return "".join(BARS[place] for place in places)


def _strips(game: SharedResources, result: Result, most: int | None) -> Table:
    names, legend, position = game.names, game.names.legend, game.at(result.policy.floats())
    outcomes = rows_of(result, "outcomes")
    titles = [title for title in outcomes[0] if title not in (legend.agent, "value")]
    agents = wholes(game)
    rows: list[tuple[Cell, ...]] = []
    for number, (name, parts) in list(enumerate(agents))[:most]:
        # An agent may load several resources at once, and be of several parts: the share of its power.
        usage = np.mean([position.usage(i).max(axis=1) for i in parts], axis=0)
        rows.append((name, strip(usage), *(fixed(outcomes[number][title], 2) for title in titles)))
    apart = max((steps := result.policy.shapes[0][0]) // 4, 1)
    ruler = "".join(names.step(h)[:2].ljust(apart) for h in range(0, steps - 1, apart))[:steps]
    note = shown_of(range(len(rows)), len(agents), f"{legend.agent}s; --all shows every one")
    return Table((legend.agent, ruler, *titles), tuple(rows), note)


def _ways(game: Game, position: Position, result: Result, most: int | None) -> Table:
    names, legend = game.names, game.names.legend
    outcomes = rows_of(result, "outcomes")
    wanted = (legend.value.title, "arrives (probability)", "arrival step (mean)")
    titles = [title for title in outcomes[0] if title in wanted and title != legend.agent]
    shown = list(range(game.num_agents))[:most]
    rows: list[tuple[Cell, ...]] = []
    for i in shown:
        steps = Itinerary(position.induced_cmdp(i), position.policy[i]).likely()
        numbers = [_number_cell(outcomes[i][title]) for title in titles]
        rows.append((names.agent(i), *numbers, _in_words(game, i, steps)))
    note = shown_of(shown, game.num_agents, f"{legend.agent}s; --all shows every one")
    return Table((legend.agent, *titles, "likeliest way"), tuple(rows), note)


def _in_words(game: Game, agent: int, steps: Sequence[tuple[int, int]]) -> str:
    """Say where a way begins, what is done on it, and where it ends; what comes after the goal is left out."""
    names, goals = game.names, game.names.legend.goals
    states = [state for state, _ in steps]
    if goals and goals[agent] in states:
        steps = steps[: states.index(goals[agent])]
    moves = [names.action(agent, action, state) for state, action in steps]
    runs = [(move, len(list(same))) for move, same in groupby(moves)]
    moves = [f"{move} ×{count}" if count > 1 else move for move, count in runs]
    return f"{names.state(agent, states[0])}: {', '.join(moves) or 'stays'}"


def _joint_table(game: Game, position: Position, most: int | None) -> Table:
    """Return the likeliest states of every step, with what each agent does there."""
    names = game.names
    visits = occupancy(position.induced_cmdp(0), position.policy[0]).sum(axis=-1)
    places = [(h, s) for h, s in np.argwhere(visits > SEEN).tolist()]
    places.sort(key=lambda place: (place[0], -visits[place]))
    agents = range(min(game.num_agents, 8))
    rows: list[tuple[Cell, ...]] = []
    for h, s in places[:most]:
        chosen = [_choice(game, i, s, position.policy.row(i, h, s)) for i in agents]
        rows.append((f"{names.step(h)}, {names.state(0, s)}", significant(visits[h, s], 3), *chosen))
    note = shown_of(range(len(rows)), len(places), "likely states; --all shows every one")
    return Table(("step, state", "reached", *(names.agent(i) for i in agents)), tuple(rows), note)


def _choice(game: Game, agent: int, state: int, row: FloatArray) -> str:
    likely = [int(a) for a in np.argsort(-row, kind="stable") if row[a] >= SEEN]
    words = [game.names.action(agent, a, state) for a in likely]
    if len(likely) == 1:
        return words[0]
    return ", ".join(f"{word} {row[a]:.3g}" for word, a in zip(words, likely, strict=True))


def _detail(game: Game, position: Position, agents: Sequence[int], steps: Sequence[int], most: int | None) -> Table:
    """Return where agents are at some steps, and what they do there."""
    names, legend = game.names, game.names.legend
    rows: list[tuple[Cell, ...]] = []
    shared = game.information is Information.JOINT_STATE
    for i in agents:
        visits = occupancy(position.induced_cmdp(0 if shared else i), position.policy[0 if shared else i]).sum(axis=-1)
        for h in steps:
            likely = [int(s) for s in np.argsort(-visits[h], kind="stable") if visits[h, s] >= SEEN]
            for s in likely[:most]:
                chosen = _choice(game, i, s, position.policy.row(i, h, s))
                place = (names.state(i, s), significant(visits[h, s], 3), chosen)
                rows.append((names.agent(i), names.step(h), *place))
    return Table((legend.agent, legend.step, legend.state, "probability", "action"), tuple(rows))
