"""Algorithm 2: what is called certified is right, and everything else says why it is not."""

import time
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest
from behind_doors import WRONG, Door, Faulty, TableEnvironment, arrays_in, common_reward_game, known_of

from cmpg import deadline
from cmpg.equilibrium.loop import RoundRobin
from cmpg.equilibrium.result import Status
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.errors import CMPGError, InfeasibleError, PolicyError, SimulatorError, StartError
from cmpg.games.joint.game import JointGame
from cmpg.learning.a_priori import APriori
from cmpg.learning.ascent import cost_range, learn, learned_start
from cmpg.learning.bounds import ascent_constants
from cmpg.learning.environment import EnvironmentSimulator
from cmpg.learning.generative import Adaptive
from cmpg.learning.outcome import LearnedResponse, ResponseStatus, judge
from cmpg.learning.safe import Pace, SafeExploration, safe_learner
from cmpg.learning.simulator import GameSimulator
from cmpg.policy import JointPolicy
from cmpg.scenarios import counter_example, spectrum


def matching_pennies():
    """One wants to match, the other does not: there is no potential, and best responses run in a circle."""
    match = np.eye(2).reshape(1, 1, 2, 2)
    return JointGame(
        transition=np.ones((1, 1, 2, 2, 1)),
        rewards=np.stack([match, 1 - match]),
        costs=np.zeros((0, 1, 1, 2, 2)),
        thresholds=[],
        initial=[1.0],
        horizon=1,
    )


def hidden(game, seed=0, **options):
    return GameSimulator(game, rng=np.random.default_rng(seed), **options)


def start_of(game):
    return feasible_start(game).policy


def pure(game, *actions):
    """Every agent always plays its action."""
    shapes = game.policy_shapes
    return JointPolicy(tuple(np.eye(a)[np.full((h, s), own)] for (h, s, a), own in zip(shapes, actions, strict=True)))


def assert_right(game, result):
    assert result.certified
    assert result.status is Status.CERTIFIED
    assert result.void == ()
    judged = judge(game, result)
    assert judged.feasible
    assert judged.gap <= result.epsilon
    assert judged.unsafe_policies == 0


def assert_void(result, reason):
    assert not result.certified
    assert result.status is not Status.CERTIFIED
    assert any(reason in each for each in result.void), result.void
    assert f"guarantee void because {result.void[0]}" in str(result)


class TestWhatIsCertifiedIsRight:
    @pytest.mark.parametrize("seed", range(4))
    def test_spectrum(self, seed):
        game = spectrum()
        result = learn(hidden(game, seed), epsilon=0.5, delta=0.1)
        assert_right(game, result)
        assert result.moves >= 1
        assert set(result.samples) == {"responses"}  # what they gain is decided by the responses' own bounds
        assert result.total_samples == sum(result.samples.values())

    @pytest.mark.parametrize("seed", range(6))
    def test_a_random_game(self, seed):
        game = common_reward_game(seed)
        result = learn(hidden(game, seed), epsilon=0.4, delta=0.1, start=start_of(game))
        assert_right(game, result)

    @pytest.mark.parametrize("seed", range(20))
    def test_the_counter_example_with_unknown_payoffs_from_anywhere(self, seed):
        game = counter_example()
        start = start_of(game).mix(game.random_policy(rng=np.random.default_rng(seed)), 0.5)
        assert game.at(start).costs[0] <= 0.5
        result = learn(hidden(game, seed, payoff_noise=0.5), epsilon=0.8, delta=0.1, start=start)
        assert_right(game, result)

    @pytest.mark.parametrize("constraints", [0, 2])
    def test_no_constraint_and_two(self, constraints):
        game = common_reward_game(3, constraints=constraints)
        assert_right(game, learn(hidden(game), epsilon=0.4, delta=0.1, start=start_of(game)))

    def test_a_transition_that_differs_from_step_to_step(self):
        game = common_reward_game(5, horizon=3, steps=3)
        assert_right(game, learn(hidden(game), epsilon=0.8, delta=0.1, start=start_of(game)))

    def test_agents_that_take_turns(self):
        game = common_reward_game(6)
        result = learn(hidden(game), epsilon=0.4, delta=0.1, start=start_of(game), schedule=RoundRobin())
        assert_right(game, result)

    def test_a_single_agent(self):
        game = JointGame(
            transition=np.random.default_rng(0).dirichlet(np.ones(2), size=(1, 2, 2)),
            rewards=[[[[0.0, 1.0], [0.5, 0.0]]]],
            costs=[[[[0.0, 1.0], [0.0, 0.0]]]],
            thresholds=[0.7],
            initial=[0.5, 0.5],
            horizon=2,
        )
        assert_right(game, learn(hidden(game), epsilon=0.3, delta=0.1))

    def test_rewards_that_are_all_the_same(self):
        game = common_reward_game(1)
        flat = replace(game, rewards=np.ones(game.rewards.shape))
        assert_right(flat, learn(hidden(flat), epsilon=0.1, delta=0.1, start=start_of(flat)))

    @pytest.mark.parametrize("seed", range(2))
    def test_safe_exploration_plays_nothing_unsafe(self, seed):
        game = common_reward_game(seed)
        simulator = hidden(game, seed)
        learner = safe_learner(simulator.known, epsilon=0.1, pace=Pace(growth=0.3))
        result = learn(simulator, epsilon=0.1, delta=0.1, start=start_of(game), learner=learner)
        assert_right(game, result)
        assert len(result.played) > 5
        assert sum(each.episodes for each in result.played) * 2 == result.total_samples
        assert len({each.policy.fingerprint() for each in result.played}) == len(result.played)
        if result.moves:
            assert (game.at(result.policy).costs <= game.thresholds - learner.margin).all()

    def test_the_same_seed_gives_the_same_bits(self):
        game = spectrum()
        first, second = (learn(hidden(game, 7), epsilon=0.9, delta=0.1) for _ in range(2))
        assert first.policy.fingerprint() == second.policy.fingerprint()
        assert first.samples == second.samples
        assert first.settings == second.settings
        assert " at 0x" not in first.settings["learner"]


class TestTheGuarantee:
    """What Theorem 2 rests on, as the learner and the simulator see it."""

    def test_delta_and_epsilon_are_split_and_nothing_is_asked_beyond_iteration_t(self):
        game = matching_pennies()
        learner = NeverTheSame(game)
        result = learn(hidden(game), epsilon=0.9, delta=0.1, start=pure(game, 0, 0), learner=learner)
        assert ascent_constants(hidden(game).known, epsilon=0.9, delta=0.1).max_iterations == 9  # 4 (1 + 1)/0.9
        # Half of δ/(t(t + 1)) for the t-th response: all of them together cost half of δ.
        assert learner.asked == [
            (0.9 / 4, pytest.approx(0.05 / (t * (t + 1)))) for t in range(1, 1 + len(learner.asked))
        ]
        assert len(learner.asked) <= 2 * 9
        assert result.status is Status.NOT_POTENTIAL
        assert len(result.trace) == 9
        assert_void(result, "there is no potential, with probability 0.9: 9 moves gain more than one allows.")

    @pytest.mark.parametrize(("gain", "moves"), [(0.2, 0), (1.1, 1)])
    def test_who_gains_less_than_a_quarter_of_epsilon_stays_and_who_gains_more_than_epsilon_leaves(self, gain, moves):
        result = learn(hidden(bandit(gain)), epsilon=1.0, delta=0.1, start=pure(bandit(gain), 0))
        assert result.certified
        assert result.moves == moves

    @pytest.mark.parametrize("gain", [0.2, 0.3, 0.9, 1.2])
    def test_a_learner_that_knows_of_no_present_policy_is_compared_with_it_by_episodes(self, gain):
        game = bandit(gain)
        learner = APriori(slater=1.0)
        result = learn(hidden(game), epsilon=1.0, delta=0.1, start=pure(game, 0), learner=learner)
        assert result.certified
        assert judge(game, result).gap <= 1.0
        assert result.moves == 0 if gain < 0.25 else result.moves == 1 or gain <= 1.0
        assert set(result.samples) <= {"values"}  # one step has nothing else to learn

    def test_a_learner_that_promises_too_much_proves_nothing(self):
        game = bandit(0.6)

        def vague(problem, *, epsilon, delta):
            told = answered(problem, ResponseStatus.CERTIFIED, pure(game, 1)[0], epsilon=epsilon, delta=delta)
            return replace(told, value_floor=-5.0, value_ceiling=5.0)

        result = learn(hidden(game), epsilon=1.0, delta=0.1, start=pure(game, 0), learner=vague)
        assert_void(result, "not as close to the best as it is said to be")

    def test_a_circle_of_best_responses_proves_that_there_is_no_potential(self):
        game = matching_pennies()
        result = learn(hidden(game), epsilon=0.4, delta=0.1, start=pure(game, 0, 0))
        assert result.status is Status.NOT_POTENTIAL
        assert result.moves == 4
        assert_void(result, "leads back to a policy seen before")

    def test_learners_never_see_the_transition(self):
        game = spectrum()
        door = Door(hidden(game))
        result = learn(door, epsilon=0.9, delta=0.1)
        assert_right(game, result)
        reachable = list(arrays_in([door.known, door.ledger, result]))
        assert len(reachable) > 10
        assert not any(np.shares_memory(array, game.transition) for array in reachable)

    def test_the_start_is_an_assumption_unless_it_is_safe_whatever_the_transition(self):
        game = common_reward_game(2, slack=0.05)
        vouched = learn(hidden(game), epsilon=0.8, delta=0.1, start=start_of(game))
        assert vouched.assumptions[0].startswith("the start meets the constraints (measured: ")
        idle = learn(hidden(spectrum()), epsilon=0.8, delta=0.1)
        assert not any("start" in each for each in idle.assumptions)


@dataclass
class NeverTheSame:
    """Answers with the best response of matching pennies, but for a dust of probability that is never the same."""

    game: JointGame
    asked: list = field(default_factory=list)

    def __call__(self, problem, *, epsilon, delta):
        self.asked.append((epsilon, delta))
        dust = 1e-6 * len(self.asked)
        other = problem.policy[1 - problem.agent][0, 0, 1] > 0.5
        wanted = int(other) if problem.agent == 0 else 1 - int(other)
        row = np.full(2, dust)
        row[wanted] = 1 - dust
        told = answered(problem, ResponseStatus.CERTIFIED, row.reshape(1, 1, 2), epsilon=epsilon, delta=delta)
        return replace(told, value_floor=1.0 - dust, value_ceiling=1.0)


def answered(problem, ending, policy, *, epsilon=0.1, delta=0.1, message="as told"):
    nothing = np.zeros(problem.known.num_constraints)
    return LearnedResponse(
        status=ending,
        message=message,
        policy=policy,
        value_floor=0.0,
        value_ceiling=0.0,
        cost_ceilings=nothing,
        multipliers=nothing,
        epsilon=epsilon,
        delta=delta,
        samples=0,
        samples_per_entry=0,
        work=0,
    )


def bandit(gain):
    """One agent, one step, two actions: the second is worth that much more."""
    return JointGame(
        transition=np.ones((1, 1, 2, 1)),
        rewards=[[[[0.0, gain]]]],
        costs=np.zeros((0, 1, 1, 2)),
        thresholds=[],
        initial=[1.0],
        horizon=1,
    )


class TestEndings:
    def test_no_slack_cannot_be_certified(self):
        game = no_slack_game()
        start = pure(game, 0, 0)
        assert game.at(start).slacks[0] == 0
        learner = SafeExploration(margin=0.01, pace=Pace(most=1000))
        result = learn(hidden(game), epsilon=0.05, delta=0.1, start=start, learner=learner)
        assert result.status is Status.LIMIT
        assert_void(result, "agent 0: cannot be certified: constraint 0 has the threshold 0.5")
        assert judge(game, result).unsafe_policies == 0

    def test_a_response_that_is_not_certified_is_not_moved_to(self):
        game = common_reward_game(0)
        dearest = pure(game, 1, 1)

        def useless(problem, *, epsilon, delta):
            return answered(problem, ResponseStatus.LIMIT, dearest[problem.agent], message="nothing is known yet")

        start = start_of(game)
        result = learn(hidden(game), epsilon=0.4, delta=0.1, start=start, learner=useless)
        assert_void(result, "agent 1: nothing is known yet")
        assert result.played == ()
        assert result.policy is start

    @pytest.mark.parametrize("budget", [1, 10_000, 50_000])
    def test_a_budget_is_kept(self, budget):
        game = spectrum()
        simulator = hidden(game, budget=budget)
        result = learn(simulator, epsilon=0.02, delta=0.1)
        assert result.status is Status.LIMIT
        assert_void(result, f"of the budget of {float(budget):.4g} are left")
        assert result.total_samples == simulator.ledger.total <= budget
        assert judge(game, result).feasible

    def test_a_safe_run_out_of_budget_keeps_what_it_played(self):
        game = spectrum()
        simulator = hidden(game, budget=100_000)
        learner = safe_learner(simulator.known, epsilon=0.1, pace=Pace(growth=0.5))
        result = learn(simulator, epsilon=0.1, delta=0.1, learner=learner)
        assert not result.certified
        assert result.void
        assert sum(each.episodes for each in result.played) * 2 == result.total_samples <= 100_000
        assert judge(game, result).unsafe_policies == 0

    def test_a_time_limit(self):
        result = learn(hidden(spectrum()), epsilon=0.1, delta=0.1, time_limit=-1.0)
        assert_void(result, "the time limit was reached")

    @pytest.mark.parametrize("safely", [False, True])
    def test_time_that_runs_out_within_a_response_ends_it_there(self, monkeypatch, safely):
        """The clock jumps once something is drawn; by itself the first response would draw a thousand times as much."""
        simulator = hidden(spectrum(num_agents=1))
        learner = safe_learner(simulator.known, epsilon=1e-3, pace=Pace(most=10**6)) if safely else None
        clock = SimpleNamespace(monotonic=lambda: time.monotonic() + (1e9 if simulator.ledger.total else 0.0))
        monkeypatch.setattr(deadline, "time", clock)
        result = learn(simulator, epsilon=1e-3, delta=0.1, learner=learner, time_limit=1e6)
        assert_void(result, "the time limit was reached")
        assert 0 < result.total_samples < 10_000

    def test_an_interrupt_keeps_the_incumbent(self):
        def stop(step):
            raise KeyboardInterrupt

        result = learn(hidden(spectrum()), epsilon=0.5, delta=0.1, on_progress=stop)
        assert result.status is Status.INTERRUPTED
        assert_void(result, "interrupted")
        assert result.total_samples > 0


def no_slack_game():
    """All costs are paid at the first step, by agent 0's action 0 as much as is allowed; where it leads is unknown."""
    rng = np.random.default_rng(0)
    costs = np.zeros((1, 2, 2, 2, 2))
    costs[0, 0, :, 0, :], costs[0, 0, :, 1, :] = 0.5, 1.0
    return JointGame(
        transition=rng.dirichlet(np.ones(2), size=(1, 2, 2, 2)),
        rewards=np.stack([rng.random((2, 2, 2, 2))] * 2),
        costs=costs,
        thresholds=[0.5],
        initial=[0.5, 0.5],
        horizon=2,
    )


class TestStarts:
    def test_one_that_cannot_meet_the_constraints_is_refused_before_the_first_sample(self):
        game = counter_example()
        simulator = hidden(game)
        with pytest.raises(StartError, match=r"constraint 0 has the threshold 0.5, and .* costs at least 1") as caught:
            learn(simulator, epsilon=0.2, delta=0.1, start=pure(game, 1, 1))
        assert simulator.ledger.total == 0
        assert isinstance(caught.value, InfeasibleError)

    def test_one_that_episodes_refute_is_refused_with_what_was_seen(self):
        game = common_reward_game(0)
        dear = game.uniform_policy()
        tight = replace(game, thresholds=game.at(dear).costs - 0.1)
        assert cost_range(hidden(tight), dear).cost_floors[0] < tight.thresholds[0]
        simulator = hidden(tight)
        with pytest.raises(StartError, match=r"infeasible with probability 0.9: it costs .* against") as caught:
            learn(simulator, epsilon=0.2, delta=0.1, start=dear)
        result = caught.value.result
        assert not result.certified
        assert result.samples == {"responses": simulator.ledger.total}
        assert result.total_samples > 0
        assert result.policy is dear

    def test_one_that_is_a_little_infeasible_is_found_out_by_the_responses_or_stays_an_assumption(self):
        """Nobody can tell a cost from its threshold by less than the samples allow; then it is said."""
        game = common_reward_game(0)
        close = replace(game, thresholds=game.at(game.uniform_policy()).costs - 1e-6)
        result = learn(hidden(close), epsilon=0.8, delta=0.1, start=close.uniform_policy())
        assert result.assumptions[0].startswith("the start meets the constraints (measured: ")

    def test_one_against_which_an_agent_has_no_feasible_policy_is_refused(self):
        game = common_reward_game(0)

        def hopeless(problem, *, epsilon, delta):
            return answered(problem, ResponseStatus.INFEASIBLE, problem.policy[problem.agent], message="least cost 9.")

        with pytest.raises(StartError, match=r"against it agent 0 has no policy .* \(least cost 9\.\)") as caught:
            learn(hidden(game), epsilon=0.8, delta=0.1, start=start_of(game), learner=hopeless)
        assert caught.value.result.moves == 0

    def test_without_one_that_is_safe_whatever_happens_one_is_learned_and_only_from_draws(self):
        game = common_reward_game(0, slack=0.2)
        found = learned_start(hidden(game), delta=0.1)
        assert np.all(game.at(found).costs <= game.thresholds)
        result = learn(hidden(game), epsilon=0.8, delta=0.1)
        assert result.settings["start"] == "learned from samples"
        assert result.samples["start"] > 0
        measured = learned_start(hidden(game), delta=0.05)
        executed = [each.policy.fingerprint() for each in result.played]
        assert measured.fingerprint() in executed, "what was rolled out for the start"
        assert result.certified
        assert judge(game, result).right(0.8)
        with pytest.raises(StartError, match="no start is given, and none was found"):
            learn(hidden(game), epsilon=0.2, delta=0.1, learner=SafeExploration())

    def test_one_that_the_budget_does_not_allow_to_learn_is_an_ending(self):
        result = learn(hidden(common_reward_game(0, slack=0.2), budget=1000), epsilon=0.8, delta=0.1)
        assert result.status is Status.LIMIT
        assert "no start is proved" in result.message
        assert "budget of 1000" in result.void[0]

    def test_no_start_is_learned_where_nothing_is_feasible(self):
        game = common_reward_game(0, slack=-0.1)
        with pytest.raises(StartError, match="prove none"):
            learned_start(hidden(game), delta=0.1, max_count=1000)

    def test_one_of_another_shape_is_refused(self):
        with pytest.raises(PolicyError):
            learn(hidden(spectrum()), epsilon=0.2, delta=0.1, start=counter_example().uniform_policy())


class TestBadInput:
    @pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (-1, 0.1), (np.nan, 0.1), (0.1, 0.0), (0.1, 1.0)])
    def test_accuracies_out_of_range(self, epsilon, delta):
        with pytest.raises(CMPGError, match=r"epsilon is|delta is"):
            learn(hidden(spectrum()), epsilon=epsilon, delta=delta)

    def test_a_budget_of_nothing(self):
        with pytest.raises(SimulatorError, match="budget is 0"):
            hidden(spectrum(), budget=0)

    @pytest.mark.parametrize("kind", ["state", "nan", "range"])
    @pytest.mark.parametrize("late", [False, True])
    def test_an_environment_that_fails_is_named_and_nothing_is_lost(self, kind, late):
        """Early: while the model is drawn; late: while a policy is rolled out."""
        game = common_reward_game(0)
        drawn = 4 * 400  # the samples of the first round
        at = drawn + 101 if late else 101
        answer, message = WRONG[kind]
        environment = Faulty(game, at=at, answer=answer)
        simulator = EnvironmentSimulator(environment, known=known_of(game), rng=np.random.default_rng(0))
        with pytest.raises(SimulatorError, match=message.split("; ")[0].replace("h=1", r"h=\d")) as caught:
            learn(simulator, epsilon=0.4, delta=0.1, start=start_of(game), learner=Adaptive(400, interval=None))
        fault = caught.value
        assert simulator.ledger.total == at
        assert dict(fault.result.samples) == simulator.ledger.by_purpose == {"responses": at}
        assert fault.result.void
        assert not fault.result.certified
        assert fault.samples.visits.sum() == at - 1
        # An episode that was cut short was begun.
        assert sum(each.episodes for each in fault.result.played) == (51 if late else 0)

    def test_an_environment_of_the_user_s_own_is_learned(self):
        game = common_reward_game(4)
        simulator = EnvironmentSimulator(
            TableEnvironment(game), known=known_of(game), rng=np.random.default_rng(0), budget=10**6
        )
        result = learn(simulator, epsilon=1.5, delta=0.2, start=start_of(game))
        assert_right(game, result)


@pytest.mark.parametrize("given", [True, False])
def test_the_answers_of_a_run_share_delta(given):
    """The t-th question may be wrong with probability δ/(t(t + 1)), so that all are right with probability 1 − δ."""
    game, delta, shares = spectrum(), 0.1, []

    def learner(problem, *, epsilon, delta):
        shares.append(delta)
        return Adaptive()(problem, epsilon=epsilon, delta=delta)

    start = start_of(game) if given else None
    assert_right(game, learn(hidden(game), epsilon=0.5, delta=delta, start=start, learner=learner))
    assert len(shares) >= 3
    assert all(2 * share <= delta / (t * (t + 1)) for t, share in enumerate(shares, 1))  # half is for comparing
