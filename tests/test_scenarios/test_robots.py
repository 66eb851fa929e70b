"""Robots: against brute force on the joint state, by hand, on a real map, and what is refused."""

from collections import deque

import numpy as np
import pytest
from by_brute_force import DATA, assert_agrees, each_alone, needs_data

from cmpg.equilibrium.solve import solve
from cmpg.errors import FileError, GameError
from cmpg.policy import JointPolicy
from cmpg.scenarios.robot_fleet import robots, robots_game, robots_world
from oracles.conflict_based_search import least_sum_of_costs

ROOM = ["..@", ".T."]


@pytest.fixture
def room(tmp_path):
    def written(pairs, rows=ROOM):
        head = f"height {len(rows)}\nwidth {len(rows[0])}\nmap\n"
        (tmp_path / "room.map").write_text(head + "\n".join(rows))
        lines = [f"0\troom.map\t{len(rows[0])}\t{len(rows)}\t{pair}\t1" for pair in pairs]
        (tmp_path / "room.scen").write_text("\n".join(["version 1", *lines]))
        return {"map": tmp_path / "room.map", "scen": tmp_path / "room.scen"}

    return written


@pytest.mark.parametrize("edges", [True, False])
def test_robots_are_what_their_definition_says(room, edges):
    rows = ["...", ".@."]
    files = room(["0\t0\t2\t0", "2\t1\t0\t0"], rows)
    game = robots(**files, num_agents=2, horizon=4, success=0.7, edges=edges)
    cells = [(0, 0), (1, 0), (2, 0), (0, 1), (2, 1)]
    moves = [(0, 0), (0, -1), (1, 0), (0, 1), (-1, 0)]
    ends = ["(0, 0)-(1, 0)", "(0, 0)-(0, 1)", "(1, 0)-(2, 0)", "(2, 0)-(2, 1)"] if edges else []
    assert game.resource_names == (*(f"cell {cell}" for cell in cells), *(f"edge {each}" for each in ends))

    def step(h, states, actions):
        outcomes, tried = [], []
        for s, a in zip(states, actions, strict=True):
            target = (cells[s][0] + moves[a][0], cells[s][1] + moves[a][1])
            moving = target in cells and a
            outcomes.append([(0.7, cells.index(target)), (0.3, s)] if moving else [(1.0, s)])
            tried.append({s, cells.index(target)} if moving else {s, -1 - len(tried)})
        goals = (2, 0)
        rewards = [-float(s != goal) for s, goal in zip(states, goals, strict=True)]
        crossings = 0.49 * (tried[0] == tried[1]) * edges
        return rewards, [float(states[0] == states[1]) + crossings], each_alone(outcomes)

    assert_agrees(game, start=(0, 4), step=step, end=lambda states: [0.0, 0.0])


def test_three_robots_on_a_cell_are_three_pairs(room):
    rows = ["....", "...."]
    pairs = [f"{x}\t0\t{x}\t1" for x in range(3)]
    game = robots(**room(pairs, rows), num_agents=3, horizon=3, success=1.0)
    tables = [np.zeros((3, 8, 5)) for _ in range(3)]
    for table, action in zip(tables, (2, 0, 4), strict=True):
        table[0, :, action] = 1.0
        table[1:, :, 0] = 1.0
    assert game.at(JointPolicy(tuple(tables))).costs.tolist() == [6.0]


def test_robots_share_the_map(room):
    game = robots(**room(["0\t0\t0\t1", "1\t0\t0\t0"]), num_agents=2)
    first, second = game.agents
    assert first.transition is second.transition
    assert first.uses is second.uses


@pytest.mark.parametrize(
    ("pairs", "options", "problem"),
    [
        (["0\t0\t0\t1", "2\t0\t0\t0"], {"num_agents": 2}, r"room.scen, line 3: the start \(2, 0\) is not a free cell"),
        (["0\t0\t1\t1"], {"num_agents": 1}, r"room.scen, line 2: the goal \(1, 1\) is not a free cell"),
        (["0\t5\t0\t1"], {"num_agents": 1}, r"room.scen, line 2: the start \(0, 5\) is not a free cell"),
        (["0\t0\t2\t1"], {"num_agents": 1}, r"room.scen, line 2: the goal \(2, 1\) cannot be reached"),
        (
            ["1\t0\t0\t1"],
            {"num_agents": 1, "horizon": 2},
            r"line 2: the goal \(0, 1\) cannot be reached .* within 2 steps",
        ),
        (["0\t0\t0\t1", "0\t0\t1\t0"], {"num_agents": 2}, r"line 3: the start \(0, 0\) is that of line 2 too"),
        (["0\t0\t0\t1", "1\t0\t0\t1"], {"num_agents": 2}, r"line 3: the goal \(0, 1\) is that of line 2 too"),
        (["0\t0\t0\t1"], {"num_agents": 2}, "room.scen has 1 pairs; 2 agents need as many"),
    ],
)
def test_bad_starts_and_goals_are_refused(room, pairs, options, problem):
    with pytest.raises(FileError, match=problem):
        robots(**room(pairs), **options)


def test_pairs_for_another_map_are_refused(room):
    files = room(["0\t0\t0\t1"])
    files["map"].write_text("height 1\nwidth 2\nmap\n..\n")
    with pytest.raises(FileError, match=r"line 2: the pair is for a map of 3 × 2 cells; .* has 2 × 1"):
        robots(**files, num_agents=1)


def test_more_robots_than_the_map_can_hold_are_refused(room):
    path = room([])["map"]
    with pytest.raises(FileError, match=r"room.map has 4 free cells; 5 agents need 10 distinct ones"):
        robots(map=path, num_agents=5)
    with pytest.raises(FileError, match=r"room.map: only 1 of 2 robots found a goal of their own within 60 steps"):
        robots(map=path, num_agents=2)


@pytest.mark.parametrize(
    ("options", "problem"),
    [({"scen": "a.scen"}, "there is no map"),
     ({"num_agents": 0}, "there are 0 agents"), ({"horizon": 0}, "and 0 steps"),
     ({"success": 1.5}, "success is 1.5"), ({"threshold": -1}, "threshold is -1; a number of at least 0"),
     ({"threshold": np.nan}, "threshold is nan")],
)  # fmt: skip
def test_bad_options_of_robots_are_refused(options, problem):
    with pytest.raises(GameError, match=problem):
        robots(**options)


def distances(free, start):
    found, waiting = {start: 0}, deque([start])
    while waiting:
        x, y = waiting.popleft()
        for cell in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
            if cell in free and cell not in found:
                found[cell] = found[x, y] + 1
                waiting.append(cell)
    return found


def assert_good_draw(world, horizon):
    free = set(world.cells)
    assert len({*world.starts, *world.goals}) == len(world.starts) + len(world.goals)
    for start, goal in zip(world.starts, world.goals, strict=True):
        assert 0 < distances(free, start)[goal] < horizon


def test_a_draw_is_distinct_in_time_and_repeatable():
    world = robots_world(seed=5, num_agents=20, horizon=8)
    assert_good_draw(world, 8)
    assert world == robots_world(seed=5, num_agents=20, horizon=8)
    assert world != robots_world(seed=6, num_agents=20, horizon=8)


@needs_data
def test_thirty_robots_on_a_real_map():
    path = DATA / "maps" / "random-32-32-20.map"
    world = robots_world(map=path, num_agents=30, seed=1)
    assert_good_draw(world, 60)
    game = robots(map=path, num_agents=30, seed=1)
    assert (game.num_agents, game.num_resources, game.horizon) == (30, 819 + 1270, 60)
    assert len({id(member.transition) for member in game.agents}) == 1
    stay = np.zeros(game.policy_shapes[0])
    stay[..., 0] = 1.0
    position = game.at(JointPolicy((stay,) * 30))
    assert position.costs.tolist() == [0.0]
    assert position.values.tolist() == [-60.0] * 30


def walked(game, policy):
    """Where robots go that never slip: [H, n]."""
    rng, world = np.random.default_rng(0), game.stepper()
    states, path = world.begin(1, rng)[:, 0], []
    for h in range(game.horizon):
        path.append(states)
        rows = [np.asarray(table[h, s]) for table, s in zip(policy.tables, states, strict=True)]
        actions = np.array([rng.choice(len(row), p=row) for row in rows])
        stepped = world.step(h, states[:, None], actions[:, None], rng)
        states = stepped.states[:, 0]
        assert stepped.costs.tolist() == [[0.0]]
    return np.array(path)


def assert_nobody_meets(path):
    for here, ahead in zip(path, [*path[1:], path[-1]], strict=True):
        assert len(set(here.tolist())) == len(here)
        moves = {(a, b) for a, b in zip(here.tolist(), ahead.tolist(), strict=True) if a != b}
        assert not moves & {(b, a) for a, b in moves}


def test_robots_that_may_never_collide_neither_meet_nor_trade_places():
    game = robots(num_agents=10, seed=4, horizon=30, threshold=0.0, success=1.0)
    result = solve(game, epsilon=1e-4)
    assert result.certified
    assert_nobody_meets(walked(game, result.policy))


@needs_data
def test_thirty_robots_that_may_never_collide_neither_meet_nor_trade_places():
    game = robots(map=DATA / "maps" / "random-32-32-20.map", num_agents=30, seed=2, threshold=0.0, success=1.0)
    result = solve(game, epsilon=1e-4)
    assert result.certified
    assert_nobody_meets(walked(game, result.policy))


def test_without_edges_robots_in_a_corridor_pass_through_each_other(room):
    files = room(["0\t0\t3\t0", "3\t0\t0\t0"], ["...."])
    free = solve(robots(**files, num_agents=2, horizon=8, threshold=0.0, success=1.0, edges=False))
    assert free.values.tolist() == [-3.0, -3.0]
    hard = solve(robots(**files, num_agents=2, horizon=8, threshold=0.0, success=1.0))
    assert hard.certified
    assert hard.values.tolist() == [-8.0, -8.0]  # there is no way past each other


def test_certified_robots_are_nearly_as_fast_as_conflict_based_search():
    total, best = 0.0, 0
    for seed in range(4):
        world = robots_world(num_agents=6, seed=seed, horizon=30)
        least = least_sum_of_costs(world.cells, world.starts, world.goals, horizon=30)
        result = solve(robots_game(world, horizon=30, threshold=0.0, success=1.0), epsilon=1e-4)
        assert result.certified
        total, best = total - result.values.sum(), best + least
    assert best <= total <= 1.03 * best
