"""The shared model: its bounds hold for every policy and agent, and are exact where nothing is uncertain."""

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from behind_doors import WRONG, Door, Faulty, known_of, two_agent_game
from hypothesis import given, settings
from hypothesis import strategies as st

from cmpg import deadline
from cmpg.equilibrium.best_responses import certify_with_best_responses
from cmpg.equilibrium.result import Status
from cmpg.equilibrium.solve import solve
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.errors import CMPGError, SimulatorError
from cmpg.games.joint.game import JointGame
from cmpg.learning import shared
from cmpg.learning.confidence import binomial_interval
from cmpg.learning.environment import EnvironmentSimulator
from cmpg.learning.joint_model import JointModel, model_of
from cmpg.learning.outcome import judge
from cmpg.learning.shared import learn_shared
from cmpg.learning.simulator import GameSimulator
from cmpg.policy import JointPolicy
from cmpg.scenarios import counter_example, spectrum
from strategies import cheapest_policy


def hidden(game, seed=0, **options):
    return GameSimulator(game, rng=np.random.default_rng(seed), **options)


def binding_game(seed=0, *, horizon=3, slack=0.5, constraints=1):
    """A random game of two agents with a common reward, whose thresholds bind."""
    game = two_agent_game(seed, horizon=horizon)
    common = game.rewards[:1]
    costs = np.concatenate([0.5 + common / 10 + 0.1 * game.costs for _ in range(constraints)])
    bound = replace(game, rewards=np.concatenate([common, common]), costs=costs, thresholds=np.zeros(constraints))
    _, least = cheapest_policy(bound, np.ones(constraints) / constraints)
    return replace(bound, thresholds=np.full(constraints, least + slack))


def assert_right(game, result):
    assert result.certified, str(result)
    judged = judge(game, result)
    assert judged.feasible
    assert judged.gap <= result.epsilon


def assert_void(result, reason):
    assert not result.certified
    assert any(reason in each for each in result.void), result.void


class TestWhatIsCertifiedIsRight:
    @pytest.mark.parametrize("seed", range(8))
    def test_spectrum(self, seed):
        game = spectrum()
        assert_right(game, learn_shared(hidden(game, seed), epsilon=0.5, delta=0.1))

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("constraints", [1, 2])
    def test_a_game_whose_steps_differ(self, seed, constraints):
        game = binding_game(seed, constraints=constraints)
        assert_right(game, learn_shared(hidden(game, seed), epsilon=2.0, delta=0.1))

    @pytest.mark.parametrize("seed", range(10))
    def test_unknown_payoffs(self, seed):
        game = counter_example()
        result = learn_shared(hidden(game, seed, payoff_noise=0.5), epsilon=0.5, delta=0.1)
        assert_right(game, result)
        assert result.total_samples > 0

    def test_one_step_needs_no_sample(self):
        result = learn_shared(hidden(counter_example()), epsilon=1e-6, delta=0.1)
        assert_right(counter_example(), result)
        assert result.total_samples == 0

    def test_no_constraint(self):
        game = two_agent_game(3)
        free = replace(
            game, costs=np.zeros((0, 1, 3, 2, 3)), thresholds=[], rewards=np.stack([game.rewards[0], game.rewards[0]])
        )
        assert_right(free, learn_shared(hidden(free), epsilon=2.0, delta=0.1))

    def test_a_sparse_game_and_a_known_support(self):
        game = two_agent_game(11, sparse=True, horizon=2)
        common = replace(game, rewards=np.stack([game.rewards[0], game.rewards[0]]))
        matrices = [sp.csr_array(step.reshape(-1, 3)) for step in common.transition]
        sparse = replace(common, transition=matrices)
        told = learn_shared(hidden(sparse, reveal_support=True), epsilon=1.0, delta=0.1)
        untold = learn_shared(hidden(sparse), epsilon=1.0, delta=0.1)
        assert_right(common, told)
        assert_right(common, untold)
        assert told.total_samples <= untold.total_samples

    def test_no_potential_is_needed(self):
        """The certificate does not rest on one: whatever the ascent ends at is judged by the model alone."""
        game = two_agent_game(2, horizon=2)
        result = learn_shared(hidden(game), epsilon=2.0, delta=0.1)
        if result.certified:
            assert judge(game, result).right(2.0)
        else:
            assert result.void

    def test_it_works_through_the_door(self):
        game = spectrum()
        assert_right(game, learn_shared(Door(hidden(game)), epsilon=0.5, delta=0.1))

    def test_the_same_seed_gives_the_same_bits(self):
        first, second = (learn_shared(hidden(spectrum(), 5), epsilon=0.5, delta=0.1) for _ in range(2))
        assert first.policy.fingerprint() == second.policy.fingerprint()
        assert first.samples == second.samples


class TestTheModel:
    @given(st.integers(0, 2**32 - 1), st.sampled_from([None, 0.2]), st.sampled_from([50, 2000]))
    @settings(deadline=None, max_examples=25)
    def test_its_bounds_hold_wherever_the_true_game_is_inside(self, seed, noise, count):
        rng = np.random.default_rng(seed)
        game = binding_game(seed % 1000)
        simulator = GameSimulator(game, rng=rng, payoff_noise=noise)
        model = model_of(simulator.known, simulator.draw_all(count=count), delta=1e-6, interval=binomial_interval)
        inside = (model.lower[:-1] <= game.transition[:-1]) & (game.transition[:-1] <= model.upper[:-1])
        assert inside.all()  # but for one time in a million
        policy = game.random_policy(rng=rng)
        bounds, truth = model.bound(policy), certify_with_best_responses(game, policy)
        assert (bounds.cost_ceilings >= truth.costs - 1e-9).all()
        if truth.feasible:
            assert bounds.gap >= truth.epsilon - 1e-9

    @pytest.mark.parametrize("seed", range(5))
    def test_without_doubt_its_bounds_are_the_truth(self, seed):
        game = binding_game(seed)
        nothing = np.zeros(game.rewards.shape), np.zeros(game.costs.shape)
        model = JointModel(game, game.transition, game.transition, nothing)
        policy = feasible_start(game).policy
        bounds, truth = model.bound(policy), certify_with_best_responses(game, policy)
        assert bounds.gap == pytest.approx(truth.epsilon, abs=1e-8)
        assert bounds.cost_ceilings == pytest.approx(truth.costs, abs=1e-12)
        assert model.proof_of_infeasibility() == ""

    def test_steps_that_are_alike_share_their_samples(self):
        game = spectrum(horizon=4)
        simulator = hidden(game)
        samples = simulator.draw_all(count=100)
        assert simulator.ledger.total == 100 * 4 * 27
        model = model_of(simulator.known, samples, delta=0.1, interval=binomial_interval)
        assert (model.lower[0] == model.lower[2]).all()
        assert np.allclose(model.game.transition.sum(axis=-1), 1)


class TestEndings:
    def test_time_that_runs_out_within_a_round_ends_it_there(self, monkeypatch):
        simulator = hidden(spectrum())
        clock = SimpleNamespace(monotonic=lambda: time.monotonic() + (1e9 if simulator.ledger.total else 0.0))
        monkeypatch.setattr(deadline, "time", clock)
        result = learn_shared(simulator, epsilon=1e-3, delta=0.1, time_limit=1e6)
        assert_void(result, "the time limit of 1e+06 seconds has passed")
        assert result.total_samples == 6912

    def test_infeasible_constraints_are_proved(self):
        game = binding_game(0, slack=-0.3)
        result = learn_shared(hidden(game), epsilon=0.5, delta=0.1)
        assert result.status is Status.INFEASIBLE
        assert_void(result, "with probability 0.9, no policy meets the constraints")
        assert feasible_start(game).proof.holds

    def test_no_slack_cannot_be_certified(self):
        game = binding_game(0, slack=0.0)
        result = learn_shared(hidden(game), epsilon=0.5, delta=0.1, max_count=2**12)
        assert result.status is Status.LIMIT
        assert_void(result, "4,096 samples of every entry are not enough")
        assert "costs at most" in result.message

    def test_a_budget_is_kept(self):
        simulator = hidden(spectrum(), budget=20_000)
        result = learn_shared(simulator, epsilon=0.01, delta=0.1)
        assert result.status is Status.LIMIT
        assert_void(result, "of the budget of 2e+04 are left")
        assert 0 < result.total_samples == simulator.ledger.total <= 20_000

    def test_a_budget_too_small_for_the_first_round(self):
        result = learn_shared(hidden(spectrum(), budget=1), epsilon=0.1, delta=0.1)
        assert_void(result, "6912 samples")
        assert result.total_samples == 0

    def test_an_interrupt_keeps_the_incumbent(self):
        def stop(found):
            raise KeyboardInterrupt

        result = learn_shared(hidden(spectrum()), epsilon=0.1, delta=0.1, on_round=stop)
        assert result.status is Status.INTERRUPTED
        assert result.total_samples > 0

    def test_every_round_is_reported(self):
        seen = []
        result = learn_shared(hidden(spectrum()), epsilon=0.2, delta=0.1, on_round=seen.append)
        assert result.certified
        assert [each.samples_per_entry for each in seen] == [64 * 2**j for j in range(len(seen))]
        assert seen[-1].feasible
        assert seen[-1].gap <= 0.2 < seen[0].gap

    def test_wrong_input_is_refused(self):
        with pytest.raises(CMPGError, match="epsilon is 0"):
            learn_shared(hidden(spectrum()), epsilon=0.0, delta=0.1)
        with pytest.raises(CMPGError, match="delta is 2"):
            learn_shared(hidden(spectrum()), epsilon=0.1, delta=2.0)
        with pytest.raises(CMPGError, match="first_count is 0"):
            learn_shared(hidden(spectrum()), epsilon=0.1, delta=0.1, first_count=0)

    @pytest.mark.parametrize("kind", ["state", "nan", "range"])
    def test_an_environment_that_fails_is_named_and_nothing_is_lost(self, kind):
        game = two_agent_game(41, horizon=2)
        entries = 3 * 6
        answer, message = WRONG[kind]
        environment = Faulty(game, at=10 * entries, answer=answer)
        simulator = EnvironmentSimulator(environment, known=known_of(game), rng=np.random.default_rng(0))
        with pytest.raises(SimulatorError, match=message.split("; ")[0].replace("h=1", r"h=\d")) as caught:
            learn_shared(simulator, epsilon=0.01, delta=0.1, first_count=16)
        assert simulator.ledger.total == 10 * entries
        assert caught.value.samples.visits.sum() == 10 * entries - 1
        assert caught.value.result.total_samples == 10 * entries
        assert not caught.value.result.certified

    def test_an_environment_that_cannot_be_placed_is_refused(self):
        game = two_agent_game()

        class Plain:
            def reset(self, rng):
                return 0

            def step(self, actions):
                return 0, [0.0, 0.0], [0.0]

        simulator = EnvironmentSimulator(Plain(), known=known_of(game), rng=np.random.default_rng(0))
        with pytest.raises(SimulatorError, match="no method place"):
            learn_shared(simulator, epsilon=0.1, delta=0.1)


def test_games_of_this_file_bind():
    """Otherwise the tests above would not test the tightening."""
    for seed in range(3):
        game = binding_game(seed)
        free = JointGame(
            transition=game.transition,
            rewards=game.rewards,
            costs=np.zeros((0, *game.costs.shape[1:])),
            thresholds=[],
            initial=game.initial,
            horizon=game.horizon,
        )
        assert game.at(solve(free).policy).costs[0] > game.thresholds[0]


def test_a_planner_s_table_has_the_products_of_what_agents_play():
    tables = [np.random.default_rng(i).dirichlet(np.ones(2 + i), size=(2, 3)) for i in range(2)]
    found = shared.joint_table(JointPolicy(tuple(tables)))
    assert found.shape == (2, 3, 6)
    assert found == pytest.approx(np.einsum("hsa,hsb->hsab", *tables).reshape(2, 3, 6))
