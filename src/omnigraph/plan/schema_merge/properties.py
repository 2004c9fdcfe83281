"""Owns the three-way merge of the properties of one type, and where their values are stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from omnigraph.model.arrow import arrow_type
from omnigraph.model.catalog import (
    GraphType,
    Property,
    fresh_column,
    system_columns,
    used_columns,
)
from omnigraph.model.schema import PropertyDecl
from omnigraph.model.types import EnumType, PropertyType
from omnigraph.plan.schema_merge.conflicts import Conflicts, Sides
from omnigraph.plan.schema_merge.three_way import merge_order, merge_rename, merge_sets
from omnigraph.plan.schema_merge.twins import joined
from omnigraph.plan.schema_merge.values import ColumnMap, SchemaConflictKind

P = TypeVar("P", bound=PropertyDecl)
PROPERTY_FACETS = ("name", "type", "nullable", "default", "embed", "description", "instruction")


def merge_properties(
    base: GraphType, ours: GraphType, theirs: GraphType, conflicts: Conflicts
) -> tuple[tuple[Property, ...], ColumnMap, tuple[str, ...]]:
    table = ours.table_key
    before, left, right = ({p.id: p for p in kind.properties} for kind in (base, ours, theirs))
    merged: dict[str, Property] = {}
    for found, known in (right | left).items():
        result = conflicts.merge_presence(
            (table, known.name),
            Sides[Property](before.get(found), left.get(found), right.get(found)),
            lambda b, o, t: merge_property(table, b, o, t, conflicts),
        )
        if result is not None:
            merged[found] = result
    by_name: dict[str, Property] = {}
    for prop in merged.values():
        if by_name.setdefault(prop.name, prop) is not prop:
            message = f"two properties of {table} would be called {prop.name}"
            conflicts.add(SchemaConflictKind.NAME_TAKEN, (table, prop.name), message)
    names = [_names(side, merged) for side in (before, left, right)]
    order = merge_order(names[0], names[1], names[2], by_name)
    return place_columns([by_name[n] for n in order], ours, theirs)


def _names(side: dict[str, Property], merged: dict[str, Property]) -> list[str]:
    """The side's properties by the names they have in the result, where they live on."""
    return [merged[found].name for found in side if found in merged]


def merge_property(table: str, base: P | None, ours: P, theirs: P, conflicts: Conflicts) -> P:
    where = (table, ours.name)
    facets: dict[str, object] = {}
    for facet in PROPERTY_FACETS:
        before = getattr(base, facet) if base is not None else None
        left, right = getattr(ours, facet), getattr(theirs, facet)
        if facet == "type":
            merged = _merge_enums(before, left, right)
            if merged is not None:
                facets[facet] = merged
                continue
        facets[facet] = conflicts.pick(f"the {facet}", where, before, left, right)
    if isinstance(ours, Property) and isinstance(theirs, Property):
        facets |= {"filled": ours.filled or theirs.filled, "twins": joined(ours, theirs)}
    return msgspec.structs.replace(
        ours,
        **facets,
        rename_from=merge_rename(facets["name"], base, ours, theirs),
        annotations=conflicts.merge_annotations(
            where,
            base.annotations if base is not None else (),
            ours.annotations,
            theirs.annotations,
        ),
    )


def _merge_enums(
    base: PropertyType | None, ours: PropertyType, theirs: PropertyType
) -> PropertyType | None:
    """Enums merge value by value. If no values remain, the caller refuses the result."""
    if not (isinstance(ours, EnumType) and isinstance(theirs, EnumType)):
        return None
    before = base.values if isinstance(base, EnumType) else ()
    values = merge_sets(before, ours.values, theirs.values)
    return EnumType(tuple(sorted(values))) if values else None


def place_columns(
    properties: Sequence[Property], ours: GraphType, theirs: GraphType
) -> tuple[tuple[Property, ...], ColumnMap, tuple[str, ...]]:
    """The properties with their columns in the result, the map to them, and the retired ones.

    Ours keeps its column if that has the physical type of the result. Otherwise theirs does, if
    ours never used the name; otherwise nobody does and the column is new.
    """
    left = {p.id: p for p in ours.properties}
    right = {p.id: p for p in theirs.properties}
    used = set(used_columns(ours) | used_columns(theirs))
    placed: list[Property] = []
    columns = ColumnMap(ours={}, theirs={})
    for prop in properties:
        mine, other = left.get(prop.id), right.get(prop.id)
        if mine is not None and arrow_type(mine.type) == arrow_type(prop.type):
            column = mine.column
        elif other is not None and other.column not in used_columns(ours):
            column = other.column
        else:
            column = fresh_column(prop.name, prop.id, used)
        used.add(column)
        placed.append(msgspec.structs.replace(prop, column=column))
        if mine is not None:
            columns.ours[mine.column] = column
        if other is not None:
            columns.theirs[other.column] = column
    taken = {*system_columns(ours), *(p.column for p in placed)}
    retired = dict.fromkeys((*ours.retired, *theirs.retired, *sorted(used)))
    return tuple(placed), columns, tuple(c for c in retired if c not in taken)
