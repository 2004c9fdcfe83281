"""Owns scans: columns of the rows of a pinned table that meet a condition, read by executors.

A condition is the caller's (`where`), or one that Spark pushes for a single query (`pushed`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from omnigraph.engine.condition import Condition, read_condition
from omnigraph.engine.graph_view import GraphView
from omnigraph.lang.gq.checked import And, Expression
from omnigraph.model.call_types import Filter
from omnigraph.model.catalog import GraphType
from omnigraph.spark.columns import column_width, shown_schema, spark_schema, struct_type, to_spark
from omnigraph.spark.pinned import PinnedTable, pin_table, read_catalog, share_fragments
from omnigraph.spark.pushed import pushed_tests
from omnigraph.spark.tasks import map_each
from omnigraph.telemetry import Ledger

PARTITION_ROWS = 2_500_000
PARTITION_BYTES = 128 << 20
"""The rows that a task reads: starting a task costs about as much as reading 200,000 rows."""


@dataclass(frozen=True)
class TypeScan:
    """It travels by value. `fragments` are in groups, one for each task; `rows` and `bytes` are
    those of the whole table. `limit` rows of each group are enough."""

    pinned: PinnedTable
    columns: tuple[str, ...]
    where: Filter | None
    fragments: tuple[tuple[int, ...], ...]
    now: int
    rows: int = 0
    bytes: int = 0
    pushed: tuple[Any, ...] = ()
    limit: int | None = None

    @property
    def schema(self) -> pa.Schema:
        return spark_schema(shown_schema(self.pinned.kind, self.columns))

    @property
    def identity(self) -> str:
        """Scans that share it have the same rows, of whatever columns."""
        pinned = self.pinned
        told = [pinned.root, pinned.location, pinned.version, pinned.table]
        if self.where is not None:
            told += [str(self.where), str(self.now)]
        # Of two versions of a schema, a name may mean two columns of one table.
        return xxhash.xxh3_128_hexdigest("\0".join(told).encode() + pinned.catalog)

    def bytes_of(self, columns: Sequence[str]) -> int:
        """About as many bytes of the table are in these columns."""
        every = spark_schema(shown_schema(self.pinned.kind, self.columns))
        widths = {field.name: column_width(field.type) for field in every}
        part = sum(widths[name] for name in columns) / max(sum(widths.values()), 1)
        return int(self.bytes * part)

    def narrowed(
        self, columns: Sequence[str], *, pushed: Sequence[Any] = (), limit: int | None = None
    ) -> TypeScan:
        """The same rows, with only some columns, or fewer rows."""
        return replace(self, columns=tuple(columns), pushed=tuple(pushed), limit=limit)

    def read(self, fragments: Sequence[int]) -> Iterator[pa.RecordBatch]:
        left = self.limit
        for batch in self._batches(fragments):
            if left is not None:
                batch, left = batch[:left], left - batch.num_rows
            yield batch
            if left is not None and left <= 0:
                return

    def _batches(self, fragments: Sequence[int]) -> Iterator[pa.RecordBatch]:
        view, schema = self.pinned.view(), self.schema
        if self.where is None and not self.pushed:
            names, large = self.columns, self.limit is None
            for batch in view.scan(Ledger(), columns=names, fragments=fragments, large=large):
                yield to_spark(batch, schema)
            return
        for batch in self._condition().rows(view, self.columns, Ledger(), fragments=fragments):
            yield to_spark(batch, schema)

    def _condition(self) -> Condition:
        catalog, kind = read_catalog(self.pinned.catalog), self.pinned.kind
        tests = pushed_tests(kind, self.pushed)
        if self.where is None:
            return Condition(kind, _all(tests), self.now)
        condition = read_condition(catalog, kind, self.where, self.now)
        if isinstance(condition.test, pc.Expression) or not tests:
            return condition
        return replace(condition, test=_all((condition.test, *tests)))

    def frame(self, spark: Any) -> Any:
        """The rows as a DataFrame."""
        schema = struct_type(self.schema)
        if not self.fragments:
            return spark.createDataFrame([], schema)
        return map_each(spark, self.fragments, self.read, schema)


def _all(tests: tuple[Expression, ...]) -> Expression:
    return tests[0] if len(tests) == 1 else And(tests, tests[0].type)


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
        rows=view.count(),
        bytes=sum(mark.bytes for mark in view.table.marks.values()),
    )
