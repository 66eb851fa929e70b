"""What each trick of `solve` is worth: every game of the quality table solved with one of them left out.

python -m checks tricks        solve what the record does not have yet; `experiments.quality page` writes it down

A trick is worth the difference that it makes to what equilibria are compared by, the potential where there is one and
the total value elsewhere, relative to the sum of all agents' values in size; and it costs the seconds that it adds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from checks import BUILD
from checks.quality import EPSILON, RESTARTS, SEED, Records, cases
from cmpg.equilibrium.pairs import PairMoves
from cmpg.equilibrium.runs import Planned
from cmpg.equilibrium.solve import solve
from cmpg.equilibrium.start import Cheapest
from cmpg.games.contract import Game, Information, Objective, PlansFor

FILE = BUILD / "quality" / "tricks.json"
REPEATS = 3
"""Of which the quickest counts, but for restarts."""

HELPS = 1e-6

LEFT_OUT = {
    "planned": "the planner's start",
    "cheapest": "the cheapest start",
    "common price": "the common price",
    "trades": "trades of pairs",
}
ADDED = {"swaps": "swaps of pairs, 100 at each rest", "restarts": f"{RESTARTS} restarts"}


def variants(game: Game) -> Iterator[tuple[str, dict[str, Any], int]]:
    """Return how the game is solved by default, with a trick left out, and with one added; and how often."""
    yield "default", {}, REPEATS
    if game.information is Information.OWN_STATE and len(game.thresholds):
        yield "common price", {"start": Cheapest()}, REPEATS
    elif isinstance(game, PlansFor):
        known = Objective.WELFARE if game.potential_proof() is None else Objective.POTENTIAL
        yield "planned", {"start": Cheapest()}, REPEATS
        yield "cheapest", {"start": Planned(known)}, REPEATS
    yield "trades", {"improve": None}, REPEATS
    yield "swaps", {"improve": PairMoves(swaps=100)}, 1
    yield "restarts", {"restarts": RESTARTS, "seed": SEED}, 1


def record(build: Callable[[], Game]) -> dict[str, Any]:
    """Solve a game in every way; return scores and seconds by the name of the trick."""
    game, found = build(), {}
    for name, options, repeats in variants(game):
        seconds = []
        for _ in range(repeats):
            began = time.process_time()
            result = solve(game, epsilon=EPSILON, **options)
            seconds.append(time.process_time() - began)
        found[name] = {"seconds": min(seconds), "status": result.status.name}
        if result.incumbent is not None:
            potential = game.potential_proof() is not None
            score = game.potential(result.policy) if potential else float(result.values.sum())
            size = float(np.abs(result.values).sum())
            found[name] |= {"score": float(score), "size": size, "value": float(result.values.mean())}
    return found


def gain(row: dict[str, Any], name: str) -> float:
    """Return what a trick adds to the score, relative to all values."""
    more, less = (row[name], row["default"]) if name in ADDED else (row["default"], row[name])
    return float((more["score"] - less["score"]) / max(row["default"]["size"], 1e-12))


SECTION = """
## What each trick is worth

Every game again, with one trick left out, or added. A trick *helps* where it raises what equilibria are compared by,
the potential where there is one and the total value elsewhere, by more than {helps:g} of all values in size; *gains*
are relative to these. The seconds are all games' together (CPU). With the planner's start left out the cheapest policy
is what is left, and the other way round. Trades are on by default, since they are tried only where their promise is
good, and cost little where it is not; swaps are not. The cheapest start is there for games in which the plan's ending
is not certified, or poor, of which this table has few. Where a trick makes things worse, another road ended at a better
equilibrium by luck: the ascent is a local search, whatever it begins with.

"""


def section(records: Records) -> str:
    """Return the part of build/quality.md about tricks."""
    head = ("trick", "games", "helps", "hurts", "mean gain", "greatest gain", "s without", "s with")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, told in (LEFT_OUT | ADDED).items():
        rows = [row for row in records.values() if name in row and "score" in row[name] and "score" in row["default"]]
        if not rows:
            continue
        gains = np.array([gain(row, name) for row in rows])
        times = [sum(row[each]["seconds"] for row in rows) for each in (name, "default")]
        without, with_it = reversed(times) if name in ADDED else times
        helps, hurts = int((gains > HELPS).sum()), int((gains < -HELPS).sum())
        amounts = f"{100 * gains.mean():.2f} % | {100 * gains.max():.2f} %"
        lines.append(f"| {told} | {len(rows)} | {helps} | {hurts} | {amounts} | {without:.2f} | {with_it:.2f} |")
    lines += ["", "Means over the agents, by game; a dash where a trick has no part in it.", ""]
    names = [*LEFT_OUT, *ADDED]
    columns = ["game", "default", *(f"without {LEFT_OUT[name]}" for name in LEFT_OUT), *(ADDED[name] for name in ADDED)]
    lines += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for game, row in records.items():
        values = [f"{row[name]['value']:.4f}" if "value" in row.get(name, {}) else "-" for name in ("default", *names)]
        lines.append(f"| {game} | {' | '.join(values)} |")
    return SECTION.format(helps=HELPS) + "\n".join(lines) + "\n"


def main(argv: list[str]) -> None:
    """Solve what is missing."""
    argparse.ArgumentParser(description=__doc__).parse_args(argv)
    found = cases()
    records = json.loads(FILE.read_text("utf-8")) if FILE.is_file() else {}
    FILE.parent.mkdir(parents=True, exist_ok=True)
    for name in (each for each in found if each not in records):
        records[name] = record(found[name])
        FILE.write_text(json.dumps(records, indent=1) + "\n", "utf-8")
        print(
            name, {each: round(gain(records[name], each), 5) for each in records[name] if each != "default"}, flush=True
        )
