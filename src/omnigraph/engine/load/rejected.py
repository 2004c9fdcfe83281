"""Owns the rows that a load sets aside: in memory while they are few, in files when they are many,
and as one sequence for their reader."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any, overload
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.load.spool import Spool
from omnigraph.model.stored_text import FileName, Number
from omnigraph.plan.load.places import Reject

REJECTED = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("rule", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("row", pa.string(), nullable=False),
        pa.field("id", pa.string()),
        pa.field("property", pa.string()),
    ]
)
_BATCH = 10_000


def rejects_table(rejects: Iterable[Reject]) -> pa.Table:
    return pa.Table.from_pylist([asdict(reject) for reject in rejects], schema=REJECTED)


class RejectedRows(Sequence[Reject]):
    """Rows in a file that is mapped, not read. The file disappears with this object."""

    def __init__(self, tables: Iterable[pa.Table]) -> None:
        directory = tempfile.mkdtemp(prefix="omnigraph-rejected-")
        self._finalizer = weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)
        path = str(Path(directory) / "rejected.arrow")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, REJECTED) as writer:
            for table in tables:
                writer.write_table(table.select(REJECTED.names).cast(REJECTED), _BATCH)
        with pa.memory_map(path) as file:
            self._table = pa.ipc.open_file(file).read_all()

    def to_arrow(self) -> pa.Table:
        return self._table

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @overload
    def __getitem__(self, index: int) -> Reject: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Reject, ...]: ...
    def __getitem__(self, index: int | slice) -> Reject | tuple[Reject, ...]:
        if isinstance(index, slice):
            chosen = range(*index.indices(len(self)))
            return tuple(_rejects(self._table.take(list(chosen))))
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(index)
        return next(_rejects(self._table.slice(place, 1)))

    def __iter__(self) -> Iterator[Reject]:
        for batch in self._table.to_batches(_BATCH):
            yield from _rejects(pa.Table.from_batches([batch]))


def _rejects(table: pa.Table) -> Iterator[Reject]:
    row: dict[str, Any]
    for row in table.to_pylist():
        yield Reject(**row)


# Files of a spool

FEW = 1000


class RejectedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of rejected rows; `shift` is added to their lines."""

    key: FileName
    rows: Number
    shift: int = 0


class RejectedShelf:
    """Gathers rejected rows and writes a file whenever there are many."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self.few: list[Reject] = []
        self.files: list[RejectedFile] = []

    def add(self, rejects: Iterable[Reject]) -> None:
        for reject in rejects:
            self.few.append(reject)
            if len(self.few) >= FEW:
                self._write()

    def close(self) -> None:
        """If a part was written, writes the rest too, so that the order stays."""
        if self.files and self.few:
            self._write()

    def _write(self) -> None:
        self.files.append(write_rejected_file(self._spool, self.few))
        self.few = []


def write_rejected_file(spool: Spool, rejects: list[Reject]) -> RejectedFile:
    name = f"aside-{uuid4().hex}.arrow"
    return RejectedFile(key=spool.write(name, rejects_table(rejects)), rows=len(rejects))


def read_rejected_file(spool: Spool, rejected: RejectedFile) -> pa.Table:
    rows = spool.table(rejected.key)
    if not rejected.shift:
        return rows
    lines = pc.add(rows["line"], rejected.shift)
    return rows.set_column(rows.column_names.index("line"), rows.schema.field("line"), lines)


def rejected_rows(
    spool: Spool, rejects: Sequence[Reject], files: Sequence[RejectedFile]
) -> Sequence[Reject]:
    """The rows in memory and the rows in files as one sequence. Rows in files are never all in
    memory at once."""
    if not files:
        return tuple(rejects)
    written = (read_rejected_file(spool, file) for file in files)
    return RejectedRows(chain([rejects_table(rejects)], written))
