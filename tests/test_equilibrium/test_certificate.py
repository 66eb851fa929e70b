"""Certificates: right on known equilibria, loose but never wrong with bad multipliers, exact where asked."""

from fractions import Fraction

import numpy as np
import pytest

from cmpg.equilibrium.certificate import Feasibility, certify
from cmpg.equilibrium.infeasibility import prove_infeasible
from cmpg.errors import GameError, PolicyError
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


def test_exact_mode_needs_a_finite_horizon():
    game = JointGame(
        transition=np.ones((1, 1, 1, 1, 1)),
        rewards=np.ones((2, 1, 1, 1, 1)),
        costs=(),
        thresholds=(),
        initial=[1.0],
        discount=0.5,
    )
    assert certify(game, game.uniform_policy()).values == pytest.approx([2.0, 2.0])
    with pytest.raises(GameError, match="finite horizon"):
        certify(game, game.uniform_policy(), exact=True)


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
