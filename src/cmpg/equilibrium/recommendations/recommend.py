"""`recommend`: from a game to a certified device.

A rota closes the duality gap where a planner can maximise the potential, and by best responses it is at least as good
as the Nash policy that it begins with. A correlated policy is the planner's plan: docs/recommendations.md has the
theorems. Nothing here is believed: `certify` judges what is returned.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cmpg.arrays import FloatArray, check_positive
from cmpg.cmdp.exact import Exact
from cmpg.deadline import limited
from cmpg.equilibrium.certificate import Certificate, certify, excess_text
from cmpg.equilibrium.recommendations.rota import planned_rota, responding_rota, without_rare_modes
from cmpg.equilibrium.result import Result, Status
from cmpg.equilibrium.solve import solve
from cmpg.errors import CMPGError, GameError, InfeasibleError, OutOfTimeError, SolverError, explains_keywords
from cmpg.games.devices import Concept, CorrelatedPolicy, Device, Rota, shared_game
from cmpg.games.game import (
    Game,
    Objective,
    PotentialKind,
    binds_of,
    check_is_game,
    only_binding,
    planner,
)
from cmpg.games.joint.game import JointGame
from cmpg.games.joint.planner import joint_planner
from cmpg.games.local.game import LocalGame
from cmpg.summaries import Summary, at_most, headline_line, html, text

if TYPE_CHECKING:
    from cmpg.equilibrium.quality import OptimalityGap

STAGE_POTENTIALS = (
    PotentialKind.ONE_AGENT,
    PotentialKind.COMMON_REWARD,
    PotentialKind.EXOGENOUS_STATE,
    PotentialKind.UNINFLUENCED_DIFFERENCES,
)
"""C1, C2 and C4: the potential is the value of a stage reward, for correlated policies, too."""

MAX_MOVES_INSIDE = 3
"""How many times a rota is sought again with thresholds that are lower by what rounding can hide."""

_NOUNS = {Concept.ROTA: "rota", Concept.CORRELATED: "correlated policy", Concept.COARSE: "coarse correlated policy"}


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The ending of `recommend`: a device, the multipliers that prove the claim, and the certificate.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> found = recommend(counter_example())
    >>> found.certified, found.values.round(6), found.costs.round(6)
    (True, array([3.5, 3.5]), array([0.5]))
    """

    status: Status
    message: str
    concept: Concept
    epsilon: float
    game: Game
    device: Device | None = None
    multipliers: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))  # [n, k]
    certificate: Certificate | None = None
    nash: Result | None = None  # the Nash policy that a search by best responses began with
    found_by: str = ""

    @property
    def certified(self) -> bool:
        """Whether the device is proved to be an ε-equilibrium of its concept."""
        return self.status is Status.CERTIFIED

    @property
    def values(self) -> FloatArray:
        """What each agent gets on average: [n]; empty where there is no device."""
        return np.zeros(0) if self.certificate is None else self.certificate.values

    @property
    def costs(self) -> FloatArray:
        """What each constraint spends on average: [k]; empty where there is no device."""
        return np.zeros(0) if self.certificate is None else self.certificate.costs

    def quality(self, objective: Objective = Objective.WELFARE, *, time_limit: float = np.inf) -> OptimalityGap:
        """Compare the device with what no feasible policy or device exceeds, by welfare or by potential."""
        from cmpg.equilibrium.recommendations.quality import device_quality  # it computes bounds

        return device_quality(self, objective, time_limit=time_limit)

    def summary(self) -> Summary:
        """Return what `print` shows; it formats what is here."""
        from cmpg.report.recommendations import recommendation_summary  # a room below: tables are made on demand

        return recommendation_summary(self)

    def __repr__(self) -> str:
        """Return one line."""
        return headline_line(type(self).__name__, Summary(self.status.name, self.message))

    __str__, _repr_html_ = text, html

    def save(self, folder: str | Path) -> None:
        """Write a folder, new or empty: game, device with its multipliers, certificate; see `load_recommendation`."""
        from cmpg.files.devices import save_recommendation  # a room below: files are written on demand

        save_recommendation(folder, self)

    def report(self, path: str | Path) -> None:
        """Write one HTML page: what is proved, and what each agent is recommended, how often."""
        from cmpg.report.recommendations import write_recommendation_page  # a room below

        write_recommendation_page(self, Path(path))


@explains_keywords()
def recommend(
    game: Game,
    concept: Concept = Concept.ROTA,
    *,
    epsilon: float = 1e-6,
    time_limit: float = np.inf,
    rng: np.random.Generator | int | None = None,
) -> Recommendation:
    """Find a device that no agent gains by disobeying, and prove it.

    Parameters
    ----------
    game
        Any game that is known to have a potential; with `Concept.CORRELATED` or `Concept.COARSE`, a joint game.
    concept
        `Concept.ROTA`: one of a few policies is drawn and announced each day. `Concept.CORRELATED`: a joint action is
        drawn at each step, and each agent sees its own part. `Concept.COARSE`: the same device, and a weaker promise.
    epsilon
        No agent shall gain more than this.
    time_limit
        Seconds for everything.
    rng
        For the Nash policy that a search by best responses begins with: a generator, or the seed of one.

    Raises
    ------
    GameError
        The theorem behind the concept does not apply to this game; the message says why.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> print(recommend(counter_example(), Concept.CORRELATED).certificate.concept.word)
    correlated
    """
    check_is_game(game)
    if not isinstance(concept, Concept):
        raise GameError(f"concept is {concept!r}; one of {', '.join(map(str, Concept))} is required.")
    check_positive("epsilon", epsilon)
    deadline = time.monotonic() + time_limit
    if concept is Concept.NASH:
        raise CMPGError("a Nash policy needs no device: use cmpg.solve.")
    check_applies(game, concept)
    try:
        with limited(deadline):
            if concept is not Concept.ROTA:
                return _planned_policy(game, concept, epsilon)
            return _rota(game, epsilon, deadline, rng)
    except InfeasibleError as problem:
        return Recommendation(Status.INFEASIBLE, str(problem), concept, epsilon, game)
    except (SolverError, OutOfTimeError) as problem:
        return Recommendation(Status.FEASIBILITY_UNKNOWN, str(problem) or "out of time.", concept, epsilon, game)


def _rota(game: Game, epsilon: float, deadline: float, rng: np.random.Generator | int | None) -> Recommendation:
    """Find a rota; where it meets a threshold only up to rounding, again inside the thresholds."""
    played, nash = game, None
    if planner(played, Objective.POTENTIAL) is None:
        nash = solve(played, epsilon=epsilon, time_limit=(deadline - time.monotonic()) / 2, rng=rng)
        if nash.incumbent is None:
            return Recommendation(nash.status, nash.message, Concept.ROTA, epsilon, game, nash=nash)
    best = _judged_rota(game, played, epsilon, nash, deadline)
    for _ in range(MAX_MOVES_INSIDE):
        if best.status is not Status.TO_ROUNDING or best.certificate is None:
            break
        try:
            lower = np.nextafter(played.thresholds - 4 * best.certificate.excess, -np.inf)
            inside = _judged_rota(game, played.with_thresholds(lower), epsilon, nash, deadline)
        except CMPGError:  # there is no room
            break
        if inside.certified:
            return inside
        played = played.with_thresholds(lower)
    if nash is None or not nash.certified or best.certified:
        return best
    # Where nothing is left of a budget no finite price proves anything; the Nash policy alone is a rota of one mode.
    alone, found_by = Rota([nash.policy], [1.0]), "the Nash policy alone"
    single = _judged(game, Concept.ROTA, alone, nash.multipliers, epsilon, nash=nash, found_by=found_by)
    return single if single.certified else best


def _judged_rota(game: Game, played: Game, epsilon: float, nash: Result | None, deadline: float) -> Recommendation:
    """Find a rota of a game, perhaps with thresholds that are a hair lower, and have it judged as it is."""
    if nash is None:
        central = planner(played, Objective.POTENTIAL)
        assert central is not None
        found, found_by = planned_rota(central), "the planner's plans at a common price"
    else:
        found = responding_rota(played, nash.policy.floats(), deadline=deadline)
        found_by = "best responses at a common price"
    multipliers = common_multipliers(played, found.multipliers)
    fewer = without_rare_modes(found.rota)
    if fewer is not found.rota:
        simpler = _judged(game, Concept.ROTA, fewer, multipliers, epsilon, nash=nash, found_by=found_by)
        if simpler.certified:
            return simpler
    return _judged(game, Concept.ROTA, found.rota, multipliers, epsilon, nash=nash, found_by=found_by)


def common_multipliers(game: Game, multipliers: FloatArray) -> FloatArray:
    """Return multipliers [n, k] by which every agent pays the same for what binds it."""
    return only_binding(game, np.broadcast_to(multipliers, (game.num_agents, len(multipliers))))


def check_applies(game: Game, concept: Concept) -> None:
    """Raise a GameError unless a theorem says that devices of this concept exist and can be found; say why not."""
    if concept is not Concept.ROTA:
        shared_game(game)
    proof = game.potential_proof()
    if proof is None:
        raise GameError(
            f"a {_NOUNS[concept]} is found by maximising a potential, and this game is not known to have one; "
            "cmpg.check_potential says what is known. Any device can be judged by cmpg.certify."
        )
    if concept is not Concept.ROTA and game.discount is not None and proof.kind not in STAGE_POTENTIALS:
        raise GameError(
            "in a discounted game private recommendations need a common reward, or rewards that differ by what no "
            "joint policy changes (C1, C2, C4): a potential of product policies says nothing of an agent that has "
            "heard what the others are recommended. Use a rota."
        )
    binds = np.asarray(binds_of(game))
    for j in np.flatnonzero(~binds.all(axis=0)).tolist():
        movers = [i for i in np.flatnonzero(~binds[:, j]).tolist() if _may_move(game, i, j)]
        if movers:
            names = game.names
            raise GameError(
                f"constraint {names.constraint(j)} does not bind {names.agent(movers[0])}, who can change its cost: "
                f"the plan of a {_NOUNS[concept]} would make that agent pay for it, and no claim can. Let it bind all "
                "agents, or use cmpg.solve."
            )


def _may_move(game: Game, agent: int, constraint: int) -> bool:
    """Whether the structure leaves it open that an agent's policy changes the cost of a constraint."""
    if isinstance(game, LocalGame):
        tables = game.claim_tables()
        private = tables.agents[agent].costs
        return bool(np.ptp(tables.load_costs[constraint], axis=-1).any()) or (
            private is not None and bool(np.ptp(private[constraint], axis=(1, 2)).any())
        )
    if isinstance(game, JointGame) and not game.is_sparse:
        axis = 2 + agent
        moves = (np.ptp(game.transition, axis=axis).any() and game.num_steps > 1) or game.discount is not None
        return bool(moves) or bool(np.ptp(game.costs[constraint], axis=axis).any())
    return True


def _planned_policy(game: Game, concept: Concept, epsilon: float) -> Recommendation:
    """Return the planner's plan for the potential, as a device."""
    joint = shared_game(game)
    planned = Exact()(joint_planner(joint))
    table = planned.policy.reshape(*planned.policy.shape[:2], *joint.num_actions)
    multipliers = common_multipliers(joint, planned.multipliers)
    found_by = "the planner's plan for the potential"
    return _judged(game, concept, CorrelatedPolicy(table), multipliers, epsilon, found_by=found_by)


def _judged(
    game: Game,
    concept: Concept,
    device: Device,
    multipliers: FloatArray,
    epsilon: float,
    *,
    nash: Result | None = None,
    found_by: str,
) -> Recommendation:
    certificate = certify(game, device, multipliers, concept=concept)
    status, message = judged_status(certificate, epsilon)
    return Recommendation(
        status, message, concept, epsilon, game, device, certificate.multipliers, certificate, nash, found_by
    )


def judged_status(certificate: Certificate, epsilon: float) -> tuple[Status, str]:
    """Return how a search ended whose device has this certificate, and what that means."""
    gains = f"no agent gains more than {at_most(certificate.epsilon)}"
    if certificate.proves(epsilon):
        over = " on average over days" if certificate.concept is Concept.ROTA else ""
        return Status.CERTIFIED, f"feasible{over}, and {gains} by disobeying ({certificate.information})."
    if certificate.epsilon <= epsilon:
        return Status.TO_ROUNDING, f"{gains} by disobeying, but {excess_text(certificate)}."
    return Status.LIMIT, f"{gains} by disobeying, which is more than epsilon = {epsilon:g}."


def device_of(recommendation: Recommendation) -> Device:
    """Return the device, or raise where there is none."""
    if recommendation.device is None:
        raise InfeasibleError(
            f"there is no device, because it ended {recommendation.status.name}: {recommendation.message}"
        )
    return recommendation.device
