"""Owns the Spark schema of a type. Spark has no unsigned integers and no vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from omnigraph.model.arrow import row_schema
from omnigraph.model.catalog import GraphType, system_columns


def spark_arrow(kind: pa.DataType) -> pa.DataType:
    """The Arrow type in which a column travels to Spark: the next larger one that holds all
    values."""
    if pa.types.is_uint32(kind):
        return pa.int64()
    if pa.types.is_uint64(kind):
        return pa.decimal128(20, 0)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC")
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind):
        return pa.list_(spark_arrow(kind.value_type))
    return kind


def shown_schema(kind: GraphType, names: Sequence[str]) -> pa.Schema:
    """Some columns of rows of a type. Only of ids and ends Spark is told that they are never null,
    which spares it looking: as a stream of changes, rows come from commits before a property was
    there, and Spark does not say whether it asks for that or for a table."""
    own, never = row_schema(kind), system_columns(kind)
    return pa.schema([own.field(name).with_nullable(name not in never) for name in names])


def spark_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(f.name, spark_arrow(f.type), f.nullable) for f in schema])


def column_width(kind: pa.DataType) -> int:
    """About as many bytes as a value takes."""
    if pa.types.is_list(kind):
        return 8 * column_width(kind.value_type)
    try:
        return int(max(kind.bit_width // 8, 1))
    except ValueError:  # texts and blobs
        return 20


def to_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows under the types of `spark_schema`."""
    arrays = [_cast(batch.column(field.name), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    if pa.types.is_list(kind) and not array.type.equals(kind):
        values = _cast(array.flatten(), kind.value_type)
        lengths = pa.compute.list_value_length(array).fill_null(0)
        ends = pa.compute.cumulative_sum(lengths.cast(pa.int32()))
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(offsets, values, type=kind, mask=mask)
    return array.cast(kind)


def struct_type(schema: pa.Schema) -> Any:
    """The schema of a DataFrame with such rows."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)
