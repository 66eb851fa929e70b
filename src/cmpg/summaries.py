"""What an object looks like: a sentence, lines and tables, shown alike in a terminal, a notebook and on a page.

An object with a summary has a method `summary() -> Summary`, and three names that read it:

    __repr__, __str__, _repr_html_ = line, text, html

`line` is one line, whatever the object holds; `text` and `html` show the same words and numbers. Names may come from
files, so every character that could steer a terminal is written as its escape, and HTML is quoted.
"""

from __future__ import annotations

import math
import re
import reprlib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import Enum
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # the command speaks before numpy is loaded
    from cmpg.arrays import FloatArray

MAX_ROWS = 12
"""A table of more agents or constraints than this shows those that matter most, and says so."""

MAX_NAME_WIDTH = 26
"""A name that is wider than this is cut short in a terminal."""

MAX_LINE = 160
"""A line of `repr` has at most this many characters."""

LONG_WORDS = 24
"""A cell with more characters than this is broken into lines on a page."""

LARGE = 1e7
"""From here on the decimals of a number say nothing, and its order says all."""

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Number:
    """A number as it is, and as it is shown."""

    value: float
    text: str


Cell = str | Number


@dataclass(frozen=True)
class Table:
    """Rows with a name each, and a note below them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Summary:
    """A sentence that begins with its most important word, and lines and tables below it."""

    word: str
    sentence: str = ""
    parts: tuple[str | Table, ...] = ()
    good: bool | None = None  # None where there is nothing to praise or to warn of

    @property
    def headline(self) -> str:
        """The word and the sentence."""
        return f"{self.word}: {self.sentence}" if self.sentence else self.word


class HasSummary(Protocol):
    """What can be shown."""

    def summary(self) -> Summary:
        """Return what to show."""


def line(thing: HasSummary) -> str:
    """Return an object as one line: its kind, and the headline of its summary."""
    return headline_line(type(thing).__name__, thing.summary())


def headline_line(kind: str, summary: Summary) -> str:
    """Return the headline of a summary as one line, behind the kind of what it belongs to."""
    return _cut(f"<{kind} {plain(summary.headline)}", MAX_LINE - 1) + ">"


def text(thing: HasSummary) -> str:
    """Return an object as lines of text."""
    return summary_text(thing.summary())


def html(thing: HasSummary) -> str:
    """Return an object as HTML: the same words and numbers as `text`."""
    summary = thing.summary()
    sentence = f": {escape(plain(summary.sentence))}" if summary.sentence else ""
    parts = [_paragraph(part) if isinstance(part, str) else table_html(part) for part in summary.parts]
    return f"<p><b>{escape(plain(summary.word))}</b>{sentence}</p>" + "".join(parts)


def summary_text(summary: Summary) -> str:
    """Return a summary as lines of text."""
    parts = [plain(part, lines=True) if isinstance(part, str) else table_text(part) for part in summary.parts]
    return "\n".join([plain(summary.headline, lines=True), *parts])


def table_text(table: Table) -> str:
    """Return a table with its columns below each other, the first at the left and the others at the right.

    Examples
    --------
    >>> print(table_text(Table(("agent", "value"), (("Ada", fixed(1.5, 2)), ("Bo", fixed(12, 2))))))
    agent  value
    Ada     1.50
    Bo     12.00
    """
    rows = [table.columns, *([_cell_text(cell) for cell in row] for row in table.rows)]
    shown = [[_cut(plain(name), MAX_NAME_WIDTH), *map(plain, rest)] for name, *rest in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = []
    for row in shown:
        first, *rest = zip(row, widths, strict=True)
        lines.append("  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]).rstrip())
    return "\n".join([*lines, *([plain(table.note)] if table.note else [])])


def listing(meanings: Mapping[str, str]) -> str:
    """Return names with what they mean, below each other."""
    width = max(map(len, meanings), default=0)
    return "\n".join(f"{name.ljust(width)}  {meaning}" for name, meaning in meanings.items())


def table_html(table: Table, *, name: str = "") -> str:
    """Return a table as HTML, every number with all of its digits in a `data` element."""
    head = "".join(f'<th scope="col">{_quoted(column)}</th>' for column in table.columns)
    body = "".join(
        f'<tr><th scope="row">{_cell_html(name)}</th>{"".join(map(_cell_box, rest))}</tr>' for name, *rest in table.rows
    )
    opening = f'<table id="{escape(name)}">' if name else "<table>"
    note = f'<p class="note">{_quoted(table.note)}</p>' if table.note else ""
    return f"{opening}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def table_markdown(table: Table) -> list[str]:
    """Return the lines of a table in Markdown."""
    rule = ["---", *["---:"] * (len(table.columns) - 1)]
    rows = [table.columns, rule, *([_cell_text(cell) for cell in row] for row in table.rows)]
    return ["| " + " | ".join(_markdown(cell) for cell in row) + " |" for row in rows]


def _markdown(cell: str) -> str:
    return re.sub(r"([\\|<>`*_\[\]])", r"\\\1", plain(cell)) if set(cell) - set("-:") else cell


def _cell_text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell.text


def _cell_html(cell: Cell) -> str:
    if isinstance(cell, str):
        return _quoted(cell)
    return f'<data value="{cell.value!r}">{typeset(cell.text)}</data>'


def _cell_box(cell: Cell) -> str:
    wordy = isinstance(cell, str) and len(cell) > LONG_WORDS
    return f'<td class="words">{_cell_html(cell)}</td>' if wordy else f"<td>{_cell_html(cell)}</td>"


def _paragraph(words: str) -> str:
    return "<p>" + escape(plain(words, lines=True)).replace("\n", "<br>") + "</p>"


def _quoted(words: str) -> str:
    return escape(plain(words))


def plain(words: str, *, lines: bool = False) -> str:
    r"""Return a text in which every character is shown as itself: those that steer, or turn the text, are escaped.

    Examples
    --------
    >>> plain("a\x1b[31mb"), plain("two\nlines"), plain("two\nlines", lines=True)
    ('a\\x1b[31mb', 'two\\nlines', 'two\nlines')
    """
    if words.isascii() and words.isprintable():
        return words
    return "".join(each if _is_shown(each) or (lines and each == "\n") else _escaped(each) for each in words)


def _is_shown(character: str) -> bool:
    return unicodedata.category(character) not in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", errors="surrogatepass").decode("ascii")


def typeset(number: str) -> str:
    r"""Write a number as a book does.

    Examples
    --------
    >>> typeset("-6.8e-11")
    '−6.8\xa0×\xa010⁻¹¹'
    """
    mantissa, _, power = number.replace("-", "−").partition("e")
    if not power:
        return mantissa
    return f"{mantissa}\u00a0×\u00a010{str(int(power.replace('−', '-'))).translate(SUPERSCRIPTS)}"


def fixed(value: float, places: int = 6) -> Number:
    """Return a number with this many decimals; one that is not known is shown as nothing."""
    number = float(value)
    if not math.isfinite(number):
        return Number(number, "" if math.isnan(number) else str(number))
    # z: what rounds to zero has no sign.
    return Number(number, f"{number:z.{places}f}" if abs(number) < LARGE else f"{number:.{places}g}")


def significant(value: float, digits: int = 6) -> Number:
    """Return a number with this many significant digits; one that is not known is shown as nothing."""
    number = float(value)
    return Number(number, "" if math.isnan(number) else f"{number:.{digits}g}")


def at_most(number: float, digits: int = 3) -> str:
    """Write a bound from above with so many significant digits, rounded up: no less is said than is proved.

    Examples
    --------
    >>> at_most(1 / 3), at_most(0.1), at_most(-1 / 3), at_most(1.001e-9, 2), at_most(9.999)
    ('0.334', '0.1', '-0.333', '1.1e-09', '10')
    """
    return _towards(number, digits, ROUND_CEILING)


def at_least(number: float, digits: int = 3) -> str:
    """Write a bound from below with so many significant digits, rounded down.

    Examples
    --------
    >>> at_least(2 / 3), at_least(0.1), at_least(-1 / 3)
    ('0.666', '0.1', '-0.334')
    """
    return _towards(number, digits, ROUND_FLOOR)


def _towards(number: float, digits: int, rounding: str) -> str:
    exact = float(number)
    near = f"{exact:.{digits}g}"
    if not math.isfinite(exact) or float(near) == exact:  # a decimal is the float that it is short for
        return near
    return f"{float(Context(prec=digits, rounding=rounding).create_decimal(Decimal(exact))):.{digits}g}"


def bounded(value: float, digits: int = 2) -> Number:
    """Return a bound from above for a table, rounded up."""
    return Number(float(value), "" if math.isnan(value) else at_most(value, digits))


def counted(number: int, noun: str) -> str:
    """Write a number with its noun.

    Examples
    --------
    >>> counted(1, "move"), counted(12_000, "move")
    ('1 move', '12,000 moves')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def largest(numbers: FloatArray, most: int | None = MAX_ROWS) -> list[int]:
    """Return the indices of the largest numbers, as many as a table shows, in their order."""
    if most is None or len(numbers) <= most:
        return list(range(len(numbers)))
    import numpy as np  # heavy, here and below

    return sorted(int(index) for index in np.argsort(-numbers, kind="stable")[:most])


def fields_line(thing: Any) -> str:
    """Return a dataclass as one line, whatever it holds: arrays by their shapes, long texts and lists cut short."""
    shown = [f"{each.name}={_brief(getattr(thing, each.name))}" for each in fields(thing) if each.repr]
    return _cut(f"{type(thing).__name__}({', '.join(shown)}", MAX_LINE - 1) + ")"


def _brief(value: Any) -> str:
    import numpy as np

    if isinstance(value, np.ndarray):
        return str(value.tolist()) if value.size <= 4 and value.ndim == 1 else f"array{list(value.shape)}"
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (tuple, list)):
        simple = len(value) <= 3 and all(isinstance(each, (str, int, float)) for each in value)
        return f"({', '.join(map(_brief, value))})" if simple else f"{type(value).__name__}[{len(value)}]"
    return plain(reprlib.repr(value)) if isinstance(value, (str, int, type(None))) else type(value).__name__


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def shown_of(shown: Sequence[int], count: int, kind: str) -> str:
    """Say which rows of a table are shown if not all are."""
    return "" if len(shown) == count else f"showing {len(shown)} of {count:,} {kind}"
