"""The check of a claim for every model in a box around the transition, in floats.

Let every entry of the transition be known up to an error e: the true rows p satisfy |p − p̂| ≤ e entry by entry, at each
step, state and joint action, and may differ between them. For numbers V let V⁺(s, a) and V⁻(s, a) be the greatest and
the least p·V over such rows, found by filling the box from the greatest (the least) of V on. By backward induction

    C_h(s) = Σ_a π_h(a|s) [c + C⁺_{h+1}](s, a),          the costs are at most this,
    L_h(s) = Σ_a π_h(a|s) [r_i + L⁻_{h+1}](s, a),        what agent i gets is at least this,
    U_h(s) = max_{a_i} Σ_{a_{−i}} π_h(a_{−i}|s) [r_i − λ_i·c + U⁺_{h+1}](s, a),

for every model in the box. So in each of them the policy is feasible if C_0 ≤ α, and no agent gains more than
λ_i·α + U_0 − L_0. C_0 and L_0 are attained by some model of the box. U_0 and L_0 each take the worst model for
themselves, and none need be the worst for both: the bound on gains is true, and may not be tight. Rewards, costs and
the first state are taken as they are.

A weaker statement compares worst cases alone. With U⁻ for U⁺ in the last line, W_0 is what the best deviation gets in
the model whose rows attain U⁻; so every deviation that keeps the thresholds in all models has a model in which it gets
λ_i·α + W_0 at most, and none raises the agent's worst case by more than λ_i·α + W_0 − L_0. That is attained where no
threshold binds.
"""

from __future__ import annotations

import numpy as np

from cmpg.proof.check import Checked, Stage, with_budgets
from cmpg.proof.claim import Claim, ClaimError, JointTables, at_step
from cmpg.proof.rounding import TINY, UNIT, Array, Ball, Rows, dense, exactly
from cmpg.proof.shared import Joint


def check_robust(claim: Claim, error: float) -> tuple[Checked, Array]:
    """Judge a claim in floats for every model whose transition is within `error` of the stated one, entry by entry.

    Returns what holds in every model, and by how much a deviation can raise the worst case of each agent: [n].
    """
    if not isinstance(claim.tables, JointTables) or claim.horizon is None:
        raise ClaimError("a claim for a box of models needs tables over joint actions, and a finite horizon.")
    if not 0 <= error <= 1:
        raise ClaimError(f"the error of the model is {error}; a number from 0 to 1 is required.")
    if np.isinf(claim.multipliers).any():
        raise ClaimError("a proof by support says which moves are impossible, and in a box of models none is.")
    with np.errstate(all="ignore"):
        stated = map(dense, claim.tables.transition)
        return _checked(claim, Joint(claim), [each / each.sum(axis=1, keepdims=True) for each in stated], error)


def greatest_mean(rows: Array, error: float, values: Array) -> Ball:
    """Return the greatest p·values over rows p within `error` of the stated ones: [R] from [R, S] and [S].

    Examples
    --------
    >>> greatest_mean(np.array([[0.5, 0.5]]), 0.1, np.array([0.0, 1.0])).mid
    array([0.6])
    """
    order = np.argsort(-values, kind="stable")
    low, high = np.maximum(rows - error, 0.0)[:, order], np.minimum(rows + error, 1.0)[:, order]
    room = high - low
    left = 1.0 - low.sum(axis=1, keepdims=True)
    # What is left goes to the greatest values first, as far as the box allows.
    filled = np.clip(left - np.cumsum(room, axis=1) + room, 0.0, room)
    mid = (low + filled) @ values[order]
    # Each probability is off by a few roundings of numbers of at most one, and there are S of them in a sum.
    # A product that is too small for all digits of a float loses up to half of the least one, and so does the radius.
    largest = float(np.abs(values).max(initial=0.0))
    rad = np.full(len(mid), 8 * (rows.shape[1] + 8) * (UNIT * largest + TINY) if largest else 0.0)
    return Ball(mid, rad)


def least_mean(rows: Array, error: float, values: Array) -> Ball:
    """Return the least p·values over such rows."""
    return -greatest_mean(rows, error, -values)


def _checked(claim: Claim, game: Joint, rows: list[Array], error: float) -> tuple[Checked, Array]:
    agents, states, constraints = len(claim.policy), len(game.initial), len(claim.thresholds)
    most, least, spent = np.zeros((states, agents)), np.zeros((states, agents)), np.zeros((states, constraints))
    worst = np.zeros((states, agents))  # W: of deviations, where the model is the worst for them
    raised = np.zeros(agents)
    for step in reversed(range(claim.steps)):
        table, own = at_step(rows, step), game.mixtures[step]
        stage = Stage(game, step, claim.multipliers, ())

        def greatest(values: Array, table: Array = table) -> Ball:
            return greatest_mean(table, error, values).reshape(states, -1)

        def smallest(values: Array, table: Array = table) -> Ball:
            return least_mean(table, error, values).reshape(states, -1)

        options = [stage.worth(i, greatest(most[:, i])) for i in range(agents)]
        raised += [float(each.rad.max()) for each in options]
        bounds = [each.upper.max(axis=1) for each in options]
        worst_bounds = [stage.worth(i, smallest(worst[:, i])).upper.max(axis=1) for i in range(agents)]
        kept = [own[i].over(stage.worth(i, smallest(least[:, i]), charged=False)).lower for i in range(agents)]
        paid = [stage.paid(j, greatest(spent[:, j])).upper for j in range(constraints)]
        most, least, worst = (np.stack(each, axis=1) for each in (bounds, kept, worst_bounds))
        spent = np.stack(paid, axis=1) if paid else spent
    start = Rows(game.initial[None])
    top, top_of_worst, bottom, costs_at = (start.mean(exactly(each))[0] for each in (most, worst, least, spent))
    ceilings = [with_budgets(each, claim.multipliers, claim.thresholds).upper for each in (top, top_of_worst)]
    gains = _above(ceilings[0], bottom)
    found = Checked(bottom, ceilings[0], costs_at, gains, np.minimum(raised, gains), (None,) * constraints)
    return found, _above(ceilings[1], bottom)


def _above(bounds: Array, values: Ball) -> Array:
    """Return by how much bounds exceed values at most, and infinity where that is not known: [n]."""
    gains = np.maximum((exactly(bounds) - exactly(values.lower)).upper, 0.0)
    return np.where(np.isnan(gains), np.inf, gains)
