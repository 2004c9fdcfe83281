"""Owns what one server process has: its graphs, threads, limits, and who may come in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from starlette.types import ASGIApp

from omnigraph.engine.permissions import Authorizer
from omnigraph.errors import Denied, InvalidArgument
from omnigraph.model.caller import Caller
from omnigraph.model.permission import Action, AuditEvent, Request, ServerResource
from omnigraph.server.activity import Activity
from omnigraph.server.admission import Admission
from omnigraph.server.credentials import Credentials, LocalUser
from omnigraph.server.graphs import Graphs
from omnigraph.server.jobs import JobRunner
from omnigraph.server.limits import ServerLimits
from omnigraph.server.logs import LogConfig
from omnigraph.server.metrics import CountedPolicy, Metrics
from omnigraph.server.page import Page
from omnigraph.server.pools import Pools

Audit = Callable[[AuditEvent, Mapping[str, object]], None]


def _no_reload() -> None:
    raise InvalidArgument("This server has no configuration that could be read again.")


@dataclass
class Service:
    """A server that is not `guarded` asks nobody who they are. Then only this machine may reach it,
    and requests must call it by a name of this machine. `cors` lists the origins of pages that may
    call it. Without a `page` there are no files for a browser."""

    graphs: Graphs
    limits: ServerLimits = field(default_factory=ServerLimits)
    credentials: Credentials = field(default_factory=LocalUser)
    guarded: bool = False
    cors: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    log: LogConfig = field(default_factory=LogConfig)
    policy: Authorizer | None = None
    by_rows: bool = False
    """Whether callers may see different rows of one version. Then no answer is kept by anybody."""
    audit: Audit | None = None
    issuer: str | None = None
    page: Page | None = field(default_factory=Page)
    reload: Callable[[], None] = _no_reload
    mcp_wanted: bool = True
    mcp_merge: bool = False
    mcp: ASGIApp | None = field(default=None, init=False)
    """What answers messages of the Model Context Protocol, while the server runs."""
    draining: bool = field(default=False, init=False)
    ready: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.metrics = Metrics()
        self.pools = Pools.of(self.limits, self.metrics.waited)
        self.admission = Admission(self.limits)
        self.activity = Activity()
        self.take_policy(self.policy)
        self.jobs = JobRunner(self.limits.job_threads, self.limits.waiting, self.metrics)

    def take_limits(self, limits: ServerLimits) -> None:
        """Other limits from now on; the number of threads stays."""
        self.limits = limits
        self.admission.limits = limits
        for pool in self.pools.all():
            pool.waiting, pool.patience = limits.waiting, limits.patience

    def take_policy(self, policy: Authorizer | None) -> None:
        """Who decides from now on. What is asked is counted."""
        self.policy = None if policy is None else CountedPolicy(policy, self.metrics)

    def hear(self, event: AuditEvent, request_id: str | None) -> None:
        """A commit or a denial."""
        if event.event == "write":
            self.metrics.committed(event.graph, event.action)
        if self.audit is not None:
            self.audit(event, {"request_id": request_id})

    def require(self, action: Action, caller: Caller, request_id: str | None = None) -> None:
        """Raises unless the caller may do this to the server itself."""
        if self.policy is None:
            return
        asked = Request(caller, action, ServerResource())
        verdict = self.policy.decide(asked)
        if not verdict.allowed:
            self.hear(
                AuditEvent(
                    "denied",
                    caller.actor,
                    caller.token,
                    "",
                    action,
                    "server",
                    policies=verdict.policies,
                ),
                request_id,
            )
            raise Denied(f"{caller.actor!r} may not {action}: the server.", action=action)

    def warm(self) -> None:
        """Imports what requests need and reads the heads, so that the first one is as fast as
        those after it. A graph that does not open answers for itself later."""
        from omnigraph.errors import OmnigraphError
        from omnigraph.server.file_jobs import drop_old_bodies
        from omnigraph.telemetry import Ledger

        drop_old_bodies()
        for name in self.graphs.names():
            try:
                self.graphs.open(name)._session.live_head("main", Ledger())  # noqa: SLF001
            except OmnigraphError:
                continue
        self.ready = True

    def close(self) -> None:
        self.jobs.close()
        self.pools.close()
        self.graphs.close()
