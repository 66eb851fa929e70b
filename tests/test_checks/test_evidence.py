"""docs/evidence.md has the last finding of every check, and keeps those of which there is no new record."""

import json

from checks import evidence


def found(folder, check, finding, table=""):
    record = {"finding": finding, "table": table, "date": "2024-05-06", "commit": "abc"}
    (folder / f"{check}.json").write_text(json.dumps(record), "utf-8")


def test_new_findings_replace_earlier_ones_and_the_others_stay(tmp_path):
    found(tmp_path, "sweep", "5 games; 0 wrong claims")
    found(tmp_path, "fuzz", "7 files")
    found(tmp_path, "bench", "One run", "| a |\n|---|\n| 1 |")
    first = evidence.page("", tmp_path)
    assert "| Is what `solve` says true? | 5 games; 0 wrong claims | `sweep` | 2024-05-06 | abc |\n" in first
    assert "## How long a solve takes\n\nOne run (`bench`, 2024-05-06, abc).\n\n| a |\n|---|\n| 1 |\n" in first
    nothing_new = tmp_path / "other"
    nothing_new.mkdir()
    assert evidence.page(first, nothing_new) == first
    found(nothing_new, "sweep", "9 games")
    assert evidence.page(first, nothing_new) == first.replace("5 games; 0 wrong claims", "9 games")


def test_the_page_of_the_documentation_is_in_the_form_that_the_check_writes(tmp_path):
    text = evidence.PAGE.read_text("utf-8")
    assert evidence.page(text, tmp_path) == text
