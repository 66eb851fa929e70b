"""Simulated episodes: their means are the claims, whatever the form of the game, and a wrong claim is found."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import cmpg
from cmpg import scenarios
from cmpg.errors import SimulatorError, UnsupportedError
from cmpg.games.counting.classes import EveryCount, LargestCount
from cmpg.games.counting.game import CountingGame
from cmpg.games.local.game import LocalGame
from cmpg.games.play import OneByOne, SearchTable
from cmpg.policy import JointPolicy
from cmpg.simulation import simulate


def rows(rng, *shape, zeros=0.5):
    """Return random rows of probabilities, of which many entries are zero."""
    table = rng.random(shape) * (rng.random(shape) > zeros)
    table[..., 0] += 1e-3
    return table / table.sum(axis=-1, keepdims=True)


def random_joint(rng):
    agents, states, actions = int(rng.integers(1, 4)), int(rng.integers(1, 6)), tuple(rng.integers(1, 4, size=3))
    actions, horizon = actions[:agents], int(rng.integers(1, 6))
    steps, constraints = int(rng.choice([1, horizon])), int(rng.integers(0, 3))
    transition = rows(rng, steps, states, *actions, states)
    if rng.random() < 0.3:
        transition = [sp.csr_array(step.reshape(-1, states)) for step in transition]
    timing = {"discount": 0.6} if rng.random() < 0.2 else {"horizon": horizon}
    if "discount" in timing:
        transition, steps = transition[:1], 1
    return cmpg.JointGame(
        transition=transition,
        rewards=rng.normal(size=(agents, steps, states, *actions)),
        costs=rng.random((constraints, steps, states, *actions)),
        thresholds=np.ones(constraints),
        initial=rows(rng, states),
        **timing,
    )


def random_counting(rng):
    agents, states, actions = int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    horizon, constraints = int(rng.integers(1, 6)), int(rng.integers(0, 3))
    steps = int(rng.choice([1, horizon]))
    classes = EveryCount() if rng.random() < 0.5 else LargestCount((agents // 2,))
    number = classes.number(agents, actions)
    return cmpg.CountingGame(
        rewards=rng.normal(size=(steps, states, actions, agents + 1)),
        classes=classes,
        transition=rows(rng, steps, states, number, states),
        costs=rng.random((constraints, steps, states, number)),
        thresholds=np.ones(constraints),
        initial=rows(rng, states),
        horizon=horizon,
        private_rewards=rng.normal(size=(agents, steps, states, actions)) if rng.random() < 0.5 else None,
        class_rewards=rng.normal(size=(steps, states, actions, number)) if rng.random() < 0.5 else None,
    )


def random_local(rng):
    agents, resources, horizon = int(rng.integers(1, 6)), int(rng.integers(1, 5)), int(rng.integers(1, 6))
    constraints, members = int(rng.integers(0, 3)), []
    resources = 200 if rng.random() < 0.2 else resources  # many more than agents are counted in another way
    share = 0.4 if resources < 200 else 0.01
    for _ in range(agents):
        if members and rng.random() < 0.4:
            members.append(members[-1])
            continue
        states, actions, steps = int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.choice([1, horizon]))
        private = rng.random((constraints, steps, states, actions)) if rng.random() < 0.5 else None
        members.append(
            cmpg.LocalAgent(
                transition=rows(rng, steps, states, actions, states),
                reward=rng.normal(size=(steps, states, actions)),
                uses=(rng.random((steps, states, actions, resources)) < share).astype(float),
                initial=rows(rng, states),
                costs=private,
            )
        )
    steps = int(rng.choice([1, horizon]))
    return cmpg.LocalGame(
        agents=members,
        delay=rng.random((steps, resources, agents + 1)),
        load_costs=rng.random((constraints, steps, resources, agents + 1)),
        thresholds=np.ones(constraints),
        horizon=horizon,
    )


FORMS = {"joint": random_joint, "counting": random_counting, "local": random_local}
each_form = pytest.mark.parametrize("build", FORMS.values(), ids=FORMS)


def random_policy(game, rng):
    """Return a policy in which some rows mix and others are sure."""
    tables = []
    for shape in game.policy_shapes:
        sure = np.eye(shape[2])[rng.integers(shape[2], size=shape[:2])]
        tables.append(np.where(rng.random(shape[:2])[..., None] < 0.5, sure, rows(rng, *shape)))
    return JointPolicy(tuple(tables))


@each_form
def test_the_means_of_50_random_games_are_their_claims(build):
    rng = np.random.default_rng(14)
    for _ in range(50):
        game = build(rng)
        policy = random_policy(game, rng)
        seen = simulate(game, policy, 3000, rng=rng, shown=0)
        position = game.at(policy)
        assert np.array_equal(seen.values.claimed, position.values)
        assert np.array_equal(seen.costs.claimed, position.costs)
        assert seen.largest_z < 4


@pytest.mark.parametrize("name", scenarios.SCENARIOS)
def test_every_scenario_costs_in_episodes_what_is_claimed(name):
    game = scenarios.scenario(name).build()
    policy = cmpg.solve(game, epsilon=1e-2).policy
    seen = simulate(game, policy, 3000, rng=np.random.default_rng(1))
    assert seen.agrees, str(seen)


def payoffs(game, h, states, actions):
    """Rewards [n] and costs [k] of one joint action, read from the tables of a game."""

    def at(table, axis=0):
        return np.take(table, 0 if table.shape[axis] == 1 else h, axis=axis)

    if isinstance(game, LocalGame):
        uses = [agent.uses[h % len(agent.uses)].toarray() for agent in game.agents]
        rows = [int(s * a.num_actions + act) for s, act, a in zip(states, actions, game.agents, strict=True)]
        used = np.array([matrix[row] for matrix, row in zip(uses, rows, strict=True)])
        loads = used.sum(axis=0).astype(int)
        delays = at(game.delay)[np.arange(len(loads)), loads]
        own = [at(agent.reward).ravel()[row] for agent, row in zip(game.agents, rows, strict=True)]
        costs = at(game.load_costs, 1)[:, np.arange(len(loads)), loads].sum(axis=1)
        for agent, row in zip(game.agents, rows, strict=True):
            if agent.costs is not None:
                costs = costs + at(agent.costs, 1).reshape(len(costs), -1)[:, row]
        return own - used @ delays, costs
    s = int(states[0])
    if isinstance(game, CountingGame):
        counts = np.bincount(actions, minlength=game.num_actions[0])
        label = int(game.classes.of(counts))
        rewards = at(game.rewards)[s, actions, counts[actions]] + at(game.class_rewards)[s, actions, label]
        private = at(game.private_rewards, 1)[np.arange(game.num_agents), s, actions]
        return rewards + private, at(game.costs, 1)[:, s, label]
    entry = (slice(None), s, *actions.tolist())
    return at(game.rewards, 1)[entry], at(game.costs, 1)[entry]


@each_form
def test_whole_episodes_follow_the_rules_of_the_game(build):
    """Each step has the payoffs that the tables of the game state."""
    rng = np.random.default_rng(7)
    for _ in range(10):
        game = build(rng)
        policy = random_policy(game, rng)
        seen = simulate(game, policy, 50, rng=rng, shown=3)
        assert len(seen.shown) >= 3
        for episode in seen.shown:
            for h in range(len(episode.actions)):
                rewards, costs = payoffs(game, h, episode.states[h], episode.actions[h])
                assert np.allclose(rewards, episode.rewards[h])
                assert np.allclose(costs, episode.costs[h])
            factors = np.ones(len(episode.costs)) if game.discount is None else game.discount ** np.arange(h + 1)
            assert np.allclose(factors @ episode.costs, seen.realised[:, episode.number])
            assert np.isclose((factors @ episode.rewards).sum(), seen.welfare[episode.number])


def test_an_episode_as_a_table_says_who_did_what_from_when_on_and_what_that_cost():
    game = cmpg.scenarios.charging()
    seen = cmpg.simulate(game, cmpg.solve(game).policy, 500, rng=np.random.default_rng(2), shown=1)
    dearest = seen.shown[-1]
    table = dearest.table(game.names)
    assert [row[0] for row in table.rows] == list(game.names.all_agents(game.num_agents))
    for row, actions, rewards in zip(table.rows, dearest.actions.T, dearest.rewards.T, strict=True):
        assert row[1].value == pytest.approx(rewards.sum())
        assert row[2].count(",") == np.count_nonzero(np.diff(actions))
        assert row[2].startswith("00:00 ")
    first = int(np.flatnonzero(dearest.costs[:, 0])[0])
    assert f"(hour {game.names.step(first)}" in table.note
    assert f" {dearest.costs.sum():.6g} " in table.note


def test_an_episode_of_a_shared_state_is_a_table_by_step():
    game = cmpg.scenarios.grid_world()
    seen = cmpg.simulate(game, cmpg.solve(game).policy, 20, rng=np.random.default_rng(2), shown=1)
    table = seen.shown[0].table(game.names)
    assert [row[0] for row in table.rows] == [str(h) for h in range(game.horizon)]
    assert table.rows[0][1] == game.names.state(0, int(seen.shown[0].states[0, 0]))
    assert len(table.columns) == 2 + game.num_agents + 1


def test_a_wrong_claim_is_found():
    game = scenarios.grid_world_local(horizon=6)
    policy = game.random_policy(rng=np.random.default_rng(1))
    first = game.agents[0]
    slower = np.stack([matrix.toarray() for matrix in first.transition])
    slower = 0.9 * slower + 0.1 * np.repeat(np.eye(first.num_states), first.num_actions, axis=0)[None]
    agent = replace(first, transition=tuple(sp.csr_array(step) for step in slower))
    other = replace(game, agents=(agent, game.agents[1]))

    class Liar:
        """Claims what the game promises, and plays another one."""

        def __getattr__(self, name):
            return getattr(game, name)

        def stepper(self):
            return other.stepper()

    assert simulate(game, policy, 20_000, rng=np.random.default_rng(2)).agrees
    assert not simulate(Liar(), policy, 20_000, rng=np.random.default_rng(2)).agrees


def test_the_same_generator_gives_the_same_bits():
    game = scenarios.charging()
    policy = game.random_policy(rng=np.random.default_rng(1))
    one, two = (simulate(game, policy, 3000, rng=np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(one.realised, two.realised)
    assert np.array_equal(one.values.seen, two.values.seen)
    assert one.realised.shape[1] > 65_536 // game.num_agents  # several blocks


def test_a_budget_that_holds_on_average_is_exceeded_in_single_episodes():
    game = scenarios.charging()
    seen = simulate(game, cmpg.solve(game).policy, 5000, rng=np.random.default_rng(1))
    assert 0 < seen.exceeding[0] < 1
    values, counts = seen.frequencies(0)
    assert counts.sum() == 5000
    assert counts[values > 0.5].sum() == round(seen.exceeding[0] * 5000)
    assert seen.quantiles()[0, 0] <= seen.quantiles()[0, -1] <= values[-1]
    expensive = [episode for episode in seen.shown if episode.why == "highest cost"]
    assert expensive[0].costs.sum() == pytest.approx(values[-1])
    assert "agrees" in str(seen)


def test_an_event_too_rare_to_be_seen_is_no_disagreement():
    """A cost of 1 with probability 1e-6 is not seen in 1000 episodes, and one of 0.05 must be."""
    chances = np.array([[[[1 - 1e-6, 1e-6]]], [[[0.95, 0.05]]]])
    for chance, agrees in zip(chances, (True, False), strict=True):
        game = cmpg.JointGame(
            transition=np.broadcast_to([[[1.0, 0.0]]], (1, 2, 1, 2)) * 1.0,
            rewards=np.zeros((1, 1, 2, 1)),
            costs=[[[[0.0], [1.0]]]],
            thresholds=[1.0],
            initial=chance[0, 0],
            horizon=1,
        )
        calm = replace(game, initial=np.array([1.0, 0.0]))

        class Calm:
            def __init__(self, claimed, played):
                self.claimed, self.played = claimed, played

            def __getattr__(self, name):
                return getattr(self.claimed, name)

            def stepper(self):
                return self.played.stepper()

        assert simulate(Calm(game, calm), game.uniform_policy(), 1000, rng=np.random.default_rng(1)).agrees is agrees


def test_a_game_that_only_steps_is_played_one_by_one():
    game = scenarios.spectrum()

    class Stepping:
        """Plays one episode at a time."""

        def __getattr__(self, name):
            return getattr(game, name)

        def stepper(self):
            return OneByOne(self)

        def begin(self, rng):
            return np.full(game.num_agents, rng.choice(game.num_states, p=game.initial))

        def step(self, h, states, actions, rng):
            entry = (int(states[0]), *actions.tolist())
            following = rng.choice(game.num_states, p=game.transition[0][entry])
            rewards, costs = payoffs(game, h, states, actions)
            return rewards, costs, np.full(game.num_agents, following)

    policy = game.random_policy(rng=np.random.default_rng(3))
    seen = simulate(Stepping(), policy, 300, rng=np.random.default_rng(1))
    assert seen.agrees
    assert len(seen.shown) >= 2
    assert (
        (seen.intervals_of_costs()[:, 0] <= seen.costs.claimed).all() if hasattr(seen, "intervals_of_costs") else True
    )


def test_a_game_that_cannot_be_played_says_what_it_needs():
    class Still:
        num_agents, horizon, discount, thresholds = 1, 1, None, np.zeros(0)
        policy_shapes = ((1, 1, 1),)

    with pytest.raises(UnsupportedError, match="cannot be played"):
        simulate(Still(), JointPolicy.uniform([(1, 1, 1)]), 10, rng=np.random.default_rng(1))


@pytest.mark.parametrize("episodes", [0, 1, 2.5, -3])
def test_fewer_than_two_episodes_are_refused(episodes):
    game = scenarios.spectrum()
    with pytest.raises(SimulatorError, match="at least 2"):
        simulate(game, game.uniform_policy(), episodes, rng=np.random.default_rng(1))


def test_draws_never_hit_what_is_impossible():
    table = SearchTable.of(np.array([[0.0, 0.3, 0.0, 0.7, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0]]))
    ends = np.array([0.0, 0.3, np.nextafter(0.3, 0), np.nextafter(1, 0)])
    assert table.draw(np.zeros(4, dtype=np.int64), ends).tolist() == [1, 3, 1, 3]
    assert table.draw(np.ones(4, dtype=np.int64), ends).tolist() == [0] * 4
