"""Owns finding out whether values come too often, by digests of eight bytes: as a rule none does,
and then no text has to travel between executors. A row that travels holds the digests of a whole
task, because what Spark spends on a row is more than what it spends on eight bytes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from omnigraph.engine.load.joins import Joins, quoted
from omnigraph.model.catalog import GraphType
from omnigraph.plan.load.places import AT
from omnigraph.plan.validate import key_column
from omnigraph.spark.load.frames import without
from omnigraph.spark.load.pieces import Piece, Spool
from omnigraph.spark.load.state import NOTHING, SparkState
from omnigraph.spark.pinned import PinnedTable, share_fragments
from omnigraph.spark.tasks import explained
from omnigraph.telemetry import Ledger

_TASK_ROWS = 2_500_000
_MEMORY = 1 << 30
_BITS = 64


def may_exceed(
    state: SparkState,
    kind: GraphType,
    columns: tuple[str, ...],
    most: int = 1,
    *,
    stored: bool = False,
) -> bool:
    """False: no values of these columns come more than so many times in what arrives, together
    with the table if `stored`. True: look at the values, because others may have equal digests."""
    pieces = state.types[kind.table_key].pieces
    refused = state.refused.get(kind.table_key, NOTHING)
    arriving = ArrivingValues(state.spool, pieces, refused, columns)
    groups = share_fragments([(n, piece.rows) for n, piece in enumerate(pieces)], _TASK_ROWS)
    tasks: list[tuple[ArrivingValues | StoredValues, tuple[int, ...]]]
    tasks = [(arriving, group) for group in groups]
    total = state.left(kind)
    if stored:
        marks = state.snapshot.view(kind).table.marks.values()
        held = StoredValues(state.pinned(kind), columns)
        groups = share_fragments([(mark.id, mark.rows) for mark in marks], _TASK_ROWS)
        tasks += [(held, group) for group in groups]
        total += sum(mark.rows for mark in marks)
    parts = -(-total // _TASK_ROWS)

    def digests(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                values, group = tasks[number]
                yield pack(_digests(values, group), parts)

    def exceeding(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        packed = [data for batch in batches for data in batch.column("digests")]
        found = [np.frombuffer(data.as_buffer(), np.uint64) for data in packed]
        if exceed(np.concatenate([np.empty(0, np.uint64), *found]), most):
            yield pa.record_batch({"part": pa.array([0], pa.int32())})

    frame = state.spark.range(0, len(tasks), 1, len(tasks))
    frame = frame.mapInArrow(digests, "part int, digests binary").repartitionById(parts, "part")
    with explained():
        return not frame.mapInArrow(exceeding, "part int").isEmpty()


@dataclass(frozen=True)
class ArrivingValues:
    """Columns of pieces, without the rows that are refused."""

    spool: Spool
    pieces: tuple[Piece, ...]
    refused: np.ndarray
    columns: tuple[str, ...]

    def read(self, group: tuple[int, ...]) -> Iterator[pa.Table]:
        for number in group:
            rows = self.spool.read(self.pieces[number], [*self.columns, AT])
            yield without(rows, self.refused).select(list(self.columns))


@dataclass(frozen=True)
class StoredValues:
    """Columns of fragments of a table."""

    pinned: PinnedTable
    columns: tuple[str, ...]

    def read(self, group: tuple[int, ...]) -> Iterator[pa.Table]:
        batches = self.pinned.view().located(self.columns, Ledger(), fragments=group, large=True)
        for batch in batches:
            yield pa.Table.from_batches([batch]).select(list(self.columns))


def _digests(values: ArrivingValues | StoredValues, group: tuple[int, ...]) -> np.ndarray:
    """Of rows that have all of the values, in order."""
    found = [np.empty(0, np.uint64)]
    with tempfile.TemporaryDirectory(prefix="omnigraph-digests-") as directory:
        joins = Joins(_MEMORY, Path(directory))
        try:
            for rows in values.read(group):
                if not all(pa.types.is_string(column.type) for column in rows.columns):
                    rows = pa.table({"key": key_column(rows, values.columns)})
                names = [quoted(name) for name in rows.column_names]
                given = " AND ".join(f"{name} IS NOT NULL" for name in names)
                ask = f"SELECT hash({', '.join(names)}) AS digest FROM held WHERE {given}"
                found.append(joins.ask(ask, held=rows)["digest"].to_numpy())
        finally:
            joins.close()
    return np.sort(np.concatenate(found))


def pack(digests: np.ndarray, parts: int) -> pa.RecordBatch:
    """Digests in order, cut where the part changes that will look at them: equal ones meet."""
    starts = [-(-(part << _BITS) // parts) for part in range(1, parts)]
    cuts = np.searchsorted(digests, np.array(starts, np.uint64))
    packed = pa.array([part.tobytes() for part in np.split(digests, cuts)], pa.binary())
    return pa.record_batch({"part": pa.array(range(parts), pa.int32()), "digests": packed})


def exceed(digests: np.ndarray, most: int) -> bool:
    """Whether one comes more than so many times."""
    ordered = np.sort(digests)
    return bool((ordered[most:] == ordered[: max(len(ordered) - most, 0)]).any())
