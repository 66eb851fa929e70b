"""Teams from `.dpomdp` files: every way to write them, against tables by hand, and against known values."""

from pathlib import Path

import numpy as np
import pytest

from cmpg.cmdp.planning import plan
from cmpg.equilibrium.certificate import certify
from cmpg.equilibrium.solve import solve
from cmpg.errors import FileError, GameError
from cmpg.scenarios import team
from cmpg.scenarios.readers.dpomdp import read_dpomdp
from command_line import cmpg

DATA = Path(__file__).parents[3] / "shared" / "data" / "madp"

HEAD = """# two agents, with two and three actions
agents: 2
discount: 0.9
values: reward
states: a b
start: b
actions:
x y
3
observations:
2
u v
"""
STAY = "T: * :\nidentity\n"


@pytest.fixture
def write(tmp_path):
    def writer(text):
        path = tmp_path / "problem.dpomdp"
        path.write_text(text)
        return path

    return writer


def test_names_and_sizes_are_those_of_the_file(write):
    found = read_dpomdp(write(HEAD + STAY))
    assert found.agent_names == ("agent 0", "agent 1")
    assert found.state_names == ("a", "b")
    assert found.action_names == (("x", "y"), ("action 0", "action 1", "action 2"))
    assert found.transition.shape == (2, 2, 3, 2)
    assert found.reward.shape == (2, 2, 3)
    assert found.discount == 0.9


@pytest.mark.parametrize(
    ("start", "initial"),
    [
        ("start: b", [0, 0, 1, 0]),
        ("start: 2", [0, 0, 1, 0]),
        ("start: uniform", [0.25] * 4),
        ("start:\nuniform", [0.25] * 4),
        ("start:\n0.1 0.2\n0.3 0.4", [0.1, 0.2, 0.3, 0.4]),
        ("start: 0.1 0.2 0.3 0.4", [0.1, 0.2, 0.3, 0.4]),
        ("start include: b 0", [0.5, 0, 0.5, 0]),
        ("start exclude: b", [1 / 3, 1 / 3, 0, 1 / 3]),
    ],
)
def test_every_way_to_start(write, start, initial):
    text = HEAD.replace("states: a b", "states: p q b r").replace("start: b", start)
    assert read_dpomdp(write(text + STAY)).initial == pytest.approx(initial)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("T: x 1 : a : b : 1\nT: x 1 : a : a : 0\n", {(0, 0, 1): [0, 1]}),
        ("T: x 1 : a :\n0.25 0.75\n", {(0, 0, 1): [0.25, 0.75]}),
        ("T: x 1 : a :\nuniform\n", {(0, 0, 1): [0.5, 0.5]}),
        ("T: x 1 :\n0.25 0.75\n1 0\n", {(0, 0, 1): [0.25, 0.75], (1, 0, 1): [1, 0]}),
        ("T: 1 :\nuniform\n", {(0, 0, 1): [0.5, 0.5], (1, 0, 1): [0.5, 0.5]}),  # joint action 1 is x with action 1
        ("T: x * : * :\nuniform\n", {(s, 0, a): [0.5, 0.5] for s in range(2) for a in range(3)}),
        ("T: 0 2 : 0 : 0 : 0.3\nT: 0 2 : 0 : 1 : 0.7\n", {(0, 0, 2): [0.3, 0.7]}),
        ("T: * :\nuniform\nT: * :\nidentity\n", {}),  # what comes later replaces
    ],
)
def test_every_way_to_write_a_transition(write, rows, expected):
    found = read_dpomdp(write(HEAD + STAY + rows))
    by_hand = np.zeros((2, 2, 3, 2))
    by_hand[[0, 1], :, :, [0, 1]] = 1.0
    for entry, row in expected.items():
        by_hand[entry] = row
    assert found.transition == pytest.approx(by_hand)


def test_rewards_are_averages_over_what_they_depend_on(write):
    text = f"""{HEAD}T: * :
uniform
O: * :
uniform
O: x 0 : a :
0.1 0.2 0.3 0.4
R: * : * : * : * : 5
R: x 0 : a : * : * : 1
R: x 1 : a : b : * : 3
R: x 2 : a : a : 1 v : 7
R: y 0 : a : b :
1 2 3 4
R: y 1 : b :
1 1 1 1
2 2 2 2
R: x 0 : b : a : 0 * : -10
R: y 2 : b : b : 0 u : 100
R: y 2 : b : * : * : 6
"""
    reward = read_dpomdp(write(text)).reward
    assert reward[0, 0, 0] == 1
    assert reward[0, 0, 1] == pytest.approx((5 + 3) / 2)
    assert reward[0, 0, 2] == pytest.approx((5 + (3 * 5 + 7) / 4) / 2)
    assert reward[0, 1, 0] == pytest.approx((5 + 2.5) / 2)
    assert reward[1, 1, 1] == pytest.approx((1 + 2) / 2)
    assert reward[1, 0, 0] == pytest.approx((5 + (0.1 + 0.2) * -10 + (0.3 + 0.4) * 5) / 2)
    assert reward[1, 1, 2] == 6  # a later line replaces what depended on the observation
    costs = read_dpomdp(write(text.replace("values: reward", "values: cost"))).reward
    assert costs == pytest.approx(-reward)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("agents: 2\n", "", "has no line `agents:`"),
        ("agents: 2\n", "agents: 2\nagents: 2\n", "line 3: `agents:` is given a second time"),
        ("agents: 2\n", f"agents: {10**20 - 1}\n", "line 2: there are 99999999999999999999 agents; at least one, and"),
        ("agents: 2\n", "hello\nagents: 2\n", "line 2: 'hello' comes before the first keyword"),
        ("values: reward", "values: joy", "line 4: `values:` must be reward or cost"),
        ("discount: 0.9", "discount: much", "line 3: discount is 'much'"),
        ("states: a b", "states: a a", "line 5: two states have the same name"),
        ("states: a b", "states: 99999", "at most 3e\\+06 are read"),
        ("states: a b", "states: 0", "there are 0 states"),
        ("start: b", "start: c", "line 6: there is no state 'c'; there are 2: a, b"),
        ("start: b", "start:\n0.5", "line 6: there are 1 words; 2 numbers"),
        ("start: b", "start:\n0 0", "no state has a positive probability"),
        ("x y\n3\n", "x y\n", "line 7: `actions:` must be followed by one line for each of 2 agents; there are 1"),
        (STAY, "T: z 0 :\nidentity\n", "line 13: there is no action 'z'"),
        (STAY, "T: x :\nidentity\n", "line 13: 'x' is not a joint action: one word for each of 2 agents"),
        (STAY, "T: * : a : b : c : 1\n", "line 13: there are 4 fields after the joint action; 0, 1 or 3 are required"),
        (STAY, "T: * : a : b : one\n", "line 13: the probability is 'one'"),
        (STAY, "T: * :\n1 0 0\n", "line 14: there are 3 words; 2 × 2 numbers, or a word such as uniform"),
        (STAY, "T: * : * : a : 1\n0.5 0.5\n", "line 14: this line belongs to nothing"),
        (STAY, "", "after 'x action 0' in state 'a' the probabilities of the next state sum to 0"),
        (STAY, "T: * : * : a : 2\nT: * : * : b : -1\n", "one of them is negative"),
        (STAY, STAY + "R: x 0 : a : b : 3 v : 1\n", "line 15: there is no observation '3'"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(write, old, new, problem):
    text = HEAD + STAY
    assert old in text
    with pytest.raises(FileError, match=problem):
        read_dpomdp(write(text.replace(old, new, 1)))


def test_the_sample_is_solved_and_its_plan_is_nash():
    game = team()
    best = plan(game.joint_cmdp(), np.zeros(0))
    policy = game.split(best.actions)
    assert certify(game, policy, np.zeros((2, 0))).proves(1e-6)
    assert solve(game).values[0] <= game.at(policy).values[0] + 1e-6
    assert game.potential_proof() is not None


def test_a_discount_of_the_file_is_used_without_a_horizon(write):
    assert team(horizon=None).discount == 0.95
    endless = write((HEAD + STAY).replace("0.9", "1"))
    with pytest.raises(GameError, match="has the discount 1, by which a sum without end is not finite"):
        team(file=endless, horizon=None)
    assert team(file=endless, horizon=3).horizon == 3


def test_the_command_reads_a_file(write):
    path = write(HEAD + STAY + "R: * : a : * : * : 1\n")
    assert cmpg("solve", "team", "--file", path, "--horizon", 2).code == 0
    assert "problem.dpomdp, line 13" in cmpg("solve", "team", "--file", write(HEAD + "T: z 0 :\nidentity\n")).err


PLANNED = {
    "2generals": 1.625,
    "GridSmall": 2.8647,
    "Mars": 10.87,
    "boxPushingUAI07": 106.43,
    "broadcastChannel": 3.9747,
    "dectiger": 80.0,
    "recycling": 14.0696,
    "relay4": 47.0,
}


@pytest.mark.skipif(not DATA.is_dir(), reason=f"NOT TESTED ON REAL DATA: there is no folder {DATA}")
@pytest.mark.parametrize("name", PLANNED)
def test_plans_of_public_problems_are_worth_what_is_known_and_are_nash(name):
    """Values of boxPushingUAI07 and Mars are published; those of dectiger (20 in each of 4 steps) are plain."""
    game = team(file=DATA / f"{name}.dpomdp", horizon=4)
    policy = game.split(plan(game.joint_cmdp(), np.zeros(0)).actions)
    assert game.at(policy).values == pytest.approx([PLANNED[name]] * 2, abs=0.005)
    assert certify(game, policy, np.zeros((2, 0))).proves(1e-6)
