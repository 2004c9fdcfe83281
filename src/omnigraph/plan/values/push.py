"""Owns which conditions Lance evaluates exactly as we do, and how they are written for Lance.
Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.gq.checked import And, Comparison, Expression, Membership, Not, NullTest, Or
from omnigraph.model.types import FLOATS, Base, ListType, PropertyType, ScalarType, VectorType
from omnigraph.plan.values.evaluate import Leaves, evaluate
from omnigraph.plan.values.rows import is_fixed

Field = Callable[[Expression], tuple[pc.Expression, pa.DataType] | None]
"""The table's column that an expression stands for, and its type. None if it is no column, or if
Lance compares its values differently."""

_UNLIKE = FLOATS | {Base.U32, Base.U64, Base.BLOB}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def is_comparable(kind: PropertyType) -> bool:
    """Whether Lance compares such values as we do. It orders floats differently, and accepts no
    filters over unsigned integers."""
    if isinstance(kind, ListType | VectorType):
        return False
    return not (isinstance(kind, ScalarType) and kind.base in _UNLIKE)


def pushed(test: Expression, field: Field, leaves: Leaves) -> pc.Expression | None:
    """The test for Lance, over the table's columns, or None if Lance would answer differently.
    `leaves` give the values that are the same for all rows."""
    match test:
        case And(operands=operands) | Or(operands=operands):
            parts = [pushed(operand, field, leaves) for operand in operands]
            if any(part is None for part in parts):
                return None
            return reduce(and_ if isinstance(test, And) else or_, parts)
        case Not(operand=operand):
            inner = pushed(operand, field, leaves)
            return None if inner is None else ~inner
        case NullTest(operand=operand, negated=negated):
            column = field(operand)
            if column is None:
                return None
            return column[0].is_valid() if negated else column[0].is_null()
        case Comparison(operator=operator, left=left, right=right):
            found = _compared(operator, left, right, field, leaves)
            if found is None:
                flipped = _FLIPPED.get(operator, operator)
                found = _compared(flipped, right, left, field, leaves)
            return found
        case Membership(item=item, list=held):
            return _listed(item, held, field, leaves)
        case _:
            return None


def _compared(
    operator: str, side: Expression, other: Expression, field: Field, leaves: Leaves
) -> pc.Expression | None:
    column = field(side)
    if column is None or not is_fixed(other):
        return None
    value = _fitting(evaluate(other, leaves), column[1])
    if value is None:
        return None
    match operator:
        case "=":
            return column[0] == value
        case "!=":
            return column[0] != value
        case "<":
            return column[0] < value
        case "<=":
            return column[0] <= value
        case ">":
            return column[0] > value
        case _:
            return column[0] >= value


def _listed(
    item: Expression, held: Expression, field: Field, leaves: Leaves
) -> pc.Expression | None:
    column = field(item)
    if column is None or not is_fixed(held):
        return None
    listed = evaluate(held, leaves)
    if isinstance(listed, pa.Array) or not listed.is_valid or not len(listed.values):
        return None
    values = [_fitting(value, column[1]) for value in listed.values]
    fitting = [value.as_py() for value in values if value is not None]
    return column[0].isin(pa.array(fitting, column[1])) if len(fitting) == len(values) else None


def _fitting(value: Any, kind: pa.DataType) -> pa.Scalar | None:
    """The value in the type of the column; None if that would change it."""
    held = value[0] if isinstance(value, pa.Array) else value
    if not held.is_valid or pa.types.is_floating(held.type):
        return None
    if held.type == kind:
        return held
    try:
        return held.cast(kind) if pa.types.is_integer(held.type) else None
    except pa.ArrowInvalid:
        return None
