"""How good a device is: its value beside what no feasible policy and no feasible device exceeds.

The bounds of `cmpg.equilibrium.quality` are Lagrangian: V(π) + λ·(α − V^c(π)) ≤ bound for every joint policy π, and for
correlated ones. Averaged over the modes of a rota that keeps the thresholds, that bounds the rota, too.
"""

from __future__ import annotations

import time

import numpy as np

from cmpg.cmdp.evaluation import evaluate
from cmpg.deadline import limited
from cmpg.equilibrium.quality import OptimalityGap, upper_bound
from cmpg.equilibrium.recommendations.recommend import Recommendation, device_of
from cmpg.errors import GameError
from cmpg.games.devices import CorrelatedPolicy, Device, Rota, shared_game
from cmpg.games.game import Game, Objective
from cmpg.games.joint.planner import joint_planner, marginals, with_common_reward
from cmpg.policy import JointPolicy


def device_quality(found: Recommendation, objective: Objective, *, time_limit: float = np.inf) -> OptimalityGap:
    """Compare a device with an upper bound over all feasible policies and devices; see `cmpg.quality`."""
    device, game = device_of(found), found.game
    with limited(time.monotonic() + time_limit):
        value = float(np.sum(found.values)) if objective is Objective.WELFARE else average_potential(game, device)
        common = np.asarray(found.multipliers, dtype=np.float64).max(axis=0)
        common = np.where(np.isfinite(common), common, 0.0)
        return OptimalityGap(objective, value, upper_bound(game, objective, _near(game, device), common))


def average_potential(game: Game, device: Device) -> float:
    """Return E Φ of a device, counted from `JointPolicy.reference`."""
    if game.potential_proof() is None:
        raise GameError("this game is not known to have a potential; cmpg.check_potential says what is known.")
    if isinstance(device, Rota):
        each = [float(game.potential(mode.floats())) for mode in device.modes]
        return float(np.asarray(device.weights, dtype=np.float64) @ each)
    joint = shared_game(game)
    law = np.asarray(device.table, dtype=np.float64).reshape(*device.table.shape[:2], -1)
    reference = with_common_reward(joint).at(JointPolicy.reference(joint.policy_shapes))
    return float(evaluate(joint_planner(joint), law).value - reference.values[0])


def _near(game: Game, device: Device) -> JointPolicy:
    """Return a product policy near which a bound may be sought."""
    if isinstance(device, CorrelatedPolicy):
        joint = shared_game(game)
        return marginals(joint, np.asarray(device.table, dtype=np.float64).reshape(*device.table.shape[:2], -1))
    return device.modes[int(np.argmax(device.weights))].floats()
