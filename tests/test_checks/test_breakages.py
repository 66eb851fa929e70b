"""Claims of the paper that are tried broken: each has a breakage, and the cheap ones are tried here."""

import pytest
from checks.breakages import NOTICED, RAISED, SILENT, Breakage, attempt, breakages, instead, main, untried

CHEAP = ("counter_examples.", "theory.Exact", "theory.penalised_game", "theory.greatest_slack", "lemmas.")
ROWS = breakages()


def test_every_claim_is_tried():
    assert untried(ROWS) == []
    assert untried(ROWS[1:]), "a claim without a breakage is listed"


@pytest.mark.parametrize("row", [row for row in ROWS if row.target.startswith(CHEAP)], ids=lambda row: row.what)
def test_a_claim_notices_what_is_broken(row):
    assert {each.claim: each.outcome for each in attempt(row, row.claims)} == dict.fromkeys(row.claims, NOTICED)


def test_what_does_not_matter_is_not_noticed_and_exceptions_do_not_count():
    harmless = Breakage("nothing", "counter_examples.NASH", lambda original: original, ())
    assert [each.outcome for each in attempt(harmless, ["dual-value"])] == [SILENT]
    clumsy = Breakage("no game", "counter_examples.counter_example", instead(lambda: None), ())
    (found,) = attempt(clumsy, ["dual-value"])
    assert found.outcome == RAISED
    assert "Error: " in found.ours
    (again,) = attempt(harmless, ["dual-value"])
    assert again.outcome == SILENT, "what was broken is whole again"


def test_the_command_lists_what_is_not_noticed(monkeypatch, capsys):
    harmless = Breakage("nothing", "counter_examples.NASH", lambda original: original, ("dual-value",))
    monkeypatch.setattr("checks.breakages.breakages", lambda: (harmless,))
    assert main(["dual-value"]) == 1
    assert "dual-value does not notice: nothing. 3.5 at λ = 1" in capsys.readouterr().out
    assert main(["no-such-claim"]) == 2
