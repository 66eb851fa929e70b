"""The file `scenario.json` of a run folder: where the game came from, and how to draw it.

Fields: `format` = "cmpg-scenario", `version` = 1, `name`, `options`, and `drawing`, which is null or one of
- `kind` = "grid": `width`, `height`, `upwards`, `cells` [S, 2], `moves` [A, 2], `marks`, each [x, y, text, agent];
- `kind` = "network": `nodes` [S, 2], `links` [E, 2], `protected`, `limit`, `origins` [n], `destinations` [n];
- `kind` = "loads": `capacities` [E] or [E][H], `steps` [H].
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cmpg.errors import FileError
from cmpg.files.containers import read_fields, write_text
from cmpg.files.fields import reading
from cmpg.games.game import Game, Information, SharedResources
from cmpg.scenarios import Origin
from cmpg.scenarios.drawings import Drawing, GridDrawing, LoadDrawing, Mark, NetworkDrawing

KINDS = {GridDrawing: "grid", NetworkDrawing: "network", LoadDrawing: "loads"}


def write_scenario(path: Path, origin: Origin, drawing: Drawing | None) -> None:
    """Write the file."""
    record = {
        "format": "cmpg-scenario",
        "version": 1,
        "name": origin.name,
        "options": {name: _plain(value) for name, value in origin.options.items()},
        "drawing": None if drawing is None else _drawing_record(drawing),
    }
    write_text(path, json.dumps(record))


def _plain(value: Any) -> Any:
    """Return an option in words that JSON knows: a path or a date as its text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _drawing_record(drawing: Drawing) -> dict[str, Any]:
    fields = asdict(drawing)
    if isinstance(drawing, GridDrawing):
        fields["marks"] = [[*mark.cell, mark.text, mark.agent] for mark in drawing.marks]
    return {"kind": KINDS[type(drawing)], **fields}


def read_scenario(path: Path) -> tuple[Origin, Drawing | None]:
    """Read the file; raise FileError where it is not whole."""
    fields = read_fields(path, kind="cmpg-scenario")
    readers: dict[str, Callable[[dict[str, Any]], Drawing]] = {
        "grid": _read_grid,
        "network": _read_network,
        "loads": _read_loads,
    }
    with reading(path, "Remove this file, and the page shows tables instead."):
        origin, record = Origin(str(fields["name"]), dict(fields["options"])), fields["drawing"]
        return origin, None if record is None else readers[record["kind"]](record)


def _read_grid(record: dict[str, Any]) -> GridDrawing:
    return GridDrawing(
        width=int(record["width"]),
        height=int(record["height"]),
        upwards=bool(record["upwards"]),
        cells=_whole_pairs(record["cells"]),
        moves=_whole_pairs(record["moves"]),
        marks=tuple(
            Mark((int(x), int(y)), str(text), None if agent is None else int(agent))
            for x, y, text, agent in record["marks"]
        ),
    )


def _read_network(record: dict[str, Any]) -> NetworkDrawing:
    return NetworkDrawing(
        nodes=tuple((float(x), float(y)) for x, y in record["nodes"]),
        links=_whole_pairs(record["links"]),
        protected=tuple(int(link) for link in record["protected"]),
        limit=float(record["limit"]),
        origins=tuple(int(node) for node in record["origins"]),
        destinations=tuple(int(node) for node in record["destinations"]),
    )


def _read_loads(record: dict[str, Any]) -> LoadDrawing:
    steps = tuple(str(step) for step in record["steps"])
    rows = [row if isinstance(row, list) else [row] * len(steps) for row in record["capacities"]]
    return LoadDrawing(tuple(tuple(float(capacity) for capacity in row) for row in rows), steps)


def _whole_pairs(rows: Sequence[Sequence[Any]]) -> tuple[tuple[int, int], ...]:
    return tuple((int(first), int(second)) for first, second in rows)


def check_drawing(path: Path, drawing: Drawing, game: Game) -> None:
    """Raise unless the drawing has as many cells as the game."""
    states = [shape[1] for shape in game.policy_shapes]
    if isinstance(drawing, GridDrawing):
        cells, actions = len(drawing.cells), len(drawing.moves)
        own = cells if game.information is Information.OWN_STATE else cells**game.num_agents
        fits = all(shape[1:] == (own, actions) for shape in game.policy_shapes)
        fits &= all(0 <= x < drawing.width and 0 <= y < drawing.height for x, y in drawing.cells)
        fits &= all(mark.agent is None or 0 <= mark.agent < game.num_agents for mark in drawing.marks)
    elif not isinstance(game, SharedResources):
        fits = False
    elif isinstance(drawing, NetworkDrawing):
        resources, nodes = len(game.all_resource_names), range(len(drawing.nodes))
        fits = len(drawing.links) == resources and set(states) in ({len(nodes)}, {1})
        fits &= len(drawing.origins) == len(drawing.destinations) == game.num_agents
        ends = {*(end for link in drawing.links for end in link), *drawing.origins, *drawing.destinations}
        fits &= ends <= set(nodes) and set(drawing.protected) <= set(range(resources))
    else:
        fits = (len(drawing.capacities), len(drawing.steps)) == (len(game.all_resource_names), game.horizon)
        fits &= all(len(row) == game.horizon for row in drawing.capacities)
    if not fits:
        raise FileError(f"{path}: its drawing is of another game. Remove this file, and the page shows tables instead.")
