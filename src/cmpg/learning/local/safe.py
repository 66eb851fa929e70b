"""Safe exploration of a local game: from episodes alone, and nothing is played that is not proved safe but the start.

Every episode teaches something about every agent's kernel, and agents of one kind share what they see. All intervals
hold at all numbers of trials together (`mixture_interval`), with probability 1 − δ; on this event everything below is
true, at all times and however it was chosen (docs/learning-theory.md, section 8):

- A joint policy whose cost ceilings (`LocalModel`) are at most α is safe.
- One agent explores while all others keep to the baseline, the safest policy that is known: in its own CMDP, with costs
  at their worst and what the others may spend taken off α, it plays the policy of `exploration_policy`, pessimistic for
  the costs, and in turn optimistic for the reward, or curious: rewarded for what it does not know. The optimist alone
  would never see what is second best now, and best where others have moved. Where nothing else is safe, the start is
  played.
- The run ends by certificate: the empirical game, solved with thresholds tightened just so far that the cost ceilings
  of its equilibrium are at most α, when no agent can gain more than ε by deviating.

The baseline is the start until the samples know a policy that is proved to be cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from cmpg.arrays import frozen
from cmpg.equilibrium.result import Status
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.errors import StartError
from cmpg.learning.confidence import Estimate, check_accuracy, mixture_interval
from cmpg.learning.local.model import LocalModel
from cmpg.learning.local.simulator import LocalSamples, LocalSimulator
from cmpg.learning.outcome import LearnResult
from cmpg.learning.safe import Baseline, Pace, exploration_policy
from cmpg.learning.samples import Played, cut_settings
from cmpg.learning.shared import ASSUMPTIONS, MAX_FACTOR, NEAR_GAP, Round, concluded, tightened, until_ended
from cmpg.policy import JointPolicy

VOUCHED = "the start meets the constraints"


def learn_safely(
    simulator: LocalSimulator,
    *,
    start: JointPolicy,
    epsilon: float,
    delta: float,
    pace: Pace | None = None,
    time_limit: float = np.inf,
    on_round: Callable[[Round], None] | None = None,
) -> LearnResult:
    """Learn an ε-Nash policy of a local game from episodes, all of them safe.

    Parameters
    ----------
    simulator
        The game, which can only be sampled.
    start
        A strictly feasible joint policy that is vouched for.
    epsilon, delta
        With probability at least 1 − δ no agent gains more than ε by deviating, and nothing unsafe was played.
    pace
        Episodes, and how often to solve again.
    time_limit
        Seconds; a batch that has not ended by then is given up.
    on_round
        Called with the bounds whenever the game was solved.

    Examples
    --------
    >>> from cmpg.equilibrium.starts.min_cost import feasible_start
    >>> from cmpg.learning.outcome import judge
    >>> from cmpg.scenarios import grid_world_local
    >>> game = grid_world_local()
    >>> simulator = LocalSimulator(game, rng=np.random.default_rng(0))
    >>> start, pace = feasible_start(game).policy, Pace(growth=0.5)
    >>> result = learn_safely(simulator, start=start, epsilon=4.0, delta=0.1, pace=pace)
    >>> result.certified, judge(game, result).unsafe_policies
    (True, 0)
    """
    check_accuracy(epsilon, delta)
    start.check_fits(simulator.known.policy_shapes)
    run = _SafeRounds(simulator, start, epsilon=epsilon, delta=delta, pace=pace or Pace())
    spent = f"{run.pace.most:,} episodes are not enough."
    return until_ended(run, run.rounds(), spent, time_limit=time_limit, on_round=on_round)


class _SafeRounds:
    """What was played, what was seen, and what follows from it."""

    def __init__(
        self, simulator: LocalSimulator, start: JointPolicy, *, epsilon: float, delta: float, pace: Pace
    ) -> None:
        self.simulator, self.start, self.delta, self.pace = simulator, start, delta, pace
        known = simulator.known
        self.claimed, self.epsilon = epsilon, known.left_of(epsilon)
        self.samples = LocalSamples(tuple(np.zeros(shape, dtype=np.int64) for shape in known.shapes))
        self.baseline, self.turn = start, 0
        self.episodes, self.next_look = 0, 0
        self.played: list[Played] = []
        self.best = Round(0, start, np.inf, np.full(known.num_constraints, np.inf), feasible=False)
        self.model = self._believe()
        self.ended: Status | None = None
        self.reason = ""

    def rounds(self) -> Iterator[bool]:
        """Explore and judge, batch by batch."""
        while self.episodes < self.pace.most:
            self.explore()
            judged = self.judged()
            if self.best.feasible and self.best.gap <= self.epsilon:
                self.ended = Status.CERTIFIED
            yield judged

    def _believe(self) -> LocalModel:
        return LocalModel.of(self.simulator.known, self.samples, delta=self.delta, interval=mixture_interval)

    def explore(self) -> None:
        """Let the next agent explore for a batch of episodes, and learn from the moves of all agents."""
        known = self.simulator.known
        agent, curious = self.turn % known.num_agents, self.turn // known.num_agents % 2 == 1
        self.turn += 1
        view = self.model.at(self.baseline).view(agent)
        table = self.baseline[agent]
        choice = exploration_policy(
            _curious(view.belief) if curious else view.belief,
            Baseline(table, view.cost_ceilings(table) - view.spent.most),
            reward_range=float(known.frame.reward_ranges[agent]),
        )
        batch = max(self.pace.first, int(np.ceil(self.pace.growth * self.episodes / known.num_agents)))
        # Where nothing else is safe the start is played: it is vouched for, and a cheaper baseline only proved.
        policy = self.start if choice.is_baseline else self.baseline.replace(agent, choice.policy)
        batch = min(batch, self.pace.most - self.episodes)
        seen = self.simulator.roll_out(policy, batch, purpose="episodes")
        self.played.append(Played(policy, batch, agent))
        self.samples, self.episodes = self.samples + seen, self.episodes + batch
        self.model = self._believe()

    def judged(self) -> bool:
        """Solve the empirical game, once there are enough more episodes than last time, and bound what it found."""
        if self.episodes < self.next_look:
            return False
        self._check_start()
        limits = self.simulator.known.limits
        found = tightened(self.model, limits, self.best.policy, epsilon=self.epsilon, far=NEAR_GAP * self.epsilon)
        if found is not None:
            self.best = replace(found, samples_per_entry=0)
        cheapest = feasible_start(self.model.game).policy
        if cheapest is not None and _relative_cost(self.model, cheapest) < _relative_cost(self.model, self.baseline):
            self.baseline = cheapest
        # A gap falls with the number of episodes at most: there is nothing to see before that.
        self.next_look = int(self.episodes * np.clip(self.best.gap / self.epsilon / 2, 1.2, MAX_FACTOR)) + 1
        return True

    def _check_start(self) -> None:
        thresholds = self.simulator.known.thresholds
        floors = self.model.at(self.start).cost_floors
        for j, (floor, threshold) in enumerate(zip(floors, thresholds, strict=True)):
            if floor > threshold:
                raise StartError(
                    f"the start is infeasible with probability {1 - self.delta:g}: constraint {j} has the threshold "
                    f"{threshold:.6g}, and the start costs at least {floor:.6g}. Pass a feasible start."
                )

    def conclude(self, status: Status, reason: str) -> LearnResult:
        """Gather the result."""
        result = concluded(self.simulator, self.best, status, reason, epsilon=self.claimed, delta=self.delta)
        settings = {"episodes": self.episodes, "pace": repr(self.pace), "start": "given"}
        return replace(
            result,
            assumptions=(VOUCHED, *ASSUMPTIONS),
            played=tuple(self.played),
            settings={**settings, **cut_settings(self.simulator.known)},
        )


def _curious(belief: Estimate) -> Estimate:
    """Return the same belief with a reward for what is not known: the range of what is to come, times by how much the
    rows of the box differ.
    """
    reward = belief.optimistic.nominal.reward
    ranges = reward.max(axis=(1, 2)) - belief.worst_reward.min(axis=(1, 2))
    to_come = np.cumsum(ranges[::-1])[::-1] - ranges
    unknown = np.broadcast_to(to_come[:, None, None] * belief.box.spread, reward.shape)
    optimistic = replace(belief.optimistic.nominal, reward=frozen(unknown.copy()), trusted=True)
    return replace(belief, optimistic=replace(belief.optimistic, nominal=optimistic, trusted=True))


def _relative_cost(model: LocalModel, policy: JointPolicy) -> float:
    """Return how near a policy can come to a threshold, each in units of itself."""
    limits = model.known.limits
    units = np.where(limits > 0, limits, 1.0)
    return float(((model.cost_ceilings(policy) - limits) / units).max(initial=-np.inf))
