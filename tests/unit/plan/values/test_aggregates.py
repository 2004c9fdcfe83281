"""Aggregates against plain Python, with rows that count several times."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import ValueOutOfRange
from omnigraph.plan.values.aggregates import aggregate

GROUPS = 3
INTEGERS = st.sampled_from([0, 1, -1, 7, 2**53, 2**53 + 1, 2**62, -(2**62), 2**63 - 1, -(2**63)])
UNSIGNED = st.sampled_from([0, 1, 2**53 + 1, 2**63, 2**64 - 1])
FLOATS = st.sampled_from([0.0, -0.0, 0.5, -2.5, 1e300, math.inf, -math.inf, math.nan])

Row = tuple[Any, int, int]
"""A value, its group, and how often it counts."""


def rows(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Row]]:
    return st.lists(
        st.tuples(st.none() | values, st.integers(0, GROUPS - 1), st.integers(1, 4)), max_size=15
    )


def run(function: str, kind: pa.DataType, given: list[Row], *, distinct: bool) -> list[Any]:
    values = pa.array([value for value, _, _ in given], kind)
    groups = np.array([group for _, group, _ in given], np.int64)
    counts = np.array([often for _, _, often in given], np.int64)
    found = aggregate(function, values, groups, GROUPS, counts, distinct=distinct)
    assert len(found) == GROUPS
    once = all(often == 1 for _, _, often in given)
    if once and not distinct:
        bare = aggregate(function, values, groups, GROUPS, None, distinct=False)
        assert repr(bare.to_pylist()) == repr(found.to_pylist())
    listed: list[Any] = found.to_pylist()
    return listed


def key(value: Any) -> Any:
    """Equal for values that are."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


def members(given: list[Row], group: int, *, distinct: bool) -> list[Any]:
    held = [v for v, g, n in given for _ in range(n) if g == group and v is not None]
    return list({key(v): v for v in held}.values()) if distinct else held


@given(rows(INTEGERS), st.booleans())
def test_counts_and_lists_hold_each_row_as_often_as_it_counts(
    given: list[Row], distinct: bool
) -> None:
    counted = run("count", pa.int64(), given, distinct=distinct)
    listed = run("collect", pa.int64(), given, distinct=distinct)
    for group in range(GROUPS):
        wanted = members(given, group, distinct=distinct)
        assert counted[group] == len(wanted)
        assert sorted(listed[group]) == sorted(wanted)


@given(rows(FLOATS))
def test_distinct_floats_are_those_that_differ(given: list[Row]) -> None:
    counted = run("count", pa.float64(), given, distinct=True)
    for group in range(GROUPS):
        assert counted[group] == len({key(v) for v in members(given, group, distinct=False)})


@pytest.mark.parametrize(
    ("kind", "values"), [(pa.int64(), INTEGERS), (pa.uint64(), UNSIGNED)], ids=str
)
@given(data=st.data(), distinct=st.booleans())
def test_integers_add_exactly_or_not_at_all(
    kind: pa.DataType, values: st.SearchStrategy[int], data: st.DataObject, distinct: bool
) -> None:
    given = data.draw(rows(values))
    totals = [members(given, group, distinct=distinct) for group in range(GROUPS)]
    averages = run("avg", kind, given, distinct=distinct)
    for found, held in zip(averages, totals, strict=True):
        if held:  # a large total is rounded once before it is divided
            assert math.isclose(found, float(Fraction(sum(held), len(held))), rel_tol=1e-15)
        else:
            assert found is None
    if any(held and not -(2**63) <= sum(held) < 2**63 for held in totals):
        with pytest.raises(ValueOutOfRange):
            run("sum", kind, given, distinct=distinct)
    else:
        sums = run("sum", kind, given, distinct=distinct)
        assert sums == [sum(held) if held else None for held in totals]


@given(rows(FLOATS), st.booleans())
def test_floats_add_as_floats(given: list[Row], distinct: bool) -> None:
    sums = run("sum", pa.float64(), given, distinct=distinct)
    averages = run("avg", pa.float64(), given, distinct=distinct)
    for group in range(GROUPS):
        held = members(given, group, distinct=distinct)
        if not held:
            assert sums[group] is None
            assert averages[group] is None
        elif any(math.isnan(v) for v in held) or {math.inf, -math.inf} <= set(held):
            assert math.isnan(sums[group])
        elif math.inf in held or -math.inf in held:
            assert sums[group] == (math.inf if math.inf in held else -math.inf)
        else:
            assert math.isclose(sums[group], math.fsum(held), rel_tol=1e-12)
            assert math.isclose(averages[group], math.fsum(held) / len(held), rel_tol=1e-12)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), INTEGERS),
        (pa.uint64(), UNSIGNED),
        (pa.float64(), FLOATS),
        (pa.float32(), st.sampled_from([0.0, 0.5, -2.5, math.inf, math.nan])),
        (pa.string(), st.sampled_from(["", "a", "B", "ä", "\U0001f600", "\uffff"])),
        (pa.bool_(), st.booleans()),
        (pa.date32(), st.dates()),
        (pa.timestamp("ms", "UTC"), st.integers(-5, 5)),
    ],
    ids=str,
)
@given(data=st.data())
def test_the_least_and_the_greatest_are_of_the_group(
    kind: pa.DataType, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    given = [
        (pa.scalar(value, kind).as_py(), group, often)
        for value, group, often in data.draw(rows(values))
    ]

    def above_all(value: Any) -> tuple[bool, Any]:
        odd = isinstance(value, float) and math.isnan(value)
        return odd, 0.0 if odd else value

    for function, choose in (("min", min), ("max", max)):
        found = run(function, kind, given, distinct=False)
        for group in range(GROUPS):
            held = members(given, group, distinct=False)
            wanted = choose(held, key=above_all) if held else None
            assert key(found[group]) == key(wanted)
