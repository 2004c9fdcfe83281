"""Owns the route that tells what is in a graph."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from omnigraph.engine.graph import Graph
from omnigraph.engine.snapshot import Snapshot
from omnigraph.model.catalog import EdgeType
from omnigraph.model.permission import AskedAction
from omnigraph.server.answers import answer, not_modified
from omnigraph.server.bodies import Types
from omnigraph.server.call import GraphCall, TheCall
from omnigraph.server.routing import StrictRoute
from omnigraph.wire.rows import commit_record

router = APIRouter(prefix="/graphs/{graph}", tags=["graph"], route_class=StrictRoute)


@router.get("")
async def stats(call: TheCall, ref: str = "main", type: Types = None) -> Response:
    """What is in a graph: types with their counts, branches and tags with their commits, and the
    format if the caller maintains the graph. With `type` only the counts of these."""
    commit, told = await call.read(lambda graph: _stats(graph, ref, call, type))
    return not_modified(commit) if told is None else answer(told, commit)


@router.get("/may")
async def may(call: TheCall, action: AskedAction, branch: str = "main") -> Response:
    """Whether the caller may do that to a branch, or to a new one of that name, or to the graph."""
    allowed = await call.read(lambda graph: graph.may(action, branch))
    return answer({"action": action, "branch": branch, "allowed": allowed})


def _stats(
    graph: Graph, ref: str, call: GraphCall, types: list[str] | None
) -> tuple[str, dict[str, Any] | None]:
    snapshot = graph.at(ref)
    if call.has_seen(snapshot):
        return snapshot.commit.id, None
    if types is not None:
        counts = [{"name": name, "count": snapshot.count(name)} for name in types]
        told = {"name": call.name, "ref": ref, "commit": snapshot.commit.id, "types": counts}
        return snapshot.commit.id, told
    protected = set(graph.protected_branches())
    return snapshot.commit.id, {
        "name": call.name,
        "ref": ref,
        "commit": snapshot.commit.id,
        "format": graph.format().to_dict() if graph.may("maintain") else None,
        "types": type_rows(snapshot),
        "branches": [
            {"name": name, "protected": name in protected, "commit": graph.at(name).commit.id}
            for name in graph.branches()
        ],
        "tags": [{"name": name, **commit_record(held)} for name, held in graph.tags().items()],
    }


def type_rows(snapshot: Snapshot) -> list[dict[str, Any]]:
    """The types of a version, in the order of the schema, with how many entities they have."""
    return [
        {
            "name": kind.name,
            "kind": "edge" if isinstance(kind, EdgeType) else "node",
            "count": snapshot.count(kind.name),
        }
        for kind in snapshot.catalog.types
    ]
