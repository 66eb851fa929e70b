"""Algorithm 3 to the letter: the loop by stretches is the loop step by step, and does what its lemmas say."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from small_cmdps import alone, random_cmdp

from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import Plan, plan
from cmpg.errors import BudgetError, CMPGError, SolverError
from cmpg.learning.a_priori import sampled
from cmpg.paper import algorithm_3
from cmpg.paper.algorithm_3 import Algorithm3, DualPieces, floor_sum, primal_dual


def step_by_step(cmdp, *, iterations, step_size, multiplier_bound):
    """The loop as printed, one step after the other, in exact arithmetic."""
    pieces = DualPieces.of(cmdp, multiplier_bound)
    threshold, step, bound = Fraction(float(cmdp.thresholds[0])), Fraction(step_size), Fraction(multiplier_bound)
    multiplier, total, weighted = Fraction(0), Fraction(0), Fraction(0)
    counts = [0] * len(pieces.plans)
    for _ in range(iterations):
        played = max(range(len(counts)), key=lambda i: (worth(pieces.plans[i], multiplier), i))
        slack = threshold - Fraction(float(pieces.plans[played].costs[0]))
        counts[played] += 1
        total += multiplier
        weighted += multiplier * slack
        multiplier = min(max(multiplier - step * slack, Fraction(0)), bound)
    return tuple(counts), multiplier, total, weighted


def worth(each, multiplier):
    return Fraction(each.value) - multiplier * Fraction(float(each.costs[0]))


SETTINGS = [
    {"iterations": 1500, "step_size": 0.003, "multiplier_bound": 50.0},  # a rotation at the end
    {"iterations": 700, "step_size": 1.7, "multiplier_bound": 50.0},  # more than two policies within one step
    {"iterations": 500, "step_size": 0.6, "multiplier_bound": 0.4},  # projected at U
    {"iterations": 1000, "step_size": 2.0**-6, "multiplier_bound": 2.0},
    {"iterations": 1, "step_size": 0.1, "multiplier_bound": 5.0},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("seed", range(8))
def test_the_loop_by_stretches_is_the_loop_step_by_step(seed, settings):
    cmdp = random_cmdp(seed, states=1 + seed % 4, horizon=1 + seed % 3, share=(0.02, 0.3, 0.6, 0.98)[seed % 4])
    run = primal_dual(cmdp, **settings)
    assert (run.counts, run.multiplier, run.multiplier_sum, run.weighted_slack) == step_by_step(cmdp, **settings)


@pytest.mark.parametrize("seed", range(4))
def test_the_loop_by_stretches_is_the_loop_in_floats_with_a_dynamic_program_in_every_step(seed):
    cmdp, settings = random_cmdp(seed), SETTINGS[0]
    multipliers, counts = np.zeros(1), {}
    for _ in range(settings["iterations"]):
        best = plan(cmdp, multipliers)
        counts[float(best.costs[0])] = counts.get(float(best.costs[0]), 0) + 1
        slack = cmdp.thresholds - best.costs
        multipliers = np.clip(multipliers - settings["step_size"] * slack, 0.0, settings["multiplier_bound"])
    run = primal_dual(cmdp, **settings)
    assert {
        float(one.costs[0]): count for one, count in zip(run.pieces.plans, run.counts, strict=True) if count
    } == counts
    assert float(run.multiplier) == pytest.approx(float(multipliers[0]), abs=1e-10)


def test_a_run_of_many_steps_goes_on_where_a_shorter_one_ended():
    """What 1e12 steps count is what 1e12 − 1000 count, and 1000 steps more from there."""
    cmdp, many = random_cmdp(3), 10**12
    settings = {"step_size": 1e-4, "multiplier_bound": 30.0}
    early, late = (primal_dual(cmdp, iterations=many - less, **settings) for less in (1000, 0))
    multiplier, counts = early.multiplier, list(early.counts)
    for _ in range(1000):
        played = early.pieces.at(multiplier)
        counts[played] += 1
        cost = Fraction(float(early.pieces.plans[played].costs[0]))
        multiplier -= Fraction(1e-4) * (early.threshold - cost)
    assert (tuple(counts), multiplier) == (late.counts, late.multiplier)
    assert late.iterations == many


def test_the_loop_does_what_its_lemmas_say():
    """Lemma 7 with Lemma 8: value within UH/√T of the best, cost within UH/√T/(U − λ*) of the threshold."""
    cmdp = random_cmdp(9)
    best, iterations = Exact()(cmdp), 10**10
    bound = 4 * float(best.multipliers[0]) + 1.0
    step = bound / (np.sqrt(iterations) * 3)
    run = primal_dual(cmdp, iterations=iterations, step_size=step, multiplier_bound=bound)
    judged = evaluate(cmdp, run.policy(cmdp))
    assert (judged.value, judged.costs[0]) == pytest.approx((run.value, run.cost), abs=1e-12)
    loss = bound * 3 / np.sqrt(iterations)
    assert best.value - run.value <= loss
    assert run.cost - cmdp.thresholds[0] <= loss / (bound - best.multipliers[0])
    for multiplier in (0.0, float(best.multipliers[0]), bound):
        assert run.dual_regret(multiplier) <= bound * np.sqrt(iterations) * 3


def test_the_dual_regret_is_the_sum_that_defines_it():
    cmdp, settings = random_cmdp(5), SETTINGS[0]
    run = primal_dual(cmdp, **settings)
    multiplier, regret = Fraction(0), Fraction(0)
    for _ in range(settings["iterations"]):
        slack = run.threshold - Fraction(float(run.pieces.plans[run.pieces.at(multiplier)].costs[0]))
        regret += (multiplier - Fraction(2)) * slack
        multiplier = max(multiplier - Fraction(settings["step_size"]) * slack, Fraction(0))
    assert run.dual_regret(2.0) == float(regret)


def test_the_loop_averages_occupancies_and_not_policies():
    """An averaged occupancy is worth the average of the iterates, and costs as much; averaged policies do not."""
    cmdp = random_cmdp(9)
    run = primal_dual(cmdp, iterations=40, step_size=0.7, multiplier_bound=50.0)
    assert sum(count > 0 for count in run.counts) > 1
    judged = evaluate(cmdp, run.policy(cmdp))
    assert (judged.value, judged.costs[0]) == pytest.approx((run.value, run.cost), abs=1e-12)
    shares = np.array(run.counts) / 40
    mean = sum(share * each.policy(cmdp.num_actions) for share, each in zip(shares, run.pieces.plans, strict=True))
    assert abs(evaluate(cmdp, mean).costs[0] - run.cost) > 1e-4


def test_the_multiplier_is_projected_at_both_ends():
    tables = {"transition": np.ones((1, 1, 1, 1)), "initial": [1.0], "horizon": 1, "reward": [[[0.0]]]}
    dear = CMDP(**tables, costs=[[[[1.0]]]], thresholds=[0.0])  # λ: 0, 1, 2, 2, …
    run = primal_dual(dear, iterations=10, step_size=1.0, multiplier_bound=2.0)
    assert (run.multiplier, run.multiplier_sum) == (2, 0 + 1 + 8 * 2)
    cheap = CMDP(**tables, costs=[[[[0.0]]]], thresholds=[1.0])
    assert primal_dual(cheap, iterations=10, step_size=1.0, multiplier_bound=2.0).multiplier_sum == 0


def test_a_loop_that_is_projected_again_and_again_repeats_itself():
    """Below one step from zero no rotation fits: λ falls back to 0 each time, and 1e15 steps are as easy as ten."""
    tables = {"transition": np.ones((1, 1, 2, 1)), "initial": [1.0], "horizon": 1, "thresholds": [0.75]}
    cmdp = CMDP(
        **tables, reward=[[[0.0, 0.25]]], costs=[[[[0.0, 1.0]]]]
    )  # up 0.25 below λ = 0.25, down 0.75 from there
    run = primal_dual(cmdp, iterations=10**15, step_size=1.0, multiplier_bound=8.0)
    assert run.counts == (10**15 // 2, 10**15 // 2)
    assert run.multiplier_sum == Fraction(10**15, 8)


def test_pieces_are_all_maximisers_and_no_other():
    cmdp = random_cmdp(2, states=5, actions=4, horizon=4)
    pieces = DualPieces.of(cmdp, 40.0)
    assert len(pieces.plans) > 5
    assert list(pieces.breakpoints) == sorted(set(pieces.breakpoints))
    edges = [0.0, *map(float, pieces.breakpoints), 40.0]
    for piece, (low, high) in enumerate(pairwise(edges)):
        middle = (low + high) / 2
        best, kept = plan(cmdp, np.array([middle])), pieces.plans[piece]
        assert pieces.at(Fraction(middle)) == piece
        assert best.value - middle * best.costs[0] == pytest.approx(kept.value - middle * kept.costs[0], abs=1e-12)


def test_a_plan_that_is_never_the_best_is_no_piece():
    lines = [
        Plan(np.zeros((1, 1), dtype=int), value, np.array([cost])) for value, cost in ((3, 2), (1.4, 1), (0, 0), (0, 0))
    ]
    pieces = DualPieces.envelope(lines)
    assert [each.value for each in pieces.plans] == [3, 0]
    assert pieces.breakpoints == (Fraction(3, 2),)
    assert pieces.at(Fraction(3, 2)) == 1  # at a breakpoint the cheaper one


def test_a_plan_that_is_the_best_at_one_point_only_is_no_piece():
    def pieces(*points):
        plans = [Plan(np.zeros((1, 1), dtype=int), value, np.array([cost])) for value, cost in points]
        found = DualPieces.envelope(plans)
        return [each.value for each in found.plans], list(found.breakpoints)

    assert pieces((4, 2), (2, 1), (0, 0)) == ([4, 0], [2])
    assert pieces((1, 1), (1, 0)) == ([1], [])
    assert pieces((4, 2), (3, 1), (0, 0)) == ([4, 3, 0], [1, 3])
    assert pieces((1, 2), (3, 1), (0, 0)) == ([3, 0], [3])


def test_three_policies_within_one_step_end_in_an_error_that_says_so(monkeypatch):
    monkeypatch.setattr(algorithm_3, "MAX_STRETCHES", 50)
    with pytest.raises(SolverError, match="three policies are within one step"):
        primal_dual(random_cmdp(1), iterations=10**6, step_size=1.7, multiplier_bound=50.0)


@pytest.mark.parametrize("seed", range(20))
def test_sums_of_floors(seed):
    count, slope, offset, modulus = (
        int(each) for each in np.random.default_rng(seed).integers([0, 0, 0, 1], [60, 90, 90, 40])
    )
    assert floor_sum(count, slope, offset, modulus) == sum((slope * t + offset) // modulus for t in range(count))


# The learner.


def test_the_papers_constants_run_in_full():
    """S = 2, A = 4, H = 2, ζ = 0.25, ε = 0.5: 2.69e10 steps of the loop, 1.06e7 samples of each entry."""
    rng = np.random.default_rng(2)
    cmdp = CMDP(
        transition=rng.dirichlet(np.ones(2), size=(2, 2, 4)),
        reward=rng.permuted(np.tile(np.linspace(0, 1, 8), (2, 1)), axis=1).reshape(2, 2, 4),
        costs=rng.permuted(np.tile(np.linspace(0, 1, 8), (2, 1)), axis=1).reshape(1, 2, 2, 4),
        thresholds=np.zeros(1),
        initial=np.array([0.5, 0.5]),
        horizon=2,
    )
    cmdp = replace(cmdp, thresholds=plan(cmdp, np.ones(1), reward_weight=0.0).costs + 0.25)
    problem = alone(cmdp)
    response = Algorithm3(slater=0.25)(problem, epsilon=0.5, delta=0.1)
    assert response.work == pytest.approx(2.69e10, rel=0.002)
    assert response.samples_per_entry == pytest.approx(1.06e7, rel=0.002)
    assert problem.simulator.ledger.total == response.samples_per_entry * 8  # the last step leads nowhere
    assert response.certified
    judged, best = evaluate(cmdp, response.policy), Exact()(cmdp)
    assert judged.costs[0] <= cmdp.thresholds[0]
    assert 0 <= best.value - judged.value <= 0.5
    assert response.multipliers == pytest.approx(best.multipliers, abs=0.01)


def test_the_learner_refuses_before_anything_is_drawn():
    problem = alone(random_cmdp(0), budget=10**6)
    with pytest.raises(BudgetError, match=r"Algorithm 3 would take .* samples"):
        Algorithm3(slater=0.5)(problem, epsilon=0.1, delta=0.1)
    with pytest.raises(CMPGError, match="one constraint; there are 2"):
        Algorithm3(slater=0.5)(alone(random_cmdp(0, constraints=2)), epsilon=0.1, delta=0.1)
    assert problem.simulator.ledger.total == 0


def test_the_loop_is_for_one_constraint():
    with pytest.raises(CMPGError, match="one constraint; there are 2"):
        primal_dual(random_cmdp(0, constraints=2), iterations=10, step_size=0.1, multiplier_bound=1.0)


def test_the_learner_draws_its_n_at_every_entry():
    rng = np.random.default_rng(0)
    cmdp = CMDP(
        transition=rng.dirichlet([1, 1], size=(1, 2, 2)),
        reward=[[[0.0, 1.0], [1.0, 0.0]]],
        costs=[[[[0.0, 1.0], [0.0, 1.0]]]],
        thresholds=[1.8],
        initial=[0.5, 0.5],
        horizon=2,
    )
    problem = alone(cmdp)
    Algorithm3(slater=1.8)(problem, epsilon=10.0, delta=0.1)
    # N = 400 H⁶ ln(2S²AH/δ)/(ε²ζ²), at every state and action of the one step that leads anywhere.
    per_entry = int(np.ceil(400 * 2**6 * np.log(2 * 4 * 2 * 2 / 0.1) / (10 * 1.8) ** 2))
    assert problem.simulator.ledger.total == per_entry * 4


# Numbers that can be written down.


def line(value, cost):
    return Plan(np.zeros((1, 1), dtype=int), value, np.array([float(cost)]))


LINES = [(8, 8), (7, 5), (5, 3), (2, 1), (0, 0)]


def of_lines(threshold):
    """A CMDP of one step, each of whose actions is a line."""
    values, costs = np.array(LINES, dtype=float).T
    tables = {"transition": np.ones((1, 1, len(LINES), 1)), "initial": [1.0], "horizon": 1, "thresholds": [threshold]}
    return CMDP(**tables, reward=values.reshape(1, 1, -1), costs=costs.reshape(1, 1, 1, -1))


@pytest.mark.parametrize(
    ("threshold", "step", "bound"),
    [
        (2, 1 / 8, 4),  # an alternation of two
        (3, 1 / 8, 4),  # a piece that stays where it is
        (8, 1 / 8, 4),  # nothing is too dear: λ stays at zero
        (9, 1 / 8, 4),
        (-1, 1 / 8, 2),  # everything is: λ goes to U, and stays there
        (0, 1 / 8, 2),
        (2, 1, 4),
        (4, 1 / 2, 1),
        (1 / 2, 1 / 3, 9 / 4),
        (1, 1 / 4, 2),
        (6, 1 / 16, 4),
        (2, 1 / 8, 3 / 2),  # U at a breakpoint
    ],
)
def test_the_walk_over_lines_is_the_walk_step_by_step(threshold, step, bound):
    cmdp = of_lines(threshold)
    for iterations in (1, 2, 3, 7, 20, 101):
        settings = {"iterations": iterations, "step_size": step, "multiplier_bound": bound}
        run = primal_dual(cmdp, **settings)
        assert (run.counts, run.multiplier, run.multiplier_sum, run.weighted_slack) == step_by_step(cmdp, **settings)
        assert run.iterations == iterations


def test_means_of_a_run_are_those_of_what_it_played():
    pieces = DualPieces.envelope([line(4, 2), line(0, 0)])
    run = algorithm_3.PrimalDualRun(pieces, (3, 1), Fraction(1), Fraction(6), Fraction(5), Fraction(1))
    assert (run.iterations, run.value, run.cost) == (4, 3.0, 1.5)
    assert run.dual_regret(2.0) == 5 - 2 * (3 * (1 - 2) + 1)


def test_breakpoints_part_the_pieces_and_belong_to_the_cheaper_one():
    pieces = DualPieces.envelope([line(*each) for each in LINES])
    assert pieces.breakpoints == (Fraction(1, 3), Fraction(1), Fraction(3, 2), Fraction(2))
    places = [Fraction(0), Fraction(1, 3), Fraction(1, 2), 1, Fraction(5, 4), Fraction(3, 2), Fraction(7, 4), 2, 9]
    assert [pieces.at(each) for each in places] == [0, 1, 1, 2, 2, 3, 3, 4, 4]


def two_actions(**changes):
    """Action 1 is worth 1 and costs 1, in the first of two states; the second is never visited."""
    tables = {
        "transition": np.array([[[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]]]),
        "reward": [[[0.0, 1.0], [0.0, 1.0]]],
        "costs": [[[[0.0, 1.0], [0.0, 1.0]]]],
        "thresholds": [0.5],
        "initial": [1.0, 0.0],
        "horizon": 2,
    }
    return CMDP(**tables | changes)


def test_the_averaged_loop_has_the_papers_step_and_fills_rows_evenly():
    cmdp = two_actions()
    found = algorithm_3.AveragedPrimalDual(iterations=64, multiplier_bound=4.0)(cmdp)
    run = primal_dual(cmdp, iterations=64, step_size=4.0 / (8.0 * 2), multiplier_bound=4.0)
    assert np.array_equal(found.policy, run.policy(cmdp))
    assert found.work == 64
    assert found.multipliers.tolist() == [float(run.multiplier_sum) / 64]
    assert found.policy[:, 1].tolist() == [[0.5, 0.5]] * 2
    assert found.value == pytest.approx(run.value)
    assert found.costs[0] == pytest.approx(run.cost)


def test_rows_that_are_never_visited_are_made_uniform():
    cmdp = two_actions()
    found, best = algorithm_3.UniformFill()(cmdp), Exact()(cmdp)
    assert found.policy[:, 1].tolist() == [[0.5, 0.5]] * 2
    assert found.policy[:, 0] == pytest.approx(best.policy[:, 0])
    assert (found.value, found.multipliers.tolist(), found.work) == (
        pytest.approx(best.value),
        best.multipliers.tolist(),
        best.work,
    )


def test_the_learner_tightens_the_threshold_and_runs_the_papers_loop():
    found = Algorithm3(slater=0.5)(alone(two_actions()), epsilon=2.0, delta=0.1)
    same = alone(two_actions())  # with the same random numbers
    size = algorithm_3.Size.of(same.known, 0)
    constants = algorithm_3.paper_constants(size, slater=0.5, epsilon=2.0, delta=0.1)
    empirical = sampled(same, constants.samples_per_entry)
    run = primal_dual(
        replace(empirical, thresholds=empirical.thresholds - constants.tightening),
        iterations=int(constants.iterations),
        step_size=constants.step_size,
        multiplier_bound=constants.multiplier_bound,
    )
    assert np.array_equal(found.policy, run.policy(empirical))
    assert found.multipliers.tolist() == [float(run.multiplier_sum / run.iterations)]
    assert (found.work, found.samples_per_entry) == (int(constants.iterations), constants.samples_per_entry)
    assert run.cost < empirical.thresholds[0]
    drawn = float(constants.samples_per_entry) * size.entries
    with pytest.raises(BudgetError):
        Algorithm3(slater=0.5, max_samples=drawn * 0.999)(alone(two_actions()), epsilon=2.0, delta=0.1)
    Algorithm3(slater=0.5, max_samples=drawn)(alone(two_actions()), epsilon=2.0, delta=0.1)
