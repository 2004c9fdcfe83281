"""Owns a subgraph: some nodes and edges of a graph as values, in every form that common tools
accept. It shows itself as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.errors import InvalidArgument
from omnigraph.show.parts import End, SubgraphEdge, SubgraphNode

if TYPE_CHECKING:
    import igraph
    import networkx as nx

    from omnigraph.show.arrays import GraphArrays


class Subgraph:
    """Nodes by type and id, and edges between them; each is there once. An end that was not found
    as a node is one without properties.

    >>> found = g.query("match { $p: Person $p $k:knows $f } return { $p.name }").graph()
    >>> (len(found.nodes), [edge.target for edge in found.edges])
    (3, [('Person', 'Bob'), ('Person', 'Cyd')])
    """

    def __init__(self, nodes: Iterable[SubgraphNode], edges: Iterable[SubgraphEdge]) -> None:
        held: dict[End, SubgraphNode] = {}
        for node in nodes:
            held.setdefault(node.end, node)
        kept = {(edge.type, edge.id): edge for edge in edges}
        for edge in kept.values():
            for end in (edge.source, edge.target):
                held.setdefault(end, SubgraphNode(*end))
        self.nodes: tuple[SubgraphNode, ...] = tuple(held.values())
        self.edges: tuple[SubgraphEdge, ...] = tuple(kept.values())

    def to_networkx(self) -> nx.MultiDiGraph:
        """Nodes are (type, id) with their properties. Edges are keyed by their id and carry
        `@type`, which no property can be called."""
        try:
            import networkx as nx
        except ImportError:
            raise _missing("networkx") from None
        network = nx.MultiDiGraph()
        for node in self.nodes:
            network.add_node(node.end)
            network.nodes[node.end].update(node.data)  # not as keywords: users choose the names
        for edge in self.edges:
            ends = edge.source, edge.target
            key = network.add_edge(*ends, key=edge.id)
            network.edges[*ends, key].update({**edge.data, "@type": edge.type})
        return network

    def to_igraph(self) -> igraph.Graph:
        """A directed graph. Vertices and edges carry `@type` and `@id` beside their properties;
        what one has not is None."""
        try:
            import igraph
        except ImportError:
            raise _missing("igraph") from None
        places = {node.end: place for place, node in enumerate(self.nodes)}
        return igraph.Graph(
            n=len(self.nodes),
            edges=[(places[edge.source], places[edge.target]) for edge in self.edges],
            directed=True,
            vertex_attrs=_attributes(self.nodes),
            edge_attrs=_attributes(self.edges),
        )

    def to_arrays(
        self,
        features: Mapping[str, Sequence[str]] | None = None,
        *,
        dtype: Literal["float32", "float64"] = "float32",
    ) -> GraphArrays:
        """Arrays as libraries for learning on graphs take them: an edge index for each kind of
        edge, and a row of numbers for each node and edge. `features` names properties by type;
        otherwise they are all that hold numbers or vectors. Null is NaN."""
        from omnigraph.show.arrays import make_arrays

        return make_arrays(self.nodes, self.edges, features, dtype)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {len(self.nodes):,} nodes, {len(self.edges):,} edges>"

    def _repr_html_(self) -> str:
        from omnigraph.show.picture import picture

        return picture(self.nodes, self.edges)


def _attributes(items: Sequence[SubgraphNode | SubgraphEdge]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for item in items for name in item.data)
    return {
        "@type": [item.type for item in items],
        "@id": [item.id for item in items],
        **{name: [item.data.get(name) for item in items] for name in names},
    }


def _missing(name: str) -> InvalidArgument:
    return InvalidArgument(f"{name} is not installed.", help=f"Install it: pip install {name}")
