"""cmpg-verify on counting games gives the verdict of exact arithmetic in Python, and that of their joint form."""

from __future__ import annotations

from fractions import Fraction
from io import StringIO

import numpy as np
import pytest

from cmpg import certify
from cmpg.games import CountingGame
from cmpg.games.counting.vectors import EveryCount, LargestCount
from cmpg.policy import JointPolicy
from test_verified import proof_writer
from test_verified.program import Verify

BUILDS = ("fast", "plain")


def written(*claim, form: str = "counting", **more) -> str:
    out = StringIO()
    getattr(proof_writer, f"write_{form}")(out, *claim, **more)
    return out.getvalue()


def random_claim(rng: np.random.Generator) -> tuple[CountingGame, JointPolicy, np.ndarray]:
    """A random game in eighths, a random policy, random multipliers: exact in floats and in rationals alike."""

    def rows(*shape: int) -> np.ndarray:
        *outer, width = shape
        return rng.multinomial(8, np.ones(width) / width, size=outer) / 8

    agents, actions, states, horizon, constraints = (int(rng.integers(1, high)) for high in (5, 4, 3, 3, 3))
    steps = rng.choice([1, horizon])
    classes = LargestCount((1, 2)) if rng.random() < 0.5 else EveryCount()
    groups = classes.number(agents, actions)
    game = CountingGame(
        rewards=rng.integers(-8, 9, size=(steps, states, actions, agents + 1)) / 8,
        classes=classes,
        transition=rows(steps, states, groups, states),
        costs=rng.integers(0, 9, size=(constraints, steps, states, groups)) / 8,
        thresholds=rng.integers(4, 9, size=constraints) * horizon / 8,
        initial=rows(states),
        horizon=horizon,
        private_rewards=rng.integers(-4, 5, size=(agents, 1, states, actions)) / 8,
        class_rewards=rng.integers(-4, 5, size=(1, states, actions, groups)) / 8,
    )
    policy = JointPolicy(tuple(rows(horizon, states, actions) for _ in range(agents)))
    return game, policy, rng.integers(0, 5, size=(agents, constraints)) / 4


@pytest.mark.parametrize("seed", range(60))
def test_random_games_get_the_verdict_of_exact_arithmetic_in_python(verify: Verify, seed):
    game, policy, multipliers = random_claim(np.random.default_rng(seed))
    certificate = certify(game, policy, multipliers, exact=True)
    gain = max(map(Fraction, certificate.gains))
    for epsilon, expected in ((gain, certificate.feasible), (gain - Fraction(1, 10**9), False)):
        answers = [verify(written(game, policy, multipliers, epsilon), build) for build in BUILDS]
        assert [answer.code for answer in answers] == [0 if expected else 1] * 2, answers
        joint = verify(written(game.to_joint(), policy, multipliers, epsilon, form="joint"))
        assert len({answer.text for answer in (*answers, joint)}) == 1


CHANGES = {
    "a class out of range": ("cost 0 * 0 1 1", "cost 0 * 0 3 1", 2, "class 3 is out of range"),
    "a reward of an action that no agent plays": ("reward * 0 0 1 -1", "reward * 0 0 0 -1", 2, "at least 1"),
    "a count out of range": ("reward * 0 0 1 -1", "reward * 0 0 4 -1", 2, "count 4 is out of range"),
    "a row is missing": ("transition * 0 1 0 1\n", "", 2, "step 0 in state 0, class 1 is not given"),
    "a row is no distribution": (
        "transition * 0 1 0 1",
        "transition * 0 1 0 2",
        1,
        "step 0 in state 0, action 1 is not",
    ),
    "a threshold is lower": ("threshold 0 1/2", "threshold 0 1/8", 1, "constraint 0: its cost is 1/4"),
    "epsilon is lower": ("epsilon 1", "epsilon -1", 1, "agent 0 may gain"),
    "there are no agents": ("agents 3", "agents 0", 2, "out of range"),
    "other classes": ("classes largest 2", "classes smallest 2", 2, "`classes largest"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_file_is_refused_with_the_first_reason(verify: Verify, change):
    """Three agents and two roads; who shares a road with m − 1 others loses m, and three on one road cost 1."""
    game = CountingGame(
        rewards=[[[[0, -1, -2, -3]] * 2]],
        classes=LargestCount((2,)),
        transition=[[[[1.0]] * 2]],
        costs=[[[[0.0, 1.0]]]],
        thresholds=[0.5],
        initial=[1.0],
        horizon=1,
    )
    claim = written(game, game.uniform_policy(), np.zeros((3, 1)), 1)
    assert [verify(claim, build).code for build in BUILDS] == [0, 0]
    old, new, code, reason = CHANGES[change]
    assert claim.count(old) == 1
    for build in BUILDS:
        answer = verify(claim.replace(old, new), build)
        assert (answer.code, reason in answer.text) == (code, True), answer.text


def crowd(agents: int) -> str:
    """Two actions, one state, one step; all agents mix alike."""
    lines = ["cmpg-proof 1", "form counting", "claim nash", f"agents {agents}", "actions 2", "states 1", "horizon 1"]
    lines += ["classes largest", "constraints 0", "initial 0 1", "transition * 0 0 0 1"]
    lines += [f"policy {i} 0 0 1/2 1/2" for i in range(agents)]
    return "\n".join([*lines, "epsilon 0", "end", ""])


def test_work_grows_with_counts_and_not_with_joint_actions(verify: Verify):
    """Of twice as many agents there are 2^10 times as many joint actions."""
    few, many = (verify(crowd(agents)) for agents in (10, 20))
    assert (few.code, many.code) == (0, 0)
    assert many.words < 32 * few.words
