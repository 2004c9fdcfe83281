"""Spark Connect: a real server in a process of its own; loads, jobs, scans, algorithms, streams,
maintenance, and what is refused.

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
from tests.spark.test_bulk_map import SIZES, omnigraph_read
from tests.spark.test_streams import lines, put, run, texts

ALGORITHMS: list[dict[str, Any]] = [
    {"name": "degrees", "edges": "Knows"},
    {"name": "connected_components", "edges": "Knows"},
    {"name": "triangle_count", "edges": "Knows"},
    {"name": "shortest_paths", "edges": "Knows", "sources": ["a0"]},
]


@pytest.fixture(scope="module")
def spark(spark_engine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    conf = omnigraph.spark.settings()
    assert conf
    with connect_server(tmp_path_factory.mktemp("connect"), conf) as address:
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
    read = frame.mapInArrow(omnigraph_read, SIZES)
    assert "BulkMap omnigraph_read" in read._explain_string()
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
    some = reader.option("where", "age > 7").option("columns", "name").load(g.root)
    assert some.toArrow() == pa.table({"name": ["d"]})
    assert "(Python, columnar) struct<name:string>" in some._explain_string()
    spark.conf.set("spark.omnigraph.columnar", "false")  # as on a server without the settings
    assert "columnar" not in some._explain_string()
    assert some.toArrow() == pa.table({"name": ["d"]})
    spark.conf.unset("spark.omnigraph.columnar")
    g.spark.tables(spark)
    assert spark.sql("select count(*) as n from Knows").collect()[0].n == 2
    assert g.recovery.list() == []
    assert g.verify().ok


def test_algorithms_and_maintenance_run_on_the_server(g: Graph, spark: Any, tmp_path: Path) -> None:
    spark.conf.set(SHARED, "true")
    for part in ("a", "b"):
        people = [person(f"{part}{n}", age=n) for n in range(12)]
        edges = [knows(f"{part}{n}", f"{part}{n * 5 % 12}") for n in range(9)]
        g.load([*people, *edges], engine="local")
    for call in ALGORITHMS:
        here = g.algorithm(engine="local", **call).to_arrow()
        there = g.algorithm(engine="spark", **call)
        assert (there.engine, there.to_arrow()) == ("spark", here), call
    g.create_branch("try")
    done = g.branch("try").algorithm(
        "connected_components", engine="spark", edges="Knows", write_to="city"
    )
    assert {row["id"]: row["city"] for row in rows(g, "Person", ref="try")} == done.to_dict()
    before = sorted(map(repr, rows(g, "Person")))
    g.query("query q() { match { $p: Person } return { count($p) as n } }", engine="spark")
    report = g.optimize(types=["Person"], engine="spark")
    assert report.types["Person"].fragments == (2, 1)
    assert sorted(map(repr, rows(g, "Person"))) == before
    out = tmp_path / "out"
    assert g.export(to=out, format="parquet", types=["Person"], engine="spark").counts == {
        "Person": 24
    }
    (tmp_path / "again").mkdir()
    again = new_graph(tmp_path / "again")
    again.load(out, engine="local")
    assert sorted(map(repr, rows(again, "Person"))) == before
    assert g.verify().ok


def test_streams_come_and_go_over_the_server(g: Graph, spark: Any, tmp_path: Path) -> None:
    spark.conf.set(SHARED, "true")
    put(tmp_path / "in", "a.json", "one", "two")
    before = g.snapshot().version
    query = run(lines(spark, tmp_path / "in"), g.root, tmp_path / "sink", type="Note", on="append")
    assert query.exception() is None
    assert (texts(g), g.snapshot().version) == (["one", "two"], before + 1)
    writer = g.stream_writer("Note", mode="append", stream_id="notes")
    for name in ("b.json", "c.json"):
        put(tmp_path / "more", name, f"in {name}")
        frame = lines(spark, tmp_path / "more")
        each = frame.writeStream.foreachBatch(writer).trigger(availableNow=True)
        each = each.option("checkpointLocation", str(tmp_path / "each")).start()
        each.awaitTermination()
    assert texts(g) == ["in b.json", "in c.json", "one", "two"]
    assert g.snapshot().version == before + 3
    (tmp_path / "other").mkdir()
    other = new_graph(tmp_path / "other")
    changes = spark.readStream.format("omnigraph").option("type", "Note").load(g.root)
    run(changes, other.root, tmp_path / "copied", type="Note", on="merge")
    assert texts(other) == texts(g)
    assert not list(Path(g.root).glob("__spool/*"))


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
