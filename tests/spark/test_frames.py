"""Graphs as two DataFrames, out and in again; views whose joins read well; a query for SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidArgument
from omnigraph.spark import Pipeline, as_frame
from tests.contract.graphs import rows

SCHEMA = """
node Person { name: String @key  age: I32?  seen: U64? }
node Paper { title: String  age: I32? }
edge Knows: Person -> Person { since: I32? }
edge Wrote: Person -> Paper
"""


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    made = omnigraph.init(str(tmp_path / "g"), schema=SCHEMA)
    with made.transaction() as tx:
        tx.append("Person", [{"name": n, "age": k, "seen": 2**64 - 1} for k, n in enumerate("abc")])
        tx.append("Paper", [{"id": "a", "title": "on a"}, {"id": "x:y", "title": "on x"}])
        tx.append("Knows", [{"from": "a", "to": "b", "since": 7}, {"from": "c", "to": "a"}])
        tx.append("Wrote", [{"from": "a", "to": "a"}, {"from": "b", "to": "x:y"}])
    return made


def same(one: Graph, other: Graph) -> bool:
    def held(g: Graph, kind: str) -> list[str]:
        made = {"Knows", "Wrote"}  # ids of edges without a key are new
        return sorted(
            repr({k: v for k, v in row.items() if not (kind in made and k == "id")})
            for row in rows(g, kind)
        )

    return all(
        held(one, kind) == held(other, kind) for kind in ("Person", "Paper", "Knows", "Wrote")
    )


def test_a_graph_goes_out_as_two_frames_and_comes_in_again(
    g: Graph, spark: Any, tmp_path: Path
) -> None:
    made = g.spark.frames(spark)
    assert made.vertices.columns[:2] == ["id", "_type"]
    assert made.edges.columns[:4] == ["id", "src", "dst", "_type"]
    ids = {row.id for row in made.vertices.collect()}
    assert ids == {"Person:a", "Person:b", "Person:c", "Paper:a", "Paper:x:y"}
    ends = {(row.src, row.dst) for row in made.edges.collect()}
    assert ("Person:b", "Paper:x:y") in ends
    joined = made.edges.join(made.vertices, made.edges["dst"] == made.vertices["id"])
    assert joined.count() == 4
    again = omnigraph.init(str(tmp_path / "again"), schema=SCHEMA)
    done = Pipeline(again, spark=spark).frames(made.vertices, made.edges).run()
    assert done.counts["Knows"].inserted == 2
    assert same(g, again)


def test_a_graph_of_another_program_comes_in(g: Graph, spark: Any, tmp_path: Path) -> None:
    vertices = spark.createDataFrame(
        [("d", 4, "x"), ("e", 5, "y")], "id string, age int, other string"
    )
    edges = spark.createDataFrame([("d", "e"), ("e", "a")], "src string, dst string")
    Pipeline(g, spark=spark).frames(vertices, edges, node_type="Person", edge_type="Knows").run()
    assert {(r["name"], r["age"]) for r in rows(g, "Person")} >= {("d", 4), ("e", 5)}
    assert ("e", "a") in {(r["src"], r["dst"]) for r in rows(g, "Knows")}
    with pytest.raises(InvalidArgument, match="need the name of their type"):
        Pipeline(g, spark=spark).frames(vertices, edges, node_type="Person")
    with pytest.raises(InvalidArgument, match="no type 'Nobody'"):
        Pipeline(g, spark=spark).frames(vertices, edges, node_type="Nobody", edge_type="Knows")


def test_some_types_keep_their_ids(g: Graph, spark: Any) -> None:
    some = g.spark.frames(spark, types=["Person", "Knows"])
    assert {row.id for row in some.vertices.collect()} == {"a", "b", "c"}
    with pytest.raises(InvalidArgument, match="end at Paper, which is left out"):
        g.spark.frames(spark, types=["Person", "Wrote"])
    g.apply_schema(
        SCHEMA.replace("title: String  age: I32?", "title: String  age: I32?  seen: String?")
    )
    with pytest.raises(InvalidArgument, match="`seen` is String in Paper and U64 in Person"):
        g.spark.frames(spark)
    assert g.spark.frames(spark, ref="main~1").vertices.count() == 5


def test_views_have_foreign_keys_at_any_time(g: Graph, spark: Any) -> None:
    g.mutate('update Person set { age: 50 } where name = "a"')
    g.spark.tables(spark, foreign_keys=True)
    g.spark.tables(spark, ref="main~1", prefix="before_", foreign_keys=True)
    text = """
    select w.from_person as who, p.title, a.age, b.age as was
    from Wrote w join Paper p on w.to_paper = p.id join Person a on w.from_person = a.id
    join before_Person b on b.id = a.id order by who
    """
    assert [tuple(row) for row in spark.sql(text).collect()] == [
        ("a", "on a", 50, 0),
        ("b", "on x", 1, 1),
    ]


def test_a_query_is_a_table_of_sql(g: Graph, spark: Any) -> None:
    text = """
    query q($least: I32) {
      match { $p: Person  $p.age >= $least }
      return { $p.name as name, $p.seen as seen }
    }
    """
    frame = as_frame(g.query(text, params={"least": 1}), spark, view="grown")
    assert int(frame.collect()[0].seen) == 2**64 - 1
    found = spark.sql("select name from grown order by name").collect()
    assert [row.name for row in found] == ["b", "c"]
    assert as_frame(g.query(text, params={"least": 99}), spark).count() == 0
