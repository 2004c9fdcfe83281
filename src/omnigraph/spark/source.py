"""Owns the data source: `spark.read.format("omnigraph")` and `df.write.format("omnigraph")`.

Spark makes the source in a process of its own, the readers and writers in others, and ends a write
in yet another one. So everything travels by value, and nothing here needs a session.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)

import omnigraph
from omnigraph.engine.load.state import Mode
from omnigraph.errors import InvalidArgument, InvalidQuery
from omnigraph.lang.gq import compile_query
from omnigraph.lang.gq.checked import Delete, Expression, RowProperty, RowSystem
from omnigraph.model.catalog import Catalog, GraphType
from omnigraph.plan.lookups import split_tests
from omnigraph.plan.values import holds
from omnigraph.plan.values.push import is_comparable, pushed
from omnigraph.plan.values.rows import Bindings, RowLeaves, used_columns
from omnigraph.runtime import SYSTEM
from omnigraph.settings import Settings
from omnigraph.spark.columns import spark_schema, struct_type, to_spark
from omnigraph.spark.pieces import Piece, Spool
from omnigraph.spark.pinned import PinnedTable, group_fragments, pin_table, read_catalog
from omnigraph.store.roots import parse_root
from omnigraph.store.tables import ADDRESS
from omnigraph.telemetry import Ledger

PARTITION_ROWS = 1024 * 1024
_OPTIONS = ("path", "type", "ref", "columns", "where", "branch", "on", "actor", "message")


class OmnigraphSource(DataSource):  # type: ignore[misc]
    """Options: `type`, and for reading `ref` ("main"), `columns` (names with commas between) and
    `where` (a condition of the query language over the properties of the type); for writing
    `branch`, `on` ("append" refuses ids that exist, "merge" changes them), `actor`, `message`.

    Filters and columns of the DataFrame are not pushed down: on Spark 4.3 a filter that was pushed
    reaches other scans of the same DataFrame too."""

    @classmethod
    def name(cls) -> str:
        return "omnigraph"

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self.options = options
        for name in options:
            if name.lower() not in _OPTIONS:
                raise InvalidArgument(
                    f"There is no option {name!r}.", help=f"Options are {', '.join(_OPTIONS)}."
                )
        self._scan: TypeScan | None = None

    def _option(self, name: str) -> str:
        value = self.options.get(name)
        if not value:
            what = "the root of the graph, .load(root)" if name == "path" else f"`{name}`"
            raise InvalidArgument(f"The data source needs {what}.")
        return str(value)

    def scan(self) -> TypeScan:
        """Pinned when it is first asked for: Spark keeps this object from then on."""
        if self._scan is None:
            self._scan = pin_scan(
                self._option("path"),
                self._option("type"),
                ref=self.options.get("ref") or "main",
                columns=self.options.get("columns"),
                where=self.options.get("where"),
            )
        return self._scan

    def schema(self) -> Any:
        return struct_type(self.scan().schema)

    def reader(self, schema: Any) -> DataSourceReader:
        return OmnigraphReader(self.scan())

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        chosen = self.options.get("on") or "append"
        if chosen not in ("append", "merge"):
            raise InvalidArgument(f"`on` is 'append' or 'merge', not {chosen!r}.")
        return OmnigraphWriter(
            root=self._option("path"),
            type=self._option("type"),
            mode="overwrite" if overwrite else chosen,  # type: ignore[arg-type]
            branch=self.options.get("branch") or "main",
            actor=self.options.get("actor"),
            message=self.options.get("message"),
        )


# Reading


@dataclass(frozen=True)
class TypeScan:
    """Some columns of the rows of a pinned table that a condition keeps."""

    pinned: PinnedTable
    columns: tuple[str, ...]
    where: str | None
    fragments: tuple[tuple[int, ...], ...]
    now: int

    @property
    def schema(self) -> pa.Schema:
        from omnigraph.model.catalog import row_schema

        own = row_schema(self.pinned.kind)
        return spark_schema(pa.schema([own.field(name) for name in self.columns]))

    def read(self, fragments: Sequence[int]) -> Iterator[pa.RecordBatch]:
        view, schema = self.pinned.view(), self.schema
        if self.where is None:
            batches = view.scan(Ledger(), columns=self.columns, fragments=fragments)
            for batch in batches:
                yield to_spark(batch, schema)
            return
        test = compile_condition(read_catalog(self.pinned.catalog), view.kind, self.where)
        bindings = Bindings(now=self.now)

        def column(value: Expression) -> tuple[pc.Expression, pa.DataType] | None:
            if isinstance(value, RowSystem):
                return pc.field(value.column), pa.string()
            if not isinstance(value, RowProperty) or not is_comparable(value.property.type):
                return None
            name = value.property.name
            return pc.field(view.column_of(name)), view.schema.field(name).type

        tests = [(t, pushed(t, column, RowLeaves(bindings))) for t in split_tests(test)]
        answered = [condition for _, condition in tests if condition is not None]
        rest = [t for t, condition in tests if condition is None]
        needed = [*self.columns, *(name for t in rest for name in used_columns(t))]
        names = list(dict.fromkeys(needed))
        condition = reduce(and_, answered) if answered else None
        for batch in view.matching(condition, names, Ledger(), fragments=fragments):
            kept = np.ones(batch.num_rows, dtype=bool)
            leaves = RowLeaves(bindings, pa.Table.from_batches([batch]))
            for t in rest:
                kept &= holds(t, leaves).to_numpy(zero_copy_only=False)
            yield to_spark(batch.drop_columns([ADDRESS]).filter(pa.array(kept)), schema)


def pin_scan(root: str, type: str, *, ref: str, columns: str | None, where: str | None) -> TypeScan:
    with omnigraph.open(root, mode="r") as g:
        snapshot = g.snapshot(ref)
        kind = snapshot.type(type)
        view = snapshot.view(kind)
        names = None if not columns else [name.strip() for name in columns.split(",")]
        if where is not None:
            compile_condition(snapshot.catalog, kind, where)
        sizes = [(mark.id, mark.rows) for mark in view.table.marks.values()]
        return TypeScan(
            pinned=pin_table(parse_root(root).uri, snapshot, kind),
            columns=tuple(view.check_columns(names)),
            where=where or None,
            fragments=tuple(group_fragments(sizes, PARTITION_ROWS)),
            now=SYSTEM.now(),
        )


def compile_condition(catalog: Catalog, kind: GraphType, where: str) -> Expression:
    """A condition as it stands after `where` of a statement of the query language."""
    checked = compile_query(f"query q() {{ delete {kind.name} where {where} }}", catalog)
    if checked.query is None:
        message = checked.diagnostics[0].message if checked.diagnostics else "cannot be read"
        raise InvalidQuery(
            f"The condition {where!r} does not fit {kind.name}: {message}",
            diagnostics=checked.diagnostics,
        )
    body = checked.query.body
    statement = body[0] if isinstance(body, tuple) and len(body) == 1 else None
    if not isinstance(statement, Delete):
        raise InvalidArgument(f"{where!r} is not one condition.")
    return statement.where


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


@dataclass
class SpooledRows(WriterCommitMessage):  # type: ignore[misc]
    """What a task wrote down; nobody has looked at it yet."""

    pieces: list[Piece]


class OmnigraphWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Tasks write down their rows; whoever ends the write loads them, as one commit, with every
    check. For large data `g.load(frame)` is better: it checks and stages on executors too."""

    def __init__(
        self,
        *,
        root: str,
        type: str,
        mode: Mode,
        branch: str,
        actor: str | None,
        message: str | None,
    ) -> None:
        self._root = parse_root(root)
        self._type = type
        self._mode = mode
        self._branch = branch
        self._actor = actor
        self._message = message
        self._spool = Spool(self._root, f"__spool/{uuid4().hex}", Settings.from_environment())
        with omnigraph.open(root, mode="r") as g:  # a mistake is told before anything runs
            g.snapshot(branch).type(type)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        pieces = []
        for batch in iterator:
            rows = pa.Table.from_batches([batch])
            key = self._spool.write(f"{uuid4().hex}.arrow", rows)
            pieces.append(
                Piece(
                    key=key,
                    table=self._type,
                    given=(),
                    generated=False,
                    rows=rows.num_rows,
                    bytes=rows.nbytes,
                )
            )
        return SpooledRows(pieces)

    def commit(self, messages: list[Any]) -> None:
        pieces = [piece for message in messages if message for piece in message.pieces]

        def batches(first: pa.Table) -> Iterator[pa.RecordBatch]:
            yield from first.to_batches()
            for piece in pieces[1:]:
                yield from self._spool.read(piece).to_batches()

        try:
            with omnigraph.open(self._root.uri) as g:
                rows: Any = []
                if pieces:
                    first = self._spool.read(pieces[0])
                    rows = pa.RecordBatchReader.from_batches(first.schema, batches(first))
                g.load(
                    rows,
                    type=self._type,
                    mode=self._mode,
                    branch=self._branch,
                    engine="local",
                    actor=self._actor,
                    message=self._message,
                )
        finally:
            self._spool.remove()

    def abort(self, messages: list[Any]) -> None:
        """Also called after a commit that raised, which may have landed: only what this write
        wrote down goes."""
        self._spool.remove()
