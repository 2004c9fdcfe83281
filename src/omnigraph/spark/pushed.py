"""Owns what becomes of conditions that Spark pushes to a scan: tests of the query language.

They come as JSON from the extension (`jvm/Pushed.scala`), which sends only conditions that mean the
same in both languages: null is neither true nor false, NaN equals itself and is above all numbers.
Spark tests its conditions again, so a scan may keep a row too many, and never one too few.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, Final, cast

from omnigraph.lang.gq.checked import (
    And,
    Comparator,
    Comparison,
    Constant,
    Expression,
    Membership,
    Not,
    NullKind,
    NullTest,
    Or,
    RowProperty,
    RowSystem,
    SystemColumn,
    TextTest,
    Type,
)
from omnigraph.model.catalog import GraphType, system_columns
from omnigraph.model.temporal import EPOCH
from omnigraph.model.types import (
    FLOATS,
    INTEGER_RANGES,
    Base,
    ListType,
    PropertyType,
    ScalarType,
)

_BOOL: Final = Type(ScalarType(Base.BOOL), nullable=True)
_COMPARATORS: Final[dict[str, Comparator]] = {
    "=": "=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_FIRST: Final = date(1970, 1, 1)


def pushed_tests(kind: GraphType, told: Sequence[Any]) -> tuple[Expression, ...]:
    """The tests over the rows of a type, as trees."""
    return tuple(_test(kind, one) for one in told)


def _test(kind: GraphType, told: Any) -> Expression:
    ((name, parts),) = told.items()
    match name:
        case "and" | "or":
            operands = tuple(_test(kind, part) for part in parts)
            return (And if name == "and" else Or)(operands, _BOOL)
        case "not":
            return Not(_test(kind, parts), _BOOL)
        case "null" | "given":
            return NullTest(_column(kind, parts), name == "given", _BOOL)
        case "in":
            return _membership(_column(kind, parts[0]), parts[1])
        case "starts_with" | "ends_with" | "contains":
            column = _column(kind, parts[0])
            return TextTest(name, column, _constant(parts[1], Base.STRING), _BOOL)
        case "<=>":
            return _same(kind, *parts)
        case _:
            left, right = _sides(kind, *parts)
            return Comparison(_COMPARATORS[name], left, right, _BOOL)


def _same(kind: GraphType, one: Any, other: Any) -> Expression:
    """`=` for which null equals null, and that is never null."""
    left, right = _sides(kind, one, other)
    equal = Comparison("=", left, right, _BOOL)
    both = (NullTest(left, True, _BOOL), NullTest(right, True, _BOOL))
    neither = (NullTest(left, False, _BOOL), NullTest(right, False, _BOOL))
    return Or((And((*both, equal), _BOOL), And(neither, _BOOL)), _BOOL)


def _sides(kind: GraphType, one: Any, other: Any) -> tuple[Expression, Expression]:
    base = next(_base(_column(kind, side)) for side in (one, other) if "column" in side)

    def side(told: Any) -> Expression:
        return _column(kind, told) if "column" in told else _constant(told["value"], base)

    return side(one), side(other)


def _column(kind: GraphType, told: Any) -> RowProperty | RowSystem:
    name = told["column"]
    if name in system_columns(kind):
        return RowSystem(cast("SystemColumn", name), Type(ScalarType(Base.STRING)))
    found = next(one for one in kind.properties if one.name == name)
    return RowProperty(found, Type(found.type, nullable=True))


def _base(column: RowProperty | RowSystem) -> Base:
    """That of an enum is a text. Nothing else of lists and vectors is asked than whether they are
    null."""
    held = column.type.kind
    return held.base if isinstance(held, ScalarType) else Base.STRING


def _membership(column: RowProperty | RowSystem, told: Sequence[Any]) -> Expression:
    """An integer beyond the type of the column is equal to none of its values."""
    base = _base(column)
    values = [_value(one, base) for one in told]
    if base in INTEGER_RANGES:
        least, most = INTEGER_RANGES[base]
        values = [one for one in values if one is None or least <= one <= most]
    held = Constant(tuple(values), Type(ListType(base)))
    return Membership(column, held, _BOOL)


def _constant(told: Any, base: Base) -> Constant:
    value = _value(told, base)
    if value is None:
        return Constant(None, Type(NullKind(), nullable=True))
    held: PropertyType = ScalarType(base)
    if base in INTEGER_RANGES:
        held = ScalarType(Base.U64 if value > INTEGER_RANGES[Base.I64][1] else Base.I64)
    elif base in FLOATS:
        held = ScalarType(Base.F64)
    return Constant(value, Type(held))


def _value(told: str | None, base: Base) -> Any:
    if told is None:
        return None
    match base:
        case Base.BOOL:
            return told == "true"
        case Base.DATE:
            return _FIRST + timedelta(days=int(told))
        case Base.DATETIME:
            return EPOCH + timedelta(milliseconds=int(told))
        case Base.F32 | Base.F64:
            return float(told)  # as Java writes it: NaN, Infinity, 1.0E10
        case Base.I32 | Base.I64 | Base.U32 | Base.U64:
            return int(told)
        case _:
            return told
