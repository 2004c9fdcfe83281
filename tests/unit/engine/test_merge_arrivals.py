"""Types that only the source has: what a resolution says of their entities is done, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import MergeFailed
from omnigraph.settings import Settings

BEFORE = """
node Person { name: String @key  age: I32? }
"""
AFTER = f"""{BEFORE}
node Place {{ name: String @key  code: I32? @unique }}
edge Likes: Person -> Person @card(0..1)
"""


@pytest.fixture
def g(tmp_path: Path) -> Iterator[Graph]:
    settings = Settings(durability="full", folding="off")
    with omnigraph.init(tmp_path / "graph", schema=BEFORE, settings=settings) as graph:
        with graph.transaction() as tx:
            tx.append("Person", [{"name": name} for name in ("ann", "bob", "cy")])
        graph.create_branch("dev")
        dev = graph.branch("dev")
        dev.apply_schema(AFTER)
        with dev.transaction() as tx:
            tx.append("Place", [{"name": "rome", "code": 1}, {"name": "oslo", "code": 2}])
            tx.append("Likes", {"id": "l1", "from": "ann", "to": "bob"})
            tx.append("Likes", {"id": "l2", "from": "bob", "to": "cy"})
        with graph.transaction() as tx:
            tx.upsert("Person", {"name": "ann", "age": 1})
        yield graph


def rows(g: Graph, kind: str) -> dict[str, Any]:
    with omnigraph.open(g.root, mode="r") as fresh:
        assert fresh.verify(deep=True).errors == []
        read = fresh.snapshot().scan(kind).read_all().to_pylist()
        assert fresh.count(kind) == len(read)
        return {row["id"]: row for row in read}


def ids(g: Graph, ref: str) -> list[str]:
    found: list[str] = g.at(ref).scan("Place").read_all()["id"].to_pylist()
    return sorted(found)


def test_rows_of_a_type_that_arrives_are_changed_removed_and_added(g: Graph) -> None:
    answers: dict[tuple[str, str], Any] = {
        ("Place", "rome"): {"code": 7},
        ("Place", "oslo"): None,
        ("Place", "bern"): {"name": "bern", "code": 3},
        ("Likes", "l3"): {"from": "cy", "to": "ann"},
        ("Likes", "l1"): None,
    }
    preview = g.merge("dev", resolve=answers, dry_run=True)
    done = g.merge("dev", resolve=answers)
    assert (preview.changes, preview.adopted) == (done.changes, done.adopted)
    assert {name: row["code"] for name, row in rows(g, "Place").items()} == {"rome": 7, "bern": 3}
    assert sorted(rows(g, "Likes")) == ["l2", "l3"]
    assert g.entity("Place", "bern") == {"id": "bern", "name": "bern", "code": 3}
    # The source keeps what it had, and goes on from what was decided.
    assert ids(g, "dev") == ["oslo", "rome"]
    assert g.branch("dev").merge("main").outcome == "fast_forward"
    assert ids(g, "dev") == ["bern", "rome"]


def test_an_edge_of_a_type_that_arrives_goes_if_its_node_is_gone(g: Graph) -> None:
    g.mutate('delete Person where name = "cy"')
    with pytest.raises(MergeFailed) as failed:
        g.merge("dev")
    assert [(one.kind, one.id) for one in failed.value.conflicts] == [("OrphanEdge", "l2")]
    g.merge("dev", resolve={("Likes", "l2"): None})
    assert sorted(rows(g, "Likes")) == ["l1"]


def test_what_a_resolution_says_of_a_type_that_arrives_is_checked(g: Graph) -> None:
    wrong: dict[str, dict[tuple[str, str], Any]] = {
        "UniqueViolation": {("Place", "bern"): {"name": "bern", "code": 2}},
        "OrphanEdge": {("Likes", "l3"): {"from": "cy", "to": "nobody"}},
        "CardinalityViolation": {("Likes", "l3"): {"from": "ann", "to": "cy"}},
    }
    head = g.snapshot().commit.id
    for kind, answers in wrong.items():
        with pytest.raises(MergeFailed) as failed:
            g.merge("dev", resolve=answers)
        assert {str(one.kind) for one in failed.value.conflicts} == {kind}
    assert g.snapshot().commit.id == head


def test_a_resolution_that_changes_nothing_of_a_type_that_arrives(g: Graph) -> None:
    g.merge("dev", resolve={("Place", "nowhere"): None})
    assert sorted(rows(g, "Place")) == ["oslo", "rome"]
