"""Owns the routes of single entities: one as it is, its history, its blobs with ranges."""

from __future__ import annotations

import contextlib
import re
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from omnigraph.engine.blob import Blob
from omnigraph.engine.graph import Graph
from omnigraph.engine.snapshot import Snapshot
from omnigraph.errors import EntityNotFound, RangeNotSatisfiable
from omnigraph.plan.digest import digest_values
from omnigraph.server.answers import about, answer, check_items, not_modified, read_at
from omnigraph.server.call import GraphCall, PropertyName, TheCall, TypeName
from omnigraph.server.lines import list_page
from omnigraph.server.routing import StrictRoute
from omnigraph.server.streams import Pieces, PulledResponse
from omnigraph.wire.conditions import etag_of
from omnigraph.wire.cursors import read_cursor
from omnigraph.wire.rows import change_row, commit_record, origin_row

router = APIRouter(
    prefix="/graphs/{graph}/entities/{type}", tags=["entities"], route_class=StrictRoute
)
Id = Annotated[str, Query(max_length=8_000)]
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_PIECE = 1 << 20
_BYTES = "application/octet-stream"


@router.get("")
async def entity(call: TheCall, type: TypeName, id: Id, ref: str = "main") -> Response:
    """One entity with all its properties."""

    def told(snapshot: Snapshot) -> dict[str, Any]:
        found = snapshot.entity(type, id)
        if found is None:
            raise EntityNotFound(f"There is no {type} {id!r} at {ref}.")
        return dict(call.shown(found))

    return await read_at(call, ref, told)


@router.get("/history")
async def history(
    call: TheCall,
    type: TypeName,
    id: Id,
    branch: str = "main",
    limit: int | None = None,
    cursor: str | None = None,
) -> Response:
    """The commits that changed one entity, newest first, with what they did to it."""
    limits = call.service.limits
    most = check_items(limit, limits.list_items, limits.most_list_items)
    of = digest_values(["history", call.name, type, id, branch])
    place = None if cursor is None else read_cursor(cursor, of)

    def page(graph: Graph) -> tuple[str, dict[str, Any]]:
        start = graph.at(branch if place is None else place.commit)
        offset = 0 if place is None else place.offset
        rows = (
            {**commit_record(one.commit), "change": call.shown(change_row(one.change))}
            for one in start.history(type, id, limit=offset + most + 1)
        )
        return start.commit.id, list_page(rows, offset, most, of, start.commit.id)

    commit, told = await call.read(page)
    return answer(told, commit)


@router.get("/blame")
async def blame(call: TheCall, type: TypeName, id: Id, ref: str = "main") -> Response:
    """Which commit last set each property of one entity."""

    def told(snapshot: Snapshot) -> dict[str, Any]:
        found = snapshot.blame(type, id)
        if not found:
            raise EntityNotFound(f"There is no {type} {id!r} at {ref}.")
        return {"items": [call.shown(origin_row(one)) for one in found], "cursor": None}

    return await read_at(call, ref, told)


@router.head("/blobs/{property}")
@router.get("/blobs/{property}")
async def blob(
    call: TheCall, type: TypeName, property: PropertyName, id: Id, ref: str = "main"
) -> Response:
    """The bytes of a blob, or a range of them. Nothing else of it is read."""

    def find(graph: Graph) -> tuple[str, Blob | None]:
        snapshot = graph.at(ref)
        commit = snapshot.commit.id
        if call.has_seen(snapshot):
            return commit, None
        found = snapshot.blob(type, id, property)
        if found is None:
            raise EntityNotFound(f"{type} {id!r} has no {property} at {ref}.", missing="value")
        return commit, found

    commit, found = await call.read(find)
    if found is None:
        return not_modified(commit)
    part = _range(call, commit, found.size)
    start, end = part or (0, found.size)
    headers = about(commit) | {
        "Accept-Ranges": "bytes",
        "Content-Length": str(end - start),
        "Content-Disposition": "attachment",
    }
    if part is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{found.size}"
    status = 200 if part is None else 206
    if call.request.method == "HEAD":
        return Response(status_code=status, media_type=_BYTES, headers=headers)
    return await _sent(call, found, start, end, headers, status)


def _range(call: GraphCall, commit: str, size: int) -> tuple[int, int] | None:
    """The one range that is asked for, as start and end; None for all of it."""
    headers = call.request.headers
    match = _RANGE.fullmatch(headers.get("range", "").strip())
    if match is None or not any(match.groups()):
        return None
    held = headers.get("if-range")
    if held is not None and held.removeprefix("W/") != etag_of(commit):
        return None
    first, last = match.groups()
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), size if not last else min(size, int(last) + 1)
    if start >= size or start >= end:
        raise RangeNotSatisfiable(f"The blob has {size:,} bytes.", size=size)
    return start, end


async def _sent(
    call: GraphCall, found: Blob, start: int, end: int, headers: dict[str, str], status: int
) -> Response:
    def made() -> Any:
        for at in range(start, end, _PIECE):
            yield found.read(at, min(_PIECE, end - at))

    held = contextlib.AsyncExitStack()
    held.enter_context(call.service.admission.stream())
    pieces = Pieces(made(), cancel=lambda: None, tail=lambda _: b"")
    first = await call.read(lambda _: pieces.next())
    return PulledResponse(
        call,
        pieces,
        first,
        media_type=_BYTES,
        headers=headers,
        seconds=None,
        held=held,
        status=status,
    )
