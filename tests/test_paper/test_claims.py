"""Every claim and number of the paper, as the table in `cmpg.paper` has it: one test for each row.

Equilibria are not unique: "is Nash" is asserted, never "equals P*", except where the claim is about the optimum itself.
"""

import ast
import re
from pathlib import Path

import pytest

from cmpg.paper import CLAIMS, SECTIONS, Evidence
from cmpg.paper.claims import ANY, Agreement, CheckedClaim, Finding, added, agrees, between, differs, near

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.key)
def test_a_claim_comes_out_as_the_table_says(claim, evidence):
    found = claim.check(evidence)
    assert found.finding.ours
    assert len(found.finding.numbers) == len(claim.expect)
    assert found.as_expected, (found.finding, claim.expect)


def test_keys_are_unique_and_every_row_says_what_it_must():
    assert len({claim.key for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert claim.statement
        assert claim.where
        assert claim.paper
        assert claim.why or claim.agreement is not Agreement.DIFFERS, claim.key
        assert claim.expect, claim.key


def test_every_refutation_pins_a_number():
    for claim in CLAIMS:
        if claim.agreement is not Agreement.ADDED:
            assert any(interval not in ANY for interval in claim.expect), claim.key


def test_every_row_of_the_room_is_in_the_table():
    """A section takes its rows from its module: none may be left out by being defined after it."""
    for path in (ROOT / "src" / "cmpg" / "paper").glob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                made = {call.func.id for call in node.decorator_list if isinstance(call, ast.Call)}
                if made & {"agrees", "differs", "added"}:
                    assert node.name.replace("_", "-") in {claim.key for claim in CLAIMS}, node.name
    assert sum(len(section.claims) for section in SECTIONS) == len(CLAIMS)


def test_the_notes_name_claims_and_tests_that_exist():
    text = (ROOT / "docs" / "paper-notes.md").read_text("utf-8")
    keys = {claim.key for claim in CLAIMS}
    rows = [line for line in text.splitlines() if line.startswith("|") and "---" not in line]
    for row in rows:
        last = row.rstrip("| ").split("|")[-1]
        for name in re.findall(r"`([^`]+)`", last):
            if name.endswith(".py"):
                assert (ROOT / "tests" / name).is_file(), name
            else:
                assert name in keys, name


@agrees("here", paper="2", expect=near(2.0) + between(0, 1) + ANY)
def three_numbers(_):
    """Three numbers are these."""
    return Finding.of("2", 2, True, float("nan"))


def test_a_row_is_made_of_a_function():
    assert three_numbers.key == "three-numbers"
    assert three_numbers.statement == "Three numbers are these"
    assert three_numbers.check(Evidence()).verdict == "agrees"


@pytest.mark.parametrize("numbers", [(2.1, 1, 0), (2, 2, 0), (2, -1, 0), (float("nan"), 1, 0)])
def test_a_number_outside_of_its_interval_is_unexpected(numbers):
    found = CheckedClaim(three_numbers, Finding.of("", *numbers))
    assert not found.as_expected
    assert found.verdict == "unexpected"


def test_a_number_too_few_is_an_error():
    with pytest.raises(ValueError, match="zip"):
        _ = CheckedClaim(three_numbers, Finding.of("", 2, 1)).as_expected


def test_rows_say_what_they_mean_for_the_paper():
    rows = [
        differs("here", paper="1", expect=near(2.0), why="w")(three_numbers.compute),
        added("here", expect=near(2.0))(three_numbers.compute),
    ]
    assert [row.agreement for row in rows] == [Agreement.DIFFERS, Agreement.ADDED]
    assert rows[1].paper == "not stated"


def test_evidence_does_not_depend_on_the_order_in_which_it_is_asked_for():
    one, two = Evidence(seed=3), Evidence(seed=3)
    two.rng("something else")
    assert one.rng("name").random() == two.rng("name").random()
    assert one.rng("name").random() != one.rng("other name").random()
    assert Evidence(seed=4).rng("name").random() != one.rng("name").random()
    calls = []
    assert one.of(calls.append) is one.of(calls.append)
    assert len(calls) == 1
