"""Owns what is measured of one server process: counters, as Prometheus reads them, and a span for
each request, for whoever collects traces by OpenTelemetry."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from omnigraph.engine.permissions import Authorizer
from omnigraph.model.caller import Caller
from omnigraph.model.catalog import GraphType
from omnigraph.model.permission import Request, TypeResource, Verdict
from omnigraph.model.row_rule import RowRule
from omnigraph.server.admission import Admission
from omnigraph.server.pools import Pools

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class CountedPolicy:
    """Who decides, and how often they were asked."""

    def __init__(self, policy: Authorizer, metrics: Metrics) -> None:
        self._policy = policy
        self._metrics = metrics

    def decide(self, request: Request) -> Verdict:
        verdict = self._policy.decide(request)
        self._metrics.decided(request.action, verdict.allowed)
        return verdict

    def rows(self, caller: Caller, kind: TypeResource, type: GraphType) -> RowRule:
        return self._policy.rows(caller, kind, type)


class Metrics:
    """Labels have few values: routes as they are declared, never addresses; no actor, no text."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "omnigraph_http_requests_total",
            "Requests that were answered",
            ("route", "method", "status"),
            registry=self.registry,
        )
        self._answered: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._seconds = Histogram(
            "omnigraph_http_request_seconds",
            "Until the last byte of the answer",
            ("route",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._queue = Histogram(
            "omnigraph_queue_seconds",
            "How long work waited for a thread",
            ("pool",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._rejected = Counter(
            "omnigraph_rejected_total",
            "Requests that were refused because of a limit",
            ("reason",),
            registry=self.registry,
        )
        self._conflicts = Counter(
            "omnigraph_conflicts_total",
            "Writes that somebody else kept from landing",
            ("code",),
            registry=self.registry,
        )
        self._in_flight = Gauge(
            "omnigraph_in_flight",
            "Threads that are at work",
            ("pool",),
            registry=self.registry,
        )
        self._streams = Gauge(
            "omnigraph_streams", "Answers that are being streamed", registry=self.registry
        )
        self._memory = Gauge(
            "omnigraph_memory_reserved_bytes",
            "Memory that queries have reserved",
            registry=self.registry,
        )

        self._jobs = Gauge(
            "omnigraph_jobs",
            "Jobs of this process: those that run, and how many came to each end",
            ("kind", "state"),
            registry=self.registry,
        )
        self._commits = Counter(
            "omnigraph_commits_total",
            "Commits that were made here",
            ("graph", "kind"),
            registry=self.registry,
        )
        self._decisions = Counter(
            "omnigraph_policy_decisions_total",
            "What was asked of the policy",
            ("action", "decision"),
            registry=self.registry,
        )
        self._storage = Counter(
            "omnigraph_storage_requests_total",
            "Requests on storage",
            ("verb", "purpose"),
            registry=self.registry,
        )

    def stored(self, verb: str, purpose: str, count: int) -> None:
        self._storage.labels(verb, purpose).inc(count)

    def job(self, kind: str, state: str, change: int) -> None:
        self._jobs.labels(kind, state).inc(change)

    def committed(self, graph: str, kind: str) -> None:
        self._commits.labels(graph, kind).inc()

    def decided(self, action: str, allowed: bool) -> None:
        self._decisions.labels(action, "allow" if allowed else "deny").inc()

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        asked = (route, method, status)
        held = self._answered.get(asked)
        if held is None:
            counter = self._requests.labels(route, method, str(status))
            held = self._answered[asked] = (counter, self._seconds.labels(route))
        counter, histogram = held
        counter.inc()
        histogram.observe(seconds)

    def refused(self, code: str, status: int) -> None:
        """A problem that was told."""
        if status in (429, 503):
            self._rejected.labels(code).inc()
        elif status in (409, 412):
            self._conflicts.labels(code).inc()

    def waited(self, pool: str, seconds: float) -> None:
        self._queue.labels(pool).observe(seconds)

    def text(self, pools: Pools, admission: Admission) -> bytes:
        for pool in pools.all():
            self._in_flight.labels(pool.name).set(pool.busy)
        self._streams.set(admission.streams)
        self._memory.set(admission.reserved)
        return bytes(generate_latest(self.registry))


# Traces


class RequestSpan:
    """What is told of one request; without a span, nothing."""

    def __init__(self, span: Any = None, method: str = "") -> None:
        self._span = span
        self._method = method

    def answered(self, route: str, status: int, code: str | None) -> None:
        span = self._span
        if span is None:
            return
        span.update_name(f"{self._method} {route}")
        span.set_attribute("http.request.method", self._method)
        span.set_attribute("http.route", route)
        span.set_attribute("http.response.status_code", status)
        if code is not None:
            span.set_attribute("error.type", code)
        if status >= 500:
            from opentelemetry.trace import StatusCode

            span.set_status(StatusCode.ERROR)


@contextmanager
def traced(method: str, traceparent: str | None) -> Iterator[RequestSpan]:
    """Whoever collects traces has imported OpenTelemetry's SDK; nobody else pays for it."""
    if "opentelemetry.sdk.trace" not in sys.modules:
        yield RequestSpan()
        return
    from opentelemetry import propagate, trace

    context = propagate.extract({} if traceparent is None else {"traceparent": traceparent})
    tracer = trace.get_tracer("omnigraph.server")
    with tracer.start_as_current_span(
        method, context=context, kind=trace.SpanKind.SERVER, record_exception=False
    ) as span:
        yield RequestSpan(span, method)
