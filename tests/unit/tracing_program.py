"""A program whose operations are collected, or not: it prints what was collected as JSON."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any


def silent(root: str) -> list[str]:
    work(root)
    return [name for name in sys.modules if name.startswith("opentelemetry")]


def work(root: str) -> None:
    import omnigraph
    from omnigraph.errors import NotFound

    with omnigraph.init(root, schema="node Person { name: String @key }") as g:
        g.mutate('insert Person { name: "secret" }')
        g.query("match { $p: Person } return { $p.name }").to_pylist()
        g.create_branch("side", "main")
        with g.branch("side").transaction() as tx:
            tx.append("Person", {"name": "secret too"})
        g.export(to=f"{root}.jsonl")
        with contextlib.suppress(NotFound):
            g.restore("nothing")


def collected(root: str, *, served: bool) -> dict[str, Any]:
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([reader]))
    mine = ""
    if served:
        ask_a_server(root)
    else:
        mine = work_and_merge(root)
    spans = [one for one in exporter.get_finished_spans() if one.name != "mine"]
    return {
        "mine": mine,
        "spans": [
            {
                "name": one.name,
                "id": f"{one.context.span_id:x}",
                "parent": None if one.parent is None else f"{one.parent.span_id:x}",
                "kind": one.kind.name,
                "status": one.status.status_code.name,
                "attributes": dict(one.attributes or {}),
                "events": len(one.events),
            }
            for one in spans
        ],
        "durations": durations(reader),
    }


def work_and_merge(root: str) -> str:
    from opentelemetry import trace

    import omnigraph

    work(root)
    with omnigraph.open(root) as g:
        rows = g.query("match { $p: Person } return { $p.name }").batches()
        next(rows)
        rows.close()  # type: ignore[attr-defined]
        with trace.get_tracer("program").start_as_current_span("mine") as span:
            g.merge("side")
        return f"{span.get_span_context().span_id:x}"


def ask_a_server(root: str) -> None:
    import omnigraph
    from omnigraph.server.graphs import Graphs
    from omnigraph.server.service import Service
    from tests.server.serving import serving

    omnigraph.init(root, schema="node Person { name: String @key }").close()
    with (
        serving(Service(Graphs({"people": root}))) as site,
        omnigraph.open(f"{site.url}/graphs/people") as g,
    ):
        g.mutate('insert Person { name: "Ada" }')


def durations(reader: Any) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for resource in reader.get_metrics_data().resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                if metric.name != "db.client.operation.duration":
                    continue
                counts = found.setdefault(metric.name, {})
                for point in metric.data.data_points:
                    about = point.attributes
                    name = str(about["db.operation.name"])
                    counts[name] = counts.get(name, 0) + point.count
    return found


if __name__ == "__main__":
    kind, place = sys.argv[1:]
    told = silent(place) if kind == "silent" else collected(place, served=kind == "served")
    print(json.dumps(told))
