"""What the page computes of a game, against other ways to compute it; and that its charts are charts."""

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_folders import command

import cmpg
from cmpg.cmdp.linear_program import LinearProgram
from cmpg.equilibrium.best_responses import certify_with_best_responses
from cmpg.equilibrium.result import Step
from cmpg.equilibrium.sensitivity import is_cheap, solve_around, threshold_curves
from cmpg.files.run_folder import load_run
from cmpg.files.scenario_file import read_scenario, write_scenario
from cmpg.report import charts
from cmpg.report.charts import equilibria_chart
from cmpg.report.viewer import view_of, visits_by_agent, where_spent
from cmpg.report.wording import readable
from cmpg.scenarios.car_charging import charging
from cmpg.scenarios.drawings import GridDrawing, NetworkDrawing, Origin, apart, drawing_of
from cmpg.scenarios.paper import grid_world_local
from cmpg.scenarios.robot_fleet import robots
from command_line import cmpg as run
from strategies import games, samples


def by_enumeration(game, policy):
    """V^c by step and state of a dense joint game, joint action by joint action: [k, H, S]."""
    horizon, states = policy[0].shape[:2]
    parts, present = np.zeros((game.num_constraints, horizon, states)), np.asarray(game.initial, dtype=float)
    for h in range(horizon):
        after = np.zeros(states)
        for s in range(states):
            for actions in itertools.product(*(range(count) for count in game.num_actions)):
                weight = present[s] * np.prod([policy[i][h, s, a] for i, a in enumerate(actions)])
                parts[:, h, s] += weight * game.costs[:, min(h, game.costs.shape[1] - 1), s][(slice(None), *actions)]
                step = min(h, len(game.transition) - 1)
                after += weight * np.asarray(game.transition[step, s][actions], dtype=float)
        present = after
    return parts


class TestSpending:
    @settings(deadline=None, max_examples=15)
    @given(games(), st.integers(0, 2**32 - 1))
    def test_parts_of_a_joint_game(self, game, seed):
        policy = game.random_policy(rng=np.random.default_rng(seed))
        spent = where_spent(game, policy)
        assert spent.parts.sum(axis=(1, 2)) == pytest.approx(np.asarray(game.at(policy).costs, dtype=float), abs=1e-9)
        if game.horizon is not None and not game.is_sparse:
            assert spent.parts == pytest.approx(by_enumeration(game, policy), abs=1e-9)

    @pytest.mark.parametrize("build", [grid_world_local, charging])
    def test_parts_of_a_local_game_are_its_costs(self, build):
        game = build()
        policy = game.random_policy(rng=np.random.default_rng(0))
        spent = where_spent(game, policy)
        assert spent.parts.sum(axis=(1, 2)) == pytest.approx(game.at(policy).costs, rel=1e-9)
        assert spent.kind == "resource"
        assert len(spent.places) == game.num_resources

    def test_local_and_joint_agree_on_the_grid(self):
        local, joint = grid_world_local(horizon=4), cmpg.scenarios.grid_world(horizon=4)
        own = local.random_policy(rng=np.random.default_rng(1))
        both = cmpg.JointPolicy((np.repeat(own[0], 16, axis=1), np.tile(own[1], (1, 16, 1))))
        by_step = [spent.parts.sum(axis=2) for spent in (where_spent(local, own), where_spent(joint, both))]
        assert by_step[0] == pytest.approx(by_step[1], abs=1e-12)
        pairs = zip(visits_by_agent(local, own, places=16), visits_by_agent(joint, both, places=16), strict=True)
        for one, other in pairs:
            assert one == pytest.approx(other, abs=1e-12)


class TestThresholdCurves:
    @settings(deadline=None, max_examples=12)
    @given(samples(max_states=4, max_horizon=4).filter(lambda sample: sample.game.num_constraints > 0))
    def test_the_price_bounds_the_whole_curve_and_is_its_slope(self, sample):
        game, policy = sample.game, sample.start
        certificate = certify_with_best_responses(game, policy)
        for curve in threshold_curves(game, policy, certificate, constraint=0):
            known = np.isfinite(curve.values)
            size = 1 + np.abs(curve.values[known]).max() + curve.multiplier
            assert (curve.values[known] <= curve.line[known] + 1e-9 * size).all()
            middle = len(curve.values) // 2
            assert curve.thresholds[middle] == game.thresholds[0]
            assert curve.values[middle] == pytest.approx(curve.line[middle], abs=1e-7 * size)
            assert (np.diff(curve.values[known]) >= -1e-9 * size).all()
            assert (np.diff(curve.values[known], 2) <= 1e-8 * size).all()

    def test_a_curve_against_linear_programs(self):
        game = cmpg.scenarios.spectrum()
        result = cmpg.solve(game)
        curves = threshold_curves(game, result.policy, result.certificate, constraint=0)
        assert len(curves) == 3
        for curve in curves:
            cmdp = game.at(result.policy).induced_cmdp(curve.agent)
            for place in (2, 10, 17):
                if np.isfinite(curve.values[place]):
                    limits = cmdp.thresholds + curve.thresholds[place] - curve.at
                    assert LinearProgram()(replace(cmdp, thresholds=limits)).value == pytest.approx(
                        curve.values[place], abs=1e-7
                    )

    def test_the_counter_example_at_its_best(self):
        # At p = q = √½ both prices are 3 − √2, and each agent's own curve has that slope on both sides.
        game, root = cmpg.scenarios.counter_example(), np.sqrt(0.5)
        policy = cmpg.JointPolicy(([[[1 - root, root]]], [[[1 - root, root]]]))
        certificate = cmpg.certify(game, policy, np.full((2, 1), 3 - np.sqrt(2)))
        for curve in threshold_curves(game, policy, certificate, constraint=0):
            slopes = np.diff(curve.values) / np.diff(curve.thresholds)
            middle = len(slopes) // 2
            assert slopes[middle - 1] == pytest.approx(3 - np.sqrt(2), abs=1e-6)
            assert slopes[middle] == pytest.approx(3 - np.sqrt(2), abs=1e-6)

    def test_going_on_at_other_thresholds(self):
        game = cmpg.scenarios.grid_world()
        result = cmpg.solve(game)
        assert is_cheap(game, result.moves)
        found = solve_around(game, result.policy, constraint=0, epsilon=1e-6)
        assert found.welfare[found.thresholds == game.thresholds[0]] == pytest.approx(result.values.sum(), abs=1e-9)
        assert found.welfare == pytest.approx(46 + 2 * found.thresholds, abs=1e-6)


class TestCharts:
    """Every figure is one that plotly would take, too: unknown names and wrong types raise."""

    @staticmethod
    def check(chart):
        go = pytest.importorskip("plotly.graph_objects")
        text = re.sub(r"var\(--[\w-]+\)", "#123456", json.dumps(chart.figure, allow_nan=False))
        figure = go.Figure(json.loads(text))
        assert len(figure.data) > 0
        return figure

    def test_all(self):
        game = cmpg.scenarios.spectrum()
        result = cmpg.solve(game)
        names, gaps = ("a", "b", "c"), np.array([1.0, 0.3, 0.0])
        spent = where_spent(game, result.policy)
        curve = threshold_curves(game, result.policy, result.certificate, constraint=0)[0]
        found = solve_around(game, result.policy, constraint=0, epsilon=1e-6)
        made = [
            charts.gains_chart(result.trace, names, epsilon=1e-6),
            *charts.cost_charts(result.trace, ("x",), game.thresholds, along="iteration"),
            charts.price_chart([replace(step, multipliers=np.ones(1)) for step in result.trace], ("x",)),
            charts.potential_chart(result.trace),
            charts.equilibria_chart([result, result], "x"),
            *charts.spending_charts(spent.parts[0], spent.places, name="x", threshold=0.15, kind="state"),
            charts.threshold_chart(curve, game.names, several=True),
            charts.resolved_chart(found, game.names, several=False),
            charts.samples_chart(np.array([10.0, 100.0, 1000.0]), gaps, epsilon=0.1),
            charts.unsafe_chart(np.array([0.0, 50.0, 100.0]), np.array([0.0, 2.0, 3.0])),
        ]
        for chart in made:
            self.check(chart)
        assert made[-1].caption.startswith("3 of 100 executed policies")

    def test_what_is_not_a_number_is_left_open(self):
        gains = [np.array([0.5, np.nan]), np.array([np.nan, 0.25]), np.array([0.0, 0.0])]
        trace = [Step(t + 1, 0, 0.5, gain, np.zeros(1), float(t), 0.0) for t, gain in enumerate(gains)]
        figure = self.check(charts.gains_chart(trace, ("a", "b"), epsilon=1e-6))
        assert figure.data[0].y == (0.5, None, None)
        assert figure.data[1].y == (None, 0.25, None)

    def test_a_long_trace_is_thinned_and_keeps_its_ends(self):
        trace = [Step(t, 0, 1.0, np.ones(9), np.zeros(1), float(t), 0.0) for t in range(1, 9001)]
        for chart in (charts.potential_chart(trace), charts.gains_chart(trace, ("a",) * 9, epsilon=0.1)):
            line = self.check(chart).data[0]
            assert len(line.x) == charts.MAX_POINTS
            assert (line.x[0], line.x[-1]) == (1, 9000)

    def test_a_steep_line_stays_inside(self):
        game = cmpg.scenarios.spectrum()
        result = cmpg.solve(game)
        curve = threshold_curves(game, result.policy, result.certificate, constraint=0)[0]
        figure = self.check(charts.threshold_chart(replace(curve, multiplier=1e9), game.names, several=False))
        low, high = figure.layout.yaxis.range
        assert low - 1e-6 <= min(figure.data[1].y) <= max(figure.data[1].y) <= high + 1e-6


class TestDrawings:
    @pytest.mark.parametrize("name", ["grid-world", "grid-world-local", "robots", "charging", "routing"])
    def test_a_drawing_comes_back_from_its_file(self, name, tmp_path):
        origin = Origin(name, {})
        drawing = drawing_of(origin)
        write_scenario(tmp_path / "scenario.json", origin, drawing)
        assert read_scenario(tmp_path / "scenario.json") == (origin, drawing)

    def test_options_reach_the_drawing(self):
        wide = drawing_of(Origin("grid-world", {"width": 5}))
        assert isinstance(wide, GridDrawing)
        assert len(wide.cells) == 20
        assert drawing_of(Origin("charging", {"capacity": 6})).capacities == ((6.0,) * 24,)
        assert drawing_of(Origin("spectrum", {})) is None
        assert drawing_of(Origin("mine.json", {})) is None

    def test_a_network_without_coordinates_is_spread_out(self, tmp_path):
        samples = Path(cmpg.__file__).parent / "scenarios" / "samples"
        for part in ("net", "trips"):
            (tmp_path / f"city_{part}.tntp").write_bytes((samples / f"sample_{part}.tntp").read_bytes())
        bridges = ((4, 7), (7, 4))
        options = {"network": tmp_path / "city_net.tntp", "trips": tmp_path / "city_trips.tntp", "protected": bridges}
        game = cmpg.scenarios.scenario("routing").build(**options)
        drawing = drawing_of(Origin("routing", options))
        assert isinstance(drawing, NetworkDrawing)
        assert len(drawing.links) == game.num_resources
        assert len(set(drawing.nodes)) == len(drawing.nodes)
        assert np.ptp(drawing.nodes, axis=0).max() == pytest.approx(1.0)
        # With the node file beside the network, its coordinates are taken.
        (tmp_path / "city_node.tntp").write_bytes((samples / "sample_node.tntp").read_bytes())
        assert drawing_of(Origin("routing", options)).nodes == drawing_of(Origin("routing", {})).nodes

    def test_the_folder_remembers_the_options(self, tmp_path):
        assert command("solve", "grid-world", "--threshold", "0.2", "--out", tmp_path / "run") == 0
        run = load_run(tmp_path / "run")
        assert run.origin.name == "grid-world"
        assert float(run.origin.options["threshold"]) == 0.2


@given(st.floats(allow_nan=False, allow_infinity=False, width=32), st.integers(2, 9))
def test_readable_numbers_are_those_numbers(number, digits):
    text = readable(number, digits).replace("−", "-").replace("\u00a0×\u00a010", "e")
    superscripts = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    assert float(text.translate(superscripts)) == pytest.approx(number, rel=10.0 ** (1 - digits), abs=1e-300)


def equilibrium(value, cost):
    class Found:
        values, costs = np.array([value]), np.array([cost])

    return Found()


def test_equilibria_of_equal_cost_are_drawn_by_their_number():
    found = [equilibrium(1.5, 0.15), equilibrium(1.4, 0.15 + 1e-13), equilibrium(1.2, 0.15)]
    chart = equilibria_chart(found, "interference")
    assert chart.figure["data"][0]["x"] == [1, 2, 3]
    assert chart.figure["layout"]["xaxis"]["range"] == [0.5, 3.5]
    assert "All of them cost 0.15" in chart.caption
    low, high = chart.figure["layout"]["yaxis"]["range"]
    assert low < 1.2 < 1.5 < high


def test_equilibria_that_are_all_alike_have_an_axis_of_few_digits():
    chart = equilibria_chart([equilibrium(6.0, 0.0), equilibrium(6.0 + 1e-14, 0.5)], "both")
    low, high = chart.figure["layout"]["yaxis"]["range"]
    assert high - low > 0.1
    assert chart.figure["data"][0]["x"] == [0.0, 0.5]


def test_a_fleet_is_shown_with_goals_hot_spots_and_one_run_that_follows_the_rules():
    game = robots(num_agents=5)
    policy = cmpg.solve(game, epsilon=1e-2).policy
    view = view_of(game, policy, drawing_of(Origin("robots", {"num_agents": 5})))
    fields = view.fields
    assert fields["goals"] == list(game.names.legend.goals)
    assert len(fields["sample"]) == len(fields["likely"]) == 5
    for agent, way in zip(game.agents, fields["sample"], strict=True):
        assert len(way) == game.horizon
        assert agent.initial[way[0]] == 1
        steps = agent.transition[0].toarray().reshape(agent.num_states, agent.num_actions, -1).max(axis=1) > 0
        assert all(steps[here, there] for here, there in itertools.pairwise(way))
    pairs = [count for _, count in fields["hot"]]
    assert pairs == sorted(pairs, reverse=True)


def test_charging_opens_at_the_busiest_hour_and_speaks_in_kilowatts():
    game = charging()
    view = view_of(game, cmpg.solve(game).policy, drawing_of(Origin("charging", {})))
    loads = np.array(view.fields["loads"][0])
    assert loads[view.fields["first"]] == loads.max()
    assert view.fields["words"] == {"agent": "car", "step": "hour", "unit": "kW"}
    assert view.fields["each"] == pytest.approx(6.6)


@pytest.mark.parametrize("name", ["robots", "routing", "charging", "grid-world"])
def test_a_run_becomes_moving_pictures(name, tmp_path):
    image = pytest.importorskip("PIL.Image")
    assert run("solve", name, "--epsilon", 1e-2, "--out", tmp_path / "run").code == 0
    told = run("show", tmp_path / "run", "--animate", tmp_path / "run.gif")
    assert told.code == 0, told.err
    with image.open(tmp_path / "run.gif") as made:
        assert made.n_frames > 1
        assert f"({made.n_frames} frames)" in told.out or name != "robots"
    again = run("show", tmp_path / "run", "--animate", tmp_path / "run.gif")
    assert (again.code, "is there already" in again.err) == (2, True)


def test_what_has_no_picture_cannot_move(tmp_path):
    assert run("solve", "spectrum", "--out", tmp_path / "run").code == 0
    assert "has no picture" in run("show", tmp_path / "run", "--animate", tmp_path / "run.gif").err
    assert ".gif is required" in run("show", tmp_path / "run", "--animate", tmp_path / "run.mp4").err


def test_nodes_that_would_overlap_are_pushed_apart():
    rng = np.random.default_rng(1)
    places = apart(np.round(rng.random((24, 2)), 1))
    gaps = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2)) + np.eye(24)
    assert gaps.min() > 0.08
    far = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert np.array_equal(apart(far), far)
