"""Certificates: what is proved about a joint policy of a game. No solver is imported here.

A Nash claim is (game, policy, multipliers). For any λ_i ≥ 0, weak duality bounds what agent i could get by any
deviation that keeps the constraints, so
    gain_i ≤ λ_i·α + max_π V^{r_i − λ_i·c}(π, π_{−i}) − V^{r_i}(π_i, π_{−i}),
and the policy is an ε-Nash policy if it is feasible and every right-hand side is at most ε. The multipliers may come
from anywhere: bad ones make the bound loose, never wrong. λ_ij = ∞ stands for a proof by support: nothing is left of
that budget, and what would cost more is forbidden (`cmpg.proof.support`).

`certify` judges a claim by the kernel (`cmpg.proof`), which takes plain tables and imports numpy alone; with `exact`,
in rationals. `screen` judges by the CMDPs that the game induces, with the compiled kernels where there are any. It has
an allowance for rounding of its own, and is there for what the kernel cannot do: games without tables, games that are
so large that the kernel would take longer than `MAX_KERNEL_SECONDS`, and the many policies that a search compares. A
certificate says in `judged_by` which of them judged.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from cmpg.arrays import BoolArray, FloatArray, check_shape, frozen, numbers
from cmpg.cmdp.evaluation import HIDDEN_BY_UNDERFLOW, Underflow, evaluate
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import dual_bound
from cmpg.cmdp.support import restricted
from cmpg.equilibrium.verified import COMMAND, verify
from cmpg.errors import GameError, PolicyError, SolverError, UnsupportedError, explains_keywords
from cmpg.games.claims import claim_of, has_tables
from cmpg.games.crowd.game import CrowdGame
from cmpg.games.crowd.policy import CrowdPolicy
from cmpg.games.devices import Concept, CorrelatedPolicy, Device, Rota
from cmpg.games.game import (
    Game,
    Information,
    Names,
    Position,
    agent_bounds,
    binds_of,
    bounded_together,
    check_is_game,
    forbidden,
)
from cmpg.games.local.discounted import DiscountedLocalGame
from cmpg.games.rationals import is_exact
from cmpg.games.risk import CVaRGame
from cmpg.policy import CompactTable, JointPolicy, check_is_policy
from cmpg.proof.claim import ClaimError
from cmpg.proof.exact import ExactlyChecked, TooLarge
from cmpg.proof.robust import check_robust
from cmpg.proof.truncation import Tail
from cmpg.proof.verdict import Feasibility as Feasibility
from cmpg.proof.verdict import Findings, affordable_costs, decided, findings, judge, judge_exactly, seconds_to_check
from cmpg.summaries import Summary, at_most, counted, html, line, text

if TYPE_CHECKING:
    from cmpg.cmdp.support import Restricted
    from cmpg.equilibrium.crowds.certificate import CrowdCertificate

MAX_KERNEL_SECONDS = 1.0
"""Claims that the kernel would check for longer than about this are judged by the engine of the game."""

KERNEL, RATIONALS, COMPILED, CMDPS = "kernel", "rationals", "compiled judge", "induced CMDPs"
"""Who judged."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """What has been proved about a joint policy.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> certificate = certify(game, game.uniform_policy())
    >>> certificate.feasible, certificate.proves(1e-6), round(certificate.epsilon, 6)
    (True, False, 0.25)
    """

    feasibility: Feasibility
    gains: FloatArray  # [n]: the proven bound of each agent's gain, rounding included
    values: FloatArray  # [n]
    bounds: FloatArray  # [n]: what each agent could get at most
    costs: FloatArray  # [k]
    thresholds: FloatArray  # [k]
    multipliers: FloatArray  # [n, k]; infinite where the proof is by support
    rounding: FloatArray  # [n]: how much of each gain is an allowance for rounding
    excess: FloatArray  # [k]: by how much each threshold may be exceeded at most; zero where it is proved to be met
    information: Information
    arithmetic: str  # "floating point", "exact", "exact, verified"
    judged_by: str  # "kernel", "rationals", "compiled judge", "induced CMDPs"
    names: Names = field(default_factory=Names)
    rescaled: int = 0  # rows of probabilities that exact arithmetic divided by their sums, which were not exactly one
    binds: BoolArray | None = None  # [n, k]: where constraints bind some agents only
    concept: Concept = Concept.NASH
    model_error: float = 0.0  # the claim holds for every transition within this of the stated one, entry by entry
    worst_case_gains: FloatArray | None = (
        None  # [n], with a model error: what deviations add to each worst case at most
    )
    exactly: ExactlyChecked | None = None  # values, bounds, costs and gains as fractions, where these were computed
    tail: Tail | None = None  # of a discounted local game: values and costs are of its steps, gains and excess of all

    @property
    def epsilon(self) -> float:
        """No agent gains more than this by any deviation that keeps the constraints."""
        return float(self.gains.max())

    @property
    def feasible(self) -> bool:
        """Whether the policy is proved to meet every threshold."""
        return self.feasibility is Feasibility.PROVEN

    def meets(self, allow_rounding: float) -> bool:
        """Whether no threshold can be exceeded by more than this."""
        return self.feasible or bool((self.excess <= allow_rounding).all())

    @property
    def by_support(self) -> BoolArray:
        """Which proofs are by support instead of by a multiplier, per agent and constraint: [n, k]."""
        return np.isinf(self.multipliers)

    @property
    def slacks(self) -> FloatArray:
        """α − V^c: [k]."""
        return self.thresholds - self.costs

    def proves(self, epsilon: float, *, allow_rounding: float = 0.0) -> bool:
        """Whether this proves an ε-Nash policy; with `allow_rounding`, one that may exceed thresholds by that much."""
        return self.meets(allow_rounding) and self.epsilon <= epsilon

    def summary(self) -> Summary:
        """Return what `print` shows: what is proved, agents and constraints; it formats what is here."""
        from cmpg.report.certificates import certificate_summary  # a room below: tables are made on demand

        return certificate_summary(self)

    __repr__, __str__, _repr_html_ = line, text, html


@overload
def certify(game: CrowdGame, policy: CrowdPolicy, multipliers: Any = None) -> CrowdCertificate: ...
@overload
def certify(
    game: Game | CVaRGame | DiscountedLocalGame,
    policy: JointPolicy | Device,
    multipliers: Any = None,
    *,
    concept: Concept | None = None,
    exact: bool = False,
    verified: bool = False,
    model_error: float = 0.0,
) -> Certificate: ...
@explains_keywords(epsilon="a certificate has its own: `certificate.proves(epsilon)`.")
def certify(
    game: Any,
    policy: Any,
    multipliers: Any = None,
    *,
    concept: Concept | None = None,
    exact: bool = False,
    verified: bool = False,
    model_error: float = 0.0,
) -> Certificate | CrowdCertificate:
    """Check a joint policy or a device: does it meet the constraints, and how much could an agent gain by deviating?

    Parameters
    ----------
    game
        Any game; with `exact`, one that has tables; or a game with budgets on CVaR, whose multipliers are always
        proposed by best responses, for every t. A `CrowdGame` is judged by groups. A `DiscountedLocalGame` is judged
        by the steps that the policy states, and a bound on all that follow.
    policy
        One table per agent; or a `Rota`, or a `CorrelatedPolicy`; of a crowd, a `CrowdPolicy`.
    multipliers : [n, k]
        The multipliers that prove the gains. If they are not given, the best response of each agent is computed and
        proposes them, so that the gains are as small as they can be proved; multipliers of zero prove the gain of an
        agent that may break the constraints. Infinity stands for a proof by support: nothing is left of that budget,
        and what would cost more is forbidden.
        A claim about a device needs them: zeros are taken otherwise.
    concept
        What is claimed of a device: a rota is a rota, a correlated policy is `Concept.CORRELATED` unless it is claimed
        to be `Concept.COARSE`, which promises less.
    exact
        Compute with rationals: then "feasible" means V^c ≤ α exactly, and rounding is zero.
    verified
        Have `cmpg-verify` check the result, a program that is proved correct (docs/verified.md). If it agrees,
        `arithmetic` is "exact, verified", and every gain is the ε that it has proved; otherwise the certificate is
        what it would be without this.

    model_error
        Judge the claim for every model whose transition is within this of the stated one, entry by entry, at each step,
        state and joint action: then values are the least, costs the greatest, and gains bounds over all of them, which
        need not be tight. For joint games with a finite horizon.

    Raises
    ------
    GameError, PolicyError
        What is given is not a game, or not a JointPolicy that fits it.
    CMPGError
        `cmpg-verify` is required, and is not installed or cannot read the claim.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> policy = JointPolicy.uniform(game.policy_shapes).replace(0, [[[1, 0]]]).replace(1, [[[1, 0]]])
    >>> certify(game, policy, [[0.0], [0.0]]).epsilon < 1e-12
    True
    """
    if isinstance(game, CVaRGame):
        from cmpg.equilibrium.cvar import certify_cvar  # few games have such budgets

        if not isinstance(policy, JointPolicy) or multipliers is not None or verified or model_error:
            raise PolicyError("a claim about CVaR is (game, joint policy), judged in floats or with `exact`.")
        return certify_cvar(game, policy, exact=exact)
    if isinstance(game, CrowdGame):
        from cmpg.equilibrium.crowds.certificate import certify_crowd  # few games are crowds

        if exact or verified or model_error or concept not in (None, Concept.NASH):
            raise PolicyError(
                "a crowd is judged in floats, with an allowance that is proved: leave exact, verified, model_error and "
                "concept out, or spread out a small crowd: game.spread(), policy.spread()."
            )
        return certify_crowd(game, policy, multipliers)
    if isinstance(game, DiscountedLocalGame):
        from cmpg.equilibrium.discounted import certify_discounted  # few games are of this form

        if not isinstance(policy, JointPolicy) or verified or model_error or concept not in (None, Concept.NASH):
            raise PolicyError(
                "a claim about a discounted local game is (game, joint policy, multipliers), judged in floats or with "
                "`exact`: leave verified, model_error and concept out."
            )
        return certify_discounted(game, policy, multipliers, exact=exact)
    if isinstance(policy, Rota | CorrelatedPolicy):
        from cmpg.equilibrium.recommendations.certificate import certify_device  # few claims are about devices

        if verified:
            raise PolicyError("cmpg-verify checks claims about joint policies, and not about devices; use `exact`.")
        if model_error:
            raise PolicyError("a model error is allowed for in claims about joint policies, and not about devices.")
        return certify_device(game, policy, multipliers, concept=concept, exact=exact)
    if concept not in (None, Concept.NASH):
        raise PolicyError(
            f"a joint policy is claimed to be Nash, and not {concept.word}; pass a Rota or a CorrelatedPolicy."
        )
    return _nash_certificate(game, policy, multipliers, exact=exact, verified=verified, model_error=model_error)


def _nash_certificate(
    game: Game, policy: JointPolicy, multipliers: Any, *, exact: bool, verified: bool, model_error: float
) -> Certificate:
    """Judge a Nash claim; `certify` has the parameters."""
    check_claim(game, policy)
    if multipliers is None and len(game.thresholds):
        from cmpg.equilibrium.best_responses import proposed_multipliers  # the only solver, and its word is checked

        multipliers = proposed_multipliers(game, policy.floats())
    given = check_multipliers(game, multipliers)
    if not model_error:
        found = _judged(game, policy, given, exact=exact)
        return _verified(game, policy, given, found) if verified else found
    if exact or verified or holds_rationals(game, policy):
        raise PolicyError(
            "a claim with a model error is judged in floats: leave `exact` and `verified` out, and give game and "
            "policy in decimals."
        )
    return _robust(game, policy, given, model_error)


def _judged(game: Game, policy: JointPolicy, given: FloatArray, *, exact: bool) -> Certificate:
    """Judge a claim about a joint policy: by the kernel, in rationals where they are given, or by its CMDPs."""
    tables = tables_of(game)
    if tables is None and exact:
        advice = "Leave `exact` out, and rounding is bounded instead."
        raise UnsupportedError(type(game).__name__, "has no exact mode", advice)
    if tables is None:
        return screen(game, policy, given)
    rational = exact or holds_rationals(game, policy)
    if not rational and not kernel_judges(game):
        return screen(game, policy, given)
    claim = claim_of(game, policy, given)
    if not rational:
        return as_certificate(game, given, judge(claim), judged_by=KERNEL)
    try:
        return as_certificate(game, given, judge_exactly(claim), judged_by=RATIONALS)
    except TooLarge:
        raise GameError(
            "the claim is too large for exact arithmetic; leave `exact` out, and give floats instead of rationals, or "
            "decimals in files: rounding is bounded then."
        ) from None


def check_claim(game: Any, policy: Any) -> None:
    """Raise unless these are a game and a joint policy of it; the message says what to pass instead."""
    check_is_game(game)
    check_is_policy(policy)
    policy.check_fits(game.policy_shapes)


def _robust(game: Game, policy: JointPolicy, multipliers: FloatArray, error: float) -> Certificate:
    """Judge a claim for every model in a box around the transition."""
    if not 0 <= error <= 1:
        raise PolicyError(f"model_error is {error}; a number from 0 to 1 is required.")
    try:
        found, worst_case_gains = check_robust(claim_of(game, policy, multipliers), error)
    except ClaimError as problem:
        raise UnsupportedError(type(game).__name__, "has no claim with a model error", str(problem)) from None
    judged = findings(found, np.asarray(game.thresholds), lambda: None)
    certificate = as_certificate(game, multipliers, judged, judged_by=KERNEL)
    return replace(certificate, model_error=error, worst_case_gains=worst_case_gains)


def _verified(game: Game, policy: JointPolicy, multipliers: FloatArray, found: Certificate) -> Certificate:
    if found.feasibility is Feasibility.VIOLATED or not np.isfinite(found.epsilon):
        return found
    if not verify(game, policy, multipliers, found.epsilon).proved:
        return found
    nothing = np.zeros(len(found.gains))
    return replace(
        found,
        feasibility=Feasibility.PROVEN,
        gains=nothing + found.epsilon,  # what was claimed, of every agent
        rounding=nothing,
        excess=np.zeros(len(found.excess)),
        arithmetic="exact, verified",
        judged_by=COMMAND,
    )


def kernel_judges(game: Game) -> bool:
    """Whether `certify` judges claims about a game by the kernel: it has tables, and they are small enough."""
    tables = tables_of(game)
    if tables is None or is_exact(game):
        return tables is not None
    seconds = seconds_to_check(tables, game.policy_shapes, discounted=game.discount is not None)
    return seconds <= MAX_KERNEL_SECONDS


def tables_of(game: Game) -> Any:
    """Return the tables of a game, or None: a class of one's own may have none, and is judged by its CMDPs."""
    return game.claim_tables() if has_tables(game) else None  # type: ignore[attr-defined]


def holds_rationals(game: Any, policy: JointPolicy) -> bool:
    """Whether a game or a policy is given in Fractions."""
    tables = [each.rows if isinstance(each, CompactTable) else each for each in policy.stored]
    return is_exact(game) or object in [table.dtype for table in tables]


def as_certificate(
    game: Game, multipliers: FloatArray, verdict: Findings, *, judged_by: str, concept: Concept = Concept.NASH
) -> Certificate:
    """Return what was found of a claim as a record."""
    binds = binds_of(game)
    return Certificate(
        feasibility=verdict.feasibility,
        gains=verdict.gains,
        values=verdict.values,
        bounds=verdict.bounds,
        costs=verdict.costs,
        thresholds=np.asarray(game.thresholds, dtype=np.float64),
        multipliers=np.asarray(multipliers, dtype=np.float64),
        rounding=verdict.rounding,
        excess=verdict.excess,
        information=game.information,
        arithmetic="exact" if judged_by == RATIONALS else "floating point",
        judged_by=judged_by,
        names=game.names,
        rescaled=verdict.rescaled,
        exactly=verdict.exactly,
        binds=None if binds.all() else binds,
        concept=concept,
    )


# --- Judging by the CMDPs of a position -------------------------------------------------------------------------------


def screen(game: Game, policy: JointPolicy, multipliers: Any = None) -> Certificate:
    """Judge as `certify` does, by the CMDPs that the game induces: faster than the kernel, with more code behind it.

    A game that was given in rationals is judged by its floats, which a search computes with; `certify` has the last
    word.
    """
    given = np.asarray(check_multipliers(game, multipliers), dtype=np.float64)
    hard = np.asarray(given == np.inf)
    # Overflow gives inf or nan; both make a bound infinite, so no warning is needed.
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            return _screened(game, game.at(policy), policy, np.where(hard, 0, given), hard)
        except SolverError:  # a discounted sum whose residual is more than rounding explains
            return _not_screened(game, policy, given)


def _not_screened(game: Game, policy: JointPolicy, multipliers: FloatArray) -> Certificate:
    """Judge by the kernel where the CMDPs of the game gave no numbers; where it cannot, nothing is proved."""
    if tables_of(game) is not None and not is_exact(game):
        claim = claim_of(game, policy.floats(), multipliers)
        return as_certificate(game, multipliers, judge(claim), judged_by=KERNEL)
    agents, constraints = multipliers.shape
    everything = np.full(agents, np.inf)
    unknown = np.full(constraints, np.nan)
    feasibility, excess = decided(np.asarray(game.thresholds), unknown, unknown, [None] * constraints, lambda: None)
    nothing = Findings(feasibility, everything, everything * np.nan, everything, unknown, everything, excess)
    return as_certificate(game, multipliers, nothing, judged_by=CMDPS)


def _screened(game: Game, position: Position, policy: JointPolicy, judging: FloatArray, hard: BoolArray) -> Certificate:
    """Judge every agent, and the thresholds."""
    judged_at_once = None if hard.all() else agent_bounds(position, judging)
    if judged_at_once is not None:
        values, bounds, allowance = judged_at_once.values, judged_at_once.bounds.copy(), judged_at_once.rounding.copy()
        for agent in np.flatnonzero(hard.any(axis=1)).tolist():
            _, bounds[agent], allowance[agent] = judge_agent(position, agent, judging[agent], hard[agent])
    else:
        agents = range(game.num_agents)
        judged_agents = [judge_agent(position, agent, judging[agent], hard[agent]) for agent in agents]
        values, bounds, allowance = (np.array(column) for column in zip(*judged_agents, strict=True))
    hidden = position.underflow()
    if hidden is not None:
        allowance = allowance + 4 * (hidden.rewards + judging @ hidden.costs)
    # Prices of 1e-320 are none of the sizes that rounding is a share of.
    allowance = allowance + HIDDEN_BY_UNDERFLOW * judging.any(axis=1)
    gains = np.maximum(bounds - values, 0.0) + allowance
    feasibility, excess = _judge_feasibility(game, position, policy, hard, hidden)
    verdict = Findings(
        feasibility=feasibility,
        gains=np.where(np.isnan(gains), np.inf, gains),
        values=np.asarray(values, dtype=np.float64),
        bounds=np.asarray(bounds, dtype=np.float64),
        costs=np.asarray(position.costs, dtype=np.float64),
        rounding=allowance,
        excess=excess,
    )
    judged_by = CMDPS if judged_at_once is None else COMPILED
    return as_certificate(game, np.where(hard, np.inf, judging), verdict, judged_by=judged_by)


def judge_agent(
    position: Position, agent: int, multipliers: FloatArray, hard: BoolArray | None = None
) -> tuple[Any, Any, float]:
    """Return what one agent gets, what it could get at most, and how much rounding could hide in the difference.

    Parameters
    ----------
    position
        The current position.
    agent
        Who may leave.
    multipliers : [k]
        λ ≥ 0; of hard constraints they play no part.
    hard : [k]
        Constraints of which nothing is left: proofs by support.
    """
    cmdp = position.induced_cmdp(agent)
    now = evaluate(cmdp, position.policy[agent])
    if hard is not None and hard.any():
        within = restriction(position, agent, hard)
        if within is None:
            return now.value, np.inf, 0.0
        soft = multipliers[~hard]
        withheld = soft @ (now.costs + position.slacks - cmdp.thresholds)[~hard] if len(soft) else 0
        allowance = gain_rounding(cmdp, np.where(hard, 0, multipliers))
        allowance += float(2 * np.asarray(soft, dtype=np.float64) @ position.cost_rounding[~hard])
        return now.value, dual_bound(within.cmdp, soft) + withheld, allowance
    # A game may hand its agents a little less than is left, for rounding; a deviation may spend all that is left.
    withheld = multipliers @ (now.costs + position.slacks - cmdp.thresholds) if cmdp.num_constraints else 0
    allowance = gain_rounding(cmdp, multipliers)
    allowance += float(2 * np.asarray(multipliers, dtype=np.float64) @ position.cost_rounding)
    return now.value, dual_bound(cmdp, multipliers) + withheld, allowance


def restriction(position: Position, agent: int, hard: BoolArray) -> Restricted | None:
    """Return one agent's CMDP with actions forbidden in place of hard constraints [k]; None if those are not hard."""
    found = [forbidden(position, agent, j) for j in np.flatnonzero(hard).tolist()]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    return restricted(position.induced_cmdp(agent), known, hard)


def certificate_seconds(position: Position, num_agents: int) -> float:
    """Return about how long the certificate at the end will take: a few agents are judged as all will be, and timed."""
    together = bounded_together(position, 0)
    multipliers = np.zeros((len(together), len(position.costs)))
    if agent_bounds(position, multipliers, together) is None:
        began = time.monotonic()
        judge_agent(position, 0, multipliers[0])
        return 1.5 * num_agents * (time.monotonic() - began)
    began = time.monotonic()  # what the first call has prepared is there at the end as well
    agent_bounds(position, multipliers, together)
    return 1.5 * num_agents / len(together) * (time.monotonic() - began)


def gain_rounding(cmdp: CMDP, multipliers: FloatArray) -> float:
    """Return how much rounding could hide in `dual_bound` minus `evaluate`, as a rigorous bound."""
    multipliers = np.asarray(multipliers, dtype=np.float64)
    sizes = cmdp.rounding_sizes
    return 2 * cmdp.rounding * float(sizes[0] + multipliers @ (sizes[1:] + np.abs(cmdp.thresholds)))


def check_multipliers(game: Game, multipliers: Any) -> FloatArray:
    """Return multipliers as an array [n, k] of non-negative numbers or infinities; zeros where none are given."""
    shape = (game.num_agents, len(game.thresholds))
    if multipliers is None:
        return np.zeros(shape)
    raw = np.array(multipliers)
    hard = np.asarray(raw == np.inf)
    given = numbers("multipliers", np.where(hard, 0, raw) if hard.any() else multipliers, error=PolicyError)
    if given.size == 0 and 0 in shape:
        return np.zeros(shape)
    check_shape("multipliers", given.shape, shape, error=PolicyError)
    if (given < 0).any():
        raise PolicyError("multipliers has a negative entry; a multiplier is at least zero.")
    if (free := ((given != 0) | hard) & ~binds_of(game)).any():
        i, j = (int(index[0]) for index in np.nonzero(free))
        raise PolicyError(f"multipliers[{i}, {j}] is not zero; constraint {j} does not bind agent {i}.")
    return frozen(np.where(hard, np.inf, given)) if hard.any() else given


def _judge_feasibility(
    game: Game, position: Position, policy: JointPolicy, hard: BoolArray, hidden: Underflow | None
) -> tuple[Feasibility, FloatArray]:
    """Say whether the policy, as it was given, meets every threshold, and by how much it may exceed each."""
    margins = position.cost_rounding if hidden is None else position.cost_rounding + hidden.costs
    # What the support of the policy decides has no rounding in it.
    kept = [_kept_exactly(position, j, np.flatnonzero(hard[:, j]).tolist()) for j in range(len(margins))]
    costs = position.costs
    lower = np.where(margins == 0, costs, np.nextafter(costs - margins, -np.inf))
    upper = np.where(margins == 0, costs, np.nextafter(costs + margins, np.inf))

    def known_costs() -> list[Fraction] | None:
        known = tables_of(game) is not None
        return affordable_costs(claim_of(game, policy, np.zeros(hard.shape))) if known else None

    return decided(np.asarray(game.thresholds), lower, upper, kept, known_costs)


def _kept_exactly(position: Position, constraint: int, agents: Sequence[int]) -> bool | None:
    """Whether a hard budget is kept, from what is possible alone; None if no agent's proof is by support."""
    for agent in agents:
        found = forbidden(position, agent, constraint)
        if found is not None:
            return not found.taken_by(position.policy[agent], position.induced_cmdp(agent).initial)
    return None


def proved_text(certificate: Certificate) -> str:
    """Say in a sentence what a certificate of a Nash policy proves."""
    kind = f"{certificate.information}{', exact arithmetic' if certificate.arithmetic == 'exact' else ''}"
    kind += rescaling_text(certificate)
    return f"feasible, and no agent gains more than {at_most(certificate.epsilon)} by deviating ({kind})."


def rounded_text(certificate: Certificate) -> str:
    """Say in a sentence what is proved of a policy that meets a threshold up to rounding, and what is not."""
    proved = f"no agent gains more than {at_most(certificate.epsilon)} by deviating ({certificate.information})"
    return f"{proved}, but thresholds are met up to rounding alone: {excess_text(certificate)}."


def feasibility_text(certificate: Certificate) -> str:
    """Say in a sentence whether the thresholds are met."""
    more = "" if certificate.feasible else f": {excess_text(certificate)}"
    return f"The policy {certificate.feasibility.value}{more}"


def excess_text(certificate: Certificate) -> str:
    """Say what the constraint costs that is exceeded most, or may be."""
    worst = int(np.argmax(certificate.excess))
    name, limit = certificate.names.constraint(worst), certificate.thresholds[worst]
    excess = certificate.excess[worst]
    if certificate.feasibility is Feasibility.VIOLATED and certificate.tail is None:
        return f"{name} costs {certificate.costs[worst]:.9g}, {excess:.3g} more than {limit:.9g}"
    return f"{name} may cost up to {at_most(excess)} more than {limit:.9g}"


def rescaling_text(certificate: Certificate) -> str:
    """Say how many rows were not read as they stand."""
    rows = certificate.rescaled
    return f"; {counted(rows, 'row')} of probabilities divided by their sums" if rows else ""
