"""Games behind doors, and environments that step them: rightly, or wrongly from some step on."""

from dataclasses import replace

import numpy as np

from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.games.joint.game import JointGame
from cmpg.learning.simulator import GameSimulator


def two_agent_game(seed=0, *, horizon=3, states=3, actions=(2, 3), sparse=False):
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(states) / 2, size=(horizon, states, *actions))
    if sparse:
        transition[transition < 0.2] = 0.0
        transition /= transition.sum(axis=-1, keepdims=True)
    return JointGame(
        transition=transition,
        rewards=rng.normal(size=(2, horizon, states, *actions)),
        costs=rng.random((1, 1, states, *actions)),
        thresholds=[horizon],
        initial=rng.dirichlet(np.ones(states)),
        horizon=horizon,
    )


def common_reward_game(seed=0, *, states=2, horizon=2, constraints=1, slack=0.4, steps=1):
    """Two agents with one reward: a potential game; what pays is dear, so the constraint binds."""
    rng = np.random.default_rng(seed)
    table = (steps, states, 2, 2)
    common = rng.random(table)
    game = JointGame(
        transition=rng.dirichlet(np.ones(states), size=table),
        rewards=np.stack([common, common]),
        costs=np.stack([0.7 * common + 0.3 * rng.random(table) for _ in range(constraints)])
        if constraints
        else np.zeros((0, *table)),
        thresholds=np.full(constraints, 10.0),
        initial=rng.dirichlet(np.ones(states)),
        horizon=horizon,
    )
    return replace(game, thresholds=game.at(feasible_start(game).policy).costs + slack)


class TableEnvironment:
    """A game, stepped one action at a time."""

    def __init__(self, game):
        self.game, self.h, self.s, self.rng = game, 0, 0, np.random.default_rng(99)
        self.cumulative, self.first = np.cumsum(game.transition, axis=-1), np.cumsum(game.initial)

    def reset(self, rng):
        self.rng, self.h = rng, 0
        self.s = int(np.searchsorted(self.first[:-1], rng.random(), side="right"))
        return self.s

    def place(self, h, s):
        self.h, self.s = h, s

    def _at(self, table):
        return table[0 if len(table) == 1 else self.h]

    def step(self, actions):
        entry = (self.s, *actions)
        rewards = [self._at(reward)[entry] for reward in self.game.rewards]
        costs = [self._at(cost)[entry] for cost in self.game.costs]
        self.s = int(np.searchsorted(self._at(self.cumulative)[entry][:-1], self.rng.random(), side="right"))
        self.h += 1
        return self.s, rewards, costs


def known_of(game):
    return GameSimulator(game, rng=np.random.default_rng(0)).known


class Door:
    """Lets through what the protocol names, and nothing else."""

    OPEN = frozenset({"known", "ledger", "draw", "draw_induced", "draw_all", "roll_out", "add_up"})

    def __init__(self, simulator):
        object.__setattr__(self, "_Door__simulator", simulator)

    def __getattribute__(self, name):
        assert name in Door.OPEN, f"a learner reached for {name}"
        return getattr(object.__getattribute__(self, "_Door__simulator"), name)


def arrays_in(thing, seen=None):
    """Every array that can be reached from an object by its fields and items."""
    seen = {} if seen is None else seen
    if id(thing) in seen:
        return
    seen[id(thing)] = thing  # kept alive, so that nothing else gets its address
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, (tuple, list, set, frozenset)):
        for each in thing:
            yield from arrays_in(each, seen)
    elif isinstance(thing, dict):
        for each in thing.values():
            yield from arrays_in(each, seen)
    elif hasattr(thing, "__dict__"):
        yield from arrays_in(vars(thing), seen)


class Faulty(TableEnvironment):
    """Answers as it should, until the given step, and then as it is told."""

    def __init__(self, game, at, answer):
        super().__init__(game)
        self.at, self.answer, self.steps = at, answer, 0

    def step(self, actions):
        right = super().step(actions)
        self.steps += 1
        return self.answer(*right) if self.steps == self.at else right


WRONG = {
    "state": (lambda s, r, c: (7, r, c), r"step\(\(\d, \d\)\) at h=1, s=\d returned the state 7; .* 0 to 2"),
    "no number": (lambda s, r, c: ("busy", r, c), "returned the state 'busy'"),
    "nan": (lambda s, r, c: (s, [float("nan"), r[1]], c), "returned reward nan at index 0; its declared range"),
    "range": (lambda s, r, c: (s, r, [99.0]), "returned cost 99.0 at index 0; its declared range is"),
    "length": (lambda s, r, c: (s, r[:1], c), "2 numbers are required"),
    "words": (lambda s, r, c: (s, ["a", "b"], c), "2 numbers are required"),
    "another table": (lambda s, r, c: (s, r, [c[0] * 1.001]), "the declared ones are"),
    "early end": (lambda s, r, c: (s, r, c, True), "returned done; there are 3 steps"),
    "no tuple": (lambda s, r, c: s, r"\(state, rewards, costs\) is required"),
}
