"""`cmpg check` and `cmpg certify`: what can be said about a game, and about a claim, without solving it.

Exit codes: 0 if nothing speaks against the game or the claim, 1 if something does, 2 for bad input.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

import cmpg
from cmpg import equilibrium, files, games, report
from cmpg.cli.crowds import certify_crowd_target, refuse_for_crowds
from cmpg.cli.options import DEFAULT_EPSILON, AllowRounding, Epsilon, Exact, Json, Seed, changed, option
from cmpg.cli.output import ProgressLine, remark, rescaling_message, show, show_json
from cmpg.cli.risk import RiskBudgets, with_budgets
from cmpg.cli.targets import GameArgument, finite, is_proof_file, policy_of
from cmpg.errors import CMPGError, FileError, TooLargeError, UnsupportedError
from cmpg.summaries import Summary

if TYPE_CHECKING:
    from cmpg.equilibrium.certificate import Certificate
    from cmpg.games.game import Game
    from cmpg.games.potential.near import NearPotential


def check(target: GameArgument, seed: Seed = None, as_json: Json = False) -> None:
    """Look at a game: sizes, feasibility, potential.

    Exit code 0 if it is feasible and nothing refutes a potential, 1 otherwise.
    """
    import numpy as np

    from cmpg.equilibrium.discounted import discounted_start

    with ProgressLine("building the game") as progress:
        game: Any = target.build(seed=seed)
        progress.begin("looking for a feasible policy")
        long = isinstance(game, cmpg.DiscountedLocalGame)
        found = discounted_start(game, game.steps_for(DEFAULT_EPSILON)) if long else cmpg.feasible_start(game)
        progress.begin("checking the potential")
        potential = cmpg.check_potential(game.truncated(1) if long else game, rng=np.random.default_rng(seed or 0))
        progress.begin("measuring the distance from potentials")
        near = _near(game, seed or 0) if potential.verdict is games.Verdict.REFUTED else None
    if as_json:
        show_json({**files.records.check_record(game, found, potential), **_near_record(near)})
    else:
        show(*report.display.check_summaries(game, found, potential))
        if near is not None:
            show(near if isinstance(near, str) else near.summary())
    raise typer.Exit(0 if found.policy is not None and potential.verdict is not games.Verdict.REFUTED else 1)


def _near(game: Game, seed: int) -> NearPotential | str:
    """Return how far a game is from having a potential, or why that is not known."""
    import numpy as np

    try:
        return games.near_potential(game, rng=np.random.default_rng(seed))
    except (TooLargeError, UnsupportedError) as problem:
        return f"how near it is to a potential is not known: {problem}"


def _near_record(near: NearPotential | str | None) -> dict[str, Any]:
    """Return the distance from potentials in words that JSON knows; nothing where it was not measured."""
    if near is None:
        return {}
    if isinstance(near, str):
        return {"near_potential": None, "near_potential_message": near}

    names = ("lower", "upper", "reward_range", "candidate", "least_epsilon")
    return {"near_potential": files.containers.plain_fields({name: getattr(near, name) for name in names})}


def certify(
    *,
    target: GameArgument,
    policy: Annotated[
        Path | None,
        typer.Argument(
            metavar="[POLICY]",
            help="A policy or device file, with the multipliers that prove the claim; none after a proof file.",
        ),
    ] = None,
    epsilon: Epsilon = DEFAULT_EPSILON,
    allow_rounding: AllowRounding = 0.0,
    exact: Exact = False,
    verified: Annotated[
        bool, option("Have cmpg-verify check the claim, a program that is proved correct.", "--verified")
    ] = False,
    model_error: Annotated[
        float, option("Prove it for every model whose transition probabilities are off by this.")
    ] = 0.0,
    seed: Seed = None,
    as_json: Json = False,
    budgets: RiskBudgets,
) -> None:
    """Check the claim that a policy is feasible and Nash.

    Backward induction alone decides, whatever found the policy. Exit code 0 if the claim is proved, 1 otherwise.
    """
    from cmpg.arrays import counted_rescaling
    from cmpg.equilibrium.certificate import check_multipliers
    from cmpg.equilibrium.verified import verify

    if is_proof_file(target.name):
        _certify_file(target.name, policy, as_json=as_json)
    if policy is None:
        raise CMPGError(
            "name a policy or device file after the game; a proof file (.proof) has both. See cmpg certify --help."
        )
    for name, number in (("epsilon", epsilon), ("allow-rounding", allow_rounding), ("model-error", model_error)):
        finite(name, number)
    if model_error and verified:
        raise CMPGError("--model-error is judged in floats: leave --verified out.")
    found = certificate = None
    with ProgressLine("building the game") as progress, counted_rescaling() as rescaling:
        built: Any = target.build(seed=seed, exact=exact and not budgets.words)
        if isinstance(built, cmpg.CrowdGame):
            given = {"--exact": exact, "--verified": verified, "--model-error": model_error != 0}
            refuse_for_crowds([*(name for name, is_given in given.items() if is_given), *changed(budgets)])
            progress.stop()
            certify_crowd_target(built, policy, epsilon=epsilon, allow_rounding=allow_rounding, as_json=as_json)
        game = with_budgets(built, budgets)
        progress.begin("checking the claim")
        if isinstance(game, games.CVaRGame):
            if verified or model_error:
                raise CMPGError("--cvar is judged in floats or with --exact: leave --verified and --model-error out.")
            names = files.records.names_record(built) | {"constraint_names": list(game.constraint_names)}
            certificate = cmpg.certify(game, policy_of(policy, game.base, exact=exact)[0], exact=exact)
        elif files.containers.file_kind(policy) == files.devices.KIND:
            if verified:
                raise CMPGError("cmpg-verify reads claims about policies, and this is a device: leave --verified out.")
            names = files.records.names_record(game)
            device, prices, concept = files.devices.load_device(policy, exact=exact)
            device.check_fits(game)
            certificate = cmpg.certify(game, device, prices, concept=concept, exact=exact, model_error=model_error)
        else:
            names = files.records.names_record(game)
            tables, multipliers = policy_of(policy, game, exact=exact)
            if rescaling.rows:
                remark(rescaling_message(rescaling.rows))
            if multipliers is None and len(game.thresholds):
                remark("the policy file has no multipliers: best responses are computed to propose some")
                multipliers = equilibrium.proposed_multipliers(game, tables)
            if verified:
                progress.begin("cmpg-verify checks the claim")
                found = verify(game, tables, check_multipliers(game, multipliers), epsilon)
            else:
                certificate = cmpg.certify(game, tables, multipliers, exact=exact, model_error=model_error)
    if certificate is not None:
        _conclude(certificate, names, epsilon, allow_rounding=allow_rounding, as_json=as_json)
    assert found is not None
    if as_json:
        arithmetic = "exact, verified" if found.proved else "exact"
        show_json({**vars(found), "claimed_epsilon": epsilon, "arithmetic": arithmetic})
    else:
        show(report.certificates.verification_summary(found))
    raise typer.Exit(0 if found.proved else 1)


def _certify_file(path: str, policy: Path | None, *, as_json: bool) -> NoReturn:
    """Check a proof file in rationals, say what it proves, and exit."""
    from cmpg.proof.claim import ClaimError
    from cmpg.proof.exact import TooLarge
    from cmpg.proof.format import check_file, read

    if policy is not None:
        raise CMPGError(f"{path} is a proof file, which has the policy in it: leave {policy} out.")
    try:
        with ProgressLine("checking the proof file"):
            found = check_file(read(path))
    except OSError as problem:
        raise FileError(f"{path} cannot be read: {problem.strerror}.") from None
    except ClaimError as problem:
        raise FileError(f"{path}: {problem}") from None
    except TooLarge:
        raise CMPGError(f"{path} is too large for rationals in Python; cmpg-verify reads large Nash claims.") from None
    if as_json:
        show_json({"format": "cmpg-proof", "proved": found.proved, "message": found.sentence, "arithmetic": "exact"})
    else:
        show(Summary("PROVED" if found.proved else "NOT PROVED", f"{found.sentence}.", good=found.proved))
    raise typer.Exit(0 if found.proved else 1)


def _conclude(
    certificate: Certificate, names: Mapping[str, Any], epsilon: float, *, allow_rounding: float, as_json: bool
) -> NoReturn:
    """Say whether a claim holds, and exit."""
    proved = certificate.proves(epsilon)
    accepted = certificate.proves(epsilon, allow_rounding=allow_rounding)
    if as_json:
        claim = {"claimed_epsilon": epsilon, "proved": proved, "allow_rounding": allow_rounding, "accepted": accepted}
        show_json({**files.records.certificate_record(certificate), **names, **claim})
    else:
        show(report.certificates.claim_summary(certificate, epsilon, allow_rounding=allow_rounding))
    raise typer.Exit(0 if accepted else 1)
