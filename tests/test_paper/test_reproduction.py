"""`cmpg reproduce`: the folder holds every claim and figure, has the same bytes for a seed, and can be made again."""

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cmpg.cli.main import main
from cmpg.errors import CMPGError, FileError
from cmpg.paper import QUICK, counter_examples, learning, literal
from cmpg.paper import reproduction as whole
from cmpg.paper.claims import Evidence, Finding, Picture, Section, agrees, near
from cmpg.paper.figures import draw_bars, new_figure, paper_style, save


@pytest.fixture(scope="module")
def found(evidence):
    return whole.reproduce(evidence)


@pytest.fixture(scope="module")
def folder(found, tmp_path_factory):
    target = tmp_path_factory.mktemp("reproduction") / "out"
    whole.write(found, target)
    return target


def test_the_tables_hold_the_claims(found, folder):
    with (folder / "claims.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    record = json.loads((folder / "claims.json").read_text("utf-8"))
    assert [row["key"] for row in rows] == [each.claim.key for each in found.claims]
    assert [each["ours"] for each in record["claims"]] == [each.finding.ours for each in found.claims]
    assert record["seed"] == 1
    again = [float(number) for number in rows[1]["numbers"].split()]
    assert again == list(found.claims[1].finding.numbers)


def test_the_page_holds_everything_and_asks_for_nothing(found, folder):
    text = (folder / "index.html").read_text("utf-8")
    assert len(text) < 6e6
    for each in found.claims:
        assert f'id="claim-{each.claim.key}"' in text
    assert whole.PAPER in text
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


def test_the_same_seed_gives_the_same_table_for_any_number_of_jobs(evidence):
    effort = replace(evidence.effort, matrix_starts=10)
    tables = []
    for seed, jobs in ((3, 1), (3, 2), (4, 1)):
        found = whole.reproduce(Evidence(seed, effort, jobs), sections=[counter_examples.SECTION])
        tables.append(whole.claims_csv(found.sections))
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


@agrees("here", paper="<b>", expect=near(1.0))
def odd(_):
    """a < b & c."""
    return Finding.of("2", 2)


def test_zero_is_written_at_the_foot_of_a_logarithmic_axis(tmp_path):
    with paper_style():
        figure = draw_bars({"drawn": [0.0, 512.0]}, ["safe", "shared"], what="samples", width=5.6)
        save(figure, tmp_path, "bars")
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == ["0", "512"]
    bottom, top = (axes.transAxes.transform((0, height))[1] for height in (0, 1))
    for text in axes.texts:
        height = text.get_transform().transform(text.get_position())[1]
        assert bottom <= height <= top


def test_the_page_marks_what_is_unexpected_and_escapes_text():
    found = whole.reproduce(sections=[Section("Title", "note", (odd,), lambda _: ())])
    assert [each.claim.key for each in found.surprises] == ["odd"]
    text = whole.page(found.sections, {}, heading="Heading", authors="A & B", settings="none")
    assert '<span class="verdict unexpected">' in text.split("<main>")[1]
    assert "Unexpected in this run: odd." in text
    assert "a &lt; b &amp; c" in text
    assert "A &amp; B" in text
    assert "<b>" not in text


# Once more.


def small(seed=1):
    return whole.Reproduction(
        whole.reproduce(sections=[Section("Title", "note", (odd,), lambda _: ())]).sections, seed, whole.Effort()
    )


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_second_reproduction_replaces_the_first(tmp_path):
    target = tmp_path / "out"
    whole.write(small(1), target)
    whole.write(small(2), target)
    assert json.loads((target / "claims.json").read_text("utf-8"))["seed"] == 2
    assert files(tmp_path) == ["out", "out/claims.csv", "out/claims.json", "out/figures", "out/index.html"]


@pytest.mark.parametrize("name", ["mine.txt", "figures/mine.svg", "mine/notes.txt"])
def test_a_file_that_it_did_not_write_stops_it(tmp_path, name):
    target = tmp_path / "out"
    whole.write(small(1), target)
    (target / name).parent.mkdir(exist_ok=True)
    (target / name).write_text("mine")
    before = files(target)
    with pytest.raises(FileError, match=name):
        whole.write(small(2), target)
    assert files(target) == before
    assert json.loads((target / "claims.json").read_text("utf-8"))["seed"] == 1


@pytest.mark.parametrize("text", ["{}", "[]", "not json", '{"format": "other", "files": ["claims.json"]}'])
def test_a_folder_with_another_claims_file_is_left_alone(tmp_path, text):
    (tmp_path / "claims.json").write_text(text)
    with pytest.raises(FileError, match="is not empty"):
        whole.write(small(), tmp_path)
    assert (tmp_path / "claims.json").read_text() == text


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


def test_the_command_shows_every_claim_and_ends_with_1_where_one_is_unexpected(monkeypatch, tmp_path, capsys):
    found = small(seed=7)
    monkeypatch.setattr(whole, "reproduce", lambda evidence: found if evidence.seed == 7 else None)
    assert run_command(monkeypatch, "--quick", "--seed", "7", "--out", str(tmp_path / "new")) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "unexpected" in shown
    assert "a < b & c" in shown
    assert "Unexpected in this run: odd." in shown
    assert f"open {tmp_path / 'new'}/index.html" in shown
    assert json.loads((tmp_path / "new" / "claims.json").read_text("utf-8"))["seed"] == 7


@pytest.mark.parametrize(("option", "value"), [("--jobs", "0"), ("--seed", "-1")])
def test_numbers_out_of_range_are_refused(monkeypatch, tmp_path, capsys, option, value):
    assert run_command(monkeypatch, "--quick", "--out", str(tmp_path / "new"), option, value) == 2
    assert option.removeprefix("--") in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_missing_parent_is_refused(tmp_path):
    with pytest.raises(FileError, match="parent folder"):
        whole.write(small(), tmp_path / "no" / "such")


def test_nothing_half_written_is_left_behind(tmp_path):
    def fail():
        raise CMPGError("the pen broke")

    broken = Section("Title", "note", (), lambda _: (Picture("one", "caption", fail),))
    with pytest.raises(CMPGError, match="pen"):
        whole.write(whole.reproduce(sections=[broken]), tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


class Interrupting(np.random.Generator):
    """A generator that is interrupted when it is drawn from."""

    def multinomial(self, *_, **__):
        raise KeyboardInterrupt

    binomial = random = multinomial


def interrupted_in(stream):
    """Evidence that is interrupted inside whatever draws from one of its random streams."""

    class Interrupted(Evidence):
        def streams(self, name, count):
            found = super().streams(name, count)
            return [Interrupting(each.bit_generator) for each in found] if name == stream else found

    return Interrupted(1, QUICK)


@pytest.mark.parametrize(
    ("claim", "stream"),
    [
        (learning.learned_games, "learning: spectrum, generative, 0.5"),
        (learning.coverage, "learning, generative: coverage"),
        (literal.corollary_1_run, "learning: Corollary 1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_claim_is_not_made_of_an_interrupted_run(claim, stream):
    with pytest.raises(KeyboardInterrupt):
        claim.check(interrupted_in(stream))


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_earlier_reproduction_stays_if_replacing_it_is_interrupted(tmp_path, monkeypatch):
    target = tmp_path / "out"
    whole.write(small(1), target)
    before, rename = contents(target), Path.rename

    def interrupted(self, to):
        rename(self, to)
        if self == target:
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        whole.write(small(2), target)
    assert contents(target) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_no_claim_is_made_of_what_answers_a_signal_with_less_and_the_earlier_reproduction_stays(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("cmpg.cli.reproduce.was_interrupted", lambda: True)
    target = tmp_path / "out"
    target.mkdir()
    (target / "claims.json").write_text(json.dumps({"format": "cmpg-reproduction", "files": ["claims.json"]}))
    before = contents(target)
    assert run_command(monkeypatch, "--quick", "--jobs", "1", "--out", str(target)) == 130
    assert capsys.readouterr().err.endswith("interrupted; nothing was kept\n")
    assert contents(target) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
