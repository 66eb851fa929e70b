"""Build cmpg-verify from verified/, once for all tests, where OCaml is installed."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from test_verified.program import INSTALL, VERIFIED, Answer, Verify


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder with plain/cmpg-verify and fast/cmpg-verify."""
    for tool in ("ocamlopt", "ocamlfind", "make"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: THE VERIFIED CHECKER IS NOT TESTED; {INSTALL}")
    build = VERIFIED / "build"
    build.mkdir(exist_ok=True)
    with (build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run(["make", "programs"], cwd=VERIFIED, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    if not (build / "fast" / "cmpg-verify").exists():
        pytest.skip(f"Zarith is not installed: THE VERIFIED CHECKER IS NOT TESTED; {INSTALL}")
    return build


@pytest.fixture
def verify(programs: Path, tmp_path: Path) -> Verify:
    """Check a proof file, given as text, by one of the builds."""

    def run(text: str, build: str = "fast") -> Answer:
        path = tmp_path / "claim.proof"
        path.write_text(text)
        done = subprocess.run(
            [programs / build / "cmpg-verify", path],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "OCAMLRUNPARAM": "v=0x400"},
        )
        errors = [line for line in done.stderr.splitlines() if not re.match(r"^[a-z_]+: \d+", line)]
        allocated = re.search(r"^allocated_words: (\d+)", done.stderr, re.MULTILINE)
        assert allocated is not None, done.stderr
        return Answer(done.returncode, (done.stdout.splitlines() or errors or [""])[0], int(allocated[1]))

    return run
