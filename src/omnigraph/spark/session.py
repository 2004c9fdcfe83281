"""Owns Spark sessions: one that is configured for this package, or the caller's own."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from omnigraph.errors import EngineMissing, InvalidArgument
from omnigraph.spark.defaults import found_setting
from omnigraph.spark.extension import extended, settings
from omnigraph.spark.java import find_java
from omnigraph.spark.stderr import filtered_stderr

SHARED = "spark.omnigraph.shared"
"""Set to true on a session whose executors see the directory of a local root."""

_QUIET = Path(__file__).with_name("log4j2.properties")
_EVERYWHERE = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # Shuffled data is compressed and may become ten times as large in memory.
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "32m",
    "spark.speculation": "false",  # a task that is run twice stages its rows twice
    "spark.ui.showConsoleProgress": "false",  # `progress` tells more
}
_HERE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
}
_JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
_UNCHECKED = "-Darrow.enable_unsafe_memory_access=true"
"""Spark lets Arrow check bounds for each value, which takes a third of the time of passing on a
row."""


def session(master: str | None = None, **conf: Any) -> Any:
    """A Spark session: the one that is running if nothing else is asked for, else a new one on
    this machine, on a cluster (`spark://…`, `yarn`, `k8s://…`) or over Spark Connect (`sc://…`).
    `conf` are Spark's own settings by their full names, and beat the ones that are set here:
    `session(**{"spark.driver.memory": "8g"})`."""
    for name in conf:
        if not name.startswith("spark."):
            raise InvalidArgument(
                f"{name!r} is not a setting of Spark.",
                help='Settings have their full names: session(**{"spark.driver.memory": "8g"}).',
            )
    spark_session = _import()
    if (running := active_session()) is not None:
        if master is None or _same_place(running, master):
            for name, value in conf.items():
                running.conf.set(name, _text(value))
            return running
        raise InvalidArgument(
            f"A Spark session on {master_of(running)} is running in this process, so none can be "
            f"started on {master}.",
            help="Stop it first: spark.stop().",
        )
    place = master or os.environ.get("MASTER") or os.environ.get("SPARK_MASTER")
    if place is None and os.environ.get("SPARK_REMOTE"):
        place = os.environ["SPARK_REMOTE"]
    place = place or f"local[*,{_ATTEMPTS}]"
    with warnings.catch_warnings():
        # The JVM is started by a fork that runs nothing of ours.
        warnings.filterwarnings("ignore", message="lance is not fork-safe")
        if place.startswith("sc://"):
            return _connect(spark_session, place, conf)
        return _start(spark_session, place, conf)


_ATTEMPTS = 3


def _start(spark_session: Any, place: str, conf: dict[str, Any]) -> Any:
    os.environ["JAVA_HOME"] = str(find_java())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    chosen = dict(_EVERYWHERE)
    if is_local(place):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        cores = os.cpu_count() or 1
        chosen |= _HERE | {"spark.sql.shuffle.partitions": str(max(4, min(2 * cores, 200)))}
    else:
        chosen["spark.log.level"] = "ERROR"
    added_to = {name: found_setting(name) for name in (*_JAVA_OPTIONS, *settings())}
    chosen |= {name: value for name, value in added_to.items() if value}
    chosen = extended(chosen | {name: _text(value) for name, value in conf.items()})
    for name in _JAVA_OPTIONS:
        java = chosen.get(name, "")
        if "arrow.enable_unsafe_memory_access" not in java:
            chosen[name] = f"{_UNCHECKED} {java}".strip()
    driver = chosen[_JAVA_OPTIONS[0]]
    if "log4j" not in driver:
        chosen[_JAVA_OPTIONS[0]] = f"-Dlog4j2.configurationFile=file:{_QUIET} {driver}"
    builder = spark_session.builder.master(place).appName("omnigraph")
    for name, value in chosen.items():
        builder = builder.config(name, value)
    try:
        with filtered_stderr(), _own_interrupts():
            return builder.getOrCreate()
    except Exception as error:
        raise EngineMissing(
            f"Spark did not start on {place}: {_first_line(error)}.",
            help="JAVA_HOME is " + os.environ["JAVA_HOME"] + "; what Java said stands above.",
        ) from error


@contextlib.contextmanager
def _own_interrupts() -> Iterator[None]:
    """On Ctrl-C PySpark cancels its jobs by asking the JVM in the middle of another request. A
    program with its own handler keeps it."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        own = callable(handler) and handler is not signal.default_int_handler
        if own and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


def _connect(spark_session: Any, place: str, conf: dict[str, Any]) -> Any:
    lacking = [name for name in ("grpc", "grpc_status", "google.protobuf") if not _is_there(name)]
    if lacking:
        raise EngineMissing(
            f"Spark Connect needs packages that are not installed: {', '.join(lacking)}.",
            help="Install them: pip install 'omnigraph[connect]'",
        )
    builder = spark_session.builder.remote(place)
    for name, value in conf.items():
        builder = builder.config(name, _text(value))
    try:
        made = builder.getOrCreate()
        made.conf.set("spark.sql.session.timeZone", "UTC")
    except Exception as error:
        raise EngineMissing(
            f"There is no Spark Connect server at {place}: {_first_line(error)}."
        ) from error
    return made


def active_session() -> Any:
    """The session that runs in this process, None if there is none. Does not import Spark."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession()
    if found is not None:
        return found
    # Another thread than the one that made it does not see it as active.
    default = getattr(SparkSession, "_instantiatedSession", None)
    if default is not None and getattr(default.sparkContext, "_jsc", None) is not None:
        return default
    return None


def master_of(spark: Any) -> str:
    """ "" if the session does not tell, as over Spark Connect."""
    return str(spark.conf.get("spark.master", "") or "")


def is_local(master: str) -> bool:
    """Whether the executors are threads on this machine; `local-cluster` is not."""
    return master == "local" or master.startswith("local[")


def _same_place(running: Any, master: str) -> bool:
    return master_of(running) == master or (is_local(master) and is_local(master_of(running)))


def _import() -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise EngineMissing(
            "PySpark is not installed.", help="Install it: pip install 'omnigraph[spark]'"
        ) from error
    return SparkSession


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor is what it is part of
        return False


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _first_line(error: Exception) -> str:
    return (str(error).strip().split("\n", 1)[0] or type(error).__name__).rstrip(".")
