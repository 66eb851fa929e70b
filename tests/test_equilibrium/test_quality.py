"""How good an equilibrium is: upper bounds over all feasible policies, and what is said of them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cmpg
from cmpg.cmdp.kernels.choice import compiled
from cmpg.deadline import limited_work
from cmpg.equilibrium.quality import OptimalityGap, upper_bound, without_correlation
from cmpg.equilibrium.solve import solve
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.equilibrium.starts.start import random_start
from cmpg.games.counting.classes import EveryCount, LargestCount
from cmpg.games.counting.game import CountingGame
from cmpg.games.game import Objective, UpperBound
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.games.local.relaxation import Relaxation, bound_near
from cmpg.scenarios import charging, congestion_game, counting_congestion_game, grid_world, routing
from command_line import cmpg as command
from strategies import games
from test_equilibrium.small_crowds import crossing, crowds

OBJECTIVES = list(Objective)
quick = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def worth(game, policy, objective):
    return float(np.sum(game.at(policy).values)) if objective is Objective.WELFARE else game.potential(policy)


def feasible_policies(game, rng, count=6):
    """Random feasible policies, and an equilibrium: deterministic, mixed, and between."""
    start = feasible_start(game).policy
    if start is None:
        return []
    result = solve(game, start=start, epsilon=1e-3)
    found = [start, *([result.policy] if result.incumbent is not None else [])]
    found += [random_start(game, start, rng=rng) for _ in range(count)]
    return [policy for policy in found if np.all(game.at(policy).slacks >= 0)]


@quick
@given(crowds(), st.integers(0, 9))
def test_no_feasible_policy_of_a_local_game_exceeds_its_bound(game, seed):
    found = feasible_policies(game, np.random.default_rng(seed))
    for objective in OBJECTIVES:
        values = [worth(game, policy, objective) for policy in found]
        if not values:
            continue
        near = found[int(np.argmin(values))]  # the worst one: a bound must hold wherever it was sought
        bound = upper_bound(game, objective, near, np.ones(len(game.thresholds)))
        assert max(values) <= bound.value + 1e-12


@quick
@given(crowds(max_agents=3), st.integers(0, 99))
def test_a_bound_of_any_prices_holds_for_every_policy_at_its_multipliers(game, seed):
    """Feasible or not: what the bound says of a policy is its Lagrangian."""
    rng = np.random.default_rng(seed)
    relaxation = Relaxation(game, Objective.WELFARE)
    multipliers = rng.exponential(size=len(game.thresholds))
    prices = rng.normal(size=(game.horizon, game.num_resources))
    dual = relaxation.at(multipliers, prices)
    for _ in range(5):
        position = game.at(game.random_policy(rng=rng))
        assert position.values.sum() + multipliers @ position.slacks <= dual.value + 1e-12


def test_the_bound_of_a_local_game_is_the_optimum_where_agents_do_not_meet():
    game = crossing(3, thresholds=[1e9])
    result = solve(game)
    assert result.quality().bound.value == pytest.approx(result.values.sum(), abs=1e-9)
    assert str(result.quality()).startswith("optimal: the proved upper bound is reached")


def test_the_bound_of_a_crossing_knows_what_the_budget_is_worth():
    """Two of two agents want to cross at each of two steps, pairs are paid for, and there is budget for one step."""
    game = crossing(2, thresholds=[1.0])
    bound = upper_bound(game, Objective.WELFARE, feasible_start(game).policy, np.ones(1))
    # Both at one step, the better agent at the other: 1 + 1.1 + 1.1; correlated by the step, as the bound allows.
    assert 3.2 <= bound.value <= 3.2 + 0.05


@pytest.mark.skipif(compiled() is None, reason="there are no compiled kernels here, or they are not wanted")
@pytest.mark.parametrize("objective", [*OBJECTIVES, None])
def test_kernels_bound_what_their_twin_does(objective):
    game = routing(num_agents=5)
    rng = np.random.default_rng(3)
    prices, multipliers = rng.random((game.horizon, game.num_resources)) / 10, rng.random(len(game.thresholds))
    fast = Relaxation(game, objective).at(multipliers, prices)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CMPG_KERNELS", "numpy")
        slow = Relaxation(routing(num_agents=5), objective).at(multipliers, prices)
    assert fast.value == pytest.approx(slow.value, rel=1e-12)
    np.testing.assert_allclose(fast.unused, slow.unused, atol=1e-12)
    np.testing.assert_allclose(fast.spare, slow.spare, atol=1e-12)


@quick
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_load_that_pays_best_is_found_in_convex_and_in_other_tables(seed, convex):
    rng = np.random.default_rng(seed)
    agents, resources, steps = int(rng.integers(1, 7)), 2, int(rng.integers(1, 3))
    rises = rng.integers(0, 4, size=(1, 1 if rng.random() < 0.5 else steps, resources, agents)).astype(float)
    rises = np.sort(rises, axis=-1) if convex else rises
    costs = np.concatenate([np.zeros((*rises.shape[:-1], 1)), np.cumsum(rises, axis=-1)], axis=-1)
    member = LocalAgent(
        transition=np.ones((1, 1, 2, 1)), reward=np.zeros((1, 1, 2)), uses=[[[[0, 0], [1, 1]]]], initial=[1.0]
    )
    game = LocalGame(
        agents=(member,) * agents,
        delay=np.zeros((1, resources, agents + 1)),
        load_costs=costs,
        thresholds=[1.0],
        horizon=steps,
    )
    prices = rng.integers(-1, 5, size=(steps, resources)) + rng.choice([0.0, 0.5])
    found = Relaxation(game, Objective.WELFARE).at(np.ones(1), prices)
    users = agents * (prices.sum(axis=1) < 0)  # who uses one resource uses both
    most = 1.0
    for h, e in np.ndindex(prices.shape):
        profits = [prices[h, e] * load - costs[0, h % costs.shape[1], e, load] for load in range(agents + 1)]
        assert profits[int(found.unused[h, e] + users[h])] == max(profits)
        most += max(profits)
    assert found.value == pytest.approx(most - (users * prices.sum(axis=1)).sum(), abs=1e-9)


@quick
@given(games(), st.integers(0, 9))
def test_no_feasible_policy_of_a_joint_game_exceeds_its_bound(game, seed):
    found = feasible_policies(game, np.random.default_rng(seed))
    for objective in OBJECTIVES:
        if not found or (objective is Objective.POTENTIAL and game.potential_proof() is None):
            continue
        bound = upper_bound(game, objective, found[0], np.zeros(len(game.thresholds)))
        if bound is not None:
            assert max(worth(game, policy, objective) for policy in found) <= bound.value + 1e-12


def random_counting_game(seed, *, common, every):
    rng = np.random.default_rng(seed)
    agents, actions, states = int(rng.integers(2, 5)), int(rng.integers(2, 4)), 2
    classes = EveryCount() if every else LargestCount((agents // 2,))
    count = classes.number(agents, actions)
    transition = rng.dirichlet(np.ones(states), size=(1, states, 1 if common else count))
    return CountingGame(
        rewards=rng.normal(size=(1, states, actions, agents + 1)),
        classes=classes,
        transition=np.broadcast_to(transition, (1, states, count, states)),
        costs=rng.random((1, 1, states, count)),
        thresholds=[1.4],
        initial=rng.dirichlet(np.ones(states)),
        horizon=2,
        class_rewards=np.broadcast_to(rng.normal(size=(1, states, 1, count)), (1, states, actions, count)),
    )


@pytest.mark.parametrize("every", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_a_counting_game_has_the_bounds_of_its_joint_form(seed, every):
    game = random_counting_game(seed, common=seed % 2 == 0, every=every)
    joint, policy = game.to_joint(), game.uniform_policy()
    for objective in OBJECTIVES:
        mine = upper_bound(game, objective, policy, np.zeros(1))
        theirs = upper_bound(joint, objective, policy, np.zeros(1))
        if theirs is None or (objective is Objective.POTENTIAL and game.potential_proof() is None):
            assert mine is None
        else:
            assert mine.value == pytest.approx(theirs.value, rel=1e-9)


def test_private_rewards_of_a_counting_game_only_loosen_its_bound():
    game = random_counting_game(1, common=False, every=True)
    own = np.random.default_rng(0).normal(size=(game.num_agents, 1, game.num_states, game.num_actions[0]))
    fields = {name: getattr(game, name) for name in ("rewards", "classes", "transition", "costs", "thresholds")}
    private = CountingGame(
        **fields, initial=game.initial, horizon=2, private_rewards=own, class_rewards=game.class_rewards
    )
    policy = private.uniform_policy()
    mine, theirs = (upper_bound(each, Objective.WELFARE, policy, np.zeros(1)) for each in (private, private.to_joint()))
    assert theirs.value <= mine.value + 1e-9


@pytest.mark.parametrize("reward", [0.3, 0.7, -0.1])
def test_the_rounding_of_the_reference_is_in_a_bound_on_the_potential(reward):
    """All policies are worth the same, so the potential is zero; the value of the reference adds up 1000 roundings."""
    game = cmpg.JointGame(
        transition=np.ones((1, 1, 2, 1, 1)),
        rewards=np.full((2, 1, 1, 2, 1), reward),
        costs=np.zeros((0, 1, 1, 2, 1)),
        thresholds=[],
        initial=[1.0],
        horizon=1000,
    )
    assert 0 <= upper_bound(game, Objective.POTENTIAL, game.uniform_policy(), np.zeros(0)).value < 1e-7


def test_a_planner_s_bound_is_the_dual_value():
    game = cmpg.scenarios.counter_example()
    policy, multipliers = game.uniform_policy(), np.zeros(1)
    assert upper_bound(game, Objective.WELFARE, policy, multipliers).value == pytest.approx(7.0)
    assert upper_bound(game, Objective.POTENTIAL, policy, multipliers).value == pytest.approx(0.5)


def test_the_search_over_mixed_actions_is_limited_by_its_size_and_not_by_a_clock():
    game = cmpg.scenarios.counter_example()
    correlated = UpperBound(7.0, np.ones(1), "a planner's bound")
    with limited_work(-1):
        alone = without_correlation(game, OptimalityGap(Objective.WELFARE, 6.0, correlated)).bound
    assert alone.value == pytest.approx(9 - 2 * np.sqrt(2), abs=2e-5)


def test_agents_who_cannot_correlate_have_the_best_product_policy_as_their_bound():
    result = solve(cmpg.scenarios.counter_example())
    best = 4.5 - np.sqrt(2)  # P*, section 4 of the paper; the potential is counted from agents who both play 1
    assert 2 * best <= result.quality().bound.value <= 2 * best + 2e-5
    assert best - 3 <= result.quality(Objective.POTENTIAL).bound.value <= best - 3 + 1e-5


@quick
@given(st.integers(0, 10**6))
def test_no_feasible_policy_of_a_one_shot_game_exceeds_the_bound_without_correlation(seed):
    rng = np.random.default_rng(seed)
    shape = (2, 3)
    game = cmpg.JointGame(
        transition=np.ones((1, 1, *shape, 1)),
        rewards=rng.normal(size=(2, 1, 1, *shape)),
        costs=rng.random((1, 1, 1, *shape)),
        thresholds=[0.5],
        initial=[1.0],
        horizon=1,
    )
    found = feasible_policies(game, rng, count=50)
    values = [worth(game, policy, Objective.WELFARE) for policy in found]
    if values:
        bound = upper_bound(game, Objective.WELFARE, found[0], np.zeros(1))
        smaller = without_correlation(game, OptimalityGap(Objective.WELFARE, min(values), bound)).bound
        assert max(values) <= smaller.value <= bound.value


@pytest.mark.parametrize(
    ("value", "bound", "told"),
    [
        (93.29, 100.0, "at least 93.2 % of the best possible"),
        (99.9999999, 100.0, "optimal: the proved upper bound is reached"),
        (-106.01, -100.0, "within 6.1 % of the best possible"),
        (-1.0, 2.0, "at most 3 below the best possible"),
        (0.0, 2.0, "at most 2 below the best possible"),
    ],
)
def test_a_sentence_claims_no_more_than_is_proved(value, bound, told):
    assert str(OptimalityGap(Objective.WELFARE, value, UpperBound(bound, np.zeros(0), "…"))).startswith(told)


def test_a_potential_has_differences_only():
    assert "below" in str(OptimalityGap(Objective.POTENTIAL, 50.0, UpperBound(100.0, np.zeros(0), "…")))


def test_a_game_that_bounds_nothing_is_unknown():
    result = solve(grid_world())
    assert upper_bound(object(), Objective.WELFARE, result.policy, np.zeros(1)) is None
    assert "unknown" in str(OptimalityGap(Objective.WELFARE, 1.0, None))


@pytest.mark.parametrize("build", [grid_world, lambda: routing(num_agents=4)])
def test_printing_a_result_computes_nothing(build):
    result = solve(build())
    silent = replace(result, game=None)  # without its game nothing could be computed
    assert str(silent) == str(result)
    assert silent._repr_html_() == result._repr_html_()
    assert repr(silent) == repr(result)


def test_how_good_a_result_is_needs_a_policy_its_game_and_a_known_potential():
    infeasible = solve(cmpg.scenarios.counter_example(threshold=-1.0))
    with pytest.raises(cmpg.InfeasibleError, match="has no policy"):
        cmpg.quality(infeasible)
    result = solve(congestion_game())
    with pytest.raises(cmpg.CMPGError, match="does not know its game"):
        cmpg.quality(replace(result, game=None))
    with pytest.raises(cmpg.GameError, match="not known to have a potential"):
        cmpg.quality(result, Objective.POTENTIAL)


def test_a_bound_that_was_cut_short_still_holds():
    """Every point of the descent proves a bound, so the search may be ended after any of them."""
    game = charging(capacity=3)
    result = solve(game)
    position = game.at(result.policy)
    relaxation = Relaxation(game, Objective.WELFARE)
    value, common = float(result.values.sum()), np.median(result.multipliers, axis=0)
    bounds = [bound_near(relaxation, position, common, value=value, steps=steps)[0].value for steps in (3, 5, 10, 40)]
    assert bounds == sorted(bounds, reverse=True)
    assert value <= bounds[-1] < bounds[0]


def test_counting_and_joint_form_of_the_paper_s_game_have_one_bound():
    bounds = [solve(game).quality().bound.value for game in (counting_congestion_game(), congestion_game())]
    assert bounds[0] == pytest.approx(bounds[1]) == pytest.approx(90)


def test_the_command_says_how_good_it_is():
    ran = command("solve", "counter-example")
    assert "how good: at least" in ran.out
    record = json.loads(command("solve", "routing", "--agents", 6, "--json").out)
    welfare = record["quality"]["welfare"]
    assert welfare["value"] == pytest.approx(sum(record["values"]))
    assert welfare["value"] <= welfare["upper_bound"] <= welfare["value"] + 0.1
    assert record["quality"]["potential"]["upper_bound"] >= record["quality"]["potential"]["value"]


def test_restarts_show_their_spread():
    ran = command("solve", "spectrum", "--restarts", 6, "--seed", 1)
    assert "spread: " in ran.out
    record = json.loads(command("solve", "spectrum", "--restarts", 6, "--seed", 1, "--json").out)
    scores = [run["score"] for run in record["runs"] if run["score"] is not None]
    assert len(scores) > 5
    assert f"{max(scores):.6g}" in ran.out


def test_selfish_play_and_the_bound_stand_on_the_page(tmp_path):
    folder = tmp_path / "run"
    assert command("solve", "spectrum", "--selfish", "--out", folder).code == 0
    assert command("report", folder).code == 0
    page = (folder / "report.html").read_text("utf-8")
    assert "How good is it?" in page
    assert "selfish, no constraints" in page
    run = cmpg.load_run(folder)
    assert run.result.selfish.costs[0] > run.game.thresholds[0]
