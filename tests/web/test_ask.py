"""Asking: the editor, parameters, history, stored queries, answers in four forms, downloads."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Page, expect

from tests.web.browser import Watch, find_barriers, take_picture
from tests.web.library import QUERIES
from tests.web.served import Site

PROLIFIC = (
    "match { $p: Person $p wrote $x } return { $p.name as author, count($x) as papers } "
    "order { papers desc, author }"
)


def write(page: Page, text: str) -> None:
    """Replaces what stands in the editor, as a person would who pastes."""
    content = page.get_by_role("textbox", name="Query")
    content.click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(text)


def test_a_query_is_written_completed_run_and_shown_as_a_table(page: Page, site: Site) -> None:
    page.goto(site.at("ask"))
    write(page, "match { $p: ")
    page.keyboard.type("Per")
    page.get_by_role("option", name=re.compile("^Person")).click()
    page.keyboard.insert_text(" $p ")
    page.keyboard.type("wr")
    page.get_by_role("option", name=re.compile("^wrote")).click()
    page.keyboard.insert_text(" $x } return { $p.")
    page.keyboard.press("Control+Space")
    expect(page.get_by_role("option", name=re.compile("^born"))).to_be_visible()
    page.get_by_role("option", name=re.compile("^name")).click()
    page.keyboard.insert_text(" as author, count($x) as papers } order { papers desc, author }")
    page.keyboard.press("Control+Enter")
    grid = page.get_by_role("grid", name="Table")
    expect(grid.get_by_role("row").nth(1)).to_have_text(re.compile(r"Edsger Dahl\s*11"))
    expect(grid).to_have_attribute("aria-rowcount", "29")
    expect(page.get_by_text("28 rows")).to_be_visible()
    take_picture(page, "ask")
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    expect(grid.get_by_role("row").nth(1)).to_have_text(re.compile("Edsger Dahl"))


def test_mistakes_are_underlined_where_the_checker_says(
    page: Page, site: Site, watch: Watch
) -> None:
    watch.expected.append("422")
    page.goto(site.at("ask"))
    write(page, "match { $x: Papr } return { $x.title }")
    wrong = page.locator(".cm-lintRange-error")
    expect(wrong).to_have_text("Papr")
    wrong.hover()
    expect(page.get_by_text("did you mean `Paper`?")).to_be_visible()
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("alert")).to_contain_text("there is no node type `Papr`")
    write(page, 'match { $x: Paper { doi: "😀" } $x.yea > 1 } return { $x.title }')
    expect(wrong).to_have_text("yea")


def test_parameters_are_a_form_and_queries_are_stored(page: Page, site: Site) -> None:
    page.goto(site.at("ask"))
    page.get_by_role("button", name="Stored").click()
    page.get_by_role("button", name=re.compile("^since")).click()
    year = page.get_by_label("$year")
    year.fill("2015")
    page.get_by_role("button", name="Run").click()
    grid = page.get_by_role("grid", name="Table")
    expect(grid.get_by_role("row").nth(1)).to_contain_text("2018")
    first = page.get_by_role("status").filter(has_text="rows")
    expect(first).to_be_visible()
    page.reload()
    expect(year).to_have_value("2015")
    expect(grid.get_by_role("row").nth(1)).to_contain_text("2018")
    year.fill("")
    page.get_by_role("button", name="Asked before").click()
    expect(page.get_by_role("dialog").get_by_role("button")).to_have_count(1)
    assert find_barriers(page) == []


def test_an_answer_is_a_graph_json_and_a_plan(page: Page, site: Site) -> None:
    text = "match { $p: Person $p wrote $x $x cites $y } return { $p, $x, $y } limit 12"
    page.goto(site.at("ask", q=text, run="1"))
    expect(page.get_by_text("12 rows")).to_be_visible()
    page.get_by_role("tab", name="Graph").click()
    drawn = page.get_by_role("img", name=re.compile("nodes and .* edges"))
    expect(drawn).to_have_attribute("aria-label", re.compile(r"^\d+ nodes and [1-9]\d* edges"))
    page.wait_for_timeout(400)
    take_picture(page, "ask-graph")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("region", name="JSON")).to_contain_text('"@id": "')
    page.get_by_role("tab", name="Plan").click()
    expect(page.get_by_role("region", name="Plan")).to_contain_text("expand $p -[Wrote]-> $x")
    page.get_by_role("button", name="Run it and measure").click()
    expect(page.get_by_role("region", name="Plan")).to_contain_text(" ms)")
    assert "tab=plan" in page.url
    page.reload()
    expect(page.get_by_role("region", name="Plan")).to_contain_text("expand")


@pytest.mark.parametrize("form", ["CSV", "JSON Lines", "Arrow"])
def test_an_answer_is_downloaded_with_all_of_its_rows(
    page: Page, site: Site, tmp_path: Path, form: str
) -> None:
    page.goto(site.at("ask", q=PROLIFIC, run="1"))
    page.get_by_role("button", name="Download").click()
    with page.expect_download() as waited:
        page.get_by_role("button", name=form).click()
    file = tmp_path / waited.value.suggested_filename
    waited.value.save_as(file)
    match form:
        case "CSV":
            rows = [*csv.DictReader(file.read_text().splitlines())]
        case "JSON Lines":
            rows = [json.loads(line) for line in file.read_text().splitlines()]
        case _:
            rows = pa.ipc.open_stream(file.read_bytes()).read_all().to_pylist()
    assert len(rows) == 28
    assert (rows[0]["author"], int(rows[0]["papers"])) == ("Edsger Dahl", 11)


def test_more_rows_than_a_page_are_loaded_when_wanted(page: Page, site: Site) -> None:
    text = (
        "match { $a: Paper $b: Paper $c: Venue $a.year >= $b.year } "
        "return { $a.doi, $b.doi, $c.name }"
    )
    page.goto(site.at("ask", q=text, run="1"))
    expect(page.get_by_text("1,000 rows")).to_be_visible()
    expect(page.get_by_text("and more")).to_be_visible()
    grid = page.get_by_role("grid", name="Table")
    page.get_by_role("button", name="Load all rows").click()
    expect(page.get_by_text("and more")).to_be_hidden()
    rows = int(grid.get_attribute("aria-rowcount") or 0) - 1
    assert rows > 5_000
    grid.focus()
    page.keyboard.press("End")
    expect(grid.locator(f'[aria-rowindex="{rows + 1}"]')).to_be_visible()
    assert grid.get_by_role("row").count() < 60


def test_a_change_is_made_only_when_it_is_agreed_to(page: Page, own: Site) -> None:
    page.goto(own.at("ask"))
    write(page, 'insert Person { name: "Zoe Zeller", born: 2001 }')
    change = page.get_by_role("button", name="Change main")
    change.click()
    page.get_by_role("button", name="Cancel").click()
    change.click()
    page.get_by_role("dialog").get_by_role("button", name="Change main").click()
    expect(page.get_by_text("Changed: 1 nodes")).to_be_visible()
    write(page, "match { $p: Person } return { count($p) as people }")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("grid", name="Table")).to_contain_text("31")


@pytest.mark.parametrize("wide", [1280, 400])
def test_asking_is_open_to_everybody(page: Page, site: Site, wide: int) -> None:
    page.set_viewport_size({"width": wide, "height": 800})
    page.emulate_media(color_scheme="dark" if wide == 400 else "light")
    page.goto(site.at("ask", q=QUERIES["prolific"], run="1"))
    expect(page.get_by_role("grid", name="Table")).to_contain_text("Edsger Dahl")
    take_picture(page, f"ask-{wide}")
    assert find_barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
