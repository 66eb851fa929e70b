"""Write docs/gallery.md and its pictures: the page of every scenario, and every other kind of page.

    python -m checks gallery [NAME ...]

Each page is made by the commands that stand below its picture, opened in a headless Chromium, and kept as a small PNG.
With names, only these pictures are taken again.
"""

from __future__ import annotations

import argparse
import base64
import io
import shlex
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from checks import ROOT
from cmpg.scenarios import SCENARIOS
from command_line import cmpg
from test_report.browser import Browser

WIDTH, HEIGHT, SCALE, COLOURS = 900, 620, 0.64, 64

DOCS = ROOT / "docs"

GUIDES = {
    "charging": "guide/charging.md",
    "robots": "guide/robots.md",
    "routing": "guide/routing.md",
    "spectrum": "guide/spectrum.md",
    "counter-example": "tutorial.md",
}
"""Where a picture leads, if there is a page on its subject; else to docs/how-to-choose.md."""


@dataclass(frozen=True)
class Shown:
    """A picture of the gallery: what it shows, and the commands that make its page."""

    name: str
    title: str
    page: str  # in docs/
    commands: tuple[str, ...]  # the last one writes run/report.html, or page.html
    html: str = "run/report.html"
    fragment: str = ""
    ready: str = "document.documentElement.dataset.ready === 'yes'"

    @property
    def entry(self) -> str:
        """Return the entry as Markdown: a card."""
        made = "<br>".join(f"`cmpg {words}`" for words in self.commands)
        plain = self.title.replace("*", "").replace("`", "")
        return f"-   [![{plain}](gallery/{self.name}.png)]({self.page})\n\n    {self.title}<br>{made}\n"


def scenarios() -> list[Shown]:
    """Return a picture for each scenario."""
    return [
        Shown(
            name,
            f"**{name}**: {each.summary}",
            GUIDES.get(name, "how-to-choose.md"),
            (f"solve {name} --out run", "report run"),
            fragment="#policy",
        )
        for name, each in SCENARIOS.items()
    ]


def kinds() -> list[Shown]:
    """Return a picture for each kind of page that is not about one Nash policy."""
    solved = "solve spectrum --out run"
    still = "document.readyState === 'complete'"  # of a page without a script that draws
    return [
        Shown(
            "sweep",
            "**A sweep**: what more capacity is worth",
            "many-runs.md",
            ("sweep charging --capacity 4:10 --out run", "report run"),
        ),
        Shown(
            "learning",
            "**Learning**: gap against samples, over seeds",
            "learning.md",
            ("learn spectrum --mode shared --epsilon 0.3 --seeds 5 --out run", "report run"),
        ),
        Shown(
            "recommendation",
            "**A recommendation**: a calendar of policies",
            "recommendations.md",
            ("solve counter-example --concept rota --out run", "report run"),
        ),
        Shown(
            "judging",
            "**Judging**: several policies before one judge",
            "guide/trained-policy.md",
            (solved, "judge spectrum run/policy.npz --beside selfish,planner --out page.html"),
            html="page.html",
            ready=still,
        ),
        Shown(
            "replan",
            "**A plan made again** at eleven, within what the old one promised",
            "operation.md",
            ("solve charging --out run", "replan run --at 11:00 --out run2", "report run2"),
            html="run2/report.html",
        ),
        Shown(
            "crowd",
            "**A crowd**: 20,000 cars, by groups",
            "crowds.md",
            ("solve charging --agents 20000 --seed 3 --epsilon 0.0011 --out run",),
            html="run/page.html",
            ready=still,
        ),
        Shown(
            "infeasible",
            "**No feasible policy**, with its proof",
            "how-to-choose.md",
            ("solve spectrum --threshold -1 --out run", "report run"),
        ),
        Shown(
            "suite",
            "**The suite**: runs ranked on frozen games",
            "suite.md",
            ("suite rank --out page.html",),
            html="page.html",
            ready=still,
        ),
        Shown(
            "reproduce",
            "**The paper**: every figure and number again",
            "paper-notes.md",
            ("reproduce --quick --out run",),
            html="run/index.html",
            ready=still,
        ),
    ]


def made(shown: Shown, folder: Path) -> Path:
    """Run the commands of a page in an empty folder, and return the page."""
    for words in shown.commands:
        # The commands name run, run2 and page.html; here these are in a folder of their own.
        ran = cmpg(
            *(
                f"{folder}/{word}" if word.split("/")[0] in ("run", "run2", "page.html") else word
                for word in shlex.split(words)
            )
        )
        if ran.code not in (0, 1):
            raise SystemExit(f"cmpg {words}: {ran.err}")
    return folder / shown.html


def taken(shown: Shown, browser: Browser) -> Image.Image:
    """Make the page in an empty folder, and return its picture."""
    with tempfile.TemporaryDirectory() as folder:
        browser.open(made(shown, Path(folder)), fragment=shown.fragment)
        browser.until(shown.ready)
        browser.run("window.scrollTo(0, 0)")
        # Controls find their size.
        browser.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 300)))")
        # What a scenario is about is its policy; other pages are known by their beginning.
        top = browser.run("document.getElementById('view').getBoundingClientRect().top") - 8 if shown.fragment else 0
        clip = {"x": 0, "y": top, "width": WIDTH, "height": HEIGHT, "scale": 1}
        data = browser.call("Page.captureScreenshot", format="png", clip=clip)["data"]
        return Image.open(io.BytesIO(base64.b64decode(data)))


def page() -> str:
    """Return docs/gallery.md."""
    parts = ["# Gallery", "", "Every picture is a page that the commands below it make. Click it to read more.", ""]
    for title, entries in (("Scenarios", scenarios()), ("Other pages", kinds())):
        parts += [f"## {title}", "", '<div class="grid cards" markdown>', ""]
        parts += [each.entry for each in entries] + ["</div>", ""]
    return "\n".join(parts).rstrip("\n") + "\n"


def pictures(names: list[str]) -> Iterator[tuple[Shown, Path]]:
    """Take the pictures of these names, or all of them."""
    browser = Browser()
    try:
        browser.call(
            "Emulation.setDeviceMetricsOverride", width=WIDTH, height=3 * HEIGHT, deviceScaleFactor=SCALE, mobile=False
        )
        browser.call("Emulation.setScrollbarsHidden", hidden=True)
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
        for shown in (*scenarios(), *kinds()):
            if not names or shown.name in names:
                target = DOCS / "gallery" / f"{shown.name}.png"
                taken(shown, browser).convert("RGB").quantize(COLOURS).save(target, optimize=True)
                yield shown, target
    finally:
        browser.close()


def main(argv: list[str]) -> None:
    """Take the pictures, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="Pictures to take again; all if omitted.")
    names = parser.parse_args(argv).names
    (DOCS / "gallery").mkdir(exist_ok=True)
    (DOCS / "gallery.md").write_text(page())
    for shown, target in pictures(names):
        print(f"{shown.name}: {target.stat().st_size / 1000:.0f} kB")
