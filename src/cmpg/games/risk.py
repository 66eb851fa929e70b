"""Budgets on risk: augmented games, whose states also say what has been spent so far; and the law of a cost.

`Chance("collisions", at_most=0, probability=0.02)` demands P(Σ_h c_h > 0) ≤ 0.02. In the game whose states are (s, x),
x the cost so far in whole units, that is an expected cost: 1 at the step at which the sum passes `at_most`. Since no
cost is negative, what exceeds the limit stays above it, so x is cut one unit above the limit: the states grow by as
many levels as there are units below it. Several budgets on one cost share a counter; several costs have one each, and
the states are the product.

`CVaR("collisions", level=0.9, at_most=0.5)` demands that the worst 10 % of episodes cost at most 0.5 on average:
min_t t + E(C − t)⁺/(1 − β) ≤ α. For a given t that is an expected cost as well, E(C − t)⁺ ≤ (1 − β)(α − t), paid as the
sum passes t; and the minimum is attained at a sum t that can occur, which is at most α. So a policy keeps the budget
if and only if it is feasible in *one* of the games t = 0, …, α (`CVaRGame`), and a deviation may choose another t than
the policy: a certificate needs multipliers for each. Where there are many t, one relaxed game stands for all of an
interval [t₁, t₂], since E(C − t₂)⁺ ≤ E(C − t)⁺ ≤ (1 − β)(α − t) ≤ (1 − β)(α − t₁) for every t in it. Beyond t a step
adds what it costs, in full; so x need not be known above the largest t, and is cut there, while costs are not.

*Class of policies.* A policy of the augmented game depends on (h, s, x): every agent sees what was spent so far. (s, x)
is a Markov state, and the probability an expected cost on it; so a certificate says that no agent gains by any
deviation that keeps every budget, whatever it remembers. That is another game than the one with policies on s. One
agent plays two steps; "risky" pays 1, and costs 1 if a coin shows heads, which the next state tells; P(cost > 1) = 0.
By policies on s it reaches 1, by policies on (s, x) 1.5: risky again if the first coin was tails. A policy on s is one
on (s, x) that ignores x (`lifted`), and can be certified against all of these deviations; a Nash policy *among*
policies on s is not claimed.

*Units.* Costs must be whole multiples of one unit, exactly. Rounding them up would be safe for the budget and rounding
them down for the deviations, and a certificate needs both; so costs with too fine a unit are refused, with the number
of levels that they would take. A cost is what a table says of (h, s, a): if that is itself the mean of a random bill,
the law is that of the means; put the bill into the state instead.

*Potential.* A common reward (C1) stays common, and differences that no joint policy changes (C4) stay so. Where no
action moves the state (C2), actions move x, and others may react to it: such a game has no potential in general after
augmentation. `potential_proof` and `check_potential` examine the augmented game as any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import floor, lcm, prod
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, IntArray, to_floats
from cmpg.errors import GameError, TooLargeError, UnsupportedError
from cmpg.games.game import Game
from cmpg.games.joint.game import JointGame, as_joint
from cmpg.games.local.game import LocalGame
from cmpg.games.rationals import is_exact
from cmpg.policy import JointPolicy, check_is_policy
from cmpg.summaries import Cell, Summary, Table, fields_line, html, line, significant, text

MAX_LEVELS = 4096
"""A counter with more levels than this is refused: its unit is too fine."""

MAX_ENTRIES = 20_000_000
"""Augmented games with more entries in their transition than this are refused."""

TIE = 1e-9
"""Values of t + E(C − t)⁺ / (1 − β), in units, that differ by less than this share are equal as far as floats tell."""

MAX_ATOMS = 100_000
"""The law of a cost with more different sums than this is not computed."""


def _number_in(word: str, words: str, example: str) -> float:
    """Read a number of a budget: a decimal is the float nearest to it, as everywhere; a fraction must be a float."""
    try:
        exact = Fraction(word)
        near = float(exact)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise GameError(f"{words!r}: {word} must be a number, as in {example!r}.") from None
    if "/" in word and Fraction(near) != exact:
        # What is claimed and proved would be another budget than the one that is written.
        raise GameError(
            f"{words!r}: budgets on risk are decimals, and {word} is none. Write the one that you mean, such as "
            f"{near!r}."
        )
    return near


@dataclass(frozen=True)
class Chance:
    """P(Σ_h c_h > at_most) ≤ probability, for the cost of one constraint.

    Examples
    --------
    >>> Chance.of("collisions>0:0.02")
    Chance(cost='collisions', at_most=0.0, probability=0.02)
    """

    cost: str | int  # the name of a constraint of the game, or its number
    at_most: float
    probability: float

    @classmethod
    def of(cls, words: str) -> Chance:
        """Read `cost>limit:probability`, as the command line writes it."""
        found = re.fullmatch(r"\s*(.+?)\s*>\s*([-+0-9.eE/]+)\s*:\s*([-+0-9.eE/]+)\s*", words)
        if found is None:
            raise GameError(f"{words!r} is no budget on a probability; write it as 'collisions>0:0.02'.")
        return cls(found[1], *(_number_in(each, words, "collisions>0:0.02") for each in found.groups()[1:]))

    def name(self, cost: str) -> str:
        """Return what the constraint is called in the augmented game."""
        return f"P({cost} > {self.at_most:g})"


@dataclass(frozen=True)
class CVaR:
    """The worst 1 − level of all episodes cost at most `at_most` on average: CVaR_level(Σ_h c_h) ≤ at_most.

    Examples
    --------
    >>> CVaR.of("collisions:0.9:0.5")
    CVaR(cost='collisions', level=0.9, at_most=0.5)
    """

    cost: str | int  # the name of a constraint of the game, or its number
    level: float  # β, from 0 (the mean of all episodes) to less than 1
    at_most: float

    @classmethod
    def of(cls, words: str) -> CVaR:
        """Read `cost:level:limit`, as the command line writes it."""
        found = re.fullmatch(r"\s*(.+?)\s*:\s*([-+0-9.eE/]+)\s*:\s*([-+0-9.eE/]+)\s*", words)
        if found is None:
            raise GameError(f"{words!r} is no budget on a CVaR; write it as 'collisions:0.9:0.5'.")
        return cls(found[1], *(_number_in(each, words, "collisions:0.9:0.5") for each in found.groups()[1:]))

    def name(self, cost: str) -> str:
        """Return what the constraint is called in certificates."""
        return f"CVaR {self.level:g} of {cost}"


Budget: TypeAlias = Chance | CVaR
Form = TypeVar("Form", JointGame, LocalGame)


@dataclass(frozen=True, eq=False)
class Counter:
    """What has been spent of one cost so far, in whole units, up to one unit above the largest limit."""

    cost: int  # the number of the constraint
    unit: Fraction
    levels: int
    amounts: IntArray  # [H or 1, S, ΠA]: what a step adds, in units

    __repr__ = fields_line


def with_chances(game: Form, *budgets: Chance, keep_expected: bool = True) -> Form:
    """Return the game whose states also say what was spent so far, with a constraint for each budget.

    Parameters
    ----------
    game
        A joint game with a finite horizon, whose costs are not negative and have a common unit; or a local game, where
        costs of one agent's own are counted in its state ("fuel of robot 1"), and costs of resources are limited by
        the sum over steps of the probability that they are above zero (`cmpg.games.local.risk`).
    budgets
        Limits on probabilities.
    keep_expected
        Keep the thresholds on expected costs beside the budgets; False leaves them out for costs that have a budget.

    Raises
    ------
    TooLargeError
        The augmented game would be too large; the message has the sizes.
    GameError
        A cost is negative, has no common unit, or the game is discounted.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world
    >>> risky = with_chances(grid_world(), Chance("collisions", at_most=0, probability=0.02))
    >>> risky.num_states, risky.constraint_names, risky.thresholds
    (512, ('collisions', 'P(collisions > 0)'), array([0.1 , 0.02]))
    """
    if any(isinstance(each, CVaR) for each in budgets):
        raise GameError("a budget on a CVaR is kept in one of several games: use `with_cvar`.")
    if isinstance(game, LocalGame):
        from cmpg.games.local.risk import with_local_chances  # few games have such budgets

        _check_budgets(budgets)
        return with_local_chances(game, budgets, keep_expected=keep_expected)
    return _built(_checked(game, budgets), budgets, keep_expected=keep_expected)


def _built(joint: JointGame, budgets: Sequence[Budget], *, keep_expected: bool) -> JointGame:
    """Return the game on (s, x), with the expected costs that stay and a constraint for each chance."""
    counters = _counters(joint, budgets)
    chances = [each for each in budgets if isinstance(each, Chance)]
    levels = tuple(each.levels for each in counters)
    _require_size(joint, levels)
    cells = prod(levels)
    indices = np.array(np.unravel_index(np.arange(cells), levels))  # [counters, cells]
    steps = _num_tables(joint, counters)
    matrices, charges = [], []
    for step in range(steps):
        after = np.stack(
            [
                np.minimum(index + _cut(each, step)[..., None], each.levels - 1)  # [S, ΠA, cells]
                for each, index in zip(counters, indices, strict=True)
            ]
        )
        matrices.append(augmented_rows(_matrix(joint, step), np.ravel_multi_index(tuple(after), levels), cells))
        charges.append(_passing(joint, chances, counters, indices=indices, after=after))
    costs, limits, names = _expected(joint, budgets, cells, keep=keep_expected)
    chance = np.moveaxis(np.stack(charges), 0, 1)
    chance = chance.reshape(len(chances), steps, joint.num_states * cells, *joint.num_actions)
    every = max(costs.shape[1], steps)
    stretched = [np.broadcast_to(each, (len(each), every, *each.shape[2:])) for each in (costs, chance)]
    rewards = np.repeat(to_floats(joint.rewards), cells, axis=2)
    return JointGame(
        transition=tuple(matrices),
        rewards=rewards,
        costs=np.concatenate(stretched),
        thresholds=[*limits, *(budget.probability for budget in chances)],
        initial=np.kron(to_floats(joint.initial), np.eye(cells)[0]),
        horizon=joint.horizon,
        agent_names=joint.agent_names,
        state_names=_state_names(joint, counters, indices),
        action_names=joint.action_names,
        constraint_names=[*names, *(each.name(_name(joint, _number(joint, each))) for each in chances)],
    )


def _num_tables(game: JointGame, counters: Sequence[Counter]) -> int:
    """Return how many steps have tables of their own."""
    kept = game.num_steps if game.is_sparse else len(game.transition)
    return max(kept, *(len(each.amounts) for each in counters))


def _cut(counter: Counter, step: int) -> IntArray:
    """Return what a step adds to a counter, in units, cut at its last level: [S, ΠA]."""
    cut: IntArray = np.minimum(_at(counter.amounts, step), counter.levels - 1)
    return cut


Levels: TypeAlias = tuple[int, ...]  # t of each CVaR budget, in units of its cost


@dataclass(frozen=True, eq=False)
class CVaRGame:
    """A game with budgets on CVaR: what is feasible in it is what is feasible in one of the games `at(t)`.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world
    >>> risky = with_cvar(grid_world(), CVaR("collisions", level=0.5, at_most=1.0))
    >>> risky.last, risky.at((0,)).constraint_names
    ((1,), ('collisions', 'E(collisions − 0)⁺'))
    """

    original: JointGame
    budgets: tuple[CVaR, ...]
    base: JointGame  # on (s, x): expected costs that stay, and chances
    counters: tuple[Counter, ...]  # of all costs that are counted

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """What the constraints are called in the user's words: those of the base, then the CVaR budgets."""
        own = [each.name(_name(self.original, _number(self.original, each))) for each in self.budgets]
        return (*self.base.names.all_constraints(self.base.num_constraints), *own)

    @property
    def thresholds(self) -> FloatArray:
        """The limits in the user's words, in the order of `constraint_names`."""
        return np.array([*self.base.thresholds, *(each.at_most for each in self.budgets)])

    @cached_property
    def units(self) -> tuple[Fraction, ...]:
        """The unit of each budget's cost."""
        return tuple(self._counter(each).unit for each in self.budgets)

    @property
    def last(self) -> Levels:
        """The largest t of each budget, in units: a larger one is more than its limit, or than any sum."""
        counters = [self._counter(each) for each in self.budgets]
        limits = zip(self.budgets, counters, strict=True)
        return tuple(min(floor(Fraction(budget.at_most) / own.unit), own.levels - 2) for budget, own in limits)

    def _counter(self, budget: CVaR) -> Counter:
        number = _number(self.original, budget)
        return next(each for each in self.counters if each.cost == number)

    def limits(self, low: Levels) -> list[Fraction]:
        """Return (1 − β)(α − t) of each budget, in units, exactly."""
        return [
            (1 - Fraction(budget.level)) * (Fraction(budget.at_most) / unit - t)
            for budget, unit, t in zip(self.budgets, self.units, low, strict=True)
        ]

    def at(self, t: Levels) -> JointGame:
        """Return the game whose feasible policies keep every budget by these t; its limits are rounded down."""
        return self.between(t, t, up=False)

    def between(self, low: Levels, high: Levels, *, up: bool = True) -> JointGame:
        """Return a game in which everything is feasible that is so at a t from `low` to `high`; rounded up or down."""
        charges = [self._charges(budget, t) for budget, t in zip(self.budgets, high, strict=True)]
        every = max(self.base.costs.shape[1], *(each.shape[1] for each in charges))
        stretched = [np.broadcast_to(each, (len(each), every, *each.shape[2:])) for each in (self.base.costs, *charges)]
        limits = [_rounded(each, up=up) for each in self.limits(low)]
        costs = (_name(self.original, _number(self.original, each)) for each in self.budgets)
        parts = zip(costs, self.units, high, strict=True)
        names = [f"E({cost} − {float(unit * t):g})⁺" for cost, unit, t in parts]
        names = [f"{name} ({j + 1})" if names.count(name) > 1 else name for j, name in enumerate(names)]
        return self.base.with_constraints(
            np.concatenate(stretched),
            [*self.base.thresholds, *limits],
            [*self.base.names.all_constraints(self.base.num_constraints), *names],
        )

    def _charges(self, budget: CVaR, t: int) -> FloatArray:
        """Return what a step adds to (x − t)⁺, in units: [1, H or 1, S·cells, *A]."""
        index = [each.cost for each in self.counters].index(_number(self.original, budget))
        levels = tuple(each.levels for each in self.counters)
        spent = np.array(np.unravel_index(np.arange(prod(levels)), levels))[index]  # [cells]
        found = []
        for step in range(len(self.counters[index].amounts)):
            amounts = _at(self.counters[index].amounts, step).astype(np.float64)[:, None, :]  # [S, 1, ΠA]
            short = np.maximum(t - spent, 0)[None, :, None]  # above t every unit counts, wherever x is cut
            found.append(np.maximum(amounts - short, 0.0))
        table = np.stack(found).reshape(1, len(found), self.base.num_states, *self.base.num_actions)
        return np.asarray(table)

    def chosen(self, policy: JointPolicy) -> list[Levels]:
        """Return where the CVaR under a policy is attained, as far as t is allowed; several t where they tie."""
        found, tables = [], policy.floats()
        for budget, last in zip(self.budgets, self.last, strict=True):
            # In units, which are at least one: the sums themselves may be subnormal, or more than any float.
            _, sums, probabilities = _law_in_units(self.paying, tables, _number(self.original, budget))
            sums = sums.astype(np.float64)
            known = sorted({min(int(each), last) for each in sums.tolist()})
            worth = [t + float(np.maximum(sums - t, 0.0) @ probabilities) / (1 - budget.level) for t in known]
            tied = [t for t, each in zip(known, worth, strict=True) if each <= min(worth) + TIE * (1 + abs(min(worth)))]
            found.append(tied)
        return list(product(*found))  # the last t has the least rounding in it

    def laws(self, policy: JointPolicy) -> tuple[CostLaw, ...]:
        """Return the distribution of every cost of the original game under a policy on (s, x)."""
        return cost_law(self.paying, policy)

    @cached_property
    def paying(self) -> JointGame:
        """The game on (s, x) with the costs of the original: what is played and measured."""
        cells = self.base.num_states // self.original.num_states
        costs = np.repeat(to_floats(self.original.costs), cells, axis=2)
        names = self.original.names.all_constraints(self.original.num_constraints)
        return self.base.with_constraints(costs, self.original.thresholds, names)

    def levels_text(self, t: Levels) -> str:
        """Return t in the units of the costs."""
        return ", ".join(f"{float(unit * each):g}" for unit, each in zip(self.units, t, strict=True))

    def summary(self) -> Summary:
        """Return what to show: the budgets and the sizes."""
        limits = ", ".join(
            f"{name} ≤ {limit:g}" for name, limit in zip(self.constraint_names, self.thresholds, strict=True)
        )
        number = prod(last + 1 for last in self.last)
        return Summary(
            "game with budgets on CVaR", f"{limits}; {self.base.num_states:,} states, {number:,} values of t"
        )

    __repr__, __str__, _repr_html_ = line, text, html


def _rounded(limit: Fraction, *, up: bool) -> float:
    """Return a float on one side of an exact limit."""
    near = float(limit)
    if (Fraction(near) >= limit) if up else (Fraction(near) <= limit):
        return near
    return float(np.nextafter(near, np.inf if up else -np.inf))


def with_cvar(game: JointGame, *budgets: Budget, keep_expected: bool = True) -> CVaRGame:
    """Return a game with budgets on CVaR, and on probabilities if there are some; `solve` and `certify` take it.

    Parameters
    ----------
    game
        A joint game with a finite horizon, whose costs are not negative and have a common unit.
    budgets
        Limits on CVaR, at least one, and on probabilities.
    keep_expected
        Keep the thresholds on expected costs beside the budgets; False leaves them out for costs that have a budget.

    Examples
    --------
    >>> import cmpg
    >>> from cmpg.scenarios import grid_world
    >>> risky = with_cvar(grid_world(), CVaR("collisions", level=0.9, at_most=0.5), keep_expected=False)
    >>> result = cmpg.solve(risky)
    >>> result.status.name, result.values.round(6), result.costs.round(6)
    ('CERTIFIED', array([23.05, 23.05]), array([0.5]))
    """
    joint = _checked(game, budgets)
    limited = tuple(each for each in budgets if isinstance(each, CVaR))
    if not limited:
        raise GameError("no budget on a CVaR is given: use `with_chances`.")
    base = _built(joint, budgets, keep_expected=keep_expected)
    return CVaRGame(joint, limited, base, tuple(_counters(joint, budgets)))


def lifted(policy: JointPolicy, augmented: JointGame) -> JointPolicy:
    """Return a policy on the states of the game as one on those of its augmented game, which ignores what was spent.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world
    >>> game = grid_world()
    >>> risky = with_chances(game, Chance("collisions", at_most=0, probability=0.02))
    >>> policy = lifted(game.uniform_policy(), risky)
    >>> bool(np.allclose(risky.at(policy).values, game.at(game.uniform_policy()).values))
    True
    """
    states = policy.shapes[0][1]
    cells, rest = divmod(augmented.num_states, states)
    if rest or cells == 0:
        raise GameError(f"the policy is one on {states} states; the augmented game has {augmented.num_states}.")
    return JointPolicy([np.repeat(np.asarray(table), cells, axis=1) for table in policy])


def augmented_sizes(game: JointGame, *budgets: Budget) -> tuple[int, int]:
    """Return how many states the augmented game would have, and how many entries its transition: before it is built.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world
    >>> augmented_sizes(grid_world(), Chance("collisions", at_most=0, probability=0.02))
    (512, 8192)
    """
    joint = _checked(game, budgets)
    return _sizes(joint, tuple(each.levels for each in _counters(joint, budgets)))


def _checked(game: Game, budgets: Sequence[Any]) -> JointGame:
    joint = as_joint(game, wanted="has no budgets on risk")
    if joint.horizon is None:
        advice = "What is spent so far has no last step in it. Use a finite horizon."
        raise UnsupportedError("discounted game", "has no budgets on risk", advice)
    if is_exact(joint):
        raise GameError("an augmented game is built from floats: leave `exact` out, and give decimals, not fractions.")
    if joint.binds is not None:
        raise GameError("budgets on risk bind all agents; this game has constraints that bind some only.")
    _check_budgets(budgets)
    for budget in budgets:
        _number(joint, budget)
    return joint


def _check_budgets(budgets: Sequence[Any]) -> None:
    if not budgets:
        raise GameError("no budget is given, such as Chance('collisions', at_most=0, probability=0.02).")
    for budget in budgets:
        if not isinstance(budget, Budget):
            advice = f"Chance.of({budget!r})" if isinstance(budget, str) else "such as Chance.of('collisions>0:0.02')"
            raise GameError(f"a budget is a {type(budget).__name__}; a Chance is required: {advice}, or a CVaR.")
        if isinstance(budget, Chance) and not 0 <= budget.probability <= 1:
            raise GameError(f"the probability of {budget} is {budget.probability}; a number from 0 to 1 is required.")
        if isinstance(budget, CVaR) and not 0 <= budget.level < 1:
            raise GameError(f"the level of {budget} is {budget.level}; at least 0 and less than 1 is required.")
        if not 0 <= budget.at_most < np.inf:
            raise GameError(
                f"at_most of {budget} is {budget.at_most}; a number of at least 0 is required: no cost is negative."
            )


def _number(game: JointGame, budget: Budget) -> int:
    names = game.names.all_constraints(game.num_constraints)
    if isinstance(budget.cost, int):
        if not 0 <= budget.cost < len(names):
            raise GameError(f"there is no constraint {budget.cost}; they count from 0 to {len(names) - 1}.")
        return budget.cost
    if budget.cost not in names:
        raise GameError(f"there is no cost {budget.cost!r}; the costs of this game are {', '.join(names) or 'none'}.")
    return names.index(budget.cost)


def _name(game: JointGame, constraint: int) -> str:
    return game.names.constraint(constraint)


def units_of(costs: FloatArray) -> tuple[Fraction, IntArray]:
    """Return the largest unit of which all costs are whole multiples, exactly, and the costs in it.

    Examples
    --------
    >>> unit, amounts = units_of(np.array([0.0, 0.5, 1.5]))
    >>> unit, amounts.tolist()
    (Fraction(1, 2), [0, 1, 3])
    """
    known, indices = np.unique(costs, return_inverse=True)
    numbers = [Fraction(float(each)) for each in known]
    bottom = lcm(*(each.denominator for each in numbers))
    whole = [int(each * bottom) for each in numbers]
    common = int(np.gcd.reduce(np.array(whole, dtype=object))) or 1
    amounts = np.array([each // common for each in whole], dtype=object)
    return Fraction(common, bottom), amounts[indices.ravel()].reshape(costs.shape)


def _counters(game: JointGame, budgets: Sequence[Budget]) -> list[Counter]:
    found = []
    for j in sorted({_number(game, budget) for budget in budgets}):
        table = to_floats(game.costs[j])
        if table.min() < 0:
            raise GameError(f"{_name(game, j)} has negative costs; what exceeds a limit could come back below it.")
        unit, amounts = units_of(table)
        limit = max(budget.at_most for budget in budgets if _number(game, budget) == j)
        most = sum(int(max(_at(amounts, step).ravel())) for step in range(game.num_steps))
        levels = min(floor(Fraction(limit) / unit), most) + 2
        if levels > MAX_LEVELS:
            raise TooLargeError(
                f"the costs of {_name(game, j)} are multiples of {float(unit):.3g}, and up to {limit:g} there are "
                f"{levels:,} levels; {MAX_LEVELS:,} are allowed. State the costs in coarser units."
            )
        if most >= 2**53:  # amounts are entries of tables of floats, and sums of them are to be exact
            raise TooLargeError(f"the costs of {_name(game, j)} add up to {most} units; state them in coarser units.")
        found.append(Counter(j, unit, levels, amounts.astype(np.int64).reshape(len(amounts), game.num_states, -1)))
    return found


def _at(tables: Any, step: int) -> Any:
    return tables[0 if len(tables) == 1 else step]


def _sizes(game: JointGame, levels: tuple[int, ...]) -> tuple[int, int]:
    cells = prod(levels)
    entries = [each.nnz for each in game.transition] if game.is_sparse else [np.count_nonzero(game.transition)]
    return game.num_states * cells, cells * int(sum(entries))


def _require_size(game: JointGame, levels: tuple[int, ...]) -> None:
    states, entries = _sizes(game, levels)
    if entries > MAX_ENTRIES:
        raise TooLargeError(
            f"the augmented game would have {states:,} states ({game.num_states:,} times {prod(levels):,} levels) and "
            f"{entries:,} entries in its transition; {MAX_ENTRIES:,} are allowed. Use coarser units, or fewer budgets."
        )


def _matrix(game: JointGame, step: int) -> Any:
    """Return the transition of a step as a CSR matrix [S·ΠA, S]."""
    if game.is_sparse:
        return _at(game.transition, step)
    table = to_floats(_at(game.transition, step))
    return sp.csr_array(table.reshape(-1, game.num_states))


def augmented_rows(matrix: Any, after: IntArray, cells: int) -> Any:
    """Return the transition [S·cells·ΠA, S·cells]; after [S, ΠA, cells] is the cell that each step leads to."""
    states, actions, _ = after.shape
    lengths = np.diff(matrix.indptr).reshape(states, 1, actions)
    order = np.broadcast_to(np.arange(states * actions).reshape(states, 1, actions), (states, cells, actions)).ravel()
    counts = np.broadcast_to(lengths, (states, cells, actions)).ravel()
    starts = np.concatenate([[0], np.cumsum(counts)])
    entries = np.repeat(matrix.indptr[order] - starts[:-1], counts) + np.arange(starts[-1])
    cell = np.repeat(np.moveaxis(after, 2, 1).ravel(), counts)
    columns = matrix.indices[entries].astype(np.int64) * cells + cell
    return sp.csr_array((matrix.data[entries], columns, starts), shape=(len(counts), states * cells))


def _passing(
    game: JointGame, budgets: Sequence[Chance], counters: Sequence[Counter], *, indices: IntArray, after: IntArray
) -> FloatArray:
    """Return 1 where a step passes the limit of a budget: [budgets, S·cells, ΠA]."""
    found = []
    for budget in budgets:
        number = [each.cost for each in counters].index(_number(game, budget))
        limit = floor(Fraction(budget.at_most) / counters[number].unit)
        passes = (indices[number] <= limit) & (after[number] > limit)  # [S, ΠA, cells]
        found.append(np.moveaxis(passes, 2, 1).reshape(-1, passes.shape[1]).astype(np.float64))
    return np.array(found).reshape(len(found), game.num_states * indices.shape[1], after.shape[2])


def _expected(
    game: JointGame, budgets: Sequence[Budget], cells: int, *, keep: bool
) -> tuple[FloatArray, list[float], list[str]]:
    """Return the expected costs that stay, on the augmented states, with thresholds and names."""
    limited = {_number(game, budget) for budget in budgets}
    kept = [j for j in range(game.num_constraints) if keep or j not in limited]
    costs = np.repeat(to_floats(game.costs)[kept], cells, axis=2)
    return costs, [float(game.thresholds[j]) for j in kept], [_name(game, j) for j in kept]


def _state_names(game: JointGame, counters: Sequence[Counter], indices: IntArray) -> list[str]:
    names = game.names.all_states(0, game.num_states)
    spent = []
    for cell in indices.T:
        parts = [
            f"{_name(game, each.cost)} {'over' if x == each.levels - 1 else f'{float(x * each.unit):g}'}"
            for each, x in zip(counters, cell.tolist(), strict=True)
        ]
        spent.append(", ".join(parts))
    return [f"{name} | {each}" for name in names for each in spent]


# --- The law of a cost ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CostLaw:
    """The distribution of what one cost adds up to under a policy; the sums are exact, probabilities are floats.

    Examples
    --------
    >>> law = CostLaw("collisions", np.array([0.0, 1.0]), np.array([0.9, 0.1]))
    >>> law.mean, law.above(0), law.quantile(0.95), round(law.cvar(0.9), 9)
    (0.1, 0.1, 1.0, 1.0)
    """

    name: str
    sums: FloatArray  # [m]: ascending
    probabilities: FloatArray  # [m]

    @property
    def mean(self) -> float:
        """E[C]."""
        return float(self.sums @ self.probabilities)

    def above(self, limit: float) -> float:
        """Return P(C > limit)."""
        return float(self.probabilities[self.sums > limit].sum())

    def quantile(self, level: float) -> float:
        """Return the least sum x with P(C ≤ x) ≥ level, up to rounding."""
        reached = np.cumsum(self.probabilities) >= level - 1e-12
        return float(self.sums[int(np.argmax(reached))] if reached.any() else self.sums[-1])

    def cvar(self, level: float) -> float:
        """Return the mean of the worst 1 − level of all episodes: min_t t + E(C − t)⁺ / (1 − level)."""
        return self.beyond(level, self.quantile(level))

    def beyond(self, level: float, t: float) -> float:
        """Return t + E(C − t)⁺ / (1 − level), which no CVaR exceeds."""
        return t + float(np.maximum(self.sums - t, 0.0) @ self.probabilities) / (1 - level)

    def summary(self) -> Summary:
        """Return what to show: the mean, quantiles, and the likeliest sums."""
        rows: list[tuple[Cell, ...]] = [
            (f"{each:g}", significant(float(p), 6), significant(self.above(float(each)), 6))
            for each, p in zip(self.sums[:12], self.probabilities[:12], strict=True)
        ]
        note = f"showing 12 of {len(self.sums):,} sums" if len(self.sums) > 12 else ""
        sentence = f"mean {self.mean:.6g}; 99 % of episodes cost at most {self.quantile(0.99):g}"
        return Summary(
            f"law of {self.name}", sentence, (Table((self.name, "probability", "more than this"), tuple(rows), note),)
        )

    __repr__, __str__, _repr_html_ = line, text, html


def num_law_states(game: Game) -> int:
    """Return over how many states `cost_law` follows a policy; 0 for a game none of whose costs has a law.

    Examples
    --------
    >>> import cmpg
    >>> num_law_states(cmpg.scenarios.grid_world()), num_law_states(cmpg.scenarios.charging())
    (256, 0)
    """
    if isinstance(game, LocalGame) and not game.load_costs.any(axis=(1, 2, 3)).all():
        return max(each.num_states for each in game.agents)
    if isinstance(game, JointGame) and game.horizon is not None:
        return game.num_states
    return 0


def cost_law(game: Game, policy: JointPolicy) -> tuple[CostLaw, ...]:
    """Return the distribution of every cost under a policy, by one forward pass over states and sums.

    Parameters
    ----------
    game
        A joint game with a finite horizon; or its augmented game, of which the budgets are costs of 0 or 1. Of a local
        game the costs that agents pay by what they do themselves have laws, and those of resources have not.
    policy
        Of the game.

    Examples
    --------
    >>> import cmpg
    >>> game = cmpg.scenarios.grid_world()
    >>> law, = cost_law(game, cmpg.solve(game).policy)
    >>> law.sums, law.probabilities.round(6), round(law.mean, 6)
    (array([0., 1.]), array([0.9, 0.1]), 0.1)
    """
    check_is_policy(policy)
    policy.check_fits(game.policy_shapes)
    if isinstance(game, LocalGame):
        from cmpg.games.local.risk import own_cost_laws  # few games have such costs

        return own_cost_laws(game, policy.floats())
    joint = as_joint(game, wanted="has no law of costs that this library computes")
    if joint.horizon is None:
        raise UnsupportedError("discounted game", "has no law of costs", "Use a finite horizon.")
    tables = policy.floats()
    return tuple(_law(joint, tables, j) for j in range(joint.num_constraints))


def _law(game: JointGame, policy: JointPolicy, constraint: int) -> CostLaw:
    unit, sums, probabilities = _law_in_units(game, policy, constraint)
    name = game.names.constraint(constraint)
    if sums[-1] * unit > Fraction(np.finfo(np.float64).max):
        raise TooLargeError(f"{name} can add up to more than any float. State the costs in other units.")
    return CostLaw(name, np.array([float(each * unit) for each in sums]), probabilities)


def _law_in_units(game: JointGame, policy: JointPolicy, constraint: int) -> tuple[Fraction, IntArray, FloatArray]:
    """Return the unit of a cost, the sums that can occur in units, ascending, and their probabilities."""
    unit, amounts = units_of(to_floats(game.costs[constraint]))
    amounts = amounts.reshape(len(amounts), game.num_states, -1)

    def joint_law(step: int) -> FloatArray:
        law = np.ones((game.num_states, 1))
        for table in policy:
            law = (law[:, :, None] * np.asarray(table)[step][:, None, :]).reshape(game.num_states, -1)
        return law

    steps = ((joint_law(h), _at(amounts, h), _matrix(game, h)) for h in range(game.num_steps))
    return unit, *law_of_sums(to_floats(game.initial), steps, game.names.constraint(constraint))


def law_of_sums(
    initial: FloatArray, steps: Iterable[tuple[FloatArray, IntArray, Any]], name: str
) -> tuple[IntArray, FloatArray]:
    """Return the sums that can occur, ascending, and their probabilities: one pass over (state, sum so far).

    Parameters
    ----------
    initial : [S]
        The law of the first state.
    steps
        For each the probabilities of actions [S, A], what they add in units [S, A], and the CSR matrix [S·A, S].
    name
        Of the cost, for messages.
    """
    num_states = len(initial)
    sums, mass = np.array([0], dtype=object), initial[:, None]  # [L], [S, L]
    for step, (law, paid, matrix) in enumerate(steps):
        known, code = np.unique(paid, return_inverse=True)
        code = code.reshape(paid.shape)
        after, index = np.unique(sums[:, None] + known[None, :], return_inverse=True)
        index = index.reshape(len(sums), len(known))
        if len(after) * num_states > 100 * MAX_ATOMS or len(after) > MAX_ATOMS:
            raise TooLargeError(
                f"{name} has {len(after):,} different sums after {step + 1} steps; "
                f"{MAX_ATOMS:,} are allowed. State the costs in coarser units."
            )
        ahead = np.zeros((num_states, len(after)))
        for c in range(len(known)):
            chosen = np.where(code == c, law, 0.0)  # the joint actions that cost this
            if chosen.any():
                flows = sp.csr_array(
                    (chosen.ravel(), np.arange(chosen.size), np.arange(0, chosen.size + 1, chosen.shape[1]))
                )
                moved = np.asarray((flows @ matrix).T @ mass)  # [S, L]
                np.add.at(ahead.T, index[:, c], moved.T)
        sums, mass = after, ahead
    total = mass.sum(axis=0)
    seen = total > 0
    return sums[seen], total[seen]


def law_rows(laws: Sequence[CostLaw]) -> Table:
    """Return the laws of several costs beside their means."""
    rows: list[tuple[Cell, ...]] = []
    for law in laws:
        numbers = (law.mean, law.quantile(0.5), law.quantile(0.9), law.quantile(0.99), float(law.sums[-1]))
        rows.append((law.name, *(significant(each, 6) for each in numbers), significant(law.above(0.0), 6)))
    columns = ("law of a cost", "mean", "median", "90 %", "99 %", "largest", "P(above 0)")
    return Table(columns, tuple(rows))
