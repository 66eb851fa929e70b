"""Whatever the bytes of a file, a parser returns what it holds or refuses it; `python -m checks fuzz` tries more."""

import gzip
import os
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import cmpg
from bad_files import refused
from cmpg.errors import CMPGError, FileError
from cmpg.interop.gambit import read_nfg
from cmpg.interop.long_table import read_table
from cmpg.scenarios.readers.acn import read_sessions
from cmpg.scenarios.readers.dpomdp import read_dpomdp
from cmpg.scenarios.readers.movingai import read_map, read_scen
from cmpg.scenarios.readers.tntp import read_network, read_nodes, read_trips
from fuzzing.doors import BY_NAME, DOORS, FINDINGS, NFG
from fuzzing.running import LOAD_SECONDS, at_most, try_door, try_solving

READERS = (read_sessions, read_map, read_scen, read_network, read_trips, read_nodes, read_dpomdp, read_nfg, read_table)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_every_door_reads_what_it_should(door, tmp_path):
    door.prepare(tmp_path)
    for data in door.seeds():
        (tmp_path / door.file_name).write_bytes(data)
        door.read(tmp_path / door.file_name)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_a_spoilt_file_is_read_or_refused_by_name(door):
    assert try_door(door.name, range(20 if door.slow else 60)) == []


def test_games_with_hard_numbers_end_with_a_status():
    solved, found = try_solving(range(100))
    assert solved > 50
    assert found == []


@pytest.mark.parametrize("path", sorted(FINDINGS.glob("*--*")), ids=lambda path: path.stem)
def test_what_once_broke_a_door_does_so_no_more(path, tmp_path):
    name = path.name.partition("--")[0].replace("_", " ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "solve":
            assert cmpg.solve(cmpg.load_game(path), time_limit=5.0).status is not None
            return
        BY_NAME[name].prepare(tmp_path)
        with at_most(LOAD_SECONDS):
            assert BY_NAME[name].try_file(tmp_path, path.read_bytes()) is None


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_what_may_never_end_is_not_opened(read, tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path / "pipe.csv", Path("/dev/zero")):
        with pytest.raises(FileError, match="is a pipe or a device"):
            read(path)
    with pytest.raises(FileError, match="no name that a file can have"):
        read("a\0b")


@cache
def bomb(content):
    """Eight megabytes in eight thousand bytes."""
    return gzip.compress(content * (8_000_000 // len(content)), 6)


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_a_bomb_is_given_up_before_it_bursts(read, tmp_path):
    path = tmp_path / "bomb.gz"
    for content in (b"\n", b"1 "):
        path.write_bytes(bomb(content))
        with at_most(LOAD_SECONDS):
            assert refused(lambda: read(path), path)


def test_a_large_file_that_is_packed_honestly_is_read(tmp_path):
    rows = [f"{number:01000b}".replace("0", ".").replace("1", "@") for number in range(1500)]
    (tmp_path / "large.map.gz").write_bytes(
        gzip.compress("\n".join(["height 1500", "width 1000", "map", *rows]).encode())
    )
    assert read_map(tmp_path / "large.map.gz").height == 1500


def dpomdp(**changes):
    """A file in the `.dpomdp` form, with some statements changed."""
    lines = {
        "agents": "2",
        "discount": "1",
        "values": "reward",
        "states": "2",
        "start": "uniform",
        "actions": "\n2\n2",
        "observations": "\n2\n2",
        "T": "* :\nuniform",
        "R": "* : * : * : * : 1",
    }
    return "\n".join(f"{name}: {value}" for name, value in (lines | changes).items())


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"states": "99999"}, "describes tables of"),
        ({"agents": "99"}, "99 agents; at most"),
        ({"actions": "\n100000\n100000"}, "describes tables of"),
        ({"actions": "\n9999999\n2"}, "9999999 actions"),
        ({"observations": "\n50000\n50000"}, "joint observations"),
        ({"states": "800", "R": "* : * : * : 0 : 1"}, "write more entries than"),
        ({"states": "800", "T": "* :\nuniform\n" + "T: * : * : * : 0.5\n" * 200}, "write more entries than"),
        ({"start": "1e308 1e308"}, "no state has a positive"),
        ({"T": "* :\n1e308 1e308 1 0"}, "must sum to 1"),
        ({"T": "² : 0 : 0 : 1"}, "is not a joint action"),
        ({"T": "9" * 5000 + " : 0 : 0 : 1"}, "is not a joint action"),
    ],
)
def test_a_team_that_would_take_too_much_is_refused(changes, problem, tmp_path):
    (tmp_path / "team.dpomdp").write_text(dpomdp(**changes))
    with pytest.raises(FileError, match=problem) as told, at_most(LOAD_SECONDS):
        read_dpomdp(tmp_path / "team.dpomdp")
    assert str(tmp_path) in str(told.value)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (b"1/3", b"9" * 400, "a number is required"),
        (b"1/3", b"1e999999999", "a number is required"),
        (b'{ "silent" "send" } { "silent" "send" }', b"99999 99999", "describes tables of"),
        (b'{ "silent" "send" } { "silent" "send" }', b"2 \xc2\xb2", "a number below"),
        (b'{ "silent" "send" } { "silent" "send" }', b"2 " + b"9" * 5000, "a number below"),
        (b'"Ada" "Bo"', b'"x" ' * 40, "40 players; at most"),
    ],
)
def test_a_strategic_form_that_would_take_too_much_is_refused(old, new, problem, tmp_path):
    assert old in NFG
    (tmp_path / "game.nfg").write_bytes(NFG.replace(old, new))
    with pytest.raises(FileError, match=problem) as told, at_most(LOAD_SECONDS):
        read_nfg(tmp_path / "game.nfg")
    assert str(tmp_path) in str(told.value)


TABLE = "quantity,step,state,action of Ada,next_state,name,value\n"


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["horizon,,,,,,1e9"], "a whole number of at least 1"),
        (["horizon,,,,,,2.5"], "a whole number of at least 1"),
        (["horizon,,,,,,0"], "a whole number of at least 1"),
        (["horizon,,,,,,999999999", "reward,7,s,a,,Ada,1"], "describes tables of"),
        (["horizon,,,,,,2", "reward,²,s,a,,Ada,1"], "step is '²'"),
        (["horizon,,,,,,2", "reward," + "9" * 400 + ",s,a,,Ada,1"], "step is"),
        (["horizon,,,,,,2", "reward,,s,a,,Ada,1e400"], "a number is required"),
        (["horizon,,,,,,2", "reward,,s,a,,Ada," + "9" * 400], "a number is required"),
        (["horizon,,,,,,2", "reward,,s"], "there are 3 fields; the first line names 7"),
        (["horizon,,,,,,2,8,9"], "there are 9 fields; the first line names 7"),
        (["horizon,,,,,,2", *(f"initial,,s{i},,,,0" for i in range(3000))], "describes tables of"),
        (["horizon,,,,,,2", "initial,,t,,,,1"], "initial sums to 2"),
    ],
)
def test_a_long_table_that_would_take_too_much_is_refused(lines, problem, tmp_path):
    path = tmp_path / "game.csv"
    path.write_text(TABLE + "\n".join(["initial,,s,,,,1", "transition,,s,a,s,,1", *lines]))
    with pytest.raises(CMPGError, match=problem) as told, at_most(LOAD_SECONDS):
        read_table(path)
    assert str(path) in str(told.value)


def test_columns_of_a_long_table_are_different_and_not_too_many(tmp_path):
    path = tmp_path / "game.csv"
    path.write_text(TABLE.replace("name", "name,name") + "horizon,,,,,,,1")
    with pytest.raises(FileError, match="two columns of the same name"):
        read_table(path)
    path.write_text(TABLE.replace("action of Ada", ",".join(f"action of {i}" for i in range(40))))
    with pytest.raises(FileError, match="40 agents"):
        read_table(path)


def test_a_network_has_no_more_nodes_than_its_links_can_join(tmp_path):
    path = tmp_path / "city_net.tntp"
    data = BY_NAME["network"].seeds()[0]
    head = next(line for line in data.splitlines() if b"NUMBER OF NODES" in line)
    path.write_bytes(data.replace(head, b"<NUMBER OF NODES> 1000000000000"))
    with pytest.raises(FileError, match=r"line 2: <NUMBER OF NODES> is 1000000000000; \d+ links can join"):
        read_network(path)


def test_boundaries_beyond_all_agents_are_alike():
    classes = cmpg.games.LargestCount((2, 1e100))
    assert classes.of(np.array([[2, 1], [3, 0]])).tolist() == [0, 1]
    assert classes.boundaries[0] == 2
