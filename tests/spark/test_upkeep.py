"""Maintenance and export on Spark: what one process would have done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.errors import InvalidArgument
from omnigraph.spark import export as exporting
from tests.contract.graphs import rows
from tests.load.world import knows, new_graph, person


def make(directory: Path, *, parts: int = 4, people: int = 600) -> Graph:
    directory.mkdir(exist_ok=True)
    g = new_graph(directory)
    for part in range(parts):
        names = [f"p{part}-{n}" for n in range(people)]
        entries = [person(name, age=n % 90, email=name) for n, name in enumerate(names)]
        g.load([*entries, *(knows(name, names[0]) for name in names)], engine="local")
    return g


def test_fragments_and_indexes_are_those_of_one_process(tmp_path: Path, spark: Any) -> None:
    graphs = [make(tmp_path / name) for name in ("here", "there")]
    for g in graphs:
        g.mutate("query q() { delete Person where age = 3 }")
    before = [sorted(map(repr, rows(g, "Person"))) for g in graphs]
    here = graphs[0].optimize(types=["Person"])
    there = graphs[1].optimize(types=["Person"], engine="spark")
    assert here.types["Person"] == there.types["Person"]
    assert there.types["Person"].indexed
    assert there.commit is not None
    assert graphs[1].snapshot().commit.kind == "optimize"
    assert [sorted(map(repr, rows(g, "Person"))) for g in graphs] == before
    assert graphs[1].entity("Person", "p2-17") is not None
    assert graphs[1].verify().ok


@pytest.mark.slow
def test_a_large_group_is_written_by_several_tasks(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from omnigraph.engine.upkeep.optimize import optimize
    from omnigraph.plan.optimize import BY_HAND
    from omnigraph.spark.upkeep import SparkWorkers

    g = make(tmp_path / "g", parts=6, people=100)
    before = sorted(map(repr, rows(g, "Knows")))
    workers = SparkWorkers(spark, g._session.root)
    limits = replace(BY_HAND, target_rows=250)
    done = optimize(g._session, "main", ["Knows"], limits=limits, workers=workers)
    assert done.types["Knows"].fragments == (6, 3)
    assert sorted(map(repr, rows(g, "Knows"))) == before
    assert g.verify(deep=True).ok


@pytest.mark.slow
@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet", "arrow"])
def test_what_spark_exports_loads_as_an_equal_graph(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, format: Any
) -> None:
    monkeypatch.setattr(exporting, "PART_ROWS", 150)
    g = make(tmp_path / "g", parts=3, people=100)
    to = tmp_path / "out"
    done = g.export(format=format, to=to, types=["Person", "Knows"], engine="spark")
    assert done.counts == {"Person": 300, "Knows": 300}
    names = sorted(path.name for path in to.iterdir())
    assert names == sorted(path.name for path in done.files)
    assert f"Person.00002.{format}" in names
    (tmp_path / "again").mkdir()
    again = new_graph(tmp_path / "again")
    again.load(to, engine="local")
    for kind in ("Person", "Knows"):
        assert sorted(map(repr, rows(again, kind))) == sorted(map(repr, rows(g, kind)))


def test_an_export_on_spark_goes_to_a_directory(tmp_path: Path, spark: Any) -> None:
    g = make(tmp_path / "g", parts=1, people=3)
    with pytest.raises(InvalidArgument, match="goes to a directory"):
        g.export(engine="spark")
    with pytest.raises(InvalidArgument, match="`engine` is one of"):
        g.export(engine="dask")  # type: ignore[arg-type]
    done = g.export(engine="spark", to=tmp_path / "out", format="csv", types=["Person", "Note"])
    assert done.counts == {"Person": 3, "Note": 0}
    assert (tmp_path / "out" / "Note.csv").read_text().startswith('"id"')


def test_a_large_index_is_built_by_several_tasks_and_left_so(tmp_path: Path, spark: Any) -> None:
    from dataclasses import replace

    from omnigraph.engine.upkeep.optimize import optimize
    from omnigraph.plan.optimize import BY_HAND
    from omnigraph.spark.upkeep import SparkWorkers

    g = make(tmp_path / "g", parts=4, people=300)
    before = sorted(map(repr, rows(g, "Person")))
    limits = replace(BY_HAND, target_rows=250, segment_rows=400, segments=3)
    workers = SparkWorkers(spark, g._session.root, limits)
    done = optimize(g._session, "main", ["Person", "Knows"], limits=limits, workers=workers)
    assert done.types["Person"].indexed
    for kind in ("Person", "Knows"):
        table = g.snapshot().view(g.snapshot().type(kind)).table
        by_name: dict[str, list[frozenset[int]]] = {}
        for segment in table.segments:
            by_name.setdefault(segment.name, []).append(segment.fragments)
        assert {len(parts) for parts in by_name.values()} == {3}
        every = {frozenset(n for part in parts for n in part) for parts in by_name.values()}
        assert every == {frozenset(table.marks)}
    assert sorted(map(repr, rows(g, "Person"))) == before
    found = g.entity("Person", "p2-17")
    assert found is not None
    assert found["age"] == 17
    text = 'match { $p: Person { name: "p3-9" }  $p knows $f } return { $f.name as name }'
    assert [row["name"] for row in g.query(text, engine="local").to_pylist()] == ["p3-0"]
    assert g.verify(deep=True).ok
    again = optimize(g._session, "main", ["Person", "Knows"], limits=limits, workers=workers)
    assert not again.types["Person"].indexed


def test_a_load_indexes_a_large_table_by_several_tasks(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace
    from functools import partial

    from omnigraph.engine.load import indexing
    from omnigraph.plan.optimize import BY_HAND
    from omnigraph.spark.load import actions, run
    from omnigraph.spark.load.index import index_tables_on

    limits = replace(BY_HAND, segment_rows=400, segments=4)
    monkeypatch.setattr(indexing, "INDEXED_ROWS", 100)
    monkeypatch.setattr(actions, "FRAGMENT_ROWS", 300)
    monkeypatch.setattr(run, "index_tables_on", partial(index_tables_on, limits=limits))
    g = new_graph(tmp_path)
    frame = spark.range(0, 1500, 1, 5).selectExpr(
        "concat('p', id) as name", "cast(id % 90 as int) as age"
    )
    done = g.load(frame, type="Person", engine="spark")
    assert done.counts["Person"].inserted == 1500
    table = g.snapshot().view(g.snapshot().type("Person")).table
    names = [segment.name for segment in table.segments]
    assert names.count("id_btree") == 3
    assert frozenset().union(*(s.fragments for s in table.segments)) == frozenset(table.marks)
    assert g.entity("Person", "p1234") is not None
    assert g.verify(deep=True).ok
