"""The command: `cmpg scenarios | solve | check | certify | report | learn | bounds | reproduce | compare`.

Exit codes: 0 certified, 1 ended without a certificate (the status says why), 2 bad input, 130 interrupted before there
was anything to keep. Errors go to stderr, in one paragraph.

Each command imports what it needs, numpy among it, so that `cmpg --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cmpg import __version__
from cmpg.cli.compare import register as register_compare
from cmpg.cli.learning import register as register_learning
from cmpg.cli.output import ProgressLine, complain, remark, show, show_json, speak_any_text
from cmpg.cli.reproduce import register as register_reproduce

if TYPE_CHECKING:
    from cmpg.games.contract import Game

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Nash policies of constrained Markov potential games, with a certificate behind every answer.",
    epilog="Exit codes: 0 certified, 1 ended without a certificate, 2 bad input.",
)

DEFAULT_EPSILON = 1e-6

SCENARIO_OPTIONS = {"allow_extra_args": True, "ignore_unknown_options": True}

Target = Annotated[
    str,
    typer.Argument(
        metavar="GAME",
        help="A scenario (see `cmpg scenarios`) with its own options (see `cmpg scenarios NAME`), or a game file.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else, on standard output.")]
Seed = Annotated[int | None, typer.Option(min=0, metavar="<int>", help="Of all that is drawn: agents, starts, ties.")]


def main() -> None:
    """Run the command, and turn errors on purpose into one paragraph and exit code 2."""
    speak_any_text()
    try:
        app(prog_name="cmpg")
    except SystemExit:
        _flush_or_leave()
        raise
    except _errors_on_purpose() as error:
        complain(str(error))
    except MemoryError:
        complain("there is not enough memory for a game of this size. Try fewer agents, states or steps.")
    except OSError as error:
        complain(f"{error.filename or 'the system'}: {error.strerror or error}.")
    sys.exit(2)


def _errors_on_purpose() -> type[Exception]:
    """Imported when something was raised, and not before: numpy comes with it."""
    from cmpg.errors import CMPGError

    return CMPGError


def _flush_or_leave() -> None:
    """Write what is left; a reader who has gone away is no error, and nothing is said at exit either."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        from cmpg.cmdp.kernels.choice import kernels_used

        print(f"{__version__} ({kernels_used()} kernels)")
        raise typer.Exit


@app.command()
def scenarios(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Show the options of one scenario.")] = None,
) -> None:
    """List the games that come with the library."""
    from rich.table import Table
    from rich.text import Text

    from cmpg.cli.targets import MEANINGS, listed_options, spoken
    from cmpg.scenarios import SCENARIOS, scenario

    table = Table(box=None, pad_edge=False, show_header=False)
    if name is None:
        for each in SCENARIOS.values():
            table.add_row(Text(each.name, style="bold"), Text(each.summary))
        show(table, "", "cmpg scenarios NAME lists the options of one; cmpg solve NAME solves it.")
        return
    named = scenario(name)
    for option, default in listed_options(named).items():
        given = ",".join(map(str, default)) if isinstance(default, tuple) else default
        told = MEANINGS.get(option, "")
        told = told if given is None or len(str(given)) > 40 else f"{told} [{given}]"
        table.add_row(Text(spoken(option), style="bold"), Text(told))
    show(f"{named.name}: {named.summary}", table)


@app.command(context_settings=SCENARIO_OPTIONS)
def solve(
    context: typer.Context,
    target: Target,
    epsilon: Annotated[float, typer.Option(help="No agent shall gain more than this by leaving.")] = DEFAULT_EPSILON,
    restarts: Annotated[
        int, typer.Option(min=1, metavar="<int>", help="Runs from different starts; the best ending is kept.")
    ] = 1,
    prefer: Annotated[str, typer.Option(help="Which ending is best: potential or welfare.")] = "potential",
    solver: Annotated[str, typer.Option(help="Best responses: exact, lp or primal-dual.")] = "exact",
    schedule: Annotated[str, typer.Option(help="Who moves: auto, greatest-gain or round-robin.")] = "auto",
    max_iterations: Annotated[
        int | None, typer.Option(min=0, metavar="<int>", help="Moves at most; Theorem 1's bound if left out.")
    ] = None,
    time_limit: Annotated[float | None, typer.Option(help="Seconds at most, of each run.")] = None,
    workers: Annotated[
        int, typer.Option(min=1, metavar="<int>", help="Threads; the answer is the same for any number.")
    ] = 1,
    seed: Seed = None,
    start: Annotated[Path | None, typer.Option(help="A file with a feasible policy to start from.")] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Judge in exact rational arithmetic (small games).")] = False,
    selfish: Annotated[bool, typer.Option("--selfish", help="Show what comes of it without the constraints.")] = False,
    output: Annotated[Path | None, typer.Option("--out", help="A new folder for game, policy and certificate.")] = None,
    as_json: Json = False,
) -> None:
    """Find a feasible policy that nobody gains by leaving."""
    import numpy as np

    from cmpg.cli.targets import chosen, finite, game_of, origin_of, policy_of
    from cmpg.equilibrium.schedule import GreatestGain, RoundRobin
    from cmpg.equilibrium.solve import by_potential, by_welfare
    from cmpg.equilibrium.solve import solve as find
    from cmpg.files.records import check_out_folder

    if output is not None:
        check_out_folder(output)
    turns = {"auto": None, "greatest-gain": GreatestGain(), "round-robin": RoundRobin()}
    methods = {"exact": _exact, "lp": _lp, "primal-dual": _primal_dual}
    settings: dict[str, Any] = {
        "prefer": chosen("prefer", prefer, {"potential": by_potential, "welfare": by_welfare}),
        "solver": chosen("solver", solver, methods)(finite("epsilon", epsilon, positive=True)),
        "schedule": chosen("schedule", schedule, turns),
        "max_iterations": max_iterations,
        "time_limit": np.inf if time_limit is None else finite("time-limit", time_limit),
        "workers": workers,
    }
    game = game_of(target, context.args, seed=seed, exact=exact)
    free = _without_constraints(game) if selfish else None
    first = None if start is None else policy_of(start, game)[0]
    drawn = 0 if seed is None and restarts > 1 else seed
    rng = None if drawn is None else np.random.default_rng(drawn)
    with ProgressLine(game) as progress:
        result = find(
            game, epsilon=epsilon, start=first, restarts=restarts, rng=rng, on_progress=progress.show, **settings
        )
        unbound = None
        # Ctrl-C while this runs must not lose what was asked for first.
        with suppress(KeyboardInterrupt):
            if free is not None and result.status.name != "INTERRUPTED":
                unbound = find(free, epsilon=epsilon, on_progress=progress.show, **(settings | {"solver": None}))
    asked = {"restarts": restarts, "prefer": prefer, "max_iterations": max_iterations, "time_limit": time_limit}
    result = replace(result, settings={**result.settings, **asked, "start": start and str(start), "exact": exact})
    origin = origin_of(target, context.args, seed=seed)
    _deliver(result, game, selfish=unbound, output=output, seed=drawn, origin=origin, as_json=as_json)
    raise typer.Exit(0 if result.certified else 1)


def _without_constraints(game: Any) -> Any:
    """Return the same game, in floats, with thresholds that nobody reaches."""
    import numpy as np

    from cmpg.errors import GameError
    from cmpg.games.contract import in_floats

    if len(game.thresholds) == 0:
        raise GameError("this game has no constraints, so that play is selfish already. Leave --selfish out.")
    floats: Any = in_floats(game)
    return floats.with_thresholds(np.maximum(floats.thresholds, 1e9))


def _deliver(
    result: Any, game: Game, *, selfish: Any, output: Path | None, seed: int | None, origin: Any, as_json: bool
) -> None:
    """Write the run folder, and show the result, even where writing fails."""
    from cmpg.errors import FileError
    from cmpg.files.records import result_record, write_run
    from cmpg.report.tables import result_view, selfish_line

    record, failure = None, None
    if output is not None:
        try:
            record = write_run(output, game, result, seed=seed, origin=origin, selfish=selfish)
        except FileError as problem:
            failure = problem
    if as_json:
        show_json(record or result_record(result, game, seed=seed, selfish=selfish))
    else:
        show(result_view(result, game))
        if selfish is not None:
            show(selfish_line(selfish, result, game.thresholds))
    if failure is not None:
        raise failure
    if output is not None and not as_json:
        judge = "game.json" if (output / "game.json").exists() else "game.npz"
        asked = "" if result.epsilon == DEFAULT_EPSILON else f" --epsilon {result.epsilon}"
        check = f"; check it with: cmpg certify {output}/{judge} {output}/policy.npz{asked}" if result.incumbent else ""
        show(f"written to {output}/{check}")


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A run folder, written by `cmpg solve … --out`.")],
    output: Annotated[Path | None, typer.Option("--out", "-o", help="The page; report.html in the folder.")] = None,
) -> None:
    """Write one HTML page about a run: proof, policy, charts."""
    from cmpg.report.page import write_page

    target = folder / "report.html" if output is None else output
    size = write_page(folder, target)
    show(f"written to {target} ({size / 1e6:.1f} MB); open it in any browser")


@app.command(context_settings=SCENARIO_OPTIONS)
def check(context: typer.Context, target: Target, seed: Seed = None, as_json: Json = False) -> None:
    """Look at a game: sizes, feasibility, potential.

    Exit code 0 if it is feasible and nothing speaks against a potential, 1 if not.
    """
    import numpy as np

    from cmpg.cli.targets import game_of
    from cmpg.equilibrium.start import feasible_start
    from cmpg.files.records import check_record, plain
    from cmpg.games.potential.check import Verdict, check_potential
    from cmpg.report.game_view import check_view

    game = game_of(target, context.args, seed=seed, exact=False)
    found = feasible_start(game)
    potential = check_potential(game, rng=np.random.default_rng(seed or 0))
    if as_json:
        show_json(plain(check_record(game, found, potential)))
    else:
        show(check_view(game, found, potential))
    raise typer.Exit(0 if found.policy is not None and potential.verdict is not Verdict.REFUTED else 1)


@app.command(context_settings=SCENARIO_OPTIONS)
def certify(
    context: typer.Context,
    target: Target,
    policy: Annotated[
        Path, typer.Argument(metavar="POLICY", help="A policy file, with the multipliers that prove it.")
    ],
    epsilon: Annotated[float, typer.Option(help="The gain that is still called Nash.")] = DEFAULT_EPSILON,
    exact: Annotated[bool, typer.Option("--exact", help="Compute with rationals (small games).")] = False,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Check a claim that a policy is feasible and Nash.

    By backward induction alone, whatever found the policy. Exit code 0 if the claim is proved, 1 if it is not.
    """
    from cmpg.cli.targets import finite, game_of, policy_of
    from cmpg.equilibrium.best_responses import proposed_multipliers
    from cmpg.equilibrium.certificate import certify as judge
    from cmpg.files.records import certificate_record
    from cmpg.games.contract import in_floats
    from cmpg.report.tables import certificate_view, claim_verdict

    finite("epsilon", epsilon)
    game = game_of(target, context.args, seed=seed, exact=exact)
    tables, multipliers = policy_of(policy, game, exact=exact)
    if multipliers is None and len(game.thresholds):
        remark("the policy file has no multipliers: best responses are solved for to propose some")
        multipliers = proposed_multipliers(in_floats(game), tables)
    certificate = judge(game, tables, multipliers, exact=exact)
    proved, names = certificate.proves(epsilon), game.names
    if as_json:
        show_json(certificate_record(certificate) | {"claimed_epsilon": epsilon, "proved": proved})
    else:
        show(claim_verdict(certificate, epsilon, names), certificate_view(certificate, names))
    raise typer.Exit(0 if proved else 1)


def _exact(epsilon: float) -> Any:  # noqa: ARG001
    from cmpg.cmdp.exact import Exact

    return Exact()


def _lp(epsilon: float) -> Any:  # noqa: ARG001
    from cmpg.cmdp.linear_program import LinearProgram

    return LinearProgram()


def _primal_dual(epsilon: float) -> Any:
    from cmpg.cmdp.primal_dual import PrimalDual

    return PrimalDual(tolerance=epsilon / 4)


register_reproduce(app)
register_compare(app)
register_learning(app)
