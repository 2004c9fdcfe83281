"""Each type takes the values that are its own, exactly, and says what is wrong with any other."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum, StrEnum
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.model.arrow import arrow_type, row_schema
from omnigraph.model.types import Base, EnumType, ListType, PropertyType, VectorType
from tests.unit.plan.row_cases import EVERYTHING, one_property, shape

pd: Any = import_module("pandas")  # its types are not installed


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    SMALL = 1


NEW_YORK = timezone(timedelta(hours=-5))

ACCEPTED: list[tuple[PropertyType | Base, object, object]] = [
    (Base.STRING, "añ\U0001f600\x00", "añ\U0001f600\x00"),
    (Base.STRING, "", ""),
    (Base.STRING, Colour.RED, "red"),
    (Base.STRING, np.str_("x"), "x"),
    (EnumType(values=("a",)), "not checked here", "not checked here"),
    (Base.BOOL, True, True),
    (Base.BOOL, np.bool_(False), False),
    (Base.I32, -(2**31), -(2**31)),
    (Base.I32, Size.SMALL, 1),
    (Base.I64, np.uint8(7), 7),
    (Base.U32, 2**32 - 1, 2**32 - 1),
    (Base.U64, 2**64 - 1, 2**64 - 1),
    (Base.F64, 1, 1.0),
    (Base.F64, 2**60, float(2**60)),
    (Base.F64, math.inf, math.inf),
    (Base.F64, np.float32(0.5), 0.5),
    (Base.F32, 0.1, float(np.float32(0.1))),
    (Base.F32, 2**24 + 1, float(2**24)),
    (Base.F32, -math.inf, -math.inf),
    (Base.DATE, date(1, 1, 1), date(1, 1, 1)),
    (Base.DATE, "2024-02-29", date(2024, 2, 29)),
    (Base.DATE, 1, date(1970, 1, 2)),
    (Base.DATE, np.datetime64("2024-02-29"), date(2024, 2, 29)),
    (Base.DATETIME, datetime(2024, 1, 1, 12), datetime(2024, 1, 1, 12, tzinfo=UTC)),  # noqa: DTZ001
    (
        Base.DATETIME,
        datetime(2024, 1, 1, 22, 0, 0, 5000, tzinfo=NEW_YORK),
        datetime(2024, 1, 2, 3, 0, 0, 5000, tzinfo=UTC),
    ),
    (Base.DATETIME, "1969-12-31T23:59:59.999Z", datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)),
    (Base.DATETIME, "2024-01-01T00:00:00+01:30", datetime(2023, 12, 31, 22, 30, tzinfo=UTC)),
    (Base.DATETIME, "2024-01-01 00:00:00.5000", datetime(2024, 1, 1, 0, 0, 0, 500000, UTC)),
    (Base.DATETIME, -1, datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)),
    (Base.DATETIME, pd.Timestamp("2024-01-01", tz="UTC"), datetime(2024, 1, 1, tzinfo=UTC)),
    (Base.DATETIME, np.datetime64("2024-01-01T00:00:00", "ns"), datetime(2024, 1, 1, tzinfo=UTC)),
    (Base.DATETIME, pd.NaT, None),
    (Base.DATETIME, np.datetime64("NaT"), None),
    (Base.I32, pd.NA, None),
    (Base.BLOB, b"\x00\xff", b"\x00\xff"),
    (Base.BLOB, bytearray(b"x"), b"x"),
    (ListType(item=Base.STRING), [], []),
    (ListType(item=Base.STRING), ("a", "b"), ["a", "b"]),
    (ListType(item=Base.I32), np.array([1, 2]), [1, 2]),
    (ListType(item=Base.DATE), ["2024-01-01", 0], [date(2024, 1, 1), date(1970, 1, 1)]),
    (VectorType(dimension=2), [1, 0.5], [1.0, 0.5]),
    (VectorType(dimension=2), (1, 2), [1.0, 2.0]),
    (VectorType(dimension=2), np.array([1.5, 2.5]), [1.5, 2.5]),
    (VectorType(dimension=1), [math.inf], [math.inf]),
]


@pytest.mark.parametrize(("kind", "value", "stored"), ACCEPTED)
def test_a_value_of_the_type_is_stored_exactly(
    kind: PropertyType | Base, value: object, stored: object
) -> None:
    thing = one_property(kind)
    shaped = shape(thing, [{"p": None}, {"p": value}, {"p": None}])
    assert shaped.violations == ()
    table = shaped.groups[0].table
    assert table.schema == row_schema(thing)
    assert table.column("p").to_pylist() == [None, stored, None]


def test_nan_is_a_float_of_either_width() -> None:
    for base in (Base.F32, Base.F64):
        (value,) = (
            shape(one_property(base), {"p": math.nan}).groups[0].table.column("p").to_pylist()
        )
        assert math.isnan(value)


I32_RANGE = "a whole number from -2147483648 to 2147483647"
I64_RANGE = "a whole number from -9223372036854775808 to 9223372036854775807"
DATE_FORMS = "a date, text like 2024-05-31 or days since 1970"
DATETIME_FORMS = "a datetime to the millisecond, RFC 3339 text or milliseconds since 1970"
OFFSET = "has an offset that is not a time of day"
LOST = "has digits below a millisecond, which would be lost"
YEARS = "lies outside the years 0001 to 9999"
FINE = datetime(2024, 1, 1, 0, 0, 0, 1, UTC)

REFUSED: list[tuple[PropertyType | Base, object, str]] = [
    (Base.STRING, b"x", "a string, but it is b'x' (bytes)"),
    (Base.STRING, 1, "a string, but it is 1 (int)"),
    (
        Base.STRING,
        "a\ud800",
        'a string, but "a\\ud800" holds half of a surrogate pair, which is not Unicode text',
    ),
    (EnumType(values=("a", "b")), 1, "a string of enum(a, b), but it is 1 (int)"),
    (Base.BOOL, 1, "true or false, but it is 1 (int)"),
    (Base.BOOL, "true", 'true or false, but it is "true" (str)'),
    (Base.I32, True, f"{I32_RANGE}, but it is True (bool)"),
    (Base.I32, 3.0, f"{I32_RANGE}, but it is 3.0 (float)"),
    (Base.I32, "3", f'{I32_RANGE}, but it is "3" (str)'),
    (Base.I32, 2**31, f"{I32_RANGE}, but 2147483648 is out of range"),
    (Base.I64, 10**5000, f"{I64_RANGE}, but an integer of 16610 bits is out of range"),
    (Base.I64, Decimal(3), f"{I64_RANGE}, but it is Decimal('3') (Decimal)"),
    (Base.U32, -1, "a whole number from 0 to 4294967295, but -1 is out of range"),
    (
        Base.F64,
        2**53 + 1,
        "a number that F64 can hold, but 9007199254740993 has no exact floating-point form",
    ),
    (
        Base.F64,
        10**400,
        "a number that F64 can hold, but an integer of 1329 bits is out of range",
    ),
    (Base.F64, True, "a number that F64 can hold, but it is True (bool)"),
    (Base.F64, "1.0", 'a number that F64 can hold, but it is "1.0" (str)'),
    (Base.F32, 1e300, "a number that F32 can hold, but 1e+300 is out of range"),
    (Base.DATE, FINE, f"{DATE_FORMS}, but it is 2024-01-01T00:00:00.000001+00:00 (datetime)"),
    (
        Base.DATE,
        "2024-01-01T00:00:00",
        f'{DATE_FORMS}, but "2024-01-01T00:00:00" is not written as YYYY-MM-DD',
    ),
    (Base.DATE, "2023-02-29", f'{DATE_FORMS}, but "2023-02-29" is not a day of the calendar'),
    (Base.DATE, 10**7, f"{DATE_FORMS}, but 10000000 {YEARS}"),
    (Base.DATE, True, f"{DATE_FORMS}, but it is True (bool)"),
    (Base.DATETIME, FINE, f"{DATETIME_FORMS}, but 2024-01-01T00:00:00.000001+00:00 {LOST}"),
    (
        Base.DATETIME,
        "2024-01-01T00:00:00.0001Z",
        f'{DATETIME_FORMS}, but "2024-01-01T00:00:00.0001Z" {LOST}',
    ),
    (
        Base.DATETIME,
        "2024-01-01",
        f'{DATETIME_FORMS}, but "2024-01-01" is not written as in RFC 3339 (2024-05-31T12:00:00Z)',
    ),
    (
        Base.DATETIME,
        "2024-01-01T25:00:00Z",
        f'{DATETIME_FORMS}, but "2024-01-01T25:00:00Z" is not a moment of the calendar',
    ),
    (
        Base.DATETIME,
        "2024-01-01T00:00:00+24:00",
        f'{DATETIME_FORMS}, but "2024-01-01T00:00:00+24:00" {OFFSET}',
    ),
    (
        Base.DATETIME,
        "0001-01-01T00:00:00+01:00",
        f'{DATETIME_FORMS}, but "0001-01-01T00:00:00+01:00" {YEARS}',
    ),
    (
        Base.DATETIME,
        pd.Timestamp("2024-01-01") + pd.Timedelta(1, "ns"),
        f"{DATETIME_FORMS}, but a Timestamp {LOST}",
    ),
    (Base.DATETIME, date(2024, 1, 1), f"{DATETIME_FORMS}, but it is 2024-01-01 (date)"),
    (Base.DATETIME, 10**15, f"{DATETIME_FORMS}, but {10**15} {YEARS}"),
    (Base.BLOB, "x", 'bytes, but it is "x" (str)'),
    (ListType(item=Base.I32), 1, f"a list, each item {I32_RANGE}, but it is 1 (int)"),
    (ListType(item=Base.STRING), "ab", 'a list, each item a string, but it is "ab" (str)'),
    (ListType(item=Base.STRING), {"a"}, "a list, each item a string, but it is a set"),
    (VectorType(dimension=2), [1.0], "a list of 2 numbers, but it has 1 number"),
    (VectorType(dimension=1), [1.0, 2.0], "a list of 1 number, but it has 2 numbers"),
    (VectorType(dimension=2), "ab", 'a list of 2 numbers, but it is "ab" (str)'),
    (VectorType(dimension=2), np.eye(2), "a list of 2 numbers, but it is a ndarray"),
]


@pytest.mark.parametrize(("kind", "value", "sentence"), REFUSED, ids=range(len(REFUSED)))
def test_any_other_value_is_refused_with_what_would_be_right(
    kind: PropertyType | Base, value: object, sentence: str
) -> None:
    shaped = shape(one_property(kind), [{"p": value}, {"p": None}])
    (found,) = shaped.violations
    assert found.message == f"`p` of Thing must be {sentence}."
    assert found.rule == ("vector" if isinstance(kind, VectorType) else "type")
    assert (found.row, found.property, found.type) == (0, "p", "Thing")
    assert shaped.groups[0].positions.tolist() == [1]


@pytest.mark.parametrize(
    ("kind", "value", "sentence"),
    [
        (
            ListType(item=Base.STRING),
            ["a", None],
            "`p[1]` of Thing must be a string, but it is null.",
        ),
        (
            ListType(item=Base.STRING),
            ["a", 3, 4],
            "`p[1]` of Thing must be a string, but it is 3 (int).",
        ),
        (
            VectorType(dimension=3),
            [1.0, None, "x"],
            "`p[1]` of Thing must be a number that F32 can hold, but it is null.",
        ),
        (
            VectorType(dimension=2),
            [1.0, "x"],
            '`p[1]` of Thing must be a number that F32 can hold, but it is "x" (str).',
        ),
        (
            VectorType(dimension=2),
            np.array([1.0, 1e300]),
            "`p[1]` of Thing must be a number that F32 can hold, but 1e+300 is out of range.",
        ),
    ],
)
def test_an_item_that_does_not_fit_is_named_by_its_place(
    kind: PropertyType, value: object, sentence: str
) -> None:
    good = [0.5] * kind.dimension if isinstance(kind, VectorType) else ["x"]
    shaped = shape(
        one_property(kind),
        [{"p": None}, {"p": []} if good == ["x"] else {}, {"p": value}, {"p": good}],
    )
    (found,) = shaped.violations
    assert (found.message, found.row) == (sentence, 2)
    assert shaped.groups[0].positions.tolist() == [0, 1, 3]
    assert shaped.groups[0].table.column("p").to_pylist()[2] == good


def test_a_value_is_shown_short_and_without_control_characters() -> None:
    (found,) = shape(one_property(Base.I32), {"p": "\x1b[31m" + "x" * 1_000_000}).violations
    assert found.value is not None
    assert len(found.value) < 100
    assert len(found.message) < 250
    assert found.message.isprintable()


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("do not print me")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("do not compare me")

    __hash__ = None  # type: ignore[assignment]


def test_a_foreign_object_is_named_by_its_type_and_never_asked() -> None:
    for base in Base:
        (found,) = shape(one_property(base), {"p": Hostile()}).violations
        assert found.message.endswith("but it is a Hostile.")


endless: list[object] = []
endless.append(endless)

garbage = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(2**70), max_value=2**70),
    st.floats(),
    st.text(st.characters(), max_size=5),
    st.sampled_from(
        ["\ud800", "2024-01-01", "2024-01-01T00:00:00Z", "NaN", "1", "'; DROP TABLE x"]
    ),
    st.binary(max_size=4),
    st.dates(),
    st.datetimes(timezones=st.none() | st.timezones()),
    st.timedeltas(),
    st.decimals(),
    st.complex_numbers(),
    st.just(Hostile()),
    st.just(endless),
    st.just(np.float64("nan")),
    st.just(np.longdouble(1)),
    st.just(np.eye(2)),
    st.just(np.array(3)),
    st.just(np.datetime64("2024-01-01T00:00:00.123456789")),
    st.just(np.timedelta64(1, "s")),
    st.just(pd.NaT),
    st.just(pd.NA),
    st.just({"a": 1}),
    st.just({1}),
    st.just(int),
)
values = garbage | st.lists(garbage, max_size=4) | st.tuples(garbage, garbage, garbage)
names = [p.name for p in EVERYTHING.properties]
garbage_rows = st.lists(
    st.dictionaries(st.sampled_from([*names, "id"]) | st.text(max_size=3), values, max_size=8)
    | garbage.filter(lambda v: not isinstance(v, dict)),
    max_size=6,
)


@given(garbage_rows, st.booleans())
def test_garbage_is_told_and_never_raises(rows: list[object], complete: bool) -> None:
    shaped = shape(EVERYTHING, rows, complete=complete)
    told = {v.row for v in shaped.violations}
    kept = [int(i) for g in shaped.groups for i in g.positions]
    assert not told.intersection(kept)
    unknown = any(v.rule == "unknown_property" for v in shaped.violations)
    assert unknown or sorted((*told, *kept)) == list(range(len(rows)))  # type: ignore[type-var]
    for group in shaped.groups:
        group.table.validate(full=True)
        assert group.table.num_rows == len(group.positions)
        assert group.table.column("id").null_count == 0


@given(st.sampled_from(list(Base)), values)
def test_a_value_fits_alone_exactly_when_it_fits_beside_one_that_must_be_looked_at(
    base: Base, value: object
) -> None:
    """The quick way for columns of plain values agrees with the way value by value."""
    odd = {Base.STRING: np.str_("x"), Base.BOOL: np.bool_(True), Base.BLOB: bytearray(b"x")}
    other = odd.get(base, np.int64(1))
    alone = shape(one_property(base), [{"p": value}])
    beside = shape(one_property(base), [{"p": value}, {"p": other}])
    assert [v.message for v in alone.violations] == [v.message for v in beside.violations]
    if not alone.violations:
        one, two = (s.groups[0].table.column("p") for s in (alone, beside))
        assert one.type == two.type == arrow_type(one_property(base).properties[0].type)
        assert str(one.to_pylist()[0]) == str(two.to_pylist()[0])
