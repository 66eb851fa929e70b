"""Random CMDPs for hypothesis, and readings of them that share no code with the library.

Sizes are drawn by hypothesis, so that failures shrink; entries come from a generator with a drawn seed. Dyadic CMDPs
(multiples of 1/8, probabilities multiples of 1/16) are evaluated exactly by floats over short horizons, and are full of
ties; rough ones have arbitrary floats.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import plan


@dataclass(frozen=True)
class Options:
    max_states: int = 8
    max_actions: int = 4
    max_horizon: int = 6
    constraints: tuple[int, int] = (0, 3)
    discounted: bool | None = None
    rough: bool | None = None
    sparse: bool | None = None
    slack: tuple[str, ...] = ("loose", "tight")
    scales: tuple[float, ...] = (1.0,)


def cmdps(**options) -> st.SearchStrategy[CMDP]:
    """Draw a CMDP that some policy is known to meet: with slack, or (tight) with equality in every constraint."""
    return _cmdps(Options(**options))


@st.composite
def _cmdps(draw, options: Options) -> CMDP:
    states, actions = draw(st.integers(1, options.max_states)), draw(st.integers(1, options.max_actions))
    horizon, constraints = draw(st.integers(1, options.max_horizon)), draw(st.integers(*options.constraints))
    discounted = draw(st.booleans()) if options.discounted is None else options.discounted
    rough = draw(st.booleans()) if options.rough is None else options.rough
    steps = 1 if discounted else draw(st.sampled_from([1, horizon]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale, cost_scale = draw(st.sampled_from(options.scales)), draw(st.sampled_from(options.scales))
    transition = rows((steps, states, actions, states), rng, rough=rough)
    if draw(st.booleans()) if options.sparse is None else options.sparse:
        transition = [sp.csr_array(step.reshape(-1, states)) for step in transition]
    costs = entries((constraints, steps, states, actions), rng, rough=rough)
    cmdp = CMDP(
        transition=transition,
        reward=scale * entries((steps, states, actions), rng, rough=rough),
        costs=cost_scale * (np.abs(costs) if draw(st.booleans()) else costs),
        thresholds=np.zeros(constraints),
        initial=rows((states,), rng, rough=rough),
        horizon=None if discounted else horizon,
        discount=draw(st.sampled_from([0.0, 0.5, 0.9, 0.99])) if discounted else None,
    )
    return with_thresholds(cmdp, rng, tight=draw(st.sampled_from(options.slack)) == "tight", cost_scale=cost_scale)


def entries(shape, rng, *, rough):
    return rng.normal(size=shape) if rough else rng.integers(-16, 17, size=shape) / 8


def rows(shape, rng, *, rough):
    """Rows of probabilities along the last axis; about half of the entries of dyadic ones are zero."""
    if rough:
        return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])
    favoured = rng.random(shape) * (rng.random(shape) < 0.5) + 1e-3
    return rng.multinomial(16, favoured / favoured.sum(axis=-1, keepdims=True)) / 16


def random_policy(cmdp, rng, *, rough=True):
    return rows(cmdp.policy_shape, rng, rough=rough)


def with_thresholds(cmdp, rng, *, tight, cost_scale=1.0):
    """Thresholds that a plan of least weighted cost meets, with equality or some slack; or a random policy's."""
    if cmdp.num_constraints == 0:
        return cmdp
    weights = rng.integers(1, 5, size=cmdp.num_constraints).astype(float)
    met = plan(cmdp, weights, reward_weight=0.0).costs
    if not tight and rng.random() < 0.5:
        met = evaluate(cmdp, random_policy(cmdp, rng)).costs
    slack = 0.0 if tight else cost_scale * rng.integers(1, 9, size=cmdp.num_constraints) / 16
    return replace(cmdp, thresholds=met + slack, trusted=True)


def dense_transition(cmdp):
    """The transition for every step: [H, S, A, S]."""
    shape = (*cmdp.policy_shape, cmdp.num_states)
    tables = [m.toarray() for m in cmdp.transition] if cmdp.is_sparse else cmdp.transition
    return np.broadcast_to(np.asarray(tables).reshape(-1, *shape[1:]), shape)


def every_step(cmdp, table):
    return np.broadcast_to(table, cmdp.policy_shape)


def fractions(array):
    return [Fraction(float(entry)) for entry in np.ravel(array)]


def shares(array):
    weights = fractions(array)
    total = sum(weights)
    return [weight / total for weight in weights]


def exact_costs(cmdp, policy):
    """V^{c_j} in rationals, rows divided by their exact sums, straight from the definition of the occupancy."""
    transition = dense_transition(cmdp)
    states, totals = shares(cmdp.initial), [Fraction(0)] * cmdp.num_constraints
    for h in range(cmdp.num_steps):
        ahead = [Fraction(0)] * cmdp.num_states
        for s, a in product(range(cmdp.num_states), range(cmdp.num_actions)):
            if states[s] == 0 or policy[h, s, a] == 0:
                continue
            visits = states[s] * shares(policy[h, s])[a]
            for j, cost in enumerate(cmdp.costs):
                totals[j] += visits * Fraction(float(every_step(cmdp, cost)[h, s, a]))
            for target, chance in enumerate(shares(transition[h, s, a])):
                ahead[target] += visits * chance
        states = ahead
    return totals


def exact_discounted_costs(cmdp, policy):
    """V^{c_j} of a stationary policy in rationals: v = c_π + γ P_π v by elimination; no pivot of I − γP is zero."""
    transition, discount = dense_transition(cmdp)[0], Fraction(cmdp.discount)
    lines = []
    for s in range(cmdp.num_states):
        played = shares(policy[0, s])
        rows = [shares(transition[s, a]) for a in range(cmdp.num_actions)]
        ahead = [sum(p * row[target] for p, row in zip(played, rows, strict=True)) for target in range(cmdp.num_states)]
        paid = [sum(p * c for p, c in zip(played, fractions(cost[0, s]), strict=True)) for cost in cmdp.costs]
        lines.append([int(s == target) - discount * p for target, p in enumerate(ahead)] + paid)
    for pivot, line in enumerate(lines):
        lines[pivot] = [entry / line[pivot] for entry in line]
        for other in range(len(lines)):
            if other != pivot:
                factor = lines[other][pivot]
                lines[other] = [x - factor * y for x, y in zip(lines[other], lines[pivot], strict=True)]
    values = [line[len(lines) :] for line in lines]
    begun = list(zip(shares(cmdp.initial), values, strict=True))
    return [sum(p * own[j] for p, own in begun) for j in range(len(cmdp.costs))]


def one_state(reward, costs, *, thresholds=None, horizon=1, **options):
    """One state, and actions with these rewards [A] and costs [k, A] at every step."""
    costs = np.atleast_2d(np.asarray(costs, dtype=float))
    return CMDP(
        transition=np.ones((1, 1, len(reward), 1)),
        reward=[[reward]],
        costs=costs[:, None, None, :],
        thresholds=np.zeros(len(costs)) if thresholds is None else thresholds,
        initial=[1.0],
        horizon=horizon,
        **options,
    )
