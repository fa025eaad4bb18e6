"""A headless Chromium driven over its debugging pipe, with nothing but the standard library.

The protocol is the Chrome DevTools Protocol: JSON messages, each ended by a NUL byte, over file
descriptors 3 (to the browser) and 4 (from it) when it is started with --remote-debugging-pipe.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars "
    "--remote-debugging-pipe"
)
ANSWER_WITHIN = 60  # seconds; a busy machine with two cores starts the browser in a few


def find() -> str | None:
    """The browser's path, or None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Chromium:
    """A browser with one page; use it as a context manager."""

    def __init__(self, binary: str) -> None:
        self._profile = tempfile.mkdtemp(prefix="crossover-chromium-")
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        argv = [binary, *FLAGS.split(), f"--user-data-dir={self._profile}", "about:blank"]
        # The descriptors must be 3 and 4 in the child; a tiny shell puts them there.
        plumbing = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", plumbing, "bash", *argv],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._next = 0
        self.events: list[dict[str, Any]] = []
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Chromium:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._call("Browser.close")
            self._process.wait(timeout=ANSWER_WITHIN)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        finally:
            os.close(self._write)
            os.close(self._read)
            shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command to the page and wait for its answer."""
        return self._call(method, session=self._session, **parameters)

    def open(self, page: Path, *, width: int, height: int, scheme: str) -> None:
        """Show a local page in a viewport of that size and colour scheme; events start anew."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        self.events = []
        self.call("Page.navigate", url=page.resolve().as_uri())
        deadline = time.monotonic() + ANSWER_WITHIN
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._receive(deadline)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def _call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        rest = json.dumps(message).encode() + b"\0"
        while rest:
            rest = rest[os.write(self._write, rest) :]
        deadline = time.monotonic() + ANSWER_WITHIN
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self._next:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _receive(self, deadline: float) -> dict[str, Any]:
        """The next message; events are also kept. Raises TimeoutError after the deadline."""
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("no answer from the browser")
            chunk = os.read(self._read, 1 << 16)
            if not chunk:
                raise OSError("the browser has gone")
            self._buffer += chunk
        raw, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(raw)
        if "method" in message:
            self.events.append(message)
        return message
