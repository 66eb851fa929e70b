"""The small print of certificates: what counts as proved at the edge, and every term of the allowance for rounding."""

import numpy as np
import pytest

import cmpg
from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.planning import dual_bound
from cmpg.equilibrium.certificate import (
    Feasibility,
    certify,
    check_multipliers,
    gain_rounding,
    judge_agent,
    restriction,
)
from cmpg.equilibrium.infeasibility import prove_infeasible
from cmpg.errors import GameError, PolicyError, UnsupportedError


def one_agent():
    """Three actions: the first costs nothing of a budget of nothing; each takes some of another budget."""
    return cmpg.JointGame(
        transition=np.ones((1, 1, 3, 1)),
        rewards=[[[[1.0, 2.0, 3.0]]]],
        costs=[[[[0.0, 1.0, 1.0]]], [[[0.5, 0.25, 0.125]]]],
        thresholds=[0.0, 0.625],
        initial=[1.0],
        horizon=1,
    )


FIRST = cmpg.JointPolicy((np.array([[[1.0, 0.0, 0.0]]]),))


def test_a_gap_of_exactly_epsilon_is_proved():
    certificate = certify(one_agent(), FIRST, [[np.inf, 0.5]])
    assert certificate.proves(certificate.epsilon)
    assert not certificate.proves(np.nextafter(certificate.epsilon, 0))


def test_a_gain_is_the_bound_above_the_value_and_never_negative_with_the_allowance_on_top():
    for game, policy in ((one_agent(), FIRST), (cmpg.scenarios.grid_world_local(), None)):
        certificate = certify(game, policy or game.uniform_policy())
        above = np.maximum(certificate.bounds - certificate.values, 0.0)
        assert np.array_equal(certificate.gains, above + certificate.rounding)
        assert (certificate.rounding > 0).all()
        assert certificate.epsilon == certificate.gains.max()


def test_a_proof_by_support_allows_for_the_rounding_of_the_other_constraints_alone():
    position = one_agent().at(FIRST)
    cmdp, hard = position.induced_cmdp(0), np.array([True, False])
    value, bound, allowance = judge_agent(position, 0, np.array([0.0, 0.5]), hard)
    assert value == 1.0
    assert bound == pytest.approx(1.0 - 0.5 * 0.5 + 0.5 * 0.625, abs=1e-12)  # λ·α + what action 0 is worth, charged
    wanted = gain_rounding(cmdp, np.array([0.0, 0.5])) + 2 * 0.5 * position.cost_rounding[1]
    assert allowance == wanted
    # What stands for the hard one plays no part.
    assert judge_agent(position, 0, np.array([7.0, 0.5]), hard) == (value, bound, allowance)


def test_a_proof_by_multipliers_allows_for_the_rounding_of_all_constraints():
    position = one_agent().at(FIRST)
    prices = np.array([3.0, 0.5])
    value, bound, allowance = judge_agent(position, 0, prices)
    assert (value, bound) == (1.0, pytest.approx(max(1.0 - 0.25, 2.0 - 3.125, 3.0 - 3.0625) + 0.3125, abs=1e-12))
    assert allowance == gain_rounding(position.induced_cmdp(0), prices) + float(2 * prices @ position.cost_rounding)
    assert allowance > 0


def test_what_a_game_withholds_from_an_agent_for_rounding_is_given_back_in_the_bound():
    agent = cmpg.LocalAgent(
        transition=np.ones((1, 1, 2, 1)), reward=[[[0, 1]]], uses=[[[[0], [1]]]], initial=[1], costs=[[[[0, 1]]]]
    )
    game = cmpg.LocalGame(
        agents=(agent, agent), delay=[[[0, 0, 0]]], load_costs=[[[[0, 0, 1]]]], thresholds=[3.0], horizon=2
    )
    position = game.at(game.uniform_policy())
    cmdp, prices = position.induced_cmdp(0), np.array([2.0])
    left = evaluate(cmdp, position.policy[0]).costs + position.slacks
    assert left[0] > cmdp.thresholds[0]
    _, bound, _ = judge_agent(position, 0, prices)
    assert bound == dual_bound(cmdp, prices) + prices @ (left - cmdp.thresholds)
    assert bound > dual_bound(cmdp, prices)


def test_rounding_grows_with_every_size_and_vanishes_in_exact_arithmetic():
    cmdp = one_agent().at(FIRST).induced_cmdp(0)
    none, some = gain_rounding(cmdp, np.zeros(2)), gain_rounding(cmdp, np.array([0.0, 4.0]))
    sizes = cmdp.rounding_sizes
    assert none == 2 * cmdp.rounding * sizes[0]
    assert some == pytest.approx(none + 2 * cmdp.rounding * 4.0 * (sizes[2] + 0.625), rel=1e-12, abs=0.0)
    assert gain_rounding(one_agent().exact().at(FIRST.exact()).induced_cmdp(0), np.array([0.0, 4.0])) == 0.0


def test_a_budget_of_which_something_is_left_has_no_proof_by_support():
    roomy = one_agent().with_thresholds([0.5, 0.625])
    assert restriction(roomy.at(FIRST), 0, np.array([True, False])) is None
    certificate = certify(roomy, FIRST, [[np.inf, 0.0]])
    assert certificate.epsilon == np.inf
    assert not certificate.proves(1e300)


def test_a_position_that_knows_no_hard_budgets_has_no_proof_by_support():
    class Bare:
        """A position without anything that it need not have."""

    assert restriction(Bare(), 0, np.array([True])) is None


def test_multipliers_are_a_table_of_numbers_that_are_not_negative():
    game = one_agent()
    assert check_multipliers(game, None).tolist() == [[0.0, 0.0]]
    assert check_multipliers(game, [[1, np.inf]]).tolist() == [[1.0, np.inf]]
    free = game.without_constraints()
    for nothing in ([], [[]], np.zeros((1, 0))):
        assert check_multipliers(free, nothing).shape == (1, 0)
    for wrong in ([], [[1.0]], [1.0, 2.0], [[1.0, 2.0], [1.0, 2.0]]):
        with pytest.raises(PolicyError, match="multipliers has shape"):
            check_multipliers(game, wrong)
    for wrong in (-1e-300, -np.inf, np.nan):
        with pytest.raises(PolicyError, match="multipliers"):
            check_multipliers(game, [[0.0, wrong]])


def test_feasibility_is_told_in_a_sentence():
    game = one_agent()
    assert certify(game, FIRST).told_feasibility == "The policy meets every threshold"
    other = cmpg.JointPolicy((np.array([[[0.0, 1.0, 0.0]]]),))
    certificate = certify(game, other)
    assert certificate.feasibility is Feasibility.VIOLATED
    assert certificate.told_feasibility.startswith("The policy violates a threshold: ")
    assert certificate.slacks.tolist() == [-1.0, 0.375]
    assert "no agent gains more than" not in repr(certificate)


def test_a_threshold_next_to_the_cost_is_told_from_it():
    for threshold, met in ((0.5, True), (np.nextafter(0.5, 0), False)):
        certificate = certify(one_agent().with_thresholds([0.0, threshold]), FIRST, [[np.inf, 0.0]])
        assert (certificate.feasibility is Feasibility.PROVEN) is met
        assert certificate.proves(1.0) is met
        assert bool(0 < certificate.excess[1] < 1e-16) is not met


def test_one_cost_beyond_all_floats_is_a_violation_whatever_the_others_are():
    game = cmpg.JointGame(
        transition=np.ones((1, 1, 1, 1)),
        rewards=[[[[0.0]]]],
        costs=[[[[1.7e308]]], [[[0.5]]]],
        thresholds=[1.0, 2.0],
        initial=[1.0],
        horizon=2,
    )
    certificate = certify(game, game.uniform_policy())
    assert certificate.feasibility is Feasibility.VIOLATED
    assert certificate.costs[1] == 1.0


class Own:
    """A game of the user's, of which nothing is known but what the contract says."""

    def __init__(self, game):
        self._game = game

    def __getattr__(self, name):
        if name in ("exact", "is_exact", "joint_cmdp", "split", "private_cmdps"):
            raise AttributeError(name)
        return getattr(self._game, name)


def test_what_a_users_class_cannot_do_is_said():
    with pytest.raises(UnsupportedError, match="has no exact mode"):
        certify(Own(one_agent()), FIRST, exact=True)
    with pytest.raises(UnsupportedError, match="cannot be planned for centrally"):
        prove_infeasible(Own(one_agent()), [1.0, 0.0])


@pytest.mark.parametrize(("limit", "holds"), [(0.1, True), (0.125, False), (0.2, False)])
def test_weights_prove_infeasibility_only_above_the_least_cost(limit, holds):
    game = one_agent().with_thresholds([5.0, limit])
    proof = prove_infeasible(game, [0.0, 1.0])
    assert proof.holds is holds
    assert proof.least_cost == pytest.approx(0.125, abs=1e-14)
    assert proof.least_cost < 0.125
    assert proof.limit == pytest.approx(limit, abs=1e-14)
    assert proof.limit >= limit


def test_weights_add_up_over_constraints_and_discounted_steps():
    game = cmpg.JointGame(
        transition=np.ones((1, 1, 2, 1)),
        rewards=[[[[9.0, 9.0]]]],
        costs=[[[[1.0, 2.0]]], [[[2.0, 0.5]]]],
        thresholds=[3.0, 3.0],
        initial=[1.0],
        discount=0.5,
    )
    proof = prove_infeasible(game, [1.0, 2.0])
    assert proof.least_cost == pytest.approx(2 * min(1.0 + 4.0, 2.0 + 1.0), abs=1e-9)  # Σ γ^t = 2
    assert proof.least_cost < 6.0
    assert proof.limit == pytest.approx(9.0, abs=1e-12)
    assert "add up to at least" in proof.told
    with pytest.raises(GameError, match="negative entry"):
        prove_infeasible(game, [1.0, -1e-300])


def test_agents_who_never_meet_spend_the_sum_of_what_each_must():
    agent = cmpg.LocalAgent(
        transition=np.ones((1, 1, 2, 1)),
        reward=[[[0, 1]]],
        uses=np.zeros((1, 1, 2, 1)),
        initial=[1],
        costs=[[[[2, 3]]]],
    )
    game = cmpg.LocalGame(
        agents=(agent, agent), delay=[[[0, 0, 0]]], load_costs=[[[[0, 0, 0]]]], thresholds=[11.0], horizon=3
    )
    proof = prove_infeasible(game, [2.0])
    assert "costs at least 24, whatever the agents do; the threshold is 22" in proof.told
    assert proof.least_cost == pytest.approx(24.0, abs=1e-11)
    assert proof.least_cost < 24.0
    assert proof.limit == pytest.approx(22.0, abs=1e-12)
    assert proof.holds
