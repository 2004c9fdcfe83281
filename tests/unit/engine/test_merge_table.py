"""The truth table of merges: everything that one side can do to an entity, against the same.

One graph holds a branch for each deed; every pair is merged in both directions, then both sides
go on and are merged again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.write.transaction import Transaction
from omnigraph.errors import MergeFailed
from omnigraph.settings import Settings
from tests.model.merge_oracle import State, Told, equal, merge_states

SCHEMA = """
node Person { name: String @key age: I32? city: String? }
edge Knows: Person -> Person { since: I32? }
edge Likes: Person -> Person { @key(src, dst) much: I32? }
"""
EDGES = {"Knows": ("Person", "Person"), "Likes": ("Person", "Person")}
Deed = Callable[[Transaction], Any]


def put(**row: Any) -> Deed:
    return lambda tx: tx.upsert("Person", row)


def set_edge(kind: str, identity: str, **values: Any) -> Deed:
    return lambda tx: tx.update(kind, set=values, where=pc.field("id") == identity)


def remove(kind: str, identity: str) -> Deed:
    return lambda tx: tx.delete(kind, where=pc.field("id") == identity)


def knows(identity: str, src: str, dst: str, since: int | None = None) -> Deed:
    row = {"id": identity, "from": src, "to": dst, "since": since}
    return lambda tx: tx.upsert("Knows", row)


def likes(src: str, dst: str, much: int) -> Deed:
    return lambda tx: tx.upsert("Likes", {"from": src, "to": dst, "much": much})


DEEDS: dict[str, list[Deed]] = {
    "nothing": [],
    "add node": [put(name="zed", age=1)],
    "add node, other value": [put(name="zed", age=2)],
    "add another node": [put(name="yan", age=1)],
    "remove node": [remove("Person", "cy")],
    "remove node with edges": [remove("Person", "bob")],
    "add edge": [knows("k2", "ann", "cy", 1)],
    "add edge, other value": [knows("k2", "ann", "cy", 2)],
    "add edge of a new node": [put(name="zed", age=1), knows("k3", "zed", "bob")],
    "remove edge": [remove("Knows", "k1")],
    "set edge": [set_edge("Knows", "k1", since=9)],
    "add keyed edge": [likes("ann", "cy", 1)],
    "add keyed edge, other value": [likes("ann", "cy", 2)],
    "set": [put(name="cy", age=5)],
    "set to another value": [put(name="cy", age=6)],
    "set another property": [put(name="cy", city="oslo")],
    "set to null": [put(name="cy", age=None)],
    "net zero": [put(name="cy", age=7), put(name="cy", age=1)],
    "remove and add again": [remove("Person", "cy"), put(name="cy", age=1, city="rome")],
}


def contents(g: Graph, ref: str) -> State:
    snapshot = g.at(ref)
    return {
        (kind, row["id"]): row
        for kind in ("Person", "Knows", "Likes")
        for row in snapshot.scan(kind).read_all().to_pylist()
    }


def commit(g: Graph, branch: str, deed: Deed) -> None:
    with g.branch(branch).transaction() as tx:
        deed(tx)


@pytest.fixture(scope="module")
def g() -> Graph:
    graph = omnigraph.init(
        "memory://merge-table", schema=SCHEMA, settings=Settings(durability="relaxed")
    )
    with graph.transaction() as tx:
        people = ["ann", "bob", "dan", "eve"]
        tx.append("Person", [{"name": name, "age": 1, "city": "rome"} for name in people])
        tx.append("Person", {"name": "cy", "age": 1, "city": "rome"})
        tx.append("Knows", {"id": "k1", "from": "ann", "to": "bob", "since": 1})
    for name, deeds in DEEDS.items():
        graph.create_branch(name)
        for deed in deeds:
            commit(graph, name, deed)
    return graph


def told(conflicts: Any) -> frozenset[Told]:
    return frozenset((str(c.kind), c.type, c.id, c.property) for c in conflicts)


@pytest.mark.parametrize("mine", DEEDS)
def test_every_pair_of_deeds_merges_as_the_issue_says(g: Graph, mine: str) -> None:
    """Of later merges every fifth pair: a whole table of them is below."""
    check_pairs(g, mine, later=5)


@pytest.mark.slow
@pytest.mark.parametrize("mine", DEEDS)
def test_every_pair_of_deeds_goes_on_and_merges_again(g: Graph, mine: str) -> None:
    check_pairs(g, mine, later=1)


def check_pairs(g: Graph, mine: str, *, later: int) -> None:
    base, ours, names = contents(g, "main"), contents(g, mine), list(DEEDS)
    for yours in DEEDS:
        theirs = contents(g, yours)
        expected = merge_states(base, ours, theirs, EDGES)
        target = f"{mine} <- {yours}, {later}"
        head = g.create_branch(target, ref=mine)
        preview = g.branch(target).merge(yours, dry_run=True)
        assert g.at(target).commit == head
        assert told(preview.conflicts) == expected.conflicts, target
        if expected.conflicts:
            _expect_failure(g, yours, target, (base, ours, theirs), expected.conflicts)
            continue
        result = g.branch(target).merge(yours, actor="me")
        assert equal(contents(g, target), expected.state), target
        assert (result.outcome, result.changes) == (preview.outcome, preview.changes)
        assert result.adopted == preview.adopted
        assert result.outcome == _outcome(DEEDS[mine], DEEDS[yours]), target
        if result.outcome == "merged":
            assert result.commit is not None
            assert result.commit.parents == (head.id, g.at(yours).commit.id)
            assert (result.commit.kind, result.commit.actor) == ("merge", "me")
        place = names.index(mine), names.index(yours)
        if place[0] <= place[1] and sum(place) % later == 0:
            _go_on(g, yours, target)


def _outcome(mine: list[Deed], yours: list[Deed]) -> str:
    if not yours or mine is yours:
        return "already_up_to_date"
    return "merged" if mine else "fast_forward"


def _expect_failure(
    g: Graph, source: str, target: str, sides: tuple[State, ...], expected: frozenset[Told]
) -> None:
    head = g.at(target)
    with pytest.raises(MergeFailed) as failure:
        g.branch(target).merge(source)
    assert told(failure.value.conflicts) == expected
    assert g.at(target).commit == head.commit
    for conflict in failure.value.conflicts:
        assert conflict.id is not None
        rows = [side.get((conflict.type, conflict.id)) for side in sides]
        name = conflict.property
        column = {"from": "src", "to": "dst"}.get(name or "", name)
        values = rows if column is None else [row and row[column] for row in rows]
        assert [conflict.base, conflict.ours, conflict.theirs] == values


def _go_on(g: Graph, source: str, target: str) -> None:
    """Both sides change something else, and are merged again in either direction."""
    other = f"{target}, on"
    g.create_branch(other, ref=source)
    commit(g, target, put(name="dan", age=2))
    commit(g, other, put(name="eve", age=2))
    base, ours, theirs = contents(g, source), contents(g, target), contents(g, other)
    again = g.branch(target).merge(other)
    assert (again.outcome, again.base) == ("merged", g.at(source).commit.id)
    assert equal(contents(g, target), merge_states(base, ours, theirs, EDGES).state)
    assert g.branch(target).merge(other).outcome == "already_up_to_date"
    assert g.branch(other).merge(target).outcome == "fast_forward"
    assert equal(contents(g, other), contents(g, target))
    assert list(g.at(target).diff(other)) == []
    assert g.branch(other).merge(target).outcome == "already_up_to_date"
    assert g.branch(target).merge(other).outcome == "already_up_to_date"
