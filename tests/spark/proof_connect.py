"""Spark Connect: a real server in a process of its own; loads, jobs, scans and what is refused.

Not collected by itself: it needs the packages of `requirements-connect.lock`; `make spark-proof`
installs them and names this file.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph.spark
from omnigraph import Graph
from omnigraph.errors import EngineMissing, InvalidArgument, InvalidData
from omnigraph.spark import Pipeline
from omnigraph.spark.session import SHARED
from tests.contract.graphs import rows
from tests.load.world import knows, new_graph, person, write_lines
from tests.spark.servers import connect_server


@pytest.fixture(scope="module")
def spark(spark_engine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with connect_server(tmp_path_factory.mktemp("connect"), {}) as address:
        made = omnigraph.spark.session(address)
        yield made
        made.stop()


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    return new_graph(tmp_path)


def test_a_directory_must_be_said_to_be_shared(g: Graph, spark: Any, tmp_path: Path) -> None:
    spark.conf.unset(SHARED)
    path = write_lines(tmp_path / "all.jsonl", [person("a")])
    with pytest.raises(InvalidArgument, match="executors of Spark Connect may be on others"):
        g.load(path, engine="spark")


def test_files_and_frames_are_loaded_and_read(g: Graph, spark: Any, tmp_path: Path) -> None:
    spark.conf.set(SHARED, "true")
    entries = [person("a", email="e"), person("b"), knows("a", "b"), person("c", email="e")]
    path = write_lines(tmp_path / "all.jsonl", entries)
    result = g.load(path, on_error="quarantine")
    assert (result.engine, result.rows) == ("spark", 3)
    assert [reject.rule for reject in result.rejected] == ["unique"]
    frame = spark.sql("select 'b' as name, 7 as age union all select 'd', 8")
    merged = g.load(frame, type="Person", mode="merge", job="people")
    assert (merged.counts["Person"].inserted, merged.counts["Person"].updated) == (1, 1)
    assert g.load(frame, type="Person", mode="merge", job="people").repeated
    edges = spark.sql("select 'd' as s, 'a' as t")
    Pipeline(g, spark=spark).source(edges, type="Knows", columns={"from": "s", "to": "t"}).run()
    with pytest.raises(InvalidData, match="exists already"):
        g.load(frame, type="Person")
    ages = {row["name"]: row["age"] for row in rows(g, "Person")}
    assert ages == {"a": None, "b": 7, "d": 8}
    reader = spark.read.format("omnigraph").option("type", "Person")
    assert reader.option("where", "age > 7").option("columns", "name").load(g.root).toArrow() == (
        pa.table({"name": ["d"]}, schema=pa.schema([pa.field("name", pa.string(), nullable=False)]))
    )
    g.spark.tables(spark)
    assert spark.sql("select count(*) as n from Knows").collect()[0].n == 2
    assert g.recovery.list() == []
    assert g.verify().ok


def test_an_interrupt_leaves_nothing(g: Graph, spark: Any) -> None:
    spark.conf.set(SHARED, "true")

    def dawdle(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(120)
            yield batch

    frame = spark.sql("select 'a' as name").mapInArrow(dawdle, "name string")
    threading.Timer(8, os.kill, (os.getpid(), signal.SIGINT)).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        g.load(frame, type="Person")
    assert time.monotonic() - started < 100
    assert rows(g, "Person") == []
    assert g.recovery.list() == []
    assert spark.range(3).count() == 3


def test_a_server_that_is_not_there_is_said_to_be_missing(spark: Any) -> None:
    with pytest.raises((EngineMissing, InvalidArgument)):
        omnigraph.spark.session("sc://127.0.0.1:1")
