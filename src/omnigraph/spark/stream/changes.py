"""Owns reading a stream: the changes of one type on a branch, commit by commit, from any point on.

An offset is a place in the history, which never changes. So a batch that is requested again after a
crash has the same rows. Planning runs in one process of the driver, reading on executors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from omnigraph.engine.graph import Graph
from omnigraph.engine.history.cursor import BEGINNING, is_cursor
from omnigraph.engine.history.diff import Diff
from omnigraph.engine.history.feed import FeedBlock
from omnigraph.engine.opening import open_root
from omnigraph.errors import InvalidArgument
from omnigraph.model.changes import Op
from omnigraph.spark.columns import shown_schema, spark_schema, to_spark
from omnigraph.spark.pinned import root_options
from omnigraph.store.roots import Root, parse_root

_AFTER = "after"
_COMMITS = 1000
_COMMITS_A_TASK = 32
_ROWS = 64 * 1024
_TOLD = pa.schema(
    [("_op", pa.string()), ("_commit", pa.string()), ("_at", pa.timestamp("us", tz="UTC"))]
)
_SHOWN = (Op.INSERT, Op.UPDATE)


@dataclass(frozen=True)
class TypeFeed:
    """The changes of one type. With `told`, each row says what happened to it. The columns are
    those of the type when the stream starts; a column that is missing in a commit is null."""

    root: Root
    branch: str
    type: str
    after: str
    own: pa.Schema
    ops: tuple[str, ...]
    told: bool
    commits: int

    @property
    def schema(self) -> pa.Schema:
        rows = spark_schema(self.own)
        return pa.schema([*_TOLD, *rows]) if self.told else rows

    def blocks(self, after: str, limit: int | None = None) -> Iterator[FeedBlock]:
        """The changes after a place, one block for each commit."""
        return (
            _graph(self.root)
            .branch(self.branch)
            .changes(after, types=[self.type], ops=self.ops, limit=limit)
        )

    def rows(self, block: FeedBlock) -> Iterator[pa.RecordBatch]:
        assert isinstance(block.changes, Diff)  # executors read the files of the graph
        for delta in block.changes.deltas():
            for op, rows in (
                (Op.DELETE, delta.deletes),
                (Op.INSERT, delta.inserts),
                (Op.UPDATE, delta.after),
            ):
                if op in block.changes.ops:
                    yield from self._shaped(rows, op, block)

    def _shaped(self, rows: pa.Table, op: Op, block: FeedBlock) -> Iterator[pa.RecordBatch]:
        for batch in rows.to_batches(max_chunksize=_ROWS):
            arrays = [
                batch.column(f.name).cast(f.type)
                if f.name in batch.schema.names
                else pa.nulls(batch.num_rows, f.type)
                for f in self.own
            ]
            own = pa.RecordBatch.from_arrays(arrays, schema=self.own)
            shown = to_spark(own, spark_schema(self.own))
            if not self.told:
                yield shown
                continue
            commit, count = block.commit, batch.num_rows
            told = [
                pa.repeat(pa.scalar(str(op)), count),
                pa.repeat(pa.scalar(commit.id), count),
                pa.repeat(pa.scalar(commit.created_at, _TOLD.field("_at").type), count),
            ]
            schema = pa.schema([*_TOLD, *shown.schema])
            yield pa.RecordBatch.from_arrays([*told, *shown.columns], schema=schema)


def _graph(root: Root) -> Graph:
    return _opened(root.uri, root_options(root))


@lru_cache(maxsize=8)
def _opened(root: str, options: tuple[tuple[str, str], ...]) -> Graph:
    """Open for as long as the process lives. Executors need no variables of their own to reach the
    graph."""
    return open_root(replace(parse_root(root), options=dict(options)), mode="r")


def pin_feed(
    root: str,
    type: str,
    *,
    branch: str,
    after: str,
    columns: Sequence[str] | None,
    ops: Sequence[str] | None,
    told: bool,
    max_commits: str | None,
) -> TypeFeed:
    """Checked against the graph before anything runs."""
    if max_commits is not None and not (max_commits.isdigit() and int(max_commits)):
        raise InvalidArgument(f"`max_commits` is a number from 1 on, not {max_commits!r}.")
    place = parse_root(root)
    g = _graph(place)
    snapshot = g.at(branch)
    kind = snapshot.type(type)
    names = snapshot.view(kind).check_columns(columns)
    own = shown_schema(kind, names)
    if told and (taken := set(own.names) & set(_TOLD.names)):
        raise InvalidArgument(
            f"{kind.name} has properties that are called as `changes` calls its own: "
            f"{', '.join(sorted(taken))}.",
            help="Leave them out: .option('columns', …).",
        )
    chosen = tuple(ops if ops is not None else [*Op] if told else _SHOWN)
    if Op.DELETE in chosen and not told:
        raise InvalidArgument(
            "A stream of rows cannot tell which of them were deleted.",
            help="Ask for .option('changes', 'true').",
        )
    g.at(branch).diff(branch, ops=chosen)  # names an unknown operation
    if after != BEGINNING and not is_cursor(after):
        after = g.at(after).commit.id  # a ref may move; the stream begins where it is now
    return TypeFeed(
        root=place,
        branch=branch,
        type=kind.table_key,
        after=after,
        own=own,
        ops=tuple(str(op) for op in chosen),
        told=told,
        commits=int(max_commits or _COMMITS),
    )


@dataclass
class CommitPartition(InputPartition):  # type: ignore[misc]
    """A number of commits after a place."""

    after: str
    count: int

    def __init__(self, after: str, count: int) -> None:
        super().__init__((after, count))
        self.after = after
        self.count = count


class ChangeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    def __init__(self, feed: TypeFeed) -> None:
        self._feed = feed
        self._last: str | None = None

    def initialOffset(self) -> dict[str, str]:  # noqa: N802
        return {_AFTER: self._feed.after}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxFiles(self._feed.commits)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = _graph(self._feed.root).at(self._feed.branch).commit.id

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802
        most = None if isinstance(limit, ReadAllAvailable) else self._feed.commits
        after = start[_AFTER]
        for block in self._feed.blocks(after, most):
            if self._last is not None and block.commit.id > self._last:
                break  # ids grow along a branch
            after = block.cursor
        return {_AFTER: after}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        after, last = start[_AFTER], end[_AFTER]
        parts: list[CommitPartition] = []
        begin, count, seen = after, 0, False
        if after == last:
            return parts
        for block in self._feed.blocks(after):
            count += 1
            seen = seen or block.changes.types is None or bool(block.changes.types)
            if count == _COMMITS_A_TASK or block.cursor == last:
                if seen:  # otherwise no commit among them touched the type
                    parts.append(CommitPartition(begin, count))
                begin, count, seen = block.cursor, 0, False
            if block.cursor == last:
                break
        return parts

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        for block in self._feed.blocks(partition.after, partition.count):
            yield from self._feed.rows(block)
