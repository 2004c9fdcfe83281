"""Owns the graph of the oracle: its entities, and which traversals hold between them.

Distances are found by looking at every edge from every node, as often as it takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from omnigraph.lang.gq import checked as c
from tests.model.query_values import Entity

Variables = dict[int, Entity | None]


class World:
    """The data: `nodes[type][id]` are properties, `edges[type]` dicts with `id`, `src`, `dst`."""

    def __init__(
        self,
        nodes: Mapping[str, Mapping[str, Mapping[str, Any]]],
        edges: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
    ) -> None:
        self.nodes = {
            kind: {key: Entity(kind, key, dict(row)) for key, row in rows.items()}
            for kind, rows in nodes.items()
        }
        self.edges = {
            kind: [_edge(kind, row) for row in rows] for kind, rows in (edges or {}).items()
        }

    def entities(self, kind: c.NodeKind | c.EdgeKind) -> Iterator[Entity]:
        for one in kind.types:
            if isinstance(kind, c.NodeKind):
                yield from self.nodes.get(one.name, {}).values()
            else:
                yield from self.edges.get(one.name, [])

    def ends(self, edge: Entity, step: c.EdgeStep) -> tuple[Entity, Entity]:
        """The nodes of the edge, in its own direction."""
        assert edge.src is not None
        assert edge.dst is not None
        return self.nodes[step.edge.source][edge.src], self.nodes[step.edge.target][edge.dst]


def _edge(kind: str, row: Mapping[str, Any]) -> Entity:
    properties = {n: value for n, value in row.items() if n not in ("id", "src", "dst")}
    return Entity(kind, row["id"], properties, row["src"], row["dst"], is_edge=True)


def _ids(entities: tuple[Entity, ...]) -> list[tuple[str, str]]:
    return [(one.id, one.type) for one in entities]


class Paths:
    def __init__(self, world: World) -> None:
        self.world = world
        self._distances: dict[tuple[Entity, tuple[tuple[str, str], ...]], dict[Entity, int]] = {}

    def holds(self, traversal: c.Traversal, row: Variables) -> bool:
        """Whether the traversal is true of the row; true while a variable has no value yet."""
        wanted = {traversal.source, traversal.target, traversal.edge} - {None}
        if not wanted <= row.keys():
            return True
        source, target = row[traversal.source], row[traversal.target]
        if source is None or target is None:
            return False
        if traversal.edge is not None:
            edge = row[traversal.edge]
            assert edge is not None
            return any(
                (source, target) in self._ways(edge, step)
                for step in traversal.steps
                if step.edge.name == edge.type
            )
        if source == target:
            # Its distance is 0, and 1 through a loop at the node itself, never through a cycle.
            is_end = source.type in {s.edge.source for s in traversal.steps} | {
                s.edge.target for s in traversal.steps
            }
            loops = self._neighbours(source, traversal.steps)
            return (traversal.low == 0 and is_end) or (
                traversal.low <= 1 <= traversal.high and target in loops
            )
        distance = self._distances_from(source, traversal.steps).get(target)
        return distance is not None and traversal.low <= distance <= traversal.high

    def part(self, value: c.PathValue, source: Entity | None, target: Entity | None) -> Any:
        """What is asked of a named traversal. Every way of the shortest length is written out."""
        if source is None or target is None:
            return None
        ways = self._shortest(source, target, value.traversal)
        if not ways:
            return None
        if value.part == "length":
            return len(ways[0]) // 2
        side = slice(0, None, 2) if value.part == "nodes" else slice(1, None, 2)
        if not value.every:
            first = min(ways, key=lambda w: (_ids(w[::2]), _ids(w[1::2])))
            return tuple(one.id for one in first[side])
        steps = zip(*(way[side] for way in ways), strict=True)
        return tuple(
            entity.id
            for step in steps
            for entity in sorted(set(step), key=lambda one: (one.id, one.type))
        )

    def _shortest(
        self, source: Entity, target: Entity, traversal: c.Traversal
    ) -> list[tuple[Entity, ...]]:
        """Nodes and edges in turn. A way never comes back to where it was, but for a loop."""
        if source == target and traversal.low == 0:
            return [(source,)]
        if source == target:
            return [
                (source, edge, stop)
                for edge, stop in self._out(source, traversal.steps)
                if stop == target
            ]
        distance = self._distances_from(source, traversal.steps).get(target)
        ways: list[tuple[Entity, ...]] = [(source,)]
        for _ in range(distance or 0):
            ways = [
                (*way, edge, stop)
                for way in ways
                for edge, stop in self._out(way[-1], traversal.steps)
                if stop not in way
            ]
        return [way for way in ways if distance and way[-1] == target]

    def _out(self, node: Entity, steps: tuple[c.EdgeStep, ...]) -> list[tuple[Entity, Entity]]:
        """The edges that leave a node, each once for each node that it leads to."""
        return [
            (edge, stop)
            for step in steps
            for edge in self.world.edges.get(step.edge.name, [])
            for start, stop in sorted(self._ways(edge, step), key=lambda way: way[1].id)
            if start == node
        ]

    def _ways(self, edge: Entity, step: c.EdgeStep) -> set[tuple[Entity, Entity]]:
        """From which node to which the step goes by this edge."""
        start, stop = self.world.ends(edge, step)
        match step.direction:
            case c.Direction.FORWARD:
                return {(start, stop)}
            case c.Direction.BACKWARD:
                return {(stop, start)}
            case c.Direction.EITHER:
                return {(start, stop), (stop, start)}

    def _neighbours(self, node: Entity, steps: tuple[c.EdgeStep, ...]) -> set[Entity]:
        return {
            stop
            for step in steps
            for edge in self.world.edges.get(step.edge.name, [])
            for start, stop in self._ways(edge, step)
            if start == node
        }

    def _distances_from(self, start: Entity, steps: tuple[c.EdgeStep, ...]) -> dict[Entity, int]:
        known = (start, tuple((s.edge.name, s.direction.value) for s in steps))
        if known not in self._distances:
            distances = {start: 0}
            frontier = [start]
            while frontier:
                following: dict[Entity, None] = {}
                for node in frontier:
                    following |= dict.fromkeys(self._neighbours(node, steps))
                depth = distances[frontier[0]] + 1
                frontier = [node for node in following if node not in distances]
                distances |= dict.fromkeys(frontier, depth)
            self._distances[known] = distances
        return self._distances[known]
