"""What merges and diffs read: the change, never the table. Bytes and requests, no seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.settings import Settings
from tests.bench.s3 import S3Server

RELAXED = Settings(durability="relaxed", queue=False)
CHANGED = 50


def people(start: int, count: int, width: int) -> pa.Table:
    values = np.random.default_rng(start).random(count * width, dtype=np.float32)
    names = [f"p{n:07}" for n in range(start, start + count)]
    return pa.table(
        {
            "name": names,
            "age": pa.array(np.zeros(count, dtype=np.int64)),
            "face": pa.FixedSizeListArray.from_arrays(pa.array(values), width),
        }
    )


@contextmanager
def populated(root: Path, rows: int, width: int) -> Iterator[tuple[Graph, int]]:
    """A graph of people with vectors, and how many bytes their files have."""
    schema = f"node Person {{ name: String @key age: I64? face: Vector({width})? }}"
    with omnigraph.init(root, schema=schema, settings=RELAXED) as g:
        step = min(rows, 100_000)
        for start in range(0, rows, step):
            with g.transaction() as tx:
                tx.append("Person", people(start, step, width))
        size = sum(file.stat().st_size for file in (root / "nodes").rglob("*.lance"))
        assert size > rows * width * 4
        yield g, size


def change(g: Graph, branch: str, names: list[str], age: int) -> None:
    with g.branch(branch).transaction() as tx:
        tx.upsert("Person", [{"name": name, "age": age} for name in names])


def spread(rows: int, offset: int) -> list[str]:
    return [f"p{n:07}" for n in range(offset, rows, rows // CHANGED)]


def check_merge(root: Path, rows: int, width: int, share: float) -> None:
    """Both sides changed rows in every part of the table; a handle that knows nothing merges."""
    with populated(root, rows, width) as (g, size):
        g.create_branch("dev")
        change(g, "dev", spread(rows, 1), 1)
        change(g, "main", spread(rows, 2), 2)
    with omnigraph.open(root, settings=RELAXED) as g:
        result = g.merge("dev")
        assert result.changes == {"Person": {"update": CHANGED}}
        assert result.io.read_bytes <= share * size, result.io
        assert result.io.written_bytes <= share * size, result.io
        diff = g.diff("main~1")
        assert diff.summary() == {"Person": {"update": CHANGED}}
        assert diff.io.read_bytes <= share * size, diff.io
        ages = g.snapshot().scan("Person", columns=["age"]).read_all()["age"]
        assert pc.sum(ages).as_py() == CHANGED * 3


def test_a_merge_reads_the_change_and_not_the_table(tmp_path: Path) -> None:
    check_merge(tmp_path / "g", 20_000, 256, share=0.08)


@pytest.mark.slow
def test_a_merge_of_fifty_rows_reads_a_hundredth_of_a_million_rows(tmp_path: Path) -> None:
    check_merge(tmp_path / "g", 1_000_000, 256, share=0.01)


@pytest.mark.s3
def test_many_changed_rows_take_few_requests_of_an_object_store(
    s3_environment: S3Server, s3_prefix: str
) -> None:
    """Rows that lie close for the size of their fragment are read at a stretch."""
    schema = "node Person { name: String @key age: I64? }"
    with omnigraph.init(s3_environment.url(s3_prefix), schema=schema, settings=RELAXED) as g:
        with g.transaction() as tx:
            tx.append("Person", people(0, 50_000, 1).drop_columns(["face"]))
        g.create_branch("dev")
        for offset, branch in enumerate(("main", "dev")):
            with g.branch(branch).transaction() as tx:
                names = [f"p{n:07}" for n in range(offset, 50_000, 50)]
                tx.upsert("Person", [{"name": name, "age": offset + 1} for name in names])
        result = g.merge("dev")
        assert result.changes == {"Person": {"update": 1000}}
        assert result.io.reads <= 40, result.io
        diff = g.diff("main~1")
        assert diff.summary() == {"Person": {"update": 1000}}
        assert diff.io.reads <= 20, diff.io


def check_distance(root: Path, commits: int) -> None:
    with populated(root, 20_000, 64) as (g, size):
        for n in range(commits):
            change(g, "main", [f"p{n % CHANGED:07}"], n)
        known = g.diff(f"main~{commits}")
        assert known.summary() == {"Person": {"update": CHANGED}}
        assert known.io.read_bytes <= 0.03 * size, known.io
        # One commit that does the same reads no less than half of that.
        g.create_branch("once", ref=f"main~{commits}")
        change(g, "once", [f"p{n:07}" for n in range(CHANGED)], 7)
        near = g.at("once").diff("once~1")
        assert near.summary() == {"Person": {"update": CHANGED}}
        assert known.io.read_bytes <= 5 * near.io.read_bytes + 1000 * CHANGED


def test_a_diff_over_many_commits_reads_what_changed(tmp_path: Path) -> None:
    check_distance(tmp_path / "g", 100)


@pytest.mark.slow
def test_a_diff_over_five_hundred_commits_reads_what_changed(tmp_path: Path) -> None:
    check_distance(tmp_path / "g", 500)


def test_rows_that_the_source_appended_are_shared_and_not_copied(tmp_path: Path) -> None:
    with populated(tmp_path / "g", 1_000, 64) as (g, _):
        g.create_branch("dev")
        with g.branch("dev").transaction() as tx:
            tx.append("Person", people(5_000, 500, 64))
        change(g, "main", spread(1_000, 2), 2)
        held = files(g, "main")
        brought = files(g, "dev") - held
        result = g.merge("dev")
        assert result.changes == {"Person": {"insert": 500}}
        assert files(g, "main") == held | brought
        assert result.io.written_bytes < 500 * 64


def files(g: Graph, ref: str) -> set[str]:
    snapshot = g.at(ref)
    marks = snapshot.view(snapshot.type("Person")).table.marks.values()
    return {file for mark in marks for file in mark.files}
