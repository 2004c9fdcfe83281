"""A power cut takes no file that something written down rests on: large blobs and indexes of a
commit, rows of a plan that another process may publish, and objects that are written again."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import omnigraph
from omnigraph import Graph, runtime
from omnigraph.engine.load import indexing
from omnigraph.engine.upkeep.heartbeat import Heartbeat
from omnigraph.settings import Settings
from omnigraph.store import open_tables
from omnigraph.store.disk import DiskStore
from tests.sim.power import Moment, lost_contents, watched

SCHEMA = """
node Doc { name: String @key  text: String? @index  body: Blob?  place: Vector(4)? @index
           kind: enum(a, b)? @index }
"""
SETTINGS = Settings(folding="off", queue=False)


def docs(count: int, begin: int = 0, **more: Any) -> list[dict[str, Any]]:
    places = np.random.default_rng(1).random((count, 4), dtype=np.float32).tolist()
    return [
        {"name": f"d{n}", "text": f"word{n % 7} of {n}", "place": places[n - begin], "kind": "a"}
        | more
        for n in range(begin, begin + count)
    ]


def emptied(moment: Moment, top: Path) -> Path:
    """The disk with every entry that there is, where a file that was not synced is empty."""
    left = top.with_name(f"left-{uuid.uuid4().hex}")
    lost_contents(moment, top, left)
    return left / "graph"


def names(g: Graph) -> list[str]:
    return sorted(g.snapshot().scan("Doc", columns=["id"]).read_all()["id"].to_pylist())


def test_large_blobs_survive(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They lie beside the file that names them."""
    body = b"\x07" * 300_000
    with omnigraph.init(top / "graph", schema=SCHEMA, settings=SETTINGS) as g:
        with watched(top, monkeypatch) as disk, g.transaction() as tx:
            tx.upsert("Doc", {"name": "a", "body": body})
        with omnigraph.open(emptied(disk.moments[-1], top)) as left:
            blob = left.blob("Doc", "a", "body")
            assert blob is not None
            assert blob.read() == body


def test_indexes_of_every_kind_survive(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with omnigraph.init(top / "graph", schema=SCHEMA, settings=SETTINGS) as g:
        g.load(docs(21_000), type="Doc")
        with watched(top, monkeypatch) as disk:
            g.optimize()
    with omnigraph.open(emptied(disk.moments[-1], top)) as left:
        kept = {
            str(path.relative_to(Path(left.root)))
            for path in Path(left.root).rglob("_indices/*/*")
            if path.stat().st_size == 0
        }
        assert kept == set()
        assert left.verify(deep=True).errors == []
        (found,) = left.query('match { $d: Doc { name: "d77" } } return { $d.text }').to_pylist()
        assert found == {"d.text": "word0 of 77"}


class Stop(Exception):
    """The process is gone."""


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_a_plan_that_can_be_resumed_rests_on_files_that_survive(
    top: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: Literal["append", "merge", "overwrite"],
    indexed: bool,
) -> None:
    # One sign of life, at once: files that come and go meanwhile are not what is looked at here.
    monkeypatch.setattr(Heartbeat, "_watch", Heartbeat.beat)
    monkeypatch.setattr(indexing, "INDEXED_ROWS", 1 if indexed else 10**9)
    root = top / "graph"
    cut: list[Path] = []
    with omnigraph.init(root, schema=SCHEMA, settings=SETTINGS) as g:
        g.load(docs(40), type="Doc")
        with watched(top, monkeypatch) as disk:

            def reached(point: str) -> None:
                if point == "load checked":
                    while not g.recovery.list():
                        runtime.SYSTEM.sleep(0.002)
                if point == "before put":
                    cut.append(emptied(disk.moments[-1], top))
                    raise Stop

            monkeypatch.setattr(runtime, "on_reach", reached)
            begin = 100 if mode == "append" else 20
            with pytest.raises(Stop):
                g.load(docs(40, begin, body=b"x" * 100_000), type="Doc", mode=mode)
            monkeypatch.setattr(runtime, "on_reach", None)
    with omnigraph.open(cut[0], settings=SETTINGS) as left:
        (dead,) = left.recovery.list()
        assert dead.resumable
        left.recovery.resume(dead.id)
        expected = {
            "append": [*range(40), *range(100, 140)],
            "merge": [*range(60)],
            "overwrite": [*range(20, 60)],
        }
        assert names(left) == sorted(f"d{n}" for n in expected[mode])
        blob = left.blob("Doc", f"d{begin}", "body")
        assert blob is not None
        assert blob.read() == b"x" * 100_000
        assert left.verify(deep=True).errors == []


def test_an_object_that_is_written_again_is_the_old_or_the_new_one(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DiskStore(top, durability="full")
    store.put("stamp", b"old")
    with watched(top, monkeypatch) as disk:
        store.put("stamp", b"new")
    left = top.with_name("left")
    lost_contents(disk.moments[-1], top, left)
    assert (left / "stamp").read_bytes() in (b"old", b"new")


MANY = "".join(f"node T{n} {{ name: String @key  v: I64? @index }}\n" for n in range(4))
KINDS = [f"T{n}" for n in range(4)]


def filled(root: Path) -> Graph:
    g = omnigraph.init(root, schema=MANY, settings=SETTINGS)
    for begin in range(4):
        with g.transaction() as tx:
            for kind in KINDS:
                tx.append(kind, [{"name": f"a{begin}", "v": begin}])
    return g


def optimize_all(g: Graph) -> None:
    assert g.optimize().commit is not None


def load_with_indexes(g: Graph) -> None:
    rows = [{"type": kind, "data": {"name": f"b{n}", "v": n}} for kind in KINDS for n in range(9)]
    g.load(rows)


def merge_both_sides(g: Graph) -> None:
    """Each table is widened, and then given rows: two versions of which one is published."""
    g.create_branch("side")
    g.branch("side").apply_schema(MANY.replace("v: I64?", 'w: String @default("x")  v: I64?'))
    for branch, value in (("side", "s"), ("main", "m")):
        with g.branch(branch).transaction() as tx:
            for kind in KINDS:
                tx.append(kind, [{"name": value, "v": 7}])
    assert g.merge("side").outcome == "merged"


def merge_what_arrives(g: Graph) -> None:
    """A table that only the source has, with a row that the merge itself brings."""
    g.create_branch("side")
    g.branch("side").apply_schema(MANY + "node New { name: String @key }\n")
    with g.transaction() as tx:
        tx.append("T0", [{"name": "m"}])
    assert g.merge("side", resolve={("New", "n"): {"name": "n"}}).outcome == "merged"
    assert ids(g, "New") == ["n"]


@pytest.mark.parametrize(
    "change", [optimize_all, load_with_indexes, merge_both_sides, merge_what_arrives]
)
def test_what_must_survive_is_known_without_any_cache(
    top: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Graph], None]
) -> None:
    """A graph may have more types than tables are kept open."""
    monkeypatch.setattr(indexing, "INDEXED_ROWS", 1)
    monkeypatch.setattr(open_tables, "_OPEN_TABLES", 1)
    with filled(top / "graph") as g, watched(top, monkeypatch) as disk:
        change(g)
        expected = {kind: sorted(ids(g, kind)) for kind in g.types()}
    with omnigraph.open(emptied(disk.moments[-1], top), settings=SETTINGS) as left:
        assert left.verify(deep=True).errors == []
        assert {kind: sorted(ids(left, kind)) for kind in left.types()} == expected


def ids(g: Graph, kind: str) -> list[str]:
    found: list[str] = g.snapshot().scan(kind, columns=["id"]).read_all()["id"].to_pylist()
    return found


def test_an_intent_is_there_after_a_power_cut(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cleanup would else take what a living operation counts on."""
    with omnigraph.init(top / "graph", schema=SCHEMA, settings=SETTINGS) as g:
        with watched(top, monkeypatch) as disk:
            g.recovery.begin("load", actor="me", branch="main")
            said = len(disk.moments)
        kept = top.with_name("kept")
        disk.moments[said - 1].restore(disk.inode, kept)
        with omnigraph.open(kept / "graph", settings=SETTINGS) as left:
            assert [one.actor for one in left.recovery.list()] == ["me"]
