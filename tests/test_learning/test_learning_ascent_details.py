"""Agents who are asked in turn, in detail: shares of δ, what is believed and moved to, starts, and endings."""

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from bare_runs import UNIFORM, bare, failing, response

from cmpg.equilibrium.loop import Ending, LoopLimit
from cmpg.equilibrium.result import Status, Step
from cmpg.errors import BudgetError, SimulatorError, StartError
from cmpg.games.joint.game import JointGame
from cmpg.learning import ascent
from cmpg.learning.generative import Adaptive
from cmpg.learning.outcome import Present, ResponseStatus
from cmpg.learning.simulator import GameSimulator
from cmpg.policy import JointPolicy
from cmpg.scenarios import counter_example


def asking(**attributes):
    known = SimpleNamespace(limits=np.array([1.0]), thresholds=np.array([1.0]), num_constraints=1)
    beginning = ascent._Beginning(UNIFORM, "given", proved=True)
    usual = {"simulator": SimpleNamespace(known=known), "beginning": beginning, "epsilon": 0.8, "delta": 0.12}
    more = {"questions": 0, "error": None, "start_proved": True, "start_seen": "", "learner": None}
    return bare(ascent._Run, **usual | more | attributes)


def test_each_question_has_its_share_of_delta_half_for_the_response_and_half_for_comparing():
    shares, run = [], asking(questions=1)
    place = ascent.Asked(UNIFORM, [Present.unknown(1)])
    run._respond = lambda policy, agent, share: shares.append(share) or response(present=(1.0, 2.4))
    run._compared = lambda policy, agent, found, share: shares.append(share) or response(present=(1.0, 1.5))
    answer = run.answer(place, 1, None)
    assert shares == [pytest.approx(0.01), pytest.approx(0.01)]
    assert run.questions == 2
    assert answer.gain == pytest.approx(0.5)  # a floor of 2 above a ceiling of 1.5
    assert answer.table.tolist() == [[[0.0, 1.0]]]


@pytest.mark.parametrize(
    ("answered", "gain"),
    [
        (response(present=(1.8, 1.9)), 0.0),  # no more than 0.7 could be gained: it stays
        (response(ResponseStatus.LIMIT, present=(0.0, 1.0)), 0.0),
        (response(ResponseStatus.BETTER, present=(0.0, 1.0)), 1.0),
        (response(present=(0.0, 1.0)), 1.0),
    ],
)
def test_only_what_is_proved_to_be_better_is_moved_to(answered, gain):
    run = asking()
    run._respond = lambda *_: answered
    place = ascent.Asked(UNIFORM, [Present.unknown(1)])
    answer = run.answer(place, 0, None)
    assert answer.gain == pytest.approx(gain)
    assert (answer.table is UNIFORM[0]) is (gain == 0.0)
    assert place.seen[0].value_ceiling == answered.present.value_ceiling


def test_budgets_and_faults_end_the_loop():
    place = ascent.Asked(UNIFORM, [Present.unknown(1)])
    run = asking()
    run._respond = lambda *_: failing(BudgetError("spent"))(None)
    with pytest.raises(LoopLimit, match="spent"):
        run.answer(place, 0, None)
    assert run.error is None
    run._respond = lambda *_: failing(SimulatorError("broken"))(None)
    with pytest.raises(LoopLimit, match="broken"):
        run.answer(place, 0, None)
    assert isinstance(run.error, SimulatorError)


def test_a_response_decides_where_it_is_a_quarter_of_epsilon_better_or_nothing_is():
    run = asking()
    assert run._decides(response(floor=2.0, present=(0.0, 1.79)))
    assert not run._decides(response(floor=2.0, present=(0.0, 1.81)))
    assert not run._decides(response(floor=2.0, present=(0.0, 1.8 + 1e-12)))
    assert run._decides(response(ceiling=2.5, present=(1.71, 9.0)))
    assert not run._decides(response(ceiling=2.5, present=(1.69, 9.0)))


def test_learners_are_asked_for_a_quarter_of_epsilon():
    asked = []

    def learner(problem, *, epsilon, delta):
        asked.append((epsilon, delta, problem.nash_epsilon))
        return response(ResponseStatus.INFEASIBLE)

    game = counter_example()
    run = asking(learner=learner, simulator=GameSimulator(game, rng=np.random.default_rng(0)))
    other = game.uniform_policy()
    assert run._respond(other, 0, 0.03).status is ResponseStatus.INFEASIBLE
    assert asked == [(pytest.approx(0.2), 0.03, 0.8)]
    with pytest.raises(LoopLimit, match=r"the start is infeasible with probability 0\.88: against it agent 0"):
        run._respond(run.beginning.policy, 0, 0.03)


class Growing:
    """A measurement whose bounds close in by a quarter on either side each time."""

    def __init__(self, width):
        self.floors, self.ceilings, self.times = np.array([0.0, 0.0]), np.array([width, 1.0]), 0

    @property
    def present(self):
        return Present(float(self.floors[0]), float(self.ceilings[0]), np.array([0.0]), np.array([1.0]))

    def grow(self):
        self.times += 1
        assert self.times < 20
        width = self.ceilings[0] - self.floors[0]
        self.floors[0] += width / 4
        self.ceilings[0] -= width / 4


@pytest.mark.parametrize(
    ("width", "floor", "status", "times"),
    [(4.0, 3.0, "CERTIFIED", 2), (2.0, 1.0, "UNPROVED", 2), (1.0, 0.5, "UNPROVED", 1)],
)
def test_the_present_policy_is_played_until_it_is_decided_or_cannot_be(monkeypatch, width, floor, status, times):
    made = Growing(width)
    monkeypatch.setattr(ascent, "Measurement", lambda *_, **__: made)
    monkeypatch.setattr(ascent, "InducedProblem", lambda *_, **__: None)
    found = asking(epsilon=1.0)._compared(UNIFORM, 0, response(floor=floor, ceiling=9.0), 0.1)
    assert (found.status.name, made.times) == (status, times)


def test_a_start_is_proved_or_refuted_by_what_is_seen_of_its_costs():
    for floors, ceilings, proved in (([0.0], [1.0], True), ([0.0], [1.1], False), ([1.0], [1.1], False)):
        run = asking(start_proved=False)
        seen = Present(0.0, 1.0, np.array(floors), np.array(ceilings))
        run._check_start(ascent.Asked(UNIFORM, [seen]))
        assert run.start_proved is proved
        assert run.start_seen == f"{floors[0]:.4g} to {ceilings[0]:.4g} against 1"
    run = asking(start_proved=False)
    with pytest.raises(LoopLimit, match=r"the start is infeasible with probability 0\.88: it costs 1\.1 to 2"):
        run._check_start(ascent.Asked(UNIFORM, [Present(0.0, 1.0, np.array([1.1]), np.array([2.0]))]))
    elsewhere = asking(start_proved=False)
    elsewhere._check_start(ascent.Asked(UNIFORM.replace(0, [[[1.0, 0.0]]]), [Present.unknown(1)]))
    assert elsewhere.start_seen == ""


def test_what_is_proved_about_costs_is_told_by_its_middle():
    seen = Present(0.0, 1.0, np.array([1.0, 0.0, -np.inf]), np.array([2.0, np.inf, 3.0]))
    costs = ascent.Asked(UNIFORM, [seen]).costs
    assert costs[0] == 1.5
    assert np.isnan(costs[1:]).all()


def ending(status, *, moves=2, mover=None, certified=True):
    detail = response(ResponseStatus.CERTIFIED if certified else ResponseStatus.LIMIT)
    step = Step(1, mover, 0.0, np.zeros(2), np.zeros(1), 0.0, 0.0)
    answers = {0: SimpleNamespace(detail=detail)}
    return Ending(status, "the loop's words", SimpleNamespace(policy=UNIFORM), answers, (step,), moves)


def concluded(made, **attributes):
    run = asking(max_iterations=6, claimed=0.8, **attributes)
    run.simulator = SimpleNamespace(known=SimpleNamespace(cut=None), ledger=SimpleNamespace(by_purpose={}), played=())
    return run


def test_an_ending_is_certified_unless_something_speaks_against_it(monkeypatch):
    monkeypatch.setattr(ascent, "cut_settings", lambda _: {})
    run = concluded(None)
    good = run.conclude(ending(Status.CERTIFIED))
    assert (good.status, good.void) == (Status.CERTIFIED, ())
    bad = run.conclude(ending(Status.CERTIFIED, certified=False))
    assert (bad.status, bad.void) == (Status.LIMIT, ("agent 0: told",))
    assert bad.message.startswith("nothing is certified; the last policy is feasible with probability 0.88")
    late = run.conclude(ending(Status.LIMIT))
    assert (late.status, late.void) == (Status.LIMIT, ("the loop's words",))
    circle = run.conclude(ending(Status.LIMIT, moves=5, mover=1))
    assert circle.status is Status.NOT_POTENTIAL
    assert "6 moves gain more than one allows." in circle.void[0]
    rest = run.conclude(ending(Status.CERTIFIED, moves=5))
    assert rest.status is Status.CERTIFIED
    seen = run.conclude(ending(Status.NOT_POTENTIAL))
    assert "the loop's words" in seen.void[0]
    blind = concluded(None, start_proved=False)
    assert "the last policy is the start" in blind.conclude(ending(Status.LIMIT, moves=0)).message
    assert "is feasible" in blind.conclude(ending(Status.LIMIT, moves=1)).message
    assert blind.conclude(ending(Status.LIMIT)).assumptions[0].endswith("(measured: nothing)")


def two_costs(thresholds):
    """The first step costs 0.25 of the first budget, and the second step 1 of the other one where the coin says so."""
    return JointGame(
        transition=np.full((1, 2, 2, 2), 0.5),
        rewards=np.zeros((1, 1, 2, 2)),
        costs=[[[[0.25, 1.0]] * 2, [[0.0, 0.0]] * 2], [[[0.0, 0.0]] * 2, [[0.0, 0.0], [1.0, 1.0]]]],
        thresholds=thresholds,
        initial=[1.0, 0.0],
        horizon=2,
    )


def test_a_given_start_is_proved_where_all_its_costs_are_known_to_fit():
    policy = JointPolicy((np.eye(2)[np.zeros((2, 2), dtype=int)],))
    for thresholds, proved in (([0.5, 0.5], False), ([0.25, 1.0], True)):
        simulator = GameSimulator(two_costs(thresholds), rng=np.random.default_rng(0))
        bounds = ascent.cost_range(simulator, policy)
        assert (bounds.floors.tolist(), bounds.ceilings.tolist()) == ([0.25, 0.0], [0.25, 1.0])
        found = ascent._beginning(simulator, policy, Adaptive(), delta=0.1, deadline=np.inf)
        assert (found.proved, found.source, found.questions) == (proved, "given", 0)


def test_a_start_that_is_not_given_is_safe_or_learned_or_missed(monkeypatch):
    simulator = GameSimulator(two_costs([0.5, 1.0]), rng=np.random.default_rng(0))
    safe = ascent._beginning(simulator, None, Adaptive(), delta=0.1, deadline=np.inf)
    assert (safe.proved, safe.source, safe.questions) == (True, "safe whatever the transition is", 0)
    monkeypatch.setattr(ascent, "safe_start", lambda _: None)
    monkeypatch.setattr(ascent, "learned_start", lambda _, *, delta: UNIFORM)
    learned = ascent._beginning(simulator, None, Adaptive(), delta=0.1, deadline=np.inf)
    assert (learned.proved, learned.source, learned.questions) == (True, "learned from samples", 1)
    with pytest.raises(StartError, match="no start is given, and none was found"):
        ascent._beginning(simulator, None, lambda *_: None, delta=0.1, deadline=np.inf)


def test_whoever_moved_to_what_is_only_better_is_asked_again():
    place = ascent.Asked(UNIFORM, [Present.unknown(1)])
    good, better = (
        SimpleNamespace(detail=response(each)) for each in (ResponseStatus.CERTIFIED, ResponseStatus.BETTER)
    )
    assert asking().at_rest(place, {0: good, 1: good}) is place
    again = asking().at_rest(place, {0: good, 1: better})
    assert (again is place, again.policy is place.policy, again.seen is place.seen) == (False, True, True)


def test_draws_for_a_start_are_four_times_as_many_each_time_and_candidates_share_delta(monkeypatch):
    asked, shares, grown = [], [], []
    known = SimpleNamespace(limits=np.array([1.0]))

    def draw_all(*, count, purpose):
        asked.append(count)
        return "x" * count

    class Seen:
        """Candidates: one whose cost is refuted, one of which nothing is found out, and one that is proved."""

        def __init__(self, problem, policy, model, *, delta):
            shares.append(delta)
            self.episodes, self.floors, self.ceilings = 0, np.array([0.0, 0.0]), np.array([0.0, 9.0])

        def grow(self):
            grown.append(len(shares))
            self.episodes = 2 * self.episodes + 1
            self.floors[1], self.ceilings[1] = [(2.0, 3.0), (0.0, 3.0), (0.0, 1.0)][len(shares) - 1]

    game = SimpleNamespace(with_thresholds=lambda _: None, at=lambda _: SimpleNamespace(induced_cmdp=lambda _: None))
    monkeypatch.setattr(ascent, "model_of", lambda *_, **__: SimpleNamespace(game=game))
    monkeypatch.setattr(ascent, "feasible_start", lambda _: SimpleNamespace(policy=("table",)))
    monkeypatch.setattr(ascent, "InducedProblem", lambda *_, **__: None)
    monkeypatch.setattr(ascent, "Measurement", Seen)
    simulator = SimpleNamespace(known=known, draw_all=draw_all)
    assert ascent.learned_start(simulator, delta=0.12) == ("table",)
    first = ascent.FIRST_DRAWS
    assert asked == [first, 3 * first, 12 * first]
    assert shares == pytest.approx([0.06, 0.02, 0.01])
    undecided = int(np.ceil(np.log2(ascent.START_EPISODES * 4 * first + 2)))
    assert [grown.count(number) for number in (1, 2, 3)] == [1, undecided, 1]
    shares.clear()
    with pytest.raises(StartError, match="draws of every entry prove none"):
        ascent.learned_start(simulator, delta=0.12, max_count=first)


def test_the_start_has_half_of_delta(monkeypatch):
    shares = []

    def stop(*_, delta, **__):
        shares.append(delta)
        raise BudgetError("enough.")

    monkeypatch.setattr("cmpg.learning.ascent._beginning", stop)
    result = ascent.learn(GameSimulator(counter_example(), rng=np.random.default_rng(0)), epsilon=0.5, delta=0.1)
    assert shares == [0.05]
    assert not result.certified


# --- Runs as a whole --------------------------------------------------------------------------------------------------


@pytest.fixture
def watched(monkeypatch):
    """Run `learn`, with the rules of its loop written down."""
    seen = SimpleNamespace(rules=None, place=None, limits=[])
    take_turns = ascent.take_turns

    def watch(place, answer, rules, **rest):
        seen.rules, seen.place, seen.run = rules, place, answer.__self__
        return take_turns(place, answer, rules, **rest)

    @contextmanager
    def limited(moment):
        seen.limits.append(moment)
        yield

    monkeypatch.setattr(ascent, "take_turns", watch)
    monkeypatch.setattr(ascent, "limited", limited)
    monkeypatch.setattr(ascent, "time", SimpleNamespace(monotonic=lambda: 1e9))
    return seen


def test_moves_gain_a_quarter_of_epsilon_and_there_are_fewer_than_theorem_2_allows(watched):
    game = counter_example()
    result = ascent.learn(GameSimulator(game, rng=np.random.default_rng(0)), epsilon=0.5, delta=0.1, time_limit=50.0)
    iterations = int(np.ceil(4 * game.reward_ranges.sum() / 0.5))
    assert (watched.rules.enough, watched.rules.max_moves) == (0.125, iterations - 1)
    assert (watched.rules.no_return, watched.rules.deadline) == (True, 1e9 + 50.0)
    assert isinstance(watched.rules.schedule, ascent.RoundRobin)
    assert watched.limits == [1e9 + 50.0]
    assert watched.place.seen[0].cost_ceilings.shape == (1,)
    assert result.settings["max_iterations"] == iterations
    assert result.settings["learner"] == ascent._written(Adaptive())
    assert " at 0x" not in result.settings["learner"]
    assert result.settings["start"] == "safe whatever the transition is"
    assert result.settings["questions"] == watched.run.questions >= 2
    assert result.certified
    assert (result.epsilon, result.delta) == (0.5, 0.1)
    assert result.message == "feasible, and no agent gains more than 0.5 by leaving, with probability 0.9."
    assert result.assumptions == ascent.ASSUMPTIONS
    assert sum(step.mover is not None for step in result.trace) == result.moves


def test_a_run_begins_with_the_questions_of_its_start():
    simulator = GameSimulator(counter_example(), rng=np.random.default_rng(0))
    beginning = ascent._Beginning(UNIFORM, "learned from samples", proved=True, questions=1)
    run = ascent._Run(simulator, beginning, learner="learner", epsilon=0.5, delta=0.1)
    assert (run.questions, run.epsilon, run.claimed, run.delta) == (1, 0.5, 0.5, 0.1)
    assert (run.error, run.start_proved, run.start_seen) == (None, True, "")
    shares = []
    run._respond = lambda policy, agent, share: shares.append(share) or response(present=(0.0, 1.0))
    run.answer(ascent.Asked(UNIFORM, [Present.unknown(1)]), 0, None)
    assert shares == pytest.approx([0.1 / 6 / 2])


@pytest.mark.parametrize(
    ("status", "present", "compared"),
    [
        (ResponseStatus.CERTIFIED, (1.0, 2.4), True),
        (ResponseStatus.CERTIFIED, (1.0, 1.0), False),
        (ResponseStatus.CERTIFIED, None, True),
        (ResponseStatus.LIMIT, (1.0, 2.4), False),
        (ResponseStatus.BETTER, (1.0, 2.4), False),
    ],
)
def test_only_certified_responses_that_decide_nothing_are_compared(status, present, compared):
    run, calls = asking(), []
    run._respond = lambda *_: response(status, present=present)
    run._compared = lambda policy, agent, found, share: calls.append(share) or found
    answer = run.answer(ascent.Asked(UNIFORM, [Present.unknown(1)]), 0, None)
    assert len(calls) == compared
    assert answer.detail.status is status


def test_the_present_policy_is_measured_as_values_and_given_up_at_half_of_epsilon(monkeypatch):
    asked = []

    class Still:
        """A measurement that never learns anything, of a given width."""

        def __init__(self, problem, policy, model, *, delta):
            asked.append((problem, policy is UNIFORM[1], model, delta))
            self.floors, self.ceilings, self.present = np.zeros(2), np.array([0.5, 9.0]), Present.unknown(1)

        def grow(self):
            asked.append("grown")
            self.ceilings[0] -= 0.125

    monkeypatch.setattr(ascent, "Measurement", Still)
    monkeypatch.setattr(ascent, "InducedProblem", lambda simulator, agent, policy, *, purpose: (agent, purpose))
    for epsilon, grown in ((1.0, 0), (0.75, 1), (0.5, 2)):
        asked.clear()
        found = asking(epsilon=epsilon)._compared(UNIFORM, 1, response(), 0.03)
        assert asked == [((1, "values"), True, None, 0.03)] + ["grown"] * grown
        assert found.status is ResponseStatus.UNPROVED


def test_faults_at_the_start_are_told_for_that_policy_only():
    run = asking()
    run.learner = lambda problem, *, epsilon, delta: response(ResponseStatus.INFEASIBLE)
    game = counter_example()
    run.simulator = GameSimulator(game, rng=np.random.default_rng(0))
    run._respond(game.uniform_policy(), 1, 0.1)
    assert run.error is None
    with pytest.raises(LoopLimit):
        run._respond(UNIFORM, 1, 0.1)
    assert isinstance(run.error, StartError)


def test_what_keeps_a_result_from_being_certified_is_all_told(monkeypatch):
    monkeypatch.setattr(ascent, "cut_settings", lambda _: {"cut": "where"})
    run = concluded(None)
    made = ending(Status.LIMIT, certified=False)
    found = run.conclude(made)
    assert found.void == ("the loop's words", "agent 0: told")
    assert (found.trace, found.moves, found.policy) == (made.trace, 2, UNIFORM)
    assert (found.settings["cut"], found.settings["questions"], found.settings["max_iterations"]) == ("where", 0, 6)
    for moves, mover, status in ((5, 0, Status.NOT_POTENTIAL), (4, 0, Status.LIMIT), (5, None, Status.LIMIT)):
        assert run.conclude(ending(Status.LIMIT, moves=moves, mover=mover)).status is status
    assert run.conclude(replace(ending(Status.LIMIT, moves=5), trace=())).status is Status.LIMIT
    certain = run.conclude(ending(Status.NOT_POTENTIAL))
    assert certain.void == ("there is no potential, with probability 0.88: the loop's words",)


def test_without_a_start_the_uniform_policy_is_told_and_why(monkeypatch):
    game = counter_example()
    simulator = GameSimulator(game, rng=np.random.default_rng(0))
    found = ascent._without_start(simulator, "spent.", epsilon=0.5, delta=0.1)
    assert (found.status, found.void, found.certified) == (Status.LIMIT, ("spent.",), False)
    assert [table.tolist() for table in found.policy] == [[[[0.5, 0.5]]]] * 2
    assert (found.epsilon, found.delta, found.assumptions) == (0.5, 0.1, ascent.ASSUMPTIONS)


# --- Starts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("thresholds", "first"),
    [
        ([1.0, 1.0], 0),  # the worse of 0.5 and 0.75 beside the worse of 0.8 and 0.25
        ([1.0, 3.0], 0),
        ([2.0, 1.0], 1),
        ([0.0, 1.0], 0),  # a threshold of zero or less is a unit of one
        ([-4.0, 1.0], 0),
    ],
)
def test_what_is_cheapest_at_once_counts_costs_in_units_of_their_thresholds(thresholds, first):
    game = JointGame(
        transition=np.ones((1, 1, 2, 1)),
        rewards=np.zeros((1, 1, 1, 2)),
        costs=[[[[0.5, 0.8]]], [[[0.75, 0.25]]]],
        thresholds=thresholds,
        initial=[1.0],
        horizon=2,
    )
    simulator = GameSimulator(game, rng=np.random.default_rng(0))
    policy = ascent._cheapest_at_once(simulator.known)
    assert policy[0].argmax(axis=-1).tolist() == [[first]] * 2
    hidden = GameSimulator(game, rng=np.random.default_rng(0), payoff_noise=0.5)
    assert ascent._cheapest_at_once(hidden.known)[0].tolist() == [[[0.5, 0.5]]] * 2


def test_a_start_may_spend_all_that_is_allowed_and_no_more():
    policy = JointPolicy((np.eye(2)[np.zeros((2, 2), dtype=int)],))
    for threshold, possible in ((0.25, True), (0.24, False)):
        simulator = GameSimulator(two_costs([threshold, 1.0]), rng=np.random.default_rng(0))
        assert (ascent.safe_start(simulator) is not None) is possible
        if possible:
            assert ascent.require_possible(simulator, policy).floors.tolist() == [0.25, 0.0]
        else:
            with pytest.raises(StartError, match=r"constraint 0 has the threshold 0\.24, .* costs at least 0\.25"):
                ascent.require_possible(simulator, policy)


def test_draws_that_have_no_feasible_policy_yet_are_followed_by_more(monkeypatch):
    found, asked = iter([None, None, ("table",)]), []
    game = SimpleNamespace(with_thresholds=lambda _: None, at=lambda _: SimpleNamespace(induced_cmdp=lambda _: None))
    monkeypatch.setattr(ascent, "model_of", lambda *_, **__: SimpleNamespace(game=game))
    monkeypatch.setattr(ascent, "feasible_start", lambda _: SimpleNamespace(policy=next(found)))
    monkeypatch.setattr(ascent, "InducedProblem", lambda *_, purpose: asked.append(purpose))
    episodes = []

    class Seen:
        """A candidate of which nothing is found out before it is given up, and its share of δ."""

        def __init__(self, *_, delta):
            asked.append(delta)
            self.episodes, self.floors, self.ceilings = 0, np.array([9.0, 1.0]), np.array([9.0, 1.25])

        def grow(self):
            episodes.append(self.episodes)
            self.episodes += ascent.START_EPISODES * 512

    monkeypatch.setattr(ascent, "Measurement", Seen)
    known = SimpleNamespace(limits=np.array([1.0]))
    simulator = SimpleNamespace(known=known, draw_all=lambda *, count, purpose: asked.append((count, purpose)) or "x")
    with pytest.raises(StartError, match="1,024 draws of every entry prove none"):
        ascent.learned_start(simulator, delta=0.12, max_count=1024)
    assert asked == [(64, "start"), (192, "start"), (768, "start"), "start", pytest.approx(0.01)]
    # Played as long as there are no more than START_EPISODES for each of 1,024 draws.
    assert len(episodes) == 3


def test_an_answer_says_what_is_known_of_the_costs_where_it_was_given():
    seen = Present(0.0, 1.0, np.array([0.25]), np.array([0.75]))
    place = ascent.Asked(UNIFORM, [seen])
    moved = place.replace(0, [[[1.0, 0.0]]])
    assert place.costs.tolist() == [0.5]
    assert np.isnan(moved.costs).all()
    assert moved.seen[0].cost_floors.tolist() == [-np.inf]
    assert moved.policy[0].tolist() == [[[1.0, 0.0]]]


def test_a_learned_start_is_measured_as_the_problem_of_its_first_agent(monkeypatch):
    asked = []

    def measurement(problem, table, model, *, delta):
        asked.append((problem, table, model))
        return SimpleNamespace(episodes=0, floors=np.zeros(2), ceilings=np.zeros(2), grow=lambda: asked.append("grown"))

    game = SimpleNamespace(
        with_thresholds=lambda limits: limits, at=lambda _: SimpleNamespace(induced_cmdp=lambda agent: f"cmdp {agent}")
    )
    monkeypatch.setattr(ascent, "model_of", lambda *_, delta, interval: SimpleNamespace(game=game))
    monkeypatch.setattr(ascent, "feasible_start", lambda _: SimpleNamespace(policy=("first", "second")))
    monkeypatch.setattr(ascent, "InducedProblem", lambda simulator, agent, policy, *, purpose: (agent, policy, purpose))
    monkeypatch.setattr(ascent, "Measurement", measurement)
    known = SimpleNamespace(limits=np.array([1.0]))
    simulator = SimpleNamespace(known=known, draw_all=lambda *, count, purpose: count)
    assert ascent.learned_start(simulator, delta=0.1) == ("first", "second")
    assert asked == [((0, ("first", "second"), "start"), "first", "cmdp 0"), "grown"]


def test_a_gain_of_exactly_a_quarter_of_epsilon_decides_nothing():
    run = asking(epsilon=1.0)
    assert not run._decides(response(floor=2.0, present=(0.0, 1.75)))
    assert run._decides(response(floor=2.0, present=(0.0, 1.7499)))
    assert run._decides(response(ceiling=2.5, present=(1.5, 9.0)))
