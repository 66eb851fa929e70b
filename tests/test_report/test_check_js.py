"""The checker that pages carry: what it accepts is true, by an exact judge, and it refuses what the format refuses."""

import io
import json
import math
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import cmpg.report
from cmpg import scenarios, solve
from cmpg.proof.format import write
from oracles.claiming import truth_of
from oracles.random_claims import draw_claim
from oracles.sweeping import build
from test_proof.test_format import EXAMPLE
from test_proof.test_kernel import claimed

SCRIPT = Path(cmpg.report.__file__).parent / "check.js"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="THE PAGE'S CHECKER IS NOT TESTED: node is not installed")
RUN = """
const { checkWithMoreBits, Refused } = require(process.argv[1]);
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(texts.map((text) => {
  try { return checkWithMoreBits(text, () => {}); } catch (error) {
    if (error instanceof Refused) return { proved: false, refused: error.message };
    throw error;
  }
})));
"""


def checked(texts):
    done = subprocess.run(
        [NODE, "-e", RUN, str(SCRIPT)], input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def text_of(claim, epsilon):
    out = io.StringIO()
    write(out, claim, epsilon)
    return out.getvalue()


def has_proof_file(game):
    return "discount" not in game or (game["form"] == "joint" and game["discount"] < 0.95)


@needs_node
@pytest.mark.parametrize("block", range(3))
def test_what_the_page_accepts_is_true_and_it_accepts_most_of_what_is_true(block):
    texts, truths = [], []
    for seed in range(80 * block, 80 * block + 80):
        drawn = draw_claim(seed)
        hard = np.isinf(np.asarray(drawn.multipliers, dtype=float)).any()
        if drawn.large or hard or not has_proof_file(drawn.game):
            continue
        truth = truth_of(drawn)
        claim = claimed(build(drawn.game), drawn.policy, drawn.multipliers, drawn.binds)
        feasible, gain = all(over <= 0 for over in truth.excess), max(truth.gains)
        nearly, near = Fraction(math.floor(gain * 10**40), 10**40), Fraction(1, 10**30)
        if "discount" in drawn.game:  # what comes after the steps that are looked at is bounded
            near = (1 + nearly) / 10**6
        for epsilon in (nearly + near, nearly - near):
            if epsilon >= 0:
                texts.append(text_of(claim, epsilon))
                truths.append(feasible and epsilon > gain)
    said = [each["proved"] for each in checked(texts)]
    assert not any(accepted and not true for accepted, true in zip(said, truths, strict=True))
    # Numbers of 1e300 and costs that meet a threshold to the last digit need more bits than the page spends.
    assert sum(said) > 0.8 * sum(truths) > 5


@needs_node
@pytest.mark.parametrize(
    "name", ["grid-world", "spectrum", "grid-world-local", "charging", "routing", "congestion-counting"]
)
def test_certified_scenarios_are_proved_in_the_page(name):
    game = scenarios.scenario(name).build()
    result = solve(game)
    claim = claimed(game, result.policy.tables, result.multipliers)
    (said,) = checked([text_of(claim, 1e-6)])
    assert said["proved"], said
    assert said["gain"] == pytest.approx(result.certificate.epsilon, abs=1e-6)
    assert said["costs"] == pytest.approx(result.costs.tolist(), abs=1e-9)


LOOKUPS = """
let lookups = 0;
const get = Map.prototype.get;
Map.prototype.get = function (key) { lookups += 1; return get.call(this, key); };
const { checkProof } = require(process.argv[1]);
console.log(JSON.stringify(JSON.parse(require("fs").readFileSync(0, "utf8")).map((text) => {
  lookups = 0;
  return { proved: checkProof(text, 256, () => {}).proved, lookups };
})));
"""


def idle(ahead):
    """A discounted game in which nothing is worth anything, and a proof that looks some steps ahead."""
    lines = ["cmpg-proof 1", "form joint", "claim nash", "actions 2 2", "states 2", f"discount 1/2 {ahead}"]
    lines += ["constraints 1", "initial 0 1", "transition * 0 * * 0 1/2 1 1/2", "transition * 1 * * 0 1"]
    lines += ["threshold 0 1", "play 0 0 0 0", "play 1 0 1 1", "epsilon 0", "end", ""]
    return "\n".join(lines)


@needs_node
def test_tables_are_looked_up_once_however_far_ahead_a_proof_looks():
    """The clock says nothing on a busy machine; the number of times that an entry is looked up does."""
    done = subprocess.run(
        [NODE, "-e", LOOKUPS, str(SCRIPT)],
        input=json.dumps([idle(10), idle(500)]),
        capture_output=True,
        text=True,
        check=True,
    )
    few, many = json.loads(done.stdout)
    assert few["proved"]
    assert many["proved"]
    assert few["lookups"] == many["lookups"] > 0


CHANGES = [
    ("threshold 0 1/2", "threshold 0 -1/2", "constraint 0 is not shown to be met"),
    ("reward 0 * 0 1 0 2", "reward 0 * 0 1 0 4", "agent 0 is not shown to gain at most 0"),
    ("reward 1 * 0 0 1 2", "reward 1 * 0 0 1 4", "agent 1 is not shown to gain at most 0"),
    ("multiplier 1 0 0", "multiplier 1 0 -1", "a multiplier is negative"),
    ("multiplier 1 0 0", "multiplier 1 0 1\nbinds 0 0", "constraint 0 does not bind agent 1"),
    ("epsilon 0", "epsilon -1/1000", "epsilon is negative"),
    ("epsilon 0", "", "epsilon is missing"),
    ("initial 0 1", "initial 0 2/3", "a row of probabilities does not sum to one"),
    ("transition * 0 * * 0 1", "transition * 0 0 * 0 1", "a transition at step 0 in state 0 is missing"),
    ("reward 0 * 0 0 1 2", "reward 0 * 0 * 1 2", "an entry is given twice"),
    ("play 0 0 0", "play 0 0 2", "2 is out of range"),
    ("play 0 0 0", "policy 0 0 0 1/2 1/3", "a row of probabilities does not sum to one"),
    ("play 0 0 0", "", "the policy of agent 0 at step 0 in state 0 is missing"),
    ("epsilon 0", "epsilon 0.1", "0.1 is no rational"),
    ("form joint", "form normal", "there is no form normal"),
    ("horizon 1", "discount 1 9", "a discount of at least 0 and below 1 is required"),
    ("horizon 1", "discount -1/2 9", "a discount of at least 0 and below 1 is required"),
    ("horizon 1", "discount 1/2", "horizon with one number, or discount with two, is required"),
    ("horizon 1", "discount 1/2 0", "is not shown to gain at most 0"),
    ("end", "", "`end` is required"),
    ("end", "end\nepsilon 0", "`end` is required"),
]


@needs_node
def test_a_changed_claim_is_refused_with_the_reason():
    assert checked([EXAMPLE])[0]["proved"]
    changed = [f"\n{EXAMPLE}".replace(f"\n{line}\n", f"\n{instead}\n", 1).lstrip("\n") for line, instead, _ in CHANGES]
    for said, (line, instead, problem) in zip(checked(changed), CHANGES, strict=True):
        assert not said["proved"], (line, instead)
        assert problem in said.get("refused", said.get("problem")), (line, instead, said)
