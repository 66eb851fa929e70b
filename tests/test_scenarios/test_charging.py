"""Charging: against brute force on the joint state, by hand, on a real day, and what is refused."""

import json
import math
from datetime import date, datetime

import numpy as np
import pytest
from by_brute_force import DATA, assert_agrees, each_alone, needs_data

from cmpg import solve
from cmpg.errors import FileError, GameError
from cmpg.policy import JointPolicy
from cmpg.report.tables import rows_of
from cmpg.scenarios.car_charging import charging
from cmpg.scenarios.charging_site import charging_day, stay_of
from cmpg.scenarios.readers.acn import Session, read_sessions
from command_line import cmpg

HEADER = "arrival,departure,requested_energy (kWh),delivered_energy (kWh),station_id,session_id\n"
CARS = HEADER + (
    "2024-01-02 07:59:00,2024-01-02 09:00:00,9,13.2,P,a\n"
    "2024-01-02 22:10:00,2024-01-03 04:00:00,9,30,Q,b\n"
    "2024-01-02 21:10:00,2024-01-02 23:00:01,9,6.7,P,c\n"
    "2024-01-02 10:00:00,2024-01-02 11:00:00,9,0,P,empty\n"
    "2024-01-03 10:00:00,2024-01-03 11:00:00,9,5,P,tomorrow\n"
)
WINDOWS, NEEDS = [(7, 9), (22, 24), (21, 24)], [2, 2, 2]


@pytest.fixture
def cars(tmp_path):
    path = tmp_path / "cars.csv"
    path.write_text(CARS)
    return path


def charging_step(h, units, actions, *, groups, capacities):
    charges = [
        a == 1 and u > 0 and first <= h < end for a, u, (first, end) in zip(actions, units, WINDOWS, strict=True)
    ]
    loads = [sum(charges[i] for i in group) for group in groups]
    load_of = {i: load for group, load in zip(groups, loads, strict=True) for i in group}
    price = 0.12 if h < 8 else 0.30 if h in (16, 17, 18, 19, 20) else 0.17
    rewards = [-(price + 0.02 * load_of[i]) if charges[i] else 0.0 for i in range(3)]
    outcomes = [[(0.9, u - 1), (0.1, u)] if charge else [(1.0, u)] for u, charge in zip(units, charges, strict=True)]
    return rewards, [max(load - cap, 0) for load, cap in zip(loads, capacities, strict=True)], each_alone(outcomes)


def shortfall(units):
    return [-2.0 * u for u in units]


def test_charging_is_what_its_definition_says(cars):
    game = charging(sessions=cars, day="2024-01-02", capacity=1)
    assert game.policy_shapes == tuple((24, need + 1, 2) for need in NEEDS)
    assert game.agent_names == ("car 0 at P", "car 1 at Q", "car 2 at P")

    def step(h, units, actions):
        return charging_step(h, units, actions, groups=[(0, 1, 2)], capacities=[1])

    assert_agrees(game, start=tuple(NEEDS), step=step, end=shortfall)


def test_each_transformer_has_its_own_resource_and_constraint(cars):
    partition = {"north": ["P"], "south": ["Q", "unused"]}
    game = charging(sessions=cars, day=date(2024, 1, 2), transformers=partition, capacity=[0, 1], threshold=[0.5, 0.25])
    assert game.resource_names == ("north", "south")
    assert game.thresholds.tolist() == [0.5, 0.25]

    def step(h, units, actions):
        return charging_step(h, units, actions, groups=[(0, 2), (1,)], capacities=[0, 1])

    assert_agrees(game, start=tuple(NEEDS), step=step, end=shortfall)


@pytest.mark.parametrize(
    ("arrival", "departure", "energy", "stay"),
    [
        ("08:59:59", "09:00:00", 6.6, (8, 9, 1)),
        ("08:00:00", "08:00:00", 19.8, (8, 9, 1)),
        ("08:00:00", "12:00:00", 19.8, (8, 12, 3)),
        ("08:00:00", "12:00:01", 40.0, (8, 13, 5)),
        ("23:59:00", "23:59:30", 0.001, (23, 24, 1)),
    ],
)
def test_hours_and_units_of_a_stay(arrival, departure, energy, stay):
    times = [datetime.fromisoformat(f"2024-01-02 {clock}+02:00") for clock in (arrival, departure)]
    found = stay_of(Session(*times, energy, "P", "x"))
    assert (found.first_hour, found.end_hour, found.need) == stay


def test_cars_of_one_kind_share_their_tables(tmp_path):
    path = tmp_path / "twins.csv"
    row = "2024-01-02 07:{:02d}:00,2024-01-02 10:00:00,9,6.0,P{},x\n"
    path.write_text(HEADER + row.format(10, 1) + row.format(40, 2))
    first, second = charging(sessions=path).agents
    assert first.reward is second.reward
    assert first.transition is second.transition


def test_the_busiest_day_is_taken_where_none_is_named(cars):
    assert charging_day(sessions=cars).day == date(2024, 1, 2)
    assert [car.identifier for car in charging_day(sessions=cars, day="2024-01-03").sessions] == ["tomorrow"]


@pytest.mark.parametrize(
    ("options", "error", "problem"),
    [
        (
            {"day": "2024-01-04"},
            FileError,
            r"cars.csv has no session that arrived on 2024-01-04 .* busiest day is 2024-01-02",
        ),
        ({"day": "Tuesday"}, GameError, "day is 'Tuesday'"),
        ({"transformers": {"north": ["P"]}}, GameError, "station Q hangs on no transformer"),
        ({"transformers": {"a": ["P", "Q"], "b": ["Q"]}}, GameError, "station Q hangs on a and on b"),
        ({"capacity": [1, 2]}, GameError, r"capacity has shape \[2\]"),
        ({"prices": [0.1] * 23}, GameError, r"prices has shape \[23\]"),
        ({"prices": "cheap"}, GameError, "prices holds"),
        ({"transformers": "north"}, GameError, "transformers is 'north'"),
        ({"success": 0.0}, GameError, "success is 0.0"),
        ({"unit": 0.0}, GameError, "unit is 0.0"),
        ({"capacity": -1}, GameError, "capacity is -1; a number of at least 0 is required"),
        ({"capacity": "eight"}, GameError, "capacity holds"),
        ({"transformers": {"a": ["P"], "b": ["Q"]}, "capacity": [1, -2]}, GameError, r"capacity\[1\] is -2"),
        ({"threshold": -0.5}, GameError, "threshold is -0.5"),
        ({"load_price": -0.1}, GameError, "load_price is -0.1"),
        ({"shortfall": -3}, GameError, "shortfall is -3"),
        ({"shortfall": math.inf}, GameError, "shortfall is inf"),
    ],
)
def test_a_bad_charging_day_is_refused(cars, options, error, problem):
    with pytest.raises(error, match=problem):
        charging(sessions=cars, **options)


def test_a_file_in_which_nobody_charged_is_refused(tmp_path):
    path = tmp_path / "idle.csv"
    path.write_text(HEADER + "2024-01-02 10:00:00,2024-01-02 11:00:00,9,0,P,empty\n")
    with pytest.raises(FileError, match="no session that took energy"):
        charging(sessions=path)


@needs_data
def test_a_real_charging_day():
    path = DATA / "acn" / "caltech_2019-05_2019-08.csv.gz"
    game = charging(sessions=path, day="2019-06-12")
    cars = charging_day(sessions=path, day="2019-06-12").sessions
    assert game.num_agents == len(cars) == 46
    for member, car in zip(game.agents, cars, strict=True):
        hours = (car.departure - car.arrival.replace(hour=0, minute=0, second=0, microsecond=0)).total_seconds() / 3600
        stay = max(car.arrival.hour + 1, min(24, math.ceil(hours))) - car.arrival.hour
        assert member.num_states - 1 == min(math.ceil(car.delivered / 6.6), stay)
    at_once = JointPolicy(tuple(np.broadcast_to([0.0, 1.0], shape) for shape in game.policy_shapes))
    assert 11 < game.at(at_once).costs[0] < 72
    assert len(read_sessions(path)) == 3527


QUARTERS = HEADER + (
    "2024-01-02 07:50:00+01:00,2024-01-02 09:10:00+01:00,9,4.0,P-01,a\n"
    "2024-01-02 08:05:00+01:00,2024-01-02 08:20:00+01:00,9,9.0,P-02,b\n"
    "2024-01-02 08:00:00+01:00,2024-01-02 12:00:00+01:00,9,3.3,Q-01,c\n"
)


@pytest.fixture
def quarters(tmp_path):
    path = tmp_path / "quarters.csv"
    path.write_text(QUARTERS)
    return path


@pytest.mark.parametrize("slot", [15, 30, 60])
def test_slots_divide_the_day_and_the_energy(quarters, slot):
    game = charging(sessions=quarters, slot=slot, power=11.0)
    per_hour = 60 // slot
    assert game.horizon == 24 * per_hour
    assert game.names.step(8 * per_hour) == "08:00"
    assert game.names.legend.use.each == pytest.approx(0.9 * 11 / per_hour)
    stays = [np.flatnonzero([matrix.nnz > 0 for matrix in agent.uses]) for agent in game.agents]
    assert stays[0][0] == math.floor(7.8333 * per_hour)
    assert stays[0][-1] + 1 == math.ceil(9.1666 * per_hour)
    needs = [agent.num_states - 1 for agent in game.agents]
    assert needs[0] == math.ceil(4.0 / (11 / per_hour))
    assert needs[1] == min(math.ceil(9.0 / (11 / per_hour)), len(stays[1]))


def test_an_hour_costs_the_same_however_it_is_cut(quarters):
    """A car that charges for one hour pays one hour's price, and one car too many for an hour is one car-hour."""
    for slot in (15, 30, 60):
        game = charging(sessions=quarters, slot=slot, capacity=0, success=1.0)
        per_hour = 60 // slot
        at_ten = [[0.0, 1.0] if 10 * per_hour <= h < 11 * per_hour else [1.0, 0.0] for h in range(game.horizon)]
        idle = [np.broadcast_to([1.0, 0.0], shape) for shape in game.policy_shapes[:2]]
        table = np.broadcast_to(np.array(at_ten)[:, None], game.policy_shapes[2])
        position = game.at(JointPolicy((*idle, table)))
        units = game.agents[2].num_states - 1
        assert position.costs[0] == pytest.approx(min(units, per_hour) / per_hour)
        left = 2.0 * max(0.0, units - per_hour) / per_hour
        assert position.values[2] == pytest.approx(-(0.17 + 0.02) * min(units, per_hour) / per_hour - left)


def test_transformers_come_from_words_patterns_and_files(quarters, tmp_path):
    rows = "station,transformer\nP-01,north\nP-02,north\nQ-01,south\n"
    (tmp_path / "phases.csv").write_text(rows)
    for given in ("north=P-01,P-02; south=Q-01", "north=P-*;south=Q*", str(tmp_path / "phases.csv")):
        game = charging(sessions=quarters, transformers=given, capacity=(1, 2))
        assert game.resource_names == ("north", "south")
        assert game.load_costs[0, 0, 0].tolist() == [0, 0, 1, 2]
        assert [agent.uses[8].nnz and agent.uses[8].indices[0] for agent in game.agents] == [0, 0, 1]
    for given, told in (("north", "its name and its stations"), ("a=P-*", "station Q-01 hangs on no transformer")):
        with pytest.raises(GameError, match=told):
            charging(sessions=quarters, transformers=given)


def test_capacity_in_kilowatts_may_change_by_the_slot(quarters, tmp_path):
    path = tmp_path / "left.csv"
    path.write_text("from,kw\n00:00,22\n08:30,11\n10:00,0\n")
    game = charging(sessions=quarters, slot=30, power=11.0, capacity_kw=str(path))
    assert game.load_costs.shape[1] == 48
    assert game.load_costs[0, 16, 0].tolist() == [0, 0, 0, 0.5]
    assert game.load_costs[0, 17, 0].tolist() == [0, 0, 0.5, 1.0]
    assert game.load_costs[0, 20, 0].tolist() == [0, 0.5, 1.0, 1.5]
    steady = charging(sessions=quarters, power=11.0, capacity_kw=22)
    assert np.array_equal(steady.load_costs, charging(sessions=quarters, power=11.0, capacity=2).load_costs)
    assert np.array_equal(charging(sessions=quarters, power=11.0, capacity_kw="22").load_costs, steady.load_costs)


def test_a_tariff_file_has_prices_per_kilowatt_hour(quarters, tmp_path):
    path = tmp_path / "tariff.csv"
    path.write_text("from,price\n00:00,0.20\n08:15,0.40\n")
    game = charging(sessions=quarters, slot=15, power=8.0, tariff=path, currency="EUR")
    assert game.agents[0].reward[32, 1, 1] == pytest.approx(-0.20 * 2.0)
    assert game.agents[0].reward[33, 1, 1] == pytest.approx(-0.40 * 2.0)
    assert game.names.legend.value.title == "cost (EUR)"


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ("from,price\n06:00,1\n", "line 2: from is 06:00; times that begin with 00:00"),
        ("from,price\n00:00,1\n08:00,2\n07:00,3\n", "line 4: from is 07:00"),
        ("from,price\n00:00,cheap\n", "line 2: price is 'cheap'"),
        ("from,price\nnoon,1\n", "line 2: from is 'noon'; a time of the day"),
        ("from,price\n", "has no times"),
        ("when,price\n00:00,1\n", "missing: from"),
        ("from,price\n00:00\n", "there are 1 fields"),
    ],
)
def test_a_bad_tariff_is_refused_with_its_line(quarters, tmp_path, rows, told):
    path = tmp_path / "tariff.csv"
    path.write_text(rows)
    with pytest.raises(FileError, match=told):
        charging(sessions=quarters, tariff=path)


def test_a_file_in_utc_is_not_taken_for_local_time(tmp_path):
    path = tmp_path / "utc.csv"
    path.write_text(HEADER + "2024-01-02 16:50:00+00:00,2024-01-02 18:10:00+00:00,9,4.0,P,a\n")
    with pytest.raises(FileError, match=r"line 2: the time .* is in UTC, and nothing says where the site is"):
        charging(sessions=path)
    assert charging(sessions=path, timezone="UTC").agents[0].uses[16].nnz
    assert charging(sessions=path, timezone="America/Los_Angeles").agents[0].uses[8].nnz
    with pytest.raises(GameError, match="timezone is 'Mars'"):
        charging(sessions=path, timezone="Mars")


@pytest.mark.parametrize(("day", "hours"), [("2024-03-10", 23), ("2024-11-03", 25), ("2024-07-01", 24)])
def test_a_day_on_which_the_clock_changes_has_23_or_25_hours(tmp_path, day, hours):
    path = tmp_path / "change.csv"
    path.write_text(HEADER + f"{day} 20:30:00,{day} 23:30:00,9,14.0,P,a\n{day} 00:30:00,{day} 01:30:00,9,4.0,P,b\n")
    game = charging(sessions=path, timezone="America/Los_Angeles")
    assert game.horizon == hours
    late, early = ([h for h, matrix in enumerate(agent.uses) if matrix.nnz] for agent in game.agents)
    assert late == [hours - 4, hours - 3, hours - 2, hours - 1]
    assert early == [0, 1]
    names = [game.names.step(h) for h in range(hours)]
    assert names[-1] == "23:00"
    assert ("02:00" in names) is (hours != 23)
    assert ("01:00 again" in names) is (hours == 25)
    assert game.agents[0].reward[hours - 4, 1, 1] == pytest.approx(-0.30)  # the price of the clock, not of the count


def test_offsets_that_change_on_the_day_need_a_time_zone(tmp_path):
    path = tmp_path / "change.csv"
    rows = "2024-03-10 01:30:00-08:00,2024-03-10 05:00:00-07:00,9,4.0,P,a\n"
    path.write_text(HEADER + rows + "2024-03-10 04:00:00-07:00,2024-03-10 06:00:00-07:00,9,4.0,P,b\n")
    with pytest.raises(FileError, match="on 2024-03-10 the clock changes"):
        charging(sessions=path)
    game = charging(sessions=path, timezone="America/Los_Angeles")
    assert [h for h, matrix in enumerate(game.agents[0].uses) if matrix.nnz] == [1, 2, 3]


ITEM = {
    "connectionTime": "Tue, 02 Jan 2024 16:50:00 GMT",
    "disconnectTime": "Tue, 02 Jan 2024 18:10:00 GMT",
    "kWhDelivered": 4.0,
    "sessionID": "s",
    "spaceID": "CA-322",
    "timezone": "America/Los_Angeles",
}


def test_the_sites_own_json_is_read_with_its_time_zone(tmp_path):
    path = tmp_path / "acn.json"
    path.write_text(json.dumps({"_meta": {}, "_items": [ITEM]}))
    game = charging(sessions=path)
    assert [h for h, matrix in enumerate(game.agents[0].uses) if matrix.nnz] == [8, 9, 10]
    assert game.agent_names == ("car 0 at CA-322",)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"timezone": None}, "item 0: the time .* is in UTC"),
        ({"connectionTime": "soon"}, "item 0: connectionTime is 'soon'"),
        ({"connectionTime": None}, "item 0: connectionTime is None"),
        ({"kWhDelivered": -1}, "item 0: kWhDelivered is -1"),
        ({"spaceID": None}, "item 0: spaceID is None"),
        ({"disconnectTime": "Tue, 02 Jan 2024 10:10:00 GMT"}, "before it begins"),
    ],
)
def test_a_bad_item_of_json_is_refused(tmp_path, change, told):
    path = tmp_path / "acn.json"
    path.write_text(json.dumps({"_items": [{**ITEM, **change}]}))
    with pytest.raises(FileError, match=told):
        charging(sessions=path)
    for text in ("[1", '{"_items": 3}', "[3]"):
        path.write_text(text)
        with pytest.raises(FileError, match=r"JSON|_items|an object is required"):
            charging(sessions=path)


def test_the_command_takes_what_operators_know(quarters, tmp_path):
    (tmp_path / "tariff.csv").write_text("from,price\n00:00,0.20\n")
    words = ["--slot", 30, "--power", 11, "--capacity-kw", "11,22", "--transformers", "a=P-*;b=Q*"]
    words += ["--tariff", tmp_path / "tariff.csv", "--currency", "EUR", "--timezone", "Europe/Berlin"]
    told = cmpg("solve", "charging", "--sessions", quarters, *words, "--out", tmp_path / "run")
    assert told.code == 0, told.err
    shown = cmpg("show", tmp_path / "run").out
    assert "3 cars, 48 slots" in shown
    assert "cost (EUR)" in shown


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"slot": 20}, "slot is 20; slots of 15, 30 or 60 minutes"),
        ({"power": 0.0}, "power is 0.0"),
        ({"prices": [0.1] * 5}, r"prices has shape \[5\]"),
        ({"currency": "a long story"}, "currency is"),
    ],
)
def test_what_operators_get_wrong_is_told(quarters, options, told):
    with pytest.raises(GameError, match=told):
        charging(sessions=quarters, **options)


def test_with_a_tariff_it_pays_to_charge_unless_somebody_says_otherwise(tmp_path):
    prices = tmp_path / "tariff.csv"
    prices.write_text("from,price\n00:00,0.1\n07:00,0.3\n")
    told = charging(tariff=prices, power=11.0, slot=30)
    assert told.names.legend.unpaid == pytest.approx(6 * 0.3 * 11 / 2)
    result = solve(told)
    outcomes = [row["energy missing (kWh)"] for row in rows_of(result, "outcomes")]
    assert max(outcomes) < 3
    assert charging(tariff=prices, shortfall=4.0, slot=30).names.legend.unpaid == 2.0
    assert charging(slot=30).names.legend.unpaid == 1.0
