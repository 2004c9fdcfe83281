"""Owns the route that asks: rows of a query, at any ref."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from starlette.responses import Response

from omnigraph.engine.query.result import Result
from omnigraph.engine.snapshot import Snapshot
from omnigraph.server.asking import QueryAsked, ask
from omnigraph.server.bodies import QueryText
from omnigraph.server.call import TheCall
from omnigraph.server.routing import StrictRoute

router = APIRouter(prefix="/graphs/{graph}", tags=["query"], route_class=StrictRoute)


class QueryBody(QueryText):
    """`limit` is how many rows a page has, or a stream at most. `cursor` goes on after a page. The
    nodes of a graph hold their vectors if those are asked for."""

    ref: str | None = None
    timeout: float | None = None
    memory_limit: int | None = None
    limit: int | None = None
    cursor: str | None = None
    shape: Literal["rows", "graph"] = "rows"
    vectors: bool = False


@router.post("/query")
async def query(call: TheCall, body: QueryBody) -> Response:
    """The rows of a query: a page of JSON, or a stream of lines or of Arrow, as `Accept` says."""

    def find(snapshot: Snapshot, timeout: float | None, memory: int) -> Result:
        return snapshot.query(
            body.query, body.name, body.params, timeout=timeout, memory_limit=memory
        )

    asked = QueryAsked(
        find,
        body.query,
        (body.query, body.name, body.params),
        ref=body.ref,
        timeout=body.timeout,
        memory_limit=body.memory_limit,
        limit=body.limit,
        cursor=body.cursor,
        shape=body.shape,
        vectors=body.vectors,
    )
    return await ask(call, asked)
