"""A real browser on the real app: one server a session, started as a person would start it.

Set GLASSBOX_CHROMIUM to a browser, GLASSBOX_TEST_MODEL to another model than smollm2, and
GLASSBOX_SCREENSHOTS to a folder for the pictures of the README. Skipped, with the reason, where
there is no browser, unless GLASSBOX_REQUIRE_BROWSER is set, as in CI: then they fail.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

REQUIRED = bool(os.environ.get("GLASSBOX_REQUIRE_BROWSER"))
if REQUIRED:
    import playwright.sync_api as sync_api
else:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 600  # a first start may have to fetch the model
STOP_SECONDS = 30
ANSWER_MS = 120_000
# What Gradio's client says when a page is left or reloaded while it still listens to the server.
LEAVING = ("AbortError: signal is aborted", "Connection errored out")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def browser_path() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    found = (shutil.which(name) for name in names)
    return os.environ.get("GLASSBOX_CHROMIUM") or next(filter(None, found), None)


@dataclass
class Server:
    """A running Glassbox."""

    url: str
    data: Path
    process: subprocess.Popen[str]


@dataclass
class Watch:
    """What a page did that it should not: console errors, dialogs, requests to elsewhere."""

    host: str
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def attach(self, page) -> None:
        page.on("console", lambda m: m.type == "error" and self._note(m.text))
        page.on("pageerror", lambda error: self._note(str(error)))
        page.on("dialog", self._dismiss)
        page.on("request", self._check)

    def _note(self, error: str) -> None:
        if not any(words in error for words in LEAVING):
            self.errors.append(error)

    def _dismiss(self, dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _check(self, request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc != self.host:
            self.elsewhere.append(request.url)


@pytest.fixture(scope="session")
def browser():
    path = browser_path()
    if path is None:
        without = pytest.fail if REQUIRED else pytest.skip
        without("no browser: install chromium or set GLASSBOX_CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(browser, tmp_path_factory) -> Iterator[Server]:
    """`python app.py serve` in a process of its own, stopped like a person stops it."""
    data = tmp_path_factory.mktemp("data")
    log = tmp_path_factory.mktemp("log") / "server.log"
    model = os.environ.get("GLASSBOX_TEST_MODEL", "smollm2")
    command = [sys.executable, str(ROOT / "app.py"), "serve", "--model", model]
    command += ["--data", str(data), "--port", str(_free_port())]
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, text=True, cwd=data)
        try:
            yield Server(_wait_until_ready(process, log), data, process)
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                pytest.fail(f"the server did not stop within {STOP_SECONDS} s")
    assert process.returncode == 0, log.read_text()[-2000:]
    assert "Traceback" not in log.read_text(), log.read_text()[-4000:]


@pytest.fixture
def new_page(browser, server) -> Iterator[Callable]:
    """Opens pages, each a browser session of its own; fails when one misbehaved."""
    watch = Watch(urlsplit(server.url).netloc)
    contexts = []

    def open_page(locale="en-US", width=1440, height=900, **context_options):
        size = {"width": width, "height": height}
        context = browser.new_context(locale=locale, viewport=size, **context_options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        watch.attach(page)
        page.goto(server.url)
        page.wait_for_selector("#question textarea")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert watch.dialogs == []
    assert watch.elsewhere == []
    assert watch.errors == []


@pytest.fixture
def page(new_page):
    return new_page()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_until_ready(process: subprocess.Popen[str], log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        for line in log.read_text().splitlines():
            if line.startswith("Glassbox is ready at "):
                return line.removeprefix("Glassbox is ready at ")
        if process.poll() is not None:
            pytest.fail(f"the server ended: {log.read_text()[-4000:]}")
        time.sleep(0.1)
    pytest.fail(f"the server was not ready within {START_SECONDS} s: {log.read_text()[-4000:]}")
