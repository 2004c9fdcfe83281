"""Two refs side by side, and a merge that is reviewed before anything is written."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

import omnigraph
from tests.web.browser import Watch, find_barriers, take_picture
from tests.web.served import Site
from tests.web.test_look import ids, settled


def test_two_refs_are_compared_as_a_list_and_on_a_drawing(page: Page, site: Site) -> None:
    page.goto(site.at("compare"))
    expect(page.get_by_text("Choose two refs that differ.")).to_be_visible()
    page.get_by_role("button", name="After: main").click()
    page.get_by_role("listbox").get_by_role("option", name=re.compile("^review")).click()
    expect(page.get_by_text("added 1")).to_be_visible()
    expect(page.get_by_text("changed 2")).to_be_visible()
    expect(page.get_by_text("Mina Novak").first).to_be_visible()
    expect(page.get_by_role("cell", name="2020")).to_be_visible()
    assert find_barriers(page) == []
    page.get_by_label("Change", exact=True).select_option("insert")
    expect(page.get_by_role("cell", name="2020")).to_be_hidden()
    page.get_by_label("Change", exact=True).select_option("")
    page.get_by_role("tab", name="Drawing").click()
    settled(page)
    assert ids(page, ".added") == {"Person Mina Novak"}
    assert ids(page, ".changed") == {"Paper 10.1000/29", "Paper 10.1000/30"}
    take_picture(page, "compare")
    page.get_by_role("button", name="The other way round").click()
    expect(page.get_by_text("removed 1")).to_be_visible()
    settled(page)
    assert ids(page, "node.removed") == {"Person Mina Novak"}
    page.reload()
    settled(page)
    assert ids(page, "node.removed") == {"Person Mina Novak"}


def heads(site: Site) -> dict[str, str]:
    with omnigraph.open(site.root, mode="r") as g:
        return {name: g.at(name).commit.id for name in g.branches()}


def test_a_conflict_is_settled_and_only_then_merged(page: Page, own: Site) -> None:
    before = heads(own)
    page.goto(own.at("compare", new="review", tab="merge"))
    card = page.get_by_role("listitem").filter(has_text="DivergentUpdate")
    expect(card).to_contain_text("The nature of graphs")
    merge = page.get_by_role("button", name="Merge review into main")
    expect(merge).to_be_disabled()
    card.get_by_role("button", name="Take review").click()
    expect(page.get_by_text("Everything is chosen.")).to_be_visible()
    card.get_by_role("button", name="Another value").click()
    card.get_by_label("The value").fill("What graphs are")
    take_picture(page, "merge")
    assert find_barriers(page) == []
    page.get_by_label("Message of the commit").fill("Titles")
    assert heads(own) == before
    merge.click()
    expect(page.get_by_text("review is merged into main.")).to_be_visible()
    with omnigraph.open(own.root, mode="r") as g:
        paper = g.entity("Paper", "10.1000/29")
        assert paper is not None
        assert paper["title"] == "What graphs are"
        assert g.entity("Person", "Mina Novak") is not None
        assert g.commit.message == "Titles"


def test_one_choice_settles_many_conflicts(page: Page, own: Site) -> None:
    with omnigraph.open(own.root) as g:
        for n in range(5):
            for branch, year in (("main", 2001), ("later", 2002)):
                g.branch(branch).mutate(
                    f'update Paper set {{ year: {year} }} where doi = "10.1000/{n}"'
                )
        g.branch("later").mutate('delete Venue where name = "Open Systems"')
    page.goto(own.at("compare", new="later", tab="merge"))
    bulk = page.get_by_role("list", name="One choice for many")
    line = bulk.get_by_role("listitem").filter(has_text="Paper.year")
    if not line.count():
        line = bulk.get_by_role("listitem").filter(has_text="All conflicts")
    line.get_by_role("button", name="Take later").click()
    remaining = page.get_by_text(re.compile("^Still to choose|^Everything"))
    expect(remaining).to_be_visible()
    if "Still" in remaining.inner_text():
        bulk.get_by_role("button", name="Take later").first.click()


def test_a_reader_sees_the_review_but_no_button(page: Page, site: Site, watch: Watch) -> None:
    page.route(
        "**/may?action=merge*",
        lambda route: route.fulfill(json={"action": "merge", "branch": "main", "allowed": False}),
    )
    page.goto(site.at("compare", new="review", tab="merge"))
    expect(page.get_by_text("You may not merge into this branch.")).to_be_visible()
    expect(page.get_by_role("button", name="Merge review into main")).to_be_hidden()


@pytest.mark.parametrize("wide", [1280, 400])
def test_comparing_is_open_to_everybody(page: Page, site: Site, wide: int) -> None:
    page.set_viewport_size({"width": wide, "height": 800})
    page.emulate_media(color_scheme="dark")
    page.goto(site.at("compare", new="review", tab="merge"))
    expect(page.get_by_text("Conflicts: 1")).to_be_visible()
    take_picture(page, f"merge-{wide}")
    assert find_barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
