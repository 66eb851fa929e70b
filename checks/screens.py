"""Take every page of the library in a browser, wide and narrow, light and dark, tab by tab, to be looked at.

    python -m checks screens [NAME ...]

The pages are those of the gallery, and those that it does not show. Pictures and pages go to build/screens/. A page
that scrolls sideways, complains in the console or asks for an address is reported, and ends the check with 1.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from checks import BUILD
from checks.gallery import Shown, kinds, made, scenarios
from test_report.browser import Browser

WIDTHS, MAX_HEIGHT = (1280, 390), 3200
"""Widths of the window, and how much of a long page is kept, in pixels."""


def others() -> list[Shown]:
    """Return the kinds of pages that the gallery does not show."""
    return [
        Shown("exact", "Exact", "", ("solve counter-example --exact --out run", "report run")),
        Shown("restarts", "Equilibria", "", ("solve spectrum --restarts 5 --seed 1 --out run", "report run")),
        Shown(
            "sweep-two",
            "Two options",
            "",
            ("sweep charging --capacity 4:8 --threshold 0.1,0.5,1 --out run", "report run"),
        ),
        Shown(
            "learning-safe",
            "Safe",
            "",
            ("learn spectrum --mode safe --epsilon 0.3 --seeds 3 --out run", "report run"),
        ),
    ]


def tabs_of(browser: Browser) -> list[str]:
    """Return the ids of the page's tabs; one empty name for a page without tabs."""
    found = browser.run("[...document.querySelectorAll('[role=tab]')].map((each) => each.id.replace(/^tab-/, ''))")
    return found or [""]


def look(browser: Browser, page: Path, shown: Shown) -> Iterator[str]:
    """Take the pictures of one page, and yield what is wrong with it."""
    for width in WIDTHS:
        for dark in (False, True):
            where = f"{shown.name}-{width}-{'dark' if dark else 'light'}"
            browser.look(width=width, dark=dark)
            browser.open(page, fragment="#top")
            browser.until(shown.ready)
            for tab in tabs_of(browser):
                if tab:
                    browser.run(f"document.getElementById('tab-{tab}').click()")
                    browser.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 150)))")
                wide, high = browser.run(
                    "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
                )
                if wide > width:
                    yield f"{where} {tab}: scrolls sideways, {wide} px"
                clip = {"x": 0, "y": 0, "width": width, "height": min(high, MAX_HEIGHT), "scale": 1}
                taken = browser.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
                target = BUILD / "screens" / f"{where}{'-' + tab if tab else ''}.png"
                target.write_bytes(base64.b64decode(taken["data"]))
            yield from (f"{where}: {each}" for each in browser.complaints())
            yield from (f"{where}: asks for {each}" for each in browser.requests() if not each.startswith("file:"))


def main(argv: list[str]) -> int:
    """Make the pages, take the pictures, and say what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="Pages to take; all if omitted.")
    names = parser.parse_args(argv).names
    (BUILD / "screens").mkdir(parents=True, exist_ok=True)
    wrong = 0
    browser = Browser()
    try:
        for shown in (*scenarios(), *kinds(), *others()):
            if names and shown.name not in names:
                continue
            page = BUILD / "screens" / f"{shown.name}.html"
            with tempfile.TemporaryDirectory() as folder:
                shutil.copy(made(shown, Path(folder)), page)
            found = list(look(browser, page, shown))
            print(f"{shown.name}: {page.stat().st_size / 1000:.0f} kB" + "".join(f"\n  {each}" for each in found))
            wrong += len(found)
    finally:
        browser.close()
    return int(wrong > 0)
