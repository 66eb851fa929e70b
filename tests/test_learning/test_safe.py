"""Safe exploration: what is played is safe, what is certified is true, and what cannot be certified is said."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from cmpg.cmdp.box import BoxCMDP, optimistic_response, worst_case
from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import plan
from cmpg.errors import BudgetError, CMPGError, InfeasibleError, PolicyError
from cmpg.games.joint.game import JointGame
from cmpg.learning.confidence import Estimate, PaperInterval
from cmpg.learning.outcome import ResponseStatus
from cmpg.learning.problem import InducedProblem
from cmpg.learning.safe import (
    Baseline,
    GivenPolicy,
    OwnPolicy,
    Pace,
    SafeExploration,
    exploration_policy,
    paper_bonus,
    tight_bonus,
)
from cmpg.learning.simulator import GameSimulator
from cmpg.paper.algorithm_4 import OnlineToBatch
from cmpg.paper.learning import behind_a_door

FAST = Pace(growth=0.1, first=32)


def random_cmdp(rng, *, states=3, actions=2, horizon=3, constraints=1, slack=0.4):
    shape = (horizon, states, actions)
    cmdp = CMDP(
        transition=rng.dirichlet(np.ones(states), size=shape),
        reward=rng.random(shape),
        costs=rng.random((constraints, *shape)),
        thresholds=np.zeros(constraints),
        initial=rng.dirichlet(np.ones(states)),
        horizon=horizon,
    )
    spent = evaluate(cmdp, cheapest(cmdp)).costs
    return replace(cmdp, thresholds=spent + slack)


def rare_catastrophe(*, chance=1e-3, threshold=0.0015):
    """Being careful earns 0.2 a step; being bold earns 1, and one time in a thousand everything ends, at a cost."""
    transition = np.array([[[[1.0, 0.0], [1.0 - chance, chance]], [[0.0, 1.0], [0.0, 1.0]]]])
    return CMDP(
        transition=transition,
        reward=[[[0.2, 1.0], [0.0, 0.0]]],
        costs=[[[[0.0, 0.0], [1.0, 1.0]]]],
        thresholds=[threshold],
        initial=[1.0, 0.0],
        horizon=3,
    )


def cheapest(cmdp):
    equal = np.full(cmdp.num_constraints, 1.0)
    return plan(cmdp, equal, reward_weight=0.0).policy(cmdp.num_actions)


def behind_the_door(cmdp, *, seed=0, **options):
    """A game of one agent, whose model only the simulator knows."""
    return behind_a_door(cmdp, np.random.default_rng(seed), **options)


def safe_policy(cmdp, *, known=True):
    table = cheapest(cmdp)
    return GivenPolicy(table, evaluate(cmdp, table).costs if known else None)


def certain(cmdp):
    """What one would believe after infinitely many samples."""
    costs = np.broadcast_to(cmdp.costs, (cmdp.num_constraints, *cmdp.policy_shape))
    box = BoxCMDP(cmdp, cmdp.transition, cmdp.transition)
    return Estimate(box, box, np.broadcast_to(cmdp.reward, cmdp.policy_shape), costs)


def uncertain(cmdp, rng, *, radius):
    radii = radius * rng.random(cmdp.transition.shape)
    box = BoxCMDP(cmdp, np.maximum(cmdp.transition - radii, 0.0), np.minimum(cmdp.transition + radii, 1.0))
    return replace(certain(cmdp), box=box, optimistic=box)


def assert_all_executed_are_safe(cmdp, response):
    for each in response.played:
        assert (evaluate(cmdp, each.policy[0]).costs <= cmdp.thresholds + 1e-12).all()


def assert_what_is_claimed_is_true(cmdp, response):
    truth, best = evaluate(cmdp, response.policy), Exact()(cmdp).value
    assert response.value_floor <= truth.value + 1e-12
    assert best <= response.value_ceiling + 1e-9
    assert (truth.costs <= response.cost_ceilings + 1e-12).all()
    if response.certified:
        assert best - truth.value <= response.epsilon + 1e-9
        assert (truth.costs <= cmdp.thresholds + 1e-12).all()


class TestThePolicyToPlay:
    @given(st.integers(0, 2**32 - 1))
    @settings(deadline=None, max_examples=20)
    def test_with_no_doubt_and_no_bonus_it_is_the_optimum(self, seed):
        cmdp = random_cmdp(np.random.default_rng(seed))
        table = cheapest(cmdp)
        baseline = Baseline(table, evaluate(cmdp, table).costs)
        nothing = np.zeros((1, *cmdp.policy_shape))
        choice = exploration_policy(certain(cmdp), baseline, bonus=lambda belief: nothing, reward_range=3.0)
        assert not choice.is_baseline
        assert evaluate(cmdp, choice.policy).value == pytest.approx(Exact()(cmdp).value, abs=1e-9)

    def test_a_huge_bonus_leaves_the_baseline(self):
        cmdp = random_cmdp(np.random.default_rng(1))
        table = cheapest(cmdp)
        baseline = Baseline(table, evaluate(cmdp, table).costs)
        huge = np.full((1, *cmdp.policy_shape), 1e6)
        choice = exploration_policy(certain(cmdp), baseline, bonus=lambda belief: huge, reward_range=3.0)
        assert choice.is_baseline
        assert (choice.policy == table).all()

    def test_a_baseline_of_unknown_slack_is_played(self):
        cmdp = random_cmdp(np.random.default_rng(1))
        choice = exploration_policy(certain(cmdp), Baseline(cheapest(cmdp), np.array([np.inf])), reward_range=3.0)
        assert choice.is_baseline

    @given(st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.2, 1.0]), st.sampled_from([tight_bonus, paper_bonus]))
    @settings(deadline=None, max_examples=25)
    def test_a_bonus_covers_every_kernel_of_the_box(self, seed, radius, bonus):
        """Raised costs under one kernel are at least the costs under any other."""
        rng = np.random.default_rng(seed)
        cmdp = random_cmdp(rng, states=4, constraints=2)
        belief = uncertain(cmdp, rng, radius=radius)
        policy = rng.dirichlet(np.ones(2), size=(3, 4))
        raised = replace(cmdp, costs=cmdp.costs + bonus(belief))
        for j, cost in enumerate(belief.worst_costs):
            assert worst_case(belief.box, policy, cost) <= evaluate(raised, policy).costs[j] + 1e-12

    @given(st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.1, 0.3]))
    @settings(deadline=None, max_examples=30)
    def test_the_tight_bonus_is_never_above_the_paper_s(self, seed, radius):
        rng = np.random.default_rng(seed)
        belief = uncertain(random_cmdp(rng, states=4), rng, radius=radius)
        assert (tight_bonus(belief) <= paper_bonus(belief) + 1e-12).all()

    @given(st.integers(0, 2**32 - 1), st.sampled_from([0.01, 0.05]))
    @settings(deadline=None, max_examples=30)
    def test_it_is_optimistic_where_the_baseline_meets_the_raised_costs(self, seed, radius):
        rng = np.random.default_rng(seed)
        cmdp = random_cmdp(rng)
        belief = uncertain(cmdp, rng, radius=radius)
        table = cheapest(cmdp)
        raised = tight_bonus(belief)
        if (evaluate(replace(cmdp, costs=cmdp.costs + raised), table).costs > cmdp.thresholds).any():
            reject()
        share = 3.0 / (cmdp.thresholds - evaluate(cmdp, table).costs)
        promising = replace(cmdp, reward=cmdp.reward + share[0] * raised[0], costs=cmdp.costs + raised)
        promised = optimistic_response(BoxCMDP(promising, belief.box.lower, belief.box.upper))
        assert promised.bound >= Exact()(cmdp).value - 1e-9

    @given(st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.1, 1.0]))
    @settings(deadline=None, max_examples=30)
    def test_it_is_safe_whatever_the_kernel(self, seed, radius):
        rng = np.random.default_rng(seed)
        cmdp = random_cmdp(rng, constraints=2)
        belief = uncertain(cmdp, rng, radius=radius)
        table = cheapest(cmdp)
        baseline = Baseline(table, np.minimum(evaluate(cmdp, table).costs, cmdp.thresholds - 0.01))
        choice = exploration_policy(belief, baseline, reward_range=3.0)
        if not choice.is_baseline:
            for cost, threshold in zip(belief.worst_costs, cmdp.thresholds, strict=True):
                assert worst_case(belief.box, choice.policy, cost) <= threshold + 1e-9


class TestSafeExploration:
    @pytest.mark.parametrize("seed", range(6))
    def test_it_certifies_and_plays_nothing_unsafe(self, seed):
        cmdp = random_cmdp(np.random.default_rng(seed))
        learner = SafeExploration(baseline=safe_policy(cmdp), pace=FAST)
        response = learner(behind_the_door(cmdp, seed=seed), epsilon=0.1, delta=0.1)
        assert response.status is ResponseStatus.CERTIFIED, response.message
        assert response.gap <= 0.1
        assert_what_is_claimed_is_true(cmdp, response)
        assert_all_executed_are_safe(cmdp, response)
        assert sum(each.episodes for each in response.played) * 3 == response.samples
        assert len({each.policy[0].tobytes() for each in response.played}) == len(response.played) > 1

    @pytest.mark.parametrize("seed", range(4))
    def test_a_rare_catastrophe_is_never_risked_beyond_the_budget(self, seed):
        cmdp = rare_catastrophe()
        learner = SafeExploration(baseline=safe_policy(cmdp), pace=FAST)
        response = learner(behind_the_door(cmdp, seed=seed), epsilon=0.5, delta=0.1)
        assert response.status is ResponseStatus.CERTIFIED, response.message
        assert_what_is_claimed_is_true(cmdp, response)
        assert_all_executed_are_safe(cmdp, response)

    def test_the_slack_of_the_baseline_can_be_measured(self):
        cmdp = random_cmdp(np.random.default_rng(3), states=2)
        learner = SafeExploration(baseline=safe_policy(cmdp, known=False), pace=FAST)
        response = learner(behind_the_door(cmdp), epsilon=0.3, delta=0.1)
        assert response.certified
        assert_what_is_claimed_is_true(cmdp, response)
        assert_all_executed_are_safe(cmdp, response)

    def test_the_paper_s_bonus_and_interval_are_safe_too_and_need_more_episodes(self):
        cmdp = random_cmdp(np.random.default_rng(0))
        tight = SafeExploration(baseline=safe_policy(cmdp), pace=FAST)
        paper = replace(tight, bonus=paper_bonus, interval=PaperInterval(FAST.most))
        quick, slow = (learner(behind_the_door(cmdp), epsilon=0.3, delta=0.1) for learner in (tight, paper))
        assert quick.certified
        assert slow.certified
        assert slow.samples > 2 * quick.samples
        assert_all_executed_are_safe(cmdp, slow)
        assert_what_is_claimed_is_true(cmdp, slow)

    def test_several_constraints(self):
        cmdp = random_cmdp(np.random.default_rng(5), states=2, constraints=2, slack=0.5)
        learner = SafeExploration(baseline=safe_policy(cmdp), pace=FAST)
        response = learner(behind_the_door(cmdp), epsilon=0.4, delta=0.1)
        assert response.certified
        assert_what_is_claimed_is_true(cmdp, response)
        assert_all_executed_are_safe(cmdp, response)

    def test_unknown_payoffs_are_learned_on_the_way(self):
        cmdp = random_cmdp(np.random.default_rng(2), states=2, horizon=2)
        problem = behind_the_door(cmdp, payoff_noise=0.1)
        learner = SafeExploration(baseline=safe_policy(cmdp), pace=FAST)
        response = learner(problem, epsilon=0.5, delta=0.1)
        assert response.certified, response.message
        assert_what_is_claimed_is_true(cmdp, response)
        assert_all_executed_are_safe(cmdp, response)

    def test_a_margin_keeps_the_response_strictly_inside(self):
        cmdp = random_cmdp(np.random.default_rng(0), states=2)
        assert Exact()(cmdp).multipliers[0] > 0  # the constraint binds, so the margin matters
        learner = SafeExploration(baseline=safe_policy(cmdp), margin=0.05, pace=FAST)
        response = learner(behind_the_door(cmdp), epsilon=0.4, delta=0.1)
        assert response.certified
        assert (evaluate(cmdp, response.policy).costs <= cmdp.thresholds - 0.05).all()

    def test_the_own_policy_of_an_agent_among_others_is_a_baseline(self):
        rng = np.random.default_rng(8)
        game = JointGame(
            transition=rng.dirichlet(np.ones(2), size=(1, 2, 2, 2)),
            rewards=rng.random((2, 1, 2, 2, 2)),
            costs=rng.random((1, 1, 2, 2, 2)),
            thresholds=[1.4],
            initial=[0.5, 0.5],
            horizon=2,
        )
        policy = game.uniform_policy()
        cmdp = game.at(policy).induced_cmdp(1)
        assert evaluate(cmdp, policy[1]).costs[0] < 1.4
        problem = InducedProblem(GameSimulator(game, rng=rng), 1, policy)
        response = SafeExploration(baseline=OwnPolicy(), pace=FAST)(problem, epsilon=0.2, delta=0.1)
        assert response.certified
        assert_what_is_claimed_is_true(cmdp, response)
        assert_all_executed_are_safe(cmdp, response)

    def test_one_step_needs_no_episode(self):
        cmdp = random_cmdp(np.random.default_rng(0), horizon=1)
        response = SafeExploration(baseline=safe_policy(cmdp))(behind_the_door(cmdp), epsilon=1e-6, delta=0.1)
        assert response.certified
        assert response.samples == 0

    def test_the_same_seed_gives_the_same_run(self):
        cmdp = random_cmdp(np.random.default_rng(0), states=2)
        learner = SafeExploration(baseline=safe_policy(cmdp), pace=Pace(growth=0.2, first=50))
        first, second = (learner(behind_the_door(cmdp, seed=7), epsilon=0.1, delta=0.1) for _ in range(2))
        assert first.samples > 0
        assert (first.policy == second.policy).all()
        assert first.samples == second.samples
        assert first.value_floor == second.value_floor

    def test_every_round_is_reported(self):
        cmdp = random_cmdp(np.random.default_rng(0))
        seen = []
        learner = SafeExploration(baseline=safe_policy(cmdp), pace=FAST, on_round=seen.append)
        response = learner(behind_the_door(cmdp), epsilon=0.3, delta=0.1)
        assert len(seen) > 5
        assert seen[-1].samples == response.samples
        ceilings = [each.value_ceiling for each in seen]
        assert ceilings == sorted(ceilings, reverse=True)


class TestEndings:
    def test_no_slack_cannot_be_certified(self):
        cmdp = random_cmdp(np.random.default_rng(0), slack=0.0)
        response = SafeExploration(baseline=safe_policy(cmdp))(behind_the_door(cmdp), epsilon=0.1, delta=0.1)
        assert response.status is ResponseStatus.NO_SLACK
        assert response.message.startswith("cannot be certified: constraint 0")
        assert response.samples == 0

    def test_no_slack_is_found_out_by_measuring(self):
        cmdp = random_cmdp(np.random.default_rng(0), states=2, slack=0.0)
        learner = SafeExploration(baseline=safe_policy(cmdp, known=False), least_slack=0.05, pace=FAST)
        response = learner(behind_the_door(cmdp), epsilon=0.01, delta=0.1)
        assert response.status is ResponseStatus.NO_SLACK
        assert "too little slack" in response.message
        assert_all_executed_are_safe(cmdp, response)

    def test_a_policy_that_is_not_safe_is_found_out(self):
        cmdp = random_cmdp(np.random.default_rng(0), states=2, slack=0.1)
        dearest = plan(replace(cmdp, costs=-cmdp.costs), np.ones(1), reward_weight=0.0).policy(2)
        learner = SafeExploration(baseline=GivenPolicy(dearest), pace=FAST)
        response = learner(behind_the_door(cmdp), epsilon=0.01, delta=0.1)
        assert response.status is ResponseStatus.NO_SLACK
        assert "called safe costs at least" in response.message

    def test_infeasible_constraints_are_proved(self):
        cmdp = random_cmdp(np.random.default_rng(0), states=2)
        impossible = replace(cmdp, thresholds=np.array([-0.1]))
        response = SafeExploration(baseline=GivenPolicy(cheapest(cmdp)))(
            behind_the_door(impossible), epsilon=0.1, delta=0.1
        )
        assert response.status is ResponseStatus.INFEASIBLE
        with pytest.raises(InfeasibleError):
            Exact()(impossible)

    def test_a_budget_that_ends_early_keeps_what_is_known(self):
        cmdp = random_cmdp(np.random.default_rng(0))
        problem = behind_the_door(cmdp, budget=3000)
        response = SafeExploration(baseline=safe_policy(cmdp), pace=FAST)(problem, epsilon=0.01, delta=0.1)
        assert response.status is ResponseStatus.LIMIT
        assert "apart" in response.message or "proved" in response.message
        assert response.samples == problem.simulator.ledger.total == 3000
        assert_what_is_claimed_is_true(cmdp, response)
        assert_all_executed_are_safe(cmdp, response)

    def test_wrong_input_is_refused(self):
        cmdp = random_cmdp(np.random.default_rng(0))
        problem = behind_the_door(cmdp)
        with pytest.raises(CMPGError, match="epsilon is 0"):
            SafeExploration()(problem, epsilon=0.0, delta=0.1)
        with pytest.raises(CMPGError, match="delta is 1"):
            SafeExploration()(problem, epsilon=0.1, delta=1.0)
        with pytest.raises(CMPGError, match="margin is -1"):
            SafeExploration(margin=-1.0)(problem, epsilon=0.1, delta=0.1)
        with pytest.raises(PolicyError, match="safe policy has shape"):
            SafeExploration(baseline=GivenPolicy(np.ones((1, 1, 1))))(problem, epsilon=0.1, delta=0.1)
        with pytest.raises(PolicyError, match=r"safe policy\[h=0, s=0\] sums to 2"):
            SafeExploration(baseline=GivenPolicy(np.ones((3, 3, 2))))(problem, epsilon=0.1, delta=0.1)
        with pytest.raises(PolicyError, match="costs has shape"):
            SafeExploration(baseline=GivenPolicy(cheapest(cmdp), [0.1, 0.2]))(problem, epsilon=0.1, delta=0.1)
        with pytest.raises(CMPGError, match="does not advance"):
            Pace(growth=0.0)


class TestOnlineToBatch:
    def test_the_best_of_the_policies_that_were_played_is_returned(self):
        cmdp = random_cmdp(np.random.default_rng(0), states=2)
        learner = OnlineToBatch(baseline=safe_policy(cmdp), rounds=20_000, bonus=tight_bonus, pace=FAST)
        response = learner(behind_the_door(cmdp), epsilon=0.5, delta=0.1)
        assert response.status is ResponseStatus.CERTIFIED, response.message
        assert_what_is_claimed_is_true(cmdp, response)
        assert_all_executed_are_safe(cmdp, response)
        values = [evaluate(cmdp, each.policy[0]).value for each in response.played]
        assert evaluate(cmdp, response.policy).value >= max(values) - 0.25
        assert response.policy.tobytes() in {each.policy[0].tobytes() for each in response.played}

    def test_too_few_rounds_prove_nothing(self):
        cmdp = random_cmdp(np.random.default_rng(0), states=2)
        learner = OnlineToBatch(baseline=safe_policy(cmdp), rounds=200, pace=FAST)
        response = learner(behind_the_door(cmdp), epsilon=0.3, delta=0.1)
        assert response.status is ResponseStatus.UNPROVED
        assert_what_is_claimed_is_true(cmdp, response)
        assert_all_executed_are_safe(cmdp, response)

    def test_the_paper_s_number_of_rounds_is_refused_at_once(self):
        cmdp = random_cmdp(np.random.default_rng(0))
        problem = behind_the_door(cmdp)
        with pytest.raises(BudgetError, match="episodes for exploring"):
            OnlineToBatch(baseline=safe_policy(cmdp), pace=Pace(most=1000))(problem, epsilon=0.1, delta=0.1)
        with pytest.raises(BudgetError, match="episodes for measuring"):
            OnlineToBatch(baseline=safe_policy(cmdp), rounds=900, pace=Pace(most=1000))(problem, epsilon=0.1, delta=0.1)
        with pytest.raises(CMPGError, match="what the safe policy costs"):
            OnlineToBatch(baseline=safe_policy(cmdp, known=False))(problem, epsilon=0.1, delta=0.1)

    def test_no_slack_cannot_be_certified(self):
        cmdp = random_cmdp(np.random.default_rng(0), slack=0.0)
        response = OnlineToBatch(baseline=safe_policy(cmdp))(behind_the_door(cmdp), epsilon=0.1, delta=0.1)
        assert response.status is ResponseStatus.NO_SLACK
        assert response.samples == 0


SHAPE = (3, 2, 2)


def belief():
    """Two constraints, three steps, two states and actions; worst costs and best rewards differ from the empirical."""
    rng = np.random.default_rng(0)
    kernel = rng.dirichlet(np.ones(2), size=SHAPE)
    tables = {"costs": rng.random((2, *SHAPE)), "thresholds": [1.0, 2.0], "initial": [0.5, 0.5], "horizon": 3}
    nominal = CMDP(transition=kernel, reward=rng.random(SHAPE), **tables)
    bounds = np.maximum(kernel - 0.1, 0.0), np.minimum(kernel + 0.2, 1.0)
    better = CMDP(transition=kernel, reward=nominal.reward + 0.5, **tables)
    worst = np.asarray(nominal.costs) + rng.random((2, *SHAPE))
    return Estimate(BoxCMDP(nominal, *bounds), BoxCMDP(better, *bounds), nominal.reward - 0.5, worst)


def test_the_tight_bonus_is_what_may_still_come_times_the_spread():
    known = belief()
    ranges = np.ptp(known.worst_costs.reshape(2, 3, 4), axis=2)
    to_come = np.stack([ranges[:, 1] + ranges[:, 2], ranges[:, 2], np.zeros(2)], axis=1)
    assert tight_bonus(known) == pytest.approx(to_come[:, :, None, None] * known.box.spread)


def test_the_papers_bonus_is_the_whole_range_times_the_radii():
    known = belief()
    ranges = np.ptp(known.worst_costs.reshape(2, 3, 4), axis=2).sum(axis=1)
    kernel = np.asarray(known.box.nominal.transition)
    radii = np.maximum(known.box.upper - kernel, kernel - known.box.lower).sum(axis=-1)
    assert paper_bonus(known) == pytest.approx(ranges[:, None, None, None] * radii)


def test_a_pace_that_does_not_advance_is_refused():
    Pace(growth=1e-9, first=1, most=1)
    for wrong in ({"growth": 0.0}, {"first": 0}, {"most": 0}):
        with pytest.raises(CMPGError, match="does not advance"):
            Pace(**wrong)
