"""Searching: the box in every view, and all that was found."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.web.browser import find_barriers, take_picture
from tests.web.served import Site


def test_the_box_leads_from_words_to_the_drawing(page: Page, site: Site) -> None:
    page.goto(site.at("overview"))
    box = page.get_by_role("combobox", name="Search the graph")
    box.fill("nature")
    found = page.get_by_role("listbox", name="Search the graph").get_by_role("option")
    expect(found).to_contain_text(["The nature of graphs"])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    told = page.get_by_role("region", name="About the entity")
    expect(told.get_by_role("heading", name="The nature of graphs")).to_be_visible()


def test_passages_are_shown_and_types_chosen(page: Page, site: Site) -> None:
    page.goto(site.at("overview", ref="review"))
    box = page.get_by_role("combobox", name="Search the graph")
    box.fill("graphs")
    box.press("Enter")
    expect(page).to_have_url(re.compile("search.*text=graphs"))
    hits = page.get_by_role("main").get_by_role("listitem")
    expect(hits.filter(has_text="On the nature of graphs").locator("mark")).to_have_text("graphs")
    expect(page.get_by_text("8 found")).to_be_visible()
    take_picture(page, "search")
    page.get_by_role("button", name="Person").click()
    expect(page.get_by_text("Nothing was found")).to_be_visible()
    assert "in=Person" in page.url
    page.get_by_role("button", name="Person").click()
    page.get_by_role("link", name="Show all in graph").click()
    expect(page.get_by_text("8 of 94 nodes shown")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="Show in graph: 10.1000/29").click()
    told = page.get_by_role("region", name="About the entity")
    expect(told.get_by_role("heading", name="On the nature of graphs")).to_be_visible()


@pytest.mark.parametrize("wide", [1280, 400])
def test_searching_is_open_to_everybody(page: Page, site: Site, wide: int) -> None:
    page.set_viewport_size({"width": wide, "height": 800})
    page.goto(site.at("search", text="graphs"))
    expect(page.get_by_text("8 found")).to_be_visible()
    take_picture(page, f"search-{wide}")
    assert find_barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
