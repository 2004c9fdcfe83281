"""Chromium, what a page of it must never do, and what axe finds on it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Page,
    Request,
    ViewportSize,
    sync_playwright,
)

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
PICTURES = os.environ.get("OMNIGRAPH_PICTURES", "")
"""A directory for pictures of what the tests see; without it none are made."""
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
WIDE: ViewportSize = {"width": 1280, "height": 800}
NARROW: ViewportSize = {"width": 400, "height": 800}


def find_chromium() -> str:
    """Without it the page is not tested, and that must not look like success."""
    named = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if named is None or not Path(named).exists():
        pytest.fail(
            "The tests of the web page need Chromium, which is not on this machine. Install it "
            "(Debian: apt-get update && apt-get install -y chromium), or name one: "
            "CHROMIUM=/path/to/chromium.",
            pytrace=False,
        )
    return named


@contextmanager
def chromium() -> Iterator[Browser]:
    path = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Watch:
    """What went wrong on a page. `expected` are parts of messages that a test brings about,
    `friends` other servers that it visits."""

    origin: str
    friends: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def on(self, page: Page) -> None:
        page.on("console", self._told)
        page.on("pageerror", lambda error: self.wrong.append(f"uncaught: {error}"))
        page.on("request", self._asked)

    def _told(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    def _asked(self, request: Request) -> None:
        parts = urlsplit(request.url)
        self.requests.append(f"{request.method} {parts.path}")
        local = parts.scheme in ("data", "blob")
        if not local and f"{parts.scheme}://{parts.netloc}" not in (self.origin, *self.friends):
            self.elsewhere.append(request.url)

    def check(self) -> None:
        """No error in the console, and no request to anybody else."""
        unexpected = [one for one in self.wrong if not any(part in one for part in self.expected)]
        assert not unexpected, "\n".join(unexpected)
        assert not self.elsewhere, self.elsewhere


def find_barriers(page: Page) -> list[str]:
    """What axe calls serious or critical for people who see, hear or move otherwise."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("async () => (await axe.run(document)).violations")
    return [
        f"{one['impact']} {one['id']}: {one['help']}\n    "
        + "\n    ".join(f"{node['target']} {node['failureSummary']}" for node in one["nodes"][:4])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def take_picture(page: Page, name: str) -> None:
    """For those who look at the page, and for the guide."""
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{PICTURES}/{name}.png", animations="disabled")
