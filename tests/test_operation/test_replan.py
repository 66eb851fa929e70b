"""Plans that are made again during a day: the budget, exactly; what is certified; who comes and goes; refusals."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import cmpg
from cmpg.equilibrium.certificate import Feasibility
from cmpg.equilibrium.starts.common_price import WarmStart
from cmpg.errors import CMPGError, GameError, InfeasibleError, UnsupportedError
from cmpg.games.rest import among, laws_at, rest_of, rest_of_policy
from cmpg.operation import Arrivals, first_plan, replan
from oracles import exact_days
from test_operation.small_days import small_day, small_joint_day


def exact(number):
    return Fraction(float(number))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("step", [0, 1, 2])
def test_what_is_spent_and_what_is_promised_add_up_to_what_was_planned_exactly(seed, step):
    """The tower property, in fractions: E[spent + promise given the states seen] is the cost of the plan."""
    game = small_day(seed)
    policy = game.random_policy(rng=np.random.default_rng(seed))
    halves = cmpg.JointPolicy(tuple(np.round(table * 8) / 8 for table in (policy[0], policy[1])))
    law = exact_days.law_and_spending(game, halves, step)
    assert sum(p for p, _ in law.values()) == 1
    total = Fraction(0)
    for states, (p, spent) in law.items():
        points = [np.eye(3)[s] for s in states]
        tail = rest_of(game, step, points)
        promise = exact_days.expected_cost(tail, rest_of_policy(halves, step))[0]
        assert float(promise) == pytest.approx(tail.at(rest_of_policy(halves, step)).costs[0], abs=1e-12)
        total += spent[0] + p * promise
    assert total == exact_days.expected_cost(game, halves)[0]


def test_what_a_plan_may_exceed_its_thresholds_by_is_part_of_the_tolerance():
    morning = cmpg.solve(small_day(0), epsilon=1e-6)
    open_ = replace(morning.certificate, feasibility=Feasibility.TO_ROUNDING, excess=np.array([1e-6]))
    nearly = replace(morning, incumbent=replace(morning.incumbent, certificate=open_))
    assert nearly.replan(at=1).budget.tolerance[0] >= 1e-6
    assert 0 < morning.replan(at=1).budget.tolerance[0] < 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_a_day_with_new_plans_keeps_its_budget_exactly(seed):
    """All courses of a day with two new plans, followed in fractions: the expected cost is at most α."""
    game = small_day(seed)
    morning = cmpg.solve(game, epsilon=1e-6)
    cost, tolerance, moved = Fraction(0), 0.0, 0
    for first, (p, spent) in exact_days.law_and_spending(game, morning.policy, 1).items():
        noon = morning.replan(at=1, states=first)
        assert noon.result.certified
        later = exact_days.law_and_spending(noon.result.game, noon.result.policy, 1)
        promised = exact_days.expected_cost(noon.result.game, noon.result.policy)[0]
        assert promised <= exact(noon.budget.allowed[0])
        cost += spent[0]
        for second, (q, paid) in later.items():
            evening = noon.replan(at=2, states=second, spent=[0.0])
            planned = exact_days.expected_cost(evening.result.game, evening.result.policy)[0]
            assert planned <= exact(evening.budget.allowed[0])
            cost += p * (paid[0] + q * planned)
            tolerance = max(tolerance, evening.budget.tolerance[0])
            moved += any(abs(change.gain) > 1e-6 for change in evening.changes)
    assert 0 < tolerance < 1e-12
    assert cost <= exact(0.5) + exact(tolerance)
    assert cost > 0, "a budget that no plan touches proves nothing"


def test_what_a_plan_leaves_unspent_is_there_for_the_next_one():
    game = small_day(1, threshold=0.5)
    idle = cmpg.JointPolicy(tuple(np.eye(2)[np.zeros((3, 3), dtype=int)] for _ in range(2)))
    nothing = cmpg.solve(game, epsilon=10.0, start=idle, improve=None)
    assert nothing.costs[0] == 0
    later = nothing.replan(at=1, states=[2, 2])
    assert later.budget.promised[0] == 0
    assert later.budget.allowed[0] == pytest.approx(0.5)
    assert later.replan(at=2, states=[1, 1]).budget.allowed[0] == pytest.approx(
        rest_of(later.result.game, 1, [np.eye(3)[1]] * 2).at(rest_of_policy(later.result.policy, 1)).costs[0]
        + 0.5
        - later.budget.planned[0]
    )


def test_promises_come_from_the_plan_in_force_and_not_from_the_morning():
    game = small_day(2)
    morning = cmpg.solve(game, epsilon=1e-6)
    noon = morning.replan(at=1, states=[2, 2])
    evening = noon.replan(at=2, states=[2, 1])
    tail = rest_of(noon.result.game, 1, [np.eye(3)[2], np.eye(3)[1]])
    assert evening.budget.promised == pytest.approx(tail.at(rest_of_policy(noon.result.policy, 1)).costs, abs=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_joint_games_are_planned_again_given_the_joint_state(seed):
    game = small_joint_day(seed)
    morning = cmpg.solve(game, epsilon=1e-6)
    law = laws_at(game, morning.policy, 1)[0]
    total = 0.0
    for state in range(2):
        noon = morning.replan(at=1, states=[state])
        assert noon.result.certified
        assert noon.result.game.initial[state] == 1
        assert noon.budget.planned[0] <= noon.budget.allowed[0] + 1e-12
        total += law[state] * noon.budget.promised[0]
    stage = game.at(morning.policy).costs[0] - total
    first = replace(
        game, transition=game.transition[:1], rewards=game.rewards[:, :1], costs=game.costs[:, :1], horizon=1
    )
    head = cmpg.JointPolicy(tuple(table[:1] for table in morning.policy))
    assert stage == pytest.approx(first.at(head).costs[0], abs=1e-12)


def test_agents_that_were_not_seen_have_the_law_of_the_plan():
    game = small_day(3)
    morning = cmpg.solve(game, epsilon=1e-6)
    noon = morning.replan(at=1, states={1: 2})
    laws = laws_at(game, morning.policy, 1)
    assert noon.result.game.agents[0].initial == pytest.approx(laws[0])
    assert noon.result.game.agents[1].initial.tolist() == [0, 0, 1]
    assert noon.seen == ("agent 1",)
    assert noon.impossible == (() if laws[1][2] > 0 else ("agent 1",))


def test_the_value_of_each_agent_is_compared_and_the_potential_does_not_fall():
    game = cmpg.scenarios.charging()
    morning = cmpg.solve(game, epsilon=1e-3)
    noon = morning.replan(at=12, states={0: 0, 5: 3})
    tail = rest_of(game, 12, [agent.initial for agent in noon.result.game.agents])
    followed = rest_of_policy(morning.policy, 12)
    before = tail.at(followed).values
    assert [change.before for change in noon.changes] == pytest.approx(before)
    assert [change.after for change in noon.changes] == pytest.approx(noon.result.values)
    assert noon.result.game.potential(noon.result.policy) >= noon.result.game.potential(followed) - 1e-9
    assert "does not cover the whole day" in str(noon)
    assert "from 12:00 on" in str(noon)


def test_a_newcomer_takes_from_the_reserve_and_is_refused_without_it():
    """Cells of which one user costs nothing and two cost 1; the newcomer has no way to stay away."""
    everywhere = np.ones((1, 1, 1, 1))
    here = cmpg.LocalAgent(transition=everywhere, reward=[[[1]]], uses=everywhere, initial=[1])
    alone = cmpg.LocalGame(
        agents=(here,), delay=[[[0, 0]]], load_costs=[[[[0, 0]]]], thresholds=[0.0], horizon=3, agent_names=("one",)
    )
    both = cmpg.LocalGame(
        agents=(here, here),
        delay=[[[0, 0, 0]]],
        load_costs=[[[[0, 0, 1]]]],
        thresholds=[0.0],
        horizon=3,
        agent_names=("one", "two"),
    )
    plan = cmpg.solve(alone)
    with pytest.raises(InfeasibleError, match=r"The plan in force stays.*reserve"):
        plan.replan(at=1, game=both, reserve=2.0)
    met = plan.replan(at=1, game=both, reserve=2.5, release=2.0)
    assert met.result.costs.tolist() == [2]
    assert met.budget.thresholds.tolist() == [2.5]
    assert met.budget.reserve.tolist() == [0.5]
    assert [np.isnan(change.before) for change in met.changes] == [False, True]
    with pytest.raises(CMPGError, match="is left of the reserve"):
        met.replan(at=2, release=1.0)


def test_agents_come_and_go_by_name():
    game = cmpg.scenarios.charging()
    morning = cmpg.solve(among(game, range(20)), epsilon=1e-3)
    names = game.agent_names
    noon = replan(morning, at=10, game=among(game, range(2, 24)), states={names[2]: 0, names[23]: 1}, spent=[0.0])
    new = noon.result.game
    assert noon.result.certified
    assert new.agent_names == names[2:24]
    assert new.agents[0].initial[0] == 1
    assert new.agents[-1].initial[1] == 1
    fates = {change.agent: (np.isnan(change.before), np.isnan(change.after)) for change in noon.changes}
    assert fates[names[0]] == (False, True)
    assert fates[names[21]] == (True, False)
    assert fates[names[5]] == (False, False)
    gone = replan(morning, at=10, left=[0, names[1]])
    assert gone.result.game.agent_names == names[2:20]
    assert gone.budget.planned[0] <= gone.budget.promised[0] + 1e-9
    # The file of the whole day still lists who has left; it must not come back as a newcomer.
    both = replan(morning, at=10, game=game, left=[0, names[1]])
    assert both.result.game.agent_names == names[2:24]
    assert all(np.isnan(change.after) for change in both.changes if change.agent in names[:2])


def test_a_first_plan_may_begin_when_the_first_agents_come():
    game = cmpg.scenarios.charging()
    world = Arrivals(game)
    step = min(world.first_steps)
    few = world(step, {})
    plan = first_plan(few, at=step, reserve=0.2, epsilon=1e-3)
    assert plan.budget.thresholds.tolist() == [0.5]
    assert plan.budget.allowed == pytest.approx([0.3])
    assert plan.replan(at=step + 1, game=world(step + 1, {}), release=0.1).budget.reserve == pytest.approx([0.1])


def test_wrong_words_are_refused_with_what_is_required():
    game = small_day(1)
    plan = cmpg.solve(game)
    for given, found in (
        ({"at": 3}, "a step of the day from 0 to 2 is required"),
        ({"at": "noon"}, "a step of the day"),
        ({"at": 1, "states": [1]}, "2 are required"),
        ({"at": 1, "states": {"bo": 1}}, "there is no agent 'bo'"),
        ({"at": 1, "states": {0: 7}}, "it has the states 0 to 2"),
        ({"at": 1, "states": {0: "full"}}, "the number of a state is required"),
        ({"at": 1, "spent": [1, 2]}, "one for each constraint"),
        ({"at": 1, "reserve": -1.0}, "at least 0"),
        ({"at": 1, "game": small_day(1, horizon=4)}, "4 steps"),
        ({"at": 1, "left": [0, 1]}, "no agent is left"),
    ):
        with pytest.raises(CMPGError, match=found):
            plan.replan(**given)
    with pytest.raises(CMPGError, match="fixed with the first plan"):
        replan(plan.replan(at=1), at=2, reserve=1.0)
    with pytest.raises(UnsupportedError, match="cannot lose single agents"):
        cmpg.solve(small_joint_day(1)).replan(at=1, left=[0])
    twins = replace(small_day(1), agent_names=("bo", "bo"))
    with pytest.raises(GameError, match="same name"):
        plan.replan(at=1, game=twins)
    with pytest.raises(UnsupportedError, match="has no end"):
        rest_of(replace(small_joint_day(1), horizon=None, discount=0.5, transition=np.full((1, 2, 2, 2, 2), 0.5),
                        rewards=np.zeros((2, 1, 2, 2, 2)), costs=np.zeros((1, 1, 2, 2, 2))), 0)  # fmt: skip


@pytest.mark.parametrize("threshold", [0.49, 0.4, 0.6])
def test_a_start_from_a_similar_game_need_not_be_feasible(threshold):
    game = cmpg.scenarios.charging()
    earlier = cmpg.solve(game, epsilon=1e-3)
    other = game.with_thresholds([threshold])
    assert cmpg.solve(other, epsilon=1e-3, start=earlier.policy).certified
    warm = cmpg.solve(other, epsilon=1e-3, start=WarmStart(earlier.policy, earlier.multipliers))
    cold = cmpg.solve(other, epsilon=1e-3)
    assert warm.certified
    assert warm.search_moves < cold.search_moves
    if threshold > 0.5:
        assert other.potential(warm.policy) >= other.potential(earlier.policy)


def test_an_infeasible_start_of_a_joint_game_is_moved_inside():
    game = cmpg.scenarios.counter_example()
    busy = cmpg.solve(game.with_thresholds([5.0]))
    assert busy.costs[0] > game.thresholds[0]
    moved = cmpg.solve(game, start=busy.policy)
    assert moved.certified
    assert cmpg.solve(game.with_thresholds([-1.0]), start=busy.policy).status is cmpg.Status.INFEASIBLE
