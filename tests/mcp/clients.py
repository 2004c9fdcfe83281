"""The official client, over both transports, from code that is not asynchronous."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

T = TypeVar("T")
Session = Callable[[Client], Awaitable[T]]


def over_stdio(root: str, session: Session[T], *flags: str, actor: str = "eve") -> T:
    """A session with a process of its own."""
    words = ["-m", "omnigraph", "mcp", "--root", root, "--as", actor, *flags]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    return talk(StdioServerParameters(command=sys.executable, args=words, env=environment), session)


def over_http(url: str, session: Session[T], token: str | None = None) -> T:
    async def begin() -> T:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers) as http:
            return await _talk(streamable_http_client(url, http_client=http), session)

    return asyncio.run(begin())


def talk(place: Any, session: Session[T]) -> T:
    return asyncio.run(_talk(place, session))


async def _talk(place: Any, session: Session[T]) -> T:
    async with Client(place, read_timeout_seconds=60) as client:
        return await session(client)


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers, which must be no error."""
    found = await client.call_tool(tool, arguments)
    assert not found.is_error, found.content
    told: dict[str, Any] = found.structured_content
    return told


async def wrong(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool says that is wrong."""
    found = await client.call_tool(tool, arguments)
    assert found.is_error, found.content
    told: dict[str, Any] = found.structured_content
    return told
