"""Owns pieces: typed rows of one type that wait in files between the stages of a load, where every
executor can read them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from omnigraph.plan.load.places import AT
from omnigraph.settings import Settings
from omnigraph.store.disk import directories_above, sync_files
from omnigraph.store.objects import Absent
from omnigraph.store.roots import Root

PIECE_ROWS = 1024 * 1024
PIECE_BYTES = 128 << 20


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """`given` are the properties that all its rows give; `shift` is what has to be added to their
    places: a task does not know how many lines stand before its own."""

    key: str
    table: str
    given: tuple[str, ...]
    generated: bool
    rows: int
    bytes: int
    shift: int = 0


@dataclass(frozen=True)
class Spool:
    """A directory that all executors see, or a prefix of the object store of the graph."""

    root: Root
    prefix: str
    settings: Settings
    durable: bool = False

    @property
    def _directory(self) -> Path | None:
        directory = self.root.directory
        return None if directory is None else directory / self.prefix

    def write(self, name: str, rows: pa.Table) -> str:
        """Gives the key. Only what is `durable` is synced, for it is looked at after a crash."""
        if self._directory is not None:
            self._directory.mkdir(parents=True, exist_ok=True)
            path = self._directory / name
            with pa.OSFile(str(path), "wb") as file:
                _write(file, rows)
            if self.durable:
                sync_files([path], directories_above([path], self._directory.parent))
            return name
        sink = pa.BufferOutputStream()
        _write(sink, rows)
        self.root.objects(self.settings).put(f"{self.prefix}/{name}", sink.getvalue().to_pybytes())
        return name

    def read(self, piece: Piece, columns: list[str] | None = None) -> pa.Table:
        """With the places that the rows have in their source."""
        rows = self.table(piece.key)
        if columns is not None:
            rows = rows.select(columns)
        if piece.shift and AT in rows.column_names:
            at = pa.compute.add(rows[AT], piece.shift)
            rows = rows.set_column(rows.column_names.index(AT), AT, at)
        return rows

    def table(self, key: str) -> pa.Table:
        """A file as it was written: mapped where that is possible."""
        if self._directory is not None:
            with pa.memory_map(str(self._directory / key)) as file:
                return pa.ipc.open_file(file).read_all()
        data = self.root.objects(self.settings).get(f"{self.prefix}/{key}")
        return pa.ipc.open_file(pa.BufferReader(data)).read_all()

    def remove(self) -> None:
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            return
        objects = self.root.objects(self.settings)
        try:
            for key in objects.list(f"{self.prefix}/"):
                objects.delete(key)
        except Absent:
            pass


def _write(sink: Any, rows: pa.Table) -> None:
    with pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)
