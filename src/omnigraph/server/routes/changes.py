"""Owns the route of the change feed: blocks from a cursor on, waited for, or as events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from omnigraph.engine.graph import Graph
from omnigraph.engine.history.feed import FeedBlock
from omnigraph.server.answers import answer, check_items
from omnigraph.server.bodies import Kinds, Ops, Types
from omnigraph.server.call import GraphCall, TheCall
from omnigraph.server.events import EventsResponse, EventStream
from omnigraph.server.problems import known
from omnigraph.server.routing import StrictRoute
from omnigraph.server.streams import until_gone
from omnigraph.wire.media import EVENTS, accepts
from omnigraph.wire.problems import problem_of
from omnigraph.wire.rows import block_record
from omnigraph.wire.values import plain

router = APIRouter(prefix="/graphs/{graph}", tags=["history"], route_class=StrictRoute)
BEGINNING = "beginning"
_LOOK = 0.5
"""Seconds between two looks at the head while somebody waits."""
_BLOCKS = 100


class Watched:
    """What of a branch is watched, and from where on."""

    def __init__(
        self,
        branch: str,
        types: list[str] | None,
        kinds: list[str] | None,
        ops: list[str] | None,
        shown: Callable[[Any], Any] = plain,
    ) -> None:
        self.branch = branch
        self._shown = shown
        self._chosen: dict[str, Any] = {"types": types, "kinds": kinds, "ops": ops}

    def after(self, graph: Graph, since: str, limit: int) -> tuple[list[dict[str, Any]], bool]:
        """The next blocks, and whether there are more."""
        found = graph.branch(self.branch).changes(since, **self._chosen)
        blocks = [self._row(block) for block in islice(found, limit + 1)]
        return blocks[:limit], len(blocks) > limit

    def _row(self, block: FeedBlock) -> dict[str, Any]:
        row: dict[str, Any] = plain(self._shown(block_record(block)))
        return row


@router.get("/changes")
async def changes(
    call: TheCall,
    branch: str = "main",
    since: str = BEGINNING,
    limit: int | None = None,
    wait: Annotated[float, Query(ge=0, le=30)] = 0,
    type: Types = None,
    kind: Kinds = None,
    op: Ops = None,
) -> Response:
    """What happened on a branch, commit by commit: the blocks after a cursor, waited for if there
    are none; or all that come, as events."""
    watched = Watched(
        branch, type, list(kind) if kind else None, list(op) if op else None, call.shown
    )
    if accepts(call.request.headers.get("accept"), EVENTS):
        since = call.request.headers.get("last-event-id") or since
        return await follow(call, watched, since)
    limits = call.service.limits
    most = check_items(limit, limits.list_items, limits.most_list_items)
    until = time.monotonic() + wait
    gone = None
    try:
        while True:
            blocks, more = await call.read(lambda g: watched.after(g, since, most))
            left = until - time.monotonic()
            if blocks or left <= 0 or call.service.draining:
                break
            gone = gone or asyncio.ensure_future(until_gone(call.request.receive))
            await asyncio.wait({gone}, timeout=min(_LOOK, left))
            if gone.done():
                break
    finally:
        if gone is not None:
            gone.cancel()
    cursor = blocks[-1]["cursor"] if blocks else (None if since == BEGINNING else since)
    told = {"blocks": blocks, "cursor": cursor, "caught_up": not more}
    return answer(told, headers={"Cache-Control": "no-store"})


async def follow(call: GraphCall, watched: Watched, since: str) -> Response:
    """Events from a cursor on. What is wrong with the cursor is told before the first one."""
    found = await call.read(lambda g: watched.after(g, since, _BLOCKS))

    async def made(stream: EventStream) -> None:
        (blocks, more), at = found, since
        while not stream.over:
            for block in blocks:
                at = block["cursor"]
                await stream.tell("commit", block, at)
            if not more:
                await stream.pause(_LOOK)
            try:
                blocks, more = await call.read(partial(watched.after, since=at, limit=_BLOCKS))
            except Exception as error:  # noqa: BLE001  told as an event; the answer has begun
                await stream.tell("failed", problem_of(known(error), call.request_id))
                return

    return EventsResponse(call, made)
