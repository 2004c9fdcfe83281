"""The handle on a branch: the graph's methods on that branch, and on no other of its name."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.branch import Branch
from omnigraph.errors import (
    BranchMoved,
    BranchNotFound,
    InvalidArgument,
    ProtectedBranch,
    ReadOnly,
)
from omnigraph.settings import Settings

SCHEMA = "node Person { name: String @key age: I32? }\n"
WIDER = SCHEMA + "node Note { text: String? }\n"
COUNTER = itertools.count()
BRANCHES = ("delete_branch", "may", "protect", "unprotect")
"""What concerns a branch, and is asked of the graph."""


@pytest.fixture
def g() -> Graph:
    root = f"memory://handle-{next(COUNTER)}"
    g = omnigraph.init(root, schema=SCHEMA, settings=Settings(durability="relaxed"))
    g.create_branch("side")
    return g


def add(at: Any, *names: str, **options: Any) -> str:
    with at.transaction(**options) as tx:
        tx.append("Person", [{"name": name} for name in names])
    assert tx.commit_id is not None
    return str(tx.commit_id)


def names(g: Graph, ref: str) -> list[str]:
    return sorted(g.at(ref).scan("Person").read_all()["name"].to_pylist())


def test_what_is_written_through_a_handle_is_on_its_branch_alone(g: Graph) -> None:
    side = g.branch("side")
    commit = add(side, "A", actor="ann", message="first")
    side.run(lambda tx: tx.append("Person", {"name": "B"}))
    side.apply_schema(WIDER)
    assert names(g, "side") == ["A", "B"]
    assert names(g, "main") == []
    assert g.at("side").schema == WIDER
    assert g.at("main").schema == SCHEMA
    assert side.optimize().commit is not None
    assert side.snapshot().commit.kind == "optimize"
    assert side.snapshot().commit == g.at("side").commit
    assert g.snapshot().version == 1
    assert g.at(commit).commit.actor == "ann"


def test_what_is_read_through_a_handle_is_on_its_branch(g: Graph) -> None:
    add(g, "M")
    side = g.branch("side")
    first = add(side, "A")
    add(side, "B")
    assert sorted(side.snapshot().scan("Person").read_all()["name"].to_pylist()) == ["A", "B"]
    assert list(side.log()) == list(g.at("side").log())
    assert len(list(side.log(limit=1, kind="write", first_parent=True))) == 1
    assert side.manifest() == g.at("side").manifest()
    assert {(c.op.name, c.id) for c in side.diff()} == {
        ("DELETE", "M"),
        ("INSERT", "A"),
        ("INSERT", "B"),
    }
    assert [c.id for c in side.diff(first)] == ["B"]
    entity = side.entity("Person", "A")
    assert entity is not None
    assert entity["name"] == "A"
    assert side.entity("Person", "M") is None
    assert [moment.commit.id for moment in side.history("Person", "A")] == [first]
    assert [block.commit.id for block in side.changes(first)] == [side.snapshot().commit.id]
    assert side.plan_schema(WIDER) == g.at("side").plan_schema(WIDER)


def test_branches_tags_and_merges_start_or_end_at_the_handles_branch(g: Graph) -> None:
    side = g.branch("side")
    commit = add(side, "A")
    assert g.create_tag("v1", "side").id == commit
    assert g.create_branch("deep", "side").id == commit
    deep = g.branch("deep")
    add(deep, "D")
    assert side.merge("deep", dry_run=True).outcome == "fast_forward"
    assert side.merge("deep").outcome == "fast_forward"
    assert names(g, "side") == ["A", "D"]
    assert names(g, "main") == []
    g.protect(side, actor="ann")
    assert g.protected_branches() == ["side"]
    with pytest.raises(ProtectedBranch):
        add(side, "X")
    g.unprotect(side)
    g.delete_branch(deep, actor="ann")
    assert g.branches() == ["main", "side"]


def test_restoring_and_reverting_go_to_the_handles_branch(g: Graph) -> None:
    side = g.branch("side")
    first = add(side, "A")
    second = add(side, "B")
    side.revert(second)
    assert names(g, "side") == ["A"]
    side.restore(second)
    assert names(g, "side") == ["A", "B"]
    side.restore(first, actor="ann", message="back")
    assert side.snapshot().commit.message == "back"
    assert names(g, "side") == ["A"]
    assert g.at("main").version == 1


def test_a_branch_that_is_not_there_has_no_handle(g: Graph) -> None:
    with pytest.raises(BranchNotFound, match=r"no branch 'sied'.*Did you mean 'side'"):
        g.branch("sied")
    g.create_tag("v1")
    with pytest.raises(BranchNotFound, match="'v1' is a tag, not a branch"):
        g.branch("v1")
    g.delete_branch("side")
    with pytest.raises(BranchNotFound, match="no branch 'side'"):
        g.branch("side")
    for wrong in ("", "main~1"):
        with pytest.raises((BranchNotFound, InvalidArgument)):
            g.branch(wrong)


def test_a_handle_has_the_rights_of_its_graph(g: Graph) -> None:
    add(g, "M")
    with omnigraph.open(g.root, mode="r") as reader:
        held = reader.branch("side")
        assert held.snapshot().version == 1
        with pytest.raises(ReadOnly):
            held.transaction()
    with pytest.raises(InvalidArgument, match="closed"):
        held.snapshot()
    with pytest.raises(InvalidArgument, match="closed"):
        reader.branch("side")


def over(side: Branch) -> Graph:
    return omnigraph.open(side._session.root.uri)


USES: dict[str, Callable[[Branch], object]] = {
    "snapshot": lambda side: side.snapshot(),
    "log": lambda side: side.log(),
    "manifest": lambda side: side.manifest(),
    "diff": lambda side: side.diff(),
    "entity": lambda side: side.entity("Person", "A"),
    "history": lambda side: side.history("Person", "A"),
    "changes": lambda side: side.changes(),
    "plan_schema": lambda side: side.plan_schema(WIDER),
    "transaction": lambda side: add(side, "X"),
    "run": lambda side: side.run(lambda tx: tx.append("Person", {"name": "X"})),
    "apply_schema": lambda side: side.apply_schema(WIDER),
    "merge": lambda side: side.merge("other"),
    "restore": lambda side: side.restore("main"),
    "revert": lambda side: side.revert("main"),
    "protect": lambda side: over(side).protect(side),
    "unprotect": lambda side: over(side).unprotect(side),
    "optimize": lambda side: side.optimize(),
    "delete": lambda side: over(side).delete_branch(side),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("made_again", [True, False])
def test_a_handle_never_takes_a_new_branch_for_its_own(
    g: Graph, use: str, made_again: bool
) -> None:
    g.create_branch("other")
    side = g.branch("side")
    g.delete_branch("side")
    if made_again:
        g.create_branch("side")
    versions = [(name, g.at(name).version) for name in g.branches()]
    with pytest.raises(BranchMoved, match="since this handle was made"):
        USES[use](side)
    assert [(name, g.at(name).version) for name in g.branches()] == versions
    assert g.tags() == {}


@pytest.mark.parametrize("use", USES)
def test_also_when_somebody_else_made_it_anew(g: Graph, use: str) -> None:
    g.create_branch("other")
    side = g.branch("side")
    other = omnigraph.open(g.root)
    other.delete_branch("side")
    other.create_branch("side")
    with pytest.raises(BranchMoved):
        USES[use](side)


def test_a_block_that_was_open_when_the_branch_was_made_anew_is_told(g: Graph) -> None:
    side = g.branch("side")
    tx = side.transaction()
    tx.append("Person", {"name": "A"})
    other = omnigraph.open(g.root)
    other.delete_branch("side")
    other.create_branch("side")
    with pytest.raises(BranchMoved):
        tx.publish()
    assert names(other, "side") == []


def test_a_handle_looks_at_the_head_once_before_it_reads_or_writes(g: Graph) -> None:
    g.branch("side").apply_schema(WIDER)
    side = g.branch("side")
    reads: list[str] = []
    get = g._session.objects.get

    def counted(key: str) -> bytes:
        reads.append(key)
        return get(key)

    g._session.objects.get = counted  # type: ignore[method-assign]
    side.snapshot()
    assert len(reads) == 1
    with side.transaction() as tx:
        tx.append("Note", {"text": "x"})
    assert len(reads) == 1  # what can clash with nothing needs no look
    assert tx.io.writes == 4


def test_a_graph_is_its_branch_main_and_repeats_no_signature() -> None:
    own = {name for name in vars(Graph) if name in dir(Branch) and not name.startswith("_")}
    assert issubclass(Graph, Branch)
    assert own == {"log"}  # which has `all` there
    for kind in (Branch, Graph):
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            if name.startswith("_"):
                continue
            given = inspect.signature(method).parameters
            assert "from_" not in given, name
            assert "into" not in given, name
            assert "branch" not in given or name in BRANCHES, name
