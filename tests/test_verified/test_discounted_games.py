"""cmpg-verify on discounted games gives the verdict of the library's certificates."""

from __future__ import annotations

from fractions import Fraction
from io import StringIO

import numpy as np
import pytest

from cmpg import certify
from cmpg.games import JointGame
from cmpg.games.claims import claim_of
from cmpg.policy import JointPolicy
from cmpg.proof.exact import check_exactly
from cmpg.proof.format import write
from test_verified import proof_writer
from test_verified.program import Verify

BUILDS = ("fast", "plain")


def written(*claim, **more) -> str:
    out = StringIO()
    proof_writer.write_joint(out, *claim, **more)
    return out.getvalue()


def random_claim(rng: np.random.Generator) -> tuple[JointGame, JointPolicy, np.ndarray]:
    """A random game in eighths with discount 1/2, a random policy, random multipliers."""

    def rows(*shape: int) -> np.ndarray:
        *outer, width = shape
        return rng.multinomial(8, np.ones(width) / width, size=outer) / 8

    actions = tuple(rng.integers(1, 4, size=rng.integers(1, 3)))
    states, constraints = int(rng.integers(1, 4)), int(rng.integers(0, 3))
    game = JointGame(
        transition=rows(1, states, *actions, states),
        rewards=rng.integers(-8, 9, size=(len(actions), 1, states, *actions)) / 8,
        costs=rng.integers(-2, 9, size=(constraints, 1, states, *actions)) / 8,
        thresholds=rng.integers(4, 17, size=constraints) / 8 + 1 / 1024,
        initial=rows(states),
        discount=0.5,
    )
    policy = JointPolicy(tuple(rows(1, states, size) for size in actions))
    return game, policy, rng.integers(0, 5, size=(len(actions), constraints)) / 4


@pytest.mark.parametrize("seed", range(40))
def test_random_games_get_the_verdict_of_the_certificate(verify: Verify, seed):
    game, policy, multipliers = random_claim(np.random.default_rng(seed))
    certificate = certify(game, policy, multipliers)
    for shift, expected in ((1e-9, certificate.feasible), (-1e-9, False)):
        epsilon = Fraction(certificate.epsilon + shift)
        exact, rounded = (written(game, policy, multipliers, epsilon, ahead=40, precision=bits) for bits in (None, 64))
        # Exact numbers grow with every step ahead, which is slow in the plain build.
        answers = [verify(exact), *(verify(rounded, build) for build in BUILDS)]
        assert [answer.code for answer in answers] == [0 if expected else 1] * 3, answers
        assert answers[1].text == answers[2].text


@pytest.mark.parametrize("seed", range(8))
def test_a_written_claim_is_verified_unless_nothing_is_left_of_a_budget(verify: Verify, seed):
    """The tail of what a constraint may cost is counted, so a budget that is spent exactly is left open."""
    game, policy, multipliers = random_claim(np.random.default_rng(seed))
    exact = check_exactly(claim := claim_of(game, policy, multipliers))
    gain = max(gain for gain in exact.gains if gain is not None)
    for epsilon in (gain + Fraction(1, 10**6), gain - Fraction(1, 10**6)):
        if epsilon >= 0:
            out = StringIO()
            write(out, claim, epsilon)
            true = gain <= epsilon and all(
                cost <= Fraction(limit) for cost, limit in zip(exact.costs, game.thresholds, strict=True)
            )
            assert verify(out.getvalue()).code == (0 if true else 1)


def one_state(discount: str, ahead: int, epsilon: str) -> str:
    """One agent that gets 1 at every step by its first action, and 0 by its second, which it plays."""
    lines = ["cmpg-proof 1", "form joint", "claim nash", "actions 2", "states 1", f"discount {discount} {ahead}"]
    lines += ["constraints 0", "initial 0 1", "transition * 0 * 0 1", "reward 0 * 0 0 1", "play 0 0 1"]
    return "\n".join([*lines, f"epsilon {epsilon}", "end", ""])


@pytest.mark.parametrize("ahead", [0, 1, 10])
def test_what_comes_after_the_steps_looked_at_is_counted(verify: Verify, ahead):
    """The gain is 1 + 9/10 + ... = 10, of which the tail is a part however far the checker looks ahead."""
    assert verify(one_state("9/10", ahead, "10")).code == 0
    answer = verify(one_state("9/10", ahead, "9"))
    assert answer.code == 1
    assert "agent 0 may gain" in answer.text


@pytest.mark.parametrize("discount", ["1", "-1/2", "3/2"])
def test_a_discount_out_of_range_is_refused(verify: Verify, discount):
    for build in BUILDS:
        answer = verify(one_state(discount, 5, "1000"), build)
        assert (answer.code, "the discount is not at least 0 and below 1" in answer.text) == (1, True)


@pytest.mark.parametrize("line", ["policy 0 1 0 0 1", "reward 0 1 0 0 1"])
def test_a_discounted_game_has_the_step_0_alone(verify: Verify, line):
    answer = verify(one_state("1/2", 5, "2").replace("epsilon", f"{line}\nepsilon"))
    assert (answer.code, "step 1 is out of range" in answer.text) == (2, True)
