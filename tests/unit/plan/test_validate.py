"""The rules that a row must obey by itself, and the texts by which values are compared."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omnigraph.model.arrow import arrow_type, row_schema
from omnigraph.model.catalog import GraphType, NodeType
from omnigraph.model.identity import derive_ids
from omnigraph.model.schema import Check, Range
from omnigraph.model.types import Base, EnumType, ListType, ScalarType, VectorType
from omnigraph.model.violation import Violation
from omnigraph.plan.validate import check_duplicates, check_rows, key_column, key_texts
from tests.unit.plan.row_cases import KNOWS, LIKES, NOTE, PERSON, one_property, prop, shape


def rows_of(kind: GraphType, *rows: Mapping[str, object]) -> pa.Table:
    """Rows as they are, not shaped: the checks must not lean on shaping."""
    full = [{"id": f"id-{i}", **row} for i, row in enumerate(rows)]
    schema = row_schema(kind)
    return pa.Table.from_pylist(full, pa.schema([schema.field(name) for name in full[0]]))


def ranged(base: Base, low: float | None, high: float | None) -> NodeType:
    limits = (Range(property="p", low=low, high=high),)
    return NodeType(id="t", name="Thing", properties=(prop("p", base),), ranges=limits)


def broken(kind: NodeType, values: list[object]) -> list[int | None]:
    held = arrow_type(kind.properties[0].type)
    ids = [str(i) for i in range(len(values))]
    table = pa.table({"id": ids, "p": pa.array(values, held)})
    return [v.row for v in check_rows(kind, table)]


# Required


def test_a_required_property_must_not_be_null() -> None:
    table = rows_of(NOTE, {"text": "a", "stars": 1}, {"text": None, "stars": 1})
    assert check_rows(NOTE, table) == [
        Violation(
            type="Note",
            rule="required",
            message="`text` of Note is required, but it is null.",
            id="id-1",
            property="text",
            value="null",
            row=1,
        )
    ]


def test_only_the_columns_that_are_there_are_checked() -> None:
    assert check_rows(NOTE, rows_of(NOTE, {"stars": 1})) == []


def test_an_embedded_vector_may_be_null_beside_its_source() -> None:
    excused = rows_of(NOTE, {"text": "a", "meaning": None})
    assert check_rows(NOTE, excused) == []
    both = check_rows(NOTE, rows_of(NOTE, {"text": None, "meaning": None}))
    assert {v.property for v in both} == {"text", "meaning"}
    alone = check_rows(NOTE, rows_of(NOTE, {"meaning": None}))
    assert [v.property for v in alone] == ["meaning"]


def test_the_ends_of_an_edge_must_not_be_null() -> None:
    found = check_rows(KNOWS, rows_of(KNOWS, {"src": None, "dst": "b"}))
    assert [(v.rule, v.property) for v in found] == [("required", "src")]


# Enum


def test_an_enum_takes_only_its_values() -> None:
    (found,) = check_rows(PERSON, rows_of(PERSON, {"mood": "sad"}, {"mood": None}, {"mood": "Sad"}))
    assert found == Violation(
        type="Person",
        rule="enum",
        message='`mood` of Person must be one of `glad`, `sad`, but it is "Sad".',
        id="id-2",
        property="mood",
        value='"Sad"',
        row=2,
    )


def test_a_long_enum_is_not_listed_whole() -> None:
    kind = one_property(EnumType(values=tuple(f"v{i:03}" for i in range(500))))
    (found,) = check_rows(kind, rows_of(kind, {"p": "x"}))
    assert found.message.endswith('`v009` or 490 others, but it is "x".')


# Range


def test_a_range_includes_its_bounds() -> None:
    table = rows_of(PERSON, *({"age": a} for a in (-1, 0, 150, 151, None)))
    low, high = check_rows(PERSON, table)
    assert low.message == "`age` of Person must be between 0 and 150, but it is -1."
    assert (low.rule, low.row, low.id, low.value) == ("range", 0, "id-0", "-1")
    assert high.row == 3


@pytest.mark.parametrize(
    ("low", "high", "needs"), [(1, None, "at least 1"), (None, 2.5, "at most 2.5")]
)
def test_a_side_of_a_range_may_be_open(low: float | None, high: float | None, needs: str) -> None:
    kind = ranged(Base.F64, low, high)
    (found,) = check_rows(kind, rows_of(kind, {"p": 2.0}, {"p": math.nan}))
    assert found.message == f"`p` of Thing must be {needs}, but it is nan."


def test_bounds_beyond_the_type_allow_everything_or_nothing() -> None:
    assert broken(ranged(Base.U32, -5, 2**40), [0, 2**32 - 1]) == []
    assert broken(ranged(Base.U32, None, -1), [0, None]) == [0]
    assert broken(ranged(Base.I32, 1e30, None), [2**31 - 1]) == [0]
    assert broken(ranged(Base.F64, 10**400, None), [1e308, math.inf]) == [0]


def test_a_bound_of_a_narrow_float_is_within_as_it_is_written() -> None:
    assert broken(ranged(Base.F32, 0.1, 0.3), [0.1, 0.3, 0.30001]) == [2]


NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)


@given(NUMBERS | st.none(), NUMBERS | st.none(), st.data())
@example(2**53 + 1, None, None)
@example(None, -(2**53) - 1, None)
def test_a_range_means_what_python_says_of_the_numbers(
    low: float | None, high: float | None, data: st.DataObject | None
) -> None:
    edges = [2.0**53, 2.0**53 + 2, -(2.0**53), -(2.0**53) - 2, math.inf, -math.inf, math.nan]
    drawn = data.draw(st.lists(st.floats())) if data else []
    for base, values in ((Base.F64, edges + drawn), (Base.I64, [2**53, 2**53 + 1, -(2**63), 5])):
        outside = [
            i
            for i, v in enumerate(values)
            if v != v or (low is not None and v < low) or (high is not None and v > high)
        ]
        if low is not None or high is not None:
            assert broken(ranged(base, low, high), list(values)) == outside


# Check


def test_a_pattern_must_be_found_somewhere() -> None:
    (found,) = check_rows(PERSON, rows_of(PERSON, {"name": "Ann1"}, {"name": "1Ann"}))
    assert found.message == '`name` of Person must match the pattern "^[^0-9]", but it is "1Ann".'
    assert (found.rule, found.row) == ("check", 1)


def matching(pattern: str, values: list[str | None]) -> list[str | None]:
    kind = NodeType(
        id="t",
        name="Thing",
        properties=(prop("p", Base.STRING),),
        checks=(Check(property="p", pattern=pattern),),
    )
    refused = broken(kind, list(values))
    return [v for i, v in enumerate(values) if i not in refused]


@pytest.mark.parametrize(
    ("pattern", "values", "kept"),
    [
        ("\\d", ["a1", "٣", "a", None], ["a1", None]),
        ("^a.c$", ["abc", "abcd", "a\nc", "abc\n"], ["abc"]),
        ("(?i)STRASSE", ["strasse", "straße"], ["strasse"]),
        ("b", ["abc", "", "B"], ["abc"]),
        ("^$", ["", " "], [""]),
        ("(a+)+$", ["a" * 5000 + "b"], []),
    ],
)
def test_patterns_are_searched_as_re2_reads_them(
    pattern: str, values: list[str | None], kept: list[str | None]
) -> None:
    assert matching(pattern, values) == kept


@given(st.lists(st.none() | st.text("ab.*\n", max_size=6)), st.text("ab.*", max_size=3))
def test_an_escaped_pattern_is_a_search_for_its_text(values: list[str | None], text: str) -> None:
    assert matching(re.escape(text), values) == [v for v in values if v is None or text in v]


# Lists and vectors


def test_items_of_lists_and_vectors_must_not_be_null() -> None:
    lists = one_property(ListType(item=Base.I32))
    items = pa.chunked_array([[[1], None], [[], [2, None], [3]]], pa.list_(pa.int32()))
    found = check_rows(lists, pa.table({"id": list("abcde"), "p": items}))
    assert [(v.row, v.message) for v in found] == [
        (3, "`p` of Thing must be a list without null items, but it is [2, null].")
    ]
    vectors = one_property(VectorType(dimension=2))
    pairs = pa.array([[1.0, 2.0], None, [1.0, None]], pa.list_(pa.float32(), 2))
    found = check_rows(vectors, pa.table({"id": list("abc"), "p": pairs}))
    assert [(v.row, v.rule, v.id) for v in found] == [(2, "vector", "c")]


def test_a_vector_must_have_its_length() -> None:
    kind = one_property(VectorType(dimension=2))
    for held in (pa.list_(pa.float32()), pa.large_list(pa.float32())):
        column = pa.array([[1.0, 2.0], [1.0]], held)
        (found,) = check_rows(kind, pa.table({"id": ["a", "b"], "p": column}))
        assert found.message == "`p` of Thing must be a list of 2 numbers, but it is [1.0]."
    wrong = pa.array([[1.0]], pa.list_(pa.float32(), 1))
    assert len(check_rows(kind, pa.table({"id": ["a"], "p": wrong}))) == 1


# Many rows


def test_rows_are_told_by_their_place_in_the_input_and_in_order() -> None:
    table = rows_of(PERSON, {"mood": "x", "age": 200}, {"mood": "y", "age": -1})
    found = check_rows(PERSON, table, positions=np.array([7, 3]))
    assert [(v.row, v.rule) for v in found] == [
        (3, "enum"),
        (3, "range"),
        (7, "enum"),
        (7, "range"),
    ]


def test_at_most_limit_violations_are_told() -> None:
    table = rows_of(PERSON, *({"mood": "x", "age": 200} for _ in range(50)))
    assert len(check_rows(PERSON, table, limit=7)) == 7
    assert len(check_rows(PERSON, table)) == 100


def test_no_rows_break_no_rules() -> None:
    for kind in (PERSON, NOTE, KNOWS, one_property(VectorType(dimension=2))):
        assert check_rows(kind, row_schema(kind).empty_table()) == []
        assert check_duplicates(kind, row_schema(kind).empty_table()) == []


@given(st.lists(st.tuples(st.none() | st.integers(-5, 160), st.sampled_from(["sad", "x", None]))))
def test_rows_without_violations_are_exactly_those_that_obey(
    rows: list[tuple[int | None, str | None]],
) -> None:
    given_rows = [{"name": f"n{i}", "age": a, "mood": m} for i, (a, m) in enumerate(rows)]
    (group,) = shape(PERSON, given_rows).groups
    told = {v.row for v in check_rows(PERSON, group.table, positions=group.positions)}
    assert told == {
        i for i, (a, m) in enumerate(rows) if not (a is None or 0 <= a <= 150) or m == "x"
    }


# Duplicates


@pytest.mark.parametrize("count", [2, 500])
def test_the_same_key_twice_is_told_once_for_each_id(count: int) -> None:
    names = [f"n{i}" for i in range(count)]
    table = pa.table({"id": pa.chunked_array([names, ["n1", "n0", "n1"]])})
    found = check_duplicates(PERSON, table, positions=np.arange(count + 3) + 10)
    assert found == [
        Violation(
            type="Person",
            rule="key",
            message='More than one row of Person has the id "n0", which is made from `name`; '
            "give each entity once.",
            id="n0",
            property="name",
            value='"n0"',
            row=count + 11,
        ),
        Violation(
            type="Person",
            rule="key",
            message='More than one row of Person has the id "n1", which is made from `name`; '
            "give each entity once.",
            id="n1",
            property="name",
            value='"n1"',
            row=count + 10,
        ),
    ]
    assert len(check_duplicates(PERSON, table, limit=1)) == 1


def test_the_same_id_twice_is_told_for_types_without_a_key() -> None:
    (found,) = check_duplicates(NOTE, pa.table({"id": ["a", "b", "a"]}))
    assert found.message == 'More than one row of Note has the id "a"; give each entity once.'
    assert (found.rule, found.row, found.property) == ("id", 2, "id")


def test_a_composite_key_is_named_whole() -> None:
    (found,) = check_duplicates(LIKES, pa.table({"id": ["x", "x"]}))
    assert "which is made from `from`, `to`, `what`;" in found.message
    assert found.property is None


@given(st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz")))
def test_duplicates_are_exactly_the_ids_that_come_again(ids: list[str]) -> None:
    table = pa.table({"id": pa.array(ids, pa.string())})
    found = {v.id for v in check_duplicates(NOTE, table)}
    assert found == {i for i in ids if ids.count(i) > 1}


# Texts for comparison


def test_texts_of_one_column_are_those_of_an_id() -> None:
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    cases: list[tuple[Base, list[object], list[str | None]]] = [
        (Base.STRING, ["a", None, ""], ["a", None, ""]),
        (Base.BOOL, [True, None, False], ["true", None, "false"]),
        (Base.I32, [-1, None, 2], ["-1", None, "2"]),
        (Base.U64, [2**64 - 1, 0], [str(2**64 - 1), "0"]),
        (Base.F32, [0.1, None, -0.0], ["0.1", None, "0"]),
        (Base.DATE, [date(2024, 1, 1), None], ["2024-01-01", None]),
        (Base.DATETIME, [moment, None], [str(int(moment.timestamp() * 1000)), None]),
        (Base.F64, [math.nan, -math.inf, math.inf, 1.0], ["NaN", "-Infinity", "Infinity", "1"]),
    ]
    for base, values, texts in cases:
        table = pa.table({"p": pa.array(values, arrow_type(ScalarType(base)))})
        assert key_texts(table, ["p"]) == texts


def test_texts_of_several_columns_are_a_json_array_and_null_is_never_equal() -> None:
    table = pa.table({"a": ["x", 'y"é', None], "b": pa.array([1, 2, 3], pa.int32())})
    assert key_texts(table, ["a", "b"]) == ['["x","1"]', '["y\\"é","2"]', None]
    assert [json.loads(t) for t in key_texts(table, ["b", "a"]) if t] == [["1", "x"], ["2", 'y"é']]


@given(st.lists(st.floats() | st.none()), st.sampled_from([Base.F32, Base.F64]))
def test_texts_are_equal_where_floats_are(values: list[float | None], base: Base) -> None:
    column = pa.array(np.array([math.nan if v is None else v for v in values], dtype=np.float64))
    with np.errstate(over="ignore"):
        numbers = column.cast(arrow_type(ScalarType(base)), safe=False).to_pylist()
    held = [None if v is None else n for v, n in zip(values, numbers, strict=True)]
    table = pa.table({"p": pa.array(held, arrow_type(ScalarType(base)))})
    texts = key_texts(table, ["p"])
    for i, a in enumerate(held):
        assert (texts[i] is None) == (a is None)
        for j, b in enumerate(held):
            if a is not None and b is not None:
                assert (texts[i] == texts[j]) == (a == b or (a != a and b != b))


@given(st.lists(st.tuples(st.text('ab"\\,[]\n', max_size=3), st.integers(0, 3))))
def test_texts_of_a_key_are_its_ids(rows: list[tuple[str, int]]) -> None:
    kind = NodeType(
        id="t",
        name="T",
        key=("a", "b"),
        properties=(prop("a", Base.STRING, nullable=False), prop("b", Base.I32, nullable=False)),
    )
    table = pa.table(
        {
            "a": pa.array([a for a, _ in rows], pa.string()),
            "b": pa.array([b for _, b in rows], pa.int32()),
        }
    )
    assert key_texts(table, kind.key) == derive_ids(kind, table).to_pylist()


def test_lists_vectors_and_blobs_can_be_told_apart_too() -> None:
    vectors = pa.array([[0.0, 1.0], [-0.0, 1.0], None], pa.list_(pa.float32(), 2))
    first, second, third = key_texts(pa.table({"p": vectors}), ["p"])
    assert first == second is not None
    assert third is None
    blobs = key_texts(pa.table({"p": pa.array([b"a", b"b"], pa.large_binary())}), ["p"])
    assert len(set(blobs)) == 2


@pytest.mark.parametrize("odd", ["", '"', "\\", "\n", "\x1f", "\x7f", "ä", "😀", "\u2028"])
def test_keys_as_a_column_are_their_texts(odd: str) -> None:
    table = pa.table(
        {
            "a": pa.chunked_array([["x", odd, None], ["y", f"a{odd}b"]], pa.string()),
            "b": pa.chunked_array([["1", "2", "3", None], [odd]], pa.string()),
            "n": pa.array([1, 2, None, 4, 5], pa.int32()),
        }
    )
    for columns in (["a"], ["a", "b"], ["b", "a"], ["a", "n"], ["n"]):
        assert key_column(table, columns).to_pylist() == key_texts(table, columns)
    assert key_column(table.slice(0, 0), ["a", "b"]).to_pylist() == []
