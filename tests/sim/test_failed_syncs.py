"""A sync that fails: nobody is told "done" of what a power cut may take, nor "not done" of what
others can see."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import OmnigraphError, OutcomeUnknown
from omnigraph.settings import Settings
from omnigraph.store.history import Archive

SCHEMA = "node P { name: String @key }\n"
SETTINGS = Settings(folding="off", queue=False)


@contextmanager
def failing(directory: str, patch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every sync of a directory of this name fails, once what is to be synced is in it."""
    real = os.fsync
    failed: list[str] = []

    def fsync(descriptor: int) -> None:
        path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        if path.endswith(directory):
            failed.append(path)
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        real(descriptor)

    with patch.context() as patched:
        patched.setattr(os, "fsync", fsync)
        yield failed


@pytest.fixture
def g(top: Path) -> Iterator[Graph]:
    with omnigraph.init(top / "graph", schema=SCHEMA, settings=SETTINGS) as g:
        add(g, "first")
        g.create_branch("side")
        add(g, "aside", branch="side")
        add(g, "second")
        yield g


def add(g: Graph, name: str, branch: str = "main") -> None:
    with g.branch(branch).transaction() as tx:
        tx.append("P", [{"name": name}])


WRITES: dict[str, Callable[[Graph], object]] = {
    "append": lambda g: add(g, "x"),
    "schema": lambda g: g.apply_schema(SCHEMA.replace("@key", "@key  age: I64?")),
    "merge": lambda g: g.merge("side"),
    "optimize": lambda g: g.optimize(),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_commit_whose_entry_is_not_synced_is_not_acknowledged(
    g: Graph, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    with failing("__manifest/main", monkeypatch) as failed, pytest.raises(OutcomeUnknown) as told:
        WRITES[write](g)
    assert len(failed) == 1  # after a sync that failed, the next one says nothing
    assert told.value.applied is None
    assert told.value.commit in [commit.id for commit in g.log()]
    add(g, "next")
    with omnigraph.open(g.root) as fresh:
        assert "next" in fresh.snapshot().scan("P").read_all()["name"].to_pylist()
        assert fresh.verify(deep=True).errors == []


def test_a_retry_with_the_same_key_finds_what_was_put(
    g: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write() -> bool:
        with g.transaction(idempotency_key="k") as tx:
            tx.append("P", [{"name": "x"}])
        return tx.repeated

    with failing("__manifest/main", monkeypatch), pytest.raises(OutcomeUnknown):
        write()
    assert write()
    assert sorted(g.snapshot().scan("P").read_all()["name"].to_pylist()) == ["first", "second", "x"]


def test_a_commit_that_need_not_be_synced_is_acknowledged(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    relaxed = Settings(folding="off", queue=False, durability="relaxed")
    with omnigraph.init(top / "graph", schema=SCHEMA, settings=relaxed) as g:
        add(g, "first")
        with failing("__manifest/main", monkeypatch):
            add(g, "second")


@pytest.mark.parametrize(
    ("directory", "write"),
    [
        ("_schema", WRITES["schema"]),
        ("__recovery", lambda g: g.create_branch("new", "main~1")),
    ],
)
def test_what_a_commit_rests_on_and_is_not_synced_ends_the_write_before_it(
    g: Graph, monkeypatch: pytest.MonkeyPatch, directory: str, write: Callable[[Graph], object]
) -> None:
    write_intents(g)
    before = [commit.id for commit in g.log()]
    with failing(directory, monkeypatch) as failed, pytest.raises(OmnigraphError) as told:
        write(g)
    assert failed
    assert told.value.code == "store_failure"
    assert [commit.id for commit in g.log()] == before
    assert g.branches() == ["main", "side"]


def write_intents(g: Graph) -> None:
    """The directory of intents is there, and synced."""
    g.recovery.end(g.recovery.begin("load", branch="main"))


def test_versions_do_not_leave_the_chain_for_an_archive_that_is_not_synced(
    g: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = Archive("main")
    versions = [g.at("main~1").graph_version]
    archive.write(g._session.objects, versions)
    for path in Path(g.root).glob("__history/main/*"):
        path.unlink()
    with failing("__history/main", monkeypatch) as failed, pytest.raises(OmnigraphError):
        archive.write(g._session.objects, versions)
    assert failed
