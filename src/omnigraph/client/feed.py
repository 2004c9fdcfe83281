"""Owns the change feed of a server: pages of blocks, and events of what comes, from the last cursor
on when the connection is lost."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import urllib3

from omnigraph.client.past import block_of
from omnigraph.client.served_graph import ServedGraph, pieces_of
from omnigraph.engine.history.feed import FeedBlock
from omnigraph.errors import Unavailable
from omnigraph.wire.media import EVENTS
from omnigraph.wire.remote_errors import error_of

_PULSE = 45.0
"""Seconds without even a comment after which a stream of events is lost; there is one every 15."""


def read_feed(
    served: ServedGraph,
    branch: str,
    after: str,
    chosen: Mapping[str, Sequence[str] | None],
    *,
    follow: bool,
    closed: Callable[[], bool],
) -> Generator[FeedBlock, None, None]:
    """The blocks after a place. The first page is fetched at once, so mistakes are told at once."""
    asked = {"branch": branch, "type": chosen["types"], "kind": chosen["kinds"]}
    asked |= {"op": chosen["ops"]}
    first = served.get("/changes", asked | {"since": after})
    types = chosen["types"]

    def blocks() -> Generator[FeedBlock, None, None]:
        page, cursor = first, after
        while True:
            for record in page["blocks"]:
                cursor = record["cursor"]
                yield block_of(record, types)
            if page["caught_up"]:
                break
            page = served.get("/changes", asked | {"since": cursor})
        if follow:
            yield from (block_of(one, types) for one in _follow(served, asked, cursor, closed))

    return blocks()


def _follow(
    served: ServedGraph, asked: Mapping[str, Any], since: str, closed: Callable[[], bool]
) -> Iterator[dict[str, Any]]:
    """Events from a cursor on, for as long as the graph is open. Each lost connection is followed
    by another one that begins where it ended."""
    while not closed():
        response = served.begin(
            "GET",
            "/changes",
            accept=f"{EVENTS};values=typed",
            query=dict(asked) | {"since": since},
            silence=_PULSE,
        )
        served.connection.followed.add(response)
        try:
            for event in _events(response, closed):
                since = event["cursor"]
                yield event
        except Unavailable:
            continue
        finally:
            response.close()


def _events(
    response: urllib3.BaseHTTPResponse, closed: Callable[[], bool]
) -> Iterator[dict[str, Any]]:
    """The commits of a stream of events, each whole: one without its empty line is not there."""
    rest = b""
    for piece in pieces_of(response):
        *whole, rest = (rest + piece).split(b"\n\n")
        for event in whole:
            if closed():
                return
            lines = dict(line.split(b": ", 1) for line in event.split(b"\n") if b": " in line)
            if b"data" not in lines:
                continue
            told = msgspec.json.decode(lines[b"data"])
            if lines.get(b"event") == b"failed":
                error = error_of(told)
                if error.retryable:
                    raise Unavailable(error.message)
                raise error
            yield told
