"""Fuzz every door by which a file comes into the library, and `solve` with small games of hard numbers.

    python -m checks fuzz                                 five minutes
    python -m checks fuzz --minutes 300 --jobs 8          hours
    python -m checks fuzz --executions 1000000 --solves 20000 --jobs 2
    python -m checks fuzz --engine atheris --door nfg     guided by coverage, at one door, where atheris is installed

Spoilt files are numbered; what is done is kept in build/fuzz, and is done again only after the library or the fuzzer
has changed. What breaks a door becomes a file in tests/fuzzing/findings, which the tests read from then on.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from multiprocessing import get_context
from pathlib import Path

from checks import BUILD, evidence, fingerprint
from checks.records import Records

CHUNK = 1000
"""Spoilt files that are tried before anything is written down."""

PACKED_CHUNK = 200
"""The same for archives, and for games that take half a millisecond to read."""

HALF = ("game json", "exact game", "team", "dpomdp", "trips", "long table", "exact long table")
"""Doors of that kind."""

SLOW_CHUNK = 50
"""The same for doors that take milliseconds, because they prove things again or build a game."""

SOLVE_CHUNK = 500
"""The same for games to solve."""

MAX_MEMORY = 4 * 2**30
"""Bytes of address space: what asks for more gets a MemoryError, which is a finding, and the machine lives on."""


def work(task: tuple[str, int, int]) -> dict:
    """Do one chunk of work, keep what broke as a file, and return the record of it."""
    from fuzzing.running import try_door, try_solving

    name, begin, end = task
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    began = time.process_time()
    if name == "solve":
        executed, found = try_solving(range(begin, end))
    else:
        executed, found = end - begin, try_door(name, range(begin, end))
    for each in found:
        keep(each.door, each.data)
    return {
        "door": name,
        "begin": begin,
        "executed": executed,
        "seconds": time.process_time() - began,
        "found": [each.problem[:200] for each in found],
    }


def keep(door: str, data: bytes) -> Path:
    """Write a finding where the tests read it."""
    from fuzzing.doors import BY_NAME, FINDINGS

    ending = "json" if door == "solve" else BY_NAME[door].ending
    path = FINDINGS / f"{door.replace(' ', '_')}--{hashlib.sha256(data).hexdigest()[:8]}.{ending}"
    FINDINGS.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


def tasks(done: Counter[str], chosen: argparse.Namespace) -> Iterator[tuple[str, int, int]]:
    """Yield chunks of work, door by door in turn, until the wanted numbers are reached; without numbers, for ever."""
    from fuzzing.doors import DOORS

    doors = [door for door in DOORS if chosen.door in (None, door.name)]
    places = Counter(done)
    for turn in count():
        before = sum(places.values())
        for door in doors:
            if chosen.executions is None or sum(places[each.name] for each in doors) < chosen.executions:
                half = door.ending == "npz" or door.name in HALF
                size = SLOW_CHUNK if door.slow else PACKED_CHUNK if half else CHUNK
                yield door.name, places[door.name], places[door.name] + size
                places[door.name] += size
        wanted = chosen.solves if chosen.solves is not None else chosen.executions
        more = chosen.door is None and (wanted is None or places["solve"] * SOLVED < wanted)
        if more and turn % 2 == 0:
            yield "solve", places["solve"], places["solve"] + SOLVE_CHUNK
            places["solve"] += SOLVE_CHUNK
        if not more and sum(places.values()) == before:
            return


SOLVED = 0.6
"""About this part of the games with hard numbers can be read, and only those are solved."""


def own_engine(chosen: argparse.Namespace) -> int:
    """Fuzz with the mutations of tests/fuzzing, in several processes."""
    path = BUILD / "fuzz" / f"{fingerprint('tests/fuzzing')}.jsonl"
    records = Records(path, lambda record: (record["door"], record["begin"]))
    done: Counter[str] = Counter()
    for record in records.known.values():
        size = record["executed"] if record["door"] != "solve" else SOLVE_CHUNK
        done[record["door"]] = max(done[record["door"]], record["begin"] + size)
    ends = time.monotonic() + 60 * chosen.minutes
    with get_context("spawn").Pool(chosen.jobs) as pool:
        try:
            for record in pool.imap(work, takewhile_time(tasks(done, chosen), ends)):
                for problem in records.keep(record)["found"]:
                    print(f"{record['door']}: {problem}", flush=True)
        except KeyboardInterrupt:
            print("interrupted; the next run goes on from here")
    return summarise([*records.known.values()])


def takewhile_time(work_to_do: Iterator[tuple[str, int, int]], ends: float) -> Iterator[tuple[str, int, int]]:
    """Yield while there is time."""
    for task in work_to_do:
        if time.monotonic() > ends:
            return
        yield task


def summarise(records: list[dict]) -> int:
    """Print what was done, and return 1 if anything broke."""
    executed, seconds, found = Counter(), Counter(), Counter()
    for record in records:
        executed[record["door"]] += record["executed"]
        seconds[record["door"]] += record["seconds"]
        found[record["door"]] += len(record["found"])
    for name in executed:
        print(f"{name:24} {executed[name]:>9,} executions  {seconds[name]:7.1f} s  {found[name]} findings")
    solves = executed.pop("solve", 0)
    finding = (
        f"{sum(executed.values()):,} corrupted files for {len(executed)} parsers and {solves:,} games with extreme "
        f"numbers; {sum(found.values())} crashes"
    )
    print(f"{finding}; {sum(seconds.values()) / 60:.1f} CPU minutes")
    evidence.record("fuzz", finding)
    return 1 if sum(found.values()) else 0


def atheris_engine(chosen: argparse.Namespace) -> int:
    """Fuzz one door guided by coverage; libFuzzer ends the process itself, after so many seconds or a finding."""
    import tempfile
    from random import Random

    import atheris

    with atheris.instrument_imports(include=["cmpg"]):
        from fuzzing.doors import BY_NAME
    from fuzzing.mutations import spoil

    door = BY_NAME[chosen.door or "nfg"]
    folder = Path(tempfile.mkdtemp())
    corpus = BUILD / "fuzz" / "corpus" / door.name.replace(" ", "_")
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(door.seeds()):
        (corpus / f"seed-{number}").write_bytes(data)
    door.prepare(folder)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        return spoil(data or door.seeds()[0], door.ending.rpartition(".")[2], Random(seed), door.words)[:most]

    def test(data: bytes) -> None:
        problem = door.try_file(folder, data)
        if problem is not None:
            print(f"{door.name}: {problem}; kept as {keep(door.name, data)}", flush=True)
            raise AssertionError(problem)

    options = [f"-max_total_time={60 * chosen.minutes:.0f}", "-timeout=5", "-rss_limit_mb=1000", "-max_len=100000"]
    atheris.Setup([sys.argv[0], str(corpus), *options], test, custom_mutator=mutate)
    atheris.Fuzz()
    return 0


def main(argv: list[str]) -> int:
    """Fuzz, and print what was done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--executions", type=int, help="files to try in all; without it, until the time is over")
    parser.add_argument("--solves", type=int, help="games to solve; without it, as long as files are tried")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--door", help="one door alone")
    parser.add_argument("--engine", choices=["own", "atheris"], default="own")
    chosen = parser.parse_args(argv)
    os.environ["OMP_NUM_THREADS"] = "1"
    return atheris_engine(chosen) if chosen.engine == "atheris" else own_engine(chosen)
