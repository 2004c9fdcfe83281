"""Owns typed rows that wait for the end of their input: in memory while there is room, then in
files of a temporary directory that are mapped, not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa


class Room:
    """How many bytes all spools of a load may hold in memory together."""

    def __init__(self, limit: int, directory: Path) -> None:
        self.limit = limit
        self.held = 0
        self.files = 0
        self.directory = directory

    def new_file(self) -> Path:
        self.files += 1
        return self.directory / f"spool-{self.files}.arrow"


class Spool:
    """Tables of one schema, added one by one and then taken as one."""

    def __init__(self, room: Room, schema: pa.Schema) -> None:
        self._room = room
        self._schema = schema
        self._kept: list[pa.Table] = []
        self._path: Path | None = None
        self._writer: Any = None
        self.rows = 0

    def add(self, table: pa.Table) -> None:
        self.rows += table.num_rows
        self._kept.append(table)
        self._room.held += table.nbytes
        if self._room.held > self._room.limit:
            self._flush()

    def _flush(self) -> None:
        if self._writer is None:
            self._path = self._room.new_file()
            self._writer = pa.ipc.new_file(str(self._path), self._schema)
        for table in self._kept:
            self._writer.write_table(table.cast(self._schema))
            self._room.held -= table.nbytes
        self._kept = []

    def table(self) -> pa.Table:
        """Everything so far; nothing can be added afterwards."""
        parts = []
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._path is not None:
            with pa.memory_map(str(self._path)) as file:
                parts.append(pa.ipc.open_file(file).read_all())
        parts += [table.cast(self._schema) for table in self._kept]
        return pa.concat_tables(parts) if parts else self._schema.empty_table()
