"""Loads on Spark: the same graph, the same refusals, in the same words as in one process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.load.world import knows, person, write_lines
from tests.spark.twins import Twins

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def twins(tmp_path: Path) -> Twins:
    return Twins.make(tmp_path)


def note(id: str | None = None, **data: Any) -> dict[str, Any]:
    entry = {"type": "Note", "data": {"text": "t", **data}}
    return entry if id is None else entry | {"id": id}


def wrote(start: str, end: str, **entry: Any) -> dict[str, Any]:
    return {"edge": "Wrote", "from": start, "to": end, **entry}


def test_every_mode_comes_to_the_same_graph(twins: Twins, tmp_path: Path) -> None:
    people = [person(f"p{i}", age=i % 90, email=f"e{i}") for i in range(50)]
    edges = [knows(f"p{i}", f"p{(i + 1) % 50}", since="2020-01-01") for i in range(50)]
    path = write_lines(tmp_path / "all.jsonl", [*people, *edges, note("n"), note()])
    one, other = twins.load(path)
    assert other.rows == 102
    assert other.reason == "asked for"
    assert one.commit is not None
    assert other.commit is not None
    assert one.commit.statistics.keys() == other.commit.statistics.keys()
    changed = [
        person("p1", age=None, mood="calm"),
        person("p2", email="new"),
        person("fresh", age=5),
        knows("p0", "p1", since=None),
        knows("fresh", "p1"),
        wrote("p3", "n", id="w", data={"how": "ink"}),
        note(stars=2.5),
    ]
    twins.load(write_lines(tmp_path / "change.jsonl", changed), mode="merge")
    twins.load(write_lines(tmp_path / "again.jsonl", changed[3:6]), mode="merge")
    replaced = [person("x"), person("y"), knows("x", "y")]
    twins.refused(write_lines(tmp_path / "less.jsonl", replaced), mode="overwrite")
    edge = {"edge": "Wrote", "from": "x", "to": "n"}
    twins.load(write_lines(tmp_path / "less.jsonl", [*replaced, edge]), mode="overwrite")
    assert len(twins.there.snapshot().scan("Person").read_all()) == 2


@pytest.mark.slow
def test_what_is_wrong_is_refused_in_the_same_words(twins: Twins, tmp_path: Path) -> None:
    base = [person("a", email="e"), person("b"), knows("a", "b"), note("n"), note("m"), note("k")]
    twins.load(write_lines(tmp_path / "base.jsonl", base))
    owns = {"edge": "Owns", "from": "a", "to": "t"}
    cases: list[tuple[list[Any], str]] = [
        ([person("c"), person("c")], "append"),
        ([person("a")], "append"),
        ([person("c", email="e")], "append"),
        ([person("c", email="z"), person("d", email="z")], "merge"),
        ([knows("a", "nobody"), knows("nobody", "a")], "append"),
        ([person("c", age=200)], "append"),
        ([wrote("a", "n"), wrote("a", "m"), wrote("a", "k")], "append"),
        ([{"type": "Media", "data": {"title": "t"}}, owns], "append"),
        ([note("q", text=None)], "append"),
        ([{"type": "Note", "id": "q", "data": {"stars": 1}}], "merge"),
        (["{broken", {"type": "Nothing", "data": {}}], "append"),
    ]
    for entries, mode in cases:
        twins.refused(write_lines(tmp_path / "bad.jsonl", entries), mode=mode)


def test_bad_rows_are_put_aside_with_the_same_reasons(twins: Twins, tmp_path: Path) -> None:
    twins.load(write_lines(tmp_path / "base.jsonl", [person("a", email="e"), note("n")]))
    entries = [
        person("b"),
        "not json",
        person("b", age=1),
        person("c", age=-1),
        person("d", email="e"),
        person("f", email="f"),
        person("g", email="f"),
        knows("b", "d"),
        knows("b", "f"),
        knows("b", "b", since="yesterday"),
        wrote("b", "n"),
        wrote("b", "n"),
        wrote("b", "n"),
        person("a"),
    ]
    path = write_lines(tmp_path / "mixed.jsonl", entries)
    _, other = twins.load(path, on_error="quarantine")
    assert len(other.rejected) == 9
    _, other = twins.load(path, on_error="quarantine", mode="merge")
    assert {reject.rule for reject in other.rejected} >= {"json", "unique", "endpoint"}


@pytest.mark.slow
def test_frames_and_files_of_every_format_are_read(
    twins: Twins, spark: Any, tmp_path: Path
) -> None:
    rows = pa.table({"name": [f"n{i}" for i in range(300)], "age": [i % 100 for i in range(300)]})
    pq.write_table(rows, tmp_path / "Person.parquet", row_group_size=70)
    twins.load(tmp_path / "Person.parquet")
    media = {
        "title": ["a", "b"],
        "place": [[1.0, 2.0, 3.0], None],
        "scores": [[1.5], []],
        "words": [None, ["x", "y"]],
        "ok": [True, None],
        "huge": pa.array([2**64 - 1, 0], pa.uint64()),
    }
    pq.write_table(pa.table(media), tmp_path / "Media.parquet")
    twins.load(tmp_path / "Media.parquet")
    (tmp_path / "Knows.csv").write_text('from,to,since\nn1,n2,2020-01-01\n"n3",n4,\n')
    twins.load(tmp_path / "Knows.csv")
    frame = spark.range(0, 500, 1, 3).selectExpr(
        "concat('f', id) as name", "cast(id % 90 as int) as age"
    )
    twins.here.load(frame.toArrow(), type="Person", engine="local")
    result = twins.there.load(frame, type="Person")  # a DataFrame is Spark's by itself
    assert (result.engine, result.reason) == ("spark", "the source is Spark's")
    twins.check()
    bad = spark.range(0, 6, 1, 3).selectExpr(
        "if(id = 4, null, concat('g', id)) as name", "cast(id as int) as age"
    )
    with pytest.raises(Exception, match="rows row 5: `name` is part of the key of Person"):
        twins.there.load(bad, type="Person")
    edges = spark.sql("select 'n1' as `from`, 'n9' as `to`")
    people = spark.sql("select 'new' as name")
    result = twins.there.load({"Person": people, "Knows": edges})
    assert result.rows == 2


@pytest.mark.slow
def test_lines_are_counted_over_the_parts_of_a_file(
    twins: Twins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries: list[Any] = [person(f"p{i}", nick="ok") for i in range(200)]
    entries[120] = person("p20")  # found by a join, in another part than the first
    entries[150] = person("p150", age=-3)
    entries[199] = "{"
    path = write_lines(tmp_path / "f.jsonl", entries)
    monkeypatch.setattr("omnigraph.spark.load.reading.plan_parts", small_parts)
    _, other = twins.load(path, on_error="quarantine")
    assert [reject.line for reject in other.rejected] == [151, 200, 121]
    assert "stands in f.jsonl line 21 already" in other.rejected[2].reason
    for text in ("", "\n\n", json.dumps(person("last"))):
        path.write_text(text)
        twins.load(path, mode="merge")


def small_parts(number: int, source: Any) -> Any:
    from omnigraph.spark.load.shape import plan_parts

    return plan_parts(number, source, range_bytes=1000)


@pytest.mark.slow
def test_a_load_that_loses_a_race_is_checked_again(
    twins: Twins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twins.load(write_lines(tmp_path / "base.jsonl", [person("a", email="e")]))
    from omnigraph import runtime

    done: list[int] = []

    def intrude(point: str) -> None:
        if point == "load checked" and not done:
            done.append(1)
            with twins.there.transaction() as tx:
                tx.append("Person", {"name": "quick", "email": "taken"})

    monkeypatch.setattr(runtime, "on_reach", intrude)
    path = write_lines(tmp_path / "more.jsonl", [person("b"), person("c", email="taken")])
    result = twins.there.load(path, engine="spark", on_error="quarantine")
    assert [reject.rule for reject in result.rejected] == ["unique"]
    names = twins.there.snapshot().scan("Person", columns=["id"]).read_all()["id"].to_pylist()
    assert sorted(names) == ["a", "b", "quick"]


@pytest.mark.slow
def test_executors_index_what_they_wrote_in_the_same_commit(
    twins: Twins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.engine.load.indexing.INDEXED_ROWS", 10)
    people = [person(f"p{i}") for i in range(40)]
    edges = [knows(f"p{i}", f"p{i // 2}") for i in range(40)]
    head = twins.there.snapshot().version
    twins.load(write_lines(tmp_path / "all.jsonl", [*people, *edges]))
    twins.load(write_lines(tmp_path / "again.jsonl", [*people[:20], *edges]), mode="merge")
    for graph in (twins.here, twins.there):
        snapshot = graph.snapshot()
        indexed = snapshot.view(snapshot.type("Knows")).table.indexed_columns
        assert indexed == {"id", "src", "dst"}
    assert twins.there.snapshot().version == head + 2
    query = 'query q() { match { $p: Person { name: "p7" } $p knows $q } return { $q.name } }'
    assert twins.there.query(query).to_pylist() == twins.here.query(query).to_pylist() != []


@pytest.mark.slow
@pytest.mark.parametrize("held", [0, 1_000_000])
def test_ends_are_found_among_few_nodes_and_among_many(
    twins: Twins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    monkeypatch.setattr("omnigraph.spark.load.relations.HELD_IDS", held)
    first = [person("stored"), person("late"), knows("stored", "late")]
    twins.load(write_lines(tmp_path / "first.jsonl", first))
    ends = ("new", "refused", "nobody", "stored")
    entries = [person("new"), person("refused", age=999)]
    entries += [knows(start, end) for start in ends for end in ends]
    path = write_lines(tmp_path / "more.jsonl", entries)
    twins.refused(path)
    _, other = twins.load(path, on_error="quarantine")
    assert sorted(r.rule for r in other.rejected) == ["endpoint"] * 12 + ["range"]
    _, other = twins.load(path, on_error="quarantine", mode="overwrite")
    assert sorted(r.rule for r in other.rejected) == ["endpoint"] * 15 + ["range"]
