"""What λ·c costs at least: floats against rationals, and all forms against the joint game."""

from fractions import Fraction

import numpy as np
import pytest

from cmpg.games import LocalAgent, LocalGame
from cmpg.games.claims import claim_of
from cmpg.games.local.to_joint import to_joint
from cmpg.proof.claim import ClaimError
from cmpg.proof.infeasible import InfeasibilityClaim, bounds, exact_bounds, proves_infeasible
from cmpg.scenarios import counter_example
from oracles.random_claims import draw_claim
from oracles.sweeping import build


def claim_about(game, multipliers, thresholds=None, prices=None):
    tables = claim_of(game, game.uniform_policy(), np.zeros((game.num_agents, len(game.thresholds)))).tables
    limits = np.asarray(game.thresholds if thresholds is None else thresholds, dtype=float)
    return InfeasibilityClaim(tables, game.horizon, limits, np.asarray(multipliers, dtype=float), prices)


def games(*forms):
    for seed in range(400):
        drawn = draw_claim(seed)
        if drawn.form in forms and not drawn.large and drawn.arithmetic == "floats" and len(drawn.game["thresholds"]):
            yield seed, build(drawn.game)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_form_is_bounded_by_its_joint_game_and_floats_by_rationals():
    seen = {"local": 0, "counting": 0, "joint": 0}
    tight = 0
    for seed, game in games("local", "counting", "joint"):
        form, rng = type(game).__name__.removesuffix("Game").lower(), np.random.default_rng(seed)
        if seen[form] == 12:
            continue
        seen[form] += 1
        multipliers = rng.exponential(size=len(game.thresholds))
        prices = None
        if form == "local":
            prices = rng.normal(size=(game.horizon, game.num_resources))
        claim = claim_about(game, multipliers, prices=prices)
        least, limit = exact_bounds(claim)
        low, high = bounds(claim)
        assert not np.isfinite(low) or Fraction(low) <= least
        assert not np.isfinite(high) or Fraction(high) >= limit
        if form != "joint":
            together = exact_bounds(claim_about(to_joint(game) if form == "local" else game.to_joint(), multipliers))[0]
            assert least <= together if form == "local" else least == together
            tight += least == together
    assert set(seen.values()) == {12}
    assert tight >= 12


@pytest.mark.parametrize("threshold", [-0.5, 0.0])
def test_the_counter_example_is_infeasible_below_zero(threshold):
    assert proves_infeasible(claim_about(counter_example(threshold=threshold), [1.0])) == (threshold < 0)


def crowded(threshold):
    """Two agents who both use the one resource, of which m users cost m²."""
    agent = LocalAgent(initial=[1.0], transition=[[[[1.0]]]], reward=[[[0.0]]], uses=[[[[1.0]]]])
    return LocalGame(
        agents=(agent, agent), delay=[[[0, 0, 0]]], load_costs=[[[[0, 1, 4]]]], thresholds=[threshold], horizon=1
    )


@pytest.mark.parametrize(("price", "least"), [(0.0, 0), (1.0, 2), (3.0, 4), (5.0, 4), (8.0, 4)])
def test_prices_bound_what_agents_who_meet_cost(price, least):
    claim = claim_about(crowded(3.5), [1.0], prices=np.array([[price]]))
    assert exact_bounds(claim) == (least, Fraction(7, 2))
    assert proves_infeasible(claim) == (least > 3.5)
    assert not proves_infeasible(claim_about(crowded(4.0), [1.0], prices=np.array([[price]])))


def test_claims_that_are_not_whole_are_refused():
    game = counter_example()
    for change in ({"multipliers": [-1.0]}, {"multipliers": [1.0, 1.0]}, {"multipliers": [np.inf]}):
        with pytest.raises(ClaimError, match="multipliers"):
            claim_about(game, change["multipliers"])
    with pytest.raises(ClaimError, match="prices are for local games"):
        claim_about(game, [1.0], prices=np.zeros((1, 1)))
