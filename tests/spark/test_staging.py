"""What the pipeline rests on: executors stage fragments, the driver publishes them once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine.write.publisher import publish
from omnigraph.model.version import GraphVersion
from omnigraph.plan.publish import Append, Lineage, PublishPlan
from omnigraph.runtime import SYSTEM
from omnigraph.telemetry import Ledger

SCHEMA = "node Event { at: I64 note: String? }\n"


class Staged:
    """Fragments that executors wrote, as the publisher sees them."""

    def __init__(self, plan: PublishPlan, base: GraphVersion) -> None:
        self.plan = plan
        self.base = base

    def replan(self, head: GraphVersion) -> None:
        raise AssertionError("blind appends are carried over as they are")

    def stale(self, head: GraphVersion) -> bool:
        return False


@pytest.mark.slow
def test_fragments_staged_by_executors_become_one_commit(spark: Any, tmp_path: Path) -> None:
    root = str(tmp_path / "graph")
    g = omnigraph.init(root, schema=SCHEMA)
    base = g.snapshot().graph_version
    pin = base.pins["node:Event"]
    location, version = pin.location, pin.lance_version

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from omnigraph.runtime import SYSTEM as CLOCK
        from omnigraph.store.open_tables import Tables
        from omnigraph.store.roots import parse_root
        from omnigraph.store.staging import stage_rows

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
    publish(g._session, Staged(plan, base), Ledger(), retry_for=30)
    found = g.snapshot().scan("Event").read_all()
    assert sorted(found["at"].to_pylist()) == [-1, *range(10_000)]
    assert len(answers) == 4
