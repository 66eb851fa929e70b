"""Hundreds and thousands of agents: seconds of the processor, the memory of the process, and how both grow.

Each solve runs in a process of its own, so that its peak is its own: `python -m benchmarks.crowds NAME` solves one game
and prints a line of JSON. Memory is what the peak of the process rises above what it was once the game stood. Seeds
that nothing was tuned on stand beside the others.
"""

from __future__ import annotations

import csv
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import cmpg
from benchmarks.bench_local import DATA, fleet, platoons, real_data
from benchmarks.outcome import Outcome
from cmpg.games.local.game import LocalGame
from cmpg.scenarios.car_charging import charging
from cmpg.scenarios.robot_fleet import robots

DAY = "2019-06-12"
LIMIT = 420.0
"""Seconds after which a solve is stopped, so that all benchmarks end within half an hour."""


def drawn_cars(agents: int, *, seed: int = 0, per_place: float = 0.16) -> LocalGame:
    """Cars whose sessions are drawn from those of one day, at a site that is as much larger; its limit binds."""
    if not real_data():
        return charging()
    with gzip.open(DATA / "acn" / "caltech_2019-05_2019-08.csv.gz", "rt") as stream:
        rows = [row for row in csv.DictReader(stream) if row["arrival"].startswith(DAY)]
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sessions.csv"
        with path.open("w", newline="") as target:
            writer = csv.DictWriter(target, list(rows[0]))
            writer.writeheader()
            for number in range(agents):
                writer.writerow(rows[rng.integers(len(rows))] | {"session_id": str(number)})
        return charging(sessions=path, day=DAY, capacity=round(agents * per_place), load_price=0.02 * 46 / agents)


def large_fleet(agents: int, *, side: int = 64, horizon: int = 60, seed: int = 0) -> LocalGame:
    """Robots on a drawn floor of which a fifth is walls."""
    walls = np.random.default_rng(0).random((side, side)) < 0.2
    lines = "\n".join("".join("@" if wall else "." for wall in row) for row in walls)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.map"
        path.write_text(f"type octile\nheight {side}\nwidth {side}\nmap\n{lines}\n", encoding="utf-8")
        return robots(map=path, num_agents=agents, seed=seed, horizon=horizon, edges=False)


GAMES: dict[str, tuple[Any, float, float | None, float | None]] = {
    # builds the game; epsilon; seconds and gigabytes that are aimed for
    "charging, 10,000 drawn cars": (lambda: drawn_cars(10_000), 1e-6, 60.0, None),
    "routing, 2,000 platoons": (lambda: platoons(2_000, seed=0), 1e-6, 2.0, None),
    "routing, 2,000 platoons, seed 7": (lambda: platoons(2_000, seed=7), 1e-6, 2.0, None),
    "routing, 10,000 platoons": (lambda: platoons(10_000, seed=0), 1e-6, 30.0, None),
    "robots, 100, seed 7": (lambda: fleet(100, seed=7), 1e-4, 1.8, None),
    "robots, 100, with edges": (lambda: fleet(100, edges=True), 1e-4, None, None),
    "robots, 300, on 64 x 64 cells": (lambda: large_fleet(300), 1e-4, 20.0, 1.0),
    "robots, 1,000, on 64 x 64 cells": (lambda: large_fleet(1_000), 1e-4, None, 3.0),
}
QUICK: dict[str, tuple[Any, float, float | None, float | None]] = {
    "charging, 200 drawn cars": (lambda: drawn_cars(200), 1e-6, None, None),
    "robots, 12, on 20 x 20 cells": (lambda: large_fleet(12, side=20, horizon=40), 1e-4, None, None),
}
CARS = (1_250, 2_500, 5_000)
"""Numbers of cars by which the growth of their seconds is fitted."""


def peak() -> float:
    """Return the most memory that this process had, in gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9


def solved(name: str) -> dict[str, Any]:
    """Solve one game, and say how it went."""
    if name.startswith("cars "):
        build, epsilon = (lambda: drawn_cars(int(name.removeprefix("cars ")))), 1e-6
    else:
        build, epsilon = (GAMES | QUICK)[name][:2]
    game = build()
    before, began = peak(), time.process_time()
    result = cmpg.solve(game, epsilon=epsilon, time_limit=LIMIT)
    seconds = time.process_time() - began
    after = peak()
    return {
        "agents": game.num_agents,
        "seconds": seconds,
        "peak": after,
        "more": after - before,
        "certified": result.certified,
        "status": result.status.name,
        "value": float(result.certificate.values.sum()) if result.incumbent is not None else None,
    }


def apart(name: str) -> dict[str, Any]:
    """Solve one game in a process of its own."""
    ran = subprocess.run([sys.executable, "-m", "benchmarks.crowds", name], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        print(ran.stderr[-2_000:], flush=True)
        return {"agents": 1, "seconds": np.nan, "peak": np.nan, "more": np.nan, "certified": False, "status": "FAILED"}
    told: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return told


def crowds(quick: bool) -> list[Outcome]:
    """Return the rows of all large games."""
    outcomes = []
    for name, (_, _, seconds, gigabytes) in (QUICK if quick else GAMES).items():
        told = apart(name)
        per_agent = 1e3 * told["more"] / told["agents"]
        memory = f"peak {told['peak']:.2f} GB, {per_agent:.2f} MB for each agent above the game"
        print(f"  {name:<34} {told['seconds']:8.2f} s   {told['status']:<9}   {memory}", flush=True)
        outcomes += [
            Outcome(f"{name}: seconds of the processor", told["seconds"], seconds, unit="s", at_most=True),
            Outcome("  certified (1) or not (0)", float(told["certified"]), 1.0, unit=""),
            Outcome("  peak memory of the process", told["peak"], gigabytes, unit="GB", at_most=True),
            Outcome("  memory for each agent, above the game", per_agent, unit="MB"),
        ]
    sizes = (50, 100) if quick else CARS
    times = [apart(f"cars {size}")["seconds"] for size in sizes]
    for size, each in zip(sizes, times, strict=True):
        print(f"  {size:6d} cars: {each:.2f} s", flush=True)
    slope = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    return [*outcomes, Outcome("cars: growth with the agents, exponent", slope, 1.15, unit="", at_most=True)]


if __name__ == "__main__":
    print(json.dumps(solved(sys.argv[1])))
