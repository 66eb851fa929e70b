"""Everything that examines the library and is not a unit test; `python -m checks` lists it.

A check is a module with `main(argv)`, which returns its exit code. It writes what it finds to `build/`, and nowhere
else unless it says so.
"""

from __future__ import annotations

import hashlib
import math
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
DATA = Path(os.environ.get("CMPG_DATA", ROOT.parent / "shared" / "data"))
"""Public data sets, which are not part of the project: cases that need them are left out where they are missing."""

# The oracles, the fuzzer and the browser of the tests are used here as well.
sys.path.insert(0, str(ROOT / "tests"))


def fingerprint(*folders: str) -> str:
    """Return what identifies the sources of the library, and of the checks and tests in these folders."""
    digest = hashlib.sha256()
    for folder in ("src", *folders):
        for path in sorted(each for each in (ROOT / folder).rglob("*") if each.suffix in (".py", ".c", ".h")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def wilson(part: int, whole: int, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share of which a sample was seen."""
    if whole == 0:
        return 0.0, 1.0
    share, scale = part / whole, 1 + z**2 / whole
    middle = (share + z**2 / (2 * whole)) / scale
    half = z * math.sqrt(share * (1 - share) / whole + z**2 / (4 * whole**2)) / scale
    return middle - half, middle + half
