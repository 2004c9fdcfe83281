"""Streams by name: a graph as a sink, one commit for each micro-batch and none twice, and the
changes of a graph as a source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnigraph import Graph
from tests.bench.processes import Worker
from tests.contract.graphs import rows
from tests.load.world import new_graph, person


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    return new_graph(tmp_path)


def run(frame: Any, root: str, checkpoint: Path, **options: str) -> Any:
    """One run over all that there is."""
    writer = frame.writeStream.format("omnigraph").option("path", root)
    for name, value in {"checkpointLocation": str(checkpoint), **options}.items():
        writer = writer.option(name, value)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return query


def lines(spark: Any, directory: Path) -> Any:
    reader = spark.readStream.schema("text string").option("maxFilesPerTrigger", 1)
    return reader.json(str(directory))


def put(directory: Path, name: str, *texts: str) -> None:
    directory.mkdir(exist_ok=True)
    hidden = directory / f".{name}"
    hidden.write_text("".join(f'{{"text": "{text}"}}\n' for text in texts))
    hidden.rename(directory / name)


def texts(g: Graph) -> list[str]:
    return sorted(row["text"] for row in rows(g, "Note"))


def test_each_batch_is_one_commit_and_one_that_comes_again_is_none(
    g: Graph, spark: Any, tmp_path: Path
) -> None:
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    before = g.snapshot().version
    put(source, "a.json", "one", "two")
    run(lines(spark, source), g.root, checkpoint, type="Note", on="append", actor="stream")
    assert (texts(g), g.snapshot().version) == (["one", "two"], before + 1)
    assert g.snapshot().commit.actor == "stream"
    # As if the driver had died after the commit, before it noted that in its checkpoint.
    (checkpoint / "commits" / "0").unlink()
    (checkpoint / "commits" / ".0.crc").unlink()
    put(source, "b.json", "three")
    run(lines(spark, source), g.root, checkpoint, type="Note", on="append")
    assert (texts(g), g.snapshot().version) == (["one", "three", "two"], before + 2)
    assert not list(Path(g.root).glob("__spool/*"))


@pytest.mark.slow
def test_a_driver_that_is_killed_again_and_again_loses_and_doubles_nothing(
    g: Graph, spark: Any, tmp_path: Path
) -> None:
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    expected = [f"{batch}-{n}" for batch in range(6) for n in range(5)]
    for batch in range(6):
        put(source, f"{batch}.json", *(f"{batch}-{n}" for n in range(5)))
    before = g.snapshot().version
    call = {"root": g.root, "source": str(source), "checkpoint": str(checkpoint)}
    for commits in (1, 3, 4):
        until = {"place": str(tmp_path), "until": before + commits}
        with Worker("tests.spark.streamers:stream", {**call, **until}) as worker:
            worker.wait_ready(within=300)
            worker.go()
            assert worker.outcome(within=300).killed
    run(lines(spark, source), g.root, checkpoint, type="Note", on="append")
    assert texts(g) == sorted(expected)
    assert g.snapshot().version == before + 6


@pytest.mark.slow
def test_changes_are_a_stream_that_another_graph_takes(
    g: Graph, spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = new_graph(tmp_path / "other")
    g.load([person("a", age=1), person("b", age=2)], engine="local")
    g.mutate('query q() { update Person set { age: 3 } where name = "a" }')
    reader = spark.readStream.format("omnigraph").option("type", "Person")
    frame = reader.option("columns", "name, age").option("max_commits", "2").load(g.root)
    run(frame, other.root, tmp_path / "copy", type="Person")
    assert {r["name"]: r["age"] for r in rows(other, "Person")} == {"a": 3, "b": 2}
    g.load([person("c")], engine="local")
    run(frame, other.root, tmp_path / "copy", type="Person")
    assert sorted(r["name"] for r in rows(other, "Person")) == ["a", "b", "c"]


@pytest.mark.slow
def test_changes_tell_what_happened_to_each_row(g: Graph, spark: Any, tmp_path: Path) -> None:
    first = g.load([person("a", age=1), person("b", age=2)], engine="local").commit_id
    changed = g.mutate('query q() { update Person set { age: 3 } where name = "a" }').commit
    g.optimize()
    gone = g.mutate('query q() { delete Person where name = "b" }').commit
    assert changed is not None
    assert gone is not None

    def read(name: str, **options: str) -> list[tuple[Any, ...]]:
        reader = spark.readStream.format("omnigraph").option("type", "Person")
        for option, value in {"changes": "true", **options}.items():
            reader = reader.option(option, value)
        query = (
            reader.load(g.root)
            .writeStream.format("memory")
            .queryName(name)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        found = spark.sql(f"select _op, _commit, name, age from {name}").collect()
        return sorted(tuple(row) for row in found)

    told = [
        ("delete", gone.id, "b", 2),
        ("insert", first, "a", 1),
        ("insert", first, "b", 2),
        ("update", changed.id, "a", 3),
    ]
    assert read("everything") == told
    assert read("little_by_little", max_commits="1") == told
    assert read("later", after=str(first)) == [told[0], told[3]]
    assert read("deleted", ops="delete") == [told[0]]
    at = spark.sql("select max(_at) as at from everything").collect()[0]["at"]
    assert at.microsecond == gone.created_at % 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"type": "Persn"}, "Did you mean Person"),
        ({"type": "Person", "since": "nowhere"}, "nowhere"),
        ({"type": "Person", "ops": "removed"}, "'removed' is not a operation of change"),
        ({"type": "Person", "max_commits": "0"}, "a number from 1 on"),
        ({"type": "Person", "ops": "delete"}, "cannot tell which of them were deleted"),
        ({"type": "Person", "chnages": "true"}, "Did you mean 'changes'"),
    ],
)
def test_what_cannot_be_read_is_said_before_anything_runs(
    g: Graph, spark: Any, options: dict[str, str], message: str
) -> None:
    reader = spark.readStream.format("omnigraph")
    for name, value in options.items():
        reader = reader.option(name, value)
    with pytest.raises(Exception, match=message):
        reader.load(g.root)


@pytest.mark.slow
def test_rows_that_are_wrong_stop_the_stream_and_change_nothing(
    g: Graph, spark: Any, tmp_path: Path
) -> None:
    source = tmp_path / "in"
    put(source, "a.json", "one")
    head = g.snapshot().version
    frame = lines(spark, source).selectExpr("text as name", "'x' as age")
    with pytest.raises(Exception, match="age"):
        run(frame, g.root, tmp_path / "checkpoint", type="Person")
    assert g.snapshot().version == head
    assert not list(Path(g.root).glob("__spool/*"))
