"""Charging: against brute force on the joint state, by hand, on a real day, and what is refused."""

import itertools
import json
import math
from datetime import date, datetime
from fractions import Fraction

import numpy as np
import pytest
from by_brute_force import DATA, assert_agrees, each_alone, needs_data

from cmpg import solve
from cmpg.errors import FileError, GameError
from cmpg.policy import JointPolicy
from cmpg.report.tables import rows_of
from cmpg.scenarios.car_charging import charging
from cmpg.scenarios.charging_site import charging_day
from cmpg.scenarios.charging_stays import stay_of
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
ARRIVALS = [Fraction(479, 60), Fraction(133, 6), Fraction(127, 6)]  # in hours after midnight
DEPARTURES = [Fraction(9), Fraction(24), Fraction(23) + Fraction(1, 3600)]
ENERGIES = [Fraction("13.2"), Fraction(30), Fraction("6.7")]
POWER = Fraction("6.6")


@pytest.fixture
def cars(tmp_path):
    path = tmp_path / "cars.csv"
    path.write_text(CARS)
    return path


def offered(i, h):
    """What car i can receive in hour h: its power times the time that it is there."""
    return POWER * max(Fraction(0), min(DEPARTURES[i], Fraction(h + 1)) - max(ARRIVALS[i], Fraction(h)))


def levels(i):
    """What car i may still need, after charging in any of the hours of its stay."""
    hours = [h for h in range(24) if offered(i, h)]
    chosen = itertools.chain.from_iterable(itertools.combinations(hours, m) for m in range(len(hours) + 1))
    return sorted({max(Fraction(0), ENERGIES[i] - sum(offered(i, h) for h in some)) for some in chosen} | {Fraction(0)})


LEVELS = [levels(i) for i in range(3)]
START = tuple(LEVELS[i].index(ENERGIES[i]) for i in range(3))


def charging_step(h, states, actions, *, groups, capacities):
    needs = [LEVELS[i][s] for i, s in enumerate(states)]
    got = [min(need, offered(i, h)) if actions[i] == 1 else 0 for i, need in enumerate(needs)]
    loads = [sum(got[i] > 0 for i in group) for group in groups]
    load_of = {i: load for group, load in zip(groups, loads, strict=True) for i in group}
    price = 0.12 if h < 8 else 0.30 if h in (16, 17, 18, 19, 20) else 0.17  # of an hour at full power
    rewards = [-(price * float(got[i] / POWER) + 0.02 * load_of[i]) if got[i] else 0.0 for i in range(3)]
    outcomes = [
        [(0.9, LEVELS[i].index(needs[i] - got[i])), (0.1, states[i])] if got[i] else [(1.0, states[i])]
        for i in range(3)
    ]
    return rewards, [max(load - cap, 0) for load, cap in zip(loads, capacities, strict=True)], each_alone(outcomes)


def shortfall(states):
    return [-2.0 * float(LEVELS[i][s] / POWER) for i, s in enumerate(states)]


def test_charging_is_what_its_definition_says(cars):
    game = charging(sessions=cars, day="2024-01-02", capacity=1)
    assert game.policy_shapes == tuple((24, len(row), 2) for row in LEVELS)
    assert game.names.legend.needs == tuple(tuple(map(float, row)) for row in LEVELS)
    assert game.agent_names == ("car 0 at P", "car 1 at Q", "car 2 at P")

    def step(h, states, actions):
        return charging_step(h, states, actions, groups=[(0, 1, 2)], capacities=[1])

    assert_agrees(game, start=START, step=step, end=shortfall)


def test_each_transformer_has_its_own_resource_and_constraint(cars):
    partition = {"north": ["P"], "south": ["Q", "unused"]}
    game = charging(sessions=cars, day=date(2024, 1, 2), transformers=partition, capacity=[0, 1], threshold=[0.5, 0.25])
    assert game.resource_names == ("north", "south")
    assert game.thresholds.tolist() == [0.5, 0.25]

    def step(h, states, actions):
        return charging_step(h, states, actions, groups=[(0, 2), (1,)], capacities=[0, 1])

    assert_agrees(game, start=START, step=step, end=shortfall)


@pytest.mark.parametrize(
    ("arrival", "departure", "energy", "first", "offers", "unmet"),
    [
        ("08:45:00", "09:00:00", 6.6, 8, [1.65], 4.95),
        ("08:00:00", "08:00:00", 19.8, 8, [], 19.8),
        ("08:00:00", "12:00:00", 19.8, 8, [6.6, 6.6, 6.6, 6.6], 0),
        ("08:30:00", "11:15:00", 2.0, 8, [3.3, 6.6, 6.6, 1.65], 0),
        ("23:30:00", "23:45:00", 0.001, 23, [1.65], 0),
    ],
)
def test_a_slot_offers_the_time_that_a_car_is_there(arrival, departure, energy, first, offers, unmet):
    times = [datetime.fromisoformat(f"2024-01-02 {clock}+02:00") for clock in (arrival, departure)]
    found = stay_of(Session(*times, energy, "P", "x"))
    ((presence, probability),) = found.arrivals
    assert (presence.first, [float(offer) for offer in presence.offers]) == (first, offers)
    assert (float(found.unmet), probability) == (unmet, 1.0)


THREE = HEADER + (
    "2024-01-02 10:00:00,2024-01-02 12:00:00,9,22,A3,s3\n"
    "2024-01-02 09:30:00,2024-01-02 15:00:00,9,18,A2,s2\n"
    "2024-01-02 08:00:00,2024-01-02 17:00:00,9,30,A1,s1\n"
)


@pytest.mark.parametrize("slot", [15, 30, 60])
def test_energy_and_energy_missing_add_up_to_what_the_file_asks(tmp_path, slot):
    path = tmp_path / "three.csv"
    path.write_text(THREE)
    result = solve(charging(sessions=path, slot=slot, success=1.0, capacity=2))
    rows = rows_of(result, "outcomes")
    for row, asked in zip(rows, (22, 18, 30), strict=True):
        assert row["energy (kWh)"] + row["energy missing (kWh)"] == pytest.approx(asked, abs=1e-9)
    assert rows[0]["energy missing (kWh)"] >= 22 - 2 * 6.6 - 1e-9  # two hours at 6.6 kW
    schedule = rows_of(result, "schedule")
    assert min(row["slot" if slot < 60 else "hour"] for row in schedule if row["car"] == "car 1 at A2") >= "09:00"
    by_car = {row["car"]: 0.0 for row in schedule}
    for row in schedule:
        by_car[row["car"]] += row["expected energy (kWh)"]
    for row in rows:
        assert by_car[row["car"]] == pytest.approx(row["energy (kWh)"], abs=1e-9)


def test_requested_energy_and_other_columns_are_read(tmp_path):
    path = tmp_path / "tomorrow.csv"
    path.write_text("Start;End;kWh;Charger\n2024-01-02 08:00:00;2024-01-02 12:00:00;7,5;P\n")
    columns = "arrival=Start; departure=End; energy=kWh; station=Charger"
    (car,) = charging_day(sessions=path, columns=columns).sessions
    assert charging_day(sessions=path, columns=columns.replace(";", ",")).sessions == (car,)
    assert (car.energy, car.station, car.arrival.hour) == (7.5, "P", 8)
    with pytest.raises(FileError, match=r"the columns are: Start, End, kWh, Charger; missing: arrival, .* `columns`"):
        charging(sessions=path)
    with pytest.raises(GameError, match=r"columns is {'when': 'Start'}; names of columns for some of arrival"):
        charging(sessions=path, columns={"when": "Start"})
    path.write_text("arrival,departure,requested_energy (kWh),station_id\n2024-01-02 08:00,2024-01-02 12:00,9,P\n")
    assert [car.energy for car in charging_day(sessions=path, energy="requested").sessions] == [9.0]
    with pytest.raises(GameError, match="energy is 'wanted'; delivered or requested is required"):
        charging(sessions=path, energy="wanted")


def test_a_car_that_may_not_come_needs_nothing_then(cars):
    game = charging(sessions=cars, attendance=0.75)
    for agent, need in zip(game.agents, game.names.legend.needs, strict=True):
        assert agent.initial @ np.array(need) == pytest.approx(0.75 * need[-1])
    assert "a car does not come with probability 0.25" in dict(game.names.legend.translation)["assumed"]


def test_a_charging_day_states_what_it_read_cut_and_assumed(cars):
    told = dict(charging(sessions=cars, day="2024-01-02").names.legend.translation)
    assert told["read"].startswith("3 sessions that arrived on 2024-01-02")
    assert told["read"].endswith("; 1 without energy left out")
    assert told["energy"] == "49.9 kWh delivered in the file, 49.9 kWh in the game"
    assert told["not possible"] == "24.39 kWh of 2 cars do not fit in at 6.6 kW"
    assert told["cut"] == "1 stay cut at the end of the day, after 24 slots"
    said = cmpg("solve", "charging", "--sessions", cars, "--day", "2024-01-02")
    assert "\nnot possible: 24.39 kWh of 2 cars do not fit in at 6.6 kW\n" in said.out
    record = json.loads(cmpg("solve", "charging", "--sessions", cars, "--day", "2024-01-02", "--json").out)
    assert record["translation"] == told


def test_cars_of_one_kind_share_their_tables(tmp_path):
    path = tmp_path / "twins.csv"
    row = "2024-01-02 07:10:00,2024-01-02 10:00:00,9,6.0,P{},x\n"
    path.write_text(HEADER + row.format(1) + row.format(2))
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
        ({"transformers": {"north": ["P"]}}, GameError, "station Q is fed by no transformer"),
        ({"transformers": {"a": ["P", "Q"], "b": ["Q"]}}, GameError, "station Q is fed by a and by b"),
        ({"capacity": [1, 2]}, GameError, r"capacity has shape \[2\]"),
        ({"prices": [0.1] * 23}, GameError, r"prices has shape \[23\]"),
        ({"prices": "cheap"}, GameError, "prices holds"),
        ({"transformers": "north"}, GameError, "transformers is 'north'"),
        ({"success": 0.0}, GameError, "success is 0.0"),
        ({"attendance": 0.0}, GameError, "attendance is 0.0"),
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
@pytest.mark.parametrize(("site", "day"), [("caltech", "2019-06-12"), ("jpl", "2019-06-12"), ("caltech", "2019-07-30")])
@pytest.mark.parametrize("slot", [15, 30, 60])
def test_the_game_of_a_real_day_needs_what_its_file_says(site, day, slot):
    path = DATA / "acn" / f"{site}_2019-05_2019-08.csv.gz"
    game = charging(sessions=path, day=day, slot=slot)
    legend, cars = game.names.legend, charging_day(sessions=path, day=day).sessions
    assert game.num_agents == len(cars)
    for agent, kind, car in zip(game.agents, legend.needs_of, cars, strict=True):
        assert agent.initial @ np.array(legend.needs[kind]) == pytest.approx(car.energy, abs=1e-9)
        plugged = [h for h, matrix in enumerate(agent.uses) if matrix.nnz]
        midnight = car.arrival.replace(hour=0, minute=0, second=0, microsecond=0)
        assert plugged[0] >= math.floor((car.arrival - midnight).total_seconds() / (60 * slot))
        assert plugged[-1] < math.ceil((car.departure - midnight).total_seconds() / (60 * slot))


@needs_data
def test_a_real_file_is_read_whole():
    assert len(read_sessions(DATA / "acn" / "caltech_2019-05_2019-08.csv.gz")) == 3527


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
    stays = [np.flatnonzero([matrix.nnz > 0 for matrix in agent.uses]) for agent in game.agents]
    assert stays[0][0] == math.floor(7.8333 * per_hour)
    assert stays[0][-1] + 1 == math.ceil(9.1666 * per_hour)
    assert [row[-1] for row in game.names.legend.needs] == [4.0, 9.0, 3.3]


def test_an_hour_costs_the_same_however_it_is_cut(quarters):
    """A car that charges for half an hour pays half an hour's price, and is half a car-hour too many."""
    for slot in (15, 30):
        game = charging(sessions=quarters, slot=slot, capacity=0, success=1.0)
        per_hour = 60 // slot
        at_ten = [[0.0, 1.0] if 10 * per_hour <= h < 11 * per_hour else [1.0, 0.0] for h in range(game.horizon)]
        idle = [np.broadcast_to([1.0, 0.0], shape) for shape in game.policy_shapes[:2]]
        table = np.broadcast_to(np.array(at_ten)[:, None], game.policy_shapes[2])
        position = game.at(JointPolicy((*idle, table)))
        assert position.costs[0] == pytest.approx(0.5)  # 3.3 kWh at 6.6 kW, rounded up to slots of at most half an hour
        assert position.values[2] == pytest.approx(-(0.17 + 0.02) * 0.5)


def test_transformers_come_from_words_patterns_and_files(quarters, tmp_path):
    rows = "station,transformer\nP-01,north\nP-02,north\nQ-01,south\n"
    (tmp_path / "phases.csv").write_text(rows)
    for given in ("north=P-01,P-02; south=Q-01", "north=P-*;south=Q*", str(tmp_path / "phases.csv")):
        game = charging(sessions=quarters, transformers=given, capacity=(1, 2))
        assert game.resource_names == ("north", "south")
        assert game.load_costs[0, 0, 0].tolist() == [0, 0, 1, 2]
        assert [agent.uses[8].nnz and agent.uses[8].indices[0] for agent in game.agents] == [0, 0, 1]
    for given, told in (("north", "its name and its stations"), ("a=P-*", "station Q-01 is fed by no transformer")):
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
    assert game.agents[0].reward[32, -1, 1] == pytest.approx(-0.20 * 2.0)
    assert game.agents[0].reward[33, -1, 1] == pytest.approx(-0.40 * 2.0)
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
        ("from,price\n00:00\n", "there is 1 field"),
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
    assert game.agents[0].reward[hours - 4, -1, 1] == pytest.approx(-0.15)  # the price of the clock, not of the count


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
    assert told.names.legend.unpaid == pytest.approx(6 * 0.3)
    result = solve(told)
    outcomes = [row["energy missing (kWh)"] for row in rows_of(result, "outcomes")]
    assert max(outcomes) < 3
    assert charging(tariff=prices, shortfall=3.3, slot=30).names.legend.unpaid == pytest.approx(0.5)
    assert charging(slot=30).names.legend.unpaid == pytest.approx(2 / 6.6)
