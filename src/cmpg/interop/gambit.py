"""One-shot games in Gambit's strategic form, `.nfg`, in and out.

    NFG 1 R "title" { "Ada" "Bo" }
    { { "silent" "send" } { "silent" "send" } }
    ""
    0 0  1 0  0 1  0 0

The numbers are the payoffs of all players, contingency after contingency, the first player's strategy changing fastest;
or, where outcomes are listed before them in braces, the number of the outcome of each contingency, 0 for none.
Strategies may be counted, `{ 2 2 }`, instead of named. Numbers may be fractions, and are read exactly if asked for.

A file has no place for constraints: games with constraints are refused, unless it is said that they go.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cmpg.arrays import rational, to_floats
from cmpg.errors import FileError, GameError
from cmpg.games.contract import Game
from cmpg.games.joint.game import JointGame, as_joint
from cmpg.scenarios.readers.text import FilePath, at_line, read_lines

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]|[^\s{}",]+')


def read_nfg(path: FilePath, *, exact: bool = False) -> JointGame:
    """Read a one-shot game without constraints.

    Raises
    ------
    FileError
        With the file and the line: it is not a strategic form, is cut short, or a number cannot be read.
    """
    words = _Words(path)
    words.expect("NFG")
    words.expect("1")
    words.any_of("R", "D")
    words.text()  # the title
    players = words.texts()
    names = _strategies(words, len(players))
    sizes = [len(own) for own in names]
    if words.peek().startswith('"'):
        words.text()  # a comment
    outcomes = _outcomes(words, len(players)) if words.peek() == "{" else None
    contingencies = math.prod(sizes)
    if outcomes is None:
        payoffs = [words.number() for _ in range(contingencies * len(players))]
        rows = [payoffs[i : i + len(players)] for i in range(0, len(payoffs), len(players))]
    else:
        rows = [outcomes[words.place(len(outcomes))] for _ in range(contingencies)]
    words.end()
    # The first player's strategy changes fastest, so that the axes come out in reverse order.
    table = np.array(rows, dtype=object).reshape(*reversed(sizes), len(players)).T
    return JointGame(
        transition=np.ones((1, 1, *sizes, 1)),
        rewards=(table if exact else table.astype(np.float64))[:, None, None],
        costs=np.zeros((0, 1, 1, *sizes)),
        thresholds=[],
        initial=[1.0],
        horizon=1,
        agent_names=players if len(set(players)) == len(players) else None,
        action_names=names,
    )


def _strategies(words: _Words, players: int) -> tuple[tuple[str, ...], ...]:
    words.expect("{")
    names = []
    for _ in range(players):
        if words.peek() == "{":
            names.append(words.texts())
        else:
            names.append(tuple(str(number) for number in range(1, 1 + words.place(10**6, least=1))))
    words.expect("}")
    return tuple(names)


def _outcomes(words: _Words, players: int) -> list[list[Fraction]]:
    """Read the list of outcomes; the first is the one without payoffs."""
    found = [[Fraction(0)] * players]
    words.expect("{")
    while words.peek() == "{":
        words.expect("{")
        words.text()
        found.append([words.number() for _ in range(players)])
        words.expect("}")
    words.expect("}")
    return found


@dataclass(frozen=True)
class _Word:
    text: str
    line: int


class _Words:
    """The words of a file, one after the other, each with its line."""

    def __init__(self, path: FilePath) -> None:
        self._path = path
        self._words = [_Word(match[0], line.number) for line in read_lines(path) for match in TOKEN.finditer(line.text)]
        self._next = 0

    def peek(self) -> str:
        """Return the next word without going on."""
        return self._words[self._next].text if self._next < len(self._words) else ""

    def _take(self, wanted: str) -> _Word:
        if self._next == len(self._words):
            raise FileError(
                f"{self._path} ends where {wanted} is required; it is no strategic form, or it is cut short."
            )
        self._next += 1
        return self._words[self._next - 1]

    def expect(self, text: str) -> None:
        """Go over one word."""
        self.any_of(text)

    def any_of(self, *texts: str) -> None:
        """Go over one of several words."""
        word = self._take(" or ".join(texts))
        if word.text not in texts:
            raise at_line(self._path, word.line, f"{word.text[:40]!r} stands where {' or '.join(texts)} is required.")

    def text(self) -> str:
        """Read a text in quotes."""
        word = self._take("a text in quotes")
        if not word.text.startswith('"'):
            raise at_line(self._path, word.line, f"{word.text[:40]!r} stands where a text in quotes is required.")
        return re.sub(r"\\(.)", r"\1", word.text[1:-1])

    def texts(self) -> tuple[str, ...]:
        """Read texts in braces."""
        self.expect("{")
        found = []
        while self.peek() not in ("}", ""):
            found.append(self.text())
        self.expect("}")
        if not found:
            raise at_line(self._path, self._words[self._next - 1].line, "there is nobody, or nothing to choose from.")
        return tuple(found)

    def number(self) -> Fraction:
        """Read a number, exactly."""
        word = self._take("a number")
        try:
            return rational(word.text)
        except (ValueError, ZeroDivisionError):
            raise at_line(self._path, word.line, f"{word.text[:40]!r} stands where a number is required.") from None

    def place(self, count: int, least: int = 0) -> int:
        """Read a whole number below a count."""
        word = self._take("a whole number")
        if not word.text.isdigit() or not least <= int(word.text) < count:
            raise at_line(self._path, word.line, f"{word.text[:40]!r} stands where a number below {count} is required.")
        return int(word.text)

    def end(self) -> None:
        """Raise if there is more."""
        if self._next < len(self._words):
            word = self._words[self._next]
            raise at_line(self._path, word.line, f"{word.text[:40]!r} follows after the last number.")


def nfg_text(game: Game, *, title: str = "", without_constraints: bool = False) -> str:
    """Return a one-shot game in Gambit's strategic form.

    Parameters
    ----------
    game
        Joint, with one state and one step.
    title
        For the head.
    without_constraints
        Whether the constraints go; a game with constraints is refused otherwise.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> print(nfg_text(counter_example(), without_constraints=True))
    NFG 1 R "" { "agent 0" "agent 1" }
    { { "1" "2" } { "1" "2" } }
    ""
    3 3
    2 2
    2 2
    4 4
    <BLANKLINE>
    """
    joint = as_joint(game, wanted="has no strategic form")
    if joint.num_states != 1 or joint.horizon != 1:
        raise GameError(
            f"the game has {joint.num_states} states and horizon {joint.horizon}; a strategic form has one of each."
        )
    if joint.num_constraints and not without_constraints:
        raise GameError(
            "the game has constraints, and a strategic form has no place for them. Say that they go: "
            "without_constraints=True (--without-constraints)."
        )
    names = joint.names
    agents = " ".join(_quoted(name) for name in names.all_agents(joint.num_agents))
    each = [names.all_actions(i, count) for i, count in enumerate(joint.num_actions)]
    strategies = " ".join(f"{{ {' '.join(map(_quoted, own))} }}" for own in each)
    lines = [f"NFG 1 R {_quoted(title)} {{ {agents} }}", f"{{ {strategies} }}", '""', *_payoff_lines(joint)]
    return "\n".join(lines) + "\n"


def _payoff_lines(game: JointGame) -> Iterator[str]:
    for backwards in itertools.product(*(range(count) for count in reversed(game.num_actions))):
        entry = (0, 0, *reversed(backwards))
        yield " ".join(_number(payoffs[entry]) for payoffs in game.rewards)


def _number(payoff: Any) -> str:
    """Write a number so that it is read again as the same."""
    if isinstance(payoff, Fraction):
        return str(payoff)
    value = float(to_floats(np.asarray(payoff)))
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
