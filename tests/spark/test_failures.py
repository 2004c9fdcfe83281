"""What goes wrong on a cluster: tasks that fail, workers that die, a user who has waited enough."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph import Graph
from omnigraph.engine.load.spool import Spool, SpoolPiece
from omnigraph.errors import InvalidArgument, StoreFailure
from omnigraph.spark import cluster
from omnigraph.spark.cluster import require_reachable
from omnigraph.spark.session import SHARED
from omnigraph.store.roots import Root, parse_root
from tests.contract.graphs import rows
from tests.load.world import knows, new_graph, person, write_lines


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    return new_graph(tmp_path)


@dataclass(frozen=True)
class FaultySpool(Spool):
    """The first time that a piece is read in a stage, something happens."""

    marks: str = ""
    fault: str = ""
    times: int = 1

    def read(self, piece: SpoolPiece, columns: list[str] | None = None) -> pa.Table:
        done = Path(self.marks) / f"{piece.key}-{'-'.join(columns or ['all'])}"
        tried = len(list(done.parent.glob(f"{done.name}.*")))
        if tried < self.times:
            done.with_name(f"{done.name}.{tried}").touch()
            if self.fault == "die":
                os._exit(7)
            if self.fault == "raise":
                raise RuntimeError("injected")
        return super().read(piece, columns)


@contextlib.contextmanager
def faulty(monkeypatch: pytest.MonkeyPatch, fault: str, times: int = 1) -> Iterator[None]:
    from pyspark import cloudpickle

    import tests.spark.test_failures as here

    cloudpickle.register_pickle_by_value(here)
    real = cluster.passing_spool

    @contextlib.contextmanager
    def wrapped(*args: Any, **options: Any) -> Iterator[Spool]:
        with real(*args, **options) as spool, tempfile.TemporaryDirectory() as marks:
            yield here.FaultySpool(
                spool.root, spool.prefix, spool.settings, marks=marks, fault=fault, times=times
            )

    monkeypatch.setattr("omnigraph.spark.load.run.passing_spool", wrapped)
    try:
        yield
    finally:
        monkeypatch.undo()
        cloudpickle.unregister_pickle_by_value(here)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["raise", "die"])
def test_a_task_that_fails_is_run_again_and_nothing_is_lost_or_doubled(
    g: Graph, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    entries = [person(f"p{i}") for i in range(30)] + [knows(f"p{i}", "p0") for i in range(30)]
    path = write_lines(tmp_path / "all.jsonl", entries)
    with faulty(monkeypatch, fault):
        result = g.load(path, engine="spark")
    assert result.rows == 60
    assert len({row["id"] for row in rows(g, "Person")}) == len(rows(g, "Person")) == 30
    assert len(rows(g, "Knows")) == 30
    with faulty(monkeypatch, fault):
        g.load(path, engine="spark", mode="merge")
    assert (len(rows(g, "Person")), len(rows(g, "Knows"))) == (30, 30)


@pytest.mark.slow
def test_a_task_that_always_fails_ends_the_load_and_leaves_nothing(
    g: Graph, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_lines(tmp_path / "all.jsonl", [person("a"), knows("a", "a")])
    head = g.snapshot().version
    with (
        faulty(monkeypatch, "raise", times=99),
        pytest.raises(StoreFailure, match="A task on Spark failed: RuntimeError: injected"),
    ):
        g.load(path, engine="spark")
    assert g.snapshot().version == head
    assert rows(g, "Person") == []


@pytest.mark.slow
def test_an_interrupt_ends_the_jobs_and_leaves_nothing(
    g: Graph, spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def dawdle(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(120)
            yield batch

    frame = spark.sql("select 'a' as name").mapInArrow(dawdle, "name string")
    tracker = spark.sparkContext.statusTracker()
    head = g.snapshot().version

    def interrupt() -> None:
        while not tracker.getActiveJobsIds():
            time.sleep(0.1)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        g.load(frame, type="Person")
    thread.join()
    deadline = time.monotonic() + 60
    while tracker.getActiveJobsIds() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert list(tracker.getActiveJobsIds()) == []
    assert g.snapshot().version == head
    assert not list(tmp_path.glob("omnigraph-spark-*"))


class Elsewhere:
    """A session whose executors are on other machines."""

    def __init__(self, **settings: str) -> None:
        self.settings = {"spark.master": "spark://far:7077", **settings}

    @property
    def conf(self) -> Elsewhere:
        return self

    def get(self, name: str, default: str | None = None) -> str | None:
        return self.settings.get(name, default)


def test_a_directory_of_this_machine_is_not_given_to_others(tmp_path: Path) -> None:
    root = parse_root(tmp_path / "g")
    with pytest.raises(InvalidArgument, match="executors of spark://far:7077 may be on others"):
        require_reachable(Elsewhere(), root)
    require_reachable(Elsewhere(**{SHARED: "true"}), root)
    require_reachable(Elsewhere(), Root("s3://bucket/g", None))
    require_reachable(Elsewhere(**{"spark.master": "local[2]"}), root)
