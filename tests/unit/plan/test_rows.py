"""Rows of every form become typed rows of one type; the names, groups and ids are right."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.model.arrow import row_schema
from omnigraph.model.catalog import NodeType
from omnigraph.model.schema import Default
from omnigraph.model.types import Base, ListType
from omnigraph.model.violation import Violation
from tests.unit.plan.row_cases import EVERYTHING, KNOWS, LIKES, NOTE, PERSON, prop, shape

Row = dict[str, object]


def the_violation(shaped: object) -> Violation:
    violations = shaped.violations  # type: ignore[attr-defined]
    assert len(violations) == 1, violations
    first = violations[0]
    assert isinstance(first, Violation)
    return first


# Groups


def test_complete_rows_are_one_group_with_all_columns_of_the_type() -> None:
    shaped = shape(PERSON, [{"name": "Ann", "age": 3}, {"name": "Bob", "mood": "sad"}])
    assert shaped.violations == ()
    (group,) = shaped.groups
    assert group.table.schema == row_schema(PERSON)
    assert group.table.to_pylist() == [
        {"id": "Ann", "name": "Ann", "age": 3, "mood": None},
        {"id": "Bob", "name": "Bob", "age": None, "mood": "sad"},
    ]
    assert group.given == {"name", "age", "mood"}
    assert group.positions.tolist() == [0, 1]


def test_incomplete_rows_are_grouped_by_the_properties_they_give() -> None:
    rows: list[Row] = [
        {"name": "Ann", "age": 3},
        {"name": "Bob"},
        {"age": None, "name": "Cat"},
        {"name": "Dan"},
    ]
    first, second = shape(PERSON, rows, complete=False).groups
    assert first.given == {"name", "age"}
    assert first.positions.tolist() == [0, 2]
    assert first.table.to_pylist() == [
        {"id": "Ann", "name": "Ann", "age": 3},
        {"id": "Cat", "name": "Cat", "age": None},
    ]
    assert second.given == {"name"}
    assert second.positions.tolist() == [1, 3]
    assert second.table.column_names == ["id", "name"]


def test_arrow_input_gives_all_its_columns_in_the_order_of_the_type() -> None:
    table = pa.table({"age": pa.array([None, 5], pa.int64()), "name": ["Ann", "Bob"]})
    (group,) = shape(PERSON, table, complete=False).groups
    assert group.given == {"name", "age"}
    assert group.table.schema == pa.schema([row_schema(PERSON).field(i) for i in range(3)])
    assert group.table.to_pylist()[0] == {"id": "Ann", "name": "Ann", "age": None}


@pytest.mark.parametrize("rows", [[], pa.table({"name": pa.array([], pa.string())})])
def test_no_rows_are_an_empty_group_when_complete(rows: object) -> None:
    shaped = shape(PERSON, rows)
    assert shaped.violations == ()
    assert [g.table.num_rows for g in shaped.groups] == [0]
    assert shaped.groups[0].table.schema == row_schema(PERSON)


def test_one_dict_is_one_row_and_a_generator_is_rows() -> None:
    assert shape(PERSON, {"name": "Ann"}).groups[0].table.num_rows == 1
    assert shape(PERSON, ({"name": n} for n in "ab")).groups[0].table.num_rows == 2


def test_defaults_fill_only_what_is_left_out() -> None:
    shaped = shape(NOTE, [{"text": "a"}, {"text": "b", "stars": 5}, {"text": "c", "stars": None}])
    assert shaped.violations == ()
    assert shaped.groups[0].table.column("stars").to_pylist() == [3, 5, None]


def test_a_default_that_no_row_overrides_is_typed() -> None:
    kind = NodeType(
        id="t",
        name="T",
        properties=(
            prop("day", Base.DATE, default=Default(value="2024-05-31")),
            prop("tags", ListType(item=Base.STRING), default=Default(value=("a", "b"))),
        ),
    )
    for count in (1, 2):
        (group,) = shape(kind, [{}] * count).groups
        assert group.table.schema == row_schema(kind)
        assert [str(d) for d in group.table.column("day").to_pylist()] == ["2024-05-31"] * count
        assert group.table.column("tags").to_pylist() == [["a", "b"]] * count


def test_a_required_embedded_vector_may_be_left_out_when_its_source_is_given() -> None:
    shaped = shape(NOTE, {"text": "a"})
    assert shaped.violations == ()
    assert shaped.groups[0].table.column("meaning").to_pylist() == [None]
    without = shape(NOTE, {})
    assert {v.property for v in without.violations} == {"text", "meaning"}


# Ids


def test_keyless_rows_keep_their_id_or_get_a_new_one() -> None:
    rows: list[Row] = [{"text": "a"}, {"text": "b", "id": "mine"}, {"text": "c", "id": None}]
    assert shape(NOTE, rows).groups[0].table.column("id").to_pylist() == ["new-0", "mine", "new-1"]


def test_keyed_rows_derive_their_id_and_a_given_one_may_agree() -> None:
    rows: list[Row] = [
        {"from": "a", "to": "b", "what": "tea"},
        {"src": "a", "dst": "b", "what": 'x"', "id": '["a","b","x\\""]'},
    ]
    shaped = shape(LIKES, rows)
    assert shaped.violations == ()
    assert shaped.groups[0].table.column("id").to_pylist() == [
        '["a","b","tea"]',
        '["a","b","x\\""]',
    ]


@pytest.mark.parametrize("count", [1, 100])
def test_a_given_id_that_is_not_the_key_is_refused(count: int) -> None:
    rows = [{"name": f"n{i}", "id": f"n{i}"} for i in range(count - 1)]
    found = the_violation(shape(PERSON, [*rows, {"name": "Ann", "id": "Bob"}]))
    assert found == Violation(
        type="Person",
        rule="id",
        message='`id` of Person must be "Ann", as its key says, but it is "Bob".',
        id="Ann",
        property="id",
        value='"Bob"',
        row=count - 1,
    )


@pytest.mark.parametrize("count", [1, 100])
def test_a_null_key_is_refused_and_the_others_keep_their_ids(count: int) -> None:
    rows: list[Row] = [{"name": f"n{i}"} for i in range(count - 1)]
    shaped = shape(PERSON, [{"name": None}, *rows])
    found = the_violation(shaped)
    assert (found.rule, found.row, found.value, found.id) == ("key", 0, "null", None)
    assert found.message == (
        "`name` is part of the key of Person and must not be null: the id is made from it."
    )
    assert shaped.groups[0].table.column("id").to_pylist() == [r["name"] for r in rows]
    assert shaped.groups[0].positions.tolist() == list(range(1, count))


def test_an_empty_key_or_id_is_refused() -> None:
    assert the_violation(shape(PERSON, {"name": ""})).message == (
        "`name` is part of the key of Person and must not be empty: the id is made from it."
    )
    assert the_violation(shape(NOTE, {"text": "a", "id": ""})).message == (
        "`id` of Note must not be empty; leave it out to get a new one."
    )


def test_a_key_that_is_not_a_finite_number_is_refused() -> None:
    kind = NodeType(id="t", name="T", key=("x",), properties=(prop("x", Base.F64, nullable=False),))
    shaped = shape(kind, [{"x": float("nan")}, {"x": 1.5}, {"x": float("inf")}])
    assert [(v.rule, v.row, v.value) for v in shaped.violations] == [
        ("key", 0, "nan"),
        ("key", 2, "inf"),
    ]
    assert shaped.groups[0].table.column("id").to_pylist() == ["1.5"]


def test_an_id_must_be_a_string() -> None:
    found = the_violation(shape(NOTE, {"text": "a", "id": 7}))
    assert (found.rule, found.property) == ("id", "id")
    assert found.message == "`id` of Note must be a string, but it is 7 (int)."


# Ends


def test_both_spellings_of_the_ends_are_read_even_mixed() -> None:
    rows: list[Row] = [
        {"from": "a", "to": "b"},
        {"src": "c", "dst": "d"},
        {"from": "e", "dst": "f"},
    ]
    table = shape(KNOWS, rows).groups[0].table
    assert table.select(["src", "dst"]).to_pylist() == [
        {"src": "a", "dst": "b"},
        {"src": "c", "dst": "d"},
        {"src": "e", "dst": "f"},
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"from": "a", "src": "a", "to": "b"},
            (
                "Knows is given both `from` and `src`, which are the same end of the edge; "
                "give one of them."
            ),
        ),
        ({"from": "a"}, "`to` of Knows must be the id of a node, but this row does not give it."),
        ({"from": None, "to": "b"}, "`from` of Knows must be the id of a node, but it is null."),
        ({"from": "", "to": "b"}, "`from` of Knows must be the id of a node, but it is empty."),
        ({"from": 1, "to": "b"}, "`from` of Knows must be a string, but it is 1 (int)."),
    ],
)
@pytest.mark.parametrize("complete", [True, False])
def test_an_end_must_be_given_once_and_be_an_id(row: Row, message: str, complete: bool) -> None:
    shaped = shape(KNOWS, [row, {"from": "x", "to": "y"}], complete=complete)
    found = the_violation(shaped)
    assert (found.rule, found.message, found.row) == ("endpoint", message, 0)
    kept = [i for g in shaped.groups for i in g.table.column("src").to_pylist()]
    assert kept == ["x"]


def test_an_end_in_the_key_is_told_as_an_end_only() -> None:
    rows: list[Row] = [{"from": None, "to": "b", "what": "x"}, {"from": "a", "to": "", "what": "x"}]
    assert [v.rule for v in shape(LIKES, rows).violations] == ["endpoint", "endpoint"]


# Names


def test_an_unknown_property_is_told_once_with_what_was_meant() -> None:
    rows: list[Row] = [{"name": "Ann"}, {"name": "Bob", "agee": 1}, {"name": "Cat", "agee": 2}]
    assert the_violation(shape(PERSON, rows)) == Violation(
        type="Person",
        rule="unknown_property",
        message="Person has no property `agee`; did you mean `age`?",
        property="agee",
        row=1,
    )


def test_another_case_is_another_name() -> None:
    found = the_violation(shape(PERSON, pa.table({"name": ["Ann"], "AGE": [1]})))
    assert found.message == "Person has no property `AGE`; did you mean `age`?"


def test_a_name_that_looks_like_nothing_known_is_answered_with_the_names_there_are() -> None:
    sql = "'; DROP TABLE x; --\x1b[31m"
    found = the_violation(shape(KNOWS, {"from": "a", "to": "b", sql: 1}))
    assert found.message == (
        "Knows has no property `'; DROP TABLE x; --\\x1b[31m`; it has `id`, `from`, `to`, `since`."
    )


def test_a_name_must_be_a_string() -> None:
    found = the_violation(shape(PERSON, {"name": "Ann", 7: 1}))
    assert found.message == "Names of properties are strings, but Person is given 7."


def test_a_column_that_comes_twice_is_refused() -> None:
    table = pa.table([["Ann"], [1], [2]], names=["name", "age", "age"])
    assert (
        the_violation(shape(PERSON, table)).message
        == "`age` of Person is given twice; give it once."
    )


@pytest.mark.parametrize("complete", [True, False])
def test_the_key_must_be_given_in_every_row(complete: bool) -> None:
    found = the_violation(shape(PERSON, [{"age": 1}, {"name": "Bob"}], complete=complete))
    assert (found.rule, found.row) == ("key", 0)
    assert found.message == (
        "`name` of Person is part of the key and must be given, but this row does not give it."
    )
    found = the_violation(shape(PERSON, pa.table({"age": [1, 2]}), complete=complete))
    assert found.message == (
        "`name` of Person is part of the key and must be given, but no column gives it."
    )


def test_a_required_property_must_be_given_only_when_complete() -> None:
    found = the_violation(shape(NOTE, {"id": "x", "meaning": [1, 2]}))
    assert found == Violation(
        type="Note",
        rule="required",
        message="`text` of Note is required, but this row does not give it.",
        id="x",
        property="text",
        row=0,
    )
    assert shape(NOTE, {"id": "x", "meaning": [1, 2]}, complete=False).violations == ()


# Rows that are none


@pytest.mark.parametrize("rows", [5, "name", b"name", None, object(), pa.chunked_array([[1]])])
def test_what_is_not_rows_is_one_violation(rows: object) -> None:
    shaped = shape(PERSON, rows)
    assert shaped.groups == ()
    assert the_violation(shaped).rule == "row"


def test_the_sentence_about_no_rows_says_what_rows_are() -> None:
    assert the_violation(shape(PERSON, 5)).message == (
        "Rows of Person must be a dict, a list of dicts, or a table of Arrow, pandas or polars, "
        "but this is 5."
    )


def test_an_item_that_is_not_a_row_is_told_with_its_place() -> None:
    shaped = shape(PERSON, [{"name": "Ann"}, ["Bob"], {"name": "Cat"}])
    found = the_violation(shaped)
    assert found.message == 'A row of Person must be a dict of its properties, but this is ["Bob"].'
    assert found.row == 1
    assert shaped.groups[0].positions.tolist() == [0, 2]


# Many mistakes


def test_all_mistakes_of_all_rows_are_told_at_once() -> None:
    rows: list[object] = [
        {"name": "Ann", "age": "x", "nick": "a"},
        {"name": "Bob", "age": 2**40, "mood": 7},
        {"name": None, "age": True},
        {"age": 1},
        "Eve",
        {"name": "Fay", "age": 1},
    ]
    shaped = shape(PERSON, rows)
    assert {(v.row, v.rule, v.property, v.id) for v in shaped.violations} == {
        (0, "unknown_property", "nick", None),
        (0, "type", "age", "Ann"),
        (1, "type", "age", "Bob"),
        (1, "type", "mood", "Bob"),
        (2, "type", "age", None),
        (2, "key", "name", None),
        (3, "key", "name", None),
        (4, "row", None, None),
    }
    assert [v.row for v in shaped.violations] == [0, 0, 1, 1, 2, 2, 3, 4]
    assert shaped.groups[0].table.column("id").to_pylist() == ["Fay"]
    assert shaped.groups[0].positions.tolist() == [5]


@pytest.mark.parametrize("arrow", [True, False])
def test_only_the_first_violations_are_listed_and_the_others_counted(arrow: bool) -> None:
    rows = [{"name": f"n{i}", "age": 2**40} for i in range(1_000)]
    shaped = shape(PERSON, pa.Table.from_pylist(rows) if arrow else rows, limit=7)
    assert (len(shaped.violations), shaped.more) == (7, 993)
    assert [v.row for v in shaped.violations] == list(range(7))
    assert shaped.groups[0].table.num_rows == 0


def test_every_type_has_a_place_in_one_row() -> None:
    assert shape(EVERYTHING, {}).groups[0].table.schema == row_schema(EVERYTHING)
