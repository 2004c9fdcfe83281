"""Owns the jobs that this process runs: each in a thread of its own, which says that it is alive
from the start; only so many work at once, and the others wait. Those that another process left are
taken up."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.engine.upkeep.jobs import GraphJob, JobContext, Work
from omnigraph.errors import JobEnded, JobRunning, OmnigraphError, Overloaded
from omnigraph.server.metrics import Metrics

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph

_LOG = logging.getLogger("omnigraph.server")
_PATIENCE = 60.0
"""Seconds after which a job that nobody has begun is begun by whoever sees it."""
LOOK = 20.0
"""Seconds between two looks for jobs that were left."""


class JobRunner:
    """`threads` work at once, and at most `waiting` wait for one of them."""

    def __init__(self, threads: int, waiting: int, metrics: Metrics) -> None:
        self._slots = threading.Semaphore(threads)
        self._most = threads + waiting
        self._metrics = metrics
        self._lock = threading.Lock()
        self._running: set[str] = set()
        self._ended = threading.Event()

    def begin(
        self,
        own: Graph,
        asked: GraphJob,
        key: str,
        work: Callable[[GraphJob], Work],
        after: Callable[[GraphJob], None],
    ) -> GraphJob:
        """Writes a job down and begins it. `own` is the server's own handle on the graph; `work`
        makes what is to be done; `after` is called when nothing of it is needed any more."""
        try:
            if len(self._running) >= self._most:
                raise Overloaded(
                    f"{len(self._running)} jobs are waiting or running here.", limit="jobs"
                )
            job = own.jobs.submit(
                asked.kind,  # type: ignore[arg-type]
                asked.arguments,
                actor=asked.actor,
                idempotency_key=key,
            )
        except BaseException:
            after(asked)
            raise
        if job.state == "queued":
            self._start(own, job, work(job), after)
        elif job.state != "running":
            after(job)
        return job

    def _start(
        self, own: Graph, job: GraphJob, work: Work, after: Callable[[GraphJob], None]
    ) -> None:
        with self._lock:
            if job.id in self._running:
                return
            self._running.add(job.id)
        thread = threading.Thread(
            target=self._run, args=(own, job, work, after), name=f"omnigraph-job-{job.id}"
        )
        thread.daemon = True  # a process that ends leaves the job to the next one
        thread.start()

    def _run(
        self, own: Graph, job: GraphJob, work: Work, after: Callable[[GraphJob], None]
    ) -> None:
        def waited(context: JobContext) -> Mapping[str, Any]:
            while not self._slots.acquire(timeout=0.2):
                context.progress(0, None, "waiting for other jobs")
            try:
                context.check()
                return work(context)
            finally:
                self._slots.release()

        self._metrics.job(job.kind, "running", 1)
        state = "failed"
        try:
            done = own.jobs.run(job.id, waited)
            state = done.state
            problem = (done.problem or {}).get("code")
            told = {"job": job.id, "kind": job.kind, "state": state, "code": problem}
            _LOG.info("job", extra={"told": told})
        except (JobRunning, JobEnded):
            state = "left"  # somebody else was faster
        except Exception:  # noqa: BLE001  told in the log; the job says that it failed
            _LOG.exception("the job %s failed by a mistake of the program", job.id)
        finally:
            self._metrics.job(job.kind, "running", -1)
            with self._lock:
                self._running.discard(job.id)
            if state != "left":
                self._metrics.job(job.kind, state, 1)
                after(job)

    def take_up(
        self,
        own: Graph,
        work: Callable[[GraphJob], Work | None],
        after: Callable[[GraphJob], None],
    ) -> None:
        """Begins what was lost, or never begun. None is what this process cannot do."""
        for job in own.jobs.list():
            if not _left(job) or job.cancelling or len(self._running) >= self._most:
                continue
            found = work(job)
            if found is not None:
                self._start(own, job, found, after)

    def watch(self, graphs: Callable[[], list[Any]], take_up: Callable[[Any], None]) -> None:
        """Looks at the open graphs again and again, until `close`."""

        def look() -> None:
            while not self._ended.wait(LOOK):
                for graph in graphs():
                    try:
                        take_up(graph)
                    except OmnigraphError as error:
                        _LOG.warning("jobs of a graph cannot be listed: %s", error)
                    except Exception:  # noqa: BLE001  the next look may go well
                        _LOG.exception("a look at the jobs of a graph failed")

        threading.Thread(target=look, name="omnigraph-jobs", daemon=True).start()

    def close(self) -> None:
        self._ended.set()


def _left(job: GraphJob) -> bool:
    if job.state == "lost":
        return True
    age = time.time() - job.created_at / 1e6
    return job.state == "queued" and age > _PATIENCE
