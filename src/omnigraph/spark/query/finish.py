"""Owns what follows the match: groups, `distinct`, order, offset and limit, as Spark does them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as sql

from omnigraph.engine.query.gather import amount
from omnigraph.engine.query.leaves import entity_type
from omnigraph.engine.query.shape import schema_of
from omnigraph.lang.gq.checked import (
    Aggregate,
    AggregateValue,
    Column,
    Constant,
    EntityValue,
    Expression,
    KeyValue,
    OutputValue,
)
from omnigraph.model.catalog import GraphType
from omnigraph.plan.query.logical import outputs as output_values
from omnigraph.plan.query.logical import pattern_variables
from omnigraph.spark.query.aggregates import Argument, fold
from omnigraph.spark.query.blocks import attach
from omnigraph.spark.query.context import Compiling
from omnigraph.spark.query.delivery import (
    CellOutput,
    ObjectOutput,
    Output,
    ValueOutput,
    deliver,
)
from omnigraph.spark.query.frame import COUNT, Bound, Frame
from omnigraph.spark.query.scope import GroupScope, Leaf, RowScope, named
from omnigraph.spark.query.steps import run_steps
from omnigraph.spark.query.values import leaf_of, split_leaves
from omnigraph.spark.query.wanted import shown_columns

_LARGEST = 2**31 - 1
_FEW = 100_000


@dataclass(frozen=True)
class Cell:
    """A value of a result row as columns: one of a type, or of an entity its id, its properties and
    the number of its type (None if it has but one)."""

    names: tuple[str, ...]
    type: pa.DataType
    kind: str | None = None
    kinds: tuple[GraphType, ...] = ()

    @property
    def columns(self) -> list[str]:
        return [*self.names, *([self.kind] if self.kind else [])]

    def output(self) -> Output:
        return ObjectOutput(self.names) if self.kinds else CellOutput(self.names[0])


def compile_query(c: Compiling) -> Any:
    """The whole query: a DataFrame with a row for each batch of the result."""
    query = c.plan.query
    frame = run_steps(c, c.plan.pattern, c.unit())
    frame, attached = attach(c, list(output_values(query)), frame, run_steps)
    scope = c.scope(frame, attached)
    if query.group is None and not query.distinct:
        return _listed(c, scope)
    data, cells = _grouped(c, scope) if query.group is not None else _distinct(c, scope)
    if query.order:
        keys = [
            (column, key.descending)
            for key in query.order
            if isinstance(key.value, OutputValue)
            for column in _order_columns(c, cells[key.value.index])[:1]
        ]
        ties = [(column, False) for cell in cells for column in _order_columns(c, cell)]
        data = _ordered(data, [*keys, *ties])
    return _delivered(c, data, [cell.output() for cell in cells])


# Rows of the match


def _listed(c: Compiling, scope: RowScope) -> Any:
    query = c.plan.query
    added: dict[str, Any] = {}
    keys = []
    for key in query.order:
        value = key.value
        if isinstance(value, OutputValue):
            value = query.columns[value.index].value
        leaf = _named(c, leaf_of(value, scope, c.given), added)
        keys.append((_comparable(leaf.column, leaf.type), key.descending))
    outputs = [_row_output(c, column, scope, added) for column in query.columns]
    data = scope.frame.data.withColumns(added) if added else scope.frame.data
    if keys:
        data = _ordered(data, [*keys, *((tie, False) for tie in _ties(c, scope.frame))])
    return _delivered(c, data, outputs)


def _row_output(c: Compiling, column: Column, scope: RowScope, columns: dict[str, Any]) -> Output:
    if isinstance(column.value, EntityValue):
        return ObjectOutput(_object_names(scope.frame.bound[column.value.variable]))
    value, leaves = split_leaves(column.value, scope)
    held = [_named(c, leaf, columns) for leaf in leaves]
    return ValueOutput(
        value, tuple(leaf.name or "" for leaf in held), tuple(leaf.type for leaf in held)
    )


def _named(c: Compiling, leaf: Leaf, columns: dict[str, Any]) -> Leaf:
    """The leaf under a name, if need be one of the columns that are to be added."""
    if leaf.name is not None:
        return leaf
    name = f"o{c.number()}"
    columns[name] = leaf.column
    return named(name, leaf.type)


def _object_names(bound: Bound) -> tuple[str, ...]:
    return (bound.id, *(bound.column(held) for held in shown_columns(bound.variable)))


def _ties(c: Compiling, frame: Frame) -> list[Any]:
    """The ids of named variables in the order of names; equal ids of two types by its name."""
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


# Groups and distinct rows


def _grouped(c: Compiling, scope: RowScope) -> tuple[Any, list[Cell]]:
    query, frame = c.plan.query, scope.frame
    group = query.group
    assert group is not None
    chosen: list[Any] = []
    keys: list[Cell] = []
    for key in group.keys:
        cell, columns = _cell(c, key, scope)
        keys.append(cell)
        chosen += columns
    folded = []
    for one in group.aggregates:
        argument, columns = _argument(c, one, scope)
        chosen += columns
        folded.append(
            fold(
                one.function,
                argument,
                counted=frame.counted,
                distinct=one.distinct,
                number=c.number,
            )
        )
    data = frame.data.select(*chosen, *([COUNT] if frame.counted else []))
    names = [name for cell in keys for name in cell.columns]
    parts = [part for one in folded for part in one.parts] or [sql.count(sql.lit(1)).alias("m")]
    data = data.groupBy(*names).agg(*parts)
    totals = [f"t{c.number()}" for _ in folded]
    values = [one.column.alias(name) for one, name in zip(folded, totals, strict=True)]
    data = data.select(*names, sql.lit(0).alias("anchor"), *values)
    inner = GroupScope(
        tuple(named(cell.names[0], cell.type) for cell in keys),
        tuple(named(name, one.type) for name, one in zip(totals, folded, strict=True)),
        sql.col("anchor"),
    )
    cells: list[Cell] = []
    for column in query.columns:
        match column.value:
            case KeyValue(index=index):
                cells.append(keys[index])
            case AggregateValue(index=index):
                cells.append(Cell((totals[index],), folded[index].type))
            case value:
                name = f"c{c.number()}"
                leaf = leaf_of(value, inner, c.given)
                data = data.withColumn(name, leaf.column)
                cells.append(Cell((name,), leaf.type))
    return data, cells


def _distinct(c: Compiling, scope: RowScope) -> tuple[Any, list[Cell]]:
    cells, chosen = [], []
    for column in c.plan.query.columns:
        cell, columns = _cell(c, column.value, scope)
        cells.append(cell)
        chosen += columns
    return scope.frame.data.select(*chosen).distinct(), cells


def _cell(c: Compiling, value: Expression, scope: RowScope) -> tuple[Cell, list[Any]]:
    """A value of the rows under names of its own, and the columns that have them."""
    name = f"c{c.number()}"
    if not isinstance(value, EntityValue):
        leaf = leaf_of(value, scope, c.given)
        return Cell((name,), leaf.type), [leaf.column.alias(name)]
    bound = scope.frame.bound[value.variable]
    held = _object_names(bound)
    names = (name, *(f"{name}_{place}" for place in range(1, len(held))))
    columns = [sql.col(n).alias(own) for n, own in zip(held, names, strict=True)]
    kind = f"{name}_t" if bound.type is not None else None
    if kind is not None:
        columns.append(sql.col(bound.type).alias(kind))
    return Cell(names, pa.string(), kind, tuple(bound.variable.kind.types)), columns


def _argument(c: Compiling, one: Aggregate, scope: RowScope) -> tuple[Argument, list[Any]]:
    value = one.argument
    name = f"a{c.number()}"
    plain = isinstance(value, Constant) and value.value is not None
    if plain and one.function == "count" and not one.distinct:
        return Argument(None), []
    if not isinstance(value, EntityValue):
        leaf = leaf_of(value, scope, c.given)
        return Argument(name, leaf.type), [leaf.column.alias(name)]
    bound = scope.frame.bound[value.variable]
    if one.function == "count":
        own = tuple(f"{name}_{place}" for place in range(len(bound.identity)))
        columns = [sql.col(n).alias(o) for n, o in zip(bound.identity, own, strict=True)]
        return Argument(own[0], pa.string(), own), columns
    held = [*_object_names(bound), *([bound.type] if bound.type else [])]
    fields = [sql.col(n).alias(f"f{place}") for place, n in enumerate(held)]
    entity = sql.when(sql.col(bound.id).isNotNull(), sql.struct(*fields))
    return Argument(name, entity_type(bound.variable.kind)), [entity.alias(name)]


def _order_columns(c: Compiling, cell: Cell) -> list[Any]:
    if cell.kinds:
        return _identity_columns(c, cell.names[0], cell.kind, cell.kinds)
    return [_comparable(sql.col(cell.names[0]), cell.type)]


# Order and cut


def _comparable(column: Any, kind: pa.DataType) -> Any:
    """-0 becomes 0, so that ties are ties."""
    return column + sql.lit(0.0).cast("float") if pa.types.is_floating(kind) else column


def _ordered(data: Any, keys: Sequence[tuple[Any, bool]]) -> Any:
    """Nulls first ascending and last descending, as Spark has them."""
    return data.orderBy(*[column.desc() if down else column.asc() for column, down in keys])


def _delivered(c: Compiling, data: Any, outputs: Sequence[Output]) -> Any:
    query = c.plan.query
    parameters = c.given.bindings.parameters
    offset = amount(query.offset, parameters, "offset") or 0
    limit = amount(query.limit, parameters, "limit")
    while offset > 0:
        data = data.offset(min(offset, _LARGEST))
        offset -= _LARGEST
    if limit is not None and limit <= _LARGEST:
        data = data.limit(limit)
    made = deliver(data, outputs, schema_of(c.plan), c.given)
    large = sum(c.plan.sizes.values()) > _FEW
    if large and not query.order and limit is None:
        # The rows are computed side by side, whatever the speed at which they are fetched.
        made = made.hint("rebalance")
    return made
