"""The game behind a door: the law of what is drawn, the budget, what is hidden, and environments that misbehave."""

import dataclasses

import numpy as np
import pytest
from behind_doors import WRONG, Door, Faulty, TableEnvironment, arrays_in, known_of, two_agent_game
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, chi2_contingency

from cmpg import learning
from cmpg.cmdp.evaluation import occupancy
from cmpg.errors import BudgetError, GameError, SimulatorError, UnsupportedError
from cmpg.games.joint.game import JointGame
from cmpg.learning.a_priori import APriori
from cmpg.learning.environment import EnvironmentSimulator
from cmpg.learning.generative import Adaptive
from cmpg.learning.multinomials import split, spread
from cmpg.learning.problem import InducedProblem
from cmpg.learning.samples import ProblemSpec
from cmpg.learning.simulator import GameSimulator
from cmpg.policy import JointPolicy
from cmpg.scenarios import grid_world_local

UNLIKELY = 1e-6
"""A correct simulator fails a statistical test here once in a million seeds."""


def stepped(game, seed=1, **options):
    return EnvironmentSimulator(
        TableEnvironment(game), known=known_of(game), rng=np.random.default_rng(seed), **options
    )


def fits(counts, probabilities):
    """Pearson's test of counts [..., m] against rows of probabilities [..., m], all rows together."""
    expected = counts.sum(axis=-1, keepdims=True) * probabilities
    used = expected > 0
    assert counts[~used].sum() == 0
    statistic = ((counts - expected)[used] ** 2 / expected[used]).sum()
    freedom = used.sum() - (counts.sum(axis=-1) > 0).sum()
    return chi2.sf(statistic, freedom) > UNLIKELY


def joint_rows(policy, h):
    return np.einsum("sa,sb->sab", policy[0][h], policy[1][h])


@pytest.mark.parametrize("build", [GameSimulator, "stepped"])
def test_roll_outs_follow_the_initial_law_the_policies_and_the_transition(build):
    game = two_agent_game()
    policy = game.random_policy(rng=np.random.default_rng(3))
    simulator = stepped(game) if build == "stepped" else GameSimulator(game, rng=np.random.default_rng(1))
    samples = simulator.roll_out(policy, 4000)
    assert fits(samples.visits[0].sum(axis=(1, 2)), game.initial)
    for h in range(game.horizon):
        assert fits(samples.visits[h].reshape(3, -1), joint_rows(policy, h).reshape(3, -1))
        assert samples.visits[h].sum() == 4000
    assert fits(samples.transitions, game.transition[:-1])
    assert np.array_equal(samples.transitions.sum(axis=-1), samples.visits[:-1])
    assert np.array_equal(samples.transitions.sum(axis=(1, 2, 3)), samples.visits[1:].sum(axis=(2, 3)))


def test_counts_by_multinomials_have_the_joint_law_of_stepped_episodes():
    game = two_agent_game(5)
    policy = game.random_policy(rng=np.random.default_rng(3))
    fast, slow = GameSimulator(game, rng=np.random.default_rng(1)), stepped(game)

    def observed(simulator, repeats):
        """What two episodes together did, again and again: visits to one state at each step."""
        rolled = (simulator.roll_out(policy, 2).visits for _ in range(repeats))
        return np.array([[visits[0, 0].sum(), visits[1, 2].sum(), visits[2, 1].sum()] for visits in rolled])

    def same_law(first, second):
        both = np.stack([np.bincount(triples @ [9, 3, 1], minlength=27) for triples in (first, second)])
        return chi2_contingency(both[:, both.sum(axis=0) >= 20]).pvalue > UNLIKELY

    by_multinomials, by_steps = observed(fast, 3000), observed(slow, 3000)
    assert same_law(by_multinomials, by_steps)
    # Negative control: each step has the right law, but forgets the one before.
    forgetful = np.stack([np.roll(by_multinomials[:, h], h) for h in range(3)], axis=1)
    assert not same_law(forgetful, by_steps)


@pytest.mark.parametrize("noise", [None, 0.5])
@pytest.mark.parametrize("sparse", [False, True])
def test_draws_at_every_entry_follow_the_induced_transition(noise, sparse):
    game = two_agent_game(7, sparse=sparse)
    policy = game.random_policy(rng=np.random.default_rng(2))
    for agent in (0, 1):
        simulator = GameSimulator(game, rng=np.random.default_rng(agent), payoff_noise=noise)
        samples = simulator.draw_induced(agent, policy, count=3000)
        assert fits(samples.transitions, game.at(policy).induced_cmdp(agent).transition[:-1])
        steps = game.horizon if noise is not None else game.horizon - 1
        assert (samples.visits[:steps] == 3000).all()
        assert simulator.ledger.total == 3000 * steps * 3 * game.num_actions[agent]


def test_a_sparse_game_draws_like_its_dense_twin():
    game = two_agent_game(11, sparse=True)
    import scipy.sparse as sp

    matrices = [sp.csr_array(step.reshape(-1, 3)) for step in game.transition]
    twin = dataclasses.replace(game, transition=matrices)
    policy = game.uniform_policy()
    for simulator in (GameSimulator(g, rng=np.random.default_rng(4), reveal_support=True) for g in (game, twin)):
        assert fits(simulator.roll_out(policy, 5000).transitions, game.transition[:-1])
        assert np.array_equal(simulator.known.support, game.transition > 0)
        assert fits(simulator.draw(h=1, s=2, a=(1, 2), count=10_000), game.transition[1, 2, 1, 2])


def test_stepped_draws_follow_the_transition_and_count_the_same_samples():
    game = two_agent_game(13, horizon=2)
    policy = game.random_policy(rng=np.random.default_rng(0))
    simulator = stepped(game)
    assert fits(simulator.draw(h=0, s=1, a=(0, 2), count=2000), game.transition[0, 1, 0, 2])
    samples = simulator.draw_induced(1, policy, count=200)
    assert fits(samples.transitions, game.at(policy).induced_cmdp(1).transition[:-1])
    everything = simulator.draw_all(count=100)
    assert fits(everything.transitions, game.transition[:-1])
    assert simulator.ledger.total == 2000 + 200 * 3 * 3 + 100 * 3 * 6


def payoff_tables(game, policy, agent):
    cmdp = game.at(policy).induced_cmdp(agent)
    return np.concatenate([cmdp.reward[None], np.broadcast_to(cmdp.costs, (1, *cmdp.reward.shape))])


@pytest.mark.parametrize("noise", [None, 0.3])
def test_totals_of_episodes_have_the_mean_of_values_and_costs(noise):
    game = two_agent_game(17)
    policy = game.random_policy(rng=np.random.default_rng(5))
    simulator = GameSimulator(game, rng=np.random.default_rng(6), payoff_noise=noise)
    tables = payoff_tables(game, policy, 1) if noise is None else np.zeros((2, 3, 3, 3))
    totals = simulator.add_up(1, policy, tables, 200_000)
    position = game.at(policy)
    assert totals.episodes == 200_000
    assert simulator.ledger.total == 600_000
    assert np.allclose(totals.means, [position.values[1], position.costs[0]], atol=0.02)


def test_totals_by_groups_have_the_law_of_stepped_episodes():
    """What an agent adds up is a number with few values here, so its whole law can be compared."""
    game = two_agent_game(3, horizon=3, states=2, actions=(2, 2))
    policy = game.random_policy(rng=np.random.default_rng(1))
    rng = np.random.default_rng(2)
    tables = rng.integers(0, 2, size=(1, 3, 2, 2)).astype(float)
    drawn = GameSimulator(game, rng=rng).add_up(0, policy, tables, 20_000)
    other = stepped(game).add_up(0, policy, tables, 20_000)
    assert np.array_equal(drawn.values, other.values)
    assert chi2_contingency(np.stack([drawn.counts, other.counts])).pvalue > UNLIKELY


def test_totals_observe_payoffs_that_are_not_known():
    game = two_agent_game(43)
    known = dataclasses.replace(known_of(game), payoffs=None)
    simulator = EnvironmentSimulator(TableEnvironment(game), known=known, rng=np.random.default_rng(0))
    policy = game.uniform_policy()
    totals = simulator.add_up(1, policy, np.zeros((2, 3, 3, 3)), 5_000)
    assert np.allclose(totals.means, [game.at(policy).values[1], game.at(policy).costs[0]], atol=0.15)


def test_splitting_one_by_one_or_at_once_has_the_same_law():
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(4), size=3)
    many = split(np.full(3, 6_000), rows, np.arange(3), rng=rng)
    single = split(np.ones(18_000, dtype=np.int64), rows, np.repeat(np.arange(3), 6_000), rng=rng)
    for parts, groups in ((many, 3), (single, 18_000)):
        table = np.zeros((groups, 4), dtype=np.int64)
        np.add.at(table, (parts.groups, parts.cells), parts.counts)
        assert fits(table.reshape(3, -1, 4).sum(axis=1), rows)


def test_noisy_payoffs_are_two_point_around_the_truth():
    game = two_agent_game(19, horizon=1)
    policy = game.random_policy(rng=np.random.default_rng(5))
    simulator = GameSimulator(game, rng=np.random.default_rng(6), payoff_noise=0.25)
    assert simulator.known.payoffs is None
    assert simulator.known.reward_bounds[0, 0, 1] == game.rewards[0].max() + 0.25
    cmdp = game.at(policy).induced_cmdp(0)
    once = simulator.draw_all(count=1)
    off = np.abs(once.observed.rewards - game.rewards)
    assert np.allclose(off, 0.25)
    many = simulator.draw_induced(0, policy, count=10**8)
    assert np.allclose(many.observed.rewards[0] / 10**8, cmdp.reward, atol=2e-3)
    assert np.allclose(many.observed.costs / 10**8, cmdp.costs, atol=2e-3)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 5), st.sampled_from([0, 1, 7, 10**15]))
def test_spreading_keeps_every_count_and_draws_nothing_impossible(seed, rows, outcomes, count):
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.ones(outcomes), size=rows) * (rng.random((rows, outcomes)) < 0.7)
    chances[:, rng.integers(outcomes)] += 1e-3
    chances /= chances.sum(axis=1, keepdims=True)
    counts = np.full(rows, count) * (rng.random(rows) < 0.8)
    drawn = spread(counts, chances, rng=rng)
    assert np.array_equal(drawn.sum(axis=1), counts)
    assert (drawn[chances == 0] == 0).all()
    assert (drawn >= 0).all()


def test_rows_that_rounding_takes_above_one_are_drawn_from():
    rows = np.array([[0.0, 1 + 2.3e-16], [1 + 2.3e-16, 0.0]])
    assert spread(np.array([5, 7]), rows, rng=np.random.default_rng(0)).tolist() == [[0, 5], [7, 0]]


def test_the_same_generator_gives_the_same_bits():
    game = two_agent_game(23)
    policy = game.uniform_policy()
    first, second = (
        GameSimulator(game, rng=np.random.default_rng(8), payoff_noise=0.1).roll_out(policy, 1000) for _ in range(2)
    )
    assert np.array_equal(first.transitions, second.transitions)
    assert np.array_equal(first.observed.rewards, second.observed.rewards)


def test_samples_add_up_and_what_one_agent_sees_is_a_sum():
    game = two_agent_game(29)
    simulator = GameSimulator(game, rng=np.random.default_rng(8))
    policy = game.uniform_policy()
    total = simulator.roll_out(policy, 100) + simulator.roll_out(policy, 50)
    own = total.seen_by(1)
    assert own.visits.shape == (3, 3, 3)
    assert np.array_equal(own.visits, total.visits.sum(axis=2))
    assert np.array_equal(own.transitions, total.transitions.sum(axis=2))
    assert np.allclose(own.visits / 150, occupancy(game.at(policy).induced_cmdp(1), policy[1]), atol=0.2)


# The budget.


def test_samples_are_counted_by_purpose_and_the_budget_is_kept():
    game = two_agent_game()
    simulator = GameSimulator(game, rng=np.random.default_rng(0), budget=100)
    policy = game.uniform_policy()
    simulator.roll_out(policy, 20, purpose="values")
    simulator.draw(h=0, s=0, a=(0, 0), count=30, purpose="model")
    with pytest.raises(BudgetError, match='33 samples for "values" are needed; 10 of the budget of 100 are left'):
        simulator.roll_out(policy, 11, purpose="values")
    assert simulator.ledger.by_purpose == {"values": 60, "model": 30}
    simulator.roll_out(policy, 3, purpose="values")
    assert simulator.ledger.left == 1


def test_a_stepped_environment_refuses_before_the_first_step():
    game = two_agent_game()
    simulator = stepped(game, budget=10)
    with pytest.raises(BudgetError):
        simulator.roll_out(game.uniform_policy(), 4)
    assert simulator.ledger.total == 0


@pytest.mark.parametrize("budget", [0, -5, 1.5, np.inf, np.nan])
def test_a_budget_must_be_a_positive_whole_number(budget):
    with pytest.raises(SimulatorError, match=f"budget is {budget}"):
        GameSimulator(two_agent_game(), rng=np.random.default_rng(0), budget=budget)


def test_more_samples_than_can_be_counted_are_refused():
    game = two_agent_game()
    simulator = GameSimulator(game, rng=np.random.default_rng(0))
    simulator.roll_out(game.uniform_policy(), 2**50)
    with pytest.raises(BudgetError, match=r"more than 9.007e\+15 in all cannot be counted"):
        simulator.roll_out(game.uniform_policy(), 2**51)
    assert simulator.ledger.total == 3 * 2**50


@pytest.mark.parametrize("count", [0, -1, 0.5, np.inf, np.nan])
def test_a_count_must_be_a_positive_whole_number(count):
    game = two_agent_game()
    with pytest.raises(SimulatorError, match=f"episodes is {count}"):
        GameSimulator(game, rng=np.random.default_rng(0)).roll_out(game.uniform_policy(), count)


def test_entries_that_do_not_exist_are_refused():
    simulator = GameSimulator(two_agent_game(), rng=np.random.default_rng(0))
    for wrong in ({"h": 3, "s": 0, "a": (0, 0)}, {"h": 0, "s": -1, "a": (0, 0)}, {"h": 0, "s": 0, "a": (0,)}):
        with pytest.raises(SimulatorError, match="there is no entry"):
            simulator.draw(**wrong, count=1)
    with pytest.raises(SimulatorError, match="count is 0"):
        simulator.draw(h=0, s=0, a=(0, 0), count=0)
    with pytest.raises(SimulatorError, match=r"episodes is 2\.5"):
        simulator.roll_out(two_agent_game().uniform_policy(), 2.5)


def test_a_game_without_a_shared_transition_is_refused_by_its_form():
    with pytest.raises(UnsupportedError, match=r"a LocalGame has no shared transition.*LocalSimulator") as caught:
        GameSimulator(grid_world_local(), rng=np.random.default_rng(0))
    assert caught.value.form == "LocalGame"


def test_every_exported_name_is_what_it_says():
    for name in learning.__all__:
        assert getattr(learning, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'lern'"):
        learning.lern  # noqa: B018


def test_a_discounted_game_has_no_episodes():
    game = JointGame(
        transition=np.ones((1, 1, 2, 1)),
        rewards=np.zeros((1, 1, 1, 2)),
        costs=[],
        thresholds=[],
        initial=[1.0],
        discount=0.9,
    )
    with pytest.raises(SimulatorError, match="discounted"):
        GameSimulator(game, rng=np.random.default_rng(0))


# What is hidden.


@pytest.mark.parametrize("learner", [Adaptive(max_count=2**12), APriori(slater=2.0)])
def test_learners_never_see_the_transition(learner):
    game = two_agent_game(31)
    simulator = GameSimulator(game, rng=np.random.default_rng(0))
    door = Door(simulator)
    response = learner(InducedProblem(door, 0, game.uniform_policy()), epsilon=0.8, delta=0.1)
    assert response.samples > 0
    # Nothing that the door lets through, and nothing in the answer, is the transition or a part of it.
    reachable = list(arrays_in([door.known, door.ledger, response]))
    assert len(reachable) > 5
    assert not any(np.shares_memory(array, game.transition) for array in reachable)
    hidden = game.at(game.uniform_policy()).induced_cmdp(0).transition
    assert not any(array.shape == hidden.shape and np.allclose(array, hidden) for array in reachable)


def test_the_door_of_the_test_above_shuts():
    with pytest.raises(AssertionError, match="_game"):
        _ = Door(GameSimulator(two_agent_game(), rng=np.random.default_rng(0)))._game


# Environments that misbehave.


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_answer_is_named_and_nothing_before_it_is_lost(kind):
    answer, message = WRONG[kind]
    game = two_agent_game(37)
    environment = Faulty(game, at=11, answer=answer)
    simulator = EnvironmentSimulator(environment, known=known_of(game), rng=np.random.default_rng(0))
    with pytest.raises(SimulatorError, match=message) as caught:
        simulator.roll_out(game.uniform_policy(), 10)
    assert simulator.ledger.total == 11
    assert caught.value.samples.visits.sum() == 10


def test_a_learner_hands_on_all_samples_when_the_environment_fails():
    game = two_agent_game(41, horizon=2)
    entries = 3 * 2
    environment = Faulty(game, at=3 * 64 * entries, answer=WRONG["state"][0])
    simulator = EnvironmentSimulator(environment, known=known_of(game), rng=np.random.default_rng(0))
    problem = InducedProblem(simulator, 0, game.uniform_policy())
    with pytest.raises(SimulatorError, match="returned the state 7") as caught:
        Adaptive(first_count=64)(problem, epsilon=1e-3, delta=0.1)
    assert caught.value.samples.visits.shape == (2, 3, 2)
    assert caught.value.samples.visits.sum() == simulator.ledger.total - 1 == 3 * 64 * entries - 1


def test_a_wrong_first_state_is_named():
    game = two_agent_game()
    environment = TableEnvironment(game)
    environment.reset = lambda rng: -1
    simulator = EnvironmentSimulator(environment, known=known_of(game), rng=np.random.default_rng(0))
    with pytest.raises(SimulatorError, match=r"reset\(rng\) returned the state -1"):
        simulator.roll_out(game.uniform_policy(), 1)


def test_an_environment_that_cannot_be_placed_can_still_be_rolled_out():
    game = two_agent_game()

    class Plain:
        def __init__(self):
            inner = TableEnvironment(game)
            self.reset, self.step = inner.reset, inner.step

    simulator = EnvironmentSimulator(Plain(), known=known_of(game), rng=np.random.default_rng(0))
    assert simulator.roll_out(game.uniform_policy(), 5).visits.sum() == 15
    with pytest.raises(SimulatorError, match="no method place"):
        simulator.draw(h=0, s=0, a=(0, 0), count=1)
    assert simulator.ledger.total == 15


def test_an_environment_with_unknown_payoffs_is_observed():
    game = two_agent_game(43)
    known = dataclasses.replace(known_of(game), payoffs=None)
    simulator = EnvironmentSimulator(TableEnvironment(game), known=known, rng=np.random.default_rng(0))
    samples = simulator.roll_out(game.uniform_policy(), 200)
    assert np.allclose(samples.observed.rewards, samples.visits * game.rewards)
    assert np.allclose(samples.observed.costs, samples.visits * game.costs)


def test_known_is_checked():
    good = {
        "num_actions": (2,),
        "thresholds": [1.0],
        "initial": [0.5, 0.5],
        "horizon": 2,
        "reward_bounds": [[[0.0, 1.0]]],
        "cost_bounds": [[[0.0, 1.0]]],
    }
    assert ProblemSpec(**good).cost_spans.tolist() == [[1.0, 1.0]]
    wrong = {
        "initial": [0.5, 0.4],
        "thresholds": [1.0, 2.0],
        "horizon": 0,
        "reward_bounds": [[[1.0, 0.0]]],
        "cost_bounds": [[[0.0, 1.0]] * 3],
    }
    for name, value in wrong.items():
        with pytest.raises(GameError, match=name.split("_")[0]):
            ProblemSpec(**{**good, name: value})


def test_known_payoffs_must_fit_each_other():
    table = (1, 2, 2, 3)
    good = {
        "rewards": np.ones((2, *table)),
        "costs": np.ones((1, *table)),
        "thresholds": [1.0],
        "initial": [0.5, 0.5],
        "horizon": 2,
    }
    assert ProblemSpec.from_payoffs(**good).policy_shapes == ((2, 2, 2), (2, 2, 3))
    assert ProblemSpec.from_payoffs(**{**good, "costs": [], "thresholds": []}).num_constraints == 0
    wrong = [
        ("rewards", np.ones((3, *table)), r"rewards has shape \[3, 1, 2, 2, 3\]; \[n, H or 1, S, \*A\]"),
        ("rewards", np.ones((2, 2)), r"rewards has shape \[2, 2\]"),
        ("costs", np.ones((1, 1, 3, 2, 3)), r"costs has shape \[1, 1, 3, 2, 3\]; \[1, 1, 2, 2, 3\]"),
        ("costs", np.ones((1, 3, 2, 2, 3)), "cost_bounds has 3 steps"),
        ("initial", [1.0], r"rewards has shape \[2, 1, 2, 2, 3\]; \[2, 1, 1, 2, 3\]"),
        ("support", np.ones((1, 2, 2, 2), dtype=bool), r"support has shape \[1, 2, 2, 2\]"),
        ("support", np.ones((3, 2, 2, 3, 2), dtype=bool), "support has 3 steps"),
    ]
    for name, value, told in wrong:
        with pytest.raises(GameError, match=told):
            ProblemSpec.from_payoffs(**{**good, name: value})


def test_a_policy_that_does_not_fit_is_refused():
    simulator = GameSimulator(two_agent_game(), rng=np.random.default_rng(0))
    with pytest.raises(Exception, match="the policy has 1 agents; the game has 2"):
        simulator.roll_out(JointPolicy.uniform([(3, 3, 2)]), 1)
