"""The words of the page: a run's verdict in a sentence, and numbers as people read them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cmpg.equilibrium.certificate import Certificate, Feasibility
from cmpg.equilibrium.result import Status
from cmpg.files.run_folder import Run

TIMES = "\u00a0×\u00a0"
"""A number is never broken at the end of a line."""

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def readable(number: float, digits: int = 6) -> str:
    """Write a number for people, to so many significant digits.

    Examples
    --------
    >>> readable(-23.1), readable(0.0), readable(1 / 3, 3)
    ('−23.1', '0', '0.333')
    >>> readable(6.76e-11, 2) == f"6.8{TIMES}10⁻¹¹"
    True
    """
    size = abs(number)
    if size and (size < 1e-4 or size >= 10 ** max(digits, 6)):
        mantissa, _, exponent = f"{size:.{digits - 1}e}".partition("e")
        if "." in mantissa:
            mantissa = mantissa.rstrip("0").rstrip(".")
        text = f"{mantissa}{TIMES}10{str(int(exponent)).translate(SUPERSCRIPTS)}"
    else:
        text = f"{size:.{digits}g}" if "e" not in f"{size:.{digits}g}" else f"{size:.0f}"
    return f"−{text}" if number < 0 else text


@dataclass(frozen=True)
class Number:
    """A number as it is shown, and as it is."""

    text: str
    exact: str
    words: str = ""


def number(value: float, digits: int = 6) -> Number:
    """Return a number for the page, with its exact digits beside the readable ones."""
    exact = float(value)
    return Number(readable(exact, digits) if math.isfinite(exact) else "", repr(exact))


def words(text: str) -> Number:
    """Return a cell of words."""
    return Number("", "", text)


@dataclass(frozen=True)
class Verdict:
    """How a run ended, in words."""

    status: str
    tone: str  # "good", "warn"
    word: str
    sentence: str
    detail: str


def verdict_of(run: Run) -> Verdict:
    """Say how a run ended: the claim first, then what it rests on."""
    word, sentence = _claim(run)
    detail = ""
    if run.status is not Status.CERTIFIED:
        detail = f"{_sentence(run.message)} {_sentence(run.status.value)}."
    elif run.claim is not None:
        proof = run.claim.certificate
        detail = (
            f"The claim is against deviations to other {proof.information}, in {proof.arithmetic} arithmetic with its "
            "rounding bounded. It was checked again when this page was written."
        )
        if proof.arithmetic == "exact":
            detail = detail.replace(" with its rounding bounded", "")
    tone = "good" if run.status is Status.CERTIFIED else "warn"
    return Verdict(run.status.name, tone, word, sentence, detail)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _claim(run: Run) -> tuple[str, str]:
    if run.claim is None:
        if run.status is Status.INFEASIBLE:
            return "Proved impossible", "no joint policy keeps the limits."
        return "Undecided", "no policy that keeps the limits was found, and none was ruled out."
    certificate = run.claim.certificate
    gain = readable(certificate.epsilon, 2)
    if run.status is Status.CERTIFIED:
        return "Proved", f"{_limits_kept(certificate)}no agent gains more than {gain} by leaving."
    opening = {
        Status.NOT_POTENTIAL: "Not a potential game",
        Status.INTERRUPTED: "Interrupted",
    }.get(run.status, "Not proved")
    asked = readable(run.epsilon, 2)
    rest = f"an agent may still gain up to {gain} by leaving, where {asked} was asked for."
    return opening, f"{_limits_kept(certificate)}{rest}"


def _limits_kept(certificate: Certificate) -> str:
    if len(certificate.thresholds) == 0:
        return ""
    return {
        Feasibility.PROVEN: "these policies keep every limit, and ",
        Feasibility.TO_ROUNDING: "these policies keep every limit up to rounding, and ",
        Feasibility.VIOLATED: "these policies break a limit, and ",
    }[certificate.feasibility]


def course_words(run: Run) -> str:
    """Say how many moves there were, and what the theory allows."""
    allowed = f"Theorem 1 allows at most {run.max_iterations:,} moves in a potential game."
    if run.moves == 0:
        why = ": the start was an equilibrium already." if run.status is Status.CERTIFIED else "."
        return f"Nobody moved{why} {allowed}"
    iterations, seconds = _count(len(run.trace), "iteration"), max(run.trace[-1].seconds, 0.01)
    return f"{_count(run.moves, 'move')} in {iterations} and {seconds:.2g} s. {allowed}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def price_words(prices: np.ndarray[tuple[int], np.dtype[np.float64]], agents: tuple[str, ...]) -> str:
    """Say what one more unit is worth, and to whom."""
    if len(agents) <= 3:
        return ", ".join(f"{name}: {readable(price, 5)}" for name, price in zip(agents, prices, strict=True))
    if not prices.any():
        return "0 for everybody"
    most, free = int(np.argmax(prices)), int((prices == 0).sum())
    rest = f"; 0 for {free} of {len(agents)} agents" if free else f"; at least {readable(float(prices.min()), 5)}"
    return f"up to {readable(float(prices[most]), 5)} ({agents[most]}){rest}"
