"""A query for one entity costs the same, however often the graph was written to; and a query that
was prepared is not read again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.engine.query.ask import PreparedQuery
from omnigraph.errors import InvalidArgument, InvalidParameters, InvalidQuery
from omnigraph.settings import Settings

SCHEMA = "node Person { name: String @key  age: I64? }"
AGE = "query age($name: String) { match { $p: Person { name: $name } } return { $p.age as age } }"
ROWS = 20_000


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA, settings=Settings(durability="relaxed"))
    graph.load([{"name": f"p{n}", "age": n} for n in range(ROWS)], type="Person")
    return graph


def calls_of(act: Callable[[], object]) -> int:
    """How many functions are called, of Python and of C: the same on every machine."""
    count = 0

    def seen(_frame: FrameType, event: str, _what: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


def cost_of_a_point(g: Graph) -> int:
    def ask() -> object:
        return g.query(AGE, params={"name": "p7777"}).one()

    for _ in range(20):  # the column is read into memory once it was needed often
        assert ask() == {"age": 7777}
    return calls_of(ask)


def test_a_point_query_costs_the_same_after_upserts_and_after_optimize(g: Graph) -> None:
    fresh = cost_of_a_point(g)
    for n in range(100):
        with g.transaction() as tx:
            tx.upsert("Person", {"name": f"p{n * 7}", "age": -n})
    assert g.snapshot().graph_version.pins["node:Person"].fragments > 1
    assert cost_of_a_point(g) <= 1.1 * fresh
    g.optimize()
    assert cost_of_a_point(g) <= 1.1 * fresh


def test_a_prepared_query_gives_what_the_query_gives_and_follows_its_handle(g: Graph) -> None:
    age, pinned = g.prepare(AGE), g.snapshot().prepare(AGE)
    for name in ("p1", "p19999", "nobody"):
        asked: list[dict[str, Any]] = g.query(AGE, params={"name": name}).to_pylist()
        assert age({"name": name}).to_pylist() == pinned({"name": name}).to_pylist() == asked
    g.mutate('update Person set { age: 1000 } where name = "p1"')
    assert age({"name": "p1"}).one() == {"age": 1000}
    assert pinned({"name": "p1"}).one() == {"age": 1}
    assert isinstance(age, PreparedQuery)
    assert repr(g.prepare(AGE, "age")) == "PreparedQuery('age')"


def test_a_prepared_query_is_not_read_again(g: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    age = g.prepare(AGE)

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("the text was read again")

    monkeypatch.setattr("omnigraph.engine.query.prepare.Preparations.read", refused)
    assert age({"name": "p1"}).one() == {"age": 1}
    g.mutate('delete Person where name = "p1"')
    assert age({"name": "p1"}).to_pylist() == []


def test_a_prepared_query_is_checked_again_when_the_schema_changes(g: Graph) -> None:
    age = g.prepare(AGE)
    g.apply_schema("node Person { name: String @key  age: I64?  born: I32? }")
    assert age({"name": "p1"}).one() == {"age": 1}
    g.apply_schema('node Person { name: String @key  years: I64? @rename_from("age") born: I32? }')
    with pytest.raises(InvalidQuery, match="age"):
        age({"name": "p1"})


def test_a_query_that_cannot_be_asked_is_refused_at_once(g: Graph) -> None:
    with pytest.raises(InvalidQuery):
        g.prepare("match {")
    with pytest.raises(InvalidArgument, match="mutation"):
        g.prepare("delete Person where true")
    age = g.prepare(AGE)
    with pytest.raises(InvalidParameters):
        age({"name": 5})
    with pytest.raises(InvalidArgument, match="timeout"):
        age({"name": "p1"}, timeout="long")  # type: ignore[arg-type]
    g.close()
    with pytest.raises(InvalidArgument, match="closed"):
        age({"name": "p1"})
