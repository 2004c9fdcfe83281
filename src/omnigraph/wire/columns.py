"""Owns the columns of a result as JSON tells them: names, types in the words of the schema
language, and values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pyarrow as pa

from omnigraph.wire.values import plain

_NAMES = {
    pa.string(): "String",
    pa.large_string(): "String",
    pa.bool_(): "Bool",
    pa.int8(): "I8",
    pa.int16(): "I16",
    pa.int32(): "I32",
    pa.int64(): "I64",
    pa.uint8(): "U8",
    pa.uint16(): "U16",
    pa.uint32(): "U32",
    pa.uint64(): "U64",
    pa.float32(): "F32",
    pa.float64(): "F64",
    pa.date32(): "Date",
    pa.binary(): "Blob",
    pa.large_binary(): "Blob",
    pa.null(): "Null",
}
_ENCODE = msgspec.json.Encoder().encode


def type_name(kind: pa.DataType) -> str:
    """As the schema language writes it; an entity is a struct of its properties."""
    if kind in _NAMES:
        return _NAMES[kind]
    if pa.types.is_timestamp(kind):
        return "DateTime"
    if pa.types.is_fixed_size_list(kind):
        return f"Vector({kind.list_size})"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"[{type_name(kind.value_type)}]"
    if pa.types.is_struct(kind):
        return "Entity"
    return str(kind)


def columns_of(schema: pa.Schema) -> list[dict[str, Any]]:
    return [
        {"name": field.name, "type": type_name(field.type), "nullable": field.nullable}
        for field in schema
    ]


def json_rows(batch: pa.RecordBatch, *, whole_as_text: bool = False) -> Iterator[dict[str, Any]]:
    """The rows of a batch, with values that `row_bytes` writes as the command line does."""
    names = batch.schema.names
    values = [_values(column, whole_as_text) for column in batch.columns]
    if not names:
        yield from ({} for _ in range(batch.num_rows))
    for row in zip(*values, strict=True):
        yield dict(zip(names, row, strict=True))


def row_bytes(row: dict[str, Any]) -> bytes:
    """One row as JSON, without line breaks."""
    return _ENCODE(row)


def _values(column: pa.Array, whole_as_text: bool) -> list[Any]:
    values: list[Any] = column.to_pylist()
    change = _change(column.type, whole_as_text)
    return values if change is None else [None if v is None else change(v) for v in values]


def _change(kind: pa.DataType, whole_as_text: bool) -> Callable[[Any], Any] | None:
    """What has to be done to values so that JSON can hold them; None if nothing has to."""
    if pa.types.is_floating(kind):
        return lambda value: value if math.isfinite(value) else plain(value)
    if kind in (pa.int64(), pa.uint64()):
        return str if whole_as_text else None
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = _change(kind.value_type, whole_as_text)
        return (
            None if inner is None else lambda value: [v if v is None else inner(v) for v in value]
        )
    if pa.types.is_struct(kind):
        inside = {
            field.name: change
            for field in kind
            if (change := _change(field.type, whole_as_text)) is not None
        }
        return None if not inside else lambda value: _changed(value, inside)
    return None if kind in _NAMES and kind not in _BYTES else plain


_BYTES = (pa.binary(), pa.large_binary())


def _changed(value: dict[str, Any], inside: dict[str, Callable[[Any], Any]]) -> dict[str, Any]:
    return value | {
        name: change(value[name]) for name, change in inside.items() if value[name] is not None
    }
