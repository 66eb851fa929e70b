"""One agent of a local game: its states and dynamics, its private reward and costs, the resources that it uses."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cmpg.arrays import FloatArray, Numbers, folded_fields, frozen, set_folded_fields
from cmpg.cmdp.model import CMDP, thin, total_range
from cmpg.faces import fields_line

DENSE_STATES = 32
"""Agents with at most this many states have their transition as a dense array."""

DENSE_USES = 1024
"""Usage tables with at most this many entries per step are stored densely."""

BLOCK = 16
"""Usages are summed for this many steps at a time: the product needs a transposed copy, and small ones are cheaper."""


@dataclass(frozen=True, eq=False)
class LocalAgent:
    """An agent that moves on its own states, and uses some of the shared resources at each (state, action).

    Agents of the same kind may share arrays: pass the same objects. What is given here is checked when a `LocalGame`
    takes the agent in; there, matrices become tuples of CSR matrices, and costs that are all zero become None.

    Examples
    --------
    One state; action 1 uses the only resource and is worth 1.

    >>> agent = LocalAgent(transition=[[[[1], [1]]]], reward=[[[0, 1]]], uses=[[[[0], [1]]]], initial=[1])
    """

    _: KW_ONLY
    transition: (
        Any  # one CSR [S·A, S] per step, or one for all, rows in the order (state, action); or [H or 1, S, A, S]
    )
    reward: FloatArray  # [H or 1, S, A]
    uses: Any  # one 0/1 CSR [S·A, E] per step, or one for all; or [H or 1, S, A, E]
    initial: FloatArray  # [S]
    costs: FloatArray | None = None  # [k, H or 1, S, A]; None: zeros

    __repr__ = fields_line

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            transition: Any,
            reward: Numbers,
            uses: Any,
            initial: Numbers,
            costs: Numbers | None = None,
        ) -> None: ...

    __getstate__, __setstate__ = folded_fields, set_folded_fields

    @property
    def num_states(self) -> int:
        """S."""
        return int(self.reward.shape[1])

    @property
    def num_actions(self) -> int:
        """A."""
        return int(self.reward.shape[2])

    def private_cmdp(self, thresholds: FloatArray, horizon: int) -> CMDP:
        """Return the CMDP of an agent to whom nobody else matters: private reward and costs, all of the budget."""
        costs = np.zeros((len(thresholds), 1, *self.reward.shape[1:])) if self.costs is None else self.costs
        return CMDP(
            transition=self.kernel,
            reward=self.reward,
            costs=frozen(costs),
            thresholds=thresholds,
            initial=self.initial,
            horizon=horizon,
            trusted=True,
        )

    def visits(self, table: FloatArray) -> Visits:
        """Return where a policy [H, S, A] leads."""
        present = np.empty(table.shape[:2])
        present[0] = self.initial
        for step in range(len(table) - 1):
            leaving = (present[step][:, None] * table[step]).ravel()
            present[step + 1] = self._flows[0 if len(self._flows) == 1 else step] @ leaving
        return Visits(present, table)

    def usage(self, visits: Visits) -> FloatArray:
        """Return the probability of using each resource at each step: [H, E]."""
        where = visits.states if self._use_is_by_state else visits.pairs
        if len(self.uses) == 1:
            blocks = [where[start : start + BLOCK] for start in range(0, len(where), BLOCK)]
            used = np.concatenate([(self._uses[0].T @ block.T).T for block in blocks])
        elif self._dense_uses is not None:
            used = np.matmul(where[:, None, :], self._dense_uses)[:, 0]
        else:
            used = np.stack([matrix.T @ visit for matrix, visit in zip(self._uses, where, strict=True)])
        # The last bits of a sum can lead above one.
        return np.asarray(np.minimum(np.ascontiguousarray(used), 1.0))

    def charge(self, prices: FloatArray) -> FloatArray:
        """Return the sum of the prices [H or 1, E] of what is used at each (step, state, action): [H or 1, S, A].

        The last axis has length 1 where what is used depends on the state alone.
        """
        if self._dense_uses is not None:
            charged = np.asarray(np.matmul(self._dense_uses, prices[..., None])[..., 0])
        elif len(self.uses) > 1:
            spread = np.broadcast_to(prices, (len(self.uses), prices.shape[1]))
            charged = np.stack([matrix @ price for matrix, price in zip(self._uses, spread, strict=True)])
        elif self._uses_one_each:
            charged = prices[:, self._uses[0].indices]
        else:
            charged = np.ascontiguousarray((self._uses[0] @ prices.T).T)
        return charged.reshape(len(charged), self.num_states, -1)

    def reach(self, horizon: int) -> npt.NDArray[np.bool_]:
        """Return which resources the agent can use at each step, by any policy: [H, E]."""
        able = np.zeros((horizon, self.uses[0].shape[1]), dtype=bool)
        present = self.initial > 0
        for step in range(horizon):
            pairs = np.repeat(present, self.num_actions).astype(np.float64)
            able[step] = self.uses[0 if len(self.uses) == 1 else step].T @ pairs > 0
            present = self._flows[0 if len(self._flows) == 1 else step] @ pairs > 0
        return able

    def reward_range(self, least_delay: FloatArray, greatest_delay: FloatArray, *, horizon: int) -> float:
        """Return Σ_h (max − min) of the reward, where delays of each resource lie between two tables [H or 1, E]."""
        if not least_delay.any() and not greatest_delay.any():
            return total_range(self.reward, horizon, None)
        best = (self.reward - self.charge(least_delay)).max(axis=(1, 2))
        worst = (self.reward - self.charge(greatest_delay)).min(axis=(1, 2))
        spans = best - worst
        return float(spans.sum() if len(spans) > 1 else spans[0] * horizon)

    @cached_property
    def step_roundings(self) -> int:
        """Roundings per step behind an entry of `usage`, and those of reading each row as divided by its exact sum."""
        into = max(int(np.bincount(matrix.indices, minlength=1).max()) for matrix in distinct(self.transition))
        out = max(int(np.diff(matrix.indptr).max()) for matrix in distinct(self.transition))
        return into + 4 * (out + self.num_actions + 1)

    @cached_property
    def most_uses(self) -> int:
        """The largest number of resources used at one (state, action), or of pairs that use one resource."""
        rows = max(int(np.diff(matrix.indptr).max(initial=0)) for matrix in distinct(self.uses))
        columns = max(int(np.bincount(matrix.indices, minlength=1).max()) for matrix in distinct(self.uses))
        return max(rows, columns)

    @cached_property
    def kernel(self) -> Any:
        """The transition as a CMDP takes it: dense [H or 1, S, A, S] where it is small, since a sparse product costs
        10 µs.
        """
        if self.num_states > DENSE_STATES:
            return self.transition
        shape = (len(self.transition), self.num_states, self.num_actions, self.num_states)
        return frozen(np.stack([matrix.toarray() for matrix in self.transition]).reshape(shape))

    @cached_property
    def _flows(self) -> tuple[Any, ...]:
        """The transposed transitions, as views."""
        if isinstance(self.kernel, tuple):
            return tuple(matrix.T for matrix in self.kernel)
        return tuple(step.reshape(-1, self.num_states).T for step in self.kernel)

    @cached_property
    def _dense_uses(self) -> FloatArray | None:
        """The uses of all steps as one array [H, S·A, E], where they change with the step and are small."""
        if len(self.uses) == 1 or self.uses[0].shape[0] * self.uses[0].shape[1] > DENSE_USES:
            return None
        return frozen(np.stack([matrix.toarray() for matrix in self.uses]))

    @cached_property
    def _use_is_by_state(self) -> bool:
        """Whether what is used depends neither on the action nor on the step."""
        if len(self.uses) > 1:
            return False
        by_state = self.uses[0][:: self.num_actions]
        repeated = by_state[np.repeat(np.arange(self.num_states), self.num_actions)]
        return bool((self.uses[0] != repeated).nnz == 0)

    @cached_property
    def _uses(self) -> tuple[Any, ...]:
        """The uses, one row per state where the action does not matter, else as they were given."""
        return (self.uses[0][:: self.num_actions],) if self._use_is_by_state else self.uses

    @cached_property
    def _uses_one_each(self) -> bool:
        return len(self.uses) == 1 and bool((np.diff(self.uses[0].indptr) == 1).all())


def distinct(matrices: tuple[Any, ...]) -> list[Any]:
    """Return each matrix of a sequence once; several steps may share one."""
    return list({id(matrix): matrix for matrix in matrices}.values())


@dataclass(frozen=True, eq=False)
class Visits:
    """Where a policy leads."""

    states: FloatArray  # [H, S]: the probability of being there
    policy: FloatArray  # [H, S, A]

    @cached_property
    def pairs(self) -> FloatArray:
        """The occupancy, with state and action in one axis: [H, S·A]."""
        return (self.states[..., None] * self.policy).reshape(len(self.states), -1)

    def total(self, table: FloatArray) -> float:
        """Return the expected sum of a table [H or 1, S, A] along the way."""
        entries = thin(table)
        where = self.states if entries.shape[-1] == 1 else self.pairs
        flat = entries.reshape(len(entries), -1)
        return float((where @ flat[0]).sum() if len(flat) == 1 else np.einsum("hx,hx->h", where, flat).sum())
