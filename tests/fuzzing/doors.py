"""Every door by which a file comes into the library, with files that it can read to begin with.

A door is kept if, whatever the bytes, it returns or raises a `CMPGError` that names the file.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import cmpg
from cmpg.errors import CMPGError
from cmpg.files.learning_folder import load_learning_run, resume_learning_run
from cmpg.files.long_runs import REQUEST, write_request
from cmpg.files.records import read_trace
from cmpg.files.run_folder import load_run, save_run
from cmpg.files.scenario_file import read_scenario, write_scenario
from cmpg.interop.gambit import read_nfg
from cmpg.interop.long_table import read_table, table_text
from cmpg.report.learning_page import trials_record, trials_summary
from cmpg.report.sweep_page import sweep_context, sweep_summaries
from cmpg.scenarios import Origin
from cmpg.scenarios.drawings import drawing_of
from cmpg.scenarios.readers.acn import read_sessions
from cmpg.scenarios.readers.dpomdp import read_dpomdp
from cmpg.scenarios.readers.movingai import read_map, read_scen
from cmpg.scenarios.readers.tntp import read_network, read_nodes, read_trips
from cmpg.scenarios.samples import sample_file
from cmpg.sweeps.grid import Grid, read_plan
from cmpg.sweeps.rows import proved_sweep
from cmpg.sweeps.running import sweep
from fuzzing.mutations import spoil

FINDINGS = Path(__file__).parent / "findings"
"""Files that once did harm, each named after its door."""


@dataclass(frozen=True)
class Door:
    """A reader, the ending of its files, and the words that mean something to it."""

    name: str
    read: Callable[[Path], Any]
    ending: str
    seeds: Callable[[], list[bytes]]
    words: tuple[bytes, ...] = ()
    beside: Callable[[], dict[str, bytes]] = field(default=dict)  # other files of the same folder
    target: str = ""  # the name of the file that is spoilt, where it matters
    slow: bool = False  # takes milliseconds: it proves things again, or builds a game

    @property
    def file_name(self) -> str:
        """What the spoilt file is called."""
        return self.target or f"file.{self.ending}"

    def prepare(self, folder: Path) -> None:
        """Write the files beside the one that is spoilt."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in {**self.beside(), self.file_name: b""}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)

    def spoilt(self, rng: Random) -> bytes:
        """Return a file with a few accidents."""
        seeds = self.seeds()
        return spoil(seeds[rng.randrange(len(seeds))], self.ending.rpartition(".")[2], rng, self.words)

    def try_file(self, folder: Path, data: bytes) -> str | None:
        """Return how the door was broken, or None."""
        path = folder / self.file_name
        path.write_bytes(data)
        try:
            self.read(path)
        except CMPGError as problem:
            return None if str(folder) in str(problem) else f"names no file: {type(problem).__name__}: {problem}"
        except Exception as problem:
            return f"{type(problem).__name__}: {problem}"
        return None


def _sample(name: str) -> Callable[[], list[bytes]]:
    @cache
    def read() -> list[bytes]:
        with sample_file(name) as path:
            return [path.read_bytes()]

    return read


def small_games() -> dict[str, Any]:
    """A small game of every form."""
    local = cmpg.LocalGame(
        agents=tuple(
            cmpg.LocalAgent(
                transition=np.ones((1, 1, 2, 1)),
                reward=[[[0, 1]]],
                uses=[[[[0], [1]]]],
                initial=[1],
                costs=[[[[0, 1]]]],
            )
            for _ in range(2)
        ),
        delay=[[[0, 0.25, 0.5]]],
        load_costs=[[[[0, 0, 1]]]],
        thresholds=[0.5],
        horizon=2,
        agent_names=("Ada", "Bo"),
    )
    counting = cmpg.CountingGame(
        rewards=[[[[0, -1, -2, -3]] * 2]],
        classes=cmpg.games.LargestCount((2,)),
        transition=[[[[1.0]] * 2]],
        costs=[[[[0.0, 1.0]]]],
        thresholds=[0.5],
        initial=[1.0],
        horizon=1,
    )
    rng = np.random.default_rng(1)
    joint = cmpg.JointGame(
        transition=rng.multinomial(4, [0.5, 0.5], size=(1, 2, 2, 2)) / 4,
        rewards=np.stack([rng.integers(-4, 5, size=(1, 2, 2, 2)) / 4] * 2),
        costs=rng.integers(0, 5, size=(1, 1, 2, 2, 2)) / 4,
        thresholds=[1.5],
        initial=[0.5, 0.5],
        horizon=2,
        state_names=("day", "night"),
    )
    discounted = cmpg.JointGame(
        transition=joint.transition,
        rewards=joint.rewards,
        costs=joint.costs,
        thresholds=[3.0],
        initial=joint.initial,
        discount=0.75,
    )
    plain = cmpg.scenarios.counter_example()
    return {"plain": plain, "joint": joint, "discounted": discounted, "local": local, "counting": counting}


DRAWN = ("grid-world-local", "routing", "charging")
"""Scenarios that a page draws, each in a way of its own."""


@cache
def _files() -> dict[str, bytes]:
    """Games, policies, a run folder and a learning run in bytes, made once."""
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for label, game in small_games().items():
            for ending in ("json", "npz"):
                cmpg.save_game(game, folder / f"{label}.{ending}")
            found |= {f"{label}.{ending}": (folder / f"{label}.{ending}").read_bytes() for ending in ("json", "npz")}
            found[f"{label} again.npz"] = _without_packing(folder / f"{label}.npz", folder / "again.npz")
        (folder / "sparse.json").write_text(json.dumps(_sparse_game()))
        found["sparse.json"] = (folder / "sparse.json").read_bytes()
        game = small_games()["joint"]
        result = cmpg.solve(game, rng=1, restarts=cmpg.Restarts(3))
        for ending in ("json", "npz"):
            result.policy.save(folder / f"policy.{ending}", multipliers=result.multipliers)
            found[f"policy.{ending}"] = (folder / f"policy.{ending}").read_bytes()
            _compact_policy().save(folder / f"compact.{ending}", multipliers=result.multipliers, version=2)
            found[f"compact.{ending}"] = (folder / f"compact.{ending}").read_bytes()
        save_run(folder / "run", result, seed=1, origin=Origin("counter-example", {}))
        for name in DRAWN:
            write_scenario(folder / f"{name}.json", Origin(name, {}), drawing_of(Origin(name, {})))
            found[f"drawn/{name}"] = (folder / f"{name}.json").read_bytes()
        found |= {f"run/{path.name}": path.read_bytes() for path in sorted((folder / "run").iterdir())}
        found |= {f"learn/{key}": value for key, value in _learning_run(folder / "learn").items()}
        write_request(folder, {"command": "learn"})
        found[f"learn/{REQUEST}"] = (folder / REQUEST).read_bytes()
        sweep("spectrum", {"threshold": [0.1, 0.2], "num_agents": [2]}, out=folder / "sweep")
        swept = [path for path in sorted((folder / "sweep").rglob("*")) if path.is_file()]
        found |= {f"sweep/{path.relative_to(folder / 'sweep')}": path.read_bytes() for path in swept}
        found["table.csv"] = table_text(game).encode()
    return found


def _compact_policy() -> cmpg.JointPolicy:
    """Two agents, of whom one mixes in two states."""
    mixing = [[[0.25, 0.75], [1.0, 0.0]], [[0.0, 1.0], [0.5, 0.5]]]
    return cmpg.JointPolicy((mixing, [[[0.0, 0.0, 1.0]] * 2] * 2))


def _without_packing(source: Path, target: Path) -> bytes:
    with np.load(source) as arrays:
        np.savez(target, **arrays)
    return target.read_bytes()


def _sparse_game() -> dict[str, Any]:
    return {
        "format": "cmpg-game",
        "version": 1,
        "form": "joint",
        "horizon": 2,
        "initial": [1, 0],
        "transition_indptr": [0, 1, 2, 4, 5],
        "transition_indices": [0, 1, 0, 1, 1],
        "transition_data": [1, 1, 0.5, 0.5, 1],
        "rewards": [[[[1, 0], [0, 2]]]],
        "costs": [[[[1, 0], [0, 1]]]],
        "thresholds": [1],
    }


def _learning_run(folder: Path) -> dict[str, bytes]:
    """Learn a tiny game into a folder, and return its files."""
    from cmpg.files.learning_folder import keep_trial
    from cmpg.learning.trials import BySharedModel, HiddenGame, trials

    game = small_games()["plain"]
    folder.mkdir()
    cmpg.save_game(game, folder / "game.npz")
    hidden, method = HiddenGame(game, budget=2000), BySharedModel(epsilon=0.5, delta=0.1)
    for each in trials(hidden, method, streams=np.random.SeedSequence(1).spawn(2)):
        keep_trial(folder, each)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def _named(*names: str) -> Callable[[], list[bytes]]:
    return lambda: [_files()[name] for name in names]


def _folder(prefix: str, without: str) -> Callable[[], dict[str, bytes]]:
    def beside() -> dict[str, bytes]:
        inside = {name.removeprefix(prefix): data for name, data in _files().items() if name.startswith(prefix)}
        return {name: data for name, data in inside.items() if name != without}

    return beside


def _run_doors() -> list[Door]:
    """One door for each file of a run folder."""
    files = ("result.json", "certificate.json", "trace.csv", "scenario.json", "game.npz", "policy.npz")
    return [
        Door(
            name=f"run {name}",
            read=lambda path: load_run(path.parent),
            ending=name.rpartition(".")[2],
            seeds=_named(f"run/{name}"),
            beside=_folder("run/", name),
            target=name,
            slow=True,
        )
        for name in files
    ]


def _learning_doors() -> list[Door]:
    return [
        Door(
            name=f"learning {name}",
            read=lambda path: load_learning_run(path.parent),
            ending=name.rpartition(".")[2],
            seeds=_named(f"learn/{name}"),
            beside=_folder("learn/", name),
            target=name,
            slow=True,
        )
        for name in ("seeds.jsonl", "policy_0.npz", "game.npz")
    ]


def _resumed(path: Path) -> None:
    """Go on with a learning run, and tell how its seeds ended."""
    game = small_games()["plain"]
    done = resume_learning_run(path.parent, game, {"command": "learn"})
    trials_summary(done, thresholds=game.thresholds)
    trials_record(done)


def _sweep_doors() -> list[Door]:
    def read(folder: Path) -> None:
        found = proved_sweep(folder)
        sweep_summaries(found)
        sweep_context(found)

    return [
        Door(
            name=f"sweep {name.rpartition('/')[2]}",
            read=lambda path: read(next(folder for folder in path.parents if (folder / "results.csv").exists())),
            ending="json",
            seeds=_named(f"sweep/{name}"),
            beside=_folder("sweep/", name),
            target=name,
            slow=True,
        )
        for name in (REQUEST, "runs/0000/row.json")
    ]


@cache
def _trace_game() -> Any:
    return small_games()["joint"]


def _packed(seeds: Callable[[], list[bytes]]) -> Callable[[], list[bytes]]:
    return lambda: [gzip.compress(data, 1, mtime=0) for data in seeds()]


FORMS = ("plain", "joint", "discounted", "local", "counting")
NFG = b"""NFG 1 R "two radios" { "Ada" "Bo" }
{ { "silent" "send" } { "silent" "send" } }
"a comment"
0 0  1 0  0 1/3  -0.5 1e-3
"""
NFG_OUTCOMES = b"""NFG 1 D "outcomes" { "Ada" "Bo" } { 2 2 } { { "" 1 2 } { "x" 3, 4 } } 1 2 0 1
"""
DPOMDP_WORDS = (
    *(
        b"agents: 2",
        b"discount: 1",
        b"values: cost",
        b"states: 3",
        b"start: uniform",
        b"start include: 0",
        b"start exclude: 0",
    ),
    *(b"actions:", b"observations:", b"T: * :", b"T: * : * : * : 1", b"O: * : * : * : 1", b"R: * : * : * : * : 1"),
    *(b"R: * : * :", b"identity", b"uniform", b"*", b"100000", b"999999"),
)
TNTP_WORDS = (
    *(b"<NUMBER OF NODES> 1000000000000", b"<NUMBER OF ZONES> 3", b"<NUMBER OF LINKS> 1", b"<FIRST THRU NODE> 99"),
    *(b"<END OF METADATA>", b"Origin 1", b"1 : 5;", b"<TOTAL OD FLOW> 0", b"1 2 1 1 1 0.15 1e308 0 0 1 ;", b"node x y"),
)
PLAN = b"""scenario = "spectrum"
epsilon = 1e-6
restarts = 2
[options]
agents = "2:3"
threshold = [0.05, 0.1]
seed = 1
"""
PLAN_WORDS = (
    b"[options]",
    b"x = {}",
    b"x = [{}]",
    b"x = [1, [2]]",
    b"x = 2019-06-10",
    b"[[a]]",
    b"x = inf",
    b"epsilon = nan",
)
TABLE_WORDS = (b"horizon", b"discount", b"threshold", b"initial", b"transition", b"reward", b"cost", b"action of Ada")


@cache
def _trips_beside() -> dict[str, bytes]:
    return {"trips.tntp": _sample("sample_trips.tntp")()[0]}


DOORS: tuple[Door, ...] = (
    Door("game json", cmpg.load_game, "json", _named(*(f"{form}.json" for form in FORMS), "sparse.json")),
    Door("exact game", lambda path: cmpg.load_game(path, exact=True), "json", _named("joint.json", "counting.json")),
    Door(
        "game npz", cmpg.load_game, "npz", _named(*(f"{form}{which}.npz" for form in FORMS for which in ("", " again")))
    ),
    Door("policy json", cmpg.load_policy, "json", _named("policy.json")),
    Door("policy npz", cmpg.load_policy, "npz", _named("policy.npz")),
    Door("compact policy json", cmpg.load_policy, "json", _named("compact.json")),
    Door("compact policy npz", cmpg.load_policy, "npz", _named("compact.npz")),
    Door("exact compact policy", lambda path: cmpg.load_policy(path, exact=True), "json", _named("compact.json")),
    Door("scenario file", read_scenario, "json", _named(*(f"drawn/{name}" for name in DRAWN))),
    Door("trace", lambda path: read_trace(path, _trace_game()), "csv", _named("run/trace.csv")),
    *_run_doors(),
    *_learning_doors(),
    Door(
        "resumed seeds",
        _resumed,
        "jsonl",
        _named("learn/seeds.jsonl"),
        beside=_folder("learn/", "seeds.jsonl"),
        target="seeds.jsonl",
    ),
    *_sweep_doors(),
    Door("plan", lambda path: Grid.of(read_plan(path).options), "toml", lambda: [PLAN], PLAN_WORDS),
    Door("sessions", read_sessions, "csv", _sample("sample_sessions.csv")),
    Door("packed sessions", read_sessions, "csv.gz", _packed(_sample("sample_sessions.csv"))),
    Door(
        "charging",
        lambda path: cmpg.scenarios.charging(sessions=path),
        "csv",
        _sample("sample_sessions.csv"),
        slow=True,
    ),
    Door("map", read_map, "map", _sample("sample.map"), (b"type octile", b"height 5", b"width 5", b"map", b"@", b".")),
    Door("packed map", read_map, "map.gz", _packed(_sample("sample.map"))),
    Door("pairs", read_scen, "scen", _sample("sample.scen"), (b"version 1", b"0\tm.map\t5\t5\t0\t0\t1\t1\t2")),
    Door("robots", lambda path: cmpg.scenarios.robots(map=path, num_agents=2, horizon=6), "map", _sample("sample.map")),
    Door("network", read_network, "tntp", _sample("sample_net.tntp"), TNTP_WORDS),
    Door("trips", read_trips, "tntp", _sample("sample_trips.tntp"), TNTP_WORDS),
    Door("nodes", read_nodes, "tntp", _sample("sample_node.tntp"), TNTP_WORDS),
    Door(
        "routing",
        lambda path: cmpg.scenarios.routing(
            network=path, trips=path.with_name("trips.tntp"), num_agents=3, protected="", horizon=6
        ),
        "tntp",
        _sample("sample_net.tntp"),
        TNTP_WORDS,
        beside=_trips_beside,
        slow=True,
    ),
    Door("team", lambda path: cmpg.scenarios.team(file=path), "dpomdp", _sample("sample.dpomdp"), DPOMDP_WORDS),
    Door("dpomdp", read_dpomdp, "dpomdp", _sample("sample.dpomdp"), DPOMDP_WORDS),
    Door("nfg", read_nfg, "nfg", lambda: [NFG, NFG_OUTCOMES], (b"NFG", b"{", b"}", b'""', b"R", b"100000", b"{ 2 2 }")),
    Door("exact nfg", lambda path: read_nfg(path, exact=True), "nfg", lambda: [NFG, NFG_OUTCOMES]),
    Door("long table", read_table, "csv", _named("table.csv"), TABLE_WORDS),
    Door("exact long table", lambda path: read_table(path, exact=True), "csv", _named("table.csv"), TABLE_WORDS),
)
"""All doors."""

BY_NAME = {door.name: door for door in DOORS}
