"""Algorithm 4 to the letter: DOPE's interval and bonuses, T_0, T, M, and the selection."""

import numpy as np
import pytest
from small_cmdps import alone, random_cmdp

from cmpg.cmdp.box import optimistic_response
from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.errors import CMPGError
from cmpg.paper.algorithm_4 import Algorithm4, dope_constants, extended_problem
from oracles.extended_lp import extended_linear_program

H, S, A = 2, 2, 2
MARGIN = 1.2
CAREFUL = np.zeros((H, S, A))
CAREFUL[..., 0] = 1.0


def bold_or_careful(**changes):
    tables = {
        "transition": np.array([[[[1.0, 0.0], [0.1, 0.9]]] * 2]).reshape(1, S, A, S),
        "reward": [[[0.0, 0.2], [0.2, 1.0]]],
        "costs": [[[[0.0, 0.5], [0.3, 1.0]]]],
        "thresholds": [MARGIN],
        "initial": [1.0, 0.0],
        "horizon": H,
    }
    return CMDP(**(tables | changes))


def test_the_numbers_of_episodes_are_the_papers():
    found = dope_constants(alone(bold_or_careful()), safe_cost=0.0, epsilon=0.5, delta=0.1)
    regret = S * H**3 * np.sqrt(A) / MARGIN
    assert found.iterations == np.ceil(4 * regret**2 / 0.5**2)
    assert found.first_phase == np.ceil(S**2 * A * H**4 / MARGIN**2)
    assert found.episodes == np.ceil(16 * H**2 / 0.5**2 * np.log(2 * regret / (0.5 * 0.1)))


def test_interval_and_bonuses_are_dopes():
    problem = alone(bold_or_careful())
    samples = problem.roll_out(np.full((H, S, A), 0.5), 4000)
    box = extended_problem(problem, samples, margin=MARGIN, rounds=9000, delta=0.1)
    counts = samples.transitions[0]
    trials = counts.sum(axis=-1, keepdims=True)
    frequency = counts / np.maximum(trials, 1)
    # One step leads anywhere, so there are S²A entries in all.
    log_term = np.log(2 * S**2 * A * 9000 / 0.1)
    beta = np.sqrt(4 * frequency * (1 - frequency) * log_term / np.maximum(trials, 1)) + 14 * log_term / (
        3 * np.maximum(trials, 1)
    )
    beta = np.where(trials > 0, beta, 1.0)
    visited = trials[..., 0] > 0
    assert visited[0].all()
    assert not visited[1].any()  # everybody starts in state 0
    assert box.upper[0][visited] == pytest.approx(np.minimum(frequency + beta, 1)[visited])
    assert box.lower[0][visited] == pytest.approx(np.maximum(frequency - beta, 0)[visited])
    assert np.all(box.upper[0][~visited] == 1.0)
    widths = np.maximum(box.upper - box.nominal.transition, box.nominal.transition - box.lower).sum(axis=-1)
    reward, costs = problem.payoffs
    assert box.nominal.costs[0] == pytest.approx(costs[0] + H * widths)
    assert box.nominal.reward == pytest.approx(reward + H**2 * widths / MARGIN)
    assert np.all(widths[-1] == 0)  # the last step leads nowhere


def test_bonuses_grow_with_the_horizon_and_its_square():
    problem = alone(random_cmdp(0, horizon=3))
    samples = problem.roll_out(np.full((3, 4, 3), 1 / 3), 500)
    box = extended_problem(problem, samples, margin=0.5, rounds=600, delta=0.1)
    widths = np.maximum(box.upper - box.nominal.transition, box.nominal.transition - box.lower).sum(axis=-1)
    reward, costs = problem.payoffs
    assert box.nominal.costs[0] == pytest.approx(costs[0] + 3 * widths)
    assert box.nominal.reward == pytest.approx(reward + 9 * widths / 0.5)


def test_what_is_played_solves_the_extended_problem():
    problem = alone(bold_or_careful())
    samples = problem.roll_out(np.full((H, S, A), 0.5), 20_000)
    box = extended_problem(problem, samples, margin=MARGIN, rounds=30_000, delta=0.1)
    assert optimistic_response(box).value == pytest.approx(extended_linear_program(box).value, abs=1e-7)


def test_every_round_is_played_and_every_policy_is_measured():
    cmdp = bold_or_careful()
    problem = alone(cmdp)
    run = Algorithm4(CAREFUL, 0.0)(problem, epsilon=2.0, delta=0.1)
    rounds, first, episodes = int(run.constants.iterations), int(run.constants.first_phase), run.constants.episodes
    assert len(run.policies) == len(run.means) == rounds
    assert problem.simulator.ledger.total == (first + rounds + rounds * episodes) * H
    assert 0 < run.safe_rounds < rounds
    assert np.array_equal(run.policies[0], CAREFUL)
    judged = [evaluate(cmdp, policy) for policy in run.policies]
    assert max(each.costs[0] for each in judged) <= MARGIN
    assert run.policy is run.policies[int(run.means.argmax())]
    values = np.array([each.value for each in judged])
    assert np.abs(run.means - values).max() <= 2.0 / 4
    assert values[-1] > values[0]
    assert Exact()(cmdp).value - evaluate(cmdp, run.policy).value <= 2.0


def test_it_is_for_one_constraint_and_unit_payoffs():
    with pytest.raises(CMPGError, match="one constraint; there are 2"):
        Algorithm4(CAREFUL, 0.0)(alone(random_cmdp(0, constraints=2)), epsilon=1.0, delta=0.1)
    rich = alone(bold_or_careful(reward=[[[0.0, 0.2], [0.2, 3.0]]]))
    with pytest.raises(CMPGError, match=r"rewards are between 0 and 3; Algorithm 4 wants \[0, 1\]"):
        Algorithm4(CAREFUL, 0.0)(rich, epsilon=1.0, delta=0.1)
    with pytest.raises(CMPGError, match="a positive one is needed"):
        Algorithm4(CAREFUL, 1.2)(alone(bold_or_careful()), epsilon=1.0, delta=0.1)
