"""Calls that a newcomer gets wrong are answered in a sentence that says what is meant."""

import numpy as np
import pytest

import cmpg
from cmpg.errors import CMPGError, GameError
from cmpg.games import by_window
from command_line import cmpg as command

GAME = cmpg.scenarios.counter_example()


def test_a_step_function_that_returns_two_things_is_told_of_the_third():
    with pytest.raises(
        GameError, match=r"step\(state=0, actions=\(0, 0\)\) returned 2 things; three are required: .*\[\]"
    ):
        cmpg.JointGame.from_function(
            lambda state, actions: ({0: 1.0}, [0.0, 0.0]),
            num_states=1,
            num_actions=(2, 2),
            thresholds=[],
            initial=[1.0],
            horizon=1,
        )


@pytest.mark.parametrize(
    "call",
    [
        lambda: cmpg.solve(GAME, rng="a"),
        lambda: cmpg.simulate(GAME, GAME.uniform_policy(), 10, rng="a"),
        lambda: cmpg.check_potential(cmpg.scenarios.congestion_game(), rng="a"),
    ],
)
def test_a_seed_that_is_a_word_is_refused(call):
    with pytest.raises(CMPGError, match=r"rng is a str; a seed is required, or np.random.default_rng\(1\)"):
        call()


def test_a_seed_is_as_good_as_its_generator():
    one, two = (cmpg.simulate(GAME, GAME.uniform_policy(), 50, rng=rng) for rng in (3, np.random.default_rng(3)))
    np.testing.assert_array_equal(one.values.seen, two.values.seen)
    game = cmpg.scenarios.congestion_game()
    assert cmpg.check_potential(game).verdict is cmpg.check_potential(game, rng=np.random.default_rng(0)).verdict


def test_a_misspelt_option_of_a_scenario_names_the_nearest():
    with pytest.raises(GameError, match=r"robots has no option 'horizn'; did you mean 'horizon'\?"):
        cmpg.scenarios.robots(horizn=5)


def test_agents_is_one_name_in_python_on_the_command_line_and_on_the_page(tmp_path):
    built = (cmpg.scenarios.robots, cmpg.scenarios.scenario("robots").build)
    assert {build(**{name: 3}).num_agents for build in built for name in ("agents", "num_agents")} == {3}
    with pytest.raises(GameError, match=r"no option 'n_agents'; did you mean 'agents'\?"):
        cmpg.scenarios.robots(n_agents=3)
    with pytest.raises(GameError, match="agents and num_agents, which are the same"):
        cmpg.scenarios.robots(agents=3, num_agents=3)
    assert command("solve", "spectrum", "--agents", "2", "--out", tmp_path / "run").code == 0
    assert command("report", tmp_path / "run").code == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert "agents 2" in page
    assert "num-agents" not in page


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("agents", "did you mean agent_names"),
        ("threshold", "did you mean thresholds"),
        ("colour", "there are action_names, agent_names"),
    ],
)
def test_a_keyword_that_a_game_does_not_have_is_explained(name, advice):
    with pytest.raises(GameError, match=f"a JointGame has no {name}; {advice}"):
        cmpg.JointGame(
            transition=np.ones((1, 1, 2, 1)), rewards=[[[[0, 1]]]], costs=[], thresholds=[], initial=[1], horizon=1,
            **{name: ("a",)},
        )  # fmt: skip


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: cmpg.solve(GAME, seed=1), r"solve has no seed; pass it as rng: `solve\(game, rng=1\)`"),
        (lambda: cmpg.solve(GAME, solver=None), r"solve has no solver; pass it in the method"),
        (lambda: cmpg.solve(GAME, epsilom=1), r"solve has no epsilom; did you mean epsilon\?"),
        (lambda: cmpg.certify(GAME, None, epsilon=1), r"certify has no epsilon; .*certificate.proves\(epsilon\)"),
        (lambda: cmpg.simulate(GAME, None, 10, seed=1), r"simulate has no seed; did you mean rng\?"),
        (lambda: cmpg.judge(GAME, None, seed=1), r"judge has no seed; did you mean rng\?"),
        (
            lambda: cmpg.check_potential(GAME, tolerance=1),
            r"check_potential has no tolerance; there are cycles, game, rng",
        ),
        (
            lambda: cmpg.JointGame.from_function(None, agents=2),
            "from_function has no agents; num_actions has one entry",
        ),
        (lambda: cmpg.JointGame.from_matrices([1], costs=[1]), "from_matrices has no costs; pass cost"),
    ],
)
def test_a_keyword_that_a_function_does_not_have_is_explained(call, told):
    with pytest.raises(CMPGError, match=told):
        call()


@pytest.mark.parametrize(
    ("windows", "thresholds", "problem"),
    [
        ([(0, 12), (12, 24)], [1.0, 2.0, 3.0], r"thresholds has shape \[3\]; one number, or one for each of 2 windows"),
        ([0, 12], 1.0, r"windows is \[0, 12\]; a number of steps, or pairs \(first, end\) are required"),
        ([(0, 6, 12)], 1.0, r"windows is \[\(0, 6, 12\)\]; a number of steps, or pairs"),
    ],
)
def test_windows_of_a_wrong_shape_are_refused(windows, thresholds, problem):
    with pytest.raises(GameError, match=problem):
        by_window(cmpg.scenarios.charging(), windows, thresholds)


def test_the_page_of_an_own_game_has_its_name(tmp_path):
    cmpg.solve(GAME).report(tmp_path / "lake.html")
    assert "<title>lake" in (tmp_path / "lake.html").read_text()


@pytest.mark.parametrize("name", ["counter-example", "spectrum"])
def test_an_exact_run_has_a_page(tmp_path, name):
    assert command("solve", name, "--exact", "--out", tmp_path / "run").code == 0
    assert command("report", tmp_path / "run").code == 0
