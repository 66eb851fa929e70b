"""CMDPs and Gymnasium: a CMDP as an environment with costs, and Gymnasium's tables `P[s][a]` as a CMDP.

The agent observes the step and the state, `[h, s]`. `info` has the costs of the step: `"cost"`, their sum; `"costs"`,
one per constraint; `"cost_limit"` and `"cost_limits"`, the thresholds. A horizon ends in truncation; a discounted CMDP
ends after each step with probability 1 − γ, so that the expected sum over an episode is the discounted sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, SupportsFloat

import numpy as np

from cmpg.arrays import FloatArray, IntArray, at_step, numbers
from cmpg.cmdp.model import CMDP
from cmpg.errors import GameError, SimulatorError
from cmpg.games.play import draw_from_row
from cmpg.policy import draw

try:
    import gymnasium
    from gymnasium.spaces import Discrete, MultiDiscrete
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"{missing.name} is not installed; Gymnasium environments need it: pip install 'cmpg[pettingzoo]'",
        name=missing.name,
    ) from None

TransitionCosts = Callable[[int, int, int, float], Sequence[float]]
"""What it costs to get from a state by an action to a state with a reward: one number per constraint."""


def to_gymnasium_env(cmdp: CMDP) -> CMDPEnv:
    """Return an environment that plays a CMDP, in floats.

    Examples
    --------
    >>> cmdp = CMDP(transition=[[[[1.0], [1.0]]]], reward=[[[0.0, 1.0]]], costs=[[[[0.0, 1.0]]]],
    ...             thresholds=[0.25], initial=[1.0], horizon=1)
    >>> env = to_gymnasium_env(cmdp)
    >>> observation, info = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(1)
    >>> reward, truncated, info["cost"], info["cost_limit"]
    (1.0, True, 1.0, 0.25)
    """
    return CMDPEnv(cmdp)


class CMDPEnv(gymnasium.Env[IntArray, Any]):
    """A CMDP that is stepped; see `to_gymnasium_env`.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> env = CMDPEnv(game.at(game.uniform_policy()).induced_cmdp(0))
    >>> _ = env.reset(seed=0)
    >>> env.step(1)[1], int(env.action_space.n)
    (3.0, 2)
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, cmdp: CMDP) -> None:
        self.cmdp = cmdp
        self._transition = cmdp.transition
        self._reward, self._costs = cmdp.reward, cmdp.costs
        self._initial, self._limits = cmdp.initial, cmdp.thresholds
        self._steps = 1 if cmdp.horizon is None else cmdp.horizon + 1
        self.observation_space = MultiDiscrete([self._steps, cmdp.num_states])
        self.action_space = Discrete(cmdp.num_actions)
        self._step, self._state, self._over = 0, 0, True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[IntArray, dict[str, Any]]:
        """Begin an episode; with a seed, always the same."""
        super().reset(seed=seed, options=options)
        self._step, self._state, self._over = 0, draw(self._initial, self.np_random), False
        return self._observed(), {}

    def step(self, action: int) -> tuple[IntArray, SupportsFloat, bool, bool, dict[str, Any]]:
        """Play one action."""
        if self._over:
            raise SimulatorError("the episode is over, or has not begun; call reset first.")
        if not self.action_space.contains(action):
            most = self.cmdp.num_actions - 1
            raise SimulatorError(f"the action is {action!r}; a number from 0 to {most} is required.")
        cmdp, here = self.cmdp, (self._state, int(action))
        h = 0 if cmdp.horizon is None else self._step
        reward = float(at_step(self._reward, h)[here])
        costs = np.array([at_step(table, h)[here] for table in self._costs])
        matrix = at_step(self._transition, h)
        if cmdp.is_sparse:
            self._state = draw_from_row(matrix, here[0] * cmdp.num_actions + here[1], self.np_random)
        else:
            self._state = draw(matrix[here], self.np_random)
        self._step += 1
        truncated = self._step == cmdp.horizon
        terminated = cmdp.discount is not None and bool(self.np_random.random() >= cmdp.discount)
        self._over = truncated or terminated
        return self._observed(), reward, terminated, truncated, self._info(costs)

    def _observed(self) -> IntArray:
        return np.array([min(self._step, self._steps - 1), self._state])

    def _info(self, costs: FloatArray) -> dict[str, Any]:
        return {
            "cost": float(costs.sum()),
            "costs": costs.tolist(),
            "cost_limit": float(self._limits.sum()),
            "cost_limits": self._limits.tolist(),
        }


def from_toy_text(
    env: Any,
    *,
    horizon: int | None = None,
    discount: float | None = None,
    costs: TransitionCosts | None = None,
    thresholds: Any = (),
) -> CMDP:
    """Read the tables of an environment that shows them, as Gymnasium's toy_text ones do: FrozenLake, Taxi, ….

    Parameters
    ----------
    env
        Has `P[s][a]`, a list of (probability, next state, reward, terminated), and `initial_state_distrib`.
    horizon, discount
        One of the two.
    costs
        What a transition costs; nothing unless given.
    thresholds : [k]
        What each cost may be at most, summed over an episode.

    Returns
    -------
    CMDP
        With one state more than the environment has: where it has ended, nothing comes, and nothing costs.

    Examples
    --------
    >>> import gymnasium
    >>> from cmpg.cmdp.exact import Exact
    >>> lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
    >>> round(float(Exact()(from_toy_text(lake, horizon=6)).value), 6)
    1.0
    """
    bare = getattr(env, "unwrapped", env)
    if not hasattr(bare, "P") or not hasattr(bare, "initial_state_distrib"):
        raise GameError(
            f"{type(bare).__name__} does not show its tables: P[s][a] and initial_state_distrib are required."
        )
    budgets = numbers("thresholds", thresholds)
    states, actions = len(bare.P), len(bare.P[0])
    ended, size = states, states + 1
    transition = np.zeros((1, size, actions, size))
    transition[0, ended, :, ended] = 1.0
    reward, spent = np.zeros((1, size, actions)), np.zeros((len(budgets), 1, size, actions))
    for s in range(states):
        for a in range(actions):
            for probability, ahead, gain, over in bare.P[s][a]:
                transition[0, s, a, ended if over else ahead] += probability
                reward[0, s, a] += probability * gain
                if costs is not None:
                    spent[:, 0, s, a] += probability * _checked(costs(s, a, int(ahead), float(gain)), len(budgets))
    return CMDP(
        transition=transition,
        reward=reward,
        costs=spent,
        thresholds=budgets,
        initial=np.append(np.asarray(bare.initial_state_distrib, dtype=np.float64), 0.0),
        horizon=horizon,
        discount=discount,
    )


def _checked(costs: Sequence[float], count: int) -> FloatArray:
    if len(costs) != count:
        raise GameError(f"costs returned {len(costs)} numbers; there are {count} thresholds.")
    return np.asarray(costs, dtype=np.float64)
