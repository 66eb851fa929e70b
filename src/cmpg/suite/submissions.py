"""A submission to the suite: a folder of policies, judged game by game, and the row that it earns.

The folder has one policy file for each game that it enters, `NAME.npz`, `NAME.json` or `NAME.csv`, as `cmpg judge`
reads them. `submission.json` may say what the method is called (`name`), for which version of the suite it was made
(`suite`), and what is claimed (`claims`, by game: `exploitability`, `total_value`). What is claimed is compared with
what is judged, and a submission that claims more than is true is refused. Games that are missing count as not solved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cmpg.errors import CMPGError, FileError
from cmpg.files.containers import read_fields
from cmpg.files.policy_tables import read_policy
from cmpg.judging.known import JudgedPolicy, judge_known
from cmpg.suite.data_games import RECIPES
from cmpg.suite.games import SUITE, VERSION, suite_games
from cmpg.suite.references import check_game_is_frozen, reference, reference_rows
from cmpg.summaries import fields_line

ENDINGS = (".npz", ".json", ".csv")
ALLOWED = 1e-9
"""An excess over a threshold of no more than this counts as none, as for the methods of `cmpg compare`."""

NASH = 1e-6
"""A policy that no agent gains more than this by deviating from, relative to its range of values, counts as Nash."""

CLAIM = 1e-6
"""Claims may differ from what is judged by this much, relative to the larger of both and 1."""


@dataclass(frozen=True)
class SuiteEntry:
    """One policy of a submission, as it was judged."""

    game: str
    feasible: bool
    exploitability: float
    total_value: float
    relative_gain: float  # exploitability divided by the largest range of an agent's value

    __repr__ = fields_line


@dataclass(frozen=True)
class SuiteRow:
    """What a method reached over all games.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from cmpg.suite import suite_game
    >>> with TemporaryDirectory() as folder:
    ...     suite_game("counter-example").uniform_policy().save(f"{folder}/counter-example.npz")
    ...     row = judge_submission(folder).row
    >>> row.entered, row.feasible, row.nash, round(row.mean_gain, 3)
    (1, 1, 0, 0.125)
    """

    name: str
    games: int  # of the suite
    entered: int
    feasible: int
    nash: int
    mean_gain: float  # mean relative gain of the feasible policies; nan if there are none
    mean_shortfall: float  # mean shortfall below the best known total value, relative to it, of the feasible policies

    __repr__ = fields_line


@dataclass(frozen=True, eq=False)
class Submission:
    """A folder that was judged.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from cmpg.suite import suite_game
    >>> with TemporaryDirectory() as folder:
    ...     suite_game("counter-example").uniform_policy().save(f"{folder}/counter-example.npz")
    ...     found = judge_submission(folder)
    >>> list(found.entries), found.refused
    (['counter-example'], {})
    """

    name: str
    entries: Mapping[str, SuiteEntry]
    refused: Mapping[str, str]  # by game, why a file or a claim was refused
    games: tuple[str, ...]  # that count

    @property
    def row(self) -> SuiteRow:
        """The row that it earns."""
        return row_of(self.name, self.entries, self.games)


def row_of(name: str, reached: Mapping[str, SuiteEntry], games: Iterable[str] = SUITE) -> SuiteRow:
    """Return the row of a method, by what it reached in each of the games that count."""
    counted = tuple(games)
    entries = {game: reached[game] for game in counted if game in reached}
    feasible = [each for each in entries.values() if each.feasible]
    gains = [each.relative_gain for each in feasible]
    best = {each.game: reference(each.game).best_known for each in feasible}
    short = [(best[each.game] - each.total_value) / max(abs(best[each.game]), 1e-9) for each in feasible]
    return SuiteRow(
        name=name,
        games=len(counted),
        entered=len(entries),
        feasible=len(feasible),
        nash=sum(gain <= NASH for gain in gains),
        mean_gain=float(np.mean(gains)) if gains else float("nan"),
        mean_shortfall=float(np.mean(short)) if short else float("nan"),
    )


def entry_of(game: str, judged: JudgedPolicy, reward_range: float) -> SuiteEntry:
    """Return what counts of a judged policy."""
    relative = judged.exploitability / max(reward_range, 1e-9)
    return SuiteEntry(game, judged.certificate.meets(ALLOWED), judged.exploitability, judged.welfare, relative)


def judge_submission(
    folder: str | Path,
    on_progress: Callable[[str], None] = lambda _: None,
    *,
    data: str | Path | None = None,
) -> Submission:
    """Judge a folder of policies.

    Parameters
    ----------
    folder
        One policy file for each game, see the module's text; or a single policy file.
    data
        A folder of public data files: the games that can be built from them count as well.
    on_progress
        Called with the name of each game before it is judged.

    Raises
    ------
    FileError
        The folder has no policy of a game of the suite, or was made for another version.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from cmpg.suite import suite_game
    >>> with TemporaryDirectory() as folder:
    ...     suite_game("counter-example").uniform_policy().save(f"{folder}/counter-example.npz")
    ...     found = judge_submission(folder)
    >>> found.row.entered, found.row.feasible, found.row.nash, round(found.entries["counter-example"].exploitability, 6)
    (1, 1, 0, 0.25)
    """
    source = Path(folder)
    if not source.exists():
        raise FileError(f"{source}: there is no such folder.")
    games = suite_games(data)
    name, claims = _manifest(source)
    files = _policy_files(source)
    entries, refused = {}, {}
    for game, path in files.items():
        on_progress(game)
        built = check_game_is_frozen(game, data)
        try:
            policy, _ = read_policy(path, built)
        except CMPGError as problem:
            refused[game] = str(problem)
            continue
        entry = entry_of(game, judge_known(built, policy, time_limit=0), float(np.max(built.reward_ranges)))
        problem_found = _false_claim(entry, claims.get(game, {}))
        if problem_found:
            refused[game] = problem_found
        else:
            entries[game] = entry
    refused |= {game: "something is claimed, and there is no policy" for game in claims if game not in files}
    return Submission(name, entries, refused, tuple(games))


def _policy_files(source: Path) -> dict[str, Path]:
    """Return the policy files of a folder by the games that they are named after."""
    present = sorted(source.iterdir()) if source.is_dir() else [source]
    present = [path for path in present if path.suffix in ENDINGS and path.name != "submission.json"]
    files = {path.name.removesuffix(path.suffix): path for path in present}
    strange = [stem for stem in files if stem not in SUITE and stem not in RECIPES]
    if strange or not files:
        found = f"{files[strange[0]].name} is named after no game of the suite" if strange else "it has no policy file"
        raise FileError(f"{source}: {found}; name each after its game (`cmpg suite list`), such as grid-world.npz.")
    counts = Counter(path.name.removesuffix(path.suffix) for path in present)
    if twice := [game for game, count in counts.items() if count > 1]:
        raise FileError(f"{source}: there are {counts[twice[0]]} policies of {twice[0]}; one of each game is judged.")
    return files


def _manifest(source: Path) -> tuple[str, Mapping[str, Any]]:
    """Read `submission.json`, if there is one."""
    path = source / "submission.json"
    if not path.is_file():
        return source.resolve().name, {}
    fields = read_fields(path)
    made_for = fields.get("suite", VERSION)
    if made_for != VERSION:
        raise FileError(f"{path}: was made for version {made_for!r} of the suite; this is version {VERSION}.")
    claims = fields.get("claims", {})
    if not isinstance(claims, dict) or not all(isinstance(each, dict) for each in claims.values()):
        raise FileError(f"{path}: claims must be an object by game, each with exploitability or total_value.")
    return str(fields.get("name", source.resolve().name)), claims


def _false_claim(entry: SuiteEntry, claim: Mapping[str, Any]) -> str:
    """Say in which way more is claimed than is true; nothing if no more is."""
    for field, judged, sign in (("exploitability", entry.exploitability, 1), ("total_value", entry.total_value, -1)):
        claimed = claim.get(field)
        if claimed is None:
            continue
        if not isinstance(claimed, (int, float)) or isinstance(claimed, bool) or not np.isfinite(claimed):
            return f"{field} is claimed to be {claimed!r}; a number is required"
        # What is not computed, nan, confirms no claim.
        if not sign * (judged - claimed) <= CLAIM * max(abs(judged), abs(claimed), 1.0):
            return f"{field} is claimed to be {claimed:.6g}, and is {judged:.6g}"
    if claim.get("feasible") is True and not entry.feasible:
        return "it is claimed to be feasible, and breaks a threshold"
    return ""


def ranked(rows: list[SuiteRow]) -> list[SuiteRow]:
    """Return rows with the best first: more Nash policies, then more feasible ones, then less below the best known."""
    return sorted(rows, key=lambda row: (-row.nash, -row.feasible, row.mean_shortfall if row.feasible else np.inf))


def reference_suite_rows(games: Iterable[str] = SUITE) -> list[SuiteRow]:
    """Return the rows of the methods that the library compares itself with, over the games that count."""
    counted = tuple(games)
    return [
        row_of(
            method, {game: SuiteEntry(game, **found) for game, found in reached.items() if found is not None}, counted
        )
        for method, reached in reference_rows().items()
    ]
