"""Owns groups and distinct rows: cells that hold the values of a result row as Spark columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as sql

from omnigraph.engine.query.leaves import entity_type
from omnigraph.lang.gq.checked import (
    Aggregate,
    AggregateValue,
    Constant,
    EntityValue,
    Expression,
    KeyValue,
)
from omnigraph.model.catalog import GraphType
from omnigraph.spark.query.aggregates import AggregateArgument, fold
from omnigraph.spark.query.context import Compiling
from omnigraph.spark.query.delivery import CellOutput, ObjectOutput, Output
from omnigraph.spark.query.frame import COUNT, BoundVariable
from omnigraph.spark.query.projection import shown_columns
from omnigraph.spark.query.scope import GroupScope, RowScope, named
from omnigraph.spark.query.values import leaf_of


@dataclass(frozen=True)
class Cell:
    """A value of a result row as columns: one of a type or, for an entity, its id, its properties
    and the number of its type (None if it has only one)."""

    names: tuple[str, ...]
    type: pa.DataType
    kind: str | None = None
    kinds: tuple[GraphType, ...] = ()

    @property
    def columns(self) -> list[str]:
        return [*self.names, *([self.kind] if self.kind else [])]

    def output(self) -> Output:
        return ObjectOutput(self.names) if self.kinds else CellOutput(self.names[0])


def grouped_rows(c: Compiling, scope: RowScope) -> tuple[Any, list[Cell]]:
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


def distinct_rows(c: Compiling, scope: RowScope) -> tuple[Any, list[Cell]]:
    cells, chosen = [], []
    for column in c.plan.query.columns:
        cell, columns = _cell(c, column.value, scope)
        cells.append(cell)
        chosen += columns
    return scope.frame.data.select(*chosen).distinct(), cells


def _cell(c: Compiling, value: Expression, scope: RowScope) -> tuple[Cell, list[Any]]:
    """A value of the rows under new names, and the columns with these names."""
    name = f"c{c.number()}"
    if not isinstance(value, EntityValue):
        leaf = leaf_of(value, scope, c.given)
        return Cell((name,), leaf.type), [leaf.column.alias(name)]
    bound = scope.frame.bound[value.variable]
    held = object_names(bound)
    names = (name, *(f"{name}_{place}" for place in range(1, len(held))))
    columns = [sql.col(n).alias(own) for n, own in zip(held, names, strict=True)]
    kind = f"{name}_t" if bound.type is not None else None
    if kind is not None:
        columns.append(sql.col(bound.type).alias(kind))
    return Cell(names, pa.string(), kind, tuple(bound.variable.kind.types)), columns


def _argument(c: Compiling, one: Aggregate, scope: RowScope) -> tuple[AggregateArgument, list[Any]]:
    value = one.argument
    name = f"a{c.number()}"
    plain = isinstance(value, Constant) and value.value is not None
    if plain and one.function == "count" and not one.distinct:
        return AggregateArgument(None), []
    if not isinstance(value, EntityValue):
        leaf = leaf_of(value, scope, c.given)
        return AggregateArgument(name, leaf.type), [leaf.column.alias(name)]
    bound = scope.frame.bound[value.variable]
    if one.function == "count":
        own = tuple(f"{name}_{place}" for place in range(len(bound.identity)))
        columns = [sql.col(n).alias(o) for n, o in zip(bound.identity, own, strict=True)]
        return AggregateArgument(own[0], pa.string(), own), columns
    held = [*object_names(bound), *([bound.type] if bound.type else [])]
    fields = [sql.col(n).alias(f"f{place}") for place, n in enumerate(held)]
    entity = sql.when(sql.col(bound.id).isNotNull(), sql.struct(*fields))
    return AggregateArgument(name, entity_type(bound.variable.kind)), [entity.alias(name)]


def object_names(bound: BoundVariable) -> tuple[str, ...]:
    return (bound.id, *(bound.column(held) for held in shown_columns(bound.variable)))
