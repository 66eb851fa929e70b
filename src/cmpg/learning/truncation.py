"""Discounted games, cut off: after H steps the rest is worth γ^H/(1 − γ) of a step's range, and no more.

Rewards of agent i lie in [l_i, l_i + R_i], costs in [m_j, m_j + C_j]. The finite game has rewards γ^h (r − l), costs
γ^h (c − m), and thresholds α − m/(1 − γ). With t_i = γ^H R_i/(1 − γ) and w_j = γ^H C_j/(1 − γ): a policy that keeps
these thresholds less w in its first H steps is feasible, whatever it does later; and if no policy that keeps the
thresholds themselves gains ε − t_i in H steps, no feasible one gains ε in the discounted game (Theorem 5 of
docs/learning-theory.md). So learners have ε − max t left, and candidates keep a margin of w; nothing of δ is spent.

A discounted local game keeps its payoffs, so that its thresholds are lowered by the least that follows,
γ^H m/(1 − γ), and l, R, m and C are those of any states, actions and loads.

A policy that was learned has H steps. It is judged in the game that is cut off where what is left is lost in rounding;
from step H on all agents play as at step H − 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log

import numpy as np

from cmpg.arrays import UNIT_ROUNDOFF, FloatArray
from cmpg.errors import CMPGError, SimulatorError, UnsupportedError
from cmpg.games.counting.game import CountingGame
from cmpg.games.game import Game
from cmpg.games.joint.game import JointGame
from cmpg.games.local.discounted import DiscountedLocalGame
from cmpg.games.local.game import LocalGame
from cmpg.proof.truncation import over_steps
from cmpg.summaries import fields_line

REWARD_SHARE = 1 / 8
"""What is cut off is worth at most this share of ε."""

COST_SHARE = 1 / 16
"""What is cut off costs at most this share of ε, exchanged at the rate of a threshold for a range of values."""


@dataclass(frozen=True, eq=False)
class Cut:
    """Where a discounted game is cut off, and what is lost by it."""

    horizon: int
    reward_tails: FloatArray  # t: [n]
    cost_tails: FloatArray  # w: [k]
    cost_shifts: FloatArray  # by how much thresholds are lower: [k]

    __repr__ = fields_line

    def left_of(self, epsilon: float) -> float:
        """Return what is left of ε to the learner, or raise where nothing is."""
        worst = float(self.reward_tails.max())
        if worst >= epsilon:
            raise CMPGError(
                f"cut off after {self.horizon} steps, what follows is worth up to {worst:.4g}, not less than epsilon, "
                f"{epsilon:g}. Take more steps: steps_for(game, epsilon) says how many."
            )
        return epsilon - worst


def steps_for(game: Game | DiscountedLocalGame, epsilon: float) -> int:
    """Return the number of steps after which a discounted game may be cut off to be learned up to ε.

    Examples
    --------
    >>> game = JointGame(transition=np.ones((1, 1, 2, 1)), rewards=[[[[0, 1]]]], costs=[[[[0, 1]]]], thresholds=[2.0],
    ...                  initial=[1.0], discount=0.9)
    >>> steps_for(game, epsilon=0.5)
    71
    """
    cut, discount = _tails(game, 0), float(game.discount or 0.0)
    budgets = np.where(_room(game, cut) > 0, _room(game, cut), cut.cost_tails)
    shares = [float(cut.reward_tails.max()) / (REWARD_SHARE * epsilon)]
    if len(budgets):
        allowed = COST_SHARE * epsilon * budgets / max(float(cut.reward_tails.max()), epsilon)
        shares += list(cut.cost_tails / np.where(allowed > 0, allowed, 1.0))
    most = max(shares)
    return 1 if most <= 1 or discount == 0 else ceil(log(most) / -log(discount))


def steps_until_rounding(game: Game | DiscountedLocalGame) -> int:
    """Return the number of steps after which what follows is lost in rounding."""
    discount = float(game.discount or 0.0)
    return 1 if discount == 0 else ceil(log(UNIT_ROUNDOFF * (1 - discount)) / log(discount))


def cut_off(game: Game, horizon: int, *, shifted: bool = True) -> tuple[JointGame | CountingGame, Cut]:
    """Return the finite game of the first steps of a discounted one, its payoffs shifted to begin at zero or not, and
    what is lost by it.
    """
    cut = _tails(game, horizon)
    if not shifted:
        cut = replace(cut, cost_shifts=np.zeros(len(cut.cost_shifts)))
    weights = np.asarray(float(game.discount or 0.0) ** np.arange(horizon), dtype=np.float64)
    thresholds = game.thresholds - cut.cost_shifts
    if isinstance(game, JointGame):
        joint: JointGame = game
        rewards, costs = (
            over_steps(table - shifted * _columns(_least(table), table), weights, 1)
            for table in (joint.rewards, joint.costs)
        )
        finite = replace(joint, rewards=rewards, costs=costs, thresholds=thresholds, horizon=horizon, discount=None)
        return finite, cut
    assert isinstance(game, CountingGame), "any other form was refused above"
    counting: CountingGame = game
    private, spent = counting.private_rewards, counting.costs
    counted = replace(
        counting,
        rewards=over_steps(counting.rewards, weights, 0),
        private_rewards=over_steps(private - shifted * _columns(_least(reward_ends(counting)[0]), private), weights, 1),
        class_rewards=over_steps(counting.class_rewards, weights, 0),
        costs=over_steps(spent - shifted * _columns(_least(spent), spent), weights, 1),
        thresholds=thresholds,
        horizon=horizon,
        discount=None,
    )
    return counted, cut


def cut_off_local(game: DiscountedLocalGame, horizon: int) -> tuple[LocalGame, Cut]:
    """Return the first steps of a discounted local game, where all feasible policies are feasible, and what is lost."""
    cut = _tails(game, horizon)
    cut = replace(cut, cost_shifts=game.discount**horizon * cut.cost_shifts)
    return game.truncated(horizon).with_thresholds(game.thresholds - cut.cost_shifts), cut


def check_cut(game: Game | DiscountedLocalGame, horizon: int | None) -> None:
    """Raise unless the steps of a game are known: its own, or where it is cut off, and never both."""
    if game.horizon is None and horizon is None:
        advice = "Give the horizon after which it is cut off: steps_for(game, epsilon) says how many steps."
        raise SimulatorError(f"the game is discounted: its episodes do not end. {advice}")
    if game.horizon is not None and horizon is not None:
        raise SimulatorError(f"the game has {game.horizon} steps; a horizon is given for discounted games only.")


def finite_form(game: Game | DiscountedLocalGame) -> Game:
    """Return a game with a finite horizon as it is, and a discounted one cut off where the rest is lost in rounding."""
    if isinstance(game, DiscountedLocalGame):
        return game.truncated(steps_until_rounding(game))
    return game if game.discount is None else cut_off(game, steps_until_rounding(game), shifted=False)[0]


def _tails(game: Game | DiscountedLocalGame, horizon: int) -> Cut:
    if game.discount is None:
        raise CMPGError("the game has a finite horizon; only a discounted one is cut off.")
    weight = float(game.discount) ** horizon
    least, most = _step_costs(game)
    scale = 1 / (1 - float(game.discount))
    return Cut(horizon, weight * game.reward_ranges, weight * scale * (most - least), scale * least)


def _step_costs(game: Game | DiscountedLocalGame) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest cost of a step, whatever is played: [k] each."""
    if isinstance(game, DiscountedLocalGame):
        least, most = (end(game.load_costs, axis=-1).sum(axis=(1, 2)) for end in (np.min, np.max))
        for agent in game.agents:
            if agent.costs is not None:
                least, most = least + _least(agent.costs), most - _least(-agent.costs)
        return least, most
    if not isinstance(game, (JointGame, CountingGame)):
        raise UnsupportedError(type(game).__name__, "is not learned with a discount", "Give it a finite horizon.")
    return _least(game.costs), -_least(-game.costs)


def _room(game: Game | DiscountedLocalGame, cut: Cut) -> FloatArray:
    return np.asarray(game.thresholds - cut.cost_shifts)


def _least(tables: FloatArray) -> FloatArray:
    return np.array([table.min() for table in tables])


def _columns(numbers: FloatArray, tables: FloatArray) -> FloatArray:
    """One number for each table, as an array that is subtracted from all of them."""
    return numbers.reshape(-1, *(1,) * (tables.ndim - 1))


def reward_ends(game: CountingGame) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest reward of every agent in each state, by its action: [n, H or 1, S, A] each."""
    shared, by_class = game.rewards[..., 1:], game.class_rewards
    least, most = shared.min(axis=-1) + by_class.min(axis=-1), shared.max(axis=-1) + by_class.max(axis=-1)
    return game.private_rewards + least, game.private_rewards + most
