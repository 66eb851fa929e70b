"""Many agents at common prices: where `CommonPrice` ends, what its prices prove, and where `solve` ends from there."""

import time
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from small_crowds import always, crossing, crowd, crowds, queue, twin_doors

import cmpg
from cmpg.cmdp.kernels.choice import compiled
from cmpg.equilibrium.best_responses import certify_with_best_responses
from cmpg.equilibrium.certificate import Feasibility, certify
from cmpg.equilibrium.result import Status
from cmpg.equilibrium.starts.common_price import CommonPrice
from cmpg.equilibrium.starts.min_cost import MinCostStart
from cmpg.equilibrium.starts.start import is_feasible, random_start
from cmpg.files.policies import load_policy
from cmpg.games.game import Information
from cmpg.games.local.to_joint import lift_policy, to_joint
from cmpg.scenarios import robots
from command_line import cmpg as command

AT_REST = 1e-6
"""A share of an agent's range; who gains less at the prices is at rest."""


def common(game, prices):
    """The same prices for every agent: [n, k]."""
    return np.tile(prices, (game.num_agents, 1))


def assert_what_the_prices_promise(game, priced):
    """No agent gains more than the price of what is left: at common prices, or, if it took something, at its own."""
    proof = certify(game, priced.policy, common(game, priced.multipliers))
    left = float(priced.multipliers @ proof.slacks)
    gains = np.minimum(proof.gains, certify_with_best_responses(game, priced.policy).gains)
    assert (gains <= left + AT_REST * game.reward_ranges + 4 * proof.rounding).all()
    return proof


@settings(deadline=None, max_examples=30)
@given(game=crowds(), seed=st.integers(0, 2**32 - 1), ties=st.booleans())
def test_the_policy_is_feasible_and_the_prices_bound_every_gain(game, seed, ties):
    rng = np.random.default_rng(seed)
    start = random_start(game, always(game, 0), rng=rng)
    priced = CommonPrice()(game, start, rng=rng if ties else None)
    assert certify(game, priced.policy).feasibility is Feasibility.PROVEN
    # The joint form knows nothing of loads.
    spent = to_joint(game).at(lift_policy(game, priced.policy)).costs
    assert (spent <= game.thresholds + 1e-12).all()
    assert priced.multipliers.shape == game.thresholds.shape
    assert (priced.multipliers >= 0).all()
    if priced.policy is start:
        assert not priced.multipliers.any()
    else:
        assert_what_the_prices_promise(game, priced)


@settings(deadline=None, max_examples=20)
@given(game=crowds(), seed=st.integers(0, 2**32 - 1))
def test_a_start_that_spends_all_of_a_threshold_above_zero_is_returned_as_it_is(game, seed):
    rng = np.random.default_rng(seed)
    start = game.random_policy(rng=rng)
    thresholds = game.at(start).costs + rng.random(game.num_constraints)
    tight = rng.integers(game.num_constraints)
    thresholds[tight] = game.at(start).costs[tight]
    assume(thresholds[tight] > 0)
    priced = CommonPrice()(replace(game, thresholds=thresholds), start)
    assert priced.policy is start
    assert not priced.multipliers.any()


@settings(deadline=None, max_examples=20)
@given(game=crowds(), seed=st.integers(0, 2**32 - 1))
def test_where_no_budget_binds_nothing_has_a_price_and_nobody_gains(game, seed):
    free = replace(game, thresholds=np.full(game.num_constraints, 1e6))
    priced = CommonPrice()(free, game.random_policy(rng=np.random.default_rng(seed)))
    assert not priced.multipliers.any()
    proof = certify(free, priced.policy, np.zeros((game.num_agents, game.num_constraints)))
    assert (proof.gains <= AT_REST * game.reward_ranges + proof.rounding).all()


@pytest.mark.parametrize("agents", [2, 3, 6, 12])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
def test_where_a_budget_binds_it_has_a_price(agents, share):
    most = agents * (agents - 1.0)
    game = crossing(agents, thresholds=[share * most])
    priced = CommonPrice()(game, always(game, 0))
    assert priced.multipliers[0] > 0
    proof = assert_what_the_prices_promise(game, priced)
    assert proof.feasibility is Feasibility.PROVEN
    assert proof.values.sum() > 0
    selfish = CommonPrice()(replace(game, thresholds=[most + 1]), always(game, 0))
    assert selfish.multipliers[0] == 0
    assert game.at(selfish.policy).costs[0] == pytest.approx(most)


def test_of_two_budgets_the_one_that_binds_has_the_price():
    """They count the same pairs, and the second one allows all of them."""
    game = crossing(6, thresholds=[10.0, 31.0], constraints=2)
    priced = CommonPrice()(game, always(game, 0))
    assert priced.multipliers[0] > 10 * priced.multipliers[1]
    assert_what_the_prices_promise(game, priced)


def test_agents_come_to_rest_and_a_budget_that_breaks_late_is_noticed():
    free, bound = queue(6, threshold=1.5), queue(6, threshold=0.5)
    priced = CommonPrice()(free, always(free, 0))
    assert priced.multipliers.tolist() == [0.0]
    assert free.at(priced.policy).values.tolist() == [1.0] * 6
    priced = CommonPrice()(bound, always(bound, 0))
    assert priced.multipliers[0] > 0
    assert_what_the_prices_promise(bound, priced)
    # The last one who gave way takes what is left.
    assert bound.at(priced.policy).values == pytest.approx([0.5, *[1.0] * 5])


def test_ties_are_broken_by_the_generator_and_by_nothing_else():
    game, found = twin_doors(5), set()
    for seed in range(8):
        first, second = (CommonPrice()(game, always(game, 0), rng=np.random.default_rng(seed)) for _ in range(2))
        assert first.policy.fingerprint() == second.policy.fingerprint()
        assert first.multipliers.tolist() == second.multipliers.tolist()
        found.add(first.policy.fingerprint())
    assert len(found) > 1


def test_a_deadline_ends_the_search_with_what_is_feasible():
    game = crossing(6, thresholds=[10.0])
    start = always(game, 0)
    assert CommonPrice()(game, start, deadline=time.monotonic() - 1).policy is start
    moves = []

    def stop_after_three(step):
        moves.append(step)
        time.sleep(0.02 if len(moves) > 2 else 0)

    stopped = CommonPrice()(game, start, deadline=time.monotonic() + 0.02, on_progress=stop_after_three)
    assert is_feasible(game.at(stopped.policy))
    assert not stopped.interrupted
    given = cmpg.solve(game, start=start, time_limit=0.0)
    assert given.status is Status.LIMIT
    assert given.certificate.feasible
    assert cmpg.solve(game, time_limit=0.0).status is Status.FEASIBILITY_UNKNOWN


def test_an_interruption_keeps_the_last_feasible_policy():
    game = crossing(6, thresholds=[10.0])

    feasible = []

    def interrupt(step):
        if feasible:
            raise KeyboardInterrupt
        feasible.extend(step.costs[(step.costs > 0) & (step.costs <= 10)])

    result = cmpg.solve(game, on_progress=interrupt)
    assert result.status is Status.INTERRUPTED
    assert result.certificate.feasible
    assert result.values.sum() > 0


def test_a_few_take_what_is_left_and_nobody_gains_then():
    game = crossing(9, thresholds=[7.3])
    priced = CommonPrice()(game, always(game, 0))
    assert 0 <= priced.slack <= 1e-8
    mixing = [i for i in range(9) if (priced.policy[i] % 1).any()]
    assert 1 <= len(mixing) <= 2
    assert certify_with_best_responses(game, priced.policy).epsilon <= 1e-7
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CMPG_KERNELS", "numpy")
        twin = CommonPrice()(replace(game), always(game, 0))
    assert twin.slack == pytest.approx(priced.slack, abs=1e-9)
    assert certify_with_best_responses(game, twin.policy).epsilon <= 1e-7


def test_the_search_is_told_named_counted_and_in_the_trace():
    told = []
    result = cmpg.solve(crossing(6, thresholds=[10.0]), on_progress=told.append)
    assert result.settings["start"] == "CommonPrice()"
    rounds = [step for step in result.trace if step.multipliers is not None]
    ascent = result.trace[len(rounds) :]
    assert [step.iteration for step in rounds] == list(range(1, len(rounds) + 1))
    assert all(step.multipliers is None for step in ascent)
    assert result.search_moves == sum(step.moves for step in rounds) > 0
    searched = [step for step in told if step.multipliers is not None]
    assert told[: len(searched)] == searched
    # Each move by itself; or, by compiled kernels, all moves of one settling.
    assert sum(step.moves + (step.mover is not None) for step in searched) == result.search_moves
    assert [step.iteration for step in ascent] == [step.iteration for step in told[len(searched) :]]
    assert np.all(np.diff([step.seconds for step in result.trace]) >= 0)


def test_another_start_is_honoured():
    game = crossing(6, thresholds=[10.0])
    result = cmpg.solve(game, start=MinCostStart())
    assert result.settings["start"] == "MinCostStart()"
    assert all(step.multipliers is None for step in result.trace)
    given = cmpg.solve(game, start=always(game, 0))
    assert given.settings["start"] == "a given policy"
    assert given.search_moves == 0


def test_a_budget_that_no_price_could_keep_is_no_trouble():
    game = crossing(3, thresholds=[1e-310])
    assert CommonPrice()(game, always(game, 0)).multipliers.tolist() == [0.0]
    assert cmpg.solve(game).certificate.feasible


# solve, from there


def suitable_epsilon(game):
    return 1e-6 * float(game.reward_ranges.max())


def assert_certified(game, result):
    """Certified; or, where a sliver of budget has a price without bound, a word about rounding."""
    dearest = float(np.max(result.multipliers, initial=0.0)) * float(np.abs(game.load_costs).max())
    if dearest > 1e9 * float(game.reward_ranges.max()):
        assert result.certified or "rounding" in result.message
    else:
        assert result.status is Status.CERTIFIED, result.message
    assert result.certificate.feasible


@settings(deadline=None, max_examples=25)
@given(game=crowds(shares=(0.0, 0.02, 0.1, 0.4, 0.9, 2.0)))
def test_solve_ends_certified_and_the_files_alone_prove_it(tmp_path_factory, game):
    epsilon, folder = suitable_epsilon(game), tmp_path_factory.mktemp("run")
    result = cmpg.solve(game, epsilon=epsilon)
    assert_certified(game, result)
    assert result.certificate.information == Information.OWN_STATE == "own-state policies"
    assert Information.OWN_STATE in str(result)
    cmpg.save_game(game, folder / "game.npz")
    result.policy.save(folder / "policy.npz", multipliers=result.multipliers)
    policy, multipliers = load_policy(folder / "policy.npz")
    again = cmpg.certify(cmpg.load_game(folder / "game.npz"), policy, multipliers)
    assert again.information == Information.OWN_STATE
    assert again.feasible
    assert again.epsilon == pytest.approx(result.certificate.epsilon, abs=1e-9 * epsilon)
    assert again.values == pytest.approx(result.values, abs=1e-12)
    assert again.costs == pytest.approx(result.costs, abs=1e-12)


def test_the_command_certifies_what_was_saved_and_nothing_better(tmp_path):
    game = crossing(4, thresholds=[3.0])
    result = cmpg.solve(game, epsilon=1e-6)
    assert result.certified
    cmpg.save_game(game, tmp_path / "game.npz")
    result.policy.save(tmp_path / "policy.npz", multipliers=result.multipliers)
    ran = command("certify", tmp_path / "game.npz", tmp_path / "policy.npz", "--epsilon", "1e-6")
    assert ran.code == 0
    assert Information.OWN_STATE in ran.out
    always(game, 0).save(tmp_path / "idle.npz", multipliers=result.multipliers)
    assert command("certify", tmp_path / "game.npz", tmp_path / "idle.npz").code == 1
    always(game, 1).save(tmp_path / "broke.npz", multipliers=result.multipliers)
    ran = command("certify", tmp_path / "game.npz", tmp_path / "broke.npz", "--epsilon", "1000")
    assert ran.code == 1
    assert "violates a threshold" in ran.out


CROWDS = {k: crowd(np.random.default_rng(11), agents=6, horizon=3, constraints=k, share=0.3) for k in (1, 2)}


@pytest.mark.skipif(compiled() is None, reason="the twin goes another way")
def test_whoever_took_something_and_would_rather_trade_again_is_not_left_to_the_ascent():
    fleets = [robots(num_agents=n, seed=seed, horizon=30, edges=False) for n, seed in ((16, 10), (16, 28), (24, 39))]
    results = [cmpg.solve(fleet, epsilon=1e-4, improve=None) for fleet in fleets]
    assert all(result.certified for result in results)
    assert sum(result.moves for result in results) <= 3  # 30 if everybody who has taken something waits until the end


@pytest.mark.parametrize("schedule", [cmpg.GreatestGain(), cmpg.equilibrium.RoundRobin()])
@pytest.mark.parametrize("game", [*CROWDS.values(), twin_doors(6)], ids=["k=1", "k=2", "ties"])
def test_workers_do_not_change_a_bit(schedule, game):
    for start in (None, always(game, 0)):
        one, two = (
            cmpg.solve(
                game, start=start, method=cmpg.Ascent(schedule=schedule, workers=workers), rng=np.random.default_rng(3)
            )
            for workers in (1, 2)
        )
        assert one.certified
        assert one.moves == two.moves
        assert one.moves > 0 or start is None
        assert one.policy.fingerprint() == two.policy.fingerprint()
        assert one.multipliers.tobytes() == two.multipliers.tobytes()


# An independent check: all deterministic policies of one agent, and a linear program that mixes them


def followed(game, policy):
    """Values and costs by following every joint state and every joint action, from the tables of the game alone."""
    agents, members = range(game.num_agents), game.agents
    values, costs = np.zeros(game.num_agents), np.zeros(game.num_constraints)
    present = {
        states: prod(members[i].initial[states[i]] for i in agents)
        for states in product(*(range(member.num_states) for member in members))
    }
    for h in range(game.horizon):
        ahead = dict.fromkeys(present, 0.0)
        for states, actions in product(present, product(*(range(member.num_actions) for member in members))):
            weight = present[states] * prod(policy[i][h, states[i], actions[i]] for i in agents)
            if weight == 0:
                continue
            rows = [states[i] * members[i].num_actions + actions[i] for i in agents]
            uses = np.array([members[i].uses[0].toarray()[rows[i]] for i in agents])
            loads = uses.sum(axis=0).astype(int)
            places = (0, np.arange(game.num_resources), loads)
            costs += weight * game.load_costs[:, *places].sum(axis=-1)
            for i, member in enumerate(members):
                reward = member.reward[h % len(member.reward), states[i], actions[i]]
                values[i] += weight * (reward - uses[i] @ game.delay[places])
                costs += 0 if member.costs is None else weight * member.costs[:, 0, states[i], actions[i]]
            moves = [members[i].transition[0].toarray()[rows[i]] for i in agents]
            for following in ahead:
                ahead[following] += weight * prod(moves[i][following[i]] for i in agents)
        present = ahead
    return values, costs


def best_deviation(game, policy, agent):
    """The value of the best mixture of deterministic own-state policies that keeps every budget."""
    steps, states, actions = game.policy_shapes[agent]
    outcomes = []
    for choice in product(range(actions), repeat=steps * states):
        table = np.eye(actions)[np.reshape(choice, (steps, states))]
        outcomes.append(followed(game, policy.replace(agent, table)))
    worth = np.array([values[agent] for values, _ in outcomes])
    spent = np.array([costs for _, costs in outcomes]).T
    best = linprog(-worth, A_ub=spent, b_ub=game.thresholds, A_eq=np.ones((1, len(worth))), b_eq=[1.0], method="highs")
    assert best.status == 0
    return -best.fun


@pytest.mark.parametrize("constraints", [1, 2])
@pytest.mark.parametrize(("agents", "horizon", "states", "actions"), [(2, 2, 2, 2), (3, 1, 2, 3), (3, 2, 1, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_no_mixture_of_deterministic_policies_gains(constraints, agents, horizon, states, actions, seed):
    sizes = {"agents": agents, "horizon": horizon, "states": states, "actions": actions}
    game = crowd(np.random.default_rng(seed), constraints=constraints, share=0.3, **sizes)
    epsilon = suitable_epsilon(game)
    result = cmpg.solve(game, epsilon=epsilon)
    assert_certified(game, result)
    values, costs = followed(game, result.policy)
    np.testing.assert_allclose(values, result.values, rtol=0, atol=1e-10)
    assert (costs <= game.thresholds + 1e-9).all()
    for agent in range(agents):
        assert best_deviation(game, result.policy, agent) <= values[agent] + epsilon + 1e-9
    # Where everybody idles there is something to gain: the check can fail.
    idle = always(game, 0)
    gains = [best_deviation(game, idle, agent) - followed(game, idle)[0][agent] for agent in range(agents)]
    assert max(gains) > 0.1


@pytest.mark.parametrize(("agents", "threshold", "rounds"), [(20, 300.0, 22), (40, 700.0, 20)])
def test_steps_grow_where_agents_hardly_answer_to_prices(agents, threshold, rounds):
    """With steps in proportion to what is missing, these searches take 27 and 23 rounds."""
    priced = CommonPrice()(crossing(agents, thresholds=[threshold]))
    assert priced.slack < 1e-9 * threshold
    assert len(priced.trace) <= rounds
