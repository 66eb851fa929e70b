"""Sizes are known before they are paid for: requests that are too large are refused with a number and a way out."""

import math
import resource
import subprocess
import sys

import numpy as np
import pytest

import cmpg
from cmpg import sizes
from cmpg.cmdp.kernels.choice import compiled
from cmpg.errors import GameError, TooLargeError, UnsupportedError
from cmpg.games.joint.game import JointGame
from cmpg.report import viewer
from cmpg.report.tables import rows_of
from cmpg.report.viewer import visits_by_agent


def large_step(state, actions):
    return {0: 1.0}, [0.0] * len(actions), []


def test_a_function_over_ten_thousand_million_joint_actions_is_refused_before_it_is_called():
    with pytest.raises(TooLargeError, match=r"1 states and 1e\+10 joint actions would need .* TB?"):
        JointGame.from_function(large_step, num_states=1, num_actions=[10] * 10, thresholds=[], initial=[1], horizon=1)


@pytest.mark.parametrize("agents", [32, 40, 1000])
def test_many_agents_in_a_joint_game_are_pointed_to_other_forms(agents):
    wanted = "at most 28 agents.*LocalGame.*CountingGame"
    with pytest.raises(UnsupportedError, match=wanted):
        JointGame.from_function(
            large_step, num_states=1, num_actions=[1] * agents, thresholds=[], initial=[1], horizon=1
        )
    with pytest.raises(UnsupportedError, match=wanted):
        cmpg.scenarios.congestion_game(num_agents=agents)
    with pytest.raises(UnsupportedError, match=wanted):
        JointGame(transition=[], rewards=np.zeros((agents, 1, 1)), costs=[], thresholds=[], initial=[1], horizon=1)


def test_as_many_agents_as_a_joint_game_may_have_are_solved():
    shape = (1,) * 28
    game = JointGame.from_matrices(np.zeros(shape), cost=np.zeros(shape), threshold=0.0)
    assert cmpg.solve(game).certified


@pytest.mark.parametrize(
    ("ask", "wanted"),
    [
        (
            lambda: cmpg.scenarios.grid_world(width=100, height=100),
            "100,000,000 states and 16 joint actions would need",
        ),
        (lambda: cmpg.scenarios.grid_world_local(width=10**5, height=10**5), "10,000,000,000 cells over 6 steps"),
        (lambda: cmpg.scenarios.counting_congestion_game(num_agents=10**9), "policies of 1,000,000,000 agents"),
        (lambda: cmpg.scenarios.routing(num_agents=10**9), "policies of 1,000,000,000 agents"),
        (lambda: cmpg.scenarios.robots(num_agents=10**9, seed=1), "policies of 1,000,000,000 agents"),
        (lambda: cmpg.scenarios.spectrum(num_agents=20), "3.49e+09 joint actions would need"),
        (lambda: cmpg.solve(cmpg.scenarios.grid_world(horizon=10**8)), "2 agents over 100,000,000 steps would need"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_number(ask, wanted):
    with pytest.raises(GameError) as refused:
        ask()
    assert isinstance(refused.value, TooLargeError)
    assert wanted in str(refused.value)
    assert "may be used." in str(refused.value)


def test_hours_of_work_need_a_time_limit():
    """A game of two hundred bytes with a horizon of forty million."""
    game = JointGame.from_matrices([[3, 2], [2, 4]], cost=[[0, 0], [0, 1]], threshold=0.5)
    long = JointGame(
        transition=game.transition,
        rewards=game.rewards,
        costs=game.costs,
        thresholds=game.thresholds,
        initial=game.initial,
        horizon=40_000_000,
    )
    with pytest.raises(TooLargeError, match=r"1\.6e\+08 entries of policies.*--time-limit"):
        cmpg.solve(long)


@pytest.mark.skipif(compiled() is None, reason="there are no compiled kernels here, or they are not wanted")
def test_policies_that_are_kept_as_actions_need_little_memory_and_no_time_limit(monkeypatch):
    """Three hundred robots on a map of 64 x 64 cells: a gigabyte of tables, and seconds a round."""
    game = cmpg.scenarios.robots(num_agents=4, horizon=30)
    steps, states, actions = game.policy_shapes[0]
    monkeypatch.setattr(sizes, "MAX_ENTRIES", 4 * steps * states * actions - 1)
    monkeypatch.setattr(sizes, "memory_left", lambda: 64.0 * steps * states * actions - 1)
    sizes.require_solve(game, math.inf)
    monkeypatch.setenv("CMPG_KERNELS", "numpy")
    with pytest.raises(TooLargeError, match="policies and CMDPs of 4 agents"):
        sizes.require_solve(game, math.inf)


def test_more_than_is_left_is_refused_with_both_numbers(monkeypatch):
    monkeypatch.setattr(sizes, "memory_left", lambda: 2e9)
    with pytest.raises(TooLargeError, match=r"a page would need 2\.5 GB, and 2 GB may be used\. Draw less\."):
        sizes.require_memory("a page", 2.5e9, advice="Draw less.")
    sizes.require_memory("a page", 2e9, advice="Draw less.")
    with pytest.raises(TooLargeError, match="nan"):
        sizes.require_memory("nothing", math.nan, advice="")


def test_tables_and_pictures_that_do_not_fit_are_refused_with_the_number(monkeypatch):
    result = cmpg.solve(cmpg.scenarios.grid_world())
    monkeypatch.setattr(sizes, "memory_left", lambda: 1e5)
    with pytest.raises(TooLargeError, match=r"a table of 3,072 rules would need 3\.07 MB.*Export the schedule"):
        rows_of(result, "policy")
    with pytest.raises(TooLargeError, match=r"2 agents do at every step would need .* kB.*cmpg export"):
        visits_by_agent(result.game, result.policy, places=16)
    monkeypatch.setattr(sizes, "memory_left", lambda: 1e9)
    assert len(rows_of(result, "policy")) >= 3072


def test_a_page_leaves_out_what_is_too_large_to_draw_and_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(viewer, "MAX_STEPS", 5)
    cmpg.solve(cmpg.scenarios.grid_world()).report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "This is not drawn: 6 steps are not drawn one by one" in page
    assert 'id="view-data"' not in page
    assert "Proof" in page


def test_what_is_left_is_the_least_of_what_the_system_has_and_the_container_may_use(monkeypatch, tmp_path):
    def files(free, **limits):
        (tmp_path / "meminfo").write_text(f"MemTotal: 9000 kB\nMemAvailable: {free} kB\n")
        for name, content in limits.items():
            (tmp_path / f"memory.{name}").write_text(f"{content}\n")
        return sizes.memory_left()

    where = {"/sys/fs/cgroup": tmp_path, "/proc/meminfo": tmp_path / "meminfo"}
    monkeypatch.setattr(sizes, "Path", lambda path: where[path])
    assert files(5000, max=1_000_000, current=400_000) == 600_000
    assert files(500, max=1_000_000, current=400_000) == 512_000
    assert files(5000, max="max") == 5_120_000
    assert files(5000, max=400_000) == 0


def test_an_address_space_of_one_gibibyte_is_known():
    code = "from cmpg.sizes import memory_left; print(memory_left())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)),
    )
    assert 1e8 < float(done.stdout) < 2**30
