"""Owns how values travel through Spark, which has no unsigned integers, no vectors and other
notions of time.

Each Arrow type travels as one that holds all its values in the same order, and is converted back
afterwards. We generate all names, because Spark ignores case in names.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def carried(kind: pa.DataType) -> pa.DataType:
    """The Arrow type under which values of a type travel."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_uint32(kind) or pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_uint64(kind):
        return pa.decimal128(20, 0)
    if pa.types.is_date(kind):
        return pa.int32()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(carried(kind.value_type))
    if pa.types.is_struct(kind):
        fields = [kind.field(i).type for i in range(kind.num_fields)]
        return pa.struct([(f"f{i}", carried(held)) for i, held in enumerate(fields)])
    return kind


def carry(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of a type in the form in which they travel."""
    target = carried(kind)
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), target)
    return _changed(values, target)


def restore(values: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Values that have travelled, in their original form."""
    held = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if pa.types.is_null(kind):
        return pa.nulls(len(held))
    return _changed(held, kind)


def _changed(values: pa.Array, target: pa.DataType) -> pa.Array:
    if values.type == target:
        return values
    if pa.types.is_struct(target):
        fields = [target.field(i) for i in range(target.num_fields)]
        parts = [_changed(values.field(i), field.type) for i, field in enumerate(fields)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=values.is_null())
    if pa.types.is_fixed_size_list(target):
        return _vectors(values, target)
    if pa.types.is_list(target):
        return _lists(values, target)
    return values.cast(target)


def _lists(values: pa.Array, target: pa.DataType) -> pa.Array:
    inner = _changed(values.flatten(), target.value_type)
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    mask = values.is_null() if values.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets), inner, type=target, mask=mask)


def _vectors(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Lists of one length. A null still has a place among the numbers."""
    there = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    size = target.list_size
    numbers = np.zeros((len(values), size), np.float32)
    held = _changed(values.flatten(), target.value_type).to_numpy(zero_copy_only=False)
    numbers[there] = held.reshape(len(there), size)
    flat = pa.array(numbers.reshape(-1), target.value_type)
    mask = values.is_null() if values.null_count else None
    return pa.FixedSizeListArray.from_arrays(flat, type=target, mask=mask)


def spark_type(kind: pa.DataType) -> Any:
    """The type of the Spark column in which values of an Arrow type travel."""
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(carried(kind))


def spark_struct(schema: pa.Schema) -> Any:
    """The schema of a DataFrame, from one whose types are converted already."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def null_columns(schema: pa.Schema) -> list[Any]:
    """Columns of nulls, with the names and types of a schema that is converted already."""
    from pyspark.sql import functions as sql

    return [sql.lit(None).cast(f.dataType).alias(f.name) for f in spark_struct(schema)]
