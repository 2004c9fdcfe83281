"""Owns SQL over Arrow tables: DuckDB answers questions about many rows in bounded memory."""

from __future__ import annotations

import contextlib
import resource
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.errors import OutOfMemory
from omnigraph.model.catalog import GraphType
from omnigraph.model.types import FLOATS, ListType, ScalarType, VectorType


@dataclass(frozen=True)
class SqlRows:
    """A relation. Its rows are read when a question needs them, in the form that `select` gives."""

    read: Callable[[], pa.Table | pa.RecordBatchReader]
    select: str = "*"

    @staticmethod
    def of(table: pa.Table, select: str = "*") -> SqlRows:
        return SqlRows(lambda: table, select)

    def table(self) -> pa.Table:
        """The rows of an answer."""
        held = self.read()
        assert isinstance(held, pa.Table)
        return held


_ROOM = 256 << 20
"""Bytes of addresses without which DuckDB is not begun: it does not look whether it gets them, and
ends the process."""


def connect_duckdb() -> Any:
    """A connection of its own, to nothing. Where the room for addresses is limited, DuckDB starts
    no threads: one that finds no room for its stack ends the process, too."""
    import duckdb  # only when there is a question

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return duckdb.connect(":memory:")
    with contextlib.suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        if limit - pages * resource.getpagesize() < _ROOM:
            raise OutOfMemory("There is not enough memory.")
    return duckdb.connect(":memory:", config={"threads": "1"})


class Joins:
    """Connects to DuckDB at the first question, so a file that cannot be read fails before that."""

    def __init__(self, memory: int, directory: Path) -> None:
        self._memory = memory
        self._directory = directory
        self._opened: Any = None

    @property
    def _connection(self) -> Any:
        if self._opened is None:
            self._opened = connect_duckdb()
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

    def sql(self, text: str, **tables: pa.Table | pa.RecordBatchReader) -> pa.Table:
        """An error while rows are read is raised as it was; duckdb would turn it into text."""
        failures: list[BaseException] = []
        watched = {
            name: _watched(table, failures) if isinstance(table, pa.RecordBatchReader) else table
            for name, table in tables.items()
        }
        try:
            with self._named(watched):
                return self._connection.sql(text).to_arrow_table()
        except Exception as error:
            if failures:
                raise failures[0] from error.__cause__
            raise

    def ask(self, sql: str, **named: SqlRows) -> SqlRows:
        """Answers a question of the rule book, in which `{name}` stands for a relation."""
        shown = {name: f"(SELECT {rows.select} FROM {name})" for name, rows in named.items()}
        tables = {name: rows.read() for name, rows in named.items()}
        return SqlRows.of(self.sql(sql.format(**shown), **tables))

    def sized(self, relation: SqlRows, rows: int) -> SqlRows:
        return relation

    @contextlib.contextmanager
    def _named(self, tables: dict[str, Any]) -> Iterator[None]:
        for name, table in tables.items():
            self._connection.register(name, _spelled(table))
        try:
            yield
        finally:
            for name in tables:
                self._connection.unregister(name)


def _watched(reader: pa.RecordBatchReader, failures: list[BaseException]) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except Exception as error:
            failures.append(error)
            raise

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


@contextlib.contextmanager
def joining(memory: int, name: str) -> Iterator[Joins]:
    """Uses a temporary directory that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix=f"omnigraph-{name}-") as directory:
        joins = Joins(memory, Path(directory))
        try:
            yield joins
        finally:
            joins.close()


def quoted(name: str) -> str:
    """The name of a column in SQL. DuckDB takes `ab` and `aB` for one name, so capitals are spelled
    out."""
    return '"' + _spell(name).replace('"', '""') + '"'


def _spell(name: str) -> str:
    return "".join(f"^{c.lower()}" if c.isupper() else c for c in name)


def _spelled(rows: pa.Table | pa.RecordBatchReader) -> pa.Table | pa.RecordBatchReader:
    names = rows.schema.names
    spelled = [_spell(name) for name in names]
    if spelled == names:
        return rows
    if isinstance(rows, pa.Table):
        return rows.rename_columns(spelled)
    schema = pa.schema([f.with_name(n) for f, n in zip(rows.schema, spelled, strict=True)])
    renamed = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows)
    return pa.RecordBatchReader.from_batches(schema, renamed)


def comparable(kind: GraphType, column: str) -> str:
    """An SQL expression that is equal exactly where the values are: -0.0 equals 0.0."""
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


def as_keys(kind: GraphType, columns: Sequence[str]) -> str:
    """The columns to select, named k0, k1, …"""
    return ", ".join(f"{comparable(kind, c)} AS k{i}" for i, c in enumerate(columns))
