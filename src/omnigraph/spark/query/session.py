"""Owns the session that queries run in: beside the caller's, on the same cluster, with settings of
its own, so that neither changes what the other means."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    # Spark guesses what Python reads to be tiny, and would broadcast any table: what is small is
    # said with hints, and found out while a query runs.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "64m",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.execution.topKSortFallbackThreshold": "100000",
}
_TAKEN_OVER = ("spark.sql.shuffle.partitions", "spark.omnigraph.shared")
_BESIDE: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def query_session(spark: Any) -> Any:
    """Over Spark Connect a client has but one, which is taken as it is."""
    if not hasattr(spark, "newSession"):
        return spark
    found = _BESIDE.get(spark)
    if found is None:
        found = spark.newSession()
        for name, value in _SETTINGS.items():
            found.conf.set(name, value)
        _BESIDE[spark] = found
    for name in _TAKEN_OVER:
        if (value := spark.conf.get(name, None)) is not None:
            found.conf.set(name, value)
    return found


class Jobs:
    """The jobs of one query, which end with it."""

    def __init__(self, spark: Any, tag: str) -> None:
        self._spark = spark
        self._tag = tag
        self._is_classic = hasattr(spark, "_jsparkSession")
        self._over = False

    def __enter__(self) -> Jobs:
        if self._is_classic:
            self._spark.sparkContext.addJobTag(self._tag)
        else:
            self._spark.addTag(self._tag)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.cancel()
        self._over = True
        if self._is_classic:
            self._spark.sparkContext.removeJobTag(self._tag)
        else:
            self._spark.removeTag(self._tag)

    def cancel(self) -> None:
        if self._over:
            return
        with contextlib.suppress(Exception):  # a session that has stopped has no jobs
            if self._is_classic:
                self._spark.sparkContext.cancelJobsWithTag(self._tag)
            else:
                self._spark.interruptTag(self._tag)
