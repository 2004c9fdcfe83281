"""A branch that was made where another one began has the past of that place, whatever becomes of
the branch in between."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.settings import Settings
from tests.bench.aging import HOUR, PassingTime

SCHEMA = "node Person { name: String @key age: I64? }"
SETTINGS = Settings(durability="relaxed", folding="off", queue=False)


def put(g: Graph, name: str, age: int, branch: str = "main") -> str:
    with g.branch(branch).transaction() as tx:
        tx.upsert("Person", {"name": name, "age": age})
    assert tx.commit_id is not None
    return tx.commit_id


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> PassingTime:
    return PassingTime(monkeypatch)


@pytest.fixture
def g(tmp_path: Path, time: PassingTime) -> Graph:
    """`main` has two commits; `y` was made where `x` began, and `x` is gone, also on the disk."""
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA, settings=SETTINGS, runtime=time)
    put(graph, "a", 1)
    put(graph, "a", 2)
    graph.create_branch("x")
    put(graph, "a", 3, "x")
    graph.create_branch("y", "x~1")
    graph.delete_branch("x")
    time.wait(tmp_path / "g", 2 * HOUR)
    graph.cleanup(keep=10, older_than=7 * 24 * HOUR)
    return graph


def test_the_history_of_an_entity_goes_on_behind_a_branch_that_is_gone(g: Graph) -> None:
    told = [str(one.change.op) for one in g.branch("y").history("Person", "a")]
    assert told == ["update", "insert"]


def test_the_feed_goes_on_behind_a_branch_that_is_gone(g: Graph) -> None:
    blocks = list(g.branch("y").changes("beginning"))
    assert [block.commit.id for block in blocks] == [one.id for one in g.branch("y").log()][::-1]
    assert [len(list(block.changes)) for block in blocks] == [0, 1, 1, 0]  # init and cleanup
    assert list(g.branch("y").changes(blocks[-1].cursor)) == []


def test_steps_back_go_on_behind_a_branch_that_is_gone(g: Graph) -> None:
    assert g.at("y~1").commit.id == g.at("main~1").commit.id
    since = g.at("y~1").commit.id
    told = [list(block.changes) for block in g.branch("y").changes(since)]
    assert [len(changes) for changes in told] == [1, 0]


def test_what_the_branch_in_between_had_of_its_own_is_a_gap(
    tmp_path: Path, time: PassingTime
) -> None:
    g = omnigraph.init(tmp_path / "g", schema=SCHEMA, settings=SETTINGS, runtime=time)
    g.create_branch("x")
    put(g, "a", 3, "x")
    g.create_branch("y", "x")
    g.delete_branch("x")
    time.wait(tmp_path / "g", 2 * HOUR)
    g.cleanup(keep=10, older_than=7 * 24 * HOUR)
    with pytest.raises(omnigraph.errors.HistoryGap):
        list(g.branch("y").history("Person", "a"))
    with pytest.raises(omnigraph.errors.HistoryGap):
        list(g.branch("y").changes("beginning"))
