"""Owns equality and order of values as numbers: equal values get equal codes and greater ones
greater ranks, for grouping, `distinct` and sorting by numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def normal(values: pa.Array) -> pa.Array:
    """One form for equal floats: NaN and zero have several."""
    if not pa.types.is_floating(values.type) or not len(values):
        return values
    numbers = pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False)
    odd = np.isnan(numbers) | (numbers == 0)
    if not odd.any():
        return values
    clean = np.where(np.isnan(numbers), np.array(np.nan, numbers.dtype), numbers + 0.0)
    mask = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    return pa.array(clean, values.type, mask=mask)


def code_values(values: pa.Array) -> tuple[np.ndarray, int]:
    """A code for each value, including null, and the number of codes."""
    if pa.types.is_nested(values.type):
        return _code_nested(values)
    if pa.types.is_null(values.type):
        return np.zeros(len(values), np.int64), 1
    encoded = pc.dictionary_encode(normal(values), null_encoding="encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, max(1, len(encoded.dictionary))


def _code_nested(values: pa.Array) -> tuple[np.ndarray, int]:
    """Lists and objects, coded by their contents."""
    known: dict[str, int] = {}
    codes = [known.setdefault(repr(_plain(v)), len(known)) for v in values.to_pylist()]
    return np.array(codes, np.int64), max(1, len(known))


def _plain(value: object) -> object:
    """A list of floats with one form for zero."""
    if not isinstance(value, list):
        return value
    return [item + 0.0 if isinstance(item, float) else item for item in value]


def combine(parts: Sequence[tuple[np.ndarray, int]], rows: int) -> tuple[np.ndarray, np.ndarray]:
    """One code for each row from several, dense and by first occurrence, and for each code a row
    that has it."""
    if not parts:
        return np.zeros(rows, np.int64), np.zeros(min(rows, 1), np.int64)
    codes, size = parts[0]
    for more, count in parts[1:]:
        if size * count >= 2**62:
            _, codes = np.unique(codes, return_inverse=True)
            size = int(codes.max()) + 1 if len(codes) else 1
        codes, size = codes * count + more, size * count
    if size <= 4 * rows + 1024:
        first = np.full(size, rows, np.int64)
        np.minimum.at(first, codes, np.arange(rows)) if rows < 4096 else _first_rows(first, codes)
        present = np.flatnonzero(first < rows)
        dense = np.zeros(size, np.int64)
        dense[present] = np.arange(len(present))
        return dense[codes], first[present]
    _, rows_of, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return inverse, rows_of


def _first_rows(first: np.ndarray, codes: np.ndarray) -> None:
    """Written backwards, so the first row of a code is written last."""
    first[codes[::-1]] = np.arange(len(codes))[::-1]


def ranks(values: pa.Array) -> np.ndarray:
    """A number for each value that sorts like the value, -1 for null. NaN is above all numbers, and
    texts are sorted by code point."""
    kind = values.type
    if pa.types.is_null(kind):
        return np.full(len(values), -1, np.int64)
    if not values.null_count and pa.types.is_integer(kind) and kind != pa.uint64():
        return _from_zero(values.to_numpy(zero_copy_only=False).astype(np.int64))
    if not values.null_count and pa.types.is_temporal(kind):
        wide = values.cast(pa.int32()) if pa.types.is_date(kind) else values
        return _from_zero(wide.cast(pa.int64()).to_numpy(zero_copy_only=False))
    if pa.types.is_nested(kind):
        return _rank_nested(values)
    encoded = pc.dictionary_encode(normal(values))
    distinct = encoded.dictionary
    order = pc.sort_indices(distinct).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    codes = encoded.indices
    known = pc.fill_null(codes, 0).to_numpy(zero_copy_only=False)
    if not len(distinct):
        return np.full(len(values), -1, np.int64)
    found: np.ndarray = rank[known]
    if codes.null_count:
        found[codes.is_null().to_numpy(zero_copy_only=False)] = -1
    return found


def _from_zero(numbers: np.ndarray) -> np.ndarray:
    """Numbers as they are, or dense if the smallest could be confused with the -1 of null."""
    if not len(numbers) or int(numbers.min()) >= 0:
        return numbers
    _, dense = np.unique(numbers, return_inverse=True)
    return dense.astype(np.int64)


def _rank_nested(values: pa.Array) -> np.ndarray:
    """Lists are sorted item by item, with a shorter one first; entities are sorted by id."""
    if pa.types.is_struct(values.type):
        return ranks(pc.struct_field(values, [0]))
    items = ranks(values.flatten()).tolist()
    lengths = values.value_lengths().to_pylist()
    rows: list[tuple[int, ...] | None] = []
    start = 0
    for length in lengths:
        rows.append(None if length is None else tuple(items[start : start + length]))
        start += length or 0
    order = {row: rank for rank, row in enumerate(sorted({r for r in rows if r is not None}))}
    return np.array([-1 if row is None else order[row] for row in rows], np.int64)


def sort_rows(keys: Sequence[tuple[np.ndarray, bool]], rows: int) -> np.ndarray:
    """The order of rows by keys of (ranks, descending), the first deciding first."""
    if not keys:
        return np.arange(rows)
    return np.lexsort([-rank if descending else rank for rank, descending in reversed(keys)])
