"""Owns the comparison of two columns, row by row. Pure.

Null equals null and NaN equals NaN: a value that did not change is not a change.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Column: TypeAlias = pa.Array | pa.ChunkedArray
Booleans: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


def equal_values(left: Column, right: Column) -> Booleans:
    """For each row whether both columns, of one type, hold the same value."""
    if pa.types.is_nested(left.type):
        return _equal_lists(_whole(left), _whole(right))
    same = pc.fill_null(pc.equal(left, right), False)
    same = pc.or_(same, pc.and_(pc.is_null(left), pc.is_null(right)))
    if pa.types.is_floating(left.type):
        both = pc.and_(pc.is_nan(left), pc.is_nan(right))
        same = pc.or_(same, pc.fill_null(both, False))
    found: Booleans = same.to_numpy(zero_copy_only=False)
    return found


def _equal_lists(left: pa.Array, right: pa.Array) -> Booleans:
    """Lists are equal if they are both null, or as long and equal item by item."""
    if pa.types.is_fixed_size_list(left.type):
        widths = np.full(len(left), left.type.list_size)
        left_widths = right_widths = widths
    else:
        left_widths = _lengths(left)
        right_widths = _lengths(right)
    left_null, right_null = _nulls(left), _nulls(right)
    same: Booleans = (left_null & right_null) | (
        ~left_null & ~right_null & (left_widths == right_widths)
    )
    comparable = np.flatnonzero(same & ~left_null)
    if not len(comparable):
        return same
    rows = pa.array(comparable)
    items = equal_values(left.take(rows).flatten(), right.take(rows).flatten())
    owners = np.repeat(comparable, left_widths[comparable])
    same[owners[~items]] = False
    return same


def _lengths(column: pa.Array) -> np.ndarray[Any, Any]:
    lengths: np.ndarray[Any, Any] = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    return lengths


def _nulls(column: pa.Array) -> Booleans:
    nulls: Booleans = column.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _whole(column: Column) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
