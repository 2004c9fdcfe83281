"""How rows of a DataFrame come to the function that reads them: as Spark would bring them, in
batches that are bounded in rows and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.spark.tasks import collect_answers
from tests.load.world import new_graph
from tests.spark.test_columnar import conf, plan

SIZES = "number long, rows long, bytes long"
_ARROW = pa.schema([(name, pa.int64()) for name in ("number", "rows", "bytes")])


def omnigraph_read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Has the name by which the extension knows the function of a load."""
    for number, batch in enumerate(batches):
        told = {"number": number, "rows": batch.num_rows, "bytes": batch.nbytes}
        yield pa.RecordBatch.from_pylist([told], _ARROW)


def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


same_by_ours = FunctionType(same.__code__, globals(), "omnigraph_read")


def sizes(frame: Any) -> list[tuple[int, int]]:
    mapped = frame.mapInArrow(omnigraph_read, SIZES)
    assert "BulkMap omnigraph_read" in plan(mapped)
    return [(row.rows, row.bytes) for row in mapped.collect()]


def test_batches_end_at_rows_and_at_bytes(spark: Any) -> None:
    frame = spark.range(0, 1000, 1, 2)
    assert sizes(frame)[0][0] == 500
    with conf(spark, spark_sql_execution_arrow_maxRecordsPerBatch=64):
        assert [rows for rows, _ in sizes(frame)] == 2 * [*(7 * [64]), 52]
    wide = spark.range(0, 300, 1, 1).selectExpr("id", "repeat('x', 10000) as text")
    with conf(spark, spark_sql_execution_arrow_maxBytesPerBatch="100k"):
        found = sizes(wide)
        assert sum(rows for rows, _ in found) == 300
        assert max(size for _, size in found) < 130_000
        one = spark.range(0, 3, 1, 1).selectExpr("repeat('x', 1000000) as text")
        assert [rows for rows, _ in sizes(one)] == [1, 1, 1]


def test_rows_that_do_not_know_their_size_are_measured(spark: Any) -> None:
    """No operator of Spark is known to give such; those of others may."""
    jvm = spark._jvm
    text = jvm.org.apache.spark.unsafe.types.UTF8String.fromString("x" * 1000)
    rows = jvm.java.util.ArrayList()
    for _ in range(25):
        values = spark.sparkContext._gateway.new_array(jvm.java.lang.Object, 1)
        values[0] = text
        rows.add(jvm.org.apache.spark.sql.catalyst.expressions.GenericInternalRow(values))
    given = jvm.scala.jdk.javaapi.CollectionConverters.asScala(rows.iterator())
    schema = spark.sql("select 'x' as text")._jdf.schema()
    portions = jvm.org.apache.spark.sql.omnigraph.Portions(given, schema, 10_000)
    found = []
    while portions.hasNext():
        portion, count = portions.next(), 0
        while portion.hasNext():
            assert portion.next().getStruct(0, 1).getUTF8String(0).numBytes() == 1000
            count += 1
        found.append(count)
    assert found == [10, 10, 5]


def test_rows_of_compiled_plans(spark: Any) -> None:
    compiled = {
        "spark_sql_codegen_wholeStage": "true",
        "spark_sql_codegen_factoryMode": "CODEGEN_ONLY",
        "spark_sql_execution_arrow_maxBytesPerBatch": "10k",
    }
    with conf(spark, **compiled):
        frame = spark.range(0, 1000, 1, 2).selectExpr("id", "repeat('x', 100) as text")
        joined = frame.join(frame.where("id % 2 = 0").select("id"), "id")
        found = sizes(joined)
        assert sum(rows for rows, _ in found) == 500
        assert 1 < max(rows for rows, _ in found) < 100
        ours = joined.mapInArrow(same_by_ours, "id long, text string")
        assert sorted(row.id for row in ours.collect()) == list(range(0, 1000, 2))


def test_no_rows_and_empty_partitions(spark: Any) -> None:
    assert sizes(spark.range(0)) == []
    assert sizes(spark.range(0, 10, 1, 4).where("id = 7").select("id")) == [(1, 8)]
    none = spark.range(0, 5, 1, 2).select()
    with conf(spark, spark_omnigraph_columnar="false"):
        theirs = none.mapInArrow(omnigraph_read, SIZES).collect()
    assert sizes(none) == [(row.rows, row.bytes) for row in theirs]


def test_values_of_every_type_arrive_as_spark_brings_them(spark: Any) -> None:
    frame = spark.range(0, 500, 1, 3).selectExpr(
        "id",
        "if(id % 3 = 0, null, cast(id as int)) as i",
        "cast(id as short) as s",
        "cast(id % 100 as byte) as b",
        "id % 2 = 0 as ok",
        "cast(id as float) / 3 as f",
        "-0.1D * id as d",
        "cast(id as decimal(20, 3)) as m",
        "if(id % 7 = 0, null, concat('ä', id)) as text",
        "cast(concat('x', id) as binary) as data",
        "date_add(date'1969-12-30', cast(id as int)) as day",
        "timestamp_micros(id * 1000003) as at",
        "timestamp_ntz'2020-01-01 00:00:00' as local",
        "array(id, null) as many",
        "map('k', id) as named",
        "struct(id as x, array(cast(id as string)) as y) as both",
        "interval '1' day * id as long",
    )
    schema = frame.schema
    ours = frame.mapInArrow(same_by_ours, schema)
    theirs = frame.mapInArrow(same, schema)
    assert "BulkMap" in plan(ours)
    assert "BulkMap" not in plan(theirs)
    assert ours.toArrow().equals(theirs.toArrow())
    assert ours.orderBy("id").collect()[7] == frame.orderBy("id").collect()[7]


def test_it_can_be_turned_off(spark: Any) -> None:
    with conf(spark, spark_omnigraph_columnar="false"):
        assert "BulkMap" not in plan(spark.range(5).mapInArrow(omnigraph_read, SIZES))


def test_a_limit_above_it_ends_the_task(spark: Any) -> None:
    mapped = spark.range(0, 100_000, 1, 2).mapInArrow(same_by_ours, "id long")
    with conf(spark, spark_sql_execution_arrow_maxRecordsPerBatch=10):
        assert mapped.limit(3).count() == 3
    assert mapped.where("id >= 99999").count() == 1


def test_what_the_function_raises_is_told(spark: Any) -> None:
    def raise_it(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield next(batches)
        raise ValueError("of the function")

    failing = FunctionType(raise_it.__code__, globals(), "omnigraph_read")
    with pytest.raises(Exception, match="of the function"):
        spark.range(10).mapInArrow(failing, "id long").collect()


def test_what_the_function_logs_is_found(spark: Any) -> None:
    def log_it(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import logging

        logging.getLogger("of-ours").warning("seen")
        yield from batches

    logging_it = FunctionType(log_it.__code__, globals(), "omnigraph_read")
    with conf(spark, spark_sql_pyspark_worker_logging_enabled="true"):
        spark.range(0, 10, 1, 1).mapInArrow(logging_it, "id long").collect()
        logs = spark.tvf.python_worker_logs().where("logger = 'of-ours'").collect()
    assert [row.msg for row in logs] == ["seen"]


def test_a_load_reads_a_frame_by_it(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[str] = []

    def seen(frame: Any, kind: Any) -> Any:
        plans.append(plan(frame))
        return collect_answers(frame, kind)

    monkeypatch.setattr("omnigraph.spark.load.reading.collect_answers", seen)
    g = new_graph(tmp_path, "node Doc { name: String @key  text: String  data: Blob? }")
    frame = spark.range(0, 200, 1, 2).selectExpr(
        "concat('d', id) as name",
        "repeat('ü', 50000) as text",
        "binary('b') as data",
    )
    with conf(spark, spark_sql_execution_arrow_maxBytesPerBatch="1m"):
        g.load(frame, type="Doc")
    assert ["BulkMap omnigraph_read" in plan for plan in plans] == [True]
    rows = g.snapshot().scan("Doc", columns=["id", "text"]).read_all()
    assert sorted(rows["id"].to_pylist()) == sorted(f"d{n}" for n in range(200))
    assert set(rows["text"].to_pylist()) == {"ü" * 50000}
