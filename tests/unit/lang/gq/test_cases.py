"""The cases of section 12 of the language, and the typing rules of section 5."""

from __future__ import annotations

import pytest

from omnigraph.lang.diagnostics import render_all
from omnigraph.lang.gq import compile_query
from omnigraph.lang.gq.check.kinds import kind_text
from omnigraph.lang.gq.checked import (
    AggregateValue,
    Arithmetic,
    CheckedQuery,
    Comparison,
    Direction,
    Exists,
    KeyValue,
    Match,
    Membership,
    Not,
    OutputValue,
    Read,
    Traversal,
    TypeTest,
)
from omnigraph.lang.pg import compile_schema
from tests.unit.lang.gq.world import catalog, catalog_of, checked, codes

SCHEMA = """
node Person { name: String @key age: I32? }  node Company { name: String @key }
edge Knows: Person -> Person { since: I32? }  edge WorksAt: Person -> Company
"""
Column = tuple[str, str, bool]
NAME: Column = ("f.name", "String", False)


def columns(query: CheckedQuery) -> list[Column]:
    return [(c.name, kind_text(c.type.kind), c.type.nullable) for c in query.columns]


@pytest.mark.parametrize(
    ("match", "rest", "expected"),
    [
        ('$p: Person {name: "Alice"}  $p knows $f', "{ $f.name }", [NAME]),
        ('$p: Person {name: "Alice"}  $p $w:knows $f', "{ $f.name }", [NAME]),
        ('$p: Person {name: "Alice"}  $p knows{1,2} $f', "{ $f.name }", [NAME]),
        ('$p: Person {name: "Alice"}  $p knows{2,2} $f', "{ $f.name }", [NAME]),
        ('$c: Company {name: "Acme"}  $c worksAt $p', "{ $p }", [("p", "Person", False)]),
        ("$p: Person  not { $p worksAt $_ }", "{ $p.name }", [("p.name", "String", False)]),
        (
            "$p: Person  $p knows $f",
            "{ $p.name, count($f) as n } order { n desc }",
            [("p.name", "String", False), ("n", "I64", False)],
        ),
        ('$p: Person {name: "Zed"}', "{ count($p) as n }", [("n", "I64", False)]),
        (
            "$p: Person  optional { $p worksAt $c }",
            "{ $p.name, $c.name }",
            [("p.name", "String", False), ("c.name", "String", True)],
        ),
        (
            "$p: Person  count { $p knows $_ } > 1",
            "{ $p.name }",
            [("p.name", "String", False)],
        ),
    ],
)
def test_every_case_has_its_result_columns(match: str, rest: str, expected: list[Column]) -> None:
    schema = compile_schema(SCHEMA).schema
    assert schema is not None
    text = f"match {{ {match} }} return {rest}"
    result = compile_query(text, catalog_of(schema))
    assert result.query is not None, render_all(result.diagnostics, text)
    assert columns(result.query) == expected


def read(match: str, rest: str = "{ $p.@id }") -> Read:
    body = checked(f"match {{ {match} }} return {rest}").body
    assert isinstance(body, Read)
    return body


def matched(match: str) -> Match:
    return read(match).match


def types_of(match: Match) -> dict[str | None, str]:
    return {v.name: kind_text(v.kind) for v in match.variables}


def steps(traversal: Traversal) -> list[tuple[str, Direction]]:
    return [(step.edge.name, step.direction) for step in traversal.steps]


F, B, E = Direction.FORWARD, Direction.BACKWARD, Direction.EITHER


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ("$p: Person  $p worksAt $c", [("WorksAt", F)]),
        ("$c: Company  $c worksAt $p", [("WorksAt", B)]),
        ("$p worksAt $c  $c: Company", [("WorksAt", F)]),
        ("$c worksAt $p  $p: Person", [("WorksAt", B)]),
        ("$p worksAt $c", [("WorksAt", F)]),
        ("$p: Person  $p knows $f", [("Knows", F)]),
        ("$f knows $p", [("Knows", F)]),
        ("$p: Person $p WORKSAT $c", [("WorksAt", F)]),
        ("$p: Person $p <knows> $f", [("Knows", E)]),
        ("$p: Person $p (knows|likes|worksAt) $c  $c: Company", [("WorksAt", F)]),
        ("$p: Person $p (knows|worksAt) $c", [("Knows", F), ("WorksAt", F)]),
        ("$p: Person $c: Company  $p * $c", [("WorksAt", F)]),
        ("$p: Person $c: Company  $c <*> $p", [("WorksAt", B)]),
        ("$p: Person $q: Person  $p <*> $q", [("Knows", E), ("Likes", E)]),
        ("$p: Named  $p worksAt $c", [("WorksAt", F)]),
        ("$p: Named $c: Named $c: Company  $c worksAt $p", [("WorksAt", B)]),
    ],
)
def test_the_direction_follows_from_the_types(
    match: str, expected: list[tuple[str, Direction]]
) -> None:
    (traversal,) = matched(match).traversals
    assert steps(traversal) == expected


def test_the_order_of_clauses_never_changes_the_types() -> None:
    texts = ["$p: Person", "$p knows $q", "$q worksAt $c", "$x contains $c"]
    expected = {"p": "Person", "q": "Person", "c": "Company", "x": "City"}
    for turn in range(4):
        turned = texts[turn:] + texts[:turn]
        assert types_of(matched(" ".join(turned))) == expected
        assert types_of(matched(" ".join(reversed(turned)))) == expected


def test_an_interface_is_all_its_types_until_a_clause_narrows_it() -> None:
    assert types_of(matched("$p: Named")) == {"p": "Company|Person"}
    assert types_of(matched("$p: Named  $p worksAt $_"))["p"] == "Person"
    assert codes("match { $p: Named } return { $p.age }") == ["T6"]
    assert codes("match { $p: Named  $p knows $_ } return { $p.age }") == []


def test_a_block_tests_an_outer_variable_without_narrowing_it() -> None:
    match = matched("$p: Named  not { $p: Person }")
    assert types_of(match) == {"p": "Company|Person"}
    (condition,) = match.filters
    assert isinstance(condition, Not)
    assert isinstance(condition.operand, Exists)
    (test,) = condition.operand.match.filters
    assert isinstance(test, TypeTest)
    assert [t.name for t in test.types] == ["Person"]
    assert condition.operand.match.outer == (match.variables[0].id,)


def test_a_traversal_in_a_block_does_not_narrow_an_outer_variable() -> None:
    match = matched("$p: Named  not { $p worksAt $_ }")
    assert types_of(match) == {"p": "Company|Person"}


def test_a_variable_of_two_types_is_told_once() -> None:
    assert codes("match { $p: Person  $p: City  $p contains $c } return { $p.x }") == ["T5"]


def test_what_a_pattern_brings_itself_is_not_from_outside() -> None:
    match = matched("$p: Person  not { sum($y.age) { $p knows $y } > 3 }")
    (condition,) = match.filters
    assert isinstance(condition, Not)
    assert isinstance(condition.operand, Exists)
    assert condition.operand.match.outer == (match.variables[0].id,)


def test_anonymous_ends_are_variables_of_their_own() -> None:
    match = matched("$p: Person  $p knows $_  $p worksAt $_")
    assert [v.name for v in match.variables] == ["p", None, None]
    assert len({v.id for v in match.variables}) == 3


def test_variables_of_a_block_stay_in_it() -> None:
    assert codes("match { $p: Person  not { $p worksAt $c } } return { $c.name }") == ["T6"]
    assert codes("match { $p: Person  exists { $p worksAt $c } } return { $c.name }") == ["T6"]
    text = "match { $p: Person  not { $p worksAt $x } not { $p knows $x } } return { $p }"
    assert codes(text) == []


def test_filters_on_optional_variables_come_after_the_optional_blocks() -> None:
    match = matched('$p: Person  optional { $p worksAt $c }  $c.name = "x"  $p.age > 1')
    assert (len(match.filters), len(match.late_filters), len(match.optionals)) == (1, 1, 1)
    inner = match.optionals[0]
    assert [v.optional for v in inner.variables] == [True]
    assert inner.outer == (match.variables[0].id,)


def test_an_optional_variable_ends_a_traversal_only_in_a_later_optional_block() -> None:
    start = "match { $p: Person  optional { $p worksAt $c }"
    assert codes(start + " optional { $x contains $c } } return { $p }") == []
    assert codes(start + " $x contains $c } return { $p }") == ["T6"]
    assert codes(start + " not { $x contains $c } } return { $p }") == ["T6"]
    assert codes(start + " exists { $x contains $c } } return { $p }") == ["T6"]
    assert codes(start + " $c: Company $x contains $c } return { $p }") == []
    before = "match { $p: Person  $p worksAt $c  optional { $x contains $c } } return { $p }"
    assert codes(before) == []


def test_entries_of_a_binding_are_filters() -> None:
    equal, member = matched('$p: Person { name: "x", tags: "y" }').filters
    assert isinstance(equal, Comparison)
    assert isinstance(member, Membership)


@pytest.mark.parametrize(
    ("expression", "kind", "nullable"),
    [
        ("1 + 2", "I64", False),
        ("$p.age + 1", "I64", True),
        ("$p.score + 1", "F64", False),
        ("$p.serial + 1", "U64", True),
        ("$p.serial + $p.age", "I64", True),
        ("4 / 2", "F64", False),
        ("4 / $p.score", "F64", True),
        ("4 % 0", "I64", True),
        ("-$p.serial", "I64", True),
        ('$p.name + "x"', "String", False),
        ("$p.age > 1 and true", "Bool", True),
        ("$p.age is null", "Bool", False),
        ("coalesce($p.age, 0)", "I64", False),
        ("coalesce($p.age, null)", "I32", True),
        ("length($p.tags)", "I64", False),
        ("year($p.born)", "I64", True),
        ("toString($p.score)", "String", False),
        ("round($p.score)", "F64", False),
        ("abs($p.age)", "I64", True),
        ('date("2024-01-01")', "Date", False),
        ("now()", "DateTime", False),
        ("count { $p knows $_ }", "I64", False),
        ("exists { $p knows $_ }", "Bool", False),
        ("sum($y.age) { $p knows $y }", "I64", True),
        ("max($y.name) { $p knows $y }", "String", True),
        ("[1, 2]", "[I64]", False),
        ("null", "null", True),
        ("$p.name in $p.tags", "Bool", False),
        ("sum($p.age)", "I64", True),
        ("avg($p.score)", "F64", True),
        ("min($p.born)", "Date", True),
        ("collect($p.name)", "[String]", False),
        ("collect($p)", "[Person]", False),
        ("count(distinct $p.age)", "I64", False),
    ],
)
def test_an_expression_has_its_type(expression: str, kind: str, nullable: bool) -> None:
    query = checked(f"match {{ $p: Person }} return {{ {expression} as x }}")
    assert columns(query) == [("x", kind, nullable)]


def test_a_group_never_lacks_rows_so_its_aggregates_are_as_null_as_their_argument() -> None:
    query = checked("match { $p: Person } return { $p.name, max($p.score) as m, max($p.age) as a }")
    assert columns(query)[1:] == [("m", "F64", False), ("a", "I32", True)]


def test_columns_beside_an_aggregate_are_the_key_and_may_be_mixed_with_it() -> None:
    body = read("$p: Person", "{ $p.age, $p.age + count($p) * 2 as n }")
    assert body.group is not None
    assert (len(body.group.keys), len(body.group.aggregates)) == (1, 1)
    key, mixed = (column.value for column in body.columns)
    assert isinstance(key, KeyValue)
    assert isinstance(mixed, Arithmetic)
    assert isinstance(mixed.left, KeyValue)
    assert isinstance(mixed.right, Arithmetic)
    assert isinstance(mixed.right.left, AggregateValue)
    assert codes("match { $p: Person } return { $p.name, $p.age + count($p) as n }") == ["T9"]


def test_order_keys_of_distinct_and_groups_are_result_columns() -> None:
    body = read("$p: Person", "distinct { $p.name, $p.age } order { $p.age desc }")
    (key,) = body.order
    assert isinstance(key.value, OutputValue)
    assert (key.value.index, key.descending) == (1, True)
    assert codes("match { $p: Person } return distinct { $p.name } order { $p.age }") == ["T9"]
    assert codes("match { $p: Person } return { $p.name } order { $p.age }") == []
    counted = "match { $p: Person } return { $p.name, count($p) as n } order { count($p) desc }"
    assert codes(counted) == []


def test_properties_of_a_bound_edge_exist_on_all_its_types() -> None:
    start = "match { $p: Person  $p $w:(knows|likes) $f } return "
    assert codes(start + "{ $w.since, $w.@id, $w.@src, $w.@dst }") == []
    assert codes(start + "{ $w.stars }") == ["T6"]


def test_an_enum_literal_outside_the_set_does_not_fit_but_a_text_may() -> None:
    assert codes('match { $p: Person $p.status = "opn" } return { $p }') == ["T3"]
    assert codes("match { $p: Person $p.status = $p.name } return { $p }") == []


def test_a_required_vector_may_be_left_out_when_its_source_is_given() -> None:
    text = 'node Doc { text: String  v: Vector(2) @embed("text") }'
    schema = compile_schema(text).schema
    assert schema is not None
    documents = catalog_of(schema)
    assert compile_query('insert Doc { text: "x" }', documents).query is not None
    missing = compile_query("insert Doc {}", documents).diagnostics
    assert [d.message for d in missing] == ["`Doc` needs `text`, `v`"]


def test_the_hint_for_a_system_column_names_the_variable() -> None:
    text = "match { $p: Person } return { $p.id }"
    result = compile_query(text, catalog())
    assert [(d.code, d.suggestion) for d in result.diagnostics] == [("T6", "write `$p.@id`")]
