"""How a rota is found: the best mixture of product policies, none of which is folded into one policy.

max Σ_m w_m Φ(d^m) subject to Σ_m w_m V^c(d^m) ≤ α, over laws w of policies d, is a linear program with k + 1 rows. A
vertex has at most k + 1 modes, and with its multipliers λ every mode has Φ − λ·V^c = ν, the same number; what is left
of a threshold with λ_j > 0 is zero.

*With a planner* (one dynamic program maximises Φ − λ·V^c over all policies: C1, C2, C4): the search of
`cmpg.cmdp.frontier` finds the vertex, as it does for a CMDP. Every mode maximises Φ − λ·V^c, so it is a Nash policy of
the game in which all pay λ, and the value is D*.

*Without one* (own-state policies, and whatever has a potential): columns are priced by best-response dynamics. At the
multipliers λ of the known columns let the agents move in turn from every mode, each to what is best for it if it pays
λ. If no agent moves in any mode, all modes are Nash policies of the priced game: done. Otherwise Φ − λ·V^c has risen
above ν, so the end is a new column, and the program is solved again. There are finitely many deterministic policies, so
this ends; it needs no global maximiser, and only a feasible policy to begin with. What it ends with may be worth less
than D*. It begins with a Nash policy, so it is worth at least that, by the potential.

Both need that an agent that a constraint does not bind cannot change its cost: otherwise that agent pays λ in the
search, and would not in the claim.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.columns import LEAST_UNIT, MasterProgram
from cmpg.cmdp.frontier import CMDPProgram, best_mixture
from cmpg.cmdp.planning import Plan, plan
from cmpg.equilibrium.best_responses import dynamics_at
from cmpg.equilibrium.result import Status
from cmpg.errors import OutOfTimeError
from cmpg.games.devices import Rota
from cmpg.games.game import Game, Planner, Position
from cmpg.policy import JointPolicy

WORTH = 1e-11
"""A gain of less than this share of an agent's range is no reason to move in the priced game."""

ROUNDS = 500
"""Rounds of moves at most until the agents are taken to be at rest."""

MAX_COLUMNS = 400
"""After this many columns the search takes what it has."""

NO_WEIGHT = 1e-12
"""A mode with a smaller share of the days is left out of the program."""

RARE = 1e-9
"""A mode with a smaller share of the days is left out of the rota, if that is proved without it, too."""


@dataclass(frozen=True, eq=False)
class FoundRota:
    """A rota, the common multipliers of its modes, and what the potential is on average."""

    rota: Rota
    multipliers: FloatArray  # [k]
    columns: int  # policies that the search has seen


def without_rare_modes(rota: Rota) -> Rota:
    """Return a rota without the modes that are hardly ever played."""
    often = np.flatnonzero(rota.weights > RARE).tolist()
    return rota if len(often) == len(rota.modes) else Rota([rota.modes[m] for m in often], _shares(rota.weights[often]))


# --- With a planner ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Modes:
    """Plans and their shares, as the search sees a mixture."""

    plans: Sequence[Plan]
    weights: FloatArray
    unvisited: FloatArray  # a table that the search hands on to mixtures which are one policy; a rota has several

    @property
    def policy(self) -> FloatArray:
        """The table that was handed on."""
        return self.unvisited

    @property
    def costs(self) -> FloatArray:
        """The average costs: [k]."""
        return np.asarray(self.weights @ np.stack([each.costs for each in self.plans]))


def planned_rota(central: Planner) -> FoundRota:
    """Return the rota whose modes are plans of one planner, or raise InfeasibleError."""
    found = best_mixture(CMDPProgram(central.cmdp, partial(plan, central.cmdp), _Modes))
    used = [m for m, share in enumerate(found.mixture.weights) if share > NO_WEIGHT]
    modes = [central.split(found.mixture.plans[m].actions) for m in used]
    rota = Rota(modes, _shares(found.mixture.weights[used]))
    return FoundRota(rota, np.maximum(found.multipliers, 0.0), found.plans)


def _shares(weights: FloatArray) -> FloatArray:
    return np.asarray(weights / weights.sum())


# --- By best responses ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Column:
    """A policy, its potential and its costs."""

    position: Position
    value: float
    costs: FloatArray  # [k]


def responding_rota(game: Game, start: JointPolicy, *, deadline: float = np.inf) -> FoundRota:
    """Return a rota all of whose modes are Nash policies at common multipliers, from a feasible policy.

    Parameters
    ----------
    game
        In floats, with a potential.
    start
        Meets every threshold.
    deadline
        On the clock of time.monotonic: then the last mixture is returned, whose modes need not be at rest.
    """
    first = _column(game, game.at(start))
    thresholds = np.asarray(game.thresholds, dtype=np.float64)
    if len(thresholds) == 0:
        rested = _at_rest(game, first.position, np.zeros(0), deadline)
        return FoundRota(Rota([rested.policy], [1.0]), np.zeros(0), 2)
    margins = 4 * first.position.cost_rounding
    # A mixture can be moved inside by a hair; a single policy that has no room for it is taken as it is.
    targets = np.clip(thresholds - margins, np.minimum(first.costs, thresholds), thresholds)
    units = np.maximum(np.abs(thresholds), np.abs(first.costs))
    master = MasterProgram([first], targets, units=np.where(units > LEAST_UNIT, units, 1.0), margins=margins)
    multipliers = np.zeros(len(thresholds))
    for _ in range(MAX_COLUMNS):
        multipliers = master.maximise_value()
        known, late = len(master.plans), False
        for column in _support(master):
            try:
                ended = _column(game, _at_rest(game, column.position, multipliers, deadline))
            except OutOfTimeError:
                late = True
                break
            if master.improves(ended, multipliers):
                master.add(ended)
        if late or len(master.plans) == known:
            break
    modes = _support(master)
    weights = _shares(master.weights[master.weights > NO_WEIGHT])
    return FoundRota(Rota([each.position.policy for each in modes], weights), multipliers, len(master.plans))


def _support(master: MasterProgram[_Column]) -> list[_Column]:
    return [each for each, share in zip(master.plans, master.weights, strict=True) if share > NO_WEIGHT]


def _column(game: Game, position: Position) -> _Column:
    costs = np.asarray(position.costs, dtype=np.float64)
    return _Column(position, float(game.potential(position.policy)), costs)


def _at_rest(game: Game, position: Position, multipliers: FloatArray, deadline: float) -> Position:
    """Let agents in turn move to what is best for them at these multipliers, until none gains."""
    turns = ROUNDS * game.num_agents
    done, status = dynamics_at(position, multipliers, turns=turns, worth=WORTH, deadline=deadline)
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if time.monotonic() > deadline:
        raise OutOfTimeError
    return done.position
