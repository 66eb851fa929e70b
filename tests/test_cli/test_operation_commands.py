"""`cmpg replan` and `cmpg operate`, as a newcomer would use them, with wrong words too."""

import json

import pytest

from cmpg.files.plan_folder import load_plan
from cmpg.report.tables import rows_of
from command_line import cmpg


@pytest.fixture(scope="module")
def morning(tmp_path_factory):
    folder = tmp_path_factory.mktemp("day") / "morning"
    assert cmpg("solve", "charging", "--epsilon", "1e-3", "--out", folder).code == 0
    return folder


def test_a_plan_is_made_again_from_its_folder_and_again_from_that(morning, tmp_path):
    seen = tmp_path / "now.csv"
    seen.write_text("agent,state\ncar 1,0\n3,7.0\ncar 5 at P-06,left\n")
    noon, late = tmp_path / "noon", tmp_path / "late"
    done = cmpg("replan", morning, "--at", "11:00", "--observed", seen, "--spent", "0.1", "--out", noon)
    assert done.code == 0, done.err
    assert "from 11:00 on" in done.out
    assert "does not cover the whole day" in done.out
    assert "car 3 at P-04: 7.0 is taken as" in done.err
    assert "left" in done.out
    plan, run = load_plan(noon)
    assert plan.at == 11
    assert plan.budget.spent.tolist() == [0.1]
    assert run.game.num_agents == 23
    assert run.game.agents[1].initial[0] == 1
    again = cmpg("replan", noon, "--at", "14:00", "--change", "capacity=6", "--out", late, "--json")
    assert again.code == 0, again.err
    record = json.loads(again.out)
    assert record["at"] == 14
    assert record["thresholds"] == [0.5]
    assert record["planned"][0] <= record["allowed"][0]
    assert cmpg("show", late).code == 0
    assert cmpg("report", noon).code == 0
    page = (noon / "report.html").read_text()
    assert "The certificate is about the rest of the day from 11:00 on" in page
    assert "The budget of the day" in page
    assert page.count('<th scope="row">car 5 at P-06</th>') == 1  # it left: among the changes alone
    assert load_plan(late)[0].at == 14


def test_an_incident_closes_a_link(tmp_path):
    city, again, late = tmp_path / "city", tmp_path / "again", tmp_path / "late"
    assert cmpg("solve", "routing", "--out", city).code == 0
    before = rows_of(load_plan(city)[1].result, "links")
    # Some step after the first at which the plan in force uses the road between 3 and 5.
    assert any(row["link"] == "3→5" and row["step"] != "0" for row in before)
    done = cmpg("replan", city, "--at", "1", "--close", "3-5", "--out", again)
    assert done.code in (0, 1), done.err
    assert not any(row["link"] == "3→5" for row in rows_of(load_plan(again)[1].result, "links"))
    more = cmpg("replan", again, "--at", "2", "--close", "3→5", "--close", "8-10", "--out", late)
    assert more.code in (0, 1), more.err
    assert not {"3→5", "8→10"} & {row["link"] for row in rows_of(load_plan(late)[1].result, "links")}
    wrong = cmpg("replan", city, "--at", "1", "--close", "3-99", "--out", tmp_path / "wrong")
    assert wrong.code == 2
    assert "there is no resource '3-99'" in wrong.err


def test_wrong_words_of_a_new_plan_are_explained(morning, tmp_path):
    out, seen = tmp_path / "out", tmp_path / "now.csv"
    for text, words, found in (
        ("agent,state\n", ["--at", "9 o'clock"], "a time such as 00:00 or 23:00"),
        ("who,what\n", ["--at", "9"], "the columns are: who, what; missing: agent, state"),
        ("agent,state\nbo,1\n", ["--at", "9"], "there is no agent 'bo'"),
        ("agent,state\ncar,1\n", ["--at", "9"], "line 2: 24 agents begin with 'car'; give a name such as"),
        ("agent,state\n1,1000\n", ["--at", "9"], "it needs between 0 and"),
        ("agent,state\n1,full\n", ["--at", "9"], "has no state 'full'"),
        ("agent,state\n1\n", ["--at", "9"], "line 2: there is 1 field; the first line names 2 columns"),
        ("agent,state\n", ["--at", "9", "--change", "size=3"], "has no option 'size'"),
        ("agent,state\n", ["--at", "9", "--change", "size"], "an option and its value"),
        ("agent,state\n", ["--at", "9", "--spent", "much"], "numbers separated by commas"),
        ("agent,state\n", ["--at", "9", "--release", "1"], "is left of the reserve"),
    ):
        seen.write_text(text)
        done = cmpg("replan", morning, *words, "--observed", seen, "--out", out)
        assert done.code == 2, done.out
        assert found in done.err
        assert not out.exists()


def test_a_damaged_operation_file_is_refused(morning, tmp_path):
    noon = tmp_path / "noon"
    assert cmpg("replan", morning, "--at", "12", "--out", noon).code == 0
    path = noon / "operation.json"
    whole = json.loads(path.read_text())
    for field, value, found in (
        ("reserve", [-1.0], "below 0"),
        ("at", "noon", "a whole number"),
        ("spent", [1, 2], "spent"),
        ("changes", [1], "operation.json"),
    ):
        path.write_text(json.dumps({**whole, field: value}))
        done = cmpg("replan", noon, "--at", "13", "--out", tmp_path / "late")
        assert done.code == 2
        assert found in done.err
    path.write_text(json.dumps({name: value for name, value in whole.items() if name != "promised"}))
    assert "'promised' is missing" in cmpg("replan", noon, "--at", "13", "--out", tmp_path / "late").err


def test_a_recorded_day_is_operated():
    done = cmpg("operate", "charging", "--json", "--seed", "3")
    assert done.code == 0, done.err
    record = json.loads(done.out)
    (day,) = record["days"]
    assert record["certified"]
    assert day["agents"] == 24
    assert day["plans"] == len(day["cpu_seconds"]) > 5
    assert day["thresholds"] == [0.5]
    shown = cmpg("operate", "charging", "--known", "morning")
    assert "all of them certified" in shown.out
    assert "clairvoyant" in shown.out


def test_an_incident_closes_a_link_of_an_operated_day():
    done = cmpg("operate", "routing", "--agents", "4", "--close", "1-2@1", "--json")
    assert done.code == 0
    (day,) = json.loads(done.out)["days"]
    assert day["plans"] >= 2, "a plan is made when the link is closed"
    assert "a name and a time are required" in cmpg("operate", "routing", "--close", "1-2").err
    assert "there is no resource 'x'" in cmpg("operate", "routing", "--agents", "2", "--close", "x@1").err
    assert "the day has the steps" in cmpg("operate", "routing", "--agents", "2", "--close", "1-2@99").err


def test_a_robot_that_arrives_gets_its_next_goal():
    done = cmpg("operate", "robots", "--agents", "2", "--horizon", "24", "--lifelong", "--json")
    assert done.code == 0
    found = json.loads(done.out)
    assert found["certified"]
    assert sorted(found["completed"]) == ["robot 0", "robot 1"]
    assert sum(found["completed"].values()) > 2, "more tasks than first goals"
    assert "tasks completed" in cmpg("operate", "robots", "--agents", "2", "--horizon", "16", "--lifelong").out
    assert "one run of robots" in cmpg("operate", "charging", "--lifelong").err


def test_what_cannot_be_operated_is_refused():
    assert "has no days" in cmpg("operate", "robots", "--days", "3").err
    assert "the first of them is required" in cmpg("operate", "charging", "--days", "3").err
    assert "states of their own are required" in cmpg("operate", "spectrum").err
