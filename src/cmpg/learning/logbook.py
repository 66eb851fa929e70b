"""A simulator that notes every joint policy where it is executed, whoever asked for it and however that ends.

A learner may fail, be interrupted or run out of its budget in the middle of a response. What it had played until then
must be judged all the same, so it is not left to the learner to report it.
"""

from __future__ import annotations

from collections.abc import Sequence

from cmpg.checks import IntArray
from cmpg.learning.outcome import Played
from cmpg.learning.samples import Known, Ledger, Samples
from cmpg.learning.simulator import Simulator
from cmpg.policy import JointPolicy


class Logbook:
    """The same simulator, with a list of what was executed."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self._played: dict[bytes, Played] = {}

    @property
    def played(self) -> tuple[Played, ...]:
        """Every joint policy that was executed, with its episodes; one that was cut short counts as an episode."""
        return tuple(self._played.values())

    @property
    def known(self) -> Known:
        """Everything but the transition."""
        return self._simulator.known

    @property
    def ledger(self) -> Ledger:
        """The samples so far."""
        return self._simulator.ledger

    def draw(self, *, h: int, s: int, a: Sequence[int], count: int, purpose: str = "draws") -> IntArray:
        """Draw from one entry; nothing is executed."""
        return self._simulator.draw(h=h, s=s, a=a, count=count, purpose=purpose)

    def draw_induced(self, agent: int, policy: JointPolicy, *, count: int, purpose: str = "draws") -> Samples:
        """Draw from the entries of one agent; nothing is executed."""
        return self._simulator.draw_induced(agent, policy, count=count, purpose=purpose)

    def draw_all(self, *, count: int, purpose: str = "draws") -> Samples:
        """Draw from all entries; nothing is executed."""
        return self._simulator.draw_all(count=count, purpose=purpose)

    def roll_out(self, policy: JointPolicy, episodes: int, *, purpose: str = "episodes") -> Samples:
        """Play whole episodes, and note as many of them as the ledger says were begun."""
        before = self.ledger.total
        try:
            return self._simulator.roll_out(policy, episodes, purpose=purpose)
        finally:
            steps = self.ledger.total - before
            if steps > 0:
                self._note(policy, -(-steps // self.known.horizon))

    def _note(self, policy: JointPolicy, episodes: int) -> None:
        key = policy.fingerprint()
        before = self._played[key].episodes if key in self._played else 0
        self._played[key] = Played(policy, before + episodes)
