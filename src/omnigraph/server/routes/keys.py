"""Owns the route that tells what became of a write whose answer was lost."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from omnigraph.engine.graph import Graph
from omnigraph.engine.write.published import find_keyed, hash_key
from omnigraph.errors import InvalidArgument, NotFound
from omnigraph.server.answers import answer
from omnigraph.server.call import TheCall
from omnigraph.server.routing import StrictRoute
from omnigraph.telemetry import Ledger
from omnigraph.wire.conditions import key_of, read_key
from omnigraph.wire.rows import commit_record

router = APIRouter(prefix="/graphs/{graph}", tags=["server"], route_class=StrictRoute)


@router.get("/keys")
async def key(
    call: TheCall, key: Annotated[str, Query(max_length=200)], branch: str = "main"
) -> Response:
    """The commit that a write of the caller with this key made, or 404 if there is none."""
    if read_key(key) is None:
        raise InvalidArgument("key is the Idempotency-Key of a write.")

    def find(graph: Graph) -> dict[str, Any]:
        session, ledger = graph.branch(branch)._session, Ledger()  # noqa: SLF001
        hashed = hash_key(key_of(call.caller.actor, key))
        assert hashed is not None
        found = find_keyed(session, hashed, session.live_head(branch, ledger), ledger)
        if found is None:
            raise NotFound(f"No write with this key has landed on {branch}.")
        return {"branch": branch, **commit_record(found.commit)}

    return answer(await call.read(find), headers={"Cache-Control": "no-store"})
