"""The oracle itself, on values that were worked out by hand."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.lang.gq import bind_parameters
from omnigraph.model.catalog import NodeType
from omnigraph.model.identity import derive_id
from omnigraph.model.types import Base, ScalarType
from tests.model import query_values as v
from tests.model.query_data import catalog_of, read_dataset
from tests.model.query_executors import compiled, expected_answer
from tests.model.query_oracle import evaluate
from tests.model.query_paths import World
from tests.model.query_results import difference, plain

I64, U64, F64 = (ScalarType(base) for base in (Base.I64, Base.U64, Base.F64))
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1, 1.0, 0),
        (2**53 + 1, 2.0**53, 0),
        (2**53 + 1, 2**53, 1),
        (-1, 2**64 - 1, -1),
        (NAN, NAN, 0),
        (NAN, INF, 1),
        (-INF, NAN, -1),
        (0.0, -0.0, 0),
        ("Z", "a", -1),
        ("\uffff", "\U00010000", -1),
        (date(2024, 1, 1), date(2023, 12, 31), 1),
    ],
)
def test_values_are_ordered(left: Any, right: Any, expected: int) -> None:
    assert v.ordering(left, right) == expected
    assert v.ordering(right, left) == -expected


def test_membership_is_a_chain_of_equalities() -> None:
    assert v.membership(1, (2, 1, None)) is True
    assert v.membership(1, (2, None)) is None
    assert v.membership(1, (2, 3)) is False
    assert v.membership(None, (1,)) is None
    assert v.membership(None, ()) is False
    assert v.membership(1, None) is None
    assert v.membership(NAN, (1.0, NAN)) is True


@pytest.mark.parametrize(
    ("operator", "left", "right", "kind", "expected"),
    [
        ("%", -7, 3, I64, -1),
        ("%", 7, -3, I64, 1),
        ("%", -(2**63), -1, I64, 0),
        ("%", 5, 0, I64, None),
        ("%", -7.5, 2, F64, -1.5),
        ("%", 1.0, INF, F64, 1.0),
        ("/", 7, 2, F64, 3.5),
        ("/", 1.0, -0.0, F64, None),
        ("+", 2**63, 5, U64, 2**63 + 5),
        ("-", None, 5, U64, None),
        ("*", 1e308, 10, F64, INF),
    ],
)
def test_arithmetic(operator: str, left: Any, right: Any, kind: Any, expected: Any) -> None:
    assert plain(v.arithmetic(operator, left, right, kind)) == plain(expected)


@pytest.mark.parametrize(
    ("operator", "left", "right", "kind"),
    [("+", 2**63 - 1, 1, I64), ("-", 0, 1, U64), ("*", 2**40, 2**40, I64), ("-", -(2**63), 1, I64)],
)
def test_overflow_is_an_error(operator: str, left: int, right: int, kind: ScalarType) -> None:
    with pytest.raises(v.EvaluationError):
        v.arithmetic(operator, left, right, kind)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(2.5, 3.0), (-2.5, -3.0), (0.49999999999999994, 0.0), (2.0**52 + 1, 2.0**52 + 1), (1.4, 1.0)],
)
def test_rounding_goes_half_away_from_zero(value: float, expected: float) -> None:
    assert v.function("round", [value], F64, F64) == expected


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([Base.F32, Base.F64]))
def test_numbers_are_written_as_identity_writes_them(value: float, base: Base) -> None:
    number = v.narrowed(value) if base is Base.F32 else value
    if math.isinf(number):
        return
    kind = catalog_of(f"node N {{ k: {base.value} @key }}").nodes[0]
    assert isinstance(kind, NodeType)
    assert v.number_text(number, base) == derive_id(kind, {"k": number})


def test_aggregates_leave_nulls_out() -> None:
    assert v.aggregate("count", [None, 1, 1], I64) == 2
    assert v.aggregate("sum", [], I64) is None
    assert v.aggregate("avg", [1, 2], F64) == 1.5
    assert v.aggregate("min", [NAN, 2.0], F64) == 2.0
    assert math.isnan(v.aggregate("max", [NAN, 2.0], F64))
    assert v.aggregate("collect", [None, 1], I64) == (1,)
    with pytest.raises(v.EvaluationError):
        v.aggregate("sum", [2**63 - 1, 1], I64)


def test_instants_are_written_with_milliseconds_only_where_there_are_some() -> None:
    assert v.instant_text(datetime(1, 2, 3, tzinfo=UTC)) == "0001-02-03T00:00:00Z"
    assert v.instant_text(datetime(2024, 2, 3, 4, 5, 6, 7000, tzinfo=UTC)).endswith(":06.007Z")


RING = read_dataset(
    "node N { name: String @key }  edge E: N -> N",
    [f'{{"type": "N", "data": {{"name": "{n}"}}}}' for n in "abcd"]
    + [f'{{"edge": "E", "from": "{a}", "to": "{b}"}}' for a, b in ("ab", "bc", "cd", "da", "cc")],
)


@pytest.mark.parametrize(
    ("bounds", "start", "expected"),
    [
        ("{1,3}", "a", "bcd"),
        ("{1,9}", "a", "bcd"),
        ("{0,9}", "a", "abcd"),
        ("{2}", "a", "c"),
        ("{4}", "a", ""),
        ("{1,2}", "c", "cda"),
        ("{2,9}", "c", "ab"),
        ("{0}", "c", "c"),
        ("", "c", "cd"),
    ],
)
def test_distances_on_a_ring_with_a_loop(bounds: str, start: str, expected: str) -> None:
    text = f'match {{ $s: N {{ name: "{start}" }}  $s e{bounds} $t }} return {{ $t.name }}'
    answer = expected_answer(RING, compiled(RING, text), {})
    assert sorted(row[0] for row in answer.rows) == sorted(expected)


def test_an_error_counts_only_for_rows_that_nothing_else_drops() -> None:
    data = read_dataset(
        "node N { x: I64 ok: Bool }",
        [
            '{"type": "N", "data": {"x": 9223372036854775807, "ok": false}}',
            '{"type": "N", "data": {"x": 1, "ok": true}}',
        ],
    )
    kept = compiled(data, "match { $n: N  $n.x + 1 > 0  $n.ok = true } return { $n.x }")
    assert expected_answer(data, kept, {}).rows == [(1,)]
    shortcut = compiled(data, "match { $n: N  ($n.x + 1 > 0 or $n.ok = false) } return { $n.x }")
    assert len(expected_answer(data, shortcut, {}).rows) == 2
    fails = compiled(data, "match { $n: N  $n.x + 1 > 0 } return { $n.x }")
    with pytest.raises(v.EvaluationError):
        expected_answer(data, fails, {})


def test_now_is_what_the_caller_says() -> None:
    data = read_dataset("node N { x: I64? }", ['{"type": "N"}'])
    query = compiled(data, "match { $n: N } return { now() as t }")
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    assert evaluate(query, data.world(), bind_parameters(query, {}), moment).rows == [(moment,)]


def test_a_world_of_plain_dicts_is_enough() -> None:
    catalog = "node N { name: String @key }  edge E: N -> N"
    data = read_dataset(catalog, [])
    world = World(
        {"N": {"a": {"name": "a"}, "b": {"name": "b"}}},
        {"E": [{"id": "e", "src": "a", "dst": "b"}]},
    )
    query = compiled(data, "match { $x: N  $x e $y } return { $x.@id, $y.name }")
    assert evaluate(query, world, {}).rows == [("a", "b")]


DATA = read_dataset(
    "node N { name: String @key f: F64? }",
    ['{"type": "N", "data": {"name": "a", "f": NaN}}', '{"type": "N", "data": {"name": "b"}}'],
)


@pytest.mark.parametrize(
    ("rest", "rows", "is_same"),
    [
        ("{ $n.f }", [{"n.f": None}, {"n.f": NAN}], True),
        ("{ $n.f }", [{"n.f": NAN}, {"n.f": NAN}], False),
        ("{ $n.f }", [{"n.f": NAN}], False),
        ("{ $n.f as g }", [{"n.f": None}, {"n.f": NAN}], False),
        ("{ $n.name } order { $n.name }", [{"n.name": "b"}, {"n.name": "a"}], False),
        ("{ $n.name } order { $n.name }", [{"n.name": "a"}, {"n.name": "b"}], True),
        ("{ $n.name } limit 1", [{"n.name": "b"}], True),
        ("{ $n.name } limit 1", [{"n.name": "c"}], False),
        ("{ collect($n.name) as l }", [{"l": ["b", "a"]}], True),
        ("{ collect($n.name) as l }", [{"l": ["a", "a"]}], False),
        ("{ count($n) as c }", [{"c": 2.0}], False),
        ("{ $n } order { $n.name } limit 1", [{"n": {"@id": "a", "name": "a", "f": NAN}}], True),
        ("{ $n } order { $n.name } limit 1", [{"n": {"@id": "a", "name": "b", "f": NAN}}], False),
    ],
)
def test_results_are_compared_by_meaning(
    rest: str, rows: list[dict[str, Any]], is_same: bool
) -> None:
    query = compiled(DATA, f"match {{ $n: N }} return {rest}")
    found = difference(query, expected_answer(DATA, query, {}), rows)
    assert (found is None) == is_same, found
