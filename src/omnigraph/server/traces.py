"""Owns the traces of requests: a span for each, below the one that the client names, for whoever
collects them by OpenTelemetry."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


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
