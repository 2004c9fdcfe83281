"""Owns where a merge puts the values of properties: in which columns of our tables, if any.

A column of our table belongs to a property only if our catalog says so. Any other column is a
leftover: of a dropped property, of a property before it was widened, or of one that a restore or an
earlier merge made us forget. So a new column in a table of ours gets a name that the table does not
have. If theirs is the same table, it gets the name of their column, so that fragments can be
shared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from omnigraph.engine.merge.sides import kind_in, pin_in
from omnigraph.engine.merge.state import MergeInputs
from omnigraph.model.arrow import arrow_type
from omnigraph.model.catalog import (
    Catalog,
    EdgeType,
    GraphType,
    NodeType,
    fresh_column,
    used_columns,
)
from omnigraph.model.conflicts import ConflictKind, MergeConflict
from omnigraph.model.types import type_text
from omnigraph.plan.migrate.properties import is_widening


def settle_columns(m: MergeInputs, *, merged: Collection[str]) -> Catalog:
    """The merged catalog with columns that fit our tables. Tables that are `merged` row by row,
    given by key, are never taken from theirs as they are."""
    types = [_settled(m, kind, kind.table_key in merged) for kind in m.catalog.types]
    if all(new is old for new, old in zip(types, m.catalog.types, strict=True)):
        return m.catalog
    return msgspec.structs.replace(
        m.catalog,
        generation=m.catalog.generation + 1,
        nodes=tuple(kind for kind in types if isinstance(kind, NodeType)),
        edges=tuple(kind for kind in types if isinstance(kind, EdgeType)),
    )


def find_narrowed(m: MergeInputs, *, merged: Collection[str]) -> Iterator[MergeConflict]:
    """Properties that one side restored to a type that cannot hold the values of the other side, or
    of the version both come from, in tables whose rows must be combined."""
    for kind in m.catalog.types:
        if _one_place(m, kind) or (m.takes(kind) and kind.table_key not in merged):
            continue
        sides = [m.base.kind(kind), kind_in(m.ours, kind), kind_in(m.theirs, kind)]
        known = [{p.id: p.type for p in side.properties} if side else {} for side in sides]
        for p in kind.properties:
            held = [types[p.id] for types in known if p.id in types]
            wide = [t for t in held if arrow_type(t) != arrow_type(p.type)]
            wide = [t for t in wide if not is_widening(t, p.type)]
            if wide:
                told = [type_text(types[p.id]) if p.id in types else None for types in known]
                yield MergeConflict(
                    ConflictKind.SCHEMA,
                    kind.table_key,
                    None,
                    f"{kind.name}.{p.name} would go back from {type_text(wide[0])} to "
                    f"{type_text(p.type)}, and values may not fit. Apply a schema with "
                    f"{type_text(wide[0])} to both branches, then merge.",
                    property=p.name,
                    base=told[0],
                    ours=told[1],
                    theirs=told[2],
                )


def _one_place(m: MergeInputs, kind: GraphType) -> bool:
    """Whether there is only one table: on one side, or the same on both."""
    ours, theirs = pin_in(m.ours, kind), pin_in(m.theirs, kind)
    if ours is None or theirs is None:
        return True
    return (ours.location, ours.lance_version) == (theirs.location, theirs.lance_version)


def _settled(m: MergeInputs, kind: GraphType, by_row: bool) -> GraphType:
    mine, yours = kind_in(m.ours, kind), kind_in(m.theirs, kind)
    if mine is None or _one_place(m, kind):
        return kind
    ours = {p.id: p for p in mine.properties}
    brought = [p for p in kind.properties if p.id not in ours or ours[p.id].column != p.column]
    if not brought or (m.takes(kind) and not by_row):
        return kind
    pins = [pin for pin in (pin_in(m.ours, kind), pin_in(m.theirs, kind)) if pin is not None]
    one_table = len({pin.location for pin in pins}) == 1
    held = set(m.ours.view(mine).table.schema.names)
    used = held | used_columns(kind) | used_columns(mine)
    if yours is not None:
        used |= used_columns(yours) | set(m.theirs.view(yours).table.schema.names)
    moved: dict[str, str] = {}
    for p in brought:
        own = ours.get(p.id)
        if own is not None and arrow_type(own.type) == arrow_type(p.type):
            moved[p.id] = own.column
        elif p.column in held or not one_table:
            moved[p.id] = fresh_column(p.name, p.id, used)
            used.add(moved[p.id])
    return _moved(kind, moved, held) if moved else kind


def _moved(kind: GraphType, columns: dict[str, str], held: Collection[str]) -> GraphType:
    properties = tuple(
        msgspec.structs.replace(p, column=columns.get(p.id, p.column)) for p in kind.properties
    )
    current = {p.column for p in properties}
    left = [p.column for p in kind.properties if p.column in held]
    retired = [name for name in (*kind.retired, *left) if name not in current]
    return msgspec.structs.replace(
        kind, properties=properties, retired=tuple(dict.fromkeys(retired))
    )
