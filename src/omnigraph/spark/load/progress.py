"""Owns the progress of a load on Spark, measured in rows, bytes and tasks while a stage runs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from omnigraph.engine.load.progress import LoadProgress, OnLoadProgress
from omnigraph.runtime import Runtime

OFTEN = 0.5
_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
Tasks = Callable[[], tuple[int, int]]
"""How many of the load's present tasks are done, and how many there are."""


@contextlib.contextmanager
def watched_tasks(spark: Any, operation: str) -> Iterator[Tasks]:
    """The tasks that Spark runs for this thread, and no others."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        yield from _of_connect(spark)
        return
    context = spark.sparkContext
    before = {name: context.getLocalProperty(name) for name in _GROUP}
    context.setJobGroup(operation, "omnigraph load")
    tracker = context.statusTracker()

    def ask() -> tuple[int, int]:
        done = total = 0
        for job in tracker.getJobIdsForGroup(operation):
            known = tracker.getJobInfo(job)
            if known is None or known.status != "RUNNING":
                continue
            for stage in map(tracker.getStageInfo, known.stageIds):
                if stage is not None:
                    done += stage.numCompletedTasks
                    total += stage.numTasks
        return done, total

    try:
        yield ask
    finally:
        for name, value in before.items():
            context.setLocalProperty(name, value)


def _of_connect(spark: Any) -> Iterator[Tasks]:
    """A Spark Connect server reports its progress with every answer."""
    seen = (0, 0)

    def hear(stages: Any, **_: Any) -> None:
        nonlocal seen
        told = list(stages or ())
        seen = (
            sum(stage.num_completed_tasks for stage in told),
            sum(stage.num_tasks for stage in told),
        )

    spark.registerProgressHandler(hear)
    try:
        yield lambda: seen
    finally:
        spark.removeProgressHandler(hear)


class Meter:
    """Reports on the running stage repeatedly. The rows and bytes of a stage are those of finished
    tasks, as a part of the total if that is known."""

    def __init__(self, tell: OnLoadProgress, tasks: Tasks, runtime: Runtime) -> None:
        self._tell = tell
        self._tasks = tasks
        self._runtime = runtime
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._stage = ""
        self._rows: int | None = None
        self._bytes: tuple[int, int | None] = (0, None)
        self._began = 0.0
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._heartbeat, daemon=True)
        self._thread.start()

    def begin(self, stage: str, rows: int | None, read: int, total: int | None) -> None:
        """`rows` is how many rows the stage will process, if known. Of the sources' `total` bytes,
        `read` were read before."""
        if self._failed is not None:
            raise self._failed
        with self._lock:
            self._stage, self._rows, self._bytes = stage, rows, (read, total)
            self._began = self._runtime.monotonic()
            self._tell(LoadProgress(stage, rows or 0, read, total))

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _heartbeat(self) -> None:
        while not self._ended.wait(OFTEN):
            try:
                self._look()
            except BaseException as error:  # noqa: BLE001 - the caller's own, told at the next stage
                self._failed = error
                return

    def _look(self) -> None:
        began = self._began
        done, total = self._tasks()
        with self._lock:
            # Spark reports late: news of a finished stage must not count for the next one, and
            # publishing has no tasks.
            if not total or began != self._began or self._stage in ("", "publishing"):
                return
            share = done / total
            read, size = self._bytes
            if self._stage == "reading" and size is not None:
                read = int(size * share)
            self._tell(
                LoadProgress(
                    self._stage,
                    int((self._rows or 0) * share),
                    read,
                    size,
                    tasks_done=done,
                    tasks=total,
                    elapsed=self._runtime.monotonic() - self._began,
                    total_rows=self._rows,
                )
            )
