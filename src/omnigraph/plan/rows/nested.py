"""Owns how a flat column of items becomes a column of lists or vectors, and whose items misfit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.model.arrow import arrow_type
from omnigraph.model.types import Base, ListType, VectorType
from omnigraph.plan.rows.scalars import DESCRIBED, Converted, Misfit

Integers = np.ndarray[Any, np.dtype[np.int64]]
Booleans = np.ndarray[Any, np.dtype[np.bool_]]


def build_lists(flat: Converted, lengths: Integers, valid: Booleans, item: Base) -> Converted:
    """Lists of `lengths` items each (0 where not `valid`), taken from `flat` in order."""
    offsets = _offsets(lengths)
    bad, misfits = _item_misfits(flat, offsets)
    live = valid.copy()
    live[bad] = False
    array = pa.ListArray.from_arrays(
        pa.array(offsets.astype(np.int32)),
        flat.array,
        type=arrow_type(ListType(item)),
        mask=None if live.all() else pa.array(~live),
    )
    return Converted(array, misfits, bad)


def build_vectors(flat: Converted, lengths: Integers, valid: Booleans, dimension: int) -> Converted:
    """Vectors of one length; a list of another length is a misfit."""
    offsets = _offsets(lengths)
    bad, misfits = _item_misfits(flat, offsets)
    wrong = np.flatnonzero(valid & (lengths != dimension))
    told = {m.at for m in misfits}
    for index in wrong[:DESCRIBED].tolist():
        if index not in told:
            count = f"{lengths[index]} number{'' if lengths[index] == 1 else 's'}"
            misfits.append(Misfit(index, f"it has {count}", None))
    bad = np.union1d(bad, wrong)
    live = valid.copy()
    live[bad] = False
    array = pa.FixedSizeListArray.from_arrays(
        pa.array(_matrix(flat.array, offsets, live, dimension).ravel()),
        type=arrow_type(VectorType(dimension)),
        mask=None if live.all() else pa.array(~live),
    )
    return Converted(array, sorted(misfits, key=lambda m: m.at), bad)


def _matrix(
    items: pa.Array, offsets: Integers, live: Booleans, dimension: int
) -> np.ndarray[Any, np.dtype[np.float32]]:
    numbers = items.to_numpy(zero_copy_only=False).astype(np.float32, copy=False)
    if live.all():
        matrix: np.ndarray[Any, np.dtype[np.float32]] = numbers.reshape(len(live), dimension)
        return matrix
    matrix = np.zeros((len(live), dimension), dtype=np.float32)
    matrix[live] = numbers[offsets[:-1][live][:, None] + np.arange(dimension)]
    return matrix


def _offsets(lengths: Integers) -> Integers:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _item_misfits(flat: Converted, offsets: Integers) -> tuple[Integers, list[Misfit]]:
    """The rows with an item that is null or does not fit, told by the first such item."""
    if not flat.array.null_count:
        return np.empty(0, dtype=np.int64), []
    places = np.flatnonzero(flat.array.is_null().to_numpy(zero_copy_only=False))
    rows = np.searchsorted(offsets, places, side="right") - 1
    bad, first = np.unique(rows, return_index=True)
    told = {m.at: m for m in flat.misfits}
    unfit = frozenset(flat.bad.tolist())
    misfits = []
    for row, place in zip(bad[:DESCRIBED].tolist(), places[first].tolist(), strict=False):
        item = place - int(offsets[row])
        if place in told:
            misfits.append(Misfit(row, told[place].problem, told[place].value, item))
        elif place not in unfit:
            misfits.append(Misfit(row, "it is null", None, item))
    return bad, misfits
