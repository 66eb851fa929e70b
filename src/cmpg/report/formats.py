"""Tables in the formats of other programs: CSV, JSON, LaTeX, Markdown and Parquet.

A table is given as rows, mappings from the heads of columns to values, or as a `Table` that is shown elsewhere, too.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmpg.cells import cell
from cmpg.errors import CMPGError
from cmpg.files.containers import check_new_file, write_atomically, write_text
from cmpg.summaries import Table, plain, table_markdown

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]

FORMATS = ("csv", "json", "latex", "markdown", "parquet")

ESCAPES = {
    "latex": {**{mark: f"\\{mark}" for mark in "&%$#_{}"}, "\\": "\\textbackslash{}", "~": "\\textasciitilde{}",
              "^": "\\textasciicircum{}", "→": "$\\to$", "–": "--", "…": "\\dots{}"},
    "markdown": {"|": "\\|", "\n": " "},
}  # fmt: skip
"""What must not stand in a cell as it is."""


def rows_text(rows: Sequence[Row], form: str) -> str:
    """Return rows as CSV, as a JSON list with one object a line, as a LaTeX table (booktabs), or as Markdown.

    Examples
    --------
    >>> print(rows_text([{"car": "A", "energy (kWh)": 6.6}], "csv"), end="")
    car,energy (kWh)
    A,6.6
    """
    rows = [{name: _neat(value) for name, value in row.items()} for row in rows]
    names = list(rows[0]) if rows else []
    if form == "json":
        return "[" + ",\n ".join(json.dumps(row, allow_nan=False, ensure_ascii=False) for row in rows) + "]\n"
    if form == "csv":
        return _csv(names, ([row.get(name, "") for name in names] for row in rows))
    right = [all(isinstance(row.get(name), (int, float)) or row.get(name) is None for row in rows) for name in names]
    body = [[_short(row.get(name)) for name in names] for row in rows]
    return _latex(names, body, right) if form == "latex" else _markdown(names, body, right)


def table_csv(table: Table) -> str:
    """Return a table as CSV, numbers with all of their digits."""
    return _csv(
        table.columns, ([each if isinstance(each, str) else repr(each.value) for each in row] for row in table.rows)
    )


def table_latex(table: Table) -> str:
    """Return a table as a LaTeX tabular, for a paper; its first column is at the left, the others at the right."""
    body = [[each if isinstance(each, str) else each.text for each in row] for row in table.rows]
    return _latex(table.columns, body, [number > 0 for number in range(len(table.columns))])


def write_table(table: Table, path: Path) -> None:
    """Write a table as .csv, .tex or .md, by the ending of the file."""
    ending = path.suffix.lower()
    if ending == ".md":
        text = "\n".join([*table_markdown(table), ""])
    else:
        text = table_csv(table) if ending == ".csv" else table_latex(table)
    write_text(path, text)


def _csv(heads: Iterable[str], body: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([*map(cell, row)] for row in (heads, *body))
    return text.getvalue()


def _latex(heads: Sequence[str], body: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    escape = str.maketrans(ESCAPES["latex"])
    head, *lines = (" & ".join(plain(each).translate(escape) for each in row) + r" \\" for row in (heads, *body))
    columns = "".join("r" if number else "l" for number in right)
    begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    return "\n".join([begin, r"\toprule", head, r"\midrule", *lines, r"\bottomrule", end]) + "\n"


def _markdown(heads: Sequence[str], body: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    escape = str.maketrans(ESCAPES["markdown"])
    rule = ["---:" if number else "---" for number in right]
    head, *lines = ([each.translate(escape) for each in row] for row in (heads, *body))
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, rule, *lines))


def _short(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _neat(value: Any) -> Any:
    """Return a float to twelve digits, in which sums of rounded numbers are those that people expect."""
    return float(f"{value:.12g}") if isinstance(value, float) else value


def rows_bytes(rows: Sequence[Row], form: str) -> bytes:
    """Return rows as the content of a file."""
    if form != "parquet":
        return rows_text(rows, form).encode()
    try:
        return bytes(frame(rows).to_parquet(index=False))
    except ImportError:
        raise CMPGError("parquet needs pyarrow. Install it with: pip install 'cmpg[frames]'") from None


def write_rows(rows: Sequence[Row], path: Path, form: str) -> None:
    """Write rows to a new file."""
    check_new_file(path)
    content = rows_bytes(rows, form)
    write_atomically(path, lambda stream: stream.write(content))


def frame(rows: Sequence[Row]) -> pandas.DataFrame:
    """Return rows as a pandas DataFrame."""
    try:
        import pandas
    except ImportError:
        raise CMPGError("pandas is not installed. Install it with: pip install 'cmpg[frames]'") from None
    return pandas.DataFrame(list(rows))
