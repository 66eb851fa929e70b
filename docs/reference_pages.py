"""The reference pages for mkdocs.yml: one for each public package, with every name that it exports, and the fields.

These pages are generated, so they cannot be out of date.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from typing import Any

from griffe import Attribute, Docstring, Extension, ObjectNode
from mkdocs.structure.files import File, Files

PACKAGES = (
    "cmpg",
    "cmpg.games",
    "cmpg.simulation",
    "cmpg.equilibrium",
    "cmpg.operation",
    "cmpg.learning",
    "cmpg.duality",
    "cmpg.judging",
    "cmpg.comparison",
    "cmpg.interop",
    "cmpg.runs",
    "cmpg.sweeps",
    "cmpg.scenarios",
    "cmpg.scenarios.readers",
    "cmpg.suite",
    "cmpg.paper",
    "cmpg.plugins",
)
"""The public packages in the order of the navigation; a name is shown in the first one that exports it."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages when the site is built."""
    shown: dict[int, Any] = {}  # holds what it has shown: the id of a thing that is gone is given to another
    for package in PACKAGES:
        module = importlib.import_module(package)
        lines = [f"# {package}", "", (inspect.getdoc(module) or "").split("\n>>>")[0], ""]
        for name in sorted(module.__all__, key=lambda name: (not name[0].islower(), name.lower())):
            thing = getattr(module, name)
            if not inspect.ismodule(thing) and id(thing) not in shown:
                shown[id(thing)] = thing
                # A function that shares its name with its module is named where it stands.
                alone = importlib.util.find_spec(f"{package}.{name}") is None if hasattr(module, "__path__") else True
                lines += [f"::: {package if alone else thing.__module__}.{name}", ""]
        files.append(File.generated(config, f"reference/{package}.md", content="\n".join(lines)))
    return files


class FieldComments(Extension):
    """Show a field with the comment that stands beside it: its shape, and what it means."""

    def on_attribute_instance(self, *, node: ast.AST | ObjectNode, attr: Attribute, **_: Any) -> None:
        """Take the comment at the end of the line."""
        if attr.docstring is None and isinstance(node, ast.AnnAssign):
            line = attr.lines_collection[attr.filepath][node.lineno - 1]
            comment = re.search(r"  # (.+)$", line)
            if comment:
                attr.docstring = Docstring(comment[1][:1].upper() + comment[1][1:] + ".", parent=attr)
