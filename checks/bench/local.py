"""Local games: whole solves beside the NumPy twin and HiGHS, with and without the budget, and growth with the agents.

Against HiGHS, two comparisons, each in one run on the same game:

* "The whole game": `solve` as it is, and the same loop from the same start with the same epsilon, in which every best
  response is a linear program: at a common price (in `CommonPrice`, where the program is built and handed to HiGHS, and
  nothing is checked again) and within the budget (in the ascent: `LinearProgram`). HiGHS is stopped after 30 seconds;
  a run that does not end certified counts as stopped.
* "One round": every agent's best response within the budget at one position, where `CommonPrice` ended, by `Exact` and
  by `LinearProgram`. This is the cost of a single response; cars have so few states that HiGHS is nearly as fast there.

Simplex and interior point are both tried, and the faster counts. Ratios are of processor time, so that other work on
the machine does not count; for HiGHS, which may use several threads, of the smaller of processor and elapsed time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

import cmpg
from checks import DATA
from checks.bench.cmdp import afresh
from checks.bench.outcome import Outcome, or_broken
from cmpg.arrays import IntArray
from cmpg.cmdp.highs import Method, propose
from cmpg.cmdp.kernels.choice import compiled
from cmpg.cmdp.linear_program import LinearProgram, occupancy_model
from cmpg.cmdp.model import CMDP
from cmpg.equilibrium.starts.common_price import CommonPrice
from cmpg.errors import SolverError
from cmpg.games.local.game import LocalGame
from cmpg.scenarios.car_charging import charging
from cmpg.scenarios.platoon_routing import routing
from cmpg.scenarios.robot_fleet import robots

HIGHS_LIMIT = 30.0
"""Seconds after which a game by HiGHS is stopped."""

METHODS: tuple[Method, ...] = ("simplex", "ipm")


@dataclass(frozen=True, eq=False)
class Case:
    name: str
    game: LocalGame
    epsilon: float
    aim: float | None = None  # how many times faster than HiGHS, or within how many seconds
    repeats: int = 1  # of which the fastest counts, on both sides


def real_data() -> bool:
    return DATA.is_dir()


def cars(day: str | None = None, *, site: str = "caltech") -> LocalGame:
    return charging(sessions=DATA / "acn" / f"{site}_2019-05_2019-08.csv.gz" if real_data() else None, day=day)


def platoons(agents: int, *, seed: int) -> LocalGame:
    if not real_data():
        return routing(num_agents=agents, seed=seed)
    folder = DATA / "tntp"
    return routing(
        network=folder / "SiouxFalls_net.tntp", trips=folder / "SiouxFalls_trips.tntp", num_agents=agents, seed=seed
    )


def fleet(
    agents: int, *, floor: str | None = "random-32-32-20", horizon: int = 60, seed: int = 1, edges: bool = False
) -> LocalGame:
    """The robots that are drawn on one of the public floors, or on our own; aims were set before there were edges."""
    path = DATA / "maps" / f"{floor}.map" if real_data() and floor is not None else None
    return robots(map=path, num_agents=agents, seed=seed, horizon=horizon, edges=edges)


class Watch:
    """Seconds since it was made: elapsed, and of the processor."""

    def __init__(self) -> None:
        self._elapsed, self._processor = time.perf_counter(), time.process_time()

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self._elapsed

    @property
    def processor(self) -> float:
        return time.process_time() - self._processor

    @property
    def smaller(self) -> float:
        return min(self.elapsed, self.processor)


class OutOfTime(Exception):
    """HiGHS has had its time."""


@dataclass(frozen=True, eq=False)
class Priced:
    """What the best policy at a price is worth, and what it does."""

    value: float
    best: IntArray  # [H, S]

    def actions(self, rng: np.random.Generator | None = None) -> IntArray:  # noqa: ARG002
        return self.best


@dataclass(frozen=True)
class ByHighs:
    """Best responses by HiGHS until a moment on the clock: at a price, and within the budget."""

    method: Method
    until: float

    def left(self) -> float:
        seconds = self.until - time.perf_counter()
        if seconds <= 0:
            raise OutOfTime
        return seconds

    def at_a_price(self, cmdp: CMDP, prices: Any) -> Priced:
        priced = cmdp.reward - np.tensordot(prices, cmdp.costs, axes=1)
        free = replace(cmdp, reward=priced, costs=cmdp.costs[:0], thresholds=cmdp.thresholds[:0], trusted=True)
        found = self._in_time(partial(propose, occupancy_model(free), method=self.method, time_limit=self.left()))
        visits = found.values.reshape(free.policy_shape)
        return Priced(float((visits * priced).sum()), visits.argmax(axis=-1))

    def __call__(self, cmdp: CMDP, *, rng: np.random.Generator | None = None) -> Any:
        return self._in_time(partial(LinearProgram(self.method, self.left()), cmdp, rng=rng))

    def _in_time(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except SolverError:
            self.left()
            raise


def whole_game(case: Case, limit: float) -> list[Outcome]:
    own = np.inf
    for _ in range(case.repeats):
        watch = Watch()
        ours = cmpg.solve(case.game, epsilon=case.epsilon)
        own = min(own, watch.processor)
    print(f"{case.name}: Exact {own:.2f} s   {_ending(ours)}", flush=True)
    runs = [
        min((_by_highs(case, method, limit) for _ in range(case.repeats)), key=lambda run: run.seconds)
        for method in METHODS
    ]
    for method, run in zip(METHODS, runs, strict=True):
        print(f"  HiGHS {method:<8} {'' if run.certified else '> '}{run.seconds:8.2f} s   {run.ending}", flush=True)
    done = [run.seconds for run in runs if run.certified]
    best = min(done or [run.seconds for run in runs])
    return [Outcome(f"{case.name}: the whole game, against HiGHS", best / own, case.aim, stopped=not done)]


def _ending(result: cmpg.Result) -> str:
    if result.incumbent is None:
        return f"{result.status.name}, without a policy"
    return f"{result.status.name} at {result.certificate.epsilon:.1e}, total value {result.values.sum():.4f}"


@dataclass(frozen=True)
class HighsRun:
    seconds: float
    certified: bool
    ending: str


def _by_highs(case: Case, method: Method, limit: float) -> HighsRun:
    """Solve the game with linear programs."""
    watch = Watch()
    highs = ByHighs(method, time.perf_counter() + limit)
    try:
        # Compiled turns call no solver; HiGHS is compared where agents respond one by one.
        with patch("cmpg.equilibrium.best_responses.maximise", highs.at_a_price), kernels("numpy"):
            result = cmpg.solve(case.game, epsilon=case.epsilon, method=cmpg.Ascent(solver=highs))
    except OutOfTime:
        return HighsRun(watch.smaller, False, "stopped")
    except SolverError as problem:
        return HighsRun(watch.smaller, False, f"no answer: {problem}")
    return HighsRun(watch.smaller, result.certified, _ending(result))


@contextmanager
def kernels(name: str) -> Iterator[None]:
    """Choose the compiled kernels, or their NumPy twins."""
    with patch.dict(os.environ, {"CMPG_KERNELS": name}):
        yield


TWIN_LIMIT = 20.0
"""Seconds after which a solve by the NumPy twin is stopped; the ratio is then a lower bound."""


def worse_by(own: float, twin: float) -> float:
    return (twin - own) / abs(twin)


def against_the_twin(case: Case, totals: list[tuple[float, float]]) -> list[Outcome]:
    """Solve by compiled kernels and by their NumPy twins, each on a game of its own, and compare time and value.

    Both total values go into `totals`: equilibria are not unique, so that one game may end worse, but not all together.
    """
    seconds, results = {}, {}
    for name, repeats, limit in (("compiled", case.repeats, np.inf), ("numpy", 1, TWIN_LIMIT)):
        with kernels(name):
            times = []
            for _ in range(repeats):
                game = afresh(case.game)
                watch = Watch()
                results[name] = cmpg.solve(game, epsilon=case.epsilon, time_limit=limit)
                times.append(watch.processor)
            seconds[name] = min(times)
        print(f"{case.name}, {name}: {seconds[name]:.3f} s of the processor, {_ending(results[name])}", flush=True)
    own, twin = results["compiled"], results["numpy"]
    outcomes = [
        Outcome(f"{case.name}: seconds of the processor", seconds["compiled"], case.aim, unit="s", at_most=True),
        Outcome("  epsilon proved", own.certificate.epsilon, case.epsilon, unit="", at_most=True),
        Outcome("  against the NumPy twin", seconds["numpy"] / seconds["compiled"], stopped=not twin.certified),
    ]
    if twin.certified:
        totals.append((float(own.values.sum()), float(twin.values.sum())))
        outcomes.append(Outcome("  total value, worse than the twin's by", worse_by(*totals[-1]), unit=""))
    return outcomes


def one_round(case: Case, limit: float) -> list[Outcome]:
    start = CommonPrice()(case.game).policy
    assert start is not None
    position = case.game.at(start)
    cmdps = [position.induced_cmdp(agent) for agent in range(case.game.num_agents)]
    watch = Watch()
    ours = [cmpg.Exact()(cmdp) for cmdp in cmdps]
    own = watch.processor / len(cmdps)
    times, differences = [], []
    for method in METHODS:
        watch, queries, solved = Watch(), 0, 0
        highs = ByHighs(method, time.perf_counter() + limit)
        for cmdp, mine in zip(cmdps, ours, strict=True):
            queries += 1
            try:
                differences.append(abs(highs(cmdp).value - mine.value) / float(cmdp.sizes[0]))
                solved += 1
            except OutOfTime:
                break
            except SolverError:
                continue  # it has no answer that checks, and its time counts all the same
        times.append(watch.smaller / queries)
        text = f"HiGHS {method} {1e3 * times[-1]:.1f} ms ({solved} of {queries} solved)"
        print(f"  one response: Exact {1e3 * own:.1f} ms, {text}", flush=True)
    ratio = Outcome(f"{case.name}: one round, against HiGHS", min(times) / own, stopped=not differences)
    if not differences:
        return [ratio]
    return [ratio, Outcome("  values, to the largest sum of rewards", max(differences), 1e-8, unit="", at_most=True)]


def by_the_clock(case: Case) -> list[Outcome]:
    """Solve without the budget and with it, and print both."""
    selfish = cmpg.solve(replace(case.game, thresholds=np.full(case.game.num_constraints, 1e9)), epsilon=case.epsilon)
    watch = Watch()
    result = cmpg.solve(case.game, epsilon=case.epsilon)
    elapsed, processor = watch.elapsed, watch.processor
    print(f"{case.name}: {processor:.2f} s of the processor, {elapsed:.2f} s elapsed, {_ending(result)}")
    print(f"  total value {result.values.sum():.4f}, of selfish play {selfish.values.sum():.4f}", flush=True)
    return [
        Outcome(f"{case.name}: epsilon proved", result.certificate.epsilon, case.epsilon, unit="", at_most=True),
        Outcome(
            "  cost, and the budget", float(result.costs[0]), float(case.game.thresholds[0]), unit="", at_most=True
        ),
        Outcome("  cost of selfish play", float(selfish.costs[0]), unit=""),
        Outcome("  seconds of the processor", processor, case.aim, unit="s", at_most=True),
    ]


def by_floor(cases: list[tuple[str, LocalGame]]) -> list[Outcome]:
    """Return seconds of the processor; print them for each (agent, step, state, action) too."""
    outcomes = []
    for name, game in cases:
        watch = Watch()
        result = cmpg.solve(game, epsilon=1e-4)
        seconds = watch.processor
        size = sum(int(np.prod(shape)) for shape in game.policy_shapes)
        text = f"{seconds:8.3f} s   {1e9 * seconds / size:6.1f} ns for each of {size:.3g} (agent, step, state, action)"
        print(f"  {name:<24} {result.status.name:<9} {text}", flush=True)
        outcomes.append(Outcome(f"{name}: {result.status.name.lower()}", seconds, unit="s"))
    return outcomes


def cases_against_highs(quick: bool) -> list[Case]:
    if quick:
        return [
            Case("charging, our own day", charging(), 1e-6, 5),
            Case("routing, our own city", routing(), 1e-6, 5),
            Case("robots, 4 on our own floor, H=30", robots(num_agents=4, horizon=30), 1e-4, 20),
        ]
    return [
        Case("charging", cars("2019-06-12" if real_data() else None), 1e-6, 5, repeats=3),
        Case("routing, 120 platoons", platoons(120, seed=0), 1e-6, 5),
        Case("robots, 30", fleet(30), 1e-4, 20),
    ]


def cases_by_the_clock(quick: bool) -> list[Case]:
    if quick:
        return [Case("charging, our own day", charging(), 1e-6)]
    days = [("2019-06-12", "caltech"), (None, "caltech"), ("2019-08-30", "jpl")] if real_data() else [(None, "own")]
    cases = []
    for day, site in days:
        game = cars(day, site=site)
        cases.append(Case(f"charging, {site}, {day or 'the busiest day'}, {game.num_agents} cars", game, 1e-6))
    return cases


def cases_against_the_twin(quick: bool) -> list[Case]:
    """The aims are seconds of the processor for a whole solve; other seeds show that nothing is tuned to the first."""
    if quick:
        return [Case("robots, 8 on our own floor", robots(), 1e-4), Case("routing, our own city", routing(), 1e-6)]
    return [
        Case("charging, 46 cars", cars("2019-06-12" if real_data() else None), 1e-6, 0.03, repeats=5),
        Case("routing, 120 platoons", platoons(120, seed=0), 1e-6, 0.06, repeats=5),
        Case("routing, 120 platoons, seed 7", platoons(120, seed=7), 1e-6, 0.06, repeats=5),
        Case("robots, 30", fleet(30), 1e-4, 0.4, repeats=3),
        Case("robots, 30, seed 7", fleet(30, seed=7), 1e-4, 0.4, repeats=3),
        Case("robots, 30, with edges", fleet(30, edges=True), 1e-4),
        Case("robots, 100", fleet(100), 1e-4, 1.8, repeats=3),
        Case("robots, 100, seed 7", fleet(100, seed=7), 1e-4, 1.8, repeats=2),
        Case("robots, 100, with edges", fleet(100, edges=True), 1e-4),
    ]


def main(quick: bool) -> list[Outcome]:
    from checks.bench.crowds import crowds  # which takes what is above

    if not real_data():
        print(f"there is no {DATA}: the package's own samples stand in for the public files")
    outcomes: list[Outcome] = []
    for case in cases_against_highs(quick):
        outcomes += or_broken(case.name, partial(whole_game, case, HIGHS_LIMIT))
        outcomes += or_broken(case.name, partial(one_round, case, HIGHS_LIMIT / 2))
    for case in cases_by_the_clock(quick):
        outcomes += or_broken(case.name, partial(by_the_clock, case))
    if compiled() is not None:
        totals: list[tuple[float, float]] = []
        for case in cases_against_the_twin(quick):
            outcomes += or_broken(case.name, partial(against_the_twin, case, totals))
        own, twin = map(sum, zip(*totals, strict=True))
        worse = worse_by(own, twin)
        outcomes.append(Outcome("all of these games: worse than the twins by", worse, 0.005, unit="", at_most=True))
        outcomes += or_broken("crowds", partial(crowds, quick))
    print("the floor, 8 robots, H=30")
    floors = ("8x8", None) if quick else ("8x8", None, "random-32-32-20", "random-32-32-10", "empty-32-32")
    fleets = [(floor or "our own floor", fleet(8, floor=floor, horizon=30)) for floor in floors]
    cells = [f"8 robots on {name}, {game.num_resources} cells, H=30" for name, game in fleets]
    return outcomes + by_floor([(name, game) for name, (_, game) in zip(cells, fleets, strict=True)])
