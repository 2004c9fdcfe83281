"""The data source: types as DataFrames at any ref, and DataFrames as commits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnigraph import Graph
from tests.contract.graphs import rows
from tests.load.world import knows, new_graph, person

MEDIA = {
    "title": "m",
    "place": [1.0, 2.0, 3.0],
    "day": "2020-02-03",
    "at": "2020-02-03T04:05:06.789Z",
    "scores": [1.5, 2.5],
    "words": ["a", "b"],
    "ok": True,
    "huge": 2**64 - 1,
    "small": 0.5,
}


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    graph = new_graph(tmp_path)
    people = [person(f"p{i}", age=i, email=f"e{i}") for i in range(20)]
    media = {"type": "Media", "data": MEDIA}
    graph.load([*people, knows("p1", "p2"), media], engine="local")
    graph.load([person("late", age=99)], engine="local")
    return graph


def test_a_type_is_read_at_a_ref_with_columns_and_a_condition(g: Graph, spark: Any) -> None:
    read = spark.read.format("omnigraph").option("type", "Person")
    whole = read.load(g.root)
    assert whole.columns == [f.name for f in g.snapshot().scan("Person").schema]
    assert whole.where("age > 10").count() == 10
    assert whole.count() == 21  # the filter of one scan does not reach another
    before = spark.read.format("omnigraph").option("type", "Person").option("ref", "main~1")
    assert before.load(g.root).count() == 20
    some = read.option("columns", "name, age").option("where", 'age > 17 and name != "late"')
    found = sorted(tuple(row) for row in some.load(g.root).collect())
    assert found == [("p18", 18), ("p19", 19)]


@pytest.mark.slow
def test_values_of_every_type_travel(g: Graph, spark: Any) -> None:
    row = spark.read.format("omnigraph").option("type", "Media").load(g.root).collect()[0]
    held = rows(g, "Media")[0]
    assert row["place"] == held["place"]
    assert (row["day"], row["scores"], row["words"]) == (
        held["day"],
        held["scores"],
        held["words"],
    )
    assert int(row["huge"]) == 2**64 - 1
    assert (row["ok"], row["small"], row["cover"]) == (True, 0.5, None)
    assert row["at"].microsecond == 789000


@pytest.mark.slow
def test_views_of_all_types_are_of_one_snapshot(g: Graph, spark: Any) -> None:
    from omnigraph.spark.graph import SparkGraph

    names = SparkGraph(g.root, g.at).tables(spark, prefix="g_")
    assert "g_Knows" in names
    g.load([person("later")], engine="local")
    query = "select count(*) as n from g_Knows k join g_Person p on k.src = p.id"
    assert spark.sql(query).collect()[0]["n"] == 1
    assert spark.table("g_Person").count() == 21


def test_a_frame_is_written_as_one_commit(g: Graph, spark: Any) -> None:
    frame = spark.range(0, 10, 1, 2).selectExpr("concat('w', id) as name", "cast(id as int) age")
    write = frame.write.format("omnigraph").option("type", "Person").option("actor", "me")
    head = g.snapshot().version
    write.mode("append").save(g.root)
    assert (g.snapshot().version, g.snapshot().count("Person")) == (head + 1, 31)
    assert g.snapshot().commit.actor == "me"
    with pytest.raises(Exception, match="exists already"):
        write.mode("append").save(g.root)
    assert g.snapshot().version == head + 1
    write.option("on", "merge").mode("append").save(g.root)
    assert g.snapshot().count("Person") == 31
    notes = spark.sql("select 'hello' as text")
    notes.write.format("omnigraph").option("type", "Note").mode("overwrite").save(g.root)
    assert [row["text"] for row in rows(g, "Note")] == ["hello"]
    assert not list(Path(g.root).glob("__spool/*"))
