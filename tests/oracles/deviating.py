"""What an agent gains by the best deviation from a device, by linear programs over all deviations.

Nothing of the library is in here. A game is a plain dict, as in `judge`; a rota is a list of policies (one table [H, S,
A_i] for each agent) with weights, a correlated policy a table [H, S, *A]. A deviation from a rota knows the mode; one
from a correlated policy knows its recommendation; a coarse one chooses in each state between following and an action.
All of them may randomise, and must keep the thresholds; none has to keep anything else. Optima are those of HiGHS.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog

from oracles.judge import Game, at


def product_law(policy: Any, step: int) -> np.ndarray:
    """The law of joint actions of a product policy: [S, *A]."""
    law = np.ones(policy[0].shape[1])
    for i, table in enumerate(policy):
        law = law[..., None] * table[step].reshape(len(table[step]), *(1,) * i, -1)
    return law


def joint_tables(game: Game, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rewards [n, S, *A], costs [k, S, *A] and transition [S, *A, S] of a step."""
    rewards = np.stack([at(table, step) for table in game["rewards"]])
    costs = np.array([at(table, step) for table in game["costs"]]).reshape(-1, *rewards.shape[1:])
    return rewards, costs, at(game["transition"], step)


def value_of(game: Game, laws: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """What a law of joint actions per step is worth to each agent, and costs: by following the states forwards."""
    mass, values, spent = game["initial"], 0.0, 0.0
    for step, law in enumerate(laws):
        rewards, costs, moves = joint_tables(game, step)
        flow = (mass.reshape(-1, *(1,) * (law.ndim - 1)) * law).ravel()
        values, spent = values + rewards.reshape(len(rewards), -1) @ flow, spent + costs.reshape(len(costs), -1) @ flow
        mass = flow @ moves.reshape(len(flow), -1)
    return values, spent


class Program:
    """A linear program over flows, filled in block by block."""

    def __init__(self, constraints: int) -> None:
        self.worth: list[float] = []
        self.spent: list[list[float]] = [[] for _ in range(constraints)]
        self.rows: list[dict[int, float]] = []
        self.right: list[float] = []

    def column(self, worth: float, spent: Any) -> int:
        """Add a variable."""
        self.worth.append(worth)
        for row, each in zip(self.spent, spent, strict=True):
            row.append(each)
        return len(self.worth) - 1

    def row(self, entries: dict[int, float], right: float) -> None:
        """Add an equation."""
        self.rows.append(entries)
        self.right.append(right)

    def best(self, thresholds: Any, bound: Any, *, empty: float | None = None) -> float:
        """The optimum, subject to the thresholds that bind; `empty` where nothing is feasible, if that is allowed."""
        equations = np.zeros((len(self.rows), len(self.worth)))
        for r, entries in enumerate(self.rows):
            for c, each in entries.items():
                equations[r, c] += each
        kept = [j for j in range(len(self.spent)) if bound[j]]
        limits = np.array([self.spent[j] for j in kept]).reshape(len(kept), -1)
        found = linprog(
            -np.array(self.worth),
            A_ub=limits if kept else None,
            b_ub=[thresholds[j] for j in kept] if kept else None,
            A_eq=equations,
            b_eq=self.right,
            method="highs-ds",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if found.status == 2 and empty is not None:
            return empty
        assert found.status == 0, found.message
        return float(-found.fun)


def _deviate(program: Program, game: Game, agent: int, laws: list[np.ndarray], weight: float, hears: str) -> None:
    """Add the flows of one agent's deviations against laws of joint actions."""
    inflow: list[dict[int, float]] = [{} for _ in game["initial"]]
    for step, law in enumerate(laws):
        rewards, costs, moves = joint_tables(game, step)
        arriving = (
            {s: weight * p for s, p in enumerate(game["initial"])} if step == 0 else dict.fromkeys(range(len(law)), 0)
        )
        ahead: list[dict[int, float]] = [{} for _ in law]
        for s in range(len(law)):
            own = np.moveaxis(law[s], agent, 0).reshape(law.shape[1 + agent], -1)  # [b, rest]
            of = {
                "reward": np.moveaxis(rewards[agent, s], agent, 0).reshape(len(own), -1),
                "costs": np.moveaxis(costs[:, s], 1 + agent, 1).reshape(len(costs), *own.shape),
                "moves": np.moveaxis(moves[s], agent, 0).reshape(*own.shape, -1),
            }
            # What a deviation may be told: its recommendation, or nothing, and then it may follow unseen.
            groups: list[tuple[float, list[tuple[float, Any, Any]]]] = []
            if hears == "recommendation":
                for b in range(len(own)):
                    if own[b].sum() > 0:
                        rest = own[b] / own[b].sum()
                        groups.append((own[b].sum(), [_expected(of, a, rest) for a in range(len(own))]))
            else:
                blind = [_expected(of, a, own.sum(axis=0)) for a in range(len(own))]
                parts = [_expected(of, b, own[b]) for b in range(len(own))]
                followed = tuple(sum(each) for each in zip(*parts, strict=True))
                groups.append((1.0, [*blind, followed] if hears == "nothing" else blind))
            for share, options in groups:
                entries: dict[int, float] = {}
                for worth, spent, goes in options:
                    column = program.column(worth, spent)
                    entries[column] = 1.0
                    for target, p in enumerate(goes):
                        if p:
                            ahead[target][column] = ahead[target].get(column, 0.0) + p
                for column, p in inflow[s].items():
                    entries[column] = entries.get(column, 0.0) - share * p
                program.row(entries, share * arriving[s])
        inflow = ahead


def _expected(of: dict[str, np.ndarray], action: int, rest: np.ndarray) -> tuple[float, Any, Any]:
    return float(of["reward"][action] @ rest), of["costs"][:, action] @ rest, rest @ of["moves"][action]


def rota_gain(game: Game, modes: Any, weights: Any, agent: int, bound: Any = None) -> float:
    """The most that one agent gains by a deviation that knows the mode and keeps the thresholds on average."""
    program = Program(len(game["thresholds"]))
    now = 0.0
    for policy, weight in zip(modes, weights, strict=True):
        laws = [product_law(policy, h) for h in range(game["horizon"])]
        _deviate(program, game, agent, laws, float(weight), "mode")
        now += float(weight) * value_of(game, laws)[0][agent]
    bound = [True] * len(game["thresholds"]) if bound is None else bound
    return program.best(game["thresholds"], bound) - now


def correlated_gain(game: Game, table: np.ndarray, agent: int, *, coarse: bool = False) -> float:
    """The most that one agent gains by a deviation from a correlated policy; with `coarse`, one that hears nothing."""
    program, laws = Program(len(game["thresholds"])), list(table)
    _deviate(program, game, agent, laws, 1.0, "nothing" if coarse else "recommendation")
    return program.best(game["thresholds"], [True] * len(game["thresholds"])) - value_of(game, laws)[0][agent]


def best_correlated(game: Game, reward: np.ndarray) -> float:
    """The greatest value of a stage reward [H, S, *A] over all correlated policies that keep the thresholds: D*."""
    program = Program(len(game["thresholds"]))
    inflow: list[dict[int, float]] = [{} for _ in game["initial"]]
    for step in range(game["horizon"]):
        _, costs, moves = joint_tables(game, step)
        ahead: list[dict[int, float]] = [{} for _ in game["initial"]]
        for s in range(len(game["initial"])):
            entries = {}
            for a in np.ndindex(reward.shape[2:]):
                column = program.column(float(reward[(step, s, *a)]), costs[(slice(None), s, *a)])
                entries[column] = 1.0
                for target, p in enumerate(moves[(s, *a)]):
                    ahead[target][column] = float(p)
            for column, p in inflow[s].items():
                entries[column] = entries.get(column, 0.0) - p
            program.row(entries, float(game["initial"][s]) if step == 0 else 0.0)
        inflow = ahead
    return program.best(game["thresholds"], [True] * len(game["thresholds"]))


def draw_potential_game(seed: int) -> tuple[Game, np.ndarray, str]:
    """A random joint game with a potential by construction, the stage reward of that potential, and its class."""
    rng = np.random.default_rng((29, seed))
    agents, states, steps = int(rng.integers(2, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    actions = tuple(int(each) for each in rng.integers(2, 4 if agents == 2 else 3, size=agents))
    constraints, kind = int(rng.integers(1, 4)), ("C1", "C2", "C4")[int(rng.integers(3))]
    table = (steps, states, *actions)
    common = rng.normal(size=table)
    moves = rng.dirichlet(np.ones(states), size=table)
    rewards = np.stack([common] * agents)
    if kind == "C2":  # nothing moves the state; each reward has a term that its own action does not change
        moves = np.broadcast_to(moves[(slice(None), slice(None), *(slice(0, 1),) * agents)], (*table, states)).copy()
        for i in range(agents):
            rewards[i] += np.take(rng.normal(size=table), [0], axis=2 + i)
    if kind == "C4":  # differences that telescope: f_h(s) − E f_{h+1}(s′) is worth the same whatever is done
        for i in range(1, agents):
            f = np.vstack([rng.normal(size=(steps, states)), np.zeros(states)])
            rewards[i] += f[:-1].reshape(steps, states, *(1,) * agents) - np.einsum("hs...t,ht->hs...", moves, f[1:])
    costs = rng.random((constraints, *table)) * (rng.random((constraints, *table)) < 0.7)
    game = {
        "form": "joint",
        "horizon": steps,
        "transition": moves,
        "rewards": rewards,
        "costs": costs,
        "initial": rng.dirichlet(np.ones(states)),
        "thresholds": np.zeros(constraints),
    }
    laws = [
        rng.dirichlet(np.full(int(np.prod(actions)), 0.3), size=states).reshape(states, *actions) for _ in range(steps)
    ]
    game["thresholds"] = value_of(game, laws)[1]  # met by a correlated policy, and seldom by a selfish one
    return game, common, kind
