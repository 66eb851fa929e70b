"""The page of a learning run: what was certified over the seeds, at what price in samples, and whether anything
unsafe was played.

A learning run folder holds `game.npz`, one `policy_<seed>.npz` per seed, and `seeds.jsonl`, a record a line (`cmpg
learn --out`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from cmpg import __version__
from cmpg.errors import FileError
from cmpg.report.charts import Chart, samples_chart, unsafe_chart
from cmpg.report.page_tables import Fact, Grid, Row
from cmpg.report.wording import Verdict, number, words

RECORDS = "seeds.jsonl"

REQUIRED = ("seed", "status", "certified", "epsilon", "delta", "samples", "true_gap", "true_costs", "feasible", "right")


def is_learning_run(folder: Path) -> bool:
    """Whether a folder was written by `cmpg learn`."""
    return (folder / RECORDS).is_file()


def read_records(folder: Path) -> list[dict[str, Any]]:
    """Read the records of all seeds, or raise where the file is cut short or of another kind."""
    path = folder / RECORDS
    records = []
    for place, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as problem:
            raise FileError(f"{path}, line {place}: not valid JSON ({problem.msg}); the run was cut short.") from None
        missing = [name for name in REQUIRED if not isinstance(record, dict) or name not in record]
        if missing:
            raise FileError(f"{path}, line {place}: has no {missing[0]!r}; it is not the record of a learning run.")
        records.append(record)
    if not records:
        raise FileError(f"{path}: is empty; no seed was finished.")
    return records


def learning_context(folder: Path) -> tuple[dict[str, Any], list[Chart]]:
    """Return what the template names for a learning run, and its charts."""
    records = read_records(folder)
    context = {
        "title": f"learning run {folder.name}",
        "subtitle": "policies learned from samples, judged afterwards with the true model",
        "verdict": _verdict(records),
        "facts": _facts(records),
        "provenance": _provenance(records),
        "seeds": _seeds_table(records),
    }
    return context, _charts(records)


def _verdict(records: list[dict[str, Any]]) -> Verdict:
    certified = [each for each in records if each["certified"]]
    wrong = sum(not each["right"] for each in certified)
    delta, epsilon = float(records[0]["delta"]), float(records[0]["epsilon"])
    sentence = (
        f"{len(certified)} of {len(records)} seeds are certified: feasible, and no agent gains more than {epsilon:g} "
        f"by leaving, each with probability {1 - delta:g}; {wrong} of these claims are wrong."
    )
    detail = "Whether a claim is right is judged with the true model, which the learners never saw."
    good = len(certified) == len(records) and not wrong
    return Verdict("CERTIFIED" if good else "LIMIT", "good" if good else "warn", "Learned", sentence, detail)


def _total(record: dict[str, Any]) -> int:
    return int(sum(record["samples"].values()))


def _facts(records: list[dict[str, Any]]) -> list[Fact]:
    totals = [_total(each) for each in records]
    return [
        Fact("seeds", str(len(records))),
        Fact("ε", f"{records[0]['epsilon']:g}"),
        Fact("δ", f"{records[0]['delta']:g}"),
        Fact("samples, median", f"{int(np.median(totals)):,}"),
        Fact("unsafe policies played", str(sum(int(each.get("unsafe_policies", 0)) for each in records))),
    ]


def _seeds_table(records: list[dict[str, Any]]) -> Grid:
    rows = [
        Row(
            str(each["seed"]),
            (
                words("yes" if each["certified"] else each["status"]),
                number(float(each["true_gap"]), 3),
                *(number(float(cost), 5) for cost in each["true_costs"]),
                words(f"{_total(each):,}"),
                words(str(each.get("unsafe_policies", 0))),
            ),
        )
        for each in records
    ]
    costs = tuple(f"True cost {j}" for j in range(len(records[0]["true_costs"])))
    costs = ("True cost",) if len(costs) == 1 else costs
    columns = ("Seed", "Certified", "True gap", *costs, "Samples", "Unsafe policies")
    return Grid("seeds", columns, tuple(rows))


def _charts(records: list[dict[str, Any]]) -> list[Chart]:
    order = np.argsort([_total(each) for each in records], kind="stable")
    totals = np.array([_total(records[i]) for i in order], dtype=np.float64)
    gaps = np.array([float(records[i]["true_gap"]) for i in order])
    charts = [samples_chart(totals, gaps, epsilon=float(records[0]["epsilon"]))] if totals.min() > 0 else []
    played = np.cumsum([int(each.get("executed_policies", 0)) for each in records])
    if played[-1] > 0:
        charts.append(unsafe_chart(played, np.cumsum([int(each.get("unsafe_policies", 0)) for each in records])))
    return charts


def _provenance(records: list[dict[str, Any]]) -> list[Fact]:
    settings = ", ".join(f"{name} = {value}" for name, value in records[0].get("settings", {}).items())
    purposes = ", ".join(records[0]["samples"])
    return [
        Fact("Seeds", str(len(records))),
        Fact("Settings", settings or "none"),
        Fact("Samples were drawn for", purposes or "nothing"),
        Fact("Page", f"written by cmpg {__version__}"),
    ]
