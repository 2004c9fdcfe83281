"""Owns index segments of rows that were just written in bulk. They are built in parallel over the
new fragments of a version that nobody knows yet, so that they are published together with the
rows."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from omnigraph.model.indexes import IndexSpec
from omnigraph.store.indexes import Segment, files_of, replace_segments, stage_index
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

_SIDE_BY_SIDE = 2


IndexTask = tuple[Table, Sequence[IndexSpec], Sequence[int]]
"""A version of a table, the indexes that it should have, and the fragments that they cover."""


def index_tables(tables: Sequence[IndexTask], ledger: Ledger) -> list[Table]:
    """For each table, a version with a segment of each index over the fragments. Lance builds a
    segment on one core, so several are built at once."""
    tasks = segment_tasks(tables)
    own = [Ledger() for _ in tasks]

    def build(task: tuple[int, IndexSpec, Sequence[int]], booked: Ledger) -> Segment | None:
        number, spec, fragments = task
        return stage_index(tables[number][0], spec, fragments, booked)

    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        built = list(pool.map(build, tasks, own))
    ledger.join(own)
    indexed = []
    for number, (table, _, fragments) in enumerate(tables):
        segments = [s for (n, _, _), s in zip(tasks, built, strict=True) if n == number and s]
        indexed.append(replace_segments(table, files_of(table, fragments), segments, ledger))
    return indexed


def segment_tasks(
    tables: Sequence[IndexTask],
) -> list[tuple[int, IndexSpec, Sequence[int]]]:
    """The number of a table, an index and fragments, for each segment. Those that take longest come
    first, so that none is left over at the end: large tables first and, within a table, the last of
    its indexes, because rows are sorted by an earlier one."""
    tasks = [
        (number, spec, fragments)
        for number, (_, specs, fragments) in enumerate(tables)
        for spec in reversed(specs)
    ]
    return sorted(tasks, key=lambda t: -sum(tables[t[0]][0].marks[n].rows for n in t[2]))
