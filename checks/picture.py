"""Take the README's picture: the page of the charging scenario, as a browser shows it.

    python -m checks picture [docs/charging-page.png]

It solves the package's own sample, writes the page, opens it in a headless Chromium, and keeps what lies between the
verdict and the last car.
"""

from __future__ import annotations

import argparse
import base64
import io
import tempfile
from pathlib import Path

from PIL import Image

from checks import ROOT
from command_line import cmpg
from test_report.browser import Browser

WIDTH, HOUR, MARGIN, COLOURS = 1160, 13, 16, 128


def photograph(page: Path) -> bytes:
    """Open the policy tab at one hour, and return the picture as PNG."""
    browser = Browser()
    try:
        browser.call(
            "Emulation.setDeviceMetricsOverride", width=WIDTH, height=2000, deviceScaleFactor=1.5, mobile=False
        )
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
        browser.call("Emulation.setScrollbarsHidden", hidden=True)
        browser.open(page, fragment="#policy")
        browser.until("document.documentElement.dataset.ready === 'yes'")
        browser.until("document.getElementById('self-check').dataset.state === 'proved'")
        browser.run(
            f"(() => {{ const s = document.getElementById('step'); s.value = {HOUR}; "
            "s.dispatchEvent(new Event('input')); window.scrollTo(0, 0); })()"
        )
        top, bottom = browser.run(
            "[document.getElementById('verdict').getBoundingClientRect().top + scrollY,"
            " document.getElementById('view').lastElementChild.getBoundingClientRect().bottom + scrollY]"
        )
        clip = {"x": 0, "y": top - MARGIN, "width": WIDTH, "height": bottom - top + 2 * MARGIN, "scale": 1}
        return base64.b64decode(browser.call("Page.captureScreenshot", format="png", clip=clip)["data"])
    finally:
        browser.close()


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=Path, nargs="?", default=ROOT / "docs" / "charging-page.png")
    target = parser.parse_args(argv).target
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        assert cmpg("solve", "charging", "--out", run).code == 0
        assert cmpg("report", run).code == 0
        picture = Image.open(io.BytesIO(photograph(run / "report.html")))
    picture.convert("RGB").quantize(COLOURS).save(target, optimize=True)
