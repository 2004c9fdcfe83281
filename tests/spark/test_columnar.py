"""The extension of Spark: batches come as rows would, of the columns that are needed."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph import Graph
from omnigraph.spark.extension import JAR, NAME, extended, settings
from tests.load.world import new_graph

SCHEMA = """
node Thing {
  name: String @key
  text: String?   data: Blob?      ok: Bool?
  i32: I32?       i64: I64?        u32: U32?       u64: U64?
  f32: F32?       f64: F64?        day: Date?      at: DateTime?
  texts: [String]?  numbers: [I64]?  place: Vector(3)?
  full: I64       never: F64?
}
node Empty { name: String @key  n: I64? }
"""
_PLAIN = ("name", "text", "data", "ok", "i32", "i64", "u32", "u64", "f32", "f64", "day", "at")
NAMES = (*_PLAIN, "texts", "numbers", "place", "full", "never")


def thing(number: int, chance: random.Random, nulls: float) -> dict[str, Any]:
    """A row whose values are at the ends of what their types hold, or null."""
    pick = chance.choice
    values = {
        "text": pick(["", "x", "ä\U0001f600\x00", "long " * pick([1, 50])]),
        "data": pick([b"", b"\x00\xff", bytes(300)]),
        "ok": pick([True, False]),
        "i32": pick([-(2**31), 0, 2**31 - 1]),
        "i64": pick([-(2**63), -1, 2**63 - 1]),
        "u32": pick([0, 2**32 - 1]),
        "u64": pick([0, 2**63, 2**64 - 1]),
        "f32": pick([0.0, -1.5, math.inf, math.nan]),
        "f64": pick([0.1, -1e300, math.nan, -0.0]),
        "day": pick([date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)]),
        "at": datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC) + timedelta(days=number % 9),
        "texts": pick([[], ["", "ä"], ["x"] * 5]),
        "numbers": pick([[], [1, -1], [2**62]]),
        "place": pick([[0.0, 1.0, -1.0], [-1e14, 0.5, -0.0]]),
    }
    kept = {key: None if chance.random() < nulls else value for key, value in values.items()}
    return {"name": f"t{number:07}", **kept, "full": number, "never": None}


@pytest.fixture(scope="module")
def g(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Three fragments: of the first most is null, of the second nothing, of the third a little."""
    graph = new_graph(tmp_path_factory.mktemp("columnar"), SCHEMA)
    chance = random.Random(7)
    for part, nulls in enumerate((0.8, 0.0, 0.1)):
        things = [thing(part * 1000 + n, chance, nulls) for n in range(1000)]
        table = graph.snapshot().scan("Thing").schema
        fields = [table.field(name) for name in NAMES]
        graph.load(pa.Table.from_pylist(things, pa.schema(fields)), type="Thing", engine="local")
    return graph


def things(g: Graph, spark: Any, **options: str) -> Any:
    source = spark.read.format("omnigraph").option("type", "Thing")
    for name, value in options.items():
        source = source.option(name, value)
    return source.load(g.root)


@contextmanager
def conf(spark: Any, **values: Any) -> Iterator[None]:
    names = {key.replace("_", "."): value for key, value in values.items()}
    before = {name: spark.conf.get(name, None) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def plan(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def same(one: Any, other: Any) -> bool:
    """NaN is itself here."""
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or one == other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def assert_same(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        assert left.keys() == right.keys()
        assert [key for key in left if not same(left[key], right[key])] == []


@pytest.mark.parametrize("compiled", [False, True])
def test_batches_have_the_values_of_rows(g: Graph, spark: Any, compiled: bool) -> None:
    mode = "FALLBACK" if compiled else "NO_CODEGEN"
    with conf(spark, spark_sql_codegen_wholeStage=compiled, spark_sql_codegen_factoryMode=mode):
        frame = things(g, spark).orderBy("name")
        assert "(Python, columnar)" in plan(frame)
        batches = frame.toArrow().to_pylist()
        with conf(spark, spark_omnigraph_columnar=False):
            rows = things(g, spark).orderBy("name")
            assert "columnar" not in plan(rows)
            assert_same(batches, rows.toArrow().to_pylist())
    held = g.snapshot().scan("Thing").read_all().sort_by("name").to_pylist()
    for row in batches:
        row["u64"] = None if row["u64"] is None else int(row["u64"])
    assert_same(batches, held)


@pytest.mark.parametrize("name", NAMES)
def test_a_column_alone_is_as_it_is_among_others(g: Graph, spark: Any, name: str) -> None:
    whole = things(g, spark)
    one = whole.select(name)
    assert f"omnigraph[{name}#" in plan(one)
    held = [row[name] for row in whole.toArrow().to_pylist()]
    assert all(map(same, (row[name] for row in one.toArrow().to_pylist()), held))
    assert one.where(f"{name} is null").count() == sum(value is None for value in held)


def test_only_what_is_needed_is_read_and_scans_do_not_reach_each_other(
    g: Graph, spark: Any
) -> None:
    frame = things(g, spark)
    assert frame.where("i32 < 0").selectExpr("max(full) as m").collect()[0].m > 1000
    narrow = frame.where("i32 < 0").select("full")
    assert "struct<i32:int,full:bigint>" in plan(narrow)
    assert frame.count() == 3000  # of no column at all
    assert "struct<>" in plan(frame.selectExpr("1 as one"))
    assert frame.selectExpr("1 as one").selectExpr("sum(one) as n").collect()[0].n == 3000
    assert [row.full for row in frame.orderBy("full").limit(3).collect()] == [0, 1, 2]
    assert len(frame.limit(5).collect()[0]) == len(NAMES) + 1  # and the id
    pairs = frame.alias("a").join(frame.alias("b"), "full").selectExpr("a.text", "b.name")
    assert pairs.count() == 3000
    renamed = frame.selectExpr("full as text", "text as full").where("full = 'x'")
    assert renamed.count() == frame.where("text = 'x'").count() > 0


def test_options_narrow_too(g: Graph, spark: Any) -> None:
    some = things(g, spark, columns="name,full,text", where="full < 10 and i32 is not null")
    assert some.columns == ["name", "full", "text"]
    with conf(spark, spark_omnigraph_columnar=False):
        expected = sorted(row.full for row in some.collect())
    assert sorted(row.full for row in some.select("full").collect()) == expected
    assert 0 < len(expected) <= 10


def test_a_type_without_rows_has_none(g: Graph, spark: Any) -> None:
    frame = spark.read.format("omnigraph").option("type", "Empty").load(g.root)
    assert "columnar" in plan(frame)
    assert (frame.count(), frame.collect()) == (0, [])
    assert frame.selectExpr("sum(n) as n").collect()[0].n is None


def test_a_given_schema_is_of_one_snapshot_too(tmp_path: Path, spark: Any) -> None:
    g = new_graph(tmp_path, "node N { name: String @key  n: I64?  text: String? }")
    g.load(pa.table({"name": ["a", "b"], "n": [1, 2]}), type="N", engine="local")
    source = spark.read.format("omnigraph").option("type", "N")
    frame = source.schema("n long, name string, text string").load(g.root)
    assert frame.selectExpr("count(n) as c").collect()[0].c == 2
    g.load(pa.table({"name": ["c"], "n": [3]}), type="N", engine="local")
    assert frame.selectExpr("count(name) as c").collect()[0].c == 2  # other columns, planned later
    assert frame.select("n").exceptAll(frame.where("text is null").select("n")).count() == 0
    folded = source.schema("name string collate utf8_lcase").load(g.root)
    assert folded.where("name = 'A'").count() == 1
    spark.conf.set("spark.omnigraph.columnar", "off")  # nonsense is not "false"
    assert "columnar" in plan(frame)
    spark.conf.unset("spark.omnigraph.columnar")


@pytest.mark.slow
def test_a_thread_of_a_task_may_read_on_when_the_task_is_over(tmp_path: Path, spark: Any) -> None:
    """A limit ends the task of a script while its feeder still reads the last batch."""
    g = new_graph(tmp_path, "node N { name: String @key  text: String }")
    numbers = range(300_000)
    table = pa.table({"name": [f"n{n}" for n in numbers], "text": [str(n) * 9 for n in numbers]})
    g.load(table, type="N", engine="local")
    g.spark.tables(spark, prefix="fed_")
    text = "select transform(name, text) using 'cat' as (a string, b string) from fed_N limit 3"
    for _ in range(10):
        assert len(spark.sql(text).collect()) == 3
    assert spark.table("fed_N").count() == 300_000  # the JVM is alive


@pytest.mark.slow
def test_batches_that_follow_each_other_do_not_mix(tmp_path: Path, spark: Any) -> None:
    """The memory of a batch is that of the next one: values, lengths and nulls all change."""
    g = new_graph(tmp_path, "node N { name: String @key  n: I64?  words: [String]? }")
    numbers = list(range(400_000))
    table = pa.table(
        {
            "name": [f"{n:x}" * (1 + n // 100_000) for n in numbers],
            "n": [None if n > 200_000 and n % 3 else n for n in numbers],
            "words": [None if n % 7 == 0 else [str(n)] * (n % 3) for n in numbers],
        }
    )
    g.load(table, type="N", engine="local")
    frame = spark.read.format("omnigraph").option("type", "N").load(g.root)
    for compiled in (True, False):
        with conf(spark, spark_sql_codegen_wholeStage=compiled):
            found = frame.select("name", "n", "words").toArrow().sort_by("name")
            assert found.equals(table.sort_by("name").cast(found.schema))
    # Spark may keep batches of Arrow vectors while it asks for the next: ours must not seem such.
    with conf(spark, spark_sql_execution_arrow_pythonUDF_columnarInput_enabled=True):
        lengths = frame.select(_lengths()("name").alias("n")).selectExpr("sum(n) as n")
        assert lengths.collect()[0].n == sum(map(len, table["name"].to_pylist()))


def _lengths() -> Any:
    import pyarrow.compute as pc
    from pyspark.sql.functions import arrow_udf

    def lengths(names: pa.Array) -> pa.Array:
        return pc.utf8_length(names).cast(pa.int64())

    return arrow_udf(lengths, "long")


@pytest.mark.slow
def test_tasks_that_end_early_leave_no_one_reading(g: Graph, spark: Any) -> None:
    from pyspark.sql.functions import udf

    fails = udf(lambda name: 1 // (name != "t0001500"), "int")
    frame = things(g, spark)
    for _ in range(10):
        assert len(frame.select(udf(len, "int")("name")).limit(7).collect()) == 7
        with pytest.raises(Exception, match="ZeroDivisionError"):
            frame.select(fails("name").alias("n")).selectExpr("sum(n)").collect()
    assert frame.count() == 3000


def test_what_fails_in_a_worker_is_told(g: Graph, spark: Any, tmp_path: Path) -> None:
    broken = new_graph(tmp_path, "node N { name: String @key }")
    broken.load(pa.table({"name": ["a", "b"]}), type="N", engine="local")
    frame = spark.read.format("omnigraph").option("type", "N").load(broken.root)
    assert frame.count() == 2
    for path in Path(broken.root).glob("**/data/*.lance"):
        path.unlink()
    with pytest.raises(Exception, match=r"(?i)not found|no such file|missing"):
        frame.collect()
    assert things(g, spark).count() == 3000  # the session goes on


def test_settings_are_added_to_those_that_are_given() -> None:
    assert settings() == {"spark.jars": str(JAR), "spark.sql.extensions": NAME}
    given = {"spark.jars": "/a.jar, /b.jar", "spark.sql.extensions": "x.Y", "spark.z": "1"}
    made = extended(given)
    assert made["spark.jars"] == f"/a.jar,/b.jar,{JAR}"
    assert made["spark.sql.extensions"] == f"x.Y,{NAME}"
    assert extended(made) == made
    assert made["spark.z"] == "1"


def test_without_the_jar_or_on_another_spark_nothing_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyspark

    monkeypatch.setattr(pyspark, "__version__", "4.4.0")
    assert settings() == {}
    monkeypatch.undo()
    monkeypatch.setattr("omnigraph.spark.extension.JAR", tmp_path / "none.jar")
    assert extended({"spark.z": "1"}) == {"spark.z": "1"}
