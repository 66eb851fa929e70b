"""The script that a page hands out: it finds what the exact judge finds, and refuses every claim that is not whole."""

import re
import sys

import numpy as np
import pytest

import cmpg
from cmpg.report import independent_check
from oracles.judge import judge
from oracles.random_games import draw, shapes_of
from oracles.sweeping import build


@pytest.fixture
def check(monkeypatch, capsys):
    """Run the script in this process, and return its exit code and what it printed."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["independent_check.py", *map(str, words)])
        with pytest.raises(SystemExit) as ending:
            independent_check.main()
        return ending.value.code, capsys.readouterr().out

    return run


def is_moderate(game):
    tables = [game.get(name) for name in ("rewards", "costs", "delay", "load_cost")]
    tables += [agent[name] for agent in game.get("agents", ()) for name in ("reward", "cost")]
    return all(1e-3 < abs(entry) < 1e4 or entry == 0 for table in tables if table is not None for entry in table.flat)


SEEDS = [
    seed for seed in range(160) if draw(seed).form in ("joint", "sparse", "local") and is_moderate(draw(seed).game)
]


@pytest.mark.parametrize("seed", SEEDS[:40])
def test_it_finds_what_the_exact_judge_finds(seed, check, tmp_path):
    game, rng = draw(seed).game, np.random.default_rng(seed)
    limits = game["thresholds"]
    tables = [rng.dirichlet(np.ones(shape[2]), size=shape[:2]) for shape in shapes_of(game)]
    policy = cmpg.JointPolicy(tuple(tables))
    multipliers = rng.exponential(size=(len(tables), len(limits))) * (rng.random((len(tables), len(limits))) < 0.8)
    cmpg.save_game(build(game), tmp_path / "game.npz")
    policy.save(tmp_path / "policy.npz", multipliers=multipliers)
    code, printed = check(tmp_path / "game.npz", tmp_path / "policy.npz", 1e-6)
    judged, given = judge(game), [policy[agent] for agent in range(len(tables))]
    values, gains, costs = judged.values(given), judged.gains(given, multipliers), judged.costs(given)
    agents = re.findall(r"agent (\d+): value (\S+), gains at most (\S+)\n", printed)
    assert [int(agent) for agent, _, _ in agents] == list(range(len(tables)))
    assert [float(value) for _, value, _ in agents] == pytest.approx(
        [float(each) for each in values], rel=1e-8, abs=1e-9
    )
    assert [float(gain) for _, _, gain in agents] == pytest.approx([float(each) for each in gains], rel=6e-3, abs=1e-9)
    told = re.findall(r"constraint (\d+): cost (\S+), threshold (\S+)\n", printed)
    assert [float(cost) for _, cost, _ in told] == pytest.approx([float(cost) for cost in costs], rel=1e-8, abs=1e-9)
    assert [float(limit) for _, _, limit in told] == pytest.approx(limits, rel=1e-8)
    proved = all(cost <= limit for cost, limit in zip(costs, judged.thresholds, strict=True)) and max(gains) <= 1e-6
    assert code == (0 if proved else 1)


@pytest.mark.parametrize("seed", SEEDS[:12])
def test_it_proves_what_was_solved(seed, check, tmp_path):
    result = cmpg.solve(build(draw(seed).game))
    if not result.certified:
        return
    result.save(tmp_path / "run")
    code, printed = check(tmp_path / "run" / "game.npz", tmp_path / "run" / "policy.npz")
    assert code == 0, printed
    assert printed.splitlines()[-1] == "proved, up to rounding: no agent gains more than 1e-06"


ONE = {
    "format": "cmpg-game",
    "version": 1,
    "form": "joint",
    "horizon": 2,
    "initial": [1.0, 0.0],
    "transition": [[[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]]],
    "rewards": [[[[1.0, 0.0], [0.0, 2.0]]]],
    "costs": [[[[0.25, 0.0], [0.0, 0.5]]]],
    "thresholds": [0.75],
}
CLAIM = {
    "format": "cmpg-policy",
    "version": 1,
    "agent_0": [[[1.0, 0.0], [0.0, 1.0]]] * 2,
    "multipliers": [[0.0]],
}
LOCAL = {
    "format": "cmpg-game",
    "version": 1,
    "form": "local",
    "horizon": 1,
    "num_actions": [2, 2],
    "like": [0, 0],
    "delay": [[[0, 0.25, 0.5]]],
    "load_cost": [[[[0, 0, 1]]]],
    "thresholds": [0.5],
    "initial_0": [1.0],
    "initial_1": [1.0],
    "reward_0": [[[0.0, 1.0]]],
    "transition_0_indptr": [0, 1, 2],
    "transition_0_indices": [0, 0],
    "transition_0_data": [1.0, 1.0],
    "use_0_indptr": [0, 0, 1],
    "use_0_indices": [0],
}
BOTH = {"format": "cmpg-policy", "version": 1, "agent_0": [[[0.0, 1.0]]], "agent_1": [[[0.5, 0.5]]]}


def save(path, fields):
    """Write a file as it is, whatever is in it."""
    np.savez(path, **{name: np.asarray(value) for name, value in fields.items()})
    return path


@pytest.fixture
def claim(check, tmp_path):
    """Check a game and a policy that are given as fields; a field that is None is left out."""

    def run(game, policy, *words):
        files = [{name: value for name, value in each.items() if value is not None} for each in (game, policy)]
        return check(save(tmp_path / "game.npz", files[0]), save(tmp_path / "policy.npz", files[1]), *words)

    return run


ACTIONS = {
    "format": "cmpg-policy",
    "version": 2,
    "num_actions": [2, 2],
    "agent_0_actions": [[1]],
    "agent_1_actions": [[0]],
    "agent_1_mixed": [[0, 0]],
    "agent_1_rows": [[0.5, 0.5]],
}


def test_actions_and_rows_that_mix_are_the_same_claim(claim):
    assert claim(LOCAL, ACTIONS) == claim(LOCAL, BOTH)
    assert claim(ONE, CLAIM | {"agent_0": None, "num_actions": [2], "agent_0_actions": [[0, 1]] * 2}) == claim(
        ONE, CLAIM
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"agent_0_actions": [[2]]}, "actions and rows of agent 0 that exist"),
        ({"agent_0_actions": [[-1]]}, "actions and rows of agent 0 that exist"),
        ({"agent_0_actions": [[1.0]]}, "actions and rows of agent 0 that exist"),
        ({"agent_1_mixed": [[0, -1]]}, "actions and rows of agent 1 that exist"),
        ({"agent_1_mixed": [[0, 1]]}, "actions and rows of agent 1 that exist"),
        ({"agent_1_rows": [[0.5, 0.6]]}, "agent_1 with rows that sum to 1"),
        ({"num_actions": [2]}, "multipliers with finite numbers"),
    ],
)
def test_actions_that_do_not_exist_prove_nothing(claim, changes, words):
    multipliers = {"multipliers": [[0.0], [0.0]]} if "num_actions" in changes else {}
    assert words in claim(LOCAL, ACTIONS | multipliers | changes)[0]


def test_claims_that_hold(claim):
    code, printed = claim(ONE, CLAIM)
    assert code == 0
    assert "agent 0: value 3, gains at most 0\n" in printed
    assert "constraint 0: cost 0.75, threshold 0.75\n" in printed
    assert claim(LOCAL, BOTH, 1.0)[0] == 0


@pytest.mark.parametrize(
    ("off", "code"), [(0.0, 0), (1e-15, 1), (5e-10, 1), (2e-9, 1), (np.nan, "finite"), (np.inf, "finite")]
)
def test_a_cost_above_its_threshold_is_not_proved(claim, off, code):
    game = ONE | {"costs": [[[[0.25, 0.0], [0.0, 0.5 + off]]]]}
    found, _ = claim(game, CLAIM)
    assert found == code or str(code) in str(found)


def test_a_cost_above_its_threshold_is_accepted_if_that_is_allowed(claim):
    game = ONE | {"costs": [[[[0.25, 0.0], [0.0, 0.5 + 5e-10]]]]}
    code, printed = claim(game, CLAIM)
    assert code == 1
    assert "a threshold is exceeded by 5e-10; if that is fine, allow it" in printed
    assert claim(game, CLAIM, 1e-6, 1e-9)[0] == 0
    assert claim(game, CLAIM, 1e-6, 1e-10)[0] == 1


def test_what_may_be_allowed_is_told_of_a_gain_of_exactly_epsilon(claim):
    lazy = CLAIM | {"agent_0": [[[1.0, 0.0], [1.0, 0.0]]] * 2}
    code, printed = claim(ONE | {"thresholds": [0.25 - 5e-10]}, lazy, 2.0)
    assert code == 1
    assert "a threshold is exceeded by 5e-10" in printed
    assert "a threshold is exceeded" not in claim(ONE | {"thresholds": [0.25 - 5e-10]}, lazy, 1.999)[1]


def test_a_gain_above_epsilon_is_not_proved(claim):
    lazy = CLAIM | {"agent_0": [[[1.0, 0.0], [1.0, 0.0]]] * 2}
    assert claim(ONE, lazy)[0] == 1
    assert claim(ONE, lazy, 1.999)[0] == 1
    assert claim(ONE, lazy, 2.0)[0] == 0
    assert claim(ONE, lazy, 2.0)[1].endswith("no agent gains more than 2\n")
    assert claim(ONE, lazy)[1].endswith("not proved\n")


def test_what_may_be_left_out(claim):
    assert claim(ONE | {"costs": None, "thresholds": None}, CLAIM | {"multipliers": None})[0] == 0
    assert claim(ONE, CLAIM | {"multipliers": None}) == claim(ONE, CLAIM)
    lazy = CLAIM | {"agent_0": [[[1.0, 0.0], [1.0, 0.0]]] * 2}
    assert "gains at most 2\n" in claim(ONE, lazy | {"multipliers": None})[1]
    assert claim(LOCAL | {"cost_0": [[[[0.0, 0.0]]]]}, BOTH, 1.0)[0] == 0
    own = {name.replace("_0", "_1"): value for name, value in LOCAL.items() if name.endswith("_0") or "_0_" in name}
    assert claim(LOCAL | own | {"like": None}, BOTH, 1.0)[0] == 0
    assert claim(LOCAL | {"load_cost": None, "thresholds": None}, BOTH, 1.0)[0] == 0


SPARSE = {
    "transition": None,
    "transition_indptr": [0, 1, 2, 3, 4],
    "transition_indices": [1, 0, 1, 1],
    "transition_data": [1.0, 1.0, 1.0, 1.0],
}


def test_sparse_transitions_are_read(claim):
    assert claim(ONE | SPARSE, CLAIM)[0] == 0
    doubled = {"transition_indptr": [0, 2, 3, 4, 5], "transition_indices": [1, 1, 0, 1, 1]}
    assert claim(ONE | SPARSE | doubled | {"transition_data": [0.5, 0.5, 1.0, 1.0, 1.0]}, CLAIM)[0] == 0


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"format": "cmpg-policy"}, "a game and a policy file"),
        ({"form": "counting"}, "a joint or local game with a horizon"),
        ({"horizon": None, "discount": 0.5}, "a joint or local game with a horizon"),
        ({"horizon": 3}, "agent_0 with finite numbers of shape"),
        ({"rewards": [[[[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]]]}, "rewards with finite numbers of shape"),
        ({"rewards": [[[[1.0, 0.0], [0.0, np.inf]]]]}, "rewards with finite numbers"),
        ({"rewards": [[[["1", "0"], ["0", "2"]]]]}, "rewards with finite numbers"),
        ({"rewards": [[[[1.0, 0.0], [0.0, 2.0]]] * 3]}, "a table with one step, or all of them"),
        ({"rewards": [1.0]}, "a table with one step, or all of them"),
        ({"costs": [[[[0.25, 0.0, 1.0], [0.0, 0.5, 1.0]]]]}, "costs with finite numbers of shape"),
        ({"transition": [[[[0.0, 0.9], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]]]}, "transition with rows that sum to 1"),
        ({"transition": [[[[-1.0, 2.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]]]}, "transition with rows that sum to 1"),
        ({"initial": [0.5, 0.4]}, "initial with rows that sum to 1"),
        ({"initial": [1.0, 0.0, 0.0]}, "initial with finite numbers of shape"),
        ({"rewards": [[[[1e7, 0.0], [0.0, 2.0]]]]}, "a game with smaller numbers"),
        ({"costs": [[[[0.25, 0.0], [0.0, -1e7]]]]}, "a game with smaller numbers"),
        (SPARSE | {"transition_indptr": [0, 1, 2, 3, 5]}, "a CSR matrix"),
        (SPARSE | {"transition_indptr": [1, 1, 2, 3, 4]}, "a CSR matrix"),
        (SPARSE | {"transition_indptr": [0, 2, 1, 3, 4]}, "a CSR matrix"),
        (SPARSE | {"transition_indices": [1, 0, 1, 2]}, "columns that exist"),
        (SPARSE | {"transition_indices": [-1, 0, 1, 1]}, "columns that exist"),
        (SPARSE | {"transition_data": [1.0, 1.0, 1.0]}, "columns that exist"),
    ],
)
def test_a_joint_game_that_is_not_whole_is_refused(claim, changes, problem):
    code, _ = claim(ONE | changes, CLAIM)
    assert str(code).startswith("not proved: ")
    assert problem in code


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"format": "cmpg-game"}, "a game and a policy file"),
        ({"multipliers": [[-1e-300]]}, "multipliers λ ≥ 0"),
        ({"multipliers": [[0.0], [0.0]]}, "with finite numbers of shape [1, 1]"),
        ({"multipliers": [[np.nan]]}, "multipliers with finite numbers"),
        ({"agent_0": [[[1.0, 0.0], [0.5, 0.4]]] * 2}, "agent_0 with rows that sum to 1"),
        ({"agent_0": [[[2.0, -1.0], [0.0, 1.0]]] * 2}, "agent_0 with rows that sum to 1"),
        ({"agent_0": [[[1.0, 0.0], [0.0, 1.0]]]}, "agent_0 with finite numbers of shape"),
    ],
)
def test_a_policy_that_is_not_whole_is_refused(claim, changes, problem):
    code, _ = claim(ONE, CLAIM | changes)
    assert str(code).startswith("not proved: ")
    assert problem in code


def test_rows_may_be_off_by_rounding_and_by_no_more(claim):
    assert claim(ONE, CLAIM | {"agent_0": [[[1.0 + 5e-10, 0.0], [0.0, 1.0]]] * 2}, 1e-6, 1e-9)[0] == 0
    assert "rows that sum to 1" in claim(ONE, CLAIM | {"agent_0": [[[1.0 + 2e-9, 0.0], [0.0, 1.0]]] * 2})[0]
    assert "rows that sum to 1" in claim(ONE, CLAIM | {"agent_0": [[[1.0 - 2e-9, 0.0], [0.0, 1.0]]] * 2})[0]


def test_numbers_whose_last_bits_matter_are_refused(claim):
    """4·2⁻⁵³ of the largest sum over an episode may be 1e-9: about 2.25e6, over two steps."""
    for largest, fits in ((1.1e6, True), (1.2e6, False)):
        code, _ = claim(ONE | {"rewards": [[[[largest, 0.0], [0.0, largest]]]]}, CLAIM)
        assert (code == 0) is fits


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"num_actions": [2, 2, 2]}, "a policy for each agent"),
        ({"delay": [[[0, 0.25]]]}, "delay with finite numbers of shape"),
        ({"load_cost": [[[[0, 0, 1, 2]]]]}, "load_cost with finite numbers of shape"),
        ({"reward_0": [[[0.0, 1.0, 2.0]]]}, "a reward with finite numbers of shape"),
        ({"cost_0": [[[[0.0, 1.0, 2.0]]]]}, "a cost with finite numbers of shape"),
        ({"initial_0": [0.5]}, "initial_0 with rows that sum to 1"),
        ({"initial_1": [0.5, 0.5]}, "initial_1 with finite numbers of shape"),
        ({"transition_0_data": [1.0, 0.5]}, "transition_0 with rows that sum to 1"),
        ({"use_0_indptr": [0, 0, 2], "use_0_indices": [0, 0]}, "each resource used once"),
        ({"use_0_indices": [1]}, "columns that exist"),
        ({"delay": [[[0, 1e7, 1e7]]]}, "a game with smaller numbers"),
        ({"load_cost": [[[[0, 1e7, 1]]]]}, "a game with smaller numbers"),
        ({"reward_0": [[[0.0, 1e7]]]}, "a game with smaller numbers"),
        ({"cost_0": [[[[0.0, -1e7]]]]}, "a game with smaller numbers"),
    ],
)
def test_a_local_game_that_is_not_whole_is_refused(claim, changes, problem):
    code, _ = claim(LOCAL | changes, BOTH)
    assert str(code).startswith("not proved: ")
    assert problem in code


HARD = {
    "format": "cmpg-game",
    "version": 1,
    "form": "joint",
    "horizon": 1,
    "initial": [1.0],
    "transition": [[[[1.0], [1.0]]]],
    "rewards": [[[[0.0, 1.0]]]],
    "costs": [[[[0.0, 1.0]]]],
    "thresholds": [0.0],
}
STAYS = {"format": "cmpg-policy", "version": 1, "agent_0": [[[1.0, 0.0]]], "multipliers": [[np.inf]]}


def test_a_hard_budget_is_proved_by_what_is_possible(claim):
    assert claim(HARD, STAYS)[0] == 0
    assert claim(HARD, STAYS | {"multipliers": [[0.0]]})[0] == 1
    assert "a policy that keeps a hard budget" in claim(HARD, STAYS | {"agent_0": [[[1 - 1e-12, 1e-12]]]})[0]


def test_what_others_spend_by_chance_leaves_no_hard_budget(claim):
    """Agent 1 may use the desk, which costs 1 then, whatever agent 0 does."""
    by_support = BOTH | {"agent_0": [[[1.0, 0.0]]], "multipliers": [[np.inf], [0.0]]}
    code, _ = claim(LOCAL | {"load_cost": [[[[0, 1, 1]]]]}, by_support)
    assert code == "not proved: others who spend a hard budget whatever happens is required"
    sure = by_support | {"agent_1": [[[0.0, 1.0]]]}
    assert claim(LOCAL | {"load_cost": [[[[0, 1, 1]]]], "thresholds": [1.0]}, sure, 1.0)[0] == 0


def test_likeness_is_passed_on_except_for_rewards(claim):
    """Agent 1 is like agent 0, and has a reward of its own: it gets 5 for what agent 0 gets 1."""
    game = LOCAL | {"reward_1": [[[0.0, 5.0]]], "load_cost": None, "thresholds": None}
    code, printed = claim(game, BOTH | {"agent_1": [[[0.0, 1.0]]]})
    assert code == 0
    assert re.findall(r"value (\S+),", printed) == ["0.5", "4.5"]


def test_an_empty_claim_proves_nothing(claim):
    code, _ = claim(ONE, {"format": "cmpg-policy", "version": 1})
    assert code == "not proved: a policy of each agent is required"


def test_whom_a_constraint_does_not_bind_has_no_price(claim):
    free = ONE | {"binds": [[0.0]]}
    assert claim(free, CLAIM)[0] == 0
    for price in (0.5, np.inf):
        code, _ = claim(free, CLAIM | {"multipliers": [[price]]})
        assert code == ("not proved: multipliers of zero for those whom a constraint does not bind is required")
    assert claim(ONE | {"binds": [[1.0]]}, CLAIM | {"multipliers": [[0.5]]})[0] == 0
    assert "binds with finite numbers of shape [1, 1]" in claim(ONE | {"binds": [[1.0, 1.0]]}, CLAIM)[0]


def test_the_largest_gain_of_all_agents_decides(claim):
    """Agent 0 gains ¾ by going to the desk where nobody is; agent 1 gains as much as its reward says."""
    idle = BOTH | {"agent_0": [[[1.0, 0.0]]], "agent_1": [[[1.0, 0.0]]]}
    for rewards, most in (((1.0, 0.5), 0.75), ((0.5, 1.0), 0.75), ((0.0, 0.0), 0.0)):
        game = LOCAL | {f"reward_{i}": [[[0.0, each]]] for i, each in enumerate(rewards)}
        gains = [max(each - 0.25, 0.0) for each in rewards]
        code, printed = claim(game, idle, most)
        assert [float(each) for each in re.findall(r"gains at most (\S+)\n", printed)] == gains
        assert code == 0
        assert most == 0.0 or claim(game, idle, most - 1e-3)[0] == 1


def test_a_price_is_paid_for_all_that_others_leave(claim):
    """The value of λ·(α − what others spend) is in the bound: ½·(½ − 0) above the best of 0 and ¾ − ½·0."""
    alone = BOTH | {"agent_0": [[[0.0, 1.0]]], "agent_1": [[[1.0, 0.0]]], "multipliers": [[0.5], [0.0]]}
    _, printed = claim(LOCAL, alone)
    assert re.findall(r"agent 0: value (\S+), gains at most (\S+)\n", printed) == [("0.75", "0.25")]
