"""The modular test: against loop sums in rational arithmetic; how it reads numbers."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from cmpg.games.potential.check import FourCycle, Verdict, check_potential, recheck
from cmpg.games.potential.modular import loop_test, simplest_rational
from cmpg.games.potential.structure import READING_ERROR
from cmpg.scenarios import congestion_game, congestion_game_exogenous, counter_example
from oracles.judge import judge
from strategies import plain, samples

SMALL = {"rough": False, "max_agents": 3, "max_states": 3, "max_actions": 3, "max_horizon": 3, "max_constraints": 0}


def rng(seed=0):
    return np.random.default_rng(seed)


def loop_sum(game, old, new):
    """Return the movers' gains around the loop in which all move to new policies in turn, and back in turn, exactly."""
    judged, playing, total = judge(plain(game)), list(old), Fraction(0)
    for tables in (new, old):
        for agent in range(game.num_agents):
            before = judged.values(list(playing))[agent]
            playing[agent] = tables[agent]
            total += judged.values(list(playing))[agent] - before
    return total


@settings(deadline=None, max_examples=30)
@given(samples(**SMALL, kinds=("cooperative", "exogenous")), st.integers(0, 2**32 - 1))
def test_the_modular_test_passes_a_game_exactly_if_its_loop_sums_are_zero(sample, seed):
    """A potential game, and the same with one entry changed; at random policies, no loop sum is zero by chance."""
    game, random = sample.game, rng(seed)
    assert loop_test(game, rng=rng(seed), trials=1).passed
    rewards = game.rewards.copy()
    rewards[tuple(int(random.integers(length)) for length in rewards.shape)] += 0.125
    changed = replace(game, rewards=rewards)
    found = loop_sum(changed, *(game.random_policy(rng=random).tables for _ in range(2)))
    assert loop_test(changed, rng=rng(seed), trials=1).passed is (found == 0)


def test_one_row_of_transitions_that_an_action_moves_is_found():
    found = []
    for seed in range(6):
        random = rng(seed)
        game = congestion_game_exogenous(num_agents=2, horizon=3)
        transition = np.repeat(game.transition, 3, axis=0)
        place = (seed % 3, 0, *random.integers(4, size=2).tolist())
        transition[place] = 1 - transition[place]
        changed = replace(game, transition=transition)
        gains = loop_sum(changed, *(game.random_policy(rng=random).tables for _ in range(2)))
        found.append(bool(abs(gains) < 1e-9))  # decimals are floats here
        assert loop_test(changed, rng=random, trials=1).passed is found[-1]
    assert set(found) == {False, True}  # what follows the last step is nothing


def test_the_loop_sum_of_two_agents_is_their_four_cycle():
    game, random = congestion_game(num_agents=2), rng(4)
    old, new = (game.random_policy(rng=random).exact() for _ in range(2))
    cycle = FourCycle((0, 1), old, new.tables, residual=0.0, rounding=0.0)
    assert loop_sum(game, old.tables, new.tables) == recheck(game.exact(), cycle) != 0


def test_no_prime_that_is_drawn_divides_a_denominator():
    """Modulo a number that is no prime, there may be no 1/3, no 1/7 and no 1/11."""
    thirds = np.array([[1 / 3, 1 / 7], [1 / 11, 2 / 15]])
    game = replace(counter_example(), rewards=np.stack([thirds, thirds])[:, None, None])
    assert all(loop_test(game, rng=rng(seed), trials=5).passed for seed in range(20))


@pytest.mark.parametrize("num_agents", [3, 4])
def test_the_modular_test_reads_any_storage(num_agents):
    right, wrong = congestion_game_exogenous(num_agents=num_agents), congestion_game(num_agents=num_agents)
    for game, passes in ((right, True), (wrong, False)):
        sparse = replace(game, transition=[sp.csr_array(game.transition[0].reshape(-1, 2))])
        assert loop_test(game, rng=rng(), trials=2).passed is passes
        assert loop_test(sparse, rng=rng(), trials=2).passed is passes
    assert loop_test(right.exact(), rng=rng(), trials=1).passed


def test_decimals_are_read_as_decimals_and_fractions_as_they_are():
    one = np.array([[0.1, 0.3], [0.4, 0.7]])
    other = np.array([[0.2, 0.4], [0.6, 0.9]])  # more by 0.1 and 0.2, which only the first agent moves
    game = replace(counter_example(), rewards=np.stack([one, other])[:, None, None])
    assert loop_test(game, rng=rng(), trials=2).passed
    # As the dyadic numbers that they are stored as, the rewards have no potential.
    assert not loop_test(game.exact(), rng=rng(), trials=2).passed


def test_one_bad_pair_among_many_agents_is_found():
    game = congestion_game_exogenous(num_agents=5)
    rewards = game.rewards.copy()
    rewards[3, 0, 0, :, :, 2, :, 1] += np.eye(4)[1]  # agent 3 gains where it agrees with agents 2 and 4
    wrong = replace(game, rewards=rewards)
    assert not loop_test(wrong, rng=rng(), trials=1).passed
    check = check_potential(wrong, rng=rng())
    assert check.verdict is Verdict.REFUTED
    assert 3 in check.witness.agents


@pytest.mark.parametrize(
    ("value", "simplest"),
    [
        (0.1, Fraction(1, 10)),
        (1 / 3, Fraction(1, 3)),
        (-0.7, Fraction(-7, 10)),
        (0.1 * 0.7, Fraction(7, 100)),
        (2 / 7 - 1, Fraction(-5, 7)),
        (1e-9, Fraction(1, 10**9)),
        (123456.789, Fraction(123456789, 1000)),
        (2.0**60, Fraction(2**60)),
        (0.0, Fraction(0)),
        (Fraction(333, 1000), Fraction(333, 1000)),
    ],
)
def test_numbers_are_read_as_the_simplest_rational(value, simplest):
    assert simplest_rational(value) == simplest


@settings(max_examples=40)
@given(st.floats(1e-12, 1e12))
def test_the_simplest_rational_is_near_and_no_denominator_below_it_is(value):
    read = simplest_rational(value)
    slack = Fraction(value) * Fraction(READING_ERROR)
    assert abs(read - Fraction(value)) <= slack
    for denominator in range(1, min(read.denominator, 50)):
        nearest = Fraction(round(Fraction(value) * denominator), denominator)
        assert abs(nearest - Fraction(value)) > slack
