"""What a notebook shows, in a real browser without a network: it is drawn, it can be explored, and
no text of a graph does anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Frame, Page

from tests.unit.show.views import EVIL, make_people, views
from tests.web.browser import WIDE, take_picture

PICTURES = ("network", "graph", "without-edges", "schema")
SEES_COLOUR = """colour => {
    const [r, g, b] = colour.match(/\\w\\w/g).map(part => parseInt(part, 16));
    let found = 0;
    for (const canvas of document.querySelectorAll("canvas")) {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        for (let at = 0; at < data.length; at += 4)
            found += Math.abs(data[at] - r) + Math.abs(data[at + 1] - g)
                + Math.abs(data[at + 2] - b) < 9;
    }
    return found > 200;
}"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The views below each other, as a notebook has them."""
    folder = tmp_path_factory.mktemp("notebook")
    with make_people(str(folder / "people")) as g:
        shown = views(g)
    parts = (f'<section id="{name}"><h3>{name}</h3>{one}</section>' for name, one in shown.items())
    path = folder / "notebook.html"
    path.write_text(f'<!doctype html><meta charset="utf-8">{"".join(parts)}', encoding="utf-8")
    return path


@pytest.fixture
def page(browser: Browser, notebook: Path) -> Iterator[Page]:
    """Offline. Nothing may go wrong, open a dialog, or be asked for."""
    wrong: list[str] = []
    with browser.new_context(viewport=WIDE, offline=True) as context:
        shown = context.new_page()
        shown.on("console", lambda told: wrong.append(told.text))
        shown.on("pageerror", lambda error: wrong.append(str(error)))
        shown.on("dialog", lambda dialog: dialog.dismiss())
        shown.on("dialog", lambda dialog: wrong.append(dialog.message))
        shown.on("request", lambda asked: wrong.append(asked.url))
        shown.goto(notebook.as_uri())
        assert wrong.pop() == notebook.as_uri()
        yield shown
        assert [one for one in wrong if "willReadFrequently" not in one] == []  # of this test


def frame_of(page: Page, name: str) -> Frame:
    """The frame of a picture, once it is drawn."""
    held = page.locator(f"#{name} iframe").element_handle()
    assert held is not None
    frame = held.content_frame()
    assert frame is not None
    frame.wait_for_selector("body[data-ready]")
    return frame


def test_every_picture_is_drawn(page: Page) -> None:
    for name in PICTURES:
        page.locator(f"#{name} iframe").scroll_into_view_if_needed()  # unseen, it draws nothing
        frame = frame_of(page, name)
        told = frame.evaluate("JSON.parse(document.getElementById('data').textContent)")
        assert frame.evaluate("picture.nodes().length") == len(told["nodes"]), name
        assert frame.evaluate("picture.edges().length") == len(told["edges"]), name
        for colour in {node["colour"] for node in told["nodes"]}:
            frame.wait_for_function(SEES_COLOUR, arg=colour)
        take_picture(page, f"notebook-{name}")
    for name in ("table", "log", "diff", "conflicts"):
        box = page.locator(f"#{name} .omnigraph").bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) > 20, name
    assert page.locator("#log circle").count() == 4


def test_a_click_tells_of_a_node_and_of_what_is_near(page: Page) -> None:
    page.locator("#graph iframe").scroll_into_view_if_needed()
    frame = frame_of(page, "graph")
    place = frame.evaluate(
        "(() => { const one = picture.nodes().filter(n => n.data('label').startsWith('</script'));"
        " picture.center(one); return one.renderedPosition(); })()"
    )
    frame.locator("#graph").click(position=place)
    facts = frame.locator("#facts")
    assert facts.locator("b").inner_text() == "Person p1"
    assert EVIL in facts.inner_text()
    assert facts.locator("img, script").count() == 0
    assert frame.evaluate("picture.elements('.faded').length") > 0
    frame.locator("#graph").click(position={"x": 4, "y": 200})
    assert not facts.is_visible()
    assert frame.evaluate("picture.elements('.faded').length") == 0


def test_no_text_of_the_graph_reaches_the_notebook(page: Page) -> None:
    for name in PICTURES:
        frame_of(page, name)
    assert page.evaluate("window.hit === undefined")
    assert page.locator("img").count() == 0


def test_a_picture_reaches_neither_the_notebook_nor_a_network(
    browser: Browser, notebook: Path
) -> None:
    with browser.new_context() as context:
        shown = context.new_page()
        shown.goto(notebook.as_uri())
        frame = frame_of(shown, "graph")
        with pytest.raises(Error, match="cross-origin"):
            frame.evaluate("parent.document.title")
        with pytest.raises(Error, match="fetch"):
            frame.evaluate("fetch('https://example.org/')")
