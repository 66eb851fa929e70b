"""Writes the guides of an operator: the question, one command, the picture, the numbers.

    python docs/guide/write_guides.py               prints them
    python docs/guide/write_guides.py docs/guide    writes them, and their pictures

Every command on the pages is run here, on the package's own samples, and what it prints stands below it. The tests run
this script and compare.
"""

from __future__ import annotations

import io
import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import numpy as np

import cmpg
from cmpg.cli.main import main as command

MAX_LINES = 16
"""A page shows at most so many lines of what a command prints, and an ellipsis for the rest."""

BLUE, RED, GREY = "#4477aa", "#ee6677", "#bbbbbb"

TARIFF = "from,price\n00:00,0.18\n07:00,0.31\n20:00,0.22\n"
SUN = "from,kw\n00:00,40\n09:00,60\n16:00,30\n"


def run(line: str) -> str:
    """Run a command of the library, and return what it printed on standard output."""
    out, words = io.StringIO(), shlex.split(line)
    with patch.object(sys, "argv", words), redirect_stdout(out), redirect_stderr(io.StringIO()):
        try:
            command()
        except SystemExit as ending:
            if ending.code:
                raise RuntimeError(f"{line} ended with {ending.code}") from ending
    return out.getvalue()


def console(*lines: str) -> str:
    """Return commands with what they print, as a block of a page."""
    parts = []
    for line in lines:
        printed = run(line).rstrip().splitlines()
        left_out = ["…"] if len(printed) > MAX_LINES else []
        parts += [f"$ {line}", *(each.rstrip() for each in printed[:MAX_LINES]), *left_out]
    return "\n".join(["```console", *parts, "```"])


def simulate_page() -> tuple[str, Callable[[Path], None]]:
    """Does it hold when the day comes?"""
    run("cmpg solve charging --out day")
    shown = console("cmpg simulate day --episodes 20000 --seed 1")
    found = cmpg.load_run("day")
    seen = cmpg.simulate(found.game, found.result.policy, 20_000, rng=np.random.default_rng(1))
    above = seen.exceeding[0]
    text = f"""# Does it hold when the day comes?

**The question.** A certificate says that the transformer is overloaded by at most half a car-hour *on average*. What do
single days look like, and is the claim true at all?

**One command.** It plays the policy of a run 20,000 times, draws everything that is random, and sets what happened
beside what was claimed:

{shown}

**The picture.** How many car-hours too many a day has:

![share of days by overload](simulate.svg)

**The numbers.** The mean is the claim, up to what 20,000 days can tell. The budget is kept on average, and yet
exceeded on {100 * above:.1f} % of the days: a threshold is about means. If single days matter, lower the threshold and
look again. The exit code is 0 where every mean agrees with its claim, and 1 where one is further
away than four standard errors; `--json` prints all of it.

Whole episodes, the most expensive among them, are printed by `--show 1` and written step by step by `--out days.csv`;
the page has two of them. In Python, `cmpg.simulate(game, policy, episodes, rng=…)` returns the same for games of any
form: `seen.realised` has the cost of every episode, and `seen.shown` the whole ones, as tables
(`episode.table(game.names)`) or rows. Ten million steps of an agent take about a second on one core
(`python -m checks bench simulation` measures it). A game of your own needs a method `stepper()`, which
plays many episodes side by side (`cmpg.games.Stepper`); `cmpg.games.OneByOne` makes one of what plays a single episode.
"""

    def draw(axes: object) -> None:
        values, counts = seen.frequencies(0)
        axes.bar(values, counts / seen.episodes, width=0.8, color=[BLUE if v <= 0.5 else RED for v in values])
        axes.set(xlabel="car-hours too many", ylabel="share of days")

    return text, draw


def schedule_page() -> tuple[str, Callable[[Path], None]]:
    """Who does what?"""
    shown = console("cmpg show day", "cmpg show day --agent 9")
    exported = console(
        "cmpg export day --what outcomes",
        "cmpg export day --what schedule --format json",
        "cmpg export day --what policy",
    )
    found = cmpg.load_run("day")
    usage = np.array([found.game.at(found.result.policy).usage(i)[:, 0] for i in range(found.game.num_agents)])
    text = f"""# Who does what?

**The question.** The policy is proved. When does each car charge, what does it get, and how does another program follow
it?

**One command.** `cmpg show` says it in a terminal; the higher a bar, the likelier the car charges in that hour:

{shown}

Robots are shown by their likeliest ways, platoons by their routes, small joint games as tables. `--agent` and `--step`
look closer, `--all` shows every agent, and `--animate run.gif` makes moving pictures of what the page shows.

**The picture.** The same for all cars:

![probability of charging by car and hour](schedule.svg)

**The numbers**, for a spreadsheet or a database, with names and units:

{exported}

The last table is the plain file that another program can follow: look up agent, step and state, and draw an action by
its probability ([files](../files.md)). In Python it is `policy.act(agent, step, state, rng)`, and every table is
`result.to_frame("schedule")`.
"""

    def draw(axes: object) -> None:
        axes.imshow(usage, aspect="auto", cmap="Blues", vmin=0, vmax=1)
        axes.set(xlabel="hour", ylabel="car")

    return text, draw


def site_page() -> tuple[str, Callable[[Path], None]]:
    """A charging site as its operator knows it."""
    Path("tariff.csv").write_text(TARIFF)
    Path("left.csv").write_text(SUN)
    files = "--capacity-kw left.csv --tariff tariff.csv --currency EUR --shortfall 12"
    line = f"cmpg solve charging --slot 30 --power 6.6 {files} --out site"
    run(line)
    phases = "cmpg solve charging --transformers 'phase 1=P-0*; phase 2=P-1*; phase 3=P-2*' --capacity 4 --out phases"
    run(phases)
    shown = console("cmpg show site", "cmpg export site --what loads", "cmpg show phases")
    found = cmpg.load_run("site")
    position = found.game.at(found.result.policy)
    loads = np.sum([position.usage(i)[:, 0] for i in range(found.game.num_agents)], axis=0) * 6.6
    capacity = np.array(found.drawing.capacities[0]) * 6.6
    text = f"""# A charging site as its operator knows it

**The question.** My site has half-hour meters, a tariff in euro per kWh, a solar roof that leaves more power for cars
around noon, and a file of sessions. Who charges when?

**One command.** Two small files say what changes with the time of the day, here by local time:

```text title="tariff.csv"
{TARIFF}```

```text title="left.csv"
{SUN}```

```
{line}
```

{shown}

The last table is another run, with a constraint for each of three phases:

```
{phases}
```

**The picture.** The expected power against what is left for cars:

![expected power against capacity](site.svg)

**The numbers.** Slots are 15, 30 or 60 minutes, and an hour costs the same however it is cut. `--capacity-kw` is one
number, one per transformer, or a file; `--transformers` are words, patterns, or a file with the columns `station` and
`transformer`. The budget `--threshold` is in cars too many times hours. `--shortfall` is what an hour's energy is worth
to a driver who leaves without it, here 12 EUR for 6.6 kWh: where it is worth less than the tariff, no car charges.
Without the option, it is six times the price of an hour at the highest tariff.

**Cars of different power.** `--power 'P-0*=11; *=3.7'` gives each kind of station its power, and a column `power
(kW)` of the session file (or another one, `--columns "power=Max kW"`) gives each car its own. The load of a
transformer is then counted in units of power that divide all of them, here 3.7 kW, within 2 %: a car of 11 kW is
three **parts** of one unit, which share its energy and decide separately, so that it charges at 0, 3.7, 7.3 or 11 kW.
`--min-rate 2.2` does the same for cars of one power: they charge at multiples of it. The agents are the parts; the
certificate says that no part gains by deviating alone, and tables add up the parts of a car.

**Times that are not certain.** `--arrival-spread '0=0.7, 30=0.2, 60=0.1'` says by how many minutes arrivals may
differ from the file, with probabilities, and `--departure-spread` does so for departures; `'P-0*: 0=0.5, 60=0.5; *:
0=1'` has a spread for each kind of station. A car learns when it leaves only when it leaves.

**A tree of transformers, and what else it feeds.** `--transformers 'site=north,south; north=P-0*; south=P-1*,P-2*'`
has a constraint for each of three transformers, and what north and south draw loads the site, too; `--capacity` or
`--capacity-kw` has a number for each, in this order. `--base-load` is what other loads take of that, in kW: a number,
one for each transformer, or a file by the time of the day.

**Time.** Sessions are ACN-Data, as CSV or in the JSON of its own interface. Their times are read and not guessed: a
time without an offset is the site's clock, one with an offset is a clock that has it, and a file in UTC is refused
until `--timezone` says where the site is. With a time zone, the days on which the clock changes have 23 or 25 hours.
"""

    def draw(axes: object) -> None:
        hours = np.arange(len(loads)) / 2
        axes.step(hours, capacity, where="post", color=RED, label="left for cars")
        axes.step(hours, loads, where="post", color=BLUE, label="expected")
        axes.set(xlabel="hour", ylabel="kW")
        axes.legend(frameon=False)

    return text, draw


def paths_page() -> tuple[str, Callable[[Path], None]]:
    """Static routing."""
    from cmpg.scenarios.readers.tntp import read_network
    from cmpg.scenarios.samples import sample_file
    from cmpg.scenarios.traffic_assignment import Roads

    line = "cmpg solve routing --mode static --vehicles 100 --out paths"
    run(line)
    shown = console("cmpg show paths")
    found = cmpg.load_run("paths")
    position = found.game.at(found.result.policy)
    flows = 100 * np.sum([position.usage(i)[0] for i in range(found.game.num_agents)], axis=0)
    with sample_file("sample_net.tntp") as path:
        roads = Roads.of(read_network(path))
    text = f"""# Routes for all traffic at once

**The question.** The scenario [routing](routing.md) moves platoons link by link, and loads meet per step: two platoons
delay each other only if they take a link at the same step. Traffic planners ask another question: if every vehicle
chooses a whole route, and all that use a link meet on it, what are the flows?

**One command.** In static mode all trips of the table travel, in platoons of 100 vehicles; those of one pair of nodes
are alike, and each chooses one path, once:

```
{line}
```

{shown}

**Many vehicles.** With `--agents`, so many vehicles are drawn from the trips, and capacities are multiplied by vehicles
drawn per vehicle of the table: `cmpg solve routing --mode static --agents 1000000 --seed 3 --out crowd`. They are
solved and certified [by groups](../crowds.md); `groups.csv` has the path of each group, `loads.csv` flow, travel time
and volume/capacity of each link.

**The picture.** The flow of every link:

![flow of every link](paths.svg)

**The numbers.** {found.game.num_agents} platoons are at an equilibrium, certified. Beckmann's function, which the flows
of infinitely small platoons minimise, is {roads.beckmann(flows):.1f} here. On Sioux Falls (3,606 platoons) the flows
come within 0.0045 % of the best-known value; a test holds it below 0.01 %. The certificate is about the paths that were
found by the Frank-Wolfe method before the game begins. No link is protected unless `--protected` names it.
"""

    def draw(axes: object) -> None:
        names = found.game.resource_names
        axes.bar(range(len(names)), flows, color=BLUE)
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=6)
        axes.set(ylabel="vehicles")

    return text, draw


def capacity_page() -> tuple[str, Callable[[Path], None]]:
    """How large should the transformer be?"""
    from cmpg import sweeps

    shown = console("cmpg sweep charging --capacity 2:8 --threshold 0.1,0.5 --out sweep")
    found = sweeps.load_sweep("sweep")
    low, high = sweeps.curves(found, "capacity")
    worth = [high.welfare[place + 1] - high.welfare[place] for place in range(len(high.x) - 1)]
    knee = int(high.x[high.knee])
    text = f"""# How large should the transformer be?

**The question.** The car park has a transformer for six cars at once. What would a larger one be worth, and would a
larger budget of overload do as well?

**One command.** It solves the day for every combination of options, each with a proof; a list, a range or a span of
days stands where one value would:

{shown}

**The picture.** The welfare of all drivers against the capacity; the page `sweep/report.html` has this and more, with
what a unit is worth, prices, and a map of both options:

![welfare against capacity](capacity.svg)

**The numbers.** With a budget of 0.5, the third place is worth {worth[0]:.1f} a day, the last one that was tried
{worth[-1]:.2f}; the knee is at {knee} places. `results.csv` has a row for every run, with the bound that no
policy exceeds, and every run folder is kept: `cmpg show sweep/runs/0003` says who does what in that one. How sweeps are
resumed, spread over processes or a cluster, and written as a file is in [many runs](../many-runs.md).
"""

    def draw(axes: object) -> None:
        for curve, colour in ((low, RED), (high, BLUE)):
            axes.plot(curve.x, curve.welfare, "o-", color=colour, label=f"threshold {curve.others['threshold']:g}")
        axes.plot(high.x[high.knee], high.welfare[high.knee], "o", markersize=14, markerfacecolor="none", color=BLUE)
        axes.set(xlabel="capacity in cars", ylabel="welfare")
        axes.legend(frameon=False)

    return text, draw


PAGES = {
    "simulate": simulate_page,
    "schedule": schedule_page,
    "site": site_page,
    "paths": paths_page,
    "capacity": capacity_page,
}
"""In an order in which later pages may use the runs of earlier ones."""


@contextmanager
def _elsewhere():
    """Work in a folder of its own, so that the pages name runs by short names; wide lines are not broken."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, {"COLUMNS": "200"}):
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def _save(draw: Callable[[Path], None], target: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "cmpg"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
    draw(axes)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, metadata={"Date": None})
    plt.close(figure)


def main(folders: list[str]) -> None:
    targets = [Path(folder).resolve() for folder in folders]
    with _elsewhere():
        for name, page in PAGES.items():
            text, draw = page()
            if not targets:
                print(f"<!-- {name} -->\n{text}", end="")
            for target in targets:
                (target / f"{name}.md").write_text(text, "utf-8")
                _save(draw, target / f"{name}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
