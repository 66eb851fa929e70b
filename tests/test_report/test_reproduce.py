"""`cmpg reproduce`: every claim has a row, the golden numbers come out, and the same seed gives the same bytes."""

import csv
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from cmpg.cli.main import main
from cmpg.errors import CMPGError, FileError
from cmpg.paper import reproduction as whole
from cmpg.paper.claims import Picture, Section, Verdict, added, agreed, claims_csv, refuted
from cmpg.paper.congestion import study_congestion
from cmpg.paper.counter_examples import study_counter_examples
from cmpg.paper.figures import new_figure, paper_style, save
from cmpg.paper.page import page
from cmpg.paper.runs import QUICK, Setting

TINY = replace(
    QUICK, matrix_starts=60, grid_runs=2, own_cell_runs=10, deviation_checks=3, congestion_runs=2, congestion_endings=3
)

KEYS = [
    "matrices",
    "primal-value",
    "primal-value-text",
    "primal-policy",
    "nash-set",
    "multipliers",
    "dual-function",
    "dual-value",
    "no-strong-duality",
    "dual-policies",
    "starts",
    "modified-primal",
    "modified-dual",
    "modified-dual-policies",
    "proposition-2",
    "proposition-2-proof",
    "unit-rewards",
    "lemma-1",
    "theorem-1-bound",
    "theorem-1-moves",
    "example-1",
    "example-2",
    "occupancy-mean",
    "occupancy-index",
    "algorithm-1-return",
    "figure-policy",
    "figure-collisions",
    "returned-policy",
    "grid-duality",
    "grid-dual-policy",
    "grid-least-cost",
    "gains-vanish",
    "grid-costs",
    "random-starts",
    "unvisited-rows",
    "own-cell",
    "own-cell-start",
    "own-cell-ties",
    "own-cell-best-of-ten",
    "own-cell-second-best",
    "discarded-runs",
    "congestion-figure",
    "congestion-unconstrained",
    "congestion-slack",
    "congestion-gains",
    "congestion-feasible",
    "congestion-start",
    "congestion-cost",
    "congestion-endings",
    "congestion-costless",
    "first-step",
    "not-a-potential-game",
    "witness-by-hand",
    "true-potential-games",
    "theorem-2-constants",
    "samples-per-entry",
    "algorithm-3-programs",
    "multiplier-bound",
    "tightening-sign",
    "slater",
    "concentration-lemma",
    "regret-lemma",
    "theorem-2-run",
]

# By key: which of the claim's numbers, what they must be, to within what.
GOLDEN = [
    ("primal-value", slice(0, 2), [4.5 - 2**0.5] * 2, 1e-6),
    ("primal-policy", slice(0, 3), [0.5**0.5, 0.5**0.5, 0.0], 1e-3),
    ("nash-set", slice(0, 3), [3.0, 8 / 3, 13], 1e-9),
    ("multipliers", slice(None), [3 - 2**0.5] * 2, 1e-9),
    ("dual-function", slice(None), [4.0, 4.0, 1000], 1e-12),
    ("dual-value", slice(None), [3.5, 1.0], 1e-9),
    ("no-strong-duality", slice(None), [2**0.5 - 1], 1e-5),
    ("dual-policies", slice(None), [3.0, 4.0, 0.0, 1.0], 1e-12),
    ("starts", slice(0, 1), [0.287], 0.15),
    ("modified-primal", slice(None), [3.5] * 3, 1e-6),
    ("modified-dual", slice(0, 1), [3.5], 1e-9),
    ("modified-dual-policies", slice(None), [3.25, 0.25, 0.25], 1e-9),
    ("theorem-1-bound", slice(None), [4800, 2400, 47040], 0),
    ("lemma-1", slice(None), [24, 12, 240], 1e-9),
    ("example-2", slice(None), [5, 5, 0.5, 6], 1e-9),
    ("figure-policy", slice(None), [23.1, 0.1, 0.0], 1e-9),
    ("figure-collisions", slice(None), [0.1], 1e-12),
    ("returned-policy", slice(None), [1.0, 0.1, 1.0, 0.1], 1e-9),
    ("grid-duality", slice(None), [23.1, 23.1, 1.0], 1e-9),
    ("grid-dual-policy", slice(None), [24.0, 1.0], 1e-12),
    ("grid-least-cost", slice(None), [0.0, 0.1], 1e-12),
    ("grid-costs", slice(0, 1), [0.0], 0),
    ("own-cell-start", slice(None), [0.0], 0),
    ("own-cell-second-best", slice(None), [20.4, 0.0], 1e-9),
    ("discarded-runs", slice(0, 1), [0.0], 0),
    ("congestion-figure", slice(None), [0.5, -36.0, -28.0, -256.0, 0.0], 1e-9),
    ("congestion-slack", slice(None), [0.0], 1e-12),
    ("congestion-gains", slice(None), [1.0, 13.0], 2.5),
    ("congestion-feasible", slice(None), [0.0], 0),
    ("congestion-start", slice(None), [0.115, 0.115], 0.05),
    ("congestion-costless", slice(None), [0.0, 90.0, 0.0], 1e-9),
    ("first-step", slice(0, 2), [0.5, 1.5], 1e-12),
    ("not-a-potential-game", slice(2, 4), [-148.0, 16.0], 1e-9),
    ("witness-by-hand", slice(None), [4, 4, 4, 3, 4, 3, 3, 8, 5], 1e-12),
    ("true-potential-games", slice(None), [1, 1, 1], 0),
    ("slater", slice(None), [-1.0, 0.1, 0.5], 1e-9),
    ("regret-lemma", slice(None), [1.62, 0.9], 1e-9),
]


@pytest.fixture(scope="module")
def found():
    return whole.reproduce(seed=1, effort=TINY, jobs=2)


@pytest.fixture(scope="module")
def folder(found, tmp_path_factory):
    target = tmp_path_factory.mktemp("reproduction") / "out"
    whole.write(found, target)
    return target


def test_every_claim_has_a_row_and_comes_out_as_the_notes_say(found):
    assert sorted(claim.key for claim in found.claims) == sorted(KEYS)
    assert [claim.key for claim in found.surprises] == []
    assert all(claim.statement and claim.paper and claim.ours for claim in found.claims)
    assert all(claim.why for claim in found.claims if claim.verdict is Verdict.DIFFERS)


@pytest.mark.parametrize(("key", "which", "expected", "tolerance"), GOLDEN, ids=[row[0] for row in GOLDEN])
def test_golden_numbers(found, key, which, expected, tolerance):
    numbers = next(claim.numbers for claim in found.claims if claim.key == key)
    assert list(numbers[which]) == pytest.approx(expected, abs=tolerance)


def test_the_refutations_are_not_close_calls(found):
    numbers = {claim.key: claim.numbers for claim in found.claims}
    assert numbers["proposition-2-proof"][0] > 1e-3
    assert abs(np.diff(numbers["occupancy-index"])[0]) > 1e-3
    assert numbers["first-step"][2] > 1  # the figure's policy is not Nash there
    assert numbers["not-a-potential-game"][0] > 1e-3
    assert numbers["not-a-potential-game"][1] >= 50
    assert min(numbers["concentration-lemma"][:2]) > 0.3
    assert numbers["concentration-lemma"][2] == 0
    assert numbers["tightening-sign"][0] > 0.1 > numbers["tightening-sign"][1]


def test_samples_are_those_of_the_notes(found):
    numbers = next(claim.numbers for claim in found.claims if claim.key == "samples-per-entry")
    printed, corrected, adaptive = numbers[0::3], numbers[1::3], numbers[2::3]
    assert printed == pytest.approx([2.7e8, 2.3e8, 5.7e9, 2.2e12], rel=0.03)
    assert corrected == pytest.approx([8.9e4, 2.7e5, 5.8e6, 1.5e9], rel=0.03)
    assert 256 <= adaptive[0] <= 4096
    assert 2048 <= adaptive[3] <= 32768


def test_the_tables_hold_the_claims(found, folder):
    with (folder / "claims.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    record = json.loads((folder / "claims.json").read_text("utf-8"))
    assert [row["key"] for row in rows] == [claim.key for claim in found.claims]
    assert [each["ours"] for each in record["claims"]] == [claim.ours for claim in found.claims]
    assert record["seed"] == 1
    again = [float(number) for number in rows[1]["numbers"].split()]
    assert again == list(found.claims[1].numbers)


def test_the_page_holds_everything_and_asks_for_nothing(found, folder):
    text = (folder / "index.html").read_text("utf-8")
    assert len(text) < 6e6
    for claim in found.claims:
        assert f'id="claim-{claim.key}"' in text
    for section in found.sections:
        for picture in section.pictures:
            assert f'id="{picture.name}-' in text
    assert text.count("<svg") == sum(len(section.pictures) for section in found.sections)
    assert "<script" not in text
    assert "src=" not in text
    assert 'href="http' not in text.replace('xlink:href="http', "")
    assert "@import" not in text
    identifiers = [part.split('"')[0] for part in text.split(' id="')[1:]]
    references = [part.split('"')[0] for part in text.split('href="#')[1:]]
    assert set(references) <= set(identifiers)


def test_every_figure_is_there_twice(found, folder):
    names = {picture.name for section in found.sections for picture in section.pictures}
    written = {path.name for path in (folder / "figures").iterdir()}
    assert written == {f"{name}.{kind}" for name in names for kind in ("svg", "pdf")}


@pytest.mark.parametrize("study", [study_counter_examples, study_congestion])
def test_the_same_seed_gives_the_same_table_for_any_number_of_jobs(study):
    effort = replace(TINY, matrix_starts=10, congestion_runs=1, congestion_endings=2, cycle_proposals=100)
    tables = []
    for seed, jobs in ((3, 1), (3, 2), (4, 1)):
        result = study(Setting(effort, np.random.SeedSequence(seed), jobs, lambda *_: None))
        tables.append(claims_csv([getattr(result, "section", result)]))
    assert tables[0] == tables[1]
    assert tables[0] != tables[2]


def test_a_figure_has_the_same_bytes_each_time(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with paper_style():
            figure = new_figure(3, 2)
            figure.add_subplot().plot([0, 1], [0, 1], label="$d(\\lambda)$")
            save(figure, tmp_path / name, "line")
    for kind in ("svg", "pdf"):
        first, second = ((tmp_path / name / f"line.{kind}").read_bytes() for name in ("one", "two"))
        assert first == second
        assert b"Date" not in first


def test_verdicts_are_computed():
    assert agreed("a", "s", paper="1", ours="1", holds=True).verdict is Verdict.AGREES
    assert agreed("a", "s", paper="1", ours="2", holds=False).surprising
    assert refuted("a", "s", paper="1", ours="1", holds=True, why="w").surprising
    assert not refuted("a", "s", paper="1", ours="2", holds=False, why="w").surprising
    assert added("a", "s", ours="2").paper == "not stated"


def test_the_page_marks_what_is_unexpected_and_escapes_text():
    odd = agreed("odd", "a < b & c", paper="<b>", ours="2", holds=False)
    text = page([Section("Title", "note", (odd,))], {}, heading="Heading", settings="none")
    assert "unexpected" in text
    assert "a &lt; b &amp; c" in text
    assert "<b>" not in text


# Bad input.


def run_command(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["cmpg", "reproduce", *words])
    with pytest.raises(SystemExit) as ending:
        main()
    return ending.value.code


def test_a_folder_that_is_not_empty_is_left_alone(monkeypatch, tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert run_command(monkeypatch, "--quick", "--out", str(tmp_path)) == 2
    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_without_matplotlib_it_says_what_to_install(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run_command(monkeypatch, "--quick", "--out", str(tmp_path / "new")) == 2
    assert "cmpg[plot]" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("option", "value"), [("--jobs", "0"), ("--seed", "-1")])
def test_numbers_out_of_range_are_refused(monkeypatch, tmp_path, capsys, option, value):
    assert run_command(monkeypatch, "--quick", "--out", str(tmp_path / "new"), option, value) == 2
    assert option.removeprefix("--") in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_missing_parent_is_refused(tmp_path):
    with pytest.raises(FileError, match="parent folder"):
        whole.write(whole.Reproduction((), 1, TINY), tmp_path / "no" / "such")


def test_nothing_half_written_is_left_behind(tmp_path):
    def fail():
        raise CMPGError("the pen broke")

    broken = Section("Title", "note", (), (Picture("one", "caption", fail),))
    with pytest.raises(CMPGError, match="pen"):
        whole.write(whole.Reproduction((broken,), 1, TINY), tmp_path / "new")
    assert list(tmp_path.iterdir()) == []
