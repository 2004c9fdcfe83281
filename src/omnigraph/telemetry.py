"""Owns measurements: the ledger, which counts every storage request by verb and purpose, with bytes
and serial hops, and reports of failures that no caller waits for."""

from __future__ import annotations

import functools
import logging
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter as Metric

_METRICS = {
    "omnigraph.storage.requests": ("1", "Requests on storage"),
    "omnigraph.storage.bytes": ("By", "Bytes moved"),
    "omnigraph.afterwards.failures": ("1", "What failed after a commit had landed"),
}
_LOG = logging.getLogger("omnigraph")

READ_VERBS = frozenset({"get", "head", "list"})


_told: list[Callable[[str, str, int], None]] = []


def tell_requests(to: Callable[[str, str, int], None]) -> None:
    """From now on `to` hears of every request on storage: its verb, its purpose, how many."""
    _told.append(to)


def _measure(name: str, value: int, attributes: dict[str, str]) -> None:
    """Whoever collects metrics has imported OpenTelemetry. To import it here would make every
    command wait for it."""
    if "opentelemetry.metrics" in sys.modules:
        _metric(name).add(value, attributes)


@functools.cache
def _metric(name: str) -> Metric:
    from opentelemetry import metrics

    unit, description = _METRICS[name]
    return metrics.get_meter("omnigraph").create_counter(name, unit, description)


class LedgerEntry(NamedTuple):
    verb: str
    purpose: str


class Ledger:
    """The measured requests of one operation, counted below any retry, so that a retry counts
    twice.

    Hops are requests that had to wait for one another. Parallel work is booked on `fork()`ed
    ledgers and `join()`ed: its requests add up, and of its hops only the longest chain counts.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts: Counter[LedgerEntry] = Counter()
        self.read_bytes = 0
        self.written_bytes = 0
        self.hops = 0
        self.is_joined = False
        if _watch is not None:
            _watch.ledgers.append(self)

    def record(
        self, verb: str, purpose: str, *, count: int = 1, size: int = 0, hops: int | None = None
    ) -> None:
        if count == 0:
            return
        with self._lock:
            self.counts[LedgerEntry(verb, purpose)] += count
            self.hops += count if hops is None else hops
            if verb in READ_VERBS:
                self.read_bytes += size
            else:
                self.written_bytes += size
        for tell in _told:
            tell(verb, purpose, count)
        attributes = {"verb": verb, "purpose": purpose}
        _measure("omnigraph.storage.requests", count, attributes)
        if size:
            _measure("omnigraph.storage.bytes", size, attributes)

    def add_hops(self, hops: int) -> None:
        """Books requests that had to wait for one another, counted elsewhere."""
        with self._lock:
            self.hops += hops

    def fork(self) -> Ledger:
        """A ledger of the same kind for parallel work, to be joined."""
        return type(self)()

    def join(self, branches: Sequence[Ledger]) -> None:
        """Books work that was done in parallel."""
        with self._lock:
            for branch in branches:
                self.counts.update(branch.counts)
                self.read_bytes += branch.read_bytes
                self.written_bytes += branch.written_bytes
                branch.is_joined = True
            self.hops += max((branch.hops for branch in branches), default=0)

    @property
    def reads(self) -> int:
        return sum(n for entry, n in self.counts.items() if entry.verb in READ_VERBS)

    @property
    def writes(self) -> int:
        return sum(n for entry, n in self.counts.items() if entry.verb not in READ_VERBS)

    @property
    def bytes(self) -> int:
        return self.read_bytes + self.written_bytes

    @property
    def by_purpose(self) -> dict[str, dict[str, int]]:
        table: dict[str, dict[str, int]] = {}
        for entry, count in sorted(self.counts.items()):
            table.setdefault(entry.purpose, {})[entry.verb] = count
        return table

    def __repr__(self) -> str:
        return (
            f"Ledger(reads={self.reads}, writes={self.writes}, hops={self.hops}, "
            f"bytes={self.bytes}, by_purpose={self.by_purpose})"
        )


class Watch:
    """Every ledger of the process that was created while somebody watched."""

    def __init__(self) -> None:
        self.ledgers: list[Ledger] = []

    def total(self) -> Ledger:
        """The sum of the ledgers. A joined ledger is already contained in another one."""
        total = Ledger()
        for ledger in [one for one in self.ledgers if not one.is_joined and one is not total]:
            total.join([ledger])
            ledger.is_joined = False  # so that it can be asked again
        total.is_joined = True
        return total


_watch: Watch | None = None


@contextmanager
def watch_requests() -> Iterator[Watch]:
    """For a program that does one thing and wants to know its total requests."""
    global _watch
    before, _watch = _watch, Watch()
    try:
        yield _watch
    finally:
        _watch = before


def report_failure(doing: str, error: BaseException) -> None:
    """Logs, for the operator of the program, a failure that no caller waits for."""
    _measure("omnigraph.afterwards.failures", 1, {"doing": doing})
    _LOG.warning(
        "%s failed, and the commit before it has landed: %s: %s",
        doing,
        type(error).__name__,
        error,
        exc_info=error,
        extra={"doing": doing},
    )
