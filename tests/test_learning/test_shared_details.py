"""One model for all in detail: shares of δ, when to judge, when to stop, and what a check asks for."""

from dataclasses import replace
from math import sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from bare_runs import UNIFORM, bare, failing, response

from cmpg.equilibrium.result import Status
from cmpg.errors import BudgetError, InfeasibleError, OutOfTimeError, SimulatorError, StartError
from cmpg.learning import shared
from cmpg.learning.shared import Round, tightened, until_ended
from cmpg.learning.simulator import GameSimulator
from cmpg.policy import JointPolicy
from cmpg.scenarios import counter_example


def a_round(gap=1.0, *, feasible=True, ceilings=(0.5,)):
    return Round(7, UNIFORM, gap, np.array(ceilings), feasible=feasible)


def ended_by(rounds, *, time_limit=np.inf, on_round=None):
    """Go on until a run is over; return how it was concluded, and how many rounds there were."""
    run = SimpleNamespace(best="best", ended=None, reason="", count=0)
    run.conclude = lambda status, reason: (status, reason, run.count)

    def all_rounds():
        for each in rounds:
            run.count += 1
            yield each(run) if callable(each) else each

    return until_ended(run, all_rounds(), "spent.", time_limit=time_limit, on_round=on_round)


def certify(run):
    run.ended, run.reason = Status.CERTIFIED, "done."
    return True


def test_a_run_goes_on_until_it_has_ended_or_everything_is_spent():
    told = []
    assert ended_by([True, False, certify, True], on_round=told.append) == (Status.CERTIFIED, "done.", 3)
    assert told == ["best", "best"]
    assert ended_by([True, True]) == (Status.LIMIT, "spent.", 2)
    assert ended_by([True, failing(BudgetError("no more."))]) == (Status.LIMIT, "no more.", 2)
    assert ended_by([failing(KeyboardInterrupt())]) == (Status.INTERRUPTED, "it was interrupted.", 1)
    assert ended_by([failing(OutOfTimeError())], time_limit=5.0)[:2] == (
        Status.LIMIT,
        "the time limit of 5 seconds has passed.",
    )
    for error in (SimulatorError("broken"), StartError("broken")):
        with pytest.raises(type(error)) as caught:
            ended_by([True, failing(error)])
        assert caught.value.result == (Status.LIMIT, "broken", 2)


def test_time_that_is_over_ends_a_run_after_the_round(monkeypatch):
    times = iter([100.0, 105.0, 105.5, 106.0])
    monkeypatch.setattr(shared, "time", SimpleNamespace(monotonic=lambda: next(times)))
    monkeypatch.setattr(shared, "limited", lambda _: memoryview(b""))
    late = "the time limit of 5 seconds has passed."
    assert ended_by([True, True, True, True], time_limit=5.0) == (Status.LIMIT, late, 2)


class Drawing:
    """A simulator that hands out as many letters as are asked for."""

    def __init__(self, **known):
        self.asked, self.ledger = [], SimpleNamespace(total=1, by_purpose={})
        self.known = SimpleNamespace(**known)

    def draw_all(self, *, count, purpose):
        self.asked.append((count, purpose))
        return "x" * count


def test_samples_are_doubled_and_rounds_that_are_hopeless_are_not_judged():
    judged = []
    run = bare(shared._Run, simulator=Drawing(), samples=None, number=0, hopeless_below=20)
    run._judge = lambda samples, count: judged.append((len(samples), count))
    assert list(run.rounds(10, 80)) == [True, True, True]
    assert run.simulator.asked == [(10, "model"), (10, "model"), (20, "model"), (40, "model")]
    assert judged == [(20, 20), (40, 40), (80, 80)]
    assert run.number == 4


def test_a_run_begins_before_its_first_round_and_knows_nothing():
    simulator = GameSimulator(counter_example(), rng=np.random.default_rng(0))
    run = shared._Run(simulator, epsilon=0.5, delta=0.1, interval=None)
    assert (run.number, run.samples, run.ended, run.hopeless_below) == (0, None, None, 0.0)
    assert (run.best.gap, run.best.feasible, run.best.cost_ceilings.tolist()) == (np.inf, False, [np.inf])


def test_what_was_drawn_before_a_fault_goes_with_it():
    run = bare(shared._Run, simulator=Drawing(), samples="ab", number=0, hopeless_below=0)

    def broken(*, count, purpose):
        fault = SimulatorError("broken")
        fault.samples = run.extra
        raise fault

    run.simulator.draw_all = broken
    for samples, extra, together in (("ab", "c", "abc"), ("ab", None, "ab"), (None, "c", "c"), (None, None, None)):
        run.samples, run.extra = samples, extra
        with pytest.raises(SimulatorError) as caught:
            list(run.rounds(1, 8))
        assert caught.value.samples == together


def judging(monkeypatch, found, *, number=3, horizon=2, drawn=1, proof="", policy=None):
    """Judge a round of a joint game; return the run, the share of δ that its model had, and whether it was checked."""
    seen = SimpleNamespace(delta=None, checked=[])
    simulator = Drawing(horizon=horizon, thresholds=np.array([1.0]))
    simulator.ledger.total = drawn
    start = Round(0, UNIFORM, np.inf, np.array([np.inf]), feasible=False)
    attributes = {"simulator": simulator, "delta": 0.12, "number": number, "interval": None, "epsilon": 0.5}
    run = bare(shared._Run, **attributes, limits=np.array([1.0]), best=start, ended=None, reason="", hopeless_below=0.0)
    run._check = lambda model, count, share: seen.checked.append((count, share))
    run._least_gap = lambda model, found: replace(found, gap=found.gap - 0.25)

    def model_of(known, samples, *, delta, interval):
        seen.delta = delta
        return SimpleNamespace(proof_of_infeasibility=lambda: proof)

    monkeypatch.setattr(shared, "model_of", model_of)
    monkeypatch.setattr(shared, "tightened", lambda *_, **__: found)
    run._judge("samples", 64)
    return run, seen


@pytest.mark.parametrize(("number", "horizon", "share"), [(1, 1, 0.06), (3, 1, 0.01), (3, 2, 0.005), (1, 5, 0.03)])
def test_each_round_has_its_share_of_delta_and_half_of_it_is_for_checks(monkeypatch, number, horizon, share):
    run, seen = judging(monkeypatch, a_round(9.0), number=number, horizon=horizon)
    assert seen.delta == pytest.approx(share)
    assert seen.checked == ([(64, pytest.approx(share))] if horizon > 1 else [])
    assert (run.ended, run.best.gap, run.best.samples_per_entry) == (None, 9.0, 64)


def test_a_round_is_an_end_where_its_policy_is_feasible_and_its_gap_small(monkeypatch):
    assert judging(monkeypatch, a_round(0.5))[0].ended is Status.CERTIFIED
    assert judging(monkeypatch, a_round(0.5, feasible=False))[0].ended is None
    close, seen = judging(monkeypatch, a_round(0.8))  # nearly: other starts are looked at, and no check is worth it
    assert (close.best.gap, seen.checked) == (pytest.approx(0.55), [])
    far, seen = judging(monkeypatch, a_round(0.81))
    assert (far.best.gap, len(seen.checked)) == (0.81, 1)
    near, _ = judging(monkeypatch, a_round(0.7))
    assert near.ended is Status.CERTIFIED


def test_no_policy_is_a_proof_of_infeasibility_or_nothing(monkeypatch):
    run, _ = judging(monkeypatch, None, proof="too dear")
    assert (run.ended, run.reason) == (Status.INFEASIBLE, "with probability 0.88, too dear")
    run, seen = judging(monkeypatch, None)
    assert (run.ended, len(seen.checked)) == (None, 1)
    run, _ = judging(monkeypatch, a_round(9.0), drawn=0)
    assert run.ended is Status.LIMIT
    assert run.reason.endswith("There is nothing to be drawn that would help.")


class Solvable:
    """A model whose policies are numbers: what is solved for thresholds costs as much as they are, more at worst."""

    def __init__(self, *, over=0.4, least=0.0, gap=0.1):
        self.over, self.least, self.gap_of, self.bounded = over, least, gap, []

    def cost_ceilings(self, policy):
        return np.asarray(policy) + self.over

    def bound(self, policy):
        self.bounded.append(policy)
        return SimpleNamespace(gap=self.gap_of, cost_ceilings=self.cost_ceilings(policy))

    @property
    def game(self):
        return SimpleNamespace(at=lambda policy: SimpleNamespace(costs=np.asarray(policy)))


class Spending(np.ndarray):
    """Costs that are a policy: true wherever a policy would be."""

    def __bool__(self):
        return True


@pytest.fixture
def solving(monkeypatch):
    def solved(model, thresholds, start, *, epsilon):
        return None if thresholds[0] < model.least else np.asarray(thresholds).copy().view(Spending)

    monkeypatch.setattr(shared, "_solved", solved)


def test_thresholds_are_tightened_until_the_worst_costs_meet_the_limits(solving):
    found = tightened(Solvable(), np.array([1.0]), None, epsilon=0.1)
    assert found.feasible
    assert 1.0 - 0.4 * 2 / 2**5 <= found.cost_ceilings[0] <= 1.0
    assert found.gap == 0.1
    fits = tightened(Solvable(over=0.0), np.array([1.0]), None, epsilon=0.1)
    assert (fits.feasible, fits.cost_ceilings.tolist()) == (True, [1.0])
    just = Solvable(over=0.0)
    tightened(just, np.array([1.0]), None, epsilon=0.1, far=0.05)
    assert len(just.bounded) == 1  # what meets the limits exactly is not tightened, nor bounded twice
    assert tightened(Solvable(least=2.0), np.array([1.0]), None, epsilon=0.1) is None
    for over in (0.4, np.array([0.4, -1.0])):
        limits = np.ones(np.size(over))
        assert not tightened(Solvable(over=over, least=0.9), limits, None, epsilon=0.1).feasible


def test_tightening_is_not_tried_where_the_gap_is_far_too_large(solving):
    model = Solvable(gap=5.0)
    far = tightened(model, np.array([1.0]), None, epsilon=0.1, far=4.0)
    assert (far.feasible, far.gap, far.cost_ceilings.tolist()) == (False, 5.0, [1.4])
    assert len(model.bounded) == 1
    assert tightened(Solvable(gap=4.0), np.array([1.0]), None, epsilon=0.1, far=4.0).feasible
    two = tightened(Solvable(over=np.array([0.4, -1.0])), np.array([1.0, 1.0]), None, epsilon=0.1)
    assert two.feasible


def test_empirical_games_are_solved_to_a_sixteenth_of_epsilon(monkeypatch):
    asked = []

    def solve(game, *, epsilon, start=None):
        asked.append((epsilon, start))
        if start is not None:
            raise InfeasibleError("the start")
        return SimpleNamespace(incumbent=None, policy="policy", interrupted=False)

    monkeypatch.setattr(shared, "solve", solve)
    model = SimpleNamespace(game=SimpleNamespace(with_thresholds=lambda thresholds: thresholds))
    assert shared._solved(model, [1.0], "start", epsilon=0.8) is None
    assert asked == [(0.05, "start"), (0.05, None)]


def test_other_starts_are_looked_at_until_one_has_a_gap_that_is_small_enough(monkeypatch):
    limits, tried = np.array([4.0]), []
    gaps = iter([0.9, 0.6, 0.5, 0.1])

    def solved(model, thresholds, start, *, epsilon):
        tried.append(float(thresholds[0]))
        return "start"

    monkeypatch.setattr(shared, "feasible_start", lambda _: SimpleNamespace(policy="cheapest"))
    monkeypatch.setattr(shared, "_solved", solved)
    monkeypatch.setattr(shared, "tightened", lambda *_, **__: a_round(next(gaps), ceilings=(float(len(tried)),)))
    game = SimpleNamespace(with_thresholds=lambda _: None, at=lambda _: SimpleNamespace(costs=np.array([2.0])))
    run = bare(shared._Run, limits=limits, epsilon=0.5)
    found = run._least_gap(SimpleNamespace(game=game), a_round(0.7))
    assert (found.gap, tried) == (0.5, [2.5, 3.0, 3.5])
    gaps = iter([0.7] * 4)
    kept = a_round(0.7)
    assert run._least_gap(SimpleNamespace(game=game), kept) is kept
    monkeypatch.setattr(shared, "feasible_start", lambda _: SimpleNamespace(policy=None))
    assert run._least_gap(SimpleNamespace(game=game), kept) is kept


@pytest.mark.parametrize(
    ("total", "ceilings", "floors", "grown", "ended"),
    [
        (100, (0.9,), (0.0,), 0, True),
        (100, (1.1,), (0.0,), 4, False),  # 4, 8, 16 episodes of two steps are 4 · 8 · 2 < 100 < 4 · 16 · 2
        (100, (1.1,), (1.05,), 0, False),
    ],
)
def test_a_check_plays_as_much_as_was_drawn_at_most_and_asks_every_agent(
    monkeypatch, total, ceilings, floors, grown, ended
):
    asked, made = [], SimpleNamespace(episodes=0, times=0)
    made.ceilings, made.floors = np.array([9.0, *ceilings]), np.array([0.0, *floors])

    def grow():
        made.episodes, made.times = 2 * made.episodes or 2, made.times + 1

    made.grow = grow
    simulator = Drawing()
    simulator.ledger.total = total
    run = bare(shared._Run, simulator=simulator, limits=np.array([1.0]), best=a_round(3.0), epsilon=0.5, ended=None)
    seen = SimpleNamespace(thresholds=None, shares=[])
    game = SimpleNamespace(num_agents=2, num_steps=2, at=lambda _: SimpleNamespace(induced_cmdp=lambda _: None))

    def with_thresholds(thresholds):
        seen.thresholds = thresholds.tolist()
        return game

    game.with_thresholds = with_thresholds
    found = JointPolicy.uniform([(2, 3, 4), (2, 3, 5)])
    monkeypatch.setattr(shared, "cost_variances", lambda *_: (np.array([0.25]), None))
    monkeypatch.setattr(shared, "_ascent", lambda _, start, epsilon: SimpleNamespace(incumbent=1, policy=found))
    problems = []
    monkeypatch.setattr(shared, "InducedProblem", lambda *args, **_: problems.append(args[1]) or args[1])

    def measurement(problem, policy, model, *, delta):
        seen.shares.append(delta)
        return made

    def learner(problem, *, epsilon, delta):
        asked.append((problem, epsilon, delta))
        return response(ceiling=2.5, present=(2.25 - 0.125 * problem, 3.0))

    def adaptive(**options):
        seen.options = options
        return learner

    monkeypatch.setattr(shared, "Measurement", measurement)
    monkeypatch.setattr(shared, "Adaptive", adaptive)
    run._check(SimpleNamespace(game=game), 64, 0.06)
    assert seen.thresholds == pytest.approx([1.0 - 3 * sqrt(0.25 / 64)])
    assert seen.shares == pytest.approx([0.02])
    assert made.times == grown
    assert (run.ended is Status.CERTIFIED) is ended
    assert problems == ([0, 0, 1] if ended else [0])  # whose costs are measured, and who is asked
    if ended:
        assert asked == [(0, 0.125, pytest.approx(0.02)), (1, 0.125, pytest.approx(0.02))]
        assert (run.best.gap, run.best.samples_per_entry, run.best.feasible) == (0.375, 64, True)
        assert seen.options == {"first_count": 64, "max_count": 64}
        simulator.ledger.total = 54 * 100
        run._check(SimpleNamespace(game=game), 32, 0.06)
        assert seen.options == {"first_count": 64, "max_count": 100}  # 2 · 3 · 4 + 2 · 3 · 5 entries


@pytest.mark.parametrize("status", [Status.CERTIFIED, Status.LIMIT])
def test_what_is_not_certified_says_why(status):
    known = SimpleNamespace(thresholds=np.array([1.0]), left_of=lambda epsilon: epsilon)
    simulator = SimpleNamespace(known=known, ledger=SimpleNamespace(by_purpose={}))
    result = shared.concluded(simulator, a_round(), status, "why", epsilon=0.5, delta=0.1)
    assert result.void == (() if status is Status.CERTIFIED else ("why",))
    assert result.message.startswith("nothing is certified; what is proved") is (status is Status.LIMIT)


# --- Local games, checks and conclusions, number by number ------------------------------------------------------------


@pytest.mark.parametrize(
    ("gap", "below"), [(0.5, 32.0), (1.5, 96.0), (1e9, 32.0 * shared.HOPELESS), (0.25, 16.0), (np.inf, None)]
)
def test_rounds_of_a_local_game_wait_for_as_many_samples_as_the_gap_needs(monkeypatch, gap, below):
    asked = {}

    class Here:
        """Stands for what is known of a local game, and for its model."""

        thresholds, horizon = np.array([1.0]), 3

        @classmethod
        def of(cls, known, samples, *, delta, interval):
            asked.update(delta=delta, interval=interval, samples=samples)
            return cls()

    def tighten(model, limits, start, *, epsilon, far):
        asked.update(limits=limits.tolist(), start=start, epsilon=epsilon, far=far)
        return a_round(gap, feasible=False)

    monkeypatch.setattr(shared, "LocalKnown", Here)
    monkeypatch.setattr(shared, "LocalModel", Here)
    monkeypatch.setattr(shared, "tightened", tighten)
    simulator = SimpleNamespace(known=Here(), ledger=SimpleNamespace(total=5))
    start = Round(0, UNIFORM, np.inf, np.array([np.inf]), feasible=False)
    attributes = {"simulator": simulator, "delta": 0.12, "number": 2, "interval": "interval", "epsilon": 0.5}
    run = bare(shared._Run, **attributes, limits=np.array([1.0]), best=start, ended=None, reason="", hopeless_below=0.0)
    run._check = lambda *_: pytest.fail("a local game is not checked")
    run._judge("samples", 64)
    assert run.hopeless_below == (32.0 * shared.HOPELESS if below is None else below)
    assert asked == {
        "delta": pytest.approx(0.02),
        "interval": "interval",
        "samples": "samples",
        "limits": [1.0],
        "start": UNIFORM,
        "epsilon": 0.5,
        "far": shared.FAR * 0.5,
    }
    assert (run.best.gap, run.best.samples_per_entry, run.ended) == (gap, 64, None)


def test_nothing_was_drawn_before_the_first_round():
    simulator = GameSimulator(counter_example(), rng=np.random.default_rng(0))
    run = shared._Run(simulator, epsilon=0.5, delta=0.1, interval="interval")
    assert (run.best.samples_per_entry, run.claimed, run.delta, run.interval) == (0, 0.5, 0.1, "interval")
    assert (run.epsilon, run.limits.tolist(), run.reason) == (0.5, [0.5], "")
    assert [table.tolist() for table in run.best.policy] == [[[[0.5, 0.5]]]] * 2
    run.number = 3
    result = run.conclude(Status.LIMIT, "why")
    assert (result.settings["samples_per_entry"], result.settings["rounds"]) == (0, 3)
    assert (result.status, result.void, result.epsilon, result.delta) == (Status.LIMIT, ("why",), 0.5, 0.1)


def checking(monkeypatch, *, incumbent=1, answers=(), total=10**6):
    """Check a policy of two agents whose costs fit at once; return the run, and what was asked for."""
    seen = SimpleNamespace(epsilons=[], starts=[], problems=[], learned=[])
    simulator = Drawing()
    simulator.ledger.total = total
    run = bare(shared._Run, simulator=simulator, limits=np.array([1.0]), best=a_round(3.0), epsilon=0.5, ended=None)
    game = SimpleNamespace(num_agents=2, num_steps=2, at=lambda _: SimpleNamespace(induced_cmdp=lambda i: f"cmdp {i}"))
    game.with_thresholds = lambda _: game
    found = JointPolicy.uniform([(2, 3, 4), (2, 3, 5)])

    def ascend(_, start, epsilon):
        seen.epsilons.append(epsilon)
        seen.starts.append(start)
        return SimpleNamespace(incumbent=incumbent, policy=found)

    def problem(_, agent, policy, *, purpose, nash_epsilon=None):
        seen.problems.append((agent, policy is found, purpose, nash_epsilon))
        return agent

    def variances(cmdp, table):
        seen.variances = (cmdp, table.shape)
        return np.array([0.0]), None

    def measured(problem, table, model, *, delta):
        seen.measured = (problem, table is found[0], model)
        return SimpleNamespace(ceilings=np.array([9.0, 1.0]), floors=np.zeros(2), episodes=0)

    monkeypatch.setattr(shared, "cost_variances", variances)
    monkeypatch.setattr(shared, "_ascent", ascend)
    monkeypatch.setattr(shared, "InducedProblem", problem)
    monkeypatch.setattr(shared, "Measurement", measured)
    monkeypatch.setattr(shared, "Adaptive", lambda **_: lambda agent, **__: answers[agent])
    run._check(SimpleNamespace(game=game), 64, 0.06)
    return run, seen


def test_a_check_solves_to_a_sixteenth_of_epsilon_and_measures_the_first_agent(monkeypatch):
    stays = response(ceiling=2.5, present=(2.25, 3.0))
    run, seen = checking(monkeypatch, answers=[stays, stays])
    assert (seen.epsilons, seen.starts) == ([0.5 / 16], [UNIFORM])
    assert seen.variances == ("cmdp 0", (1, 1, 2))
    assert seen.measured == (0, True, "cmdp 0")
    assert seen.problems == [(0, True, "checks", None), (0, True, "checks", 0.5), (1, True, "checks", 0.5)]
    assert (run.ended, run.best.gap, run.best.samples_per_entry) == (Status.CERTIFIED, 0.25, 64)
    assert run.best.cost_ceilings.tolist() == [1.0]


def test_a_check_proves_nothing_without_a_policy_or_where_somebody_may_leave(monkeypatch):
    stays, leaves, unknown = response(ceiling=2.5, present=(2.0, 3.0)), response(present=(1.9, 3.0)), response()
    run, seen = checking(monkeypatch, incumbent=None)
    assert (run.ended, seen.problems) == (None, [])
    for answers, asked in (([leaves, stays], 2), ([stays, leaves], 3), ([unknown, stays], 2)):
        run, seen = checking(monkeypatch, answers=answers)
        assert (run.ended, run.best.gap, len(seen.problems)) == (None, 3.0, asked)
    run, _ = checking(monkeypatch, answers=[stays, response(ceiling=2.5, present=(2.125, 3.0))])
    assert (run.ended, run.best.gap) == (Status.CERTIFIED, 0.5)  # the larger of both


def test_a_planner_s_table_has_the_products_of_what_agents_play():
    tables = [np.random.default_rng(i).dirichlet(np.ones(2 + i), size=(2, 3)) for i in range(2)]
    found = shared.joint_table(JointPolicy(tuple(tables)))
    assert found.shape == (2, 3, 6)
    assert found == pytest.approx(np.einsum("hsa,hsb->hsab", *tables).reshape(2, 3, 6))
