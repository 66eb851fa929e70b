"""The generative learner in detail: what is drawn and played, how thresholds are tightened, and what is concluded."""

from dataclasses import replace
from math import log, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from bare_runs import UNIFORM, bare, failing

from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.model import CMDP
from cmpg.errors import InfeasibleError
from cmpg.games.joint.game import JointGame
from cmpg.learning import generative
from cmpg.learning.generative import Adaptive, cost_variances, tightened_candidate
from cmpg.learning.outcome import BoundedPolicy, Present, Proved, ResponseStatus
from cmpg.learning.simulator import GameSimulator


def chain():
    """Two steps, two states: the second state costs 1 at the end, and actions lead there half of the time, or never."""
    return CMDP(
        transition=np.array([[[[0.5, 0.5], [1.0, 0.0]], [[0.25, 0.75], [0.0, 1.0]]]] * 2),
        reward=np.zeros((2, 2, 2)),
        costs=np.array([[[[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]]]),
        thresholds=[0.5],
        initial=[0.75, 0.25],
        horizon=2,
    )


def test_variances_of_a_cost_are_those_of_where_transitions_lead():
    model, chance = cost_variances(chain(), np.array([[[1.0, 0.0], [1.0, 0.0]]] * 2))
    # A step to the state that costs 1: ½ from the first state, ¾ from the second.
    assert chance.tolist() == pytest.approx([0.75 * 0.25 + 0.25 * 0.1875])
    assert model.tolist() == pytest.approx([0.75**2 * 0.25 + 0.25**2 * 0.1875])


@pytest.mark.parametrize(
    ("learned", "horizon", "entries"), [(False, 3, 12), (True, 3, 18), (False, 1, 0), (True, 1, 6)]
)
def test_entries_that_are_drawn_lead_somewhere_or_have_payoffs_to_learn(learned, horizon, entries):
    game = JointGame(
        transition=np.full((1, 2, 3, 2), 0.5),
        rewards=np.zeros((1, 1, 2, 3)),
        costs=np.zeros((1, 1, 2, 3)),
        thresholds=[1.0],
        initial=[0.5, 0.5],
        horizon=horizon,
    )
    simulator = GameSimulator(game, rng=np.random.default_rng(0), **({"payoff_noise": 0.5} if learned else {}))
    problem = generative.InducedProblem(simulator, 0, game.uniform_policy())
    run = generative._Run(problem, Adaptive(), epsilon=0.5, delta=0.1)
    assert run.entries == entries
    assert (run.latest.value_floor, run.latest.multipliers.tolist()) == (-np.inf, [0.0])
    assert run.latest.cost_ceilings.tolist() == [np.inf]
    assert (run.interval is not None) is True


class Measured:
    """A policy whose episodes double each time; what it shows is given."""

    def __init__(self, floors=(0.0,), episodes=0):
        self.floors, self.ceilings, self.episodes = np.array([0.0, *floors]), np.ones(1 + len(floors)), episodes
        self.present = Present(0.5, 1.0, np.array(floors), np.ones(len(floors)))

    @property
    def next_batch(self):
        return self.episodes or 4

    def grow(self):
        self.episodes += self.next_batch


def running(**attributes):
    known = SimpleNamespace(limits=np.array([1.0, 1.0]), num_constraints=2)
    problem = SimpleNamespace(nash_epsilon=None, known=known, policy=UNIFORM, agent=0, shape=(1, 1, 2))
    proved = Proved(known.limits)
    latest = BoundedPolicy(np.zeros((1, 1, 2)), -np.inf, np.full(2, np.inf), np.zeros(2), 0)
    usual = {"problem": problem, "proved": proved, "latest": latest, "epsilon": 0.5, "delta": 0.1, "work": 0}
    return bare(generative._Run, **usual | {"count": 64, "entries": 1024, "rounds": 1} | attributes)


def test_a_policy_is_played_until_all_is_settled_or_spent_or_one_of_its_costs_is_refuted():
    run, noted = running(), []
    budget = run.most_episodes
    one = Measured((0.0, 0.0))
    run._play(one, lambda seen: noted.append(seen.episodes))
    assert one.episodes <= budget < 2 * one.episodes
    for floors in ((1.5, 0.0), (0.0, 1.5)):
        refuted = Measured(floors)
        run._play(refuted, lambda _: None)
        assert refuted.episodes == 4
    exact = Measured((1.0, 1.0))
    run._play(exact, lambda _: None)
    assert exact.episodes == one.episodes


def response_of(value):
    return SimpleNamespace(value=value, policy=np.zeros((1, 1, 2)), multipliers=np.zeros(2), work=1)


@pytest.mark.parametrize(
    ("nash", "ceiling", "seems", "safer", "played"),
    [
        (None, 3.0, 1.0, 2.5, ["candidate"] * 2),  # within ε of the ceiling
        (None, 3.0, 1.0, 2.4, []),
        (None, 3.0, 1.0, None, []),
        (1.0, 2.0, 1.0, None, ["present"]),  # nobody could gain more than ε
        (1.0, 2.1, 1.0, None, []),
        (1.0, 3.0, 1.0, 2.0, ["candidate"] * 2),
        (1.0, 4.0, 1.0, 2.0, []),
        (1.0, 5.0, 1.0, 3.0, ["candidate"] * 2),  # its gain is as large as what is missing
        (1.0, 2.5, 1.3, 1.55, []),  # too small a gain
        (1.0, 2.5, 1.3, 1.56, ["candidate"] * 2),
    ],
)
def test_what_promises_to_settle_the_question_is_played(monkeypatch, nash, ceiling, seems, safer, played):
    run, seen, deltas = running(), [], []
    run.problem.nash_epsilon = nash
    run.proved.ceiling = ceiling

    def measurement(problem, policy, model, *, delta):
        deltas.append(delta)
        return SimpleNamespace(policy=policy, kind="present" if len(deltas) == 1 else "candidate")

    monkeypatch.setattr(generative, "Measurement", measurement)
    monkeypatch.setattr(generative, "evaluate", lambda *_: SimpleNamespace(value=seems))
    cautions = []
    run._tightened = lambda *_, caution: cautions.append(caution) or (None if safer is None else response_of(safer))
    run._play = lambda one, note: seen.append(one.kind)
    run._measure(None, response_of(9.0), 0.08)
    assert seen == played
    assert deltas == [0.02] + [0.01] * played.count("candidate")
    assert cautions == [1.0, 2.0][: max(played.count("candidate"), 1)]


def test_candidates_end_with_one_that_meets_the_limits_and_then_the_present_policy_is_played(monkeypatch):
    run, seen = running(), []
    run.problem.nash_epsilon, run.proved.ceiling = 1.0, 3.0
    monkeypatch.setattr(generative, "evaluate", lambda *_: SimpleNamespace(value=1.0))
    monkeypatch.setattr(
        generative, "Measurement", lambda problem, policy, *_, **__: SimpleNamespace(policy=policy, kind=len(seen))
    )
    run._tightened = lambda *_, caution: response_of(2.0)

    def play(one, note):
        seen.append(one.kind)
        if len(seen) == 1:
            run.latest = replace(run.latest, cost_ceilings=np.array([1.0, 1.0]))
            run.proved.incumbent = run.latest

    run._play = play
    run._measure(None, response_of(9.0), 0.08)
    assert len(seen) == 2
    run._tightened = None
    run._measure(None, None, 0.08)  # without an optimum there is nothing to tighten


def test_thresholds_are_tightened_by_the_errors_that_are_likely_and_by_room_for_others(monkeypatch):
    run, tried = running(problem=SimpleNamespace(nash_epsilon=0.8, shape=(2, 2, 2)), entries=4096), []
    empirical = chain()
    policy = np.array([[[1.0, 0.0], [1.0, 0.0]]] * 2)
    monkeypatch.setattr(
        generative,
        "Measurement",
        lambda *_, **__: SimpleNamespace(floors=np.array([0.0, 0.0]), ceilings=np.array([9.0, 2.0])),
    )

    def exact(cmdp):
        tried.append(float(cmdp.thresholds[0]))
        if len(tried) % 2:
            raise InfeasibleError("too tight")
        return SimpleNamespace(work=3)

    monkeypatch.setattr(generative, "Exact", lambda: exact)
    best = SimpleNamespace(policy=policy, multipliers=np.array([0.5]))
    assert run._tightened(empirical, best, 0.05, caution=2.0).work == 3
    model, chance = cost_variances(empirical, policy)
    per_episode = (log(1 / 0.05) + 10) / run.most_episodes
    errors = 2 * (2 * sqrt(model[0] / 64) + sqrt(2 * chance[0] * per_episode) + 2.0 * per_episode)
    assert tried == pytest.approx([0.5 - errors - 0.8 / 16 / 0.5, 0.5 - errors])
    assert run.work == 3
    tried.clear()
    run.problem.nash_epsilon = None
    run._tightened(empirical, best, 0.05, caution=1.0)
    assert tried == pytest.approx([0.5 - errors / 2] * 2)
    monkeypatch.setattr(generative, "Exact", lambda: failing(InfeasibleError("never")))
    assert run._tightened(empirical, best, 0.05, caution=1.0) is None


def policy_at(ceiling, floor=1.0):
    return BoundedPolicy(np.zeros((1, 1, 2)), floor, np.array([ceiling, 0.0]), np.zeros(2), 5)


def test_a_conclusion_has_the_incumbent_or_the_latest_and_its_status():
    def concluding(*, incumbent=None, latest=None, ceiling=2.0, nash=None, present=None):
        run = running(before=0)
        run.problem.nash_epsilon = nash
        run.problem.simulator = SimpleNamespace(ledger=SimpleNamespace(total=77))
        run.proved.ceiling, run.proved.incumbent = ceiling, incumbent
        run.latest = latest or policy_at(9.0, -5.0)
        if present is not None:
            run.proved.present = Present(*present, np.zeros(2), np.ones(2))
        return run.conclude()

    nothing = concluding()
    assert (nothing.status, nothing.value_floor, nothing.samples) == (ResponseStatus.LIMIT, -5.0, 77)
    assert nothing.message == (
        "with 64 samples of every entry no policy is proved to be feasible yet, and the bounds are 7 apart, not 0.5."
    )
    some = concluding(incumbent=policy_at(0.5, 1.25))
    assert (some.status, some.value_floor) == (ResponseStatus.LIMIT, 1.25)
    assert "the policy is feasible, but the bounds are 0.75 apart" in some.message
    assert concluding(incumbent=policy_at(0.5, 1.5)).status is ResponseStatus.CERTIFIED
    stays = concluding(nash=1.0, present=(1.0, 1.5))
    assert (stays.status, stays.value_floor, stays.policy is UNIFORM[0]) == (ResponseStatus.CERTIFIED, 1.0, True)
    leaves = concluding(incumbent=policy_at(0.5, 1.0), nash=1.0, present=(0.0, 0.7))
    assert leaves.status is ResponseStatus.CERTIFIED
    better = concluding(incumbent=policy_at(0.5, 1.0), nash=1.0, ceiling=3.0, present=(-9.0, -1.0))
    assert better.status is ResponseStatus.BETTER
    unsure = concluding(incumbent=policy_at(0.5, 1.0), nash=1.0, present=(0.0, 0.8))
    assert unsure.status is ResponseStatus.LIMIT


def candidates(monkeypatch, *, over, least=-np.inf):
    """Tighten thresholds of 1 where the worst cost of a policy is `over` above its empirical one."""
    tried = []

    def solve(belief, thresholds):
        tried.append(float(thresholds[0]))
        if thresholds[0] < least:
            return None
        return BoundedPolicy(np.array(float(thresholds[0])), 0.0, thresholds + over, np.zeros(1), 3)

    nominal = SimpleNamespace(thresholds=np.array([1.0]))
    monkeypatch.setattr(generative, "safest", lambda _: BoundedPolicy(np.array(-1.0), 0.0, np.zeros(1), np.zeros(1), 7))
    monkeypatch.setattr(generative, "_solve", solve)
    monkeypatch.setattr(generative, "evaluate", lambda _, policy: SimpleNamespace(costs=np.array([float(policy)])))
    return tightened_candidate(SimpleNamespace(box=SimpleNamespace(nominal=nominal))), tried


def test_candidates_are_tightened_by_bisection_until_their_worst_case_fits(monkeypatch):
    found, tried = candidates(monkeypatch, over=0.0)
    assert (float(found.policy), found.work, tried) == (1.0, 3, [1.0])
    found, tried = candidates(monkeypatch, over=0.4)
    assert tried[:3] == pytest.approx([1.0, 0.6, 0.8])  # all of the excess is just enough, half of it is not
    assert float(found.policy) == pytest.approx(0.6)
    assert found.work == 7 + 3 * len(tried)
    assert len(tried) == 1 + generative.TIGHTENINGS
    found, tried = candidates(monkeypatch, over=0.4, least=2.0)
    assert (float(found.policy), found.work, tried) == (-1.0, 7, [1.0])
    found, tried = candidates(monkeypatch, over=0.4, least=0.7)
    assert (float(found.policy), found.work) == (-1.0, 7 + 3 + sum(2 if each < 0.7 else 3 for each in tried[1:]))


def test_every_true_value_of_the_chain_is_what_the_tests_above_say():
    assert evaluate(chain(), np.array([[[1.0, 0.0], [1.0, 0.0]]] * 2)).costs[0] == 0.75 * 0.5 + 0.25 * 0.75
