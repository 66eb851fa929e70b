"""The claims about real data: certified, within the budget, unlike selfish play, and proved again from files alone."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from by_brute_force import DATA, needs_data

import cmpg
from cmpg.games.game import Information
from cmpg.scenarios.car_charging import charging
from cmpg.scenarios.platoon_routing import routing
from cmpg.scenarios.robot_fleet import robots
from command_line import cmpg as command

pytestmark = needs_data

SESSIONS = DATA / "acn" / "caltech_2019-05_2019-08.csv.gz"
SIOUX_FALLS = {"network": DATA / "tntp" / "SiouxFalls_net.tntp", "trips": DATA / "tntp" / "SiouxFalls_trips.tntp"}
FLOOR = DATA / "maps" / "random-32-32-20.map"

BUILDERS = {
    "caltech, 2019-06-12": (partial(charging, sessions=SESSIONS, day="2019-06-12"), 46, 1e-6),
    "caltech, 2019-06-14": (partial(charging, sessions=SESSIONS, day="2019-06-14"), 49, 1e-6),
    "sioux falls, 60": (partial(routing, **SIOUX_FALLS, num_agents=60, seed=0), 60, 1e-6),
    "sioux falls, 120": (partial(routing, **SIOUX_FALLS, num_agents=120, seed=0), 120, 1e-6),
    "robots, 30": (partial(robots, map=FLOOR, num_agents=30, seed=1, horizon=60, threshold=0.1), 30, 1e-4),
}
BUDGETS = {"robots, 30": 0.1}


@dataclass(frozen=True, eq=False)
class Solved:
    name: str
    game: cmpg.LocalGame
    epsilon: float
    result: cmpg.Result


@pytest.fixture(scope="module", params=BUILDERS)
def solved(request):
    build, agents, epsilon = BUILDERS[request.param]
    game = build()
    assert game.num_agents == agents
    return Solved(request.param, game, epsilon, cmpg.solve(game, epsilon=epsilon))


def test_real_games_end_certified_within_the_budget(solved):
    assert solved.result.status is cmpg.Status.CERTIFIED, solved.result.message
    proof = solved.result.certificate
    assert proof.feasibility is cmpg.Feasibility.PROVEN
    assert proof.epsilon <= solved.epsilon
    assert proof.information == Information.OWN_STATE
    budget = BUDGETS.get(solved.name, 0.5)
    assert solved.game.thresholds.tolist() == [budget]
    # All of them bind: next to nothing of the budget is left, and it has a price.
    assert 0.9 * budget < proof.costs[0] <= budget
    assert proof.multipliers.max() > 0


def test_selfish_play_costs_more_than_the_budget(solved):
    free = replace(solved.game, thresholds=np.array([1e9]))
    selfish = cmpg.solve(free, epsilon=solved.epsilon)
    assert selfish.certified
    assert selfish.costs[0] > 1.5 * solved.game.thresholds[0]
    # The budget was the only reason not to play so.
    assert not cmpg.certify(solved.game, selfish.policy).feasible


def test_the_loads_of_the_answer_are_those_of_its_usage(solved):
    """The expected load is a sum of chances, and what an agent uses follows from its own table alone."""
    game, policy = solved.game, solved.result.policy
    position = game.at(policy)
    busiest = np.argsort(position.expected_load.sum(axis=0))[-3:]
    expected = np.zeros((game.horizon, len(busiest)))
    for member, table in zip(game.agents, policy, strict=True):
        present = np.array(member.initial)
        for h in range(game.horizon):
            pairs = (present[:, None] * table[h]).ravel()
            expected[h] += (member.uses[h % len(member.uses)].T @ pairs)[busiest]
            present = member.transition[h % len(member.transition)].T @ pairs
    np.testing.assert_allclose(position.expected_load[:, busiest], expected, rtol=0, atol=1e-10)


def test_the_files_alone_prove_it(solved, tmp_path):
    cmpg.save_game(solved.game, tmp_path / "game.npz")
    solved.result.policy.save(tmp_path / "policy.npz", multipliers=solved.result.multipliers)
    game = cmpg.load_game(tmp_path / "game.npz")
    policy, multipliers = cmpg.load_policy(tmp_path / "policy.npz")
    again = cmpg.certify(game, policy, multipliers)
    assert again.proves(solved.epsilon)
    assert again.feasibility is cmpg.Feasibility.PROVEN
    assert again.costs == pytest.approx(solved.result.costs, abs=1e-12)
    assert again.values == pytest.approx(solved.result.values, abs=1e-12)
    # Prices are part of the proof: with none nothing so sharp can be said. If none are given, they are computed.
    assert not cmpg.certify(game, policy, np.zeros_like(multipliers)).proves(solved.epsilon)
    assert cmpg.certify(game, policy).proves(solved.epsilon)


def test_a_real_day_through_the_command(tmp_path):
    folder = tmp_path / "day"
    words = ("charging", "--sessions", SESSIONS, "--day", "2019-06-12", "--capacity", "8")
    ran = command("solve", *words, "--out", folder)
    assert ran.code == 0
    assert ran.out.startswith("CERTIFIED")
    ran = command("certify", folder / "game.npz", folder / "policy.npz")
    assert ran.code == 0
    assert ran.out.startswith("PROVED: ")
    assert Information.OWN_STATE in ran.out
    # The words say the same game as the file, and the proof is for this budget only.
    ran = command("certify", words[0], folder / "policy.npz", *words[1:], "--threshold", "0.4")
    assert ran.code == 1
    assert "violates a threshold" in ran.out
