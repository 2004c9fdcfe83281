"""Owns grouping, sorting and deduplicating rows that are too many for memory. duckdb does it, and
spills to disk.

The names in its statements are ours alone. Whatever users name is passed as data.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from omnigraph.engine.duckdb_sql import connect_duckdb
from omnigraph.engine.query.guard import SPILL_MEMORY, Guard
from omnigraph.plan.values.codes import normal

_BATCH = 1 << 16


class Spill:
    """Rows on their way through duckdb, as columns c0, c1, and so on."""

    def __init__(self, batches: Iterator[list[pa.Array]], guard: Guard) -> None:
        first = next(batches)
        self._first = first
        self._batches = batches
        self._guard = guard
        self._schema = pa.schema([pa.field(f"c{i}", a.type) for i, a in enumerate(first)])

    def group(self, keys: int, aggregates: Sequence[tuple[str, bool]]) -> list[pa.Array]:
        """Groups by the first columns. Each aggregate (function, distinct) takes the next one, and
        the last column says how often a row counts."""
        often = f"c{keys + len(aggregates)}"
        listed = [f"c{index}" for index in range(keys)]
        for index, (function, distinct) in enumerate(aggregates, keys):
            wide = _wide(self._schema.field(index).type)
            listed.append(_aggregate(function, f"c{index}", often, wide, distinct=distinct))
        by = f" GROUP BY {', '.join(listed[:keys])}" if keys else ""
        return self._whole(f"SELECT {', '.join(listed)} FROM rows{by}")

    def distinct(self) -> list[pa.Array]:
        return self._whole("SELECT DISTINCT * FROM rows")

    def sort(
        self, numbers: int, descending: Sequence[bool], ties: int, offset: int, limit: int | None
    ) -> Iterator[list[pa.Array]]:
        """The first columns, ordered by the next ones and then by those that break ties."""
        chosen = ", ".join(f"c{index}" for index in range(numbers))
        keys = [
            f"c{numbers + index} {'DESC NULLS LAST' if down else 'ASC NULLS FIRST'}"
            for index, down in enumerate(descending)
        ]
        start = numbers + len(descending)
        keys += [f"c{index} ASC NULLS FIRST" for index in range(start, start + ties)]
        cut = "" if limit is None else f" LIMIT {int(limit)}"
        statement = (
            f"SELECT {chosen} FROM rows ORDER BY {', '.join(keys)}{cut} OFFSET {int(offset)}"
        )
        with self._connected() as connection:
            for batch in connection.sql(statement).to_arrow_reader(_BATCH):
                self._guard.check()
                yield batch.columns

    def _whole(self, statement: str) -> list[pa.Array]:
        """All rows of the answer, booked until the caller has them."""
        parts: list[pa.RecordBatch] = []
        with self._guard.booking() as booked, self._connected() as connection:
            reader = connection.sql(statement).to_arrow_reader(_BATCH)
            for batch in reader:
                self._guard.check()
                booked.add(2 * batch.nbytes)  # once more while they are joined
                parts.append(batch)
            table = pa.Table.from_batches(parts, reader.schema)
            return [column.combine_chunks() for column in table.columns]

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        import duckdb  # only when there are many rows

        with tempfile.TemporaryDirectory(prefix="omnigraph-spill-") as directory:
            connection = connect_duckdb()
            connection.execute("SET temp_directory = $d", {"d": directory})
            room = self._guard.room
            limit = SPILL_MEMORY if room is None else min(room, SPILL_MEMORY)
            connection.execute(f"SET memory_limit = '{limit // 1024} KiB'")
            connection.execute("SET preserve_insertion_order = false")
            # The watcher ends first: a closed connection cannot be interrupted.
            with connection, _interrupted(connection.interrupt, self._guard):
                failure: list[BaseException] = []
                try:
                    connection.register("given", self._reader(failure))
                    connection.execute("CREATE TEMP TABLE rows AS SELECT * FROM given")
                    yield connection
                except duckdb.Error as error:
                    if failure:
                        raise failure[0] from None
                    self._guard.check()
                    self._guard.explain(error)
                    raise

    def _reader(self, failure: list[BaseException]) -> pa.RecordBatchReader:
        def rest() -> Iterator[pa.RecordBatch]:
            yield _batch(self._first, self._schema)
            try:
                for arrays in self._batches:
                    self._guard.check()
                    yield _batch(arrays, self._schema)
            except Exception as error:
                failure.append(error)
                raise

        return pa.RecordBatchReader.from_batches(self._schema, rest())


def _batch(arrays: Sequence[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([normal(array) for array in arrays], schema=schema)


def _wide(kind: pa.DataType) -> str:
    """The type for additions, wide enough for every product and sum."""
    return "DOUBLE" if pa.types.is_floating(kind) else "HUGEINT"


def _aggregate(function: str, value: str, often: str, wide: str, *, distinct: bool) -> str:
    plain, once = SPILLED[function]
    return (once if distinct else plain).format(v=value, often=often, wide=wide)


_TOTAL = "sum({v}::{wide} * {often})"
SPILLED: Final[dict[str, tuple[str, str]]] = {
    "count": (
        "coalesce(sum({often}) FILTER ({v} IS NOT NULL), 0)::BIGINT",
        "count(DISTINCT {v})",
    ),
    "sum": (_TOTAL, "sum(DISTINCT {v})"),
    "avg": (
        _TOTAL + "::DOUBLE / sum({often}) FILTER ({v} IS NOT NULL)",
        "avg(DISTINCT {v})",
    ),
    "min": ("min({v})", "min(DISTINCT {v})"),
    "max": ("max({v})", "max(DISTINCT {v})"),
    "collect": (
        "coalesce(list({v}) FILTER ({v} IS NOT NULL), [])",
        "coalesce(list(DISTINCT {v}) FILTER ({v} IS NOT NULL), [])",
    ),
}
"""Each aggregate in DuckDB's SQL: over all values, and over distinct ones."""


@contextmanager
def _interrupted(interrupt: Callable[[], None], guard: Guard) -> Iterator[None]:
    """Watches the limits from another thread, because duckdb does not call back."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            if guard.is_over:
                interrupt()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
