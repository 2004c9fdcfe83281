"""Owns expressions on Spark: as Spark columns where Spark gives exactly our result, otherwise by
the evaluator that all engines share, in an Arrow function that executors run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as sql

from omnigraph.errors import MemoryLimit
from omnigraph.lang.gq.checked import (
    And,
    Comparison,
    Constant,
    Expression,
    FunctionCall,
    KeyValue,
    Not,
    NullTest,
    Or,
    ParameterValue,
)
from omnigraph.lang.gq.walk import rewrite
from omnigraph.plan.values import arrow_kind, constant, evaluate_array
from omnigraph.plan.values.kinds import Value
from omnigraph.plan.values.rows import Bindings, RowLeaves
from omnigraph.spark.query.arrow_types import carry, restore, spark_type
from omnigraph.spark.query.failures import passing_errors
from omnigraph.spark.query.scope import FrameScope, Leaf


@dataclass(frozen=True)
class LoadSource:
    """Values that are the same for all rows of a query, wherever the rows are."""

    bindings: Bindings
    memory_limit: int | None = None

    def fits(self, *sizes: int) -> None:
        """Refuses what is too large for a task to hold at once."""
        if self.memory_limit is not None and sum(sizes) > self.memory_limit:
            raise MemoryLimit(
                f"A task of the query needs more than its memory_limit of {self.memory_limit:,} "
                "bytes.",
                limit="memory_limit",
            )


def leaf_of(value: Expression, scope: FrameScope, given: LoadSource) -> Leaf:
    """The value as a column."""
    known = scope.leaf(value)
    if known is not None:
        return known
    kind = arrow_kind(value.type.kind)
    column = native(value, scope, given)
    return Leaf(_evaluated(value, kind, scope, given) if column is None else column, kind)


def condition_of(value: Expression, scope: FrameScope, given: LoadSource) -> Any:
    """A condition as a column, true where it holds. Null counts as false."""
    leaf = leaf_of(value, scope, given)
    return leaf.column.cast("boolean") if pa.types.is_null(leaf.type) else leaf.column


# By the evaluator


def split_leaves(value: Expression, scope: FrameScope) -> tuple[Expression, list[Leaf]]:
    """The expression over numbered values, and the columns that hold them."""
    leaves: list[Leaf] = []
    known: list[Expression] = []

    def change(part: Expression) -> Expression | None:
        leaf = scope.leaf(part)
        if leaf is None:
            return None
        if part not in known:
            known.append(part)
            leaves.append(leaf)
        return KeyValue(known.index(part), part.type)

    return rewrite(value, change), leaves


class ArgumentLeaves:
    """Values that were given by number, and those that are the same for all rows."""

    def __init__(self, arrays: Sequence[pa.Array], rows: int, given: LoadSource) -> None:
        self._arrays = arrays
        self._given = given
        self.rows = rows

    def leaf(self, expression: Expression) -> Value:
        match expression:
            case KeyValue(index=index):
                return self._arrays[index]
            case ParameterValue() | FunctionCall():
                return RowLeaves(self._given.bindings).leaf(expression)
            case _:
                raise TypeError(f"{type(expression).__name__} has no value on an executor")


def _evaluated(value: Expression, kind: pa.DataType, scope: FrameScope, given: LoadSource) -> Any:
    numbered, leaves = split_leaves(value, scope)
    function = _function(numbered, [leaf.type for leaf in leaves], kind, given)
    return function(*[leaf.column for leaf in leaves] or [scope.anchor])


def _function(
    value: Expression, kinds: Sequence[pa.DataType], kind: pa.DataType, given: LoadSource
) -> Any:
    def evaluate(*columns: pa.Array) -> pa.Array:
        with passing_errors():
            arrays = [restore(held, k) for held, k in zip(columns, kinds, strict=False)]
            found = evaluate_array(value, ArgumentLeaves(arrays, len(columns[0]), given))
            given.fits(found.nbytes, *(held.nbytes for held in columns))
            return carry(found, kind)

    return sql.arrow_udf(evaluate, spark_type(kind))


# By Spark


def native(value: Expression, scope: FrameScope, given: LoadSource) -> Any:
    """The condition as Spark's own, or None if that might mean something else."""
    match value:
        case And(operands=operands) | Or(operands=operands):
            parts = [_truth(operand, scope, given) for operand in operands]
            if any(part is None for part in parts):
                return None
            return reduce(and_ if isinstance(value, And) else or_, parts)
        case Not(operand=operand):
            inner = _truth(operand, scope, given)
            return None if inner is None else ~inner
        case NullTest(operand=operand, negated=negated):
            leaf = scope.leaf(operand)
            if leaf is None:
                return None
            return leaf.column.isNotNull() if negated else leaf.column.isNull()
        case Comparison(operator=operator, left=left, right=right):
            sides = [_plain(side, scope, given) for side in (left, right)]
            one, other = sides
            if one is None or other is None or one.type != other.type:
                return None
            return _compared(operator, one.column, other.column)
        case _:
            return None


def _truth(value: Expression, scope: FrameScope, given: LoadSource) -> Any:
    leaf = scope.leaf(value)
    if leaf is not None:
        return leaf.column if pa.types.is_boolean(leaf.type) else None
    return native(value, scope, given)


def _plain(value: Expression, scope: FrameScope, given: LoadSource) -> Leaf | None:
    """A column or a single value that Spark compares as we do: no floats, which have NaN and -0,
    and no large unsigned integers. Integers are compared as `bigint`."""
    leaf = scope.leaf(value)
    if leaf is None:
        leaf = _literal(value, given)
    if leaf is None:
        return None
    kind = leaf.type
    if pa.types.is_integer(kind):
        return None if kind == pa.uint64() else Leaf(leaf.column.cast("bigint"), pa.int64())
    exact = (pa.types.is_string, pa.types.is_boolean, pa.types.is_date, pa.types.is_timestamp)
    return Leaf(leaf.column, kind) if any(check(kind) for check in exact) else None


def _literal(value: Expression, given: LoadSource) -> Leaf | None:
    match value:
        case Constant(value=held, type=kind):
            scalar = constant(held, kind.kind)
        case ParameterValue(name=name, type=kind):
            scalar = constant(given.bindings.parameters[name], kind.kind)
        case _:
            return None
    if not scalar.is_valid or pa.types.is_nested(scalar.type):
        return None
    travelled = carry(pa.array([scalar.as_py()], scalar.type), scalar.type)[0].as_py()
    return Leaf(sql.lit(travelled), scalar.type)


def _compared(operator: str, left: Any, right: Any) -> Any:
    match operator:
        case "=":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case _:
            return left >= right
