"""Owns what Cedar knows of us: the schema of entities and actions, made from the schemas of graphs,
and the entities of a request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from omnigraph.model.catalog import Catalog, GraphType, system_columns
from omnigraph.model.permission import (
    BranchAction,
    BranchResource,
    GraphAction,
    GraphResource,
    QueryAction,
    QueryResource,
    Resource,
    ServerAction,
    ServerResource,
    TypeAction,
    TypeResource,
)
from omnigraph.model.types import Base, EnumType, ListType, PropertyType, ScalarType

_SCALARS = {
    Base.STRING: "String",
    Base.BOOL: "Bool",
    Base.I32: "Long",
    Base.I64: "Long",
    Base.U32: "Long",
}
_CORE = """
entity Group in [Group] { name: String };
entity Actor in [Group] { name: String };
entity Server;
entity Graph in [Server] { name: String };
entity Branch in [Graph] { name: String, protected: Bool, owner?: Actor };
entity Type in [Graph] { name: String, kind: String };
entity StoredQuery in [Graph] { name: String, mutation: Bool };
"""
_CONTEXTS = {"load": "{ mode: String }", "merge": "{ source: String }"}
SERVER = {"type": "Server", "id": "server"}
_ALL_ACTIONS = (BranchAction, GraphAction, TypeAction, QueryAction, ServerAction)
_ACTION_ENTITIES: list[dict[str, Any]] = [
    {"uid": {"type": "Action", "id": name}, "attrs": {}, "parents": []}
    for kind in _ALL_ACTIONS
    for name in get_args(kind)
]
"""An action that is not among the entities is unknown to Cedar, and `action in` of it undecided."""


def cedar_type(kind: PropertyType) -> str | None:
    """How Cedar calls the type of a property; None if a policy cannot look at it."""
    match kind:
        case ScalarType(base=base):
            return _SCALARS.get(base)
        case EnumType():
            return "String"
        case ListType(item=item):
            held = _SCALARS.get(item)
            return None if held is None else f"Set<{held}>"
    return None


def attributes(kind: GraphType) -> dict[str, tuple[str, bool]]:
    """The attributes of a row: the type of each, and whether it may be missing."""
    found: dict[str, tuple[str, bool]] = {}
    for name in system_columns(kind):
        found[name] = ("String", False)
    for prop in kind.properties:
        told = cedar_type(prop.type)
        if told is not None:
            found[prop.name] = (told, prop.may_be_null)
    return found


def namespace(graph: str) -> str:
    """The name of a graph as Cedar takes it."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", graph)
    return f"g{plain}" if not plain or plain[0].isdigit() else plain


def row_type(graph: str, name: str) -> str:
    return f"{namespace(graph)}::{name}"


def cedar_schema(graphs: Mapping[str, Catalog | None]) -> str:
    """The schema in Cedar's own form. Of a graph without a catalog nothing is known but its
    name."""
    parts, rows = [_CORE], []
    for graph, catalog in graphs.items():
        declared: dict[str, str] = {}
        for kind in () if catalog is None else catalog.types:
            if kind.name not in declared:  # an edge type may be called as a node type
                declared[kind.name] = _entity(kind)
                rows.append(row_type(graph, kind.name))
        if declared:
            parts.append(f"namespace {namespace(graph)} {{\n{''.join(declared.values())}}}\n")
    parts += _actions(rows)
    return "".join(parts)


def list_attributes(graphs: Mapping[str, Catalog | None]) -> dict[str, frozenset[str]]:
    """Of each type of rows, the attributes that are lists."""
    return {
        row_type(graph, kind.name): frozenset(
            name for name, (told, _) in attributes(kind).items() if told.startswith("Set<")
        )
        for graph, catalog in graphs.items()
        for kind in (() if catalog is None else catalog.types)
    }


def _entity(kind: GraphType) -> str:
    fields = [
        f"    {_quoted(name)}{'?' if missing else ''}: {told},\n"
        for name, (told, missing) in attributes(kind).items()
    ]
    return f"  entity {kind.name} in [Type] {{\n{''.join(fields)}  }};\n"


def _actions(rows: list[str]) -> list[str]:
    def applies(names: Iterable[str], resources: Iterable[str]) -> list[str]:
        held = ", ".join(resources)
        return [
            f"action {name} appliesTo {{ principal: [Actor], resource: [{held}], "
            f"context: {_CONTEXTS.get(name, '{}')} }};\n"
            for name in names
        ]

    return [
        *applies(get_args(BranchAction), ["Branch"]),
        *applies(get_args(GraphAction), ["Graph"]),
        *applies(["invoke"], ["StoredQuery"]),
        *applies(["see"], ["Type", *rows]),
        *applies(["write"], ["Type"]),
        *applies(get_args(ServerAction), ["Server"]),
    ]


def _quoted(name: str) -> str:
    return f'"{name}"'


# Entities of a request


def identity(resource: Resource) -> dict[str, str]:
    match resource:
        case ServerResource():
            return SERVER
        case GraphResource(graph=graph):
            return {"type": "Graph", "id": graph}
        case BranchResource(graph=graph, name=name):
            return {"type": "Branch", "id": f"{graph}/{name}"}
        case TypeResource(graph=graph, name=name):
            return {"type": "Type", "id": f"{graph}/{name}"}
        case QueryResource(graph=graph, name=name):
            return {"type": "StoredQuery", "id": f"{graph}/{name}"}


def resource_entities(resource: Resource) -> list[dict[str, Any]]:
    """The resource and what it is in."""
    server = {"uid": SERVER, "attrs": {}, "parents": []}
    if isinstance(resource, ServerResource):
        return [server]
    home = {"type": "Graph", "id": resource.graph}
    graph = {"uid": home, "attrs": {"name": resource.graph}, "parents": [SERVER]}
    if isinstance(resource, GraphResource):
        return [graph, server]
    attrs: dict[str, Any] = {"name": resource.name}
    match resource:
        case BranchResource(protected=protected, owner=owner):
            attrs["protected"] = protected
            if owner is not None:
                attrs["owner"] = {"__entity": {"type": "Actor", "id": owner}}
        case TypeResource(kind=kind):
            attrs["kind"] = kind
        case QueryResource(mutation=mutation):
            attrs["mutation"] = mutation
    return [{"uid": identity(resource), "attrs": attrs, "parents": [home]}, graph, server]


def actor_entities(actor: str, groups: frozenset[str]) -> list[dict[str, Any]]:
    named = [{"type": "Group", "id": name} for name in sorted(groups)]
    own = {"uid": {"type": "Actor", "id": actor}, "attrs": {"name": actor}, "parents": named}
    held = [{"uid": one, "attrs": {"name": one["id"]}, "parents": []} for one in named]
    return [own, *held, *_ACTION_ENTITIES]


def row_entity(resource: TypeResource, kind: GraphType, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as Cedar sees it: `Graph::Type` in its type."""
    attrs = {name: row[name] for name in attributes(kind) if row.get(name) is not None}
    uid = {"type": row_type(resource.graph, resource.name), "id": row["id"]}
    return {"uid": uid, "attrs": attrs, "parents": [identity(resource)]}
