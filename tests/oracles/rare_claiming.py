"""Put a claim of a rarer kind through the roads that lead to a verdict, and compare what is said with what is true.

Claims that are joint, local or augmented games take the roads of `claiming`. Crowds, devices and CVaR are certified in
Python, from files by the command (`npz`), in rationals (`exact`), and without multipliers (`proposed`); a device also
as a folder or proof file. A claim that is forged has to be refused: an answer of any kind is wrong.
"""

from __future__ import annotations

import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from cmpg.arrays import to_exact
from cmpg.equilibrium.certificate import certify
from cmpg.equilibrium.crowds.certificate import certify_crowd
from cmpg.equilibrium.cvar import Box, certify_cvar
from cmpg.errors import CMPGError, PolicyError
from cmpg.files.containers import fits_in_text
from cmpg.files.crowds import save_crowd_policy
from cmpg.files.games import save_game
from cmpg.games.constraints import bind
from cmpg.games.crowd.game import CrowdGame, LoadCurve
from cmpg.games.crowd.policy import CrowdPolicy
from cmpg.games.devices import Concept, CorrelatedPolicy, Rota
from cmpg.games.local.discounted import DiscountedLocalGame
from cmpg.games.risk import CVaR, with_cvar
from cmpg.policy import JointPolicy
from oracles.claiming import ROADS, Said, Truth, contradicted, examine, examined, record_of, run_command, verdict_of
from oracles.judge import NotHard
from oracles.long_claims import LongDraw, draw_long, for_ever
from oracles.random_claims import Claim
from oracles.rare_claims import CrowdDraw, CVaRDraw, DeviceDraw, draw_rare, finite, law_of
from oracles.rare_judges import cvar
from oracles.sweeping import build, build_agent

RARE_ROADS = {"exact": 0.25, "npz": 0.06, "proposed": 0.05}
"""The share of claims about crowds, devices and CVaR that each road is tried on, beside `certify` in Python."""


def examine_any(number: int, roads: dict[str, float] | None = None) -> Said:
    """Examine one claim of all: two of five are of a rarer kind, and one of twenty is about a discounted local game."""
    if number % 20 == 19:
        return examined_rare(draw_long(number // 20), ["exact"] if number % 80 == 79 else [])
    turn, place = divmod(number, 5)
    if place in (1, 3):
        return examine_rare(2 * turn + (place == 3), roads)
    return examine(number, roads)


def examine_rare(seed: int, roads: dict[str, float] | None = None) -> Said:
    """Draw a claim of a rarer kind, and compare what every road says of it with the truth."""
    drawn, rng = draw_rare(seed), np.random.default_rng((20_265, seed))
    shares = ROADS if roads is None else roads
    if isinstance(drawn, Claim):
        taken = [road for road, draw in zip(ROADS, rng.random(len(ROADS)), strict=True) if draw < shares.get(road, 0.0)]
        return examined(drawn, taken)
    part = shares.get("exact", 0.0) / ROADS["exact"]  # all or, in the tests, half as many
    draws = zip(RARE_ROADS.items(), rng.random(len(RARE_ROADS)), strict=True)
    return examined_rare(drawn, [road for (road, share), draw in draws if draw < share * part])


def examined_rare(drawn: CrowdDraw | DeviceDraw | CVaRDraw | LongDraw, roads: Sequence[str] = ()) -> Said:
    """Compare what some roads say of a claim with the truth."""
    began = time.process_time()
    cases = {CrowdDraw: CrowdCase, DeviceDraw: DeviceCase, CVaRDraw: CVaRCase, LongDraw: LongCase}
    case = cases[type(drawn)](drawn)  # type: ignore[operator]
    wrong, tried, verdict = [], [], "refused"
    truth = None if drawn.forged else case.truth()
    for road in ("certify", *(each for each in roads if hasattr(case, f"by_{each}"))):
        tried.append(road)
        try:
            said, here = getattr(case, f"by_{road}")()
        except CMPGError as problem:
            wrong += [] if drawn.forged else [f"{road}: refused: {problem}"]
            continue
        except Exception as problem:  # whatever else escapes is a finding
            last = traceback.extract_tb(problem.__traceback__)[-1]
            where = f"{last.filename.rpartition('/')[2]}, line {last.lineno}"
            wrong.append(f"{road}: {type(problem).__name__} escaped from {where}: {problem}")
            continue
        verdict = here if road == "certify" else verdict
        if truth is None:
            wrong.append(f"{road}: {here} of what is no claim: {drawn.forged}")
            continue
        known = truth if road != "proposed" else Truth(truth.excess, [None] * len(truth.gains), ())
        wrong += [f"{road}: {each}" for each in contradicted(known, said)]
        decided = said["feasibility"] != "OPEN"  # what follows the steps of a discounted local game is bounded only
        if road == "exact" and decided and (said["feasibility"] == "PROVEN") != truth.feasible:
            wrong.append(f"exact: {said['feasibility']}, and the truth is the other way round")
    seconds = time.process_time() - began
    return Said(drawn.seed, drawn.form, drawn.arithmetic, verdict, tuple(tried), seconds, tuple(wrong))


Answer = tuple[dict[str, Any], str]


def _by_command(words: list[str]) -> dict[str, Any]:
    said = run_command(words, may_refuse=True)
    if said["code"] == 2:
        raise PolicyError("the command refuses it.")
    return said


def _gains(number: int, gain: Callable[[int], Fraction]) -> tuple[list[Fraction | None], tuple[int, ...]]:
    """What each agent gains at most; None where no deviation is feasible, or its proof by support is none."""
    gains: list[Fraction | None] = []
    unfounded = []
    for agent in range(number):
        try:
            gains.append(gain(agent))
        except NotHard as problem:
            gains.append(None)
            unfounded += [] if problem.nothing_is_feasible else [agent]
    return gains, tuple(unfounded)


class CrowdCase:
    """A crowd and its groups, as the library sees them."""

    def __init__(self, drawn: CrowdDraw) -> None:
        self.drawn = drawn

    def truth(self) -> Truth:
        """Judge it in rationals."""
        judged = self.drawn.judged
        costs = judged.costs()
        excess = [cost - limit for cost, limit in zip(costs, judged.thresholds, strict=True)]
        return Truth(excess, list(judged.gains(self.drawn.multipliers)), ())

    def game(self) -> CrowdGame:
        """The crowd."""
        tables = self.drawn.game
        kinds = list(map(build_agent, tables["kinds"]))
        named = {name: tables[name] for name in ("numbers", "delay", "load_costs", "thresholds", "horizon")}
        return CrowdGame(kinds=kinds, curves=[LoadCurve(*each) for each in tables["curves"]], **named)

    def policy(self) -> CrowdPolicy:
        """The groups."""
        groups = self.drawn.groups
        return CrowdPolicy(groups.kind, groups.number, JointPolicy(tuple(groups.tables)))

    def by_certify(self) -> Answer:
        """Certify in Python."""
        said = certify(self.game(), self.policy(), self.drawn.multipliers)  # type: ignore[arg-type]
        return record_of(said), verdict_of(said)

    def by_proposed(self) -> Answer:
        """Certify without multipliers; feasibility alone is compared."""
        said = certify_crowd(self.game(), self.policy())
        return record_of(said), verdict_of(said)

    def by_npz(self) -> Answer:
        """Certify files by the command."""
        with tempfile.TemporaryDirectory() as folder:
            game, policy = (str(Path(folder) / f"{name}.npz") for name in ("game", "policy"))
            save_game(self.game(), game)
            save_crowd_policy(policy, self.policy(), multipliers=self.drawn.multipliers)
            said = _by_command(["certify", game, policy, "--json"])
        return said, said["feasibility"]


class DeviceCase:
    """A rota or a law of joint actions, as the library sees it."""

    def __init__(self, drawn: DeviceDraw) -> None:
        self.drawn = drawn

    def truth(self) -> Truth:
        """Judge it in rationals."""
        judged, prices = self.drawn.judged, self.drawn.multipliers.tolist()
        limits = [Fraction(each) for each in np.asarray(self.drawn.game["thresholds"]).tolist()]
        gains, unfounded = _gains(len(prices), lambda i: judged.gain(i, prices[i]))
        return Truth([cost - limit for cost, limit in zip(judged.costs(), limits, strict=True)], gains, unfounded)

    def game(self) -> Any:
        """The game, with its mask."""
        built = build(self.drawn.game)
        return built if self.drawn.binds.all() else bind(built, self.drawn.binds)

    def device(self) -> Rota | CorrelatedPolicy:
        """The device."""
        if self.drawn.form == "rota":
            return Rota(tuple(JointPolicy(tuple(mode)) for mode in self.drawn.modes), self.drawn.weights)
        return CorrelatedPolicy(self.drawn.law)

    def _certified(self, *, exact: bool = False) -> Answer:
        concept = Concept[self.drawn.form.upper()]
        said = certify(self.game(), self.device(), self.drawn.multipliers, concept=concept, exact=exact)
        return record_of(said), verdict_of(said)

    def by_certify(self) -> Answer:
        """Certify in Python."""
        return self._certified()

    def by_exact(self) -> Answer:
        """Certify in rationals."""
        return self._certified(exact=True)

    def by_npz(self) -> Answer:
        """Certify files by the command; rationals are in words."""
        ending = "json" if self.drawn.arithmetic == "rationals" else "npz"
        if not all(fits_in_text(Fraction(limit)) for limit in self.drawn.game["thresholds"]):
            return self.by_exact()  # no file holds it
        with tempfile.TemporaryDirectory() as folder:
            game, device = (str(Path(folder) / f"{name}.{ending}") for name in ("game", "device"))
            save_game(self.game(), game)
            concept = Concept[self.drawn.form.upper()]
            prices = self.drawn.multipliers
            if ending == "json":  # where a decimal would be read as it is written
                prices = np.where(np.isinf(prices), np.inf, to_exact(finite(prices)))
            self.device().save(device, multipliers=prices, concept=concept)
            words = ["certify", game, device, "--json", *(["--exact"] if ending == "json" else [])]
            said = _by_command(words)
        return said, said["feasibility"]


class LongCase:
    """A discounted local game, as the library sees it."""

    def __init__(self, drawn: LongDraw) -> None:
        self.drawn = drawn

    def truth(self) -> Truth:
        """Judge it in rationals, in as many steps as that takes."""
        judged, policy, prices = self.drawn.judged, for_ever(self.drawn.policy), self.drawn.multipliers.tolist()
        gains, unfounded = _gains(len(prices), lambda i: judged.gain(policy, i, prices[i]))
        costs = judged.costs(policy)
        return Truth([cost - limit for cost, limit in zip(costs, judged.thresholds, strict=True)], gains, unfounded)

    def game(self) -> Any:
        """The game, with its mask."""
        tables = self.drawn.game
        named = {name: tables[name] for name in ("delay", "thresholds", "discount")}
        agents = tuple(map(build_agent, tables["agents"]))
        built = DiscountedLocalGame(agents=agents, load_costs=tables["load_cost"], **named)
        return built if self.drawn.binds.all() else bind(built, self.drawn.binds)

    def _certified(self, *, exact: bool = False) -> Answer:
        said = certify(self.game(), JointPolicy(tuple(self.drawn.policy)), self.drawn.multipliers, exact=exact)
        return record_of(said), verdict_of(said)

    def by_certify(self) -> Answer:
        """Certify in Python."""
        return self._certified()

    def by_exact(self) -> Answer:
        """Certify in rationals, up to what is cut off."""
        return self._certified(exact=True)


class CVaRCase:
    """A budget on CVaR, as the library sees it."""

    def __init__(self, drawn: CVaRDraw) -> None:
        self.drawn = drawn

    def truth(self) -> Truth:
        """Judge it in rationals: what is gained in any box, by the bound of its multipliers at its exact limits."""
        drawn, judged, counted = self.drawn, self.drawn.judged, self.drawn.counted
        limits, unit = judged.thresholds, counted.unit
        excess = [cost - limit for cost, limit in zip(judged.costs(drawn.policy), limits, strict=True)]
        true = cvar(law_of(counted, drawn.policy), Fraction(drawn.level))
        kept = [j for j in range(len(drawn.game["costs"])) if drawn.keep or j]
        gains: list[list[Fraction]] = []
        for low, high, prices in drawn.boxes:
            left = (1 - Fraction(drawn.level)) * (Fraction(drawn.at_most) / unit - low)
            process = counted.process(kept, [lambda x, t=high * unit: max(x - t, Fraction(0)) / unit], [*limits, left])
            here = judged.with_process(process)
            gains.append([here.gain(drawn.policy, i, own) for i, own in enumerate(prices.tolist())])
        return Truth([*excess, true - Fraction(drawn.at_most)], [max(each) for each in zip(*gains, strict=True)], ())

    def game(self) -> Any:
        """The game with its budget."""
        drawn = self.drawn
        return with_cvar(build(drawn.game), CVaR(0, drawn.level, drawn.at_most), keep_expected=drawn.keep)

    def _certified(self, *, exact: bool = False) -> Answer:
        boxes = [Box((low,), (high,), prices) for low, high, prices in self.drawn.boxes]
        said = certify_cvar(self.game(), JointPolicy(tuple(self.drawn.policy)), boxes, exact=exact)
        return record_of(said), verdict_of(said)

    def by_certify(self) -> Answer:
        """Certify in Python."""
        return self._certified()

    def by_exact(self) -> Answer:
        """Certify in rationals."""
        return self._certified(exact=True)

    def by_proposed(self) -> Answer:
        """Certify without multipliers; feasibility alone is compared."""
        if self.drawn.forged:
            return self._certified()
        said = certify(self.game(), JointPolicy(tuple(self.drawn.policy)))
        return record_of(said), verdict_of(said)
