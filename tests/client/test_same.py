"""A graph on a server answers as the same graph in storage does: the same values, of the same
kinds, and the same refusals."""

from __future__ import annotations

import io
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.client.remote_graph import RemoteGraph
from omnigraph.errors import Cancelled, InvalidData, MergeFailed, OmnigraphError
from tests.client.conftest import SCHEMA
from tests.client.served import Served


@dataclass
class Both:
    far: RemoteGraph
    near: Graph
    commits: list[str]


@pytest.fixture(scope="module")
def both(server: Served) -> Iterator[Both]:
    """One graph with a past, opened at its address and in its storage."""
    root = server.new_root()
    with omnigraph.init(root, schema=SCHEMA) as far:
        assert isinstance(far, RemoteGraph)
        commits = [far.commit.id]
        with far.transaction(message="three people") as tx:
            tx.append(
                "Person",
                [
                    {
                        "name": "Ada",
                        "age": 36,
                        "born": date(1815, 12, 10),
                        "seen": datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=UTC),
                        "place": [1.5, -2.0],
                        "photo": bytes(range(256)) * 50,
                        "tags": ["a", "ü"],
                        "score": math.inf,
                    },
                    {"name": "Bob", "age": 41, "photo": b""},
                    {"name": "Cy\u2028d", "score": 0.1},
                ],
            )
            tx.append(
                "Knows", [{"id": "k1", "from": "Ada", "to": "Bob", "since": date(2020, 1, 1)}]
            )
        commits.append(tx.commit_id or "")
        far.mutate('update Person set { age: 37, born: date("1815-12-11") } where name = "Ada"')
        far.create_tag("v1")
        far.create_branch("side")
        far.branch("side").mutate('delete Person where name = "Bob"', message="no Bob")
        far.mutate('insert Note { text: "a note about Ada" }')
        commits.append(far.commit.id)
        with omnigraph.open(server.storage_of(root)) as near:
            yield Both(far, near, commits)


def rows(found: Any) -> list[Any]:
    return sorted(found, key=str)


NAMES = "match { $p: Person } return { $p.name }"
READS: dict[str, Callable[[Graph], Any]] = {
    "query": lambda g: rows(g.query("match { $p: Person } return { $p }")),
    "ordered": lambda g: (
        g.query("match { $p: Person } return { $p.name } order { $p.name }").ordered
    ),
    "parameters": lambda g: g.query(
        "query q($d: Date) { match { $p: Person $p.born >= $d } return { $p.name, $p.born } }",
        params={"d": date(1815, 12, 11)},
    ).to_pylist(),
    "schema of a result": lambda g: g.query("match { $p: Person } return { $p.age }").schema,
    "commit of a result": lambda g: g.query("match { $p: Person } return { $p.age }").commit,
    "prepared": lambda g: g.prepare(
        "query q($n: I32) { match { $p: Person $p.age > $n } return { $p.name } }"
    )({"n": 3}).to_pylist(),
    "explain": lambda g: g.explain("match { $p: Person $p.age > 3 } return { $p.name }"),
    "scan": lambda g: rows(g.scan("Person").read_all().to_pylist()),
    "scan where": lambda g: rows(g.scan("Person", filter="age > 36").read_all().to_pylist()),
    "scan by arrow": lambda g: rows(
        g.scan("Person", columns=["name"], filter=pc.field("born") > date(1800, 1, 1)).read_all()
    ),
    "count": lambda g: [g.count(name) for name in g.types()],
    "entity": lambda g: g.entity("Person", "Ada"),
    "no entity": lambda g: g.entity("Person", "Nobody"),
    "edge": lambda g: g.entity("Knows", "k1"),
    "blob": lambda g: _blob(g, "Ada"),
    "empty blob": lambda g: _blob(g, "Bob"),
    "no blob": lambda g: g.blob("Person", "Cy\u2028d", "photo"),
    "search": lambda g: g.search("note").to_pylist(),
    "indexes": lambda g: g.indexes(),
    "diff": lambda g: rows(g.diff("main~2")),
    "diff of branches": lambda g: rows(g.at("side").diff("main", types=["Person"])),
    "summary": lambda g: g.diff("main~2").summary(),
    "steps": lambda g: g.diff("main~2").schema.steps,
    "log": lambda g: list(g.log()),
    "log of all": lambda g: list(g.log(all=True, limit=3)),
    "labels": lambda g: g.log().labels(),
    "lanes": lambda g: g.log(all=True).lanes(),
    "history": lambda g: list(g.history("Person", "Ada")),
    "changes": lambda g: [
        (b.commit, b.cursor, rows(b.changes), b.schema.steps) for b in g.changes()
    ],
    "changes after": lambda g: [b.commit.id for b in g.changes("main~2", types=["Note"], limit=1)],
    "schema": lambda g: (g.schema, g.types(), g.commit),
    "plan": lambda g: g.plan_schema(g.schema + "node Pet { name: String }"),
    "manifest": lambda g: g.manifest().to_pylist(),
    "branches": lambda g: (g.branches(), g.tags(), g.protected_branches()),
    "older": lambda g: (g.at("v1").count("Note"), g.at("main~3").count("Person")),
    "snapshot": lambda g: rows(
        g.branch("side").snapshot().scan("Person", columns=["name"]).read_all()
    ),
    "degrees": lambda g: g.algorithm("degrees", edges="Knows").to_dict(),
    "ranks": lambda g: g.algorithm("pagerank", where={"Person": "age > 1"}).to_arrow().to_pylist(),
    "export": lambda g: _exported(g),
    "format": lambda g: g.format(),
}


def _blob(g: Graph, name: str) -> Any:
    blob = g.blob("Person", name, "photo")
    assert blob is not None
    return blob.size, blob.read(), blob.read(10, 3), blob.read(10_000_000)


def _exported(g: Graph) -> Any:
    made = io.BytesIO()
    told = g.export(types=["Note", "Knows"], to=made)
    return sorted(made.getvalue().splitlines()), told.counts, told.commit


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_a_read_gives_the_same(both: Both, read: Callable[[Graph], Any]) -> None:
    far: Any = both.far
    assert read(far) == read(both.near)


REFUSED: dict[str, Callable[[Graph], Any]] = {
    "prepared wrongly": lambda g: g.prepare("match { $p: Persn } return { $p.name }"),
    "no such type": lambda g: g.query("match { $p: Persn } return { $p.name }"),
    "no parameter": lambda g: g.query(
        "query q($n: I32) { match { $p: Person $p.age > $n } return { $p.name } }"
    ),
    "a mutation": lambda g: g.query("delete Person where true"),
    "scan": lambda g: g.scan("Persn"),
    "column": lambda g: g.scan("Person", columns=["nam"]),
    "condition": lambda g: g.scan("Person", filter="agee > 3"),
    "count": lambda g: g.count("Persn"),
    "blob": lambda g: g.blob("Person", "Ada", "age"),
    "ref": lambda g: g.at("nowhere"),
    "far back": lambda g: g.at("main~99"),
    "branch": lambda g: g.branch("nowhere"),
    "diff": lambda g: g.diff("main", types=["Persn"]),
    "diff of what": lambda g: g.diff("main", ops=["grow"]),
    "history": lambda g: g.history("Persn", "Ada"),
    "log": lambda g: g.log(since="yesterday"),
    "changes": lambda g: list(g.changes("nowhere")),
    "key": lambda g: g.mutate('insert Knows { from: "Ada", to: "Nobody" }'),
    "text": lambda g: g.mutate("insert Persn { }"),
    "moved": lambda g: g.mutate("delete Note where true", if_commit=26 * "0"),
    "schema": lambda g: g.apply_schema("node Person { name String }"),
    "loss": lambda g: g.plan_schema("node Person {"),
    "itself": lambda g: g.merge("main"),
    "no branch to merge": lambda g: g.merge("nowhere"),
    "branch again": lambda g: g.create_branch("side"),
    "name": lambda g: g.create_branch(" x"),
    "main": lambda g: g.delete_branch("main"),
    "tag again": lambda g: g.create_tag("v1"),
    "no tag": lambda g: g.delete_tag("v2"),
    "restore": lambda g: g.restore("nowhere"),
    "file": lambda g: g.load("nowhere.jsonl"),
    "algorithm": lambda g: g.algorithm("magic"),
    "rows": lambda g: g.run(lambda tx: tx.append("Person", {"name": "Zed", "age": "old"})),
    "exists": lambda g: g.run(lambda tx: tx.append("Person", {"name": "Ada"})),
    "update": lambda g: g.run(lambda tx: tx.update("Person", set={"ag": 1}, where=None)),
}


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED.keys())
def test_a_refusal_is_the_same(both: Both, refused: Callable[[Graph], Any]) -> None:
    far: Any = both.far
    with pytest.raises(OmnigraphError) as near:
        refused(both.near)
    with pytest.raises(OmnigraphError) as told:
        refused(far)
    assert type(told.value) is type(near.value)
    assert told.value.message == near.value.message
    assert told.value.hint == near.value.hint
    for name in ("diagnostics", "problems", "conflicts"):
        assert getattr(told.value, name, None) == getattr(near.value, name, None)


def test_conflicts_of_a_merge_have_the_values_of_both_sides(g: RemoteGraph) -> None:
    with g.transaction() as tx:
        tx.append("Person", {"name": "A", "born": date(2000, 1, 1)})
    g.create_branch("side")
    g.mutate('update Person set { born: date("2001-01-01") } where name = "A"')
    g.branch("side").mutate('update Person set { born: date("2002-02-02") } where name = "A"')
    with pytest.raises(MergeFailed) as caught:
        g.merge("side")
    (conflict,) = caught.value.conflicts
    assert (conflict.base, conflict.ours) == (date(2000, 1, 1), date(2001, 1, 1))
    (planned,) = g.merge("side", dry_run=True).conflicts
    assert planned == conflict
    row = {"name": "A", "born": date(2003, 3, 3)}
    assert g.merge("side", resolve={("Person", "A"): row}).outcome == "merged"
    found = g.entity("Person", "A")
    assert found is not None
    assert found["born"] == date(2003, 3, 3)


def test_a_query_is_ended_by_cancel(g: RemoteGraph) -> None:
    g.load([{"text": f"{n:050}"} for n in range(30_000)], type="Note")
    found = g.query("match { $n: Note } return { $n.text }")
    batches = found.batches()
    assert next(batches).num_rows
    found.cancel()
    with pytest.raises(Cancelled):
        list(batches)


def test_a_savepoint_asks_whether_its_block_can_be_done(g: RemoteGraph) -> None:
    g.mutate('insert Person { name: "A" }')
    with g.transaction() as tx:
        tx.append("Person", {"name": "B"})
        with pytest.raises(InvalidData, match="exists already"), tx.savepoint():
            tx.append("Person", {"name": "A"})
        tx.append("Person", {"name": "C"})
    assert sorted(g.scan("Person").read_all()["name"].to_pylist()) == ["A", "B", "C"]


def test_what_comes_is_followed_from_where_one_was(g: RemoteGraph) -> None:
    g.mutate('insert Person { name: "A" }', message="first")
    follow = g.changes(g.commit.id, follow=True)
    g.mutate('insert Person { name: "B" }', message="second")
    block = next(follow)
    assert (block.commit.message, [c.id for c in block.changes]) == ("second", ["B"])
    g.mutate('insert Person { name: "C" }', message="third")
    assert next(follow).commit.message == "third"
    follow.close()
    (last,) = g.changes(block.cursor)
    assert last.commit.message == "third"


def test_following_ends_with_the_graph(g: RemoteGraph) -> None:
    follow = g.changes(g.commit.id, follow=True)
    began = time.monotonic()
    closing = threading.Timer(0.3, g.close)
    closing.start()
    assert list(follow) == []
    assert time.monotonic() - began < 10  # there is a sign of life every 15 seconds
    closing.join()
