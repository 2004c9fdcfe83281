"""Owns conditions over the rows of one type, given as query text or as an Arrow expression. A
condition is read once and applied to every batch, by Lance as far as possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.view import TableView, check_expression
from omnigraph.errors import InvalidArgument, InvalidQuery
from omnigraph.lang.gq import compile_query
from omnigraph.lang.gq.checked import Delete, Expression, RowProperty, RowSystem
from omnigraph.model.arrow import row_schema
from omnigraph.model.call_types import Filter
from omnigraph.model.catalog import Catalog, GraphType
from omnigraph.plan.lookups import split_tests
from omnigraph.plan.values import holds
from omnigraph.plan.values.push import is_comparable, pushed
from omnigraph.plan.values.rows import Bindings, RowLeaves, used_columns
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class Condition:
    """A test of the rows of one type. `now` is the value of `now()`, in microseconds."""

    kind: GraphType
    test: Expression | pc.Expression
    now: int

    def scan(
        self, view: TableView, columns: Sequence[str], ledger: Ledger
    ) -> Iterator[pa.RecordBatch]:
        """These columns of all rows that meet the condition, pending ones included."""
        if isinstance(self.test, pc.Expression):
            yield from view.scan(ledger, columns=columns, filter=self.test)
            return
        for batch in self.rows(view, columns, ledger):
            if batch.num_rows:
                yield batch.select(list(columns))
        pending = view.overlay.rows
        if pending.num_rows:
            kept = holds(self.test, RowLeaves(Bindings(now=self.now), pending))
            yield from pending.filter(kept).select(list(columns)).to_batches()

    def rows(
        self,
        view: TableView,
        columns: Sequence[str],
        ledger: Ledger,
        *,
        fragments: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The visible rows of the table, or of some fragments, that meet the condition: these
        columns, the columns that the test needs, and the addresses as a last column."""
        if isinstance(self.test, pc.Expression):
            yield from view.located(columns, ledger, filter=self.test, fragments=fragments)
            return
        bindings = Bindings(now=self.now)

        condition, rest = push_tests(view, split_tests(self.test), bindings)
        needed = [*columns, *(name for t in rest for name in used_columns(t))]
        names = list(dict.fromkeys(needed))
        for batch in view.matching(condition, names, ledger, fragments=fragments):
            kept = np.ones(batch.num_rows, dtype=bool)
            leaves = RowLeaves(bindings, pa.Table.from_batches([batch]))
            for t in rest:
                kept &= holds(t, leaves).to_numpy(zero_copy_only=False)
            yield batch if kept.all() else batch.filter(pa.array(kept))


def scan_rows(
    view: TableView,
    catalog: Catalog,
    columns: Sequence[str] | None,
    filter: Filter | None,
    now: int,
    ledger: Ledger,
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The rows of a view that meet a condition. The condition is checked before anything is
    read."""
    names = view.check_columns(columns)
    schema = pa.schema([view.schema.field(name) for name in names])
    if isinstance(filter, str):
        condition = read_condition(catalog, view.kind, filter, now)
        return schema, condition.scan(view, names, ledger)
    view.check_filter(filter)
    return schema, view.scan(ledger, columns=names, filter=filter)


def read_condition(catalog: Catalog, kind: GraphType, where: Filter, now: int) -> Condition:
    """Reads a condition, either text as it stands after `where` in the query language, or an Arrow
    expression over the properties."""
    if isinstance(where, pc.Expression):
        check_expression(kind, row_schema(kind), where)
        return Condition(kind, where, now)
    if not isinstance(where, str):
        raise InvalidArgument(
            f"The condition of {kind.name} is a text or a pyarrow.compute expression, not "
            f"{type(where).__name__}."
        )
    checked = compile_query(f"query q() {{ delete {kind.name} where {where} }}", catalog)
    if checked.query is None:
        first = checked.diagnostics[0]
        raise InvalidQuery(
            f"The condition {where!r} does not fit {kind.name}: {first.message}.",
            diagnostics=checked.diagnostics,
            help=(first.suggestion or "").capitalize() or None,
        )
    body = checked.query.body
    statement = body[0] if isinstance(body, tuple) and len(body) == 1 else None
    if not isinstance(statement, Delete):
        raise InvalidArgument(f"{where!r} is not one condition.")
    return Condition(kind, statement.where, now)


def push_tests(
    view: TableView, tests: Sequence[Expression], bindings: Bindings
) -> tuple[pc.Expression | None, list[Expression]]:
    """The tests that Lance evaluates exactly as we do, as one filter, and the remaining tests."""

    def column(value: Expression) -> tuple[pc.Expression, pa.DataType] | None:
        if isinstance(value, RowSystem):
            return pc.field(value.column), pa.string()
        if not isinstance(value, RowProperty) or not is_comparable(value.property.type):
            return None
        name = value.property.name
        return pc.field(view.column_of(name)), view.schema.field(name).type

    fixed = RowLeaves(bindings)
    conditions = [(test, pushed(test, column, fixed)) for test in tests]
    answered = [condition for _, condition in conditions if condition is not None]
    rest = [test for test, condition in conditions if condition is None]
    return reduce(and_, answered) if answered else None, rest
