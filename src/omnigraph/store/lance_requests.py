"""Owns the attribution of requests that Lance made: which of them belong to which ledger."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from omnigraph.telemetry import Ledger

Hops = Callable[[int, int], int]
"""How many of these reads and writes had to wait for one another."""


def serial_hops(reads: int, writes: int) -> int:
    return reads + writes


class Tally:
    """Requests that Lance counted and that nobody has booked yet.

    All tables of a root share one count, so a thread may see requests of another. Work that knows
    its number of requests claims exactly that many; other work (a scan, a compaction) claims the
    rest. Sums are always right, and so is each part of parallel work whose size is known. A claim
    may be ahead of the count if somebody else took too much, and the next one makes up for it.

    Asking a handle for its count never fails, because Lance borrows no shared handle
    (`Table.own_handle`).
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
        """Lance distinguishes only reads and writes, so its HEAD and LIST are booked as get."""
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
