"""Owns the comparison of an accepted catalog with a desired schema: which types come, go, change.
The steps between two catalogs of one history come from the same comparison.

It decides and does nothing. How one type changes is `types`; what the steps do is `apply`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TypeVar

import msgspec

from omnigraph.model.catalog import (
    Catalog,
    EdgeType,
    GraphType,
    NodeType,
    Property,
    declared,
    stable_id,
)
from omnigraph.model.schema import (
    EdgeDecl,
    InterfaceDecl,
    NodeDecl,
    PropertyDecl,
    Schema,
    TypeDecl,
    canonical,
    same,
    sorted_constraints,
)
from omnigraph.plan.migrate.change import TypeChange
from omnigraph.plan.migrate.renames import Renames, resolve_renames
from omnigraph.plan.migrate.steps import (
    AddType,
    DropInterface,
    DropType,
    MigrationPlan,
    MigrationStep,
    RenameType,
    SetInterface,
    Unsupported,
)
from omnigraph.plan.migrate.types import plan_type

D = TypeVar("D", bound=TypeDecl)
Named = TypeVar("Named", NodeDecl, EdgeDecl)


def plan_migration(
    accepted: Catalog | None, desired: Schema, *, populated: Collection[str] | None = None
) -> MigrationPlan:
    """The ordered steps from the accepted catalog (None: there is none yet) to the schema.

    `populated` holds the table keys of accepted types that have entities. With it, a step that
    needs an empty type is either possible or unsupported; without it such a step says
    `requires_empty` and the caller has to look.
    """
    base = accepted or Catalog()
    is_first = not (base.nodes or base.edges or base.interfaces)
    nodes = _renames(base.nodes, desired.nodes, is_first=is_first)
    edges = _renames(base.edges, desired.edges, is_first=is_first)
    changes = _Types(base, desired, nodes, populated)
    edge_changes = _Types(base, desired, edges, populated, ends=nodes.names)
    notes = [*nodes.notes, *edges.notes]
    changed_nodes = list(changes.changed("node", base.nodes, desired.nodes, notes))
    changed_edges = list(edge_changes.changed("edge", base.edges, desired.edges, notes))
    steps = [
        *_refused("node", nodes),
        *_refused("edge", edges),
        *_renamed("node", base.nodes, nodes),
        *_renamed("edge", base.edges, edges),
        *_set_interfaces(base.interfaces, canonical(desired).interfaces),
        *changes.added("node", base.nodes, desired.nodes),
        *edge_changes.added("edge", base.edges, desired.edges),
        *changed_nodes,
        *changed_edges,
        *edge_changes.dropped(base.edges, desired.edges),
        *changes.dropped(base.nodes, desired.nodes),
        *_drop_interfaces(base.interfaces, desired.interfaces),
    ]
    return MigrationPlan(base=base.digest, steps=tuple(steps), notes=tuple(notes))


class _Types:
    """What becomes of the types of one kind, once their renames are known."""

    def __init__(
        self,
        base: Catalog,
        desired: Schema,
        renames: Renames,
        populated: Collection[str] | None,
        ends: dict[str, str] | None = None,
    ) -> None:
        self.base = base
        self.renames = renames
        self.populated = populated
        self.ends = ends or {}
        self.inherited = {i.name: {p.name for p in i.properties} for i in desired.interfaces}

    def added(
        self, kind: str, before: Sequence[GraphType], after: Sequence[NodeDecl | EdgeDecl]
    ) -> Iterator[MigrationStep]:
        known = {self.renames.names.get(t.name, t.name) for t in before} | self.renames.disputed
        for declaration in _by_name(after):
            if declaration.name not in known:
                yield AddType(
                    type=f"{kind}:{declaration.name}",
                    definition=_new_type(self.base, kind, declaration),
                    reason="a new type has no entities, so there is nothing to check or to rewrite",
                )

    def changed(
        self,
        kind: str,
        before: Sequence[GraphType],
        after: Sequence[NodeDecl | EdgeDecl],
        notes: list[str],
    ) -> Iterator[MigrationStep]:
        declared = {t.name: t for t in after}
        pairs = [(self.renames.names.get(t.name, t.name), t) for t in before]
        for name, accepted in sorted(pairs, key=lambda pair: pair[0]):
            if name not in declared or name in self.renames.disputed:
                continue
            declaration = declared[name]
            interfaces = declaration.implements if isinstance(declaration, NodeDecl) else ()
            change = TypeChange(
                base=self.base,
                kind=kind,
                before=accepted,
                after=sorted_constraints(declaration),
                ends=self.ends,
                inherited=frozenset().union(*(self.inherited.get(i, ()) for i in interfaces)),
                populated=None if self.populated is None else accepted.table_key in self.populated,
            )
            yield from plan_type(change, notes)

    def dropped(
        self, before: Sequence[GraphType], after: Sequence[NodeDecl | EdgeDecl]
    ) -> Iterator[MigrationStep]:
        kept = {t.name for t in after} | self.renames.disputed
        for accepted in _by_name(before):
            if self.renames.names.get(accepted.name, accepted.name) not in kept:
                yield DropType(
                    type=accepted.table_key,
                    id=accepted.id,
                    reason="its entities leave the graph; history keeps them unless data loss is "
                    "allowed",
                )


def _renames(before: Sequence[GraphType], after: Sequence[TypeDecl], *, is_first: bool) -> Renames:
    desired = [(t.name, t.rename_from) for t in _by_name(after)]
    return resolve_renames(
        {t.name: t.rename_from for t in before},
        desired,
        may_be_new=[name for name, _ in desired] if is_first else (),
    )


def _refused(kind: str, renames: Renames) -> Iterator[MigrationStep]:
    for r in renames.refusals:
        yield Unsupported(type=f"{kind}:{r.name}", code=r.code, reason=r.reason, help=r.help)


def _renamed(kind: str, before: Sequence[GraphType], renames: Renames) -> Iterator[MigrationStep]:
    for accepted in _by_name(before):
        new = renames.names.get(accepted.name)
        if new is not None:
            yield RenameType(
                type=f"{kind}:{new}",
                id=accepted.id,
                old=accepted.name,
                new=new,
                reason="only the catalog changes; data and history stay reachable",
            )


def _set_interfaces(
    before: Sequence[InterfaceDecl], after: Sequence[InterfaceDecl]
) -> Iterator[MigrationStep]:
    accepted = {i.name: i for i in before}
    for interface in after:
        known = accepted.get(interface.name)
        if not same(known, interface):
            yield SetInterface(
                type=f"interface:{interface.name}",
                definition=interface,
                is_new=known is None,
                reason="an interface has no data; the nodes that implement it have their own steps",
            )


def _drop_interfaces(
    before: Sequence[InterfaceDecl], after: Sequence[InterfaceDecl]
) -> Iterator[MigrationStep]:
    for name in sorted({i.name for i in before} - {i.name for i in after}):
        yield DropInterface(type=f"interface:{name}", reason="an interface has no data of its own")


def _new_type(base: Catalog, kind: str, declaration: NodeDecl | EdgeDecl) -> GraphType:
    """The declaration with ids; the columns of a new table are called like its properties, and
    only those: what comes to it later is called otherwise."""
    ordered = sorted_constraints(declaration)
    fields = {f: getattr(ordered, f) for f in ordered.__struct_fields__ if f != "properties"}
    fields["id"] = stable_id(base, kind, declaration.name)
    fields["properties"] = tuple(
        _new_property(base, kind, declaration.name, p) for p in declaration.properties
    )
    return NodeType(**fields) if isinstance(declaration, NodeDecl) else EdgeType(**fields)


def _new_property(base: Catalog, kind: str, type_name: str, prop: PropertyDecl) -> Property:
    known = msgspec.structs.asdict(prop)
    return Property(**known, id=stable_id(base, kind, type_name, prop.name), column=prop.name)


def _by_name(types: Sequence[D]) -> list[D]:
    return sorted(types, key=lambda t: t.name)


def plan_between(old: Catalog, new: Catalog) -> MigrationPlan:
    """What happened to the schema from one version of a graph to another."""
    before = {kind.id: kind for kind in old.by_key.values()}
    after = new.by_key
    schema = declared(new)
    named = msgspec.structs.replace(
        schema,
        nodes=tuple(_named(d, after[f"node:{d.name}"], before) for d in schema.nodes),
        edges=tuple(_named(d, after[f"edge:{d.name}"], before) for d in schema.edges),
    )
    return plan_migration(old, named)


def _named(declaration: Named, kind: GraphType, before: dict[str, GraphType]) -> Named:
    """The declaration with the old names of what was renamed."""
    was = before.get(kind.id)
    if was is None:
        return declaration
    names = {p.id: p.name for p in was.properties}
    ids = {p.name: p.id for p in kind.properties}
    properties = tuple(
        msgspec.structs.replace(p, rename_from=_other(names.get(ids[p.name]), p.name))
        for p in declaration.properties
    )
    return msgspec.structs.replace(
        declaration, rename_from=_other(was.name, kind.name), properties=properties
    )


def _other(old: str | None, new: str) -> str | None:
    return old if old != new else None
