"""Owns the routes that look for words and meanings in all texts, and tell the state of indexes."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter
from starlette.responses import Response

from omnigraph.engine.graph import Graph
from omnigraph.server.answers import answer, read_at
from omnigraph.server.bodies import RequestBody
from omnigraph.server.call import TheCall
from omnigraph.server.routing import StrictRoute
from omnigraph.server.rows import Found, RowsWanted, answer_rows, found_by
from omnigraph.wire.media import choose_form
from omnigraph.wire.values import plain

router = APIRouter(prefix="/graphs/{graph}", tags=["query"], route_class=StrictRoute)


class SearchBody(RequestBody):
    """`limit` is how many entities are found at most."""

    text: str
    types: list[str] | None = None
    limit: int = 10
    by: Literal["words", "meaning", "both"] = "words"
    ref: str = "main"


@router.post("/search")
async def search(call: TheCall, body: SearchBody) -> Response:
    """The best entities of the graph for some words, each with the passage that answers."""
    form = choose_form(call.request.headers.get("accept"))
    limits = call.service.limits

    def find(graph: Graph) -> Found:
        snapshot = graph.at(body.ref)
        found = snapshot.search(body.text, types=body.types, limit=body.limit, by=body.by)
        return found_by(found, body.ref, seen=call.has_seen(snapshot))

    wanted = RowsWanted(form, None, None, 0, limits.timeout, limits.query_memory, body.text)
    return await answer_rows(call, find, wanted)


@router.get("/indexes")
async def indexes(call: TheCall, ref: str = "main") -> Response:
    """The indexes that the schema asks for, and how many rows each covers."""

    def told(snapshot: Any) -> dict[str, Any]:
        return {"items": [plain(one) for one in snapshot.indexes()], "cursor": None}

    return await read_at(call, ref, told)


@router.get("/recovery")
async def recovery(call: TheCall) -> Response:
    """Long operations under way, and those that died; a job resumes or discards one."""
    found = await call.read(lambda graph: [one.to_dict() for one in graph.recovery.list()])
    return answer({"items": found, "cursor": None}, headers={"Cache-Control": "no-store"})
