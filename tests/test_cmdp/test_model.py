"""CMDPs: what they accept, what policies are worth in them, and the occupancy lemmas of the paper's appendix."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cmdps import cmdps, dense_transition, every_step, exact_costs, exact_discounted_costs, random_policy

from cmpg.arrays import exact_distributions, frozen, to_exact
from cmpg.cmdp.evaluation import evaluate, occupancy, policy_from_occupancy, stationary_values
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.response import cost_margins
from cmpg.errors import GameError, PolicyError

SEEDS = st.integers(0, 2**32 - 1)


def tables(**changes):
    """Two states, two actions, three steps, one constraint, everything stationary."""
    given_tables = {
        "transition": [[[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.25, 0.75]]]],
        "reward": [[[1.0, 0.0], [0.0, 2.0]]],
        "costs": [[[[0.0, 1.0], [1.0, 0.0]]]],
        "thresholds": [1.0],
        "initial": [1.0, 0.0],
        "horizon": 3,
    }
    return given_tables | changes


# --- Evaluation -------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(discounted=False, max_states=4, max_horizon=4, scales=(1.0, 1e9, 1e-9)), seed=SEEDS)
def test_costs_are_within_the_promised_rounding_of_the_exact_ones(cmdp, seed):
    policy = random_policy(cmdp, np.random.default_rng(seed))
    costs, exact = evaluate(cmdp, policy).costs, exact_costs(cmdp, policy)
    for j in range(cmdp.num_constraints):
        size = abs(exact[j]) if cmdp.nonnegative[j] else Fraction(float(cmdp.sizes[1 + j]))
        assert abs(Fraction(float(costs[j])) - exact[j]) <= Fraction(cmdp.rounding) * size


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(sparse=False), seed=SEEDS)
def test_dense_and_sparse_are_the_same_process(cmdp, seed):
    policy = random_policy(cmdp, np.random.default_rng(seed))
    matrices = [sp.csr_array(step.reshape(-1, cmdp.num_states)) for step in cmdp.transition]
    sparse = replace(cmdp, transition=matrices, trusted=False)
    assert sparse.is_sparse
    one, other = evaluate(cmdp, policy), evaluate(sparse, policy)
    assert other.value == pytest.approx(one.value, rel=1e-12, abs=1e-12)
    assert other.costs == pytest.approx(one.costs, rel=1e-12, abs=1e-12)
    assert occupancy(sparse, policy) == pytest.approx(occupancy(cmdp, policy), abs=1e-11)


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(discounted=False), seed=SEEDS)
def test_stationary_data_mean_the_same_at_every_step(cmdp, seed):
    policy = random_policy(cmdp, np.random.default_rng(seed))
    spelled_out = replace(
        cmdp,
        transition=dense_transition(cmdp),
        reward=every_step(cmdp, cmdp.reward),
        costs=np.broadcast_to(cmdp.costs, (cmdp.num_constraints, *cmdp.policy_shape)),
        trusted=False,
    )
    assert evaluate(spelled_out, policy).value == pytest.approx(evaluate(cmdp, policy).value, rel=1e-12, abs=1e-12)


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(discounted=True, max_states=5), seed=SEEDS)
def test_discounted_values_are_the_limit_of_long_sums(cmdp, seed):
    policy = random_policy(cmdp, np.random.default_rng(seed))
    flow = np.einsum("sa,sat->st", policy[0], dense_transition(cmdp)[0])
    for table, found in zip((cmdp.reward, *cmdp.costs), stationary_values(cmdp, policy[0]).T, strict=True):
        stage = (policy[0] * table[0]).sum(axis=1)
        to_go = np.zeros(cmdp.num_states)
        for _ in range(4000):
            to_go = stage + cmdp.discount * flow @ to_go
        assert found == pytest.approx(to_go, rel=1e-10, abs=1e-10)


@settings(deadline=None, max_examples=15)
@given(cmdp=cmdps(discounted=True, max_states=3, max_actions=2), seed=SEEDS)
def test_discounted_costs_are_within_the_promised_rounding(cmdp, seed):
    policy = random_policy(cmdp, np.random.default_rng(seed))
    exact = exact_discounted_costs(cmdp, policy)
    found = evaluate(cmdp, policy).costs
    for cost, true_cost, margin in zip(found, exact, cost_margins(cmdp), strict=True):
        assert abs(Fraction(float(cost)) - true_cost) <= Fraction(float(margin))


# --- The appendix's occupancy lemmas ----------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(), seed=SEEDS)
def test_values_are_linear_in_the_occupancy(cmdp, seed):
    policy = random_policy(cmdp, np.random.default_rng(seed))
    visits, judged = occupancy(cmdp, policy), evaluate(cmdp, policy)
    scale = float(cmdp.sizes.max())
    assert (visits * cmdp.reward).sum() == pytest.approx(judged.value, abs=1e-11 * scale)
    for cost, found in zip(cmdp.costs, judged.costs, strict=True):
        assert (visits * cost).sum() == pytest.approx(found, abs=1e-11 * scale)


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(), seed=SEEDS)
def test_occupancies_satisfy_their_recursion(cmdp, seed):
    policy = random_policy(cmdp, np.random.default_rng(seed))
    visits, transition = occupancy(cmdp, policy), dense_transition(cmdp)
    arrivals = np.einsum("hsa,hsat->ht", visits, transition)
    if cmdp.discount is None:
        expected = np.concatenate([cmdp.initial[None], arrivals[:-1]])
        assert visits.sum(axis=(1, 2)) == pytest.approx(np.ones(cmdp.num_steps))
    else:
        expected = cmdp.initial + cmdp.discount * arrivals
        assert visits.sum() == pytest.approx(1 / (1 - cmdp.discount))
    assert visits.sum(axis=2) == pytest.approx(expected, abs=1e-11 / (1 - (cmdp.discount or 0.0)))


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(), seed=SEEDS)
def test_a_mean_of_occupancies_is_the_occupancy_of_one_policy(cmdp, seed):
    """Convexity, and the rule that turns the mean into a policy with the mean of all values."""
    rng = np.random.default_rng(seed)
    policies = [random_policy(cmdp, rng, rough=False) for _ in range(3)]
    weights = rng.dirichlet(np.ones(3))
    mean = sum(weight * occupancy(cmdp, policy) for weight, policy in zip(weights, policies, strict=True))
    mixed = policy_from_occupancy(mean, np.full(cmdp.policy_shape, 1 / cmdp.num_actions))
    scale = 1e-11 / (1 - (cmdp.discount or 0.0))
    assert occupancy(cmdp, mixed) == pytest.approx(mean, abs=scale)
    values = [evaluate(cmdp, policy).value for policy in policies]
    assert evaluate(cmdp, mixed).value == pytest.approx(float(weights @ values), abs=scale * float(cmdp.sizes[0] + 1))


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(), seed=SEEDS)
def test_a_policy_comes_back_from_its_occupancy_where_it_is_visited(cmdp, seed):
    rng = np.random.default_rng(seed)
    policy, filling = random_policy(cmdp, rng), random_policy(cmdp, rng)
    visits = occupancy(cmdp, policy)
    back = policy_from_occupancy(visits, filling)
    visited = visits.sum(axis=2) > 1e-300
    assert back[visited] == pytest.approx(policy[visited], abs=1e-12)
    assert (back[~visited] == filling[~visited]).all()


def test_unreachable_states_keep_the_given_rows():
    cmdp = CMDP(**tables(transition=[[[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]]]))
    filling = np.zeros((3, 2, 2))
    filling[..., 1] = 1.0
    policy = policy_from_occupancy(occupancy(cmdp, np.full((3, 2, 2), 0.5)), filling)
    assert policy[:, 0].tolist() == [[0.5, 0.5]] * 3
    assert policy[:, 1].tolist() == [[0.0, 1.0]] * 3


# --- Ownership and sizes ----------------------------------------------------------------------------------------------


def test_stationary_data_are_not_copied():
    transition = np.array(tables()["transition"])
    transition.setflags(write=False)
    cmdp = CMDP(**tables(transition=transition, horizon=1000))
    assert cmdp.transition is transition
    assert np.shares_memory(cmdp.matrix(999), transition)


def test_what_the_user_keeps_stays_the_users():
    transition = np.array(tables()["transition"])
    matrix = sp.csr_array(transition.reshape(4, 2))
    dense, sparse = CMDP(**tables(transition=transition)), CMDP(**tables(transition=matrix))
    transition[0, 0, 0] = matrix.data[:2] = [0.75, 0.25]
    assert dense.transition[0, 0, 0].tolist() == [0.5, 0.5]
    assert sparse.transition[0].toarray()[0].tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        sparse.transition[0].data[0] = 1.0


@pytest.mark.parametrize("name", ["transition", "reward", "costs"])
def test_a_view_of_what_the_user_keeps_is_copied_but_not_spread(name):
    kept = np.array(tables()[name])
    wide = (*kept.shape[:-3], 1000, *kept.shape[-2:]) if name != "transition" else (1000, *kept.shape[1:])
    view = np.broadcast_to(kept, wide)
    cmdp = CMDP(**tables(**{name: view, "horizon": 1000}))
    owned = getattr(cmdp, name)
    assert np.array_equal(owned, view)
    assert owned.strides[-4 if name == "transition" else -3] == 0
    kept += 7
    assert np.array_equal(owned + 7, view)
    assert not np.shares_memory(owned, kept)


def test_a_slice_of_what_the_user_keeps_is_copied():
    kept = np.array([[[1.0, 0.0], [0.0, 2.0]]] * 2)
    cmdp = CMDP(**tables(reward=frozen(kept[:1])))
    kept[:] = 7.0
    assert cmdp.reward.tolist() == tables()["reward"]


def test_views_of_what_cannot_change_are_not_copied():
    given_away = frozen(np.array(tables()["reward"]))
    view = np.broadcast_to(given_away, (3, 2, 2))
    assert CMDP(**tables(reward=view)).reward is view
    from_bytes = np.frombuffer(given_away.tobytes()).reshape(1, 2, 2)
    assert CMDP(**tables(reward=from_bytes)).reward is from_bytes
    assert not np.shares_memory(CMDP(**tables(reward=frozen(np.frombuffer(bytearray(32)).reshape(1, 2, 2)))).reward, 0)


# --- Floats and Fractions ---------------------------------------------------------------------------------------------


def in_fractions(name):
    return exact_distributions(np.array(tables()[name])) if name == "transition" else to_exact(np.array(tables()[name]))


@pytest.mark.parametrize("name", ["transition", "reward", "costs", "thresholds", "initial"])
def test_fractions_are_rounded(name):
    mixed, floats = CMDP(**tables(**{name: in_fractions(name)})), CMDP(**tables())
    for field in ("transition", "reward", "costs", "thresholds", "initial"):
        assert getattr(mixed, field).dtype == np.float64
        assert np.array_equal(getattr(mixed, field), getattr(floats, field))


@pytest.mark.parametrize("time", [{"horizon": 3}, {"horizon": None, "discount": Fraction(9, 10)}])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_process_in_floats_reads_policy_and_discount_in_floats(time, sparse):
    transition = sp.csr_array(GOOD_ROWS.reshape(4, 2)) if sparse else [GOOD_ROWS]
    cmdp = CMDP(**tables(transition=transition, **time))
    thirds = [[[Fraction(1, 3), Fraction(2, 3)]] * 2] * cmdp.num_steps
    rounded = np.array(thirds, dtype=np.float64)
    for policy in (thirds, frozen(np.array(thirds))):
        found, expected = evaluate(cmdp, policy), evaluate(cmdp, rounded)
        assert type(found.value) is np.float64
        assert found.costs.dtype == np.float64
        assert (found.value, found.costs.tolist()) == (expected.value, expected.costs.tolist())
        assert np.array_equal(occupancy(cmdp, policy), occupancy(cmdp, rounded))


def test_fractions_beside_a_sparse_transition_are_rounded():
    matrix = sp.csr_array(GOOD_ROWS.reshape(4, 2))
    assert CMDP(**tables(transition=matrix, thresholds=[Fraction(1, 3)])).thresholds.tolist() == [1 / 3]


def test_rows_close_to_one_are_normalised():
    rows = [[[[0.5, 0.5 + 1e-10], [1.0, 0.0]], [[0.0, 1.0], [0.25, 0.75]]]]
    for transition in (rows, sp.csr_array(np.array(rows).reshape(4, 2))):
        cmdp = CMDP(**tables(transition=transition))
        assert abs(np.asarray(cmdp.matrix(0).sum(axis=1)).ravel()[0] - 1) < 1e-15


def test_reward_range_adds_up_over_steps():
    assert CMDP(**tables()).reward_range == 6.0
    assert CMDP(**tables(horizon=None, discount=0.5)).reward_range == 4.0
    assert CMDP(**tables(reward=[[[1, 0], [0, 2]], [[1, 1], [1, 1]], [[0, 0], [0, 5]]])).reward_range == 7.0


def test_sizes_and_signs():
    cmdp = CMDP(**tables(costs=[[[[0, 1], [1, 0]]], [[[-3, 1], [1, 0]]]], thresholds=[1, 1]))
    assert cmdp.sizes.tolist() == [6.0, 3.0, 9.0]
    assert cmdp.step_sizes.tolist() == [2.0, 1.0, 3.0]
    assert cmdp.nonnegative.tolist() == [True, False]


# --- Bad input --------------------------------------------------------------------------------------------------------

NAN, INF = float("nan"), float("inf")
GOOD_ROWS = np.array(tables()["transition"])[0]


def spoilt(row, *, index=(1, 0)):
    rows = GOOD_ROWS.copy()
    rows[index] = row
    return rows


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"reward": [[[1.0, NAN], [0.0, 2.0]]]}, r"reward\[0, 0, 1\] is nan; every entry must be a finite number"),
        ({"costs": [[[[0.0, 1.0], [INF, 0.0]]]]}, r"costs\[0, 0, 1, 0\] is inf"),
        ({"thresholds": [NAN]}, r"thresholds\[0\] is nan"),
        ({"initial": [0.5, 0.6]}, r"initial sums to 1.1; it must sum to 1"),
        ({"initial": [1.5, -0.5]}, r"initial\[entry=1\] is -0.5; a probability cannot be negative"),
        ({"initial": [1.0]}, r"initial has shape \[1\]; \[2\] is required"),
        ({"transition": [spoilt([-0.5, 1.5])]}, r"transition\[h=0, s=1, a=0, entry=0\] is -0.5"),
        (
            {"transition": [GOOD_ROWS, spoilt([0.5, 0.47]), GOOD_ROWS]},
            r"transition\[h=1, s=1, a=0\] sums to 0.97; every",
        ),
        ({"transition": [spoilt([NAN, 1.0])]}, r"transition\[0, 1, 0, 0\] is nan"),
        ({"transition": [[[[1.0, 0.0]], [[1.0, 0.0]]]]}, r"transition has shape \[1, 2, 1, 2\]; \[1, 2, 2, 2\] is"),
        ({"transition": GOOD_ROWS}, r"transition has shape \[2, 2, 2\]; \[H or 1, S, A, S\] is required"),
        ({"transition": [GOOD_ROWS] * 2}, r"transition has 2 steps; 1 \(the same at every step\) or 3 is required"),
        ({"reward": [[1.0, 0.0], [0.0, 2.0]]}, r"reward has shape \[2, 2\]; \[H or 1, S, A\]"),
        ({"reward": np.zeros((1, 2, 0))}, r"reward has shape \[1, 2, 0\]; .* no empty axis"),
        ({"reward": [[[1.0, 0.0], [0.0]]]}, r"reward is ragged"),
        ({"reward": [[["a", "b"], ["c", "d"]]]}, r"reward holds .* entries; numbers are required"),
        ({"reward": np.zeros((2, 2, 2))}, r"reward has 2 steps"),
        ({"costs": [[[[0.0], [1.0]]]]}, r"costs has shape \[1, 1, 2, 1\]; \[1, 1, 2, 2\] is required"),
        ({"costs": [[[0.0, 1.0], [1.0, 0.0]]]}, r"costs has shape \[1, 2, 2\]; \[k, H or 1, S, A\] is required"),
        ({"thresholds": [1.0, 2.0]}, r"thresholds has shape \[2\]; costs has 1 constraints, so \[1\] is required"),
        ({"horizon": 0}, r"horizon is 0; it must be a whole number of at least 1"),
        ({"horizon": 2.5}, r"horizon is 2.5; it must be a whole number"),
        ({"horizon": NAN}, r"horizon is nan"),
        ({"horizon": None}, r"exactly one of horizon .* and discount"),
        ({"discount": 0.9}, r"exactly one of horizon .* and discount"),
        ({"horizon": None, "discount": 1.0}, r"discount is 1.0; it must be at least 0 and less than 1"),
        ({"horizon": None, "discount": -0.1}, r"discount is -0.1"),
        ({"horizon": None, "discount": NAN}, r"discount is nan"),
        ({"horizon": None, "discount": "much"}, r"discount holds .* entries; numbers are required"),
    ],
)
def test_bad_tables_are_refused_with_coordinates(changes, text):
    with pytest.raises(GameError, match=text):
        CMDP(**tables(**changes))


@pytest.mark.parametrize(
    ("matrices", "text"),
    [
        (
            [GOOD_ROWS, spoilt([-0.5, 1.5]), GOOD_ROWS],
            r"transition\[h=1, s=1, a=0, next=0\] is -0.5; a probability must",
        ),
        ([spoilt([NAN, 1.0])], r"transition\[h=0, s=1, a=0, next=0\] is nan"),
        ([GOOD_ROWS, GOOD_ROWS, spoilt([0.5, 0.47])], r"transition\[h=2, s=1, a=0\] sums to 0.97; it must sum to 1"),
        ([GOOD_ROWS] * 2, r"transition has 2 steps"),
        ([np.ones((2, 2, 1))], r"transition\[h=0\] has shape \[4, 1\]; \[4, 2\] is required"),
    ],
)
def test_bad_sparse_transitions_are_refused_with_coordinates(matrices, text):
    with pytest.raises(GameError, match=text):
        CMDP(**tables(transition=[sp.csr_array(each.reshape(4, -1)) for each in matrices]))


def test_a_policy_of_the_wrong_shape_is_refused():
    cmdp = CMDP(**tables())
    for question in (evaluate, occupancy):
        with pytest.raises(PolicyError, match=r"policy has shape \[1, 2, 2\]; \[3, 2, 2\] is required"):
            question(cmdp, [[[1.0, 0.0], [1.0, 0.0]]])


def test_no_constraints_is_a_cmdp():
    cmdp = CMDP(**tables(costs=[], thresholds=[]))
    assert cmdp.num_constraints == 0
    assert evaluate(cmdp, np.full((3, 2, 2), 0.5)).costs.shape == (0,)


@pytest.mark.parametrize(("indices", "indptr"), [([0, 9], [0, 1, 2]), ([0, -1], [0, 1, 2]), ([0, 0], [0, 2, 1])])
def test_a_sparse_transition_whose_indices_lead_nowhere_is_refused(indices, indptr):
    matrix = sp.csr_array(np.ones((2, 1)))
    matrix.indices, matrix.indptr = np.array(indices, dtype=np.int32), np.array(indptr, dtype=np.int32)
    with pytest.raises(GameError, match=r"transition\[h=0\] is not a sparse matrix that can be read"):
        CMDP(
            transition=matrix,
            reward=[[[0.0, 1.0]]],
            costs=[],
            thresholds=[],
            initial=[1.0],
            horizon=2,
        )


def test_an_entry_that_stands_twice_in_a_read_only_matrix_is_summed():
    """Row 0 leads to state 1 by two entries of 0.25 each, and stays with 0.5."""
    twice = sp.csr_array(
        (np.array([0.5, 0.25, 0.25, 1.0]), np.array([0, 1, 1, 1]), np.array([0, 3, 4])), shape=(2, 2), copy=False
    )
    for array in (twice.data, twice.indices, twice.indptr):
        array.setflags(write=False)
    cmdp = CMDP(
        transition=[twice],
        reward=np.zeros((1, 2, 1)),
        costs=[[[[0.0], [1.0]]]],
        thresholds=[0.5],
        initial=[1, 0],
        horizon=2,
    )
    assert cmdp.transition[0].nnz == 3
    assert evaluate(cmdp, np.ones((2, 2, 1))).costs[0] == 0.5
