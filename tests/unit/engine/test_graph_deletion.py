"""Deleting a graph takes all of it, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph, Transaction, runtime
from omnigraph.errors import GraphNotFound, InvalidRoot, NotFound
from omnigraph.settings import Settings

SCHEMA = "node Person { name: String @key  photo: Blob? }\nedge Knows: Person -> Person\n"


def make(place: Path) -> Graph:
    g = omnigraph.init(place, schema=SCHEMA)
    with g.transaction() as tx:
        tx.append("Person", [{"name": "ann", "photo": b"x" * 100_000}, {"name": "bob"}])
        tx.append("Knows", {"from": "ann", "to": "bob"})
    g.create_branch("side/of it")
    g.create_tag("v1")
    g.branch("side/of it").mutate('delete Person where name = "ann"')
    g.optimize()
    return g


def files(place: Path) -> set[str]:
    return {str(one.relative_to(place)) for one in place.rglob("*") if one.is_file()}


def test_nothing_is_left_of_it(tmp_path: Path) -> None:
    place = tmp_path / "graph"
    make(place).close()
    held = files(place)
    told = omnigraph.delete(place, dry_run=True)
    assert (told.files, told.left, told.dry_run) == (len(held), (), True)
    assert files(place) == held
    done = omnigraph.delete(place)
    assert (done.files, done.bytes, done.dry_run) == (told.files, told.bytes, False)
    assert not place.exists()
    with pytest.raises(GraphNotFound):
        omnigraph.open(place)
    with pytest.raises(GraphNotFound):
        omnigraph.delete(place)
    make(place)  # the place is free


def test_what_is_no_part_of_it_stays(tmp_path: Path) -> None:
    place = tmp_path / "graph"
    make(place).close()
    others = {"notes.txt", "nodes/mine/file", "data.jsonl"}
    for name in others:
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("mine")
    assert set(omnigraph.delete(place, dry_run=True).left) == others
    assert set(omnigraph.delete(place).left) == others
    assert files(place) == others
    with pytest.raises(GraphNotFound):
        omnigraph.delete(place)


@pytest.mark.parametrize(
    "held", [{}, {"a.txt": "a"}, {"_schema/x": "a"}, {"sub/_graph.json": "{}"}]
)
def test_what_is_no_graph_is_refused_and_stays(tmp_path: Path, held: dict[str, str]) -> None:
    place = tmp_path / "dir"
    place.mkdir()
    for name, text in held.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text)
    with pytest.raises(GraphNotFound):
        omnigraph.delete(place)
    assert files(place) == held.keys()
    assert place.exists()


def test_a_file_and_a_place_that_is_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(GraphNotFound):
        omnigraph.delete(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises((GraphNotFound, InvalidRoot)):
        omnigraph.delete(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "x"


def test_what_an_interruption_left_cannot_be_opened_and_is_taken_by_the_same_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "graph"
    make(place).close()

    def die(point: str) -> None:
        if point == "graph unnamed":
            raise KeyboardInterrupt

    monkeypatch.setattr(runtime, "on_reach", die)
    with pytest.raises(KeyboardInterrupt):
        omnigraph.delete(place)
    monkeypatch.setattr(runtime, "on_reach", None)
    assert files(place)
    with pytest.raises(GraphNotFound):
        omnigraph.open(place)
    omnigraph.delete(place)
    assert not place.exists()


# Another graph at the place of one that was deleted

PAIR = "node P { name: String @key }\nnode C { n: I64? }\n"


def append(g: Graph) -> Transaction:
    tx = g.transaction()
    tx.append("P", [{"name": "mine"}])
    return tx


def count(g: Graph) -> Transaction:
    tx = g.transaction()
    tx.count("P")
    tx.append("C", [{"n": 1}])
    return tx


def change(g: Graph) -> Transaction:
    tx = g.transaction()
    tx.upsert("P", [{"name": "old0"}])
    tx.append("C", [{"n": 2}])
    return tx


@pytest.mark.parametrize("begin", [append, count, change])
@pytest.mark.parametrize("commits", range(4))
@pytest.mark.parametrize("durability", ["relaxed", "full"])
def test_a_writer_of_a_deleted_graph_writes_nothing_to_another_at_its_place(
    tmp_path: Path, begin: Callable[[Graph], Transaction], commits: int, durability: Any
) -> None:
    """Its number may be free there, and what it builds on is gone."""
    root, settings = tmp_path / "g", Settings(durability=durability, folding="off")
    old = omnigraph.init(root, schema=PAIR, settings=settings)
    for n in range(2):
        old.mutate(f'insert P {{ name: "old{n}" }}')
    tx = begin(old)
    omnigraph.delete(root)
    with omnigraph.init(root, schema=PAIR, settings=settings) as new:
        for n in range(commits):
            new.mutate(f'insert P {{ name: "new{n}" }}')
        with pytest.raises(GraphNotFound, match="is another one"):
            tx.publish()
        with pytest.raises(GraphNotFound, match="is another one"):
            old.mutate('insert P { name: "later" }')
        with pytest.raises(GraphNotFound, match="is another one"):
            old.create_branch("b")
    with omnigraph.open(root, settings=settings) as fresh:
        rows = fresh.scan("P").read_all()
        assert sorted(rows["name"].to_pylist()) == [f"new{n}" for n in range(commits)]
        assert fresh.verify(deep=True).ok
        assert (fresh.branches(), fresh.count("C")) == (["main"], 0)


def test_a_reader_of_a_deleted_graph_sees_nothing_of_another_at_its_place(tmp_path: Path) -> None:
    root = tmp_path / "g"
    old = omnigraph.init(root, schema=PAIR)
    old.mutate('insert P { name: "old" }')
    omnigraph.delete(root)
    with omnigraph.init(root, schema=PAIR) as new:
        for n in range(3):
            new.mutate(f'insert P {{ name: "new{n}" }}')
        for use in (lambda: old.branches(), lambda: old.at("main"), lambda: list(old.log())):
            with pytest.raises(GraphNotFound, match="is another one"):
                use()


def test_a_writer_of_a_deleted_graph_leaves_no_version_in_an_empty_root(tmp_path: Path) -> None:
    root = tmp_path / "g"
    old = omnigraph.init(root, schema=PAIR)
    tx = change(old)
    omnigraph.delete(root)
    with pytest.raises(NotFound):
        tx.publish()
    with pytest.raises(GraphNotFound):
        omnigraph.open(root)
