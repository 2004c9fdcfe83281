"""A process that runs queries with a limit on memory, and tells what each took at its peak.

It is a process of its own because the peak of a process never falls."""

from __future__ import annotations

import json
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Any

import duckdb

import omnigraph
from omnigraph.errors import OmnigraphError

_PAGE = resource.getpagesize()


class Peak:
    """The most that this process held at once while the block ran, beside what it held before."""

    def __enter__(self) -> Peak:
        self._before = self.bytes = _resident()
        self._done = threading.Event()
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.002):
            self.bytes = max(self.bytes, _resident())

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watcher.join()
        self.bytes = max(self.bytes, _resident()) - self._before


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def main(root: str, limit: str, warm: str, text: str) -> None:
    told: dict[str, Any] = {"rows": 0}
    duckdb.connect().execute("SELECT 1").fetchall()  # the library itself is not the query's
    with omnigraph.open(root, mode="r") as g:
        g.query(warm).to_arrow()
        began = time.monotonic()
        with Peak() as peak:
            try:
                for batch in g.query(text, memory_limit=int(limit)).batches():
                    told["rows"] += batch.num_rows
            except OmnigraphError as error:
                told |= {"code": error.code, "message": error.message}
        told |= {"peak": peak.bytes, "seconds": time.monotonic() - began}
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
