"""Drives a headless Chromium by its DevTools protocol, over a pair of pipes."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PATIENCE = 30.0  # seconds for any answer

_EXEC = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A browser and the messages to and from it: JSON, each ended by a zero byte."""

    def __init__(self, profile: Path) -> None:
        here_in, there_out = os.pipe()
        there_in, here_out = os.pipe()
        # The browser reads from 3 and writes to 4; ours are moved out of the way of those.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (there_in, there_out)]
        flags = [
            *("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"),
            *("--no-first-run", "--disable-dev-shm-usage", f"--user-data-dir={profile}"),
        ]
        assert CHROMIUM is not None
        self._process = subprocess.Popen(
            [sys.executable, "-c", _EXEC, *map(str, high), CHROMIUM, *flags],
            pass_fds=high,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (there_in, there_out, *high):
            os.close(fd)
        self._in, self._out = here_in, here_out
        self._rest, self._count = b"", 0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        os.close(self._out)
        os.close(self._in)
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """What the browser answers to a command; events that come before go to `events`."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            found = self._read()
            if found.get("id") == self._count:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']['message']}")
                return found["result"]
            self.events.append(found)

    def _read(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self._in, 1 << 16)
            if not piece:
                raise RuntimeError("the browser has ended")
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)


class Page:
    """A page in the browser."""

    def __init__(self, browser: Browser, url: str, width: int, dark: bool) -> None:
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        size: dict[str, Any] = {"width": width, "height": 900, "deviceScaleFactor": 1}
        self.call("Emulation.setDeviceMetricsOverride", mobile=False, **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.call("Emulation.setEmulatedMedia", features=[scheme, still])
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def value(self, expression: str) -> Any:
        """The value of an expression in the page, as JSON has it."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def until(self, condition: str) -> None:
        end = time.monotonic() + PATIENCE
        while not self.value(condition):
            if time.monotonic() > end:
                raise TimeoutError(condition)
            time.sleep(0.02)

    def click(self, selector: str) -> None:
        """Press and let go the mouse in the middle of the first element of a selector."""
        one = f"document.querySelector({json.dumps(selector)})"
        self.value(f"{one}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        x, y = self.value(
            f"(r => [r.x + r.width / 2, r.y + r.height / 2])({one}.getClientRects()[0])"
        )
        hit = self.value(f"{one}.contains(document.elementFromPoint({x}, {y}))")
        assert hit, f"{selector} is covered"
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, code: int) -> None:
        """Press and let go a key."""
        text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
        named = {"key": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **named, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def write(self, text: str) -> None:
        """Type a text into what has the focus."""
        self.call("Input.insertText", text=text)

    def complaints(self) -> list[str]:
        """What the console has of errors and warnings, refusals of the page's policy too."""
        self.value("0")  # what has happened by now has been told by then
        return [text for event in self._browser.events for text in _complaint(event)]

    def requests(self) -> list[str]:
        """The addresses that were asked for."""
        asked = [e for e in self._browser.events if e["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in asked]

    def screenshot(self, path: Path, whole: bool = False) -> None:
        found = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))


def _complaint(event: dict[str, Any]) -> Iterator[str]:
    params = event["params"]
    match event["method"]:
        case "Runtime.exceptionThrown":
            yield str(params["exceptionDetails"])
        case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
            yield str(params["args"])
        case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
            yield params["entry"]["text"]
        case _:
            pass


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser that ends with the block."""
    one = Browser(profile)
    try:
        yield one
    finally:
        one.close()
