"""A graph offers what the protocols say, with the same signatures: what a client has to offer."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from omnigraph import Branch, Graph, Snapshot, Transaction
from omnigraph.engine.protocols import (
    BranchLike,
    GraphLike,
    SavepointLike,
    SnapshotLike,
    TransactionLike,
)
from omnigraph.engine.write.transaction import Savepoint

PAIRS: tuple[tuple[type, type], ...] = (
    (SnapshotLike, Snapshot),
    (BranchLike, Branch),
    (GraphLike, Graph),
    (TransactionLike, Transaction),
    (SavepointLike, Savepoint),
)
NOT_REMOTE = {"acting", "copy", "spark", "maintenance", "io", "prepare"}
"""What needs the files themselves, a policy beside them, or no way over the line."""
NOT_OF_A_CLIENT = {
    *("graph_version", "catalog", "type", "view", "version", "branch", "io", "prepare"),
}
"""What a snapshot shows of the engine behind it, or does for calls without a way."""
ANY = {"branch": "a name, or a handle of whoever made it", "unit": "a function of its transaction"}
"""Parameters whose type is the implementation's own."""


def members(kind: type) -> Iterator[str]:
    for name, member in inspect.getmembers(kind):
        public = name in ("__enter__", "__exit__") or not name.startswith("_")
        if public and (callable(member) or isinstance(member, property)):
            yield name


def told(function: Any) -> list[tuple[str, str, object, str]]:
    """Parameters by name, kind, default and type."""
    signature = inspect.signature(function)
    return [
        (p.name, p.kind.name, p.default, "" if p.name in ANY else str(p.annotation))
        for p in signature.parameters.values()
    ]


@pytest.mark.parametrize(("like", "kind"), PAIRS, ids=lambda one: one.__name__)
def test_signatures_are_those_of_the_protocol(like: type, kind: type) -> None:
    names = list(members(like))
    assert names
    for name in names:
        wanted, has = (inspect.getattr_static(one, name) for one in (like, kind))
        assert isinstance(wanted, property) == isinstance(has, property), name
        if not isinstance(wanted, property):
            assert told(has) == told(wanted), name


@pytest.mark.parametrize(("like", "kind"), PAIRS, ids=lambda one: one.__name__)
def test_nothing_public_is_missing_from_the_protocol(like: type, kind: type) -> None:
    allowed = NOT_OF_A_CLIENT if kind is Snapshot else NOT_REMOTE
    assert set(members(kind)) - set(members(like)) - allowed == set()


def as_graph_like(g: Graph) -> GraphLike:
    return g  # mypy says whether it is one, also what it gives back


def as_snapshot_like(snapshot: Snapshot) -> SnapshotLike:
    return snapshot


def test_a_graph_is_used_through_the_protocol() -> None:
    import omnigraph

    with omnigraph.init("memory://", schema="node Note { text: String }") as opened:
        g = as_graph_like(opened)
        with g.transaction(actor="ada") as tx, tx.savepoint():
            tx.append("Note", {"text": "a"})
        g.create_branch("side")
        assert g.branch("side").count("Note") == g.at("main").count("Note") == 1
        assert as_snapshot_like(opened.snapshot()).types() == ["Note"]


def test_a_signature_that_differs_is_seen() -> None:
    class Other(Graph):
        def merge(self, source: str, into: str = "main") -> Any:  # type: ignore[override]
            return source, into

    assert told(Other.merge) != told(GraphLike.merge)
