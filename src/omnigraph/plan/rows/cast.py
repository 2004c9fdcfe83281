"""Owns how an Arrow column becomes a column of a property's type, only if nothing is lost.

It works on whole columns. Single values are read only to describe those that do not fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.arrow import arrow_type
from omnigraph.model.types import Base, EnumType, ListType, PropertyType, ScalarType, VectorType
from omnigraph.plan.rows.nested import build_lists, build_vectors
from omnigraph.plan.rows.scalar_casts import cast_scalars, wrong_type
from omnigraph.plan.rows.scalars import SCALAR_ARROW, Converted, Misfit

_LARGEST_PIECE = 2**30


def cast_column(
    column: pa.ChunkedArray, kind: PropertyType, *, whole_floats: bool = False
) -> Converted:
    """The column in the type of a property, chunk by chunk.

    `whole_floats` lets floats without a fraction stand for integers: pandas has no other way to
    hold an integer column with missing values.
    """
    chunks, misfits, bad, start = [], list[Misfit](), [], 0
    for piece in (piece for chunk in column.chunks for piece in _pieces(chunk)):
        done = _cast_array(_decode(piece), kind, whole_floats)
        chunks.append(done.array)
        misfits += [m._replace(at=m.at + start) for m in done.misfits]
        bad.append(done.bad + start)
        start += len(piece)
        if done.whole:  # the other chunks have the same type
            told = misfits[-1]._replace(problem=f"the column holds {column.type}")
            rest = np.flatnonzero(column.is_valid().to_numpy())
            return Converted(pa.nulls(len(column), arrow_type(kind)), [told], rest, whole=True)
    array = pa.chunked_array(chunks, type=arrow_type(kind))
    return Converted(array, misfits, np.concatenate(bad)) if misfits else Converted(array)


def _pieces(chunk: pa.Array) -> Iterator[pa.Array]:
    """The chunk in parts that 32-bit offsets can address. A part is copied, because the offsets of
    a slice still count from where the whole begins."""
    if chunk.nbytes < _LARGEST_PIECE or len(chunk) < 2:
        yield chunk
        return
    for start, stop in _halves(chunk, 0, len(chunk)):
        yield chunk.take(pa.array(np.arange(start, stop)))


def _halves(chunk: pa.Array, start: int, stop: int) -> Iterator[tuple[int, int]]:
    if stop - start < 2 or chunk.slice(start, stop - start).nbytes < _LARGEST_PIECE:
        yield start, stop
        return
    middle = (start + stop) // 2
    yield from _halves(chunk, start, middle)
    yield from _halves(chunk, middle, stop)


def _decode(array: pa.Array) -> pa.Array:
    """The values themselves, without dictionaries, runs, views and extension types."""
    while True:
        if isinstance(array.type, pa.BaseExtensionType):
            if pa.types.is_integer(array.type.storage_type):
                return array  # a period or a packed flag is not the number that encodes it
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            array = _decode(array.dictionary).take(array.indices)
        elif pa.types.is_string_view(array.type):  # for views many kernels do not exist
            array = array.cast(pa.large_string())
        elif pa.types.is_binary_view(array.type):
            array = array.cast(pa.large_binary())
        elif pa.types.is_run_end_encoded(array.type):
            array = pc.run_end_decode(array)
        else:
            return array


def _cast_array(array: pa.Array, kind: PropertyType, whole_floats: bool) -> Converted:
    if array.null_count == len(array):
        return Converted(pa.nulls(len(array), arrow_type(kind)))
    match kind:
        case ScalarType(base=base):
            return cast_scalars(array, base, whole_floats=whole_floats)
        case EnumType():
            return cast_scalars(array, Base.STRING)
        case ListType() | VectorType():
            return _cast_nested(array, kind)
        case _:
            assert_never(kind)


def _cast_nested(array: pa.Array, kind: ListType | VectorType) -> Converted:
    if not _is_list(array.type):
        return wrong_type(array, kind)
    lengths = pc.list_value_length(array)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    counts = lengths.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    base = kind.item if isinstance(kind, ListType) else Base.F32
    items = _decode(pc.list_flatten(array))
    flat = Converted(pa.nulls(len(items), SCALAR_ARROW[base]))
    if items.null_count < len(items) or not len(items):
        flat = cast_scalars(items, base)
    if flat.whole:
        return wrong_type(array, kind)
    if isinstance(kind, ListType):
        return build_lists(flat, counts, valid, kind.item)
    return build_vectors(flat, counts, valid, kind.dimension)


def _is_list(given: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(given)
        or pa.types.is_large_list(given)
        or pa.types.is_fixed_size_list(given)
        or pa.types.is_list_view(given)
        or pa.types.is_large_list_view(given)
    )
