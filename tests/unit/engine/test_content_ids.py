"""Whether a table is unchanged is told by its content id, over branches, merges and restores."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import Conflict, InvalidData
from omnigraph.runtime import SystemRuntime
from omnigraph.settings import Settings

SCHEMA = """
node Person { name: String @key  age: I64? }
node Note { text: String }
"""
RELAXED = Settings(durability="relaxed", folding="off")
COUNTER = itertools.count()


@pytest.fixture
def g() -> Graph:
    return omnigraph.init(f"memory://content-{next(COUNTER)}", schema=SCHEMA, settings=RELAXED)


def put(g: Graph, branch: str, *rows: dict[str, Any]) -> str:
    with g.branch(branch).transaction() as tx:
        tx.upsert("Person", list(rows))
    assert tx.commit_id is not None
    return tx.commit_id


def ages(g: Graph, ref: str = "main") -> dict[str, int]:
    rows = g.at(ref).scan("Person").read_all().to_pylist()
    return {row["id"]: row["age"] for row in sorted(rows, key=lambda row: row["id"])}


def content(g: Graph, ref: str, key: str = "node:Person") -> str:
    return g.at(ref).graph_version.pins[key].content


def forwarded(g: Graph) -> None:
    """Two branches whose tables have counted alike, and then main takes the other's."""
    g.create_branch("b")
    put(g, "main", {"name": "r1", "age": 1})
    with g.branch("b").transaction() as tx:
        tx.append("Person", [{"name": "r1", "age": 1}, {"name": "r2", "age": 2}])
    g.branch("b").merge("main")


def test_an_append_under_way_does_not_land_twice_beside_a_fast_forward(g: Graph) -> None:
    forwarded(g)
    other = omnigraph.open(g.root, settings=RELAXED)
    tx = other.transaction()
    tx.append("Person", [{"name": "r2", "age": 99}])
    assert g.merge("b").outcome == "fast_forward"
    with pytest.raises(InvalidData):
        tx.publish()
    assert ages(g) == {"r1": 1, "r2": 2}
    assert g.verify(deep=True).ok


def test_what_was_read_before_a_fast_forward_is_a_conflict_after_it(g: Graph) -> None:
    forwarded(g)
    tx = g.transaction()
    count = tx.scan("Person").num_rows
    tx.append("Note", {"text": f"{count} people"})
    g.merge("b")
    with pytest.raises(Conflict):
        tx.publish()
    assert g.snapshot().count("Note") == 0


def test_restoring_what_was_before_a_fast_forward_does_something(g: Graph) -> None:
    forwarded(g)
    g.create_tag("good", "main")
    g.merge("b")
    assert g.restore("good").kind == "restore"
    assert ages(g) == ages(g, "good") == {"r1": 1}


def test_content_is_new_at_each_visible_change_and_stays_through_maintenance(g: Graph) -> None:
    seen = [content(g, "main")]
    for step in range(3):
        put(g, "main", {"name": f"{step}", "age": step})
        seen.append(content(g, "main"))
    assert len(set(seen)) == len(seen)
    others = content(g, "main", "node:Note")
    assert g.optimize().commit is not None
    assert content(g, "main") == seen[-1]
    assert content(g, "main", "node:Note") == others
    g.apply_schema(SCHEMA.replace("age: I64?", "age: I64?  rank: I64?"))
    assert content(g, "main") != seen[-1]
    assert content(g, "main", "node:Note") == others


def test_content_travels_with_the_rows(g: Graph) -> None:
    put(g, "main", {"name": "a", "age": 1})
    old, first = content(g, "main"), g.snapshot().commit.id
    g.create_branch("b")
    assert content(g, "b") == old
    put(g, "b", {"name": "a", "age": 2})
    g.merge("b")
    assert content(g, "main") == content(g, "b") != old
    g.restore(first)
    assert content(g, "main") == old


def test_a_table_that_only_one_side_changed_is_adopted_with_its_content(g: Graph) -> None:
    g.create_branch("b")
    put(g, "b", {"name": "a", "age": 1})
    with g.transaction() as tx:
        tx.append("Note", {"text": "ours"})
    assert g.merge("b").outcome == "merged"
    assert content(g, "main") == content(g, "b")


def test_rows_that_both_sides_wrote_get_content_of_their_own(g: Graph) -> None:
    g.create_branch("b")
    put(g, "b", {"name": "a", "age": 1})
    put(g, "main", {"name": "c", "age": 2})
    before = {content(g, "main"), content(g, "b")}
    g.merge("b")
    assert content(g, "main") not in before


class Ahead(SystemRuntime):
    """A machine whose clock is five seconds fast."""

    def now(self) -> int:
        return super().now() + 5_000_000


def test_commits_of_two_branches_behind_a_fast_clock_differ_and_grow() -> None:
    root = f"memory://content-{next(COUNTER)}"
    with omnigraph.init(root, schema=SCHEMA, settings=RELAXED, runtime=Ahead()) as ahead:
        ahead.create_branch("x")
    g = omnigraph.open(root, settings=RELAXED)
    made: dict[str, list[str]] = {"main": [], "x": []}
    for number in range(20):
        for branch, commits in made.items():
            commits.append(put(g, branch, {"name": f"{branch} {number}"}))
    assert not set(made["main"]) & set(made["x"])
    for branch, commits in made.items():
        assert commits == sorted(commits)
        for commit in commits:
            assert g.at(f"{branch}@{commit}").commit.id == commit
