"""What the pipeline will rest on: executors stage fragments, the driver publishes them once."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine.publisher import Publisher
from omnigraph.model.version import GraphVersion
from omnigraph.plan.publish import Append, Lineage, PublishPlan
from omnigraph.runtime import SYSTEM
from omnigraph.telemetry import Ledger

SCHEMA = "node Event { at: I64 note: String? }\n"

# PySpark starts its gateway by a fork that runs nothing of ours, but Lance warns of any.
pytestmark = pytest.mark.filterwarnings("ignore:lance is not fork-safe")


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    made = (
        SparkSession.builder.master("local[2,3]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    yield made
    made.stop()


class Staged:
    """Fragments that executors wrote, as the publisher sees them."""

    def __init__(self, plan: PublishPlan, base: GraphVersion) -> None:
        self.plan = plan
        self.base = base

    def replan(self, head: GraphVersion) -> None:
        raise AssertionError("blind appends are carried over as they are")

    def stale(self, head: GraphVersion) -> bool:
        return False


def test_fragments_staged_by_executors_become_one_commit(spark: Any, tmp_path: Path) -> None:
    root = str(tmp_path / "graph")
    g = omnigraph.init(root, schema=SCHEMA)
    base = g.snapshot().graph_version
    pin = base.pins["node:Event"]
    location, version = pin.location, pin.lance_version

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from omnigraph.runtime import SYSTEM as CLOCK
        from omnigraph.store.roots import parse_root
        from omnigraph.store.staging import stage_rows
        from omnigraph.store.tables import Tables

        table = Tables(parse_root(root)).open(location, version, Ledger())
        rows = pa.Table.from_batches(list(batches))
        if not rows.num_rows:
            return
        ids = [CLOCK.ulid() for _ in range(rows.num_rows)]
        shaped = pa.table({"id": ids, "at": rows["at"], "note": rows["note"]})
        done = stage_rows(table, shaped, Ledger())
        told = json.dumps({"fragments": done.fragments, "fields": done.fields, "rows": done.rows})
        yield pa.record_batch({"staged": [told]})

    frame = spark.range(0, 10_000, 1, 4).selectExpr("id as at", "cast(id as string) as note")
    answers = [json.loads(r["staged"]) for r in frame.mapInArrow(stage, "staged string").collect()]
    append = Append(
        table="node:Event",
        fragments=tuple(f for answer in answers for f in answer["fragments"]),
        fields={int(n): meaning for n, meaning in answers[0]["fields"].items()},
        rows=sum(answer["rows"] for answer in answers),
        bytes=0,
    )
    plan = PublishPlan(
        branch="main",
        base_version=base.version,
        base_incarnation=base.incarnation,
        actions=(append,),
        lineage=Lineage(kind="write", operation=SYSTEM.ulid(), actor="spark"),
    )
    with g.transaction() as tx:  # another writer is faster
        tx.append("Event", {"at": -1})
    assert g.snapshot().count("Event") == 1
    Publisher(g._session).publish(Staged(plan, base), Ledger(), retry_for=30)
    found = g.snapshot().scan("Event").read_all()
    assert sorted(found["at"].to_pylist()) == [-1, *range(10_000)]
    assert len(answers) == 4
