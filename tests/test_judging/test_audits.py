"""Policies judged by episodes: the truth lies between the bounds, and what is not proved does not count."""

import math
import sys
from dataclasses import replace
from itertools import product
from types import ModuleType

import numpy as np
import pytest

import cmpg
from cmpg.errors import CMPGError, GameError, PolicyError, SimulatorError, UnsupportedError
from cmpg.interop import from_parallel_env, to_parallel_env
from cmpg.interop.replays import replay
from cmpg.judging.audits import Interval, audit
from cmpg.judging.ceilings import Ceilings, outcomes
from cmpg.judging.environments import EnvironmentWorld
from cmpg.judging.known import judge_known
from cmpg.judging.policies import single_function
from cmpg.judging.single_agent import SingleAgentEnv
from cmpg.judging.worlds import ENDED, GameWorld
from cmpg.learning.confidence import fixed_bets, mean_ceiling
from cmpg.policy import JointPolicy
from cmpg.report.judging import WIDE, audits_page
from command_line import cmpg as command


def seeded():
    return np.random.default_rng(1)


def random_game(rng, states=2, actions=2, horizon=2, threshold=0.6):
    transition = rng.dirichlet(np.ones(states), size=(horizon, states, actions, actions))
    return cmpg.JointGame(
        transition=transition,
        rewards=rng.random((2, horizon, states, actions, actions)),
        costs=rng.random((1, horizon, states, actions, actions))
        * (rng.random((1, horizon, states, actions, actions)) < 0.5),
        thresholds=[threshold],
        initial=rng.dirichlet(np.ones(states)),
        horizon=horizon,
    )


def test_the_truth_is_between_the_bounds():
    """16 audits at δ = 0.1; `python -m checks judging` makes 1,000."""
    misses = 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        game = random_game(rng)
        policy = JointPolicy.random(game.policy_shapes, rng=rng)
        judged = judge_known(game, policy, time_limit=0)
        found = audit(GameWorld(game), policy, episodes=400, delta=0.1, rng=rng)
        truth = max([0.0, *(each.gain for each in judged.deviations if each is not None)])
        wrong = not found.exploitability.lower - 1e-9 <= truth <= found.exploitability.upper + 1e-9
        wrong |= any(value not in known for value, known in zip(judged.values, found.values, strict=True))
        wrong |= any(cost not in known for cost, known in zip(judged.costs, found.costs, strict=True))
        misses += wrong
    assert misses <= 5  # 1.6 expected at most; 6 or more have probability 0.003 at δ = 0.1


def test_intervals_shrink_as_episodes_grow():
    game = cmpg.scenarios.spectrum()
    policy = JointPolicy.from_callable(game.policy_shapes, lambda *_: 0)
    widths = [
        audit(GameWorld(game), policy, episodes=count, rng=seeded()).exploitability.width
        for count in (200, 1_600, 12_800)
    ]
    assert widths[0] > 1.5 * widths[1] > 3 * widths[2]
    assert widths[2] < 0.2


def test_a_deviation_that_is_not_proved_within_the_budget_does_not_count():
    """Breaking the budget is worth 2, and what keeps it is worth nothing."""
    game = cmpg.JointGame(
        transition=np.ones((1, 1, 2, 1)), rewards=[[[[0.0, 2.0]]]], costs=[[[[0.0, 1.0]]]], thresholds=[0.0],
        initial=[1.0], horizon=1,
    )  # fmt: skip
    stay = JointPolicy(([[[1.0, 0.0]]],))
    greedy = np.array([[[0.0, 1.0]]])
    found = audit(GameWorld(game), stay, episodes=500, rng=seeded(), deviations={0: [greedy]})
    given = [each for each in found.tried if each.source == "given"]
    assert given[0].gain.lower > 1.5
    assert not given[0].within_budget
    assert found.exploitability.lower == 0
    assert found.deviations == (None,)
    assert "not proved to keep the budget" in str(found)
    loose = audit(GameWorld(game.with_thresholds([1.0])), stay, episodes=500, rng=seeded())
    assert loose.exploitability.lower > 1.5


# --- Theorem 6 --------------------------------------------------------------------------------------------------------


def optimal_value(game, policy, agent, multipliers):
    """V* of w = r − λ·c against the others, by backward induction over plain tables."""
    cmdp = game.at(policy).induced_cmdp(agent)
    values = np.zeros(cmdp.num_states)
    found = []
    for h in reversed(range(cmdp.horizon)):
        stage = cmdp.reward[min(h, len(cmdp.reward) - 1)] - np.tensordot(
            multipliers, np.asarray(cmdp.costs)[:, min(h, cmdp.costs.shape[1] - 1)], axes=1
        )
        matrix = cmdp.matrix(h)
        dense = (matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)).reshape(*stage.shape, -1)
        values = (stage + dense @ values).max(axis=1)
        found.append(values)
    return found[::-1]


def test_ceilings_are_above_the_optimal_values_in_every_state():
    misses = trials = 0
    for seed in range(30):
        rng = np.random.default_rng(100 + seed)
        game = random_game(rng)
        policy = JointPolicy.random(game.policy_shapes, rng=rng)
        world = GameWorld(game)
        uniform = np.full((2, 2, 2), 0.5)
        seen = world.play(world.prepared(policy), 300, rng, agent=0, deviation=uniform)
        ceilings = Ceilings(world, 0, outcomes(seen), np.bincount(seen.states[0], minlength=2), 300, 0.3)
        for price in (0.0, 1.0):
            # A multiplier of the grid: those between are not covered.
            multipliers = ceilings.grid.multipliers(ceilings.grid.place(np.array([price])))
            found, _ = ceilings.values(multipliers)
            true = optimal_value(game, policy, 0, multipliers)
            trials += 1
            misses += any((mine < theirs - 1e-12).any() for mine, theirs in zip(found, true, strict=True))
    assert trials == 60
    assert misses <= 30


def test_what_was_never_tried_has_the_largest_value():
    game = random_game(np.random.default_rng(3))
    world = GameWorld(game)
    first = np.zeros((2, 2, 2))
    first[..., 0] = 1.0
    seen = world.play(world.prepared(game.uniform_policy()), 100, np.random.default_rng(1), agent=0, deviation=first)
    ceilings = Ceilings(world, 0, outcomes(seen), np.bincount(seen.states[0], minlength=2), 100, 0.1)
    most = 2 * float(game.rewards[0].max())
    assert ceilings.values(np.zeros(1))[0][0] == pytest.approx([most, most])
    assert ceilings.effort.untried * 2 == ceilings.effort.entries


def detour():
    """One agent at a fork: it stays for nothing, or leaves for a state where the second step pays 1."""
    transition = np.zeros((1, 2, 2, 2))
    transition[0, 0, 0, 0] = transition[0, 0, 1, 1] = 1.0
    transition[0, 1, :, 1] = 1.0
    rewards = np.zeros((1, 2, 2, 2))
    rewards[0, 1, 1] = 1.0
    return cmpg.JointGame(transition=transition, rewards=rewards, costs=[], thresholds=[], initial=[1, 0], horizon=2)


def test_what_the_judged_policy_never_leaves_for_is_not_taken_for_improbable():
    """All episodes stay, so the estimated probability of leaving is 0; a deviation that leaves gains 1 all the same."""
    game, stays = detour(), np.zeros((2, 2, 2))
    stays[..., 0] = 1.0
    world = GameWorld(game)
    seen = world.play(world.prepared(JointPolicy((stays,))), 5_000, seeded(), agent=0, deviation=stays)
    assert not seen.states.any()
    ceilings = Ceilings(world, 0, outcomes(seen), np.bincount(seen.states[0], minlength=2), 5_000, 0.1)
    assert ceilings.values(np.zeros(0))[0][0][0] >= 1.0
    found = audit(world, JointPolicy((stays,)), episodes=500, rng=seeded())
    assert found.exploitability.upper >= 1.0
    assert found.exploitability.lower > 0.9  # a deviation is found by exploring, and measured


class Generous(GameWorld):
    """A game of which some batches of episodes seem to bring more than they did."""

    def __init__(self, game, batches=()):
        super().__init__(game)
        self.batches, self.played = set(batches), []

    def play(self, policy, episodes, rng, **deviating):
        seen = super().play(policy, episodes, rng, **deviating)
        if len(self.played) in self.batches:
            seen = replace(seen, returns=seen.returns + 0.5)
        self.played.append(deviating.get("deviation"))
        return seen


def test_a_deviation_is_measured_by_episodes_that_did_not_choose_it():
    """Every deviation is played again once it is chosen: the draws that chose it would favour it."""
    game = random_game(np.random.default_rng(8))

    def audited(world):
        found = audit(world, JointPolicy.uniform(game.policy_shapes), episodes=64, rng=seeded())
        return found, [(each.value.lower, each.value.upper) for each in found.tried]

    world = Generous(game)
    found, measured = audited(world)
    own = [k for k, played in enumerate(world.played) if any(played is each.deviation for each in found.tried)]
    assert len(own) == len(measured) > 0  # each is played once: none of its episodes explored
    exploring = set(range(1, len(world.played))) - set(own)
    assert min(exploring) < min(own)
    assert audited(Generous(game, exploring))[1] == measured
    raised = audited(Generous(game, own))[1]
    assert all(after > before for (after, _), (before, _) in zip(raised, measured, strict=True))


def test_a_ceiling_rises_with_its_values():
    """What the induction of Theorem 6 rests on, for the best of all bets."""
    rng, bets = np.random.default_rng(5), fixed_bets(200, 0.01)

    def best_of_all(values, counts):
        return min(_one_bet(values, counts, bet, 2.0, len(bets) / 0.01) for bet in bets)

    for _ in range(50):
        values, counts = rng.random(4), rng.integers(1, 50, size=4)
        raised = np.minimum(values + rng.random(4) * (rng.random(4) < 0.5), 2.0)
        low, high = best_of_all(values, counts), best_of_all(raised, counts)
        assert high >= low - 1e-9
        assert mean_ceiling(values, counts, most=2.0, delta=0.01, bets=bets) >= low - 1e-9


def _one_bet(values, counts, bet, most, level):
    """inf{q : Π (1 + θ (q − x)/(M − q)) ≥ level}, by bisection."""
    inside, outside = most, values.min() - 1.0
    for _ in range(200):
        q = (inside + outside) / 2
        if q >= most:
            return most
        wealth = float((counts * np.log1p(bet * (q - values) / (most - q))).sum())
        inside, outside = (q, outside) if wealth >= math.log(level) else (inside, q)
    return inside


# --- Worlds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["spectrum", "grid-world-local", "congestion-counting"])
def test_payoffs_of_known_games_stay_within_the_ranges_that_are_declared(name):
    game = cmpg.scenarios.scenario(name).build()
    world = GameWorld(game)
    seen = world.play(JointPolicy.uniform(game.policy_shapes), 300, np.random.default_rng(1))
    assert (seen.rewards >= world.reward_bounds[0, 0] - 1e-9).all()
    assert (seen.rewards <= world.reward_bounds[0, 1] + 1e-9).all()
    for costs, (least, most) in zip(seen.step_costs, world.cost_bounds, strict=True):
        assert costs.min() >= least - 1e-9
        assert costs.max() <= most + 1e-9


def test_an_environment_and_its_game_are_judged_alike():
    game = cmpg.scenarios.spectrum()
    world = spectrum_world()
    policy = JointPolicy.from_callable(game.policy_shapes, lambda *_: 0)
    truth = judge_known(game, policy, time_limit=0).exploitability
    found = cmpg.judge(world, lambda *_: 0, episodes=300, rng=1)
    assert found.feasible
    assert 0.5 < found.exploitability.lower <= truth <= found.exploitability.upper < 2.5
    assert "taken for granted: what all agents observe together" in str(found)


def spectrum_world(**options):
    game = cmpg.scenarios.spectrum()
    options = {"reward_range": (0, float(game.rewards.max()))} | options
    return EnvironmentWorld(to_parallel_env(game), horizon=game.horizon, thresholds=game.thresholds, **options)


def test_policies_with_memory_are_judged_by_episodes_alone():
    class Alternating:
        """Plays 0 and 1 in turn, whatever it sees."""

        def __init__(self):
            self.count = self.resets = 0

        def reset(self):
            self.count, self.resets = 0, self.resets + 1

        def __call__(self, agent, observation, step):
            self.count += 1
            return self.count % 2

    policy = Alternating()
    found = audit(spectrum_world(memory=True), policy, episodes=50, rng=seeded())
    assert math.isinf(found.exploitability.upper)
    assert "the policy has memory" in found.vacuous
    assert "the upper bound is vacuous here, because" in str(found)
    assert policy.resets >= 50
    assert all(math.isfinite(value.width) for value in found.values)


def test_without_markov_observations_there_is_no_upper_bound():
    found = audit(spectrum_world(markov=False), lambda *_: 0, episodes=400, rng=seeded())
    assert math.isinf(found.exploitability.upper)
    assert found.exploitability.lower > 0
    assert "markov=True" in found.vacuous


class Noisy:
    """One agent, two actions; what it observes is a random number."""

    def reset(self, rng):
        self.rng = rng
        return rng.random()

    def step(self, actions):
        return self.rng.random(), [float(actions[0])], [], False


def test_continuous_observations_have_values_and_lower_bounds_only():
    world = EnvironmentWorld(Noisy(), horizon=2, reward_range=(0, 1), num_actions=(2,), max_states=20)
    given = {0: [lambda *_: 1]}
    found = audit(world, lambda *_: 0, episodes=200, rng=seeded(), deviations=given)
    assert math.isinf(found.exploitability.upper)
    assert "continuous" in found.vacuous
    assert found.exploitability.lower > 1.5
    assert "given" in {each.source for each in found.tried if each.gain.lower > 1.5}


class TurnBased:
    """Two agents act in turn, as AEC environments do; who guesses the other's action wins."""

    possible_agents = ("a", "b")

    def action_space(self, _agent):
        return type("Discrete", (), {"n": 2})()

    def agent_iter(self):
        raise NotImplementedError

    def reset(self, seed=None):
        self.agents, self.agent_selection, self.first = ["a", "b"], "a", None
        self.terminations = self.truncations = {"a": False, "b": False}
        self.rewards, self.infos = {"a": 0.0, "b": 0.0}, {"a": {}, "b": {}}

    def observe(self, agent):
        return -1 if self.first is None or agent == "a" else self.first

    def step(self, action):
        if action is None:
            self.agents = self.agents[1:]
            self.agent_selection = self.agents[0] if self.agents else None
        elif self.agent_selection == "a":
            self.first, self.agent_selection = action, "b"
        else:
            win = float(action == self.first)
            self.rewards = {"a": 1 - win, "b": win}
            self.terminations = {"a": True, "b": True}
            self.agent_selection = "a"


def test_agents_that_act_in_turn_are_judged():
    world = EnvironmentWorld(TurnBased(), horizon=2, reward_range=(0, 1))
    found = audit(world, lambda *_: 0, episodes=400, rng=seeded())
    assert found.values[1].lower > 0.9
    gains = found.gains
    assert gains[0].lower > 0.8  # b answers 0, so a wins by 1
    assert gains[1].upper < 0.3


def test_a_deviation_may_be_restricted_to_what_an_agent_sees():
    """The second agent sees what the first did, and should answer alike."""
    world = EnvironmentWorld(TurnBased(), horizon=2, reward_range=(0, 1), own=True)
    found = audit(world, lambda agent, *_: agent, episodes=300, rng=seeded())
    assert found.gains[1].lower > 0.8
    assert found.gains[0].upper < 0.5


def test_a_trained_deviation_is_measured_like_any_other():
    frozen = []

    def train(env):
        frozen.append(env)
        env.reset(seed=3)
        total = 0.0
        over = cut = False
        while not (over or cut):
            _observation, reward, over, cut, info = env.step(1)
            total += reward
            assert info["cost"] == 0.0
        assert total == 2.0
        return lambda agent, observation, step: 1

    world = EnvironmentWorld(Noisy(), horizon=2, reward_range=(0, 1), num_actions=(2,), max_states=20)
    found = audit(world, lambda *_: 0, episodes=200, rng=seeded(), train=train)
    assert [type(env) for env in frozen] == [SingleAgentEnv]
    assert "trained" in {each.source for each in found.tried if each.gain.lower > 1.5}
    with pytest.raises(UnsupportedError, match="no observations to train from"):
        audit(
            GameWorld(cmpg.scenarios.counter_example()),
            lambda *_: 0,
            episodes=20,
            rng=seeded(),
            train=train,
        )


def test_episodes_may_end_early_and_rewards_may_be_losses():
    class Leave:
        """Each step costs 1 until the agent leaves; staying is never better."""

        def reset(self, rng):
            return 0

        def step(self, actions):
            return 0, [-1.0], [], actions[0] == 1

    world = EnvironmentWorld(Leave(), horizon=3, reward_range=(-1, -1), num_actions=(2,))
    found = audit(world, lambda *_: 0, episodes=300, rng=seeded())
    assert 2.0 in found.exploitability
    assert found.exploitability.lower > 1.8
    assert found.samples["the policy"] == 900


def endless():
    tables = {"transition": np.ones((1, 1, 2, 1)), "rewards": np.zeros((1, 1, 1, 2)), "costs": np.zeros((0, 1, 1, 2))}
    return cmpg.JointGame(**tables, thresholds=[], initial=[1.0], discount=0.5)


def noisy(**options):
    return EnvironmentWorld(Noisy(), **{"horizon": 2, "reward_range": (0, 1), "num_actions": (2,)} | options)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: audit(spectrum_world(), lambda *_: 7, episodes=20, rng=seeded()), PolicyError, "there are 3 actions"),
        (lambda: audit(spectrum_world(), lambda *_: 0, episodes=3, rng=seeded()), CMPGError, "at least 16"),
        (lambda: audit(spectrum_world(), lambda *_: 0, delta=1.5, rng=seeded()), CMPGError, "strictly between 0 and 1"),
        (lambda: cmpg.judge(spectrum_world(), lambda *_: 0), CMPGError, "pass rng=1"),
        (lambda: cmpg.judge(Noisy(), lambda *_: 0), CMPGError, "cmpg.judging.EnvironmentWorld(env"),
        (lambda: EnvironmentWorld(Noisy(), horizon=2, reward_range=(0, 1)), SimulatorError, "give num_actions"),
        (lambda: EnvironmentWorld(3, horizon=2, reward_range=(0, 1), num_actions=(2,)), CMPGError, "no environment"),
        (lambda: noisy(reward_range=(1, 0)), SimulatorError, "must not be larger"),
        (lambda: noisy(horizon=0), SimulatorError, "at least one step"),
        (lambda: GameWorld(endless()), GameError, "without an end"),
    ],
)  # fmt: skip
def test_wrong_input_is_answered_by_sentences(call, error, words):
    with pytest.raises(error) as raised:
        call()
    assert words in str(raised.value)


def test_a_reward_outside_of_its_declared_range_ends_the_audit():
    world = EnvironmentWorld(Noisy(), horizon=2, reward_range=(0, 0.5), num_actions=(2,))
    with pytest.raises(SimulatorError, match=r"declared range is \[0, 0.5\]"):
        world.play(world.prepared(lambda *_: 1), 1, np.random.default_rng(1))


def test_the_outcomes_of_a_step_are_counted_by_what_followed():
    game = random_game(np.random.default_rng(3))
    world = GameWorld(game)
    seen = world.play(JointPolicy.uniform(game.policy_shapes), 500, np.random.default_rng(1))
    for h, step in enumerate(outcomes(seen)):
        assert step.counts.sum() == 500
        for row, (s, a) in enumerate(zip(step.states, step.actions, strict=True)):
            met = (seen.states[h] == s) & (seen.actions[h] == a)
            assert step.counts[row].sum() == met.sum()
            total = (step.counts[row] * step.rewards[row]).sum()
            assert total == pytest.approx(seen.rewards[h][met].sum())
            for following in range(2):
                count = step.counts[row][step.following[row] == following].sum()
                assert count == (seen.states[h + 1][met] == following).sum()
    assert ENDED not in seen.states


def test_intervals():
    assert 1.0 in Interval(0.0, 1.0)
    assert 1.1 not in Interval(0.0, 1.0)
    assert repr(Interval(0.0, math.inf)) == "[0, inf]"


# --- Tables of functions, confirmed by a replay -----------------------------------------------------------------------


def test_a_replay_confirms_the_table_or_says_where_it_differs():
    game = cmpg.scenarios.counter_example()
    env = to_parallel_env(game)
    found = from_parallel_env(env, horizon=1, thresholds=game.thresholds)

    def mine(agent, _observation, _step):
        return agent

    table = found.policy(mine)
    assert judge_known(found.game, table, time_limit=0).costs == pytest.approx(judge_known(
        game, JointPolicy.from_callable(game.policy_shapes, mine), time_limit=0).costs)  # fmt: skip
    assert replay(env, found, mine, table, episodes=5, rng=seeded()).agrees
    wrong = replay(env, found, lambda *_: 1, table, episodes=5, rng=seeded())
    assert not wrong.agrees
    assert wrong.differences == 5
    assert "by the policy" in str(wrong)


# --- The command ------------------------------------------------------------------------------------------------------


def test_the_command_judges_an_environment(monkeypatch, tmp_path):
    module = ModuleType("judged_envs")
    module.make, module.quiet, module.nothing = spectrum_world, lambda *_: 0, lambda: 3
    module.raw, seen = lambda: to_parallel_env(cmpg.scenarios.spectrum()), []  # as it comes from PettingZoo
    module.train = lambda env: seen.append(env) or (lambda *_: 1)
    monkeypatch.setitem(sys.modules, "judged_envs", module)
    quiet = ("--policy", "judged_envs:quiet", "--episodes", "40")
    ran = command("judge", "--env", "judged_envs:make", *quiet, "--seed", "1", "--out", tmp_path / "table.csv")
    assert ran.code == 1
    assert "exploitability in [" in ran.out
    assert (tmp_path / "table.csv").read_text().startswith("policy,exploitability")
    assert '"cmpg-audit"' in command("judge", "spectrum", *quiet, "--json").out
    ran = command("judge", "--env", "judged_envs:make", *quiet, "--train", "judged_envs:train", "--seed", "1")
    assert [env.agent for env in seen] == [0, 1, 2]
    command("judge", "spectrum", *quiet, "--seed", "1", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "judged_envs:quiet" in page
    assert "the upper bound is vacuous here, because" in page
    for words, told in (
        (("--env", "judged_envs:nothing", *quiet), "EnvironmentWorld is required"),
        (("--env", "judged_envs:raw", *quiet), "let raw() return cmpg.judging.EnvironmentWorld(env, horizon=100, rew"),
        (("spectrum", "--env", "judged_envs:make", *quiet), "and not both"),
        (("--env", "judged_envs:make"), "no policy to judge"),
        (("--env", "judged_envs:make", "--policy", "x"), "module:name is required"),
        (("spectrum", *quiet, "--exact"), "judged by proof"),
        (("spectrum", *quiet, "--train", "judged_envs:train"), "--train needs observations"),
        (("spectrum", "--policy", "judged_envs:quiet", "--train", "judged_envs:train"), "judged by episodes"),
    ):
        ended = command("judge", *words)
        assert ended.code == 2
        assert told in ended.err


def test_all_actions_of_all_agents_are_looked_at():
    """A policy from which only the second agent gains, by its last action."""
    rewards = np.zeros((2, 1, 1, 2, 3))
    rewards[1, ..., 2] = 1.0
    game = cmpg.JointGame(
        transition=np.ones((1, 1, 2, 3, 1)), rewards=rewards, costs=np.zeros((0, 1, 1, 2, 3)), thresholds=[],
        initial=[1.0], horizon=1,
    )  # fmt: skip
    found = audit(
        GameWorld(game),
        JointPolicy.from_callable(game.policy_shapes, lambda *_: 0),
        episodes=200,
        rng=seeded(),
    )
    assert found.gains[0].upper < 0.2
    assert found.gains[1].lower > 0.8
    some = audit(
        GameWorld(game),
        JointPolicy.from_callable(game.policy_shapes, lambda *_: 0),
        episodes=50,
        rng=seeded(),
        agents=[0],
    )
    assert math.isinf(some.exploitability.upper)
    assert "1 of 2 agents" in some.vacuous


@pytest.mark.parametrize(("p", "q"), [*product((0.0, 1.0), (0.0, 0.5))])
def test_feasibility_is_proved_violated_or_open(p, q):
    game = cmpg.scenarios.counter_example(threshold=0.25)
    policy = JointPolicy(([[[1 - p, p]]], [[[1 - q, q]]]))
    found = audit(GameWorld(game), policy, episodes=300, rng=seeded())
    assert (found.feasible, found.violated) == (p * q < 0.25, p * q > 0.25)


def test_a_useless_upper_bound_says_why_and_what_would_help():
    """Few episodes leave most of the declared range, and as many as are advised do not."""
    rng = seeded()
    game = random_game(rng, states=3, horizon=3, threshold=3.0)
    world = GameWorld(game)
    policy = cmpg.solve(game).policy
    few = audit(world, policy, episodes=60, rng=seeded())
    assert few.exploitability.upper > 1.0
    assert "60 exploring episodes are too few for 18 met (step, state, action)" in few.vacuous
    assert "where the declared ranges alone allow" in few.vacuous
    printed = str(few)
    assert f"the upper bound is vacuous here, because {few.vacuous}" in printed
    assert f"what would help: {few.remedy}" in printed
    advised = int(few.remedy.split(" episodes")[0].removeprefix("about ").replace(",", ""))
    many = audit(world, policy, episodes=advised, rng=seeded())
    assert 500 < advised < 20_000
    assert (many.vacuous, many.remedy) == ("", "")
    assert many.exploitability.upper < few.exploitability.upper / 2


def test_a_range_of_rewards_that_is_too_wide_is_named():
    world = spectrum_world(reward_range=(0.0, 50.0))
    found = audit(world, lambda *_: 0, episodes=100, rng=seeded())
    assert "no step of the exploring episodes paid" in found.remedy
    assert "50 is declared" in found.remedy


def test_a_page_of_audits_draws_what_is_proved():
    """Red is a cost that is proved to exceed; a bar without an upper end goes to the edge."""
    game = cmpg.scenarios.counter_example(threshold=0.25)
    both = JointPolicy.from_callable(game.policy_shapes, lambda *_: 1)
    kept, broken, blind = (
        audit(GameWorld(game), game.uniform_policy(), episodes=300, rng=seeded(), name="<kept>"),
        audit(GameWorld(game), both, episodes=300, rng=seeded()),
        audit(GameWorld(game), both, episodes=300, rng=seeded(), agents=[0]),
    )
    assert [audits_page([each], title="t").count("bar over") for each in (kept, broken)] == [0, 1]
    assert "&lt;kept&gt;" in audits_page([kept], title="t")
    page = audits_page([blind], title="t")
    assert f'width="{WIDE:.1f}"' in page
    assert ", ∞]" in page
    assert "nan" not in page


def test_a_cost_at_its_threshold_stays_open_and_that_is_said():
    game = cmpg.scenarios.counter_example(threshold=0.25)
    found = audit(GameWorld(game), game.uniform_policy(), episodes=300, rng=seeded())
    assert not found.feasible
    assert not found.violated
    assert "is kept is open: the threshold lies within the interval" in str(found)


def test_what_a_trainer_gets_is_an_environment_of_gymnasium():
    """Stable-Baselines3 refuses anything that is not of its type; gymnasium's own checker steps it."""
    gymnasium = pytest.importorskip("gymnasium")
    world = spectrum_world()
    env = SingleAgentEnv(world, world.prepared(lambda *_: 0), 0, seed=1)
    assert isinstance(env, gymnasium.Env)
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(np.asarray(observation))
    steps, over = 0, False
    while not over:
        observation, reward, ended, cut, info = env.step(env.action_space.sample())
        assert env.observation_space.contains(np.asarray(observation))
        assert isinstance(reward, float)
        assert len(info["costs"]) == 1
        steps, over = steps + 1, ended or cut
    assert steps == world.horizon


def test_probabilities_are_read_of_policies_that_see_several_things():
    """Environments with masks observe a mapping; it reaches the policy as it is."""

    class Inner:
        def obs_to_tensor(self, observation):
            return observation["board"], True

        def get_distribution(self, board):
            row = np.array([board, 1 - board])
            tensor = type("T", (), {"detach": lambda s: s, "cpu": lambda s: s, "numpy": lambda s: row})()
            return type("D", (), {"distribution": type("P", (), {"probs": tensor})()})()

    model = type("Model", (), {"policy": Inner()})()
    assert single_function(model)(0, {"board": 0.25, "action_mask": [1, 1]}, 0).tolist() == [0.25, 0.75]
