"""Random claims, a game with a policy and multipliers each, made of the numbers that hurt; nothing of the library here.

Nothing is solved for: a claim may be true or false, and the exact judge can tell. A seed is all that has to be kept:
`draw_claim(7)` is the same claim for ever. What is drawn:

- rows [1, x] with x from 5e-324 to 1e-16, in policies, transitions and initial states;
- costs and rewards that are subnormal, next to overflow, of both signs, or differ by hundreds of powers of ten;
- thresholds on the last bit of what the policy costs: that float, the one below, the one above, and zero;
- multipliers of zero, infinity, and every size between; masks; discounts of zero and next to one;
- rationals in the policy, or in the whole game, also below the least float;
- one agent, one action, one state, no constraint; and small games hidden in ones with many states.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from oracles.judge import Game, JointJudge, LocalJudge, judge
from oracles.random_games import shapes_of

FORMS = ("joint", "sparse", "counting", "local", "discounted joint", "discounted sparse", "discounted counting")
FORM_SHARES = (0.24, 0.1, 0.22, 0.22, 0.11, 0.04, 0.07)
KINDS_OF_ARITHMETIC = ("floats", "rational policy", "rationals")
SMALL = (5e-324, 1e-322, 3e-308, 1e-300, 1e-200, 1e-160, 1e-100, 1e-80, 1e-40, 1e-20, 1e-17, 5e-17, 1.1e-16)
DISCOUNTS = (0.0, 0.0, 5e-324, 0.5, 0.75, 0.9, 0.99, 1 - 2.0**-20, 1 - 2.0**-30)
LIMITS = ("above", "below", "nearest", "zero", "drawn", "wide", "hair")
LARGE = 0.002
"""The share of games that are hidden in ones with many states, which take long."""


@dataclass(frozen=True, eq=False)
class Claim:
    """A policy, of which multipliers prove something or nothing."""

    seed: int
    form: str
    arithmetic: str
    game: Game
    policy: list[Any]  # of [H, S_i, A_i], floats or Fractions
    multipliers: np.ndarray  # [n, k]; infinite where a proof by support is claimed
    binds: np.ndarray  # [n, k] of zeros and ones
    weights: np.ndarray  # [k]: are said to prove that nothing is feasible
    judged: JointJudge | LocalJudge
    large: bool = False
    budgets: tuple[tuple[float, float], ...] = ()  # on the first cost: what it exceeds with which probability at most
    keep_expected: bool = True  # its threshold, beside the budgets


def draw_claim(seed: int) -> Claim:
    """Draw a claim."""
    rng = np.random.default_rng((20_262, seed))
    form = FORMS[rng.choice(len(FORMS), p=FORM_SHARES)]
    exact = KINDS_OF_ARITHMETIC[rng.choice(3, p=(0.86, 0.07, 0.07))]
    if exact == "rationals" and form not in ("joint", "counting"):
        exact = "floats"
    large = form in ("joint", "sparse", "counting", "local") and exact == "floats" and rng.random() < LARGE / 0.67
    hard = rng.random() < (0.6 if exact == "rational policy" else 0.25)
    numbers = Numbers(rng, hard=hard, rational=exact == "rationals")
    constraints = int(rng.choice(4, p=(0.1, 0.55, 0.25, 0.1)))
    game = draw_game(form, numbers, constraints, large=large)
    if large:
        game = hidden(game, rng)
    shapes = shapes_of(game)
    policy = [numbers.policy(shape, nearly=1.0 if exact == "rational policy" else 0.6) for shape in shapes]
    if len(policy) > 1 and rng.random() < 0.15:  # some agents do the same
        policy = [policy[0] if shape == shapes[0] else own for shape, own in zip(shapes, policy, strict=True)]
    if exact == "rational policy":
        policy = [rational_rows(own, rng) if rng.random() < 0.7 else own for own in policy]
    binds = np.ones((len(policy), constraints), dtype=int)
    if constraints and rng.random() < 0.25:
        binds = rng.integers(2, size=binds.shape)
        binds[rng.integers(len(policy), size=constraints), np.arange(constraints)] = 1
    judged = judge(game)
    game["thresholds"] = thresholds_near(judged.costs(policy), numbers)
    judged = judged.with_thresholds(game["thresholds"])
    multipliers = numbers.multipliers(binds.shape) * 1.0
    multipliers[binds == 0] = 0.0
    weights = np.abs(rng.normal(size=constraints)) * (rng.random(constraints) < 0.7)
    if rng.random() < 0.3:
        weights = weights * 10.0 ** rng.integers(-300, 300, size=constraints)
    return Claim(seed, form, exact, game, policy, multipliers, binds, weights, judged, large)


@dataclass(frozen=True)
class Numbers:
    """Draws the numbers of one claim, most of them from a palette of its own."""

    rng: np.random.Generator
    hard: bool  # budgets of which nothing is left
    rational: bool

    def rows(self, shape: tuple[int, ...], *, mixed: float = 0.3, nearly: float = 0.6) -> Any:
        """Rows of probabilities along the last axis, whose floats sum to one up to the last bits."""
        found = np.zeros(shape)
        for place in np.ndindex(shape[:-1]):
            found[place] = self._row(shape[-1], mixed, nearly)
        return rational_rows(found, self.rng) if self.rational else found

    def _row(self, length: int, mixed: float, nearly: float) -> np.ndarray:
        rng = self.rng
        row = np.zeros(length)
        row[rng.integers(length)] = 1.0
        kind = rng.random()
        if kind < mixed:
            row = (
                rng.dirichlet(np.ones(length))
                if rng.random() < 0.4
                else rng.multinomial(8, np.ones(length) / length) / 8
            )
        if kind > nearly:  # a little of what is not there at all
            small = float(rng.choice(SMALL))
            row[(row == 0) & (rng.random(length) < 0.7)] = small
        return row

    def policy(self, shape: tuple[int, int, int], *, nearly: float = 0.6) -> Any:
        """One agent's table."""
        if shape[0] * shape[1] > 1000:  # of a large game: one action everywhere but in the first few states
            found = np.broadcast_to(np.eye(shape[2])[0], shape).copy()
            found[:, :3] = self.rows((shape[0], 3, shape[2]), mixed=0.1, nearly=0.3)
            return found
        return self.rows(shape, nearly=nearly)

    def entries(self, shape: tuple[int, ...], *, cost: bool = False) -> Any:
        """Rewards or costs."""
        rng = self.rng
        signed = rng.random() < (0.25 if cost else 0.7)
        kind = rng.choice(
            ["eighths", "ties", "normal", "spikes", "huge", "tiny", "scales"],
            p=(0.3, 0.2, 0.15, 0.15, 0.06, 0.06, 0.08),
        )
        if cost and self.hard:
            signed = signed and rng.random() < 0.3
            kind = "ties"
        if kind == "normal":
            found = rng.normal(size=shape)
        elif kind == "ties":
            found = rng.integers(-1, 2, size=shape).astype(float)
        elif kind == "spikes":  # next to nothing, and something that counts however improbable it is
            found = rng.choice([0.0, 0.0, 1.0, 1e20, 1e100, 1e300], size=shape)
        elif kind == "tiny":
            found = rng.integers(-3, 4, size=shape) * 5e-324
        else:
            found = rng.integers(-16, 17, size=shape) / 8
        if kind == "huge":
            found = found * 10.0 ** rng.choice([100, 290, 307])
        if kind == "scales":
            found = found * 10.0 ** rng.integers(-320, 300, size=shape).astype(float)
        if rng.random() < 0.3:
            found = found * (rng.random(shape) < 0.5)
        found = found + 0.0 if signed else np.abs(found)
        return exactly(found, rng) if self.rational else found

    def multipliers(self, shape: tuple[int, ...]) -> np.ndarray:
        """Multipliers of every size."""
        rng = self.rng
        kinds = rng.choice(4, size=shape, p=(0.15, 0.15, 0.65, 0.05) if self.hard else (0.35, 0.45, 0.15, 0.05))
        usual = rng.exponential(size=shape) * 10.0 ** rng.integers(-3, 4, size=shape).astype(float)
        odd = rng.choice([5e-324, 1e-300, 1e-20, 1e16, 1e100, 1e300], size=shape)
        return np.choose(kinds, [np.zeros(shape), usual, np.full(shape, np.inf), odd])


def exactly(table: np.ndarray, rng: np.random.Generator) -> Any:
    """Read a table as Fractions, some of which are no floats, or are smaller than all of them."""
    found = np.array([Fraction(each) for each in table.ravel().tolist()], dtype=object).reshape(table.shape)
    factor = rng.choice([1, 3, 7, 10**20], p=(0.6, 0.2, 0.15, 0.05))
    found = found / Fraction(int(factor))
    if rng.random() < 0.1:
        found = found / Fraction(10**400)
    return found


def rational_rows(rows: np.ndarray, rng: np.random.Generator) -> Any:
    """Rows of Fractions that sum to exactly one, with thirds, or with what is smaller than every float."""
    found = np.array([Fraction(each) for each in rows.ravel().tolist()], dtype=object).reshape(rows.shape)
    if rows.shape[-1] > 1 and rng.random() < 0.6:
        small = Fraction(1, int(rng.choice([3, 7, 10**9])))
        if rng.random() < 0.7:
            small = Fraction(1, 10 ** int(rng.choice([330, 400, 700])))
        for place in np.ndindex(rows.shape[:-1]):
            if rng.random() < 0.5:
                found[place] = found[place] / found[place].sum() * (1 - small)
                found[(*place, int(rng.integers(rows.shape[-1])))] += small
    return found / found.sum(axis=-1, keepdims=True)


def _length(numbers: Numbers, *, discounted: bool, large: bool = False) -> tuple[dict[str, Any], int]:
    """Horizon or discount, and the length of the step axis of the tables."""
    rng = numbers.rng
    if discounted:
        return {"discount": float(rng.choice(DISCOUNTS))}, 1
    horizon = 2 if large else int(rng.choice([1, 2, 3, 5], p=(0.35, 0.4, 0.2, 0.05)))
    return {"horizon": horizon}, int(rng.choice([1, horizon]))


def draw_game(form: str, numbers: Numbers, constraints: int, *, large: bool = False) -> Game:
    """Draw a game of one form; its thresholds are still zero."""
    rng = numbers.rng
    if form == "local":
        return _local(numbers, constraints)
    length, steps = _length(numbers, discounted=form.startswith("discounted"), large=large)
    states = int(rng.choice([1, 2, 3], p=(0.3, 0.5, 0.2)))
    initial = numbers.rows((states,))
    if form.endswith("counting"):
        return {"form": "counting", **length, "initial": initial} | _counted(numbers, constraints, steps, states)
    agents = int(rng.choice([1, 2, 3, 5], p=(0.2, 0.55, 0.2, 0.05)))
    agents = min(agents, 2) if large else agents
    actions = tuple(rng.integers(1, 4, size=agents).tolist()) if agents < 3 else (2,) * agents
    table = (steps, states, *actions)
    if rng.random() < 0.2:  # nobody moves the state
        alone = numbers.rows((steps, states, states)).reshape(steps, states, *(1 for _ in actions), states)
        transition = np.broadcast_to(alone, (*table, states)).copy()
    else:
        transition = numbers.rows((*table, states))
    game = {
        "form": "joint",
        **length,
        "initial": initial,
        "transition": transition,
        "rewards": _rewards(numbers, (agents, *table)),
        "costs": numbers.entries((constraints, *table), cost=True),
        "thresholds": np.zeros(constraints),
    }
    if form.endswith("sparse"):
        game["sparse"] = True
    return game


def _rewards(numbers: Numbers, shape: tuple[int, ...]) -> Any:
    """Rewards of all agents, sometimes the same for all, or the same but for one bit."""
    found, draw = numbers.entries(shape), numbers.rng.random()
    if draw < 0.3:
        found[:] = found[0]
    if draw < 0.1 and not numbers.rational:
        last = found[-1].reshape(-1)
        last[0] = math.nextafter(last[0], math.inf)
    return found


def _counted(numbers: Numbers, constraints: int, steps: int, states: int) -> Game:
    rng = numbers.rng
    agents, choices = int(rng.choice([1, 2, 3, 4, 9], p=(0.15, 0.5, 0.24, 0.08, 0.03))), int(rng.integers(1, 4))
    choices = min(choices, 2) if agents > 4 else choices
    every = rng.random() < 0.4
    boundaries = sorted(int(each) for each in rng.integers(0, agents + 1, size=rng.integers(1, 3)))
    classes = math.comb(agents + choices - 1, choices - 1) if every else len(boundaries) + 1
    game = {
        "rewards": numbers.entries((steps, states, choices, agents + 1)),
        "boundaries": None if every else np.array(boundaries),
        "transition": numbers.rows((steps, states, classes, states)),
        "costs": numbers.entries((constraints, steps, states, classes), cost=True),
        "thresholds": np.zeros(constraints),
    }
    if rng.random() < 0.3:
        game["private_rewards"] = numbers.entries((agents, steps, states, choices))
    if rng.random() < 0.3:
        game["class_rewards"] = numbers.entries((steps, states, choices, classes))
    return game


def _local(numbers: Numbers, constraints: int) -> Game:
    rng = numbers.rng
    count, resources = int(rng.choice([1, 2, 3, 5, 12], p=(0.2, 0.45, 0.25, 0.08, 0.02))), int(rng.integers(1, 3))
    length, steps = _length(numbers, discounted=False)
    agents: list[dict[str, Any]] = []
    alike = rng.random() < 0.3
    for _ in range(count):
        if agents and alike:  # of one kind; where it begins may differ
            agents.append(
                agents[0] | ({} if rng.random() < 0.5 else {"initial": numbers.rows(agents[0]["initial"].shape)})
            )
            continue
        agents.append(draw_agent(numbers, steps, resources, constraints))
    load_cost = numbers.entries((constraints, steps, resources, count + 1), cost=True)
    if rng.random() < 0.5 and np.abs(load_cost).max(initial=0) < 1e300:  # a cost that does not fall as the load grows
        load_cost = np.cumsum(np.abs(load_cost), axis=-1)
    return {
        "form": "local",
        **length,
        "agents": agents,
        "delay": numbers.entries((steps, resources, count + 1)),
        "load_cost": load_cost,
        "thresholds": np.zeros(constraints),
    }


def draw_agent(numbers: Numbers, steps: int, resources: int, constraints: int) -> dict[str, Any]:
    """Draw an agent with states of its own."""
    rng = numbers.rng
    states, actions = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    return {
        "transition": numbers.rows((steps, states, actions, states)),
        "reward": numbers.entries((steps, states, actions)),
        "uses": (rng.random((steps, states, actions, resources)) < 0.5).astype(float),
        "initial": numbers.rows((states,)),
        "cost": numbers.entries((constraints, steps, states, actions), cost=True) if rng.random() < 0.5 else None,
    }


def hidden(game: Game, rng: np.random.Generator) -> Game:
    """Return the same game with many more states, which nothing leads to and which lead to themselves."""
    if game["form"] == "local":
        more = int(rng.choice([30, 300, 1500]))
        return game | {"agents": [_hidden_agent(agent, more) for agent in game["agents"]]}
    most = {"joint": 700, "counting": 1500}[game["form"]]
    if game["form"] == "joint":
        entries = math.prod(game["rewards"].shape[3:]) * len(game["transition"])
        most = min(most, int((4e6 / entries) ** 0.5))
    more = int(rng.integers(3 * most // 4, most))
    at_state = {"rewards": 2, "costs": 2, "class_rewards": 1, "private_rewards": 2}
    if game["form"] == "counting":
        at_state["rewards"] = 1
    grown = {name: widened(game[name], axis, more) for name, axis in at_state.items() if game.get(name) is not None}
    return game | grown | {"transition": _wider(game["transition"], more), "initial": widened(game["initial"], 0, more)}


def _hidden_agent(agent: dict[str, Any], more: int) -> dict[str, Any]:
    tables = {"reward": 1, "uses": 1, "cost": 2, "initial": 0}
    grown = {name: widened(agent[name], axis, more) for name, axis in tables.items() if agent[name] is not None}
    return agent | grown | {"transition": _wider(agent["transition"], more)}


def widened(table: np.ndarray, axis: int, more: int) -> np.ndarray:
    """Append zeros to an axis."""
    return np.pad(table, [(0, more if each == axis else 0) for each in range(table.ndim)])


def _wider(transition: np.ndarray, more: int) -> np.ndarray:
    """Append states, which lead to themselves, to a transition [H or 1, S, …, S]."""
    states = transition.shape[1]
    grown = widened(widened(transition, 1, more), transition.ndim - 1, more)
    for state in range(states, states + more):
        grown[:, state, ..., state] = 1.0
    return grown


def thresholds_near(costs: list[Fraction], numbers: Numbers) -> Any:
    """Choose thresholds, most of them next to what the policy costs."""
    rng, found = numbers.rng, []
    for cost in costs:
        kind = rng.choice(["nearest", "zero", "above"]) if numbers.hard else str(rng.choice(LIMITS))
        if numbers.rational:
            tiny = Fraction(1, 10**350)
            found.append({"above": cost, "below": cost - tiny, "zero": Fraction(0)}.get(kind, cost + tiny))
            continue
        found.append(min(max(threshold_near(kind, cost, rng), -1e308), 1e308))
    return np.array(found, dtype=object if numbers.rational else float)


def threshold_near(kind: str, cost: Fraction, rng: np.random.Generator) -> float:
    """Choose a threshold next to a cost."""
    try:
        nearest = float(cost)
    except OverflowError:
        return 1e308
    above = nearest if Fraction(nearest) >= cost else math.nextafter(nearest, math.inf)
    if kind in ("nearest", "above"):
        return nearest if kind == "nearest" else above
    if kind == "below":
        return math.nextafter(above, -math.inf)
    if kind == "zero":
        return 0.0
    if kind == "wide":
        return above + abs(above) + 1.0
    size = abs(nearest) + (1e-3 if kind == "drawn" else 0.0)
    return nearest + size * (
        float(rng.normal()) if kind == "drawn" else float(rng.choice([-1, 1])) * 10.0 ** -int(rng.integers(12, 17))
    )
