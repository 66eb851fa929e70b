"""The two containers: what is written comes back, and what is not whole is refused before anything is allocated."""

import json
import os
import struct
import tracemalloc
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bad_files import a_stranger, header, members_of, mutated, npy, refused, write_json, write_npz
from cmpg.errors import FileError, GameError, PolicyError
from cmpg.files import containers
from cmpg.files.containers import (
    check_kind,
    json_text,
    number_table,
    plain,
    read_fields,
    write_atomically,
    write_fields,
)

RECORD = {"format": "cmpg-thing", "version": 1, "rows": [[0.1, 2], [-3.5, 1e-300]], "names": ["a", "b"]}


@pytest.mark.parametrize("ending", ["json", "npz", "NPZ"])
def test_what_is_written_comes_back(tmp_path, ending):
    path = tmp_path / f"thing.{ending}"
    write_fields(path, RECORD | {"rows": np.array(RECORD["rows"])})
    fields = read_fields(path)
    assert fields["format"] == "cmpg-thing"
    assert fields["version"] == 1
    assert np.array_equal(number_table("rows", fields["rows"]), RECORD["rows"])
    assert list(fields["names"]) == ["a", "b"]


def test_floats_survive_json_bit_for_bit(tmp_path):
    floats = np.random.default_rng(0).standard_normal(300) * 10.0 ** np.random.default_rng(1).integers(-300, 300, 300)
    write_fields(tmp_path / "a.json", {"x": floats})
    assert np.array_equal(number_table("x", read_fields(tmp_path / "a.json")["x"]), floats)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.fractions(max_denominator=10**9), min_size=1))
def test_fractions_survive_json_exactly(tmp_path_factory, exact):
    path = tmp_path_factory.mktemp("exact") / "a.json"
    write_fields(path, {"x": np.array(exact, dtype=object)})
    assert number_table("x", read_fields(path, exact=True)["x"], exact=True).tolist() == exact


def test_decimals_are_read_exactly_only_where_asked(tmp_path):
    path = write_json(tmp_path / "a.json", {"x": [0.1, "1/3", 2]})
    exact = number_table("x", read_fields(path, exact=True)["x"], exact=True)
    assert exact.tolist() == [Fraction(1, 10), Fraction(1, 3), Fraction(2)]
    rounded = number_table("x", [0.1, "1/4", 2])
    assert rounded.dtype == np.float64
    assert rounded.tolist() == [0.1, 0.25, 2.0]
    with pytest.raises(GameError, match=r"x\[1\] is 1/3, which no float holds"):
        number_table("x", read_fields(path)["x"])


def test_whole_numbers_beyond_floats_stay_exact():
    assert number_table("x", [2**60 + 1], exact=True).tolist() == [2**60 + 1]


def test_a_table_is_read_only():
    with pytest.raises(ValueError, match="read-only"):
        number_table("x", [1, 2])[0] = 3


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([[1, 2], [3]], "ragged"),
        ([1, "x"], r"x\[1\] is 'x'"),
        ([1, None], r"x\[1\] is None"),
        ([1, {}], r"x\[1\] is {}"),
        ("three", "x is 'three'"),
        (["1/0"], r"x\[0\] is '1/0'"),
        (["1e999999999999"], r"x\[0\] is '1e9"),
        ([10**400], r"x\[0\] is 1000"),
        (["nan"], r"x\[0\] is 'nan'"),
        ([float("inf")], r"x\[0\] is inf"),
        (np.array(["1/3"]), "numbers are required"),
        (np.array([1 + 2j]), "numbers are required"),
    ],
)
@pytest.mark.parametrize("exact", [False, True])
def test_what_is_no_number_is_named_with_its_place(value, words, exact):
    for error in (GameError, PolicyError):
        with pytest.raises(error, match=words) as problem:
            number_table("x", value, exact=exact, error=error)
        assert len(str(problem.value)) < 200


def test_one_long_string_does_not_widen_the_table():
    tracemalloc.start()
    with pytest.raises(GameError):
        number_table("x", ["y" * 10**6, *[0] * 1000])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * 10**6


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: not valid JSON"),
        ('{"a": 1,\n\n "b": }', "line 3: not valid JSON"),
        ("[1, 2]", "a JSON object with named fields"),
        ("3", "a JSON object with named fields"),
        ('{"a": NaN}', "NaN is no number"),
        ('{"a": [-Infinity]}', "-Infinity is no number"),
        ('{"a": 1, "b": 2, "a": 3}', "'a' is there more than once"),
        ('{"a": ' + "9" * 5000 + "}", "a number that cannot be read"),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
    ],
)
def test_json_that_is_not_ours(tmp_path, text, words):
    path = tmp_path / "a.json"
    path.write_text(text)
    for exact in (False, True):
        with pytest.raises(FileError, match=words) as problem:
            read_fields(path, exact=exact)
        assert str(problem.value).startswith(str(path))


def test_a_power_of_ten_that_fills_the_memory_is_never_computed(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": 1e999999999999}')
    with pytest.raises(FileError, match="cannot be read"):
        read_fields(path, exact=True)
    with pytest.raises(GameError, match="is inf"):
        number_table("a", read_fields(path)["a"])


def test_a_byte_order_mark_is_no_reason_to_complain(tmp_path):
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_fields(tmp_path / "a.json") == {"a": 1}


def test_binary_that_is_called_json(tmp_path):
    (tmp_path / "a.json").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(FileError, match="is not a text file"):
        read_fields(tmp_path / "a.json")


@pytest.mark.parametrize("name", ["a.json", "a.npz"])
def test_files_that_are_not_there(tmp_path, name):
    with pytest.raises(FileError, match="there is no such file"):
        read_fields(tmp_path / name)
    with pytest.raises(FileError, match="there is no such file"):
        read_fields(tmp_path / "nowhere" / name)
    (tmp_path / name).mkdir()
    with pytest.raises(FileError, match="is a folder"):
        read_fields(tmp_path / name)
    with pytest.raises(FileError, match="cannot be read"):
        read_fields(tmp_path / ("long" * 100 + name))


@pytest.mark.parametrize("name", ["a.json", "a.npz"])
def test_files_that_may_not_be_read(tmp_path, name):
    write_fields(tmp_path / name, RECORD)
    (tmp_path / name).chmod(0)
    with a_stranger(), pytest.raises(FileError, match="cannot be read"):
        read_fields(tmp_path / name)


@pytest.mark.parametrize("name", ["a.txt", "a", "json"])
def test_other_endings(tmp_path, name):
    for act in (lambda: read_fields(tmp_path / name), lambda: write_fields(tmp_path / name, RECORD)):
        with pytest.raises(FileError, match=r"\.json or \.npz is required"):
            act()


def test_text_that_is_called_npz(tmp_path):
    (tmp_path / "a.npz").write_text("hello")
    with pytest.raises(FileError, match="is not a whole"):
        read_fields(tmp_path / "a.npz")
    (tmp_path / "a.npz").write_text("")
    with pytest.raises(FileError, match="is not a whole"):
        read_fields(tmp_path / "a.npz")
    np.save(tmp_path / "b.npy", np.zeros(3))
    (tmp_path / "b.npy").rename(tmp_path / "a.npz")
    with pytest.raises(FileError, match="is not a whole"):
        read_fields(tmp_path / "a.npz")


FORGED = {
    "more entries than bytes": header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"),
    "fewer entries than bytes": header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", bytes(16)),
    "a negative length": header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1), }", bytes(8)),
    "entries of no bytes": header("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }"),
    "objects": npy(np.array([{}], dtype=object), allow_pickle=True),
    "records": npy(np.zeros(2, dtype=[("a", "<f8"), ("b", "<f8")])),
    "raw bytes": npy(np.array([b"abc"])),
    "dates": npy(np.array(["2020-01-01"], dtype="datetime64[D]")),
    "complex numbers": npy(np.array([1j])),
    "no header": b"hello",
    "nothing": b"",
    "half a header": header("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }")[:40],
    "a header that is no dict": header("[1, 2]"),
    "a header that is no Python": header("{'descr': '<f8', "),
    "a header with a call": header("{'descr': __import__('os'), 'fortran_order': False, 'shape': (), }"),
    "a header with long integers": header("{'descr': '<f8', 'fortran_order': False, 'shape': (3L,), }", bytes(24)),
    "another version": b"\x93NUMPY\x09\x00" + header("")[8:],
}


@pytest.mark.parametrize("data", FORGED.values(), ids=FORGED.keys())
def test_arrays_with_forged_headers(tmp_path, data):
    path = write_npz(tmp_path / "a.npz", {"good": npy(np.zeros(3)), "bad": data})
    tracemalloc.start()
    with pytest.raises(FileError) as problem:
        read_fields(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert str(problem.value).startswith(f"{path}: ")
    assert peak < 10**6


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packings_that_numpy_does_not_use(tmp_path, compression):
    path = write_npz(tmp_path / "a.npz", {"x": npy(np.zeros(3))}, compression=compression)
    with pytest.raises(FileError, match="packed in a way"):
        read_fields(path)


def test_two_arrays_of_one_name(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", npy(np.zeros(1)))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("x.npy", npy(np.ones(1)))
    with pytest.raises(FileError, match="two arrays of the same name"):
        read_fields(tmp_path / "a.npz")


def in_the_directory(data: bytes, **changes: int) -> bytes:
    """Change sizes in the central directory of an archive of one member, and in its header."""
    places = {"compress_size": (18, 20), "file_size": (22, 24), "flag_bits": (6, 8)}
    forged = bytearray(data)
    local, central = data.index(b"PK\x03\x04"), data.index(b"PK\x01\x02")
    for name, value in changes.items():
        kind = "<H" if name == "flag_bits" else "<I"
        struct.pack_into(kind, forged, local + places[name][0], value)
        struct.pack_into(kind, forged, central + places[name][1], value)
    return bytes(forged)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"file_size": 2**32 - 2}, "which it cannot hold"),
        ({"compress_size": 2**31}, "than the file has"),
        ({"flag_bits": 1}, "packed in a way"),
    ],
)
def test_archives_with_a_forged_directory(tmp_path, changes, words):
    promised = 2**32 - 2 - 128
    claim = header(f"{{'descr': '|i1', 'fortran_order': False, 'shape': ({promised},), }}")
    path = write_npz(tmp_path / "a.npz", {"x": claim})
    path.write_bytes(in_the_directory(path.read_bytes(), **changes))
    tracemalloc.start()
    with pytest.raises(FileError, match=words):
        read_fields(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**6


def test_large_arrays_that_pack_well_are_no_forgery(tmp_path):
    write_fields(tmp_path / "a.npz", {"x": np.zeros(10**6)})
    assert (tmp_path / "a.npz").stat().st_size < 10**4
    assert len(read_fields(tmp_path / "a.npz")["x"]) == 10**6


def test_an_archive_that_unpacks_to_far_more_than_its_size_is_refused_at_once(tmp_path):
    np.savez_compressed(tmp_path / "bomb.npz", format="cmpg-game", version=1, x=np.zeros(10**7))
    tracemalloc.start()
    with pytest.raises(FileError, match="unpacks to 80 MB"):
        read_fields(tmp_path / "bomb.npz")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**6


def test_another_kind_is_told_before_its_arrays_are_unpacked(tmp_path):
    np.savez_compressed(tmp_path / "recipe.npz", format="recipe", version=1, x=np.zeros(5 * 10**6))
    tracemalloc.start()
    with pytest.raises(FileError, match="its format is 'recipe'"):
        read_fields(tmp_path / "recipe.npz", kind="cmpg-game")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**6


def test_what_is_written_can_be_read_however_well_it_packs(tmp_path, monkeypatch):
    monkeypatch.setattr(containers, "MAX_UNPACKED", 10**5)
    write_fields(tmp_path / "a.npz", {"x": np.zeros(10**5)})
    assert (tmp_path / "a.npz").stat().st_size > 8 * 10**5
    assert len(read_fields(tmp_path / "a.npz")["x"]) == 10**5


def test_reading_in_threads_changes_no_warnings_of_the_process(tmp_path):
    write_fields(tmp_path / "a.npz", RECORD | {"rows": np.array(RECORD["rows"])})
    before = list(warnings.filters)
    with ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(lambda _: read_fields(tmp_path / "a.npz"), range(200)))) == 200
    assert warnings.filters == before


@pytest.mark.parametrize("ending", ["json", "npz"])
def test_what_may_never_end_is_not_opened(tmp_path, ending):
    os.mkfifo(tmp_path / f"pipe.{ending}")
    (tmp_path / f"device.{ending}").symlink_to("/dev/zero")
    for name in ("pipe", "device"):
        with pytest.raises(FileError, match="is a pipe or a device"):
            read_fields(tmp_path / f"{name}.{ending}")


def test_tables_of_too_many_axes():
    deep = 1
    for _ in range(60):
        deep = [deep]
    for exact in (False, True):
        with pytest.raises(GameError, match="no table has more than 32"):
            number_table("x", deep, exact=exact)


def test_a_field_that_is_there_twice_is_found_among_many(tmp_path):
    names = [f'"{name}": 0' for name in range(80_000)]
    (tmp_path / "a.json").write_text("{" + ",".join([*names, '"79999": 0']) + "}")
    with pytest.raises(FileError, match="'79999' is there more than once"):
        read_fields(tmp_path / "a.json")


def test_names_with_characters_that_do_not_exist(tmp_path):
    forged = npy(np.array(["a", "b"])).replace("b".encode("utf-32-le"), b"\xff\xff\xff\x7f")
    with pytest.raises(FileError, match="characters that do not exist"):
        read_fields(write_npz(tmp_path / "a.npz", {"names": forged}))


def test_arrays_of_either_order_and_any_width_are_read(tmp_path):
    tables = [np.arange(6.0).reshape(2, 3).T, np.arange(3, dtype=">f8"), np.arange(3, dtype="i2"), np.zeros((0, 2))]
    tables.append(np.array(["a", "bcd"], dtype=">U3"))
    np.savez(tmp_path / "a.npz", *tables)
    for found, table in zip(read_fields(tmp_path / "a.npz").values(), tables, strict=True):
        assert np.array_equal(found, table)
        assert not found.flags.writeable


def test_truncated_archives(tmp_path):
    write_fields(tmp_path / "a.npz", RECORD | {"rows": np.array(RECORD["rows"])})
    data, path = (tmp_path / "a.npz").read_bytes(), tmp_path / "b.npz"
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        with pytest.raises(FileError, match="is not a whole"):
            read_fields(path)


def test_mutated_headers_raise_nothing_else(tmp_path):
    rng = np.random.default_rng(3)
    write_fields(tmp_path / "a.npz", {"rows": np.array(RECORD["rows"]), "names": np.array(["a", "b"])})
    parts, refusals = members_of(tmp_path / "a.npz"), 0
    for _ in range(300):
        name = rng.choice(list(parts))
        path = write_npz(tmp_path / "b.npz", parts | {name: mutated(parts[name], rng)})
        refusals += refused(lambda: read_fields(path), path)  # noqa: B023
    assert refusals > 100


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "has no field 'format'"),
        ({"format": "recipe"}, "its format is 'recipe'"),
        ({"format": ["cmpg-game"]}, "its format is"),
        ({"format": "cmpg-game"}, "its version is None"),
        ({"format": "cmpg-game", "version": 2}, "its version is 2"),
        ({"format": "cmpg-game", "version": "x"}, "its version is 'x'"),
        ({"format": "cmpg-game", "version": [1]}, "its version is"),
        ({"format": "cmpg-game", "version": True}, "its version is True"),
    ],
)
def test_other_kinds_and_versions(fields, words):
    with pytest.raises(FileError, match=words):
        check_kind("a.json", fields, kind="cmpg-game")
    check_kind("a.json", {"format": "cmpg-game", "version": 1}, kind="cmpg-game")


def listing(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.parametrize("name", ["a.json", "a.npz"])
def test_a_failure_leaves_nothing_behind_and_the_old_file_whole(tmp_path, name):
    write_fields(tmp_path / name, RECORD)
    before = (tmp_path / name).read_bytes()

    def half(stream):
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(FileError, match="No space left"):
        write_atomically(tmp_path / name, half)
    with pytest.raises((FileError, TypeError, ValueError)):
        write_fields(tmp_path / name, {"x": {1, 2}})
    assert (tmp_path / name).read_bytes() == before
    assert listing(tmp_path) == [name]


def test_writing_where_nothing_can_be_written(tmp_path):
    (tmp_path / "a.npz").mkdir()
    for path in (tmp_path / "a.npz", tmp_path / "nowhere" / "a.npz", tmp_path / ("long" * 100 + ".npz")):
        with pytest.raises(FileError, match="cannot be written"):
            write_fields(path, RECORD)
    tmp_path.chmod(0o555)
    with a_stranger(), pytest.raises(FileError, match="cannot be written"):
        write_fields(tmp_path / "b.npz", RECORD)
    tmp_path.chmod(0o755)
    assert listing(tmp_path) == ["a.npz"]


def test_others_may_read_what_was_written(tmp_path):
    before = os.umask(0o022)
    try:
        write_fields(tmp_path / "a.json", RECORD)
    finally:
        os.umask(before)
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o644


def test_nobody_else_may_change_what_was_written(tmp_path):
    before = os.umask(0)
    try:
        write_fields(tmp_path / "a.json", RECORD)
    finally:
        os.umask(before)
    assert (tmp_path / "a.json").stat().st_mode & 0o022 == 0


def test_a_planted_link_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "precious").write_text("keep me")
    (tmp_path / "a.json").symlink_to(tmp_path / "precious")
    write_fields(tmp_path / "a.json", RECORD)
    assert (tmp_path / "precious").read_text() == "keep me"
    assert not (tmp_path / "a.json").is_symlink()


def test_records_are_plain():
    record = {"x": np.array([[1.5, np.nan]]), "n": np.int64(3), "f": Fraction(1, 3), "p": Path("a"), 1: (True, None)}
    assert plain(record) == {"x": [[1.5, None]], "n": 3, "f": "1/3", "p": "a", "1": [True, None]}
    assert plain(np.array([Fraction(2), Fraction(1, 2)], dtype=object)) == [2, "1/2"]


def test_the_same_fields_make_the_same_bytes(tmp_path):
    for name in ("a.npz", "b.npz"):
        write_fields(tmp_path / name, RECORD)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_json_is_laid_out_for_people():
    text = json_text({"short": [[1, 2], [3, 4]], "long": [list(range(30)), list(range(30))], "none": None, "deep": {}})
    assert json.loads(text)["long"][1] == list(range(30))
    assert text.splitlines()[:3] == ["{", ' "short": [[1, 2], [3, 4]],', ' "long": [']
    assert len(text.splitlines()) == 9


@settings(deadline=None, max_examples=25)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    )
)
def test_json_text_is_json(value):
    assert json.loads(json_text(value)) == value


def test_a_folder_to_write_in_is_new_or_empty_and_ours(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "old").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "full")
    for name, words in {
        "link": "is a link, and none is followed",
        "full": "is not empty; nothing is written over",
        "file": "is a file; name a folder",
        "none/deeper": "its parent folder does not exist",
        "x" * 300: "cannot be made",
    }.items():
        with pytest.raises(FileError, match=words):
            containers.check_out_folder(tmp_path / name)
    containers.check_out_folder(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "theirs").mkdir(mode=0o555)
    tmp_path.chmod(0o755)
    with a_stranger(), pytest.raises(FileError, match=r"you may not write there|cannot be"):
        containers.check_out_folder(tmp_path / "theirs")


def test_only_one_writer_gets_a_folder(tmp_path, monkeypatch):
    with containers.new_folder(tmp_path / "run"):
        monkeypatch.setattr(containers, "check_out_folder", lambda _: None)
        with pytest.raises(FileError, match="another process is writing"), containers.new_folder(tmp_path / "run"):
            pass
        (tmp_path / "run" / "first").write_text("x")
    assert [each.name for each in (tmp_path / "run").iterdir()] == ["first"]
    with pytest.raises(FileError, match="another process is writing"), containers.new_folder(tmp_path / "run"):
        pass
    with pytest.raises(FileError, match="cannot be written"), containers.new_folder(tmp_path / "none" / "deeper"):
        pass


def test_a_file_that_does_not_fit_into_memory_is_refused(tmp_path, monkeypatch):
    path = write_json(tmp_path / "a.json", {"a": 1})

    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(containers, "parse_json", full)
    with pytest.raises(FileError, match="does not fit into memory"):
        read_fields(path)
