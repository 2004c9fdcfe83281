"""Owns reading types on executors: the rows of a pinned table that pass the tests of a variable,
with the columns that the variable carries.

Tests run where the rows are read: in Lance where it evaluates them as we do, otherwise in our own
evaluator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.query.leaves import in_form, is_shown
from omnigraph.engine.view import TableView
from omnigraph.lang.gq.checked import (
    EntityValue,
    Expression,
    FunctionCall,
    ParameterValue,
    PropertyValue,
    SameEntity,
    SystemValue,
    TypeTest,
)
from omnigraph.lang.gq.walk import walk
from omnigraph.plan.values import arrow_kind, cast, holds
from omnigraph.plan.values.kinds import Value
from omnigraph.plan.values.push import Field, is_comparable, pushed
from omnigraph.plan.values.rows import Bindings, RowLeaves
from omnigraph.spark.pinned import PinnedTable, group_fragments
from omnigraph.spark.query.arrow_types import carry, null_columns, spark_struct
from omnigraph.spark.query.failures import passing_errors
from omnigraph.spark.query.projection import Held
from omnigraph.spark.tasks import map_each
from omnigraph.telemetry import Ledger

Way = Literal["out", "in", "both"]
PARTITION_ROWS = 512 * 1024
_BATCH = 64 * 1024


@dataclass(frozen=True)
class TableReading:
    """What to read of one type, by value. `place` is the index of the type among those of the
    variable. `ids` restricts it to these entities. For edges, `ends` names the two columns for the
    near and the far end, and which end is near; with "both" an edge appears once for each
    direction."""

    pinned: PinnedTable
    schema: pa.Schema
    identity: tuple[str, ...] = ()
    held: tuple[tuple[str, Held], ...] = ()
    code: int = 0
    place: int = 0
    tests: tuple[Expression, ...] = ()
    bindings: Bindings = field(default_factory=Bindings)
    ids: tuple[str, ...] | None = None
    ends: tuple[str, str] | None = None
    way: Way = "out"

    def read(self, fragments: Sequence[int]) -> Iterator[pa.RecordBatch]:
        view = self.pinned.view()
        fixed = RowLeaves(self.bindings)
        conditions = [(test, pushed(test, self._field(view), fixed)) for test in self.tests]
        rest = [test for test, condition in conditions if condition is None]
        together = [condition for _, condition in conditions if condition is not None]
        if self.ids is not None:
            together.append(pc.field("id").isin(pa.array(self.ids, pa.string())))
        condition = reduce(and_, together) if together else None
        for batch in self._batches(view, condition, rest, fragments):
            rows = self._passing(batch, rest)
            for start in range(0, rows.num_rows, _BATCH):
                yield from self._shaped(rows.slice(start, _BATCH), view)

    def _batches(
        self,
        view: TableView,
        condition: pc.Expression | None,
        rest: Sequence[Expression],
        fragments: Sequence[int],
    ) -> Iterator[pa.RecordBatch]:
        names = self._names(view, rest)
        if condition is None:
            return view.scan(Ledger(), columns=names, fragments=fragments, large=True)
        return view.matching(condition, names, Ledger(), fragments=fragments)

    def _names(self, view: TableView, rest: Sequence[Expression]) -> list[str]:
        own = view.schema.names
        wanted = [held.name for _, held in self.held if held.name in own]
        wanted += ["src", "dst"] if self.ends is not None else []
        for test in rest:
            for part in walk(test):
                if isinstance(part, PropertyValue):
                    wanted.append(part.properties[self.place].name)
                elif isinstance(part, SystemValue):
                    wanted.append(part.column)
        asks = bool(self.identity) or any(isinstance(p, EntityValue) for t in rest for p in walk(t))
        return list(dict.fromkeys([*(["id"] if asks or not wanted else []), *wanted]))

    def _field(self, view: TableView) -> Field:
        def column(value: Expression) -> tuple[pc.Expression, pa.DataType] | None:
            if isinstance(value, SystemValue):
                return pc.field(value.column), pa.string()
            if not isinstance(value, PropertyValue):
                return None
            prop = value.properties[self.place]
            if not is_comparable(prop.type):
                return None
            return pc.field(view.column_of(prop.name)), view.schema.field(prop.name).type

        return column

    def _passing(self, batch: pa.RecordBatch, rest: Sequence[Expression]) -> pa.RecordBatch:
        if not rest:
            return batch
        kept = np.ones(batch.num_rows, bool)
        leaves = _BatchLeaves(batch, self)
        for test in rest:
            kept &= holds(test, leaves).to_numpy(zero_copy_only=False)
        return batch if kept.all() else batch.filter(pa.array(kept))

    def _shaped(self, batch: pa.RecordBatch, view: TableView) -> Iterator[pa.RecordBatch]:
        arrays: dict[str, pa.Array] = {}
        if self.identity:
            arrays[self.identity[0]] = batch.column("id")
            for name in self.identity[1:]:
                arrays[name] = pa.array(np.full(batch.num_rows, self.code, np.int32))
        for name, held in self.held:
            arrays[name] = carry(self._value(batch, held, view), held.type)
        if self.ends is None:
            yield self._record(arrays)
            return
        near, far = self.ends
        source, target = batch.column("src"), batch.column("dst")
        if self.way in ("out", "both"):
            yield self._record(arrays | {near: source, far: target})
        if self.way in ("in", "both"):
            back = self._record(arrays | {near: target, far: source})
            # A self-loop was returned already.
            yield back if self.way == "in" else back.filter(pc.not_equal(source, target))

    def _record(self, arrays: dict[str, pa.Array]) -> pa.RecordBatch:
        held = [arrays[name] for name in self.schema.names]
        return pa.RecordBatch.from_arrays(held, schema=self.schema)

    def _value(self, batch: pa.RecordBatch, held: Held, view: TableView) -> pa.Array:
        own = {p.name for p in view.kind.properties if is_shown(p.type)}
        if not held.shown:
            return cast(batch.column(held.name), held.type)
        if held.name not in own:
            return pa.nulls(batch.num_rows, held.type)
        return in_form(batch.column(held.name), held.type)


class _BatchLeaves:
    """The values of a batch of rows of one type, for tests about one variable."""

    def __init__(self, batch: pa.RecordBatch, reading: TableReading) -> None:
        self._batch = batch
        self._reading = reading
        self._fixed = RowLeaves(reading.bindings)

    @property
    def rows(self) -> int:
        return int(self._batch.num_rows)

    def leaf(self, expression: Expression) -> Value:
        match expression:
            case PropertyValue(properties=properties, type=kind):
                name = properties[self._reading.place].name
                return cast(self._batch.column(name), arrow_kind(kind.kind))
            case SystemValue(column=column):
                return self._batch.column(column)
            case EntityValue():
                return self._batch.column("id")
            case SameEntity(negated=negated):
                return pa.array(np.full(self.rows, not negated))
            case TypeTest(types=types):
                own = self._reading.pinned.kind.name
                return pa.array(np.full(self.rows, own in {kind.name for kind in types}))
            case ParameterValue() | FunctionCall():
                return self._fixed.leaf(expression)
            case _:
                raise TypeError(f"{type(expression).__name__} has no value where rows are read")


def read_frame(spark: Any, reading: TableReading, sizes: Sequence[tuple[int, int]]) -> Any:
    """`sizes`: the fragments of the table with their rows."""
    groups = group_fragments(sizes, PARTITION_ROWS)
    schema = spark_struct(reading.schema)
    if not groups or reading.ids == ():
        # Not by `createDataFrame`, which would make this session the caller's active one.
        return spark.range(0, 0, 1, 1).select(*null_columns(reading.schema))

    def read(group: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
        with passing_errors():
            yield from reading.read(group)

    return map_each(spark, groups, read, schema)


__all__ = ["TableReading", "Way", "read_frame"]
