"""A joint game as one long table, in and out: a line for each number, as people who work with tables like it.

    quantity    step  state  action of Ada  action of Bo  next_state  name     value
    horizon                                                                    2
    threshold                                                         clashes  0.25
    initial           idle                                                     1
    transition        idle   silent         silent        idle                 1
    reward            idle   send           silent                    Ada      1
    cost              idle   send           send                      clashes  1

There is a `horizon` or a `discount`; a `threshold` for each constraint; an `initial` probability for every state, which
gives the states their order. An empty `step` is every step; else steps count from 0. Actions have the order in which
transitions name them. What is not listed is zero. Fractions may stand for numbers, and are read exactly if requested.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import is_fraction, rational
from cmpg.cells import cell, text_of_cell
from cmpg.errors import FileError
from cmpg.games.game import Game
from cmpg.games.joint.game import JointGame, as_joint
from cmpg.games.play import entries
from cmpg.games.rationals import as_given
from cmpg.scenarios.readers.text import FilePath, blaming, check_entries, csv_rows, header_of, is_whole

if TYPE_CHECKING:
    import pandas

QUANTITIES = ("horizon", "discount", "threshold", "initial", "transition", "reward", "cost")
ACTION = "action of "

MAX_AGENTS = 28
"""A table has an axis for every agent, and arrays have at most 32."""

LONGEST_HORIZON = 10**9

Row = Mapping[str, Any]
Places = dict[str, int]
"""Names and their indices."""


def table_rows(game: Game) -> Iterator[dict[str, Any]]:
    """Yield the lines of the table, each with every column; what does not apply is an empty text."""
    joint = as_joint(game, wanted="has no table of joint actions")
    names = joint.names
    agents, constraints = names.all_agents(joint.num_agents), names.all_constraints(joint.num_constraints)
    states = names.all_states(0, joint.num_states)
    actions = [names.all_actions(i, count) for i, count in enumerate(joint.num_actions)]
    columns = ("quantity", "step", "state", *(ACTION + agent for agent in agents), "next_state", "name", "value")

    def row(quantity: str, value: Any, **others: Any) -> dict[str, Any]:
        return dict.fromkeys(columns, "") | {"quantity": quantity, "value": value} | others

    yield row("discount", joint.discount) if joint.horizon is None else row("horizon", joint.horizon)
    for name, threshold in zip(constraints, as_given(joint, "thresholds"), strict=True):
        yield row("threshold", threshold, name=name)
    for name, probability in zip(states, as_given(joint, "initial"), strict=True):
        yield row("initial", probability, state=name)
    entries = list(itertools.product(range(joint.num_states), *map(range, joint.num_actions)))

    def where(entry: tuple[int, ...], h: int, steps: int) -> dict[str, Any]:
        chosen = {ACTION + agents[i]: actions[i][a] for i, a in enumerate(entry[1:])}
        return {"step": "" if steps == 1 else h, "state": states[entry[0]], **chosen}

    for h, matrix in enumerate(as_given(joint, "transition")):
        for number, entry in enumerate(entries):
            for following, probability in _row_of(joint, matrix, entry, number):
                place = where(entry, h, len(joint.transition))
                yield row("transition", probability, **place, next_state=states[following])
    for quantity, tables, owners in (("reward", "rewards", agents), ("cost", "costs", constraints)):
        for name, table in zip(owners, as_given(joint, tables), strict=True):
            for h, entry in itertools.product(range(len(table)), entries):
                if table[(h, *entry)] != 0:
                    yield row(quantity, table[(h, *entry)], **where(entry, h, len(table)), name=name)


def _row_of(game: JointGame, matrix: Any, entry: tuple[int, ...], number: int) -> Iterator[tuple[int, Any]]:
    """Yield the next states and their probabilities, those of probability zero left out."""
    if game.is_sparse:
        columns, probabilities = entries(matrix, number)
        yield from zip(columns.tolist(), probabilities.tolist(), strict=True)
    else:
        yield from ((s, p) for s, p in enumerate(matrix[entry]) if p != 0)


def table_text(game: Game) -> str:
    """Return a joint game as a long table in CSV.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> print(table_text(counter_example()).splitlines()[0])
    quantity,step,state,action of agent 0,action of agent 1,next_state,name,value
    """
    text = io.StringIO()
    rows = table_rows(game)
    first = next(rows)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(first)
    for row in itertools.chain([first], rows):
        writer.writerow([number_text(value) if name == "value" else cell(value) for name, value in row.items()])
    return text.getvalue()


def number_text(value: Any) -> str:
    """Write a number so that it is read again as the same."""
    if isinstance(value, (Fraction, int)):
        return str(value)
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def game_frame(game: Game) -> pandas.DataFrame:
    """Return a joint game as a long pandas table; needs pandas.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> frame = game_frame(counter_example())
    >>> frame.quantity.unique().tolist()
    ['horizon', 'threshold', 'initial', 'transition', 'reward', 'cost']
    """
    import pandas

    frame = pandas.DataFrame(list(table_rows(game)))
    return frame.assign(value=[float(value) for value in frame["value"]])


def read_table(path: FilePath, *, exact: bool = False) -> JointGame:
    """Read a long table in CSV.

    Raises
    ------
    FileError
        With the file and the line: a column is missing, a quantity, a name or a number is not known, or an entry stands
        there twice.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from cmpg.scenarios import counter_example
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "game.csv"
    ...     _ = path.write_text(table_text(counter_example()))
    ...     game = read_table(path)
    >>> game.thresholds, game.rewards[0, 0, 0].tolist()
    (array([0.5]), [[3.0, 2.0], [2.0, 4.0]])
    """
    reader = _Reader(str(path), header_of(path))
    listed = [
        (f"{path}, line {line.number}", {name: text_of_cell(field) for name, field in row.items()})
        for row, line in csv_rows(path, strip=False)
    ]
    with blaming(path):
        return reader.game(listed, exact=exact, check=partial(check_entries, path))


def from_frame(frame: pandas.DataFrame) -> JointGame:
    """Read a long pandas table, as `game_frame` makes it.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> again = from_frame(game_frame(counter_example()))
    >>> bool((again.rewards == counter_example().rewards).all())
    True
    """
    rows = frame.astype(object).where(frame.notna(), "").to_dict("records")
    listed = [(f"the frame, row {number}", row) for number, row in enumerate(rows)]
    return _Reader("the frame", list(frame.columns)).game(listed, exact=False)


SortedRows = dict[str, list[tuple[str, Row]]]  # by quantity; each row with its place in the file


def _by_quantity(listed: list[tuple[str, Row]]) -> SortedRows:
    found: SortedRows = {name: [] for name in QUANTITIES}
    for place, row in listed:
        if str(row["quantity"]) not in found:
            raise FileError(
                f"{place}: quantity is {str(row['quantity'])[:40]!r}; one of {', '.join(QUANTITIES)} is required."
            )
        found[str(row["quantity"])].append((place, row))
    return found


class _Reader:
    """Fills the tables of a game from lines."""

    def __init__(self, source: str, columns: list[str]) -> None:
        self.source = source
        self.agents = [name.removeprefix(ACTION) for name in columns if str(name).startswith(ACTION)]
        missing = [name for name in ("quantity", "step", "state", "next_state", "name", "value") if name not in columns]
        if missing or not self.agents:
            raise FileError(
                f"{source} has the columns {', '.join(map(str, columns)) or 'of no table'}; "
                f"missing: {', '.join(missing) or ACTION + '…'}."
            )
        if len(set(columns)) < len(columns):
            raise FileError(f"{source} has two columns of the same name.")
        if len(self.agents) > MAX_AGENTS:
            raise FileError(
                f"{source} has {len(self.agents)} agents; a table over joint actions has {MAX_AGENTS} at most."
            )
        self.states: Places = {}
        self.constraints: Places = {}
        self.actions: list[Places] = [{} for _ in self.agents]

    def game(
        self, listed: Iterable[tuple[str, Row]], *, exact: bool, check: Callable[[int], None] = lambda _: None
    ) -> JointGame:
        """Build the game, in exact numbers if one of them is written as a fraction."""
        listed = list(listed)
        exact = exact or any(is_fraction(row["value"]) for _, row in listed)
        sorted_rows = _by_quantity(listed)
        self._collect_names(sorted_rows)
        horizon, discount = self._length(sorted_rows)
        kind = object if exact else np.float64
        sizes = (len(self.states), *map(len, self.actions))
        read = [_number(place, row["value"], exact=exact) for place, row in sorted_rows["initial"]]
        limits = [_number(place, row["value"], exact=exact) for place, row in sorted_rows["threshold"]]
        owners = {"transition": sizes[0], "reward": len(self.agents), "cost": len(self.constraints)}
        check(sum(self._steps(sorted_rows[name], horizon) * prod(sizes) * each for name, each in owners.items()))
        agents = {name: place for place, name in enumerate(self.agents)}
        return JointGame(
            transition=self._transition(sorted_rows["transition"], sizes, horizon, exact=exact),
            rewards=self._tables(sorted_rows["reward"], agents, sizes, horizon, exact=exact),
            costs=self._tables(sorted_rows["cost"], self.constraints, sizes, horizon, exact=exact),
            thresholds=np.array(limits, dtype=kind),
            initial=np.array(read, dtype=kind),
            horizon=horizon,
            discount=discount if exact or discount is None else float(discount),
            agent_names=self.agents,
            state_names=list(self.states),
            action_names=[list(own) for own in self.actions],
            constraint_names=list(self.constraints),
        )

    def _collect_names(self, rows: SortedRows) -> None:
        """Learn the names of states, constraints and actions, in the order in which they come."""
        for place, row in rows["initial"]:
            self._add(place, row["state"], self.states)
        for place, row in rows["threshold"]:
            self._add(place, row["name"], self.constraints)
        for _, row in rows["transition"]:
            for agent, known in zip(self.agents, self.actions, strict=True):
                known.setdefault(str(row[ACTION + agent]), len(known))
        if not self.states or not all(self.actions):
            raise FileError(f"{self.source} has no `initial` or no `transition` lines; every game needs both.")

    def _length(self, rows: SortedRows) -> tuple[int | None, Any]:
        """Return horizon and discount, one of which is None."""
        given = [(name, *each) for name in ("horizon", "discount") for each in rows[name]]
        if len(given) != 1:
            raise FileError(f"{self.source} must have exactly one line with a `horizon` or a `discount`.")
        ((unit, place, row),) = given
        length = _number(place, row["value"], exact=True)
        if unit == "discount":
            return None, length
        if length.denominator != 1 or not 1 <= length < LONGEST_HORIZON:
            raise FileError(f"{place}: horizon is {row['value']!r}; a whole number of at least 1 is required.")
        return int(length), None

    def _add(self, place: str, name: Any, known: Places) -> None:
        if str(name) in known:
            raise FileError(f"{place}: {str(name)[:40]!r} is given a second time.")
        known[str(name)] = len(known)

    def _transition(
        self, rows: list[tuple[str, Row]], sizes: tuple[int, ...], horizon: int | None, *, exact: bool
    ) -> Any:
        table = self._empty((*sizes, sizes[0]), self._steps(rows, horizon), exact=exact)
        for place, row in rows:
            entry = (*self._entry(place, row, len(table)), self._place(place, "next_state", row, self.states))
            self._fill(place, table, entry, _number(place, row["value"], exact=exact))
        return table

    def _tables(
        self,
        rows: list[tuple[str, Row]],
        owners: Places,
        sizes: tuple[int, ...],
        horizon: int | None,
        *,
        exact: bool,
    ) -> Any:
        steps = self._steps(rows, horizon)
        table = self._empty((len(owners), steps, *sizes), None, exact=exact)
        for place, row in rows:
            owner = self._place(place, "name", row, owners)
            self._fill(
                place, table, (owner, *self._entry(place, row, steps)), _number(place, row["value"], exact=exact)
            )
        return table

    def _steps(self, rows: list[tuple[str, Row]], horizon: int | None) -> int:
        """Return how long the step axis is: one, or the horizon."""
        given = {str(row["step"]) != "" for _, row in rows}
        if given == {True, False}:
            raise FileError(f"{rows[0][0]}: some {rows[0][1]['quantity']} lines have a step, and some have none.")
        return horizon if given == {True} and horizon is not None else 1

    def _empty(self, shape: tuple[int, ...], steps: int | None, *, exact: bool) -> Any:
        full = shape if steps is None else (steps, *shape)
        return np.full(full, Fraction(0), dtype=object) if exact else np.full(full, 0.0)

    def _entry(self, place: str, row: Row, steps: int) -> tuple[int, ...]:
        step = str(row["step"])
        h = 0 if step == "" else int(whole) if is_whole(whole := step.removesuffix(".0")) else -1
        if not 0 <= h < steps:
            raise FileError(f"{place}: step is {step!r}; a number from 0 to {steps - 1}, or nothing, is required.")
        actions = [
            self._place(place, ACTION + agent, row, own) for agent, own in zip(self.agents, self.actions, strict=True)
        ]
        return (h, self._place(place, "state", row, self.states), *actions)

    def _place(self, place: str, column: str, row: Row, known: Places) -> int:
        if (name := str(row[column])) not in known:
            some = ", ".join(list(known)[:6]) + ", …" * (len(known) > 6)
            raise FileError(f"{place}: {column} is {name[:40]!r}; one of {some} is required.")
        return known[name]

    def _fill(self, place: str, table: Any, entry: tuple[int, ...], value: Any) -> None:
        if table[entry] != 0:
            raise FileError(f"{place}: this entry is given a second time.")
        table[entry] = value


def _number(place: str, text: Any, *, exact: bool) -> Any:
    try:
        number = rational(str(text).strip())
        rounded = float(number)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise FileError(f"{place}: value is {str(text)[:40]!r}; a number is required.") from None
    return number if exact else rounded
