"""A user's own environment as a simulator: really stepped, every answer checked.

An environment has `reset(rng) -> state` and `step(actions) -> (state, rewards, costs)`, perhaps with a fourth entry
that says whether the episode is over. States are numbers 0..S−1, actions is one number per agent, rewards has one entry
per agent and costs one per constraint. Its randomness shall come from the generator that `reset` is given. One that
also has `place(h, s)`, which puts it into state s at step h, is a generative model: `draw` and its relatives work, with
one real step per sample.

An unknown state, a reward or cost that is not a number, lies outside the declared bounds or differs from the declared
table, and an episode that ends early: each raises SimulatorError, which names the call and what it returned. What was
drawn before is counted in the ledger, and is in the error's `samples`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np

from cmpg.arrays import FloatArray, IntArray, at_step
from cmpg.errors import SimulatorError
from cmpg.learning.samples import Ledger, Payoffs, PayoffSums, ProblemSpec, Samples, Totals
from cmpg.learning.simulator import check_count, check_entry, entry_counts
from cmpg.policy import JointPolicy

AGREEMENT = 1e-9
"""How far an observed payoff may be from the declared one, relative to the size of the declared ones."""

Entry = tuple[int, int, tuple[int, ...]]
"""Step, state, joint action."""


class Environment(Protocol):
    """What a user must provide; see the module's text.

    Examples
    --------
    >>> class Corridor:
    ...     def reset(self, rng):
    ...         self.cell = 0
    ...         return self.cell
    ...     def step(self, actions):
    ...         self.cell = min(self.cell + actions[0], 2)
    ...         return self.cell, [float(self.cell == 2)], []
    >>> corridor = Corridor()
    >>> corridor.reset(np.random.default_rng(0)), corridor.step([1])
    (0, (1, [0.0], []))
    """

    def reset(self, rng: np.random.Generator) -> int:
        """Begin an episode and return its first state."""

    def step(self, actions: Sequence[int]) -> Any:
        """Play one joint action; return the next state, the rewards, the costs, and perhaps whether it is over."""


class EnvironmentSimulator:
    """An environment that is sampled in the same way as a known game.

    Parameters
    ----------
    environment
        The user's own.
    known
        Sizes, bounds, thresholds, the initial law; rewards and costs where they are known.
    rng
        Draws the agents' actions, and is handed to `reset`.
    budget
        Samples at most; None for no limit.

    Examples
    --------
    >>> class Coin:
    ...     def reset(self, rng):
    ...         return 0
    ...     def step(self, actions):
    ...         return 0, [float(actions[0])], []
    >>> known = ProblemSpec.from_payoffs(rewards=[[[[0.0, 1.0]]]], costs=np.zeros((0, 1, 1, 2)), thresholds=[],
    ...                            initial=[1.0], horizon=2)
    >>> simulator = EnvironmentSimulator(Coin(), known=known, rng=np.random.default_rng(0))
    >>> samples = simulator.roll_out(JointPolicy.uniform(known.policy_shapes), 100)
    >>> int(samples.visits.sum()), simulator.ledger.total
    (200, 200)
    """

    def __init__(
        self, environment: Environment, *, known: ProblemSpec, rng: np.random.Generator, budget: int | None = None
    ) -> None:
        self.known = known
        self.ledger = Ledger(budget)
        self._environment = environment
        self._rng = rng
        declared = known.payoffs if isinstance(known.payoffs, Payoffs) else None
        tables = (None, None) if declared is None else (declared.rewards, declared.costs)
        self._rewards = _Checker("reward", known.reward_bounds, tables[0])
        self._costs = _Checker("cost", known.cost_bounds, tables[1])

    def draw(self, *, h: int, s: int, a: Sequence[int], count: int, purpose: str = "draws") -> IntArray:
        """Return how often each state followed in `count` steps from (h, s) with a joint action: [S]."""
        check_entry(self.known, h=h, s=s, a=a)
        check_count("count", count)
        followed = np.zeros(self.known.num_states, dtype=np.int64)
        for _, state in self._draw_entries(
            ((h, s, tuple(a)),) * count, count, purpose=purpose, tally=_Tally(self.known)
        ):
            followed[state] += 1
        return followed

    def draw_induced(
        self, agent: int, policy: JointPolicy, *, count: int | IntArray, purpose: str = "draws"
    ) -> Samples:
        """Step `count` times from every (h, s, a_i), with the others' actions drawn from their policies."""
        policy.check_fits(self.known.policy_shapes)
        counts = entry_counts(self.known, agent, count)
        play = _Player(policy, self._rng)

        def entries() -> Iterator[Entry]:
            for h, s, own in np.ndindex(counts.shape):
                for _ in range(counts[h, s, own]):
                    joint = play(h, s)
                    yield h, s, (*joint[:agent], own, *joint[agent + 1 :])

        return self._collect(entries(), int(counts.sum()), purpose=purpose).seen_by(agent)

    def draw_all(self, *, count: int, purpose: str = "draws") -> Samples:
        """Step `count` times from every step, state and joint action; at step 0 only where steps are alike."""
        check_count("count", count)
        known = self.known
        steps = known.horizon if known.payoffs is None else known.horizon - 1
        steps = min(steps, 1) if known.stationary and known.payoffs is not None else steps
        sizes = (steps, known.num_states, *known.num_actions)
        entries = ((h, s, tuple(joint)) for h, s, *joint in np.ndindex(*sizes) for _ in range(count))
        return self._collect(entries, int(np.prod(sizes)) * count, purpose=purpose)

    def _collect(self, entries: Iterable[Entry], total: int, *, purpose: str) -> Samples:
        tally = _Tally(self.known)
        for _ in self._draw_entries(entries, total, purpose=purpose, tally=tally):
            pass
        return tally.samples()

    def _draw_entries(
        self, entries: Iterable[Entry], total: int, *, purpose: str, tally: _Tally
    ) -> Iterator[tuple[Entry, int]]:
        place = self._place()
        with self._charged(total, tally, purpose=purpose):
            self._environment.reset(self._rng)  # where it goes does not matter: this hands over the generator
            for entry in entries:
                place(entry[0], entry[1])
                yield entry, self._step(entry, tally).state

    def roll_out(
        self, policy: JointPolicy, episodes: int, *, agent: int | None = None, purpose: str = "episodes"
    ) -> Samples:
        """Play whole episodes; return the counts over joint actions, or what one agent sees of them."""
        policy.check_fits(self.known.policy_shapes)
        check_count("episodes", episodes)
        play, tally = _Player(policy, self._rng), _Tally(self.known)
        with self._charged(episodes * self.known.horizon, tally, purpose=purpose):
            for _ in range(episodes):
                for _ in self._episode(play, tally):
                    pass
        seen = tally.samples()
        return seen if agent is None else seen.seen_by(agent)

    def add_up(
        self, agent: int, policy: JointPolicy, tables: FloatArray, episodes: int, *, purpose: str = "episodes"
    ) -> Totals:
        """Play whole episodes; return what tables [m, H, S, A_i], read along agent i's way, add up to in each."""
        policy.check_fits(self.known.policy_shapes)
        check_count("episodes", episodes)
        play, tally, sums = _Player(policy, self._rng), _Tally(self.known), []
        with self._charged(episodes * self.known.horizon, tally, purpose=purpose):
            for _ in range(episodes):
                sums.append(np.zeros(len(tables)))
                for (h, s, joint), seen in self._episode(play, tally):
                    sums[-1] += tables[:, h, s, joint[agent]]
                    if self.known.payoffs is None:
                        sums[-1] += [seen.rewards[agent], *seen.costs]
        return Totals.merged(np.array(sums), np.ones(episodes, dtype=np.int64))

    def _episode(self, play: _Player, tally: _Tally) -> Iterator[tuple[Entry, _Seen]]:
        """Play one episode; yield what was done and what was seen of it, step by step."""
        state = self._environment.reset(self._rng)
        if not _is_index(state, self.known.num_states):
            self._wrong_state(state, tally, call="reset(rng)")
        for h in range(self.known.horizon):
            entry = (h, int(state), play(h, state))
            seen = self._step(entry, tally)
            yield entry, seen
            state = seen.state

    @contextmanager
    def _charged(self, total: int, tally: _Tally, *, purpose: str) -> Iterator[None]:
        """Refuse what the budget does not allow, and count the steps that were taken, however it ends."""
        self.ledger.require(purpose, total)
        try:
            yield
        finally:
            self.ledger.charge(purpose, tally.steps)

    def _place(self) -> Callable[[int, int], Any]:
        place = getattr(self._environment, "place", None)
        if place is None:
            raise SimulatorError(
                "the environment has no method place(h, s), so it cannot be drawn from at will. "
                "Add one, or use a learner that plays episodes."
            )
        return place  # type: ignore[no-any-return]

    def _step(self, entry: Entry, tally: _Tally) -> _Seen:
        """Step once, check the answer, and count it."""
        answer = self._environment.step(entry[2])
        tally.steps += 1
        if not isinstance(answer, tuple) or len(answer) not in (3, 4):
            _fail(tally, f"{_call(entry)} returned {answer!r}; (state, rewards, costs) is required, perhaps with done.")
        if not _is_index(answer[0], self.known.num_states):
            self._wrong_state(answer[0], tally, call=_call(entry))
        try:
            rewards, costs = self._rewards(answer[1], entry), self._costs(answer[2], entry)
        except ValueError as problem:
            _fail(tally, f"{_call(entry)} returned {problem}")
        if len(answer) == 4 and answer[3] and entry[0] + 1 < self.known.horizon:
            _fail(
                tally,
                f"{_call(entry)} returned done; there are {self.known.horizon} steps. Let an end be a last state.",
            )
        seen = _Seen(int(answer[0]), rewards, costs)
        tally.add(entry, seen)
        return seen

    def _wrong_state(self, found: Any, tally: _Tally, *, call: str) -> NoReturn:
        last = self.known.num_states - 1
        _fail(tally, f"{call} returned the state {found!r}; a whole number from 0 to {last} is required.")


def _is_index(found: Any, size: int) -> bool:
    return isinstance(found, (int, np.integer)) and 0 <= int(found) < size


def _call(entry: Entry) -> str:
    return f"step({entry[2]}) at h={entry[0]}, s={entry[1]}"


def _fail(tally: _Tally, text: str) -> NoReturn:
    error = SimulatorError(text)
    error.samples = tally.samples()
    raise error


class _Seen(NamedTuple):
    """What a step led to."""

    state: int
    rewards: list[float]
    costs: list[float]


class _Checker:
    """Checks a vector of payoffs against its bounds, and against the declared table where there is one."""

    def __init__(self, name: str, bounds: FloatArray, table: FloatArray | None) -> None:
        self._name, self._length = name, len(bounds)
        self._tolerance = AGREEMENT * float(np.abs(bounds).max(initial=0.0))
        self._bounds: list[list[list[float]]] = np.moveaxis(bounds, 0, 1).tolist()  # [H or 1][m][2]
        self._table = None if table is None else np.moveaxis(table, 0, -1)  # [H or 1, S, *A, m]

    def __call__(self, found: Any, entry: Entry) -> list[float]:
        """Return the payoffs as floats, or raise ValueError with what is wrong."""
        h, s, joint = entry
        try:
            values = [float(value) for value in found]
        except (TypeError, ValueError):
            raise ValueError(f"the {self._name}s {found!r}; {self._length} numbers are required.") from None
        if len(values) != self._length:
            raise ValueError(f"the {self._name}s {found!r}; {self._length} numbers are required.")
        bounds = at_step(self._bounds, h)
        for index, value in enumerate(values):
            least, greatest = bounds[index]
            if not least - self._tolerance <= value <= greatest + self._tolerance:  # nan is caught as well
                raise ValueError(f"{self._name} {value} at index {index}; its declared range is [{least}, {greatest}].")
        if self._table is not None:
            declared = at_step(self._table, h)[(s, *joint)].tolist()
            if any(abs(value - right) > self._tolerance for value, right in zip(values, declared, strict=True)):
                raise ValueError(f"the {self._name}s {values}; the declared ones are {declared}.")
        return values


class _Tally:
    """Counts of what was seen, filled step by step."""

    def __init__(self, known: ProblemSpec) -> None:
        self.steps = 0  # with one that was answered wrongly, and is not among the counts
        shape = (known.horizon, known.num_states, *known.num_actions)
        self._visits = np.zeros(shape, dtype=np.int64)
        self._transitions = np.zeros((known.horizon - 1, *shape[1:], known.num_states), dtype=np.int64)
        self._observed: PayoffSums | None = None
        if known.payoffs is None:
            self._observed = PayoffSums(*(np.zeros((m, *shape)) for m in (known.num_agents, known.num_constraints)))

    def add(self, entry: Entry, seen: _Seen) -> None:
        """Count one step."""
        place: Any = (*entry[:2], *entry[2])
        self._visits[place] += 1
        if entry[0] < len(self._transitions):
            self._transitions[(*place, seen.state)] += 1
        if self._observed is not None:
            whole: Any = (slice(None), *place)
            self._observed.rewards[whole] += seen.rewards
            self._observed.costs[whole] += seen.costs

    def samples(self) -> Samples:
        """Return the counts with one axis per agent."""
        return Samples(self._visits, self._transitions, self._observed)


class _Player:
    """Draws joint actions; lists and bisection, because arrays are slow one number at a time."""

    def __init__(self, policy: JointPolicy, rng: np.random.Generator) -> None:
        self._cumulative = [np.cumsum(table, axis=2)[..., :-1].tolist() for table in policy]
        self._rng = rng
        self._uniforms: list[float] = []

    def __call__(self, h: int, s: int) -> tuple[int, ...]:
        """Return one action per agent."""
        if len(self._uniforms) < len(self._cumulative):
            self._uniforms = self._rng.random(1024 * len(self._cumulative)).tolist()
        draw = self._uniforms.pop
        return tuple(bisect_right(rows[h][s], draw()) for rows in self._cumulative)
