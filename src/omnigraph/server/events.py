"""Owns answers that are events (SSE): sent as something happens, until the client goes, the server
ends or the time of a stream is over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec
from starlette.responses import Response

from omnigraph.server.answers import VARY
from omnigraph.server.call import GraphCall
from omnigraph.server.streams import until_gone
from omnigraph.wire.media import EVENTS
from omnigraph.wire.values import plain

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
SendBytes = Callable[[bytes], Awaitable[None]]
_PULSE = 15.0


class EventStream:
    """What somebody who makes events has: where they go, and whether it is time to end."""

    def __init__(self, call: GraphCall, send: SendBytes, gone: asyncio.Future[None]) -> None:
        self._call = call
        self._send = send
        self._gone = gone
        self._until = time.monotonic() + call.service.limits.longest_stream
        self._said = time.monotonic()

    @property
    def over(self) -> bool:
        draining = self._call.service.draining
        return self._gone.done() or time.monotonic() > self._until or draining

    async def tell(self, name: str, data: Any, id: str | None = None) -> None:
        await self._send(event(name, data, id))
        self._said = time.monotonic()

    async def pause(self, seconds: float) -> None:
        """Waits a little, and shows from time to time that somebody is there."""
        await asyncio.wait({self._gone}, timeout=seconds)
        if time.monotonic() - self._said > _PULSE:
            await self._send(b": still here\n\n")
            self._said = time.monotonic()


class EventsResponse(Response):
    """`made` makes the events and returns after the last one."""

    def __init__(self, call: GraphCall, made: Callable[[EventStream], Awaitable[None]]) -> None:
        self.status_code = 200
        self.background = None
        self.media_type = EVENTS
        self._call = call
        self._made = made
        self.init_headers({"Cache-Control": "no-store", "Vary": VARY})

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        gone = asyncio.ensure_future(until_gone(receive))

        async def sent(body: bytes) -> None:
            async with asyncio.timeout(self._call.service.limits.stalled):
                await send({"type": "http.response.body", "body": body, "more_body": True})

        try:
            with self._call.service.admission.stream():
                await send(
                    {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
                )
                await sent(b": here\n\n")
                await self._made(EventStream(self._call, sent, gone))
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            if (abort := scope.get("abort")) is not None:
                abort()
        finally:
            gone.cancel()


def event(name: str, data: Any, id: str | None = None) -> bytes:
    """One event of a stream. JSON has no line breaks."""
    lines = [b"event: " + name.encode(), b"data: " + msgspec.json.encode(plain(data))]
    if id is not None:
        lines.insert(0, b"id: " + id.encode())
    return b"\n".join(lines) + b"\n\n"
