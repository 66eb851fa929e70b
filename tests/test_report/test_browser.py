"""The page in a real browser: it opens without complaints and without a request, and everything on it works."""

import base64
import csv
import gzip
import importlib.util
import json
import re

import pytest
from browser import CHROMIUM, Browser
from run_folders import SOLVED, command

MISSING = "NOT TESTED IN A BROWSER: {} is not installed"
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason=MISSING.format("chromium")),
    pytest.mark.skipif(importlib.util.find_spec("websocket") is None, reason=MISSING.format("websocket-client")),
]

NAMES = ("counter-example", "grid-world", "congestion", "charging", "robots", "routing")
TABS = ["policy", "result", "budget", "course", "proof"]
"""A page whose course tells nothing has it among the proofs."""
ARROW_RIGHT, END = ("ArrowRight", 39), ("End", 35)
OPEN_TAB = "document.querySelector('[role=tab][aria-selected=true]').id"
VISIBLE = "[...document.querySelectorAll('main > section')].filter(part => !part.hidden).map(part => part.id)"
DRAWN = "[...document.querySelectorAll('.chart')].filter(d => d.offsetParent).every(d => d.querySelector('.main-svg'))"


@pytest.fixture(scope="module")
def browser():
    started = Browser()
    yield started
    started.close()


@pytest.fixture(params=NAMES)
def opened(request, runs, browser):
    """The browser with the page of one scenario, the run folder, and the seconds until the load event."""
    folder = runs[request.param]
    browser.look()
    return browser, folder, browser.open(folder / "report.html")


@pytest.fixture
def page(opened):
    """The page as it is on a desk in daylight; after each test, nothing may have been complained about or asked for."""
    browser, folder, _ = opened
    browser.look()
    yield browser
    assert browser.complaints() == []
    assert browser.requests() == [(folder / "report.html").as_uri()]


def tabs_of(page):
    """The tabs of a page, in their order."""
    tabs = page.run("[...document.querySelectorAll('[role=tab]')].map((each) => each.getAttribute('aria-controls'))")
    assert tabs in (TABS, [tab for tab in TABS if tab != "course"])
    return tabs


def show(page, tab):
    page.run(f"document.getElementById('tab-{tab}').click()")
    page.until(DRAWN)


def test_it_opens(opened, page, capsys):
    _, folder, seconds = opened
    size = (folder / "report.html").stat().st_size
    with capsys.disabled():
        print(f"\n{folder.name}: {size / 1e6:.2f} MB, load event after {seconds:.2f} s", end="")
    assert page.run("document.documentElement.dataset.ready") == "yes"
    assert page.run("document.getElementById('verdict').offsetHeight") > 40
    assert size < 6_000_000


def test_its_numbers_are_those_of_the_result(opened, page):
    _, folder, _ = opened
    result = json.loads((folder / "result.json").read_text("utf-8"))
    proof = json.loads((folder / "certificate.json").read_text("utf-8"))
    cells = "[...row.querySelectorAll('data')].map(cell => Number(cell.value))"
    agents = page.run(f"[...document.querySelectorAll('#agents tbody tr')].map(row => {cells})")
    constraints = page.run(f"[...document.querySelectorAll('#constraints tbody tr')].map(row => {cells})")
    columns = zip(result["values"], proof["bounds"], proof["gains"], result["multipliers"], strict=True)
    assert agents == [[value, bound, gain, *prices] for value, bound, gain, prices in columns]
    limits = zip(result["costs"], result["thresholds"], strict=True)
    assert constraints == [[cost, limit, limit - cost] for cost, limit in limits]
    assert page.run("document.getElementById('verdict').dataset.status") == result["status"]


STATE = "(document.getElementById('self-check') || {dataset: {state: 'none'}}).dataset.state"
OVER = f"['proved', 'refused', 'none'].includes({STATE})"


def test_it_checks_its_own_claim(opened, page):
    page.until(OVER)
    if opened[1].name == "congestion":  # a table for each of 65,536 joint actions is not put inside a page
        assert page.run(STATE) == "none"
        return
    assert page.run(STATE) == "proved"
    words = page.run("document.getElementById('self-check').textContent")
    assert words.startswith("Checked in this browser just now")
    assert re.search(r"no agent gains more than 0\.0\d+ \(the bound is", words)


@pytest.fixture(scope="module")
def another_browser():
    """One whose page other tests do not look at."""
    started = Browser()
    yield started
    started.close()


def changed_claim(page, change):
    """The text of a page whose proof file has been changed."""
    found = re.search(r'(id="claim-data"[^>]*>)([^<]*)<', page)
    text = change(gzip.decompress(base64.b64decode(found[2])).decode())
    return page.replace(found[2], base64.b64encode(gzip.compress(text.encode())).decode())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda page: re.sub(r'(id="claim-data"[^>]*>.{300})(.)', lambda m: m[1] + chr(ord(m[2]) ^ 1), page),
            "be read",
        ),
        (lambda page: changed_claim(page, lambda text: text.replace("threshold 0 1/2", "threshold 0 1/4")), "be met"),
        (lambda page: changed_claim(page, lambda text: re.sub(r"\nmultiplier .*", "", text)), "to gain"),
    ],
    ids=["damaged", "lower threshold", "no multipliers"],
)
def test_a_page_with_a_changed_claim_says_so(runs, another_browser, tmp_path, change, reason):
    original = (runs["charging"] / "report.html").read_text("utf-8")
    changed = change(original)
    assert changed != original
    (tmp_path / "changed.html").write_text(changed, "utf-8")
    another_browser.open(tmp_path / "changed.html")
    another_browser.until(OVER)
    assert another_browser.run(STATE) == "refused"
    assert reason in another_browser.run("document.getElementById('self-check').textContent")
    assert another_browser.run("document.getElementById('verdict').className") == "verdict warn"
    assert another_browser.run("document.getElementById('verdict').textContent").strip().startswith("Claimed, and not")


def test_tabs_by_mouse(page):
    for name in tabs_of(page):
        show(page, name)
        assert page.run(VISIBLE) == [name]
        assert page.run(OPEN_TAB) == f"tab-{name}"


def test_tabs_by_keyboard(page):
    show(page, "result")
    page.run("document.getElementById('tab-result').focus()")
    page.press(*ARROW_RIGHT)
    assert page.run(OPEN_TAB) == "tab-budget"
    assert page.run("document.activeElement.id") == "tab-budget"
    page.press(*END)
    assert page.run(OPEN_TAB) == "tab-proof"
    page.press(*ARROW_RIGHT)
    assert page.run(OPEN_TAB) == "tab-policy"
    assert page.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert page.run("document.querySelectorAll('[role=tab][tabindex=\"0\"]').length") == 1


def test_the_slider_by_keyboard(page):
    show(page, "policy")
    before = page.run("document.getElementById('view').innerHTML")
    assert len(before) > 200
    steps = page.run("Number(document.getElementById('step').max)")
    if steps == 0:
        assert page.run("document.getElementById('step').offsetParent === null")
        return
    page.run("document.getElementById('step').focus()")
    page.press(*END)
    assert page.run("document.getElementById('view').dataset.step") == str(steps)
    assert page.run("document.getElementById('view').innerHTML") != before
    spoken = page.run("document.getElementById('step').getAttribute('aria-valuetext')")
    assert spoken == page.run("document.getElementById('step-name').textContent") != ""


def test_the_player(page):
    show(page, "policy")
    if page.run("Number(document.getElementById('step').max)") > 0:
        page.run("document.getElementById('step').value = 0")
        page.run("document.getElementById('play').click()")
        page.until("Number(document.getElementById('step').value) > 0")
        page.run("document.getElementById('step').dispatchEvent(new Event('input'))")
        assert page.run("document.getElementById('play').textContent") == "Play"


def test_the_choice_of_an_agent(opened, page):
    show(page, "policy")
    chosen = page.run("!document.getElementById('who').hidden")
    assert chosen == (opened[1].name == "routing")
    if chosen:
        before = page.run("document.getElementById('view').innerHTML")
        page.run("document.getElementById('agent').value = '3'")
        page.run("document.getElementById('agent').dispatchEvent(new Event('change'))")
        assert page.run("document.getElementById('view').innerHTML") != before


def test_charts_follow_the_colour_scheme(page):
    show(page, "budget")
    tick = "document.querySelector('#budget .chart .xtick text')"
    page.until(f"{tick} !== null")
    light = page.run(f"[getComputedStyle({tick}).fill, getComputedStyle(document.body).backgroundColor]")
    page.look(dark=True)
    page.until(f"getComputedStyle({tick}).fill !== '{light[0]}'")
    assert page.run("getComputedStyle(document.body).backgroundColor") != light[1]


def test_a_phone_never_scrolls_sideways(page):
    page.look(width=360, dark=True)
    controls = "[...document.querySelectorAll('button, select, input')].filter(each => each.offsetParent)"
    for name in tabs_of(page):
        show(page, name)
        page.until("document.documentElement.scrollWidth <= 360")
        assert all(height >= 44 for height in page.run(f"{controls}.map(each => each.offsetHeight)"))


def test_the_certificate_can_be_saved(opened, page):
    href = page.run("document.querySelector('a[download=\"certificate.json\"]').href")
    assert base64.b64decode(href.partition(",")[2]) == (opened[1] / "certificate.json").read_bytes()


def test_an_address_opens_its_tab(runs, browser):
    browser.look()
    browser.open(runs["grid-world"] / "report.html", fragment="#budget")
    assert browser.run(OPEN_TAB) == "tab-budget"


def test_the_grid_world_is_drawn(runs, browser):
    browser.look()
    browser.open(runs["grid-world"] / "report.html")
    words = browser.run("[...document.querySelectorAll('#view .where')].map(each => each.textContent)")
    assert len(words) == 2
    assert all(each.startswith("(0,0) 1") for each in words)
    assert browser.run("document.querySelectorAll('#view svg .cell').length") == 2 * 16


def test_without_scripts_all_parts_stand_below_each_other(runs, browser):
    browser.look()
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(runs["grid-world"] / "report.html")
        assert browser.run(VISIBLE) == tabs_of(browser)
        assert browser.run("document.querySelector('.tabs').hidden")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_every_scenario_is_looked_at():
    assert set(NAMES) <= set(SOLVED)


@pytest.fixture
def page_of(runs, browser):
    """Open the page of one scenario; afterwards nothing may have been complained about."""

    def opened(name):
        browser.look()
        browser.open(runs[name] / "report.html")
        browser.until("document.documentElement.dataset.ready === 'yes'")
        return browser

    yield opened
    assert browser.complaints() == []


@pytest.fixture(scope="module")
def many_runs(tmp_path_factory):
    """Pages about many runs: a sweep with small multiples, a sweep along one option, a learning run."""
    folder = tmp_path_factory.mktemp("many")
    grid = ("--threshold", "0,0.1,0.3", "--agents", "2:3", "--seed", "1,2")
    assert command("sweep", "spectrum", *grid, "--out", folder / "multiples") == 0
    assert command("sweep", "spectrum", "--threshold", "0.05,0.1,0.3", "--out", folder / "one") == 0
    assert command("learn", "spectrum", "--seeds", "3", "--epsilon", "0.5", "--out", folder / "learned") == 0
    assert command("report", folder / "learned") == 0
    return folder


@pytest.fixture(params=["multiples", "one", "learned"])
def page_of_many(request, many_runs, browser):
    """One of these pages; nothing may have been complained about or asked for."""
    browser.look()
    browser.open(many_runs / request.param / "report.html")
    browser.until(f"document.documentElement.dataset.ready === 'yes' && {DRAWN}")
    yield browser, request.param
    assert browser.complaints() == []
    assert browser.requests() == [(many_runs / request.param / "report.html").as_uri()]


def test_pages_of_many_runs_draw_all_their_charts_in_both_colour_schemes(page_of_many):
    page, name = page_of_many
    titles = page.run("[...document.querySelectorAll('#result h2, #result h3')].map(each => each.textContent)")
    assert ("Bounds against samples" if name == "learned" else "What threshold is worth") in titles
    assert page.run("document.querySelectorAll('.chart .main-svg').length") > 1
    ink = "getComputedStyle(document.querySelector('.chart .xtick text')).fill"
    light = page.run(ink)
    page.look(dark=True)
    page.until(f"{ink} !== '{light}'")


def test_pages_of_many_runs_are_read_by_keyboard(page_of_many):
    page, _ = page_of_many
    page.run("document.getElementById('tab-result').focus()")
    page.press(*ARROW_RIGHT)
    assert (page.run(OPEN_TAB), page.run(VISIBLE)) == ("tab-proof", ["proof"])
    assert page.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.press(*ARROW_RIGHT)
    assert page.run(OPEN_TAB) == "tab-result"
    page.run("document.querySelectorAll('#result table[id] thead button')[1].focus()")
    page.press(" ", 32)
    page.until("document.querySelectorAll('#result table[id] thead th')[1].getAttribute('aria-sort') === 'ascending'")


def test_pages_of_many_runs_never_scroll_sideways_on_a_phone(page_of_many):
    page, _ = page_of_many
    page.look(width=360)
    for tab in ("result", "proof"):
        show(page, tab)
        page.until("document.documentElement.scrollWidth <= 360")
        right = "each => each.getBoundingClientRect().right <= 360"
        page.until(f"[...document.querySelectorAll('.chart .main-svg')].every({right})")


def test_a_sweep_has_one_chart_for_every_multiple_below_each_title_on_the_same_scale(many_runs, browser):
    browser.look()
    browser.open(many_runs / "multiples" / "report.html")
    browser.until(DRAWN)
    groups = browser.run("[...document.querySelectorAll('#result .charts')].map(each => each.children.length)")
    assert groups
    assert set(groups) == {2}
    charts = "[...document.querySelectorAll('.charts')[0].querySelectorAll('.chart')]"
    ticks = "[...each.querySelectorAll('.ytick text')].map(tick => [tick.textContent, tick.getAttribute('y')])"
    first, second = browser.run(f"{charts}.map(each => {ticks})")
    assert first == second, "multiples cannot be compared by eye"


def test_the_sliders_of_a_sweep_choose_the_run_whose_numbers_and_policy_are_shown(many_runs, browser):
    browser.look()
    browser.open(many_runs / "multiples" / "report.html")
    browser.until("document.documentElement.dataset.ready === 'yes'")
    rows = list(csv.DictReader((many_runs / "multiples" / "results.csv").read_text().splitlines()))
    facts_list = "[...document.querySelectorAll('#chosen-facts li')]"
    cells = "[...document.querySelectorAll('#view td')].map((each) => each.textContent)"
    options = {"agents": [2.0, 3.0], "threshold": [0.0, 0.1, 0.3], "seed": [1.0, 2.0]}
    assert browser.run("[...document.querySelectorAll('#choose input')].map((each) => each.dataset.option)") == [
        *options
    ]
    seen = set()
    for row in rows:
        for place, (name, values) in enumerate(options.items()):
            chosen = f"document.querySelectorAll('#choose input')[{place}]"
            column = "num_agents" if name == "agents" else name
            browser.run(f"{chosen}.value = {values.index(float(row[column]))}")
            browser.run(f"{chosen}.dispatchEvent(new Event('input'))")
        facts = dict(each.split(" ", 1) for each in browser.run(f"{facts_list}.map((each) => each.textContent)"))
        assert (facts["run"], facts["status"]) == (row["run"], row["status"])
        assert float(facts["welfare"].replace("−", "-")) == pytest.approx(float(row["welfare"]), rel=1e-4)
        assert browser.run("document.querySelector('#runs tr.now th').textContent") == row["run"]
        seen.add(tuple(browser.run(cells)))
    assert len(seen) > 1, "the picture does not follow"
    assert browser.complaints() == []


FIRST_CELLS = "[...document.querySelectorAll('#{} tbody tr')].filter(row => !row.hidden).map(row => row.cells[{}])"


def test_a_click_on_the_head_of_a_column_sorts_the_table_both_ways(page_of):
    page = page_of("charging")
    for place in (1, 2):
        numbers = FIRST_CELLS.format("outcomes", place) + ".map(cell => Number(cell.querySelector('data').value))"
        button = f"document.querySelectorAll('#outcomes thead button')[{place}]"
        for sort in ("ascending", "descending"):
            page.run(f"{button}.click()")
            assert page.run(f"{button}.closest('th').getAttribute('aria-sort')") == sort
            found = page.run(numbers)
            assert found == sorted(found, reverse=sort == "descending")
            assert len(set(found)) > 1
    names = FIRST_CELLS.format("agents", 0) + ".map(cell => cell.textContent)"
    page.run("document.querySelector('#agents thead button').click()")
    assert page.run(names)[1:3] == ["car 1 at P-02", "car 2 at P-03"]  # 10 comes after 9


def test_a_long_table_can_be_searched(page_of):
    page = page_of("charging")
    field = "document.querySelector('#result .filter input')"
    page.run(f"{field}.value = 'p-1'; {field}.dispatchEvent(new Event('input'))")
    shown = page.run(FIRST_CELLS.format("outcomes", 0) + ".map(cell => cell.textContent)")
    assert len(shown) == 10
    assert all("P-1" in name for name in shown)
    assert page.run("document.querySelector('#result .filter output').textContent") == "10 of 24"


def test_charging_opens_at_the_busiest_hour_on_every_tab_in_the_same_words(page_of):
    page = page_of("charging")
    show(page, "policy")
    at = page.run("document.getElementById('step-name').textContent")
    assert at.endswith(":00")
    assert at != "00:00"
    assert page.run("document.querySelector('#view figcaption, #view .where').textContent").count(f"at {at}") == 1


def test_a_phone_shows_the_names_of_cars_whole(runs, another_browser, tmp_path):
    """Real stations have longer names than the sample's."""
    page = tmp_path / "page.html"
    page.write_text((runs["charging"] / "report.html").read_text().replace(" at P-", " at CA-3-"))
    another_browser.look(width=390)
    another_browser.open(page)
    another_browser.until("document.querySelectorAll('.hours tbody th').length === 24")
    cut = "[...document.querySelectorAll('.hours th')].filter((each) => each.scrollWidth > each.clientWidth).length"
    assert another_browser.run(cut) == 0
    another_browser.look()


def test_a_fleet_is_drawn_with_a_colour_of_its_own_for_every_robot(page_of):
    page = page_of("robots")
    show(page, "policy")
    titles = page.run("[...document.querySelectorAll('#view h3')].map(each => each.textContent)")
    assert titles[:2] == ["Where all agents probably are", "One run, drawn at random"]
    discs = "[...document.querySelectorAll('#view figure')][1].querySelectorAll('circle[r=\"2.9\"]')"
    colours = page.run(f"[...{discs}].map(each => each.getAttribute('fill'))")
    assert len(set(colours)) == len(colours) == 3
    page.run("const s = document.getElementById('step'); s.value = 5; s.dispatchEvent(new Event('input'))")
    assert page.run("document.querySelectorAll('#view figure')[1].querySelectorAll('polyline').length") > 0


def test_the_first_tab_shows_the_decision_and_no_page_is_heavy(runs, browser):
    for name in NAMES:
        path = runs[name] / "report.html"
        assert path.stat().st_size < 1_000_000
        browser.look()
        browser.open(path)
        browser.until("document.documentElement.dataset.ready === 'yes'")
        assert browser.run(VISIBLE) == ["policy"]
        assert browser.run("document.getElementById('view').children.length") > 0


def test_charts_draw_every_number_where_it_belongs(runs, browser):
    """Bars, a broken line on a logarithmic axis, rings, cells: against positions computed here."""
    browser.look()
    browser.open(runs[NAMES[0]] / "report.html")
    browser.until("document.documentElement.dataset.ready === 'yes'")
    drawn = """(figure) => {
        const div = document.createElement('div');
        div.style.cssText = 'width: 400px; height: 300px';
        document.body.prepend(div);
        drawChart(div, figure);
        return div;
    }"""
    bars = {
        "data": [{"type": "bar", "x": ["a", "b & c"], "y": [1, -2], "marker": {"color": "red"}, "orientation": "v"}],
        "layout": {"xaxis": {"type": "category"}, "yaxis": {}, "showlegend": False},
    }
    heights = browser.run(
        f"[...({drawn})({json.dumps(bars)}).querySelectorAll('g rect')].map(each => each.height.baseVal.value)"
    )
    assert heights[1] == pytest.approx(2 * heights[0])
    line = {"type": "scatter", "x": [1, 10, 100, 1000], "y": [1, None, 10, 100], "mode": "lines+markers"}
    axis = {"type": "log"}
    curve = {"data": [{**line, "connectgaps": False}], "layout": {"xaxis": axis, "yaxis": axis, "showlegend": False}}
    path, dots = browser.run(
        f"(() => {{ const div = ({drawn})({json.dumps(curve)});"
        "return [div.querySelector('path').getAttribute('d'),"
        "[...div.querySelectorAll('circle')].map(each => [each.cx.baseVal.value, each.cy.baseVal.value])]; })()"
    )
    assert path.count("M") == 2, "a gap is not drawn over"
    (first, low), (third, middle), (last, high) = dots
    assert last - third == pytest.approx((third - first) / 2)
    assert low - middle == pytest.approx(middle - high)
    cells = {
        "type": "heatmap",
        "x": ["1", "2"],
        "y": ["u", "v"],
        "z": [[1, 2], [None, 3]],
        "zmin": 1,
        "zmax": 3,
        "colorscale": [[0, "white"], [1, "black"]],
        "written": True,
    }
    heat = {"data": [cells], "layout": {"xaxis": {}, "yaxis": {}, "showlegend": False}}
    fills = browser.run(
        f"[...({drawn})({json.dumps(heat)}).querySelectorAll('.heat')].map(each => getComputedStyle(each).fill)"
    )
    assert len(fills) == 3, "a run that is missing has no cell"
    assert len(set(fills)) == 3
