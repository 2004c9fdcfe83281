"""The entities of a type: browsed, filtered, sorted, edited, and imported from a file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import omnigraph
from tests.web.browser import Watch, find_barriers, take_picture
from tests.web.served import Site


def test_a_type_is_browsed_filtered_and_sorted(page: Page, site: Site) -> None:
    page.goto(site.at("data"))
    page.get_by_label("Type").select_option("Paper")
    grid = page.get_by_role("grid", name="Paper")
    expect(grid).to_have_attribute("aria-rowcount", "61")
    first = grid.get_by_role("row").nth(1)
    grid.get_by_role("button", name="year").click()
    expect(first).to_contain_text("1990")
    grid.get_by_role("button", name="year").click()
    expect(first).to_contain_text("2018")
    expect(grid.get_by_role("columnheader", name="year")).to_have_attribute(
        "aria-sort", "descending"
    )
    page.get_by_role("button", name="Filter").click()
    page.get_by_label("Property").select_option("title")
    page.get_by_label("Test").select_option("contains")
    page.get_by_label("Value").fill("graphs")
    page.get_by_role("button", name="Only these").click()
    expect(page.get_by_text("8 rows")).to_be_visible()
    expect(grid).to_have_attribute("aria-rowcount", "9")
    take_picture(page, "data")
    page.reload()
    expect(first).to_contain_text("2018")
    expect(grid).to_have_attribute("aria-rowcount", "9")
    page.get_by_role("button", name="Take away this condition").click()
    expect(page.get_by_text("60 rows")).to_be_visible()


def test_edges_are_browsed_too(page: Page, site: Site) -> None:
    page.goto(site.at("data/AppearedIn"))
    grid = page.get_by_role("grid", name="AppearedIn")
    expect(grid).to_have_attribute("aria-rowcount", "61")
    grid.get_by_role("button", name="page").click()
    expect(grid.get_by_role("row").nth(1)).to_contain_text("Journal of Graphs")


def test_an_entity_is_edited_on_the_branch_that_is_shown(
    page: Page, own: Site, watch: Watch
) -> None:
    watch.expected.append("422")
    page.goto(own.at("data/Paper", ref="review"))
    page.get_by_role("row", name=re.compile("1000.3 ")).click()
    window = page.get_by_role("dialog", name="Edit")
    expect(window.get_by_label("doi")).to_be_disabled()
    window.get_by_label("title").fill("Three")
    window.get_by_label("year").fill("99999")
    window.get_by_role("button", name="Save to review").click()
    expect(window.get_by_role("alert")).to_contain_text("2100")
    assert find_barriers(page) == []
    window.get_by_label("year").fill("2021")
    window.get_by_label("Message of the commit").fill("Three, anew")
    window.get_by_role("button", name="Save to review").click()
    expect(page.get_by_text("Saved to review.")).to_be_visible()
    page.get_by_role("button", name="year").click()
    page.get_by_role("button", name="year").click()
    expect(page.get_by_role("row").nth(1)).to_contain_text("Three")
    with omnigraph.open(own.root, mode="r") as g:
        found = g.at("review").entity("Paper", "10.1000/3")
        assert found is not None
        assert (found["title"], found["year"]) == ("Three", 2021)
        assert g.at("review").commit.message == "Three, anew"
        untouched = g.entity("Paper", "10.1000/3")
        assert untouched is not None
        assert untouched["title"] != "Three"


def test_a_file_is_tried_before_it_comes_in(page: Page, own: Site, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("name,born\nNew One,1990\nAda Abe,1901\nBad One,x\n")
    page.goto(own.at("data/Person"))
    page.get_by_role("button", name="Import").click()
    window = page.get_by_role("dialog", name="Import")
    window.get_by_label("File").set_input_files(file)
    window.get_by_label("Type").select_option("Person")
    window.get_by_role("button", name="Show what it would change").click()
    expect(window.get_by_text("Refused rows: 1")).to_be_visible()
    expect(window.get_by_role("grid", name="Refused rows")).to_contain_text("born")
    expect(window.get_by_text("added 1")).to_be_visible()
    expect(window.get_by_text("changed 1")).to_be_visible()
    take_picture(page, "import")
    assert find_barriers(page) == []
    with omnigraph.open(own.root, mode="r") as g:
        assert g.count("Person") == 30
        assert len(g.branches()) == 4
    window.get_by_role("button", name="Bring it to main").click()
    expect(page.get_by_role("grid", name="Person")).to_have_attribute("aria-rowcount", "32")
    with omnigraph.open(own.root, mode="r") as g:
        assert g.count("Person") == 31
        assert len(g.branches()) == 3
    page.get_by_role("button", name="Import").click()
    window.get_by_label("File").set_input_files(file)
    window.get_by_label("Type").select_option("Person")
    window.get_by_role("button", name="Show what it would change").click()
    expect(window.get_by_text("Refused rows: 1")).to_be_visible()
    with page.expect_response(lambda one: one.request.method == "DELETE"):
        window.get_by_role("button", name="Cancel").click()
    with omnigraph.open(own.root, mode="r") as g:
        assert len(g.branches()) == 3


@pytest.mark.parametrize("wide", [1280, 400])
def test_data_is_open_to_everybody(page: Page, site: Site, wide: int) -> None:
    page.set_viewport_size({"width": wide, "height": 800})
    page.emulate_media(color_scheme="dark")
    page.goto(site.at("data/Paper"))
    expect(page.get_by_role("grid", name="Paper")).to_contain_text("10.1000/1")
    take_picture(page, f"data-{wide}")
    assert find_barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
