"""Owns answers that are sent while they are made: each piece is made in a thread when the socket
has room for it, so a slow client holds no thread, and one who is gone ends the work."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from typing import Any

from starlette.responses import Response

from omnigraph.errors import Cancelled, OmnigraphError, Overloaded, QueryTimeout
from omnigraph.server.call import GraphCall
from omnigraph.server.problems import known
from omnigraph.wire.problems import problem_of

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Pieces:
    """The pieces of an answer, one at a time, from whatever thread. `tail` writes the end of one
    that failed; `cancel` makes the one who makes them stop soon."""

    def __init__(
        self,
        made: Iterator[bytes],
        *,
        cancel: Callable[[], None],
        tail: Callable[[dict[str, Any]], bytes],
    ) -> None:
        self._made = made
        self._lock = threading.Lock()
        self.cancel = cancel
        self.tail = tail

    def next(self) -> bytes | None:
        with self._lock:
            return next(self._made, None)

    def close(self) -> None:
        with self._lock:
            closing = getattr(self._made, "close", None)
            if closing is not None:
                closing()


async def until_gone(receive: Receive) -> None:
    """Returns when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


class PulledResponse(Response):
    """`first` is made before the answer begins, so that an error has a status of its own. `seconds`
    is how long making all pieces may take, without the time that the client takes."""

    def __init__(
        self,
        call: GraphCall,
        pieces: Pieces,
        first: bytes | None,
        *,
        media_type: str,
        headers: Mapping[str, str],
        seconds: float | None,
        held: contextlib.AsyncExitStack,
        status: int = 200,
    ) -> None:
        self.status_code = status
        self.background = None
        self.media_type = media_type
        self._call = call
        self._pieces = pieces
        self._first = first
        self._seconds = seconds
        self._held = held
        self._late = False
        self.init_headers(headers)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(until_gone(receive))
        gone.add_done_callback(lambda task: task.cancelled() or self._pieces.cancel())
        try:
            await self._send_all(scope, send, gone)
        except TimeoutError:
            # Nobody reads: what waits to be sent would wait for ever.
            if (abort := scope.get("abort")) is not None:
                abort()
        finally:
            gone.cancel()
            self._pieces.cancel()
            await self._end()

    async def _end(self) -> None:
        """The slot is free when the thread is, also if nobody waits for it here any more."""
        closing = asyncio.ensure_future(self._in_thread(self._pieces.close))
        closing.add_done_callback(_seen)
        try:
            await asyncio.shield(closing)
        finally:
            await self._held.aclose()

    async def _send_all(self, scope: Any, send: Send, gone: asyncio.Future[None]) -> None:
        limits = self._call.service.limits
        until = time.monotonic() + limits.longest_stream
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        )
        piece = self._first
        while piece is not None:
            if gone.done():
                return
            async with asyncio.timeout(limits.stalled):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            try:
                if time.monotonic() > until:
                    raise Overloaded(
                        f"The answer was not read within {limits.longest_stream:g} s.",
                        limit="longest_stream",
                    )
                piece = await self.pull()
            except BaseException as error:
                if gone.done() or not isinstance(error, Exception):
                    raise
                await self._send_tail(error, send)
                return
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def pull(self) -> bytes | None:
        """The next piece; it has to be there before the time of the whole is used up."""
        loop, began = asyncio.get_running_loop(), time.monotonic()
        timer = None if self._seconds is None else loop.call_later(self._seconds, self._expire)
        try:
            piece: bytes | None = await self._in_thread(self._pieces.next)
            return piece
        except Cancelled:
            if self._late:
                raise QueryTimeout(
                    "The query took longer than its timeout.", limit="timeout"
                ) from None
            raise
        finally:
            if timer is not None:
                timer.cancel()
            if self._seconds is not None:
                self._seconds = max(0.0, self._seconds - (time.monotonic() - began))

    def _expire(self) -> None:
        self._late = True
        self._pieces.cancel()

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        call = self._call
        return await call.service.pools.read.run(call.caller.actor, work, admitted=True)

    async def _send_tail(self, error: Exception, send: Send) -> None:
        """Says what went wrong; the answer is then left without its end, and the door breaks the
        connection."""
        told: OmnigraphError = known(error)
        tail = self._pieces.tail(problem_of(told, self._call.request_id))
        await send({"type": "http.response.body", "body": tail, "more_body": True})


def _seen(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()
