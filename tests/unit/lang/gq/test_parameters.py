"""Binding parameters: by declared type, all problems at once."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from omnigraph.lang.gq import ParameterError, bind_parameters
from omnigraph.lang.gq.checked import CheckedQuery
from tests.unit.lang.gq.world import checked


def query(declared: str) -> CheckedQuery:
    return checked(f"query q({declared}) {{ match {{ $p: Person }} return {{ $p }} }}")


def bind(declared: str, value: Any) -> Any:
    return bind_parameters(query(f"$x: {declared}"), {"x": value})["x"]


@pytest.mark.parametrize(
    ("declared", "value", "expected"),
    [
        ("String", "a", "a"),
        ("Bool", True, True),
        ("I32", 5, 5),
        ("I32", "-5", -5),
        ("U64", str(2**64 - 1), 2**64 - 1),
        ("F64", 1, 1.0),
        ("F32", 1.5, 1.5),
        ("Date", "2024-02-29", date(2024, 2, 29)),
        ("Date", date(2024, 2, 29), date(2024, 2, 29)),
        ("DateTime", "2024-02-29T12:00:00Z", datetime(2024, 2, 29, 12, tzinfo=UTC)),
        ("DateTime", "2024-02-29T12:00:00", datetime(2024, 2, 29, 12, tzinfo=UTC)),
        ("DateTime", "2024-02-29T12:00:00+02:00", datetime(2024, 2, 29, 10, tzinfo=UTC)),
        ("DateTime", datetime(2024, 2, 29, 12), datetime(2024, 2, 29, 12, tzinfo=UTC)),  # noqa: DTZ001
        (
            "DateTime",
            datetime(2024, 2, 29, 12, tzinfo=timezone(timedelta(hours=1))),
            datetime(2024, 2, 29, 11, tzinfo=UTC),
        ),
        ("[I32]", ["1", 2], (1, 2)),
        ("[String]", (), ()),
        ("Vector(2)", [1, 2.5], (1.0, 2.5)),
        ("Blob", b"x", b"x"),
        ("Blob", "base64:eA==", b"x"),
        ("String?", None, None),
    ],
)
def test_a_value_binds_by_its_declared_type(declared: str, value: Any, expected: Any) -> None:
    bound = bind(declared, value)
    assert bound == expected
    assert type(bound) is type(expected)


@pytest.mark.parametrize(
    ("declared", "value", "reason"),
    [
        ("String", 1, "is int where String is needed"),
        ("Bool", 1, "is int where Bool is needed"),
        ("I32", True, "is bool where I32 is needed"),
        ("I32", 1.0, "is float where I32 is needed"),
        ("I32", 2**31, "is 2147483648, and I32 goes from -2147483648 to 2147483647"),
        ("I32", "1.0", "is str where I32 is needed"),
        ("I32", "x" * 9, "is str where I32 is needed"),
        ("U32", -1, "is -1, and U32 goes from 0 to 4294967295"),
        ("F64", "1.5", "is str where F64 is needed"),
        ("F32", 1e39, "is too large for F32"),
        ("F64", 10**400, "is too large for F64"),
        ("Date", "2024-02-30", "is not a day of the calendar"),
        ("Date", "2024-02-29T00:00:00Z", "is not written as YYYY-MM-DD"),
        ("Date", datetime(2024, 1, 1, tzinfo=UTC), "is datetime where Date is needed"),
        ("DateTime", "2024", "is not written as in RFC 3339 (2024-05-31T12:00:00Z)"),
        ("DateTime", date(2024, 1, 1), "is date where DateTime is needed"),
        ("[I32]", 1, "is int where [I32] is needed"),
        ("[I32]", [None], "holds null, and lists never do"),
        ("Vector(2)", [1.0], "has 1 numbers, and a vector of 2 is needed"),
        ("Blob", "x", 'is str where Blob (bytes, or text "base64:…") is needed'),
        ("Blob", "base64:?", "is not written in base64"),
        ("String", None, "is null, and it must be a String"),
    ],
)
def test_a_wrong_value_is_named_with_its_reason(declared: str, value: Any, reason: str) -> None:
    with pytest.raises(ParameterError) as error:
        bind(declared, value)
    assert error.value.problems == (("x", reason),)


def test_all_problems_are_told_at_once() -> None:
    declared = query("$a: String, $b: I32, $c: I32")
    with pytest.raises(ParameterError) as error:
        bind_parameters(declared, {"b": "x", "c": None, "d": 1, "$a": "x"})
    assert [name for name, _ in error.value.problems] == ["a", "b", "c", "d", "$a"]
    assert error.value.problems[-1][1] == "is no parameter of this query (did you mean `$a`?)"


def test_what_is_absent_is_the_default_or_null() -> None:
    declared = query('$a: I32 = 3, $b: String?, $c: Date = "2024-01-01", $d: I32? = 4')
    expected = {"a": 3, "b": None, "c": date(2024, 1, 1), "d": 4}
    assert bind_parameters(declared, None) == expected
    given = bind_parameters(declared, {"a": None, "d": None})
    assert given == expected | {"d": None}


def test_an_enum_parameter_outside_the_set_is_no_error() -> None:
    text = "query q($s: String) { match { $p: Person { status: $s } } return { $p } }"
    assert bind_parameters(checked(text), {"s": "nothing"}) == {"s": "nothing"}
