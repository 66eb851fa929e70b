"""Joint games against loops over joint actions in rational arithmetic, and every kind of bad input."""

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from cmpg.cmdp.evaluation import evaluate
from cmpg.errors import GameError, PolicyError
from cmpg.games.claims import claim_of
from cmpg.games.joint.averages import average_over
from cmpg.games.joint.game import JointGame
from cmpg.games.rationals import as_given
from cmpg.policy import JointPolicy
from cmpg.proof.exact import exact_costs, exact_values
from cmpg.scenarios import counter_example
from strategies import games, in_fractions, policies, samples

SMALL = {"kinds": ("any", "single"), "max_states": 4, "max_actions": 3, "max_horizon": 3, "max_constraints": 2}


def at_step(table, h):
    return table[0 if len(table) == 1 else h]


def loop_over_joint_actions(game, policy, tables):
    """Return the values of some tables [H or 1, S, *A], by loops, in the arithmetic of the (exact) game."""
    here = list(game.initial)
    totals = [Fraction(0)] * len(tables)
    for h in range(game.horizon):
        ahead = [Fraction(0)] * game.num_states
        for s, *joint in product(range(game.num_states), *map(range, game.num_actions)):
            weight = here[s] * prod(policy[i][h, s, a] for i, a in enumerate(joint))
            for x, table in enumerate(tables):
                totals[x] += weight * at_step(table, h)[s, *joint]
            for target in range(game.num_states):
                ahead[target] += weight * at_step(game.transition, h)[s, *joint, target]
        here = ahead
    return totals


def loop_for_induced_table(game, policy, table, agent):
    """Return Σ over the others' actions of their probability times the table: [H, S, A_i, …]."""
    induced = np.full((game.horizon, game.num_states, game.num_actions[agent], *table.shape[2 + game.num_agents :]), 0)
    induced = induced.astype(object)
    for h in range(game.horizon):
        for s, *joint in product(range(game.num_states), *map(range, game.num_actions)):
            weight = prod((policy[i][h, s, a] for i, a in enumerate(joint) if i != agent), start=Fraction(1))
            induced[h, s, joint[agent]] += weight * at_step(table, h)[s, *joint]
    return induced


def stretched(table, horizon):
    """Repeat a stationary table at every step."""
    return np.repeat(table, horizon, axis=0) if len(table) == 1 else table


@st.composite
def games_and_policies(draw, **options):
    game = draw(games(**{**SMALL, **options}))
    return game, draw(policies(game))


@settings(deadline=None, max_examples=30)
@given(games_and_policies())
def test_values_and_costs_are_those_of_a_loop_within_the_stated_rounding(drawn):
    game, policy = drawn
    position, exact = game.at(policy), in_fractions(game)
    sizes = [np.abs(reward) for reward in exact.rewards]
    by_loop = loop_over_joint_actions(exact, policy.exact(), [*exact.rewards, *exact.costs, *sizes])
    values, costs, bounds = np.split(np.array(by_loop), [game.num_agents, game.num_agents + game.num_constraints])
    for i in range(game.num_agents):
        assert abs(Fraction(position.values[i]) - values[i]) <= Fraction(position.induced_cmdp(0).rounding) * bounds[i]
    for j in range(game.num_constraints):
        allowed = Fraction(float(position.cost_rounding[j])) * (1 + Fraction(1, 10**9))
        assert abs(Fraction(position.costs[j]) - costs[j]) <= allowed


@settings(deadline=None, max_examples=20)
@given(games_and_policies(max_horizon=2))
def test_exact_games_are_judged_without_any_error(drawn):
    game, policy = drawn
    exact = in_fractions(game)
    claim = claim_of(game.exact(), policy.exact(), np.zeros((game.num_agents, game.num_constraints)))
    by_loop = loop_over_joint_actions(exact, policy.exact(), [*exact.rewards, *exact.costs])
    assert [*exact_values(claim, max_work=10**8), *exact_costs(claim, max_work=10**8)] == by_loop
    assert game.exact().at(policy).values == pytest.approx(game.at(policy).values, rel=1e-12, abs=1e-12)


@settings(deadline=None, max_examples=20)
@given(games_and_policies(max_horizon=2), st.data())
def test_the_induced_cmdp_averages_over_the_others(drawn, data):
    game, policy = drawn
    agent = data.draw(st.integers(0, game.num_agents - 1))
    exact, computed = in_fractions(game), game.at(policy).induced_cmdp(agent)
    dense = computed.transition
    if computed.is_sparse:
        dense = np.stack([matrix.toarray().reshape(*computed.reward.shape[1:], -1) for matrix in dense])
    pairs = [(dense, exact.transition), (computed.reward, exact.rewards[agent])]
    pairs += list(zip(computed.costs, exact.costs, strict=True))
    for found, table in pairs:
        by_loop = loop_for_induced_table(exact, policy.exact(), table, agent)
        assert np.abs(stretched(found, game.horizon) - by_loop).max() <= 1e-12
    assert np.array_equal(computed.thresholds, game.thresholds)


@settings(deadline=None, max_examples=25)
@given(games_and_policies(kinds=("any",), sparse=False))
def test_sparse_games_are_dense_games(drawn):
    game, policy = drawn
    matrices = [sp.csr_array(step.reshape(-1, game.num_states)) for step in game.transition]
    sparse = JointGame(
        transition=matrices,
        rewards=game.rewards,
        costs=game.costs,
        thresholds=game.thresholds,
        initial=game.initial,
        horizon=game.horizon,
    )
    assert sparse.is_sparse
    assert not game.is_sparse
    one, other = game.at(policy), sparse.at(policy)
    np.testing.assert_allclose(one.values, other.values, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(one.costs, other.costs, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(sparse.exact().transition, game.exact().transition)


@settings(deadline=None, max_examples=25)
@given(games_and_policies(max_states=8, max_actions=4, max_horizon=6))
def test_stationary_tables_are_the_same_tables_at_every_step(drawn):
    game, policy = drawn
    repeated = JointGame(
        transition=list(game.transition) * (game.horizon if len(game.transition) == 1 else 1)
        if game.is_sparse
        else stretched(game.transition, game.horizon),
        rewards=np.stack([stretched(reward, game.horizon) for reward in game.rewards]),
        costs=np.array([stretched(cost, game.horizon) for cost in game.costs]),
        thresholds=game.thresholds,
        initial=game.initial,
        horizon=game.horizon,
    )
    np.testing.assert_allclose(game.at(policy).values, repeated.at(policy).values, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(game.at(policy).costs, repeated.at(policy).costs, rtol=1e-12, atol=1e-12)


@settings(deadline=None, max_examples=30)
@given(games_and_policies(kinds=("any",), max_states=8, max_actions=4), st.data())
def test_a_replaced_policy_gives_the_position_of_a_fresh_start(drawn, data):
    game, policy = drawn
    position = game.at(policy)
    moved_agents = data.draw(st.lists(st.integers(0, game.num_agents - 1), max_size=4))
    for agent in moved_agents:
        asked = data.draw(st.integers(0, game.num_agents - 1))
        position.induced_cmdp(asked)
        position = position.replace(agent, data.draw(policies(game))[agent])
    fresh = game.at(position.policy)
    np.testing.assert_array_equal(position.values, fresh.values)
    np.testing.assert_array_equal(position.costs, fresh.costs)


@settings(deadline=None, max_examples=25)
@given(samples(max_states=4, max_horizon=4, rough=False), st.data())
def test_the_potential_of_a_potential_game_changes_by_what_the_mover_gains(sample, data):
    game = sample.game
    policy = data.draw(policies(game))
    agent = data.draw(st.integers(0, game.num_agents - 1))
    moved = policy.replace(agent, data.draw(policies(game))[agent])
    gain = game.at(moved).values[agent] - game.at(policy).values[agent]
    assert game.potential(moved) - game.potential(policy) == pytest.approx(gain, abs=1e-10)
    assert game.potential(JointPolicy.reference(game.policy_shapes)) == 0


@settings(deadline=None, max_examples=30)
@given(games_and_policies())
def test_values_stay_within_the_reward_ranges(drawn):
    game, policy = drawn
    difference = np.abs(game.at(policy).values - game.at(game.uniform_policy()).values)
    assert (difference <= game.reward_ranges * (1 + 1e-12) + 1e-12).all()


@settings(deadline=None, max_examples=15)
@given(games_and_policies(max_horizon=1, max_states=3, sparse=False), st.sampled_from([0.0, 0.5, 0.9]))
def test_discounted_values_are_the_limit_of_long_sums(drawn, discount):
    finite, policy = drawn
    game = JointGame(
        transition=finite.transition,
        rewards=finite.rewards,
        costs=finite.costs,
        thresholds=finite.thresholds,
        initial=finite.initial,
        discount=discount,
    )
    steps = 1 if discount == 0 else 400
    weights = discount ** np.arange(steps)
    shape = (-1, *(1 for _ in range(1 + game.num_agents)))
    long = JointGame(
        transition=finite.transition,
        rewards=np.stack([weights.reshape(shape) * reward for reward in finite.rewards]),
        costs=np.array([weights.reshape(shape) * cost for cost in finite.costs]),
        thresholds=finite.thresholds,
        initial=finite.initial,
        horizon=steps,
    )
    repeated = JointPolicy(tuple(np.repeat(table, steps, axis=0) for table in policy))
    np.testing.assert_allclose(game.at(policy).values, long.at(repeated).values, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(game.at(policy).costs, long.at(repeated).costs, rtol=1e-9, atol=1e-9)


@settings(deadline=None, max_examples=30)
@given(games_and_policies())
def test_the_joint_cmdp_of_one_planner_holds_every_policy(drawn):
    game, policy = drawn
    joint = policy[0]
    for table in policy.tables[1:]:
        joint = (joint[..., None] * table[:, :, None, :]).reshape(*joint.shape[:2], -1)
    planner = evaluate(game.joint_cmdp(), joint)
    assert planner.value == pytest.approx(game.at(policy).values.mean(), rel=1e-10, abs=1e-10)
    assert planner.costs == pytest.approx(game.at(policy).costs, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("certain", [(), (0,), (0, 1, 2)])
@pytest.mark.parametrize("mixed", [[], [1, 4]])
def test_averages_in_blocks_of_states_have_the_same_bits(monkeypatch, steps, certain, mixed):
    rng = np.random.default_rng(8)
    actions = (2, 3, 2)
    table = rng.random((steps, 5, *actions, 4))
    rows = [rng.dirichlet(np.ones(count), size=(3, 5)) for count in actions]
    for agent in certain:
        rows[agent] = np.eye(actions[agent])[rng.integers(actions[agent], size=(3, 5))]
        rows[agent][1, mixed] = 1 / actions[agent]  # at one step of some states
    policy = JointPolicy(rows)
    at_once = [average_over(table, policy, keep=agent) for agent in range(3)]
    monkeypatch.setattr("cmpg.games.joint.averages.BLOCK", 60)  # a state or two at a time
    for agent in range(3):
        np.testing.assert_array_equal(average_over(table, policy, keep=agent), at_once[agent])


def test_positions_of_large_games_share_two_cmdps_and_their_bits(monkeypatch):
    rng = np.random.default_rng(9)
    shape = (3, 2, 2, 2)
    game = JointGame(
        transition=rng.dirichlet(np.ones(3), size=shape)[None],
        rewards=rng.random((3, 1, *shape)),
        costs=rng.random((1, 1, *shape)),
        thresholds=[2.0],
        initial=[1, 0, 0],
        horizon=4,
    )

    def walk():
        position = game.at(game.uniform_policy())
        seen = []
        for agent in (2, 0, 1, 1, 2):
            seen += [position.induced_cmdp(i).transition for i in range(3)] + [position.costs]
            position = position.replace(agent, rng_table(agent, len(seen)))
        return seen, position

    def rng_table(agent, salt):
        return np.random.default_rng([agent, salt]).dirichlet(np.ones(2), size=(4, 3))

    all_kept, position = walk()
    assert len(position.recent) == 3
    monkeypatch.setattr("cmpg.games.joint.position.LARGE", 0)
    few_kept, position = walk()
    assert len(position.recent) == 2
    for one, other in zip(all_kept, few_kept, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_moved_agent_faces_the_same_cmdp_and_the_others_new_ones():
    game = counter_example()
    position = game.at(game.uniform_policy())
    faced = [position.induced_cmdp(agent) for agent in range(2)]
    moved = position.replace(0, np.eye(2)[:1][None])
    assert moved.induced_cmdp(0) is faced[0]
    assert moved.induced_cmdp(1) is not faced[1]
    np.testing.assert_array_equal(position.induced_cmdp(1).reward, faced[1].reward)


def test_averages_of_fractions_stay_fractions():
    third = Fraction(1, 3)
    table = np.array([[[[Fraction(1), Fraction(2)], [Fraction(3), Fraction(5)]]]], dtype=object)
    policy = JointPolicy((np.array([[[third, 2 * third]]], dtype=object),) * 2)
    assert average_over(table, policy, keep=0).tolist() == [[[Fraction(5, 3), Fraction(13, 3)]]]
    assert average_over(table, policy, keep=1).tolist() == [[[Fraction(7, 3), Fraction(4)]]]


def steps_of_a_ring(state, actions):
    """Three states in a ring; the agents agree on a direction, or the state stays."""
    ahead = (state + (1 if actions[0] else -1)) % 3 if actions[0] == actions[1] else state
    return {ahead: 0.75, (ahead + 1) % 3: 0.25}, [state, 2 * state - actions[1]], [float(actions[0])]


def test_a_game_from_a_function_has_its_numbers():
    game = JointGame.from_function(
        steps_of_a_ring, num_states=3, num_actions=(2, 2), thresholds=[1.0], initial=[1.0, 0.0, 0.0], horizon=3
    )
    for state, *actions in np.ndindex(3, 2, 2):
        ahead, rewards, costs = steps_of_a_ring(state, tuple(actions))
        row = np.array([ahead.get(target, 0.0) for target in range(3)])
        np.testing.assert_array_equal(as_given(game.exact(), "transition")[0, state, *actions].astype(float), row)
        np.testing.assert_array_equal(game.rewards[:, 0, state, *actions], rewards)
        np.testing.assert_array_equal(game.costs[:, 0, state, *actions], costs)


def test_a_function_may_give_sequences_and_no_costs_and_many_states_are_stored_sparsely():
    def forward(state, actions):
        return np.eye(50)[(state + actions[0]) % 50], [1.0], []

    game = JointGame.from_function(
        forward, num_states=50, num_actions=(2,), thresholds=[], initial=np.eye(50)[0], horizon=4
    )
    assert game.is_sparse
    assert game.num_constraints == 0
    assert game.at(game.uniform_policy()).values == pytest.approx([4.0])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (({7: 1.0}, [0, 0], [0]), r"step\(state=0, actions=\(0, 0\)\) leads to state 7; states are numbered 0 to 1"),
        (([1.0], [0, 0], [0]), r"the distribution of step\(state=0, actions=\(0, 0\)\) has shape \[1\]; \[2\]"),
        (({0: 1.0}, [0], [0]), r"the rewards of step\(state=0, actions=\(0, 0\)\) has shape \[1\]; \[2\]"),
        (({0: 1.0}, [0, 0], [0, 1]), r"the costs of step\(state=0, actions=\(0, 0\)\) has shape \[2\]; \[1\]"),
        (({0: 1.0}, [0, np.nan], [0]), r"the rewards of step\(state=0, actions=\(0, 0\)\)\[1\] is nan"),
        (({0: np.inf}, [0, 0], [0]), r"the distribution of step\(state=0, actions=\(0, 0\)\) is inf"),
        (({0: 0.9}, [0, 0], [0]), r"transition\[h=0, s=0, a=\(0, 0\)\] sums to 0.9"),
    ],
)
def test_what_a_function_must_not_return(answer, message):
    with pytest.raises(GameError, match=message):
        JointGame.from_function(
            lambda _state, _actions: answer,
            num_states=2,
            num_actions=(1, 2),
            thresholds=[1.0],
            initial=[0.5, 0.5],
            horizon=2,
        )


@pytest.mark.parametrize("sizes", [{"num_states": 0}, {"num_actions": (2, 0)}, {"num_actions": ()}])
def test_a_function_needs_states_and_actions(sizes):
    options = {"num_states": 2, "num_actions": (1, 2), "thresholds": [1.0], "initial": [0.5, 0.5], "horizon": 2}
    with pytest.raises(GameError, match="each must be at least 1"):
        JointGame.from_function(steps_of_a_ring, **{**options, **sizes})


def good_tables():
    return {
        "transition": np.full((1, 2, 2, 3, 2), 0.5),
        "rewards": np.zeros((2, 4, 2, 2, 3)),
        "costs": np.zeros((1, 1, 2, 2, 3)),
        "thresholds": np.array([1.0]),
        "initial": np.array([0.5, 0.5]),
        "horizon": 4,
    }


def poked(name, index, value):
    table = good_tables()[name]
    table[index] = value
    return {name: table}


def short_row(index):
    table = good_tables()["transition"]
    table[index] *= 0.97
    return {"transition": table}


BAD = [
    (poked("rewards", (1, 2, 0, 1, 2), np.nan), r"rewards\[1, 2, 0, 1, 2\] is nan; every entry must be a finite"),
    (poked("rewards", (0, 3, 1, 0, 0), -np.inf), r"rewards\[0, 3, 1, 0, 0\] is -inf"),
    (poked("costs", (0, 0, 1, 1, 1), np.nan), r"costs\[0, 0, 1, 1, 1\] is nan"),
    (poked("transition", (0, 1, 0, 2, 0), np.nan), r"transition\[0, 1, 0, 2, 0\] is nan"),
    (poked("transition", (0, 1, 0, 2), (-0.5, 1.5)), r"transition\[h=0, s=1, a=\(0, 2\), entry=0\] is -0.5; a prob"),
    (short_row((0, 1, 1, 2)), r"transition\[h=0, s=1, a=\(1, 2\)\] sums to 0.97; every row must sum to 1 .*Normalise"),
    ({"transition": np.full((1, 2, 2, 2, 2), 0.5)}, r"transition has shape \[1, 2, 2, 2, 2\]; \[1, 2, 2, 3, 2\]"),
    ({"transition": np.full((2, 2, 2, 3, 2), 0.5)}, r"transition has 2 steps; 1 \(the same at every step\) or 4"),
    ({"transition": np.ones((2, 2))}, r"transition has shape \[2, 2\]; \[H or 1, S, A_1, …, A_n, S\] is required"),
    ({"rewards": np.zeros((2, 1, 2, 2))}, r"rewards has shape \[2, 1, 2, 2\]; .*one action axis per agent"),
    ({"rewards": np.zeros((3, 1, 2, 2, 3))}, r"rewards has shape \[3, 1, 2, 2, 3\]; .*one action axis per agent"),
    ({"rewards": np.zeros((2, 3, 2, 2, 3))}, r"rewards has 3 steps; 1 .* or 4 is required"),
    ({"rewards": np.zeros((2, 1, 2, 0, 3))}, r"rewards has shape \[2, 1, 2, 0, 3\]; every agent needs an action"),
    ({"rewards": [[1.0], [1.0, 2.0]]}, r"rewards is ragged"),
    ({"rewards": "many"}, r"rewards holds .* entries; numbers are required"),
    ({"costs": np.zeros((1, 1, 2, 3, 2))}, r"costs has shape \[1, 1, 2, 3, 2\]; \[1, 1, 2, 2, 3\] is required"),
    ({"costs": np.zeros((1, 2, 2, 2, 3))}, r"costs has 2 steps; 1 .* or 4 is required"),
    ({"costs": np.zeros((1, 1, 2, 2))}, r"costs has shape \[1, 1, 2, 2\]; \[k, H or 1, S, A_1, …, A_n\] is required"),
    ({"thresholds": [1.0, 2.0]}, r"thresholds has shape \[2\]; costs has 1 constraints, so \[1\] is required"),
    ({"thresholds": [np.inf]}, r"thresholds\[0\] is inf"),
    ({"initial": [1.0]}, r"initial has shape \[1\]; \[2\] is required"),
    ({"initial": [0.5, 0.4]}, r"initial sums to 0.9; it must sum to 1"),
    ({"initial": [1.5, -0.5]}, r"initial\[entry=1\] is -0.5"),
    ({"horizon": 0}, r"horizon is 0; it must be a whole number of at least 1"),
    ({"horizon": 2.5}, r"horizon is 2.5; it must be a whole number"),
    ({"horizon": None}, r"exactly one of horizon .* and discount"),
    ({"discount": 0.5}, r"exactly one of horizon .* and discount"),
    ({"horizon": None, "discount": 1.0}, r"discount is 1.0; it must be at least 0 and less than 1"),
    ({"agent_names": ("one",)}, r"agents has 1 names; 2 are required"),
    ({"state_names": ("a", "b", "c")}, r"states has 3 names; 2 are required"),
    ({"action_names": (("x", "y"), ("x", "y"))}, r"actions\[1\] has 2 names; 3 are required"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_a_bad_table_is_refused_with_coordinates(change, message):
    JointGame(**good_tables())
    with pytest.raises(GameError, match=message):
        JointGame(**{**good_tables(), **change})


def sparse_tables(change):
    dense = good_tables()["transition"][0].reshape(12, 2)
    matrix = sp.csr_array(dense)
    matrix.data = matrix.data.copy()
    matrix.data[10] = change
    return {**good_tables(), "transition": [matrix]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (np.nan, r"transition\[h=0, s=0, a=\(1, 2\), next=0\] is nan; a probability must be finite"),
        (-0.5, r"transition\[h=0, s=0, a=\(1, 2\), next=0\] is -0.5"),
        (0.25, r"transition\[h=0, s=0, a=\(1, 2\)\] sums to 0.75; .* must sum to 1"),
    ],
)
def test_a_bad_sparse_transition_is_refused_with_coordinates(change, message):
    with pytest.raises(GameError, match=message):
        JointGame(**sparse_tables(change))


def test_sparse_transitions_of_the_wrong_shape_or_number_are_refused():
    matrix = sp.csr_array(np.full((12, 2), 0.5))
    with pytest.raises(GameError, match=r"transition\[h=0\] has shape \[11, 2\]; \[12, 2\] is required"):
        JointGame(**{**good_tables(), "transition": [sp.csr_array(np.full((11, 2), 0.5))]})
    with pytest.raises(GameError, match=r"transition has 2 steps; 1 .* or 4 is required"):
        JointGame(**{**good_tables(), "transition": [matrix, matrix]})


def test_a_policy_must_fit_the_game():
    game = JointGame(**good_tables())
    with pytest.raises(PolicyError, match="the policy has 1 agents; the game has 2"):
        game.at(JointPolicy.uniform(game.policy_shapes[:1]))
    with pytest.raises(PolicyError, match=r"policy\[1\] has shape \[4, 2, 2\]; \[4, 2, 3\] is required"):
        game.at(JointPolicy.uniform([game.policy_shapes[0], (4, 2, 2)]))
    rows = np.full((4, 2, 2), 0.5)
    rows[1, 0, 0] = 1.0
    with pytest.raises(PolicyError, match=r"policy\[0\]\[h=1, s=0\] sums to 1.5"):
        game.uniform_policy().replace(0, rows)


def test_a_game_without_constraints_and_names_that_are_kept():
    tables = {**good_tables(), "costs": [], "thresholds": []}
    game = JointGame(
        **tables, agent_names=["left", "right"], state_names="ab", action_names=["xy", "uvw"], constraint_names=[]
    )
    assert game.num_constraints == 0
    assert game.at(game.uniform_policy()).costs.shape == (0,)
    assert (game.agent_names, game.state_names) == (("left", "right"), ("a", "b"))
    assert game.action_names == (("x", "y"), ("u", "v", "w"))


def test_tables_cannot_be_changed_from_outside():
    tables = good_tables()
    game = JointGame(**tables)
    tables["rewards"][:] = 7.0
    assert not game.rewards.any()
    with pytest.raises(ValueError, match="read-only"):
        game.rewards[0, 0, 0, 0, 0] = 1.0


def test_a_view_of_what_the_user_keeps_is_copied_but_not_spread():
    kept = np.random.default_rng(0).random((1, 1, 2, 2, 3))
    game = JointGame(**{**good_tables(), "rewards": np.broadcast_to(kept, (2, 4, 2, 2, 3))})
    before = kept.copy()
    kept += 7
    assert np.array_equal(game.rewards, np.broadcast_to(before, game.rewards.shape))
    assert game.rewards.strides[:2] == (0, 0)


# --- Floats and Fractions ---------------------------------------------------------------------------------------------


def thirds(shape):
    """Play the first action with probability one third."""
    table = np.full(shape, Fraction(2, 3) / (shape[-1] - 1), dtype=object)
    table[..., 0] = Fraction(1, 3)
    return table


@settings(deadline=None, max_examples=20)
@given(games_and_policies())
def test_a_game_in_floats_reads_fractions_in_floats(drawn):
    game, policy = drawn
    exact, floats = game.at(policy.exact()), game.at(policy.exact().floats())
    assert all(table.dtype == np.float64 for table in exact.policy)
    assert np.array_equal(exact.values, floats.values)
    assert exact.values.dtype == exact.costs.dtype == exact.cost_rounding.dtype == np.float64
    assert np.array_equal(exact.costs, floats.costs)


def test_a_move_in_fractions_is_read_in_floats():
    game = JointGame(**{**good_tables(), "rewards": np.random.default_rng(0).random((2, 4, 2, 2, 3))})
    start, table = game.uniform_policy(), thirds(game.policy_shapes[0])
    moved = game.at(start).replace(0, table)
    assert moved.policy[0].dtype == moved.values.dtype == np.float64
    assert np.array_equal(moved.values, game.at(start.replace(0, table)).values)


def test_a_rational_discount_of_a_game_in_floats_is_rounded():
    tables = {**good_tables(), "horizon": None}
    tables["rewards"] = np.random.default_rng(0).random((2, 1, 2, 2, 3))
    rational, rounded = (JointGame(**{**tables, "discount": rate}) for rate in (Fraction(9, 10), 0.9))
    found = rational.at(rational.uniform_policy()).values
    assert found.dtype == np.float64
    assert np.array_equal(found, rounded.at(rounded.uniform_policy()).values)


@pytest.mark.parametrize("scale", [1e9, 1e-9])
def test_rewards_of_any_size_keep_their_relative_precision(scale):
    tables = good_tables()
    tables["rewards"] = scale * np.random.default_rng(0).random((2, 4, 2, 2, 3))
    game = JointGame(**tables)
    policy = game.random_policy(rng=np.random.default_rng(1))
    exact = exact_values(claim_of(game.exact(), policy, np.zeros((2, game.num_constraints))), max_work=10**8)
    for found, value in zip(game.at(policy).values, exact, strict=True):
        assert abs(Fraction(found) - value) <= Fraction(game.at(policy).induced_cmdp(0).rounding) * value


# One-shot games


def test_matrices_make_a_one_shot_game():
    first, second = np.array([[3.0, 0, 1], [5, 1, 2]]), np.array([[3.0, 5, 0], [0, 1, 7]])
    game = JointGame.from_matrices(first, second, cost=[[0, 0, 1], [0, 1, 1]], threshold=0.5, agent_names=("A", "B"))
    policy = JointPolicy(([[[0.25, 0.75]]], [[[0.5, 0.3, 0.2]]]))
    row, column = policy[0][0, 0], policy[1][0, 0]
    position = game.at(policy)
    np.testing.assert_allclose(position.values, [row @ first @ column, row @ second @ column])
    assert position.costs[0] == pytest.approx(row @ [[0, 0, 1], [0, 1, 1]] @ column)
    assert (game.horizon, game.names.agent(1), game.thresholds.tolist()) == (1, "B", [0.5])


def test_three_agents_may_share_a_payoff_and_have_several_constraints_or_none():
    payoff = np.arange(8.0).reshape(2, 2, 2)
    game = JointGame.from_matrices(payoff, cost=[payoff, 7 - payoff], threshold=[4, 5])
    assert (game.num_agents, game.num_constraints) == (3, 2)
    assert game.at(game.uniform_policy()).costs.tolist() == [3.5, 3.5]
    assert JointGame.from_matrices(payoff).num_constraints == 0


@pytest.mark.parametrize(
    ("payoffs", "more", "problem"),
    [
        ((), {}, "0 payoff matrices are given; at least one"),
        (([[1, 2], [3, 4]],) * 3, {}, "3 payoff matrices are given; 2 are required"),
        (([[1, 2], [3, 4]], [[1, 2]]), {}, r"payoffs\[1\] has shape \[1, 2\]; \[2, 2\]"),
        (([[1, 2], [3, 4]],), {"cost": [[0, 1], [1, 0]]}, "cost and threshold go together"),
        (([[1, 2], [3, 4]],), {"cost": [[0, 1]], "threshold": 1}, "costs has shape"),
    ],
)
def test_matrices_that_do_not_fit_are_refused(payoffs, more, problem):
    with pytest.raises(GameError, match=problem):
        JointGame.from_matrices(*payoffs, **more)


@settings(deadline=None, max_examples=20)
@given(games_and_policies(sparse=True), st.booleans())
def test_a_sparse_game_is_evaluated_by_the_chain_of_its_policy(drawn, pure):
    game, policy = drawn
    if pure:  # of each row, the first best action
        policy = JointPolicy(tuple(np.eye(table.shape[2])[table.argmax(axis=2)] for table in policy))
    position = game.at(policy)
    for agent in range(game.num_agents):
        cmdp = position.induced_cmdp(agent)
        apart = evaluate(cmdp, policy[agent])
        np.testing.assert_allclose(position.values[agent], apart.value, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(position.costs, apart.costs, rtol=1e-12, atol=1e-12)
        assert all(each.data.all() for each in cmdp.transition)  # what others never do leaves no zeros behind
