"""Plans, rows and requests that are not what they should be: each is refused by name, and the reader is told why."""

import json
import shutil

import pytest

from cmpg import sweeps
from cmpg.errors import CMPGError, FileError
from cmpg.sweeps.grid import read_plan
from cmpg.sweeps.rows import load_sweep, proved_sweep
from command_line import cmpg


def plan(path, line):
    path.write_text(f'scenario = "spectrum"\n{line}\n')
    return path


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("[options]\nthreshold = {a = 1}", "threshold is {'a': 1}; a number, a text or a list is required"),
        ("[options]\nthreshold = [1, {a = 1}]", "a number, a text or a list is required"),
        ("[options]\nthreshold = [[1, [2]]]", "a number, a text or a list is required"),
        ("[options]\nday = 2019-06-10T12:00:00", "a number, a text or a list is required"),
        ("options = 3", r"scenario = \"…\" and a table \[options\] are required"),
        ("epsilon = nan", "epsilon must be a number of at least 0"),
        ("epsilon = true", "epsilon must be a number of at least 0"),
        ("restarts = 0", "restarts a whole number of at least 1"),
        ("x = " + "[" * 5000, "is not valid TOML"),
        ("x = " + "9" * 5000, "is not valid TOML"),
    ],
)
def test_a_plan_that_asks_for_nothing_that_can_be_run_is_refused(line, complaint, tmp_path):
    path = plan(tmp_path / "plan.toml", line)
    with pytest.raises(FileError, match=complaint) as told:
        read_plan(path)
    assert str(path) in str(told.value)


def test_the_values_of_a_plan_are_read_as_on_a_command_line(tmp_path):
    path = plan(tmp_path / "plan.toml", "[options]\nthreshold = [0, 1]\nnum_agents = 2")
    assert cmpg("sweep", path, "--out", tmp_path / "run").code == 0
    assert load_sweep(tmp_path / "run").grid.axes == {"threshold": (0.0, 1.0)}
    assert json.loads((tmp_path / "run" / "request.json").read_text())["options"]["num_agents"] == 2
    plan(path, "[options]\nnum_agents = [2, 2.5]")
    refused = cmpg("sweep", path, "--out", tmp_path / "other")
    assert (refused.code, refused.err) == (2, "error: --agents is '2.5'; a whole number is required.\n")


def test_a_day_of_a_plan_may_stand_without_quotes(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text('scenario = "charging"\n[options]\nday = [2019-06-10, 2019-06-11]\n')
    assert cmpg("sweep", path, "--out", tmp_path / "run").code == 1  # the samples are of another year
    assert load_sweep(tmp_path / "run").grid.axes == {"day": ("2019-06-10", "2019-06-11")}


def test_lists_in_lists_in_lists_are_no_values():
    with pytest.raises(CMPGError, match=r"threshold has .* to sweep over"):
        sweeps.sweep("spectrum", {"threshold": [[0.1, [0.2]]]})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "whole"
    sweeps.sweep("spectrum", {"threshold": [0.1, 0.2], "num_agents": 2}, out=folder)
    return folder


@pytest.fixture
def swept(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "sweep")


def change(path, **fields):
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"run": 1}, "is the row of run 1"),
        ({"run": "first"}, "run is 'first'; a whole number"),
        ({"status": "WONDERFUL"}, "one of CERTIFIED"),
        ({"message": ["a"]}, "a list of names is required"),
        ({"costs": [[0.1]]}, "a plain list of numbers is required"),
        ({"prices": ["cheap"]}, "prices"),
        ({"envelopes": 3}, "an object with named entries is required"),
        ({"welfare": "much"}, "welfare"),
        ({"options": {"threshold": 0.3}}, "run 0 is not in the grid of request.json"),
        ({"options": {}}, "is not in the grid of request.json"),
    ],
)
def test_a_row_that_is_not_one_of_the_sweep_is_refused(fields, complaint, swept):
    change(swept / "runs" / "0000" / "row.json", **fields)
    with pytest.raises(FileError, match=complaint) as told:
        load_sweep(swept)
    assert str(swept) in str(told.value)


def test_a_row_without_a_field_is_refused(swept):
    path = swept / "runs" / "0001" / "row.json"
    path.write_text(
        json.dumps({name: value for name, value in json.loads(path.read_text()).items() if name != "moves"})
    )
    with pytest.raises(FileError, match=r"row\.json: the field 'moves' is missing"):
        load_sweep(swept)


def test_a_row_that_says_more_than_its_run_proves_is_refused(swept):
    change(swept / "runs" / "0000" / "row.json", welfare=100.0)
    assert load_sweep(swept).rows[0].welfare == 100.0
    with pytest.raises(FileError, match=r"its row\.json is not what the run in it proves"):
        proved_sweep(swept)


@pytest.mark.parametrize("fields", [{"options": [1]}, {"options": {"threshold": [{}]}}, {"options": {"threshold": []}}])
def test_a_request_that_is_not_one_of_a_sweep_is_refused(fields, swept):
    change(swept / "request.json", **fields)
    with pytest.raises(FileError, match=r"request\.json: .* Sweep again"):
        load_sweep(swept)


def test_what_is_no_sweep_is_not_read_as_one(swept):
    change(swept / "request.json", command="learn")
    with pytest.raises(FileError, match="holds no sweep"):
        load_sweep(swept)
