"""Algorithm 4 to the letter: DOPE's interval and bonuses, T_0, T, M, and the selection."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from small_cmdps import alone, random_cmdp

from cmpg.cmdp.box import optimistic_response
from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.errors import BudgetError, CMPGError
from cmpg.learning.bounds import Size, safe_constants
from cmpg.learning.confidence import hoeffding_count, hoeffding_radius
from cmpg.learning.outcome import ResponseStatus
from cmpg.learning.safe import Pace
from cmpg.paper import algorithm_4
from cmpg.paper.algorithm_4 import Algorithm4, OnlineToBatch, dope_constants, extended_problem
from cmpg.policy import JointPolicy
from oracles.extended_lp import extended_linear_program

H, S, A = 2, 2, 2
MARGIN = 1.2
CAREFUL = np.zeros((H, S, A))
CAREFUL[..., 0] = 1.0


def bold_or_careful(**changes):
    tables = {
        "transition": np.array([[[[1.0, 0.0], [0.1, 0.9]]] * 2]).reshape(1, S, A, S),
        "reward": [[[0.0, 0.2], [0.2, 1.0]]],
        "costs": [[[[0.0, 0.5], [0.3, 1.0]]]],
        "thresholds": [MARGIN],
        "initial": [1.0, 0.0],
        "horizon": H,
    }
    return CMDP(**(tables | changes))


def test_the_numbers_of_episodes_are_the_papers():
    found = dope_constants(alone(bold_or_careful()), safe_cost=0.0, epsilon=0.5, delta=0.1)
    regret = S * H**3 * np.sqrt(A) / MARGIN
    assert found.iterations == np.ceil(4 * regret**2 / 0.5**2)
    assert found.first_phase == np.ceil(S**2 * A * H**4 / MARGIN**2)
    assert found.episodes == np.ceil(16 * H**2 / 0.5**2 * np.log(2 * regret / (0.5 * 0.1)))


def test_interval_and_bonuses_are_dopes():
    problem = alone(bold_or_careful())
    samples = problem.roll_out(np.full((H, S, A), 0.5), 4000)
    box = extended_problem(problem, samples, margin=MARGIN, rounds=9000, delta=0.1)
    counts = samples.transitions[0]
    trials = counts.sum(axis=-1, keepdims=True)
    frequency = counts / np.maximum(trials, 1)
    # One step leads anywhere, so there are S²A entries in all.
    log_term = np.log(2 * S**2 * A * 9000 / 0.1)
    beta = np.sqrt(4 * frequency * (1 - frequency) * log_term / np.maximum(trials, 1)) + 14 * log_term / (
        3 * np.maximum(trials, 1)
    )
    beta = np.where(trials > 0, beta, 1.0)
    visited = trials[..., 0] > 0
    assert visited[0].all()
    assert not visited[1].any()  # everybody starts in state 0
    assert box.upper[0][visited] == pytest.approx(np.minimum(frequency + beta, 1)[visited])
    assert box.lower[0][visited] == pytest.approx(np.maximum(frequency - beta, 0)[visited])
    assert np.all(box.upper[0][~visited] == 1.0)
    widths = np.maximum(box.upper - box.nominal.transition, box.nominal.transition - box.lower).sum(axis=-1)
    reward, costs = problem.payoffs
    assert box.nominal.costs[0] == pytest.approx(costs[0] + H * widths)
    assert box.nominal.reward == pytest.approx(reward + H**2 * widths / MARGIN)
    assert np.all(widths[-1] == 0)  # the last step leads nowhere


def test_bonuses_grow_with_the_horizon_and_its_square():
    problem = alone(random_cmdp(0, horizon=3))
    samples = problem.roll_out(np.full((3, 4, 3), 1 / 3), 500)
    box = extended_problem(problem, samples, margin=0.5, rounds=600, delta=0.1)
    widths = np.maximum(box.upper - box.nominal.transition, box.nominal.transition - box.lower).sum(axis=-1)
    reward, costs = problem.payoffs
    assert box.nominal.costs[0] == pytest.approx(costs[0] + 3 * widths)
    assert box.nominal.reward == pytest.approx(reward + 9 * widths / 0.5)


def test_the_margin_is_what_the_safe_policy_leaves_of_the_threshold(monkeypatch):
    seen = []

    def extended(problem, samples, *, margin, rounds, delta):
        seen.append((margin, rounds))
        return

    monkeypatch.setattr(algorithm_4, "extended_problem", extended)
    monkeypatch.setattr(algorithm_4, "_exploration_policy", lambda _: None)
    constants = algorithm_4.SafeConstants(iterations=3.0, first_phase=5.0, episodes=2, samples=0.0)
    monkeypatch.setattr(algorithm_4, "dope_constants", lambda *_, **__: constants)
    run = Algorithm4(CAREFUL, 0.2)(alone(bold_or_careful()), epsilon=1.0, delta=0.1)
    assert seen == [(pytest.approx(MARGIN - 0.2), 8)] * 3
    assert run.safe_rounds == 3


def test_what_is_played_solves_the_extended_problem():
    problem = alone(bold_or_careful())
    samples = problem.roll_out(np.full((H, S, A), 0.5), 20_000)
    box = extended_problem(problem, samples, margin=MARGIN, rounds=30_000, delta=0.1)
    assert optimistic_response(box).value == pytest.approx(extended_linear_program(box).value, abs=1e-7)


def test_every_round_is_played_and_every_policy_is_measured():
    cmdp = bold_or_careful()
    problem = alone(cmdp)
    run = Algorithm4(CAREFUL, 0.0)(problem, epsilon=2.0, delta=0.1)
    rounds, first, episodes = int(run.constants.iterations), int(run.constants.first_phase), run.constants.episodes
    assert len(run.policies) == len(run.means) == rounds
    assert problem.simulator.ledger.total == (first + rounds + rounds * episodes) * H
    assert 0 < run.safe_rounds < rounds
    assert np.array_equal(run.policies[0], CAREFUL)
    judged = [evaluate(cmdp, policy) for policy in run.policies]
    assert max(each.costs[0] for each in judged) <= MARGIN
    assert run.policy is run.policies[int(run.means.argmax())]
    values = np.array([each.value for each in judged])
    assert np.abs(run.means - values).max() <= 2.0 / 4
    assert values[-1] > values[0]
    assert Exact()(cmdp).value - evaluate(cmdp, run.policy).value <= 2.0


def test_it_is_for_one_constraint_and_unit_payoffs():
    with pytest.raises(CMPGError, match="one constraint; there are 2"):
        Algorithm4(CAREFUL, 0.0)(alone(random_cmdp(0, constraints=2)), epsilon=1.0, delta=0.1)
    rich = alone(bold_or_careful(reward=[[[0.0, 0.2], [0.2, 3.0]]]))
    with pytest.raises(CMPGError, match=r"rewards are between 0 and 3; Algorithm 4 wants \[0, 1\]"):
        Algorithm4(CAREFUL, 0.0)(rich, epsilon=1.0, delta=0.1)
    with pytest.raises(CMPGError, match="a positive one is needed"):
        Algorithm4(CAREFUL, 1.2)(alone(bold_or_careful()), epsilon=1.0, delta=0.1)


def test_payoffs_at_the_ends_of_the_unit_interval_are_fine_and_beyond_them_are_not():
    for reward, costs in (([0.0, 1.0], [0.0, 1.0]), ([0.25, 0.75], [0.5, 0.5])):
        tables = {"reward": [[reward, reward]], "costs": [[[costs, costs]]]}
        algorithm_4._check(alone(bold_or_careful(**tables)))
    for tables in ({"reward": [[[-0.1, 0.2], [0.2, 1.0]]]}, {"costs": [[[[0.0, 1.1], [0.3, 1.0]]]]}):
        with pytest.raises(CMPGError, match="Algorithm 4 wants"):
            algorithm_4._check(alone(bold_or_careful(**tables)))


# --- OnlineToBatch: explore, measure, select --------------------------------------------------------------------------


class Run:
    """An exploration that is played by the book: every call is written down."""

    def __init__(self, *, batches=(), given=0.2, infeasible="", gap=0.1, ceilings=1.0):
        self.problem = alone(bold_or_careful())
        self.batches, self.given_costs, self.proof_of_infeasibility = list(batches), np.array([given]), infeasible
        self.episodes, self.paces, self.bounded, self.reward_range = 0, [], 0, 2.0
        policies = [CAREFUL, np.full((H, S, A), 0.5)]
        self.played = [SimpleNamespace(policy=JointPolicy((policy,))) for policy in policies]
        best = SimpleNamespace(cost_ceilings=np.array([ceilings]))
        self.proved = SimpleNamespace(incumbent=best, gap=gap)
        self.belief, self.measured = "belief", []

    def advance(self, pace):
        self.paces.append(pace)
        if not self.batches:
            return False
        self.episodes += self.batches.pop(0)
        return True

    def play(self, policy, episodes):
        self.measured.append(episodes)
        self.episodes += episodes
        return "bold" if policy[0, 0, 0] == 0.5 else "careful"

    def bound(self):
        self.bounded += 1

    def conclude(self, status, *, epsilon, delta, message=""):
        return SimpleNamespace(status=status, epsilon=epsilon, delta=delta, message=message)


@pytest.fixture
def batch(monkeypatch):
    """Run OnlineToBatch on an exploration that is given."""

    def run(made, learner, *, epsilon=0.5, delta=0.1):
        asked = []
        monkeypatch.setattr(algorithm_4, "Exploration", lambda *_, **options: asked.append(options["delta"]) or made)
        monkeypatch.setattr(algorithm_4, "lack_of_slack", lambda _, least: "" if least == 0.0 else "too little")
        answer = learner(made.problem, epsilon=epsilon, delta=delta)
        assert asked == [delta / 2]
        return answer

    return run


def test_exploring_goes_on_until_all_rounds_are_played_and_then_every_policy_is_measured(batch, monkeypatch):
    selected = []
    monkeypatch.setattr(OnlineToBatch, "_select", lambda _, run, epsilon, delta: selected.append((epsilon, delta)))
    run = Run(batches=[30, 70])
    answer = batch(run, OnlineToBatch(rounds=100, pace=Pace(growth=0.5)))
    assert [pace.most for pace in run.paces] == [100] * 3
    assert run.paces[0].growth == 0.5
    assert selected == [(0.5, 0.05)]
    assert (answer.status, answer.epsilon, answer.delta) == (ResponseStatus.CERTIFIED, 0.5, 0.1)
    short = batch(Run(batches=[30]), OnlineToBatch(rounds=100))
    assert short.status is ResponseStatus.LIMIT
    assert short.message == "the budget ended after 30 of 100 episodes of exploration."
    assert len(selected) == 1


def test_the_policy_with_the_best_mean_is_the_incumbent_less_the_radius_of_its_mean(monkeypatch):
    run = Run()
    run.episodes = 60
    monkeypatch.setattr(algorithm_4, "_mean_value", lambda _, seen: {"careful": 0.25, "bold": 1.5}[seen])
    monkeypatch.setattr(algorithm_4, "bounded", lambda belief, policy: Bounded(belief, policy.tolist(), 0.0))
    episodes = hoeffding_count(0.5 / 4, span=2.0, delta=0.05 / 2)
    learner = OnlineToBatch(pace=Pace(most=60 + 2 * episodes))
    learner._select(run, 0.5, 0.05)
    assert run.measured == [episodes] * 2
    floor = 1.5 - float(hoeffding_radius(episodes, span=2.0, delta=0.05 / 2))
    assert run.proved.incumbent == Bounded("belief", np.full((H, S, A), 0.5).tolist(), floor)
    run.episodes = 61
    with pytest.raises(BudgetError, match="for measuring 2 policies"):
        learner._select(run, 0.5, 0.05)


@dataclass(frozen=True)
class Bounded:
    """A policy and what it is worth at least."""

    belief: str
    policy: list
    value_floor: float


def test_the_measuring_must_fit_into_the_budget_of_steps():
    run = Run()
    run.problem = alone(bold_or_careful(), budget=1000)
    with pytest.raises(BudgetError):
        OnlineToBatch()._select(run, 0.5, 0.05)
    assert not run.measured


def test_the_papers_rounds_need_what_the_safe_policy_costs():
    run = Run(given=0.2)
    size = Size.of(run.problem.known, 0)
    expected = safe_constants(size, margin=MARGIN - 0.2, epsilon=0.5, delta=0.1).iterations
    assert algorithm_4._paper_rounds(run, 0.5, 0.1) == expected
    with pytest.raises(CMPGError, match="T depends on what the safe policy costs"):
        algorithm_4._paper_rounds(Run(given=np.inf), 0.5, 0.1)
    with pytest.raises(CMPGError, match="T depends"):
        algorithm_4._paper_rounds(Run(given=-np.inf), 0.5, 0.1)


def test_a_mean_is_over_episodes_and_of_what_was_observed_where_something_was():
    problem = alone(bold_or_careful())
    seen = problem.roll_out(np.full((H, S, A), 0.5), 40)
    mean = algorithm_4._mean_value(problem, seen)
    assert mean == pytest.approx(float((seen.visits * problem.payoffs[0]).sum()) / 40)
    noisy = alone(bold_or_careful(), payoff_noise=0.5)
    seen = noisy.roll_out(np.full((H, S, A), 0.5), 40)
    assert algorithm_4._mean_value(noisy, seen) == pytest.approx(float(seen.observed.rewards[0].sum()) / 40)


@pytest.mark.parametrize(
    ("run", "status"),
    [
        ({"gap": 0.5, "ceilings": MARGIN}, ResponseStatus.CERTIFIED),
        ({"gap": 0.51}, ResponseStatus.UNPROVED),
        ({"ceilings": MARGIN + 0.01}, ResponseStatus.UNPROVED),
        ({"infeasible": "a proof"}, ResponseStatus.INFEASIBLE),
    ],
)
def test_a_measured_response_is_certified_where_gap_and_costs_are_proved(run, status):
    made = Run(**run)
    answer = algorithm_4._measured_response(made, 0.5, 0.1)
    assert (answer.status, answer.epsilon, answer.delta, made.bounded) == (status, 0.5, 0.1, 1)
    if status is ResponseStatus.INFEASIBLE:
        assert answer.message == "a proof"


def test_a_mean_over_single_steps_is_the_mean_of_that_step():
    problem = alone(bold_or_careful(horizon=1))
    seen = problem.roll_out(np.full((1, S, A), 0.5), 64)
    assert algorithm_4._mean_value(problem, seen) == float((seen.visits * problem.payoffs[0]).sum()) / 64
