"""The page itself: graphs, refs, deep links, the token, keyboard, colours, screens."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.browser import WIDE, Watch, find_barriers, take_picture
from tests.web.served import Site, serving

WEB = Path(__file__).parents[2] / "src" / "omnigraph" / "web"


def test_one_graph_is_shown_at_once(page: Page, site: Site) -> None:
    page.goto(site.url)
    expect(page.get_by_role("heading", name="library")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("Paper.*60"))).to_be_visible()
    expect(page).to_have_title("Overview · library · OmniGraph")
    take_picture(page, "overview")


def test_a_ref_is_chosen_by_branch_tag_commit_and_time(page: Page, site: Site) -> None:
    page.goto(site.at("overview"))
    picker = page.get_by_role("button", name=re.compile("^Ref:"))
    people = page.get_by_role("row", name=re.compile("Person"))
    expect(people).to_contain_text("30")
    picker.click()
    page.get_by_role("listbox").get_by_role("option", name=re.compile("^review")).click()
    expect(people).to_contain_text("31")
    assert "ref=review" in page.url
    picker.click()
    field = page.get_by_role("combobox", name="Branch, tag, commit, or time")
    field.fill("v1")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(picker).to_have_accessible_name("Ref: v1")
    picker.click()
    field.fill("people and")
    page.get_by_role("listbox").get_by_role("option").first.click()
    expect(page.get_by_role("row", name=re.compile("Paper"))).to_contain_text("0")
    picker.click()
    field.fill("main~1")
    page.keyboard.press("Enter")
    expect(picker).to_have_accessible_name("Ref: main~1")
    picker.click()
    page.get_by_label("As it was at").fill("2100-01-01T12:00:00")
    page.get_by_role("button", name="Go there").click()
    expect(picker).to_have_accessible_name(re.compile(r"Ref: main\*2100-01-01"))
    expect(people).to_contain_text("30")
    page.go_back()
    expect(picker).to_have_accessible_name("Ref: main~1")


def test_a_link_leads_to_the_same_state(page: Page, site: Site) -> None:
    page.goto(site.at("overview", ref="review"))
    expect(page.get_by_role("row", name=re.compile("Person"))).to_contain_text("31")
    page.reload()
    expect(page.get_by_role("row", name=re.compile("Person"))).to_contain_text("31")


def test_a_ref_that_is_not_there_is_said_in_words(page: Page, site: Site, watch: Watch) -> None:
    watch.expected.append("404")
    page.goto(site.at("overview", ref="nowhere"))
    expect(page.get_by_role("alert")).to_contain_text("nowhere")


def test_colours_are_chosen_and_kept(page: Page, site: Site) -> None:
    page.goto(site.at("overview"))
    page.get_by_role("button", name="Account").click()
    page.get_by_role("button", name="Dark", exact=True).click()
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.reload()
    assert page.evaluate(ground) == dark
    page.get_by_role("button", name="Account").click()
    page.get_by_role("button", name="Light", exact=True).click()
    assert page.evaluate(ground) != dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("wide", [1280, 400])
def test_nothing_is_in_the_way_of_anybody(page: Page, site: Site, scheme: str, wide: int) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": wide, "height": 800})
    page.goto(site.at("overview"))
    expect(page.get_by_role("heading", name="Types")).to_be_visible()
    take_picture(page, f"overview-{scheme}-{wide}")
    assert find_barriers(page) == []
    page.get_by_role("button", name=re.compile("^Ref:")).click()
    expect(
        page.get_by_role("listbox").get_by_role("option", name=re.compile("^review"))
    ).to_be_visible()
    take_picture(page, f"ref-{scheme}-{wide}")
    assert find_barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_keyboard_leads_everywhere(page: Page, site: Site) -> None:
    page.goto(site.at("overview"))
    expect(page.get_by_role("heading", name="Types")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    page.get_by_role("button", name=re.compile("^Ref:")).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("combobox", name=re.compile("^Branch"))).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name=re.compile("^Ref:"))).to_be_focused()


def test_a_token_is_asked_for_and_forgotten(browser: Browser, site: Site, tmp_path: Path) -> None:
    with (
        serving(site.root, tmp_path, roles=("reader",)) as guarded,
        browser.new_context(viewport=WIDE) as context,
    ):
        page = context.new_page()
        watch = Watch(guarded.url, expected=["401"])
        watch.on(page)
        page.goto(guarded.at("overview", ref="review"))
        page.get_by_label("Token").fill("ogt_wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_have_text("The server does not know this token.")
        assert find_barriers(page) == []
        take_picture(page, "sign-in")
        page.get_by_label("Token").fill(guarded.tokens["reader"])
        page.keyboard.press("Enter")
        expect(page.get_by_role("row", name=re.compile("Person"))).to_contain_text("31")
        page.reload()
        page.get_by_role("button", name="Account").click()
        expect(page.get_by_text("Signed in as reader")).to_be_visible()
        page.get_by_role("button", name="Forget the token").click()
        expect(page.get_by_label("Token")).to_be_visible()
        watch.check()


def test_the_command_opens_a_browser_on_a_free_port(site: Site, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "omnigraph", "web", site.root],
        stderr=subprocess.PIPE,
        text=True,
        env={"BROWSER": str(browser), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    try:
        assert process.stderr is not None
        told = process.stderr.readline()
        address = told.split()[-1]
        while not opened.exists():
            assert process.poll() is None, told + process.stderr.read()
        assert opened.read_text().strip() == address
        with urllib.request.urlopen(address) as answer:
            assert b"<title>OmniGraph</title>" in answer.read()
    finally:
        process.terminate()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def test_every_text_stands_in_one_file_and_is_used() -> None:
    """A name of a text that is not there is an error in the console, which every test looks for.
    Here: no text is left over, and views hold none of their own."""
    texts = (WEB / "core" / "texts.js").read_text(encoding="utf-8")
    sources = {
        path: re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for path in WEB.rglob("*.js")
        if "vendor" not in path.parts and path.name != "texts.js"
    }
    everything = "\n".join(sources.values())
    names = re.findall(r"^\s+(\w+): \"", texts, re.MULTILINE)
    made = [
        re.compile(rf"{begin}\w+{end}")
        for begin, end in re.findall(r"t\(`\w+\.(\w*)\$\{[^}]*\}(\w*)`", everything)
        if begin or end
    ]
    unused = [
        name
        for name in names
        if not re.search(rf"\b{name}\b", everything)
        and not any(pattern.fullmatch(name) for pattern in made)
    ]
    assert unused == []
    own = re.compile(r"\bh\(\s*\"[\w.]+\",\s*(?:\{[^{}]*\},\s*)?\"[A-Z][a-z]+ ?[^\"]*\"")
    found = {path.name: own.findall(text) for path, text in sources.items()}
    assert {name: texts for name, texts in found.items() if texts} == {}
