"""Lazy exports: the names of a package are loaded when they are first used, so that importing it costs next to nothing.

A package states its names once, as the imports that type checkers read (see SPEC 1 of Scientific Python):

    if TYPE_CHECKING:
        from cmpg.games.check import check_game as check_game

    __all__, __getattr__, __dir__ = lazy_exports(__name__)
"""

from __future__ import annotations

import ast
import importlib
import sys
import types
from collections.abc import Callable
from typing import Any


def lazy_exports(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package, from the imports in its `if TYPE_CHECKING` block.

    Packages that are imported from this one, `from cmpg import games as games`, are attributes and not in `__all__`.
    """
    home_of = _type_checking_imports(package)
    packages = [name for name, home in home_of.items() if home == package]

    class LazyPackage(types.ModuleType):
        """A package in which a function keeps its name where a file of the package has the same."""

        def __setattr__(self, name: str, value: Any) -> None:
            # Importing `solve.py` sets the attribute `solve` of the package, which would hide the function.
            if name in packages or name not in home_of or not isinstance(value, types.ModuleType):
                super().__setattr__(name, value)

    sys.modules[package].__class__ = LazyPackage

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if name in packages:
            return importlib.import_module(f"{package}.{name}")
        return getattr(importlib.import_module(home_of[name]), name)

    return [name for name in home_of if name not in packages], load, lambda: sorted(home_of)


def _type_checking_imports(package: str) -> dict[str, str]:
    """Return the module that each name is imported from; `import a as a` marks a name that is exported."""
    loader: Any = sys.modules[package].__spec__.loader  # type: ignore[union-attr]
    blocks = [each for each in ast.parse(loader.get_source(package)).body if isinstance(each, ast.If)]
    imports = [
        each
        for block in blocks
        if isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for each in block.body
    ]
    return {
        alias.asname: each.module
        for each in imports
        if isinstance(each, ast.ImportFrom) and each.module is not None
        for alias in each.names
        if alias.asname is not None
    }
