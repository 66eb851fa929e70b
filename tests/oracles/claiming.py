"""Put a claim through every road that leads to a verdict, and compare what is said with what is true.

Roads: the check of `cmpg.proof`; `certify` with either kernels, in rationals, from files by the command (in this
process or another one), by the script of the page, and from a run folder that is read back; weights that are said to
prove infeasibility; and `solve` on the same game, which must end in a status and not in an exception. Beside them:
bounds on what a feasible policy can be worth, and verdicts about potentials.

What is said is wrong if

- a policy is called feasible and a true cost exceeds its threshold, or is called infeasible and meets them all;
- a cost exceeds its threshold by more than the certificate says is possible;
- an agent's gain by the bound of its multipliers is above what the certificate says, where a finite gain is said;
- weights are accepted as a proof of infeasibility, and some policy pays no more than the weighted thresholds;
- a feasible policy is worth more than any is said to be worth;
- a game is said to have a potential up to a residual, and a 4-cycle exceeds it; or to have none, and the witness is no
  witness;
- anything is raised.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from cmpg.arrays import to_exact
from cmpg.cli.main import main as command
from cmpg.equilibrium.certificate import Feasibility, certify, screen
from cmpg.equilibrium.infeasibility import prove_infeasible
from cmpg.equilibrium.quality import upper_bound
from cmpg.equilibrium.result import Incumbent, Result, Status
from cmpg.equilibrium.solve import solve
from cmpg.files.games import save_game
from cmpg.files.run_folder import load_run, save_run
from cmpg.games.constraints import bind
from cmpg.games.game import Objective
from cmpg.games.potential.check import Verdict, check_potential
from cmpg.games.risk import Chance, with_chances
from cmpg.policy import JointPolicy
from cmpg.proof import run_files
from cmpg.proof.check import check
from cmpg.proof.claim import Claim as ProofClaim
from oracles.judge import NotHard, always_exceeded
from oracles.random_claims import Claim, draw_claim
from oracles.random_games import Drawn, suitable_epsilon
from oracles.sweeping import build, findings

TIME_LIMIT = 5.0
"""Seconds for a solve."""

ROADS = {
    "kernel": 0.2,
    "screen": 0.4,
    "numpy": 0.2,
    "exact": 0.2,
    "npz": 0.03,
    "json": 0.04,
    "proposed": 0.015,
    "script": 0.06,
    "folder": 0.03,
    "infeasible": 0.1,
    "bounds": 0.05,
    "potential": 0.05,
    "solve": 0.02,
    "process": 0.0005,
}
"""The share of claims that each road is tried on; `certify` in Python is tried on all of them."""


@dataclass(frozen=True)
class Said:
    """What was said of one claim."""

    seed: int
    form: str
    arithmetic: str
    verdict: str  # of `certify`
    roads: tuple[str, ...]
    seconds: float
    wrong: tuple[str, ...] = ()


@dataclass(frozen=True)
class Truth:
    """What is true of a claim, exactly."""

    excess: list[Fraction]  # [k]: cost − threshold
    gains: list[Fraction | None]  # [n]: by the bound of the multipliers; None where no deviation is feasible
    unfounded: tuple[int, ...]  # agents whose proof by support is none, since something is left of the budget

    @property
    def feasible(self) -> bool:
        """Whether every threshold is met."""
        return all(each <= 0 for each in self.excess)


def truth_of(claim: Claim) -> Truth:
    """Judge a claim in rationals."""
    judged = claim.judged
    costs = judged.costs(claim.policy)
    gains: list[Fraction | None] = []
    unfounded = []
    for agent, prices in enumerate(claim.multipliers.tolist()):
        try:
            gains.append(judged.gain(claim.policy, agent, prices))
        except NotHard as problem:
            if not problem.nothing_is_feasible:
                unfounded.append(agent)
            gains.append(None)
    return Truth([c - limit for c, limit in zip(costs, judged.thresholds, strict=True)], gains, tuple(unfounded))


def examine(seed: int, roads: dict[str, float] | None = None) -> Said:
    """Draw a claim, and compare what every road says of it with the truth."""
    claim, rng = draw_claim(seed), np.random.default_rng((20_263, seed))
    shares = ROADS if roads is None else roads
    taken = [road for road, draw in zip(ROADS, rng.random(len(ROADS)), strict=True) if draw < shares.get(road, 0.0)]
    return examined(claim, taken)


def examined(claim: Claim, roads: Iterable[str] = ()) -> Said:
    """Compare what some roads say of a claim with the truth."""
    began, truth, case = time.process_time(), truth_of(claim), Case(claim)
    wrong, verdict, tried = [], "refused", []
    for road in ("certify", *roads):
        if not case.open(road):
            continue
        tried.append(road)
        try:
            said, verdict_here = getattr(case, f"by_{road}")(truth)
        except Exception as problem:  # whatever escapes is a finding
            last = traceback.extract_tb(problem.__traceback__)[-1]
            where = f"{last.filename.rpartition('/')[2]}, line {last.lineno}"
            said, verdict_here = [f"{type(problem).__name__} escaped from {where}: {problem}"], "refused"
        wrong += [f"{road}: {each}" for each in said]
        verdict = verdict_here if road == "certify" else verdict
    seconds = time.process_time() - began
    return Said(claim.seed, claim.form, claim.arithmetic, verdict, tuple(tried), seconds, tuple(wrong))


Answer = tuple[list[str], str]


@dataclass
class Case:
    """One claim as the library sees it."""

    claim: Claim

    def open(self, road: str) -> bool:
        """Whether a road takes claims of this kind."""
        claim = self.claim
        if claim.budgets and road in ("solve", "potential"):  # of the game on (s, x), which the judge does not build
            return False
        if road == "kernel":
            return claim.arithmetic == "floats" and not claim.large
        if road in ("screen", "numpy"):
            return claim.arithmetic != "rationals"
        if road == "exact":
            return not claim.large
        if road in ("npz", "script", "folder", "process", "proposed") and claim.arithmetic != "floats":
            return False
        if road == "json":
            # Python writes whole numbers of at most 4,300 digits.
            short = all(limit.denominator.bit_length() < 14_000 for limit in claim.judged.thresholds)
            return short and not claim.large
        if road == "script":
            return not claim.large
        if road in ("bounds", "potential"):
            return claim.arithmetic != "rational policy" and not claim.large
        if road in ("infeasible", "solve", "proposed"):
            return len(claim.weights) > 0 and not claim.large
        return True

    def built(self) -> Any:
        """The game without its mask, with its budgets on probabilities."""
        claim, built = self.claim, build(self.claim.game)
        if not claim.budgets:
            return built
        return with_chances(built, *(Chance(0, *each) for each in claim.budgets), keep_expected=claim.keep_expected)

    def game(self) -> Any:
        """The game, with its mask."""
        built = self.built()
        return built if self.claim.binds.all() else bind(built, self.claim.binds)

    def policy(self) -> JointPolicy:
        """The policy."""
        return JointPolicy(tuple(self.claim.policy))

    def by_certify(self, truth: Truth) -> Answer:
        """Certify in Python."""
        said = certify(self.game(), self.policy(), self.claim.multipliers)
        return contradicted(truth, record_of(said)), verdict_of(said)

    def by_kernel(self, truth: Truth) -> Answer:
        """Check by the small kernel: no bound that it computes may exclude what is true."""
        claim, game = self.claim, self.built()
        tables = self.policy().tables
        said = check(
            ProofClaim(
                tables=game.claim_tables(),
                horizon=game.horizon,
                discount=game.discount,
                thresholds=game.thresholds,
                binds=claim.binds.astype(bool),
                policy=tables,
                multipliers=claim.multipliers,
            )
        )
        upper, lower = said.costs.upper.tolist(), said.costs.lower.tolist()
        limits = claim.judged.thresholds
        known = [
            _decided(kept, low, high, limit)
            for kept, low, high, limit in zip(said.kept, lower, upper, limits, strict=True)
        ]
        verdict = "VIOLATED" if False in known else "PROVEN" if all(known) else "TO_ROUNDING"
        record = {"feasibility": verdict, "excess": [None] * len(limits), "gains": said.gains.tolist()}
        wrong = contradicted(truth, record)
        for j, (over, limit) in enumerate(zip(truth.excess, limits, strict=True)):
            if not _between(lower[j], over + limit, upper[j]):
                wrong.append(f"constraint {j} costs {lower[j]!r} to {upper[j]!r}, and {_shown(over + limit)}")
        for i, value in enumerate(claim.judged.values(claim.policy)):
            if not _between(said.values.lower[i].item(), value, said.values.upper[i].item()):
                wrong.append(
                    f"agent {i} gets {said.values.lower[i]!r} to {said.values.upper[i]!r}, and {_shown(value)}"
                )
        return wrong, verdict

    def by_screen(self, truth: Truth) -> Answer:
        """Judge by the CMDPs of the position, as `certify` judges what is too large for the kernel."""
        said = screen(self.game(), self.policy(), self.claim.multipliers)
        return contradicted(truth, record_of(said)), verdict_of(said)

    def by_numpy(self, truth: Truth) -> Answer:
        """Do so without the compiled kernels."""
        with patch.dict(os.environ, CMPG_KERNELS="numpy"):
            return self.by_screen(truth)

    def by_exact(self, truth: Truth) -> Answer:
        """Certify in rationals, which leave nothing open."""
        said = certify(self.game(), self.policy(), self.claim.multipliers, exact=True)
        wrong = contradicted(truth, record_of(said))
        if said.feasible != truth.feasible and not wrong:
            wrong.append(f"{said.feasibility.name}, and the truth is the other way round")
        return wrong, verdict_of(said)

    def by_npz(self, truth: Truth) -> Answer:
        """Certify files of arrays by the command."""
        return self._by_command(truth, "npz")

    def by_json(self, truth: Truth) -> Answer:
        """Certify files of text by the command, which reads rationals as they are written."""
        return self._by_command(truth, "json")

    def by_proposed(self, truth: Truth) -> Answer:
        """Certify without multipliers, so that the command proposes some; feasibility alone is compared."""
        with self._files("npz", multipliers=False) as (game, policy):
            said = run_command(["certify", game, policy, "--json"], may_refuse=True)
        if said["code"] == 2:  # no solver found any, and the error says so
            return [], "refused"
        return contradicted(Truth(truth.excess, [None] * len(truth.gains), ()), said), "proposed"

    def by_process(self, truth: Truth) -> Answer:
        """Certify by the command in a process of its own."""
        return self._by_command(truth, "npz", run=_run_process)

    def _by_command(self, truth: Truth, ending: str, *options: str, run: Callable[..., Any] | None = None) -> Answer:
        epsilon = _claimed(truth)
        with self._files(ending) as (game, policy):
            said = (run or run_command)(["certify", game, policy, "--json", "--epsilon", repr(epsilon), *options])
        wrong = contradicted(truth, said)
        if said["code"] == 0 and not _holds(truth, epsilon):
            wrong.append(f"exit code 0 at epsilon {epsilon!r}")
        return wrong, "PROVED" if said["code"] == 0 else "NOT PROVED"

    def by_script(self, truth: Truth) -> Answer:
        """Check by the script of the page, with numpy alone."""
        epsilon, out = _claimed(truth), io.StringIO()
        with self._files("npz") as files, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = run_files.main([*files, repr(epsilon)])
        if code != 0:
            return [], "NOT PROVED"
        return [] if _holds(truth, epsilon) else [f"proved at epsilon {epsilon!r}"], "PROVED"

    def by_folder(self, truth: Truth) -> Answer:
        """Write a run folder, and read it back."""
        game, policy = self.game(), self.policy()
        said = certify(game, policy, self.claim.multipliers)
        found = Incumbent(policy, said.multipliers, said)
        result = Result(Status.LIMIT, "", _claimed(truth), incumbent=found, game=game)
        with tempfile.TemporaryDirectory() as folder:
            save_run(Path(folder) / "run", result)
            again = load_run(Path(folder) / "run").result
        wrong = contradicted(truth, record_of(again.certificate))
        if again.status is Status.CERTIFIED and not _holds(truth, again.epsilon):
            wrong.append(f"CERTIFIED at epsilon {again.epsilon!r}")
        return wrong, again.status.name

    def by_infeasible(self, truth: Truth) -> Answer:
        """Ask whether some weights prove that no policy meets the thresholds."""
        game = self.built()
        with np.errstate(all="ignore"):
            proof = prove_infeasible(game, self.claim.weights)
        if not proof.holds:
            return [], "open"
        if truth.feasible:
            return ["is called infeasible, and this policy meets every threshold"], "INFEASIBLE"
        exceeded = always_exceeded(self.claim.judged, self.claim.weights)
        if exceeded is None:
            return [], "not judged"
        return [] if exceeded else ["is called infeasible, and some policy meets the weighted thresholds"], "INFEASIBLE"

    def by_bounds(self, truth: Truth) -> Answer:
        """Compare what the policy is worth, if it is feasible, with the bound on what any feasible one is worth."""
        found = upper_bound(self.game(), Objective.WELFARE, self.policy(), self.claim.weights)
        if found is None or not truth.feasible or not _finite(found.value):
            return [], "open"
        worth = sum(self.claim.judged.values(self.claim.policy), Fraction(0))
        wrong = [f"no feasible policy is worth more than {found.value!r}, and this one is worth {_shown(worth)}"]
        return wrong if worth > Fraction(found.value) else [], "bounded"

    def by_potential(self, truth: Truth) -> Answer:
        """Compare what is said about a potential with 4-cycles in rationals."""
        rng = np.random.default_rng(self.claim.seed)
        found, judged = check_potential(self.game(), rng=rng, cycles=4), self.claim.judged
        wrong = []
        if found.verdict is Verdict.PROVEN and len(self.claim.policy) > 1:
            first, second = rng.choice(len(self.claim.policy), size=2, replace=False).tolist()
            corners = self.policy()
            others = [np.eye(t.shape[2])[rng.integers(t.shape[2], size=t.shape[:2])] for t in corners.tables]
            residual = _residual(judged, self.claim.policy, (first, second), (others[first], others[second]))
            if abs(residual) > Fraction(found.residual):
                wrong.append(f"PROVEN up to {found.residual!r}, and a 4-cycle adds up to {_shown(residual)}")
        if found.verdict is Verdict.REFUTED and found.witness is not None:
            witness = found.witness
            if not _residual(judged, list(witness.policy), witness.agents, witness.deviations):
                wrong.append("REFUTED, and the witness adds up to zero")
        return wrong, found.verdict.name

    def by_solve(self, truth: Truth) -> Answer:
        """Solve the game, and judge what is said in the end."""
        game = self.game()
        result = solve(game, epsilon=suitable_epsilon(_floats(self.claim.game)), time_limit=TIME_LIMIT)
        drawn = Drawn(self.claim.game, self.claim.form, "any", "claimed", truth.feasible or None)
        wrong = findings(drawn, result)
        if result.status is Status.INFEASIBLE and truth.feasible:
            wrong.append("ends INFEASIBLE, and the claim's policy meets every threshold")
        return wrong, result.status.name

    @contextlib.contextmanager
    def _files(self, ending: str, *, multipliers: bool = True) -> Iterator[tuple[str, str]]:
        with tempfile.TemporaryDirectory() as folder:
            game, policy = (str(Path(folder) / f"{name}.{ending}") for name in ("game", "policy"))
            save_game(self.game(), game)
            tables, prices = self.policy(), self.claim.multipliers
            if ending == "json" and self.claim.arithmetic != "floats":
                # Beside a fraction, a decimal is read as it is written, which is not the float that it is short for.
                tables = tables.exact()
                prices = np.where(np.isinf(prices), np.inf, to_exact(np.where(np.isinf(prices), 0.0, prices)))
            tables.save(policy, multipliers=prices if multipliers else None)
            yield game, policy


def contradicted(truth: Truth, said: dict[str, Any]) -> list[str]:
    """Everything in a certificate, as a record, that is not true."""
    wrong = []
    if said["feasibility"] == Feasibility.PROVEN.name and not truth.feasible:
        wrong.append(f"PROVEN, and a threshold is exceeded by {_shown(max(truth.excess))}")
    if said["feasibility"] == Feasibility.VIOLATED.name and truth.feasible:
        wrong.append("VIOLATED, and every threshold is met")
    for j, (over, most) in enumerate(zip(truth.excess, said["excess"], strict=True)):
        if over > 0 and _finite(most) and over > Fraction(most):
            wrong.append(f"constraint {j} may be exceeded by {most:.3g}, and is by {_shown(over)}")
    for agent, (gain, most) in enumerate(zip(truth.gains, said["gains"], strict=True)):
        if not _finite(most):
            continue
        if agent in truth.unfounded:
            wrong.append(f"agent {agent} gains at most {most:.3g} by support, and something is left of that budget")
        elif gain is not None and gain > Fraction(most):
            wrong.append(f"agent {agent} gains at most {most!r}, and {_shown(gain)} by the bound")
    return wrong


def verdict_of(said: Any) -> str:
    """The verdict, and whether the gains have a bound."""
    return said.feasibility.name if np.isfinite(said.epsilon) else f"{said.feasibility.name}, gains open"


def _decided(kept: bool | None, low: float, high: float, limit: Fraction) -> bool | None:
    """Whether a threshold is met, by what supports say, or by bounds on the cost; None where that is open."""
    if kept is not None or not (np.isfinite(low) and np.isfinite(high)):
        return kept
    return True if Fraction(high) <= limit else False if Fraction(low) > limit else None


def _between(low: float, exact: Fraction, high: float) -> bool:
    return not (np.isfinite(low) and np.isfinite(high)) or Fraction(low) <= exact <= Fraction(high)


def record_of(said: Any) -> dict[str, Any]:
    """What a certificate says, as a record."""
    return {"feasibility": said.feasibility.name, "excess": said.excess.tolist(), "gains": said.gains.tolist()}


def _finite(number: Any) -> bool:
    return number is not None and bool(np.isfinite(number))


def _shown(number: Fraction) -> str:
    try:
        return f"{float(number)!r}" if float(number) or not number else f"2^-{int(1 / abs(number)).bit_length()}"
    except OverflowError:
        return "more than any float"


def _claimed(truth: Truth) -> float:
    """An epsilon that is just too small, and so is not proved by anybody who counts right."""
    gains = [gain for gain in truth.gains if gain is not None]
    try:
        return max(float(max(gains, default=Fraction(0))) * 0.999, 1e-6)
    except OverflowError:
        return 1e300


def _holds(truth: Truth, epsilon: float) -> bool:
    return truth.feasible and all(gain is None or gain <= Fraction(epsilon) for gain in truth.gains)


def _residual(judged: Any, policy: list[Any], agents: Sequence[int], deviations: Sequence[Any]) -> Fraction:
    """What the gains around a 4-cycle add up to."""
    (i, j), (new_i, new_j) = agents, deviations
    moved = [new_i if agent == i else own for agent, own in enumerate(policy)]
    both = [new_j if agent == j else own for agent, own in enumerate(moved)]
    back = [new_j if agent == j else own for agent, own in enumerate(policy)]
    at = [judged.values(corner) for corner in (policy, moved, both, back)]
    differences = [values[j] - values[i] for values in at]
    return differences[0] - differences[1] + differences[2] - differences[3]


def _floats(game: Any) -> Any:
    tables = {n: t.astype(float) for n, t in game.items() if isinstance(t, np.ndarray) and t.dtype == object}
    return game | tables


def run_command(words: list[str], *, may_refuse: bool = False) -> dict[str, Any]:
    """Run the command in this process."""
    out, complaints = io.StringIO(), io.StringIO()
    with patch.object(sys, "argv", ["cmpg", *words]), contextlib.redirect_stdout(out):
        try:
            with contextlib.redirect_stderr(complaints), np.errstate(all="ignore"):
                command()
                code: Any = 0
        except SystemExit as end:
            code = end.code
    if may_refuse and code == 2 and "error: " in complaints.getvalue():
        return {"code": code}
    return _command_record(code, out.getvalue(), complaints.getvalue())


def _run_process(words: list[str]) -> dict[str, Any]:
    """Run the command in another process."""
    done = subprocess.run(
        [sys.executable, "-m", "cmpg", *words], capture_output=True, text=True, timeout=120, check=False
    )
    return _command_record(done.returncode, done.stdout, done.stderr)


def _command_record(code: Any, out: str, complaints: str) -> dict[str, Any]:
    if code not in (0, 1, None) or "Traceback" in complaints:
        raise AssertionError(f"exit code {code}: {complaints.strip()}")
    record = json.loads(out)
    names = {each.value: each.name for each in Feasibility} | {each.name: each.name for each in Feasibility}
    return record | {"code": code or 0, "feasibility": names[record["feasibility"]]}
