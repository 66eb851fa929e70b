"""Exact judges of crowds, of devices that recommend, and of budgets on risk: rationals, brute force, no library.

A crowd is a dict as a local game is (`judge`), with `kinds` for its agents, `numbers` [K], `curves` (pairs of loads and
values) and, in `delay` [H or 1, E] and `load_costs` [k, H or 1, E], which curve. A device is judged by trying every map
from what an agent is recommended to what it does. A budget on risk is judged with sums that are never cut, and is paid
at the end of the episode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb
from typing import Any

import numpy as np

from oracles.judge import (
    ONE,
    ZERO,
    Chosen,
    Game,
    JointJudge,
    LocalJudge,
    NotHard,
    Policy,
    Process,
    at,
    judge,
    mixed,
    number,
    planned,
    row,
    split_prices,
    weighed,
)

# --- Crowds -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Groups:
    """Who plays what in a crowd."""

    kind: Sequence[int]
    number: Sequence[int]
    tables: Sequence[Any]  # G tables [H, S, A]


@dataclass(frozen=True)
class CrowdJudge:
    """Judges a crowd in groups; the load of a cell is a sum of independent draws, one for each member."""

    game: Game
    groups: Groups

    @property
    def thresholds(self) -> list[Fraction]:
        """α."""
        return [Fraction(limit) for limit in np.asarray(self.game["thresholds"]).tolist()]

    def costs(self) -> list[Fraction]:
        """V^{c_j}."""
        return [self._private_costs(j) + self._load_costs(j) for j in range(len(self.game["load_costs"]))]

    def _private_costs(self, j: int) -> Fraction:
        members = enumerate(self.groups.number)
        return sum((size * self._collected(g, lambda *w, g=g: self._cost(g, j, *w)) for g, size in members), ZERO)

    def _load_costs(self, j: int) -> Fraction:
        cells = product(range(self.game["horizon"]), range(self._resources))
        return sum((self._expected(h, e, None, *self._curve("load_costs", h, e, j)) for h, e in cells), ZERO)

    def gains(self, multipliers: Any) -> list[Fraction]:
        """What a member of each group could gain at most, by the bound of its multipliers [G, k]."""
        spent = self.costs()
        return [self._gain(g, spent, [Fraction(p) for p in own]) for g, own in enumerate(multipliers.tolist())]

    def _gain(self, g: int, spent: list[Fraction], prices: list[Fraction]) -> Fraction:
        @cache
        def reward(h: int, s: int, a: int) -> Fraction:
            used = (self._delay(g, h, e) for e in self._uses(g, h, s, a))
            return number(at(self._kind(g)["reward"], h)[s][a]) - sum(used, ZERO)

        @cache
        def cost(j: int, h: int, s: int, a: int) -> Fraction:
            return self._cost(g, j, h, s, a) + sum((self._rise(g, j, h, e) for e in self._uses(g, h, s, a)), ZERO)

        def charged(h: int, s: int, a: int) -> Fraction:
            return reward(h, s, a) - sum((p * cost(j, h, s, a) for j, p in enumerate(prices) if p), ZERO)

        kind = self._kind(g)
        states, actions = np.asarray(kind["reward"]).shape[1:]
        process = Chosen(
            self.game["horizon"], None, states, actions, charged, lambda h, s, a: row(at(kind["transition"], h)[s][a])
        )
        limit = ZERO
        for j, (price, most) in enumerate(zip(prices, self.thresholds, strict=True)):
            if price:
                limit += price * (most - spent[j] + self._collected(g, lambda *w, j=j: cost(j, *w)))
        return limit + planned(process, row(kind["initial"])) - self._collected(g, reward)

    def _kind(self, g: int) -> dict[str, Any]:
        found: dict[str, Any] = self.game["kinds"][self.groups.kind[g]]
        return found

    @property
    def _resources(self) -> int:
        return int(self.game["delay"].shape[1])

    def _uses(self, g: int, h: int, s: int, a: int) -> list[int]:
        return [e for e, used in enumerate(at(self._kind(g)["uses"], h)[s][a]) if used]

    def _cost(self, g: int, j: int, h: int, s: int, a: int) -> Fraction:
        table = self._kind(g)["cost"]
        return ZERO if table is None else number(at(table[j], h)[s][a])

    def _curve(self, name: str, h: int, e: int, *j: int) -> tuple[list[int], list[Fraction]]:
        table = self.game[name][j[0]] if j else self.game[name]
        loads, values = self.game["curves"][int(at(table, h)[e])]
        return loads.tolist(), [Fraction(each) for each in values.tolist()]

    def _delay(self, g: int, h: int, e: int) -> Fraction:
        return self._known(("delay", g, h, e), lambda: self._expected(h, e, g, *self._curve("delay", h, e), shift=1))

    def _rise(self, g: int, j: int, h: int, e: int) -> Fraction:
        def found() -> Fraction:
            curve = self._curve("load_costs", h, e, j)
            return self._expected(h, e, g, *curve, shift=1) - self._expected(h, e, g, *curve)

        return self._known(("rise", g, j, h, e), found)

    _cache: dict[Any, Any] = field(default_factory=dict)

    def _known(self, key: Any, compute: Callable[[], Any]) -> Any:
        if key not in self._cache:
            self._cache[key] = compute()
        return self._cache[key]

    def _followed(self, g: int) -> list[dict[tuple[int, int], Fraction]]:
        """How likely a member of a group is in each state and plays each action, by step."""

        def follow() -> list[dict[tuple[int, int], Fraction]]:
            kind, found = self._kind(g), []
            states = row(kind["initial"])
            for h in range(self.game["horizon"]):
                here = {
                    (s, a): p * chance
                    for s, p in states.items()
                    for a, chance in row(self.groups.tables[g][h][s]).items()
                }
                found.append(here)
                states = mixed((chance, row(at(kind["transition"], h)[s][a])) for (s, a), chance in here.items())
            return found

        return self._known(("followed", g), follow)  # type: ignore[no-any-return]

    def _collected(self, g: int, worth: Callable[[int, int, int], Fraction]) -> Fraction:
        steps = enumerate(self._followed(g))
        return weighed((p, worth(h, *pair)) for h, pairs in steps for pair, p in pairs.items())

    def _used(self, g: int, h: int, e: int) -> Fraction:
        def add() -> Fraction:
            return sum((p for (s, a), p in self._followed(g)[h].items() if e in self._uses(g, h, s, a)), ZERO)

        return self._known(("used", g, h, e), add)  # type: ignore[no-any-return]

    def _expected(
        self, h: int, e: int, without: int | None, loads: list[int], values: list[Fraction], *, shift: int = 0
    ) -> Fraction:
        """E f(shift + load) of a polyline, of all members but one of a group: its longest piece at the mean, and what
        it is off by at every load beyond that piece, which is few loads in a large crowd.
        """
        drawn, sure = [], shift
        for g, size in enumerate(self.groups.number):
            p, left = self._used(g, h, e), size - (g == without)
            sure += left if p == 1 else 0
            drawn += [(left, p)] if 0 < p < 1 and left else []
        most = sum(size for size, _ in drawn)
        pieces = range(len(loads) - 1)
        ends = [(max(loads[i], sure), min(loads[i + 1], sure + most)) for i in pieces]
        longest = max(pieces, key=lambda i: ends[i][1] - ends[i][0])
        low, high = ends[longest]

        def on(i: int, load: Any) -> Fraction:
            return values[i] + (values[i + 1] - values[i]) / (loads[i + 1] - loads[i]) * (load - loads[i])

        def off(load: int) -> Fraction:
            i = next(i for i in pieces if load <= loads[i + 1])
            return on(i, load) - on(longest, load)

        total = on(longest, sure + sum((size * p for size, p in drawn), ZERO))
        below = _tail(drawn, low - sure)
        above = _tail([(size, 1 - p) for size, p in drawn], sure + most - high)
        return (
            total
            + _over(below, [off(sure + m) for m in range(low - sure)])
            + _over(above, [off(sure + most - m) for m in range(sure + most - high)])
        )


def _tail(drawn: Sequence[tuple[int, Fraction]], width: int) -> tuple[list[int], int]:
    """How likely 0, 1, … of independent draws happen, below a width, as numerators over one denominator."""
    found, common = [1], 1
    for size, p in drawn if width > 0 else ():
        yes, no = p.numerator, p.denominator - p.numerator
        each = [comb(size, m) * yes**m * no ** (size - m) for m in range(min(size + 1, width))]
        longer = [0] * min(len(found) + len(each) - 1, width)
        for i, first in enumerate(found):
            for m, second in enumerate(each[: width - i]):
                longer[i + m] += first * second
        found, common = longer, common * p.denominator**size
    return found, common


def _over(law: tuple[list[int], int], values: list[Fraction]) -> Fraction:
    numerators, common = law
    total = weighed((Fraction(p), x) for p, x in zip(numerators, values, strict=False))
    return total / common


# --- Devices ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RotaJudge:
    """Judges policies of one game, one of which is drawn and announced."""

    judged: JointJudge | LocalJudge
    modes: Sequence[Policy]
    weights: Sequence[Any]  # stand for what they are divided by their exact sum

    @property
    def shares(self) -> list[Fraction]:
        """How often each mode is played."""
        given = [Fraction(each) for each in self.weights]
        return [each / sum(given) for each in given]

    def _mean(self, numbers: Sequence[Sequence[Fraction]]) -> list[Fraction]:
        return [weighed(zip(self.shares, column, strict=True)) for column in zip(*numbers, strict=True)]

    def costs(self) -> list[Fraction]:
        """V^{c_j}, on average."""
        return self._mean([self.judged.costs(mode) for mode in self.modes])

    def gain(self, agent: int, prices: Sequence[float]) -> Fraction:
        """What an agent that knows the mode gains at most; where λ_j is infinite, by what costs least in every mode.

        A deviation that keeps Σ w·V^{c_j} ≤ α_j spends the least in every mode, if those add up to α_j.
        """
        limits, hard = self.judged.thresholds, split_prices(prices)[1]
        least = [{j: self.judged.least_alone(mode, agent, j) for j in hard} for mode in self.modes]
        sums = {j: weighed((w, each[j]) for w, each in zip(self.shares, least, strict=True)) for j in hard}
        left = [j for j in hard if sums[j] < limits[j]]
        for j in sorted(hard, key=lambda j: sums[j] <= limits[j]):  # first of which even the least is too much
            if sums[j] > limits[j] or j in left:
                raise NotHard(sums[j], limits[j])
        gains = []
        for mode, own in zip(self.modes, least, strict=True):
            here = self.judged.with_thresholds([own.get(j, limit) for j, limit in enumerate(limits)])
            gains.append((here.gain(mode, agent, prices),))
        return self._mean(gains)[0]


@dataclass(frozen=True)
class DeviceJudge:
    """Judges a law of joint actions [H, S, *A], of which each agent sees its own part, or if `coarse` nothing."""

    process: Process
    law: Any
    coarse: bool

    def costs(self) -> list[Fraction]:
        """V^{c_j} if all do as the device says."""
        return [self._followed(lambda *w, j=j: self.process.cost(j, *w)) for j in range(self.process.constraints)]

    def gain(self, agent: int, prices: Sequence[float]) -> Fraction:
        """What an agent gains at most by the bound of its multipliers [k], among all maps of its recommendations."""
        charged = [Fraction(price) for price in prices]

        def worth(h: int, s: int, joint: tuple[int, ...]) -> Fraction:
            paid = sum((p * self.process.cost(j, h, s, joint) for j, p in enumerate(charged) if p), ZERO)
            return self.process.reward(agent, h, s, joint) - paid

        own = self.process.actions[agent]
        maps = list(product(range(own), repeat=own))
        if self.coarse:
            maps = [tuple(range(own)), *((a,) * own for a in range(own))]
        best = planned(self._chosen(agent, maps, worth), self.process.initial)
        limit = sum((p * most for p, most in zip(charged, self.process.thresholds, strict=True)), ZERO)
        return limit + best - self._followed(lambda *w: self.process.reward(agent, *w))

    def _followed(self, worth: Callable[..., Fraction]) -> Fraction:
        own = self.process.actions[0]
        return planned(self._chosen(0, [tuple(range(own))], worth), self.process.initial)

    def _chosen(self, agent: int, maps: list[tuple[int, ...]], worth: Callable[..., Fraction]) -> Chosen:
        game = self.process

        @cache
        def drawn(h: int, s: int) -> list[tuple[tuple[int, ...], Fraction]]:
            joints = list(product(*map(range, game.actions)))
            return [(joints[o], p) for o, p in row(self.law[h][s].reshape(-1)).items()]

        def outcomes(h: int, s: int, m: int) -> list[tuple[tuple[int, ...], Fraction]]:
            return [((*a[:agent], maps[m][a[agent]], *a[agent + 1 :]), p) for a, p in drawn(h, s)]

        return Chosen(
            game.steps,
            game.discount,
            game.states,
            len(maps),
            cache(lambda h, s, m: weighed((p, worth(h, s, joint)) for joint, p in outcomes(h, s, m))),
            cache(lambda h, s, m: mixed((p, game.moves(h, s, joint)) for joint, p in outcomes(h, s, m))),
        )


# --- Budgets on risk --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Counted:
    """One cost of a joint game, with its sum so far in the state: (s, x), x never cut."""

    game: Game
    cost: int
    limit: Fraction  # the largest limit on the sum

    @property
    def unit(self) -> Fraction:
        """The largest number of which every entry is a whole multiple."""
        found = ZERO
        for entry in {Fraction(each) for each in self.game["costs"][self.cost].ravel().tolist()}:
            rest = entry
            while rest:
                found, rest = rest, found % rest
        return found or ONE

    @property
    def levels(self) -> int:
        """How many sums a policy tells apart: those up to the limit that can occur, and one for all above."""
        table = self.game["costs"][self.cost]
        most = sum(Fraction(float(at(table, h).max())) for h in range(self.game["horizon"]))
        return int(min(self.limit // self.unit, most / self.unit)) + 2

    def process(self, kept: Sequence[int], ends: Sequence[Callable[[Fraction], Fraction]], limits: Any) -> Process:
        """The game with the expected costs that are kept, and functions of the sum that are paid at the end."""
        base = judge(self.game).process
        last = base.steps - 1

        def paid(h: int, state: Any, joint: tuple[int, ...]) -> Fraction:
            return state[1] + base.cost(self.cost, h, state[0], joint)  # type: ignore[no-any-return]

        def cost(j: int, h: int, state: Any, joint: tuple[int, ...]) -> Fraction:
            if j < len(kept):
                return base.cost(kept[j], h, state[0], joint)
            return ends[j - len(kept)](paid(h, state, joint)) if h == last else ZERO

        def moves(h: int, state: Any, joint: tuple[int, ...]) -> Any:
            after = paid(h, state, joint)
            return {(s, after): p for s, p in base.moves(h, state[0], joint).items()}

        return replace(
            base,
            constraints=len(kept) + len(ends),
            initial={(s, ZERO): p for s, p in base.initial.items()},  # type: ignore[misc]
            thresholds=[Fraction(each) for each in limits],
            moves=cache(moves),
            reward=lambda i, h, state, joint: base.reward(i, h, state[0], joint),  # type: ignore[index]
            cost=cache(cost),
        )

    def seen(self, policy: Policy) -> list[list[Any]]:
        """A policy on states s·levels + (x in units, cut), as one on (s, x)."""
        return [[_BySum(table, self.unit, self.levels) for table in own] for own in policy]


@dataclass(frozen=True)
class _BySum:
    table: Any
    unit: Fraction
    levels: int

    def __getitem__(self, state: tuple[int, Fraction]) -> Any:
        s, spent = state
        return self.table[s * self.levels + min(int(spent / self.unit), self.levels - 1)]


@dataclass(frozen=True)
class RiskJudge:
    """Judges policies on (s, x); answers as a `JointJudge` does."""

    counted: Counted
    inner: JointJudge
    _known: list[Any] = field(default_factory=list)  # the last policy, as given and as seen

    @property
    def thresholds(self) -> list[Fraction]:
        """α."""
        return self.inner.thresholds

    def with_thresholds(self, thresholds: Any) -> RiskJudge:
        """The judge of the same game with other thresholds."""
        return RiskJudge(self.counted, self.inner.with_thresholds(thresholds), self._known)

    def _seen(self, policy: Policy) -> Any:
        if not self._known or self._known[0] is not policy:
            self._known[:] = [policy, self.counted.seen(policy)]
        return self._known[1]

    def costs(self, policy: Policy) -> list[Fraction]:
        """V^{c_j}."""
        return self.inner.costs(self._seen(policy))

    def values(self, policy: Policy) -> list[Fraction]:
        """V^{r_i}."""
        return self.inner.values(self._seen(policy))

    def gain(self, policy: Policy, agent: int, prices: Sequence[float]) -> Fraction:
        """What one agent could gain at most, by the bound of its multipliers."""
        return self.inner.gain(self._seen(policy), agent, prices)

    def least_cost(self, weights: Any) -> Fraction:
        """What one planner who chooses all actions pays at least."""
        return self.inner.least_cost(weights)

    def with_process(self, process: Process) -> RiskJudge:
        """The judge of the same policies with other costs and thresholds."""
        return RiskJudge(self.counted, JointJudge(process, self.inner._known), self._known)


def cvar(sums: dict[Fraction, Fraction], level: Fraction) -> Fraction:
    """The mean of the worst 1 − level of a law: whole atoms from the top, and a part of the last one."""
    left, total = 1 - level, ZERO
    for value in sorted(sums, reverse=True):
        share = min(left, sums[value])
        total, left = total + share * value, left - share
    return total / (1 - level)
