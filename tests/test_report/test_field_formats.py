"""Decisions in the formats of their fields, and tables for papers."""

import csv
import io
import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

import cmpg
from cmpg.errors import UnsupportedError
from cmpg.report.field_formats import FIELD_FORMATS
from cmpg.report.formats import rows_text
from cmpg.report.tables import rows_of
from command_line import cmpg as command


def document(result, form):
    return FIELD_FORMATS[form][1](result)


@pytest.fixture(scope="module")
def robots():
    return cmpg.solve(cmpg.scenarios.robots(num_agents=4))


@pytest.fixture(scope="module")
def cars():
    return cmpg.solve(cmpg.scenarios.charging(slot=30, min_rate=3.3, success=1.0))


def test_a_plan_of_robots_begins_at_the_starts_and_moves_one_cell_at_a_time(robots):
    text = document(robots, "mapf")
    head = dict(line.split("=", 1) for line in text.splitlines()[:8])
    steps = text.split("solution=\n")[1].splitlines()
    cells = [eval(f"[{line.split(':', 1)[1]}]") for line in steps]
    world = robots.game.legend
    assert cells[0] == eval(f"[{head['starts']}]")
    assert cells[-1] == [world.places[goal] for goal in world.goals]
    for before, after in itertools.pairwise(cells):
        assert all(abs(x - u) + abs(y - v) <= 1 for (x, y), (u, v) in zip(before, after, strict=True))
    assert (head["agents"], head["solved"], head["collisions"]) == ("4", "1", "0")
    assert int(head["makespan"]) == len(steps) - 1
    arrivals = [max([h + 1 for h, row in enumerate(cells) if row[i] != cells[-1][i]], default=0) for i in range(4)]
    assert (int(head["soc"]), int(head["makespan"])) == (sum(arrivals), max(arrivals))


def test_a_move_after_the_last_step_that_counts_is_no_part_of_a_plan():
    """At the last step every action is worth the same: this robot leaves its goal there."""
    game = cmpg.scenarios.robots(num_agents=1, horizon=30, success=1.0)
    result = cmpg.solve(game)
    state, away = game.legend.goals[0], [name != "stay" for name in game.legend.actions].index(True)
    policy = result.policy[0].copy()
    policy[-1, state] = np.eye(policy.shape[2])[away]
    moved = replace(result, incumbent=replace(result.incumbent, policy=result.policy.replace(0, policy)))
    assert document(moved, "mapf") == document(result, "mapf")
    assert "solved=1" in document(moved, "mapf")


def test_schedules_of_robots_have_coordinates(robots):
    row = rows_of(robots, "schedule")[0]
    assert row["cell"] == f"({row['x']}, {row['y']})"
    assert {"travel time (steps)"} <= set(rows_of(robots, "outcomes")[0])


def test_measures_of_robots_are_those_of_path_finding(robots):
    found = {row["measure"]: row["value"] for row in rows_of(robots, "measures")}
    assert found["sum of costs"] == pytest.approx(-robots.values.sum())
    assert found["arrival share"] == pytest.approx(1.0, abs=1e-3)
    # By drawing whole episodes: when has the last robot arrived?
    game, rng = robots.game, np.random.default_rng(0)
    last = []
    for _ in range(400):
        arrived = []
        for i, agent in enumerate(game.agents):
            state, when = int(np.argmax(agent.initial)), 0
            while state != game.legend.goals[i] and when < game.horizon:
                a = int(rng.choice(5, p=robots.policy[i][when, state]))
                row = agent.transition[0][[state * 5 + a]].toarray()[0]
                state, when = int(rng.choice(len(row), p=row)), when + 1
            arrived.append(when)
        last.append(max(arrived))
    assert found["makespan"] == pytest.approx(np.mean(last), abs=5 * np.std(last) / 20)
    assert found["all arrived (90%)"] == pytest.approx(np.quantile(last, 0.9), abs=1.5)


def test_a_charging_profile_delivers_the_energy_of_the_plan(cars):
    profiles = json.loads(document(cars, "ocpp"))
    assert len(profiles) == 24
    outcomes = {row["car"]: row["energy (kWh)"] for row in rows_of(cars, "outcomes")}
    for each in profiles:
        schedule = each["csChargingProfiles"]["chargingSchedule"]
        assert (schedule["startSchedule"], schedule["chargingRateUnit"]) == ("2024-03-12T00:00:00", "W")
        periods = schedule["chargingSchedulePeriod"]
        ends = [period["startPeriod"] for period in periods[1:]] + [schedule["duration"]]
        allowed = sum(
            period["limit"] * (end - period["startPeriod"]) for period, end in zip(periods, ends, strict=True)
        )
        assert periods[0]["startPeriod"] == 0
        assert {period["limit"] for period in periods} <= {0.0, 3300.0, 6600.0}
        assert each["station"] in each["car"]
        # A limit is for whole slots, of which a car may need a part.
        assert allowed / 3.6e6 >= outcomes[each["car"]] - 2.0


def test_pilot_signals_add_up_the_parts_of_a_car(cars):
    rows = rows_of(cars, "pilot")
    assert len(rows) == 24 * 48
    assert {row["power (kW)"] for row in rows} == {0.0, 3.3, 6.6}


def test_links_are_lines_between_their_nodes():
    result = cmpg.solve(cmpg.scenarios.routing(mode="static"))
    places = result.game.legend.places
    features = json.loads(document(result, "geojson"))["features"]
    assert len(features) == 28
    for each in features:
        ends = each["properties"]["from"] - 1, each["properties"]["to"] - 1
        assert each["geometry"] == {"type": "LineString", "coordinates": [list(places[end]) for end in ends]}


def test_what_a_game_does_not_have_is_refused(cars, robots):
    for result, form in ((cars, "mapf"), (cars, "geojson"), (robots, "ocpp")):
        with pytest.raises(UnsupportedError, match="has no "):
            document(result, form)


@pytest.mark.parametrize("form", ["latex", "markdown"])
def test_tables_for_papers_have_the_numbers_of_the_csv(cars, form):
    rows = rows_of(cars, "outcomes")
    rows[0] = {**rows[0], "car": "A & B_1 | C"}
    text = rows_text(rows, form)
    numbers = list(csv.DictReader(io.StringIO(rows_text(rows, "csv"))))
    lines = [line for line in text.splitlines() if "car " in line or "A " in line][1:]
    assert len(lines) == len(numbers) == 24
    mark = "&" if form == "latex" else "|"
    cells = [cell.strip(" \\|") for cell in lines[1].strip("| ").split(mark)]
    assert float(cells[1]) == pytest.approx(float(numbers[1]["value"]), rel=1e-5)
    assert ("A \\& B\\_1 | C" if form == "latex" else "A & B_1 \\| C") in lines[0]


def test_exports_are_written_in_the_formats_of_their_fields(tmp_path, robots):
    robots.save(tmp_path / "run")
    said = command("export", tmp_path / "run", "--format", "mapf", "--out", tmp_path / "plan.txt")
    assert said.out == f"written to {tmp_path / 'plan.txt'}\n"
    assert (tmp_path / "plan.txt").read_text() == document(robots, "mapf")
    assert "mapf is a format of plan" in command("export", tmp_path / "run", "--what", "loads", "--format", "mapf").err
    assert "has no links" in command("export", tmp_path / "run", "--what", "links").err


def test_both_works_are_cited():
    text = cmpg.cite()
    assert text.count("@") == 2
    assert f"version = {{{cmpg.__version__}}}" in text
    assert command("cite").out == text
