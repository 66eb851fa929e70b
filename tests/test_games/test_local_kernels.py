"""Compiled kernels of local games against their NumPy twins: positions, bounds, and turns at common multipliers."""

import pickle
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import cmpg
from cmpg.cmdp.planning import dual_bound
from cmpg.equilibrium.certificate import certify
from cmpg.games.local import position as position_module
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.games.local.kernels import compiled
from cmpg.games.local.loads import LoadTree, load_tables
from cmpg.games.local.sparse import PossibleLoads, SparseLoads
from cmpg.policy import CompactTable, JointPolicy
from cmpg.scenarios import charging, robots, routing
from cmpg.scenarios.moves import move_table, next_cells, standing_table

pytestmark = pytest.mark.skipif(compiled() is None, reason="there are no compiled kernels here, or they are not wanted")


@contextmanager
def kernels(name):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CMPG_KERNELS", name)
        yield


def random_agent(rng, *, horizon, resources, constraints):
    """Rows of any length, dense or sparse, stationary or not; reward and use by state or by action."""
    states, actions = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    steps = [int(rng.choice([1, horizon])) for _ in range(4)]
    rows = rng.dirichlet(np.ones(states), size=(steps[0], states, actions)) * (rng.random((states,)) < 0.7)
    rows[..., 0] += 1e-3
    uses = (rng.random((steps[1], states, actions, resources)) < 0.4).astype(float)
    reward = rng.normal(size=(steps[2], states, actions))
    costs = rng.random((constraints, steps[3], states, actions))
    if rng.random() < 0.4:
        uses, costs = np.repeat(uses[:, :, :1], actions, axis=2), np.repeat(costs[..., :1], actions, axis=3)
        reward = np.repeat(reward[..., :1], actions, axis=2)
    start = rng.random(states) * (rng.random(states) < 0.5) + 1e-9
    return LocalAgent(
        transition=rows / rows.sum(axis=-1, keepdims=True),
        reward=reward,
        uses=uses,
        initial=start / start.sum() if rng.random() < 0.5 else np.eye(states)[rng.integers(states)],
        costs=costs if rng.random() < 0.5 else None,
    )


def random_game(seed, *, max_agents=6):
    """Smooth and rough resources, with and without delays."""
    rng = np.random.default_rng(seed)
    agents, horizon = int(rng.integers(1, max_agents + 1)), int(rng.integers(1, 5))
    resources, constraints = int(rng.integers(1, 4)), int(rng.integers(0, 3))
    loads = np.arange(agents + 1)
    steps = [int(rng.choice([1, horizon])) for _ in range(2)]
    kinds = rng.integers(3, size=resources)
    shapes = np.stack([loads, loads * (loads - 1) / 2, np.maximum(loads - 1.0, 0) ** 1.5])[kinds]
    members = [random_agent(rng, horizon=horizon, resources=resources, constraints=constraints) for _ in range(agents)]
    kept = [members[int(rng.integers(len(members)))] if rng.random() < 0.3 else member for member in members]
    return LocalGame(
        agents=tuple(kept),
        delay=rng.random((steps[0], resources, 1)) * shapes * rng.choice([0.0, 1.0]),
        load_costs=rng.random((constraints, steps[1], resources, 1)) * shapes,
        thresholds=rng.random(constraints) * agents,
        horizon=horizon,
    )


def random_policy(game, seed):
    """Some agents mix, some play one action for sure."""
    rng = np.random.default_rng(seed)
    mixed = game.random_policy(rng=rng)
    certain = [np.eye(A)[rng.integers(A, size=(H, S))] for H, S, A in game.policy_shapes]
    return JointPolicy(tuple(one if rng.random() < 0.5 else other for one, other in zip(mixed, certain, strict=True)))


def idle(game):
    """Everybody plays the first action always."""
    return JointPolicy(tuple(CompactTable.certain(np.zeros((H, S)), A) for H, S, A in game.policy_shapes))


SEEDS = st.integers(0, 2**32 - 1)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS)
def test_a_position_is_the_twins(seed):
    game = random_game(seed)
    policy = random_policy(game, seed)
    position = game.at(policy)
    with kernels("numpy"):
        twin = replace(game).at(policy)
        assert isinstance(twin.loads, LoadTree)
        expected = [(twin.costs, twin.values, twin.rosenthal, twin.expected_load)]
        expected += [(twin.usage(i), twin.current(i), twin.induced_cmdp(i)) for i in range(game.num_agents)]
    assert isinstance(position.loads, SparseLoads)
    for found, wanted in zip(
        (position.costs, position.values, position.rosenthal, position.expected_load), expected[0], strict=True
    ):
        close(found, wanted)
    for i, (usage, present, cmdp) in enumerate(expected[1:]):
        close(position.usage(i), usage)
        close(position.current(i).value, present.value)
        close(position.current(i).costs, present.costs)
        close(position.induced_cmdp(i).reward, cmdp.reward)
        close(position.induced_cmdp(i).costs, cmdp.costs)
        close(position.induced_cmdp(i).thresholds, cmdp.thresholds)


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS)
def test_a_certificate_is_the_twins(seed):
    game = random_game(seed)
    policy = random_policy(game, seed)
    multipliers = np.random.default_rng(seed).random((game.num_agents, game.num_constraints))
    found = certify(game, policy, multipliers)
    with kernels("numpy"):
        expected = certify(replace(game), policy, multipliers)
    close(found.values, expected.values)
    close(found.bounds, expected.bounds)
    # Rounding is bounded over what agents can reach, and for another order of sums: not the same, and not far from it.
    assert (found.rounding <= 4 * expected.rounding).all()
    assert (np.abs(found.bounds - expected.bounds) <= found.rounding + expected.rounding).all()
    assert (np.abs(found.values - expected.values) <= found.rounding + expected.rounding).all()


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS)
def test_some_agents_are_judged_as_all_are(seed):
    game = random_game(seed)
    position = game.at(random_policy(game, seed))
    rng = np.random.default_rng(seed)
    multipliers = rng.random((game.num_agents, game.num_constraints))
    first = int(rng.integers(game.num_agents))
    asked = range(first, int(rng.integers(first + 1, game.num_agents + 1)))
    whole, part = (
        position.agent_bounds(multipliers),
        position.agent_bounds(multipliers[asked.start : asked.stop], asked),
    )
    # Loads are added up in another order, so the last bits may differ.
    rounding = whole.rounding[asked.start : asked.stop]
    assert part.rounding == pytest.approx(rounding, rel=1e-12)
    for name in ("values", "bounds"):
        assert (abs(getattr(part, name) - getattr(whole, name)[asked.start : asked.stop]) <= rounding).all()


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS)
def test_a_move_leads_to_a_fresh_position(seed):
    game = random_game(seed)
    policy, other = random_policy(game, seed), random_policy(game, seed + 1)
    mover = seed % game.num_agents
    moved, fresh = game.at(policy).replace(mover, other[mover]), game.at(policy.replace(mover, other[mover]))
    assert moved.costs.tobytes() == fresh.costs.tobytes()
    for i in range(game.num_agents):
        assert moved.induced_cmdp(i).costs.tobytes() == fresh.induced_cmdp(i).costs.tobytes()
        assert moved.induced_cmdp(i).thresholds.tobytes() == fresh.induced_cmdp(i).thresholds.tobytes()


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, ties=st.booleans(), free=st.booleans())
def test_agents_that_settle_are_at_rest_as_the_twin_sees_it(seed, ties, free):
    game = random_game(seed)
    rng = np.random.default_rng(seed)
    multipliers = rng.random(game.num_constraints) * (rng.random(game.num_constraints) < (0.5 if free else 1.0))
    settled = game.at(random_policy(game, seed)).best_response_dynamics(
        multipliers, turns=200 * game.num_agents, worth=1e-9, rng=rng if ties else None
    )
    with kernels("numpy"):
        twin = replace(game).at(settled.position.policy)
        close(settled.position.costs, twin.costs)
        close(settled.position.values, twin.values)
        for i in range(game.num_agents):
            cmdp, present = twin.induced_cmdp(i), twin.current(i)
            best = cmpg.cmdp.planning.maximise(cmdp, multipliers).value
            gain = best - float(present.value - multipliers @ present.costs)
            assert gain <= 1e-9 * cmdp.reward_range + 1e-9


def test_agents_who_wait_keep_their_policies_and_the_others_rest_beside_them():
    game = crowd_of_cars(12)
    position, waiting = game.at(game.uniform_policy()), (0, 5, 11)
    settled = position.best_response_dynamics(np.array([1.0]), turns=100 * 12, worth=1e-9, waiting=waiting)
    for i in range(12):
        assert (settled.position.policy[i] == position.policy[i]).all() == (i in waiting)
        cmdp, present = settled.position.induced_cmdp(i), settled.position.current(i)
        gain = cmpg.cmdp.planning.maximise(cmdp, np.array([1.0])).value - float(present.value - present.costs[0])
        assert (gain <= 1e-9 * cmdp.reward_range + 1e-12) == (i not in waiting)


def crowd_of_cars(size, *, seed=0):
    """Cars of the sample day many times over: the later a slot, the less likely it is that a car still needs it."""
    day, loads = charging(), np.arange(size + 1)
    return LocalGame(
        agents=[day.agents[i] for i in np.random.default_rng(seed).integers(day.num_agents, size=size)],
        horizon=day.horizon,
        delay=(0.02 * 46 / size * loads)[None, None],
        load_costs=np.maximum(0.0, loads - 0.16 * size)[None, None, None],
        thresholds=[0.5],
    )


def random_crowd(seed):
    """One to three kinds of agents, eight to ten of each in any order; the first action of all is worth nothing."""
    rng = np.random.default_rng(seed)
    horizon, resources, kinds = (int(each) for each in rng.integers(1, 4, size=3))
    members, states = [], int(rng.integers(1, 3))
    for _ in range(kinds):
        reward = rng.integers(-2, 6, size=(1, states, 3)) / 2.0
        uses = (rng.random((1, states, 3, resources)) < 0.6).astype(float)
        reward[..., 0], uses[:, :, 0] = 0.0, 0.0
        rows = rng.dirichlet(np.ones(states), size=(1, states, 3))
        members += [LocalAgent(transition=rows, reward=reward, uses=uses, initial=np.eye(states)[0])] * rng.integers(
            8, 11
        )
    loads = np.arange(len(members) + 1.0)
    shapes = np.stack([loads, loads**1.5, np.maximum(loads - 4.0, 0.0)])[rng.integers(3, size=resources)]
    return LocalGame(
        agents=[members[i] for i in rng.permutation(len(members))],
        delay=rng.random((1, resources, 1)) * shapes / 4,
        load_costs=(rng.random((1, resources, 1)) * shapes)[None],
        thresholds=[1e6],
        horizon=horizon,
    )


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, mixed=st.booleans())
def test_a_crowd_is_at_rest_though_alike_agents_are_not_all_asked(seed, mixed):
    game, price = random_crowd(seed), np.array([0.25])
    rng = np.random.default_rng(seed)
    choices = rng.integers(3, size=(4,)) if mixed else np.zeros(1, dtype=int)
    tables = [CompactTable.certain(np.full((H, S), rng.choice(choices)), A) for H, S, A in game.policy_shapes]
    settled = game.at(JointPolicy(tuple(tables))).best_response_dynamics(price, turns=500 * game.num_agents, worth=1e-9)
    with kernels("numpy"):
        twin = replace(game).at(settled.position.policy)
        for i in range(game.num_agents):
            cmdp, present = twin.induced_cmdp(i), twin.current(i)
            best = cmpg.cmdp.planning.maximise(cmdp, price).value
            assert best - float(present.value - price @ present.costs) <= 1e-9 * cmdp.reward_range + 1e-9


def test_agents_who_are_alike_are_judged_once_and_only_if_they_are():
    game = crowd_of_cars(40)
    kinds = [next(i for i in range(40) if game.agents[i] is agent) for agent in game.agents]
    position = game.at(
        JointPolicy(tuple(np.eye(2)[np.full((24, game.agents[kind].num_states), kind % 2)] for kind in kinds))
    )
    common = max(kinds, key=kinds.count)
    other, dearer, *alike = (i for i in range(40) if kinds[i] == common)
    position = position.replace(other, np.full(game.policy_shapes[other], 0.5))
    multipliers = np.full((40, 1), 0.5)
    multipliers[dearer] = 2.0
    judged = position.agent_bounds(multipliers)
    with kernels("numpy"):
        twin = replace(game).at(position.policy)
        for i in range(40):
            assert judged.bounds[i] == pytest.approx(dual_bound(twin.induced_cmdp(i), multipliers[i]), abs=1e-9)
            assert judged.values[i] == pytest.approx(twin.current(i).value, abs=1e-9)
    assert len({judged.bounds[i] for i in alike}) == 1 < len(alike)


def test_agents_who_differ_in_nothing_but_what_they_could_get_or_how_often_they_use_something_are_judged_apart():
    plain = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0.0, 1.0]]], uses=[[[[1.0], [0.0]]]], initial=[1.0])
    tempted = replace(plain, reward=np.array([[[0.0, 3.0]]]))
    late = replace(plain, uses=np.array([[[[1.0], [1.0]]]]))
    loads = np.arange(6.0)
    game = LocalGame(
        agents=(plain, plain, tempted, plain, late),
        delay=(loads**1.5)[None, None],
        load_costs=(loads**2)[None, None, None],
        thresholds=[30.0],
        horizon=1,
    )
    position = game.at(idle(game)).replace(3, np.array([[[0.5, 0.5]]]))
    judged = position.agent_bounds(np.full((5, 1), 0.25))
    with kernels("numpy"):
        twin = replace(game).at(position.policy)
        for i in range(5):
            assert judged.bounds[i] == pytest.approx(dual_bound(twin.induced_cmdp(i), np.array([0.25])), abs=1e-12)
            assert judged.values[i] == pytest.approx(twin.current(i).value, abs=1e-12)
    assert judged.bounds[0] == judged.bounds[1]
    assert len(set(judged.bounds)) == 4


def test_loads_stay_right_while_a_crowd_moves_in_and_out_of_them_a_thousand_times():
    game = crowd_of_cars(150)
    position = game.at(game.uniform_policy())
    for price in (0.0, 5.0, 0.5, 2.0, 0.0, 4.0, 0.5, 2.0):
        settled = position.best_response_dynamics(np.array([price]), turns=40 * game.num_agents, worth=1e-7)
        before, after = (each.rosenthal - price * each.costs[0] for each in (position, settled.position))
        assert after >= before  # the potential of the priced game
        position = settled.position
    with kernels("numpy"):
        twin = replace(game).at(position.policy)
        for i in range(game.num_agents):
            cmdp, present = twin.induced_cmdp(i), twin.current(i)
            best = cmpg.cmdp.planning.maximise(cmdp, np.array([2.0])).value
            assert best - (present.value - 2.0 * present.costs[0]) <= 1e-7 * cmdp.reward_range + 1e-9


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS)
def test_a_first_turn_is_the_twins_best_plan(seed):
    game = random_game(seed)
    position = game.at(random_policy(game, seed))
    multipliers = np.random.default_rng(seed).random(game.num_constraints) + 0.1
    settled = position.best_response_dynamics(multipliers, turns=1, worth=1e-9)
    with kernels("numpy"):
        twin = replace(game).at(position.policy)
        best = cmpg.cmdp.planning.maximise(twin.induced_cmdp(0), multipliers).value
    present = settled.position.current(0)
    assert present.value - float(multipliers @ present.costs) == pytest.approx(best, abs=1e-8)
    assert settled.moves == (settled.position is not position)


@contextmanager
def everybody_at_once():
    """Ask up to sixteen agents of any game at the same time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(position_module, "LONG_PLAN", -1)
        patch.setattr(position_module, "AGENTS_PER_PROPOSAL", 1)
        yield


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, on_a_map=st.booleans(), free=st.booleans())
def test_agents_who_are_block_size_come_to_rest_with_the_same_bits_for_any_number_of_threads(seed, on_a_map, free):
    game = random_map(seed) if on_a_map else random_game(seed, max_agents=20)
    rng = np.random.default_rng(seed)
    multipliers = rng.random(game.num_constraints) * (rng.random(game.num_constraints) < (0.5 if free else 1.0))
    start, limits = game.at(random_policy(game, seed)), {"turns": 200 * game.num_agents, "worth": 1e-9}
    with everybody_at_once():
        alone = start.best_response_dynamics(multipliers, **limits)
        for workers in (2, 3, 1000):
            together = start.best_response_dynamics(multipliers, workers=workers, **limits)
            assert together.moves == alone.moves
            assert together.position.policy.fingerprint() == alone.position.policy.fingerprint()
            assert together.position.values.tobytes() == alone.position.values.tobytes()
            assert together.position.loads.probability.tobytes() == alone.position.loads.probability.tobytes()
    with kernels("numpy"):
        begun, ended = (replace(game).at(each.policy) for each in (start, alone.position))
        before, after = (each.rosenthal - float(multipliers @ each.costs) for each in (begun, ended))
        assert after >= before - 1e-9 * abs(before)  # every move gains in the priced game, which has this potential
        for i in range(game.num_agents):
            cmdp, present = ended.induced_cmdp(i), ended.current(i)
            gain = cmpg.cmdp.planning.maximise(cmdp, multipliers).value - float(
                present.value - multipliers @ present.costs
            )
            assert gain <= 1e-9 * cmdp.reward_range + 1e-9


@pytest.mark.parametrize("workers", [1, 2])
def test_two_who_would_leave_one_resource_for_the_same_other_do_not_follow_each_other(workers):
    member = LocalAgent(
        transition=np.ones((1, 1, 2, 1)), reward=np.zeros((1, 1, 2)), uses=np.eye(2)[None, None], initial=[1.0]
    )
    game = LocalGame(
        agents=(member, member),
        delay=np.tile([0.0, 1.0, 2.0], (1, 2, 1)),
        load_costs=np.zeros((0, 1, 2, 3)),
        thresholds=[],
        horizon=1,
    )
    with everybody_at_once():
        settled = game.at(idle(game)).best_response_dynamics(np.zeros(0), turns=2, worth=1e-9, workers=workers)
    assert settled.moves == 1  # the second was tempted, too, until the first had left
    assert settled.position.expected_load.tolist() == [[1.0, 1.0]]


def test_many_robots_end_with_the_same_bits_for_any_number_of_threads():
    game = robots(num_agents=50, horizon=24, seed=1)
    alone, together = (
        cmpg.solve(replace(game), epsilon=1e-4, method=cmpg.Ascent(workers=workers)) for workers in (1, 2)
    )
    assert alone.search_moves == together.search_moves > 50
    assert alone.policy.fingerprint() == together.policy.fingerprint()
    assert alone.multipliers.tobytes() == together.multipliers.tobytes()
    assert alone.settings["start"] == together.settings["start"] == "CommonPrice()"


def crossings(ahead):
    """Which edge each move crosses, as uses: a column for each pair of neighbouring cells."""
    moves = [tuple(sorted((s, t))) for s, row in enumerate(ahead.tolist()) for t in row]
    edges = sorted({move for move in moves if move[0] != move[1]})
    return sp.csr_array([[float(move == edge) for edge in edges] for move in moves], shape=(len(moves), len(edges)))


def random_map(seed):
    """Walkers among walls, actions in any order, with and without edges; whole rewards make ties."""
    rng = np.random.default_rng(seed)
    free = rng.random((int(rng.integers(1, 5)), int(rng.integers(2, 5)))) < 0.8
    free[0, :2] = True
    moves = [[(0, 0), (0, -1), (1, 0), (0, 1), (-1, 0), (0, 0)][i] for i in rng.permutation(6)[: rng.integers(2, 7)]]
    ahead = next_cells(free, [(0, 0), *moves] if (0, 0) not in moves else moves)
    states, actions = ahead.shape
    uses = standing_table(np.arange(states), actions)
    if rng.random() < 0.6:
        uses = sp.hstack([uses, crossings(ahead)], format="csr")
    transition, agents = move_table(ahead, success=float(rng.choice([0.5, 0.9]))), int(rng.integers(2, 6))
    members = [
        LocalAgent(
            transition=transition,
            reward=np.repeat(rng.integers(-2, 1, size=(1, states, 1)).astype(float), actions, axis=2),
            uses=uses,
            initial=np.eye(states)[rng.integers(states)],
        )
        for _ in range(agents)
    ]
    members = [replace(each, transition=members[0].transition, uses=members[0].uses) for each in members]
    loads = np.arange(agents + 1.0)
    pairs = np.broadcast_to(loads * (loads - 1) / 2, (1, 1, uses.shape[1], agents + 1))
    delay = np.zeros(pairs.shape[1:]) if rng.random() < 0.5 else 0.25 * pairs[0]
    return LocalGame(agents=tuple(members), delay=delay, load_costs=pairs, thresholds=[1.0], horizon=5)


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, price=st.sampled_from([0.0, 0.5, 3.0]))
def test_whoever_walks_on_a_map_moves_as_by_any_other_matrix(seed, price):
    game = random_map(seed)
    # With matrices of their own the same walkers are on no common map.
    own = [sp.csr_array(game.agents[0].transition[0]) for _ in game.agents]
    apart = replace(game, agents=tuple(replace(a, transition=[m]) for a, m in zip(game.agents, own, strict=True)))
    kinds = {len(set(each.at(idle(each)).loads.packed.fields["moves_of"].tolist())) for each in (game, apart)}
    assert kinds == {1, game.num_agents}
    multipliers = np.array([price])
    found, expected = (
        each.at(idle(each)).best_response_dynamics(multipliers, turns=4 * game.num_agents, worth=1e-9)
        for each in (game, apart)
    )
    assert found.moves == expected.moves
    assert found.position.policy.fingerprint() == expected.position.policy.fingerprint()
    everybody = np.broadcast_to(multipliers, (game.num_agents, 1))
    judged, twin = (each.position.agent_bounds(everybody) for each in (found, expected))
    assert judged.bounds.tobytes() == twin.bounds.tobytes()
    assert judged.values.tobytes() == twin.values.tobytes()


def walkers_in_rows(seed, *, horizon, edges):
    """Walkers on cells in rows, with walls between, and perhaps in parts; smooth loads, and nothing is delayed."""
    rng = np.random.default_rng(seed)
    free = rng.random((int(rng.integers(3, 9)), int(rng.integers(3, 11)))) < 0.8
    free[0, :2] = free[1, 0] = True
    moves = [(0, -1), (1, 0), (0, 1), (-1, 0), (0, 0)]
    ahead = next_cells(free, [moves[i] for i in rng.permutation(5)])
    states, actions = ahead.shape
    uses = standing_table(np.arange(states), actions)
    if edges:
        uses = sp.hstack([uses, crossings(ahead)], format="csr")
    member = LocalAgent(
        transition=move_table(ahead, success=0.9),
        reward=np.zeros((1, states, actions)),
        uses=uses,
        initial=np.eye(states)[0],
    )
    members = tuple(
        replace(
            member,
            transition=member.transition,
            uses=member.uses,
            reward=np.repeat(rng.integers(-2, 1, size=(1, states, 1)).astype(float), actions, axis=2),
            initial=np.eye(states)[rng.integers(states)],
        )
        for _ in range(6)
    )
    loads = np.arange(7.0)
    pairs = np.broadcast_to(loads * (loads - 1) / 2, (1, 1, uses.shape[1], 7))
    return LocalGame(
        agents=members, delay=np.zeros(pairs.shape[1:]), load_costs=pairs, thresholds=[1.0], horizon=horizon
    )


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS, price=st.sampled_from([0.0, 0.5, 3.0]), edges=st.booleans())
def test_whoever_walks_over_rows_of_cells_moves_as_by_any_other_matrix(seed, price, edges):
    game = walkers_in_rows(seed, horizon=10, edges=edges)
    own = [sp.csr_array(game.agents[0].transition[0]) for _ in game.agents]
    apart = replace(game, agents=tuple(replace(a, transition=[m]) for a, m in zip(game.agents, own, strict=True)))
    found, expected = (
        each.at(idle(each)).best_response_dynamics(np.array([price]), turns=24, worth=1e-9).position
        for each in (game, apart)
    )
    assert found.policy.fingerprint() == expected.policy.fingerprint()


@pytest.mark.parametrize("edges", [False, True])
def test_what_is_too_improbable_to_be_felt_is_counted_all_the_same(edges):
    game = walkers_in_rows(4, horizon=40, edges=edges)
    settled = game.at(idle(game)).best_response_dynamics(np.array([3.0]), turns=60, worth=1e-7).position
    assert settled.loads.probability.min() < 1e-20
    afresh = game.at(settled.policy)
    assert settled.costs.tobytes() == afresh.costs.tobytes()
    assert settled.loads.index.tobytes() == afresh.loads.index.tobytes()
    assert settled.loads.probability.tobytes() == afresh.loads.probability.tobytes()
    with kernels("numpy"):
        assert settled.costs == pytest.approx(replace(game).at(settled.policy).costs)


def test_where_a_budget_is_free_a_tie_spends_no_more_of_it_than_it_must():
    """Two actions are worth the same, and the first one spends."""
    agent = LocalAgent(
        transition=np.ones((1, 1, 3, 1)), reward=[[[1.0, 1.0, 0.0]]], uses=[[[[1], [0], [0]]]], initial=[1.0]
    )
    game = LocalGame(
        agents=(agent,) * 3, delay=np.zeros((1, 1, 4)), load_costs=[[[[0.0, 1, 2, 3]]]], thresholds=[1.0], horizon=2
    )
    settled = game.at(JointPolicy((np.eye(3)[np.full((2, 1), 2)],) * 3)).best_response_dynamics(
        np.zeros(1), turns=9, worth=1e-9
    )
    assert settled.moves == 3
    assert settled.position.costs.tolist() == [0.0]
    assert settled.position.values.tolist() == [2.0] * 3


@pytest.mark.parametrize("seed", [1, 7])
def test_random_ties_come_from_the_generator(seed):
    game = robots(num_agents=4, horizon=12, seed=seed)

    def settled(rng):
        return (
            game.at(idle(game))
            .best_response_dynamics(np.ones(1), turns=12, worth=1e-7, rng=rng)
            .position.policy.fingerprint()
        )

    assert settled(np.random.default_rng(3)) == settled(np.random.default_rng(3))
    drawn = {settled(np.random.default_rng(each)) for each in range(8)}
    assert len(drawn) > 1
    assert settled(None) == settled(None)


@pytest.mark.parametrize("game", [robots(num_agents=4), charging(), routing()], ids=["robots", "charging", "routing"])
def test_scenarios_end_as_well_as_the_twins(game):
    found = cmpg.solve(game, epsilon=1e-4)
    with kernels("numpy"):
        expected = cmpg.solve(replace(game), epsilon=1e-4)
        judged = certify(replace(game), found.policy, found.multipliers)
    assert found.certified
    assert judged.proves(1e-4)
    assert found.values.sum() >= expected.values.sum() - 0.005 * abs(expected.values.sum())


def test_only_what_can_be_reached_has_actions():
    game = robots(num_agents=2, horizon=20)
    settled = game.at(idle(game)).best_response_dynamics(np.ones(1), turns=2, worth=1e-7)
    near = settled.position.policy[0][0] @ np.arange(game.agents[0].num_actions)
    start = int(game.agents[0].initial.argmax())
    assert near[start] > 0
    assert not near[np.arange(len(near)) != start].any()


def test_a_settling_keeps_to_its_deadline():
    game = robots(num_agents=8)
    position = game.at(idle(game))
    assert (
        position.best_response_dynamics(np.ones(1), turns=10**6, worth=0.0, deadline=time.monotonic() - 1).position
        is position
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interruption_ends_a_settling_in_the_middle(workers):
    rng = np.random.default_rng(0)
    horizon, states, actions = 4_000, 40, 5
    member = LocalAgent(
        transition=rng.dirichlet(np.ones(states), size=(1, states, actions)),
        reward=rng.random((1, states, actions)),
        uses=rng.integers(2, size=(1, states, actions, 2)),
        initial=np.eye(states)[0],
    )
    loads = np.arange(61.0)
    game = LocalGame(
        agents=(member,) * 60,
        delay=np.broadcast_to(0.01 * loads, (1, 2, 61)),
        load_costs=np.broadcast_to(loads * (loads - 1), (1, 1, 2, 61)),
        thresholds=[1.0],
        horizon=horizon,
    )
    position = game.at(idle(game))
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            position.best_response_dynamics(np.ones(1), turns=2**62, worth=1e-9, workers=workers)
    finally:
        timer.join()


def test_indices_that_lead_out_of_a_matrix_are_refused():
    good = sp.csr_array(np.ones((2, 1)))
    bad = sp.csr_array(good)
    bad.indices = np.array([0, 7], dtype=bad.indices.dtype)

    def played():
        agent = LocalAgent(transition=good, reward=[[[0.0, 1.0]]], uses=[bad], initial=[1.0])
        game = LocalGame(agents=(agent,), delay=np.zeros((1, 1, 2)), load_costs=(), thresholds=(), horizon=1)
        return game.at(JointPolicy.uniform(game.policy_shapes))

    with pytest.raises(cmpg.GameError, match="an entry outside of its 1 columns"):
        played()


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS, free=st.booleans(), ties=st.booleans())
def test_numbers_beyond_all_bounds_lead_nowhere_else(seed, free, ties):
    """Sums of rewards overflow, and differences of those are not numbers; actions and places must still be those that
    there are.
    """
    game, rng = random_game(seed), np.random.default_rng(seed)

    def wild(table):
        return np.array(table) * rng.choice([1e307, -1e307, 1e-320, 1.0], size=np.shape(table))

    agents = tuple(
        replace(agent, reward=wild(agent.reward), costs=None if agent.costs is None else np.abs(wild(agent.costs)))
        for agent in game.agents
    )
    game = replace(game, agents=agents, delay=np.abs(wild(game.delay)), load_costs=np.abs(wild(game.load_costs)))
    multipliers = np.zeros(game.num_constraints) if free else np.full(game.num_constraints, 1e300)
    with np.errstate(all="ignore"):
        settled = game.at(random_policy(game, seed)).best_response_dynamics(
            multipliers, turns=5 * game.num_agents, worth=1e-9, rng=rng if ties else None
        )
        for (_, _, actions), table in zip(game.policy_shapes, settled.position.policy, strict=True):
            assert table.shape[2] == actions
        assert ((settled.position.loads.probability > 0) & (settled.position.loads.probability <= 1)).all()


def test_kernels_refuse_arrays_that_do_not_fit():
    game = robots(num_agents=2, horizon=20)
    position = game.at(JointPolicy.uniform(game.policy_shapes))
    packed, loads = position.loads.packed, position.loads
    totals = np.zeros(1)
    with pytest.raises(ValueError, match="do not fit together"):
        packed.kernels.totals(packed.fields, (loads.start, loads.index + 10**6, loads.probability), totals)
    with pytest.raises(ValueError, match="do not fit together"):
        packed.kernels.totals(packed.fields, (loads.start[::-1].copy(), loads.index, loads.probability), totals)
    with pytest.raises(ValueError, match="start has 2 entries; 3 are required"):
        packed.kernels.totals(packed.fields, (loads.start[:2], loads.index, loads.probability), totals)
    with pytest.raises(KeyError, match="needs reach"):
        packed.kernels.totals({name: x for name, x in packed.fields.items() if name != "reach"}, loads.arrays, totals)
    with pytest.raises(TypeError, match="target holds entries of the format d; i is required"):
        packed.kernels.totals(packed.fields | {"target": np.zeros(3)}, loads.arrays, totals)
    with pytest.raises(TypeError, match="53 fields; 52 are known"):
        packed.kernels.totals(packed.fields | {"later": 1}, loads.arrays, totals)
    with pytest.raises(IndexError, match="no such agent"):
        packed.accounts([position.policy[0]], [2])
    with pytest.raises(ValueError, match="does not fit agent 0"):
        packed.accounts([np.ones((1, 1, 1))], [0])
    with pytest.raises(ValueError, match="agent 0 has no action 9"):
        packed.accounts([CompactTable.certain(np.full((20, game.agents[0].num_states), 9), 10)], [0])


def test_a_result_of_robots_pickles_small_and_comes_back():
    game = robots(num_agents=8, edges=False)
    result = cmpg.solve(game, epsilon=1e-4)
    again = pickle.loads(pickle.dumps(result))
    assert again.policy.fingerprint() == result.policy.fingerprint()
    assert cmpg.certify(again.game, again.policy, again.multipliers).proves(1e-4)
    dense = sum(8 * float(np.prod(shape)) for shape in game.policy_shapes)
    # One byte for each row of a policy, which would be eight for each action; what others share is there once.
    assert len(pickle.dumps(result.policy)) < dense / 35
    assert len(pickle.dumps(result)) < dense / 15
    reward = again.game.agents[0].reward
    assert reward.tobytes() == game.agents[0].reward.tobytes()
    assert not reward.flags.writeable
    assert reward.strides[-1] == 0


@settings(deadline=None, max_examples=30)
@given(agents=st.integers(1, 17), shape=st.tuples(st.integers(1, 3), st.integers(0, 4)), seed=SEEDS)
def test_sums_of_loads_have_the_same_bits_as_the_twin(agents, shape, seed):
    rng = np.random.default_rng(seed)
    delay = np.broadcast_to(np.sqrt(np.arange(agents + 1)), (1, shape[1], agents + 1))
    tables = load_tables(delay, np.zeros((0, 1, shape[1], agents + 1)), horizon=shape[0])
    usages = [rng.choice([0, 1, rng.random()], size=shape) for _ in range(agents)]
    found = LoadTree.grow(tables, usages)
    with kernels("numpy"):
        expected = LoadTree.grow(tables, usages)
    for agent in range(agents):
        without = found.without(agent).distribution
        with kernels("numpy"):
            assert without.tobytes() == expected.without(agent).distribution.tobytes()
    assert found.total.distribution.shape == expected.total.distribution.shape
    assert found.total.distribution.tobytes() == expected.total.distribution.tobytes()


@pytest.mark.parametrize(
    ("one", "width", "problem"),
    [
        (np.ones(2, dtype=np.float32), 1, "format f"),
        (np.ones((4, 2))[:, :1], 1, "contiguous"),
        (np.ones(3), 2, "same width"),
        (np.ones(0), 1, "same width"),
        (np.ones(2), 0, "same width"),
        (np.ones(2), -1, "same width"),
        (np.ones(4), 2, "total has 9 entries; 4 are required"),
        ([1.0, 2.0], 1, "bytes-like"),
    ],
)
def test_a_kernel_refuses_what_it_cannot_read(one, width, problem):
    with pytest.raises((TypeError, ValueError), match=problem):
        compiled().convolve(one, np.ones(2), width, np.empty(9))


def test_a_kernel_does_not_write_what_is_read_only():
    total = np.zeros(3)
    total.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        compiled().convolve(np.ones(2), np.ones(2), 1, total)


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS)
def test_no_budget_is_hard_that_surely_depends_on_chance(seed):
    game = random_game(seed)
    position = game.at(random_policy(game, seed))
    possible = PossibleLoads.at(game, position.policy)
    for agent in range(game.num_agents):
        for constraint, table in enumerate(game.load_costs):
            if position.loads.surely_vary(agent, table):
                assert possible.forbidden(agent, constraint) is None


@pytest.mark.parametrize(
    ("own", "others", "varies"), [([0, 1], [0.5, 0.5], True), ([0.5, 0.5], [0, 1], False), ([0, 1], [0, 1], False)]
)
def test_loads_depend_on_chance_if_somebody_else_mixes(own, others, varies):
    agent = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=np.zeros((1, 1, 2)), uses=[[[[0], [1]]]], initial=[1.0])
    costs = [[[[0.0, 0.0, 1.0, 2.0]]]]
    game = LocalGame(agents=(agent,) * 3, delay=np.zeros((1, 1, 4)), load_costs=costs, thresholds=[1.0], horizon=1)
    position = game.at(JointPolicy(tuple(np.array([[row]], dtype=float) for row in (own, others, [0, 1]))))
    assert position.loads.surely_vary(0, game.load_costs[0]) == varies
