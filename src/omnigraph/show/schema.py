"""Owns the picture of a schema: its node types as nodes, its edge types as edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from omnigraph.model.catalog import Catalog, GraphType, NodeType
from omnigraph.model.types import type_text
from omnigraph.show.parts import SubgraphEdge, SubgraphNode
from omnigraph.show.picture import Legend, picture
from omnigraph.show.subgraph import Subgraph

_LEGEND = Legend("schema", "node type", "edge type", of_types=True)


class SchemaGraph(Subgraph):
    """A node for each node type, called `("node", name)`, and an edge for each edge type. Their
    data are the properties with their types, and how many entities there are."""

    def _repr_html_(self) -> str:
        return picture(self.nodes, self.edges, _LEGEND)


def schema_subgraph(catalog: Catalog, counts: Mapping[str, int]) -> SchemaGraph:
    nodes = [SubgraphNode("node", kind.name, _told(kind, counts)) for kind in catalog.nodes]
    edges = [
        SubgraphEdge(
            kind.name, kind.name, ("node", kind.source), ("node", kind.target), _told(kind, counts)
        )
        for kind in catalog.edges
    ]
    return SchemaGraph(nodes, edges)


def _told(kind: GraphType, counts: Mapping[str, int]) -> dict[str, object]:
    return dict(_facts(kind, counts))


def _facts(kind: GraphType, counts: Mapping[str, int]) -> Iterator[tuple[str, object]]:
    """No property begins with `@`."""
    yield "@count", counts.get(kind.name, 0)
    if kind.description:
        yield "@description", kind.description
    if isinstance(kind, NodeType) and kind.implements:
        yield "@implements", ", ".join(kind.implements)
    for prop in kind.properties:
        key = " @key" if prop.name in kind.key else ""
        yield prop.name, f"{type_text(prop.type)}{'?' if prop.may_be_null else ''}{key}"
