"""Owns the session in which queries run: beside the caller's, on the same cluster, with its own
settings, so that neither affects the other."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from omnigraph.spark.cluster import require_executors

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    # Spark takes everything that Python reads for tiny and would broadcast any table. So small
    # tables are marked with hints, or recognised while a query runs.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "64m",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.execution.topKSortFallbackThreshold": "100000",
}
_OFTEN = 0.2
_TAKEN_OVER = ("spark.sql.shuffle.partitions", "spark.omnigraph.shared")
_BESIDE: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def query_session(spark: Any) -> Any:
    """Made once. Executors elsewhere are then checked for what they lack."""
    found = _BESIDE.get(spark)
    if found is None:
        require_executors(spark)
        # Over Spark Connect only a clone has the packages that were sent to executors.
        found = spark.newSession() if is_classic(spark) else spark.cloneSession()
        for name, value in _SETTINGS.items():
            found.conf.set(name, value)
        _BESIDE[spark] = found
    for name in _TAKEN_OVER:
        if (value := spark.conf.get(name, None)) is not None:
            found.conf.set(name, value)
    return found


def is_classic(spark: Any) -> bool:
    """Whether the driver is in this process and not behind Spark Connect."""
    return hasattr(spark, "_jsparkSession")


def plan_text(data: Any) -> str:
    """Spark's plan for a DataFrame."""
    if not is_classic(data.sparkSession):
        return str(data._explain_string(mode="simple"))  # noqa: SLF001
    explain = data.sparkSession._jvm.PythonSQLUtils.explainString  # noqa: SLF001
    return str(explain(data._jdf.queryExecution(), "simple"))  # noqa: SLF001


class Jobs:
    """The jobs of one query, which end with it, or when `is_over` returns True."""

    def __init__(self, spark: Any, tag: str, is_over: Callable[[], bool]) -> None:
        self._spark = spark
        self._tag = tag
        self._is_classic = is_classic(spark)
        self._is_over = is_over
        self._ended = threading.Event()
        self._heartbeat = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Jobs:
        if self._is_classic:
            self._spark.sparkContext.addJobTag(self._tag)
        else:
            self._spark.addTag(self._tag)
        self._heartbeat.start()
        return self

    def _look(self) -> None:
        """Checks repeatedly, because a job may begin after the others were cancelled."""
        while not self._ended.wait(_OFTEN):
            if self._is_over():
                self.cancel()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.cancel()
        self._ended.set()
        self._heartbeat.join()
        if self._is_classic:
            self._spark.sparkContext.removeJobTag(self._tag)
        else:
            self._spark.removeTag(self._tag)

    def cancel(self) -> None:
        with contextlib.suppress(Exception):  # a session that has stopped has no jobs
            if self._is_classic:
                self._spark.sparkContext.cancelJobsWithTag(self._tag)
            else:
                self._spark.interruptTag(self._tag)
