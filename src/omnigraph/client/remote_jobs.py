"""Owns the jobs of a graph on a server: asked for, listed, cancelled, and waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from omnigraph.arguments import checked_methods
from omnigraph.client.served_graph import ServedGraph
from omnigraph.client.understanding import understanding
from omnigraph.client.writing import RemoteWrite, send, signed
from omnigraph.engine.upkeep.jobs import GraphJob
from omnigraph.errors import Cancelled, JobNotFound, OmnigraphError
from omnigraph.model.options import NO_OPTIONS, CommitOptions
from omnigraph.runtime import is_ulid
from omnigraph.store.job_files import JobKind
from omnigraph.wire.remote_errors import error_of

_SHORTEST, _LONGEST = 0.1, 2.0


@checked_methods
class RemoteJobs:
    """The jobs of one graph, in whatever process they run."""

    def __init__(self, served: ServedGraph) -> None:
        self._served = served

    def submit(
        self,
        kind: JobKind,
        arguments: Mapping[str, Any] | None = None,
        *,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> GraphJob:
        """Asks the server to do it; it begins at once."""
        options = signed(self._served, {"actor": actor, "idempotency_key": idempotency_key})
        return job_of(begin_job(self._served, kind, arguments or {}, options))

    def list(self) -> list[GraphJob]:
        """Oldest first."""
        return [job_of(one) for one in self._served.items("/jobs", page=1000)]

    def get(self, id: str) -> GraphJob:
        return job_of(read_job(self._served, id))

    def cancel(self, id: str, *, actor: str | None = None) -> GraphJob:
        """Asks a job to stop, wherever it runs."""
        signed(self._served, {"actor": actor})
        write = RemoteWrite("DELETE", _path(id), "main", None, None)
        return job_of(send(self._served, write, NO_OPTIONS).told)

    def events(self, id: str, *, poll: float = 0.5) -> Iterator[GraphJob]:
        """The job as it is, and again whenever it has changed, until it has ended or is lost."""
        seen: GraphJob | None = None
        while True:
            job = self.get(id)
            if seen is None or _beatless(job) != _beatless(seen):
                seen = job
                yield job
            if job.ended or job.state in ("lost", "unreadable"):
                return
            self._served.runtime.sleep(poll)


def _beatless(job: GraphJob) -> dict[str, Any]:
    return job.to_dict() | {"heartbeat": None}


@understanding()
def job_of(told: Mapping[str, Any]) -> GraphJob:
    known = {name: told[name] for name in GraphJob.__dataclass_fields__ if name in told}
    return msgspec.convert(known, GraphJob)


def begin_job(
    served: ServedGraph,
    kind: str,
    arguments: Mapping[str, Any],
    options: CommitOptions = NO_OPTIONS,
) -> dict[str, Any]:
    body = msgspec.json.encode({"kind": kind, **arguments})
    return send(served, RemoteWrite("POST", "/jobs", "main", body), options).told


@understanding()
def read_job(served: ServedGraph, id: str) -> dict[str, Any]:
    told = msgspec.convert(served.get(_path(id)), dict[str, Any])
    msgspec.convert(told["state"], str)
    return told


def _path(id: str) -> str:
    if not is_ulid(id):
        raise JobNotFound(f"There is no job {id!r}.")
    return f"/jobs/{id}"


def await_job(
    served: ServedGraph, id: str, tell: Callable[[dict[str, Any]], None] = lambda _: None
) -> dict[str, Any]:
    """The job when it is done. One that failed raises its error; Ctrl-C leaves it running."""
    pause = _SHORTEST
    while True:
        job = read_job(served, id)
        tell(job)
        match job["state"]:
            case "done":
                return job
            case "cancelled":
                raise Cancelled(f"The job {id} was cancelled.", limit="cancelled")
            case "failed":
                raise error_of(job.get("problem") or {})
            case "lost" | "unreadable":
                raise OmnigraphError(
                    f"The job {id} is {job['state']}: nobody works on it.",
                    help="Ask for it again; what has landed does not land twice.",
                )
        served.runtime.sleep(pause)
        pause = min(_LONGEST, pause * 1.5)
