"""Owns questions over many rows at once: SQL over Arrow tables, in bounded memory."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.model.catalog import GraphType
from omnigraph.model.types import FLOATS, ListType, ScalarType, VectorType


class Joins:
    """Connects when it is first asked: a file that cannot be read asks nothing."""

    def __init__(self, memory: int, directory: Path) -> None:
        self._memory = memory
        self._directory = directory
        self._opened: Any = None

    @property
    def _connection(self) -> Any:
        if self._opened is None:
            import duckdb  # only when there is something to ask

            self._opened = duckdb.connect(":memory:")
            settings = {
                "memory_limit": f"'{max(self._memory, 64 << 20)}B'",
                "temp_directory": "'" + str(self._directory).replace("'", "''") + "'",
                "preserve_insertion_order": "false",
                "python_enable_replacements": "false",
                "enable_progress_bar": "false",
            }
            for name, value in settings.items():
                self._opened.execute(f"SET {name} = {value}")
        return self._opened

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def ask(self, sql: str, **tables: pa.Table | pa.RecordBatchReader) -> pa.Table:
        with self._named(tables):
            return self._connection.sql(sql).to_arrow_table()

    @contextlib.contextmanager
    def _named(self, tables: dict[str, Any]) -> Iterator[None]:
        for name, table in tables.items():
            self._connection.register(name, table)
        try:
            yield
        finally:
            for name in tables:
                self._connection.unregister(name)


@contextlib.contextmanager
def joining(memory: int, name: str) -> Iterator[Joins]:
    """In a directory that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=f"omnigraph-{name}-") as directory:
        joins = Joins(memory, Path(directory))
        try:
            yield joins
        finally:
            joins.close()


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def comparable(kind: GraphType, column: str) -> str:
    """An SQL expression that is equal exactly where values are: -0.0 equals 0.0."""
    held = {p.name: p.type for p in kind.properties}.get(column)
    name = quoted(column)
    match held:
        case ScalarType(base=base) if base in FLOATS:
            return f"({name} + 0.0)"
        case ListType(item=item) if item in FLOATS:
            return f"list_transform({name}, lambda x: x + 0.0)"
        case VectorType():
            return f"list_transform({name}::FLOAT[], lambda x: x + 0.0)"
        case _:
            return name


def as_keys(kind: GraphType, columns: Sequence[str]) -> tuple[str, str]:
    """Columns to select as k0, k1, … and the condition that none of them is null."""
    keys = ", ".join(f"{comparable(kind, c)} AS k{i}" for i, c in enumerate(columns))
    given = " AND ".join(f"{quoted(c)} IS NOT NULL" for c in columns)
    return keys, given
