"""Many agents: best responses against HiGHS, whole equilibria by the clock, and growth in agents and map size.

Best responses are compared at one position, where the agents have settled at a common price, on the CMDPs of the
agents to whom the budget is dearest; both solve the same CMDP, and their values are compared. HiGHS is stopped at its
time limit, and then the bound of the ratio is printed.
"""

from __future__ import annotations

import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import cmpg
from cmpg.checks import SolverError
from cmpg.equilibrium.price_start import price_start
from cmpg.equilibrium.start import feasible_start
from cmpg.scenarios.charging import charging
from cmpg.scenarios.congestion import counting_congestion_game
from cmpg.scenarios.robots import robots
from cmpg.scenarios.routing import routing

DATA = Path(__file__).parents[2] / "shared" / "data"


def best_responses(name: str, game: Any, *, limit: float, asked: int) -> None:
    """Print how much faster Exact is than HiGHS on the same CMDPs."""
    settled = price_start(game, feasible_start(game).policy)
    position = game.at(settled.policy)
    cmdps = [position.induced_cmdp(agent) for agent in range(game.num_agents)]
    bounded = [cmdp for cmdp in cmdps if cmpg.Exact()(cmdp).multipliers.max(initial=0.0) > 0] or cmdps
    own, highs, stopped, difference = 0.0, 0.0, False, 0.0
    for cmdp in bounded[:asked]:
        began = time.perf_counter()
        mine = cmpg.Exact()(cmdp)
        own += time.perf_counter() - began
        began = time.perf_counter()
        try:
            theirs = cmpg.LinearProgram(time_limit=limit)(cmdp)
            difference = max(difference, abs(mine.value - theirs.value) / max(1.0, abs(mine.value)))
        except SolverError:
            stopped = True
        highs += time.perf_counter() - began
    ratio = f"{'> ' if stopped else ''}{highs / own:.0f}x"
    print(
        f"{name:<34} Exact {1e3 * own:9.1f} ms   HiGHS {highs:8.2f} s   {ratio:>8}   values differ by {difference:.1e}"
    )


def whole(name: str, game: Any, epsilon: float) -> None:
    """Print how an equilibrium ends, how long it takes, and what selfish play would cost."""
    free = cmpg.solve(replace(game, thresholds=np.full(len(game.thresholds), 1e9)), epsilon=epsilon)
    began = time.perf_counter()
    result = cmpg.solve(game, epsilon=epsilon)
    seconds = time.perf_counter() - began
    gap = result.certificate.epsilon if result.certificate else np.inf
    print(
        f"{name:<34} {result.status.name} at {gap:.1e} in {seconds:7.2f} s   cost {result.costs[0]:.4f} of "
        f"{game.thresholds[0]:g}, selfish {free.costs[0]:.2f}"
    )


def growth(sizes: tuple[int, ...], floor: Path | None) -> None:
    """Print time and peak memory against the number of robots."""
    for agents in sizes:
        game = robots(map=floor, agents=agents, seed=1)
        tracemalloc.start()
        began = time.perf_counter()
        result = cmpg.solve(game, epsilon=1e-4)
        seconds, peak = time.perf_counter() - began, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"{agents:>4} robots: {result.status.name}, {seconds:8.1f} s, peak {peak / 2**20:7.0f} MiB (traced)")


def main(*, quick: bool = False) -> None:
    real = DATA.is_dir()
    print("data:", "real (ACN, MovingAI, TNTP)" if real else "the package's own samples; the real files are not here")
    floor = DATA / "maps" / "random-32-32-20.map" if real and not quick else None
    sessions = DATA / "acn" / "caltech_2019-05_2019-08.csv.gz" if real else None
    city = {"network": DATA / "tntp/SiouxFalls_net.tntp", "trips": DATA / "tntp/SiouxFalls_trips.tntp"} if real else {}
    cars = charging(sessions=sessions, day="2019-06-12" if real else None)
    fleet = robots(map=floor, agents=30 if floor else 8, seed=1)
    platoons = routing(**city, agents=60 if real else 20, seed=0)
    limit = 10.0 if quick else 120.0
    best_responses("charging", cars, limit=limit, asked=5)
    best_responses("routing", platoons, limit=limit, asked=5)
    best_responses("robots", fleet, limit=limit, asked=1)
    whole(f"charging, {cars.num_agents} cars", cars, 1e-6)
    whole(f"robots, {fleet.num_agents}", fleet, 1e-4)
    whole(f"routing, {platoons.num_agents} platoons", platoons, 1e-6)
    if not quick:
        whole("routing, 120 platoons", routing(**city, agents=120, seed=0), 1e-6)
        whole("congestion by counts, n = 100", counting_congestion_game(num_agents=100), 1e-6)
    growth((5, 10) if quick else (10, 20, 40, 80), floor)


if __name__ == "__main__":
    main()
