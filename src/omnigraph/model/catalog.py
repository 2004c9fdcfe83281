"""Owns the catalog: a schema plus what must outlive its text: stable ids and column names.

An id is given once, survives renames and is never used again; `twins` are ids that other branches
gave to the same before a merge brought both together. A column keeps the name it was
created with for life, so renaming or dropping a property touches no data file.

No two properties ever share a column of one table. A column is called like its property only when
its table is created, which happens once; whatever comes to a table later carries an id in its name
(`fresh_column`). A restore gives a table and its catalog back together, and a merge gives our table
no column whose name the table has, whoever used it (`engine/merge/columns.py`). So it does not
matter that a restored or merged catalog has forgotten columns: their names are not given again.
Catalogs of earlier releases may name other columns; they keep them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from functools import cached_property

import msgspec

from omnigraph.model.schema import (
    Default,
    EdgeDecl,
    InterfaceDecl,
    NodeDecl,
    PropertyDecl,
    Schema,
    canonical,
)
from omnigraph.model.stored_text import Name

SYSTEM_NODE_COLUMNS = ("id",)
SYSTEM_EDGE_COLUMNS = ("id", "src", "dst")


class Property(PropertyDecl, frozen=True, omit_defaults=True, kw_only=True):
    """`filled` is there once the default was changed: a tuple of the first one, which entities
    got that were there before the property, or of None for null."""

    id: str
    column: Name
    twins: tuple[str, ...] = ()
    filled: tuple[Default | None, ...] = ()


class NodeType(
    NodeDecl, frozen=True, omit_defaults=True, kw_only=True, tag="node", tag_field="kind"
):
    """`retired` holds columns that no property uses any more and that are still in old files.
    `rename_from` is kept once applied, so that the same text does not rename twice."""

    id: str
    twins: tuple[str, ...] = ()
    properties: tuple[Property, ...] = ()
    retired: tuple[Name, ...] = ()

    @property
    def table_key(self) -> str:
        return f"node:{self.name}"


class EdgeType(
    EdgeDecl, frozen=True, omit_defaults=True, kw_only=True, tag="edge", tag_field="kind"
):
    id: str
    twins: tuple[str, ...] = ()
    properties: tuple[Property, ...] = ()
    retired: tuple[Name, ...] = ()

    @property
    def table_key(self) -> str:
        return f"edge:{self.name}"


GraphType = NodeType | EdgeType


class Catalog(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, dict=True):
    """`generation` grows with every accepted change, so that no two catalogs of one line are
    equal and an id derived from the digest is never given twice."""

    generation: int = 0
    interfaces: tuple[InterfaceDecl, ...] = ()
    nodes: tuple[NodeType, ...] = ()
    edges: tuple[EdgeType, ...] = ()

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(encode_catalog(self)).hexdigest()

    @property
    def types(self) -> tuple[GraphType, ...]:
        return (*self.nodes, *self.edges)

    @cached_property
    def by_key(self) -> dict[str, GraphType]:
        return {t.table_key: t for t in self.types}

    @cached_property
    def node_names(self) -> dict[str, NodeType]:
        return {t.name: t for t in self.nodes}

    @cached_property
    def edge_names(self) -> dict[str, EdgeType]:
        return {t.name: t for t in self.edges}

    def find(self, name: str) -> GraphType | None:
        """A type by its name (`Person`) or its table key (`node:Person`, `edge:Knows`)."""
        return self.by_key.get(name) or self.node_names.get(name) or self.edge_names.get(name)


def encode_catalog(catalog: Catalog) -> bytes:
    """The JSON form: members sorted, defaults left out, so equal catalogs have equal bytes in
    every release that only adds fields."""
    return msgspec.json.encode(catalog, order="sorted")


def declared(catalog: Catalog) -> Schema:
    """What a schema text would have to contain to describe this catalog, in canonical order."""
    return canonical(
        Schema(
            interfaces=catalog.interfaces,
            nodes=tuple(_node_decl(t) for t in catalog.nodes),
            edges=tuple(_edge_decl(t) for t in catalog.edges),
        )
    )


def _node_decl(kind: NodeType) -> NodeDecl:
    fields = {f: getattr(kind, f) for f in NodeDecl.__struct_fields__ if f != "properties"}
    return NodeDecl(**fields, properties=tuple(property_decl(p) for p in kind.properties))


def _edge_decl(kind: EdgeType) -> EdgeDecl:
    fields = {f: getattr(kind, f) for f in EdgeDecl.__struct_fields__ if f != "properties"}
    return EdgeDecl(**fields, properties=tuple(property_decl(p) for p in kind.properties))


def property_decl(prop: Property) -> PropertyDecl:
    return PropertyDecl(**{f: getattr(prop, f) for f in PropertyDecl.__struct_fields__})


def stable_id(accepted: Catalog, kind: str, type_name: str, property_name: str = "") -> str:
    """The id of something added on top of `accepted`; `kind` is "node" or "edge".

    It is a function of the catalog it was added to. No catalog of one line repeats, so no id is
    given twice; and two branches that add the same thing to the same base give it the same id.
    """
    origin = "/".join((accepted.digest, kind, type_name, property_name))
    return hashlib.sha256(origin.encode()).hexdigest()[:16]


def fresh_column(name: str, origin: str, used: Collection[str]) -> str:
    """The name of a column that comes to a table: the name of its property, for readers that
    open the table without us, and the id that it comes with. `used` are names that it must not
    have."""
    column, number = f"{name}_{origin}", 1
    while column in used:
        number += 1
        column = f"{name}_{origin}_{number}"
    return column


def used_columns(kind: GraphType) -> frozenset[str]:
    """Every column that the catalog knows in the table."""
    return frozenset((*system_columns(kind), *kind.retired, *(p.column for p in kind.properties)))


def system_columns(kind: GraphType) -> tuple[str, ...]:
    return SYSTEM_EDGE_COLUMNS if isinstance(kind, EdgeType) else SYSTEM_NODE_COLUMNS
