"""The script that a page hands out: the kernel's own files, which read a run's files and refuse what is not whole."""

import io
import re
import subprocess
import sys
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cmpg
from cmpg.files.games import save_game
from cmpg.games.claims import claim_of
from cmpg.games.constraints import bind
from cmpg.policy import JointPolicy
from cmpg.proof import run_files, script
from cmpg.proof.claim import ClaimError
from cmpg.proof.run_files import read_claim
from oracles.random_claims import draw_claim
from oracles.sweeping import build
from test_proof.test_format import assert_same

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
LAZY = CLAIM | {"agent_0": [[[1.0, 0.0], [1.0, 0.0]]] * 2}
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
ACTIONS = {
    "format": "cmpg-policy",
    "version": 2,
    "num_actions": [2, 2],
    "agent_0_actions": [[1]],
    "agent_1_actions": [[0]],
    "agent_1_mixed": [[0, 0]],
    "agent_1_rows": [[0.5, 0.5]],
}
COUNTING = {
    "format": "cmpg-game",
    "version": 1,
    "form": "counting",
    "discount": 0.5,
    "initial": [1.0],
    "transition": [[[[1.0], [1.0]]]],
    "rewards": [[[[0.0, 2.0, 1.0], [0.0, 2.0, 1.0]]]],
    "costs": [[[[0.0, 1.0]]]],
    "thresholds": [0.0],
    "boundaries": [1],
}
APART = {"format": "cmpg-policy", "version": 1, "agent_0": [[[1.0, 0.0]]], "agent_1": [[[0.0, 1.0]]]}
SPARSE = {
    "transition": None,
    "transition_indptr": [0, 1, 2, 3, 4],
    "transition_indices": [1, 0, 1, 1],
    "transition_data": [1.0, 1.0, 1.0, 1.0],
}


@pytest.fixture
def judged(tmp_path, capsys):
    """Judge a game and a policy that are given as fields, of which those that are None are left out."""

    def run(game, policy, *words):
        for name, fields in (("game", game), ("policy", policy)):
            given = {key: np.asarray(value) for key, value in fields.items() if value is not None}
            np.savez(tmp_path / f"{name}.npz", **given)
        code = run_files.main([str(tmp_path / "game.npz"), str(tmp_path / "policy.npz"), *map(str, words)])
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


def test_random_runs_are_the_claims_that_the_library_reads(tmp_path):
    forms = set()
    for seed in range(60):
        drawn = draw_claim(seed)
        if drawn.large or drawn.arithmetic != "floats" or drawn.game.get("discount") is not None:
            continue
        game = build(drawn.game) if drawn.binds.all() else bind(build(drawn.game), drawn.binds)
        policy = JointPolicy(tuple(drawn.policy))
        save_game(game, tmp_path / "game.npz")
        policy.save(tmp_path / "policy.npz", multipliers=drawn.multipliers)
        ours, theirs = (
            claim_of(game, policy, drawn.multipliers),
            read_claim(str(tmp_path / "game.npz"), str(tmp_path / "policy.npz")),
        )
        finite = np.where(drawn.multipliers == np.inf, 7, drawn.multipliers)
        assert np.array_equal(theirs.multipliers, drawn.multipliers)
        assert_same(replace(ours, multipliers=finite), replace(theirs, multipliers=finite))
        forms.add(drawn.form)
    assert forms >= {"joint", "sparse", "local", "counting"}


def test_the_script_is_the_files_of_the_kernel_and_runs_on_numpy_alone(tmp_path):
    text, folder = script.stand_alone(), Path(run_files.__file__).parent
    for name in script.PARTS:
        assert (folder / f"{name}.py").read_text("utf-8") in text
    (tmp_path / "check.py").write_text(text, "utf-8")
    (tmp_path / "cmpg.py").write_text("raise SystemExit('the installed library was imported')")
    result = cmpg.solve(cmpg.scenarios.spectrum())
    result.save(tmp_path / "run")
    files = [str(tmp_path / "run" / name) for name in ("game.npz", "policy.npz")]
    program = (
        "import runpy, sys; sys.argv = sys.argv[1:]\n"
        "try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit as end: code = end.code\n"
        "roots = {name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
        "print(sorted(name for name in roots if not name.startswith('_')), code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "check.py"), *files], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-2] == "proved: no agent gains more than 1e-06"
    assert done.stdout.splitlines()[-1] == "['cmpg', 'numpy'] 0"


def test_claims_that_hold(judged):
    code, said = judged(ONE, CLAIM)
    assert code == 0
    assert re.search(r"agent 0: value 3, gains at most \S+e-15\n", said)
    assert "constraint 0: cost 0.75, threshold 0.75\n" in said
    assert said.endswith("proved: no agent gains more than 1e-06\n")
    assert judged(LOCAL, BOTH, 1.0)[0] == judged(COUNTING, APART)[0] == 0
    assert judged(LOCAL, ACTIONS, 1.0) == judged(LOCAL, BOTH, 1.0)
    assert judged(ONE | SPARSE, CLAIM) == judged(ONE, CLAIM)


def test_a_gain_above_epsilon_is_not_proved(judged):
    assert judged(ONE, LAZY)[0] == judged(ONE, LAZY, 1.999)[0] == 1
    assert judged(ONE, LAZY, 2.0 + 1e-12)[0] == 0
    assert judged(ONE, LAZY)[1].endswith("not proved\n")
    assert judged(COUNTING, APART | {"agent_1": [[[0.5, 0.5]]]})[0] == 1


@pytest.mark.parametrize("off", [2.0**-53, 1e-12, 5e-10])
def test_a_cost_above_its_threshold_is_proved_only_where_that_is_allowed(judged, off):
    game = ONE | {"costs": [[[[0.25, 0.0], [0.0, 0.5 + off]]]]}
    code, said = judged(game, CLAIM)
    assert (code, "a threshold may be exceeded by" in said) == (1, True)
    assert judged(game, CLAIM, 1e-6, 2 * off)[0] == 0
    assert judged(game, CLAIM, 1e-6, off / 2)[0] == 1


def test_what_may_be_left_out(judged):
    assert judged(ONE | {"costs": None, "thresholds": None}, CLAIM | {"multipliers": None})[0] == 0
    assert judged(ONE, CLAIM | {"multipliers": None}) == judged(ONE, CLAIM)
    assert judged(LOCAL | {"cost_0": [[[[0.0, 0.0]]]]}, BOTH, 1.0)[0] == 0
    own = {name.replace("_0", "_1"): value for name, value in LOCAL.items() if name.endswith("_0") or "_0_" in name}
    assert judged(LOCAL | own | {"like": None}, BOTH, 1.0)[0] == 0
    assert judged(LOCAL | {"load_cost": None, "thresholds": None}, BOTH, 1.0)[0] == 0


def test_a_constraint_that_does_not_bind_an_agent_does_not_hold_it_back(judged):
    """Alone on the desk for 0.75; the load of two costs 1, which the second agent must not cause, if it is bound."""
    apart = {"format": "cmpg-policy", "version": 1, "agent_0": [[[0.0, 1.0]]], "agent_1": [[[1.0, 0.0]]]}
    game = LOCAL | {"thresholds": [0.0]}
    assert judged(game, apart | {"multipliers": [[0.0], [np.inf]]})[0] == 0
    free = game | {"binds": [[1], [0]]}
    assert "does not bind" in judged(free, apart | {"multipliers": [[0.0], [np.inf]]})[1]
    assert judged(free, apart | {"multipliers": [[0.0], [0.0]]}, 0.4)[0] == 1
    assert judged(free, apart | {"multipliers": [[0.0], [0.0]]}, 0.5 + 1e-12)[0] == 0


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"format": "cmpg-policy"}, "another format"),
        ({"version": 2}, "another format"),
        ({"form": "potential"}, "the form of the game is 'potential'"),
        ({"rooms": [1.0]}, "has the field rooms, which is not known here"),
        ({"initial": None}, "has no field initial"),
        ({"discount": 0.5}, "exactly one of horizon and discount"),
        ({"horizon": None, "discount": 1.0}, "0 ≤ γ < 1 is required"),
        ({"horizon": 2.0}, "horizon is no table of whole numbers"),
        ({"horizon": 3}, "policy[0] has shape"),
        ({"binds": [[2]]}, "binds has an entry other than 0 and 1"),
        ({"binds": [[1], [1]]}, "binds is no table of truth values of shape"),
        ({"rewards": [[[[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]]]}, "transition has shape"),
        ({"rewards": [[[[1.0, 0.0], [0.0, np.inf]]]]}, "rewards has an entry that is not a finite number"),
        ({"rewards": [[[["1", "0"], ["0", "2"]]]]}, "rewards is no table of floats"),
        ({"rewards": [[[[2**60 + 1, 0], [0, 2]]]]}, "rewards is no table of floats"),
        ({"rewards": [[[[1.0, 0.0], [0.0, 2.0]]] * 3]}, "rewards has 3 steps"),
        ({"rewards": [1.0]}, "rewards is no table of floats with 4 axes"),
        ({"costs": [[[[0.25, 0.0, 1.0], [0.0, 0.5, 1.0]]]]}, "costs has shape"),
        ({"costs": [[[[0.25, 0.0], [0.0, np.nan]]]]}, "costs has an entry that is not a finite number"),
        ({"transition": [[[[0.0, 0.9], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]]]}, "no probability distribution"),
        ({"transition": [[[[-1.0, 2.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]]]}, "no probability distribution"),
        ({"initial": [0.5, 0.4]}, "initial has a row that is no probability distribution"),
        ({"initial": [1.0, 0.0, 0.0]}, "rewards has shape"),
        (SPARSE | {"transition_indptr": [0, 1, 2, 3, 5]}, "no sparse matrix"),
        (SPARSE | {"transition_indptr": [1, 1, 2, 3, 4]}, "no sparse matrix"),
        (SPARSE | {"transition_indptr": [0, 2, 1, 3, 4]}, "no sparse matrix"),
        (SPARSE | {"transition_indptr": [0, 1, 2, 4]}, "no sparse matrix"),
        (SPARSE | {"transition_indices": [1, 0, 1, 2]}, "outside of its 2 columns"),
        (SPARSE | {"transition_indices": [-1, 0, 1, 1]}, "outside of its 2 columns"),
        (SPARSE | {"transition_data": [1.0, 1.0, 1.0]}, "4 columns and 3 entries"),
    ],
)
def test_a_joint_game_that_is_not_whole_is_refused(judged, changes, problem):
    code, said = judged(ONE | changes, CLAIM)
    assert code == 1
    assert said.startswith("not proved: ")
    assert problem in said


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"format": "cmpg-game"}, "another format"),
        ({"multipliers": [[-1e-300]]}, "multipliers has a negative entry"),
        ({"multipliers": [[0.0], [0.0]]}, "multipliers has shape"),
        ({"multipliers": [[np.nan]]}, "multipliers has an entry that is not a finite number"),
        ({"agent_0": [[[1.0, 0.0], [0.5, 0.4]]] * 2}, "no probability distribution"),
        ({"agent_0": [[[2.0, -1.0], [0.0, 1.0]]] * 2}, "no probability distribution"),
        ({"agent_0": [[[1.0 + 2e-9, 0.0], [0.0, 1.0]]] * 2}, "no probability distribution"),
        ({"agent_0": [[[1.0, 0.0], [0.0, 1.0]]]}, "policy[0] has shape"),
        ({"agent_1": [[[1.0]]] * 2}, "has shape"),
        ({"agent_0": None}, "the policy has no agents"),
        ({"epsilon": 0.0}, "has the field epsilon"),
    ],
)
def test_a_policy_that_is_not_whole_is_refused(judged, changes, problem):
    code, said = judged(ONE, CLAIM | changes)
    assert code == 1
    assert problem in said or (changes.keys() == {"agent_1"} and said.startswith("not proved: "))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"agent_0_actions": [[2]]}, "agent_0_actions has an action that does not exist"),
        ({"agent_0_actions": [[-1]]}, "agent_0_actions has an action that does not exist"),
        ({"agent_0_actions": [[1.0]]}, "agent_0_actions is no table of whole numbers"),
        ({"agent_1_mixed": [[0, -1]]}, "agent_1_mixed has a step or a state that does not exist"),
        ({"agent_1_mixed": [[0, 1]]}, "agent_1_mixed has a step or a state that does not exist"),
        ({"agent_1_rows": [[0.5, 0.6]]}, "no probability distribution"),
        ({"agent_1_mixed": [[0, 0], [0, 0]], "agent_1_rows": [[0.5, 0.5], [1.0, 0.0]]}, "is there twice"),
        ({"num_actions": [2]}, "num_actions and like need an entry for each of the 1 agents"),
    ],
)
def test_actions_that_do_not_exist_are_refused(judged, changes, problem):
    code, said = judged(LOCAL, ACTIONS | changes)
    assert (code, problem in said) == (1, True), said


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"num_actions": [2, 2, 2]}, "num_actions and like need"),
        ({"like": [1, 0]}, "in a circle"),
        ({"like": [0, 2]}, "num_actions and like need"),
        ({"transition_1_data": [1.0, 1.0]}, "has the field transition_1_data"),
        ({"delay": [[[0, 0.25]]]}, "delay has shape"),
        ({"load_cost": [[[[0, 0, 1, 2]]]]}, "load_costs has shape"),
        ({"reward_0": [[[0.0, 1.0, 2.0]]]}, "reward_0 has shape"),
        ({"cost_0": [[[[0.0, 1.0, 2.0]]]]}, "costs of agent 0 has shape"),
        ({"initial_0": [0.5]}, "no probability distribution"),
        ({"initial_1": [0.5, 0.5]}, "reward_0 has shape"),
        ({"transition_0_data": [1.0, 0.5]}, "no probability distribution"),
        ({"use_0_indptr": [0, 0, 2], "use_0_indices": [0, 0]}, "twice in one place"),
        ({"use_0_indices": [1]}, "outside of its 1 columns"),
    ],
)
def test_a_local_game_that_is_not_whole_is_refused(judged, changes, problem):
    code, said = judged(LOCAL | changes, BOTH)
    assert (code, problem in said) == (1, True), said


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"boundaries": [0, 1]}, "2 classes; the counts have 3"),
        ({"boundaries": None}, "2 classes; the counts have 3"),
        ({"private_rewards": [[[[0.0, 1.0]]]]}, "private_rewards has shape"),
        ({"class_rewards": [[[[0.0], [1.0]]]]}, "class_rewards has 1 classes"),
        ({"transition": [[[[1.0]], [[1.0]]]]}, "transition has shape"),
    ],
)
def test_a_counting_game_that_is_not_whole_is_refused(judged, changes, problem):
    code, said = judged(COUNTING | changes, APART)
    assert (code, problem in said) == (1, True), said


def test_a_file_with_a_second_array_of_the_same_name_is_refused(judged, tmp_path):
    judged(ONE, CLAIM)
    other = io.BytesIO()
    np.save(other, np.array([9.0]))
    with warnings.catch_warnings(), zipfile.ZipFile(tmp_path / "game.npz", "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("thresholds.npy", other.getvalue())
    with pytest.raises(ClaimError, match="two arrays of the same name"):
        read_claim(str(tmp_path / "game.npz"), str(tmp_path / "policy.npz"))


def test_what_is_no_file_of_arrays_is_refused(tmp_path, capsys):
    (tmp_path / "text.npz").write_text("no archive")
    for path in (tmp_path / "text.npz", tmp_path / "none.npz", tmp_path):
        with pytest.raises(ClaimError, match="cannot be read as a file of arrays"):
            read_claim(str(path), str(path))
    assert run_files.main([]) == 2
    assert "usage: " in capsys.readouterr().err
