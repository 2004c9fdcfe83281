"""Owns one request to one graph: on whose behalf it is, under which conditions, and in which
threads the engine is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Request

from omnigraph.engine.graph import Graph, graph_holding
from omnigraph.engine.snapshot import Snapshot
from omnigraph.model.caller import Caller
from omnigraph.model.options import CommitWords
from omnigraph.server.graphs import no_graph
from omnigraph.server.pools import Pool
from omnigraph.server.service import Service
from omnigraph.wire.conditions import (
    HOLDING,
    key_of,
    read_holding,
    read_if_match,
    read_key,
    read_tags,
)
from omnigraph.wire.media import wants_typed
from omnigraph.wire.typed import typed

T = TypeVar("T")

NAME_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,62}$"
GraphName = Annotated[str, Path(pattern=NAME_PATTERN)]
TypeName = Annotated[str, Path(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,254}$")]
PropertyName = Annotated[str, Path(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,254}$")]
Ulid = Annotated[str, Path(pattern=r"^[0-7][0-9A-HJKMNP-TV-Z]{25}$")]


class GraphCall:
    """`graph` is opened when it is first needed, in a thread."""

    def __init__(self, request: Request, name: str) -> None:
        self.request = request
        self.name = name
        self.service: Service = request.scope["service"]
        self.caller: Caller = request.scope["caller"]

    @property
    def graph(self) -> Graph:
        """A handle that acts for the caller. A graph that is not for this credential is not there,
        as one that does not exist."""
        caller, service = self.caller, self.service
        if caller.graphs is not None and self.name not in caller.graphs:
            raise no_graph(self.name)
        graph = service.graphs.open(self.name)
        acting = graph.acting(
            caller,
            service.policy,
            name=self.name,
            audit=lambda event: service.hear(event, self.request_id),
        )
        held = self.request.headers.get(HOLDING)
        return acting if held is None else graph_holding(acting, *read_holding(held))

    @property
    def request_id(self) -> str | None:
        found: str | None = self.request.scope.get("request_id")
        return found

    async def read(self, work: Callable[[Graph], T]) -> T:
        return await self.do(self.service.pools.read, work)

    async def write(self, work: Callable[[Graph], T]) -> T:
        return await self.do(self.service.pools.write, work)

    async def job(self, work: Callable[[Graph], T]) -> T:
        return await self.do(self.service.pools.job, work)

    async def do(self, pool: Pool, work: Callable[[Graph], T]) -> T:
        return await pool.run(self.caller.actor, lambda: work(self.graph))

    def has_seen(self, snapshot: Snapshot) -> bool:
        """Whether the client holds the answer of this very version: `If-None-Match`."""
        header = self.request.headers.get("if-none-match")
        if header is None or self.service.by_rows:
            return False
        tags = read_tags(header, "If-None-Match")
        return not tags or any(snapshot.graph_version.holds(tag) for tag in tags)

    def shown(self, value: Any) -> Any:
        """A value with its kinds, if the client asks for them; answers write others plainly."""
        return typed(value) if wants_typed(self.request.headers.get("accept")) else value

    def words(self, message: str | None = None) -> CommitWords:
        """The options of a write, from the caller and the headers."""
        headers = self.request.headers
        key = read_key(headers.get("idempotency-key"))
        return {
            "message": message,
            "if_commit": read_if_match(headers.get("if-match")),
            "idempotency_key": None if key is None else key_of(self.caller.actor, key),
        }


async def _call(request: Request, graph: GraphName) -> GraphCall:
    return GraphCall(request, graph)


TheCall = Annotated[GraphCall, Depends(_call)]
