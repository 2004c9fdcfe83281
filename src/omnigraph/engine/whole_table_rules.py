"""Owns the check of rules between rows over whole tables: all rows of a type, read as a stream and
joined in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
import pyarrow as pa

from omnigraph.engine.duckdb_sql import Joins, SqlRows, as_keys, quoted
from omnigraph.model.arrow import row_schema
from omnigraph.model.catalog import GraphType
from omnigraph.model.violation import Violation
from omnigraph.plan.rules import book
from omnigraph.plan.rules import joins as find
from omnigraph.plan.validate import key_texts

Read = Callable[[GraphType, Sequence[str]], Iterable[pa.RecordBatch]]
"""Returns some columns of all rows of a type, under the names of its properties."""
_PLACE = "_place"


@dataclass(frozen=True)
class WholeTables:
    """`limit` bounds how many violations of each rule are reported."""

    joins: Joins
    read: Read
    limit: int

    def check(self, rules: Iterable[book.Rule]) -> Iterator[Violation]:
        for rule in rules:
            yield from (book.describe(rule, row) for row in self._broken(rule))

    def _broken(self, rule: book.Rule) -> Iterable[dict[str, Any]]:
        match rule:
            case book.OneRow(kind):
                return _rows(self._repeated(self._relation(kind, ["id"], "id"), ["id"]))
            case book.UniqueRule(kind, columns):
                return self._shared(kind, columns)
            case book.Ends(kind, end, node):
                edges = self._relation(kind, ["id", end], f"id, {end} AS node")
                nodes = self._relation(node, ["id"], "id")
                found = find.loose(self.joins, edges, nodes, limit=self.limit).table()
                return _rows(found.sort_by("place"))
            case book.CardRule(kind):
                wrong = find.outside(kind.card.low, kind.card.high)
                edges = self._relation(kind, ["src"], "src")
                found = find.totals(self.joins, edges, None, wrong, limit=self.limit).table()
                return _rows(found.sort_by("src"))
            case book.NewId() | book.Orphans():
                raise AssertionError("these are rules for a change, not for what is there")
            case _:
                assert_never(rule)

    def _shared(self, kind: GraphType, columns: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        keys = [f"k{i}" for i in range(len(columns))]
        held = [f"{quoted(name)} AS c{i}" for i, name in enumerate(columns)]
        shown = ", ".join(["id", *held, as_keys(kind, columns)])
        found = self._repeated(self._relation(kind, ["id", *columns], shown), keys)
        if not found.num_rows:
            return
        values = found.select([f"c{i}" for i in range(len(columns))])
        schema = pa.schema([row_schema(kind).field(name) for name in dict.fromkeys(columns)])
        texts = key_texts(values.rename_columns(list(columns)).cast(schema), columns)
        for entity, text in zip(found["id"].to_pylist(), texts, strict=True):
            yield {"id": entity, "text": text}

    def _repeated(self, rows: SqlRows, on: Sequence[str]) -> pa.Table:
        again = find.repeated(self.joins, rows, on, limit=self.limit)
        if not again.table().num_rows:  # usually so, and then nothing has to be read again
            return again.table()
        found = find.later(self.joins, rows, again, on, limit=self.limit)
        return found.table().sort_by("place")

    def _relation(self, kind: GraphType, columns: Sequence[str], shown: str) -> SqlRows:
        names = list(dict.fromkeys(columns))
        schema = pa.schema([row_schema(kind).field(name) for name in names])
        schema = schema.append(pa.field(_PLACE, pa.int64()))

        def numbered() -> Iterator[pa.RecordBatch]:
            count = 0
            for batch in self.read(kind, names):
                places = pa.array(np.arange(count, count + batch.num_rows, dtype=np.int64))
                count += batch.num_rows
                arrays = [batch.column(name) for name in names]
                yield pa.RecordBatch.from_arrays([*arrays, places], schema=schema)

        return SqlRows(
            lambda: pa.RecordBatchReader.from_batches(schema, numbered()),
            f"{_PLACE} AS place, {shown}",
        )


def _rows(found: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows
