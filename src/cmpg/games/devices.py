"""Devices that tell agents what to do: a rota, and a correlated policy; what each concept of equilibrium promises.

A *rota* draws, once per day, which of a few product policies all agents play, and announces it: a calendar, a public
coin. A *correlated policy* draws a joint action at every step, by the state that every agent sees, and shows each agent
its own part: an app, a traffic light. Whether agents gain by doing something else is decided by `cmpg.certify`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import FloatArray, check_shape, distributions, frozen, numbers, to_floats
from cmpg.cmdp.evaluation import evaluate
from cmpg.errors import PolicyError, UnsupportedError
from cmpg.games.game import Game, Information
from cmpg.games.joint.game import JointGame
from cmpg.policy import JointPolicy
from cmpg.summaries import Summary, Table, counted, fixed, html, line, text

if TYPE_CHECKING:
    from cmpg.games.joint.game import JointGame


class Concept(Enum):
    """What is claimed of a policy or a device; the value says what it promises.

    Examples
    --------
    >>> from cmpg import recommend
    >>> from cmpg.scenarios import counter_example
    >>> [concept.word for concept in Concept]
    ['nash', 'coarse', 'correlated', 'rota']
    >>> recommend(counter_example(), Concept.ROTA).certificate.concept is Concept.ROTA
    True
    """

    NASH = "no agent gains by deviating; no device is needed, and the thresholds hold every day in expectation"
    COARSE = (
        "no agent gains by ignoring the device, from any state on, before it hears its recommendation; the thresholds "
        "hold every day in expectation"
    )
    CORRELATED = (
        "no agent gains by a deviation that depends on what it is recommended; the thresholds hold every day in "
        "expectation"
    )
    ROTA = (
        "no agent gains by deviating, even though the mode of the day is announced; the thresholds hold on average "
        "over days, and not in every mode"
    )

    @property
    def word(self) -> str:
        """The name that the command line and files have for it."""
        return self.name.lower()


@dataclass(frozen=True, eq=False)
class Rota:
    """Product policies, one of which is drawn and announced each day.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> first, second = game.split(np.array([[0]])), game.split(np.array([[3]]))
    >>> rota = Rota((first, second), [0.5, 0.5])
    >>> device_values(game, rota)[0]
    array([3.5, 3.5])
    """

    modes: tuple[JointPolicy, ...]
    weights: FloatArray  # [M]: how often each mode is played; positive

    if TYPE_CHECKING:

        def __init__(self, modes: Sequence[JointPolicy], weights: Any) -> None: ...

    def __post_init__(self) -> None:
        """Check the weights."""
        object.__setattr__(self, "modes", tuple(self.modes))
        given = numbers("weights", self.weights, error=PolicyError)
        check_shape("weights", given.shape, (len(self.modes),), error=PolicyError)
        if not self.modes or np.any(given <= 0):
            raise PolicyError("a rota needs at least one mode, and a positive weight for each.")
        object.__setattr__(self, "weights", distributions("weights", given, (), error=PolicyError))

    def check_fits(self, game: Game) -> None:
        """Raise unless every mode is a policy of the game."""
        for mode in self.modes:
            mode.check_fits(game.policy_shapes)

    def save(self, path: str | Path, *, multipliers: Any, concept: Concept = Concept.ROTA) -> None:
        """Write the device and the multipliers [n, k] that prove the claim; `load_device` reads it."""
        from cmpg.files.devices import save_device  # a room below: files are written on demand

        save_device(self, path, multipliers=multipliers, concept=concept)

    def summary(self) -> Summary:
        """Return what to show: how often each mode is played."""
        rows = tuple((f"mode {m + 1}", fixed(100 * float(share), 4)) for m, share in enumerate(self.weights))
        return Summary("rota", f"{counted(len(self.modes), 'mode')}", (Table(("mode", "% of days"), rows),))

    __repr__, __str__, _repr_html_ = line, text, html


@dataclass(frozen=True, eq=False)
class CorrelatedPolicy:
    """A law of joint actions for each step and joint state, of which each agent sees its own part.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> light = CorrelatedPolicy([[[[0.5, 0.0], [0.0, 0.5]]]])
    >>> device_values(counter_example(), light)
    (array([3.5, 3.5]), array([0.5]))
    """

    table: FloatArray  # [H, S, *A]

    if TYPE_CHECKING:

        def __init__(self, table: Any) -> None: ...

    def __post_init__(self) -> None:
        """Check that every entry of the step and state axes is a distribution over joint actions."""
        given = numbers("table", self.table, error=PolicyError)
        if given.ndim < 3:
            raise PolicyError(f"table has shape {list(given.shape)}; [H, S, A_1, …, A_n] is required.")
        rows = distributions("table", given.reshape(*given.shape[:2], -1), ("h", "s"), error=PolicyError)
        object.__setattr__(self, "table", frozen(rows.reshape(given.shape)))

    def check_fits(self, game: Game) -> None:
        """Raise unless the game has a joint state and these joint actions."""
        joint = shared_game(game)
        steps = 1 if joint.horizon is None else joint.horizon
        check_shape("table", self.table.shape, (steps, joint.num_states, *joint.num_actions), error=PolicyError)

    def recommended(self, agent: int) -> FloatArray:
        """Return how often each action is recommended to one agent: [H, S, A_i]."""
        others = tuple(axis for axis in range(2, self.table.ndim) if axis != 2 + agent)
        return np.asarray(self.table.sum(axis=others))

    def save(self, path: str | Path, *, multipliers: Any, concept: Concept = Concept.CORRELATED) -> None:
        """Write the device and the multipliers [n, k] that prove the claim; `load_device` reads it."""
        from cmpg.files.devices import save_device  # a room below: files are written on demand

        save_device(self, path, multipliers=multipliers, concept=concept)

    def summary(self) -> Summary:
        """Return what to show: its size."""
        steps, states, *actions = self.table.shape
        sizes = f"{counted(steps, 'step')}, {counted(states, 'state')}, {' × '.join(map(str, actions))} joint actions"
        return Summary("correlated policy", sizes)

    __repr__, __str__, _repr_html_ = line, text, html


Device = Rota | CorrelatedPolicy


def shared_game(game: Game) -> JointGame:
    """Return a game in which single actions can be recommended, or raise with the reason why they cannot."""
    if isinstance(game, JointGame):
        return game
    if game.information is Information.OWN_STATE:
        advice = (
            "Each agent sees its own state alone: a device that correlates actions makes the agents' states dependent, "
            "and a plan on the joint state tells agents what they do not see. Use a rota."
        )
    else:
        advice = "Tables over joint actions are needed: call `to_joint` on a small game, or use a rota."
    raise UnsupportedError(type(game).__name__, "has no recommendations of single actions", advice)


def device_values(game: Game, device: Device) -> tuple[FloatArray, FloatArray]:
    """Return what each agent gets and what each constraint spends, if all do as the device says: [n], [k]."""
    device.check_fits(game)
    if isinstance(device, Rota):
        positions = [game.at(mode) for mode in device.modes]
        values = device.weights @ np.stack([each.values for each in positions])
        return values, device.weights @ np.stack([each.costs for each in positions])
    joint = shared_game(game)
    law = to_floats(device.table).reshape(*device.table.shape[:2], -1)
    found = [evaluate(joint.joint_cmdp(reward), law) for reward in joint.rewards]
    return np.array([float(each.value) for each in found]), np.asarray(found[0].costs, dtype=np.float64)
