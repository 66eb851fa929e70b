"""Games as PettingZoo environments: PettingZoo's own conformance tests, the game's values, and typed refusals."""

import copy
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
from gymnasium.spaces import Discrete, MultiDiscrete
from pettingzoo import ParallelEnv

from cmpg import interop, scenarios
from cmpg.errors import SimulatorError, UnsupportedError
from cmpg.interop import PolicyRunner, to_parallel_env
from cmpg.policy import JointPolicy

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PettingZoo's tests import what PettingZoo calls deprecated
    from pettingzoo.test import parallel_api_test, parallel_seed_test

GAMES = {
    "joint": scenarios.spectrum,
    "joint, sparse": lambda: scenarios.grid_world(horizon=3),
    "joint, costs at the first step": lambda: scenarios.congestion_game(num_agents=3, horizon=3, cost_at="first step"),
    "joint, discounted": lambda: replace(scenarios.spectrum(), horizon=None, discount=0.7),
    "counting": lambda: scenarios.counting_congestion_game(num_agents=5, horizon=3),
    "local": lambda: scenarios.grid_world_local(horizon=4),
    "local, by the hour": lambda: scenarios.charging(),
    "local, private costs": lambda: private_costs(),
    "exact": lambda: scenarios.counter_example().exact(),
}
each_form = pytest.mark.parametrize("build", GAMES.values(), ids=GAMES)


def private_costs():
    game = scenarios.grid_world_local(horizon=4)
    shape = (1, 1, game.agents[0].num_states, game.agents[0].num_actions)
    costs = np.arange(np.prod(shape), dtype=float).reshape(shape) / 100
    return replace(game, agents=(replace(game.agents[0], costs=costs), game.agents[1]))


@each_form
def test_pettingzoos_own_tests_pass_without_a_warning(build, capsys):
    game = build()
    parallel_api_test(to_parallel_env(game), num_cycles=100)
    parallel_seed_test(lambda: to_parallel_env(game), num_cycles=20)
    assert "Passed Parallel API test" in capsys.readouterr().out


@each_form
def test_episodes_have_the_values_and_costs_of_the_game(build):
    game = build()
    policy = JointPolicy.random(game.policy_shapes, rng=np.random.default_rng(3))
    played = PolicyRunner(policy).play(
        to_parallel_env(game), episodes=100 if game.num_agents > 9 else 400, rng=np.random.default_rng(5)
    )
    position = game.at(policy)
    for samples, truth in ((played.returns, position.values), (played.costs, position.costs)):
        spread = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
        assert (np.abs(samples.mean(axis=0) - truth.astype(float)) <= 4.5 * spread + 1e-9).all()


@each_form
def test_spaces_are_gymnasiums_and_hold_what_is_observed(build):
    game = build()
    env = to_parallel_env(game)
    assert isinstance(env, ParallelEnv)
    observations, infos = env.reset(seed=1)
    for agent, (_, states, actions) in zip(env.possible_agents, game.policy_shapes, strict=True):
        assert isinstance(env.action_space(agent), Discrete)
        assert env.action_space(agent).n == actions
        assert isinstance(env.observation_space(agent), MultiDiscrete)
        assert env.observation_space(agent).nvec.tolist() == [1 if game.horizon is None else game.horizon + 1, states]
        assert env.observation_space(agent) is env.observation_space(agent)
        assert observations[agent] in env.observation_space(agent)
        assert infos[agent] == {}
    assert env.state() in env.state_space
    observations, *_ = env.step(dict.fromkeys(env.agents, 0))
    assert all(observations[agent] in env.observation_space(agent) for agent in env.possible_agents)
    assert env.state() in env.state_space
    env.close()


def test_an_agent_sees_the_step_and_the_state_that_its_policy_sees():
    joint = to_parallel_env(scenarios.spectrum())
    seen, _ = joint.reset(seed=2)
    assert len({tuple(each) for each in seen.values()}) == 1
    assert joint.state().tolist() == next(iter(seen.values())).tolist()
    local = to_parallel_env(scenarios.robots())
    seen, _ = local.reset(seed=2)
    assert local.state().tolist() == [0, *(int(each[1]) for each in seen.values())]
    seen, *_ = local.step(dict.fromkeys(local.agents, 1))
    assert {int(each[0]) for each in seen.values()} == {1}


def test_infos_have_costs_by_name_and_what_is_allowed():
    game = scenarios.spectrum()
    two = replace(game, costs=np.concatenate([game.costs, 2 * game.costs]), thresholds=[0.15, 1], constraint_names=None)
    for each, names in ((game, ["interference"]), (two, ["constraint 0", "constraint 1"])):
        env = to_parallel_env(each)
        env.reset(seed=0)
        *_, infos = env.step(dict.fromkeys(env.agents, 1))
        info = infos[env.possible_agents[0]]
        assert all(other == info for other in infos.values())
        assert list(info["costs"]) == names
        assert isinstance(info["cost"], float)
        assert info["cost"] > 0
        assert info["cost"] == pytest.approx(sum(info["costs"].values()))
        assert info["cost_limit"] == pytest.approx(each.thresholds.sum())
        assert list(info["cost_limits"].values()) == each.thresholds.tolist()


def test_a_horizon_truncates_and_a_discount_terminates():
    env = to_parallel_env(scenarios.spectrum())
    env.reset(seed=0)
    *_, terminations, truncations, _ = env.step(dict.fromkeys(env.agents, 0))
    assert not any([*terminations.values(), *truncations.values()])
    *_, terminations, truncations, _ = env.step(dict.fromkeys(env.agents, 0))
    assert all(truncations.values())
    assert not any(terminations.values())
    assert env.agents == []
    env = to_parallel_env(GAMES["joint, discounted"]())
    env.reset(seed=0)
    while env.agents:
        *_, terminations, truncations, _ = env.step(dict.fromkeys(env.agents, 0))
    assert all(terminations.values())
    assert not any(truncations.values())


def test_the_same_seed_gives_the_same_episode():
    def episode(env):
        return [env.reset(seed=11), *(env.step(dict.fromkeys(env.agents, 1)) for _ in range(2))]

    one, other = (to_parallel_env(scenarios.spectrum(), rng=np.random.default_rng(seed)) for seed in (0, 1))
    assert str(episode(one)) == str(episode(other))
    copied = copy.deepcopy(one)
    assert str(episode(copied)) == str(episode(one))


@pytest.mark.parametrize("action", [-1, 3, 1.5, "idle", None, np.array([0, 1])])
def test_an_action_that_there_is_not_is_refused(action):
    env = to_parallel_env(scenarios.spectrum())
    env.reset(seed=0)
    with pytest.raises(SimulatorError, match=r"the action of 'user 1' is .*; a number from 0 to 2 is required"):
        env.step(dict.fromkeys(env.agents, 0) | {"user 1": action})


def test_steps_out_of_turn_and_wrong_agents_are_refused():
    env = to_parallel_env(scenarios.spectrum())
    with pytest.raises(SimulatorError, match="call reset first"):
        env.step({})
    env.reset(seed=0)
    with pytest.raises(SimulatorError, match="there is no action of 'user 2'"):
        env.step({"user 0": 0, "user 1": 0})
    with pytest.raises(SimulatorError, match="there is no agent 'user 9'"):
        env.step(dict.fromkeys(env.agents, 0) | {"user 9": 0})


def test_agents_that_share_a_name_are_told_apart():
    game = replace(scenarios.counter_example(), agent_names=("twin", "twin"))
    assert to_parallel_env(game).possible_agents == ["twin (0)", "twin (1)"]


def test_a_game_that_cannot_be_played_is_refused_by_its_form():
    class Silent:
        horizon = 1

    with pytest.raises(UnsupportedError, match="a Silent cannot be played step by step") as refusal:
        to_parallel_env(Silent())
    assert refusal.value.form == "Silent"


def test_what_is_missing_is_named_with_how_to_install_it():
    hide = "import sys; sys.modules['pettingzoo'] = None; from cmpg import interop;"
    code = f"{hide}\ntry: interop.to_parallel_env\nexcept ModuleNotFoundError as e: print(e)"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert "pip install 'cmpg[pettingzoo]'" in told


def test_the_package_lists_and_loads_its_names():
    assert set(interop.__all__) <= set(dir(interop))
    assert all(getattr(interop, name) is not None for name in interop.__all__)
    with pytest.raises(AttributeError, match="no attribute 'to_openspiel'"):
        interop.to_openspiel  # noqa: B018
