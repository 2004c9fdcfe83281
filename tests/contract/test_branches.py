"""Branches: one put to make, one to delete, and an old writer never mistakes a new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BranchExists,
    BranchMoved,
    BranchNotFound,
    InvalidArgument,
    RefNotFound,
)
from tests.contract.graphs import field, ids, people, rows, write


def add(g: Graph, branch: str, *names: str) -> str:
    given = [{"name": name} for name in names]
    return write(g, lambda tx: tx.append("Person", given), branch=branch)


@pytest.mark.stored
def test_a_branch_starts_where_it_was_made_and_goes_its_own_way(g: Graph) -> None:
    people(g, "A")
    commit = g.create_branch("side")
    assert commit == g.snapshot().commit
    add(g, "side", "S")
    add(g, "main", "M")
    assert ids(g, "Person", ref="side") == ["A", "S"]
    assert ids(g, "Person", ref="main") == ["A", "M"]
    assert ids(g, "Person", ref="side~1") == ["A"]
    assert g.branches() == ["main", "side"]
    assert [c.kind for c in g.at("side").log()] == ["write", "write", "init"]
    write(g, lambda tx: tx.update("Person", set={"age": 5}, where=None), branch="side")
    write(g, lambda tx: tx.delete("Person", where=field("name") == "A"), branch="side")
    assert rows(g, "Person", "age") == [{"id": "A", "age": None}, {"id": "M", "age": None}]
    g.branch("side").optimize()
    assert ids(g, "Person", ref="side") == ["S"]


def test_a_branch_may_start_anywhere(g: Graph) -> None:
    first = people(g, "A")
    people(g, "B")
    g.create_branch("old", ref="main~1")
    g.create_branch("older", ref=first)
    g.create_branch("deep", ref="old")
    commit = add(g, "deep", "D")
    assert ids(g, "Person", ref="old") == ["A"]
    assert ids(g, "Person", ref="older") == ["A"]
    assert ids(g, "Person", ref=commit) == ["A", "D"]
    assert ids(g, "Person", ref=f"deep@{first}") == ["A"]
    assert ids(g, "Person", ref="deep~1") == ["A"]
    assert ids(g, "Person", ref="deep~2") == []
    with pytest.raises(RefNotFound):
        g.at("deep~3")
    with pytest.raises(RefNotFound, match="on branch 'old'"):
        g.at(f"old@{commit}")


def test_each_branch_has_its_own_schema(g: Graph) -> None:
    people(g, "A")
    g.create_branch("wide")
    schema = g.snapshot().schema
    g.apply_schema(schema.replace("age: I32?", "age: I32?\n  left: String?"))
    g.branch("wide").apply_schema(schema.replace("age: I32?", "age: I32?\n  right: I64?"))
    write(g, lambda tx: tx.upsert("Person", {"name": "A", "left": "l"}))
    write(g, lambda tx: tx.upsert("Person", {"name": "A", "right": 1}), branch="wide")
    assert rows(g, "Person", "left") == [{"id": "A", "left": "l"}]
    assert rows(g, "Person", "right", ref="wide") == [{"id": "A", "right": 1}]
    g.apply_schema(schema + "node New { x: String? }\n")
    g.branch("wide").apply_schema(schema + "node New { y: I64? }\n")
    write(g, lambda tx: tx.append("New", {"id": "n", "x": "x"}))
    write(g, lambda tx: tx.append("New", {"id": "n", "y": 1}), branch="wide")
    assert rows(g, "New") == [{"id": "n", "x": "x"}]
    assert rows(g, "New", ref="wide") == [{"id": "n", "y": 1}]


@pytest.mark.parametrize("name", ["a/b", "ü", "a b", "a%2Fb", "x" * 200, "#1", "A", "~"])
def test_a_branch_may_have_almost_any_name(name: str, tmp_path: Any) -> None:
    with omnigraph.init(tmp_path / "g", schema="node Person { name: String @key }") as g:
        g.create_branch(name)
        add(g, name, "X")
        with omnigraph.open(g.root) as again:
            assert again.branches() == sorted(["main", name], key=lambda n: (n != "main", n))
            assert ids(again, "Person", ref=name) == ["X"]
        assert ids(g, "Person") == []
    outside = [path.name for path in (tmp_path).iterdir()]
    assert outside == ["g"]


@pytest.mark.parametrize("name", ["", "a\nb", "x~2", "0" * 26, "ü" * 40, "\ud800"])
def test_a_name_that_reads_as_something_else_is_refused(name: str, tmp_path: Any) -> None:
    with omnigraph.init(tmp_path / "g", schema="node Person { name: String @key }") as g:
        with pytest.raises(InvalidArgument):
            g.create_branch(name)
        assert g.branches() == ["main"]


def test_making_and_deleting_branches_that_are_or_are_not_there(g: Graph) -> None:
    g.create_branch("side")
    with pytest.raises(BranchExists, match="'side' exists"):
        g.create_branch("side")
    with pytest.raises(BranchExists):
        g.create_branch("main")
    with pytest.raises(BranchNotFound):
        g.create_branch("x", ref="nowhere")
    with pytest.raises(InvalidArgument, match="cannot be deleted"):
        g.delete_branch("main")
    g.delete_branch("side")
    for attempt in (
        lambda: g.delete_branch("side"),
        lambda: g.at("side"),
        lambda: add(g, "side", "X"),
        lambda: g.delete_branch("never"),
    ):
        with pytest.raises(BranchNotFound, match="There is no branch"):
            attempt()
    assert g.branches() == ["main"]


@pytest.mark.stored
def test_a_branch_made_again_is_another_branch(g: Graph) -> None:
    people(g, "A")
    g.create_branch("side")
    add(g, "side", "S")
    pinned = g.at("side")
    g.delete_branch("side")
    people(g, "B")
    g.create_branch("side")
    assert ids(g, "Person", ref="side") == ["A", "B"]
    assert ids(pinned, "Person") == ["A", "S"]
    assert ids(g, "Person", ref="side~1") == ["A"]
    fresh = g.at("side").graph_version
    assert (fresh.incarnation, fresh.version) == (2, 4)
    add(g, "side", "T")
    assert [c.kind for c in g.at("side").log()] == ["write", "write", "write", "init"]


Meddle = Callable[[Graph], object]


def recreate(g: Graph) -> None:
    g.delete_branch("side")
    g.create_branch("side")


@pytest.mark.parametrize("meddle", [lambda g: g.delete_branch("side"), recreate])
@pytest.mark.parametrize(
    "statement",
    [
        lambda tx: tx.append("Note", {"text": "blind"}),
        lambda tx: tx.append("Person", {"name": "B"}),
        lambda tx: tx.upsert("Person", {"name": "A", "age": 1}),
        lambda tx: tx.delete("Person", where=None),
        lambda tx: tx.overwrite("Person", []),
    ],
)
def test_a_writer_that_holds_an_old_branch_is_told_that_it_moved(
    g: Graph, meddle: Meddle, statement: Any, root: str
) -> None:
    people(g, "A")
    g.create_branch("side")
    add(g, "side", "S")
    other = omnigraph.open(root)
    tx = g.branch("side").transaction()
    statement(tx)
    meddle(other)
    with pytest.raises(BranchMoved, match="deleted, or deleted and created again") as error:
        tx.publish()
    assert error.value.applied is False
    assert not error.value.retryable
    if "side" in other.branches():
        assert ids(other, "Person", ref="side") == ["A"]
        assert ids(other, "Note", ref="side") == []
