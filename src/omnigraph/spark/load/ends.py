"""Owns the ends of edges as joins on Spark: each must be a node that there will be."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from omnigraph.engine.load.joins import joining
from omnigraph.engine.load.state import TOLD
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.plan.load.places import AT
from omnigraph.plan.load.reasons import Reason, has_no_end, orphans
from omnigraph.spark.load.frames import (
    TASK_MEMORY,
    PieceColumns,
    TableColumns,
    Wanted,
    read_frame,
)
from omnigraph.spark.load.refusals import refuse
from omnigraph.spark.load.state import SparkState, node_ids
from omnigraph.spark.tasks import collect, explained

HELD_IDS = 2_000_000
"""Up to so many nodes, every task holds all ids and joins on its own: no edge has to travel."""


def check_ends(state: SparkState, kind: EdgeType) -> None:
    for end, node_name in (("src", kind.source), ("dst", kind.target)):
        if not state.left(kind):
            return
        node = state.snapshot.catalog.node_names[node_name]
        nodes, count = node_ids(state, node)
        if nodes is None:
            missing = state.arriving(kind, Wanted((end,))).select("at", end)
        elif count <= HELD_IDS:
            missing = _missing(state, kind, end, node)
        else:
            rows = state.arriving(kind, Wanted((end,))).select("at", end)
            missing = rows.join(nodes, rows[end] == nodes["id"], "left_anti")
        refuse(state, kind, "endpoint", missing, partial(_endless, kind, end))


def _missing(state: SparkState, kind: EdgeType, end: str, node: NodeType) -> Any:
    """`at` and the end of edges that hang on nothing."""
    nodes: list[PieceColumns | TableColumns] = [state.arriving_columns(node, "id")]
    if state.keeps(node):
        nodes.append(state.stored_columns(node, "id"))
    edges = state.arriving_columns(kind, end, AT)

    def read(group: tuple[int, ...]) -> Iterator[pa.Table]:
        none = pa.schema([("id", pa.string())]).empty_table()
        parts = [none, *(part for source in nodes for part in source.read_all())]
        with joining(TASK_MEMORY, "ends") as joins:
            yield joins.ask(
                f'SELECT place AS "at", {end} FROM rows ANTI JOIN nodes ON {end} = nodes.id',
                rows=pa.concat_tables(edges.read(group)).rename_columns([end, "place"]),
                nodes=pa.concat_tables(parts, promote_options="default"),
            )

    return read_frame(state.spark, edges.groups(), {"at": "long", end: "string"}, read)


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
