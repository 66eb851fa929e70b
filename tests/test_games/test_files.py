"""Game files: every form survives both containers, and every bad file ends in an error with the path."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from bad_files import WRONG_VALUES, header, members_of, mutated, refused, write_json, write_npz
from cmpg.equilibrium.certificate import certify
from cmpg.errors import FileError, GameError, UnsupportedError
from cmpg.files.games import load_game, save_game
from cmpg.games.claims import claim_of
from cmpg.games.counting.classes import EveryCount, LargestCount
from cmpg.games.counting.game import CountingGame
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.games.rationals import as_given, is_exact
from cmpg.policy import JointPolicy
from cmpg.scenarios import SCENARIOS
from cmpg.scenarios.paper import counter_example, counting_congestion_game, grid_world, grid_world_local
from strategies import games

TABLES = ("rewards", "costs", "thresholds", "initial")
JOINT_NAMES = ("agent_names", "state_names", "action_names", "constraint_names")
ENDINGS = st.sampled_from(["json", "npz"])


def dense(game):
    return np.stack([matrix.toarray() for matrix in game.transition]) if game.is_sparse else game.transition


def assert_same_joint(one, other):
    assert one.horizon == other.horizon
    assert one.discount == other.discount
    assert one.is_sparse == other.is_sparse
    np.testing.assert_array_equal(dense(one), dense(other))
    assert is_exact(one) == is_exact(other)
    for name in (*TABLES, "transition") if is_exact(one) else ():
        np.testing.assert_array_equal(as_given(one, name), as_given(other, name))
    for name in TABLES:
        assert getattr(one, name).dtype == getattr(other, name).dtype
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in JOINT_NAMES:
        assert getattr(one, name) == getattr(other, name)


@pytest.fixture
def there_and_back(tmp_path_factory):
    def act(game, ending, *, exact=False):
        path = tmp_path_factory.mktemp("games") / f"game.{ending}"
        save_game(game, path)
        return load_game(path, exact=exact)

    return act


@settings(deadline=None, max_examples=30)
@given(games(kinds=("any", "cooperative"), max_agents=3, max_states=4, max_actions=3, max_horizon=3), ENDINGS)
def test_joint_games_survive(tmp_path_factory, game, ending):
    path = tmp_path_factory.mktemp("games") / f"game.{ending}"
    save_game(game, path)
    assert_same_joint(load_game(path), game)


@settings(deadline=None, max_examples=25)
@given(games(kinds=("any",), max_agents=2, max_states=3, max_actions=2, max_horizon=2))
def test_exact_joint_games_survive_json(tmp_path_factory, game):
    exact = game.exact()
    path = tmp_path_factory.mktemp("games") / "game.json"
    save_game(exact, path)
    assert_same_joint(load_game(path, exact=True), exact)


@settings(deadline=None, max_examples=25)
@given(games(kinds=("any",), max_agents=2, max_states=3, max_actions=2, max_horizon=2))
def test_an_npz_read_exactly_holds_the_rationals_that_its_floats_are(tmp_path_factory, game):
    path = tmp_path_factory.mktemp("games") / "game.npz"
    save_game(game, path)
    assert_same_joint(load_game(path, exact=True), game.exact())


def test_discounted_games_survive(there_and_back):
    rng = np.random.default_rng(0)
    tables = {
        "rewards": rng.random((2, 1, 3, 2, 2)),
        "costs": rng.random((1, 1, 3, 2, 2)),
        "thresholds": [2.0],
        "initial": [0.5, 0.25, 0.25],
        "discount": 0.9,
    }
    transition = rng.dirichlet(np.ones(3), size=(1, 3, 2, 2))
    for given_as in (transition, [sp.csr_array(transition[0].reshape(-1, 3))]):
        game = JointGame(transition=given_as, **tables)
        for ending in ("json", "npz"):
            assert_same_joint(there_and_back(game, ending), game)


@pytest.mark.parametrize("ending", ["json", "npz"])
def test_names_survive_where_agents_have_different_numbers_of_actions(there_and_back, ending):
    game = JointGame(
        transition=np.ones((1, 1, 2, 3, 1)),
        rewards=np.zeros((2, 1, 1, 2, 3)),
        costs=(),
        thresholds=(),
        initial=[1],
        horizon=2,
        agent_names=("Ada", "Bo"),
        state_names=("here",),
        action_names=(("stay", "go"), ("stay", "go", "wait")),
        constraint_names=(),
    )
    again = there_and_back(game, ending)
    assert again.action_names == game.action_names
    assert again.agent_names == ("Ada", "Bo")
    assert again.constraint_names == ()


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_survives(tmp_path, name):
    small = {"congestion": {"num_agents": 3}, "robots": {"horizon": 20, "num_agents": 2}, "routing": {"num_agents": 3}}
    options = next((value for key, value in small.items() if name.startswith(key)), {})
    game = SCENARIOS[name].build(**options)
    save_game(game, tmp_path / "game.npz")
    again = load_game(tmp_path / "game.npz")
    assert type(again) is type(game)
    policy = JointPolicy.random(game.policy_shapes, rng=np.random.default_rng(5))
    assert np.array_equal(again.at(policy).values, game.at(policy).values)
    assert np.array_equal(again.at(policy).costs, game.at(policy).costs)
    assert again.agent_names == game.agent_names
    assert again.constraint_names == game.constraint_names


def local_game(*, alike=True):
    rng = np.random.default_rng(1)
    one = LocalAgent(
        transition=rng.dirichlet(np.ones(2), size=(1, 2, 2)),
        reward=rng.random((1, 2, 2)),
        uses=(rng.random((2, 2, 2, 3)) < 0.5).astype(float),
        initial=np.array([1.0, 0.0]),
        costs=rng.random((1, 1, 2, 2)),
    )
    two = LocalAgent(
        transition=one.transition, reward=rng.random((2, 2, 2)), uses=one.uses, initial=[0, 1], costs=one.costs
    )
    other = LocalAgent(
        transition=np.ones((1, 1, 2, 1)), reward=rng.random((1, 1, 2)), uses=np.ones((1, 1, 2, 3)), initial=[1]
    )
    return LocalGame(
        agents=(one, other, two) if alike else (one, other),
        delay=rng.random((2, 3, 4 if alike else 3)),
        load_costs=rng.random((1, 1, 3, 4 if alike else 3)),
        thresholds=[3.0],
        horizon=2,
        agent_names=("x", "y", "z") if alike else ("x", "y"),
        resource_names=("bridge", "road", "tunnel"),
        constraint_names=("load",),
    )


@pytest.mark.parametrize("ending", ["json", "npz"])
def test_local_games_survive_and_agents_who_are_alike_share_their_arrays(tmp_path, ending):
    game, path = local_game(), tmp_path / f"game.{ending}"
    save_game(game, path)
    again = load_game(path)
    assert again.agents[0].transition is again.agents[2].transition
    assert again.agents[0].uses is again.agents[2].uses
    assert again.agents[0].costs is again.agents[2].costs
    for one, other in zip(game.agents, again.agents, strict=True):
        assert np.array_equal(one.reward, other.reward)
        assert np.array_equal(one.initial, other.initial)
        for a, b in zip((*one.transition, *one.uses), (*other.transition, *other.uses), strict=True):
            assert np.array_equal(a.toarray(), b.toarray())
    assert (again.agent_names, again.resource_names, again.constraint_names) == (
        game.agent_names,
        game.resource_names,
        game.constraint_names,
    )
    policy = game.random_policy(rng=np.random.default_rng(2))
    assert np.array_equal(game.at(policy).values, again.at(policy).values)
    assert np.array_equal(game.at(policy).costs, again.at(policy).costs)


def test_the_local_form_has_the_fields_of_its_specification(tmp_path):
    save_game(local_game(), tmp_path / "game.npz")
    with np.load(tmp_path / "game.npz") as fields:
        per_agent = ["initial_{}", "reward_{}"]
        arrays = [
            "transition_{}_indptr",
            "transition_{}_indices",
            "transition_{}_data",
            "use_{}_indptr",
            "use_{}_indices",
        ]
        expected = {"format", "version", "form", "horizon", "thresholds", "num_actions", "delay", "load_cost", "like"}
        expected |= {"agents", "constraints", "resources", "cost_0"}
        expected |= {name.format(i) for i in range(3) for name in per_agent}
        expected |= {name.format(i) for i in range(2) for name in arrays}
        assert set(fields.files) == expected
        assert fields["like"].tolist() == [0, 1, 0]
        assert fields["transition_0_indptr"].shape == (1 * 2 * 2 + 1,)
        assert fields["use_0_indptr"].shape == (2 * 2 * 2 + 1,)


def written(game, path):
    """The fields of a game as JSON, to be changed and written again."""
    save_game(game, path)
    return json.loads(path.read_text())


def test_an_agent_may_be_like_a_later_one_and_likeness_is_passed_on(tmp_path):
    fields = written(local_game(alike=False), tmp_path / "game.json")
    shared = {name: value for name, value in fields.items() if "_0_" in name or name == "cost_0"}
    for name in shared:
        del fields[name]
    fields |= {name.replace("_0", "_3"): value for name, value in shared.items()}
    fields |= {
        "num_actions": [2, 2, 2, 2],
        "like": [2, 1, 3, 3],
        "initial_2": [0.5, 0.5],
        "initial_3": [0.25, 0.75],
        "reward_3": fields.pop("reward_0"),
        "delay": np.ones((1, 3, 5)).tolist(),
        "load_cost": np.ones((1, 1, 3, 5)).tolist(),
        "agents": ["a", "b", "c", "d"],
    }
    game = load_game(write_json(tmp_path / "game.json", fields))
    assert game.agents[0].transition is game.agents[2].transition is game.agents[3].transition
    assert game.agents[0].reward is game.agents[3].reward
    assert [member.initial.tolist() for member in game.agents] == [[1, 0], [1], [0.5, 0.5], [0.25, 0.75]]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"like": [2, 1, 0]}, "in a circle"),
        ({"like": [0, 1]}, "one agent, 0 to 2"),
        ({"like": [0, 1, 3]}, "one agent, 0 to 2"),
        ({"like": [0, 1, -1]}, "one agent, 0 to 2"),
        ({"like": [0, 1, 0.5]}, r"like\[2\] is 0.5"),
        ({"like": "me"}, "like is 'me'"),
        ({"cost_2": [[[[0, 0], [0, 0]]]]}, "agent 2 is like another one, and has 'cost_2'"),
        ({"num_actions": [2, 2, 3]}, r"num_actions\[2\] is 3"),
        ({"num_actions": [2, 2.5, 2]}, r"num_actions\[1\] is 2.5"),
        ({"num_actions": [2, 0, 2]}, "with an action for each agent"),
        ({"num_actions": []}, "with an action for each agent"),
        ({"initial_0": []}, "initial_0 has shape"),
        ({"initial_0": 1}, "initial_0 has shape"),
        ({"initial_0": [0.5, 0.4]}, "agent 0: initial sums to 0.9"),
        ({"reward_1": [[[1, 2, 3]]]}, r"reward_1 has shape \[1, 1, 3\]"),
        ({"reward_2": [[1, 2]]}, r"reward_2 has shape \[1, 2\]"),
        ({"transition_1_indptr": [0, 1, 2, 3]}, "do not fit together"),
        ({"transition_1_indices": [0, 7]}, "entries outside 0..0"),
        ({"transition_1_data": [1, 0.5]}, "agent 1: transition"),
        ({"transition_1_data": [1, "x"]}, "transition_1_data"),
        ({"use_1_indptr": [0, 3, 3]}, "do not fit together"),
        ({"use_1_indices": [0, 1, 2, 0, 1, 9]}, "entries outside 0..2"),
        ({"use_0_indptr": [0, 1], "use_0_indices": [0]}, "a multiple of 4 is required"),
        ({"delay": [[[0, 1, 2, 3]]]}, r"use_0_indices has entries outside 0\.\.0"),
        ({"delay": np.ones((2, 4, 4)).tolist()}, "load_costs has 3 resources"),
        ({"delay": [0]}, r"delay \[H or 1, E, n \+ 1\]"),
        ({"load_cost": [[[[0, 1, 2, 3]]]]}, "load_costs has 1 resources"),
        ({"load_cost": np.ones((1, 1, 3, 3)).tolist()}, "4 entries are required"),
        ({"thresholds": []}, r"so \[1\] is required"),
        ({"horizon": 0}, "at least 1"),
        ({"horizon": "three"}, "horizon is 'three'"),
        ({"agents": ["x"]}, "agents has 1 names"),
        ({"resources": "many"}, "resources is 'many'"),
        ({"initial_3": [1]}, "unknown field 'initial_3'"),
        ({"discount": 0.5}, "exactly one of horizon"),
    ],
)
def test_bad_local_files(tmp_path, changes, words):
    path = write_json(tmp_path / "game.json", written(local_game(), tmp_path / "good.json") | changes)
    with pytest.raises((FileError, GameError), match=words) as problem:
        load_game(path)
    assert str(problem.value).startswith(str(path))


def test_local_games_have_no_exact_mode(tmp_path):
    save_game(local_game(), tmp_path / "game.json")
    with pytest.raises(UnsupportedError, match="no exact mode") as problem:
        load_game(tmp_path / "game.json", exact=True)
    assert problem.value.form == "LocalGame"
    assert str(problem.value).startswith(str(tmp_path / "game.json"))


@pytest.mark.parametrize("ending", ["json", "npz"])
def test_names_of_own_states_and_actions_survive(there_and_back, ending):
    states, actions = (("home", "away"), ("only",), ("up", "down")), (("stay", "go"),) * 3
    game = replace(local_game(), state_names=states, action_names=actions)
    again = there_and_back(game, ending)
    assert (again.state_names, again.action_names) == (states, actions)


def test_half_a_character_is_no_name(tmp_path):
    record = written(counter_example(), tmp_path / "good.json") | {"agents": ["Ada", "\ud800"]}
    with pytest.raises(GameError, match="half of a character"):
        load_game(write_json(tmp_path / "game.json", record))


def counting_game(classes, *, discount=None, constraints=1, extra=True):
    rng = np.random.default_rng(6)
    count = classes.number(3, 2)
    return CountingGame(
        rewards=rng.random((1, 2, 2, 4)),
        classes=classes,
        transition=rng.dirichlet(np.ones(2), size=(1, 2, count)),
        costs=rng.random((constraints, 1, 2, count)),
        thresholds=np.ones(constraints),
        initial=[0.25, 0.75],
        horizon=2 if discount is None else None,
        discount=discount,
        private_rewards=rng.random((3, 1, 2, 2)) if extra else None,
        class_rewards=rng.random((1, 2, 2, count)) if extra else None,
        action_names=(("A", "B"),) * 3,
        state_names=("safe", "unsafe"),
    )


def assert_same_counting(one, other):
    assert is_exact(one) == is_exact(other)
    for name in ("transition", "private_rewards", "class_rewards", *TABLES):
        assert getattr(one, name).dtype == getattr(other, name).dtype
        np.testing.assert_array_equal(as_given(one, name), as_given(other, name))
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("classes", "horizon", "discount", *JOINT_NAMES):
        assert getattr(one, name) == getattr(other, name)


@pytest.mark.parametrize("ending", ["json", "npz"])
@pytest.mark.parametrize("classes", [EveryCount(), LargestCount((2,)), LargestCount(())])
def test_counting_games_survive(there_and_back, ending, classes):
    for options in ({}, {"discount": 0.5}, {"constraints": 0}, {"extra": False}):
        game = counting_game(classes, **options)
        assert_same_counting(there_and_back(game, ending), game)


def test_exact_counting_games_survive(there_and_back):
    exact = counting_game(LargestCount((2,))).exact()
    assert_same_counting(there_and_back(exact, "json", exact=True), exact)
    assert_same_counting(there_and_back(exact, "npz", exact=True), exact)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"boundaries": 3}, "boundaries has shape"),
        ({"boundaries": [3, 1]}, "ascending order"),
        ({"boundaries": [[1]]}, "boundaries has shape"),
        ({"boundaries": [1]}, "transition has shape"),
        ({"boundaries": ["x", 2]}, r"boundaries\[0\] is 'x'"),
        ({"rewards": [1]}, "rewards has shape"),
        ({"actions": ["A", "B"]}, r"actions\[0\] is 'A'"),
        ({"actions": 5}, "actions is 5"),
        ({"horizon": 2.5}, "horizon is 2.5"),
        ({"discount": 0.5}, "exactly one of horizon"),
        ({"colour": 1}, "unknown field 'colour'"),
    ],
)
def test_bad_counting_files(tmp_path, changes, words):
    good = written(counting_congestion_game(num_agents=3), tmp_path / "good.json")
    path = write_json(tmp_path / "game.json", good | changes)
    with pytest.raises((FileError, GameError), match=words) as problem:
        load_game(path)
    assert str(problem.value).startswith(str(path))


BY_HAND = {
    "format": "cmpg-game",
    "version": 1,
    "form": "joint",
    "horizon": 1,
    "initial": ["1/3", "2/3"],
    "transition": [[[[1, 0], [0, 1]], [["1/2", "1/2"], [0.1, 0.9]]]],
    "rewards": [[[[1, 2], [3, "1/3"]]]],
    "costs": [[[[0, 1], [0, 0.1]]]],
    "thresholds": ["1/7"],
}


def test_fractions_in_json_are_read_exactly(tmp_path):
    path = write_json(tmp_path / "game.json", BY_HAND)
    exact = load_game(path, exact=True)
    given = exact.rationals
    assert given["initial"].tolist() == [Fraction(1, 3), Fraction(2, 3)]
    assert given["transition"][0, 1].tolist() == [[Fraction(1, 2)] * 2, [Fraction(1, 10), Fraction(9, 10)]]
    assert given["rewards"][0, 0, 1, 1] == Fraction(1, 3)
    assert given["costs"][0, 0, 1, 1] == Fraction(1, 10)
    assert given["thresholds"].tolist() == [Fraction(1, 7)]
    also = load_game(path)  # fractions are read as they are written, with the option and without
    assert also.rationals["thresholds"].tolist() == [Fraction(1, 7)]
    for game in (also, exact):
        assert all(getattr(game, name).dtype == np.float64 for name in (*TABLES, "transition"))
        assert game.thresholds.tolist() == [1 / 7]


@pytest.mark.parametrize("number", ["\u0661/\u0663", "\uff11/\uff13", "1_0/30", "\u0661", "1_0"])
def test_a_number_that_other_readers_do_not_read_is_refused_and_not_rounded(tmp_path, number):
    path = write_json(tmp_path / "game.json", BY_HAND | {"thresholds": [number]})
    with pytest.raises(GameError, match="every entry must be a finite number"):
        load_game(path)


def test_a_threshold_that_is_met_exactly_is_met(tmp_path):
    third = BY_HAND | {"thresholds": ["1/3"], "initial": [1, 0]}
    game = load_game(write_json(tmp_path / "game.json", third), exact=True)
    at_the_limit = JointPolicy((np.array([[[Fraction(2, 3), Fraction(1, 3)]] * 2], dtype=object),))
    above = JointPolicy(
        (np.array([[[Fraction(2, 3) - Fraction(1, 10**30), Fraction(1, 3) + Fraction(1, 10**30)]] * 2]),)
    )
    assert certify(game, at_the_limit, exact=True).feasible
    assert not certify(game, above, exact=True).feasible


def test_one_exact_table_makes_the_whole_game_exact():
    mixed = JointGame(
        transition=[sp.csr_array(np.ones((2, 1)))],
        rewards=[[[[1, 2]]]],
        costs=[[[[0.5, 1]]]],
        thresholds=[Fraction(1, 3)],
        initial=[1],
        horizon=2,
    )
    assert set(mixed.rationals) == {"thresholds", "transition", "initial"}
    assert not mixed.is_sparse
    assert mixed.thresholds.tolist() == [1 / 3]
    assert is_exact(mixed)
    assert certify(mixed, mixed.uniform_policy(), exact=True).costs.tolist() == [1.5]


def test_sparse_json_games_can_be_read_exactly(tmp_path):
    game = grid_world(width=2, height=2, horizon=2, target=(1, 1), cell_rewards={(1, 1): 0.1}, threshold=0.1)
    fields = written(game, tmp_path / "game.json")
    fields["initial"] = ["1/3", *[0] * 14, "2/3"]
    fields["transition_data"] = ["1/1"] * len(fields["transition_data"])
    path = write_json(tmp_path / "game.json", fields)
    exact, also = load_game(path, exact=True), load_game(path)
    assert exact.rationals["initial"][0] == Fraction(1, 3)
    assert exact.transition.shape == (1, 16, 4, 4, 16)
    assert np.array_equal(exact.transition.astype(float).reshape(-1, 16), game.transition[0].toarray())
    assert np.array_equal(also.transition, exact.transition)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"form": "round"}, "its form is 'round'; one of joint, local, counting"),
        ({"form": ["joint"]}, "its form is"),
        ({"format": "cmpg-policy"}, "'cmpg-game' is required"),
        ({"version": 99}, "this release reads version 1"),
        ({"horizon": "three"}, "horizon is 'three'; a whole number is required"),
        ({"horizon": 0}, "horizon is 0; it must be a whole number of at least 1"),
        ({"horizon": True}, "horizon is True"),
        ({"horizon": 1.5}, "horizon is (1.5|'3/2')"),
        ({"horizon": None}, "give exactly one of horizon"),
        ({"discount": 0.9}, "give exactly one of horizon"),
        ({"discount": "high", "horizon": None}, "discount is 'high'"),
        ({"discount": [0.9], "horizon": None}, "discount has shape"),
        ({"discount": 1, "horizon": None}, "less than 1"),
        ({"initial": [1]}, r"initial has shape \[1\]; \[2\] is required"),
        ({"initial": [0.5, 0.4]}, "initial sums to 0.9"),
        ({"initial": [-1, 2]}, "cannot be negative"),
        ({"initial": "here"}, "initial is 'here'"),
        ({"initial": None}, "initial is None"),
        ({"transition": [[[[1, 0], [0, 1]], [[1, 0], [0.1, 0.8]]]]}, r"transition\[h=0, s=1, a=1\] sums to 0.9"),
        ({"transition": [[[[1, 0], [0, 1]], [[1, 0], [0]]]]}, "transition is ragged"),
        ({"transition": [[1, 0]]}, r"transition has shape \[1, 2\]"),
        ({"rewards": [[1, 2]]}, "one action axis per agent"),
        ({"rewards": [[[["a", 2], [3, 4]]]]}, r"rewards\[0, 0, 0, 0\] is 'a'"),
        ({"rewards": []}, "rewards has shape"),
        ({"costs": [[[[0, 1]]]]}, "costs has shape"),
        ({"thresholds": [1, 2]}, r"so \[1\] is required"),
        ({"thresholds": 1}, r"so \[1\] is required"),
        ({"agents": ["a", "b"]}, "agents has 2 names; 1 are required"),
        ({"agents": "a"}, "agents is 'a'; a list of names is required"),
        ({"states": [1, 2]}, r"states is \[1, 2\]; a list of names"),
        ({"actions": [["only"]]}, r"actions\[\d\] has"),
        ({"reward": [1]}, "unknown field 'reward'"),
        ({"transition_indptr": [0, 1]}, "'transition_indices' is missing"),
    ],
)
def test_bad_joint_files(tmp_path, changes, words):
    path = write_json(tmp_path / "game.json", BY_HAND | changes)
    for exact in (False, True):
        with pytest.raises((FileError, GameError), match=words) as problem:
            load_game(path, exact=exact)
        assert str(problem.value).startswith(str(path))


@pytest.mark.parametrize("field", ["form", "initial", "transition", "rewards"])
def test_missing_fields_are_named(tmp_path, field):
    fields = {name: value for name, value in BY_HAND.items() if name != field}
    with pytest.raises(FileError, match=f"{field}"):
        load_game(write_json(tmp_path / "game.json", fields))


def test_constraints_may_be_left_out_of_every_form(tmp_path):
    joint = {name: value for name, value in BY_HAND.items() if name not in ("costs", "thresholds")}
    assert load_game(write_json(tmp_path / "a.json", joint)).num_constraints == 0
    counting = written(counting_game(EveryCount(), constraints=0), tmp_path / "b.json")
    del counting["costs"], counting["thresholds"]
    assert load_game(write_json(tmp_path / "b.json", counting)).num_constraints == 0
    local = written(local_game(), tmp_path / "c.json")
    del local["load_cost"], local["thresholds"], local["cost_0"], local["constraints"]
    assert load_game(write_json(tmp_path / "c.json", local)).num_constraints == 0


SMALL = {
    "joint": counter_example(),
    "sparse": grid_world(width=2, height=1, horizon=2, target=(1, 0), cell_rewards={(1, 0): 3.0}),
    "local": local_game(),
    "grid": grid_world_local(width=2, height=2, horizon=2, target=(1, 0), cell_rewards={(1, 0): 3.0}),
    "counting": counting_congestion_game(num_agents=3),
}


@pytest.mark.parametrize("ending", ["json", "npz"])
@pytest.mark.parametrize("game", SMALL.values(), ids=SMALL.keys())
def test_mutated_game_files_raise_nothing_else(tmp_path, game, ending):
    rng = np.random.default_rng(7)
    save_game(game, tmp_path / f"a.{ending}")
    data, path = (tmp_path / f"a.{ending}").read_bytes(), tmp_path / f"b.{ending}"
    refusals = 0
    for _ in range(120):
        path.write_bytes(mutated(data, rng))
        refusals += refused(lambda: load_game(path), path)
    assert refusals > 60


@pytest.mark.parametrize("ending", ["json", "npz"])
@pytest.mark.parametrize("game", SMALL.values(), ids=SMALL.keys())
def test_truncated_game_files(tmp_path, game, ending):
    save_game(game, tmp_path / f"a.{ending}")
    data, path = (tmp_path / f"a.{ending}").read_bytes().rstrip(), tmp_path / f"b.{ending}"
    for length in np.linspace(0, len(data) - 1, 60).astype(int):
        path.write_bytes(data[:length])
        with pytest.raises(FileError, match=r"not valid JSON|not a whole .npz file"):
            load_game(path)


@pytest.mark.parametrize("game", SMALL.values(), ids=SMALL.keys())
def test_any_field_may_hold_anything(tmp_path, game):
    good = written(game, tmp_path / "good.json")
    path, refusals = tmp_path / "game.json", 0
    for field in good:
        for value in WRONG_VALUES:
            write_json(path, good | {field: value})
            refusals += refused(lambda: load_game(path, exact=field < "i"), path)  # noqa: B023
    assert refusals > 10 * len(good)


@pytest.mark.parametrize("game", SMALL.values(), ids=SMALL.keys())
def test_arrays_may_hold_anything(tmp_path, game):
    rng = np.random.default_rng(8)
    save_game(game, tmp_path / "a.npz")
    good = dict(np.load(tmp_path / "a.npz"))
    path, refusals = tmp_path / "b.npz", 0
    wild = [
        np.zeros(0),
        np.zeros((2, 2)),
        np.array(np.nan),
        np.array([np.inf, 1]),
        np.array("text"),
        np.array(["a"]),
        np.array(-1),
        np.array(2.5),
        np.full((3, 3), 2**62),
        np.array([True]),
        np.zeros((1, 0, 3)),
    ]
    for field, array in good.items():
        variants = [*wild, array[..., None], array.astype(str), array[:0]] if array.ndim else wild
        if array.dtype.kind in "if" and array.ndim:
            variants = [*variants, -array, array[:-1], array * 1e300, rng.permuted(array, axis=-1)]
        for variant in variants:
            np.savez(path, **(good | {field: variant}))
            refusals += refused(lambda: load_game(path), path)
    assert refusals > 5 * len(good)


def test_a_forged_array_is_refused_before_it_is_allocated(tmp_path):
    save_game(counter_example(), tmp_path / "a.npz")
    claim = header("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 100000, 100000, 100000, 100000), }")
    path = write_npz(tmp_path / "b.npz", members_of(tmp_path / "a.npz") | {"transition": claim})
    with pytest.raises(FileError, match=r"transition.npy promises 8\d{20} bytes and holds 0"):
        load_game(path)


def test_only_games_are_saved(tmp_path):
    with pytest.raises(FileError, match="a list has no file form"):
        save_game([], tmp_path / "game.npz")
    assert not list(tmp_path.iterdir())


THIRD = Fraction(1, 3)


@pytest.mark.parametrize("trusted", [False, True])
def test_rationals_of_a_table_that_has_changed_are_forgotten(trusted):
    """A proof must be about the game as it is, and not about the one that it was made from."""
    game = JointGame.from_matrices([[THIRD, 0], [0, 1]], cost=[[0, 0], [0, THIRD]], threshold=THIRD)
    free = replace(game, costs=np.zeros_like(game.costs), trusted=trusted)
    assert as_given(free, "costs").tolist() == np.zeros_like(game.costs).tolist()
    assert as_given(free, "rewards").ravel()[0] == THIRD
    both = JointPolicy(([[[0, 1]]], [[[0, 1]]]))
    assert certify(game, both, exact=True).feasible
    tighter = game.with_thresholds([np.nextafter(1 / 3, 0)])
    assert not certify(tighter, both).feasible
    assert certify(replace(tighter, thresholds=[THIRD], trusted=False), both).feasible
    again = replace(game, rationals=None)
    assert not is_exact(again)
    assert again.costs.dtype == game.costs.dtype == np.float64


def test_searches_see_floats_where_proofs_see_what_was_given():
    game = JointGame.from_matrices([[THIRD, 0], [0, 1]], cost=[[0, 0], [0, THIRD]], threshold=THIRD)
    position = game.at(game.uniform_policy())
    tables = (position.values, position.costs, position.induced_cmdp(0).reward, position.induced_cmdp(0).costs)
    assert {table.dtype for table in tables} == {np.dtype(np.float64)}
    claim = claim_of(game, game.uniform_policy(), [[0.0], [0.0]])
    assert claim.thresholds.tolist() == [THIRD]
    assert claim.tables.costs.ravel().tolist() == [0, 0, 0, THIRD]
