"""Claims for every model in a box: random models and corners of the box never exceed what is proved."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import cmpg
from cmpg import JointGame, certify, solve
from cmpg.equilibrium.best_responses import proposed_multipliers
from cmpg.errors import PolicyError, UnsupportedError
from cmpg.proof.robust import greatest_mean, least_mean
from cmpg.scenarios import charging, counter_example
from command_line import cmpg as run


def drawn_game(seed, threshold=5.0):
    rng = np.random.default_rng((51, seed))
    table = (2, 3, 2, 2)
    return JointGame(
        transition=rng.dirichlet(np.ones(3), size=table),
        rewards=rng.normal(size=(2, *table)),
        costs=rng.random((1, *table)),
        thresholds=[threshold],
        initial=rng.dirichlet(np.ones(3)),
        horizon=2,
    )


def models_in_the_box(game, error, rng, count):
    """Rows pushed towards random corners, as far as the box and the simplex allow."""
    for _ in range(count):
        target = rng.dirichlet(np.full(3, 0.2), size=game.transition.shape[:-1])
        shares = np.linspace(1, 0, 201)
        share = next(t for t in shares if np.abs(t * (target - game.transition)).max() <= error)
        yield game.with_transition(game.transition + share * (target - game.transition))


@pytest.mark.parametrize("seed", range(4))
def test_no_model_in_the_box_has_a_greater_gain_or_cost_or_a_smaller_value(seed):
    rng, error = np.random.default_rng(seed), 0.05
    game = drawn_game(seed)
    policy = game.random_policy(rng=rng)
    prices = proposed_multipliers(game, policy)
    judged = certify(game, policy, prices, model_error=error)
    plain = certify(game, policy, prices)
    assert (judged.gains >= plain.gains).all()
    assert judged.model_error == error
    for model in models_in_the_box(game, error, rng, 20):
        there = certify(model, policy, prices)
        assert (there.gains <= judged.gains + 1e-12).all()
        assert (there.costs <= judged.costs + 1e-12).all()
        assert (there.values >= judged.values - 1e-12).all()


@pytest.mark.parametrize(("seed", "threshold"), [(0, 5.0), (2, 0.9)])
def test_worst_cases_are_raised_by_no_deviation_and_by_the_best_one_where_no_threshold_binds(seed, threshold):
    """All 64 deterministic deviations of each agent, each in the model that is the worst for it."""
    rng, error = np.random.default_rng(seed), 0.05
    game = drawn_game(seed, threshold)
    policy = game.random_policy(rng=rng)
    judged = certify(game, policy, proposed_multipliers(game, policy), model_error=error)
    assert (judged.worst_case_gains <= judged.gains).all()
    for agent in range(2):
        raised = []
        for actions in product(range(2), repeat=6):
            moved = policy.replace(agent, np.eye(2)[np.reshape(actions, (2, 3))])
            there = certify(game, moved, np.zeros((2, 1)), model_error=error)
            if there.costs[0] <= threshold:  # in every model
                raised.append(there.values[agent] - judged.values[agent])
        assert max(raised, default=-np.inf) <= judged.worst_case_gains[agent] + 1e-12
        if threshold == 5.0:
            assert max(raised) == pytest.approx(judged.worst_case_gains[agent], abs=1e-10)


def test_without_an_error_it_is_the_plain_claim():
    game = drawn_game(7)
    policy = game.random_policy(rng=np.random.default_rng(7))
    judged, plain = certify(game, policy, model_error=1e-300), certify(game, policy)
    assert judged.gains == pytest.approx(plain.gains, abs=1e-11)
    assert judged.costs == pytest.approx(plain.costs, abs=1e-11)
    assert (judged.gains >= plain.gains - 1e-13).all()


def test_a_box_is_filled_from_the_greatest_value_on():
    rng = np.random.default_rng(1)
    from scipy.optimize import linprog

    for _ in range(20):
        row, values, error = rng.dirichlet(np.ones(4)), rng.normal(size=4), float(rng.uniform(0, 0.4))
        bounds = [(max(p - error, 0), min(p + error, 1)) for p in row]
        best = -linprog(-values, A_eq=[[1] * 4], b_eq=[1], bounds=bounds).fun
        found = greatest_mean(row[None], error, values)
        assert found.mid[0] == pytest.approx(best, abs=1e-9)
        assert found.upper[0] >= best - 1e-9
        assert least_mean(row[None], error, values).mid[0] == pytest.approx(
            -greatest_mean(row[None], error, -values).mid[0]
        )


def test_a_budget_that_some_model_breaks_is_not_kept():
    game = drawn_game(3)
    policy = game.random_policy(rng=np.random.default_rng(3))
    tight = game.with_thresholds(game.at(policy).costs + 1e-6)
    assert certify(tight, policy).feasible
    worst = certify(tight, policy, model_error=0.1)
    assert not worst.feasible
    assert "in some model of the box the policy violates" in str(worst)
    kept = certify(game, policy, model_error=0.1)
    assert "in every model of the box the policy meets" in str(kept)
    assert "worst cases alone" in str(kept)


def test_what_has_no_such_claim_is_refused():
    game = charging()
    with pytest.raises(UnsupportedError, match="joint actions"):
        certify(game, solve(game).policy, model_error=0.1)
    small = counter_example()
    with pytest.raises(PolicyError, match="model_error is 2; a number from 0 to 1"):
        certify(small, small.uniform_policy(), model_error=2)
    with pytest.raises(PolicyError, match="floats"):
        certify(small, small.uniform_policy(), model_error=0.1, exact=True)
    with pytest.raises(PolicyError, match="devices"):
        certify(small, cmpg.Rota([small.uniform_policy()], [1.0]), model_error=0.1)


def test_the_command_takes_a_model_error(tmp_path):
    game = drawn_game(5)
    result = solve(game)
    result.save(tmp_path / "run")
    words = ("certify", tmp_path / "run" / "game.npz", tmp_path / "run" / "policy.npz", "--model-error", "0.01")
    assert run(*words, "--epsilon", "1").code == 0
    assert "within 0.01" in run(*words, "--epsilon", "1").out
    assert run(*words).code == 1


def test_costs_of_the_least_float_are_not_rounded_away():
    """Two steps, where the box moves most of the mass to the state that costs: against the mean in fractions."""
    for chance in np.linspace(0.05, 0.65, 13):
        transition = np.zeros((1, 2, 1, 2))
        transition[0, :, 0] = [1 - chance, chance]
        worst = Fraction(chance) / (Fraction(chance) + Fraction(1 - chance)) + Fraction(0.3)
        cost = 3 * worst * Fraction(5e-324)
        game = JointGame(
            transition=transition,
            rewards=np.zeros((1, 1, 2, 1)),
            costs=[[[[0.0], [1.5e-323]]]],
            thresholds=[float(cost)],
            initial=[1.0, 0.0],
            horizon=2,
        )
        certificate = certify(game, game.uniform_policy(), [[0.0]], model_error=0.3)
        assert cost <= Fraction(float(cost)) or not certificate.feasible
