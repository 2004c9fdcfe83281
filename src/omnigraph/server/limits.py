"""Owns the bounds of one server process: what it takes, how much at once, and for how long."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields

from omnigraph.errors import InvalidArgument

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_MOST = 1 << 53
_SHORTEST = 0.001
_PERHAPS_NONE = ("waiting", "patience", "drain")


def _half_of_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _read_threads() -> int:
    return 2 * (os.cpu_count() or 1)


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """Sizes in bytes, times in seconds. `waiting` is how many requests may wait for a thread of
    each pool, and `patience` how long. `memory` is what all queries together may reserve."""

    read_threads: int = field(default_factory=_read_threads)
    write_threads: int = 16
    job_threads: int = 2
    waiting: int = 64
    patience: float = 5.0
    actor_in_flight: int = 16
    actor_rate: float = 50.0
    actor_burst: int = 100
    timeout: float = 30.0
    longest_timeout: float = 600.0
    query_memory: int = 512 * MIB
    memory: int = field(default_factory=_half_of_memory)
    streams: int = 64
    stalled: float = 30.0
    longest_stream: float = 3600.0
    connections: int = 4096
    header_bytes: int = 32 * KIB
    headers: int = 100
    header_seconds: float = 10.0
    url_bytes: int = 8 * KIB
    json_bytes: int = MIB
    json_depth: int = 64
    transaction_bytes: int = 32 * MIB
    load_bytes: int = 8 * GIB
    load_job_bytes: int = 64 * MIB
    body_rate: int = KIB
    page_rows: int = 1_000
    most_page_rows: int = 10_000
    page_bytes: int = 16 * MIB
    list_items: int = 100
    most_list_items: int = 1_000
    keep_alive: float = 75.0
    drain: float = 25.0

    def __post_init__(self) -> None:
        """A limit that is no number bounds nothing."""
        for name in (one.name for one in fields(self)):
            value = getattr(self, name)
            least = 0 if name in _PERHAPS_NONE else 1 if isinstance(value, int) else _SHORTEST
            if not least <= value <= _MOST:
                raise InvalidArgument(f"The limit {name} is from {least:g} on, not {value!r:.40}.")
