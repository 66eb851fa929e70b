"""Discounted local games, learned over their first steps, and judged by plain loops over many more of them."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from cmpg.equilibrium.discounted import discounted_start, prolonged
from cmpg.errors import CMPGError, SimulatorError
from cmpg.files.games import save_game
from cmpg.games.local.agent import LocalAgent
from cmpg.games.local.discounted import DiscountedLocalGame
from cmpg.learning.confidence import binomial_interval
from cmpg.learning.local.model import LocalModel
from cmpg.learning.local.safe import learn_safely
from cmpg.learning.local.simulator import LocalSimulator
from cmpg.learning.outcome import judge
from cmpg.learning.safe import Pace
from cmpg.learning.shared import learn_shared
from cmpg.learning.simulator import GameSimulator
from cmpg.learning.truncation import cut_off_local, finite_form, steps_for, steps_until_rounding
from cmpg.policy import JointPolicy
from cmpg.scenarios import grid_world_local
from command_line import cmpg

LONG = 45
"""Steps of the judge: what follows is lost beside 1e-9."""


def game(seed, *, share=0.5, agents=2):
    """Agents of two kinds on two states with two resources, γ = ½; delays fall, costs have both signs.

    The threshold is a share of the way from the least cost of playing the same at every step to that of mixing evenly.
    """
    rng = np.random.default_rng(seed)
    kernels = [rng.dirichlet(np.ones(2), size=(1, 2, 2)) for _ in range(2)]
    uses = np.zeros((1, 2, 2, 2))
    uses[0, :, 1, 0] = uses[0, 1, 0, 1] = 1
    made = [
        LocalAgent(
            transition=kernels[i % 2],
            reward=rng.random((1, 2, 2)) - 0.3,
            uses=uses,
            initial=rng.dirichlet(np.ones(2)),
            costs=rng.random((1, 1, 2, 2)) - 0.2,
        )
        for i in range(agents)
    ]
    tables = {"delay": rng.normal(size=(1, 2, agents + 1)) / 4, "load_costs": rng.random((1, 1, 2, agents + 1))}
    free = DiscountedLocalGame(agents=made, **tables, thresholds=[1e3], discount=0.5)
    finite = free.truncated(LONG)
    pure = product([np.eye(2)[list(each)] for each in product((0, 1), repeat=2)], repeat=agents)
    repeated = (JointPolicy(tuple(np.tile(table, (LONG, 1, 1)) for table in each)) for each in pure)
    least = min(finite.at(each).costs[0] for each in repeated)
    return free.with_thresholds(least + share * (finite.at(finite.uniform_policy()).costs - least))


def laws(true, policy):
    """How likely each agent is in each state and uses each resource: [n][LONG, S], [n][LONG, E]."""
    there, used = [], []
    for agent, table in zip(true.agents, policy, strict=True):
        kernel = agent.transition[0].toarray().reshape(2, 2, 2)
        uses = agent.uses[0].toarray().reshape(2, 2, 2)
        law, rows = np.asarray(agent.initial), []
        for h in range(LONG):
            rows.append(law)
            law = np.einsum("s,sa,sat->t", law, table[h], kernel)
        there.append(np.array(rows))
        used.append(np.einsum("hs,hsa,sae->he", there[-1], table, uses))
    return there, used


def faced(true, policy, i):
    """What agent i gets and all pay at each (h, s, a), already discounted: [LONG, S, A] each."""
    there, used = laws(true, policy)
    me, others = true.agents[i], [j for j in range(len(policy)) if j != i]
    reward, cost = np.zeros((LONG, 2, 2)), np.zeros((LONG, 2, 2))
    uses = me.uses[0].toarray().reshape(2, 2, 2)
    for s, a in product((0, 1), (0, 1)):
        reward[:, s, a], cost[:, s, a] = me.reward[0, s, a], me.costs[0, 0, s, a]
        for j in others:
            cost[:, s, a] += np.einsum("hs,hsa,sa->h", there[j], policy[j], true.agents[j].costs[0, 0])
        for e in (0, 1):
            for pattern in product((0, 1), repeat=len(others)):
                chance = np.ones(LONG)
                for j, on in zip(others, pattern, strict=True):
                    chance = chance * (used[j][:, e] if on else 1 - used[j][:, e])
                load = sum(pattern) + int(uses[s, a, e])
                reward[:, s, a] -= chance * uses[s, a, e] * true.delay[0, e, load]
                cost[:, s, a] += chance * true.load_costs[0, 0, e, load]
    weights = 0.5 ** np.arange(LONG)[:, None, None]
    return weights * reward, weights * cost


def sums(true, policy):
    """Return the value of agent 0, and what all pay."""
    reward, cost = faced(true, policy, 0)
    occupancy = laws(true, policy)[0][0][:, :, None] * policy[0]
    return (occupancy * reward).sum(), (occupancy * cost).sum()


def largest_gain(true, policy):
    """Return what some agent gains by the best feasible deviation: a linear program over its occupancies."""
    gains = []
    for i, agent in enumerate(true.agents):
        reward, cost = faced(true, policy, i)
        kernel = agent.transition[0].toarray().reshape(2, 2, 2)
        flow, begins = np.zeros((LONG, 2, LONG, 2, 2)), np.zeros((LONG, 2))
        begins[0] = agent.initial
        for h, s in product(range(LONG), (0, 1)):
            flow[h, s, h, s] = 1
            if h:
                flow[h, s, h - 1] = -kernel[:, :, s]
        best = linprog(
            -reward.ravel(),
            A_ub=cost.reshape(1, -1),
            b_ub=true.thresholds,
            A_eq=flow.reshape(2 * LONG, -1),
            b_eq=begins.ravel(),
        )
        assert best.status == 0
        occupancy = laws(true, policy)[0][i][:, :, None] * policy[i]
        gains.append(-best.fun - (occupancy * reward).sum())
    return max(gains)


def test_the_first_steps_and_what_follows_them_are_their_formulas():
    for seed in range(5):
        true = game(seed, agents=3)
        least = true.load_costs[0, 0].min(axis=1).sum() + sum(each.costs.min() for each in true.agents)
        most = true.load_costs[0, 0].max(axis=1).sum() + sum(each.costs.max() for each in true.agents)
        for horizon in (1, 4):
            known = LocalSimulator(true, rng=np.random.default_rng(0), horizon=horizon).known
            after = 0.5**horizon / 0.5
            assert known.thresholds == pytest.approx(true.thresholds - after * least)
            assert known.limits == pytest.approx(true.thresholds - after * most)
            assert known.horizon == horizon
            assert known.left_of(100.0) == pytest.approx(100.0 - 0.5**horizon * true.reward_ranges.max())
            assert known.frame.delay == pytest.approx(0.5 ** np.arange(horizon)[:, None, None] * true.delay)


def test_feasible_policies_are_feasible_in_the_first_steps_and_what_meets_the_limits_is_feasible():
    for seed in range(20):
        true = game(seed)
        finite, cut = cut_off_local(true, 3)
        policy = finite.random_policy(rng=np.random.default_rng(seed))
        value, cost = sums(true, prolonged(policy, LONG))
        position = finite.at(policy)
        # The policy is played on; anything else after the cut stays within the same ends.
        assert position.costs[0] + cut.cost_shifts[0] <= cost + 1e-12
        assert cost <= position.costs[0] + cut.cost_shifts[0] + cut.cost_tails[0] + 1e-12
        other = policy.replace(0, finite.random_policy(rng=np.random.default_rng(seed + 100))[0])
        gained = sums(true, prolonged(other, LONG))[0] - value
        assert abs(gained - (finite.at(other).values[0] - position.values[0])) <= cut.reward_tails[0] + 1e-12


def test_the_number_of_steps_is_the_least_that_its_shares_allow():
    for seed in range(10):
        true = game(seed)
        least = true.load_costs[0, 0].min(axis=1).sum() + sum(each.costs.min() for each in true.agents)
        rate = (true.thresholds[0] - least / 0.5) / max(true.reward_ranges.max(), 0.2)
        assert rate > 0

        def enough(steps, true=true, rate=rate):
            cut = cut_off_local(true, steps)[1]
            return cut.reward_tails.max() <= 0.2 / 8 and cut.cost_tails[0] <= 0.2 / 16 * rate

        steps = steps_for(true, 0.2)
        assert enough(steps)
        assert not enough(steps - 1)


@pytest.mark.parametrize("seed", range(6))
def test_a_discounted_local_game_is_learned_from_draws(seed):
    true, epsilon = game(seed, share=0.3, agents=2 + seed % 2), 0.15
    simulator = LocalSimulator(true, rng=np.random.default_rng(seed), horizon=steps_for(true, epsilon))
    result = learn_shared(simulator, epsilon=epsilon, delta=0.1)
    assert result.certified
    assert (result.epsilon, result.settings["cut_off_after"]) == (epsilon, simulator.known.horizon)
    assert_right(true, result)
    finite, cut = cut_off_local(true, simulator.known.horizon)
    assert np.all(finite.at(result.policy).costs <= finite.thresholds - cut.cost_tails)


@pytest.mark.parametrize("seed", range(3))
def test_a_discounted_local_game_is_learned_from_safe_episodes(seed):
    true, epsilon = game(seed), 0.3
    steps = steps_for(true, epsilon)
    start = discounted_start(true, steps).policy
    simulator = LocalSimulator(true, rng=np.random.default_rng(seed), horizon=steps)
    result = learn_safely(simulator, start=start, epsilon=epsilon, delta=0.1, pace=Pace(growth=0.5, most=10**12))
    assert result.certified
    assert (result.epsilon, result.settings["cut_off_after"]) == (epsilon, steps)
    assert_right(true, result)
    assert judge(true, result).unsafe_policies == 0
    for each in result.played[-3:]:
        assert sums(true, prolonged(each.policy, LONG))[1] <= true.thresholds[0] + 1e-9


def assert_right(true, result):
    """The policy goes on as in its last step: it is feasible and ε-Nash, and `judge` says what the plain loops say."""
    policy = prolonged(result.policy, LONG)
    gain, cost = largest_gain(true, policy), sums(true, policy)[1]
    assert cost <= true.thresholds[0] + 1e-9
    assert gain <= result.epsilon
    judged = judge(true, result)
    assert judged.right(result.epsilon)
    assert judged.gap == pytest.approx(gain, abs=1e-6)
    assert judged.costs == pytest.approx([cost])


def test_exploration_keeps_below_what_may_follow_and_deviations_may_use_it():
    true = game(1)
    simulator = LocalSimulator(true, rng=np.random.default_rng(0), horizon=3)
    known = simulator.known
    model = LocalModel.of(known, simulator.draw_all(count=100), delta=0.1, interval=binomial_interval)
    view = model.at(model.game.uniform_policy()).view(0)
    assert np.all(known.limits < known.thresholds)
    assert view.belief.box.nominal.thresholds == pytest.approx(known.limits - view.spent.most)
    assert view.belief.optimistic.nominal.thresholds == pytest.approx(known.thresholds - view.spent.least)


def test_the_finite_form_has_the_steps_that_are_not_lost_in_rounding():
    true = game(0)
    finite = finite_form(true)
    assert finite.horizon == steps_until_rounding(true)
    policy = finite.random_policy(rng=np.random.default_rng(0))
    assert finite.at(policy).costs == pytest.approx([sums(true, prolonged(policy, LONG))[1]])


def test_what_cannot_be_cut_off_is_refused():
    true = game(0)
    rng = np.random.default_rng(0)
    with pytest.raises(SimulatorError, match=r"discounted.*steps_for"):
        LocalSimulator(true, rng=rng)
    with pytest.raises(SimulatorError, match="a horizon is given for discounted games only"):
        LocalSimulator(grid_world_local(), rng=rng, horizon=3)
    with pytest.raises(CMPGError, match="LocalSimulator hides local games"):
        GameSimulator(true, rng=rng, horizon=3)
    short = LocalSimulator(true, rng=rng, horizon=1)
    start = short.known.frame.uniform_policy()
    for way in (learn_shared, partial(learn_safely, start=start)):
        with pytest.raises(CMPGError, match=r"cut off after 1 steps.*Take more steps"):
            way(short, epsilon=0.01, delta=0.1)


@pytest.mark.parametrize("mode", ["generative", "shared", "safe"])
def test_the_command_learns_a_file(tmp_path, mode):
    path = tmp_path / "game.json"
    save_game(game(0), path)
    found = cmpg("learn", path, "--mode", mode, "--epsilon", "0.5", "--seed", 1)
    assert found.code == 0
    assert "CERTIFIED" in found.out
