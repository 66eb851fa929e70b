"""`cmpg live`: who gets an answer, what the answers say, and which of two requests is answered."""

import doctest
import http.client
import json
import os
import re
import signal
import subprocess
import threading
import typing
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import cmpg
from cmpg.cli.live import READ_FILES, Built, Desk, control_of, scenario_subject, subject_of
from cmpg.cli.loopback import LoopbackServer
from cmpg.cli.targets import Target, listed_options, option_types
from cmpg.deadline import check_time
from cmpg.scenarios import SCENARIOS, Origin
from command_line import PATIENCE, PROGRAM
from command_line import cmpg as run_command


@contextmanager
def serving(desk):
    """Serve a desk in a thread."""
    with LoopbackServer(desk.routes()) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def server():
    with serving(Desk(subject_of(Target("counter-example")), 1e-6)) as started:
        yield started


def send(server, method, path, body=None, **headers):
    """Send a request, and return the status, the headers and the body."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=PATIENCE)
    connection.request(
        method, path, body=body, headers={name.replace("_", "-"): text for name, text in headers.items()}
    )
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def answered(server, **options):
    status, _, body = send(server, "POST", f"/{server.token}/answer", json.dumps({"options": options}))
    assert status == 200
    return json.loads(body)


def data_of(page):
    """Return the data inside a page."""
    return json.loads(re.search(r'id="live-data">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_is_handed_out_to_those_with_the_token(server):
    status, headers, body = send(server, "GET", f"/{server.token}/")
    assert status == 200
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert b"connect-src 'self'" in body
    assert [each["name"] for each in data_of(body.decode())["controls"]] == ["threshold"]
    assert server.server_address[0] == "127.0.0.1"
    assert len(server.token) >= 32


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}),
        ("/{other}/", {}),
        ("/{token}", {}),
        ("/{token}x/", {}),
        ("/{other}/answer", {}),
        ("/{token}/", {"Host": "evil.example:{port}"}),
        ("/{token}/", {"Host": "localhost:{port}"}),
        ("/{token}/", {"Host": "127.0.0.1"}),
        ("/{token}/", {"Origin": "http://evil.example"}),
        ("/{token}/", {"Origin": "null"}),
        ("/etc/passwd", {}),
    ],
)
def test_a_request_without_token_or_from_elsewhere_is_refused(server, path, headers):
    words = {"token": server.token, "other": "a" * len(server.token), "port": server.server_port}
    named = {name: text.format(**words) for name, text in headers.items()}
    for method in ("GET", "POST"):
        status, _, body = send(server, method, path.format(**words), b"{}" if method == "POST" else None, **named)
        assert (status, body) == (403, b"Forbidden\n")


@pytest.mark.parametrize("path", ["pyproject.toml", "../etc/passwd", "%2e%2e/etc/passwd", "answer/", "index.html"])
def test_there_are_no_other_paths(server, path):
    assert send(server, "GET", f"/{server.token}/{path}")[0] == 404


def test_methods_and_bodies_that_make_no_sense_are_refused(server):
    address = f"/{server.token}/answer"
    assert send(server, "GET", address)[0] == 404
    assert send(server, "PUT", address, b"{}")[0] == 501
    assert send(server, "POST", address, b"x" * 200_000)[0] == 413
    for body in (b"", b"no json", b"[]", b'{"options": 3}', b'{"options": {"threshold": 1}}', b"[" * 90_000):
        assert send(server, "POST", address, body)[0] == 400


def test_the_answer_follows_the_options(server):
    meets, impossible = answered(server, threshold="0.5"), answered(server, threshold="-1")
    assert meets["verdict"]["status"] == "CERTIFIED"
    assert impossible["verdict"]["status"] == "INFEASIBLE"
    numbers = meets["numbers"]
    names = [name.removeprefix("cost: ") for name in numbers if name.startswith("cost: ")]
    assert names
    assert all(numbers[f"cost: {name}"] <= numbers[f"threshold: {name}"] == 0.5 for name in names)
    assert numbers["total value"] <= numbers["at most possible"] + 1e-9
    assert meets["view"]["kind"] == "tables"
    assert "price of one more unit" in meets["constraints"]


def test_wrong_options_are_answered_in_a_sentence(server):
    assert answered(server, threshold="abc")["problem"] == "Threshold is 'abc'; a number is required."
    assert answered(server, threshold="nan")["problem"] == "Threshold is 'nan'; a number is required."
    assert "cannot change 'sessions'" in answered(server, sessions="/etc/passwd")["problem"]


def test_no_page_can_name_a_file():
    for named in SCENARIOS.values():
        hints = option_types(named.function)
        for option, meaning in listed_options(named).items():
            kinds = typing.get_args(hints[option])
            if any(getattr(kind, "__origin__", kind) is os.PathLike for kind in kinds):
                assert option in READ_FILES
                assert control_of(option, hints[option], named.options[option], meaning) is None
    desk = Desk(subject_of(Target("charging")), 1e-3)
    assert "a number is required" in desk.answer({"capacity_kw": "/etc/passwd"})["problem"]


def test_an_export_shows_what_was_computed_and_fetches_nothing(server):
    one, other = answered(server, threshold="0.5"), answered(server, threshold="-1")
    path = f"/{server.token}/export?answer={one['number']}&answer={other['number']}"
    status, headers, body = send(server, "GET", path)
    assert status == 200
    assert headers["Content-Disposition"].startswith("attachment")
    data = data_of(body.decode())
    assert data["answers"] == [one, other]
    assert data["static"]
    assert b"connect-src 'none'" in body
    assert server.token.encode() not in body
    for query in ("", "?answer=0", "?answer=99999", "?answer=x", f"?answer={one['number']}&answer=0"):
        assert send(server, "GET", f"/{server.token}/export{query}")[0] == 400


class SlowSubject:
    """A subject whose game takes for ever to build if the word is `slow`."""

    def __init__(self):
        self._quick = subject_of(Target("counter-example"))
        self.page, self.first, self.began = self._quick.page, None, threading.Event()

    def build(self, words) -> Built:
        if words["threshold"] != "slow":
            return self._quick.build(words)
        self.began.set()
        while True:
            check_time()
            threading.Event().wait(0.005)


def test_a_newer_request_cancels_an_older_one():
    subject = SlowSubject()
    with serving(Desk(subject, 1e-6)) as server:
        found = []
        older = threading.Thread(target=lambda: found.append(answered(server, threshold="slow")))
        older.start()
        assert subject.began.wait(PATIENCE)
        assert json.loads(send(server, "GET", f"/{server.token}/progress")[2]) == {"text": "building the game"}
        assert answered(server, threshold="0.5")["verdict"]["status"] == "CERTIFIED"
        older.join()
        assert found == [{"cancelled": True}]


def test_the_page_can_cancel():
    subject = SlowSubject()
    with serving(Desk(subject, 1e-6)) as server:
        found = []
        older = threading.Thread(target=lambda: found.append(answered(server, threshold="slow")))
        older.start()
        assert subject.began.wait(PATIENCE)
        assert send(server, "POST", f"/{server.token}/cancel", b"{}")[0] == 200
        older.join()
        assert found == [{"cancelled": True}]


def test_a_solve_ends_at_its_next_step_if_it_is_cancelled(monkeypatch):
    desk, steps = Desk(subject_of(Target("charging")), 1e-6), []

    def cancel(*_):
        steps.append(1)
        desk.cancel()
        return ""

    monkeypatch.setattr("cmpg.cli.live.progress_line", cancel)
    assert desk.answer({}) == {"cancelled": True}
    assert len(steps) == 1


def test_the_next_answer_begins_near_the_last_one(monkeypatch):
    desk, starts, solve = Desk(subject_of(Target("charging")), 1e-3), [], cmpg.solve

    def watched(game, **given):
        starts.append(given["start"])
        return solve(game, **given)

    monkeypatch.setattr(cmpg, "solve", watched)
    for words in ({}, {"threshold": "0.4"}, {"threshold": "0.4", "slot": "30"}):
        assert desk.answer(words)["verdict"]["status"] == "CERTIFIED"
    # Other steps are another shape of policy, which nothing known fits.
    assert [start if start is None else repr(start) for start in starts] == [None, "WarmStart", None]


def test_a_run_folder_brings_its_options_and_its_answer(tmp_path):
    assert run_command("solve", "spectrum", "--threshold", "0.2", "--out", tmp_path / "run").code == 0
    subject = subject_of(Target(str(tmp_path / "run")))
    known = {each.name: each.value for each in subject.page.controls}
    assert (known["threshold"], known["horizon"]) == ("0.2", "2")
    assert subject.first.certified
    assert subject.build({}).game.thresholds == [0.2]
    assert subject.build({"threshold": "0.1"}).game.thresholds == [0.1]


def test_files_that_a_run_folder_names_are_not_opened(tmp_path, capsys):
    assert run_command("solve", "spectrum", "--out", tmp_path / "run").code == 0
    path = tmp_path / "run" / "scenario.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "name": "charging", "options": {"sessions": "/etc/passwd"}}))
    subject = subject_of(Target(str(tmp_path / "run")))
    assert [each.name for each in subject.page.controls] == ["threshold 0"]
    assert "--sessions" in capsys.readouterr().err
    assert subject.build({"threshold 0": "0.05"}).game.thresholds == [0.05]


def test_a_game_file_has_its_thresholds(tmp_path):
    cmpg.save_game(cmpg.scenarios.counter_example(), tmp_path / "game.npz")
    desk = Desk(subject_of(Target(str(tmp_path / "game.npz"))), 1e-6)
    assert desk.answer({"threshold 0": "0.25"})["verdict"]["status"] == "CERTIFIED"
    assert "a number is required" in desk.answer({"threshold 0": "x"})["problem"]


def test_a_failure_of_the_library_does_not_end_the_page():
    desk = Desk(replace(scenario_subject(Origin("counter-example", {})), build=lambda _: 1 / 0), 1e-6)
    assert "ZeroDivisionError" in desk.answer({})["problem"]


def test_the_command_prints_what_the_guide_shows_and_ctrl_c_stops_it():
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "live.md").read_text("utf-8")
    line, shown = re.search(r"^\$ cmpg (.*?)\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL).groups()
    running = subprocess.Popen([*PROGRAM, *line.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        printed = running.stdout.readline() + running.stdout.readline()
        assert doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS)
        port, path = re.search(r"http://127\.0\.0\.1:(\d+)(/\S+/)", printed).groups()
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=PATIENCE)
        connection.request("GET", path)
        assert connection.getresponse().status == 200
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
    assert (running.returncode, said) == (0, "stopped\n")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["nothing"], "there is no scenario 'nothing'"),
        (["counter-example", "--threshold", "x"], "a number is required"),
        (["counter-example", "--epsilon", "0"], "--epsilon is 0"),
        (["missing.npz"], "missing.npz"),
    ],
)
def test_wrong_words_are_bad_input(words, problem):
    ran = run_command("live", *words)
    assert ran.code == 2
    assert problem in ran.err
