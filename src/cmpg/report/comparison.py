"""The comparison of methods as a table in a terminal, as a page in Markdown, and as a record."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence

import numpy as np

from cmpg import __version__
from cmpg.comparison.comparison import GameComparison, Judged, Refusal
from cmpg.files.containers import Fields, plain_fields
from cmpg.summaries import Summary, Table, plain, table_markdown

COLUMNS = (
    "method",
    "Nash gap",
    "worst violation",
    "iterates infeasible",
    "welfare",
    "potential gained",
    "seconds",
)

NAMES = {
    "CertifiedAscent": "CA-CMPG (certified)",
    "LagrangianDual": "Lagrangian dual",
    "IndependentGradient": "independent gradient",
    "LagrangianGradient": "primal-dual gradient",
    "SwitchingGradient": "switching gradient",
    "JointPlanner": "joint planner",
    "NashCA": "Nash-CA (no constraints)",
}
"""What a reader sees for each method."""

READING = """\
Every method starts from the same random feasible policy, and one judge looks at what it returns.

- **Nash gap.** What an agent could gain by deviating to another policy that keeps the thresholds, found by exact best
  responses and proved by a certificate. Where the policy that the method returns breaks a threshold, the gap means
  nothing, and the table says *infeasible*.
- **Worst violation.** The greatest excess over a threshold among all joint policies that the method went through.
- **Iterates infeasible.** How many of them broke a threshold.
- **Welfare, potential gained.** The sum of the agents' values, and by how much the potential rose from the start. A
  policy that breaks the thresholds can have more of both. *none* where the game has no potential.
- **Seconds.** CPU time of that method. Only ours includes a proof of the answer.

The gradient methods take steps in units of their gradients. Their settings were chosen from a grid over these games,
one setting for all of them. The primal-dual gradient may return its last feasible iterate. The dual maximises its
Lagrangian exactly where a joint plan can do so. The joint planner solves for the best correlated policy, and the agents
then play its marginals; it does not apply to games without joint tables.
"""


def comparison_summaries(games: Mapping[str, GameComparison]) -> tuple[Summary | str, ...]:
    """Lay out one table per game, and what the run shows."""
    summaries = [Summary(name, _setting(game), (_table(game), _restarted(game), "")) for name, game in games.items()]
    return *summaries, _findings(list(games.values()))


def _table(game: GameComparison) -> Table:
    return Table(COLUMNS, tuple(tuple(_cells(entry)) for entry in game.entries))


def comparison_page(games: Mapping[str, GameComparison], *, command: str) -> str:
    """Write a page in Markdown: the gaps of all games in one table, then every game.

    Parameters
    ----------
    games
        By name.
    command
        What was typed, so that anybody can do it again.
    """
    lines = [
        "# What the certificate is worth: a comparison",
        "",
        f"Written by `{command}` with cmpg {__version__}, numpy {np.__version__} and Python "
        f"{platform.python_version()}. All numbers are from that run.",
        "",
        READING,
        "## The gaps of what the methods return",
        "",
        *table_markdown(_overview(games)),
        "",
        _findings(list(games.values())),
        "",
    ]
    for name, game in games.items():
        lines += [f"## {plain(name)}", "", f"{_setting(game).capitalize()}.", ""]
        lines += table_markdown(_table(game))
        lines += ["", _restarted(game), ""]
    return "\n".join(lines)


def comparison_record(games: Mapping[str, GameComparison], *, seed: int) -> Fields:
    """Return the comparison in words that JSON knows; a gap is null where the policy is infeasible."""
    records = {}
    for name, game in games.items():
        records[name] = {
            "thresholds": game.thresholds,
            "start_costs": game.start_costs,
            "is_potential": game.is_potential,
            "methods": [_entry_record(entry) for entry in game.entries],
            "restarts": {
                "runs": game.restarts,
                "status": game.restarted.status.name,
                "welfare": game.restarted.values.sum(),
                "potential_gained": game.restarted_gain,
                "seconds": game.restarted_seconds,
            },
        }
    head = {"format": "cmpg-comparison", "version": 1, "cmpg": __version__, "seed": seed}
    return plain_fields({**head, "games": records})


def _entry_record(entry: Judged | Refusal) -> Fields:
    if isinstance(entry, Refusal):
        return {"method": entry.name, "applies": False, "reason": entry.reason}
    return {
        "method": entry.name,
        "applies": True,
        "settings": entry.found.settings,
        "feasible": entry.feasible,
        "gap": entry.gap,
        "worst_violation": entry.found.worst_violation,
        "infeasible_iterates": entry.found.infeasible_iterates,
        "iterates": entry.found.iterates,
        "welfare": entry.welfare,
        "potential_gained": entry.potential_gained,
        "costs": entry.found.costs,
        "seconds": entry.found.seconds,
    }


def _cells(entry: Judged | Refusal) -> list[str]:
    if isinstance(entry, Refusal):
        return [NAMES.get(entry.name, entry.name), "does not apply", *[""] * (len(COLUMNS) - 2)]
    found = entry.found
    return [
        NAMES.get(entry.name, entry.name),
        _gap(entry),
        _short(found.worst_violation),
        f"{found.infeasible_iterates} of {found.iterates}",
        f"{entry.welfare:.3f}",
        "none" if np.isnan(entry.potential_gained) else f"{entry.potential_gained:.3f}",
        f"{found.seconds:.2g}",
    ]


def _gap(entry: Judged) -> str:
    return "infeasible" if not entry.feasible else _short(entry.gap)


def _short(number: float) -> str:
    return "0" if number == 0 else f"{number:.1e}" if abs(number) < 1e-3 else f"{number:.3g}"


def _overview(games: Mapping[str, GameComparison]) -> Table:
    """The gaps of all games: one row per game, one column per method."""
    methods = list(dict.fromkeys(entry.name for game in games.values() for entry in game.entries))
    rows = []
    for name, game in games.items():
        found = {entry.name: entry for entry in game.entries}
        rows.append((name, *(_overview_cell(found.get(method)) for method in methods)))
    return Table(("game", *(NAMES.get(method, method) for method in methods)), tuple(rows))


def _overview_cell(entry: Judged | Refusal | None) -> str:
    return _gap(entry) if isinstance(entry, Judged) else "–"


def _setting(game: GameComparison) -> str:
    limits = ", ".join(f"{limit:.4g}" for limit in game.thresholds) or "none"
    costs = ", ".join(f"{cost:.4g}" for cost in game.start_costs) or "none"
    kind = "potential game" if game.is_potential else "not a potential game"
    return f"{kind}, thresholds {limits}, cost of the start {costs}"


def _restarted(game: GameComparison) -> str:
    gain = "" if np.isnan(game.restarted_gain) else f", potential gained {game.restarted_gain:.3f}"
    return (
        f"With starts of its own, the best of {game.restarts}, `solve` ends {game.restarted.status.name}: welfare "
        f"{game.restarted.values.sum():.3f}{gain}, in {game.restarted_seconds:.2g} s."
    )


def _findings(games: Sequence[GameComparison]) -> str:
    """Count what the run shows, in words."""
    entries = [entry for game in games for entry in game.judged]
    ours = [entry for entry in entries if entry.name == "CertifiedAscent"]
    others = [entry for entry in entries if entry.name != "CertifiedAscent"]
    broken = sum(not entry.feasible for entry in others)
    loose = sum(entry.feasible and entry.gap > 1e-3 for entry in others)
    on_the_way = sum(entry.found.infeasible_iterates > 0 for entry in others)
    text = (
        f"Of {len(others)} answers of other methods, {broken} break a threshold, and {loose} are feasible with a gap "
    )
    text += f"above 0.001; {on_the_way} of the runs went through infeasible policies."
    if ours:
        proved = sum(entry.gap <= 1e-6 for entry in ours)
        safe = sum(entry.found.infeasible_iterates == 0 for entry in ours)
        text += f" CA-CMPG: {proved} of {len(ours)} answers with a gap of at most 1e-6, {safe} of {len(ours)} runs "
        text += "without an infeasible policy."
    return text
