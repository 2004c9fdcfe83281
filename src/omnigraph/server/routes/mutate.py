"""Owns the route that changes a graph by a text of the query language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from omnigraph.engine.graph import Graph
from omnigraph.engine.mutation.result import MutationResult
from omnigraph.server.answers import answer
from omnigraph.server.bodies import QueryText
from omnigraph.server.call import GraphCall, TheCall
from omnigraph.server.routing import StrictRoute
from omnigraph.wire.rows import lineage_of
from omnigraph.wire.values import plain

router = APIRouter(prefix="/graphs/{graph}", tags=["mutate"], route_class=StrictRoute)


class MutateBody(QueryText):
    branch: str = "main"
    message: str | None = None


@router.post("/mutate")
async def mutate(call: TheCall, body: MutateBody) -> Response:
    """Inserts, updates and deletes as one commit; no commit if nothing matched."""
    words = call.words(body.message)
    return await changed(
        call,
        lambda graph: graph.branch(body.branch).mutate(body.query, body.name, body.params, **words),
    )


async def changed(call: GraphCall, work: Callable[[Graph], MutationResult]) -> Response:
    """The answer to a mutation, wherever its text comes from."""
    done = await call.write(work)
    return answer(mutation_row(done), done.commit_id, io=done.io)


def mutation_row(done: MutationResult) -> dict[str, Any]:
    return {
        "branch": done.branch,
        "query": done.query,
        "nodes": done.nodes,
        "edges": done.edges,
        "counts": {name: plain(counts) for name, counts in done.counts.items()},
        "commit": done.commit_id,
        "repeated": done.repeated,
        "lineage": lineage_of(done.commit),
    }
