"""Snapshots stay what they were, and every kind of ref finds the version that it names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BranchNotFound,
    InvalidArgument,
    InvalidQuery,
    InvalidRef,
    RefNotFound,
    TypeNotFound,
)
from tests.contract.graphs import field, ids, people, rows, write


def moment(microseconds: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)).isoformat()


@pytest.mark.stored
def test_a_snapshot_answers_the_same_whatever_comes_after(g: Graph, root: str) -> None:
    people(g, "A", "B", age=1)
    pinned = g.snapshot()
    before = rows(pinned, "Person")
    write(g, lambda tx: tx.update("Person", set={"age": 2}, where=None))
    write(g, lambda tx: tx.delete("Person", where=field("name") == "A"))
    people(g, "C")
    g.optimize()
    g.apply_schema("node Person { name: String @key  nick: String? }\n")
    assert rows(pinned, "Person") == before
    assert pinned.count("Person") == 2
    with omnigraph.open(root) as other:
        assert rows(other.at(f"main@{pinned.commit.id}"), "Person") == before


def test_refs_find_the_versions_that_they_name(g: Graph) -> None:
    commits = [people(g, name) for name in "ABC"]
    first, second, third = (g.at(commit) for commit in commits)
    assert [ids(s, "Person") for s in (first, second, third)] == [["A"], ["A", "B"], list("ABC")]
    assert g.at("main").commit.id == commits[2]
    assert g.at("main~0").commit.id == commits[2]
    assert g.at("main~").commit.id == commits[1]
    assert g.at("main~2").commit.id == commits[0]
    assert g.at("main~3").commit.kind == "init"
    assert g.at(f"main@{commits[1]}").commit.id == commits[1]
    assert g.at(commits[1].lower()).commit.id == commits[1]
    for snapshot in (first, second, third):
        at = snapshot.commit.created_at
        assert g.at(f"main*{moment(at)}").commit.id == snapshot.commit.id
        assert g.at(f"main*{moment(at - 1)}").commit.id != snapshot.commit.id
    assert g.at("main*2999-01-01").commit.id == commits[2]
    today = moment(third.commit.created_at)[:10]
    assert g.at(f"main*{today}").commit.id == commits[2]


def test_refs_that_name_nothing_say_what_is_missing(g: Graph) -> None:
    commit = people(g, "A")
    with pytest.raises(BranchNotFound, match=r"There is no branch 'mian'.*'main'"):
        g.at("mian")
    with pytest.raises(RefNotFound, match="goes back further"):
        g.at("main~2")
    with pytest.raises(RefNotFound, match="before the first commit"):
        g.at("main*1999-12-31")
    missing = "0" * 26
    with pytest.raises(RefNotFound, match=missing):
        g.at(missing)
    with pytest.raises(RefNotFound, match="on branch 'main'"):
        g.at(f"main@{missing}")
    with pytest.raises(BranchNotFound):
        g.at(f"other@{commit}")
    for wrong in ("", "main*yesterday", "main*2026-13-01"):
        with pytest.raises(InvalidRef):
            g.at(wrong)


def test_a_scan_takes_columns_and_a_filter(g: Graph) -> None:
    people(g, "A", "B", age=7)
    people(g, "C")
    snapshot = g.snapshot()
    found = snapshot.scan("Person", columns=["age", "name"], filter=field("age") == 7)
    assert isinstance(found, pa.RecordBatchReader)
    assert found.schema.names == ["age", "name"]
    assert sorted(found.read_all()["name"].to_pylist()) == ["A", "B"]
    nothing = snapshot.scan("Person", filter=field("age") > 100).read_all()
    assert nothing.num_rows == 0
    assert nothing.schema.names == ["id", "name", "age", "email", "mood"]
    assert rows(snapshot, "node:Person", "age")[2]["age"] is None
    assert snapshot.scan("Person", columns=[]).read_all().num_columns == 0


def test_a_scan_of_what_is_not_there_says_so_at_once(g: Graph) -> None:
    snapshot = g.snapshot()
    with pytest.raises(TypeNotFound, match="Did you mean Person"):
        snapshot.scan("Persn")
    with pytest.raises(InvalidArgument, match=r"no property 'agee'.*'age'"):
        snapshot.scan("Person", columns=["agee"])
    with pytest.raises(InvalidArgument, match="twice"):
        snapshot.scan("Person", columns=["age", "age"])
    with pytest.raises(InvalidArgument, match="nope"):
        snapshot.scan("Person", filter=field("nope") == 1)
    with pytest.raises(InvalidArgument, match="is a text, an Expression or None, not 1"):
        snapshot.scan("Person", filter=1)
    with pytest.raises(InvalidQuery, match=r"does not fit Person.*nope"):
        snapshot.scan("Person", filter="nope > 1")
    with pytest.raises(InvalidArgument):
        snapshot.scan("Person", filter=field("age"))
    with pytest.raises(TypeNotFound):
        snapshot.count("Persn")


def test_a_filter_means_the_same_on_disk_and_pending(g: Graph) -> None:
    prices = [float("nan"), -0.0, 0.0, 1.5, None]
    given = [{"region": "r", "number": n, "price": p} for n, p in enumerate(prices)]
    for condition in (
        field("price") == 0.0,
        field("price") < 1.0,
        field("price") > 1.0,
        field("price").is_null(),
        field("price").is_nan(),
        ~(field("price") == 0.0),
        field("number").isin([1, 3]) & field("region").isin(["r"]),
    ):
        with g.transaction() as tx:
            tx.overwrite("Item", given)
            pending = sorted(tx.scan("Item", filter=condition)["number"].to_pylist())
        stored = g.snapshot().scan("Item", filter=condition).read_all()
        assert sorted(stored["number"].to_pylist()) == pending
