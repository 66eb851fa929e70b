"""The committed OCaml is what Coq extracts from the proofs."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from test_verified.program import INSTALL, VERIFIED


@pytest.mark.skipif(
    shutil.which("coqc") is None, reason=f"Coq is not installed: THE EXTRACTION IS NOT COMPARED; {INSTALL}"
)
def test_the_committed_checkers_are_what_coq_extracts(tmp_path):
    shutil.copytree(VERIFIED, tmp_path / "verified", ignore=shutil.ignore_patterns("build"))
    words = ["make", "check-extraction"]
    done = subprocess.run(words, cwd=tmp_path / "verified", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
