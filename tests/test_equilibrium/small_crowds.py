"""Small local games of many agents: random crowds that share resources and budgets, and a few made for one purpose.

In a `crowd` action 0 is to idle: it uses, gains and costs nothing, so every threshold of zero or more can be met.
"""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.policy import JointPolicy


def always(game, action):
    """Everybody plays one action, or the last one where there are fewer."""
    shapes = game.policy_shapes
    return JointPolicy(tuple(np.eye(A)[np.full((H, S), min(action, A - 1))] for H, S, A in shapes))


def crowd_member(rng, *, states, actions, horizon, resources, constraints):
    uses = (rng.random((1, states, actions, resources)) < 0.6).astype(float)
    reward = rng.random((rng.choice([1, horizon]), states, actions)) + 0.2
    private = rng.random((constraints, 1, states, actions)) * rng.choice([0.0, 0.3])
    uses[:, :, 0], reward[:, :, 0], private[..., 0] = 0, 0, 0
    return LocalAgent(
        transition=rng.dirichlet(np.ones(states), size=(1, states, actions)),
        reward=reward,
        uses=uses,
        initial=rng.dirichlet(np.ones(states)),
        costs=private,
    )


def crowd(rng, *, agents, horizon, constraints, states=2, actions=3, resources=2, share=0.4, rough=False):
    """A crowd whose thresholds are so large a share of what everybody's last action always would spend.

    Budgets are spent by pairs and by all but the first on a resource; `rough` loads may cost, or save, anything.
    """
    loads = np.arange(agents + 1)
    members = tuple(
        crowd_member(rng, states=states, actions=actions, horizon=horizon, resources=resources, constraints=constraints)
        for _ in range(agents)
    )
    over, pairs = np.maximum(loads - 1, 0), loads * (loads - 1) / 2
    paid = rng.random((constraints, 1, resources, 2, 1)) * np.stack([over, pairs])
    noise = rng.normal(scale=0.3, size=(constraints, 1, resources, agents + 1)) * (loads > 0)
    game = LocalGame(
        agents=members,
        delay=rng.random((1, resources, 1)) * rng.choice([0.0, 0.1, 0.5]) * loads,
        load_costs=paid.sum(axis=3) + noise * rough,
        thresholds=np.zeros(constraints),
        horizon=horizon,
    )
    spent = game.at(always(game, actions - 1)).costs
    return replace(game, thresholds=share * np.where(spent > 0, spent, 1.0))


@st.composite
def crowds(draw, shares=(0.02, 0.1, 0.4, 0.9, 2.0), max_agents=4):
    share = draw(st.sampled_from(shares))
    return crowd(
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))),
        agents=draw(st.integers(1, max_agents)),
        horizon=draw(st.integers(1, 3)),
        constraints=draw(st.sampled_from([1, 2])),
        states=draw(st.integers(1, 3)),
        actions=draw(st.integers(2, 3)),
        resources=draw(st.integers(1, 2)),
        share=share,
        rough=draw(st.booleans()),
    )


def crossing(agents, *, thresholds, constraints=1):
    """Each of two steps, everybody may cross, for 1 + i/10, alone or not; pairs who cross together spend budgets.

    Nobody else matters to what an agent gets, so all who pay nothing cross always, whatever the others do.
    """
    loads = np.arange(agents + 1)
    members = tuple(
        LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, 1 + i / 10]]], uses=[[[[0], [1]]]], initial=[1.0])
        for i in range(agents)
    )
    paid = np.broadcast_to(loads * (loads - 1) / 2, (constraints, 1, 1, agents + 1))
    return LocalGame(
        agents=members, delay=np.zeros((1, 1, agents + 1)), load_costs=paid, thresholds=thresholds, horizon=2
    )


def queue(agents, *, threshold):
    """Everybody wants to move up by one place, and can only do so when the next one has: the last agent comes first.

    In turns from the front, each round lets one agent move. That agent 0 moves up spends 1 of the budget.
    """

    def member(i):
        uses = np.zeros((1, 1, 2, agents + 1))
        uses[0, 0, [0, 1], [i, i + 1]] = 1
        ones, moving = np.ones((1, 1, 2, 1)), [[[[0.0, float(i == 0)]]]]
        return LocalAgent(transition=ones, reward=[[[0, 1]]], uses=uses, initial=[1.0], costs=moving)

    alone = np.where(np.arange(agents + 1) > 1, 3.0, 0.0)
    return LocalGame(
        agents=tuple(member(i) for i in range(agents)),
        delay=np.broadcast_to(alone, (1, agents + 1, agents + 1)),
        load_costs=np.zeros((1, 1, agents + 1, agents + 1)),
        thresholds=[threshold],
        horizon=1,
    )


def twin_doors(agents):
    """Two doors are as good as each other, and pairs at a door spend a budget: ties decide who goes where."""
    loads = np.arange(agents + 1)
    uses = np.concatenate([np.zeros((1, 1, 1, 2)), np.eye(2)[None, None]], axis=2)
    member = LocalAgent(transition=np.ones((1, 1, 3, 1)), reward=[[[0, 1, 1]]], uses=uses, initial=[1.0])
    paid = np.broadcast_to(loads * (loads - 1) / 2, (1, 1, 2, agents + 1))
    return LocalGame(
        agents=(member,) * agents,
        delay=np.zeros((1, 2, agents + 1)),
        load_costs=paid,
        thresholds=[1.0],
        horizon=2,
    )
