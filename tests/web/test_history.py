"""The past: commits with their lanes, filters, what a commit changed, and the graph as it grew."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.web.browser import find_barriers, take_picture
from tests.web.served import Site
from tests.web.test_look import ids, settled


def test_commits_have_lanes_and_say_what_they_changed(page: Page, site: Site) -> None:
    page.goto(site.at("history"))
    rows = page.get_by_role("list", name="Commits").get_by_role("listitem")
    expect(rows).to_have_count(5)
    page.get_by_role("button", name="All branches").click()
    expect(rows).to_have_count(7)
    lanes = rows.locator("circle").evaluate_all(
        "all => new Set(all.map(one => one.cx.baseVal.value)).size"
    )
    assert lanes == 2
    rows.filter(has_text="A better title").get_by_role("link").click()
    told = page.get_by_role("complementary", name="The commit")
    expect(told.locator("del")).to_contain_text("proteins")
    expect(told.locator("ins")).to_have_text("On the nature of graphs")
    take_picture(page, "history")
    assert find_barriers(page) == []
    page.reload()
    expect(told.locator("ins")).to_have_text("On the nature of graphs")
    told.get_by_role("link", name="Compare with before").click()
    expect(page.get_by_text("changed 1")).to_be_visible()


def test_commits_are_filtered_by_who_kind_and_time(page: Page, site: Site) -> None:
    page.goto(site.at("history", all="1"))
    rows = page.get_by_role("list", name="Commits").get_by_role("listitem")
    expect(rows).to_have_count(7)
    page.get_by_label("Who").fill("eve")
    expect(rows).to_have_count(2)
    page.get_by_label("Who").fill("")
    page.get_by_label("Kind").select_option("queries")
    expect(rows).to_have_count(1)
    page.reload()
    expect(rows).to_have_count(1)
    page.get_by_label("Kind").select_option("")
    page.get_by_label("Until").fill("2020-01-01")
    expect(page.get_by_text("No commit is like that.")).to_be_visible()


def test_one_watches_the_graph_grow(page: Page, site: Site) -> None:
    page.goto(site.at("history", tab="growth"))
    settled(page)
    slider = page.get_by_role("slider", name="Commit")
    assert any(one.startswith("Paper") for one in ids(page))
    slider.focus()
    page.keyboard.press("Home")
    expect(page.get_by_text(re.compile("1/5"))).to_be_visible()
    page.wait_for_function("() => document.querySelector('.canvas').ariaLabel.includes(' 0 nodes')")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text(re.compile("2/5"))).to_be_visible()
    page.wait_for_function(
        "() => !document.querySelector('.canvas').ariaLabel.includes(' 0 nodes')"
    )
    assert {one.split()[0] for one in ids(page)} == {"Person", "Venue"}
    page.get_by_role("button", name="A query").click()
    page.get_by_label("Query").fill("match { $x: Paper } return { count($x) as papers }")
    answer = page.get_by_role("grid", name="Query").get_by_role("gridcell")
    expect(answer).to_have_text("0")
    page.get_by_role("button", name="Play").click()
    expect(answer).to_have_text("60")
    expect(page.get_by_role("button", name="Play")).to_be_visible()


@pytest.mark.parametrize("wide", [1280, 400])
def test_the_past_is_open_to_everybody(page: Page, site: Site, wide: int) -> None:
    page.set_viewport_size({"width": wide, "height": 800})
    page.emulate_media(color_scheme="dark")
    page.goto(site.at("history", all="1"))
    expect(page.get_by_role("list", name="Commits")).to_be_visible()
    take_picture(page, f"history-{wide}")
    assert find_barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
