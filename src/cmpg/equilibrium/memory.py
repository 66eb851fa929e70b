"""What an ascent and a search for a start note on their way, so that another process can go on from there.

Only values are noted that the loop itself depends on; positions are built again. That gives the same bits, because a
position depends on its policy, and on who moved last, alone. Certificates are never believed: they are computed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.certificate import certify
from cmpg.equilibrium.loop import LoopState
from cmpg.equilibrium.result import Incumbent, Result, Status, Step
from cmpg.equilibrium.start import Start
from cmpg.games.contract import Game, Position
from cmpg.runs.checkpoints import Stage, generator_note, next_stage, restore_generator


class Noted(Protocol):
    """What finds the answers, and knows something of the agents."""

    def note(self) -> Mapping[str, Any]:
        """Return what is known."""

    def restore(self, note: Mapping[str, Any]) -> None:
        """Know that again."""


class Polished(Protocol):
    """What refills rows that nobody visits."""

    polished: bytes


@dataclass(frozen=True, eq=False)
class AscentMemory:
    """What an ascent notes after each move, and when it is over."""

    stage: Stage
    game: Game
    answers: Noted
    polisher: Polished
    rng: np.random.Generator | None

    @classmethod
    def of(cls, game: Game, answers: Noted, polisher: Polished, rng: np.random.Generator | None) -> AscentMemory | None:
        """Return the memory of the next ascent; None where nobody keeps notes."""
        stage = next_stage("ascent")
        return None if stage is None else cls(stage, game, answers, polisher, rng)

    def keep(self, standing: LoopState[Position]) -> None:
        """Note where the loop stands, what is known of the agents, and where the random numbers stand."""
        mover = standing.counts[3]
        self.stage.keep(
            {
                "policy": standing.position.policy,
                "left": standing.before.policy.stored[mover],
                "answers": standing.answers,
                "seen": standing.seen,
                "trace": standing.trace,
                "counts": standing.counts,
                "total": standing.total,
                "seconds": standing.seconds,
                "answered": self.answers.note(),
                "polished": self.polisher.polished,
                "rng": generator_note(self.rng),
            }
        )

    def recalled(self) -> LoopState[Position] | None:
        """Bring everybody back to where they stood."""
        note = self.stage.note
        if note is None:
            return None
        self.answers.restore(note["answered"])
        self.polisher.polished = note["polished"]
        restore_generator(self.rng, note["rng"])
        decisions, asked, moves, mover = note["counts"]
        policy = note["policy"]
        before = self.game.at(policy.replace(mover, note["left"]))
        before.induced_cmdp(mover)  # the mover was asked, and what it faces stays the same
        return LoopState(
            before=before,
            position=before.replace(mover, policy.stored[mover]),
            answers=note["answers"],
            seen=tuple(note["seen"]),
            trace=tuple(note["trace"]),
            counts=(decisions, asked, moves, mover),
            total=note["total"],
            seconds=note["seconds"],
        )

    def conclude(self, result: Result) -> None:
        """Note that the ascent is over, unless something outside of it has ended it."""
        if result.incumbent is not None and result.status is not Status.INTERRUPTED:
            names = ("message", "trace", "moves", "refused")
            known = {"status": result.status.name, **{name: getattr(result, name) for name in names}}
            found = {"policy": result.policy, "multipliers": result.multipliers, "rng": generator_note(self.rng)}
            self.stage.keep({"over": True, **known, **found})

    def ended(self, epsilon: float) -> Result | None:
        """Return the result of an ascent that is over, with its certificate computed anew."""
        note = self.stage.note
        if note is None or "over" not in note:
            return None
        restore_generator(self.rng, note["rng"])
        certificate = certify(self.game, note["policy"], note["multipliers"])
        return Result(
            Status[note["status"]],
            note["message"],
            epsilon,
            incumbent=Incumbent(note["policy"], note["multipliers"], certificate),
            game=self.game,
            trace=tuple(note["trace"]),
            moves=note["moves"],
            refused=note["refused"],
        )


@dataclass(frozen=True, eq=False)
class Glimpse:
    """What a search looked at when it passed a position: all that is needed of one that it has left behind."""

    costs: FloatArray  # [k]
    values: FloatArray  # [n]
    slacks: FloatArray  # [k]
    cost_rounding: FloatArray  # [k]


class SearchMemory:
    """What a search for common multipliers notes after each settling; where it went on from stays a position."""

    def __init__(self, stage: Stage, game: Game, rng: np.random.Generator | None) -> None:
        self._stage, self._game, self._rng = stage, game, rng
        note = stage.note or {"rounds": (), "policies": {}, "rng": None}
        self._rounds: list[Mapping[str, Any]] = list(note["rounds"])
        self._left = len(self._rounds)  # settlings that need not be made again
        self._policies: Mapping[int, Any] = note["policies"]
        self._places: dict[int, Any] = {}  # by number: a position, or a glimpse of one that is left behind
        self._settled = note["rng"]

    @classmethod
    def of(cls, game: Game, first: Position, rng: np.random.Generator | None) -> SearchMemory | None:
        """Return the memory of the next search; None where nobody keeps notes."""
        stage = next_stage("search")
        if stage is None:
            return None
        memory = cls(stage, game, rng)
        memory._places[-1] = first
        return memory

    def recalled(self, done: int) -> tuple[Any, Step] | None:
        """Return where the settling after `done` others led, and its step, if that is known."""
        if done >= self._left:
            return None
        known = self._rounds[done]
        number = known["number"]
        if number not in self._places:
            there = number in self._policies
            glimpse = Glimpse(*(known[name] for name in ("costs", "values", "slacks", "cost_rounding")))
            self._places[number] = self._game.at(self._policies[number]) if there else glimpse
        if done == self._left - 1:
            restore_generator(self._rng, self._settled)
        return self._places[number], known["step"][0]

    def keep(self, done: int, origin: Position, settled: Position, step: Step, best: Position) -> None:
        """Note where a settling led; policies are kept of the first and the last position, and of the best."""
        number = done if settled is not origin else self._number(origin)
        self._places[number] = settled
        seen: dict[str, Any] = {"costs": settled.costs, "values": settled.values, "slacks": settled.slacks}
        seen |= {"cost_rounding": settled.cost_rounding, "number": number, "step": (step,)}
        self._rounds.append(seen)
        needed = {0, number, self._number(best)} - {-1}
        for other in set(self._places) - needed - {-1}:
            del self._places[other]
        policies = {each: self._places[each].policy for each in needed if each in self._places}
        self._stage.keep({"rounds": tuple(self._rounds), "policies": policies, "rng": generator_note(self._rng)})

    def _number(self, position: Any) -> int:
        return next(number for number, known in self._places.items() if known is position)


def remembered_start(find: Callable[[], Start], rng: np.random.Generator | None) -> Start:
    """Find a start, or return the one that an earlier process has found."""
    stage = next_stage("start")
    if stage is None:
        return find()
    note = stage.note
    if note is not None:
        restore_generator(rng, note["rng"])
        stage.notebook.skip_to(note["begun"])
        known = {name: note[name] for name in ("policy", "slack", "found_by", "multipliers", "begin")}
        return Start(**known, proof=None, trace=tuple(note["trace"]))
    first = stage.notebook.begun.get("search", 0)
    found = find()
    if found.policy is not None and not found.interrupted:
        stage.notebook.forget("search", first)
        known = {name: getattr(found, name) for name in ("policy", "slack", "found_by", "multipliers", "begin")}
        over = {"trace": found.trace, "rng": generator_note(rng), "begun": stage.notebook.begun}
        stage.keep({**known, **over})
    return found
