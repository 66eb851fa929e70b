"""Names in CSV files: no spreadsheet takes one for a formula, and games are read back with the names they had."""

import csv
from dataclasses import replace

import pytest

import cmpg as library
from cmpg.interop import read_table
from cmpg.interop.long_table import table_text
from cmpg.report.formats import rows_text
from cmpg.sweeps import sweep
from cmpg.sweeps.rows import results_table
from command_line import cmpg

FORMULAS = ('=HYPERLINK("http://x","a")', "+1+1", "-2+3", "@SUM(A1)", "\tx", "'=already")


def renamed(game):
    return replace(game, agent_names=FORMULAS[:2], action_names=(FORMULAS[2:4],) * 2, state_names=FORMULAS[5:])


def is_formula(text):
    try:
        float(text)
    except ValueError:
        return text.startswith(("=", "+", "-", "@", "\t", "\r"))
    return False


@pytest.mark.parametrize("what", ["schedule", "policy", "outcomes", "trace"])
def test_no_cell_of_an_export_is_a_formula(what, tmp_path):
    game = renamed(library.scenarios.counter_example())
    library.solve(game).save(tmp_path / "run")
    ran = cmpg("export", tmp_path / "run", "--what", what)
    assert ran.code == 0
    cells = [cell for row in csv.reader(ran.out.splitlines()) for cell in row]
    assert cells
    assert not [cell for cell in cells if is_formula(cell)]
    if what == "policy":
        assert f"'{FORMULAS[0]}" in cells


def test_numbers_of_an_export_are_numbers():
    text = rows_text([{"name": "-x", "value": -0.5, "count": -3, "text": "-0.25"}], "csv")
    assert text == "name,value,count,text\n'-x,-0.5,-3,-0.25\n"


def test_no_cell_of_a_sweep_is_a_formula():
    def build(name):
        return library.scenarios.counter_example(threshold=-5.0 if name == "=A1" else 1.0)

    found = sweep(build, {"name": ["=A1", "plain"]})
    rows = list(csv.reader(results_table(found).splitlines()))
    assert [row[1] for row in rows[1:]] == ["'=A1", "plain"]


def test_a_game_is_read_back_with_the_names_it_had(tmp_path):
    game = renamed(library.scenarios.counter_example())
    text = table_text(game)
    assert not [cell for row in csv.reader(text.splitlines()) for cell in row if is_formula(cell)]
    path = tmp_path / "game.csv"
    path.write_text(text, "utf-8")
    again = read_table(path)
    assert (again.agent_names, again.state_names) == (FORMULAS[:2], FORMULAS[5:])
    assert again.action_names == (FORMULAS[2:4],) * 2
