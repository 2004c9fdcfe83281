"""What is the user's stays the user's: below a root, and where a root would be."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import obstore
import pytest

import omnigraph
from omnigraph.errors import GraphExists, RootNotEmpty
from omnigraph.settings import Settings
from tests.bench.aging import HOUR, PassingTime
from tests.bench.s3 import S3Server

SCHEMA = "node Person { name: String @key }\n"
RELAXED = Settings(durability="relaxed", folding="off", queue=False)


def tree(place: Path) -> dict[str, bytes]:
    return {
        path.relative_to(place).as_posix(): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    "name", ["thesis.txt", "nodes/mine/thesis.txt", "src/a.py", "_graph/x", "edges/notes.txt"]
)
@pytest.mark.parametrize("command", ["init", "copy"])
def test_a_folder_that_is_not_empty_is_no_root(tmp_path: Path, name: str, command: str) -> None:
    place = tmp_path / "home"
    file = place / name
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    omnigraph.init(tmp_path / "source", schema=SCHEMA, settings=RELAXED).close()
    attempts: dict[str, Callable[[], object]] = {
        "init": lambda: omnigraph.init(place, schema=SCHEMA, settings=RELAXED),
        "copy": lambda: omnigraph.copy(tmp_path / "source", place, settings=RELAXED),
    }
    with pytest.raises(RootNotEmpty, match=r"is not empty: '.*' is there.*Choose another root"):
        attempts[command]()
    assert tree(place) == {name: b"mine"}


def test_a_memory_root_is_asked_alike(tmp_path: Path) -> None:
    with omnigraph.init("memory://occupied", schema=SCHEMA, settings=RELAXED) as g:
        place = Path(g.root)
    shutil.rmtree(place)
    place.mkdir()
    (place / "mine.txt").touch()
    with pytest.raises(RootNotEmpty):
        omnigraph.init("memory://occupied", schema=SCHEMA, settings=RELAXED)


@pytest.mark.s3
def test_a_prefix_with_foreign_objects_is_no_root(s3_environment: S3Server, s3_prefix: str) -> None:
    root, store = s3_environment.url(s3_prefix), s3_environment.store(s3_prefix)
    obstore.put(store, "thesis.txt", b"mine")
    with pytest.raises(RootNotEmpty):
        omnigraph.init(root, schema=SCHEMA)
    assert [e["path"] for page in obstore.list(store) for e in page] == ["thesis.txt"]
    obstore.delete(store, "thesis.txt")
    omnigraph.init(root, schema=SCHEMA).close()
    with pytest.raises(GraphExists):
        omnigraph.init(root, schema=SCHEMA)


def test_an_empty_folder_and_what_a_crash_left_are_a_root(tmp_path: Path) -> None:
    place = tmp_path / "graph"
    with omnigraph.init(place, schema=SCHEMA, settings=RELAXED):
        pass
    # A crash before the first version: tables and texts are there, and no graph.
    shutil.rmtree(place / "__manifest")
    (place / "_graph.json").unlink()
    (place / ".tmp-0123456789abcdef").touch()
    (place / ".DS_Store").touch()
    (place / "nodes" / ".DS_Store").touch()
    omnigraph.init(place, schema=SCHEMA, settings=RELAXED).close()
    with pytest.raises(GraphExists):
        omnigraph.init(place, schema=SCHEMA, settings=RELAXED)


def test_cleanup_takes_only_what_has_a_form_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = PassingTime(monkeypatch)
    place = tmp_path / "graph"
    g = omnigraph.init(place, schema=SCHEMA, settings=RELAXED, runtime=time)
    nested = omnigraph.init(place / "nodes" / "inner.graph", schema=SCHEMA, settings=RELAXED)
    nested.close()
    mine = {
        "nodes/mine/thesis.txt",
        "nodes/mine/data/thesis.txt",
        "edges/0123456789abcdef/x",
        "nodes/notes.txt",
        "drafts/.tmp-0123456789abcdef",
        "nodes/inner.graph/__manifest/main/.tmp-0123456789abcdef",
        "nodes/inner.graph/__spool/x/y",
        "__manifest/main/.tmp-mine",
    }
    spent = {
        "nodes/0123456789abcdef-01J0000000000000000000000A/data/old.lance",
        "__manifest/main/.tmp-0123456789abcdef",
        ".tmp-0123456789abcdef",
        "__spool/x/y",
    }
    for name in mine | spent:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("mine")
    inner = tree(place / "nodes" / "inner.graph")
    time.wait(place, 24 * 60 * HOUR)
    done = g.cleanup(keep=1, older_than="0s")
    assert {one.key for one in done.removed} == spent
    left = tree(place)
    assert mine <= left.keys()
    assert not spent & left.keys()
    assert tree(place / "nodes" / "inner.graph") == inner
    assert g.verify(deep=True).ok
