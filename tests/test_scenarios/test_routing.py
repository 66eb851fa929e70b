"""Routing: against brute force on the joint state, by hand, in a real city, and what is refused."""

from itertools import pairwise

import numpy as np
import pytest
from by_brute_force import DATA, assert_agrees, needs_data

import cmpg
from cmpg.errors import FileError, GameError
from cmpg.policy import JointPolicy
from cmpg.scenarios.platoon_routing import routing, routing_city
from cmpg.scenarios.readers.tntp import read_network
from cmpg.scenarios.samples import sample_file
from cmpg.scenarios.traffic_assignment import Roads
from command_line import cmpg as command

TOWN = """<NUMBER OF ZONES> 3
<NUMBER OF NODES> 4
<FIRST THRU NODE> 1
<NUMBER OF LINKS> 5
<END OF METADATA>
1 2 3000 1 2 0.15 4 ;
1 4 6000 1 3 0.5 2 ;
4 3 4000 1 1 0 1 ;
2 3 3000 1 2 0.15 4 ;
3 1 3000 1 2 0.15 4 ;
"""
DEMAND = "<NUMBER OF ZONES> 3\n<END OF METADATA>\nOrigin 1\n1 : 5; 3 : 70;\nOrigin 2\n3 : 30; 1 : 1;\n"
LINKS = {(1, 1): (1, 2, 3000, 2, 0.15, 4), (1, 2): (1, 4, 6000, 3, 0.5, 2), (4, 1): (4, 3, 4000, 1, 0, 1),
         (2, 1): (2, 3, 3000, 2, 0.15, 4), (3, 1): (3, 1, 3000, 2, 0.15, 4)}  # fmt: skip


@pytest.fixture
def town(tmp_path):
    def written(network=TOWN, trips=DEMAND):
        (tmp_path / "town_net.tntp").write_text(network)
        (tmp_path / "town_trips.tntp").write_text(trips)
        return {"network": tmp_path / "town_net.tntp", "trips": tmp_path / "town_trips.tntp"}

    return written


def test_routing_is_what_its_definition_says(town):
    both_ways = DEMAND.replace("1 : 1;", "1 : 90;")
    options = {**town(trips=both_ways), "num_agents": 3, "seed": 3, "horizon": 3, "protected": [(1, 2), (2, 3)]}
    city, game = routing_city(**options), routing(**options, limit=1, vehicles=2000, waiting=0.03, late=0.5)
    assert len(set(city.destinations)) == 2

    def step(h, states, actions):
        nodes, moves = [s + 1 for s in states], []
        for node, a, destination in zip(nodes, actions, city.destinations, strict=True):
            moves.append(None if node == destination else LINKS.get((node, a)))
        rewards, ahead = [], []
        for node, move, destination in zip(nodes, moves, city.destinations, strict=True):
            ahead.append(move[1] - 1 if move else node - 1)
            if move:
                _, _, capacity, time, b, power = move
                rewards.append(-time * (1 + b * (2000 * moves.count(move) / capacity) ** power) / 100)
            else:
                rewards.append(0.0 if node == destination else -0.03)
        used = [move for move in moves if move]
        excess = sum(max(used.count(LINKS[key]) - 1, 0) for key in ((1, 1), (2, 1)))
        return rewards, [excess], [(1.0, tuple(ahead))]

    def end(states):
        return [-0.5 * (s + 1 != destination) for s, destination in zip(states, city.destinations, strict=True)]

    assert_agrees(game, start=tuple(origin - 1 for origin in city.origins), step=step, end=end)


def test_platoons_come_from_the_table(town):
    city = routing_city(**town(), num_agents=400, seed=0, horizon=2, protected=[])
    pairs = list(zip(city.origins, city.destinations, strict=True))
    assert set(pairs) <= {(1, 3), (2, 3), (2, 1)}
    assert 0.6 < pairs.count((1, 3)) / 400 < 0.8
    near = routing_city(**town(), num_agents=50, seed=0, horizon=1, protected=[])
    assert set(zip(near.origins, near.destinations, strict=True)) == {(2, 3)}


def test_nodes_below_the_first_through_node_are_only_left_by_those_who_start_there(town):
    closed = TOWN.replace("THRU NODE> 1", "THRU NODE> 3")
    with pytest.raises(FileError, match=r"town_trips.tntp, line 6: .*town_net.tntp has no way from 3 to 2"):
        routing(**town(closed, DEMAND.replace("Origin 2\n3 : 30; 1 : 1;", "Origin 3\n2 : 1;")), protected=[])
    game = routing(**town(closed), num_agents=40, seed=0, protected=[])
    walks = {tuple(member.transition[0].nonzero()[1]) for member in game.agents}
    assert len(walks) == 3


def test_platoons_to_one_place_share_their_tables():
    game, city = routing(num_agents=20), routing_city(num_agents=20)
    first_of = {}
    for i, destination in enumerate(city.destinations):
        first = first_of.setdefault(destination, i)
        assert game.agents[i].reward is game.agents[first].reward
        assert game.agents[i].transition is game.agents[first].transition
    assert 1 < len(first_of) < 20


@pytest.mark.parametrize(
    ("network", "trips", "options", "problem"),
    [
        (TOWN.replace("4 3 4000", "4 1 4000").replace("2 3 3000", "2 1 3000"), DEMAND, {},
         r"town_trips.tntp, line 4: .*town_net.tntp has no way from 1 to 3"),
        (TOWN, DEMAND.replace("ZONES> 3", "ZONES> 9").replace("3 : 30", "9 : 30"), {},
         "line 6: zone 9 is not among the nodes"),
        (TOWN, DEMAND, {"protected": [(2, 1)]}, "town_net.tntp has no link from 2 to 1"),
        (TOWN, DEMAND, {"protected": "10-15"}, "town_net.tntp has no link from 10 to 15"),
        (TOWN, "<NUMBER OF ZONES> 3\n<END OF METADATA>\nOrigin 1\n1 : 5;\n", {}, "has no trip between two nodes"),
        (TOWN.replace("0.5 2 ;", "0.5 900 ;"), DEMAND, {}, "town_net.tntp, line 7: the travel time at a flow of 60000"),
    ],
)  # fmt: skip
def test_a_bad_city_is_refused(town, network, trips, options, problem):
    with pytest.raises(FileError, match=problem):
        routing(**town(network, trips), **({"protected": []} | options))


def test_protected_links_may_be_written_as_text(town):
    city = routing_city(**town(), num_agents=1, protected="1-2, 3 - 1,")
    assert [(city.network.links[e].tail, city.network.links[e].head) for e in city.protected] == [(1, 2), (3, 1)]
    with pytest.raises(GameError, match="protected holds '1to2'"):
        routing_city(**town(), num_agents=1, protected="1to2")


def test_a_network_without_trips_and_trips_without_a_network_are_refused(town):
    files = town()
    for name in ("network", "trips"):
        with pytest.raises(GameError, match="Pass both"):
            routing(**{name: files[name]})
    with pytest.raises(GameError, match="there are 0 agents"):
        routing(num_agents=0)


@pytest.mark.parametrize(
    ("option", "value"),
    [("limit", -1), ("threshold", -0.5), ("waiting", -0.1), ("late", -5), ("vehicles", 0), ("vehicles", -1),
     ("late", np.nan), ("vehicles", np.nan)],
)  # fmt: skip
def test_amounts_that_make_no_sense_are_refused(option, value):
    with pytest.raises(GameError, match=f"^{option} is {value:g}; "):
        routing(num_agents=1, **{option: value})


@needs_data
def test_sixty_platoons_in_sioux_falls():
    files = {"network": DATA / "tntp" / "SiouxFalls_net.tntp", "trips": DATA / "tntp" / "SiouxFalls_trips.tntp"}
    city, game = routing_city(**files, num_agents=60, seed=1), routing(**files, num_agents=60, seed=1)
    assert [game.resource_names[e] for e in city.protected] == ["10→15", "15→10", "10→16", "16→10"]
    assert all(origin != destination for origin, destination in zip(city.origins, city.destinations, strict=True))
    link = read_network(files["network"]).links[city.protected[2]]
    expected = link.free_flow_time * (1 + 0.15 * (3000 * 7 / link.capacity) ** 4) / 100
    assert game.delay[0, city.protected[2], 7] == pytest.approx(expected, rel=1e-14)
    waiting = np.zeros(game.policy_shapes[0])
    waiting[..., 0] = 1.0
    position = game.at(JointPolicy((waiting,) * 60))
    np.testing.assert_allclose(position.values, -(8 * 0.01 + 0.60), rtol=1e-14)
    assert position.costs.tolist() == [0.0]


def test_no_link_is_protected_unless_it_is_named(town):
    assert routing_city(**town(), num_agents=2).protected == ()
    assert not routing(**town(), num_agents=2).load_costs.any()
    assert len(routing_city(num_agents=2).protected) == 2  # the sample has its bridge


@needs_data
def test_the_bridges_of_sioux_falls_are_protected():
    files = {"network": DATA / "tntp" / "SiouxFalls_net.tntp", "trips": DATA / "tntp" / "SiouxFalls_trips.tntp"}
    city = routing_city(**files, num_agents=2)
    ends = [(city.network.links[e].tail, city.network.links[e].head) for e in city.protected]
    assert ends == [(10, 15), (15, 10), (10, 16), (16, 10)]


def test_static_platoons_choose_a_path_once_and_meet_on_every_link(town):
    game = routing(**town(), mode="static", vehicles=10)
    assert game.num_agents == 10  # 70 from 1 to 3, 30 from 2 to 3, and 1 from 2 to 1, which is less than a platoon
    assert game.horizon == 1
    assert game.agents[0] is game.agents[1]
    assert game.names.agent(0) == "1 to 3, platoon 0"
    ways = game.names.all_actions(0, game.agents[0].num_actions)
    assert set(ways) <= {"1→2→3", "1→4→3"}
    everybody = JointPolicy(tuple(np.eye(shape[2])[np.zeros((1, 1), int)] for shape in game.policy_shapes))
    position = game.at(everybody)
    flows = {link: 10 * sum(position.usage(i)[0, e] for i in range(10)) for e, link in enumerate(game.resource_names)}
    times = {"1→2": (2, 3000, 0.15, 4), "2→3": (2, 3000, 0.15, 4), "1→4": (3, 6000, 0.5, 2), "4→3": (1, 4000, 0, 1)}
    nodes = ways[0].split("→")
    used = [times[f"{tail}→{head}"] + (flows[f"{tail}→{head}"],) for tail, head in pairwise(nodes)]
    paid = sum(t * (1 + b * (flow / capacity) ** power) for t, capacity, b, power, flow in used) / 100
    assert position.values[0] == pytest.approx(-paid)


def test_static_routing_solves_to_an_equilibrium_of_traffic():
    """On the sample no used path is slower than another by more than a platoon can change."""
    game = routing(mode="static", vehicles=50)
    result = cmpg.solve(game)
    assert result.certified
    position = game.at(result.policy)
    flows = 50 * sum(position.usage(i)[0] for i in range(game.num_agents))
    with sample_file("sample_net.tntp") as path:
        roads = Roads.of(read_network(path))
    times, later = roads.times(flows), roads.times(flows + 50)
    for agent, table in zip(game.agents[::7], result.policy.tables[::7], strict=True):
        taken = agent.uses[0].toarray()[int(table[0, 0].argmax())]
        others = agent.uses[0].toarray()
        assert (others * np.where(taken, times, later)).sum(axis=1).min() >= taken @ times - 1e-6


@needs_data
def test_static_sioux_falls_comes_within_a_hundredth_of_a_percent_of_the_best_known_beckmann_value():
    tntp = DATA / "tntp"
    known = {}
    for line in (tntp / "SiouxFalls_flow.tntp").read_text().splitlines()[1:]:
        if len(line.split()) >= 3:
            tail, head, volume = line.split()[:3]
            known[f"{tail}→{head}"] = float(volume)
    game = routing(network=tntp / "SiouxFalls_net.tntp", trips=tntp / "SiouxFalls_trips.tntp", mode="static")
    roads = Roads.of(read_network(tntp / "SiouxFalls_net.tntp"))
    best = roads.beckmann(np.array([known[name] for name in game.resource_names]))
    result = cmpg.solve(game)
    assert result.certified
    position = game.at(result.policy)
    flows = 100 * sum(position.usage(i)[0] for i in range(game.num_agents))
    assert game.num_agents == 3606
    assert 0 <= roads.beckmann(flows) / best - 1 < 1e-4


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"mode": "dynamic"}, "mode is 'dynamic'"),
        ({"mode": "static", "vehicles": 0.0}, "vehicles is 0"),
        ({"mode": "static", "vehicles": 1e9}, "at most 70 vehicles between two nodes"),
    ],
)
def test_what_is_wrong_with_a_static_city_is_told(town, options, told):
    with pytest.raises((GameError, FileError), match=told):
        routing(**town(), **options)


def test_static_routing_is_drawn_on_its_map(tmp_path):
    told = command("solve", "routing", "--mode", "static", "--vehicles", 2000, "--out", tmp_path / "run")
    assert told.code == 0, told.err
    assert cmpg.load_run(tmp_path / "run").drawing is not None
    shown = command("show", tmp_path / "run").out
    assert "travel time (min)" in shown
