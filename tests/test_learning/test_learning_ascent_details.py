"""Agents who are asked in turn, in detail: shares of δ, what is believed and moved to, starts, and endings."""

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
