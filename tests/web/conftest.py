"""One browser for all these tests, one server for each module, a fresh page for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.browser import NARROW, WIDE, Watch, chromium
from tests.web.library import make_library
from tests.web.served import Site, serving

expect.set_options(timeout=20_000)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The library, served to everybody on this machine."""
    folder = tmp_path_factory.mktemp("web")
    root = str(folder / "library")
    make_library(root).close()
    with serving(root, folder) as found:
        yield found


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Site]:
    """A library of this test alone, for tests that write."""
    root = str(tmp_path / "library")
    make_library(root).close()
    with serving(root, tmp_path) as found:
        yield found


@pytest.fixture
def watch(request: pytest.FixtureRequest) -> Watch:
    chosen = "own" if "own" in request.fixturenames else "site"
    found: Site = request.getfixturevalue(chosen)
    return Watch(found.url)


@pytest.fixture
def page(browser: Browser, watch: Watch) -> Iterator[Page]:
    """A page of its own, which must make no mistake and ask nobody else."""
    with browser.new_context(viewport=WIDE) as context:
        context.set_default_timeout(20_000)
        shown = context.new_page()
        watch.on(shown)
        yield shown
        watch.check()


@pytest.fixture
def narrow(page: Page) -> Page:
    page.set_viewport_size(NARROW)
    return page
