"""Owns the Arrow side of kinds: the type of an array of them, and casts that lose nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ValueOutOfRange
from omnigraph.lang.gq.checked import (
    DurationKind,
    EdgeKind,
    EntityListKind,
    Kind,
    NodeKind,
    NullKind,
)
from omnigraph.model.arrow import arrow_type
from omnigraph.model.types import FLOATS, ListType, ScalarType

Value = Any
"""A `pa.Array`, or a `pa.Scalar` if all rows share the value."""

I64 = pa.int64()
U64 = pa.uint64()
F64 = pa.float64()
BOOL = pa.bool_()
TEXT = pa.string()
NULL_BOOL = pa.scalar(None, BOOL)


def arrow_kind(kind: Kind) -> pa.DataType:
    """The Arrow type of a column of this kind, other than an entity."""
    match kind:
        case NullKind():
            return pa.null()
        case DurationKind():
            return I64
        case NodeKind() | EdgeKind() | EntityListKind():
            raise TypeError("entities have no one Arrow type")
        case _:
            return arrow_type(kind)


def constant(value: object, kind: Kind) -> pa.Scalar:
    held = list(value) if isinstance(value, tuple) else value
    if isinstance(kind, ListType) and isinstance(held, list):
        held = [float(v) if kind.item in FLOATS and v is not None else v for v in held]
        if None in held:  # only in a literal list; what it is compared with decides
            return pa.scalar(held, pa.list_(arrow_type(ScalarType(kind.item))))
    return pa.scalar(held, arrow_kind(kind))


def is_array(value: Value) -> bool:
    return isinstance(value, pa.Array | pa.ChunkedArray)


def broadcast(value: Value, rows: int) -> pa.Array:
    """The value as one array of this length."""
    if isinstance(value, pa.ChunkedArray):
        return value.combine_chunks()
    if isinstance(value, pa.Array):
        return value
    if rows == 0:
        return pa.array([], value.type)
    return pa.repeat(value, rows)


def cast(value: Value, target: pa.DataType) -> Value:
    """The value in another type. A value that it cannot hold is an error, never another value."""
    if value.type == target:
        return value
    if pa.types.is_floating(target) and pa.types.is_integer(value.type):
        return pc.cast(value, target, safe=False)
    try:
        return pc.cast(value, target)
    except pa.ArrowInvalid as error:
        raise ValueOutOfRange(
            f"A value does not fit {target}: {str(error).splitlines()[0]}"
        ) from None


def to_numpy(value: pa.Array, fill: Any) -> np.ndarray:
    """The values, with a harmless value in the place of nulls."""
    if value.null_count:
        value = pc.fill_null(value, pa.scalar(fill, value.type))
    array: np.ndarray = value.to_numpy(zero_copy_only=False)
    return array
