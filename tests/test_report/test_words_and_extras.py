"""Words that are rarely needed, and what is said where an optional package is not there."""

import json
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import cmpg
from cmpg.equilibrium.result import Result, Status
from cmpg.equilibrium.starts.start import Start
from cmpg.errors import CMPGError
from cmpg.files.records import certificate_record
from cmpg.games.game import Names
from cmpg.games.potential.check import FourCycle, Verdict, check_potential
from cmpg.report.animation import frames
from cmpg.report.display import check_summaries, selfish_line
from cmpg.report.formats import write_rows
from cmpg.report.learning_page import trials_summary
from cmpg.report.page import _no_curves
from cmpg.report.tables import rows_of
from cmpg.report.viewer import View, where_spent
from cmpg.report.wording import price_words
from cmpg.simulation import simulate
from cmpg.simulation.episodes import deviations
from cmpg.summaries import Table


@pytest.mark.parametrize(
    ("prices", "told"),
    [
        ([np.inf, np.inf], "none for all agents: nothing is left, and what would cost more is forbidden"),
        ([np.inf, 0.5], "none for 1 of 2 agents: nothing is left, and what would cost more is forbidden; Bo: 0.5"),
        ([0.25, 0.5], "Ada: 0.25, Bo: 0.5"),
    ],
)
def test_a_budget_of_which_nothing_is_left_has_no_price(prices, told):
    assert price_words(np.array(prices), ["Ada", "Bo"]) == told


def test_a_game_of_which_no_start_is_known_is_called_neither_feasible_nor_infeasible():
    game = cmpg.scenarios.counter_example()
    start = Start(None, -0.25, None, "phase one: agents in turn lower the worst cost")
    _, summary, _ = check_summaries(game, start, check_potential(game, rng=np.random.default_rng(1)))
    assert (summary.word, summary.good) == ("feasibility unknown", False)
    assert summary.sentence.endswith("least violation seen 0.25")


def test_selfish_play_that_found_nothing_says_why():
    game = cmpg.scenarios.counter_example()
    nothing = Result(Status.FEASIBILITY_UNKNOWN, "the time limit was reached.", 1e-6, game=game)
    told = selfish_line(nothing, cmpg.solve(game), game.thresholds)
    assert told == "without the constraints (FEASIBILITY_UNKNOWN): the time limit was reached."


def test_a_witness_without_the_values_of_its_corners_is_a_sentence():
    game = cmpg.scenarios.congestion_game(num_agents=2)
    found = check_potential(game, rng=np.random.default_rng(1))
    assert found.verdict is Verdict.REFUTED
    sentence, table = found.witness.description(game.names)
    assert len(table.rows) == 4
    bare = replace(found.witness, values=None)
    assert isinstance(bare, FourCycle)
    assert bare.description(Names()) == (sentence,)


def test_a_page_without_curves_says_which_of_two_reasons_it_has():
    assert "would change nothing" in _no_curves(True)
    assert "too large to solve" in _no_curves(False)


def test_nothing_learned_is_said():
    assert trials_summary([], thresholds=np.zeros(1)).word == "nothing was learned"


class OwnStates:
    """A joint game that says of its agents that they see their own states only."""

    information = cmpg.games.Information.OWN_STATE

    def __init__(self, game):
        self._game = game

    def __getattr__(self, name):
        return getattr(self._game, name)


def test_what_is_spent_is_shown_by_state_or_where_nobody_sees_the_joint_one_not_at_all():
    game = cmpg.scenarios.counter_example()
    policy = game.uniform_policy()
    assert where_spent(game, policy).parts.tolist() == [[[0.25]]]
    assert where_spent(OwnStates(game), policy).parts.shape == (1, 1, 0)


def test_a_table_of_pandas_needs_pandas_and_a_parquet_file_pyarrow(tmp_path, monkeypatch):
    result = cmpg.solve(cmpg.scenarios.counter_example())
    rows = rows_of(result, "policy")

    def without(*_, **__):
        raise ImportError("Unable to find a usable engine")

    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "pandas", None)
        with pytest.raises(CMPGError, match=r"pandas is not installed. Install it with: pip install 'cmpg\[frames\]'"):
            write_rows(rows, tmp_path / "policy.parquet", "parquet")
    monkeypatch.setattr("pandas.DataFrame.to_parquet", without)
    with pytest.raises(CMPGError, match="parquet needs pyarrow"):
        write_rows(rows, tmp_path / "policy.parquet", "parquet")
    assert not list(tmp_path.iterdir())


def test_a_moving_picture_needs_pillow(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(CMPGError, match="a GIF is drawn by Pillow, which is not installed"):
        frames(View("grid", "", {}))


def test_a_simulation_of_a_game_without_constraints_has_no_table_of_costs():
    limited = cmpg.scenarios.counter_example()
    tables = {"transition": limited.transition, "rewards": limited.rewards, "initial": limited.initial}
    game = cmpg.JointGame(**tables, costs=[], thresholds=[], horizon=1)
    seen = simulate(game, game.uniform_policy(), 50, rng=np.random.default_rng(1))
    assert [part.columns[0] for part in seen.summary().parts if isinstance(part, Table)] == ["agent"]
    assert repr(seen.shown[0]).startswith("<Episode ")


@pytest.mark.parametrize("confidence", [0.0, 1.0, 2.0])
def test_a_confidence_is_between_0_and_1(confidence):
    with pytest.raises(CMPGError, match="a number between 0 and 1 is required"):
        deviations(confidence)


def test_fractions_come_out_as_fractions_in_exact_mode(tmp_path):
    third, quarter = Fraction(1, 3), Fraction(3, 4)
    path = tmp_path / "game.json"
    reward, cost = [[[third, 2]]], [[[quarter, 1]]]
    fields = {
        "format": "cmpg-game",
        "version": 1,
        "form": "joint",
        "horizon": 1,
        "initial": [1],
        "transition": [[[[1], [1]]]],
        "rewards": [reward],
        "costs": [cost],
        "thresholds": ["4/5"],
    }
    path.write_text(json.dumps(fields, default=str))
    game = cmpg.load_game(path, exact=True)
    policy = cmpg.JointPolicy([np.array([[[1, 0]]])])
    certificate = cmpg.certify(game, policy, [[10]], exact=True)
    assert certificate.exactly.values == [third]
    assert certificate.exactly.costs == [quarter]
    # λ·α + max(r − λ·c) = 8 + max(1/3 − 15/2, 2 − 10)
    assert certificate.exactly.bounds == [8 + third - Fraction(15, 2)]
    agent = str(certificate).splitlines()[2].split()
    assert agent[2:5] == ["1/3", "5/6", "1/2"]
    assert "3/4" in str(certificate)
    assert certificate_record(certificate)["fractions"]["gains"] == ["1/2"]
    assert cmpg.certify(game, policy.floats(), [[10]]).arithmetic == "exact"  # the game holds rationals
