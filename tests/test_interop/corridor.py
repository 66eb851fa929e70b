"""An environment of our own with the parallel API, whose chance and blindness can be switched on."""

import numpy as np
from gymnasium.spaces import Discrete


class Corridor:
    """Two walkers on five fields, from the two ends; the middle pays, and the infos say whether they met."""

    possible_agents = ("left", "right")

    def __init__(self, *, steps=3, slip=0.0, blind=False, leaves=None):
        self.steps, self.slip, self.blind, self.leaves = steps, slip, blind, leaves
        self.agents = []

    def action_space(self, agent):
        return Discrete(3)

    def reset(self, seed=None, options=None):
        self.rng = np.random.default_rng(seed)
        self.agents, self.time, self.fields = list(self.possible_agents), 0, {"left": 0, "right": 4}
        return self._see(), {agent: {} for agent in self.agents}

    def _see(self):
        if self.blind:
            return {agent: np.array([0]) for agent in self.agents}
        return {agent: np.array([self.fields[agent]]) for agent in self.agents}

    def step(self, actions):
        assert set(actions) == set(self.agents)
        for agent, action in actions.items():
            if self.rng.random() >= self.slip:
                self.fields[agent] = min(max(self.fields[agent] + (action - 1), 0), 4)
        self.time += 1
        acting = list(self.agents)
        rewards = {agent: float(self.fields[agent] == 2) for agent in acting}
        infos = {
            agent: {"cost": float(len(acting) == 2 and self.fields["left"] == self.fields["right"])} for agent in acting
        }
        seen = self._see()
        over = self.time >= self.steps
        gone = {agent: over or agent == self.leaves for agent in acting}
        self.agents = [agent for agent in acting if not gone[agent]]
        return seen, rewards, gone, dict.fromkeys(acting, False), infos


def meeting(step):
    """What a step costs: one where the walkers meet."""
    return [max(info["cost"] for info in step.infos.values())]
