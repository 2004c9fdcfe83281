"""What a commit says of itself, preconditions, idempotency keys, the manifest, the ledger."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import IdempotencyMismatch, PreconditionFailed
from tests.contract.graphs import begin, field, ids, people, rows, write


@pytest.mark.stored
def test_a_commit_knows_who_what_when_and_how_much(g: Graph) -> None:
    with g.transaction(actor="ann", message="first people") as tx:
        tx.append("Person", [{"name": "A"}, {"name": "B"}])
        tx.append("Knows", {"src": "A", "dst": "B"})
    commit = tx.commit
    assert commit is not None
    init = g.at("main~1").commit
    assert (commit.actor, commit.message, commit.kind) == ("ann", "first people", "write")
    assert commit.parents == (init.id,)
    assert commit.created_at > init.created_at
    assert commit.id > init.id
    assert set(commit.statistics) == {"node:Person", "edge:Knows"}
    assert commit.statistics["node:Person"].inserted == 2
    assert commit.statistics["node:Person"].bytes > 0
    assert g.snapshot().commit == commit
    with g.transaction() as tx:
        tx.update("Person", set={"age": 1}, where=field("name") == "A")
        tx.delete("Knows", where=None)
    assert tx.commit is not None
    assert tx.commit.statistics["node:Person"].updated == 1
    assert tx.commit.statistics["edge:Knows"].deleted == 1


@pytest.mark.stored
def test_the_log_is_newest_first_and_can_be_filtered(g: Graph) -> None:
    for number, actor in enumerate(["ann", "bob", "ann"]):
        write(g, lambda tx: tx.append("Note", {}), actor=actor, message=f"m{number}")
    g.apply_schema(g.snapshot().schema + "node Extra { x: String? }\n", actor="bob")
    log = list(g.log())
    assert [c.kind for c in log] == ["schema", "write", "write", "write", "init"]
    assert [c.message for c in log[1:4]] == ["m2", "m1", "m0"]
    assert [c.parents for c in log] == [*((c.id,) for c in log[1:]), ()]
    assert [c.message for c in g.log(actor="ann")] == ["m2", "m0"]
    assert [c.kind for c in g.log(actor="bob")] == ["schema", "write"]
    assert [c.message for c in g.log(kind="write", limit=2)] == ["m2", "m1"]
    assert [c.kind for c in g.at("main~3").log()] == ["write", "init"]
    assert [c.kind for c in g.log(limit=0)] == []


def test_if_commit_lets_a_write_through_only_at_that_commit(g: Graph, root: str) -> None:
    first = people(g, "A")
    with g.transaction(if_commit=first) as tx:
        tx.append("Person", {"name": "B"})
    with pytest.raises(PreconditionFailed, match=first), g.transaction(if_commit=first) as tx:
        tx.append("Person", {"name": "C"})
    # Also when the head moves after the block began, seen or unseen by its handle.
    head = g.snapshot().commit.id
    for other in (g, omnigraph.open(root)):
        tx = g.transaction(if_commit=head)
        tx.append("Note", {})
        write(other, lambda tx: tx.append("Note", {}))
        with pytest.raises(PreconditionFailed):
            tx.publish()
        head = g.snapshot().commit.id
    with pytest.raises(PreconditionFailed), g.transaction(if_commit=first):
        pass
    assert ids(g, "Person") == ["A", "B"]
    assert len(ids(g, "Note")) == 2


@pytest.mark.parametrize("statement", ["append", "upsert", "overwrite"])
def test_a_repeated_call_is_not_refused_for_what_it_did_itself(g: Graph, statement: str) -> None:
    people(g, "Z")
    head = g.snapshot().commit.id
    for time in (1, 2, 3):
        with g.transaction(idempotency_key="k", if_commit=head) as tx:
            given = [{"name": "A", "email": "a"}, {"name": "B"}]
            assert getattr(tx, statement)("Person", given) == 2
            assert tx.count("Person") == (2 if statement == "overwrite" else 3)
        assert tx.repeated == (time > 1)
    with pytest.raises(IdempotencyMismatch), g.transaction(idempotency_key="k") as tx:
        tx.append("Person", {"name": "A"})
    assert len(list(g.log())) == 3


def test_repeating_a_call_with_its_key_returns_the_first_commit(g: Graph, root: str) -> None:
    def call(graph: Graph) -> Any:
        with graph.transaction(idempotency_key="k1") as tx:
            tx.append("Note", {"text": "once"})
        return tx

    first = call(g)
    assert not first.repeated
    people(g, "A")
    again, elsewhere = call(g), call(omnigraph.open(root))
    assert (again.commit_id, again.repeated) == (first.commit_id, True)
    assert (elsewhere.commit_id, elsewhere.repeated) == (first.commit_id, True)
    assert len(ids(g, "Note")) == 1
    assert len(list(g.log())) == 3


CALLS: dict[str, Any] = {
    "other rows": lambda tx: tx.append("Person", {"name": "B"}),
    "other type": lambda tx: tx.append("Item", {"region": "A", "number": 1}),
    "other statement": lambda tx: tx.upsert("Person", {"name": "A"}),
    "delete one": lambda tx: tx.delete("Person", where=field("name") == "Z"),
    "delete many": lambda tx: tx.delete("Person", where=field("name").isin([*map(str, range(99))])),
    "delete as many": lambda tx: tx.delete(
        "Person", where=field("name").isin([f"{n}" if n != 50 else "Z" for n in range(99)])
    ),
    "set null": lambda tx: tx.update("Person", set={"email": None}, where=None),
    "set a text": lambda tx: tx.update("Person", set={"email": "None"}, where=None),
    "set by a column": lambda tx: tx.update("Person", set={"email": field("name")}, where=None),
    "set that text": lambda tx: tx.update("Person", set={"email": "name"}, where=None),
}


def test_a_key_belongs_to_one_call(tmp_path: Any) -> None:
    """Every pair of different calls is told apart."""
    with begin(str(tmp_path / "g")) as g:
        write(g, lambda tx: tx.append("Person", [{"name": "Z"}]))
        for number, (name, call) in enumerate(CALLS.items()):
            with g.transaction(idempotency_key=f"key {number}") as tx:
                tx.append("Note", {"text": "something to do in any case"})
                call(tx)
            for other_name, other in CALLS.items():
                if other_name == name:
                    continue
                tx = g.transaction(idempotency_key=f"key {number}")
                tx.append("Note", {"text": "something to do in any case"})
                other(tx)
                with pytest.raises(IdempotencyMismatch, match="did something else"):
                    tx.publish()
            write(g, lambda tx: tx.overwrite("Person", [{"name": "Z", "email": "z"}]))
            write(g, lambda tx: tx.overwrite("Item", []))


def test_keys_are_remembered_however_many_follow(tmp_path: Any) -> None:
    """Of those that a version has no place for, those of the last ten minutes."""
    settings = omnigraph.Settings(durability="relaxed")
    with omnigraph.init(tmp_path / "g", schema="node Note { n: I64 }", settings=settings) as g:

        def call(number: int, graph: Graph = g) -> bool:
            with graph.transaction(idempotency_key=str(number)) as tx:
                tx.append("Note", {"n": number})
            return tx.repeated

        for number in range(514):
            assert not call(number)
        assert len(g.snapshot().graph_version.keys) == 512
        for graph in (g, omnigraph.open(tmp_path / "g")):
            assert [call(number, graph) for number in (513, 2, 1, 0)] == [True] * 4
        assert g.snapshot().count("Note") == 514


def test_the_manifest_shows_the_version_as_rows(g: Graph) -> None:
    commit = people(g, "A", "B")
    found = g.manifest()
    assert found.column_names == [
        "object_id",
        "object_type",
        "location",
        "metadata",
        "base_objects",
        "table_key",
        "table_version",
        "table_branch",
        "row_count",
    ]
    by_id = {row["object_id"]: row for row in found.to_pylist()}
    version = by_id["node:Person$2"]
    assert (version["object_type"], version["row_count"]) == ("table_version", 2)
    assert by_id["node:Note$1"]["row_count"] == 0
    assert by_id["node:Person"]["location"] == version["location"]
    assert by_id[commit]["object_type"] == "graph_commit"
    assert json.loads(by_id[commit]["metadata"])["kind"] == "write"
    assert by_id["main$2"]["base_objects"] == [commit]
    types = [row["object_type"] for row in found.to_pylist()]
    assert types.count("table") == types.count("table_version") == 7


@pytest.mark.stored
def test_compaction_moves_the_table_version_and_nothing_that_a_reader_sees(g: Graph) -> None:
    for name in "ABC":
        people(g, name)
    before = rows(g, "Person")
    content = g.snapshot().graph_version.pins["node:Person"].content
    done = g.optimize()
    assert done.commit is not None
    assert done.commit.kind == "optimize"
    assert done.commit.actor == "omnigraph:maintenance"
    assert done.commit.statistics == {}
    assert done.types["Person"].fragments == (3, 1)
    pin = g.snapshot().graph_version.pins["node:Person"]
    assert (pin.table_version, pin.content, pin.fragments) == (5, content, 1)
    assert rows(g, "Person") == before
    assert g.optimize().commit is None


@pytest.mark.stored
def test_the_ledger_of_a_blind_append_is_four_writes_and_no_read(g: Graph) -> None:
    write(g, lambda tx: tx.append("Note", {}))
    with g.transaction() as tx:
        tx.append("Note", {"text": "x"})
    assert (tx.io.reads, tx.io.writes) == (0, 4)
    assert tx.io.hops <= 4
    assert tx.io.by_purpose == {
        "data": {"put": 1},
        "table": {"put": 2},
        "version": {"put": 1},
    }
    assert tx.io.bytes > 0


@pytest.mark.stored
def test_the_ledger_of_a_snapshot_counts_what_it_reads(g: Graph) -> None:
    people(g, "A")
    snapshot = g.snapshot()
    assert (snapshot.io.reads, snapshot.io.writes) == (1, 0)
    snapshot.scan("Person", filter=pc.field("name") == "A").read_all()
    assert snapshot.io.by_purpose["scan"]["get"] >= 1
    assert snapshot.io.writes == 0
