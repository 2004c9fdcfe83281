"""Owns the talk with one client over the standard streams of this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
from anyio.to_thread import run_sync
from mcp.server.stdio import stdio_server

from omnigraph.engine.protocols import GraphLike
from omnigraph.mcp.serving import make_server

T = TypeVar("T")


class LocalDesk:
    """One graph that is open, for one actor. A write that has begun is not left in the middle."""

    def __init__(self, g: GraphLike, graph: str, actor: str, *, merges: bool) -> None:
        self.graph = graph
        self.actor = actor
        self.merges = merges
        self._g = g

    async def read(self, work: Callable[[GraphLike], T]) -> T:
        return await run_sync(work, self._g, abandon_on_cancel=True)

    async def ask(self, work: Callable[[GraphLike, int | None], T]) -> T:
        return await run_sync(work, self._g, None, abandon_on_cancel=True)

    async def write(self, work: Callable[[GraphLike], T]) -> T:
        return await run_sync(work, self._g)


def talk(desk: LocalDesk) -> None:
    """Until the client closes the streams."""

    async def serve() -> None:
        server = make_server(lambda _: desk)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)
