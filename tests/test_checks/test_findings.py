"""Findings: brackets hold the brute-force optimum, runs go on where they were stopped, and the page counts right."""

import numpy as np
import pytest
from checks import findings
from checks.findings import KINDS, PRICED, SWEPT, compute, examine, page, prices, summarise, tasks, wilson

from cmpg.games.potential.check import Verdict, check_potential

MATRIX, DIFFERENT = PRICED


@pytest.mark.parametrize("seed", [1, 3, 4, 5])
def test_the_bracket_holds_what_a_grid_of_policies_attains(seed):
    drawn = KINDS[MATRIX].draw(seed, 0.3)
    if drawn is None:
        assert examine(MATRIX, seed, 0.3) == {"binds": False}
        return
    game, _ = drawn
    p, q = (each.ravel() for each in np.meshgrid(*[np.linspace(0, 1, 401)] * 2))
    law = np.stack([(1 - p) * (1 - q), (1 - p) * q, p * (1 - q), p * q])
    value, cost = game.rewards[0].ravel() @ law, game.costs[0].ravel() @ law
    best = value[cost <= game.thresholds[0]].max()
    found = examine(MATRIX, seed, 0.3)
    low, high = found["primal"]
    assert best <= high + 1e-9
    assert low <= best + 0.02, "the grid is fine enough to come that close"
    assert found["dual"][1] >= low
    assert all(end["potential"] <= high + 1e-9 for end in found["random"])
    assert found["welfare"][0] == pytest.approx(2 * low, abs=1e-5)


def test_interests_differ_and_the_potential_is_the_common_part():
    game, potential = KINDS[DIFFERENT].draw(0, 0.5)
    assert check_potential(game, rng=np.random.default_rng(0)).verdict is Verdict.PROVEN
    assert not np.allclose(game.rewards[0], game.rewards[1])
    one = game.random_policy(rng=np.random.default_rng(1))
    for agent in range(2):
        other = one.replace(agent, game.random_policy(rng=np.random.default_rng(2))[agent])
        gain = game.at(other).values[agent] - game.at(one).values[agent]
        assert gain == pytest.approx(potential.at(other).values[agent] - potential.at(one).values[agent])


def test_what_was_examined_is_not_examined_again(tmp_path):
    seen = []

    def look(name, seed, share):
        seen.append((name, seed, share))
        return {"binds": False}

    path = tmp_path / "deep" / "found.jsonl"
    first = compute(2, path, look)
    assert len(seen) == len(first) == len(list(tasks(2))) == 6 * 2 + 2 * 2 * len(SWEPT)
    text = path.read_text()
    path.write_text(text[: text.rindex("}") - 5])  # killed while it wrote the last line
    assert compute(2, path, look) == first
    assert len(seen) == len(first) + 1
    assert compute(2, path, look) == first
    assert len(seen) == len(first) + 1


def test_intervals_of_shares():
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


def ending(potential, *, certified=True):
    return {"certified": certified, "potential": potential, "welfare": 2 * potential}


def record(primal, dual, ends, *, welfare=2.0):
    named = dict.fromkeys(("least cost", "planned", "planned, pair moves", "planned, 10 restarts", "all"), ending(1.0))
    return {"binds": True, "primal": primal, "dual": dual, "welfare": [welfare] * 2, "random": ends, "named": named}


def test_only_what_is_proved_is_counted():
    gap = record([1.0, 1.0], [1.1, 1.2], [ending(1.0), ending(0.5), ending(0.2, certified=False)])
    unsure = record([1.0, 1.2], [1.1, 1.2], [ending(1.0)])
    closed = record([1.0, 1.0], [1.0, 1.0], [ending(1.0), ending(1.0)])
    found = summarise(MATRIX, [gap, unsure, closed, {"binds": False}])
    assert (found.drawn, found.games, found.gaps, len(found.loose)) == (4, 3, 1, 1)
    assert found.relative == pytest.approx((1 - 1 / 1.1,))
    assert found.loose == pytest.approx((1 - 1 / 1.2,))
    assert found.shares == (0.5, 1.0)
    assert found.worst == (0.5, 1.0)
    assert found.uncertified == 1
    assert found.reached["all"] == (2, 2)


def test_the_page_has_every_class_and_every_threshold():
    records = {
        f"{name}/{seed}/{share}": record([1.0, 1.0], [1.1, 1.1], [ending(1.0), ending(0.5)])
        for name, seed, share in tasks(2)
    }
    shares = [worst for _, worst, _ in prices(records, MATRIX)]
    assert shares == [[0.5, 0.5]] * len(SWEPT)
    summaries = [summarise(name, list(records.values())[:2]) for name in KINDS]
    text = page(summaries, records, 2, "gaps by number of agents", "samples by table")
    assert text.index("gaps by number of agents") < text.index("samples by table")
    for name in KINDS:
        assert f"| {name} | 2 of 2 |" in text
    assert "| 0.9 | 2 | 0.500 ± 0.000 (least 0.500) |" in text
    assert findings.percent(1, 2).startswith("50 %")
