"""Certificates: right on known equilibria, loose but never wrong with bad multipliers, exact where asked."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import cmpg
from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.planning import dual_bound
from cmpg.equilibrium.certificate import (
    Feasibility,
    certify,
    check_multipliers,
    excess_text,
    feasibility_text,
    gain_rounding,
    judge_agent,
    proved_text,
    rescaling_text,
    restriction,
    screen,
)
from cmpg.equilibrium.infeasibility import prove_infeasible
from cmpg.errors import PolicyError, UnsupportedError
from cmpg.games.joint.game import JointGame
from cmpg.policy import JointPolicy
from cmpg.scenarios import counter_example, modified_counter_example


def play(p, q):
    """The 2×2 games' policy in which the second actions have probability p and q."""
    return JointPolicy(([[[1 - p, p]]], [[[1 - q, q]]]))


@pytest.mark.parametrize(("p", "q", "price"), [(0, 0, 0), (1 / 3, 1 / 3, 0), (0.5**0.5, 0.5**0.5, 3 - 2**0.5)])
def test_known_equilibria_are_certified(p, q, price):
    certificate = certify(counter_example(threshold=0.5 + 1e-12), play(p, q), [[price], [price]])
    assert certificate.feasible
    assert certificate.epsilon < 1e-11


def test_the_multipliers_of_the_curve_are_its_slopes():
    for p in (0.5, 0.6, 0.8, 1.0):
        q = 0.5 / p
        prices = [[(3 * q - 1) / q], [(3 * p - 1) / p]]
        certificate = certify(counter_example(threshold=0.5 + 1e-12), play(p, q), prices)
        assert certificate.feasible
        assert certificate.epsilon < 1e-11


def test_bad_multipliers_make_the_bound_loose_and_never_wrong():
    best = certify(modified_counter_example(), play(0.5, 0.5), [[1.0], [1.0]])
    assert best.gains == pytest.approx([0.25, 0.25], abs=1e-12)
    for price in (0.0, 0.5, 2.0, 10.0):
        assert certify(modified_counter_example(), play(0.5, 0.5), [[price], [price]]).epsilon >= 0.25 - 1e-12


def test_a_violated_threshold_is_seen():
    certificate = certify(counter_example(), play(1, 1), [[0], [0]])
    assert certificate.feasibility is Feasibility.VIOLATED
    assert not certificate.proves(100.0)


def test_a_cost_that_meets_its_threshold_to_the_last_bit_is_decided_exactly():
    certificate = certify(counter_example(), play(0.5, 1.0), [[1.0], [2.0]])
    assert certificate.feasibility is Feasibility.PROVEN
    above = np.nextafter(0.5, 1)
    assert certify(counter_example(), play(above, 1.0), [[1.0], [2.0]]).feasibility is Feasibility.TO_ROUNDING
    exact = certify(counter_example(), play(above, 1.0), [[1.0], [2.0]], exact=True)
    assert exact.feasibility is Feasibility.VIOLATED


def test_exact_mode_has_no_rounding_and_reads_fractions():
    game = JointGame(
        transition=np.full((1, 1, 2, 2, 1), Fraction(1)),
        rewards=[[[[[Fraction(1, 3), 0], [0, Fraction(1, 7)]]]]] * 2,
        costs=[[[[[Fraction(1, 3), 0], [0, 0]]]]],
        thresholds=[Fraction(1, 3)],
        initial=[Fraction(1)],
        horizon=1,
    )
    certificate = certify(game, play(0, 0), [[0], [0]], exact=True)
    assert certificate.arithmetic == "exact"
    assert certificate.feasibility is Feasibility.PROVEN
    assert certificate.epsilon == 0.0
    assert certificate.rounding.tolist() == [0.0, 0.0]


def test_infeasibility_is_proved_and_feasibility_is_not_denied():
    impossible = JointGame(
        transition=np.ones((1, 1, 2, 2, 1)),
        rewards=np.zeros((2, 1, 1, 2, 2)),
        costs=[[[[[1.0, 1.0], [1.0, 0.75]]]]],
        thresholds=[0.5],
        initial=[1.0],
        horizon=2,
    )
    proof = prove_infeasible(impossible, [1.0])
    assert proof.holds
    assert proof.least_cost == pytest.approx(1.5)
    assert not prove_infeasible(counter_example(), [1.0]).holds


@pytest.mark.parametrize(
    ("multipliers", "text"),
    [
        ([[0.0]], r"\[2, 1\] is required"),
        ([[-1.0], [0.0]], "negative"),
        ([[np.nan], [0.0]], r"multipliers\[0, 0\] is nan"),
    ],
)
def test_bad_multipliers_are_refused(multipliers, text):
    with pytest.raises(PolicyError, match=text):
        certify(counter_example(), play(0, 0), multipliers)


def test_discounted_games_are_judged_exactly_too():
    game = JointGame(
        transition=np.ones((1, 1, 1, 1, 1)),
        rewards=np.ones((2, 1, 1, 1, 1)),
        costs=(),
        thresholds=(),
        initial=[1.0],
        discount=0.5,
    )
    assert certify(game, game.uniform_policy()).values == pytest.approx([2.0, 2.0])
    judged = certify(game, game.uniform_policy(), exact=True)
    assert judged.values.tolist() == [2.0, 2.0]
    assert judged.epsilon == 0
    assert judged.judged_by == "rationals"


def test_exact_mode_turns_nothing_into_floats():
    game = JointGame(
        transition=np.ones((1, 1, 2, 1)),
        rewards=[[[[Fraction(0), Fraction(1)]]]],
        costs=[[[[0, 1]]]],
        thresholds=[Fraction(1, 3)],
        initial=[1],
        horizon=1,
    )

    def judged(chance):
        policy = JointPolicy((np.array([[[1 - chance, chance]]], dtype=object),))
        return certify(game, policy, [[1.0]], exact=True)

    tiny = Fraction(1, 10**30)
    assert judged(Fraction(1, 3)).feasibility is Feasibility.PROVEN
    assert judged(Fraction(1, 3) + tiny).feasibility is Feasibility.VIOLATED
    assert judged(Fraction(1, 3)).epsilon == 0
    # The price is a float, and still the bound is exact: 1e-30 is less than any rounding of 1/3.
    assert judged(Fraction(1, 3) - tiny).epsilon == pytest.approx(1e-30, rel=1e-9, abs=0.0)


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
        assert (certificate.gains >= above).all()
        assert certificate.gains == pytest.approx(above, rel=1e-15, abs=float(certificate.rounding.max()))
        assert certificate.epsilon == certificate.gains.max()
        screened = screen(game, policy or game.uniform_policy())
        above = np.maximum(screened.bounds - screened.values, 0.0)
        assert np.array_equal(screened.gains, above + screened.rounding)
        assert (screened.rounding > certificate.rounding).all()


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


def test_rounding_grows_with_every_size():
    cmdp = one_agent().at(FIRST).induced_cmdp(0)
    none, some = gain_rounding(cmdp, np.zeros(2)), gain_rounding(cmdp, np.array([0.0, 4.0]))
    sizes = cmdp.rounding_sizes
    assert none == 2 * cmdp.rounding * sizes[0]
    assert some == pytest.approx(none + 2 * cmdp.rounding * 4.0 * (sizes[2] + 0.625), rel=1e-12, abs=0.0)


def test_a_budget_of_which_something_is_left_has_no_proof_by_support():
    roomy = one_agent().with_thresholds([0.5, 0.625])
    assert restriction(roomy.at(FIRST), 0, np.array([True, False])) is None
    certificate = certify(roomy, FIRST, [[np.inf, 0.0]])
    assert certificate.epsilon == np.inf
    assert not certificate.proves(1e300)


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
    assert feasibility_text(certify(game, FIRST)) == "The policy meets every threshold"
    other = cmpg.JointPolicy((np.array([[[0.0, 1.0, 0.0]]]),))
    certificate = certify(game, other)
    assert certificate.feasibility is Feasibility.VIOLATED
    assert feasibility_text(certificate).startswith("The policy violates a threshold: ")
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
        if name in ("claim_tables", "exact", "rationals", "planner", "private_cmdps"):
            raise AttributeError(name)
        return getattr(self._game, name)


def test_what_a_users_class_cannot_do_is_said():
    with pytest.raises(UnsupportedError, match="has no exact mode"):
        certify(Own(one_agent()), FIRST, exact=True)
    with pytest.raises(UnsupportedError, match="cannot be planned for centrally"):
        prove_infeasible(Own(one_agent()), [1.0, 0.0])


def pair(thresholds=(0.25, 3.0)):
    """Two agents with two actions and two budgets: the first is spent by whoever does the least that it can."""
    return cmpg.JointGame(
        transition=np.ones((1, 1, 2, 2, 1)),
        rewards=[[[[[0.0, 0.0], [1.0, 1.0]]]], [[[[0.0, 4.0], [0.0, 4.0]]]]],
        costs=[[[[[0.25, 1.25], [1.25, 1.25]]]], [[[[0.5, 0.5], [0.5, 2.0]]]]],
        thresholds=thresholds,
        initial=[1.0],
        horizon=1,
    )


IDLE = cmpg.JointPolicy((np.array([[[1.0, 0.0]]]),) * 2)


# --- What is told -----------------------------------------------------------------------------------------------------


def test_what_may_be_exceeded_by_as_much_as_is_allowed_is_accepted():
    certificate = replace(
        certify(pair(), IDLE), feasibility=Feasibility.TO_ROUNDING, excess=np.array([0.0, 0.5]), gains=np.ones(2)
    )
    assert certificate.meets(0.5)
    assert certificate.proves(1.0, allow_rounding=0.5)
    assert not certificate.meets(np.nextafter(0.5, 0))
    assert not certificate.proves(1.0)


def test_a_proved_policy_meets_its_thresholds_whatever_is_allowed():
    assert replace(certify(pair(), IDLE), feasibility=Feasibility.PROVEN, excess=np.array([1.0, 1.0])).meets(0.0)


def test_rows_that_were_rescaled_are_told_and_others_are_not():
    certificate = replace(certify(pair(), IDLE), gains=np.array([0.25, 0.5]))
    assert rescaling_text(certificate) == ""
    assert proved_text(certificate) == "feasible, and no agent gains more than 0.5 by deviating (joint-state policies)."
    rescaled = replace(certificate, rescaled=2, arithmetic="exact")
    assert rescaling_text(rescaled) == "; 2 rows of probabilities divided by their sums"
    assert proved_text(rescaled).endswith(f"(joint-state policies, exact arithmetic{rescaling_text(rescaled)}).")


def test_the_threshold_that_is_exceeded_most_is_told():
    certificate = certify(pair((0.125, 0.25)), IDLE)
    assert certificate.feasibility is Feasibility.VIOLATED
    assert certificate.excess == pytest.approx([0.125, 0.25], abs=1e-12)
    assert excess_text(certificate) == "constraint 1 costs 0.5, 0.25 more than 0.25"
    open_still = replace(certificate, feasibility=Feasibility.TO_ROUNDING)
    assert excess_text(open_still) == "constraint 1 may cost up to 0.251 more than 0.25"


# --- Gains ------------------------------------------------------------------------------------------------------------


def test_the_greatest_gain_of_all_agents_counts():
    certificate = certify(pair(), IDLE, np.zeros((2, len(pair().thresholds))))
    assert certificate.gains == pytest.approx([1.0, 4.0], abs=1e-12)
    assert certificate.epsilon == certificate.gains[1]


def test_without_constraints_the_bound_is_what_an_agent_could_get():
    position = pair().without_constraints().at(IDLE)
    assert judge_agent(position, 1, np.zeros(0))[:2] == (0.0, 4.0)


def test_where_every_budget_is_hard_the_bound_is_what_is_allowed():
    position = pair((0.25, 0.5)).at(IDLE)
    assert judge_agent(position, 1, np.zeros(2), np.array([True, True]))[:2] == (0.0, 0.0)
    assert judge_agent(position, 1, np.array([9.0, 9.0]), np.array([True, True]))[1] == 0.0


def test_a_budget_that_is_not_hard_proves_nothing_and_hides_no_rounding():
    position = pair().at(IDLE)
    assert judge_agent(position, 0, np.zeros(2), np.array([False, True])) == (0.0, np.inf, 0.0)


def test_what_is_withheld_of_another_budget_is_given_back_beside_a_proof_by_support():
    agent = cmpg.LocalAgent(
        transition=np.ones((1, 1, 2, 1)),
        reward=[[[0, 1]]],
        uses=[[[[0], [1]]]],
        initial=[1],
        costs=[[[[0, 1]]], [[[0.3, 0.7]]]],
    )
    game = cmpg.LocalGame(
        agents=(agent, agent),
        delay=[[[0, 0, 0]]],
        load_costs=[[[[0, 0, 0]]], [[[0, 0, 1]]]],
        thresholds=[0.0, 3.0],
        horizon=2,
    )
    position = game.at(cmpg.JointPolicy((np.array([[[1.0, 0.0]]] * 2),) * 2))
    cmdp, hard = position.induced_cmdp(0), np.array([True, False])
    withheld = (evaluate(cmdp, position.policy[0]).costs + position.slacks - cmdp.thresholds)[1]
    assert withheld > 0
    soft = np.array([2.0])
    within = dual_bound(restriction(position, 0, hard).cmdp, soft)
    assert judge_agent(position, 0, np.array([0.0, 2.0]), hard)[1] == within + 2.0 * withheld > within


def test_rounding_has_the_size_of_the_threshold_in_it():
    cmdp = pair((0.25, 1000.0)).at(IDLE).induced_cmdp(0)
    prices = np.array([0.5, 2.0])
    sizes, limits = cmdp.rounding_sizes, np.abs(cmdp.thresholds)
    wanted = 2 * cmdp.rounding * (sizes[0] + 0.5 * (sizes[1] + limits[0]) + 2.0 * (sizes[2] + limits[1]))
    assert gain_rounding(cmdp, prices) == pytest.approx(wanted, rel=1e-12, abs=0.0)


# --- Multipliers of constraints that bind some ------------------------------------------------------------------------


def test_a_constraint_that_does_not_bind_an_agent_has_no_multiplier_there():
    game = cmpg.games.bind(pair(), [[1, 0], [1, 1]])
    for fine in ([[0, 0], [0, 0]], [[1, 0], [2, 3]], [[np.inf, 0], [1, np.inf]]):
        assert check_multipliers(game, fine).tolist() == fine
    for wrong in (1.0, 1e-300, np.inf):
        for others in (0.0, 1.0, np.inf):
            with pytest.raises(PolicyError, match=r"\[0, 1\] is not zero; constraint 1 does not bind agent 0"):
                check_multipliers(game, [[others, wrong], [others, others]])


def test_the_first_of_several_multipliers_that_may_not_be_is_told():
    game = cmpg.games.bind(pair(), [[1, 0], [0, 1]])
    with pytest.raises(PolicyError, match=r"multipliers\[0, 1\] is not zero"):
        check_multipliers(game, [[0.0, 2.0], [3.0, 0.0]])
    with pytest.raises(PolicyError, match=r"multipliers\[1, 0\] is not zero"):
        check_multipliers(game, [[0.0, 0.0], [1.0, 0.0]])


# --- Thresholds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tiny", [1e-300, 0.5])
def test_a_hard_budget_is_broken_however_little_is_spent(tiny):
    game = cmpg.JointGame(
        transition=np.ones((1, 1, 2, 1)),
        rewards=[[[[0.0, 1.0]]]],
        costs=[[[[0.0, 1.0]]], [[[0.0, 0.0]]]],
        thresholds=[0.0, 1.0],
        initial=[1.0],
        horizon=1,
    )
    policy = cmpg.JointPolicy((np.array([[[1 - tiny, tiny]]]),))
    certificate = certify(game, policy, [[np.inf, 0.0]])
    assert certificate.feasibility is Feasibility.VIOLATED
    assert certificate.excess == pytest.approx([tiny, 0.0], rel=1e-12, abs=0.0)


# --- Parts ------------------------------------------------------------------------------------------------------------


def test_a_budget_counts_as_hard_where_every_one_of_them_is():
    position = pair().at(IDLE)
    both = restriction(position, 1, np.array([True, True]))
    assert both is None  # the second one has room
    first = restriction(position, 1, np.array([True, False]))
    assert first.cmdp.num_constraints == 1
    assert dual_bound(first.cmdp, np.zeros(1)) == 0.0


def test_a_certificate_says_all_that_it_was_made_of():
    game = pair()
    prices = [[0.5, 0.0], [np.inf, 0.25]]
    found = certify(game, IDLE, prices)
    assert found.values.tolist() == [0.0, 0.0]
    assert found.costs.tolist() == [0.25, 0.5]
    assert found.thresholds.tolist() == [0.25, 3.0]
    assert found.slacks.tolist() == [0.0, 2.5]
    assert found.multipliers.tolist() == prices
    assert found.by_support.tolist() == [[False, False], [True, False]]
    assert (found.arithmetic, found.binds, found.rescaled) == ("floating point", None, 0)
    assert found.information is game.information
    exact = certify(game, IDLE, prices, exact=True)
    assert (exact.arithmetic, exact.rounding.tolist(), exact.rescaled) == ("exact", [0.0, 0.0], 0)
    # λ·α + max (r − λ·c): 0.125 + max(0 − 0.125, 1 − 0.625), and 0.75 + what is allowed, 0 − 0.125.
    assert exact.bounds.tolist() == [0.5, 0.625]
    assert exact.gains.tolist() == [0.5, 0.625]
    assert exact.feasibility is Feasibility.PROVEN
    bound = certify(cmpg.games.bind(game, [[1, 0], [1, 1]]), IDLE)
    assert bound.binds.tolist() == [[True, False], [True, True]]


def test_exact_arithmetic_tells_how_many_rows_it_rescaled():
    thirds = IDLE.replace(0, [[[0.1, 0.9]]]).replace(1, [[[0.3, 0.7]]])
    exact = certify(pair(), thirds, exact=True)
    off = sum(sum(Fraction(each) for each in row) != 1 for row in ((0.1, 0.9), (0.3, 0.7)))
    assert exact.rescaled == off
    assert certify(pair(), thirds).rescaled == 0


@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (0, 0), (3, 0), (0,)])
def test_no_multipliers_are_none_only_where_there_are_no_constraints(shape):
    free = pair().without_constraints()
    assert check_multipliers(free, np.zeros(shape)).shape == (2, 0)
    with pytest.raises(PolicyError, match="multipliers has shape"):
        check_multipliers(pair(), np.zeros(shape))
    with pytest.raises(PolicyError, match="multipliers has shape"):
        check_multipliers(free, np.zeros((2, 1)))


def test_multipliers_of_zero_prove_by_value_and_are_never_negative():
    assert check_multipliers(pair(), None).tolist() == [[0.0, 0.0]] * 2
    given = check_multipliers(pair(), [[0, 1], [np.inf, 0]])
    assert given.tolist() == [[0.0, 1.0], [np.inf, 0.0]]
    for wrong in ([[0, -1], [0, 0]], [[np.inf, -1], [0, 0]]):
        with pytest.raises(PolicyError, match="negative entry"):
            check_multipliers(pair(), wrong)
