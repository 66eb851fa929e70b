"""Front doors of packages: names that are loaded when they are first used, so that importing costs next to nothing."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def front_door(
    package: str, homes: Mapping[str, Sequence[str]], rooms: Sequence[str] = ()
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package.

    Parameters
    ----------
    package
        Its dotted name.
    homes
        By module of the package, the names that it lends.
    rooms
        Packages inside it, which are attributes too.
    """

    class FrontDoor(types.ModuleType):
        """A package in which a function keeps its name where a file of the package has the same."""

        def __setattr__(self, name: str, value: Any) -> None:
            # Importing `solve.py` sets the attribute `solve` of the package, which would hide the function.
            if not (name in home_of and isinstance(value, types.ModuleType)):
                super().__setattr__(name, value)

    sys.modules[package].__class__ = FrontDoor
    home_of = {name: home for home, names in homes.items() for name in names}

    def load(name: str) -> Any:
        if name in rooms:
            return importlib.import_module(f"{package}.{name}")
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{home_of[name]}"), name)

    return list(home_of), load, lambda: sorted([*home_of, *rooms])
