"""Owns the part of a graph that an algorithm works on: edge types with directions, the node types
at their ends, and conditions that entities must meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow.compute as pc

from omnigraph.engine.condition import Condition, read_condition
from omnigraph.errors import InvalidArgument, TypeNotFound
from omnigraph.lang.suggestions import near
from omnigraph.model.call_types import AlgorithmFilter, Edges, Filter
from omnigraph.model.catalog import Catalog, EdgeType, GraphType, NodeType

Direction = Literal["out", "in", "both"]
DIRECTIONS = ("out", "in", "both")


@dataclass(frozen=True)
class AlgorithmScope:
    """Node types are ordered by name. `where` holds the conditions by table key."""

    edges: tuple[tuple[EdgeType, str], ...]
    nodes: tuple[NodeType, ...]
    where: Mapping[str, Filter]
    now: int

    def condition(self, catalog: Catalog, kind: GraphType) -> Condition | None:
        text = self.where.get(kind.table_key)
        return None if text is None else read_condition(catalog, kind, text, self.now)


def read_scope(
    catalog: Catalog, edges: Edges, direction: str, where: AlgorithmFilter, now: int
) -> AlgorithmScope:
    """The scope that the arguments describe, checked against the schema."""
    given = _read_edges(catalog, edges, direction)
    chosen = tuple((catalog.edge_names[name], way) for name, way in given.items())
    touched = {name for edge, _ in chosen for name in (edge.source, edge.target)}
    nodes = tuple(catalog.node_names[name] for name in sorted(touched))
    conditions = _read_where([edge for edge, _ in chosen], nodes, where)
    for kind, text in conditions:
        read_condition(catalog, kind, text, now)
    return AlgorithmScope(chosen, nodes, {kind.table_key: text for kind, text in conditions}, now)


def _read_edges(catalog: Catalog, edges: Edges, direction: str) -> dict[str, str]:
    if edges is None:
        given = dict.fromkeys(catalog.edge_names, direction)
    elif isinstance(edges, str):
        given = {edges: direction}
    elif isinstance(edges, Mapping):
        given = dict(edges)
    else:
        given = dict.fromkeys(edges, direction)
    for name, way in given.items():
        if not isinstance(name, str):
            raise InvalidArgument(f"An edge type is named by a text, not {name!r}.")
        if way not in DIRECTIONS:
            raise InvalidArgument(f"The direction of {name} is 'out', 'in' or 'both', not {way!r}.")
        if name not in catalog.edge_names:
            guess = near(name, list(catalog.edge_names))
            hint = f"Did you mean {guess}?" if guess else ""
            raise TypeNotFound(f"There is no edge type {name!r}.", help=hint)
    if not given:
        raise InvalidArgument("There are no edges to follow: the schema has no edge types.")
    return given


def _read_where(
    edges: Sequence[EdgeType], nodes: Sequence[NodeType], where: AlgorithmFilter
) -> list[tuple[GraphType, Filter]]:
    if where is None:
        return []
    if isinstance(where, str | pc.Expression):
        if len(edges) > 1:
            names = ", ".join(edge.name for edge in edges)
            raise InvalidArgument(
                f"The condition {where!r} does not say which edges it is about: {names}.",
                help=f"Say of which type: where={{{edges[0].name!r}: {where!r}}}, or on the "
                f"command line --where '{edges[0].name}: {where}'.",
            )
        return [(edges[0], where)]
    kinds: dict[str, GraphType] = {}
    taking_part: list[GraphType] = [*nodes, *edges]
    for kind in taking_part:  # an edge type takes precedence over a node type of the same name
        kinds[kind.table_key] = kinds[kind.name] = kind
    found: list[tuple[GraphType, Filter]] = []
    for name, text in where.items():
        if name not in kinds:
            guess = near(name, list(kinds))
            listed = ", ".join(kind.name for kind in (*edges, *nodes))
            raise InvalidArgument(
                f"The condition of {name!r} is about none of the types that take part.",
                help=f"Did you mean {guess!r}?" if guess else f"These are: {listed}.",
            )
        found.append((kinds[name], text))
    return found
