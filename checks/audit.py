"""Ask PyPI for known vulnerabilities of what constraints.txt pins; what it cannot answer is listed as skipped.

python -m checks audit
"""

from __future__ import annotations

import argparse
import subprocess

from checks import ROOT
from checks.environments import environment


def main(argv: list[str]) -> int:
    """Install pip-audit, and run it."""
    argparse.ArgumentParser(description=__doc__).parse_args(argv)
    python = environment("audit", ("pip-audit",))
    words = ("-m", "pip_audit", "--disable-pip", "--no-deps", "-r", "constraints.txt")
    return subprocess.run([python, *words], cwd=ROOT).returncode
