"""Owns the attribution of requests that Lance made: which of them belong to which ledger."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from omnigraph.telemetry import Ledger

Hops = Callable[[int, int], int]
"""How many of so many reads and writes had to wait for one another."""


def serial_hops(reads: int, writes: int) -> int:
    return reads + writes


class Tally:
    """Requests that Lance counted and that nobody has booked yet.

    All tables of a root share one count, so what one thread sees there may be another's. Work
    that knows how many requests it took claims exactly those; other work (a scan, a compaction)
    claims the rest. Sums are always right, and of work done side by side so is each part whose
    size is known. A claim may be ahead of the count, when somebody else took too much; the next
    one makes up for it. Asking a handle for its count never fails, because Lance borrows none
    that is shared (`Table.own_handle`).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reads = 0
        self.writes = 0

    def book(
        self,
        handle: Any,
        ledger: Ledger,
        purpose: str,
        *,
        reads: int | None = None,
        writes: int | None = None,
        hops: Hops = serial_hops,
    ) -> None:
        """Lance tells reads from writes and no more, so its HEAD and LIST are booked as get."""
        with self._lock:
            seen = handle.io_stats_incremental()
            self.reads += int(seen.read_iops)
            self.writes += int(seen.write_iops)
            reads = max(self.reads, 0) if reads is None else reads
            writes = max(self.writes, 0) if writes is None else writes
            self.reads -= reads
            self.writes -= writes
        ledger.record("get", purpose, count=reads, size=int(seen.read_bytes), hops=0)
        ledger.record("put", purpose, count=writes, size=int(seen.written_bytes), hops=0)
        ledger.add_hops(hops(reads, writes))
