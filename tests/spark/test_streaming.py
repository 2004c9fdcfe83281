"""Streams: one commit for each micro-batch, and no batch twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from omnigraph import Graph
from omnigraph.errors import InvalidArgument
from omnigraph.model.options import CommitOptions
from tests.contract.graphs import rows
from tests.load.world import new_graph

pytestmark = pytest.mark.slow


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    return new_graph(tmp_path)


def test_a_batch_that_comes_again_after_a_crash_is_not_written_again(
    g: Graph, spark: Any, tmp_path: Path
) -> None:
    source = tmp_path / "in"
    source.mkdir()
    writer = g.stream_writer("Note", mode="append", actor="stream")
    crash = [True]

    def write_and_die(frame: Any, batch: int) -> None:
        writer(frame, batch)
        if batch == 1 and crash:
            crash.clear()
            raise RuntimeError("the machine went down before the checkpoint")

    def run() -> None:
        stream = spark.readStream.schema("text string").json(str(source))
        query = (
            stream.writeStream.foreachBatch(write_and_die)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    before = g.snapshot().version
    (source / "a.json").write_text('{"text": "one"}\n{"text": "two"}\n')
    run()
    (source / "b.json").write_text('{"text": "three"}\n')
    with pytest.raises(Exception, match="went down"):
        run()
    assert sorted(row["text"] for row in rows(g, "Note")) == ["one", "three", "two"]
    run()
    assert sorted(row["text"] for row in rows(g, "Note")) == ["one", "three", "two"]
    assert g.snapshot().version == before + 2
    assert g.snapshot().commit.actor == "stream"


def test_a_stream_may_tell_of_several_types(g: Graph, spark: Any) -> None:
    writer = g.branch("main").stream_writer(
        mapping={
            "Person": {"name": "who", "age": F.lit(7)},
            "Knows": {"from": "who", "to": F.lower("whom")},
        },
        stream_id="calls",
    )
    g.load([{"type": "Person", "data": {"name": "z"}}], engine="local")
    before = g.snapshot().version
    calls = spark.sql("select * from values ('a', 'Z'), ('b', 'Z'), ('a', 'A') as t(who, whom)")
    for _ in range(2):
        writer(calls, 0)
    assert g.snapshot().version == before + 1
    assert sorted(row["id"] for row in rows(g, "Person")) == ["a", "b", "z"]
    ends = sorted((row["src"], row["dst"]) for row in rows(g, "Knows"))
    assert ends == [("a", "a"), ("a", "z"), ("b", "z")]
    with pytest.raises(InvalidArgument, match="has no column 'whon', which the mapping names"):
        g.stream_writer(mapping={"Person": {"name": "whon"}}, stream_id="calls")(calls, 1)
    with pytest.raises(InvalidArgument, match="either `type` or `mapping`"):
        g.stream_writer()
    for options in (CommitOptions(if_commit=g.commit.id), CommitOptions(idempotency_key="k")):
        with pytest.raises(InvalidArgument, match="neither if_commit nor idempotency_key"):
            g.stream_writer("Note", options=options)


def test_a_writer_without_a_stream_needs_a_name(g: Graph, spark: Any) -> None:
    frame = spark.sql("select 'x' as text")
    with pytest.raises(InvalidArgument, match="give it a name"):
        g.stream_writer("Note")(frame, 0)
    named = g.stream_writer("Note", stream_id="mine", engine="spark")
    for batch in (0, 0, 1):
        named(frame, batch)
    assert len(rows(g, "Note")) == 2
