"""Owns the steps between two catalogs of one history, which know their renames by stable ids."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from omnigraph.model.catalog import Catalog, GraphType, declared
from omnigraph.model.schema import EdgeDecl, NodeDecl
from omnigraph.plan.migrate.planner import plan_migration
from omnigraph.plan.migrate.steps import MigrationPlan

D = TypeVar("D", NodeDecl, EdgeDecl)


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


def _named(declaration: D, kind: GraphType, before: dict[str, GraphType]) -> D:
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
