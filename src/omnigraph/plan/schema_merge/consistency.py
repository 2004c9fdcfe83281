"""Owns the rules that two valid sides can break together: names, references, keys, interfaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from omnigraph.lang.pg import compile_schema
from omnigraph.lang.pg.print import print_schema
from omnigraph.model.catalog import Catalog, EdgeType, GraphType, NodeType, Property, declared
from omnigraph.model.schema import InterfaceDecl
from omnigraph.model.types import EnumType
from omnigraph.plan.migrate.constraints import constrained, constraint_text, constraints_of
from omnigraph.plan.schema_merge.conflicts import Conflicts
from omnigraph.plan.schema_merge.references import refer
from omnigraph.plan.schema_merge.values import SchemaConflictKind

_Problem = tuple[SchemaConflictKind, str | None, str]


def check_types(
    types: Mapping[str, GraphType], interfaces: Mapping[str, InterfaceDecl], conflicts: Conflicts
) -> None:
    """Reports what would keep the merged types (referring by id) from being a valid schema."""
    owners: dict[str, str] = {}
    for kind in types.values():
        if owners.setdefault(kind.table_key, kind.id) != kind.id:
            message = f"two types would be called {kind.table_key}"
            conflicts.add(SchemaConflictKind.NAME_TAKEN, (kind.table_key, None), message)
        if isinstance(kind, NodeType) and kind.name in interfaces:
            message = f"a node type and an interface would both be called {kind.name}"
            conflicts.add(SchemaConflictKind.NAME_TAKEN, (kind.table_key, None), message)
        for problem, prop, message in _problems(kind, types, interfaces):
            conflicts.add(problem, (kind.table_key, prop), message)


def check_text(catalog: Catalog, conflicts: Conflicts) -> None:
    """The checker has the last word: a schema that no author could have written is no result."""
    try:
        found = [d.message for d in compile_schema(print_schema(declared(catalog))).diagnostics]
    except ValueError as error:
        found = [str(error)]
    for message in found:
        conflicts.add(SchemaConflictKind.INVALID, ("schema", None), f"together, {message}")


def inherited_first(kind: GraphType, interfaces: Mapping[str, InterfaceDecl]) -> GraphType:
    """The type with properties in the order that a schema text gives them: inherited, then own."""
    if not isinstance(kind, NodeType):
        return kind
    names = [p.name for i in kind.implements for p in interfaces[i].properties]
    rank = {name: place for place, name in enumerate(dict.fromkeys(names))}
    ordered = sorted(kind.properties, key=lambda p: rank.get(p.name, len(rank)))
    return msgspec.structs.replace(kind, properties=tuple(ordered))


def _problems(
    kind: GraphType, types: Mapping[str, GraphType], interfaces: Mapping[str, InterfaceDecl]
) -> Iterator[_Problem]:
    properties = {p.id: p for p in kind.properties}
    yield from _dangling_constraints(kind, properties)
    for prop in kind.properties:
        yield from _property_problems(kind, prop, properties)
    if isinstance(kind, NodeType):
        yield from _interface_problems(kind, interfaces)
    if isinstance(kind, EdgeType) and not {kind.source, kind.target} <= types.keys():
        yield (
            SchemaConflictKind.DANGLING,
            None,
            f"one side dropped a node type that {kind.name} joins",
        )


def _dangling_constraints(
    kind: GraphType, properties: Mapping[str, Property]
) -> Iterator[_Problem]:
    known = {*properties, *(("src", "dst") if isinstance(kind, EdgeType) else ())}
    for constraint in constraints_of(kind, {}).values():
        if not known.issuperset(constrained(constraint)):
            word = constraint_text(constraint).partition("(")[0]
            message = f"one side dropped a property that {word} of {kind.table_key} is about"
            yield SchemaConflictKind.DANGLING, None, message
    if not known.issuperset(kind.key):
        message = f"one side dropped a property of the key of {kind.table_key}"
        yield SchemaConflictKind.DANGLING, None, message


def _property_problems(
    kind: GraphType, prop: Property, properties: Mapping[str, Property]
) -> Iterator[_Problem]:
    if prop.embed is not None and prop.embed.source not in properties:
        message = f"one side dropped the property that {prop.name} is embedded from"
        yield SchemaConflictKind.DANGLING, prop.name, message
    if prop.id in kind.key and prop.nullable:
        message = f"{prop.name} would be nullable and part of the key"
        yield SchemaConflictKind.INVALID, prop.name, message
    default = prop.default.value if prop.default is not None else None
    if isinstance(prop.type, EnumType) and default is not None and default not in prop.type.values:
        message = f"the default of {prop.name} would not be one of its values"
        yield SchemaConflictKind.INVALID, prop.name, message


def _interface_problems(
    kind: NodeType, interfaces: Mapping[str, InterfaceDecl]
) -> Iterator[_Problem]:
    own = {p.name: p for p in kind.properties}
    names = {p.id: p.name for p in kind.properties}
    for name in kind.implements:
        interface = interfaces.get(name)
        if interface is None:
            message = f"one side dropped the interface {name} that {kind.name} implements"
            yield SchemaConflictKind.DANGLING, None, message
            continue
        for wanted in interface.properties:
            found = own.get(wanted.name)
            if found is None or (found.type, found.nullable) != (wanted.type, wanted.nullable):
                message = f"{kind.name}.{wanted.name} would not be what the interface {name} says"
                yield SchemaConflictKind.INVALID, wanted.name, message
        if not _has_constraints(refer(kind, names, {}), interface):
            message = f"{kind.name} would lack a constraint that the interface {name} brings"
            yield SchemaConflictKind.INVALID, None, message


def _has_constraints(kind: GraphType, interface: InterfaceDecl) -> bool:
    return (
        interface.key in ((), kind.key)
        and set(interface.uniques) <= set(kind.uniques)
        and set(interface.indexes) <= set(kind.indexes)
    )
