"""Owns finding the types of a catalog by the names that queries use."""

from __future__ import annotations

from functools import cached_property

from omnigraph.model.catalog import Catalog, EdgeType, NodeType


class Names:
    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    @cached_property
    def interfaces(self) -> dict[str, tuple[NodeType, ...]]:
        """The types that implement each interface, in the order of the catalog."""
        found: dict[str, list[NodeType]] = {i.name: [] for i in self.catalog.interfaces}
        for node in self.catalog.nodes:
            for name in node.implements:
                found.setdefault(name, []).append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    @cached_property
    def matchable(self) -> tuple[str, ...]:
        """The names that a binding may use."""
        return (*self.catalog.node_names, *self.interfaces)

    def nodes(self, name: str) -> tuple[NodeType, ...] | None:
        """The node types that a binding to this name matches."""
        node = self.catalog.node_names.get(name)
        return (node,) if node is not None else self.interfaces.get(name)

    @cached_property
    def _folded(self) -> dict[str, list[EdgeType]]:
        found: dict[str, list[EdgeType]] = {}
        for edge in self.catalog.edges:
            found.setdefault(edge.name.casefold(), []).append(edge)
        return found

    def edges(self, name: str) -> list[EdgeType]:
        """The edge type of exactly this name, else all whose name differs only in case."""
        edge = self.catalog.edge_names.get(name)
        return [edge] if edge is not None else self._folded.get(name.casefold(), [])

    @cached_property
    def traversable(self) -> tuple[str, ...]:
        """Edge names as traversals write them."""
        return tuple(e.name[0].lower() + e.name[1:] for e in self.catalog.edges)

    def in_catalog_order(self, names: frozenset[str]) -> tuple[NodeType, ...]:
        return tuple(node for node in self.catalog.nodes if node.name in names)
