"""Owns answers that are many JSON objects: a page of a list, or a line for each as they come."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import msgspec
from starlette.responses import Response

from omnigraph.errors import OmnigraphError
from omnigraph.server.answers import about, not_modified
from omnigraph.server.call import GraphCall
from omnigraph.server.rows import attended
from omnigraph.server.streams import Pieces, PulledResponse
from omnigraph.wire.cursors import PageCursor
from omnigraph.wire.media import LINES
from omnigraph.wire.values import plain

_AT_ONCE = 512
Rows = Iterator[dict[str, Any]]


def list_page(rows: Rows, offset: int, limit: int, of: str, commit: str) -> dict[str, Any]:
    """The part of a list that begins at an offset; what comes before is read and left. An error
    after the first of them is that of the next page."""
    shown: list[Any] = []
    try:
        shown.extend(plain(row) for row in islice(rows, offset, offset + limit + 1))
        more = len(shown) > limit
    except OmnigraphError:
        if not shown:
            raise
        more = True
        limit = min(limit, len(shown))
    cursor = PageCursor(commit, of, offset + limit).text if more else None
    return {"items": shown[:limit], "cursor": cursor}


async def answer_lines(
    call: GraphCall, find: Callable[[Any], tuple[str, Rows] | None], seen: str | None = None
) -> Response:
    """A line for each row, made while it is sent. `find` says of which commit they are."""
    async with contextlib.AsyncExitStack() as held:
        held.enter_context(call.service.admission.stream())

        def begin(graph: Any) -> tuple[str, Pieces, bytes | None] | None:
            found = find(graph)
            if found is None:
                return None
            commit, rows = found
            pieces = Pieces(_lines(rows), cancel=lambda: None, tail=_tail)
            return commit, pieces, pieces.next()

        begun = await attended(call, call.service.pools.read, begin, lambda: None)
        if begun is None:
            return not_modified(seen or "")
        commit, pieces, first = begun
        return PulledResponse(
            call,
            pieces,
            first,
            media_type=LINES,
            headers=about(commit),
            seconds=None,
            held=held.pop_all(),
        )


def _lines(rows: Rows) -> Iterator[bytes]:
    while part := list(islice(rows, _AT_ONCE)):
        yield b"".join(msgspec.json.encode(plain(row)) + b"\n" for row in part)


def _tail(problem: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"@error": problem}) + b"\n"
