"""Owns the change feed of a server: pages of blocks, and events of what comes, from the last cursor
on when the connection is lost."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import urllib3

from omnigraph.client.past import block_of
from omnigraph.client.served_graph import ServedGraph, pieces_of
from omnigraph.client.understanding import understanding
from omnigraph.engine.history.feed import FeedBlock
from omnigraph.errors import BadAnswer, Unavailable
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
            told, ended = _blocks_in(page, types)
            yield from told
            if ended:
                break
            before, cursor = cursor, told[-1].cursor if told else cursor
            if cursor == before:
                raise BadAnswer("The server says that more changes follow, and tells none.")
            page = served.get("/changes", asked | {"since": cursor})
        if follow:
            yield from (block_of(one, types) for one in _follow(served, asked, cursor, closed))

    return blocks()


@understanding()
def _blocks_in(
    page: Mapping[str, Any], types: Sequence[str] | None
) -> tuple[list[FeedBlock], bool]:
    return [block_of(one, types) for one in page["blocks"]], bool(page["caught_up"])


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
        except BadAnswer:
            raise
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
            with understanding():
                told = msgspec.json.decode(lines[b"data"], type=dict[str, Any])
                if lines.get(b"event") == b"failed":
                    error = error_of(told)
                    if error.retryable:
                        raise Unavailable(error.message)
                    raise error
                told["cursor"] = msgspec.convert(told["cursor"], str)
            yield told
