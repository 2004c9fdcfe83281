"""Owns the network that an algorithm runs on: the nodes and edges of some edge types of a snapshot,
as numbers, in an order that does not depend on how they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.algorithms.kernels import Ints
from omnigraph.engine.query.adjacency import Adjacency
from omnigraph.engine.query.entities import Entities
from omnigraph.engine.session import Session
from omnigraph.engine.snapshot import Snapshot
from omnigraph.errors import InvalidArgument, NotFound, TypeNotFound
from omnigraph.lang.near import near
from omnigraph.model.catalog import Catalog, EdgeType, NodeType

Direction = Literal["out", "in", "both"]
DIRECTIONS = ("out", "in", "both")
Edges = str | Sequence[str] | Mapping[str, str] | None
"""Edge types by name; with a direction for each, or all types."""


@dataclass(frozen=True)
class Network:
    """Nodes are numbered by type, in the order of their names, and within a type by id. Each edge
    is there in the direction in which it is followed, in both if it is followed both ways."""

    kinds: tuple[NodeType, ...]
    starts: tuple[int, ...]
    ids: tuple[pa.Array, ...]
    src: Ints
    dst: Ints

    @property
    def count(self) -> int:
        return self.starts[-1]

    def parts(self, values: np.ndarray) -> list[tuple[NodeType, pa.Array, np.ndarray]]:
        """Values of all nodes, by type, with the ids."""
        return [
            (kind, ids, values[start:stop])
            for kind, ids, start, stop in zip(
                self.kinds, self.ids, self.starts[:-1], self.starts[1:], strict=True
            )
        ]

    def names(self) -> pa.Array:
        """What each node is called: its id, after its type if there are several."""
        if not self.kinds:
            return pa.array([], pa.string())
        if len(self.kinds) == 1:
            return self.ids[0]
        parts = [
            pc.binary_join_element_wise(kind.name, ids, ":")
            for kind, ids in zip(self.kinds, self.ids, strict=True)
        ]
        return pa.concat_arrays(parts)

    def find(self, names: Sequence[str | tuple[str, str]]) -> Ints:
        """Nodes by id, or by (type, id) where several types have the id."""
        found = []
        for name in names:
            wanted, text = name if isinstance(name, tuple) else (None, name)
            places = [
                start + int(place.as_py())
                for kind, ids, start in zip(self.kinds, self.ids, self.starts, strict=False)
                if wanted in (None, kind.name)
                and (place := pc.index(ids, pa.scalar(text, pa.string()))).as_py() >= 0
            ]
            if not places:
                raise NotFound(f"There is no node {name!r} among the nodes of these edges.")
            if len(places) > 1:
                raise InvalidArgument(f"Several types have a node {text!r}: give (type, id).")
            found += places
        return np.array(found, dtype=np.int64)


def read_edges(catalog: Catalog, edges: Edges, direction: str) -> dict[str, str]:
    """The edge types that are meant, each with its direction."""
    if edges is None:
        given = dict.fromkeys(catalog.edge_names, direction)
    elif isinstance(edges, str):
        given = {edges: direction}
    elif isinstance(edges, Mapping):
        given = dict(edges)
    else:
        given = dict.fromkeys(edges, direction)
    for name, way in given.items():
        if way not in DIRECTIONS:
            raise InvalidArgument(f"The direction of {name} is 'out', 'in' or 'both', not {way!r}.")
        if name not in catalog.edge_names:
            guess = near(name, list(catalog.edge_names))
            hint = f"Did you mean {guess}?" if guess else ""
            raise TypeNotFound(f"There is no edge type {name!r}.", help=hint)
    if not given:
        raise InvalidArgument("There are no edges to follow: the schema has no edge types.")
    return given


def build_network(session: Session, snapshot: Snapshot, edges: Mapping[str, str]) -> Network:
    catalog = snapshot.catalog
    chosen = [catalog.edge_names[name] for name in edges]
    touched = {name for edge in chosen for name in (edge.source, edge.target)}
    kinds = tuple(catalog.node_names[name] for name in sorted(touched))
    entities = Entities(snapshot.view, session.columns, snapshot.io)
    ids, ranks, starts = [], {}, [0]
    for kind in kinds:
        rows = entities.rows(kind)
        held = rows.take("id", rows.live).cast(pa.string())
        order = pc.sort_indices(held).to_numpy()
        place = np.full(rows.capacity, -1, dtype=np.int64)
        place[rows.live[order]] = np.arange(len(order)) + starts[-1]
        ids.append(held.take(pa.array(order)))
        ranks[kind.name] = place
        starts.append(starts[-1] + len(order))
    src, dst = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for edge in chosen:
        here, there = _ends(session, snapshot, entities, edge, ranks)
        way = edges[edge.name]
        if way in ("out", "both"):
            src.append(here)
            dst.append(there)
        if way in ("in", "both"):
            other = here != there if way == "both" else np.ones(len(here), dtype=bool)
            src.append(there[other])  # a loop followed both ways is still one edge
            dst.append(here[other])
    return Network(kinds, tuple(starts), tuple(ids), np.concatenate(src), np.concatenate(dst))


def _ends(
    session: Session,
    snapshot: Snapshot,
    entities: Entities,
    edge: EdgeType,
    ranks: Mapping[str, np.ndarray],
) -> tuple[Ints, Ints]:
    catalog, ledger = snapshot.catalog, snapshot.io
    source = entities.rows(catalog.node_names[edge.source])
    target = entities.rows(catalog.node_names[edge.target])
    adjacencies = session.adjacencies
    adjacency: Adjacency = adjacencies.of(entities.rows(edge), source, target, ledger)
    ends = []
    for numbers, node in ((adjacency.src, source), (adjacency.dst, target)):
        positions = adjacencies.position_of(node, ledger)[numbers[adjacency.live]]
        ends.append(ranks[node.kind.name][positions])
    return ends[0], ends[1]
