"""`if_commit` on a branch that lies still: maintenance, however often, changes nothing about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import PreconditionFailed
from omnigraph.runtime import encode_ulid, ulid_number
from omnigraph.settings import Settings
from omnigraph.store.versions import encode_version
from tests.bench.aging import HOUR, PassingTime
from tests.unit.engine.test_write_skew import at

SCHEMA = "node Person { name: String @key  n: I64? }\n"
SETTINGS = Settings(durability="relaxed", folding="off", queue=False)
MANY = 70


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> PassingTime:
    return PassingTime(monkeypatch)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "graph"


@pytest.fixture
def g(place: Path, clock: PassingTime) -> Graph:
    g = omnigraph.init(place, schema=SCHEMA, settings=SETTINGS, runtime=clock)
    g.create_branch("idle")
    return g


def another(g: Graph) -> Graph:
    return omnigraph.open(g.root, settings=SETTINGS, runtime=g._session.runtime)


def put(g: Graph, branch: str = "main", name: str = "x", **options: Any) -> str:
    with g.branch(branch).transaction(**options) as tx:
        tx.upsert("Person", {"name": name})
    assert tx.commit_id is not None
    return str(tx.commit_id)


def next_ulid(ulid: str) -> str:
    number = ulid_number(ulid) + 1
    return encode_ulid(number >> 80, number % 2**80)


def cleanup(g: Graph, place: Path, clock: PassingTime, times: int) -> list[str]:
    """What the idle branch is at after each."""
    commits: list[str] = []
    while len(commits) < times:
        put(g)
        clock.wait(place, 2 * HOUR)
        if g.cleanup(keep=1, older_than=0).removed:
            commits.append(g.at("idle").commit.id)
    assert len(set(commits)) == times
    return commits


def test_what_a_reader_saw_holds_after_any_number_of_cleanups(
    g: Graph, place: Path, clock: PassingTime
) -> None:
    commit = put(g, "idle")
    made = cleanup(g, place, clock, MANY)
    held = g.at("idle").graph_version
    assert len(encode_version(held)) < 1500  # it does not grow with them
    for pinned in (commit, made[0], made[3], made[MANY // 2], made[-2], made[-1]):
        for handle in (g, another(g)):
            tx = handle.branch("idle").transaction(if_commit=pinned)
            tx.upsert("Person", {"name": "x"})
    rows = [{"type": "Person", "data": {"name": "y"}}]
    assert another(g).branch("idle").load(rows, if_commit=made[1], engine="local").commit
    for pinned in (commit, made[1], made[-1]):
        with pytest.raises(PreconditionFailed):
            put(g, "idle", if_commit=pinned)


def test_a_commit_of_another_branch_in_between_is_not_meant(
    g: Graph, place: Path, clock: PassingTime
) -> None:
    commit = put(g, "idle")
    made = cleanup(g, place, clock, 4)
    elsewhere = put(g)
    more = cleanup(g, place, clock, 2)
    head = g.at("idle").commit.id
    assert commit < made[0] < elsewhere < more[0] < head
    for wrong in (elsewhere, next_ulid(made[1]), next_ulid(commit), "0" * 26, "~", ""):
        with pytest.raises(PreconditionFailed):
            put(another(g), "idle", if_commit=wrong)


def test_it_holds_while_maintenance_comes_in_between(
    g: Graph, place: Path, clock: PassingTime
) -> None:
    for name in "abc":
        put(g, "idle", name=name)
    (pinned,) = cleanup(g, place, clock, 1)
    other = another(g)

    def meddle() -> None:
        assert other.branch("idle").optimize().commit is not None

    with at("before put", meddle):
        put(g, "idle", if_commit=pinned)
    before = g.at("idle").commit.id
    with at("before put", lambda: put(other, "idle")), pytest.raises(PreconditionFailed):
        put(g, "idle", if_commit=before)


def test_a_branch_that_was_made_of_what_maintenance_left(
    g: Graph, place: Path, clock: PassingTime
) -> None:
    commit = put(g, "idle")
    made = cleanup(g, place, clock, 5)
    g.create_branch("fork", "idle")
    more = cleanup(g, place, clock, 3)
    forked = g.at("fork").commit.id
    assert forked not in more
    for pinned in (commit, made[0], made[2], made[-1], forked):
        tx = another(g).branch("fork").transaction(if_commit=pinned)
        tx.upsert("Person", {"name": "z"})
    with pytest.raises(PreconditionFailed):
        put(another(g), "fork", if_commit=more[0])


def test_protecting_is_a_commit_that_can_be_seen(g: Graph, place: Path, clock: PassingTime) -> None:
    commit = put(g, "idle")
    made = cleanup(g, place, clock, 2)
    g.protect("idle")
    g.unprotect("idle")
    for pinned in (commit, made[0], made[1]):
        with pytest.raises(PreconditionFailed):
            put(g, "idle", if_commit=pinned)


def test_refs_and_feeds_find_what_maintenance_left_of_a_commit(
    g: Graph, place: Path, clock: PassingTime
) -> None:
    commit = put(g, "idle")
    cursor = [block.cursor for block in g.branch("idle").changes()][-1]
    cleanup(g, place, clock, MANY)
    for handle in (g, another(g)):
        assert handle.at(f"idle@{commit}").count("Person") == 1
        assert [block.commit.kind for block in handle.branch("idle").changes(cursor)][
            -1
        ] == "cleanup"
