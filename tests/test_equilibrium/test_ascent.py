"""CA-CMPG: iterates are feasible, the greatest gain moves, the break returns the certified policy, it always ends."""

import numpy as np
import pytest

from cmpg.cmdp.exact import Exact
from cmpg.cmdp.response import BestResponse, respond
from cmpg.equilibrium.ascent import Ascent, coordinate_ascent, theorem_1_bound
from cmpg.equilibrium.best_responses import reduced_multipliers
from cmpg.equilibrium.certificate import certify
from cmpg.equilibrium.loop import (
    GreatestGain,
    RoundRobin,
)
from cmpg.equilibrium.result import Status
from cmpg.equilibrium.runs import Restarts, by_welfare
from cmpg.equilibrium.solve import solve
from cmpg.equilibrium.starts.min_cost import MinCostStart
from cmpg.errors import CMPGError, InfeasibleError, SolverError
from cmpg.games import bind
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.policy import JointPolicy
from cmpg.scenarios import congestion_game, counter_example, grid_world, spectrum


def test_the_greatest_gain_moves():
    game = spectrum()
    result = coordinate_ascent(
        game,
        solve(game, epsilon=10.0, start=MinCostStart()).policy,
        epsilon=1e-6,
        method=Ascent(schedule=GreatestGain()),
    )
    movers = [step for step in result.trace if step.mover is not None]
    assert movers
    for step in movers:
        assert step.gains[step.mover] == np.max(step.gains)
        assert step.gain > 0.5e-6


@pytest.mark.parametrize(("gain", "moves"), [(0.49, 0), (0.51, 1)])
def test_who_gains_more_than_half_of_epsilon_moves_and_nobody_else(gain, moves):
    game = JointGame(
        transition=np.ones((1, 1, 2, 1)),
        rewards=[[[[0.0, gain]]]],
        costs=np.zeros((0, 1, 1, 2)),
        thresholds=[],
        initial=[1.0],
        horizon=1,
    )
    assert coordinate_ascent(game, JointPolicy((np.array([[[1.0, 0.0]]]),)), epsilon=1.0).moves == moves


def test_the_last_iteration_is_quiet_and_its_policy_is_returned():
    result = solve(spectrum(), epsilon=1e-6)
    assert result.trace[-1].mover is None
    assert result.trace[-1].gain <= 0.5e-6
    assert certify(spectrum(), result.policy, result.multipliers).proves(1e-6)


@pytest.mark.parametrize("schedule", [GreatestGain(), RoundRobin()])
def test_both_schedules_certify(schedule):
    result = solve(grid_world(), epsilon=1e-6, method=Ascent(schedule=schedule))
    assert result.certified
    assert result.costs[0] <= 0.1


def test_round_robin_needs_fewer_solves():
    solves = {}
    start = congestion_game().random_policy(rng=np.random.default_rng(0))
    for schedule in (GreatestGain(), RoundRobin()):
        counted = CountingSolver()
        assert solve(congestion_game(), start=start, method=Ascent(solver=counted, schedule=schedule)).certified
        solves[schedule] = counted.calls
    assert solves[RoundRobin()] < solves[GreatestGain()]


class CountingSolver:
    """Exact, and a count of its calls."""

    def __init__(self):

        self.calls, self.exact = 0, Exact()

    def __call__(self, cmdp, *, rng=None):
        self.calls += 1
        return self.exact(cmdp, rng=rng)


class Cheater:
    """A solver that ignores the constraints and lies about it."""

    def __call__(self, cmdp, *, rng=None):
        greedy = np.zeros(cmdp.policy_shape)
        greedy[..., -1] = 1.0
        honest = respond(cmdp, greedy, multipliers=np.zeros(cmdp.num_constraints), work=0)
        return BestResponse(greedy, honest.value, np.zeros(cmdp.num_constraints), honest.multipliers, honest.bound, 0)


def test_a_solver_that_breaks_the_constraints_is_caught():
    game = counter_example()
    start = JointPolicy(([[[0.4, 0.6]]], [[[0.4, 0.6]]]))
    result = coordinate_ascent(game, start, method=Ascent(solver=Cheater()))
    assert result.status is Status.LIMIT
    assert "Cheater returned a policy for agent" in result.message
    assert "that exceeds a threshold" in result.message
    assert result.policy.fingerprint() == start.fingerprint()
    assert result.certificate.feasible


class Broken:
    """A solver that fails after its first answers."""

    def __init__(self, good):
        self.left = good

    def __call__(self, cmdp, *, rng=None):
        self.left -= 1
        if self.left < 0:
            raise SolverError("no answer within the time allowed.")
        return Exact()(cmdp, rng=rng)


@pytest.mark.parametrize("good", [0, 2, 3, 5])
def test_a_solver_that_fails_ends_with_a_status_and_the_feasible_incumbent(good):
    result = solve(grid_world(), method=Ascent(solver=Broken(good)))
    assert result.status in (Status.LIMIT, Status.CERTIFIED)
    assert result.certificate.feasible
    if not result.certified:
        assert "no answer within the time allowed" in result.message


def test_an_infeasible_start_is_refused():
    with pytest.raises(InfeasibleError, match="the start is infeasible"):
        coordinate_ascent(counter_example(), JointPolicy(([[[0, 1]]], [[[0, 1]]])))


def test_a_start_of_the_wrong_shape_is_refused():
    with pytest.raises(CMPGError, match=r"policy\[0\] has shape \[1, 1, 3\]"):
        coordinate_ascent(counter_example(), JointPolicy(([[[1, 0, 0]]], [[[1, 0]]])))


def test_running_out_of_moves_is_a_status_with_a_known_gap():
    game = grid_world()
    start = JointPolicy(tuple(np.eye(4)[np.full((6, 256), action)] for action in (2, 0)))
    result = coordinate_ascent(game, start, method=Ascent(max_iterations=1))
    assert result.status is Status.LIMIT
    assert result.certificate.feasible
    assert result.certificate.epsilon > 1e-6
    assert result.moves == 1


def test_running_out_of_time_is_a_status():
    game = grid_world()
    start = JointPolicy(tuple(np.eye(4)[np.full((6, 256), action)] for action in (2, 0)))
    assert coordinate_ascent(game, start, time_limit=0.0).status is Status.LIMIT
    late = coordinate_ascent(game, start, time_limit=-9.0)
    assert (late.status, late.incumbent, late.start) == (Status.LIMIT, None, start)
    unknown = solve(game, time_limit=-1.0)
    assert unknown.status is Status.FEASIBILITY_UNKNOWN
    assert unknown.message == "the time limit was reached before a feasible policy was known."


def test_an_interruption_keeps_the_incumbent():
    class Impatient(CountingSolver):
        def __call__(self, cmdp, *, rng=None):
            if self.calls == 3:
                self.calls += 1
                raise KeyboardInterrupt
            return super().__call__(cmdp, rng=rng)

    start = congestion_game().random_policy(rng=np.random.default_rng(0))
    result = solve(congestion_game(), start=start, method=Ascent(solver=Impatient()))
    assert result.status is Status.INTERRUPTED
    assert result.policy is not None
    assert result.certificate.feasible


def matching_pennies(threshold=1.0):
    """Two agents with opposite aims: no potential, and pure best responses go round for ever."""
    win = np.array([[1.0, -1.0], [-1.0, 1.0]])
    return JointGame(
        transition=np.ones((1, 1, 2, 2, 1)),
        rewards=[[[win]], [[-win]]],
        costs=np.zeros((1, 1, 1, 2, 2)),
        thresholds=[threshold],
        initial=[1.0],
        horizon=1,
    )


@pytest.mark.parametrize("schedule", [GreatestGain(), RoundRobin()])
def test_a_game_without_potential_is_detected_and_never_loops(schedule):
    result = solve(matching_pennies(), method=Ascent(schedule=schedule))
    assert result.status is Status.NOT_POTENTIAL
    assert "policy seen before" in result.message or "more than" in result.message


@pytest.mark.parametrize(
    ("bad_actions", "told"), [(0, "3 moves gained 6 in all"), (1, "move 4 leads back to a policy seen before")]
)
def test_the_first_proof_that_there_is_no_potential_ends_the_ascent(bad_actions, told):
    win = np.array([[1.0, -1.0], [-1.0, 1.0]])
    # Where more is at stake, a potential would allow more gains than there are on the way round.
    game = JointGame.from_matrices(*(np.pad(each, (0, bad_actions), constant_values=-50.0) for each in (win, -win)))
    first = np.eye(game.num_actions[0])[None, :1]
    result = coordinate_ascent(game, JointPolicy((first, first)), epsilon=1e-3)
    assert result.status is Status.NOT_POTENTIAL
    assert told in result.message


def test_workers_do_not_change_a_bit():
    one, two = (
        solve(spectrum(), method=Ascent(schedule=GreatestGain(), workers=w), rng=np.random.default_rng(3))
        for w in (1, 2)
    )
    assert one.policy.fingerprint() == two.policy.fingerprint()


def test_the_same_generator_gives_the_same_bits():
    runs = [solve(grid_world(), rng=np.random.default_rng(5), restarts=Restarts(3)) for _ in range(2)]
    assert runs[0].policy.fingerprint() == runs[1].policy.fingerprint()


def test_restarts_list_distinct_equilibria_best_first():
    result = solve(counter_example(), restarts=Restarts(12), rng=np.random.default_rng(0))
    totals = [each.values.sum() for each in result.equilibria]
    assert len(totals) > 1
    assert totals == sorted(totals, reverse=True)
    assert result.values.sum() == totals[0]
    by_total = solve(counter_example(), restarts=Restarts(12, prefer=by_welfare), rng=np.random.default_rng(0))
    assert by_total.values.sum() == pytest.approx(totals[0])


def test_restarts_need_a_generator():
    with pytest.raises(CMPGError, match="rng"):
        solve(counter_example(), restarts=Restarts(2))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan")])
def test_epsilon_must_be_positive(epsilon):
    with pytest.raises(CMPGError, match="epsilon"):
        solve(counter_example(), epsilon=epsilon)


def test_no_room_at_all_is_infeasible_with_its_proof():
    result = solve(matching_pennies(threshold=-0.5))
    assert result.status is Status.INFEASIBLE
    assert result.proof.holds
    assert result.proof.least_cost > result.proof.limit


def test_a_result_without_a_policy_says_why_where_somebody_asks_for_one():
    result = solve(matching_pennies(threshold=-0.5))
    for part in ("policy", "multipliers", "certificate"):
        with pytest.raises(InfeasibleError, match="ended INFEASIBLE: every joint policy"):
            getattr(result, part)


def test_rewards_too_large_for_epsilon_end_with_advice():
    game = counter_example()
    huge = JointGame(
        transition=game.transition,
        rewards=game.rewards * 1e9,
        costs=game.costs,
        thresholds=game.thresholds,
        initial=game.initial,
        horizon=1,
    )
    precise = solve(huge, epsilon=1e-9, start=JointPolicy(([[[0.5, 0.5]]], [[[0.5, 0.5]]])))
    assert precise.status is Status.LIMIT
    assert "rounding error" in precise.message
    assert solve(huge, epsilon=1.0).certified


def test_a_threshold_that_is_met_only_up_to_rounding_is_said_to_be():
    game, above = counter_example(), np.nextafter(0.5, 1)
    for share, status in ((0.5, Status.CERTIFIED), (above, Status.TO_ROUNDING)):
        result = coordinate_ascent(game, JointPolicy(([[[1 - share, share]]], [[[0, 1]]])), epsilon=20.0)
        assert result.status is status
        assert result.moves == 0
    assert (
        "thresholds are met up to rounding alone: both play 2 may cost up to 1.12e-16 more than 0.5." in result.message
    )


def test_a_budget_spent_to_the_last_bit_is_advised_to_have_slack():
    """No price below 1e20 proves that the second action is out of reach, and the third one costs too much beside it."""
    game = JointGame(
        transition=np.ones((1, 1, 3, 1)),
        rewards=[[[[0, 1, 0]]]],
        costs=[[[[0, 1e-20, 1]]]],
        thresholds=[0],
        initial=[1],
        horizon=1,
    )
    result = coordinate_ascent(game, JointPolicy(([[[1, 0, 0]]],)), multipliers=np.array([[1e20]]))
    assert result.status is Status.LIMIT
    assert result.certificate.rounding[0] > 1
    assert "next to nothing is left of a budget" in result.message
    assert "epsilon of at least" not in result.message


@pytest.mark.parametrize("kernels", ["numpy", "any"])
def test_a_price_that_rounding_hides_is_lowered_until_it_proves_enough(kernels, monkeypatch):
    """Half of 1e-20 is worth half of 1e-8: a price of 1e12, of which rounding leaves nothing."""
    if kernels == "numpy":
        monkeypatch.setenv("CMPG_KERNELS", "numpy")
    idle = [[[[1.0], [1.0], [1.0]]]]
    agents = [
        LocalAgent(transition=idle, reward=[[reward]], costs=[[[cost]]], uses=np.zeros((1, 1, 3, 1)), initial=[1.0])
        for reward, cost in (([0.0, 1e-8, 1.0], [0.0, 1e-20, 1.0]), ([0.0] * 3, [0.0] * 3))
    ]
    game = LocalGame(
        agents=tuple(agents),
        delay=np.zeros((1, 1, 3)),
        load_costs=np.zeros((1, 1, 1, 3)),
        thresholds=[5e-21],
        horizon=1,
    )
    result = coordinate_ascent(game, JointPolicy(([[[1.0, 0.0, 0.0]]],) * 2), epsilon=1e-6)
    assert result.certified
    assert 1.0 <= result.multipliers[0, 0] < 1e8
    assert result.multipliers[1, 0] == 0.0


def test_whoever_proves_enough_or_nothing_at_all_keeps_its_multipliers():
    game = counter_example()
    position = game.at(game.uniform_policy())
    dear = np.array([[np.inf], [1e15]])
    for epsilon in (1e-9, 1e30):
        assert np.array_equal(reduced_multipliers(position, dear, epsilon=epsilon), dear)
    gentle = reduced_multipliers(position, dear, epsilon=10.0)
    assert gentle[0, 0] == np.inf
    assert gentle[1, 0] < 1e15


def test_a_result_records_its_settings_and_the_bound_of_the_theorem():
    game = counter_example()
    found = coordinate_ascent(game, game.uniform_policy(), epsilon=0.5, method=Ascent(schedule=RoundRobin()))
    assert (found.settings["solver"], found.settings["schedule"]) == ("Exact()", "RoundRobin()")
    assert found.max_iterations == theorem_1_bound(game, 0.5)


@pytest.mark.parametrize(("epsilon", "solved"), [(0.52, 0), (0.48, 2)])
def test_an_agent_whose_given_multipliers_bound_its_gain_by_half_of_epsilon_is_not_solved_for(epsilon, solved):
    game, calls = counter_example(), []

    def solver(cmdp, *, rng=None):
        calls.append(cmdp)
        return Exact()(cmdp, rng=rng)

    # At the uniform policy each agent gains 1/4, and multipliers of zero prove it.
    coordinate_ascent(
        game,
        game.uniform_policy(),
        epsilon=epsilon,
        method=Ascent(solver=solver, max_iterations=0),
        multipliers=np.zeros((2, 1)),
    )
    assert len(calls) == solved


def test_moves_in_a_circle_refute_no_potential_where_constraints_bind_some_agents_only():
    """Each agent alone is content somewhere; the first is bound by what the second does, and they chase each other."""
    first = np.array([[1.0, 0.0], [0.0, 1.0]])  # wants to match; the second wants not to
    game = JointGame(
        transition=np.ones((1, 1, 2, 2, 1)),
        rewards=[[[first]], [[1 - first]]],
        costs=np.zeros((1, 1, 1, 2, 2)),
        thresholds=[1.0],
        initial=[1.0],
        horizon=1,
    )
    start = JointPolicy(([[[1.0, 0.0]]], [[[1.0, 0.0]]]))
    assert coordinate_ascent(game, start).status is Status.NOT_POTENTIAL
    assert coordinate_ascent(bind(game, [[1], [0]]), start).status is Status.LIMIT


def test_theorem_1_is_rounded_up_and_never_beyond_all_integers():
    game = counter_example()
    assert theorem_1_bound(game, 1e300) == 1
    assert theorem_1_bound(game, 1e-300) == 2**62
    assert theorem_1_bound(game, float(game.reward_ranges.sum())) == 2


@pytest.mark.parametrize(("polish", "value"), [(True, 3.0), (False, 1.0)])
def test_rows_of_states_that_are_not_visited_are_completed_and_the_ascent_goes_on_from_there(polish, value):
    """Agent 0 may lead to a state in which agent 1 is worth 3; agent 1 has never been there, and would waste it."""
    transition = np.zeros((2, 2, 2, 2, 2))
    transition[..., 0] = 1.0
    transition[0, 0, 1] = [0.0, 1.0]
    common = np.zeros((2, 2, 2, 2))
    common[1, 0], common[1, 1, :, 1] = 1.0, 3.0
    game = JointGame(
        transition=transition, rewards=[common, common], costs=(), thresholds=(), initial=[1.0, 0.0], horizon=2
    )
    first_action = np.tile([1.0, 0.0], (2, 2, 1))
    result = coordinate_ascent(game, JointPolicy((first_action, first_action)), method=Ascent(complete_off_path=polish))
    assert result.certified
    assert result.values == pytest.approx([value, value])
