"""Count the games that end without a start, or at a limit, in this version of the library and in an earlier one.

    python tools/unknowns.py count build/after.json [--games 12000]
    PYTHONPATH=old/src python tools/unknowns.py count build/before.json
    python tools/unknowns.py compare build/before.json build/after.json

Two collections: random games of every form (tests/oracles/random_games.py), and all 2 × 2 games of one step with two
costs of 0 or 1, at a grid of thresholds, of which those are counted that some pair of mixed actions meets with room.
Nothing but the front door of the library is used, so that old versions can be asked. `count` goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from inspect import signature
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests"))

THRESHOLDS = (0.3, 0.45, 0.5, 0.55, 0.6, 0.75, 0.9)
GRID = np.linspace(0.0, 1.0, 201)
"""Probabilities of the second action at which small games are looked at, of either agent."""

CHUNK = 500


def named(name: str) -> Any:
    """Return a class from wherever a version of the library keeps it."""
    import cmpg

    return getattr(cmpg, name) if hasattr(cmpg, name) else getattr(cmpg.games, name)


def built(game: dict[str, Any]) -> Any:
    """Hand a plain game to the library."""
    if game["form"] == "local":
        agents = [
            named("LocalAgent")(
                **{name: agent[name] for name in ("transition", "reward", "uses", "initial")}, costs=agent["cost"]
            )
            for agent in game["agents"]
        ]
        tables = {name: game[name] for name in ("delay", "thresholds", "horizon")}
        of = named("LocalGame")
        tables["members" if "members" in signature(of).parameters else "agents"] = tuple(agents)
        return of(load_costs=game["load_cost"], **tables)
    names = ("transition", "rewards", "costs", "thresholds", "initial", "horizon", "discount")
    tables = {name: game.get(name) for name in names}
    if game["form"] == "joint":
        return named("JointGame")(**tables)
    bounds = game["boundaries"]
    classes = named("EveryCount")() if bounds is None else named("LargestCount")(tuple(bounds))
    more = {name: game.get(name) for name in ("private_rewards", "class_rewards")}
    return named("CountingGame")(classes=classes, **tables, **more)


def ending(game: Any, epsilon: float) -> str:
    """Solve one game; return its status, or the name of what escaped."""
    import cmpg

    try:
        return str(cmpg.solve(game, epsilon=epsilon, time_limit=20.0).status.name)
    except Exception as problem:  # whatever escapes is counted
        return type(problem).__name__


def random_endings(first: int, last: int) -> Iterator[str]:
    """Solve random games; of those that are known to be feasible that is said, too."""
    from oracles.random_games import draw, suitable_epsilon

    for seed in range(first, last):
        drawn = draw(seed)
        told = ending(built(drawn.game), suitable_epsilon(drawn.game))
        constraints = "several" if len(drawn.game["thresholds"]) > 1 else "one"
        known = "feasible" if drawn.feasible else "open"
        yield f"{drawn.form}/{constraints}/{known}/{told}"


def strictly_feasible(costs: np.ndarray, thresholds: tuple[float, float]) -> bool:
    """Whether some pair of mixed actions spends less than both thresholds; costs are [2, 2, 2]."""
    mixed = np.stack([1 - GRID, GRID])
    spent = np.einsum("kab,ax,by->kxy", costs, mixed, mixed)
    return bool((spent < np.array(thresholds)[:, None, None] - 1e-9).all(axis=0).any())


def small_endings(thresholds: tuple[float, float]) -> Iterator[str]:
    """Solve all 2 × 2 games with two costs of 0 or 1 that are strictly feasible at two thresholds."""
    reward = np.array([[3.0, 2.0], [2.0, 4.0]])
    for bits in product((0.0, 1.0), repeat=8):
        costs = np.array(bits).reshape(2, 2, 2)
        if strictly_feasible(costs, thresholds):
            game = named("JointGame")(
                transition=np.ones((1, 1, 2, 2, 1)),
                rewards=np.stack([reward[None, None]] * 2),
                costs=costs[:, None, None],
                thresholds=np.array(thresholds),
                initial=np.ones(1),
                horizon=1,
            )
            yield ending(game, 1e-6)


def count(path: Path, games: int) -> None:
    """Solve what the record does not have yet, and write it down piece by piece."""
    record = json.loads(path.read_text("utf-8")) if path.is_file() else {"small": {}, "random": {}}
    path.parent.mkdir(parents=True, exist_ok=True)
    for pair in combinations_with_replacement(THRESHOLDS, 2):
        if str(pair) not in record["small"]:
            record["small"][str(pair)] = dict(Counter(small_endings(pair)))
            path.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    for first in range(0, games, CHUNK):
        if str(first) not in record["random"]:
            record["random"][str(first)] = dict(Counter(random_endings(first, min(first + CHUNK, games))))
            path.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
            print(f"{min(first + CHUNK, games):,} random games", flush=True)


def compare(before: Path, after: Path) -> None:
    """Print how many games ended how, before and after."""
    small, drawn, unknown = [], [], []
    records = [json.loads(path.read_text("utf-8")) for path in (before, after)]
    both = {name: records[0][name].keys() & records[1][name].keys() for name in ("small", "random")}  # the same games
    for record in records:
        small.append(sum((Counter(record["small"][each]) for each in both["small"]), Counter()))
        random = sum((Counter(record["random"][each]) for each in both["random"]), Counter())
        drawn.append(_by(random, 3))
        unknown.append(Counter({key: n for key, n in random.items() if key.endswith("/FEASIBILITY_UNKNOWN")}))
    _show(f"random games: {drawn[0].total():,}", drawn)
    _show("unknown random games, by form", [_by(each, 0) for each in unknown])
    _show("unknown random games, by the number of constraints", [_by(each, 1) for each in unknown])
    _show("unknown random games, by whether some policy is known to be feasible", [_by(each, 2) for each in unknown])
    _show(f"2 × 2 games with two costs of 0 or 1, strictly feasible: {small[0].total():,}", small)


def _by(counts: Counter[str], part: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for key, number in counts.items():
        found[key.split("/")[part]] += number
    return found


def _show(title: str, pair: list[Counter[str]]) -> None:
    print(f"\n{title}")
    for name in sorted(pair[0] | pair[1]):
        print(f"  {name:24s} {pair[0][name]:6,d} {pair[1][name]:6,d}")


def main() -> None:
    """Count, or compare."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = options.add_subparsers(dest="command", required=True)
    counting = commands.add_parser("count")
    counting.add_argument("file", type=Path)
    counting.add_argument("--games", type=int, default=12_000)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    chosen = options.parse_args()
    if chosen.command == "count":
        count(chosen.file, chosen.games)
    else:
        compare(chosen.before, chosen.after)


if __name__ == "__main__":
    main()
