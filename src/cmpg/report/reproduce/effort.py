"""How much is run: the paper's own numbers of runs, or few enough for a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Tick = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class Effort:
    """Numbers of runs and draws; the defaults are the paper's, where it names any."""

    dual_points: int = 1000
    matrix_starts: int = 2000  # starts of the counter-example
    grid_runs: int = 20  # of each variant of the grid world
    own_cell_runs: int = 200  # for shares, and for the best of ten
    deviation_checks: int = 60  # own-cell endings that are tried against joint-state deviations
    congestion_runs: int = 50  # in the plots
    congestion_endings: int = 100  # of each kind of start, for the shares of endings
    primal_dual_steps: int = 200  # of the paper's solver, in each best response
    cycle_proposals: int = 20_000  # in the search for the largest 4-cycle
    lemma_draws: int = 200


FULL = Effort()
QUICK = Effort(
    matrix_starts=100,
    grid_runs=3,
    own_cell_runs=20,
    deviation_checks=6,
    congestion_runs=6,
    congestion_endings=6,
    primal_dual_steps=50,
    cycle_proposals=3000,
    lemma_draws=50,
)


@dataclass(frozen=True, eq=False)
class Setting:
    """What every study is given: how much to run, its own stream of random numbers, threads, and whom to tell."""

    effort: Effort
    seeds: np.random.SeedSequence
    jobs: int
    tick: Tick

    def streams(self, count: int) -> list[np.random.Generator]:
        """Return independent generators; every call returns new ones, in an order that does not depend on `jobs`."""
        return [np.random.default_rng(child) for child in self.seeds.spawn(count)]
