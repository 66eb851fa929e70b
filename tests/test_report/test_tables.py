"""Tables that leave the library: names and units, the numbers of the game, and a policy that others can follow."""

import csv
import io
import json
import random
from dataclasses import replace

import numpy as np
import pytest

import cmpg
from cmpg import scenarios
from cmpg.errors import CMPGError, GameError, UnsupportedError
from cmpg.files.games import load_game, save_game
from cmpg.games.names import Amount, Legend, legend_of, legend_record
from cmpg.games.players import PolicyTable
from cmpg.policy import JointPolicy
from cmpg.report.formats import rows_text, write_rows
from cmpg.report.tables import TABLES, Itinerary, decisions_summary, found_agent, rows_of, strip
from cmpg.scenarios.charging_site import charging_day
from command_line import cmpg as run

LOCAL = ("charging", "robots", "routing")


@pytest.fixture(scope="module")
def results():
    return {
        name: cmpg.solve(scenarios.scenario(name).build(), epsilon=1e-2)
        for name in (*LOCAL, "spectrum", "congestion-counting")
    }


@pytest.mark.parametrize("name", LOCAL)
def test_a_schedule_has_names_and_units_and_no_numbers_of_states(name, results):
    row = rows_of(results[name], "schedule")[0]
    legend = results[name].game.names.legend
    assert [legend.agent, legend.step] == list(row)[:2]
    assert row[legend.agent] == results[name].game.names.agent(0)
    assert 0 < row["probability"] <= 1


def test_the_energy_of_a_schedule_is_what_the_cars_get(results):
    result = results["charging"]
    scheduled = {}
    for row in rows_of(result, "schedule"):
        scheduled[row["car"]] = scheduled.get(row["car"], 0) + row["expected energy (kWh)"]
    seen = cmpg.simulate(result.game, result.policy, 2, rng=np.random.default_rng(1))
    assert seen.agrees is not None
    for i, row in enumerate(rows_of(result, "outcomes")):
        assert row["energy (kWh)"] == pytest.approx(scheduled[row["car"]])
        asked = charging_day().sessions[i].energy
        assert row["energy (kWh)"] + row["energy missing (kWh)"] == pytest.approx(asked)
        # What is paid, and what missing energy is worth, are the value.
        assert -row["cost"] - 2.0 * row["energy missing (kWh)"] / 6.6 == pytest.approx(row["value"])


def test_robots_arrive_in_episodes_when_their_outcomes_say(results):
    result = results["robots"]
    game, goals = result.game, result.game.names.legend.goals
    stepper, rng = game.stepper(), np.random.default_rng(1)
    states, table = stepper.begin(4000, rng), PolicyTable.of(result.policy)
    first = np.full((game.num_agents, 4000), game.horizon + 1)
    for h in range(game.horizon):
        first = np.where(states == np.array(goals)[:, None], np.minimum(first, h), first)
        states = stepper.step(h, states, table.draw(h, states, rng), rng).states
    for row, steps in zip(rows_of(result, "outcomes"), first, strict=True):
        assert row["arrival step (mean)"] == pytest.approx(steps.mean(), abs=5 * steps.std() / np.sqrt(4000) + 1e-9)
        arrives = float(row["arrives (probability)"])
        spread = 5 * np.sqrt(arrives * (1 - arrives) / 4000)
        assert np.mean(steps <= game.horizon) == pytest.approx(arrives, abs=spread + 1e-9)
        assert (steps <= row["arrived by (90%)"]).mean() > 0.88


def test_a_robot_that_leaves_its_goal_arrives_only_once():
    game = scenarios.robots(num_agents=1)
    goal = game.names.legend.goals[0]
    way = Itinerary(game.at(game.uniform_policy()).induced_cmdp(0), game.uniform_policy()[0])
    found = way.first_arrivals(goal)
    assert found.sum() <= 1
    assert found.sum() < way.visits.sum(axis=2)[:, goal].sum()
    assert (found >= 0).all()
    assert way.final.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", LOCAL)
def test_the_loads_of_every_step_are_distributions(name, results):
    totals = {}
    for row in rows_of(results[name], "loads"):
        place = tuple(row.values())[:2]
        totals[place] = totals.get(place, 0) + row["probability"]
    assert totals
    assert all(total == pytest.approx(1.0, abs=1e-6) for total in totals.values())


def test_games_on_a_joint_state_have_no_loads(results):
    with pytest.raises(UnsupportedError, match="has no loads"):
        rows_of(results["spectrum"], "loads")


@pytest.mark.parametrize("name", ["spectrum", "congestion-counting"])
def test_a_joint_schedule_sums_to_one_for_every_agent_and_step(name, results):
    totals = {}
    for row in rows_of(results[name], "schedule"):
        key = (row["step"], row["agent"])
        totals[key] = totals.get(key, 0) + row["probability"]
    assert all(total == pytest.approx(1.0) for total in totals.values())


def test_an_unknown_table_names_those_there_are(results):
    with pytest.raises(CMPGError, match=r"there are schedule, policy, .*, links, pilot, plan, measures, trace"):
        rows_of(results["spectrum"], "loaded")


@pytest.mark.parametrize("what", sorted(set(TABLES) - {"links", "plan"}))  # of roads, and of robots
def test_a_result_becomes_a_frame(what, results):
    pandas = pytest.importorskip("pandas")
    frame = results["charging"].to_frame(what)
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == len(rows_of(results["charging"], what))


def follow(text, episodes, seed):
    """Follow an exported policy without the library: a stay from 07:03:59 to 12:58:01 that needs 26.149 kWh."""
    rules = {}
    for row in csv.DictReader(io.StringIO(text)):
        if row["agent"] == "0":
            rules.setdefault((row["step_name"], row["state_name"]), []).append((row["action_name"], row["probability"]))
    offers = {7: 6.6 * (3600 - 239) / 3600, 8: 6.6, 9: 6.6, 10: 6.6, 11: 6.6, 12: 6.6 * 3481 / 3600}
    rng = random.Random(seed)
    delivered = 0.0
    for _ in range(episodes):
        needed = 26.149
        for hour in range(24):
            names, weights = zip(*rules[f"{hour:02}:00", f"{needed:.6g} kWh"], strict=True)
            if rng.choices(names, list(map(float, weights)))[0] == "charge" and rng.random() < 0.9:
                needed = max(0.0, needed - offers.get(hour, 0.0))
        delivered += 26.149 - needed
    return delivered / episodes


def test_another_program_can_follow_the_exported_policy(tmp_path):
    assert run("solve", "charging", "--out", tmp_path / "run").code == 0
    text = run("export", tmp_path / "run", "--what", "policy").out
    outcome = json.loads(run("export", tmp_path / "run", "--what", "outcomes", "--format", "json").out)[0]
    assert follow(text, 4000, 1) == pytest.approx(outcome["energy (kWh)"], abs=0.2)


def test_tables_are_written_in_three_formats_and_never_over_another_file(tmp_path, results):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rows = rows_of(results["charging"], "outcomes")
    for form in ("csv", "json", "parquet"):
        write_rows(rows, tmp_path / f"table.{form}", form)
        with pytest.raises(CMPGError, match="is there already"):
            write_rows(rows, tmp_path / f"table.{form}", form)
    back = [pandas.read_csv(tmp_path / "table.csv"), pandas.read_json(tmp_path / "table.json")]
    for frame in (*back, pandas.read_parquet(tmp_path / "table.parquet")):
        assert list(frame.columns) == list(rows[0])
        assert frame["value"].tolist() == pytest.approx([row["value"] for row in rows])


def test_an_empty_table_has_no_rows():
    assert rows_text([], "csv").strip() == ""
    assert json.loads(rows_text([], "json")) == []


def test_parquet_needs_a_file(tmp_path):
    assert run("solve", "counter-example", "--out", tmp_path / "run").code == 0
    told = run("export", tmp_path / "run", "--format", "parquet")
    assert (told.code, "--out" in told.err) == (2, True)


@pytest.mark.parametrize("name", [*LOCAL, "spectrum", "grid-world-local", "congestion"])
def test_showing_a_run_says_who_does_what(name, tmp_path):
    options = ["--epsilon", 10] if name == "congestion" else []
    assert run("solve", name, *options, "--out", tmp_path / "run").code == 0
    told = run("show", tmp_path / "run")
    assert told.code == 0
    names = cmpg.load_run(tmp_path / "run").game.names
    assert names.agent(0) in told.out
    assert "state 0" not in told.out
    one = run("show", tmp_path / "run", "--agent", "1", "--step", "0")
    assert one.code == 0
    assert names.agent(1) in one.out
    assert names.agent(0) not in one.out


def test_show_lists_everybody_if_asked(results):
    few, everybody = (decisions_summary(results["charging"], all_rows=each) for each in (False, True))
    assert (len(few.parts[0].rows), len(everybody.parts[0].rows)) == (12, 24)
    assert "--all" in few.parts[0].note
    assert not everybody.parts[0].note


def test_agents_are_found_by_name_by_its_beginning_and_by_number(results):
    game = results["charging"].game
    assert found_agent(game, "car 3 at P-04") == found_agent(game, "car 3 ") == found_agent(game, "3") == 3
    for word in ("car", "tram", "24"):
        with pytest.raises(CMPGError, match="a name such as 'car 0 at P-01', or a number from 0 to 23"):
            found_agent(game, word)
    with pytest.raises(CMPGError, match="there is no step 24"):
        decisions_summary(results["charging"], step=24)


def test_strips_are_higher_where_it_is_likelier():
    assert strip(np.array([0, 0.004, 0.006, 0.124, 0.126, 0.5, 0.99, 1])) == "··▁▁▂▄██"


def test_acting_draws_from_the_policys_own_row(results):
    policy = results["charging"].policy
    rng = np.random.default_rng(1)
    for agent, (steps, states, _) in enumerate(policy.shapes[:6]):
        for step in range(steps):
            for state in range(states):
                assert np.array_equal(policy.row(agent, step, state), policy[agent][step, state])
                assert policy[agent][step, state, policy.act(agent, step, state, rng)] > 0
    large = JointPolicy((np.where(np.arange(3) == 1, 1.0, 0.0) * np.ones((60, 100, 1)),))
    assert {large.act(0, h, 7, rng) for h in range(80)} == {1}  # beyond its steps, the last one goes on
    draws = [JointPolicy(([[[0.25, 0.75]]],)).act(0, 0, 0, rng) for _ in range(2000)]
    assert np.mean(draws) == pytest.approx(0.75, abs=0.05)
    with pytest.raises(CMPGError, match="has no state 100"):
        large.act(0, 0, 100, rng)


@pytest.mark.parametrize("kind", ["json", "npz"])
def test_words_and_units_are_kept_in_game_files(kind, tmp_path):
    game = scenarios.charging()
    save_game(game, tmp_path / f"game.{kind}")
    assert load_game(tmp_path / f"game.{kind}").names == game.names
    assert game.names.legend.need == Amount("energy", "kWh")


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ({"colour": "red"}, "legend has colour"),
        ({"agent": 3}, "a word is required"),
        ({"steps": ["a", 1]}, r"legend.steps\[1\] is 1; a word is required"),
        ({"need": {"unit": "kWh"}}, "legend.need has no name"),
        ({"need": {"name": "energy", "each": float("nan")}}, "legend.need.each is nan; a finite number is required"),
        ({"translation": [["read", "a file", "of mine"]]}, r"legend.translation\[0\] is .*; 2 entries are required"),
        ({"goals": [True]}, "a whole number"),
        ({"places": [[0.0, 1.0], [2.0]]}, r"legend.places\[1\] is .*; 2 entries"),
        ({"roads": {"ends": [[1, 2]]}}, "legend.roads has no free_flow_time"),
        ({"goals": [0.5]}, r"legend.goals\[0\] is 0.5; a whole number"),
        ({"unpaid": "much"}, "a finite number"),
        ({"actions_by_state": ["wait"]}, r"legend.actions_by_state\[0\] is 'wait'; a list is required"),
        ([], "legend has list"),
    ],
)
def test_a_legend_that_is_none_is_refused(record, told):
    with pytest.raises(GameError, match=told):
        legend_of(record)


def test_a_legend_must_fit_its_game():
    game = scenarios.robots(num_agents=2)
    assert legend_of(legend_record(game.legend)) == game.legend
    for wrong, told in (
        (replace(game.legend, goals=(0,)), "legend.goals"),
        (replace(game.legend, goals=(0, 10**6)), "legend.goals"),
        (replace(game.legend, steps=("one",)), "legend.steps has 1 names; 60 are required"),
        (Legend(actions_by_state=(("stay",),)), "fewer than 5 actions"),
        (Legend(needs=((1.0, -1.0),), needs_of=(0, 0)), "legend.needs is .*; numbers of at least 0"),
    ):
        with pytest.raises(GameError, match=told):
            replace(game, legend=wrong)
