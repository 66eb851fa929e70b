"""Where a long computation stands, stage by stage, so that another process can go on from there, with the same bits.

A computation is a sequence of stages that depends on what was asked for alone: a search for a start, an ascent, another
ascent, … A stage notes where it stands whenever it could go on from there; what is noted are references to values that
never change, so that noting costs next to nothing. Now and then, and when the computation is interrupted, the last
notes are written down. A process that resumes asks each stage for its note: a stage that was over is not run again.

As with deadlines, stages find their notes by context: whoever solves a best response far below need not hand them on.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmpg.deadline import NOTEBOOK

Note = Mapping[str, Any]
"""Numbers, texts, arrays, policies and steps, by name."""


class Notebook:
    """The notes of all stages, and when they are written down.

    Parameters
    ----------
    write
        Writes all notes; it is called with them by stage.
    every
        Seconds between two writings, at least; 0 for a writing at every note.
    known
        What an earlier process wrote.
    """

    def __init__(
        self, write: Callable[[Mapping[str, Note]], None], *, every: float, known: Mapping[str, Note] | None = None
    ) -> None:
        self._write, self._every, self.notes = write, every, dict(known or {})
        self._numbers: Counter[str] = Counter()
        self._due = time.monotonic() + every

    def stage(self, kind: str) -> Stage:
        """Return the next stage of a kind."""
        number = self._numbers[kind]
        self._numbers[kind] += 1
        return Stage(f"{kind} {number}", self)

    @property
    def begun(self) -> dict[str, int]:
        """How many stages of each kind have begun."""
        return dict(self._numbers)

    def skip_to(self, begun: Mapping[str, int]) -> None:
        """Count the stages inside one that was over, and is not run again, as begun."""
        self._numbers.update({kind: number - self._numbers[kind] for kind, number in begun.items()})

    def forget(self, kind: str, first: int) -> None:
        """Drop the notes of all stages of a kind from the first on: what they were for is over."""
        for number in range(first, self._numbers[kind]):
            self.notes.pop(f"{kind} {number}", None)

    def keep(self, name: str, note: Note) -> None:
        """Replace the note of a stage, and write all notes if it is time."""
        self.notes[name] = note
        if time.monotonic() >= self._due:
            self.write()

    def write(self) -> None:
        """Write all notes now; the next writing waits long enough for writing to take a fifth of the time at most."""
        began = time.monotonic()
        self._write(self.notes)
        over = time.monotonic()
        self._due = over + (max(self._every, 4 * (over - began)) if self._every else 0.0)


@dataclass(frozen=True, eq=False)
class Stage:
    """One part of a computation."""

    name: str
    notebook: Notebook

    @property
    def note(self) -> Note | None:
        """What is known of this stage; None where it has not begun."""
        return self.notebook.notes.get(self.name)

    def keep(self, note: Note) -> None:
        """Note where this stage stands."""
        self.notebook.keep(self.name, note)


@contextmanager
def noting(notebook: Notebook) -> Iterator[None]:
    """Let the stages that run inside use these notes."""
    token = NOTEBOOK.set(notebook)
    try:
        yield
    finally:
        NOTEBOOK.reset(token)


def next_stage(kind: str) -> Stage | None:
    """Return the next stage of a kind; None where nobody keeps notes.

    Examples
    --------
    >>> with noting(Notebook(lambda notes: None, every=60.0, known={"ascent 1": {"moves": 3}})):
    ...     [next_stage("ascent").note for _ in range(2)]
    [None, {'moves': 3}]
    """
    notebook: Notebook | None = NOTEBOOK.get()
    return None if notebook is None else notebook.stage(kind)


def generator_note(rng: np.random.Generator | None) -> Note | None:
    """Return where a generator stands: its state, and how many it has spawned."""
    if rng is None:
        return None
    return {"state": rng.bit_generator.state, "spawned": _seed_sequence(rng).n_children_spawned}


def restore_generator(rng: np.random.Generator | None, note: Note | None) -> None:
    """Bring a generator to where another one with the same seed stood."""
    if rng is None or note is None:
        return
    sequence = _seed_sequence(rng)
    sequence.spawn(note["spawned"] - sequence.n_children_spawned)
    rng.bit_generator.state = note["state"]


def _seed_sequence(rng: np.random.Generator) -> np.random.SeedSequence:
    sequence = rng.bit_generator.seed_seq
    assert isinstance(sequence, np.random.SeedSequence)
    return sequence
