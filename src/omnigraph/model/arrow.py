"""Owns the Arrow form of a property, and of the rows of a type."""

from __future__ import annotations

from typing import assert_never

import pyarrow as pa

from omnigraph.model.catalog import GraphType, system_columns
from omnigraph.model.types import Base, EnumType, ListType, PropertyType, ScalarType, VectorType

_ARROW: dict[Base, pa.DataType] = {
    Base.STRING: pa.string(),
    Base.BOOL: pa.bool_(),
    Base.I32: pa.int32(),
    Base.I64: pa.int64(),
    Base.U32: pa.uint32(),
    Base.U64: pa.uint64(),
    Base.F32: pa.float32(),
    Base.F64: pa.float64(),
    Base.DATE: pa.date32(),
    Base.DATETIME: pa.timestamp("ms", tz="UTC"),
    Base.BLOB: pa.large_binary(),
}


def arrow_type(kind: PropertyType) -> pa.DataType:
    """The Arrow type of a column that holds this property."""
    match kind:
        case ScalarType(base=base):
            return _ARROW[base]
        case ListType(item=item):
            return pa.list_(pa.field("item", _ARROW[item], nullable=False))
        case EnumType():
            return pa.string()
        case VectorType(dimension=dimension):
            return pa.list_(pa.float32(), dimension)
        case _:
            assert_never(kind)


def row_schema(kind: GraphType) -> pa.Schema:
    """Rows in the form that users see: system columns, then properties by name, in order."""
    return pa.schema(
        [pa.field(name, pa.string(), nullable=False) for name in system_columns(kind)]
        + [pa.field(p.name, arrow_type(p.type), nullable=p.may_be_null) for p in kind.properties]
    )


def table_schema(kind: GraphType) -> pa.Schema:
    """The table's columns. Only system columns are non-null on disk: whether a property is
    required can change without touching a file, so validation enforces it, not the column."""
    fields = [pa.field(name, pa.string(), nullable=False) for name in system_columns(kind)]
    for p in kind.properties:
        metadata = {"lance-encoding:blob": "true"} if p.type == ScalarType(Base.BLOB) else None
        fields.append(pa.field(p.column, arrow_type(p.type), nullable=True, metadata=metadata))
    return pa.schema(fields)
