"""What is called proved is true, at the numbers that tempt an implementation to drop something small."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from cmpg import load_game, save_game, solve
from cmpg.arrays import to_floats
from cmpg.equilibrium.certificate import Feasibility, certify
from cmpg.equilibrium.infeasibility import prove_infeasible
from cmpg.equilibrium.result import Status
from cmpg.errors import GameError, PolicyError
from cmpg.files.policy_tables import read_policy
from cmpg.games.counting.classes import EveryCount, LargestCount
from cmpg.games.counting.game import CountingGame
from cmpg.games.game import Objective, relaxed_bound
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.games.potential.check import Verdict, check_potential, four_cycle
from cmpg.interop.gambit import read_nfg
from cmpg.interop.long_table import read_table, table_text
from cmpg.policy import JointPolicy
from oracles.judge import judge


def meeting(*, cost=0.0, reward=0.0, threshold=1.0):
    """Two agents on two roads: both on one costs `cost`, and on road 0 is worth `reward` to each."""
    tables = {
        "rewards": np.zeros((1, 1, 2, 3)),
        "class_rewards": [[[[0.0, reward], [0.0, 0.0]]]],
        "transition": np.ones((1, 1, 2, 1)),
        "costs": [[[[0.0, cost]]]],
        "thresholds": [threshold],
        "initial": [1.0],
        "horizon": 1,
    }
    game = CountingGame(classes=LargestCount((1,)), **tables)
    return game, judge({"form": "counting", "boundaries": [1], **{name: np.asarray(tables[name]) for name in tables}})


NEARLY_CERTAIN = ([[[1.0, 0.0]]], [[[1e-17, 1.0]]])


# --- Rows that are nearly certain -------------------------------------------------------------------------------------


def test_a_counting_game_spends_what_a_nearly_certain_row_spends():
    game, judged = meeting(cost=1e20)
    certificate = certify(game, JointPolicy(NEARLY_CERTAIN))
    assert certificate.costs[0] == pytest.approx(float(judged.costs(NEARLY_CERTAIN)[0])) == pytest.approx(1000)
    assert certificate.feasibility is Feasibility.VIOLATED


@pytest.mark.parametrize("tiny", [5e-324, 1e-200, 1e-17, 1e-16])
def test_a_budget_of_zero_is_not_kept_by_a_row_that_may_break_it(tiny):
    game, judged = meeting(cost=1.0, threshold=0.0)
    policy = ([[[1.0, 0.0]]], [[[tiny, 1.0]]])
    assert judged.costs(policy)[0] > 0
    assert not certify(game, JointPolicy(policy)).feasible
    assert not certify(game, JointPolicy(policy), [[np.inf], [np.inf]]).feasible


def test_a_counting_game_bounds_the_gain_against_a_nearly_certain_row():
    game, judged = meeting(reward=-1e20)
    certificate = certify(game, JointPolicy(NEARLY_CERTAIN))
    gains = judged.gains(NEARLY_CERTAIN, [[0], [0]])
    assert all(bound >= gain for bound, gain in zip(certificate.gains, gains, strict=True))
    assert certificate.values[0] == pytest.approx(-1000)


def at_a_desk(*, initial=(1.0,), **tables):
    """Two agents and a desk: agent 0 may sit down in its first state, agent 1 by its second action."""
    states = len(initial)
    first = {
        "transition": np.eye(states)[None, :, None].repeat(2, axis=2),
        "reward": np.zeros((1, states, 2)),
        "uses": np.array([[[[1.0], [0.0]]] + [[[0.0], [0.0]]] * (states - 1)]),
        "initial": np.array(initial),
    }
    second = {
        "transition": np.ones((1, 1, 2, 1)),
        "reward": np.zeros((1, 1, 2)),
        "uses": np.array([[[[0.0], [1.0]]]]),
        "initial": np.ones(1),
    }
    limits = tables.pop("thresholds", [])
    tables = {"delay": np.zeros((1, 1, 3)), "load_costs": np.zeros((0, 1, 1, 3))} | {
        name: np.asarray(table, dtype=float) for name, table in tables.items()
    }
    game = LocalGame(agents=(LocalAgent(**first), LocalAgent(**second)), **tables, thresholds=limits, horizon=1)
    plain = {"form": "local", "horizon": 1, "agents": [first | {"cost": None}, second | {"cost": None}]}
    plain |= {"delay": tables["delay"], "load_cost": tables["load_costs"], "thresholds": np.array(limits)}
    return game, judge(plain)


@pytest.mark.parametrize("kernels", ["numpy", "compiled"])
@pytest.mark.parametrize(
    ("row", "initial"), [([1.0, 1e-17], (1.0,)), ([1.0, 0.0], (1.0, 1e-17))], ids=["policy", "initial state"]
)
@pytest.mark.parametrize(
    "tables",
    [
        {"delay": [[[0, -1e20, 0]]]},
        {"delay": [[[0, -1e20, 1]]]},
        {"load_costs": [[[[0, 1e20, 1e20]]]], "thresholds": [1e30]},
    ],
    ids=["a falling delay", "a delay of both signs", "a falling increment"],
)
def test_a_local_game_bounds_what_depends_on_a_load_that_is_nearly_certain(tables, row, initial, kernels, monkeypatch):
    monkeypatch.setenv("CMPG_KERNELS", kernels)
    game, judged = at_a_desk(initial=initial, **tables)
    policy = [np.array([[row] * len(initial)]), np.array([[[1.0, 0.0]]])]
    for multiplier in (0.0, 1e3, 1e9):
        multipliers = np.full((2, len(game.thresholds)), multiplier)
        certificate = certify(game, JointPolicy(policy), multipliers)
        gains = judged.gains(policy, multipliers.tolist())
        assert all(bound >= gain for bound, gain in zip(certificate.gains, gains, strict=True))


@pytest.mark.parametrize("states", [2, 300, 600])  # averages of more than 2**19 entries are taken block by block
def test_a_joint_game_of_any_size_follows_a_nearly_certain_row(states):
    transition = np.zeros((1, states, 2, 2, states))
    transition[0, :, :, :, 0] = 1.0
    transition[0, 0, :, 1] = np.eye(states)[1]
    costs = np.zeros((1, 1, states, 2, 2))
    costs[0, 0, 1] = 1e20
    game = JointGame(
        transition=transition,
        rewards=np.zeros((2, 1, states, 2, 2)),
        costs=costs,
        thresholds=[1.0],
        initial=np.eye(states)[0],
        horizon=2,
    )
    sure, nearly = np.zeros((2, states, 2)), np.zeros((2, states, 2))
    sure[..., 0] = nearly[..., 0] = 1.0
    nearly[:, 0, 1] = 1e-17
    certificate = certify(game, JointPolicy((sure, nearly)))
    assert certificate.costs[0] == pytest.approx(1000)
    assert certificate.feasibility is Feasibility.VIOLATED
    assert not certify(game.with_thresholds([0.0]), JointPolicy((sure, nearly)), [[np.inf], [np.inf]]).feasible


@pytest.mark.parametrize("states", [500, 600])  # below and above the size from which averages are taken in blocks
def test_a_game_of_one_agent_may_have_any_number_of_states(states):
    game = JointGame(
        transition=np.full((1, states, 2, states), 1 / states),
        rewards=np.ones((1, 1, states, 2)),
        costs=np.zeros((0, 1, states, 2)),
        thresholds=[],
        initial=np.full(states, 1 / states),
        horizon=2,
    )
    assert certify(game, game.uniform_policy()).values[0] == pytest.approx(2.0)


# --- Discount 0 -------------------------------------------------------------------------------------------------------


def later_costs(discount):
    """Action 0 earns 1 and leads to a state in which everything costs 1; action 1 stays and earns nothing."""
    transition = np.zeros((1, 2, 2, 2))
    transition[0, 0, 0, 1] = transition[0, 0, 1, 0] = transition[0, 1, :, 1] = 1
    rewards, costs = np.zeros((1, 1, 2, 2)), np.zeros((1, 1, 2, 2))
    rewards[0, 0, 0, 0] = costs[0, 0, 1] = 1
    return JointGame(
        transition=transition, rewards=rewards, costs=costs, thresholds=[0.0], initial=[1.0, 0.0], discount=discount
    )


STAY, LEAVE = JointPolicy(([[[0.0, 1.0]] * 2],)), JointPolicy(([[[1.0, 0.0]] * 2],))


@pytest.mark.parametrize(("discount", "gain"), [(0.0, 1.0), (5e-324, 0.0), (0.5, 0.0)])
def test_a_proof_by_support_looks_ahead_only_where_the_future_counts(discount, gain):
    assert certify(later_costs(discount), STAY, [[np.inf]]).epsilon == pytest.approx(gain, abs=1e-9)


@pytest.mark.parametrize(("discount", "kept"), [(0.0, True), (5e-324, False), (0.5, False)])
def test_a_hard_budget_is_spent_later_only_where_the_future_counts(discount, kept):
    certificate = certify(later_costs(discount), LEAVE, [[np.inf]])
    assert certificate.feasible is kept


def test_a_discount_of_zero_is_solved():
    result = solve(later_costs(0.0))
    assert result.certified
    assert result.values[0] == 1.0


# --- Numbers below the least float ------------------------------------------------------------------------------------

TINY = Fraction(1, 10**400)


def forbidden_action():
    """One agent, of whose two actions the second costs 1; nothing may be spent."""
    return JointGame.from_matrices([0.0, 0.0], cost=[0.0, 1.0], threshold=0.0)


@pytest.mark.parametrize("multiplier", [0.0, np.inf])
def test_a_rational_below_the_least_float_is_possible(multiplier):
    policy = JointPolicy(([[[1 - TINY, TINY]]],))
    assert not certify(forbidden_action(), policy, [[multiplier]]).feasible
    assert not certify(forbidden_action().exact(), policy, [[multiplier]]).feasible


@pytest.mark.parametrize("written", ["1e-400", "0." + "0" * 399 + "1", '"1e-400"', '"1/1' + "0" * 400 + '"'])
def test_a_file_whose_numbers_are_below_the_least_float_is_not_read_as_zeros(tmp_path, written):
    game = tmp_path / "game.json"
    game.write_text(
        """{"format": "cmpg-game", "version": 1, "form": "joint", "horizon": 2, "initial": [1, 0],
        "transition": [[[[1, TINY]], [[0, 1]]]], "rewards": [[[[0], [0]]]], "costs": [[[[0], [1]]]],
        "thresholds": [0]}""".replace("TINY", written)
    )
    loaded = load_game(game)
    assert loaded.transition[0, 0, 0, 1] > 0
    for multiplier in (0.0, np.inf):
        assert not certify(loaded, loaded.uniform_policy(), [[multiplier]]).feasible


@pytest.mark.parametrize("kernels", ["numpy", "compiled"])
def test_half_of_the_least_float_is_not_nothing(kernels, monkeypatch):
    monkeypatch.setenv("CMPG_KERNELS", kernels)
    agent = LocalAgent(
        transition=np.ones((1, 1, 2, 1)),
        reward=np.zeros((1, 1, 2)),
        uses=np.zeros((1, 1, 2, 1)),
        initial=[1.0],
        costs=[[[[0.0, 5e-324]]]],
    )
    game = LocalGame(
        agents=(agent,), delay=np.zeros((1, 1, 2)), load_costs=np.zeros((1, 1, 1, 2)), thresholds=[0.0], horizon=1
    )
    assert not certify(game, game.uniform_policy()).feasible


def test_rounding_to_floats_keeps_the_sign_of_every_rational():
    given = np.array([TINY, -TINY, Fraction(0), Fraction(1, 3)])
    assert np.sign(to_floats(given)).tolist() == [1, -1, 0, 1]
    assert to_floats(given)[3] == 1 / 3


# --- Numbers that floats cannot weigh ---------------------------------------------------------------------------------


def test_costs_of_the_least_float_are_solved():
    one = {"transition": [[[[1.0]]]], "rewards": [[[[1.0]]]], "initial": [1.0]}
    result = solve(JointGame(**one, costs=[[[[1.0]]], [[[5e-324]]]], thresholds=[2.0, 1e-323], horizon=2))
    assert result.certified


def test_a_threshold_just_below_zero_is_infeasible():
    game = JointGame(
        transition=[[[[[1.0]]]]],
        rewards=[[[[[1.0]]]]] * 2,
        costs=[[[[[0.0]]]], [[[[1.0]]]]],
        thresholds=[-5e-324, 2.0],
        initial=[1.0],
        discount=0.5,
    )
    assert solve(game).status is Status.INFEASIBLE


def test_a_budget_that_the_cheapest_policy_meets_is_not_called_infeasible():
    rng, tight = np.random.default_rng(1), 0
    for _ in range(150):
        states, horizon, actions = (int(rng.integers(*ends)) for ends in ((1, 5), (1, 6), (1, 3)))
        tables = {
            "transition": rng.multinomial(16, np.ones(states) / states, size=(1, states, actions)) / 16,
            "rewards": np.zeros((1, 1, states, actions)),
            "costs": 5e-324 * rng.integers(0, 4, size=(1, 1, states, actions)),
            "initial": rng.multinomial(16, np.ones(states) / states) / 16,
            "horizon": horizon,
        }
        least = judge({"form": "joint", "thresholds": np.zeros(1), **tables}).least_cost([1.0])
        limit = float(least) if Fraction(float(least)) >= least else np.nextafter(float(least), np.inf)
        tight += Fraction(limit) - least < Fraction(5e-324)
        assert not prove_infeasible(JointGame(**tables, thresholds=[limit]), [1.0]).holds
    assert tight > 100


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("seed", range(40))
def test_every_game_ends_with_a_status_however_far_apart_its_numbers_are(seed):
    rng = np.random.default_rng(seed)
    numbers = [0.0, 1.0, 2.0, 5e-324, 1e-310, 1e-160, 1e20, 1e160, -5e-324, -1.0]
    transition = rng.dirichlet([1.0, 1.0], size=(1, 2, 2, 2))
    game = JointGame(
        transition=transition,
        rewards=np.repeat(rng.choice([0.0, 1.0, 2.0], size=(1, 1, 2, 2, 2)), 2, axis=0),
        costs=rng.choice(numbers, size=(3, 1, 2, 2, 2)),
        thresholds=rng.choice(numbers, size=3),
        initial=[1.0, 0.0],
        horizon=2,
    )
    result = solve(game)
    assert isinstance(result.status, Status)
    if result.certified:
        judged = judge({"form": "joint", **{name: getattr(game, name) for name in (*TABLES, "horizon")}})
        costs = judged.costs(list(result.policy))
        assert all(cost <= Fraction(limit) for cost, limit in zip(costs, game.thresholds.tolist(), strict=True))


@pytest.mark.parametrize("size", [1e307, 1e160, 1e-200, 1e-320])
def test_a_local_game_is_bounded_by_a_number_or_not_at_all(size):
    agent = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0.0, 1.0]]], uses=[[[[0.0], [1.0]]]], initial=[1.0])
    game = LocalGame(
        agents=(agent,) * 3,
        delay=size * np.array([[[0.0, 0.0, 1.0, 3.0]]]),
        load_costs=size * np.array([[[[0.0, 0.0, 1.0, 1.0]]]]),
        thresholds=[size / 2],
        horizon=3,
    )
    bound = relaxed_bound(game, Objective.WELFARE, game.uniform_policy(), np.ones(1))
    assert bound is None or bound.value >= game.at(JointPolicy(([[[1.0, 0.0]]] * 3,) * 3)).values.sum()


TABLES = ("transition", "rewards", "costs", "thresholds", "initial")


@pytest.mark.parametrize("time", [{"horizon": 3}, {"discount": 0.5}])
def test_the_exact_proof_decides_about_an_exact_game(time):
    large = Fraction(10**9)
    game = JointGame(
        transition=np.full((1, 1, 2, 2, 1), Fraction(1)),
        rewards=[[[[[large, 0], [0, 2 * large]]]]] * 2,
        costs=[[[[[0, Fraction(1)], [1, 1]]]]],
        thresholds=[Fraction(1, 3)],
        initial=[Fraction(1)],
        **time,
    )
    assert solve(replace(game, rationals=None), epsilon=1e-6).status is Status.LIMIT  # rounding hides more than epsilon
    result = solve(game, epsilon=1e-6)
    assert result.certified
    assert result.certificate.arithmetic == "exact"


# --- Potentials -------------------------------------------------------------------------------------------------------


def matching_pennies(size, **time):
    """What one agent wins the other loses: no potential, whatever the stakes."""
    wins = size * np.array([[1.0, -1.0], [-1.0, 1.0]])
    return JointGame(
        transition=np.ones((1, 1, 2, 2, 1)),
        rewards=np.stack([wins, -wins]).reshape(2, 1, 1, 2, 2),
        costs=np.zeros((0, 1, 1, 2, 2)),
        thresholds=[],
        initial=[1.0],
        **time,
    )


@pytest.mark.parametrize("time", [{"horizon": 1}, {"discount": 0.99}])
@pytest.mark.parametrize("size", [1.0, 1e150, 1e307, 1.7e308])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid:RuntimeWarning")
def test_no_stakes_make_matching_pennies_a_potential_game(size, time):
    game = matching_pennies(size, **time)
    assert game.potential_proof() is None
    assert check_potential(game, rng=np.random.default_rng(0)).verdict is not Verdict.PROVEN


def test_a_cycle_of_the_least_floats_may_be_rounding():
    game = matching_pennies(5e-324, horizon=2)
    start, pure = game.uniform_policy(), np.array([[[1.0, 0.0]]] * 2)
    assert four_cycle(game, (0, 1), start, (pure, pure)).rounding > 5e-324


@pytest.mark.filterwarnings("ignore:All-NaN:RuntimeWarning")
def test_rewards_whose_range_is_beyond_all_floats_end_with_a_status():
    with np.errstate(over="ignore", invalid="ignore"):
        assert isinstance(solve(matching_pennies(1e307, discount=0.99)).status, Status)


def test_a_local_game_whose_costs_underflow_is_not_called_infeasible():
    """Every agent has one policy, whose exact cost is at most the threshold."""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        horizon, rows, used = int(rng.integers(2, 5)), np.zeros((2, 2, 2)), rng.integers(0, 2, (2, 2))
        for i, s in np.ndindex(2, 2):
            rows[i, s] = rng.choice([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]])
        curve = np.array([0, *rng.integers(0, 4, 2)]) * 5e-324
        exact = Fraction(0)
        likely = [[Fraction(1, 2)] * 2 for _ in range(2)]
        for _ in range(horizon):
            x, y = (sum(p * int(u) for p, u in zip(likely[i], used[i], strict=True)) for i in range(2))
            exact += Fraction(curve[1]) * (x * (1 - y) + y * (1 - x)) + Fraction(curve[2]) * x * y
            likely = [
                [sum(likely[i][s] * Fraction(rows[i, s, t]) for s in range(2)) for t in range(2)] for i in range(2)
            ]
        threshold = float(exact) if Fraction(float(exact)) >= exact else float(np.nextafter(float(exact), 1))
        agents = tuple(
            LocalAgent(
                transition=rows[i][None, :, None],
                reward=np.zeros((1, 2, 1)),
                uses=used[i].astype(float).reshape(1, 2, 1, 1),
                initial=[0.5, 0.5],
            )
            for i in range(2)
        )
        load_costs, delay = curve.reshape(1, 1, 1, 3), np.zeros((1, 1, 3))
        game = LocalGame(agents=agents, delay=delay, load_costs=load_costs, thresholds=[threshold], horizon=horizon)
        assert not prove_infeasible(game, [1.0]).holds, seed


@pytest.mark.parametrize(
    "costs",
    [
        np.array([[[[2**60 + 1, 0]]]]),
        [[[[2**60 + 1, 0]]]],
        [[[[2**60 + 1, 0.5]]]],
        np.array([[[[1, 0]]]], dtype=np.longdouble) * (1 + np.longdouble(2) ** -60),
    ],
    ids=["array", "whole numbers", "mixed", "long double"],
)
def test_numbers_that_no_float_holds_are_refused_and_not_rounded(costs):
    """A cost of 2^60 + 1 at a threshold of 2^60 was PROVEN: it became 2^60 before anything was judged."""
    if np.asarray(costs).dtype == np.longdouble and np.finfo(np.longdouble).nmant < 60:
        pytest.skip("long double is double here")
    tables = {"transition": np.ones((1, 1, 2, 1)), "rewards": np.zeros((1, 1, 1, 2)), "initial": [1.0], "horizon": 1}
    with pytest.raises(GameError, match=r"no float holds|more digits than a float"):
        JointGame(costs=costs, thresholds=[2.0**60], **tables)
    with pytest.raises(GameError, match="no float holds"):
        JointGame(costs=[[[[2.0**60, 0.0]]]], thresholds=[2**60 - 1], **tables)
    assert JointGame(costs=[[[[2**60, 0]]]], thresholds=[2**70], **tables).thresholds.tolist() == [2.0**70]


def test_whole_numbers_in_a_file_are_not_rounded(tmp_path):
    fields = {"format": "cmpg-game", "version": 1, "form": "joint", "horizon": 1, "initial": [1]}
    fields |= {"transition": [[[[1], [1]]]], "rewards": [[[[0, 0]]]], "costs": [[[[2**60 + 1, 0]]]]}
    (tmp_path / "game.json").write_text(json.dumps(fields | {"thresholds": [2**60]}))
    with pytest.raises(GameError, match=r"costs\[0, 0, 0, 0\] is 1152921504606846977, which no float holds"):
        load_game(tmp_path / "game.json")
    exact = load_game(tmp_path / "game.json", exact=True)
    assert not certify(exact, JointPolicy(([[[1, 0]]],)), [[0]], exact=True).feasible


ABOVE = Fraction(10**18 // 3, 10**18)
"""Less than 1/3, and the same float."""


def of_thirds(**changes):
    """A file of a game in which action 1 gets and costs a third, and a little more than may be spent."""
    return {
        "format": "cmpg-game",
        "version": 1,
        "form": "joint",
        "states": ["1/3"],
        "initial": [1],
        "transition": [[[[1], [1]]]],
        "rewards": [[[[0, "1/3"]]]],
        "costs": [[[[0, "1/3"]]]],
        "thresholds": [str(ABOVE)],
        "horizon": 1,
        **changes,
    }


@pytest.mark.parametrize("ending", ["json", "csv"])
def test_a_game_that_is_written_in_fractions_is_proved_in_fractions(ending, tmp_path):
    file = tmp_path / "game.json"
    file.write_text(json.dumps(of_thirds()))
    if ending == "csv":
        file = tmp_path / "game.csv"
        file.write_text(table_text(load_game(tmp_path / "game.json")))
    game = read_table(file) if ending == "csv" else load_game(file)
    assert float(ABOVE) == 1 / 3
    certificate = certify(game, JointPolicy((np.array([[[0.0, 1.0]]]),)), [[1.0]])
    assert certificate.feasibility is Feasibility.VIOLATED
    assert certificate.arithmetic == "exact"


def test_numbers_beside_a_fraction_are_what_is_written(tmp_path):
    file = tmp_path / "game.json"
    file.write_text(json.dumps(of_thirds(rewards=[[[[0, 0.3]]]], thresholds=[0.3], costs=[[[[0, "3/10"]]]])))
    assert certify(load_game(file), JointPolicy((np.array([[[0.0, 1.0]]]),)), [[0.0]]).feasible
    file.write_text(json.dumps(of_thirds() | {"horizon": None, "discount": "9/10"}).replace('"horizon": null, ', ""))
    assert load_game(file).rationals["discount"] == Fraction(9, 10)


def test_names_that_look_like_fractions_are_names(tmp_path):
    file = tmp_path / "game.json"
    file.write_text(json.dumps(of_thirds(rewards=[[[[0, 1]]]], costs=[[[[0, 1]]]], thresholds=[0.3])))
    assert load_game(file).rationals is None


@pytest.mark.parametrize("ending", ["json", "plain json", "csv"])
def test_a_policy_that_is_written_in_fractions_is_proved_in_fractions(ending, tmp_path):
    file = tmp_path / f"policy.{ending[-4:].strip('.')}"
    rows = [[["2/3", "1/3"]]]
    heading = {} if ending == "plain json" else {"format": "cmpg-policy", "version": 1}
    lines = ["agent,step,state,action,probability", "0,0,0,0,2/3", "0,0,0,1,1/3"]
    file.write_text("\n".join(lines) if ending == "csv" else json.dumps(heading | {"agent_0": rows}))
    game = JointGame(
        transition=np.ones((1, 1, 2, 1)),
        rewards=[[[[0.0, 1.0]]]],
        costs=[[[[0.0, 1.0]]]],
        thresholds=[1 / 3],  # a little less than a third
        initial=[1.0],
        horizon=1,
    )
    policy, _ = read_policy(file, game)
    assert certify(game, policy, [[1.0]]).feasibility is Feasibility.VIOLATED
    with pytest.raises(PolicyError, match="in decimals"):
        certify(game, policy, [[1.0]], model_error=0.01)


def test_a_strategic_form_that_is_written_in_fractions_keeps_them(tmp_path):
    file = tmp_path / "game.nfg"
    file.write_text('NFG 1 R "" { "one" }\n{ { "a" "b" } }\n""\n0.1 1/3\n')
    assert read_nfg(file).rationals["rewards"].ravel().tolist() == [Fraction(1, 10), Fraction(1, 3)]
    file.write_text('NFG 1 D "" { "one" }\n{ { "a" "b" } }\n""\n0.1 0.3\n')
    assert read_nfg(file).rationals is None


def test_a_local_game_refuses_a_fraction_that_no_float_holds(tmp_path):
    agent = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0.0, 1.0]]], uses=[[[[0], [1]]]], initial=[1.0])
    game = LocalGame(agents=(agent,), delay=np.zeros((1, 1, 2)), load_costs=[[[[0, 1.0]]]], thresholds=[1.0], horizon=1)
    save_game(game, tmp_path / "game.json")
    fields = json.loads((tmp_path / "game.json").read_text())
    (tmp_path / "game.json").write_text(json.dumps(fields | {"thresholds": ["1/4"]}))
    assert load_game(tmp_path / "game.json").thresholds.tolist() == [0.25]
    (tmp_path / "game.json").write_text(json.dumps(fields | {"thresholds": ["1/3"]}))
    with pytest.raises(GameError, match=r"thresholds\[0\] is 1/3, which no float holds"):
        load_game(tmp_path / "game.json")


def test_a_threshold_that_an_overflowing_cost_would_lower_beyond_every_float_ends_in_a_status():
    game = CountingGame(
        rewards=np.zeros((1, 1, 1, 3)),
        classes=EveryCount(),
        transition=np.ones((1, 1, 1, 1)),
        costs=[[[[2.5e306]]]],
        thresholds=[1e308],
        initial=[1.0],
        discount=1 - 2.0**-20,
    )
    with np.errstate(all="ignore"):
        assert solve(game).status is not Status.CERTIFIED
