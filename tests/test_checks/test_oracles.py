"""How answers of other tools are compared and written down; they are asked by `python -m checks oracles`."""

import math

import pytest
from checks.oracles.tally import MOST, Kind, Tally, page


def tally(*pairs, kind=Kind.RESPONSE, public=False):
    found = Tally(kind, "random games", "someone")
    for number, (ours, theirs) in enumerate(pairs):
        found.compare(ours, theirs, name=f"game {number}", public=public)
    return found


def test_the_largest_difference_is_kept_with_its_place():
    found = tally((1.0, 1.0), (2.0, 2.5), (0.1, 0.2))
    assert (found.answers, found.difference, found.at) == (3, 0.2, "game 1")
    assert not found.agrees
    assert tally((1e9, 1e9 + 1)).agrees  # relative to what is large
    assert not tally((0.0, 2 * MOST)).agrees


@pytest.mark.parametrize("strange", [math.nan, math.inf])
def test_an_answer_that_is_no_number_differs(strange):
    assert not tally((1.0, 1.0), (1.0, strange), (1.0, 1.0)).agrees


def test_the_page_counts_public_problems_once():
    tallies = [tally((1, 1), public=True), tally((1, 1), (1, 1), public=True, kind=Kind.EQUILIBRIUM), tally((0, 1e-9))]
    told = page(tallies, {"someone": "1.2"})
    assert "- 2 best responses, 2 equilibria, 2 public problems." in told
    assert "The largest difference is 1.0e-09" in told
    assert told.count("`game 0`") == told.count("`game 1`") == 1
    assert "someone 1.2." in told
