"""Owns CSV: columns of text become the values that the properties of a type can hold."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model import types
from omnigraph.model.catalog import GraphType
from omnigraph.plan.load.lines import decode_blob
from omnigraph.plan.rows.row_type import row_type

_WHOLE = r"^-?[0-9]+$"
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?|-?Infinity|NaN")
_INFINITE = (float("inf"), float("-inf"))


def read_texts(kind: GraphType, table: pa.Table) -> Any:
    """The table with each text column in its type. If a value does not fit, the rows become dicts
    that still contain the text, so that shaping can report it."""
    facts = row_type(kind)
    columns: list[Any] = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        target = facts.spellings.get(name)
        columns.append(column if target is None else _read(column, facts.types[target]))
    if all(isinstance(column, pa.ChunkedArray | pa.Array) for column in columns):
        return pa.table(columns, names=table.column_names)
    lists = [c if isinstance(c, list) else c.to_pylist() for c in columns]
    names = table.column_names
    return [dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True)]


def _read(column: pa.ChunkedArray, kind: types.PropertyType) -> Any:
    """An Arrow column, or a list of values if some of them do not fit."""
    match kind:
        case types.EnumType() | types.ScalarType(base=types.Base.STRING):
            return column
        case types.ScalarType(base=base) if base in types.INTEGER_RANGES:
            whole = pa.uint64() if base is types.Base.U64 else pa.int64()
            return _fast(column, _WHOLE, whole, _integer)
        case types.ScalarType(base=base) if base in types.FLOATS:
            read = _fast(column, _NUMBER.pattern.join(("^(", ")$")), pa.float64(), _number)
            if isinstance(read, pa.ChunkedArray) and pc.any(pc.is_inf(read)).as_py():
                return [None if v is None else _number(v) for v in column.to_pylist()]
            return read
        case types.ScalarType(base=types.Base.BOOL):
            return _each(column, _BOOLS.get, pa.bool_())
        case types.ScalarType(base=types.Base.BLOB):
            return _each(column, _blob, pa.large_binary())
        case types.ScalarType():
            if not pc.any(pc.match_substring_regex(column, _WHOLE)).as_py():
                return column
            return [None if v is None else _integer(v) for v in column.to_pylist()]
        case types.ListType() | types.VectorType():
            return [None if v is None else _list(v) for v in column.to_pylist()]


def _fast(
    column: pa.ChunkedArray, pattern: str, target: pa.DataType, one: Callable[[str], Any]
) -> Any:
    matches = pc.match_substring_regex(column, pattern)
    if pc.all(matches.fill_null(True)).as_py() is not False:
        try:
            return column.cast(target)
        except pa.ArrowInvalid:
            pass
    return [None if v is None else one(v) for v in column.to_pylist()]


def _each(column: pa.ChunkedArray, one: Callable[[str], Any], target: pa.DataType) -> Any:
    texts = column.to_pylist()
    values = [None if text is None else one(text) for text in texts]
    if any(v is None and t is not None for v, t in zip(values, texts, strict=True)):
        return [t if v is None else v for v, t in zip(values, texts, strict=True)]
    return pa.chunked_array([pa.array(values, target)])


_BOOLS: dict[str, bool] = {"true": True, "false": False}


def _blob(text: str) -> bytes | None:
    decoded = decode_blob(text)
    return decoded if isinstance(decoded, bytes) else None


def _integer(text: str) -> Any:
    return int(text) if len(text) < 40 and re.match(_WHOLE, text) else text


def _number(text: str) -> Any:
    """A number that no float can hold stays as it was written, and does not fit."""
    number = float(text) if _NUMBER.fullmatch(text) else text
    return text if number in _INFINITE and "Inf" not in text else number


def _list(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, list) else text
