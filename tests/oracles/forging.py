"""Forged claims about random games: each says more than is true, and must be refused.

A claim is forged in one of these ways, and an exact judge that shares no code with the library says that it is false:

- the policy exceeds a threshold, by much or by the last bit, and is claimed to be feasible;
- an agent has a deviation that keeps the thresholds and gains more than the claimed epsilon;
- a multiplier is negative, missing, or no number;
- weights are said to prove that no policy is feasible, where some policy is;
- a run folder has another policy, other multipliers, or other numbers than were computed;
- a proof by support of a budget of which something is left, or of which more is spent, or beside which somebody gains;
- an agent whom a constraint does not bind gains by breaking it, and its price is claimed to forbid that;
- a run folder of such a game has other prices, or a mask that binds whom it did not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from cmpg.cmdp.exact import Exact
from cmpg.equilibrium.certificate import certify
from cmpg.equilibrium.infeasibility import prove_infeasible
from cmpg.equilibrium.result import Status
from cmpg.equilibrium.solve import solve
from cmpg.errors import CMPGError, FileError
from cmpg.files.games import save_game
from cmpg.files.run_folder import load_run
from cmpg.games.constraints import bind
from cmpg.policy import JointPolicy
from oracles.judge import judge
from oracles.random_games import draw, shapes_of
from oracles.sweeping import build, hardened


def forged(seed: int, folder: Path, *, private: bool = False) -> tuple[str, bool]:
    """Forge one claim; return its kind, and whether it was refused. Private ones are about masks and support."""
    rng = np.random.default_rng((seed, 7) if private else seed)
    kinds: list[Callable[..., bool | None]] = [_exceeding, _gaining, _multipliers, _infeasible, _folder]
    if private:
        kinds = [*(_by_support,) * 6, _unbound, _priced, _private_folder]
    for kind in (kinds[index] for _ in range(4) for index in rng.permutation(len(kinds))):
        drawn = draw(int(rng.integers(2**31)))
        try:
            refused = kind(drawn, rng, folder / f"{seed}")
        except CMPGError:
            refused = True
        if refused is not None:
            return kind.__name__.strip("_"), refused
    return "none", True


def _policy(drawn: Any, rng: np.random.Generator) -> JointPolicy:
    tables = [rng.dirichlet(np.full(actions, 0.6), size=(h, s)) for h, s, actions in shapes_of(drawn.game)]
    if rng.random() < 0.5:
        tables = [np.eye(table.shape[2])[table.argmax(axis=-1)] for table in tables]
    return JointPolicy(tuple(tables))


def _exact_mode(game: Any, rng: np.random.Generator) -> bool:
    return game.discount is None and type(game).__name__ != "LocalGame" and bool(rng.random() < 0.3)


def _exceeding(drawn: Any, rng: np.random.Generator, _: Path) -> bool | None:
    """A policy that spends a hair, or more, than it may."""
    policy = _policy(drawn, rng)
    costs = judge(drawn.game).costs(policy.tables)
    if not costs:
        return None
    limits = np.array([_below(cost) for cost in costs])
    below = int(rng.integers(len(costs)))
    others = np.arange(len(costs)) != below
    limits[others] += 1.0 + np.abs(limits[others])
    if rng.random() < 0.3:
        limits[below] -= float(rng.random()) * max(abs(limits[below]), 1e-3)
    game = build(drawn.game | {"thresholds": limits})
    claim = certify(game, policy, _any_multipliers(game, rng), exact=_exact_mode(game, rng))
    return not claim.proves(np.inf) and not claim.feasible


def _below(cost: Fraction) -> float:
    """The next float that is certainly less, also after a game's rows were divided by their sums in floats."""
    nearest = float(cost)
    return nearest - 1e-13 * max(abs(nearest), 1e-12)


def _gaining(drawn: Any, rng: np.random.Generator, _: Path) -> bool | None:
    """A policy from which somebody gains more than is claimed, by a deviation that keeps the thresholds."""
    game, policy = build(drawn.game), _policy(drawn, rng)
    judged = judge(drawn.game)
    agent = int(rng.integers(game.num_agents))
    try:
        response = Exact()(game.at(policy).induced_cmdp(agent)).policy
    except CMPGError:
        return None
    moved = policy.replace(agent, response)
    if any(cost > limit for cost, limit in zip(judged.costs(moved.tables), judged.thresholds, strict=True)):
        return None
    gain = float(judged.values(moved.tables)[agent] - judged.values(policy.tables)[agent])
    if gain <= 1e-12:
        return None
    claim = certify(game, policy, _any_multipliers(game, rng), exact=_exact_mode(game, rng))
    return not claim.proves(gain * float(rng.uniform(0.1, 0.999)), allow_rounding=np.inf)


def _any_multipliers(game: Any, rng: np.random.Generator) -> np.ndarray:
    shape = (game.num_agents, len(game.thresholds))
    drawn = rng.exponential(size=shape) * 10.0 ** rng.integers(-6, 7)
    return np.where(rng.random(shape) < 0.2, np.inf, drawn * (rng.random(shape) < 0.7))


def _multipliers(drawn: Any, rng: np.random.Generator, _: Path) -> bool | None:
    """Multipliers that are none."""
    game, policy = build(drawn.game), _policy(drawn, rng)
    forged_ones = np.zeros((game.num_agents, len(game.thresholds)))
    if not forged_ones.size:
        return None
    forged_ones.flat[rng.integers(forged_ones.size)] = rng.choice([-1.0, -1e-300, np.nan, -np.inf])
    return not certify(game, policy, forged_ones).proves(np.inf)


def _infeasible(drawn: Any, rng: np.random.Generator, _: Path) -> bool | None:
    """Weights that are said to prove that nothing is feasible, where something is."""
    if drawn.feasible is not True or not len(drawn.game["thresholds"]):
        return None
    weights = rng.exponential(size=len(drawn.game["thresholds"])) * rng.choice([0.0, 1.0, -1.0, 1e9])
    return not prove_infeasible(build(drawn.game), weights).holds


def _folder(drawn: Any, rng: np.random.Generator, folder: Path) -> bool | None:
    """A run folder in which something was changed."""
    game = build(drawn.game)
    result = solve(game, epsilon=1e-3 * max(float(np.max(game.reward_ranges)), 1e-9), time_limit=5)
    if not result.certified or (game.reward_ranges == 0).all():
        return None
    result.save(folder)
    kind = rng.integers(4)
    if kind == 0:  # another policy, of which the same is claimed
        other = _policy(drawn, rng)
        if certify(game, other, result.multipliers).proves(result.epsilon):
            return None
        other.save(folder / "policy.npz", multipliers=result.multipliers)
    elif kind == 1:  # other multipliers
        if not result.multipliers.size:
            return None
        result.policy.save(folder / "policy.npz", multipliers=-1 - result.multipliers)
    else:
        name = "certificate.json" if kind == 2 else "result.json"
        record = json.loads((folder / name).read_text("utf-8"))
        field = str(rng.choice(["values", "costs"] if kind == 3 else ["values", "costs", "gains", "bounds"]))
        if not record[field]:
            return None
        record[field][0] = (record[field][0] or 0.0) + 1.0 + abs(record[field][0] or 0.0)
        (folder / name).write_text(json.dumps(record), "utf-8")
    try:
        again = load_run(folder).result
    except FileError:
        return True
    return again.status is not Status.CERTIFIED


def _hard_game(drawn: Any, rng: np.random.Generator) -> Any:
    return hardened(drawn, rng) if len(drawn.game["thresholds"]) else None


def _by_support(drawn: Any, rng: np.random.Generator, _: Path) -> bool | None:
    """A proof by support, of a policy that breaks a budget of zero, or beside which somebody gains without a cost."""
    hard = _hard_game(drawn, rng)
    if hard is None:
        return None
    game = build(hard.game)
    result = solve(game, epsilon=1e-3 * max(float(np.max(game.reward_ranges)), 1e-9), time_limit=5)
    if result.incumbent is None:
        return None
    agent = int(rng.integers(game.num_agents))
    shape = game.policy_shapes[agent]
    other = np.eye(shape[2])[rng.integers(shape[2], size=shape[:2])]
    share = float(rng.choice([1.0, 0.5, 1e-9, 1e-16, 1e-100]))
    policy = result.policy.replace(agent, (1 - share) * np.asarray(result.policy[agent]) + share * other)
    multipliers = np.where(rng.random((game.num_agents, len(game.thresholds))) < 0.8, np.inf, 0.0)
    judged = judge(hard.game)
    epsilon = 1e-3 * max(float(np.max(game.reward_ranges)), 1e-9)
    if all(cost <= limit for cost, limit in zip(judged.costs(policy.tables), judged.thresholds, strict=True)):
        gain = _true_gain(game, judged, policy, range(game.num_agents), np.ones_like(multipliers))
        if gain is None or gain <= 1e-12:
            return None  # it may be true
        epsilon = gain * float(rng.uniform(0.1, 0.999))
    claim = certify(game, policy, multipliers, exact=_exact_mode(game, rng))
    return not claim.proves(epsilon)


def _true_gain(game: Any, judged: Any, policy: JointPolicy, agents: Any, binds: np.ndarray) -> float | None:
    """Return what somebody gains for sure by a deviation that keeps what binds it; None where none is known."""
    best = None
    for agent in agents:
        cmdp = game.at(policy).induced_cmdp(agent)
        try:
            response = Exact()(cmdp).policy
        except CMPGError:
            continue
        moved = policy.replace(agent, response)
        costs = judged.costs(moved.tables)
        kept = [cost <= limit for cost, limit in zip(costs, judged.thresholds, strict=True)]
        if all(ok or not bound for ok, bound in zip(kept, binds[agent], strict=True)):
            gain = float(judged.values(moved.tables)[agent] - judged.values(policy.tables)[agent])
            best = gain if best is None else max(best, gain)
    return best


def _masked(drawn: Any, rng: np.random.Generator) -> tuple[Any, np.ndarray] | None:
    """Return a game some of whose constraints do not bind everybody."""
    constraints = len(drawn.game["thresholds"])
    game = build(drawn.game)
    binds = rng.integers(2, size=(game.num_agents, constraints))
    return None if binds.all() else (bind(game, binds), binds)


def _unbound(drawn: Any, rng: np.random.Generator, _: Path) -> bool | None:
    """A policy from which somebody gains by breaking what does not bind it, and which is claimed to be Nash."""
    found = _masked(drawn, rng)
    if found is None:
        return None
    game, binds = found
    policy = _policy(drawn, rng)
    free = [agent for agent in range(game.num_agents) if not binds[agent].all()]
    gain = _true_gain(game, judge(drawn.game), policy, free, binds)
    if gain is None or gain <= 1e-12:
        return None
    multipliers = np.where(binds, _any_multipliers(game, rng), 0.0)
    claim = certify(game, policy, multipliers, exact=_exact_mode(game, rng))
    return not claim.proves(gain * float(rng.uniform(0.1, 0.999)), allow_rounding=np.inf)


def _priced(drawn: Any, rng: np.random.Generator, _: Path) -> bool | None:
    """A price for somebody whom the constraint does not bind; it is refused by an error."""
    found = _masked(drawn, rng)
    if found is None:
        return None
    game, binds = found
    multipliers = np.zeros(binds.shape)
    places = np.argwhere(binds == 0)
    multipliers[tuple(places[rng.integers(len(places))])] = rng.choice([1e-300, 1.0, 1e9, np.inf])
    return not certify(game, _policy(drawn, rng), multipliers).proves(np.inf)


def _private_folder(drawn: Any, rng: np.random.Generator, folder: Path) -> bool | None:
    """A run folder of a game with a mask in which the prices, or the mask, were changed."""
    hard = _hard_game(drawn, rng) if rng.random() < 0.5 else drawn
    found = None if hard is None else _masked(hard, rng)
    if found is None:
        return None
    game, binds = found
    result = solve(game, epsilon=1e-3 * max(float(np.max(game.reward_ranges)), 1e-9), time_limit=5)
    if not result.certified or (game.reward_ranges == 0).all():
        return None
    result.save(folder)
    kind = rng.integers(3)
    if kind == 0:  # a price of whom the constraint does not bind
        result.policy.save(folder / "policy.npz", multipliers=result.multipliers + (binds == 0))
    elif kind == 1:  # the same numbers, and a mask that binds everybody else: another game
        save_game(bind(game, 1 - binds), folder / "game.npz")
    else:  # support where there was none, or none where there was
        multipliers = np.where(binds > 0, np.where(np.isinf(result.multipliers), 0.0, np.inf), 0.0)
        if certify(game, result.policy, multipliers).proves(result.epsilon):
            return None
        result.policy.save(folder / "policy.npz", multipliers=multipliers)
    try:
        again = load_run(folder).result
    except FileError:
        return True
    return again.status is not Status.CERTIFIED
