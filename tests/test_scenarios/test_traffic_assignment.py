"""Equilibria, system optima and tolls: by hand on Braess' network; on Sioux Falls against the published equilibrium,
and against Frank and Wolfe's method.
"""

import numpy as np
import pytest
from by_brute_force import DATA, needs_data

import cmpg
from cmpg.errors import FileError, GameError
from cmpg.report.tables import rows_of
from cmpg.scenarios.readers.tntp import read_network, read_trips
from cmpg.scenarios.traffic_assignment import Demand, Roads, assign, optimal_tolls, relative_gap
from oracles.frank_wolfe import Network

BECKMANN = 4_231_335.287107440
"""Of Sioux Falls at equilibrium: the README beside the data in the repository TransportationNetworks, in its units."""

OPTIMUM = 7_194_256.05
"""The least total travel time of Sioux Falls in the same units, as it is computed here: no published value was found.
Frank and Wolfe's method, which shares no code with the library, encloses it.
"""


def problem(name):
    network = read_network(DATA / "tntp" / f"{name}_net.tntp")
    trips = [trip for trip in read_trips(DATA / "tntp" / f"{name}_trips.tntp").trips if trip.origin != trip.destination]
    pairs = tuple((trip.origin - 1, trip.destination - 1) for trip in trips)
    return Roads.of(network), Demand(pairs, np.array([trip.flow for trip in trips]))


@needs_data
def test_braess_has_the_equilibrium_and_the_optimum_of_the_textbook():
    """6 vehicles: at equilibrium every route takes 92, at the optimum 83 (Braess 1968)."""
    roads, demand = problem("Braess")
    assert assign(roads, demand).total_time == pytest.approx(6 * 92, abs=1e-4)
    best = assign(roads, demand, optimum=True)
    assert best.total_time == pytest.approx(6 * 83, abs=1e-4)
    tolled = assign(roads.with_tolls(optimal_tolls(roads, best)), demand)
    np.testing.assert_allclose(tolled.flows, best.flows, atol=1e-6)


@needs_data
def test_sioux_falls_has_its_published_equilibrium_and_tolls_that_join_its_optimum_to_it():
    roads, demand = problem("SiouxFalls")
    found = assign(roads, demand, gap=1e-6)
    lines = (DATA / "tntp" / "SiouxFalls_flow.tntp").read_text().splitlines()[1:]
    published = np.array([float(line.split()[2]) for line in lines if line.split()])
    assert roads.beckmann(found.flows) == pytest.approx(BECKMANN, rel=1e-6)
    np.testing.assert_allclose(found.flows, published, rtol=2e-3)
    best = assign(roads, demand, optimum=True, gap=1e-6)
    assert best.total_time == pytest.approx(OPTIMUM, rel=1e-5)
    tolled = roads.with_tolls(optimal_tolls(roads, best))
    assert relative_gap(tolled, demand, best.flows) < 1e-5  # the optimum is an equilibrium under its tolls
    assert relative_gap(roads, demand, best.flows) > 0.01  # and without them it is none


@needs_data
def test_the_optimum_of_sioux_falls_and_the_equilibrium_under_its_tolls_are_those_of_frank_and_wolfe():
    roads, demand = problem("SiouxFalls")
    best = assign(roads, demand, optimum=True, gap=1e-6)
    other = Network(DATA / "tntp" / "SiouxFalls_net.tntp", DATA / "tntp" / "SiouxFalls_trips.tntp")
    free, least = (other.equilibrium(np.zeros(76), 800), other.optimum(2000))
    assert free.bound < BECKMANN < free.value < free.bound * 1.001
    assert least.bound < best.total_time < least.value < least.bound * 1.001
    tolled = other.equilibrium(optimal_tolls(roads, best), 2000)
    assert other.total_time(tolled.flows) == pytest.approx(best.total_time, rel=2e-4)
    np.testing.assert_allclose(tolled.flows, best.flows, rtol=0.02)


def test_the_relative_gap_bounds_what_is_left_to_gain():
    """The objective is convex with the costs as its gradient: f(x) − min f ≤ gap · costs·x."""
    game = cmpg.scenarios.routing(mode="static")
    roads, demand = Roads.on(game.legend.roads), Demand.on(game.legend.roads, 100.0)
    rough, fine = (assign(roads, demand, iterations=count, gap=0.0) for count in (2, 60))
    assert rough.relative_gap > fine.relative_gap
    assert fine.relative_gap < 1e-9
    slack = roads.beckmann(rough.flows) - roads.beckmann(fine.flows)
    assert 0 <= slack <= rough.relative_gap * float(roads.times(rough.flows) @ rough.flows)


@pytest.mark.parametrize("tolls", ["optimal", "file"])
def test_platoons_that_pay_the_tolls_come_near_the_optimum(tmp_path, tolls):
    free = cmpg.solve(cmpg.scenarios.routing(mode="static"))
    path = tmp_path / "tolls.csv"
    if tolls == "file":
        rows = rows_of(free, "links")
        path.write_text("from,to,toll (min)\n" + "".join(f"{r['from']},{r['to']},{r['toll (min)']}\n" for r in rows))
    paid = cmpg.solve(cmpg.scenarios.routing(mode="static", tolls="optimal" if tolls == "optimal" else path))
    measures = [{row["measure"]: row["value"] for row in rows_of(each, "measures")} for each in (free, paid)]
    assert paid.certified
    before, after = (each["total travel time / system optimum"] for each in measures)
    assert 1 <= after < 1.002
    assert after < before - 0.005
    assert paid.game.names.legend.value.title == "travel time and tolls (min)"


def test_links_have_the_flows_and_times_of_the_equilibrium():
    game = cmpg.scenarios.routing(mode="static")
    result = cmpg.solve(game)
    rows = rows_of(result, "links")
    position = game.at(result.policy)
    roads = Roads.on(game.legend.roads)
    flows = np.array([row["flow (vehicles)"] for row in rows])
    np.testing.assert_allclose(flows, 100 * position.expected_load[0])
    np.testing.assert_allclose([row["travel time (min)"] for row in rows], roads.times(flows), rtol=1e-9)
    (total,) = [row["value"] for row in rows_of(result, "measures") if row["measure"] == "total travel time"]
    assert total == pytest.approx(float(roads.times(flows) @ flows) / 60)
    assert total * 60 == pytest.approx(-100 * 100 * position.values.sum())


def test_links_of_a_city_in_steps_are_listed_by_step():
    result = cmpg.solve(cmpg.scenarios.routing(num_agents=4))
    rows = rows_of(result, "links")
    assert {"step", "link", "from", "to"} <= set(rows[0])
    assert "toll (min)" not in rows[0]
    assert sum(row["flow (vehicles)"] for row in rows) == pytest.approx(
        3000 * result.game.at(result.policy).expected_load.sum()
    )


def test_times_are_in_minutes(tmp_path):
    """Of the same city with times in hours, all is 60 times as long."""
    own, hours = (cmpg.scenarios.routing(mode="static", minutes=minutes) for minutes in (None, 60.0))
    assert (own.legend.value.each, hours.legend.value.each) == (-100.0, -6000.0)
    assert hours.legend.roads.minutes == 60.0
    with pytest.raises(GameError, match="minutes is -1"):
        cmpg.scenarios.routing(minutes=-1.0)


@needs_data
def test_the_unit_of_time_of_sioux_falls_is_known():
    files = {"network": DATA / "tntp" / "SiouxFalls_net.tntp", "trips": DATA / "tntp" / "SiouxFalls_trips.tntp"}
    game = cmpg.scenarios.routing(num_agents=3, **files)
    assert game.legend.roads.minutes == 0.6
    assert "a unit of time of the network is 0.6 min" in dict(game.legend.translation)["assumed"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("from,to\n1,2\n", r"missing: toll \(min\)"),
        ("from,to,toll (min)\n1,9,1\n", "has no link from 1 to 9"),
        ("from,to,toll (min)\n1,2,-1\n", r"line 2: toll \(min\) is -1"),
    ],
)
def test_tolls_that_cannot_be_are_refused(tmp_path, text, problem):
    path = tmp_path / "tolls.csv"
    path.write_text(text)
    with pytest.raises(FileError, match=problem):
        cmpg.scenarios.routing(mode="static", tolls=path)
    with pytest.raises(GameError, match="tolls are for routes that are chosen at once"):
        cmpg.scenarios.routing(tolls=path)
