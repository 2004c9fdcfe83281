"""Owns the routes of stored queries: the typed catalog, what is stored, and running one by name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.responses import Response

from omnigraph.engine.graph import Graph
from omnigraph.engine.snapshot import Snapshot
from omnigraph.engine.stored_queries import find_stored, is_stored_mutation
from omnigraph.engine.write.queries import QueriesStored
from omnigraph.errors import InvalidArgument
from omnigraph.plan.digest import digest_values
from omnigraph.server.answers import answer, check_items, not_modified, page_of, read_at
from omnigraph.server.asking import QueryAsked, ask, changed
from omnigraph.server.bodies import RequestBody
from omnigraph.server.call import GraphCall, TheCall
from omnigraph.server.routing import StrictRoute, read_json
from omnigraph.wire.cursors import read_cursor
from omnigraph.wire.rows import lineage_of
from omnigraph.wire.values import plain

router = APIRouter(prefix="/graphs/{graph}/queries", tags=["queries"], route_class=StrictRoute)
StoredName = Annotated[str, Path(pattern=r"^[a-z_][A-Za-z0-9_]{0,62}$")]


class RunBody(RequestBody):
    """For a query what `/query` takes, for a mutation what `/mutate` takes, without the text. If
    nothing but parameters is given, it is what the stored query is."""

    params: dict[str, Any] | None = None
    ref: str | None = None
    timeout: float | None = None
    memory_limit: int | None = None
    limit: int | None = None
    cursor: str | None = None
    shape: Literal["rows", "graph"] | None = None
    vectors: bool | None = None
    branch: str | None = None
    message: str | None = None


class StoreBody(RequestBody):
    """`set` has texts by name."""

    set_: dict[str, str] = Field(default_factory=dict, alias="set")
    remove: list[str] = Field(default_factory=list)
    branch: str = "main"
    message: str | None = None


class _Mutation(Exception):
    """The stored query that was to be asked changes something."""


@router.get("")
async def queries(
    call: TheCall, ref: str = "main", limit: int | None = None, cursor: str | None = None
) -> Response:
    """The stored queries: what each takes and gives, which types it reads and writes."""
    limits = call.service.limits
    most = check_items(limit, limits.list_items, limits.most_list_items)
    of = digest_values(["queries", call.name, ref])
    at = ref if cursor is None else read_cursor(cursor, of).commit

    def page(graph: Graph) -> tuple[str, dict[str, Any] | None]:
        snapshot = graph.at(at)
        commit = snapshot.commit.id
        if call.has_seen(snapshot):
            return commit, None
        found = [plain(msgspec.to_builtins(one)) for one in snapshot.queries().values()]
        return commit, page_of(found, most, cursor, of, commit=commit)

    commit, told = await call.read(page)
    return not_modified(commit) if told is None else answer(told, commit)


@router.get("/{query}")
async def query(call: TheCall, query: StoredName, ref: str = "main") -> Response:
    """One stored query."""

    def told(snapshot: Snapshot) -> Any:
        held = snapshot.queries()
        find_stored({name: one.text for name, one in held.items()}, query)
        return plain(msgspec.to_builtins(held[query]))

    return await read_at(call, ref, told)


@router.patch("")
async def store(call: TheCall, body: StoreBody) -> Response:
    """Stores texts under names and removes others, as one commit. Each is checked."""
    words = call.words(body.message)

    def do(graph: Graph) -> QueriesStored:
        return graph.branch(body.branch).store_queries(body.set_, remove=body.remove, **words)

    done = await call.write(do)
    commit = None if done.commit is None else done.commit.id
    told = {
        "branch": done.branch,
        "set": list(done.set),
        "removed": list(done.removed),
        "commit": commit,
        "repeated": done.repeated,
        "lineage": lineage_of(done.commit),
    }
    return answer(told, commit, io=done.io)


@router.get("/{query}/run")
async def run_read(
    call: TheCall,
    query: StoredName,
    params: Annotated[str | None, Query(max_length=8_000)] = None,
    ref: str | None = None,
    timeout: float | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Response:
    """Asks a stored query that reads; `params` is a JSON object."""
    given = None if params is None else read_json(params.encode(), call.service.limits.json_depth)
    if given is not None and not isinstance(given, dict):
        raise InvalidArgument("params is a JSON object.")
    body = RunBody(params=given, ref=ref, timeout=timeout, limit=limit, cursor=cursor)
    return await ask(call, _asked(query, body, only_reads=True))


@router.post("/{query}/run")
async def run(call: TheCall, query: StoredName, body: RunBody) -> Response:
    """Runs a stored query by its name: one that reads as `/query` does, a mutation as `/mutate`."""
    reads = {
        name
        for name in ("ref", "timeout", "memory_limit", "limit", "cursor", "shape", "vectors")
        if getattr(body, name) is not None
    }
    writes = body.branch is not None or body.message is not None
    if reads and writes:
        raise InvalidArgument(
            f"{min(reads)} is for queries that read, branch and message are for mutations."
        )
    if not writes:
        try:
            return await ask(call, _asked(query, body, only_reads=bool(reads)))
        except _Mutation:
            pass
    return await _mutate(call, query, body)


def _asked(name: str, body: RunBody, *, only_reads: bool) -> QueryAsked:
    def find(snapshot: Snapshot, timeout: float | None, memory: int) -> Any:
        if not only_reads and is_stored_mutation(snapshot._pinned(), name):  # noqa: SLF001
            raise _Mutation
        return snapshot.run_query(name, body.params, timeout=timeout, memory_limit=memory)

    return QueryAsked(
        find,
        f"stored query {name}",
        ("stored", name, body.params),
        ref=body.ref,
        timeout=body.timeout,
        memory_limit=body.memory_limit,
        limit=body.limit,
        cursor=body.cursor,
        shape=body.shape or "rows",
        vectors=body.vectors or False,
    )


async def _mutate(call: GraphCall, name: str, body: RunBody) -> Response:
    words = call.words(body.message)
    branch = body.branch or "main"
    return await changed(
        call, lambda graph: graph.branch(branch).run_mutation(name, body.params, **words)
    )
