"""Policies that were trained elsewhere, judged exactly where the game can be enumerated, and by episodes, side by side.

    python -m checks trained [--episodes 1000] [--seed 0] [--only NAME]

On three environments of PettingZoo (rock, paper, scissors; tic-tac-toe, which is turn-based; pursuit, which shows
images), an aisle with PettingZoo's interface and a budget, and two scenarios. The policies: independent Q-learners
and independent PPO agents (Stable-Baselines3), both with a price on the cost that rises while the budget is exceeded,
and a heuristic. PPO rows are skipped where Stable-Baselines3 is not installed, pursuit where pygame is not. A row is
WRONG if the exact exploitability lies outside of the interval, which should happen in one of ten at most.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from checks import BUILD
from checks.judging import DELTA, truth
from cmpg import scenarios
from cmpg.interop import from_parallel_env, replay, to_parallel_env
from cmpg.judging.audits import Audit, audit
from cmpg.judging.environments import EnvironmentWorld, hashable, observed
from cmpg.judging.known import JudgedPolicy, judge_known
from cmpg.judging.single_agent import SingleAgentEnv
from cmpg.policy import JointPolicy

COLUMNS = ("environment", "policy", "cost", "exploitability, exact", "by episodes", "upper end", "CPU s")


class Aisle:
    """The warehouse aisle of the guide: two robots work or charge, and charging together overloads the bay."""

    possible_agents = ("red", "blue")

    def __init__(self) -> None:
        self.agents: list[str] = []
        self._time, self._units = 0, [0, 0]

    def action_space(self, _agent: str) -> Any:
        """Two actions."""
        from gymnasium.spaces import Discrete

        return Discrete(2)

    def observation_space(self, _agent: str) -> Any:
        """Both batteries."""
        from gymnasium.spaces import MultiDiscrete

        return MultiDiscrete([3, 3])

    def reset(self, seed: int | None = None) -> Any:
        """Begin with empty batteries."""
        del seed
        self.agents, self._time, self._units = list(self.possible_agents), 0, [0, 0]
        return self._see(), {agent: {} for agent in self.agents}

    def _see(self) -> dict[str, Any]:
        return {agent: np.array(self._units) for agent in self.possible_agents}

    def step(self, actions: Any) -> Any:
        """Work (0) or charge (1)."""
        chosen = [int(actions[agent]) for agent in self.possible_agents]
        pairs = [*zip(chosen, self._units, strict=True)]
        works = [action == 0 and units > 0 for action, units in pairs]
        self._units = [min(units + 1, 2) if action else units - (units > 0) for action, units in pairs]
        self._time += 1
        acted, over = self.agents, self._time == 4
        self.agents = [] if over else acted
        infos = {agent: {"cost": float(chosen == [1, 1])} for agent in acted}
        flags = dict.fromkeys(acted, False)
        return self._see(), dict(zip(acted, map(float, works), strict=True)), flags, dict.fromkeys(acted, over), infos


@dataclass(frozen=True)
class Place:
    """An environment, what is declared of it, and a rule of thumb for it."""

    make: Callable[[], Any]
    horizon: int
    reward_range: tuple[float, float]
    heuristic: Callable[[int, Any, int], Any]
    thresholds: tuple[float, ...] = ()
    enumerate: bool = True  # whether its game is written down by playing every joint action
    scenario: str = ""  # whose game it is, if it is one of the library's
    effort: float = 1.0  # share of the episodes, for environments that are slow

    def world(self, **options: Any) -> EnvironmentWorld:
        """Return it as a world."""
        declared: dict[str, Any] = {"reward_range": self.reward_range, "thresholds": self.thresholds}
        return EnvironmentWorld(self.make(), horizon=self.horizon, **declared, **options)


def places() -> dict[str, Place]:
    """Return what can be tried here."""
    from pettingzoo.classic.rps import rps
    from pettingzoo.classic.tictactoe import tictactoe

    found = {
        "rock, paper, scissors": Place(partial(rps.parallel_env, max_cycles=2), 2, (-1.0, 1.0), lambda i, *_: i),
        # The heuristic takes the middle, then the first square that is free.
        "tic-tac-toe": Place(
            tictactoe.env, 9, (-1.0, 1.0), lambda _i, seen, _h: _free(seen), enumerate=False, effort=0.5
        ),
    }
    if importlib.util.find_spec("pygame") is None:
        print("SKIPPED: pursuit needs pygame, which is not installed")
    else:
        from pettingzoo.sisl.pursuit import pursuit

        options: dict[str, Any] = {"x_size": 7, "y_size": 7, "n_evaders": 2, "n_pursuers": 2, "obs_range": 5}
        make = partial(pursuit.parallel_env, max_cycles=10, surround=False, **options)
        found["pursuit"] = Place(make, 10, (-1.0, 12.0), lambda i, *_: i, enumerate=False, effort=0.1)
    found["aisle"] = Place(Aisle, 4, (0.0, 1.0), lambda i, _s, h: int((h + i) % 2 == 0), (0.3,))
    for name in ("spectrum", "grid-world"):
        game = scenarios.scenario(name).build()
        limits = (float(game.rewards.min()), float(game.rewards.max()))
        thresholds = tuple(map(float, game.thresholds))
        make = partial(to_parallel_env, game)
        found[name] = Place(make, game.horizon, limits, lambda *_: 0, thresholds, scenario=name)
    return found


def _free(seen: Any) -> int:
    mask = np.asarray(seen["action_mask"], dtype=bool)
    return 4 if mask[4] else int(np.argmax(mask))


# --- Training ---------------------------------------------------------------------------------------------------------


def q_learned(place: Place, *, episodes: int, rng: np.random.Generator) -> Any:
    """Train independent Q-learners on reward less a price times cost, the price rising while the budget is exceeded."""
    world = place.world()
    played, sizes = world.episodic, world.num_actions
    tables: list[dict[Any, Any]] = [{} for _ in sizes]
    limits = np.asarray(place.thresholds)
    prices, spent_lately = np.zeros(len(limits)), np.zeros(len(limits))

    def row(i: int, seen: Any, h: int) -> Any:
        return tables[i].setdefault((h, hashable(seen)), np.zeros(sizes[i]))

    for episode in range(episodes):
        seen, spent = played.begin(rng), np.zeros(len(limits))
        explore = max(0.05, 1 - episode / (0.7 * episodes))
        for h in range(place.horizon):
            if not seen:
                break
            entries = [
                row(i, observed(seen[name]), h) if name in seen else None for i, name in enumerate(played.agents)
            ]
            greedy = [0 if entry is None else int(np.argmax(entry)) for entry in entries]
            chosen = [
                int(rng.integers(size)) if rng.random() < explore else a for a, size in zip(greedy, sizes, strict=True)
            ]
            turned = played.step(chosen)
            spent += turned.costs
            for i, (name, entry) in enumerate(zip(played.agents, entries, strict=True)):
                there = name in turned.observations and h + 1 < place.horizon
                ahead = row(i, observed(turned.observations[name]), h + 1).max() if there else 0.0
                if entry is not None:
                    priced = turned.rewards[i] - float(prices @ turned.costs)
                    entry[chosen[i]] += 0.1 * (priced + ahead - entry[chosen[i]])
            seen = turned.observations
        spent_lately = 0.99 * spent_lately + 0.01 * spent
        prices = np.maximum(prices + 0.01 * (spent_lately - limits), 0.0)
    return lambda i, seen, h: int(np.argmax(tables[i].get((h, hashable(seen)), np.zeros(sizes[i]))))


def ppo_trained(place: Place, *, rounds: int, steps: int, seed: int) -> Any:
    """Train PPO agents by turns, each against the others as they are, with a price on the cost."""
    import gymnasium
    from stable_baselines3 import PPO

    class Priced(gymnasium.Wrapper):  # type: ignore[misc]
        """Reward less a price times the cost of the step."""

        price, spent, episodes = 0.0, 0.0, 0

        def reset(self, **options: Any) -> Any:
            """Begin an episode."""
            self.episodes += 1
            return self.env.reset(**options)

        def step(self, action: Any) -> Any:
            """Play a step."""
            seen, reward, over, cut, info = self.env.step(action)
            self.spent += info["cost"]
            return seen, reward - self.price * info["cost"], over, cut, info

    sizes = place.world().num_actions
    models: dict[int, Any] = {i: lambda i, _seen, _h: np.full(sizes[i], 1 / sizes[i]) for i in range(len(sizes))}
    envs: dict[int, Any] = {}
    for turn in range(rounds):
        for i in range(len(sizes)):
            world = place.world()
            env = Priced(SingleAgentEnv(world, world.prepared(dict(models)), i, seed=seed + turn))
            if i in envs:
                before = envs[i]
                mean = before.spent / max(before.episodes, 1)
                env.price = max(before.price + 2.0 * (mean - sum(place.thresholds)), 0.0)
                models[i].set_env(env)
            else:
                kind = "MultiInputPolicy" if hasattr(env.observation_space, "spaces") else "MlpPolicy"
                fixed: dict[str, Any] = {"n_steps": 256, "batch_size": 64, "gamma": 1.0, "seed": seed, "device": "cpu"}
                models[i] = PPO(kind, env, **fixed)
            envs[i] = env
            models[i].learn(steps)
    return models


# --- Judging ----------------------------------------------------------------------------------------------------------


def exactly(place: Place, policy: Any, rng: np.random.Generator) -> JudgedPolicy | None:
    """Judge a policy by proof; None where the game cannot be written down."""
    if place.scenario:
        from cmpg.judging.policies import policy_function

        game = scenarios.scenario(place.scenario).build()
        play = policy_function(policy)
        table = JointPolicy.from_callable(game.policy_shapes, lambda i, s, h: play(i, np.array([h, s]), h))
        return judge_known(game, table, time_limit=0)
    if not place.enumerate:
        return None
    found = from_parallel_env(place.make(), horizon=place.horizon, thresholds=place.thresholds)
    table = found.policy(policy)
    if not (seen := replay(place.make(), found, policy, table, episodes=20, rng=rng)).agrees:
        raise RuntimeError(str(seen))
    return judge_known(found.game, table, time_limit=0)


def row(name: str, title: str, exact: JudgedPolicy | None, sampled: Audit, seconds: float) -> str:
    """Return a row of the table in Markdown."""
    ends, wrong = sampled.exploitability, ""
    if exact is None:
        cost = ", ".join(map(repr, sampled.costs)) or "none"
    else:
        pairs = zip(exact.costs, exact.certificate.thresholds, strict=True)
        cost = ", ".join(f"{each:.3g}/{limit:.3g}" for each, limit in pairs) or "none"
        cost += "" if exact.feasible else " (violated)"
        wrong = "" if ends.lower - 1e-9 <= truth(exact) <= ends.upper + 1e-9 else " WRONG"
    upper = "∞" if np.isinf(ends.upper) else f"{ends.upper:.4g}"
    cells = [name, title, cost, "not enumerated" if exact is None else f"{truth(exact):.4g}"]
    cells += [f"[{ends.lower:.4g}, {upper}]{wrong}", "vacuous" if sampled.vacuous else ""]
    return f"| {' | '.join([*cells, f'{seconds:.1f}'])} |"


def main(argv: list[str]) -> int:
    """Train, judge, print the table."""
    parser = argparse.ArgumentParser(prog="python -m checks trained", description=__doc__)
    parser.add_argument("--episodes", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    given = parser.parse_args(argv)
    if importlib.util.find_spec("pettingzoo") is None:
        print("NOT TRIED: pettingzoo is not installed (pip install 'cmpg[pettingzoo]')")
        return 0
    with_ppo = importlib.util.find_spec("stable_baselines3") is not None
    if not with_ppo:
        print("SKIPPED: PPO needs Stable-Baselines3, which is not installed (pip install stable-baselines3)")
    lines = [f"| {' | '.join(COLUMNS)} |", "|---|---|---|---:|---:|---|---:|"]
    for name, place in places().items():
        if not name.startswith(given.only):
            continue
        rng = np.random.default_rng(given.seed)
        policies = {"Q-learning": q_learned(place, episodes=int(4_000 * max(place.effort, 0.25)), rng=rng)}
        if with_ppo:
            steps = int(2_048 * max(place.effort, 0.25))
            policies["PPO"] = ppo_trained(place, rounds=3, steps=steps, seed=given.seed)
        policies["heuristic"] = place.heuristic
        for title, policy in policies.items():
            exact = exactly(place, policy, rng)
            began = time.process_time()
            count = max(int(given.episodes * place.effort), 16)
            sampled = audit(place.world(), policy, episodes=count, delta=DELTA, rng=rng, name=title)
            lines.append(row(name, title, exact, sampled, time.process_time() - began))
            print(lines[-1], flush=True)
    BUILD.mkdir(exist_ok=True)
    (BUILD / "trained.md").write_text("\n".join(lines) + "\n")
    return int(any("WRONG" in line for line in lines))
