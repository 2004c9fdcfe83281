"""Owns the life of the server's processes: they start, serve, take a new configuration, drain and
end. Several workers share nothing but the address; one that dies is started again."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import uvicorn

from omnigraph.engine.opening import open as open_graph
from omnigraph.engine.permissions import Authorizer
from omnigraph.errors import InvalidArgument, OmnigraphError
from omnigraph.model.catalog import Catalog
from omnigraph.policy.audit import AuditLog
from omnigraph.policy.cedar import CedarPolicies
from omnigraph.policy.credentials import BearerCredentials
from omnigraph.policy.oidc import Oidc
from omnigraph.policy.roles import Roles
from omnigraph.policy.tokens import Tokens
from omnigraph.server.activity import WORKERS
from omnigraph.server.app import make_app
from omnigraph.server.config import ServerConfig
from omnigraph.server.credentials import Credentials, LocalUser
from omnigraph.server.door import configure
from omnigraph.server.graphs import Graphs
from omnigraph.server.logs import begin_logging, log_audit
from omnigraph.server.page import Page
from omnigraph.server.service import Audit, Service
from omnigraph.telemetry import tell_requests

_LOG = logging.getLogger("omnigraph.server")
WORKER = "OMNIGRAPH_WORKER_OF"
"""In the environment of a worker: the process that started it."""
_PAUSE = 0.2
_WATCH = 1.0
"""Seconds between two looks at the files of the configuration."""


def make_service(config: ServerConfig, read: Callable[[], ServerConfig]) -> Service:
    """What a process serves. `read` reads the configuration again, when that is asked for."""
    service = Service(
        Graphs(config.graphs, prefix=config.prefix, create=config.create),
        config.limits,
        credentials=credentials_of(config),
        guarded=config.guarded,
        policy=policy_of(config),
        by_rows=bool(config.policies),
        audit=audit_of(config),
        issuer=None if config.issuer is None else config.issuer.issuer,
        cors=config.cors,
        sources=config.sources,
        log=config.log,
        page=Page() if config.web else None,
        mcp_wanted=config.mcp,
        mcp_merge=config.mcp_merge,
    )

    def reload() -> None:
        new = read()
        believed, decides = credentials_of(new), policy_of(new)
        service.graphs.replace(new.graphs, new.prefix, create=new.create)
        service.credentials, service.by_rows = believed, bool(new.policies)
        service.take_policy(decides)
        service.take_limits(new.limits)
        service.cors, service.log = new.cors, new.log
        service.mcp_merge = new.mcp_merge
        _LOG.info("reloaded")

    service.reload = reload
    tell_requests(service.metrics.stored)
    return service


def audit_of(config: ServerConfig) -> Audit | None:
    """Where lines about writes and denials go."""
    match config.log.audit:
        case "off":
            return None
        case "log":
            return log_audit
        case path:
            return AuditLog(path)


def credentials_of(config: ServerConfig) -> Credentials:
    """Who is believed. A token file that others can read is refused."""
    if not config.guarded:
        return LocalUser()
    return BearerCredentials(
        None if config.tokens is None else Tokens.read(config.tokens),
        None if config.issuer is None else Oidc(config.issuer),
        anonymous=config.anonymous,
    )


def policy_of(config: ServerConfig) -> Authorizer | None:
    """Who decides. Without policy files the roles of the credentials hold."""
    if config.policies:
        return CedarPolicies.read(config.policies, groups=config.groups, graphs=_catalogs(config))
    return Roles() if config.guarded else None


def _catalogs(config: ServerConfig) -> dict[str, Catalog | None]:
    """The schemas that policies may speak of: those of the graphs that open."""
    found: dict[str, Catalog | None] = {}
    for name, root in config.graphs.items():
        try:
            with open_graph(root, mode="r") as graph:
                found[name] = graph.snapshot().catalog
        except OmnigraphError:
            found[name] = None
    return found


def require_one(service: Service, config: ServerConfig) -> None:
    """At least one graph opens; the others answer for themselves."""
    failed: dict[str, OmnigraphError] = {}
    _LOG.disabled = True  # if none opens, that is told as the error of the command
    try:
        for name in config.graphs:
            try:
                service.graphs.open(name)
            except OmnigraphError as error:
                cause = error.__cause__
                failed[name] = cause if isinstance(cause, OmnigraphError) else error
    finally:
        _LOG.disabled = False
    if failed and len(failed) == len(config.graphs):
        raise next(iter(failed.values()))
    for name, why in failed.items():
        _LOG.error("graph %s does not open: %s", name, why)


class GraphServer(uvicorn.Server):
    """Ends when it is told to: it takes nothing new, and what is under way has its time."""

    def __init__(
        self, config: uvicorn.Config, service: Service, listening: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._service = service
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Whoever reads the address can use it at once."""
        await super().startup(sockets)
        if self.started:
            self._listening()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A second signal ends it at once. uvicorn would raise the first one again at the end,
        and what ended as it should would look like something that was killed."""
        self.force_exit = self.should_exit
        self.should_exit = self._service.draining = True


def listen(config: ServerConfig) -> socket.socket:
    """An address that several processes may share."""
    host, port = config.address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise InvalidArgument(f"{config.bind} cannot be taken: {error.strerror}.") from None
    return sock


def serve_here(
    config: ServerConfig,
    read: Callable[[], ServerConfig],
    told: Callable[[str], None],
    *,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serves in this process until it is told to end. `ready` is called with the address, in a
    thread, as soon as the server answers there."""
    begin_logging(config.log)
    service = make_service(config, read)
    require_one(service, config)
    sock = listen(config)
    host, port = sock.getsockname()[:2]
    configured = configure(
        make_app(service),
        config.limits,
        tls=config.tls,
        timeout_graceful_shutdown=int(config.limits.drain),
        proxy_headers=config.behind_proxy,
        forwarded_allow_ips=list(config.trusted_proxies) or "127.0.0.1",
    )
    scheme = "https" if config.tls else "http"
    shown = f"[{host}]" if ":" in host else host
    address = f"{scheme}://{shown}:{port}"

    def listening() -> None:
        told(f"Serving {', '.join(config.graphs) or config.prefix} at {address}")
        if ready is not None:
            threading.Thread(target=ready, args=(address,), daemon=True).start()

    server = GraphServer(configured, service, listening)
    _watch_files(service, config)
    signal.signal(signal.SIGHUP, lambda *_: _reload(service))
    with _ended_with_parent(server):
        server.run(sockets=[sock])


def _watch_files(service: Service, config: ServerConfig) -> None:
    """Takes a changed configuration, changed tokens and policies by itself."""
    files = [config.file, config.tokens, config.groups, *config.policies]
    watched = [Path(name) for name in files if name is not None]

    def look() -> None:
        seen = [_mark(path) for path in watched]
        while True:
            time.sleep(_WATCH)
            now = [_mark(path) for path in watched]
            if now != seen:
                seen = now
                _reload(service)

    if watched:
        threading.Thread(target=look, name="omnigraph-files", daemon=True).start()


def _mark(path: Path) -> tuple[int, int, int] | None:
    try:
        told = path.stat()
    except OSError:
        return None
    return told.st_mtime_ns, told.st_size, told.st_ino


def _reload(service: Service) -> None:
    try:
        service.reload()
    except OmnigraphError as error:
        _LOG.error("not reloaded: %s", error)


@contextlib.contextmanager
def _ended_with_parent(server: uvicorn.Server) -> Iterator[None]:
    """A worker whose starter is gone ends, too."""
    parent = os.environ.get(WORKER)
    if parent is None:
        yield
        return

    def watch() -> None:
        while os.getppid() == int(parent):
            time.sleep(_PAUSE)
        server.should_exit = True

    threading.Thread(target=watch, daemon=True).start()
    yield


def _answers(host: str, port: int) -> bool:
    """Whether a worker listens by now."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


class WorkerProcesses:
    """The processes that serve, and the one that watches them."""

    def __init__(self, config: ServerConfig, arguments: list[str]) -> None:
        self._config = config
        self._arguments = arguments
        self._running: list[subprocess.Popen[bytes]] = []
        self._ending = False

    def run(self, told: Callable[[str], None]) -> None:
        begin_logging(self._config.log)
        with listen(self._config) as reserved:  # bound, so that the port stays the same
            host, port = reserved.getsockname()[:2]
            bind = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self._end())
            signal.signal(signal.SIGHUP, lambda *_: self._send(signal.SIGHUP))
            self._running = [self._start(bind) for _ in range(self._config.workers)]
            scheme = "https" if self._config.tls else "http"
            line = f"Serving with {self._config.workers} workers at {scheme}://{bind}"
            said = False
            while any(worker.poll() is None for worker in self._running) or not self._ending:
                if not said and (said := _answers(host, port)):
                    told(line)
                self._replace(bind)
                time.sleep(_PAUSE)

    def _start(self, bind: str) -> subprocess.Popen[bytes]:
        workers = str(self._config.workers)
        environment = {**os.environ, WORKER: str(os.getpid()), WORKERS: workers}
        command = [sys.executable, "-m", "omnigraph", "serve", *self._arguments]
        return subprocess.Popen([*command, "--bind", bind, "--workers", "1"], env=environment)

    def _replace(self, bind: str) -> None:
        if self._ending:
            return
        for place, worker in enumerate(self._running):
            if worker.poll() is not None:
                _LOG.error("worker %s ended with %s", worker.pid, worker.returncode)
                self._running[place] = self._start(bind)

    def _end(self) -> None:
        self._ending = True
        self._send(signal.SIGTERM)

    def _send(self, number: int) -> None:
        for worker in self._running:
            if worker.poll() is None:
                worker.send_signal(number)
