"""Grid maps (`.map`) and start/goal pairs (`.scen`) in the forms of the MovingAI benchmarks.

A cell is (x, y): x counts columns from the left, y counts lines of the map from the top, both from 0. Ground (`.`, `G`)
and swamp (`S`) can be stood on; trees (`T`), water (`W`) and what lies outside (`@`, `O`) are walls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cmpg.errors import FileError
from cmpg.scenarios.readers.text import FilePath, Line, integer_in, number_in, read_lines

Cell = tuple[int, int]
"""(x, y)."""

FREE_SYMBOLS = ".GS"
WALL_SYMBOLS = "@OTW"


@dataclass(frozen=True)
class GridMap:
    """A rectangle of free cells and walls.

    Examples
    --------
    >>> world = GridMap(("..@", "..."), source="inline")
    >>> world.is_free((2, 0)), world.is_free((2, 1)), world.is_free((3, 1))
    (False, True, False)
    """

    rows: tuple[str, ...]  # symbols: rows[y][x]
    source: str  # the file, for errors

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.rows[0])

    @property
    def height(self) -> int:
        """The number of lines."""
        return len(self.rows)

    def is_free(self, cell: Cell) -> bool:
        """Whether a robot can stand there; outside the map it cannot."""
        x, y = cell
        return 0 <= x < self.width and 0 <= y < self.height and self.rows[y][x] in FREE_SYMBOLS

    def free_cells(self) -> tuple[Cell, ...]:
        """All free cells, line by line."""
        return tuple((x, y) for y in range(self.height) for x in range(self.width) if self.is_free((x, y)))


@dataclass(frozen=True)
class Journey:
    """One start/goal pair, and the size of the map that it was made for.

    Examples
    --------
    >>> from cmpg.scenarios.samples import sample_file
    >>> with sample_file("sample.scen") as path:
    ...     journey = read_scen(path)[0]
    >>> journey.start, journey.goal, journey.map_size
    ((0, 2), (8, 8), (12, 12))
    """

    start: Cell
    goal: Cell
    map_size: tuple[int, int]  # width, height
    optimal_length: float  # as the file says, for eight directions
    line: int


def read_map(path: FilePath) -> GridMap:
    """Read a `.map` file: `height`, `width` and perhaps `type`, then `map` and its lines.

    Raises
    ------
    FileError
        With the file and the line: the head is not that of a map, a line of the map has the wrong length or an unknown
        symbol, or there are too few or too many lines.

    Examples
    --------
    >>> from cmpg.scenarios.samples import sample_file
    >>> with sample_file("sample.map") as path:
    ...     world = read_map(path)
    >>> world.width, world.height
    (12, 12)
    """
    lines = read_lines(path)
    width, height = _map_size(lines, path)
    body = list(lines)
    while body and not body[-1].text.strip():
        body.pop()
    rows = tuple(_map_row(line, width) for line in body)
    if len(rows) != height:
        raise FileError(f"{path} has a map of {len(rows)} lines; its head says height {height}.")
    return GridMap(rows, str(path))


def _map_size(lines: Iterator[Line], path: FilePath) -> tuple[int, int]:
    sizes = {"width": 0, "height": 0}
    for line in lines:
        words = line.text.split()
        if words == ["map"]:
            for name, size in sizes.items():
                if size < 1:
                    raise line.error(f"the map begins here, and no {name} above zero was given before it.")
            return sizes["width"], sizes["height"]
        if len(words) == 2 and words[0] in sizes:
            sizes[words[0]] = integer_in(words[1], line, name=words[0])
        elif words and words[0] != "type":
            raise line.error(f"{line.text[:40]!r} is not part of a map's head: type, height, width, map.")
    raise FileError(f"{path} has no line `map`; it is not a MovingAI map, or it is cut short.")


def _map_row(line: Line, width: int) -> str:
    row = line.text.rstrip()
    if len(row) != width:
        raise line.error(f"there are {len(row)} cells; width is {width}.")
    strange = set(row).difference(FREE_SYMBOLS, WALL_SYMBOLS)
    if strange:
        x = min(row.index(symbol) for symbol in strange)
        free, walls = " ".join(FREE_SYMBOLS), " ".join(WALL_SYMBOLS)
        raise line.error(f"column {x + 1} holds {row[x]!r}; free cells are {free} and walls are {walls}.")
    return row


def read_scen(path: FilePath) -> tuple[Journey, ...]:
    """Read the start/goal pairs of a `.scen` file, in its order.

    Raises
    ------
    FileError
        With the file and the line: there is no `version`, or a row does not have its nine fields.

    Examples
    --------
    >>> from cmpg.scenarios.samples import sample_file
    >>> with sample_file("sample.scen") as path:
    ...     journeys = read_scen(path)
    >>> len(journeys), journeys[0].optimal_length
    (10, 14.0)
    """
    lines = read_lines(path)
    head = next(lines, Line(path, 1, ""))
    if head.text.split()[:1] != ["version"]:
        raise head.error(f"{head.text[:40]!r} is not the head of a .scen file: `version 1`.")
    return tuple(_journey(line) for line in lines if line.text.strip())


def _journey(line: Line) -> Journey:
    fields = line.text.split()
    if len(fields) < 9:
        raise line.error(
            f"there are {len(fields)} fields; nine are required: bucket, map, its width and height, start x and y, "
            "goal x and y, length."
        )
    # A map's name may have spaces in it, so the numbers are counted from the end.
    names = ("map width", "map height", "start x", "start y", "goal x", "goal y")
    width, height, start_x, start_y, goal_x, goal_y = (
        integer_in(field, line, name=name) for name, field in zip(names, fields[-7:-1], strict=True)
    )
    length = number_in(fields[-1], line, name="length")
    return Journey((start_x, start_y), (goal_x, goal_y), (width, height), length, line.number)
