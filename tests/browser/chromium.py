"""A headless Chromium, controlled through the DevTools protocol over a pair of pipes.

The protocol: https://chromedevtools.github.io/devtools-protocol/; messages are JSON that ends with
a zero byte, on file descriptors 3 (to the browser) and 4 (from it).
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from mepof.errors import EnvironmentLack, WorkError

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


class Page:
    """A tab."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.call("Page.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method and return its result.

        Raises:
            WorkError: the method failed, or the browser ended.
        """
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise WorkError(f"chromium: {method}: {answer['error']['message']}")
                return cast(dict[str, Any], answer["result"])

    def open(self, url: str) -> None:
        """Load a page and wait for its load event."""
        self.call("Page.navigate", url=url)
        while self._read().get("method") != "Page.loadEventFired":
            pass

    def look(self, width: int, scheme: str) -> None:
        """Set the width in CSS pixels and the preferred colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media="screen", features=features)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise WorkError(f"chromium: {answer['exceptionDetails']['text']}: {answer['result']}")
        return answer["result"].get("value")

    def screenshot(self, height: int | None = None) -> bytes:
        """The whole page as PNG, or this many pixels from its top."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {
            "x": 0,
            "y": 0,
            "width": size["width"],
            "height": min(size["height"], height or size["height"]),
            "scale": 1,
        }
        answer = self.call(
            "Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True
        )
        return base64.b64decode(answer["data"])

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            data = os.read(self._from, 1 << 20)
            if not data:
                raise WorkError("chromium ended early")
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        return cast(dict[str, Any], json.loads(message))


@contextmanager
def browser() -> Iterator[Page]:
    """A browser with one page.

    Raises:
        EnvironmentLack: Chromium is not installed.
    """
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        raise EnvironmentLack("chromium is not installed", "apt-get install chromium")
    to_browser, from_us = _pipe()
    to_us, from_browser = _pipe()
    with tempfile.TemporaryDirectory() as profile:
        arguments = [
            program,
            "--headless=new",
            "--no-sandbox",  # Chromium has none as root; it opens only our page
            "--disable-gpu",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
        ]
        # The browser expects them as descriptors 3 and 4.
        shell = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *arguments],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            yield Page(from_us, to_us)
        finally:
            process.terminate()
            process.wait()
            os.close(from_us)
            os.close(to_us)


def _pipe() -> tuple[int, int]:
    """The read and the write end, on descriptors that the browser does not use."""
    low = os.pipe()
    read, write = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low)
    for end in low:
        os.close(end)
    return read, write


def page_url(path: Path) -> str:
    """The URL of a file."""
    return path.resolve().as_uri()
