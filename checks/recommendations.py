"""Recommendations: rotas, correlated and coarse devices before an independent judge; rotas beside Nash policies.

    python -m checks recommendations [--games 1000] [--forged 200] [--fleets 26] [--days 20] [--counting 20]

Random joint games with a potential (C1, C2, C4; one to three constraints) are judged by linear programs over all
deviations (`tests/oracles/deviating.py`), which share no code with the library. Forged devices, of which the judge says
that they are none, must be refused. On fleets, charging days and counting games a rota is compared with the Nash policy
and with the upper bound. Everything is written to build/recommendations.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from checks import BUILD, DATA, evidence
from cmpg import Concept, JointGame, certify, recommend, solve
from cmpg.errors import CMPGError
from cmpg.games.devices import CorrelatedPolicy, Rota
from cmpg.games.game import Game, Objective
from cmpg.scenarios import charging, counting_congestion_game, robots
from oracles import deviating

TABLES = ("transition", "rewards", "costs", "thresholds", "initial", "horizon")
SESSIONS = DATA / "acn" / "caltech_2019-05_2019-08.csv.gz"
TRUE_GAIN = 1e-6
"""A forged device from which an agent gains more than this must not be certified for a tenth of it."""


def main(argv: list[str]) -> int:
    """Run the check."""
    parser = argparse.ArgumentParser(prog="python -m checks recommendations", description=__doc__)
    for name, number in (("games", 1000), ("forged", 200), ("fleets", 26), ("days", 20), ("counting", 20)):
        parser.add_argument(f"--{name}", type=int, default=number)
    chosen = parser.parse_args(argv)
    judged = [judge_game(seed) for seed in range(chosen.games)]
    forged = [forge(seed) for seed in range(10 * chosen.forged)] if chosen.forged else []
    wrong = [each for each in forged if each is not None][: chosen.forged]
    rows = compare(chosen.fleets, chosen.days, chosen.counting)
    lines = [*game_lines(judged), *forged_lines(wrong), "", *rota_lines(rows)]
    BUILD.mkdir(exist_ok=True)
    (BUILD / "recommendations.md").write_text("\n".join(lines) + "\n", "utf-8")
    print("\n".join(lines))
    good = all(each["good"] for each in judged) and all(wrong) and all(row["certified"] for row in rows)
    if good and chosen.games >= 1000:
        evidence.record("recommendations", game_lines(judged)[0])
    return 0 if good else 1


def built(game: dict[str, Any]) -> JointGame:
    """Return a plain game as one of the library."""
    return JointGame(**{name: game[name] for name in TABLES})


def judge_game(seed: int) -> dict[str, Any]:
    """Find devices of a random potential game, and have them judged."""
    game, potential, kind = deviating.draw_potential_game(seed)
    joint, agents = built(game), range(len(game["rewards"]))
    best = deviating.best_correlated(game, potential)
    rota, planned = recommend(joint), recommend(joint, Concept.CORRELATED)
    coarse = recommend(joint, Concept.COARSE)
    certified = rota.certified and planned.certified and coarse.certified
    assert isinstance(rota.device, Rota)
    assert isinstance(planned.device, CorrelatedPolicy)
    laws = [[deviating.product_law(mode, h) for h in range(game["horizon"])] for mode in rota.device.modes]
    common = {**game, "rewards": np.stack([potential] * len(agents))}
    reached = sum(w * deviating.value_of(common, law)[0][0] for w, law in zip(rota.device.weights, laws, strict=True))
    correlated = deviating.value_of(common, list(planned.device.table))[0][0]
    gains = [deviating.rota_gain(game, rota.device.modes, rota.device.weights, i) for i in agents]
    gains += [deviating.correlated_gain(game, planned.device.table, i) for i in agents]
    short = max(best - float(reached), best - float(correlated))
    return {
        "seed": seed,
        "kind": kind,
        "gain": max(gains),
        "proved": max(rota.certificate.epsilon, planned.certificate.epsilon),  # type: ignore[union-attr]
        "short": short,
        "modes": len(rota.device.modes),
        "good": certified and max(gains) <= 1e-7 and short <= 1e-7,
    }


def game_lines(judged: list[dict[str, Any]]) -> list[str]:
    """Say what was found of the random games."""
    if not judged:
        return []
    bad = [each["seed"] for each in judged if not each["good"]]
    worst = {name: max(each[name] for each in judged) for name in ("gain", "proved", "short", "modes")}
    kinds = ", ".join(f"{sum(each['kind'] == kind for each in judged)} {kind}" for kind in ("C1", "C2", "C4"))
    return [
        f"{len(judged):,} random games ({kinds}): {len(judged) - len(bad):,} with certified rota and correlated "
        f"device; largest gain by an independent linear program {worst['gain']:.1e}, proved {worst['proved']:.1e}, "
        f"largest distance from D* {worst['short']:.1e}, at most {worst['modes']} modes",
        *([f"NOT GOOD: seeds {bad[:20]}"] if bad else []),
    ]


def forge(seed: int) -> bool | None:
    """Change a device; return whether it is refused, or None where it is still true by the oracle."""
    game, _, _ = deviating.draw_potential_game(seed)
    rng, joint = np.random.default_rng((30, seed)), built(game)
    device, multipliers, claimed = forged_device(joint, rng)
    try:
        judged = certify(joint, device, multipliers, concept=claimed)
    except CMPGError:
        return True
    agents = range(joint.num_agents)
    if isinstance(device, Rota):
        laws = [[deviating.product_law(mode, h) for h in range(game["horizon"])] for mode in device.modes]
        spent = sum(w * deviating.value_of(game, law)[1] for w, law in zip(device.weights, laws, strict=True))
    else:
        spent = deviating.value_of(game, list(device.table))[1]
    if (np.asarray(spent) > game["thresholds"] + 1e-9).any():
        return not judged.feasible
    if isinstance(device, Rota):
        gain = max(deviating.rota_gain(game, device.modes, device.weights, i) for i in agents)
    else:
        coarse = claimed is Concept.COARSE
        gain = max(deviating.correlated_gain(game, device.table, i, coarse=coarse) for i in agents)
    return None if gain <= TRUE_GAIN else not judged.proves(TRUE_GAIN / 10)


def forged_device(game: JointGame, rng: np.random.Generator) -> tuple[Any, Any, Concept]:
    """Return a device that was changed in one of several ways, with multipliers that may be changed, too."""
    way = int(rng.integers(5))
    if way < 3:
        found = recommend(game)
        assert isinstance(found.device, Rota)
        modes, weights = list(found.device.modes), np.array(found.device.weights)
        if way == 0:  # other shares
            weights = rng.dirichlet(np.ones(len(weights)))
        elif way == 1:  # one row of one agent in one mode
            m, i = int(rng.integers(len(modes))), int(rng.integers(game.num_agents))
            table = np.array(modes[m][i])
            h, s = int(rng.integers(len(table))), int(rng.integers(table.shape[1]))
            table[h, s] = np.roll(table[h, s], 1)
            modes[m] = modes[m].replace(i, table)
        else:  # modes of another budget, which were proved at another price
            other = recommend(game.with_thresholds(1.2 * game.thresholds + 0.05))
            assert isinstance(other.device, Rota)
            modes[0] = other.device.modes[0]
        multipliers = found.multipliers * rng.choice([1.0, 0.5, 2.0])
        return Rota(modes, weights), multipliers, Concept.ROTA
    concept = Concept.CORRELATED if way == 3 else Concept.COARSE
    found = recommend(game, concept)
    assert isinstance(found.device, CorrelatedPolicy)
    table = 0.9 * found.device.table + 0.1 * rng.dirichlet(
        np.ones(int(np.prod(game.num_actions))), size=found.device.table.shape[:2]
    ).reshape(found.device.table.shape)
    return CorrelatedPolicy(table), found.multipliers, concept


def forged_lines(wrong: list[bool]) -> list[str]:
    """Say how many forged devices were refused."""
    return [f"forged devices that the judge finds wrong: {sum(wrong)} of {len(wrong)} refused"] if wrong else []


def compare(fleets: int, days: int, counting: int) -> list[dict[str, Any]]:
    """Compare rotas with Nash policies and bounds."""
    cases: dict[str, Callable[[], Game]] = {}
    for seed in range(fleets):
        cases[f"fleet {seed}"] = lambda seed=seed: robots(num_agents=6 + seed % 4, horizon=20, seed=seed)
    if days and not SESSIONS.is_file():
        print(f"SKIPPED: {days} charging days, for there is no file {SESSIONS}", file=sys.stderr)
        days = 0
    for day in range(days):
        date = f"2019-06-{day + 3:02d}"
        cases[f"charging {date}"] = lambda date=date: charging(sessions=SESSIONS, day=date)
    for seed in range(counting):
        cases[f"counting {seed}"] = lambda seed=seed: exogenous_counting(seed)
    rows = []
    for name, build in cases.items():
        began = time.process_time()
        try:
            game = build()
        except CMPGError as problem:
            print(f"{name}: {problem}", file=sys.stderr)
            continue
        rows.append(compared(name, game, began))
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def exogenous_counting(seed: int) -> Game:
    """Return a counting game whose state moves by itself: a potential game (C2)."""
    rng = np.random.default_rng((31, seed))
    game = counting_congestion_game(
        num_agents=8 + 4 * (seed % 4), threshold=float(rng.uniform(0.1, 0.6)), weights=np.sort(rng.uniform(1, 6, 4))
    )
    moves = rng.dirichlet(np.ones(2), size=2).reshape(1, 2, 1, 2)
    return game.with_transition(np.broadcast_to(moves, game.transition.shape).copy())


def compared(name: str, game: Game, began: float) -> dict[str, Any]:
    """Return welfare and potential of a rota, a Nash policy and the bounds."""
    found = recommend(game, epsilon=1e-5)
    nash = found.nash or solve(game, epsilon=1e-5)
    welfare, potential = found.quality(), found.quality(Objective.POTENTIAL)
    assert isinstance(found.device, Rota)
    return {
        "name": name,
        "certified": found.certified,
        "gain": found.certificate.epsilon,  # type: ignore[union-attr]
        "modes": len(found.device.modes),
        "nash": float(nash.values.sum()),
        "rota": float(found.values.sum()),
        "bound": np.nan if welfare.bound is None else welfare.bound.value,
        "nash potential": float(game.potential(nash.policy)),
        "rota potential": potential.value,
        "potential bound": np.nan if potential.bound is None else potential.bound.value,
        "seconds": time.process_time() - began,
    }


def rota_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return a table, and what it amounts to."""
    if not rows:
        return []
    head = ["name", "modes", "gain", "nash", "rota", "bound", "nash potential", "rota potential", "potential bound"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        cells = [f"{row[name]:.4g}" if name == "gain" else f"{row[name]:.6g}" for name in head[2:]]
        lines.append(f"| {row['name']} | {row['modes']} | {' | '.join(cells)} |")
    better = sum(row["rota potential"] > row["nash potential"] + 1e-9 for row in rows)
    worse = sum(row["rota potential"] < row["nash potential"] - 1e-9 for row in rows)
    certified = sum(row["certified"] for row in rows)
    largest = max(row["gain"] for row in rows)
    lines.append(
        f"\n{certified} of {len(rows)} rotas certified, largest gain {largest:.1e}; more potential than the Nash one "
        f"in {better}, less in {worse}; more welfare in {sum(row['rota'] > row['nash'] + 1e-9 for row in rows)}"
    )
    return lines
