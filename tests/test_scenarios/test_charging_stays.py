"""Cars of different power, that come and go at uncertain times, on a tree of transformers: against brute force."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from by_brute_force import DATA, needs_data

from cmpg import solve
from cmpg.errors import FileError, GameError
from cmpg.report.tables import rows_of
from cmpg.scenarios.car_charging import charging
from cmpg.scenarios.charging_site import charging_day
from cmpg.scenarios.charging_stays import parts_of, power_of, spread_of

HEADER = "arrival,departure,delivered_energy (kWh),station_id,power (kW)\n"


def site(tmp_path, *rows):
    path = tmp_path / "cars.csv"
    path.write_text(HEADER + "\n".join(rows) + "\n")
    return path


def of_one_car(game, policy):
    """Follow one car by itself: value, expected overload for any load cost, and what is missing at the end."""
    agent, table = game.agents[0], policy[0]
    needs = np.array(game.names.legend.needs[0])
    mass, value, used = np.array(agent.initial), 0.0, np.zeros(game.horizon)
    for h in range(game.horizon):
        pairs = (mass[:, None] * table[h]).ravel()
        value += pairs @ agent.reward[h].ravel()
        used[h] = pairs @ agent.uses[h].toarray()[:, 0]
        mass = agent.transition[h].T @ pairs
    return value, used, mass @ needs


def by_enumeration(policy, game, *, arrivals, departures, energy, power, success):
    """Draw arrival, departure and success of each slot, and let the policy act on what a car can see.

    Its state is (which arrival, energy still needed) while it is there, and (-1, energy) after it has left.
    """
    # The states in the game's own order, found by their levels: those of each arrival ascend, then those who left.
    levels = game.names.legend.needs[0]
    starts = [s for s, level in enumerate(levels) if level == 0.0]
    used, missing = np.zeros(24), 0.0
    for (k, (arrival, p)), (departure, q) in itertools.product(enumerate(arrivals), departures):
        block = range(starts[k], starts[k + 1] if k + 1 < len(starts) else len(levels))
        present = {Fraction(energy): p * q}
        for h in range(24):
            overlap = min(departure, Fraction(h + 1)) - max(arrival, Fraction(h))
            if overlap <= 0:
                continue
            following = {}
            for need, chance in present.items():
                s = next(s for s in block if levels[s] == pytest.approx(float(need), abs=1e-9))
                works = policy[0][h, s, 1] if need else 0.0
                used[h] += chance * works
                for share, left in (
                    (works * success, need - min(need, power * overlap)),
                    (1 - works * success, need),
                ):
                    following[left] = following.get(left, 0.0) + chance * share
            present = following
        missing += sum(float(need) * chance for need, chance in present.items())
    return used, missing


def test_arrivals_and_departures_are_drawn_as_they_are_spread(tmp_path):
    path = site(tmp_path, "2024-01-02 09:30:00,2024-01-02 12:00:00,14,P,")
    game = charging(
        sessions=path, arrival_spread="-60=0.25, 0=0.5, 45=0.25", departure_spread="-45=0.5, 0=0.2, 80=0.3", success=0.8
    )
    policy = game.random_policy(rng=np.random.default_rng(3))
    value, used, missing = of_one_car(game, policy)
    expected = by_enumeration(
        policy,
        game,
        arrivals=[(Fraction(17, 2), 0.25), (Fraction(19, 2), 0.5), (Fraction(41, 4), 0.25)],
        departures=[(Fraction(45, 4), 0.5), (Fraction(12), 0.2), (Fraction(40, 3), 0.3)],
        energy=14,
        power=Fraction("6.6"),
        success=0.8,
    )
    np.testing.assert_allclose(used, expected[0], atol=1e-12)
    assert missing == pytest.approx(expected[1], abs=1e-12)
    assert value == pytest.approx(float(game.at(policy).private_values[0]), abs=1e-12)
    assert "the spread of arrival and departure is as given" in dict(game.names.legend.translation)["assumed"]


def test_a_policy_does_not_know_when_the_car_will_leave(tmp_path):
    """A car that leaves at 11 or at 12 has one state for both while it is there at 10."""
    path = site(tmp_path, "2024-01-02 10:00:00,2024-01-02 11:00:00,13.2,P,")
    game = charging(sessions=path, departure_spread="0=0.5, 60=0.5", success=1.0)
    assert game.names.legend.needs[0] == (0.0, 6.6, 13.2, 6.6, 13.2)  # there, and gone
    first = game.agents[0].transition[10].toarray()
    assert first[2 * 2 + 1].tolist() == [0.0, 0.5, 0.0, 0.5, 0.0]
    assert first[2 * 2].tolist() == [0.0, 0.0, 0.5, 0.0, 0.5]


def test_a_car_that_leaves_before_it_came_comes_and_goes_at_once(tmp_path):
    path = site(tmp_path, "2024-01-02 10:00:00,2024-01-02 10:30:00,3,P,")
    game = charging(sessions=path, arrival_spread="0=0.5, 90=0.5", departure_spread="-60=0.5,0=0.5", success=1.0)
    policy = game.uniform_policy()
    _, used, _ = of_one_car(game, policy)
    assert np.flatnonzero(used).tolist() == [10]


POWERS = (
    "2024-01-02 08:00:00,2024-01-02 11:00:00,20,A,3.7",
    "2024-01-02 08:00:00,2024-01-02 10:00:00,22,B,11",
    "2024-01-02 09:00:00,2024-01-02 11:00:00,9,C,7.4",
)


def test_cars_of_different_power_load_the_transformer_with_what_they_draw(tmp_path):
    game = charging(sessions=site(tmp_path, *POWERS), capacity_kw=11.1, success=1.0)
    assert game.num_agents == 6
    assert game.agent_names[0] == "car 0 at A"
    assert game.agent_names[3] == "car 1 at B, part 3 of 3"
    policy = game.at(game.uniform_policy()).policy
    charge = [np.zeros(shape) for shape in game.policy_shapes]
    for table in charge:
        table[..., 1] = 1.0
    everyone = game.at(type(policy)(charge))
    # Hour 8: 3.7 + 11 kW; hour 9: 3.7 + 11 + 7.4; hour 10: 3.7 + what of 9 kWh at 7.4 kW is left. In units of 3.7 kW
    # that are 4, 6 and 3, against 3; in cars of 11 kW an hour of a unit is 3.7/11.
    assert everyone.costs[0] == pytest.approx((1 + 3 + 0) * 3.7 / 11)
    rows = rows_of(solve(game), "outcomes")
    assert [row["car"] for row in rows] == ["car 0 at A", "car 1 at B", "car 2 at C"]
    for row, energy in zip(rows, (20, 22, 9), strict=True):
        assert row["energy (kWh)"] + row["energy missing (kWh)"] == pytest.approx(energy, abs=1e-9)
    told = dict(game.names.legend.translation)
    assert told["parts"].startswith("3 cars of 3.7 to 11 kW are 6 parts, each counted as 3.7 kW, up to 0.9% more")


def test_the_schedule_of_a_car_adds_up_its_parts(tmp_path):
    result = solve(charging(sessions=site(tmp_path, *POWERS), capacity_kw=11.1, success=1.0, load_price=0.0))
    outcomes = {row["car"]: row["energy (kWh)"] for row in rows_of(result, "outcomes")}
    by_car = dict.fromkeys(outcomes, 0.0)
    for row in rows_of(result, "schedule"):
        by_car[row["car"]] += row["expected energy (kWh)"]
    assert by_car == pytest.approx(outcomes)


def test_a_smallest_rate_lets_a_car_charge_at_multiples_of_it(tmp_path):
    path = site(tmp_path, "2024-01-02 08:00:00,2024-01-02 10:00:00,8.8,P,")
    game = charging(sessions=path, min_rate=2.2, capacity_kw=4.4, threshold=0.0, success=1.0)
    assert game.num_agents == 3
    result = solve(game)
    (row,) = rows_of(result, "outcomes")
    # On or off, 6.6 kW are too much for 4.4; in steps of 2.2 kW, two hours of 4.4 kW are just enough.
    assert row["energy missing (kWh)"] == pytest.approx(0.0, abs=1e-9)
    (all_or_nothing,) = rows_of(solve(charging(sessions=path, capacity_kw=4.4, threshold=0.0, success=1.0)), "outcomes")
    assert all_or_nothing["energy missing (kWh)"] == pytest.approx(8.8)


def test_a_short_stay_is_shared_equally_by_the_parts_of_a_car(tmp_path):
    """In an hour and a half three parts of 2.2 kW deliver 9.9 kWh, but no part alone delivers two whole hours."""
    path = site(tmp_path, "2024-01-02 08:00:00,2024-01-02 09:30:00,9.24,P,")
    game = charging(sessions=path, min_rate=2.2, success=1.0)
    assert "not possible" not in dict(game.names.legend.translation)
    assert [max(game.names.legend.needs[kind]) for kind in game.names.legend.needs_of] == [3.08] * 3


def test_what_hangs_on_a_transformer_loads_all_above_it(tmp_path):
    rows = [f"2024-01-02 08:00:00,2024-01-02 09:00:00,6.6,{name}," for name in ("N1", "N2", "S1", "D")]
    path = site(tmp_path, *rows)
    tree = "site=north,south,D; north=N*; south=S1"
    game = charging(sessions=path, transformers=tree, capacity=[3, 1, 1], success=1.0, load_price=0.0)
    assert game.resource_names == ("site", "north", "south")
    charge = [np.zeros(shape) for shape in game.policy_shapes]
    for table in charge:
        table[..., 1] = 1.0
    position = game.at(type(game.uniform_policy())(charge))
    assert position.expected_load[8].tolist() == [4.0, 2.0, 1.0]
    assert position.costs.tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        ("a=b,P; b=a", "transformer a hangs on itself|transformer b hangs on itself"),
        ("a=c; b=c; c=P", "transformer c hangs on a and on b"),
        ("a=b; b=b2", "station P is fed by no transformer"),
    ],
)
def test_transformers_that_are_no_tree_are_refused(tmp_path, tree, problem):
    path = site(tmp_path, "2024-01-02 08:00:00,2024-01-02 09:00:00,6.6,P,")
    with pytest.raises(GameError, match=problem):
        charging(sessions=path, transformers=tree)


def test_a_base_load_leaves_less_for_cars(tmp_path):
    base = tmp_path / "base.csv"
    base.write_text("from,kw\n00:00,10\n09:00,30\n10:00,0\n")
    path = site(tmp_path, "2024-01-02 08:00:00,2024-01-02 12:00:00,6.6,P,")
    game = charging(sessions=path, capacity_kw=26.4, base_load=str(base))
    loads = game.load_costs[0, :, 0, 1]  # what one car costs
    assert loads[8] == 0.0
    assert loads[9] == 1.0  # 26.4 − 30 kW: nothing is left
    assert dict(game.names.legend.translation)["base load"].startswith("exceeds the capacity by itself in 1 slot")
    same = charging(sessions=path, capacity_kw=16.4)
    np.testing.assert_array_equal(same.load_costs[0, 0], game.load_costs[0, 0])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"power": "P=-1"}, "power is 'P=-1'; a positive number of kW is required, or one for each kind of station"),
        ({"power": "Q=7"}, "which says nothing of station P"),
        ({"power": 0}, "power is 0; a positive number"),
        ({"min_rate": 7.0}, "min_rate is 7.0; a positive number of at most 6.6 kW"),
        ({"min_rate": 3.3, "attendance": 0.5}, "a car has 2 parts of 3.3 kW, which come and go together"),
        ({"arrival_spread": "0=0.5"}, "arrival_spread is '0=0.5'; minutes and probabilities that sum to 1"),
        ({"arrival_spread": "soon=1"}, "arrival_spread is 'soon=1'"),
        ({"departure_spread": {0: -1, 5: 2}}, "departure_spread is {0: -1, 5: 2}"),
        ({"base_load": -1}, "base_load is -1; a number of at least 0 is required"),
        ({"columns": "power=kW"}, "missing: kW"),
    ],
)
def test_what_cannot_be_a_power_or_a_spread_is_refused(tmp_path, options, problem):
    path = site(tmp_path, "2024-01-02 08:00:00,2024-01-02 09:00:00,6.6,P,")
    with pytest.raises((GameError, FileError), match=problem):
        charging(sessions=path, **options)


def test_powers_without_a_common_unit_are_refused():
    with pytest.raises(GameError, match=r"cars charge at 1, 97\.53 kW, and no unit of power divides them"):
        parts_of([1.0, 97.53], smallest=None)
    with pytest.raises(GameError, match=r"cars charge at 5, 7 kW, and no unit of power of at least 4 kW divides them"):
        parts_of([5.0, 7.0], smallest=4.0)
    assert parts_of([3.6, 7.2, 22.0], smallest=None) == ((1, 2, 6), pytest.approx(22 / 6))
    assert parts_of([6.6], smallest=4.0) == ((1,), 6.6)


def test_kinds_of_stations_have_their_own_power_and_spread():
    assert power_of({"A*": 11, "*": 3.7}, "B1") == 3.7
    assert spread_of("arrival_spread", {"A*": {0: 0.5, 30: 0.5}}, "B1") == ((Fraction(0), 1.0),)
    assert [share for _, share in spread_of("arrival_spread", {0: 0.25, 30: 0.75}, "B1")] == [0.25, 0.75]


@needs_data
def test_the_parts_of_a_real_day_need_what_its_file_says():
    path = DATA / "acn" / "caltech_2019-05_2019-08.csv.gz"
    game = charging(sessions=path, day="2019-06-12", power="CA-3*=11; *=3.7", capacity_kw=40)
    legend, cars = game.names.legend, charging_day(sessions=path, day="2019-06-12").sessions
    needed = dict.fromkeys(legend.wholes, 0.0)
    for agent, kind, whole in zip(game.agents, legend.needs_of, legend.wholes, strict=True):
        needed[whole] += agent.initial @ np.array(legend.needs[kind])
    for car, found in zip(cars, needed.values(), strict=True):
        assert found == pytest.approx(car.energy, abs=1e-9)
    assert math.fsum(needed.values()) == pytest.approx(390.4, abs=0.05)
