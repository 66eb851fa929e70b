"""Budgets of zero: fleets that may never collide, and transformers that may never be overloaded.

python -m checks hard-budgets        solve, confirm from outside, and write build/hard-budgets.md

Every answer is confirmed by `tests/oracles/reachability.py`, which shares no code with the library; the least sum of
arrival times is that of conflict-based search, in `tests/oracles/conflict_based_search.py`.
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from checks import BUILD, DATA
from cmpg.equilibrium.result import Result
from cmpg.equilibrium.runs import uninterrupted
from cmpg.equilibrium.solve import solve
from cmpg.games.local.game import LocalGame
from cmpg.scenarios import charging
from cmpg.scenarios.robot_fleet import robots_game, robots_world

EPSILON = 1e-4
FLEETS, HORIZON = 10, 30
"""Drawn fleets on the package's map; each is solved at every slip."""

SLIPS = (0.0, 0.1)
SESSIONS = DATA / "acn" / "caltech_2019-05_2019-08.csv.gz"
DAYS = tuple(f"2019-06-{day:02d}" for day in (3, 4, 5, 6, 7, 10, 11, 12, 13, 14))

Row = list[str]


def plain(game: LocalGame) -> dict[str, Any]:
    """Return a game as arrays, for a judge who knows nothing of the library."""
    costs = np.asarray(game.load_costs)
    assert len(costs) == 1
    agents = []
    known: dict[int, Any] = {}
    for agent in game.agents:
        states, actions = agent.reward.shape[1:]
        for name in ("transition", "uses"):
            tables = getattr(agent, name)
            if id(tables) not in known:
                once = tables[:1] if all(each is tables[0] for each in tables) else tables
                known[id(tables)] = np.stack([each.toarray().reshape(states, actions, -1) for each in once])
        agents.append(
            {
                "transition": known[id(agent.transition)],
                "uses": known[id(agent.uses)],
                "reward": np.asarray(agent.reward),
                "initial": np.asarray(agent.initial),
            }
        )
    return {"horizon": game.horizon, "agents": agents, "delay": np.asarray(game.delay), "load_cost": costs[0]}


def confirmed(game: LocalGame, result: Result) -> bool:
    """Whether reachability alone finds that nothing is ever spent, and that no agent gains without spending."""
    from oracles.reachability import gains, nothing_is_spent

    tables, policy = plain(game), [np.asarray(table) for table in result.policy.tables]
    return nothing_is_spent(tables, policy) and max(gains(tables, policy)) <= EPSILON * (1 + 1e-6)


def walked(game: LocalGame, result: Result) -> np.ndarray:
    """Return where robots stand that never slip, when they are simulated: [H + 1, n]."""
    rng, stepper = np.random.default_rng(0), game.stepper()
    path, tables = [stepper.begin(1, rng)[:, 0]], [np.asarray(table) for table in result.policy.tables]
    for h in range(game.horizon):
        rows = [table[h, s] for table, s in zip(tables, path[-1], strict=True)]
        actions = np.array([rng.choice(len(row), p=row) for row in rows])
        path.append(stepper.step(h, path[-1][:, None], actions[:, None], rng).states[:, 0])
    return np.array(path)


def meetings(path: np.ndarray) -> int:
    """Return how often robots meet on a cell, or trade cells."""
    found = sum(len(here) - len(set(here.tolist())) for here in path[:-1])
    for here, there in pairwise(path[:-1].tolist()):
        moves = {(a, b) for a, b in zip(here, there, strict=True) if a != b}
        found += len(moves & {(b, a) for a, b in moves}) // 2
    return found


def arrivals(path: np.ndarray, goals: list[int]) -> int:
    """Return the sum of the steps at which robots come to their goals for good."""
    away = path != np.array(goals)
    return int(sum(np.flatnonzero(each).max(initial=-1) + 1 for each in away.T))


def fleet_rows() -> list[Row]:
    """Solve the fleets."""
    from oracles.conflict_based_search import least_sum_of_costs

    rows = []
    for seed in range(FLEETS):
        num_agents = 5 + seed % 4
        world = robots_world(num_agents=num_agents, seed=seed, horizon=HORIZON)
        for slip in SLIPS:
            game = robots_game(world, horizon=HORIZON, threshold=0.0, success=1 - slip)
            result, seconds = timed(game)
            met, come, best, over = ("-",) * 4
            if slip == 0:
                path = walked(game, result)
                least = least_sum_of_costs(world.cells, world.starts, world.goals, horizon=HORIZON)
                total = arrivals(path, [world.cells.index(goal) for goal in world.goals])
                met, come, best = str(meetings(path)), str(total), "not found" if least is None else str(least)
                over = "-" if least is None else f"{100 * (total / least - 1):.1f} %"
            late = -float(result.values.sum())
            verdict = "yes" if confirmed(game, result) else "NO"
            name = f"fleet {seed}, {num_agents} robots, slip {slip:g}"
            found = [name, result.status.name, verdict, f"{late:.3f}", met, come, best, over, f"{seconds:.2f}"]
            rows.append(found)
            print(*rows[-1], sep=" | ", flush=True)
    return rows


def charging_rows() -> list[Row]:
    """Solve the charging days, where the data are there."""
    if not SESSIONS.is_file():
        print(f"{SESSIONS} is not there: charging days are left out")
        return []
    rows = []
    for day in DAYS:
        game = charging(sessions=SESSIONS, day=day, threshold=0.0)
        result, seconds = timed(game)
        verdict = "yes" if confirmed(game, result) else "NO"
        cost = -float(result.values.sum())
        rows.append(
            [f"Caltech, {day}", str(game.num_agents), result.status.name, verdict, f"{cost:.3f}", f"{seconds:.2f}"]
        )
        print(*rows[-1], sep=" | ", flush=True)
    return rows


def timed(game: LocalGame) -> tuple[Result, float]:
    """Solve a game; return the seconds of a processor, too."""
    began = time.process_time()
    result = uninterrupted(solve(game, epsilon=EPSILON))
    return result, time.process_time() - began


HEAD = """\
# Budgets of zero

Written by `python -m checks hard-budgets`. Robots that may never collide, and transformers that may never be
overloaded: the threshold is zero, no price is high enough, and the certificate proves by support that no agent gains
([certificates.md](certificates.md#hard-budgets-proofs-by-support)).

An answer is *confirmed* if a judge that shares no code with the library (`tests/oracles/reachability.py`) finds that no
load that is possible under the policy costs anything, and that no agent gains more than ε = {epsilon:g} by any
deviation by which nothing can ever be spent. What is possible is computed by sets of states, without rounding.

## Fleets

Drawn starts and goals on the package's map, {horizon} steps. What the game counts is the expected number of steps that
robots are not at their goals. Robots that never slip are also simulated, and meetings on a cell and along an edge are
counted, and the steps after which they are at their goals for good; the *least sum* of those is that of conflict-based
search (`tests/oracles/conflict_based_search.py`), which plans for all robots at once. (A robot may leave its goal again
to let another one pass, and come back: then it is late by less than its arrival says.)

"""


def page(fleets: list[Row], days: list[Row]) -> str:
    """Return the page."""
    certified = sum(row[1] == "CERTIFIED" for row in fleets)
    right = sum(row[2] == "yes" for row in fleets)
    solved = [row for row in fleets if row[7] != "-"]
    total, least = (sum(float(row[column]) for row in solved) for column in (5, 6))
    met = sum(int(row[4]) for row in fleets if row[4] != "-")
    worst = max(float(row[7].split()[0]) for row in solved)
    said = (
        f"{certified} of {len(fleets)} are CERTIFIED, and {right} confirmed. Robots that never slip met {met} times. "
        f"On the {len(solved)} fleets that conflict-based search solves, the sum of arrivals is {total:.0f}, "
        f"{100 * (total / least - 1):.1f} % above the least, {least:.0f}; {worst:.1f} % at worst."
    )
    head = ("fleet", "status", "confirmed", "steps late", "meetings", "arrivals", "least sum", "above it", "s")
    parts = [
        HEAD.format(epsilon=EPSILON, horizon=HORIZON) + said,
        "",
        *_table(head, fleets),
        "",
        "## Charging days",
        "",
    ]
    if days:
        certified, right = sum(row[2] == "CERTIFIED" for row in days), sum(row[3] == "yes" for row in days)
        parts += [
            f"{certified} of {len(days)} are CERTIFIED, and {right} confirmed. Costs are summed over the cars.",
            "",
        ]
        parts += _table(("day", "cars", "status", "confirmed", "cost", "s"), days)
    else:
        parts += ["The recorded sessions were not there when this page was written."]
    return "\n".join([*parts, ""])


def _table(head: tuple[str, ...], rows: list[Row]) -> list[str]:
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)]


def main(argv: list[str]) -> None:
    """Solve everything, and write the page."""
    argparse.ArgumentParser(description=__doc__).parse_args(argv)
    written = page(fleet_rows(), charging_rows())
    Path(BUILD / "hard-budgets.md").write_text(written, "utf-8")
