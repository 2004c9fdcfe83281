"""Creating and opening a graph, and what a closed or read-only handle refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    GraphExists,
    GraphNotFound,
    InvalidArgument,
    InvalidRoot,
    ReadOnly,
)
from tests.contract.graphs import SCHEMA, ids, people, rows


def test_a_new_graph_has_its_types_and_no_rows(g: Graph) -> None:
    snapshot = g.snapshot()
    assert snapshot.commit.kind == "init"
    assert snapshot.schema == SCHEMA
    assert snapshot.types() == ["Item", "Media", "Note", "Person", "Knows", "Owns", "Wrote"]
    assert [snapshot.count(name) for name in snapshot.types()] == [0] * 7
    assert all(rows(snapshot, name) == [] for name in snapshot.types())


def test_a_graph_is_not_created_twice(g: Graph, root: str) -> None:
    people(g, "A")
    with pytest.raises(GraphExists, match="already"):
        omnigraph.init(root, schema="node Other { x: String }")
    assert ids(g, "Person") == ["A"]


def test_what_one_handle_wrote_another_opens(g: Graph, root: str) -> None:
    people(g, "A", "B")
    with omnigraph.open(root) as again:
        assert ids(again, "Person") == ["A", "B"]
        assert again.root == g.root


def test_there_is_no_graph_where_none_was_made(root: str) -> None:
    for mode in ("rw", "r"):
        with pytest.raises(GraphNotFound, match="There is no graph"):
            omnigraph.open(root, mode=mode)


@pytest.mark.stored
def test_a_handle_for_reading_refuses_every_write(g: Graph, root: str) -> None:
    people(g, "A")
    with omnigraph.open(root, mode="r") as reader:
        assert ids(reader, "Person") == ["A"]
        for attempt in (
            reader.transaction,
            lambda: reader.run(str),
            lambda: reader.apply_schema(SCHEMA),
            lambda: reader.create_branch("x"),
            lambda: reader.delete_branch("x"),
            reader.optimize,
        ):
            with pytest.raises(ReadOnly, match="reading only"):
                attempt()
        assert reader.plan_schema(SCHEMA).steps == ()
    assert len(list(g.log())) == 2


@pytest.mark.stored
def test_a_closed_handle_refuses_everything(root: str) -> None:
    with omnigraph.init(root, schema=SCHEMA) as g:
        pass
    for attempt in (
        g.snapshot,
        g.transaction,
        lambda: list(g.log()),
        g.manifest,
        g.branches,
        g.optimize,
        lambda: g.run(str),
        lambda: g.plan_schema(SCHEMA),
        lambda: g.apply_schema(SCHEMA),
        lambda: g.create_branch("x"),
        lambda: g.delete_branch("x"),
    ):
        with pytest.raises(InvalidArgument, match="was closed"):
            attempt()


def test_a_schema_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "people.pg"
    path.write_text(SCHEMA)
    with omnigraph.init(tmp_path / "a", schema=path) as g:
        assert g.snapshot().schema == SCHEMA
    with omnigraph.init(tmp_path / "b", schema=str(path)) as g:
        assert g.snapshot().schema == SCHEMA
    with pytest.raises(InvalidArgument, match=r"missing\.pg"):
        omnigraph.init(tmp_path / "c", schema=tmp_path / "missing.pg")


def test_a_root_may_be_an_address_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "with space"
    with omnigraph.init(f"file://{tmp_path}/with%20space", schema=SCHEMA) as g:
        people(g, "A")
    with omnigraph.open(path) as g:
        assert ids(g, "Person") == ["A"]


@pytest.mark.parametrize("root", ["", "  ", "ftp://host/x", "http://host/graph", "s3://"])
def test_a_root_of_an_unknown_kind_is_refused(root: str) -> None:
    with pytest.raises(InvalidRoot):
        omnigraph.open(root)


def test_a_mode_is_rw_or_r(g: Graph, root: str) -> None:
    with pytest.raises(InvalidArgument, match="neither"):
        omnigraph.open(root, mode="w")  # type: ignore[call-overload]
