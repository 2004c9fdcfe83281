"""Owns the three-way merge of one type, in the form that refers by id."""

from __future__ import annotations

import msgspec

from omnigraph.model.catalog import EdgeType, GraphType, NodeType
from omnigraph.model.schema import Range
from omnigraph.plan.schema_merge.conflicts import Conflicts, Where
from omnigraph.plan.schema_merge.properties import merge_properties
from omnigraph.plan.schema_merge.three_way import merge_order, merge_rename, merge_sets
from omnigraph.plan.schema_merge.twins import joined
from omnigraph.plan.schema_merge.values import ColumnMap


def merge_type(
    base: GraphType | None, ours: GraphType, theirs: GraphType, conflicts: Conflicts
) -> tuple[GraphType, ColumnMap]:
    """The merged type with the columns that each side's columns become.

    A type that both sides added is merged against an empty one; only what decides ids (the key)
    then has to be the same.
    """
    where: Where = (ours.table_key, None)
    before = base if base is not None else _shell(ours)
    properties, columns, retired = merge_properties(before, ours, theirs, conflicts)
    first = before.name if base is not None else _first_name(ours, theirs)
    name = conflicts.pick("the name", where, first, ours.name, theirs.name)
    key_before = before.key if base is not None else None
    merged = msgspec.structs.replace(
        ours,
        name=name,
        twins=joined(ours, theirs),
        rename_from=merge_rename(name, base, ours, theirs),
        properties=properties,
        retired=retired,
        key=conflicts.pick("the key", where, key_before, ours.key, theirs.key),
        uniques=tuple(sorted(merge_sets(before.uniques, ours.uniques, theirs.uniques))),
        indexes=tuple(sorted(merge_sets(before.indexes, ours.indexes, theirs.indexes))),
        ranges=_merge_ranges(before, ours, theirs, conflicts),
        checks=tuple(
            sorted(merge_sets(before.checks, ours.checks, theirs.checks), key=msgspec.json.encode)
        ),
        annotations=conflicts.merge_annotations(
            where, before.annotations, ours.annotations, theirs.annotations
        ),
        **{
            facet: conflicts.pick(f"the {facet}", where, *_facets(facet, before, ours, theirs))
            for facet in ("description", "instruction")
        },
    )
    return _merge_own(before, merged, ours, theirs, conflicts), columns


def _first_name(ours: GraphType, theirs: GraphType) -> str | None:
    """The name under which both sides added the type, if one of them renamed it since."""
    by_us, by_them = ours.rename_from == theirs.name, theirs.rename_from == ours.name
    if by_us == by_them:
        return ours.name if ours.name == theirs.name else None
    return theirs.name if by_us else ours.name


def _merge_own(
    base: GraphType, merged: GraphType, ours: GraphType, theirs: GraphType, conflicts: Conflicts
) -> GraphType:
    """The parts that only nodes or only edges have."""
    where: Where = (ours.table_key, None)
    match base, merged, theirs:
        case NodeType(), NodeType(), NodeType():
            assert isinstance(ours, NodeType)
            members = merge_sets(base.implements, ours.implements, theirs.implements)
            order = merge_order(base.implements, ours.implements, theirs.implements, members)
            return msgspec.structs.replace(merged, implements=tuple(order))
        case EdgeType(), EdgeType(), EdgeType():
            assert isinstance(ours, EdgeType)
            return msgspec.structs.replace(
                merged,
                card=conflicts.pick("@card", where, base.card, ours.card, theirs.card),
                source=conflicts.pick("the source", where, base.source, ours.source, theirs.source),
                target=conflicts.pick("the target", where, base.target, ours.target, theirs.target),
            )
        case _:
            raise AssertionError("an id belongs to one kind of type")


def _shell(kind: GraphType) -> GraphType:
    """The type without any declarations."""
    if isinstance(kind, NodeType):
        return NodeType(id=kind.id, name=kind.name)
    return EdgeType(id=kind.id, name=kind.name, source="", target="")


def _facets(facet: str, *sides: object) -> tuple[object, ...]:
    return tuple(getattr(side, facet) for side in sides)


def _merge_ranges(
    base: GraphType, ours: GraphType, theirs: GraphType, conflicts: Conflicts
) -> tuple[Range, ...]:
    """Ranges merge property by property: two ranges of one property hardly mean both."""
    sides = [_ranges_by_property(kind) for kind in (base, ours, theirs)]
    names = {p.id: p.name for kind in (theirs, ours) for p in kind.properties}
    result: list[Range] = []
    for found in dict.fromkeys([*sides[1], *sides[2]]):
        where = (ours.table_key, names.get(found, found))
        result += conflicts.pick("@range", where, *(side.get(found, ()) for side in sides))
    return tuple(result)


def _ranges_by_property(kind: GraphType) -> dict[str, tuple[Range, ...]]:
    found: dict[str, tuple[Range, ...]] = {}
    for each in kind.ranges:
        found[each.property] = (*found.get(each.property, ()), each)
    return found
