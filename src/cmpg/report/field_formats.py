"""Decisions in the formats of their fields: charging profiles, maps of links, plans of robots.

- `ocpp`: one charging profile for each car, in the fields of OCPP 1.6 (`SetChargingProfile`), with limits in W.
- `geojson`: the links of a road network as lines, with the columns of the table `links` as properties. Coordinates are
  those of the node file; a GeoJSON reader takes them for longitude and latitude.
- `mapf`: the text of multi-agent path finding solvers: a header, and for each robot the cells of all steps.

A policy says what to do in every state; a profile and a plan have one course, the likeliest one. Where something else
happens, the policy still says what to do: `cmpg export --what policy`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from cmpg.equilibrium.result import Result
from cmpg.errors import UnsupportedError
from cmpg.files.run_folder import game_of
from cmpg.report.formats import Row
from cmpg.report.tables import rows_of


def _profiles(result: Result) -> str:
    """Return the charging profile of each car; a period begins where the limit changes."""
    legend = game_of(result).names.legend
    duration = round(legend.step_seconds * len(legend.steps))
    profiles = []
    for number, rows in enumerate(_by_agent(rows_of(result, "pilot"), legend.agent)):
        periods: list[dict[str, Any]] = []
        for h, row in enumerate(rows):
            limit = round(1000 * row["power (kW)"], 1)
            if not periods or periods[-1]["limit"] != limit:
                periods.append({"startPeriod": round(h * legend.step_seconds), "limit": limit})
        schedule = {
            "duration": duration,
            "startSchedule": legend.begins,
            "chargingRateUnit": "W",
            "chargingSchedulePeriod": periods,
        }
        profile = {
            "chargingProfileId": number + 1,
            "stackLevel": 0,
            "chargingProfilePurpose": "TxProfile",
            "chargingProfileKind": "Absolute",
            "chargingSchedule": schedule,
        }
        first = rows[0]
        profiles.append({"car": first[legend.agent], "station": first["station"], "csChargingProfiles": profile})
    return json.dumps(profiles, indent=1, ensure_ascii=False) + "\n"


def _by_agent(rows: Sequence[Row], title: str) -> list[list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[title], []).append(row)
    return list(found.values())


def _lines(result: Result) -> str:
    """Return every link as a line."""
    rows, places = rows_of(result, "links"), game_of(result).names.legend.places
    if not places:
        raise UnsupportedError("network without coordinates", "has no GeoJSON", "Solve with --nodes, a file of them.")
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "LineString", "coordinates": [places[row["from"] - 1], places[row["to"] - 1]]},
            "properties": row,
        }
        for row in rows
    ]
    return json.dumps({"type": "FeatureCollection", "features": features}, ensure_ascii=False) + "\n"


def _plan(result: Result) -> str:
    """Return the likeliest plan of all robots."""
    legend = game_of(result).names.legend
    ways = _by_agent(rows_of(result, "plan"), legend.agent)
    # Rewards are of the steps, so a robot may do anything in the last one: where it is after that says nothing.
    cells = [[(row["x"], row["y"]) for row in way[:-1]] for way in ways]
    goals = [legend.places[goal] for goal in legend.goals]
    costs = [_arrival(way, goal) for way, goal in zip(cells, goals, strict=True)]
    solved = all(cost is not None for cost in costs) and not collisions_of(cells)
    known = [len(way) - 1 if cost is None else cost for way, cost in zip(cells, costs, strict=True)]
    head = {
        "agents": len(cells),
        "solver": "cmpg",
        "solved": int(solved),
        "soc": sum(known),
        "makespan": max(known),
        "collisions": collisions_of(cells),
        "starts": ",".join(_cell(way[0]) for way in cells),
        "goals": ",".join(map(_cell, goals)),
    }
    steps = [f"{h}:" + ",".join(_cell(way[h]) for way in cells) for h in range(max(known) + 1)]
    return "\n".join([*(f"{name}={value}" for name, value in head.items()), "solution=", *steps]) + "\n"


def _cell(cell: Sequence[float]) -> str:
    return f"({cell[0]:g},{cell[1]:g})"


def _arrival(way: Sequence[tuple[float, float]], goal: Sequence[float]) -> int | None:
    """Return the first step from which on a robot stays on its goal; None if it does not."""
    away = [h for h, cell in enumerate(way) if tuple(cell) != tuple(goal)]
    last = away[-1] if away else -1
    return None if last == len(way) - 1 else last + 1


def collisions_of(ways: Sequence[Sequence[tuple[float, float]]]) -> int:
    """Count pairs of robots that are on one cell at one step, or trade places, in plans of the same length.

    Examples
    --------
    >>> collisions_of([[(0, 0), (1, 0)], [(1, 0), (0, 0)]]), collisions_of([[(0, 0), (1, 0)], [(2, 0), (1, 0)]])
    (1, 1)
    """
    count = 0
    for h in range(len(ways[0])):
        for i, one in enumerate(ways):
            for other in ways[i + 1 :]:
                count += one[h] == other[h]
                count += h > 0 and one[h] == other[h - 1] and other[h] == one[h - 1] and one[h] != other[h]
    return count


FIELD_FORMATS: dict[str, tuple[str, Callable[[Result], str]]] = {
    "ocpp": ("pilot", _profiles),
    "geojson": ("links", _lines),
    "mapf": ("plan", _plan),
}
"""The table that a format can hold, and the function that writes it, by name of the format."""
