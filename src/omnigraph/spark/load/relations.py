"""Owns the relations of a load on Spark: DataFrames that executors read on demand. Where a join
would move many rows, digests are compared first."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.duckdb_sql import SqlRows, joining
from omnigraph.engine.load.relations import LoadRelations
from omnigraph.model.catalog import GraphType, NodeType
from omnigraph.plan.load.places import AT
from omnigraph.plan.rules import joins
from omnigraph.plan.rules.book import End, Ends, Rule
from omnigraph.spark.load.digests import may_exceed
from omnigraph.spark.load.frames import (
    TASK_MEMORY,
    PieceColumns,
    TableColumns,
    Wanted,
    read_frame,
    table_frame,
)
from omnigraph.spark.load.refusals import refuse, report_refused
from omnigraph.spark.load.stage import Completed, complete_new, complete_pieces
from omnigraph.spark.load.state import SparkState, TypePieces, node_ids, rows_origins
from omnigraph.spark.tasks import ANSWERS, collect_answers, explained, run_tasks

HELD_IDS = 2_000_000
"""Up to this many nodes, every task holds all ids and joins on its own, so no edge has to move."""


class SparkRelations(LoadRelations[TypePieces, Any]):
    """`LoadRelations` over the pieces of a load on Spark."""

    state: SparkState

    def __init__(self, state: SparkState) -> None:
        super().__init__(state)

    def ask(self, sql: str, **named: Any) -> Any:
        with explained():
            return self.state.spark.sql(sql, **named)

    def sized(self, relation: Any, rows: int) -> Any:
        return self.state.small(relation, rows)

    def many(self, kind: GraphType) -> bool:
        return self.state.many(kind)

    def may_exceed(
        self, kind: GraphType, columns: tuple[str, ...], most: int = 1, *, stored: bool = False
    ) -> bool:
        return may_exceed(self.state, kind, columns, most, stored=stored)

    # Relations

    def keys(self, kind: GraphType, columns: tuple[str, ...]) -> list[str]:
        return ["k0"]

    def arriving(
        self, kind: GraphType, names: tuple[str, ...] = (), unique: tuple[str, ...] = ()
    ) -> Any:
        return self.state.arriving(kind, Wanted(names, unique)).drop("part")

    def stored(
        self, kind: GraphType, names: tuple[str, ...] = (), unique: tuple[str, ...] = ()
    ) -> Any:
        return self.state.stored(kind, Wanted(names, unique))

    def origins(self, kind: GraphType) -> Any:
        return rows_origins(self.state, kind)

    def before(self, kind: GraphType, names: tuple[str, ...], end: End | None = None) -> Any:
        state = self.state
        state.checks.add(kind.table_key)
        sizes = [(mark.id, mark.rows) for mark in self.snapshot.view(kind).table.marks.values()]
        columns = tuple(name for name in names if name != "address")
        wanted = Wanted(columns if end is None else (*columns, end))
        frame = table_frame(state.spark, state.pinned(kind), sizes, wanted)
        return frame if end is None else frame.withColumnRenamed(end, "node")

    def nodes(self, node: NodeType) -> Any | None:
        found, count = node_ids(self.state, node)
        return None if found is None else self.state.small(found, count)

    def missing(self, rule: Ends) -> Any:
        state, kind, end = self.state, rule.kind, rule.end
        nodes, count = node_ids(state, rule.node)
        if nodes is not None and count <= HELD_IDS:
            return self._missing_of_held(rule)
        rows = state.arriving(kind, Wanted((end,))).select("place", end)
        rows = rows.withColumnRenamed(end, "node")
        return rows if nodes is None else joins.loose(self, rows, nodes)

    def _missing_of_held(self, rule: Ends) -> Any:
        """Each task joins its edges with all nodes, as a load in one process does."""
        state = self.state
        nodes: list[PieceColumns | TableColumns] = [state.arriving_columns(rule.node, "id")]
        if state.keeps(rule.node):
            nodes.append(state.stored_columns(rule.node, "id"))
        edges = state.arriving_columns(rule.kind, rule.end, AT)

        def read(group: tuple[int, ...]) -> Iterator[pa.Table]:
            none = pa.schema([("id", pa.string())]).empty_table()
            parts = [none, *(part for source in nodes for part in source.read_all())]
            rows = pa.concat_tables(edges.read(group)).rename_columns(["node", "place"])
            ids = pa.concat_tables(parts, promote_options="default")
            with joining(TASK_MEMORY, "ends") as local:
                yield joins.loose(local, SqlRows.of(rows), SqlRows.of(ids)).table()

        return read_frame(state.spark, edges.groups(), {"place": "long", "node": "string"}, read)

    def alive(self, sources: Any, node: NodeType) -> Any:
        nodes = self.nodes(node)
        return sources.limit(0) if nodes is None else joins.known(self, sources, nodes)

    # What is found

    def is_empty(self, relation: Any) -> bool:
        with explained():
            return bool(relation.isEmpty())

    def refuse(self, rule: Rule, found: Any) -> int:
        return refuse(self.state, rule, found)

    def report(self, rule: Rule, found: Any) -> None:
        report_refused(self.state, rule, found)

    def complete(self) -> None:
        complete_types(self.state)


def complete_types(state: SparkState) -> None:
    """Whole rows of a merge, each with the row that it replaces."""
    for key, held in list(state.types.items()):
        kind, stored = held.kind, None
        if not held.generated:
            stored = state.stored(kind, Wanted(("id",)))
        job = state.job(kind, held.given)
        if stored is None:
            answers = run_tasks(
                state.spark, partial(complete_new, job), range(len(held.given)), Completed
            )
        else:
            ids = state.arriving(kind, Wanted(("id",)))
            stored = state.small(stored, state.snapshot.view(kind).table.rows)
            located = ids.join(stored, "id", "left").selectExpr(
                "part", "place", "address as origin"
            )
            grouped = located.groupBy("part").applyInArrow(complete_pieces(job), ANSWERS)
            answers = collect_answers(grouped, Completed)
        for _, answer in answers:
            state.rejects += answer.rejects
            state.files += answer.aside
            state.drop(kind, np.array(answer.dropped, dtype=np.int64))
        whole = tuple(answer.piece for _, answer in answers if answer.piece is not None)
        state.types[key] = state.types[key].completed(whole)
