"""Solve random games, and have every claim of the library judged from outside, in exact arithmetic."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from cmpg.equilibrium.certificate import Feasibility
from cmpg.equilibrium.result import Result, Status
from cmpg.equilibrium.solve import solve
from cmpg.games.constraints import bind
from cmpg.games.counting.classes import EveryCount, LargestCount
from cmpg.games.counting.game import CountingGame
from cmpg.games.game import Game as LibraryGame
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalAgent, LocalGame
from oracles.judge import Game, always_exceeded, judge
from oracles.random_games import Drawn, draw, shapes_of, suitable_epsilon

TIME_LIMIT = 20.0
"""Seconds for one game; the largest take a fraction of one."""


@dataclass(frozen=True)
class Ending:
    """How one game ended, and what is wrong with that."""

    seed: int
    form: str
    status: str  # as the library says it, with "up to rounding" where it adds that, or the name of an exception
    seconds: float  # of a processor, for the solve alone
    missed: bool = False  # no start was found, though some policy meets the thresholds
    by_support: bool = False  # whether some proof is one by support
    wrong: tuple[str, ...] = ()  # claims that the judge refutes


def sweep_one(seed: int) -> Ending:
    """Draw, build, solve and judge one game."""
    drawn = draw(seed)
    return _swept(seed, drawn, lambda: build(drawn.game))


def sweep_bound(seed: int) -> Ending:
    """Do the same to a game whose constraints bind some agents only, every other one with budgets of zero."""
    rng = np.random.default_rng((20_261, seed))
    drawn = draw(1_000_000 + seed)
    while not len(drawn.game["thresholds"]):
        drawn = draw(int(rng.integers(2_000_000, 2**31)))
    if seed % 2:
        drawn = hardened(drawn, rng)
    agents = len(shapes_of(drawn.game))
    binds = rng.integers(2, size=(agents, len(drawn.game["thresholds"])))
    binds[rng.integers(agents)] = 1
    return _swept(seed, drawn, lambda: bind(build(drawn.game), binds), binds)


def hardened(drawn: Drawn, rng: np.random.Generator) -> Drawn:
    """Return a game with costs of zero or more, half of them zero, of which nothing may be spent."""

    def sparser(holder: Game) -> Game:
        names = [name for name in ("costs", "load_cost", "cost") if holder.get(name) is not None]
        return holder | {name: np.abs(holder[name]) * (rng.random(holder[name].shape) < 0.5) for name in names}

    game = sparser(drawn.game) | {"thresholds": np.zeros(len(drawn.game["thresholds"]))}
    if "agents" in game:
        game["agents"] = [sparser(agent) for agent in game["agents"]]
        game["load_cost"] = np.cumsum(game["load_cost"], axis=-1)
    return replace(drawn, game=game, budget="none may be spent", feasible=None)


def _swept(seed: int, drawn: Drawn, built: Callable[[], LibraryGame], binds: np.ndarray | None = None) -> Ending:
    began = time.process_time()
    try:
        result = solve(built(), epsilon=suitable_epsilon(drawn.game), time_limit=TIME_LIMIT)
    except Exception as problem:  # whatever escapes is a finding
        last = traceback.extract_tb(problem.__traceback__)[-1]
        where = f"{last.filename.rpartition('/')[2]}, line {last.lineno}"
        seconds = time.process_time() - began
        return Ending(seed, drawn.form, type(problem).__name__, seconds, wrong=(f"escaped from {where}: {problem}",))
    seconds = time.process_time() - began
    missed = result.status is Status.FEASIBILITY_UNKNOWN and drawn.feasible is True
    wrong = findings(drawn, result)
    if binds is not None and result.incumbent is not None and result.multipliers[binds == 0].any():
        wrong.append("has a price for an agent whom the constraint does not bind")
    by_support = result.incumbent is not None and bool(np.isinf(result.multipliers).any())
    return Ending(seed, drawn.form, told(result), seconds, missed, by_support, tuple(wrong))


def told(result: Result) -> str:
    """The status, and what the certificate adds to it."""
    if result.incumbent is None or result.certificate.feasibility is Feasibility.PROVEN:
        return result.status.name
    return f"{result.status.name}, {result.certificate.feasibility.name}"


def build_agent(agent: Game) -> LocalAgent:
    """Hand a plain agent of a local game to the library."""
    named = {name: agent[name] for name in ("transition", "reward", "uses", "initial")}
    return LocalAgent(**named, costs=agent["cost"])


def build(game: Game) -> LibraryGame:
    """Hand a plain game to the library."""
    if game["form"] == "local":
        return LocalGame(
            agents=tuple(map(build_agent, game["agents"])),
            delay=game["delay"],
            load_costs=game["load_cost"],
            thresholds=game["thresholds"],
            horizon=game["horizon"],
        )
    tables = {name: game[name] for name in ("rewards", "costs", "thresholds", "initial")}
    length = {"horizon": game.get("horizon"), "discount": game.get("discount")}
    if game["form"] == "counting":
        classes = EveryCount() if game["boundaries"] is None else LargestCount(tuple(game["boundaries"]))
        more = {name: game.get(name) for name in ("private_rewards", "class_rewards")}
        return CountingGame(classes=classes, transition=game["transition"], **tables, **length, **more)
    transition = game["transition"]
    if game.get("sparse"):
        transition = [sp.csr_array(step.reshape(-1, step.shape[-1])) for step in transition]
    return JointGame(transition=transition, **tables, **length)


def findings(drawn: Drawn, result: Result) -> list[str]:
    """Everything that the library claims about a game and that the exact judge refutes."""
    judged, wrong = judge(drawn.game), []
    if result.status is Status.NOT_POTENTIAL and drawn.has_potential:
        wrong.append("says that there is no potential, and there is one by construction")
    if result.status is Status.INFEASIBLE:
        if result.proof is None:
            return [*wrong, "says infeasible without a proof"]
        weights = result.proof.multipliers
        if min(weights) < 0 or always_exceeded(judged, weights) is False:
            wrong.append("says infeasible, but some policy meets the weighted thresholds")
    if result.incumbent is None:
        return wrong
    policy, certificate = [np.asarray(table) for table in result.policy], result.certificate
    spent = judged.costs(policy)
    excess = max((cost - limit for cost, limit in zip(spent, judged.thresholds, strict=True)), default=Fraction(0))
    if excess > 0 and (certificate.feasibility is Feasibility.PROVEN or result.status is Status.CERTIFIED):
        wrong.append(f"is called feasible, and exceeds a threshold by {float(excess):.3g}")
    if excess <= 0 and certificate.feasibility is Feasibility.VIOLATED:
        wrong.append("is called infeasible, and meets every threshold")
    if result.status is Status.CERTIFIED and not certificate.epsilon <= result.epsilon:
        wrong.append(f"is CERTIFIED with a gap of {certificate.epsilon:.3g}, and epsilon is {result.epsilon:.3g}")
    # Of an agent whose gain has no bound nothing is claimed.
    claimed = np.where(np.isinf(certificate.gains)[:, None], 0.0, certificate.multipliers)
    try:
        gains = judged.gains(policy, claimed)
    except AssertionError as problem:
        return [*wrong, str(problem)]
    for agent, gain in enumerate(gains):
        if np.isfinite(certificate.gains[agent]) and gain > Fraction(float(certificate.gains[agent])):
            wrong.append(
                f"agent {agent} gains {float(gain):.6g} by the bound; {certificate.gains[agent]:.6g} is claimed"
            )
    return wrong
