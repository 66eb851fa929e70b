"""The rest of a day: the game from a step on, given what is known of the states at that step.

For a game with horizon H and a step t, the rest has horizon H − t, the tables of the steps t, …, H − 1, and an initial
law that says what is known of the states at t: a point where a state was seen; where it was not, the law of the state
under the policy that was played until then. In local games the agents move independently, so that law is one for each
agent; in joint games there is one law of the joint state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

import numpy as np

from cmpg.arrays import FloatArray, frozen
from cmpg.cmdp.evaluation import occupancy
from cmpg.errors import GameError, UnsupportedError
from cmpg.games.counting.game import CountingGame
from cmpg.games.game import Game, Information
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.games.names import Legend
from cmpg.policy import JointPolicy

GameT = TypeVar("GameT", bound=Game)


def rest_of(game: GameT, step: int, laws: Sequence[FloatArray] | None = None) -> GameT:
    """Return the game from a step on.

    Parameters
    ----------
    game
        A local, joint or counting game with a horizon.
    step
        Counted from 0; it is step 0 of the rest.
    laws
        The law of the state at that step: one for each agent of a local game, and a single one of the joint state
        otherwise. Unless given, the initial law of the game.

    Examples
    --------
    >>> from cmpg.scenarios import charging
    >>> day = charging()
    >>> rest_of(day, 11).horizon, rest_of(day, 11).names.step(0)
    (13, '11:00')
    """
    if game.horizon is None:
        raise UnsupportedError(type(game).__name__, "with a discount has no end", "Give it a horizon.")
    if not 0 <= step < game.horizon:
        raise GameError(f"the step is {step}; one of 0, …, {game.horizon - 1} is required.")
    rest: Any
    if isinstance(game, LocalGame):
        rest = _rest_of_local(game, step, laws)
    elif isinstance(game, JointGame):
        rest = _rest_of_joint(game, step, laws)
    elif isinstance(game, CountingGame):
        rest = _rest_of_counting(game, step, laws)
    else:
        raise UnsupportedError(type(game).__name__, "cannot be cut at a step", "Use a LocalGame or a JointGame.")
    return rest  # type: ignore[no-any-return]


def rest_of_policy(policy: JointPolicy, step: int) -> JointPolicy:
    """Return what a policy does from a step on."""
    return JointPolicy(tuple(table[step:] for table in policy))


def laws_at(game: Game, policy: JointPolicy, step: int) -> tuple[FloatArray, ...]:
    """Return the law of the state at a step: one for each agent of a local game, else a single one.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> laws_at(game, game.uniform_policy(), 0)
    (array([1.]),)
    """
    if isinstance(game, LocalGame):
        return tuple(
            agent.initial if step == 0 else agent.visits(np.asarray(table[: step + 1])).states[step]
            for agent, table in zip(game.agents, policy.floats(), strict=True)
        )
    # Whichever agent is looked at, what happens at the joint policy is the same.
    cmdp = game.at(policy).induced_cmdp(0)
    return (np.asarray(occupancy(cmdp, policy.floats()[0])[step].sum(axis=-1)),)


def among(game: LocalGame, agents: Sequence[int]) -> LocalGame:
    """Return a local game with some of its agents alone; the others use nothing.

    Examples
    --------
    >>> from cmpg.scenarios import charging
    >>> among(charging(), [0, 3]).agent_names
    ('car 0 at P-01', 'car 3 at P-04')
    """
    kept = list(agents)
    if not kept:
        raise GameError("no agent is left; at least one is required.")
    count = len(kept) + 1

    def some(names: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        return None if not names else tuple(names[i] for i in kept)

    legend = game.legend
    if legend is not None:
        legend = replace(
            legend,
            goals=some(legend.goals) or (),
            needs_of=some(legend.needs_of) or (),
            sites=some(legend.sites) or (),
            wholes=some(legend.wholes) or (),
        )

    binds = None if game.binds is None else game.binds[kept]
    if binds is not None and not binds.any(axis=0).all():
        free = int(np.argmin(binds.any(axis=0)))
        raise GameError(f"{game.names.constraint(free)} binds no agent that is left; pass a game without it.")
    return game.with_trusted(
        agents=tuple(game.agents[i] for i in kept),
        delay=game.delay[..., :count],
        load_costs=game.load_costs[..., :count],
        agent_names=some(game.agent_names or game.names.all_agents(game.num_agents)),
        state_names=some(game.state_names),
        action_names=some(game.action_names),
        legend=legend,
        binds=binds,
    )


def _from(table: Any, step: int, axis: int = 0) -> Any:
    """Return a table from a step on; one that is the same at every step as it is."""
    if isinstance(table, tuple):
        return table if len(table) == 1 else table[step:]
    return table if table.shape[axis] == 1 else table[(slice(None),) * axis + (slice(step, None),)]


def _rest_of_local(game: LocalGame, step: int, laws: Sequence[FloatArray] | None) -> LocalGame:
    known: dict[tuple[str, int], Any] = {}  # agents share afterwards what they shared before

    def cut(agent: LocalAgent, name: str, axis: int = 0) -> Any:
        table = getattr(agent, name)
        if table is None:
            return None
        if (name, id(table)) not in known:
            known[name, id(table)] = _from(table, step, axis)
        return known[name, id(table)]

    initials = [agent.initial for agent in game.agents] if laws is None else list(laws)
    agents = tuple(
        LocalAgent(
            transition=cut(agent, "transition"),
            reward=cut(agent, "reward"),
            uses=cut(agent, "uses"),
            initial=frozen(np.asarray(initial, dtype=np.float64)),
            costs=cut(agent, "costs", 1),
        )
        for agent, initial in zip(game.agents, initials, strict=True)
    )
    return game.with_trusted(
        agents=agents,
        delay=_from(game.delay, step),
        load_costs=_from(game.load_costs, step, 1),
        horizon=game.horizon - step,
        legend=_later_legend(game.legend, step),
    )


def _later_legend(legend: Legend | None, step: int) -> Legend | None:
    if legend is None:
        return None
    begins = legend.begins
    if begins and legend.step_seconds:
        begins = (datetime.fromisoformat(begins) + timedelta(seconds=step * legend.step_seconds)).isoformat()
    return replace(legend, steps=legend.steps[step:], begins=begins)


def _rest_of_joint(game: JointGame, step: int, laws: Sequence[FloatArray] | None) -> JointGame:
    assert game.horizon is not None
    return replace(
        game,
        transition=_from(game.transition, step),
        rewards=_from(game.rewards, step, 1),
        costs=_from(game.costs, step, 1),
        initial=game.initial if laws is None else laws[0],
        horizon=game.horizon - step,
    )


def _rest_of_counting(game: CountingGame, step: int, laws: Sequence[FloatArray] | None) -> CountingGame:
    assert game.horizon is not None
    return replace(
        game,
        rewards=_from(game.rewards, step),
        transition=_from(game.transition, step),
        costs=_from(game.costs, step, 1),
        private_rewards=None if game.private_rewards is None else _from(game.private_rewards, step, 1),
        class_rewards=None if game.class_rewards is None else _from(game.class_rewards, step),
        initial=game.initial if laws is None else laws[0],
        horizon=game.horizon - step,
    )


def sees_own_states(game: Game) -> bool:
    """Whether every agent has a state of its own."""
    return game.information is Information.OWN_STATE
