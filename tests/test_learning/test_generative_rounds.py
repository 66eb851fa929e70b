"""The rounds of the generative learner: what each begins with, takes, proves and counts."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from bare_runs import bare, failing

from cmpg.cmdp.evaluation import evaluate, occupancy
from cmpg.cmdp.exact import Exact, greatest_slack
from cmpg.errors import BudgetError, InfeasibleError, SimulatorError
from cmpg.games.joint.game import JointGame
from cmpg.learning import generative
from cmpg.learning.confidence import bernstein_interval, binomial_interval, estimate
from cmpg.learning.generative import Adaptive, bounded, cost_variances, present_in_box, safest
from cmpg.learning.optimism import FIRST_EPISODES
from cmpg.learning.outcome import BoundedPolicy, Present, Proved, ResponseStatus
from cmpg.learning.problem import InducedProblem
from cmpg.learning.simulator import GameSimulator


def coin_game(*, horizon=2, states=2, threshold=0.6, constraints=1, agents=1):
    """Each agent plays 0 or 1; the sum of what they play is paid and costs, more in later states."""
    shape = (horizon, states, *(2,) * agents)
    played = sum(np.indices((2,) * agents))
    worth = np.broadcast_to(played, shape) * np.linspace(0.5, 1.0, states).reshape(-1, *(1,) * agents)
    kernel = np.random.default_rng(states).dirichlet(np.ones(states), size=shape)
    return JointGame(
        transition=kernel,
        rewards=np.stack([worth] * agents),
        costs=np.stack([worth / 2] * constraints) if constraints else np.zeros((0, *shape)),
        thresholds=[threshold] * constraints,
        initial=np.full(states, 1 / states),
        horizon=horizon,
    )


def problem_of(game, *, nash=None, seed=0, **options):
    simulator = GameSimulator(game, rng=np.random.default_rng(seed), **options)
    return InducedProblem(simulator, 0, game.uniform_policy(), nash_epsilon=nash)


def run_of(problem, learner=None, **attributes):
    run = generative._Run(problem, learner or Adaptive(), epsilon=0.25, delta=0.12)
    for name, value in attributes.items():
        setattr(run, name, value)
    return run


@pytest.mark.parametrize(("most", "counts"), [(63, [0]), (64, [0, 64]), (127, [0, 64]), (200, [0, 64, 128])])
def test_rounds_go_on_while_the_next_one_is_allowed(most, counts):
    seen = []
    problem = problem_of(coin_game())
    problem.simulator.draw_induced(0, problem.policy, count=5, purpose="before")
    found = Adaptive(max_count=most, on_round=seen.append)(problem, epsilon=1e-6, delta=0.1)
    assert found.status is ResponseStatus.LIMIT
    assert [each.samples_per_entry for each in seen] == counts
    assert (found.samples_per_entry, found.samples) == (counts[-1], problem.simulator.ledger.total - 5 * 4)


def test_faults_go_on_with_the_samples_of_all_rounds(monkeypatch):
    for lost, visits in ((None, 64), ("some", 67)):
        problem = problem_of(coin_game())
        draw, times = InducedProblem.draw, []

        def broken(self, count, lost=lost, times=times, draw=draw):
            times.append(count)
            if len(times) == 1:
                return draw(self, count)
            fault = SimulatorError("broken")
            fault.samples = None if lost is None else draw(self, 3)
            raise fault

        monkeypatch.setattr(InducedProblem, "draw", broken)
        with pytest.raises(SimulatorError) as caught:
            Adaptive()(problem, epsilon=1e-6, delta=0.1)
        assert times == [64, 64]
        assert caught.value.samples.transitions.sum(axis=-1).tolist() == [[[visits] * 2] * 2]
        monkeypatch.undo()


def test_a_run_begins_with_nothing():
    problem = problem_of(coin_game(threshold=0.5))
    problem.simulator.draw_induced(0, problem.policy, count=7, purpose="before")
    run = run_of(problem, Adaptive(first_count=16))
    assert (run.count, run.target, run.rounds, run.work) == (0, 16, 0, 0)
    assert run.before == problem.simulator.ledger.total == 7 * 4
    assert run.latest.policy is problem.policy[0]
    assert run.latest.work == 0
    assert run.proved.thresholds.tolist() == [0.5]
    run.draw()
    assert (run.count, run.target, run.rounds) == (16, 32, 1)
    assert run.samples.transitions.sum(axis=-1).tolist() == [[[16, 16], [16, 16]]]
    run.draw()
    assert (run.count, run.target, run.rounds) == (32, 64, 2)
    assert run.samples.transitions.sum(axis=-1).tolist() == [[[32, 32], [32, 32]]]


@pytest.mark.parametrize(
    ("states", "horizon", "options", "given", "used"),
    [
        (32, 2, {}, bernstein_interval, bernstein_interval),
        (33, 2, {}, bernstein_interval, None),
        (2, 2, {}, None, None),
        (33, 2, {"payoff_noise": 0.1}, bernstein_interval, bernstein_interval),
        (2, 2, {"payoff_noise": 0.1}, None, binomial_interval),
        (33, 1, {}, bernstein_interval, bernstein_interval),
        (33, 1, {}, None, binomial_interval),
    ],
)
def test_boxes_are_for_few_states_for_payoffs_and_for_single_steps(states, horizon, options, given, used):
    problem = problem_of(coin_game(states=states, horizon=horizon), **options)
    assert run_of(problem, Adaptive(interval=given)).interval is used


@pytest.mark.parametrize(
    ("count", "entries", "horizon", "batches"),
    [(64, 8, 2, 1), (1024, 2, 2, 2), (1024, 3, 2, 2), (1024, 4, 2, 4), (1024, 4, 4, 2), (2048, 4, 2, 8)],
)
def test_one_policy_may_be_played_for_half_of_what_the_model_took(count, entries, horizon, batches):
    run = bare(generative._Run, count=count, entries=entries, problem=SimpleNamespace(shape=(horizon, 2, 2)))
    assert run.most_episodes == FIRST_EPISODES * batches
    assert batches == 1 or FIRST_EPISODES * batches * horizon <= count * entries / 2


def test_what_is_asked_for_is_settled_at_epsilon_exactly():
    policy = BoundedPolicy(np.zeros((1, 1, 2)), 1.0, np.zeros(1), np.zeros(1), 0)
    for nash, ceiling, floor, settled in (
        (None, 1.25, -9.0, True),
        (None, 1.2500001, -9.0, False),
        (0.5, 1.5, 1.0, True),  # stays
        (0.5, 1.5000001, 1.0, False),
        (0.5, 1.5, 0.0, True),  # leaves
    ):
        proved = Proved(np.ones(1))
        proved.ceiling = ceiling
        proved.incumbent = policy if nash is None or floor == 0.0 else None
        proved.present = Present(floor, 0.25 if floor == 0.0 else np.inf, np.zeros(1), np.ones(1))
        run = bare(generative._Run, proved=proved, epsilon=0.25, problem=SimpleNamespace(nash_epsilon=nash))
        assert run.settled is settled


class Recorded:
    """Stands in for the parts of a round, and writes down what they are given."""

    def __init__(self, monkeypatch, run):
        self.shares, self.drawn, self.boxes = [], [], []
        belief = SimpleNamespace(
            box=SimpleNamespace(nominal="empirical"), optimistic=SimpleNamespace(nominal="optimistic")
        )
        monkeypatch.setattr(generative, "empirical_cmdp", lambda *_: "without a box")
        monkeypatch.setattr(
            generative, "estimate", lambda *_, delta, interval: self.shares.append((delta, interval)) or belief
        )
        run._bound_by_box = self.boxes.append
        run._bound_by_draws = lambda *given: self.drawn.append(given)
        run.conclude = lambda *given: given


def test_rounds_share_delta_and_halve_it_between_box_and_draws(monkeypatch):
    run = run_of(problem_of(coin_game()), rounds=0)
    seen = Recorded(monkeypatch, run)
    run.judge()
    run.rounds = 1
    run.judge()
    run.rounds = 3
    run.judge()
    assert seen.shares == [(each, binomial_interval) for each in (0.12, 0.03, 0.005)]
    assert [given[:2] for given in seen.drawn] == [("empirical", "optimistic")] * 2
    assert [given[2] for given in seen.drawn] == [0.03, 0.005]
    assert len(seen.boxes) == 3
    run.interval = None
    run.judge()
    assert seen.drawn[2] == ("without a box", "without a box", 0.01)
    assert len(seen.shares) == len(seen.boxes) == 3


def test_single_steps_have_nothing_to_draw_and_keep_their_share(monkeypatch):
    run = run_of(problem_of(coin_game(horizon=1), payoff_noise=0.1), rounds=1)
    seen = Recorded(monkeypatch, run)
    run.judge()
    assert seen.shares == [(0.06, binomial_interval)]
    assert seen.drawn == []


def test_draws_are_not_looked_at_where_the_box_has_settled_it(monkeypatch):
    run = run_of(problem_of(coin_game()), rounds=1)
    seen = Recorded(monkeypatch, run)
    run._bound_by_box = lambda _: run.proved.consider(BoundedPolicy(None, 1.0, np.zeros(1), np.zeros(1), 0))
    run.proved.ceiling = 1.25
    assert run.judge() == ()
    assert seen.drawn == []
    run._bound_by_box = failing(InfeasibleError("never"))
    assert run.judge() == (ResponseStatus.INFEASIBLE, "never")


def test_a_box_lowers_the_ceiling_offers_a_candidate_and_counts_both(monkeypatch):
    candidate = BoundedPolicy(None, 0.5, np.zeros(1), np.zeros(1), 7)
    known = Present(0.25, 0.75, np.zeros(1), np.ones(1))
    monkeypatch.setattr(generative, "optimistic_response", lambda _: SimpleNamespace(bound=2.0, work=5))
    monkeypatch.setattr(generative, "tightened_candidate", lambda _: candidate)
    monkeypatch.setattr(generative, "present_in_box", lambda *_: known)
    for nash, floor in ((None, -np.inf), (0.5, 0.25)):
        run = run_of(problem_of(coin_game(), nash=nash), work=100)
        run._bound_by_box(SimpleNamespace(optimistic=None))
        assert (run.proved.ceiling, run.proved.incumbent, run.latest) == (2.0, candidate, candidate)
        assert run.proved.present.value_floor == floor
        assert run.work == 100 + 5 + 7


@pytest.mark.parametrize(("feasible", "work"), [(True, 100 + 4 + 9), (False, 100 + 4 + 2)])
def test_draws_give_a_ceiling_near_the_multipliers_of_the_optimum(monkeypatch, feasible, work):
    made, near, required, measured = {}, [], [], []

    class Optimistic:
        def __init__(self, **given):
            made.update(given)

        def require_feasible(self):
            required.append(True)

        def least_bound(self, multipliers):
            near.append(multipliers.tolist())
            return SimpleNamespace(value=1.5, work=4)

    best = SimpleNamespace(multipliers=np.array([3.0]), work=9)
    monkeypatch.setattr(generative, "Optimism", Optimistic)
    monkeypatch.setattr(
        generative, "Exact", lambda: (lambda _: best) if feasible else failing(InfeasibleError("never"))
    )
    game = coin_game(horizon=3)
    run = run_of(problem_of(game), work=100)
    run.draw()
    run._measure = lambda *given: measured.append(given)
    model = SimpleNamespace(reward="hoped", costs="feared")
    run._bound_by_draws("empirical", model, 0.04)
    assert (made["reward"], made["costs"], made["delta"]) == ("hoped", "feared", 0.02)
    assert made["thresholds"].tolist() == [0.6]
    assert made["initial"].tolist() == [0.5, 0.5]
    assert made["draws"].transitions.shape == (2, 2, 2, 2)
    # Rewards reach from 0 to 1 in each of three steps, costs as far as half of that.
    assert made["scales"].tolist() == pytest.approx([2.0])
    assert near == ([[3.0]] if feasible else [[np.inf]])
    assert required == ([] if feasible else [True])
    assert run.proved.ceiling == 1.5
    assert run.work == work
    assert measured == [("empirical", best if feasible else None, 0.04)]


def test_scales_of_costs_or_rewards_that_are_nothing_are_one(monkeypatch):
    made = []
    monkeypatch.setattr(
        generative,
        "Optimism",
        lambda **given: made.append(given["scales"].tolist()) or SimpleNamespace(least_bound=failing(RuntimeError)),
    )
    monkeypatch.setattr(generative, "Exact", lambda: lambda _: SimpleNamespace(multipliers=None))
    game = coin_game(constraints=2)
    free = np.stack([game.costs[0], np.zeros_like(game.costs[1])])
    for changed in (replace(game, costs=free), replace(game, costs=free, rewards=0 * game.rewards)):
        run = run_of(problem_of(changed))
        run.draw()
        with pytest.raises(RuntimeError):
            run._bound_by_draws(None, SimpleNamespace(reward=None, costs=None), 0.1)
    assert made == [[2.0, 1.0], [1.0, 1.0]]


def test_what_was_measured_of_a_candidate_is_kept():
    run = run_of(problem_of(coin_game(constraints=2)))
    found = SimpleNamespace(policy="table", multipliers="multipliers", work=6)
    floors, ceilings = np.array([1.25, 0.1, 0.2]), np.array([2.0, 0.3, 0.6])
    seen = SimpleNamespace(floors=floors, ceilings=ceilings, present=Present(1.0, 2.0, floors[1:], ceilings[1:]))
    run._consider(found, seen)
    ceilings[1] = 9.0
    assert (run.latest.policy, run.latest.multipliers, run.latest.work) == ("table", "multipliers", 6)
    assert (run.latest.value_floor, run.latest.cost_ceilings.tolist()) == (1.25, [0.3, 0.6])
    assert run.proved.incumbent is run.latest
    run._place(seen)
    assert (run.proved.present.value_floor, run.proved.present.value_ceiling) == (1.0, 2.0)


def test_room_for_others_is_left_only_where_it_has_a_price(monkeypatch):
    game = coin_game(constraints=2)
    run = run_of(problem_of(game, nash=0.8), count=64)
    empirical = game.at(game.uniform_policy()).induced_cmdp(0)
    tried = []
    monkeypatch.setattr(generative, "Exact", lambda: lambda cmdp: tried.append(cmdp.thresholds) or response)
    response = SimpleNamespace(work=0)
    for multipliers in ([0.5, 0.0], [0.0, 0.0]):
        run._tightened(
            empirical, SimpleNamespace(policy=run.latest.policy, multipliers=np.array(multipliers)), 0.1, caution=1.0
        )
    # ε/16 of 0.8 at a price of ½.
    assert (tried[1] - tried[0]).tolist() == pytest.approx([0.1, 0.0])


def test_an_agent_that_stays_keeps_its_policy_and_its_limits_and_infeasible_problems_have_no_ceiling():
    problem = problem_of(coin_game(), nash=0.5)
    run = run_of(problem, count=3, work=11)
    run.proved.ceiling = 1.5
    run.proved.present = Present(1.0, 1.25, np.zeros(1), np.ones(1))
    run.latest = BoundedPolicy("other", 9.0, np.zeros(1), np.array([2.5]), 4)
    problem.draw(2)
    kept = run.conclude()
    assert kept.policy is problem.policy[0]
    assert (kept.value_floor, kept.value_ceiling, kept.multipliers.tolist()) == (1.0, 1.5, [2.5])
    assert kept.cost_ceilings is problem.known.limits
    assert (kept.samples, kept.samples_per_entry, kept.work) == (2 * 4, 3, 11)
    assert (kept.epsilon, kept.delta, kept.message) == (0.25, 0.12, ResponseStatus.CERTIFIED.value)
    assert kept.present is run.proved.present
    never = run.conclude(ResponseStatus.INFEASIBLE, "never")
    assert (never.value_ceiling, never.message) == (np.inf, "never")
    alone = run_of(problem_of(coin_game())).conclude()
    assert alone.present is None


def beliefs(*, constraints=1, horizon=2):
    game = coin_game(constraints=constraints, horizon=horizon)
    problem = problem_of(game)
    return estimate(problem, problem.no_samples() + problem.draw(40), delta=0.1, interval=binomial_interval)


def extremes(belief, policy, table):
    """The least and the greatest of a table over the corners of a box of two states and two steps, one by one."""
    box = belief.box
    low, high = box.lower[0], box.upper[0]
    last = (policy[1] * table[1]).sum(axis=-1)
    ends = []
    for pick in (min, max):
        total = 0.0
        for s in range(2):
            for a in range(2):
                corners = (
                    (p, 1 - p) for p in (max(low[s, a, 0], 1 - high[s, a, 1]), min(high[s, a, 0], 1 - low[s, a, 1]))
                )
                future = pick(np.dot(each, last) for each in corners)
                total += 0.5 * policy[0, s, a] * (table[0, s, a] + future)
        ends.append(total)
    return ends


def test_a_box_bounds_a_policy_by_its_corners():
    belief = beliefs()
    policy = np.array([[[0.25, 0.75], [0.5, 0.5]], [[0.1, 0.9], [0.7, 0.3]]])
    nominal = belief.box.nominal
    worth, costs = extremes(belief, policy, nominal.reward), extremes(belief, policy, nominal.costs[0])
    found = bounded(belief, policy)
    assert found.value_floor == pytest.approx(worth[0])
    assert found.cost_ceilings.tolist() == pytest.approx([costs[1]])
    assert (found.multipliers.tolist(), found.work) == ([0.0], 2)
    more = bounded(belief, policy, multipliers=np.array([3.0]), work=5)
    assert (more.multipliers.tolist(), more.work) == ([3.0], 7)
    seen = present_in_box(belief, policy)
    assert (seen.value_floor, seen.value_ceiling) == pytest.approx(worth)
    assert (seen.cost_floors[0], seen.cost_ceilings[0]) == pytest.approx(costs)
    assert worth[0] < evaluate(nominal, policy).value < worth[1]


def test_the_safest_policy_has_the_greatest_slack_or_the_best_value():
    belief = beliefs()
    slack, found = greatest_slack(belief.box.nominal), safest(belief)
    assert np.array_equal(found.policy, slack.policy)
    assert found.work == len(slack.plans) + 2
    assert found.multipliers.tolist() == [0.0]
    free = beliefs(constraints=0)
    best = safest(free)
    assert evaluate(free.box.nominal, best.policy).value == pytest.approx(Exact()(free.box.nominal).value)
    assert best.work == 1 + 1


def test_solving_with_other_thresholds_adds_two_bounds_to_the_work():
    belief = beliefs()
    inside = replace(belief.box.nominal, thresholds=np.array([0.3]))
    found, exact = generative._solve(belief, np.array([0.3])), Exact()(inside)
    assert np.array_equal(found.policy, exact.policy)
    assert found.work == exact.work + 2
    assert np.array_equal(found.multipliers, exact.multipliers)
    assert generative._solve(belief, np.array([-0.1])) is None


def test_variances_of_three_steps_are_summed_over_all_but_the_last():
    game = coin_game(horizon=3, constraints=2)
    cmdp = game.at(game.uniform_policy()).induced_cmdp(0)
    policy = np.random.default_rng(1).dirichlet(np.ones(2), size=(3, 2))
    visits = occupancy(cmdp, policy)
    model, chance = np.zeros(2), np.zeros(2)
    for j in range(2):
        last = (policy[2] * cmdp.costs[j, 2]).sum(axis=-1)
        middle = (policy[1] * (cmdp.costs[j, 1] + cmdp.transition[1] @ last)).sum(axis=-1)
        for h, ahead in enumerate((middle, last)):
            for s in range(2):
                for a in range(2):
                    row = cmdp.transition[h, s, a]
                    spread = row @ (ahead - row @ ahead) ** 2
                    chance[j] += visits[h, s, a] * spread
                    model[j] += visits[h, s, a] ** 2 * spread
    found = cost_variances(cmdp, policy)
    assert found[0].tolist() == pytest.approx(model.tolist())
    assert found[1].tolist() == pytest.approx(chance.tolist())


def test_a_budget_that_ends_a_round_says_so_and_leaves_what_is_proved():
    problem = problem_of(coin_game(), budget=64 * 4 + 10)
    found = Adaptive()(problem, epsilon=1e-6, delta=0.1)
    assert isinstance(found.message, str)
    assert found.message.startswith("with 64 samples of every entry")
    with pytest.raises(BudgetError) as stop:
        problem.draw(64)
    assert found.message.endswith(str(stop.value))


@pytest.mark.parametrize("nash", [None, 0.2])
def test_every_dynamic_program_of_a_run_is_counted_once(monkeypatch, nash):
    spent = []

    def counting(function, work):
        def counted(*given, **named):
            found = function(*given, **named)
            spent.append(work(found))
            return found

        return counted

    monkeypatch.setattr(generative, "optimistic_response", counting(generative.optimistic_response, lambda f: f.work))
    monkeypatch.setattr(generative, "tightened_candidate", counting(generative.tightened_candidate, lambda f: f.work))
    ceiling = generative.Optimism.least_bound
    monkeypatch.setattr(generative.Optimism, "least_bound", counting(ceiling, lambda f: f.work))
    inside, exact = [], Exact()
    draws, box = generative._Run._bound_by_draws, generative._Run._bound_by_box

    def solve(cmdp):
        found = exact(cmdp)
        if inside[-1] == "draws":
            spent.append(found.work)
        return found

    for name, method in (("draws", draws), ("box", box)):
        monkeypatch.setattr(
            generative._Run, f"_bound_by_{name}", lambda self, *a, n=name, m=method: inside.append(n) or m(self, *a)
        )
    monkeypatch.setattr(generative, "Exact", lambda: solve)
    game = coin_game(agents=2, horizon=3, states=3, threshold=1.0)
    learner = Adaptive(interval=binomial_interval if nash is None else None)
    found = learner(problem_of(game, nash=nash), epsilon=0.1 if nash is None else nash / 4, delta=0.1)
    assert found.status is ResponseStatus.CERTIFIED
    assert "draws" in inside
    assert found.work == sum(spent) > 10
