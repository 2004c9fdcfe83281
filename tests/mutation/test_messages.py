"""What a mutation that is refused says: the code, the place, what happened and what to do."""

from __future__ import annotations

import re
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.errors import InvalidData, InvalidParameters, InvalidQuery, OmnigraphError
from tests.mutation.world import new_graph

SHARED: list[Graph] = []


@pytest.fixture
def g() -> Graph:
    """Nothing in this file changes the graph, so that all tests may share it."""
    if not SHARED:
        g = new_graph()
        g.mutate('insert Person { name: "Alice", age: 30, email: "a@x" }')
        g.mutate('insert Person { name: "Bob", age: 2 }')
        g.mutate('insert Knows { from: "Alice", to: "Bob", since: 2147483647 }')
        SHARED.append(g)
    return SHARED[0]


CHECKED = [
    ('insert Persn { name: "x" }', "T10", "there is no type `Persn`", "did you mean `Person`?"),
    ("delete Knws where true", "T10", "there is no type `Knws`", "did you mean `Knows`?"),
    ('insert Person { nme: "x" }', "T11", "`Person` has no property `nme`", "`name`"),
    ("update Person set { agee: 1 } where true", "T11", "has no property `agee`", "`age`"),
    ("delete Person where agee = 1", "T11", "has no property `agee`", "`age`"),
    ("delete Person where id = 1", "T11", "has no property `id`", "write `@id`"),
    ('insert Person { id: "x" }', "T11", "no property `id`", "ids come from keys"),
    ('insert Knows { src: "a", dst: "b" }', "T11", "no property `src`", "`from:` and `to:`"),
    (
        'update Person set { name: "x" } where true',
        "T11",
        "`name` is part of the key",
        "delete and",
    ),
    ('update Knows set { from: "x" } where true', "T11", "ends of an edge cannot be set", ""),
    ("insert Person { age: 3 }", "T12", "`Person` needs `name`", ""),
    ("insert Note { stars: 3 }", "T12", "`Note` needs `text`", ""),
    ('insert Knows { from: "a" }', "T12", "`Knows` needs `to`", ""),
    ('insert Person { name: "a", name: "b" }', "T13", "`name` is already set", ""),
    ("update Person set { age: 1, age: 2 } where true", "T13", "`age` is already set", ""),
    ("insert Person { name: $n }", "T14", "`$n` is not a declared parameter", ""),
    ("delete Person where name = $n", "T14", "`$n` is not a declared parameter", ""),
    ("insert Person { name: 3 }", "T3", "`name`", ""),
    ('insert Person { name: "a", age: "x" }', "T3", "`age`", ""),
    ('insert Person { name: "a", age: 3000000000 }', "T3", "`age`", ""),
    ('insert Person { name: "a", mood: "mild" }', "T3", "`mood`", ""),
    ("insert Person { name: null }", "T3", "`name` is never null", ""),
    ("update Person set { age: age / 2 } where true", "T3", "`age` is `I32`", ""),
    ('insert Knows { from: 1, to: "b" }', "T3", "`from` is the id of a node", ""),
    ("delete Person where age", "T7", "`where` takes a Bool", ""),
    (
        "delete Person where exists { $p knows $q }",
        "T7",
        "a pattern cannot stand in a mutation",
        "",
    ),
    ("insert Person { name: name }", "T6", "`name` alone has no meaning here", "`$name`"),
]


@pytest.mark.parametrize(("text", "code", "message", "help_"), CHECKED, ids=lambda v: str(v)[:40])
def test_what_the_checker_refuses_never_runs(
    g: Graph, text: str, code: str, message: str, help_: str
) -> None:
    before = g.snapshot().commit
    with pytest.raises(InvalidQuery) as caught:
        g.mutate(text)
    found = [d for d in caught.value.diagnostics if d.code == code]
    assert found, caught.value.diagnostics
    told = str(caught.value)
    assert code in told
    assert message in told
    assert help_ in told
    assert g.snapshot().commit == before


def test_all_mistakes_are_told_at_once(g: Graph) -> None:
    with pytest.raises(InvalidQuery, match="3 mistakes") as caught:
        g.mutate("insert Persn { } delete Person where agee = 1 insert Note { text: $x }")
    assert [d.code for d in caught.value.diagnostics] == ["T10", "T11", "T14"]


DATA = [
    (
        'insert Person { name: "x", age: 200 }',
        "`age` of Person must be between 0 and 150, but it is 200. Nothing was changed.",
    ),
    (
        'insert Note { text: "n" } insert Person { name: "x", age: 100 + 100 }',
        "Statement 2, insert Person: `age` of Person must be between 0 and 150, but it is 200.",
    ),
    (
        'insert Person { name: "ok" } insert Person { name: "x", age: 2147483647 + 1 }',
        "Statement 2, insert Person: `age` of Person must be a whole number from -2147483648",
    ),
    (
        'update Person set { age: age + 121 } where name = "Alice"',
        "Person 'Alice': `age` of Person must be between 0 and 150, but it is 151.",
    ),
    (
        "update Person set { age: age + 2147483647 } where age < 10",
        "2147483647, but 2147483649 is out of range.",
    ),
    (
        "update Knows set { since: since * 9223372036854775807 } where true",
        "does not fit 64 bits",
    ),
    (
        "delete Person where age * 4611686018427387904 > 0",
        "Person 'Alice': The result of '*' does not fit 64 bits.",
    ),
    (
        "update Person set { age: null, mood: lower(email) } where email is not null",
        "Person 'Alice': ",
    ),
    (
        'insert Knows { from: "Alice", to: "Nobody" }',
        'Knows has `to` "Nobody", but there is no Person with that id.',
    ),
    (
        'insert Person { name: "x", email: "a@x" }',
        'Person "x" has email = "a@x", which another Person has already; @unique(email)',
    ),
    (
        'update Person set { email: "a@x" } where name = "Bob"',
        'Person "Bob" has email = "a@x", which another Person has already',
    ),
    (
        "insert Note { text: toString(null) }",
        "`text` of Note is required, but it is null.",
    ),
    (
        "delete Person where age > 9223372036854775807 + 1",
        "The result of '+' does not fit 64 bits.",
    ),
]


@pytest.mark.parametrize(("text", "message"), DATA, ids=lambda v: str(v)[:50])
def test_what_breaks_a_rule_names_the_entity_or_the_statement(
    g: Graph, text: str, message: str
) -> None:
    before = g.snapshot().commit
    with pytest.raises(OmnigraphError) as caught:
        g.mutate(text)
    assert message in str(caught.value)
    assert caught.value.applied is False
    assert caught.value.exit_code == 6
    assert g.snapshot().commit == before


def test_violations_are_values_with_type_rule_id_and_place(g: Graph) -> None:
    with pytest.raises(InvalidData) as caught:
        g.mutate('insert Note { text: "n" } insert Person { name: "x", age: 200 }')
    (violation,) = caught.value.violations
    assert (violation.type, violation.rule, violation.id) == ("Person", "range", "x")
    assert (violation.property, violation.row) == ("age", 1)
    with pytest.raises(InvalidData, match=re.escape("(and 1 more)")) as caught:
        g.mutate("update Person set { age: 0 - 1 } where true")
    assert {v.id for v in caught.value.violations} == {"Alice", "Bob"}


PARAMETERS: list[tuple[dict[str, Any] | None, str]] = [
    (None, "$n is missing, and it must be a String"),
    ({"n": None}, "$n is null"),
    ({"n": 3}, "$n is int where String is needed"),
    ({"n": "x", "m": 1}, "$m is no parameter of this query"),
    ({"n": "x", "a": 2**31}, "$a is 2147483648, and I32 goes from"),
    ({"n": "x", "a": True}, "$a is bool"),
    ({"n": "\ud800"}, "$n holds half of a surrogate pair"),
]


@pytest.mark.parametrize(("params", "message"), PARAMETERS, ids=lambda v: ascii(v)[:30])
def test_parameters_that_do_not_fit_are_told_before_anything_runs(
    g: Graph, params: dict[str, Any] | None, message: str
) -> None:
    with pytest.raises(InvalidParameters) as caught:
        g.mutate(
            "query q($n: String, $a: I32? = 1) { insert Person { name: $n, age: $a } }",
            params=params,
        )
    assert message in str(caught.value)


def test_a_parameter_outside_an_enum_matches_nothing_and_cannot_be_set(g: Graph) -> None:
    where = "query q($m: String) { delete Person where mood = $m }"
    assert g.mutate(where, params={"m": "mild"}).nodes == 0
    with pytest.raises(InvalidData, match="mood"):
        g.mutate(
            'query q($m: String) { insert Person { name: "x", mood: $m } }', params={"m": "mild"}
        )
