"""Operate recorded days event by event: planned and realised cost against the budget, value against other plans, CPU.

    python -m checks operation --sessions caltech.csv.gz --timezone America/Los_Angeles --day 2019-06-01 --days 30

Each day is played several times with different luck, so that means over days say something: the realised cost is a
number of cars too many, mostly zero. It fails if a plan is not certified, or if the mean of the realised cost exceeds
the threshold by more than three standard errors.
"""

from __future__ import annotations

import argparse
from datetime import date, timedelta

import numpy as np

from cmpg.errors import NoSuchDayError
from cmpg.operation.day import ComparedDay, Luck, compared_day
from cmpg.report.operation import operated_summary
from cmpg.scenarios import charging
from cmpg.summaries import summary_text


def main(argv: list[str]) -> int:
    """Operate the days, and print what came of them."""
    parser = argparse.ArgumentParser(prog="python -m checks operation", description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", help="ACN session file; the bundled day if omitted")
    parser.add_argument("--timezone", help="of the site, such as America/Los_Angeles")
    parser.add_argument("--day", help="the first day, such as 2019-06-01")
    parser.add_argument("--days", type=int, default=1)
    parser.add_argument("--luck", type=int, default=3, help="how often each day is played")
    parser.add_argument("--capacity", type=float, default=8.0)
    given = parser.parse_args(argv)
    done: list[ComparedDay] = []
    for offset in range(given.days):
        day = None if given.day is None else (date.fromisoformat(given.day) + timedelta(days=offset)).isoformat()
        try:
            game = charging(sessions=given.sessions, timezone=given.timezone, day=day, capacity=given.capacity)
        except NoSuchDayError:
            continue
        done += [
            compared_day(f"{day or 'the bundled day'}, {turn}", game, luck=Luck(1000 * offset + turn))
            for turn in range(given.luck)
        ]
    print(summary_text(operated_summary(done)))
    costs = np.array([day.operated.costs.sum() for day in done])
    allowed = np.array([day.operated.thresholds.sum() for day in done])
    error = costs.std(ddof=1) / np.sqrt(len(costs)) if len(costs) > 1 else 0.0
    kept = costs.mean() <= allowed.mean() + 3 * error
    ratio = {
        name: np.mean([day.operated.value for day in done]) / np.mean(other)
        for name, other in (
            ("day-ahead", [day.ahead.value for day in done]),
            ("clairvoyant", [float(day.clairvoyant.values.sum()) for day in done]),
        )
    }
    others = "; ".join(f"{name} {each:.4f}" for name, each in ratio.items())
    print(f"mean value, over that of other plans: {others}")
    for least in (10, 20, 30):
        seconds = [
            second
            for day in done
            for plan, second in zip(day.operated.plans, day.operated.seconds, strict=True)
            if plan.result.certificate.values.size >= least
        ]
        if seconds:
            median = 1e3 * np.median(seconds)
            print(f"plans for at least {least} agents: {len(seconds)}, median {median:.1f} ms of CPU time")
    return 0 if kept and all(day.certified for day in done) else 1
