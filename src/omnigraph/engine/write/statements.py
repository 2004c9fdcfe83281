"""Owns statements: the requests made of a transaction, as values that can be run again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.graph_view import find_type
from omnigraph.lang.gq.checked import Expression, Update
from omnigraph.model.catalog import Catalog
from omnigraph.model.types import PropertyType
from omnigraph.plan.digest import DigestColumn, digest_values
from omnigraph.plan.rows.convert import convert_values
from omnigraph.plan.rows.typed import Shaped
from omnigraph.plan.values.rows import Bindings


@dataclass(frozen=True)
class AppendRows:
    """`raw` is what the caller passed, in a form that can be read again under another schema. If
    `generated_ids`, all ids were generated; otherwise those in `made_up` were."""

    type: str
    raw: Any = field(repr=False)
    shaped: Shaped = field(repr=False)
    generated_ids: bool = False
    made_up: tuple[str, ...] = field(default=(), repr=False)

    @property
    def rows(self) -> int:
        return sum(int(group.table.num_rows) for group in self.shaped.groups)

    def own_ids(self) -> list[str]:
        """The generated ids, in their order."""
        if not self.generated_ids:
            return [*self.made_up]
        return [one for group in self.shaped.groups for one in group.table["id"].to_pylist()]


@dataclass(frozen=True)
class UpsertRows(AppendRows):
    """`merged` counts rows that were merged into later ones of the same id."""

    merged: int = 0


@dataclass(frozen=True)
class OverwriteRows(AppendRows):
    pass


@dataclass(frozen=True)
class WhereText:
    """A condition of the query language, and the value of `now()` in it."""

    text: str
    now: int


Where: TypeAlias = pc.Expression | WhereText | None
"""None means every row."""


@dataclass(frozen=True)
class UpdateRows:
    type: str
    set: dict[str, Any]
    where: Where


@dataclass(frozen=True)
class DeleteRows:
    type: str
    where: Where


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


@dataclass(frozen=True)
class EmbedRows:
    """Vectors for entities, each with its text: `rows` has `id`, `text`, `vector`. An entity that
    by now has another text, or a vector, is left as it is."""

    type: str
    property: str
    source: str
    rows: pa.Table = field(repr=False)


Statement = (
    AppendRows
    | UpsertRows
    | OverwriteRows
    | UpdateRows
    | DeleteRows
    | UpdateWhere
    | DeleteWhere
    | EmbedRows
)


def hash_statements(statements: list[Statement], catalog: Catalog) -> str:
    """The same for equal calls under one schema, whatever libraries hold the values."""
    return digest_values(part for one in statements for part in _parts(one, catalog))


def _parts(statement: Statement, catalog: Catalog) -> Iterator[object]:
    kind = find_type(catalog, statement.type)
    yield type(statement).__name__
    yield kind.table_key
    match statement:
        case AppendRows() | UpsertRows() | OverwriteRows():
            for group in statement.shaped.groups:
                for name, column in zip(group.table.column_names, group.table.columns, strict=True):
                    if name != "id":
                        yield name
                        yield DigestColumn(column)
                    elif not statement.generated_ids:
                        yield DigestColumn(_given_ids(column, statement.made_up))
                yield group.table.num_rows
        case UpdateRows():
            types = {p.name: p.type for p in kind.properties}
            for name, value in sorted(statement.set.items()):
                yield name
                yield _as_typed(value, types.get(name))
            yield _plain(statement.where)
        case DeleteRows():
            yield _plain(statement.where)
        case UpdateWhere() | DeleteWhere() | EmbedRows():
            raise TypeError("the call knows what tells it from others, not its statements")
        case _:
            assert_never(statement)


def _plain(where: Where) -> object:
    return where.text if isinstance(where, WhereText) else where


def _given_ids(ids: pa.ChunkedArray, made_up: tuple[str, ...]) -> pa.ChunkedArray:
    """Without generated ids, which differ when a call is repeated."""
    if not made_up:
        return ids
    ours = pc.is_in(ids, value_set=pa.array(made_up, pa.string()))
    return pc.if_else(ours, pa.scalar(None, ids.type), ids)


def _as_typed(value: Any, kind: PropertyType | None) -> object:
    """The values that the property will hold, which can be written in several ways."""
    if kind is None or isinstance(value, pc.Expression):
        return value
    done = convert_values([value], kind)
    return value if done.misfits else DigestColumn(done.array)
