"""A part of a transaction that is taken back leaves nothing, and the rest stays."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import Conflict, InvalidArgument, InvalidData
from tests.unit.engine.faulty import SCHEMA, SETTINGS, fresh_root, over


def new_graph() -> Graph:
    return omnigraph.init(fresh_root(), schema=SCHEMA, settings=SETTINGS)


@pytest.fixture
def g() -> Graph:
    g = new_graph()
    add(g, "ann", "bob")
    return g


def add(g: Graph, *names: str) -> None:
    with g.transaction() as tx:
        tx.append("Person", [{"name": name, "age": 1} for name in names])


def names(at: Any) -> list[str]:
    found = at.scan("Person", columns=["name"])
    rows = found if hasattr(found, "num_rows") else found.read_all()
    return sorted(rows["name"].to_pylist())


def test_what_came_after_it_is_taken_back(g: Graph) -> None:
    with g.transaction() as tx:
        tx.append("Person", {"name": "cyd"})
        point = tx.savepoint()
        tx.append("Person", {"name": "dan"})
        assert tx.update("Person", set={"age": 5}, where=None) == 4
        assert tx.delete("Person", where='name = "ann"') == 1
        assert names(tx) == ["bob", "cyd", "dan"]
        point.rollback()
        assert names(tx) == ["ann", "bob", "cyd"]
        assert tx.count("Person") == 3
    assert names(g) == ["ann", "bob", "cyd"]
    assert {row["age"] for row in g.scan("Person").read_all().to_pylist()} == {1, None}


def test_a_block_that_raises_is_taken_back_and_one_that_does_not_stays(g: Graph) -> None:
    with g.transaction() as tx:
        with tx.savepoint():
            tx.append("Person", {"name": "cyd"})
        with pytest.raises(InvalidData), tx.savepoint():
            _ = tx.append("Person", {"name": "dan"}), tx.append("Person", {"name": "ann"})
        with pytest.raises(ZeroDivisionError), tx.savepoint():
            _ = 1 // tx.overwrite("Person", [])
    assert names(g) == ["ann", "bob", "cyd"]


def test_they_nest_and_a_later_one_is_gone_with_an_earlier(g: Graph) -> None:
    with g.transaction() as tx:
        first = tx.savepoint()
        tx.append("Person", {"name": "cyd"})
        second = tx.savepoint()
        tx.append("Person", {"name": "dan"})
        second.rollback()
        second.rollback()  # it stays
        assert names(tx) == ["ann", "bob", "cyd"]
        first.rollback()
        with pytest.raises(InvalidArgument, match="savepoint is gone"):
            second.rollback()
        tx.append("Person", {"name": "eve"})
        first.rollback()
        with tx.savepoint() as inner:
            pass
        with pytest.raises(InvalidArgument, match="savepoint is gone"):
            inner.rollback()
    assert tx.commit is None
    with pytest.raises(InvalidArgument, match="published"):
        first.rollback()
    with pytest.raises(InvalidArgument, match="published"):
        tx.savepoint()


def test_what_the_part_was_told_is_held_against_other_commits(g: Graph) -> None:
    """The code of the block may have decided by it."""
    tx = g.transaction()
    point = tx.savepoint()
    assert tx.delete("Person", where=None) == 2
    point.rollback()
    tx.append("Note", {"text": "there were 2"})
    add(over(g.root), "cyd")
    with pytest.raises(Conflict):
        tx.publish()


def test_what_was_taken_back_is_not_done_again_on_another_head(g: Graph) -> None:
    tx = g.transaction()
    tx.append("Note", {"text": "a"})
    point = tx.savepoint()
    tx.append("Note", {"text": "b"})
    point.rollback()
    with over(g.root).transaction() as other:
        other.append("Note", {"text": "c"})
    tx.publish()
    assert sorted(g.scan("Note").read_all()["text"].to_pylist()) == ["a", "c"]


def test_a_repeated_call_is_told_the_same_in_the_part_that_it_takes_back(g: Graph) -> None:
    def call(on: Graph) -> list[int]:
        told = []
        with on.transaction(idempotency_key="k") as tx:
            told.append(tx.update("Person", set={"age": 2}, where='name = "ann"'))
            point = tx.savepoint()
            told.append(tx.update("Person", set={"age": 3}, where=None))
            point.rollback()
            told.append(tx.delete("Person", where='name = "bob"'))
        told.append(int(tx.repeated))
        return told

    assert call(g) == [1, 2, 1, 0]
    assert call(over(g.root)) == [1, 2, 1, 1]
    assert names(g) == ["ann"]


@pytest.mark.parametrize("seed", range(12))
def test_any_block_comes_to_what_it_comes_to_without_its_vain_parts(seed: int) -> None:
    chance = Random(seed)
    program = [(chance.choice("audu"), f"p{chance.randrange(6)}") for _ in range(12)]
    vain = {place for place in range(12) if chance.random() < 0.4}

    def run(with_vain: bool) -> list[dict[str, Any]]:
        g = new_graph()
        add(g, "p0", "p1")
        with g.transaction() as tx:
            for place, (verb, name) in enumerate(program):
                if place in vain and with_vain:
                    point = tx.savepoint()
                    tx.delete("Person", where=None)
                    tx.upsert("Person", {"name": "vain", "age": 9})
                    point.rollback()
                match verb:
                    case "a":
                        tx.upsert("Person", {"name": name, "age": place})
                    case "u":
                        tx.update("Person", set={"age": place}, where=f'name = "{name}"')
                    case "d":
                        tx.delete("Person", where=f'name = "{name}"')
        rows = g.scan("Person", columns=["name", "age"]).read_all()
        held: list[dict[str, Any]] = rows.sort_by("name").to_pylist()
        return held

    assert run(with_vain=True) == run(with_vain=False)
