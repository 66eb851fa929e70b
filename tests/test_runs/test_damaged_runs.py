"""A learning run whose records were damaged is not resumed: the line is named, and what to do about it."""

import json

import pytest

from cmpg.errors import FileError
from cmpg.files.learning_folder import resume_learning_run
from fuzzing.doors import BY_NAME, small_games

REQUEST = {"command": "learn"}


@pytest.fixture
def folder(tmp_path):
    door = BY_NAME["resumed seeds"]
    door.prepare(tmp_path)
    (tmp_path / "seeds.jsonl").write_bytes(door.seeds()[0])
    return tmp_path


def resumed(folder):
    return resume_learning_run(folder, small_games()["plain"], REQUEST)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"seed": None}, "line 2: seed is None; a whole number of at least 0 is required"),
        ({"samples": {"model": [1]}}, "line 2: model is"),
        ({"curve": [[1, 2]]}, "line 2: curve is not a list of points"),
        ({"curve": [[1, "x", 0]]}, "line 2: gap"),
        ({"epsilon": []}, "line 2: epsilon is"),
        ({"true_costs": [0.1, 0.2]}, "line 2: true_costs has shape"),
        ({"right": 1}, "line 2: right is 1; true or false is required"),
        ({"void": [3]}, "line 2: void is"),
    ],
)
def test_a_damaged_record_is_named_by_its_line_when_a_run_is_resumed(fields, complaint, folder):
    path = folder / "seeds.jsonl"
    first, second = path.read_text().splitlines()
    path.write_text(f"{first}\n{json.dumps(json.loads(second) | fields)}\n")
    with pytest.raises(FileError, match=complaint) as told:
        resumed(folder)
    assert str(told.value).startswith(str(path))
    assert "Remove that line, and the seed is learned again" in str(told.value)


def test_records_that_are_no_text_or_not_whole_are_not_resumed(folder):
    path = folder / "seeds.jsonl"
    path.write_text('{"seed": 0}\n')
    with pytest.raises(FileError, match="line 1: the field 'status' is missing; the file is not whole"):
        resumed(folder)
    path.write_bytes(b"\xff\n")
    with pytest.raises(FileError, match="is not a text file"):
        resumed(folder)


def test_what_is_whole_is_kept_as_it_was_and_the_last_record_of_a_seed_counts(folder):
    path = folder / "seeds.jsonl"
    before = path.read_text()
    assert [record["seed"] for record in resumed(folder)] == [0, 1]
    assert path.read_text() == before
    path.write_text(before + before.splitlines()[0] + "\n" + '{"torn": ')
    assert [record["seed"] for record in resumed(folder)] == [0, 1]
    assert path.read_text() == before
