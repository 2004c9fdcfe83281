"""Copying a graph: the same answers at the other place, whatever goes on at the first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.upkeep import copying
from omnigraph.errors import (
    GraphExists,
    GraphNotFound,
    InvalidArgument,
    RefNotFound,
    Unavailable,
)
from omnigraph.settings import Settings
from omnigraph.store.disk import DiskStore
from tests.bench.aging import HOUR, age, at_point
from tests.bench.s3 import S3Server

SCHEMA = "node Person { name: String @key photo: Blob? }\nedge Knows: Person -> Person\n"
SETTINGS = Settings(durability="relaxed", queue=False)


def names(g: Graph, ref: str = "main") -> list[str]:
    return sorted(g.at(ref).scan("Person").read_all()["name"].to_pylist())


def add(g: Graph, *names: str, branch: str = "main") -> None:
    with g.branch(branch).transaction() as tx:
        tx.append("Person", [{"name": name} for name in names])


@pytest.fixture
def source(tmp_path: Path) -> Graph:
    g = omnigraph.init(tmp_path / "source", schema=SCHEMA, settings=SETTINGS)
    for number in range(5):
        add(g, f"p{number}")
    g.mutate('insert Person { name: "picture" }')
    with g.transaction() as tx:
        tx.upsert("Person", {"name": "picture", "photo": b"x" * 200_000})
    g.create_branch("side")
    add(g, "s", branch="side")
    g.create_branch("other", "main~3")
    add(g, "o", branch="other")
    g.create_tag("release", "main~2")
    g.merge("side")
    g.create_branch("gone")
    g.delete_branch("gone")
    return g


def assert_same(one: Graph, other: Graph) -> None:
    assert one.branches() == other.branches()
    assert one.tags() == other.tags()
    for ref in [*one.branches(), *one.tags()]:
        assert names(one, ref) == names(other, ref)
        assert list(one.at(ref).log()) == list(other.at(ref).log())
    for commit in one.log(first_parent=True):
        assert names(one, commit.id) == names(other, commit.id)
    report = other.verify(deep=True)
    assert report.ok, report.errors


def test_a_copy_answers_as_the_graph_does(source: Graph, tmp_path: Path) -> None:
    done = omnigraph.copy(source.root, tmp_path / "copy", settings=SETTINGS)
    assert done.branches == ("main", "other", "side")
    assert done.tags == ("release",)
    with omnigraph.open(tmp_path / "copy", settings=SETTINGS) as copy:
        assert_same(source, copy)
        assert copy.verify().findings == []  # nothing that nobody needs came along
        blob = copy.blob("Person", "picture", "photo")
        assert blob is not None
        assert blob.read() == b"x" * 200_000
        assert copy.merge("other").outcome == "merged"
        add(copy, "only here")
    assert "only here" not in names(source)


def test_a_copy_after_cleanup_has_the_history_too(source: Graph, tmp_path: Path) -> None:
    root = Path(source.root)
    age(root, 2 * HOUR)
    source.cleanup(keep=1, older_than=0)
    omnigraph.copy(root, tmp_path / "copy", settings=SETTINGS)
    with omnigraph.open(tmp_path / "copy", settings=SETTINGS) as copy:
        assert list(copy.log()) == list(source.log())
        assert names(copy, "release") == names(source, "release")
        assert copy.merge("other").outcome == "merged"
        assert copy.verify(deep=True).ok


def test_some_branches_are_copied_with_what_their_history_goes_through(
    source: Graph, tmp_path: Path
) -> None:
    done = omnigraph.copy(source.root, tmp_path / "copy", names=["release"], settings=SETTINGS)
    assert "other" not in done.branches
    assert done.tags == ("release",)
    with omnigraph.open(tmp_path / "copy", settings=SETTINGS) as copy:
        assert names(copy, "release") == names(source, "release")
        assert list(copy.log()) == list(source.log())
        assert copy.verify(deep=True).ok
    with pytest.raises(RefNotFound):
        omnigraph.copy(source.root, tmp_path / "none", names=["gone"], settings=SETTINGS)


def test_a_copy_is_one_moment_of_each_branch_while_writers_go_on(
    source: Graph, tmp_path: Path
) -> None:
    def others() -> None:
        add(source, "late", branch="side")
        source.merge("side")
        source.optimize()
        age(Path(source.root), 2 * HOUR)
        source.cleanup(keep=1, older_than=0)

    with at_point("tables copied", others) as reached:
        omnigraph.copy(source.root, tmp_path / "copy", settings=SETTINGS)
    assert reached
    with omnigraph.open(tmp_path / "copy", settings=SETTINGS) as copy:
        assert copy.verify(deep=True).ok
        assert "late" not in names(copy)
        assert "s" in names(copy)


@pytest.mark.parametrize("point", ["tables copied", "versions copied"])
def test_a_copy_that_was_interrupted_is_no_graph_and_goes_on(
    source: Graph, tmp_path: Path, point: str
) -> None:
    with pytest.raises(ZeroDivisionError), at_point(point, lambda: 1 / 0):
        omnigraph.copy(source.root, tmp_path / "copy", settings=SETTINGS)
    done = omnigraph.copy(source.root, tmp_path / "copy", settings=SETTINGS)
    assert done.files == 0
    assert done.skipped > 10
    with omnigraph.open(tmp_path / "copy", settings=SETTINGS) as copy:
        assert_same(source, copy)


def test_what_cannot_be_copied_is_refused(source: Graph, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument):
        omnigraph.copy(source.root, source.root)
    with pytest.raises(GraphNotFound):
        omnigraph.copy(tmp_path / "nothing", tmp_path / "copy")
    omnigraph.init(tmp_path / "taken", schema=SCHEMA).close()
    with pytest.raises(GraphExists):
        omnigraph.copy(source.root, tmp_path / "taken")


def test_large_files_are_never_held_whole(
    source: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "_LARGE", 50_000)
    whole: list[int] = []
    get = DiskStore.get

    def watched(store: DiskStore, key: str) -> bytes:
        data = get(store, key)
        whole.append(len(data))
        return data

    monkeypatch.setattr(DiskStore, "get", watched)
    done = omnigraph.copy(source.root, tmp_path / "copy", settings=SETTINGS)
    assert done.bytes > 200_000
    assert max(whole) <= 50_000
    with omnigraph.open(tmp_path / "copy", settings=SETTINGS) as copy:
        assert_same(source, copy)


def test_of_a_large_file_that_was_interrupted_nothing_is_there(
    source: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "_LARGE", 50_000)

    def torn(store: DiskStore, key: str) -> Iterator[bytes]:
        yield b"torn"
        raise Unavailable("the network is gone")

    with monkeypatch.context() as patched:
        patched.setattr(DiskStore, "get_parts", torn)
        with pytest.raises(Unavailable):
            omnigraph.copy(source.root, tmp_path / "copy", settings=SETTINGS)
    assert not list((tmp_path / "copy").rglob("*.blob"))
    assert not list((tmp_path / "copy").rglob(".tmp-*"))
    omnigraph.copy(source.root, tmp_path / "copy", settings=SETTINGS)
    with omnigraph.open(tmp_path / "copy", settings=SETTINGS) as copy:
        assert_same(source, copy)


@pytest.mark.s3
@pytest.mark.parametrize("large", [1_000, 1 << 30])
def test_a_graph_goes_to_a_bucket_and_back(
    source: Graph,
    tmp_path: Path,
    s3_environment: S3Server,
    s3_prefix: str,
    monkeypatch: pytest.MonkeyPatch,
    large: int,
) -> None:
    monkeypatch.setattr(copying, "_LARGE", large)
    bucket = s3_environment.url(s3_prefix)
    omnigraph.copy(source.root, bucket, settings=SETTINGS)
    with omnigraph.open(bucket, settings=SETTINGS) as remote:
        assert_same(source, remote)
        add(remote, "from afar")
        age(Path(source.root), 2 * HOUR)
        assert remote.cleanup(keep=1, older_than=0).removed == []  # all of it is young there
    omnigraph.copy(bucket, tmp_path / "back", settings=SETTINGS)
    with omnigraph.open(tmp_path / "back", settings=SETTINGS) as back:
        assert "from afar" in names(back)
        assert back.verify(deep=True).ok
