"""Owns how Python values become a typed column of any property type, and the names of types in
messages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, assert_never

import numpy as np
import pyarrow as pa

from omnigraph.model import types
from omnigraph.plan.rows.nested import Integers, build_lists, build_vectors
from omnigraph.plan.rows.scalar_casts import cast_scalars
from omnigraph.plan.rows.scalars import (
    DESCRIBED,
    Converted,
    Misfit,
    convert_scalars,
    is_a,
    is_missing,
)


def convert_values(values: Sequence[object], kind: types.PropertyType) -> Converted:
    """A column of this type from Python values. None is null, and values that do not fit are
    reported."""
    match kind:
        case types.ScalarType(base=base):
            return convert_scalars(values, base)
        case types.EnumType():
            return convert_scalars(values, types.Base.STRING)
        case types.ListType(item=item):
            rows, bad, misfits = _sequences(values)
            flat = convert_scalars(
                list(chain.from_iterable(r for r in rows if r is not None)), item
            )
            built = build_lists(flat, _lengths(rows), _given(rows), item)
        case types.VectorType(dimension=dimension):
            rows, bad, misfits = _sequences(values)
            built = build_vectors(_numbers(rows), _lengths(rows), _given(rows), dimension)
        case _:
            assert_never(kind)
    if not bad:
        return built
    both = sorted((*built.misfits, *misfits), key=lambda m: m.at)
    return Converted(built.array, both, np.union1d(built.bad, np.array(bad, dtype=np.int64)))


_Row = list[object] | tuple[object, ...] | np.ndarray[Any, Any]
_Rows = list[_Row | None]


def _sequences(values: Sequence[object]) -> tuple[_Rows, list[int], list[Misfit]]:
    """Each value as a sequence or None, and which values were neither."""
    rows: _Rows = []
    bad: list[int] = []
    misfits: list[Misfit] = []
    for index, value in enumerate(values):
        row: _Row | None = None
        if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1):
            row = value
        elif not is_missing(value):
            bad.append(index)
            if len(bad) <= DESCRIBED:
                misfits.append(Misfit(index, is_a(value), value))
        rows.append(row)
    return rows, bad, misfits


def _lengths(rows: _Rows) -> Integers:
    return np.array([0 if r is None else len(r) for r in rows], dtype=np.int64)


def _given(rows: _Rows) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.array([r is not None for r in rows], dtype=np.bool_)


def _numbers(rows: _Rows) -> Converted:
    """The items of all vectors. Those in numpy arrays never become Python objects."""
    given = [r for r in rows if r is not None]
    arrays = [r for r in given if isinstance(r, np.ndarray) and r.dtype.kind in "iuf"]
    if arrays and len(arrays) == len(given):
        return cast_scalars(pa.array(np.concatenate(arrays)), types.Base.F32)
    return convert_scalars(list(chain.from_iterable(given)), types.Base.F32)


_EXPECTED: dict[types.Base, str] = {
    types.Base.STRING: "a string",
    types.Base.BOOL: "true or false",
    **{
        base: f"a whole number from {low} to {high}"
        for base, (low, high) in types.INTEGER_RANGES.items()
    },
    types.Base.F32: "a number that F32 can hold",
    types.Base.F64: "a number that F64 can hold",
    types.Base.DATE: "a date, text like 2024-05-31 or days since 1970",
    types.Base.DATETIME: "a datetime to the millisecond, RFC 3339 text or milliseconds since 1970",
    types.Base.BLOB: "bytes",
}


def expected_text(kind: types.PropertyType) -> str:
    """A value of this type in words that follow "must be"."""
    match kind:
        case types.ScalarType(base=base):
            return _EXPECTED[base]
        case types.EnumType():
            return f"a string of {types.type_text(kind)}"
        case types.ListType(item=item):
            return f"a list, each item {_EXPECTED[item]}"
        case types.VectorType(dimension=dimension):
            return f"a list of {dimension} number{'' if dimension == 1 else 's'}"
        case _:
            assert_never(kind)


def expected_item_text(kind: types.ListType | types.VectorType) -> str:
    return _EXPECTED[kind.item if isinstance(kind, types.ListType) else types.Base.F32]
