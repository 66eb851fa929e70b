"""Run all tests with the lowest versions that pyproject.toml allows, in an environment of its own.

python -m checks lowest [what to pass on to pytest]
"""

from __future__ import annotations

import subprocess
import sys

from checks import ROOT
from checks.environments import environment

EXTRAS = ".[plot,pettingzoo,frames]"
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "websocket-client", "cvxpy", "pygame-ce", "pyyaml", "build")


def main(argv: list[str]) -> int:
    """Install, and test."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    python = environment(f"lowest-{version}", ("-c", "checks/lowest.txt", "-e", EXTRAS, *TOOLS))
    words = ("-m", "pytest", "-n", "2", "--dist", "worksteal", "-q", *argv)
    return subprocess.run([python, *words], cwd=ROOT).returncode
