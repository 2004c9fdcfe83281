"""Owns the route for models: the Model Context Protocol over HTTP, without sessions."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from importlib.util import find_spec
from typing import Any, TypeVar

from fastapi import APIRouter
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from omnigraph.engine.protocols import GraphLike
from omnigraph.errors import EngineMissing
from omnigraph.server.call import GraphCall, TheCall
from omnigraph.server.routing import StrictRoute
from omnigraph.server.service import Service

router = APIRouter(prefix="/graphs/{graph}", tags=["models"], route_class=StrictRoute)
T = TypeVar("T")


class CallDesk:
    """The desk of one request: its graph, its caller, the threads of the server."""

    def __init__(self, call: GraphCall) -> None:
        self._call = call

    @property
    def graph(self) -> str:
        return self._call.name

    @property
    def actor(self) -> str:
        return self._call.caller.actor

    @property
    def merges(self) -> bool:
        return self._call.service.mcp_merge

    async def read(self, work: Callable[[GraphLike], T]) -> T:
        return await self._call.read(work)

    async def ask(self, work: Callable[[GraphLike, int | None], T]) -> T:
        memory = self._call.service.limits.query_memory
        async with self._call.service.admission.memory(memory):
            return await self._call.read(lambda g: work(g, memory))

    async def write(self, work: Callable[[GraphLike], T]) -> T:
        return await self._call.write(work)


class _Handled(Response):
    """The protocol itself answers, on the streams of the request."""

    def __init__(self, call: GraphCall, answers: ASGIApp) -> None:
        super().__init__()
        self._call = call
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["omnigraph_call"] = self._call
        await self._answers(scope, receive, send)


@router.post("/mcp")
async def mcp(call: TheCall) -> Response:
    """Messages of the Model Context Protocol: the tools, resources and prompts of one graph."""
    answers = call.service.mcp
    if answers is None:
        raise EngineMissing(
            "This server does not speak the Model Context Protocol.",
            help="Install omnigraph[mcp], and do not set mcp = false in [server].",
        )
    await call.read(lambda g: g.name)  # a graph that is not there is told as such
    return _Handled(call, answers)


@contextlib.asynccontextmanager
async def speaking(service: Service, *, wanted: bool) -> AsyncIterator[None]:
    """While the server runs it speaks the protocol, if that is installed."""
    if not wanted or find_spec("mcp") is None:
        yield
        return
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from omnigraph.mcp.serving import make_server

    def desk_of(context: Any) -> CallDesk:
        return CallDesk(context.request.scope["omnigraph_call"])

    manager = StreamableHTTPSessionManager(
        make_server(desk_of),
        json_response=True,
        stateless=True,
        max_request_body_size=service.limits.json_bytes,
    )
    async with manager.run():
        service.mcp = manager.handle_request
        try:
            yield
        finally:
            service.mcp = None
