"""The result of learning, and its judge."""

import re

import numpy as np
import pytest

from cmpg.equilibrium.certificate import certify
from cmpg.equilibrium.result import Status
from cmpg.learning.outcome import LearnResult, Played, claim, judge
from cmpg.policy import JointPolicy
from cmpg.scenarios import counter_example, spectrum


def mixed(p, q):
    """The counter-example, with p and q the probabilities of the second action."""
    return JointPolicy((np.array([[[1 - p, p]]]), np.array([[[1 - q, q]]])))


def ended(policy, *, status=Status.CERTIFIED, void=(), played=()):
    return LearnResult(
        status=status,
        message=claim(0.2, 0.1),
        policy=policy,
        epsilon=0.2,
        delta=0.1,
        samples={"values": 1200, "responses": 34},
        assumptions=("none",),
        void=void,
        played=tuple(played),
    )


def test_a_result_is_certified_only_if_nothing_makes_it_void():
    policy = mixed(0.0, 0.0)
    assert ended(policy).certified
    assert not ended(policy, void=("there is no potential",)).certified
    assert not ended(policy, status=Status.LIMIT, void=("the budget ended",)).certified


def test_a_result_says_what_it_promises_and_why_not():
    text = str(ended(mixed(0.0, 0.0), void=("there is no slack",)))
    assert "no agent gains more than 0.2 by deviating, with probability 0.9" in text
    assert "guarantee void because there is no slack" in text
    assert re.search(r"values +1,200", text)
    assert ended(mixed(0.0, 0.0)).total_samples == 1234


@pytest.mark.parametrize(("p", "q", "gap"), [(0.0, 0.0, 0.0), (1 / 3, 1 / 3, 0.0), (0.5, 0.5, 0.25)])
def test_the_judge_knows_the_true_gap(p, q, gap):
    """At (½, ½) agent 1 can go to p = 1, where the cost is ½: 3 − 1 − ½ + 3/2 = 3 instead of 2.75."""
    judged = judge(counter_example(), ended(mixed(p, q)))
    assert judged.gap == pytest.approx(gap, abs=1e-9)
    assert judged.feasible
    assert judged.costs == pytest.approx([p * q])
    assert judged.right(0.2) == (gap <= 0.2)


def test_the_judge_agrees_with_a_certificate_for_given_prices():
    game = counter_example()
    policy = mixed(np.sqrt(0.5), np.sqrt(0.5) * (1 - 1e-12))
    price = 3 - np.sqrt(2)
    assert judge(game, ended(policy)).gap == pytest.approx(certify(game, policy, [[price], [price]]).epsilon, abs=1e-9)


def test_an_infeasible_policy_is_never_right():
    judged = judge(counter_example(), ended(mixed(1.0, 1.0)))
    assert not judged.feasible
    assert not judged.right(100.0)


def test_unsafe_policies_and_their_episodes_are_counted():
    game = counter_example()
    played = [Played(mixed(0.0, 0.0), 10), Played(mixed(1.0, 1.0), 7), Played(mixed(0.5, 1.0), 5)]
    judged = judge(game, ended(mixed(0.0, 0.0), played=played))
    assert judged.unsafe_policies == 1  # the last one spends all that there is, and no more
    assert judged.unsafe_episodes == 7


def test_a_policy_that_was_played_on_the_edge_is_judged_up_to_rounding():
    game = spectrum()
    dear = game.uniform_policy()
    on_the_edge = spectrum(threshold=float(game.at(dear).costs[0]))
    beyond = spectrum(threshold=float(game.at(dear).costs[0]) - 1e-9)
    assert judge(on_the_edge, ended(dear, played=[Played(dear, 1)])).unsafe_policies == 0
    assert judge(beyond, ended(dear, played=[Played(dear, 1)])).unsafe_policies == 1
