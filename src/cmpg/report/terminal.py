"""What the command says of a game, a claim, and a run without the constraints."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.certificate import MOST_PRICES, Certificate, Feasibility
from cmpg.equilibrium.result import Result
from cmpg.faces import Face
from cmpg.games.contract import Game

if TYPE_CHECKING:
    from cmpg.equilibrium.start import Start
    from cmpg.games.potential.check import PotentialCheck


def check_faces(game: Game, start: Start, potential: PotentialCheck) -> tuple[Face, Face, Face]:
    """Say how large a game is, whether it is feasible, and whether it has a potential."""
    from cmpg.games.faces import size_of  # a solve shows no game

    ranges = f"values range over at most {game.reward_ranges.max():.6g}"
    return Face("well formed", f"{size_of(game)}; {ranges}", good=True), _feasibility(start), _potential(potential)


def _feasibility(start: Start) -> Face:
    if start.policy is not None:
        slack = "" if np.isinf(start.slack) else f"; slack {start.slack:.6g}"
        return Face("feasible", f"{start.found_by}{slack}", good=True)
    if start.proof is None:
        told = f"{start.found_by}; least violation seen {-start.slack:.6g}"
        return Face("feasibility unknown", told, good=False)
    return Face("infeasible", start.proof.told.removeprefix("proof: "), good=False)


def _potential(check: PotentialCheck) -> Face:
    face = check.face()
    odds = check.error_probability
    wrong = "" if odds is None else f" (wrong with probability at most {odds:.1e})"
    told = f"{check.reason}{check.told_residual}".rstrip(".") if check.witness is None else "no Markov potential game"
    parts = () if check.witness is None else check.witness.told(check.names)
    return replace(face, word=f"potential {face.word}", sentence=f"{told}{wrong}", parts=parts)


def claim_face(certificate: Certificate, epsilon: float, *, allow_rounding: float = 0.0) -> Face:
    """Say whether a claim holds."""
    face, accepted = certificate.face(), certificate.proves(epsilon, allow_rounding=allow_rounding)
    word = "PROVED" if certificate.proves(epsilon) else "ACCEPTED" if accepted else "NOT PROVED"
    rest = ""
    if certificate.epsilon > epsilon and certificate.feasibility is not Feasibility.VIOLATED:
        rest = f" That is more than epsilon = {epsilon:g}; better multipliers may prove less."
    elif certificate.feasibility is Feasibility.TO_ROUNDING and not accepted:
        rest = f" Accept it with --allow-rounding {float(certificate.excess.max()):.2g}."
    return replace(face, word=word, sentence=f"{face.sentence}{rest}", good=accepted)


def selfish_line(selfish: Result, result: Result, thresholds: FloatArray) -> str:
    """Say what the agents would do without the constraints, beside what they do with them."""
    ending = "" if selfish.certified else f" ({selfish.status.name})"
    if selfish.incumbent is None:
        return f"without the constraints{ending}: {selfish.message}"
    pairs = [f"{cost:.4g} of {float(limit):.4g}" for cost, limit in zip(selfish.costs, thresholds, strict=True)]
    costs = ", ".join(pairs[:MOST_PRICES]) + (", …" if len(pairs) > MOST_PRICES else "")
    noun = "value" if len(selfish.values) == 1 else "total value"
    beside = "" if result.incumbent is None else f" (with them {result.values.sum():.6g})"
    told = f"{'cost' if len(pairs) == 1 else 'costs'} {costs}, {noun} {selfish.values.sum():.6g}{beside}"
    return f"without the constraints{ending}: {told}"
