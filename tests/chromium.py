"""Headless Chromium for tests of pages: what scripts rendered, screenshots, and the requests that leave a page."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import threading
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    "--no-first-run",
    "--enable-logging=stderr",
    "--virtual-time-budget=3000",
)


def _program() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def why_missing() -> str | None:
    """Return why no browser can be started on this machine, or None."""
    return None if _program() else "Chromium is not installed: apt-get install chromium"


@dataclass
class Element:
    """An element of a page, with all the text inside it."""

    tag: str
    attributes: dict[str, str | None]
    text: str = ""

    @property
    def classes(self) -> set[str]:
        """The names of its classes."""
        return set((self.attributes.get("class") or "").split())


class Dom(HTMLParser):
    """The elements of a page in the order in which they begin.

    Attributes
    ----------
    source : str
    elements : list of Element
    problems : list of str
        What scripts wrote to the console, such as errors.
    """

    def __init__(self, source: str, problems: list[str]) -> None:
        super().__init__()
        self.source, self.problems = source, problems
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        if any(one.tag in ("script", "style") for one in self._open):
            return
        for element in self._open:
            element.text += data

    def of_class(self, *names: str) -> list[Element]:
        """Return the elements that have all these classes."""
        return [one for one in self.elements if one.classes >= set(names)]

    def by_id(self, name: str) -> Element:
        """Return the element with an id."""
        (found,) = [one for one in self.elements if one.attributes.get("id") == name]
        return found

    @property
    def text(self) -> str:
        """All text that is not in a script or style."""
        return next(one for one in self.elements if one.tag == "body").text


@dataclass
class Browser:
    """Loads pages; every request of one goes to a listener that notes and refuses it.

    Attributes
    ----------
    requests : list of str
        The first lines of the requests of the last page, without those of the browser itself.
    """

    requests: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._listener.close()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                try:
                    line = connection.recv(500).split(b"\r\n")[0].decode("latin-1")
                except OSError as problem:
                    line = repr(problem)
            if "google" not in line:
                self.requests.append(line)

    def _run(self, path: Path, fragment: str, *options: str) -> subprocess.CompletedProcess[str]:
        program = _program()
        assert program is not None
        self.requests.clear()
        proxy = f"--proxy-server=http://127.0.0.1:{self._listener.getsockname()[1]}"
        url = f"{path.absolute().as_uri()}#{fragment}"
        with tempfile.TemporaryDirectory(prefix="chromium-") as folder:
            command = [program, *_OPTIONS, f"--user-data-dir={folder}", proxy, "--proxy-bypass-list=<-loopback>"]
            return subprocess.run([*command, *options, url], capture_output=True, text=True, timeout=120, check=True)

    def load(self, path: Path, fragment: str = "", size: tuple[int, int] = (1400, 1000)) -> Dom:
        """Return a page as its scripts have rendered it."""
        done = self._run(path, fragment, "--dump-dom", f"--window-size={size[0]},{size[1]}")
        return Dom(done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line])

    def picture(self, path: Path, *, dark: bool, size: tuple[int, int] = (1400, 1000)) -> Any:
        """Return a screenshot as an array of red, green and blue from 0 to 1."""
        from matplotlib.image import imread

        with tempfile.TemporaryDirectory() as folder:
            file, scheme = f"{folder}/page.png", 0 if dark else 1
            self._run(path, "", f"--screenshot={file}", f"--window-size={size[0]},{size[1]}",
                      f"--blink-settings=preferredColorScheme={scheme}")  # fmt: skip
            return imread(file)[:, :, :3]
