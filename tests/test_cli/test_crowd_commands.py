"""`cmpg solve charging --agents …`, its folder, and `cmpg certify` of it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.command_line import cmpg as run
from tests.test_equilibrium.random_crowds import random_crowd

import cmpg
from cmpg.files.crowds import load_crowd_policy, save_crowd_policy
from cmpg.files.games import load_game, save_game
from cmpg.games import CrowdPolicy


def test_drawn_cars_are_solved_kept_and_certified_again(tmp_path):
    folder = tmp_path / "run"
    solved = run("solve", "charging", "--agents", "2000", "--seed", "3", "--epsilon", "1e-3", "--out", str(folder))
    assert solved.code == 0, solved.out + solved.err
    assert "CERTIFIED" in (solved.out + solved.err)
    assert "2,000 cars from the 24 of the day, with replacement (seed 3)" in (solved.out + solved.err)
    again = run("certify", str(folder / "game.npz"), str(folder / "policy.npz"), "--epsilon", "1e-3")
    assert again.code == 0, again.out + again.err
    assert "PROVED" in (again.out + again.err)
    record = json.loads((folder / "result.json").read_text())
    assert record["status"] == "CERTIFIED"
    assert record["certificate"]["allowance"]["gain"] < 1e-8
    assert (folder / "groups.csv").read_text().splitlines()[0].startswith("kind,first,last,number,share")
    assert len((folder / "loads.csv").read_text().splitlines()) == 25
    page = (folder / "page.html").read_text()
    assert "CERTIFIED" in page
    assert "<svg" in page
    assert "prefers-color-scheme: dark" in page
    assert page.count('<div class="scroll">') == page.count("<table")  # wide tables scroll by themselves on a phone
    # A claim with other multipliers, or more than it proves, is not proved.
    policy, multipliers = load_crowd_policy(folder / "policy.npz")
    save_crowd_policy(tmp_path / "free.npz", policy, multipliers=0 * multipliers)
    refused = run("certify", str(folder / "game.npz"), str(tmp_path / "free.npz"), "--epsilon", "1e-3")
    assert refused.code == 1
    assert "NOT PROVED" in (refused.out + refused.err)
    moved = CrowdPolicy(policy.kind, policy.number + (np.arange(policy.num_groups) == 0), policy.plans)
    save_crowd_policy(tmp_path / "more.npz", moved, multipliers=multipliers)
    wrong = run("certify", str(folder / "game.npz"), str(tmp_path / "more.npz"))
    assert wrong.code == 2
    assert "the crowd has" in (wrong.out + wrong.err)


@pytest.mark.parametrize("option", [("--restarts", "3"), ("--selfish",), ("--exact",), ("--chance", "overload>0:0.1")])
def test_options_that_mean_nothing_for_a_crowd_are_refused(option):
    refused = run("solve", "charging", "--agents", "2000", *option)
    assert refused.code == 2
    assert "crowd" in (refused.out + refused.err) or "exact mode" in (refused.out + refused.err)


def test_cars_of_several_parts_are_not_drawn():
    refused = run("solve", "charging", "--agents", "2000", "--min-rate", "2")
    assert refused.code == 2
    assert "cars are drawn whole" in (refused.out + refused.err)


@pytest.mark.parametrize("ending", ["npz", "json"])
def test_a_crowd_survives_its_file(tmp_path, ending):
    game, policy = random_crowd(np.random.default_rng(21))
    save_game(game, tmp_path / f"game.{ending}")
    save_crowd_policy(tmp_path / f"policy.{ending}", policy)
    again, groups = load_game(tmp_path / f"game.{ending}"), load_crowd_policy(tmp_path / f"policy.{ending}")[0]
    prices = np.ones((policy.num_groups, game.num_constraints))
    one, two = cmpg.certify(game, policy, prices), cmpg.certify(again, groups, prices)
    assert one.gains.tobytes() == two.gains.tobytes()
    assert one.costs.tobytes() == two.costs.tobytes()


def test_drawn_vehicles_are_solved_kept_and_certified_again(tmp_path):
    folder = tmp_path / "run"
    static = ("routing", "--mode", "static", "--agents", "1200", "--seed", "3")
    solved = run("solve", *static, "--out", str(folder))
    assert solved.code == 0, solved.out + solved.err
    assert "1,200 vehicles from the trips, in proportion to the traffic (seed 3)" in solved.out
    assert "over all paths of the network, offered or not" in solved.out
    again = run("certify", str(folder / "game.npz"), str(folder / "policy.npz"))
    assert again.code == 0, again.out + again.err
    assert (folder / "groups.csv").read_text().splitlines()[0].endswith("mixes,plays")
    assert "volume/capacity" in (folder / "loads.csv").read_text().splitlines()[0]
    assert "most used links" in (folder / "page.html").read_text()
