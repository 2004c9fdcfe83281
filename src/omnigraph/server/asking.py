"""Owns the answers to queries and mutations, wherever their texts come from: out of the request, or
out of the graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from starlette.responses import Response

from omnigraph.engine.graph import Graph
from omnigraph.engine.mutation.result import MutationResult
from omnigraph.engine.query.result import Result
from omnigraph.engine.snapshot import Snapshot
from omnigraph.errors import InvalidArgument
from omnigraph.plan.digest import digest_values
from omnigraph.server.answers import answer, not_modified
from omnigraph.server.call import GraphCall
from omnigraph.server.limits import ServerLimits
from omnigraph.server.rows import Found, RowsWanted, answer_rows, found_by
from omnigraph.show.subgraph import Subgraph
from omnigraph.wire.cursors import read_cursor
from omnigraph.wire.media import Shape, choose_form
from omnigraph.wire.rows import lineage_of
from omnigraph.wire.values import plain


@dataclass(frozen=True)
class QueryAsked:
    """What is asked, wherever its text comes from. `find` begins to find it in a version, within a
    time and so much memory; `of` is what a cursor is for."""

    find: Callable[[Snapshot, float | None, int], Result]
    text: str
    of: tuple[Any, ...]
    ref: str | None = None
    timeout: float | None = None
    memory_limit: int | None = None
    limit: int | None = None
    cursor: str | None = None
    shape: Literal["rows", "graph"] = "rows"
    vectors: bool = False


async def ask(call: GraphCall, asked: QueryAsked) -> Response:
    """The answer: rows, or the graph that a query bound."""
    if asked.shape == "graph":
        return await _network(call, asked)
    form = choose_form(call.request.headers.get("accept"))

    def of() -> str:
        return digest_values([*asked.of, call.name])

    ref, offset = asked.ref or "main", 0
    if asked.cursor is not None:
        cursor = read_cursor(asked.cursor, of())
        if asked.ref is not None:
            raise InvalidArgument("A cursor says itself of which commit it is; leave ref away.")
        ref, offset = cursor.commit, cursor.offset
    limits = call.service.limits
    seconds, memory = bounds(asked.timeout, asked.memory_limit, limits)
    paged = form.shape is Shape.JSON

    def find(graph: Graph) -> Found:
        snapshot = graph.at(ref)
        result = asked.find(snapshot, seconds if paged else None, memory)
        return found_by(result, ref, seen=call.has_seen(snapshot))

    return await answer_rows(
        call, find, RowsWanted(form, of, asked.limit, offset, seconds, memory, asked.text)
    )


def bounds(timeout: float | None, memory: int | None, limits: ServerLimits) -> tuple[float, int]:
    """The bounds of a query: those that were asked for, within what the server allows."""
    seconds = limits.timeout if timeout is None else timeout
    if not 0 < seconds <= limits.longest_timeout:
        raise InvalidArgument(
            f"timeout is a number of seconds up to {limits.longest_timeout:g}, not {seconds:g}."
        )
    size = limits.query_memory if memory is None else memory
    if size <= 0:
        raise InvalidArgument(f"memory_limit is a number of bytes above 0, not {size}.")
    return seconds, size


async def _network(call: GraphCall, asked: QueryAsked) -> Response:
    """The nodes and edges that the match bound."""
    if asked.cursor is not None or asked.limit is not None:
        raise InvalidArgument("A graph has no pages: leave limit and cursor away.")
    choose_form(call.request.headers.get("accept"), (Shape.JSON,))
    ref = asked.ref or "main"
    seconds, memory = bounds(asked.timeout, asked.memory_limit, call.service.limits)

    def work(graph: Graph) -> tuple[str, dict[str, Any] | None]:
        snapshot = graph.at(ref)
        if call.has_seen(snapshot):
            return snapshot.commit.id, None
        found = asked.find(snapshot, seconds, memory)
        return snapshot.commit.id, _as_graph(found.graph(vectors=asked.vectors))

    async with call.service.admission.memory(memory):
        commit, told = await call.read(work)
    return (
        not_modified(commit)
        if told is None
        else answer(told | {"ref": ref, "commit": commit}, commit)
    )


def _as_graph(found: Subgraph) -> dict[str, Any]:
    return {
        "nodes": [{"type": one.type, "id": one.id, "data": one.data} for one in found.nodes],
        "edges": [
            {
                "type": one.type,
                "id": one.id,
                "from": {"type": one.source[0], "id": one.source[1]},
                "to": {"type": one.target[0], "id": one.target[1]},
                "data": one.data,
            }
            for one in found.edges
        ],
    }


async def changed(call: GraphCall, work: Callable[[Graph], MutationResult]) -> Response:
    """The answer to a mutation, wherever its text comes from."""
    done = await call.write(work)
    return answer(mutation_row(done), done.commit_id, io=done.io)


def mutation_row(done: MutationResult) -> dict[str, Any]:
    return {
        "branch": done.branch,
        "query": done.query,
        "nodes": done.nodes,
        "edges": done.edges,
        "counts": {name: plain(counts) for name, counts in done.counts.items()},
        "commit": done.commit_id,
        "repeated": done.repeated,
        "lineage": lineage_of(done.commit),
    }
