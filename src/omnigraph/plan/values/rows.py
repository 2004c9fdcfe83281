"""Owns the values of expressions on the rows of a mutation: properties and system columns, the
parameters of the call, and the time at which it was made. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.lang.gq.checked import (
    Expression,
    FunctionCall,
    ParameterValue,
    RowProperty,
    RowSystem,
)
from omnigraph.lang.gq.walk import used_variables, walk
from omnigraph.plan.values.evaluate import evaluate
from omnigraph.plan.values.kinds import Value, constant
from omnigraph.plan.values.times import INSTANT


@dataclass(frozen=True)
class Bindings:
    """The values that a call brings: its parameters, and `now()` in microseconds, which is the same
    for every row and every statement, even when they run again."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    now: int = 0


class RowLeaves:
    """Rows under the names of properties. Without a table there is one row without properties, on
    which only expressions that are the same for all rows have a value."""

    def __init__(self, bindings: Bindings, table: pa.Table | None = None) -> None:
        self._bindings = bindings
        self._table = table
        self._known: dict[str, pa.Array] = {}

    @property
    def rows(self) -> int:
        return 1 if self._table is None else int(self._table.num_rows)

    def leaf(self, expression: Expression) -> Value:
        match expression:
            case RowProperty(property=prop):
                return self._column(prop.name)
            case RowSystem(column=column):
                return self._column(column)
            case ParameterValue(name=name, type=type_):
                return constant(self._bindings.parameters[name], type_.kind)
            case FunctionCall():
                return pa.scalar(self._bindings.now // 1000, pa.int64()).cast(INSTANT)
            case _:
                raise TypeError(f"{type(expression).__name__} has no value here")

    def _column(self, name: str) -> pa.Array:
        found = self._known.get(name)
        if found is None:
            if self._table is None:
                raise TypeError(f"{name} is asked for where there is no row")
            found = self._known[name] = self._table[name].combine_chunks()
        return found


def fixed_value(expression: Expression, bindings: Bindings) -> pa.Scalar:
    """The value of an expression that is the same for all rows."""
    value = evaluate(expression, RowLeaves(bindings))
    return value[0] if isinstance(value, pa.Array | pa.ChunkedArray) else value


def is_fixed(expression: Expression) -> bool:
    """Whether the value is the same for all rows."""
    if any(isinstance(part, RowProperty | RowSystem) for part in walk(expression)):
        return False
    return not used_variables(expression)


def used_columns(expression: Expression) -> list[str]:
    """The columns of the row that the value depends on, each once."""
    names = [
        part.property.name if isinstance(part, RowProperty) else part.column
        for part in walk(expression)
        if isinstance(part, RowProperty | RowSystem)
    ]
    return list(dict.fromkeys(names))
