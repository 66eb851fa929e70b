"""Algorithm 3, adaptive and a priori, judged with the true model afterwards."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import binom

from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.errors import BudgetError, CMPGError
from cmpg.games.joint.game import JointGame
from cmpg.learning.a_priori import APriori
from cmpg.learning.bounds import Size, rigorous_constants
from cmpg.learning.confidence import bernstein_interval
from cmpg.learning.generative import Adaptive
from cmpg.learning.outcome import ResponseStatus
from cmpg.learning.problem import InducedProblem
from cmpg.learning.simulator import GameSimulator
from cmpg.learning.slater import cmdp_slack
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
    game = JointGame(
        transition=cmdp.transition,
        rewards=cmdp.reward[None],
        costs=cmdp.costs,
        thresholds=cmdp.thresholds,
        initial=cmdp.initial,
        horizon=cmdp.horizon,
    )
    simulator = GameSimulator(game, rng=np.random.default_rng(seed), **options)
    return InducedProblem(simulator, 0, game.uniform_policy())


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
    assert "the least possible cost is" in response.message


def test_without_slack_nothing_is_certified():
    cmdp = random_cmdp(2, states=3, horizon=2, slack=0.0)
    response = Adaptive(max_count=2**14)(alone(cmdp), epsilon=0.1, delta=0.1)
    assert response.status is ResponseStatus.LIMIT
    assert "no policy is proved to be feasible yet" in response.message
    assert not response.meets(cmdp.thresholds)


def test_a_budget_that_runs_out_leaves_the_best_policy_so_far():
    cmdp = random_cmdp(3)
    entries = 5 * 3 * 3
    problem = alone(cmdp, budget=entries * 3000)
    seen = []
    response = Adaptive(on_round=seen.append)(problem, epsilon=0.05, delta=0.1)
    assert response.status is ResponseStatus.LIMIT
    assert "are left" in response.message
    assert response.samples == problem.simulator.ledger.total == entries * 2048
    assert response.meets(cmdp.thresholds)
    truth = evaluate(cmdp, response.policy)
    assert response.value_floor <= truth.value
    assert (truth.costs <= cmdp.thresholds).all()
    assert [each.samples_per_entry for each in seen] == [0, 64, 128, 256, 512, 1024, 2048]
    assert seen[-1].gap < seen[1].gap


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
