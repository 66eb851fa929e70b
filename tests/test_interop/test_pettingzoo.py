"""Environments with the parallel API, in and out; the environments here are our own, with the same methods."""

from dataclasses import replace

import numpy as np
import pytest

from cmpg.equilibrium.solve import solve
from cmpg.errors import GameError
from cmpg.interop.parallel_env import Numbers, to_parallel_env
from cmpg.interop.pettingzoo import LearnableEnv, from_parallel_env, joint_observation
from cmpg.learning.environment import EnvironmentSimulator
from cmpg.learning.simulator import GameSimulator
from cmpg.policy import JointPolicy
from cmpg.scenarios import congestion_game, counter_example, grid_world, spectrum


class Corridor:
    """Two walkers on five fields, from the two ends; the middle pays, and the infos say whether they met."""

    possible_agents = ("left", "right")

    def __init__(self, *, steps=3, slip=0.0, blind=False, leaves=None):
        self.steps, self.slip, self.blind, self.leaves = steps, slip, blind, leaves
        self.agents = []

    def action_space(self, agent):
        return Numbers(3)

    def reset(self, seed=None, options=None):
        self.rng = np.random.default_rng(seed)
        self.agents, self.time, self.fields = list(self.possible_agents), 0, {"left": 0, "right": 4}
        return self._see(), {agent: {} for agent in self.agents}

    def _see(self):
        if self.blind:
            return {agent: np.array([0]) for agent in self.agents}
        return {agent: np.array([self.fields[agent]]) for agent in self.agents}

    def step(self, actions):
        assert set(actions) == set(self.agents)
        for agent, action in actions.items():
            if self.rng.random() >= self.slip:
                self.fields[agent] = min(max(self.fields[agent] + (action - 1), 0), 4)
        self.time += 1
        acting = list(self.agents)
        rewards = {agent: float(self.fields[agent] == 2) for agent in acting}
        infos = {
            agent: {"cost": float(len(acting) == 2 and self.fields["left"] == self.fields["right"])} for agent in acting
        }
        seen = self._see()
        over = self.time >= self.steps
        gone = {agent: over or agent == self.leaves for agent in acting}
        self.agents = [agent for agent in acting if not gone[agent]]
        return seen, rewards, gone, dict.fromkeys(acting, False), infos


def meeting(seen, actions, infos):
    return [max(info["cost"] for info in infos.values())]


def brute_force(env, plan):
    """The rewards and costs of a plan of joint actions, by playing it."""
    env.reset(seed=7)
    got, paid = np.zeros(2), 0.0
    for joint in plan:
        _, rewards, _, _, infos = env.step(dict(zip(env.possible_agents, joint, strict=True)))
        got += [rewards[agent] for agent in env.possible_agents]
        paid += meeting(None, None, infos)[0]
    return got, paid


def test_a_deterministic_environment_becomes_a_game():
    found = from_parallel_env(Corridor(), costs=meeting, thresholds=[0.5], horizon=3)
    rng = np.random.default_rng(0)
    for _ in range(20):
        plan = rng.integers(3, size=(3, 2))
        tables = [np.zeros(shape) for shape in found.game.policy_shapes]
        for h, joint in enumerate(plan):
            for table, action in zip(tables, joint, strict=True):
                table[h, :, action] = 1.0
        position = found.game.at(JointPolicy(tuple(tables)))
        got, paid = brute_force(Corridor(), plan)
        assert position.values == pytest.approx(got)
        assert position.costs == pytest.approx([paid])
    assert found.game.agent_names == ("left", "right")


def test_the_game_can_be_solved_and_its_policy_played():
    found = from_parallel_env(Corridor(), costs=meeting, thresholds=[0.5], horizon=3)
    result = solve(found.game)
    assert result.certified
    rng, paid = np.random.default_rng(1), []
    for _ in range(2000):
        env = Corridor()
        observations, _ = env.reset(seed=0)
        total = 0.0
        for h in range(3):
            state = found.state_of(observations)
            actions = {
                agent: int(rng.choice(3, p=result.policy[i][h, state])) for i, agent in enumerate(env.possible_agents)
            }
            observations, _, _, _, infos = env.step(actions)
            total += meeting(None, None, infos)[0]
        paid.append(total)
    assert np.mean(paid) == pytest.approx(result.costs[0], abs=0.05)


def test_an_environment_that_ends_early_stays_ended():
    found = from_parallel_env(Corridor(steps=2), costs=meeting, thresholds=[0.5], horizon=5)
    longer = found.game.at(found.game.uniform_policy())
    exact = from_parallel_env(Corridor(steps=2), costs=meeting, thresholds=[0.5], horizon=2).game
    assert longer.values == pytest.approx(exact.at(exact.uniform_policy()).values)
    assert "ended" in found.keys


def test_agents_may_leave_one_by_one():
    found = from_parallel_env(Corridor(leaves="left"), costs=meeting, thresholds=[0.5], horizon=3)
    values = found.game.at(found.game.uniform_policy()).values
    assert values[0] == 0.0  # one step is not enough to reach the middle
    assert values[1] > 0.0


@pytest.mark.parametrize("env", [Corridor(slip=0.5), Corridor(blind=True)], ids=["random", "hides its state"])
def test_what_cannot_be_tabulated_is_refused(env):
    with pytest.raises(GameError, match="random, or its observations hide part of its state"):
        from_parallel_env(env, costs=meeting, thresholds=[0.5], horizon=3)


def test_a_random_beginning_is_refused():
    env = to_parallel_env(congestion_game(num_agents=2), rng=np.random.default_rng(0))
    with pytest.raises(GameError, match="begins at"):
        from_parallel_env(env, costs=lambda *_: [0.0], thresholds=[1.0], horizon=1)


def test_wrong_costs_and_too_many_states_are_refused():
    with pytest.raises(GameError, match="costs returned 1 numbers; there are 2"):
        from_parallel_env(Corridor(), costs=meeting, thresholds=[0.5, 0.5], horizon=1)
    with pytest.raises(GameError, match="more than 4 states"):
        from_parallel_env(Corridor(), costs=meeting, thresholds=[0.5], horizon=3, max_states=4)


def test_an_unknown_observation_is_refused():
    found = from_parallel_env(Corridor(), costs=meeting, thresholds=[0.5], horizon=1)
    with pytest.raises(GameError, match="was not seen there"):
        found.state_of({"left": np.array([4]), "right": np.array([0])})


def test_observations_of_any_kind_become_keys():
    seen = {"a": {"cells": np.eye(2), "flag": True}, "b": [1, (2, np.float64(0.5))]}
    assert joint_observation(seen) == joint_observation(
        {"a": {"cells": [[1, 0], [0, 1]], "flag": 1}, "b": (1, [2, 0.5])}
    )
    assert hash(joint_observation(seen)) is not None
    assert joint_observation({}) == "ended"


@pytest.mark.parametrize(
    "build",
    [counter_example, lambda: grid_world(horizon=3, width=2, height=2, target=(1, 1), cell_rewards={(1, 1): 1.0})],
)
def test_out_and_in_again_is_the_same_game(build):
    game = build()
    env = to_parallel_env(game, rng=np.random.default_rng(0))
    found = from_parallel_env(env, costs=_reported, thresholds=game.thresholds, horizon=game.horizon)
    numbers = [key[0][1] if key != "ended" else 0 for key in found.keys]  # the state that all agents observe
    for seed in range(3):
        policy = game.random_policy(rng=np.random.default_rng(seed))
        seen = JointPolicy(tuple(table[:, numbers] for table in policy))
        here, there = game.at(policy), found.game.at(seen)
        assert there.values == pytest.approx(here.values)
        assert there.costs == pytest.approx(here.costs)


def _reported(seen, actions, infos):
    return next(iter(infos.values()))["costs"]


@pytest.mark.parametrize("build", [spectrum, lambda: congestion_game(num_agents=3)])
def test_episodes_of_a_game_have_its_values(build):
    game = build()
    policy = game.random_policy(rng=np.random.default_rng(3))
    env = to_parallel_env(game, rng=np.random.default_rng(4))
    rng, got, paid, episodes = np.random.default_rng(5), np.zeros(game.num_agents), 0.0, 3000
    for _ in range(episodes):
        observations, _ = env.reset()
        for h in range(game.horizon):
            actions = {
                agent: int(rng.choice(game.num_actions[i], p=policy[i][h, observations[agent]]))
                for i, agent in enumerate(env.agents)
            }
            observations, rewards, _, truncations, infos = env.step(actions)
            got += list(rewards.values())
            paid += infos[env.possible_agents[0]]["costs"][0]
        assert all(truncations.values())
        assert env.agents == []
    position = game.at(policy)
    spread = 6 * np.max(game.reward_ranges) / np.sqrt(episodes)
    assert got / episodes == pytest.approx(position.values, abs=spread)
    assert paid / episodes == pytest.approx(position.costs[0], abs=6 / np.sqrt(episodes))


def test_the_same_seed_gives_the_same_episode():
    def episode(env):
        observations, _ = env.reset(seed=11)
        return [observations, *(env.step(dict.fromkeys(env.agents, 1)) for _ in range(2))]

    one, other = (to_parallel_env(spectrum(), rng=np.random.default_rng(seed)) for seed in (0, 1))
    assert episode(one) == episode(other)


def test_what_an_environment_says_of_itself():
    env = to_parallel_env(spectrum(), rng=np.random.default_rng(0))
    agent = env.possible_agents[0]
    assert env.action_space(agent).n == 3
    assert env.observation_space(agent).n == 4
    assert env.action_space(agent).contains(2)
    assert not env.action_space(agent).contains(3)
    with pytest.raises(GameError, match="call reset first"):
        env.step({})
    env.close()


def test_a_discounted_game_has_no_episodes():
    game = replace(spectrum(), horizon=None, discount=0.9)
    with pytest.raises(GameError, match="do not end"):
        to_parallel_env(game, rng=np.random.default_rng(0))


def test_a_random_environment_can_be_learned():
    """The simulator steps the environment through the parallel API; what it counts has the game's law."""
    game = spectrum()
    known = GameSimulator(game, rng=np.random.default_rng(0)).known
    env = to_parallel_env(game, rng=np.random.default_rng(1))
    learnable = LearnableEnv(env, state=lambda seen: next(iter(seen.values())), costs=_reported)
    simulator = EnvironmentSimulator(learnable, known=known, rng=np.random.default_rng(2))
    samples = simulator.roll_out(game.uniform_policy(), 500)
    assert samples.visits.sum() == 500 * game.horizon
    assert simulator.ledger.total == 500 * game.horizon
