"""Owns the columns that checks join: ids, ends and unique values of pieces and of table versions,
as DataFrames that executors read on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.load.spool import Spool, SpoolPiece
from omnigraph.engine.load.state import ORIGIN
from omnigraph.plan.load.places import AT
from omnigraph.plan.validate import key_column
from omnigraph.spark.pinned import PinnedTable, group_fragments, share_fragments
from omnigraph.spark.tasks import map_each
from omnigraph.store.tables import ADDRESS
from omnigraph.telemetry import Ledger

READ_ROWS = 512 * 1024
TASK_ROWS = 2_500_000
"""The rows that a task reads if it joins on its own."""
TASK_MEMORY = 1 << 30
_BATCH = 64 * 1024
_ARROW = {"string": pa.string(), "long": pa.int64()}
Columns = dict[str, str]
"""Names and Spark types."""


@dataclass(frozen=True)
class Wanted:
    """Columns of rows: ids and ends by name and, with `unique`, `k0`, a text that is equal exactly
    where the values of these properties are."""

    names: tuple[str, ...] = ()
    unique: tuple[str, ...] = ()
    origin: bool = False

    @property
    def columns(self) -> Columns:
        columns = dict.fromkeys(self.names, "string")
        if self.unique:
            columns["k0"] = "string"
        return columns

    def read(self) -> list[str]:
        return list(dict.fromkeys([*self.names, *self.unique]))

    def arrays(self, rows: pa.Table) -> dict[str, Any]:
        arrays = {name: rows[name] for name in self.names}
        if self.unique:
            arrays["k0"] = key_column(rows, self.unique)
        return arrays


@dataclass(frozen=True)
class PieceColumns:
    """Columns of pieces without refused rows, as tasks read them."""

    spool: Spool
    pieces: tuple[SpoolPiece, ...]
    refused: np.ndarray
    names: tuple[str, ...]

    def groups(self) -> list[tuple[int, ...]]:
        sizes = [(number, piece.rows) for number, piece in enumerate(self.pieces)]
        return share_fragments(sizes, TASK_ROWS)

    def read(self, group: Sequence[int]) -> Iterator[pa.Table]:
        for number in group:
            rows = self.spool.read(self.pieces[number], list(dict.fromkeys([*self.names, AT])))
            yield without(rows, self.refused).select(list(self.names))

    def read_all(self) -> Iterator[pa.Table]:
        return self.read(range(len(self.pieces)))


@dataclass(frozen=True)
class TableColumns:
    """Columns of a table version, as tasks read them. `sizes` are its fragments with their rows."""

    pinned: PinnedTable
    sizes: tuple[tuple[int, int], ...]
    names: tuple[str, ...]

    def groups(self) -> list[tuple[int, ...]]:
        return share_fragments(self.sizes, TASK_ROWS)

    def read(self, group: Sequence[int]) -> Iterator[pa.Table]:
        batches = self.pinned.view().scan(
            Ledger(), columns=self.names, fragments=list(group), large=True
        )
        for batch in batches:
            yield pa.Table.from_batches([batch]).select(list(self.names))

    def read_all(self) -> Iterator[pa.Table]:
        return self.read([number for number, _ in self.sizes])


def piece_frame(
    spark: Any, spool: Spool, pieces: Sequence[SpoolPiece], wanted: Wanted, refused: np.ndarray
) -> Any:
    """`place`, `part` (the piece) and the wanted columns, with `origin` (the row of the table that
    is replaced), of all rows that are not refused."""
    columns = {"place": "long", "part": "long", **wanted.columns}
    if wanted.origin:
        columns["origin"] = "long"
    groups = group_fragments([(n, piece.rows) for n, piece in enumerate(pieces)], READ_ROWS)

    def read(group: tuple[int, ...]) -> Iterator[pa.Table]:
        for number in group:
            names = [*wanted.read(), AT, *([ORIGIN] if wanted.origin else [])]
            rows = without(spool.read(pieces[number], names), refused)
            arrays = wanted.arrays(rows)
            if wanted.origin:
                arrays["origin"] = rows[ORIGIN].cast(pa.int64())
            part = pa.array(np.full(rows.num_rows, number, dtype=np.int64))
            yield pa.table({"place": rows[AT], "part": part, **arrays})

    return read_frame(spark, groups, columns, read)


def table_frame(
    spark: Any, pinned: PinnedTable, sizes: Sequence[tuple[int, int]], wanted: Wanted
) -> Any:
    """`address` and the wanted columns of all rows of a table version."""
    columns = {"address": "long", **wanted.columns}

    def read(group: tuple[int, ...]) -> Iterator[pa.Table]:
        view = pinned.view()
        for batch in view.located(wanted.read(), Ledger(), fragments=group, large=True):
            rows = pa.Table.from_batches([batch])
            yield pa.table({"address": rows[ADDRESS].cast(pa.int64()), **wanted.arrays(rows)})

    return read_frame(spark, group_fragments(sizes, READ_ROWS), columns, read)


def read_frame(
    spark: Any,
    groups: Sequence[tuple[int, ...]],
    columns: Columns,
    read: Callable[[tuple[int, ...]], Iterator[pa.Table]],
) -> Any:
    """The columns of each of the groups, read by one task for each group."""
    schema = pa.schema([pa.field(name, _ARROW[kind]) for name, kind in columns.items()])
    text = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    if not groups:
        return spark.createDataFrame([], text)

    def run(group: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
        for rows in read(group):
            yield from rows.select(schema.names).cast(schema).to_batches(_BATCH)

    return map_each(spark, groups, run, text)


def without(rows: pa.Table, refused: np.ndarray) -> pa.Table:
    """The rows whose places are not among these."""
    if not len(refused):
        return rows
    return rows.filter(pc.invert(pc.is_in(rows[AT], value_set=pa.array(refused))))
