"""Owns aggregates on Spark: integers add up exactly, NaN is one value above all numbers, nulls are
left out, and a row counts as often as it occurs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import functions as sql

from omnigraph.errors import ValueOutOfRange
from omnigraph.spark.query.failures import error_word
from omnigraph.spark.query.frame import COUNT, checked

_WIDE = "decimal(38,0)"
_TOO_LARGE = ValueOutOfRange(
    "A sum does not fit 64 bits.", help="Add floats instead: sum($x.p * 1.0)."
)


@dataclass(frozen=True)
class AggregateArgument:
    """The aggregated values: a column by its name, and its Arrow type. For entities, `identity`
    names the columns that identify them. Without a name every row counts."""

    name: str | None
    type: pa.DataType = field(default_factory=pa.int64)
    identity: tuple[str, ...] = ()


@dataclass(frozen=True)
class Folded:
    """`parts` are what Spark aggregates, under their own names. `column` computes the value from
    them, in the given type."""

    parts: tuple[Any, ...]
    column: Any
    type: pa.DataType


def fold(
    function: str,
    argument: AggregateArgument,
    *,
    counted: bool,
    distinct: bool,
    number: Callable[[], int],
) -> Folded:
    """An aggregate. `number` returns one that no name uses yet."""
    names = f"g{number()}", f"g{number()}"
    return FOLDS[function](argument, names, counted=counted, distinct=distinct)


def _count(
    argument: AggregateArgument, names: Sequence[str], *, counted: bool, distinct: bool
) -> Folded:
    total, some = names
    if distinct:
        part = sql.countDistinct(*(argument.identity or [argument.name]))
        return Folded((part.alias(total),), sql.col(total), pa.int64())
    held = sql.lit(1) if argument.name is None else sql.col(argument.name)
    if not counted:
        return Folded((sql.count(held).alias(total),), sql.col(total), pa.int64())
    often = sql.when(held.isNotNull(), sql.col(COUNT))
    parts = (sql.try_sum(often).alias(total), sql.count(often).alias(some))
    column = sql.when(sql.col(some) == 0, sql.lit(0)).otherwise(checked(sql.col(total)))
    return Folded(parts, column.cast("bigint"), pa.int64())


def _sum(
    function: str,
    argument: AggregateArgument,
    names: Sequence[str],
    *,
    counted: bool,
    distinct: bool,
) -> Folded:
    total, size = names
    whole = pa.types.is_integer(argument.type)
    value = sql.col(argument.name).cast(_WIDE if whole else "double")
    if distinct:
        parts = (sql.sum_distinct(value).alias(total), sql.countDistinct(value).alias(size))
    else:
        often = sql.col(COUNT) if counted else sql.lit(1)
        weighted = value
        if counted:
            weight = often.cast(_WIDE if whole else "double")
            weighted = sql.try_multiply(value, weight) if whole else value * weight
        added = sql.try_sum(weighted) if whole else sql.sum(weighted)
        there = sql.when(sql.col(argument.name).isNotNull(), often.cast("bigint"))
        parts = (added.alias(total), sql.sum(there).alias(size))
    some = sql.coalesce(sql.col(size), sql.lit(0)) > 0
    if function == "avg":
        mean = sql.col(total).cast("double") / sql.col(size).cast("double")
        return Folded(parts, sql.when(some, mean), pa.float64())
    if not whole:
        return Folded(parts, sql.when(some, sql.col(total)), pa.float64())
    fits = sql.col(total).between(-(2**63), 2**63 - 1)
    held = sql.when(fits, sql.col(total).cast("bigint"))
    held = sql.coalesce(held, sql.raise_error(error_word(_TOO_LARGE)).cast("bigint"))
    return Folded(parts, sql.when(some, held), pa.int64())


def _extreme(function: str, argument: AggregateArgument, names: Sequence[str], **_: bool) -> Folded:
    """Any of several equal values. Like us, Spark has NaN above all numbers and compares texts by
    code points."""
    part = (sql.min if function == "min" else sql.max)(argument.name).alias(names[0])
    return Folded((part,), sql.col(names[0]), argument.type)


def _collect(
    argument: AggregateArgument, names: Sequence[str], *, counted: bool, distinct: bool
) -> Folded:
    name = names[0]
    kind = pa.list_(pa.field("item", argument.type, nullable=False))
    if distinct:  # grouping by the value, as `collect_set` does not, makes one of -0 and 0
        part = sql.expr(f"collect_list(distinct `{argument.name}`)").alias(name)
        return Folded((part,), sql.col(name), kind)
    held = sql.col(argument.name)
    if not counted:
        return Folded((sql.collect_list(held).alias(name),), sql.col(name), kind)
    repeated = sql.when(held.isNotNull(), sql.array_repeat(held, sql.col(COUNT).cast("int")))
    return Folded((sql.collect_list(repeated).alias(name),), sql.flatten(sql.col(name)), kind)


FOLDS: Final[dict[str, Callable[..., Folded]]] = {
    "count": _count,
    "sum": partial(_sum, "sum"),
    "avg": partial(_sum, "avg"),
    "min": partial(_extreme, "min"),
    "max": partial(_extreme, "max"),
    "collect": _collect,
}
