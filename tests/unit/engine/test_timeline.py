"""The life of one entity, against a plain comparison of every two versions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph
from omnigraph import Graph
from omnigraph.engine.history.timeline import read_moments
from omnigraph.errors import BranchNotFound, HistoryGap, InvalidArgument, TypeNotFound
from omnigraph.model.changes import Op
from omnigraph.settings import Settings
from omnigraph.telemetry import Ledger
from tests.unit.engine.test_feed import raise_floor

SCHEMA = """
node Person { name: String @key age: I32? tags: [String]? photo: Blob? }
node Note { text: String }
edge Knows: Person -> Person { since: I32? @key(src, dst) }
"""
COUNTER = itertools.count()
RELAXED = Settings(durability="relaxed")


def new_graph(**settings: Any) -> Graph:
    chosen = Settings(durability="relaxed", **settings)
    return omnigraph.init(f"memory://time-{next(COUNTER)}", schema=SCHEMA, settings=chosen)


@pytest.fixture
def g() -> Graph:
    return new_graph()


def write(g: Graph, change: Callable[[Any], object], branch: str = "main") -> str:
    with g.branch(branch).transaction(actor="me") as tx:
        change(tx)
    assert tx.commit_id is not None
    return tx.commit_id


NAMES = ["ann", "bob"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(NAMES), st.integers(0, 2)),
        st.tuples(st.just("delete"), st.sampled_from(NAMES), st.none()),
        st.tuples(st.just("overwrite"), st.sampled_from(NAMES), st.integers(0, 2)),
        st.tuples(st.just("other"), st.none(), st.none()),
        st.tuples(st.just("compact"), st.none(), st.none()),
        st.tuples(st.just("fork"), st.none(), st.none()),
    ),
    max_size=8,
)


def run(g: Graph, steps: list[tuple[str, Any, Any]]) -> str:
    """The branch on which it ends: a fork goes on elsewhere."""
    branch = "main"
    for number, (step, name, age) in enumerate(steps):
        if step == "compact":
            g.branch(branch).optimize()
            continue
        if step == "fork":
            g.create_branch(f"b{number}", ref=branch)
            branch = f"b{number}"
            continue
        with g.branch(branch).transaction() as tx:
            if step == "put":
                tx.upsert("Person", {"name": name, "age": age})
            elif step == "overwrite":
                tx.overwrite("Person", {"name": name, "age": age})
            elif step == "other":
                tx.append("Note", {"text": "x"})
            else:
                tx.delete("Person", where=pc.field("name") == name)
    return branch


@given(STEPS)
def test_the_history_is_what_comparing_every_two_versions_tells(
    steps: list[tuple[str, Any, Any]],
) -> None:
    g = new_graph()
    branch = run(g, steps)
    commits = list(g.at(branch).log())
    for name in NAMES:
        refs = [f"{branch}@{commit.id}" for commit in commits]
        rows = [g.at(ref).entity("Person", name) for ref in refs]
        for ref, row in zip(refs, rows, strict=True):
            scanned = g.at(ref).scan("Person", filter=pc.field("name") == name)
            assert scanned.read_all().to_pylist() == ([] if row is None else [row])
        expected = [
            (commit, before, after)
            for commit, (after, before) in zip(commits, itertools.pairwise(rows), strict=False)
            if before != after
        ]
        found = list(g.at(branch).history("Person", name))
        assert [(m.commit, m.change.before, m.change.after) for m in found] == expected
        assert list(g.at(branch).history("Person", name, limit=1)) == found[:1]


def test_every_moment_says_what_changed_and_who_did_it(g: Graph) -> None:
    write(g, lambda tx: tx.upsert("Person", {"name": "ann", "age": 1, "photo": b"x"}))
    write(g, lambda tx: tx.upsert("Person", {"name": "bob"}))
    write(g, lambda tx: tx.update("Person", set={"age": 2}, where=pc.field("name") == "ann"))
    write(g, lambda tx: tx.append("Knows", {"from": "ann", "to": "bob"}))
    gone = write(g, lambda tx: tx.delete("Person", where=pc.field("name") == "ann"))
    moments = list(g.history("Person", "ann"))
    assert [m.change.op for m in moments] == [Op.DELETE, Op.UPDATE, Op.INSERT]
    assert [m.commit.actor for m in moments] == ["me"] * 3
    assert moments[0].commit.id == gone
    assert moments[1].change.changed == ("age",)
    assert moments[2].change.after == {
        "id": "ann",
        "name": "ann",
        "age": 1,
        "tags": None,
        "photo": b"x",
    }
    (edge,) = g.at("main~1").scan("Knows").read_all().to_pylist()
    assert [m.change.op for m in g.history("Knows", edge["id"])] == [Op.DELETE, Op.INSERT]
    assert g.at("main~1").entity("Knows", edge["id"]) == edge
    assert g.entity("Knows", edge["id"]) is None
    assert list(g.history("Person", "nobody")) == []


def test_an_old_commit_is_read_with_its_own_schema(g: Graph) -> None:
    old = write(g, lambda tx: tx.append("Person", {"name": "ann", "age": 1}))
    g.apply_schema(
        SCHEMA.replace(
            "node Person { name: String @key age: I32?",
            'node Human @rename_from("Person") { name: String @key '
            'years: I64? @rename_from("age") rank: I32 @default(7)',
        ).replace("Person -> Person", "Human -> Human")
    )
    write(g, lambda tx: tx.upsert("Human", {"name": "ann", "years": 2}))
    now = g.entity("Human", "ann")
    assert now == {"id": "ann", "name": "ann", "years": 2, "rank": 7, "tags": None, "photo": None}
    then = g.at(old).entity("Person", "ann")
    assert then == {"id": "ann", "name": "ann", "age": 1, "tags": None, "photo": None}
    with pytest.raises(TypeNotFound):
        g.at(old).entity("Human", "ann")
    with pytest.raises(TypeNotFound):
        g.entity("Person", "ann")
    update, insert = g.history("Human", "ann")
    assert (update.change.type, update.change.changed) == ("Human", ("years",))
    assert (insert.change.type, insert.change.after) == ("Person", then)


def test_a_type_that_was_dropped_still_has_a_history(g: Graph) -> None:
    write(g, lambda tx: tx.append("Note", {"text": "x"}))
    (note,) = g.snapshot().scan("Note").read_all().to_pylist()
    g.apply_schema(SCHEMA.replace("node Note { text: String }", ""))
    write(g, lambda tx: tx.append("Person", {"name": "ann"}))
    dropped, made = g.history("Note", note["id"])
    assert (dropped.change.op, dropped.commit.kind) == (Op.DELETE, "schema")
    assert made.change.after == note
    with pytest.raises(TypeNotFound, match="Did you mean Person"):
        g.history("Persn", "ann")


def test_bad_arguments_have_their_own_errors(g: Graph) -> None:
    with pytest.raises(InvalidArgument, match=r"id of (entity|history)"):
        g.entity("Person", 7)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"id of (entity|history)"):
        g.history("Person", 7)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="below zero"):
        g.history("Person", "ann", limit=-1)
    with pytest.raises(BranchNotFound):
        g.at("nowhere").history("Person", "ann")


def test_history_reads_what_differs_and_nothing_for_commits_that_touch_other_tables() -> None:
    g = new_graph(lookup_rows=0)
    names = [f"p{n}" for n in range(30_000)]
    write(g, lambda tx: tx.append("Person", pa.table({"name": names, "age": [0] * len(names)})))
    for age in range(3):
        write(g, lambda tx: tx.upsert("Person", {"name": "p7", "age": age + 1}))  # noqa: B023
    for _ in range(5):
        write(g, lambda tx: tx.append("Note", {"text": "x"}))
    g.optimize(types=["Note"])
    with omnigraph.open(g.root, settings=RELAXED) as fresh:
        whole = fresh.snapshot()
        whole.scan("Person").read_all()
        ledger = Ledger()
        moments = read_moments(fresh._session, fresh.snapshot(), "Person", "p7", ledger)
        three = list(itertools.islice(moments, 3))
        assert [m.change.changed for m in three] == [("age",)] * 3
        assert ledger.bytes < whole.io.bytes / 2
        tables = {pin.location for pin in whole.graph_version.tables if pin.key == "node:Person"}
        opened = {table.location for table in fresh._session.tables._open.values()}
        assert opened == tables


def test_history_ends_where_cleanup_did_and_says_so_if_there_was_more() -> None:
    g = new_graph()
    write(g, lambda tx: tx.upsert("Person", {"name": "old", "age": 1}))
    write(g, lambda tx: tx.upsert("Person", {"name": "ann", "age": 1}))
    write(g, lambda tx: tx.upsert("Person", {"name": "new", "age": 1}))
    write(g, lambda tx: tx.upsert("Person", {"name": "ann", "age": 2}))
    raise_floor(g, 3, remove=True)
    g.create_branch("dev", ref="main")
    with omnigraph.open(g.root, settings=RELAXED) as fresh:
        for one in (fresh, g):  # who was there before knows the older versions still
            for branch in ("main", "dev"):
                assert [m.change.op for m in one.at(branch).history("Person", "new")] == [Op.INSERT]
                moments = one.at(branch).history("Person", "ann")
                assert next(moments).change.op is Op.UPDATE
                with pytest.raises(HistoryGap, match="was there at commit"):
                    next(moments)
                with pytest.raises(HistoryGap):
                    next(one.at(branch).history("Person", "old"))
                assert list(one.at(branch).history("Person", "nobody")) == []
