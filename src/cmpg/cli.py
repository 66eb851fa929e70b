"""The command: `cmpg scenarios | solve | check | certify | learn | bounds | reproduce`.

Exit codes: 0 certified, 1 ended without a certificate (the status says why), 2 bad input. Errors go to stderr, in one
paragraph.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from cmpg import __version__
from cmpg.checks import CMPGError
from cmpg.cli_learning import register as register_learning
from cmpg.cli_reproduce import register as register_reproduce
from cmpg.cli_targets import game_of, origin_of
from cmpg.equilibrium.result import Step
from cmpg.games.contract import Game

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Nash policies of constrained Markov potential games, with a certificate behind every answer.",
)
out = Console()
err = Console(stderr=True)

SCENARIO_OPTIONS = {"allow_extra_args": True, "ignore_unknown_options": True}

Target = Annotated[str, typer.Argument(help="A scenario's name (see `cmpg scenarios`) or a game file.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else, on standard output.")]
Seed = Annotated[int | None, typer.Option(help="Seeds random starts and ties, and scenarios that draw their agents.")]


def main() -> None:
    """Run the command, and turn errors on purpose into one paragraph and exit code 2."""
    try:
        app()
    except CMPGError as error:
        err.print(f"[bold red]error[/]: {_escaped(str(error))}", soft_wrap=True, highlight=False)
        sys.exit(2)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


@app.command()
def scenarios(name: Annotated[str | None, typer.Argument(help="Show the options of one scenario.")] = None) -> None:
    """List the games that come with the library, or the options of one."""
    from rich.table import Table

    from cmpg.scenarios import SCENARIOS, scenario

    table = Table(box=None, pad_edge=False)
    if name is None:
        table.add_column("scenario", style="bold")
        table.add_column("what it is")
        for each in SCENARIOS.values():
            table.add_row(each.name, each.summary)
    else:
        named = scenario(name)
        out.print(f"[bold]{named.name}[/]: {named.summary}")
        table.add_column("option", style="bold")
        table.add_column("default")
        for option, default in named.options.items():
            table.add_row(f"--{option.replace('_', '-')}", "" if default is None else str(default))
    out.print(table)


@app.command(context_settings=SCENARIO_OPTIONS)
def solve(
    context: typer.Context,
    target: Target,
    epsilon: Annotated[float, typer.Option(help="No agent shall gain more than this by leaving.")] = 1e-6,
    restarts: Annotated[int, typer.Option(help="Runs in all; the best equilibrium is returned, all are listed.")] = 1,
    prefer: Annotated[str, typer.Option(help="Which equilibrium is best: potential or welfare.")] = "potential",
    solver: Annotated[str, typer.Option(help="Best responses: exact, lp or primal-dual.")] = "exact",
    schedule: Annotated[str, typer.Option(help="Who moves: auto, greatest-gain or round-robin.")] = "auto",
    max_iterations: Annotated[int | None, typer.Option(help="Moves at most; Theorem 1's bound unless given.")] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds at most.")] = float("inf"),
    workers: Annotated[int, typer.Option(help="Threads.")] = 1,
    seed: Seed = None,
    start: Annotated[Path | None, typer.Option(help="A feasible policy file to start from.")] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Judge in exact rational arithmetic (small games).")] = False,
    output: Annotated[Path | None, typer.Option("--out", help="A new folder for policy, certificate, trace.")] = None,
    as_json: Json = False,
) -> None:
    """Find a feasible policy from which no agent gains by leaving, and prove it."""
    from cmpg.cli_targets import chosen
    from cmpg.equilibrium.schedule import GreatestGain, RoundRobin
    from cmpg.equilibrium.solve import by_potential, by_welfare
    from cmpg.equilibrium.solve import solve as find
    from cmpg.policy import JointPolicy
    from cmpg.report.records import check_out_folder, result_record, write_run
    from cmpg.report.tables import result_view

    if output is not None:
        check_out_folder(output)
    preference = chosen("prefer", prefer, {"potential": by_potential, "welfare": by_welfare})
    method = chosen("solver", solver, {"exact": _exact, "lp": _lp, "primal-dual": _primal_dual})(epsilon)
    turns = {"auto": None, "greatest-gain": GreatestGain(), "round-robin": RoundRobin()}
    game = game_of(target, context.args, seed=seed, exact=exact)
    with _Progress(game) as progress:
        result = find(
            game,
            epsilon=epsilon,
            start=None if start is None else JointPolicy.load(start),
            restarts=restarts,
            prefer=preference,
            rng=None if seed is None and restarts == 1 else np.random.default_rng(seed),
            solver=method,
            schedule=chosen("schedule", schedule, turns),
            max_iterations=max_iterations,
            time_limit=time_limit,
            workers=workers,
            on_progress=progress.show,
        )
    if output is not None:
        write_run(output, game, result, seed=seed, origin=origin_of(target, context.args, seed=seed))
    if as_json:
        print(json.dumps(result_record(result, seed=seed)))
    else:
        out.print(result_view(result), soft_wrap=False)
        if output is not None:
            out.print(f"written to {output}/; check it with: cmpg certify {output}/game.npz {output}/policy.npz")
    raise typer.Exit(0 if result.certified else 1)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A run folder, written by `cmpg solve … --out`.")],
    output: Annotated[Path | None, typer.Option("--out", "-o", help="The page; report.html in the folder.")] = None,
) -> None:
    """Write one self-contained HTML page about a run: verdict, proof, policy viewer, charts."""
    from cmpg.report.page import write_page

    target = folder / "report.html" if output is None else output
    size = write_page(folder, target)
    out.print(f"written to {target} ({size / 1e6:.1f} MB); open it in any browser", soft_wrap=True, highlight=False)


@app.command(context_settings=SCENARIO_OPTIONS)
def check(context: typer.Context, target: Target, seed: Seed = None, as_json: Json = False) -> None:
    """Look at a game: its size, whether it is feasible, and whether it is a Markov potential game."""
    from cmpg.equilibrium.start import feasible_start
    from cmpg.games.potential import Verdict, check_potential
    from cmpg.report.game_view import check_record, check_view

    game = game_of(target, context.args, seed=seed, exact=False)
    found = feasible_start(game)
    potential = check_potential(game, rng=np.random.default_rng(seed))
    if as_json:
        print(json.dumps(check_record(game, found, potential)))
    else:
        out.print(check_view(game, found, potential))
    raise typer.Exit(0 if found.policy is not None and potential.verdict is not Verdict.REFUTED else 1)


@app.command(context_settings=SCENARIO_OPTIONS)
def certify(
    context: typer.Context,
    target: Target,
    policy: Annotated[Path, typer.Argument(help="A policy file, with the multipliers that prove it.")],
    epsilon: Annotated[float, typer.Option(help="The gain that is still called Nash.")] = 1e-6,
    exact: Annotated[bool, typer.Option("--exact", help="Compute with rationals (small games).")] = False,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Check somebody's claim that a policy is feasible and Nash, by backward induction alone."""
    from cmpg.equilibrium.certificate import certify as judge
    from cmpg.policy import load_policy
    from cmpg.report.records import certificate_record
    from cmpg.report.tables import certificate_view, claim_verdict

    game = game_of(target, context.args, seed=seed, exact=exact)
    tables, multipliers = load_policy(policy)
    tables.check_fits(game.policy_shapes)
    if multipliers is None and len(game.thresholds):
        err.print("the policy file has no multipliers: best responses are solved for to propose some", highlight=False)
        multipliers = _proposed_multipliers(game, tables)
    certificate = judge(game, tables, multipliers, exact=exact)
    if as_json:
        print(json.dumps(certificate_record(certificate)))
    else:
        out.print(claim_verdict(certificate, epsilon))
        out.print(certificate_view(certificate))
    raise typer.Exit(0 if certificate.proves(epsilon) else 1)


def _proposed_multipliers(game: Game, policy: Any) -> Any:
    from cmpg.cmdp.exact import Exact

    position = game.at(policy)
    return np.array([Exact()(position.induced_cmdp(agent)).multipliers for agent in range(game.num_agents)])


def _exact(epsilon: float) -> Any:  # noqa: ARG001
    from cmpg.cmdp.exact import Exact

    return Exact()


def _lp(epsilon: float) -> Any:  # noqa: ARG001
    from cmpg.cmdp.linear_program import LinearProgram

    return LinearProgram()


def _primal_dual(epsilon: float) -> Any:
    from cmpg.cmdp.primal_dual import PrimalDual

    return PrimalDual(tolerance=epsilon / 4)


class _Progress:
    """A live line on a terminal; elsewhere a plain line now and then."""

    def __init__(self, game: Game) -> None:
        self._thresholds = np.asarray(game.thresholds, dtype=np.float64)
        self._status = err.status("starting") if err.is_terminal else None
        self._shown = 0.0

    def __enter__(self) -> _Progress:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, step: Step) -> None:
        """Show where the run stands."""
        from cmpg.report.tables import progress_line

        line = progress_line(step, self._thresholds)
        if self._status is not None:
            self._status.update(line)
        elif step.seconds >= self._shown:
            print(line, file=sys.stderr)
            self._shown = step.seconds + 1.0


register_reproduce(app)
register_learning(app)
