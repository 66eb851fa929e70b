"""Folders, archives and scenario files at their edges: whoever is in the way, and whatever lies, is named."""

import json
import os
import struct
import sys
import tempfile
import zipfile
from datetime import date
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import cmpg as library
from bad_files import a_stranger, header
from cmpg.equilibrium.certificate import certify
from cmpg.equilibrium.result import Incumbent, Result, Status
from cmpg.errors import FileError
from cmpg.files import long_runs
from cmpg.files.containers import check_out_folder, file_kind, read_fields
from cmpg.files.learning_folder import load_learning_run
from cmpg.files.long_runs import game_digest, sole_writer
from cmpg.files.run_folder import load_run
from cmpg.files.scenario_file import check_drawing, read_scenario, write_scenario
from cmpg.scenarios import Origin, counter_example
from cmpg.scenarios.drawings import drawing_of
from command_line import cmpg
from fuzzing.doors import BY_NAME


def test_an_archive_that_holds_less_than_its_directory_says_is_refused(tmp_path):
    path = tmp_path / "game.npz"
    held = header("{'descr': '<f8', 'fortran_order': False, 'shape': (300,), }", np.ones(3).tobytes())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("thresholds.npy", held)
    forged = bytearray(path.read_bytes())
    at = forged.index(b"PK\x01\x02") + 24  # where the directory says how many bytes there are
    forged[at : at + 4] = struct.pack("<I", len(held) + 8 * 297)
    path.write_bytes(forged)
    with pytest.raises(FileError, match=r"game\.npz: is not a whole .npz file .*ends before its last number"):
        read_fields(path)


def test_what_cannot_be_read_is_of_no_kind(tmp_path):
    path = tmp_path / "policy.npz"
    path.write_bytes(b"not an archive")
    assert file_kind(path) is None
    done = cmpg("convert", path, tmp_path / "other.json")
    assert (done.code, "policy.npz: is not a whole .npz file" in done.err) == (2, True)


def test_an_empty_folder_of_somebody_else_is_not_written_to(tmp_path, monkeypatch):
    # The system asks who began the process, and that may be root, who may write everywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: bool(path.stat().st_mode & 0o002))
    (tmp_path / "theirs").mkdir(mode=0o755)
    with pytest.raises(FileError, match="theirs: you may not write there"):
        check_out_folder(tmp_path / "theirs")


def test_a_run_in_a_folder_of_somebody_else_is_not_resumed():
    with tempfile.TemporaryDirectory() as ours:  # and not that of pytest, into which nobody else may look
        Path(ours).chmod(0o755)
        folder = Path(ours) / "run"
        folder.mkdir()
        folder.chmod(0o555)
        with (
            a_stranger(),
            pytest.raises(FileError, match=r"run: cannot be written \(Permission denied\)"),
            sole_writer(folder, resume=True),
        ):
            pass


def test_a_writer_who_was_a_moment_earlier_is_named(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    with sole_writer(folder):
        monkeypatch.setattr(long_runs, "_refuse_if_locked", lambda folder: None)  # it came after that look
        monkeypatch.setattr(long_runs, "check_out_folder", lambda folder: None)
        with pytest.raises(FileError, match=rf"process {os.getpid()} on .* is writing there"), sole_writer(folder):
            pass


def test_files_that_appear_before_the_lock_are_not_written_over(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    folder.mkdir()

    def a_moment_later(folder):
        (folder / "theirs.txt").write_text("kept")

    monkeypatch.setattr(long_runs, "check_out_folder", a_moment_later)
    with pytest.raises(FileError, match="run: is not empty; nothing is written over"), sole_writer(folder):
        pass
    assert [path.name for path in folder.iterdir()] == ["theirs.txt"]


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
def test_a_lock_on_a_file_that_is_gone_is_nobodys_lock(replaced, tmp_path, monkeypatch):
    folder, lock, tries = tmp_path / "run", long_runs._try_lock, []

    def removed_at_first(descriptor):
        tries.append(descriptor)
        if len(tries) == 1:  # whoever had it before removes it when done
            (folder / ".writer").unlink()
            if replaced:
                (folder / ".writer").write_text("another one")
        return lock(descriptor)

    monkeypatch.setattr(long_runs, "_try_lock", removed_at_first)
    with sole_writer(folder):
        monkeypatch.undo()
        assert len(tries) == 2
        with pytest.raises(FileError, match="is writing there"), sole_writer(folder):
            pass


def test_folders_are_written_where_the_system_has_no_locks(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with sole_writer(tmp_path / "run"):
        (tmp_path / "run" / "kept.txt").write_text("kept")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["kept.txt"]


def test_a_class_of_ones_own_has_no_digest():
    with pytest.raises(FileError, match="a dict has no file form, so no run of it can be resumed"):
        game_digest({})


def test_a_learning_run_without_a_name_is_called_like_its_folder(tmp_path):
    door = BY_NAME["learning seeds.jsonl"]
    door.prepare(tmp_path / "radios")
    (tmp_path / "radios" / "seeds.jsonl").write_bytes(door.seeds()[0])
    assert "name" not in json.loads((tmp_path / "radios" / "request.json").read_text())
    assert load_learning_run(tmp_path / "radios").name == "radios"
    (tmp_path / "radios" / "request.json").unlink()
    assert load_learning_run(tmp_path / "radios").name == "radios"


@pytest.fixture
def run_folder(tmp_path):
    library.solve(library.scenarios.counter_example()).save(tmp_path / "run")
    return tmp_path / "run"


def test_a_run_that_was_read_prints_what_its_result_prints(run_folder):
    run = library.load_run(run_folder)
    assert str(run) == str(run.result)
    assert run._repr_html_() == run.result._repr_html_()


def test_a_witness_that_is_no_list_is_refused_with_the_path(tmp_path):
    run_folder = tmp_path / "run"
    library.solve(library.scenarios.grid_world_local()).save(run_folder)  # whose gains are not exactly zero
    path = run_folder / "result.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"status": "NOT_POTENTIAL", "epsilon": 0, "witness": {"agents": 3}}))
    with pytest.raises(FileError, match=r"result\.json: a field is not what it should be .*Solve again") as told:
        library.load_run(run_folder)
    assert str(path) in str(told.value)


def test_options_of_any_kind_are_told_in_words_that_json_knows(tmp_path):
    options = {
        "limits": (0.1, 0.2),
        "by_name": {1: Path("maps") / "a.map"},
        "day": date(2019, 6, 10),
        "open": True,
        "none": None,
    }
    write_scenario(tmp_path / "scenario.json", Origin("mine", options), None)
    origin, drawing = read_scenario(tmp_path / "scenario.json")
    assert drawing is None
    assert origin.options == {
        "limits": [0.1, 0.2],
        "by_name": {"1": "maps/a.map"},
        "day": "2019-06-10",
        "open": True,
        "none": None,
    }


@pytest.mark.parametrize("name", ["routing", "charging"])
def test_roads_and_loads_are_not_drawn_for_a_game_without_resources(name, tmp_path):
    with pytest.raises(FileError, match="its drawing is of another game"):
        check_drawing(tmp_path / "scenario.json", drawing_of(Origin(name, {})), library.scenarios.counter_example())


def test_a_bound_that_is_open_is_read_back_as_open_and_as_nothing_else(tmp_path):
    game = counter_example()
    policy = game.uniform_policy()
    certificate = certify(game, policy, [[np.inf], [0.0]])  # something is left of the budget: this proves nothing
    assert np.isinf(certificate.bounds[0])
    found = Incumbent(policy, certificate.multipliers, certificate)
    Result(Status.LIMIT, "open", 1e-6, incumbent=found, game=game).save(tmp_path / "run")
    again = load_run(tmp_path / "run").result.certificate
    assert again.bounds.tolist() == certificate.bounds.tolist()
    record = tmp_path / "run" / "certificate.json"
    for place, said in ((0, 2.0), (1, None)):
        fields = json.loads(record.read_text("utf-8"))
        fields["bounds"][place] = said
        record.write_text(json.dumps(fields))
        with pytest.raises(FileError, match="its bounds are not those"):
            load_run(tmp_path / "run")
        fields["bounds"] = [None, 3.0]
        record.write_text(json.dumps(fields))


def test_a_run_that_is_read_says_what_its_equilibria_are_compared_by(tmp_path):
    solved = library.solve(library.scenarios.spectrum(), restarts=library.Restarts(3), rng=1)
    solved.save(tmp_path / "run")
    read = load_run(tmp_path / "run").result
    assert read.score == solved.score
    assert read.score[0] == "potential"
    assert [each.score for each in read.equilibria] == [each.score for each in solved.equilibria]
    assert "at the same potential" in str(read)


def test_a_fraction_that_python_could_not_read_again_is_not_written(tmp_path):
    tables = {"transition": np.ones((1, 1, 2, 1)), "rewards": np.ones((1, 1, 1, 2)), "costs": np.ones((1, 1, 1, 2))}
    game = library.JointGame(**tables, initial=[1], thresholds=[Fraction(1, 3**10_000)], horizon=1)
    with pytest.raises(FileError, match="more than 14,000 bits"):
        library.save_game(game, tmp_path / "game.json")
