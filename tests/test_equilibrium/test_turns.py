"""The loop from its first question to its ending, on games that are lists of numbers; and what answers are made of."""

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import cmpg
from cmpg.cmdp.evaluation import Evaluation
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.response import BestResponse
from cmpg.equilibrium import ascent, loop
from cmpg.equilibrium.certificate import certify
from cmpg.equilibrium.loop import (
    Answer,
    Ending,
    GreatestGain,
    LoopLimit,
    LoopState,
    Polish,
    Rules,
    _Turns,
    take_turns,
)
from cmpg.equilibrium.result import Status
from cmpg.errors import InfeasibleError, OutOfTimeError, SolverError
from cmpg.games.joint.game import JointGame
from cmpg.policy import JointPolicy
from cmpg.scenarios import counter_example

# --- The loop ---------------------------------------------------------------------------------------------------------


class Levels:
    """A place: every agent stands on a level, and wants to be on its own highest one."""

    def __init__(self, levels):
        self.levels = tuple(levels)
        self.costs = [sum(levels)]

    @property
    def policy(self):
        return self

    def __len__(self):
        return len(self.levels)

    def fingerprint(self):
        return bytes(self.levels)

    def replace(self, agent, table):
        return Levels((*self.levels[:agent], table, *self.levels[agent + 1 :]))


def climbing(top, *, by=1, gain=1.0):
    """Answers that go up by one level, and gain as much as is told for each."""

    def answer(position, agent, rng):
        level = position.levels[agent]
        if level >= top[agent]:
            return Answer(level, 0.0, "there")
        return Answer(level + by, gain, "on the way")

    return answer


def test_agents_climb_in_turn_until_nobody_gains():
    told, moved = [], []
    ending = take_turns(
        Levels([0, 0]),
        climbing([2, 1], gain=0.5),
        Rules(enough=0.25),
        on_progress=told.append,
        on_move=lambda place: moved.append(place.levels),
    )
    assert (ending.status, ending.message, ending.position.levels) == (Status.CERTIFIED, "nobody gains enough.", (2, 1))
    assert moved == [(1, 0), (1, 1), (2, 1)]
    assert (ending.moves, [step.mover for step in ending.trace]) == (3, [0, 1, 0, None])
    assert [step.potential for step in ending.trace] == [0.0, 0.5, 1.0, 1.5]
    assert [step.iteration for step in ending.trace] == [1, 2, 3, 4]
    assert [step.costs.tolist() for step in ending.trace] == [[0.0], [1.0], [2.0], [3.0]]
    assert told == list(ending.trace)
    assert {agent: answer.detail for agent, answer in ending.answers.items()} == {0: "on the way", 1: "there"}
    silent = take_turns(Levels([0]), climbing([1]), Rules(), traced=False)
    assert (silent.trace, silent.moves) == ((), 1)


def test_a_rest_elsewhere_asks_everybody_again():
    asked, rests = [], []

    def answer(position, agent, rng):
        asked.append((position.levels, agent))
        return Answer(None, 0.0)

    def at_rest(position, answers):
        rests.append((position.levels, sorted(answers)))
        return position if position.levels == (5, 5) else Levels([5, 5])

    ending = take_turns(Levels([0, 0]), answer, Rules(schedule=GreatestGain()), at_rest=at_rest)
    assert ending.status is Status.CERTIFIED
    assert rests == [((0, 0), [0, 1]), ((5, 5), [0, 1])]
    assert asked == [((0, 0), 0), ((0, 0), 1), ((5, 5), 0), ((5, 5), 1)]
    assert (ending.moves, len(ending.trace)) == (0, 2)


def test_gains_beyond_the_potential_and_policies_seen_before_refute_it():
    for most, status, moves in (
        (2.0, Status.CERTIFIED, 2),
        (1.9, Status.NOT_POTENTIAL, 2),
        (0.9, Status.NOT_POTENTIAL, 1),
    ):
        ending = take_turns(Levels([0, 0]), climbing([1, 1]), Rules(most_gain=most))
        assert (ending.status, ending.moves) == (status, moves)
    assert ending.message == "1 moves gained 1 in all, more than the 0.9 that a potential allows."

    def circling(position, agent, rng):
        return Answer((position.levels[agent] + 1) % 3, 1.0)

    back = take_turns(Levels([0, 0]), circling, Rules(no_return=True, max_moves=9))
    assert (back.status, back.moves, back.position.levels) == (Status.NOT_POTENTIAL, 6, (0, 0))
    assert back.message == "move 6 leads back to a policy seen before, though every move gained."
    allowed = take_turns(Levels([0, 0]), circling, Rules(max_moves=9))
    assert (allowed.status, allowed.moves) == (Status.LIMIT, 9)
    assert allowed.message == "the limit of 9 moves was reached. Allow more, or a larger epsilon."


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (KeyboardInterrupt(), Status.INTERRUPTED, "interrupted by the user."),
        (LoopLimit("spent."), Status.LIMIT, "spent."),
        (OutOfTimeError("late."), Status.LIMIT, "late."),
    ],
)
def test_whatever_ends_the_loop_keeps_where_it_stands(error, status, message):
    climb = climbing([3, 3])

    def answer(position, agent, rng):
        if sum(position.levels) == 2:
            raise error
        return climb(position, agent, rng)

    ending = take_turns(Levels([0, 0]), answer, Rules())
    assert (ending.status, ending.message, ending.moves, ending.position.levels) == (status, message, 2, (1, 1))


def test_every_answer_has_a_stream_of_its_own():
    drawn = {}

    def answer(position, agent, rng):
        drawn[agent] = rng.random()
        return Answer(None, 0.0)

    take_turns(Levels([0, 0, 0]), answer, Rules(schedule=GreatestGain()), rng=np.random.default_rng(3))
    expected = [each.random() for each in np.random.default_rng(3).spawn(3)]
    assert [drawn[agent] for agent in range(3)] == expected
    take_turns(Levels([0, 0, 0]), lambda *given: Answer(None, float(given[2] is not None)), Rules())


class Memory:
    """Keeps all that it is told, and goes on from what it is given."""

    def __init__(self, start=None):
        self.start, self.kept = start, []

    def recalled(self):
        return self.start

    def keep(self, standing):
        self.kept.append(standing)


def test_a_loop_that_is_remembered_goes_on_as_it_would_have(monkeypatch):
    clock, now = [0.0], time.monotonic
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: now() + clock[0]))
    memory = Memory()

    def on_move(_):
        clock[0] += 100.0

    rules = Rules(no_return=True, max_answers=20)
    whole = take_turns(Levels([0, 0]), climbing([2, 2], gain=0.5), rules, memory=memory, on_move=on_move)
    assert [each.position.levels for each in memory.kept] == [(1, 0), (1, 1), (2, 1), (2, 2)]
    standing = memory.kept[1]
    assert standing.before.levels == (1, 0)
    assert standing.counts == (2, 2, 2, 1)
    assert (standing.total, len(standing.trace)) == (1.0, 2)
    assert standing.seconds == pytest.approx(200.0, abs=20.0)
    assert standing.seen == (b"\0\0", b"\1\0", b"\1\1")
    clock[0] = 5000.0
    again = take_turns(Levels([9, 9]), climbing([2, 2], gain=0.5), rules, memory=Memory(standing), on_move=on_move)
    assert again.position.levels == whole.position.levels
    assert again.moves == whole.moves == 4
    for first, second in zip(whole.trace, again.trace, strict=True):
        for name in ("iteration", "mover", "gain", "potential"):
            assert getattr(first, name) == getattr(second, name)
        assert second.seconds == pytest.approx(first.seconds, abs=20.0)
    assert [each.seconds for each in whole.trace] == pytest.approx([0, 100, 200, 300, 400], abs=20.0)
    back = LoopState(standing.before, standing.position, {}, (*standing.seen, b"\2\1"), (), (0, 0, 0, 1), 0.0, 0.0)
    refuted = take_turns(Levels([9, 9]), climbing([2, 2]), rules, memory=Memory(back))
    assert (refuted.status, refuted.moves) == (Status.NOT_POTENTIAL, 1)


def test_a_move_is_to_where_measuring_the_gain_has_led_already():
    run = _Turns(None, Rules(), lambda *_: False, 1, None, lambda _: None, True, num_agents=2)
    made = Levels([7, 7])
    run.answers = {0: Answer(1, 0.5, "detail", made), 1: Answer(2, 0.25, "other")}
    assert run.move(Levels([0, 0]), 0) is made
    assert (list(run.answers), run.answers[0].gain, run.answers[0].detail) == ([0], 0.0, "detail")
    run.answers[1] = Answer(2, 0.25, "other")
    assert run.move(made, 1).levels == (7, 2)
    assert (run.total, run.moves, run.last) == (0.75, 2, 1)


# --- Rows that nobody visits ------------------------------------------------------------------------------------------


def corridor(start=0):
    """Two agents; where both play 1 the second state is reached, which is where the last step may be."""
    kernel = np.zeros((2, 2, 2, 2, 2))
    kernel[..., 0] = 1.0
    kernel[0, 0, 1, 1] = [0.0, 1.0]
    return JointGame(
        transition=kernel,
        rewards=np.zeros((2, 2, 2, 2, 2)),
        costs=np.zeros((0, 2, 2, 2, 2)),
        thresholds=[],
        initial=np.eye(2)[start],
        horizon=2,
    )


def test_only_rows_that_nobody_visits_are_refilled_and_once():
    game = corridor()
    stay = np.eye(2)[[[0, 0], [0, 0]]]
    position, asked = game.at(JointPolicy((stay, stay))), []

    def greedy(place, agent, multipliers, rng):
        asked.append((agent, multipliers, rng, place.policy[0][1, 1, 1]))
        return np.eye(2)[[[1, 1], [1, 1]]]

    answers = {agent: Answer(None, 0.0, SimpleNamespace(multipliers=f"of {agent}")) for agent in range(2)}
    polish = Polish(greedy, "stream")
    polished = polish(position, answers)
    # The second agent is asked where the first one has been polished already.
    assert asked == [(0, "of 0", "stream", 0.0), (1, "of 1", "stream", 1.0)]
    for agent in range(2):
        assert polished.policy[agent].argmax(axis=-1).tolist() == [[0, 1], [0, 1]]
    assert polish.polished == polished.policy.fingerprint()
    assert polish(polished, answers) is polished
    assert len(asked) == 2
    go = np.full((2, 2, 2), 0.5)
    everywhere = replace(game, initial=[0.5, 0.5]).at(JointPolicy((go, go)))
    assert polish(everywhere, answers) is everywhere
    assert len(asked) == 2


# --- Answers ----------------------------------------------------------------------------------------------------------


class Stand:
    """A position of which each part is given."""

    def __init__(self, *, slacks=(1.0,), rounding=(1e-3,), costs=(0.5,), present=1.0, cost=0.5, cmdp=None):
        self.slacks, self.cost_rounding, self.costs = (np.array(each) for each in (slacks, rounding, costs))
        self.policy = ("mine",)
        self.seen, self.cmdp = Evaluation(present, np.array([cost])), cmdp or Faced()

    def present(self, agent):
        return self.seen

    def induced_cmdp(self, agent):
        return self.cmdp


class Faced:
    """A CMDP of which only what answers look at is there."""

    num_constraints, thresholds, reward_range = 1, np.array([1.0]), 3.0


@pytest.fixture
def measured(monkeypatch):
    """Let responses be worth 2, cost ½, and have no noise, unless a test says otherwise."""
    told = SimpleNamespace(value=2.0, cost=0.5, noise=0.0, bound=9.0, margin=2.0**-20)
    monkeypatch.setattr(ascent, "evaluate", lambda *_: Evaluation(told.value, np.array([told.cost])))
    monkeypatch.setattr(ascent, "gain_rounding", lambda *_: told.noise)
    monkeypatch.setattr(ascent, "cost_margins", lambda _: np.array([told.margin]))
    monkeypatch.setattr(ascent, "dual_bound", lambda *_: told.bound)
    return told


def solving(cmdp, *, rng=None):
    return BestResponse("better", 2.0, np.array([0.5]), np.array([0.75]), 2.0, 3)


def test_answers_measure_the_gain_and_keep_the_multipliers(measured):
    answers = ascent._Answers(solving, 0.5, None)
    found = answers(Stand(), 0, None)
    assert (found.table, found.gain, found.detail.multipliers.tolist()) == ("better", 1.0, [0.75])
    assert answers.note() == {"last": {0: found.detail.multipliers}, "failed": "", "failures": 0, "moved_back": False}
    # What cannot be told from rounding counts as ε/2 at most.
    measured.noise = 1.0
    assert ascent._Answers(solving, 0.5, None)(Stand(), 0, None).gain == 0.25
    measured.noise = 0.99
    assert ascent._Answers(solving, 0.5, None)(Stand(), 0, None).gain == 1.0
    measured.noise, measured.value = 9.0, 1.125
    assert ascent._Answers(solving, 0.5, None)(Stand(), 0, None).gain == 0.125


@pytest.mark.parametrize(("bound", "table", "gain"), [(1.25, "mine", 0.25), (1.26, "better", 1.0), (0.5, "mine", 0.0)])
def test_last_multipliers_prove_a_gain_of_at_most_half_of_epsilon(measured, bound, table, gain):
    measured.bound = bound
    found = ascent._Answers(solving, 0.5, np.array([[0.5]]))(Stand(), 0, None)
    assert (found.table, found.gain) == (table, gain)
    if table == "mine":
        assert (found.detail.value, found.detail.bound, found.detail.work) == (1.0, bound, 1)


def test_multipliers_that_are_infinite_are_judged_by_what_is_possible(measured, monkeypatch):
    asked = []
    hard = SimpleNamespace(bound_at=lambda *given: asked.append(given[1:]) or 1.125)
    monkeypatch.setattr(ascent, "_hard_budgets", lambda: hard)
    found = ascent._Answers(solving, 0.5, np.array([[np.inf]]))(Stand(), 0, None)
    assert (found.table, found.gain) == ("mine", 0.125)
    assert asked == [(0, np.array([np.inf]))]


@pytest.mark.parametrize(
    ("cost", "present", "refused"),
    [(1 + 2.0**-19, 0.5, False), (1 + 2.0**-18, 0.5, True), (1.5 + 2.0**-19, 1.5, False), (1.5 + 2.0**-18, 1.5, True)],
)
def test_responses_may_cost_what_is_allowed_or_what_is_spent_already(measured, cost, present, refused):
    measured.cost = cost
    answers = ascent._Answers(solving, 0.5, None)
    found = answers(Stand(cost=present), 0, None)
    assert (found.table == "mine") is refused
    assert answers.failures == int(refused)
    assert (0 in answers._last) is not refused


def test_who_overspends_moves_back_whatever_it_gains(measured):
    for slack, moved in ((-8e-3, False), (-8.1e-3, True)):
        answers = ascent._Answers(solving, 0.5, None)
        found = answers(Stand(slacks=(slack,), cost=1.5), 0, None)
        assert answers.moved_back is moved
        assert found.gain == (3.5 if moved else 1.0)
    content = ascent._Answers(solving, 0.5, None)
    content(Stand(slacks=(-1.0,), cost=1.0), 0, None)
    assert not content.moved_back

    def fails(cmdp, *, rng=None):
        raise InfeasibleError("no way.")

    stuck = ascent._Answers(fails, 0.5, None)
    kept = stuck(Stand(slacks=(-1.0,), cost=1.5), 0, None)
    assert (kept.table, kept.gain, stuck.moved_back, stuck.failures) == ("mine", 0.0, False, 1)
    assert (kept.detail.value, kept.detail.bound, kept.detail.work) == (1.0, np.inf, 0)


def test_where_a_budget_may_be_spent_the_best_response_knows(measured, monkeypatch):
    asked = []
    monkeypatch.setattr(ascent, "best_response", lambda *given, epsilon, rng: asked.append(epsilon) or solving(None))
    for slack, times in ((8e-3, 1), (8.1e-3, 1), (-8e-3, 2), (1.0, 2)):
        ascent._Answers(solving, 0.5, None)(Stand(slacks=(slack,)), 0, None)
        assert len(asked) == times
    assert asked == [0.5, 0.5]


def test_what_is_noted_of_the_agents_is_known_again():
    answers, other = ascent._Answers(solving, 0.5, None), ascent._Answers(solving, 0.5, None)
    answers._last, answers.failed, answers.failures, answers.moved_back = {3: np.ones(1)}, "so.", 2, True
    other.restore(answers.note())
    assert other.note() == answers.note()
    other.restore({"last": {}, "failed": "", "failures": 0})
    assert not other.moved_back


def test_multipliers_of_who_was_not_asked_are_the_given_ones_or_a_best_response_s(monkeypatch):
    monkeypatch.setattr(ascent, "best_response", lambda *_, **__: solving(None))
    given = ascent._Answers(solving, 0.5, np.array([[0.25], [0.5]]))
    assert given.multipliers(Stand(), 1).tolist() == [0.5]
    assert given.multipliers(Stand(), 2).tolist() == [0.75]
    alone = ascent._Answers(solving, 0.5, None)
    alone._last[0] = np.array([4.0])
    assert alone.multipliers(Stand(), 0).tolist() == [0.75]

    def fails(*_, **__):
        raise SolverError("no luck.")

    monkeypatch.setattr(ascent, "best_response", fails)
    assert alone.multipliers(Stand(), 0).tolist() == [4.0]
    assert alone.multipliers(Stand(), 1).tolist() == [0.0]


def test_a_guess_is_for_a_single_threshold_of_which_next_to_nothing_is_left():
    guided = ascent._Answers(Exact(), 1e-3, np.array([[2.0]]))
    last = np.array([2.0])
    for left, near in ((9e-10, 2.0), (-9e-10, 2.0), (1e-9, None), (-1e-9, None)):
        assert guided._solver_for(last, np.array([left])) == (Exact() if near is None else Exact(near=near))
    other = ascent._Answers(solving, 1e-3, np.array([[2.0]]))
    assert other._solver_for(last, np.array([0.0])) is solving


def test_infinite_multipliers_ask_for_what_is_possible_and_others_for_what_is_best(monkeypatch):
    hard = SimpleNamespace(greedy_at=lambda position, agent, multipliers, *, rng: [agent, rng])
    monkeypatch.setattr(ascent, "_hard_budgets", lambda: hard)
    monkeypatch.setattr(ascent, "greedy_policy", lambda cmdp, multipliers, *, rng: [multipliers[0], rng])
    assert ascent._greedy(Stand(), 3, np.array([0.0, np.inf]), "stream").tolist() == ["3", "stream"]
    assert ascent._greedy(Stand(), 3, np.array([0.5]), "stream") == [0.5, "stream"]


def test_a_start_may_exceed_a_threshold_by_what_rounding_hides():
    ascent._require_feasible(Stand(slacks=(-1e-3, 1.0), rounding=(1e-3, 1e-4)))
    with pytest.raises(InfeasibleError, match=r"0\.0011 above a threshold"):
        ascent._require_feasible(Stand(slacks=(-1.1e-3, 1.0), rounding=(1e-3, 1e-4)))
    ascent._require_feasible(Stand(slacks=(), rounding=(), costs=()))


# --- Best responses where budgets are spent ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slack", "cost", "hidden", "way"),
    [
        (8e-3, 0.0, 0.0, "possible"),
        (-8e-3, 0.0, 0.0, "possible"),
        (8.1e-3, 0.0, 9.0, "solver"),
        (8e-3, 0.5, 0.0235, "solver"),  # what its price hides, 2 · 0.75 · 1e-3, makes it ε/4
        (8e-3, 0.5, 0.0236, "possible"),
    ],
)
def test_what_is_possible_is_asked_where_a_budget_is_unspent_or_rounding_hides_too_much(
    monkeypatch, slack, cost, hidden, way
):
    answer = SimpleNamespace(respond=lambda solver, rng=None: "possible")
    monkeypatch.setattr(ascent, "_hard_budgets", lambda: SimpleNamespace(within=lambda *_: answer))
    monkeypatch.setattr(ascent, "gain_rounding", lambda *_: hidden)
    position = Stand(slacks=(slack,), costs=(cost,))
    found = ascent.best_response(position, 0, lambda cmdp, *, rng: solving(cmdp), epsilon=0.1)
    assert (found == "possible") is (way == "possible")
    monkeypatch.setattr(ascent, "_hard_budgets", lambda: SimpleNamespace(within=lambda *_: None))
    assert ascent.best_response(position, 0, lambda cmdp, *, rng: solving(cmdp), epsilon=0.1).policy == "better"


# --- Endings ----------------------------------------------------------------------------------------------------------


def concluded(status, *, moved_back=False, game=None, answers=None, deadline=np.inf, multipliers=0.5):
    game = game or counter_example()
    made = ascent._Answers(Exact(), 1e-3, None)
    made.moved_back, made.failures = moved_back, 4
    known = {0: Answer(None, 0.0, SimpleNamespace(multipliers=np.array([multipliers])))} if answers is None else answers
    ending = Ending(status, "the loop's words.", game.at(game.uniform_policy()), known, ("step",), 5)
    return ascent._concluded(game, ending, made, epsilon=1e-3, deadline=deadline)


def test_an_ending_is_judged_with_everybody_s_multipliers():
    found = concluded(Status.CERTIFIED)
    assert found.multipliers[0].tolist() == [0.5]
    game = counter_example()
    other = ascent.best_response(game.at(game.uniform_policy()), 1, Exact()).multipliers
    assert found.multipliers[1].tolist() == other.tolist()
    assert (found.moves, found.refused, found.trace, found.epsilon) == (5, 4, ("step",), 1e-3)
    assert not found.interrupted
    assert concluded(Status.INTERRUPTED).interrupted
    assert concluded(Status.CERTIFIED, multipliers=np.nan).multipliers[0].tolist() == [0.0]
    assert concluded(Status.CERTIFIED, answers={}, deadline=0.0).multipliers.tolist() == [[0.0], [0.0]]
    expected = certify(game, game.uniform_policy(), found.multipliers)
    assert found.certificate.epsilon == expected.epsilon


def test_circles_refute_a_potential_unless_somebody_moved_back_or_is_free():
    assert concluded(Status.NOT_POTENTIAL).status is Status.NOT_POTENTIAL
    back = concluded(Status.NOT_POTENTIAL, moved_back=True)
    assert (back.status, back.message) == (Status.LIMIT, ascent.OUT_BY_ROUNDING)
    bound = cmpg.games.bind(counter_example(), [[1], [0]])
    free = concluded(Status.NOT_POTENTIAL, game=bound)
    assert (free.status, free.message) == (Status.LIMIT, ascent.IN_A_CIRCLE)
    assert free.multipliers[1].tolist() == [0.0]


def test_a_result_has_its_settings_its_start_and_the_theorem_s_bound():
    game = counter_example()
    start = game.uniform_policy()
    found = ascent.coordinate_ascent(game, start, epsilon=0.5)
    assert found.settings == {
        "solver": "Exact()",
        "schedule": "GreatestGain()",
        "workers": 1,
        "polish": True,
        "random_ties": False,
        "kernels": found.settings["kernels"],
    }
    assert found.max_iterations == ascent.theorem_1_bound(game, 0.5)
    assert found.start is start
    assert ascent.coordinate_ascent(game, start, rng=np.random.default_rng(0)).settings["random_ties"]


def test_interruptions_while_it_is_judged_are_told_and_the_judgement_is_finished(monkeypatch):
    game, calls = counter_example(), []
    judged = ascent._concluded

    def interrupted(*given, **named):
        calls.append((given[1].status, named["deadline"]))
        if len(calls) == 1:
            raise KeyboardInterrupt
        return judged(*given, **named)

    monkeypatch.setattr(ascent, "_concluded", interrupted)
    found = ascent.coordinate_ascent(game, game.uniform_policy(), epsilon=0.5)
    assert calls == [(Status.CERTIFIED, np.inf), (Status.INTERRUPTED, 0.0)]
    assert found.certificate.epsilon <= 0.5
    monkeypatch.setattr(ascent, "take_turns", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt()))
    early = ascent.coordinate_ascent(game, game.uniform_policy(), epsilon=1e-3)
    assert (early.status, early.interrupted) == (Status.INTERRUPTED, True)
    monkeypatch.setattr(ascent, "take_turns", lambda *_, **__: (_ for _ in ()).throw(OutOfTimeError("late")))
    late = ascent.coordinate_ascent(game, game.uniform_policy(), epsilon=1e-3)
    assert (late.status, late.incumbent) == (Status.LIMIT, None)


def test_a_solver_is_chosen_by_what_is_left_below_the_thresholds(measured):
    asked = []
    answers = ascent._Answers(solving, 0.5, np.array([[0.5]]))
    answers._solver_for = lambda last, slacks: asked.append((last.tolist(), slacks.tolist())) or solving
    answers(Stand(cost=0.25), 0, None)
    assert asked == [([0.5], [0.75])]


def test_a_bound_below_the_value_proves_a_gain_of_nothing():
    judged = SimpleNamespace(bounds=np.array([1.0]), values=np.array([1.5]))
    position = SimpleNamespace(
        judgements=lambda multipliers, agents: judged,
        neighbours=lambda agent: range(agent, agent + 1),
    )
    position.policy = type("Stored", (), {"stored": ["mine"], "__len__": lambda _: 1})()
    found = ascent._Answers(solving, 0.5, np.array([[0.5]]))._proved(position, 0)
    assert (found.gain, found.table, found.detail.value, found.detail.bound) == (0.0, "mine", 1.5, 1.0)
