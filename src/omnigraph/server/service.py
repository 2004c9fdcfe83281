"""Owns what one server process has: its graphs, threads, limits, and who may come in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from omnigraph.engine.permissions import Authorizer
from omnigraph.model.permission import AuditEvent
from omnigraph.server.admission import Admission
from omnigraph.server.credentials import Credentials, LocalUser
from omnigraph.server.graphs import Graphs
from omnigraph.server.limits import ServerLimits
from omnigraph.server.pools import Pools


def _unwatched(_name: str, _seconds: float) -> None:
    return None


@dataclass
class Service:
    """`loopback` is true if only this machine can reach it: then the names that requests use for
    it must be loopback, too. `cors` lists the origins of pages that may call it."""

    graphs: Graphs
    limits: ServerLimits = field(default_factory=ServerLimits)
    credentials: Credentials = field(default_factory=LocalUser)
    loopback: bool = True
    cors: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    create: bool = False
    policy: Authorizer | None = None
    audit: Callable[[AuditEvent], None] | None = None
    draining: bool = field(default=False, init=False)
    ready: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.pools = Pools.of(self.limits, _unwatched)
        self.admission = Admission(self.limits)
        self.ended = asyncio.Event()

    def warm(self) -> None:
        """Imports what requests need and reads the heads, so that the first one is as fast as
        those after it. A graph that does not open answers for itself later."""
        from omnigraph.errors import OmnigraphError
        from omnigraph.telemetry import Ledger

        for name in self.graphs.names():
            try:
                self.graphs.open(name)._session.live_head("main", Ledger())  # noqa: SLF001
            except OmnigraphError:
                continue
        self.ready = True

    def close(self) -> None:
        self.pools.close()
        self.graphs.close()
