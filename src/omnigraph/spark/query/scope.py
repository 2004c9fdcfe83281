"""Owns the values of leaf expressions in a DataFrame: which column, of which type, stands for a
property, an id or a pattern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import functions as sql

from omnigraph.lang.gq.checked import (
    AggregateValue,
    EntityValue,
    Exists,
    Expression,
    KeyValue,
    PathValue,
    PatternAggregate,
    PropertyValue,
    SameEntity,
    SystemValue,
    TypeTest,
)
from omnigraph.plan.values import arrow_kind
from omnigraph.spark.query.frame import BoundVariable, SparkFrame
from omnigraph.spark.query.projection import Held


@dataclass(frozen=True)
class Leaf:
    """A column of Spark, the Arrow type of its values, and its name if it has one."""

    column: Any
    type: pa.DataType
    name: str | None = None


def named(name: str, kind: pa.DataType) -> Leaf:
    return Leaf(sql.col(name), kind, name)


class FrameScope(Protocol):
    def leaf(self, value: Expression) -> Leaf | None:
        """None for an operator, and for a value that is the same for all rows."""

    @property
    def anchor(self) -> Any:
        """Any column, for values that depend on none."""


Attached = Mapping[tuple[int, str, bool], Leaf]
"""The values of patterns and paths, by `attached_key`."""


def attached_key(value: Exists | PatternAggregate | PathValue) -> tuple[int, str, bool]:
    """The `id()` of the match or traversal, which the query keeps alive, and what is asked of
    it."""
    if isinstance(value, PathValue):
        return id(value.traversal), value.part, value.every
    return id(value.match), "", False


@dataclass(frozen=True)
class RowScope:
    """The rows of a frame. `codes`: the numbers of types."""

    frame: SparkFrame
    codes: Mapping[str, int]
    attached: Attached = field(default_factory=dict)

    @property
    def anchor(self) -> Any:
        names = self.frame.columns
        return sql.col(names[0]) if names else sql.lit(1)

    def leaf(self, value: Expression) -> Leaf | None:
        match value:
            case PropertyValue(variable=key, properties=properties, type=kind):
                return self._held(key, Held(properties[0].name, arrow_kind(kind.kind)))
            case SystemValue(variable=key, column="id") | EntityValue(variable=key):
                return named(self.frame.bound[key].id, pa.string())
            case SystemValue(variable=key, column=column):
                return self._held(key, Held(column, pa.string()))
            case SameEntity():
                return Leaf(self._same(value), pa.bool_())
            case TypeTest():
                return Leaf(self._typed(value), pa.bool_())
            case Exists() | PatternAggregate() | PathValue():
                return self.attached[attached_key(value)]
            case _:
                return None

    def _held(self, key: int, held: Held) -> Leaf:
        return named(self.frame.bound[key].column(held), held.type)

    def _same(self, value: SameEntity) -> Any:
        left, right = self.frame.bound[value.left], self.frame.bound[value.right]
        same = (sql.col(left.id) == sql.col(right.id)) & (self._type(left) == self._type(right))
        return ~same if value.negated else same

    def _typed(self, value: TypeTest) -> Any:
        bound = self.frame.bound[value.variable]
        wanted = [self.codes[kind.table_key] for kind in value.types]
        there = sql.col(bound.id).isNotNull()
        return sql.when(there, self._type(bound).isin(wanted))

    def _type(self, bound: BoundVariable) -> Any:
        if bound.type is not None:
            return sql.col(bound.type)
        code = sql.lit(self.codes[bound.variable.kind.types[0].table_key])
        return sql.when(sql.col(bound.id).isNotNull(), code)


@dataclass(frozen=True)
class GroupScope:
    """The rows of groups: keys and aggregates."""

    keys: tuple[Leaf, ...]
    aggregates: tuple[Leaf, ...]
    anchor: Any

    def leaf(self, value: Expression) -> Leaf | None:
        match value:
            case KeyValue(index=index):
                return self.keys[index]
            case AggregateValue(index=index):
                return self.aggregates[index]
            case _:
                return None
