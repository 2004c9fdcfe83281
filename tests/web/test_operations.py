"""What is stored, long work with its progress, and what is measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import omnigraph
from tests.web.browser import WIDE, Watch, find_barriers, take_picture
from tests.web.served import Site, serving


def test_jobs_are_begun_and_watched(page: Page, own: Site) -> None:
    page.goto(own.at("operations"))
    expect(page.get_by_text("There are no jobs.")).to_be_visible()
    jobs = page.get_by_role("list", name="Jobs").get_by_role("listitem")
    page.get_by_role("button", name="Verify").click()
    expect(jobs.first).to_contain_text("Nothing is damaged.")
    page.get_by_role("button", name="What would optimize do?").click()
    expect(jobs.first).to_contain_text("optimize, only tried")
    expect(jobs.first).to_contain_text("done")
    jobs.first.get_by_role("button", name="Result").click()
    expect(page.get_by_role("dialog", name="optimize")).to_contain_text('"dry_run": true')
    page.keyboard.press("Escape")
    with omnigraph.open(own.root, mode="r") as g:
        before = g.commit.id
    page.get_by_role("button", name="Optimize", exact=True).click()
    expect(jobs).to_have_count(3)
    expect(jobs.first).to_contain_text(re.compile("done.*optimize"))
    with omnigraph.open(own.root, mode="r") as g:
        assert g.commit.id != before
    page.get_by_role("button", name="What would cleanup delete?").click()
    expect(jobs.first).to_contain_text(re.compile(r"It would delete \d+ files"))
    take_picture(page, "operations")
    assert find_barriers(page) == []
    page.reload()
    expect(jobs).to_have_count(4)


def test_storage_and_metrics_are_shown(page: Page, site: Site) -> None:
    page.goto(site.at("operations", tab="storage"))
    stored = page.get_by_role("region", name="By type")
    expect(stored.get_by_role("row", name=re.compile("^Paper"))).to_contain_text("60")
    indexes = page.get_by_role("region", name="Indexes")
    expect(indexes.get_by_role("row", name=re.compile("INVERTED"))).to_contain_text("title")
    page.get_by_role("tab", name="Metrics").click()
    plots = page.get_by_role("img", name=re.compile(r"^Requests a second: [\d.]+"))
    expect(plots).to_be_visible()
    expect(page.locator(".plot .line").first).to_be_attached()
    take_picture(page, "metrics")
    assert find_barriers(page) == []


ROLES = ("reader", "agent", "writer", "maintainer", "admin")


def test_what_a_role_may_not_is_not_offered(browser: Browser, site: Site, tmp_path: Path) -> None:
    """Every view, with a token of every role: nothing fails, and nothing is offered in vain."""
    with serving(site.root, tmp_path, roles=ROLES) as guarded:
        for role in ROLES:
            with browser.new_context(viewport=WIDE) as context:
                page = context.new_page()
                page.set_default_timeout(20_000)
                watch = Watch(guarded.url)
                watch.on(page)
                page.add_init_script(
                    f"sessionStorage.setItem('omnigraph.token', '{guarded.tokens[role]}')"
                )
                page.goto(guarded.at("operations"))
                expect(page.get_by_role("heading", name="Operations")).to_be_visible()
                maintains = role in ("maintainer", "admin")
                expect(page.get_by_role("button", name="Verify")).to_have_count(int(maintains))
                names = page.get_by_role("navigation", name="Views").get_by_role("link")
                for name in names.all_inner_texts():
                    page.get_by_role("link", name=name, exact=True).click()
                    expect(page.get_by_role("link", name=name, exact=True)).to_have_attribute(
                        "aria-current", "page"
                    )
                    page.wait_for_load_state("networkidle")
                    expect(page.get_by_role("alert")).to_have_count(0)
                page.goto(guarded.at("data/Paper"))
                page.get_by_role("row", name=re.compile("1000.3 ")).click()
                writes = role in ("writer", "maintainer", "admin")
                saves = page.get_by_role("dialog").get_by_role("button", name="Save to main")
                expect(saves).to_have_count(int(writes))
                page.goto(guarded.at("compare", new="review", tab="merge"))
                expect(page.get_by_text("Conflicts: 1")).to_be_visible()
                merges = page.get_by_role("button", name="Merge review into main")
                expect(merges).to_have_count(int(writes))
                watch.check()


@pytest.mark.parametrize("wide", [1280, 400])
def test_operations_are_open_to_everybody(page: Page, site: Site, wide: int) -> None:
    page.set_viewport_size({"width": wide, "height": 800})
    page.emulate_media(color_scheme="dark")
    page.goto(site.at("operations", tab="storage"))
    expect(page.get_by_role("region", name="By type")).to_be_visible()
    take_picture(page, f"operations-{wide}")
    assert find_barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
