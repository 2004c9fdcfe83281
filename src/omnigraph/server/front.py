"""Owns what happens to every request before and after its route: its id, the service it is for, who
is calling, and what no route may be asked. Pure ASGI: nothing here holds a body."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.types import ASGIApp, Receive, Scope

from omnigraph.errors import Denied, Draining, InvalidArgument, TooLarge, Unauthenticated
from omnigraph.server.direct import DirectRoutes
from omnigraph.server.limits import ServerLimits
from omnigraph.server.logs import log_request
from omnigraph.server.metrics import RequestSpan, traced
from omnigraph.server.problems import known, problem_response
from omnigraph.server.service import Service

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_ID = re.compile(r"[\x21-\x7e]{1,128}")
_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]{1,255}")
_LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
_CORS_HEADERS = (
    b"authorization, content-type, accept, if-match, if-none-match, if-range, range, "
    b"idempotency-key, last-event-id, x-request-id, traceparent"
)
METADATA = "/.well-known/oauth-protected-resource"
OPEN_PATHS = frozenset({"/", "/healthz", "/readyz", "/version", "/openapi.json", METADATA})
"""What is told to anybody, with the files of the web page."""
PAGE = "/web/"


class Front:
    """Around the application. Whatever goes wrong within becomes a problem here at the latest."""

    def __init__(self, app: ASGIApp, service: Service, direct: DirectRoutes) -> None:
        self._long_way = app
        self._direct = direct
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._long_way(scope, receive, send)
            return
        headers = Headers(scope)
        self._service.activity.begin(scope)
        try:
            await self._answer(scope, headers, receive, send)
        finally:
            self._service.activity.end(scope)

    async def _answer(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        request_id = _request_id(headers)
        scope["request_id"] = request_id
        scope["service"] = self._service
        began = time.monotonic()
        answer = _Reply(send, request_id, _allowed_origin(headers, self._service))
        answer.traceparent = headers.get("traceparent")
        answer.keep = not self._service.by_rows or _is_open(scope["path"])
        with traced(scope["method"], answer.traceparent) as span:
            try:
                await self._answered(scope, headers, receive, answer)
            except Exception as error:
                if answer.begun:
                    raise
                await problem_response(known(error), request_id)(scope, receive, answer.send)
            finally:
                self._tell(scope, answer, time.monotonic() - began, span)

    async def _answered(
        self, scope: Scope, headers: Headers, receive: Receive, answer: _Reply
    ) -> None:
        self._refuse(scope, headers)
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await answer.preflight()
        elif _is_open(scope["path"]):
            await self._long_way(scope, receive, answer.send)
        else:
            await self._admitted(scope, headers, receive, answer)

    def _tell(self, scope: Scope, answer: _Reply, seconds: float, span: RequestSpan) -> None:
        route = getattr(scope.get("route"), "path", "none")
        span.answered(route, answer.status, answer.problem)
        self._service.metrics.answered(route, scope["method"], answer.status, seconds)
        if answer.problem is not None:
            self._service.metrics.refused(answer.problem, answer.status)
        caller = scope.get("caller")
        log_request(
            method=scope["method"],
            route=route,
            graph=(scope.get("path_params") or {}).get("graph"),
            status=answer.status,
            code=answer.problem,
            milliseconds=round(seconds * 1000, 2),
            actor=None if caller is None else caller.actor,
            request_id=scope["request_id"],
            traceparent=answer.traceparent,
        )

    async def _admitted(
        self, scope: Scope, headers: Headers, receive: Receive, answer: _Reply
    ) -> None:
        service = self._service
        try:
            caller = service.credentials.caller_of(headers.get("authorization"))
        except Unauthenticated as error:
            host = headers.get("host") or ""
            if service.issuer is not None and _HOST.fullmatch(host):
                place = f"{scope['scheme']}://{host}{METADATA}"
                error.details["challenge"] = f'Bearer resource_metadata="{place}"'
            raise
        scope["caller"] = caller
        body = _TimelyBody(receive, service.limits, scope.pop("cycle", None))
        if service.draining:
            raise Draining("This server is about to end.", retry_after=1)
        answers = self._direct.answer_to(scope) or self._long_way
        if not service.guarded:
            await answers(scope, body.receive, answer.send)
            return
        with service.admission.actor(caller.actor):
            await answers(scope, body.receive, answer.send)

    def _refuse(self, scope: Scope, headers: Headers) -> None:
        limits = self._service.limits
        size = len(scope["raw_path"]) + len(scope["query_string"])
        if size > limits.url_bytes:
            raise TooLarge(
                "The address is too long.", limit="url_bytes", allowed=limits.url_bytes, actual=size
            )
        if b"%" in scope["raw_path"]:
            raise InvalidArgument("A path here needs no %: its names are plain letters and digits.")
        _refuse_bytes(scope["query_string"])
        if not self._service.guarded:
            _refuse_foreign(headers)


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(PAGE)


class Headers:
    """The headers of a request by name; of those that are there twice, the first."""

    def __init__(self, scope: Scope) -> None:
        self._held: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            self._held.setdefault(name, value)

    def get(self, name: str) -> str | None:
        value = self._held.get(name.encode())
        return None if value is None else value.decode("latin-1")

    def __contains__(self, name: str) -> bool:
        return name.encode() in self._held


class _TimelyBody:
    """The body of a request, which may not come slower than so many bytes a second."""

    def __init__(self, receive: Receive, limits: ServerLimits, cycle: Any) -> None:
        """`cycle` is what the door knows of the request: most bodies have arrived with the head."""
        self._receive = receive
        self._cycle = cycle
        self._rate = limits.body_rate
        self._left = limits.header_seconds
        self._whole = False

    async def receive(self) -> MutableMapping[str, Any]:
        if self._whole or (self._cycle is not None and not self._cycle.more_body):
            return await self._receive()  # nothing is to come but that the client has gone
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._left):
                message = await self._receive()
        except TimeoutError:
            raise TooLarge(
                f"The body comes slower than {self._rate:,} bytes a second.",
                limit="body_rate",
                allowed=self._rate,
            ) from None
        part = message.get("body", b"")
        self._left += len(part) / self._rate - (time.monotonic() - began)
        self._left = max(0.001, self._left)
        self._whole = not message.get("more_body", False)
        return message


class _Reply:
    """Adds the headers that every answer has."""

    def __init__(self, send: Send, request_id: str, origin: str | None) -> None:
        self._send = send
        self._request_id = request_id
        self._origin = origin
        self.begun = False
        self.status = 0
        self.problem: str | None = None
        self.traceparent: str | None = None
        self.keep = True

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            self.status = message["status"]
            self.problem = self._code(message["headers"])
            headers = [*message["headers"], (b"x-request-id", self._request_id.encode())]
            if not self.keep:
                headers = [one for one in headers if one[0] != b"cache-control"]
                headers.append((b"cache-control", b"no-store"))
            headers.append((b"x-content-type-options", b"nosniff"))
            if self._origin is not None:
                headers += _cors(self._origin)
            message["headers"] = headers
        await self._send(message)

    @staticmethod
    def _code(headers: Any) -> str | None:
        return next((v.decode() for n, v in headers if n == b"omnigraph-code"), None)

    async def preflight(self) -> None:
        if self._origin is None:
            raise Denied("Pages of this origin may not call this server.")
        headers = [
            (b"access-control-allow-methods", b"GET, HEAD, POST, PATCH, DELETE"),
            (
                b"access-control-allow-headers",
                _CORS_HEADERS,
            ),
            (b"access-control-max-age", b"600"),
            (b"content-length", b"0"),
        ]
        await self.send({"type": "http.response.start", "status": 204, "headers": headers})
        await self.send({"type": "http.response.body", "body": b""})


def _cors(origin: str) -> list[tuple[bytes, bytes]]:
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (
            b"access-control-expose-headers",
            b"etag, location, omnigraph-commit, omnigraph-io, retry-after, x-request-id",
        ),
        (b"vary", b"Origin"),
    ]


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id")
    return given if given is not None and _ID.fullmatch(given) else secrets.token_hex(8)


def _allowed_origin(headers: Headers, service: Service) -> str | None:
    origin = headers.get("origin")
    return origin if origin is not None and origin in service.cors else None


def _refuse_bytes(query: bytes) -> None:
    if b"%" not in query:
        return
    try:
        text = unquote_to_bytes(query).decode()
    except UnicodeDecodeError:
        raise InvalidArgument("The query of the address is not UTF-8.") from None
    if "\0" in text:
        raise InvalidArgument("The query of the address holds a NUL character.")


def _refuse_foreign(headers: Headers) -> None:
    """A page of another site may talk to this machine under a name of its own: who is let in only
    because they are here must also call it by a name of here."""
    host = headers.get("host") or ""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    if name.lower() not in _LOCAL:
        raise Denied(
            "This server is only for this machine, and is called 127.0.0.1 or localhost.",
            help="Give it tokens ([server.auth]) to call it by other names.",
        )
    origin = headers.get("origin")
    if origin is not None and (urlsplit(origin).hostname or "") not in _LOCAL:
        raise Denied("Pages of other sites may not call a server without tokens.")
