"""Simulated agent-steps a second, on one core.

Every scenario is solved, and its policy is played for at least so many agent-steps; what is timed is `simulate` as a
whole, with the claims, the episodes that are kept and the tables that are prepared.
"""

from __future__ import annotations

import time

import numpy as np

import cmpg
from checks.bench.outcome import Outcome
from cmpg import scenarios

GAMES = {
    "grid-world": lambda: scenarios.grid_world(),
    "congestion": lambda: scenarios.congestion_game(),
    "congestion-counting, 100 agents": lambda: scenarios.counting_congestion_game(num_agents=100),
    "charging": lambda: scenarios.charging(),
    "robots": lambda: scenarios.robots(),
    "routing, 100 platoons": lambda: scenarios.routing(num_agents=100),
}


def main(quick: bool) -> list[Outcome]:
    outcomes = []
    for name, build in GAMES.items():
        game = build()
        policy = cmpg.solve(game, epsilon=1e-2).policy
        steps = game.horizon * game.num_agents
        episodes = max(1000, (10_000_000 if quick else 50_000_000) // steps)
        for kind, played in (("", policy), (", every row mixes", game.uniform_policy())):
            began = time.process_time()
            seen = cmpg.simulate(game, played, episodes, rng=np.random.default_rng(1))
            rate = seen.agent_steps / (time.process_time() - began)
            print(f"  {name + kind:<50s} {rate:10.3g} agent-steps/s  |z| ≤ {seen.largest_z:.2f}", flush=True)
            aim = None if kind else 1e7
            outcomes.append(Outcome(f"{name}{kind}", rate, aim, unit="agent-steps/s"))
    return outcomes
