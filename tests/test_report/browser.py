"""A headless Chromium, driven by its DevTools protocol; only the process that was started here is ended."""

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
)

PATIENCE = 600.0
"""Seconds to wait for anything on a machine that is busy."""


class Browser:
    """One tab of a browser with a profile of its own."""

    def __init__(self):
        self._profile = tempfile.mkdtemp(prefix="cmpg-browser-")
        words = [CHROMIUM, *FLAGS, f"--user-data-dir={self._profile}", "about:blank"]
        self._process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._socket, self._last, self.events = self._connect(), 0, []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _connect(self):
        from websocket import create_connection

        port = Path(self._profile) / "DevToolsActivePort"
        wait_for(lambda: port.is_file() and len(port.read_text().split()) == 2)
        address = f"http://127.0.0.1:{port.read_text().split()[0]}/json"
        with urllib.request.urlopen(address) as answer:
            pages = [each for each in json.load(answer) if each["type"] == "page"]
        return create_connection(pages[0]["webSocketDebuggerUrl"], timeout=PATIENCE)

    def call(self, method, **given):
        """Call a method of the protocol, and return its result; events that come in between are kept."""
        self._last += 1
        self._socket.send(json.dumps({"id": self._last, "method": method, "params": given}))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def open(self, path, *, fragment=""):
        """Open a file, and return the seconds until its load event."""
        if fragment:  # from the same file, this would be no navigation, and no load event would come
            self._navigate("about:blank")
        began = time.monotonic()
        self._navigate(path.as_uri() + fragment)
        return time.monotonic() - began

    def visit(self, address):
        """Open a page that a server hands out."""
        self._navigate(address)

    def _navigate(self, address):
        self.events.clear()
        self.call("Page.navigate", url=address)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(json.loads(self._socket.recv()))

    def run(self, script):
        """Evaluate an expression on the page."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, script):
        """Wait until an expression is true."""
        wait_for(lambda: self.run(script), what=script)

    def press(self, key, code):
        """Press a key, as a person does."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def look(self, *, width=1200, dark=False):
        """Choose the width of the window, and the colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self):
        """Return a screenshot as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def complaints(self):
        """Everything that the console saw: errors, warnings, uncaught exceptions, blocked requests."""
        loud = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [event for event in self.events if event["method"] in loud]

    def requests(self):
        """Every address that was asked for, except data inside the page."""
        sent = [event for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [
            address for each in sent if not (address := each["params"]["request"]["url"]).startswith(("data:", "blob:"))
        ]

    def close(self):
        """End the browser that was started here."""
        self._socket.close()
        self._process.terminate()
        self._process.wait(timeout=PATIENCE)
        shutil.rmtree(self._profile, ignore_errors=True)


def wait_for(condition, what="the browser"):
    """Ask again and again, for a while."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE:g} s for {what}"
        time.sleep(0.03)
