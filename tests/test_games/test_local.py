"""Local games against their joint form, and against exact rationals."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact
from cmpg.errors import GameError
from cmpg.games.game import Information
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.games.local.to_joint import lift_policy, to_joint
from cmpg.policy import JointPolicy

MODEST = settings(deadline=None, max_examples=25)


def random_transition(rng, steps, states, actions):
    dense = rng.dirichlet(np.full(states, 0.7), size=(steps, states, actions))
    if rng.random() < 0.5:
        return dense
    sparse = [sp.csr_array(table.reshape(-1, states)) for table in dense]
    return sparse if steps > 1 else sparse[0]


def random_agent(rng, horizon, resources, constraints):
    states, actions = rng.integers(1, 4, size=2)
    steps = [1 if rng.random() < 0.5 else horizon for _ in range(4)]
    uses = (rng.random((steps[0], states, actions, resources)) < 0.5).astype(float)
    private = rng.random((constraints, steps[1], states, actions)) if rng.random() < 0.5 else None
    reward = rng.normal(size=(steps[3], states, actions))
    # What depends on the state alone is kept and read in another way.
    if rng.random() < 0.5:
        uses[:] = uses[:, :, :1]
    if rng.random() < 0.5:
        reward[:] = reward[..., :1]
    if private is not None and rng.random() < 0.5:
        private[:] = private[..., :1]
    return LocalAgent(
        transition=random_transition(rng, steps[2], states, actions),
        reward=reward,
        uses=uses if rng.random() < 0.5 else [sp.csr_array(table.reshape(-1, resources)) for table in uses],
        initial=rng.dirichlet(np.ones(states)),
        costs=private,
    )


def random_load_tables(rng, shape, agents, *, first):
    """Polynomials of the load on some resources, anything on the others; columns belong to the loads 0, …, n."""
    loads = np.arange(agents + 1)
    coefficients = rng.random((3, *shape, 1))
    smooth = coefficients[0] * first + coefficients[1] * loads + coefficients[2] * (not first) * loads * (loads - 1)
    rough = rng.normal(size=(*shape, agents + 1)) if rng.random() < 0.3 else np.maximum(loads - rng.random(), 0.0) ** 2
    return np.where(rng.random((shape[-1], 1)) < 0.5, smooth, rough)


@st.composite
def local_games(draw, max_agents=3):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    agents, resources = draw(st.integers(1, max_agents)), draw(st.integers(1, 3))
    horizon, constraints = draw(st.integers(1, 4)), draw(st.integers(0, 2))
    members = [random_agent(rng, horizon, resources, constraints) for _ in range(agents)]
    if agents > 1 and draw(st.booleans()):
        members[-1] = replace(members[0], reward=rng.normal(size=np.shape(members[0].reward)))
    steps = [draw(st.sampled_from([1, horizon])) for _ in range(2)]
    delay = random_load_tables(rng, (steps[0], resources), agents, first=True) * draw(st.sampled_from([0.0, 1.0]))
    costs = random_load_tables(rng, (constraints, steps[1], resources), agents, first=False)
    game = LocalGame(
        agents=tuple(members),
        delay=delay,
        load_costs=costs,
        thresholds=rng.random(constraints) * 3,
        horizon=horizon,
    )
    return game, game.random_policy(rng=rng), rng


def exact_costs(game, policy):
    """V^c in rationals, by occupancies and by adding agents to the distribution of the load one at a time."""
    visits, usages = [], []
    for agent, table in zip(game.agents, policy, strict=True):
        rows = [[exact_row(row) for row in step] for step in table]
        present = exact_row(agent.initial)
        visits.append([])
        for h in range(game.horizon):
            visits[-1].append([p * x for p, row in zip(present, rows[h], strict=True) for x in row])
            moves = agent.transition[h % len(agent.transition)].toarray()
            ahead = [[v * q for q in exact_row(move)] for v, move in zip(visits[-1][h], moves, strict=True)]
            present = [sum(column) for column in zip(*ahead, strict=True)]
        used = [agent.uses[h % len(agent.uses)].toarray() for h in range(game.horizon)]
        usages.append([[sum(v for v, u in zip(visits[-1][h], used[h][:, e], strict=True) if u)
                        for e in range(game.num_resources)] for h in range(game.horizon)])  # fmt: skip
    totals = []
    for j, paid in enumerate(game.load_costs):
        total = Fraction(0)
        for h in range(game.horizon):
            for e in range(game.num_resources):
                chances = [Fraction(1)]
                for usage in usages:
                    stay, join = [c * (1 - usage[h][e]) for c in chances], [c * usage[h][e] for c in chances]
                    chances = [a + b for a, b in zip([*stay, 0], [0, *join], strict=True)]
                table = paid[h % len(paid), e]
                total += sum(c * Fraction(float(g)) for c, g in zip(chances, table, strict=True))
            for agent, visit in zip(game.agents, visits, strict=True):
                if agent.costs is not None:
                    private = agent.costs[j, h % agent.costs.shape[1]].ravel()
                    total += sum(v * Fraction(float(c)) for v, c in zip(visit[h], private, strict=True))
        totals.append(total)
    return totals


def exact_row(row):
    entries = [Fraction(float(entry)) for entry in row]
    return [entry / sum(entries) for entry in entries]


@MODEST
@given(local_games())
def test_values_and_costs_are_those_of_the_joint_form(drawn):
    game, policy, _ = drawn
    here, there = game.at(policy), to_joint(game).at(lift_policy(game, policy))
    np.testing.assert_allclose(here.values, there.values, rtol=0, atol=1e-10)
    np.testing.assert_allclose(here.costs, there.costs, rtol=0, atol=1e-10)


@MODEST
@given(local_games())
def test_deviations_are_worth_and_spend_what_they_do_in_the_joint_form(drawn):
    game, policy, rng = drawn
    joint = to_joint(game)
    position, others = game.at(policy), joint.at(lift_policy(game, policy))
    for agent, deviation in enumerate(game.random_policy(rng=rng)):
        cmdp = position.induced_cmdp(agent)
        judged = evaluate(cmdp, deviation)
        lifted = lift_policy(game, policy.replace(agent, deviation))[agent]
        expected = evaluate(others.induced_cmdp(agent), lifted)
        assert judged.value == pytest.approx(expected.value, abs=1e-10)
        slack = cmdp.thresholds - judged.costs
        np.testing.assert_allclose(slack, joint.thresholds - expected.costs, rtol=0, atol=1e-10)


def presences(game, policy):
    """The chances of each agent's own states at each step, from its own tables alone: for every agent [H, S_i]."""
    found = []
    for agent, table in zip(game.agents, policy, strict=True):
        present = [np.array(agent.initial)]
        for h in range(game.horizon - 1):
            pairs = (present[-1][:, None] * table[h]).ravel()
            present.append(pairs @ agent.transition[h % len(agent.transition)].toarray())
        found.append(np.array(present))
    return found


def averaged(game, table, agent, present):
    """Average a table [H or 1, joint states, A_i] over the states of the others: [H, S_i, A_i]."""
    sizes = [member.num_states for member in game.agents]
    steps = []
    for h, step in enumerate(np.broadcast_to(table, (game.horizon, *table.shape[1:]))):
        rest = step.reshape(*sizes, -1)
        for other in reversed(range(game.num_agents)):
            if other != agent:
                rest = np.tensordot(present[other][h], rest, axes=(0, other))
        steps.append(rest)
    return np.array(steps)


@MODEST
@given(local_games())
def test_every_entry_of_an_induced_problem_is_that_of_the_joint_form(drawn):
    game, policy, _ = drawn
    position, joint = game.at(policy), to_joint(game)
    others, present = joint.at(lift_policy(game, policy)), presences(game, policy)
    for agent in range(game.num_agents):
        cmdp, whole = position.induced_cmdp(agent), others.induced_cmdp(agent)
        np.testing.assert_allclose(
            np.broadcast_to(cmdp.reward, cmdp.policy_shape), averaged(game, whole.reward, agent, present), atol=1e-10
        )
        for j in range(game.num_constraints):
            # What the others spend without the agent is in its threshold, not in its costs.
            apart = averaged(game, whole.costs[j], agent, present) - cmdp.costs[j]
            np.testing.assert_allclose(apart, np.broadcast_to(apart[:, :1, :1], apart.shape), rtol=0, atol=1e-10)
            spent = joint.thresholds[j] - cmdp.thresholds[j]
            assert apart[:, 0, 0].sum() == pytest.approx(spent, abs=1e-10)


@MODEST
@given(local_games())
def test_the_potential_rises_by_what_the_mover_gains(drawn):
    game, policy, rng = drawn
    position = game.at(policy)
    for agent, deviation in enumerate(game.random_policy(rng=rng)):
        moved = position.replace(agent, deviation)
        gain = moved.value_of(agent) - position.value_of(agent)
        assert moved.potential - position.potential == pytest.approx(gain, abs=1e-10)
        assert game.potential(moved.policy) == moved.potential
        assert abs(gain) <= game.reward_ranges[agent] + 1e-12
    assert game.potential(JointPolicy.reference(game.policy_shapes)) == 0.0


@MODEST
@given(local_games())
def test_a_moved_position_has_the_bits_of_a_fresh_one(drawn):
    game, policy, rng = drawn
    position = game.at(policy)
    for agent in range(game.num_agents):
        position.induced_cmdp(agent)
        position = position.replace(agent, game.random_policy(rng=rng)[agent])
        fresh = game.at(position.policy)
        np.testing.assert_array_equal(position.costs, fresh.costs)
        np.testing.assert_array_equal(position.values, fresh.values)
        for other in range(game.num_agents):
            mine, theirs = position.induced_cmdp(other), fresh.induced_cmdp(other)
            np.testing.assert_array_equal(mine.reward, theirs.reward)
            np.testing.assert_array_equal(mine.costs, theirs.costs)
            np.testing.assert_array_equal(mine.thresholds, theirs.thresholds)


@settings(deadline=None, max_examples=25)
@given(local_games())
def test_rounding_bounds_the_error_of_costs(drawn):
    game, policy, _ = drawn
    position = game.at(policy)
    for j, (computed, exact) in enumerate(zip(position.costs, exact_costs(game, policy), strict=True)):
        assert abs(Fraction(float(computed)) - exact) <= Fraction(float(position.cost_rounding[j]))


def crowded_game(rng, *, agents=3, horizon=3):
    """Everybody wants to use resources whose overload is limited: constraints bind."""
    loads = np.arange(agents + 1)
    members = []
    for _ in range(agents):
        uses = np.zeros((1, 2, 3, 2))
        uses[0, :, 1, 0] = uses[0, :, 2, 1] = 1
        reward = np.concatenate([np.zeros((1, 2, 1)), 1 + rng.random((1, 2, 2))], axis=2)
        transition = rng.dirichlet(np.ones(2), size=(1, 2, 3))
        members.append(LocalAgent(transition=transition, reward=reward, uses=uses, initial=rng.dirichlet(np.ones(2))))
    overload = np.stack([np.maximum(loads - 1, 0), loads * (loads - 1) / 2])[None, None]
    return LocalGame(
        agents=tuple(members),
        delay=np.broadcast_to(0.1 * loads, (1, 2, agents + 1)),
        load_costs=overload,
        thresholds=[0.3 + rng.random()],
        horizon=horizon,
    )


@pytest.mark.parametrize("seed", range(6))
def test_best_responses_in_turn_raise_the_potential_and_keep_the_budget_exactly(seed):
    rng = np.random.default_rng(seed)
    game = crowded_game(rng)
    idle = game.uniform_policy()
    for agent in range(game.num_agents):
        idle = idle.replace(agent, np.eye(3)[np.zeros((game.horizon, 2), dtype=int)])
    position, quiet, turns = game.at(idle), 0, 0
    while quiet < game.num_agents:
        agent = turns % game.num_agents
        response = Exact()(position.induced_cmdp(agent))
        gain = response.value - position.value_of(agent)
        quiet, turns = quiet + 1, turns + 1
        if gain > 1e-9:
            moved, quiet = position.replace(agent, response.policy), 0
            assert moved.potential - position.potential == pytest.approx(gain, abs=1e-10)
            position = moved
        assert turns < 200
    assert position.costs[0] == pytest.approx(game.thresholds[0], abs=1e-9)
    assert exact_costs(game, position.policy)[0] <= Fraction(float(game.thresholds[0]))


def test_a_budget_that_is_spent_to_the_last_bit_is_still_feasible():
    # Both agents always collide, on one resource, at each of three steps: there is no room for any margin.
    agent = LocalAgent(transition=np.ones((1, 1, 1, 1)), reward=np.zeros((1, 1, 1)), uses=[[[[1]]]], initial=[1])
    game = LocalGame(
        agents=(agent, agent), delay=np.zeros((1, 1, 3)), load_costs=[[[[0, 0, 1]]]], thresholds=[3], horizon=3
    )
    assert Exact()(game.at(game.uniform_policy()).induced_cmdp(0)).costs[0] == 3.0


def two_rooms():
    """Agents 0 and 1 choose between resources 0 and 1, agent 2 between 2 and 3; pairs are limited."""

    def chooser(first):
        uses = np.zeros((1, 1, 2, 4))
        uses[0, 0, 0, first] = uses[0, 0, 1, first + 1] = 1
        return LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=np.zeros((1, 1, 2)), uses=uses, initial=[1.0])

    pairs = np.array([0.0, 0.0, 1.0, 3.0])
    return LocalGame(
        agents=(chooser(0), chooser(0), chooser(2)),
        delay=np.broadcast_to(np.array([0, 1, 2, 3.0]), (1, 4, 4)),
        load_costs=np.broadcast_to(pairs, (1, 1, 4, 4)),
        thresholds=[2.0],
        horizon=2,
    )


def test_a_move_changes_only_the_problems_of_those_who_can_meet_the_mover():
    game = two_rooms()
    start = game.at(game.uniform_policy())
    first = np.array([[[1.0, 0.0]]] * 2)
    elsewhere = start.replace(2, first)
    for agent in (0, 1):
        mine, before = elsewhere.induced_cmdp(agent), start.induced_cmdp(agent)
        for name in ("reward", "costs", "thresholds"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(before, name))
    here = start.replace(0, first)
    assert (here.induced_cmdp(1).reward != start.induced_cmdp(1).reward).any()
    # Agent 2 meets nobody, but the others now spend another share of the budget.
    both = here.replace(1, first)
    alone, before = both.induced_cmdp(2), here.induced_cmdp(2)
    np.testing.assert_array_equal(alone.reward, before.reward)
    np.testing.assert_array_equal(alone.costs, before.costs)
    assert alone.thresholds[0] < before.thresholds[0]


def test_reach_counts_only_what_a_policy_can_lead_to():
    corridor = np.zeros((1, 3, 2, 3))
    corridor[0, :, 0] = np.eye(3)
    corridor[0, [0, 1, 2], 1, [1, 2, 2]] = 1
    uses = np.repeat(np.eye(3)[None, :, None], 2, axis=2)
    agent = LocalAgent(transition=corridor, reward=np.zeros((1, 3, 2)), uses=uses, initial=[1, 0, 0])
    game = LocalGame(agents=[agent], delay=np.zeros((1, 3, 2)), load_costs=[], thresholds=[], horizon=3)
    np.testing.assert_array_equal(game.reach(0), [[1, 0, 0], [1, 1, 0], [1, 1, 1]])
    longer = replace(game, horizon=5)
    np.testing.assert_array_equal(longer.reach(0), [[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1], [1, 1, 1]])


def test_reach_of_an_agent_who_comes_and_goes_never_settles():
    swap = np.zeros((1, 2, 1, 2))
    swap[0, [0, 1], 0, [1, 0]] = 1
    agent = LocalAgent(transition=swap, reward=np.zeros((1, 2, 1)), uses=np.eye(2)[None, :, None], initial=[1, 0])
    game = LocalGame(agents=[agent], delay=np.zeros((1, 2, 2)), load_costs=[], thresholds=[], horizon=5)
    np.testing.assert_array_equal(game.reach(0), [[1, 0], [0, 1], [1, 0], [0, 1], [1, 0]])


def test_loads_can_be_read_off():
    game, rng = two_rooms(), np.random.default_rng(0)
    position = game.at(game.random_policy(rng=rng))
    np.testing.assert_allclose(position.expected_load, sum(position.usage(i) for i in range(3)), atol=1e-15)
    for resource in range(4):
        chances = position.load_probabilities()[:, :, resource].T
        assert chances.shape == (2, 4)
        np.testing.assert_allclose(chances.sum(axis=1), 1.0)
        np.testing.assert_allclose(chances @ np.arange(4), position.expected_load[:, resource])


def test_threads_see_the_same_bits():
    game = crowded_game(np.random.default_rng(3), agents=9)
    policy = game.random_policy(rng=np.random.default_rng(4))
    alone = [game.at(policy).induced_cmdp(agent) for agent in range(9)]
    shared = game.at(policy)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(shared.induced_cmdp, [*range(9)] * 5))
    for agent, cmdp in zip([*range(9)] * 5, together, strict=True):
        np.testing.assert_array_equal(cmdp.costs, alone[agent].costs)
        np.testing.assert_array_equal(cmdp.reward, alone[agent].reward)
        np.testing.assert_array_equal(cmdp.thresholds, alone[agent].thresholds)


def test_agents_that_share_arrays_go_on_sharing_them():
    game = two_rooms()
    first = game.agents[0]
    twin = LocalAgent(transition=first.transition, reward=first.reward, uses=first.uses, initial=[1.0])
    both = LocalGame(
        agents=(twin, replace(twin, reward=[[[1, 2]]])),
        delay=np.zeros((1, 4, 3)),
        load_costs=[],
        thresholds=[],
        horizon=2,
        agent_names=("a", "b"),
        resource_names="wxyz",
    )
    assert both.agents[0].transition is both.agents[1].transition
    assert both.agents[0].uses[0] is both.agents[1].uses[0]
    assert both.resource_names == ("w", "x", "y", "z")


def test_what_a_local_game_says_of_itself():
    game = two_rooms()
    assert game.information == Information.OWN_STATE
    assert game.discount is None
    assert "C3" in game.potential_proof().reason
    assert game.policy_shapes == ((2, 1, 2),) * 3
    assert (game.num_agents, game.num_constraints, game.num_resources, game.num_steps) == (3, 1, 4, 2)


def test_a_joint_form_that_is_too_large_is_refused():
    agent = LocalAgent(
        transition=sp.csr_array(np.eye(200)), reward=np.zeros((1, 200, 1)), uses=np.ones((1, 200, 1, 1)),
        initial=np.eye(200)[0],
    )  # fmt: skip
    game = LocalGame(agents=[agent] * 2, delay=np.zeros((1, 1, 3)), load_costs=[], thresholds=[], horizon=1)
    with pytest.raises(GameError, match="entries"):
        to_joint(game)
