"""Owns values that given rows leave out: defaults of new entities, values set by an update.
Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from omnigraph.model.catalog import GraphType
from omnigraph.model.violation import Violation, show_value
from omnigraph.plan.rows.cast import cast_column
from omnigraph.plan.rows.convert import convert_values
from omnigraph.plan.rows.row_type import required_columns, row_type
from omnigraph.plan.rows.typed import RowGroup
from omnigraph.plan.rows.wording import misfit_sentence
from omnigraph.plan.rules.book import describe_missing

_DESCRIBED = 100


def complete_rows(
    kind: GraphType, group: RowGroup, new: np.ndarray
) -> tuple[pa.Table, list[Violation]]:
    """Whole rows: a property that was left out has its default or null. Rows at the positions `new`
    are new entities, which need every required property."""
    facts = row_type(kind)
    violations = []
    missing = [p for p in required_columns(kind, group.given) if p not in group.given]
    for name in missing if len(new) else ():
        for position in new[:_DESCRIBED].tolist():
            entity = group.table["id"][position].as_py()
            row = int(group.positions[position])
            missed = describe_missing(kind, name, entity)
            violations.append(msgspec.structs.replace(missed, row=row))
    columns = [
        group.table[name]
        if name in group.given or name in facts.system
        else facts.default_array(name, group.table.num_rows)
        for name in facts.schema.names
    ]
    return pa.Table.from_arrays(columns, schema=facts.schema), violations


def shape_values(
    kind: GraphType, values: Mapping[str, Any], count: int
) -> tuple[dict[str, pa.Array | pa.ChunkedArray], list[Violation]]:
    """Columns of `count` rows from constants and from computed columns."""
    types = {p.name: p.type for p in kind.properties}
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    violations = []
    for name, value in values.items():
        if isinstance(value, pa.ChunkedArray):
            done = cast_column(value, types[name])
            columns[name] = done.array
        else:
            done = convert_values([value], types[name])
            columns[name] = done.array.take(pa.array(np.zeros(count, dtype=np.int64)))
        violations += [
            Violation(
                type=kind.name,
                rule="type",
                property=name,
                value=show_value(misfit.value),
                message=misfit_sentence(kind, name, types[name], misfit),
            )
            for misfit in done.misfits[:_DESCRIBED]
        ]
    return columns, violations
