"""`python -m benchmarks [--quick] [name …]`: ratios against what a user would pick instead, side by side in one run."""

from __future__ import annotations

import argparse
import importlib
import sys

NAMES = ("start_up", "cmdp", "joint", "counting", "extended", "local")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], help="which ones; all unless given")
    parser.add_argument("--quick", action="store_true", help="smaller sizes and shorter limits")
    given = parser.parse_args()
    for name in given.names or NAMES:
        print(f"\n== {name} ==", flush=True)
        # Some of them read the command line when they are run alone; here it belongs to this runner.
        sys.argv = sys.argv[:1]
        importlib.import_module(f"benchmarks.bench_{name}").main(quick=given.quick)


if __name__ == "__main__":
    main()
