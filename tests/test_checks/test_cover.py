"""The page of `python -m checks cover` adds up what was measured, and an aim that is missed is told."""

import pytest
from checks import cover as page


def measured(statements, lines, branches, taken):
    return {"summary": dict(zip(page.COUNTED, (statements, lines, branches, taken), strict=True))}


FILES = {
    "src/cmpg/errors.py": measured(10, 10, 0, 0),
    "src/cmpg/equilibrium/certificate.py": measured(50, 50, 20, 20),
    "src/cmpg/equilibrium/loop.py": measured(50, 50, 20, 19),
    "src/cmpg/files/games.py": measured(100, 100, 40, 40),
}


def test_rooms_are_added_up_and_the_whole_comes_last():
    found = page.sums(FILES)
    assert list(found)[-1] == "all"
    assert (
        page.row("equilibrium/", found["equilibrium/"]) == "| `equilibrium/` | 100 | 100.0 % | 40 | 97.5 % | 99.3 % |"
    )
    assert page.row("all", found["all"]) == "| all | 210 | 100.0 % | 80 | 98.8 % | 99.7 % |"
    assert page.missed(found) == []


@pytest.mark.parametrize(
    ("name", "counts", "told"),
    [
        ("src/cmpg/files/games.py", (100, 100, 400, 399), "files/: 99.75 %, and 100 % are wanted"),
        (
            "src/cmpg/equilibrium/certificate.py",
            (50, 49, 20, 20),
            "equilibrium/certificate.py: 98.57 %, and 100 % are wanted",
        ),
        ("src/cmpg/equilibrium/loop.py", (1000, 1000, 20, 10), "all: 87.50 %, and 95 % are wanted"),
    ],
)
def test_an_aim_that_is_missed_is_told(name, counts, told):
    assert page.missed(page.sums(FILES | {name: measured(*counts)})) == [told]


def test_what_is_not_whole_is_not_told_as_whole():
    assert "100.0 %" not in page.row(
        "files/", page.sums({"src/cmpg/files/a.py": measured(9999, 9998, 9999, 9998)})["all"]
    )
