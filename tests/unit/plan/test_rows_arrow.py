"""Arrow columns of other types are taken over where nothing is lost, and refused elsewhere."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.model.arrow import row_schema
from omnigraph.model.types import (
    Base,
    EnumType,
    ListType,
    PropertyType,
    ScalarType,
    VectorType,
)
from omnigraph.plan.rows.convert import convert_values
from tests.unit.plan.row_cases import PERSON, one_property, shape

STRINGS = ListType(item=Base.STRING)
PAIR = VectorType(dimension=2)
DAY = date(2024, 1, 1)
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp()) * 1000


def uuid_column() -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"x" * 16], pa.binary(16)))


TAKEN: list[tuple[PropertyType | Base, pa.Array, list[object]]] = [
    (Base.STRING, pa.array(["a", None], pa.large_string()), ["a", None]),
    (Base.STRING, pa.array(["a", None], pa.string_view()), ["a", None]),
    (Base.STRING, pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
    (
        Base.STRING,
        pa.DictionaryArray.from_arrays(pa.array([0, None]), pa.array(["a"], pa.string_view())),
        ["a", None],
    ),
    (
        Base.STRING,
        pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", None])),
        ["a", "a", None],
    ),
    (EnumType(values=("a",)), pa.array(["a"], pa.large_string()), ["a"]),
    (Base.I32, pa.array([-1, None], pa.int64()), [-1, None]),
    (Base.I64, pa.array([2**63 - 1], pa.uint64()), [2**63 - 1]),
    (Base.U64, pa.array([1], pa.int8()), [1]),
    (Base.F64, pa.array([0.5], pa.float16()), [0.5]),
    (Base.F64, pa.array([2**60, -(2**63)], pa.int64()), [float(2**60), -float(2**63)]),
    (Base.F64, pa.array([2**63], pa.uint64()), [float(2**63)]),
    (Base.F32, pa.array([0.1, math.inf], pa.float64()), [float(np.float32(0.1)), math.inf]),
    (Base.DATE, pa.array([DAY], pa.date64()), [DAY]),
    (Base.DATE, pa.array(["2024-01-01", None, "2024-01-01"]), [DAY, None, DAY]),
    (Base.DATE, pa.array([0], pa.int64()), [date(1970, 1, 1)]),
    (Base.DATETIME, pa.array([NOON], pa.timestamp("s", "UTC")), [NOON]),
    (Base.DATETIME, pa.array([NOON], pa.timestamp("us", "Europe/Berlin")), [NOON]),
    (Base.DATETIME, pa.array([NOON, None], pa.timestamp("ns")), [NOON, None]),
    (Base.DATETIME, pa.array([NOON_MS], pa.int64()), [NOON]),
    (Base.DATETIME, pa.array(["2024-01-01T13:00:00+01:00"], pa.string_view()), [NOON]),
    (Base.BLOB, pa.array([b"x"], pa.binary()), [b"x"]),
    (Base.BLOB, pa.array([b"x", None], pa.binary_view()), [b"x", None]),
    (Base.BLOB, pa.array([b"xx"], pa.binary(2)), [b"xx"]),
    (STRINGS, pa.array([["a"], None, []], pa.large_list(pa.large_string())), [["a"], None, []]),
    (STRINGS, pa.array([["a"], None], pa.list_view(pa.string_view())), [["a"], None]),
    (STRINGS, pa.array([["a", "b"]], pa.list_(pa.string(), 2)), [["a", "b"]]),
    (STRINGS, pa.array([[], []], pa.list_(pa.null())), [[], []]),
    (PAIR, pa.array([[1.0, 2.0], None], pa.list_(pa.float64())), [[1.0, 2.0], None]),
    (PAIR, pa.array([None, [1, 2]], pa.list_(pa.int8(), 2)), [None, [1.0, 2.0]]),
    (PAIR, pa.array([None, None], pa.null()), [None, None]),
    (Base.I32, pa.array([None], pa.string()), [None]),
]
TAKEN += [(base, pa.nulls(2), [None, None]) for base in Base]


@pytest.mark.parametrize(("kind", "array", "stored"), TAKEN, ids=range(len(TAKEN)))
def test_a_column_that_loses_nothing_is_taken(
    kind: PropertyType | Base, array: pa.Array, stored: list[object]
) -> None:
    thing = one_property(kind)
    doubled = pa.chunked_array([array, array])
    for column in (pa.chunked_array([array]), doubled.slice(1), doubled):
        shaped = shape(thing, pa.table({"p": column}))
        assert shaped.violations == ()
        table = shaped.groups[0].table
        table.validate(full=True)
        assert table.schema == row_schema(thing)
        assert table.column("p").to_pylist() == (stored + stored)[-len(column) :]


LOST = "has digits below a millisecond, which would be lost"
YEARS = "lies outside the years 0001 to 9999"
BROKEN = pa.StringArray.from_buffers(
    2, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"a\xff")
)
HALF = pa.array([NOON_MS * 1000, 1], pa.int64()).cast(pa.timestamp("us"))

REFUSED: list[tuple[PropertyType | Base, pa.Array, str]] = [
    (Base.I32, pa.array([0, 2**31], pa.int64()), "but 2147483648 is out of range."),
    (Base.U32, pa.array([0, -1], pa.int8()), "but -1 is out of range."),
    (Base.I64, pa.array([0, 2**63], pa.uint64()), f"but {2**63} is out of range."),
    (Base.U64, pa.array([0, -1], pa.int64()), "but -1 is out of range."),
    (Base.F64, pa.array([0, 2**53 + 1]), f"but {2**53 + 1} has no exact floating-point form."),
    (
        Base.F64,
        pa.array([0, -(2**53) - 1]),
        f"but {-(2**53) - 1} has no exact floating-point form.",
    ),
    (Base.F32, pa.array([0.0, -1e39]), "but -1e+39 is out of range."),
    (Base.STRING, BROKEN, "but b'\\xff' is not valid UTF-8."),
    (Base.DATE, pa.array(["2024-01-01", "x"]), 'but "x" is not written as YYYY-MM-DD.'),
    (Base.DATE, pa.array([0, 10**9]), f"but 1000000000 {YEARS}."),
    (Base.DATE, pa.array([0, 1], pa.int64()).cast(pa.date64()), "is not the start of a day."),
    (Base.DATETIME, HALF, f"but 1970-01-01T00:00:00.000001 {LOST}."),
    (Base.DATETIME, pa.array([0, 2**60]), f"but {2**60} {YEARS}."),
    (Base.DATETIME, pa.array([0, 2**60]).cast(pa.timestamp("ms")), f"{YEARS}."),
    (Base.DATETIME, pa.array([0, 2**60]).cast(pa.timestamp("s")), f"{YEARS}."),
    (Base.DATETIME, pa.array(["2024-01-01T00:00:00Z", "now"]), "is not written as in RFC 3339"),
    (STRINGS, pa.array([["a"], ["b", None]]), "`p[1]` of Thing must be a string, but it is null."),
    (PAIR, pa.array([[1.0, 2.0], [1.0]]), "must be a list of 2 numbers, but it has 1 number."),
    (PAIR, pa.array([[1.0, 2.0], []]), "must be a list of 2 numbers, but it has 0 numbers."),
    (PAIR, pa.array([[1.0, 2.0], [None, 1.0]]), "`p[0]` of Thing must be a number that F32"),
    (ListType(item=Base.I32), pa.array([[1], [2, 2**40]]), "but 1099511627776 is out of range."),
]


@pytest.mark.parametrize(("kind", "array", "message"), REFUSED, ids=range(len(REFUSED)))
def test_a_value_that_would_lose_something_is_refused_by_itself(
    kind: PropertyType | Base, array: pa.Array, message: str
) -> None:
    column = pa.chunked_array([array.slice(0, 1), array])
    shaped = shape(one_property(kind), pa.table({"p": column}))
    (found,) = shaped.violations
    assert message in found.message
    assert (found.row, found.property) == (2, "p")
    assert shaped.groups[0].positions.tolist() == [0, 1]
    shaped.groups[0].table.validate(full=True)


@pytest.mark.parametrize(
    ("kind", "array"),
    [
        (Base.STRING, pa.array([b"x"])),
        (Base.STRING, pa.array([1])),
        (Base.STRING, pa.array([DAY])),
        (Base.STRING, uuid_column()),
        (Base.BOOL, pa.array([1])),
        (Base.I32, pa.array([True])),
        (Base.I32, pa.array([1.0])),
        (Base.I32, pa.array(["1"])),
        (Base.I32, pa.array([Decimal(1)])),
        (Base.F64, pa.array(["1"])),
        (Base.F64, pa.array([True])),
        (Base.DATE, pa.array([NOON])),
        (Base.DATETIME, pa.array([DAY])),
        (Base.BLOB, pa.array(["x"])),
        (STRINGS, pa.array(["x"])),
        (STRINGS, pa.array([[1]])),
        (PAIR, pa.array([["a", "b"]])),
        (PAIR, pa.array([{"a": 1}])),
    ],
)
def test_a_column_of_another_type_is_one_violation(
    kind: PropertyType | Base, array: pa.Array
) -> None:
    column = pa.chunked_array([array, array, array])
    shaped = shape(one_property(kind), pa.table({"p": column}))
    (found,) = shaped.violations
    assert found.message.endswith(f"but the column holds {array.type}.")
    assert shaped.more == 0
    assert shaped.groups[0].table.num_rows == 0


def test_a_column_of_another_type_is_told_in_full() -> None:
    (found,) = shape(PERSON, pa.table({"name": ["Ann"], "age": ["x"]})).violations
    assert found.message == (
        "`age` of Person must be a whole number from -2147483648 to 2147483647, "
        "but the column holds string."
    )
    assert (found.id, found.value, found.row, found.rule) == ("Ann", '"x"', 0, "type")


EXOTIC: list[pa.Array] = [
    pa.array([{"a": 1}]),
    pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())),
    pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
    pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])]),
    pa.array([1], pa.duration("s")),
    pa.array([1], pa.time32("s")),
    pa.array([1], pa.time64("ns")),
    pa.array([Decimal(1)], pa.decimal256(50, 3)),
    pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    pa.array([[[1.0]]]),
    pa.array([[1.0]], pa.large_list_view(pa.float16())),
    pa.array([1.5], pa.float16()),
    pa.array([2**62], pa.timestamp("ns", "UTC")),
    pa.array([-(2**63)], pa.int64()).cast(pa.timestamp("s")),
    pa.array([2**31 - 1], pa.int32()).cast(pa.date32()),
    pa.array([b"x" * 16]).dictionary_encode(),
    pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array([1])),
    uuid_column(),
    pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8())),
    pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((1, 2), dtype=np.float32)),
    BROKEN.slice(1),
    BROKEN.slice(1).dictionary_encode(),
    pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), BROKEN.slice(1)),
    pa.array(["x"], pa.large_string()).cast(pa.string_view()),
]
KINDS: list[PropertyType] = [
    *(ScalarType(base) for base in Base),
    *(ListType(item=base) for base in Base),
    EnumType(values=("a",)),
    PAIR,
]


@pytest.mark.parametrize("array", EXOTIC, ids=range(len(EXOTIC)))
def test_any_column_is_taken_or_told_but_never_raises(array: pa.Array) -> None:
    for kind in KINDS:
        column = pa.chunked_array([array, array])
        shaped = shape(one_property(kind), pa.table({"p": column}))
        assert shaped.groups[0].table.num_rows == (0 if shaped.violations else 2)
        shaped.groups[0].table.validate(full=True)


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)), st.sampled_from(list(Base)))
def test_integers_of_arrow_are_judged_like_those_of_python(
    values: list[int | None], base: Base
) -> None:
    if base in (Base.STRING, Base.BOOL, Base.BLOB):
        return
    thing = one_property(base)
    by_arrow = shape(thing, pa.table({"p": pa.array(values, pa.int64())}))
    by_python = shape(thing, [{"p": v} for v in values])
    assert by_arrow.groups[0].table.column("p").to_pylist() == (
        by_python.groups[0].table.column("p").to_pylist()
    )
    assert [v.message for v in by_arrow.violations] == [v.message for v in by_python.violations]


@given(st.lists(st.none() | st.floats()))
def test_floats_of_arrow_are_judged_like_those_of_python(values: list[float | None]) -> None:
    thing = one_property(Base.F32)
    by_arrow = shape(thing, pa.table({"p": pa.array(values, pa.float64())}))
    by_python = shape(thing, [{"p": v} for v in values])
    assert str(by_arrow.groups[0].table.column("p").to_pylist()) == str(
        by_python.groups[0].table.column("p").to_pylist()
    )
    assert [v.message for v in by_arrow.violations] == [v.message for v in by_python.violations]


def test_a_u64_of_spark_is_a_decimal() -> None:
    def given(numbers: list[Decimal | None], base: Base, digits: int = 20) -> Any:
        column = pa.array(numbers, pa.decimal128(digits))
        return shape(one_property(base), pa.table({"p": column}))

    held = given([Decimal(2**64 - 1), None, Decimal(0)], Base.U64)
    assert held.groups[0].table.column("p").to_pylist() == [2**64 - 1, None, 0]
    for number in (-1, 2**64):
        (violation,) = given([Decimal(number)], Base.U64).violations
        assert f'"{number}" is out of range' in violation.message
    assert given([Decimal(1)], Base.I64).violations
    assert given([Decimal(1)], Base.U64, digits=19).violations


def test_an_empty_chunk_of_another_type_is_no_violation() -> None:
    for kind in KINDS:
        for column in (pa.array([], pa.decimal128(5)), pa.chunked_array([], pa.time32("s"))):
            assert shape(one_property(kind), pa.table({"p": column})).violations == ()


def test_conversion_alone_marks_what_does_not_fit_as_null() -> None:
    done = convert_values([1, "x", 3], ScalarType(Base.I32))
    assert done.array.to_pylist() == [1, None, 3]
    assert done.bad.tolist() == [1]
