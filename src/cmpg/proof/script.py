"""The check in floats as one script that needs Python and numpy alone: the files of this folder, as they are."""

from __future__ import annotations

from importlib import resources

PARTS = ("rounding", "claim", "support", "shared", "local", "check", "exact", "verdict", "run_files")
"""The files that the check in floats is made of, each after those that it imports."""

HEAD = '''\
"""Check a claim with numpy alone, and nothing else of the library that made it:

    python independent_check.py game.npz policy.npz [epsilon] [allowed]

The exit code is 0 if every threshold is met, or exceeded by no more than `allowed` (0 unless given), and no agent gains
more than `epsilon` (1e-6 unless given), whatever the rounding; and 1 otherwise. What follows are the files of
cmpg/proof in that library, word for word, and at the end a few lines that run them. An installed cmpg is not used.
"""

import sys
import types

FILES = {}
'''

TAIL = """
for package in ("cmpg", "cmpg.proof"):
    sys.modules[package] = types.ModuleType(package)
for name, text in FILES.items():
    module = sys.modules[f"cmpg.proof.{name}"] = types.ModuleType(f"cmpg.proof.{name}")
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)

if __name__ == "__main__":
    sys.exit(sys.modules["cmpg.proof.run_files"].main(sys.argv[1:]))
"""


def stand_alone() -> str:
    """Return the script.

    Examples
    --------
    >>> text = stand_alone()
    >>> text.splitlines()[0]
    '\"\"\"Check a claim with numpy alone, and nothing else of the library that made it:'
    """
    folder = resources.files("cmpg.proof")
    parts = []
    for name in PARTS:
        text = (folder / f"{name}.py").read_text("utf-8")
        assert "'''" not in text  # it stands between such quotes
        parts.append(f"\n# {'-' * 40} {name}.py\nFILES[{name!r}] = r'''{text}'''\n")
    return HEAD + "".join(parts) + TAIL
