"""Owns the route that changes a graph by a text of the query language."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from omnigraph.server.asking import changed
from omnigraph.server.bodies import QueryText
from omnigraph.server.call import TheCall
from omnigraph.server.routing import StrictRoute

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
