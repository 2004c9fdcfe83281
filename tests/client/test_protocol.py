"""A graph on a server offers what a graph offers: the same methods, with the same arguments."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from omnigraph import Branch, Graph, Snapshot, Transaction
from omnigraph.client.remote_branch import RemoteBranch
from omnigraph.client.remote_graph import RemoteGraph
from omnigraph.client.remote_jobs import RemoteJobs
from omnigraph.client.remote_snapshot import RemoteSnapshot
from omnigraph.client.transactions import RemoteSavepoint, RemoteTransaction
from omnigraph.client.upkeep import RemoteRecovery
from omnigraph.engine import protocols

PAIRS = [
    (RemoteGraph, protocols.GraphLike),
    (RemoteBranch, protocols.BranchLike),
    (RemoteSnapshot, protocols.SnapshotLike),
    (RemoteTransaction, protocols.TransactionLike),
    (RemoteSavepoint, protocols.SavepointLike),
    (RemoteJobs, protocols.JobsLike),
    (RemoteRecovery, protocols.RecoveryLike),
]


def members(of: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for base in reversed(of.__mro__):
        if base.__module__.startswith("omnigraph"):
            found |= vars(base)
    return {
        name: one
        for name, one in found.items()
        if (not name.startswith("_") or name in ("__enter__", "__exit__"))
        and (inspect.isfunction(one) or isinstance(one, property))
    }


def arguments(function: Any) -> list[tuple[str, Any, Any]]:
    shown = inspect.signature(function).parameters.values()
    return [(one.name, one.kind, one.default) for one in shown]


@pytest.mark.parametrize(("remote", "like"), PAIRS, ids=lambda of: of.__name__)
def test_the_client_has_every_method_of_the_protocol(remote: type, like: type) -> None:
    here, there = members(like), members(remote)
    assert sorted(here.keys() - there.keys()) == []
    for name, wanted in here.items():
        offered = there[name]
        if isinstance(wanted, property):
            assert isinstance(offered, property), name
        else:
            assert arguments(offered) == arguments(wanted), name


@pytest.mark.parametrize(
    ("remote", "here"),
    [
        (RemoteGraph, Graph),
        (RemoteBranch, Branch),
        (RemoteSnapshot, Snapshot),
        (RemoteTransaction, Transaction),
    ],
    ids=lambda of: of.__name__,
)
def test_the_client_adds_nothing_and_leaves_only_files_out(remote: type, here: type) -> None:
    inner = {"type", "view", "branch", "version"}  # the engine's own, of a snapshot
    own = {"catalog", "digest"}  # which a snapshot has as attributes
    assert sorted(members(remote).keys() - members(here).keys() - own) == []
    assert sorted(members(here).keys() - members(remote).keys() - inner) == []


def held(g: RemoteGraph) -> list[object]:
    """mypy reads this: a client is a graph."""
    graph: protocols.GraphLike = g
    at: protocols.SnapshotLike = g.at("main")
    branch: protocols.BranchLike = g.branch("main")
    tx: protocols.TransactionLike = g.transaction()
    return [graph, at, branch, tx]
