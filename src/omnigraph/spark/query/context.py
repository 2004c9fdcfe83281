"""Owns the context of compiling a query: the session, the plan, the pinned tables, and what must be
released when the query ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sql

from omnigraph.engine.graph_view import GraphView, pin_of
from omnigraph.lang.gq.checked import Expression, Variable
from omnigraph.model.catalog import GraphType
from omnigraph.plan.query import Plan
from omnigraph.plan.query.keys import asked_ids
from omnigraph.plan.query.logical import KeyTest
from omnigraph.spark.pinned import PinnedTable, pin_table
from omnigraph.spark.query.frame import BoundVariable, SparkFrame, schema_of
from omnigraph.spark.query.projection import Wants
from omnigraph.spark.query.scope import Attached, RowScope
from omnigraph.spark.query.tables import TableReading, read_frame
from omnigraph.spark.query.values import LoadSource

if TYPE_CHECKING:
    from collections.abc import Iterator

_BROADCAST_ROWS = 100_000
_WRITTEN_OUT = 3


@dataclass
class Compiling:
    """With `dry`, nothing may run, because the plan is only shown. `notes` are shown with it."""

    spark: Any
    root: str
    snapshot: GraphView
    plan: Plan
    wants: Wants
    given: LoadSource
    dry: bool = False
    notes: list[str] = field(default_factory=list)
    held: list[Any] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.codes = {key: code for code, key in enumerate(self.snapshot.catalog.by_key)}

    def number(self) -> int:
        """A number that no name uses yet."""
        return next(self._numbers)

    def close(self) -> None:
        for frame in self.held:
            frame.unpersist()
        self.held.clear()

    # Frames

    def unit(self) -> SparkFrame:
        return SparkFrame(self.spark.range(1).select(), is_unit=True)

    def scope(self, frame: SparkFrame, attached: Attached | None = None) -> RowScope:
        return RowScope(frame, self.codes, attached or {})

    def shared(self, frame: SparkFrame) -> SparkFrame:
        """A frame that is used more than once and computed once."""
        if frame.read or not frame.columns:
            return frame
        return replace(frame, data=self.keep(frame.data), read=True)

    def keep(self, data: Any) -> Any:
        """Computed at first use and kept until the query ends. Each time a plan is used, Spark
        writes it down with everything that is kept in it, so a long series of frames made of each
        other would give ever longer texts. So later ones are cut off from their origin, and cannot
        be recomputed if an executor is lost."""
        if len(self.held) < _WRITTEN_OUT:
            self.held.append(data.persist())
            return data
        if self.dry:
            note = f"Only {_WRITTEN_OUT} of the frames that are used more than once are shown."
            self.notes += [note] if note not in self.notes else []
            return self.spark.createDataFrame([], data.schema)
        return data.localCheckpoint(eager=False)

    # Tables

    def pinned(self, kind: GraphType) -> PinnedTable:
        return pin_table(self.root, self.snapshot, kind)

    def rows(self, kind: GraphType) -> int:
        return pin_of(self.snapshot, kind).rows

    def sizes(self, kind: GraphType) -> list[tuple[int, int]]:
        return [(mark.id, mark.rows) for mark in self.snapshot.view(kind).table.marks.values()]

    def small(self, data: Any, kinds: Sequence[GraphType]) -> Any:
        """Spark does not know the size of what Python reads, so it gets a hint."""
        few = sum(self.rows(kind) for kind in kinds) <= _BROADCAST_ROWS
        return sql.broadcast(data) if few else data

    def bound(self, variable: Variable) -> BoundVariable:
        return BoundVariable(variable, self.wants.get(variable.id, ()))

    def entities(
        self, variable: Variable, tests: tuple[Expression, ...], key: KeyTest | None = None
    ) -> Any:
        """All entities that a variable may have, with the columns of the variable."""
        bound = self.bound(variable)
        parts = []
        kinds: Sequence[GraphType] = variable.kind.types
        for place, kind in enumerate(kinds):
            ids = None if key is None else tuple(asked_ids(kind, key, self.given.bindings))
            reading = TableReading(
                self.pinned(kind),
                schema_of(bound),
                identity=tuple(bound.identity),
                held=tuple((bound.column(held), held) for held in bound.held),
                code=self.codes[kind.table_key],
                place=place,
                tests=tests,
                bindings=self.given.bindings,
                ids=ids,
            )
            parts.append(read_frame(self.spark, reading, self.sizes(kind)))
        return union(parts)


def union(parts: Sequence[Any]) -> Any:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part)
    return whole
