"""Owns maintenance on executors: a task for each group of fragments, and for each segment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec

from omnigraph.engine.upkeep.workers import Written, build_segment, pieces_of
from omnigraph.plan.optimize import BY_HAND, IndexWork, Limits, split_segment
from omnigraph.spark.pinned import group_fragments, open_table, root_options
from omnigraph.spark.tasks import run_tasks
from omnigraph.store.indexes import Segment
from omnigraph.store.roots import Root
from omnigraph.store.staging import stage_compaction
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger


class Rewritten(msgspec.Struct, frozen=True, kw_only=True):
    old: tuple[str, ...]
    new: tuple[str, ...]


class Built(msgspec.Struct, frozen=True, kw_only=True):
    segment: Segment | None


@dataclass(frozen=True)
class TableTask:
    """What a task does to a version of a table: write some fragments anew, or build a segment."""

    location: str
    version: str
    fragments: tuple[int, ...] = ()
    work: IndexWork | None = None


@dataclass(frozen=True)
class SparkWorkers:
    spark: Any
    root: Root
    limits: Limits = BY_HAND

    def compact(
        self, table: Table, groups: Sequence[Sequence[int]], target_rows: int, ledger: Ledger
    ) -> Written:
        """A group that fills several fragments is split, so that several tasks write it. Requests
        of executors are not in any ledger here."""
        tasks = [
            TableTask(table.location, table.version, part)
            for group in groups
            for part in group_fragments([(n, table.marks[n].rows) for n in group], target_rows)
        ]
        rewrite = partial(rewrite_fragments, self.root, target_rows)
        answers = run_tasks(self.spark, rewrite, tasks, Rewritten)
        return [(answer.old, answer.new) for _, answer in answers]

    def build(
        self, table: Table, works: Sequence[IndexWork], ledger: Ledger
    ) -> list[tuple[Segment, ...]]:
        """A large segment becomes several, each built by a task."""
        parts = [
            (place, replace(work, fragments=part))
            for place, work in enumerate(works)
            for part in split_segment(pieces_of(table, work.fragments), self.limits)
        ]
        tasks = [TableTask(table.location, table.version, work=part) for _, part in parts]
        built: list[list[Segment]] = [[] for _ in works]
        for task, answer in run_tasks(self.spark, partial(build_one, self.root), tasks, Built):
            if answer.segment is not None:
                built[parts[task][0]].append(answer.segment)
        return [tuple(segments) for segments in built]


def rewrite_fragments(root: Root, target_rows: int, task: TableTask) -> Iterator[Rewritten]:
    table = open_table(root.uri, task.location, task.version, root_options(root))
    written = stage_compaction(table, [task.fragments], Ledger(), target_rows=target_rows)
    for old, new in written:
        yield Rewritten(old=old, new=new)


def build_one(root: Root, task: TableTask) -> Iterator[Built]:
    table = open_table(root.uri, task.location, task.version, root_options(root))
    assert task.work is not None
    yield Built(segment=build_segment(table, task.work, Ledger()))
