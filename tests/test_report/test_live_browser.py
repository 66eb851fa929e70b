"""The page of `cmpg live` in a real browser: a slider is moved, and the verdict follows."""

import importlib.util
import threading

import pytest
from browser import CHROMIUM, Browser

from cmpg.cli.live import Desk, subject_of
from cmpg.cli.loopback import LoopbackServer
from cmpg.cli.targets import Target

MISSING = "NOT TESTED IN A BROWSER: {} is not installed"
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason=MISSING.format("chromium")),
    pytest.mark.skipif(importlib.util.find_spec("websocket") is None, reason=MISSING.format("websocket-client")),
]

STATUS = "[...document.querySelectorAll('[data-part=verdict]')].map((each) => each.dataset.status)"
TOTAL = "document.getElementById('summary').textContent"


def set_slider(value):
    """Return a script that moves the slider of the threshold, as a hand does."""
    return (
        "(() => { const slider = document.querySelector('[data-slider=threshold]'); "
        f"slider.value = '{value}'; slider.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()"
    )


def type_threshold(word):
    """Return a script that writes a word into the field of the threshold."""
    return (
        "(() => { const field = document.querySelector('[name=threshold]'); "
        f"field.value = '{word}'; field.dispatchEvent(new Event('change', {{ bubbles: true }})); }})()"
    )


@pytest.fixture(scope="module")
def browser():
    started = Browser()
    yield started
    started.close()


@pytest.fixture
def served():
    with LoopbackServer(Desk(subject_of(Target("spectrum")), 1e-6).routes()) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_the_answer_follows_the_slider_and_two_can_be_compared_and_kept(browser, served, tmp_path):
    browser.look(width=390, dark=True)
    browser.visit(served.url)
    browser.until(f"{STATUS}.join() === 'CERTIFIED'")
    before = browser.run(TOTAL)
    assert "total value" in before
    browser.run(set_slider("0"))
    browser.until(f"{TOTAL}.includes('total value 0 ')")
    assert browser.run("document.querySelector('[name=threshold]').value") == "0"
    # A value that the slider does not reach, in the field: the verdict changes.
    browser.run("document.getElementById('keep').click()")
    browser.run(type_threshold("-1"))
    browser.until(f"{STATUS}.join() === 'CERTIFIED,INFEASIBLE'")
    assert browser.run("document.getElementById('compared').hidden") is False
    assert browser.run("document.documentElement.scrollWidth") <= 390
    # What makes no sense is a sentence, and the answers before it stay, faint.
    browser.run(type_threshold("many"))
    browser.until("!document.getElementById('problem').hidden")
    assert "a number is required" in browser.run("document.getElementById('problem').textContent")
    assert browser.run("document.getElementById('answers').className") == "stale"
    # The link hands out a page that shows the same without the server.
    page = browser.run("fetch(document.getElementById('save').href).then((found) => found.text())")
    assert browser.complaints() == []
    (tmp_path / "kept.html").write_text(page, "utf-8")
    browser.open(tmp_path / "kept.html")
    assert browser.run(STATUS) == ["CERTIFIED", "INFEASIBLE"]
    assert browser.run("document.querySelectorAll('#answers figure').length") > 0
    assert browser.run("document.getElementById('form').hidden") is True
    assert browser.complaints() == []
    assert browser.requests() == [(tmp_path / "kept.html").as_uri()]


def test_a_page_that_begins_with_a_problem_says_so(browser):
    desk = Desk(subject_of(Target("robots", {"num_agents": 60})), 1e-6)  # the sample has starts for ten
    with LoopbackServer(desk.routes()) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            browser.visit(server.url)
            browser.until("!document.getElementById('problem').hidden")
            assert browser.run(TOTAL) == "No answer yet"
            assert "fewer agents" in browser.run("document.getElementById('problem').textContent")
        finally:
            server.shutdown()
            thread.join()
