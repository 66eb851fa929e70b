"""Execute every notebook in a kernel of its own, as Jupyter or marimo does, and keep the executed ones to be looked at.

    python -m checks notebooks [NAME ...]

Executed notebooks, and pages of them where nbconvert is installed, go to build/notebooks/. Needs nbclient and
ipykernel; the reactive notebook needs marimo, and is skipped without it.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import subprocess
import sys
import time
from pathlib import Path

from checks import BUILD, ROOT

MAX_SECONDS = 120
"""A notebook that takes longer than this on the wall is too slow to be opened for a look."""


def reactive(path: Path, folder: Path) -> bool:
    """Execute a notebook of marimo, and keep the page; say whether it ran."""
    if importlib.util.find_spec("marimo") is None:
        print(f"{path.stem}: SKIPPED, marimo is not installed")
        return True
    began, target = time.monotonic(), folder / f"{path.stem}.html"
    copy = shutil.copy(path, folder)  # marimo writes a session file beside the notebook
    words = [sys.executable, "-m", "marimo", "export", "html", str(copy), "--force", "-o", str(target)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{path.stem}: {done.stdout}{done.stderr}")
        return False
    print(f"{path.stem}: {time.monotonic() - began:.1f} s, {target.stat().st_size / 1000:.0f} kB executed")
    return True


def main(argv: list[str]) -> int:
    """Execute the notebooks, and return 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="Notebooks to execute; all if omitted.")
    names = parser.parse_args(argv).names
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    folder, failed = BUILD / "notebooks", 0
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        notebook, began = nbformat.read(path, as_version=4), time.monotonic()
        nbformat.validate(notebook)
        try:
            NotebookClient(notebook, timeout=MAX_SECONDS, resources={"metadata": {"path": str(folder)}}).execute()
        except CellExecutionError as problem:
            print(f"{path.stem}: {problem}")
            failed += 1
            continue
        nbformat.write(notebook, folder / path.name)
        if importlib.util.find_spec("nbconvert") is not None:
            from nbconvert import HTMLExporter

            (folder / f"{path.stem}.html").write_text(HTMLExporter().from_notebook_node(notebook)[0], "utf-8")
        pictures = sum("image/png" in out.get("data", {}) for cell in notebook.cells for out in cell.get("outputs", ()))
        size = (folder / path.name).stat().st_size / 1000
        print(f"{path.stem}: {time.monotonic() - began:.1f} s, {pictures} pictures, {size:.0f} kB executed")
    for path in sorted((ROOT / "notebooks").glob("*.py")):
        if not names or path.stem in names:
            failed += not reactive(path, folder)
    return int(failed > 0)
