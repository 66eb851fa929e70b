"""Each term of a certificate by itself: positions whose answers are made up, so that one term decides."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import cmpg
from cmpg.cmdp.evaluation import Underflow, evaluate
from cmpg.cmdp.planning import dual_bound
from cmpg.equilibrium import certificate as certificates
from cmpg.equilibrium.certificate import (
    Feasibility,
    certificate_seconds,
    certify,
    check_multipliers,
    gain_rounding,
    judge_agent,
    proved_text,
    restriction,
)
from cmpg.errors import PolicyError
from cmpg.games.contract import Judgements


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


def altered(game, policy=IDLE, **answers):
    """Return a game whose position gives these answers, and knows nothing that a position need not know."""
    real = game.at(policy)
    names = ("policy", "values", "costs", "slacks", "cost_rounding", "induced_cmdp")
    position = SimpleNamespace(**{name: getattr(real, name) for name in names} | answers)
    names = ("num_agents", "thresholds", "information", "names", "discount")
    return SimpleNamespace(at=lambda _: position, **{name: getattr(game, name) for name in names})


# --- What is told -----------------------------------------------------------------------------------------------------


def test_what_may_be_exceeded_by_as_much_as_is_allowed_is_accepted():
    certificate = replace(
        certify(pair(), IDLE), feasibility=Feasibility.TO_ROUNDING, excess=np.array([0.0, 0.5]), epsilon=1.0
    )
    assert certificate.meets(0.5)
    assert certificate.proves(1.0, allow_rounding=0.5)
    assert not certificate.meets(np.nextafter(0.5, 0))
    assert not certificate.proves(1.0)


def test_a_proved_policy_meets_its_thresholds_whatever_is_allowed():
    assert replace(certify(pair(), IDLE), feasibility=Feasibility.PROVEN, excess=np.array([1.0, 1.0])).meets(0.0)


def test_rows_that_were_rescaled_are_told_and_others_are_not():
    certificate = replace(certify(pair(), IDLE), epsilon=0.5)
    assert certificate.told_rescaling == ""
    assert proved_text(certificate) == "feasible, and no agent gains more than 0.5 by leaving (joint-state policies)."
    rescaled = replace(certificate, rescaled=2, arithmetic="exact")
    assert rescaled.told_rescaling == "; 2 rows of probabilities divided by their sums"
    assert proved_text(rescaled).endswith(f"(joint-state policies, exact arithmetic{rescaled.told_rescaling}).")


def test_the_threshold_that_is_exceeded_most_is_told():
    certificate = certify(pair((0.125, 0.25)), IDLE)
    assert certificate.feasibility is Feasibility.VIOLATED
    assert certificate.excess == pytest.approx([0.125, 0.25], abs=1e-12)
    assert certificate.told_excess == "constraint 1 costs 0.5, 0.25 more than 0.25"
    open_still = replace(certificate, feasibility=Feasibility.TO_ROUNDING)
    assert open_still.told_excess == "constraint 1 may cost up to 0.25 more than 0.25"


# --- Gains ------------------------------------------------------------------------------------------------------------


def test_the_greatest_gain_of_all_agents_counts():
    certificate = certify(pair(), IDLE)
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


def test_what_underflow_hides_is_allowed_for_four_times_at_the_multipliers():
    hidden = Underflow(rewards=np.array([1.0, 2.0]), costs=np.array([8.0, 16.0]))
    prices = [[0.5, 0.0], [0.0, 0.25]]
    plain = certify(altered(pair()), IDLE, prices)
    lossy = certify(altered(pair(), underflow=lambda: hidden), IDLE, prices)
    assert lossy.rounding - plain.rounding == pytest.approx([4 * (1.0 + 4.0), 4 * (2.0 + 4.0)], rel=1e-12)
    assert certify(altered(pair(), underflow=lambda: None), IDLE, prices).gains.tolist() == plain.gains.tolist()


def test_a_proof_by_support_has_no_multiplier_that_underflow_could_enlarge():
    hidden = Underflow(rewards=np.zeros(2), costs=np.array([1e9, 0.0]))
    real = pair().at(IDLE)
    certificate = certify(
        altered(pair(), underflow=lambda: hidden, forbidden=real.forbidden), IDLE, [[np.inf, 0.0], [np.inf, 0.0]]
    )
    assert (certificate.rounding < 1e-9).all()
    assert certificate.multipliers[:, 0].tolist() == [np.inf, np.inf]


def test_agents_are_judged_at_once_except_those_whose_proof_is_by_support():
    real, asked = pair().at(IDLE), []

    def judgements(multipliers, agents=None):
        asked.append(multipliers.tolist())
        return Judgements(real.values, np.array([10.0, 20.0]), np.array([0.5, 0.75]))

    game = altered(pair(), judgements=judgements, neighbours=lambda agent: range(agent, 2), forbidden=real.forbidden)
    certificate = certify(game, IDLE, [[np.inf, 0.5], [0.0, 0.25]])
    assert asked == [[[0.0, 0.5], [0.0, 0.25]]]
    value, bound, allowance = judge_agent(real, 0, np.array([0.0, 0.5]), np.array([True, False]))
    assert certificate.values.tolist() == [value, 0.0]
    assert certificate.bounds.tolist() == [bound, 20.0]
    assert certificate.rounding.tolist() == [allowance, 0.75]
    assert certify(game, IDLE).bounds.tolist() == [10.0, 20.0]
    hard_to_all = altered(
        pair((0.25, 0.5)), judgements=judgements, neighbours=None, forbidden=pair((0.25, 0.5)).at(IDLE).forbidden
    )
    assert certify(hard_to_all, IDLE, np.full((2, 2), np.inf)).bounds.tolist() == [0.0, 0.0]
    assert len(asked) == 2


def test_the_time_for_a_certificate_is_that_of_every_agent_and_half_as_much_again(monkeypatch):
    clock = iter([10.0, 12.0])
    monkeypatch.setattr(certificates, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    alone = cmpg.JointGame(
        transition=np.ones((1, 1, 2, 1)), rewards=[[[[0, 1]]]], costs=(), thresholds=(), initial=[1.0], horizon=1
    )
    assert certificate_seconds(alone.at(alone.uniform_policy()), 3) == 9.0


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


def judged(game, multipliers=None, policy=IDLE, **answers):
    certificate = certify(altered(game, policy, **answers), policy, multipliers)
    return certificate.feasibility, certificate.excess.tolist()


def test_a_threshold_is_exceeded_by_what_the_cost_and_its_rounding_are_above_it():
    """Costs 0.25 and 0.5."""
    rounding = np.array([0.0, 0.5])
    assert judged(pair((0.5, 1.0)), cost_rounding=rounding) == (Feasibility.PROVEN, [0.0, 0.0])
    open_still, excess = judged(pair((0.5, 0.75)), cost_rounding=rounding)
    assert open_still is Feasibility.TO_ROUNDING
    assert excess == [0.0, np.nextafter(0.25, 1)]
    violated, excess = judged(pair((0.125, 1.0)), cost_rounding=rounding)
    assert violated is Feasibility.VIOLATED
    assert excess == [np.nextafter(0.125, 1), 0.0]


def test_a_cost_that_may_just_meet_its_threshold_is_not_called_a_violation():
    assert judged(pair((1.0, 0.25)), cost_rounding=np.array([0.0, 0.25]))[0] is Feasibility.TO_ROUNDING
    assert judged(pair((1.0, 0.125)), cost_rounding=np.array([0.0, 0.25]))[0] is Feasibility.VIOLATED


def test_what_underflow_hides_of_a_cost_counts():
    hidden = Underflow(rewards=np.zeros(2), costs=np.array([0.0, 0.25]))
    fits, excess = judged(pair((0.5, 0.625)), underflow=lambda: hidden)
    assert fits is Feasibility.TO_ROUNDING
    assert excess == pytest.approx([0.0, 0.125], abs=1e-12)


def test_a_cost_that_is_no_number_exceeds_its_threshold_without_end():
    assert judged(pair((0.5, 1.0)), costs=np.array([0.25, np.nan])) == (Feasibility.VIOLATED, [0.0, np.inf])


def test_what_rationals_say_decides_where_rounding_does_not():
    rounding = np.array([0.0, 0.5])
    for most, found in ((Fraction(1, 2), Feasibility.PROVEN), (Fraction(2, 3), Feasibility.TO_ROUNDING)):
        exact = [(Fraction(0), Fraction(1, 4)), (Fraction(0), most)]
        said, excess = judged(pair((0.5, 0.5)), cost_rounding=rounding, exact_costs=lambda _, exact=exact: exact)
        assert said is found
        assert excess == pytest.approx([0.0, float(most) - 0.5], abs=1e-15)
    assert judged(pair((0.5, 0.5)), cost_rounding=rounding, exact_costs=lambda _: None)[0] is Feasibility.TO_ROUNDING


def test_rationals_of_some_constraints_are_no_proof_of_the_others():
    with pytest.raises(ValueError, match="zip"):
        judged(pair((0.5, 0.5)), cost_rounding=np.ones(2), exact_costs=lambda _: [(Fraction(0), Fraction(0))])


def test_a_hard_budget_is_kept_without_rounding():
    """All of the first budget is spent: rounding leaves open whether it is kept, and what is possible decides."""
    by_support = [[np.inf, 0.0], [0.0, 0.0]]
    forbidden = pair().at(IDLE).forbidden
    rounding = np.array([1e-12, 0.0])
    assert judged(pair(), by_support, cost_rounding=rounding, forbidden=forbidden) == (Feasibility.PROVEN, [0.0, 0.0])
    for answers, prices in (({}, by_support), ({"forbidden": forbidden}, None)):
        said, excess = judged(pair(), prices, cost_rounding=rounding, **answers)
        assert said is Feasibility.TO_ROUNDING
        assert excess == pytest.approx([1e-12, 0.0], rel=1e-3)


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


def test_a_hard_budget_is_broken_by_what_is_too_little_for_a_float():
    game = pair()
    policy = IDLE.replace(0, [[[1.0, 5e-324]]])
    answers = {"forbidden": game.at(policy).forbidden, "costs": np.array([0.25, 0.5]), "cost_rounding": np.zeros(2)}
    assert judged(game, [[np.inf, 0.0], [0.0, 0.0]], policy, **answers) == (Feasibility.VIOLATED, [5e-324, 0.0])


# --- Parts ------------------------------------------------------------------------------------------------------------


def test_what_is_above_zero_is_rounded_up_and_what_is_not_is_zero():
    largest = np.finfo(float).max
    given = [-1.0, 0.0, 0.25, np.nan, np.inf, -np.inf, Fraction(1, 3), Fraction(10) ** 400, Fraction(-1, 3), 5e-324]
    with np.errstate(over="ignore"):
        found, beyond = certificates._rounded_up(given), certificates._rounded_up([Fraction(largest)])
    assert found[:3].tolist() == [0.0, 0.0, np.nextafter(0.25, 1)]
    assert found[3:6].tolist() == [np.inf, np.inf, 0.0]
    assert Fraction(float(found[6])) > Fraction(1, 3)
    assert float(found[6]) == np.nextafter(1 / 3, 1)
    assert found[7:].tolist() == [np.inf, 0.0, 1e-323]
    assert beyond[0] == np.inf


def test_whether_a_hard_budget_is_kept_is_asked_of_the_first_who_knows():
    """Agents whose proof is by support: the first of them that can tell decides; nobody else is asked."""
    asked = []

    def position(answers):
        def forbidden(agent, constraint):
            asked.append((agent, constraint))
            taken = answers[agent]
            return None if taken is None else SimpleNamespace(taken_by=lambda table, initial: taken)

        cmdp = SimpleNamespace(initial="initial")
        return SimpleNamespace(forbidden=forbidden, policy=["table"] * 3, induced_cmdp=lambda _: cmdp)

    assert certificates._kept_exactly(position([None, False, True]), 1, [0, 1, 2]) is True
    assert asked == [(0, 1), (1, 1)]
    assert certificates._kept_exactly(position([None, False, True]), 0, [2]) is False
    assert certificates._kept_exactly(position([None, None, None]), 0, [0, 1, 2]) is None
    assert certificates._kept_exactly(position([True]), 0, []) is None
    assert certificates._kept_exactly(SimpleNamespace(), 0, [0]) is None


def test_a_budget_counts_as_hard_where_every_one_of_them_is():
    position = pair().at(IDLE)
    both = restriction(position, 1, np.array([True, True]))
    assert both is None  # the second one has room
    first = restriction(position, 1, np.array([True, False]))
    assert first.cmdp.num_constraints == 1
    assert dual_bound(first.cmdp, np.zeros(1)) == 0.0


def test_a_gain_that_is_no_number_is_infinite_and_one_below_zero_is_none():
    real = pair().at(IDLE)

    def judged_at(values, bounds):
        answers = Judgements(np.array(values), np.array(bounds), np.array([0.5, 0.25]))
        game = altered(pair(), judgements=lambda *_: answers, neighbours=lambda _: range(2), forbidden=real.forbidden)
        return certify(game, IDLE)

    assert judged_at([1.0, 1.0], [0.0, 3.0]).gains.tolist() == [0.5, 2.25]
    assert judged_at([1.0, np.nan], [0.0, 3.0]).gains.tolist() == [0.5, np.inf]
    assert judged_at([1.0, np.nan], [0.0, 3.0]).epsilon == np.inf
    assert judged_at([np.inf, 1.0], [np.inf, 1.0]).gains.tolist() == [np.inf, 0.25]


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
