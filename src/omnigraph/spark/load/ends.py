"""Owns the ends of edges as joins on Spark: each must be a node that there will be."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.load.joins import Joins
from omnigraph.engine.load.state import TOLD
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.plan.load.places import AT
from omnigraph.plan.load.reasons import Reason, has_no_end, orphans
from omnigraph.spark.load.frames import Wanted, read_frame, without
from omnigraph.spark.load.pieces import Piece, Spool
from omnigraph.spark.load.refusals import refuse
from omnigraph.spark.load.state import NOTHING, SparkState, node_ids
from omnigraph.spark.pinned import PinnedTable, share_fragments
from omnigraph.spark.tasks import collect, explained
from omnigraph.telemetry import Ledger

HELD_IDS = 2_000_000
"""Up to so many nodes, every task holds all ids and joins on its own: no edge has to travel."""
_TASK_ROWS = 2_500_000
_MEMORY = 1 << 30


@dataclass(frozen=True)
class NodeIds:
    """The ids of all nodes of a type that there will be, as a task reads them."""

    stored: PinnedTable | None
    spool: Spool
    pieces: tuple[Piece, ...]
    refused: np.ndarray

    def read(self) -> pa.Table:
        parts = [pa.table({"id": pa.array([], pa.string())})]
        if self.stored is not None:
            batches = self.stored.view().scan(Ledger(), columns=["id"], large=True)
            parts += [pa.table({"id": batch.column("id")}) for batch in batches]
        for piece in self.pieces:
            rows = self.spool.read(piece, ["id", AT])
            parts.append(pa.table({"id": without(rows, self.refused)["id"]}))
        return pa.concat_tables(parts)


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
    held = state.types.get(node.table_key)
    there = not state.replaced(node) and state.snapshot.view(node).table.rows
    nodes = NodeIds(
        stored=state.pinned(node) if there else None,
        spool=state.spool,
        pieces=() if held is None else held.pieces,
        refused=state.refused.get(node.table_key, NOTHING),
    )
    spool, pieces = state.spool, state.types[kind.table_key].pieces
    refused = state.refused.get(kind.table_key, NOTHING)
    groups = share_fragments([(n, piece.rows) for n, piece in enumerate(pieces)], _TASK_ROWS)

    def read(group: tuple[int, ...]) -> Iterator[pa.Table]:
        parts = [without(spool.read(pieces[number], [end, AT]), refused) for number in group]
        rows = pa.concat_tables([part.rename_columns([end, "place"]) for part in parts])
        with tempfile.TemporaryDirectory(prefix="omnigraph-ends-") as directory:
            joins = Joins(_MEMORY, Path(directory))
            try:
                yield joins.ask(
                    f'SELECT place AS "at", {end} FROM rows ANTI JOIN nodes ON {end} = nodes.id',
                    rows=rows,
                    nodes=nodes.read(),
                )
            finally:
                joins.close()

    return read_frame(state.spark, groups, {"at": "long", end: "string"}, read)


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
