"""Input that is strange, large or hostile: it works, or it is refused in words."""

from __future__ import annotations

import math
from typing import Any

import pytest

from omnigraph.errors import InvalidArgument, InvalidData, InvalidQuery, OmnigraphError
from omnigraph.model.changes import TypeCounts
from tests.mutation.world import new_graph, rows


def test_names_may_be_words_of_sql() -> None:
    g = new_graph(
        "node Order { select: String @key  where: I64?  order: String? @unique  set: Bool?  "
        "table: F64?  join: [String]? }\n"
        "edge Group: Order -> Order { limit: I64?  by: String? }\n"
    )
    g.mutate(
        """
        insert Order { select: "drop table", where: 1, order: "'; --", set: true }
        insert Order { select: "x", join: ["or 1=1"] }
        insert Group { from: "drop table", to: "x", limit: 3, by: "select" }
        update Order set { where: where + 1, set: not set } where select = "drop table" and set
        update Group set { limit: limit * 2 } where by = "select" and limit > 1
        """
    )
    found = ("select", "where", "order", "set")
    assert rows(g, "Order", *found) == [
        ("drop table", 2, "'; --", False),
        ("x", None, None, None),
    ]
    assert rows(g, "Group", "limit") == [6]
    assert g.mutate('delete Order where order = "\'; --"').counts == {
        "Order": TypeCounts(deleted=1),
        "Group": TypeCounts(deleted=1),
    }


UNICODE = [
    "é",
    "é",  # the same to a reader, another text
    "日本語",
    "🦊🦊",
    "a\u0000b",
    "\u202eright to left",
    "'\"\\\n\t",
    "%_*[]",
    " leading and trailing ",
    "null",
    "NaN",
]


@pytest.mark.parametrize("text", UNICODE, ids=ascii)
def test_any_text_is_a_key_that_is_found_again(text: str) -> None:
    g = new_graph()
    insert = 'query q($t: String) { insert Person { name: $t } insert Person { name: "other" } }'
    assert g.mutate(insert, params={"t": text}).nodes == 2
    edge = "query q($t: String) { insert Knows { from: $t, to: $t } }"
    assert g.mutate(edge, params={"t": text}).edges == 1
    for where in ("name = $t", "@id = $t", "name in [$t]", "starts_with(name)"):
        if where.startswith("starts"):
            where = 'name starts_with $t and not (name = "other")'
        update = f"query q($t: String) {{ update Person set {{ age: 5 }} where {where} }}"
        assert g.mutate(update, params={"t": text}).nodes == 1, where
    removed = g.mutate("query q($t: String) { delete Person where name = $t }", params={"t": text})
    assert (removed.nodes, removed.edges) == (1, 1)


def test_a_key_of_ten_megabytes_is_refused() -> None:
    g = new_graph()
    insert = "query q($k: String) { insert Person { name: $k } }"
    with pytest.raises(InvalidData, match=r"would be 10,000,000 bytes long") as caught:
        g.mutate(insert, params={"k": "k" * 10_000_000})
    assert len(str(caught.value)) < 1000
    assert rows(g, "Person") == []


def test_the_longest_key_is_inserted_found_updated_and_deleted() -> None:
    g = new_graph()
    key = "k" * 65_535
    insert = 'query q($k: String) { insert Person { name: $k } insert Person { name: $k + "x" } }'
    assert g.mutate(insert, params={"k": key}).nodes == 2
    with pytest.raises(InvalidQuery, match="give large values as parameters"):
        g.mutate(f'insert Person {{ name: "{"k" * 10_000_000}" }}')
    update = "query q($k: String) { update Person set { age: 3 } where name = $k }"
    assert g.mutate(update, params={"k": key}).nodes == 1
    assert sorted(rows(g, "Person", "age"), key=repr) == [3, None]
    with pytest.raises(OmnigraphError) as caught:
        g.mutate(
            "query q($k: String) { update Person set { age: 999 } where name = $k }",
            params={"k": key},
        )
    assert len(str(caught.value)) < 1000
    assert g.mutate("query q($k: String) { delete Person where @id = $k }", params={"k": key}).nodes
    assert rows(g, "Person", "age") == [None]


def test_nan_and_infinities_are_values_like_others() -> None:
    g = new_graph()
    insert = "query q($n: String, $f: F64) { insert Person { name: $n, score: $f } }"
    numbers = {"nan": math.nan, "up": math.inf, "down": -math.inf, "zero": -0.0}
    for name, number in numbers.items():
        g.mutate(insert, params={"n": name, "f": number})
    where = "query q($f: F64) { update Person set { age: 1 } where score = $f }"
    for number in (math.nan, math.inf, -math.inf, 0.0):
        assert g.mutate(where, params={"f": number}).nodes == 1
    assert g.mutate("delete Person where score > 1.7e308 and score < 1.0").nodes == 0
    assert g.mutate("update Person set { age: 2 } where score >= 1.7e308").nodes == 2
    assert g.mutate("update Person set { score: score * 2 } where true").nodes == 4


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775807 + 1", None),
        ("-9223372036854775808 - 1", None),
        ("9223372036854775807 * 2", None),
        ("abs(-9223372036854775808)", None),
        ("9223372036854775808", None),
        ("-7 % 3", -1),
        ("7 % 0", "null"),
        ("99999999999999999999999999", None),
    ],
)
def test_integers_overflow_with_an_error_and_never_wrap(expression: str, value: Any) -> None:
    g = new_graph("node N { n: I64?  k: I64 }\n")
    g.mutate("insert N { k: 1 }")
    for text in (
        f"update N set {{ n: {expression} }} where k = 1",
        f"insert N {{ k: 2, n: {expression} }} delete N where k = 1",
    ):
        if value is None:
            with pytest.raises(OmnigraphError) as caught:
                g.mutate(text)
            assert caught.value.exit_code == 6
            assert rows(g, "N", "k", "n") == [(1, None)]
        else:
            g.mutate(text)
            (found,) = rows(g, "N", "n")
            assert found == (None if value == "null" else value)


def test_unsigned_integers_have_their_own_range() -> None:
    g = new_graph()
    g.mutate('insert Note { text: "u", big: 18446744073709551615 }')
    assert g.mutate("update Note set { big: big - 1 } where big = 18446744073709551615").nodes == 1
    assert rows(g, "Note", "big") == [2**64 - 2]
    with pytest.raises(OmnigraphError, match="Note '"):
        g.mutate("update Note set { big: big + 9 } where true")
    with pytest.raises(InvalidQuery, match="T3"):
        g.mutate('insert Note { text: "u", big: -1 }')


def test_ten_thousand_statements_are_one_commit() -> None:
    g = new_graph()
    count = 10_000
    lines = [f'insert Person {{ name: "p{n}", age: {n % 100} }}' for n in range(count // 2)]
    lines += [
        f'insert Knows {{ from: "p{n}", to: "p{n * 7 % (count // 2)}" }}'
        for n in range(count // 2 - 300)
    ]
    lines += [f'update Person set {{ age: age + 1 }} where name = "p{n}"' for n in range(200)]
    lines += [f'delete Person where name = "p{n}"' for n in range(100)]
    result = g.mutate("\n".join(lines))
    assert len(lines) == count
    assert result.counts["Person"] == TypeCounts(inserted=5000, updated=200, deleted=100)
    assert len(rows(g, "Person", "name")) == 4900
    assert g.snapshot().version == 2


def test_the_mistake_in_ten_thousand_statements_is_found() -> None:
    g = new_graph()
    lines = [f'insert Person {{ name: "p{n}" }}' for n in range(2_000)]
    lines[1234] = 'insert Person { name: "bad", age: 151 - 0 }'
    with pytest.raises(OmnigraphError, match=r"Statement 1235, insert Person: `age`"):
        g.mutate("\n".join(lines))
    lines[1234] = 'insert Person { name: "bad", agee: 1 }'
    with pytest.raises(InvalidQuery, match="query:1235:"):
        g.mutate("\n".join(lines))
    assert g.snapshot().version == 1


@pytest.mark.parametrize("text", ["", "  // nothing\n", "query q() { }", "insert", "{", "\x00"])
def test_a_text_that_is_no_mutation_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(InvalidQuery, match="query:1:"):
        new_graph().mutate(text)


def test_arguments_of_the_wrong_kind_are_told() -> None:
    g = new_graph()
    good = 'insert Note { text: "x" }'
    bad: list[tuple[str, dict[str, Any]]] = [
        ("text of mutate\\(\\) is a text", {"text": None}),
        ("params of mutate\\(\\) is a mapping", {"text": good, "params": [1]}),
        ("idempotency_key of mutate\\(\\) is a text", {"text": good, "idempotency_key": 3}),
    ]
    for message, arguments in bad:
        with pytest.raises(InvalidArgument, match=message):
            g.mutate(**arguments)
    assert g.snapshot().version == 1
