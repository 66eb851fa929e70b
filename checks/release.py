"""Rehearse a release, without a secret and without publishing anything: `python -m checks release`.

1. Build the source archive and the wheel twice, in two folders; each pair must have the same bytes.
2. For every Python at hand, install the wheel in an empty environment, and solve every scenario far from the sources;
   then walk a new user's path: add the extra `pettingzoo` and run its guide, install a plugin and solve what it brings.
3. Write what the wheel brings along, name, version and license, as a CycloneDX list: dist/sbom.json.
4. With --tests, unpack the source archive, and run its own tests there.

What to publish is then in dist/.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from checks import ROOT
from checks.environments import pythons

DIST = ROOT / "dist"

SOLVE_EVERYTHING = """
import cmpg
assert "site-packages" in cmpg.__file__, cmpg.__file__
for name in cmpg.scenarios.SCENARIOS:
    result = cmpg.solve(cmpg.scenarios.scenario(name).build(), epsilon=1e-4)
    print(f"  {name}: {result.status.name}", flush=True)
    assert result.certified, name
"""

LIST_PARTS = """
import importlib.metadata as metadata, json
print(json.dumps([
    {"name": each.metadata["Name"], "version": each.version, "license": each.metadata["License-Expression"]}
    for each in metadata.distributions() if each.metadata["Name"] not in ("pip", "setuptools")
]))
"""


def run(*words: str | Path, folder: Path = ROOT, **environment: str) -> str:
    """Run a command, and return what it prints; where it fails, print it and stop."""
    captured = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    done = subprocess.run([str(word) for word in words], cwd=folder, env={**os.environ, **environment}, **captured)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\nfailed: {' '.join(map(str, words))}")
    return done.stdout


def build(folder: Path) -> Path:
    """Build what git knows in a folder of its own, and return the wheel."""
    files = run("git", "ls-files", "-z").split("\0")[:-1]
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, folder / file)
    date = run("git", "log", "-1", "--format=%ct").strip()
    run(sys.executable, "-m", "build", "--outdir", folder / "dist", folder, SOURCE_DATE_EPOCH=date)
    (archive,) = (folder / "dist").glob("*.tar.gz")
    date_archive(archive, int(date))
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def date_archive(archive: Path, date: int) -> None:
    """Write an archive again without what differs between two builds: dates, owners, and the order of its files."""
    with tarfile.open(archive) as packed:
        members = sorted(packed.getmembers(), key=lambda member: member.name)
        contents = [packed.extractfile(member).read() if member.isfile() else b"" for member in members]
    with gzip.GzipFile(archive, "wb", mtime=date) as squeezed, tarfile.open(fileobj=squeezed, mode="w") as packed:
        for member, content in zip(members, contents, strict=True):
            plain = tarfile.TarInfo(member.name)
            plain.size, plain.mode, plain.type, plain.mtime = len(content), member.mode, member.type, date
            packed.addfile(plain, io.BytesIO(content))


def digest(path: Path) -> str:
    """Return the sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def environment(folder: Path, python: str, *packages: str | Path) -> Path:
    """Install packages in an empty environment, and return its Python."""
    run(python, "-m", "venv", folder)
    new = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    pins = ("-c", ROOT / "constraints.txt")
    run(new, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *pins, *packages)
    return new


def walk_the_guide(python: Path, wheel: Path, folder: Path) -> None:
    """Do what a new user does: import an environment, solve, certify, play, all in an empty folder; add a plugin."""
    folder.mkdir()
    install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", ROOT / "constraints.txt")
    run(*install, f"{wheel}[pettingzoo]")
    guide = shutil.copy(ROOT / "docs" / "guide" / "pettingzoo.md", folder)
    run(python, "-m", "doctest", "-o", "ELLIPSIS", "-o", "NORMALIZE_WHITESPACE", guide, folder=folder)
    print("  docs/guide/pettingzoo.md: every example as printed", flush=True)
    run(*install, shutil.copytree(ROOT / "tests" / "example_plugin", folder / "plugin"))
    output = run(python, "-m", "cmpg", "solve", "crossing", "--solver", "twice", folder=folder)
    print(f"  crossing, of a plugin: {output.partition(':')[0]}", flush=True)


def write_parts(python: Path, target: Path) -> None:
    """Write what is installed beside a Python as a CycloneDX list."""
    parts = sorted(json.loads(run(python, "-c", LIST_PARTS)), key=lambda part: part["name"].lower())
    components = [
        {
            "type": "library",
            "name": part["name"],
            "version": part["version"],
            "purl": f"pkg:pypi/{part['name'].lower()}@{part['version']}",
            **({"licenses": [{"expression": part["license"]}]} if part["license"] else {}),
        }
        for part in parts
    ]
    listed = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": components}
    target.write_text(json.dumps(listed, indent=2) + "\n", "utf-8")


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", action="store_true", help="also run the tests of the unpacked source archive")
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        first, second = build(folder / "first"), build(folder / "a second folder")
        for one in sorted(first.parent.iterdir()):
            if digest(one) != digest(second.parent / one.name):
                sys.exit(f"two builds differ: {one.name} is not reproducible.")
        DIST.mkdir(exist_ok=True)
        for path in first.parent.iterdir():
            shutil.copyfile(path, DIST / path.name)
            print(f"{digest(path)}  dist/{path.name}", flush=True)
        (archive,) = first.parent.glob("*.tar.gz")
        for number, python in enumerate(pythons().values()):
            wheel = first if number == 0 else archive  # the wheel is for this Python; the others build their own
            new = environment(folder / f"python-{number}", python, wheel)
            print(run(new, "-V").strip(), flush=True)
            print(run(new, "-c", SOLVE_EVERYTHING, folder=folder), end="", flush=True)
            if number == 0:
                write_parts(new, DIST / "sbom.json")
            walk_the_guide(new, wheel, folder / f"guide-{number}")
        if given.tests:
            with tarfile.open(archive) as packed:
                packed.extractall(folder / "unpacked", filter="data")
            (tree,) = (folder / "unpacked").iterdir()
            new = environment(folder / "tests", sys.executable, f"{tree}[dev,docs,plot]")
            words = ("-m", "pytest", "-q", "-n", "2", "--dist", "worksteal")
            print(run(new, *words, folder=tree, OMP_NUM_THREADS="1"))
    print("rehearsed; dist/ is what a release would publish")
