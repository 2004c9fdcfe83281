"""Upkeep in a bucket: cleanup that deletes there, also after it was interrupted; folding; copies
from disk to bucket and back while writers go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.upkeep.optimize import optimize
from omnigraph.errors import Reclaimed
from omnigraph.plan.optimize import Limits
from omnigraph.settings import Settings
from omnigraph.store.objects import StoredFile
from omnigraph.store.remote import RemoteStore
from tests.bench.aging import HOUR, MovingRuntime, at_point
from tests.bench.s3 import S3Server

pytestmark = pytest.mark.s3
SCHEMA = "node Person { name: String @key age: I32? }\n"
SETTINGS = Settings(folding="off", queue=False)


class BucketTime(MovingRuntime):
    """One time for writers and bucket: what was written before some of it passed is older."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self._written: dict[tuple[str, int], int] = {}
        listed = RemoteStore.files

        def files(store: RemoteStore, prefix: str) -> Sequence[StoredFile]:
            return [
                StoredFile(one.key, one.size, self._when(f"{store._url}/{one.key}", one.modified))
                for one in listed(store, prefix)
            ]

        patch.setattr(RemoteStore, "files", files)

    def _when(self, key: str, modified: int) -> int:
        return self._written.setdefault((key, modified), modified + int(self.ahead * 1e6))

    def wait(self, g: Graph, seconds: float) -> None:
        g._session.objects.files("")
        self.ahead += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> BucketTime:
    return BucketTime(monkeypatch)


@pytest.fixture
def g(s3_environment: S3Server, s3_prefix: str, clock: BucketTime) -> Iterator[Graph]:
    root = s3_environment.url(s3_prefix)
    with omnigraph.init(root, schema=SCHEMA, settings=SETTINGS, runtime=clock) as graph:
        yield graph


def add(g: Graph, *names: str, branch: str = "main") -> None:
    with g.branch(branch).transaction() as tx:
        tx.append("Person", [{"name": name} for name in names])


def names(g: Graph, ref: str = "main") -> list[str]:
    return sorted(g.at(ref).scan("Person").read_all()["name"].to_pylist())


def keys(g: Graph) -> set[str]:
    return {file.key for file in g._session.objects.files("") if "__wait" not in file.key}


@pytest.mark.parametrize(
    "point", ["", "cleanup announced", "cleanup archived", "cleanup pruned", "cleanup swept"]
)
def test_cleanup_deletes_in_a_bucket_and_goes_on_where_it_was_interrupted(
    g: Graph, clock: BucketTime, point: str
) -> None:
    for number in range(5):
        add(g, f"p{number}")
    g.create_branch("gone", "main~1")
    add(g, "x", branch="gone")
    g.delete_branch("gone")
    clock.wait(g, 2 * HOUR)
    before = keys(g)
    if point:
        with pytest.raises(ZeroDivisionError), at_point(point, lambda: 1 / 0):
            g.cleanup(keep=2, older_than=0)
        assert names(g) == [f"p{n}" for n in range(5)]
        clock.wait(g, 2 * HOUR)
    other = omnigraph.open(g.root, settings=SETTINGS, runtime=clock)
    done = other.cleanup(keep=2, older_than=0)
    assert done.removed
    held = keys(g)
    assert not held & {one.key for one in done.removed}
    assert {key for key in before - held if "/data/" in key}
    assert names(other, "main~1") == [f"p{n}" for n in range(4)]
    with pytest.raises(Reclaimed):
        other.at("main~3")
    assert sum(commit.kind == "write" for commit in other.log()) == 5
    clock.wait(g, 2 * HOUR)
    other.cleanup(keep=2, older_than=0)
    report = other.verify(deep=True)
    assert (report.ok, [one.object for one in report.findings]) == (True, [])


def test_a_chain_in_a_bucket_is_folded(g: Graph, clock: BucketTime) -> None:
    for number in range(9):
        add(g, f"p{number}")
    clock.wait(g, 2 * HOUR)
    log = [commit.id for commit in g.log()]
    done = optimize(g._session, "main", None, limits=Limits(versions=4))
    assert done.folded == 8
    with omnigraph.open(g.root, mode="r", settings=SETTINGS, runtime=clock) as cold:
        assert [commit.id for commit in cold.log()][1:] == log
        assert len(names(cold, "main~7")) == 2
        assert cold.verify(deep=True).ok


@pytest.mark.parametrize("way", ["to the bucket", "from the bucket"])
def test_a_copy_is_one_moment_while_a_writer_goes_on(
    s3_environment: S3Server, s3_prefix: str, tmp_path: Path, way: str
) -> None:
    disk, bucket = str(tmp_path / "graph"), s3_environment.url(s3_prefix)
    source, target = (disk, bucket) if way == "to the bucket" else (bucket, disk)
    with omnigraph.init(source, schema=SCHEMA) as g:
        for number in range(5):
            add(g, f"p{number}")
        stop = threading.Event()

        def write() -> None:
            number = 5
            with omnigraph.open(source) as writer:
                while not stop.is_set():
                    add(writer, f"p{number}")
                    number += 1

        thread = threading.Thread(target=write)
        thread.start()
        try:
            done = omnigraph.copy(source, target)
        finally:
            stop.set()
            thread.join()
        assert done.files > 5
        with omnigraph.open(target) as copied:
            report = copied.verify(deep=True)
            assert report.ok, report.errors
            head = copied.snapshot().commit.id
            assert names(copied) == names(g, head)
            add(copied, "and on")
        assert "and on" not in names(g)
