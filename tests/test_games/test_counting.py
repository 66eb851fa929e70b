"""Counting games against the joint form, which lists every joint action."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.planning import plan
from cmpg.errors import GameError, PolicyError
from cmpg.files.games import load_game, save_game
from cmpg.games.claims import claim_of
from cmpg.games.counting.classes import EveryCount, LargestCount, take_census
from cmpg.games.counting.counts import Sums, own_counts
from cmpg.games.counting.game import CountingGame
from cmpg.games.counting.tables import best_stages
from cmpg.games.game import Objective
from cmpg.policy import JointPolicy
from cmpg.proof.exact import exact_costs, exact_values
from cmpg.scenarios.paper import congestion_game, counting_congestion_game
from strategies import cheapest_policy


def random_policy(game, rng, *, sharp):
    """Rows from the simplex, or close to its corners, with some exactly in a corner."""
    concentration = 0.05 if sharp else 1.0
    tables = []
    for steps, states, actions in game.policy_shapes:
        rows = rng.dirichlet(np.full(actions, concentration) + 1e-3, size=(steps, states))
        corner = rng.random((steps, states, 1)) < (0.5 if sharp else 0.0)
        tables.append(np.where(corner, np.eye(actions)[rows.argmax(axis=-1)], rows))
    return JointPolicy(tuple(tables))


def random_game(rng, *, agents, actions, states, steps, constraints, classes, discount=None):
    count = classes.number(agents, actions)

    def length():
        return int(rng.choice([1, steps]))

    transition = rng.dirichlet(np.full(states, 0.5), size=(length(), states, count))
    costs = rng.random((constraints, length(), states, count))
    # Whole states in which classes are alike, so that each way of counting is met.
    alike = rng.random((states, count)) < 0.4
    for label in range(1, count):
        transition[:, alike[:, label], label] = transition[:, alike[:, label], label - 1]
        costs[:, :, alike[:, label], label] = costs[:, :, alike[:, label], label - 1]
    return CountingGame(
        rewards=rng.normal(size=(length(), states, actions, agents + 1)),
        private_rewards=rng.normal(size=(agents, length(), states, actions)) if rng.random() < 0.5 else None,
        class_rewards=rng.normal(size=(length(), states, actions, count)) if rng.random() < 0.3 else None,
        classes=classes,
        transition=transition,
        costs=costs,
        thresholds=np.ones(constraints),
        initial=rng.dirichlet(np.ones(states)),
        horizon=None if discount is not None else steps,
        discount=discount,
    )


def boundaries(agents, rng):
    return tuple(sorted(rng.integers(0, agents + 1, size=rng.integers(0, 4)).tolist()))


@st.composite
def games(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    agents, actions = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    every = draw(st.booleans()) and agents * actions <= 12
    discounted = draw(st.integers(0, 4)) == 0
    game = random_game(
        rng,
        agents=agents,
        actions=actions,
        states=draw(st.integers(1, 3)),
        steps=1 if discounted else draw(st.integers(1, 3)),
        constraints=draw(st.integers(0, 2)),
        classes=EveryCount() if every else LargestCount(boundaries(agents, rng)),
        discount=0.7 if discounted else None,
    )
    return game, random_policy(game, rng, sharp=draw(st.booleans())), rng


def assert_same_cmdp(found, expected, tolerance=1e-12):
    """Compare as joint and counting forms may keep a step axis of length one or of H."""
    for name in ("transition", "reward", "costs"):
        np.testing.assert_allclose(
            *np.broadcast_arrays(getattr(found, name), getattr(expected, name)), rtol=0, atol=tolerance, err_msg=name
        )
    assert np.array_equal(found.thresholds, expected.thresholds)
    assert (found.horizon, found.discount) == (expected.horizon, expected.discount)


@settings(deadline=None, max_examples=30)
@given(games())
def test_everything_agrees_with_the_joint_form(drawn):
    game, policy, rng = drawn
    joint = game.to_joint()
    here, there = game.at(policy), joint.at(policy)
    np.testing.assert_allclose(here.values, there.values, rtol=0, atol=1e-11)
    np.testing.assert_allclose(here.costs, there.costs, rtol=0, atol=1e-11)
    for agent in rng.permutation(game.num_agents):
        assert_same_cmdp(here.induced_cmdp(agent), there.induced_cmdp(agent))
    assert game.potential(policy) == pytest.approx(joint.potential(policy), abs=1e-10)
    assert (game.reward_ranges >= joint.reward_ranges - 1e-12).all()
    assert game.policy_shapes == joint.policy_shapes


@settings(deadline=None, max_examples=30)
@given(games())
def test_moves_recompute_what_changed_and_nothing_is_stale(drawn):
    game, policy, rng = drawn
    position = game.at(policy)
    for _ in range(2 * game.num_agents):
        position.induced_cmdp(int(rng.integers(game.num_agents)))
        mover = int(rng.integers(game.num_agents))
        known = position.induced_cmdp(mover) if rng.random() < 0.5 else None
        table = random_policy(game, rng, sharp=True)[mover]
        position = position.replace(mover, table)
        fresh = game.at(position.policy)
        if known is not None:
            assert position.induced_cmdp(mover) is known
        for agent in range(game.num_agents):
            # The order of additions is fixed, so that the same question has the same bits whatever was asked before.
            assert np.array_equal(position.induced_cmdp(agent).transition, fresh.induced_cmdp(agent).transition)
            assert np.array_equal(position.induced_cmdp(agent).reward, fresh.induced_cmdp(agent).reward)
        np.testing.assert_allclose(position.costs, fresh.costs, rtol=1e-12)


@settings(deadline=None, max_examples=25)
@given(games())
def test_the_cheapest_policy_is_that_of_the_joint_planner(drawn):
    game, _, rng = drawn
    weights = rng.random(game.num_constraints)
    policy, least = cheapest_policy(game, weights)
    expected = plan(game.to_joint().joint_cmdp(), weights, reward_weight=0.0)
    assert least == pytest.approx(float(weights @ expected.costs), abs=1e-11)
    assert float(weights @ game.at(policy).costs) == pytest.approx(least, abs=1e-11)
    assert all(set(np.unique(table)) <= {0.0, 1.0} for table in policy)


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_rounding_is_bounded_by_exact_arithmetic(seed, agents, actions, every):
    rng = np.random.default_rng(seed)
    classes = EveryCount() if every else LargestCount(boundaries(agents, rng))
    game = random_game(rng, agents=agents, actions=actions, states=2, steps=2, constraints=1, classes=classes)
    policy = random_policy(game, rng, sharp=True)
    position, costs = game.at(policy), in_rationals(exact_costs, game.exact(), policy)
    for found, true in zip(position.costs, costs, strict=True):
        assert abs(float(Fraction(found) - true)) <= position.induced_cmdp(0).rounding * float(true)
    joint = game.exact().to_joint()
    assert costs == in_rationals(exact_costs, joint, policy)
    assert in_rationals(exact_values, game.exact(), policy) == in_rationals(exact_values, joint, policy)


def in_rationals(computed, game, policy):
    claim = claim_of(game, policy, np.zeros((game.num_agents, len(game.thresholds))))
    return computed(claim, max_work=10**8)


MANY_STATES = 60
"""In so many, one table of all counts is slower than two of tails."""


@pytest.mark.parametrize("states", [1, MANY_STATES])
@pytest.mark.parametrize(("agents", "actions"), [(10, 4), (10, 5), (11, 5), (11, 3)])
def test_tails_and_boxes_of_more_agents_have_the_right_chances(agents, actions, states):
    """Against a dictionary of count vectors, filled agent by agent."""
    rng = np.random.default_rng(agents)
    every = tuple(range(agents + 1))
    for chosen in [(agents // 2,), (agents // 2, agents - 2), (agents // 3,), (agents // 3, agents // 2), every]:
        classes = LargestCount(chosen)
        count = len(chosen) + 1
        game = random_game(rng, agents=agents, actions=actions, states=states, steps=1, constraints=1, classes=classes)
        costs = np.broadcast_to(np.arange(count, dtype=float), (1, 1, states, count))
        game = replace(game, costs=costs, private_rewards=None, class_rewards=None)
        policy = random_policy(game, rng, sharp=False)
        position = game.at(policy)
        for agent, state in ((0, 0), (agents // 2, states // 2), (agents - 1, states - 1)):
            cmdp = position.induced_cmdp(agent)
            drawn = vectors_of_others(policy, agent, state, actions)
            vectors, chances = np.array([*drawn]), np.array([*drawn.values()])
            for own in range(actions):
                with_own = vectors + np.eye(actions, dtype=int)[own]
                expected = np.bincount(np.searchsorted(chosen, with_own.max(axis=1)), chances, minlength=count)
                found = position.counts.of_classes(agent)[state, own]
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0)
                paid = chances @ game.rewards[0, state, own, with_own[:, own]]
                assert cmdp.reward[0, state, own] == pytest.approx(paid, abs=1e-12)


def vectors_of_others(policy, agent, state, actions):
    chances = {(0,) * actions: 1.0}
    for other, table in enumerate(policy):
        if other == agent:
            continue
        grown = {}
        for vector, chance in chances.items():
            for action in range(actions):
                after = (*vector[:action], vector[action] + 1, *vector[action + 1 :])
                grown[after] = grown.get(after, 0.0) + chance * table[0, state, action]
        chances = grown
    return chances


@pytest.mark.parametrize("classes", [LargestCount((5,)), LargestCount((3, 7)), EveryCount()], ids=repr)
def test_ten_agents_who_all_mix_are_counted_as_in_the_joint_form(classes):
    rng = np.random.default_rng(1)
    game = random_game(rng, agents=10, actions=2, states=2, steps=2, constraints=2, classes=classes)
    policy = random_policy(game, rng, sharp=False)
    here, there = game.at(policy), game.to_joint().at(policy)
    for mover in (3, 3, 8):
        np.testing.assert_allclose(here.costs, there.costs, rtol=1e-12)
        for agent in range(10):
            assert_same_cmdp(here.induced_cmdp(agent), there.induced_cmdp(agent))
        moved = random_policy(game, rng, sharp=False)[mover]
        here, there = here.replace(mover, moved), there.replace(mover, moved)


def test_small_chances_keep_their_relative_accuracy():
    """The middle class is 1e-18 likely; one minus the others would have lost it."""
    classes = LargestCount((2, 4))
    game = counting_congestion_game()
    game = replace(game, costs=[[[[0.0, 1.0, 0.0]] * 2]], classes=classes)
    rare = np.broadcast_to([1e-6, 0.0, 0.0, 1 - 1e-6], (2, 2, 4))
    always = np.broadcast_to([0.0, 0.0, 0.0, 1.0], (2, 2, 4))
    position = game.at(JointPolicy((rare,) * 4 + (always,) * 4))
    (exact,) = in_rationals(exact_costs, game, position.policy)
    assert 0 < float(exact) < 1e-18
    assert abs(float(Fraction(position.costs[0]) / exact - 1)) <= position.induced_cmdp(0).rounding


def test_the_congestion_game_is_the_paper_s():
    game, joint = counting_congestion_game(), congestion_game()
    written_out = game.to_joint()
    for name in ("transition", "rewards", "costs", "thresholds", "initial"):
        assert np.array_equal(getattr(written_out, name), getattr(joint, name)), name
    for name in ("agent_names", "state_names", "action_names", "constraint_names", "horizon"):
        assert getattr(game, name) == getattr(joint, name)
    assert np.array_equal(game.reward_ranges, joint.reward_ranges)
    rng = np.random.default_rng(3)
    for sharp in (False, True):
        policy = random_policy(game, rng, sharp=sharp)
        here, there = game.at(policy), joint.at(policy)
        np.testing.assert_allclose(here.values, there.values, rtol=0, atol=1e-12)
        np.testing.assert_allclose(here.costs, there.costs, rtol=0, atol=1e-12)
        for agent in range(8):
            assert_same_cmdp(here.induced_cmdp(agent), there.induced_cmdp(agent))


def test_the_figure_s_policy_has_the_paper_s_cost_and_values():
    """4 C and 4 D at step 1, 8 D at step 2: cost exactly one half, values −36 and −28, welfare −256."""
    game = counting_congestion_game()
    first = [np.eye(4)[[[2, 2], [3, 3]]]] * 4
    second = [np.eye(4)[[[3, 3], [3, 3]]]] * 4
    position = game.at(JointPolicy((*first, *second)))
    assert position.values == pytest.approx([-36.0] * 4 + [-28.0] * 4, abs=1e-12)
    assert in_rationals(exact_costs, game, position.policy) == [Fraction(game.thresholds[0])]


@pytest.mark.parametrize("agents", range(1, 8))
def test_the_congestion_game_for_other_numbers_of_agents(agents):
    game, joint = counting_congestion_game(num_agents=agents, horizon=3), congestion_game(num_agents=agents, horizon=3)
    policy = game.random_policy(rng=np.random.default_rng(agents))
    here, there = game.at(policy), joint.at(policy)
    np.testing.assert_allclose(here.values, there.values, rtol=0, atol=1e-11)
    for agent in range(agents):
        assert_same_cmdp(here.induced_cmdp(agent), there.induced_cmdp(agent))
    _, least = cheapest_policy(game, np.ones(1))
    assert least == cheapest_policy(joint, np.ones(1))[1]


def test_options_of_the_congestion_game_agree_with_the_joint_one():
    options = {"num_agents": 3, "weights": (2.0, 1.0), "unsafe_penalty": 3.0, "initial": (1.0, 0.0), "threshold": 0.2}
    options |= {"cost_at": "first step", "horizon": 3}
    game, joint = counting_congestion_game(**options), congestion_game(**options)
    assert np.array_equal(game.to_joint().rewards, joint.rewards)
    policy = game.random_policy(rng=np.random.default_rng(0))
    np.testing.assert_allclose(game.at(policy).costs, joint.at(policy).costs, atol=1e-14)


def test_a_hundred_agents_against_a_simulation():
    game = counting_congestion_game(num_agents=100, horizon=1)
    rng = np.random.default_rng(5)
    policy = JointPolicy(tuple(rng.dirichlet([1.0, 1.0, 2.0, 5.0], size=(1, 2)) for _ in range(100)))
    cmdp = game.at(policy).induced_cmdp(17)
    rows = np.array([table[0, 1] for table in policy])
    draws = 20_000
    played = (rng.random((draws, 100, 1)) > rows.cumsum(axis=1)[None, :, :3]).sum(axis=-1)
    for own in range(4):
        played[:, 17] = own
        counts = (played[:, :, None] == np.arange(4)).sum(axis=1)
        crowded = (counts.max(axis=1) > 50).mean()
        assert cmdp.costs[0, 0, 1, own] == pytest.approx(crowded, abs=5 * 0.5 / np.sqrt(draws))
        payoff = counts[:, own] * [1, 2, 4, 6][own] - 100
        assert cmdp.reward[0, 1, own] == pytest.approx(payoff.mean(), abs=5 * payoff.std() / np.sqrt(draws) + 1e-9)


def test_one_cycle_of_best_responses_keeps_the_budget_and_gains():
    game = counting_congestion_game(num_agents=12)
    position = game.at(game.random_policy(rng=np.random.default_rng(1)))
    for agent in range(12):
        cmdp = position.induced_cmdp(agent)
        response = Exact()(cmdp)
        assert response.value >= evaluate(cmdp, position.policy[agent]).value - 1e-9
        position = position.replace(agent, response.policy)
        assert position.costs[0] <= 0.5


def test_threads_that_ask_at_the_same_time_get_the_same_bits():
    game = counting_congestion_game(num_agents=16)
    policy = game.random_policy(rng=np.random.default_rng(4))
    alone, shared = game.at(policy), game.at(policy)
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(16), 3)).tolist()
    with ThreadPoolExecutor(4) as pool:
        cmdps = list(pool.map(shared.induced_cmdp, order))
    for agent, cmdp in zip(order, cmdps, strict=True):
        assert np.array_equal(cmdp.transition, alone.induced_cmdp(agent).transition)
        assert np.array_equal(cmdp.reward, alone.induced_cmdp(agent).reward)


def test_only_the_tails_are_counted_where_only_tails_matter():
    """Four actions, boundaries below half the agents that no joint action meets, or at which nothing changes."""
    game = counting_congestion_game(num_agents=50)
    assert [tally.num_cells for tally in game.census.tallies] == [1, 2]
    game = counting_congestion_game(num_agents=24)
    assert [tally.num_cells for tally in game.census.tallies] == [1, 2, 3]
    assert [list(tally.rows) for tally in game.census.tallies[1:]] == [[0, 2], [1, 3]]
    census = take_census(LargestCount((3, 7)), 12, num_actions=6, matters=np.array([[False, True], [False, False]]))
    assert census.certain.tolist() == [1]
    assert [tally.num_cells for tally in census.tallies] == [1, 2]
    assert [tally.num_cells for tally in counting_congestion_game().census.tallies] == [1, 3]


def test_every_count_ranks_vectors_in_lexicographic_order():
    for agents, actions in product(range(1, 6), range(1, 5)):
        vectors = EveryCount().samples(agents, actions)
        assert len(vectors) == EveryCount().number(agents, actions)
        assert (vectors.sum(axis=1) == agents).all()
        assert [tuple(row) for row in vectors] == sorted(tuple(row) for row in vectors)
        assert EveryCount().of(vectors).tolist() == list(range(len(vectors)))


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 12), st.integers(1, 5), st.lists(st.floats(0, 13), max_size=4).map(sorted))
def test_samples_of_the_largest_count_are_one_of_each_class_that_occurs(agents, actions, given_boundaries):
    classes = LargestCount(tuple(given_boundaries))
    samples = classes.samples(agents, actions)
    assert (samples.sum(axis=1) == agents).all()
    assert (samples >= 0).all()
    occurring = sorted(set(classes.of(EveryCount().samples(agents, actions)).tolist()))
    assert classes.of(samples).tolist() == occurring


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 20_000), st.integers(1, 5))
def test_sums_in_pieces_are_the_sums(seed, places, targets):
    rng = np.random.default_rng(seed)
    labels = rng.integers(-1, targets, size=(2, places))
    table = rng.random((3, places))
    expected = np.zeros((3, targets))
    for row in labels:
        for label in range(targets):
            expected[:, label] += table[:, row == label].sum(axis=1)
    sums = Sums.by_label(labels, targets)
    np.testing.assert_allclose(sums(table), expected, rtol=1e-13)
    assert sums.roundings <= 64 * 3


def structure(**changes):
    base = {
        "rewards": np.arange(12.0).reshape(1, 1, 3, 4),
        "classes": LargestCount((1,)),
        "transition": np.ones((1, 1, 2, 1)),
        "costs": (),
        "thresholds": (),
        "initial": [1.0],
        "horizon": 2,
    }
    return CountingGame(**(base | changes))


def residual(game, rng):
    """The largest |Σ± (V_i − V_j)| around random 4-cycles: zero in a potential game."""
    largest = 0.0
    for _ in range(20):
        i, j = rng.choice(game.num_agents, size=2, replace=False)
        policies = [random_policy(game, rng, sharp=True) for _ in range(2)]
        total = 0.0
        for first, second in product(range(2), range(2)):
            position = game.at(policies[0].replace(i, policies[first][i]).replace(j, policies[second][j]))
            total += (-1) ** (first + second) * (position.values[i] - position.values[j])
        largest = max(largest, abs(total))
    return largest


def test_the_structure_says_which_games_are_potential_games():
    rng = np.random.default_rng(2)
    moving = {"transition": rng.dirichlet(np.ones(2), size=(1, 2, 2)), "initial": [0.5, 0.5]}
    rewards = rng.normal(size=(1, 2, 3, 4))
    private = rng.normal(size=(3, 1, 2, 3))
    by_class = np.broadcast_to(rng.normal(size=(1, 2, 1, 2)), (1, 2, 3, 2))
    still = {"transition": np.broadcast_to(moving["transition"][:, :, :1], (1, 2, 2, 2)), "initial": [0.5, 0.5]}
    one_step = structure(rewards=rewards, private_rewards=private, class_rewards=by_class, horizon=1, **moving)
    exogenous = structure(rewards=rewards, private_rewards=private, class_rewards=by_class, **still)
    common = structure(rewards=np.ones((1, 2, 3, 4)), class_rewards=by_class, **moving)
    for game, label in ((one_step, "C2"), (exogenous, "C2"), (common, "C1")):
        assert game.potential_proof().reason.startswith(label)
        assert residual(game, rng) < 1e-12
    for game in (structure(rewards=rewards, **moving), structure(class_rewards=rng.normal(size=(1, 1, 3, 2)))):
        assert game.potential_proof() is None
        assert residual(game, rng) > 1e-3
    assert counting_congestion_game().potential_proof() is None
    assert counting_congestion_game(horizon=1).potential_proof().reason.startswith("C2")
    assert "single" in counting_congestion_game(num_agents=1).potential_proof().reason


@pytest.mark.parametrize("ending", ["npz", "json"])
@pytest.mark.parametrize("classes", [EveryCount(), LargestCount((1, 2)), LargestCount(())])
def test_files_bring_back_the_same_game(tmp_path, ending, classes):
    rng = np.random.default_rng(7)
    game = random_game(rng, agents=3, actions=3, states=2, steps=2, constraints=1, classes=classes)
    save_game(game, tmp_path / f"game.{ending}")
    again = load_game(tmp_path / f"game.{ending}")
    assert isinstance(again, CountingGame)
    assert again.classes == classes
    policy = random_policy(game, rng, sharp=False)
    # A .json is read exactly, and rows of probabilities are divided by their exact sums before they are rounded.
    np.testing.assert_allclose(again.at(policy).values, game.at(policy).values, rtol=1e-13)
    np.testing.assert_allclose(again.at(policy).costs, game.at(policy).costs, rtol=1e-13)


def test_named_games_keep_their_names_in_files(tmp_path):
    save_game(counting_congestion_game(), tmp_path / "game.npz")
    again = load_game(tmp_path / "game.npz")
    assert again.action_names == (("A", "B", "C", "D"),) * 8
    assert again.state_names == ("safe", "unsafe")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rewards": np.ones((1, 1, 3))}, r"rewards has shape \[1, 1, 3\]; \[H or 1, S, A, n \+ 1\] is required"),
        ({"rewards": np.ones((1, 1, 3, 1))}, r"one entry for each number of agents"),
        ({"rewards": np.ones((3, 1, 3, 4))}, r"rewards has 3 steps; 1 .* or 2 is required"),
        ({"rewards": [[[[0, 1, np.nan, 2]] * 3]]}, r"rewards\[0, 0, 0, 2\] is nan"),
        ({"transition": np.ones((1, 1, 3, 1))}, r"transition has shape \[1, 1, 3, 1\]; \[1, 1, 2, 1\] is required"),
        ({"transition": [[[[0.9], [1.0]]]]}, r"transition\[h=0, s=0, class=0\] sums to 0.9; every row must sum to 1"),
        ({"transition": [[[[-1.0], [1.0]]]]}, r"transition\[h=0, s=0, class=0, entry=0\] is -1"),
        ({"costs": np.ones((1, 1, 2)), "thresholds": [1.0]}, r"costs has shape .* \[k, H or 1, 1, 2\] is required"),
        ({"costs": np.ones((1, 1, 1, 3)), "thresholds": [1.0]}, r"costs has shape .* \[1, 1, 1, 2\] is required"),
        ({"thresholds": [1.0]}, r"thresholds has shape \[1\]; costs has 0 constraints"),
        ({"private_rewards": np.ones((2, 1, 1, 3))}, r"private_rewards has shape .* \[3, 1, 1, 3\] is required"),
        ({"class_rewards": np.ones((1, 1, 3, 1))}, r"class_rewards has shape .* \[1, 1, 3, 2\] is required"),
        ({"initial": [0.5]}, r"initial sums to 0.5"),
        ({"initial": [0.5, 0.5]}, r"initial has shape \[2\]; \[1\] is required"),
        ({"horizon": 0}, r"horizon is 0"),
        ({"discount": 0.5}, r"exactly one of horizon"),
        ({"state_names": ("a", "b")}, r"states has 2 names; 1 are required"),
        ({"action_names": (("a", "b"),) * 3}, r"actions\[0\] has 2 names; 3 are required"),
        ({"action_names": (("a", "b", "c"),)}, r"actions has 1 names; 3 are required"),
    ],
)
def test_bad_tables_are_refused_with_coordinates(changes, message):
    with pytest.raises(GameError, match=message):
        structure(**changes)


@pytest.mark.parametrize("wrong", [(3, 1), (-1,), (np.inf,), ("a",), ((1,),)])
def test_bad_boundaries_are_refused(wrong):
    with pytest.raises(GameError, match="boundaries"):
        LargestCount(wrong)


def test_what_does_not_fit_is_refused():
    game = counting_congestion_game()
    with pytest.raises(PolicyError, match="the policy has 2 agents; the game has 8"):
        game.at(JointPolicy.uniform([(2, 2, 4)] * 2))
    with pytest.raises(GameError, match=r"4\^30 joint actions .* Work with the counting game itself"):
        counting_congestion_game(num_agents=30).to_joint()
    crowd = counting_congestion_game(num_agents=64, weights=range(8))
    different = crowd.random_policy(rng=np.random.default_rng(1))
    with pytest.raises(GameError, match=r"the counts of 8 actions .* Use fewer actions"):
        crowd.at(different)
    with pytest.raises(GameError, match="num_agents is 0"):
        counting_congestion_game(num_agents=0)
    with pytest.raises(GameError, match="cost_at is 'never'"):
        counting_congestion_game(cost_at="never")


# Agents who play one action for sure only shift the counts


def mostly_settled(game, rng, *, mixing):
    """A policy in which all but a few agents play one action for sure in every row."""
    tables = [np.eye(A)[rng.integers(A, size=(H, S))] for H, S, A in game.policy_shapes]
    for agent in rng.choice(game.num_agents, size=mixing, replace=False):
        tables[agent] = game.random_policy(rng=rng)[agent]
    return JointPolicy(tuple(tables))


@pytest.mark.parametrize("mixing", [0, 1, 2, 3])
@pytest.mark.parametrize("classes", [LargestCount((2, 4)), LargestCount((5,)), EveryCount()], ids=repr)
def test_shifted_counts_are_those_of_the_tables(mixing, classes):
    rng = np.random.default_rng(mixing)
    game = random_game(rng, agents=7, actions=3, states=2, steps=2, constraints=1, classes=classes)
    policy = mostly_settled(game, rng, mixing=mixing)
    position, expected = game.at(policy), game.to_joint().at(policy)
    for agent in range(game.num_agents):
        found, wanted = position.induced_cmdp(agent), expected.induced_cmdp(agent)
        for name in ("transition", "reward", "costs"):
            # Products with ones and sums with zeros are exact, but that rewards have two or three terms.
            exact = mixing == 0 and name != "reward"
            np.testing.assert_allclose(
                *np.broadcast_arrays(getattr(found, name), getattr(wanted, name)),
                rtol=0 if exact else 1e-12,
                atol=0 if exact else 1e-14,
            )


@pytest.mark.parametrize("mixing", [0, 1, 4])
def test_moves_keep_the_shift_right(mixing):
    rng = np.random.default_rng(mixing)
    game = random_game(rng, agents=6, actions=3, states=2, steps=2, constraints=1, classes=LargestCount((2, 3)))
    position = game.at(mostly_settled(game, rng, mixing=mixing))
    for turn in range(12):
        agent, table = turn % 6, mostly_settled(game, rng, mixing=turn % 4)[turn % 6]
        position = position.replace(agent, table)
        fresh = game.at(position.policy)
        assert np.array_equal(position.counts.pure.counts, fresh.counts.pure.counts)
        assert position.counts.pure.mixing == fresh.counts.pure.mixing
        for other in range(6):
            assert_same_cmdp(position.induced_cmdp(other), fresh.induced_cmdp(other))


def test_a_thousand_agents_are_counted_without_a_large_table():
    game = counting_congestion_game(num_agents=1_000)
    position = game.at(mostly_settled(game, np.random.default_rng(1), mixing=2))
    assert position.induced_cmdp(7).transition.shape == (2, 2, 4, 2)
    with pytest.raises(GameError, match="the counts of 4 actions"):
        game.at(game.random_policy(rng=np.random.default_rng(1)))


def test_agents_who_are_alike_are_counted_where_a_table_would_be_too_large():
    game = counting_congestion_game(num_agents=400)
    position = game.at(game.uniform_policy())
    assert position.slacks.shape == (1,)
    assert position.values == pytest.approx(np.full(400, position.values[0]))
    with pytest.raises(GameError, match="the counts of 4 actions"):
        game.at(game.random_policy(rng=np.random.default_rng(1)))


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_best_split_of_a_class_is_the_best_of_all_its_count_vectors(seed):
    rng = np.random.default_rng(seed)
    agents, actions = int(rng.integers(2, 7)), int(rng.integers(2, 5))
    rewards = rng.integers(-3, 4, size=(1, 1, actions, agents + 1)).astype(float)
    classes = LargestCount(tuple(sorted(rng.integers(0, agents + 2, size=2).tolist())))
    count = classes.number(agents, actions)
    game = structure(rewards=rewards, classes=classes, transition=np.ones((1, 1, count, 1)), horizon=1)
    vectors = EveryCount().samples(agents, actions)
    totals = (vectors * rewards[0, 0, np.arange(actions), vectors]).sum(axis=1)
    labels, best = classes.of(vectors), best_stages(game, Objective.WELFARE)
    for label, value in enumerate(best.by_class[0, 0].tolist()):
        inside = totals[labels == label]
        assert value == (pytest.approx(inside.max(), abs=1e-9) if len(inside) else -np.inf)
        if len(inside):
            chosen = best.vectors[best.of_class[0, 0, label]]
            assert chosen.sum() == agents
            assert (chosen * rewards[0, 0, np.arange(actions), chosen]).sum() == inside.max()
            assert classes.of(chosen) == label


def test_a_planner_splits_hundreds_of_agents_whose_count_vectors_would_fill_gigabytes():
    game = counting_congestion_game(num_agents=700)
    planner = game.planner(Objective.WELFARE)
    assert planner is not None
    assert len(planner.split(np.zeros((game.num_steps, game.num_states), dtype=np.int64))) == 700


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1))
def test_agents_with_the_same_rows_are_counted_by_binomials_with_the_same_numbers(seed):
    rng = np.random.default_rng(seed)
    agents, actions, states = int(rng.integers(12, 30)), int(rng.integers(2, 5)), 2
    classes = LargestCount(tuple(sorted(rng.integers(0, agents + 2, size=rng.integers(0, 4)).tolist())))
    num_classes = classes.number(agents, actions)
    game = CountingGame(
        rewards=rng.normal(size=(1, states, actions, agents + 1)),
        classes=classes,
        transition=rng.dirichlet(np.ones(states), size=(1, states, num_classes)),
        costs=rng.random((1, 1, states, num_classes)),
        thresholds=[1.0],
        initial=[0.5, 0.5],
        horizon=2,
    )
    same = rng.dirichlet(np.ones(actions), size=(2, states)) * (rng.random((2, states, actions)) < 0.8)
    same[..., 0] += same.sum(axis=-1) == 0
    same[0, 0] = 1 / actions  # somebody mixes
    tables = [same / same.sum(axis=-1, keepdims=True)] * agents
    for settled in rng.permutation(agents)[: rng.integers(0, 3)]:
        tables[settled] = np.eye(actions)[rng.integers(actions, size=(2, states))]
    agent, other = (int(each) for each in rng.choice(agents, size=2, replace=False))
    found = game.at(JointPolicy(tuple(tables))).induced_cmdp(agent)
    # Of agents of whom one differs in a last bit, tables are added up.
    tables[other] = np.where(tables[other] < 1, np.nextafter(tables[other], 0), tables[other])
    expected = game.at(JointPolicy(tuple(tables))).induced_cmdp(agent)
    np.testing.assert_allclose(found.transition, expected.transition, rtol=1e-12)
    np.testing.assert_allclose(found.costs, expected.costs, rtol=1e-12)
    np.testing.assert_allclose(found.reward, expected.reward, rtol=1e-12, atol=1e-12)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000))
def test_agents_who_are_alike_share_what_they_face_and_others_do_not(seed):
    rng = np.random.default_rng(seed)
    sizes = {"agents": 5, "actions": 2, "states": 2, "steps": 2, "constraints": 1}
    game = random_game(rng, **sizes, classes=LargestCount((2,)))
    kinds = rng.integers(0, 2, size=5)
    game = replace(game, private_rewards=rng.normal(size=(2, 1, 2, 2))[kinds])
    tables = [*np.eye(2)[rng.integers(0, 2, size=(2, 2, 2))], np.full((2, 2, 2), 0.5)]
    chosen = rng.integers(0, 3, size=5)
    position = game.at(JointPolicy(tuple(tables[each] for each in chosen)))
    for agent in rng.permutation(5).tolist():
        faced, fresh = position.induced_cmdp(agent), game.at(position.policy).induced_cmdp(agent)
        for name in ("reward", "costs", "averaged"):
            assert getattr(faced, name).tobytes() == getattr(fresh, name).tobytes()
        assert np.asarray(faced.transition).tobytes() == np.asarray(fresh.transition).tobytes()
        assert faced.entry_roundings == fresh.entry_roundings
    first, second = (int(each) for each in rng.choice(5, size=2, replace=False))
    alike = kinds[first] == kinds[second] and chosen[first] == chosen[second] < 2
    if alike or kinds[first] != kinds[second]:
        assert (position.induced_cmdp(first) is position.induced_cmdp(second)) == alike


def test_an_agent_alone_rounds_nothing_and_each_other_one_as_much_as_the_last():
    tally = own_counts(3, 6, np.arange(2))
    assert tally.roundings(1) == 0 < tally.roundings(2)
    assert tally.roundings(6) == 5 * tally.roundings(2)
