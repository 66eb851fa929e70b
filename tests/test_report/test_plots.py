"""Figures by matplotlib: what is drawn is what the result says."""

import numpy as np
import pytest

import cmpg
from cmpg.equilibrium.result import Equilibria
from cmpg.learning.trials import BySharedModel, HiddenGame, trials

pytest.importorskip("matplotlib").use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def charged():
    return cmpg.solve(cmpg.scenarios.charging(capacity=8))


def test_a_schedule_shows_how_likely_each_agent_uses_the_resource_at_each_step(charged):
    ax = charged.plot()
    shown = ax.images[0].get_array()
    position = charged.game.at(charged.policy)
    assert np.allclose(shown, [position.usage(i).sum(axis=1) for i in range(charged.game.num_agents)])
    assert [label.get_text() for label in ax.get_yticklabels()] == list(
        charged.game.names.all_agents(charged.game.num_agents)
    )


def test_loads_are_in_the_units_of_the_scenario(charged):
    ax = cmpg.plot(charged, "loads")
    expected = sum(charged.game.at(charged.policy).usage(i)[:, 0] for i in range(charged.game.num_agents))
    assert np.allclose(ax.lines[0].get_ydata(), expected * charged.game.names.legend.load.each)
    assert ax.get_ylabel() == "expected load (kW)"


def test_a_joint_game_shows_the_probability_of_each_action():
    result = cmpg.solve(cmpg.scenarios.grid_world(horizon=3))
    shown = result.plot("schedule").images[0].get_array()
    assert shown.shape == (8, 3)
    assert np.allclose(shown[:4].sum(axis=0), 1)


def test_the_ways_of_robots_end_where_the_plan_does():
    result = cmpg.solve(cmpg.scenarios.robots(num_agents=2))
    ax = result.plot()
    ways = [line for line in ax.lines if not line.get_label().startswith("_")]
    plan = result.to_frame("plan")
    for line, (_, rows) in zip(ways, plan.groupby("robot", sort=False), strict=True):
        assert np.allclose(np.transpose(line.get_data()), rows[["x", "y"]])


def test_every_road_is_drawn_with_its_expected_load():
    result = cmpg.solve(cmpg.scenarios.routing())
    ax = result.plot("map")
    position = result.game.at(result.policy)
    loads = sum(position.usage(i).sum(axis=0) for i in range(result.game.num_agents))
    assert np.allclose(ax.collections[0].get_array(), loads * result.game.names.legend.load.each)


def test_the_potential_is_a_staircase_on_axes_that_are_given():
    game = cmpg.scenarios.grid_world(horizon=4)
    start = cmpg.feasible_start(game)
    result = cmpg.coordinate_ascent(game, getattr(start, "policy", start), epsilon=1e-6)
    axes = pyplot.subplots(1, 2)[1]
    assert result.plot("potential", ax=axes[0]) is axes[0]
    assert np.allclose(axes[0].lines[0].get_ydata(), [step.potential for step in result.trace])
    assert result.plot("gains", ax=axes[1]).get_yscale() == "log"


def test_trials_and_sweeps_have_plots_of_their_own():
    streams = np.random.SeedSequence(0).spawn(2)
    hidden = HiddenGame(cmpg.scenarios.spectrum())
    found = list(trials(hidden, BySharedModel(epsilon=0.5, delta=0.1), streams=streams))
    ax = cmpg.plot(found)
    assert [line.get_label() for line in ax.lines] == ["seed 0", "seed 1", "ε"]
    for each, line in zip(found, ax.lines, strict=False):
        assert line.get_marker() == ".", "a seed that stops after one round is a dot"
        assert line.get_xdata()[-1] == each.curve[-1].samples
    swept = cmpg.sweeps.sweep("spectrum", {"threshold": [0.05, 0.1, 0.3]})
    assert np.allclose(cmpg.plot(swept).lines[0].get_ydata(), [row.welfare for row in swept.rows])


@pytest.mark.parametrize(
    ("thing", "what", "words"),
    [
        ("result", "course", "there are potential"),
        ("result", "map", "no map"),
        ([], "", "Result"),
        ("text", "x", "what"),
    ],
)
def test_what_cannot_be_drawn_is_said(thing, what, words):
    given = cmpg.solve(cmpg.scenarios.counter_example()) if thing == "result" else thing
    with pytest.raises(cmpg.CMPGError, match=words):
        cmpg.plot(given, what)


def test_equilibria_print_as_a_table():
    found = cmpg.solve(cmpg.scenarios.spectrum(), restarts=cmpg.Restarts(3), rng=1).equilibria
    assert isinstance(found, Equilibria)
    assert repr(found) == f"<Equilibria {len(found)} equilibria>"
    assert found._repr_html_().count("<tr>") == len(found) + 1
    assert f"{found[0].values.sum():.6f}" in str(found)
    assert "no equilibria" in str(Equilibria())
