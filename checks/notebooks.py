"""Execute every notebook in a kernel of its own, as Jupyter does, and keep the executed ones to be looked at.

    python -m checks notebooks [NAME ...]

Executed notebooks, and pages of them where nbconvert is installed, go to build/notebooks/. Needs nbclient and
ipykernel.
"""

from __future__ import annotations

import argparse
import importlib.util
import time

from checks import BUILD, ROOT

MAX_SECONDS = 120
"""A notebook that takes longer than this on the wall is too slow to be opened for a look."""


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
    return int(failed > 0)
