"""Owns rows in the form of load files: from typed rows back to lines, text and columns."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidData
from omnigraph.model.catalog import EdgeType, GraphType
from omnigraph.model.types import Base, ListType, PropertyType, ScalarType, VectorType
from omnigraph.model.violation import Violation
from omnigraph.plan.load.lines import BLOB_PREFIX

_ENDS = {"src": "from", "dst": "to"}


def shown_names(kind: GraphType, names: list[str]) -> list[str]:
    """Columns with the names that load files use."""
    return [_ENDS.get(n, n) if isinstance(kind, EdgeType) else n for n in names]


def refuse_not_finite(kind: GraphType, batch: pa.RecordBatch) -> None:
    """JSON has no NaN and no infinities."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        numbers = column
        while pa.types.is_nested(numbers.type):
            numbers = numbers.flatten()
        if not pa.types.is_floating(numbers.type) or not len(numbers):
            continue
        if pc.all(pc.is_finite(numbers)).as_py() is False:
            row = _first_not_finite(column)
            entity = batch.column("id")[row].as_py()
            message = (
                f"`{name}` of {kind.name} {entity!r} is NaN or infinite, which JSONL cannot hold; "
                "export as Parquet."
            )
            found = Violation(
                type=kind.name, rule="json", id=entity, property=name, message=message
            )
            raise InvalidData(message, violations=[found])


def _first_not_finite(column: pa.Array) -> int:
    for row, value in enumerate(column.to_pylist()):
        numbers = value if isinstance(value, list) else [value]
        if not np.isfinite(np.array([n for n in numbers if n is not None], dtype=float)).all():
            return row
    return 0


def to_lines(kind: GraphType, batch: pa.RecordBatch) -> bytes:
    """Entries of a load file. Nulls are left out, except where that would give the default; ids
    are left out where the key gives them."""
    refuse_not_finite(kind, batch)
    keep_null = {p.name for p in kind.properties if p.default is not None}
    plain = _jsonable(kind, batch)
    names = [p.name for p in kind.properties]
    edge = isinstance(kind, EdgeType)
    lines = []
    ids = batch.column("id").to_pylist()
    ends = [batch.column(end).to_pylist() for end in ("src", "dst")] if edge else [ids, ids]
    values = list(zip(*(plain[name] for name in names), strict=True)) if names else [()] * len(ids)
    for entity, start, end, row in zip(ids, *ends, values, strict=True):
        entry: dict[str, Any] = {"edge" if edge else "type": kind.name}
        if not kind.key:
            entry["id"] = entity
        if edge:
            entry |= {"from": start, "to": end}
        entry["data"] = {
            name: value
            for name, value in zip(names, row, strict=True)
            if value is not None or name in keep_null
        }
        lines.append(msgspec.json.encode(entry))
    lines.append(b"")
    return b"\n".join(lines)


def _jsonable(kind: GraphType, batch: pa.RecordBatch) -> dict[str, list[Any]]:
    return {p.name: _json_values(batch.column(p.name).to_pylist(), p.type) for p in kind.properties}


def _json_values(values: list[Any], kind: PropertyType) -> list[Any]:
    match kind:
        case ScalarType(base=Base.BLOB):
            return [None if v is None else blob_text(v) for v in values]
        case ScalarType(base=Base.DATE):
            return [None if v is None else v.isoformat() for v in values]
        case ScalarType(base=Base.DATETIME):
            return [None if v is None else instant_text(v) for v in values]
        case ListType(item=item) if item in (Base.DATE, Base.DATETIME):
            one = ScalarType(item)
            return [None if v is None else _json_values(v, one) for v in values]
        case _:
            return values


def blob_text(value: bytes) -> str:
    return BLOB_PREFIX + base64.b64encode(value).decode()


def instant_text(value: datetime) -> str:
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def to_csv_columns(kind: GraphType, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Columns that CSV can hold and load reads back: lists as JSON, blobs as Base64."""
    types: dict[str, PropertyType] = {p.name: p.type for p in kind.properties}
    columns = [
        _csv_column(column, types.get(name, ScalarType(Base.STRING)))
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=shown_names(kind, batch.schema.names))


def _csv_column(column: pa.Array, kind: PropertyType) -> pa.Array:
    match kind:
        case ListType() | VectorType():
            texts = [
                None if v is None else msgspec.json.encode(_finite_or_text(v)).decode()
                for v in _json_values(column.to_pylist(), kind)
            ]
            return pa.array(texts, pa.string())
        case ScalarType(base=Base.BLOB | Base.DATE | Base.DATETIME):
            return pa.array(_json_values(column.to_pylist(), kind), pa.string())
        case ScalarType(base=Base.F32 | Base.F64):
            if pc.all(pc.is_finite(column)).as_py() is not False:
                return column
            return pa.array([None if v is None else _number_text(v) for v in column.to_pylist()])
        case _:
            return column


def _finite_or_text(values: list[Any]) -> list[Any]:
    for value in values:
        if isinstance(value, float) and not np.isfinite(value):
            raise InvalidData(
                "A list holds NaN or infinity, which CSV cannot hold; export as Parquet."
            )
    return values


def _number_text(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)
