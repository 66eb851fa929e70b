"""What scenarios and their readers refuse, each with where it stands and what is required instead."""

from datetime import date, datetime

import numpy as np
import pytest

import cmpg
from cmpg.errors import FileError, GameError
from cmpg.interop.long_table import read_table
from cmpg.scenarios.charging_site import grouped, kilowatts
from cmpg.scenarios.readers.acn import read_sessions
from cmpg.scenarios.readers.dpomdp import read_dpomdp
from cmpg.scenarios.readers.movingai import read_map
from cmpg.scenarios.readers.text import LONGEST_LINE
from cmpg.scenarios.readers.tntp import Link, Network
from cmpg.scenarios.samples import sample_file
from cmpg.scenarios.traffic_assignment import Demand, Roads, shortest_paths

TEAM = """agents: 2
discount: 1
values: reward
states: a b
start: a
actions:
2
1
observations:
2
1
T: * :
identity
R: * : a : * : 0 * : 8
"""


def team(tmp_path, *lines):
    path = tmp_path / "team.dpomdp"
    path.write_text(TEAM + "\n".join(lines) + "\n")
    return path


def test_a_reward_by_what_is_observed_is_averaged_over_observations(tmp_path):
    found = read_dpomdp(team(tmp_path, "O: * : * : 0 * : 0.25", "O: * : * : 1 * : 0.75"))
    assert found.reward[0, 0, 0] == 2.0
    assert found.reward[1, 0, 0] == 0.0


@pytest.mark.parametrize(
    "lines", [[], ["O: * : * : 0 * : 0.25"], ["O: * : * : 0 * : 1.5", "O: * : * : 1 * : -0.5"]], ids=str
)
def test_a_reward_by_what_is_observed_needs_the_probabilities_of_that(lines, tmp_path):
    path = team(tmp_path, *lines)
    with pytest.raises(FileError, match="a reward depends on what is observed after 'action 0 action 0' in state 'a'"):
        read_dpomdp(path)


def test_what_an_impossible_move_would_bring_does_not_matter(tmp_path):
    """Nobody comes from a to b, and what is observed there is not said."""
    path = tmp_path / "team.dpomdp"
    path.write_text(TEAM.replace("R: * : a : *", "R: * : a : b"))
    assert not read_dpomdp(path).reward.any()


def test_a_team_without_states_is_refused(tmp_path):
    path = tmp_path / "team.dpomdp"
    path.write_text(TEAM.replace("states: a b", "states:"))
    with pytest.raises(FileError, match=r"team\.dpomdp, line 4: a number of states, or their names, are required"):
        read_dpomdp(path)


def test_a_line_that_never_ends_is_no_text(tmp_path):
    path = tmp_path / "long.map"
    path.write_bytes(b"." * (LONGEST_LINE + 1))
    with pytest.raises(FileError, match=rf"long\.map, line 1: the line has more than {LONGEST_LINE} bytes"):
        read_map(path)


def test_sessions_are_csv_and_their_times_may_have_any_zone(tmp_path):
    with sample_file("sample_sessions.csv") as path:
        lines = path.read_text().splitlines()
    broken = tmp_path / "broken.csv"
    broken.write_text("\n".join([*lines[:2], "x" * 200_000]))
    with pytest.raises(FileError, match=r"broken\.csv, line 3"):
        read_sessions(broken)


def test_a_table_of_a_game_has_states_and_transitions(tmp_path):
    path = tmp_path / "game.csv"
    path.write_text("quantity,step,state,action of Ada,next_state,name,value\nhorizon,,,,,,1\n")
    with pytest.raises(FileError, match=r"game\.csv has no `initial` or no `transition` lines; every game needs both"):
        read_table(path)


def test_of_two_roads_the_faster_one_is_taken_and_no_way_is_told():
    links = tuple(
        Link(tail, head, 1.0, 1.0, time, 0.0, 1.0, 1) for tail, head, time in [(1, 2, 5.0), (1, 2, 3.0), (1, 2, 4.0)]
    )
    roads = Roads.of(Network(3, 3, 1, links, "roads"))
    times = np.array([5.0, 3.0, 4.0])
    assert shortest_paths(roads, Demand(((0, 1),), np.ones(1)), times)[0] == [(1,)]
    with pytest.raises(FileError, match="there is no way from 1 to 3"):
        shortest_paths(roads, Demand(((0, 2),), np.ones(1)), times)


def test_a_static_city_needs_both_of_its_tables():
    with sample_file("sample_net.tntp") as path, pytest.raises(GameError, match="a network needs its trip table"):
        cmpg.scenarios.routing(mode="static", network=path)


class Slots:
    """Two slots of an hour."""

    count, minutes, clocks = 2, 60, (0, 60)


def test_no_power_at_all_is_a_number_and_no_file():
    assert kilowatts("capacity_kw", {"north": ["P-1"]}, Slots, "0").tolist() == [[0.0, 0.0]]
    assert kilowatts("capacity_kw", {"north": ["P-1"]}, Slots, "14").tolist() == [[14.0, 14.0]]


@pytest.mark.parametrize("transformers", [{}, "", 3])
def test_transformers_are_named_with_their_stations(transformers):
    with pytest.raises(GameError, match="for each transformer its name and its stations are required"):
        grouped([], transformers)


def test_a_table_of_stations_is_whole(tmp_path):
    path = tmp_path / "stations.csv"
    path.write_text("station,transformer\nP-1,\n")
    with pytest.raises(FileError, match=r"stations\.csv, line 2: a station and its transformer are required"):
        grouped([], str(path))


def test_a_day_may_be_a_time_of_that_day():
    with sample_file("sample_sessions.csv") as path:
        day = read_sessions(path)[0].arrival
        games = [cmpg.scenarios.charging(sessions=path, day=each) for each in (day, day.date(), str(day.date()))]
    assert isinstance(day, datetime)
    assert isinstance(day.date(), date)
    assert len({game.agent_names for game in games}) == 1


def test_weights_of_a_congestion_game_are_one_per_action():
    with pytest.raises(GameError, match=r"weights has shape \[1, 2\]; one weight per action is required"):
        cmpg.scenarios.counting_congestion_game(weights=[[1.0, 2.0]])


def test_the_scenarios_list_themselves():
    assert dir(cmpg.scenarios) == sorted(cmpg.scenarios.__all__)


@pytest.mark.parametrize(
    ("build", "options", "problem"),
    [
        (cmpg.scenarios.robots, {"num_agents": 900}, "the bundled file has 10 pairs"),
        (cmpg.scenarios.charging, {"day": "2020-01-01"}, "the bundled day has no session that arrived on 2020-01-01"),
        (cmpg.scenarios.routing, {"horizon": 1, "protected": "1-9"}, "the bundled city has no link from 1 to 9"),
    ],
)
def test_samples_are_not_named_by_where_they_are_installed(build, options, problem):
    with pytest.raises(FileError, match=f"^{problem}"):
        build(**options)
