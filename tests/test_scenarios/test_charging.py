"""Charging: against brute force on the joint state, by hand, on a real day, and what is refused."""

import math
from datetime import date, datetime

import numpy as np
import pytest
from by_brute_force import DATA, assert_agrees, each_alone, needs_data

from cmpg.errors import FileError, GameError
from cmpg.policy import JointPolicy
from cmpg.scenarios.car_charging import charging, charging_day, stay_of
from cmpg.scenarios.readers.acn import Session, read_sessions

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
