"""Owns the spool: typed rows that wait in Arrow files between the stages of a load. The files lie
in a directory or in the object store of the graph, so that executors can read them too."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from omnigraph.errors import Corrupt
from omnigraph.model.stored_text import FileName, Name, Number, TableKey
from omnigraph.plan.load.places import AT
from omnigraph.settings import Settings
from omnigraph.store.disk import directories_above, require_inside, sync_files
from omnigraph.store.objects import Absent
from omnigraph.store.roots import Root

PIECE_ROWS = 1024 * 1024
PIECE_BYTES = 128 << 20
_BEGIN_ANEW = "Give the job up (omnigraph recover), then run it again from the beginning."


class SpoolPiece(msgspec.Struct, frozen=True, kw_only=True):
    """A file of rows of one type. `given` names the properties that all its rows give. `shift` is
    added to the places of the rows, because a task does not know how many lines precede its own."""

    key: FileName
    table: TableKey
    given: tuple[Name, ...]
    generated: bool
    rows: Number
    bytes: Number
    shift: int = 0


@dataclass(frozen=True)
class Spool:
    """A directory that all executors see, or a prefix of the object store of the graph. Only a
    `durable` spool is synced, because it is read after a crash."""

    root: Root
    prefix: str
    settings: Settings
    durable: bool = False

    @property
    def directory(self) -> Path | None:
        directory = self.root.directory
        return None if directory is None else directory / self.prefix

    def write(self, name: str, rows: pa.Table) -> str:
        """Writes a file and returns its key."""
        writer = SpoolWriter(self, name, rows.schema)
        writer.add(rows)
        writer.close()
        return name

    def read(self, piece: SpoolPiece, columns: list[str] | None = None) -> pa.Table:
        """Reads a piece. The places of its rows are those in their source."""
        rows = self.table(piece.key)
        if columns is not None:
            rows = rows.select(columns)
        if piece.shift and AT in rows.column_names:
            at = pa.compute.add(rows[AT], piece.shift)
            rows = rows.set_column(rows.column_names.index(AT), AT, at)
        return rows

    def table(self, key: str) -> pa.Table:
        """Returns a file as it was written. A file in a directory is mapped, not read. A file that
        an earlier run left is only data: links are not followed, and offsets are checked."""
        if not self.durable:
            return self._read(key)
        name = f"{self.prefix}/{key}"
        if self.root.directory is not None:
            require_inside(self.root.directory, name)
        try:
            rows = self._read(key)
            rows.validate(full=True)
        except Absent as error:
            raise Corrupt(f"{name} is missing.", help=_BEGIN_ANEW) from error
        except (pa.ArrowException, OSError) as error:
            raise Corrupt(f"{name} cannot be read: {error}.", help=_BEGIN_ANEW) from error
        return rows

    def _read(self, key: str) -> pa.Table:
        if self.directory is not None:
            with pa.memory_map(str(self.directory / key)) as file:
                return pa.ipc.open_file(file).read_all()
        data = self.root.objects(self.settings).get(f"{self.prefix}/{key}")
        return pa.ipc.open_file(pa.BufferReader(data)).read_all()

    def remove(self) -> None:
        if self.directory is not None:
            shutil.rmtree(self.directory, ignore_errors=True)
            return
        objects = self.root.objects(self.settings)
        try:
            for key in objects.list(f"{self.prefix}/"):
                objects.delete(key)
        except Absent:
            pass


@contextlib.contextmanager
def temporary_spool(name: str, settings: Settings) -> Iterator[Spool]:
    """A spool in a temporary directory of this process."""
    with tempfile.TemporaryDirectory(
        prefix=f"omnigraph-{name}-", ignore_cleanup_errors=True
    ) as directory:
        yield Spool(Root(directory, Path(directory)), "rows", settings)


class SpoolWriter:
    """Writes one file of a spool, table by table."""

    def __init__(self, spool: Spool, name: str, schema: pa.Schema) -> None:
        self._spool = spool
        self._name = name
        self._path: Path | None = None
        self._sink: Any = None
        if spool.directory is None:
            self._sink = pa.BufferOutputStream()
        else:
            spool.directory.mkdir(parents=True, exist_ok=True)
            self._path = spool.directory / name
            self._sink = pa.OSFile(str(self._path), "wb")
        self._ipc = pa.ipc.new_file(self._sink, schema)

    def add(self, rows: pa.Table) -> None:
        self._ipc.write_table(rows)

    def close(self) -> None:
        self._ipc.close()
        spool = self._spool
        if self._path is None:
            data = self._sink.getvalue().to_pybytes()
            spool.root.objects(spool.settings).put(f"{spool.prefix}/{self._name}", data)
            return
        self._sink.close()
        if spool.durable:
            above = directories_above([self._path], self._path.parent.parent)
            sync_files([self._path], above)


class Room:
    """The memory that all gathered rows of a load may take together. Further rows go to a spool."""

    def __init__(self, limit: int, spool: Spool) -> None:
        self.limit = limit
        self.spool = spool
        self.taken = 0
        self._files = 0

    def new_file(self) -> str:
        self._files += 1
        return f"gathered-{self._files}.arrow"


class GatheredRows:
    """Tables of one schema that are added one by one and then taken as one. They stay in memory
    while there is room."""

    def __init__(self, room: Room, schema: pa.Schema) -> None:
        self._room = room
        self._schema = schema
        self._kept: list[pa.Table] = []
        self._file: str | None = None
        self._writer: SpoolWriter | None = None

    def add(self, table: pa.Table) -> None:
        self._kept.append(table)
        self._room.taken += table.nbytes
        if self._room.taken > self._room.limit:
            self._flush()

    def _flush(self) -> None:
        if self._writer is None:
            self._file = self._room.new_file()
            self._writer = SpoolWriter(self._room.spool, self._file, self._schema)
        for table in self._kept:
            self._writer.add(table.cast(self._schema))
            self._room.taken -= table.nbytes
        self._kept = []

    def table(self) -> pa.Table:
        """Returns all rows; nothing can be added afterwards."""
        parts = []
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._file is not None:
            parts.append(self._room.spool.table(self._file))
        parts += [table.cast(self._schema) for table in self._kept]
        return pa.concat_tables(parts) if parts else self._schema.empty_table()
