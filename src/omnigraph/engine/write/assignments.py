"""Owns the values that a mutation assigns: Python values for an insert, columns for an update. Each
is checked against the type of its property, and an error names the entity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from omnigraph.engine.write.selection import AT_ONCE, blame_row
from omnigraph.errors import InvalidData, ValueOutOfRange
from omnigraph.lang.gq.checked import (
    Constant,
    Expression,
    InsertEdge,
    InsertNode,
    ParameterValue,
    SetProperty,
)
from omnigraph.model.catalog import GraphType
from omnigraph.model.violation import Violation, show_text, show_value
from omnigraph.plan.rows.cast import cast_column
from omnigraph.plan.rows.stale import clear_stale
from omnigraph.plan.rows.wording import misfit_sentence
from omnigraph.plan.validate import check_rows
from omnigraph.plan.values import evaluate_array
from omnigraph.plan.values.rows import Bindings, RowLeaves, fixed_value, is_fixed

_DESCRIBED = 100


def inserted_row(statement: InsertNode | InsertEdge, bindings: Bindings) -> dict[str, Any]:
    """The values of an insert, by property."""
    row = {one.property.name: python_value(one.value, bindings) for one in statement.values}
    if isinstance(statement, InsertEdge):
        row["from"] = python_value(statement.source, bindings)
        row["to"] = python_value(statement.target, bindings)
    return row


def python_value(expression: Expression, bindings: Bindings) -> Any:
    """Most values are literals or parameters and need no Arrow."""
    match expression:
        case Constant(value=held):
            value: Any = held
        case ParameterValue(name=name):
            value = bindings.parameters[name]
        case _:
            return fixed_value(expression, bindings).as_py()
    return list(value) if isinstance(value, tuple) else value


def always_null(values: Sequence[SetProperty], bindings: Bindings) -> list[str]:
    """The properties that are set to null whichever rows there are."""
    return [
        one.property.name
        for one in values
        if is_fixed(one.value) and python_value(one.value, bindings) is None
    ]


def set_values(
    kind: GraphType, old: pa.Table, values: Sequence[SetProperty], bindings: Bindings
) -> pa.Table:
    """The rows with some properties set. Every value is computed from the old row."""
    rows, violations = old, list[Violation]()
    for one in values:
        name = one.property.name
        done = cast_column(_computed(kind, old, one.value, bindings), one.property.type)
        violations += [
            Violation(
                type=kind.name,
                rule="type",
                id=old["id"][misfit.at].as_py(),
                property=name,
                value=show_value(misfit.value),
                row=misfit.at,
                message=misfit_sentence(kind, name, one.property.type, misfit),
            )
            for misfit in done.misfits[:_DESCRIBED]
        ]
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(place), done.array)
    if not violations:
        rows = clear_stale(kind, {one.property.name for one in values}, rows, old)
    refuse_named(violations or check_rows(kind, rows))
    return rows


def _computed(
    kind: GraphType, old: pa.Table, value: Expression, bindings: Bindings
) -> pa.ChunkedArray:
    """In slices, because a column of texts may be too large for one array."""

    def compute(rows: pa.Table) -> pa.Array:
        return evaluate_array(value, RowLeaves(bindings, rows))

    parts = []
    for start in range(0, old.num_rows, AT_ONCE):
        rows = old.slice(start, AT_ONCE)
        try:
            parts.append(compute(rows))
        except ValueOutOfRange as error:
            raise blame_row(error, rows, compute, kind.name) from None
    return pa.chunked_array(parts)


def refuse_named(violations: Iterable[Violation], *, more: int = 0) -> None:
    """Raises an error if anything is to be refused. Each message begins with the entity."""
    found = [
        msgspec.structs.replace(v, message=f"{v.type} '{show_text(v.id or '')}': {v.message}")
        for v in violations
    ]
    if not found:
        return
    rest = len(found) - 1 + max(more, 0)
    message = found[0].message + (f" (and {rest} more)" if rest else "")
    raise InvalidData(message, violations=found, more=max(more, 0))
