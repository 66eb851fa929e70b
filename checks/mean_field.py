"""How far is a mean-field policy from an equilibrium of finitely many agents?

    python -m checks mean-field [--most 7] [--days 6]

In a mean-field policy all agents of a kind play alike, and the load is taken for its mean. Certified for 10², 10³, …
agents:

- roads: one kind, which uses a road or stays at home. The delay is a curve of load/n; in the limit 40 % use the road,
  so every agent uses it with probability 0.4. On a *straight* curve the delay of a mean load is the mean delay; on one
  that is free of delay up to a capacity of 0.4·n and rises from there, it is not: the load varies by √n.
- a day of car charging: the groups of an equilibrium, put together to one mixture for each kind, with the same means.

Everything is written to build/mean-field.md.
"""

from __future__ import annotations

import argparse

import numpy as np

from checks import BUILD
from cmpg import certify, scenarios, solve
from cmpg.games import CrowdGame, CrowdPolicy, LoadCurve, LocalAgent

SHARE = 0.4
"""This share of the agents uses the road in the limit."""


def main(argv: list[str]) -> int:
    """Run the check."""
    parser = argparse.ArgumentParser(prog="python -m checks mean-field", description=__doc__)
    parser.add_argument("--most", type=int, default=7, help="roads of up to 10 to the power of this many agents")
    parser.add_argument("--days", type=int, default=6, help="charging days of up to 10 to the power of this many cars")
    chosen = parser.parse_args(argv)
    lines = ["| agents | straight curve: gain | capacity: gain | gain·√n |", "|---|---|---|---|"]
    sizes = [10**power for power in range(2, chosen.most + 1)]
    gains = np.array([[road_gain(n, kinked=kinked) for kinked in (False, True)] for n in sizes])
    for n, (straight, bent) in zip(sizes, gains, strict=True):
        lines.append(f"| {n:,} | {straight:.3g} | {bent:.3g} | {bent * n**0.5:.4f} |")
    slopes = [np.polyfit(np.log(sizes), np.log(column), 1)[0] for column in gains.T]
    lines.append(f"\nExponents of n: {slopes[0]:.3f} and {slopes[1]:.3f}.\n")
    lines += ["| cars | overload in equilibrium | of the mixtures |", "|---|---|---|"]
    for power in range(3, chosen.days + 1):
        n = 10**power
        held, mixed = overloads(n)
        lines.append(f"| {n:,} | {held:.3f} | {mixed:.2f} |")
        print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    BUILD.mkdir(exist_ok=True)
    (BUILD / "mean-field.md").write_text(text, "utf-8")
    print(text)
    return 0


def road_gain(agents: int, *, kinked: bool) -> float:
    """Return what a member gains at most, where all use the road with the probability that is right in the limit."""
    full = round(SHARE * agents)
    curve = LoadCurve([0, full, agents], [0, 0, 2 * (1 - SHARE)]) if kinked else LoadCurve([0, agents], [0, 1])
    worth = 0.0 if kinked else SHARE
    kind = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, worth]]], uses=[[[[0], [1]]]], initial=[1])
    game = CrowdGame(
        kinds=[kind], numbers=[agents], curves=[curve], delay=[[0]], load_costs=[], thresholds=[], horizon=1
    )
    return float(certify(game, CrowdPolicy([0], [agents], ([[[1 - SHARE, SHARE]]],))).epsilon)


def overloads(agents: int) -> tuple[float, float]:
    """Return the certified overload of an equilibrium of a charging day, and that of its mixtures by kind."""
    game = scenarios.charging(agents=agents, seed=3)
    result = solve(game, epsilon=1e-4, rng=0)
    policy = result.policy
    tables = []
    for k in range(game.num_kinds):
        own = np.flatnonzero(policy.kind == k)
        weights = policy.number[own] / policy.number[own].sum()
        visits = sum(
            share * occupancy(game.kinds[k], policy.plans[g]) for g, share in zip(own.tolist(), weights, strict=True)
        )
        total = visits.sum(axis=2, keepdims=True)
        even = np.full(visits.shape, 1 / visits.shape[2])
        tables.append(np.where(total > 0, visits / np.where(total > 0, total, 1.0), even))
    mixtures = CrowdPolicy(np.arange(game.num_kinds), np.asarray(game.numbers), tuple(tables))
    found = certify(game, mixtures, np.zeros((game.num_kinds, game.num_constraints)))
    return float(result.certificate.costs[0]), float(found.costs[0])


def occupancy(agent: LocalAgent, table: np.ndarray) -> np.ndarray:
    """Return how likely a member that plays a table comes to each pair of state and action: [H, S, A]."""
    visits = agent.visits(np.asarray(table))
    return visits.pairs.reshape(len(table), agent.num_states, agent.num_actions)


if __name__ == "__main__":
    import sys

    raise SystemExit(main(sys.argv[1:]))
