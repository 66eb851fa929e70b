"""The CMDP of one agent, which can only be sampled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray, IntArray
from cmpg.errors import SimulatorError
from cmpg.learning.samples import BoolArray, PayoffSums, ProblemSpec, Samples, Totals
from cmpg.learning.simulator import Simulator
from cmpg.policy import JointPolicy, PolicyShape
from cmpg.summaries import fields_line


@dataclass(frozen=True, eq=False)
class InducedProblem:
    """The CMDP of one agent, which can only be sampled: all others keep to `policy`.

    Examples
    --------
    >>> from cmpg.learning import GameSimulator
    >>> from cmpg.scenarios import spectrum
    >>> game = spectrum()
    >>> problem = InducedProblem(GameSimulator(game, rng=np.random.default_rng(0)), 0, game.uniform_policy())
    >>> problem.shape, problem.draw(10).transitions.shape
    ((2, 4, 3), (1, 4, 3, 4))
    """

    simulator: Simulator
    agent: int
    policy: JointPolicy
    purpose: str = "responses"  # under what its samples are counted
    nash_epsilon: float | None = None  # ε of Algorithm 2, where the question is whether to leave the current policy

    __repr__ = fields_line

    @property
    def known(self) -> ProblemSpec:
        """Everything but the transition."""
        return self.simulator.known

    @property
    def shape(self) -> PolicyShape:
        """The shape [H, S, A] of the agent's policy."""
        return self.known.policy_shapes[self.agent]

    @cached_property
    def payoffs(self) -> tuple[FloatArray, FloatArray]:
        """The reward [H, S, A] and the costs [k, H, S, A], where they are known."""
        return self.known.induced_payoffs(self.agent, self.policy)

    def no_samples(self) -> Samples:
        """Return the counts before the first draw."""
        horizon, states, _ = self.shape
        visits = np.zeros(self.shape, dtype=np.int64)
        transitions = np.zeros((horizon - 1, *self.shape[1:], states), dtype=np.int64)
        if self.known.payoffs is not None:
            return Samples(visits, transitions)
        sums = (np.zeros((count, *self.shape)) for count in (self.known.num_agents, self.known.num_constraints))
        return Samples(visits, transitions, PayoffSums(*sums))

    def draw(self, count: int | IntArray) -> Samples:
        """Draw `count` times at every (h, s, a), or as often as a table [H − 1, S, A] says: [H, S, A]."""
        with self._own_view_of_faults():
            return self.simulator.draw_induced(self.agent, self.policy, count=count, purpose=self.purpose)

    @cached_property
    def first_alike(self) -> IntArray:
        """The first step whose draws in a state may serve this one too (`ProblemSpec.first_alike`)."""
        return self.known.first_alike(self.agent, self.policy)

    @property
    def num_entries(self) -> int:
        """How many entries (h, s, a) are drawn from if steps that are alike share their draws."""
        drawn = self.first_alike == np.arange(len(self.first_alike))[:, None]
        return int(drawn.sum()) * self.shape[2]

    def top_up(self, samples: Samples, count: int, *, where: BoolArray | None = None) -> Samples:
        """Draw until there are `count` samples of every entry, or of those `where` [H − 1, S, A] says.

        Steps that are alike share their draws, so that an entry is drawn for if any of them wants it.
        """
        first, states = self.first_alike, np.arange(self.shape[1])
        wanted = np.zeros((*first.shape, self.shape[2]), dtype=bool)
        np.logical_or.at(wanted, (first, states), True if where is None else where)
        missing = np.maximum(count - samples.visits[: len(first)], 0)
        return samples + self.draw(np.where(wanted, missing, 0)).reused(first)

    def roll_out(self, table: Any, episodes: int) -> Samples:
        """Play episodes in which the agent follows `table` [H, S, A]; return what it sees: [H, S, A]."""
        joint = self.policy.replace(self.agent, table)
        with self._own_view_of_faults():
            return self.simulator.roll_out(joint, episodes, agent=self.agent, purpose=self.purpose)

    def add_up(self, table: Any, tables: FloatArray, episodes: int) -> Totals:
        """Play episodes in which the agent follows `table`; return what `tables` [m, H, S, A] add up to in each."""
        joint = self.policy.replace(self.agent, table)
        with self._own_view_of_faults():
            return self.simulator.add_up(self.agent, joint, tables, episodes, purpose=self.purpose)

    @contextmanager
    def _own_view_of_faults(self) -> Iterator[None]:
        """Let the samples inside a fault be those that the agent sees, like all others here."""
        try:
            yield
        except SimulatorError as fault:
            fault.samples = None if fault.samples is None else fault.samples.seen_by(self.agent)
            raise
