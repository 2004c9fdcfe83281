"""Owns the merge of two catalogs against their base, and the refusal of results that make no sense.

It decides about schemas only: whether the rows of both sides meet the merged constraints is for
the merge of the data to find out.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from omnigraph.model.catalog import (
    Catalog,
    EdgeType,
    GraphType,
    NodeType,
    encode_catalog,
)
from omnigraph.model.schema import InterfaceDecl, PropertyDecl, sorted_constraints
from omnigraph.plan.schema_merge.conflicts import Conflicts, Sides
from omnigraph.plan.schema_merge.consistency import check_text, check_types, inherited_first
from omnigraph.plan.schema_merge.properties import merge_property
from omnigraph.plan.schema_merge.references import adopt_ids, by_id, refer
from omnigraph.plan.schema_merge.three_way import merge_order, merge_sets
from omnigraph.plan.schema_merge.types import merge_type
from omnigraph.plan.schema_merge.values import ColumnMap, SchemaMerge


def merge_schemas(base: Catalog, ours: Catalog, theirs: Catalog) -> SchemaMerge:
    """Both sides' changes since `base`, or every contradiction between them."""
    adopted = adopt_ids(base, ours, theirs)
    conflicts = Conflicts()
    columns: dict[str, ColumnMap] = {}
    interfaces = _merge_interfaces(base, ours, theirs, conflicts)
    before, left, right = by_id(base), by_id(ours), by_id(adopted)
    types: dict[str, GraphType] = {}

    def both(b: GraphType | None, o: GraphType, t: GraphType) -> GraphType:
        merged, columns[o.id] = merge_type(b, o, t, conflicts)
        return merged

    for found, known in (right | left).items():
        sides = Sides[GraphType](before.get(found), left.get(found), right.get(found))
        one = conflicts.merge_presence((known.table_key, None), sides, both)
        if one is not None:
            types[found] = one
            columns.setdefault(found, _identity(sides.ours, sides.theirs))
    check_types(types, interfaces, conflicts)
    if conflicts.found:
        return SchemaMerge(conflicts=tuple(conflicts.found))
    catalog = _settled(ours, theirs, interfaces, types)
    if catalog not in (ours, theirs):
        check_text(catalog, conflicts)
        if conflicts.found:
            return SchemaMerge(conflicts=tuple(conflicts.found))
    by_key = {types[found].table_key: columns[found] for found in types}
    return SchemaMerge(catalog=catalog, columns=dict(sorted(by_key.items())))


def _identity(ours: GraphType | None, theirs: GraphType | None) -> ColumnMap:
    return ColumnMap(ours=_same_columns(ours), theirs=_same_columns(theirs))


def _same_columns(kind: GraphType | None) -> dict[str, str]:
    return {} if kind is None else {p.column: p.column for p in kind.properties}


def _settled(
    ours: Catalog,
    theirs: Catalog,
    interfaces: Mapping[str, InterfaceDecl],
    types: Mapping[str, GraphType],
) -> Catalog:
    """The catalog by names again. A side that already is the result stays what it is, unless the
    other side has lived through more changes: ids of those must not be given again."""
    nodes = {t.id: t.name for t in types.values() if isinstance(t, NodeType)}
    named = sorted((_by_name(t, nodes, interfaces) for t in types.values()), key=lambda t: t.name)
    merged = Catalog(
        generation=max(ours.generation, theirs.generation) + 1,
        interfaces=tuple(interfaces[name] for name in sorted(interfaces)),
        nodes=tuple(t for t in named if isinstance(t, NodeType)),
        edges=tuple(t for t in named if isinstance(t, EdgeType)),
    )
    for side in (ours, theirs):
        if side.generation < merged.generation - 1:
            continue
        same_generation = msgspec.structs.replace(merged, generation=side.generation)
        if encode_catalog(same_generation) == encode_catalog(side):
            return side
    return merged


def _by_name(
    kind: GraphType, nodes: Mapping[str, str], interfaces: Mapping[str, InterfaceDecl]
) -> GraphType:
    named = refer(kind, {p.id: p.name for p in kind.properties}, nodes)
    return inherited_first(sorted_constraints(named), interfaces)


def _merge_interfaces(
    base: Catalog, ours: Catalog, theirs: Catalog, conflicts: Conflicts
) -> dict[str, InterfaceDecl]:
    """Interfaces have no ids, so they and their properties merge by name."""
    before, left, right = (
        {i.name: i for i in catalog.interfaces} for catalog in (base, ours, theirs)
    )
    result = {}
    for name in dict.fromkeys([*left, *right]):
        merged = conflicts.merge_presence(
            (f"interface:{name}", None),
            Sides[InterfaceDecl](before.get(name), left.get(name), right.get(name)),
            lambda b, o, t: _merge_interface(b, o, t, conflicts),
        )
        if merged is not None:
            result[name] = merged
    return result


def _merge_interface(
    base: InterfaceDecl | None, ours: InterfaceDecl, theirs: InterfaceDecl, conflicts: Conflicts
) -> InterfaceDecl:
    before = base or InterfaceDecl(name=ours.name)
    table = f"interface:{ours.name}"
    where = (table, None)
    old, left, right = ({p.name: p for p in side.properties} for side in (before, ours, theirs))
    merged = {}
    for name in dict.fromkeys([*left, *right]):
        found = conflicts.merge_presence(
            (table, name),
            Sides[PropertyDecl](old.get(name), left.get(name), right.get(name)),
            lambda b, o, t: merge_property(table, b, o, t, conflicts),
        )
        if found is not None:
            merged[name] = found
    order = merge_order(list(old), list(left), list(right), merged)
    return InterfaceDecl(
        name=ours.name,
        properties=tuple(merged[name] for name in order),
        key=conflicts.pick("the key", where, before.key, ours.key, theirs.key),
        uniques=tuple(sorted(merge_sets(before.uniques, ours.uniques, theirs.uniques))),
        indexes=tuple(sorted(merge_sets(before.indexes, ours.indexes, theirs.indexes))),
        description=conflicts.pick(
            "the description", where, before.description, ours.description, theirs.description
        ),
        instruction=conflicts.pick(
            "the instruction", where, before.instruction, ours.instruction, theirs.instruction
        ),
        annotations=conflicts.merge_annotations(
            where, before.annotations, ours.annotations, theirs.annotations
        ),
    )
