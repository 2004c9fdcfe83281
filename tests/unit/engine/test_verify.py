"""Verifying: a sound graph has no findings, and every damage is found and named."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.settings import Settings

SCHEMA = """
node Person { name: String @key age: I32? @range(age, 0..200) mail: String? @unique photo: Blob? }
node Note { text: String? }
edge Knows: Person -> Person @card(0..3) { since: I32? }
"""
WIDER = SCHEMA.replace("text: String?", "text: String? tone: String?")
SETTINGS = Settings(durability="relaxed", folding="off")
ROWS = 1200


def busy_graph(root: Path) -> Graph:
    """Branches, merges, a restore, tags, folds, indexes, deletions and a changed schema."""
    g = omnigraph.init(root, schema=SCHEMA, settings=SETTINGS)
    people = [{"type": "Person", "data": {"name": f"p{i}", "age": i % 90}} for i in range(ROWS)]
    edges = [{"edge": "Knows", "from": f"p{i}", "to": f"p{i + 1}"} for i in range(100)]
    g.load([*people, *edges])
    with g.transaction(actor="ann") as tx:
        tx.append("Note", {"text": "hello"})
    with g.transaction() as tx:
        tx.upsert("Person", {"name": "p1", "photo": b"x" * 200_000, "mail": "p1@x"})
    g.mutate('delete Person where name = "p7"')
    g.optimize()
    g.store_queries({"names": "match { $p: Person } return { $p.name }"})
    g.store_queries({"notes": "match { $n: Note } return { $n.text }"})
    g.create_branch("side")
    side = g.branch("side")
    side.mutate('update Person set { age: 3 } where name = "p2"')
    side.apply_schema(WIDER)
    g.mutate('insert Person { name: "new" }')
    g.merge("side")
    g.create_tag("first", "main~3")
    g.mutate('delete Person where name = "p9"')
    g.create_branch("gone")
    g.branch("gone").mutate('insert Note { text: "x" }')
    g.delete_branch("gone")
    g.restore("main~1")
    g.mutate('delete Person where name = "p11"')
    return g


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("verify") / "graph"
    with busy_graph(root) as g:
        report = g.verify(deep=True)
        assert report.ok, report.errors
    return root


@pytest.fixture
def root(pristine: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "graph"
    shutil.copytree(pristine, copy)
    return copy


def needed(root: Path, pattern: str) -> list[Path]:
    """Files of a kind that the graph cannot do without, largest first."""
    with omnigraph.open(root, mode="r", settings=SETTINGS) as g:
        spare = {f.object for f in g.verify().findings if f.kind == "unreferenced"}
    files = [p for p in root.glob(pattern) if p.is_file() and str(p.relative_to(root)) not in spare]
    return sorted(files, key=lambda p: (-p.stat().st_size, p.name))


def remove(path: Path) -> None:
    path.unlink()


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0x10
    path.write_bytes(bytes(data))


KINDS = {
    "version": "__manifest/main/*.json",
    "schema text": "_schema/*.pg",
    "catalog": "_schema/*.json",
    "stored queries": "_queries/*.json",
    "table version": "*/*/_versions/d*.manifest",
    "first table version": "*/*/_versions/1*.manifest",
    "transaction": "*/*/_transactions/1*.txn",
    "data": "*/*/data/*.lance",
    "blob": "*/*/data/*/*.blob",
    "deletion": "*/*/_deletions/*",
    "index": "*/*/_indices/*/*",
    "stamp": "_graph.json",
}
INJURIES: dict[str, Callable[[Path], None]] = {
    "missing": remove,
    "truncated": truncate,
    "empty": empty,
    "flipped": flip,
}


def test_a_graph_with_branches_tags_merges_restores_and_folds_is_sound(pristine: Path) -> None:
    with omnigraph.open(pristine, settings=SETTINGS) as g:
        report = g.verify()
        assert report.ok, report.errors
        assert report.looked_at["versions"] > 12
        assert report.looked_at["tables"] > 5
        told = json.loads(json.dumps(report.to_dict()))
        assert told["ok"] is True
        assert {finding["severity"] for finding in told["findings"]} <= {"note"}


@pytest.mark.parametrize("injury", INJURIES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_damage_of_every_kind_of_object_is_found_and_named(
    root: Path, kind: str, injury: str
) -> None:
    (victim, *_) = needed(root, KINDS[kind])
    name = str(victim.relative_to(root))
    with omnigraph.open(root, mode="r", settings=SETTINGS) as g:
        INJURIES[injury](victim)
        report = g.verify(deep=True)
    assert not report.ok
    said = [f"{finding.object} {finding.message}" for finding in report.errors]
    where = name if kind != "index" else name.rsplit("/", 1)[0]
    assert any(where in text for text in said), said


@pytest.mark.parametrize(
    "kind", ["version", "table version", "data", "schema text", "catalog", "stored queries"]
)
def test_files_that_were_swapped_are_found(root: Path, kind: str) -> None:
    one, other, *_ = needed(root, KINDS[kind])
    held = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(held)
    with omnigraph.open(root, mode="r", settings=SETTINGS) as g:
        report = g.verify()
    said = [f"{finding.object} {finding.message}" for finding in report.errors]
    for path in (one, other):
        assert any(str(path.relative_to(root)) in text for text in said), said
