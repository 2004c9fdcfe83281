"""Scans: what a task reads, and in which pieces it workers it on. No JVM is needed for that."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.engine.load.options import LoadOptions
from omnigraph.spark.pinned import share_fragments
from omnigraph.spark.spooled import RowSpool, SpooledRows
from omnigraph.spark.stream.sink import StreamSink
from omnigraph.telemetry import Ledger
from tests.contract.graphs import rows
from tests.load.world import new_graph


@pytest.mark.parametrize(
    ("sizes", "rows", "expected"),
    [
        ([], 10, []),
        ([4], 10, [(0,)]),
        ([40], 10, [(0,)]),  # a fragment is read by one task
        ([5, 5, 5, 5], 10, [(0, 1), (2, 3)]),
        ([4] * 11, 10, [(0, 1), (2, 3), (4, 5, 6), (7, 8), (9, 10)]),
        ([9, 1, 1, 9], 10, [(0, 1), (2, 3)]),
        ([1, 1, 1, 30], 10, [(0, 1, 2), (3,)]),
        ([0, 0], 10, [(0, 1)]),
    ],
)
def test_tasks_get_about_the_same(
    sizes: list[int], rows: int, expected: list[tuple[int, ...]]
) -> None:
    assert share_fragments(list(enumerate(sizes)), rows) == expected


def test_large_batches_have_many_rows_or_some_megabytes(tmp_path: Path) -> None:
    g = new_graph(tmp_path)
    g.load(pa.table({"name": [f"p{n}" for n in range(150_000)]}), type="Person", engine="local")
    g.load(pa.table({"text": ["x" * 10_000] * 9_000}), type="Note", engine="local")
    snapshot = g.snapshot()
    people = snapshot.view(snapshot.type("Person"))
    whole = [b.num_rows for b in people.scan(Ledger(), columns=["name"], large=True)]
    some = [b.num_rows for b in people.scan(Ledger(), columns=["name"])]
    assert sum(whole) == sum(some) == 150_000
    assert max(whole) > 4 * max(some)
    notes = snapshot.view(snapshot.type("Note"))
    sizes = [b.nbytes for b in notes.scan(Ledger(), columns=["text"], large=True)]
    assert max(sizes) < 40 << 20
    assert sum(sizes) > 90_000_000


def test_what_failed_attempts_wrote_down_goes_with_the_rest(tmp_path: Path) -> None:
    g = new_graph(tmp_path)
    options = LoadOptions(type="Note", mode="append", engine="local")
    batch = pa.record_batch({"text": ["a", "b"]})

    def sink(on: LoadOptions) -> StreamSink:
        """Spark makes one where tasks run, and another one for each commit."""
        rows = RowSpool(g.root, "Note", "main")
        return StreamSink(rows, on, stream="s", checkpoint=None)

    tasks = sink(options)
    tasks.write(iter([batch]))  # an attempt whose answer was lost
    message = tasks.write(iter([batch, batch.slice(0, 0)]))
    assert isinstance(message, SpooledRows)
    assert [piece.rows for piece in message.pieces] == [2]
    assert list(Path(g.root).glob("__spool/*/*"))
    before = g.snapshot().version
    sink(options).commit([message, None], 0)
    sink(options).commit([tasks.write(iter([batch]))], 0)  # Spark gives the batch again
    sink(options).commit([tasks.write(iter([]))], 1)
    assert g.snapshot().version == before + 1
    assert sorted(row["text"] for row in rows(g, "Note")) == ["a", "b"]
    assert not list(Path(g.root).glob("__spool/*"))
    everything = LoadOptions(type="Note", mode="overwrite", engine="local")
    sink(everything).commit([tasks.write(iter([]))], 2)
    assert rows(g, "Note") == []  # all that there shall be is nothing
