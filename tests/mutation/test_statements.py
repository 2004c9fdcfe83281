"""Section 6 of the language, rule by rule."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.errors import (
    BranchNotFound,
    IdempotencyMismatch,
    InvalidArgument,
    InvalidData,
    PreconditionFailed,
    ProtectedBranch,
    ReadOnly,
)
from omnigraph.model.changes import TypeCounts
from tests.mutation.world import new_graph, rows


@pytest.fixture
def g() -> Graph:
    g = new_graph()
    g.mutate(
        """
        insert Person { name: "Alice", age: 30, email: "alice@x", mood: "calm" }
        insert Person { name: "Bob", age: 25 }
        insert Person { name: "Charlie" }
        insert Knows { from: "Alice", to: "Bob", since: 2001 }
        insert Knows { from: "Alice", to: "Bob" }
        insert Knows { from: "Bob", to: "Charlie" }
        insert Likes { from: "Alice", to: "Charlie", weight: 0.5 }
        """
    )
    return g


def test_an_insert_of_a_known_key_sets_what_is_listed_and_keeps_the_rest(g: Graph) -> None:
    result = g.mutate('insert Person { name: "Alice", age: 31 }')
    assert result.counts == {"Person": TypeCounts(updated=1)}
    found = g.entity("Person", "Alice")
    assert found is not None
    assert (found["age"], found["email"], found["mood"]) == (31, "alice@x", "calm")
    g.mutate('insert Person { name: "Alice", email: null }')
    assert rows(g, "Person", "name", "email")[0] == ("Alice", None)


def test_a_new_entity_has_defaults_and_nulls(g: Graph) -> None:
    g.mutate('insert Person { name: "Dora" }')
    found = g.entity("Person", "Dora")
    assert found is not None
    assert (found["city"], found["age"]) == ("Bonn", None)
    g.mutate('insert Person { name: "Dora", city: null }  insert Person { name: "Dora", age: 3 }')
    found = g.entity("Person", "Dora")
    assert found is not None
    assert (found["city"], found["age"]) == (None, 3)


def test_a_keyless_node_or_edge_is_new_each_time(g: Graph) -> None:
    text = 'insert Note { text: "same" }  insert Knows { from: "Bob", to: "Alice" }'
    first, second = g.mutate(text), g.mutate(text)
    assert first.nodes == first.edges == second.nodes == second.edges == 1
    assert rows(g, "Note", "text") == ["same", "same"]
    assert rows(g, "Knows", "src", "dst").count(("Bob", "Alice")) == 2
    assert len(set(rows(g, "Note", "id"))) == 2


def test_an_edge_with_a_key_is_an_upsert(g: Graph) -> None:
    result = g.mutate('insert Likes { from: "Alice", to: "Charlie" }')
    assert result.counts == {"Likes": TypeCounts(updated=1)}
    assert rows(g, "Likes", "weight") == [0.5]
    g.mutate('insert Likes { to: "Charlie", weight: 2, from: "Alice" }')
    assert rows(g, "Likes", "weight") == [2.0]


def test_endpoints_are_expressions(g: Graph) -> None:
    g.mutate(
        'query q($a: String) { insert Knows { from: upper(trim($a)) + "lice", to: "B" + "ob" } }',
        params={"a": " a "},
    )
    assert rows(g, "Knows", "src", "dst").count(("Alice", "Bob")) == 3


def test_an_edge_may_come_before_its_nodes(g: Graph) -> None:
    g.mutate(
        'insert Knows { from: "new", to: "newer" } insert Person { name: "new" } '
        'insert Person { name: "newer" }'
    )
    assert ("new", "newer") in rows(g, "Knows", "src", "dst")


def test_update_computes_every_value_from_the_old_row(g: Graph) -> None:
    result = g.mutate(
        'update Person set { age: coalesce(age, 0) + length(name), city: name, email: city + "@x" '
        '+ name } where age is null or name = "Bob"'
    )
    assert result.counts == {"Person": TypeCounts(updated=2)}
    assert rows(g, "Person", "name", "age", "city", "email") == [
        ("Alice", 30, "Bonn", "alice@x"),
        ("Bob", 28, "Bob", "Bonn@xBob"),
        ("Charlie", 7, "Charlie", "Bonn@xCharlie"),
    ]


def test_update_and_delete_work_on_edges_by_their_ends_and_properties(g: Graph) -> None:
    result = g.mutate('update Knows set { since: 7 } where from = "Alice" and since is null')
    assert (result.nodes, result.edges) == (0, 1)
    assert rows(g, "Knows", "src", "since") == [("Alice", 2001), ("Alice", 7), ("Bob", None)]
    assert g.mutate('delete Knows where @src = "Alice" and @dst = "Bob" and since > 10').edges == 1
    assert g.mutate('delete Knows where to = "Charlie"').edges == 1
    assert rows(g, "Knows", "since") == [7]
    (edge,) = rows(g, "Knows", "id")
    removed = g.mutate("query q($id: String) { delete Knows where @id = $id }", params={"id": edge})
    assert removed.edges == 1


def test_deleting_a_node_deletes_its_edges_and_counts_them(g: Graph) -> None:
    result = g.mutate('delete Person where name = "Bob"')
    assert (result.nodes, result.edges) == (1, 3)
    assert result.counts == {"Person": TypeCounts(deleted=1), "Knows": TypeCounts(deleted=3)}
    assert rows(g, "Knows", "src") == []
    assert rows(g, "Likes", "src") == ["Alice"]


def test_statements_see_those_before_them(g: Graph) -> None:
    before = g.snapshot().commit
    result = g.mutate(
        """
        insert Person { name: "Eve", age: 1 }
        update Person set { age: age + 1 } where name = "Eve"
        update Person set { age: age * 10 } where age = 2
        insert Knows { from: "Eve", to: "Bob" }
        delete Person where age = 20
        """
    )
    assert result.counts == {
        "Person": TypeCounts(inserted=1, updated=2, deleted=1),
        "Knows": TypeCounts(inserted=1, deleted=1),
    }
    assert result.commit is None
    assert g.snapshot().commit == before


def test_what_was_deleted_can_be_inserted_anew_without_what_it_had(g: Graph) -> None:
    result = g.mutate('delete Person where name = "Alice" insert Person { name: "Alice" }')
    assert (result.nodes, result.edges) == (2, 3)
    found = g.entity("Person", "Alice")
    assert found is not None
    assert (found["age"], found["email"], found["city"]) == (None, None, "Bonn")


def test_all_statements_become_one_commit_with_its_actor_and_message(g: Graph) -> None:
    version = g.snapshot().version
    result = g.mutate(
        'insert Person { name: "Z" } insert Note { text: "n" } delete Knows where true',
        actor="ann",
        message="three things",
    )
    commit = g.snapshot().commit
    assert g.snapshot().version == version + 1
    assert result.commit == commit
    assert result.commit_id == commit.id
    assert (commit.actor, commit.message, commit.kind) == ("ann", "three things", "mutate")


def test_nothing_matched_is_success_without_a_commit(g: Graph) -> None:
    before = g.snapshot().commit
    result = g.mutate(
        'delete Person where name = "Nobody" update Note set { text: "x" } where true'
    )
    assert (result.nodes, result.edges, result.counts) == (0, 0, {})
    assert (result.commit, result.commit_id, result.repeated) == (None, None, False)
    assert result.branch == "main"
    assert g.snapshot().commit == before


def test_null_for_a_required_property_is_refused_also_when_no_row_matches(g: Graph) -> None:
    text = "query q($t: String?) { update Note set { text: $t } where text = "
    for known in ('"there"', '"not there"'):
        g.mutate('insert Note { text: "there" }')
        with pytest.raises(InvalidData, match=r"`text` of Note is required, but it is null"):
            g.mutate(f"{text}{known} }}")
    with g.transaction() as tx, pytest.raises(InvalidData, match="`text` of Note is required"):
        tx.update("Note", set={"text": None}, where='text = "not there"')
    assert g.mutate(f'{text}"not there" }}', params={"t": "x"}).commit is None


def test_a_failure_anywhere_leaves_nothing(g: Graph) -> None:
    before = g.snapshot().commit
    for bad in (
        'insert Knows { from: "Alice", to: "Nobody" }',
        'insert Person { name: "W", email: "alice@x" }',
        "update Person set { age: 200 } where true",
        f'insert Media {{ title: "m" }} {"insert Owns { from: `Alice`, to: `m` } " * 2}'.replace(
            "`", '"'
        ),
    ):
        with pytest.raises(Exception, match=r"Nobody|alice@x|150|@card"):
            g.mutate(f'insert Person {{ name: "first" }} {bad}')
    assert g.snapshot().commit == before


def test_the_query_is_chosen_by_name_and_named_in_the_result(g: Graph) -> None:
    text = """
    query add($n: String, $a: I32? = 7) { insert Person { name: $n, age: $a } }
    query remove($n: String) { delete Person where name = $n }
    """
    added = g.mutate(text, "add", {"n": "X"})
    assert (added.query, added.nodes) == ("add", 1)
    assert rows(g, "Person", "name", "age")[-1] == ("X", 7)
    removed = g.mutate(text, "remove", {"n": "X"})
    assert removed.counts == {"Person": TypeCounts(deleted=1)}


def test_a_branch_is_written_to_and_no_other(g: Graph) -> None:
    g.create_branch("side")
    result = g.branch("side").mutate('insert Person { name: "S" }')
    assert result.branch == "side"
    assert "S" in rows(g, "Person", "name", ref="side")
    assert "S" not in rows(g, "Person", "name")
    handle = g.branch("side")
    assert handle.mutate('delete Person where name = "S"').nodes == 1
    assert "S" not in rows(g, "Person", "name", ref="side")
    with pytest.raises(BranchNotFound, match="Did you mean 'side'"):
        g.branch("sied").mutate('insert Person { name: "S" }')
    g.protect("side")
    with pytest.raises(ProtectedBranch):
        g.branch("side").mutate('insert Note { text: "S" }')


def test_a_read_only_graph_is_not_mutated(g: Graph) -> None:
    import omnigraph

    with (
        omnigraph.open(g.root, mode="r") as reader,
        pytest.raises(ReadOnly, match="Open the graph with mode='rw'"),
    ):
        reader.mutate('insert Note { text: "S" }')


def test_a_query_that_reads_is_sent_to_query(g: Graph) -> None:
    with pytest.raises(InvalidArgument, match=r"mutate\(\) takes insert.* Give it to query\(\)"):
        g.mutate("match { $p: Person } return { $p.name }")
    with pytest.raises(InvalidArgument, match=r"'all' only reads"):
        g.mutate("query all() { match { $p: Person } return { $p.name } }")
    with pytest.raises(InvalidArgument, match=r"Give it to mutate\(\)"):
        g.query("delete Person where true")


def test_the_head_can_be_pinned(g: Graph) -> None:
    head = g.snapshot().commit.id
    text = 'insert Person { name: "P", age: 1 }'
    result = g.mutate(text, if_commit=head)
    assert result.commit_id == g.snapshot().commit.id
    for again in (text, 'insert Note { text: "blind" }', 'delete Person where name = "Nobody"'):
        with pytest.raises(PreconditionFailed, match="no longer at the commit"):
            g.mutate(again, if_commit=head)
    assert result.commit_id == g.snapshot().commit.id


def test_a_repeated_call_gives_the_first_commit_and_its_counts(g: Graph) -> None:
    text = """query q($n: String) {
        insert Note { text: $n, at: now() }
        update Person set { age: age + 1 } where name = "Bob"
    }"""
    first = g.mutate(text, params={"n": "once"}, idempotency_key="k")
    g.mutate('delete Person where name = "Bob"')
    second = g.mutate(text, params={"n": "once"}, idempotency_key="k")
    assert (first.repeated, second.repeated) == (False, True)
    assert second.commit_id == first.commit_id
    assert second.counts == first.counts
    assert rows(g, "Note", "text") == ["once"]
    with pytest.raises(IdempotencyMismatch):
        g.mutate(text, params={"n": "twice"}, idempotency_key="k")


VALUES: list[tuple[str, Any, Any]] = [
    ("words", "[]", []),
    ("words", '["a", "b"]', ["a", "b"]),
    ("day", '"2024-02-29"', date(2024, 2, 29)),
    ("day", 'date("2024-02-29")', date(2024, 2, 29)),
    ("at", '"2024-02-29T01:02:03.004Z"', datetime(2024, 2, 29, 1, 2, 3, 4000, UTC)),
    ("big", "18446744073709551615", 2**64 - 1),
    ("stars", "1", 1.0),
    ("stars", "0.5 + 1 / 4", 0.75),
    ("stars", "7 / 0", None),
    ("text", 'toString(3) + lower("ABC") + "\\u00e9"', "3abcé"),
]


@pytest.mark.parametrize(("name", "text", "value"), VALUES)
def test_values_of_every_kind_are_set_by_insert_and_by_update(
    name: str, text: str, value: Any
) -> None:
    g = new_graph()
    given = "" if name == "text" else 'text: "t", '
    g.mutate(f"insert Note {{ {given}{name}: {text} }}")
    assert rows(g, "Note", name) == [value]
    g.mutate('insert Note { text: "other" }')
    g.mutate(f"update Note set {{ {name}: {text} }} where true")
    assert rows(g, "Note", name) == [value, value]


def test_floats_blobs_and_vectors_come_as_parameters() -> None:
    g = new_graph()
    g.mutate(
        'query q($b: Blob, $v: Vector(2)) { insert Media { title: "m", cover: $b, place: $v } }',
        params={"b": b"\x00\xff", "v": [1, 2.5]},
    )
    blob = g.blob("Media", "m", "cover")
    assert blob is not None
    assert blob.read() == b"\x00\xff"
    g.mutate('insert Media { title: "other" } update Media set { place: [0.5, 1] } where true')
    assert rows(g, "Media", "title", "place") == [("m", [0.5, 1.0]), ("other", [0.5, 1.0])]
    blob = g.blob("Media", "m", "cover")
    assert blob is not None
    assert blob.read() == b"\x00\xff"
    text = "query q($f: F64) { update Person set { score: $f } where true }"
    g.mutate('insert Person { name: "A" }')
    for number in (math.inf, -math.inf, -0.0, math.nan):
        g.mutate(text, params={"f": number})
        (found,) = rows(g, "Person", "score")
        assert repr(found) == repr(number)
    found_nan = "query q($f: F64) { delete Person where score = $f }"
    assert g.mutate(found_nan, params={"f": math.nan}).nodes == 1


def test_one_moment_is_now_for_all_statements() -> None:
    g = new_graph()
    g.mutate(
        'insert Note { text: "a", at: now() } insert Note { text: "b" } '
        'update Note set { at: now() } where text = "b"'
    )
    first, second = rows(g, "Note", "at")
    assert first == second


def test_conditions_that_are_no_lookup_are_right_about_null_and_nan() -> None:
    g = new_graph()
    g.mutate(
        "query q($nan: F64) {"
        ' insert Person { name: "nan", score: $nan } insert Person { name: "null" }'
        ' insert Person { name: "one", score: 1.0 } }',
        params={"nan": math.nan},
    )
    assert g.mutate("update Person set { age: 1 } where score > 100.0").nodes == 1
    assert g.mutate("update Person set { age: 2 } where not (score > 100.0)").nodes == 1
    assert rows(g, "Person", "name", "age") == [("nan", 1), ("null", None), ("one", 2)]
    assert g.mutate("delete Person where null").nodes == 0
    assert g.mutate("delete Person where score is null or score = 1").nodes == 2


def test_a_node_type_and_an_edge_type_may_share_a_name() -> None:
    g = new_graph("node Link { n: String @key }\nedge Link: Link -> Link\nnode B { n: I64 }\n")
    g.mutate('insert Link { n: "a" }')
    assert rows(g, "node:Link", "n") == ["a"]
    assert g.mutate("delete Link where true").nodes == 1
