"""What learners rest on, computed a second time from its definition: tables, grids, walks, cuts and constants."""

import math
from dataclasses import replace

import numpy as np
import pytest

import cmpg
from cmpg.cmdp.evaluation import action_values
from cmpg.equilibrium.best_responses import certify_with_best_responses
from cmpg.equilibrium.discounted import prolonged
from cmpg.errors import BudgetError, CMPGError, GameError, InfeasibleError, SimulatorError
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.learning import bounds as theory
from cmpg.learning.confidence import binomial_interval, empirical_cmdp, fixed_bets, mean_ceiling
from cmpg.learning.local.model import (
    LocalModel,
    convex_parts,
    monotone_parts,
    usage_ends,
)
from cmpg.learning.local.simulator import LocalSamples, LocalSimulator
from cmpg.learning.optimism import Draws, Measurement, MultiplierGrid, Optimism
from cmpg.learning.problem import InducedProblem
from cmpg.learning.samples import (
    Ledger,
    Payoffs,
    PayoffSums,
    ProblemSpec,
    Samples,
    Totals,
    cut_settings,
    observed_bounds,
)
from cmpg.learning.simulator import GameSimulator
from cmpg.learning.truncation import cut_off, finite_form, steps_for, steps_until_rounding
from cmpg.policy import JointPolicy
from cmpg.scenarios.paper import counting_congestion_game


def game(seed=0, *, horizon=3, states=3, actions=(2, 3), constraints=2, **options):
    """Payoffs change with the step, agents have different numbers of actions, and no two numbers are alike."""
    rng = np.random.default_rng(seed)
    shape = (horizon, states, *actions)
    return JointGame(
        transition=rng.dirichlet(np.ones(states), size=shape),
        rewards=rng.normal(size=(len(actions), *shape)),
        costs=rng.normal(size=(constraints, *shape)),
        thresholds=rng.random(constraints),
        initial=rng.dirichlet(np.ones(states)),
        horizon=horizon,
        **options,
    )


def simulator(seed=0, **options):
    return GameSimulator(game(seed), rng=np.random.default_rng(seed), **options)


def policy(seed=1, **options):
    return game(**options).random_policy(rng=np.random.default_rng(seed))


# --- optimism.py ----------------------------------------------------------------------------------------------------


def test_before_the_first_episode_a_measurement_knows_the_ranges_of_what_it_adds_up():
    played = policy()
    problem = InducedProblem(simulator(), 1, played)
    reward, costs = problem.payoffs
    tables = np.concatenate([reward[None], costs])
    plain = Measurement(problem, played[1], None, delta=0.1)
    assert plain.floors == pytest.approx(tables.min(axis=(2, 3)).sum(axis=1))
    assert plain.ceilings == pytest.approx(tables.max(axis=(2, 3)).sum(axis=1))
    assert (plain.episodes, plain.next_batch) == (0, 256)
    # Lemma 2: X = μ·V_0 + Σ_h (r − Q) + Σ_{h ≥ 1} V, with Q and V of a model.
    model = empirical_cmdp(problem, problem.draw(5))
    expected = np.moveaxis(action_values(model, played[1]), 1, 0)  # [1 + k, H, S, A]
    values = (played[1] * expected).sum(axis=-1)
    added = tables - expected
    added[:, 1:] += values[:, 1:, :, None]
    corrected = Measurement(problem, played[1], model, delta=0.1)
    offsets = values[:, 0] @ problem.known.initial
    assert corrected.floors == pytest.approx(offsets + added.min(axis=(2, 3)).sum(axis=1))
    assert corrected.ceilings == pytest.approx(offsets + added.max(axis=(2, 3)).sum(axis=1))


def test_payoffs_that_are_only_observed_widen_the_ranges_by_what_can_be_seen():
    played = policy()
    problem = InducedProblem(simulator(payoff_noise=0.25), 0, played)
    true = game()
    tables = np.concatenate([true.rewards[:1], true.costs]).reshape(3, 3, -1)
    seen = Measurement(problem, played[0], None, delta=0.1)
    assert seen.floors == pytest.approx((tables.min(axis=2) - 0.25).sum(axis=1))
    assert seen.ceilings == pytest.approx((tables.max(axis=2) + 0.25).sum(axis=1))


def test_a_measurement_doubles_its_episodes_and_bounds_by_all_of_them():
    played = policy()
    problem = InducedProblem(simulator(), 0, played)
    seen = Measurement(problem, played[0], None, delta=0.2)
    first = seen.floors.copy(), seen.ceilings.copy()
    for number in (256, 512, 1024):
        seen.grow()
        assert (seen.episodes, seen.next_batch) == (number, number)
    low, high = seen.bounds.value_floor, seen.bounds.value_ceiling
    assert [low, *seen.bounds.cost_floors] == pytest.approx(seen.floors)
    assert [high, *seen.bounds.cost_ceilings] == pytest.approx(seen.ceilings)
    assert np.all(seen.floors > first[0])
    assert np.all(seen.ceilings < first[1])
    # The third batch has δ/(3·4), for two sides of three means.
    totals = seen._totals
    for index, column in enumerate(totals.values.T):
        best = mean_ceiling(column, totals.counts, most=first[1][index], delta=0.2 / 12 / 6)
        assert seen.ceilings[index] <= best + 1e-12
        assert (
            -seen.floors[index] <= mean_ceiling(-column, totals.counts, most=-first[0][index], delta=0.2 / 72) + 1e-12
        )


def test_rows_of_draws_hold_what_was_drawn():
    counts = np.array([[[[0, 3, 1], [5, 0, 0]], [[0, 0, 0], [2, 2, 2]]]])  # [1, 2, 2, 3]
    states, often = Draws(counts).rows[0]
    assert states.shape == (4, 3)
    for row, (where, number) in enumerate(zip(states, often, strict=True)):
        table = np.zeros(3, dtype=int)
        table[where] = number
        assert np.array_equal(table, counts.reshape(4, 3)[row])
    assert Draws(counts[:, :1, 1:]).rows[0][0].tolist() == [[0]]  # as few columns as the longest row has
    assert Draws(np.zeros((1, 1, 1, 2), dtype=int)).rows[0][1].tolist() == [[0]]


@pytest.mark.parametrize("steps", [1, 2])
def test_the_largest_value_is_over_the_states_that_are_possible_next(steps):
    support = np.random.default_rng(steps).random((steps, 2, 2, 3)) < 0.5
    support[..., 0] |= ~support.any(axis=-1)
    draws, values = Draws(np.zeros((2, 2, 2, 3), dtype=int), support), np.array([-3.0, -2.0, -1.0])
    for h in (0, 1):
        possible = support[h if steps == 2 else 0]
        expected = [[max(v for v, p in zip(values, row, strict=True) if p) for row in rows] for rows in possible]
        assert draws.most(h, values).tolist() == expected
    assert (Draws(draws.transitions).most(0, values) == -1.0).all()


@pytest.mark.parametrize("learned", [False, True])
def test_optimism_is_its_recursion(learned):
    rng = np.random.default_rng(4)
    reward, costs = rng.normal(size=(3, 2, 2)), rng.normal(size=(2, 3, 2, 2))
    draws = Draws(rng.integers(0, 40, size=(2, 2, 2, 2)))
    fixed = (np.full((3, 1, 1), 3.0), np.full((2, 3, 1, 1), -3.0)) if learned else None
    hope = Optimism(draws, reward, costs, np.array([0.3, -0.2]), np.array([0.4, 0.6]), np.ones(2), 0.1, fixed)
    share = 0.1 / (2 * 2 * 2 * (513**2 + 2))
    assert hope.entry_delta == pytest.approx(share, rel=1e-12)
    multipliers, bets = np.array([0.5, 2.0]), fixed_bets(2**24, share)
    stages = reward - 0.5 * costs[0] - 2.0 * costs[1]
    most = stages if fixed is None else np.broadcast_to(3.0 + 2.5 * 3.0, stages.shape)
    worth, limit, to_go = [], np.zeros(2), np.zeros(2)
    for h in (2, 1, 0):
        here, largest = stages[h].copy(), most[h].copy()
        if h < 2:
            for s, a in np.ndindex(2, 2):
                here[s, a] += mean_ceiling(to_go, draws.transitions[h, s, a], most=limit.max(), delta=share, bets=bets)
            largest = largest + limit.max()
        limit = largest.max(axis=1)
        to_go = np.minimum(here.max(axis=1), limit)
        worth.insert(0, here)
    assert hope.worth(multipliers) == pytest.approx(np.stack(worth), rel=1e-10)
    assert hope.bound(multipliers) == pytest.approx(0.5 * 0.3 - 2.0 * 0.2 + [0.4, 0.6] @ worth[0].max(axis=1))


def test_infeasible_means_that_the_least_cost_is_above_the_threshold_and_names_the_constraint():
    costs = np.array([[[[0.5, 0.75]]], [[[-1.0, 0.25]]]])  # [2, 1, 1, 2]: one step, so that nothing is drawn
    draws = Draws(np.zeros((0, 1, 2, 1), dtype=int))

    def hope(thresholds):
        return Optimism(draws, np.full((1, 1, 2), 7.0), costs, np.array(thresholds), np.ones(1), np.ones(2), 0.1)

    hope([0.5, -1.0]).require_feasible()  # both are met, at their least
    with pytest.raises(InfeasibleError, match=r"constraint 0 has the threshold 0.49, and costs at least 0.5 "):
        hope([0.49, 0.0]).require_feasible()
    with pytest.raises(InfeasibleError, match=r"constraint 5 has the threshold -1.5, and costs at least -1 "):
        hope([0.5, -1.5]).require_feasible(np.array([3, 5]))
    assert hope([0.5, -1.0]).entry_delta == pytest.approx(0.1 / (513**2 + 2))


def test_places_of_the_grid_are_powers_around_a_scale():
    grid = MultiplierGrid(np.array([0.5, 3.0]))
    assert grid.size == 513.0**2
    assert grid.multipliers((0, 257)).tolist() == [0.0, 3.0]
    assert grid.multipliers((257 + 32, 257 - 64)) == pytest.approx([1.0, 0.75])
    for place in ((0, 1), (1, 0), (512, 256), (100, 400)):
        assert grid.place(grid.multipliers(place)) == place
    assert grid.place(np.array([-1.0, np.inf])) == (0, 512)
    assert grid.place(np.array([0.5 * 2 ** (0.6 / 32), 3.0 * 2 ** (0.4 / 32)])) == (258, 257)
    assert grid.place(np.array([0.5 * 2**-9, 3e9])) == (0, 512)


def walk(function, near):
    """Walk over a grid of scale 1, where multipliers 2^((p − 257)/32) are at place p."""
    seen = []

    def bound(multipliers):
        seen.append(multipliers)
        return function(*(257 + 32 * np.log2(multipliers)))

    found = MultiplierGrid(np.ones(len(near))).least(bound, np.array(near))
    assert len(seen) == found.work == len({tuple(each) for each in seen})  # nothing is looked at twice
    return found


def test_the_walk_ends_where_no_neighbour_is_below():
    here = walk(lambda place: abs(place - 257), [1.0])
    assert (here.value, here.multipliers.tolist(), here.work) == (0.0, [1.0], 7)  # 1 + 2·(4, 2, 1)
    assert walk(lambda place: 1.0, [1.0]).work == 7  # a plateau is left at once
    far = walk(lambda place: abs(place - 400), [1.0])
    assert far.value == pytest.approx(0.0, abs=1e-9)
    assert far.work == 24
    edge = walk(lambda place: -place, [2.0**7])
    assert edge.multipliers == pytest.approx([2.0 ** (255 / 32)])
    corner = walk(lambda one, two: abs(one - 300) + abs(two - 200), [1.0, 1.0])
    assert corner.value == pytest.approx(0.0, abs=1e-9)
    assert walk(lambda: 3.0, []).work == 1


def test_the_walk_may_go_to_zero():
    found = MultiplierGrid(np.ones(1)).least(lambda multipliers: float(multipliers[0]), np.array([2.0**-7.9]))
    assert found.multipliers.tolist() == [0.0]


# --- samples.py -----------------------------------------------------------------------------------------------------


def test_induced_payoffs_are_averages_over_what_the_others_play():
    true, played = game(), policy()
    reward, costs = Payoffs(true.rewards, true.costs).induced(1, played)
    assert reward == pytest.approx(np.einsum("hsab,hsa->hsb", true.rewards[1], played[0]))
    assert costs[1] == pytest.approx(np.einsum("hsab,hsa->hsb", true.costs[1], played[0]))
    known = simulator().known
    assert known.induced_payoffs(1, played)[1] == pytest.approx(np.stack(costs))
    free = replace(known, payoffs=Payoffs(true.rewards, true.costs[:0]), thresholds=[], cost_bounds=[])
    assert free.induced_payoffs(1, played)[1].shape == (0, 3, 3, 3)


def test_the_cheapest_joint_action_is_that_of_the_worst_cost_in_its_units():
    true, units = game(), np.array([2.0, 0.5])
    found = Payoffs(true.rewards, true.costs).cheapest(units, 3)
    worst = (true.costs / units[:, None, None, None, None]).max(axis=0)
    for h, s in np.ndindex(3, 3):
        first, second = np.unravel_index(worst[h, s].argmin(), (2, 3))
        assert found[0][h, s].tolist() == np.eye(2)[first].tolist()
        assert found[1][h, s].tolist() == np.eye(3)[second].tolist()
    still = Payoffs(true.rewards[:, :1], true.costs[:, :1]).cheapest(units, 4)
    assert still.shapes == ((4, 3, 2), (4, 3, 3))


def test_counting_payoffs_choose_the_cheapest_class():
    true = counting_congestion_game(num_agents=2)
    payoffs = GameSimulator(true, rng=np.random.default_rng(0)).known.payoffs
    found = payoffs.cheapest(np.array([2.0]), true.num_steps)
    costs = true.joint_cmdp().costs[0]
    assert true.at(found).costs[0] == pytest.approx(
        true.at(true.split(np.repeat(costs.argmin(axis=2), 2, axis=0))).costs[0]
    )
    assert found.shapes == true.policy_shapes


def test_counting_payoffs_weigh_costs_in_their_units():
    true = counting_congestion_game(num_agents=2)
    twice = np.random.default_rng(0).random((2, *true.costs.shape[1:]))
    true = replace(true, costs=twice, thresholds=[1.0, 1.0], constraint_names=None)
    payoffs = GameSimulator(true, rng=np.random.default_rng(0)).known.payoffs
    costs = true.joint_cmdp().costs
    for units in ([1.0, 1.0], [3.0, 1.0], [1.0, 3.0]):
        worst = (costs / np.reshape(units, (2, 1, 1, 1))).max(axis=0)
        expected = true.split(np.repeat(worst.argmin(axis=2), true.num_steps, axis=0)[: true.num_steps])
        found = payoffs.cheapest(np.array(units), true.num_steps)
        assert [table.tolist() for table in found] == [table.tolist() for table in expected]


def test_known_has_sizes_spans_and_supports():
    true = game()
    known = simulator(reveal_support=True).known
    assert (known.num_agents, known.num_states, known.num_constraints) == (2, 3, 2)
    assert known.entry_shape == (3, 2, 3)
    assert known.policy_shapes == ((3, 3, 2), (3, 3, 3))
    spans = np.ptp(true.rewards.reshape(2, 3, -1), axis=2)
    assert known.reward_spans == pytest.approx(spans)
    assert known.reward_ranges == pytest.approx(spans.sum(axis=1))
    assert known.cost_spans == pytest.approx(np.ptp(true.costs.reshape(2, 3, -1), axis=2))
    assert known.max_successors(0) == 3
    sparse = np.zeros((1, 3, 2, 3, 3), dtype=bool)
    sparse[0, :, 0, :, 0] = sparse[0, :, 1, :, 1] = True
    sparse[0, 2, 0, 1, 2] = True
    thin = replace(known, support=sparse)
    assert thin.induced_support(0)[0, 2].tolist() == [[True, False, True], [False, True, False]]
    assert thin.induced_support(1)[0, 2, 1].tolist() == [True, True, True]
    assert (thin.max_successors(0), thin.max_successors(1)) == (2, 3)
    assert replace(known, support=None).max_successors(0) == 3
    rewards, costs = known.extreme_payoffs(1)
    assert rewards.ravel() == pytest.approx(true.rewards[1].reshape(3, -1).max(axis=1))
    assert costs[1].ravel() == pytest.approx(true.costs[1].reshape(3, -1).min(axis=1))


def test_classes_of_counts_share_their_next_states():
    true = counting_congestion_game(num_agents=2)
    known = GameSimulator(true, rng=np.random.default_rng(0), reveal_support=True).known
    found = known.induced_support(1)
    occur = known.support[:, :, true.classes_that_occur].any(axis=2)
    assert found.shape == (len(known.support), true.num_states, true.num_actions[1], true.num_states)
    assert (found == occur[:, :, None]).all()


def test_steps_are_alike_in_a_state_where_the_others_do_the_same():
    base = game(horizon=4)
    plain = replace(base, transition=base.transition[:1])
    known = GameSimulator(plain, rng=np.random.default_rng(0)).known
    others = np.zeros((4, 3, 3))
    others[..., 0] = 1.0
    others[1, 2] = others[2, 2] = [0.0, 1.0, 0.0]
    others[2, 1] = [0.5, 0.5, 0.0]
    played = JointPolicy((np.full((4, 3, 2), 0.5), others))
    assert known.first_alike(0, played).tolist() == [[0, 0, 0], [0, 0, 1], [0, 2, 1]]
    changing = GameSimulator(base, rng=np.random.default_rng(0)).known
    assert changing.first_alike(0, played).tolist() == [[0, 0, 0], [1, 1, 1], [2, 2, 2]]
    unseen = GameSimulator(plain, rng=np.random.default_rng(0), payoff_noise=0.1).known
    assert unseen.first_alike(0, played).tolist() == [[0] * 3, [1] * 3, [2] * 3, [3] * 3]


def test_draws_of_one_step_serve_those_that_are_alike():
    visits = np.arange(12).reshape(3, 2, 2)
    transitions = np.arange(16).reshape(2, 2, 2, 2)
    first = np.array([[0, 0], [0, 1]])
    shared = Samples(visits, transitions).reused(first)
    assert shared.visits.tolist() == [
        visits[0].tolist(),
        [visits[0, 0].tolist(), visits[1, 1].tolist()],
        visits[2].tolist(),
    ]
    assert shared.transitions[1].tolist() == [transitions[0, 0].tolist(), transitions[1, 1].tolist()]


def test_samples_and_totals_add_up():
    sums = PayoffSums(np.ones((2, 1, 1, 2, 3)), np.full((1, 1, 1, 2, 3), 2.0))
    one = Samples(np.ones((1, 1, 2, 3), dtype=int), np.zeros((0, 1, 2, 3, 1), dtype=int), sums)
    twice = (one + one).seen_by(1)
    assert twice.visits.tolist() == [[[4, 4, 4]]]
    assert (twice.observed.rewards == 4).all()
    assert (twice.observed.costs == 8).all()
    assert twice.observed.costs.shape == (1, 1, 1, 3)
    assert (one + replace(one, observed=None)).observed is None
    totals = Totals.merged(np.array([[1.0], [3.0], [1.0]]), np.array([2, 1, 3]))
    assert (totals.values.tolist(), totals.counts.tolist()) == ([[1.0], [3.0]], [5, 1])
    assert (totals + totals).episodes == 12
    assert totals.means.tolist() == [pytest.approx(8 / 6)]
    assert Totals(np.zeros((0, 2)), np.zeros(0, dtype=int)).means.tolist() == [0.0, 0.0]


def test_ranges_are_the_least_and_the_greatest_of_every_step():
    table = np.array([[[[1.0, 5.0], [2.0, -1.0]], [[0.0, 0.0], [3.0, 4.0]]]])  # [1, 2, 2, 2]
    assert observed_bounds(table).tolist() == [[[-1.0, 5.0], [0.0, 4.0]]]
    assert observed_bounds(table, 0.5).tolist() == [[[-1.5, 5.5], [-0.5, 4.5]]]
    with pytest.raises(GameError, match="least value above its greatest"):
        replace(simulator().known, reward_bounds=[[[1.0, 0.0]], [[0.0, 1.0]]])
    point = replace(simulator().known, reward_bounds=[[[1.0, 1.0]], [[0.0, 1.0]]])
    assert point.reward_spans.tolist() == [[0.0] * 3, [1.0] * 3]
    for shape in ((2, 3), (2, 1, 3)):
        with pytest.raises(GameError, match=r"\[m, H or 1, 2\] is required"):
            replace(simulator().known, reward_bounds=np.ones(shape))
    with pytest.raises(GameError, match=r"rewards has shape \[1, 1, 2\]"):
        ProblemSpec.from_payoffs(rewards=np.ones((1, 1, 2)), costs=[], thresholds=[], initial=[1.0], horizon=1)
    with pytest.raises(GameError, match="an axis of actions"):
        ProblemSpec.from_payoffs(rewards=np.ones((1, 1, 1, 2, 2)), costs=[], thresholds=[], initial=[1.0], horizon=1)


def test_a_ledger_keeps_its_budget_to_the_last_sample():
    ledger = Ledger(budget=10)
    ledger.charge("draws", 4)
    ledger.charge("values", 6)
    assert (ledger.total, ledger.left, ledger.by_purpose) == (10, 0, {"draws": 4, "values": 6})
    with pytest.raises(BudgetError, match='1 samples for "draws" are needed; 0 of the budget of 10'):
        ledger.charge("draws", 1)
    assert Ledger(budget=1).left == 1
    assert Ledger().left == np.inf
    Ledger().require("draws", 2**53)
    with pytest.raises(BudgetError, match="cannot be counted"):
        Ledger().require("draws", 2**53 + 1)
    with pytest.raises(SimulatorError, match="budget is 0"):
        Ledger(budget=0)


# --- truncation.py --------------------------------------------------------------------------------------------------


def discounted(seed=0, discount=0.8):
    rng = np.random.default_rng(seed)
    return JointGame(
        transition=rng.dirichlet(np.ones(2), size=(1, 2, 2, 2)),
        rewards=rng.normal(size=(2, 1, 2, 2, 2)),
        costs=rng.normal(size=(2, 1, 2, 2, 2)),
        thresholds=[3.0, 2.0],
        initial=[0.3, 0.7],
        discount=discount,
    )


def test_a_cut_game_is_weighed_and_shifted():
    true = discounted()
    finite, cut = cut_off(true, 3)
    least = true.rewards.min(axis=(1, 2, 3, 4)), true.costs.min(axis=(1, 2, 3, 4))
    for h in range(3):
        assert finite.rewards[1, h] == pytest.approx(0.8**h * (true.rewards[1, 0] - least[0][1]))
        assert finite.costs[0, h] == pytest.approx(0.8**h * (true.costs[0, 0] - least[1][0]))
    assert cut.cost_shifts == pytest.approx(5.0 * least[1])
    assert finite.thresholds == pytest.approx(true.thresholds - 5.0 * least[1])
    assert cut.reward_tails == pytest.approx(0.8**3 * 5.0 * np.ptp(true.rewards.reshape(2, -1), axis=1))
    assert cut.cost_tails == pytest.approx(0.8**3 * 5.0 * np.ptp(true.costs.reshape(2, -1), axis=1))
    assert (finite.horizon, finite.discount, cut.horizon) == (3, None, 3)
    at_once = cut_off(replace(true, discount=0.0), 3)[0]
    assert at_once.costs[:, 0] == pytest.approx(true.costs[:, 0] - least[1].reshape(2, 1, 1, 1))
    assert not at_once.costs[:, 1:].any()
    plain, same = cut_off(true, 3, shifted=False)
    assert plain.rewards[0, 2] == pytest.approx(0.64 * true.rewards[0, 0])
    assert plain.thresholds.tolist() == [3.0, 2.0]
    assert same.cost_shifts.tolist() == [0.0, 0.0]
    worst = float(cut.reward_tails.max())
    assert cut.left_of(worst + 1) == pytest.approx(1.0)
    with pytest.raises(CMPGError, match="not less than epsilon"):
        cut.left_of(worst)


def test_a_cut_counting_game_is_weighed_and_shifted_alike():
    true = counting_congestion_game(num_agents=2)
    true = replace(true, costs=true.costs + 0.25)
    endless = replace(true, horizon=None, discount=0.5)
    finite, cut = cut_off(endless, 2)
    rewards = [
        true.private_rewards[i] + (true.rewards[..., 1:].min(axis=-1) + true.class_rewards.min(axis=-1)) for i in (0, 1)
    ]
    for i in (0, 1):
        for h in (0, 1):
            expected = 0.5**h * (true.private_rewards[i][0] - rewards[i].min())
            assert finite.private_rewards[i, h] == pytest.approx(expected)
    assert finite.rewards[1] == pytest.approx(0.5 * true.rewards[0])
    assert finite.class_rewards[1] == pytest.approx(0.5 * true.class_rewards[0])
    assert finite.costs[0, 1] == pytest.approx(0.5 * (true.costs[0, 0] - true.costs[0].min()))
    assert cut.cost_shifts == pytest.approx([2.0 * true.costs[0].min()])


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 5.0, 1e9])
@pytest.mark.parametrize("left", [(4.0, 5.0), (0.5, -0.5), (1e3, -0.5)])
def test_the_number_of_steps_is_the_least_that_its_shares_allow(epsilon, left):
    """Thresholds leave so much above the least costs; where that is nothing, the range of the cost counts."""
    true = discounted()
    true = true.with_thresholds(np.array(left) + 5.0 * true.costs.min(axis=(1, 2, 3, 4)))
    ranges = 5.0 * np.ptp(true.rewards.reshape(2, -1), axis=1).max()
    costs = 5.0 * np.ptp(true.costs.reshape(2, -1), axis=1)
    room = np.array([each if each > 0 else cost for each, cost in zip(left, costs, strict=True)])

    def enough(steps):
        tails = 0.8**steps * costs <= epsilon / 16 * room / max(ranges, epsilon)
        return 0.8**steps * ranges <= epsilon / 8 and tails.all()

    found = steps_for(true, epsilon)
    assert enough(found)
    assert found == 1 or not enough(found - 1)
    free = replace(true, costs=true.costs[:0], thresholds=[])
    assert steps_for(free, 8 * float(free.reward_ranges.max())) == 1  # just enough
    assert steps_for(free, 7.9 * ranges * 0.8) == 2
    assert steps_for(replace(true, discount=0.0), epsilon) == 1


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 5.0])
def test_where_the_least_cost_is_the_threshold_the_range_of_the_cost_counts(epsilon):
    true = discounted()
    true = replace(true, costs=true.costs - true.costs.min(axis=(1, 2, 3, 4), keepdims=True), thresholds=[1e3, 0.0])
    rate = 5.0 * max(np.ptp(reward) for reward in true.rewards) / epsilon
    assert steps_for(true, epsilon) == math.ceil(math.log(16 * max(rate, 1)) / math.log(1.25))


def test_what_costs_the_same_everywhere_asks_for_no_steps():
    """Nothing is left above the least cost, and nothing can follow: 0/0 is not computed."""
    true = discounted()
    same = replace(true, costs=np.ones_like(true.costs), thresholds=[5.0, 5.0])
    with np.errstate(all="raise"):
        assert steps_for(same, 0.5) == steps_for(replace(true, costs=true.costs[:0], thresholds=[]), 0.5)


def test_what_is_left_after_many_steps_is_lost_in_rounding():
    true = discounted()
    steps = steps_until_rounding(true)
    assert 0.8**steps <= 2.0**-53 * 0.2 < 0.8 ** (steps - 1)
    assert finite_form(true).horizon == steps
    assert finite_form(game()).horizon == 3
    assert steps_until_rounding(replace(true, discount=0.0)) == 1
    assert finite_form(true).thresholds.tolist() == true.thresholds.tolist()
    first, last = [[1.0, 0.0, 0.0]], [[0.25, 0.75, 0.0]]
    short = JointPolicy((np.array([first, last]),))
    assert prolonged(short, 4)[0].tolist() == [first, last, last, last]
    assert prolonged(short, 1)[0].tolist() == [first]
    known = GameSimulator(true, rng=np.random.default_rng(0), horizon=3).known
    assert cut_settings(known) == {"cut_off_after": 3, "lost_by_it": float(known.cut.reward_tails.max())}
    assert cut_settings(simulator().known) == {}
    assert known.limits == pytest.approx(known.thresholds - known.cut.cost_tails)
    assert simulator().known.limits.tolist() == game().thresholds.tolist()


# --- local/model.py -------------------------------------------------------------------------------------------------


def test_tables_of_loads_split_into_parts_by_their_definitions():
    delay = np.array([9.0, 1.0, 3.0, 2.0, 2.5])
    rising, falling = monotone_parts(delay)
    assert falling.tolist() == [0.0, 0.0, 0.0, 1.0, 1.0]
    assert rising.tolist() == [1.0, 1.0, 3.0, 3.0, 3.5]
    cost = np.array([2.0, 1.0, 4.0, 5.0, 5.0])  # slopes −1, 3, 1, 0; bends −1, 4, −2, −1
    convex, concave = convex_parts(cost)
    assert convex.tolist() == [2.0, 2.0, 6.0, 10.0, 14.0]
    assert concave.tolist() == [0.0, 1.0, 2.0, 5.0, 9.0]


def local_model(count=200, seed=0, **options):
    simulator = LocalSimulator(cmpg.scenarios.grid_world_local(), rng=np.random.default_rng(seed), **options)
    return LocalModel.of(simulator.known, simulator.draw_all(count=count), delta=0.1, interval=binomial_interval)


def local_game(seed, *, delay=None, load_costs=None, steps=3, certain=False):
    """Two kinds of three agents; kernels and uses that change with the step, or not; private costs of some agents."""
    rng = np.random.default_rng(seed)

    def kernel():
        rows = rng.dirichlet(np.ones(3), size=(steps, 3, 2))
        return np.eye(3)[rows.argmax(axis=-1)] if certain else rows

    kernels, uses = (kernel(), kernel()), rng.integers(0, 2, size=(steps, 3, 2, 4)).astype(float)
    agents = [
        LocalAgent(
            transition=kernels[i % 2],
            reward=rng.normal(size=(3, 3, 2)),
            uses=uses,
            initial=rng.dirichlet(np.ones(3)),
            costs=None if i == 0 else rng.normal(size=(2, 3, 3, 2)),
        )
        for i in range(3)
    ]
    return LocalGame(
        agents=agents,
        delay=rng.normal(size=(3, 4, 4)) if delay is None else np.broadcast_to(delay, (1, 4, 4)),
        load_costs=rng.normal(size=(2, 3, 4, 4)) if load_costs is None else np.broadcast_to(load_costs, (2, 1, 4, 4)),
        thresholds=[2.0, 3.0],
        horizon=3,
    )


@pytest.mark.parametrize("count", [30, 1000, 10**6])
@pytest.mark.parametrize("steps", [1, 3])
def test_ends_of_usages_follow_lemma_3(count, steps):
    true = local_game(steps, steps=steps)
    simulator = LocalSimulator(true, rng=np.random.default_rng(0))
    model = LocalModel.of(simulator.known, simulator.draw_all(count=count), delta=0.1, interval=binomial_interval)
    second = 0  # how often laws that sum to one tighten an end
    for agent, table in enumerate(true.random_policy(rng=np.random.default_rng(3))):
        member, kernel = true.agents[agent], model.kernels[simulator.known.kinds[agent]]
        ends = usage_ends(member, kernel, table)
        low = high = np.asarray(member.initial)
        for h in range(3):
            uses = np.asarray(member.uses[min(h, steps - 1)].toarray()).reshape(3, 2, 4)
            x = np.einsum("sa,sae->se", table[h], uses)
            assert ends.most[h] == pytest.approx(np.minimum(high @ x, 1 - low @ (1 - x)), abs=1e-12)
            assert ends.least[h] == pytest.approx(np.maximum(low @ x, 1 - high @ (1 - x)), abs=1e-12)
            second += (1 - low @ (1 - x) < high @ x - 1e-9).sum() + (1 - high @ (1 - x) > low @ x + 1e-9).sum()
            step = min(h, steps - 1)
            up = np.einsum("s,sa,sat->t", high, table[h], kernel.upper[step])
            down = np.einsum("s,sa,sat->t", low, table[h], kernel.lower[step])
            high = np.array([min(up[t], 1 - (down.sum() - down[t])) for t in range(3)])
            low = np.array([max(down[t], 1 - (up.sum() - up[t])) for t in range(3)])
        assert np.all((ends.least >= 0) & (ends.most <= 1))
    assert second > 0


LEVELS = np.arange(4.0)


@pytest.mark.parametrize(
    ("delay", "load_costs"),
    [
        (None, None),
        (LEVELS, LEVELS**2),  # rising delays, convex costs: nothing falls
        (-LEVELS, LEVELS**2),  # only delays fall
        (np.array([0.0, 0.0, -1.0, -1.0]), 0.0 * LEVELS),
        (LEVELS, np.sqrt(LEVELS)),  # only costs are concave
        (0.0 * LEVELS, -(LEVELS**2)),
    ],
)
def test_a_model_that_is_certain_is_the_game(delay, load_costs):
    """Where kernels leave no choice and supports are known, all ends coincide with the truth."""
    for seed in range(3):
        true = local_game(seed, delay=delay, load_costs=load_costs, certain=True, steps=1 + 2 * (seed % 2))
        played = true.random_policy(rng=np.random.default_rng(seed))
        true = true.with_thresholds(true.at(played).costs + 0.3)
        simulator = LocalSimulator(true, rng=np.random.default_rng(0), reveal_support=True)
        model = LocalModel.of(simulator.known, simulator.draw_all(count=1), delta=0.1, interval=binomial_interval)
        for agent in model.game.agents:
            assert sum(step.sum() for step in agent.transition) == pytest.approx(6 * len(agent.transition))
        position, here = true.at(played), model.at(played)
        assert here.cost_ceilings == pytest.approx(position.costs, abs=1e-9)
        assert here.cost_floors == pytest.approx(position.costs, abs=1e-9)
        assert here.gap == pytest.approx(certify_with_best_responses(true, played).epsilon, abs=1e-6)
        for agent in range(3):
            view, cmdp = here.view(agent), position.induced_cmdp(agent)
            assert view.belief.worst_reward == pytest.approx(np.broadcast_to(cmdp.reward, (3, 3, 2)), abs=1e-9)
            assert view.belief.worst_costs == pytest.approx(np.broadcast_to(cmdp.costs, (2, 3, 3, 2)), abs=1e-9)
            assert view.belief.optimistic.nominal.reward == pytest.approx(view.belief.worst_reward, abs=1e-9)
            assert view.belief.optimistic.nominal.costs == pytest.approx(view.belief.worst_costs, abs=1e-9)
            assert view.spent.least == pytest.approx(view.spent.most, abs=1e-9)
            assert true.thresholds - view.spent.most == pytest.approx(cmdp.thresholds, abs=1e-9)


def test_what_one_agent_faces_is_in_the_middle_of_its_ends():
    model = local_model()
    policy = model.game.random_policy(rng=np.random.default_rng(3))
    view = model.at(policy).view(1)
    nominal, best = view.belief.box.nominal, view.belief.optimistic.nominal
    assert nominal.reward == pytest.approx((view.belief.worst_reward + best.reward) / 2)
    assert nominal.costs == pytest.approx((view.belief.worst_costs + best.costs) / 2)
    assert np.all(best.reward >= view.belief.worst_reward)
    assert np.all(best.costs <= view.belief.worst_costs)
    assert nominal.thresholds == pytest.approx(model.known.thresholds - view.spent.most)
    assert best.thresholds == pytest.approx(model.known.thresholds - view.spent.least)
    assert model.at(policy).cost_floors <= model.game.at(policy).costs <= model.at(policy).cost_ceilings
    assert model.at(policy).view(1) is not None
    assert model.bound(policy).cost_ceilings == pytest.approx(model.cost_ceilings(policy))


def test_rows_without_a_sample_are_uniform_over_what_is_possible():
    simulator = LocalSimulator(cmpg.scenarios.grid_world_local(), rng=np.random.default_rng(0), reveal_support=True)
    drawn = simulator.draw_all(count=3)
    nothing = replace(drawn, transitions=tuple(np.zeros_like(each) for each in drawn.transitions))
    model = LocalModel.of(simulator.known, nothing, delta=0.1, interval=binomial_interval)
    possible = simulator.known.supports[0]
    assert model.kernels[0].mean == pytest.approx(possible / possible.sum(axis=-1, keepdims=True))
    model = LocalModel.of(simulator.known, drawn, delta=0.1, interval=binomial_interval)
    assert model.kernels[0].mean[0] == pytest.approx(drawn.transitions[0][0] / 3)
    simulator = LocalSimulator(local_game(0), rng=np.random.default_rng(0))
    once = simulator.draw_all(count=1)
    model = LocalModel.of(simulator.known, once, delta=0.1, interval=binomial_interval)
    assert model.kernels[0].mean[0].tolist() == once.transitions[0][0].tolist()


def test_a_row_that_can_lead_to_one_state_is_known_without_a_sample():
    agent = LocalAgent(
        transition=np.eye(2)[[[1, 0], [1, 1]]][None], reward=np.zeros((1, 2, 2)), uses=np.ones((1, 2, 2, 1)),
        initial=[1.0, 0.0],
    )  # fmt: skip
    true = LocalGame(
        agents=(agent, agent), delay=[[[0, 0, 1]]], load_costs=[[[[0, 0, 1]]]], thresholds=[3.0], horizon=3
    )
    simulator = LocalSimulator(true, rng=np.random.default_rng(0), reveal_support=True)
    nothing = LocalSamples(tuple(np.zeros(shape, dtype=int) for shape in simulator.known.shapes))
    kernel = LocalModel.of(simulator.known, nothing, delta=0.1, interval=binomial_interval).kernels[0]
    for table in (kernel.mean, kernel.lower, kernel.upper):
        assert table[0].tolist() == np.eye(2)[[[1, 0], [1, 1]]].tolist()


def test_what_some_agents_spend_by_themselves_is_in_what_the_others_see():
    rng = np.random.default_rng(5)
    kernel, uses = rng.dirichlet(np.ones(2), size=(1, 2, 2)), np.ones((1, 2, 2, 1))
    plain = {"transition": kernel, "reward": np.zeros((1, 2, 2)), "uses": uses, "initial": [0.5, 0.5]}
    spender = LocalAgent(**plain, costs=1 + rng.random((1, 3, 2, 2)))
    true = LocalGame(
        agents=(LocalAgent(**plain), spender, LocalAgent(**plain)),
        delay=np.zeros((1, 1, 4)),
        load_costs=np.zeros((1, 1, 1, 4)),
        thresholds=[9.0],
        horizon=3,
    )
    simulator = LocalSimulator(true, rng=np.random.default_rng(0))
    model = LocalModel.of(simulator.known, simulator.draw_all(count=400), delta=0.1, interval=binomial_interval)
    played = true.random_policy(rng=rng)
    cost = true.at(played).costs[0]
    assert cost > 3
    for agent, spent in ((0, cost), (1, 0.0), (2, cost)):
        view = model.at(played).view(agent)
        assert view.spent.least[0] <= spent + 1e-12
        assert view.spent.most[0] >= spent - 1e-12
        assert view.spent.most[0] - view.spent.least[0] < 1.0
        assert view.cost_floors(played[agent])[0] <= cost <= view.cost_ceilings(played[agent])[0]


# --- bounds.py ------------------------------------------------------------------------------------------------------


def test_constants_are_their_formulas():
    known = simulator().known
    ranges = known.reward_ranges
    found = theory.ascent_constants(known, epsilon=0.5, delta=0.1)
    total, n = math.ceil(4 * ranges.sum() / 0.5), 2
    episodes = math.ceil(32 * ranges.max() ** 2 / 0.25 * math.log(8 * n * total / 0.1))
    assert (found.max_iterations, found.episodes) == (total, episodes)
    assert found.response_delta == pytest.approx(0.1 / (2 * n * total))
    assert found.value_samples == (n + 1) * total * episodes * 3
    printed = theory.ascent_constants(known, epsilon=0.5, delta=0.1, printed=True)
    assert printed.max_iterations == 4 * 2 * 3 / 0.5
    assert printed.value_samples == 2 * n * 48 * printed.episodes * 3
    assert theory.ascent_constants(known, epsilon=0.5, delta=0.1, potential_range=1.0).max_iterations == 8
    assert theory.ascent_constants(known, epsilon=1e9, delta=0.1).max_iterations == 1
    assert theory.known_model_constants(known, epsilon=0.5).max_iterations == math.ceil(2 * ranges.sum() / 0.5)
    assert theory.known_model_constants(known, epsilon=0.5, printed=True).max_iterations == 24


def test_the_papers_algorithm_3_has_the_constants_that_are_printed():
    size = theory.Size(3, 2, 4, np.full(4, 2.0), np.full((1, 4), 0.5), 3)
    e, z, horizon = 0.4 / 2.0, 0.3 / 0.5, 4
    found = theory.paper_constants(size, slater=0.3, epsilon=0.4, delta=0.1)
    count = math.ceil(400 * horizon**6 * math.log(2 * 3**2 * 2 * horizon / 0.1) / (e * z) ** 2)
    price = 8 * horizon / z
    tolerance = e * z / (16 * horizon) / 5
    loop = (price * horizon / tolerance) ** 2 * (1 + 1 / (price - 2 * horizon / z) ** 2)
    assert found.samples_per_entry == count
    assert found.samples == count * 3 * 2 * horizon
    assert found.tightening == pytest.approx(e * z / (16 * horizon) * 0.5, rel=1e-12)
    assert found.solver_tolerance == pytest.approx(tolerance * 0.5, rel=1e-12)
    assert found.multiplier_bound == pytest.approx(price * 2.0 / 0.5, rel=1e-12)
    assert found.iterations == math.ceil(loop)
    assert found.step_size == pytest.approx(price / (math.sqrt(loop) * horizon) * 2.0 / 0.5 / 0.5, rel=1e-12)


@pytest.mark.parametrize("stationary", [False, True])
def test_the_shared_row_counts_the_entries_of_all_steps_or_of_one(stationary):
    known = replace(simulator().known, stationary=stationary)
    rows = theory.bounds_table(known, slater=0.3, epsilon=0.5, delta=0.1).rows
    (shared,) = (row for row in rows if row.algorithm == theory.SHARED)
    told, once = dict(shared.constants), 3 * 6 * (1 if stationary else 2)
    assert (told["entries"], told["entries of 2 in each iteration"]) == (once, 3 * 5 * 2)
    assert told["ε′"] == 0.125
    assert told["T"] == math.ceil(4 * known.reward_ranges.sum() / 0.125)
    assert shared.samples == pytest.approx(told["N"] * once)
    assert shared.programs == 2 * told["T"]
    sizes = [theory.Size.of_all(known, agent) for agent in (0, 1)]
    ends = [theory.error_weights(size)[0] for size in sizes]
    asked = {"slater": 0.3, "epsilon": 0.375, "delta": 0.1, "max_row_error": 0.125 / (4 * max(ends))}
    each = [theory.rigorous_constants(size, **asked) for size in sizes]
    assert told["N"] == max(one.samples_per_entry for one in each)
    assert told["α − α′"] in [one.tightening for one in each]


def test_sizes_and_weights_are_those_of_the_game():
    known = simulator(reveal_support=True).known
    size, everything = theory.Size.of(known, 1), theory.Size.of_all(known, 1)
    assert (size.num_states, size.num_actions, size.horizon, size.successors) == (3, 3, 3, 3)
    assert (everything.num_actions, everything.entries, size.entries) == (6, 36, 18)
    reward, cost = theory.error_weights(size)
    assert reward == pytest.approx(known.reward_spans[1] @ [0, 1, 2])
    assert cost == pytest.approx((known.cost_spans @ [0, 1, 2]).max())
    assert size.reward_scale == pytest.approx(known.reward_spans[1].max())
    assert size.cost_scale == pytest.approx(known.cost_spans.max())
    still = replace(size, reward_spans=np.zeros(3), cost_spans=np.zeros((0, 3)))
    assert (still.reward_scale, still.cost_scale) == (1.0, 1.0)


@pytest.mark.parametrize("slater", [0.3, math.inf])
def test_the_row_error_is_the_root_of_the_gap(slater):
    size = theory.Size.of(simulator().known, 0)
    if slater == math.inf:
        size = replace(size, cost_spans=np.zeros((0, 3)))
    found = theory.rigorous_constants(size, slater=slater, epsilon=0.4, delta=0.1)
    reward, cost = theory.error_weights(size)
    b = found.row_error
    gap = b * reward + (b * cost * size.reward_spans.sum() / (slater - b * cost) if cost else 0.0)
    assert gap == pytest.approx(0.4)
    logs = math.log(2**3 - 2) + math.log(3 * 2 * 2 / 0.1)
    assert found.samples_per_entry == math.ceil(2 * logs / b**2)
    assert found.tightening == pytest.approx(b * cost / 2)
    assert found.reward_error == pytest.approx(b * reward / 2)
    assert found.samples == found.samples_per_entry * 12
    capped = theory.rigorous_constants(size, slater=slater, epsilon=0.4, delta=0.1, max_row_error=b / 2)
    assert capped.row_error == pytest.approx(b / 2)


def test_the_rows_of_the_table_add_up_what_their_constants_say():
    known = simulator().known
    table = theory.bounds_table(known, slater=0.3, epsilon=0.5, delta=0.1, margin=0.2)
    rows = {(row.algorithm, row.version): row for row in table.rows}
    ascent = theory.ascent_constants(known, epsilon=0.5, delta=0.1)
    sizes = [theory.Size.of(known, agent) for agent in (0, 1)]
    asked = {"epsilon": 0.125, "delta": ascent.response_delta}
    each = [theory.rigorous_constants(size, slater=0.3, **asked) for size in sizes]
    corrected = rows[theory.GENERATIVE, theory.CORRECTED]
    assert corrected.samples == pytest.approx(
        ascent.value_samples + ascent.max_iterations * sum(c.samples for c in each)
    )
    assert corrected.programs == 2 * ascent.max_iterations
    assert dict(corrected.constants)["N"] == max(c.samples_per_entry for c in each)
    safe = [theory.safe_constants(size, margin=0.2, **asked) for size in sizes]
    row = rows[theory.SAFE, theory.CORRECTED]
    assert row.samples == pytest.approx(ascent.value_samples + ascent.max_iterations * sum(c.samples for c in safe))
    assert row.programs == pytest.approx(ascent.max_iterations * sum(c.iterations for c in safe))
    assert dict(row.constants)["c"] == 0.2
    known_row = rows[theory.KNOWN_MODEL, theory.CORRECTED]
    assert (known_row.samples, known_row.programs) == (0.0, 2 * dict(known_row.constants)["T"])
    adaptive = rows[theory.GENERATIVE, theory.ADAPTIVE]
    assert (adaptive.programs, adaptive.runnable) == (2 * ascent.max_iterations, True)
    scale = known.reward_spans.max()
    published = rows[theory.UNCONSTRAINED, theory.PUBLISHED]
    assert dict(published.constants)["S·ΣA/ε³"] == pytest.approx(3 * 5 / (0.5 / scale) ** 3)
    few = theory.bounds_table(known, slater=0.3, epsilon=0.5, delta=0.1, allowance=theory.Allowance(programs=1.0))
    assert not any(row.runnable for row in few.rows if row.programs > 1 and row.version != theory.PRINTED)
    exact = theory.Allowance(samples=corrected.samples, programs=corrected.programs)
    again = theory.bounds_table(known, slater=0.3, epsilon=0.5, delta=0.1, margin=0.3, allowance=exact)
    assert {(r.algorithm, r.version): r for r in again.rows}[theory.GENERATIVE, theory.CORRECTED].runnable


def test_printed_rows_add_up_the_printed_constants_for_one_scale():
    known = simulator().known
    scale, n, horizon = known.reward_spans.max(), 2, 3
    rows = {row.algorithm: row for row in printed_rows(known)}
    ascent = theory.ascent_constants(known, epsilon=0.5 / scale, delta=0.1, printed=True)
    assert dict(rows[theory.KNOWN_MODEL].constants)["T"] == math.ceil(2 * n * horizon * scale / 0.5)
    sizes = [replace(theory.Size.of(known, agent), reward_spans=np.full(horizon, scale)) for agent in (0, 1)]
    asked = {"epsilon": 0.125, "delta": ascent.response_delta}
    papers = [theory.paper_constants(size, slater=0.3, **asked) for size in sizes]
    row, told = rows[theory.GENERATIVE], dict(rows[theory.GENERATIVE].constants)
    total = ascent.max_iterations
    assert row.samples == pytest.approx(ascent.value_samples + total * sum(each.samples for each in papers))
    assert row.programs == pytest.approx(total * sum(each.iterations for each in papers))
    (most,) = (each for each in papers if each.samples_per_entry == max(one.samples_per_entry for one in papers))
    names = ("samples_per_entry", "iterations", "multiplier_bound", "step_size", "tightening")
    assert [told[key] for key in ("N", "T of 3", "U", "η", "α − α′")] == [getattr(most, name) for name in names]
    assert (told["T"], told["M"], told["δ′"]) == (total, ascent.episodes, ascent.response_delta)
    safe = [theory.safe_constants(size, margin=0.2, **asked, printed=True) for size in sizes]
    row, told = rows[theory.SAFE], dict(rows[theory.SAFE].constants)
    assert row.samples == pytest.approx(ascent.value_samples + total * sum(each.samples for each in safe))
    (most,) = (each for each in safe if each.iterations == max(one.iterations for one in safe))
    found = (told["T of 4"], told["M of 4"], told["T_0"], told["c"])
    assert found == (most.iterations, most.episodes, most.first_phase, 0.2)


def printed_rows(known, **options):
    table = theory.bounds_table(known, slater=0.3, epsilon=0.5, delta=0.1, margin=0.2, **options)
    return [row for row in table.rows if row.version == theory.PRINTED]


def test_rewards_without_a_span_have_the_scale_of_one_step():
    still = replace(simulator().known, reward_bounds=np.zeros((2, 1, 2)))
    rows = {row.algorithm: dict(row.constants) for row in printed_rows(still)}
    assert rows[theory.KNOWN_MODEL]["T"] == 2 * 2 * 3 / 0.5
    assert rows[theory.GENERATIVE]["T"] == 4 * 2 * 3 / 0.5
    table = theory.bounds_table(still, slater=0.3, epsilon=0.5, delta=0.1)
    (published,) = (row for row in table.rows if row.version == theory.PUBLISHED)
    assert dict(published.constants)["S·ΣA/ε³"] == 3 * 5 / 0.5**3
    assert not published.runnable


def test_the_row_without_constraints_needs_no_slack():
    known = simulator().known
    table = theory.bounds_table(known, slater=0.3, epsilon=0.5, delta=0.1, potential_range=0.5)
    (row,) = (
        each for each in table.rows if each.algorithm == theory.UNCONSTRAINED and each.version == theory.CORRECTED
    )
    ascent = theory.ascent_constants(known, epsilon=0.5, delta=0.1, potential_range=0.5)
    counts, samples = [], ascent.value_samples
    for agent in (0, 1):
        size = theory.Size.of(known, agent)
        error = 0.125 / theory.error_weights(size)[0]
        logs = math.log(2**3 - 2) + math.log(size.entries / ascent.response_delta)
        counts.append(math.ceil(2 * logs / error**2))
        samples += ascent.max_iterations * counts[-1] * size.entries
    told = dict(row.constants)
    assert (told["N"], told["ΔΦ"], told["T"]) == (max(counts), 0.5, ascent.max_iterations)
    assert row.samples == pytest.approx(samples)
    assert row.programs == 2 * ascent.max_iterations
    assert theory.bounds_table(known, slater=0.3, epsilon=0.5, delta=0.1, potential_range=0.0).rows
    for wrong in ({"margin": 0.0}, {"margin": -0.5}, {"potential_range": -0.5}):
        with pytest.raises(CMPGError, match="must be"):
            theory.bounds_table(known, slater=0.3, epsilon=0.5, delta=0.1, **wrong)


def test_what_may_be_spent_decides_what_is_runnable():
    known = simulator().known

    def runnable(version, algorithm, **allowance):
        allowed = theory.Allowance(**allowance)
        rows = theory.bounds_table(known, slater=0.3, epsilon=0.5, delta=0.1, allowance=allowed).rows
        (row,) = (each for each in rows if (each.version, each.algorithm) == (version, algorithm))
        return row.runnable

    for samples in (0.0, 1e12):  # a known game takes no samples, and how many learning takes is not known
        assert runnable(theory.CORRECTED, theory.KNOWN_MODEL, samples=samples)
        assert runnable(theory.ADAPTIVE, theory.GENERATIVE, samples=samples)
    assert runnable(theory.ADAPTIVE, theory.GENERATIVE, programs=2)  # one iteration asks two agents
    assert not runnable(theory.ADAPTIVE, theory.GENERATIVE, programs=1.9)
    assert runnable(theory.PRINTED, theory.GENERATIVE, samples=1e300, programs=0.0)  # its loop runs at once
    assert not runnable(theory.PRINTED, theory.GENERATIVE, samples=1.0)
    assert not runnable(theory.CORRECTED, theory.SHARED, samples=1.0)
    coarse = theory.bounds_table(known, slater=0.3, epsilon=1e9, delta=0.1)
    assert {dict(row.constants)["T"] for row in coarse.rows if row.algorithm == theory.SHARED} == {1}
    void = theory.bounds_table(known, slater=0.0, epsilon=0.5, delta=0.1)
    endless = {(row.algorithm, row.version) for row in void.rows if row.samples == math.inf}
    both = {
        (name, version) for name in (theory.GENERATIVE, theory.SAFE) for version in (theory.PRINTED, theory.CORRECTED)
    }
    assert endless == both | {(theory.SHARED, theory.CORRECTED)}
    assert not any(row.runnable for row in void.rows if row.samples == math.inf)


def test_orders_of_safe_exploration_are_their_formulas():
    size = theory.Size.of(simulator().known, 0)
    found = theory.safe_constants(size, margin=0.2, epsilon=0.5, delta=0.1)
    accuracy, slack = 0.5 / size.reward_scale, 0.2 / size.cost_scale
    regret = 3 * 27 * math.sqrt(2) / slack
    assert found.iterations == math.ceil(4 * regret**2 / accuracy**2)
    assert found.first_phase == math.ceil(9 * 2 * 81 / slack**2)
    assert found.episodes == math.ceil(8 * size.reward_spans.sum() ** 2 / 0.25 * math.log(12 * found.iterations / 0.1))
    assert found.samples == pytest.approx((found.iterations * (1 + found.episodes) + found.first_phase) * 3)
    printed = theory.safe_constants(size, margin=0.2, epsilon=0.5, delta=0.1, printed=True)
    assert printed.episodes == math.ceil(16 * 9 / accuracy**2 * math.log(2 * regret / (accuracy * 0.1)))
    for margin, total in ((0.4, None), (None, -0.1), (None, 1e9)):
        with pytest.raises(CMPGError, match="must be"):
            theory.bounds_table(
                simulator().known, slater=0.3, epsilon=0.5, delta=0.1, margin=margin, potential_range=total
            )


@pytest.mark.parametrize("reward", [1e-9, 0.0])
def test_rows_of_a_shared_model_are_never_further_off_than_two(reward):
    ends = np.array([0.0, 1.0])
    free = replace(
        simulator().known,
        reward_bounds=np.broadcast_to(reward * ends, (2, 1, 2)),
        cost_bounds=np.broadcast_to(1e-9 * ends, (2, 1, 2)),
    )
    rows = theory.bounds_table(free, slater=0.3, epsilon=0.5, delta=0.1).rows
    (shared,) = (row for row in rows if row.algorithm == theory.SHARED)
    logs = math.log(2**3 - 2) + math.log(3 * 6 * 2 / 0.1)
    assert dict(shared.constants)["N"] == math.ceil(2 * logs / 2.0**2)
