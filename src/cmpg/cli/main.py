"""The command `cmpg`; `HOMES` has its subcommands.

Exit codes: 0 certified, 1 ended without a certificate (the status says why), 2 bad input, 130 interrupted without an
answer (the last line says what was kept). Errors go to stderr, in one paragraph.

What brings numpy is loaded where it is used, mostly by its package (`files.run_folder`, `cmpg.solve`), so that
`cmpg --help` answers at once.
"""

from __future__ import annotations

import errno
import importlib
import inspect
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import cmpg
from cmpg import __version__, files
from cmpg.cli.interrupts import EXIT_CODE, exit_code, on_interrupt, written
from cmpg.cli.options import grouped, option
from cmpg.cli.output import complain, show, speak_any_text
from cmpg.cli.targets import GameCommand, complete_scenario, help_words, unknown_option
from cmpg.errors import CMPGError, PluginError
from cmpg.scenarios import SCENARIOS, plugin_scenario, scenario
from cmpg.summaries import Summary, listing

HOMES = {
    "demo": "demo",
    "scenarios": "main",
    "solve": "solve",
    "check": "check",
    "certify": "check",
    "judge": "judging",
    "duality": "duality",
    "show": "runs",
    "simulate": "runs",
    "replan": "operation",
    "operate": "operation",
    "export": "runs",
    "sweep": "sweep",
    "live": "live",
    "learn": "learning",
    "bounds": "learning",
    "convert": "convert",
    "compare": "compare",
    "suite": "suite",
    "reproduce": "reproduce",
    "report": "main",
    "cite": "main",
}
"""The file of this room that has the function of each command. To add a command, add it here."""

NEXT_STEPS = """\
cmpg: policies of several agents that keep a shared budget, each with a proof.

Begin
  cmpg demo                     solve a day of car charging, and show its page
  cmpg scenarios                list the games that come with the library
  cmpg solve robots --out run   solve one, and keep the answer
  cmpg report run               make a page of it

Your own problem
  cmpg check game.json          look at a game: sizes, feasibility, potential
  cmpg solve game.json          solve it
  cmpg judge game.json p.npz    judge a policy that you have

`cmpg --help` lists all commands, `cmpg COMMAND --help` the options of one."""
"""What a newcomer can do next, in fewer lines than a terminal has."""

CONTEXT = {"help_option_names": ["-h", "--help"]}

MORE = "`cmpg COMMAND NAME --help` also lists the options of the scenario NAME."

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What the parser raises; typer has it under different names by version."""


class Commands(TyperGroup):
    """The commands by name, each loaded when it is asked for."""

    def list_commands(self, _: Any) -> list[str]:
        """Return the names in the order of the help."""
        return list(HOMES)

    def get_command(self, _: Any, cmd_name: str) -> Any:
        """Load a command; one that takes a game also has the options of its scenario."""
        if cmd_name not in HOMES:
            return None
        function: Any = grouped(getattr(importlib.import_module(f"cmpg.cli.{HOMES[cmd_name]}"), cmd_name))
        alone = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=CONTEXT)
        if "target" in inspect.signature(function).parameters:
            alone.command(cmd_name, cls=GameCommand, epilog=MORE)(function)
        else:
            alone.command(cmd_name)(function)
        command: Any = typer.main.get_command(alone)
        command.headings = function.headings
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the words begin with; where there is none, those that sound like it are named."""
        # Their names, for that advice.
        self.commands = {name: self.get_command(ctx, name) for name in HOMES} if args[0] not in HOMES else {}
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=Commands,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=CONTEXT,
    help="Nash policies of constrained Markov potential games, with a certificate behind every answer.",
    epilog="Exit codes: 0 certified, 1 ended without a certificate, 2 bad input, 130 interrupted.",
)


def main() -> None:
    """Run the command, and turn errors on purpose into one paragraph and exit code 2."""
    speak_any_text()
    on_interrupt(lambda: "")
    try:
        code = app(prog_name="cmpg", standalone_mode=False)
        if code == EXIT_CODE:  # what typer makes of a KeyboardInterrupt, or an Abort, depending on its version
            raise KeyboardInterrupt
        _flush()
        sys.exit(code)
    except (KeyboardInterrupt, typer.Abort) as stop:
        sys.exit(exit_code(stop))
    except UsageError as error:
        complain(_usage_text(error))
    except CMPGError as error:
        complain(str(error))
    except MemoryError as error:
        from cmpg.sizes import bytes_text, memory_left

        missing = f": {error}" if str(error) else ""
        left = bytes_text(memory_left())
        complain(f"there is not enough memory{missing}. About {left} are left. Try fewer agents, states or steps.")
    except OSError as error:
        full = " Make room on that disk, and run the command again." if error.errno == errno.ENOSPC else ""
        complain(f"{error.filename or 'the system'}: {error.strerror or error}.{full}")
    sys.exit(2)


def _usage_text(error: Any) -> str:
    """Say what the parser did not understand, and where to look."""
    if hasattr(error, "possibilities") and error.ctx is not None:
        problem = unknown_option(error.ctx, error.option_name)
    else:
        problem = error.format_message().strip()
        problem += "" if problem.endswith((".", "?")) else "."
    more = "cmpg --help" if error.ctx is None else help_words(error.ctx)
    return f"{problem[:1].lower()}{problem[1:]} See {more}."


def _flush() -> None:
    """Write what is left; a reader who has gone away is no error, and nothing is said at exit either."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


@app.callback(invoke_without_command=True)
def _no_command(
    context: typer.Context,
    version: Annotated[bool, option("Print the version and exit.", "--version")] = False,
) -> None:
    if version:
        from cmpg.cmdp.kernels.choice import kernels_used

        print(f"{__version__} ({kernels_used()} kernels)")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(NEXT_STEPS, file=sys.stderr)
        raise typer.Exit(2)


def scenarios(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", autocompletion=complete_scenario, help="Show the options of one scenario."),
    ] = None,
) -> None:
    """List the games that come with the library."""
    from cmpg.cli.targets import listed_options, spoken

    if name is None:
        _list_scenarios()
        return
    named = scenario(name)
    options = {spoken(option): meaning for option, meaning in listed_options(named).items()}
    show(Summary(named.name, named.summary), listing(options))


def _list_scenarios() -> None:
    """List what comes with the library and with other packages; name what is broken, and go on."""
    from cmpg import plugins

    listed = {each.name: each.summary for each in SCENARIOS.values()}
    problems = []
    for plugin in plugins.plugins(plugins.SCENARIOS).values():
        try:
            listed[plugin.name] = plugin_scenario(plugin).summary
        except PluginError as problem:
            problems.append(str(problem))
    show(listing(listed), "\n`cmpg scenarios NAME` lists the options of one; `cmpg solve NAME` solves it.")
    solvers = plugins.plugins(plugins.SOLVERS).values()
    if solvers:
        show(f"Solvers of other packages: {', '.join(f'{each.name} ({each.package})' for each in solvers)}.")
    for text in problems:
        complain(text)


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="What `cmpg solve`, `learn` or `sweep … --out` wrote.")
    ],
    output: Annotated[
        Path | None, option("File to write; report.html in the folder if omitted.", "--out", "-o")
    ] = None,
) -> None:
    """Write one HTML page about a run: proof, policy, charts."""
    from cmpg.equilibrium.sensitivity import sensitivity
    from cmpg.report.learning_page import write_learning_page
    from cmpg.report.page import write_page
    from cmpg.report.recommendations import write_recommendation_page
    from cmpg.report.sweep_page import write_sweep_page
    from cmpg.sweeps.rows import is_sweep, proved_sweep

    target = folder / "report.html" if output is None else output
    on_interrupt(written(target))
    if files.devices.is_recommendation(folder):
        size = write_recommendation_page(files.devices.load_recommendation(folder), target)
    elif is_sweep(folder):
        size = write_sweep_page(proved_sweep(folder), target)
    elif files.learning_folder.is_learning_run(folder):
        size = write_learning_page(files.learning_folder.load_learning_run(folder), target)
    else:
        run = files.run_folder.load_run(folder)
        size = write_page(run, target, sensitivity=sensitivity(run.result))
    show(f"written to {target} ({size / 1e6:.1f} MB); open it in any browser")


def cite() -> None:
    """Print BibTeX of the library and of the paper."""
    print(cmpg.cite(), end="")
