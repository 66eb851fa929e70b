"""Optimism without boxes, and certainty by rolling out: what they promise holds as often as they say, and is tight."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import binomtest

from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import dual_bound, plan
from cmpg.errors import InfeasibleError
from cmpg.learning.confidence import bernstein_radius, empirical_cmdp, fixed_bets, mean_ceiling
from cmpg.learning.optimism import Draws, Measurement, MultiplierGrid, Optimism
from cmpg.paper.learning import behind_a_door

REPEATS, FEWER, DELTA = 10_000, 2_000, 0.1  # `python -m checks bounds` repeats each bound 10,000 times


def holds(misses, repeats=REPEATS):
    """Whether a miss rate of at most δ is credible."""
    return bool(binomtest(int(misses), repeats, DELTA, alternative="greater").pvalue > 1e-4)


def random_cmdp(seed, *, states=3, actions=2, horizon=3, concentration=0.5):
    rng = np.random.default_rng(seed)
    shape = (horizon, states, actions)
    cmdp = CMDP(
        transition=rng.dirichlet(np.full(states, concentration), size=shape),
        reward=rng.random(shape),
        costs=rng.random((1, *shape)),
        thresholds=[100.0],
        initial=rng.dirichlet(np.ones(states)),
        horizon=horizon,
    )
    ends = [plan(cmdp, np.ones(1), reward_weight=0.0).costs[0], plan(cmdp, np.zeros(1)).costs[0]]
    return dataclasses.replace(cmdp, thresholds=np.array([np.mean(ends)]))


def alone(cmdp, seed=0, **options):
    return behind_a_door(cmdp, np.random.default_rng(seed), **options)


def random_constrained_cmdp(seed, *, constraints, states=3, actions=2, horizon=3):
    rng = np.random.default_rng(seed)
    cmdp = random_cmdp(seed, states=states, actions=actions, horizon=horizon)
    costs = rng.random((constraints, horizon, states, actions))
    return dataclasses.replace(cmdp, costs=costs, thresholds=np.full(constraints, 2.0))


def optimism(problem, samples, *, delta=DELTA):
    reward, costs = problem.payoffs
    return Optimism(
        draws=Draws(samples.transitions, problem.known.induced_support(0)),
        reward=reward,
        costs=costs,
        thresholds=problem.known.thresholds,
        initial=problem.known.initial,
        scales=np.ones(len(costs)),
        delta=delta,
    )


class TestMeanCeiling:
    @pytest.mark.parametrize("number", [10, 200])
    @pytest.mark.parametrize(
        ("values", "law"),
        [([0, 1], [0.5, 0.5]), ([0, 1], [0.98, 0.02]), ([0, 0.5, 1], [0.1, 0.8, 0.1]), ([-9, 0.2], [0.01, 0.99])],
    )
    def test_it_misses_no_more_often_than_delta(self, values, law, number):
        counts = np.random.default_rng(1).multinomial(number, law, size=REPEATS)
        seen = np.broadcast_to(np.array(values, dtype=float), counts.shape)
        assert holds((mean_ceiling(seen, counts, most=1.0, delta=DELTA) < np.dot(values, law)).sum())

    def test_a_tenth_of_its_distance_misses_too_often(self):
        counts = np.random.default_rng(1).multinomial(200, [0.5, 0.5], size=REPEATS)
        means = counts[:, 1] / 200
        found = mean_ceiling(np.broadcast_to([0.0, 1.0], counts.shape), counts, most=1.0, delta=DELTA)
        assert not holds((means + 0.1 * (found - means) < 0.5).sum())

    @pytest.mark.parametrize("number", [100, 10_000, 10**6])
    def test_it_is_shorter_than_empirical_bernstein_where_values_hardly_differ_and_never_much_longer(self, number):
        for share in (0.0, 0.01, 0.1, 0.5):
            hits = int(share * number)
            found = mean_ceiling(np.array([0.0, 1.0]), np.array([number - hits, hits]), most=1.0, delta=1e-6)
            other = bernstein_radius(np.array(share), np.array(number), log_term=np.log(2e6))
            # To be ready for every variance costs a tenth where it is large, and saves half where there is none.
            assert share < found <= min(share + (0.55 if share == 0 else 1.1) * other, 1.0)

    def test_equal_values_leave_what_can_be_hidden_above_them(self):
        # (M − mean) L/n, and nothing for values that are the largest possible
        found = mean_ceiling(np.array([[0.4], [1.0]]), np.array([[1000], [1000]]), most=1.0, delta=1e-3)
        assert found[0] - 0.4 == pytest.approx(0.6 * np.log(1e3) / 1000, rel=0.5)
        assert found[1] == 1.0

    def test_nothing_seen_is_nothing_known(self):
        assert mean_ceiling(np.array([0.3]), np.array([0]), most=2.0, delta=0.1) == pytest.approx(2.0)

    def test_what_matters_is_how_often_each_value_occurs(self):
        whole = mean_ceiling(np.array([0.0, 0.5, 1.0]), np.array([3, 4, 5]), most=1.0, delta=0.1)
        parts = mean_ceiling(np.array([1.0, 0.5, 0.0, 0.5]), np.array([5, 1, 3, 3]), most=1.0, delta=0.1)
        assert whole == pytest.approx(parts, abs=1e-12)


class TestTheCeiling:
    def test_it_is_above_the_best_value_as_often_as_it_says(self):
        cmdp = random_cmdp(0, states=2, horizon=3)
        best, problem, misses = Exact()(cmdp).value, alone(cmdp), 0
        for _ in range(FEWER):
            misses += optimism(problem, problem.draw(16)).bound(np.ones(1)) < best
        assert holds(misses, FEWER)

    def test_without_its_terms_it_is_below_half_of_the_time(self):
        """The control: the dual bound of the empirical CMDP, which is what is left when δ is close to one."""
        cmdp = random_cmdp(0, states=2, horizon=3)
        price = Exact()(cmdp).multipliers
        best, problem, misses = Exact()(cmdp).value, alone(cmdp), 0
        for _ in range(FEWER):
            misses += dual_bound(empirical_cmdp(problem, problem.draw(16)), price) < best
        assert not holds(misses, FEWER)

    def test_it_holds_at_all_times_for_draws_that_steps_share_and_that_are_chosen_by_what_was_seen(self):
        """One kernel for three steps, and more draws of whatever looks worst: Ville's inequality covers every look."""
        rng = np.random.default_rng(3)
        kernel, reward = rng.dirichlet(np.ones(2), size=(1, 2, 2)), rng.random((3, 2, 2))
        cmdp = CMDP(
            transition=kernel,
            reward=reward,
            costs=np.zeros((0, 3, 2, 2)),
            thresholds=[],
            initial=[0.5, 0.5],
            horizon=3,
        )
        best, misses, control = plan(cmdp, np.zeros(0)).value, 0, 0
        problem = alone(cmdp)
        assert problem.num_entries == 4
        for _ in range(FEWER // 10):
            samples, below, naive = problem.top_up(problem.no_samples(), 8), False, False
            for look in range(2, 8):
                found = optimism(problem, samples)
                below |= found.bound(np.zeros(0)) < best
                naive |= plan(empirical_cmdp(problem, samples), np.zeros(0)).value < best
                likely = samples.transitions[..., 0] / samples.visits[:-1]
                lucky = likely == likely.min(axis=(0, 1), keepdims=True)
                samples = problem.top_up(samples, 8 * look, where=lucky)
            misses, control = misses + below, control + naive
        assert holds(misses, FEWER // 10)
        assert not holds(control, FEWER // 10), "frequencies alone"

    @pytest.mark.parametrize("constraints", [0, 1, 2])
    def test_every_entry_pays_for_all_entries_and_for_all_multipliers(self, constraints):
        """The union bound of Theorem 1: δ/(S·A·(H − 1)·(513^k + k)) for each entry, in a plain backward induction."""
        states, actions, horizon = 3, 2, 4
        cmdp = random_constrained_cmdp(3, constraints=constraints, states=states, actions=actions, horizon=horizon)
        problem = alone(cmdp)
        samples = problem.draw(50)
        found = optimism(problem, samples)
        share = DELTA / (states * actions * (horizon - 1) * (513**constraints + constraints))
        assert found.entry_delta == pytest.approx(share, rel=1e-12)
        multipliers = np.ones(constraints)
        weighted = cmdp.reward - np.tensordot(multipliers, cmdp.costs, axes=1)
        values, most, bets = weighted[-1].max(axis=1), 0.0, fixed_bets(2**24, share)
        for h in reversed(range(horizon - 1)):
            most += weighted[h + 1].max()  # M is fixed beforehand
            seen = np.broadcast_to(values, samples.transitions[h].shape)
            ahead = mean_ceiling(seen, samples.transitions[h], most=most, delta=share, bets=bets)
            values = (weighted[h] + ahead).max(axis=1)
        bound = multipliers @ cmdp.thresholds + cmdp.initial @ values
        assert found.bound(multipliers) == pytest.approx(bound, abs=1e-12)

    def test_it_bounds_the_dual_function_at_every_multiplier_of_the_grid(self):
        cmdp = random_cmdp(4)
        problem = alone(cmdp)
        found = optimism(problem, problem.draw(200))
        for place in (0, 1, 100, 257, 400, 512):
            multipliers = MultiplierGrid(found.scales).multipliers((place,))
            assert found.bound(multipliers) >= dual_bound(cmdp, multipliers)

    def test_the_walk_ends_where_no_neighbour_is_lower(self):
        cmdp = random_cmdp(5, states=4, horizon=4)
        problem = alone(cmdp)
        found = optimism(problem, problem.draw(2000))
        ceiling = found.least_bound(np.zeros(1))
        every = [found.bound(MultiplierGrid(found.scales).multipliers((place,))) for place in range(0, 513, 8)]
        assert ceiling.value <= min(every) + 1e-12
        assert ceiling.value >= Exact()(cmdp).value

    def test_no_factor_of_the_number_of_states_is_paid(self):
        """With as many samples per entry the error grows by less than three times from 5 to 40 states."""
        errors = []
        for states in (5, 40):
            cmdp = random_cmdp(6, states=states, actions=3, horizon=4)
            problem = alone(cmdp)
            found = optimism(problem, problem.draw(4096)).least_bound(Exact()(cmdp).multipliers)
            errors.append(found.value - Exact()(cmdp).value)
        assert errors[1] < 3 * errors[0]

    def test_what_is_impossible_is_not_hoped_for(self):
        cmdp = random_cmdp(7, states=6, horizon=4)
        kernel = np.eye(6)[cmdp.transition.argmax(axis=-1)]
        sparse = dataclasses.replace(cmdp, transition=kernel)
        known, unknown = alone(sparse, reveal_support=True), alone(sparse)
        price = Exact()(sparse).multipliers
        for number in (20, 10**4):
            assert optimism(known, known.draw(number)).bound(price) < optimism(unknown, unknown.draw(number)).bound(
                price
            )

    def test_what_is_infeasible_is_found_out_and_nothing_else(self):
        cmdp = random_cmdp(8)
        least = plan(cmdp, np.ones(1), reward_weight=0.0).costs[0]
        for threshold in (least - 0.1, least + 0.01):
            problem = alone(dataclasses.replace(cmdp, thresholds=np.array([threshold])))
            found = optimism(problem, problem.draw(10**5))
            if threshold < least:
                with pytest.raises(InfeasibleError, match="constraint 0 has the threshold"):
                    found.require_feasible()
            else:
                found.require_feasible()


class TestRollingOut:
    @pytest.mark.parametrize("noise", [None, 0.2])
    @pytest.mark.parametrize("modelled", [False, True])
    def test_bounds_hold_at_all_batches_as_often_as_they_say(self, noise, modelled):
        cmdp = random_cmdp(1, states=2, horizon=2)
        policy, truth = Exact()(cmdp).policy, evaluate(cmdp, Exact()(cmdp).policy)
        right = np.array([truth.value, *truth.costs])
        problem, model = alone(cmdp, payoff_noise=noise), random_cmdp(2, states=2, horizon=2) if modelled else None
        repeats = 120
        missed = 0
        for _ in range(repeats):
            one = Measurement(problem, policy, model, delta=DELTA)
            wrong = False
            for _ in range(4):
                one.grow()
                wrong |= bool(np.any((right < one.floors) | (right > one.ceilings)))
            missed += wrong
        assert holds(missed, repeats)

    def test_batches_values_and_sides_share_delta(self):
        """Lemma 2: after batch j each end of the 1 + k intervals fails with probability δ/(2(1 + k)j(j + 1))."""
        cmdp = random_constrained_cmdp(5, constraints=2)
        problem, batches = alone(cmdp), []

        class Recorder:
            def __getattr__(self, name):
                return getattr(problem, name)

            def add_up(self, *args):
                batches.append(problem.add_up(*args))
                return batches[-1]

        one = Measurement(Recorder(), problem.policy[0], None, delta=DELTA)
        tables = np.concatenate([cmdp.reward[None], cmdp.costs])
        least, most = tables.min(axis=(2, 3)).sum(axis=1), tables.max(axis=(2, 3)).sum(axis=1)
        floors, ceilings = least, most
        for j in range(1, 5):
            one.grow()
            share = DELTA / (2 * 3 * j * (j + 1))
            values = np.concatenate([each.values for each in batches]).T  # [1 + k, totals]
            counts = np.broadcast_to(np.concatenate([each.counts for each in batches]), values.shape)
            ceilings = np.minimum(ceilings, mean_ceiling(values, counts, most=most, delta=share))
            floors = np.maximum(floors, -mean_ceiling(-values, counts, most=-least, delta=share))
            assert one.ceilings == pytest.approx(ceilings, abs=1e-9)
            assert one.floors == pytest.approx(floors, abs=1e-9)

    def test_a_good_model_takes_the_noise_of_states_and_actions_away(self):
        """Transitions are certain here, so that with the right model every episode adds up to the same."""
        rng = np.random.default_rng(0)
        kernel = np.eye(4)[rng.integers(4, size=(3, 4, 2))]
        cmdp = dataclasses.replace(random_cmdp(3, states=4, horizon=3), transition=kernel)
        problem, policy = alone(cmdp), rng.dirichlet(np.ones(2), size=(3, 4))
        widths = []
        for model in (None, cmdp):
            one = Measurement(problem, policy, model, delta=DELTA)
            for _ in range(5):
                one.grow()
            widths.append(one.ceilings - one.floors)
            assert np.all(one.floors <= [evaluate(cmdp, policy).value, *evaluate(cmdp, policy).costs])
        assert np.all(widths[1] < 0.2 * widths[0])

    def test_every_episode_is_charged_and_batches_double(self):
        problem = alone(random_cmdp(1))
        one = Measurement(problem, problem.policy[0], None, delta=DELTA)
        for _ in range(3):
            one.grow()
        assert one.episodes == 1024
        assert problem.simulator.ledger.by_purpose == {"responses": 1024 * 3}
