"""Owns the shape of a result: its schema, its rows before they become objects, and its batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.query.leaves import entity_type
from omnigraph.lang.gq.checked import (
    Column,
    EdgeKind,
    EntityListKind,
    Kind,
    NodeKind,
)
from omnigraph.plan.query import Plan
from omnigraph.plan.values import arrow_kind
from omnigraph.plan.values.kinds import Value

if TYPE_CHECKING:
    pass


def column_type(kind: Kind) -> pa.DataType:
    if isinstance(kind, NodeKind | EdgeKind):
        return entity_type(kind)
    if isinstance(kind, EntityListKind):
        return pa.list_(pa.field("item", entity_type(kind.item), nullable=False))
    return arrow_kind(kind)


def result_schema(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema(
        [
            pa.field(column.name, column_type(column.type.kind), nullable=column.type.nullable)
            for column in columns
        ]
    )


def schema_of(plan: Plan) -> pa.Schema:
    if plan.derived.schema is None:
        plan.derived.schema = result_schema(plan.query.columns)
    schema: pa.Schema = plan.derived.schema
    return schema


def shaped(values: pa.Array, target: pa.DataType) -> pa.Array:
    if values.type == target:
        return values
    if pa.types.is_struct(target):
        fields = [target.field(i) for i in range(target.num_fields)]
        arrays = [values.field(i) for i in range(values.type.num_fields)]
        mask = values.is_null()
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)
    if pa.types.is_list(target):
        inner = shaped(values.flatten(), target.value_type)
        lengths = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
        return pa.ListArray.from_arrays(offsets, inner, type=target, mask=values.is_null())
    return values.cast(target)


def batch_of(arrays: list[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@dataclass
class Rows:
    """Rows of the result, before order and limit. Each column holds values or, for entities,
    numbers that become objects at the end."""

    values: list[Value]
    rows: int

    @property
    def nbytes(self) -> int:
        return sum(value.nbytes for value in self.values)


def take_rows(rows: Rows, indices: np.ndarray) -> Rows:
    values = [
        value[indices] if isinstance(value, np.ndarray) else value.take(pa.array(indices))
        for value in rows.values
    ]
    return Rows(values, len(indices))


def nothing_of(column: Column) -> Value:
    if isinstance(column.type.kind, NodeKind | EdgeKind):
        return np.array([], np.int64)
    return pa.array([], column_type(column.type.kind))


def from_numbers(column: pa.Array) -> np.ndarray:
    numbers: np.ndarray = pc.fill_null(column, -1).to_numpy(zero_copy_only=False)
    return numbers.astype(np.int64)
