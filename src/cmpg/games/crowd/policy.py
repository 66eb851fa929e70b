"""Policies of a crowd: groups of agents that are alike in kind and in what they play."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import FloatArray, IntArray, Numbers, frozen
from cmpg.errors import PolicyError
from cmpg.games.crowd.game import MAX_SPREAD, CrowdGame
from cmpg.policy import CompactTable, JointPolicy, Stored, are_certain
from cmpg.summaries import Summary, Table, counted, html, line, text


@dataclass(frozen=True, eq=False)
class CrowdPolicy:
    """What every agent of a crowd does, by groups (kind, number, plan).

    Agents of a kind are counted from 0; its groups take them in order, as ranges. Every member of a group plays the
    group's table with coins of its own: a group that mixes is not split in proportion.

    Examples
    --------
    Of 10 agents of kind 0, 7 play action 0, and 3 mix.

    >>> policy = CrowdPolicy(kind=[0, 0], number=[7, 3], plans=([[[1.0, 0.0]]], [[[0.5, 0.5]]]))
    >>> policy.num_groups, policy.ranges.tolist(), policy.of(0, 8).tolist()
    (2, [[0, 7], [7, 10]], [[[0.5, 0.5]]])
    """

    kind: IntArray  # [G]
    number: IntArray  # [G]
    plans: JointPolicy  # G tables [H, S, A]

    if TYPE_CHECKING:

        def __init__(self, kind: Numbers, number: Numbers, plans: JointPolicy | Sequence[Any]) -> None: ...

    def __post_init__(self) -> None:
        stated: Any = self.plans
        plans = stated if isinstance(stated, JointPolicy) else JointPolicy(tuple(stated))
        for name in ("kind", "number"):
            given = np.asarray(getattr(self, name))
            if given.dtype.kind not in "iuf" or given.shape != (len(plans),) or (given != np.floor(given)).any():
                raise PolicyError(f"{name} must hold a whole number for each of the {len(plans)} groups.")
            least = int(name == "number")
            if given.min(initial=least) < least:
                g = int(given.argmin())
                raise PolicyError(f"{name}[{g}] is {given[g]}; at least {least} is required. Leave out empty groups.")
            object.__setattr__(self, name, frozen(given.astype(np.int64)))
        object.__setattr__(self, "plans", plans)

    @property
    def num_groups(self) -> int:
        """G."""
        return len(self.kind)

    @cached_property
    def ranges(self) -> IntArray:
        """The agents of each group, among those of its kind: from the first to before the second [G, 2]."""
        ends = np.zeros(self.num_groups, dtype=np.int64)
        order = np.argsort(self.kind, kind="stable")
        running = np.cumsum(self.number[order])
        starts = np.searchsorted(self.kind[order], self.kind[order], "left")
        before = np.concatenate([[0], running])[starts]
        ends[order] = running - before
        return frozen(np.stack([ends - self.number, ends], axis=1))

    @cached_property
    def mixes(self) -> Any:
        """Which groups have a row that mixes: [G]."""
        return np.array([_mixes(stored) for stored in self.plans.stored], dtype=bool)

    def of(self, kind: int, agent: int) -> FloatArray:
        """Return what one agent of a kind plays, counted from 0: [H, S, A]."""
        own = (self.kind == kind) & (self.ranges[:, 0] <= agent) & (agent < self.ranges[:, 1])
        if not own.any():
            raise PolicyError(f"there is no agent {agent} of kind {kind}; agents of a kind count from 0.")
        return self.plans[int(np.flatnonzero(own)[0])]

    def check_fits(self, game: CrowdGame) -> None:
        """Raise unless the groups are those of a crowd: kinds, numbers, shapes."""
        if self.num_groups == 0 or self.kind.max() >= game.num_kinds:
            raise PolicyError(f"the policy has {self.num_groups} groups of kinds up to {self.kind.max(initial=-1)}; "
                              f"the crowd has {game.num_kinds} kinds, counted from 0.")  # fmt: skip
        held = np.zeros(game.num_kinds, dtype=np.int64)
        np.add.at(held, self.kind, self.number)
        if (held != game.numbers).any():
            k = int(np.flatnonzero(held != game.numbers)[0])
            raise PolicyError(
                f"the groups of kind {k} have {held[k]:,} members; the crowd has {game.numbers[k]:,} agents of it."
            )
        self.plans.check_fits(tuple(game.policy_shapes[k] for k in self.kind.tolist()))

    def spread(self) -> JointPolicy:
        """Return the same policy agent by agent, kind after kind; see `CrowdGame.spread`."""
        if self.number.sum() > MAX_SPREAD:
            raise PolicyError(f"the policy is of {self.number.sum():,} agents; it is spread out up to {MAX_SPREAD:,}.")
        order = np.argsort(self.kind, kind="stable")
        return JointPolicy(tuple(self.plans.stored[g] for g in order.tolist() for _ in range(int(self.number[g]))))

    def fingerprint(self) -> str:
        """Return a digest that does not depend on the order of the groups."""
        rows = sorted(
            (int(k), int(n), blake2b(np.ascontiguousarray(table).tobytes()).hexdigest())
            for k, n, table in zip(self.kind, self.number, self.plans, strict=True)
        )
        return blake2b(repr(rows).encode(), digest_size=16).hexdigest()

    def summary(self) -> Summary:
        """Return what to show: the largest groups."""
        largest = np.argsort(-self.number, kind="stable")[:12]
        rows = tuple(
            (f"kind {self.kind[g]}", f"{self.number[g]:,}", "yes" if self.mixes[g] else "no") for g in largest.tolist()
        )
        more = "" if len(rows) == self.num_groups else f"showing 12 of {self.num_groups} groups, the largest"
        title = f"{int(self.number.sum()):,} agents in {counted(self.num_groups, 'group')}"
        return Summary(title, parts=(Table(("kind", "agents", "mixes"), rows, more),))

    __repr__, __str__, _repr_html_ = line, text, html


def _mixes(stored: Stored) -> bool:
    return bool(len(stored.mixed)) if isinstance(stored, CompactTable) else not are_certain(stored).all()
