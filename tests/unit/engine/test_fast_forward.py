"""A fast-forward is an ordinary commit: its branch goes on, and every ref along it stays true."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import Reclaimed
from omnigraph.settings import Settings
from omnigraph.telemetry import Ledger
from tests.bench.aging import PassingTime
from tests.unit.engine.clock import Clock

SCHEMA = """
node Person { name: String @key  age: I64? }
"""
SETTINGS = Settings(durability="relaxed", folding="off", grace=60)
COUNTER = itertools.count()


def new_graph(clock: Clock | None = None) -> Graph:
    root = f"memory://forward-{next(COUNTER)}"
    return omnigraph.init(root, schema=SCHEMA, settings=SETTINGS, runtime=clock or Clock())


@pytest.fixture
def g() -> Graph:
    return new_graph()


def put(g: Graph, branch: str, name: str, **options: Any) -> str:
    with g.branch(branch).transaction(**options) as tx:
        tx.upsert("Person", [{"name": name}])
    assert tx.commit_id is not None
    return tx.commit_id


def names(g: Graph, ref: str = "main") -> list[str]:
    return sorted(g.at(ref).scan("Person").read_all()["id"].to_pylist())


def test_it_has_an_id_a_time_and_two_parents_of_its_own(g: Graph) -> None:
    g.create_branch("b")
    ours, theirs = g.snapshot().commit, put(g, "b", "ann")
    done = g.merge("b", actor="ada", message="take it")
    assert done.outcome == "fast_forward"
    assert done.commit is not None
    assert done.commit == g.snapshot().commit
    assert done.commit.parents == (ours.id, theirs)
    assert done.commit.id not in done.commit.parents
    assert done.commit.created_at > g.at(theirs).commit.created_at
    assert (done.commit.actor, done.commit.message) == ("ada", "take it")
    version = g.snapshot().graph_version
    assert (version.version, version.first) == (2, 1)
    assert [commit.id for commit in g.log()] == [done.commit.id, theirs, ours.id]


def test_it_is_one_write_and_reads_no_table(g: Graph) -> None:
    g.create_branch("b")
    put(g, "b", "ann")
    done = g.merge("b")
    assert (done.io.writes, done.io.by_purpose.get("table")) == (1, None)
    assert done.io.by_purpose["version"]["put"] == 1


def test_time_travel_and_steps_back_follow_the_branch_itself() -> None:
    clock = Clock()
    g = new_graph(clock)
    g.create_branch("b")
    seen: dict[str, list[str]] = {}

    def look() -> None:
        clock.skip(1)
        moment = datetime.fromtimestamp(clock.now() / 1e6, UTC).isoformat()
        seen[f"main*{moment}"] = names(g)
        clock.skip(1)

    look()
    put(g, "main", "main 1")
    look()
    put(g, "b", "b 1")
    look()
    g.branch("b").merge("main")
    look()
    assert g.merge("b").outcome == "fast_forward"
    look()
    assert {ref: names(g, ref) for ref in seen} == seen
    assert names(g, "main~1") == ["main 1"]
    assert names(g, "main~2") == []
    assert [moment.commit.id for moment in g.history("Person", "b 1")] == [g.snapshot().commit.id]


def test_every_commit_that_the_log_shows_can_be_named(g: Graph) -> None:
    g.create_branch("b")
    put(g, "main", "main 1")
    put(g, "b", "b 1")
    g.branch("b").merge("main")
    g.merge("b")
    g.create_branch("c")
    put(g, "c", "c 1")
    put(g, "main", "main 2")
    g.merge("c")
    for name in ("b", "c"):
        g.delete_branch(name)
    g.create_branch("b")  # another of this name
    for handle in (g, omnigraph.open(g.root, settings=SETTINGS)):
        shown = [commit.id for commit in handle.log()]
        assert len(shown) == len(set(shown)) == 8
        for commit in shown:
            assert handle.at(commit).commit.id == commit
            assert handle.at(f"main@{commit}").commit.id == commit


def test_a_branch_that_was_forwarded_is_forwarded_again(g: Graph) -> None:
    g.create_branch("b")
    for number in range(3):
        put(g, "b", f"b {number}")
        assert g.merge("b").outcome == "fast_forward"
        assert g.merge("b").outcome == "already_up_to_date"
        assert g.branch("b").merge("main").outcome == "already_up_to_date"
    put(g, "main", "main 1")
    assert g.branch("b").merge("main").outcome == "fast_forward"
    assert names(g, "b") == names(g)


def test_changes_tell_a_fast_forward_as_one_block_where_it_happened(g: Graph) -> None:
    put(g, "main", "main 1")
    g.create_branch("b")
    put(g, "b", "b 1")
    put(g, "b", "b 2")
    cursor = list(g.changes())[-1].cursor
    done = g.merge("b").commit
    assert done is not None
    (block,) = g.changes(after=cursor)
    assert block.commit.id == done.id
    assert sorted(change.id for change in block.changes) == ["b 1", "b 2"]


def test_a_fast_forward_can_be_reverted(g: Graph) -> None:
    put(g, "main", "main 1")
    g.create_branch("b")
    put(g, "b", "b 1")
    g.merge("b")
    g.revert("main")
    assert names(g) == ["main 1"]


def test_a_protected_branch_is_forwarded_by_a_merge(g: Graph) -> None:
    g.protect("main")
    g.create_branch("b")
    put(g, "b", "b 1")
    assert g.merge("b").outcome == "fast_forward"
    assert names(g) == ["b 1"]
    assert g.protected_branches() == ["main"]


def test_protecting_a_branch_after_a_fast_forward_is_a_commit_of_its_own(g: Graph) -> None:
    g.create_branch("b")
    put(g, "b", "b 1")
    g.merge("b")
    g.protect("main")
    head = g._session.head("main", Ledger())
    assert (head.commit.kind, head.merged, head.forwarded) == ("protect", None, False)


def test_cleanup_keeps_what_it_promises_after_a_merged_branch_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time, root = PassingTime(monkeypatch), tmp_path / "graph"
    g = omnigraph.init(root, schema=SCHEMA, settings=SETTINGS, runtime=time)
    kept = [put(g, "main", f"main {n}") for n in range(3)]
    g.create_branch("work")
    gone = [put(g, "work", f"work {n}") for n in range(3)]
    g.merge("work")
    g.delete_branch("work")
    before = {ref: names(g, ref) for ref in ("main", "main~1", "main~2", "main~3", *kept)}
    for commit in gone:
        assert g.at(commit).commit.id == commit
    time.wait(root, 600)
    g.cleanup(keep=10, older_than="7d")
    for handle in (g, omnigraph.open(root, settings=SETTINGS, runtime=time)):
        assert {ref: names(handle, ref) for ref in before} == before
        told = [block.commit.kind for block in handle.changes()]
        assert told == ["init", "write", "write", "write", "merge", "cleanup"]
        for commit in gone[:-1]:
            for ref in (commit, f"main@{commit}"):
                with pytest.raises(Reclaimed):
                    handle.at(ref)
    g.revert("main~1")
    assert names(g) == ["main 0", "main 1", "work 0", "work 1", "work 2"]
    assert g.verify(deep=True).ok
