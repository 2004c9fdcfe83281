"""What a notebook shows: tables, pictures, histories and changes, whatever the texts say."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.plan.log_drawing import render_lanes
from omnigraph.show.parts import SubgraphEdge, SubgraphNode
from omnigraph.show.picture import MOST_EDGES, MOST_NODES, picture
from tests.unit.show.views import EVIL, PEOPLE, make_people, views


@pytest.fixture(scope="module")
def g(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with make_people(str(tmp_path_factory.mktemp("show") / "people")) as found:
        yield found


@pytest.fixture(scope="module")
def shown(g: Graph) -> dict[str, str]:
    return views(g)


def told_in(view: str) -> dict[str, Any]:
    """The data of the picture in a view."""
    page = html.unescape(re.findall(r'srcdoc="([^"]*)"', view)[0])
    begins = '<script type="application/json" id="data">'
    (data,) = re.findall(f"{begins}(.*?)</script>", page, re.DOTALL)
    found: dict[str, Any] = json.loads(data)
    return found


def test_no_text_becomes_markup(shown: dict[str, str]) -> None:
    for name, view in shown.items():
        outside = re.sub(r'srcdoc="[^"]*"', "", view)
        assert "<script" not in outside, name
        assert "<img" not in outside, name
        assert "<b>we" not in outside, name
        for page in re.findall(r'srcdoc="([^"]*)"', view):
            scripts = re.findall(r"<script[^>]*>", html.unescape(page))
            assert len(scripts) == 3, name
            assert "<img" not in html.unescape(page), name


def test_a_table_says_how_many_rows_there_are(g: Graph, shown: dict[str, str]) -> None:
    assert f"{PEOPLE} rows" in shown["table"]
    assert "iframe" not in shown["table"]
    many = g.query("match { $p: Person $q: Person } return { $p.name, $q.age }")._repr_html_()
    assert "20 of 64 rows" in many
    assert "0 rows" in g.query("match { $p: Person $p.age = 1 } return { $p }")._repr_html_()


def test_whole_entities_come_with_their_picture(shown: dict[str, str]) -> None:
    assert "16 rows" in shown["network"]
    told = told_in(shown["network"])
    assert {node["type"] for node in told["nodes"]} == {"Person", "Place"}
    assert {edge["type"] for edge in told["edges"]} == {"Knows", "LivesIn"}
    assert told["groups"][0] == ["Person", "#2f6fdb"]


def test_a_picture_holds_what_was_found(shown: dict[str, str]) -> None:
    told = told_in(shown["graph"])
    assert told["note"] == f"{PEOPLE} nodes, {2 * PEOPLE} edges"
    hostile = next(node for node in told["nodes"] if node["id"] == "p1")
    assert ["name", EVIL] in hostile["data"]
    assert hostile["label"].startswith("</script>")
    assert ["age", "20"] in next(node for node in told["nodes"] if node["id"] == "p0")["data"]


def test_a_picture_without_edges_says_how_to_name_them(shown: dict[str, str]) -> None:
    assert "write $a $e:knows $b" in told_in(shown["without-edges"])["note"]


def test_a_picture_asks_nobody(shown: dict[str, str]) -> None:
    page = html.unescape(re.findall(r'srcdoc="([^"]*)"', shown["graph"])[0])
    assert "default-src 'none'" in page
    before = page.split('id="library"')[0]
    assert not re.search(r"https?:|src=|href=|@import", before.split('id="data"')[0])
    assert 'sandbox="allow-scripts"' in shown["graph"]


def test_the_schema_is_drawn_with_counts_and_types(g: Graph, shown: dict[str, str]) -> None:
    told = told_in(shown["schema"])
    person = next(node for node in told["nodes"] if node["id"] == "Person")
    facts = dict(person["data"])
    assert (facts["@count"], facts["key"], facts["age"]) == (str(PEOPLE), "String @key", "I32?")
    assert [node["label"] for node in told["nodes"]] == ["Person", "Place"]
    assert told["note"] == "2 node types, 2 edge types"
    assert facts["@description"] == "Somebody <b>we</b> know"
    assert [edge["type"] for edge in told["edges"]] == ["Knows", "LivesIn"]
    assert told["edgeLabels"]
    assert len({node["colour"] for node in told["nodes"]}) == 2


def test_the_history_is_drawn_and_printed(g: Graph, shown: dict[str, str]) -> None:
    lanes = g.log(all=True).lanes()
    assert str(lanes) == "\n".join(render_lanes(lanes))
    assert shown["log"].count("<circle") == len(lanes) == 4
    assert ">side</text>" in shown["log"]
    assert "&lt;/script&gt;" in shown["log"]


def test_a_diff_shows_what_was_before_and_after(g: Graph, shown: dict[str, str]) -> None:
    assert "<b>Person</b> +1 ~1" in shown["diff"]
    assert "Eve" in shown["diff"]
    assert "4 changes" in shown["diff"]
    assert "Nothing changed." in g.at("main").diff("main")._repr_html_()


def test_conflicts_show_both_sides(shown: dict[str, str]) -> None:
    assert "1 conflict must be settled first." in shown["conflicts"]
    assert "DivergentUpdate" in shown["conflicts"]
    for value in ("21", "50", "99"):
        assert f">{value}</td>" in shown["conflicts"]


def test_a_merge_says_what_it_did(tmp_path: Path) -> None:
    with make_people(str(tmp_path / "people")) as g:
        g.create_branch("same", "main")
        assert "There is nothing to merge." in g.merge("same", dry_run=True)._repr_html_()
        planned = g.merge("side", strategy="theirs", dry_run=True)._repr_html_()
        assert "It would be merged." in planned
        done = g.merge("side", strategy="theirs", actor="ada")
        assert done.commit is not None
        assert f"Merged in commit {done.commit.id}." in done._repr_html_()


def test_only_so_much_of_a_large_graph_is_drawn() -> None:
    nodes = [SubgraphNode("N", str(number)) for number in range(2_000)]
    edges = [
        SubgraphEdge("E", f"{a}-{b}", ("N", str(a)), ("N", str(b)))
        for a in range(1_900, 2_000)
        for b in range(1_950, 2_000)
    ]
    told = told_in(picture(nodes, edges))
    assert (len(told["nodes"]), len(told["edges"])) == (MOST_NODES, MOST_EDGES)
    assert told["note"] == "300 of 2,000 nodes, 900 of 5,000 edges"
    assert {str(number) for number in range(1_900, 2_000)} <= {one["id"] for one in told["nodes"]}
    assert not told["edgeLabels"]


def test_nothing_can_be_drawn_too(g: Graph) -> None:
    nobody = g.query("match { $p: Person $p.age = 1 $p $k:knows $q } return { $p }").graph()
    assert told_in(nobody._repr_html_())["nodes"] == []
