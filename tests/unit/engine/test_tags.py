"""Tags and protected branches: what they cost, and who wins when names or writers race."""

from __future__ import annotations

import itertools

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine import branches_and_tags as naming
from omnigraph.errors import (
    BranchExists,
    BranchNotFound,
    InvalidArgument,
    ProtectedBranch,
    TagExists,
    TagNotFound,
)
from omnigraph.model.options import CommitOptions
from omnigraph.settings import Settings
from omnigraph.telemetry import Ledger

SCHEMA = "node Person { name: String @key age: I32? }"
COUNTER = itertools.count()
RELAXED = Settings(durability="relaxed")


@pytest.fixture
def root() -> str:
    return f"memory://tags-{next(COUNTER)}"


@pytest.fixture
def g(root: str) -> Graph:
    return omnigraph.init(root, schema=SCHEMA, settings=RELAXED)


def add(g: Graph, name: str, branch: str = "main") -> str:
    with g.branch(branch).transaction() as tx:
        tx.append("Person", {"name": name})
    assert tx.commit_id is not None
    return tx.commit_id


def names(g: Graph, ref: str) -> set[str]:
    return set(g.at(ref).scan("Person").read_all()["name"].to_pylist())


def test_a_tag_stays_where_it_is_while_the_branch_moves(g: Graph) -> None:
    first = add(g, "ann")
    assert g.create_tag("v1").id == first
    second = add(g, "bob")
    assert g.create_tag("v2", "main~0").id == second
    assert names(g, "v1") == {"ann"}
    assert names(g, "v2") == {"ann", "bob"}
    assert {name: commit.id for name, commit in g.tags().items()} == {"v1": first, "v2": second}
    assert g.branches() == ["main"]


def test_a_tag_is_a_ref_with_all_its_endings(g: Graph) -> None:
    empty = g.snapshot().commit
    add(g, "ann")
    add(g, "bob")
    g.create_tag("v", "main~1")
    add(g, "cy")
    assert g.at("v~1").commit == empty
    assert g.at(f"v@{empty.id}").commit == empty
    assert names(g, "v*2999-01-01") == {"ann"}
    assert g.diff("v").summary() == {"Person": {"insert": 2}}
    assert [commit.id for commit in g.at("v").log()][-1] == empty.id
    g.create_branch("fix", ref="v")
    add(g, "dee", "fix")
    assert names(g, "fix") == {"ann", "dee"}


def test_a_commit_that_only_a_tag_holds_or_nothing_is_found_by_its_id(g: Graph) -> None:
    g.create_branch("side")
    commit = add(g, "ann", "side")
    g.create_tag("kept", "side")
    g.delete_branch("side")
    assert names(g, commit) == {"ann"}
    g.delete_tag("kept")
    assert names(g, commit) == {"ann"}  # until cleanup takes what was deleted


def test_a_name_is_a_branch_or_a_tag_and_never_both(g: Graph) -> None:
    g.create_tag("x")
    with pytest.raises(TagExists):
        g.create_tag("x")
    with pytest.raises(TagExists, match="There is a tag 'x' already"):
        g.create_branch("x")
    g.create_branch("y")
    with pytest.raises(BranchExists):
        g.create_tag("y")
    g.delete_branch("y")
    g.create_tag("y")
    g.delete_tag("y")
    g.create_branch("y")
    add(g, "ann", "y")
    assert (g.branches(), list(g.tags())) == (["main", "y"], ["x"])


def test_handles_that_know_nothing_of_each_other_cannot_take_one_name_twice(
    root: str, g: Graph
) -> None:
    with omnigraph.open(root, settings=RELAXED) as other:
        other.snapshot()
        g.create_tag("x")
        with pytest.raises(TagExists):
            other.create_branch("x")
        g.delete_tag("x")
        other.create_branch("x")
        with pytest.raises(BranchExists):
            g.create_tag("x")


def test_a_tag_cannot_be_written_to_nor_deleted_as_a_branch(g: Graph) -> None:
    g.create_tag("v1")
    with pytest.raises(BranchNotFound, match="is a tag, not a branch"):
        add(g, "ann", "v1")
    with pytest.raises(BranchNotFound, match="is a tag"):
        g.delete_branch("v1")
    with pytest.raises(BranchNotFound, match="is a tag"):
        g.protect("v1")


@pytest.mark.parametrize("name", ["", "main~1", "a" * 300, "x\n", "v*2026-01-01"])
def test_names_that_no_ref_could_mean_are_refused(g: Graph, name: str) -> None:
    with pytest.raises(InvalidArgument):
        g.create_tag(name)


def test_deleting_a_tag_that_is_not_there_names_one_that_is(g: Graph) -> None:
    g.create_tag("release")
    with pytest.raises(TagNotFound, match="Did you mean 'release'"):
        g.delete_tag("relaese")
    with pytest.raises(TagNotFound):
        g.delete_tag("main")
    g.delete_tag("release")
    with pytest.raises(TagNotFound):
        g.delete_tag("release")
    with pytest.raises(BranchNotFound):
        g.at("release")


def test_a_tag_is_one_write_and_a_branch_costs_what_it_did(g: Graph) -> None:
    add(g, "ann")
    session = g._session
    costs: list[list[tuple[int, int]]] = []
    for _ in range(2):
        made, branch, gone = Ledger(), Ledger(), Ledger()
        naming.create_tag(session, "v", "main", CommitOptions(), made)
        naming.create_branch(session, f"b{len(costs)}", "main", CommitOptions(), branch)
        naming.delete_tag(session, "v", CommitOptions(), gone)
        costs.append([(ledger.writes, ledger.reads) for ledger in (made, branch, gone)])
        for name in range(5):
            add(g, f"{len(costs)} {name}")
            g.create_tag(f"{len(costs)} {name}")
    assert costs[0] == costs[1] == [(1, 1), (1, 1), (1, 1)]


def test_a_protected_branch_takes_no_direct_write_of_any_kind(g: Graph) -> None:
    commit = add(g, "ann")
    g.create_branch("side")
    g.protect("side")
    g.protect("main", actor="boss")
    before = g.snapshot()
    assert g.protected_branches() == ["main", "side"]
    assert (before.commit.kind, before.commit.actor) == ("protect", "boss")
    with pytest.raises(ProtectedBranch) as error:
        add(g, "bob")
    assert (error.value.code, error.value.http_status) == ("protected_branch", 403)
    with pytest.raises(ProtectedBranch):
        g.apply_schema(SCHEMA.replace("age: I32?", ""))
    with pytest.raises(ProtectedBranch):
        g.restore(commit)
    with pytest.raises(ProtectedBranch):
        g.revert(commit)
    with pytest.raises(ProtectedBranch):
        g.delete_branch("side")
    assert g.snapshot().commit == before.commit
    g.unprotect("main")
    g.unprotect("main")
    add(g, "bob")
    assert names(g, "main") == {"ann", "bob"}
    g.unprotect("side")
    g.delete_branch("side")


def test_a_protected_branch_takes_merges_and_compaction_and_stays_protected(g: Graph) -> None:
    for name in "abc":
        add(g, name)
    g.create_branch("ahead")
    g.protect("main")
    add(g, "ann", "ahead")
    assert g.merge("ahead").outcome == "merged"
    assert names(g, "main") == {"a", "b", "c", "ann"}
    assert g.optimize().commit is not None
    with pytest.raises(ProtectedBranch):
        add(g, "bob")
    g.create_branch("free")
    add(g, "cy", "free")


def test_a_write_under_way_meets_the_protection_at_its_put(root: str, g: Graph) -> None:
    with omnigraph.open(root, settings=RELAXED) as other:
        transaction = other.transaction()
        transaction.append("Person", {"name": "late"})
        g.protect("main")
        with pytest.raises(ProtectedBranch):
            transaction.publish()
    assert names(g, "main") == set()


def test_protecting_is_one_write_and_protection_costs_writers_nothing(g: Graph) -> None:
    session = g._session
    g.create_branch("side")

    def cost() -> tuple[int, int]:
        with g.transaction() as tx:
            tx.append("Person", {"name": f"p{next(COUNTER)}"})
        return tx.io.writes, tx.io.reads

    cost()
    cost()
    before = cost()
    made, again = Ledger(), Ledger()
    naming.set_protection(session, "side", True, CommitOptions(), made)
    naming.set_protection(session, "side", True, CommitOptions(), again)
    assert (made.writes, made.reads, again.writes) == (1, 1, 0)
    assert cost() == before
