"""Safe exploration in detail: bonuses, batches, margins, when to search again, and what too little slack is."""

from types import SimpleNamespace

import numpy as np
import pytest

from cmpg.cmdp.box import BoxCMDP
from cmpg.cmdp.model import CMDP
from cmpg.errors import CMPGError, InfeasibleError, SimulatorError
from cmpg.learning import safe
from cmpg.learning.confidence import Estimate, mixture_interval
from cmpg.learning.outcome import ResponseStatus
from cmpg.learning.problem import InducedProblem
from cmpg.learning.safe import (
    Baseline,
    Exploration,
    Pace,
    SafeExploration,
    exploration_policy,
    lack_of_slack,
    paper_bonus,
    safe_learner,
    tight_bonus,
)
from cmpg.learning.simulator import GameSimulator
from cmpg.scenarios import counter_example

SHAPE = (3, 2, 2)


def belief():
    """Two constraints, three steps, two states and actions; worst costs and best rewards differ from the empirical."""
    rng = np.random.default_rng(0)
    kernel = rng.dirichlet(np.ones(2), size=SHAPE)
    tables = {"costs": rng.random((2, *SHAPE)), "thresholds": [1.0, 2.0], "initial": [0.5, 0.5], "horizon": 3}
    nominal = CMDP(transition=kernel, reward=rng.random(SHAPE), **tables)
    bounds = np.maximum(kernel - 0.1, 0.0), np.minimum(kernel + 0.2, 1.0)
    better = CMDP(transition=kernel, reward=nominal.reward + 0.5, **tables)
    worst = np.asarray(nominal.costs) + rng.random((2, *SHAPE))
    return Estimate(BoxCMDP(nominal, *bounds), BoxCMDP(better, *bounds), nominal.reward - 0.5, worst)


# --- What is played next ----------------------------------------------------------------------------------------------


def test_the_tight_bonus_is_what_may_still_come_times_the_spread():
    known = belief()
    ranges = np.ptp(known.worst_costs.reshape(2, 3, 4), axis=2)
    to_come = np.stack([ranges[:, 1] + ranges[:, 2], ranges[:, 2], np.zeros(2)], axis=1)
    assert tight_bonus(known) == pytest.approx(to_come[:, :, None, None] * known.box.spread)


def test_the_papers_bonus_is_the_whole_range_times_the_radii():
    known = belief()
    ranges = np.ptp(known.worst_costs.reshape(2, 3, 4), axis=2).sum(axis=1)
    kernel = np.asarray(known.box.nominal.transition)
    radii = np.maximum(known.box.upper - kernel, kernel - known.box.lower).sum(axis=-1)
    assert paper_bonus(known) == pytest.approx(ranges[:, None, None, None] * radii)


def test_costs_are_raised_by_the_bonus_and_rewards_by_its_largest_share_of_the_slack(monkeypatch):
    known, asked = belief(), []

    def optimistic_response(box):
        asked.append(box)
        return SimpleNamespace(policy="the policy", work=7)

    monkeypatch.setattr(safe, "optimistic_response", optimistic_response)
    baseline = Baseline(np.full(SHAPE, 0.5), np.array([0.75, 1.0]))  # slacks ¼ and 1
    raised = np.random.default_rng(1).random((2, *SHAPE)) * [[[[1.0]]], [[[8.0]]]]
    choice = exploration_policy(known, baseline, bonus=lambda _: raised, reward_range=3.0)
    assert (choice.policy, choice.is_baseline, choice.work) == ("the policy", False, 7)
    [box] = asked
    shares = np.maximum(raised[0] / 0.25, raised[1] / 1.0)
    assert box.nominal.costs == pytest.approx(known.worst_costs + raised)
    assert box.nominal.reward == pytest.approx(known.optimistic.nominal.reward + 3.0 * shares)
    assert (box.lower is known.box.lower, box.upper is known.box.upper) == (True, True)


def test_the_baseline_is_played_where_a_slack_is_missing_or_nothing_is_safe(monkeypatch):
    def nothing(_):
        raise InfeasibleError("nothing")

    monkeypatch.setattr(safe, "optimistic_response", nothing)
    table = np.full(SHAPE, 0.5)
    for ceilings, work in (([1.0, 1.0], 0), ([0.5, 2.0], 0), ([np.inf, 1.0], 0), ([0.5, 1.0], 2)):
        choice = exploration_policy(belief(), Baseline(table, np.array(ceilings)), reward_range=1.0)
        assert (choice.policy is table, choice.is_baseline, choice.work) == (True, True, work)


# --- Batches ----------------------------------------------------------------------------------------------------------


def test_a_pace_that_does_not_advance_is_refused():
    Pace(growth=1e-9, first=1, most=1)
    for wrong in ({"growth": 0.0}, {"first": 0}, {"most": 0}):
        with pytest.raises(CMPGError, match="does not advance"):
            Pace(**wrong)


def bare(**attributes):
    """An exploration of which nothing is there but what is given."""
    run = object.__new__(Exploration)
    for name, value in {"work": 1, "belief": None, "baseline": None, "bonus": None, **attributes}.items():
        setattr(run, name, value)
    return run


@pytest.mark.parametrize(
    ("episodes", "steps_left", "pace", "batch"),
    [
        (0, 10**9, Pace(), 8),
        (1000, 10**9, Pace(), 20),
        (1001, 10**9, Pace(), 21),
        (1000, 10**9, Pace(most=1010), 10),
        (1000, 34, Pace(), 11),
        (1000, 3, Pace(), 1),
        (1000, 2, Pace(), None),
        (1000, 10**9, Pace(most=1000), None),
        (1000, 10**9, Pace(most=1001), 1),
    ],
)
def test_batches_grow_with_what_was_played_and_end_with_the_budget(monkeypatch, episodes, steps_left, pace, batch):
    played = []
    choice = safe.Choice("policy", is_baseline=False, work=5)
    monkeypatch.setattr(safe, "exploration_policy", lambda *_, **__: choice)
    known = SimpleNamespace(horizon=3, reward_ranges=np.array([4.0]))
    problem = SimpleNamespace(simulator=SimpleNamespace(ledger=SimpleNamespace(left=steps_left)), known=known, agent=0)
    run = bare(problem=problem, episodes=episodes)
    run.play = lambda policy, count: played.append((policy, count))
    assert run.advance(pace) is (batch is not None)
    assert played == ([] if batch is None else [("policy", batch)])
    assert run.work == (1 if batch is None else 6)


# --- When to search ---------------------------------------------------------------------------------------------------


class Remembering(SimpleNamespace):
    """What is proved, with a gap that is given."""

    def consider(self, candidate):
        self.considered.append(candidate)


@pytest.mark.parametrize(
    ("episodes", "next_search", "gap", "bound", "searches"),
    [
        (99, 100, 5.0, 0.0, False),  # too early, too far, and no hope
        (100, 100, 5.0, 0.0, True),
        (99, 100, 1.0, 0.0, True),  # within reach
        (99, 100, 5.0, 9.0, True),  # the ceiling is 10, so that something could be within 1 of it
        (99, 100, 5.0, 8.9, False),
        (99, 100, 5.0, None, False),  # nothing is feasible as far as is known
    ],
)
def test_the_search_waits_for_twice_as_many_episodes_unless_it_could_bring_the_bounds_close(
    monkeypatch, episodes, next_search, gap, bound, searches
):
    proved = Remembering(considered=[], incumbent=None, gap=gap, ceiling=10.0, thresholds=np.array([1.0, 2.0]))

    def exact(_):
        if bound is None:
            raise InfeasibleError("nothing")
        return SimpleNamespace(bound=bound)

    monkeypatch.setattr(safe, "Exact", lambda: exact)
    monkeypatch.setattr(safe, "tightened_candidate", lambda _: SimpleNamespace(work=11))
    monkeypatch.setattr(safe, "bounded", lambda *_, **__: _Bounded())
    monkeypatch.setattr(safe, "replace", lambda each, **_: each)
    monkeypatch.setattr(safe, "_with_thresholds", lambda known, _: known)
    problem = SimpleNamespace(nash_epsilon=None)
    baseline = SimpleNamespace(policy=None, ceilings=None)
    run = bare(proved=proved, problem=problem, baseline=baseline, belief=belief(), episodes=episodes)
    run._next_search = next_search
    run.propose(close=1.0)
    asked_ahead = int(episodes < next_search and gap > 1.0)
    assert run._next_search == (2 * episodes + 1 if searches else next_search)
    assert len(proved.considered) == (2 if searches else 1)
    assert run.work == 1 + asked_ahead + (11 if searches else 0)


class _Bounded:
    """A policy whose bounds do not matter."""


@pytest.mark.parametrize(("nash", "close"), [(None, 1.3 * 0.5), (2.0, 1.3 * 2.0)])
def test_bounds_are_close_within_a_third_more_than_is_asked_for(nash, close):
    asked = []
    run = SimpleNamespace(
        bound=lambda: None,
        proof_of_infeasibility="",
        problem=SimpleNamespace(nash_epsilon=nash),
        propose=lambda *, close: asked.append(close),
        conclude=lambda status, **rest: (status, rest["message"], rest["epsilon"], rest["delta"]),
        delta=0.1,
        proved=SimpleNamespace(gap=0.5, stays=lambda _: False, leaves=lambda _: False),
    )
    assert SafeExploration()._judge(run, 0.5) == (ResponseStatus.CERTIFIED, "", 0.5, 0.1)
    assert asked == [pytest.approx(close)]
    run.proof_of_infeasibility = "proof"
    assert SafeExploration()._judge(run, 0.5) == (ResponseStatus.INFEASIBLE, "proof", 0.5, 0.1)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("gap", "stays", "leaves", "nash", "status"),
    [
        (0.5, False, False, None, "CERTIFIED"),
        (0.6, True, False, 1.0, "CERTIFIED"),
        (1.0, False, True, 1.0, "CERTIFIED"),
        (1.1, False, True, 1.0, "BETTER"),
        (1.1, False, False, 1.0, "LIMIT"),
        (0.6, False, True, None, "BETTER"),
    ],
)
def test_a_response_is_certified_or_better_or_needs_more(monkeypatch, gap, stays, leaves, nash, status):
    monkeypatch.setattr(safe, "lack_of_slack", lambda *_: "")
    proved = SimpleNamespace(gap=gap, stays=lambda _: stays, leaves=lambda _: leaves, incumbent=None)
    run = SimpleNamespace(proved=proved, problem=SimpleNamespace(nash_epsilon=nash), episodes=1200)
    found, message = SafeExploration()._status(run, 0.5)
    assert found is ResponseStatus[status]
    if status == "LIMIT":
        assert message == "after 1,200 episodes no policy is proved to meet the constraints yet."
        proved.incumbent = "something"
        assert SafeExploration()._status(run, 0.5)[1] == "after 1,200 episodes the bounds are 1.1 apart, not 0.5."
        monkeypatch.setattr(safe, "lack_of_slack", lambda *_: "why")
        assert SafeExploration()._status(run, 0.5) == (ResponseStatus.NO_SLACK, "cannot be certified: why")


# --- Margins and slack ------------------------------------------------------------------------------------------------


def game(thresholds=(2.0, 4.0), reward_ranges=(8.0, 4.0), spans=((1.0, 2.0), (3.0, 4.0))):
    return SimpleNamespace(
        thresholds=np.array(thresholds),
        limits=np.array(thresholds),
        reward_ranges=np.array(reward_ranges),
        cost_spans=np.array(spans) if len(thresholds) else np.zeros((0, 1)),
        num_constraints=len(thresholds),
    )


def test_the_margin_is_a_sixteenth_of_epsilon_at_the_rate_of_exchange():
    assert safe_learner(game(), epsilon=0.5).margin == 2.0 * (0.5 / 8.0) / 16
    assert safe_learner(game(), epsilon=100.0).margin == 2.0 / 16
    # A budget of nothing, or less, is measured by what can be spent.
    assert safe_learner(game((0.0, 4.0)), epsilon=0.5).margin == 3.0 * (0.5 / 8.0) / 16
    assert safe_learner(game((-1.0, 9.0)), epsilon=0.5).margin == 3.0 * (0.5 / 8.0) / 16
    assert safe_learner(game((9.0, 0.5)), epsilon=0.5).margin == 0.5 * (0.5 / 8.0) / 16
    assert safe_learner(game((), spans=()), epsilon=0.5).margin == 0.0
    assert safe_learner(game(reward_ranges=(0.0, 0.0)), epsilon=0.5).margin == 0.0
    assert safe_learner(game(), epsilon=0.5, margin=0.25).margin == 0.25


def test_a_quarter_of_the_margin_is_the_least_slack():
    assert safe_learner(game(), epsilon=0.5, margin=0.014).least_slack == pytest.approx(0.014 / (4 * 7.0))
    assert safe_learner(game(), epsilon=0.5, margin=1.0).least_slack == 1e-3
    assert safe_learner(game(), epsilon=0.5, margin=0.0).least_slack == 1e-3
    assert safe_learner(game(spans=((0.0,), (0.0,))), epsilon=0.5, margin=0.1).least_slack == 1e-3
    assert safe_learner(game((), spans=()), epsilon=0.5, margin=0.1).least_slack == 1e-3
    assert safe_learner(game(), epsilon=0.5, pace=Pace(first=3)).pace == Pace(first=3)


def lack(*, floors=(0.0, 0.0), ceilings=(1.0, 1.0), given=(np.inf, np.inf), least=0.1):
    """What is said of thresholds 2 and 4, whose costs range over 3 and 7."""
    baseline = SimpleNamespace(ceilings=np.array(ceilings), floors=lambda _: np.array(floors))
    run = SimpleNamespace(
        problem=SimpleNamespace(known=game()), baseline=baseline, belief=None, given_costs=np.array(given)
    )
    return lack_of_slack(run, least)


def test_slack_that_is_left_or_may_be_is_no_reason_to_end():
    assert lack() == ""
    assert lack(ceilings=(9.0, 9.0)) == ""
    assert lack(floors=(1.9, 0.0)) == ""  # proved to cost at most 1
    assert lack(floors=(1.6, 0.0), ceilings=(9.0, 9.0)) == ""
    assert lack(floors=(2.0, 4.0)) == ""
    assert lack(given=(1.9, 3.9)) == ""


def test_a_policy_that_is_not_safe_or_has_no_slack_ends_the_exploration():
    assert "constraint 0 has the threshold 2, but the policy that was called safe costs at least 2.1" in lack(
        floors=(2.1, 0.0)
    )
    assert "constraint 1 has the threshold 4, but" in lack(floors=(0.0, 4.1))
    assert "and the safe policy costs 2: no slack is left" in lack(given=(2.0, 0.0))
    assert "constraint 1 has the threshold 4, and the safe policy costs 5: no slack" in lack(given=(0.0, 5.0))
    assert "costs at least 1.8: too little slack" in lack(floors=(1.8, 0.0), ceilings=(2.0, 0.0))
    assert "constraint 1 has the threshold 4, and the safe policy costs at least 3.4: too little slack" in lack(
        floors=(0.0, 3.4), ceilings=(0.0, np.inf)
    )


# --- Beginnings and faults --------------------------------------------------------------------------------------------


def exploring():
    game = counter_example()
    problem = InducedProblem(GameSimulator(game, rng=np.random.default_rng(0)), 0, game.uniform_policy())
    baseline = Baseline(problem.policy[0], np.array([np.inf]))
    options = {"bonus": tight_bonus, "interval": mixture_interval, "delta": 0.1, "margin": 0.125}
    return Exploration(problem, baseline, **options)


def test_an_exploration_begins_with_nothing_and_searches_at_once():
    run = exploring()
    assert (run.episodes, run.work, run._next_search, run.played) == (0, 0, 0, ())
    assert run.proved.thresholds.tolist() == [0.375]
    assert run.given_costs.tolist() == [np.inf]
    assert run.baseline.ceilings.tolist() == [0.25]  # one step: what it costs is known without a sample
    assert run.reward_range == counter_example().reward_ranges[0]


def test_what_was_played_is_counted_by_policy_and_goes_with_a_fault(monkeypatch):
    run = exploring()
    other = np.array([[[1.0, 0.0]]])
    run.play(run.baseline.policy, 5)
    run.play(other, 2)
    run.play(other, 3)
    assert [each.episodes for each in run.played] == [5, 5]
    assert run.episodes == 10
    assert int(run.samples.visits.sum()) == 10
    lost = run.problem.roll_out(other, 4)
    for samples, visits in ((None, 10), (lost, 14)):

        def broken(*_, samples=samples):
            fault = SimulatorError("broken")
            fault.samples = samples
            raise fault

        monkeypatch.setattr(InducedProblem, "roll_out", broken)
        with pytest.raises(SimulatorError) as caught:
            run.play(other, 1)
        assert int(caught.value.samples.visits.sum()) == visits
        assert run.episodes == 10


def test_the_least_slack_is_a_share_of_the_widest_range_however_small():
    known = game(spans=((0.25, 0.25), (0.125, 0.0)))
    assert safe_learner(known, epsilon=0.5, margin=1e-4).least_slack == 1e-4 / (4 * 0.5)
    assert safe_learner(known, epsilon=0.5, margin=0.5).least_slack == 1e-3
