"""A headless Chromium, spoken to through a pipe: a page, its events, a pointer and keys."""

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

DEADLINE_SECONDS = 60
BINARY = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,800",
    "--remote-debugging-pipe",
)
# Chromium reads from descriptor 3 and writes to 4; only a new process may move them there.
_TRAMPOLINE = (
    "import os, sys\n"
    "reader, writer = os.dup(int(sys.argv[1])), os.dup(int(sys.argv[2]))\n"
    "os.dup2(os.dup(reader), 103), os.dup2(os.dup(writer), 104)\n"
    "os.dup2(103, 3), os.dup2(104, 4)\n"
    "os.execv(sys.argv[3], sys.argv[3:])\n"
)


class Chromium:
    """A browser with one page; every command waits for its answer."""

    def __init__(self):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        browser_reads, self._writer = os.pipe()
        self._reader, browser_writes = os.pipe()
        command = [sys.executable, "-c", _TRAMPOLINE, str(browser_reads), str(browser_writes)]
        self._process = subprocess.Popen(
            [*command, BINARY, *FLAGS, f"--user-data-dir={self._profile.name}"],
            pass_fds=(browser_reads, browser_writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(browser_reads)
        os.close(browser_writes)
        self._buffer, self._number, self._session = b"", 0, None
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self._session = None
        self.call("Browser.close")
        self._process.wait(DEADLINE_SECONDS)
        os.close(self._writer)
        os.close(self._reader)
        self._profile.cleanup()

    def call(self, method, **parameters):
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._writer, data) :]
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def open(self, url):
        """Load a page and have it drawn; `events` then holds what happened since."""
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not self.methods("Page.loadEventFired"):
            self._receive()
        self.evaluate(  # in the first frame a page learns its size
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def methods(self, method):
        return [event["params"] for event in self.events if event["method"] == method]

    def evaluate(self, expression):
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def key(self, key):
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def _receive(self):
        deadline = time.monotonic() + DEADLINE_SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._reader], [], [], deadline - time.monotonic())
            assert ready, "Chromium is silent."
            data = os.read(self._reader, 1 << 16)
            assert data, "Chromium has gone."
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        answer = json.loads(line)
        if "method" in answer:
            self.events.append(answer)
        return answer
