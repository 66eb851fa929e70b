"""cmpg-verify on local games gives the verdict of the library's certificates, and refuses changed files."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from io import StringIO

import numpy as np
import pytest

from cmpg import certify, solve
from cmpg.games import LocalAgent, LocalGame, bind
from cmpg.games.claims import claim_of
from cmpg.games.local.to_joint import lift_policy, to_joint
from cmpg.policy import JointPolicy
from cmpg.proof.exact import exact_costs
from cmpg.scenarios import robots
from test_verified import proof_writer
from test_verified.program import Verify

BUILDS = ("fast", "plain")


def written(*claim, **more) -> str:
    out = StringIO()
    proof_writer.write_local(out, *claim, **more)
    return out.getvalue()


def random_claim(rng: np.random.Generator) -> tuple[LocalGame, JointPolicy, np.ndarray]:
    """A random game in eighths, a random policy, random multipliers."""

    def rows(*shape: int) -> np.ndarray:
        *outer, width = shape
        return rng.multinomial(8, np.ones(width) / width, size=outer) / 8

    count, horizon, constraints, resources = (int(rng.integers(1, high)) for high in (4, 4, 3, 3))
    agents = []
    for _ in range(count):
        states, actions, steps = rng.integers(1, 4), rng.integers(1, 4), rng.choice([1, horizon])
        agents.append(
            LocalAgent(
                transition=rows(steps, states, actions, states),
                reward=rng.integers(-8, 9, size=(steps, states, actions)) / 8,
                uses=rng.integers(0, 2, size=(steps, states, actions, resources)),
                initial=rows(states),
                costs=rng.integers(0, 5, size=(constraints, steps, states, actions)) / 8,
            )
        )
    game = LocalGame(
        agents=agents,
        delay=rng.integers(0, 9, size=(rng.choice([1, horizon]), resources, count + 1)) / 8,
        load_costs=rng.integers(0, 9, size=(constraints, rng.choice([1, horizon]), resources, count + 1)) / 8,
        thresholds=rng.integers(8, 25, size=constraints) * horizon / 8 + 1 / 64,
        horizon=horizon,
    )
    policy = JointPolicy(tuple(rows(*shape) for shape in game.policy_shapes))
    return game, policy, rng.integers(0, 5, size=(count, constraints)) / 4


@pytest.mark.parametrize("seed", range(60))
def test_random_games_get_the_verdict_of_the_certificate(verify: Verify, seed):
    game, policy, multipliers = random_claim(np.random.default_rng(seed))
    certificate = certify(game, policy, multipliers)
    for precision in (None, 100):
        for shift, expected in ((1e-9, certificate.feasible), (-1e-9, False)):
            epsilon = Fraction(certificate.epsilon + shift)
            answers = [
                verify(written(game, policy, multipliers, epsilon, precision=precision), build) for build in BUILDS
            ]
            assert [answer.code for answer in answers] == [0 if expected else 1] * 2, answers
            assert len({answer.text for answer in answers}) == 1


@pytest.mark.parametrize("seed", range(20))
def test_costs_are_exactly_those_of_the_joint_form(verify: Verify, seed):
    """The policy of a local game costs what its joint form, in exact rationals, says that it costs."""
    game, policy, multipliers = random_claim(np.random.default_rng(1000 + seed))
    joint = to_joint(game)
    exact = exact_costs(claim_of(joint, lift_policy(game, policy), np.zeros(multipliers.shape)), max_work=10**8)
    for j, cost in enumerate(exact):
        high = game.with_thresholds(np.full(len(exact), 1000.0))
        claim = written(high, policy, 0 * multipliers, 1000)
        assert verify(claim.replace(f"threshold {j} 1000", f"threshold {j} {cost}")).code == 0
        lower = Fraction(cost) - Fraction(1, 10**30)
        answer = verify(claim.replace(f"threshold {j} 1000", f"threshold {j} {lower}"))
        assert (answer.code, f"constraint {j}" in answer.text) == (1, True)


def two_users() -> str:
    """Two agents, one step; action 1 uses the resource, is worth 1, and costs each user a quarter of the load."""
    agent = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, 1]]], uses=[[[[0], [1]]]], initial=[1])
    game = LocalGame(
        agents=(agent, agent), delay=[[[0, 0.25, 0.5]]], load_costs=[[[[0, 0, 1]]]], thresholds=[0.5], horizon=1
    )
    policy = JointPolicy(([[[0.5, 0.5]]], [[[0, 1]]]))
    return written(game, policy, [[0.5], [0]], 0)


def test_the_claim_that_is_changed_below_is_true(verify: Verify):
    """Agent 0 would like to use the resource always, which the threshold forbids."""
    assert [verify(two_users(), build).code for build in BUILDS] == [0, 0]


CHANGES = {
    "a multiplier is missing": ("multiplier 0 0 1/2\n", "", 1, "agent 0 may gain 1/4"),
    "the threshold is lower": (
        "threshold 0 1/2",
        "threshold 0 49/100",
        1,
        "does not meet constraint 0: its cost is 1/2",
    ),
    "a delay is larger": ("curve 0 0 1/4 1/2", "curve 0 0 1/4 3", 1, "agent 0 may gain 5/4"),
    "a delay is unknown": ("delay * 0 0", "delay * 0 2", 2, "curve 2 is out of range"),
    "a curve is too short": ("curve 0 0 1/4 1/2", "curve 0 0 1/4", 2, "2 values for loads 0 to 2"),
    "a curve is missing": ("curve 1 0 0 1\n", "", 2, "curve 1 is not given"),
    "a resource is used twice": (
        "uses 0 * 0 1 0",
        "uses 0 * 0 1 0 0",
        1,
        "agent 0 uses at step 0 in state 0, action 1 names",
    ),
    "a resource does not exist": ("uses 0 * 0 1 0", "uses 0 * 0 1 1", 2, "resource 1 is out of range"),
    "an initial row is no distribution": ("initial 1 0 1", "initial 1 0 1/2", 1, "initial probabilities of agent 1"),
    "a transition row is no distribution": (
        "transition 0 * 0 1 0 1",
        "transition 0 * 0 1 0 1/2",
        1,
        "transition of agent 0 at step 0 in state 0, action 1",
    ),
    "a transition row is missing": ("transition 0 * 0 1 0 1\n", "", 2, "step 0 in state 0, action 1 is not given"),
    "a policy row is no distribution": (
        "policy 0 0 0 1/2 1/2",
        "policy 0 0 0 1/2 1/4",
        1,
        "agent 0 at step 0 in state 0",
    ),
    "a negative multiplier": ("multiplier 1 0 0", "multiplier 1 0 -1", 1, "multiplier of agent 1 of constraint 0"),
    "dynamics that do not exist": ("agents 0 0", "agents 0 1", 2, "dynamics 1 is out of range"),
    "payoffs with a gap": ("payoffs 0 0", "payoffs 1 1", 2, "no agent has payoffs 0"),
    "too few payoffs": ("payoffs 0 0", "payoffs 0", 2, "1 payoffs for 2 agents"),
    "a claim for joint games": ("claim nash", "claim infeasible", 2, "joint games only"),
    "an entry twice": ("delay * 0 0", "delay * 0 0\ndelay 0 * 0", 2, "given before"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_file_is_refused_with_the_first_reason(verify: Verify, change):
    old, new, code, reason = CHANGES[change]
    assert two_users().count(old) == 1
    for build in BUILDS:
        answer = verify(two_users().replace(old, new), build)
        assert (answer.code, reason in answer.text) == (code, True), answer.text


def test_agents_with_the_same_payoffs_must_move_alike(verify: Verify):
    apart = two_users().replace("states 1", "states 1 1").replace("actions 2", "actions 2 2")
    answer = verify(apart.replace("agents 0 0", "agents 0 1"))
    assert (answer.code, "agents with payoffs 0 have dynamics 0 and 1" in answer.text) == (2, True)


def test_constraints_that_do_not_bind_an_agent_do_not_hold_it_back(verify: Verify):
    unbound = two_users().replace("threshold 0 1/2", "threshold 0 1/2\nbinds 0 1")
    answer = verify(unbound)
    assert (answer.code, "multiplier of agent 0 of constraint 0" in answer.text) == (1, True)
    answer = verify(unbound.replace("multiplier 0 0 1/2", "multiplier 0 0 0"))
    assert (answer.code, "agent 0 may gain 1/4" in answer.text) == (1, True)


def test_a_mask_is_written_and_gets_the_verdict_of_the_certificate(verify: Verify):
    game, policy, multipliers = random_claim(np.random.default_rng(7))
    binds = np.ones_like(multipliers)
    binds[0] = 0
    multipliers = multipliers * binds
    certificate = certify(bind(game, binds), policy, multipliers)
    for shift, expected in ((1e-9, certificate.feasible), (-1e-9, False)):
        epsilon = Fraction(certificate.epsilon + shift)
        assert verify(written(game, policy, multipliers, epsilon, binds=binds)).code == (0 if expected else 1)


def test_agents_with_their_own_copies_get_the_same_verdict(verify: Verify):
    """A file that shares dynamics and payoffs, and one that writes them once for each agent, are the same claim."""
    game = robots(num_agents=3, horizon=20)
    result = solve(game, epsilon=1e-6)
    copies = replace(game, agents=[replace(a, transition=[m.copy() for m in a.transition]) for a in game.agents])
    claims = [written(each, result.policy, result.multipliers, Fraction(1, 10**6)) for each in (game, copies)]
    assert "\nagents 0 0 0\n" in claims[0]
    assert "\nagents 0 1 2\n" in claims[1]
    assert [verify(claim).code for claim in claims] == [0, 0]


def chain(horizon: int) -> str:
    """One agent with two states and two actions, each of which leads to both states, and a resource."""
    lines = ["cmpg-proof 1", "form local", "claim nash", "states 2", "actions 2", "agents 0", "payoffs 0"]
    lines += [f"horizon {horizon}", "resources 1", "curves 1", "constraints 0", "precision 64", "initial 0 0 1"]
    lines += ["transition 0 * 0 * 0 1/2 1 1/2", "transition 0 * 1 * 0 1/2 1 1/2", "uses 0 * 0 * 0", "curve 0 0 1"]
    return "\n".join([*lines, "delay * * 0", "play 0 * 0 0", "epsilon 0", "end", ""])


@pytest.mark.parametrize("build", BUILDS)
def test_work_grows_in_proportion_to_the_horizon(verify: Verify, build):
    few, many = (verify(chain(horizon), build) for horizon in (16, 32))
    assert (few.code, many.code) == (0, 0)
    assert many.words - few.words < 4 * few.words
