"""Owns conditions that come as expressions of Arrow, serialized by Substrait."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import pyarrow as pa
from pyarrow.substrait import deserialize_expressions

from omnigraph.engine.protocols import SnapshotLike, TransactionLike
from omnigraph.errors import InvalidArgument


def read_substrait(text: str) -> Any:
    try:
        found = deserialize_expressions(base64.b64decode(text, validate=True))
    except (binascii.Error, pa.ArrowException, ValueError) as error:
        raise InvalidArgument(
            f"substrait is no serialized expression of Arrow: {str(error)[:200]}."
        ) from None
    if len(found.expressions) != 1:
        raise InvalidArgument("substrait holds one expression.")
    return found


def scan_where(
    snapshot: SnapshotLike | TransactionLike,
    type: str,
    columns: list[str] | None,
    condition: Any,
) -> pa.RecordBatchReader:
    """The condition knows columns by their places in the schema that it was made for, so it is
    asked of just these columns."""
    (test,) = condition.expressions.values()
    needed = condition.schema.names
    shown = snapshot.scan(type, columns=columns).schema
    names = shown.names
    found = snapshot.scan(type, columns=[*needed, *(n for n in names if n not in needed)])
    reader = found.to_reader() if isinstance(found, pa.Table) else found
    for field in condition.schema:
        if reader.schema.field(field.name).type != field.type:
            raise InvalidArgument(f"{field.name} of {type} is no {field.type}.")
    try:
        reader.schema.empty_table().filter(test)
    except (pa.ArrowException, KeyError) as error:
        raise InvalidArgument(f"The condition does not fit {type}: {str(error)[:200]}.") from None
    kept = (batch.filter(test).select(names) for batch in reader)
    return pa.RecordBatchReader.from_batches(shown, kept)
