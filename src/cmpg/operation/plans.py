"""Plan again during the day: the past is fixed, what was seen is taken, and the budget of the day is kept.

A plan is in force: a policy of a game with thresholds θ, whose expected costs V are proved to be at most θ. At step t
the states s_t are seen. What the plan in force *promises* is its expected cost from t on, given what is seen:

    promise_t = E[cost of the steps t, …, H − 1 | s_t, plan in force],

and what it leaves *unspent* is u = θ − V ≥ 0, a number that was known when it was made. The new plan has the thresholds
θ' = promise_t + u. The rest of the plan in force meets them, so there is always a plan. Then u' = θ' − V' ≥ 0 is known
again, and so on.

Guarantee (docs/operation.md has the proof): spent_t + promise_t + unspent_t is a martingale, whatever is seen decides
when plans are made, as long as all follow the plans and the model is right. It begins at α, so the expected cost of the
whole day is at most α; and a new plan that spends less than the old one promised raises what later plans may spend.
Thresholds are raised by what rounding can hide, and `DayBudget.tolerance` sums that up.

What no model foresaw (an agent comes, a link is closed) changes the game. The thresholds are then still what the *old*
model promised at that moment, so the budget of the day holds from there on by the new model. It may be too little for a
newcomer: a `reserve` that no plan may spend is kept for that, and released by the caller.

The certificate of a new plan is about the rest of the day given s_t, and about no more: an agent that knows that plans
are made again could steer what is seen, and with it the plans of others. So the certificate of the morning does not
cover a day on which plans are made again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray, frozen, numbers
from cmpg.equilibrium.certificate import Feasibility
from cmpg.equilibrium.result import Result
from cmpg.equilibrium.solve import solve
from cmpg.equilibrium.starts.common_price import WarmStart
from cmpg.errors import CMPGError, GameError, InfeasibleError, UnsupportedError
from cmpg.games.game import Game, Position
from cmpg.games.local.game import LocalGame
from cmpg.games.rest import among, laws_at, rest_of, rest_of_policy, sees_own_states
from cmpg.policy import JointPolicy
from cmpg.summaries import Summary, fields_line, headline_line, html, text

LAST_BITS = 8 * float(np.finfo(np.float64).eps)
"""A few sums of floats are off by less than this share of their sizes."""

States = Mapping[Any, int] | Sequence[int | None]
"""What was seen: states by the name or the number of an agent; or one for each, None where none was seen."""


@dataclass(frozen=True, eq=False)
class DayBudget:
    """The budget of a day at the moment of a new plan, for each constraint: [k] each.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world_local
    >>> budget = first_plan(grid_world_local(), reserve=0.04, epsilon=1e-2).budget
    >>> budget.thresholds, budget.allowed.round(6), bool((budget.planned <= budget.allowed).all())
    (array([0.1]), array([0.06]), True)
    """

    thresholds: FloatArray  # α of the whole day, the reserve included
    spent: FloatArray  # so far, as reported; nan if it was not
    promised: FloatArray  # by the plan that was in force, from here on
    allowed: FloatArray  # the thresholds of the new plan
    planned: FloatArray  # by the new plan, from here on
    reserve: FloatArray  # what no plan may spend yet
    tolerance: FloatArray  # by how much roundings may have raised the expected cost of the day, all plans together

    __repr__ = fields_line

    @property
    def expected(self) -> FloatArray:
        """What is spent and what the new plan promises: [k]; compare it with `thresholds`."""
        return np.asarray(self.spent + self.planned)


@dataclass(frozen=True)
class AgentChange:
    """What a new plan means for one agent: its value from here on, by the plan in force and by the new one.

    Examples
    --------
    >>> import cmpg
    >>> from cmpg.scenarios import grid_world_local
    >>> morning = cmpg.solve(grid_world_local(), epsilon=1e-2)
    >>> [(change.agent, change.after >= change.before - 1e-2) for change in replan(morning, at=2).changes]
    [('agent 0', True), ('agent 1', True)]
    """

    agent: str
    before: float  # nan for a newcomer
    after: float  # nan for an agent that has left

    @property
    def gain(self) -> float:
        """By how much the agent is better off; nan where there is nothing to compare."""
        return self.after - self.before


@dataclass(frozen=True, eq=False)
class Replan:
    """A new plan for the rest of a day; `result` is about the game from step `at` on.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world_local
    >>> plan = first_plan(grid_world_local(), at=2, epsilon=1e-2)
    >>> plan.at, plan.result.game.horizon, plan.result.certified
    (2, 4, True)
    """

    result: Result
    at: int  # of the day
    budget: DayBudget
    changes: tuple[AgentChange, ...]
    seen: tuple[str, ...]  # the agents whose states were seen; "all" stands for a joint state
    impossible: tuple[str, ...] = ()  # agents in a state that they cannot be in by the model and the plan in force

    @property
    def covers(self) -> str:
        """What the certificate of the result is about, and what it is not."""
        assert self.result.game is not None
        legend = self.result.game.names.legend
        begin = legend.steps[0] if legend.steps else f"step {self.at}"
        own = "own-state policies" if sees_own_states(self.result.game) else "policies"
        return (
            f"the certificate is about the rest of the day from {begin} on, given the states that were seen, which all "
            f"agents know, and deviations to other {own} of the rest. It does not cover the whole day: an agent that "
            "knows that plans are made again may steer what is seen."
        )

    def replan(
        self,
        *,
        at: int,
        states: States | None = None,
        game: Game | None = None,
        left: Collection[Any] = (),
        spent: Any = None,
        release: Any = 0.0,
    ) -> Replan:
        """Plan once more, from this plan; see `replan`."""
        return replan(self, at=at, states=states, game=game, left=left, spent=spent, release=release)

    def summary(self) -> Summary:
        """Return what `print` shows."""
        from cmpg.report.operation import replan_summary  # a room below: tables are made on demand

        return replan_summary(self)

    def __repr__(self) -> str:
        """Return one line."""
        return headline_line(type(self).__name__, Summary(self.result.status.name, self.result.message))

    __str__, _repr_html_ = text, html


def replan(
    plan: Result | Replan,
    *,
    at: int,
    states: States | None = None,
    game: Game | None = None,
    left: Collection[Any] = (),
    spent: Any = None,
    reserve: Any = None,
    release: Any = 0.0,
    epsilon: float | None = None,
    time_limit: float = np.inf,
    rng: np.random.Generator | int | None = None,
) -> Replan:
    """Make a new plan for the rest of a day, within what the plan in force promises.

    Parameters
    ----------
    plan
        The plan in force: a result of `solve`, or an earlier `Replan`.
    at
        The step of the day from which on the new plan holds.
    states
        What was seen at that step: the states by name or number of the agents, or one for each; of a joint game, the
        joint state as a sequence of one. Agents that were not seen have the law that the plan in force gives them.
    game
        The game of the whole day as it is known now, if something has changed: agents that came or left, a link that
        is closed, other rewards. Agents are the same if they have the same name. Newcomers begin in their initial law,
        unless their states are given. Its thresholds are not used.
    left
        Agents of a local game that are gone, by name or number of the plan in force.
    spent : [k]
        What the day has cost so far, for the budget; the plan does not depend on it.
    reserve : [k]
        What is kept back beyond the thresholds of the first plan; later plans know it.
    release : [k]
        How much of the reserve this plan may spend.
    epsilon
        As in `solve`; that of the plan in force unless given.
    time_limit, rng
        As in `solve`.

    Raises
    ------
    InfeasibleError
        A newcomer, or another change of the game, leaves no plan within what was promised and released. The plan in
        force stays.

    Examples
    --------
    >>> import cmpg
    >>> from cmpg.scenarios import charging
    >>> morning = cmpg.solve(charging(), epsilon=1e-3)
    >>> noon = replan(morning, at=12, states={0: 0}, spent=[0.1])
    >>> noon.result.certified, noon.result.game.horizon, bool(noon.budget.planned <= noon.budget.allowed)
    (True, 12, True)
    """
    force = _in_force(plan, reserve)
    old, policy, budget = force.result.game, force.result.policy.floats(), force.budget
    assert old is not None
    horizon = old.horizon
    given: Any = at  # a caller without types may pass a time of the day
    if horizon is None or not isinstance(given, (int, np.integer)) or not 0 <= at - force.at < horizon:
        last = "unknown" if horizon is None else force.at + horizon - 1
        raise CMPGError(f"at is {at!r}; a step of the day from {force.at} to {last} is required.")
    steps = int(at) - force.at
    seen = _seen(old, states, allow=_names(game) if game is not None else ())
    laws, impossible = _with_seen(laws_at(old, policy, steps), seen)
    tail, followed = rest_of(old, steps, laws), rest_of_policy(policy, steps)
    standing = tail.at(followed)
    # What is proved to be left: costs are known up to a rounding.
    limits, costs = np.asarray(old.thresholds, dtype=np.float64), np.asarray(force.result.costs, dtype=np.float64)
    off = _hidden(old.at(policy))
    unspent = np.maximum(limits - costs - off - LAST_BITS * (np.abs(limits) + np.abs(costs)), 0.0)
    # Twice what rounding can hide: in the promise itself, and in the check that the rest of the plan meets it.
    rounding = _hidden(standing)
    hidden = 2 * rounding
    promised = np.asarray(standing.costs, dtype=np.float64)
    released = _amounts("release", release, len(promised))
    if np.any(released > budget.reserve):
        raise CMPGError(f"release is {released.tolist()}; {budget.reserve.tolist()} is left of the reserve.")
    allowed = np.nextafter(promised + hidden + unspent + released, np.inf)
    new, start = _as_it_is_now(tail, followed, force.result.multipliers, game=game, left=left, at=int(at), seen=seen)
    found = solve(
        new.with_thresholds(allowed),
        epsilon=force.result.epsilon if epsilon is None else epsilon,
        start=start,
        improve=None,  # joint moves by pairs are worth their time once a day, and not at every event
        time_limit=time_limit,
        rng=rng,
    )
    kept = frozen(budget.reserve - released)
    if found.incumbent is None:
        raise InfeasibleError(
            f"there is no plan for the rest of the day within {allowed.tolist()}: {found.message} The plan in force "
            f"stays. {kept.tolist()} is left of the reserve: release some of it, or let newcomers wait."
        )
    later = DayBudget(
        thresholds=budget.thresholds,
        spent=np.full(len(promised), np.nan) if spent is None else _amounts("spent", spent, len(promised), low=-np.inf),
        promised=promised,
        allowed=frozen(allowed),
        planned=found.costs,
        reserve=kept,
        # The promise may be too high by its rounding, that of the laws of unseen states (part of evaluating the whole
        # plan in force) and that of the sum; and the new plan may exceed its thresholds by what is not proved.
        tolerance=frozen(
            budget.tolerance + hidden + rounding + off + LAST_BITS * np.abs(allowed) + found.certificate.excess
        ),
    )
    changes = _changes(_by_name(tail, standing.values), _by_name(new, found.values))
    return Replan(found, int(at), later, changes, seen.who, impossible)


def first_plan(
    game: Game,
    *,
    at: int = 0,
    states: States | None = None,
    reserve: Any = 0.0,
    epsilon: float = 1e-6,
    time_limit: float = np.inf,
    rng: np.random.Generator | int | None = None,
) -> Replan:
    """Make the first plan of a day, when nothing is spent or promised: as it begins, or when the first agents come.

    Parameters
    ----------
    game
        The game of the whole day; its thresholds are those of the day.
    at
        The step from which on the plan holds. Nothing that costs anything has happened before it.
    states
        As in `replan`; agents that were not seen have their initial law.
    reserve : [k]
        What this plan may not spend, for newcomers.
    epsilon, time_limit, rng
        As in `solve`.

    Examples
    --------
    >>> from cmpg.scenarios import charging
    >>> first_plan(charging(), at=6, reserve=0.2, epsilon=1e-3).budget.allowed
    array([0.3])
    """
    seen = _seen(game, states, allow=())
    laws, _ = _with_seen(laws_at(game, JointPolicy.uniform(game.policy_shapes), 0), seen)
    alpha = np.asarray(game.thresholds, dtype=np.float64)
    kept = _amounts("reserve", reserve, len(alpha))
    rest = rest_of(game, at, laws).with_thresholds(alpha - kept)
    found = solve(rest, epsilon=epsilon, improve=None, time_limit=time_limit, rng=rng)
    if found.incumbent is None:
        raise InfeasibleError(f"there is no plan for the day within {(alpha - kept).tolist()}: {found.message}")
    changes = _changes({}, _by_name(rest, found.values))
    return Replan(found, at, _first_budget(found, alpha, kept), changes, seen.who)


def _first_budget(found: Result, alpha: FloatArray, reserve: FloatArray) -> DayBudget:
    """Return the budget of a day of which nothing is spent, or promised to be."""
    assert found.game is not None
    none, over = frozen(np.zeros(len(alpha))), frozen(np.array(found.certificate.excess, dtype=np.float64))
    return DayBudget(alpha, none, none, found.game.thresholds, found.costs, reserve, over)


def _in_force(plan: Result | Replan, reserve: Any) -> Replan:
    """Return the plan in force; a result of `solve` is the first plan of a day that begins with its game."""
    result = plan.result if isinstance(plan, Replan) else plan
    if result.game is None:
        raise CMPGError("the plan does not know its game; `solve` and `load_run` return results that do.")
    if result.certificate.feasibility is Feasibility.VIOLATED:
        raise InfeasibleError("the plan in force breaks its own thresholds; there is nothing that it promises to keep.")
    if not isinstance(plan, Replan):
        limits = np.asarray(result.game.thresholds, dtype=np.float64)
        kept = _amounts("reserve", 0.0 if reserve is None else reserve, len(limits))
        return Replan(result, 0, _first_budget(result, limits + kept, kept), (), ())
    if reserve is not None:
        raise CMPGError("the reserve was fixed with the first plan of the day; leave it out here.")
    return plan


def _hidden(position: Position) -> FloatArray:
    """Return how far the costs at a position can be from the true ones: [k]."""
    below = position.underflow()
    rounding = np.asarray(position.cost_rounding, dtype=np.float64)
    return rounding if below is None else rounding + below.costs


def _amounts(name: str, given: Any, count: int, *, low: float = 0.0) -> FloatArray:
    """Return one number for each constraint, where one for all or one each is given: [k]."""
    found = np.asarray(numbers(name, given), dtype=np.float64)
    if found.shape not in ((), (count,)) or not np.all(found >= low):
        kind = "numbers" if low < 0 else "numbers of at least 0"
        raise CMPGError(f"{name} is {found.tolist()}; {count} {kind} are required, one for each constraint.")
    return frozen(np.broadcast_to(found, (count,)).copy())


# --- What was seen ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Seen:
    """The states that were seen: by index of the law, and those of newcomers by name."""

    known: dict[int, int]
    newcomers: dict[str, int]
    names: tuple[str, ...]

    @property
    def who(self) -> tuple[str, ...]:
        """The agents whose states were seen."""
        return tuple(self.names[index] for index in self.known)


def _names(game: Game) -> tuple[str, ...]:
    return game.names.all_agents(game.num_agents)


def _seen(game: Game, states: States | None, *, allow: Collection[str]) -> _Seen:
    names = _names(game) if sees_own_states(game) else ("all",)
    if states is None:
        return _Seen({}, {}, names)
    if not isinstance(states, Mapping):
        if len(states) != len(names):
            raise CMPGError(f"there are {len(states)} states; {len(names)} are required, None where none was seen.")
        states = {i: state for i, state in enumerate(states) if state is not None}
    known, newcomers = {}, {}
    for key, state in states.items():
        if not isinstance(state, (int, np.integer)):
            raise CMPGError(f"the state of {key!r} is {state!r}; the number of a state is required.")
        index = names.index(key) if key in names else key
        if isinstance(index, (int, np.integer)) and 0 <= index < len(names):
            known[int(index)] = int(state)
        elif key in allow:
            newcomers[str(key)] = int(state)
        else:
            raise CMPGError(f"there is no agent {key!r} in the plan in force; it has {_some(names)}.")
    return _Seen(known, newcomers, names)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f", … ({len(names)})" if len(names) > 3 else "")


def _with_seen(laws: Sequence[FloatArray], seen: _Seen) -> tuple[list[FloatArray], tuple[str, ...]]:
    """Return the laws with a point where a state was seen, and the agents that cannot be where they were seen."""
    found, impossible = list(laws), []
    for index, state in seen.known.items():
        found[index] = _point(laws[index], state, seen.names[index])
        impossible += [seen.names[index]] if laws[index][state] == 0 else []
    return found, tuple(impossible)


def _point(law: FloatArray, state: int, name: str) -> FloatArray:
    if not 0 <= state < len(law):
        raise CMPGError(f"{name} was seen in state {state}; it has the states 0 to {len(law) - 1}.")
    point = np.zeros(len(law))
    point[state] = 1.0
    return point


# --- The rest of the day as it is known now ---------------------------------------------------------------------------


def _as_it_is_now(
    tail: Game,
    followed: JointPolicy,
    multipliers: FloatArray,
    *,
    game: Game | None,
    left: Collection[Any],
    at: int,
    seen: _Seen,
) -> tuple[Game, WarmStart]:
    """Return the game of the rest, and a start near the plan in force; tables of newcomers take the first action."""
    if left:
        if not isinstance(tail, LocalGame):
            advice = "Pass the game without them as `game`."
            raise UnsupportedError(type(tail).__name__, "cannot lose single agents", advice)
        gone = set(_seen(tail, {key: 0 for key in left}, allow=()).known)
        kept = [i for i in range(tail.num_agents) if i not in gone]
        if isinstance(game, LocalGame):  # it may still list them, as a file of the whole day does
            lost = {_names(tail)[i] for i in gone}
            game = among(game, [i for i, name in enumerate(_names(game)) if name not in lost])
        tail = among(tail, kept)
        followed, multipliers = JointPolicy(tuple(followed[i] for i in kept)), multipliers[kept]
    if game is None:
        return tail, WarmStart(followed, multipliers)
    new = _rest_as_known(tail, game, at, seen)
    rows = {name: i for i, name in enumerate(_names(tail))}
    tables = list(JointPolicy.reference(new.policy_shapes))
    prices = np.tile(np.median(multipliers, axis=0), (new.num_agents, 1))
    for i, name in enumerate(_names(new)):
        if name in rows and followed[rows[name]].shape == tables[i].shape:
            tables[i], prices[i] = followed[rows[name]], multipliers[rows[name]]
    return new, WarmStart(JointPolicy(tuple(tables)), prices)


def _rest_as_known(tail: Game, game: Game, at: int, seen: _Seen) -> Game:
    """Return the rest of another game of the day, in which agents are where they were seen, or by their laws."""
    assert tail.horizon is not None
    if len(game.thresholds) != len(tail.thresholds) or game.horizon != at + tail.horizon:
        raise GameError(
            f"the game has {len(game.thresholds)} constraints and {game.horizon} steps; {len(tail.thresholds)} and "
            f"{at + tail.horizon} are required: it is about the whole day, and its budgets are those of the plan."
        )
    if not isinstance(game, LocalGame):
        if type(game) is not type(tail) or game.policy_shapes[0][1] != tail.policy_shapes[0][1]:
            raise GameError("the game has another form, or other states, than the plan in force.")
        return rest_of(game, at, [tail.initial])  # type: ignore[attr-defined]
    if not isinstance(tail, LocalGame):
        raise GameError("the game has another form than the plan in force.")
    names = _names(game)
    if len(set(names)) < len(names):
        raise GameError("two agents of the game have the same name; agents are told apart by their names.")
    laws = {name: agent.initial for name, agent in zip(_names(tail), tail.agents, strict=True)}
    initials = []
    for name, agent in zip(names, game.agents, strict=True):
        law = laws.get(name, agent.initial)
        if name in seen.newcomers:
            law = _point(agent.initial, seen.newcomers[name], name)
        if len(law) != agent.num_states:
            raise GameError(f"{name} has {agent.num_states} states now, and had {len(law)}; pass its state.")
        initials.append(law)
    return rest_of(game, at, initials)


def _by_name(game: Game, values: FloatArray) -> dict[str, float]:
    return dict(zip(_names(game), map(float, values), strict=True))


def _changes(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[AgentChange, ...]:
    order = [*after, *(name for name in before if name not in after)]
    return tuple(AgentChange(name, before.get(name, np.nan), after.get(name, np.nan)) for name in order)
