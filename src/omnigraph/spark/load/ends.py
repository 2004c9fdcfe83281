"""Owns the ends of edges as joins on Spark: each must be a node that there will be."""

from __future__ import annotations

from typing import Any

from omnigraph.engine.load.state import TOLD
from omnigraph.errors import InvalidData
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.violation import Violation, show_value
from omnigraph.spark.load.frames import Wanted
from omnigraph.spark.load.refusals import refuse
from omnigraph.spark.load.state import SparkState, node_ids
from omnigraph.spark.tasks import collect, explained


def check_ends(state: SparkState, kind: EdgeType) -> None:
    for end, node_name in (("src", kind.source), ("dst", kind.target)):
        if not state.left(kind):
            return
        node = state.snapshot.catalog.node_names[node_name]
        rows = state.arriving(kind, Wanted((end,))).select("at", end)
        nodes, count = node_ids(state, node)
        missing = rows
        if nodes is not None:
            nodes = state.small(nodes, count)
            missing = rows.join(nodes, rows[end] == nodes["id"], "left_anti")
        name = "from" if end == "src" else "to"

        def describe(
            row: dict[str, Any], end: str = end, name: str = name, node_name: str = node_name
        ) -> tuple[str, str]:
            return (
                f"{kind.name} has `{name}` {show_value(row[end])}, but there is no {node_name} "
                "with that id."
            ), name

        refuse(state, kind, "endpoint", missing, describe)


def check_orphans(state: SparkState, node: NodeType) -> None:
    """Replacing all nodes does not take edges along, so it is refused; no single row is to
    blame, so nothing can be quarantined."""
    for edge in state.snapshot.catalog.edges:
        for end, node_name in (("src", edge.source), ("dst", edge.target)):
            if node_name != node.name or state.replaced(edge):
                continue
            lost = state.stored(edge, Wanted(("id", end)))
            if lost is None:
                continue
            nodes, count = node_ids(state, node)
            if nodes is not None:
                nodes = state.small(nodes.withColumnRenamed("id", "node"), count)
                lost = lost.join(nodes, lost[end] == nodes["node"], "left_anti")
            examples = collect(lost.limit(TOLD))
            if not examples.num_rows:
                continue
            with explained():
                total = int(lost.count())
            violations = [
                Violation(
                    type=node.name,
                    rule="orphan",
                    id=row[end],
                    message=f"{node.name} {show_value(row[end])} would be gone, but {edge.name} "
                    f"{show_value(row['id'])} has it as its {end}.",
                )
                for row in examples.to_pylist()
            ]
            rest = f" (and {total - 1} more)" if total > 1 else ""
            raise InvalidData(
                violations[0].message + rest, violations=violations, more=total - len(violations)
            )
