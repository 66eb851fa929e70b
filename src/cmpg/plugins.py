"""Scenarios and solvers of other packages, which announce them by entry points.

In the pyproject.toml of such a package:

    [project.entry-points."cmpg.scenarios"]
    crossing = "crossing_games:crossing"

    [project.entry-points."cmpg.solvers"]
    patient = "crossing_games:Patient"

A scenario is a function with typed options that all have defaults, and returns a game. The first line of its docstring
is what `cmpg scenarios` shows, and its section `Parameters` says what the options mean. A solver is a class or function
with such options, and makes what answers a CMDP (`Solver`).

Nothing of a package is imported before it is asked for. What is broken raises a `PluginError`, which names the package,
and takes nothing else down.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from cmpg.cmdp.response import Solver
from cmpg.errors import CMPGError, PluginError

__all__ = ["Plugin", "plugin_solver", "plugins"]

SCENARIOS, SOLVERS = "cmpg.scenarios", "cmpg.solvers"
"""The groups of entry points."""


@dataclass(frozen=True)
class Plugin:
    """What another package brings under a name."""

    name: str
    group: str  # cmpg.scenarios or cmpg.solvers
    package: str  # with its version
    home: str  # module:function

    def load(self) -> Callable[..., Any]:
        """Import what makes the scenario or the solver."""
        packages = [each.package for each in _announced(self.group, tuple(sys.path)) if each.name == self.name]
        if len(packages) > 1:
            raise PluginError(
                f"the packages {' and '.join(packages)} both bring a plugin {self.name!r} for {self.group}. "
                "Uninstall one of them."
            )
        found = self.guarded("cannot be loaded", EntryPoint(self.name, self.home, self.group).load)
        if not (inspect.isfunction(found) or (self.group == SOLVERS and callable(found))):
            raise self.error(f"is a {type(found).__name__}; a function is required")
        bare = [each.name for each in inspect.signature(found).parameters.values() if each.default is each.empty]
        if bare:
            raise self.error(f"has options without a default: {', '.join(bare)}; every option needs one")
        return found  # type: ignore[no-any-return]

    def guarded(self, problem: str, call: Callable[..., Any], **options: Any) -> Any:
        """Call what belongs to the plugin; whatever it raises, other than on purpose, is its own error."""
        try:
            return call(**options)
        except CMPGError:
            raise
        except (Exception, SystemExit) as error:
            raise self.error(f"{problem}: {type(error).__name__}: {error}") from error

    def error(self, problem: str) -> PluginError:
        """Return an error that names the plugin and its package."""
        text = f"the plugin {self.name!r} of the package {self.package} ({self.home}) {problem}."
        return PluginError(f"{text} Repair or uninstall that package; everything else works without it.")


def plugins(group: str) -> dict[str, Plugin]:
    """Return what other packages announce, by name; nothing is imported.

    Examples
    --------
    >>> "grid-world" in plugins("cmpg.scenarios")     # comes with the library, and is no plugin
    False
    """
    return {each.name: each for each in _announced(group, tuple(sys.path))}


@cache
def _announced(group: str, path: tuple[str, ...]) -> tuple[Plugin, ...]:  # noqa: ARG001
    """Look through the installed packages, once as long as the path stays the same."""
    found = []
    for each in entry_points(group=group):
        package = "?" if each.dist is None else f"{each.dist.name} {each.dist.version}"
        found.append(Plugin(each.name, group, package, each.value))
    return tuple(sorted(set(found), key=lambda each: (each.name, each.package)))


def plugin_solver(name: str, **options: Any) -> Solver:
    """Make the solver that another package brings, with its options.

    Examples
    --------
    >>> plugin_solver("simplex-by-hand")
    Traceback (most recent call last):
    ...
    cmpg.errors.PluginError: no installed package brings a solver 'simplex-by-hand'.
    """
    known = plugins(SOLVERS)
    if name not in known:
        there = f" There are: {', '.join(known)}." if known else ""
        raise PluginError(f"no installed package brings a solver {name!r}.{there}")
    plugin = known[name]
    made = plugin.guarded("cannot be made", plugin.load(), **options)
    if not callable(made):
        raise plugin.error(f"makes a {type(made).__name__}; a solver is called with a CMDP")
    return made  # type: ignore[no-any-return]


def documented_options(function: Callable[..., Any]) -> Mapping[str, str]:
    """Return what the section `Parameters` of a docstring says about each option, in one line.

    Examples
    --------
    >>> documented_options(lambda: None)
    {}
    """
    text = inspect.getdoc(function) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", text, re.MULTILINE | re.DOTALL)
    meanings: dict[str, str] = {}
    names: list[str] = []
    for line in section[1].splitlines() if section else []:
        if line and not line[0].isspace():
            names = [name.strip() for name in line.partition(":")[0].split(",")]
        elif line.strip():
            meanings |= {name: f"{meanings.get(name, '')} {line.strip()}".strip() for name in names}
    return meanings
