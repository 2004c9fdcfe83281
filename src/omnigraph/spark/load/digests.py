"""Owns finding out whether a value comes twice in what arrives, by digests of eight bytes: as a
rule none does, and then no text has to travel between executors."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from omnigraph.engine.load.joins import Joins
from omnigraph.model.catalog import GraphType
from omnigraph.plan.load.places import AT
from omnigraph.plan.validate import key_column
from omnigraph.spark.load.frames import read_frame, without
from omnigraph.spark.load.state import NOTHING, SparkState
from omnigraph.spark.pinned import share_fragments
from omnigraph.spark.tasks import explained

_TASK_ROWS = 2_500_000
_PART_ROWS = 1_000_000
_MEMORY = 1 << 30
_DIGEST = "SELECT CAST(hash(v) >> 1 AS BIGINT) AS digest FROM texts WHERE v IS NOT NULL"


def may_repeat(state: SparkState, kind: GraphType, columns: tuple[str, ...]) -> bool:
    """False: no two rows that arrive have equal values there. True: look at the values, because
    digests of others may be equal too."""
    spool, pieces = state.spool, state.types[kind.table_key].pieces
    refused = state.refused.get(kind.table_key, NOTHING)
    groups = share_fragments([(n, piece.rows) for n, piece in enumerate(pieces)], _TASK_ROWS)

    def read(group: tuple[int, ...]) -> Iterator[pa.Table]:
        with tempfile.TemporaryDirectory(prefix="omnigraph-digests-") as directory:
            joins = Joins(_MEMORY, Path(directory))
            try:
                for number in group:
                    rows = without(spool.read(pieces[number], [*columns, AT]), refused)
                    yield joins.ask(_DIGEST, texts=pa.table({"v": key_column(rows, columns)}))
            finally:
                joins.close()

    # Spark would begin by adding up within each task, where nothing comes twice either.
    parts = max(1, state.left(kind) // _PART_ROWS)
    digests = read_frame(state.spark, groups, {"digest": "long"}, read)
    many = digests.repartition(parts, "digest").mapInArrow(_repeated, "digest long")
    with explained():
        return not many.isEmpty()


def _repeated(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A digest that comes twice, if any does."""
    held = [batch.column(0).to_numpy() for batch in batches]
    ordered = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *held]))
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        yield pa.record_batch({"digest": twice[:1]})
