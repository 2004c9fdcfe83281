"""Two handles on one graph: a stale one is never wrong, only later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import Conflict, InvalidData, TypeNotFound
from tests.contract.graphs import field, ids, people, rows, write


@pytest.fixture
def h(g: Graph, root: str) -> Iterator[Graph]:
    """Another handle, which has seen the graph before anything happens to it."""
    with omnigraph.open(root) as other:
        other.snapshot()
        write(other, lambda tx: tx.append("Note", {"id": "first"}))
        yield other


def test_a_snapshot_of_another_handle_sees_the_newest(g: Graph, h: Graph) -> None:
    people(g, "A")
    assert ids(h, "Person") == ["A"]


def test_an_edge_to_a_node_that_another_handle_just_added(g: Graph, h: Graph) -> None:
    people(g, "A", "B")
    write(h, lambda tx: tx.append("Knows", {"src": "A", "dst": "B"}))
    write(g, lambda tx: tx.append("Note", {"id": "n"}))
    write(h, lambda tx: tx.append("Wrote", {"src": "A", "dst": "n"}))
    assert len(ids(g, "Knows")) == len(ids(g, "Wrote")) == 1


def test_a_type_that_another_handle_just_added_can_be_used_at_once(g: Graph, h: Graph) -> None:
    schema = g.snapshot().schema
    g.apply_schema(schema + "node New { x: String? }\nedge Made: Person -> New\n")
    write(h, lambda tx: tx.append("New", {"id": "n", "x": "y"}))
    assert rows(g, "New") == [{"id": "n", "x": "y"}]
    with pytest.raises(TypeNotFound):
        write(h, lambda tx: tx.append("Newer", {}))


def test_a_property_that_another_handle_just_added_can_be_used_at_once(g: Graph, h: Graph) -> None:
    schema = g.snapshot().schema
    g.apply_schema(schema.replace("text: String?", "text: String?\n  stars: I32?"))
    write(h, lambda tx: tx.append("Note", {"id": "n", "stars": 3}))
    assert rows(g, "Note", "stars") == [{"id": "first", "stars": None}, {"id": "n", "stars": 3}]


def test_rows_staged_under_an_older_schema_land_under_the_new_one(g: Graph, h: Graph) -> None:
    schema = g.snapshot().schema
    wide = schema.replace("text: String?", "text: String?\n  stars: I32 @default(5)")
    with h.transaction() as tx:
        tx.append("Note", {"id": "n", "text": "x"})
        g.apply_schema(wide)
    assert rows(g, "Note", "stars") == [{"id": "first", "stars": 5}, {"id": "n", "stars": 5}]
    narrow = wide.replace("select: String?", "")
    tx = h.transaction()
    tx.append("Note", {"id": "m", "select": "gone"})
    g.apply_schema(narrow)
    with pytest.raises(InvalidData, match="select"):
        tx.publish()
    renamed = narrow.replace("node Note", 'node Memo @rename_from("Note")')
    tx = h.transaction()
    tx.append("Note", {"id": "m"})
    g.apply_schema(renamed.replace("-> Note", "-> Memo"))
    with pytest.raises(TypeNotFound):
        tx.publish()
    assert ids(g, "Memo") == ["first", "n"]


def test_a_keyed_append_sees_what_another_handle_just_added(g: Graph, h: Graph) -> None:
    people(g, "A")
    with pytest.raises(InvalidData, match='"A" exists already'):
        people(h, "A")
    people(h, "B")
    assert ids(g, "Person") == ["A", "B"]


def test_blind_appends_of_two_handles_both_land(g: Graph, h: Graph) -> None:
    with g.transaction() as a, h.transaction() as b:
        a.append("Note", {"id": "a"})
        b.append("Note", {"id": "b"})
    assert ids(g, "Note") == ["a", "b", "first"]
    assert [c.kind for c in g.log()] == ["write", "write", "write", "init"]


def test_an_update_is_run_again_on_what_another_wrote(g: Graph, h: Graph) -> None:
    people(g, "A", age=1)
    with g.transaction() as tx:
        tx.update("Person", set={"age": field("age") + 10}, where=field("age") < 5)
        write(h, lambda tx: tx.update("Person", set={"age": 2}, where=None))
        people(h, "B", age=30)
    assert [row["age"] for row in rows(g, "Person", "age")] == [12, 30]


def test_an_update_that_would_affect_another_number_is_a_conflict(g: Graph, h: Graph) -> None:
    people(g, "A", age=1)
    tx = g.transaction()
    assert tx.update("Person", set={"age": field("age") + 10}, where=field("age") < 5) == 1
    people(h, "B", age=3)
    with pytest.raises(Conflict, match="affected 1 entities"):
        tx.publish()
    assert [row["age"] for row in rows(g, "Person", "age")] == [1, 3]


def test_what_a_block_read_must_not_change_under_it(g: Graph, h: Graph) -> None:
    people(g, "A", age=1)
    tx = g.transaction()
    age = tx.scan("Person")["age"].to_pylist()[0]
    tx.append("Note", {"id": "copy", "text": str(age)})
    write(h, lambda tx: tx.update("Person", set={"age": 2}, where=None))
    with pytest.raises(Conflict, match="it was read in the transaction") as error:
        tx.publish()
    assert error.value.retryable
    assert error.value.applied is False
    mismatch = error.value.mismatch
    assert (mismatch.table_key, mismatch.expected, mismatch.actual) == ("node:Person", 2, 3)
    assert ids(g, "Note") == ["first"]


@pytest.mark.stored
def test_what_a_block_did_not_read_may_change(g: Graph, h: Graph) -> None:
    people(g, "A", age=1)
    with g.transaction() as tx:
        tx.scan("Note")
        tx.append("Note", {"id": "n"})
        people(h, "B")
        h.optimize()
    assert ids(g, "Note") == ["first", "n"]


def test_run_calls_again_on_a_fresh_base_until_it_fits(g: Graph, h: Graph) -> None:
    people(g, "A", age=1)
    seen: list[int] = []

    def copy(tx: Any) -> int:
        age: int = tx.scan("Person")["age"].to_pylist()[0]
        seen.append(age)
        tx.upsert("Note", {"id": "copy", "text": str(age)})
        if len(seen) < 3:
            write(h, lambda tx: tx.update("Person", set={"age": age + 1}, where=None))
        return age

    assert g.run(copy, message="copied") == 3
    assert seen == [1, 2, 3]
    assert rows(g, "Note", "text")[0] == {"id": "copy", "text": "3"}
    (commit,) = g.log(limit=1)
    assert commit.message == "copied"


def test_run_gives_up_when_its_time_is_over_and_passes_other_errors_on(g: Graph, h: Graph) -> None:
    people(g, "A", age=1)
    calls: list[None] = []

    def never(tx: Any) -> None:
        calls.append(None)
        tx.scan("Person")
        tx.append("Note", {})
        write(h, lambda tx: tx.update("Person", set={"age": 7}, where=None))

    with pytest.raises(Conflict):
        g.run(never, retry_for=0)
    assert len(calls) == 1
    with pytest.raises(InvalidData):
        g.run(lambda tx: tx.append("Person", {"name": "A"}))


@pytest.mark.stored
def test_compaction_and_a_writer_do_not_disturb_each_other(g: Graph, h: Graph) -> None:
    for name in "ABC":
        people(g, name, age=1)
    with g.transaction() as tx:
        tx.update("Person", set={"age": 2}, where=field("name") == "B")
        tx.delete("Person", where=field("name") == "C")
        assert h.optimize().commit is not None
    assert rows(g, "Person", "age") == [{"id": "A", "age": 1}, {"id": "B", "age": 2}]
    people(h, "C")
    with pytest.raises(InvalidData, match='"A" exists'):
        people(h, "A")
