"""Forge claims, proofs and run folders about random games of every form, and see that each is refused.

    python tools/forgeries.py [--claims 2000]

Prints how many claims of each kind there were, and every one that was believed; the exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]


def main() -> None:
    """Forge so many claims."""
    from oracles.forging import forged

    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--claims", type=int, default=2_000)
    kinds: Counter[str] = Counter()
    believed = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.parse_args().claims):
            kind, refused = forged(seed, Path(folder))
            kinds[kind] += 1
            if not refused:
                believed += 1
                print(f"claim {seed}, {kind}: was believed", flush=True)
    for kind, count in kinds.most_common():
        print(f"{count:6d}  {kind}")
    print(f"{sum(kinds.values())} forged claims, {believed} believed")
    sys.exit(1 if believed else 0)


if __name__ == "__main__":
    main()
