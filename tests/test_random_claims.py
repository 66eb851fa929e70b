"""Random claims before an exact judge; `python -m checks claims` judges a hundred thousand of them."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from unittest.mock import Mock

import numpy as np
import pytest

from cmpg.cmdp.evaluation import evaluate
from cmpg.equilibrium.certificate import screen
from cmpg.equilibrium.infeasibility import least_spending, prove_infeasible
from cmpg.errors import SolverError, TooLargeError
from oracles.claiming import ROADS, Truth, contradicted, examined, truth_of
from oracles.judge import NotHard, always_exceeded, judge
from oracles.long_claims import draw_long
from oracles.random_claims import FORMS, draw_claim, hidden
from oracles.random_games import shapes_of
from oracles.rare_claiming import RARE_ROADS, LongCase, examine_any, examined_rare
from oracles.rare_claims import RARE_FORMS, draw_rare
from oracles.rare_judges import DeviceJudge, RotaJudge, cvar
from oracles.sweeping import build

CLAIMS, CHUNK = 5000, 250
"""A minute and a half of a processor's time; `python -m checks claims` judges 100,000."""

SHARES = {road: share / 2 for road, share in ROADS.items()}
"""Every road is tried on half as many claims as there."""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers that overflow are part of the claims
@pytest.mark.parametrize("chunk", range(CLAIMS // CHUNK))
def test_nothing_that_is_said_of_a_random_claim_is_wrong(chunk):
    said = [examine_any(number, SHARES) for number in range(chunk * CHUNK, (chunk + 1) * CHUNK)]
    assert [each for each in said if each.wrong] == []


ONCE_WRONG = {
    **dict.fromkeys((236, 441, 1094, 2192, 2632), "a row [1, x] of another agent was taken for certain"),
    89: "at discount zero, what comes later was forbidden",
    **dict.fromkeys((267, 318, 1320, 1451, 3317), "under a mask, on Python 3.12 and later, underflow was not counted"),
    1355: "a rational probability below the least float was read as zero",
    6326: "one agent with more states than a block of averages",
    **dict.fromkeys(
        (2110, 2562, 3030, 3217), "a delay that falls with the load hung on 1 − p, whose error is absolute"
    ),
    **dict.fromkeys((40_062, 40_321), "half of the least float was paid, and rounded to nothing"),
    7354: "a solve lowered a threshold beyond every float",
    19_300: "an infeasibility proof ended in an exception where a discounted sum overflows",
    27_486: "an upper bound had no allowance for what is below the least float",
    31_853: "a price of 5e-324 was lost in a product",
    9830: "a residual that is a Fraction could not be written on Python 3.11",
    2139: "a potential was proved by a comparison with nan",
    4802: "a potential was refuted by the rounding of the least float",
    **dict.fromkeys((37, 2007, 4581), "a run folder with a bound that is not finite was not read back"),
    100_145: "near discount one, a state that a mask had lost was paid 1e18, and the bound of a gain lost its digits",
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_what_was_once_said_wrongly_of_a_claim_is_right(seed):
    costly = {"bounds": 27_486, "solve": 7354}  # seconds near discount one; on each, one claim was wrong
    roads = [road for road in ROADS if road not in ("process", "proposed") and costly.get(road, seed) == seed]
    assert examined(draw_claim(seed), roads).wrong == (), ONCE_WRONG[seed]


RARE_AND_ONCE_WRONG = {
    **dict.fromkeys((432, 1095), "in rationals, a discounted device whose floats overflow ended in an exception"),
    35: "a CVaR of sums beyond every float ended in an exception",
    265: "a CVaR was compared at one t of several that floats cannot tell apart: a false VIOLATED",
    14819: "what is cut from the law of a crowd's load was nothing, times a cost of the least float: PROVED, and false",
    380: "by how much a CVaR exceeds its limit was rounded three times, and came out too small",
    **dict.fromkeys((6602, 12_597), "a fraction of more digits than Python writes ended in an exception"),
    2470: "a price without bound was proposed for a crowd, and refused",
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", RARE_AND_ONCE_WRONG)
def test_what_was_once_said_wrongly_of_a_rarer_claim_is_right(seed):
    assert examined_rare(draw_rare(seed), RARE_ROADS).wrong == (), RARE_AND_ONCE_WRONG[seed]


def one_agent(costs, *, rewards, threshold, **length):
    """A game of one agent and two states: action 0 leads to state 1, which is for ever, and action 1 stays."""
    transition = np.zeros((1, 2, 2, 2))
    transition[0, 0, 0, 1] = transition[0, 0, 1, 0] = 1
    transition[0, 1, :, 1] = 1
    return {
        "form": "joint",
        "initial": np.array([1.0, 0.0]),
        "transition": transition,
        "rewards": np.array([[rewards]], dtype=float),
        "costs": np.array([[costs]], dtype=float),
        "thresholds": np.array([threshold]),
        **length,
    }


def test_the_judge_counts_nothing_that_comes_later_at_discount_zero():
    later = {"rewards": [[1, 0], [0, 0]], "threshold": 0.0}
    stays = [np.array([[[0.0, 1.0], [0.0, 1.0]]])]
    at_once = judge(one_agent([[0, 0], [1, 1]], **later, discount=0.0))
    assert at_once.gain(stays, 0, [np.inf]) == 1
    for_ever = judge(one_agent([[0, 0], [1, 1]], **later, discount=0.5))
    assert for_ever.gain(stays, 0, [np.inf]) == 0


def test_the_judge_refuses_a_proof_by_support_where_something_is_left():
    stays = [np.array([[[0.0, 1.0], [0.0, 1.0]]] * 2)]
    tables = {"rewards": [[1, 0], [0, 0]], "horizon": 2}
    with pytest.raises(NotHard, match="something is left"):
        judge(one_agent([[0, 0], [1, 1]], threshold=0.5, **tables)).gain(stays, 0, [np.inf])
    with pytest.raises(NotHard, match="nothing is feasible"):
        judge(one_agent([[1, 1], [1, 1]], threshold=0.5, **tables)).gain(stays, 0, [np.inf])


def test_no_deviation_that_the_judge_tries_gains_more_than_its_bound():
    tried = 0
    for seed in range(150):
        claim = draw_claim(seed)
        if claim.large or max(a ** (h * s) for h, s, a in shapes_of(claim.game)) > 32:
            continue
        judged, truth = judge(claim.game), truth_of(claim)
        for agent, bound in enumerate(truth.gains):
            gain = judged.best_gain(claim.policy, agent, claim.binds[agent])
            tried += gain is not None and bound is not None
            assert gain is None or bound is None or gain <= bound, seed
    assert tried > 60


@pytest.mark.parametrize("form", ["joint", "counting", "local"])
def test_a_game_hidden_among_many_states_is_judged_like_itself(form):
    seed = next(
        seed for seed in range(100) if draw_claim(seed).form == form and draw_claim(seed).arithmetic == "floats"
    )
    claim = draw_claim(seed)
    large = hidden(claim.game, np.random.default_rng(0))
    policy = []
    for own, (steps, states, actions) in zip(claim.policy, shapes_of(large), strict=True):
        table = np.broadcast_to(np.eye(actions)[0], (steps, states, actions)).copy()
        table[:, : own.shape[1]] = own
        policy.append(table)
    assert judge(large).costs(policy) == judge(claim.game).costs(claim.policy)
    assert judge(large).values(policy) == judge(claim.game).values(claim.policy)


def spread_out(drawn):
    """A crowd agent by agent, as the judge of local games takes it, with curves as tables over all loads."""
    game, groups = drawn.game, drawn.groups

    def table(index):
        values = [[value_at(game["curves"][c], load) for load in range(sum(groups.number) + 1)] for c in index.ravel()]
        return np.array(values, dtype=object).reshape(*index.shape, sum(groups.number) + 1)

    who = [g for g, size in enumerate(groups.number) for _ in range(size)]
    local = {
        "form": "local",
        "horizon": game["horizon"],
        "agents": [game["kinds"][groups.kind[g]] for g in who],
        "delay": table(game["delay"]),
        "load_cost": table(game["load_costs"]),
        "thresholds": game["thresholds"],
    }
    return judge(local), [groups.tables[g] for g in who], [drawn.multipliers[g].tolist() for g in who], who


def value_at(curve, load):
    (low, first), (high, last) = next(
        pair for pair in pairwise(zip(*(each.tolist() for each in curve), strict=True)) if load <= pair[1][0]
    )
    return Fraction(first) + (Fraction(last) - Fraction(first)) * Fraction(load - low, high - low)


def test_a_small_crowd_is_judged_like_its_agents_one_by_one():
    compared = 0
    for seed in range(100):
        drawn = draw_rare(seed)
        if drawn.form != "crowd" or drawn.forged or sum(drawn.groups.number) > 14:
            continue
        judged, policy, prices, who = spread_out(drawn)
        assert judged.costs(policy) == drawn.judged.costs(), seed
        assert judged.gains(policy, prices) == [drawn.judged.gains(drawn.multipliers)[g] for g in who], seed
        compared += 1
    assert compared >= 5


def test_a_device_that_draws_independently_is_judged_like_the_policy():
    claim = next(c for c in map(draw_claim, range(100)) if c.form == "joint" and len(c.policy) == 2 and len(c.weights))
    prices = np.where(np.isinf(claim.multipliers), 1.0, claim.multipliers)
    judged, (first, second) = judge(claim.game), (exact_rows(own) for own in claim.policy)
    law = first[:, :, :, None] * second[:, :, None, :]
    rota = RotaJudge(judged, [claim.policy, claim.policy], [0.25, 0.5])
    for i in (0, 1):
        gain = judged.gain(claim.policy, i, prices[i])
        assert rota.gain(i, prices[i]) == gain
        for coarse in (True, False):
            device = DeviceJudge(judged.process, law, coarse)
            assert device.costs() == rota.costs() == judged.costs(claim.policy)
            assert device.gain(i, prices[i]) == gain


def exact_rows(table):
    exact = np.array([Fraction(each) for each in table.ravel().tolist()], dtype=object).reshape(table.shape)
    return exact / exact.sum(axis=-1, keepdims=True)


def test_cvar_is_its_least_upper_bound():
    law = {Fraction(0): Fraction(1, 2), Fraction(3): Fraction(1, 4), Fraction(7): Fraction(1, 4)}
    for level in (Fraction(0), Fraction(1, 3), Fraction(3, 4), Fraction(9, 10)):
        bounds = [t + sum(p * max(x - t, 0) for x, p in law.items()) / (1 - level) for t in law]
        assert cvar(law, level) == min(bounds)


def test_rarer_claims_have_every_form_are_as_often_false_as_true_and_are_forged():
    drawn = [draw_rare(seed) for seed in range(100)]
    assert {each.form for each in drawn} == set(RARE_FORMS)
    assert sum(bool(getattr(each, "forged", "")) for each in drawn) >= 3
    crowds = [each for each in drawn if each.form == "crowd" and len(each.judged.thresholds)]
    met = [all(c <= limit for c, limit in zip(e.judged.costs(), e.judged.thresholds, strict=True)) for e in crowds]
    assert 0.25 < np.mean(met) < 0.75
    assert max(sum(each.groups.number) for each in crowds) > 10**9
    assert min(min(each.groups.number) for each in crowds) == 1


def test_a_forged_claim_that_is_accepted_is_noticed():
    drawn = next(each for each in map(draw_rare, range(1000)) if each.form == "rota" and each.forged)
    honest = next(each for each in map(draw_rare, range(1000)) if each.form == "rota" and not each.forged)
    assert examined_rare(drawn).wrong == ()
    said = examined_rare(replace(honest, forged="nothing at all")).wrong
    assert len(said) == 1
    assert "of what is no claim: nothing at all" in said[0]


def test_claims_have_every_form_and_the_numbers_that_hurt():
    claims = [draw_claim(seed) for seed in range(600)]
    assert {claim.form for claim in claims} == set(FORMS)
    rows = [row for claim in claims for own in claim.policy for row in own.reshape(-1, own.shape[-1])]
    nearly = [row for row in rows if row.dtype == float and row.max() == 1 and np.count_nonzero(row) > 1]
    assert len(nearly) > 100
    assert min(row[row > 0].min() for row in nearly) == 5e-324
    assert any(0 < entry < Fraction(5e-324) for row in rows if row.dtype == object for entry in row)
    assert sum(bool(np.isinf(claim.multipliers).any()) for claim in claims) > 100
    assert sum(not claim.binds.all() for claim in claims) > 50
    assert {claim.game.get("discount") for claim in claims} >= {0.0, 1 - 2.0**-30}


def test_a_false_statement_about_a_claim_is_noticed():
    truth = Truth([Fraction(1, 10**400)], [Fraction(1)], ())
    honest = {"feasibility": "VIOLATED", "excess": [5e-324], "gains": [1.0]}
    assert contradicted(truth, honest) == []
    assert contradicted(truth, honest | {"feasibility": "PROVEN"}) == ["PROVEN, and a threshold is exceeded by 2^-1329"]
    assert contradicted(truth, honest | {"excess": [0.0]}) == ["constraint 0 may be exceeded by 0, and is by 2^-1329"]
    assert contradicted(truth, honest | {"gains": [0.5]}) == ["agent 0 gains at most 0.5, and 1.0 by the bound"]
    met = Truth([Fraction(0)], [None], (0,))
    assert contradicted(met, honest | {"excess": [0.0], "gains": [None]}) == ["VIOLATED, and every threshold is met"]
    left = {"feasibility": "PROVEN", "excess": [0.0], "gains": [0.0]}
    assert contradicted(met, left) == [
        "agent 0 gains at most 0 by support, and something is left of that budget",
    ]


def overflowing():
    """A game that costs 1e300 at every step, for 10^9 steps."""
    rows = np.array([[0.0, 1e300], [1e300, 0.0]])
    return build(one_agent(rows, rewards=-rows, threshold=1.0, discount=1 - 2.0**-30))


@pytest.mark.parametrize("solved", ["nan", "error", "error without tables"])
def test_screening_answers_where_a_discounted_sum_overflows(solved, monkeypatch):
    game = overflowing()
    if solved != "nan":
        error = SolverError("no residual is small enough.")
        monkeypatch.setattr("cmpg.equilibrium.certificate._screened", Mock(side_effect=error))
    if solved == "error without tables":
        monkeypatch.setattr("cmpg.equilibrium.certificate.has_tables", lambda game: False)
    certificate = screen(game, game.uniform_policy(), [[1e10]])
    assert not certificate.feasible
    assert certificate.epsilon == np.inf
    assert str(certificate)


def test_a_discounted_sum_that_overflows_is_no_number():
    game = overflowing()
    with np.errstate(all="ignore"):
        found = evaluate(game.at(game.uniform_policy()).induced_cmdp(0), game.uniform_policy()[0])
    assert not np.isfinite(found.value)


def test_agents_who_use_nothing_pay_their_least_each_by_itself():
    """A second place, which costs nothing and which all use, makes the judge try all joint actions."""
    rng = np.random.default_rng(1)
    own = {"transition": np.ones((1, 1, 2, 1)), "reward": np.zeros((1, 1, 2)), "initial": np.ones(1)}
    alone = {
        "form": "local",
        "horizon": 1,
        "agents": [
            {**own, "uses": np.zeros((1, 1, 2, 1)), "cost": 1.0 * rng.integers(-5, 5, size=(2, 1, 1, 2))}
            for _ in range(4)
        ],
        "delay": np.zeros((1, 1, 5)),
        "load_cost": np.arange(10.0).reshape(2, 1, 1, 5),
        "thresholds": np.zeros(2),
    }
    placed = [
        {**each, "uses": np.stack([np.zeros((1, 1, 2)), np.ones((1, 1, 2))], axis=-1)} for each in alone["agents"]
    ]
    free = np.concatenate([alone["load_cost"], np.zeros((2, 1, 1, 5))], axis=2)
    together = {**alone, "agents": placed, "delay": np.zeros((1, 2, 5)), "load_cost": free}
    weights = [Fraction(1, 3), Fraction(2)]
    assert judge(alone).least_cost(weights) == judge(together).least_cost(weights)


def test_no_policy_of_a_local_game_costs_less_than_the_floor_and_some_cost_as_much():
    below = equal = 0
    for seed in range(400):
        claim = draw_claim(seed)
        if claim.form == "local" and not claim.large:
            pairs = math.prod(math.prod(np.asarray(each["reward"]).shape[1:]) for each in claim.game["agents"])
            if pairs <= 100:
                weights = np.ones(len(claim.weights))
                floor, least = claim.judged.cost_floor(weights), claim.judged.least_cost(weights)
                assert floor <= least
                below, equal = below + (floor < least), equal + (floor == least)
    assert min(below, equal) > 3


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_discounted_local_game_that_is_called_infeasible_is():
    """What may follow is bounded for any number of steps; where payoffs are huge, those for a small ε take seconds."""
    held = Counter()
    for seed in range(240):
        drawn = draw_long(seed)
        game = LongCase(drawn).game()
        short = game.steps_for(1e-6) <= 300
        try:
            proof = (prove_infeasible if short else by_a_hundred_steps)(game, drawn.weights)
        except TooLargeError:
            continue
        if proof.holds:
            assert always_exceeded(drawn.judged, drawn.weights), seed
            held[short] += 1
    assert held[True] > 10
    assert held[False] > 3


def by_a_hundred_steps(game, weights):
    return least_spending(game.relaxed(100), weights).proof
