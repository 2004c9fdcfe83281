"""Owns the connection: uvicorn's protocol on httptools, which closes what sends its headers too
slowly, too many or too large. Nothing of such a request reaches the application."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from omnigraph.errors import InvalidArgument, OmnigraphError, TooLarge
from omnigraph.server.limits import ServerLimits
from omnigraph.wire.problems import MEDIA_TYPE, problem_of

_PHRASES = {400: b"Bad Request", 413: b"Content Too Large", 503: b"Service Unavailable"}


class TurnedAway(Exception):
    """Ends the reading of a request at the door."""


class Door(HttpToolsProtocol):
    """`limits` is of the service that listens."""

    limits: ServerLimits = ServerLimits()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._late: asyncio.TimerHandle | None = None
        self._size = 0
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            transport.abort()
            return
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._done_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused or self.parser is None:
            return
        if self._late is None and self._between():
            self._wait()
        if self._late is not None:
            self._size += len(data)
            if self._size > self.limits.header_bytes + len(data):
                self._refuse(_large("header_bytes", self.limits.header_bytes))
                return
        super().data_received(data)

    def _between(self) -> bool:
        return self.cycle is None or (self.cycle.response_complete and not self.cycle.more_body)

    def _wait(self) -> None:
        self._size = 0
        if self._late is None:
            self._late = self.loop.call_later(self.limits.header_seconds, self._expire)

    def _done_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _expire(self) -> None:
        self._late = None
        if self.transport is not None and not self.transport.is_closing():
            self.transport.abort()

    # What the parser tells

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = 0
        self.scope["abort"] = self.transport.abort  # type: ignore[typeddict-unknown-key]

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self.limits.url_bytes:
            raise TurnedAway(_large("url_bytes", self.limits.url_bytes))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._head += len(name) + len(value) + 4
        if self._head > self.limits.header_bytes:
            raise TurnedAway(_large("header_bytes", self.limits.header_bytes))
        if len(self.headers) > self.limits.headers:
            raise TurnedAway(_large("headers", self.limits.headers))

    def on_headers_complete(self) -> None:
        self._done_waiting()
        self._refuse_ambiguous()
        super().on_headers_complete()
        self.scope["cycle"] = self.cycle  # type: ignore[typeddict-unknown-key]

    def _refuse_ambiguous(self) -> None:
        """Two readers of one connection must not disagree about where a request ends."""
        lengths = [value for name, value in self.headers if name == b"content-length"]
        codings = [value for name, value in self.headers if name == b"transfer-encoding"]
        hosts = [value for name, value in self.headers if name == b"host"]
        if (lengths and codings) or len(lengths) > 1 or len(codings) > 1:
            raise TurnedAway(InvalidArgument("The request says twice how long it is."))
        if any(value.lower() != b"chunked" for value in codings):
            raise TurnedAway(InvalidArgument("The only transfer coding here is chunked."))
        if len(hosts) != 1:
            raise TurnedAway(InvalidArgument("A request has one Host."))

    def send_400_response(self, msg: str) -> None:
        refusal = self._cause()
        self._refuse(refusal or InvalidArgument("This is not a request in HTTP/1.1."))

    def _cause(self) -> OmnigraphError | None:
        import sys

        error = sys.exc_info()[1]
        while error is not None:
            if isinstance(error, TurnedAway) and isinstance(error.args[0], OmnigraphError):
                return error.args[0]
            error = error.__cause__ or error.__context__
        return None

    def _refuse(self, error: OmnigraphError) -> None:
        self._refused = True
        self._done_waiting()
        if self.transport.is_closing():
            return
        answering = self.cycle is not None and not self.cycle.response_complete
        if not answering:
            self.transport.write(refusal_bytes(error))
        self.transport.close()
        self.loop.call_later(1.0, self.transport.abort)


def _large(limit: str, allowed: int) -> TooLarge:
    return TooLarge("The head of the request is too large.", limit=limit, allowed=allowed)


def refusal_bytes(error: OmnigraphError) -> bytes:
    body = msgspec.json.encode(problem_of(error))
    status = error.http_status
    return b"\r\n".join(
        (
            b"HTTP/1.1 %d %s" % (status, _PHRASES.get(status, b"TurnedAway")),
            b"content-type: " + MEDIA_TYPE.encode(),
            b"content-length: %d" % len(body),
            b"connection: close",
            b"",
            body,
        )
    )


def door_of(limits: ServerLimits) -> type[Door]:
    """The protocol with the limits of one service."""
    return type("LimitedDoor", (Door,), {"limits": limits})


def configure(
    app: Any, limits: ServerLimits, *, tls: tuple[str, str] | None = None, **more: Any
) -> uvicorn.Config:
    """How uvicorn runs the application, whoever starts it."""
    logging.getLogger("uvicorn.error").disabled = True  # its words are about ASGI
    return uvicorn.Config(
        app,
        http=door_of(limits),
        loop="uvloop",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=int(limits.keep_alive),
        ssl_certfile=None if tls is None else tls[0],
        ssl_keyfile=None if tls is None else tls[1],
        **more,
    )
