"""The schema: a picture, a text, and a change that is seen before it is made."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.web.browser import find_barriers, take_picture
from tests.web.served import Site


def write(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="The new schema").click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(text)


def test_the_schema_is_a_picture_and_a_text(page: Page, site: Site) -> None:
    page.goto(site.at("schema"))
    picture = page.get_by_role("img", name=re.compile("3 node types and 3 edge types"))
    expect(picture).to_be_visible()
    types = page.get_by_role("list", name="Types").get_by_role("listitem")
    expect(types.filter(has_text="Wrote")).to_contain_text("Person → Paper")
    page.wait_for_timeout(300)
    take_picture(page, "schema")
    page.get_by_role("tab", name="Text").click()
    expect(page.get_by_role("textbox", name="Text")).to_contain_text("node Paper {")
    assert "tab=text" in page.url


def test_a_change_is_planned_before_it_is_made(page: Page, own: Site) -> None:
    page.goto(own.at("schema", tab="change"))
    editor = page.get_by_role("textbox", name="The new schema")
    expect(editor).to_contain_text("born: I32?")
    text = editor.evaluate("one => one.innerText")
    write(page, text.replace("born: I32?", "email: String?"))
    page.get_by_role("button", name="Show what it would do").click()
    steps = page.get_by_role("list").filter(has_text="Person.born").get_by_role("listitem")
    expect(steps.filter(has_text="drop property Person.born")).to_contain_text("loses data")
    expect(steps.filter(has_text="add property Person.email")).to_contain_text("safe")
    take_picture(page, "schema-plan")
    assert find_barriers(page) == []
    apply = page.get_by_role("button", name="Apply to main")
    expect(apply).to_be_disabled()
    page.get_by_label("I agree").check()
    page.get_by_label("Message of the commit").fill("Addresses")
    apply.click()
    expect(page.get_by_text("The schema of main has changed.")).to_be_visible()
    page.get_by_role("tab", name="Text").click()
    expect(page.get_by_role("textbox", name="Text")).to_contain_text("email: String?")


def test_mistakes_in_a_schema_are_underlined(page: Page, site: Site) -> None:
    page.goto(site.at("schema", tab="change"))
    write(page, "node Person { name: Sting @key }")
    expect(page.locator(".cm-lintRange-error")).to_have_text("Sting")


@pytest.mark.parametrize("wide", [1280, 400])
def test_the_schema_is_open_to_everybody(page: Page, site: Site, wide: int) -> None:
    page.set_viewport_size({"width": wide, "height": 800})
    page.emulate_media(color_scheme="dark")
    page.goto(site.at("schema"))
    expect(page.get_by_role("list", name="Types")).to_be_visible()
    take_picture(page, f"schema-{wide}")
    assert find_barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
