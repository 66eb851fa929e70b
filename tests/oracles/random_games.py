"""Random games of every form and kind, as plain dicts for the judge and the library: nothing of the library in here.

A number is drawn with a seed, and the seed is all that has to be kept: `draw(7)` is the same game for ever. What makes
games hard is drawn as well: entries that tie, thresholds that are met with nothing to spare or missed by a hair, scales
from 1e-9 to 1e9, states that nobody can reach, probabilities of 1e-300, discounting, costs of both signs, and up to
three constraints.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from oracles.judge import Game, judge

FORMS = ("joint", "sparse", "discounted", "counting", "discounted counting", "local")
FORM_SHARES = (0.35, 0.12, 0.1, 0.15, 0.05, 0.23)
KINDS = ("cooperative", "exogenous", "any")
STYLES = ("dyadic", "ties", "rough")
BUDGETS = ("met with room", "met exactly", "by a hair", "drawn", "impossible")


@dataclass(frozen=True)
class Drawn:
    """A game, and what is known of it without solving anything."""

    game: Game
    form: str
    kind: str  # cooperative and exogenous joint games, and all local ones, have a potential by construction
    budget: str  # how the thresholds were chosen
    feasible: bool | None  # whether some policy is known to meet the thresholds; None: nothing is known

    @property
    def has_potential(self) -> bool:
        """Whether a potential exists by construction."""
        return self.kind != "any"


def draw(seed: int) -> Drawn:
    """Draw a game."""
    rng = np.random.default_rng((20_260, seed))
    form = FORMS[rng.choice(len(FORMS), p=FORM_SHARES)]
    style = STYLES[rng.choice(3, p=(0.55, 0.25, 0.2))]
    numbers = Numbers(rng, style, tiny=rng.random() < 0.08, unreachable=rng.random() < 0.2)
    constraints = int(rng.choice(4, p=(0.15, 0.45, 0.25, 0.15)))
    signed = rng.random() < 0.25
    kind = KINDS[rng.choice(3, p=(0.45, 0.3, 0.25))]
    if form == "local":
        game, kind = _local(numbers, constraints, signed), "exogenous"
    elif form.endswith("counting"):
        game, kind = _counting(numbers, constraints, signed, discounted="discounted" in form)
    else:
        game = _joint(numbers, constraints, signed, kind, discounted=form == "discounted")
    if form == "sparse":
        game["sparse"] = True
    _rescale(game, rng)
    budget = BUDGETS[rng.choice(5, p=(0.35, 0.25, 0.1, 0.2, 0.1))] if constraints else "none"
    return Drawn(game, form, kind, budget, _set_thresholds(game, budget, numbers))


@dataclass(frozen=True)
class Numbers:
    """Draws entries and rows in one style."""

    rng: np.random.Generator
    style: str
    tiny: bool = False  # some probabilities are 1e-300
    unreachable: bool = False  # the last state is never entered

    def entries(self, shape: tuple[int, ...], *, signed: bool = True) -> np.ndarray:
        """Numbers of about one."""
        if self.style == "rough":
            found = self.rng.normal(size=shape)
        elif self.style == "ties":
            found = self.rng.integers(-1, 2, size=shape).astype(float)
        else:
            found = self.rng.integers(-16, 17, size=shape) / 8
        return found if signed else np.abs(found)

    def rows(self, shape: tuple[int, ...], *, of_states: bool = True) -> np.ndarray:
        """Rows of probabilities along the last axis, whose sum is one to the last bits."""
        if self.style == "rough":
            found = self.rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])
        else:
            favoured = self.rng.random(shape) * (self.rng.random(shape) < 0.5) + 1e-3
            found = self.rng.multinomial(16, favoured / favoured.sum(axis=-1, keepdims=True)) / 16
        if of_states and self.unreachable and shape[-1] > 1:
            found[..., 0] += found[..., -1]
            found[..., -1] = 0
        if of_states and self.tiny:
            found[(found == 0) & (self.rng.random(shape) < 0.5)] = 1e-300
        return found

    def policy(self, shapes: list[tuple[int, int, int]]) -> list[np.ndarray]:
        """A policy: one action everywhere, deterministic, or mixed."""
        if self.rng.random() < 0.5:
            return [np.eye(shape[2])[self.rng.integers(shape[2], size=shape[:2])] for shape in shapes]
        return [self.rows(shape, of_states=False) for shape in shapes]


def shapes_of(game: Game) -> list[tuple[int, int, int]]:
    """The shape [H, S, A] of every agent's policy."""
    steps = 1 if game.get("discount") is not None else game["horizon"]
    if game["form"] == "local":
        return [(steps, *agent["reward"].shape[1:]) for agent in game["agents"]]
    states = len(game["initial"])
    if game["form"] == "counting":
        return [(steps, states, game["rewards"].shape[2])] * (game["rewards"].shape[3] - 1)
    return [(steps, states, actions) for actions in game["rewards"].shape[3:]]


def suitable_epsilon(game: Game) -> float:
    """1e-6 in units of the largest value that there can be."""
    holders = [game, *game.get("agents", ())]
    names = ("rewards", "private_rewards", "class_rewards", "delay", "reward")
    tables = [holder[name] for holder in holders for name in names if holder.get(name) is not None]
    largest = max(float(np.abs(table).max()) for table in tables)
    discount = game.get("discount")
    steps = game["horizon"] if discount is None else 1 / (1 - discount)
    return 1e-6 * max(largest * steps, 1e-300)


def _lengths(rng: np.random.Generator, *, discounted: bool) -> tuple[dict[str, Any], int]:
    """Horizon or discount, and the length of the step axis of the tables."""
    if discounted:
        return {"discount": float(rng.choice([0.0, 0.5, 0.75, 0.9, 0.99, 1 - 2**-20]))}, 1
    horizon = int(rng.integers(1, 4))
    return {"horizon": horizon}, int(rng.choice([1, horizon]))


def _joint(numbers: Numbers, constraints: int, signed: bool, kind: str, *, discounted: bool) -> Game:
    rng = numbers.rng
    agents = int(rng.choice([1, 2, 3], p=(0.15, 0.65, 0.2)))
    actions = tuple(int(count) for count in rng.integers(1, 4 if agents < 3 else 3, size=agents))
    states = int(rng.integers(1, 4))
    length, steps = _lengths(rng, discounted=discounted)
    table = (steps, states, *actions)
    if kind == "exogenous":
        alone = numbers.rows((steps, states, states)).reshape(steps, states, *(1 for _ in actions), states)
        transition = np.broadcast_to(alone, (*table, states)).copy()
    else:
        transition = numbers.rows((*table, states))
    own = kind == "any"
    rewards = numbers.entries((agents, *table)) if own else np.stack([numbers.entries(table)] * agents)
    if kind == "exogenous":
        for agent in range(agents):  # a term that only the others' actions move
            rewards[agent] += numbers.entries(tuple(1 if axis == 2 + agent else n for axis, n in enumerate(table)))
    return {
        "form": "joint",
        **length,
        "initial": numbers.rows((states,)),
        "transition": transition,
        "rewards": rewards,
        "costs": numbers.entries((constraints, *table), signed=signed),
        "thresholds": np.zeros(constraints),
    }


def _counting(numbers: Numbers, constraints: int, signed: bool, *, discounted: bool) -> tuple[Game, str]:
    """A counting game, and whether its state moves by itself: only then counts make a potential."""
    rng = numbers.rng
    agents, choices, states = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    length, steps = _lengths(rng, discounted=discounted)
    every = rng.random() < 0.4
    boundaries = sorted(int(each) for each in rng.integers(0, agents + 1, size=rng.integers(1, 3)))
    classes = math.comb(agents + choices - 1, choices - 1) if every else len(boundaries) + 1
    exogenous = rng.random() < 0.5
    if exogenous:
        transition = np.repeat(numbers.rows((steps, states, 1, states)), classes, axis=2)
    else:
        transition = numbers.rows((steps, states, classes, states))
    game = {
        "form": "counting",
        **length,
        "initial": numbers.rows((states,)),
        "rewards": numbers.entries((steps, states, choices, agents + 1)),
        "boundaries": None if every else np.array(boundaries),
        "transition": transition,
        "costs": numbers.entries((constraints, steps, states, classes), signed=signed),
        "thresholds": np.zeros(constraints),
    }
    if rng.random() < 0.3:
        game["private_rewards"] = numbers.entries((agents, steps, states, choices))
    shared_by_class = rng.random() < 0.2
    if shared_by_class:
        game["class_rewards"] = numbers.entries((steps, states, choices, classes))
    return game, "exogenous" if exogenous and not shared_by_class else "any"


def _local(numbers: Numbers, constraints: int, signed: bool) -> Game:
    rng = numbers.rng
    count, resources = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    length, steps = _lengths(rng, discounted=False)
    agents: list[dict[str, Any]] = []
    for _ in range(count):
        states, actions = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        agents.append(
            {
                "transition": numbers.rows((steps, states, actions, states)),
                "reward": numbers.entries((steps, states, actions)),
                "uses": (rng.random((steps, states, actions, resources)) < 0.5).astype(float),
                "initial": numbers.rows((states,)),
                "cost": numbers.entries((constraints, steps, states, actions), signed=signed)
                if rng.random() < 0.5
                else None,
            }
        )
    load_cost = numbers.entries((constraints, steps, resources, count + 1), signed=signed)
    if rng.random() < 0.5:  # a cost that does not fall as the load grows
        load_cost = np.cumsum(np.abs(load_cost), axis=-1)
    return {
        "form": "local",
        **length,
        "agents": agents,
        "delay": numbers.entries((steps, resources, count + 1)),
        "load_cost": load_cost,
        "thresholds": np.zeros(constraints),
    }


def _rescale(game: Game, rng: np.random.Generator) -> None:
    """Give rewards and costs sizes of their own: usually one, sometimes 1e-9 … 1e9, sometimes by entry."""
    for names in (("rewards", "private_rewards", "class_rewards", "delay", "reward"), ("costs", "load_cost", "cost")):
        draw = rng.random()
        if draw < 0.65:
            continue
        scale = 10.0 ** rng.integers(-9, 10) if draw < 0.9 else None
        for holder in (game, *game.get("agents", ())):
            for name in names:
                if holder.get(name) is not None:
                    shared = name == "rewards" and game["form"] == "joint"  # what has a potential shall keep it
                    sizes = scale if scale or shared else 10.0 ** rng.integers(-9, 10, size=holder[name].shape)
                    holder[name] = holder[name] * (1.0 if sizes is None else sizes)


def _set_thresholds(game: Game, budget: str, numbers: Numbers) -> bool | None:
    """Choose thresholds, and return whether some policy is known to meet them."""
    count = len(game["thresholds"])
    if not count:
        return True
    rng, judged = numbers.rng, judge(game)
    spent = judged.costs(numbers.policy(shapes_of(game)))
    weight = np.eye(count)[int(rng.integers(count))] if budget == "impossible" else None
    least = None if weight is None else judged.least_cost(weight)
    if least is not None:
        limits = np.array([_above(cost) for cost in spent])
        below = least - abs(least) * Fraction(float(10.0 ** -rng.integers(1, 13))) - Fraction(1, 2**60)
        limits[weight > 0] = -_above(-below)
        game["thresholds"] = limits
        return False
    met = np.array([_above(cost) for cost in spent])  # the planted policy costs at most this, exactly
    size = np.maximum(np.abs(met), _size(game))
    if budget == "met exactly":
        game["thresholds"] = met
    elif budget == "met with room":
        game["thresholds"] = met + size * rng.integers(1, 9, size=count) / 16
    elif budget == "by a hair":
        game["thresholds"] = met + size * 10.0 ** -rng.integers(9, 16, size=count)
    else:
        game["thresholds"] = met + size * rng.normal(size=count) / 4
    return None if budget == "drawn" else True


def _size(game: Game) -> float:
    tables = [game.get("costs"), game.get("load_cost"), *(agent["cost"] for agent in game.get("agents", ()))]
    return max(float(np.abs(table).max(initial=0)) for table in tables if table is not None) / 8


def _above(number: Fraction) -> float:
    """The least float that is no less."""
    near = float(number)
    return near if Fraction(near) >= number else math.nextafter(near, math.inf)
