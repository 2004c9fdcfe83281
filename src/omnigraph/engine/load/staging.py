"""Owns writing the rows of a load: large, sorted fragments, as table actions of a plan."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.load.local_rows import LocalRows
from omnigraph.engine.load.state import ORIGIN, LoadState
from omnigraph.engine.write.stage import by_column
from omnigraph.model.arrow import row_schema, table_schema
from omnigraph.model.catalog import EdgeType, GraphType
from omnigraph.plan.load.lines import blob_columns
from omnigraph.plan.publish import Append, Overwrite, TableAction, Update, Upsert
from omnigraph.store.staging import Staged, StagedDeletes, stage_deletes, stage_rows
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

FRAGMENT_ROWS = 1024 * 1024
_SIDE_BY_SIDE = 2


@dataclass(frozen=True)
class StagedType:
    """The files of one type, and the table that they were written for."""

    kind: GraphType
    table: Table
    rows: pa.Table
    staged: Staged | None


class StagedFiles:
    """The files of a load. They are kept over rebases, so the same rows are not written twice.
    `since` is when the oldest of them was staged."""

    def __init__(self) -> None:
        self._known: dict[str, StagedType] = {}
        self.since = 0

    def begin(self, now: int) -> None:
        """More files are going to be staged from now on."""
        if not self._known:
            self.since = now

    def recall(self, rows: LocalRows, table: Table) -> StagedType | None:
        known = self._known.get(rows.kind.table_key)
        same = known is not None and known.rows is rows.table
        return known if same and known is not None and _fits(known, table) else None

    def keep(self, staged: StagedType) -> None:
        self._known[staged.kind.table_key] = staged

    def clear(self) -> None:
        self._known.clear()


def _fits(known: StagedType, table: Table) -> bool:
    return known.staged is None or known.staged.fields == table.fields


def stage_load(
    state: LoadState[LocalRows], files: StagedFiles, memory: int, ledger: Ledger
) -> list[TableAction]:
    """Writes what is not written yet, several types in parallel, and returns the actions to
    publish."""
    held = [
        rows for rows in state.types.values() if rows.table.num_rows or state.replaced(rows.kind)
    ]

    def stage(rows: LocalRows) -> tuple[TableAction, Ledger]:
        own = Ledger()
        return _stage_type(state, rows, files, memory, own), own

    if len(held) == 1:
        return [_stage_type(state, held[0], files, memory, ledger)]
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        results = list(pool.map(stage, held))
    ledger.join([own for _, own in results])
    return [action for action, _ in results]


def _stage_type(
    state: LoadState[LocalRows], rows: LocalRows, files: StagedFiles, memory: int, ledger: Ledger
) -> TableAction:
    kind = rows.kind
    table = state.snapshot.view(kind).table
    done = files.recall(rows, table)
    if done is None:
        staged = None
        if rows.table.num_rows:
            reader = pa.RecordBatchReader.from_batches(
                table_schema(kind),
                sorted_batches(kind, rows.table, memory, generated=rows.generated),
            )
            staged = stage_rows(table, reader, ledger)
        done = StagedType(kind, table, rows.table, staged)
        files.keep(done)
    return _action(state, rows, table, done.staged, ledger)


def _action(
    state: LoadState[LocalRows],
    rows: LocalRows,
    table: Table,
    staged: Staged | None,
    ledger: Ledger,
) -> TableAction:
    key = rows.kind.table_key
    fragments = staged.fragments if staged else ()
    size = staged.bytes if staged else 0
    if state.mode == "overwrite":
        return Overwrite(
            table=key,
            base=table.version,
            fragments=fragments,
            rows=rows.table.num_rows,
            deleted=table.rows,
            bytes=size,
        )
    origins = np.empty(0, dtype=np.uint64)
    if ORIGIN in rows.table.column_names:
        origins = rows.table[ORIGIN].drop_null().to_numpy()
    if not len(origins):
        assert staged is not None
        return Append(
            table=key, fragments=fragments, fields=staged.fields, rows=staged.rows, bytes=size
        )
    deletes: StagedDeletes = stage_deletes(table, origins, ledger)
    inserted = rows.table.num_rows - len(origins)
    make = Upsert if inserted else Update
    return make(
        table=key,
        base=table.version,
        updated_fragments=deletes.updated,
        removed_fragments=deletes.removed,
        fragments=fragments,
        inserted=inserted,
        updated=len(origins),
        deleted=0,
        bytes=size,
    )


_LARGEST_PIECE = 1 << 29
"""Bytes of rows that are sorted at a time: a column of texts holds 2 GB at most."""


def sorted_batches(
    kind: GraphType, table: pa.Table, memory: int, *, generated: bool = False
) -> Iterator[pa.RecordBatch]:
    """The rows of each fragment in order: nodes by id, edges by source, so that related rows lie
    together. The next piece is sorted while this one is written.

    Rows with blobs keep their order, because moving them would cost more than it gains. Rows with
    generated ids keep theirs too: these ids grow and no row refers to them yet, and a sorted column
    is small and quickly indexed.
    """
    names = row_schema(kind).names
    rows = table.select(names)
    column = "src" if isinstance(kind, EdgeType) else "id"
    width = max(rows.nbytes // max(rows.num_rows, 1), 1)
    least = max(1, min(1024, _LARGEST_PIECE // width))
    size = int(min(FRAGMENT_ROWS, max(memory // 8 // width, least)))
    starts = range(0, rows.num_rows, size)
    blobs = bool(blob_columns(kind))

    def piece(start: int) -> pa.Table:
        part = rows.slice(start, size)
        if not blobs and part.nbytes < 2 * _LARGEST_PIECE:
            part = part.combine_chunks()  # taking from one chunk is several times as fast
            ids = part["id"]
            part = part.take(pc.sort_indices(part[column]))
            if generated:
                part = part.set_column(names.index("id"), "id", ids)
        return by_column(kind, part)

    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        waiting: deque[Future[pa.Table]] = deque()
        for start in starts:
            waiting.append(pool.submit(piece, start))
            if len(waiting) > _SIDE_BY_SIDE:
                yield from waiting.popleft().result().to_batches()
        while waiting:
            yield from waiting.popleft().result().to_batches()
