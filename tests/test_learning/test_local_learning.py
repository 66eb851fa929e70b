"""Local games: kernels that are sampled by kind, and what follows from them for usage, loads, costs and gains."""

import numpy as np
import pytest

from cmpg.cmdp.box import worst_case
from cmpg.equilibrium.best_responses import certify_with_best_responses
from cmpg.equilibrium.result import Status
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.errors import StartError, UnsupportedError
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.learning.ascent import learn
from cmpg.learning.confidence import binomial_interval
from cmpg.learning.local.model import LocalModel, convex_parts, monotone_parts, usage_ends
from cmpg.learning.local.safe import _SafeRounds, learn_safely
from cmpg.learning.local.simulator import LocalProblemSpec, LocalSamples, LocalSimulator
from cmpg.learning.outcome import judge
from cmpg.learning.safe import Pace
from cmpg.learning.shared import learn_shared
from cmpg.scenarios import grid_world_local, spectrum


def random_game(seed, *, steps=1, agents=3):
    """Three agents of two kinds on three states, with delays and load costs of any shape, and private costs."""
    rng = np.random.default_rng(seed)
    horizon, states, actions, resources = 4, 3, 2, 2
    kernels = [rng.dirichlet(np.ones(states), size=(steps, states, actions)) for _ in range(2)]
    uses = rng.integers(0, 2, size=(1, states, actions, resources))
    made = tuple(
        LocalAgent(
            transition=kernels[i % 2],
            reward=rng.random((horizon, states, actions)),
            uses=uses,
            initial=rng.dirichlet(np.ones(states)),
            costs=rng.random((1, horizon, states, actions)) / 10,
        )
        for i in range(agents)
    )
    game = LocalGame(
        agents=made,
        delay=rng.normal(size=(1, resources, agents + 1)),
        load_costs=rng.normal(size=(1, horizon, resources, agents + 1)),
        thresholds=[0.0],
        horizon=horizon,
    )
    return game.with_thresholds(game.at(game.uniform_policy()).costs + 0.3)


def model(game, *, count, seed=0, delta=1e-6, reveal_support=False):
    simulator = LocalSimulator(game, rng=np.random.default_rng(seed), reveal_support=reveal_support)
    samples = simulator.draw_all(count=count)
    return LocalModel.of(simulator.known, samples, delta=delta, interval=binomial_interval)


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("count", [5, 100, 10_000])
def test_the_truth_lies_within_the_bounds(steps, count):
    for seed in range(6):
        game = random_game(seed, steps=steps)
        believed = model(game, count=count, seed=seed)
        policy = game.random_policy(rng=np.random.default_rng(seed))
        truth, bounds = certify_with_best_responses(game, policy), believed.bound(policy)
        assert np.all(bounds.cost_ceilings >= truth.costs)
        assert bounds.gap >= truth.epsilon
        position, at = game.at(policy), believed.at(policy)
        for agent in range(3):
            view, cmdp = at.view(agent), position.induced_cmdp(agent)
            ends = usage_ends(game.agents[agent], believed.kernels[believed.known.kinds[agent]], policy[agent])
            assert np.all(ends.least <= position.usage(agent) + 1e-12)
            assert np.all(position.usage(agent) <= ends.most + 1e-12)
            assert np.all(view.belief.worst_reward <= cmdp.reward + 1e-12)
            assert np.all(view.belief.optimistic.nominal.reward >= cmdp.reward - 1e-12)
            assert np.all(view.belief.worst_costs >= cmdp.costs - 1e-12)
            assert np.all(view.belief.optimistic.nominal.costs <= cmdp.costs + 1e-12)
            assert -worst_case(view.belief.box, policy[agent], -view.belief.worst_reward) <= position.values[agent]
            # What the others leave of each threshold (Theorem 4): α − x⁺ at the worst, α − x⁻ at the best.
            assert view.belief.box.nominal.thresholds == pytest.approx(game.thresholds - view.spent.most)
            assert np.all(view.belief.box.nominal.thresholds <= cmdp.thresholds + 1e-12)
            assert view.belief.optimistic.nominal.thresholds == pytest.approx(game.thresholds - view.spent.least)
            assert np.all(cmdp.thresholds <= view.belief.optimistic.nominal.thresholds + 1e-12)


@pytest.mark.parametrize("steps", [1, 4])
def test_the_entries_of_all_kinds_share_delta(steps):
    game, shares = random_game(0, steps=steps), []

    def interval(successes, trials, *, delta):
        shares.append(delta * successes.size)
        return binomial_interval(successes, trials, delta=delta)

    simulator = LocalSimulator(game, rng=np.random.default_rng(0))
    LocalModel.of(simulator.known, simulator.draw_all(count=5), delta=0.1, interval=interval)
    assert len(shares) == len(simulator.known.shapes) == 2
    assert sum(shares) == pytest.approx(0.1)


def test_with_many_samples_nothing_but_the_truth_is_left():
    game = random_game(1)
    policy = game.uniform_policy()
    truth, bounds = certify_with_best_responses(game, policy), model(game, count=10**13).bound(policy)
    assert bounds.gap == pytest.approx(truth.epsilon, abs=1e-4)
    assert bounds.cost_ceilings == pytest.approx(truth.costs, abs=1e-4)


def test_a_kernel_whose_next_states_are_known_and_certain_needs_no_samples():
    game = grid_world_local()
    policy = game.random_policy(rng=np.random.default_rng(3))
    believed = model(game, count=1, reveal_support=True)
    truth, bounds = certify_with_best_responses(game, policy), believed.bound(policy)
    assert bounds.gap == pytest.approx(truth.epsilon)
    assert bounds.cost_ceilings == pytest.approx(truth.costs)


def test_tables_are_split_into_parts_that_do_not_fall():
    table = np.random.default_rng(0).normal(size=(2, 3, 6))
    rising, falling = monotone_parts(table)
    assert (rising - falling)[..., 1:] == pytest.approx(table[..., 1:])
    assert np.all(np.diff(rising) >= 0)
    assert np.all(np.diff(falling) >= 0)
    convex, concave = convex_parts(table)
    assert convex - concave == pytest.approx(table)
    for part in (convex, concave):
        assert np.all(np.diff(part) >= 0)
        assert np.all(np.diff(part, n=2) >= -1e-12)


def test_agents_of_one_kind_and_steps_that_are_alike_share_their_samples():
    game = random_game(0)
    known = LocalProblemSpec.of(game)
    assert known.kinds == (0, 1, 0)
    assert known.shapes == ((1, 3, 2, 3),) * 2
    assert LocalProblemSpec.of(random_game(0, steps=4)).shapes == ((3, 3, 2, 3),) * 2
    simulator = LocalSimulator(game, rng=np.random.default_rng(0))
    drawn = simulator.draw_all(count=7, purpose="model")
    assert simulator.ledger.by_purpose == {"model": 7 * 2 * 3 * 2}
    assert all(np.all(counts.sum(axis=-1) == 7) for counts in drawn.transitions)
    assert all(agent.transition[0].toarray().max() == 1 for agent in known.frame.agents), "no kernel is told"


def test_episodes_are_counted_by_kind_and_have_the_law_of_the_game():
    game = random_game(2)
    simulator = LocalSimulator(game, rng=np.random.default_rng(0))
    episodes = 1_000_000
    seen = simulator.roll_out(game.uniform_policy(), episodes)
    assert simulator.ledger.total == episodes * game.horizon
    assert [counts.sum() for counts in seen.transitions] == [2 * 3 * episodes, 3 * episodes]  # agents 0 and 2, agent 1
    rates = seen.transitions[1] / seen.transitions[1].sum(axis=-1, keepdims=True)
    assert rates == pytest.approx(game.agents[1].kernel, abs=0.01)
    visits = game.agents[1].visits(game.uniform_policy()[1]).pairs[:-1].sum(axis=0) * episodes
    assert seen.transitions[1].sum(axis=-1).ravel() == pytest.approx(visits, rel=0.01)
    both = seen + LocalSamples(tuple(np.ones_like(counts) for counts in seen.transitions))
    assert both.transitions[0].sum() == seen.transitions[0].sum() + 18


def test_the_own_cell_grid_world_is_learned_with_less_than_a_million_samples():
    game = grid_world_local()
    result = learn_shared(LocalSimulator(game, rng=np.random.default_rng(0)), epsilon=0.5, delta=0.1)
    assert result.certified
    assert result.total_samples <= 1_000_000
    assert judge(game, result).right(0.5)


class TestSafely:
    def test_it_ends_on_the_own_cell_grid_world_and_plays_nothing_unsafe(self):
        game = grid_world_local()
        simulator = LocalSimulator(game, rng=np.random.default_rng(0))
        start = feasible_start(game).policy
        result = learn_safely(simulator, start=start, epsilon=2.0, delta=0.1, pace=Pace(growth=0.5))
        judged = judge(game, result)
        assert result.certified
        assert judged.right(2.0)
        assert judged.unsafe_policies == 0
        assert result.total_samples == game.horizon * sum(each.episodes for each in result.played)
        assert len(result.played) > 10
        assert {each.agent for each in result.played} == {0, 1}

    def test_what_is_played_is_safe_for_every_kernel_that_the_samples_allow(self):
        """Judged with kernels of the box at the time, drawn at random, instead of the true one."""
        game = grid_world_local()
        simulator = LocalSimulator(game, rng=np.random.default_rng(0))
        run = _SafeRounds(simulator, feasible_start(game).policy, epsilon=2.0, delta=0.1, pace=Pace(growth=0.5))
        rng = np.random.default_rng(1)
        for _ in range(40):
            kernel = run.model.kernels[0]
            run.explore()
            weights = rng.dirichlet(np.full(16, 0.1), size=(1, 16, 4)) * kernel.upper
            spare = 1 - kernel.lower.sum(axis=-1, keepdims=True)
            share = weights / weights.sum(axis=-1, keepdims=True) * spare
            other = kernel.lower + np.minimum(share, kernel.upper - kernel.lower)
            other /= other.sum(axis=-1, keepdims=True)
            played = run.played[-1].policy
            if played is not run.start:
                assert simulator.known.with_kernels([other]).at(played).costs[0] <= game.thresholds[0] + 1e-9

    def test_a_start_that_samples_refute_is_told(self):
        game = grid_world_local().with_thresholds([0.05])
        simulator = LocalSimulator(game, rng=np.random.default_rng(0))
        with pytest.raises(StartError, match=r"the start is infeasible with probability 0\.9") as caught:
            learn_safely(simulator, start=game.uniform_policy(), epsilon=1.0, delta=0.1, pace=Pace(growth=0.5))
        assert caught.value.result.played

    def test_a_budget_ends_it_with_what_is_proved(self):
        game = grid_world_local()
        simulator = LocalSimulator(game, rng=np.random.default_rng(0), budget=3000)
        result = learn_safely(simulator, start=feasible_start(game).policy, epsilon=1.0, delta=0.1)
        assert result.status is Status.LIMIT
        assert "budget of 3000" in result.void[0]
        assert result.total_samples <= 3000


def test_what_has_no_kernels_of_its_own_and_what_needs_a_shared_state_is_refused():
    with pytest.raises(UnsupportedError, match="a JointGame has no agents with kernels of their own"):
        LocalSimulator(spectrum(), rng=np.random.default_rng(0))
    simulator = LocalSimulator(grid_world_local(), rng=np.random.default_rng(0))
    with pytest.raises(UnsupportedError, match=r"one model serves all.*learn_shared"):
        learn(simulator, epsilon=0.5, delta=0.1)
