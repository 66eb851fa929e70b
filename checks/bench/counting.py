"""The congestion game by counts: time per cycle as agents are added, and against tables over all joint actions.

A cycle is one turn of every agent: its induced CMDP, its best response, its move.
"""

import time
import tracemalloc

import numpy as np

import cmpg
from checks.bench.cmdp import afresh, beside_twin
from checks.bench.outcome import Outcome
from cmpg.cmdp.exact import Exact
from cmpg.scenarios.paper import congestion_game, counting_congestion_game


def asking(game, policy):
    """All induced CMDPs and all best responses at one position."""
    position = game.at(policy)
    return [Exact()(position.induced_cmdp(agent)).value for agent in range(game.num_agents)]


def cycle(game, policy):
    """Round robin: each agent moves before the next responds."""
    position = game.at(policy)
    values = []
    for agent in range(game.num_agents):
        response = Exact()(position.induced_cmdp(agent))
        position = position.replace(agent, response.policy)
        values.append(response.value)
    return values


def seconds(run, *arguments, repeats):
    best, answer = np.inf, None
    for _ in range(repeats):
        began = time.perf_counter()
        answer = run(*arguments)
        best = min(best, time.perf_counter() - began)
    return best, answer


def main(quick):
    outcomes = []
    print("agents   all responses: by tables, by counts, ratio   all move: by tables, by counts, ratio")
    for agents in (6, 8, 9):
        joint, counting = congestion_game(num_agents=agents), counting_congestion_game(num_agents=agents)
        policy = counting.random_policy(rng=np.random.default_rng(0))
        line = f"{agents:6d}"
        for run, width in ((asking, 24), (cycle, 25)):
            slow, expected = seconds(run, joint, policy, repeats=5)
            fast, found = seconds(run, counting, policy, repeats=20)
            line += f" {1e3 * slow:{width}.1f} ms {1e3 * fast:7.1f} ms {slow / fast:6.1f}×"
            if run is asking:
                difference = np.abs(np.subtract(expected, found)).max()
        print(f"{line}   (best responses differ by {difference:.0e})", flush=True)
        outcomes.append(Outcome(f"congestion, {agents} agents: a cycle by counts, against by tables", slow / fast))
        outcomes.append(Outcome("  difference of the best responses", difference, 1e-9, unit="", at_most=True))

    print("\nagents   responses, ms   cycle, ms   peak memory, MB   (all agents mix: tables of counts)")
    for agents in (8, 20, 50) if quick else (8, 20, 50, 100):
        game = counting_congestion_game(num_agents=agents)
        policy = game.random_policy(rng=np.random.default_rng(agents))
        repeats = 1 if agents >= 100 else 5
        responded, _ = seconds(asking, game, policy, repeats=repeats)
        moved, _ = seconds(cycle, game, policy, repeats=repeats)
        tracemalloc.start()
        game.at(policy).induced_cmdp(agents - 1)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"{agents:6d} {1e3 * responded:11.1f} {1e3 * moved:11.1f} {peak / 2**20:17.1f}", flush=True)
        if agents == 100:
            outcomes.append(Outcome("congestion, 100 agents: one cycle", moved, 10, unit="s", at_most=True))
    return outcomes + whole_solves((30, 100) if quick else (100, 300, 1_000))


def whole_solves(sizes):
    """Solve to a certificate; agents come to play one action for sure, and then only shift the counts."""
    print("\nagents   solve, s of the processor   by the NumPy twin   moves")
    aims, times, outcomes = {100: 0.1, 300: 2.0}, [], []
    for agents in sizes:
        game = counting_congestion_game(num_agents=agents)
        own, twin = beside_twin(
            lambda game=game: cmpg.solve(afresh(game), epsilon=1e-6), rounds=2 if agents <= 300 else 1
        )
        result = cmpg.solve(game, epsilon=1e-6)
        times.append(own)
        print(f"{agents:6d} {own:27.2f} {twin:19.2f} {result.moves:7d}   {result.status.name}", flush=True)
        outcomes += [
            Outcome(f"congestion by counts, {agents} agents: solve", own, aims.get(agents), unit="s", at_most=True),
            Outcome("  certified (1) or not (0)", float(result.certified), 1.0, unit=""),
            Outcome("  against the NumPy twin", twin / own),
        ]
    slope = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    name = f"congestion by counts, {sizes[0]} to {sizes[-1]:,} agents: exponent of the seconds"
    return [*outcomes, Outcome(name, slope, 2.0, unit="", at_most=True)]
