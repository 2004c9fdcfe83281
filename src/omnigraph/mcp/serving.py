"""Owns the protocol: what a client asks, asked of the graph at its desk, and told in the form of
the protocol. It knows neither HTTP nor streams."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import mcp_types as types
import msgspec
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError

from omnigraph import __version__
from omnigraph.engine.protocols import GraphLike
from omnigraph.errors import InvalidData, InvalidQuery, NotFound, OmnigraphError
from omnigraph.lang.gq.stored import StoredQuery
from omnigraph.lang.suggestions import near
from omnigraph.mcp import documents, reading, writing
from omnigraph.mcp.desk import Desk, Seat
from omnigraph.mcp.failures import (
    ToldFailure,
    failed,
    read_arguments,
    told_of,
    with_correction,
    with_missing_ends,
)
from omnigraph.mcp.stored import PREFIX, described_query, run_stored
from omnigraph.mcp.tool import Tool, described
from omnigraph.wire.values import json_text

_LOG = logging.getLogger("omnigraph.mcp")
_TOOLS = {tool.name: tool for tool in (*reading.TOOLS, *writing.TOOLS, writing.MERGE)}
_WORDS = (
    "A typed graph with branches. Call `schema` first, and `language` before your first query. "
    "Queries are written in .gq, which is neither Cypher nor SQL; a wrong one comes back with its "
    "mistakes and, where it can be known, corrected. What you write goes to your own branch, and "
    "somebody reviews it: say in `message` why you did it."
)
Context = ServerRequestContext[Any, Any]
FindDesk = Callable[[Context], Desk]


def make_server(find_desk: FindDesk) -> Server[Any]:
    """A server of the protocol; each request is done at the desk that is found for it."""
    calls = _Calls(find_desk)
    return Server(
        "omnigraph",
        version=__version__,
        instructions=_WORDS,
        on_list_tools=calls.list_tools,
        on_call_tool=calls.call_tool,
        on_list_resources=calls.list_resources,
        on_list_resource_templates=calls.list_templates,
        on_read_resource=calls.read_resource,
        on_list_prompts=calls.list_prompts,
        on_get_prompt=calls.get_prompt,
    )


class _Calls:
    def __init__(self, find_desk: FindDesk) -> None:
        self._find = find_desk

    async def list_tools(self, context: Context, _params: Any) -> types.ListToolsResult:
        desk = self._find(context)
        seat = Seat(desk.graph, desk.actor)
        return types.ListToolsResult(
            tools=await _told(desk.read(lambda g: offered(g, seat, merges=desk.merges)))
        )

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        desk = self._find(context)
        try:
            answer = await _call(desk, params.name, params.arguments)
        except ToldFailure as error:
            return failed(error.told)
        except OmnigraphError as error:
            return failed(told_of(error))
        told = msgspec.to_builtins(answer)
        text = types.TextContent(text=json_text(told))
        return types.CallToolResult(content=[text], structured_content=told)

    async def list_resources(self, context: Context, _params: Any) -> types.ListResourcesResult:
        desk = self._find(context)
        seat = Seat(desk.graph, desk.actor)
        found = await _told(desk.read(lambda g: documents.resources(g, seat)))
        return types.ListResourcesResult(resources=found)

    async def list_templates(
        self, context: Context, _params: Any
    ) -> types.ListResourceTemplatesResult:
        desk = self._find(context)
        found = documents.templates(Seat(desk.graph, desk.actor))
        return types.ListResourceTemplatesResult(resource_templates=found)

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        desk = self._find(context)
        seat = Seat(desk.graph, desk.actor)
        found = await _told(desk.read(lambda g: documents.read(g, str(params.uri), seat)))
        return types.ReadResourceResult(contents=[found])

    async def list_prompts(self, _context: Context, _params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=documents.prompts())

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        desk = self._find(context)
        try:
            return documents.prompt(
                params.name, params.arguments or {}, Seat(desk.graph, desk.actor)
            )
        except OmnigraphError as error:
            raise _protocol_error(error) from None


def offered(g: GraphLike, seat: Seat, *, merges: bool) -> list[types.Tool]:
    """The tools that the actor may use, and the stored queries that it may run."""
    found = [described(tool) for tool in reading.TOOLS if g.may(tool.needs, "main")]
    found += [described(tool) for tool in writing.TOOLS if g.may(tool.needs, seat.own)]
    if merges and g.may("merge", "main"):
        found.append(described(writing.MERGE))
    writes = g.may("mutate", seat.own)
    found += [
        described_query(one)
        for one in g.queries().values()
        if not one.problem and (writes or not one.mutation)
    ]
    return found


async def _call(desk: Desk, name: str, given: dict[str, Any] | None) -> msgspec.Struct:
    if name.startswith(PREFIX):
        return await _call_stored(desk, name.removeprefix(PREFIX), given or {})
    tool = _TOOLS.get(name)
    if tool is writing.MERGE and not desk.merges:
        raise NotFound(
            "You cannot merge here.",
            help="Somebody reviews your branch and merges it; merge_preview shows what that does.",
        )
    if tool is None:
        raise _unknown(name)
    arguments = read_arguments(tool, given)

    def work(g: GraphLike, memory: int | None = None) -> msgspec.Struct:
        try:
            return tool.run(g, arguments, Seat(desk.graph, desk.actor, memory))
        except InvalidQuery as error:
            raise ToldFailure(with_correction(error, g, arguments)) from None
        except InvalidData as error:
            raise ToldFailure(with_missing_ends(error)) from None

    return await _in_threads(desk, tool.done, work)


async def _call_stored(desk: Desk, name: str, given: dict[str, Any]) -> msgspec.Struct:
    def find(g: GraphLike) -> StoredQuery | None:
        return g.at(str(given.get("ref", "main"))).queries().get(name)

    query = await desk.read(find)
    if query is None:
        raise _unknown(PREFIX + name)

    def work(g: GraphLike, memory: int | None = None) -> msgspec.Struct:
        return run_stored(g, query, given, Seat(desk.graph, desk.actor, memory))

    return await _in_threads(desk, "write" if query.mutation else "ask", work)


async def _in_threads(
    desk: Desk, done: str, work: Callable[[GraphLike, int | None], msgspec.Struct]
) -> msgspec.Struct:
    if done == "ask":
        return await desk.ask(work)
    if done == "write":
        return await desk.write(lambda g: work(g, None))
    return await desk.read(lambda g: work(g, None))


def _unknown(name: str) -> NotFound:
    offered_always = [known for known in _TOOLS if known != writing.MERGE.name]
    guess = near(name, offered_always)
    return NotFound(
        f"There is no tool {name!r}.",
        help=f"Did you mean {guess!r}?" if guess else f"There are {', '.join(offered_always)}.",
    )


async def _told(work: Any) -> Any:
    """What is no call of a tool fails as an error of the protocol."""
    try:
        return await work
    except OmnigraphError as error:
        raise _protocol_error(error) from None


def _protocol_error(error: OmnigraphError) -> MCPError:
    words = f"{error.message} {error.hint}".strip()
    return MCPError(code=types.INVALID_PARAMS, message=words, data=told_of(error))


__all__ = ["Tool", "make_server"]
