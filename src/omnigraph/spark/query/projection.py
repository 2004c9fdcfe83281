"""Owns what each variable carries through a query: the columns that a later step needs.

Columns that only its own tests need are not among them, because the tests run where its rows are
read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.engine.query.leaves import entity_type
from omnigraph.lang.gq.checked import (
    EntityValue,
    Expression,
    PropertyValue,
    SystemValue,
    Variable,
)
from omnigraph.lang.gq.walk import walk
from omnigraph.plan.query import Plan
from omnigraph.plan.query.expressions import all_values
from omnigraph.plan.values import arrow_kind


@dataclass(frozen=True)
class Held:
    """A column of a variable, with one type for all types of the variable. `shown` means in the
    form of the object that `$x` stands for, where a type without the property has null."""

    name: str
    type: pa.DataType
    shown: bool = False


Wants = dict[int, tuple[Held, ...]]


def wants_of(plan: Plan) -> Wants:
    found: dict[int, list[Held]] = {}
    for value in all_values(plan):
        for part in walk(value):
            held = _held(part)
            if held is not None:
                found.setdefault(held[0], []).append(held[1])
    for value in _objects(plan):
        variable = plan.variables[value.variable]
        found.setdefault(variable.id, []).extend(shown_columns(variable))
    return {key: tuple(dict.fromkeys(held)) for key, held in found.items()}


def shown_columns(variable: Variable) -> Iterator[Held]:
    """The properties of the object, without its id, in order."""
    target = entity_type(variable.kind)
    for place in range(1, target.num_fields):
        field = target.field(place)
        yield Held(field.name, field.type, shown=True)


def _held(part: Expression) -> tuple[int, Held] | None:
    match part:
        case PropertyValue(variable=key, properties=properties, type=kind):
            return key, Held(properties[0].name, arrow_kind(kind.kind))
        case SystemValue(variable=key, column="src" | "dst" as column):
            return key, Held(column, pa.string())
        case _:
            return None


def _objects(plan: Plan) -> Iterator[EntityValue]:
    """Where an entity is needed with all its properties, and not only identified."""
    group = plan.query.group
    if group is not None:
        values = [*group.keys, *(a.argument for a in group.aggregates if a.function == "collect")]
    else:
        values = [column.value for column in plan.query.columns]
    for value in values:
        if isinstance(value, EntityValue):
            yield value
