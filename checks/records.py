"""Records of long checks: one JSON line for each piece of work, so that a check can be stopped and started."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any

Record = dict[str, Any]


class Records:
    """The records of a file, by what names each; the last of several with one name counts.

    Parameters
    ----------
    path
        Of the file; its folder is made. A line that was cut off is no record, and its work is done again.
    name
        Returns what names a record.
    """

    def __init__(self, path: Path, name: Callable[[Record], Hashable]) -> None:
        self._path, self._name = path, name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text("utf-8") if path.exists() else ""
        self._torn = bool(text) and not text.endswith("\n")
        self.known: dict[Hashable, Record] = {}
        for line in text.splitlines():
            with suppress(ValueError):
                record = json.loads(line)
                self.known[name(record)] = record

    def keep(self, record: Record) -> Record:
        """Write a record down at once, and return it."""
        with self._path.open("a", encoding="utf-8") as log:
            log.write("\n" * self._torn + json.dumps(record) + "\n")
        self._torn = False
        self.known[self._name(record)] = record
        return record


def judged_chunks(
    judge: Callable[[int], Record], chunks: Sequence[int], path: Path, *, size: int, what: str, jobs: int
) -> list[Record]:
    """Judge the chunks that have no record yet, in several processes, and return the records of all that are done.

    Parameters
    ----------
    judge
        Returns the record of a chunk: its number in `chunk`, and in `wrong` a list for each wrong answer: its seed, its
        kind, and what is wrong with it.
    size, what
        How many answers a chunk has, and what they are about.
    """
    records = Records(path, lambda record: int(record["chunk"]))
    left = [chunk for chunk in chunks if chunk not in records.known]
    print(f"{len(records.known) * size:,} {what}s are judged, {len(left) * size:,} are left", flush=True)
    began = time.monotonic()
    with get_context("spawn").Pool(jobs) as pool, suppress(KeyboardInterrupt):  # the next run goes on from here
        for number, record in enumerate(pool.imap_unordered(judge, left), 1):
            for seed, kind, *problems in records.keep(record)["wrong"]:
                print(f"{what} {seed} ({kind}): {'; '.join(problems)}", flush=True)
            if number % 20 == 0:
                rate = number * size / (time.monotonic() - began)
                print(f"{len(records.known) * size:,} {what}s, {rate:.0f} a second", flush=True)
    return [records.known[chunk] for chunk in chunks if chunk in records.known]


def by_form(records: Iterable[Record], head: str) -> list[str]:
    """Return a Markdown table of how many answers there are of each form and ending: `counts` has "form/ending"."""
    counts: Counter[str] = sum((Counter(record["counts"]) for record in records), Counter())
    forms, endings = (sorted({name.split("/")[at] for name in counts}) for at in (0, 1))
    rows = [[ending, *(counts[f"{form}/{ending}"] for form in forms)] for ending in endings]
    rows.append(["all", *(sum(row[at] for row in rows) for at in range(1, len(forms) + 1))])
    return [
        f"| {' | '.join([head, *forms, 'all'])} |",
        "|---|" + "---:|" * (len(forms) + 1),
        *(f"| {name} | {' | '.join(f'{number:,}' for number in (*own, sum(own)))} |" for name, *own in rows),
    ]


def wrong_lines(records: Iterable[Record], what: str) -> list[str]:
    """Return a line for each wrong answer."""
    wrong = chain.from_iterable(record["wrong"] for record in records)
    return [f"- {what} {seed}, {kind}: {'; '.join(problems)}" for seed, kind, *problems in wrong]
