"""Environments as games: by replay from reset, with chance declared or refused, ours and real ones."""

import warnings

import numpy as np
import pytest
from corridor import Corridor, meeting
from gymnasium.spaces import Discrete
from gymnasium.utils import EzPickle
from pettingzoo.utils.conversions import turn_based_aec_to_parallel

from cmpg.equilibrium.solve import solve
from cmpg.errors import GameError, SimulatorError
from cmpg.interop import LearnableEnv, PolicyRunner, from_parallel_env, to_parallel_env
from cmpg.interop.enumeration import joint_observation
from cmpg.learning.environment import EnvironmentSimulator
from cmpg.learning.simulator import GameSimulator
from cmpg.policy import JointPolicy
from cmpg.scenarios import congestion_game, counter_example, grid_world, spectrum


def brute_force(env, plan):
    """The rewards and costs of a plan of joint actions, by playing it."""
    env.reset(seed=7)
    got, paid = np.zeros(2), 0.0
    for joint in plan:
        _, rewards, _, _, infos = env.step(dict(zip(env.possible_agents, joint, strict=True)))
        got += [rewards[agent] for agent in env.possible_agents]
        paid += max(info["cost"] for info in infos.values())
    return got, paid


def following(game, plan):
    """The policy that plays a plan of joint actions, whatever it sees."""
    tables = [np.zeros(shape) for shape in game.policy_shapes]
    for h, joint in enumerate(plan):
        for table, action in zip(tables, joint, strict=True):
            table[h, :, action] = 1.0
    return JointPolicy(tuple(tables))


def test_a_deterministic_environment_becomes_a_game():
    found = from_parallel_env(Corridor(), costs=meeting, thresholds=[0.5], horizon=3)
    rng = np.random.default_rng(0)
    for _ in range(20):
        plan = rng.integers(3, size=(3, 2))
        position = found.game.at(following(found.game, plan))
        got, paid = brute_force(Corridor(), plan)
        assert position.values == pytest.approx(got)
        assert position.costs == pytest.approx([paid])
    assert found.game.agent_names == ("left", "right")
    assert found.samples_per_entry is None


def test_costs_are_read_from_the_infos_unless_given():
    told, given = (
        from_parallel_env(Corridor(), thresholds=[0.5], horizon=2, **costs).game for costs in ({}, {"costs": meeting})
    )
    assert told.costs.tolist() == given.costs.tolist()
    assert from_parallel_env(Corridor(), horizon=2).game.num_constraints == 0


def test_the_game_can_be_solved_and_its_policy_played():
    found = from_parallel_env(Corridor(), thresholds=[0.5], horizon=3)
    result = solve(found.game)
    assert result.certified
    runner = PolicyRunner(result.policy, states=found.states_of)
    played = runner.play(Corridor(), episodes=2000, rng=np.random.default_rng(1))
    low, high = played.cost_intervals(0.9999)[0]
    assert low <= result.costs[0] <= high
    assert (played.return_intervals(0.9999)[:, 0] <= result.values + 1e-9).all()
    assert (result.values - 1e-9 <= played.return_intervals(0.9999)[:, 1]).all()


def test_a_runner_refuses_another_number_of_agents_and_too_few_episodes():
    runner = PolicyRunner(JointPolicy((np.ones((1, 1, 1)),)))
    with pytest.raises(SimulatorError, match="the environment has 2 agents; the policy is one of 1"):
        runner.play(Corridor(), episodes=1, rng=np.random.default_rng(0))
    found = from_parallel_env(Corridor(), horizon=1)
    runner = PolicyRunner(found.game.uniform_policy(), states=found.states_of)
    with pytest.raises(SimulatorError, match="there are 1 episodes"):
        runner.play(Corridor(steps=1), episodes=1, rng=np.random.default_rng(0)).cost_intervals()


class Pickled(EzPickle):
    """Pays 1 for every step taken so far; a copy of it, as EzPickle makes them, has forgotten those steps."""

    possible_agents = ("a", "b")

    def __init__(self):
        EzPickle.__init__(self)
        self.agents, self.time = [], 0

    def action_space(self, agent):
        return Discrete(2)

    def reset(self, seed=None, options=None):
        self.agents, self.time = list(self.possible_agents), 0
        return dict.fromkeys(self.agents, 0), {}

    def step(self, actions):
        self.time += 1
        acting, over = self.agents, self.time == 4
        self.agents = [] if over else acting
        pay = {agent: float(self.time * actions[agent]) for agent in acting}
        return dict.fromkeys(acting, self.time), pay, dict.fromkeys(acting, over), dict.fromkeys(acting, False), {}


def test_an_environment_whose_copies_forget_is_the_right_game():
    found = from_parallel_env(Pickled(), horizon=4)
    result = solve(found.game)
    assert result.certified
    assert result.values.tolist() == [10.0, 10.0]  # 1 + 2 + 3 + 4


def test_an_environment_that_ends_early_stays_ended():
    found = from_parallel_env(Corridor(steps=2), thresholds=[0.5], horizon=5)
    longer = found.game.at(found.game.uniform_policy())
    exact = from_parallel_env(Corridor(steps=2), thresholds=[0.5], horizon=2).game
    assert longer.values == pytest.approx(exact.at(exact.uniform_policy()).values)
    assert "ended" in found.keys


def test_agents_may_leave_one_by_one():
    found = from_parallel_env(Corridor(leaves="left"), thresholds=[0.5], horizon=3)
    values = found.game.at(found.game.uniform_policy()).values
    assert values[0] == 0.0  # one step is not enough to reach the middle
    assert values[1] > 0.0
    runner = PolicyRunner(found.game.uniform_policy(), states=found.states_of)
    played = runner.play(Corridor(leaves="left"), episodes=500, rng=np.random.default_rng(2))
    assert played.returns[:, 0].tolist() == [0.0] * 500
    assert played.return_intervals(0.9999)[1, 0] <= values[1] <= played.return_intervals(0.9999)[1, 1]


@pytest.mark.parametrize("env", [Corridor(slip=0.5), Corridor(slip=0.02), Corridor(blind=True)])
def test_what_cannot_be_tabulated_is_refused(env):
    with pytest.raises(GameError, match="random, or its observations hide part of its state"):
        from_parallel_env(env, thresholds=[0.5], horizon=3)


def test_a_random_beginning_is_refused():
    with pytest.raises(GameError, match=r"begins at .* with one seed, and at .* with another"):
        from_parallel_env(to_parallel_env(congestion_game(num_agents=2)), horizon=1)


def test_declared_chance_is_estimated():
    game = spectrum(num_agents=1)
    found = from_parallel_env(to_parallel_env(game), horizon=2, thresholds=[0.15], samples_per_entry=400)
    assert found.samples_per_entry == 400
    numbers = [key[0][1][1] if key != "ended" else 0 for key in found.keys]  # the state of the game
    policy = game.random_policy(rng=np.random.default_rng(0))
    seen = JointPolicy(tuple(table[:, numbers] for table in policy))
    here, there = game.at(policy), found.game.at(seen)
    assert there.values == pytest.approx(here.values, abs=0.1)
    assert there.costs == pytest.approx(here.costs, abs=0.1)


def test_chance_that_is_declared_and_does_not_occur_changes_nothing():
    exact = from_parallel_env(Corridor(), thresholds=[0.5], horizon=2)
    drawn = from_parallel_env(Corridor(), thresholds=[0.5], horizon=2, samples_per_entry=2)
    places = [exact.keys.index(key) for key in drawn.keys]
    assert drawn.game.rewards.tolist() == exact.game.rewards[:, :, places].tolist()
    assert drawn.game.costs.tolist() == exact.game.costs[:, :, places].tolist()


def test_too_little_to_estimate_from_is_refused():
    env = to_parallel_env(spectrum(num_agents=1))
    with pytest.raises(GameError, match=r"after 20 episodes, step . in state .* 400 are required"):
        from_parallel_env(env, horizon=2, samples_per_entry=400, max_episodes=20)
    with pytest.raises(GameError, match="samples_per_entry is 0"):
        from_parallel_env(env, horizon=2, samples_per_entry=0)


def test_wrong_costs_and_too_many_states_are_refused():
    with pytest.raises(GameError, match="costs returned 1 numbers; there are 2"):
        from_parallel_env(Corridor(), costs=meeting, thresholds=[0.5, 0.5], horizon=1)
    for chance in (None, 3):
        with pytest.raises(GameError, match="more than 4 states"):
            from_parallel_env(Corridor(), horizon=3, max_states=4, samples_per_entry=chance)


def test_an_unknown_observation_is_refused():
    found = from_parallel_env(Corridor(), horizon=1)
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
    found = from_parallel_env(to_parallel_env(game), thresholds=game.thresholds, horizon=game.horizon)
    numbers = [key[0][1][1] if key != "ended" else 0 for key in found.keys]  # the state that all agents observe
    for seed in range(3):
        policy = game.random_policy(rng=np.random.default_rng(seed))
        seen = JointPolicy(tuple(table[:, numbers] for table in policy))
        here, there = game.at(policy), found.game.at(seen)
        assert there.values == pytest.approx(here.values)
        assert there.costs == pytest.approx(here.costs)


def test_a_random_environment_can_be_learned():
    """The simulator steps the environment through the parallel API; what it counts has the game's law."""
    game = spectrum()
    known = GameSimulator(game, rng=np.random.default_rng(0)).known
    learnable = LearnableEnv(to_parallel_env(game), state=lambda seen: int(next(iter(seen.values()))[1]))
    simulator = EnvironmentSimulator(learnable, known=known, rng=np.random.default_rng(2))
    samples = simulator.roll_out(game.uniform_policy(), 500)
    assert samples.visits.sum() == 500 * game.horizon
    assert simulator.ledger.total == 500 * game.horizon


# Real environments


def real(module, name="parallel_env"):
    """A maker of environments; PettingZoo warns of its own old registry."""
    return getattr(pytest.importorskip(module, reason="NOT TESTED with this environment"), name)


def test_rock_paper_scissors():
    found = from_parallel_env(real("pettingzoo.classic.rps.rps")(max_cycles=3), horizon=3)
    first = found.game.rewards[0, 0, 0]
    assert first.tolist() == [[0, -1, 1], [1, 0, -1], [-1, 1, 0]]
    assert found.game.rewards[1, 0, 0].tolist() == (-first).tolist()
    position = found.game.at(found.game.uniform_policy())
    assert position.values == pytest.approx([0, 0])
    for agent in range(2):  # the only equilibrium: nobody gains against a uniform opponent
        assert position.induced_cmdp(agent).reward[0, 0] == pytest.approx([0, 0, 0])


@pytest.mark.parametrize(
    ("module", "actions", "states"),
    [("pettingzoo.classic.tictactoe.tictactoe", 9, 11), ("pettingzoo.classic.connect_four.connect_four", 7, 8)],
)
def test_games_of_turns(module, actions, states):
    found = from_parallel_env(turn_based_aec_to_parallel(real(module, "env")()), horizon=1)
    assert found.game.num_actions == (actions, actions)
    assert found.game.num_states == (1 + actions)  # the first player moves, the second waits
    assert (found.game.rewards == 0).all()


def test_vector_rewards_become_rewards_and_costs():
    """MOMAland's item gathering: what an agent gathers of the first kind is its reward, the second kind costs."""
    gathering = real("momaland.envs.item_gathering.item_gathering")
    grid = np.array([[1, 3, 4], [0, 0, 0], [2, 4, 3]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the environment's own
        env = gathering(num_timesteps=2, initial_map=grid)
        with pytest.raises(GameError, match="more than one number"):
            from_parallel_env(env, horizon=1)
        found = from_parallel_env(
            env,
            horizon=2,
            reward=lambda gathered: float(gathered[0]),
            costs=lambda step: [sum(float(gathered[1]) for gathered in step.rewards.values())],
            thresholds=[0.5],
        )
    assert {*found.game.rewards.ravel()} == {0.0, 1.0}
    assert found.game.costs.max() > 0
    assert solve(found.game).status.name in ("CERTIFIED", "NOT_POTENTIAL")
