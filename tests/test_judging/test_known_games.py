"""Policies of known games before the judge: gains by brute force, sentences for wrong input, files read back."""

import csv
import json
from itertools import product

import numpy as np
import pytest

import cmpg
from cmpg.errors import CMPGError, FileError, GameError, InfeasibleError, PolicyError, SolverError
from cmpg.judging.known import changes, judge_known, verdict
from cmpg.judging.policies import RecurrentPolicyError, policy_function
from cmpg.judging.side_by_side import judge_side_by_side
from cmpg.policy import JointPolicy
from cmpg.report.formats import table_csv, table_latex
from cmpg.report.judging import side_by_side_page, side_by_side_record, side_by_side_table
from command_line import cmpg as command


def ran(*words):
    ended = command(*words)
    return ended.code, ended.out, ended.err


GRID = cmpg.scenarios.grid_world()
NASH = cmpg.solve(GRID).policy


def one_shot(threshold=0.5):
    return cmpg.scenarios.counter_example(threshold=threshold)


def best_gain_by_brute_force(game, policy, agent, grid=200):
    """Of one agent in a one-shot game with two actions: walk over all mixtures that keep the threshold."""
    best = -np.inf
    for mixed in np.linspace(0, 1, grid + 1):
        moved = policy.replace(agent, [[[1 - mixed, mixed]]])
        position = game.at(moved)
        if (position.costs <= game.thresholds + 1e-12).all():
            best = max(best, position.values[agent])
    return best - game.at(policy).values[agent]


@pytest.mark.parametrize(("p", "q"), [*product((0.0, 0.25, 0.5), (0.0, 0.5, 1.0))])
def test_gains_are_those_of_brute_force(p, q):
    game, policy = one_shot(), JointPolicy(([[[1 - p, p]]], [[[1 - q, q]]]))
    judged = judge_known(game, policy)
    for agent in range(2):
        wanted = best_gain_by_brute_force(game, policy, agent)
        assert judged.deviations[agent].gain == pytest.approx(wanted, abs=1e-9)
        assert judged.gains[agent] == pytest.approx(max(wanted, 0), abs=1e-9)
        assert judged.deviations[agent].costs[0] <= game.thresholds[0] + 1e-9


def test_a_nash_policy_without_multipliers_is_proved_to_be_one():
    """Multipliers of zero would allow deviations that break the budget, and prove a gain of 0.9."""
    assert cmpg.certify(GRID, NASH).epsilon < 1e-9
    assert cmpg.certify(GRID, NASH, np.zeros((2, 1))).epsilon == pytest.approx(0.9)


def test_a_judged_policy_says_how_far_it_is_from_the_best_known_and_from_the_bound():
    judged = cmpg.judge(GRID, GRID.uniform_policy(), best_known=cmpg.solve(GRID))
    assert not judged.feasible
    assert judged.to_best_known == pytest.approx(46.2 - judged.welfare)
    assert judged.quality.bound.value == pytest.approx(46.2)
    assert "VIOLATED" in str(judged)


def test_where_no_deviation_is_feasible_that_is_said():
    """Both play the costly action, and a budget of zero is kept only if both stop."""
    costs = np.array([[0.0, 1.0], [1.0, 1.0]]).reshape(1, 1, 1, 2, 2)
    game = cmpg.JointGame(
        transition=np.ones((1, 1, 2, 2, 1)), rewards=np.zeros((2, 1, 1, 2, 2)), costs=costs, thresholds=[0.0],
        initial=[1.0], horizon=1,
    )  # fmt: skip
    stop = [[[0.0, 1.0]]]
    judged = judge_known(game, JointPolicy((stop, stop)))
    assert judged.deviations == (None, None)
    assert judged.exploitability == 0.0
    assert "none is feasible" in str(judged)


def test_where_a_solver_fails_the_gain_is_what_the_certificate_proves(monkeypatch):
    """A failure proves nothing: the bound at multipliers of zero stays, and is no zero."""

    def fail(*_given, **_options):
        raise SolverError("out of pivots.")

    monkeypatch.setattr("cmpg.judging.known.best_response", fail)
    judged = judge_known(one_shot(), one_shot().uniform_policy())
    assert judged.deviations == (None, None)
    assert judged.exploitability >= 0.25
    assert "none was found" in str(judged)


def test_a_feasible_policy_is_a_deviation_whatever_a_solver_says(monkeypatch):
    def deny(*_given, **_options):
        raise InfeasibleError("no policy meets the constraints.")

    monkeypatch.setattr("cmpg.judging.known.best_response", deny)
    assert judge_known(one_shot(), one_shot().uniform_policy()).exploitability >= 0.25


def test_changes_name_the_places_that_are_seen_most():
    before = np.tile([1.0, 0.0], (2, 3, 1))
    after = before.copy()
    after[1, 2] = [0.25, 0.75]
    after[0, 1] = [0.0, 1.0]
    visits = np.zeros((2, 3, 2))
    visits[1, 2], visits[0, 1], visits[0, 0] = [0.1, 0.3], [0.0, 0.2], [0.5, 0.0]
    found = changes(before, after, visits)
    assert [(each.step, each.state, each.before, each.after) for each in found] == [(1, 2, 0, 1), (0, 1, 0, 1)]
    assert [each.probability for each in found] == pytest.approx([0.3, 0.2])


def test_verdicts():
    nash, uniform = (judge_known(GRID, each, time_limit=0) for each in (NASH, GRID.uniform_policy()))
    exploitable = judge_known(one_shot(), one_shot().uniform_policy())
    assert [verdict(each, epsilon=1e-6) for each in (nash, uniform, exploitable)] == ["Nash", "violated", "exploitable"]
    assert verdict(exploitable, epsilon=0.25 + 1e-9) == "Nash"


# --- The wrong uses that users tried ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "policy", "error", "words"),
    [
        (GRID, lambda *_: 0, PolicyError, "JointPolicy.from_callable(game.policy_shapes, function)"),
        (GRID, [[[0.5, 0.5]]], PolicyError, "JointPolicy(tables), with one table [H, S, A_i] for each agent"),
        (GRID, {"agent_0": 1}, PolicyError, "the policy is a dict; a JointPolicy is required"),
        (GRID, "p.csv", PolicyError, "cmpg.read_policy('p.csv', game)[0]"),
        ("game.json", NASH, GameError, "read the file first: cmpg.load_game('game.json')"),
        (3, NASH, GameError, "is not a game"),
        (GRID, one_shot().uniform_policy(), PolicyError, "is required"),
        (GRID, cmpg.solve(GRID), PolicyError, "pass the policy that it has, result.policy"),
    ],
)
def test_wrong_uses_of_certify_are_answered_by_sentences(game, policy, error, words):
    with pytest.raises(error) as raised:
        cmpg.certify(game, policy)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (lambda state: state, "cannot be called as function(agent, observation, step): too many positional arguments"),
        ("p.csv", "cmpg.read_policy('p.csv', game)[0]"),
        ([[[0.5, 0.5]]], "JointPolicy(tables), with one table [H, S, A_i] for each agent"),
        (cmpg.solve(GRID), "pass the policy that it has, result.policy"),
        ({}, "there are policies for no agent"),
        (3, "a mapping from agents to these is required"),
    ],
)
def test_wrong_policies_are_answered_by_sentences(policy, words):
    with pytest.raises(PolicyError) as raised:
        cmpg.judge(GRID, policy)
    assert words in str(raised.value)


# --- Policies from anywhere -------------------------------------------------------------------------------------------


def test_a_function_becomes_the_table_that_it_stands_for():
    policy = JointPolicy.from_callable(GRID.policy_shapes, lambda agent, state, step: NASH[agent][step, state])
    for mine, theirs in zip(policy, NASH, strict=True):
        assert np.allclose(mine, theirs, atol=1e-15)


def test_functions_see_what_an_agent_observes():
    policy = JointPolicy.from_callable(
        [(1, 2, 2)], lambda _agent, seen, _step: int(seen == "right"), observations=[["left", "right"]]
    )
    assert policy[0][0].tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("answer", [2, -1, 0.5, [0.5, 0.6], [1.0], [0.2, 0.3, 0.5], "left", [np.nan, 1.0], None])
def test_an_answer_that_is_no_action_is_refused_with_its_place(answer):
    with pytest.raises(PolicyError, match=r"agent 0 answers .* at step 0 in state 0"):
        JointPolicy.from_callable([(1, 1, 2)], lambda *_: answer)


def test_a_function_with_memory_is_refused():
    calls = iter(range(100))
    with pytest.raises(PolicyError, match="has memory, or draws its actions"):
        JointPolicy.from_callable([(1, 3, 2)], lambda *_: next(calls) % 2)


class Trained:
    """What Stable-Baselines3 offers, as far as it is used."""

    def __init__(self, state=None):
        self.state = state

    def predict(self, observation, deterministic=False):
        assert deterministic
        return np.array(int(observation) % 2), self.state


def test_what_has_predict_is_a_policy_for_each_agent():
    game = one_shot()
    judged = cmpg.judge(game, {"agent 0": Trained(), 1: lambda *_: [0.25, 0.75]})
    assert judged.policy[0].tolist() == [[[1, 0]]]
    assert judged.policy[1].tolist() == [[[0.25, 0.75]]]
    with pytest.raises(PolicyError, match="no policy for agent 'agent 1'; there are policies for 0"):
        cmpg.judge(game, {0: Trained()})
    with pytest.raises(PolicyError, match="the policy is a float"):
        cmpg.judge(game, 3.0)


def test_recurrent_policies_are_refused_with_the_reason():
    with pytest.raises(RecurrentPolicyError, match="it is recurrent"):
        cmpg.judge(one_shot(), Trained(state=(1,)))


class Distribution:
    class Probabilities:
        def __init__(self, rows):
            self.rows = np.array(rows)

        def detach(self):
            return self

        cpu = detach

        def numpy(self):
            return self.rows

    def __init__(self, rows):
        self.distribution = type("Categorical", (), {"probs": self.Probabilities(rows)})()


class Stochastic(Trained):
    """A policy whose probabilities can be read."""

    class policy:
        @staticmethod
        def obs_to_tensor(observation):
            return observation, None

        @staticmethod
        def get_distribution(_tensor):
            return Distribution([[0.25, 0.75]])


def test_probabilities_are_kept_where_a_policy_has_them():
    assert policy_function(Stochastic())(0, 1, 0).tolist() == [0.25, 0.75]


# --- Files ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def exported(tmp_path):
    result = cmpg.solve(one_shot())
    result.save(tmp_path / "run")
    code, _, _ = ran("export", tmp_path / "run", "--what", "policy", "--out", tmp_path / "policy.csv")
    assert code == 0
    return tmp_path / "policy.csv", result


def test_the_csv_that_export_writes_is_read_back(exported):
    path, result = exported
    policy, multipliers = cmpg.read_policy(path, one_shot())
    assert multipliers is None
    assert policy.fingerprint() == result.policy.fingerprint()
    exact, _ = cmpg.read_policy(path, one_shot(), exact=True)
    assert exact[0].dtype == object


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows[:-1], "has no row for step 0, state 0"),
        (lambda rows: [*rows, rows[-1]], "line 4: this action is listed a second time"),
        (lambda rows: [{**rows[0], "action": "7"}, *rows[1:]], "line 2: action is '7'; a whole number from 0 to 1"),
        (lambda rows: [{**rows[0], "probability": "x"}, *rows[1:]], "line 2: probability is 'x'"),
        (lambda rows: [{**rows[0], "probability": "0.5"}, *rows[1:]], "sums to 0.5"),
        (lambda rows: [{k: v for k, v in row.items() if k != "step"} for row in rows], "missing: step"),
    ],
)
def test_a_csv_that_is_no_policy_is_refused(exported, change, words):
    path, _ = exported
    rows = change([*csv.DictReader(path.read_text().splitlines())])
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(CMPGError, match=words):
        cmpg.read_policy(path, one_shot())


def test_a_json_of_probabilities_by_agent_is_read(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"agent 0": [[0.5, 0.5]], "agent_1": [[[0.0, 1.0]]]}))
    policy, _ = cmpg.read_policy(path, one_shot())
    assert [table.tolist() for table in policy] == [[[[0.5, 0.5]]], [[[0.0, 1.0]]]]
    path.write_text(json.dumps({"agent 0": [[0.5, 0.5]]}))
    with pytest.raises(FileError, match="no table for 'agent 1'"):
        cmpg.read_policy(path, one_shot())


# --- Side by side -----------------------------------------------------------------------------------------------------


def test_side_by_side_the_best_feasible_policy_is_the_best_known():
    policies = {"mine & yours": GRID.uniform_policy(), "ours": NASH}
    together = judge_side_by_side(GRID, policies)
    assert together.best_known == pytest.approx(46.2)
    assert [each.to_best_known >= 0 for each in together.judged] == [True, True]
    assert together.judged[1].quality.bound is together.bound
    table = side_by_side_table(together)
    assert [row[-1] for row in table.rows] == ["violated", "Nash"]
    assert table_csv(table).splitlines()[2].endswith(",Nash")
    assert r"mine \& yours" in table_latex(table)
    page = side_by_side_page(together, title="<b>")
    assert "&lt;b&gt;" in page
    assert "mine &amp; yours" in page
    assert page.count("<svg") == 4
    record = side_by_side_record(together)
    assert record["policies"][0]["feasible"] is False
    assert record["bound"] == pytest.approx(46.2)
    with pytest.raises(CMPGError, match="no policy to judge"):
        judge_side_by_side(GRID, {})


def test_the_command_judges_files_side_by_side(exported, tmp_path):
    path, _ = exported
    cmpg.save_game(one_shot(), tmp_path / "game.json")
    code, out, _ = ran("judge", tmp_path / "game.json", path, "--json")
    assert code == 0
    assert json.loads(out)["policies"][0]["verdict"] == "Nash"
    one_shot().uniform_policy().save(tmp_path / "uniform.npz")
    arguments = (path, tmp_path / "uniform.npz", "--beside", "ours,selfish", "--out", tmp_path / "page.html")
    code, out, _ = ran("judge", tmp_path / "game.json", *arguments)
    assert code == 1
    assert [line.split()[0] for line in out.splitlines()[1:5]] == ["policy", "uniform", "ours", "selfish"]
    assert "<svg" in (tmp_path / "page.html").read_text()
    code, _, err = ran("judge", tmp_path / "game.json", path, "--beside", "theirs")
    assert code == 2
    assert "one of ours, independent, selfish, planner is required" in err
    code, _, err = ran("judge", tmp_path / "game.json", path, "--out", tmp_path / "table.doc")
    assert code == 2
    assert ".csv, .tex, .html or .md is required" in err
