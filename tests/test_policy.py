"""Joint policies: tables that are checked once and never change, and the file that holds them."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bad_files import WRONG_VALUES, mutated, refused, write_json
from cmpg.equilibrium.certificate import certify
from cmpg.errors import FileError, PolicyError
from cmpg.files.containers import read_fields
from cmpg.files.policies import load_policy
from cmpg.policy import CompactTable, JointPolicy
from cmpg.scenarios import counting_congestion_game, grid_world_local, spectrum
from strategies import games, policies

SHAPES = [(2, 3, 2), (2, 1, 4)]


def same(one, other):
    return len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@settings(deadline=None, max_examples=25)
@given(st.data(), st.sampled_from(["json", "npz"]), st.booleans())
def test_policies_survive_both_containers(tmp_path_factory, data, ending, with_prices):
    game = data.draw(games(max_states=3, max_actions=3, max_horizon=3))
    policy = data.draw(policies(game))
    rng = np.random.default_rng(0)
    prices = rng.exponential(size=(game.num_agents, game.num_constraints)) if with_prices else None
    path = tmp_path_factory.mktemp("policy") / f"policy.{ending}"
    policy.save(path, multipliers=prices)
    again, found = load_policy(path)
    assert same(policy, again)
    assert all(not table.flags.writeable for table in again)
    assert same(JointPolicy.load(path), policy)
    if prices is None:
        assert found is None
    else:
        assert np.array_equal(found.reshape(prices.shape), prices)


def test_policies_keep_their_fingerprint(tmp_path):
    policy = JointPolicy.random(SHAPES, rng=np.random.default_rng(4))
    policy.save(tmp_path / "policy.json")
    assert load_policy(tmp_path / "policy.json")[0].fingerprint() == policy.fingerprint()


def test_a_policy_can_be_written_by_hand_in_thirds(tmp_path):
    fields = {
        "format": "cmpg-policy",
        "version": 1,
        "agent_0": [[["1/3", "2/3"], [0.1, 0.9]]],
        "multipliers": [["1/3"]],
    }
    path = write_json(tmp_path / "policy.json", fields)
    for exact in (False, True):  # fractions are read as they are written
        policy, prices = load_policy(path, exact=exact)
        assert policy[0].tolist() == [[[Fraction(1, 3), Fraction(2, 3)], [Fraction(1, 10), Fraction(9, 10)]]]
        assert prices.tolist() == [[Fraction(1, 3)]]


def test_exact_policies_are_written_exactly(tmp_path):
    exact = JointPolicy((np.array([[[Fraction(1, 3), Fraction(2, 3)]]], dtype=object),))
    exact.save(tmp_path / "policy.json")
    assert load_policy(tmp_path / "policy.json", exact=True)[0][0].tolist() == exact[0].tolist()
    exact.save(tmp_path / "policy.npz")
    assert load_policy(tmp_path / "policy.npz")[0][0].tolist() == [[[1 / 3, 2 / 3]]]


def mostly_certain(rng):
    """Large tables of which few rows mix, small ones, and one in which all rows mix."""
    shapes = [(4, 300, 5), (2, 3, 2), (3, 4, 3), (2, 20, 130)]
    tables = [np.eye(A)[rng.integers(A, size=(H, S))] for H, S, A in shapes]
    for table in tables[:2]:
        table[1, 2] = rng.dirichlet(np.ones(table.shape[2]))
    return JointPolicy((*tables, rng.dirichlet(np.ones(3), size=(20, 100))))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("ending", ["json", "npz"])
def test_either_version_of_the_file_holds_the_same_policy(tmp_path, ending, version):
    policy = mostly_certain(np.random.default_rng(5))
    path, multipliers = tmp_path / f"policy.{ending}", np.arange(5.0)[:, None]
    policy.save(path, multipliers=multipliers, version=version)
    found, prices = load_policy(path)
    assert read_fields(path)["version"] == version
    assert found.fingerprint() == policy.fingerprint()
    assert [type(table) for table in found.stored] == [type(table) for table in policy.stored]
    assert prices.tolist() == multipliers.tolist()
    for one, other in zip(load_policy(path, exact=True)[0].floats(), policy, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-15)  # rows are divided by their exact sums


def test_large_and_mostly_certain_tables_are_written_as_actions(tmp_path):
    policy = JointPolicy(mostly_certain(np.random.default_rng(6)).stored[:1])
    policy.save(tmp_path / "policy.npz")
    fields = read_fields(tmp_path / "policy.npz")
    assert fields["agent_0_actions"].dtype == np.int8
    assert fields["agent_0_mixed"].tolist() == [[1, 2]]
    policy.save(tmp_path / "policy.json")
    JointPolicy.uniform(SHAPES).save(tmp_path / "small.npz")
    assert [read_fields(tmp_path / name)["version"] for name in ("policy.json", "small.npz")] == [1, 1]


def test_thirds_stay_thirds_in_rows_that_mix(tmp_path):
    third = [Fraction(1, 3), Fraction(2, 3)]
    exact = JointPolicy((np.array([[third, [Fraction(0), Fraction(1)]]], dtype=object),))
    exact.save(tmp_path / "policy.json", version=2)
    assert load_policy(tmp_path / "policy.json", exact=True)[0][0].tolist() == exact[0].tolist()


COMPACT = {
    "format": "cmpg-policy",
    "version": 2,
    "num_actions": [2, 3],
    "agent_0_actions": [[1, 0]],
    "agent_0_mixed": [[0, 1]],
    "agent_0_rows": [[0.25, 0.75]],
    "agent_1_actions": [[2]],
}


def test_what_actions_say_of_rows_that_mix_does_not_count(tmp_path):
    policy, _ = load_policy(write_json(tmp_path / "policy.json", COMPACT))
    assert policy[0].tolist() == [[[0, 1], [0.25, 0.75]]]
    assert policy[1].tolist() == [[[0, 0, 1]]]
    certain = {"agent_0_rows": [[0, 1]], "agent_0_actions": [[1, 1]]}
    assert load_policy(write_json(tmp_path / "a.json", COMPACT | certain))[0][0].tolist() == [[[0, 1], [0, 1]]]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_actions": []}, "there must be an agent"),
        ({"num_actions": [2, 0]}, r"num_actions\[1\] is 0; a whole number from 1"),
        ({"num_actions": [2, 10**9]}, r"num_actions\[1\] is 1e\+09; a whole number from 1 to 32768"),
        ({"num_actions": [2, 2.5]}, r"num_actions\[1\] is 2.5; a whole number"),
        ({"num_actions": [2, 3, 4]}, "the field 'agent_2_actions' is missing"),
        ({"num_actions": 2}, "a plain list of whole numbers"),
        ({"agent_0_actions": [[2, 0]]}, "from 0 to 1"),
        ({"agent_0_actions": [[-1, 0]]}, "from 0 to 1"),
        ({"agent_0_actions": [1, 0]}, r"shape \[2\]; a table with 2 axes"),
        ({"agent_1_actions": [[]]}, "no empty axis"),
        ({"agent_0_mixed": [[1, 0]]}, "steps below 1"),
        ({"agent_0_mixed": [[0, 2]]}, "states below 2"),
        ({"agent_0_mixed": [[0, 1], [0, 0]], "agent_0_rows": [[1, 0]] * 2}, "ascending"),
        ({"agent_0_mixed": [[0, 1], [0, 1]], "agent_0_rows": [[1, 0]] * 2}, "each row once"),
        ({"agent_0_mixed": [0, 1]}, r"shape \[2\]; a table with 2 axes"),
        ({"agent_0_mixed": [[0, 1, 0]]}, "is required"),
        ({"agent_0_rows": [[0.5, 0.75]]}, "sums to 1.25"),
        ({"agent_0_rows": [[0.5, 0.25, 0.25]]}, r"\[1, 2\] is required"),
        ({"agent_1_mixed": [[0, 0]]}, "the field 'agent_1_rows' is missing"),
        ({"agent_1_rows": [[1, 0, 0]]}, "the field 'agent_1_mixed' is missing"),
        ({"agent_2_actions": [[0]]}, "unknown field 'agent_2_actions'"),
        ({"agent_0": [[[1, 0]]]}, "unknown field 'agent_0'"),
        ({"version": 3}, "reads version 1 and 2"),
    ],
)
def test_what_is_wrong_with_a_compact_file_is_a_file_error_with_its_path(tmp_path, changes, words):
    path = write_json(tmp_path / "policy.json", COMPACT | changes)
    with pytest.raises(FileError, match=words) as problem:
        load_policy(path)
    assert str(path) in str(problem.value)


def test_a_small_file_stands_for_no_table_beyond_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("cmpg.files.policies.memory_left", lambda: 40.0)
    with pytest.raises(FileError, match="the table of agent 1 would take"):
        load_policy(write_json(tmp_path / "policy.json", COMPACT | {"agent_1_actions": [[0, 1]]}))


@pytest.mark.parametrize("field", sorted(COMPACT))
def test_any_field_of_a_compact_file_may_hold_anything(tmp_path, field):
    for value in WRONG_VALUES:
        path = write_json(tmp_path / "policy.json", COMPACT | {field: value})
        for exact in (False, True):
            refused(lambda: load_policy(path, exact=exact), path)  # noqa: B023


GOOD = {
    "format": "cmpg-policy",
    "version": 1,
    "agent_0": [[[0.5, 0.5]]],
    "agent_1": [[[1, 0]]],
    "multipliers": [[0], [1]],
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"agent_0": [[[0.5, 0.6]]]}, r"agent_0\[h=0, s=0\] sums to 1.1"),
        ({"agent_1": [[[2, -1]]]}, r"agent_1\[h=0, s=0, entry=1\] is -1"),
        ({"agent_1": [[1, 0]]}, r"agent_1 has shape \[1, 2\]"),
        ({"agent_1": []}, r"agent_1 has shape \[0\]"),
        ({"agent_1": [[[1, 0], [1]]]}, "ragged"),
        ({"agent_1": "all"}, "agent_1 is 'all'"),
        ({"agent_1": [[["x", 0]]]}, r"agent_1\[0, 0, 0\] is 'x'"),
        ({"agent_3": [[[1, 0]]]}, "unknown field 'agent_3'"),
        ({"colour": "red"}, "unknown field 'colour'"),
        ({"multipliers": "none"}, "multipliers is 'none'"),
        ({"multipliers": [[0], [0, 1]]}, "ragged"),
        ({"format": "cmpg-game"}, "its format is 'cmpg-game'"),
        ({"version": 7}, "its version is 7"),
    ],
)
def test_what_is_wrong_with_a_policy_file_is_said_with_its_path(tmp_path, changes, words):
    path = write_json(tmp_path / "policy.json", GOOD | changes)
    with pytest.raises((FileError, PolicyError), match=words) as problem:
        load_policy(path)
    assert str(path) in str(problem.value)


def test_a_policy_file_without_agents(tmp_path):
    path = write_json(tmp_path / "policy.json", {"format": "cmpg-policy", "version": 1})
    with pytest.raises(FileError, match="the field 'agent_0' is missing"):
        load_policy(path)


@pytest.mark.parametrize("ending", ["json", "npz"])
def test_mutated_policy_files_raise_nothing_else(tmp_path, ending):
    rng = np.random.default_rng(1)
    JointPolicy.random(SHAPES, rng=rng).save(tmp_path / f"a.{ending}", multipliers=np.ones((2, 1)))
    data, path = (tmp_path / f"a.{ending}").read_bytes(), tmp_path / f"b.{ending}"
    refusals = 0
    for _ in range(250):
        path.write_bytes(mutated(data, rng))
        exact = bool(rng.integers(2))
        refusals += refused(lambda: load_policy(path, exact=exact), path)  # noqa: B023
    assert refusals > 150


@pytest.mark.parametrize("field", ["format", "version", "agent_0", "agent_1", "multipliers"])
def test_any_field_may_hold_anything(tmp_path, field):
    for value in WRONG_VALUES:
        path = write_json(tmp_path / "policy.json", GOOD | {field: value})
        for exact in (False, True):
            is_refused = refused(lambda: load_policy(path, exact=exact), path)  # noqa: B023
            assert is_refused or field == "multipliers" or value == [[[1.0]]]


def test_a_policy_must_fit_its_game():
    policy = JointPolicy.uniform(SHAPES)
    policy.check_fits(SHAPES)
    with pytest.raises(PolicyError, match="2 agents; the game has 1"):
        policy.check_fits(SHAPES[:1])
    with pytest.raises(PolicyError, match=r"policy\[1\] has shape \[2, 1, 4\]; \[2, 2, 4\]"):
        policy.check_fits([SHAPES[0], (2, 2, 4)])


def test_one_agent_moves_and_nobody_else():
    policy = JointPolicy.uniform(SHAPES)
    moved = policy.replace(1, np.eye(4)[np.zeros((2, 1), dtype=int)])
    assert moved[0] is policy[0]
    assert moved[1][:, :, 0].tolist() == [[1.0], [1.0]]
    assert policy[1][0, 0, 0] == 0.25
    with pytest.raises(PolicyError, match=r"policy\[1\] has shape"):
        policy.replace(1, [[[1.0]]])
    with pytest.raises(PolicyError, match=r"sums to 0\.9"):
        policy.replace(1, np.full((2, 1, 4), 0.225))


THIRDS = [[[Fraction(1, 3), Fraction(2, 3)]] * 3] * 2


def test_policies_are_read_in_rationals_or_in_floats():
    mixed = JointPolicy.uniform(SHAPES).replace(0, THIRDS)
    exact, floats = mixed.exact(), mixed.floats()
    assert exact[0] is mixed[0]
    assert exact[1].tolist() == [[[Fraction(1, 4)] * 4]] * 2
    assert floats[1] is mixed[1]
    assert floats[0].tolist() == [[[1 / 3, 2 / 3]] * 3] * 2
    assert not floats[0].flags.writeable
    assert floats.floats() is floats


def test_a_move_is_read_as_the_table_that_it_replaces():
    floats = JointPolicy.uniform(SHAPES)
    assert floats.replace(0, THIRDS)[0].dtype == object
    assert floats.move(0, THIRDS)[0].tolist() == [[[1 / 3, 2 / 3]] * 3] * 2
    moved = floats.exact().move(0, np.full(SHAPES[0], 0.5)).move(1, floats[1])
    assert all(isinstance(entry, Fraction) for table in moved for entry in table.ravel())
    assert floats.exact().move(0, THIRDS)[0].tolist() == THIRDS
    with pytest.raises(PolicyError, match=r"policy\[1\] has shape"):
        floats.move(1, THIRDS)


def test_a_moved_policy_has_the_fingerprint_of_a_fresh_one():
    start = JointPolicy.uniform(SHAPES)
    start.fingerprint()
    assert start.move(0, THIRDS).fingerprint() == JointPolicy((np.array(THIRDS, dtype=float), start[1])).fingerprint()


@pytest.mark.parametrize(
    "game",
    [spectrum(), grid_world_local(), counting_congestion_game(num_agents=4)],
    ids=lambda game: type(game).__name__,
)
def test_every_form_of_game_in_floats_reads_rationals_in_floats(game):
    drawn = game.random_policy(rng=np.random.default_rng(0)).exact()
    found, expected = game.at(drawn), game.at(drawn.floats())
    assert all(table.dtype == np.float64 for table in found.policy)
    assert found.values.dtype == found.costs.dtype == found.cost_rounding.dtype == np.float64
    assert np.array_equal(found.values, expected.values)
    assert np.array_equal(found.costs, expected.costs)
    certificate = certify(game, drawn)
    assert certificate.gains == pytest.approx(certify(game, drawn.floats()).gains, rel=1e-12)


def test_a_view_of_what_the_user_keeps_is_copied():
    kept = np.array([[[0.25, 0.75]]])
    policy = JointPolicy((np.broadcast_to(kept, (2, 3, 2)),))
    kept[:] = [1.0, 0.0]
    assert policy[0].tolist() == [[[0.25, 0.75]] * 3] * 2
    assert policy[0].strides[:2] == (0, 0)


def test_mixtures_are_row_by_row():
    one, other = JointPolicy.uniform(SHAPES), JointPolicy.random(SHAPES, rng=np.random.default_rng(2))
    mixed = one.mix(other, 0.25)
    for i in range(2):
        np.testing.assert_allclose(mixed[i], 0.75 * one[i] + 0.25 * other[i], rtol=1e-15)


def large(rng, *, mixing):
    """A table of 5,000 entries of which some rows mix."""
    table = np.eye(5)[rng.integers(5, size=(10, 100))]
    rows = rng.choice(1_000, size=mixing, replace=False)
    table.reshape(-1, 5)[rows] = rng.dirichlet(np.ones(5), size=mixing)
    return table


@pytest.mark.parametrize("mixing", [0, 1, 40])
def test_a_large_table_is_kept_small_and_comes_back_bit_for_bit(mixing):
    table = large(np.random.default_rng(mixing), mixing=mixing)
    policy = JointPolicy((table, np.full((1, 1, 2), 0.5)))
    kept = policy.stored[0]
    assert isinstance(kept, CompactTable)
    assert kept.actions.dtype == np.int8
    assert len(kept.mixed) == mixing
    assert policy[0].tobytes() == table.tobytes()
    assert not policy[0].flags.writeable
    assert policy.shapes == ((10, 100, 5), (1, 1, 2))
    assert f"{mixing + 1:,} of 1,001 rows mix" in repr(policy)
    assert len(pickle.dumps(policy)) < 2_000 + 60 * mixing


def test_a_table_that_mixes_everywhere_stays_as_it_is():
    table = np.random.default_rng(0).dirichlet(np.ones(5), size=(10, 100))
    assert isinstance(JointPolicy((table,)).stored[0], np.ndarray)


def test_the_same_probabilities_have_the_same_fingerprint_however_they_are_kept():
    table = large(np.random.default_rng(3), mixing=7)
    policy = JointPolicy((table,))
    plain = JointPolicy.uniform(policy.shapes)
    object.__setattr__(plain, "stored", (table,))
    assert policy.fingerprint() == plain.fingerprint()
    other = table.copy()
    other[3, 7] = np.roll(table[3, 7], 1)
    assert policy.fingerprint() != policy.replace(0, other).fingerprint() == JointPolicy((other,)).fingerprint()


def test_compact_tables_are_read_exactly_and_mixed_as_any_others():
    rng = np.random.default_rng(5)
    one, other = (large(rng, mixing=3) for _ in range(2))
    policy = JointPolicy((one,))
    assert policy.exact()[0].dtype == object
    np.testing.assert_allclose(policy.exact().floats()[0], one, rtol=1e-15)
    np.testing.assert_array_equal(policy.mix(JointPolicy((other,)), 0.25)[0], 0.75 * one + 0.25 * other)
    assert policy.move(0, other)[0].tobytes() == other.tobytes()
    assert policy.exact().move(0, JointPolicy((other,)).stored[0])[0].dtype == object


@pytest.mark.parametrize(
    ("actions", "mixed", "rows", "problem"),
    [
        ([[0, 2]], [], np.zeros((0, 2)), "actions outside of 0, …, 1"),
        ([[0, -1]], [], np.zeros((0, 2)), "actions outside of 0, …, 1"),
        ([[0, 1]], [2], [[0.5, 0.5]], "rows that it does not have"),
        ([[0, 1]], [0], [[0.5, 0.4]], "sums to 0.9"),
        ([[0, 1]], [0], [[1.0]], "shape"),
    ],
)
def test_a_compact_table_is_checked_too(actions, mixed, rows, problem):
    table = CompactTable(np.array(actions, dtype=np.int8), 2, np.array(mixed, dtype=np.int64), np.array(rows))
    with pytest.raises(PolicyError, match=problem):
        JointPolicy((table,))


def test_agents_with_tables_of_one_shape_share_the_uniform_one():
    policy = JointPolicy.uniform([(2, 3, 2), (1, 1, 4), (2, 3, 2)])
    assert policy.stored[0] is policy.stored[2]
    assert policy.shapes == ((2, 3, 2), (1, 1, 4), (2, 3, 2))


def test_potentials_are_counted_from_the_policy_that_always_plays_the_first_action():
    policy = JointPolicy.reference([(2, 3, 4), (2, 3, 4), (1, 1, 2)])
    assert policy.shapes == ((2, 3, 4), (2, 3, 4), (1, 1, 2))
    assert policy.stored[0] is policy.stored[1]
    for table in policy:
        assert (table[..., 0] == 1).all()
        assert not table[..., 1:].any()
