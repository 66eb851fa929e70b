"""Write the sample files of the package: an invented car park, an invented warehouse and an invented town.

The same script writes the same bytes: it draws from `random.Random(…).random()` only, and Python promises to keep that
stream as it is.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from checks import ROOT

SAMPLES = ROOT / "src" / "cmpg" / "scenarios" / "samples"

Cell = tuple[int, int]

CELL_LETTERS = (
    "............",
    ".@@@@..@@@@.",
    ".@@@@..@@@@.",
    "............",
    ".@@@@..@@@@.",
    "............",
    ".@@@@..@@@@.",
    "............",
    ".TT..TT..TT.",
    ".TT..TT..TT.",
    "............",
    "............",
)

# tail, head, capacity, free-flow time. The river runs between 1-5 and 6-10. The bridge 4-7 is quick and wide, and old.
ROADS = (
    (1, 2, 15000, 3), (1, 3, 15000, 3), (2, 4, 12000, 3), (3, 4, 12000, 3), (2, 3, 9000, 4), (3, 5, 9000, 5),
    (4, 7, 12000, 2), (5, 10, 9000, 9),
    (6, 7, 12000, 3), (7, 8, 12000, 3), (6, 9, 15000, 4), (8, 9, 15000, 3), (8, 10, 9000, 4), (9, 10, 9000, 5),
)  # fmt: skip
POSITIONS = ((0, 2), (1, 3), (1, 1), (2, 2), (2, 0), (4, 3), (3, 2), (4, 1), (5, 2), (4, 0))


def sessions() -> str:
    """Return one working day of a car park: sixteen cars come before work, eight around noon."""
    draw = Random(13).random
    midnight = datetime.fromisoformat("2024-03-12 00:00:00+01:00")
    stays = []
    for car in range(24):
        late = car >= 16
        hours = 11.5 + 3.0 * draw() if late else 6.5 + 3.0 * (draw() + draw()) / 2
        stay = 2.0 + 3.0 * draw() if late else 5.0 + 4.0 * draw()
        arrival = midnight + timedelta(seconds=int(3600 * hours))
        departure = arrival + timedelta(seconds=int(3600 * stay))
        delivered = round(3.0 + 9.0 * draw() if late else 10.0 + 22.0 * draw(), 3)
        stays.append((arrival, departure, round(delivered * (1.0 + 0.3 * draw()), 1), delivered))
    header = "arrival,departure,requested_energy (kWh),delivered_energy (kWh),station_id,session_id"
    rows = [(*stay, f"P-{car:02d}", f"sample-{car:02d}") for car, stay in enumerate(sorted(stays), 1)]
    return "\n".join([header, *(",".join(str(field) for field in row) for row in rows)]) + "\n"


def warehouse() -> str:
    """Return a map of 12 × 12 cells: shelves above, pillars below, and three passages between them."""
    return "\n".join(["type octile", "height 12", "width 12", "map", *CELL_LETTERS]) + "\n"


def journeys() -> str:
    """Return ten start/goal pairs, from one half to the other."""
    draw = Random(8).random
    rooms = [
        [(x, y) for y in lines for x in range(12) if CELL_LETTERS[y][x] == "."] for lines in (range(6), range(7, 12))
    ]
    picks = [_shuffled(room, draw)[:10] for room in rooms]
    rows = ["version 1"]
    for robot in range(10):
        start, goal = picks[robot % 2][robot], picks[1 - robot % 2][robot]
        length = _moves(start, goal)
        rows.append("\t".join(str(field) for field in (length // 4, "sample.map", 12, 12, *start, *goal, length)))
    return "\n".join(rows) + "\n"


def _shuffled(cells: list[Cell], draw: Callable[[], float]) -> list[Cell]:
    return [cell for _, cell in sorted((draw(), cell) for cell in cells)]


def _moves(start: Cell, goal: Cell) -> int:
    distances, waiting = {start: 0}, deque([start])
    while goal not in distances:
        x, y = waiting.popleft()
        for cell in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
            inside = 0 <= cell[0] < 12 and 0 <= cell[1] < 12
            if inside and CELL_LETTERS[cell[1]][cell[0]] == "." and cell not in distances:
                distances[cell] = distances[x, y] + 1
                waiting.append(cell)
    return distances[goal]


def network() -> str:
    """Return the roads, each in both directions."""
    head = [
        "<NUMBER OF ZONES> 10",
        "<NUMBER OF NODES> 10",
        "<FIRST THRU NODE> 1",
        f"<NUMBER OF LINKS> {2 * len(ROADS)}",
    ]
    names = "~\tinit_node\tterm_node\tcapacity\tlength\tfree_flow_time\tb\tpower\tspeed\ttoll\tlink_type\t;"
    both = sorted([*ROADS, *((end, begin, capacity, time) for begin, end, capacity, time in ROADS)])
    rows = [f"\t{tail}\t{head}\t{capacity}\t{time}\t{time}\t0.15\t4\t0\t0\t1\t;" for tail, head, capacity, time in both]
    return "\n".join([*head, "<END OF METADATA>", "", names, *rows]) + "\n"


def trips() -> str:
    """Return a morning: most traffic goes from the west bank (1-5) to the east bank (6-10)."""
    draw = Random(3).random
    blocks, total = [], 0
    for origin in range(1, 11):
        entries = []
        for destination in range(1, 11):
            crossing = (origin <= 5) - (destination <= 5)
            scale = {1: 9, 0: 2, -1: 3}[crossing]
            flow = 0 if origin == destination else 100 * int(scale * (0.5 + draw()))
            total += flow
            entries.append(f"{destination:5d} : {flow:8.1f};")
        lines = [" ".join(entries[:5]), " ".join(entries[5:])]
        blocks.append("\n".join([f"Origin {origin}", *lines]))
    head = f"<NUMBER OF ZONES> 10\n<TOTAL OD FLOW> {total:.1f}\n<END OF METADATA>\n"
    return head + "".join(f"\n{block}\n" for block in blocks)


def nodes() -> str:
    """Return where the nodes lie."""
    rows = [f"{node}\t{x}\t{y}\t;" for node, (x, y) in enumerate(POSITIONS, 1)]
    return "\n".join(["Node\tX\tY\t;", *rows]) + "\n"


FILES = {
    "sample_sessions.csv": sessions,
    "sample.map": warehouse,
    "sample.scen": journeys,
    "sample_net.tntp": network,
    "sample_trips.tntp": trips,
    "sample_node.tntp": nodes,
}


def main(argv: list[str]) -> None:
    """Write all sample files into a folder: that of the package unless another is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=SAMPLES)
    folder = parser.parse_args(argv).folder
    for name, text in FILES.items():
        (folder / name).write_text(text(), encoding="utf-8", newline="\n")
