"""Owns twins: different ids that branches gave to the same thing before a merge joined it. The
merge keeps the id of its target and records the other one. So every branch keeps the id that it
knows, and a comparison of two catalogs first maps all twins to one id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from omnigraph.model.catalog import Catalog, EdgeType, GraphType, NodeType, Property

Twins = dict[str, frozenset[str]]


def align(ours: Catalog, theirs: Catalog) -> Callable[[Catalog], Catalog]:
    """Gives each thing in a catalog the id that ours has for it or, if ours has it not, theirs.
    Ours and theirs know the twins of their whole past."""
    groups = _groups(ours, theirs)
    if not groups:
        return lambda catalog: catalog
    known = [{one.id for one in _things(side)} for side in (ours, theirs)]

    def chosen(found: str) -> str:
        group = groups.get(found, frozenset({found}))
        for ids in known:
            if held := group & ids:
                # Two things in one catalog stay two, whatever another catalog says.
                return next(iter(held)) if len(held) == 1 else found
        return min(group)

    def aligned(catalog: Catalog) -> Catalog:
        kinds = [_renumbered(kind, groups, chosen) for kind in catalog.types]
        return msgspec.structs.replace(
            catalog,
            nodes=tuple(kind for kind in kinds if isinstance(kind, NodeType)),
            edges=tuple(kind for kind in kinds if isinstance(kind, EdgeType)),
        )

    return aligned


def joined(one: GraphType | Property, other: GraphType | Property) -> tuple[str, ...]:
    """The twins of something that both have, under the id of the first."""
    return tuple(sorted({*one.twins, *other.twins, other.id} - {one.id}))


def _things(catalog: Catalog) -> Iterator[GraphType | Property]:
    for kind in catalog.types:
        yield kind
        yield from kind.properties


def _groups(*catalogs: Catalog) -> Twins:
    groups: Twins = {}
    for catalog in catalogs:
        for thing in _things(catalog):
            if thing.twins:
                group = frozenset({thing.id, *thing.twins})
                group = group.union(*(groups.get(one, frozenset()) for one in group))
                groups |= dict.fromkeys(group, group)
    return groups


def _renumbered(kind: GraphType, groups: Twins, chosen: Callable[[str], str]) -> GraphType:
    def twins(found: str) -> tuple[str, ...]:
        return tuple(sorted(groups.get(found, frozenset()) - {chosen(found)}))

    properties = tuple(
        msgspec.structs.replace(p, id=chosen(p.id), twins=twins(p.id)) for p in kind.properties
    )
    return msgspec.structs.replace(
        kind, id=chosen(kind.id), twins=twins(kind.id), properties=properties
    )
