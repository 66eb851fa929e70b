"""From a fluid to groups of whole agents, and moves between groups. A search: nothing of it is believed.

- `few_groups`: a linear program keeps the numbers of kinds, the mean of every load, and its variance where a curve
  bends, and leaves about as many columns as there are equations.
- `whole_numbers`: agent by agent to the plan that mends the error of the loads so far.
- `Groups.move`: at common multipliers, members of one group go to their best plan, one group at a time; a batch is
  taken only if the last of them does not wish to be back, so that the potential rises.
- `Groups.spend`: one agent plays its exact constrained best response, which mixes two plans, and uses up what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, IntArray
from cmpg.deadline import check_time
from cmpg.equilibrium.crowds.fluid import Columns, Fluid, columns_of
from cmpg.equilibrium.crowds.kinds import Kinds, Ways
from cmpg.equilibrium.crowds.laws import Laws
from cmpg.equilibrium.crowds.prices import GroupResponses, own_prices
from cmpg.games.crowd.game import CrowdGame
from cmpg.games.crowd.policy import CrowdPolicy

SWEEP = 32
"""So many groups move after one look at all of them, at most."""


def few_groups(fluid: Fluid) -> FloatArray:
    """Return numbers of few of the columns with the same loads; those of the fluid where that fails: [c]."""
    from scipy.optimize import linprog  # heavy

    game, columns = fluid.game, fluid.columns
    agents, count = float(game.num_agents), game.num_kinds
    numbers = np.where(fluid.numbers > 1e-6 * game.numbers[columns.kind], fluid.numbers, 0.0)
    lost = np.bincount(columns.kind, weights=numbers, minlength=count) == 0  # the fluid overflowed
    numbers = np.where(lost[columns.kind], 1.0, numbers)
    numbers *= (game.numbers / np.bincount(columns.kind, weights=numbers, minlength=count))[columns.kind]
    kept = np.flatnonzero(numbers > 0)
    some = columns[kept]
    members = game.numbers[some.kind].astype(np.float64)
    load, variance = numbers @ columns.used, numbers @ columns.variances
    worth = fluid.worth
    best = np.full(count, -np.inf)
    np.maximum.at(best, columns.kind, worth)
    used = np.flatnonzero(load > 0)
    # The variance matters where a curve bends within some deviations of the load.
    near = np.zeros(load.shape, dtype=bool)
    distance = np.abs(fluid.prices.kinks - load[fluid.cells][None, :, None]).min(axis=(0, 2))
    near[fluid.cells] = distance < 12 * np.sqrt(variance[fluid.cells] + 1)
    bends = np.flatnonzero(near & (variance > 1e-3))
    scale = agents / np.maximum(variance[bends], 1.0) / 20
    rows = [
        sp.csr_array(some.used[:, used].T * members / agents),
        sp.csr_array((some.variances[:, bends] * scale).T * members / agents),
        sp.csr_array((np.ones(len(kept)), (some.kind, np.arange(len(kept)))), shape=(count, len(kept))),
    ]
    right = np.concatenate([load[used] / agents, variance[bends] * scale / agents, np.ones(count)])
    regret = (best[some.kind] - worth[kept]) / fluid.unit
    price = (regret + 1e-5 * some.variances.sum(axis=1)) * members / agents
    if not np.isfinite(price).all():
        return np.asarray(numbers)
    found = linprog(
        price,
        A_eq=sp.vstack(rows),
        b_eq=right,
        bounds=(0, None),
        method="highs-ds",
    )
    if found.status != 0:
        return numbers
    fewer = np.zeros(len(numbers))
    fewer[kept] = found.x * members
    return fewer


def whole_numbers(game: CrowdGame, columns: Columns, numbers: FloatArray) -> IntArray:
    """Return whole numbers with the sums of the kinds, whose loads differ as little as may be: [c]."""
    whole = np.floor(numbers + 1e-6).astype(np.int64)
    error = (whole - numbers) @ columns.used
    by_kind = [np.flatnonzero(columns.kind == k) for k in range(game.num_kinds)]
    for k, own in enumerate(by_kind):
        some = own[numbers[own] > min(0.02, float(numbers[own].max()) / 2)]
        missing = int(game.numbers[k] - whole[own].sum())
        for _ in range(missing):
            after = error + columns.used[some]
            best = some[int(np.argmin((after * after).sum(axis=1) - 2.0 * (numbers - whole)[some]))]
            whole[best] += 1
            error = error + columns.used[best]
        for _ in range(-missing):
            best = some[int(np.argmax(whole[some]))]
            whole[best] -= 1
            error = error - columns.used[best]
    return whole


@dataclass
class Groups:
    """Groups of whole agents, while they move; laws of loads follow every move."""

    kinds: Kinds
    kind: IntArray  # [G]
    number: IntArray  # [G]; some may be empty
    ways: Ways
    tables: list[Any]  # G of [H, S] actions, or [H, S, A] probabilities
    laws: Laws
    known: dict[tuple[int, bytes], int]

    @classmethod
    def of(cls, kinds: Kinds, columns: Columns, number: IntArray) -> Groups:
        """Begin with numbers of columns."""
        some = np.flatnonzero(number > 0)
        columns, number = columns[some], number[some]
        ways = Ways(columns.used, columns.values, columns.costs)
        known = {key: g for g, key in enumerate(columns.keys())}
        laws = Laws(kinds.game, number, columns.used)
        return cls(kinds, columns.kind, number.copy(), ways, list(columns.actions), laws, known)

    @property
    def live(self) -> IntArray:
        """The groups that have members."""
        return np.flatnonzero(self.number > 0)

    def costs(self) -> FloatArray:
        """Return what all agents cost: [k]."""
        return self.laws.costs() + self.number @ self.ways.costs

    def seen(self, groups: IntArray) -> tuple[Ways, FloatArray]:
        """Return where groups lead, and the prices that a member of each meets: [1 + k, G, H·E]."""
        ways = Ways(self.ways.used[groups], self.ways.values[groups], self.ways.costs[groups])
        return ways, self.laws.prices(ways.used)

    def shift(self, source: int, target: int, number: int) -> None:
        """Let members of one group join another."""
        self.number[source] -= number
        self.number[target] += number
        self.laws.move(self.ways.used[source], -number)
        self.laws.move(self.ways.used[target], number)

    def refresh(self) -> None:
        """Compute the laws again where moves have led too far away."""
        if self.laws.stale:
            self.laws = Laws(self.kinds.game, self.number, self.ways.used)

    def group_of(self, found: Columns, table: Any) -> int:
        """Return the group of one column, made if it is not there."""
        key = found.keys()[0]
        if key not in self.known:
            self.known[key] = len(self.number)
            self.kind = np.append(self.kind, found.kind)
            self.number = np.append(self.number, 0)
            before = self.ways
            self.ways = Ways(
                np.concatenate([before.used, found.used]),
                np.concatenate([before.values, found.values]),
                np.concatenate([before.costs, found.costs]),
            )
            self.tables.append(table)
        return self.known[key]

    def move(self, multipliers: FloatArray, *, tolerance: float, most: int) -> tuple[float, int]:
        """Let groups move at common multipliers until no agent gains more than `tolerance`, or `most` moves are made.

        Returns
        -------
        float, int
            The largest gain that is left, and how many moves were made.
        """
        largest, moves = np.inf, 0
        while moves < most:
            check_time()
            self.refresh()
            live = self.live
            ways, prices = self.seen(live)
            charged = prices[0] + np.einsum("j,jgc->gc", multipliers, prices[1:])
            plans = self.kinds.plan(self.kind[live], charged, np.tile(multipliers, (len(live), 1)))
            own = ways.values - ways.costs @ multipliers - (ways.used * charged).sum(axis=1)
            gains = plans.values - own
            order = np.argsort(-gains, kind="stable")[: min(SWEEP, most - moves)].tolist()
            largest, before = float(gains[order[0]]), moves
            # Plans of all groups are dear: those that gain most move one after the other, if they still gain.
            for g in order:
                if gains[g] <= tolerance:
                    break
                source = int(live[g])
                found = columns_of(self.kinds, self.kind[source : source + 1], plans.actions[g : g + 1])
                target = self.group_of(found, plans.actions[g])
                if target == source:
                    continue
                gain = self._gain(source, target, multipliers)
                moves += gain > tolerance and self._batch(source, target, gain, multipliers)
            if moves == before:
                break
        return largest, moves

    def _batch(self, source: int, target: int, gain: float, multipliers: FloatArray) -> bool:
        """Move as many members as gain by it: the last of them must not wish to be back. False: not even one does."""
        change = self.ways.used[target] - self.ways.used[source]
        bent = float((change * change) @ self.laws.stiffness(multipliers))
        far = (2 * np.sqrt(self.laws.variance) + 5) / np.maximum(np.abs(change), 1e-9)
        # In floats as long as they may be infinite; nan, of numbers that overflow, is one at a time.
        wished = min(float(self.number[source]), 0.5 * gain / max(bent, 1e-300), float(far.min()))
        number = int(wished) if wished >= 1 else 1
        while True:
            self.shift(source, target, number)
            if self._gain(target, source, multipliers) <= 0:
                return True
            self.shift(target, source, number)
            if number == 1:
                return False
            number = max(1, number // 3)

    def _gain(self, group: int, other: int, multipliers: FloatArray) -> float:
        """Return what a member of a group gains by going to another one."""
        _, prices = self.seen(np.array([group]))
        charged = (prices[0] + np.einsum("j,jgc->gc", multipliers, prices[1:]))[0]

        def worth(g: int) -> float:
            return float(self.ways.values[g] - self.ways.costs[g] @ multipliers - self.ways.used[g] @ charged)

        return worth(other) - worth(group)

    def responses(self, multipliers: FloatArray, margin: FloatArray) -> tuple[IntArray, GroupResponses]:
        """Return the constrained best response of a member of each group, with so much of each threshold kept back."""
        self.refresh()
        live = self.live
        ways, prices = self.seen(live)
        slack = self.kinds.game.thresholds - margin - self.costs()
        return live, own_prices(self.kinds, self.kind[live], ways, prices, slack, multipliers)

    def spend(self, live: IntArray, found: GroupResponses, best: int) -> None:
        """Let one member of a group play its constrained best response, which mixes two plans."""
        source = int(live[best])
        kind = int(self.kind[source])
        share = found.shares[best]
        tables = found.safe.actions[best], found.eager.actions[best]
        ways = [self.kinds.occupancies(kind, each) for each in tables]
        both = (1 - share) * ways[0] + share * ways[1]
        total = both.sum(axis=2, keepdims=True)
        fallback = np.eye(self.kinds.actions)[tables[0][:, : self.kinds.states[kind]]]
        mixed = self.kinds.padded(np.where(total > 0, both / np.where(total > 0, total, 1.0), fallback))
        led = self.kinds.follow(np.array([kind]), mixed[None])
        column = Columns(np.array([kind]), led.used, led.values, led.costs, np.zeros((1, 1, 1), dtype=np.int64))
        target = self.group_of(column, tables[0] if share == 0 else mixed)
        if target != source:
            self.shift(source, target, 1)

    def policy(self) -> CrowdPolicy:
        """Return the groups as a policy, kind after kind, the largest first."""
        live = self.live
        order = live[np.lexsort((-self.number[live], self.kind[live]))]
        return CrowdPolicy(
            self.kind[order],
            self.number[order],
            tuple(self.kinds.table(int(self.kind[g]), self.tables[g]) for g in order.tolist()),
        )
