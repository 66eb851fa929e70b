"""`cmpg live`: a page on this machine, whose sliders change a game, and whose answer follows.

Exit codes: 0 stopped with Ctrl-C, which is how it ends; 2 bad input.
"""

from __future__ import annotations

import json
import logging
import math
import sys
import threading
import time
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qs

import cmpg
from cmpg import files, games, report
from cmpg.cli.interrupts import on_interrupt
from cmpg.cli.loopback import LoopbackServer, Reply
from cmpg.cli.options import DEFAULT_EPSILON, Epsilon, option
from cmpg.cli.output import progress_line, remark, show
from cmpg.cli.targets import (
    FILES,
    GameArgument,
    Target,
    alternatives,
    converted,
    finite,
    listed_options,
    one_of,
    option_types,
    spoken,
)
from cmpg.deadline import cancellable, check_time, limited_work
from cmpg.errors import CMPGError, OutOfTimeError
from cmpg.scenarios import SCENARIOS, Origin, scenario

if TYPE_CHECKING:
    from cmpg.equilibrium.result import Result, Step
    from cmpg.games.game import Game
    from cmpg.report.live import Control, LivePage
    from cmpg.scenarios.drawings import Drawing

_LOG = logging.getLogger(__name__)

CHOICES = {"slot": ("15", "30", "60"), "energy": ("delivered", "requested")}
"""Options of scenarios that take a few words only, although their types do not say so."""

READ_FILES = (
    *("sessions", "map", "scen", "network", "trips", "nodes", "file", "tariff", "tolls", "transformers"),
    *("capacity_kw", "base_load", "columns"),
)
"""Options of scenarios that may name a file: no page, and no run folder, can give them such a word."""

MIN_BOUND_SECONDS = 0.2
"""The upper bound may take half as much work as the solve, but always this much: seconds of this process alone."""

MAX_ANSWERS = 50
"""Answers that are kept, to be exported."""

MAX_THRESHOLDS = 24
"""Thresholds of a game file that have a slider."""


def live(
    target: GameArgument,
    epsilon: Epsilon = DEFAULT_EPSILON,
    opens: Annotated[bool, option("Open the page in a browser.", "--open/--no-open")] = False,
) -> None:
    """Serve a page whose sliders change a game; Ctrl-C stops it.

    GAME may also be a run folder, whose answer is the first one's start.
    """
    desk = Desk(subject_of(target), finite("epsilon", epsilon, positive=True))
    on_interrupt(lambda: "")
    with LoopbackServer(desk.routes()) as server:
        show(f"{desk.subject.page.title}: open {server.url}", "Only this machine can reach it. Ctrl-C stops it.")
        sys.stdout.flush()  # the address, to whatever waits for it in a pipe
        if opens:
            import webbrowser

            webbrowser.open(server.url)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            desk.stop()
    remark("stopped")


# --- What the page changes --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Built:
    """A game, where it comes from, and how to draw it."""

    game: Game
    origin: Origin
    drawing: Drawing | None


@dataclass(frozen=True, eq=False)
class Subject:
    """What the page is about: a game for every choice of options."""

    page: LivePage
    build: Callable[[Mapping[str, str]], Built]  # from the words of the page; raises if one makes no sense
    first: Result | None = None  # an answer that is known already


def subject_of(target: Target) -> Subject:
    """Return what the command line names: a scenario, a game file, or a run folder."""
    path = Path(target.name)
    if path.is_dir():
        return _subject_of_run(path)
    if path.suffix.lower() in FILES:
        return _thresholds_subject(target.build(), title=path.name)
    return scenario_subject(target.origin())


def _subject_of_run(folder: Path) -> Subject:
    """Return the scenario of a run with its options; its game if it is of none, or if the options name files."""
    from cmpg.sweeps.grid import word_of

    run = files.run_folder.load_run(folder)
    named = SCENARIOS.get(run.origin.name)
    given = ", ".join(spoken(name) for name in run.origin.options if name in READ_FILES)
    if named is not None and given:
        remark(
            f"{folder}: the run was made with {given}, and files that a folder names are not opened. The thresholds of "
            f"its game can be changed; for all options: cmpg live {named.name} {given} …"
        )
    if named is None or given:
        return _thresholds_subject(run.game, title=run.origin.name, drawing=run.drawing, first=run.result)
    hints, options = option_types(named.function), {}
    for word, value in run.origin.options.items():
        name = named.option(word)
        options[name] = value if value is None else converted(spoken(name), word_of(value), hints[name])
    return scenario_subject(Origin(named.name, options), first=run.result)


def scenario_subject(origin: Origin, *, first: Result | None = None) -> Subject:
    """Lay out a scenario: the page changes its numbers and choices, and the rest stays as the command line has it."""
    named = scenario(origin.name)
    hints, values = option_types(named.function), {**named.options, **origin.options}
    made = [control_of(name, hints[name], values[name], meaning) for name, meaning in listed_options(named).items()]
    controls = [control for control in made if control is not None]
    controls.sort(key=lambda each: each.name != "threshold")  # what most want to change comes first
    changed = {each.name for each in controls}
    # Files by their names alone: a saved page may go to others.
    fixed = {
        spoken(name)[2:]: Path(str(value)).name if name in READ_FILES else str(value)
        for name, value in origin.options.items()
        if name not in changed
    }

    def build(words: Mapping[str, str]) -> Built:
        from cmpg.scenarios.drawings import drawing_of

        options = dict(origin.options)
        for control in controls:
            word, hint = _word(words, control), hints[control.name]
            if word == control.value:
                continue
            if not word:
                options.pop(control.name, None)
                continue
            if not control.choices:
                hint = int if int in alternatives(hint) and float not in alternatives(hint) else float
            options[control.name] = converted(control.label, word, hint)
        chosen = Origin(named.name, options)
        return Built(named.build(**options), chosen, drawing_of(chosen))

    return Subject(report.live.LivePage(named.name, named.summary.replace("`", ""), controls, fixed), build, first)


def _thresholds_subject(
    game: Game, *, title: str, drawing: Drawing | None = None, first: Result | None = None
) -> Subject:
    """Lay out a game as it is: the page changes its thresholds; more than it can have keep their values."""
    meaning = "Largest expected cost allowed."
    controls = [
        number_control(f"threshold {j}", game.names.constraint(j), float(limit), meaning)
        for j, limit in enumerate(game.thresholds[:MAX_THRESHOLDS])
    ]

    def build(words: Mapping[str, str]) -> Built:
        thresholds = [float(limit) for limit in game.thresholds]
        for j, control in enumerate(controls):
            word = _word(words, control)
            if word not in ("", control.value):
                thresholds[j] = converted(control.label, word, float)
        return Built(game.with_thresholds(thresholds) if thresholds else game, Origin(title, {}), drawing)

    return Subject(report.live.LivePage(title, "", controls, {}), build, first)


def _word(words: Mapping[str, str], control: Control) -> str:
    """Return what the page has for an option; a choice is one of its words."""
    word = words.get(control.name, control.value).strip()
    return one_of(control.label, word, control.choices) if control.choices else word


def control_of(name: str, hint: Any, value: Any, meaning: str) -> report.live.Control | None:
    """Return an option of a scenario as a control of the page; None if it is neither a number nor a choice.

    Examples
    --------
    >>> control_of("edges", bool, True, "Whether robots collide.").choices
    ('true', 'false')
    >>> control_of("success", float, 0.9, "Probability that an action succeeds.").high
    1.0
    >>> control_of("map", str, None, "A file.") is None
    True
    """
    from cmpg.sweeps.grid import word_of

    meaning = meaning.partition("  [default")[0]
    choices = CHOICES.get(name) or (typing.get_args(hint) if typing.get_origin(hint) is typing.Literal else ())
    choices = ("true", "false") if hint is bool else choices
    label = spoken(name)[2:]
    if choices:
        return report.live.Control(name, label, meaning, word_of(value), tuple(map(str, choices)))
    if not {int, float} & {*alternatives(hint)}:
        return None
    if value is None:
        return report.live.Control(name, label, meaning, "")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None  # several numbers, or a file
    return number_control(name, label, value, meaning)


def number_control(name: str, label: str, value: float, meaning: str) -> report.live.Control:
    """Return a number with a slider: probabilities from 0 to 1, others to about twice their value.

    Examples
    --------
    >>> slider = number_control("threshold", "threshold", 0.5, "Largest expected cost allowed.")
    >>> slider.low, slider.high, slider.step
    (0.0, 1.0, 0.01)
    >>> number_control("horizon", "horizon", 6, "Number of steps.").high
    12.0
    """
    word = f"{value:g}" if float(f"{value:g}") == value else repr(value)
    if meaning.startswith("Probability"):
        return report.live.Control(name, label, meaning, word, low=0.0, high=1.0, step=0.01)
    if isinstance(value, int):
        low = 0.0 if name == "seed" else 1.0
        return report.live.Control(
            name, label, meaning, word, low=min(low, float(value)), high=float(max(2 * value, 5)), step=1.0
        )
    size = 2 * abs(value) or 1.0
    unit = 10.0 ** math.floor(math.log10(size))
    high = next(factor * unit for factor in (1, 2, 5, 10) if factor * unit >= size * (1 - 1e-9))
    return report.live.Control(
        name, label, meaning, word, low=min(0.0, -high if value < 0 else 0.0), high=high, step=high / 100
    )


# --- Answers ----------------------------------------------------------------------------------------------------------


class Desk:
    """Answers what the page requests, one request at a time; a newer one cancels an older one.

    Parameters
    ----------
    subject
        What the page is about.
    epsilon
        No agent shall gain more than this.
    """

    def __init__(self, subject: Subject, epsilon: float) -> None:
        self.subject, self._epsilon = subject, epsilon
        self._turn, self._work = threading.Lock(), threading.Lock()  # who is the latest; who computes
        self._latest = threading.Event()  # set: that request is cancelled
        self._phase = ""
        self._known = subject.first  # the last answer, near which the next one begins
        self._answers: dict[int, dict[str, Any]] = {}
        self._count = 0

    def routes(self) -> dict[tuple[str, str], Any]:
        """Return everything that can be reached."""
        page = self.subject.page
        return {
            ("GET", ""): lambda _, __: Reply(page.html().encode(errors="backslashreplace")),
            ("GET", "progress"): lambda _, __: Reply.of_record({"text": self._phase or "waiting"}),
            ("GET", "export"): lambda query, _: self._exported(query),
            ("POST", "answer"): lambda _, body: self._replied(body),
            ("POST", "cancel"): lambda _, __: self._cancelled(),
        }

    def answer(self, words: Mapping[str, str]) -> dict[str, Any]:
        """Return what the page shows for some options: an answer, a problem, or that a newer request cancelled it."""
        cancelled = threading.Event()
        with self._turn:
            self._latest.set()
            self._latest = cancelled
        with self._work, cancellable(cancelled):
            try:
                check_time()
                return self._computed(words)
            except OutOfTimeError:
                return {"cancelled": True}
            except CMPGError as problem:
                return {"problem": f"{str(problem)[:1].upper()}{str(problem)[1:]}"}
            except MemoryError:
                return {"problem": "There is not enough memory for these options."}
            except Exception as failure:  # whatever it is: the next request may do better
                _LOG.warning("an answer failed", exc_info=True)
                return {"problem": f"The library failed with these options: {type(failure).__name__}: {failure}."}
            finally:
                self._phase = ""

    def cancel(self) -> None:
        """Let the request that is being answered, if there is one, end early."""
        with self._turn:
            self._latest.set()

    def stop(self) -> None:
        """Cancel what is being computed, and wait a little for it."""
        self.cancel()
        if self._work.acquire(timeout=2.0):
            self._work.release()

    def _computed(self, words: Mapping[str, str]) -> dict[str, Any]:

        began, worked = time.monotonic(), time.process_time()
        self._phase = "building the game"
        built = self.subject.build(words)
        game = built.game
        check_time()
        self._phase = "looking for a feasible start"

        def follow(step: Step) -> None:
            check_time()
            self._phase = progress_line(step, game.thresholds, game.names)

        result = cmpg.solve(game, epsilon=self._epsilon, start=self._start(game), on_progress=follow)
        check_time()
        gap = None
        if result.incumbent is not None:
            self._phase = "computing the upper bound"
            self._known = result
            with limited_work(max(MIN_BOUND_SECONDS, (time.process_time() - worked) / 2)):
                gap = cmpg.quality(result)
            check_time()
        self._phase = "drawing"
        labels = {each.label: _word(words, each) for each in self.subject.page.controls}
        chosen = {label: word for label, word in labels.items() if word}
        run = files.run_folder.FinishedRun(game, result, built.origin, built.drawing)
        record = report.live.answer_record(run, gap, options=chosen, seconds=time.monotonic() - began)
        self._count += 1
        record["number"] = self._count
        self._answers[self._count] = record
        self._answers.pop(self._count - MAX_ANSWERS, None)
        return record

    def _start(self, game: Game) -> Any:
        """Return a start near the last answer, where that is what makes the next one quick: agents trade at prices."""
        import numpy as np

        from cmpg.equilibrium import WarmStart

        known = self._known
        if known is None or known.incumbent is None or game.information is not games.Information.OWN_STATE:
            return None
        prices = known.certificate.multipliers
        fits = known.policy.shapes == game.policy_shapes and prices.shape[1] == len(game.thresholds) > 0
        return WarmStart(known.policy.floats(), prices) if fits and np.isfinite(prices).all() else None

    def _replied(self, body: bytes) -> Reply | None:
        try:
            words = json.loads(body)["options"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        if not isinstance(words, dict) or not all(isinstance(word, str) for word in words.values()):
            return None
        known = {each.name for each in self.subject.page.controls}
        strange = [name for name in words if name not in known]
        if strange:
            return Reply.of_record({"problem": f"The page cannot change {strange[0]!r}; it has: {', '.join(known)}."})
        return Reply.of_record(self.answer(words))

    def _cancelled(self) -> Reply:
        self.cancel()
        return Reply.of_record({})

    def _exported(self, query: str) -> Reply | None:
        """Return a static page with one answer or two."""
        numbers = parse_qs(query).get("answer", [])
        answers = [self._answers.get(int(each)) for each in numbers if each.isascii() and each.isdigit()]
        if not 1 <= len(answers) <= 2 or None in answers:
            return None
        page = self.subject.page.html([each for each in answers if each is not None], static=True)
        return Reply(page.encode(errors="backslashreplace"), download="cmpg-live.html")
