"""Section 6 to the letter: Algorithms 3 and 4 with their own constants, and Corollaries 1 and 2."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.learning.bounds import (
    PRINTED,
    SAFE,
    bounds_table,
    paper_constants,
    rigorous_constants,
    safe_constants,
)
from cmpg.learning.simulator import GameSimulator
from cmpg.learning.slater import cmdp_slack, slater_constant
from cmpg.paper.algorithm_2 import algorithm_2
from cmpg.paper.algorithm_3 import Algorithm3, primal_dual
from cmpg.paper.algorithm_4 import Algorithm4, DopeRun
from cmpg.paper.claims import (
    Evidence,
    Finding,
    Picture,
    Section,
    above,
    added,
    agrees,
    between,
    differs,
    near,
    rough,
    rows_of,
)
from cmpg.paper.figures import draw_regret
from cmpg.paper.learning import (
    DELTA,
    EPSILON,
    behind_a_door,
    sample_counts,
    two_steps,
    two_steps_start,
    unit_size,
)
from cmpg.scenarios.paper import grid_world

SAFE_EPSILON = 0.5
"""ε of Algorithm 4's run: the safe policy is more than this below the best, so that something has to be learned."""


def _literal_agent() -> CMDP:
    """Two states, four actions, two steps, all rewards and costs from 0 to 1, and a slack of ζ = 0.25."""
    rng = np.random.default_rng(0)
    tables = rng.permuted(np.tile(np.linspace(0, 1, 8), (4, 1)), axis=1).reshape(2, 2, 2, 4)
    cmdp = CMDP(
        transition=rng.dirichlet(np.ones(2), size=(2, 2, 4)),
        reward=tables[0],
        costs=tables[1:],
        thresholds=np.zeros(1),
        initial=np.array([0.5, 0.5]),
        horizon=2,
    )
    return replace(cmdp, thresholds=np.array([0.25 - cmdp_slack(cmdp)]))


@agrees(
    "Algorithm 3, Lemma 2",
    paper="feasible, within ε",
    expect=near(1) + rough(1.06e7, 2.69e10) + between(0, 0.5) + between(0, 1) + between(-1, 1),
    why="As printed, with N = 1.06e7 samples of each entry and T = 2.69e10 steps, all of them taken.",
)
def algorithm_3_run(evidence: Evidence) -> Finding:
    """Algorithm 3 to the letter, for S = 2, A = 4, H = 2, ζ = 0.25, ε = 0.5, δ = 0.1."""
    cmdp, epsilon = _literal_agent(), 0.5
    problem = behind_a_door(cmdp, evidence.rng("learning: Algorithm 3"))
    response = Algorithm3(slater=0.25)(problem, epsilon=epsilon, delta=DELTA)
    constants = paper_constants(unit_size(2, 4, 2), slater=0.25, epsilon=epsilon, delta=DELTA)
    tight = replace(cmdp, thresholds=cmdp.thresholds - constants.tightening)
    loop = primal_dual(
        tight,
        iterations=int(constants.iterations),
        step_size=constants.step_size,
        multiplier_bound=constants.multiplier_bound,
    )
    loss, excess = Exact()(tight).value - loop.value, loop.cost - tight.thresholds[0]
    judged = evaluate(cmdp, response.policy)
    gap, cost = Exact()(cmdp).value - judged.value, judged.costs[0] / cmdp.thresholds[0]
    text = (
        f"{response.status.name.lower()} after {response.work:.4g} steps and {response.samples:.3g} samples: {gap:.2g} "
        f"below the best, cost {judged.costs[0]:.5g} of {cmdp.thresholds[0]:.5g}. On the true model the loop loses "
        f"{loss:.1g} and exceeds α′ by {excess:.1g}; ε_opt = {constants.solver_tolerance:.1g} is allowed"
    )
    worst = max(loss, excess) / constants.solver_tolerance
    return Finding.of(text, response.certified, response.samples_per_entry, response.work, gap, cost, worst)


@added(
    "Algorithm 3, Lemma 7", expect=above(1e9) + above(1e15), why="Steps within a piece of the dual function are one."
)
def algorithm_3_programs(evidence: Evidence) -> Finding:
    """Steps of Algorithm 3's primal-dual loop as printed, each of them a dynamic program."""
    programs = [each.programs for each in evidence.of(sample_counts)]
    return Finding.of(f"{min(programs):.1e} to {max(programs):.1e}", min(programs), max(programs))


def _bold_or_careful() -> CMDP:
    """A bold action leads to where boldness pays; it costs, and two bold steps cost more than is allowed."""
    return CMDP(
        transition=np.array([[[[0.95, 0.05], [0.05, 0.95]]] * 2]).reshape(1, 2, 2, 2),
        reward=np.array([[[0.0, 0.2], [0.2, 1.0]]]),
        costs=np.array([[[[0.0, 0.5], [0.3, 1.0]]]]),
        thresholds=np.array([1.2]),
        initial=np.array([1.0, 0.0]),
        horizon=2,
    )


@dataclass(frozen=True, eq=False)
class _Dope:
    run: DopeRun
    best: float
    values: FloatArray  # [T]: of the policies that were played, in truth
    costs: FloatArray  # [T]
    safe_value: float  # of π_S
    order: float  # C of R(T) ≤ C√T, with one in the place of what Õ hides

    @property
    def regrets(self) -> FloatArray:
        """How far each policy that was played is below the best: [T]."""
        return self.best - self.values


def _dope(evidence: Evidence) -> _Dope:
    cmdp = _bold_or_careful()
    careful = np.zeros(cmdp.policy_shape)
    careful[..., 0] = 1.0
    safe = evaluate(cmdp, careful)
    cost = float(safe.costs[0])
    problem = behind_a_door(cmdp, evidence.rng("learning: Algorithm 4"))
    # Lemma 14 promises 1 − 6δ′.
    run = Algorithm4(careful, cost)(problem, epsilon=SAFE_EPSILON, delta=DELTA / 6)
    judged = [evaluate(cmdp, policy) for policy in run.policies]
    evidence.tick("learning: Algorithm 4", 1, 1)
    return _Dope(
        run=run,
        best=Exact()(cmdp).value,
        values=np.array([each.value for each in judged]),
        costs=np.array([each.costs[0] for each in judged]),
        safe_value=float(safe.value),
        order=2 * 2**3 * np.sqrt(2) / (1.2 - cost),
    )


@agrees(
    "Algorithm 4, Lemma 14",
    paper="feasible, within ε",
    expect=between(0, 1) + near(0, tolerance=0) + between(0, 1.2) + between(0.3, 1),
    why="As printed, with one for every constant that Õ hides: every episode has a policy of its own, and each is "
    "measured. What is returned is clearly better than the safe policy, which is itself more than ε below the best.",
)
def algorithm_4_run(evidence: Evidence) -> Finding:
    """Algorithm 4 to the letter, for S = 2, A = 2, H = 2."""
    found, epsilon = evidence.of(_dope), SAFE_EPSILON
    run, returned = found.run, int(found.run.means.argmax())
    gap, unsafe = found.best - found.values[returned], np.count_nonzero(found.costs > 1.2)
    text = (
        f"ε = {epsilon:g}: T_0 = {run.constants.first_phase:.0f}, T = {run.constants.iterations:.0f}, M = "
        f"{run.constants.episodes:,}; {gap:.3g} below the best, {found.best:.4g} (the safe policy is worth "
        f"{found.safe_value:.3g}); {unsafe} of {len(run.policies)} policies unsafe, "
        f"costs at most {found.costs.max():.3g} of 1.2. In {run.safe_rounds} rounds after T_0 nothing "
        "but the safe policy was proved safe"
    )
    gained = (found.values[returned] - found.safe_value) / (found.best - found.safe_value)
    return Finding.of(text, gap / epsilon, unsafe, found.costs[returned], gained)


@added(
    "Lemma 15, Definition 3",
    expect=between(0.1, 10) + between(0, 0.75),
    why="The constant that Õ hides is no smaller than the ratio. Learning shows in the regret of a round, which "
    "falls; a learner that plays the safe policy for ever has the same regret in every round.",
)
def dope_regret(evidence: Evidence) -> Finding:
    """DOPE's regret, against SH³√(AT)/(α − α_S), and in the last quarter of the rounds against the first."""
    found = evidence.of(_dope)
    regret, bound = float(found.regrets.sum()), found.order * float(np.sqrt(len(found.values)))
    quarter = len(found.regrets) // 4
    first, last = (float(each.mean()) for each in (found.regrets[:quarter], found.regrets[-quarter:]))
    text = (
        f"{regret:.0f} after {len(found.values)} rounds; the order is {bound:.0f}. {first:.2g} a round at first, "
        f"{last:.2g} at the end"
    )
    return Finding.of(text, regret / bound, last / first)


# Corollaries 1 and 2.


@differs(
    "Corollary 1",
    paper="Õ(n S H⁸ Σ A_i/(ε³ζ²) + n²H⁴/ε³) samples",
    expect=near(2, tolerance=0.05) + between(1, 1.2),
    why="One more factor S: the concentration lemma drops it.",
)
def corollary_1(_: Evidence) -> Finding:
    """The number of samples of each entry does not grow with S."""
    growths = []
    for constants in (rigorous_constants, paper_constants):
        few, many = (
            constants(unit_size(states, 4, 4), slater=0.5, epsilon=EPSILON, delta=DELTA).samples_per_entry
            for states in (400, 800)
        )
        growths.append(many / few)
    text = (
        f"twice as many states take {growths[0]:.2f} times as many samples of each entry; as printed {growths[1]:.2f}"
    )
    return Finding.of(text, *growths)


@agrees(
    "Theorem 2, Corollary 1",
    paper="an ε-Nash policy with probability 1 − δ",
    expect=near(0.5, 64, 18912, tolerance=0)
    + near(1, 1, 1, tolerance=0)
    + above(1)
    + near(1)
    + between(-1e-9, 0.25)
    + between(0, 1),
    why="T, M, N, δ′ and the primal-dual loop as printed, the greatest gain moves; rewards and costs lie in [0, 1]. "
    "Each number is compared with what the simulator counted.",
)
def corollary_1_run(evidence: Evidence) -> Finding:
    """CA-CMPG-E with Algorithm 3 to the letter: the counter-example over two steps, ε = 0.25, δ = 0.1."""
    game, epsilon = two_steps(fill=True), 0.25
    zeta = slater_constant(game).value
    simulator = GameSimulator(game, rng=evidence.rng("learning: Corollary 1"))
    run = algorithm_2(simulator, two_steps_start(), learner=Algorithm3(slater=zeta), epsilon=epsilon, delta=DELTA)
    outer = run.constants
    inner = paper_constants(unit_size(2, 2, 2), slater=zeta, epsilon=epsilon / 4, delta=outer.response_delta)
    agents, horizon, rounds = 2, 2, len(run.iterations)
    responses = [response for each in run.iterations for response in each.responses]
    drawn = {response.samples_per_entry for response in responses}
    # Three batches of M episodes an iteration; the last step of an episode leads nowhere, and is not drawn for a model.
    values = rounds * (1 + agents) * outer.episodes * horizon
    model = rounds * agents * inner.samples_per_entry * (horizon - 1) * 2 * 2
    counted = simulator.ledger.by_purpose
    position = game.at(run.policy)
    gap = max(Exact()(position.induced_cmdp(i)).bound - position.values[i] for i in range(agents))
    most = outer.value_samples + outer.max_iterations * agents * inner.samples
    text = (
        f"ζ = {zeta:g}, T = {outer.max_iterations}, M = {outer.episodes:,}, δ′ = {outer.response_delta:.2g}, N = "
        f"{inner.samples_per_entry:,}, T of Algorithm 3 = {inner.iterations:.2g}; {rounds} iterations, {run.moves} "
        f"moves, {counted['values']:,} samples for values and {counted['responses']:,} for responses, of the "
        f"{most:.2g} that the corollary counts; true gap {gap:.3g}"
    )
    return Finding.of(
        text,
        zeta,
        outer.max_iterations,
        outer.episodes,
        drawn == {inner.samples_per_entry},
        counted["values"] / values,
        counted["responses"] / model,
        run.moves,
        run.ended and bool(np.all(position.slacks >= 0)),
        gap,
        simulator.ledger.total / most,
    )


@agrees(
    "Corollary 2, Assumption 2",
    paper="Õ(n S² H¹⁰ Σ A_i/(ε⁵c²) + n²H⁴/ε³) samples: a larger c takes fewer",
    expect=near(4, 64, 4, tolerance=0.1) + rough(4.54e33),
    why="c, the slack that every agent can obtain, takes the place of ζ. The number is that of `cmpg bounds "
    "grid-world`, whose rewards are divided by their range.",
)
def corollary_2(_: Evidence) -> Finding:
    """Samples of CA-CMPG-E with Algorithm 4 in the grid world, ε = 0.1: half of c, of H, and of ε in Algorithm 4."""

    def rounds(*, horizon: int = 6, margin: float = 0.1, accuracy: float = EPSILON / 4) -> float:
        size = unit_size(256, 4, horizon)
        return safe_constants(size, margin=margin, epsilon=accuracy, delta=1e-6, printed=True).iterations

    known = GameSimulator(grid_world(), rng=np.random.default_rng(0)).known
    table = bounds_table(known, slater=0.1, epsilon=EPSILON, delta=DELTA)
    total = next(row.samples for row in table.rows if (row.algorithm, row.version) == (SAFE, PRINTED))
    ratios = (
        rounds(margin=0.05) / rounds(),
        rounds(horizon=12) / rounds(),
        rounds(accuracy=EPSILON / 8) / rounds(),
    )
    text = (
        f"{total:.3g} with c = ζ = 0.1; T of Algorithm 4 grows by {ratios[0]:.0f}, {ratios[1]:.0f} and {ratios[2]:.0f}"
    )
    return Finding.of(text, *ratios, total)


def _pictures(evidence: Evidence) -> tuple[Picture, ...]:
    dope = evidence.of(_dope)
    regret = np.cumsum(dope.best - dope.values)
    caption = f"DOPE's regret over {len(regret)} rounds, and SH³√(At)/(α − α_S); the first rounds play the safe policy."
    return (Picture("dope-regret", caption, partial(draw_regret, regret, dope.order)),)


SECTION = Section(
    title="Algorithms 3 and 4, Corollaries 1 and 2",
    note="As printed: nothing is replaced by what would be faster, and every step is taken.",
    claims=rows_of(globals()),
    pictures=_pictures,
)
