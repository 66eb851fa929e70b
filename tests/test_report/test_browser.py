"""The page in a real browser: it opens without complaints and without a request, and everything on it works."""

import base64
import importlib.util
import json

import pytest
from browser import CHROMIUM, Browser
from run_folders import SOLVED, command, solve_into

pytestmark = [
    pytest.mark.skipif(
        CHROMIUM is None, reason="NOT TESTED IN A BROWSER: there is no chromium; install Debian's chromium"
    ),
    pytest.mark.skipif(
        importlib.util.find_spec("websocket") is None, reason="NOT TESTED IN A BROWSER: no websocket-client"
    ),
    pytest.mark.xdist_group("browser"),
]

NAMES = ("counter-example", "grid-world", "congestion", "charging", "robots", "routing")
ARROW_RIGHT, END = ("ArrowRight", 39), ("End", 35)
OPEN_TAB = "document.querySelector('[role=tab][aria-selected=true]').id"
DRAWN = "[...document.querySelectorAll('.chart')].filter(d => d.offsetParent).every(d => d.querySelector('.main-svg'))"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name in NAMES:
        solve_into(folder / name, name)
        assert command("report", folder / name) == 0
    return folder


@pytest.fixture(scope="module")
def browser():
    started = Browser()
    yield started
    started.close()


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def page(name, runs, browser):
    """Open the page of a scenario; afterwards nothing may have been complained about or asked for."""
    path = runs / name / "report.html"
    browser.look()
    browser.open(path)
    yield browser
    assert browser.complaints() == []
    assert browser.requests() == [path.as_uri()]


def tabs_of(page):
    return page.run("[...document.querySelectorAll('[role=tab]')].map(tab => tab.getAttribute('aria-controls'))")


def show(page, tab):
    page.run(f"document.getElementById('tab-{tab}').click()")
    page.until(DRAWN)


def test_it_opens(name, runs, browser, capsys):
    path = runs / name / "report.html"
    browser.look()
    seconds = browser.open(path)
    size = path.stat().st_size
    with capsys.disabled():
        print(f"\n{name}: {size / 1e6:.2f} MB, load event after {seconds:.2f} s", end="")
    assert browser.run("document.documentElement.dataset.ready") == "yes"
    assert browser.run("getComputedStyle(document.getElementById('verdict')).display") != "none"
    assert size < 6_000_000


def test_its_numbers_are_those_of_the_result(name, page, runs):
    result = json.loads((runs / name / "result.json").read_text("utf-8"))
    proof = json.loads((runs / name / "certificate.json").read_text("utf-8"))
    cells = "[...document.querySelectorAll('#{} tbody tr')].map(row => [...row.querySelectorAll('data')].map(cell => Number(cell.value)))"
    agents, constraints = page.run(cells.format("agents")), page.run(cells.format("constraints"))
    columns = zip(result["values"], proof["bounds"], proof["gains"], result["multipliers"], strict=True)
    assert agents == [[value, bound, gain, *prices] for value, bound, gain, prices in columns]
    limits = zip(result["costs"], result["thresholds"], strict=True)
    assert constraints == [[cost, limit, limit - cost] for cost, limit in limits]
    assert page.run("document.getElementById('verdict').dataset.status") == result["status"]


def test_tabs_by_mouse(page):
    names = tabs_of(page)
    assert names == ["result", "course", "policy", "budget", "proof"]
    for name in names:
        show(page, name)
        visible = page.run(
            "[...document.querySelectorAll('main > section')].filter(part => !part.hidden).map(part => part.id)"
        )
        assert visible == [name]


def test_tabs_by_keyboard(page):
    page.run("document.getElementById('tab-result').focus()")
    page.press(*ARROW_RIGHT)
    assert page.run(OPEN_TAB) == "tab-course"
    assert page.run("document.activeElement.id") == "tab-course"
    page.press(*END)
    assert page.run(OPEN_TAB) == "tab-proof"
    page.press(*ARROW_RIGHT)
    assert page.run(OPEN_TAB) == "tab-result"
    assert page.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert page.run("document.querySelectorAll('[role=tab][tabindex=\"0\"]').length") == 1


def test_the_slider_by_keyboard(page):
    show(page, "policy")
    before = page.run("document.getElementById('view').innerHTML")
    assert len(before) > 200
    steps = page.run("Number(document.getElementById('step').max)")
    if steps == 0:
        assert page.run("document.getElementById('step').offsetParent") is None
        return
    page.run("document.getElementById('step').focus()")
    page.press(*END)
    assert page.run("document.getElementById('view').dataset.step") == str(steps)
    assert page.run("document.getElementById('view').innerHTML") != before
    assert page.run("document.getElementById('step').getAttribute('aria-valuetext')") == page.run(
        "document.getElementById('step-name').textContent"
    )


def test_the_player(page):
    show(page, "policy")
    if page.run("Number(document.getElementById('step').max)") > 0:
        page.run("document.getElementById('play').click()")
        page.until("Number(document.getElementById('step').value) > 0")
        page.run("document.getElementById('step').dispatchEvent(new Event('input'))")
        assert page.run("document.getElementById('play').textContent") == "Play"


def test_the_choice_of_an_agent(name, page):
    show(page, "policy")
    chosen = page.run("!document.getElementById('who').hidden")
    assert chosen == (name == "routing")
    if chosen:
        before = page.run("document.getElementById('view').innerHTML")
        page.run(
            "(() => { const s = document.getElementById('agent'); s.value = '3'; s.dispatchEvent(new Event('change')); })()"
        )
        assert page.run("document.getElementById('view').innerHTML") != before


def test_charts_follow_the_colour_scheme(page):
    show(page, "course")
    colour = "getComputedStyle(document.querySelector('.chart .xtick text, .chart .xaxislayer-above text')).fill"
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.run(f"[{colour}, {ground}]")
    page.look(dark=True)
    page.until(f"{colour} !== '{light[0]}'")
    assert page.run(ground) != light[1]


def test_a_phone_never_scrolls_sideways(page):
    page.look(width=390, dark=True)
    for name in tabs_of(page):
        show(page, name)
        page.until("document.documentElement.scrollWidth <= 390")
    buttons = page.run(
        "[...document.querySelectorAll('button, select, input')].filter(b => b.offsetParent).map(b => b.offsetHeight)"
    )
    assert all(height >= 44 for height in buttons)


def test_the_certificate_can_be_saved(name, page, runs):
    href = page.run("document.querySelector('a[download=\"certificate.json\"]').href")
    assert base64.b64decode(href.partition(",")[2]) == (runs / name / "certificate.json").read_bytes()


def test_an_address_opens_its_tab(runs, browser):
    path = runs / "grid-world" / "report.html"
    browser.look()
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=path.as_uri() + "#policy")
    browser.until("document.documentElement.dataset.ready === 'yes'")
    assert browser.run(OPEN_TAB) == "tab-policy"


def test_the_grid_world_is_drawn(runs, browser):
    """At the second step agent 2 goes right of the start with certainty or up: shades and arrows are those of the policy."""
    browser.look()
    browser.open(runs / "grid-world" / "report.html")
    words = browser.run("[...document.querySelectorAll('#view .where')].map(each => each.textContent)")
    assert len(words) == 2
    assert all(each.startswith("(0,0) 1") for each in words)
    assert browser.run("document.querySelectorAll('#view svg .cell').length") == 32


def test_without_scripts_all_parts_stand_below_each_other(runs, browser):
    browser.look()
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(runs / "grid-world" / "report.html")
        assert browser.run("[...document.querySelectorAll('main > section')].every(part => !part.hidden)")
        assert browser.run("document.querySelector('.tabs').hidden")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_every_scenario_is_looked_at():
    assert set(NAMES) <= set(SOLVED)
