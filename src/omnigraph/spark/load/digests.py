"""Owns finding out whether values appear too often, by digests of eight bytes. Usually none does,
and then no text has to move between executors.

A row that moves holds the digests of a whole task, because Spark spends more on a row than on eight
bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.duckdb_sql import joining, quoted
from omnigraph.model.catalog import GraphType
from omnigraph.plan.validate import key_column
from omnigraph.spark.load.frames import TASK_MEMORY, TASK_ROWS, PieceColumns, TableColumns
from omnigraph.spark.load.state import SparkState
from omnigraph.spark.tasks import explained, map_each

_BITS = 64


def may_exceed(
    state: SparkState,
    kind: GraphType,
    columns: tuple[str, ...],
    most: int = 1,
    *,
    stored: bool = False,
) -> bool:
    """False means that no values of these columns appear more than this many times among the
    arriving rows, together with the table if `stored`. True means that the values must be compared,
    because others may have equal digests."""
    sources: list[PieceColumns | TableColumns] = [state.arriving_columns(kind, *columns)]
    total = state.left(kind)
    if stored:
        sources.append(state.stored_columns(kind, *columns))
        total += state.snapshot.view(kind).table.rows
    parts = max(-(-total // TASK_ROWS), 1)

    def digests(task: tuple[PieceColumns | TableColumns, tuple[int, ...]]) -> Iterator[Any]:
        source, group = task
        yield pack(_digests(source, group, most), parts)

    def exceeding(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        packed = [data for batch in batches for data in batch.column("digests")]
        found = [np.frombuffer(data.as_buffer(), np.uint64) for data in packed]
        if exceed(np.concatenate([np.empty(0, np.uint64), *found]), most):
            yield pa.record_batch({"part": pa.array([0], pa.int32())})

    tasks = [(source, group) for source in sources for group in source.groups()]
    frame = map_each(state.spark, tasks, digests, "part int, digests binary")
    frame = frame.repartitionById(parts, "part").mapInArrow(exceeding, "part int")
    with explained():
        return not frame.isEmpty()


def _digests(source: PieceColumns | TableColumns, group: tuple[int, ...], most: int) -> np.ndarray:
    """The digests of rows that have all of the values, sorted. Each digest is kept only as often
    as needed to see that it occurs too often."""
    found = [np.empty(0, np.uint64)]
    with joining(TASK_MEMORY, "digests") as joins:
        for rows in source.read(group):
            if not all(pa.types.is_string(column.type) for column in rows.columns):
                rows = pa.table({"key": key_column(rows, source.names)})
            names = [quoted(name) for name in rows.column_names]
            given = " AND ".join(f"{name} IS NOT NULL" for name in names)
            ask = f"SELECT hash({', '.join(names)}) AS digest FROM held WHERE {given}"
            found.append(joins.sql(ask, held=rows)["digest"].to_numpy())
    return at_most(np.sort(np.concatenate(found)), most + 1)


def at_most(ordered: np.ndarray, count: int) -> np.ndarray:
    """Keeps at most this many equal values: a value that all rows share must not fill the memory of
    one task."""
    kept = np.ones(len(ordered), dtype=bool)
    kept[count:] = ordered[count:] != ordered[: max(len(ordered) - count, 0)]
    return ordered[kept]


def pack(digests: np.ndarray, parts: int) -> pa.RecordBatch:
    """Digests in order, cut where the responsible part changes, so that equal digests meet."""
    starts = [-(-(part << _BITS) // parts) for part in range(1, parts)]
    cuts = np.searchsorted(digests, np.array(starts, np.uint64))
    packed = pa.array([part.tobytes() for part in np.split(digests, cuts)], pa.binary())
    return pa.record_batch({"part": pa.array(range(parts), pa.int32()), "digests": packed})


def exceed(digests: np.ndarray, most: int) -> bool:
    """Whether a digest appears more than this many times."""
    ordered = np.sort(digests)
    return bool((ordered[most:] == ordered[: max(len(ordered) - most, 0)]).any())
