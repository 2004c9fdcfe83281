"""Owns index segments of rows that were just written in bulk: built side by side over the new
fragments of a version that nobody knows yet, so that they are published together with the rows."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from omnigraph.store.indexes import Segment, files_of, replace_segments, stage_segment
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

_SIDE_BY_SIDE = 2


def index_tables(
    tables: Sequence[tuple[Table, Sequence[str], Sequence[int]]], ledger: Ledger
) -> list[Table]:
    """For each table a version with a segment for each of the columns over the fragments. Lance
    builds a segment on one core."""
    tasks = segment_tasks(tables)
    own = [Ledger() for _ in tasks]

    def build(task: tuple[int, str, Sequence[int]], booked: Ledger) -> Segment:
        number, column, fragments = task
        return stage_segment(tables[number][0], column, "BTREE", fragments, booked)

    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        built = list(pool.map(build, tasks, own))
    ledger.join(own)
    indexed = []
    for number, (table, _, fragments) in enumerate(tables):
        segments = [s for (n, _, _), s in zip(tasks, built, strict=True) if n == number]
        indexed.append(replace_segments(table, files_of(table, fragments), segments, ledger))
    return indexed


def segment_tasks(
    tables: Sequence[tuple[Table, Sequence[str], Sequence[int]]],
) -> list[tuple[int, str, Sequence[int]]]:
    """The number of a table, a column and fragments, for each segment. Those that take longest
    come first, so that none is left over at the end: of large tables, and of a table its last
    column, because rows lie in the order of an earlier one."""
    tasks = [
        (number, column, fragments)
        for number, (_, columns, fragments) in enumerate(tables)
        for column in reversed(columns)
    ]
    return sorted(tasks, key=lambda t: -sum(tables[t[0]][0].marks[n].rows for n in t[2]))
