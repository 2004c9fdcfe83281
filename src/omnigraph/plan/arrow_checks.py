"""Owns the check that Arrow data is valid, before any value of it is used.

Arrow trusts its buffers. An offset that points outside, a view or dictionary index that names
nothing, or bytes that are no text make later steps read foreign memory, stop the process, or fail
somewhere deep. So everything that comes from outside is looked at once, as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

UNSPEAKABLE = (ValueError, OverflowError, KeyError, TypeError, pa.ArrowException)
"""The errors of converting a value to Python if Python cannot represent it: times outside the years
1 to 9999, unknown time zones."""


class Unsound(Exception):
    """Arrow data whose buffers contradict each other. The text of the error is a part of a
    sentence."""


def require_sound(rows: pa.Table | pa.RecordBatch) -> None:
    require_names(rows.schema)
    for field, column in zip(rows.schema, rows.columns, strict=True):
        _require_column(field.name, column)


def require_columns(names: Iterable[object], columns: Iterable[object]) -> None:
    """For columns of which only some come from Arrow."""
    for name, column in zip(names, columns, strict=True):
        if isinstance(column, pa.Array | pa.ChunkedArray):
            _require_column(str(name), column)


def require_names(schema: pa.Schema) -> None:
    """The names of columns and their fields, and the names of time zones, must be valid text."""
    try:
        schema.to_string(show_field_metadata=False, show_schema_metadata=False)
        _ = schema.names
    except UnicodeDecodeError:
        raise Unsound("the name of a column is not text in UTF-8") from None


def _require_column(name: str, column: pa.Array | pa.ChunkedArray) -> None:
    try:
        column.validate(full=True)
    except (pa.ArrowException, ValueError) as error:
        if not _is_bare_sound(column):
            raise Unsound(f"the column {name!r} is not sound: {reason_of(error)}") from None


def _is_bare_sound(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether the buffers are consistent and only values are wrong, such as texts that are not
    UTF-8. These are reported row by row."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    try:
        for chunk in chunks:
            chunk.validate()
            _bare(chunk).validate(full=True)
    except (pa.ArrowException, ValueError, TypeError):
        return False
    return True


def _bare(array: pa.Array) -> pa.Array:
    """The same buffers, with types that do not interpret the bytes."""
    if not pa.types.is_dictionary(array.type):
        return array.view(_bare_type(array.type))
    codes = array.indices
    codes.validate(full=True)
    if codes.null_count < len(codes) and not 0 <= _lowest(codes) <= _highest(codes) < len(
        array.dictionary
    ):
        raise ValueError("an index leads out of the dictionary")
    return _bare(array.dictionary)


def _lowest(codes: pa.Array) -> int:
    return int(pc.min(codes).as_py())


def _highest(codes: pa.Array) -> int:
    return int(pc.max(codes).as_py())


def _bare_type(kind: pa.DataType) -> pa.DataType:
    for text, data in _BYTES.items():
        if kind == text:
            return data
    if pa.types.is_list(kind):
        return pa.list_(_bare_type(kind.value_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(_bare_type(kind.value_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_bare_type(kind.value_type), kind.list_size)
    return kind


_BYTES = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
    pa.date64(): pa.int64(),
}


def value_at(array: pa.Array, index: int) -> object:
    """One value to show. A value that Python cannot represent is shown as its number or bytes."""
    one = array.slice(index, 1)
    try:
        return one[0].as_py()
    except UNSPEAKABLE:
        if one.type in _BYTES and one.type != pa.date64():
            return one.view(_BYTES[one.type])[0].as_py()
        if pa.types.is_date(one.type) or pa.types.is_timestamp(one.type):
            return one.view(pa.int32() if one.type.bit_width == 32 else pa.int64())[0].as_py()
        return f"<{one.type}>"


def reason_of(error: BaseException) -> str:
    """The first line of a library's message, as a part of a sentence."""
    first = str(error).split("\n", 1)[0].strip().rstrip(".")
    return first or type(error).__name__
