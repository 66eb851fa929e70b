"""What mkdocs.yml needs for the reference: a page for each front door, with every name that it lends, and the fields.

Nobody writes these pages, so they cannot be out of date.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from typing import Any

from griffe import Attribute, Docstring, Extension, ObjectNode
from mkdocs.structure.files import File, Files

DOORS = (
    "cmpg",
    "cmpg.games",
    "cmpg.simulation",
    "cmpg.equilibrium",
    "cmpg.learning",
    "cmpg.duality",
    "cmpg.comparison",
    "cmpg.interop",
    "cmpg.runs",
    "cmpg.sweeps",
    "cmpg.scenarios",
    "cmpg.plugins",
)
"""In the order of the navigation; a name is shown where it is lent first."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages when the site is built."""
    shown: set[int] = set()
    for door in DOORS:
        module = importlib.import_module(door)
        lines = [f"# {door}", "", (inspect.getdoc(module) or "").split("\n>>>")[0], ""]
        for name in sorted(module.__all__, key=lambda name: (not name[0].islower(), name.lower())):
            thing = getattr(module, name)
            if not inspect.ismodule(thing) and id(thing) not in shown:
                shown.add(id(thing))
                lines += [f"::: {door}.{name}", ""]
        files.append(File.generated(config, f"reference/{door}.md", content="\n".join(lines)))
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
