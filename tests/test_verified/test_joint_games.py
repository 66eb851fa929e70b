"""cmpg-verify on joint games accepts what exact arithmetic in Python proves, and refuses changed files."""

from __future__ import annotations

import re
from fractions import Fraction
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from cmpg import certify, solve
from cmpg.games import JointGame, bind
from cmpg.policy import JointPolicy
from cmpg.proof.format import write
from cmpg.proof.infeasible import InfeasibilityClaim, proves_infeasible
from cmpg.scenarios import counter_example, grid_world
from test_verified import proof_writer
from test_verified.program import Verify

DOCS = Path(__file__).parents[2] / "docs"
BUILDS = ("fast", "plain")


def written(*claim, **more) -> str:
    out = StringIO()
    proof_writer.write_joint(out, *claim, **more)
    return out.getvalue()


def example() -> str:
    """The example of the page on the format."""
    return re.findall(r"```text\n(.*?)```", (DOCS / "proof-format.md").read_text(), re.DOTALL)[0]


def grid() -> str:
    result = solve(grid_world(), epsilon=1e-6)
    return written(grid_world(), result.policy, result.multipliers, Fraction(1, 10**6))


@pytest.mark.parametrize("build", BUILDS)
def test_the_example_of_the_page_is_verified(verify: Verify, build):
    answer = verify(example(), build)
    assert (answer.code, answer.text[:9]) == (0, "VERIFIED:")


# What is changed in the example, the exit code, and what is said.
CHANGES = {
    "a lower threshold is not met": ("threshold 0 1/2", "threshold 0 -1/2", 1, "does not meet constraint 0"),
    "the gain is larger": ("reward 0 * 0 1 0 2", "reward 0 * 0 1 0 4", 1, "agent 0 may gain 1,"),
    "the gain of the other agent is larger": ("reward 1 * 0 0 1 2", "reward 1 * 0 0 1 4", 1, "agent 1 may gain 1,"),
    "epsilon is negative": ("epsilon 0", "epsilon -1/1000", 1, "agent 0 may gain 0, more than epsilon"),
    "a multiplier is negative": ("multiplier 1 0 0", "multiplier 1 0 -1", 1, "multiplier of agent 1 of constraint 0"),
    "a multiplier of a constraint that does not bind": (
        "multiplier 1 0 0",
        "multiplier 1 0 1\nbinds 0 0",
        1,
        "multiplier of agent 1 of constraint 0",
    ),
    "a policy row is no distribution": ("play 0 0 0", "policy 0 0 0 1/2 1/3", 1, "agent 0 at step 0 in state 0"),
    "a policy row has a negative entry": ("play 0 0 0", "policy 0 0 0 3/2 -1/2", 1, "agent 0 at step 0 in state 0"),
    "a transition row is no distribution": (
        "transition * 0 * * 0 1",
        "transition * 0 * 0 0 1\ntransition 0 0 * 1 0 2/3",
        1,
        "transition at step 0 in state 0, action 0 1",
    ),
    "the initial probabilities are no distribution": ("initial 0 1", "initial 0 1/2", 1, "initial probabilities"),
    "a policy row is missing": ("play 1 0 0\n", "", 2, "policy of agent 1 at step 0 in state 0 is not given"),
    "a policy row is left open": ("play 1 0 0", "play 1 0 -", 2, "policy of agent 1 at step 0 in state 0 is not given"),
    "a transition row is missing": (
        "transition * 0 * * 0 1",
        "transition * 0 0 * 0 1",
        2,
        "joint action 2 is not given",
    ),
    "the threshold is missing": ("threshold 0 1/2\n", "", 2, "threshold 0 is not given"),
    "epsilon is missing": ("epsilon 0\n", "", 2, "epsilon is not given"),
    "the file is cut off": ("end\n", "", 2, "ends without the line `end`"),
    "there is more after the end": ("end\n", "end\nepsilon 0\n", 2, "more after `end`"),
    "a line twice": ("epsilon 0", "epsilon 0\nepsilon 0", 2, "given before"),
    "a reward for every step and for one": ("epsilon 0", "reward 0 0 0 0 0 3\nepsilon 0", 2, "given before"),
    "a reward for one step and for every": (
        "reward 0 * 0 0 0 3",
        "reward 0 0 0 0 0 3\nreward 0 * 0 0 0 3",
        2,
        "given before",
    ),
    "a reward for every action and for one": ("epsilon 0", "cost 0 * 0 * 1 1\nepsilon 0", 2, "given before"),
    "a pure row and a mixed one": ("epsilon 0", "policy 0 0 0 1 0\nepsilon 0", 2, "given before"),
    "an agent is bound twice": ("epsilon 0", "binds 0 1 1\nepsilon 0", 2, "given before"),
    "an agent out of range": ("play 1 0 0", "play 2 0 0", 2, "agent 2 is out of range"),
    "a step out of range": ("play 1 0 0", "play 1 1 0", 2, "step 1 is out of range"),
    "an action out of range": ("play 1 0 0", "play 1 0 2", 2, "action 2 is out of range"),
    "a state out of range": ("initial 0 1", "initial 1 1", 2, "state 1 is out of range"),
    "a next state out of range": ("transition * 0 * * 0 1", "transition * 0 * * 1 1", 2, "state 1 is out of range"),
    "a constraint out of range": ("threshold 0 1/2", "threshold 1 1/2", 2, "constraint 1 is out of range"),
    "too few probabilities": ("play 0 0 0", "policy 0 0 0 1", 2, "1 probabilities for 2 actions"),
    "too many actions": ("play 0 0 0", "play 0 0 0 0", 2, "2 actions for 1 states"),
    "a decimal point": ("threshold 0 1/2", "threshold 0 0.5", 2, "0.5 is not a rational"),
    "a denominator of zero": ("threshold 0 1/2", "threshold 0 1/0", 2, "1/0 is not a rational"),
    "a sign below the line": ("threshold 0 1/2", "threshold 0 1/-2", 2, "1/-2 is not a rational"),
    "a number of ten digits": ("states 1", "states 1000000000", 2, "not a whole number"),
    "tables too large": ("states 1", "states 999999999", 2, "too large"),
    "an unknown word": ("epsilon 0", "prize 0 1\nepsilon 0", 2, "`prize` is unknown"),
    "a word too many": ("epsilon 0", "epsilon 0 0", 2, "`epsilon` is unknown here, or has too many"),
    "another version": ("cmpg-proof 1", "cmpg-proof 2", 2, "expected `cmpg-proof 1`"),
    "another form": ("form joint", "form conjoint", 2, "form"),
    "another claim": ("claim nash", "claim cash", 2, "claim"),
    "a header out of order": ("states 1\nhorizon 1", "horizon 1\nstates 1", 2, "begins with `states`"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_file_is_refused_with_the_first_reason(verify: Verify, change):
    old, new, code, reason = CHANGES[change]
    assert example().count(old) == 1
    for build in BUILDS:
        answer = verify(example().replace(old, new), build)
        assert (answer.code, reason in answer.text) == (code, True), answer.text


@pytest.mark.parametrize("change", [("multiplier 0 0 1\n", "multiplier 0 0 0\n"), ("threshold 0 ", "threshold 0 -")])
def test_a_changed_grid_world_is_refused(verify: Verify, change):
    claim = grid()
    assert claim.count(change[0]) == 1
    assert verify(claim.replace(*change)).code == 1


def random_claim(rng: np.random.Generator) -> tuple[JointGame, JointPolicy, np.ndarray]:
    """A random game in eighths, a random policy, random multipliers: exact in floats and in rationals alike."""

    def rows(*shape: int) -> np.ndarray:
        *outer, width = shape
        return rng.multinomial(8, np.ones(width) / width, size=outer) / 8

    actions = tuple(rng.integers(1, 4, size=rng.integers(1, 4)))
    states, horizon, constraints = rng.integers(1, 4), rng.integers(1, 4), rng.integers(0, 3)
    steps = rng.choice([1, horizon])
    game = JointGame(
        transition=rows(steps, states, *actions, states),
        rewards=rng.integers(-8, 9, size=(len(actions), steps, states, *actions)) / 8,
        costs=rng.integers(0, 9, size=(constraints, steps, states, *actions)) / 8,
        thresholds=rng.integers(4, 9, size=constraints) * horizon / 8,
        initial=rows(states),
        horizon=int(horizon),
    )
    policy = JointPolicy(tuple(rows(horizon, states, size) for size in actions))
    return game, policy, rng.integers(0, 5, size=(len(actions), constraints)) / 4


@pytest.mark.parametrize("seed", range(60))
def test_random_games_get_the_verdict_of_exact_arithmetic_in_python(verify: Verify, seed):
    rng = np.random.default_rng(seed)
    game, policy, multipliers = random_claim(rng)
    certificate = certify(game, policy, multipliers, exact=True)
    gain = max(map(Fraction, certificate.gains))
    precision = rng.choice([None, 64])
    for epsilon, expected in ((gain, certificate.feasible), (gain - Fraction(1, 10**9), False)):
        claim = written(game, policy, multipliers, epsilon)
        answers = [verify(claim, build) for build in BUILDS]
        assert [answer.code for answer in answers] == [0 if expected else 1] * 2, answers
        assert len({answer.text for answer in answers}) == 1
    if precision is not None:
        # All numbers are multiples of 2^-64 here, so rounding changes nothing.
        assert verify(written(game, policy, multipliers, gain, precision=64)).code == (0 if certificate.feasible else 1)


def test_rounding_is_against_the_claim(verify: Verify):
    """A gain of exactly 1/3 is proved exactly, and is not proved at 1/3 if it is rounded up."""
    claim = example().replace("reward 0 * 0 1 0 2", "reward 0 * 0 1 0 10/3").replace("epsilon 0", "epsilon 1/3")
    rounded = claim.replace("constraints 1\n", "constraints 1\nprecision 64\n")
    assert verify(claim).code == 0
    assert verify(rounded).code == 1
    assert verify(rounded.replace("epsilon 1/3", "epsilon 334/1000")).code == 0


def test_constraints_that_do_not_bind_an_agent_do_not_hold_it_back(verify: Verify):
    """Agent 0 would gain 2 by a deviation that costs 1, which a threshold of 0 forbids if it binds this agent."""
    game = counter_example(threshold=0.0)
    policy = JointPolicy.uniform(game.policy_shapes).replace(0, [[[1, 0]]]).replace(1, [[[0, 1]]])
    multipliers = np.array([[2.0], [0.0]])
    claims = {
        "all": written(game, policy, multipliers, 1),
        "second": written(game, policy, np.zeros((2, 1)), 1, binds=[[0], [1]]),
    }
    assert verify(claims["all"]).code == 0
    answer = verify(claims["second"])
    assert (answer.code, "agent 0 may gain 2" in answer.text) == (1, True)
    assert certify(bind(game, [[0], [1]]), policy, np.zeros((2, 1)), exact=True).epsilon == 2


@pytest.mark.parametrize("threshold", [-0.5, 0.0])
def test_infeasibility_is_proved_where_it_is_true(verify: Verify, threshold):
    out = StringIO()
    proof_writer.write_infeasible(out, counter_example(threshold=threshold), [1])
    answer = verify(out.getvalue())
    assert answer.code == (0 if threshold < 0 else 1)
    assert "no joint policy meets all thresholds" in answer.text or "the margin is 0" in answer.text
    assert verify(out.getvalue().replace("multiplier 0 1", "multiplier 0 -1")).code == 1
    assert verify(out.getvalue().replace("\nend", "\nepsilon 0\nend")).code == 2


@pytest.mark.parametrize("threshold", [-0.5, 0.0])
def test_a_written_proof_of_infeasibility_gets_the_verdict_of_the_kernel(verify: Verify, threshold):
    game, out = counter_example(threshold=threshold), StringIO()
    tables = game.claim_tables()
    claim = InfeasibilityClaim(tables, game.horizon, np.asarray(game.thresholds), np.ones(1))
    assert write(out, claim) == 0
    assert (verify(out.getvalue()).code == 0) == proves_infeasible(claim) == (threshold < 0)


def chain(horizon: int) -> str:
    """Two states, one agent with two actions, each of which leads to both states."""
    lines = ["cmpg-proof 1", "form joint", "claim nash", "actions 2", "states 2", f"horizon {horizon}", "constraints 0"]
    lines += ["initial 0 1", "transition * 0 * 0 1/2 1 1/2", "transition * 1 * 0 1/2 1 1/2", "play 0 * 0 0"]
    return "\n".join([*lines, "epsilon 0", "end", ""])


@pytest.mark.parametrize("build", BUILDS)
def test_work_grows_in_proportion_to_the_horizon(verify: Verify, build):
    """A table that were computed again at each look-up would double the work with every step."""
    few, many = (verify(chain(horizon), build) for horizon in (16, 32))
    assert (few.code, many.code) == (0, 0)
    assert many.words - few.words < 4 * few.words
