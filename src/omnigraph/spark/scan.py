"""Owns scans: columns of the rows of a pinned table that meet a condition, read by executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from omnigraph.engine.condition import read_condition
from omnigraph.engine.graph_view import GraphView
from omnigraph.model.call_types import Filter
from omnigraph.model.catalog import GraphType
from omnigraph.spark.columns import shown_schema, spark_schema, struct_type, to_spark
from omnigraph.spark.pinned import PinnedTable, pin_table, read_catalog, share_fragments
from omnigraph.spark.tasks import map_each
from omnigraph.telemetry import Ledger

PARTITION_ROWS = 2_500_000
PARTITION_BYTES = 128 << 20
"""The rows that a task reads: starting a task costs about as much as reading 200,000 rows."""


@dataclass(frozen=True)
class TypeScan:
    """It travels by value. `fragments` are in groups, one for each task."""

    pinned: PinnedTable
    columns: tuple[str, ...]
    where: Filter | None
    fragments: tuple[tuple[int, ...], ...]
    now: int

    @property
    def schema(self) -> pa.Schema:
        return spark_schema(shown_schema(self.pinned.kind, self.columns))

    def narrowed(self, columns: Sequence[str]) -> TypeScan:
        """The same rows, with only some columns."""
        return replace(self, columns=tuple(columns))

    def read(self, fragments: Sequence[int]) -> Iterator[pa.RecordBatch]:
        view, schema = self.pinned.view(), self.schema
        if self.where is None:
            names = self.columns
            for batch in view.scan(Ledger(), columns=names, fragments=fragments, large=True):
                yield to_spark(batch, schema)
            return
        catalog = read_catalog(self.pinned.catalog)
        condition = read_condition(catalog, view.kind, self.where, self.now)
        for batch in condition.rows(view, self.columns, Ledger(), fragments=fragments):
            yield to_spark(batch, schema)

    def frame(self, spark: Any) -> Any:
        """The rows as a DataFrame."""
        schema = struct_type(self.schema)
        if not self.fragments:
            return spark.createDataFrame([], schema)
        return map_each(spark, self.fragments, self.read, schema)


def pin_scan(
    root: str,
    snapshot: GraphView,
    kind: GraphType,
    *,
    now: int,
    columns: Sequence[str] | None = None,
    where: Filter | None = None,
) -> TypeScan:
    """Checked against the schema before anything runs."""
    view = snapshot.view(kind)
    where = None if isinstance(where, str) and not where else where
    if where is not None:
        read_condition(snapshot.catalog, kind, where, now)
    sizes = [
        (mark.id, max(mark.rows, mark.bytes * PARTITION_ROWS // PARTITION_BYTES))
        for mark in view.table.marks.values()
    ]
    return TypeScan(
        pinned=pin_table(root, snapshot, kind),
        columns=tuple(view.check_columns(columns)),
        where=where,
        fragments=tuple(share_fragments(sizes, PARTITION_ROWS)),
        now=now,
    )
