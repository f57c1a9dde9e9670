"""Open pages in a headless Chromium and evaluate scripts in them, through the DevTools pipe.

The pipe is the browser's file descriptors 3 and 4. A message is JSON that ends in a zero byte. No port is opened.
"""

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --remote-debugging-pipe"
).split()
PHONE_PX = 600  # in a narrower window the browser uses a phone's layout
PATIENCE_S = 300
# Tests may already use descriptors 3 and 4, so the child process puts the pipe there.
PLUMBER = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for number, end in zip((3, 4), ends):
    os.dup2(end, number)
    os.close(end)
os.execv(sys.argv[3], sys.argv[3:])
"""

Message = dict[str, Any]


def program() -> str | None:
    """Return the path of the first browser program on PATH, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Chromium:
    """A running Chromium that shows one page at a time. Leaving its `with` block ends the process."""

    def __init__(self, path: str) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="kfbench-chromium-", ignore_cleanup_errors=True)
        theirs_in, self._in = os.pipe()
        self._out, theirs_out = os.pipe()
        plumber = [sys.executable, "-c", PLUMBER, str(theirs_in), str(theirs_out)]
        command = [*plumber, path, *FLAGS, f"--user-data-dir={self._profile.name}"]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(command, pass_fds=(theirs_in, theirs_out), stdout=quiet, stderr=quiet)
        os.close(theirs_in)
        os.close(theirs_out)
        self._asked = 0
        self._left = b""
        self._came: list[Message] = []
        self._shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.ask("Browser.close")
        self._process.wait(PATIENCE_S)
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def open(
        self, page: Path, width: int = 1280, height: int = 900, dark: bool = False, media: str = "", address: str = ""
    ) -> "Tab":
        """Load a file in place of the current page.

        width, height: size of the window in CSS pixels. media: print, or empty for a screen. address: the part behind
        the file that keeps a reader's choices. It is set after the page is loaded.
        """
        if self._shown:
            self.ask("Target.closeTarget", targetId=self._shown)
        self._came.clear()
        self._shown = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=self._shown, flatten=True)["sessionId"]
        tab = Tab(self, session, page, width, height, dark, media)
        if address:
            tab.ask(f"new Promise(done => (addEventListener('hashchange', () => done()), location.hash = {address!r}))")
        return tab

    def ask(self, method: str, session: str = "", **params: Any) -> Message:
        """Send a DevTools command and return its result. Events that arrive meanwhile are stored for `events`."""
        self._asked += 1
        message = {"id": self._asked, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._in, json.dumps(message).encode() + b"\0")
        answer = self._answer(self._asked)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: Message = answer["result"]
        return result

    def events(self, method: str) -> list[Message]:
        """Return the events of the current page, oldest first."""
        return [came["params"] for came in self._came if came["method"] == method]

    def _answer(self, asked: int) -> Message:
        end = time.monotonic() + PATIENCE_S
        while True:
            if not select.select([self._out], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"the browser says nothing for {PATIENCE_S} s")
            data = os.read(self._out, 1 << 20)
            if not data:
                raise RuntimeError(f"the browser ended with status {self._process.wait()}")
            *whole, self._left = (self._left + data).split(b"\0")
            came: list[Message] = [json.loads(message) for message in whole]
            self._came += [message for message in came if "method" in message]
            for message in came:
                if message.get("id") == asked:
                    return message


class Tab:
    """The page that is loaded now."""

    def __init__(
        self, browser: Chromium, session: str, page: Path, width: int, height: int, dark: bool, media: str
    ) -> None:
        self._browser = browser
        self._session = session
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < PHONE_PX,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.send("Page.navigate", url=page.as_uri())
        self.ask(
            "new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', () => done()))"
        )

    def send(self, method: str, **params: Any) -> Message:
        return self._browser.ask(method, self._session, **params)

    def ask(self, script: str) -> Any:
        """Evaluate a JavaScript expression and return its value, after its promise if it is one.

        Raise RuntimeError if it throws.
        """
        found = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"].get("exception", found["exceptionDetails"]).get("description"))
        return found["result"].get("value")

    def press(self, key: str, text: str = "") -> None:
        """Press and release a key. key: its DOM name, such as "Enter"."""
        code = {"Tab": 9, "Enter": 13, "Escape": 27}.get(key, 0)
        typed = {"text": text} if text else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=code, **typed)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)

    def requests(self) -> list[str]:
        """Return every address that the page requested. Its own address is the first."""
        self.ask("0")  # this command returns after all earlier events have arrived
        return [each["request"]["url"] for each in self._browser.events("Network.requestWillBeSent")]

    def complaints(self) -> list[str]:
        """Return the browser's console messages: errors, warnings, and refusals by the content security policy."""
        self.ask("0")
        said = [each["entry"]["text"] for each in self._browser.events("Log.entryAdded")]
        said += [each["exceptionDetails"]["text"] for each in self._browser.events("Runtime.exceptionThrown")]
        return said + [str(each["args"]) for each in self._browser.events("Runtime.consoleAPICalled")]
