"""Owns aggregates: the values of each group become one. A row counts as often as it occurs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ValueOutOfRange
from omnigraph.plan.values.codes import code_values, combine
from omnigraph.plan.values.kinds import F64, I64

_SAFE = 2.0**62
_EXACT = 2.0**53


def aggregate(
    function: str,
    values: pa.Array,
    groups: np.ndarray,
    count: int,
    counts: np.ndarray | None,
    *,
    distinct: bool,
) -> pa.Array:
    """One value for each of `count` groups. Nulls are left out, as everywhere."""
    if values.null_count:
        there = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        values, groups = values.take(pa.array(there)), groups[there]
        counts = None if counts is None else counts[there]
    if distinct:
        _, rows = combine([(groups, count), code_values(values)], len(groups))
        rows = np.sort(rows)
        values, groups, counts = values.take(pa.array(rows)), groups[rows], None
    return FOLDS[function](values, groups, count, counts)


def tally(groups: np.ndarray, count: int, counts: np.ndarray | None) -> np.ndarray:
    """How many rows each group has."""
    if count == 1 and counts is None:
        return np.array([len(groups)], np.int64)
    if counts is None:
        return np.bincount(groups, minlength=count).astype(np.int64)
    if float(counts.sum(dtype=np.float64)) < _EXACT:
        return np.bincount(groups, weights=counts, minlength=count).astype(np.int64)
    sums = np.zeros(count, np.int64)
    np.add.at(sums, groups, counts)
    return sums


def _sum_or_average(
    function: str, values: pa.Array, groups: np.ndarray, count: int, counts: np.ndarray | None
) -> pa.Array:
    size = tally(groups, count, counts)
    nothing = size == 0
    if pa.types.is_integer(values.type):
        sums = _integer_sums(values, groups, count, counts)
        if function == "sum":
            return _integers(sums, nothing)
        return pa.array(_averages(sums, size), F64, mask=nothing)
    numbers = values.cast(F64).to_numpy(zero_copy_only=False)
    weighted = numbers if counts is None else numbers * counts
    with np.errstate(all="ignore"):
        totals: np.ndarray = np.bincount(groups, weights=weighted, minlength=count)
        if function == "avg":
            totals = totals / np.where(nothing, 1, size)
    return pa.array(totals, F64, mask=nothing)


def _averages(sums: np.ndarray | list[int], size: np.ndarray) -> np.ndarray:
    if isinstance(sums, list):
        pairs = zip(sums, size.tolist(), strict=True)
        return np.array([float(Fraction(total, often)) if often else 0.0 for total, often in pairs])
    return sums / np.where(size == 0, 1, size)


def _integer_sums(
    values: pa.Array, groups: np.ndarray, count: int, counts: np.ndarray | None
) -> np.ndarray | list[int]:
    """Exact: as machine integers if they fit, otherwise as Python's."""
    numbers = values.to_numpy(zero_copy_only=False)
    if count == 1 and counts is None and numbers.itemsize <= 4 and len(numbers) < 2**31:
        return np.array([numbers.sum(dtype=np.int64)])
    rough = np.abs(numbers.astype(np.float64))
    bound = float(np.sum(rough if counts is None else rough * counts))
    if bound < _EXACT:
        weights = numbers if counts is None else numbers.astype(np.int64) * counts
        found: np.ndarray = np.bincount(groups, weights=weights, minlength=count).astype(np.int64)
        return found
    if bound < _SAFE:
        sums = np.zeros(count, np.int64)
        wide = numbers.astype(np.int64)
        np.add.at(sums, groups, wide if counts is None else wide * counts)
        return sums
    exact = [0] * count
    times = [1] * len(numbers) if counts is None else counts.tolist()
    for group, value, often in zip(groups.tolist(), numbers.tolist(), times, strict=True):
        exact[group] += value * often
    return exact


def _integers(sums: np.ndarray | list[int], nothing: np.ndarray) -> pa.Array:
    if isinstance(sums, list) and any(not -(2**63) <= s < 2**63 for s in sums):
        raise ValueOutOfRange(
            "A sum does not fit 64 bits.", help="Add floats instead: sum($x.p * 1.0)."
        )
    return pa.array(np.array(sums, np.int64), I64, mask=nothing)


def _extreme(
    function: str, values: pa.Array, groups: np.ndarray, count: int, _: np.ndarray | None
) -> pa.Array:
    where = np.flatnonzero(~_nan(values)) if pa.types.is_floating(values.type) else None
    plain = values if where is None else values.take(pa.array(where))
    of = groups if where is None else groups[where]
    found = _by_group(pa.table({"g": of, "v": plain}), function, count, values.type)
    if where is not None and len(where) < len(values):
        # NaN is above all numbers: the largest if there is one, the smallest if nothing else is.
        odd = np.zeros(count, bool)
        odd[np.delete(groups, where)] = True
        if function == "min":
            odd &= found.is_null().to_numpy(zero_copy_only=False)
        found = pc.if_else(pa.array(odd), pa.scalar(float("nan"), values.type), found)
    return found


def _nan(values: pa.Array) -> np.ndarray:
    found: np.ndarray = np.isnan(values.to_numpy(zero_copy_only=False))
    return found


def _by_group(table: pa.Table, function: str, count: int, kind: pa.DataType) -> pa.Array:
    result = table.group_by("g").aggregate([("v", function)])
    order = np.full(count, -1, np.int64)
    order[result["g"].to_numpy()] = np.arange(result.num_rows)
    indices = pa.array(order, mask=order < 0)
    return result[f"v_{function}"].combine_chunks().cast(kind).take(indices)


def collect(
    values: pa.Array, groups: np.ndarray, count: int, counts: np.ndarray | None
) -> pa.Array:
    """The values of each group as a list, in the order of the rows."""
    if counts is not None:
        repeated = np.repeat(np.arange(len(values)), counts)
        values, groups = values.take(pa.array(repeated)), groups[repeated]
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups, minlength=count)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    held = values.take(pa.array(order))
    field = pa.field("item", held.type, nullable=False)
    return pa.ListArray.from_arrays(pa.array(offsets), held, type=pa.list_(field))


def _count(_: pa.Array, groups: np.ndarray, count: int, counts: np.ndarray | None) -> pa.Array:
    return pa.array(tally(groups, count, counts))


Fold: TypeAlias = Callable[[pa.Array, np.ndarray, int, np.ndarray | None], pa.Array]
FOLDS: Final[dict[str, Fold]] = {
    "count": _count,
    "sum": partial(_sum_or_average, "sum"),
    "avg": partial(_sum_or_average, "avg"),
    "min": partial(_extreme, "min"),
    "max": partial(_extreme, "max"),
    "collect": collect,
}
