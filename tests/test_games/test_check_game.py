"""A user's own class as a game: it runs through everything, and `check_game` finds what is wrong with it."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import cmpg
from cmpg.cmdp.evaluation import Evaluation, evaluate
from cmpg.cmdp.model import CMDP
from cmpg.games.check import GAME, InducedPosition, check_game
from cmpg.games.game import Information, Names, PotentialKind, PotentialProof, potential_by_moves
from cmpg.policy import JointPolicy
from cmpg.scenarios import SCENARIOS, scenario

LEVELS = np.arange(3) / 2
NAMED = Names(agents=("left", "right"))


@dataclass(frozen=True)
class Commons:
    """Two agents choose how much to take; what both take together is limited in expectation."""

    thresholds: np.ndarray
    num_agents: int = 2
    horizon: int = 1
    discount: None = None
    policy_shapes: tuple = ((1, 1, 3), (1, 1, 3))
    information: Information = Information.JOINT_STATE
    names: Names = NAMED

    @property
    def reward_ranges(self):
        return np.full(2, 1.0)

    def at(self, policy):
        policy.check_fits(self.policy_shapes)
        return InducedPosition(self, policy)

    def induced_cmdp(self, policy, agent):
        other = float(LEVELS @ policy[1 - agent][0, 0])
        return CMDP(
            transition=np.ones((1, 1, 3, 1)),
            reward=(LEVELS - 0.25 * LEVELS * (LEVELS + other))[None, None],
            costs=(LEVELS + other)[None, None, None],
            thresholds=self.thresholds,
            initial=[1.0],
            horizon=1,
        )

    def potential(self, policy):
        return potential_by_moves(self, policy)

    def potential_proof(self):
        return PotentialProof(PotentialKind.DECLARED, "what one takes from the other, the other takes from it.")

    def with_thresholds(self, thresholds):
        return replace(self, thresholds=np.asarray(thresholds, dtype=float))


@pytest.mark.parametrize("threshold", [0.5, 1.0, 1.3, 9.0])
def test_a_class_of_the_user_s_is_solved_and_certified(threshold):
    game = Commons(np.array([threshold]))
    assert check_game(game).passed
    result = cmpg.solve(game)
    assert result.certified
    assert cmpg.certify(game, result.policy, result.multipliers).proves(1e-6)
    assert result.costs[0] <= threshold
    better = cmpg.solve(game, restarts=cmpg.Restarts(4), rng=1)
    assert better.certified
    assert better.equilibria


def test_a_threshold_that_is_met_to_the_last_bit_is_moved_inside():
    game = Commons(np.array([1.0]))
    start = JointPolicy(([[[0, 1, 0]]], [[[0, 1, 0]]]))
    result = cmpg.solve(game, start=start)
    assert result.certificate.feasible


def with_method(**changes):
    """The game with other fields, methods or properties."""
    fields = {name: value for name, value in changes.items() if name in Commons.__dataclass_fields__}
    methods = {name: value for name, value in changes.items() if name not in fields}
    return type("Wrong", (Commons,), methods)(**{"thresholds": np.array([1.0]), **fields})


BROKEN = {
    "information is 'joint'": {"information": "joint"},
    "names is a dict": {"names": {}},
    "exactly one of them is None": {"discount": 0.9},
    "policy_shapes is": {"policy_shapes": ((1, 1, 3),)},
    "reward_ranges must": {"reward_ranges": property(lambda self: np.ones(3))},
    "more than reward_ranges": {"reward_ranges": property(lambda self: np.full(2, 1e-3))},
    "with_thresholds(α + 1)": {"with_thresholds": lambda self, thresholds: self},
    "the change of the potential": {"potential": lambda self, policy: 0.0},
    "a PotentialProof or None": {"potential_proof": lambda self: "because"},
    "ends in KeyError": {"at": lambda self, policy: {}["nothing"]},
    "num_agents is 'two'; a positive integer": {"num_agents": "two"},
    "thresholds must be an array [k]": {"thresholds": 1.0},
    "returned a dict; a CMDP is required": {"induced_cmdp": lambda self, policy, agent: {}},
    "takes policies [1, 1, 1] and 1 constraints; [1, 1, 3]": {
        "induced_cmdp": lambda self, policy, agent: CMDP(
            transition=np.ones((1, 1, 1, 1)),
            reward=np.zeros((1, 1, 1)),
            costs=np.zeros((1, 1, 1, 1)),
            thresholds=self.thresholds,
            initial=[1.0],
            horizon=1,
        )
    },
}


@pytest.mark.parametrize("problem", BROKEN)
def test_what_is_wrong_is_said(problem):
    found = check_game(with_method(**BROKEN[problem]))
    assert not found.passed
    assert problem in str(found)


@dataclass(frozen=True)
class Selfish(InducedPosition):
    """A position that is wrong in one place."""

    @property
    def values(self):
        return np.zeros(2)


def test_a_position_that_contradicts_its_cmdps_is_found():
    found = check_game(with_method(at=lambda self, policy: Selfish(self, policy)))
    assert "the value in its induced CMDP" in str(found)


def wrong_position(**changes):
    """Positions with other methods or properties."""
    kind = type("WrongPosition", (InducedPosition,), changes)
    return with_method(at=lambda self, policy: kind(self, policy))


def other_policy(self):
    return JointPolicy.uniform(self.game.policy_shapes)


BROKEN_POSITIONS = {
    "position.costs has shape [2]; [1] is required": {"costs": property(lambda self: np.zeros(2))},
    "position.policy is not the policy that `at` was given": {
        "policy": property(other_policy, lambda self, policy: None)
    },
    "replace(0, …) must change the policy of agent 0, and no other": {"replace": lambda self, agent, table: self},
    "current(1).costs has shape [2]; [1] is required": {
        "current": lambda self, agent: Evaluation(self.values[agent], np.zeros(1 + agent)),
        "values": property(
            lambda self: np.array([evaluate(self.induced_cmdp(i), self.policy[i]).value for i in (0, 1)])
        ),
    },
    "ends in AttributeError: 'NoneType' object has no attribute 'size'": {
        "slacks": property(lambda self: None.size)  # a slip inside: the member is there
    },
}


@pytest.mark.parametrize("problem", BROKEN_POSITIONS)
def test_what_is_wrong_with_a_position_is_said(problem):
    found = check_game(wrong_position(**BROKEN_POSITIONS[problem]))
    assert not found.passed
    assert problem in str(found)


@pytest.mark.parametrize("name", GAME)
def test_a_missing_member_is_named(name):
    class Without:
        def __getattr__(self, wanted):
            if wanted == name:
                raise AttributeError(wanted)
            return getattr(Commons(np.array([1.0])), wanted)

    assert check_game(Without()).problems == (f"the game has no `{name}`.",)


def test_positions_need_all_members():
    found = check_game(with_method(at=lambda self, policy: object()))
    assert found.problems[0] == "a position has no `policy`."


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != "congestion"])
def test_every_scenario_keeps_the_contract(name):
    options = {"robots": {"num_agents": 2, "horizon": 30}, "routing": {"num_agents": 3}}.get(name, {})
    assert check_game(scenario(name).build(**options), policies=1).problems == ()
