"""Forge claims, proofs and run folders about random games of every form, and see that each is refused.

    python -m checks forgeries [--claims 2000] [--private 2000]

Private claims are about masks, which bind some agents only, and about proofs by support. Prints how many claims of each
kind there were, and every one that was believed; the exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

from checks import evidence


def main(argv: list[str]) -> int:
    """Forge so many claims."""
    from oracles.forging import forged

    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--claims", type=int, default=2_000)
    options.add_argument("--private", type=int, default=2_000)
    chosen = options.parse_args(argv)
    kinds: Counter[str] = Counter()
    believed = 0
    with tempfile.TemporaryDirectory() as folder:
        claims = [
            (seed, private) for private in (False, True) for seed in range((chosen.claims, chosen.private)[private])
        ]
        for seed, private in claims:
            kind, refused = forged(seed, Path(folder) / str(private), private=private)
            kinds[kind] += 1
            if not refused:
                believed += 1
                print(f"claim {seed}, {kind}: was believed", flush=True)
    for kind, count in kinds.most_common():
        print(f"{count:6d}  {kind}")
    finding = f"{sum(kinds.values()):,} forged claims, proofs and run folders; {believed} believed"
    print(finding)
    if (chosen.claims, chosen.private) >= (2_000, 2_000):
        evidence.record("forgeries", finding)
    return 1 if believed else 0
