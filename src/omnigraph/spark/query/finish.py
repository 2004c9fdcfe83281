"""Owns the steps after the match: groups, `distinct`, order, offset and limit, in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as sql

from omnigraph.engine.query.gather import amount
from omnigraph.engine.query.shape import schema_of
from omnigraph.lang.gq.checked import (
    Column,
    EntityValue,
    Expression,
    OutputValue,
)
from omnigraph.model.catalog import GraphType
from omnigraph.plan.query.logical import Query, pattern_variables
from omnigraph.plan.query.logical import outputs as output_values
from omnigraph.spark.query.blocks import attach
from omnigraph.spark.query.context import Compiling
from omnigraph.spark.query.delivery import (
    ObjectOutput,
    Output,
    ValueOutput,
    deliver,
)
from omnigraph.spark.query.frame import SparkFrame
from omnigraph.spark.query.groups import Cell, distinct_rows, grouped_rows, object_names
from omnigraph.spark.query.scope import Leaf, RowScope, named
from omnigraph.spark.query.steps import run_steps
from omnigraph.spark.query.values import leaf_of, split_leaves

_LARGEST = 2**31 - 1
_FEW = 100_000


def compile_query(c: Compiling) -> Any:
    """The whole query: a DataFrame with a row for each batch of the result."""
    query = c.plan.query
    frame = run_steps(c, c.plan.pattern, c.unit())
    frame, attached = attach(c, list(output_values(query)), frame, run_steps)
    scope = c.scope(frame, attached)
    if query.group is None and not query.distinct:
        return _listed(c, scope)
    data, cells = grouped_rows(c, scope) if query.group is not None else distinct_rows(c, scope)
    if query.order:
        keys = [
            (column, key.descending)
            for key in query.order
            if isinstance(key.value, OutputValue)
            for column in _order_columns(c, cells[key.value.index])[:1]
        ]
        ties = [(column, False) for cell in cells for column in _order_columns(c, cell)]
        data = _ordered(data, [*keys, *ties])
    return _delivered(c, _cut(c, data), [cell.output() for cell in cells])


# Rows of the match


def _listed(c: Compiling, scope: RowScope) -> Any:
    query = c.plan.query
    added: dict[str, Any] = {}
    outputs = [_row_output(c, column, scope, added) for column in query.columns]
    return _delivered(c, _cut(c, _sorted_rows(c, scope, added)), outputs)


def chosen_rows(c: Compiling, frame: SparkFrame) -> Any:
    """The rows of the match that the result needs. For groups and distinct rows these are all rows,
    otherwise those that order, offset and limit leave."""
    query = c.plan.query
    if query.group is not None or query.distinct:
        return frame.data
    frame, attached = attach(c, _order_values(query), frame, run_steps)
    return _cut(c, _sorted_rows(c, c.scope(frame, attached), {}))


def _order_values(query: Query) -> list[Expression]:
    return [
        query.columns[key.value.index].value if isinstance(key.value, OutputValue) else key.value
        for key in query.order
    ]


def _sorted_rows(c: Compiling, scope: RowScope, added: dict[str, Any]) -> Any:
    """With the columns that must be added."""
    query = c.plan.query
    keys = []
    for key, value in zip(query.order, _order_values(query), strict=True):
        leaf = _named(c, leaf_of(value, scope, c.given), added)
        keys.append((_comparable(leaf.column, leaf.type), key.descending))
    data = scope.frame.data.withColumns(added) if added else scope.frame.data
    if not keys:
        return data
    return _ordered(data, [*keys, *((tie, False) for tie in _ties(c, scope.frame))])


def _row_output(c: Compiling, column: Column, scope: RowScope, columns: dict[str, Any]) -> Output:
    if isinstance(column.value, EntityValue):
        return ObjectOutput(object_names(scope.frame.bound[column.value.variable]))
    value, leaves = split_leaves(column.value, scope)
    held = [_named(c, leaf, columns) for leaf in leaves]
    return ValueOutput(
        value, tuple(leaf.name or "" for leaf in held), tuple(leaf.type for leaf in held)
    )


def _named(c: Compiling, leaf: Leaf, columns: dict[str, Any]) -> Leaf:
    """The leaf under a name, if necessary as one of the columns that must be added."""
    if leaf.name is not None:
        return leaf
    name = f"o{c.number()}"
    columns[name] = leaf.column
    return named(name, leaf.type)


def _ties(c: Compiling, frame: SparkFrame) -> list[Any]:
    """The ids of named variables in the order of their names. Equal ids of two types are ordered by
    the names of the types."""
    named = [v for v in pattern_variables(c.plan.query.pattern) if v.name is not None]
    found = []
    for variable in sorted(named, key=lambda v: v.name or ""):
        bound = frame.bound[variable.id]
        found += _identity_columns(c, bound.id, bound.type, variable.kind.types)
    return found


def _identity_columns(
    c: Compiling, id_: str, type_: str | None, kinds: Sequence[GraphType]
) -> list[Any]:
    if type_ is None:
        return [sql.col(id_)]
    ordered = sorted(kinds, key=lambda kind: kind.name)
    place = sql.lit(len(ordered))
    for number, kind in enumerate(ordered):
        place = sql.when(sql.col(type_) == c.codes[kind.table_key], number).otherwise(place)
    return [sql.col(id_), place]


def _order_columns(c: Compiling, cell: Cell) -> list[Any]:
    if cell.kinds:
        return _identity_columns(c, cell.names[0], cell.kind, cell.kinds)
    return [_comparable(sql.col(cell.names[0]), cell.type)]


# Order and cut


def _comparable(column: Any, kind: pa.DataType) -> Any:
    """-0 becomes 0, so that ties are ties."""
    return column + sql.lit(0.0).cast("float") if pa.types.is_floating(kind) else column


def _ordered(data: Any, keys: Sequence[tuple[Any, bool]]) -> Any:
    """Nulls come first in ascending and last in descending order, as in Spark."""
    return data.orderBy(*[column.desc() if down else column.asc() for column, down in keys])


def _cut(c: Compiling, data: Any) -> Any:
    offset, limit = _amounts(c)
    while offset > 0:
        data = data.offset(min(offset, _LARGEST))
        offset -= _LARGEST
    return data if limit is None else data.limit(min(limit, _LARGEST))


def _amounts(c: Compiling) -> tuple[int, int | None]:
    query, parameters = c.plan.query, c.given.bindings.parameters
    offset = amount(query.offset, parameters, "offset") or 0
    return offset, amount(query.limit, parameters, "limit")


def _delivered(c: Compiling, data: Any, outputs: Sequence[Output]) -> Any:
    made = deliver(data, outputs, schema_of(c.plan), c.given)
    large = sum(c.plan.sizes.values()) > _FEW
    if large and not c.plan.query.order and _amounts(c)[1] is None:
        # The rows are computed side by side, whatever the speed at which they are fetched.
        made = made.hint("rebalance")
    return made
