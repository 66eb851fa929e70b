"""Discounted local games are judged for ever: by an exact judge of many more steps, and by what is known exactly."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cmpg
from cmpg import DiscountedLocalGame, JointPolicy, LocalAgent, Status
from cmpg.equilibrium.discounted import prolonged
from cmpg.equilibrium.infeasibility import prove_infeasible
from cmpg.proof.truncation import weights
from oracles.judge import judge as judge_exactly

LATER = 12  # steps that the exact judge looks further ahead; with γ = 1/2 what follows these is at most 1/4096 of that


def small(rng: np.random.Generator, *, discount: float = 0.5, constraints: int = 1, hard: bool = False) -> Any:
    states, resources, agents = 2, 2, 2
    members = tuple(
        LocalAgent(
            transition=rng.multinomial(4, [0.5, 0.5], size=(1, states, 2)) / 4,
            reward=rng.integers(-4, 5, size=(1, states, 2)) / 2,
            uses=rng.integers(0, 2, size=(1, states, 2, resources)),
            initial=np.array([0.25, 0.75]),
            costs=rng.integers(-2 * (not hard), 3, size=(constraints, 1, states, 2)) / 4,
        )
        for _ in range(agents)
    )
    load_costs = rng.integers(-(not hard), 4, size=(constraints, 1, resources, agents + 1)) / 2
    load_costs[..., 0] *= not hard
    return DiscountedLocalGame(
        agents=members,
        delay=rng.integers(-1, 4, size=(1, resources, agents + 1)) / 4,
        load_costs=load_costs,
        thresholds=np.zeros(constraints) if hard else rng.integers(0, 12, size=constraints) / 4,
        discount=discount,
    )


def oracle(game: DiscountedLocalGame, steps: int) -> Any:
    """The exact judge of the first steps, its tables written out here with whole powers of γ."""
    power = [Fraction(game.discount) ** h for h in range(steps)]

    def over(table: Any) -> Any:
        return np.array([[p * Fraction(x) for x in np.ravel(table).tolist()] for p in power], dtype=object).reshape(
            steps, *np.shape(table)
        )

    agents = [
        {
            "transition": np.stack([m.toarray() for m in each.transition]).reshape(1, *each.reward.shape[1:], -1),
            "uses": np.stack([m.toarray() for m in each.uses]).reshape(1, *each.reward.shape[1:], -1),
            "reward": over(each.reward[0]),
            "cost": [over(cost[0]) for cost in (np.zeros((0,)) if each.costs is None else each.costs)],
            "initial": each.initial,
        }
        for each in game.agents
    ]
    for each in agents:
        if len(each["cost"]) < game.num_constraints:
            zeros = np.zeros(game.agents[0].reward.shape[1:])
            each["cost"] = [over(zeros) for _ in range(game.num_constraints)]
    tables = {"delay": over(game.delay[0]), "load_cost": [over(cost[0]) for cost in game.load_costs]}
    return judge_exactly({"form": "local", "horizon": steps, "thresholds": game.thresholds, "agents": agents, **tables})


def drawn(rng: np.random.Generator, game: DiscountedLocalGame, steps: int) -> JointPolicy:
    shapes = [(steps, *shape[1:]) for shape in game.policy_shapes]
    tables = [rng.multinomial(2, [0.5, 0.5], size=shape[:2]) / 2 for shape in shapes]
    return JointPolicy(tuple(tables))


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(1, 4), exact=st.booleans())
def test_no_certificate_promises_more_than_many_more_steps_show(seed: int, steps: int, exact: bool) -> None:
    rng = np.random.default_rng(seed)
    game = small(rng)
    policy, multipliers = drawn(rng, game, steps), rng.integers(0, 5, size=(2, 1)) / 2
    found = cmpg.certify(game, policy, multipliers, exact=exact)
    longer, far = prolonged(policy, steps + LATER), oracle(game, steps + LATER)
    # What follows even those steps: every reward and cost of a step is below 16.
    rest = 16 * Fraction(1, 2) ** (steps + LATER - 1)
    cost = far.costs(longer.tables)[0]
    if found.feasible:
        assert cost - rest <= game.thresholds[0]
    assert cost - rest <= Fraction(float(game.thresholds[0])) + Fraction(float(found.excess[0]))
    if found.feasibility is cmpg.Feasibility.VIOLATED:
        assert cost + rest >= game.thresholds[0]
    for agent in range(2):
        gained = far.best_gain(longer.tables, agent, [True])
        if gained is not None:
            assert gained - 2 * rest <= Fraction(float(found.gains[agent]))
        # The same bound, computed over more steps, is no larger but for what follows them.
        bound = far.gain(longer.tables, agent, multipliers[agent].tolist())
        assert bound - (4 + Fraction(multipliers[agent, 0])) * rest <= Fraction(float(found.gains[agent]))


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1))
def test_what_is_solved_is_certified_by_floats_and_by_rationals(seed: int) -> None:
    game = small(np.random.default_rng(seed))
    result = cmpg.solve(game, epsilon=1e-4)
    if result.status is Status.INFEASIBLE:
        assert oracle(game, 1).least_cost([1]) > -100  # and the relaxed game has the proof:
        assert result.proof is not None
        assert result.proof.holds
        return
    if not result.certified:
        return
    assert cmpg.certify(game, result.policy, result.multipliers, exact=True).proves(1e-4)
    far = oracle(game, result.policy.shapes[0][0] + 1)
    assert far.costs(prolonged(result.policy, result.policy.shapes[0][0] + 1).tables)[0] <= Fraction(
        float(game.thresholds[0])
    ) + Fraction(1, 10**5)


def one_state(discount: float, *, threshold: float = 1.0) -> DiscountedLocalGame:
    agent = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, 1]]], uses=[[[[0], [1]]]], initial=[1])
    return DiscountedLocalGame(
        agents=(agent, agent),
        delay=[[[0, 0.25, 0.5]]],
        load_costs=[[[[0, 0, 1]]]],
        thresholds=[threshold],
        discount=discount,
    )


def test_the_tail_is_that_of_a_geometric_series() -> None:
    game = one_state(0.5)
    both = JointPolicy(tuple(np.tile([0.0, 1.0], (3, 1, 1)) for _ in range(2)))
    found = cmpg.certify(game, both, np.zeros((2, 1)))
    # After three steps 1/4 of a step is left. Each gets 1/2 then, could get 3/4 at most; both together pay 1.
    assert found.tail is not None
    assert found.tail.values == pytest.approx([1 / 16, 1 / 16], rel=1e-12)
    assert found.tail.most_costs == pytest.approx([1 / 4], rel=1e-12)
    assert found.tail.least_costs == pytest.approx([0.0], abs=1e-14)
    assert found.feasibility is cmpg.Feasibility.VIOLATED
    assert found.excess == pytest.approx([1.0], rel=1e-12)


def test_a_threshold_is_kept_for_ever_and_not_for_the_stated_steps_alone() -> None:
    apart = JointPolicy((np.tile([0.0, 1.0], (4, 1, 1)), np.tile([1.0, 0.0], (4, 1, 1))))
    assert cmpg.certify(one_state(0.5, threshold=0.0), apart, np.full((2, 1), np.inf)).feasible
    tables = [table.copy() for table in apart]
    tables[1][-1] = [0.0, 1.0]  # both use it at step 3, and so for ever after it
    late = JointPolicy(tuple(tables))
    in_all = 0.5**3 / (1 - 0.5)
    assert not cmpg.certify(one_state(0.5, threshold=0.5**3), late).feasible
    assert not cmpg.certify(one_state(0.5, threshold=in_all - 1e-9), late).feasible
    assert cmpg.certify(one_state(0.5, threshold=in_all + 1e-9), late).feasible


def test_nothing_may_ever_be_paid() -> None:
    game = one_state(0.5, threshold=0.0)
    result = cmpg.solve(game, epsilon=1e-3)
    assert result.certified
    assert result.costs == pytest.approx([0.0], abs=0)
    # A policy that does not pay in its steps, and pays after them, is not feasible.
    agent = LocalAgent(
        transition=[[[[0, 1], [0, 1]], [[0, 1], [0, 1]]]],
        reward=np.zeros((1, 2, 2)),
        uses=[[[[0], [0]], [[1], [1]]]],
        initial=[1, 0],
    )
    moving = DiscountedLocalGame(
        agents=(agent,), delay=[[[0, 0]]], load_costs=[[[[0, 1]]]], thresholds=[0.0], discount=0.5
    )
    still = JointPolicy((np.tile([1.0, 0.0], (1, 2, 1)),))
    assert not cmpg.certify(moving, still, np.zeros((1, 1))).feasible


def test_proofs_by_support_are_refused_where_a_budget_is_not_zero() -> None:
    apart = JointPolicy((np.tile([0.0, 1.0], (30, 1, 1)), np.tile([1.0, 0.0], (30, 1, 1))))
    hard = np.array([[np.inf], [np.inf]])
    assert cmpg.certify(one_state(0.5, threshold=0.0), apart, hard).epsilon < 1e-6
    assert cmpg.certify(one_state(0.5, threshold=1e-3), apart, hard).epsilon == np.inf


def alone(costs: Any, reward: Any, threshold: float) -> DiscountedLocalGame:
    """One agent that goes from state 0 to 1 to 2 and stays there, whatever it does; γ = 1/2."""
    agent = LocalAgent(
        transition=np.repeat([[[0, 1, 0], [0, 0, 1], [0, 0, 1]]], 2, axis=1).reshape(1, 3, 2, 3),
        reward=[reward],
        uses=np.zeros((1, 3, 2, 1)),
        initial=[1, 0, 0],
        costs=[[costs]],
    )
    return DiscountedLocalGame(
        agents=(agent,), delay=[[[0, 0]]], load_costs=[[[[0, 0]]]], thresholds=[threshold], discount=0.5
    )


def first_action(steps: int) -> JointPolicy:
    return JointPolicy((np.tile([1.0, 0.0], (steps, 3, 1)),))


def test_a_policy_is_followed_to_wherever_it_leads_after_its_steps() -> None:
    game = alone([[0, 0], [0, 0], [1, 1]], np.zeros((3, 2)), 0.0)
    assert not cmpg.certify(game, first_action(1), np.zeros((1, 1))).feasible  # it pays from step 2 on


def test_deviations_may_spend_now_what_they_earn_later() -> None:
    # Action 1 costs 1 in state 0, where it is worth 1, and earns 1/2 in state 2, so that it costs 1 − 1/4 in all.
    game = alone([[0, 1], [0, 0], [0, -0.5]], [[0, 1], [0, 0], [0, 0]], 0.75)
    for steps in (1, 2, 3, 6):
        for multiplier in (0.0, 1.0, 4.0):
            assert cmpg.certify(game, first_action(steps), [[multiplier]]).gains[0] >= 1
    free = alone([[0, 1], [0, 0], [0, -2]], [[0, 1], [0, 0], [0, 0]], 0.0)
    assert cmpg.certify(free, first_action(2), [[np.inf]]).gains[0] >= 1


def test_support_proves_nothing_where_what_is_left_is_not_known_to_the_last_bit() -> None:
    paid = alone(np.ones((3, 2)), np.zeros((3, 2)), 2.0)
    left = float(paid.tail(first_action(1)).inner(paid.thresholds)[0])
    game = alone([[left, left], [1, 1], [1, 1]], np.zeros((3, 2)), 2.0)  # whose first step costs all that is left
    assert game.tail(first_action(1)).inner(game.thresholds)[0] == left
    assert cmpg.certify(game, first_action(1), [[np.inf]]).epsilon == np.inf


def test_the_rounding_of_the_weighed_tables_is_part_of_the_tail() -> None:
    agent = LocalAgent(transition=np.ones((1, 1, 1, 1)), reward=[[[1 / 3]]], uses=[[[[0]]]], initial=[1])
    game = DiscountedLocalGame(
        agents=(agent,), delay=[[[0, 0]]], load_costs=np.zeros((0, 1, 1, 2)), thresholds=[], discount=0.3
    )
    written = game.truncated(20).agents[0].reward.ravel().tolist()
    lost = sum(abs(Fraction(x) - Fraction(1 / 3) * Fraction(0.3) ** h) for h, x in enumerate(written))
    found = game.tail(JointPolicy((np.ones((20, 1, 1)),)))
    assert 0 < 2 * lost <= Fraction(float(found.values[0])) < 1e-14


@pytest.mark.parametrize("discount", [0.0, 0.3, 0.99, 0.999])
def test_powers_of_the_discount_are_inside_their_balls(discount: float) -> None:
    found = weights(discount, 60)
    for h in (0, 1, 7, 59):
        exact = Fraction(discount) ** h
        assert abs(exact - Fraction(float(found.mid[h]))) <= Fraction(float(found.rad[h]))


def test_bounds_hold_for_the_game_that_goes_on() -> None:
    game = one_state(0.5, threshold=10.0)
    gap = cmpg.quality(cmpg.solve(game))
    assert gap.bound is not None
    assert gap.bound.value >= 2 * 0.75  # one uses it for ever, or both: 3/4 or 1 a step, for two steps' worth
    assert game.relaxed(2).thresholds >= 10


def test_files_and_refusals(tmp_path: Any) -> None:
    game = replace(one_state(0.25), agent_names=("left", "right"), binds=[[1], [0]])
    for name in ("game.json", "game.npz"):
        cmpg.save_game(game, tmp_path / name)
        read: Any = cmpg.load_game(tmp_path / name)
        assert isinstance(read, DiscountedLocalGame)
        assert (read.discount, read.agent_names, read.binds.tolist()) == (0.25, ("left", "right"), [[True], [False]])
    with pytest.raises(cmpg.CMPGError, match=r"truncated\(steps\)"):
        cmpg.recommend(game)  # type: ignore[arg-type]
    with pytest.raises(cmpg.CMPGError, match=r"truncated\(steps\)"):
        cmpg.feasible_start(game)  # type: ignore[arg-type]
    with pytest.raises(cmpg.GameError, match="discount is 1"):
        one_state(1.0)
    with pytest.raises(cmpg.GameError, match="2 steps"):
        replace(one_state(0.5), delay=np.zeros((2, 1, 3)))


def test_a_run_is_saved_read_and_simulated(tmp_path: Any) -> None:
    game = one_state(0.5)
    result = cmpg.solve(game)
    result.save(tmp_path / "run")
    again = cmpg.load_run(tmp_path / "run").result
    assert again.certified
    assert again.certificate.tail is not None
    assert again.certificate.tail.steps == result.policy.shapes[0][0]
    assert cmpg.simulate(game, result.policy, 400, rng=1).agrees  # type: ignore[arg-type]


def test_infeasible_games_are_proved_to_be_so(tmp_path: Any) -> None:
    game = replace(one_state(0.5, threshold=-0.5))
    result = cmpg.solve(game)
    assert result.status is Status.INFEASIBLE
    result.save(tmp_path / "run")
    assert cmpg.load_run(tmp_path / "run").result.status is Status.INFEASIBLE


@pytest.mark.parametrize("exact", [False, True])
def test_what_follows_costs_something_even_if_it_is_too_small_for_floats(exact):
    """An agent pays 0.01 from step 1 on, weighed with the least float: more than nothing."""
    agent = LocalAgent(
        transition=[[[[0, 1]], [[0, 1]]]],
        reward=np.zeros((1, 2, 1)),
        uses=[[[[0]], [[1]]]],
        initial=[1, 0],
    )
    game = DiscountedLocalGame(
        agents=(agent,), delay=[[[0, 0]]], load_costs=[[[[0, 0.01]]]], thresholds=[0.0], discount=5e-324
    )
    policy = JointPolicy((np.ones((1, 2, 1)),))
    assert game.tail(policy, exactly_weighed=exact).most_costs[0] > 0
    assert not cmpg.certify(game, policy, [[0.0]], exact=exact).feasible


def test_what_breaks_a_threshold_after_its_steps_is_not_said_to_meet_it_up_to_rounding() -> None:
    """Each pays 10 of 5 in the end, and 1 of them in the step that is stated."""
    game = alone(np.ones((3, 2)), np.ones((3, 2)), 1.5)
    for exact in (False, True):
        found = cmpg.certify(game, first_action(1), [[0.0]], exact=exact)
        assert found.feasibility is cmpg.Feasibility.OPEN
        assert found.excess == pytest.approx([0.5], rel=1e-12)
        shown = str(found)
        assert "is not proved to meet every threshold" in shown
        assert "rounding:" not in shown
        # Every later step is worth 1, whatever is done: that is 1 in all, and nothing more to a deviation.
        assert "what follows them is worth at most 1 " not in shown
        assert "more to a deviation" in shown
    broken = cmpg.certify(game.with_thresholds([0.5]), first_action(1), [[0.0]])
    assert broken.feasibility is cmpg.Feasibility.VIOLATED
    assert "constraint 0 may cost up to 1.51 more than 0.5" in str(broken)


def test_a_policy_in_rationals_is_judged_in_rationals() -> None:
    little = Fraction(1, 10**400)
    table = np.tile(np.array([1 - little, little], dtype=object), (1, 3, 1))
    for threshold, met in ((0.0, False), (5e-324, True)):
        game = alone([[0, 1], [0, 0], [0, 0]], np.zeros((3, 2)), threshold)
        found = cmpg.certify(game, JointPolicy((table,)), [[0.0]])
        assert (found.arithmetic, found.feasible) == ("exact", met)


def test_a_discount_next_to_one_is_not_looked_at_without_end() -> None:
    game = one_state(1 - 2.0**-53)
    assert game.steps_for(1e-6) < 100_000
    assert one_state(0.5).steps_for(5e-324) < 3000


@pytest.mark.parametrize("reward", [1.0, -1e308, 1e308])
@pytest.mark.parametrize("cost", [1.0, -1e308, 1e308])
def test_what_follows_may_be_more_than_any_float(reward: float, cost: float) -> None:
    game = replace(alone(np.full((3, 2), cost), np.full((3, 2), reward), 1.0), discount=1 - 2.0**-20)
    tail = game.tail(first_action(2))
    known = np.isfinite(tail.inner(game.thresholds)).all()
    for exact in (False, True):
        found = cmpg.certify(game, first_action(2), [[0.0]], exact=exact)
        assert found.feasible == (cost < 0)
        assert found.excess[0] == (np.inf if not known else 0.0 if cost < 0 else found.excess[0])
        assert not np.isnan(found.gains).any()
    assert not prove_infeasible(game.with_thresholds([1e308]), [1.0]).holds
    with np.errstate(all="ignore"):
        result = cmpg.solve(replace(game, discount=0.5), epsilon=1e300)
    assert result.status is not Status.CERTIFIED or cost < 0


def test_a_policy_is_not_called_optimal_for_its_steps_alone() -> None:
    """Action 1 is worth nothing now and 1 later; a policy of one step knows no later."""
    game = alone([[0, 0], [0, 0], [0, 0]], [[0, 0], [0, 0], [-1, -8]], 1.0)
    result = cmpg.solve(game, epsilon=100.0, start=JointPolicy((np.tile([0.0, 1.0], (1, 3, 1)),)))
    gap = cmpg.quality(result)
    assert gap.bound is not None
    assert gap.value <= -4  # in state 2 from step 2 on, with weights of 1/4, 1/8, …
    assert gap.gap >= 3.5
