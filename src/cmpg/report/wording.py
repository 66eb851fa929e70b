"""The words of the page: how a run ended in a sentence, and numbers as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cmpg.arrays import FloatArray
from cmpg.equilibrium.certificate import Certificate, Feasibility
from cmpg.equilibrium.result import Result, Status, Step
from cmpg.faces import counted, typeset


def readable(number: float, digits: int = 6) -> str:
    r"""Write a number for people, to so many significant digits.

    Examples
    --------
    >>> readable(-23.1), readable(0.0), readable(1 / 3, 3), readable(6.76e-11, 2)
    ('−23.1', '0', '0.333', '6.8\xa0×\xa010⁻¹¹')
    """
    small = f"{number:.{digits}g}"
    return typeset(f"{number:.0f}" if "e+" in small and abs(number) < 1e6 else small)


@dataclass(frozen=True)
class Headline:
    """How a run ended, in words."""

    status: str
    tone: str  # "good", "warn"
    word: str
    sentence: str
    detail: str


def headline_of(result: Result) -> Headline:
    """Say how a run ended: what is proved first, then what that rests on."""
    word, sentence = _claim(result)
    if result.certified:
        proof = result.certificate
        rounding = "" if proof.arithmetic == "exact" else " with its rounding bounded"
        detail = (
            f"The claim is against deviations to other {proof.information}, in {proof.arithmetic} "
            f"arithmetic{rounding}. It was proved again when this page was written."
        )
    else:
        detail = f"{result.status.value[:1].upper()}{result.status.value[1:]}."
    return Headline(result.status.name, "good" if result.certified else "warn", word, sentence, detail)


def _claim(result: Result) -> tuple[str, str]:
    if result.incumbent is None:
        if result.proof is not None:
            return "Proved impossible", "no joint policy meets the thresholds."
        return "Undecided", "no policy that meets the thresholds was found, and none was ruled out."
    gain = readable(result.certificate.epsilon, 2)
    kept = _thresholds_met(result.certificate)
    if result.certified:
        return "Proved", f"{kept}no agent gains more than {gain} by leaving."
    rest = f"an agent may still gain up to {gain} by leaving, where {readable(result.epsilon, 2)} was asked for."
    if result.status is Status.NOT_POTENTIAL:
        return ("Not a potential game" if result.witness is not None else "Perhaps not a potential game"), kept + rest
    return ("Interrupted" if result.status is Status.INTERRUPTED else "Not proved"), kept + rest


def _thresholds_met(certificate: Certificate) -> str:
    if len(certificate.thresholds) == 0:
        return ""
    return {
        Feasibility.PROVEN: "these policies meet every threshold, and ",
        Feasibility.TO_ROUNDING: "these policies meet every threshold up to rounding, and ",
        Feasibility.VIOLATED: "these policies exceed a threshold, and ",
    }[certificate.feasibility]


def course_words(result: Result, rounds: Sequence[Step], ascent: Sequence[Step]) -> str:
    """Say how many moves there were, and what the theory allows."""
    seconds = f"{max(result.trace[-1].seconds, 0.01):.2g} s"
    allowed = f"Theorem 1 allows at most {counted(result.max_iterations, 'move')} in a potential game."
    searched = ""
    if rounds:
        made = f"{counted(result.search_moves, 'move')} in {counted(len(rounds), 'round')}"
        searched = f"First a price of the budget was sought on which all agents agree: {made}. "
    if result.moves == 0:
        why = ", since the start was an equilibrium already" if result.certified else ""
        told = f"{'Then nobody' if rounds else 'Nobody'} moved{why}."
    else:
        told = f"{counted(result.moves, 'move')} in {counted(len(ascent), 'iteration')}."
        told = f"Then {told}" if rounds else told
    return f"{searched}{told} {allowed} The run took {seconds}. All of this is as the run recorded it."


def price_words(prices: FloatArray, agents: Sequence[str]) -> str:
    """Say what one more unit is worth, and to whom."""
    if len(agents) <= 3:
        return ", ".join(f"{name}: {readable(price, 5)}" for name, price in zip(agents, prices, strict=True))
    if not prices.any():
        return "0 for everybody"
    most, free = int(prices.argmax()), int((prices == 0).sum())
    rest = f"; 0 for {free} of {len(agents)} agents" if free else f"; at least {readable(float(prices.min()), 5)}"
    return f"up to {readable(float(prices[most]), 5)} ({agents[most]}){rest}"
