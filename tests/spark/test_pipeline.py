"""Pipelines: several sources, mapped by names, expressions or a file, as one commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph import Graph
from omnigraph.engine.access import Access
from omnigraph.errors import InvalidArgument, InvalidData, ReadOnly
from omnigraph.spark import Pipeline
from tests.contract.graphs import rows
from tests.load.world import new_graph, person, write_lines

MAPPING = """
[[source]]
file = "people"
type = "Person"
columns = { name = "who", age = "years" }

[[source]]
file = "met.csv"
type = "Knows"
from = "a"
to = "b"
"""


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    return new_graph(tmp_path)


def test_sources_of_every_kind_become_one_commit(g: Graph, spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as sql

    people = spark.sql("select 'ada' as who, 36 as years union all select 'bob', 41")
    edges = spark.sql("select named_struct('a', 'ada', 'b', 'bob') as ends, '2020-01-02' as day")
    pq.write_table(pa.table({"title": ["t"], "n": [7]}), tmp_path / "m.parquet")
    path = write_lines(
        tmp_path / "more.jsonl", [person("cy"), {"type": "Note", "data": {"text": "x"}}]
    )
    head = g.snapshot().version
    result = (
        Pipeline(g, spark=spark, actor="ada", message="all of it")
        .source(people, type="Person", columns={"name": "who", "age": sql.col("years") + 1})
        .source(
            edges,
            type="Knows",
            columns={"from": "ends.a", "to": "ends.b", "since": sql.to_date("day")},
        )
        .source(tmp_path / "m.parquet", type="Media", columns={"title": "title", "huge": "n"})
        .source(path)
        .run()
    )
    assert (result.rows, result.engine, g.snapshot().version) == (6, "spark", head + 1)
    assert result.commit is not None
    assert (result.commit.actor, result.commit.message) == ("ada", "all of it")
    ages = {row["name"]: row["age"] for row in rows(g, "Person")}
    assert ages == {"ada": 37, "bob": 42, "cy": None}
    assert [(row["src"], row["dst"], str(row["since"])) for row in rows(g, "Knows")] == [
        ("ada", "bob", "2020-01-02")
    ]
    assert [row["huge"] for row in rows(g, "Media")] == [7]


def test_a_mapping_file_names_files_and_frames(g: Graph, spark: Any, tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(MAPPING)
    (tmp_path / "met.csv").write_text("a,b\nada,bob\nada,nobody\n")
    people = spark.sql("select 'ada' as who, 36 as years union all select 'bob', 410")
    result = (
        Pipeline(g, spark=spark, on_error="quarantine", new_branch="import")
        .mapping(tmp_path / "map.toml", frames={"people": people})
        .run()
    )
    assert sorted((r.source, r.line, r.rule) for r in result.rejected) == [
        ("met.csv", 2, "endpoint"),
        ("met.csv", 3, "endpoint"),
        ("people", 2, "range"),
    ]
    assert [row["name"] for row in rows(g, "Person", ref="import")] == ["ada"]
    assert rows(g, "Person") == []


def test_what_a_mapping_names_must_be_there(g: Graph, spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as sql

    frame = spark.sql("select 'ada' as who")
    head = g.snapshot().version
    with pytest.raises(InvalidArgument, match="Person has no column 'name'") as caught:
        Pipeline(g, spark=spark).source(frame, type="Person", columns={"name": "name"})
    assert "Its columns are who" in caught.value.hint
    with pytest.raises(InvalidArgument, match=r"The mapping does not fit Person: .*nick"):
        Pipeline(g, spark=spark).source(frame, type="Person", columns={"name": sql.upper("nick")})
    with pytest.raises(InvalidArgument, match=r"no file .*gone\.csv, which the mapping names"):
        Pipeline(g).mapping({"source": [{"file": str(tmp_path / "gone.csv"), "type": "Person"}]})
    with pytest.raises(InvalidArgument, match=r"There is no file nothing\.parquet"):
        Pipeline(g).source("nothing.parquet", type="Person")
    path = tmp_path / "Person.csv"
    path.write_text("who\nada\n")
    with pytest.raises(InvalidArgument, match="Expressions are for DataFrames"):
        Pipeline(g).source(path, columns={"name": sql.col("who")})
    with pytest.raises(InvalidArgument, match="has no source"):
        Pipeline(g, spark=spark).run()
    with pytest.raises(InvalidArgument, match="`mode` is one of"):
        Pipeline(g, mode="replace")  # type: ignore[arg-type]
    with pytest.raises((InvalidArgument, InvalidData), match="years"):
        Pipeline(g, spark=spark).source(path, columns={"name": "who", "age": "years"}).run()
    assert g.snapshot().version == head
    assert g.recovery.list() == []
    closed = Graph(g._session, Access("r"), g.io)
    with pytest.raises(ReadOnly):
        Pipeline(closed, spark=spark).source(frame, type="Person", columns={"name": "who"}).run()
