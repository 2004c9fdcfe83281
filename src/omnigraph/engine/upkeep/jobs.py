"""Owns jobs: long work that somebody asked for, which any process lists, cancels, and goes on with.

A job is objects in the graph. It is run by whoever claims its next run; that process says every few
seconds that it is alive. One that is silent for a minute is lost, and may be run again: its work
has the key of the job, so that what has landed does not land twice.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import msgspec

from omnigraph.arguments import checked_methods
from omnigraph.engine.session import Session
from omnigraph.errors import (
    Cancelled,
    IdempotencyMismatch,
    InvalidArgument,
    JobEnded,
    JobRunning,
    OmnigraphError,
    ReadOnly,
)
from omnigraph.model.commit_text import read_word
from omnigraph.model.stored_text import UNDECODABLE
from omnigraph.runtime import reach
from omnigraph.store.job_files import (
    MOST_RUNS,
    CancelRequest,
    JobKind,
    JobObjects,
    JobRequest,
    JobRun,
    ask_cancel,
    claim_run,
    id_of_key,
    is_asked_to_cancel,
    list_jobs,
    read_job,
    write_request,
    write_run,
)
from omnigraph.telemetry import Ledger

SILENT = 60.0
"""Seconds after which a job that says nothing is lost."""
_BEAT = 5.0
JobState = Literal["queued", "running", "done", "failed", "cancelled", "lost", "unreadable"]
_ENDED = ("done", "failed", "cancelled")


@dataclass(frozen=True)
class GraphJob:
    """A job as it was when it was asked for. `done` of `total` steps, `doing` the next one; times
    in microseconds. `cancelling`: somebody asked it to stop. `problem` is the error of one that
    failed, or says why it cannot be read."""

    id: str
    kind: str
    state: JobState
    arguments: Mapping[str, Any] = field(default_factory=dict)
    actor: str | None = None
    created_at: int = 0
    heartbeat: int | None = None
    run: int = 0
    done: int = 0
    total: int | None = None
    doing: str = ""
    cancelling: bool = False
    result: Mapping[str, Any] | None = None
    problem: Mapping[str, Any] | None = None

    @property
    def ended(self) -> bool:
        return self.state in _ENDED

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class JobContext:
    """What the work of a job has: its key, where it tells how far it is, and whether to stop."""

    def __init__(self, job: GraphJob, tell: Callable[[int, int | None, str], None]) -> None:
        self.job = job
        self.key = f"job/{job.id}"
        """An idempotency key: a second run with it does not do again what the first did."""
        self._tell = tell
        self._stopped = threading.Event()

    def progress(self, done: int, total: int | None = None, doing: str = "") -> None:
        """Also a place where the work stops, if somebody asked for that."""
        self.check()
        self._tell(done, total, doing)

    def check(self) -> None:
        if self._stopped.is_set():
            raise Cancelled("The job was cancelled.", limit="cancelled")

    def stop(self) -> None:
        self._stopped.set()


Work = Callable[[JobContext], Mapping[str, Any]]
"""What a job does; it gives what is told of its end, as JSON."""


@checked_methods
class GraphJobs:
    """The jobs of one graph, in whatever process they run."""

    def __init__(self, session: Session, *, writable: bool) -> None:
        self._session = session
        self._writable = writable

    def submit(
        self,
        kind: JobKind,
        arguments: Mapping[str, Any] | None = None,
        *,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> GraphJob:
        """Writes down what is to be done; `run` does it. With a key that a job was asked for with
        before, it is that job."""
        self._require_writable()
        if kind not in get_args(JobKind):
            known = ", ".join(get_args(JobKind))
            raise InvalidArgument(f"There is no kind of job {kind!r}.", help=f"There are {known}.")
        runtime = self._session.runtime
        request = JobRequest(
            id=runtime.ulid() if idempotency_key is None else id_of_key(idempotency_key),
            kind=kind,
            created_at=runtime.now(),
            arguments=dict(arguments or {}),
            actor=read_word("actor", actor),
        )
        held = write_request(self._objects(), request)
        if held is not None and _asked(held) != _asked(request):
            raise IdempotencyMismatch(f"The key {idempotency_key!r} belongs to another job.")
        return self.get(request.id)

    def list(self) -> list[GraphJob]:
        """Oldest first. Those that ended long ago are taken by cleanup."""
        found = [self._told(one) for one in list_jobs(self._objects())]
        return sorted(found, key=lambda one: (one.created_at, one.id))

    def get(self, id: str) -> GraphJob:
        return self._told(read_job(self._objects(), id))

    def cancel(self, id: str, *, actor: str | None = None) -> GraphJob:
        """Asks a job to stop, wherever it runs. One that nobody runs is cancelled at once; what a
        running one has committed stays."""
        self._require_writable()
        job = self.get(id)
        if job.ended:
            raise JobEnded(f"The job {id} has ended: it is {job.state}.")
        asked = CancelRequest(at=self._session.runtime.now(), actor=read_word("actor", actor))
        ask_cancel(self._objects(), id, asked)
        return self.get(id)

    def events(self, id: str, *, poll: float = 0.5) -> Iterator[GraphJob]:
        """The job as it is, and again whenever it has changed, until it has ended or is lost."""
        if not 0 <= poll < math.inf:
            raise InvalidArgument(f"poll is a number of seconds, not {poll:g}.")
        seen: GraphJob | None = None
        while True:
            job = self.get(id)
            if seen is None or _without_beat(job) != _without_beat(seen):
                seen = job
                yield job
            if job.ended or job.state in ("lost", "unreadable"):
                return
            self._session.runtime.sleep(poll)

    def run(self, id: str, work: Work) -> GraphJob:
        """Does the work of a job that waits, or that was lost. Whatever becomes of it is written
        down; an error of the work is told by the job, and raised by nobody."""
        self._require_writable()
        objects = self._objects()
        held = read_job(objects, id)
        job = self._told(held)
        if job.ended or job.state == "unreadable":
            raise JobEnded(f"The job {id} has ended: it is {job.state}.")
        if job.state == "running":
            raise JobRunning(f"The job {id} is running.")
        now, number = self._session.runtime.now(), held.last + 1
        if number > MOST_RUNS:
            raise JobEnded(f"The job {id} was lost {held.last} times.")
        state = JobRun(token=self._session.runtime.ulid(), began_at=now, heartbeat=now)
        if not claim_run(objects, id, number, state):
            raise JobRunning(f"The job {id} is running: another process was faster.")
        reach("job claimed")
        return _Running(self._session, job, number, state).work(work)

    def _told(self, held: JobObjects) -> GraphJob:
        if held.request is None or held.problem:
            kind = "unknown" if held.request is None else held.request.kind
            return GraphJob(held.id, kind, "unreadable", problem={"error": held.problem})
        request, run = held.request, held.runs.get(held.last)
        known = GraphJob(
            held.id,
            request.kind,
            "queued" if held.cancel is None else "cancelled",
            request.arguments,
            request.actor,
            request.created_at,
            cancelling=held.cancel is not None,
        )
        if run is None:
            return known
        heard = max(held.heard, run.heartbeat)
        silent = (self._session.runtime.now() - heard) / 1e6 > SILENT
        state: JobState = run.state
        if run.state == "running" and silent:
            state = "lost" if held.cancel is None else "cancelled"
        return GraphJob(
            held.id,
            request.kind,
            state,
            request.arguments,
            request.actor,
            request.created_at,
            heard,
            held.last,
            run.done,
            run.total,
            run.doing,
            held.cancel is not None,
            run.result,
            run.problem,
        )

    def _objects(self) -> Any:
        return self._session.metered(Ledger())

    def _require_writable(self) -> None:
        if not self._writable:
            raise ReadOnly(f"The graph {self._session.root.uri} is open for reading only.")


class _Running:
    """One run in this process. A thread beats, and looks whether somebody asked it to stop."""

    def __init__(self, session: Session, job: GraphJob, run: int, state: JobRun) -> None:
        self._session = session
        self._job = job
        self._run = run
        self._state = state
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._context = JobContext(job, self._tell)

    def work(self, work: Work) -> GraphJob:
        watcher = threading.Thread(target=self._watch, name="omnigraph-job", daemon=True)
        if self._is_asked():
            self._context.stop()
        watcher.start()
        try:
            self._context.check()
            self._end(state="done", result=_told_result(work(self._context)))
        except Cancelled as error:
            self._end(state="cancelled", problem=_problem(error))
        except OmnigraphError as error:
            self._end(state="failed", problem=_problem(error))
        except BaseException as error:
            self._end(state="failed", problem={"code": "error", "error": str(error)[:1000]})
            raise
        finally:
            self._ended.set()
            watcher.join()
        return GraphJobs(self._session, writable=True).get(self._job.id)

    def _tell(self, done: int, total: int | None, doing: str) -> None:
        """Kept until the next beat: a job may tell of every row."""
        with self._lock:
            self._state = msgspec.structs.replace(
                self._state, done=done, total=total, doing=doing[:1000]
            )

    def _end(self, **changes: Any) -> None:
        with self._lock:
            self._state = msgspec.structs.replace(self._state, **changes)
        self._write()

    def _write(self) -> None:
        with self._lock:
            now = self._session.runtime.now()
            self._state = msgspec.structs.replace(self._state, heartbeat=now)
            objects = self._session.metered(Ledger())
            write_run(objects, self._job.id, self._run, self._state)

    def _watch(self) -> None:
        while not self._ended.wait(_BEAT):
            with contextlib.suppress(OmnigraphError):  # the next beat may come through
                if self._state.state == "running":
                    self._write()
                if self._is_asked():
                    self._context.stop()

    def _is_asked(self) -> bool:
        return is_asked_to_cancel(self._session.metered(Ledger()), self._job.id)


def _asked(request: JobRequest) -> tuple[str, str | None, bytes]:
    """What makes two requests the same call."""
    arguments = msgspec.json.encode(request.arguments, order="sorted")
    return request.kind, request.actor, arguments


def _told_result(result: object) -> dict[str, Any]:
    """What the work gave, as far as it can be written down."""
    try:
        told: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(result), type=dict[str, Any])
    except (*UNDECODABLE, OverflowError) as error:
        raise InvalidArgument(f"What the work of a job gives is JSON by name: {error}.") from error
    return told


def _problem(error: OmnigraphError) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(
        {name: value for name, value in error.to_dict().items() if _is_plain(value)}
    )
    return told


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _without_beat(job: GraphJob) -> dict[str, Any]:
    return {name: value for name, value in job.to_dict().items() if name != "heartbeat"}
