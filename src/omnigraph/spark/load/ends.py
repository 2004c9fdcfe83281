"""Owns the ends of edges as joins on Spark: each must be a node that there will be."""

from __future__ import annotations

from functools import partial
from typing import Any

from omnigraph.engine.load.state import TOLD
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.plan.load.reasons import Reason, has_no_end, orphans
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
        refuse(state, kind, "endpoint", missing, partial(_endless, kind, end))


def _endless(kind: EdgeType, end: str, row: dict[str, Any]) -> Reason:
    return has_no_end(kind, end, row[end])


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
            pairs = [(row["id"], row[end]) for row in examples.to_pylist()]
            raise orphans(node, edge, end, pairs, total)
