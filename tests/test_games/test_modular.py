"""The modular test: its loop sum against rational arithmetic, its reading of numbers, its primes."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from cmpg.games.potential import modular
from cmpg.games.potential.check import FourCycle, Verdict, check_potential, recheck
from cmpg.games.potential.modular import loop_test, simplest_rational
from cmpg.games.potential.structure import READING_ERROR
from cmpg.scenarios import congestion_game, congestion_game_exogenous, counter_example
from strategies import in_fractions, samples

SMALL = {"kinds": ("any",), "rough": False, "max_agents": 3, "max_states": 4, "max_actions": 3, "max_horizon": 3}


def rng(seed=0):
    return np.random.default_rng(seed)


def plain_value(game, tables, agent):
    """Return V_i by loops; the rows of the tables need not be probabilities."""
    to_go = [Fraction(0)] * game.num_states
    for h in reversed(range(game.horizon)):
        reward = game.rewards[agent][0 if game.rewards.shape[1] == 1 else h]
        move = game.transition[0 if len(game.transition) == 1 else h]
        here = [Fraction(0)] * game.num_states
        for s, *joint in product(range(game.num_states), *map(range, game.num_actions)):
            weight = prod((tables[i][h, s, a] for i, a in enumerate(joint)), start=Fraction(1))
            here[s] += weight * (reward[s, *joint] + sum(p * v for p, v in zip(move[s, *joint], to_go, strict=True)))
        to_go = here
    return sum((mass * value for mass, value in zip(game.initial, to_go, strict=True)), Fraction(0))


def plain_loop_sum(game, old, new):
    """Return the movers' gains around the loop in which all move to new policies in turn, and back in turn."""
    playing, total = list(old), Fraction(0)
    for tables in (new, old):
        for agent in range(game.num_agents):
            before = plain_value(game, playing, agent)
            playing[agent] = tables[agent]
            total += plain_value(game, playing, agent) - before
    return total


def as_rationals(residues):
    """Read residues as integers; the last of each row is what the others leave to one."""
    exact = np.array([Fraction(int(each)) for each in residues.ravel()], dtype=object).reshape(residues.shape)
    exact[..., -1] = 1 - exact[..., :-1].sum(axis=-1)
    return exact


@settings(deadline=None, max_examples=30)
@given(
    samples(kinds=("any",), rough=False, max_agents=3, max_states=4, max_actions=3, max_horizon=3),
    st.integers(0, 2**32 - 1),
)
def test_the_loop_sum_modulo_a_prime_is_the_loop_sum(sample, seed):
    prime, random = 2**31 - 1, rng(seed)
    old, new = ([modular._random_rows(shape, prime, random) for shape in sample.game.policy_shapes] for _ in range(2))
    assert all((rows.sum(axis=-1) % prime == 1).all() for rows in (*old, *new))
    expected = plain_loop_sum(in_fractions(sample.game), *(list(map(as_rationals, tables)) for tables in (old, new)))
    computed = modular._loop_sum(modular._read(sample.game), prime, rng(seed))
    assert computed == expected.numerator * pow(expected.denominator, -1, prime) % prime


def test_the_loop_sum_of_two_agents_is_their_four_cycle():
    game, random = congestion_game(num_agents=2), rng(4)
    old, new = (game.random_policy(rng=random).exact() for _ in range(2))
    cycle = FourCycle((0, 1), old, new.tables, residual=0.0, rounding=0.0)
    assert plain_loop_sum(in_fractions(game), old, new) == recheck(game.exact(), cycle) != 0


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


def test_primes_are_primes():
    found = [odd for odd in range(11, 5000, 2) if modular._is_prime(odd)]
    assert found == [odd for odd in range(11, 5000, 2) if all(odd % d for d in range(3, int(odd**0.5) + 1, 2))]
    assert modular._is_prime(2**31 - 1)
    assert not modular._is_prime(2**31 - 3)
    assert not modular._is_prime(46337 * 46327)
