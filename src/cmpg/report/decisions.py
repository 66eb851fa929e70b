"""Who does what, for a terminal: schedules as strips, likely ways in words, tables of small joint games.

What is shown is the policy's own: how likely an agent is where, and what it does there. A strip has one character per
step, the higher the likelier; a way is the likeliest one, and repeated moves are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import occupancy
from cmpg.equilibrium.result import Result
from cmpg.errors import CMPGError
from cmpg.faces import MOST_ROWS, Cell, Face, Table, counted, fixed, shown_of, significant
from cmpg.files.run_folder import game_of
from cmpg.games.contract import Game, Information, Position, SharedResources, in_floats
from cmpg.report.tables import Way, rows_of

BARS = "·▁▂▃▄▅▆▇█"
SEEN = 0.005
"""What is less likely than this is not told."""


def decisions_face(
    result: Result, *, agent: str | None = None, step: int | None = None, all_rows: bool = False
) -> Face:
    """Say what everybody does; or one agent at every step, or everybody at one step."""
    game = in_floats(game_of(result))
    position, steps = game.at(result.policy.floats()), result.policy.shapes[0][0]
    most = None if all_rows else MOST_ROWS
    if step is not None and not 0 <= step < steps:
        raise CMPGError(f"there is no step {step}; they count from 0 to {steps - 1}.")
    told = f"{counted(game.num_agents, game.names.legend.agent)}, {counted(steps, game.names.legend.step)}"
    if agent is not None or step is not None:
        agents = range(game.num_agents) if agent is None else [found_agent(game, agent)]
        chosen = range(steps) if step is None else [step]
        return Face(result.status.name, told, (_detail(game, position, agents, chosen, most),), good=result.certified)
    if game.information is Information.JOINT_STATE:
        table = _joint_table(game, position, most)
    elif game.names.legend.use is not None and isinstance(game, SharedResources):
        table = _strips(game, result, most)
    else:
        table = _ways(game, position, result, most)
    return Face(result.status.name, told, (table,), good=result.certified)


def found_agent(game: Game, word: str) -> int:
    """Return the agent of a name, of a name's beginning if there is only one, or of a number."""
    names = game.names.all_agents(game.num_agents)
    if word in names:
        return names.index(word)
    begins = [i for i, name in enumerate(names) if name.startswith(word)]
    if len(begins) == 1:
        return begins[0]
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
    shown = list(range(game.num_agents))[:most]
    rows: list[tuple[Cell, ...]] = []
    for i in shown:
        usage = position.usage(i).sum(axis=1)
        rows.append((names.agent(i), strip(usage), *(fixed(outcomes[i][title], 2) for title in titles)))
    steps = result.policy.shapes[0][0]
    ruler = "".join(names.step(h)[:2].ljust(steps // 4) for h in range(0, steps, max(steps // 4, 1)))[:steps]
    note = shown_of(shown, game.num_agents, f"{legend.agent}s; --all shows every one")
    return Table((legend.agent, ruler, *titles), tuple(rows), note)


def _ways(game: Game, position: Position, result: Result, most: int | None) -> Table:
    names, legend = game.names, game.names.legend
    outcomes = rows_of(result, "outcomes")
    wanted = (legend.value.title, "arrives (probability)", "arrival step (mean)")
    titles = [title for title in outcomes[0] if title in wanted and title != legend.agent]
    shown = list(range(game.num_agents))[:most]
    rows: list[tuple[Cell, ...]] = []
    for i in shown:
        steps = Way(position.induced_cmdp(i), position.policy[i]).likely()
        numbers = [significant(np.nan if outcomes[i][title] is None else outcomes[i][title], 4) for title in titles]
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
    told = [f"{move} ×{count}" if count > 1 else move for move, count in _counted(moves)]
    return f"{names.state(agent, states[0])}: {', '.join(told) or 'stays'}"


def _counted(moves: Sequence[str]) -> list[tuple[str, int]]:
    return [(move, len(list(same))) for move, same in groupby(moves)]


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
