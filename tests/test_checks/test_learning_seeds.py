"""The seeds of `python -m checks learning` are resumed one by one; the numbers of its page come from the records."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cmpg.equilibrium.solve import solve
from cmpg.games.potential.check import Verdict, check_potential


def quick_cases():
    """Two methods on a game of one step: a few milliseconds a seed."""
    from checks.learning.cases import Case

    return [Case("coverage", "counter-example", mode, 0.5, 3) for mode in ("generative", "shared")]


def run_all(cases, path):
    from checks.learning.runner import run_missing

    return sum(1 for _ in run_missing(cases, path=path, jobs=1))


def test_seeds_are_run_once(tmp_path):
    from checks.learning.runner import number_missing, results_of, seed_records

    path, cases = tmp_path / "results" / "seeds.jsonl", quick_cases()
    assert number_missing(cases, path=path) == 6
    assert run_all(cases, path) == 6
    before = seed_records(path)
    assert run_all(cases, path) == 0
    assert run_all([replace(cases[0], seeds=5), cases[1]], path) == 2
    assert results_of(replace(cases[0], epsilon=0.4), before) == []  # a record belongs to its setting
    assert all(record["certified"] and record["right"] for record in before.known.values())
    assert [record["seed"] for record in results_of(cases[0], before)] == [0, 1, 2]


def test_a_line_that_was_cut_off_is_run_again_with_the_same_bits(tmp_path):
    from checks.learning.runner import results_of, seed_records

    path, cases = tmp_path / "seeds.jsonl", quick_cases()
    run_all(cases, path)
    whole = path.read_text("utf-8")
    records = seed_records(path).known
    path.write_text(whole[:-40], encoding="utf-8")
    assert run_all(cases, path) == 1
    again = seed_records(path).known
    for key, record in records.items():
        assert {**record, "seconds": 0} == {**again[key], "seconds": 0}
    assert len(results_of(cases[1], seed_records(path))) == 3


def test_the_page_has_the_counts_and_intervals_of_the_records(tmp_path):
    from checks.learning.page import Found, page
    from checks.learning.runner import results_of, seed_records

    path, cases = tmp_path / "seeds.jsonl", quick_cases()
    run_all(cases, path)
    found = [Found(case, results_of(case, seed_records(path))) for case in cases]
    wrong = json.loads(json.dumps(found[0].records))
    wrong[1]["right"] = False
    safety = Found(replace(cases[0], experiment="safety", mode="safe"), found[0].records)
    text = page([Found(cases[0], wrong), found[1], safety])
    assert "| counter-example | Algorithm 2, generative | 0.5 | 3 | 3 | 1 | [0.0084, 0.9057] |" in text
    assert "| counter-example | shared model | 0.5 | 3 | 3 | 0 | [0.0000, 0.7076] |" in text
    assert "| counter-example | 0.5 | 3 | 3 | 0 | 0 | 0 | 0 | [0.0000, 0.7076] |" in text


def test_the_whole_list_is_what_the_page_promises():
    from checks.learning.cases import cases

    assert {(case.game, case.mode) for case in cases() if case.experiment == "coverage"} >= {
        (game, mode) for game in ("spectrum", "counter-example", "random") for mode in ("generative", "shared")
    }
    assert all(case.seeds == (200 if case.experiment == "coverage" else 300) for case in cases())
    assert len({case.key for case in cases()}) == len(cases())


def test_the_games_are_potential_games_whose_constraint_binds():
    from checks.learning.games import random_game, rare_catastrophe

    for game in (random_game(), rare_catastrophe()):
        assert check_potential(game, rng=np.random.default_rng(0)).verdict is Verdict.PROVEN
        result = solve(game)
        assert result.certified
        assert result.costs == pytest.approx(game.thresholds, rel=1e-6)


def test_a_bold_step_breaks_everything_once_in_a_thousand():
    from checks.learning.games import rare_catastrophe

    broken = rare_catastrophe().transition[0, 0, ..., 1]
    assert broken == pytest.approx(np.array([[0, 1e-3], [1e-3, 1 - 0.999**2]]))
