"""Chromium without a window, over its DevTools protocol: pages from disk, as people see them. It needs no driver: the
protocol is spoken over two pipes.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
LAPTOP, PHONE = (1366, 860), (390, 844)
TWO_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
MIDDLE = """(() => {
  const one = document.querySelector(%s);
  one.scrollIntoView({block: "center"});
  const box = one.getBoundingClientRect();
  return [box.left + box.width / 2, box.top + box.height / 2];
})()"""


class Browser:
    """One page of a browser. `complaints` are what it said since the last page was opened: exceptions, errors in the
    console, what its security policy refused; `requests` are the addresses that it asked for.
    """

    def __init__(self, to: int, out_of: int) -> None:
        self.to, self.out_of = to, os.fdopen(out_of, "rb")
        self.number, self.rest = 0, b""
        self.session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> Any:
        """What the browser answers to a command; raises what it refuses."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            read = self.out_of.read1(1 << 20)  # type: ignore[attr-defined]
            if not read:
                raise RuntimeError("the browser has ended")
            self.rest += read
        first, _, self.rest = self.rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(first)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                self.complaints.append(details.get("exception", {}).get("description", details["text"]))
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                self.complaints.append(params["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])

    def window(self, size: tuple[int, int], is_dark: bool = False) -> None:
        """Sets the size of the window and the colours that the person prefers."""
        width, height = size
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, page: Path, address: str = "") -> None:
        """Opens a file anew, at an address in it, and waits until it shows something."""
        self.send("Page.navigate", url="about:blank")
        self.complaints.clear()
        self.requests.clear()
        self.send("Page.navigate", url=f"{page.as_uri()}{address}")
        self.until("document.readyState === 'complete' && !!document.querySelector('main h1')")
        self.settle()

    def run(self, script: str) -> Any:
        """The value of a script; that of a promise is waited for."""
        ran = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in ran:
            raise RuntimeError(ran["exceptionDetails"].get("exception", {}).get("description", script))
        return ran["result"].get("value")

    def until(self, script: str, seconds: float = 10) -> None:
        """Waits until a script is true."""
        end = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < end, f"still not so after {seconds} s: {script}"
            time.sleep(0.02)

    def settle(self) -> None:
        """Waits until the page has drawn what it was told to: a picture finds its place only in the frame after."""
        self.run(TWO_FRAMES)

    def go(self, address: str) -> None:
        """Goes to an address in the page that is open, and waits for its title to change if it must."""
        self.run(f"location.hash = {json.dumps(address)}; new Promise((done) => setTimeout(done, 30))")

    def click(self, selector: str) -> None:
        """Clicks with the mouse on the middle of an element."""
        self.settle()
        place = self.run(MIDDLE % json.dumps(selector))
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)

    def press(self, key: str, code: int = 0) -> None:
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def write(self, text: str) -> None:
        """Types a text where the focus is."""
        self.send("Input.insertText", text=text)

    def picture(self, path: Path) -> None:
        """Writes what the window shows as PNG."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile, which ends with the block."""
    to_browser, from_browser = os.pipe(), os.pipe()
    flags = (
        "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe"
    )
    command = f'exec "$0" "$@" 3<&{to_browser[0]} 4>&{from_browser[1]}'
    process = subprocess.Popen(
        ["bash", "-c", command, CHROMIUM, *flags.split(), f"--user-data-dir={profile}", "--no-first-run"],
        pass_fds=(to_browser[0], from_browser[1]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser[0])
    os.close(from_browser[1])
    try:
        opened = Browser(to_browser[1], from_browser[0])
        yield opened
        opened.out_of.close()
    finally:
        os.close(to_browser[1])
        process.terminate()
        process.wait(20)
