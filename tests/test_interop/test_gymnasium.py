"""CMDPs as Gymnasium environments, and Gymnasium's tables as CMDPs."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.errors import GameError, SimulatorError
from cmpg.interop import from_toy_text, to_gymnasium_env
from cmpg.scenarios import grid_world, spectrum


def induced(game):
    return game.at(game.uniform_policy()).induced_cmdp(0)


CMDPS = {
    "dense": lambda: induced(spectrum()),
    "sparse": lambda: grid_world(horizon=4).joint_cmdp(),
    "exact": lambda: induced(spectrum().exact()),
    "discounted": lambda: induced(replace(spectrum(), horizon=None, discount=0.6)),
}
each_kind = pytest.mark.parametrize("build", CMDPS.values(), ids=CMDPS)
CLIFF = next(name for name in ("CliffWalking-v1", "CliffWalking-v0") if name in gymnasium.registry)


@each_kind
def test_gymnasiums_own_check_passes_without_a_warning(build):
    check_env(to_gymnasium_env(build()), skip_render_check=True)


@each_kind
def test_episodes_have_the_value_and_the_costs_of_the_cmdp(build):
    cmdp = build()
    rng = np.random.default_rng(0)
    table = rng.dirichlet(
        np.ones(cmdp.num_actions), size=(1 if cmdp.horizon is None else cmdp.horizon, cmdp.num_states)
    )
    env, got, paid = to_gymnasium_env(cmdp), [], []
    for seed in range(400):
        (h, s), info = env.reset(seed=seed)
        value, cost, over = 0.0, 0.0, False
        while not over:
            (h, s), reward, terminated, truncated, info = env.step(int(rng.choice(cmdp.num_actions, p=table[h, s])))
            value, cost, over = value + reward, cost + info["cost"], terminated or truncated
        got.append(value)
        paid.append(cost)
    truth = evaluate(cmdp, table)
    for samples, exact in ((got, truth.value), (paid, truth.costs.sum())):
        assert abs(np.mean(samples) - float(exact)) <= 4.5 * np.std(samples) / 20 + 1e-9
    assert info["cost_limit"] == pytest.approx(float(cmdp.thresholds.sum()))


def test_a_bad_action_and_a_step_out_of_turn_are_refused():
    env = to_gymnasium_env(CMDPS["dense"]())
    with pytest.raises(SimulatorError, match="call reset first"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(SimulatorError, match="the action is -1; a number from 0 to 2 is required"):
        env.step(-1)


@pytest.mark.parametrize(
    ("name", "options", "horizon", "value"),
    [
        ("FrozenLake-v1", {"is_slippery": False}, 6, 1.0),  # six moves lead to the goal
        ("FrozenLake-v1", {"is_slippery": False}, 5, 0.0),
        (CLIFF, {}, 13, -13.0),  # up, eleven to the right, down
        (CLIFF, {}, 40, -13.0),
    ],
)
def test_tables_of_toy_text_become_a_cmdp(name, options, horizon, value):
    cmdp = from_toy_text(gymnasium.make(name, **options), horizon=horizon)
    assert Exact()(cmdp).value == pytest.approx(value)


def test_a_slippery_lake_agrees_with_value_iteration_and_with_episodes():
    env = gymnasium.make("FrozenLake-v1", is_slippery=True)
    cmdp = from_toy_text(env, discount=0.9)
    values = np.zeros(16)
    for _ in range(2000):
        values = np.array(
            [
                max(
                    sum(p * (r + 0.9 * (not over) * values[t]) for p, t, r, over in env.unwrapped.P[s][a])
                    for a in range(4)
                )
                for s in range(16)
            ]
        )
    assert Exact()(cmdp).value == pytest.approx(values[0], abs=1e-9)


def test_costs_of_transitions_are_constraints():
    lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
    near_a_hole = {1, 3, 4, 6, 8, 9, 10, 13}  # cells beside 5, 7, 11 or 12
    free = from_toy_text(lake, horizon=12)
    careful = from_toy_text(
        lake, horizon=12, costs=lambda s, a, ahead, reward: [float(ahead in near_a_hole)], thresholds=[1.0]
    )
    assert isinstance(careful, CMDP)
    best = Exact()(careful)
    assert best.value < Exact()(free).value - 1e-6
    assert best.costs[0] <= 1.0 + 1e-9
    with pytest.raises(GameError, match="costs returned 1 numbers; there are 0"):
        from_toy_text(lake, horizon=2, costs=lambda *_: [1.0])


def test_an_environment_without_tables_is_refused():
    with pytest.raises(GameError, match="CartPoleEnv does not show its tables"):
        from_toy_text(gymnasium.make("CartPole-v1"), horizon=3)
