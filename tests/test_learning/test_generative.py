"""Algorithm 3, adaptive and a priori, judged with the true model afterwards."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import binom

from cmpg.cmdp.evaluation import evaluate, occupancy
from cmpg.cmdp.exact import Exact, greatest_slack
from cmpg.cmdp.model import CMDP
from cmpg.errors import BudgetError, CMPGError
from cmpg.games.joint.game import JointGame
from cmpg.learning import generative
from cmpg.learning.a_priori import APriori
from cmpg.learning.bounds import Size, rigorous_constants
from cmpg.learning.confidence import bernstein_interval, binomial_interval, estimate
from cmpg.learning.generative import Adaptive, bounded, cost_variances, current_in_box, safest
from cmpg.learning.outcome import BoundedPolicy, CurrentBounds, ResponseStatus
from cmpg.learning.problem import InducedProblem
from cmpg.learning.simulator import GameSimulator
from cmpg.learning.slater import cmdp_slack
from cmpg.paper.learning import behind_a_door
from cmpg.policy import JointPolicy
from cmpg.scenarios.paper import congestion_game, counter_example
from cmpg.scenarios.spectrum_sharing import spectrum

GRID_STEPS = ((0, 1), (1, 0), (0, -1), (-1, 0))


def with_slack(cmdp, slack):
    """The same CMDP with a threshold that leaves exactly this slack."""
    return dataclasses.replace(cmdp, thresholds=cmdp.thresholds - cmdp_slack(cmdp) + slack)


def random_cmdp(seed, *, states=5, actions=3, horizon=4, constraints=1, slack=0.5):
    rng = np.random.default_rng(seed)
    shape = (horizon, states, actions)
    cmdp = CMDP(
        transition=rng.dirichlet(np.ones(states), size=shape),
        reward=rng.random(shape),
        costs=rng.random((constraints, *shape)),
        thresholds=np.ones(constraints),
        initial=np.full(states, 1 / states),
        horizon=horizon,
    )
    return with_slack(cmdp, slack)


def congestion_agent():
    """One agent of the congestion game among uniform others, its reward scaled to [0, 1]."""
    game = congestion_game()
    cmdp = game.at(game.uniform_policy()).induced_cmdp(0)
    reward = (cmdp.reward - cmdp.reward.min()) / np.ptp(cmdp.reward)
    return with_slack(dataclasses.replace(cmdp, reward=reward), 0.25)


def grid_agent():
    """One agent of the grid world on its own cell, its reward scaled to [0, 1], the other at random."""
    cells = [(x, y) for x in range(4) for y in range(4)]
    index = {cell: i for i, cell in enumerate(cells)}
    moves = np.zeros((1, 16, 4, 16))
    for (x, y), i in index.items():
        for a, (dx, dy) in enumerate(GRID_STEPS):
            moves[0, i, a, index.get((x + dx, y + dy), i)] = 1.0
    reward = np.zeros((1, 16, 4))
    for cell, value in {(1, 0): 2, (0, 1): 1, (3, 2): 10}.items():
        reward[0, index[cell]] = value / 10
    other = [np.eye(16)[0]]
    for _ in range(5):
        other.append(other[-1] @ moves[0].mean(axis=1))
    meets = np.array(other)
    meets[:, [index[0, 0], index[3, 2]]] = 0.0
    costs = np.broadcast_to(meets[None, :, :, None], (1, 6, 16, 4))
    return CMDP(transition=moves, reward=reward, costs=costs, thresholds=[0.1], initial=np.eye(16)[0], horizon=6)


def alone(cmdp, seed=0, **options):
    """A CMDP as the problem of the only agent of a game that is behind a door."""
    return behind_a_door(cmdp, np.random.default_rng(seed), **options)


def keeps_its_word(cmdp, response):
    """Whether what the response claims is true of the true model."""
    truth, best = evaluate(cmdp, response.policy), Exact()(cmdp).value
    return (
        bool((truth.costs <= cmdp.thresholds + 1e-12).all())
        and bool((truth.costs <= response.cost_ceilings + 1e-12).all())
        and response.value_floor - 1e-12 <= truth.value <= best + 1e-12 <= response.value_ceiling + 2e-12
        and best - truth.value <= response.epsilon
    )


# Adaptive.


@pytest.mark.parametrize(
    ("build", "epsilon", "notes"),
    [
        (congestion_agent, 0.1, 1024),
        (lambda: random_cmdp(0), 0.5, 1024),
        (lambda: random_cmdp(0), 0.1, 25_000),
        (grid_agent, 0.1, 8192),
    ],
)
def test_adaptive_draws_no_more_samples_than_the_notes_say(build, epsilon, notes):
    cmdp = build()
    for learner in (Adaptive(), Adaptive(interval=bernstein_interval), Adaptive(interval=None)):
        response = learner(alone(cmdp), epsilon=epsilon, delta=0.1)
        assert response.certified
        assert response.samples_per_entry <= notes
        assert keeps_its_word(cmdp, response)


def test_adaptive_keeps_its_word_over_many_seeds():
    failures = 0
    for seed in range(60):
        cmdp = random_cmdp(seed, states=3, actions=2, horizon=2, slack=0.3)
        response = Adaptive()(alone(cmdp, seed), epsilon=0.2, delta=0.1)
        assert response.certified
        assert response.gap <= 0.2
        failures += not keeps_its_word(cmdp, response)
    assert failures <= binom.ppf(0.999, 60, 0.1)


@pytest.mark.parametrize("constraints", [0, 2, 3])
def test_adaptive_takes_any_number_of_constraints(constraints):
    cmdp = random_cmdp(constraints, states=3, horizon=3, constraints=constraints, slack=0.2 if constraints else 0.0)
    response = Adaptive()(alone(cmdp), epsilon=0.3, delta=0.1)
    assert response.certified
    assert response.cost_ceilings.shape == (constraints,)
    assert response.meets(cmdp.thresholds)
    assert keeps_its_word(cmdp, response)


def test_adaptive_learns_rewards_and_costs_too():
    cmdp = random_cmdp(5, states=2, actions=2, horizon=2, slack=0.4)
    problem = alone(cmdp, payoff_noise=0.1)
    response = Adaptive()(problem, epsilon=0.2, delta=0.1)
    assert response.certified
    assert keeps_its_word(cmdp, response)
    assert problem.simulator.ledger.total == response.samples >= response.samples_per_entry * 2 * 2 * 2
    # Knowing them is cheaper.
    assert Adaptive()(alone(cmdp), epsilon=0.2, delta=0.1).samples < response.samples


def test_adaptive_answers_one_of_several_agents():
    game = spectrum()
    policy = game.random_policy(rng=np.random.default_rng(1))
    idle = np.zeros(game.policy_shapes[0])
    idle[..., 0] = 1.0
    policy = policy.replace(0, idle).replace(2, idle).replace(1, 0.7 * idle + 0.3 * policy[1])
    simulator = GameSimulator(game, rng=np.random.default_rng(0))
    response = Adaptive()(InducedProblem(simulator, 0, policy, purpose="agent 0"), epsilon=0.1, delta=0.1)
    assert response.certified
    assert keeps_its_word(game.at(policy).induced_cmdp(0), response)
    assert simulator.ledger.by_purpose == {"agent 0": response.samples}


def test_where_the_transition_does_not_matter_nothing_is_drawn():
    game = counter_example()
    simulator = GameSimulator(game, rng=np.random.default_rng(0))
    policy = game.uniform_policy()
    response = Adaptive()(InducedProblem(simulator, 0, policy), epsilon=1e-9, delta=0.1)
    assert response.certified
    assert simulator.ledger.total == response.samples == 0
    assert keeps_its_word(game.at(policy).induced_cmdp(0), response)
    support = Adaptive()(alone(grid_agent(), reveal_support=True), epsilon=1e-6, delta=0.1)
    assert support.certified
    assert support.samples == 0


def test_a_known_support_saves_samples():
    cmdp = random_cmdp(8, states=4, actions=2, horizon=3)
    kernel = np.eye(4)[cmdp.transition.argmax(axis=-1)]
    kernel[0, 0] = cmdp.transition[0, 0]
    cmdp = with_slack(dataclasses.replace(cmdp, transition=kernel), 0.4)
    told, untold = (Adaptive()(alone(cmdp, reveal_support=reveal), epsilon=0.01, delta=0.1) for reveal in (True, False))
    assert keeps_its_word(cmdp, told)
    assert told.samples_per_entry < untold.samples_per_entry


def test_an_infeasible_cmdp_is_found_out():
    cmdp = random_cmdp(1, states=3, horizon=2, slack=-0.2)
    response = Adaptive()(alone(cmdp), epsilon=0.1, delta=0.1)
    assert response.status is ResponseStatus.INFEASIBLE
    assert not response.certified
    assert "costs at least" in response.message


def test_without_slack_nothing_is_certified():
    cmdp = random_cmdp(2, states=3, horizon=2, slack=0.0)
    response = Adaptive(max_count=2**14)(alone(cmdp), epsilon=0.1, delta=0.1)
    assert response.status is ResponseStatus.LIMIT
    assert "no policy is proved to be feasible yet" in response.message
    assert not response.meets(cmdp.thresholds)


def test_a_budget_that_runs_out_leaves_the_best_policy_so_far():
    cmdp = random_cmdp(3)
    problem = alone(cmdp, budget=40_000)
    seen = []
    response = Adaptive(on_round=seen.append)(problem, epsilon=0.05, delta=0.1)
    assert response.status is ResponseStatus.LIMIT
    assert "are left" in response.message
    assert 20_000 < response.samples == problem.simulator.ledger.total <= 40_000
    assert response.meets(cmdp.thresholds)
    truth = evaluate(cmdp, response.policy)
    assert response.value_floor <= truth.value
    assert (truth.costs <= cmdp.thresholds).all()
    assert [each.samples_per_entry for each in seen][:5] == [0, 64, 128, 256, 512]
    assert seen[-1].value_ceiling < seen[1].value_ceiling


def test_the_same_seed_gives_the_same_bits():
    cmdp = random_cmdp(4)
    first, second = (Adaptive()(alone(cmdp, 7), epsilon=0.5, delta=0.1) for _ in range(2))
    assert np.array_equal(first.policy, second.policy)
    assert first.value_floor == second.value_floor


# A priori.


@pytest.mark.parametrize("constraints", [1, 2])
def test_the_a_priori_mode_is_certified_with_its_number_of_samples(constraints):
    cmdp = random_cmdp(6, states=3, actions=2, horizon=3, constraints=constraints, slack=0.3)
    problem = alone(cmdp)
    response = APriori(slater=0.3)(problem, epsilon=0.2, delta=0.1)
    size = Size.of(problem.known, 0)
    assert response.certified
    assert response.samples == rigorous_constants(size, slater=0.3, epsilon=0.2, delta=0.1).samples
    assert problem.simulator.ledger.total == response.samples
    assert keeps_its_word(cmdp, response)


def test_a_slack_that_is_not_there_is_found_out():
    cmdp = random_cmdp(6, states=3, actions=2, horizon=3, slack=0.002)
    response = APriori(slater=0.5)(alone(cmdp), epsilon=0.2, delta=0.1)
    assert response.status is ResponseStatus.UNPROVED
    assert "costs at most" in response.message
    infeasible = random_cmdp(6, states=3, actions=2, horizon=3, slack=-0.5)
    assert APriori(slater=0.5)(alone(infeasible), epsilon=0.2, delta=0.1).status is ResponseStatus.INFEASIBLE


def test_modes_refuse_before_anything_is_drawn():
    problem = alone(random_cmdp(0), budget=10**6)
    with pytest.raises(BudgetError, match=r"APriori would take .* samples for one response; 1e\+06 are allowed"):
        APriori(slater=0.5)(problem, epsilon=0.1, delta=0.1)
    assert problem.simulator.ledger.total == 0


def test_modes_check_what_they_are_given():
    problem = alone(random_cmdp(0, constraints=2))
    for learner in (Adaptive(), APriori(slater=0.5)):
        with pytest.raises(CMPGError, match="delta is 1"):
            learner(problem, epsilon=0.1, delta=1.0)
    with pytest.raises(CMPGError, match="a positive one is needed"):
        APriori(slater=0.0)(problem, epsilon=0.1, delta=0.1)


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
    ("learned", "horizon", "steps", "entries"),
    [(False, 3, 3, 12), (False, 3, 1, 6), (True, 3, 1, 18), (False, 1, 1, 0), (True, 1, 1, 6)],
)
def test_entries_that_are_drawn_lead_somewhere_or_have_payoffs_to_learn(learned, horizon, steps, entries):
    game = JointGame(
        transition=np.full((steps, 2, 3, 2), 0.5),
        rewards=np.zeros((1, 1, 2, 3)),
        costs=np.zeros((1, 1, 2, 3)),
        thresholds=[1.0],
        initial=[0.5, 0.5],
        horizon=horizon,
    )
    simulator = GameSimulator(game, rng=np.random.default_rng(0), **({"payoff_noise": 0.5} if learned else {}))
    problem = generative.InducedProblem(simulator, 0, game.uniform_policy())
    run = generative._Rounds(problem, Adaptive(), epsilon=0.5, delta=0.1)
    assert run.entries == entries
    assert (run.latest.value_floor, run.latest.multipliers.tolist()) == (-np.inf, [0.0])
    assert run.latest.cost_ceilings.tolist() == [np.inf]
    assert (run.interval is not None) is True


def test_draws_go_where_an_optimistic_planner_may_go():
    """The third of three first actions leads to states where all is lost: nothing more is drawn there."""
    rng = np.random.default_rng(5)
    kernel = np.zeros((3, 7, 3, 7))
    kernel[:, :, :, 0] = 1.0
    kernel[0, 0] = [[0, 0.5, 0.5, 0, 0, 0, 0], [0, 0, 0, 0.5, 0.5, 0, 0], [0, 0, 0, 0, 0, 0.5, 0.5]]
    kernel[1, 1:5] = rng.dirichlet(np.ones(7), size=(4, 3))
    reward = rng.random((3, 7, 3))
    reward[1:, 5:] = -9.0
    cmdp = CMDP(
        transition=kernel,
        reward=reward,
        costs=np.zeros((1, 3, 7, 3)),
        thresholds=[1.0],
        initial=np.eye(7)[0],
        horizon=3,
    )
    run = generative._Rounds(alone(cmdp), Adaptive(), epsilon=0.05, delta=0.1)
    while not run.judge().certified:
        run.draw()
    assert keeps_its_word(cmdp, run.conclude())
    counts = run.samples.visits
    assert counts[0, 0, 0] == run.count > 1000
    assert counts[1, 5:].max() <= 256, "states that are worth nothing"
    assert counts[0, 1:].max() <= 128, "states that cannot be first"


def test_steps_that_are_alike_share_their_draws():
    """By brute force: rows of two steps have one law where the others do the same, and then one set of draws."""
    rng = np.random.default_rng(2)
    game = JointGame(
        transition=rng.dirichlet(np.ones(3), size=(1, 3, 2, 2)),
        rewards=np.zeros((2, 1, 3, 2, 2)),
        costs=np.zeros((0, 1, 3, 2, 2)),
        thresholds=[],
        initial=np.ones(3) / 3,
        horizon=5,
    )
    other = rng.integers(0, 2, size=(5, 3))
    policy = game.uniform_policy().replace(1, np.eye(2)[other])
    problem = InducedProblem(GameSimulator(game, rng=rng), 0, policy)
    laws = other[:4]
    for h, s in np.ndindex(4, 3):
        assert problem.first_alike[h, s] == next(g for g in range(4) if laws[g, s] == laws[h, s])
    different = sum(len(set(laws[:, s])) for s in range(3))
    assert problem.num_entries == different * 2 < 4 * 3 * 2
    samples = problem.top_up(problem.no_samples(), 50)
    assert problem.simulator.ledger.total == different * 2 * 50
    assert (samples.visits[:4] == 50).all()
    for h, s in np.ndindex(4, 3):
        assert (samples.transitions[h, s] == samples.transitions[problem.first_alike[h, s], s]).all()
        frequencies = samples.transitions[h, s] / 50
        assert np.abs(frequencies - game.transition[0][s, :, other[h, s]]).max() < 0.35
    where = np.zeros((4, 3, 2), dtype=bool)
    where[3, 0, 1] = True
    again = problem.top_up(samples, 80, where=where)
    assert problem.simulator.ledger.total == different * 2 * 50 + 30
    for h in range(4):
        assert again.visits[h, 0, 1] == (80 if problem.first_alike[h, 0] == problem.first_alike[3, 0] else 50)


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
    run = generative._Rounds(problem, learner or Adaptive(), epsilon=0.25, delta=0.12)
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


def test_an_agent_that_stays_keeps_its_policy_and_infeasible_problems_have_no_ceiling():
    problem = problem_of(coin_game(), nash=0.5)
    run = run_of(problem, count=3, work=11)
    run.proved.ceiling = 1.5
    run.proved.current = CurrentBounds(1.0, 1.25, np.zeros(1), np.ones(1))
    run.latest = BoundedPolicy("other", 9.0, np.zeros(1), np.array([2.5]), 4)
    problem.draw(2)
    kept = run.conclude()
    assert kept.policy is problem.policy[0]
    assert (kept.value_floor, kept.value_ceiling, kept.multipliers.tolist()) == (1.0, 1.5, [2.5])
    assert kept.cost_ceilings.tolist() == [1.0]
    assert (kept.samples, kept.samples_per_entry, kept.work) == (2 * 4, 3, 11)
    assert (kept.epsilon, kept.delta, kept.message) == (0.25, 0.12, generative.STAYS)
    assert kept.current is run.proved.current
    never = run.conclude(ResponseStatus.INFEASIBLE, "never")
    assert (never.value_ceiling, never.message) == (np.inf, "never")
    alone = run_of(problem_of(coin_game())).conclude()
    assert alone.current is None


def test_an_agent_that_stays_is_not_said_to_be_feasible():
    """The current policy earns all there is, and costs more than is allowed."""
    worth = np.broadcast_to([0.0, 1.0], (2, 3, 2))
    game = JointGame(
        transition=np.full((1, 3, 2, 3), 1 / 3),
        rewards=worth[None],
        costs=worth[None],
        thresholds=[1.0],
        initial=[1.0, 0.0, 0.0],
        horizon=2,
    )
    always = JointPolicy([np.broadcast_to([0.0, 1.0], (2, 3, 2))])
    simulator = GameSimulator(game, rng=np.random.default_rng(0))
    found = Adaptive()(InducedProblem(simulator, 0, always, nash_epsilon=0.5), epsilon=0.125, delta=0.1)
    assert found.stays(0.5)
    assert found.cost_ceilings[0] >= 2.0  # what it costs
    assert not found.meets(game.thresholds)


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
    seen = current_in_box(belief, policy)
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
