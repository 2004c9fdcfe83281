"""Codes and ranks against plain Python: equal values share a code, greater ones rank higher."""

from __future__ import annotations

import math
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.plan.values.codes import code_values, combine, normal, ranks, sort_rows

NAN = float("nan")
FLOAT = st.sampled_from([0.0, -0.0, NAN, -NAN, 1.5, -1.5, math.inf, -math.inf, 5e-324])
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "I32": (pa.int32(), st.integers(-(2**31), 2**31 - 1) | st.integers(-2, 2)),
    "I64": (pa.int64(), st.sampled_from([-(2**63), 2**63 - 1, -1, 0, 1])),
    "U64": (pa.uint64(), st.sampled_from([0, 1, 2**63, 2**64 - 1])),
    "F32": (pa.float32(), FLOAT),
    "F64": (pa.float64(), FLOAT),
    "Bool": (pa.bool_(), st.booleans()),
    "String": (pa.string(), st.sampled_from(["", "a", "B", "ä", "\U0001f600", "\uffff", "aa"])),
    "Date": (pa.date32(), st.dates()),
    "DateTime": (pa.timestamp("ms", "UTC"), st.integers(-5, 5)),
    "list": (pa.list_(pa.string()), st.lists(st.sampled_from(["", "a", "b"]), max_size=3)),
    "floats": (pa.list_(pa.float64()), st.lists(FLOAT, max_size=2)),
    "null": (pa.null(), st.none()),
}
COLUMNS = st.sampled_from(sorted(KINDS)).flatmap(
    lambda name: st.lists(st.none() | KINDS[name][1], max_size=12).map(
        lambda values: pa.array(values, KINDS[name][0])
    )
)


def order(left: Any, right: Any) -> int:
    """Null, then values; NaN above all numbers, one zero; lists item by item."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if isinstance(left, list):
        for a, b in zip(left, right, strict=False):
            if found := order(a, b):
                return found
        return (len(left) > len(right)) - (len(left) < len(right))
    if isinstance(left, float) and (math.isnan(left) or math.isnan(right)):
        return math.isnan(left) - math.isnan(right)
    return int(left > right) - int(left < right)


@given(COLUMNS)
def test_equal_values_share_a_code_and_others_do_not(column: pa.Array) -> None:
    codes, size = code_values(column)
    values = column.to_pylist()
    assert len(codes) == len(values)
    assert all(0 <= code < size for code in codes.tolist())
    for i, a in enumerate(values):
        for j, b in enumerate(values):
            assert (codes[i] == codes[j]) == (order(a, b) == 0)


@given(COLUMNS)
def test_ranks_sort_as_values_do(column: pa.Array) -> None:
    found = ranks(column)
    values = column.to_pylist()
    for i, a in enumerate(values):
        for j, b in enumerate(values):
            assert np.sign(found[i] - found[j]) == order(a, b)


@given(st.data(), st.integers(0, 12), st.integers(1, 3))
def test_rows_sort_by_several_keys_in_either_direction(
    data: st.DataObject, rows: int, keys: int
) -> None:
    columns, directions = [], []
    for _ in range(keys):
        kind, values = KINDS[data.draw(st.sampled_from(["I32", "F64", "String"]))]
        drawn = data.draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        columns.append(pa.array(drawn, kind))
        directions.append(data.draw(st.booleans()))
    found = sort_rows([(ranks(c), down) for c, down in zip(columns, directions, strict=True)], rows)

    def compare(a: int, b: int) -> int:
        for column, down in zip(columns, directions, strict=True):
            if decided := order(column[a].as_py(), column[b].as_py()):
                return -decided if down else decided
        return 0

    wanted = sorted(range(rows), key=cmp_to_key(compare))
    assert sorted(found.tolist()) == list(range(rows))
    assert all(compare(a, b) <= 0 for a, b in pairwise(found.tolist()))
    assert [compare(a, b) for a, b in zip(found.tolist(), wanted, strict=True)] == [0] * rows


PARTS = st.integers(0, 20).flatmap(
    lambda rows: st.lists(
        st.lists(st.integers(0, 3), min_size=rows, max_size=rows), min_size=0, max_size=4
    ).map(lambda parts: (rows, parts))
)


@pytest.mark.parametrize("size", [4, 2**31], ids=["small", "large"])
@given(PARTS)
def test_rows_that_agree_everywhere_share_one_dense_code(
    size: int, drawn: tuple[int, list[list[int]]]
) -> None:
    rows, parts = drawn
    codes, first = combine([(np.array(part, np.int64), size) for part in parts], rows)
    tuples = list(zip(*parts, strict=True)) if parts else [()] * rows
    assert len(first) == len(set(tuples))
    for i in range(rows):
        assert tuples[first[codes[i]]] == tuples[i]
        for j in range(rows):
            assert (codes[i] == codes[j]) == (tuples[i] == tuples[j])
    assert set(codes.tolist()) == set(range(len(first)))


def test_many_rows_take_the_first_of_each_code() -> None:
    codes = np.tile(np.arange(10), 1000)
    found, first = combine([(codes, 10)], len(codes))
    assert first.tolist() == list(range(10))
    assert found.tolist() == codes.tolist()


@given(st.lists(st.none() | FLOAT, max_size=8))
def test_normal_floats_keep_their_values_and_nulls(values: list[float | None]) -> None:
    column = pa.array(values, pa.float64())
    found = normal(column)
    assert found.null_count == column.null_count
    for a, b in zip(values, found.to_pylist(), strict=True):
        assert order(a, b) == 0
        assert b is None or b != 0 or math.copysign(1, b) == 1
