"""Owns the rows that a load puts aside: in memory while they are few, in a file when they are many,
and the same sequence to whoever looks at them."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, overload

import pyarrow as pa

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
    """Rows in a file that is mapped, not read; it goes with this object."""

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
