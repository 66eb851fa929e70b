"""Every scenario states what it read, rounded, dropped, cut and assumed; a changed total is a warning."""

import json

import pytest
from by_brute_force import DATA, needs_data

import cmpg
from cmpg.interop import from_parallel_env, to_parallel_env
from cmpg.scenarios import scenario
from command_line import cmpg as command


def translation(game):
    return dict(game.names.legend.translation)


@pytest.mark.parametrize("name", ["charging", "robots", "routing", "spectrum", "team"])
def test_every_scenario_of_data_says_what_it_read_and_assumed(name):
    told = translation(scenario(name).build())
    assert next(iter(told)) == "read"
    assert list(told)[-1] == "assumed"


def test_robots_say_how_they_move_and_what_is_a_collision(tmp_path):
    path = tmp_path / "swamp.map"
    path.write_text("type octile\nheight 2\nwidth 4\nmap\n..S.\n.@..\n")
    told = translation(cmpg.scenarios.robots(map=path, num_agents=2, horizon=9, edges=False, success=1.0))
    assert told["read"] == f"7 free cells of 4 × 2, {path}; starts and goals drawn at random, seed 0"
    assert told["swamp"] == "1 cell of swamp (S) taken as ordinary ground"
    assert told["collisions"] == "two robots on one cell at one step; two that trade places are not counted"
    assert told["assumed"].startswith("moves always succeed")
    assert "the first 3 of 10 pairs of the bundled file" in translation(cmpg.scenarios.robots(num_agents=3))["read"]


def test_platoons_that_are_not_all_of_the_traffic_are_a_warning():
    game = cmpg.scenarios.routing(num_agents=5, vehicles=100)
    assert game.names.legend.warning == "500 vehicles travel in the game, 35,600 in the trip table"
    said = command("solve", "routing", "--agents", "5", "--vehicles", "100")
    assert "\nwarning: 500 vehicles travel in the game, 35,600 in the trip table\n" in said.out
    assert cmpg.scenarios.routing(mode="static").names.legend.warning == ""


def test_static_platoons_are_rounded_and_say_so():
    game = cmpg.scenarios.routing(mode="static", vehicles=700)
    told = translation(game)
    assert told["platoons"].startswith(f"{game.num_agents} of 700 vehicles, {game.num_agents * 700:,} in all")
    assert game.names.legend.warning
    with pytest.raises(cmpg.errors.FileError, match=r"at most .* vehicles between two nodes, .* --vehicles 1,"):
        cmpg.scenarios.routing(mode="static", vehicles=1e6)


@needs_data
def test_static_braess_names_the_option_that_helps():
    files = {"network": DATA / "tntp" / "Braess_net.tntp", "trips": DATA / "tntp" / "Braess_trips.tntp"}
    with pytest.raises(cmpg.errors.FileError, match=r"has at most 6 vehicles between two nodes.* --vehicles 1"):
        cmpg.scenarios.routing(mode="static", **files)
    assert cmpg.scenarios.routing(mode="static", vehicles=1, **files).num_agents == 6


def test_a_team_says_that_it_sees_the_state_and_which_discount_is_not_used(tmp_path):
    told = translation(cmpg.scenarios.team())
    assert told["dropped"].startswith("the observations: all agents see the state")
    assert told["time"].endswith("the discount of the file, 0.95, is not used")
    assert translation(cmpg.scenarios.team(horizon=None))["time"] == "without end, discount 0.95 as in the file"


def test_an_environment_says_what_was_played_and_where_it_was_cut():
    env = to_parallel_env(cmpg.scenarios.counter_example())
    told = translation(from_parallel_env(env, horizon=1, thresholds=[0.5]).game)
    assert "2 agents, 2 states" in told["read"]
    assert told["time"] == "1 step; every episode has ended by then"
    assert told["tables"].endswith("no randomness showed")
    longer = to_parallel_env(cmpg.scenarios.grid_world(horizon=4))
    cut = translation(from_parallel_env(longer, horizon=1, thresholds=[0.5]).game)
    assert cut["time"].startswith("1 step; what comes after is cut, from ")
    sampled = from_parallel_env(env, horizon=1, thresholds=[0.5], samples_per_entry=3).game
    assert translation(sampled)["tables"].startswith("averages of 3 tries or more")


def test_a_translation_is_in_result_json_and_in_the_game_file(tmp_path):
    said = command("solve", "spectrum", "--out", tmp_path / "run")
    assert "\nread: no data: the game is made of its options\n" in said.out
    record = json.loads((tmp_path / "run" / "result.json").read_text())
    assert record["translation"]["states"] == "what is sensed on 2 channels, which all users see"
    again = cmpg.load_game(tmp_path / "run" / "game.npz")
    assert translation(again) == record["translation"]
    assert again.names.legend.agent == "user"
