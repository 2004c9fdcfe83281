"""Owns the rows of unions: those of every part, in one form, without duplicates unless all are
wanted, in the order of the whole. It does not know how a part is answered, nor where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.query.gather import amount
from omnigraph.engine.query.guard import Guard
from omnigraph.engine.query.prepare import Prepared
from omnigraph.engine.query.result import Result
from omnigraph.engine.query.shape import result_schema, shaped
from omnigraph.errors import InvalidArgument
from omnigraph.lang.gq.checked import OutputValue, Read
from omnigraph.plan.values.codes import code_values, combine, ranks, sort_rows
from omnigraph.plan.values.kinds import cast
from omnigraph.show.subgraph import Subgraph

AskPart = Callable[[Prepared, float | None], Result]
"""Asks one part, with the seconds that are left."""


class _Union:
    def __init__(
        self,
        prepared: Prepared,
        values: Mapping[str, Any],
        one: AskPart,
        guard: Guard,
        clock: Callable[[], float],
        timeout: float | None,
    ) -> None:
        assert isinstance(prepared.query.body, Read)
        self.read = prepared.query.body
        self.parts = prepared.parts
        self.schema = result_schema(self.read.columns)
        self.guard = guard
        self._values = values
        self._one = one
        self._clock = clock
        self._timeout = timeout
        self._running: Result | None = None

    def cancel(self) -> None:
        self.guard.cancel()
        if self._running is not None:
            self._running.cancel()

    def batches(self) -> Iterator[pa.RecordBatch]:
        offset = amount(self.read.offset, self._values, "offset") or 0
        limit = amount(self.read.limit, self._values, "limit")
        self.guard.begin()
        if self.read.distinct or self.read.order:
            yield from self._arranged(offset, limit)
            return
        for batch in self._rows():
            skipped = min(offset, batch.num_rows)
            offset -= skipped
            batch = batch.slice(skipped, limit)
            if limit is not None:
                limit -= batch.num_rows
            if batch.num_rows:
                yield batch
            if limit == 0:
                return

    def _rows(self) -> Iterator[pa.RecordBatch]:
        """The rows of one part after the other. The clock runs for all of them."""
        began = self._clock()
        for part in self.parts:
            self.guard.check()
            left = None
            if self._timeout is not None:
                left = max(1e-6, self._timeout - (self._clock() - began))
            self._running = self._one(part, left)
            for batch in self._running.batches():
                self.guard.check()
                arrays = [self._shaped(batch.column(i), i) for i in range(batch.num_columns)]
                yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _shaped(self, values: pa.Array, place: int) -> pa.Array:
        kind = self.schema.field(place).type
        return shaped(values if values.type == kind else cast(values, kind), kind)

    def _arranged(self, offset: int, limit: int | None) -> Iterator[pa.RecordBatch]:
        """All rows at once: without duplicates, and in order."""
        held: list[pa.RecordBatch] = []
        with self.guard.booking() as booked:
            for batch in self._rows():
                held.append(batch)
                booked.add(2 * batch.nbytes)  # they are put together
            table = pa.Table.from_batches(held, self.schema).combine_chunks()
            columns = [
                column.chunk(0) if column.num_chunks else pa.array([], column.type)
                for column in table.columns
            ]
            rows = np.arange(table.num_rows)
            if self.read.distinct:
                _, rows = combine([code_values(column) for column in columns], table.num_rows)
                columns = [column.take(pa.array(rows)) for column in columns]
                rows = np.arange(len(rows))
            if self.read.order:
                rows = self._order(columns, len(rows))
            stop = len(rows) if limit is None else min(len(rows), offset + limit)
            chosen = pa.array(rows[offset : max(offset, stop)])
            arrays = [column.take(chosen) for column in columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _order(self, columns: list[pa.Array], rows: int) -> np.ndarray:
        """By the keys, and then by all columns in turn."""
        keys = [
            (ranks(columns[key.value.index]), key.descending)
            for key in self.read.order
            if isinstance(key.value, OutputValue)
        ]
        return sort_rows([*keys, *((ranks(column), False) for column in columns)], rows)

    def explain(self, analyze: bool) -> str:
        word = "union" if self.read.distinct else "union all"
        told = [self._one(part, self._timeout).explain(analyze=analyze) for part in self.parts]
        return f"\n{word}\n".join(told)


def joined_result(
    prepared: Prepared,
    values: Mapping[str, Any],
    one: AskPart,
    guard: Guard,
    clock: Callable[[], float],
    timeout: float | None,
) -> Result:
    union = _Union(prepared, values, one, guard, clock, timeout)
    parts = [one(part, timeout) for part in prepared.parts]

    def network(_vectors: bool) -> Subgraph:
        raise InvalidArgument(
            "The rows of a union come from several patterns.", help="Ask for each part alone."
        )

    return Result(
        union.schema,
        union.batches,
        commit=parts[0].commit,
        io=parts[0].io,
        cancel=union.cancel,
        explain=union.explain,
        graph=network,
        ordered=bool(union.read.order),
        timely=any(part.timely for part in parts),
    )
