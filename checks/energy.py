"""`python -m checks energy`: does a charging day plan the energy that its file states?

Reads real days of ACN sessions and solves each in slots of 60, 30 and 15 minutes, with charging that always works.
Printed are what the file says, what the plan says (energy and energy missing, as exported), how much of that cannot be
delivered because the car is not there long enough, and the largest deviation of one car. Also printed are cars whose
plan charges outside of their stay, of which there must be none.

Exit code 1 if the plan of any car differs by more than 1 % from its file.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

from checks import DATA
from cmpg import solve
from cmpg.equilibrium.result import Result
from cmpg.files.run_folder import game_of
from cmpg.report.tables import rows_of
from cmpg.scenarios.car_charging import charging
from cmpg.scenarios.charging_site import charging_day, charging_site
from cmpg.scenarios.charging_stays import Stay, stay_of

DAYS = (("caltech", "2019-06-12"), ("jpl", "2019-06-12"), ("caltech", "2019-07-30"), ("jpl", "2019-08-14"))
SLOTS = (60, 30, 15)
LARGEST_DEVIATION = 0.01


def main(argv: list[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m checks energy", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA / "acn", help="folder of SITE_2019-05_2019-08.csv.gz")
    parser.add_argument("--power", default="6.6", help="kW of a car, as for `cmpg solve charging`")
    arguments = parser.parse_args(argv)
    if not arguments.data.is_dir():
        print(f"there is no folder {arguments.data}; name one with --data.", file=sys.stderr)
        return 2
    print(
        "| day | slot | cars | file kWh | plan kWh | delivered | missing | of that impossible | largest deviation of a "
        "car | outside | CPU s |\n|---|---|---|---|---|---|---|---|---|---|---|"
    )
    worst = 0.0
    for name, day in DAYS:
        path = arguments.data / f"{name}_2019-05_2019-08.csv.gz"
        for slot in SLOTS:
            worst = max(worst, _print_row(path, f"{name} {day}", day, slot, arguments.power))
    print(f"largest deviation of one car: {worst:.3%}")
    return int(worst > LARGEST_DEVIATION)


def _print_row(path: Path, title: str, day: str, slot: int, power: str) -> float:
    """Solve a day, print its line, and return the largest relative deviation of a car."""
    began = time.process_time()
    result = solve(charging(sessions=path, day=day, slot=slot, power=power, success=1.0))
    seconds = time.process_time() - began
    rows, cars = rows_of(result, "outcomes"), charging_day(sessions=path, day=day).sessions
    site = charging_site(sessions=path, day=day, slot=slot, power=power)
    delivered, missing = ([row[f"energy{what} (kWh)"] for row in rows] for what in ("", " missing"))
    deviations = [abs(d + m - car.energy) / car.energy for d, m, car in zip(delivered, missing, cars, strict=True)]
    stays = [
        stay_of(car, power=site.powers[i], slots=site.slots, parts=parts, part=part)
        for i, (car, parts) in enumerate(zip(cars, site.parts, strict=True))
        for part in range(parts)
    ]
    impossible = math.fsum(float(stay.unmet) for stay in stays)
    outside = _outside(result, stays)
    planned = math.fsum([*delivered, *missing])
    print(
        f"| {title} | {slot} | {len(cars)} | {math.fsum(car.energy for car in cars):.1f} | {planned:.1f} | "
        f"{math.fsum(delivered):.1f} | {math.fsum(missing):.1f} | {impossible:.1f} | {max(deviations):.2%} | {outside} "
        f"| {seconds:.2f} |",
        flush=True,
    )
    return max(deviations) if not outside else math.inf


def _outside(result: Result, stays: list[Stay]) -> int:
    """Count the agents that charge in a slot in which they are not there."""
    position = game_of(result).at(result.policy)
    count = 0
    for agent, stay in enumerate(stays):
        ((presence, _),) = stay.arrivals
        there = range(presence.first, presence.first + len(presence.offers))
        used = position.usage(agent).max(axis=1)
        count += any(used[h] > 0 for h in range(len(used)) if h not in there)
    return count
