"""Owns building the index segments of a load on executors: a task for each column of each table,
and several for a column of a large one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from omnigraph.engine.upkeep.workers import pieces_of
from omnigraph.model.indexes import IndexSpec
from omnigraph.plan.optimize import BY_HAND, Limits, split_segment
from omnigraph.spark.pinned import open_table, root_options
from omnigraph.spark.tasks import run_tasks
from omnigraph.store.bulk import IndexTask, segment_tasks
from omnigraph.store.indexes import Segment, files_of, replace_segments, stage_index
from omnigraph.store.roots import Root
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger


class BuiltIndex(msgspec.Struct, frozen=True, kw_only=True):
    segment: Segment | None


@dataclass(frozen=True)
class SegmentTask:
    number: int
    location: str
    version: str
    spec: IndexSpec
    fragments: tuple[int, ...]


def index_tables_on(
    spark: Any,
    root: Root,
    tables: Sequence[IndexTask],
    ledger: Ledger,
    limits: Limits = BY_HAND,
) -> list[Table]:
    """Like `store.bulk.index_tables`: for each table, a version with segments of each index over
    the fragments. The version on which they are built exists, and nobody else knows it yet."""
    tasks = [
        SegmentTask(number, table.location, table.version, spec, part)
        for number, spec, fragments in segment_tasks(tables)
        for table in [tables[number][0]]
        for part in split_segment(pieces_of(table, fragments), limits)
    ]
    built: dict[int, list[Segment]] = {}
    for task, answer in run_tasks(spark, partial(build_segment, root), tasks, BuiltIndex):
        if answer.segment is not None:
            built.setdefault(tasks[task].number, []).append(answer.segment)
    return [
        replace_segments(table, files_of(table, fragments), built.get(number, []), ledger)
        for number, (table, _, fragments) in enumerate(tables)
    ]


def build_segment(root: Root, task: SegmentTask) -> Iterator[BuiltIndex]:
    table = open_table(root.uri, task.location, task.version, root_options(root))
    yield BuiltIndex(segment=stage_index(table, task.spec, task.fragments, Ledger()))
