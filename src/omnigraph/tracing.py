"""Owns spans and durations of operations, for whoever collects them with OpenTelemetry. Nothing is
imported and nothing is done unless the program has imported it and said where they go.

Names are those of OpenTelemetry's conventions for databases. A span holds no text of a query and no
value: only what was done, to which graph, how long it took, and the code of an error.
"""

from __future__ import annotations

import functools
import inspect
import sys
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from omnigraph.errors import OmnigraphError

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram
    from opentelemetry.trace import Span, Tracer

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
SYSTEM = "omnigraph"
OPERATIONS = "db.client.operation.duration"
_UNSET = frozenset({"ProxyTracerProvider", "_ProxyMeterProvider"})
"""What stands where nobody has said where spans and measures go. Libraries import the interface
without collecting anything, so that alone says nothing."""


def listened() -> bool:
    """Whether somebody collects."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is not None and _is_set(trace.get_tracer_provider()):
        return True
    metrics = sys.modules.get("opentelemetry.metrics")
    return metrics is not None and _is_set(metrics.get_meter_provider())


def _is_set(provider: object) -> bool:
    return type(provider).__name__ not in _UNSET


def traced_methods(*names: str) -> Callable[[C], C]:
    """A class of which these methods are operations."""

    def with_spans(of: C) -> C:
        for name in names:
            setattr(of, name, _traced(vars(of)[name], name))
        return of

    return with_spans


def _traced(method: F, name: str) -> F:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not listened():
            return method(self, *args, **kwargs)
        with operation(name, _graph_of(self)):
            return method(self, *args, **kwargs)

    return cast(F, call)


def _graph_of(handle: Any) -> str | None:
    """The graph of a handle, if it says so."""
    named = inspect.getattr_static(handle, "_graph_name", None)
    return None if named is None else str(handle._graph_name)  # noqa: SLF001


@contextmanager
def operation(name: str, graph: str | None) -> Iterator[None]:
    """What is done within is part of it."""
    from opentelemetry import trace

    measured = _Measured(name, graph)
    with trace.use_span(measured.span, record_exception=False, set_status_on_exception=False):
        try:
            yield
        except BaseException as error:
            measured.failed(error)
            raise
        finally:
            measured.end()


def traced_items(name: str, items: Callable[[], Iterator[T]]) -> Iterator[T]:
    """The items of an operation that takes as long as they are read."""
    if not listened():
        yield from items()
        return
    measured = _Measured(name, None)
    try:
        yield from items()
    except GeneratorExit:
        raise  # whoever read has enough
    except BaseException as error:
        measured.failed(error)
        raise
    finally:
        measured.end()


class _Measured:
    """One operation: its span, and what its duration is booked with."""

    def __init__(self, name: str, graph: str | None) -> None:
        from opentelemetry.trace import SpanKind

        self._attributes = {"db.system.name": SYSTEM, "db.operation.name": name}
        if graph is not None:
            self._attributes["db.namespace"] = graph
        self.span: Span = _tracer().start_span(
            name if graph is None else f"{name} {graph}",
            kind=SpanKind.CLIENT,
            attributes=self._attributes,
        )
        self._began = time.perf_counter()

    def failed(self, error: BaseException) -> None:
        self._attributes["error.type"] = _code(error)
        _mark_failed(self.span, _code(error))

    def end(self) -> None:
        _duration().record(time.perf_counter() - self._began, self._attributes)
        self.span.end()


def add_context(headers: MutableMapping[str, str]) -> None:
    """Tells a server of what the request is a part."""
    if listened():
        from opentelemetry import propagate

        propagate.inject(headers)


def _mark_failed(span: Span, code: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", code)
    span.set_status(Status(StatusCode.ERROR))


def _code(error: BaseException) -> str:
    return error.code if isinstance(error, OmnigraphError) else type(error).__qualname__


@functools.cache
def _tracer() -> Tracer:
    from opentelemetry import trace

    return trace.get_tracer(SYSTEM)


@functools.cache
def _duration() -> Histogram:
    from opentelemetry import metrics

    meter = metrics.get_meter(SYSTEM)
    return meter.create_histogram(OPERATIONS, "s", "Duration of operations")
