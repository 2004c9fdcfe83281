"""A graph version that is lost is missed: no read goes silently back, and nothing is written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import Corrupt
from omnigraph.settings import Settings
from omnigraph.store.disk import DiskStore
from omnigraph.store.versions import Versions, version_key
from tests.bench.s3 import S3Server

SCHEMA = "node Note { text: String }\n"
RELAXED = Settings(durability="relaxed", folding="off", queue=False)
COMMITS = 20


def write(g: Graph, text: str) -> None:
    with g.transaction() as tx:
        tx.append("Note", {"text": text})


def texts(g: Graph) -> int:
    return g.snapshot().count("Note")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with omnigraph.init(tmp_path / "graph", schema=SCHEMA, settings=RELAXED) as g:
        for number in range(COMMITS - 1):
            write(g, str(number))
    return tmp_path / "graph"


@pytest.mark.parametrize("lost", range(2, COMMITS))
def test_a_fresh_handle_names_the_version_that_is_missing(root: Path, lost: int) -> None:
    (root / version_key("main", lost)).unlink()
    held = sorted(path.name for path in root.rglob("*"))
    g = omnigraph.open(root, settings=RELAXED)
    for attempt in (lambda: texts(g), lambda: write(g, "one more")):
        with pytest.raises(Corrupt, match=f"Version {lost} of the branch 'main' is missing"):
            attempt()
    with omnigraph.open(root, settings=RELAXED, mode="r") as reader, pytest.raises(Corrupt):
        texts(reader)
    after = sorted(path.name for path in root.rglob("*"))
    assert [name for name in after if name.endswith(".json")] == [
        name for name in held if name.endswith(".json")
    ]


@pytest.mark.parametrize("behind", [1, 2, 3, 7, 8, 9, 12, 17])
@pytest.mark.parametrize("lost", [1, 2, 5])
def test_a_handle_that_is_behind_misses_it_too(root: Path, behind: int, lost: int) -> None:
    """`lost` counts from the version that the handle knows."""
    known = Versions(DiskStore(root, durability="relaxed")).read("main", COMMITS - behind)
    g = omnigraph.open(root, settings=RELAXED)
    g._session.saw_head(known)
    if lost < behind:
        (root / version_key("main", known.version + lost)).unlink()
        with pytest.raises(Corrupt, match="is missing"):
            texts(g)
        g._session.forget_head("main")
        g._session.saw_head(known)
        with pytest.raises(Corrupt, match="is missing"):
            write(g, "one more")
    else:
        assert texts(g) == COMMITS - 1


def test_a_version_that_took_the_place_of_a_lost_one_is_told(root: Path) -> None:
    versions = Versions(DiskStore(root, durability="relaxed"))
    lost = root / version_key("main", 10)
    held = lost.read_bytes()
    assert lost.exists()
    for number in range(10, COMMITS + 1):
        (root / version_key("main", number)).rename(root / f"moved-{number}")
    with omnigraph.open(root, settings=RELAXED) as g:
        write(g, "another tenth")
    assert lost.read_bytes() != held
    for number in range(11, COMMITS + 1):
        (root / f"moved-{number}").rename(root / version_key("main", number))
    g = omnigraph.open(root, settings=RELAXED)
    g._session.saw_head(versions.read("main", 10))
    with pytest.raises(Corrupt, match="does not follow"):
        texts(g)


def test_on_an_object_store_the_listing_shows_the_gap(
    s3_environment: S3Server, s3_prefix: str
) -> None:
    root = s3_environment.url(s3_prefix)
    with omnigraph.init(root, schema=SCHEMA, settings=RELAXED) as g:
        for number in range(5):
            write(g, str(number))
        g._session.objects.delete(version_key("main", 4))
    g = omnigraph.open(root, settings=RELAXED)
    with pytest.raises(Corrupt, match="Version 4 of the branch 'main' is missing"):
        texts(g)


def test_verify_tells_a_lost_newest_version_that_another_branch_knows(root: Path) -> None:
    with omnigraph.open(root, settings=RELAXED) as g:
        g.create_branch("b")
        g.create_tag("release", "b")
        assert g.verify().ok
    (root / version_key("main", COMMITS)).unlink()
    with omnigraph.open(root, settings=RELAXED) as g:
        found = {(one.kind, one.object) for one in g.verify().findings}
        assert found == {("lost_version", version_key("main", COMMITS))}


def test_verify_tells_a_branch_that_is_lost_with_all_its_versions(root: Path) -> None:
    with omnigraph.open(root, settings=RELAXED) as g:
        g.create_branch("b")
        g.create_tag("release", "b")
    shutil.rmtree(root / "__manifest" / "b")
    with omnigraph.open(root, settings=RELAXED) as g:
        assert "lost_version" in {one.kind for one in g.verify().findings}


class Counting(DiskStore):
    """Counts what a disk is asked."""

    stats = 0
    listings = 0

    def exists(self, key: str) -> bool:
        self.stats += 1
        return super().exists(key)

    def list(self, prefix: str, *, limit: int | None = None) -> list[str]:
        self.listings += 1
        return super().list(prefix, limit=limit)


def test_the_head_is_found_by_one_listing_and_followed_without(root: Path) -> None:
    """Hazard 12: a listing is as long as the chain, so only a handle that knows nothing lists."""
    store = Counting(root, durability="relaxed")
    versions = Versions(store)
    assert versions.read_head("main").version == COMMITS
    assert store.listings == 1
    for behind in range(COMMITS):
        known = versions.read("main", COMMITS - behind)
        store.listings = store.stats = 0
        assert versions.read_newer(known).version == COMMITS
        assert store.listings == 0
        assert store.stats <= 24
