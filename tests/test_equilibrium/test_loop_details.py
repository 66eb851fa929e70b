"""The loop and the ascent in detail: schedules, limits, traces, what is asked of whom, and how an ending is told."""

import time
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import cmpg
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.response import BestResponse
from cmpg.equilibrium import ascent, loop
from cmpg.equilibrium.ascent import best_response, coordinate_ascent, theorem_1_bound
from cmpg.equilibrium.certificate import Feasibility, certify
from cmpg.equilibrium.loop import (
    Answer,
    Ending,
    GreatestGain,
    LoopLimit,
    Polish,
    RoundRobin,
    Rules,
    _Turns,
    interrupted_at,
    verdict,
)
from cmpg.equilibrium.result import Status
from cmpg.errors import SolverError
from cmpg.games.contract import Judgements
from cmpg.runs import runner
from cmpg.scenarios import counter_example, grid_world_local

# --- Who is asked -----------------------------------------------------------------------------------------------------


def asked_of(schedule, gains, *, last=0, enough=0.2):
    asked = []

    def answers(agents):
        asked.extend(agents)
        return np.array([gains[agent] for agent in agents])

    return schedule.next_mover(answers, len(gains), last=last, enough=enough), asked


def test_round_robin_asks_everybody_once_beginning_after_the_last_mover():
    assert asked_of(RoundRobin(), [0.9, 0.1, 0.1, 0.5], last=1) == (3, [2, 3])
    assert asked_of(RoundRobin(), [0.9, 0.1, 0.1, 0.2], last=1) == (0, [2, 3, 0])
    assert asked_of(RoundRobin(), [0.1, 0.9, 0.1, 0.1], last=1) == (1, [2, 3, 0, 1])
    assert asked_of(RoundRobin(), [0.2] * 3, last=2) == (None, [0, 1, 2])


def test_the_greatest_gain_moves_if_it_is_more_than_enough():
    assert asked_of(GreatestGain(), [0.1, 0.5, 0.3]) == (1, [0, 1, 2])
    assert asked_of(GreatestGain(), [0.1, 0.2, 0.2]) == (None, [0, 1, 2])


def turns(gains, *, workers=1, traced=True, **rules):
    """A run whose answers have these gains."""
    asked = []

    def answer(position, agent, rng):
        asked.append(agent)
        return Answer(None, gains[agent], None)

    run = _Turns(answer, Rules(**rules), lambda *_: False, workers, None, lambda _: None, traced, num_agents=len(gains))
    return run, asked


def test_answers_are_asked_for_once():
    run, asked = turns([0.1, 0.2, 0.3])
    assert run.gains(None, [2, 0]).tolist() == [0.3, 0.1]
    assert run.gains(None, [0, 1, 2]).tolist() == [0.1, 0.2, 0.3]
    assert (asked, run.asked) == ([2, 0, 1], 3)


@pytest.mark.parametrize(("workers", "agents", "together"), [(1, 2, False), (2, 1, False), (2, 2, True), (3, 3, True)])
def test_several_workers_answer_for_several_agents(monkeypatch, workers, agents, together):
    seen = []

    def run_tasks(task, tasks, *, jobs):
        seen.append((jobs.number if hasattr(jobs, "number") else None, len(tasks)))
        return [(place, task(each)) for place, each in enumerate(tasks)]

    monkeypatch.setattr(runner, "run_tasks", run_tasks)
    run, _ = turns([0.5, 0.25, 0.125], workers=workers)
    assert run.gains(None, range(agents)).tolist() == [0.5, 0.25, 0.125][:agents]
    assert [count for _, count in seen] == ([agents] if together else [])


def test_time_and_answers_end_the_run_when_they_are_used_up(monkeypatch):
    run, _ = turns([0.1, 0.2], deadline=100.0)
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: 100.0))
    run.gains(None, [0])
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: 100.5))
    assert run.gains(None, [0]).tolist() == [0.1]  # known already
    with pytest.raises(LoopLimit, match="the time limit was reached"):
        run.gains(None, [1])
    run, _ = turns([0.1, 0.2, 0.3], max_answers=2)
    run.gains(None, [0])
    run.gains(None, [1])
    with pytest.raises(LoopLimit, match="2 answers were asked for"):
        run.gains(None, [2])


def test_a_step_tells_who_gains_and_the_greatest_gain_where_nobody_moves():
    position = SimpleNamespace(costs=[1, 2])
    run, _ = turns([0.1, 0.4, 0.3])
    run.gains(position, [0, 1])
    run.record(position, 0)
    run.record(position, None)
    first, second = run.trace
    assert (first.iteration, first.mover, first.gain) == (1, 0, 0.1)
    assert (second.iteration, second.mover, second.gain) == (2, None, 0.4)
    assert first.gains.tolist()[:2] == [0.1, 0.4]
    assert np.isnan(first.gains[2])
    untraced, _ = turns([0.1], traced=False)
    untraced.gains(position, [0])
    untraced.record(position, None)
    assert (untraced.trace, untraced.decisions) == ([], 1)


def test_a_mover_gains_nothing_any_more_and_others_are_asked_again_unless_their_problem_is_the_same():
    class Place:
        def replace(self, agent, table):
            return self

    place = Place()
    run, asked = turns([0.1, 0.4, 0.3], max_moves=2)
    run.same_problem = lambda moved, agent, before: agent == 2
    run.gains(place, range(3))
    run.move(place, 1)
    assert (run.moves, run.last, run.total) == (1, 1, 0.4)
    assert run.gains(place, range(3)).tolist() == [0.1, 0.0, 0.3]
    assert asked == [0, 1, 2, 0]
    run.move(place, 2)
    assert run.total == pytest.approx(0.7)
    with pytest.raises(LoopLimit, match="the limit of 2 moves"):
        run.move(place, 0)


# --- How an ending is told --------------------------------------------------------------------------------------------


def test_what_was_interrupted_is_judged_and_told():
    game = counter_example()
    stopped = interrupted_at(game, game.uniform_policy(), epsilon=1e-3)
    assert (stopped.status, stopped.interrupted, stopped.message) == (
        Status.INTERRUPTED,
        True,
        "interrupted by the user.",
    )
    good = interrupted_at(game, game.uniform_policy(), epsilon=1.0)
    assert (good.status, good.interrupted) == (Status.CERTIFIED, False)
    tight = interrupted_at(counter_example(threshold=0.1), game.uniform_policy(), epsilon=1.0)
    assert tight.status is Status.INTERRUPTED
    assert tight.message.startswith("interrupted by the user. The policy violates a threshold: ")


def told(*, status=Status.CERTIFIED, epsilon=0.25, failed="", **certificate):
    """How a loop is told that ended with a certificate like this."""
    game = counter_example()
    made = replace(certify(game, game.uniform_policy()), **certificate)
    ending = Ending(status, "the loop's words.", None, {}, (), 0)
    return verdict(ending, made, epsilon=epsilon, ranges=np.array([1.0, 2.0]), failed=failed)


def test_the_certificate_decides_and_then_the_loop():
    assert told(epsilon=0.26)[0] is Status.CERTIFIED
    assert told(epsilon=0.26, status=Status.LIMIT)[0] is Status.CERTIFIED
    assert told(epsilon=0.26, status=Status.NOT_POTENTIAL) == (Status.NOT_POTENTIAL, "the loop's words.")
    close = {"feasibility": Feasibility.TO_ROUNDING, "excess": np.array([1e-16])}
    assert told(epsilon=0.26, **close)[0] is Status.TO_ROUNDING
    assert told(epsilon=0.26, status=Status.NOT_POTENTIAL, **close)[0] is Status.NOT_POTENTIAL
    status, message = told(epsilon=0.1, status=Status.LIMIT, **close)
    assert status is Status.LIMIT
    assert message.startswith("the loop's words. The policy meets every threshold up to rounding: ")
    assert told(epsilon=0.1, status=Status.LIMIT) == (Status.LIMIT, "the loop's words.")


def test_why_nothing_is_proved_of_the_gains_is_told():
    prices, none = np.array([[0.0], [1.0]]), np.zeros((2, 1))

    def message(rounding, multipliers, *, epsilon=0.1, failed=""):
        game = counter_example()
        made = replace(
            certify(game, game.uniform_policy()),
            rounding=np.array([0.0, rounding]),
            multipliers=multipliers,
            epsilon=200.0,
        )
        ending = Ending(Status.CERTIFIED, "", None, {}, (), 0)
        return verdict(ending, made, epsilon=epsilon, ranges=np.array([1.0, 2.0]), failed=failed)[1]

    assert (
        message(9.0, prices, failed="agent 1 has no response.") == "agent 1 has no response. The last policy is kept."
    )
    assert "its price has no bound" in message(2.1, prices)
    assert "its price has no bound" not in message(2.1, none)
    assert "is up to 2.1. Ask for an epsilon of at least 8" in message(2.1, none)
    assert "is up to 2. Ask for" in message(2.0, prices)
    assert "its price has no bound" in message(9.0, prices, epsilon=35.0)
    assert "is up to 9. Ask for" in message(9.0, none, epsilon=35.0)
    assert "the solver's own gap leaves 200 unproved" in message(9.0, prices, epsilon=36.0)
    assert "the solver's own gap" in message(0.025, none)


# --- What the ascent asks for -----------------------------------------------------------------------------------------


@pytest.fixture
def observed(monkeypatch):
    """Run the ascent with limits and rules written down, on a clock that stands still."""
    seen, now = SimpleNamespace(limits=[], rules=None, at_rest=None), time.monotonic()

    @contextmanager
    def limited(moment):
        seen.limits.append(moment - now)
        yield

    take_turns = loop.take_turns

    def watched(position, answers, rules, *, at_rest, **rest):
        seen.rules, seen.at_rest = rules, at_rest
        return take_turns(position, answers, rules, at_rest=at_rest, **rest)

    monkeypatch.setattr(ascent, "limited", limited)
    monkeypatch.setattr(ascent, "take_turns", watched)
    monkeypatch.setattr(ascent, "time", SimpleNamespace(monotonic=lambda: now))

    def run(game, **options):
        coordinate_ascent(game, options.pop("start", None) or game.uniform_policy(), **options)
        seen.deadline = seen.rules.deadline - now
        return seen

    return run


def test_rules_are_those_of_the_theorem(observed):
    game = counter_example()
    seen = observed(game, epsilon=1e-3)
    ranges = float(game.reward_ranges.sum())
    assert seen.rules.enough == 0.5e-3
    assert seen.rules.max_moves == theorem_1_bound(game, 1e-3) == np.ceil(2 * ranges / 1e-3)
    assert seen.rules.most_gain == ranges * (1 + 1e-9) + 1e-3
    assert seen.rules.no_return
    assert isinstance(seen.rules.schedule, GreatestGain)
    assert isinstance(seen.at_rest, Polish)
    assert seen.deadline == np.inf
    assert observed(game, epsilon=1e-3, max_iterations=7).rules.max_moves == 7
    private = observed(cmpg.games.bind(game, [[1], [0]]), epsilon=1e-3)
    assert private.rules.most_gain == np.inf


def test_few_agents_are_asked_all_at_once_and_many_in_turns(monkeypatch, observed):
    game = counter_example()
    for few, schedule in ((2, GreatestGain), (1, RoundRobin)):
        monkeypatch.setattr(ascent, "FEW_AGENTS", few)
        assert isinstance(observed(game, epsilon=0.5).rules.schedule, schedule)


def test_only_policies_of_the_joint_state_are_polished(observed):
    assert not isinstance(observed(grid_world_local().with_thresholds([5.0]), epsilon=0.5).at_rest, Polish)
    assert not isinstance(observed(counter_example(), epsilon=0.5, polish=False).at_rest, Polish)


@pytest.mark.parametrize(("certificate", "left"), [(30.0, 970.0), (5000.0, 500.0)])
def test_a_time_limit_leaves_time_for_the_certificate_but_never_more_than_half(
    monkeypatch, observed, certificate, left
):
    monkeypatch.setattr(ascent, "certificate_seconds", lambda *_: certificate)
    seen = observed(counter_example(), epsilon=0.5, time_limit=1000.0)
    assert seen.limits[:2] == pytest.approx([1.1 * 1000 + 0.8, left], abs=1e-6)
    assert seen.deadline == pytest.approx(left, abs=1e-6)


def test_theorem_1_is_rounded_up_and_never_beyond_all_integers():
    game = counter_example()
    assert theorem_1_bound(game, 1e300) == 1
    assert theorem_1_bound(game, 1e-300) == 2**62
    assert theorem_1_bound(game, float(game.reward_ranges.sum())) == 2


# --- Answers ----------------------------------------------------------------------------------------------------------


def test_an_agent_without_a_response_keeps_its_policy_and_gains_nothing():
    game = counter_example()
    position = game.at(game.uniform_policy())

    def fails(cmdp, *, rng=None):
        raise SolverError("no luck.")

    answers = ascent._Answers(fails, 1e-3, None)
    for count in (1, 2):
        answer = answers(position, 1, None)
        assert (answer.gain, answers.failures, answers.failed) == (0.0, count, "agent 1 has no response: no luck.")
    assert answer.table is position.policy[1]
    assert (answer.detail.bound, answer.detail.multipliers.tolist()) == (np.inf, [0.0])
    assert answers.multipliers(position, 0).tolist() == [0.0]
    assert answers.failed == "agent 0 has no response: no luck."


def test_multipliers_that_prove_a_small_gain_are_a_response_already():
    game = counter_example()
    position = game.at(game.uniform_policy())
    solved = []

    def solver(cmdp, *, rng=None):
        solved.append(cmdp)
        return Exact()(cmdp, rng=rng)

    answer = ascent._Answers(solver, 0.52, np.zeros((2, 1)))(position, 0, None)  # the gain is ¼
    assert not solved
    assert answer.gain == pytest.approx(0.25, abs=1e-12)
    assert answer.table is position.policy[0]
    assert (answer.detail.work, answer.detail.multipliers.tolist()) == (1, [0.0])
    answer = ascent._Answers(solver, 0.48, np.zeros((2, 1)))(position, 0, None)
    assert len(solved) == 1
    assert answer.gain == pytest.approx(0.25, abs=1e-12)


def test_a_gain_that_rounding_could_have_made_is_no_reason_to_move(monkeypatch):
    game = counter_example()
    position = game.at(game.uniform_policy())
    for noise, gain in ((0.0, 0.25), (0.2, 0.25), (0.3, 0.05)):
        monkeypatch.setattr(ascent, "gain_rounding", lambda *_, noise=noise: noise)
        answer = ascent._Answers(Exact(), 0.1, None)(position, 0, None)
        assert answer.gain == pytest.approx(gain, abs=1e-12)


def test_a_response_that_exceeds_a_threshold_by_more_than_two_margins_is_refused():
    answers = ascent._Answers(Exact(), 1e-3, None)
    answers._require_feasible(0, np.array([2e-9, -1.0]), np.array([1e-9, 1e-9]))
    for over in ([3e-9, -1.0], [-1.0, 3e-9]):
        with pytest.raises(SolverError, match="exceeds a threshold by 3e-09"):
            answers._require_feasible(0, np.array(over), np.array([1e-9, 1e-9]))


def test_a_guess_is_made_where_one_threshold_is_spent_and_multipliers_were_given():
    guided, alone = ascent._Answers(Exact(), 1e-3, np.array([[2.0]])), ascent._Answers(Exact(), 1e-3, None)
    last, spent = np.array([2.0]), np.array([0.0])
    assert guided._solver_for(last, spent) == Exact(near=2.0)
    assert alone._solver_for(last, spent) == Exact()
    assert guided._solver_for(None, spent) == Exact()
    assert guided._solver_for(last, np.array([1.0])) == Exact()
    assert guided._solver_for(np.array([np.inf]), spent) == Exact()
    assert guided._solver_for(np.array([2.0, 1.0]), np.zeros(2)) == Exact()


def test_neighbours_are_judged_together_and_twice_as_many_each_time():
    asked = []

    def judgements(multipliers, agents):
        asked.append((agents, multipliers.ravel().tolist()))
        count = len(agents)
        return Judgements(np.full(count, 1.0), np.full(count, 1.25), np.zeros(count))

    position = SimpleNamespace(
        judgements=judgements,
        neighbours=lambda agent: range(agent, agent + 2),
        policy=Policies("abcdefghi"),
    )
    answers = ascent._Answers(Exact(), 0.5, np.arange(9.0)[:, None])
    found = [answers._proved(position, agent) for agent in range(8)]
    assert [agents for agents, _ in asked] == [range(2), range(2, 6), range(6, 9)]
    assert asked[1][1] == [2.0, 3.0, 4.0, 5.0]
    assert [answer.table for answer in found] == list("abcdefgh")
    assert {(answer.gain, answer.detail.work) for answer in found} == {(0.25, 1)}
    assert all((answer.detail.bound, answer.detail.value) == (1.25, 1.0) for answer in found)
    # Whoever has other multipliers by now, or infinite ones, or could gain more, is solved for.
    answers._last[3] = np.array([9.0])
    assert answers._proved(position, 7) is not None
    answers._screened = replace(answers._screened, agents=range(3, 6), multipliers=np.array([[3.0], [4.0], [5.0]]))
    assert answers._proved(position, 3) is None
    assert answers._proved(position, 4) is not None
    answers._last[8] = np.array([np.inf])
    assert answers._proved(position, 8) is None
    assert ascent._Answers(Exact(), 0.4, np.zeros((9, 1)))._proved(position, 0) is None


class Policies:
    """Tables that are names."""

    def __init__(self, names):
        self.stored = list(names)

    def __len__(self):
        return len(self.stored)


def test_where_nothing_is_left_what_is_possible_is_asked_first_and_then_the_solver(monkeypatch):
    game = counter_example(threshold=0.0)
    idle = cmpg.JointPolicy(([[[1.0, 0.0]]], [[[0.0, 1.0]]]))
    asked = []

    def within(position, agent, hard):
        asked.append(hard.tolist())
        return SimpleNamespace(respond=lambda solver, rng=None: "by support")

    monkeypatch.setattr(ascent, "_hard_budgets", lambda: SimpleNamespace(within=within))
    assert best_response(game.at(idle), 0, Exact()) == "by support"
    assert asked == [[True]]
    roomy = counter_example().at(idle)
    assert isinstance(best_response(roomy, 0, Exact()), BestResponse)
    assert len(asked) == 1
    monkeypatch.setattr(ascent, "_hard_budgets", lambda: SimpleNamespace(within=lambda *_: None))
    assert isinstance(best_response(game.at(idle), 0, Exact()), BestResponse)


@pytest.mark.parametrize(("hidden", "by_support"), [(0.025, False), (0.026, True)])
def test_a_spent_budget_is_called_hard_where_rounding_hides_more_than_a_quarter_of_epsilon(
    monkeypatch, hidden, by_support
):
    game = counter_example()
    spent = game.at(cmpg.JointPolicy(([[[0.5, 0.5]]], [[[0.0, 1.0]]])))
    assert spent.slacks[0] == 0.0
    monkeypatch.setattr(ascent, "gain_rounding", lambda cmdp, prices: hidden - 2 * prices @ spent.cost_rounding)
    answer = SimpleNamespace(respond=lambda solver, rng=None: "by support")
    monkeypatch.setattr(ascent, "_hard_budgets", lambda: SimpleNamespace(within=lambda *_: answer))
    found = best_response(spent, 0, Exact(), epsilon=0.1)
    assert (found == "by support" if by_support else isinstance(found, BestResponse)) is True
