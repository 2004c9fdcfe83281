"""A driver of a stream as a process of its own, which dies with its JVM: run by
`tests.bench.processes`."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import omnigraph
from tests.spark.conftest import FOR_SMALL_DATA, entry_point


def stream(root: str, source: str, checkpoint: str, place: str, until: int) -> None:
    """Writes what comes into a directory to a graph until the graph has a version; then all of it
    is killed, wherever it is."""
    import omnigraph.spark

    sys.path.append(str(entry_point(Path(place))))
    spark = omnigraph.spark.session("local[2]", **FOR_SMALL_DATA)
    threading.Thread(target=_die_at, args=(spark, root, until), daemon=True).start()
    lines = spark.readStream.schema("text string").option("maxFilesPerTrigger", 1).json(source)
    writer = lines.writeStream.format("omnigraph").option("type", "Note").option("on", "append")
    query = writer.option("checkpointLocation", checkpoint).option("path", root).start()
    query.awaitTermination()


def _die_at(spark: Any, root: str, version: int) -> None:
    with omnigraph.open(root, mode="r") as g:
        while g.snapshot().version < version:
            time.sleep(0.001)
    os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
