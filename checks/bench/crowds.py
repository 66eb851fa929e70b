"""Hundreds and thousands of agents: seconds of the processor, the memory of the process, and how both grow.

Each solve runs in a process of its own, so that its peak is its own: `python -m checks.bench.crowds NAME AGENTS LIMIT
DRAW` solves one game and prints a line of JSON. Memory is what the peak of the process rises above what it has once the
game stands. Seeds that nothing was tuned on stand beside the others. Growth is that of the median over several draws,
since one draw of a game can be several times as hard as another of the same size.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import cmpg
from checks.bench.cmdp import afresh
from checks.bench.local import DATA, TWIN_LIMIT, fleet, platoons, real_data
from checks.bench.outcome import Outcome
from cmpg.games.local.game import LocalGame
from cmpg.scenarios.car_charging import charging
from cmpg.scenarios.robot_fleet import robots

DAY = "2019-06-12"
LIMIT = 240.0
"""Seconds after which a solve is stopped, so that all benchmarks end within half an hour."""


def day_of_cars(
    agents: int, *, site: str = "caltech", day: str = DAY, seed: int = 0, per_place: float = 0.16
) -> LocalGame:
    """Cars whose sessions are drawn from those of one day, at a site that is as much larger; its limit binds."""
    with gzip.open(DATA / "acn" / f"{site}_2019-05_2019-08.csv.gz", "rt") as stream:
        rows = [row for row in csv.DictReader(stream) if row["arrival"].startswith(day)]
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sessions.csv"
        with path.open("w", newline="") as target:
            writer = csv.DictWriter(target, list(rows[0]))
            writer.writeheader()
            for number in range(agents):
                writer.writerow(rows[rng.integers(len(rows))] | {"session_id": str(number)})
        return charging(sessions=path, day=day, capacity=round(agents * per_place), load_price=0.02 * 46 / agents)


def large_fleet(agents: int, *, side: int = 64, horizon: int = 60, seed: int = 0) -> LocalGame:
    """Robots on a drawn floor of which a fifth is walls."""
    return on_floor(np.random.default_rng(0).random((side, side)) < 0.2, agents, horizon=horizon, seed=seed)


def on_floor(walls: Any, agents: int, *, horizon: int, seed: int, keep: Path | None = None) -> LocalGame:
    """Robots on a square floor with walls [side, side], which is written to drawn.map in a folder to keep."""
    side = len(walls)
    lines = "\n".join("".join("@" if wall else "." for wall in row) for row in walls)
    with tempfile.TemporaryDirectory() as folder:
        path = (keep or Path(folder)) / "drawn.map"
        path.write_text(f"type octile\nheight {side}\nwidth {side}\nmap\n{lines}\n", encoding="utf-8")
        return robots(map=path, num_agents=agents, seed=seed, horizon=horizon, edges=False)


@dataclass(frozen=True)
class Crowd:
    """A game of many agents, and what is aimed for."""

    build: Callable[[int], LocalGame]  # with so many agents
    agents: int
    epsilon: float
    seconds: float | None = None
    gigabytes: float | None = None
    beside_twin: int | None = None  # the NumPy twin is measured with so many agents; by default, with all


GAMES: dict[str, Crowd] = {
    "charging, 10,000 drawn cars": Crowd(day_of_cars, 10_000, 1e-6, 60.0, beside_twin=300),
    "charging, 2,000 drawn cars, seed 7": Crowd(partial(day_of_cars, seed=7), 2_000, 1e-6, beside_twin=300),
    "routing, 2,000 platoons": Crowd(partial(platoons, seed=0), 2_000, 1e-6, 2.0),
    "routing, 2,000 platoons, seed 7": Crowd(partial(platoons, seed=7), 2_000, 1e-6, 2.0),
    "routing, 10,000 platoons": Crowd(partial(platoons, seed=0), 10_000, 1e-6, 30.0, beside_twin=300),
    "robots, 300, on 64 x 64 cells": Crowd(large_fleet, 300, 1e-4, 20.0, 1.0, beside_twin=20),
    "robots, 1,000, on 64 x 64 cells": Crowd(large_fleet, 1_000, 1e-4, None, 3.0, beside_twin=40),
}
QUICK: dict[str, Crowd] = {
    "charging, 200 drawn cars": Crowd(day_of_cars, 200, 1e-6, beside_twin=50),
    "robots, 12, on 20 x 20 cells": Crowd(partial(large_fleet, side=20, horizon=40), 12, 1e-4),
}


@dataclass(frozen=True)
class Growth:
    """Games of one kind, drawn by seed, with more and more agents."""

    build: Callable[..., LocalGame]  # of agents and seed
    epsilon: float
    sizes: tuple[int, ...]
    few: tuple[int, ...]  # in a quick run
    draws: int
    aim: float | None = 1.15  # of the exponent


GROWTH: dict[str, Growth] = {
    "cars": Growth(day_of_cars, 1e-6, (300, 1_000, 3_000, 10_000), (50, 100), 3),
    "platoons": Growth(platoons, 1e-6, (500, 1_000, 2_000, 4_000), (20, 40), 3),
    "robots": Growth(fleet, 1e-4, (10, 20, 40, 80), (4, 8), 7),
    # One of seven cells of the same floor has a robot in the end: they are more and more in each other's way.
    "robots, crowded": Growth(fleet, 1e-4, (15, 30, 60, 120), (4, 8), 7, aim=None),
}


def peak() -> float:
    """Return the most memory that this process had, in gigabytes."""
    status = Path("/proc/self/status")
    if status.exists():  # what `resource` reports counts the parent as well
        most = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(most.split()[1]) * 1024 / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9


def resident() -> float:
    """Return the memory that this process has now, in gigabytes; where that is not known, the peak."""
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[1]) * resource.getpagesize() / 1e9 if pages.exists() else peak()


def solved(crowd: Crowd, agents: int, limit: float) -> dict[str, Any]:
    """Solve one game, and say how it went."""
    game = crowd.build(agents)
    before, began = resident(), time.process_time()
    result = cmpg.solve(game, epsilon=crowd.epsilon, time_limit=limit)
    seconds = time.process_time() - began
    after = peak()
    return {
        "seconds": seconds,
        "peak": after,
        "more": after - before,
        "certified": result.certified,
        "status": result.status.name,
        "value": float(result.certificate.values.sum()) if result.incumbent is not None else None,
    }


FAILED = {"seconds": np.nan, "peak": np.nan, "more": np.nan, "certified": False, "status": "FAILED"}


def apart(name: str, agents: int, *, kernels: str = "compiled", limit: float = LIMIT, draw: int = 0) -> dict[str, Any]:
    """Solve one game in a process of its own."""
    command = [sys.executable, "-m", "checks.bench.crowds", name, str(agents), str(limit), str(draw)]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"CMPG_KERNELS": kernels}
    )
    if ran.returncode != 0:
        print(ran.stderr[-2_000:], flush=True)
        return FAILED
    measured: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return measured


def beside_twin(name: str, crowd: Crowd, own: dict[str, Any]) -> Outcome:
    """Compare with the NumPy twin, on fewer agents where all of them would take it minutes or too much memory."""
    agents = crowd.beside_twin or crowd.agents
    if agents != crowd.agents:
        own = apart(name, agents)
    twin = apart(name, agents, kernels="numpy", limit=TWIN_LIMIT)
    what = "  against the NumPy twin" + ("" if agents == crowd.agents else f", with {agents} agents")
    print(f"    {what.strip()}: {own['seconds']:.3f} s and {twin['seconds']:.3f} s, {twin['status']}", flush=True)
    return Outcome(what, twin["seconds"] / own["seconds"], stopped=not twin["certified"])


def needs_data(name: str) -> bool:
    """Whether a row is about public data; without them it is skipped, and no other game takes its name."""
    return name.startswith(("charging", "routing", "cars", "platoons"))


def crowds(quick: bool) -> list[Outcome]:
    """Return the rows of all large games."""
    outcomes = []
    for name, crowd in (QUICK if quick else GAMES).items():
        if needs_data(name) and not real_data():
            print(f"  {name:<34} skipped: the data are not here")
            continue
        measured = apart(name, crowd.agents)
        per_agent = 1e3 * measured["more"] / crowd.agents
        memory = f"peak {measured['peak']:.2f} GB, {per_agent:.2f} MB for each agent above the game"
        print(f"  {name:<34} {measured['seconds']:8.2f} s   {measured['status']:<9}   {memory}", flush=True)
        outcomes += [
            Outcome(f"{name}: seconds of the processor", measured["seconds"], crowd.seconds, unit="s", at_most=True),
            Outcome("  certified (1) or not (0)", float(measured["certified"]), 1.0, unit=""),
            beside_twin(name, crowd, measured),
            Outcome("  peak memory of the process", measured["peak"], crowd.gigabytes, unit="GB", at_most=True),
            Outcome("  memory for each agent, above the game", per_agent, unit="MB"),
        ]
    if quick:
        outcomes += by_threads("robots, 50 on our own floor", robots(num_agents=50, horizon=24, seed=1))
    else:
        outcomes += by_threads("robots, 100", fleet(100), repeats=3)
        outcomes += by_threads("robots, 300, on 64 x 64 cells", large_fleet(300))
    for kind, each in GROWTH.items():
        if needs_data(kind) and not real_data():
            print(f"  growth of {kind}: skipped, the data are not here")
            continue
        outcomes += growth(kind, each.few if quick else each.sizes, draws=1 if quick else each.draws, aim=each.aim)
    return outcomes


def by_threads(name: str, game: LocalGame, *, repeats: int = 1) -> list[Outcome]:
    """Solve with one thread and with two, in turn: seconds on the clock, of which the least count, and the bits."""
    seconds: dict[int, list[float]] = {1: [], 2: []}
    endings = set()
    for _ in range(repeats):
        for workers, times in seconds.items():
            fresh, began = afresh(game), time.perf_counter()
            result = cmpg.solve(fresh, epsilon=1e-4, method=cmpg.Ascent(workers=workers))
            times.append(time.perf_counter() - began)
            endings.add((result.status, result.policy.fingerprint(), result.multipliers.tobytes()))
    one, two = (min(times) for times in seconds.values())
    print(f"  {name}: {one:.3f} s on the clock with one thread, {two:.3f} s with two", flush=True)
    return [
        Outcome(f"{name}: two threads, on the clock", one / two),
        Outcome("  endings with other bits", float(len(endings) - 1), 0.0, unit="", at_most=True),
    ]


def growth(kind: str, sizes: tuple[int, ...], *, draws: int, aim: float | None) -> list[Outcome]:
    """Fit seconds of the processor to a power of the number of agents, and report the memory above the game."""
    outcomes, medians = [], []
    for size in sizes:
        measured = [apart(kind, size, draw=draw) for draw in range(draws)]
        seconds, more = (float(np.median([each[what] for each in measured])) for what in ("seconds", "more"))
        certified = sum(each["certified"] for each in measured)
        spread = " ".join(f"{each['seconds']:.3f}" for each in measured)
        print(f"  {size:6d} {kind}: {spread} s, {1e3 * more:.0f} MB, {certified} certified", flush=True)
        medians.append(seconds)
        outcomes += [
            Outcome(f"{size:,} {kind}, median of {draws} draws", seconds, unit="s"),
            Outcome("  certified", float(certified), float(draws), unit=""),
            Outcome("  memory for each agent, above the game", 1e3 * more / size, unit="MB"),
        ]
    slope = float(np.polyfit(np.log(sizes), np.log(medians), 1)[0])
    return [*outcomes, Outcome(f"{kind}: exponent of the seconds in the agents", slope, aim, unit="", at_most=True)]


def main(name: str, agents: str, limit: str, draw: str) -> None:
    if name in GROWTH:
        crowd = Crowd(partial(GROWTH[name].build, seed=int(draw)), 0, GROWTH[name].epsilon)
    else:
        crowd = (GAMES | QUICK)[name]
    print(json.dumps(solved(crowd, int(agents), float(limit))))


if __name__ == "__main__":
    main(*sys.argv[1:])
