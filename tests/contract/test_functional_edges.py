"""Edges whose key leaves out an end: one for each source (or target), and writing it again moves
its other end. On every surface, with cardinality, and where two sides move the same edge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidData, InvalidQuery, MergeFailed

SCHEMA = """
node Package { name: String @key }
node Person { name: String @key }
edge Keeps: Package -> Person @card(0..1) { since: I32?  @key(src) }
edge Heads: Person -> Package @card(1..3) { @key(dst) }
edge Plays: Package -> Person { part: String  @key(src, part) }
"""
PEOPLE = [{"type": "Person", "data": {"name": name}} for name in ("Ann", "Bob", "Cid")]
PACKAGES = [{"type": "Package", "data": {"name": name}} for name in ("p", "q", "r")]


def edge(kind: str, source: str, target: str, **data: Any) -> dict[str, Any]:
    return {"edge": kind, "from": source, "to": target, "data": data}


HEADS = [edge("Heads", "Ann", "p"), edge("Heads", "Bob", "q"), edge("Heads", "Bob", "r")]


@pytest.fixture
def g(root: str) -> Graph:
    graph = omnigraph.init(root, schema=SCHEMA)
    graph.load([*PEOPLE, *PACKAGES], engine="local")
    graph.load([edge("Keeps", "p", "Ann", since=1), edge("Keeps", "q", "Ann")], engine="local")
    return graph


def ends(g: Any, kind: str = "Keeps") -> list[tuple[str, ...]]:
    rows = g.scan(kind, columns=["id", "src", "dst"]).read_all().to_pylist()
    return sorted((row["id"], row["src"], row["dst"]) for row in rows)


def walked(g: Any) -> list[tuple[str, str]]:
    """The same edges as a traversal finds them, from either end."""
    there = g.query("match { $p: Package $p keeps $o } return { $p.name, $o.name }")
    back = g.query("match { $o: Person $o keeps $p } return { $p.name, $o.name }")
    found = [[(row["p.name"], row["o.name"]) for row in rows] for rows in (there, back)]
    assert sorted(found[0]) == sorted(found[1])
    return sorted(found[0])


def test_a_load_moves_the_end_and_keeps_what_it_does_not_name(g: Graph) -> None:
    assert walked(g) == [("p", "Ann"), ("q", "Ann")]
    done = g.load([edge("Keeps", "p", "Bob"), edge("Keeps", "r", "Cid")], mode="merge")
    assert (done.counts["Keeps"].inserted, done.counts["Keeps"].updated) == (1, 1)
    assert ends(g) == [("p", "p", "Bob"), ("q", "q", "Ann"), ("r", "r", "Cid")]
    assert walked(g) == [("p", "Bob"), ("q", "Ann"), ("r", "Cid")]
    row = g.query('match { $p: Package { name: "p" } $p $k:keeps $o } return { $k.since }').one()
    assert row == {"k.since": 1}
    assert done.advice == ()


def test_an_upsert_a_mutation_and_a_second_insert_of_one_text_move_it_too(g: Graph) -> None:
    with g.transaction() as tx:
        tx.upsert("Keeps", [{"from": "p", "to": "Bob"}])
        assert ("p", "Bob") in [
            (row["p.name"], row["o.name"])
            for row in tx.query("match { $p: Package $p keeps $o } return { $p.name, $o.name }")
        ]
    assert ends(g)[0] == ("p", "p", "Bob")
    g.mutate('insert Keeps { from: "p", to: "Cid" } insert Keeps { from: "p", to: "Ann" }')
    assert ends(g)[0] == ("p", "p", "Ann")
    with pytest.raises(InvalidQuery, match="insert the edge again, which moves it"):
        g.mutate('update Keeps set { to: "Bob" } where from = "p"')
    with pytest.raises(InvalidQuery, match=r"part of the key|cannot be set"):
        g.mutate('update Keeps set { from: "q" } where from = "p"')


def test_appending_it_again_is_refused_and_two_rows_of_one_input_too(g: Graph) -> None:
    with pytest.raises(InvalidData, match='Keeps "p" exists already'):
        g.load([edge("Keeps", "p", "Bob")])
    with pytest.raises(InvalidData, match="More than one row of Keeps has the id"):
        g.load([edge("Keeps", "r", "Bob"), edge("Keeps", "r", "Ann")], mode="merge")


def test_the_key_may_be_the_target_or_hold_a_property(g: Graph) -> None:
    g.load([*HEADS, edge("Heads", "Cid", "p")][:3], engine="local")
    g.load([edge("Heads", "Bob", "p"), edge("Heads", "Ann", "q")], mode="merge")
    assert ends(g, "Heads") == [("p", "Bob", "p"), ("q", "Ann", "q"), ("r", "Bob", "r")]
    plays = [edge("Plays", "p", "Ann", part="x"), edge("Plays", "p", "Ann", part="y")]
    g.load(plays, mode="merge")
    g.load([edge("Plays", "p", "Cid", part="y")], mode="merge")
    assert ends(g, "Plays") == [('["p","x"]', "p", "Ann"), ('["p","y"]', "p", "Cid")]


def test_a_moved_end_must_exist(g: Graph) -> None:
    for write in (
        lambda: g.load([edge("Keeps", "p", "Zed")], mode="merge"),
        lambda: g.mutate('insert Keeps { from: "p", to: "Zed" }'),
    ):
        with pytest.raises(InvalidData, match='Keeps has `to` "Zed", but there is no Person'):
            write()
    g.load(HEADS, engine="local")
    with pytest.raises(InvalidData, match='Heads has `from` "Zed"'):
        g.mutate('insert Heads { from: "Zed", to: "p" }')


def test_the_source_that_an_edge_leaves_is_counted_too(g: Graph) -> None:
    g.load(HEADS, engine="local")
    words = '0 Heads edges from Person "Ann" are too few; @card allows at least 1.'
    with pytest.raises(InvalidData) as error:
        g.mutate('insert Heads { from: "Bob", to: "p" }')
    assert error.value.violations[0].message == words
    with pytest.raises(InvalidData) as error:
        g.load([edge("Heads", "Bob", "p")], mode="merge", engine="local")
    assert error.value.violations[0].message == words
    swap = [edge("Heads", "Bob", "p"), edge("Heads", "Ann", "r")]
    g.load(swap, mode="merge", engine="local")
    assert ends(g, "Heads") == [("p", "Bob", "p"), ("q", "Bob", "q"), ("r", "Ann", "r")]


def test_a_node_that_goes_takes_the_edge_only_if_it_still_ends_there(g: Graph) -> None:
    with g.transaction() as tx:
        tx.upsert("Keeps", [{"from": "p", "to": "Bob"}])
        tx.delete("Person", where='name = "Ann"')
    assert ends(g) == [("p", "p", "Bob")]
    g.mutate('delete Person where name = "Bob"')
    assert ends(g) == []


def test_sides_that_move_one_edge_differently_meet_and_a_strategy_decides(g: Graph) -> None:
    g.create_branch("work")
    g.branch("work").mutate('insert Keeps { from: "p", to: "Bob" }')
    g.mutate('insert Keeps { from: "p", to: "Cid", since: 7 }')
    with pytest.raises(MergeFailed) as error:
        g.merge("work")
    (conflict,) = error.value.conflicts
    assert (conflict.property, conflict.base, conflict.ours, conflict.theirs) == (
        "dst",
        "Ann",
        "Cid",
        "Bob",
    )
    assert "was changed by both in to:" in conflict.message
    g.merge("work", strategy={"Keeps.to": "theirs"})
    assert ends(g)[0] == ("p", "p", "Bob")
    row = g.query('match { $p: Package { name: "p" } $p $k:keeps $o } return { $k.since }').one()
    assert row == {"k.since": 7}


def test_a_merge_takes_a_move_beside_other_changes_and_an_answer_may_move_it(g: Graph) -> None:
    g.create_branch("work")
    g.branch("work").mutate('insert Keeps { from: "p", to: "Bob" }')
    g.mutate('insert Keeps { from: "q", to: "Cid" }')
    g.merge("work")
    assert ends(g) == [("p", "p", "Bob"), ("q", "q", "Cid")]
    g.create_branch("more")
    g.branch("more").mutate('insert Keeps { from: "p", to: "Ann" }')
    g.mutate('insert Keeps { from: "p", to: "Cid" }')
    g.merge("more", resolve={("Keeps", "p"): {"to": "Bob"}})
    assert ends(g)[0] == ("p", "p", "Bob")


@pytest.mark.parametrize("beside", [False, True])
def test_an_edge_moved_to_a_node_that_the_other_side_deleted_is_an_orphan(
    g: Graph, beside: bool
) -> None:
    g.create_branch("work")
    g.branch("work").mutate('insert Keeps { from: "p", to: "Bob" }')
    if beside:
        g.mutate('insert Keeps { from: "q", to: "Cid" }')
    g.mutate('delete Person where name = "Bob"')
    with pytest.raises(MergeFailed) as error:
        g.merge("work")
    assert [str(c.kind.value) for c in error.value.conflicts] == ["OrphanEdge"]


def test_an_edge_without_a_key_that_was_replaced_with_other_ends_is_looked_at_in_a_merge(
    tmp_path: Path,
) -> None:
    schema = "node P { name: String @key } edge K: P -> P { n: I32? }"
    g = omnigraph.init(tmp_path / "g", schema=schema)
    g.load([{"type": "P", "data": {"name": name}} for name in "abc"], engine="local")
    one = {"edge": "K", "id": "e", "from": "a", "to": "b"}
    g.load([one], engine="local")
    g.create_branch("work")
    g.branch("work").load([one | {"to": "c"}], mode="overwrite", engine="local")
    g.mutate('delete P where name = "c"')
    with pytest.raises(MergeFailed) as error:
        g.merge("work")
    assert [str(c.kind.value) for c in error.value.conflicts] == ["OrphanEdge"]


def test_a_merge_counts_the_source_that_an_edge_left(g: Graph) -> None:
    heads = [edge("Heads", "Ann", "p"), edge("Heads", "Ann", "q"), edge("Heads", "Bob", "r")]
    g.load(heads, engine="local")
    g.create_branch("work")
    g.branch("work").mutate('insert Heads { from: "Bob", to: "p" }')
    g.mutate('insert Heads { from: "Bob", to: "q" }')
    with pytest.raises(MergeFailed) as error:
        g.merge("work")
    assert [str(c.kind.value) for c in error.value.conflicts] == ["CardinalityViolation"]


def test_a_move_is_a_change_in_diff_feed_and_blame_and_reverts(g: Graph) -> None:
    g.mutate('insert Keeps { from: "p", to: "Bob" }')
    (change,) = g.diff("main~1")
    assert (change.op, change.changed) == ("update", ("dst",))
    g.revert("main")
    assert ends(g)[0] == ("p", "p", "Ann")
    assert walked(g)[0] == ("p", "Ann")


def test_a_revert_does_not_move_it_back_to_a_node_that_is_gone(g: Graph) -> None:
    g.mutate('insert Keeps { from: "q", to: "Cid" }')
    moved = g.mutate('insert Keeps { from: "p", to: "Bob" }')
    g.mutate('delete Person where name = "Ann"')
    assert moved.commit_id is not None
    with pytest.raises(InvalidData, match='Keeps has `to` "Ann"'):
        g.revert(moved.commit_id)


def test_a_schema_change_adds_such_an_edge_and_refuses_the_key_where_edges_are(
    tmp_path: Path,
) -> None:
    plain = SCHEMA.split("edge Heads")[0].replace("  @key(src)", "").replace(" @card(0..1)", "")
    g = omnigraph.init(tmp_path / "g", schema=plain)
    keyed = plain.replace("since: I32?", "since: I32? @key(src)")
    plan = g.plan_schema(keyed)
    assert [step.tier.value for step in plan.steps] == ["validated"]
    g.load([*PEOPLE, *PACKAGES], engine="local")
    done = g.load([edge("Keeps", "p", "Ann")], mode="merge", engine="local")
    (advice,) = done.advice
    assert advice.startswith("Keeps has no key, so 1 Keeps edge was added and would be added again")
    assert "@key(src)" in advice
    (step,) = g.plan_schema(keyed).steps
    assert step.code == "OG-UN-103"
    with g.transaction() as tx:
        tx.delete("Keeps", where=None)
    g.apply_schema(keyed)
    g.load([edge("Keeps", "p", "Ann")], mode="merge", engine="local")
    g.load([edge("Keeps", "p", "Bob")], mode="merge", engine="local")
    assert ends(g) == [("p", "p", "Bob")]


def test_a_second_edge_where_one_is_allowed_suggests_the_key(tmp_path: Path) -> None:
    schema = SCHEMA.split("edge Heads")[0].replace("  @key(src)", "")
    g = omnigraph.init(tmp_path / "g", schema=schema)
    g.load([*PEOPLE, *PACKAGES, edge("Keeps", "p", "Ann")], engine="local")
    with pytest.raises(InvalidData, match=r"With @key\(src\) a second one would move the first"):
        g.load([edge("Keeps", "p", "Bob")], mode="merge", engine="local")


def test_optimized_and_indexed_tables_move_edges_too(g: Graph) -> None:
    for number in range(3):
        g.mutate(f'insert Keeps {{ from: "p", to: "{("Bob", "Cid", "Ann")[number]}" }}')
        if "://127" not in str(g.root):  # a server maintains by jobs
            g.optimize()
        assert walked(g) == [("p", ("Bob", "Cid", "Ann")[number]), ("q", "Ann")]
