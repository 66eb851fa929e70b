"""How good are the equilibria that one `solve` finds? A table over scenarios, random games and public problem files.

    python -m checks quality [--only TEXT]

Every game is solved once, and with 20 restarts; the value of the first is compared with the best of all and with the
proved upper bound. What is done is kept in build/quality, and is done again only after the library has changed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from checks import BUILD, DATA, evidence, fingerprint
from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.planning import plan
from cmpg.equilibrium.runs import Restarts, uninterrupted
from cmpg.equilibrium.solve import solve
from cmpg.games.game import Game
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.scenarios import SCENARIOS

RESTARTS, SEED = 20, 1
EPSILON = 1e-4

Cases = dict[str, Callable[[], Game]]
Record = dict[str, Any]
Records = dict[str, Record]


def cases() -> Cases:
    """Return what builds each game, by name."""
    found: Cases = {name: each.build for name, each in SCENARIOS.items()}
    found["congestion-counting"] = partial(SCENARIOS["congestion-counting"].build, num_agents=20)
    found |= {f"random joint {seed}": partial(random_joint_game, seed) for seed in range(10)}
    found |= {f"random local {seed}": partial(random_local_game, seed) for seed in range(10)}
    return found | _public_cases()


def _public_cases() -> Cases:
    found: Cases = {}
    for path in sorted((DATA / "madp").glob("*.dpomdp")):
        found[path.stem] = partial(SCENARIOS["team"].build, file=path)
        found[f"{path.stem}, budget"] = partial(_budgeted_team, path)
    if (DATA / "madp" / "boxPushingUAI07.dpomdp").is_file():
        found["boxPushingUAI07, both act ≤ 1.8"] = partial(_box_pushing, DATA / "madp" / "boxPushingUAI07.dpomdp")
    if (DATA / "tntp").is_dir():
        files = {"network": DATA / "tntp" / "SiouxFalls_net.tntp", "trips": DATA / "tntp" / "SiouxFalls_trips.tntp"}
        found["Sioux Falls, 60 platoons"] = partial(SCENARIOS["routing"].build, num_agents=60, seed=0, **files)
    if (DATA / "acn").is_dir():
        sessions = DATA / "acn" / "caltech_2019-05_2019-08.csv.gz"
        found["Caltech, 12 June 2019"] = partial(SCENARIOS["charging"].build, sessions=sessions, day="2019-06-12")
    return found


def random_joint_game(seed: int) -> JointGame:
    """Return a game with one common reward: 2 or 3 agents, 1 or 2 constraints; what pays is expensive."""
    rng = np.random.default_rng([11, seed])
    agents, constraints, states, horizon = 2 + seed % 2, 1 + seed // 2 % 2, 3 + seed % 4, 3
    table = (states, *(3 for _ in range(agents)))
    common = rng.random((1, *table)) ** 2
    costs = 0.7 * common[None] + 0.3 * rng.random((constraints, 1, *table))
    transition = rng.dirichlet(0.5 * np.ones(states), size=(1, *table))
    game = JointGame(
        transition=transition,
        rewards=np.stack([common] * agents),
        costs=costs,
        thresholds=np.full(constraints, 1e3),
        initial=rng.dirichlet(np.ones(states)),
        horizon=horizon,
    )
    return _between(game, 0.4)


def random_local_game(seed: int) -> LocalGame:
    """Return a game of 3 to 7 agents that meet at 3 resources with rising delays and a budget of crowding."""
    rng = np.random.default_rng([12, seed])
    agents, states, actions, resources, horizon = 3 + seed // 2, 3, 3, 3, 3
    members = []
    for _ in range(agents):
        uses = (rng.random((1, states, actions, resources)) < 0.4).astype(float)
        members.append(
            LocalAgent(
                transition=rng.dirichlet((0.1 if seed % 2 else 0.5) * np.ones(states), size=(1, states, actions)),
                reward=2 * rng.random((1, states, actions)) * (0.3 + uses.sum(axis=-1)),
                uses=uses,
                initial=np.eye(states)[0],
            )
        )
    loads = np.arange(agents + 1)
    delay = rng.random((1, resources, 1)) * 0.5 * np.maximum(loads - 1, 0) ** rng.uniform(0.5, 2)
    crowding = rng.random((1, 1, resources, 1)) * np.maximum(loads - 1, 0)
    game = LocalGame(agents=members, delay=delay, load_costs=crowding, thresholds=[1e3], horizon=horizon)
    selfish = game.at(solve(game).policy).costs
    return game.with_thresholds(0.4 * selfish + 0.05)


def _between(game: JointGame, share: float) -> JointGame:
    """Set each threshold between the least cost and what the planner's plan spends without a budget."""
    planner = game.joint_cmdp()
    spent = evaluate(planner, Exact()(planner).policy).costs
    least = plan(planner, np.ones(len(spent)), reward_weight=0.0).costs
    return game.with_thresholds(least + share * (spent - least) + 1e-3)


def _with_cost(game: JointGame, cost: Any, threshold: float) -> JointGame:
    return JointGame(
        transition=game.transition,
        rewards=game.rewards,
        costs=np.broadcast_to(cost, (1, 1, *game.rewards.shape[2:])),
        thresholds=[threshold],
        initial=game.initial,
        horizon=game.horizon,
        agent_names=game.agent_names,
        state_names=game.state_names,
        action_names=game.action_names,
    )


def _budgeted_team(path: Path) -> JointGame:
    """Return the problem with a random cost of every state and joint action, half of what the plan would spend."""
    game = SCENARIOS["team"].build(file=path)
    assert isinstance(game, JointGame)
    rng = np.random.default_rng([13, *path.stem.encode()])
    return _between(_with_cost(game, rng.random(game.rewards.shape[2:]), 1e3), 0.5)


def _box_pushing(path: Path) -> JointGame:
    """Return the box-pushing problem in which steps where neither agent stays cost 1, and 1.8 may be spent."""
    game = SCENARIOS["team"].build(file=path)
    assert isinstance(game, JointGame)
    assert game.action_names is not None
    acts = np.array([name != "stay" for name in game.action_names[0]], dtype=float)
    return _with_cost(game, acts[:, None] * acts, 1.8)


def record(build: Callable[[], Game]) -> dict[str, Any]:
    """Solve a game once, and with restarts; return the values, how it ended and how long it took."""
    game = build()
    began = time.process_time()
    one = uninterrupted(solve(game, epsilon=EPSILON))
    seconds = time.process_time() - began
    began = time.process_time()
    many = uninterrupted(solve(game, epsilon=EPSILON, restarts=Restarts(RESTARTS), rng=SEED))
    spent = time.process_time() - began
    began = time.process_time()
    bound = _bound(one)
    bounded = time.process_time() - began
    return {
        "agents": game.num_agents,
        "bound": bound,
        "bound_seconds": bounded,
        "one": _score(game, one),
        "seconds": seconds,
        "many": _score(game, many),
        "many_seconds": spent,
        "distinct": len(many.equilibria),
    }


def _bound(result: Any) -> float | None:
    """Return what no feasible policy exceeds per agent; None if that is unknown."""
    bound = None if result.incumbent is None else result.quality().bound
    return None if bound is None else float(bound.value / len(result.values))


def _score(game: Game, result: Any) -> dict[str, Any]:
    if result.incumbent is None:
        return {"status": result.status.name}
    potential = game.potential(result.policy) if game.potential_proof() is not None else None
    return {"status": result.status.name, "value": float(np.mean(result.values)), "potential": potential}


def _missing(found: Cases, path: Path, only: str) -> Iterator[str]:
    there = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    yield from (name for name in found if only in name and name not in there)


def _record_all(path: Path, only: str) -> None:
    found = cases()
    for name in _missing(found, path, only):
        records = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        records[name] = record(found[name])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(records, indent=1) + "\n", "utf-8")
        print(name, records[name], flush=True)


def page(records: Records) -> str:
    """Return the table of a record."""
    rows = []
    for name, each in records.items():
        one, many = _value(each, "one"), _value(each, "many")
        bound = "unknown" if each["bound"] is None else f"{each['bound']:.4f}"
        times = [f"{each[name]:.3f}" for name in ("seconds", "bound_seconds")]
        rows.append(
            f"| {name} | {one:.4f} | {many:.4f} | {bound} | {_share(one, max(one, many))} | {' | '.join(times)} |"
        )
    head = ("game", "one solve", f"best of {RESTARTS}", "bound", "of the best known", "s", "s of the bound")
    return "\n".join([HEAD, f"| {' | '.join(head)} |", "|---" * len(head) + "|", *rows, ""])


HEAD = """\
# How good are the equilibria?

Values are means over the agents. Seconds are of one solve, and of its upper bound (CPU).
"""


def finding(records: Records) -> str:
    """Return the headline: how many games reach 95 % of what is known, and how far the bounds are away."""
    values = {name: (_value(each, "one"), _value(each, "many")) for name, each in records.items()}
    good = sum(one >= max(one, many) - 0.05 * abs(max(one, many)) for one, many in values.values())
    gaps = [
        (each["bound"] - values[name][0]) / max(abs(each["bound"]), 1e-12)
        for name, each in records.items()
        if each["bound"] is not None
    ]
    certified = sum(each["one"]["status"] == "CERTIFIED" for each in records.values())
    return (
        f"{certified} of {len(records)} games certified by one solve; {good} of them within 5 % of the best of "
        f"{RESTARTS} restarts; median distance to the proved upper bound {100 * float(np.median(gaps)):.1f} %"
    )


def _value(record: Record, how: str) -> float:
    return float(record[how].get("value", -np.inf))


def _share(value: float, best: float) -> str:
    """Return how much of the best known is reached; of losses, how much more is lost."""
    if best > 0:
        return f"{100 * value / best:.1f} %"
    return "100.0 %" if value == best else f"{100 - 100 * (best - value) / abs(best):.1f} %"


def main(argv: list[str]) -> None:
    """Solve what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names that have this in them")
    given = parser.parse_args(argv)
    path = BUILD / "quality" / f"{fingerprint()}.json"
    _record_all(path, given.only)
    records = json.loads(path.read_text("utf-8"))
    text = page(records)
    (BUILD / "quality.md").write_text(text, "utf-8")
    print(text)
    if set(records) == set(cases()):
        evidence.record("quality", finding(records))
