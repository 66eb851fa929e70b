"""Files that were spoilt at random are answered, by both builds alike, and never verified for another claim."""

from __future__ import annotations

from fractions import Fraction
from io import StringIO

import numpy as np
import pytest

from cmpg import certify
from test_verified import proof_writer, test_counting_games, test_joint_games, test_local_games
from test_verified.program import Verify

FORMS = {"joint": test_joint_games, "local": test_local_games, "counting": test_counting_games}
WORDS = ["0", "1", "2", "-1", "1/2", "1/0", "*", "-", "end", "policy", "play", "9999999999", "0.5", "x", "", "\t", "#"]


def claims(form: str, rng: np.random.Generator) -> str:
    game, policy, multipliers = FORMS[form].random_claim(rng)
    out = StringIO()
    epsilon = Fraction(certify(game, policy, multipliers).epsilon) + Fraction(1, 1000)
    getattr(proof_writer, f"write_{form}")(out, game, policy, multipliers, epsilon)
    return out.getvalue()


def spoilt(text: str, rng: np.random.Generator) -> str:
    """Change, drop, repeat or swap words and lines, or cut the file off."""
    lines = text.splitlines()
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(lines)))
        kind = rng.integers(5)
        words = lines[at].split(" ")
        if kind == 0:
            words[rng.integers(len(words))] = str(rng.choice(WORDS))
            lines[at] = " ".join(words)
        elif kind == 1:
            del lines[at]
        elif kind == 2:
            lines.insert(int(rng.integers(len(lines) + 1)), lines[at])
        elif kind == 3:
            words.insert(int(rng.integers(len(words) + 1)), str(rng.choice(WORDS)))
            lines[at] = " ".join(words)
        else:
            del lines[at + 1 :]
        if not lines:
            break
    return "\n".join([*lines, ""])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(40))
def test_a_spoilt_file_gets_an_answer_from_both_builds_alike(verify: Verify, form, seed):
    rng = np.random.default_rng(seed)
    text = spoilt(claims(form, rng), rng)
    fast, plain = verify(text, "fast"), verify(text, "plain")
    assert (fast.code, fast.text) == (plain.code, plain.text)
    assert fast.text.startswith({0: "VERIFIED: ", 1: "NOT VERIFIED: ", 2: "cmpg-verify: "}[fast.code])


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_is_cut_off_anywhere_is_refused(verify: Verify, form):
    rng = np.random.default_rng(3)
    lines = claims(form, rng).splitlines()
    for at in rng.integers(len(lines), size=10).tolist():
        answer = verify("\n".join([*lines[:at], ""]))
        assert (answer.code, "end" in answer.text or "expected" in answer.text) == (2, True), answer.text
