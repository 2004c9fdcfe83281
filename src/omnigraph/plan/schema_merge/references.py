"""Owns the form in which catalogs are compared: references by stable id and not by name.

In this form, renaming a type or property changes one name and nothing that refers to it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from omnigraph.model.catalog import Catalog, EdgeType, GraphType, NodeType, Property
from omnigraph.model.schema import Embed
from omnigraph.plan.migrate.constraints import constraints_of, with_constraints
from omnigraph.plan.schema_merge.twins import joined


def by_id(catalog: Catalog) -> dict[str, GraphType]:
    """The types by id, referring to properties and to node types by id."""
    nodes = {t.name: t.id for t in catalog.nodes}
    return {t.id: refer(t, {p.name: p.id for p in t.properties}, nodes) for t in catalog.types}


def refer(kind: GraphType, properties: Mapping[str, str], nodes: Mapping[str, str]) -> GraphType:
    """The type with every reference replaced; what is not in the maps stays (`src`, `dst`)."""
    changed = msgspec.structs.replace(
        with_constraints(kind, constraints_of(kind, properties).values()),
        key=tuple(properties.get(name, name) for name in kind.key),
        properties=tuple(_refer_embed(p, properties) for p in kind.properties),
    )
    if isinstance(changed, EdgeType):
        source = nodes.get(changed.source, changed.source)
        target = nodes.get(changed.target, changed.target)
        return msgspec.structs.replace(changed, source=source, target=target)
    return changed


def adopt_ids(base: Catalog, ours: Catalog, theirs: Catalog) -> Catalog:
    """Theirs, in which things that both sides added under one name have the id that ours gave
    them."""
    nodes = _adopted(base, ours, theirs, theirs.nodes)
    edges = _adopted(base, ours, theirs, theirs.edges)
    return msgspec.structs.replace(
        theirs,
        nodes=tuple(t for t in nodes if isinstance(t, NodeType)),
        edges=tuple(t for t in edges if isinstance(t, EdgeType)),
    )


def _adopted(
    base: Catalog, ours: Catalog, theirs: Catalog, types: tuple[GraphType, ...]
) -> list[GraphType]:
    before = {t.id: t for t in base.types}
    left = {t.id: t for t in ours.types}
    right = {t.id for t in theirs.types}
    result = []
    for kind in types:
        twin = left.get(kind.id)
        if twin is None and kind.id not in before:
            found = ours.by_key.get(kind.table_key)
            if found is not None and found.id not in before and found.id not in right:
                twin = found
        if twin is None:
            result.append(kind)
            continue
        known = before.get(kind.id)
        old = {p.id for p in known.properties} if known is not None else set()
        adopted = _adopt_properties(kind, twin, old)
        twins = joined(twin, kind)
        result.append(msgspec.structs.replace(adopted, id=twin.id, twins=twins))
    return result


def _adopt_properties(kind: GraphType, twin: GraphType, old: set[str]) -> GraphType:
    added = {p.name: p for p in twin.properties if p.id not in old}
    own = {p.id for p in kind.properties}
    shared = own & {p.id for p in added.values()}
    properties = []
    for prop in kind.properties:
        given = added.get(prop.name, prop)
        if prop.id not in old and prop.id not in shared and given.id not in own:
            prop = msgspec.structs.replace(prop, id=given.id, twins=joined(given, prop))
        properties.append(prop)
    return msgspec.structs.replace(kind, properties=tuple(properties))


def _refer_embed(prop: Property, names: Mapping[str, str]) -> Property:
    if prop.embed is None:
        return prop
    embed = Embed(names.get(prop.embed.source, prop.embed.source), prop.embed.model)
    return msgspec.structs.replace(prop, embed=embed)
