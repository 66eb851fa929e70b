"""Random claims of the rarer kinds: crowds, devices, budgets on risk, and sums of very many terms; no library here.

`draw_rare(7)` is the same claim for ever. Nothing is solved for; about as many claims are false as are true, since
thresholds stand on the last bit of what is spent, on either side of it. Beside the numbers of `random_claims`:

- groups of one to 2^39 agents, whose curves bend where next to no load is, or everywhere in a small crowd;
- rotas whose weights are [1, x] with x down to 5e-324, and laws of joint actions of the same kind;
- budgets on probabilities and CVaR in units from 5e-324 to 2^1000, at limits on the last bit of a sum;
- costs that cancel: 1e16 + 1 − 1e16, up to two thousand terms, subnormal and huge ones among them;
- *forged* claims, which are none: a group with one agent too many, weights that do not sum to one, a t left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from oracles.judge import ZERO, Game, JointJudge, judge
from oracles.random_claims import (
    FORMS,
    SMALL,
    Claim,
    Numbers,
    draw_agent,
    draw_game,
    threshold_near,
    thresholds_near,
)
from oracles.random_games import shapes_of
from oracles.rare_judges import Counted, CrowdJudge, DeviceJudge, Groups, RiskJudge, RotaJudge, cvar

RARE_FORMS = ("long sums", "crowd", "rota", "correlated", "coarse", "chance", "CVaR")
RARE_SHARES = (0.09, 0.29, 0.15, 0.12, 0.08, 0.14, 0.13)
FORGED = 0.1
"""The share of claims about crowds, devices and CVaR that are none, and have to be refused."""


@dataclass(frozen=True, eq=False)
class CrowdDraw:
    """Groups of a crowd, with multipliers [G, k]."""

    seed: int
    game: Game
    groups: Groups
    multipliers: np.ndarray
    judged: CrowdJudge
    forged: str = ""
    form: str = "crowd"
    arithmetic: str = "floats"


@dataclass(frozen=True, eq=False)
class DeviceDraw:
    """A rota, or a law of joint actions, with multipliers [n, k]."""

    seed: int
    form: str
    arithmetic: str
    game: Game
    modes: list[list[Any]]  # of a rota
    weights: Any  # [M]
    law: Any  # [H, S, *A] of a correlated or coarse device
    binds: np.ndarray
    multipliers: np.ndarray
    judged: RotaJudge | DeviceJudge
    forged: str = ""


@dataclass(frozen=True, eq=False)
class CVaRDraw:
    """A policy on (s, x), and multipliers [n, k] for every t, by boxes (low, high, multipliers)."""

    seed: int
    game: Game
    level: float
    at_most: float
    keep: bool
    policy: list[Any]
    boxes: list[tuple[int, int, np.ndarray]]
    counted: Counted
    judged: RiskJudge  # of the expected costs that are kept
    forged: str = ""
    form: str = "CVaR"
    arithmetic: str = "floats"


RareClaim = Claim | CrowdDraw | DeviceDraw | CVaRDraw


def draw_rare(seed: int) -> RareClaim:
    """Draw a claim of a rarer kind."""
    rng = np.random.default_rng((20_264, seed))
    form = RARE_FORMS[rng.choice(len(RARE_FORMS), p=RARE_SHARES)]
    forged = rng.random() < FORGED
    numbers = Numbers(rng, hard=rng.random() < 0.2, rational=False)
    if form == "long sums":
        return _long_sums(seed, numbers)
    if form == "crowd":
        return _crowd(seed, numbers, forged=forged)
    if form == "chance":
        return _chance(seed, numbers)
    if form == "CVaR":
        return _cvar(seed, numbers, forged=forged)
    return _device(seed, form, numbers, forged=forged)


def finite(prices: np.ndarray) -> np.ndarray:
    """Multipliers, of which those that were infinite are one."""
    return np.where(np.isinf(prices), 1.0, prices)


# --- Sums of very many terms ------------------------------------------------------------------------------------------


def cancelling(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Numbers x, y, −x in some order, all along the table: next to nothing is left of their sum, and that counts."""
    number = math.prod(shape)
    large = rng.choice([1e16, 2.0**53, 1e20, 1e100, 1e300, 3.0], size=-(-number // 3))
    small = rng.choice([1.0, 0.0, 5e-324, 1e-300, 1e-16, 1.1, -1.0], size=len(large))
    found = np.stack([large, small, -large]).ravel()
    if rng.random() < 0.5:
        rng.shuffle(found)
    if rng.random() < 0.3:
        found = np.abs(found)
    return found[:number].reshape(shape)


def _long_sums(seed: int, numbers: Numbers) -> Claim:
    """Many states that an episode may begin in, many steps, or many agents; each pays some of the terms."""
    rng = numbers.rng
    constraints = int(rng.integers(1, 3))
    kind = rng.choice(["states", "steps", "agents"])
    length = int(rng.choice([30, 90, 300, 2000], p=(0.65, 0.27, 0.07, 0.01)))
    if kind == "agents":
        game = _many_agents(numbers, min(length, 30), constraints)
    else:
        steps, states = (1, length) if kind == "states" else (length, 1)
        table = (steps, states, *(int(each) for each in rng.integers(1, 3, size=int(rng.integers(1, 3)))))
        transition = np.zeros((*table, states))
        transition[..., 0] = 1.0
        initial = np.zeros(states)
        initial[:] = rng.dirichlet(np.ones(states)) if rng.random() < 0.3 else 1 / states
        game = {
            "form": "joint",
            "horizon": steps,
            "initial": initial,
            "transition": transition,
            "rewards": np.broadcast_to(cancelling(table, rng), (len(table) - 2, *table)).copy(),
            "costs": np.stack([cancelling(table, rng) for _ in range(constraints)]),
            "thresholds": np.zeros(constraints),
        }
    policy = [numbers.rows(shape, mixed=0.05, nearly=0.9) for shape in shapes_of(game)]
    judged = judge(game)
    game["thresholds"] = thresholds_near(judged.costs(policy), numbers)
    judged = judged.with_thresholds(game["thresholds"])
    binds = np.ones((len(policy), constraints), dtype=int)
    prices = finite(numbers.multipliers(binds.shape))
    # `large` keeps it from roads that take long: its sums are what is to be examined.
    return Claim(seed, "long sums", "floats", game, policy, prices, binds, np.ones(constraints), judged, length >= 300)


def _many_agents(numbers: Numbers, count: int, constraints: int) -> Game:
    rng, agents = numbers.rng, []
    terms = cancelling((count, constraints), rng)
    for own in terms:
        agents.append(
            {
                "transition": np.ones((1, 1, 2, 1)),
                "reward": numbers.entries((1, 1, 2)),
                "uses": np.zeros((1, 1, 2, 1)),
                "initial": np.ones(1),
                "cost": np.broadcast_to(own[:, None, None, None], (constraints, 1, 1, 2)).copy(),
            }
        )
    return {
        "form": "local",
        "horizon": 1,
        "agents": agents,
        "delay": np.zeros((1, 1, count + 1)),
        "load_cost": np.zeros((constraints, 1, 1, count + 1)),
        "thresholds": np.zeros(constraints),
    }


# --- Crowds -----------------------------------------------------------------------------------------------------------


def _crowd(seed: int, numbers: Numbers, *, forged: bool) -> CrowdDraw:
    rng = numbers.rng
    size = str(rng.choice(["few", "some", "many", "huge"], p=(0.5, 0.2, 0.15, 0.15)))
    kinds, resources = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    constraints = int(rng.choice(3, p=(0.1, 0.6, 0.3)))
    horizon = int(rng.choice([1, 2, 3], p=(0.5, 0.4, 0.1))) if size in ("few", "huge") else 1
    steps = int(rng.choice([1, horizon]))
    # A power of a probability with a thousand bits is too long for the judge: many agents draw from eighths.
    eighths = size == "many"
    drawn = [draw_agent(numbers, steps, resources, constraints) for _ in range(kinds)]
    if size != "few":
        drawn = [agent | {name: _eighths(agent[name], rng) for name in ("transition", "initial")} for agent in drawn]
    groups = int(rng.integers(kinds, kinds + 3))
    kind = [*range(kinds), *(int(each) for each in rng.integers(kinds, size=groups - kinds))]
    sizes = {"few": (1, 5), "some": (5, 40), "many": (40, 250), "huge": (10**6, 2**36)}[size]
    number = [int(each) for each in rng.integers(*sizes, size=groups)]
    if rng.random() < 0.4:
        number[int(rng.integers(groups))] = 1
    plain = size == "huge" and rng.random() < 0.5  # straight curves, so that agents may draw
    agents = sum(number)
    curves = [_curve(numbers, agents, size, straight=plain) for _ in range(3)]
    shapes = [drawn[k]["reward"].shape[1:] for k in kind]
    tables = []
    for states, actions in shapes:
        table = numbers.rows((horizon, states, actions), nearly=0.6 if size == "few" or plain else 2.0)
        if eighths or (size == "huge" and not plain):
            table = _eighths(table, rng, sure=not eighths)
        tables.append(table)
    if size == "huge" and not plain:
        drawn = [a | {name: _eighths(a[name], rng, sure=True) for name in ("transition", "initial")} for a in drawn]
    game: Game = {
        "kinds": drawn,
        "numbers": np.bincount(kind, weights=number, minlength=kinds).astype(np.int64),
        "curves": curves,
        "delay": rng.integers(3, size=(steps, resources)),
        "load_costs": rng.integers(3, size=(constraints, steps, resources)),
        "thresholds": np.zeros(constraints),
        "horizon": horizon,
    }
    held = Groups(kind, number, tables)
    judged = CrowdJudge(game, held)
    game["thresholds"] = thresholds_near(judged.costs(), numbers)
    prices = finite(numbers.multipliers((groups, constraints)))
    if not forged:
        return CrowdDraw(seed, game, held, prices, judged)
    off = int(rng.choice([-1, 1])) if number[0] > 1 else 1
    changed = replace(held, number=[number[0] + off, *number[1:]])
    return CrowdDraw(seed, game, changed, prices, judged, forged="a group has one agent too many or too few")


def _eighths(rows: np.ndarray, rng: np.random.Generator, *, sure: bool = False) -> np.ndarray:
    """Rows of probabilities again, in eighths, or each with a single entry."""
    found = np.zeros(rows.shape)
    for place in np.ndindex(rows.shape[:-1]):
        length = rows.shape[-1]
        found[place] = (
            rng.multinomial(8, np.ones(length) / length) / 8
            if rng.random() < 0.4 and not sure
            else np.eye(length)[rng.integers(length)]
        )
    return found


def _curve(numbers: Numbers, agents: int, size: str, *, straight: bool) -> tuple[np.ndarray, np.ndarray]:
    """Points of a curve; in a huge crowd it bends next to its ends alone.

    In a large one it bends about where the tails of a load are cut off, and what it is worth beyond may count.
    """
    rng = numbers.rng
    inner: list[int] = []
    if not straight and agents > 1 and rng.random() < 0.8:
        near = np.minimum(rng.integers(1, 6, size=2), agents - 1)
        inner = [int(near[0]), agents - int(near[1])]
        if size in ("few", "some"):
            inner = [int(each) for each in rng.integers(1, agents, size=3)]
        if size == "many" and rng.random() < 0.7:
            share, sides = rng.choice([0.125, 0.25, 0.5, 0.75]), rng.choice([-1, 1], size=2)
            spread = 20 + math.sqrt(400 + 120 * agents * share * (1 - share))  # beyond it are about exp(−60)
            bends = agents * share + sides * spread * rng.uniform(0.1, 1.3, size=2)
            inner = [round(min(max(each, 1), agents - 1)) for each in bends.tolist()]
    places = np.array(sorted({0, agents, *inner}), dtype=np.int64)
    values = numbers.entries((len(places),), cost=True)
    if size == "many" and rng.random() < 0.5:
        values = rng.choice([0.0, 0.0, 1.0, 1e100, 1e300], size=len(places))
    if rng.random() < 0.3:
        values = np.maximum.accumulate(np.abs(values))
    return places, values


# --- Devices ----------------------------------------------------------------------------------------------------------


def _device(seed: int, form: str, numbers: Numbers, *, forged: bool) -> DeviceDraw:
    rng = numbers.rng
    rational = rng.random() < 0.1
    numbers = replace(numbers, rational=rational)
    allowed = ["joint"] if rational else FORMS if form == "rota" else [each for each in FORMS if "joint" in each]
    constraints = int(rng.choice(3, p=(0.15, 0.6, 0.25)))
    game = draw_game(str(rng.choice(allowed)), numbers, constraints)
    sure = not rational and rng.random() < 0.4  # then nothing is rounded but what the device itself draws
    if sure:
        holders = game["agents"] if game["form"] == "local" else [game]
        for each in holders:
            each |= {name: _eighths(each[name], rng, sure=True) for name in ("transition", "initial")}
    if not rational and form != "rota" and rng.random() < 0.2:
        game["sparse"] = True
    shapes = shapes_of(game)
    binds = np.ones((len(shapes), constraints), dtype=int)
    if constraints and rng.random() < 0.15:
        binds[rng.integers(len(shapes)), rng.integers(constraints)] = len(shapes) == 1
    prices = numbers.multipliers(binds.shape) * binds if form == "rota" else None
    prices = np.where(binds == 0, 0.0, finite(numbers.multipliers(binds.shape)) if prices is None else prices)
    prices = np.where(np.isnan(prices), 0.0, prices)
    modes, law, weights, problem = [], None, None, ""
    if form == "rota":
        modes = [[numbers.policy(shape) for shape in shapes] for _ in range(int(rng.integers(1, 5)))]
        if sure:
            modes = [[_eighths(table, rng, sure=True) for table in mode] for mode in modes]
        weights = numbers.rows((len(modes),), mixed=0.6)
        weights = np.where(weights == 0, Fraction(1, 10**330) if rational else rng.choice(SMALL), weights)
        if rational:
            weights = weights / weights.sum()
        judged: Any = RotaJudge(judge(game), modes, weights.tolist())
    else:
        outcomes = game["rewards"].shape[2:]
        flat = numbers.rows((shapes[0][0], outcomes[0], math.prod(outcomes[1:])), mixed=0.6)
        law = flat.reshape(shapes[0][0], *outcomes)
        judged = DeviceJudge(judge(game).process, law, form == "coarse")
    game["thresholds"] = thresholds_near(judged.costs(), numbers)
    if form == "rota":
        judged = replace(judged, judged=judged.judged.with_thresholds(game["thresholds"]))
    else:
        limits = [Fraction(each) for each in game["thresholds"].tolist()]
        judged = replace(judged, process=replace(judged.process, thresholds=limits))
    if forged:
        weights, law, problem = _forged_device(weights, law, rng)
    arithmetic = "rationals" if rational else "floats"
    return DeviceDraw(seed, form, arithmetic, game, modes, weights, law, binds, prices, judged, problem)


def _forged_device(weights: Any, law: Any, rng: np.random.Generator) -> tuple[Any, Any, str]:
    if weights is not None:
        wrong = str(rng.choice(["sum", "negative", "number"])) if len(weights) > 1 else "sum"
        if wrong == "number":
            return weights[1:] / weights[1:].sum(), law, "a mode has no weight"
        if wrong == "sum":
            return weights * (1 + Fraction(1, 10**6) if weights.dtype == object else 1 + 1e-6), law, "weights"
        changed = weights.copy()
        changed[0], changed[1] = changed[0] + 2 * changed[1], -changed[1]
        return changed, law, "a weight is negative"
    changed = law.copy()
    changed.flat[0] = changed.flat[0] + (Fraction(1, 10**6) if law.dtype == object else 1e-6)
    return weights, changed, "a row that does not sum to one"


# --- Budgets on risk --------------------------------------------------------------------------------------------------


def _risky_game(numbers: Numbers) -> tuple[Game, int, float]:
    """A joint game whose first cost has a unit, how many units it adds up to at most, and the unit."""
    rng = numbers.rng
    form, constraints = "sparse" if rng.random() < 0.3 else "joint", int(rng.integers(1, 3))
    game = draw_game(form, numbers, constraints)
    while game["horizon"] * math.prod(game["costs"].shape[2:]) > 40:  # sums multiply what can happen
        game = draw_game(form, numbers, constraints)
    unit = float(rng.choice([1.0, 0.125, 2.0**1000, 5e-324, 3e-323, 2.0**-1000, 0.1, 7.0, 1.5e308]))
    amounts = rng.choice([0, 0, 1, 2, 3], size=game["costs"].shape[1:])
    if unit in (0.1, 1.5e308):  # of which multiples are no floats
        amounts = amounts > 0
    game["costs"][0] = amounts * unit
    most = sum(int(amounts[0 if len(amounts) == 1 else h].max()) for h in range(game["horizon"]))
    return game, most, unit


def _beside(limit: float, rng: np.random.Generator) -> float:
    """A limit, or the float on one side of it; none is negative or infinite."""
    near = float(rng.choice([limit, np.nextafter(limit, -np.inf), np.nextafter(limit, np.inf)]))
    return min(max(near, 0.0), float(np.finfo(np.float64).max))


def _chance(seed: int, numbers: Numbers) -> Claim:
    rng = numbers.rng
    game, most, unit = _risky_game(numbers)
    limits = [_beside(unit * int(rng.integers(0, most + 2)), rng) for _ in range(int(rng.integers(1, 3)))]
    keep = bool(rng.random() < 0.5)
    kept = [j for j in range(len(game["costs"])) if keep or j]
    counted = Counted(game, 0, Fraction(max(limits)))
    ends = [lambda total, limit=Fraction(each): Fraction(total > limit) for each in limits]
    judged = RiskJudge(counted, JointJudge(counted.process(kept, ends, [0] * (len(kept) + len(ends)))))
    policy = [numbers.policy((h, s * counted.levels, a)) for h, s, a in shapes_of(game)]
    costs = judged.costs(policy)
    thresholds = thresholds_near(costs, numbers)
    thresholds[len(kept) :] = np.clip(thresholds[len(kept) :], 0.0, 1.0)
    game["thresholds"] = np.zeros(len(game["costs"]))
    game["thresholds"][kept] = thresholds[: len(kept)]
    judged = judged.with_thresholds(thresholds)
    binds = np.ones((len(policy), len(thresholds)), dtype=int)
    weights = np.abs(rng.normal(size=len(thresholds))) * (rng.random(len(thresholds)) < 0.7)
    budgets = tuple(zip(limits, thresholds[len(kept) :].tolist(), strict=True))
    prices = numbers.multipliers(binds.shape)
    return Claim(
        seed, "chance", "floats", game, policy, prices, binds, weights, judged, budgets=budgets, keep_expected=keep
    )


def _cvar(seed: int, numbers: Numbers, *, forged: bool) -> CVaRDraw:
    rng = numbers.rng
    game, most, unit = _risky_game(numbers)
    at_most = 5e-324 if rng.random() < 0.1 else _beside(unit * int(rng.integers(0, most + 2)), rng)
    level = float(rng.choice([0.0, 0.5, 0.75, 0.9, 2 / 3, 1e-17, 5e-324, 1 - 2.0**-53, 1 - 2.0**-20]))
    counted = Counted(game, 0, Fraction(at_most))
    policy = [numbers.policy((h, s * counted.levels, a)) for h, s, a in shapes_of(game)]
    true = cvar(law_of(counted, policy), Fraction(level))
    near = min(max(threshold_near(str(rng.choice(["nearest", "above", "below", "hair"])), true, rng), 0.0), 1e308)
    moved = Counted(game, 0, Fraction(near))
    if moved.levels == counted.levels:  # otherwise the policy is one of another game
        at_most, counted = near, moved
    keep = bool(rng.random() < 0.4)
    kept = [j for j in range(len(game["costs"])) if keep or j]
    judged = RiskJudge(counted, JointJudge(counted.process(kept, [], [0] * len(kept))))
    game["thresholds"] = np.zeros(len(game["costs"]))
    game["thresholds"][kept] = thresholds_near(judged.costs(policy), numbers)
    judged = judged.with_thresholds(game["thresholds"][kept])
    last = int(min(Fraction(at_most) // counted.unit, counted.levels - 2))
    cuts = sorted({0, *(int(each) for each in rng.integers(0, last + 1, size=int(rng.integers(0, 3))))})
    ends = [*(each - 1 for each in cuts[1:]), last]
    shape = (len(policy), len(kept) + 1)
    boxes = [(low, high, finite(numbers.multipliers(shape))) for low, high in zip(cuts, ends, strict=True)]
    problem = ""
    if forged:
        low, high, prices = boxes.pop()
        boxes += [(low, high - 1, prices)] if low < high else []
        problem = "a t is left out"
    return CVaRDraw(seed, game, level, at_most, keep, policy, boxes, counted, judged, problem)


def law_of(counted: Counted, policy: Any) -> dict[Fraction, Fraction]:
    """The law of the sum of a cost under a policy on (s, x)."""
    process = counted.process([counted.cost], [], [0])
    found: dict[Fraction, Fraction] = {}
    for (h, state, joint), chance in JointJudge(process)._visits(counted.seen(policy)).items():
        if h == process.steps - 1:
            total = state[1] + process.cost(0, h, state, joint)
            found[total] = found.get(total, ZERO) + chance
    return found
