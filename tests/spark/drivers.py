"""Drivers as processes of their own, to be killed: run by `tests.bench.processes`."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import omnigraph.spark
from omnigraph import runtime
from omnigraph.settings import Settings
from tests.spark.conftest import FOR_SMALL_DATA, entry_point


def load(
    root: str, source: str, place: str, point: str, times: int = 1, **options: Any
) -> dict[str, Any]:
    """A load on Spark that kills its process when it reaches a point for the n-th time; the point
    "journal read" is there when so many tasks have noted that they read."""
    sys.path.append(str(entry_point(Path(place))))
    left = times

    def die(reached: str) -> None:
        nonlocal left
        left -= reached == point
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    omnigraph.spark.session("local[2,3]", **FOR_SMALL_DATA)
    cut_small()
    if point.startswith("journal "):
        pattern = f"__jobs/*/journal/{point.split()[1]}-*"
        threading.Thread(target=_die_with, args=(root, pattern, times), daemon=True).start()
    runtime.on_reach = die
    with omnigraph.open(root, settings=Settings(durability="relaxed")) as g:
        result = g.load(source, engine="spark", **options)
    return {"commit": result.commit_id, "repeated": result.repeated, "rows": result.rows}


def cut_small(patch: Any = setattr) -> None:
    """A handful of rows takes many tasks."""
    from omnigraph.spark.load import actions, reading
    from omnigraph.spark.load.shape import plan_parts

    patch(reading, "plan_parts", partial(plan_parts, range_bytes=1500))
    patch(actions, "FRAGMENT_ROWS", 20)


def _die_with(root: str, pattern: str, count: int) -> None:
    while len(list(Path(root).glob(pattern))) < count:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGKILL)
