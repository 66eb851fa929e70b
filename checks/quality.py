"""How good are the equilibria that one `solve` finds? A table over scenarios, random games and public problem files.

python -m checks quality record FILE [--only TEXT]   solve every game once, and with 20 restarts; keep the values
python -m checks quality page                        write build/quality.md from both records, and that of tricks.py

`record` uses nothing but what old versions have too, so that the values of before are recorded by the same file:
PYTHONPATH=old/src python -m checks quality record experiments/quality_before.json
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

from checks import BUILD, DATA, ROOT
from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.planning import plan
from cmpg.equilibrium.solve import solve
from cmpg.games.contract import Game
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.scenarios import SCENARIOS

BEFORE = ROOT / "checks" / "quality_before.json"
AFTER = BUILD / "quality" / "quality_after.json"

RESTARTS, SEED = 20, 1
EPSILON = 1e-4

Cases = dict[str, Callable[[], Game]]
Record = dict[str, Any]
Records = dict[str, Record]


def cases() -> Cases:
    """Return what builds each game, by name."""
    found: Cases = {name: each.build for name, each in SCENARIOS.items()}
    found["congestion-counting"] = partial(SCENARIOS["congestion-counting"].build, num_agents=20)
    robots = SCENARIOS["robots"]
    # As it was before robots could meet on edges, too: the same game in both records.
    found["robots"] = partial(robots.build, **({"edges": False} if "edges" in robots.options else {}))
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
    """Return a game with one common reward: 2 or 3 agents, 1 or 2 constraints; what pays is dear."""
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
    """Return a game of 3 to 7 agents who meet at 3 resources with rising delays and a budget of crowding."""
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
    one = solve(game, epsilon=EPSILON)
    seconds = time.process_time() - began
    began = time.process_time()
    many = solve(game, epsilon=EPSILON, restarts=RESTARTS, seed=SEED)
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
    """Return what no feasible policy exceeds per agent; versions that cannot say so have no `quality`."""
    if not hasattr(type(result), "quality") or result.incumbent is None or result.quality.welfare.bound is None:
        return None
    return float(result.quality.welfare.bound.value / len(result.values))


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


HEAD = """\
# How good are the equilibria?

A certificate proves that nobody gains by leaving. It does not say that no other equilibrium is better. This page has
the proofs of the upper bounds that every result carries, and a table over {count} games. The table is written by
`make quality` from two records, of this version and of the one before it had planned starts; nothing is edited by
hand.

```python
>>> import cmpg
>>> result = cmpg.solve(cmpg.scenarios.routing(num_agents=6))
>>> welfare = result.quality.welfare
>>> bool(welfare.value <= welfare.bound.value)
True

```

`cmpg solve`, `--json` and the page of a run say it in words: "at least 93 % of the best possible", "within 4 % of
the best possible" where values are losses, or as a difference where signs vary. The bound is computed when it is
asked for or printed, so that `cmpg.solve` is as fast as without it.

## Who proves the bound

**A planner (joint games).** One planner who chooses all actions can do whatever the agents can. Its best feasible
policy solves one CMDP, of the sum of the rewards for the welfare, and of the stage reward whose value is the
potential for that. For any λ ≥ 0 weak duality bounds it by λ·α + max V^{{r − λ·c}}, one backward induction, at the
multipliers that the exact solver returns. Agents who cannot correlate may not reach it: the bound is D* of the
paper's section 4.

**A planner who counts (counting games).** Costs and transitions depend on the class of the counts alone, so it is
enough that the planner chooses a class, and is given the best stage of all count vectors in it. Private rewards are
bounded by the largest ones that so many agents could get.

**Common prices (local games).** At multipliers λ ≥ 0 every feasible policy is worth at most

    λ·α + Σ_i V_i(private − λ·costs) − Σ_(h,e) E[f(N)],   f(m) = m·d(m) + λ·g(m)

for the welfare, with Σ_(l ≤ m) d(l) instead of m·d(m) for the potential; N is the load of resource e at step h.
Choose any price p for a use of (h, e), and let f*(p) = max_m (p·m − f(m)) over loads that can occur. Then f(N) ≥ p·N
− f*(p) holds for every load, and E[N] is the sum of the agents' usages. So

    λ·α + Σ_(h,e) f*(p) + Σ_i max V_i(private − λ·costs − p·uses)

bounds every feasible policy: n dynamic programs of agents who plan alone. It is convex in (λ, p), and a few dozen
subgradient steps of Polyak's length find good prices near those of the equilibrium. What it gives away is that loads
are taken at the convex envelope of f, as if agents could correlate who comes when.

All three include an allowance for every rounding, so that they hold in exact arithmetic. The same prices, with
rewards left out, prove that a local game has no feasible policy at all.

## Which starts earn their time

`solve` takes the best certified ending of a few cheap starts, and says so. In joint and counting games these are the
planner's plan (`Planned()`: its mixture split among the agents, moved inside the thresholds where the split breaks
one, or the best deterministic plan of its ties) and the cheapest policy; the second is left out where the first ends
at the bound. In local games it is the common price alone, which the table shows to be within a few percent of the
best known already, and which is as fast as before.

Where the best ending is not proved to be the best possible, pairs of agents trade: at rest every agent has a price of
its own for what is left of a budget, and if prices differ, one agent gives some of it to another who pays more. What
such a trade promises is told by one backward induction; only where that is enough it is tried, the ascent goes on
from there, and the better of both endings is kept (`PairMoves`).

Values are means over the agents. "Best known" is the best of all runs in the row. Seconds are of one solve (CPU),
before and after, and of the bound.
"""


def page(before: Records, after: Records) -> str:
    """Return the page of two records."""
    rows, good, never_below = [], 0, 0
    for name, old in before.items():
        new = after[name]
        values = [_value(each, how) for each in (old, new) for how in ("one", "many")]
        best = max(values)
        reached = values[2] >= best - 0.05 * abs(best)
        good, never_below = good + reached, never_below + (values[2] >= values[0] - 1e-6 * abs(values[0]))
        bound = "unknown" if new["bound"] is None else f"{new['bound']:.4f}"
        numbers = [f"{value:.4f}" for value in (values[0], values[2], values[1], values[3])]
        times = [f"{each:.3f}" for each in (old["seconds"], new["seconds"], new["bound_seconds"])]
        rows.append(f"| {name} | {' | '.join(numbers)} | {bound} | {_share(values[2], best)} | {' | '.join(times)} |")
    columns = ("game", "one solve before", "after", "best of 20 before", "after", "bound", "of the best known")
    head = [*columns, "s before", "s after", "s bound"]
    table = [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *rows]
    said = (
        f"One solve reaches at least 95 % of the best known on {good} of {len(rows)} games, and is at least what it "
        f"was before on {never_below} of {len(rows)}. Certified: "
        f"{sum(each['one']['status'] == 'CERTIFIED' for each in after.values())} of {len(after)}."
    )
    return HEAD.format(count=len(rows)) + "\n## The table\n\n" + said + "\n\n" + "\n".join(table) + "\n"


def _value(record: Record, how: str) -> float:
    return float(record[how].get("value", -np.inf))


def _share(value: float, best: float) -> str:
    """Return how much of the best known is reached; of losses, how much more is lost."""
    if best > 0:
        return f"{100 * value / best:.1f} %"
    return "100.0 %" if value == best else f"{100 - 100 * (best - value) / abs(best):.1f} %"


def main(argv: list[str]) -> None:
    """Record, or write the page."""
    parser = argparse.ArgumentParser(description="How good the equilibria of one solve are, over many games.")
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="solve every game that the record does not have yet")
    recording.add_argument("file", type=Path)
    recording.add_argument("--only", default="", help="names that have this in them")
    commands.add_parser("page", help="write build/quality.md")
    given = parser.parse_args(argv)
    if given.command == "record":
        _record_all(given.file, given.only)
        return
    from checks import tricks

    before, after, left_out = (json.loads(path.read_text("utf-8")) for path in (BEFORE, AFTER, tricks.FILE))
    (BUILD / "quality.md").write_text(page(before, after) + tricks.section(left_out), "utf-8")
