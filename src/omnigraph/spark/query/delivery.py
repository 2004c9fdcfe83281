"""Owns the last step: rows of Spark become batches of the result, encoded on executors.

So they reach the caller with their types, a batch at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as sql

from omnigraph.engine.query.shape import batch_of, shaped
from omnigraph.errors import OmnigraphError
from omnigraph.lang.gq.checked import Expression
from omnigraph.plan.values import evaluate_array
from omnigraph.spark.query.arrow_types import restore
from omnigraph.spark.query.failures import MARK, decoded_error, error_word
from omnigraph.spark.query.values import ArgumentLeaves, LoadSource

_ROW = "r"
_BATCH = 16 * 1024


@dataclass(frozen=True)
class ValueOutput:
    """A column of the result: an expression over columns of Spark."""

    value: Expression
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]

    def make(self, batch: pa.RecordBatch, target: pa.DataType, given: LoadSource) -> pa.Array:
        arrays = [
            restore(batch.column(name), kind)
            for name, kind in zip(self.names, self.types, strict=True)
        ]
        return evaluate_array(self.value, ArgumentLeaves(arrays, batch.num_rows, given))


@dataclass(frozen=True)
class CellOutput:
    """A column of the result that is a column of Spark."""

    name: str

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def make(self, batch: pa.RecordBatch, target: pa.DataType, given: LoadSource) -> pa.Array:
        return restore(batch.column(self.name), target)


@dataclass(frozen=True)
class ObjectOutput:
    """An entity with its properties; `names` holds its id first."""

    names: tuple[str, ...]

    def make(self, batch: pa.RecordBatch, target: pa.DataType, given: LoadSource) -> pa.Array:
        fields = [target.field(i) for i in range(target.num_fields)]
        arrays = [
            restore(batch.column(name), field.type)
            for name, field in zip(self.names, fields, strict=True)
        ]
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=arrays[0].is_null())


Output = ValueOutput | CellOutput | ObjectOutput


def deliver(data: Any, outputs: Sequence[Output], schema: pa.Schema, given: LoadSource) -> Any:
    """A DataFrame with a row for each batch of the result."""
    names = list(dict.fromkeys(name for output in outputs for name in output.names))
    chosen = data.select(*names, *([] if names else [sql.lit(0).alias(_ROW)]))

    def encode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for start in range(0, batch.num_rows, _BATCH):
                try:
                    made = _made(batch.slice(start, _BATCH))
                except OmnigraphError as error:
                    # The error travels as a row, because a failing task would be run again before
                    # anybody sees it.
                    yield pa.record_batch(
                        {"b": pa.array([error_word(error).encode()], pa.binary())}
                    )
                    return
                yield pa.record_batch({"b": pa.array([made], pa.binary())})

    def _made(batch: pa.RecordBatch) -> bytes:
        arrays = [
            shaped(output.make(batch, field.type, given), field.type)
            for output, field in zip(outputs, schema, strict=True)
        ]
        whole = batch_of(arrays, schema, batch.num_rows)
        given.fits(whole.nbytes)
        encoded: bytes = whole.serialize().to_pybytes()
        return encoded

    return chosen.mapInArrow(encode, "b binary")


def decode(row: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """The batch in a row. Raises the error that the row reports."""
    if row.startswith(MARK.encode()):
        error = decoded_error(row.decode())
        assert error is not None
        raise error
    return pa.ipc.read_record_batch(pa.py_buffer(row), schema)
