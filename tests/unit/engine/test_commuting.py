"""A write that lost its race to another process does not run again if what it looked up was there
and the others only added rows; else it does. What it staged is used again if it is the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.write import recent
from omnigraph.engine.write.attempt import Write
from omnigraph.errors import InvalidData
from omnigraph.settings import Settings
from omnigraph.telemetry import LedgerEntry

SCHEMA = """
node Person { name: String @key  email: String? @unique  n: I64? }
edge Knows: Person -> Person
edge Lives: Person -> Person @card(0..1)
"""
SETTINGS = Settings(durability="relaxed", folding="off")


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    g = omnigraph.init(tmp_path / "graph", schema=SCHEMA, settings=SETTINGS)
    for name in ("Ada", "Bob", "Cyd"):
        g.mutate(f'insert Person {{ name: "{name}" }}')
    return g


@pytest.fixture
def other(g: Graph) -> Graph:
    return omnigraph.open(g.root, settings=SETTINGS)


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The heads on which a write ran again."""
    heads: list[object] = []
    replan = Write.replan

    def counted(self: Write, head: Any) -> None:
        heads.append(head)
        replan(self, head)

    monkeypatch.setattr(Write, "replan", counted)
    return heads


def edge(g: Graph, kind: str = "Knows", start: str = "Ada", end: str = "Bob") -> Any:
    return g.mutate(f'insert {kind} {{ from: "{start}", to: "{end}" }}')


def test_an_edge_between_nodes_that_stay_is_bound_again(
    g: Graph, other: Graph, again: list[object]
) -> None:
    for number in range(2):
        other.mutate(f'insert Person {{ name: "new{number}", email: "{number}@x" }}')
    done = edge(g)
    assert not again
    assert done.commit.parents == (g.at("main~1").commit.id,)
    edge(other)
    edge(g, "Lives")
    edge(other, "Lives", "Bob", "Ada")
    assert (g.count("Knows"), g.count("Lives"), g.count("Person")) == (2, 2, 5)
    assert g.verify(deep=True).ok


def gone(other: Graph) -> None:
    other.mutate('delete Person where name = "Ada"')


def gone_and_back(other: Graph) -> None:
    with other.transaction() as tx:
        tx.delete("Person", where='name = "Ada"')
        tx.append("Person", {"name": "Zoe"})


def replaced(other: Graph) -> None:
    with other.transaction() as tx:
        tx.overwrite("Person", [{"name": "Bob"}, {"name": "Cyd"}])


def gone_by_a_merge(other: Graph) -> None:
    other.create_branch("side")
    other.branch("side").mutate('delete Person where name = "Ada"')
    other.mutate('insert Person { name: "Dan" }')
    other.merge("side")


@pytest.mark.parametrize("change", [gone, gone_and_back, replaced, gone_by_a_merge])
def test_an_edge_whose_end_is_gone_is_refused(
    g: Graph, other: Graph, change: Callable[[Graph], None]
) -> None:
    change(other)
    with pytest.raises(InvalidData):
        edge(g)
    assert g.count("Knows") == 0


def test_edges_are_counted_anew(g: Graph, other: Graph) -> None:
    edge(other, "Lives", "Ada", "Bob")
    with pytest.raises(InvalidData):
        edge(g, "Lives", "Ada", "Cyd")
    assert g.count("Lives") == 1


def test_a_key_and_a_unique_value_are_looked_up_anew(
    g: Graph, other: Graph, again: list[object]
) -> None:
    other.mutate('insert Person { name: "Dan", email: "d@x" }')
    with pytest.raises(InvalidData), g.transaction() as tx:
        tx.append("Person", {"name": "Dan"})
    assert again
    g = omnigraph.open(g.root, settings=SETTINGS)
    g.count("Person")
    other.mutate('insert Person { name: "Eve", email: "e@x" }')
    with pytest.raises(InvalidData), g.transaction() as tx:
        tx.append("Person", {"name": "Fay", "email": "e@x"})
    assert g.count("Person") == 5


def test_rows_that_stay_the_same_are_staged_once(
    g: Graph, other: Graph, again: list[object]
) -> None:
    other.mutate('insert Person { name: "Dan" }')
    done = g.mutate('insert Person { name: "Eve", n: 7 }')
    assert len(again) == 1
    assert done.io.counts[LedgerEntry("put", "data")] == 1
    assert g.entity("Person", "Eve") == {"id": "Eve", "name": "Eve", "email": None, "n": 7}
    other.mutate('insert Person { name: "Fay", n: 1 }')
    g.mutate('update Person set { n: n + 1 } where name = "Fay"')
    found = g.entity("Person", "Fay")
    assert found is not None
    assert found["n"] == 2


def test_rows_are_staged_again_for_a_type_that_was_made_again(g: Graph, other: Graph) -> None:
    """Its table has the same columns and is another one."""
    with g.transaction() as tx:
        tx.upsert("Person", {"name": "Dan", "n": 1})
        without = SCHEMA.split("node Person")[0] + "node Place { name: String @key }\n"
        other.apply_schema(without, allow_data_loss=True)
        other.apply_schema(SCHEMA, allow_data_loss=True)
    assert g.entity("Person", "Dan") is not None
    assert g.count("Person") == 1
    assert g.verify(deep=True).ok


def test_properties_that_swap_their_names_are_staged_again(tmp_path: Path) -> None:
    schema = "node P { name: String @key  a: I64?  b: I64? }\n"
    with (
        omnigraph.init(tmp_path / "swap", schema=schema, settings=SETTINGS) as g,
        omnigraph.open(tmp_path / "swap", settings=SETTINGS) as other,
    ):
        g.mutate('insert P { name: "x" }')
        with g.transaction() as tx:
            tx.upsert("P", {"name": "y", "a": 1, "b": 2})
            other.apply_schema(
                'node P { name: String @key  b: I64? @rename_from("a")  '
                'a: I64? @rename_from("b") }\n'
            )
        assert g.entity("P", "y") == {"id": "y", "name": "y", "a": 1, "b": 2}


def test_a_commit_that_is_unknown_or_does_more_clashes_with_every_look() -> None:
    rows = pa.table({"id": ["a"], "src": ["x"]})
    asked: dict[tuple[str, ...], set[str]] = {("id",): {"b"}, ("src",): {"y"}}
    assert recent.untouched("t", asked, [{"t": rows}, {"other": None}])
    assert not recent.untouched("t", asked | {("src",): {"x"}}, [{"t": rows}])
    assert not recent.untouched("t", None, [{"t": rows}])
    assert not recent.untouched("t", asked, [{"t": recent.More.ROWS}])
    assert recent.untouched("t", {("id",): set()}, [{"t": recent.More.ROWS}])
    assert not recent.untouched("t", {("id",): set()}, [{"t": None}])
    assert not recent.untouched("t", {("missing",): {"x"}}, [{"t": rows}])
