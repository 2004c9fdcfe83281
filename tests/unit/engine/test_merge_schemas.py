"""Merges of branches that changed the schema, with rows on either side and merges after it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import MergeFailed
from omnigraph.settings import Settings

PERSON = "node Person { name: String @key age: I32? }\n"
CITY = "node City { name: String @key }\n"
OWNS = "edge Owns: Person -> Person\n"
COUNTER = itertools.count()


@pytest.fixture
def g() -> Iterator[Graph]:
    root = f"memory://merge-schemas-{next(COUNTER)}"
    quick = Settings(durability="relaxed", queue=False)
    with omnigraph.init(root, schema=PERSON + OWNS, settings=quick) as graph:
        put(graph, "main", "Person", {"name": "ann", "age": 1}, {"name": "bob", "age": 1})
        graph.create_branch("dev")
        yield graph


def put(g: Graph, branch: str, kind: str, *rows: dict[str, Any]) -> None:
    with g.branch(branch).transaction() as tx:
        tx.upsert(kind, list(rows))


def rows(g: Graph, kind: str, ref: str = "main") -> dict[str, Any]:
    found = g.at(ref).scan(kind).read_all().to_pylist()
    return {row.pop("id"): row for row in sorted(found, key=lambda row: row["id"])}


def apply(g: Graph, branch: str, person: str, *more: str) -> None:
    g.branch(branch).apply_schema(
        f"node Person {{ name: String @key {person} }}\n{OWNS}{''.join(more)}"
    )


def test_columns_of_both_sides_meet_in_rows_of_both_sides(g: Graph) -> None:
    apply(g, "main", "age: I32? city: String? ")
    apply(g, "dev", "age: I32? score: I32 @default(7) ")
    put(g, "main", "Person", {"name": "cy", "city": "oslo"}, {"name": "ann", "city": "rome"})
    put(g, "dev", "Person", {"name": "dan", "score": 3}, {"name": "ann", "score": 4})
    g.merge("dev")
    expected = {
        "ann": {"name": "ann", "age": 1, "city": "rome", "score": 4},
        "bob": {"name": "bob", "age": 1, "city": None, "score": 7},
        "cy": {"name": "cy", "age": None, "city": "oslo", "score": 7},
        "dan": {"name": "dan", "age": None, "city": None, "score": 3},
    }
    assert rows(g, "Person") == expected
    put(g, "dev", "Person", {"name": "eve", "score": 1})
    g.branch("dev").merge("main")
    eve = {"name": "eve", "age": None, "city": None, "score": 1}
    assert rows(g, "Person", "dev") == expected | {"eve": eve}
    assert g.merge("dev").outcome == "fast_forward"


@pytest.mark.parametrize("first", ["main", "dev"])
def test_rows_older_than_a_property_have_what_it_was_filled_with(g: Graph, first: str) -> None:
    apply(g, "dev", "age: I32? score: I32 @default(7) ")
    apply(g, "dev", "age: I32? score: I32 @default(9) ")
    put(g, "dev", "Person", {"name": "dan"})
    put(g, "main", "Person", {"name": "cy", "age": 2}, {"name": "ann", "age": 2})
    into, source = ("main", "dev") if first == "main" else ("dev", "main")
    g.branch(into).merge(source)
    scores = {name: row["score"] for name, row in rows(g, "Person", into).items()}
    assert scores == {"ann": 7, "bob": 7, "cy": 7, "dan": 9}
    before = "main~1" if first == "main" else "main"
    assert list(g.at(into).diff(before, ops=["update"])) == []


def test_a_default_that_came_later_fills_nothing(g: Graph) -> None:
    apply(g, "dev", "age: I32? score: I32? ")
    apply(g, "dev", "age: I32? score: I32? @default(9) ")
    put(g, "main", "Person", {"name": "cy"})
    put(g, "dev", "Person", {"name": "dan"})
    g.merge("dev")
    scores = {name: row["score"] for name, row in rows(g, "Person").items()}
    assert scores == {"ann": None, "bob": None, "cy": None, "dan": 9}


def test_a_renamed_property_takes_the_values_that_the_other_side_set(g: Graph) -> None:
    apply(g, "main", 'years: I32? @rename_from("age") ')
    put(g, "main", "Person", {"name": "bob", "years": 5})
    put(g, "dev", "Person", {"name": "ann", "age": 4}, {"name": "dan", "age": 6})
    g.merge("dev")
    assert {name: row["years"] for name, row in rows(g, "Person").items()} == {
        "ann": 4,
        "bob": 5,
        "dan": 6,
    }
    put(g, "dev", "Person", {"name": "ann", "age": 8})
    g.branch("dev").merge("main")
    assert rows(g, "Person", "dev")["ann"] == {"name": "ann", "years": 8}


def test_a_renamed_type_takes_the_rows_that_the_other_side_wrote(g: Graph) -> None:
    g.apply_schema(
        'node Human @rename_from("Person") { name: String @key age: I32? }\n'
        "edge Owns: Human -> Human\n",
    )
    put(g, "main", "Human", {"name": "cy", "age": 3})
    put(g, "dev", "Person", {"name": "dan", "age": 4})
    put(g, "dev", "Owns", {"id": "o", "from": "dan", "to": "ann"})
    g.merge("dev")
    assert list(rows(g, "Human")) == ["ann", "bob", "cy", "dan"]
    assert list(rows(g, "Owns")) == ["o"]
    assert g.branch("dev").merge("main").outcome == "fast_forward"


@pytest.mark.parametrize("alike", [True, False])
def test_a_type_that_both_sides_add_is_one_type_in_every_later_merge(g: Graph, alike: bool) -> None:
    apply(g, "main", "age: I32? ", CITY)
    if not alike:  # another schema first, so that the ids differ
        apply(g, "dev", "age: I32? note: String? ")
    apply(g, "dev", "age: I32? " if alike else "age: I32? note: String? ", CITY)
    put(g, "main", "City", {"name": "rome"})
    put(g, "dev", "City", {"name": "oslo"})
    g.merge("dev")
    assert list(rows(g, "City")) == ["oslo", "rome"]
    assert g.diff("dev", types=["City"]).summary() == {"City": {"insert": 1}}
    put(g, "dev", "City", {"name": "bonn"})
    put(g, "main", "City", {"name": "paris"})
    g.branch("dev").merge("main")
    assert list(rows(g, "City", "dev")) == ["bonn", "oslo", "paris", "rome"]
    put(g, "main", "City", {"name": "york"})
    seen = list(g.branch("dev").changes())[-1].cursor
    g.merge("dev")
    assert list(rows(g, "City")) == ["bonn", "oslo", "paris", "rome", "york"]
    assert g.branch("dev").merge("main").outcome == "fast_forward"
    told = [(c.op, c.id) for b in g.branch("dev").changes(after=seen) for c in b.changes]
    assert told == [("insert", "york")]
    assert [m.change.op for m in g.at("dev").history("City", "oslo")] == ["insert"]


@pytest.mark.parametrize("alike", [True, False])
def test_a_property_that_both_sides_add_is_one_in_every_later_merge(g: Graph, alike: bool) -> None:
    apply(g, "main", "age: I32? city: String? ")
    if not alike:
        apply(g, "dev", "age: I32? note: String? ")
    apply(g, "dev", "age: I32? city: String? " + ("" if alike else "note: String? "))
    put(g, "main", "Person", {"name": "ann", "city": "rome"})
    put(g, "dev", "Person", {"name": "bob", "city": "oslo"})
    g.merge("dev")
    assert [row["city"] for row in rows(g, "Person").values()] == ["rome", "oslo"]
    put(g, "dev", "Person", {"name": "bob", "city": "bonn"})
    put(g, "main", "Person", {"name": "cy", "city": "york"})
    g.branch("dev").merge("main")
    assert [row["city"] for row in rows(g, "Person", "dev").values()] == ["rome", "bonn", "york"]
    put(g, "main", "Person", {"name": "ann", "city": "pisa"})
    g.merge("dev")
    assert [row["city"] for row in rows(g, "Person").values()] == ["pisa", "bonn", "york"]


def test_edges_that_ours_removed_count_against_a_minimum_that_theirs_brings(g: Graph) -> None:
    for identity in ("o1", "o2"):
        put(g, "main", "Owns", {"id": identity, "from": "ann", "to": "bob"})
    put(g, "main", "Owns", {"id": "o3", "from": "bob", "to": "ann"})
    g.branch("dev").merge("main")
    g.branch("dev").apply_schema(PERSON + "edge Owns: Person -> Person @card(1..)\n")
    with g.transaction() as tx:
        tx.delete("Owns", where=pc.field("id") == "o3")
        tx.delete("Owns", where=pc.field("id") == "o1")
    for into, source in (("main", "dev"), ("dev", "main")):
        with pytest.raises(MergeFailed) as failure:
            g.branch(into).merge(source)
        (conflict,) = failure.value.conflicts
        told = (conflict.kind, conflict.type, conflict.id)
        assert told == ("CardinalityViolation", "Owns", "bob")
    put(g, "main", "Owns", {"id": "o4", "from": "bob", "to": "ann"})
    g.merge("dev")
    assert list(rows(g, "Owns")) == ["o2", "o4"]


def test_schemas_that_crossed_are_merged_against_what_they_imply(g: Graph) -> None:
    apply(g, "main", "age: I32? city: String? ")
    apply(g, "dev", "age: I32? score: I32? ")
    put(g, "main", "Person", {"name": "ann", "city": "rome"})
    put(g, "dev", "Person", {"name": "ann", "score": 3})
    g.create_branch("was main")
    g.create_branch("was dev", ref="dev")
    g.merge("was dev")
    g.branch("dev").merge("was main")
    apply(g, "dev", "age: I32? city: String? ")  # drops what came from itself
    put(g, "dev", "Person", {"name": "ann", "city": None})
    put(g, "main", "Person", {"name": "bob", "city": "oslo"})
    g.merge("dev")
    assert rows(g, "Person") == {
        "ann": {"name": "ann", "age": 1, "city": None},
        "bob": {"name": "bob", "age": 1, "city": "oslo"},
    }


def test_a_feed_tells_what_a_forward_brought_where_counters_of_tables_agree(g: Graph) -> None:
    put(g, "dev", "Person", {"name": "ann", "age": 2})
    put(g, "dev", "Person", {"name": "ann", "age": 3})
    put(g, "main", "Person", {"name": "bob", "age": 4})
    seen = list(g.branch("dev").changes())[-1].cursor
    g.merge("dev")
    pins = [g.at(ref).graph_version.pins["node:Person"] for ref in ("dev", "main")]
    assert pins[0].table_version == pins[1].table_version
    assert g.branch("dev").merge("main").outcome == "fast_forward"
    blocks = list(g.branch("dev").changes(after=seen))
    told = {(c.id, c.after["age"]) for b in blocks for c in b.changes if c.after is not None}
    assert ("bob", 4) in told
