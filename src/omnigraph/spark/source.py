"""Owns the data source: `spark.read.format("omnigraph")` and `df.write.format("omnigraph")`.

Spark makes the source in a process of its own, the readers and writers in others, and ends a write
in yet another one. So everything travels by value, and nothing here needs a session.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)

import omnigraph
from omnigraph.engine.history.cursor import BEGINNING
from omnigraph.engine.load.options import LoadOptions
from omnigraph.errors import InvalidArgument
from omnigraph.lang.suggestions import near
from omnigraph.model.options import CommitOptions
from omnigraph.runtime import SYSTEM
from omnigraph.spark.columns import struct_type
from omnigraph.spark.scan import TypeScan, pin_scan
from omnigraph.spark.spooled import RowSpool
from omnigraph.spark.stream.changes import ChangeReader, TypeFeed, pin_feed
from omnigraph.spark.stream.sink import StreamSink
from omnigraph.store.roots import parse_root

_OPTIONS = (
    *("path", "type", "ref", "columns", "where"),
    *("branch", "on", "actor", "message"),
    *("stream_id", "changes", "after", "ops", "max_commits"),
)
_OF_STREAMS = ("after", "ops", "max_commits")
_OF_SPARK = ("checkpointlocation", "queryname")
"""Options of Spark itself, which it also passes to the source of a stream."""


class OmnigraphSource(DataSource):  # type: ignore[misc]
    """Options: `type`, and for reading `ref` ("main"), `columns` (names with commas between) and
    `where` (a condition of the query language over the properties of the type); for writing
    `branch`, `on` ("append" refuses ids that exist, "merge" changes them), `actor`, `message`.

    A stream is written with the same options, and `stream_id` if the id in its checkpoint cannot be
    read here. A stream is read from the changes of `branch`, `after` a place ("beginning", or a
    ref), some `ops`, at most `max_commits` in a batch; with `changes` "true" each row says what
    happened to it, and deleted ones are told too.

    Columns, conditions, limits and counts of a query reach the scan by the extension
    (`extension.py`). Without it Spark itself chooses and tests: on Spark 4.3 a filter that is
    pushed to a source in Python reaches other scans of the same DataFrame (decision 62)."""

    @classmethod
    def name(cls) -> str:
        return "omnigraph"

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self.options = options
        for name in options:
            if name.lower() not in (*_OPTIONS, *_OF_SPARK):
                guess = near(name.lower(), _OPTIONS)
                hint = f"Did you mean {guess!r}?" if guess else f"There are {', '.join(_OPTIONS)}."
                raise InvalidArgument(f"There is no option {name!r}.", help=hint)
        self._scan: TypeScan | None = None

    def _option(self, name: str) -> str:
        value = self.options.get(name)
        if not value:
            what = "the root of the graph, .load(root)" if name == "path" else f"`{name}`"
            raise InvalidArgument(f"The data source needs {what}.")
        return str(value)

    def scan(self) -> TypeScan:
        """Pinned when it is first asked for. Spark keeps this object from then on."""
        if self._scan is None:
            columns = self.options.get("columns")
            root = self._option("path")
            with omnigraph.open(root, mode="r") as g:
                snapshot = g.at(self.options.get("ref") or "main")
                self._scan = pin_scan(
                    parse_root(root).uri,
                    snapshot,
                    snapshot.type(self._option("type")),
                    now=SYSTEM.now(),
                    columns=[n.strip() for n in columns.split(",")] if columns else None,
                    where=self.options.get("where"),
                )
        return self._scan

    def __getstate__(self) -> dict[str, Any]:
        """Spark keeps the pickled source and asks it for several readers. All must read one
        snapshot, even if the schema was given and `schema` is never called."""
        if not self.changes_asked and not any(self.options.get(name) for name in _OF_STREAMS):
            self.scan()
        return self.__dict__

    def schema(self) -> Any:
        """Errors are raised here, because an error while a stream is planned gets lost."""
        if self.changes_asked:
            return struct_type(self.feed().schema)
        if any(self.options.get(name) for name in _OF_STREAMS):
            self.feed()
        return struct_type(self.scan().schema)

    @property
    def changes_asked(self) -> bool:
        given = (self.options.get("changes") or "false").lower()
        if given not in ("true", "false"):
            raise InvalidArgument(f"`changes` is 'true' or 'false', not {given!r}.")
        return given == "true"

    def feed(self) -> TypeFeed:
        ops = self.options.get("ops")
        columns = self.options.get("columns")
        return pin_feed(
            self._option("path"),
            self._option("type"),
            branch=self.options.get("branch") or "main",
            after=self.options.get("after") or BEGINNING,
            columns=[n.strip() for n in columns.split(",")] if columns else None,
            ops=[op.strip() for op in ops.split(",")] if ops else None,
            told=self.changes_asked,
            max_commits=self.options.get("max_commits"),
        )

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        return ChangeReader(self.feed())

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        return StreamSink(
            *self._written(overwrite, "merge"),
            stream=self.options.get("stream_id"),
            checkpoint=self.options.get("checkpointLocation"),
        )

    def _written(self, overwrite: bool, otherwise: str) -> tuple[RowSpool, LoadOptions]:
        """Where rows are written, and how they are loaded."""
        chosen = self.options.get("on") or otherwise
        if chosen not in ("append", "merge"):
            raise InvalidArgument(f"`on` is 'append' or 'merge', not {chosen!r}.")
        kind, branch = self._option("type"), self.options.get("branch") or "main"
        options = LoadOptions(
            type=kind,
            mode="overwrite" if overwrite else chosen,
            branch=branch,
            engine="local",
            commit=CommitOptions(self.options.get("actor"), self.options.get("message")),
        )
        return RowSpool(self._option("path"), kind, branch), options

    def reader(self, schema: Any) -> DataSourceReader:
        if self.changes_asked:
            raise InvalidArgument("`changes` are read as a stream: spark.readStream.")
        return OmnigraphReader(self.scan().narrowed(schema.names))

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        return OmnigraphWriter(*self._written(overwrite, "append"))


# Reading


@dataclass
class FragmentPartition(InputPartition):  # type: ignore[misc]
    fragments: tuple[int, ...]

    def __init__(self, fragments: tuple[int, ...]) -> None:
        super().__init__(fragments)
        self.fragments = fragments


class OmnigraphReader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, scan: TypeScan) -> None:
        self._scan = scan

    def partitions(self) -> Sequence[InputPartition]:
        return [FragmentPartition(group) for group in self._scan.fragments or ((),)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if partition.fragments:
            yield from self._scan.read(partition.fragments)


# Writing


class OmnigraphWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Tasks write their rows to files. The process that ends the write loads them as one commit,
    with every check. For large data `g.load(frame)` is better, because it also checks and stages on
    executors."""

    def __init__(self, rows: RowSpool, options: LoadOptions) -> None:
        self._rows = rows
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._rows.write(iterator)

    def commit(self, messages: list[Any]) -> None:
        try:
            self._rows.load(messages, self._options)
        finally:
            self._rows.remove(messages)

    def abort(self, messages: list[Any]) -> None:
        """Also called after a commit that raised, which may have landed. Only files of this write
        are deleted."""
        self._rows.remove(messages)
