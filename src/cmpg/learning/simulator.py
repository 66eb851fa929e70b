"""A game that can only be sampled: draw from the model (generative), or roll out episodes.

A learner sees `Simulator`: what is `known`, the `ledger` of samples, and handles that return counts. It never sees the
transition.

`GameSimulator` is a known game that plays the unknown one. N draws from a categorical law are one multinomial draw, and
B independent episodes are a chain of them: the counts of states at step h, split by the policy into counts of joint
actions, split by the transition into counts of states at step h + 1. So the counts have the law of real episodes at any
number of them, and the work does not grow with it. `cmpg.learning.environment` steps a user's own environment instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, IntArray
from cmpg.errors import SimulatorError, UnsupportedError
from cmpg.games.counting.game import CountingGame
from cmpg.games.game import Game
from cmpg.games.joint.game import JointGame
from cmpg.learning.multinomials import dense, merge, split, spread, walk
from cmpg.learning.samples import (
    BoolArray,
    CountingPayoffs,
    Ledger,
    Payoffs,
    PayoffSums,
    Played,
    ProblemSpec,
    Samples,
    Totals,
    observed_bounds,
)
from cmpg.learning.truncation import check_cut, cut_off, reward_ends
from cmpg.policy import JointPolicy


class Simulator(Protocol):
    """A game whose transition can be sampled, and not read.

    Examples
    --------
    >>> from cmpg.learning import GameSimulator
    >>> from cmpg.scenarios import spectrum
    >>> simulator = GameSimulator(spectrum(), rng=np.random.default_rng(0))
    >>> simulator.draw(h=0, s=0, a=(0, 0, 0), count=100).shape, simulator.ledger.total
    ((4,), 100)
    """

    @property
    def known(self) -> ProblemSpec:
        """Everything but the transition."""

    @property
    def ledger(self) -> Ledger:
        """The samples so far."""

    def draw(self, *, h: int, s: int, a: Sequence[int], count: int, purpose: str = "draws") -> IntArray:
        """Return how often each state followed in `count` draws from P_h(· | s, a), a joint action: [S]."""

    def draw_induced(
        self, agent: int, policy: JointPolicy, *, count: int | IntArray, purpose: str = "draws"
    ) -> Samples:
        """Draw `count` times at every (h, s, a_i), with the others' actions drawn from their policies.

        The samples are those that agent i sees. The last step is drawn only where payoffs are to be learned. A table
        [H − 1, S, A_i], or [H, S, A_i] where payoffs are to be learned, gives every entry a count of its own.
        """

    def draw_all(self, *, count: int, purpose: str = "draws") -> Samples:
        """Draw `count` times at every step, state and joint action; at step 0 only where steps are alike."""

    def roll_out(
        self, policy: JointPolicy, episodes: int, *, agent: int | None = None, purpose: str = "episodes"
    ) -> Samples:
        """Play whole episodes; return the counts over joint actions, or what one agent sees of them."""

    def add_up(
        self, agent: int, policy: JointPolicy, tables: FloatArray, episodes: int, *, purpose: str = "episodes"
    ) -> Totals:
        """Play whole episodes; return what tables [m, H, S, A_i], read along agent i's way, add up to in each of them.

        Where payoffs are not known, m is 1 + k, and what was observed of the agent's reward and of the costs is added.
        """


class GameSimulator:
    """A known game that hides its transition.

    Parameters
    ----------
    game
        A joint game, or a counting game.
    rng
        All draws come from it.
    budget
        Samples at most; None for no limit.
    payoff_noise
        None: rewards and costs are known. A number w: they are not, and each observation is off by +w or −w, each with
        probability ½.
    reveal_support
        Whether the learners know which next states are possible.
    horizon
        Discounted games only: after how many steps it is cut off (`steps_for`).

    Examples
    --------
    >>> game = JointGame(transition=np.ones((1, 1, 2, 1)), rewards=np.zeros((1, 1, 1, 2)), costs=np.zeros((0, 1, 1, 2)),
    ...                  thresholds=[], initial=[1.0], horizon=2)
    >>> simulator = GameSimulator(game, rng=np.random.default_rng(0), budget=10)
    >>> simulator.draw(h=0, s=0, a=(1,), count=7), simulator.ledger.left
    (array([7]), 3)
    """

    def __init__(
        self,
        game: Game,
        *,
        rng: np.random.Generator,
        budget: int | None = None,
        payoff_noise: float | None = None,
        reveal_support: bool = False,
        horizon: int | None = None,
    ) -> None:
        if not isinstance(game, (JointGame, CountingGame)):
            advice = "LocalSimulator hides local games; small games of another form have a joint one (to_joint)."
            raise UnsupportedError(type(game).__name__, "has no shared transition to draw from", advice)
        if payoff_noise is not None and isinstance(game, CountingGame):
            advice = "Leave payoff_noise out, or write a small game over joint actions (to_joint)."
            raise UnsupportedError("CountingGame", "is learned with rewards and costs that are known", advice)
        binds, cut = game.binds, None
        if binds is not None:  # the mask is the learners' to mind: draws and payoffs are those of the plain game
            game = game.with_binds(None)
        check_cut(game, horizon)
        if horizon is not None:
            game, cut = cut_off(game, horizon)
        if payoff_noise is not None and not 0 <= payoff_noise < np.inf:
            raise SimulatorError(f"payoff_noise is {payoff_noise}; it must be a finite number of at least 0, or None.")
        self._game: JointGame | CountingGame = game
        self._rng = rng
        self._noise = payoff_noise
        self.ledger = Ledger(budget)
        self.known = replace(self._what_is_known(reveal_support=reveal_support), cut=cut, binds=binds)

    def _what_is_known(self, *, reveal_support: bool) -> ProblemSpec:
        game, noise = self._game, self._noise or 0.0
        payoffs: Payoffs | CountingPayoffs
        if isinstance(game, CountingGame):
            empty = np.full((1, *game.transition.shape[1:]), 1 / game.num_states)
            payoffs, rewards = CountingPayoffs(game.with_transition(empty)), np.stack(reward_ends(game), axis=-1)
        else:
            payoffs, rewards = Payoffs(game.rewards, game.costs), game.rewards
        support: BoolArray | None = None
        if reveal_support:
            shape = (
                (-1, *game.transition[0].shape)
                if isinstance(game, CountingGame)
                else (-1, game.num_states, *game.num_actions, game.num_states)
            )
            support = np.asarray([dense(matrix) > 0 for matrix in game.transition]).reshape(shape)
        return ProblemSpec(
            num_actions=game.num_actions,
            thresholds=game.thresholds,
            initial=game.initial,
            horizon=game.num_steps,
            reward_bounds=observed_bounds(rewards, noise),
            cost_bounds=observed_bounds(game.costs, noise),
            payoffs=payoffs if self._noise is None else None,
            support=support,
            stationary=len(game.transition) == 1,
        )

    def draw(self, *, h: int, s: int, a: Sequence[int], count: int, purpose: str = "draws") -> IntArray:
        """Return how often each state followed in `count` draws from P_h(· | s, a), a joint action: [S]."""
        check_entry(self.known, h=h, s=s, a=a)
        check_count("count", count)
        self.ledger.charge(purpose, count)
        entry: tuple[int, ...] = (s, *a)
        if isinstance(self._game, CountingGame):
            entry = (s, int(self._game.classes.of(np.bincount(a, minlength=self.known.num_actions[0]))))
        row = int(np.ravel_multi_index(entry, self.known.entry_shape))
        drawn: IntArray = spread(np.array([count]), self._matrix(h)[row : row + 1], rng=self._rng)[0]
        return drawn

    def draw_induced(
        self, agent: int, policy: JointPolicy, *, count: int | IntArray, purpose: str = "draws"
    ) -> Samples:
        """Draw `count` times at every (h, s, a_i), with the others' actions drawn from their policies."""
        policy.check_fits(self.known.policy_shapes)
        horizon, states, actions = self.known.policy_shapes[agent]
        counts = entry_counts(self.known, agent, count)
        self.ledger.charge(purpose, int(counts.sum()))
        if self._noise is None:
            return self._draw_induced_rows(agent, policy, counts)
        # Payoffs depend on what the others play, so their actions must be drawn, and not only averaged over.
        visits = np.zeros((horizon, states, *self.known.num_actions), dtype=np.int64)
        for h in range(horizon):
            rows = np.repeat(joint_rows(policy, h, skip=agent), actions, axis=0)
            others = spread(counts[h].ravel(), rows, rng=self._rng)
            shape = [size for other, size in enumerate(self.known.num_actions) if other != agent]
            visits[h] = np.moveaxis(others.reshape(states, actions, *shape), 1, 1 + agent)
        return self._follow(visits).seen_by(agent)

    def _draw_induced_rows(self, agent: int, policy: JointPolicy, counts: IntArray) -> Samples:
        cmdp = self._game.at(policy).induced_cmdp(agent)
        visits = np.zeros(self.known.policy_shapes[agent], dtype=np.int64)
        visits[:-1] = counts
        drawn = [spread(each.ravel(), cmdp.matrix(h), rng=self._rng) for h, each in enumerate(visits[:-1])]
        return Samples(visits, np.array(drawn, dtype=np.int64).reshape(*counts.shape, self.known.num_states))

    def draw_all(self, *, count: int, purpose: str = "draws") -> Samples:
        """Draw `count` times at every step, state and joint action, or class of counts; at step 0 only where steps are
        alike.
        """
        check_count("count", count)
        known = self.known
        steps = known.horizon - 1 if self._noise is None else known.horizon
        visits = np.zeros((known.horizon, *known.entry_shape), dtype=np.int64)
        visits[: min(1, steps) if known.stationary and self._noise is None else steps] = count
        self.ledger.charge(purpose, int(visits.sum()))
        return self._follow(visits)

    def roll_out(
        self, policy: JointPolicy, episodes: int, *, agent: int | None = None, purpose: str = "episodes"
    ) -> Samples:
        """Play whole episodes; return the counts over joint actions, or what one agent sees of them."""
        policy.check_fits(self.known.policy_shapes)
        check_count("episodes", episodes)
        self.ledger.charge(purpose, episodes * self.known.horizon)
        steps = range(self.known.horizon)
        if isinstance(self._game, CountingGame):  # what one agent sees has the law of its induced CMDP
            own = agent or 0
            cmdp = self._game.at(policy).induced_cmdp(own)
            return self._walked(policy[own], [cmdp.matrix(h) for h in steps[:-1]], episodes, self.known.num_actions[:1])
        laws = (joint_rows(policy, h) for h in steps)
        joint = self._walked(laws, [self._matrix(h) for h in steps[:-1]], episodes, self.known.num_actions)
        return joint if agent is None else joint.seen_by(agent)

    def _walked(
        self, laws: Iterable[FloatArray], matrices: Sequence[Any], episodes: int, actions: tuple[int, ...]
    ) -> Samples:
        """Play episodes of a Markov chain."""
        states = self.known.num_states
        visits = np.zeros((self.known.horizon, states, *actions), dtype=np.int64)
        transitions = np.zeros((len(matrices), states, *actions, states), dtype=np.int64)
        for h, (chosen, moved) in enumerate(walk(episodes, self.known.initial, laws, matrices, rng=self._rng)):
            visits[h] = chosen.reshape(visits.shape[1:])
            if moved is not None:
                transitions[h] = moved.reshape(transitions.shape[1:])
        return Samples(visits, transitions, self._observe(visits))

    def add_up(
        self, agent: int, policy: JointPolicy, tables: FloatArray, episodes: int, *, purpose: str = "episodes"
    ) -> Totals:
        """Play whole episodes; return what tables [m, H, S, A_i], read along agent i's way, add up to in each of them.

        Episodes that agree so far in their state and their totals are one group; groups are split like counts.
        """
        policy.check_fits(self.known.policy_shapes)
        check_count("episodes", episodes)
        self.ledger.charge(purpose, episodes * self.known.horizon)
        induced = self._game.at(policy).induced_cmdp(agent) if self._noise is None else None
        own = np.arange(self.known.num_actions[agent])
        if induced is None:  # what is observed depends on what the others play, so that their actions are drawn too
            own = np.indices(self.known.num_actions)[agent].ravel()
        first = split(np.array([episodes]), self.known.initial[None], np.zeros(1, int), rng=self._rng)
        states, counts, totals = first.cells, first.counts, np.zeros((len(first.cells), len(tables)))
        for h in range(self.known.horizon):
            law = policy[agent][h] if induced is not None else joint_rows(policy, h)
            chosen = split(counts, law, states, rng=self._rng)
            entries = states[chosen.groups] * len(own) + chosen.cells
            totals = totals[chosen.groups] + tables[:, h, states[chosen.groups], own[chosen.cells]].T
            counts = chosen.counts
            if induced is None:
                totals, counts, entries = self._add_observed(agent, h, totals, counts, entries)
            if h + 1 < self.known.horizon:
                matrix = self._matrix(h) if induced is None else induced.matrix(h)
                moved = split(counts, matrix, entries, rng=self._rng)
                states, totals, counts = merge(moved.cells, totals[moved.groups], moved.counts)
        return Totals.merged(totals, counts)

    def _add_observed(
        self, agent: int, h: int, totals: FloatArray, counts: IntArray, entries: IntArray
    ) -> tuple[FloatArray, IntArray, IntArray]:
        """Add what groups at (state, joint action) observe; every payoff is off in either direction by itself."""
        tables = [self._game.rewards[agent], *self._game.costs]
        shown = np.stack([table[0 if len(table) == 1 else h].ravel()[entries] for table in tables], axis=1)
        signs = np.array(list(product((-1.0, 1.0), repeat=len(tables))))
        patterns = split(counts, np.full((1, len(signs)), 1 / len(signs)), np.zeros(len(counts), int), rng=self._rng)
        observed = shown[patterns.groups] + (self._noise or 0.0) * signs[patterns.cells]
        return totals[patterns.groups] + observed, patterns.counts, entries[patterns.groups]

    def _follow(self, visits: IntArray) -> Samples:
        """Draw a next state for every visit to a joint entry, and its payoffs where they are not known."""
        moved = [spread(each.ravel(), self._matrix(h), rng=self._rng) for h, each in enumerate(visits[:-1])]
        shape = (len(moved), *visits.shape[1:], self.known.num_states)
        return Samples(visits, np.array(moved, dtype=np.int64).reshape(shape), self._observe(visits))

    def _observe(self, visits: IntArray) -> PayoffSums | None:
        if self._noise is None:
            return None
        return PayoffSums(self._noisy_sums(self._game.rewards, visits), self._noisy_sums(self._game.costs, visits))

    def _noisy_sums(self, tables: FloatArray, visits: IntArray) -> FloatArray:
        """Σ over visits of (payoff ± noise): the number of plus signs is binomial."""
        sums = np.broadcast_to(tables, (len(tables), *visits.shape)) * visits
        signs = 2 * self._rng.binomial(visits, 0.5, size=sums.shape) - visits
        return np.asarray(sums + (self._noise or 0.0) * signs)

    def _matrix(self, h: int) -> Any:
        """The transition out of step h as a matrix [S·ΠA, S], dense or CSR."""
        matrix = self._game.transition[0 if len(self._game.transition) == 1 else h]
        return matrix if sp.issparse(matrix) else matrix.reshape(-1, self.known.num_states)


class Logbook:
    """The same simulator, with a list of every joint policy that was executed, for whatever purpose.

    A learner may fail, be interrupted or run out of its budget in the middle of a response. What it had played until
    then must be judged all the same, so it is not left to the learner to report it.
    """

    def __init__(self, simulator: Any) -> None:  # a Simulator, or any other that has some of its methods
        self._simulator = simulator
        self._played: dict[bytes, Played] = {}

    @property
    def played(self) -> tuple[Played, ...]:
        """Every joint policy that was executed, with its episodes; one that was cut short counts as an episode."""
        return tuple(self._played.values())

    @property
    def known(self) -> Any:
        """Everything but the transition."""
        return self._simulator.known

    @property
    def ledger(self) -> Ledger:
        """The samples so far."""
        found: Ledger = self._simulator.ledger
        return found

    def draw(self, *, h: int, s: int, a: Sequence[int], count: int, purpose: str = "draws") -> Any:
        """Draw from one entry; nothing is executed."""
        return self._simulator.draw(h=h, s=s, a=a, count=count, purpose=purpose)

    def draw_induced(self, agent: int, policy: JointPolicy, *, count: int | IntArray, purpose: str = "draws") -> Any:
        """Draw from the entries of one agent; nothing is executed."""
        return self._simulator.draw_induced(agent, policy, count=count, purpose=purpose)

    def draw_all(self, *, count: int, purpose: str = "draws") -> Any:
        """Draw from all entries; nothing is executed."""
        return self._simulator.draw_all(count=count, purpose=purpose)

    def roll_out(
        self, policy: JointPolicy, episodes: int, *, agent: int | None = None, purpose: str = "episodes"
    ) -> Any:
        """Play whole episodes, and note as many of them as the ledger says were begun."""
        with self._noted(policy):
            if agent is None:
                return self._simulator.roll_out(policy, episodes, purpose=purpose)
            return self._simulator.roll_out(policy, episodes, agent=agent, purpose=purpose)

    def add_up(
        self, agent: int, policy: JointPolicy, tables: FloatArray, episodes: int, *, purpose: str = "episodes"
    ) -> Any:
        """Play whole episodes, and note as many of them as the ledger says were begun."""
        with self._noted(policy):
            return self._simulator.add_up(agent, policy, tables, episodes, purpose=purpose)

    @contextmanager
    def _noted(self, policy: JointPolicy) -> Iterator[None]:
        before = self.ledger.total
        try:
            yield
        finally:
            steps = self.ledger.total - before
            if steps > 0:
                self._note(policy, -(-steps // self.known.horizon))

    def _note(self, policy: JointPolicy, episodes: int) -> None:
        key = policy.fingerprint()
        before = self._played[key].episodes if key in self._played else 0
        self._played[key] = Played(policy, before + episodes)


def check_entry(known: ProblemSpec, *, h: int, s: int, a: Sequence[int]) -> None:
    """Raise unless step, state and joint action exist."""
    sizes = (known.horizon, known.num_states, *known.num_actions)
    if len(a) != known.num_agents or not all(0 <= at < size for at, size in zip((h, s, *a), sizes, strict=True)):
        raise SimulatorError(
            f"there is no entry h={h}, s={s}, a={tuple(a)}; there are {known.horizon} steps, {known.num_states} states "
            f"and {known.num_actions} actions, counted from 0."
        )


def check_count(name: str, count: int) -> None:
    """Raise unless a number of draws is a whole number of at least 1."""
    if not (1 <= count < np.inf and count == int(count)):
        raise SimulatorError(f"{name} is {count}; it must be a whole number of at least 1.")


def entry_counts(known: ProblemSpec, agent: int, count: int | IntArray) -> IntArray:
    """Return how often each entry of agent i is drawn: [H − 1, S, A_i], or [H, S, A_i] where payoffs are learned."""
    horizon, states, actions = known.policy_shapes[agent]
    if not isinstance(count, np.ndarray):
        check_count("count", count)
    steps = horizon if known.payoffs is None else horizon - 1
    return np.broadcast_to(np.asarray(count, dtype=np.int64), (steps, states, actions))


def joint_rows(policy: JointPolicy, h: int, *, skip: int | None = None) -> FloatArray:
    """Return the law of the joint action of all, or of all but one, in each state at step h: [S, ΠA]."""
    rows = np.ones((policy.shapes[0][1], 1))
    for agent, table in enumerate(policy):
        if agent != skip:
            rows = (rows[:, :, None] * table[h][:, None, :]).reshape(len(rows), -1)
    return rows
