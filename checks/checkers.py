"""Four checkers, one claim: floats, rationals, the program that is proved correct, and the page's script.

    python -m checks checkers --claims 2000 --forgeries 2000
    python -m checks checkers --times              CPU seconds and memory on games of the scenarios
    python -m checks checkers --coq                what the proofs rest on, their lengths, and the time to check them

Random claims of every form are put to all four, with ε that leaves room, just above, and just
below what their multipliers prove. Forgeries change a claim so that it may no longer be true: a lower threshold,
multipliers of zero, a smaller ε, another action in the policy. The rationals are the measure. It is wrong if
`cmpg-verify` says anything else than the rationals, or if floats or the page accept what the rationals refuse. Floats
and the page may leave a true claim open; how often they do is counted.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from checks import BUILD, DATA, ROOT

OUT = BUILD / "checkers.json"
SCRIPT = ROOT / "src" / "cmpg" / "report" / "check.js"
BATCH = 100
SMALL = Fraction(1, 10**30)
LAUNCH = """
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    struct rusage used;
    int status;
    pid_t child = fork();
    if (child == 0) {
        if (freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr)) execvp(words[1], words + 1);
        _exit(127);
    }
    wait4(child, &status, 0, &used);
    printf("%.6f %ld %d", used.ru_utime.tv_sec + used.ru_stime.tv_sec
           + 1e-6 * (used.ru_utime.tv_usec + used.ru_stime.tv_usec), used.ru_maxrss,
           WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return 0;
}
"""
"""Linux counts what the parent held before `exec` as memory of the child, so a program of half a megabyte starts it."""

MAX_DISCOUNT = 0.95
"""With a larger discount a proof looks too many steps ahead for thousands of claims."""

MAX_AHEAD = 1000
"""Nor are claims compared whose numbers differ by so many powers of ten that a proof looks further ahead than this."""

NODE = """
const { checkWithMoreBits, Refused } = require(process.argv[1]);
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(texts.map((text) => {
  try { return checkWithMoreBits(text, () => {}).proved; } catch (error) {
    if (error instanceof Refused) return false;
    throw error;
  }
})));
"""


PAGE = """
const { checkWithMoreBits } = require(process.argv[1]);
const found = checkWithMoreBits(require("fs").readFileSync(process.argv[2], "latin1"), () => {});
process.exit(found.proved ? 0 : 1);
"""


@dataclass(frozen=True)
class Posed:
    """A claim, the ε that is claimed, and where it comes from."""

    form: str
    kind: str  # "above", "below", or how it was forged
    claim: Any
    epsilon: Fraction
    seed: int


def main(argv: list[str]) -> int:
    """Run all four, and return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m checks checkers", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--claims", type=int, help="2,000 unless --times or --coq is given")
    parser.add_argument("--forgeries", type=int, help="as many as claims")
    parser.add_argument("--times", action="store_true", help="time the checkers on scenarios")
    parser.add_argument("--coq", action="store_true", help="compile the proofs, and say what they rest on")
    options = parser.parse_args(argv)
    claims = options.claims if options.claims is not None else 0 if options.times or options.coq else 2000
    forgeries = claims if options.forgeries is None else options.forgeries
    programs = {"verified": verifier(), "node": shutil.which("node")}
    for name, found in programs.items():
        if found is None:
            print(f"NOT CHECKED: there is no {name}", file=sys.stderr)
            return 2
    failed = proofs() if options.coq else 0
    failed |= times(programs) if options.times else 0
    return failed | (compare(programs, claims, forgeries) if claims or forgeries else 0)


def verifier() -> str | None:
    """Return cmpg-verify, built from verified/ if need be."""
    if os.environ.get("CMPG_VERIFY"):
        return os.environ["CMPG_VERIFY"]
    built = ROOT / "verified" / "build" / "cmpg-verify"
    if not built.exists() and shutil.which("ocamlfind"):
        subprocess.run(["make", "programs"], cwd=ROOT / "verified", check=True, capture_output=True)
    return str(built) if built.exists() else shutil.which("cmpg-verify")


def random_claims() -> Iterator[tuple[int, Any]]:
    """Yield claims of small games with hard numbers, without end."""
    from cmpg.proof.claim import Claim
    from oracles.random_claims import draw_claim
    from oracles.sweeping import build

    seed = 0
    while True:
        drawn = draw_claim(seed)
        hard = np.isinf(np.asarray(drawn.multipliers, dtype=float)).any()
        discount = drawn.game.get("discount")
        written = discount is None or (drawn.game["form"] == "joint" and discount <= MAX_DISCOUNT)
        if written and not (drawn.large or hard or drawn.arithmetic != "floats"):
            game = build(drawn.game)
            shape = (game.num_agents, len(game.thresholds))
            binds = np.ones(shape, dtype=bool) if drawn.binds is None else np.asarray(drawn.binds, dtype=bool)
            multipliers = np.where(binds, np.asarray(drawn.multipliers, dtype=float), 0.0)
            tables = tuple(np.asarray(table) for table in drawn.policy)
            yield seed, Claim(game.claim_tables(), game.horizon, discount, game.thresholds, binds, tables, multipliers)
        seed += 1


def posed(claims: int, forgeries: int) -> Iterator[Posed]:
    """Yield claims with ε on either side of what they prove, and forgeries."""
    from cmpg.proof.exact import TooLarge, check_exactly
    from cmpg.proof.format import steps_ahead

    made, forged = 0, 0
    for seed, claim in random_claims():
        if made >= claims and forged >= forgeries:
            return
        form = type(claim.tables).__name__.removesuffix("Tables").lower() if claim.horizon else "discounted"
        try:
            found = check_exactly(claim)
        except TooLarge:
            continue
        gains = [gain for gain in found.gains if gain is not None]
        if len(gains) < len(claim.policy):
            continue
        gain = max(Fraction(0), *gains)
        if claim.discount is not None and steps_ahead(claim, SMALL) > MAX_AHEAD:
            continue
        proved = Fraction(math.ceil(gain * 10**40), 10**40)  # few digits
        if made < claims:
            made += 1
            yield Posed(form, "above", claim, proved + SMALL, seed)
            yield Posed(form, "room", claim, proved + (1 + proved) / 10**6, seed)
            if proved > 2 * SMALL:
                yield Posed(form, "below", claim, proved - 2 * SMALL, seed)
        if forged < forgeries:
            for kind, changed, epsilon in forge(claim, found, proved, np.random.default_rng(seed)):
                forged += 1
                yield Posed(form, kind, changed, epsilon, seed)


def forge(claim: Any, found: Any, proved: Fraction, rng: np.random.Generator) -> Iterator[tuple[str, Any, Fraction]]:
    """Yield changes of a claim that may make it false."""
    if len(claim.thresholds):
        j = int(rng.integers(len(claim.thresholds)))
        lower = float(np.nextafter(float(min(max(found.costs[j], -(10**300)), 10**300)), -np.inf))
        if math.isfinite(lower):
            thresholds = claim.thresholds.copy()
            thresholds[j] = lower
            yield "lower threshold", replace(claim, thresholds=thresholds), proved + SMALL
        yield "no multipliers", replace(claim, multipliers=np.zeros_like(claim.multipliers)), proved + SMALL
    if proved > SMALL:
        yield "smaller epsilon", claim, proved / 2
    i = int(rng.integers(len(claim.policy)))
    table = claim.policy[i].copy()
    h, s = int(rng.integers(table.shape[0])), int(rng.integers(table.shape[1]))
    table[h, s] = np.roll(table[h, s], 1)
    policy = (*claim.policy[:i], table, *claim.policy[i + 1 :])
    yield "another action", replace(claim, policy=policy), proved + SMALL


def compare(programs: dict[str, Any], claims: int, forgeries: int) -> int:
    """Put claims to all four checkers, and report."""
    counts: Counter[tuple[str, str, str]] = Counter()
    wrong: list[str] = []
    began, batch = time.process_time(), []
    for each in posed(claims, forgeries):
        batch.append(each)
        if len(batch) == BATCH:
            judge(batch, programs, counts, wrong)
            batch = []
    judge(batch, programs, counts, wrong)
    forms = sorted({form for form, _, _ in counts})
    names = ("all", "rationals", "verified", "floats", "page")
    print(f"{'form':9} {'claims':7} " + " ".join(f"{name:>9}" for name in names))
    for form in forms:
        for kind in ("random", "forged"):
            print(f"{form:9} {kind:7} " + " ".join(f"{counts[form, kind, name]:9}" for name in names))
    print("\n".join(wrong[:20]))
    total = sum(counts[form, kind, "all"] for form in forms for kind in ("random", "forged"))
    print(
        f"{total:,} claims, {len(wrong)} wrong, {time.process_time() - began:.0f} s of CPU; columns: accepted by each"
    )
    OUT.parent.mkdir(exist_ok=True)
    kept = {" ".join(key): value for key, value in counts.items()}
    OUT.write_text(json.dumps({"counts": kept, "wrong": wrong}, indent=1) + "\n")
    return int(bool(wrong))


def judge(batch: list[Posed], programs: dict[str, Any], counts: Counter, wrong: list[str]) -> None:
    """Put a batch to all four checkers."""
    from cmpg.proof.check import check
    from cmpg.proof.exact import check_exactly

    texts = [text_of(each.claim, each.epsilon) for each in batch]
    node = [programs["node"], "-e", NODE, str(SCRIPT)]
    page = json.loads(subprocess.run(node, input=json.dumps(texts), capture_output=True, text=True, check=True).stdout)
    with tempfile.TemporaryDirectory() as folder:
        for each, text, by_page in zip(batch, texts, page, strict=True):
            path = Path(folder) / "claim.proof"
            path.write_text(text)
            code = subprocess.run([programs["verified"], path], capture_output=True, check=False).returncode
            exact = check_exactly(each.claim)
            limits = [Fraction(float(limit)) for limit in each.claim.thresholds]
            true = all(cost <= limit for cost, limit in zip(exact.costs, limits, strict=True)) and all(
                gain is not None and gain <= each.epsilon for gain in exact.gains
            )
            floats = check(each.claim)
            by_floats = bool(np.all(floats.costs.upper <= each.claim.thresholds)) and all(
                math.isfinite(gain) and Fraction(float(gain)) <= each.epsilon for gain in floats.gains
            )
            kind = "random" if each.kind in ("above", "room", "below") else "forged"
            verdicts = {"rationals": true, "verified": code == 0, "floats": by_floats, "page": by_page}
            counts[each.form, kind, "all"] += 1
            for name, accepted in verdicts.items():
                counts[each.form, kind, name] += accepted
            accepted_falsely = not true and (code == 0 or by_floats or by_page)
            # What a discounted game may cost after the steps that are looked at can exceed what is left of a budget.
            left_open = true and code == 1 and each.form != "discounted"
            if accepted_falsely or left_open or code not in (0, 1):
                wrong.append(f"claim {each.seed} ({each.form}, {each.kind}): {verdicts}, exit code {code}")


def text_of(claim: Any, epsilon: Fraction, **options: Any) -> str:
    """Return a claim as a proof file."""
    from cmpg.proof.format import write

    out = io.StringIO()
    write(out, claim, epsilon, **options)
    return out.getvalue()


def times(programs: dict[str, Any]) -> int:
    """Print what each checker takes for claims of scenarios."""
    import cmpg
    from cmpg.games.claims import claim_of
    from cmpg.proof.check import check
    from cmpg.proof.exact import TooLarge, check_exactly

    print("CPU seconds                        floats  rationals  verified   (MB)   page   (MB)", flush=True)
    for title, game in timed_games():
        result = cmpg.solve(game)
        claim = claim_of(game, result.policy, result.multipliers)
        floats = cpu(lambda claim=claim: check(claim))[0]
        try:
            rationals = f"{cpu(lambda claim=claim: check_exactly(claim))[0]:9.2f}"
        except TooLarge:
            rationals = "        –"
        large = len(claim.policy) * claim.steps > 100
        text = text_of(claim, 1e-6, precision=256 if large else None)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "claim.proof"
            path.write_text(text)
            verified, megabytes, code = child([programs["verified"], str(path)])
            page, held, page_code = child([programs["node"], "-e", PAGE, str(SCRIPT), str(path)])
        said = ("VERIFIED" if code == 0 else "refused", "page proved" if page_code == 0 else "page open")
        rounded = (", rounded to 256 bits",) if large else ()
        row = f"{title:33} {floats:7.2f} {rationals} {verified:8.2f} {megabytes:7.0f} {page:6.2f} {held:6.0f}  "
        print(row + ", ".join((result.status.name, *said)) + "".join(rounded), flush=True)
    return 0


def timed_games() -> Iterator[tuple[str, Any]]:
    """Yield the games that are timed; those of public data where it is beside the repository."""
    from cmpg import scenarios

    yield "counter-example", scenarios.counter_example()
    yield "grid world", scenarios.grid_world()
    yield "random S=2000 A=5x5 H=10", sparse_game()
    yield "congestion, 8 agents", scenarios.congestion_game()
    yield "congestion, 8 agents, by counts", scenarios.counting_congestion_game()
    yield "grid world, own cells", scenarios.grid_world_local()
    yield "charging, bundled day", scenarios.charging()
    yield "robots, 8 on 10 x 10", scenarios.robots()
    if DATA.is_dir():
        yield (
            "charging, 46 cars",
            scenarios.charging(sessions=DATA / "acn" / "caltech_2019-05_2019-08.csv.gz", day="2019-06-12"),
        )
        yield (
            "robots, 30 on 32 x 32, H=60",
            scenarios.robots(map=DATA / "maps" / "random-32-32-20.map", num_agents=30, horizon=60, seed=1),
        )
        folder = DATA / "tntp"
        yield (
            "Sioux Falls, 120 platoons",
            scenarios.routing(
                network=folder / "SiouxFalls_net.tntp", trips=folder / "SiouxFalls_trips.tntp", num_agents=120
            ),
        )


def sparse_game() -> Any:
    """Return a random game of two agents with a common reward and four next states in each row."""
    from cmpg.games import JointGame

    rng = np.random.default_rng(0)
    states, actions, horizon = 2000, 5, 10
    rows = states * actions * actions
    targets = np.sort(np.array([rng.choice(states, 4, replace=False) for _ in range(rows)]), axis=1)
    starts = np.arange(0, 4 * rows + 1, 4)
    transition = (sp.csr_array((np.full(4 * rows, 0.25), targets.ravel(), starts), shape=(rows, states)),)
    common = rng.integers(0, 16, (1, 1, states, actions, actions)) / 16
    costs = rng.integers(0, 16, (1, 1, states, actions, actions)) / 16
    initial = np.zeros(states)
    initial[0] = 1.0
    rewards = np.repeat(common, 2, axis=0)
    return JointGame(
        transition=transition, rewards=rewards, costs=costs, thresholds=[4.0], initial=initial, horizon=horizon
    )


def cpu(work: Any) -> tuple[float, Any]:
    """Return the CPU seconds of a call in this process, and its result."""
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def child(command: list[str], folder: Path | None = None) -> tuple[float, float, int]:
    """Return the CPU seconds, the peak memory in MB and the exit code of a program."""
    launcher = OUT.parent / "launch"
    if not launcher.exists():
        launcher.parent.mkdir(exist_ok=True)
        subprocess.run(["cc", "-O1", "-x", "c", "-", "-o", launcher], input=LAUNCH, text=True, check=True)
    said = subprocess.run([launcher, *command], capture_output=True, text=True, check=True, cwd=folder).stdout.split()
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return float(said[0]), int(said[1]) / unit, int(said[2])


def proofs() -> int:
    """Compile the proofs, have the independent kernel check them, and print what they rest on and how long they are."""
    if shutil.which("coqc") is None:
        print("NOT CHECKED: Coq is not installed", file=sys.stderr)
        return 2
    lines = dict.fromkeys(("definitions", "checkers", "proofs"), 0)
    for path in sorted((ROOT / "verified").glob("*.v")):
        if path.stem in ("Assumptions", "CounterExample", "ExtractFast", "ExtractPlain"):
            continue
        checker = path.stem.endswith("Checker") or path.stem in ("Arithmetic", "Intervals")
        kind = "definitions" if path.stem.endswith("Semantics") else "checkers" if checker else "proofs"
        lines[kind] += len(path.read_text().splitlines())
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "verified"
        shutil.copytree(ROOT / "verified", copy, ignore=shutil.ignore_patterns("build"))
        compiled = child(["make", "build/assumptions.txt", "build/coq/CounterExample.vo", "build/coq/Reals.vo"], copy)
        checked = child(["make", "build/coqchk.txt"], copy)
        if compiled[2] or checked[2]:
            print("WRONG: the proofs do not compile, or rest on other assumptions than verified/assumptions.txt says")
            return 1
        for theorem, rests_on in assumptions((copy / "build" / "assumptions.txt").read_text()):
            print(f"{theorem:32} {rests_on}")
    print("lines: " + ", ".join(f"{count:,} of {kind}" for kind, count in lines.items()))
    print(
        f"compiled in {compiled[0]:.1f} s of CPU, {compiled[1]:.0f} MB; coqchk {checked[0]:.1f} s, {checked[1]:.0f} MB"
    )
    return 0


def assumptions(printed: str) -> Iterator[tuple[str, str]]:
    """Yield each theorem of Assumptions.v, and the axioms that `Print Assumptions` found."""
    source = (ROOT / "verified" / "Assumptions.v").read_text()
    theorems = re.findall(r"^Print Assumptions (\w+)\.$", source, re.MULTILINE)
    answers = re.split(r"^(?=Closed under|Axioms:)", printed, flags=re.MULTILINE)[1:]
    for theorem, answer in zip(theorems, answers, strict=True):
        yield theorem, ", ".join(re.findall(r"^\w+\.\w+$", answer, re.MULTILINE)) or "no axioms"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
