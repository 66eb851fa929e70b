"""Days that are operated event by event: what is spent, who is planned for, and what luck decides."""

from dataclasses import replace

import numpy as np
import pytest

import cmpg
from cmpg.errors import GameError
from cmpg.games.rest import among
from cmpg.operation import Arrivals, Closure, Fixed, Luck, clairvoyant, operate
from cmpg.scenarios.lifelong import LifelongTasks
from cmpg.scenarios.robot_fleet import robots_world
from test_operation.small_days import small_day


def test_the_budget_of_the_day_holds_on_average_over_many_days():
    """The mean of the realised cost over days is at most α, up to 4 standard errors."""
    game, costs, plans = small_day(1), [], 0
    for seed in range(30):
        day = operate(Fixed(game), horizon=3, thresholds=[0.5], luck=Luck(seed), epsilon=1e-3)
        costs.append(day.costs[0])
        plans += len(day.plans)
        for plan in day.plans:
            assert plan.budget.planned[0] <= plan.budget.allowed[0] + 1e-12
    assert plans > 45, "plans are made again"
    error = np.std(costs) / np.sqrt(len(costs))
    assert np.mean(costs) <= 0.5 + 4 * error
    assert np.std(costs) > 0.1, "the days differ"


def test_agents_become_known_when_they_can_use_something_and_are_forgotten_when_they_cannot():
    game = cmpg.scenarios.charging()
    world, met = Arrivals(game), {}
    done = operate(
        world,
        horizon=24,
        thresholds=game.thresholds,
        reserve=lambda h: 0.5 * (1 - h / 24),
        on_plan=lambda plan: met.update({plan.at: plan}),
    )
    assert done.certified
    assert not done.waited
    assert set(done.values) == set(game.agent_names)
    for at, plan in met.items():
        for name in plan.result.game.agent_names:
            assert world.first_steps[game.agent_names.index(name)] <= at
        assert plan.budget.reserve[0] == pytest.approx(0.25 * (1 - at / 24))
        still = [name for name in plan.seen if name in plan.result.game.agent_names]
        assert still == sorted(still, key=game.agent_names.index), "in the order of the agents, on every run"
    assert max(plan.result.game.num_agents for plan in met.values()) < game.num_agents


def test_the_clairvoyant_sees_what_the_day_will_bring():
    """By the same luck, what a plan brings when it is played is what it brings in the clairvoyant's game."""
    game, luck = small_day(2), Luck(7)
    certain = clairvoyant(game, luck)
    assert all(np.isin(agent.initial, (0, 1)).all() for agent in certain.agents)
    day = operate(Fixed(game), horizon=3, thresholds=[100.0], luck=luck, again=False)
    played = day.plans[0].result.policy
    assert all(np.isin(table, (0, 1)).all() for table in played), "no threshold binds, so no action is mixed"
    assert certain.at(played).costs == pytest.approx(day.costs)
    assert list(day.values.values()) == pytest.approx(certain.at(played).values)


def test_newcomers_without_a_plan_wait_until_there_is_one():
    always = np.ones((1, 1, 1, 1))
    user = cmpg.LocalAgent(transition=always, reward=[[[1]]], uses=always, initial=[1])

    def game(count):
        return cmpg.LocalGame(
            agents=(user,) * count,
            delay=np.zeros((1, 1, count + 1)),
            load_costs=[[[[float(m >= 2) for m in range(count + 1)]]]],
            thresholds=[0.0],
            horizon=4,
        )

    one, two = game(1), game(2)
    day = operate(
        lambda h, _: one if h < 1 else two, horizon=4, thresholds=[3.0], reserve=lambda h: 1.0 if h < 3 else 0.0
    )
    assert day.waited == {"agent 1": 2}
    assert [plan.at for plan in day.plans] == [0, 1, 2, 3]
    assert [plan.result.game.num_agents for plan in day.plans] == [1, 1, 1, 2]
    assert day.plans[-1].budget.spent.tolist() == [2]
    assert day.costs.tolist() == [3]


def test_a_robot_that_arrives_gets_its_next_goal():
    tasks = LifelongTasks(robots_world(num_agents=2, horizon=30), horizon=30)
    first, goals = tasks.world.goals, set()

    def world(step, states):
        game = tasks(step, states)
        assert not any(states.get(f"robot {i}") == goal for i, goal in enumerate(game.legend.goals))
        goals.add(game.legend.goals)
        return game

    day = operate(world, horizon=30, thresholds=[0.1], luck=Luck(2), again=False, epsilon=1e-2)
    assert sum(tasks.completed) >= 2
    assert len(goals) == len(day.plans) > 1
    assert tasks.world.goals != first
    for plan in day.plans:
        assert plan.budget.planned[0] <= plan.budget.allowed[0]


def test_an_incident_closes_a_link():
    game = cmpg.scenarios.routing(num_agents=4)
    plan = cmpg.solve(game, epsilon=1e-3)
    loads = game.at(plan.policy).load_probabilities()[1:, 1:].sum(axis=(0, 1))
    busiest = int(np.argmax(loads))
    assert loads[busiest] > 0.5
    world = Closure(game, game.all_resource_names[busiest], at=1)
    later = plan.replan(at=1, game=world(1, {}))
    assert later.result.certified
    assert later.result.game.at(later.result.policy).load_probabilities()[1:, :, busiest].sum() == 0
    with pytest.raises(GameError, match="there is no resource"):
        Closure(game, "the moon", at=1)
    with pytest.raises(GameError, match="a state in which every action uses it"):
        Closure(cmpg.scenarios.robots(num_agents=2), 0, at=1)(1, {})


def test_closures_and_arrivals_are_news_together():
    game = cmpg.scenarios.routing(num_agents=4)
    news = Closure(Closure(game, 0, at=1), 1, at=3)
    assert news(0, {}) is game
    known = news(game.horizon - 1, {})
    for step, used in enumerate([(True, True), (False, True), (False, True), (False, False)]):
        tables = [agent.uses[step if len(agent.uses) > 1 else 0] for agent in known.agents]
        assert tuple(sum(table.sum(axis=0)[:2] for table in tables) > 0) == used
    assert Closure(Arrivals(cmpg.scenarios.charging()), 0, at=0)(0, {}) is None


def test_platoons_on_a_closed_path_take_an_open_one():
    game = cmpg.scenarios.routing(mode="static", vehicles=1000)
    plan = cmpg.solve(game, epsilon=1e-3)
    link = game.all_resource_names.index("1→2")
    assert game.at(plan.policy).load_probabilities()[0, 0, link] < 1
    later = plan.replan(at=0, game=Closure(game, "1→2", at=0)(0, {}))
    assert later.result.certified
    assert later.result.game.at(later.result.policy).load_probabilities()[0, 0, link] == 1


def test_some_agents_alone_keep_their_names_and_units():
    game = cmpg.scenarios.charging()
    few = among(game, [3, 5])
    assert few.agent_names == (game.agent_names[3], game.agent_names[5])
    assert few.names.state(1, 1) == game.names.state(5, 1)
    assert few.delay.shape[-1] == 3
    assert not few.legend.goals
    whole = game.with_agents([agent if i in (3, 5) else absent(agent) for i, agent in enumerate(game.agents)])
    alike = whole.at(whole.uniform_policy())
    assert few.at(few.uniform_policy()).values == pytest.approx(alike.values[[3, 5]])
    assert few.at(few.uniform_policy()).costs == pytest.approx(alike.costs)


def absent(agent):
    """The same agent in a state in which it uses nothing."""
    return replace(agent, initial=np.eye(agent.num_states)[0])
