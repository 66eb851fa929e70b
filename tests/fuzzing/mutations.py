"""Ways to spoil a file so that it still looks like one: by bytes, by words, and by what JSON and .npz are made of.

Everything is drawn from a `random.Random`, so that a seed is all that has to be kept of a spoilt file.
"""

from __future__ import annotations

import copy
import io
import json
import zipfile
from random import Random
from typing import Any

import numpy as np

NUMBERS = (
    *(
        "0",
        "-0",
        "1",
        "-1",
        "2",
        "3",
        "0.5",
        "1e-9",
        "1e-300",
        "5e-324",
        "1e9",
        "1e15",
        "1e16",
        "1e300",
        "1e308",
        "-1e308",
    ),
    *(
        "1e309",
        "1e400000",
        "1e999999999999",
        "nan",
        "inf",
        "-inf",
        "9" * 25,
        "9" * 400,
        "9" * 5000,
        "1/3",
        "1/0",
        "0x10",
    ),
    *(
        "2147483648",
        "4294967296",
        "9223372036854775808",
        "1000000",
        "10000000",
        "1_0",
        "²",
        "٣",
        "1e",
        "+5",
        "1,5",
        ".5",
    ),
)
"""Numbers at which something changes."""

VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        3,
        31,
        33,
        65,
        2.5,
        -0.0,
        1e-9,
        5e-324,
        1e16,
        1e308,
        -1e308,
        10**6,
        10**9,
        10**18,
    ),
    *(
        10**25,
        10**400,
        "",
        "three",
        "1/3",
        "1/0",
        "1e99999999999",
        "nan",
        "x" * 3000,
        "\u202e<b>\x1b[31m",
        "\ud800",
        "=1+1",
    ),
    *(
        [],
        [[]],
        {},
        [None],
        ["a", "b"],
        [1, [2]],
        [[1, 2], [3]],
        [[[1.0]]],
        [1.5, -1],
        [0.5, 0.5],
        [{"a": 1}],
        [10**400],
    ),
)
"""What a field may hold by mistake."""

DTYPES = ("<f8", "<f4", "<f2", "<i8", "<i4", "|i1", "|u1", "|b1", ">f8", "<U3", "<c16", "|O", "<M8[s]", "|V4", "<f16")

TEXTS = (
    *(
        b"",
        b"\n",
        b"\r",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b" " * 50,
        b"\xe2\x80\xa8",
        b"*",
        b":",
        b";",
        b"{",
        b"}",
        b'"',
        b",",
    ),
    *(b"~", b"#", b"<", b">", b"\\", b"1e999", b"null", b"[[1]]", b'"1/0"'),
)
"""Bytes that mean something to some reader."""


def spoil(data: bytes, ending: str, rng: Random, words: tuple[bytes, ...] = ()) -> bytes:
    """Return the bytes of a file after a few accidents.

    Parameters
    ----------
    data
        A file that can be read.
    ending
        Of its name: tells what it is made of.
    rng
        Draws the accidents.
    words
        A dictionary of the format: keywords that may stand anywhere.
    """
    structured = {"json": spoil_json, "jsonl": spoil_lines_of_json, "npz": spoil_npz}.get(ending)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if structured is not None and rng.random() < 0.75:
            data = structured(data, rng)
        elif ending in ("npz", "gz") or rng.random() < 0.4:
            data = spoil_bytes(data, rng)
        else:
            data = spoil_words(data, rng, words)
    return data


def spoil_bytes(data: bytes, rng: Random) -> bytes:
    """Change, cut, drop, insert or repeat a few bytes."""
    changed = bytearray(data)
    place, length = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 4, 16))
    accident = rng.randrange(6)
    if accident == 0 and data:
        for _ in range(rng.randrange(1, 4)):
            changed[rng.randrange(len(data))] = rng.randrange(256)
    elif accident == 1:
        del changed[place:]
    elif accident == 2:
        del changed[place : place + length]
    elif accident == 3:
        changed[place:place] = rng.randbytes(length)
    elif accident == 4:
        changed[place:place] = rng.choice(TEXTS)
    else:
        changed[place:place] = changed[place : place + length] * rng.choice((1, 2, 50))
    return bytes(changed)


def spoil_words(data: bytes, rng: Random, words: tuple[bytes, ...] = ()) -> bytes:
    """Change, drop, repeat or swap a word or a line of a text."""
    lines = data.split(b"\n")
    place = rng.randrange(len(lines))
    accident = rng.randrange(8)
    if accident == 0:
        del lines[place]
    elif accident == 1:
        lines.insert(place, lines[rng.randrange(len(lines))])
    elif accident == 2:
        other = rng.randrange(len(lines))
        lines[place], lines[other] = lines[other], lines[place]
    elif accident == 3:
        lines[place:place] = [lines[place]] * rng.choice((2, 30))
    else:
        # Words are parted by what parts them in any of the formats.
        line, found = lines[place], _word_places(lines[place])
        begin, end = found[rng.randrange(len(found))] if found else (0, len(line))
        new = rng.choice(NUMBERS).encode() if accident < 6 or not words else rng.choice(words)
        lines[place] = line[:begin] + (b"" if accident == 7 and rng.random() < 0.5 else new) + line[end:]
    return b"\n".join(lines)


def _word_places(line: bytes) -> list[tuple[int, int]]:
    places, begin = [], None
    for at, byte in enumerate(line):
        parts = byte in b" \t,:;{}<>\"'"
        if parts and begin is not None:
            places.append((begin, at))
            begin = None
        elif not parts and begin is None:
            begin = at
    return [*places, (begin, len(line))] if begin is not None else places


def spoil_json(data: bytes, rng: Random) -> bytes:
    """Change one value somewhere in a JSON text, and write it as JSON again; other texts by bytes."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return spoil_bytes(data, rng)
    if isinstance(tree, (dict, list)):
        _spoil_tree(tree, rng)
    text = json.dumps(tree)
    if rng.random() < 0.1:  # numbers that json would not write
        text = text.replace(rng.choice(("0", "1", "0.5")), rng.choice(NUMBERS), 1)
    return text.encode()


def spoil_lines_of_json(data: bytes, rng: Random) -> bytes:
    """Change one line of several in JSON, or their order."""
    lines = data.split(b"\n")
    if rng.random() < 0.2:
        return spoil_words(data, rng)
    place = rng.randrange(len(lines))
    lines[place] = spoil_json(lines[place], rng)
    return b"\n".join(lines)


def _spoil_tree(holder: Any, rng: Random) -> None:
    """Walk to a random place of a tree, and change what is there."""
    keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    if not keys:
        return
    key = rng.choice(keys)
    deeper = isinstance(holder[key], (dict, list)) and holder[key]
    if deeper and rng.random() < 0.8:
        _spoil_tree(holder[key], rng)
        return
    accident = rng.randrange(9)
    if accident < 4:
        holder[key] = copy.copy(rng.choice(VALUES))
    elif accident == 4 and isinstance(holder[key], (int, float)) and abs(holder[key]) < 1e300:
        holder[key] = holder[key] * rng.choice((-1, 2, 1e-9, 1e9, 1 + 1e-12))
    elif accident == 5:
        holder[key] = [holder[key]] * rng.choice((1, 2, 3, 40))
    elif accident == 6:
        holder[key] = copy.deepcopy(holder[rng.choice(keys)])
    elif isinstance(holder, dict):
        if accident == 7:
            del holder[key]
        else:
            holder[rng.choice(("extra", "format", "agent_9", "\x1b[2J", "a" * 300))] = rng.choice(VALUES)
    elif accident == 7:
        del holder[key]
    else:
        holder.insert(key, copy.copy(rng.choice(VALUES)))


def spoil_npz(data: bytes, rng: Random) -> bytes:
    """Change an array, its header or its name in an archive; what is no archive, by bytes."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:
        return spoil_bytes(data, rng)
    if not members:
        return spoil_bytes(data, rng)
    name = rng.choice(sorted(members))
    accident = rng.randrange(8)
    if accident == 0:
        del members[name]
    elif accident == 1:
        members[rng.choice(("extra.npy", "format.npy", "rewards.npy", "agent_0.npy", "a.txt"))] = members[name]
    elif accident == 2:
        members[name] = spoil_bytes(members[name], rng)
    elif accident == 3:
        begin, end = members[name][:10], members[name][10:]
        members[name] = begin + end.replace(b"(", rng.choice((b"(9", b"(1, ", b"(-", b"(1" + b"0" * 12)), 1)
    elif accident == 4:
        members[name] = members[name].replace(b"<f8", rng.choice(DTYPES).encode()[:3], 1)
    else:
        changed = _spoil_array(members[name], rng)
        members[name] = members[name] if changed is None else changed
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for each, content in members.items():
            archive.writestr(each, content)
    return stream.getvalue()


def _spoil_array(member: bytes, rng: Random) -> bytes | None:
    """Change an entry, the shape or the type of an array."""
    try:
        array = np.lib.format.read_array(io.BytesIO(member), allow_pickle=False).copy()
    except Exception:
        return None
    accident = rng.randrange(6)
    with np.errstate(all="ignore"):
        if accident < 2 and array.size and array.dtype.kind in "fiu":
            value = rng.choice((0, -1, 1, 2, 1e-9, 1e-300, 5e-324, 1e16, 1e300, -1e300, 1e308, np.nan, np.inf, 0.5))
            kind = array.dtype if array.dtype.kind == "f" else np.dtype("f8")
            array = array.astype(kind)
            array.reshape(-1)[rng.randrange(array.size)] = value
        elif accident == 2 and array.size:
            array = array.reshape(rng.choice(((-1,), (1, *array.shape), (*array.shape, 1), array.shape[::-1])))
        elif accident == 3 and array.ndim:
            array = np.repeat(array, rng.choice((0, 2, 3)), axis=rng.randrange(array.ndim))
        elif accident == 4 and array.dtype.kind in "fiu":
            array = array * rng.choice((-1, 0, 2, 1e-9, 1e9, 1 + 1e-12))
        else:
            chosen = np.dtype(rng.choice(("f4", "i8", "i2", "b1", "U3", "c16", ">f8", "f2")))
            try:
                array = array.astype(chosen)
            except (TypeError, ValueError, SystemError):  # texts that are no texts are beyond NumPy
                return None
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


def spoil_numbers(data: bytes, rng: Random) -> bytes:
    """Change a few numbers of a game in JSON, and nothing else, so that most of what comes out is still a game."""
    tree = json.loads(data)
    names = [name for name, value in tree.items() if isinstance(value, list) and not isinstance(value[0], str)]
    for _ in range(rng.choice((1, 1, 2, 4, 12))):
        name = rng.choice(names)
        rows = _innermost(tree[name])
        row = rows[rng.randrange(len(rows))]
        if name.startswith(("transition", "initial")) and not name.endswith(("indices", "indptr")):
            drawn = [rng.choice((0, 0, 1, 2, 1e-3, 1e-16, 1e-300, 5e-324)) for _ in row]
            total = sum(drawn)
            row[:] = [each / total for each in drawn] if total else row
        else:
            row[rng.randrange(len(row))] = rng.choice(GAME_NUMBERS)
    if rng.random() < 0.3 and "horizon" in tree:
        tree["horizon"] = rng.choice((1, 2, 3, 7))
    if rng.random() < 0.5 and "discount" in tree:
        tree["discount"] = rng.choice((0, 1e-300, 0.5, 0.99, 1 - 1e-6, 1 - 2**-53))
    return json.dumps(tree).encode()


GAME_NUMBERS = (
    *(0, -0.0, 1, -1, 2, 0.5, 1 / 3, 1e-9, -1e-9, 1e-300, 5e-324, 1e9, -1e9, 1e15, 1e16, -1e16, 1e100, 1e300, -1e300),
    *(1.7e308, -1.7e308, 1 + 2**-52, 1 - 2**-53, 123456789.123),
)
"""Numbers that a game may hold and that are hard on arithmetic."""


def _innermost(table: list[Any]) -> list[list[Any]]:
    """The rows of a nested list."""
    if not table or not isinstance(table[0], list):
        return [table]
    return [row for part in table for row in _innermost(part) if row]
