"""Owns statements: what a transaction was asked to do, as values that can be run again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.gq.checked import Expression, Update
from omnigraph.plan.rows import Shaped
from omnigraph.plan.values.rows import Bindings


@dataclass(frozen=True)
class AppendRows:
    """`raw` is what the caller gave, in a form that can be read again under another schema."""

    type: str
    raw: Any = field(repr=False)
    shaped: Shaped = field(repr=False)
    generated_ids: bool = False


@dataclass(frozen=True)
class UpsertRows(AppendRows):
    """`merged` counts rows that were given before others of the same id, and went into these."""

    merged: int = 0


@dataclass(frozen=True)
class OverwriteRows(AppendRows):
    pass


@dataclass(frozen=True)
class UpdateRows:
    type: str
    set: dict[str, Any]
    where: pc.Expression | None


@dataclass(frozen=True)
class DeleteRows:
    type: str
    where: pc.Expression | None


@dataclass(frozen=True)
class UpdateWhere:
    """Updates of the query language, one after the other."""

    type: str
    updates: tuple[Update, ...]
    bindings: Bindings


@dataclass(frozen=True)
class DeleteWhere:
    type: str
    where: Expression
    bindings: Bindings


Statement = (
    AppendRows | UpsertRows | OverwriteRows | UpdateRows | DeleteRows | UpdateWhere | DeleteWhere
)


def hash_statements(statements: list[Statement]) -> str:
    """The same for the same call: ids that we made up do not count."""
    digest = hashlib.sha256()
    for statement in statements:
        digest.update(f"{type(statement).__name__} {statement.type}\0".encode())
        match statement:
            case AppendRows() | UpsertRows() | OverwriteRows():
                for group in statement.shaped.groups:
                    table = group.table
                    if statement.generated_ids:
                        table = table.drop_columns(["id"])
                    digest.update(_table_bytes(table))
            case UpdateRows():
                for name, value in sorted(statement.set.items()):
                    digest.update(f"{name}=".encode() + _value_bytes(value))
                digest.update(_value_bytes(statement.where))
            case DeleteRows():
                digest.update(_value_bytes(statement.where))
            case UpdateWhere() | DeleteWhere():
                raise TypeError("a mutation is known by its text and its parameters")
            case _:
                assert_never(statement)
    return digest.hexdigest()[:16]


def _value_bytes(value: Any) -> bytes:
    """The text of an expression leaves out what is in the middle of long lists."""
    if isinstance(value, pc.Expression):
        _, (serialized,) = value.__reduce__()
        return b"expression " + bytes(serialized)
    return f"value {value!r}\0".encode()


def _table_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())
