"""Every error that this library raises on purpose.

A message gives coordinates, what was found, what is required, and what to do about it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:  # the command names these errors before anything is computed
    import numpy as np
    import numpy.typing as npt


class CMPGError(Exception):
    """The root of every error that this library raises on purpose.

    Examples
    --------
    >>> import cmpg
    >>> try:
    ...     cmpg.load_game("nowhere.json")
    ... except CMPGError as error:
    ...     print(f"{type(error).__name__}: {error}")
    FileError: nowhere.json: there is no such file. Check the name and the folder.
    """


class GameError(CMPGError):
    """A game, or a CMDP, is not well formed.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> try:
    ...     counter_example().with_thresholds([0.5, 0.5])
    ... except GameError as error:
    ...     print(error)
    thresholds has shape [2]; costs has 1 constraints, so [1] is required.
    """


class UnsupportedError(GameError):
    """A form of game cannot do what is asked of it; the message says which form can, or what to do instead."""

    def __init__(self, form: str, wanted: str, advice: str) -> None:
        super().__init__(f"a {form} {wanted}. {advice}")
        self.form, self.wanted = form, wanted


class TooLargeError(GameError):
    """Something would need more memory, or more time, than there is; the message says how much, and what to do."""


class PolicyError(CMPGError):
    """A policy is not well formed, or does not fit the game.

    Examples
    --------
    >>> import cmpg
    >>> try:
    ...     cmpg.JointPolicy([[[[0.5, 0.6]]]])
    ... except PolicyError as error:
    ...     print(error)
    policy[0][h=0, s=0] sums to 1.1; every row must sum to 1 (tolerance 1e-09). Normalise it, or pass rows that do.
    """


class InfeasibleError(CMPGError):
    """A policy was required to meet the constraints, and does not.

    If no policy does, `multipliers` λ ≥ 0 [k] prove it: every policy has V^{λ·c} > λ·α.

    Examples
    --------
    >>> import cmpg
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example(threshold=0.1)
    >>> try:
    ...     cmpg.coordinate_ascent(game, game.uniform_policy(), epsilon=1e-3)
    ... except InfeasibleError as error:
    ...     print(str(error).partition(". ")[0])
    the start is infeasible: its costs are [0.25], 0.15 above a threshold
    """

    def __init__(self, message: str, *, multipliers: npt.NDArray[np.float64] | None = None) -> None:
        super().__init__(message)
        self.multipliers = multipliers


class StartError(InfeasibleError):
    """A start of a learner does not meet the constraints.

    `result` is the LearnResult so far where the run had begun, and None where it had not.
    """

    result: Any = None


class SolverError(CMPGError):
    """A numerical method did not deliver what it must.

    Examples
    --------
    >>> from cmpg import JointGame
    >>> from cmpg.learning import slater_constant
    >>> game = JointGame(transition=[[[[1.0], [1.0]]]], rewards=[[[[0, 1]]]], costs=[[[[0, 1]]]],
    ...                  thresholds=[2.0], initial=[1.0], discount=0.9)
    >>> try:
    ...     slater_constant(game)
    ... except SolverError as error:
    ...     print(error)
    the Slater constant is computed for a finite horizon; this game is discounted.
    """


class OutOfTimeError(CMPGError):
    """A time limit was reached in the middle of a computation."""


class FileError(CMPGError):
    """A file is missing, truncated, forged, or of another kind.

    Examples
    --------
    >>> import cmpg
    >>> try:
    ...     cmpg.load_game("nowhere.json")
    ... except FileError as error:
    ...     print(error)
    nowhere.json: there is no such file. Check the name and the folder.
    """


class NoSuchDayError(FileError):
    """A file of many days has nothing on the day that was wanted."""


class PluginError(CMPGError):
    """What another package brings by an entry point cannot be used."""


class SimulatorError(CMPGError):
    """A simulator was asked for something that it cannot do, or an environment answered wrongly.

    `samples` are what had been drawn for the same purpose before, where anything had; `result` is the LearnResult so
    far, where `learn` or `learn_shared` was at work.
    """

    samples: Any = None
    result: Any = None


class BudgetError(CMPGError):
    """More samples, or more work, would be needed than is allowed; nothing of it was drawn."""


class WorkerError(CMPGError):
    """Workers died again and again; `missing` are the places of the tasks that are not done."""

    def __init__(self, message: str, *, missing: tuple[int, ...]) -> None:
        super().__init__(message)
        self.missing = missing


P = ParamSpec("P")
R = TypeVar("R")

SYNONYMS = {"seed": "rng", "random_state": "rng", "tol": "epsilon", "tolerance": "epsilon", "timeout": "time_limit"}
"""What a keyword is called here, by what it is called on the command line or in other libraries."""


def unknown_keyword(whose: str, word: str, known: Collection[str], advice: str = "") -> str:
    """Return a sentence on a keyword that is not there: what was probably meant, or else what there is.

    Examples
    --------
    >>> unknown_keyword("solve", "seed", ["epsilon", "rng"])
    'solve has no seed; did you mean rng?'
    """
    meant = SYNONYMS.get(word, f"{word.removesuffix('s')}_names")  # agents are numbers, and agent_names their names
    close = [meant] if meant in known else get_close_matches(word, sorted(known), n=1)
    listed = f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(known))}."
    return f"{whose} has no {word}; {advice or listed}"


def explains_keywords(**advice: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function say what a keyword that it does not have was probably meant to be; `advice` goes first.

    Examples
    --------
    >>> @explains_keywords()
    ... def area(*, width, height):
    ...     return width * height
    >>> try:
    ...     area(widht=2, height=3)
    ... except CMPGError as error:
    ...     print(error)
    area has no widht; did you mean width?
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        known = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
        whose = function.__qualname__

        @functools.wraps(function)
        def checked(*args: P.args, **given: P.kwargs) -> R:
            for word in given:
                if word not in known:
                    raise CMPGError(unknown_keyword(whose, word, known, advice.get(word, "")))
            return function(*args, **given)

        return checked

    return decorate
