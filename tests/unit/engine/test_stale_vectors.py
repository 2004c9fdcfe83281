"""A changed source makes its vector null in the same write, on every path that changes rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import InvalidData

SCHEMA = """
node Doc {
  name: String @key
  text: String?
  other: I64?
  v: Vector(2)? @embed("text")
  w: Vector(2)? @embed("text")
}
node Strict {
  name: String @key
  text: String?
  v: Vector(2) @embed("text")
}
edge Cites: Doc -> Doc {
  note: String?
  v: Vector(2)? @embed("note")
}
"""
V = [1.0, 0.0]
W = [0.0, 1.0]
Write = Callable[[Graph, dict[str, Any]], None]


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    made = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    with made.transaction() as tx:
        tx.append(
            "Doc",
            [
                {"name": "a", "text": "red", "other": 1, "v": V, "w": W},
                {"name": "b", "text": "blue", "other": 2, "v": V, "w": W},
            ],
        )
    return made


def by_update(g: Graph, values: dict[str, Any]) -> None:
    with g.transaction() as tx:
        tx.update("Doc", set=values, where='name = "a"')


def by_update_of_pending(g: Graph, values: dict[str, Any]) -> None:
    with g.transaction() as tx:
        tx.update("Doc", set={"other": 3}, where=None)
        tx.update("Doc", set=values, where='name = "a"')


def by_upsert(g: Graph, values: dict[str, Any]) -> None:
    with g.transaction() as tx:
        tx.upsert("Doc", [{"name": "new", "text": "green"}, {"name": "a", **values}])


def by_upsert_of_pending(g: Graph, values: dict[str, Any]) -> None:
    with g.transaction() as tx:
        tx.update("Doc", set={"other": 3}, where=None)
        tx.upsert("Doc", [{"name": "a", **values}])


def by_mutation(g: Graph, values: dict[str, Any]) -> None:
    given = ", ".join(f"{name}: ${name}" for name in values)
    types = {"text": "String?", "other": "I64", "v": "Vector(2)", "w": "Vector(2)"}
    params = ", ".join(f"${name}: {types[name]}" for name in values)
    text = f'query change({params}) {{ update Doc set {{ {given} }} where name = "a" }}'
    g.mutate(text, params=values)


def by_load(g: Graph, values: dict[str, Any]) -> None:
    rows = [{"name": "new", "text": "green"}, {"name": "a", **values}]
    g.load(rows, type="Doc", mode="merge", engine="local")


WRITES: list[Write] = [
    by_update,
    by_update_of_pending,
    by_upsert,
    by_upsert_of_pending,
    by_mutation,
    by_load,
]
ways = pytest.mark.parametrize("write", WRITES, ids=[one.__name__ for one in WRITES])


def vectors(g: Graph, name: str = "a") -> tuple[Any, Any]:
    row = g.entity("Doc", name)
    assert row is not None
    return row["v"], row["w"]


@ways
def test_another_text_makes_the_vectors_null(g: Graph, write: Write) -> None:
    write(g, {"text": "green"})
    assert g.entity("Doc", "a")["text"] == "green"  # type: ignore[index]
    assert vectors(g) == (None, None)
    assert vectors(g, "b") == (V, W)


@ways
def test_no_text_makes_the_vectors_null(g: Graph, write: Write) -> None:
    write(g, {"text": None})
    assert vectors(g) == (None, None)


@ways
def test_the_same_text_keeps_the_vectors(g: Graph, write: Write) -> None:
    write(g, {"text": "red", "other": 9})
    assert vectors(g) == (V, W)


@ways
def test_another_property_keeps_the_vectors(g: Graph, write: Write) -> None:
    write(g, {"other": 9})
    assert vectors(g) == (V, W)


@ways
def test_a_vector_that_is_given_stays_and_its_twin_goes(g: Graph, write: Write) -> None:
    write(g, {"text": "green", "v": W})
    assert vectors(g) == (W, None)


def test_an_expression_over_the_text_counts_as_well(g: Graph) -> None:
    with g.transaction() as tx:
        tx.update("Doc", set={"text": pc.utf8_upper(pc.field("text"))}, where=None)
    assert vectors(g) == vectors(g, "b") == (None, None)


def test_texts_go_back_to_themselves_with_no_vector(g: Graph) -> None:
    """Nobody keeps the old one: a vector is null until it is embedded again."""
    with g.transaction() as tx:
        tx.update("Doc", set={"text": "green"}, where='name = "a"')
        tx.update("Doc", set={"text": "red"}, where='name = "a"')
    assert vectors(g) == (None, None)


def test_edges_have_vectors_too(g: Graph) -> None:
    with g.transaction() as tx:
        tx.append("Cites", {"from": "a", "to": "b", "note": "yes", "v": V})
    (edge,) = g.scan("Cites").read_all().to_pylist()
    with g.transaction() as tx:
        tx.upsert("Cites", {"id": edge["id"], "from": "a", "to": "b", "note": "no"})
    (edge,) = g.scan("Cites").read_all().to_pylist()
    assert (edge["note"], edge["v"]) == ("no", None)


def test_a_required_vector_is_null_while_its_text_waits(g: Graph) -> None:
    with g.transaction() as tx:
        tx.append("Strict", {"name": "a", "text": "red", "v": V})
    with g.transaction() as tx:
        tx.update("Strict", set={"text": "blue"}, where=None)
    assert g.entity("Strict", "a")["v"] is None  # type: ignore[index]
    assert g.scan("Strict").read_all()["v"].to_pylist() == [None]
    asked = g.query("match { $s: Strict } return { $s.v, $s.v is null as waits }")
    assert asked.to_pylist() == [{"s.v": None, "waits": True}]
    with pytest.raises(InvalidData, match="`v` of Strict is required"), g.transaction() as tx:
        tx.update("Strict", set={"text": None}, where=None)
    assert g.verify(deep=True).ok


class TestMerges:
    def change(self, g: Graph, branch: str, **values: Any) -> None:
        with g.branch(branch).transaction() as tx:
            tx.update("Doc", set=values, where='name = "a"')

    @pytest.fixture
    def forked(self, g: Graph) -> Graph:
        self.change(g, "main", text="new")
        assert vectors(g) == (None, None)
        g.create_branch("side")
        return g

    @pytest.mark.parametrize("into", ["main", "side"])
    def test_a_vector_of_the_text_before_does_not_come_back(self, forked: Graph, into: str) -> None:
        self.change(forked, "side", v=V)  # embedded from "new"
        self.change(forked, "main", text="newer")
        (source,) = {"main", "side"} - {into}
        forked.branch(into).merge(source)
        row = forked.branch(into).entity("Doc", "a")
        assert row is not None
        assert (row["text"], row["v"]) == ("newer", None)

    def test_a_vector_comes_with_its_text(self, forked: Graph) -> None:
        self.change(forked, "side", text="theirs", v=V)
        self.change(forked, "main", other=7)
        forked.merge("side")
        row = forked.entity("Doc", "a")
        assert row is not None
        assert (row["text"], row["v"], row["other"]) == ("theirs", V, 7)

    def test_two_vectors_of_one_text_are_no_conflict(self, forked: Graph) -> None:
        """A provider does not give the same numbers twice."""
        self.change(forked, "side", v=V)
        self.change(forked, "main", v=W)
        forked.merge("side")
        assert vectors(forked)[0] == W

    def test_the_side_that_wins_the_text_wins_the_vector(self, forked: Graph) -> None:
        self.change(forked, "side", text="theirs", v=V)
        self.change(forked, "main", text="ours", v=W)
        forked.merge("side", strategy={"Doc.text": "theirs"})
        row = forked.entity("Doc", "a")
        assert row is not None
        assert (row["text"], row["v"]) == ("theirs", V)


class TestReverts:
    def change(self, g: Graph, **values: Any) -> str:
        with g.transaction() as tx:
            tx.update("Doc", set=values, where='name = "a"')
        assert tx.commit is not None
        return tx.commit.id

    def test_a_text_comes_back_with_its_vector_though_the_other_was_embedded(
        self, g: Graph
    ) -> None:
        changed = self.change(g, text="new")
        self.change(g, v=W)  # embedded from "new"
        g.revert(changed)
        assert g.entity("Doc", "a")["text"] == "red"  # type: ignore[index]
        assert vectors(g) == (V, W)

    def test_a_vector_that_was_embedded_is_taken_back_if_its_text_is_there(self, g: Graph) -> None:
        self.change(g, text="new")
        embedded = self.change(g, v=W)
        g.revert(embedded)
        assert vectors(g)[0] is None

    def test_of_a_text_that_is_gone_nothing_comes_back(self, g: Graph) -> None:
        taken = self.change(g, v=None)
        self.change(g, text="new")
        g.revert(taken)
        assert vectors(g)[0] is None

    def test_an_entity_that_was_only_embedded_since_can_be_taken_back(self, g: Graph) -> None:
        made = g.mutate('insert Doc { name: "c", text: "green" }')
        with g.transaction() as tx:
            tx.update("Doc", set={"v": V}, where='name = "c"')
        assert made.commit is not None
        g.revert(made.commit.id)
        assert g.entity("Doc", "c") is None
