"""Looking: the drawing, its tools, and what is told of an entity."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Page, expect

from tests.web.browser import find_barriers, take_picture
from tests.web.served import Site

CANVAS = "document.querySelector('.canvas')._cyreg.cy"


def place_of(page: Page, type: str, id: str) -> dict[str, float]:
    """Where a node is on the screen. A drawing has no elements that one could ask."""
    found: dict[str, float] = page.evaluate(
        f"""([type, id]) => {{
            const cy = {CANVAS};
            const at = cy.$id(`${{type}} ${{id}}`).renderedPosition();
            const box = cy.container().getBoundingClientRect();
            return {{ x: box.x + at.x, y: box.y + at.y }};
        }}""",
        [type, id],
    )
    return found


def ids(page: Page, selector: str = "node") -> set[str]:
    """What is drawn and not hidden."""
    found: list[str] = page.evaluate(
        f"""selector => {CANVAS}.elements(selector)
            .filter(one => !one.hasClass('gone')).map(one => one.id())""",
        selector,
    )
    return set(found)


def settled(page: Page) -> None:
    """Until something is drawn, and no node moves any more."""
    page.wait_for_function(
        "() => (document.querySelector('.canvas')?._cyreg?.cy.nodes().length ?? 0) > 0"
    )
    places = f"JSON.stringify({CANVAS}.nodes().map(one => one.position()))"
    before = ""
    while before != (now := page.evaluate(places)):
        before = now
        page.wait_for_timeout(150)


def at_paper(page: Page, site: Site, id: str = "10.1000/29", **params: str) -> None:
    page.goto(site.at(f"look/Paper/{id.replace('/', '%2F')}", **params))
    expect(page.get_by_role("region", name="About the entity")).to_be_visible()
    settled(page)


def test_some_of_the_graph_is_drawn_and_it_is_said_how_much(page: Page, site: Site) -> None:
    page.goto(site.at("look"))
    expect(page.get_by_text(re.compile(r"^\d+ of 93 nodes shown"))).to_be_visible()
    settled(page)
    legend = page.get_by_role("group", name="Types")
    expect(legend.get_by_role("button")).to_have_count(3)
    sizes: list[Any] = page.evaluate(
        f"{CANVAS}.nodes().map(one => [one.degree(false), one.width()])"
    )
    smallest, largest = min(sizes), max(sizes)
    assert smallest[0] < largest[0]
    assert smallest[1] < largest[1]
    colours = page.evaluate(
        f"{CANVAS}.nodes().map(one => [one.data('type'), one.style('background-color')].join())"
    )
    assert len(set(colours)) == 3
    take_picture(page, "look")


def test_a_node_is_expanded_by_a_double_click_and_it_is_undone(page: Page, site: Site) -> None:
    at_paper(page, site)
    before = ids(page)
    assert "Paper 10.1000/29" in before
    place = place_of(page, "Venue", "Open Systems")
    page.mouse.dblclick(place["x"], place["y"])
    expect(page.get_by_text(re.compile("^New here: "))).to_be_visible()
    settled(page)
    assert ids(page) > before
    page.get_by_role("button", name="Undo").click()
    assert ids(page) == before
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()


def test_nodes_are_pinned_hidden_and_filtered(page: Page, site: Site) -> None:
    at_paper(page, site)
    page.get_by_role("button", name="Pin or free").click()
    expect(page.get_by_role("button", name="Undo")).to_be_enabled()
    assert ids(page, "node.pinned") == {"Paper 10.1000/29"}
    page.get_by_role("group", name="Types").get_by_role("button", name=re.compile("Person")).click()
    assert not {one for one in ids(page) if one.startswith("Person")}
    page.get_by_role("button", name="Undo").click()
    assert {one for one in ids(page) if one.startswith("Person")}
    page.get_by_role("button", name="Filter by a property").click()
    form = page.get_by_role("dialog", name="Filter by a property")
    form.get_by_label("Type").select_option("Paper")
    form.get_by_label("Property").select_option("year")
    form.get_by_label("Test").select_option(">")
    form.get_by_label("Value").fill("2010")
    form.get_by_role("button", name="Leave out the others").click()
    page.keyboard.press("Escape")
    years = page.evaluate(
        f"{CANVAS}.nodes('[type = \"Paper\"]').filter(one => !one.hasClass('gone'))"
        ".map(one => one.data('data').year)"
    )
    assert years
    assert min(years) > 2010
    page.get_by_role("button", name="Hide", exact=True).click()
    assert "Paper 10.1000/29" not in ids(page)
    shown = ids(page)
    page.reload()
    settled(page)
    assert ids(page) == shown


def test_a_way_leads_from_one_entity_to_another(page: Page, site: Site) -> None:
    at_paper(page, site)
    page.get_by_role("button", name="Way from here").click()
    listed = page.get_by_role("grid", name="Nodes in the drawing")
    listed.get_by_role("row", name=re.compile("Open Systems")).click()
    expect(page.get_by_text("The shortest way has 1 steps")).to_be_visible()
    assert ids(page, "edge.way")


def test_the_shortest_way_between_two_nodes_is_found(page: Page, site: Site) -> None:
    page.goto(site.at("look", n=json.dumps({"Person": ["Ada Bose", "Radia Ito"]})))
    expect(page.get_by_text("2 of 93 nodes shown")).to_be_visible()
    settled(page)
    a, b = place_of(page, "Person", "Ada Bose"), place_of(page, "Person", "Radia Ito")
    page.mouse.click(a["x"], a["y"])
    page.keyboard.down("Shift")
    page.mouse.click(b["x"], b["y"])
    page.keyboard.up("Shift")
    page.get_by_role("button", name="Shortest way between two").click()
    found = page.get_by_text(re.compile(r"The shortest way has \d+ steps"))
    expect(found).to_be_visible()
    steps = int(re.findall(r"\d+", found.inner_text())[0])
    assert len(ids(page, "node.way")) == steps + 1
    assert len(ids(page, "edge.way")) == steps
    settled(page)
    take_picture(page, "look-way")


def test_everything_of_an_entity_is_told(page: Page, site: Site) -> None:
    at_paper(page, site)
    told = page.get_by_role("region", name="About the entity")
    expect(told.get_by_role("heading", name="The nature of graphs")).to_be_visible()
    expect(told).to_contain_text("2018")
    take_picture(page, "look-entity")
    told.get_by_role("tab", name="Neighbours").click()
    expect(told.get_by_role("button", name=re.compile(r"Show 1 along AppearedIn"))).to_be_visible()
    before = ids(page)
    told.get_by_role("button", name=re.compile("along Wrote from Person")).click()
    expect(page.get_by_text("Everything around it is here already.")).to_be_visible()
    assert ids(page) == before
    told.get_by_role("tab", name="History").click()
    expect(told.get_by_text("Another title")).to_be_visible()
    expect(told.locator("del")).to_contain_text("proteins")
    expect(told.locator("ins")).to_have_text("The nature of graphs")
    assert find_barriers(page) == []
    told.get_by_role("tab", name="Blame").click()
    expect(told.get_by_text(re.compile("^bob, .*Another title"))).to_be_visible()
    assert "about=blame" in page.url
    page.reload()
    expect(told.get_by_text(re.compile("^bob, .*Another title"))).to_be_visible()


def test_the_same_nodes_are_seen_at_another_ref(page: Page, site: Site) -> None:
    at_paper(page, site)
    page.get_by_role("button", name=re.compile("^Ref:")).click()
    page.get_by_role("listbox").get_by_role("option", name=re.compile("^review")).click()
    told = page.get_by_role("region", name="About the entity")
    expect(told.get_by_role("heading", name="On the nature of graphs")).to_be_visible()
    assert parse_qs(page.url.partition("?")[2])["ref"] == ["review"]


def test_the_list_beside_the_drawing_is_for_the_keyboard(page: Page, site: Site) -> None:
    page.goto(site.at("look"))
    settled(page)
    listed = page.get_by_role("grid", name="Nodes in the drawing")
    listed.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="About the entity")).to_be_visible()
    page.get_by_role("button", name="Expand", exact=True).last.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile("^New here|already"))).to_be_visible()


@pytest.mark.parametrize("wide", [1280, 400])
def test_looking_is_open_to_everybody(page: Page, site: Site, wide: int) -> None:
    page.set_viewport_size({"width": wide, "height": 800})
    page.emulate_media(color_scheme="dark" if wide == 1280 else "light")
    at_paper(page, site)
    take_picture(page, f"look-{wide}")
    assert find_barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
