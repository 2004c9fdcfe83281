"""What was counted in one operation, by everybody who counts: ledger, metrics and the wire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint

from omnigraph.telemetry import READ_VERBS, Ledger
from tests.bench.proxy import READS, Request, Seen

Requests = Counter[tuple[str, str]]


# The ledger says what a request was for, the wire what it was about.
_GROUPS = {
    **dict.fromkeys(
        ("scan", "take", "lookup", "columns", "compaction", "data", "deletion"), "rows"
    ),
    # Lance looks at a version before it lets a tag name it.
    **dict.fromkeys(("table", "table_version", "transaction", "tag", "object", "other"), "table"),
}


def booked(requests: Requests) -> Requests:
    """What the ledger holds, in the words that it shares with the wire."""
    found: Requests = Counter()
    for (verb, purpose), count in requests.items():
        found["read" if verb in READ_VERBS else "write", _GROUPS.get(purpose, purpose)] += count
    return found


def on_the_wire(seen: Seen) -> Requests:
    found: Requests = Counter()
    for (verb, about), count in seen.by_verb_and_class.items():
        found["read" if verb in READS else "write", _GROUPS.get(about, about)] += count
    return found


class Exported:
    """The counters that a metrics backend would see, as differences between two looks."""

    def __init__(self, reader: InMemoryMetricReader) -> None:
        self._reader = reader

    def requests(self) -> Requests:
        return self._sums("omnigraph.storage.requests")

    def bytes(self) -> Requests:
        return self._sums("omnigraph.storage.bytes")

    def _sums(self, name: str) -> Requests:
        found: Requests = Counter()
        data = self._reader.get_metrics_data()
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points if metric.name == name else ():
                        assert isinstance(point, NumberDataPoint)
                        labels = point.attributes or {}
                        found[str(labels["verb"]), str(labels["purpose"])] += int(point.value)
        return found


@dataclass(frozen=True)
class Cost:
    """What one operation took. Two operations cost the same when all of it is equal: not only the
    sums, but each kind of request, in the ledger and on the wire."""

    requests: dict[str, int]
    hops: int
    wire: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def of(ledger: Ledger, seen: Seen | None) -> Cost:
        requests = {f"{verb} {purpose}": n for (verb, purpose), n in ledger.counts.items()}
        wire = {} if seen is None else {" ".join(k): n for k, n in seen.by_verb_and_class.items()}
        return Cost(dict(sorted(requests.items())), ledger.hops, dict(sorted(wire.items())))

    @property
    def reads(self) -> int:
        return sum(n for key, n in self.requests.items() if key.split()[0] in READ_VERBS)

    @property
    def writes(self) -> int:
        return sum(self.requests.values()) - self.reads


def time_under_way(requests: Iterable[Request]) -> float:
    """Seconds in which at least one request was not answered yet: what an operation waits for the
    store, without what it computes between requests."""
    total = reached = 0.0
    for request in sorted(requests, key=lambda request: request.started):
        assert request.ended is not None
        total += max(request.ended - max(request.started, reached), 0.0)
        reached = max(reached, request.ended)
    return total


def longest_chain(requests: Iterable[Request]) -> int:
    """How many requests waited for one another: the longest row of requests in which each began
    after the one before had ended."""
    chains: list[tuple[float, int]] = []
    for request in sorted(requests, key=lambda request: request.started):
        assert request.ended is not None
        before = max((n for ended, n in chains if ended <= request.started), default=0)
        chains.append((request.ended, before + 1))
    return max((n for _, n in chains), default=0)
