"""Run the tests of the C kernels under AddressSanitizer and UndefinedBehaviorSanitizer, with random and hostile games.

    python -m checks sanitize [tests]

The extension is built from a copy of the sources in build/sanitized. Leaks are not looked for: the interpreter keeps
what it likes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from checks import BUILD, ROOT

FLAGS = "-fsanitize=address,undefined"
TESTS = (
    "tests/test_cmdp/test_kernels.py",
    "tests/test_cmdp/test_process_kernels.py",
    "tests/test_games/test_local_kernels.py",
    "tests/test_fuzzing.py::test_games_with_hard_numbers_end_with_a_status",
    *(f"tests/test_sweep.py::test_no_claim_about_a_random_game_is_wrong[{part}]" for part in range(5)),
)


def main(argv: list[str]) -> int:
    """Build, and test."""
    folder = BUILD / "sanitized"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    flags = {"CFLAGS": f"-O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all {FLAGS}", "LDFLAGS": FLAGS}
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--target", "installed", "."]
    subprocess.run([sys.executable, *install], cwd=folder, env=os.environ | flags, check=True)
    compiler = os.environ.get("CC", "cc")
    libraries = [
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libstdc++.so")
    ]
    sanitized = {
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",
        "CMPG_KERNELS": "compiled",
        "PYTHONPATH": str(folder / "installed"),
        "PYTHONMALLOC": "malloc",
    }
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *(argv or TESTS)]
    return subprocess.run([sys.executable, *words], cwd=ROOT, env=os.environ | sanitized).returncode
