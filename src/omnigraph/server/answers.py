"""Owns the answers that are one JSON object, and the headers of every answer about a version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from starlette.responses import Response

from omnigraph.engine.snapshot import Snapshot
from omnigraph.errors import InvalidArgument
from omnigraph.server.call import GraphCall
from omnigraph.telemetry import Ledger
from omnigraph.wire.conditions import etag_of
from omnigraph.wire.cursors import PageCursor, read_cursor
from omnigraph.wire.media import JSON
from omnigraph.wire.values import plain

VARY = "Accept, Authorization"


def about(commit: str | None, *, timely: bool = False) -> dict[str, str]:
    """Headers that say of which commit an answer is. A timely one must not be kept."""
    headers = {"Vary": VARY, "Cache-Control": "no-store" if timely else "private, no-cache"}
    if commit is not None:
        headers["Omnigraph-Commit"] = commit
        if not timely:
            headers["ETag"] = etag_of(commit)
    return headers


def told_io(io: Ledger) -> dict[str, int]:
    """What reading or writing took, in requests and bytes."""
    return {
        "reads": io.reads,
        "writes": io.writes,
        "hops": io.hops,
        "bytes": io.bytes,
    }


def io_header(io: Ledger) -> dict[str, str]:
    return {"Omnigraph-Io": "; ".join(f"{name}={n}" for name, n in told_io(io).items())}


def answer(
    value: Any,
    commit: str | None = None,
    *,
    status: int = 200,
    io: Ledger | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """One JSON object."""
    all_headers = about(commit) | (headers or {})
    if io is not None:
        all_headers |= io_header(io)
    return Response(
        msgspec.json.encode(plain(value)), status_code=status, media_type=JSON, headers=all_headers
    )


def not_modified(commit: str) -> Response:
    return Response(status_code=304, headers=about(commit))


async def read_at(call: GraphCall, ref: str, work: Callable[[Snapshot], Any]) -> Response:
    """What is made of the version that a ref names, unless the client has it."""

    def do(graph: Any) -> tuple[str, Any, bool]:
        snapshot: Snapshot = graph.at(ref)
        commit = snapshot.commit.id
        if call.has_seen(snapshot):
            return commit, None, True
        return commit, work(snapshot), False

    commit, value, seen = await call.read(do)
    return not_modified(commit) if seen else answer(value, commit)


def pin_of(snapshot: Snapshot) -> str:
    """The ref that names this version for ever: by its branch, if one was asked for, because who
    may read a branch may read what is in its past."""
    commit = snapshot.commit.id
    return commit if snapshot.asked is None else f"{snapshot.asked.name}@{commit}"


def page_of(
    items: Sequence[Any], limit: int, cursor: str | None, of: str, *, commit: str = ""
) -> dict[str, Any]:
    """A part of a list that is known as a whole."""
    start = 0 if cursor is None else read_cursor(cursor, of).offset
    shown = items[start : start + limit]
    more = start + limit < len(items)
    return {
        "items": shown,
        "cursor": PageCursor(commit, of, start + limit).text if more else None,
    }


def check_items(limit: int | None, usual: int, most: int) -> int:
    """How many items a list or a page has."""
    if limit is None:
        return usual
    if not 0 < limit <= most:
        raise InvalidArgument(f"limit is a number from 1 to {most:,}, not {limit:,}.")
    return limit
