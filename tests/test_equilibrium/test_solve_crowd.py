"""Crowds are solved by groups: whatever the search does, the certificate decides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cmpg
from cmpg.errors import GameError
from cmpg.games import CrowdGame, LoadCurve, LocalAgent
from cmpg.scenarios import charging


def test_drawn_cars_are_certified_as_a_crowd_and_agent_by_agent() -> None:
    game = charging(num_agents=500, seed=4)
    result = cmpg.solve(game, epsilon=1e-3)
    assert result.certified
    assert result.certificate.epsilon <= 1e-3
    assert 0.49 < result.certificate.costs[0] <= 0.5  # the budget is used up
    assert result.policy.number.sum() == 500
    spread = cmpg.certify(
        game.spread(), result.policy.spread(), np.repeat(result.multipliers, result.policy.number, axis=0)
    )
    assert spread.feasible
    assert spread.epsilon == pytest.approx(result.certificate.epsilon, rel=1e-3, abs=1e-9)
    assert spread.costs == pytest.approx(result.certificate.costs, abs=1e-11)


def test_what_a_plan_adds_to_the_variance_is_priced_so_that_the_default_epsilon_is_reached() -> None:
    result = cmpg.solve(charging(num_agents=20_000, seed=3))
    assert result.certified
    assert result.certificate.epsilon <= 1e-6


def toll_road(*, slope: float = 1.0, threshold: float = 2.0, private: bool = False) -> CrowdGame:
    """Two kinds choose between two roads; one of them bears 1,000 of 3,000."""
    uses = np.array([[[[1.0, 0.0], [0.0, 1.0]]]])
    kinds = [
        LocalAgent(
            transition=np.ones((1, 1, 2, 1)),
            reward=[[[worth, 0.0]]],
            uses=uses,
            initial=[1],
            costs=[[[[0.0005, 0.0]]]] if private else None,
        )
        for worth in (0.3, 0.6)
    ]
    return CrowdGame(
        kinds=kinds,
        numbers=[1_000, 2_000],
        curves=[
            LoadCurve([0, 3_000], [0.0, slope]),
            LoadCurve([0, 1_000, 3_000], [0.0, 0.0, 2_000.0]),
            LoadCurve([0, 3_000], [0.0, 0.0]),
        ],
        delay=[[0, 0]],
        load_costs=[[[1, 2]]],
        thresholds=[threshold],
        horizon=1,
    )


def test_a_threshold_that_does_not_bind_has_no_price() -> None:
    result = cmpg.solve(toll_road(threshold=3_000.0), epsilon=1e-3)
    assert result.certified
    assert not result.multipliers.any()


def test_small_crowds_are_solved_agent_by_agent() -> None:
    game = charging(num_agents=60, seed=5)
    result = cmpg.solve(game, epsilon=1e-4)
    assert result.certified
    assert result.policy.number.sum() == 60
    assert "agent by agent" in result.phases


def test_what_the_search_cannot_do_is_said() -> None:
    with pytest.raises(GameError, match="delay that falls"):
        cmpg.solve(toll_road(slope=-1.0))
    with pytest.raises(GameError, match="positive thresholds"):
        cmpg.solve(toll_road(threshold=0.0))
    with pytest.raises(GameError, match="names curves"):
        replace(toll_road(), load_costs=np.array([[[3, 2]]]))
    curves = (*toll_road().curves, LoadCurve([0, 10, 3_000], [0.0, 5.0, 6.0]))
    with pytest.raises(GameError, match="not convex"):
        cmpg.solve(replace(toll_road(), curves=curves, load_costs=np.array([[[3, 2]]])))
    with pytest.raises(GameError, match="leave start and restarts out"):
        cmpg.solve(toll_road(), restarts=cmpg.Restarts(3), rng=0)


HUGE = LoadCurve([0, 1_000, 2_000], [0.0, 0.0, 1e300])
FLAT = LoadCurve([0, 2_000], [0.0, 0.0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("worth", "uses", "cost", "threshold"),
    [(1.0, 0.0, FLAT, 5.0), (1e300, 1.0, HUGE, 1e10), (1e12, 1.0, HUGE, 1.0)],
    ids=["no cell", "gains beyond every float", "prices beyond every float"],
)
def test_a_search_that_overflows_or_has_no_cell_ends_in_a_status(
    worth: float, uses: float, cost: LoadCurve, threshold: float
) -> None:
    kind = LocalAgent(
        transition=np.ones((1, 1, 2, 1)),
        reward=[[[0.0, worth]]],
        uses=[[[[0.0], [uses]]]],
        initial=[1],
        costs=[[[[0.0, 1.0]]]],
    )
    delay = LoadCurve([0, 2_000], [0.0, 1e10 if worth == 1e12 else 0.0])
    game = CrowdGame(
        kinds=[kind],
        numbers=[2_000],
        curves=[delay, cost],
        delay=[[0]],
        load_costs=[[[1]]],
        thresholds=[threshold],
        horizon=1,
    )
    assert cmpg.solve(game, epsilon=1e-3).status.name in ("LIMIT", "FEASIBILITY_UNKNOWN", "CERTIFIED")
