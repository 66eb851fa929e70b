"""One-shot games in Gambit's strategic form, `.nfg`, in and out.

    NFG 1 R "title" { "Ada" "Bo" }
    { { "silent" "send" } { "silent" "send" } }
    ""
    0 0  1 0  0 1  0 0

The numbers are the payoffs of all players, contingency after contingency, the first player's strategy changing fastest;
or, where outcomes are listed before them in braces, the number of the outcome of each contingency, 0 for none.
Strategies may be counted, `{ 2 2 }`, instead of named. Numbers may be fractions, and are read exactly if requested.

The format has no constraints: games with constraints are refused, unless it is said that they go.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np

from cmpg.arrays import is_fraction, rational
from cmpg.errors import FileError, GameError
from cmpg.games.game import Game
from cmpg.games.joint.game import JointGame, as_joint
from cmpg.games.rationals import as_given
from cmpg.interop.long_table import number_text
from cmpg.scenarios.readers.text import FilePath, Line, blaming, check_entries, is_whole, read_lines

MAX_PLAYERS = 28
"""A table has an axis for every player, and arrays have at most 32."""

MAX_STRATEGIES = 100_000
"""A player has at most this many strategies."""

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|(?P<open>".*)|[{}]|[^\s{}",]+')
REST = re.compile(r'(?:[^"\\]|\\.)*"')


def read_nfg(path: FilePath, *, exact: bool = False) -> JointGame:
    """Read a one-shot game without constraints.

    Raises
    ------
    FileError
        With the file and the line: it is not a strategic form, is cut short, or a number cannot be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from cmpg.scenarios import counter_example
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "game.nfg"
    ...     _ = path.write_text(nfg_text(counter_example(), without_constraints=True))
    ...     game = read_nfg(path)
    >>> game.rewards[0, 0, 0], game.num_constraints
    (array([[3., 2.],
           [2., 4.]]), 0)
    """
    words = _Words(path, keep=exact)
    words.expect("NFG")
    words.expect("1")
    words.any_of("R", "D")
    words.text()  # the title
    players = words.texts()
    if len(players) > MAX_PLAYERS:
        raise FileError(f"{path} has {len(players)} players; at most {MAX_PLAYERS} fit into tables over joint actions.")
    names = _strategies(words, len(players))
    sizes = [len(own) for own in names]
    if words.peek().startswith('"'):
        words.text()  # a comment
    outcomes = _outcomes(words, len(players)) if words.peek() == "{" else None
    contingencies = math.prod(sizes)
    check_entries(path, contingencies * (len(players) + 1))
    if outcomes is None:
        payoffs = [words.number() for _ in range(contingencies * len(players))]
        rows = [payoffs[i : i + len(players)] for i in range(0, len(payoffs), len(players))]
    else:
        rows = [outcomes[words.place(len(outcomes))] for _ in range(contingencies)]
    words.end()
    # The first player's strategy changes fastest, so that the axes come out in reverse order.
    table = np.array(rows, dtype=object).reshape(*reversed(sizes), len(players)).T
    with blaming(path):
        return JointGame(
            transition=np.ones((1, 1, *sizes, 1)),
            rewards=(table if words.keep else table.astype(np.float64))[:, None, None],
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
            names.append(tuple(str(number) for number in range(1, 1 + words.place(MAX_STRATEGIES, least=1))))
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


def _words(lines: Iterable[Line]) -> Iterator[tuple[str, Line]]:
    """Yield words with their lines; a text in quotes may go over several, and has the one on which it begins."""
    begun: list[str] = []
    first = Line("", 0, "")
    for line in lines:
        place = 0
        if begun:
            rest = REST.match(line.text)
            if rest is None:
                begun.append(line.text)
                continue
            yield "\n".join([*begun, rest[0]]), first
            begun, place = [], rest.end()
        for match in TOKEN.finditer(line.text, place):
            if match["open"]:
                begun, first = [match[0]], line
                break
            yield match[0], line


class _Words:
    """The words of a file, one after the other, each with its line."""

    def __init__(self, path: FilePath, *, keep: bool) -> None:
        self._path = path
        self.keep = keep  # whether numbers are kept as they are written; they are if one of them is a fraction
        self._words = _words(read_lines(path))
        self._ahead = next(self._words, None)
        self._last = Line(path, 1, "")

    def peek(self) -> str:
        """Return the next word without going on."""
        return "" if self._ahead is None else self._ahead[0]

    def _take(self, wanted: str) -> str:
        if self._ahead is None:
            raise FileError(
                f"{self._path} ends where {wanted} is required; it is no strategic form, or it is cut short."
            )
        word, self._last = self._ahead
        self._ahead = next(self._words, None)
        return word

    def _refuse(self, word: str, required: str) -> FileError:
        return self._last.error(f"{word[:40]!r} stands where {required} is required.")

    def expect(self, text: str) -> None:
        """Go over one word."""
        self.any_of(text)

    def any_of(self, *texts: str) -> None:
        """Go over one of several words."""
        wanted = " or ".join(texts)
        word = self._take(wanted)
        if word not in texts:
            raise self._refuse(word, wanted)

    def text(self) -> str:
        """Read a text in quotes."""
        word = self._take("a text in quotes")
        if not word.startswith('"'):
            raise self._refuse(word, "a text in quotes")
        return re.sub(r"\\(.)", r"\1", word[1:-1])

    def texts(self) -> tuple[str, ...]:
        """Read texts in braces."""
        self.expect("{")
        found = []
        while self.peek() not in ("}", ""):
            found.append(self.text())
        self.expect("}")
        if not found:
            raise self._last.error("the list is empty; at least one player, or one strategy, is required.")
        return tuple(found)

    def number(self) -> Fraction:
        """Read a number that a float can come near to, exactly."""
        word = self._take("a number")
        self.keep |= is_fraction(word)
        try:
            number = rational(word)
            float(number)
        except (ValueError, ZeroDivisionError, OverflowError):
            raise self._refuse(word, "a number") from None
        return number

    def place(self, count: int, least: int = 0) -> int:
        """Read a whole number below a count."""
        word = self._take("a whole number")
        if not is_whole(word) or not least <= int(word) < count:
            raise self._refuse(word, f"a number below {count}")
        return int(word)

    def end(self) -> None:
        """Raise if there is more."""
        if self._ahead is not None:
            word, line = self._ahead
            raise line.error(f"{word[:40]!r} follows after the last number.")


def nfg_text(game: Game, *, without_constraints: bool = False) -> str:
    """Return a one-shot game in Gambit's strategic form.

    Parameters
    ----------
    game
        Joint, with one state and one step.
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
            "the game has constraints, and a strategic form cannot hold them. Drop them with "
            "without_constraints=True (--without-constraints)."
        )
    names = joint.names
    agents = " ".join(_quoted(name) for name in names.all_agents(joint.num_agents))
    each = [names.all_actions(i, count) for i, count in enumerate(joint.num_actions)]
    strategies = " ".join(f"{{ {' '.join(map(_quoted, own))} }}" for own in each)
    lines = [f'NFG 1 R "" {{ {agents} }}', f"{{ {strategies} }}", '""', *_payoff_lines(joint)]
    return "\n".join(lines) + "\n"


def _payoff_lines(game: JointGame) -> Iterator[str]:
    for backwards in itertools.product(*(range(count) for count in reversed(game.num_actions))):
        entry = (0, 0, *reversed(backwards))
        yield " ".join(number_text(payoffs[entry]) for payoffs in as_given(game, "rewards"))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
