"""Seven draws of each kind of work, the median and the worst: shapes, maps and days that nothing was tuned on.

A row of `ROWS` is a work that is drawn by a seed; seconds are those of the processor, of whole solves to a certificate
or of a best response. Where a peer is named, it has the same draw in the same run. A row whose data or whose peer is
not installed is skipped, and never replaced by something else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import cmpg
from checks import DATA
from checks.bench.crowds import day_of_cars, large_fleet, on_floor
from checks.bench.local import fleet, real_data
from checks.bench.outcome import Outcome
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.highs import propose
from cmpg.cmdp.linear_program import occupancy_model
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import plan
from cmpg.games import CountingGame, JointGame, LocalAgent, LocalGame
from cmpg.games.counting.vectors import LargestCount
from cmpg.policy import JointPolicy
from cmpg.scenarios.car_charging import charging
from cmpg.scenarios.platoon_routing import routing

DRAWS, FIRST = 7, 4_000
"""Draws of a row, and the first seed."""

LIMIT = 120.0
"""Seconds after which a solve is stopped."""

Work = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """What is drawn by a seed, and its aims."""

    name: str
    draw: Callable[[int], Work]  # the work of a seed
    median: float | None = None  # aims, in seconds
    worst: float | None = None
    peer: Callable[[int], Work] | None = None  # the peer's work on the same draw
    ratio: float | None = None  # how many times slower the peer is to be
    draws: int = DRAWS
    data: bool = False  # whether it needs the data folder
    package: str | None = None  # the package of the peer
    large: bool = False  # left out of a quick run


# --- What is drawn ----------------------------------------------------------------------------------------------------


def random_rows(rng: np.random.Generator, rows: int, states: int, successors: int) -> sp.csr_array:
    """Return a transition [rows, S] with so many successors in each row."""
    index = (np.repeat(np.arange(rows), successors), rng.integers(states, size=rows * successors))
    return sp.csr_array((rng.dirichlet(np.ones(successors), size=rows).ravel(), index), shape=(rows, states))


def random_cmdp(seed: int, *, states: int, constraints: int = 1, actions: int = 5, **length: Any) -> CMDP:
    """Five successors; every threshold is half-way between the costs of the cheapest and the best plan."""
    rng = np.random.default_rng(seed)
    shape = (1, states, actions)
    base = CMDP(
        transition=(random_rows(rng, states * actions, states, 5),),
        reward=rng.random(shape),
        costs=rng.random((constraints, *shape)),
        thresholds=np.zeros(constraints),
        initial=np.full(states, 1 / states),
        **length,
    )
    cheap = plan(base, np.ones(constraints), reward_weight=0.0).costs
    return replace(base, thresholds=cheap + np.abs(plan(base, np.zeros(constraints)).costs - cheap) / 2)


def by_exact(seed: int, **sizes: Any) -> Work:
    return partial(Exact(), random_cmdp(seed, **sizes))


def by_highs(seed: int, **sizes: Any) -> Work:
    return partial(propose, occupancy_model(random_cmdp(seed, **sizes)))


def by_plan(seed: int, **sizes: Any) -> Work:
    return partial(plan, random_cmdp(seed, **sizes), np.zeros(1))


def by_quantecon(seed: int, **sizes: Any) -> Work:
    from quantecon.markov import DiscreteDP

    cmdp = random_cmdp(seed, **sizes)
    states, actions = np.divmod(np.arange(cmdp.num_states * cmdp.num_actions), cmdp.num_actions)
    problem = DiscreteDP(cmdp.reward[0].ravel(), sp.csr_matrix(cmdp.transition[0]), cmdp.discount, states, actions)
    problem.solve(method="mpi", epsilon=1e-9)  # compiles
    return partial(problem.solve, method="mpi", epsilon=1e-9, max_iter=10_000)


def counting_game(seed: int, *, agents: int) -> Work:
    """Congestion with private rewards and a state that no action moves: it has a potential."""
    states, actions = 5, 4
    rng = np.random.default_rng(seed)
    game = CountingGame(
        rewards=-np.cumsum(rng.random((1, states, actions, agents + 1)), axis=-1) / agents,
        classes=LargestCount((agents // 2,)),
        transition=np.repeat(rng.dirichlet(np.ones(states), size=(1, states))[:, :, None], 2, axis=2),
        costs=[[[[0.0, 1.0]] * states]],
        thresholds=[0.2],
        initial=np.full(states, 1 / states),
        horizon=5,
        private_rewards=rng.random((agents, 1, states, actions)),
    )
    return partial(certified, game, 1e-6)


def sparse_game(seed: int, *, states: int) -> Work:
    """Two agents with one reward, four actions and four successors, for 20 steps."""
    rng = np.random.default_rng(seed)
    shape = (1, states, 4, 4)
    game = JointGame(
        transition=(random_rows(rng, 16 * states, states, 4),),
        rewards=np.broadcast_to(rng.random(shape), (2, *shape)),
        costs=rng.random((1, *shape)),
        thresholds=[7.0],
        initial=np.full(states, 1 / states),
        horizon=20,
    )
    return partial(certified, game, 1e-6)


def tight_local_game(seed: int, *, agents: int, resources: int, kinds: int) -> Work:
    """Quadratic costs of loads, and a fifth less of a budget than any simple policy needs.

    With few kinds it is harder, not easier: agents of a kind want the same few resources, where every move of one
    changes what the others pay. At 200 agents and seed 4,000, 5 kinds took 5,951 moves of the search and 103 of the
    ascent, each an exact best response; 200 kinds took 683 and none.
    """
    rng = np.random.default_rng(seed)
    rows, states = 80, 20

    def kind() -> dict[str, Any]:
        users = np.flatnonzero(rng.random(rows) < 0.8)
        index = (users, rng.integers(resources, size=len(users)))
        used, moves = sp.csr_array((np.ones(len(users)), index), (rows, resources)), random_rows(rng, rows, states, 3)
        first = np.eye(states)[rng.integers(states)]
        return {"transition": (moves,), "uses": (used,), "initial": first, "reward": rng.random((1, states, 4))}

    made = [kind() for _ in range(kinds)]
    loads = np.arange(agents + 1.0)
    game = LocalGame(
        agents=tuple(LocalAgent(**made[agent % kinds]) for agent in range(agents)),
        delay=np.broadcast_to(0.05 * loads, (1, resources, agents + 1)),
        load_costs=np.broadcast_to(loads**2, (1, 1, resources, agents + 1)),
        thresholds=[0.0],
        horizon=20,
    )
    simple = (JointPolicy.reference(game.policy_shapes), game.uniform_policy())
    return partial(certified, game.with_thresholds([0.8 * min(game.at(each).costs[0] for each in simple)]), 1e-3)


def rooms(side: int) -> Any:
    """Rooms of seven by seven cells with a door in each wall."""
    walls = np.zeros((side, side), dtype=bool)
    walls[7::8], walls[:, 7::8] = True, True
    walls[7::8, 3::8], walls[3::8, 7::8] = False, False
    return walls


def warehouse(side: int) -> Any:
    """Shelves of two by six cells between aisles."""
    rows, columns = np.indices((side, side))
    return (rows % 3 != 0) & (columns % 8 > 1)


def robots_on(seed: int, walls: Any, *, agents: int, horizon: int = 60) -> Work:
    return partial(certified, on_floor(walls, agents, horizon=horizon, seed=seed), 1e-4)


def cars_of(seed: int, site: str, day: str) -> Work:
    return partial(certified, day_of_cars(10_000, site=site, day=day, seed=seed), 1e-6)


def crowd_of_cars(seed: int, site: str, day: str, per_car: float) -> Work:
    """A million cars of a day's kinds; ε is about a millionth of the range of their rewards."""
    sessions = DATA / "acn" / f"{site}_2019-05_2019-08.csv.gz"
    capacity = per_car * charging(sessions=sessions, day=day).num_agents
    game = charging(sessions=sessions, day=day, capacity=capacity, num_agents=MILLION, seed=seed)
    return partial(certified, game, 3e-5)


def vehicles(seed: int) -> Work:
    """A million vehicles on the roads of Sioux Falls."""
    net, trips = (DATA / "tntp" / f"SiouxFalls_{name}.tntp" for name in ("net", "trips"))
    game = routing(network=net, trips=trips, mode="static", num_agents=MILLION, seed=seed)
    return partial(certified, game, 1e-6)


def whole_command(seed: int) -> Work:
    """What a user waits for: 24 to 30 robots, the bound, and the answer in a folder."""
    folder = tempfile.mkdtemp()
    options = ["--agents", str(24 + seed % 7), "--seed", str(seed), "--out", f"{folder}/run"]
    floor = ["--map", str(Path(folder) / "drawn.map")]
    on_floor(np.random.default_rng(seed).random((32, 32)) < 0.1, 1, horizon=60, seed=0, keep=Path(folder))
    command = [sys.executable, "-m", "cmpg", "solve", "robots", *floor, "--horizon", "60", *options]
    # As a user has it: modules are compiled once, and kept.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return partial(subprocess.run, command, capture_output=True, check=True, env=environment)


def certified(game: Any, epsilon: float) -> bool:
    """Solve a game; return whether the answer is certified."""
    return cmpg.solve(game, epsilon=epsilon, time_limit=LIMIT).certified


GAMMA = {"states": 1_000, "discount": 0.99}
MILLION = 1_000_000
DAYS = (("caltech", "2019-06-12"), ("caltech", "2019-07-24"), ("jpl", "2019-07-10"), ("jpl", "2019-06-12"))

ROWS = (
    Row("discounted CMDP, S=1,000 k=1", partial(by_exact, **GAMMA), peer=partial(by_highs, **GAMMA), ratio=20.0),
    Row(
        "discounted plan, S=2,000",
        partial(by_plan, **GAMMA | {"states": 2_000}),
        peer=partial(by_quantecon, **GAMMA | {"states": 2_000}),
        ratio=1.0,
        package="quantecon",
    ),
    *(
        Row(f"CMDP, S={states} k={many} (beside k=1)", partial(by_exact, **few), peer=partial(by_exact, **one))
        for states, many in ((50, 2), (300, 2), (300, 5))
        for one in ({"states": states, "horizon": 15},)
        for few in (one | {"constraints": many},)
    ),
    *(
        Row(f"counting with a potential, {agents} agents", partial(counting_game, agents=agents), worst=aim)
        for agents, aim in ((20, 0.15), (40, 0.25), (80, 0.6))
    ),
    Row("tight local, 200 agents of 5 kinds", partial(tight_local_game, agents=200, resources=100, kinds=5)),
    Row("tight local, 200 agents of 200 kinds", partial(tight_local_game, agents=200, resources=100, kinds=200)),
    Row(
        "tight local, 1,000 agents, 1,000 resources",
        partial(tight_local_game, agents=1_000, resources=1_000, kinds=1_000),
        median=5.0,
        draws=3,
        large=True,
    ),
    Row("sparse joint, S=10,000", partial(sparse_game, states=10_000), median=1.5, draws=3, large=True),
    Row("sparse joint, S=100,000", partial(sparse_game, states=100_000), median=30.0, draws=1, large=True),
    *(
        Row(
            f"10,000 cars, {site} {day}",
            partial(cars_of, site=site, day=day),
            worst=8.0,
            draws=1,
            data=True,
            large=True,
        )
        for site, day in DAYS
    ),
    Row(
        "a million cars, caltech 2019-06-12",
        partial(crowd_of_cars, site="caltech", day=DAYS[0][1], per_car=0.16),
        worst=2.0,
        data=True,
    ),
    Row(
        "a million cars, jpl 2019-07-10, tight",
        partial(crowd_of_cars, site="jpl", day=DAYS[2][1], per_car=0.16),
        worst=8.0,
        data=True,
        large=True,
    ),
    Row("a million vehicles, Sioux Falls", vehicles, worst=30.0, data=True),
    Row("30 robots, rooms", partial(robots_on, walls=rooms(32), agents=30), median=0.4),
    Row("30 robots, warehouse", partial(robots_on, walls=warehouse(32), agents=30), median=0.4),
    Row(
        "20 robots, 128 x 128 cells, 150 steps",
        partial(robots_on, walls=rooms(128), agents=20, horizon=150),
        draws=3,
        large=True,
    ),
    Row(
        "10 robots, 256 x 256 cells, 300 steps",
        partial(robots_on, walls=rooms(256), agents=10, horizon=300),
        draws=1,
        large=True,
    ),
    Row("cmpg solve robots, 24 to 30 of them, the whole command", whole_command, median=1.5),
    Row(
        "100 robots, a public floor",
        lambda seed: partial(certified, fleet(100, seed=seed), 1e-4),
        worst=2.0,
        data=True,
        large=True,
    ),
    Row(
        "300 robots, 64 x 64 cells",
        lambda seed: partial(certified, large_fleet(300, seed=seed), 1e-4),
        worst=6.0,
        draws=3,
        large=True,
    ),
)


def seconds_of(work: Work) -> tuple[float, Any]:
    """Return the processor's seconds of some work, its processes included, and its answer."""
    before = sum(_times())
    answer = work()
    return sum(_times()) - before, answer


def _times() -> tuple[float, float]:
    import resource

    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time(), children.ru_utime + children.ru_stime


def measured(row: Row, draws: int) -> list[Outcome]:
    own, other, wrong = [], [], 0
    for seed in range(FIRST, FIRST + draws):
        seconds, answer = seconds_of(row.draw(seed))
        own.append(seconds)
        wrong += answer is False
        if row.peer is not None:
            other.append(seconds_of(row.peer(seed))[0])
    spread = " ".join(f"{each:.3g}" for each in own)
    beside = "; the peer " + " ".join(f"{each:.3g}" for each in other) if other else ""
    print(f"  {row.name:<56} {spread} s{beside}", flush=True)
    outcomes = [
        Outcome(f"{row.name}: median of {draws}", float(np.median(own)), row.median, unit="s", at_most=True),
        Outcome("  the worst", max(own), row.worst, unit="s", at_most=True),
    ]
    if wrong:
        outcomes.append(Outcome("  not certified", float(wrong), 0.0, unit="", at_most=True))
    if other:
        slower = float(np.median(np.divide(other, own)))
        outcomes.append(Outcome("  the peer takes", slower, row.ratio))
    return outcomes


def main(quick: bool) -> list[Outcome]:
    outcomes = []
    for row in ROWS:
        missing = "the data" if row.data and not real_data() else row.package
        if (quick and row.large) or (row.data and not real_data()) or (row.package and find_spec(row.package) is None):
            print(f"  {row.name:<56} skipped{'' if quick and row.large else f': {missing} is not here'}")
            continue
        outcomes += measured(row, min(row.draws, 2) if quick else row.draws)
    return outcomes
