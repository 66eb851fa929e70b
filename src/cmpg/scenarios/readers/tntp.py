"""Road networks and trip tables in the TNTP form of the Transportation Networks collection.

A file begins with lines `<KEY> value` and ends that part with `<END OF METADATA>`. Below it, `~` begins a comment and
`;` ends a record. A link's travel time at a flow is free_flow_time · (1 + b · (flow / capacity)^power). Nodes are
counted from 1, as in the files; the first `num_zones` of them are where trips begin and end, and those below
`first_through_node` cannot be driven through.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from cmpg.errors import FileError
from cmpg.scenarios.readers.text import FilePath, Line, integer_in, number_in, read_lines

TOTAL_FLOW_TOLERANCE = 0.01
"""Published totals are rounded; a table that has lost an origin is off by more, and is refused."""

LINK_COLUMNS = ("init_node", "term_node", "capacity", "length", "free_flow_time", "b", "power")

TRIP = re.compile(r"\s*(\d+)\s*:\s*([^\s;:]+)\s*;")


@dataclass(frozen=True)
class Link:
    """One direction of a road."""

    tail: int
    head: int
    capacity: float
    length: float
    free_flow_time: float
    b: float
    power: float
    line: int


@dataclass(frozen=True)
class Network:
    """Nodes 1, …, `num_nodes`, and the links between them.

    Examples
    --------
    >>> from cmpg.scenarios.samples import sample_file
    >>> with sample_file("sample_net.tntp") as path:
    ...     network = read_network(path)
    >>> network.num_nodes, network.num_zones, len(network.links)
    (10, 10, 28)
    """

    num_nodes: int
    num_zones: int
    first_through_node: int
    links: tuple[Link, ...]
    source: str  # the file, for errors


@dataclass(frozen=True)
class Trips:
    """How much traffic wants to go from one zone to another."""

    origin: int
    destination: int
    flow: float
    line: int


@dataclass(frozen=True)
class TripTable:
    """All pairs of zones with some traffic between them, in the order of the file.

    Examples
    --------
    >>> from cmpg.scenarios.samples import sample_file
    >>> with sample_file("sample_trips.tntp") as path:
    ...     table = read_trips(path)
    >>> table.num_zones, sum(pair.flow for pair in table.trips)
    (10, 35600.0)
    """

    num_zones: int
    trips: tuple[Trips, ...]
    source: str  # the file, for errors


def read_network(path: FilePath) -> Network:
    """Read a `_net.tntp` file.

    Raises
    ------
    FileError
        With the file and the line: the metadata are not those of a network, a link is cut or has a node that does not
        exist, or the number of links is not the one promised.

    Examples
    --------
    >>> from cmpg.scenarios.samples import sample_file
    >>> with sample_file("sample_net.tntp") as path:
    ...     network = read_network(path)
    >>> network.links[0]
    Link(tail=1, head=2, capacity=15000.0, length=3.0, free_flow_time=3.0, b=0.15, power=4.0, line=8)
    """
    lines = read_lines(path)
    metadata = _metadata(lines, path)
    num_nodes = _count(metadata, "NUMBER OF NODES", path)
    num_links = _count(metadata, "NUMBER OF LINKS", path)
    num_zones = _count(metadata, "NUMBER OF ZONES", path)
    first_through = _count(metadata, "FIRST THRU NODE", path) if "FIRST THRU NODE" in metadata else 1
    links = tuple(_link(line, num_nodes) for line in _records(lines))
    if len(links) != num_links:
        raise FileError(f"{path} has {len(links)} links; <NUMBER OF LINKS> promises {num_links}.")
    if num_nodes > 2 * len(links):
        problem = f"<NUMBER OF NODES> is {num_nodes}; {len(links)} links can join {2 * len(links)} at most."
        raise metadata["NUMBER OF NODES"].error(problem)
    return Network(num_nodes, num_zones, first_through, links, str(path))


def read_trips(path: FilePath) -> TripTable:
    """Read a `_trips.tntp` file; pairs without traffic are left out.

    Raises
    ------
    FileError
        With the file and the line: the metadata are not those of a trip table, an entry is cut, a zone does not exist,
        a flow is negative, or the flows do not add up to the total promised.

    Examples
    --------
    >>> from cmpg.scenarios.samples import sample_file
    >>> with sample_file("sample_trips.tntp") as path:
    ...     table = read_trips(path)
    >>> table.trips[0].origin, table.trips[0].destination, table.trips[0].flow
    (1, 2, 100.0)
    """
    lines = read_lines(path)
    metadata = _metadata(lines, path)
    num_zones = _count(metadata, "NUMBER OF ZONES", path)
    trips = tuple(trip for trip in _all_trips(lines, num_zones) if trip.flow > 0)
    if "TOTAL OD FLOW" in metadata:
        total = metadata["TOTAL OD FLOW"]
        promised, found = number_in(total.text, total, name="<TOTAL OD FLOW>"), math.fsum(trip.flow for trip in trips)
        if abs(found - promised) > TOTAL_FLOW_TOLERANCE * abs(promised):
            raise total.error(f"the total is said to be {promised:g}; the flows add up to {found:g}. Is the file cut?")
    return TripTable(num_zones, trips, str(path))


def read_nodes(path: FilePath) -> dict[int, tuple[float, float]]:
    """Read a `_node.tntp` file: where each node lies, for drawing.

    Examples
    --------
    >>> from cmpg.scenarios.samples import sample_file
    >>> with sample_file("sample_node.tntp") as path:
    ...     read_nodes(path)[1]
    (0.0, 2.0)
    """
    positions: dict[int, tuple[float, float]] = {}
    for line in _records(read_lines(path)):
        fields = line.text.split()
        if fields[0].lower() == "node":
            continue
        if len(fields) < 3:
            raise line.error(f"there are {len(fields)} fields; node, x and y are required.")
        node = integer_in(fields[0], line, name="node")
        positions[node] = (number_in(fields[1], line, name="x"), number_in(fields[2], line, name="y"))
    if not positions:
        raise FileError(f"{path} has no nodes.")
    return positions


def _metadata(lines: Iterator[Line], path: FilePath) -> dict[str, Line]:
    metadata: dict[str, Line] = {}
    for line in lines:
        text = line.text.strip()
        if not text or text.startswith("~"):
            continue
        key, closed, value = text.partition(">")
        if not (key.startswith("<") and closed):
            raise line.error(f"{text[:40]!r} is not a line `<KEY> value` of the metadata.")
        if key == "<END OF METADATA":
            return metadata
        metadata[key[1:].strip().upper()] = line._replace(text=value.strip())
    raise FileError(f"{path} has no line <END OF METADATA>; it is not a TNTP file, or it is cut short.")


def _count(metadata: dict[str, Line], key: str, path: FilePath) -> int:
    if key not in metadata:
        found = ", ".join(f"<{name}>" for name in metadata) or "nothing"
        raise FileError(f"{path} does not say <{key}>; its metadata are {found}.")
    line = metadata[key]
    number = integer_in(line.text, line, name=f"<{key}>")
    if number < 1:
        raise line.error(f"<{key}> is {number}; one or more is required.")
    return number


def _records(lines: Iterator[Line]) -> Iterator[Line]:
    for line in lines:
        record = line.text.partition("~")[0].strip().rstrip(";").strip()
        if record:
            yield line._replace(text=record)


def _link(line: Line, num_nodes: int) -> Link:
    fields = line.text.split()
    if len(fields) < len(LINK_COLUMNS):
        raise line.error(f"there are {len(fields)} fields; a link needs {', '.join(LINK_COLUMNS)}.")
    tail, head = (_place(fields[end], line, num_nodes, name=LINK_COLUMNS[end]) for end in (0, 1))
    capacity, length, free_flow_time, b, power = (
        number_in(field, line, name=name) for name, field in zip(LINK_COLUMNS[2:], fields[2:7], strict=True)
    )
    if min(free_flow_time, b, power) < 0:
        raise line.error("free_flow_time, b and power cannot be negative.")
    if capacity <= 0 and b > 0:
        raise line.error(f"capacity is {capacity:g}; above zero is required where b is not zero.")
    return Link(tail, head, capacity, length, free_flow_time, b, power, line.number)


def _all_trips(lines: Iterator[Line], num_zones: int) -> Iterator[Trips]:
    origin = 0
    for line in lines:
        body = line.text.partition("~")[0].strip()
        words = body.split()
        if words and words[0].lower() == "origin":
            if len(words) != 2:
                raise line.error(f"{body[:40]!r} must be `Origin` and one zone.")
            origin = _place(words[1], line, num_zones, name="the origin")
        elif words and not origin:
            raise line.error(f"{body[:40]!r} comes before the first `Origin`.")
        elif words:
            yield from _trips_of_line(line._replace(text=body), origin, num_zones)


def _trips_of_line(line: Line, origin: int, num_zones: int) -> Iterator[Trips]:
    end = 0
    while end < len(line.text):
        entry = TRIP.match(line.text, end)
        if entry is None:
            raise line.error(f"{line.text[end:].strip()[:40]!r} is not an entry `destination : flow;`.")
        destination = _place(entry[1], line, num_zones, name="the destination")
        flow = number_in(entry[2], line, name="the flow")
        if flow < 0:
            raise line.error(f"the flow to {destination} is {flow:g}; it cannot be negative.")
        yield Trips(origin, destination, flow, line.number)
        end = entry.end()


def _place(text: str, line: Line, largest: int, *, name: str) -> int:
    number = integer_in(text, line, name=name)
    if not 1 <= number <= largest:
        raise line.error(f"{name} is {number}; the metadata promise 1 to {largest}.")
    return number
