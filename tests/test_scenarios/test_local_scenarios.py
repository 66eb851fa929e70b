"""The grid world with policies on the own cell, every local scenario on the sample files, and bad files."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from checks import sample_files

from cmpg import scenarios as room
from cmpg.equilibrium.certificate import certify
from cmpg.equilibrium.solve import solve
from cmpg.errors import GameError
from cmpg.policy import JointPolicy
from cmpg.scenarios import SCENARIOS, scenario
from cmpg.scenarios.paper import MOVES as GRID_MOVES
from cmpg.scenarios.paper import grid_world, grid_world_local
from cmpg.scenarios.readers.movingai import read_map
from cmpg.scenarios.robot_fleet import robots
from command_line import cmpg


def lifted(policy):
    """The same behaviour, as policies on the pair of cells."""
    first = np.repeat(policy[0][:, :, None], 16, axis=2).reshape(6, 256, 4)
    second = np.repeat(policy[1][:, None], 16, axis=1).reshape(6, 256, 4)
    return JointPolicy((first, second))


def walk(*routes):
    """The policy that mixes routes (chance, moves), as the mixture of their occupancies."""
    actions, occupancy = list(GRID_MOVES), np.zeros((6, 16, 4))
    for chance, letters in routes:
        x = y = 0
        for h, letter in enumerate(f"{letters}U"):
            name = next(action for action in actions if action[0].upper() == letter)
            occupancy[h, 4 * y + x, actions.index(name)] += chance
            x, y = min(max(x + GRID_MOVES[name][0], 0), 3), min(max(y + GRID_MOVES[name][1], 0), 3)
    mass = occupancy.sum(axis=2, keepdims=True)
    return np.where(mass > 0, occupancy / np.where(mass > 0, mass, 1), 0.25)


def test_the_papers_grid_policy_is_worth_23_1_and_is_nash():
    game = grid_world_local()
    policy = JointPolicy((walk((1.0, "RRRUU")), walk((0.1, "RURUR"), (0.9, "UURRR"))))
    position = game.at(policy)
    assert position.values.sum() == pytest.approx(23.1, abs=1e-12)
    assert position.costs[0] == pytest.approx(0.1, abs=1e-12)
    certificate = certify(grid_world_local(threshold=0.1 + 1e-12), policy, [[1.0], [1.0]])
    assert certificate.feasible
    assert certificate.gains.max() < 1e-9


def test_own_and_common_rewards_agree_on_every_deviation():
    local, joint, rng = grid_world_local(), grid_world(), np.random.default_rng(4)
    for _ in range(3):
        policy = local.random_policy(rng=rng)
        here, there = local.at(policy), joint.at(lifted(policy))
        np.testing.assert_allclose(there.values, here.values.sum(), rtol=1e-12)
        np.testing.assert_allclose(there.costs, here.costs, rtol=1e-12)
        for i in range(2):
            moved = policy.replace(i, local.random_policy(rng=rng)[i])
            gain = local.at(moved).values[i] - here.values[i]
            common_gain = joint.at(lifted(moved)).values[i] - there.values[i]
            assert gain == pytest.approx(common_gain, abs=1e-11)


def test_a_cell_outside_the_grid_is_refused():
    with pytest.raises(GameError, match=r"cell \(3, 2\) is not on the grid of 3 columns"):
        grid_world_local(width=3)


def test_the_sample_files_are_those_of_their_script(tmp_path):
    folder = Path(room.__file__).parent / "samples"
    sample_files.main([str(tmp_path)])
    for name in sample_files.FILES:
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes(), name
    assert read_map(folder / "sample.map").width == 12


@pytest.mark.parametrize("name", ["charging", "robots", "routing", "grid-world-local"])
def test_every_scenario_runs_with_nothing_else(name):
    assert name in SCENARIOS
    game = scenario(name).build()
    assert game.num_agents >= 2
    assert game.information == "own-state policies"
    expected = {"charging": (24, 0.5), "robots": (60, 0.1), "routing": (8, 0.5), "grid-world-local": (6, 0.1)}
    assert (game.horizon, game.thresholds[0]) == expected[name]


@pytest.mark.parametrize("name", ["charging", "routing"])
def test_the_samples_need_their_constraint_and_are_solved(name):
    selfish = solve(scenario(name).build(threshold=1e6), epsilon=1e-4)
    assert selfish.certified
    assert selfish.costs[0] > 1.0
    bounded = solve(scenario(name).build(), epsilon=1e-4)
    assert bounded.certified
    assert 0.4 < bounded.costs[0] <= 0.5


def test_the_robots_of_the_sample_are_solved():
    result = solve(robots(num_agents=3, horizon=30), epsilon=1e-3)
    assert result.certified
    assert result.costs[0] <= 0.1


# The command and files that are not what they should be

SESSIONS = "arrival,departure,requested_energy (kWh),delivered_energy (kWh),station_id,session_id\n"
STAY = "2024-03-12 08:00,2024-03-12 09:00,9,5,P,a\n"
HEAD = "type octile\nheight 2\nwidth 3\nmap\n"
NETWORK = """<NUMBER OF ZONES> 3
<NUMBER OF NODES> 3
<NUMBER OF LINKS> 2
<END OF METADATA>
1 2 3000 1 2 0.15 4 ;
2 1 3000 1 2 0.15 4 ;
"""
TRIPS = "<NUMBER OF ZONES> 3\n<END OF METADATA>\nOrigin 1\n2 : 5;\n"
LOADS = {
    "format": "cmpg-game", "version": 1, "form": "local", "horizon": 2, "num_actions": [1, 1], "thresholds": [1],
    "delay": [[[0, 1, 2]]], "load_cost": [[[[0, 0, 1]]]], "initial_0": [1], "reward_0": [[[0]]],
    "transition_0_indptr": [0, 1], "transition_0_indices": [0], "transition_0_data": [1],
    "use_0_indptr": [0, 1], "use_0_indices": [0], "initial_1": [1], "like": [0, 0],
}  # fmt: skip


def game_file(**changes):
    return {"game.json": json.dumps(LOADS | changes)}


@pytest.mark.parametrize(
    ("files", "words", "answer"),
    [
        ({"s.csv.gz": SESSIONS + STAY}, "charging --sessions s.csv.gz", "s.csv.gz is not the gzip file"),
        ({"s.csv": gzip.compress(SESSIONS.encode())}, "charging --sessions s.csv", "s.csv is compressed"),
        ({"s.csv": HEAD + "...\n...\n"}, "charging --sessions s.csv", "s.csv, line 1: the columns are: type octile"),
        ({"a.map": SESSIONS + STAY}, "robots --map a.map", "a.map, line 1: 'arrival,departure"),
        ({"a.map": b"\x89PNG\r\n"}, "robots --map a.map", "a.map, line 1: byte 1 is not UTF-8"),
        ({"a.map": HEAD + "...\n...\n", "a.scen": HEAD}, "robots --map a.map --scen a.scen --agents 1",
         "a.scen, line 1: 'type octile' is not the head"),
        ({"n.tntp": TRIPS, "t.tntp": TRIPS}, "routing --network n.tntp --trips t.tntp",
         "n.tntp does not say <NUMBER OF NODES>"),
        ({"n.tntp": NETWORK, "t.tntp": NETWORK}, "routing --network n.tntp --trips t.tntp",
         "t.tntp, line 5: '1 2 3000 1 2 0.15 4 ;' comes before the first `Origin`"),
        ({"game.npz": SESSIONS}, "game.npz", "game.npz"),
        ({"s.csv": SESSIONS + STAY}, "charging --sessions s.csv --day 2024-03-13",
         "s.csv has no session that arrived on 2024-03-13"),
        ({"s.csv": SESSIONS + STAY + "2024-03-12 09:00,2024-03-12 08:00,9,5,P,b\n"}, "charging --sessions s.csv",
         "s.csv, line 3: the stay ends"),
        ({"n.tntp": NETWORK, "t.tntp": TRIPS + "3 : 7;\n"}, "routing --network n.tntp --trips t.tntp --protected 1-2",
         "t.tntp, line 5: n.tntp has no way from 1 to 3"),
        ({"a.map": HEAD + "...\n.x.\n"}, "robots --map a.map", "a.map, line 6: column 2 holds 'x'"),
        ({"a.map": HEAD + "...\n@..\n", "a.scen": "version 1\n0 a.map 3 2 2 0 1 1 2\n0 a.map 3 2 0 1 0 0 1\n"},
         "robots --map a.map --scen a.scen --agents 2", "a.scen, line 3: the start (0, 1) is not a free cell"),
        ({"a.map": HEAD + ".@.\n@..\n"}, "robots --map a.map --agents 5 --seed 1",
         "a.map has 4 free cells; 5 agents need 10 distinct ones"),
        ({}, "charging --capacity -1", "capacity is -1; a number of at least 0 is required"),
        ({}, "charging --shortfall -3", "shortfall is -3; a number of at least 0 is required"),
        ({}, "robots --threshold -1", "threshold is -1; a number of at least 0 is required"),
        ({}, "routing --late -5", "late is -5; a number of at least 0 is required"),
        ({}, "routing --vehicles -1", "vehicles is -1; a platoon needs a positive number of them"),
        (game_file(delay=[[[0, 1]]]), "game.json", "game.json: delay has 2 entries per resource"),
        (game_file(load_cost=[[[[0, 0, 1, 3]]]]), "game.json", "game.json: load_costs has 4 entries per resource"),
    ],
)  # fmt: skip
def test_the_command_refuses_bad_files_with_code_2(tmp_path, monkeypatch, files, words, answer):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.chdir(tmp_path)
    ran = cmpg("solve", *words.split(), "--out", "run")
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert answer in ran.err
    assert not (tmp_path / "run").exists()


def test_the_good_neighbours_of_those_files_are_solved(tmp_path, monkeypatch):
    """What is refused above is refused for the reason that is named."""
    good = {
        "s.csv": SESSIONS + STAY,
        "a.map": HEAD + "...\n...\n",
        "a.scen": "version 1\n0 a.map 3 2 2 0 1 1 2\n0 a.map 3 2 0 1 0 0 1\n",
        "n.tntp": NETWORK,
        "t.tntp": TRIPS,
        **game_file(),
    }
    for name, content in good.items():
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    for words in (
        "charging --sessions s.csv --day 2024-03-12",
        "robots --map a.map --scen a.scen --agents 2 --horizon 6",
        "routing --network n.tntp --trips t.tntp --agents 3 --protected 1-2",
    ):
        assert cmpg("solve", *words.split()).code == 0, words
    ran = cmpg("check", "game.json", "--json")
    assert (json.loads(ran.out)["agents"], ran.code) == (2, 1)  # both always meet: a cost of 2, and 1 is allowed
