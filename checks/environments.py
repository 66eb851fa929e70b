"""Virtual environments that checks need beside the project's own, in build/venvs, and the Pythons of this machine."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from checks import BUILD, ROOT

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""Versions that the library promises to run on."""


def environment(name: str, *installations: tuple[str, ...], python: str = sys.executable) -> Path:
    """Return the Python of an environment with these installations, each the words after `pip install`.

    The environment is made again when the installations or `pyproject.toml` have changed.
    """
    folder = BUILD / "venvs" / name
    wanted = repr(installations).encode() + (ROOT / "pyproject.toml").read_bytes()
    made, digest = folder / "made-from", hashlib.sha256(wanted).hexdigest()
    executable = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not made.exists() or made.read_text() != digest:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", folder], check=True)
        for words in installations:
            install = [executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words]
            subprocess.run(install, cwd=ROOT, check=True)
        made.write_text(digest)
    return executable


def pythons() -> dict[str, str]:
    """Return the promised Pythons of this machine by version: this one first, then those of the path and of pyenv."""
    found = {f"{sys.version_info.major}.{sys.version_info.minor}": sys.executable}
    for version in PYTHONS:
        installed = sorted(Path.home().glob(f".pyenv/versions/{version}*/bin/python{version}"))
        for path in (shutil.which(f"python{version}"), *map(str, installed)):
            if path and version not in found and subprocess.run([path, "-V"], capture_output=True).returncode == 0:
                found[version] = path
    return found
