"""A small run of `python -m checks judging`."""

import pytest
from checks.judging import AS_IT_IS, FORMS, UNPROVED, Trial, coverage_table, noticed, trial


@pytest.mark.parametrize("form", FORMS)
def test_audits_of_every_form_hold(form):
    found = [trial(form, "drawn at random", 250, seed, AS_IT_IS) for seed in (1, 2)]
    assert not [each for each in found if each.wrong]
    assert all(each.lower <= each.true + 1e-9 and each.true <= each.upper + 1e-9 for each in found)


def test_a_judge_that_counts_unproved_deviations_is_noticed():
    found = [trial("counting", "drawn at random", 250, seed, UNPROVED) for seed in range(4)]
    assert sum("lower" in each.wrong for each in found) >= 2


def test_more_failures_than_delta_explains_are_noticed():
    def trials(number, wrong, true=1.0):
        return [Trial("joint", "Nash", 250, True, true, 0.0, 1.0, wrong) for _ in range(number)]

    assert not noticed(trials(100, ()), ("upper",))
    assert not noticed(trials(81, ()) + trials(19, ("upper",)), ("upper",))
    assert noticed(trials(80, ()) + trials(20, ("upper",)), ("upper",))
    assert not noticed(trials(80, ()) + trials(20, ("upper",)), ("lower",))
    assert "| as it is | 3 | 1 | 1, 0 | 0.333 |" in coverage_table({"as it is": trials(2, ()) + trials(1, ("upper",))})
