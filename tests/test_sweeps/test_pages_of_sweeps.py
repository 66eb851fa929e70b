"""What a sweep says where runs failed, where nothing can be spent, and where more is not better."""

import csv

import numpy as np
import pytest

import cmpg as library
from cmpg import sweeps
from cmpg.errors import CMPGError, GameError
from cmpg.report.sweep_page import sweep_context, sweep_summaries
from cmpg.summaries import summary_text
from cmpg.sweeps.grid import Grid
from cmpg.sweeps.rows import Sweep, SweepRow, proved_sweep
from cmpg.sweeps.worth import curves, worth_of_options

CLOSED = set()
"""Widths that cannot be built."""


def lanes(width, bonus=0.0):
    """One agent and two lanes."""
    if width in CLOSED:
        raise GameError(f"no lane has a width of {width}.")
    return library.JointGame(
        transition=np.ones((1, 1, 2, 1)),
        rewards=np.array([0.0, width + bonus]).reshape(1, 1, 1, 2),
        costs=np.zeros((0, 1, 1, 2)),
        thresholds=[],
        initial=[1.0],
        horizon=1,
    )


def test_a_run_that_went_wrong_is_tried_again_when_the_sweep_is_resumed(tmp_path):
    CLOSED.add(3)
    first = sweeps.sweep(lanes, {"width": [2, 3]}, out=tmp_path / "run")
    assert [row.status for row in first.rows] == ["CERTIFIED", "ERROR"]
    assert first.rows[1].message == "no lane has a width of 3."
    assert first.rows[0].envelopes == {}  # the neighbour could not be built, so nothing is known of the margin
    assert [row.status for row in proved_sweep(tmp_path / "run").rows] == ["CERTIFIED", "ERROR"]
    CLOSED.clear()
    again = sweeps.sweep(lanes, {"width": [2, 3]}, out=tmp_path / "run", resume=True)
    assert [row.status for row in again.rows] == ["CERTIFIED", "CERTIFIED"]
    assert len(list((tmp_path / "run" / "runs").iterdir())) == 2


def test_an_infeasible_run_has_no_envelope_and_no_place_on_a_curve():
    def limited(threshold):
        return library.scenarios.counter_example(threshold=threshold)

    found = sweeps.sweep(limited, {"threshold": [-1.0, 0.25, 0.5]})
    assert [row.status for row in found.rows] == ["INFEASIBLE", "CERTIFIED", "CERTIFIED"]
    assert found.rows[0].envelopes == {}
    assert found.rows[0].welfare is None
    [curve] = curves(found, "threshold")
    assert curve.x == [0.25, 0.5]
    assert set(worth_of_options(found)["threshold"]) == {1}


def test_a_list_that_is_the_same_in_all_runs_is_one_value(tmp_path):
    grid = {"weights": (0.5, 0.25), "seed": [1, 2], "num_agents": 2}
    found = sweeps.sweep("congestion-counting", grid, out=tmp_path / "run")
    again = sweeps.load_sweep(tmp_path / "run")
    assert again.grid.fixed["weights"] == (0.5, 0.25)
    assert again.grid.axes == found.grid.axes == {"seed": (1, 2)}


def test_too_many_runs_and_none_are_refused():
    with pytest.raises(CMPGError, match="the grid has 1,000,000 runs; at most 100,000 are swept over at once"):
        Grid.of({"one": range(1000), "two": range(1000)})
    with pytest.raises(CMPGError, match="width has no values to sweep over"):
        Grid.of({"width": []})


def rows_of(welfare, **fields):
    return tuple(
        SweepRow(x, {"x": x}, "CERTIFIED" if each is not None else "INFEASIBLE", "", welfare=each, **fields)
        for x, each in enumerate(welfare)
    )


def told(welfare, **fields):
    found = Sweep("mine", Grid.of({"x": range(len(welfare))}), rows_of(welfare, **fields))
    return sweep_context(found)


def test_a_level_curve_has_no_knee():
    assert sweeps.SweepCurve("x", {}, rows_of([2.0] * 5)).knee is None


def test_a_sweep_without_any_policy_has_no_charts():
    context, [group] = told([None, None])
    assert group.charts == []
    assert context["verdict"].sentence == "0 of 2 runs are certified; the others ended INFEASIBLE."


def test_a_curve_that_falls_says_why_that_can_be():
    _, [falling] = told([1.0, 0.5, 2.0], carried={"x": 0.9})
    assert "play another equilibrium" in falling.charts[0].caption
    for values, carried in (([0.5, 1.0, 2.0], {"x": 0.9}), ([1.0, 0.5, 2.0], {}), ([1.0, 0.5, 2.0], {"x": 0.4})):
        _, [other] = told(values, carried=carried)
        assert "play another equilibrium" not in other.charts[0].caption


def test_prices_are_drawn_where_there_are_constraints():
    assert [chart.name for chart in told([1.0, 2.0])[1][0].charts] == ["sweep-value", "sweep-worth"]
    priced = told([1.0, 2.0], prices=(0.5,), costs=(0.1,), thresholds=(0.1,))
    assert [chart.name for chart in priced[1][0].charts] == ["sweep-value", "sweep-worth", "sweep-price"]
    assert "there is no price" not in priced[1][0].charts[2].caption
    hard = told([1.0, 2.0], prices=(np.inf,), costs=(0.0,), thresholds=(0.0,))
    assert "Where nothing may be spent there is no price" in hard[1][0].charts[2].caption


def test_the_numbers_of_a_large_map_are_left_to_its_colours():
    for size, numbered in ((3, True), (12, False)):
        rows = tuple(
            SweepRow(run, {"x": run // 2, "y": run % 2}, "CERTIFIED", "", welfare=float(run)) for run in range(2 * size)
        )
        _, groups = sweep_context(Sweep("mine", Grid.of({"x": range(size), "y": [0, 1]}), rows))
        charts = [chart for group in groups for chart in group.charts if chart.name == "sweep-map"]
        assert [chart.figure["data"][0]["written"] for chart in charts] == [numbered]


def test_a_long_sweep_is_told_in_part(tmp_path):
    found = Sweep("mine", Grid.of({"x": range(60)}), rows_of([float(x) for x in range(50)]))
    [summary] = sweep_summaries(found)
    assert summary.sentence == "50 of 50 runs are certified, 10 are missing"
    assert "… and 10 runs more, in results.csv" in summary.parts


def test_results_have_a_line_for_runs_of_any_number_of_constraints(tmp_path):
    sweeps.sweep(lanes, {"width": [2, 5]}, out=tmp_path / "run")
    lines = list(csv.DictReader((tmp_path / "run" / "results.csv").read_text().splitlines()))
    assert [line["welfare"] for line in lines] == ["2.0", "5.0"]
    assert lines[0]["worth of width"] == "1.0"


def test_options_are_named_as_on_the_command_line_and_failed_runs_say_why():
    found = sweeps.sweep("robots", {"num_agents": [2, 3], "horizon": 12})
    said = "\n".join(map(summary_text, sweep_summaries(found)))
    assert "worth of agents" in said
    assert "num_agents" not in said
    assert said.count("cannot be reached") == 1  # both runs have one reason
